(** Rounding: how far what doubles hold may be from the numbers that they stand for, in the standard
    model of floating-point arithmetic (Higham 2002, Accuracy and Stability of Numerical Algorithms,
    sections 2.2, 3.1 and 4.2): a sum or a difference is off by at most u of its size, a product or
    a quotient by that and by what underflows.

    Nothing is said of how numbers are represented; no premise is about data. *)

From Coq Require Import Reals List Lra Lia Psatz.
From Dpledger Require Import Sums Sensitivity.
Import ListNotations.
Open Scope R_scope.

Definition roundoff : R := / IZR (2 ^ 53).
Definition underflow : R := / 2 ^ 1074.

Definition rounds (exact held : R) : Prop := Rabs (held - exact) <= roundoff * Rabs exact.
Definition rounds_product (exact held : R) : Prop :=
  Rabs (held - exact) <= roundoff * Rabs exact + underflow / 2.

Lemma roundoff_pos : 0 < roundoff.
Proof. unfold roundoff; apply Rinv_0_lt_compat, IZR_lt; reflexivity. Qed.

Lemma underflow_pos : 0 < underflow.
Proof. unfold underflow; apply Rinv_0_lt_compat, pow_lt; lra. Qed.

(** ** Sums *)

(** [summed n ts y]: y is what a program holds that adds the products [ts], in any order, so that no
    number goes through more than n operations. A product that is fused into an addition errs less
    than the model allows. *)
Inductive summed : nat -> list R -> R -> Prop :=
  | summed_term t y : rounds_product t y -> summed 1 [t] y
  | summed_plus n ts us y z w :
      summed n ts y -> summed n us z -> rounds (y + z) w -> summed (S n) (ts ++ us) w
  | summed_deeper n m ts y : (n <= m)%nat -> summed n ts y -> summed m ts y.

Definition sizes (ts : list R) : R := total ts Rabs.
Definition exactly (ts : list R) : R := total ts (fun t => t).

(** gamma_n = n u / (1 - n u). *)
Definition gamma_n (n : nat) : R := INR n * roundoff / (1 - INR n * roundoff).

(** Off by at most gamma_n times the sizes of the terms, and by so many underflows. *)
Definition sum_within (n lost : nat) (ts : list R) (y : R) : Prop :=
  Rabs (y - exactly ts) <= gamma_n n * sizes ts + INR lost * underflow.

Lemma growth_pos n : 1 <= (1 + roundoff) ^ n.
Proof. apply pow_R1_Rle; pose proof roundoff_pos; lra. Qed.

Lemma growth_bounded n : (1 + roundoff) ^ n * (1 - INR n * roundoff) <= 1.
Proof.
  pose proof roundoff_pos; induction n as [|n IH]; [simpl; lra|].
  rewrite S_INR; change ((1 + roundoff) ^ S n) with ((1 + roundoff) * (1 + roundoff) ^ n).
  pose proof (growth_pos n); pose proof (pos_INR n); nra.
Qed.

Lemma growth_gamma n : INR n * roundoff < 1 -> (1 + roundoff) ^ n - 1 <= gamma_n n.
Proof.
  intros Few; unfold gamma_n; pose proof (growth_bounded n).
  apply (Rmult_le_reg_r (1 - INR n * roundoff)); [lra|].
  replace (INR n * roundoff / (1 - INR n * roundoff) * (1 - INR n * roundoff)) with (INR n * roundoff)
    by (field; lra); lra.
Qed.

Lemma growth_two n : INR n * roundoff <= 1 / 2 -> (1 + roundoff) ^ n <= 2.
Proof. intros Few; pose proof (growth_bounded n); pose proof (growth_pos n); nra. Qed.

Lemma sizes_nonneg ts : 0 <= sizes ts.
Proof. apply total_nonneg; intros; apply Rabs_pos. Qed.

Lemma exactly_sizes ts : Rabs (exactly ts) <= sizes ts.
Proof.
  induction ts as [|t ts IH]; unfold exactly, sizes in *; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

(** What one more rounded operation adds to an error. *)
Lemma one_more_operation k a e y s w :
  1 <= k -> Rabs s <= a -> Rabs (y - s) <= (k - 1) * a + k * e -> 0 <= e ->
  Rabs (w - y) <= roundoff * Rabs y ->
  Rabs (w - s) <= ((1 + roundoff) * k - 1) * a + (1 + roundoff) * k * e.
Proof.
  intros K S E P W; pose proof roundoff_pos.
  assert (Y : Rabs y <= k * a + k * e).
  { replace y with ((y - s) + s) by ring.
    eapply Rle_trans; [apply Rabs_triang|lra]. }
  replace (w - s) with ((w - y) + (y - s)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]; nra.
Qed.

Lemma summed_error n ts y :
  summed n ts y ->
  Rabs (y - exactly ts)
  <= ((1 + roundoff) ^ n - 1) * sizes ts + (1 + roundoff) ^ n * (INR (length ts) * (underflow / 2)).
Proof.
  pose proof roundoff_pos; pose proof underflow_pos.
  induction 1 as [t y R|n ts us y z w _ IH _ IH' R|n m ts y Le _ IH].
  - unfold exactly, sizes, rounds_product in *; simpl.
    rewrite !Rplus_0_r, Rmult_1_r; pose proof (Rabs_pos t); nra.
  - unfold exactly, sizes in *; rewrite !total_app, app_length, plus_INR.
    change ((1 + roundoff) ^ S n) with ((1 + roundoff) * (1 + roundoff) ^ n).
    fold (sizes ts) (sizes us) (exactly ts) (exactly us) in *.
    apply one_more_operation with (y + z); [apply growth_pos| | |
      |unfold rounds in R; exact R].
    + eapply Rle_trans; [apply Rabs_triang|apply Rplus_le_compat; apply exactly_sizes].
    + replace (y + z - (exactly ts + exactly us)) with ((y - exactly ts) + (z - exactly us))
        by ring.
      eapply Rle_trans; [apply Rabs_triang|lra].
    + pose proof (pos_INR (length ts)); pose proof (pos_INR (length us)); nra.
  - pose proof (sizes_nonneg ts); pose proof (pos_INR (length ts)).
    assert ((1 + roundoff) ^ n <= (1 + roundoff) ^ m) by (apply Rle_pow; [lra|exact Le]).
    assert (0 <= INR (length ts) * (underflow / 2)) by nra.
    eapply Rle_trans; [exact IH|]; apply Rplus_le_compat; apply Rmult_le_compat_r; lra.
Qed.

(** A sum of products, in any order. *)
Theorem summed_within n ts y :
  INR n * roundoff <= 1 / 2 -> summed n ts y -> sum_within n (length ts) ts y.
Proof.
  intros Few S; apply summed_error in S; unfold sum_within.
  pose proof (growth_gamma n ltac:(lra)); pose proof (growth_two n Few).
  pose proof (sizes_nonneg ts); pose proof (pos_INR (length ts)); pose proof underflow_pos.
  eapply Rle_trans; [exact S|]; apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|].
  assert (0 <= INR (length ts) * underflow) by nra; nra.
Qed.

Lemma total_div ts c : exactly (map (fun t => t / c) ts) = exactly ts / c.
Proof.
  unfold exactly; rewrite total_map; unfold Rdiv; rewrite total_scal_r; reflexivity.
Qed.

Lemma sizes_div ts c : 0 < c -> sizes (map (fun t => t / c) ts) = sizes ts / c.
Proof.
  intros C; unfold sizes; rewrite total_map; unfold Rdiv; rewrite <- total_scal_r.
  apply total_ext; intros t _; rewrite Rabs_mult, (Rabs_right (/ c)); [reflexivity|].
  apply Rle_ge, Rlt_le, Rinv_0_lt_compat, C.
Qed.

(** A sum divided by at least the number of its terms: two products underflow, all told. *)
Theorem mean_within n ts y c z :
  INR (S n) * roundoff <= 1 / 2 -> summed n ts y -> 1 <= c -> INR (length ts) <= c ->
  rounds_product (y / c) z -> sum_within (S n) 2 (map (fun t => t / c) ts) z.
Proof.
  intros Few S C Many R; apply summed_error in S; unfold sum_within.
  rewrite total_div, sizes_div by lra.
  pose proof roundoff_pos; pose proof underflow_pos; pose proof (sizes_nonneg ts) as P.
  pose proof (growth_gamma (Datatypes.S n) ltac:(lra)) as G.
  pose proof (growth_two (Datatypes.S n) Few) as T.
  change ((1 + roundoff) ^ Datatypes.S n) with ((1 + roundoff) * (1 + roundoff) ^ n) in G, T.
  set (k := (1 + roundoff) ^ n) in *; assert (1 <= k) by apply growth_pos.
  assert (I : 0 < / c) by (apply Rinv_0_lt_compat; lra).
  assert (A : 0 <= sizes ts / c) by (unfold Rdiv; nra).
  pose proof (pos_INR (length ts)) as L.
  assert (Share : 0 <= INR (length ts) * (underflow / 2) / c <= underflow / 2).
  { split; [unfold Rdiv; apply Rmult_le_pos; [nra|lra]|].
    apply (Rmult_le_reg_r c); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    nra. }
  set (e := INR (length ts) * (underflow / 2) / c) in *.
  assert (Off : Rabs (y / c - exactly ts / c) <= (k - 1) * (sizes ts / c) + k * e).
  { replace (y / c - exactly ts / c) with ((y - exactly ts) / c) by (unfold Rdiv; ring).
    unfold Rdiv at 1; rewrite Rabs_mult, (Rabs_right (/ c)) by lra.
    apply (Rmult_le_compat_r (/ c)) in S; [|lra].
    eapply Rle_trans; [exact S|]; unfold e, Rdiv; apply Req_le; ring. }
  assert (Sz : Rabs (exactly ts / c) <= sizes ts / c).
  { unfold Rdiv; rewrite Rabs_mult, (Rabs_right (/ c)) by lra.
    apply Rmult_le_compat_r; [lra|apply exactly_sizes]. }
  assert (Y : Rabs (y / c) <= k * (sizes ts / c) + k * e).
  { replace (y / c) with ((y / c - exactly ts / c) + exactly ts / c) by ring.
    eapply Rle_trans; [apply Rabs_triang|lra]. }
  unfold rounds_product in R; replace (INR 2) with 2 by (simpl; ring).
  replace (z - exactly ts / c) with ((z - y / c) + (y / c - exactly ts / c)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Rabs (z - y / c) + Rabs (y / c - exactly ts / c)
          <= ((1 + roundoff) * k - 1) * (sizes ts / c) + ((1 + roundoff) * k * e + underflow / 2)) by nra.
  assert (((1 + roundoff) * k - 1) * (sizes ts / c) <= gamma_n (Datatypes.S n) * (sizes ts / c))
    by (apply Rmult_le_compat_r; lra).
  assert ((1 + roundoff) * k * e <= 2 * e) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.

(** ** Rows *)

Notation row_norm d x := (@norm (euclidean d) x).

Lemma row_norm_monotone d (z w : nat -> R) :
  (forall i, (i < d)%nat -> Rabs (z i) <= w i) -> row_norm d z <= row_norm d w.
Proof.
  intros H; unfold norm; apply sqrt_le_1_alt; simpl; apply total_le; intros i I.
  apply in_seq in I; specialize (H i ltac:(lia)); pose proof (Rabs_pos (z i)).
  replace (z i * z i) with (Rabs (z i) * Rabs (z i)) by (rewrite <- Rabs_mult, Rabs_right; nra).
  nra.
Qed.

Lemma row_norm_absolute d (x : nat -> R) : row_norm d (fun i => Rabs (x i)) = row_norm d x.
Proof.
  unfold norm; f_equal; simpl; apply total_ext; intros i _.
  rewrite <- Rabs_mult, Rabs_right; nra.
Qed.

Lemma row_norm_constant d c : 0 <= c -> row_norm d (fun _ => c) <= INR d * c.
Proof.
  intros C; pose proof (pos_INR d).
  apply norm_le; [nra|]; simpl; rewrite total_const, seq_length.
  destruct d as [|d]; [simpl; lra|].
  assert (1 <= INR (S d)) by (rewrite S_INR; pose proof (pos_INR d); lra).
  assert (0 <= INR (S d) * (c * c)) by nra; nra.
Qed.

Lemma row_off d (z x : nat -> R) k c :
  0 <= k -> 0 <= c -> (forall i, (i < d)%nat -> Rabs (z i) <= k * Rabs (x i) + c) ->
  row_norm d z <= k * row_norm d x + INR d * c.
Proof.
  intros K C H.
  eapply Rle_trans; [apply row_norm_monotone with (w := fun i => k * Rabs (x i) + c); exact H|].
  change (row_norm d (@add (euclidean d) (@scale (euclidean d) k (fun i => Rabs (x i))) (fun _ => c))
          <= k * row_norm d x + INR d * c).
  eapply Rle_trans; [apply norm_add|].
  rewrite norm_scale, (Rabs_right k), row_norm_absolute by lra.
  pose proof (row_norm_constant d c C); lra.
Qed.

(** Every entry rounded once: as a sum is, or as a product. *)
Lemma row_rounds d (x y : nat -> R) :
  (forall i, (i < d)%nat -> rounds (x i) (y i)) ->
  row_norm d (@sub (euclidean d) y x) <= roundoff * row_norm d x.
Proof.
  intros H; pose proof roundoff_pos.
  replace (roundoff * row_norm d x) with (roundoff * row_norm d x + INR d * 0) by ring.
  apply row_off; [lra|lra|]; intros i I; specialize (H i I); unfold rounds in H; simpl.
  replace (y i + -1 * x i) with (y i - x i) by ring; lra.
Qed.

Lemma row_rounds_product d (x y : nat -> R) :
  (forall i, (i < d)%nat -> rounds_product (x i) (y i)) ->
  row_norm d (@sub (euclidean d) y x) <= roundoff * row_norm d x + INR d * underflow.
Proof.
  intros H; pose proof roundoff_pos; pose proof underflow_pos.
  apply row_off; [lra|lra|]; intros i I; specialize (H i I); unfold rounds_product in H; simpl.
  replace (y i + -1 * x i) with (y i - x i) by ring; lra.
Qed.

(** Every entry a sum of its own terms. *)
Lemma row_of_sums d (terms : nat -> list R) (y : nat -> R) n lost size :
  0 <= gamma_n n -> (forall i, (i < d)%nat -> sum_within n lost (terms i) (y i)) ->
  row_norm d (fun i => sizes (terms i)) <= size ->
  row_norm d (@sub (euclidean d) y (fun i => exactly (terms i)))
  <= gamma_n n * size + INR d * (INR lost * underflow).
Proof.
  intros G H S; pose proof underflow_pos; pose proof (pos_INR lost).
  eapply Rle_trans; [apply row_off with (x := fun i => sizes (terms i)) (k := gamma_n n)
    (c := INR lost * underflow)|]; [exact G|nra| |].
  - intros i I; specialize (H i I); unfold sum_within in H; simpl.
    rewrite (Rabs_right (sizes _)) by apply Rle_ge, sizes_nonneg.
    replace (y i + -1 * exactly (terms i)) with (y i - exactly (terms i)) by ring; exact H.
  - apply Rplus_le_compat_r, Rmult_le_compat_l; assumption.
Qed.

(** Records' vectors, entry by entry: no longer than all of them end to end. *)
Lemma row_of_vectors d (vs : list (nat -> R)) bound :
  (forall v, In v vs -> row_norm d v <= bound) ->
  row_norm d (fun i => total vs (fun v => Rabs (v i))) <= INR (length vs) * bound.
Proof.
  induction vs as [|v vs IH]; intros H.
  - simpl; rewrite Rmult_0_l; unfold norm; apply Req_le; simpl.
    rewrite total_zero by (intros; ring); apply sqrt_0.
  - cbn [length total]; rewrite S_INR.
    change (row_norm d (@add (euclidean d) (fun i => Rabs (v i))
              (fun i => total vs (fun v => Rabs (v i)))) <= (INR (length vs) + 1) * bound).
    eapply Rle_trans; [apply norm_add|]; rewrite row_norm_absolute.
    specialize (IH (fun w I => H w (or_intror I))); pose proof (H v (or_introl eq_refl)); lra.
Qed.
