(** Vertically held data: what is released has a coordinate for each record, in a public order, and
    the number of records does not change. *)

From Coq Require Import Reals List Lra Lia Psatz PeanoNat.
From Coquelicot Require Import Rcomplements.
From Dpledger Require Import Sums Sensitivity.
Import ListNotations.
Open Scope R_scope.

(** A number for each record, by its place too; nothing beyond the last. *)
Definition by_record {X} (f : nat -> X -> R) (l : list X) (i : nat) : R :=
  match nth_error l i with Some x => f i x | None => 0 end.

Lemma by_record_at {X} f before (x : X) after :
  by_record f (before ++ x :: after) (length before) = f (length before) x.
Proof. unfold by_record; rewrite nth_error_app2, Nat.sub_diag by lia; reflexivity. Qed.

Lemma by_record_elsewhere {X} f before (x y : X) after i : i <> length before ->
  by_record f (before ++ x :: after) i = by_record f (before ++ y :: after) i.
Proof.
  intros N; unfold by_record; destruct (Nat.lt_ge_cases i (length before)).
  - rewrite !nth_error_app1 by assumption; reflexivity.
  - rewrite !nth_error_app2 by assumption.
    destruct (i - length before)%nat eqn:E; [lia|reflexivity].
Qed.

Lemma by_record_beyond {X} f (l : list X) i : (length l <= i)%nat -> by_record f l i = 0.
Proof. intros H; unfold by_record; apply nth_error_None in H; rewrite H; reflexivity. Qed.

(** A sum without one of its terms. *)
Definition but_one (k : nat) (f : nat -> R) (i : nat) : R := if Nat.eqb i k then 0 else f i.

Lemma total_but_one n k f :
  total (seq 0 n) f = total (seq 0 n) (but_one k f) + if Nat.ltb k n then f k else 0.
Proof.
  unfold but_one; induction n as [|n IH]; [simpl; ring|]; rewrite !total_seq_S, IH.
  destruct (Nat.eqb_spec n k) as [->|N].
  - rewrite Nat.ltb_irrefl; replace (k <? S k)%nat with true by (symmetry; apply Nat.ltb_lt; lia); ring.
  - destruct (Nat.ltb_spec k n), (Nat.ltb_spec k (S n)); try lia; ring.
Qed.

(** Coordinates beyond the last record are not there. *)
Lemma total_within d n f : (forall i, 0 <= f i) -> (forall i, (n <= i)%nat -> f i = 0) ->
  total (seq 0 d) f <= total (seq 0 n) f.
Proof.
  intros P Z; destruct (Nat.le_gt_cases d n).
  - replace n with (d + (n - d))%nat by lia; rewrite seq_app, total_app.
    pose proof (total_nonneg (seq (0 + d) (n - d)) f (fun i _ => P i)); lra.
  - replace d with (n + (d - n))%nat by lia; rewrite seq_app, total_app.
    rewrite (total_zero (seq (0 + n) (d - n))); [lra|].
    intros i I; apply in_seq in I; apply Z; lia.
Qed.

(** What neighbours move in coordinates of theirs, and by how much in the differing record's own. *)
Lemma moved_by_record {X} d (f g : nat -> X -> R) before (x y : X) after others own :
  let l := before ++ x :: after in
  let moved i := by_record f l i - by_record g (before ++ y :: after) i in
  total (seq 0 (length l)) (but_one (length before) (fun i => moved i * moved i)) <= others ->
  moved (length before) * moved (length before) <= own ->
  @inner (euclidean d) (sub (by_record f l : euclidean d) (by_record g (before ++ y :: after)))
    (sub (by_record f l : euclidean d) (by_record g (before ++ y :: after))) <= others + own.
Proof.
  cbv zeta; intros Others Own.
  assert (Same : length (before ++ x :: after) = length (before ++ y :: after))
    by (rewrite !app_length; reflexivity).
  eapply Rle_trans; [apply (total_within d (length (before ++ x :: after)))|].
  - intros i; apply Rle_0_sqr.
  - intros i I; unfold sub, add, scale, euclidean.
    rewrite (by_record_beyond f), (by_record_beyond g) by (rewrite <- ?Same; exact I); ring.
  - rewrite (total_but_one _ (length before)).
    replace (length before <? _)%nat with true
      by (symmetry; apply Nat.ltb_lt; rewrite app_length; simpl; lia).
    apply Rplus_le_compat; [eapply Rle_trans; [|exact Others]|eapply Rle_trans; [|exact Own]]; right.
    + apply total_ext; intros i _; unfold but_one; destruct (Nat.eqb i _); [reflexivity|].
      unfold sub, add, scale, euclidean; ring.
    + unfold sub, add, scale, euclidean; ring.
Qed.

(** ** Predictions of a minimiser that depends on all records *)

Section Predictions.

Context {X : Type} {V : Space} (row : X -> V) (pull : nat -> R) (penalty modulus : R)
  (regulariser : V -> R) (radius : R).

(** The prediction of each record at a point. *)
Definition predictions (l : list X) (x : V) : nat -> R := by_record (fun _ z => inner (row z) x) l.

(** What a record's prediction [p] costs. *)
Definition cost_at (i : nat) (p : R) : R := pull i * p + penalty / 2 * (p * p).

Definition ball_objective (l : list X) (x : V) : R :=
  total (seq 0 (length l)) (fun i => cost_at i (predictions l x i)) + regulariser x.

Definition minimises_on_ball (F : V -> R) (x : V) : Prop :=
  norm x <= radius /\ forall y, norm y <= radius -> F x <= F y.

Hypothesis convex : strongly_convex modulus regulariser.

Lemma predictions_between l x y t i :
  predictions l (add x (scale t (sub y x))) i
  = predictions l x i + t * (predictions l y i - predictions l x i).
Proof.
  unfold predictions, by_record; destruct (nth_error l i); [|ring].
  unfold sub; rewrite !inner_add_r, !inner_scale_r, inner_add_r, inner_scale_r; ring.
Qed.

Lemma between_in_ball (x y : V) t : norm x <= radius -> norm y <= radius -> 0 <= t <= 1 ->
  norm (add x (scale t (sub y x))) <= radius.
Proof.
  intros Hx Hy Ht.
  replace (add x (scale t (sub y x))) with (add (scale (1 - t) x) (scale t y)).
  - eapply Rle_trans; [apply norm_add|]; rewrite !norm_scale, !Rabs_right by lra; nra.
  - unfold sub; rewrite scale_add, scale_scale, (add_comm (scale t y)), add_assoc; f_equal.
    rewrite <- (scale_1 x) at 2; rewrite <- scale_plus; f_equal; ring.
Qed.

(** What a minimiser on the ball costs less than any other point of it. *)
Lemma growth_on_ball l x y : minimises_on_ball (ball_objective l) x -> norm y <= radius ->
  ball_objective l x
  + (penalty / 2 * total (seq 0 (length l)) (fun i =>
       (predictions l y i - predictions l x i) * (predictions l y i - predictions l x i))
     + modulus / 2 * inner (sub y x) (sub y x))
  <= ball_objective l y.
Proof.
  intros [Hx Least] Hy; set (gap := fun i => predictions l y i - predictions l x i).
  set (S := total (seq 0 (length l)) (fun i => gap i * gap i)).
  change (ball_objective l x + (penalty / 2 * S + modulus / 2 * inner (sub y x) (sub y x))
          <= ball_objective l y).
  set (n := inner (sub y x) (sub y x)); set (K := penalty / 2 * S + modulus / 2 * n).
  apply le_of_small with (b := K); intros t Ht.
  pose proof (Least _ (between_in_ball x y t Hx Hy ltac:(lra))) as L.
  pose proof (convex x y t ltac:(lra)) as C; fold n in C.
  unfold ball_objective at 2 in L.
  rewrite (total_ext _ _ (fun i => (1 - t) * cost_at i (predictions l x i)
             + (t * cost_at i (predictions l y i) - penalty / 2 * (t * (1 - t)) * (gap i * gap i)))) in L
    by (intros i _; rewrite predictions_between; unfold cost_at, gap; field).
  rewrite total_plus, total_minus, !total_scal in L; fold S in L.
  apply Rmult_le_reg_l with t; [lra|]; unfold K, ball_objective in *.
  set (A := total _ (fun i => cost_at i (predictions l x i))) in *.
  set (B := total _ (fun i => cost_at i (predictions l y i))) in *.
  lra.
Qed.

Variables bound slope : R.
Hypotheses (row_bounded : forall z, norm (row z) <= bound) (pull_bounded : forall i, Rabs (pull i) <= slope).
Hypotheses (Hb : 0 <= bound) (Hs : 0 <= slope) (Hr : 0 <= radius) (Hp : 0 < penalty) (Hm : 0 < modulus).

Let steepest := bound * (slope + penalty * bound * radius).

Lemma inner_within z (x : V) : Rabs (inner (row z) x) <= bound * norm x.
Proof.
  pose proof (norm_pos x); pose proof (row_bounded z); pose proof (cauchy_schwarz (row z) x) as C.
  pose proof (cauchy_schwarz (scale (-1) (row z)) x) as C'.
  rewrite inner_scale, norm_scale, Rabs_minus_1 in C'; apply Rabs_le; split; nra.
Qed.

Lemma prediction_within z (x : V) : norm x <= radius -> Rabs (inner (row z) x) <= bound * radius.
Proof. intros Hx; eapply Rle_trans; [apply inner_within|apply Rmult_le_compat_l; assumption]. Qed.

(** The slope of a record's cost, along the way from one point to another. *)
Lemma pulled_within z i (x e : V) : norm x <= radius ->
  Rabs ((pull i + penalty * inner (row z) x) * inner (row z) e) <= steepest * norm e.
Proof.
  intros Hx; rewrite Rabs_mult; unfold steepest.
  replace (bound * (slope + penalty * bound * radius) * norm e)
    with ((slope + penalty * (bound * radius)) * (bound * norm e)) by ring.
  apply Rmult_le_compat; try apply Rabs_pos; [|apply inner_within].
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult, (Rabs_right penalty) by lra.
  apply Rplus_le_compat; [apply pull_bounded|apply Rmult_le_compat_l; [lra|]].
  apply prediction_within, Hx.
Qed.

(** [share] of the second record: 1, or 0 where its row is null. *)
Lemma predictions_moved d before z z' after x x' share u :
  share = 1 \/ share = 0 /\ row z' = zero ->
  minimises_on_ball (ball_objective (before ++ z :: after)) x ->
  minimises_on_ball (ball_objective (before ++ z' :: after)) x' ->
  0 <= u -> steepest * steepest / (penalty * modulus) + 4 * (bound * bound * (radius * radius)) <= u * u ->
  norm (sub (predictions (before ++ z :: after) x : euclidean d) (predictions (before ++ z' :: after) x'))
    <= (1 + share) / 2 * u.
Proof.
  intros Share Min Min' Hu Us; set (k := length before).
  assert (Hc : 0 <= share) by lra.
  assert (Own' : forall y, norm y <= radius -> Rabs (inner (row z') y) <= share * (bound * radius)).
  { intros y Hy; destruct Share as [->|[-> ->]]; [rewrite Rmult_1_l; apply prediction_within, Hy|].
    rewrite <- (scale_0 zero), inner_scale, Rmult_0_l, Rabs_R0; lra. }
  assert (Pulled' : forall e, Rabs ((pull k + penalty * inner (row z') x') * inner (row z') e)
                              <= share * (steepest * norm e)).
  { intros e; destruct Share as [->|[-> ->]]; [rewrite Rmult_1_l; apply pulled_within, (proj1 Min')|].
    rewrite <- (scale_0 zero), !inner_scale, !Rmult_0_l, Rmult_0_r, Rabs_R0; lra. }
  set (l := before ++ z :: after) in *; set (l' := before ++ z' :: after) in *.
  assert (Same : length l' = length l) by (unfold l, l'; rewrite !app_length; reflexivity).
  assert (Ik : (k <? length l)%nat = true)
    by (apply Nat.ltb_lt; unfold l, k; rewrite app_length; simpl; lia).
  set (e := sub x x'); set (gap := fun i => predictions l x i - predictions l x' i).
  assert (Else : forall y i, i <> k -> predictions l' y i = predictions l y i)
    by (intros y i N; apply by_record_elsewhere, N).
  assert (At : forall y, predictions l y k = inner (row z) y /\ predictions l' y k = inner (row z') y)
    by (intros y; unfold predictions, l, l', k; rewrite !by_record_at; auto).
  assert (Moved : forall w, inner (row w) e = inner (row w) x - inner (row w) x')
    by (intros w; unfold e, sub; rewrite inner_add_r, inner_scale_r; ring).
  set (S := total (seq 0 (length l)) (but_one k (fun i => gap i * gap i))).
  assert (Fits : penalty * S + modulus * (norm e * norm e) <= (1 + share) * steepest * norm e).
  { pose proof (growth_on_ball l x x' Min (proj1 Min')) as G.
    pose proof (growth_on_ball l' x' x Min' (proj1 Min)) as G'.
    replace (inner (sub x' x) (sub x' x)) with (norm e * norm e) in G
      by (unfold e; rewrite norm_sub_comm, norm_sq; reflexivity).
    fold e in G'; rewrite <- norm_sq in G'.
    unfold ball_objective in G, G'; rewrite Same in G'.
    assert (Terms : total (seq 0 (length l)) (fun i =>
        cost_at i (predictions l x' i) - cost_at i (predictions l x i)
        + (cost_at i (predictions l' x i) - cost_at i (predictions l' x' i))
        - penalty / 2 * ((predictions l x' i - predictions l x i) * (predictions l x' i - predictions l x i)
                         + (predictions l' x i - predictions l' x' i) * (predictions l' x i - predictions l' x' i)))
      = - (penalty * S)
        + (- ((pull k + penalty * inner (row z) x) * inner (row z) e)
           + (pull k + penalty * inner (row z') x') * inner (row z') e)).
    { rewrite (total_but_one _ k), Ik; f_equal.
      - unfold S; rewrite Ropp_mult_distr_l, <- total_scal; apply total_ext; intros i _; unfold but_one.
        destruct (Nat.eqb_spec i k) as [|N]; [ring|].
        rewrite !Else by exact N; unfold gap, cost_at; field.
      - destruct (At x) as [-> ->], (At x') as [-> ->]; rewrite !Moved; unfold cost_at; field. }
    rewrite !total_minus, !total_plus, total_scal, !total_plus, !total_minus in Terms.
    pose proof (pulled_within z k x e (proj1 Min)) as P; apply Rabs_le_between in P.
    pose proof (Pulled' e) as P'; apply Rabs_le_between in P'.
    lra. }
  apply norm_le; [apply Rmult_le_pos; lra|].
  eapply Rle_trans; [apply (moved_by_record d _ _ before z z' after (S)
                              (((1 + share) * (bound * radius)) * ((1 + share) * (bound * radius))))|].
  - right; unfold S; fold l l' k; apply total_ext; intros i _; unfold but_one.
    destruct (Nat.eqb_spec i k) as [|N]; [reflexivity|].
    change (by_record (fun _ w => inner (row w) x) l i) with (predictions l x i).
    change (by_record (fun _ w => inner (row w) x') l' i) with (predictions l' x' i).
    rewrite Else by exact N; reflexivity.
  - fold l l' k.
    change (by_record (fun _ w => inner (row w) x) l k) with (predictions l x k).
    change (by_record (fun _ w => inner (row w) x') l' k) with (predictions l' x' k).
    rewrite (proj1 (At x)), (proj2 (At x')).
    pose proof (prediction_within z x (proj1 Min)) as P; apply Rabs_le_between in P.
    pose proof (Own' x' (proj1 Min')) as P'; apply Rabs_le_between in P'.
    apply neg_pos_Rsqr_le; lra.
  - assert (Sq : penalty * modulus * S <= ((1 + share) / 2 * steepest) * ((1 + share) / 2 * steepest)).
    { pose proof (Rle_0_sqr (modulus * norm e - (1 + share) / 2 * steepest)) as R; unfold Rsqr in R.
      apply Rmult_le_compat_l with (r := modulus) in Fits; [|lra]; nra. }
    assert (Pm : 0 < penalty * modulus) by (apply Rmult_lt_0_compat; assumption).
    apply Rmult_le_compat_l with (r := (1 + share) / 2 * ((1 + share) / 2)) in Us; [|nra].
    assert (S <= (1 + share) / 2 * ((1 + share) / 2) * (steepest * steepest / (penalty * modulus))).
    { apply Rmult_le_reg_l with (1 := Pm).
      replace (penalty * modulus * ((1 + share) / 2 * ((1 + share) / 2) * (steepest * steepest / (penalty * modulus))))
        with (((1 + share) / 2 * steepest) * ((1 + share) / 2 * steepest)) by (field; lra).
      exact Sq. }
    nra.
Qed.

Variables (minimiser solve : list X -> V) (d : nat) (u v tolerance : R).
Hypotheses (minimises_it : forall l, minimises_on_ball (ball_objective l) (minimiser l))
  (close : forall l, norm (sub (predictions l (solve l) : euclidean d) (predictions l (minimiser l)))
                     <= tolerance / (2 * sqrt (penalty * modulus)))
  (Hu : 0 <= u) (Hv : 0 <= v)
  (Us : steepest * steepest / (penalty * modulus) + 4 * (bound * bound * (radius * radius)) <= u * u)
  (Vs : tolerance * tolerance / (penalty * modulus) <= v * v).

Lemma solved_sensitivity adj s :
  sensitivity (V := euclidean d) adj (fun l => predictions l (minimiser l)) s ->
  sensitivity (V := euclidean d) adj (fun l => predictions l (solve l)) (s + v).
Proof.
  intros S; assert (Pm : 0 < penalty * modulus) by (apply Rmult_lt_0_compat; assumption).
  pose proof (sqrt_lt_R0 _ Pm) as Root; pose proof (sqrt_sqrt _ (Rlt_le _ _ Pm)) as Sq.
  apply sensitivity_weaken with (s + 2 * (tolerance / (2 * sqrt (penalty * modulus)))).
  - apply sensitivity_rounding with (fun l => predictions l (minimiser l)); assumption.
  - apply Rplus_le_compat_l.
    replace (2 * (tolerance / (2 * sqrt (penalty * modulus)))) with (tolerance / sqrt (penalty * modulus))
      by (field; lra).
    apply Rsqr_incr_0_var; [|exact Hv]; unfold Rsqr; eapply Rle_trans; [|exact Vs]; right.
    rewrite <- Sq at 3; field; lra.
Qed.

Theorem predictions_sensitivity_replace :
  sensitivity (V := euclidean d) replace_one (fun l => predictions l (solve l)) (u + v).
Proof.
  apply solved_sensitivity; intros ? ? [before after z z'].
  replace u with ((1 + 1) / 2 * u) by field; apply predictions_moved; auto.
Qed.

Theorem predictions_sensitivity_zero_out null : row null = zero ->
  sensitivity (V := euclidean d) (zero_out_one null) (fun l => predictions l (solve l)) (u / 2 + v).
Proof.
  intros Hz; apply solved_sensitivity; replace (u / 2) with ((1 + 0) / 2 * u) by field.
  intros ? ? [before after z|before after z]; [|rewrite norm_sub_comm]; apply predictions_moved; auto.
Qed.

End Predictions.

(** ** One number a record, of which labels are all that is private *)

Section LabelDual.

(** [slope x z]: of the loss of a record, convex, at a score. *)
Context {X : Type} (slope : X -> R -> R) (public : nat -> R) (penalty gap bound tolerance : R)
  (exact solve : nat -> X -> R).

Hypotheses (rises : forall x z z', z <= z' -> slope x z <= slope x z') (Hp : 0 < penalty)
  (solves : forall i x, exists z, exact i x = slope x z /\ exact i x + penalty * z = public i)
  (close : forall i x, Rabs (solve i x - exact i x) <= tolerance).

Lemma dual_moved (d : nat) before x y after moved :
  Rabs (exact (length before) x - exact (length before) y) <= moved ->
  norm (sub (by_record solve (before ++ x :: after) : euclidean d) (by_record solve (before ++ y :: after)))
    <= moved + 2 * tolerance.
Proof.
  intros M; pose proof (close (length before) x) as C; pose proof (close (length before) y) as C'.
  apply Rabs_le_between in M, C, C'; apply norm_le; [lra|].
  rewrite <- (Rplus_0_l ((_ + _) * _)); apply moved_by_record; rewrite ?by_record_at.
  - right; apply total_zero; intros i _; unfold but_one; destruct (Nat.eqb_spec i (length before)) as [|N];
      [reflexivity|]; rewrite (by_record_elsewhere solve before x y after i N); ring.
  - apply neg_pos_Rsqr_le; lra.
Qed.

Theorem dual_sensitivity_replace (d : nat) : (forall x y z, Rabs (slope x z - slope y z) <= gap) ->
  sensitivity (V := euclidean d) replace_one (by_record solve) (gap + 2 * tolerance).
Proof.
  intros Near ? ? [before after x y]; apply dual_moved.
  assert (Half : forall i a b, exact i a - exact i b <= gap).
  { intros i a b; destruct (solves i a) as (z & E & F), (solves i b) as (z' & E' & F').
    pose proof (Near a b z') as N; apply Rabs_le_between in N.
    destruct (Rle_dec (exact i a) (exact i b)); [pose proof (Near a b z); pose proof (Rabs_pos (slope a z - slope b z)); lra|].
    assert (z <= z') by nra; pose proof (rises a z z' H); lra. }
  apply Rabs_le; split; [|apply Half]; pose proof (Half (length before) y x); lra.
Qed.

Theorem dual_sensitivity_zero_out (d : nat) null : (forall x z, Rabs (slope x z) <= bound) ->
  (forall z, slope null z = 0) ->
  sensitivity (V := euclidean d) (zero_out_one null) (by_record solve) (bound + 2 * tolerance).
Proof.
  intros Bd Hz.
  assert (Own : forall i x, Rabs (exact i x - exact i null) <= bound).
  { intros i x; destruct (solves i x) as (z & -> & _), (solves i null) as (z' & -> & _).
    rewrite Hz, Rminus_0_r; apply Bd. }
  intros ? ? [before after x|before after x]; [|rewrite norm_sub_comm]; apply dual_moved, Own.
Qed.

End LabelDual.
