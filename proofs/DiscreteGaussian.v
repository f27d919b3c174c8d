(** Discrete Gaussian noise: whole numbers z with probabilities in the ratio of
    exp(-z^2 / (2 s^2)). Added to whole numbers and rounded to any grid, it is zCDP as normal noise
    is (Canonne, Kamath and Steinke 2020, Theorem 14). *)

From Coq Require Import Reals List Lra Lia ZArith.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian DiscreteLaplace Sensitivity GaussianWeights.
Import ListNotations.
Open Scope R_scope.

(** ** Noise on whole numbers, rounded *)

(** The weights, about m, of the whole numbers up to a point. *)
Definition weights_up_to (s m : R) (t : Rbar) : R :=
  match t with
  | Finite x => weights_below s (IZR (Int_part x) - m)
  | p_infty => all_weights s m
  | m_infty => 0
  end.

(** The probability that noise on the whole number m falls into a cell: in the ratio of the weights
    of the whole numbers in it. *)
Definition rounded_discrete (m : Z) (s : R) (c : Rbar * Rbar) : R :=
  increment (weights_up_to s (IZR m)) c / all_weights s (IZR m).

Section Cells.

Variable s : R.
Hypothesis s_positive : 0 < s.

Notation w := (gaussian_weight s).
Notation up_to := (weights_up_to s).

Lemma weights_above m (n : Z) :
  all_weights s m - weights_below s (IZR n - m) = weights_below s (m - IZR n - 1).
Proof.
  replace (all_weights s m) with (all_weights s (IZR n - m)).
  - unfold all_weights; replace (- (IZR n - m) - 1) with (m - IZR n - 1) by ring; ring.
  - rewrite <- (weights_opp s s_positive (IZR n - m)).
    replace (- (IZR n - m)) with (m - IZR n) by ring; apply weights_moved, s_positive.
Qed.

(** Inequalities that hold of each whole number's weights about three points hold of any cell's. *)
Section Combined.

Variables a b c m1 m0 m : R.
Hypothesis each : forall z : Z, a * w (IZR z - m1) - b * w (IZR z - m0) <= c * w (IZR z - m).

Lemma below_combined (place : nat -> Z) x1 x0 x :
  (forall k, w (x1 - INR k) = w (IZR (place k) - m1)) ->
  (forall k, w (x0 - INR k) = w (IZR (place k) - m0)) ->
  (forall k, w (x - INR k) = w (IZR (place k) - m)) ->
  a * weights_below s x1 - b * weights_below s x0 <= c * weights_below s x.
Proof.
  intros E1 E0 E.
  assert (S : forall r y, is_series (fun k => r * w (y - INR k)) (r * weights_below s y)).
  { intros r y; apply (is_series_scal (K := R_AbsRing) (V := R_NormedModule) r).
    apply Series_correct, weights_summable, s_positive. }
  pose proof (is_series_minus _ _ _ _ (S c x) (is_series_minus _ _ _ _ (S a x1) (S b x0))) as L.
  apply is_series_nonneg in L.
  - unfold minus, plus, opp in L; simpl in L; lra.
  - intros k; unfold minus, plus, opp; simpl; rewrite E, E1, E0; specialize (each (place k)); lra.
Qed.

Lemma increments_combined (cell : Rbar * Rbar) :
  Rbar_le (fst cell) (snd cell) ->
  a * increment (up_to m1) cell - b * increment (up_to m0) cell <= c * increment (up_to m) cell.
Proof.
  assert (Low : forall n : Z, a * weights_below s (IZR n - m1) - b * weights_below s (IZR n - m0)
                              <= c * weights_below s (IZR n - m)).
  { intros n; apply (below_combined (fun k => (n - Z.of_nat k)%Z)); intros k;
      rewrite minus_IZR, <- INR_IZR_INZ; f_equal; ring. }
  assert (High : forall n : Z,
            a * (all_weights s m1 - weights_below s (IZR n - m1))
            - b * (all_weights s m0 - weights_below s (IZR n - m0))
            <= c * (all_weights s m - weights_below s (IZR n - m))).
  { intros n; rewrite !weights_above.
    apply (below_combined (fun k => (n + 1 + Z.of_nat k)%Z)); intros k;
      rewrite <- weight_opp, !plus_IZR, <- INR_IZR_INZ; f_equal; ring. }
  assert (Range : forall n k,
            a * (weights_below s (IZR (n + Z.of_nat k) - m1) - weights_below s (IZR n - m1))
            - b * (weights_below s (IZR (n + Z.of_nat k) - m0) - weights_below s (IZR n - m0))
            <= c * (weights_below s (IZR (n + Z.of_nat k) - m) - weights_below s (IZR n - m))).
  { intros n k; induction k as [|k IH]; [simpl; rewrite Z.add_0_r; lra|].
    specialize (each (n + Z.of_nat (S k))).
    assert (Step : forall y, weights_below s (IZR (n + Z.of_nat (S k)) - y)
              = w (IZR (n + Z.of_nat (S k)) - y) + weights_below s (IZR (n + Z.of_nat k) - y)).
    { intros y; rewrite below_step by exact s_positive; do 2 f_equal.
      rewrite Nat2Z.inj_succ, <- Z.add_1_r, !plus_IZR; ring. }
    rewrite !Step; lra. }
  unfold increment; destruct cell as [lo hi]; cbn [fst snd].
  destruct lo as [x| |], hi as [y| |]; simpl; intros Le; try contradiction; try lra.
  - apply int_part_le in Le.
    specialize (Range (Int_part x) (Z.to_nat (Int_part y - Int_part x))).
    rewrite Z2Nat.id in Range by lia.
    replace (Int_part x + (Int_part y - Int_part x))%Z with (Int_part y) in Range by lia.
    exact Range.
  - apply High.
  - specialize (Low (Int_part y)); lra.
  - specialize (Low 0%Z); specialize (High 0%Z); lra.
Qed.

End Combined.

Lemma increment_nonneg m c : Rbar_le (fst c) (snd c) -> 0 <= increment (up_to m) c.
Proof.
  intros Le; pose proof (increments_combined 0 0 1 m m m) as H; specialize (H ltac:(
    intros z; pose proof (weight_pos s (IZR z - m)); lra) c Le); lra.
Qed.

Lemma below_increasing x k : weights_below s x <= weights_below s (x + INR k).
Proof.
  induction k as [|k IH]; [rewrite Rplus_0_r; lra|].
  rewrite (below_step s s_positive (x + INR (S k))); pose proof (weight_pos s (x + INR (S k))).
  replace (x + INR (S k) - 1) with (x + INR k) by (rewrite S_INR; ring); lra.
Qed.

(** A cell without weight has no whole number in it. *)
Lemma increment_zero m m' c :
  Rbar_le (fst c) (snd c) -> increment (up_to m) c = 0 -> increment (up_to m') c = 0.
Proof.
  intros Le; destruct c as [[x| |] [y| |]]; unfold increment; cbn [fst snd] in *; simpl in *;
    try contradiction; intros Z; try lra.
  - destruct (Z.eq_dec (Int_part x) (Int_part y)) as [E|N]; [rewrite E; lra|exfalso].
    apply int_part_le in Le; set (k := Z.to_nat (Int_part y - 1 - Int_part x)).
    pose proof (below_increasing (IZR (Int_part x) - m) k) as I.
    replace (IZR (Int_part x) - m + INR k) with (IZR (Int_part y) - m - 1) in I
      by (unfold k; rewrite INR_IZR_INZ, Z2Nat.id, !minus_IZR by lia; ring).
    rewrite (below_step s s_positive (IZR (Int_part y) - m)) in Z.
    pose proof (weight_pos s (IZR (Int_part y) - m)); lra.
  - rewrite weights_above in Z; pose proof (below_pos s s_positive (m - IZR (Int_part x) - 1)); lra.
  - pose proof (below_pos s s_positive (IZR (Int_part y) - m)); lra.
  - pose proof (weights_pos s s_positive m); lra.
Qed.

Lemma rounded_discrete_distribution (m : Z) cuts :
  ascending m_infty cuts -> distribution (cells m_infty cuts) (rounded_discrete m s).
Proof.
  intros Up; pose proof (weights_pos s s_positive (IZR m)) as W; split.
  - intros c I; apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, W].
    apply increment_nonneg, (cells_ordered _ _ _ Up I).
  - unfold rounded_discrete, Rdiv; rewrite total_scal_r, cells_total; simpl; field; lra.
Qed.

(** Completing the square. *)
Lemma renyi_term_weight alpha m1 m0 x :
  renyi_term alpha (w (x - m1)) (w (x - m0))
    = gaussian_moment m1 m0 s alpha * w (x - tilted m1 m0 alpha).
Proof.
  unfold gaussian_weight; rewrite renyi_term_pos, !ln_exp by apply exp_pos.
  unfold gaussian_moment; rewrite <- exp_plus; f_equal; unfold tilted; field; lra.
Qed.

Lemma rounded_discrete_term alpha (m1 m0 : Z) c :
  1 < alpha -> Rbar_le (fst c) (snd c) ->
  renyi_term alpha (rounded_discrete m1 s c) (rounded_discrete m0 s c)
    <= gaussian_moment (IZR m1) (IZR m0) s alpha
       * (increment (up_to (tilted (IZR m1) (IZR m0) alpha)) c / all_weights s 0).
Proof.
  intros Ha Le; set (C := gaussian_moment _ _ s alpha); set (T := increment _ c).
  pose proof (weights_pos s s_positive 0) as W.
  assert (P : forall m, 0 <= increment (up_to m) c) by (intros; apply increment_nonneg, Le).
  assert (PT : 0 <= C * (T / all_weights s 0)).
  { apply Rmult_le_pos; [left; apply exp_pos|].
    apply Rmult_le_pos; [apply P|left; apply Rinv_0_lt_compat, W]. }
  unfold rounded_discrete.
  rewrite (weights_whole s s_positive m1), (weights_whole s s_positive m0).
  assert (PI : forall m, 0 < increment (up_to m) c -> 0 < increment (up_to m) c / all_weights s 0)
    by (intros; apply Rdiv_lt_0_compat; assumption).
  destruct (P (IZR m1)) as [P1|<-];
    [|unfold Rdiv at 1; rewrite Rmult_0_l, renyi_term_0_l; exact PT].
  destruct (P (IZR m0)) as [P0|<-];
    [|unfold Rdiv at 2; rewrite Rmult_0_l, renyi_term_0_r; exact PT].
  rewrite <- renyi_term_touches by (apply PI; assumption); set (t := ln _ - ln _).
  set (a := alpha * exp ((alpha - 1) * t)); set (b := (alpha - 1) * exp (alpha * t)).
  replace (a * _ - b * _)
    with ((a * increment (up_to (IZR m1)) c - b * increment (up_to (IZR m0)) c) / all_weights s 0)
    by (field; lra).
  replace (C * (T / all_weights s 0)) with (C * T / all_weights s 0) by (field; lra).
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, W|].
  apply increments_combined; [|exact Le]; intros z; unfold C; rewrite <- renyi_term_weight.
  pose proof (weight_pos s (IZR z - IZR m1)); pose proof (weight_pos s (IZR z - IZR m0)).
  apply renyi_term_tangent; lra.
Qed.

(** At every order no further apart than normal laws of the same distance. *)
Theorem discrete_gaussian_rdp alpha (m1 m0 : Z) cuts :
  1 < alpha -> ascending m_infty cuts ->
  rdp_pair (cells m_infty cuts) (rounded_discrete m1 s) (rounded_discrete m0 s) alpha
    (alpha * ((IZR m1 - IZR m0) * (IZR m1 - IZR m0) / (2 * (s * s)))).
Proof.
  intros Ha Up; pose proof (weights_pos s s_positive) as W; split.
  - intros c I Z; unfold rounded_discrete, Rdiv in *.
    rewrite (increment_zero (IZR m0)); [ring|apply (cells_ordered _ _ _ Up I)|].
    destruct (Rmult_integral _ _ Z) as [E|E]; [exact E|exfalso].
    pose proof (Rinv_0_lt_compat _ (W (IZR m0))); lra.
  - fold (gaussian_moment (IZR m1) (IZR m0) s alpha); set (mu := tilted (IZR m1) (IZR m0) alpha).
    transitivity (total (cells m_infty cuts) (fun c =>
      gaussian_moment (IZR m1) (IZR m0) s alpha * (increment (up_to mu) c / all_weights s 0))).
    + apply total_le; intros c I; apply rounded_discrete_term; [exact Ha|].
      exact (cells_ordered _ _ _ Up I).
    + rewrite total_scal; unfold Rdiv; rewrite total_scal_r, cells_total; simpl; rewrite Rminus_0_r.
      rewrite <- (Rmult_1_r (gaussian_moment _ _ s alpha)) at 2.
      apply Rmult_le_compat_l; [left; apply exp_pos|].
      apply Rmult_le_reg_r with (all_weights s 0); [apply W|].
      rewrite Rmult_assoc, Rinv_l by (apply Rgt_not_eq, W).
      pose proof (weights_largest s s_positive mu); lra.
Qed.

End Cells.

(** Fresh noise on every coordinate of [q x], each rounded to a grid of its own. *)
Definition discrete_gaussian_vector {D} (q : D -> nat -> Z) (s : R) (x : D) :
  list (Rbar * Rbar) -> R := run (fun h => rounded_discrete (q x (length h)) s).

Lemma discrete_gaussian_vector_distribution {D} (q : D -> nat -> Z) s d
  (cuts : list (Rbar * Rbar) -> list R) x :
  0 < s -> (forall h, ascending m_infty (cuts h)) ->
  distribution (transcripts (fun h => cells m_infty (cuts h)) d) (discrete_gaussian_vector q s x).
Proof.
  intros Hs Up; apply run_distribution; intros h; apply rounded_discrete_distribution; auto.
Qed.

(** A vector of d whole numbers with l2 sensitivity Delta, each coordinate rounded to a grid of its
    own: Delta^2 / (2 s^2). *)
Theorem vector_discrete_gaussian_zcdp {D} (adj : D -> D -> Prop) (q : D -> nat -> Z) s Delta d
  (cuts : list (Rbar * Rbar) -> list R) :
  0 < s -> (forall h, ascending m_infty (cuts h)) ->
  sensitivity (V := euclidean d) adj (fun x i => IZR (q x i)) Delta ->
  zcdp adj (transcripts (fun h => cells m_infty (cuts h)) d) (discrete_gaussian_vector q s)
    (Delta * Delta / (2 * (s * s))).
Proof.
  intros Hs Up Hq alpha Ha x y Axy; specialize (Hq x y Axy).
  set (gap := fun i => IZR (q x i) - IZR (q y i)).
  set (rho := fun i => alpha * (gap i * gap i / (2 * (s * s)))).
  apply adaptive_filter with (cost := fun h => rho (length h)).
  - exact Ha.
  - intros h; apply rounded_discrete_distribution; auto.
  - intros h; apply rounded_discrete_distribution; auto.
  - intros h; apply discrete_gaussian_rdp; auto.
  - intros h Ih; rewrite spent_by_round, (transcripts_length _ _ _ Ih).
    set (u := sub (V := euclidean d) (fun i => IZR (q x i)) (fun i => IZR (q y i))) in *.
    assert (E : total (seq 0 d) rho = alpha * (inner u u / (2 * (s * s)))).
    { unfold rho; rewrite total_scal; f_equal; unfold Rdiv; rewrite total_scal_r; f_equal.
      apply total_ext; intros i _; unfold gap, u, sub; simpl; ring. }
    rewrite E, (Rmult_comm _ alpha); apply Rmult_le_compat_l; [lra|].
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|].
    rewrite <- norm_sq; pose proof (norm_pos u); nra.
Qed.
