(** int phi(t) Phi(al + be t) dt = Phi(al / sqrt(1 + be^2)), as two inequalities over finite
    windows: a normal variable plus a normal threshold is a normal variable. It is the one fact on
    integrals that the composition of Gaussian mechanisms rests on.

    The difference of both sides is increasing in [al] (complete the square and differentiate under
    the integral sign) and vanishes at -infinity; the other inequality is its mirror image. *)

From Coq Require Import Reals List Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Domination.
Import ListNotations.
Open Scope R_scope.

(** ** The standard normal law *)

Definition phi (x : R) : R := bell x / root_two_pi.

Lemma phi_pos x : 0 < phi x.
Proof. apply Rdiv_lt_0_compat; [apply bell_pos|apply root_two_pi_pos]. Qed.

Lemma Phi_cdf x : Phi x = cdf 0 1 (Finite x).
Proof. simpl; f_equal; field. Qed.

Lemma Phi_le x y : x <= y -> Phi x <= Phi y.
Proof. intros; rewrite !Phi_cdf; apply cdf_le; [lra|assumption]. Qed.

Lemma Phi_bounds x : 0 <= Phi x <= 1.
Proof.
  rewrite Phi_cdf; split.
  - apply (cdf_le 0 1 Rlt_0_1 m_infty (Finite x)); exact I.
  - apply (cdf_le 0 1 Rlt_0_1 (Finite x) p_infty); exact I.
Qed.

Lemma Phi_small e : 0 < e -> exists w, forall x, x < w -> Phi x < e.
Proof.
  intros He; pose proof is_lim_Phi_m as L; apply is_lim_spec in L.
  destruct (L (mkposreal e He)) as [w Hw]; exists w; intros x Hx; specialize (Hw x Hx).
  simpl in Hw; rewrite Rminus_0_r, Rabs_right in Hw; [exact Hw|].
  apply Rle_ge, Phi_bounds.
Qed.

Lemma ex_derive_Phi x : ex_derive Phi x.
Proof. eexists; apply is_derive_Phi. Qed.

Lemma ex_derive_phi x : ex_derive phi x.
Proof. unfold phi, bell; auto_derive; exact I. Qed.

Lemma continuous_phi x : continuous phi x.
Proof. apply (ex_derive_continuous (V := R_NormedModule)), ex_derive_phi. Qed.

Lemma is_derive_Phi_lin a b x : is_derive (fun t => Phi (a + b * t)) x (b * phi (a + b * x)).
Proof.
  apply (is_derive_comp Phi (fun t => a + b * t) x (phi (a + b * x)) b (is_derive_Phi _)).
  auto_derive; [exact I|ring].
Qed.

Lemma is_RInt_phi_lin a b u v :
  is_RInt (fun t => b * phi (a + b * t)) u v (Phi (a + b * v) - Phi (a + b * u)).
Proof.
  apply (is_RInt_derive (fun t => Phi (a + b * t))).
  - intros; apply is_derive_Phi_lin.
  - intros t _; apply (ex_derive_continuous (V := R_NormedModule)).
    unfold phi, bell; auto_derive; exact I.
Qed.

(** ** The integral over a window *)

Lemma continuous_product a b x : continuous (fun t => phi t * Phi (a + b * t)) x.
Proof.
  apply (continuous_mult phi (fun t => Phi (a + b * t))); [apply continuous_phi|].
  apply (ex_derive_continuous (V := R_NormedModule)); eexists; apply is_derive_Phi_lin.
Qed.

Lemma ex_RInt_product a b u v : ex_RInt (fun t => phi t * Phi (a + b * t)) u v.
Proof.
  apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros; apply continuous_product.
Qed.

Definition window (be u v al : R) : R := RInt (fun t => phi t * Phi (al + be * t)) u v.

Section Identity.

Variables be u v : R.
Hypothesis Huv : u <= v.

Definition spread : R := sqrt (1 + be * be).

Lemma spread_pos : 0 < spread.
Proof. apply sqrt_lt_R0; nra. Qed.

Lemma spread_sq : spread * spread = 1 + be * be.
Proof. apply sqrt_sqrt; nra. Qed.

(** Completing the square. *)
Lemma phi_product al t :
  phi t * phi (al + be * t) = phi (al / spread) * phi (al * be / spread + spread * t).
Proof.
  pose proof spread_pos; pose proof spread_sq; pose proof root_two_pi_pos; unfold phi, bell.
  replace (exp (- (t * t) / 2) / root_two_pi
           * (exp (- ((al + be * t) * (al + be * t)) / 2) / root_two_pi))
    with (exp (- (t * t) / 2) * exp (- ((al + be * t) * (al + be * t)) / 2)
          / (root_two_pi * root_two_pi)) by (field; lra).
  match goal with |- _ = ?x / root_two_pi * (?y / root_two_pi) =>
    replace (x / root_two_pi * (y / root_two_pi)) with (x * y / (root_two_pi * root_two_pi))
      by (field; lra) end.
  rewrite <- !exp_plus; do 2 f_equal.
  assert (E : (al * be / spread + spread * t) * (al * be / spread + spread * t)
              + al / spread * (al / spread)
              = t * t + (al + be * t) * (al + be * t)).
  { replace ((al * be / spread + spread * t) * (al * be / spread + spread * t)
              + al / spread * (al / spread))
      with (al * al * (1 + be * be) / (spread * spread) + 2 * al * be * t
            + spread * spread * (t * t)) by (field; lra).
    rewrite <- H0 at 1; rewrite H0; field_simplify_eq; [|nra]; ring. }
  lra.
Qed.

Lemma is_derive_window al :
  is_derive (window be u v) al
    (phi (al / spread) / spread
     * (Phi (al * be / spread + spread * v) - Phi (al * be / spread + spread * u))).
Proof.
  pose proof spread_pos.
  assert (D : forall y t, is_derive (fun z => phi t * Phi (z + be * t)) y
                            (phi t * phi (y + be * t))).
  { intros y t; apply is_derive_scal.
    replace (phi (y + be * t)) with (1 * phi (y + be * t)) by ring.
    apply (is_derive_comp Phi (fun z => z + be * t) y (phi (y + be * t)) 1 (is_derive_Phi _)).
    auto_derive; [exact I|ring]. }
  replace (phi (al / spread) / spread
     * (Phi (al * be / spread + spread * v) - Phi (al * be / spread + spread * u)))
    with (RInt (fun t => Derive (fun z => phi t * Phi (z + be * t)) al) u v).
  - apply (is_derive_RInt_param (fun z t => phi t * Phi (z + be * t)) u v al).
    + apply filter_forall; intros y t _; eexists; apply D.
    + intros t _.
      apply continuity_2d_pt_ext with (f := fun y w => phi w * phi (y + be * w)).
      { intros y w; symmetry; apply is_derive_unique, D. }
      assert (Cp : forall y, continuity_pt phi y)
        by (intros y; apply continuity_pt_filterlim, continuous_phi).
      apply continuity_2d_pt_mult.
      * apply (continuity_1d_2d_pt_comp phi (fun _ w => w)); [apply Cp|apply continuity_2d_pt_id2].
      * apply (continuity_1d_2d_pt_comp phi (fun y w => y + be * w)); [apply Cp|].
        apply continuity_2d_pt_plus; [apply continuity_2d_pt_id1|].
        apply continuity_2d_pt_mult; [apply continuity_2d_pt_const|apply continuity_2d_pt_id2].
    + apply filter_forall; intros y; apply ex_RInt_product.
  - apply is_RInt_unique.
    apply is_RInt_ext with (f := fun t => scal (phi (al / spread) / spread)
                                   (spread * phi (al * be / spread + spread * t))).
    + intros t _; transitivity (phi t * phi (al + be * t));
        [|symmetry; apply is_derive_unique, D].
      rewrite phi_product; unfold scal; simpl; unfold mult; simpl; field; lra.
    + apply (is_RInt_scal (V := R_NormedModule)), is_RInt_phi_lin.
Qed.

Lemma window_far w : window be u v w <= Phi (w + Rabs be * (Rabs u + Rabs v)).
Proof.
  set (K := Rabs be * (Rabs u + Rabs v)).
  assert (I1 : is_RInt (fun t => scal (Phi (w + K)) (1 * phi (0 + 1 * t))) u v
                 (scal (Phi (w + K)) (Phi (0 + 1 * v) - Phi (0 + 1 * u))))
    by apply (is_RInt_scal (V := R_NormedModule)), is_RInt_phi_lin.
  unfold window; transitivity (scal (Phi (w + K)) (Phi (0 + 1 * v) - Phi (0 + 1 * u))).
  - rewrite <- (is_RInt_unique _ _ _ _ I1); apply RInt_le; [exact Huv|apply ex_RInt_product| |].
    + eexists; exact I1.
    + intros t Ht; unfold scal; simpl; unfold mult; simpl; rewrite Rmult_1_l, Rplus_0_l, Rmult_1_l.
      rewrite Rmult_comm; apply Rmult_le_compat_r; [left; apply phi_pos|apply Phi_le].
      apply Rplus_le_compat_l; unfold K.
      eapply Rle_trans; [apply Rle_abs|]; rewrite Rabs_mult.
      apply Rmult_le_compat_l; [apply Rabs_pos|].
      unfold Rabs; destruct (Rcase_abs t), (Rcase_abs u), (Rcase_abs v); lra.
  - unfold scal; simpl; unfold mult; simpl.
    pose proof (Phi_bounds (w + K)); pose proof (Phi_bounds (0 + 1 * v));
      pose proof (Phi_bounds (0 + 1 * u)); nra.
Qed.

Theorem window_upper al : window be u v al <= Phi (al / spread).
Proof.
  pose proof spread_pos as Hs.
  assert (Mono : forall w, w <= al ->
            Phi (w / spread) - window be u v w <= Phi (al / spread) - window be u v al).
  { intros w Hw.
    apply (le_of_derive (fun y => Phi (y / spread) - window be u v y)
      (fun y => phi (y / spread) / spread - phi (y / spread) / spread
         * (Phi (y * be / spread + spread * v) - Phi (y * be / spread + spread * u)))).
    - exact Hw.
    - intros y; apply (is_derive_minus (V := R_NormedModule)); [|apply is_derive_window].
      replace (phi (y / spread) / spread) with (/ spread * phi (y / spread)) by (field; lra).
      apply (is_derive_comp Phi (fun z => z / spread) y (phi (y / spread)) (/ spread)
               (is_derive_Phi _)).
      auto_derive; [exact I|field; lra].
    - intros y _.
      assert (0 < phi (y / spread) / spread)
        by (apply Rdiv_lt_0_compat; [apply phi_pos|exact Hs]).
      pose proof (Phi_bounds (y * be / spread + spread * v)).
      pose proof (Phi_bounds (y * be / spread + spread * u)); nra. }
  apply Rnot_lt_le; intros Lt.
  destruct (Phi_small (window be u v al - Phi (al / spread)) ltac:(lra)) as [w Hw].
  set (K := Rabs be * (Rabs u + Rabs v)).
  set (w0 := Rmin al (w - K) - 1).
  assert (w0 <= al) by (unfold w0; pose proof (Rmin_l al (w - K)); lra).
  assert (w0 + K < w) by (unfold w0; pose proof (Rmin_r al (w - K)); lra).
  specialize (Mono w0 ltac:(assumption)); specialize (Hw (w0 + K) ltac:(assumption)).
  pose proof (window_far w0) as F; fold K in F; pose proof (Phi_bounds (w0 / spread)); lra.
Qed.

End Identity.

Theorem window_lower be u v al :
  u <= v -> Phi (al / spread be) - (1 - Phi v) - Phi u <= window be u v al.
Proof.
  intros Huv; pose proof (window_upper (- be) u v Huv (- al)) as U.
  assert (Es : spread (- be) = spread be) by (unfold spread; f_equal; ring).
  rewrite Es in U; replace (- al / spread be) with (- (al / spread be)) in U.
  2:{ field; pose proof (spread_pos be); lra. }
  rewrite Phi_opp in U.
  assert (E : window be u v al = (Phi v - Phi u) - window (- be) u v (- al)); [|lra].
  pose proof (is_RInt_phi_lin 0 1 u v) as I1; rewrite !Rplus_0_l, !Rmult_1_l in I1.
  unfold window; rewrite <- (is_RInt_unique _ _ _ _ I1).
  rewrite <- (RInt_minus (V := R_CompleteNormedModule));
    [|eexists; exact I1|apply ex_RInt_product].
  apply RInt_ext; intros t _; unfold minus, plus, opp; simpl.
  replace (- al + - be * t) with (- (al + be * t)) by ring.
  rewrite Phi_opp, Rplus_0_l, !Rmult_1_l; ring.
Qed.
