(** How heavy whole numbers are, about a point, when z - t weighs exp(-(z - t)^2 / (2 s^2)): no
    heavier than about a whole number.

    The kernel exp(-(x - y)^2 / (2 s^2)) is positive: for points 0, ..., n-1 with sign 1 and
    t, ..., t+n-1 with sign -1 this compares the two sums up to their ends, which matter less the
    larger n is. *)

From Coq Require Import Reals List Lra Lia Psatz ZArith.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite.
Import ListNotations.
Open Scope R_scope.

(** ** The kernel is positive *)

Lemma is_series_total {A} (l : list A) (f : A -> nat -> R) (g : A -> R) :
  (forall a, is_series (f a) (g a)) -> is_series (fun k => total l (fun a => f a k)) (total l g).
Proof.
  intros H; induction l as [|a l IH]; simpl.
  - apply is_series_Reals; intros e He; exists 0%nat; intros n _.
    assert (Z : sum_f_R0 (fun _ => 0) n = 0) by (induction n; simpl; lra).
    rewrite Z; unfold R_dist; rewrite Rminus_0_r, Rabs_R0; exact He.
  - apply (is_series_plus (f a) _ (g a) _ (H a) IH).
Qed.

Lemma is_series_nonneg (f : nat -> R) (l : R) : (forall k, 0 <= f k) -> is_series f l -> 0 <= l.
Proof.
  intros P H; rewrite <- (is_series_unique f l H); replace 0 with (Series (fun k => 0 * f k)).
  - apply Series_le; [intros k; specialize (P k); lra|exists l; exact H].
  - rewrite Series_scal_l; ring.
Qed.

Theorem gaussian_kernel_positive {A} (l : list A) (c x : A -> R) (a : R) :
  0 <= a ->
  0 <= total l (fun i => total l (fun j => c i * c j * exp (- a * ((x i - x j) * (x i - x j))))).
Proof.
  intros Ha; set (w := fun i => c i * exp (- a * (x i * x i))).
  set (term := fun i j k => w i * w j * ((2 * a * (x i * x j)) ^ k * / INR (fact k))).
  apply (is_series_nonneg (fun k => total l (fun i => total l (fun j => term i j k)))).
  - intros k.
    replace (total l _) with ((2 * a) ^ k * / INR (fact k)
      * (total l (fun i => w i * x i ^ k) * total l (fun i => w i * x i ^ k))).
    + pose proof (lt_0_INR _ (lt_O_fact k)) as F.
      apply Rmult_le_pos; [apply Rmult_le_pos|apply Rle_0_sqr].
      * apply pow_le; lra.
      * left; apply Rinv_0_lt_compat, F.
    + rewrite <- total_scal_r, <- total_scal; apply total_ext; intros i _.
      rewrite <- !total_scal; apply total_ext; intros j _.
      unfold term; rewrite !Rpow_mult_distr; ring.
  - apply is_series_total; intros i; apply is_series_total; intros j.
    pose proof (is_exp_Reals (2 * a * (x i * x j))) as E; unfold is_pseries in E.
    apply (is_series_scal (w i * w j)) in E.
    replace (c i * c j * _) with (scal (w i * w j) (exp (2 * a * (x i * x j)))).
    + apply is_series_ext with (2 := E); intros k; unfold term, scal; simpl; unfold mult; simpl.
      rewrite pow_n_pow; reflexivity.
    + unfold scal; simpl; unfold mult; simpl; unfold w.
      replace (- a * ((x i - x j) * (x i - x j)))
        with (- a * (x i * x i) + - a * (x j * x j) + 2 * a * (x i * x j)) by ring.
      rewrite !exp_plus; ring.
Qed.

(** ** Weights of whole numbers *)

Definition gaussian_weight (s x : R) : R := exp (- (x * x) / (2 * (s * s))).

(** Of x, x - 1, x - 2, ... *)
Definition weights_below (s x : R) : R := Series (fun k => gaussian_weight s (x - INR k)).

(** Of x + z for all whole z. *)
Definition all_weights (s x : R) : R := weights_below s x + weights_below s (- x - 1).

Section Weights.

Variable s : R.
Hypothesis s_positive : 0 < s.

Notation a := (/ (2 * (s * s))).
Notation w := (gaussian_weight s).

Lemma rate_pos : 0 < a.
Proof. apply Rinv_0_lt_compat; nra. Qed.

Lemma weight_pos x : 0 < w x.
Proof. apply exp_pos. Qed.

Lemma weight_opp x : w (- x) = w x.
Proof. unfold gaussian_weight; do 2 f_equal; ring. Qed.

(** (x - k)^2 >= k / 2 - x^2 for whole k. *)
Lemma weights_summable x : ex_series (fun k => w (x - INR k)).
Proof.
  pose proof rate_pos as A; set (q := exp (- (a / 2))).
  assert (Q : 0 < q < 1)
    by (split; [apply exp_pos|unfold q; rewrite <- exp_0; apply exp_increasing; lra]).
  apply (ex_series_le (V := R_CompleteNormedModule) _ (fun k => exp (a * (x * x)) * q ^ k)).
  - intros k; unfold norm; simpl; unfold abs; simpl; rewrite Rabs_right by (left; apply weight_pos).
    replace (q ^ k) with (exp (INR k * - (a / 2))).
    + unfold gaussian_weight; rewrite <- exp_plus; apply exp_le.
      assert (K : INR k <= INR k * INR k).
      { rewrite <- mult_INR; apply le_INR; nia. }
      replace (- ((x - INR k) * (x - INR k)) / (2 * (s * s)))
        with (- a * ((x - INR k) * (x - INR k))) by (field; lra).
      assert (H : 0 <= (x - INR k) * (x - INR k) + x * x - INR k / 2)
        by (pose proof (Rle_0_sqr (2 * x - INR k)) as S; unfold Rsqr in S; lra).
      apply (Rmult_le_pos a) in H; lra.
    + unfold q; induction k as [|k IH]; [simpl; rewrite Rmult_0_l; apply exp_0|].
      rewrite S_INR; simpl; rewrite <- IH, <- exp_plus; f_equal; ring.
  - apply (ex_series_scal (K := R_AbsRing) (V := R_NormedModule)).
    apply ex_series_geom; rewrite Rabs_right; lra.
Qed.

Lemma below_step x : weights_below s x = w x + weights_below s (x - 1).
Proof.
  unfold weights_below; rewrite Series_incr_1 by apply weights_summable.
  rewrite Rminus_0_r; f_equal; apply Series_ext; intros k; f_equal; rewrite S_INR; ring.
Qed.

Lemma below_nonneg x : 0 <= weights_below s x.
Proof.
  apply (is_series_nonneg (fun k => w (x - INR k))).
  - intros k; left; apply weight_pos.
  - apply Series_correct, weights_summable.
Qed.

Lemma below_pos x : 0 < weights_below s x.
Proof. rewrite below_step; pose proof (weight_pos x); pose proof (below_nonneg (x - 1)); lra. Qed.

Lemma weights_pos x : 0 < all_weights s x.
Proof. pose proof (below_pos x); pose proof (below_pos (- x - 1)); unfold all_weights; lra. Qed.

Lemma weights_opp x : all_weights s (- x) = all_weights s x.
Proof.
  unfold all_weights; rewrite (below_step x), (below_step (- x)), weight_opp.
  replace (- - x - 1) with (x - 1) by ring; ring.
Qed.

Lemma weights_step x : all_weights s (x - 1) = all_weights s x.
Proof.
  unfold all_weights; rewrite (below_step x), (below_step (- (x - 1) - 1)).
  replace (- (x - 1) - 1) with (- x) by ring; rewrite weight_opp; ring.
Qed.

(** The sum is the same from any whole number on. *)
Lemma weights_moved x (n : Z) : all_weights s (x - IZR n) = all_weights s x.
Proof.
  assert (Down : forall k y, all_weights s (y - INR k) = all_weights s y).
  { induction k as [|k IH]; intros y; [f_equal; simpl; ring|].
    rewrite S_INR, <- (IH y), <- (weights_step (y - INR k)); f_equal; ring. }
  destruct (Z_le_gt_dec 0 n) as [N|N].
  - rewrite <- (Z2Nat.id n N), <- INR_IZR_INZ; apply Down.
  - rewrite <- (Down (Z.to_nat (- n)) (x - IZR n)); f_equal.
    rewrite INR_IZR_INZ, Z2Nat.id, opp_IZR by lia; ring.
Qed.

Lemma weights_whole (n : Z) : all_weights s (IZR n) = all_weights s 0.
Proof. rewrite <- weights_opp, <- (Rminus_0_l (IZR n)); apply weights_moved. Qed.

(** *** Finitely many of them *)

Definition partial (n : nat) (x : R) : R := total (seq 0 n) (fun k => w (x - INR k)).

Lemma partial_below n x : partial n x <= weights_below s x.
Proof.
  revert x; induction n as [|n IH]; intros x; [apply below_nonneg|].
  rewrite below_step; unfold partial in *; cbn [seq total]; rewrite Rminus_0_r.
  apply Rplus_le_compat_l; eapply Rle_trans; [|apply (IH (x - 1))]; right.
  rewrite <- seq_shift, total_map; apply total_ext; intros k _; rewrite S_INR; f_equal; ring.
Qed.

Lemma partial_increasing m n x : (m <= n)%nat -> partial m x <= partial n x.
Proof.
  intros Le; induction Le as [|n _ IH]; [lra|].
  unfold partial in *; rewrite total_seq_S; pose proof (weight_pos (x - INR n)); lra.
Qed.

(** What no finitely many exceed, all do not. *)
Lemma below_limit x most : (forall n, partial n x <= most) -> weights_below s x <= most.
Proof.
  intros H; pose proof (Series_correct _ (weights_summable x)) as L.
  apply (is_lim_seq_le (sum_n (fun k => w (x - INR k))) (fun _ => most)
           (weights_below s x) most); [|exact L|apply is_lim_seq_const].
  intros n; eapply Rle_trans; [|apply (H (S n))]; right; unfold partial.
  induction n as [|n IH]; [rewrite sum_O; simpl; ring|].
  rewrite sum_Sn, total_seq_S, <- IH; reflexivity.
Qed.

Lemma total_from m n (f : nat -> R) : total (seq m n) f = total (seq 0 n) (fun k => f (m + k)%nat).
Proof.
  revert m; induction n as [|n IH]; intros m; [reflexivity|].
  rewrite total_seq_S, seq_S, total_app, IH; simpl; ring.
Qed.

Lemma total_reversed n (f : nat -> R) :
  total (seq 0 n) f = total (seq 0 n) (fun k => f (n - S k)%nat).
Proof.
  revert f; induction n as [|n IH]; intros f; [reflexivity|].
  rewrite total_seq_S; cbn [seq total]; rewrite (total_from 1), (IH f), Nat.sub_succ, Nat.sub_0_r.
  rewrite Rplus_comm; f_equal; apply total_ext; intros k I; apply in_seq in I; f_equal; lia.
Qed.

(** Of the distances from one of n points in a row to all of them, moved by t. *)
Lemma row_of_weights n i t : (i < n)%nat ->
  total (seq 0 n) (fun j => w (INR i - INR j - t))
    = partial (S i) t + partial (n - S i) (- t - 1).
Proof.
  intros I; replace n with (S i + (n - S i))%nat at 1 by lia.
  rewrite seq_app, total_app; unfold partial; f_equal.
  - rewrite total_reversed; apply total_ext; intros k K; apply in_seq in K.
    rewrite <- weight_opp; f_equal; rewrite Nat.sub_succ, minus_INR by lia; ring.
  - rewrite total_from; apply total_ext; intros k _; f_equal.
    rewrite Nat.add_0_l, plus_INR, S_INR; ring.
Qed.

(** The kernel's positivity, for both rows of points. *)
Lemma rows_compared n t :
  total (seq 0 n) (fun i => total (seq 0 n) (fun j => w (INR i - INR j - t)))
    <= total (seq 0 n) (fun i => total (seq 0 n) (fun j => w (INR i - INR j - 0))).
Proof.
  set (points := map (fun i => (INR i, 1)) (seq 0 n) ++ map (fun i => (INR i + t, -1)) (seq 0 n)).
  set (kernel := fun p q : R * R =>
    snd p * snd q * exp (- a * ((fst p - fst q) * (fst p - fst q)))).
  pose proof (gaussian_kernel_positive points snd fst a (Rlt_le _ _ rate_pos)) as P.
  change (0 <= total points (fun p => total points (kernel p))) in P.
  assert (Split : forall f, total points f
            = total (seq 0 n) (fun i => f (INR i, 1))
              + total (seq 0 n) (fun i => f (INR i + t, -1)))
    by (intros f; unfold points; rewrite total_app, !total_map; reflexivity).
  assert (K : forall x c y d, kernel (x, c) (y, d) = c * d * w (x - y))
    by (intros; unfold kernel, gaussian_weight; simpl; do 2 f_equal; field; lra).
  assert (Mirror : total (seq 0 n) (fun i => total (seq 0 n) (fun j => w (INR i + t - INR j)))
            = total (seq 0 n) (fun i => total (seq 0 n) (fun j => w (INR i - INR j - t)))).
  { rewrite total_swap; apply total_ext; intros j _; apply total_ext; intros i _.
    rewrite <- weight_opp; f_equal; ring. }
  assert (Row : forall x c, total points (kernel (x, c))
            = c * total (seq 0 n) (fun j => w (x - INR j - 0))
              - c * total (seq 0 n) (fun j => w (x - INR j - t))).
  { intros x c; rewrite Split, <- !total_scal, <- total_minus, <- total_plus.
    apply total_ext; intros j _; rewrite !K, Rminus_0_r.
    replace (x - (INR j + t)) with (x - INR j - t) by ring; ring. }
  rewrite Split, (total_ext _ (fun i => total points (kernel (INR i, 1))) _ (fun i _ => Row _ _)),
    (total_ext _ (fun i => total points (kernel (INR i + t, -1))) _ (fun i _ => Row _ _)) in P.
  rewrite !total_minus, !total_scal in P.
  rewrite (total_ext _ (fun i => total _ (fun j => w (INR i + t - INR j - 0)))
             (fun i => total (seq 0 n) (fun j => w (INR i + t - INR j)))) in P
    by (intros i _; apply total_ext; intros j _; f_equal; ring).
  rewrite (total_ext _ (fun i => total _ (fun j => w (INR i + t - INR j - t)))
             (fun i => total (seq 0 n) (fun j => w (INR i - INR j - 0)))) in P
    by (intros i _; apply total_ext; intros j _; f_equal; ring).
  rewrite Mirror in P; lra.
Qed.

(** No translate of the whole numbers is heavier. *)
Theorem weights_largest t : all_weights s t <= all_weights s 0.
Proof.
  assert (Part : forall k, partial k t + partial k (- t - 1) <= all_weights s 0).
  { intros k; apply Rnot_lt_le; intros Lt.
    set (part := partial k t + partial k (- t - 1)) in *; set (gap := part - all_weights s 0).
    assert (G : 0 < gap) by (unfold gap; lra).
    destruct (Rcomplements.nfloor_ex (Rmax 0 (2 * INR k * all_weights s 0 / gap)) (Rmax_l _ _))
      as (m' & _ & Hm').
    set (m := S m'); assert (Hm : 2 * INR k * all_weights s 0 < INR m * gap).
    { unfold m; rewrite S_INR; apply (Rmult_lt_reg_r (/ gap)); [apply Rinv_0_lt_compat, G|].
      rewrite (Rmult_assoc _ gap), Rinv_r, Rmult_1_r by lra.
      eapply Rle_lt_trans; [apply Rmax_r|exact Hm']. }
    set (n := (k + m + k)%nat); pose proof (rows_compared n t) as C.
    assert (Up : total (seq 0 n) (fun i => total (seq 0 n) (fun j => w (INR i - INR j - 0)))
                 <= INR n * all_weights s 0).
    { replace (INR n * all_weights s 0) with (total (seq 0 n) (fun _ => all_weights s 0))
        by (rewrite total_const, seq_length; reflexivity).
      apply total_le; intros i I; apply in_seq in I; rewrite row_of_weights by lia.
      apply Rplus_le_compat; apply partial_below. }
    assert (Down : INR m * part
                   <= total (seq 0 n) (fun i => total (seq 0 n) (fun j => w (INR i - INR j - t)))).
    { replace (INR m * part) with (total (seq (0 + k) m) (fun _ => part))
        by (rewrite total_const, seq_length; reflexivity).
      unfold n at 1; rewrite !seq_app, !total_app.
      assert (Pos : forall l,
                0 <= total l (fun i => total (seq 0 n) (fun j => w (INR i - INR j - t)))).
      { intros l; apply total_nonneg; intros i _; apply total_nonneg; intros j _.
        left; apply weight_pos. }
      assert (Middle : total (seq (0 + k) m) (fun _ => part)
                <= total (seq (0 + k) m) (fun i =>
                     total (seq 0 n) (fun j => w (INR i - INR j - t)))).
      { apply total_le; intros i I; apply in_seq in I; rewrite row_of_weights by lia.
        apply Rplus_le_compat; apply partial_increasing; lia. }
      pose proof (Pos (seq 0 k)); pose proof (Pos (seq (0 + (k + m)) k)); lra. }
    replace (INR n) with (INR k + INR m + INR k) in Up by (unfold n; rewrite !plus_INR; ring).
    unfold gap in Hm; nra. }
  unfold all_weights at 1.
  enough (H : weights_below s t <= all_weights s 0 - weights_below s (- t - 1)) by lra.
  apply below_limit; intros k.
  enough (H : weights_below s (- t - 1) <= all_weights s 0 - partial k t) by lra.
  apply below_limit; intros k'.
  pose proof (partial_increasing k (Nat.max k k') t ltac:(lia)).
  pose proof (partial_increasing k' (Nat.max k k') (- t - 1) ltac:(lia)).
  specialize (Part (Nat.max k k')); lra.
Qed.

End Weights.
