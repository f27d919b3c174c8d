(** A record replaced in a Poisson sample, of a mechanism of which more is known than what replacing
    a record that it sees does: what one record more does, by itself. A record that was drawn is
    beside its replacement, and beside nothing. *)

From Coq Require Import Reals List Lra Psatz.
From Dpledger Require Import Sums Finite Domination Sensitivity PoissonSampling BatchSampling.
Import ListNotations.
Open Scope R_scope.

(** Of what a record that was drawn does, a share [s] is told from its replacement ([F]), and the rest
    from nothing in its place ([F1]). Any share gives a bound. *)
Definition exchanged (r s : R) (F F1 : R -> R -> R) (a b : R) : R :=
  F (s * a * r) (b * r) + F1 ((1 - s) * a * r) ((b - a) * (1 - r)).

Section Exchanged.

Context {A : Type} (l : list A) (r s : R) (F F1 : R -> R -> R).
Hypothesis Hr : 0 <= r <= 1.
Hypothesis Hs : 0 <= s <= 1.

Lemma exchanged_beside u v w a b :
  below_profile l u v F -> below_profile l u w F1 -> 0 <= a <= b ->
  excess l (sampled r u w) (sampled r v w) a b <= exchanged r s F F1 a b.
Proof.
  intros Buv Buw Hab.
  apply Rle_trans with (excess l u v (s * a * r) (b * r)
                        + excess l u w ((1 - s) * a * r) ((b - a) * (1 - r))).
  - unfold excess; rewrite <- total_plus; apply total_le; intros y _.
    unfold plus_part at 1; apply Rmax_lub.
    + apply Rplus_le_le_0_compat; apply plus_part_nonneg.
    + eapply Rle_trans; [|apply Rplus_le_compat; apply plus_part_ge].
      right; unfold sampled; ring.
  - apply Rplus_le_compat; [apply Buv|apply Buw]; repeat apply Rmult_le_pos; lra.
Qed.

Lemma exchanged_turned u v w :
  distribution l u -> distribution l v -> distribution l w ->
  below_profile l u v F -> below_profile l v u F -> below_profile l u w F1 -> below_profile l v w F1 ->
  below_profile l (sampled r u w) (sampled r v w) (turned (exchanged r s F F1)).
Proof.
  intros Du Dv Dw Buv Bvu Buw Bvw.
  apply turned_below; [apply sampled_distribution; auto|apply sampled_distribution; auto|].
  intros a b H; split; apply exchanged_beside; auto.
Qed.

(** Domination of a sampled mechanism of which a record is replaced. *)
Theorem poisson_replaced {X} (M : list X -> A -> R) x y :
  (forall sample, distribution l (M sample)) ->
  (forall t t', replace_one t t' -> below_profile l (M t) (M t') F) ->
  (forall t t', add_remove_one t t' -> below_profile l (M t) (M t') F1) ->
  replace_one x y ->
  below_profile l (on_sample r M x) (on_sample r M y) (turned (exchanged r s F F1)).
Proof.
  intros DM Replaced One [before after z z'] a b Ha Hb; eapply Rle_trans.
  { right; apply total_ext; intros m _; rewrite !on_sample_with by exact Hr; reflexivity. }
  apply (below_profile_mixture (around r before after) around_weight l
           (around_distribution r Hr before after)
           (fun ba => sampled r (M (fst (fst ba) ++ z :: fst (snd ba))) (M (fst (fst ba) ++ fst (snd ba))))
           (fun ba => sampled r (M (fst (fst ba) ++ z' :: fst (snd ba))) (M (fst (fst ba) ++ fst (snd ba)))));
    try assumption.
  intros ba _; apply exchanged_turned; auto; first [apply Replaced|apply One]; constructor.
Qed.

End Exchanged.
