(** Losses beside normal noise that is never put on a lattice: what is left of a run are steps whose
    losses are known, and Gaussian steps, of which only the sum of mu^2 counts. The bound is the loss
    of the former, followed by one Gaussian step of the latter ([followed]). That is an integral over
    t of profiles of the loss at the weights (a phi(t - m), b phi(t)), so that a step whose loss is
    known may come before it ([loss_then_gaussian]); of Gaussian steps [profile_step] says so. *)

From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Domination
  GaussianConvolution GaussianComposition Losses.
Import ListNotations.
Open Scope R_scope.

(** ** The profile of normal noise: attained, and an integral *)

Lemma rounded_unit_below m cuts :
  0 <= m -> ascending m_infty cuts ->
  below_profile (cells m_infty cuts) (rounded m 1) (rounded 0 1) (gaussian_profile m).
Proof.
  intros Hm Hc; pose proof (rounded_below_profile m 0 1 cuts Rlt_0_1 Hc) as B.
  replace (Rabs ((m - 0) / 1)) with m in B by (rewrite Rabs_right; field_simplify; lra); exact B.
Qed.

Lemma profile_attained m a b :
  0 <= m -> 0 <= a -> 0 <= b ->
  exists cuts, ascending m_infty cuts /\
    excess (cells m_infty cuts) (rounded m 1) (rounded 0 1) a b = gaussian_profile m a b.
Proof.
  intros Hm Ha Hb.
  assert (One : excess (cells m_infty []) (rounded m 1) (rounded 0 1) a b = plus_part (a - b)).
  { unfold excess, rounded, increment; simpl; rewrite Rplus_0_r; f_equal; ring. }
  destruct Hm as [Hm|<-]; [|exists []; split; [exact I|rewrite One, profile_zero; lra]].
  destruct Ha as [Ha|<-].
  2:{ exists []; split; [exact I|rewrite One, profile_a0 by exact Hb; apply plus_part_0; lra]. }
  destruct Hb as [Hb|<-].
  2:{ exists []; split; [exact I|rewrite One, profile_b0, plus_part_id; lra]. }
  set (eps := ln (b / a)); exists [threshold m 0 1 eps]; split; [split; exact I|].
  apply Rle_antisym; [apply rounded_unit_below; [lra|split; exact I|lra|lra]|].
  destruct (gaussian_delta_attained m 0 1 eps Rlt_0_1 ltac:(lra)) as [event E]; cbv zeta in E.
  pose proof (hockey_stick_event (cells m_infty [threshold m 0 1 eps]) (rounded m 1) (rounded 0 1)
                (exp eps) event) as H.
  rewrite E in H; replace (Rabs (shift m 0 1)) with m in H
    by (unfold shift; rewrite Rabs_right; field_simplify; lra).
  assert (Ee : exp eps = b / a) by (unfold eps; apply exp_ln, Rdiv_lt_0_compat; assumption).
  rewrite excess_hockey_stick, profile_delta by assumption; fold eps.
  apply Rmult_le_compat_l; [lra|]; rewrite Ee in H; lra.
Qed.

(** What is above normal noise rounded in any way is above its profile. *)
Lemma profile_least m (F : R -> R -> R) :
  0 <= m ->
  (forall cuts, ascending m_infty cuts ->
     below_profile (cells m_infty cuts) (rounded m 1) (rounded 0 1) F) ->
  forall a b, 0 <= a -> 0 <= b -> gaussian_profile m a b <= F a b.
Proof.
  intros Hm H a b Ha Hb; destruct (profile_attained m a b Hm Ha Hb) as (cuts & Hc & <-).
  apply H; assumption.
Qed.

Lemma rounded_unit_laws m cuts :
  ascending m_infty cuts -> distribution (cells m_infty cuts) (rounded m 1).
Proof. intros Hc; apply rounded_distribution; [lra|exact Hc]. Qed.

Lemma profile_decreasing m a b b' :
  0 <= m -> 0 <= a -> 0 <= b -> b <= b' -> gaussian_profile m a b' <= gaussian_profile m a b.
Proof.
  intros Hm Ha Hb Hbb; destruct (profile_attained m a b' Hm Ha ltac:(lra)) as (cuts & Hc & <-).
  eapply Rle_trans; [apply excess_le_weight with (b := b); [|exact Hbb]|].
  - apply rounded_unit_laws, Hc.
  - apply rounded_unit_below; assumption.
Qed.

(** What a loss weighs more of the first law than of the second is above one point. *)
Lemma weighted_sign m a b t c :
  0 < m -> 0 < a -> 0 < b -> c = ln (b / a) / m + m / 2 ->
  (t <= c -> weighted m a b t <= 0) /\ (c <= t -> 0 <= weighted m a b t).
Proof.
  intros Hm Ha Hb Ec.
  assert (E : weighted m a b t = b * phi t * (exp (m * (t - c)) - 1)).
  { replace (m * (t - c)) with (m * t - m * m / 2 + - ln (b / a)) by (rewrite Ec; field; lra).
    rewrite exp_plus, exp_Ropp, exp_ln by (apply Rdiv_lt_0_compat; assumption).
    unfold weighted.
    replace (phi (t - m)) with (phi t * exp (m * t - m * m / 2)); [field; lra|].
    unfold phi, bell.
    replace (- ((t - m) * (t - m)) / 2) with (- (t * t) / 2 + (m * t - m * m / 2)) by field.
    rewrite exp_plus; pose proof root_two_pi_pos; field; lra. }
  rewrite E; pose proof (phi_pos t); assert (0 < b * phi t) by (apply Rmult_lt_0_compat; lra).
  split; intros H'.
  - assert (exp (m * (t - c)) <= 1); [|nra].
    rewrite <- exp_0; apply exp_le; nra.
  - assert (1 <= exp (m * (t - c))); [|nra].
    rewrite <- exp_0; apply exp_le; nra.
Qed.

Lemma integral_profile m a b u v :
  0 < m -> 0 <= a -> 0 <= b -> u <= v ->
  RInt (fun t => plus_part (weighted m a b t)) u v <= gaussian_profile m a b.
Proof.
  intros Hm Ha Hb Huv.
  (* two cuts do if the sign changes once *)
  assert (Once : forall c, u <= c <= v -> (forall t, u < t < c -> weighted m a b t <= 0) ->
            (forall t, c < t < v -> 0 <= weighted m a b t) ->
            RInt (fun t => plus_part (weighted m a b t)) u v <= gaussian_profile m a b).
  { intros c Hc Below Above.
    assert (Left : is_RInt (fun t => plus_part (weighted m a b t)) u c 0).
    { apply is_RInt_ext with (f := fun _ => 0).
      - intros t Ht; rewrite Rmin_left, Rmax_right in Ht by lra; symmetry.
        apply plus_part_0, Below; lra.
      - pose proof (is_RInt_const (V := R_NormedModule) u c 0) as C.
        unfold scal in C; simpl in C; unfold mult in C; simpl in C; rewrite Rmult_0_r in C; exact C. }
    assert (Right : is_RInt (fun t => plus_part (weighted m a b t)) c v
                      (a * (Phi (v - m) - Phi (c - m)) - b * (Phi v - Phi c))).
    { apply is_RInt_ext with (f := weighted m a b).
      - intros t Ht; rewrite Rmin_left, Rmax_right in Ht by lra; symmetry.
        apply plus_part_id, Above; lra.
      - apply is_RInt_weighted. }
    rewrite (is_RInt_unique _ _ _ _ (is_RInt_Chasles (V := R_NormedModule) _ _ _ _ _ _ Left Right)).
    unfold plus; simpl; rewrite Rplus_0_l.
    assert (As : ascending m_infty [c; v]) by (repeat split; simpl; lra).
    eapply Rle_trans; [|apply (rounded_unit_below m [c; v]); [lra|exact As|exact Ha|exact Hb]].
    unfold excess; cbn [cells total].
    set (middle := plus_part (a * rounded m 1 (Finite c, Finite v) - _)).
    assert (M : a * (Phi (v - m) - Phi (c - m)) - b * (Phi v - Phi c) <= middle).
    { eapply Rle_trans; [|apply plus_part_ge]; right; unfold rounded, increment, cdf; simpl.
      replace ((v - m) / 1) with (v - m) by field; replace ((c - m) / 1) with (c - m) by field.
      replace ((v - 0) / 1) with v by field; replace ((c - 0) / 1) with c by field; ring. }
    pose proof (plus_part_nonneg (a * rounded m 1 (m_infty, Finite c) - b * rounded 0 1 (m_infty, Finite c))).
    pose proof (plus_part_nonneg (a * rounded m 1 (Finite v, p_infty) - b * rounded 0 1 (Finite v, p_infty))).
    lra. }
  assert (P : forall t, 0 <= phi t) by (intros t; pose proof (phi_pos t); lra).
  destruct Ha as [Ha|<-].
  2:{ apply (Once v); [lra| |intros; lra].
      intros t _; unfold weighted; pose proof (Rmult_le_pos _ _ Hb (P t)); lra. }
  destruct Hb as [Hb|<-].
  2:{ apply (Once u); [lra|intros; lra|].
      intros t _; unfold weighted; pose proof (Rmult_le_pos _ _ (Rlt_le _ _ Ha) (P (t - m))); lra. }
  pose proof (fun t => weighted_sign m a b t _ Hm Ha Hb eq_refl) as Sign.
  set (c := ln (b / a) / m + m / 2) in Sign.
  destruct (Rle_dec c u) as [Cu|Cu]; [|destruct (Rle_dec v c) as [Cv|Cv]].
  - apply (Once u); [lra|intros; lra|intros; apply Sign; lra].
  - apply (Once v); [lra|intros; apply Sign; lra|intros; lra].
  - apply (Once c); [lra|intros; apply Sign; lra|intros; apply Sign; lra].
Qed.

(** ** A loss, followed by normal noise *)

Definition followed (K : loss) (m a b : R) : R :=
  lost K * a + total (atoms K) (fun xm => snd xm * gaussian_profile m a (b * exp (- fst xm))).

Lemma shrunk_nonneg b x : 0 <= b -> 0 <= b * exp (- x).
Proof. intros Hb; apply Rmult_le_pos; [exact Hb|left; apply exp_pos]. Qed.

Lemma followed_by_nothing K a b : followed K 0 a b = profile K a b.
Proof.
  unfold followed, profile; f_equal; apply total_ext; intros xm _; unfold loss_term.
  rewrite profile_zero by lra; reflexivity.
Qed.

Lemma nothing_followed m a b : followed nothing m a b = gaussian_profile m a b.
Proof. unfold followed, nothing; simpl; rewrite Ropp_0, exp_0, Rmult_1_r; ring. Qed.

Lemma followed_more K m a b :
  proper K -> 0 <= a -> 0 <= b -> profile K a b <= followed K m a b.
Proof.
  intros [_ N] Ha Hb; apply Rplus_le_compat_l, total_le; intros xm I; apply Rmult_le_compat_l.
  - apply N, I.
  - apply profile_ge; [exact Ha|apply shrunk_nonneg, Hb].
Qed.

Lemma followed_scal K m c a b :
  0 <= c -> 0 <= a -> 0 <= b -> followed K m (c * a) (c * b) = c * followed K m a b.
Proof.
  intros Hc Ha Hb; unfold followed; rewrite Rmult_plus_distr_l, <- total_scal; f_equal; [ring|].
  apply total_ext; intros xm _; rewrite Rmult_assoc, GaussianComposition.profile_scal; [ring|..];
    auto using shrunk_nonneg.
Qed.

Lemma followed_decreasing K m a b b' :
  proper K -> 0 <= m -> 0 <= a -> 0 <= b -> b <= b' -> followed K m a b' <= followed K m a b.
Proof.
  intros [_ N] Hm Ha Hb Hbb; apply Rplus_le_compat_l, total_le; intros xm I.
  apply Rmult_le_compat_l; [apply N, I|]; apply profile_decreasing; try assumption.
  - apply shrunk_nonneg, Hb.
  - apply Rmult_le_compat_r; [left; apply exp_pos|exact Hbb].
Qed.

(** Less noise, more loss: normal noise that has a loss may be put on the lattice at last. *)
Lemma followed_both K L m a b :
  proper K -> 1 <= mass L ->
  (forall a b, 0 <= a -> 0 <= b -> gaussian_profile m a b <= profile L a b) ->
  0 <= a -> 0 <= b -> followed K m a b <= profile (both K L) a b.
Proof.
  intros [Nl N] HL H Ha Hb; rewrite profile_both; unfold followed; rewrite Rplus_comm.
  apply Rplus_le_compat.
  - apply total_le; intros xm I; apply Rmult_le_compat_l; [apply N, I|].
    apply H; [exact Ha|apply shrunk_nonneg, Hb].
  - rewrite <- (Rmult_1_r (lost K * a)) at 1; apply Rmult_le_compat_l; [|exact HL].
    apply Rmult_le_pos; assumption.
Qed.

(** ** As an integral *)

Lemma loss_term_weighted m a b xm t :
  loss_term (a * phi (t - m)) (b * phi t) xm
    = snd xm * plus_part (weighted m a (b * exp (- fst xm)) t).
Proof. unfold loss_term, weighted; do 2 f_equal; ring. Qed.

Lemma RInt_scaled c f u v :
  ex_RInt f u v -> is_RInt (fun t => c * f t) u v (c * RInt f u v).
Proof.
  intros H; apply (is_RInt_scal (V := R_NormedModule) f u v c).
  apply (RInt_correct (V := R_CompleteNormedModule)), H.
Qed.

Lemma is_RInt_profile K m a b u v :
  is_RInt (fun t => profile K (a * phi (t - m)) (b * phi t)) u v
    (lost K * a * (Phi (v - m) - Phi (u - m))
     + total (atoms K) (fun xm =>
         snd xm * RInt (fun t => plus_part (weighted m a (b * exp (- fst xm)) t)) u v)).
Proof.
  unfold profile; apply (is_RInt_plus (V := R_NormedModule)).
  - apply is_RInt_ext with (f := fun t => lost K * weighted m a 0 t).
    { intros t _; unfold weighted; simpl; ring. }
    pose proof (is_RInt_scal (V := R_NormedModule) _ _ _ (lost K) _ (is_RInt_weighted m a 0 u v)) as W.
    unfold scal in W; simpl in W; unfold mult in W; simpl in W.
    replace (lost K * a * (Phi (v - m) - Phi (u - m)))
      with (lost K * (a * (Phi (v - m) - Phi (u - m)) - 0 * (Phi v - Phi u))) by ring; exact W.
  - rewrite (total_ext (atoms K) _ (fun xm => RInt (fun t =>
        snd xm * plus_part (weighted m a (b * exp (- fst xm)) t)) u v)).
    + apply is_RInt_ext with (f := fun t => total (atoms K) (fun xm =>
          snd xm * plus_part (weighted m a (b * exp (- fst xm)) t))).
      * intros t _; apply total_ext; intros xm _; symmetry; apply loss_term_weighted.
      * apply (RInt_total (atoms K) (fun xm t =>
          snd xm * plus_part (weighted m a (b * exp (- fst xm)) t))).
        intros xm _; eexists; apply RInt_scaled, ex_RInt_weighted_part.
    + intros xm _; symmetry; apply is_RInt_unique, RInt_scaled, ex_RInt_weighted_part.
Qed.

Lemma followed_window K m a b u v :
  proper K -> 0 < m -> 0 <= a -> 0 <= b -> u <= v ->
  let inside := RInt (fun t => profile K (a * phi (t - m)) (b * phi t)) u v in
  inside <= followed K m a b
    <= inside + mass K * a * (1 - (Phi (v - m) - Phi (u - m))).
Proof.
  intros [Nl N] Hm Ha Hb Huv; cbv zeta.
  rewrite (is_RInt_unique _ _ _ _ (is_RInt_profile K m a b u v)).
  assert (La : 0 <= lost K * a) by (apply Rmult_le_pos; assumption).
  pose proof (Phi_bounds (v - m)); pose proof (Phi_bounds (u - m)).
  unfold followed, mass, finite_mass; split.
  - apply Rplus_le_compat.
    + rewrite <- Rmult_1_r; apply Rmult_le_compat_l; lra.
    + apply total_le; intros xm I; apply Rmult_le_compat_l; [apply N, I|].
      apply integral_profile; auto using shrunk_nonneg.
  - assert (T : total (atoms K) (fun xm => snd xm * gaussian_profile m a (b * exp (- fst xm)))
                <= total (atoms K) (fun xm =>
                     snd xm * RInt (fun t => plus_part (weighted m a (b * exp (- fst xm)) t)) u v)
                   + total (atoms K) snd * (a * (1 - (Phi (v - m) - Phi (u - m))))).
    { rewrite <- total_scal_r, <- total_plus; apply total_le; intros xm I.
      rewrite <- Rmult_plus_distr_l; apply Rmult_le_compat_l; [apply N, I|].
      apply profile_integral; auto using shrunk_nonneg. }
    lra.
Qed.

Lemma beyond_every_window x y c d m :
  0 <= c -> 0 <= d -> (forall u v, u <= v ->
    x <= y + c * (1 - (Phi (v - m) - Phi (u - m))) + d * ((1 - Phi v) + Phi u)) -> x <= y.
Proof.
  intros Hc Hd H; apply Rnot_lt_le; intros Lt.
  assert (He : 0 < (x - y) / (4 * (c + d + 1))) by (apply Rdiv_lt_0_compat; lra).
  destruct (Phi_small _ He) as [w Hw].
  set (L := Rabs w + Rabs m + 1).
  assert (HL : - L + Rabs m < w /\ 0 < L /\ - Rabs m <= m <= Rabs m).
  { unfold L; pose proof (Rabs_pos m); unfold Rabs; destruct (Rcase_abs w), (Rcase_abs m); lra. }
  specialize (H (- L) L ltac:(lra)).
  pose proof (Hw (- L) ltac:(pose proof (Rabs_pos m); lra)) as W.
  pose proof (Hw (- L - m) ltac:(lra)) as W1; pose proof (Hw (- (L - m)) ltac:(lra)) as W2.
  assert (R1 : Phi L = 1 - Phi (- L)) by (rewrite Phi_opp; ring).
  assert (R2 : Phi (L - m) = 1 - Phi (- (L - m))) by (rewrite Phi_opp; ring); rewrite R1, R2 in H.
  set (e := (x - y) / (4 * (c + d + 1))) in *.
  assert (Ee : e * (c + d + 1) = (x - y) / 4) by (unfold e; field; lra).
  assert (c * (1 - (1 - Phi (- (L - m)) - Phi (- L - m))) <= c * (2 * e)) by (apply Rmult_le_compat_l; lra).
  assert (d * ((1 - (1 - Phi (- L))) + Phi (- L)) <= d * (2 * e)) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

Theorem followed_at_most K L m a b :
  proper K -> proper L -> at_most K L -> 0 <= m -> 0 <= a -> 0 <= b ->
  followed K m a b <= followed L m a b.
Proof.
  intros PK PL H [Hm|<-] Ha Hb; [|rewrite !followed_by_nothing; apply H; assumption].
  apply (beyond_every_window _ _ (mass K * a) 0 m); [|lra|].
  - apply Rmult_le_pos; [apply mass_nonneg, PK|exact Ha].
  - intros u v Huv; destruct (followed_window K m a b u v PK Hm Ha Hb Huv) as [_ Up].
    destruct (followed_window L m a b u v PL Hm Ha Hb Huv) as [Low _].
    rewrite Rmult_0_l, Rplus_0_r; eapply Rle_trans; [exact Up|]; apply Rplus_le_compat_r; eapply Rle_trans; [|exact Low].
    apply RInt_le; [exact Huv|eexists; apply is_RInt_profile|eexists; apply is_RInt_profile|].
    intros t _; pose proof (phi_pos t); pose proof (phi_pos (t - m)).
    apply H; apply Rmult_le_pos; lra.
Qed.

(** Of both, as [profile_both]. *)
Lemma followed_apart K L m a b :
  followed (both K L) m a b
    = total (atoms K) (fun x => snd x * followed L m a (b * exp (- fst x))) + lost K * a * mass L.
Proof.
  unfold followed at 1, both; cbn [atoms lost]; rewrite total_flat_map.
  rewrite (total_ext (atoms K) (fun x => snd x * followed L m a _) (fun x =>
      lost L * a * snd x
      + total (map (fun y => (fst x + fst y, snd x * snd y)) (atoms L))
          (fun xm => snd xm * gaussian_profile m a (b * exp (- fst xm))))).
  - rewrite total_plus, total_scal; unfold finite_mass; ring.
  - intros x _; unfold followed; rewrite total_map, Rmult_plus_distr_l, <- total_scal.
    f_equal; [ring|]; apply total_ext; intros y _; cbn [fst snd].
    replace (- (fst x + fst y)) with (- fst x + - fst y) by ring; rewrite exp_plus, <- !Rmult_assoc; ring.
Qed.

(** A loss that normal noise follows, at the weights of other normal noise, over a window. *)
Lemma followed_twice K mu m a b u v :
  proper K -> 0 < mu -> 0 < m -> 0 < a -> 0 < b -> u <= v -> exists inside,
  is_RInt (fun t => followed K mu (a * phi (t - m)) (b * phi t)) u v inside /\
  inside <= followed K (sqrt (m * m + mu * mu)) a b
            + b * total (atoms K) (fun x => snd x * exp (- fst x)) * ((1 - Phi v) + Phi u).
Proof.
  intros [Nl N] Hmu Hm Ha Hb Huv; set (S := sqrt _).
  assert (Each : forall x, In x (atoms K) -> exists inside,
            is_RInt (fun t => gaussian_profile mu (a * phi (t - m)) (b * exp (- fst x) * phi t)) u v inside /\
            inside <= gaussian_profile S a (b * exp (- fst x)) + b * exp (- fst x) * ((1 - Phi v) + Phi u)).
  { intros x _; apply profile_window; try assumption.
    apply Rmult_lt_0_compat; [exact Hb|apply exp_pos]. }
  exists (lost K * a * (Phi (v - m) - Phi (u - m))
          + total (atoms K) (fun x => snd x * RInt (fun t =>
              gaussian_profile mu (a * phi (t - m)) (b * exp (- fst x) * phi t)) u v)); split.
  - unfold followed; apply (is_RInt_plus (V := R_NormedModule)).
    + apply is_RInt_ext with (f := fun t => lost K * weighted m a 0 t).
      { intros t _; unfold weighted; simpl; ring. }
      pose proof (is_RInt_scal (V := R_NormedModule) _ _ _ (lost K) _ (is_RInt_weighted m a 0 u v)) as W.
      unfold scal in W; simpl in W; unfold mult in W; simpl in W.
      replace (lost K * a * (Phi (v - m) - Phi (u - m)))
        with (lost K * (a * (Phi (v - m) - Phi (u - m)) - 0 * (Phi v - Phi u))) by ring; exact W.
    + apply is_RInt_ext with (f := fun t => total (atoms K) (fun x =>
          snd x * gaussian_profile mu (a * phi (t - m)) (b * exp (- fst x) * phi t))).
      { intros t _; apply total_ext; intros x _; do 2 f_equal; ring. }
      rewrite (total_ext (atoms K) _ (fun x => RInt (fun t =>
          snd x * gaussian_profile mu (a * phi (t - m)) (b * exp (- fst x) * phi t)) u v)).
      * apply (RInt_total (atoms K) (fun x t =>
          snd x * gaussian_profile mu (a * phi (t - m)) (b * exp (- fst x) * phi t))).
        intros x I; destruct (Each x I) as (? & J & _); eexists.
        apply (RInt_scaled (snd x)); eexists; exact J.
      * intros x I; destruct (Each x I) as (? & J & _); symmetry; apply is_RInt_unique, RInt_scaled.
        eexists; exact J.
  - unfold followed; rewrite Rplus_assoc; apply Rplus_le_compat.
    + assert (Phi (v - m) - Phi (u - m) <= 1)
        by (pose proof (Phi_bounds (v - m)); pose proof (Phi_bounds (u - m)); lra).
      rewrite <- (Rmult_1_r (lost K * a)) at 2; apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|assumption].
    + rewrite <- total_scal, <- total_scal_r, <- total_plus; apply total_le; intros x I.
      destruct (Each x I) as (inside & J & Le); rewrite (is_RInt_unique _ _ _ _ J).
      apply (Rmult_le_compat_l (snd x)) in Le; [|apply N, I]; lra.
Qed.

Section Step.

Context {A : Type} (l : list A) (p q : A -> R) (L : loss).
Hypotheses (Dp : distribution l p) (Dq : distribution l q) (PL : proper L).

(** A step with a loss and normal noise beside it, and what follows after its outcome ... *)
Theorem step_then_rest K mu m a b :
  1 <= mass K -> proper K -> below_profile l p q (followed K mu) ->
  0 <= mu -> 0 <= m -> 0 <= a -> 0 <= b ->
  total l (fun y => followed L m (a * p y) (b * q y))
    <= followed (both K L) (sqrt (m * m + mu * mu)) a b.
Proof.
  intros HK PK B Hmu Hm Ha Hb.
  pose proof (both_proper L K PL PK) as PM.
  assert (Comm : forall m a b, 0 <= m -> 0 <= a -> 0 <= b -> followed (both L K) m a b <= followed (both K L) m a b)
    by (intros; apply followed_at_most; try assumption; [apply both_proper; assumption|apply both_comm]).
  assert (PmL := mass_nonneg L PL).
  assert (More : mass L <= mass (both L K)) by (rewrite mass_both; nra).
  (* without noise after it *)
  assert (Alone : forall a b, 0 <= a -> 0 <= b ->
            total l (fun y => profile L (a * p y) (b * q y)) <= followed (both L K) mu a b).
  { intros a' b' Ha' Hb'; rewrite followed_apart, Rplus_comm.
    rewrite (total_ext l _ (fun y => lost L * a' * p y
       + total (atoms L) (fun x => snd x * plus_part (a' * p y - b' * exp (- fst x) * q y))))
      by (intros y _; unfold profile, loss_term; f_equal; [ring|]; apply total_ext; intros x _; do 2 f_equal; ring).
    rewrite total_plus, total_scal, (proj2 Dp), total_swap; destruct PL as [Nl N]; apply Rplus_le_compat.
    - apply Rmult_le_compat_l; [apply Rmult_le_pos; assumption|exact HK].
    - apply total_le; intros x Ix; rewrite total_scal; apply Rmult_le_compat_l; [apply N, Ix|].
      apply B; [exact Ha'|apply shrunk_nonneg, Hb']. }
  destruct Hm as [Hm|<-].
  2:{ replace (0 * 0 + mu * mu) with (mu * mu) by ring; rewrite sqrt_square by exact Hmu.
      rewrite (total_ext l _ (fun y => profile L (a * p y) (b * q y))) by (intros; apply followed_by_nothing).
      eapply Rle_trans; [apply Alone|apply Comm]; assumption. }
  apply Rle_trans with (followed (both L K) (sqrt (m * m + mu * mu)) a b); [|apply Comm; auto using sqrt_pos].
  assert (Nothing : forall J s b, followed J s 0 b = 0 \/ b < 0).
  { intros J s b'; destruct (Rle_dec 0 b') as [Hb'|]; [left|right; lra]; unfold followed.
    rewrite Rmult_0_r, Rplus_0_l; apply total_zero; intros x _.
    rewrite profile_a0 by (apply shrunk_nonneg, Hb'); ring. }
  assert (All : forall J s a, 0 <= a -> followed J s a 0 = mass J * a).
  { intros J s a' Ha'; unfold followed, mass, finite_mass; rewrite Rmult_plus_distr_r, <- total_scal_r.
    f_equal; apply total_ext; intros x _; rewrite Rmult_0_l, profile_b0 by exact Ha'; ring. }
  destruct Ha as [Ha|<-].
  2:{ destruct (Nothing (both L K) (sqrt (m * m + mu * mu)) b) as [->|]; [|lra].
      right; apply total_zero; intros y Iy; rewrite Rmult_0_l.
      destruct (Nothing L m (b * q y)) as [E|E]; [exact E|].
      pose proof (Rmult_le_pos _ _ Hb (proj1 Dq y Iy)); lra. }
  destruct Hb as [Hb|<-].
  2:{ rewrite All by lra; rewrite (total_ext l _ (fun y => mass L * a * p y)).
      - rewrite total_scal, (proj2 Dp), Rmult_1_r; apply Rmult_le_compat_r; [lra|exact More].
      - intros y Iy; rewrite Rmult_0_l, All; [ring|apply Rmult_le_pos; [lra|apply Dp, Iy]]. }
  set (inner := fun y t => profile L (a * p y * phi (t - m)) (b * q y * phi t)).
  assert (Tails : 0 <= b * total (atoms (both L K)) (fun x => snd x * exp (- fst x))).
  { apply Rmult_le_pos; [lra|]; apply total_nonneg; intros x I; apply Rmult_le_pos; [apply PM, I|left; apply exp_pos]. }
  apply (beyond_every_window _ _ (mass (both L K) * a)
           (b * total (atoms (both L K)) (fun x => snd x * exp (- fst x))) m);
    [apply Rmult_le_pos; [apply mass_nonneg, PM|lra]|exact Tails|].
  intros u v Huv.
  assert (It : is_RInt (fun t => total l (fun y => inner y t)) u v (total l (fun y => RInt (inner y) u v))).
  { apply RInt_total; intros y _; eexists; apply is_RInt_profile. }
  set (rest := 1 - (Phi (v - m) - Phi (u - m))).
  assert (Prest : 0 <= rest)
    by (unfold rest; pose proof (Phi_bounds (v - m)); pose proof (Phi_bounds (u - m)); lra).
  assert (Psides : 0 <= 1 - Phi v + Phi u) by (pose proof (Phi_bounds v); pose proof (Phi_bounds u); lra).
  apply Rle_trans with (RInt (fun t => total l (fun y => inner y t)) u v + mass L * a * rest).
  { rewrite (is_RInt_unique _ _ _ _ It).
    replace (mass L * a * rest) with (mass L * a * rest * total l p) by (rewrite (proj2 Dp); ring).
    rewrite <- total_scal, <- total_plus; apply total_le; intros y Iy.
    pose proof (proj1 Dp y Iy); pose proof (proj1 Dq y Iy).
    eapply Rle_trans; [apply (followed_window L m _ _ u v PL Hm); try exact Huv; apply Rmult_le_pos; lra|].
    right; fold rest; unfold inner; ring. }
  assert (mass L * a * rest <= mass (both L K) * a * rest).
  { apply Rmult_le_compat_r; [exact Prest|]; apply Rmult_le_compat_r; lra. }
  assert (Inside : forall I, is_RInt (fun t => followed (both L K) mu (a * phi (t - m)) (b * phi t)) u v I ->
            RInt (fun t => total l (fun y => inner y t)) u v <= I).
  { intros I In; rewrite <- (is_RInt_unique _ _ _ _ In).
    apply RInt_le; [exact Huv|eexists; exact It|eexists; exact In|].
    intros t _; pose proof (phi_pos t); pose proof (phi_pos (t - m)); unfold inner.
    eapply Rle_trans; [right|apply Alone; apply Rmult_le_pos; lra].
    apply total_ext; intros y _; f_equal; ring. }
  destruct Hmu as [Hmu|<-].
  - destruct (followed_twice (both L K) mu m a b u v PM Hmu Hm Ha Hb Huv) as (I & In & Le).
    specialize (Inside I In); lra.
  - replace (m * m + 0 * 0) with (m * m) by ring; rewrite sqrt_square by lra.
    pose proof (followed_window (both L K) m a b u v PM Hm (Rlt_le _ _ Ha) (Rlt_le _ _ Hb) Huv) as [Low _].
    pose proof (is_RInt_profile (both L K) m a b u v) as In.
    rewrite (is_RInt_unique _ _ _ _ In) in Low.
    eapply Rle_trans; [apply Rplus_le_compat_r, Inside|].
    { eapply is_RInt_ext; [|exact In]; intros t _; symmetry; apply followed_by_nothing. }
    apply Rle_trans with (1 := Rplus_le_compat_r _ _ _ Low).
    pose proof (Rmult_le_pos _ _ Tails Psides); lra.
Qed.

(** ... and a Gaussian one. *)
Theorem gaussian_then_rest mu m a b :
  below_profile l p q (gaussian_profile mu) -> 0 <= mu -> 0 <= m -> 0 <= a -> 0 <= b ->
  total l (fun y => followed L m (a * p y) (b * q y)) <= followed L (sqrt (m * m + mu * mu)) a b.
Proof.
  intros B Hmu Hm Ha Hb; unfold followed; rewrite total_plus; destruct PL as [_ N].
  apply Rplus_le_compat.
  - rewrite (total_ext l _ (fun y => lost L * a * p y)) by (intros; ring).
    rewrite total_scal, (proj2 Dp); lra.
  - rewrite total_swap; apply total_le; intros xm I; rewrite total_scal.
    apply Rmult_le_compat_l; [apply N, I|].
    eapply Rle_trans; [right|apply (profile_step l p q mu Dp Dq B m a (b * exp (- fst xm)));
      auto using shrunk_nonneg].
    apply total_ext; intros y _; f_equal; ring.
Qed.

End Step.

(** ** A filter of both *)

Section Filter.

Context {A I : Type} (same : forall i j : I, {i = j} + {i <> j}).
Context (outcomes : list A -> list A) (law law' : list A -> A -> R).
Hypothesis laws : forall h, distribution (outcomes h) (law h).
Hypothesis laws' : forall h, distribution (outcomes h) (law' h).
Variable step : list A -> option I.
Hypothesis idle : forall h,
  step h = None -> forall y, In y (outcomes h) -> law h y = law' h y.

(** A step has a loss, and normal noise beside it with a mu^2. *)
Variables (K : I -> loss) (mu_squared : I -> R) (steps : list I) (T : nat).
Hypothesis steps_ok : forall i, In i steps -> proper (K i) /\ covers (K i) /\ 0 <= mu_squared i.
Hypothesis dominated : forall h i, step h = Some i -> In i steps ->
  below_profile (outcomes h) (law h) (law' h) (followed (K i) (sqrt (mu_squared i))).
Hypothesis within : forall h, In h (transcripts outcomes T) ->
  exists rest, Permutation (taken step h ++ rest) steps.

(** The losses of steps, followed by normal noise of the others' summed mu^2. *)
Definition together (l : list I) : R -> R -> R :=
  followed (all_of K l) (sqrt (total l mu_squared)).

Lemma all_ok l : incl l steps -> proper (all_of K l) /\ covers (all_of K l) /\ 0 <= total l mu_squared.
Proof.
  intros Hl; split; [|split].
  - apply all_of_proper; intros i I'; apply steps_ok, Hl, I'.
  - apply covers_all_of; intros i I'; split; apply steps_ok, Hl, I'.
  - apply total_nonneg; intros i I'; apply steps_ok, Hl, I'.
Qed.

Theorem loss_filter :
  below_profile (transcripts outcomes T) (run law) (run law') (together steps).
Proof.
  apply (steps_filter same outcomes law law' laws (fun h => proj1 (laws' h)) step idle steps T within).
  - intros l a b Hl Ha Hb; destruct (all_ok l Hl) as (P & C & _).
    eapply Rle_trans; [apply C; assumption|apply followed_more; assumption].
  - intros l c a b Hc Ha Hb; apply followed_scal; assumption.
  - intros l l' a b P Hl Ha Hb; unfold together.
    assert (Hl' : incl l' steps)
      by (intros i I'; apply Hl, Permutation_in with (1 := Permutation_sym P), I').
    replace (total l' mu_squared) with (total l mu_squared)
      by (clear - P; induction P; simpl; lra).
    apply followed_at_most; try assumption; try apply all_ok; try assumption; try apply sqrt_pos.
    apply alike_at_most, all_of_permutation, P.
  - intros h i l a b E Hl Ha Hb; unfold together; cbn [all_of total].
    destruct (all_ok l (fun j J => Hl j (or_intror J))) as (P & C & M).
    destruct (steps_ok i (Hl i (or_introl eq_refl))) as (Pi & Ci & Mi).
    eapply Rle_trans; [apply (step_then_rest (outcomes h) (law h) (law' h) _ (laws h) (laws' h) P
                                (K i) _ _ a b (covers_mass _ Ci) Pi (dominated h i E (Hl i (or_introl eq_refl))));
                       try assumption; apply sqrt_pos|].
    rewrite !sqrt_sqrt, Rplus_comm by assumption; lra.
Qed.

End Filter.
