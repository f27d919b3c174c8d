(** Means of vectors no two of which point apart, such as the second moments x x^T of records. *)

From Coq Require Import Reals Lra List.
From Dpledger Require Import Sensitivity.
Open Scope R_scope.

Section Nonnegative.

Context {X : Type} {V : Space} (f : X -> V) (C n : R).
Hypotheses (bounded : forall x, norm (f x) <= C) (acute : forall x y, 0 <= inner (f x) (f y)).
Hypotheses (HC : 0 <= C) (Hn : 0 < n).

Lemma acute_difference x y : norm (sub (f x) (f y)) <= sqrt 2 * C.
Proof.
  assert (H2 : sqrt 2 * sqrt 2 = 2) by (apply sqrt_sqrt; lra).
  pose proof (sqrt_pos 2) as P2; apply norm_le; [apply Rmult_le_pos; assumption|].
  assert (Square : forall z, inner (f z) (f z) <= C * C).
  { intros z; rewrite <- norm_sq; pose proof (norm_pos (f z)); pose proof (bounded z).
    apply Rmult_le_compat; assumption. }
  unfold sub; rewrite inner_add, !inner_add_r, !inner_scale, !inner_scale_r.
  pose proof (Square x); pose proof (Square y); pose proof (acute x y).
  rewrite (inner_comm (f y) (f x)).
  replace (sqrt 2 * C * (sqrt 2 * C)) with (sqrt 2 * sqrt 2 * (C * C)) by ring; rewrite H2; lra.
Qed.

(** Replace-one: sqrt(2) C / n, where the triangle inequality alone gives 2 C / n. *)
Theorem nonnegative_mean_sensitivity_replace :
  sensitivity replace_one (mean_over f n) (sqrt 2 * C / n).
Proof.
  intros ? ? [before after x y]; rewrite mean_replace, norm_scale_inv by exact Hn.
  apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Hn|apply acute_difference].
Qed.

End Nonnegative.
