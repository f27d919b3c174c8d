(** Means of vectors no two of which point apart, such as the second moments x x^T of records; and
    means of the records that are there, and minimisers over them, where one may be added or removed. *)

From Coq Require Import Reals Lra Lia List ZArith.
From Dpledger Require Import Sums Sensitivity.
Import ListNotations.
Open Scope R_scope.

Lemma acute_difference {V : Space} (C : R) (u v : V) :
  norm u <= C -> norm v <= C -> 0 <= inner u v -> norm (sub u v) <= sqrt 2 * C.
Proof.
  intros Hu Hv Acute; pose proof (norm_pos u) as Pu; pose proof (norm_pos v) as Pv.
  assert (H2 : sqrt 2 * sqrt 2 = 2) by (apply sqrt_sqrt; lra).
  apply norm_le; [apply Rmult_le_pos; [apply sqrt_pos|lra]|].
  assert (Square : forall w : V, norm w <= C -> 0 <= norm w -> inner w w <= C * C)
    by (intros w Hw Pw; rewrite <- norm_sq; apply Rmult_le_compat; assumption).
  unfold sub; rewrite inner_add, !inner_add_r, !inner_scale, !inner_scale_r.
  pose proof (Square u Hu Pu); pose proof (Square v Hv Pv).
  rewrite (inner_comm v u).
  replace (sqrt 2 * C * (sqrt 2 * C)) with (sqrt 2 * sqrt 2 * (C * C)) by ring; rewrite H2; lra.
Qed.

(** ** The mean of the records that are there *)

Section Present.

Context {X : Type} {V : Space} (f : X -> V) (count : positive).

Notation n := (IZR (Zpos count)).

(** Divided by how many there are, or by the number of them that is promised if there are fewer. *)
Definition mean_present (l : list X) : V := mean_over f (Rmax n (INR (length l))) l.

(** How far one of them is from the mean of others. *)
Lemma mean_present_sensitivity reach :
  (forall x, norm (f x) <= reach) ->
  (forall x l, 0 < INR (length l) -> norm (sub (f x) (mean f l)) <= reach) ->
  sensitivity add_remove_one mean_present (reach / n).
Proof.
  intros Alone Apart; assert (Hn : 0 < n) by (apply IZR_lt; lia).
  assert (Step : forall before after x,
            norm (sub (mean_present (before ++ x :: after)) (mean_present (before ++ after)))
              <= reach / n).
  { intros before after x; unfold mean_present; set (l := before ++ after).
    assert (E : length (before ++ x :: after) = S (length l))
      by (unfold l; rewrite !app_length; simpl; lia).
    assert (N : n = INR (Pos.to_nat count)) by (rewrite INR_IZR_INZ, positive_nat_Z; reflexivity).
    rewrite E; destruct (le_lt_dec (S (length l)) (Pos.to_nat count)) as [Few|Many].
    - apply le_INR in Few; rewrite <- N, S_INR in Few.
      rewrite !Rmax_left by (rewrite ?S_INR; lra).
      unfold mean_over, l; rewrite sub_scale, vsum_insert, norm_scale_inv by exact Hn.
      rewrite <- (add_zero_l (vsum f (before ++ after))) at 2.
      rewrite sub_add_sub, sub_diag, add_zero, sub_zero.
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Hn|apply Alone].
    - apply le_S_n in Many; apply le_INR in Many; rewrite <- N in Many.
      rewrite !Rmax_right by (rewrite ?S_INR; lra); rewrite <- E.
      fold (mean f (before ++ x :: after)); fold (mean f l).
      unfold l in *; rewrite mean_insert, norm_scale_inv by lra.
      unfold Rdiv; apply Rmult_le_compat; [apply norm_pos| |apply Apart; lra|].
      + left; apply Rinv_0_lt_compat; lra.
      + apply Rinv_le_contravar; lra. }
  intros l l' [before after x|before after x]; [|rewrite norm_sub_comm]; apply Step.
Qed.

(** 2C/n, as [mean_sensitivity_add_remove] has it of data sets of at least n records. *)
Theorem mean_present_add_remove C :
  (forall x, norm (f x) <= C) -> sensitivity add_remove_one mean_present (2 * C / n).
Proof.
  intros B; apply mean_present_sensitivity.
  - intros x; pose proof (norm_pos (f x)); specialize (B x); lra.
  - intros x l H; pose proof (norm_sub (f x) (mean f l)); pose proof (mean_norm f C B l H).
    specialize (B x); lra.
Qed.

End Present.

(** ** The minimiser over the records that are there *)

Section Minimiser.

Context {X : Type} {V : Space} (loss : X -> V -> R) (reg : V -> R) (G : R) (count : positive).
Hypothesis lipschitz : forall z y y', loss z y - loss z y' <= G * norm (sub y y').

Notation n := (IZR (Zpos count)).

(** Losses divided as [mean_present] divides. *)
Definition objective_present (l : list X) : V -> R :=
  objective loss reg (Rmax n (INR (length l))) l.

(** 2G/(lambda n) + 2 tau/lambda, as [argmin_sensitivity_add_remove] has it of data sets of at least
    n records. *)
Theorem argmin_present_add_remove (lam tau : R) (solve : list X -> V) :
  0 < lam -> 0 <= tau -> 0 <= G ->
  (forall l, near_minimum lam tau (objective_present l) (solve l)) ->
  sensitivity add_remove_one solve (2 * G / (lam * n) + 2 * tau / lam).
Proof.
  intros Hl Ht HG Near; assert (Hn : 0 < n) by (apply IZR_lt; lia).
  assert (Step : forall before after z,
            norm (sub (solve (before ++ z :: after)) (solve (before ++ after)))
              <= 2 * G / (lam * n) + 2 * tau / lam).
  { intros before after z.
    pose proof (Near (before ++ z :: after)) as N; pose proof (Near (before ++ after)) as N'.
    unfold objective_present in N, N'; set (l := before ++ after) in *.
    assert (E : length (before ++ z :: after) = S (length l))
      by (unfold l; rewrite !app_length; simpl; lia).
    assert (En : n = INR (Pos.to_nat count)) by (rewrite INR_IZR_INZ, positive_nat_Z; reflexivity).
    destruct (le_lt_dec (S (length l)) (Pos.to_nat count)) as [Few|Many].
    - apply le_INR in Few; rewrite <- En, S_INR in Few.
      rewrite E, Rmax_left in N by (rewrite S_INR; lra); rewrite Rmax_left in N' by lra.
      replace (2 * G / (lam * n)) with (2 * G / n / lam) by (field; lra).
      apply near_minimum_distance with (3 := N) (4 := N') || eapply near_minimum_distance; eauto.
      { apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, Hn]. }
      intros u u'; unfold objective, l; rewrite !total_app; cbn [total].
      apply Rmult_le_reg_r with (1 := Hn).
      replace (2 * G / n * norm (sub u u') * n) with (2 * G * norm (sub u u')) by (field; lra).
      pose proof (lipschitz z u u') as L; pose proof (norm_pos (sub u u')) as P.
      assert (0 <= G * norm (sub u u')) by (apply Rmult_le_pos; assumption).
      match goal with |- ?lhs <= _ => replace lhs with (loss z u - loss z u') by (field; lra) end.
      lra.
    - apply le_S_n in Many; apply le_INR in Many; rewrite <- En in Many.
      rewrite E, Rmax_right, <- E in N by (rewrite S_INR; lra); rewrite Rmax_right in N' by lra.
      apply (argmin_remove loss reg G lipschitz lam tau n before after z); assumption. }
  intros l l' [before after z|before after z]; [|rewrite norm_sub_comm]; apply Step.
Qed.

End Minimiser.

(** ** Vectors no two of which point apart *)

Section Nonnegative.

Context {X : Type} {V : Space} (f : X -> V) (C : R).
Hypotheses (bounded : forall x, norm (f x) <= C) (acute : forall x y, 0 <= inner (f x) (f y)).

(** Replace-one: sqrt(2) C / n, where the triangle inequality alone gives 2 C / n. *)
Theorem nonnegative_mean_sensitivity_replace n :
  0 < n -> sensitivity replace_one (mean_over f n) (sqrt 2 * C / n).
Proof.
  intros Hn ? ? [before after x y]; rewrite mean_replace, norm_scale_inv by exact Hn.
  apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Hn|apply acute_difference; auto].
Qed.

(** So with one record added or removed: the mean of the others does not point away from it. *)
Theorem nonnegative_mean_present_add_remove count :
  sensitivity add_remove_one (mean_present f count) (sqrt 2 * C / IZR (Zpos count)).
Proof.
  apply mean_present_sensitivity.
  - intros x; apply Rle_trans with (1 := bounded x); pose proof (norm_pos (f x)).
    specialize (bounded x); pose proof (sqrt_le_1_alt 1 2 ltac:(lra)) as R; rewrite sqrt_1 in R.
    nra.
  - intros x l H; apply acute_difference; [apply bounded|apply mean_norm; assumption|].
    unfold mean, mean_over; rewrite inner_scale_r.
    apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, H|clear H].
    induction l as [|y l IH]; simpl.
    { rewrite <- (scale_0 zero), inner_scale_r; lra. }
    rewrite inner_add_r; specialize (acute x y); lra.
Qed.

(** Counts of cells: two of them move by one, under add/remove one. *)
Theorem nonnegative_sum_sensitivity_replace : sensitivity replace_one (vsum f) (sqrt 2 * C).
Proof.
  intros ? ? [before after x y]; rewrite !vsum_insert, sub_add_sub, sub_diag, add_zero.
  apply acute_difference; auto.
Qed.

End Nonnegative.
