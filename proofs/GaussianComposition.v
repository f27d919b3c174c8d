(** Adaptive composition of Gaussian mechanisms, rounded in any way: the exact delta at
    mu^2 = sum of mu_t^2 (Dong, Roth and Su 2022, Corollary 3.3), for every eps at once.

    [gaussian_profile mu a b] is the excess of N(mu, 1) over N(0, 1) at the weights a, b. If a
    release lies below the profile of mu and whatever follows below that of m, both together lie
    below that of sqrt(m^2 + mu^2) ([profile_step]): the profile of m is an integral over t of
    excesses at the weights (a phi(t - m), b phi(t)); sum and integral change places, and what is
    left is the integral of GaussianConvolution.v. *)

From Coq Require Import Reals List Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Domination
  GaussianConvolution Sensitivity Descent.
Import ListNotations.
Open Scope R_scope.

(** int (a phi(t - mu) - b phi(t))^+ dt; (a - b)^+ at mu = 0. *)
Definition gaussian_profile (mu a b : R) : R :=
  if Rle_dec mu 0 then plus_part (a - b)
  else if Rle_dec a 0 then 0
  else if Rle_dec b 0 then a
  else a * Phi (mu / 2 - ln (b / a) / mu) - b * Phi (- (mu / 2) - ln (b / a) / mu).

Lemma profile_zero mu a b : mu <= 0 -> gaussian_profile mu a b = plus_part (a - b).
Proof. intros; unfold gaussian_profile; destruct (Rle_dec mu 0); lra. Qed.

Lemma profile_a0 mu b : 0 <= b -> gaussian_profile mu 0 b = 0.
Proof.
  intros; unfold gaussian_profile; destruct (Rle_dec mu 0); [apply plus_part_0; lra|].
  destruct (Rle_dec 0 0); lra.
Qed.

Lemma profile_b0 mu a : 0 <= a -> gaussian_profile mu a 0 = a.
Proof.
  intros; unfold gaussian_profile; destruct (Rle_dec mu 0); [rewrite plus_part_id; lra|].
  destruct (Rle_dec a 0); [lra|]; destruct (Rle_dec 0 0); lra.
Qed.

Lemma profile_pos mu a b : 0 < mu -> 0 < a -> 0 < b ->
  gaussian_profile mu a b
    = a * Phi (mu / 2 - ln (b / a) / mu) - b * Phi (- (mu / 2) - ln (b / a) / mu).
Proof.
  intros; unfold gaussian_profile; destruct (Rle_dec mu 0); [lra|].
  destruct (Rle_dec a 0); [lra|]; destruct (Rle_dec b 0); lra.
Qed.

Lemma profile_delta mu a b : 0 < mu -> 0 < a -> 0 < b ->
  gaussian_profile mu a b = a * gaussian_delta mu (ln (b / a)).
Proof.
  intros Hm Ha Hb; rewrite profile_pos by assumption; unfold gaussian_delta.
  rewrite exp_ln by (apply Rdiv_lt_0_compat; assumption); field; lra.
Qed.

Lemma profile_scal mu c a b : 0 <= c -> 0 <= a -> 0 <= b ->
  gaussian_profile mu (c * a) (c * b) = c * gaussian_profile mu a b.
Proof.
  intros [Hc|<-] Ha Hb; [|rewrite !Rmult_0_l, profile_a0; lra].
  destruct (Rle_dec mu 0) as [Hm|Hm].
  { rewrite !profile_zero by exact Hm; rewrite <- plus_part_scal by lra; f_equal; ring. }
  destruct Ha as [Ha|<-]; [|rewrite Rmult_0_r, !profile_a0 by nra; ring].
  destruct Hb as [Hb|<-]; [|rewrite Rmult_0_r, !profile_b0 by nra; ring].
  rewrite !profile_pos by nra.
  replace (c * b / (c * a)) with (b / a) by (field; lra); ring.
Qed.

(** ** One rounded Gaussian *)

(** With the laws exchanged. *)
Lemma profile_turned mu a b : 0 <= a -> 0 <= b ->
  a - b + gaussian_profile mu b a = gaussian_profile mu a b.
Proof.
  intros Ha Hb; destruct (Rle_dec mu 0) as [Hm|Hm].
  { rewrite !profile_zero by exact Hm; unfold plus_part, Rmax.
    destruct (Rle_dec 0 (b - a)), (Rle_dec 0 (a - b)); lra. }
  destruct Ha as [Ha|<-]; [|rewrite profile_a0, profile_b0; lra].
  destruct Hb as [Hb|<-]; [|rewrite profile_a0, profile_b0; lra].
  rewrite !profile_pos by lra.
  assert (E : ln (a / b) = - ln (b / a)).
  { rewrite <- ln_Rinv by (apply Rdiv_lt_0_compat; assumption); f_equal; field; lra. }
  rewrite E.
  replace (mu / 2 - - ln (b / a) / mu) with (- (- (mu / 2) - ln (b / a) / mu)) by (field; lra).
  replace (- (mu / 2) - - ln (b / a) / mu) with (- (mu / 2 - ln (b / a) / mu)) by (field; lra).
  rewrite !Phi_opp; ring.
Qed.

Theorem rounded_below_profile m1 m0 s cuts :
  0 < s -> ascending m_infty cuts ->
  below_profile (cells m_infty cuts) (rounded m1 s) (rounded m0 s)
    (gaussian_profile (Rabs ((m1 - m0) / s))).
Proof.
  intros Hs Hc a b Ha Hb.
  pose proof (rounded_distribution m1 s cuts Hs Hc) as D1.
  pose proof (rounded_distribution m0 s cuts Hs Hc) as D0.
  destruct Ha as [Ha|<-]; [|rewrite excess_zero, profile_a0; [lra|exact Hb|apply D0|exact Hb]].
  destruct Hb as [Hb|<-].
  2:{ rewrite profile_b0 by lra; apply excess_le_mass; [exact D1|apply D0|lra|lra]. }
  destruct (Req_dec m1 m0) as [->|N].
  - rewrite excess_diag by exact D0; rewrite profile_zero; [lra|].
    replace ((m0 - m0) / s) with 0 by (field; lra); rewrite Rabs_R0; lra.
  - rewrite profile_delta; [|apply Rabs_pos_lt, shift_neq_0; assumption|exact Ha|exact Hb].
    rewrite excess_hockey_stick by exact Ha; apply Rmult_le_compat_l; [lra|].
    destruct (hockey_stick_attained (cells m_infty cuts) (rounded m1 s) (rounded m0 s) (b / a))
      as [event <-].
    pose proof (gaussian_rounded_delta m1 m0 s (ln (b / a)) Hs N cuts event Hc) as G.
    rewrite exp_ln in G by (apply Rdiv_lt_0_compat; assumption).
    unfold shift in G; lra.
Qed.

Lemma profile_ge mu a b : 0 <= a -> 0 <= b -> plus_part (a - b) <= gaussian_profile mu a b.
Proof.
  intros Ha Hb; destruct (Rle_dec mu 0) as [Hm|Hm]; [rewrite profile_zero; lra|].
  pose proof (rounded_below_profile mu 0 1 [] Rlt_0_1 I a b Ha Hb) as G.
  replace (Rabs ((mu - 0) / 1)) with mu in G by (rewrite Rabs_right; field_simplify; lra).
  unfold excess in G; simpl in G; unfold rounded, increment in G; simpl in G.
  replace (a * (1 - 0) - b * (1 - 0)) with (a - b) in G by ring; lra.
Qed.

(** ** The profile as an integral *)

Definition weighted (m a b t : R) : R := a * phi (t - m) - b * phi t.

Lemma is_RInt_weighted m a b u v :
  is_RInt (weighted m a b) u v (a * (Phi (v - m) - Phi (u - m)) - b * (Phi v - Phi u)).
Proof.
  replace (a * (Phi (v - m) - Phi (u - m)) - b * (Phi v - Phi u))
    with (minus (a * Phi (v - m) - b * Phi v) (a * Phi (u - m) - b * Phi u))
    by (unfold minus, plus, opp; simpl; ring).
  apply (is_RInt_derive (fun t => a * Phi (t - m) - b * Phi t)).
  - intros t _; apply (is_derive_minus (V := R_NormedModule)); apply is_derive_scal.
    + replace (phi (t - m)) with (1 * phi (t - m)) by ring.
      apply (is_derive_comp Phi (fun z => z - m) t (phi (t - m)) 1 (is_derive_Phi _)).
      auto_derive; [exact I|ring].
    + apply is_derive_Phi.
  - intros t _; apply (ex_derive_continuous (V := R_NormedModule)).
    unfold weighted, phi, bell; auto_derive; exact I.
Qed.

Lemma plus_part_abs x : plus_part x = / 2 * (x + Rabs x).
Proof. unfold plus_part, Rmax, Rabs; destruct (Rle_dec 0 x), (Rcase_abs x); lra. Qed.

Lemma continuous_weighted_part m a b x : continuous (fun t => plus_part (weighted m a b t)) x.
Proof.
  apply continuous_ext with
    (f := fun t => scal (/ 2) (plus (weighted m a b t) (Rabs (weighted m a b t)))).
  { intros t; rewrite plus_part_abs; reflexivity. }
  assert (C : continuous (weighted m a b) x).
  { apply (ex_derive_continuous (V := R_NormedModule)).
    unfold weighted, phi, bell; auto_derive; exact I. }
  apply (continuous_scal_r (V := R_NormedModule)), (continuous_plus (V := R_NormedModule));
    [exact C|].
  apply (continuous_comp (weighted m a b) Rabs); [exact C|apply continuous_Rabs].
Qed.

Lemma ex_RInt_weighted_part m a b u v : ex_RInt (fun t => plus_part (weighted m a b t)) u v.
Proof.
  apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros.
  apply continuous_weighted_part.
Qed.

Lemma profile_integral m a b u v :
  0 < m -> 0 <= a -> 0 <= b -> u <= v ->
  gaussian_profile m a b
    <= RInt (fun t => plus_part (weighted m a b t)) u v + a * (1 - (Phi (v - m) - Phi (u - m))).
Proof.
  intros Hm Ha Hb Huv.
  assert (J : forall c, u <= c <= v ->
            a * (Phi (v - m) - Phi (c - m)) - b * (Phi v - Phi c)
              <= RInt (fun t => plus_part (weighted m a b t)) u v).
  { intros c Hc.
    rewrite <- (RInt_Chasles (V := R_CompleteNormedModule) _ u c v) by apply ex_RInt_weighted_part.
    assert (0 <= RInt (fun t => plus_part (weighted m a b t)) u c).
    { apply RInt_ge_0; [lra|apply ex_RInt_weighted_part|intros; apply plus_part_nonneg]. }
    assert (a * (Phi (v - m) - Phi (c - m)) - b * (Phi v - Phi c)
            <= RInt (fun t => plus_part (weighted m a b t)) c v).
    { rewrite <- (is_RInt_unique _ _ _ _ (is_RInt_weighted m a b c v)).
      apply RInt_le; [lra|eexists; apply is_RInt_weighted|apply ex_RInt_weighted_part|].
      intros; apply plus_part_ge. }
    unfold plus; simpl; lra. }
  destruct Ha as [Ha|<-].
  2:{ rewrite profile_a0 by exact Hb; specialize (J v ltac:(lra)); lra. }
  pose proof (Phi_bounds (v - m)); pose proof (Phi_bounds (u - m)).
  destruct Hb as [Hb|<-].
  2:{ rewrite profile_b0 by lra; specialize (J u ltac:(lra)); lra. }
  rewrite profile_pos by assumption.
  set (c := ln (b / a) / m + m / 2).
  replace (m / 2 - ln (b / a) / m) with (- (c - m)) by (unfold c; field; lra).
  replace (- (m / 2) - ln (b / a) / m) with (- c) by (unfold c; field; lra).
  rewrite !Phi_opp; pose proof (Phi_bounds v); pose proof (Phi_bounds u).
  pose proof (Phi_bounds c); pose proof (Phi_bounds (c - m)).
  destruct (Rle_dec c u) as [Lu|Lu]; [|destruct (Rle_dec v c) as [Lv|Lv]].
  - specialize (J u ltac:(lra)); pose proof (Phi_le c u Lu).
    assert (0 <= b * (1 - Phi v + (Phi u - Phi c))) by (apply Rmult_le_pos; lra).
    assert (0 <= a * Phi (c - m)) by (apply Rmult_le_pos; lra); nra.
  - specialize (J v ltac:(lra)); pose proof (Phi_le (v - m) (c - m) ltac:(lra)).
    assert (0 <= b * (1 - Phi c)) by (apply Rmult_le_pos; lra).
    assert (0 <= a * (Phi (c - m) - Phi (v - m) + Phi (u - m))) by (apply Rmult_le_pos; lra); nra.
  - specialize (J c ltac:(lra)).
    assert (0 <= b * (1 - Phi v)) by (apply Rmult_le_pos; lra).
    assert (0 <= a * Phi (u - m)) by (apply Rmult_le_pos; lra); nra.
Qed.

(** ** One step *)

Lemma RInt_total {A} (l : list A) (f : A -> R -> R) u v :
  (forall y, In y l -> ex_RInt (f y) u v) ->
  is_RInt (fun t => total l (fun y => f y t)) u v (total l (fun y => RInt (f y) u v)).
Proof.
  induction l as [|y l IH]; simpl; intros H.
  - pose proof (is_RInt_const (V := R_NormedModule) u v 0) as C.
    unfold scal in C; simpl in C; unfold mult in C; simpl in C; rewrite Rmult_0_r in C; exact C.
  - apply (is_RInt_plus (V := R_NormedModule)).
    + apply (RInt_correct (V := R_CompleteNormedModule)); auto.
    + apply IH; auto.
Qed.

(** The profile of normal noise at the weights of other normal noise, over a window. *)
Lemma profile_window mu m a b u v :
  0 < mu -> 0 < m -> 0 < a -> 0 < b -> u <= v -> exists inside,
  is_RInt (fun t => gaussian_profile mu (a * phi (t - m)) (b * phi t)) u v inside /\
  inside <= gaussian_profile (sqrt (m * m + mu * mu)) a b + b * ((1 - Phi v) + Phi u).
Proof.
  intros Hmu Hm Ha Hb Huv.
  set (k := ln (b / a)); set (S := sqrt (m * m + mu * mu)).
  assert (HS : 0 < S) by (apply sqrt_lt_R0; nra).
  assert (SS : S * S = m * m + mu * mu) by (apply sqrt_sqrt; nra).
  set (al1 := mu / 2 - k / mu + m * m / (2 * mu)).
  set (al0 := - (mu / 2) - k / mu - m * m / (2 * mu)).
  set (be := m / mu).
  assert (Esp : spread be = S / mu).
  { unfold spread, be; apply sqrt_lem_1.
    - nra.
    - apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, Hmu].
    - replace (S / mu * (S / mu)) with (S * S / (mu * mu)) by (field; lra).
      rewrite SS; field; lra. }
  assert (E1 : al1 / spread be = S / 2 - k / S).
  { rewrite Esp; unfold al1.
    replace (mu / 2 - k / mu + m * m / (2 * mu)) with ((m * m + mu * mu) / (2 * mu) - k / mu)
      by (field; lra).
    rewrite <- SS; field; lra. }
  assert (E0 : al0 / spread be = - (S / 2) - k / S).
  { rewrite Esp; unfold al0.
    replace (- (mu / 2) - k / mu - m * m / (2 * mu))
      with (- ((m * m + mu * mu) / (2 * mu)) - k / mu)
      by (field; lra).
    rewrite <- SS; field; lra. }
  assert (Sh : is_RInt (fun t => phi (t - m) * Phi (al1 + be * (t - m))) u v
                 (window be (u - m) (v - m) al1)).
  { apply is_RInt_ext with
      (f := fun t => scal 1 (phi (1 * t + - m) * Phi (al1 + be * (1 * t + - m)))).
    - intros t _; unfold scal; simpl; unfold mult; simpl; rewrite Rmult_1_l.
      replace (1 * t + - m) with (t - m) by ring; reflexivity.
    - apply (is_RInt_comp_lin (V := R_NormedModule)
               (fun t => phi t * Phi (al1 + be * t)) 1 (- m) u v).
      replace (1 * u + - m) with (u - m) by ring; replace (1 * v + - m) with (v - m) by ring.
      apply (RInt_correct (V := R_CompleteNormedModule)), ex_RInt_product. }
  assert (Un : is_RInt (fun t => phi t * Phi (al0 + be * t)) u v (window be u v al0))
    by apply (RInt_correct (V := R_CompleteNormedModule)), ex_RInt_product.
  pose proof (is_RInt_minus (V := R_NormedModule) _ _ _ _ _ _
    (is_RInt_scal (V := R_NormedModule) _ _ _ a _ Sh)
    (is_RInt_scal (V := R_NormedModule) _ _ _ b _ Un)) as IW.
  exists (a * window be (u - m) (v - m) al1 - b * window be u v al0); split.
  - apply is_RInt_ext with (2 := IW); intros t _.
    pose proof (phi_pos t) as P0; pose proof (phi_pos (t - m)) as P1.
    rewrite profile_pos by (auto; apply Rmult_lt_0_compat; assumption).
    assert (El : ln (b * phi t / (a * phi (t - m))) = k - m * t + m * m / 2).
    { unfold k; replace (b * phi t / (a * phi (t - m))) with (b / a * exp (- (m * t) + m * m / 2)).
      - rewrite ln_mult, ln_exp; [lra|apply Rdiv_lt_0_compat; assumption|apply exp_pos].
      - unfold phi, bell.
        replace (- (t * t) / 2) with (- ((t - m) * (t - m)) / 2 + (- (m * t) + m * m / 2)) by field.
        rewrite !exp_plus; pose proof root_two_pi_pos.
        pose proof (exp_pos (- ((t - m) * (t - m)) / 2)); field; repeat split; lra. }
    rewrite El; unfold minus, plus, opp, scal; simpl; unfold mult; simpl.
    replace (mu / 2 - (k - m * t + m * m / 2) / mu) with (al1 + be * (t - m))
      by (unfold al1, be; field; lra).
    replace (- (mu / 2) - (k - m * t + m * m / 2) / mu) with (al0 + be * t)
      by (unfold al0, be; field; lra).
    ring.
  - pose proof (window_upper be (u - m) (v - m) ltac:(lra) al1) as U1; rewrite E1 in U1.
    pose proof (window_lower be u v al0 Huv) as U0; rewrite E0 in U0.
    rewrite profile_pos by assumption; fold k; fold S.
    apply (Rmult_le_compat_l a) in U1; [|lra]; apply (Rmult_le_compat_l b) in U0; [|lra]; lra.
Qed.

Section Step.

Context {A : Type} (l : list A) (p q : A -> R) (mu : R).
Hypotheses (Dp : distribution l p) (Dq : distribution l q).
Hypothesis B : below_profile l p q (gaussian_profile mu).

Lemma profile_step_window m a b u v :
  0 < mu -> 0 < m -> 0 < a -> 0 < b -> u <= v ->
  total l (fun y => gaussian_profile m (a * p y) (b * q y))
    <= gaussian_profile (sqrt (m * m + mu * mu)) a b
       + a * (1 - (Phi (v - m) - Phi (u - m))) + b * ((1 - Phi v) + Phi u).
Proof.
  intros Hmu Hm Ha Hb Huv.
  transitivity (total l (fun y => RInt (fun t => plus_part (weighted m (a * p y) (b * q y) t)) u v
                                  + a * (1 - (Phi (v - m) - Phi (u - m))) * p y)).
  { apply total_le; intros y Iy.
    pose proof (proj1 Dp y Iy); pose proof (proj1 Dq y Iy).
    eapply Rle_trans; [apply (profile_integral m _ _ u v); auto; apply Rmult_le_pos; lra|].
    right; ring. }
  rewrite total_plus, total_scal, (proj2 Dp), Rmult_1_r.
  pose proof (RInt_total l (fun y t => plus_part (weighted m (a * p y) (b * q y) t)) u v
    (fun y _ => ex_RInt_weighted_part m (a * p y) (b * q y) u v)) as IT.
  rewrite <- (is_RInt_unique _ _ _ _ IT).
  destruct (profile_window mu m a b u v Hmu Hm Ha Hb Huv) as (inside & In & Le).
  apply Rle_trans with (inside + a * (1 - (Phi (v - m) - Phi (u - m)))); [|lra].
  apply Rplus_le_compat_r; rewrite <- (is_RInt_unique _ _ _ _ In).
  apply RInt_le; [exact Huv|eexists; exact IT|eexists; exact In|].
  intros t _; pose proof (phi_pos t) as P0; pose proof (phi_pos (t - m)) as P1.
  transitivity (excess l p q (a * phi (t - m)) (b * phi t)).
  { right; apply total_ext; intros y _; unfold weighted; f_equal; ring. }
  apply B; apply Rmult_le_pos; lra.
Qed.

(** What follows at cost [m] after a release at cost [mu]: sqrt(m^2 + mu^2) at most. *)
Theorem profile_step m a b :
  0 <= mu -> 0 <= m -> 0 <= a -> 0 <= b ->
  total l (fun y => gaussian_profile m (a * p y) (b * q y))
    <= gaussian_profile (sqrt (m * m + mu * mu)) a b.
Proof.
  intros [Hmu|Zmu] Hm Ha Hb.
  2:{ (* equal laws *)
    assert (Epq : forall y, In y l -> q y = p y).
    { assert (Z : excess l p q 1 1 = 0).
      { pose proof (B 1 1 ltac:(lra) ltac:(lra)) as B11; rewrite profile_zero in B11 by lra.
        rewrite plus_part_0 in B11 by lra; pose proof (excess_nonneg l p q 1 1); lra. }
      pose proof (total_zero_inv l _ (fun y _ => plus_part_nonneg _) Z) as Z1; simpl in Z1.
      assert (Le : forall y, In y l -> 0 <= q y - p y).
      { intros y Iy; specialize (Z1 y Iy); pose proof (plus_part_ge (1 * p y - 1 * q y)); lra. }
      assert (T0 : total l (fun y => q y - p y) = 0)
        by (rewrite total_minus, (proj2 Dp), (proj2 Dq); ring).
      intros y Iy; pose proof (total_zero_inv l _ Le T0 y Iy); simpl in *; lra. }
    rewrite <- Zmu; replace (m * m + 0 * 0) with (m * m) by ring; rewrite sqrt_square by exact Hm.
    rewrite (total_ext l _ (fun y => gaussian_profile m a b * p y)).
    - rewrite total_scal, (proj2 Dp); lra.
    - intros y Iy; rewrite (Epq y Iy), Rmult_comm, (Rmult_comm b).
      rewrite profile_scal; [ring|apply Dp, Iy|exact Ha|exact Hb]. }
  destruct Hm as [Hm|<-].
  2:{ replace (0 * 0 + mu * mu) with (mu * mu) by ring; rewrite sqrt_square by lra.
      eapply Rle_trans; [|apply B; assumption]; right; apply total_ext; intros y _.
      apply profile_zero; lra. }
  destruct Ha as [Ha|<-].
  2:{ rewrite profile_a0 by exact Hb; right; apply total_zero; intros y Iy.
      rewrite Rmult_0_l; apply profile_a0, Rmult_le_pos; [exact Hb|apply Dq, Iy]. }
  destruct Hb as [Hb|<-].
  2:{ rewrite profile_b0 by lra; right.
      rewrite (total_ext l _ (fun y => a * p y)), total_scal, (proj2 Dp); [ring|].
      intros y Iy; rewrite Rmult_0_l; apply profile_b0, Rmult_le_pos; [lra|apply Dp, Iy]. }
  apply Rnot_lt_le; intros Lt.
  assert (Hg : 0 < total l (fun y => gaussian_profile m (a * p y) (b * q y))
               - gaussian_profile (sqrt (m * m + mu * mu)) a b) by lra.
  set (g := total l (fun y => gaussian_profile m (a * p y) (b * q y))
            - gaussian_profile (sqrt (m * m + mu * mu)) a b) in Hg.
  assert (He : 0 < g / (4 * (a + b))) by (apply Rdiv_lt_0_compat; lra).
  destruct (Phi_small _ He) as [w Hw].
  set (L := Rabs w + m + 1).
  assert (HL : - L + m < w /\ - L < w /\ 0 < L).
  { unfold L; unfold Rabs; destruct (Rcase_abs w); repeat split; lra. }
  pose proof (profile_step_window m a b (- L) L Hmu Hm Ha Hb ltac:(lra)) as W.
  pose proof (Hw (- L) ltac:(lra)) as W1; pose proof (Hw (- L + m) ltac:(lra)) as W2.
  pose proof (Hw (- L - m) ltac:(lra)) as W3.
  assert (R1 : Phi L = 1 - Phi (- L)) by (rewrite Phi_opp; ring).
  assert (R2 : Phi (L - m) = 1 - Phi (- L + m))
    by (replace (- L + m) with (- (L - m)) by ring; rewrite Phi_opp; ring).
  rewrite R1, R2 in W.
  assert (Hgab : g / (4 * (a + b)) * (a + b) = g / 4) by (field; lra).
  set (e := g / (4 * (a + b))) in *.
  pose proof (Phi_bounds (- L)); pose proof (Phi_bounds (- L + m)).
  pose proof (Phi_bounds (- L - m)).
  assert (a * (1 - (1 - Phi (- L + m) - Phi (- L - m))) <= a * (2 * e))
    by (apply Rmult_le_compat_l; lra).
  assert (b * (1 - (1 - Phi (- L)) + Phi (- L)) <= b * (2 * e)) by (apply Rmult_le_compat_l; lra).
  unfold g in *; lra.
Qed.

End Step.

(** ** Filter, vectors, ledger *)

(** Costs mu^2 may be chosen adaptively, as long as no transcript spends more than the budget. *)
Theorem gaussian_filter {A} (outcomes : list A -> list A) (law law' : list A -> A -> R)
  (cost : list A -> R) (budget : R) (T : nat) :
  (forall h, distribution (outcomes h) (law h)) ->
  (forall h, distribution (outcomes h) (law' h)) ->
  (forall h, 0 <= cost h) ->
  (forall h, below_profile (outcomes h) (law h) (law' h) (gaussian_profile (sqrt (cost h)))) ->
  (forall t h, (t <= T)%nat -> In h (transcripts outcomes t) -> spent cost h <= budget) ->
  below_profile (transcripts outcomes T) (run law) (run law') (gaussian_profile (sqrt budget)).
Proof.
  intros Dl Dl' Hc Hb HB.
  replace budget with (budget - spent cost []) by (simpl; ring).
  apply (adaptive_bound outcomes law law' (fun h => proj1 (Dl h)) (fun h => proj1 (Dl' h))
           (fun h => gaussian_profile (sqrt (budget - spent cost h)))).
  - intros h a b _ Ha Hb'; apply profile_ge; assumption.
  - intros t h a b Ht Ih Ha Hb'.
    destruct (Rle_dec (spent cost h + cost h) budget) as [Ok|No].
    + pose proof (profile_step (outcomes h) (law h) (law' h) (sqrt (cost h)) (Dl h) (Dl' h) (Hb h)
                    (sqrt (budget - (spent cost h + cost h))) a b
                    (sqrt_pos _) (sqrt_pos _) Ha Hb') as S.
      rewrite !sqrt_sqrt in S by (auto; lra).
      replace (budget - (spent cost h + cost h) + cost h) with (budget - spent cost h) in S by ring.
      exact S.
    + exfalso; destruct (outcomes h) as [|y ys] eqn:Eo.
      * destruct (Dl h) as [_ S]; rewrite Eo in S; simpl in S; lra.
      * specialize (HB (S t) (y :: h) ltac:(lia)); apply No; apply HB.
        simpl; apply in_flat_map; exists h; split; [exact Ih|].
        rewrite Eo; left; reflexivity.
Qed.

(** Below the profile of mu: (eps, delta)-DP with the exact delta of mu, for every eps. *)
Theorem profile_dp {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) mu eps :
  0 < mu -> (forall x y, adj x y -> below_profile l (M x) (M y) (gaussian_profile mu)) ->
  dp adj l M eps (gaussian_delta mu eps).
Proof.
  intros Hmu H; apply dp_hockey_stick; intros x y Axy; rewrite hockey_stick_excess.
  eapply Rle_trans; [apply (H x y Axy); [lra|left; apply exp_pos]|].
  rewrite profile_delta by (try apply exp_pos; lra).
  right; rewrite Rmult_1_l; f_equal.
  replace (exp eps / 1) with (exp eps) by field; apply ln_exp.
Qed.

(** d coordinates, one rounded Gaussian each: the shift in l2 is all that counts. *)
Theorem vector_gaussian_below_profile {D} (adj : D -> D -> Prop) (d : nat) (q : D -> euclidean d)
  (Delta s : R) (cuts : list (Rbar * Rbar) -> list R) :
  0 < s -> 0 <= Delta -> (forall h, ascending m_infty (cuts h)) -> sensitivity adj q Delta ->
  forall x y, adj x y ->
  below_profile (vector_outcomes d cuts) (noisy_vector d q s x) (noisy_vector d q s y)
    (gaussian_profile (Delta / s)).
Proof.
  intros Hs HD Hc Hq x y Axy; specialize (Hq x y Axy).
  assert (0 < / s) by (apply Rinv_0_lt_compat, Hs).
  set (mu := fun i => (q x i - q y i) / s).
  replace (Delta / s) with (sqrt (Delta / s * (Delta / s)))
    by (apply sqrt_square, Rmult_le_pos; lra).
  apply gaussian_filter with (cost := fun h => mu (length h) * mu (length h)).
  - intros h; apply rounded_distribution; auto.
  - intros h; apply rounded_distribution; auto.
  - intros h; apply Rle_0_sqr.
  - intros h; replace (sqrt (mu (length h) * mu (length h))) with (Rabs (mu (length h)))
      by (symmetry; apply sqrt_Rsqr_abs).
    apply rounded_below_profile; auto.
  - intros t h Ht Ih; rewrite (spent_by_round (fun i => mu i * mu i)).
    rewrite (transcripts_length _ _ _ Ih).
    transitivity (total (seq 0 d) (fun i => mu i * mu i)).
    { replace d with (t + (d - t))%nat by lia; rewrite seq_app, total_app.
      assert (0 <= total (seq (0 + t) (d - t)) (fun i => mu i * mu i)); [|lra].
      apply total_nonneg; intros; apply Rle_0_sqr. }
    assert (E : total (seq 0 d) (fun i => mu i * mu i)
                = inner (sub (q x) (q y)) (sub (q x) (q y)) * (/ s * / s)).
    { unfold mu, Rdiv.
      rewrite (total_ext _ _ (fun i => (q x i - q y i) * (q x i - q y i) * (/ s * / s)))
        by (intros; ring).
      rewrite total_scal_r; f_equal; apply total_ext; intros i _; unfold sub; simpl; ring. }
    rewrite E, <- norm_sq; unfold Rdiv.
    replace (Delta * / s * (Delta * / s)) with (Delta * Delta * (/ s * / s)) by ring.
    apply Rmult_le_compat_r; [nra|]; pose proof (norm_pos (sub (q x) (q y))); nra.
Qed.

(** T adaptive releases at mu_t: exactly as private as one Gaussian release at
    mu^2 = sum of mu_t^2 (Dong, Roth and Su 2022, Corollary 3.3), at every eps at once. *)
Theorem gaussian_ledger_dp {A D} (adj : D -> D -> Prop) (outcomes : list A -> list A)
  (law : D -> list A -> A -> R) (mu : nat -> R) (T : nat) (eps : R) :
  (forall d h, distribution (outcomes h) (law d h)) ->
  (forall t, 0 <= mu t) -> 0 < total (seq 0 T) (fun t => mu t * mu t) ->
  (forall h x y, adj x y ->
     below_profile (outcomes h) (law x h) (law y h) (gaussian_profile (mu (length h)))) ->
  dp adj (transcripts outcomes T) (fun d => run (law d)) eps
    (gaussian_delta (sqrt (total (seq 0 T) (fun t => mu t * mu t))) eps).
Proof.
  intros Dl Hmu Hpos H; apply profile_dp; [apply sqrt_lt_R0, Hpos|]; intros x y Axy.
  apply gaussian_filter with (cost := fun h => mu (length h) * mu (length h)); auto.
  - intros h; apply Rle_0_sqr.
  - intros h; rewrite sqrt_square by apply Hmu; apply H; exact Axy.
  - intros t h Ht Ih; rewrite (spent_by_round (fun i => mu i * mu i)).
    rewrite (transcripts_length _ _ _ Ih).
    replace T with (t + (T - t))%nat by lia; rewrite seq_app, total_app.
    assert (0 <= total (seq (0 + t) (T - t)) (fun i => mu i * mu i)); [|lra].
    apply total_nonneg; intros; apply Rle_0_sqr.
Qed.

(** Disjoint parties: the delta of the most expensive one. *)
Theorem gaussian_parties_dp {A D} (adj : D -> D -> Prop) (outcomes : list A -> list A)
  (party : nat -> nat) (law : D -> list A -> A -> R) (mu : nat -> R) (budget eps : R) (T : nat) :
  (forall d h, distribution (outcomes h) (law d h)) -> (forall t, 0 <= mu t) -> 0 < budget ->
  (forall h x y, adj x y ->
     below_profile (outcomes h) (law x h) (law y h) (gaussian_profile (mu (length h)))) ->
  (forall j, total (seq 0 T) (cost_of party (fun t => mu t * mu t) j) <= budget) ->
  dp (one_part adj) (transcripts outcomes T) (fun x => run (speak party law x)) eps
    (gaussian_delta (sqrt budget) eps).
Proof.
  intros Dl Hmu Hpos H HB; apply profile_dp; [apply sqrt_lt_R0, Hpos|].
  intros x y (j & Aj & Eq).
  assert (Nn : forall t, 0 <= cost_of party (fun t => mu t * mu t) j t).
  { intros t; unfold cost_of; destruct (Nat.eqb _ _); [apply Rle_0_sqr|lra]. }
  apply gaussian_filter with (cost := fun h => cost_of party (fun t => mu t * mu t) j (length h)).
  - intros h; apply Dl.
  - intros h; apply Dl.
  - intros h; apply Nn.
  - intros h; unfold speak, cost_of.
    destruct (Nat.eqb_spec (party (length h)) j) as [<-|N].
    + rewrite sqrt_square by apply Hmu; apply H; exact Aj.
    + rewrite (Eq _ N), sqrt_0; intros a b Ha Hb; rewrite excess_diag by apply Dl.
      apply profile_ge; assumption.
  - intros t h Ht Ih; rewrite (spent_by_round (cost_of party (fun t => mu t * mu t) j)).
    rewrite (transcripts_length _ _ _ Ih); eapply Rle_trans; [|apply (HB j)].
    replace T with (t + (T - t))%nat by lia; rewrite seq_app, total_app.
    assert (0 <= total (seq (0 + t) (T - t)) (cost_of party (fun t => mu t * mu t) j)); [|lra].
    apply total_nonneg; auto.
Qed.

(** ** Groups *)

Lemma excess_triangle {A} (l : list A) p m q a c b :
  excess l p q a b <= excess l p m a c + excess l m q c b.
Proof.
  unfold excess; rewrite <- total_plus; apply total_le; intros y _.
  apply Rmax_lub.
  - pose proof (plus_part_nonneg (a * p y - c * m y)).
    pose proof (plus_part_nonneg (c * m y - b * q y)); lra.
  - pose proof (plus_part_ge (a * p y - c * m y)).
    pose proof (plus_part_ge (c * m y - b * q y)); lra.
Qed.

(** Through a middle point mu's add up: at the weight c of the middle that makes all three
    thresholds one point, the two profiles add up to that of the sum. *)
Theorem below_profile_triangle {A} (l : list A) (p m q : A -> R) (mu1 mu2 : R) :
  0 <= mu1 -> 0 <= mu2 -> distribution l p -> nonneg l q ->
  below_profile l p m (gaussian_profile mu1) -> below_profile l m q (gaussian_profile mu2) ->
  below_profile l p q (gaussian_profile (mu1 + mu2)).
Proof.
  intros [H1|<-] P2 Dp Nq B1 B2 a b Ha Hb.
  2:{ rewrite Rplus_0_l; pose proof (excess_triangle l p m q a a b) as T.
      pose proof (B1 a a Ha Ha) as E; rewrite profile_zero in E by lra.
      rewrite plus_part_0 in E by lra; specialize (B2 a b Ha Hb); lra. }
  destruct P2 as [H2|<-].
  2:{ rewrite Rplus_0_r; pose proof (excess_triangle l p m q a b b) as T.
      pose proof (B2 b b Hb Hb) as E; rewrite profile_zero in E by lra.
      rewrite plus_part_0 in E by lra; specialize (B1 a b Ha Hb); lra. }
  destruct Ha as [Ha|<-]; [|rewrite excess_zero, profile_a0; [lra|exact Hb|exact Nq|exact Hb]].
  destruct Hb as [Hb|<-].
  2:{ rewrite profile_b0 by lra; apply excess_le_mass; [exact Dp|exact Nq|lra|lra]. }
  set (S := mu1 + mu2); set (K := ln (b / a)); set (x := K / S + S / 2).
  set (k := mu1 * (x - mu2 - mu1 / 2)); set (c := a * exp k).
  assert (HS : 0 < S) by (unfold S; lra).
  assert (Hc : 0 < c) by (apply Rmult_lt_0_compat; [exact Ha|apply exp_pos]).
  eapply Rle_trans; [apply (excess_triangle l p m q a c b)|].
  eapply Rle_trans; [apply Rplus_le_compat; [apply B1|apply B2]; lra|].
  assert (E1 : ln (c / a) = k).
  { unfold c; replace (a * exp k / a) with (exp k) by (field; lra); apply ln_exp. }
  assert (E2 : ln (b / c) = mu2 * x - mu2 * mu2 / 2).
  { replace (b / c) with (b / a * exp (- k)).
    - rewrite ln_mult, ln_exp by (try apply exp_pos; apply Rdiv_lt_0_compat; assumption).
      fold K; replace K with (S * (x - S / 2)) by (unfold x; field; lra).
      unfold k, S; field.
    - unfold c; rewrite exp_Ropp; pose proof (exp_pos k); field; lra. }
  rewrite !profile_pos by assumption; rewrite E1, E2; fold K.
  replace (mu1 / 2 - k / mu1) with (S - x) by (unfold k, S; field; lra).
  replace (- (mu1 / 2) - k / mu1) with (mu2 - x) by (unfold k; field; lra).
  replace (mu2 / 2 - (mu2 * x - mu2 * mu2 / 2) / mu2) with (mu2 - x) by (field; lra).
  replace (- (mu2 / 2) - (mu2 * x - mu2 * mu2 / 2) / mu2) with (- x) by (field; lra).
  replace (S / 2 - K / S) with (S - x) by (unfold x; field; lra).
  replace (- (S / 2) - K / S) with (- x) by (unfold x; field; lra).
  lra.
Qed.

(** A group of k records: k mu (Dong, Roth and Su 2022, Theorem 2.14). *)
Theorem gdp_group {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) (mu : R) (k : nat) :
  (forall d, distribution l (M d)) -> 0 <= mu ->
  (forall x y, adj x y -> below_profile l (M x) (M y) (gaussian_profile mu)) ->
  forall x y, steps adj k x y ->
  below_profile l (M x) (M y) (gaussian_profile (INR k * mu)).
Proof.
  intros Dl Hmu H; induction k as [|k IH]; intros x y Sxy.
  - simpl in Sxy; subst y; simpl; rewrite Rmult_0_l; intros a b Ha Hb.
    rewrite profile_zero by lra; rewrite excess_diag by apply Dl; lra.
  - destruct Sxy as (z & Sxz & Azy); rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l.
    apply below_profile_triangle with (M z); auto.
    + apply Rmult_le_pos; [apply pos_INR|exact Hmu].
    + apply Dl.
Qed.
