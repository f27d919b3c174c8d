(** The exact profile of Laplace noise: two laws whose means are d scales apart have at weights a, b
    in common at least the smallest of a, b and exp(-d/2) sqrt(a b). Distances of the coordinates of
    a vector add up. *)

From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian Pure Domination.
Import ListNotations.
Open Scope R_scope.

(** What two laws have in common, for k = exp(-d/2). *)
Definition common_part (k a b : R) : R := Rmin (Rmin a b) (k * sqrt (a * b)).

Definition laplace_profile (k a b : R) : R := a - common_part k a b.

Definition overlap {A} (l : list A) (p q : A -> R) (a b : R) : R :=
  total l (fun y => Rmin (a * p y) (b * q y)).

Lemma excess_overlap {A} (l : list A) p q a b :
  distribution l p -> excess l p q a b = a - overlap l p q a b.
Proof.
  intros [_ S]; rewrite <- (Rmult_1_r a) at 2; rewrite <- S, <- total_scal; unfold overlap.
  rewrite <- total_minus; apply total_ext; intros y _; unfold plus_part, Rmax, Rmin.
  destruct (Rle_dec 0 (a * p y - b * q y)), (Rle_dec (a * p y) (b * q y)); lra.
Qed.

Lemma below_laplace {A} (l : list A) p q k :
  distribution l p -> (forall a b, 0 <= a -> 0 <= b -> common_part k a b <= overlap l p q a b) ->
  below_profile l p q (laplace_profile k).
Proof.
  intros D H a b Ha Hb; rewrite excess_overlap by exact D; specialize (H a b Ha Hb).
  unfold laplace_profile; lra.
Qed.

Lemma common_part_zero k a b : 0 <= a -> 0 <= b -> a = 0 \/ b = 0 -> common_part k a b = 0.
Proof.
  intros Ha Hb Z; unfold common_part; replace (a * b) with 0 by (destruct Z as [->| ->]; ring).
  rewrite sqrt_0, Rmult_0_r; unfold Rmin; destruct (Rle_dec a b), (Rle_dec _ 0), Z; lra.
Qed.

Lemma common_part_le_r k k' a b : k <= k' -> common_part k a b <= common_part k' a b.
Proof.
  intros H; apply Rmin_glb; [apply Rmin_l|]; eapply Rle_trans; [apply Rmin_r|].
  apply Rmult_le_compat_r; [apply sqrt_pos|exact H].
Qed.

Lemma common_part_nonneg k a b : 0 <= k -> 0 <= a -> 0 <= b -> 0 <= common_part k a b.
Proof.
  intros Hk Ha Hb; repeat apply Rmin_glb; try assumption; apply Rmult_le_pos; [exact Hk|apply sqrt_pos].
Qed.

Lemma laplace_profile_ge k a b : 0 <= k -> 0 <= a -> 0 <= b -> plus_part (a - b) <= laplace_profile k a b.
Proof.
  intros Hk Ha Hb; unfold laplace_profile; pose proof (Rmin_l (Rmin a b) (k * sqrt (a * b))) as L.
  fold (common_part k a b) in L; pose proof (Rmin_l a b); pose proof (Rmin_r a b).
  unfold plus_part; apply Rmax_lub; lra.
Qed.

(** ** A step *)

(** What is left in common is no more than at any weights between which the two may be shifted. *)
Lemma common_part_shifted k t a b :
  0 < k -> k <= t -> k * t <= 1 -> 0 <= a -> 0 <= b ->
  k * Rmin (a * t) (b / t) <= common_part k a b.
Proof.
  intros Hk Lo Up Ha Hb; assert (Ht : 0 < t) by lra.
  assert (It : 0 < / t) by (apply Rinv_0_lt_compat, Ht); assert (One : t * / t = 1) by (field; lra).
  pose proof (Rmin_l (a * t) (b / t)) as L; pose proof (Rmin_r (a * t) (b / t)) as R'.
  set (u := Rmin (a * t) (b / t)) in *.
  assert (Pu : 0 <= u) by (apply Rmin_glb; [nra|unfold Rdiv; nra]).
  repeat apply Rmin_glb.
  - apply Rle_trans with (k * (a * t)); [apply Rmult_le_compat_l; lra|]; nra.
  - apply Rle_trans with (k * (b / t)); [apply Rmult_le_compat_l; lra|].
    replace (k * (b / t)) with (b * (k / t)) by (field; lra).
    assert (k / t <= 1) by (apply Rmult_le_reg_r with (1 := Ht); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra).
    nra.
  - apply Rmult_le_compat_l; [lra|]; rewrite <- (sqrt_square u) by exact Pu; apply sqrt_le_1_alt.
    replace (a * b) with (a * t * (b / t)) by (field; lra).
    apply Rmult_le_compat; assumption.
Qed.

Theorem laplace_step {A} (l : list A) p q k k' a b :
  distribution l p -> nonneg l q -> 0 < k <= 1 -> 0 < k' <= 1 -> 0 <= a -> 0 <= b ->
  (forall a b, 0 <= a -> 0 <= b -> common_part k a b <= overlap l p q a b) ->
  total l (fun y => laplace_profile k' (a * p y) (b * q y)) <= laplace_profile (k * k') a b.
Proof.
  intros [Np Sp] Nq Hk Hk' Ha Hb H; unfold laplace_profile.
  rewrite total_minus, total_scal, Sp, Rmult_1_r; apply Rplus_le_compat_l, Ropp_le_contravar.
  assert (Each : forall y, In y l -> 0 <= a * p y /\ 0 <= b * q y)
    by (intros y I; split; apply Rmult_le_pos; auto).
  destruct Ha as [Ha|<-].
  2:{ rewrite common_part_zero by (try lra; left; reflexivity); apply total_nonneg; intros y I.
      apply common_part_nonneg; try apply Each, I; lra. }
  destruct Hb as [Hb|<-].
  2:{ rewrite common_part_zero by (try lra; right; reflexivity); apply total_nonneg; intros y I.
      apply common_part_nonneg; try apply Each, I; lra. }
  (* at weights a t and b / t *)
  assert (At : forall t, k' <= t -> k' * t <= 1 ->
            k' * common_part k (a * t) (b / t) <= total l (fun y => common_part k' (a * p y) (b * q y))).
  { intros t Lo Up; assert (Ht : 0 < t) by lra.
    assert (It : 0 < / t) by (apply Rinv_0_lt_compat, Ht).
    eapply Rle_trans; [apply Rmult_le_compat_l; [lra|apply H; [nra|unfold Rdiv; nra]]|].
    unfold overlap; rewrite <- total_scal; apply total_le; intros y I; destruct (Each y I) as [Pa Pb].
    eapply Rle_trans; [|apply (common_part_shifted k' t); try assumption; lra].
    right; do 2 f_equal; [ring|unfold Rdiv; ring]. }
  set (c := common_part (k * k') a b).
  assert (C1 : c <= a) by (eapply Rle_trans; [apply Rmin_l|apply Rmin_l]).
  assert (C2 : c <= b) by (eapply Rle_trans; [apply Rmin_l|apply Rmin_r]).
  assert (C3 : c <= k * k' * sqrt (a * b)) by apply Rmin_r.
  set (r := sqrt (a * b)) in *; assert (Pr : 0 < r) by (apply sqrt_lt_R0, Rmult_lt_0_compat; assumption).
  assert (Rr : r * r = a * b) by (apply sqrt_sqrt; nra).
  assert (C4 : c <= k' * r).
  { apply Rle_trans with (1 * (k' * r)); [|lra]; eapply Rle_trans; [exact C3|].
    rewrite Rmult_assoc; apply Rmult_le_compat_r; [nra|lra]. }
  assert (Root : forall t, 0 < t -> sqrt (a * t * (b / t)) = r)
    by (intros t Ht; unfold r; f_equal; field; lra).
  assert (Choose : exists t, k' <= t /\ k' * t <= 1 /\ c <= k' * (a * t) /\ c <= k' * (b / t)).
  { destruct (Rle_dec (k' * b) (k' * k' * r)) as [Low|Low].
    - (* b is far smaller than a *)
      assert (B : b <= k' * r) by nra; exists k'; split; [lra|split; [nra|]].
      assert (Sq : b * b <= k' * r * (k' * r)) by (apply Rmult_le_compat; lra).
      replace (k' * r * (k' * r)) with (k' * k' * a * b) in Sq by (transitivity (k' * k' * (r * r)); [rewrite Rr|]; ring).
      apply Rmult_le_reg_r in Sq; [|exact Hb].
      split; [nra|unfold Rdiv; rewrite (Rmult_comm b), <- Rmult_assoc, Rinv_r by lra; lra].
    - assert (B : k' * r < b) by nra; destruct (Rle_dec a (k' * r)) as [Lowa|Lowa].
      + exists (/ k'); assert (Ik : 1 <= / k')
          by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
        assert (Sq : a * a <= k' * r * (k' * r)) by (apply Rmult_le_compat; lra).
        replace (k' * r * (k' * r)) with (k' * k' * b * a) in Sq by (transitivity (k' * k' * (r * r)); [rewrite Rr|]; ring).
        apply Rmult_le_reg_r in Sq; [|exact Ha].
        split; [lra|split; [rewrite Rinv_r; lra|]].
        unfold Rdiv; rewrite Rinv_inv; split; [|nra].
        rewrite (Rmult_comm a), <- Rmult_assoc, Rinv_r by lra; lra.
      + exists (r / a); assert (Ia : 0 < / a) by (apply Rinv_0_lt_compat, Ha).
        assert (E1 : a * (r / a) = r) by (field; lra).
        assert (E2 : b / (r / a) = r).
        { apply Rmult_eq_reg_r with r; [|lra]; rewrite Rr; field; lra. }
        rewrite E1, E2; split; [|split; [|split; exact C4]].
        * apply Rmult_le_reg_r with (1 := Ha); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra.
          apply Rmult_le_reg_r with (1 := Pr); rewrite Rmult_1_r, Rr; nra.
        * apply Rmult_le_reg_r with (1 := Ha); unfold Rdiv.
          rewrite !Rmult_assoc, Rinv_l by lra; lra. }
  destruct Choose as (t & Lo & Up & A1 & B1); eapply Rle_trans; [|apply (At t Lo Up)].
  unfold common_part at 1; rewrite Root by lra.
  unfold Rmin; destruct (Rle_dec (a * t) (b / t)); destruct (Rle_dec _ (k * r)); try assumption;
    (eapply Rle_trans; [exact C3|right; ring]).
Qed.

(** ** One number, rounded *)

Lemma exp_one_le x : 0 <= x -> 1 <= exp x.
Proof. intros H; rewrite <- exp_0; apply exp_le, H. Qed.

Lemma rising_half c t u :
  0 <= c -> t <= u -> u <= c -> (exp u - exp t) / 2 <= exp (2 * c) * (laplace_cdf u - laplace_cdf t).
Proof.
  assert (Low : forall t u, 0 <= c -> t <= u -> u <= 0 ->
            (exp u - exp t) / 2 <= exp (2 * c) * (laplace_cdf u - laplace_cdf t)).
  { clear; intros t u Hc Htu Hu; rewrite !laplace_low by lra.
    pose proof (exp_one_le (2 * c) ltac:(lra)); pose proof (exp_le t u Htu); nra. }
  assert (High : forall t u, t <= u -> 0 <= t -> u <= c ->
            (exp u - exp t) / 2 <= exp (2 * c) * (laplace_cdf u - laplace_cdf t)).
  { clear; intros t u Htu Ht Hu; rewrite !laplace_high by lra.
    replace (1 - exp (- u) / 2 - (1 - exp (- t) / 2))
      with (exp (- (t + u)) * ((exp u - exp t) / 2)).
    - pose proof (exp_one_le (2 * c - (t + u)) ltac:(lra)) as One; pose proof (exp_le t u Htu).
      rewrite <- Rmult_assoc, <- exp_plus; replace (2 * c + - (t + u)) with (2 * c - (t + u)) by ring.
      nra.
    - unfold Rdiv; rewrite <- Rmult_assoc, Rmult_minus_distr_l, <- !exp_plus.
      replace (- (t + u) + u) with (- t) by ring; replace (- (t + u) + t) with (- u) by ring; lra. }
  intros Hc Htu Hu; destruct (Rle_dec u 0); [apply Low; assumption|].
  destruct (Rle_dec 0 t); [apply High; assumption|].
  pose proof (Low t 0 ltac:(lra) ltac:(lra) ltac:(lra)).
  pose proof (High 0 u ltac:(lra) ltac:(lra) Hu); lra.
Qed.

Section Threshold.

Variables (d c : R).
Hypothesis Hc : 0 <= c <= d.

(** Below the threshold c the further law has the smaller weight, above it the nearer one. *)
Lemma before_threshold t u :
  t <= u -> u <= c ->
  laplace_cdf (u - d) - laplace_cdf (t - d) <= exp (2 * c - d) * (laplace_cdf u - laplace_cdf t).
Proof.
  intros Htu Hu; rewrite !laplace_low by lra; unfold Rminus; rewrite !exp_plus.
  pose proof (rising_half c t u ltac:(lra) Htu Hu); pose proof (exp_pos (- d)).
  replace (exp u * exp (- d) / 2 + - (exp t * exp (- d) / 2))
    with (exp (- d) * ((exp u - exp t) / 2)) by field.
  rewrite (Rmult_comm (exp (2 * c))), Rmult_assoc; apply Rmult_le_compat_l; [lra|].
  unfold Rminus in *; assumption.
Qed.

Lemma tail_before u : u <= c -> laplace_cdf (u - d) <= exp (2 * c - d) * laplace_cdf u.
Proof.
  intros Hu; rewrite laplace_low by lra; unfold Rminus; rewrite !exp_plus.
  assert (H : exp u / 2 <= exp (2 * c) * laplace_cdf u).
  { destruct (Rle_dec u 0) as [L|L].
    - rewrite laplace_low by exact L; pose proof (exp_one_le (2 * c) ltac:(lra)).
      pose proof (exp_pos u); nra.
    - rewrite laplace_high by lra; pose proof (exp_le (- u) 0 ltac:(lra)) as E; rewrite exp_0 in E.
      pose proof (exp_le u (2 * c) ltac:(lra)); pose proof (exp_pos u); nra. }
  pose proof (exp_pos (- d)).
  replace (exp u * exp (- d) / 2) with (exp (- d) * (exp u / 2)) by field.
  rewrite (Rmult_comm (exp (2 * c))), Rmult_assoc; apply Rmult_le_compat_l; [lra|exact H].
Qed.

End Threshold.

Lemma after_threshold d c t u :
  0 <= c <= d -> t <= u -> c <= t ->
  laplace_cdf u - laplace_cdf t <= exp (d - 2 * c) * (laplace_cdf (u - d) - laplace_cdf (t - d)).
Proof.
  intros Hc Htu Ht.
  pose proof (before_threshold d (d - c) ltac:(lra) (d - u) (d - t) ltac:(lra) ltac:(lra)) as B.
  replace (d - t - d) with (- t) in B by ring; replace (d - u - d) with (- u) in B by ring.
  replace (d - t) with (- (t - d)) in B by ring; replace (d - u) with (- (u - d)) in B by ring.
  rewrite !laplace_symmetric in B; replace (2 * (d - c) - d) with (d - 2 * c) in B by ring; lra.
Qed.

Lemma tail_after d c t :
  0 <= c <= d -> c <= t ->
  1 - laplace_cdf t <= exp (d - 2 * c) * (1 - laplace_cdf (t - d)).
Proof.
  intros Hc Ht; pose proof (tail_before d (d - c) ltac:(lra) (d - t) ltac:(lra)) as B.
  replace (d - t - d) with (- t) in B by ring; replace (d - t) with (- (t - d)) in B by ring.
  rewrite !laplace_symmetric in B; replace (2 * (d - c) - d) with (d - 2 * c) in B by ring; lra.
Qed.

(** What lies before a point, and after it. *)
Definition lower (x : R) (z : Rbar) : Rbar :=
  match z with Finite y => Finite (Rmin y x) | p_infty => Finite x | m_infty => m_infty end.
Definition higher (x : R) (z : Rbar) : Rbar :=
  match z with Finite y => Finite (Rmax y x) | p_infty => p_infty | m_infty => Finite x end.

Lemma below_split m b x z :
  laplace_below m b z
    = laplace_below m b (lower x z) + laplace_below m b (higher x z) - laplace_below m b (Finite x).
Proof.
  destruct z as [y| |]; simpl; try ring.
  unfold Rmin, Rmax; destruct (Rle_dec y x); ring.
Qed.

Section Rounded.

Variables (m m' b : R) (cuts : list R).
Hypothesis Hb : 0 < b.
Hypothesis Hm : m <= m'.
Hypothesis Hcuts : ascending m_infty cuts.

Notation d := ((m' - m) / b).
Notation F := (laplace_below m b).
Notation G := (laplace_below m' b).

Lemma distance_nonneg : 0 <= d.
Proof. apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, Hb]. Qed.

Lemma rescaled x : (x - m') / b = (x - m) / b - d.
Proof. field; lra. Qed.

Lemma scaled_le x y : x <= y -> (x - m) / b <= (y - m) / b.
Proof. intros H; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Hb|lra]. Qed.

Section Between.

Variables (c : R).
Hypothesis Hc : 0 <= c <= d.
Notation x := (m + b * c).

Lemma scaled_threshold : (x - m) / b = c.
Proof. field; lra. Qed.

Lemma lower_increment lo hi : Rbar_le lo hi ->
  G (lower x hi) - G (lower x lo) <= exp (2 * c - d) * (F (lower x hi) - F (lower x lo)).
Proof.
  intros Le; assert (At : forall y, (Rmin y x - m) / b <= c).
  { intros y; rewrite <- scaled_threshold at 2; apply scaled_le, Rmin_r. }
  pose proof scaled_threshold as E.
  destruct lo as [t| |], hi as [u| |]; simpl in Le |- *; try contradiction; rewrite ?rescaled;
    rewrite ?Rminus_0_r; try (apply Req_le; ring).
  - apply before_threshold; [exact Hc|apply scaled_le, Rle_min_compat_r, Le|apply At].
  - apply before_threshold; [exact Hc|apply scaled_le, Rmin_r|rewrite E; lra].
  - apply tail_before; [exact Hc|apply At].
  - apply tail_before; [exact Hc|rewrite E; lra].
Qed.

Lemma higher_increment lo hi : Rbar_le lo hi ->
  F (higher x hi) - F (higher x lo) <= exp (d - 2 * c) * (G (higher x hi) - G (higher x lo)).
Proof.
  intros Le; assert (At : forall y, c <= (Rmax y x - m) / b).
  { intros y; rewrite <- scaled_threshold at 1; apply scaled_le, Rmax_r. }
  pose proof scaled_threshold as E.
  destruct lo as [t| |], hi as [u| |]; simpl in Le |- *; try contradiction; rewrite ?rescaled;
    try (apply Req_le; ring).
  - apply after_threshold; [exact Hc|apply scaled_le, Rle_max_compat_r, Le|apply At].
  - apply tail_after; [exact Hc|apply At].
  - apply after_threshold; [exact Hc|apply scaled_le, Rmax_r|rewrite E; lra].
  - apply tail_after; [exact Hc|rewrite E; lra].
Qed.

(** In common: the further law before the threshold, and the nearer one after it. *)
Lemma overlap_between a :
  0 <= a ->
  a * exp (- c) <= overlap (cells m_infty cuts) (rounded_laplace m b) (rounded_laplace m' b)
                     a (a * exp (d - 2 * c)).
Proof.
  intros Ha; set (a' := a * exp (d - 2 * c)); pose proof (exp_pos (d - 2 * c)) as Pe.
  assert (Ha' : 0 <= a') by (apply Rmult_le_pos; lra).
  set (W := fun z => a' * G (lower x z) + a * F (higher x z)).
  apply Rle_trans with (total (cells m_infty cuts) (increment W)).
  - right; rewrite cells_total; unfold W; simpl; rewrite rescaled, scaled_threshold.
    rewrite (laplace_low (c - d)), (laplace_high c) by lra.
    unfold a'; replace (d - 2 * c) with (- c + - (c - d)) by ring; rewrite exp_plus.
    replace (a * (exp (- c) * exp (- (c - d))) * (exp (c - d) / 2))
      with (a * exp (- c) * (exp (- (c - d)) * exp (c - d)) / 2) by field.
    rewrite <- exp_plus; replace (- (c - d) + (c - d)) with 0 by ring; rewrite exp_0; field.
  - apply total_le; intros [lo hi] I; apply cells_ordered in I; [|exact Hcuts]; cbn [fst snd] in I.
    pose proof (lower_increment lo hi I) as L; pose proof (higher_increment lo hi I) as H.
    unfold rounded_laplace, increment, W; cbn [fst snd].
    rewrite (below_split m b x hi), (below_split m b x lo), (below_split m' b x hi), (below_split m' b x lo).
    assert (Back : a' * exp (2 * c - d) = a).
    { unfold a'; rewrite Rmult_assoc, <- exp_plus; replace (d - 2 * c + (2 * c - d)) with 0 by ring.
      rewrite exp_0; ring. }
    apply (Rmult_le_compat_l a') in L; [|exact Ha']; rewrite <- Rmult_assoc, Back in L.
    apply (Rmult_le_compat_l a) in H; [|exact Ha]; rewrite <- Rmult_assoc in H; fold a' in H.
    apply Rmin_glb; lra.
Qed.

End Between.

Theorem laplace_overlap a a' :
  0 <= a -> 0 <= a' ->
  common_part (exp (- d / 2)) a a'
    <= overlap (cells m_infty cuts) (rounded_laplace m b) (rounded_laplace m' b) a a'.
Proof.
  pose proof (rounded_laplace_distribution m b cuts Hb Hcuts) as [Np Sp].
  pose proof (rounded_laplace_distribution m' b cuts Hb Hcuts) as [Nq Sq].
  pose proof distance_nonneg as Hd; intros Ha Ha'.
  assert (Nonneg : 0 <= overlap (cells m_infty cuts) (rounded_laplace m b) (rounded_laplace m' b) a a').
  { apply total_nonneg; intros y I; apply Rmin_glb; apply Rmult_le_pos; auto. }
  destruct Ha as [Ha|<-]; [|rewrite common_part_zero; [exact Nonneg|lra|lra|left; reflexivity]].
  destruct Ha' as [Ha'|<-]; [|rewrite common_part_zero; [exact Nonneg|lra|lra|right; reflexivity]].
  set (s := ln (a' / a)); assert (Q : 0 < a' / a) by (apply Rdiv_lt_0_compat; assumption).
  assert (Es : a' = a * exp s) by (unfold s; rewrite exp_ln by exact Q; field; lra).
  assert (Odds : forall u v y, In y (cells m_infty cuts) -> Rabs (u - v) / b = d ->
            rounded_laplace u b y <= exp d * rounded_laplace v b y).
  { intros u v y I E; rewrite <- E; apply rounded_laplace_moved; [exact Hb|].
    apply (cells_ordered m_infty cuts y Hcuts I). }
  assert (D1 : Rabs (m - m') / b = d) by (rewrite Rabs_minus_sym, Rabs_right by lra; reflexivity).
  assert (D2 : Rabs (m' - m) / b = d) by (rewrite Rabs_right by lra; reflexivity).
  destruct (Rlt_dec d s) as [Far|Near]; [|destruct (Rlt_dec s (- d)) as [Far|Near']].
  - apply Rle_trans with a; [eapply Rle_trans; [apply Rmin_l|apply Rmin_l]|].
    right; rewrite <- (Rmult_1_r a) at 1; rewrite <- Sp, <- total_scal; apply total_ext; intros y I.
    symmetry; apply Rmin_left; rewrite Es, Rmult_assoc; apply Rmult_le_compat_l; [lra|].
    eapply Rle_trans; [apply (Odds m m' y I D1)|]; apply Rmult_le_compat_r; [apply Nq, I|apply exp_le; lra].
  - apply Rle_trans with a'; [eapply Rle_trans; [apply Rmin_l|apply Rmin_r]|].
    right; rewrite <- (Rmult_1_r a') at 1; rewrite <- Sq, <- total_scal; apply total_ext; intros y I.
    symmetry; apply Rmin_right; rewrite Es, Rmult_assoc; apply Rmult_le_compat_l; [lra|].
    apply Rle_trans with (exp s * (exp d * rounded_laplace m b y)).
    + apply Rmult_le_compat_l; [left; apply exp_pos|apply (Odds m' m y I D2)].
    + rewrite <- Rmult_assoc, <- exp_plus; rewrite <- (Rmult_1_l (rounded_laplace m b y)) at 2.
      apply Rmult_le_compat_r; [apply Np, I|]; rewrite <- exp_0; apply exp_le; lra.
  - set (c := (d - s) / 2); assert (Hc : 0 <= c <= d) by (unfold c; lra).
    pose proof (overlap_between c Hc a (Rlt_le _ _ Ha)) as O.
    replace (d - 2 * c) with s in O by (unfold c; field; lra); rewrite <- Es in O.
    eapply Rle_trans; [apply Rmin_r|eapply Rle_trans; [right|exact O]].
    rewrite Es; replace (a * (a * exp s)) with (a * exp (s / 2) * (a * exp (s / 2))).
    + rewrite sqrt_square by (apply Rmult_le_pos; [lra|left; apply exp_pos]).
      rewrite <- Rmult_assoc, (Rmult_comm _ a), Rmult_assoc, <- exp_plus; f_equal; f_equal.
      unfold c; field; lra.
    + replace (a * exp (s / 2) * (a * exp (s / 2))) with (a * (a * (exp (s / 2) * exp (s / 2)))) by ring.
      rewrite <- exp_plus; do 3 f_equal; field.
Qed.

End Rounded.

Lemma overlap_comm {A} (l : list A) p q a b : overlap l p q a b = overlap l q p b a.
Proof. apply total_ext; intros y _; apply Rmin_comm. Qed.

Lemma common_part_comm k a b : common_part k a b = common_part k b a.
Proof. unfold common_part; rewrite (Rmin_comm a b), (Rmult_comm a b); reflexivity. Qed.

(** Either way round. *)
Theorem rounded_laplace_overlap m m' b cuts a a' :
  0 < b -> ascending m_infty cuts -> 0 <= a -> 0 <= a' ->
  common_part (exp (- (Rabs (m - m') / b) / 2)) a a'
    <= overlap (cells m_infty cuts) (rounded_laplace m b) (rounded_laplace m' b) a a'.
Proof.
  intros Hb Hc Ha Ha'; destruct (Rle_dec m m') as [L|L].
  - rewrite Rabs_minus_sym, Rabs_right by lra; apply laplace_overlap; assumption.
  - rewrite overlap_comm, common_part_comm, Rabs_right by lra; apply laplace_overlap; try assumption; lra.
Qed.

(** A vector of d numbers that move by at most Delta in l1, each coordinate rounded to a grid of its
    own. *)
Theorem vector_laplace_profile {D} (adj : D -> D -> Prop) (q : D -> nat -> R) b Delta d
  (cuts : list (Rbar * Rbar) -> list R) :
  0 < b -> (forall h, ascending m_infty (cuts h)) ->
  (forall x y, adj x y -> total (seq 0 d) (fun i => Rabs (q x i - q y i)) <= Delta) ->
  forall x y, adj x y ->
  below_profile (transcripts (fun h => cells m_infty (cuts h)) d) (laplace_vector q b x)
    (laplace_vector q b y) (laplace_profile (exp (- (Delta / b) / 2))).
Proof.
  intros B Up Moves x y N; specialize (Moves x y N).
  set (step := fun i => Rabs (q x i - q y i) / b).
  set (left := fun h : list (Rbar * Rbar) => total (seq (length h) (d - length h)) step).
  assert (Ps : forall i, 0 <= step i)
    by (intros i; apply Rmult_le_pos; [apply Rabs_pos|left; apply Rinv_0_lt_compat, B]).
  assert (Pl : forall h, 0 <= left h) by (intros h; apply total_nonneg; intros; apply Ps).
  assert (Unit : forall t, 0 <= t -> 0 < exp (- t / 2) <= 1).
  { intros t Ht; split; [apply exp_pos|rewrite <- exp_0; apply exp_le; lra]. }
  intros a a' Ha Ha'; apply Rle_trans with (laplace_profile (exp (- left [] / 2)) a a').
  2:{ unfold laplace_profile; apply Rplus_le_compat_l, Ropp_le_contravar, common_part_le_r, exp_le.
      assert (E : left [] = total (seq 0 d) (fun i => Rabs (q x i - q y i)) / b).
      { unfold left, step, Rdiv; cbn [length]; rewrite Nat.sub_0_r, total_scal_r; reflexivity. }
      assert (left [] <= Delta / b); [|lra].
      rewrite E; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, B|exact Moves]. }
  revert a a' Ha Ha'.
  apply (adaptive_bound (fun h => cells m_infty (cuts h))
           (fun h => rounded_laplace (q x (length h)) b) (fun h => rounded_laplace (q y (length h)) b))
    with (F := fun h => laplace_profile (exp (- left h / 2))).
  - intros h; apply rounded_laplace_distribution; auto.
  - intros h; apply rounded_laplace_distribution; auto.
  - intros h a a' _ Ha Ha'; apply laplace_profile_ge; try assumption; left; apply exp_pos.
  - intros t h a a' Ht Ih Ha Ha'; apply transcripts_length in Ih.
    assert (E : left h = step (length h) + total (seq (S (length h)) (d - S (length h))) step).
    { unfold left; replace (d - length h)%nat with (S (d - S (length h)))%nat by lia; reflexivity. }
    set (rest := total (seq (S (length h)) (d - S (length h))) step) in E.
    assert (Pr : 0 <= rest) by (apply total_nonneg; intros; apply Ps).
    rewrite (total_ext _ _ (fun z => laplace_profile (exp (- rest / 2))
      (a * rounded_laplace (q x (length h)) b z) (a' * rounded_laplace (q y (length h)) b z)))
      by (intros z _; unfold left; cbn [length]; reflexivity).
    rewrite E; replace (exp (- (step (length h) + rest) / 2))
      with (exp (- step (length h) / 2) * exp (- rest / 2)) by (rewrite <- exp_plus; f_equal; field).
    apply laplace_step; try assumption.
    + apply rounded_laplace_distribution; auto.
    + apply rounded_laplace_distribution; auto.
    + apply Unit, Ps.
    + apply Unit, Pr.
    + intros u v Hu Hv; apply rounded_laplace_overlap; auto.
Qed.
