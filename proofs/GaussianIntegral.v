(** The Gaussian integral and the distribution function Phi of the standard normal law.

    With I(x) the integral of exp(-t^2/2) over [0, x] and K(x) the integral of
    2 exp(-x^2 (1 + t^2)/2) / (1 + t^2) over [0, 1], I^2 + K has derivative 0, is pi/2 at 0,
    and K vanishes at infinity. *)

From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Definition bell (x : R) : R := exp (- (x * x) / 2).

Lemma bell_pos x : 0 < bell x.
Proof. apply exp_pos. Qed.

Lemma continuous_bell x : continuous bell x.
Proof. apply (ex_derive_continuous (V := R_NormedModule)); unfold bell; auto_derive; auto. Qed.

Lemma ex_RInt_bell a b : ex_RInt bell a b.
Proof. apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros; apply continuous_bell. Qed.

Definition bell_integral (x : R) : R := RInt bell 0 x.

Lemma is_derive_bell_integral x : is_derive bell_integral x (bell x).
Proof.
  apply (is_derive_RInt bell bell_integral 0 x); [|apply continuous_bell].
  apply filter_forall; intros b; apply (RInt_correct (V := R_CompleteNormedModule)), ex_RInt_bell.
Qed.

(** ** The auxiliary integral K *)

Definition kernel (x t : R) : R := 2 * exp (- (x * x) * (1 + t * t) / 2) / (1 + t * t).

Lemma one_plus_sq_pos t : 0 < 1 + t * t.
Proof. nra. Qed.

Lemma is_derive_kernel x t :
  is_derive (fun u => kernel u t) x (-2 * bell x * (x * bell (x * t))).
Proof.
  pose proof (one_plus_sq_pos t); unfold kernel, bell.
  auto_derive; [lra|].
  replace (- (x * x) * (1 + t * t) / 2) with (- (x * x) / 2 + - (x * t * (x * t)) / 2) by field.
  replace (- (x * x) * (1 + t * t) * / 2) with (- (x * x) / 2 + - (x * t * (x * t)) / 2) by field.
  rewrite exp_plus; field; lra.
Qed.

Lemma ex_RInt_kernel x a b : ex_RInt (kernel x) a b.
Proof.
  apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros t _.
  apply (ex_derive_continuous (V := R_NormedModule)).
  pose proof (one_plus_sq_pos t); unfold kernel; auto_derive; lra.
Qed.

Definition kernel_integral (x : R) : R := RInt (kernel x) 0 1.

Lemma bell_integral_scaled x : RInt (fun t => x * bell (x * t)) 0 1 = bell_integral x.
Proof.
  unfold bell_integral.
  replace (RInt bell 0 x) with (RInt bell (x * 0 + 0) (x * 1 + 0)) by (f_equal; ring).
  rewrite <- (RInt_comp_lin bell x 0 0 1) by apply ex_RInt_bell.
  apply RInt_ext; intros t _; unfold scal; simpl; unfold mult; simpl; do 2 f_equal; ring.
Qed.

Lemma is_derive_kernel_integral x :
  is_derive kernel_integral x (-2 * bell x * bell_integral x).
Proof.
  replace (-2 * bell x * bell_integral x)
    with (RInt (fun t => Derive (fun u => kernel u t) x) 0 1).
  - apply (is_derive_RInt_param kernel 0 1 x).
    + apply filter_forall; intros u t _; eexists; apply is_derive_kernel.
    + intros t _.
      apply continuity_2d_pt_ext with (f := fun u v => -2 * bell u * (u * bell (u * v))).
      { intros u v; symmetry; apply is_derive_unique, is_derive_kernel. }
      assert (Cb : forall y, continuity_pt bell y)
        by (intros y; apply continuity_pt_filterlim, continuous_bell).
      apply continuity_2d_pt_mult; [apply continuity_2d_pt_mult|apply continuity_2d_pt_mult].
      * apply continuity_2d_pt_const.
      * apply (continuity_1d_2d_pt_comp bell (fun u _ => u)); [apply Cb|apply continuity_2d_pt_id1].
      * apply continuity_2d_pt_id1.
      * apply (continuity_1d_2d_pt_comp bell (fun u v => u * v)); [apply Cb|].
        apply continuity_2d_pt_mult; [apply continuity_2d_pt_id1|apply continuity_2d_pt_id2].
    + apply filter_forall; intros u; apply ex_RInt_kernel.
  - rewrite <- bell_integral_scaled.
    transitivity (RInt (fun t => scal (-2 * bell x) (x * bell (x * t))) 0 1).
    2:{ apply (RInt_scal (V := R_CompleteNormedModule)).
      apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros t _.
      apply (ex_derive_continuous (V := R_NormedModule)); unfold bell; auto_derive; auto. }
    apply RInt_ext; intros t _; apply is_derive_unique, is_derive_kernel.
Qed.

Lemma kernel_integral_0 : kernel_integral 0 = PI / 2.
Proof.
  unfold kernel_integral.
  rewrite (RInt_ext _ (fun t => 2 * / (1 + t * t))).
  - apply is_RInt_unique.
    replace (PI / 2) with (minus (2 * atan 1) (2 * atan 0))
      by (rewrite atan_1, atan_0; unfold minus, plus, opp; simpl; field).
    apply (is_RInt_derive (fun t => 2 * atan t)); intros t _.
    + auto_derive; [exact I|]; pose proof (one_plus_sq_pos t); field; nra.
    + apply (ex_derive_continuous (V := R_NormedModule)).
      pose proof (one_plus_sq_pos t); auto_derive; lra.
  - intros t _; unfold kernel; pose proof (one_plus_sq_pos t).
    replace (- (0 * 0) * (1 + t * t) / 2) with 0 by field; rewrite exp_0.
    change (2 * 1 / (1 + t * t) = 2 * / (1 + t * t)); field; lra.
Qed.

Lemma bell_kernel_constant x : 0 <= x -> bell_integral x ^ 2 + kernel_integral x = PI / 2.
Proof.
  intros Hx.
  assert (E0 : bell_integral 0 ^ 2 + kernel_integral 0 = PI / 2).
  { unfold bell_integral; rewrite RInt_point, kernel_integral_0.
    unfold Hierarchy.zero; simpl; ring. }
  destruct Hx as [Hx|<-]; [|exact E0].
  rewrite <- E0; symmetry.
  apply (eq_is_derive (V := R_NormedModule) (fun x => bell_integral x ^ 2 + kernel_integral x));
    [|exact Hx].
  intros t _.
  assert (D2 : is_derive (fun x => bell_integral x ^ 2) t (2 * bell t * bell_integral t)).
  { pose proof (is_derive_pow bell_integral 2 t (bell t) (is_derive_bell_integral t)) as P.
    simpl in P; simpl.
    replace (2 * bell t * bell_integral t) with ((1 + 1) * bell t * (bell_integral t * 1)) by ring.
    exact P. }
  pose proof (is_derive_plus (V := R_NormedModule) _ _ _ _ _ D2 (is_derive_kernel_integral t)) as D.
  unfold plus in D; simpl in D.
  replace (2 * bell t * bell_integral t + -2 * bell t * bell_integral t) with 0 in D by ring.
  exact D.
Qed.

Lemma kernel_integral_bounds x : 0 <= kernel_integral x <= 2 * bell x.
Proof.
  unfold kernel_integral.
  assert (B : forall t, 0 <= kernel x t <= 2 * bell x).
  { intros t; pose proof (one_plus_sq_pos t); unfold kernel, bell.
    assert (exp (- (x * x) * (1 + t * t) / 2) <= exp (- (x * x) / 2)).
    { destruct (Req_dec (x * x * (t * t)) 0) as [Z|N].
      - right; f_equal; lra.
      - left; apply exp_increasing; nra. }
    pose proof (exp_pos (- (x * x) * (1 + t * t) / 2)).
    pose proof (Rinv_0_lt_compat _ H).
    assert (/ (1 + t * t) <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; nra).
    unfold Rdiv in *; split; [apply Rmult_le_pos; lra|]; nra. }
  split.
  - apply RInt_ge_0; [lra|apply ex_RInt_kernel|intros; apply B].
  - replace (2 * bell x) with (RInt (fun _ => 2 * bell x) 0 1).
    + apply RInt_le; [lra|apply ex_RInt_kernel|apply ex_RInt_const|intros; apply B].
    + rewrite RInt_const; unfold scal; simpl; unfold mult; simpl; ring.
Qed.

(** ** Limits *)

Lemma is_lim_bell : is_lim bell p_infty 0.
Proof.
  apply is_lim_le_le_loc with (f := fun _ => 0) (g := fun x => exp (- x)).
  - exists 2; intros x Hx; split; [left; apply bell_pos|].
    left; apply exp_increasing; nra.
  - apply is_lim_const.
  - apply is_lim_comp with (m_infty); [apply is_lim_exp_m| |exists 0; intros; discriminate].
    apply (is_lim_opp (fun x => x) p_infty p_infty), is_lim_id.
Qed.

Lemma bell_integral_nonneg x : 0 <= x -> 0 <= bell_integral x.
Proof. intros; apply RInt_ge_0; [lra|apply ex_RInt_bell|intros; left; apply bell_pos]. Qed.

Lemma is_lim_bell_integral : is_lim bell_integral p_infty (sqrt (PI / 2)).
Proof.
  apply is_lim_ext_loc with (f := fun x => sqrt (PI / 2 - kernel_integral x)).
  - exists 0; intros x Hx; rewrite <- (bell_kernel_constant x) by lra.
    replace (bell_integral x ^ 2 + kernel_integral x - kernel_integral x)
      with (bell_integral x ^ 2) by ring.
    apply sqrt_pow2, bell_integral_nonneg; lra.
  - apply (is_lim_comp_continuous (fun x => PI / 2 - kernel_integral x) sqrt).
    + replace (PI / 2) with (PI / 2 - 0) at 1 by ring.
      apply is_lim_minus'; [apply is_lim_const|].
      apply is_lim_le_le_loc with (f := fun _ => 0) (g := fun x => 2 * bell x).
      * exists 0; intros x _; apply kernel_integral_bounds.
      * apply is_lim_const.
      * replace (Finite 0) with (Rbar_mult 2 0) by (simpl; f_equal; ring).
        apply is_lim_scal_l, is_lim_bell.
    + apply continuity_pt_filterlim, continuity_pt_sqrt; pose proof PI_RGT_0; lra.
Qed.

Lemma bell_integral_opp x : bell_integral (- x) = - bell_integral x.
Proof.
  unfold bell_integral.
  replace (RInt bell 0 (- x)) with (RInt bell (-1 * 0 + 0) (-1 * x + 0)) by (f_equal; ring).
  rewrite <- (RInt_comp_lin bell (-1) 0 0 x) by apply ex_RInt_bell.
  rewrite (RInt_ext _ (fun t => scal (-1) (bell t))).
  - rewrite (RInt_scal (V := R_CompleteNormedModule)) by apply ex_RInt_bell.
    unfold scal; simpl; unfold mult; simpl; ring.
  - intros t _; unfold bell; do 3 f_equal; ring.
Qed.

(** ** The distribution function *)

Definition root_two_pi : R := sqrt (2 * PI).
Definition Phi (x : R) : R := / 2 + bell_integral x / root_two_pi.

Lemma root_two_pi_pos : 0 < root_two_pi.
Proof. apply sqrt_lt_R0; pose proof PI_RGT_0; lra. Qed.

Lemma root_half_pi : sqrt (PI / 2) = root_two_pi / 2.
Proof.
  unfold root_two_pi; pose proof PI_RGT_0.
  replace (2 * PI) with (2 * 2 * (PI / 2)) by field.
  rewrite sqrt_mult_alt, sqrt_square by lra; field.
Qed.

Lemma is_derive_Phi x : is_derive Phi x (bell x / root_two_pi).
Proof.
  pose proof root_two_pi_pos; unfold Phi.
  auto_derive; [eexists; apply is_derive_bell_integral|].
  replace (Derive (fun x => bell_integral x) x) with (bell x); [field; lra|].
  symmetry; apply is_derive_unique, is_derive_bell_integral.
Qed.

Lemma Phi_opp x : Phi (- x) = 1 - Phi x.
Proof. unfold Phi; rewrite bell_integral_opp; pose proof root_two_pi_pos; field; lra. Qed.

Lemma is_lim_Phi_p : is_lim Phi p_infty 1.
Proof.
  pose proof root_two_pi_pos; unfold Phi.
  replace (Finite 1) with (Finite (/ 2 + sqrt (PI / 2) / root_two_pi))
    by (rewrite root_half_pi; f_equal; field; lra).
  apply is_lim_plus'; [apply is_lim_const|].
  apply (is_lim_comp_continuous bell_integral (fun y => y / root_two_pi));
    [apply is_lim_bell_integral|].
  apply (ex_derive_continuous (V := R_NormedModule)); auto_derive; auto.
Qed.

Lemma is_lim_Phi_m : is_lim Phi m_infty 0.
Proof.
  apply is_lim_ext with (f := fun x => 1 - Phi (- x)).
  - intros x; rewrite Phi_opp; ring.
  - replace (Finite 0) with (Finite (1 - 1)) by (f_equal; ring).
    apply is_lim_minus'; [apply is_lim_const|].
    apply is_lim_comp with p_infty; [apply is_lim_Phi_p| |exists 0; intros; discriminate].
    apply (is_lim_opp (fun x => x) m_infty m_infty), is_lim_id.
Qed.

(** An antiderivative with limits integrates over the line. *)
Lemma is_RInt_gen_line (F f : R -> R) (lm lp : R) :
  (forall x, is_derive F x (f x)) -> (forall x, continuous f x) ->
  is_lim F m_infty lm -> is_lim F p_infty lp ->
  is_RInt_gen f (Rbar_locally m_infty) (Rbar_locally p_infty) (lp - lm).
Proof.
  intros Hd Hc Hm Hp.
  assert (E : forall x, Derive F x = f x) by (intros; apply is_derive_unique, Hd).
  apply is_RInt_gen_ext with (f := Derive F).
  - apply filter_forall; intros ab x _; apply E.
  - apply is_RInt_gen_Derive; [| |exact Hm|exact Hp]; apply filter_forall; intros ab x _.
    + eexists; apply Hd.
    + apply continuous_ext with (f := f); [intros; symmetry; apply E|apply Hc].
Qed.

(** The Gaussian integral: exp(-x^2/2) integrates to sqrt(2 pi) over the line. *)
Theorem gaussian_integral :
  is_RInt_gen (fun x => exp (- (x * x) / 2)) (Rbar_locally m_infty) (Rbar_locally p_infty)
    (sqrt (2 * PI)).
Proof.
  replace (sqrt (2 * PI)) with (sqrt (PI / 2) - - sqrt (PI / 2))
    by (rewrite root_half_pi; unfold root_two_pi; field).
  apply is_RInt_gen_line with bell_integral.
  - apply is_derive_bell_integral.
  - apply continuous_bell.
  - apply is_lim_ext with (f := fun x => - bell_integral (- x)).
    + intros x; rewrite bell_integral_opp; ring.
    + apply (is_lim_opp (fun x => bell_integral (- x)) m_infty (sqrt (PI / 2))).
      apply is_lim_comp with p_infty;
        [apply is_lim_bell_integral| |exists 0; intros; discriminate].
      apply (is_lim_opp (fun x => x) m_infty m_infty), is_lim_id.
  - apply is_lim_bell_integral.
Qed.
