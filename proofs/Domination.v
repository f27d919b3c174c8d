(** Hockey-stick divergences and dominating pairs of mechanisms with finitely many outcomes.

    A pair (A, B) dominates (P, Q) when no hockey-stick divergence of (P, Q) exceeds that of (A, B)
    (Zhu, Dong and Wang 2022, Definition 7). Everything is proved in the homogeneous form
    sum_y (a P(y) - b Q(y))^+, which needs no division and is symmetric in what has already
    happened (a, b) and what comes next (P, Q). *)

From Coq Require Import Reals List Lra Lia Psatz Bool.
From Dpledger Require Import Sums Finite.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

Definition plus_part (x : R) : R := Rmax 0 x.

(** H_gamma(p || q) = sum_y (p(y) - gamma q(y))^+. *)
Definition hockey_stick {A} (gamma : R) (l : list A) (p q : A -> R) : R :=
  total l (fun y => plus_part (p y - gamma * q y)).

(** The same with a weight on each side. *)
Definition excess {A} (l : list A) (p q : A -> R) (a b : R) : R :=
  total l (fun y => plus_part (a * p y - b * q y)).

(** (A, B) on the atoms [k] dominates (p, q) on the outcomes [l]. *)
Definition dominates {K A} (k : list K) (A' B' : K -> R) (l : list A) (p q : A -> R) : Prop :=
  forall gamma, 0 <= gamma -> hockey_stick gamma l p q <= hockey_stick gamma k A' B'.

(** ... and of a mechanism, for every pair of neighbours. *)
Definition dominated {K A D} (adj : D -> D -> Prop) (k : list K) (A' B' : K -> R)
  (l : list A) (M : D -> A -> R) : Prop :=
  forall x y, adj x y -> dominates k A' B' l (M x) (M y).

(** [F a b] bounds the excess at every pair of weights: [F] is an upper bound on the privacy
    profile (Balle, Barthe and Gaboardi 2018), homogeneous in (a, b). Gaussian pairs, which no
    finite list holds, enter as such an F; a finite pair is F = its own excess. *)
Definition below_profile {A} (l : list A) (p q : A -> R) (F : R -> R -> R) : Prop :=
  forall a b, 0 <= a -> 0 <= b -> excess l p q a b <= F a b.

(** ** The positive part *)

Lemma plus_part_nonneg x : 0 <= plus_part x.
Proof. apply Rmax_l. Qed.

Lemma plus_part_ge x : x <= plus_part x.
Proof. apply Rmax_r. Qed.

Lemma plus_part_id x : 0 <= x -> plus_part x = x.
Proof. apply Rmax_right. Qed.

Lemma plus_part_0 x : x <= 0 -> plus_part x = 0.
Proof. apply Rmax_left. Qed.

Lemma plus_part_le x y : x <= y -> plus_part x <= plus_part y.
Proof. intros; apply Rle_max_compat_l; assumption. Qed.

Lemma plus_part_scal c x : 0 <= c -> plus_part (c * x) = c * plus_part x.
Proof.
  intros Hc; unfold plus_part, Rmax.
  destruct (Rle_dec 0 (c * x)), (Rle_dec 0 x); try nra.
Qed.

Lemma plus_part_total {A} (l : list A) f :
  plus_part (total l f) <= total l (fun a => plus_part (f a)).
Proof.
  apply Rmax_lub.
  - apply total_nonneg; intros; apply plus_part_nonneg.
  - apply total_le; intros; apply plus_part_ge.
Qed.

(** ** First laws *)

Section Laws.

Context {A : Type} (l : list A).

Lemma excess_nonneg p q a b : 0 <= excess l p q a b.
Proof. apply total_nonneg; intros; apply plus_part_nonneg. Qed.

Lemma hockey_stick_excess gamma p q : hockey_stick gamma l p q = excess l p q 1 gamma.
Proof. apply total_ext; intros; rewrite Rmult_1_l; reflexivity. Qed.

Lemma excess_scal c p q a b : 0 <= c -> excess l p q (c * a) (c * b) = c * excess l p q a b.
Proof.
  intros Hc; unfold excess; rewrite <- total_scal; apply total_ext; intros y _.
  rewrite <- plus_part_scal by exact Hc; f_equal; ring.
Qed.

Lemma excess_hockey_stick p q a b :
  0 < a -> excess l p q a b = a * hockey_stick (b / a) l p q.
Proof.
  intros Ha; rewrite hockey_stick_excess, <- excess_scal by lra; f_equal; field; lra.
Qed.

Lemma excess_zero p q b : nonneg l q -> 0 <= b -> excess l p q 0 b = 0.
Proof.
  intros Hq Hb; apply total_zero; intros y Iy; apply plus_part_0; specialize (Hq y Iy); nra.
Qed.

Lemma excess_le_mass p q a b :
  distribution l p -> nonneg l q -> 0 <= a -> 0 <= b -> excess l p q a b <= a.
Proof.
  intros [Hp S] Hq Ha Hb; rewrite <- (Rmult_1_r a) at 2; rewrite <- S, <- total_scal.
  apply total_le; intros y Iy; specialize (Hp y Iy); specialize (Hq y Iy).
  apply Rmax_lub; nra.
Qed.

(** Equal laws: (a - b)^+. *)
Lemma excess_diag p a b : distribution l p -> excess l p p a b = plus_part (a - b).
Proof.
  intros [Hp S]; rewrite <- (Rmult_1_r (plus_part _)), <- S, <- total_scal.
  apply total_ext; intros y Iy.
  rewrite (Rmult_comm (plus_part _)), <- plus_part_scal by auto; f_equal; ring.
Qed.

End Laws.

Lemma excess_convex {A} (l : list A) p q a t b b' :
  0 <= t <= 1 ->
  excess l p q a (t * b + (1 - t) * b') <= t * excess l p q a b + (1 - t) * excess l p q a b'.
Proof.
  intros Ht; unfold excess; rewrite <- !total_scal, <- total_plus; apply total_le; intros y _.
  apply Rmax_lub.
  - pose proof (plus_part_nonneg (a * p y - b * q y)).
    pose proof (plus_part_nonneg (a * p y - b' * q y)); nra.
  - pose proof (plus_part_ge (a * p y - b * q y)).
    pose proof (plus_part_ge (a * p y - b' * q y)); nra.
Qed.

Lemma below_profile_of_dominates {K A} (k : list K) A' B' (l : list A) p q :
  nonneg l q -> dominates k A' B' l p q -> below_profile l p q (excess k A' B').
Proof.
  intros Hq H a b [Ha|<-] Hb.
  - rewrite !excess_hockey_stick by exact Ha; apply Rmult_le_compat_l; [lra|]; apply H.
    unfold Rdiv; apply Rmult_le_pos; [exact Hb|left; apply Rinv_0_lt_compat, Ha].
  - rewrite excess_zero by assumption; apply excess_nonneg.
Qed.

Lemma dominates_of_below_profile {K A} (k : list K) A' B' (l : list A) p q :
  below_profile l p q (excess k A' B') -> dominates k A' B' l p q.
Proof.
  intros H gamma Hg; rewrite !hockey_stick_excess; apply H; lra.
Qed.

Lemma below_profile_weaken {A} (l : list A) p q (F G : R -> R -> R) :
  (forall a b, 0 <= a -> 0 <= b -> F a b <= G a b) ->
  below_profile l p q F -> below_profile l p q G.
Proof. intros H HF a b Ha Hb; eapply Rle_trans; [apply HF|apply H]; assumption. Qed.

Theorem dominates_refl {A} (l : list A) p q : dominates l p q l p q.
Proof. intros gamma _; lra. Qed.

(** A dominating pair may be replaced by a larger one. *)
Theorem dominates_trans {K L A} (k : list K) A1 B1 (k' : list L) A2 B2 (l : list A) p q :
  dominates k A1 B1 k' A2 B2 -> dominates k' A2 B2 l p q -> dominates k A1 B1 l p q.
Proof. intros H1 H2 gamma Hg; specialize (H1 gamma Hg); specialize (H2 gamma Hg); lra. Qed.

(** ** Every event *)

Theorem hockey_stick_event {A} (l : list A) p q gamma event :
  prob l p event - gamma * prob l q event <= hockey_stick gamma l p q.
Proof.
  unfold prob, hockey_stick; rewrite <- total_scal, <- total_minus; apply total_le; intros y _.
  destruct (event y); [apply plus_part_ge|].
  pose proof (plus_part_nonneg (p y - gamma * q y)); lra.
Qed.

(** The largest is attained: H_gamma is the exact delta at gamma = e^eps. *)
Theorem hockey_stick_attained {A} (l : list A) p q gamma :
  exists event, prob l p event - gamma * prob l q event = hockey_stick gamma l p q.
Proof.
  exists (fun y => if Rle_dec 0 (p y - gamma * q y) then true else false).
  unfold prob, hockey_stick; rewrite <- total_scal, <- total_minus; apply total_ext; intros y _.
  unfold plus_part, Rmax; destruct (Rle_dec 0 (p y - gamma * q y)); lra.
Qed.

Theorem dp_hockey_stick {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) eps delta :
  dp adj l M eps delta <->
  forall x y, adj x y -> hockey_stick (exp eps) l (M x) (M y) <= delta.
Proof.
  split; intros H x y Axy.
  - destruct (hockey_stick_attained l (M x) (M y) (exp eps)) as [event E].
    specialize (H x y Axy event); lra.
  - intros event; specialize (H x y Axy).
    pose proof (hockey_stick_event l (M x) (M y) (exp eps) event); lra.
Qed.

(** A dominated mechanism is as private as its pair. *)
Theorem dominated_dp {K A D} (adj : D -> D -> Prop) (k : list K) A' B'
  (l : list A) (M : D -> A -> R) eps delta :
  dominated adj k A' B' l M -> hockey_stick (exp eps) k A' B' <= delta -> dp adj l M eps delta.
Proof.
  intros H Hd; apply dp_hockey_stick; intros x y Axy.
  eapply Rle_trans; [apply H; [exact Axy|left; apply exp_pos]|exact Hd].
Qed.

(** ** Post-processing *)

Theorem excess_post_processing {A B} (l : list A) (l' : list B) (kernel : A -> B -> R) p q a b :
  (forall y, In y l -> distribution l' (kernel y)) ->
  excess l' (push l kernel p) (push l kernel q) a b <= excess l p q a b.
Proof.
  intros Hk; unfold excess.
  transitivity (total l' (fun z => total l (fun y => plus_part (a * p y - b * q y) * kernel y z))).
  - apply total_le; intros z Iz; unfold push; rewrite <- !total_scal, <- total_minus.
    eapply Rle_trans; [apply plus_part_total|]; apply total_le; intros y Iy.
    rewrite (Rmult_comm (plus_part _)), <- plus_part_scal by (apply Hk; assumption).
    right; f_equal; ring.
  - rewrite <- total_swap; right; apply total_ext; intros y Iy.
    rewrite total_scal; destruct (Hk y Iy) as [_ ->]; ring.
Qed.

Theorem dominates_post_processing {K A B} (k : list K) A' B' (l : list A) (l' : list B)
  (kernel : A -> B -> R) p q :
  (forall y, In y l -> distribution l' (kernel y)) ->
  dominates k A' B' l p q -> dominates k A' B' l' (push l kernel p) (push l kernel q).
Proof.
  intros Hk H gamma Hg; eapply Rle_trans; [|apply H; exact Hg].
  rewrite !hockey_stick_excess; apply excess_post_processing, Hk.
Qed.

(** ** Mixtures *)

Section Mixtures.

Context {S A : Type} (s : list S) (w : S -> R) (l : list A).
Hypothesis weights : distribution s w.

(** The law when [i] is drawn with probability [w i] and then an outcome from [p i]. *)
Definition mixture (p : S -> A -> R) (y : A) : R := total s (fun i => w i * p i y).

(** Joint convexity. *)
Theorem excess_mixture p q a b :
  excess l (mixture p) (mixture q) a b <= total s (fun i => w i * excess l (p i) (q i) a b).
Proof.
  unfold excess.
  transitivity (total l (fun y => total s (fun i => w i * plus_part (a * p i y - b * q i y)))).
  - apply total_le; intros y _; unfold mixture; rewrite <- !total_scal, <- total_minus.
    eapply Rle_trans; [apply plus_part_total|]; apply total_le; intros i Ii.
    rewrite <- plus_part_scal by (apply weights; exact Ii); right; f_equal; ring.
  - rewrite total_swap; right; apply total_ext; intros i _; rewrite total_scal; reflexivity.
Qed.

(** A secret draw that does not depend on the record costs nothing. *)
Theorem below_profile_mixture p q F :
  (forall i, In i s -> below_profile l (p i) (q i) F) -> below_profile l (mixture p) (mixture q) F.
Proof.
  intros H a b Ha Hb; eapply Rle_trans; [apply excess_mixture|].
  transitivity (total s (fun i => w i * F a b)).
  - apply total_le; intros i Ii; apply Rmult_le_compat_l; [apply weights, Ii|apply H; assumption].
  - rewrite total_scal_r; destruct weights as [_ ->]; lra.
Qed.

Theorem dominates_mixture {K} (k : list K) A' B' p q :
  (forall i, In i s -> nonneg l (q i)) ->
  (forall i, In i s -> dominates k A' B' l (p i) (q i)) ->
  dominates k A' B' l (mixture p) (mixture q).
Proof.
  intros Hq H; apply dominates_of_below_profile, below_profile_mixture; intros i Ii.
  apply below_profile_of_dominates; auto.
Qed.

End Mixtures.

(** ** Sampling: a record takes part with probability [r]

    [p] is the law when the record is in the sample, [q] when it is not (for a fixed draw of all
    other records; [dominates_mixture] averages over these). *)

Section Sampling.

Context {K A : Type} (k : list K) (A' B' : K -> R) (l : list A) (p q : A -> R) (r : R).
Hypotheses (Hr : 0 <= r <= 1).
Hypotheses (Dp : distribution l p) (Dq : distribution l q).
Hypotheses (DA : distribution k A') (DB : distribution k B').

Definition sampled {X} (u v : X -> R) (y : X) : R := r * u y + (1 - r) * v y.

Lemma hockey_stick_sampled_removal {X} (L : list X) u v gamma :
  distribution L u -> distribution L v ->
  hockey_stick gamma L (sampled u v) v
    = if Rle_dec (1 - r) gamma then excess L u v r (gamma - (1 - r)) else 1 - gamma.
Proof.
  intros [Hu Su] [Hv Sv]; destruct (Rle_dec (1 - r) gamma) as [G|G].
  - apply total_ext; intros y _; f_equal; unfold sampled; ring.
  - unfold hockey_stick; rewrite (total_ext _ _ (fun y => r * u y + (1 - r - gamma) * v y)).
    + rewrite total_plus, !total_scal, Su, Sv; ring.
    + intros y Iy; specialize (Hu y Iy); specialize (Hv y Iy).
      rewrite plus_part_id; unfold sampled; [ring|nra].
Qed.

Lemma hockey_stick_sampled_addition {X} (L : list X) u v gamma :
  distribution L u -> distribution L v -> 0 <= gamma ->
  hockey_stick gamma L v (sampled u v)
    = if Rle_dec (gamma * (1 - r)) 1 then excess L v u (1 - gamma * (1 - r)) (gamma * r) else 0.
Proof.
  intros [Hu Su] [Hv Sv] Hg; destruct (Rle_dec (gamma * (1 - r)) 1) as [G|G].
  - apply total_ext; intros y _; f_equal; unfold sampled; ring.
  - apply total_zero; intros y Iy; specialize (Hu y Iy); specialize (Hv y Iy).
    apply plus_part_0; unfold sampled.
    assert (0 <= gamma * r * u y) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= (gamma * (1 - r) - 1) * v y) by (apply Rmult_le_pos; lra); nra.
Qed.

(** With the record against without it: r A + (1 - r) B against B. *)
Theorem sampling_removal :
  dominates k A' B' l p q -> dominates k (sampled A' B') B' l (sampled p q) q.
Proof.
  intros H gamma Hg; rewrite !hockey_stick_sampled_removal by assumption.
  destruct (Rle_dec (1 - r) gamma) as [G|G]; [|lra].
  apply below_profile_of_dominates; try lra; [apply Dq|exact H].
Qed.

(** Without it against with it: B against r A + (1 - r) B, from domination in this direction. *)
Theorem sampling_addition :
  dominates k B' A' l q p -> dominates k B' (sampled A' B') l q (sampled p q).
Proof.
  intros H gamma Hg; rewrite !hockey_stick_sampled_addition by assumption.
  destruct (Rle_dec (gamma * (1 - r)) 1) as [G|G]; [|lra].
  apply below_profile_of_dominates; try lra; [apply Dp|exact H|nra].
Qed.

End Sampling.

(** The same for profiles, and on average over a hidden draw of all other records. *)

Definition removal_profile (r : R) (F : R -> R -> R) (a b : R) : R :=
  if Rle_dec (a * (1 - r)) b then F (a * r) (b - a * (1 - r)) else a - b.

Definition addition_profile (r : R) (F : R -> R -> R) (a b : R) : R :=
  if Rle_dec (b * (1 - r)) a then F (a - b * (1 - r)) (b * r) else 0.

(** The profile of laws that mirror each other. *)
Definition symmetric_profile (F : R -> R -> R) : Prop :=
  (forall c a b, 0 <= c -> 0 <= a -> 0 <= b -> F (c * a) (c * b) = c * F a b) /\
  (forall a b, 0 <= a -> 0 <= b -> F a b = a - b + F b a).

(** The other order of a sample, at the mirrored point. *)
Lemma addition_of_removal F r y :
  symmetric_profile F -> 0 <= r <= 1 -> 0 < y ->
  addition_profile r F 1 (/ y) = 1 - / y + / y * removal_profile r F 1 y.
Proof.
  intros [Scales Mirror] Hr Hy; assert (Iy : 0 < / y) by (apply Rinv_0_lt_compat, Hy).
  assert (One : y * / y = 1) by (field; lra).
  unfold addition_profile, removal_profile; rewrite !Rmult_1_l.
  destruct (Rle_dec (/ y * (1 - r)) 1) as [G|G], (Rle_dec (1 - r) y) as [K|K]; try nra.
  replace (1 - / y * (1 - r)) with (/ y * (y - (1 - r))) by (field; lra).
  rewrite Scales, (Mirror (y - (1 - r)) r) by lra; field; lra.
Qed.

Section SampledProfiles.

Context {S A : Type} (s : list S) (w : S -> R) (l : list A) (p q : S -> A -> R) (r : R).
Hypothesis weights : distribution s w.
Hypotheses (Hr : 0 <= r <= 1).
Hypotheses (Dp : forall i, distribution l (p i)) (Dq : forall i, distribution l (q i)).

Theorem sampling_removal_profile (F : R -> R -> R) :
  (forall i, In i s -> below_profile l (p i) (q i) F) ->
  below_profile l (mixture s w (fun i => sampled r (p i) (q i))) (mixture s w q)
    (removal_profile r F).
Proof.
  intros H; apply below_profile_mixture; [exact weights|]; intros i Ii a b Ha Hb.
  destruct (Dp i) as [Np Sp], (Dq i) as [Nq Sq].
  unfold removal_profile; destruct (Rle_dec (a * (1 - r)) b) as [G|G].
  - eapply Rle_trans; [|apply (H i Ii); [apply Rmult_le_pos; lra|lra]].
    right; apply total_ext; intros y _; f_equal; unfold sampled; ring.
  - right; unfold excess.
    rewrite (total_ext _ _ (fun y => a * r * p i y + (a * (1 - r) - b) * q i y)).
    + rewrite total_plus, !total_scal, Sp, Sq; ring.
    + intros y Iy; specialize (Np y Iy); specialize (Nq y Iy).
      rewrite plus_part_id; unfold sampled; [ring|].
      assert (0 <= a * r * p i y) by (repeat apply Rmult_le_pos; lra).
      assert (0 <= (a * (1 - r) - b) * q i y) by (apply Rmult_le_pos; lra); lra.
Qed.

Theorem sampling_addition_profile (F : R -> R -> R) :
  (forall i, In i s -> below_profile l (q i) (p i) F) ->
  below_profile l (mixture s w q) (mixture s w (fun i => sampled r (p i) (q i)))
    (addition_profile r F).
Proof.
  intros H; apply below_profile_mixture; [exact weights|]; intros i Ii a b Ha Hb.
  destruct (Dp i) as [Np Sp], (Dq i) as [Nq Sq].
  unfold addition_profile; destruct (Rle_dec (b * (1 - r)) a) as [G|G].
  - eapply Rle_trans; [|apply (H i Ii); [lra|apply Rmult_le_pos; lra]].
    right; apply total_ext; intros y _; f_equal; unfold sampled; ring.
  - right; apply total_zero; intros y Iy; specialize (Np y Iy); specialize (Nq y Iy).
    apply plus_part_0; unfold sampled.
    assert (0 <= b * r * p i y) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= (b * (1 - r) - a) * q i y) by (apply Rmult_le_pos; lra); lra.
Qed.

End SampledProfiles.

(** ** Adaptive composition *)

Lemma excess_pairs {A B} (l : list A) (l' : A -> list B) p q u v a b :
  excess (pairs l l') (joint p u) (joint q v) a b
    = total l (fun y => excess (l' y) (u y) (v y) (a * p y) (b * q y)).
Proof.
  unfold excess; rewrite total_pairs; apply total_ext; intros y _.
  apply total_ext; intros z _; unfold joint; simpl; f_equal; ring.
Qed.

(** The sums change places: what is left of a pair after the other has happened. *)
Lemma excess_swap {A B} (l : list A) (k : list B) p q c d a b :
  total l (fun y => excess k c d (a * p y) (b * q y))
    = total k (fun z => excess l p q (a * c z) (b * d z)).
Proof.
  unfold excess; rewrite total_swap; apply total_ext; intros z _.
  apply total_ext; intros y _; f_equal; ring.
Qed.

Section Composition.

Context {K L A B : Type} (k : list K) (A1 B1 : K -> R) (k' : list L) (A2 B2 : L -> R).
Context (l : list A) (l' : A -> list B) (p q : A -> R) (u v : A -> B -> R).
Hypotheses (Hp : nonneg l p) (Hq : nonneg l q) (Hv : forall y, In y l -> nonneg (l' y) (v y)).
Hypotheses (HA2 : nonneg k' A2) (HB2 : nonneg k' B2).

(** The first mechanism is dominated by (A1, B1) and, whatever it answers, the second by (A2, B2):
    the two together are dominated by the product (Zhu, Dong and Wang 2022, Theorem 10). *)
Theorem adaptive_domination :
  dominates k A1 B1 l p q ->
  (forall y, In y l -> dominates k' A2 B2 (l' y) (u y) (v y)) ->
  dominates (pairs k (fun _ => k')) (joint A1 (fun _ => A2)) (joint B1 (fun _ => B2))
    (pairs l l') (joint p u) (joint q v).
Proof.
  intros H1 H2; apply dominates_of_below_profile; intros a b Ha Hb; rewrite !excess_pairs.
  transitivity (total l (fun y => excess k' A2 B2 (a * p y) (b * q y))).
  - apply total_le; intros y Iy; apply below_profile_of_dominates; auto; apply Rmult_le_pos; auto.
  - rewrite (excess_swap l k'), (excess_swap k k'); apply total_le; intros z Iz.
    apply below_profile_of_dominates; auto; apply Rmult_le_pos; auto.
Qed.

End Composition.

(** ** A ledger of T adaptive rounds *)

Section Rounds.

Context {A : Type} (outcomes : list A -> list A).

Lemma excess_transcripts_S law law' T a b :
  excess (transcripts outcomes (S T)) (run law) (run law') a b
    = total (transcripts outcomes T)
        (fun h => excess (outcomes h) (law h) (law' h) (a * run law h) (b * run law' h)).
Proof.
  unfold excess; rewrite total_transcripts_S; apply total_ext; intros h _.
  apply total_ext; intros y _; simpl; f_equal; ring.
Qed.

Variables law law' : list A -> A -> R.
Hypothesis law_nonneg : forall h, nonneg (outcomes h) (law h).
Hypothesis law'_nonneg : forall h, nonneg (outcomes h) (law' h).

(** Backward induction: [F h] bounds what may still happen after the history [h]. Costs, pairs and
    their order may depend on every message: this is the filter for any kind of accounting. *)
Theorem adaptive_bound (F : list A -> R -> R -> R) (T : nat) :
  (forall h a b, In h (transcripts outcomes T) -> 0 <= a -> 0 <= b ->
     plus_part (a - b) <= F h a b) ->
  (forall t h a b, (t < T)%nat -> In h (transcripts outcomes t) -> 0 <= a -> 0 <= b ->
     total (outcomes h) (fun y => F (y :: h) (a * law h y) (b * law' h y)) <= F h a b) ->
  below_profile (transcripts outcomes T) (run law) (run law') (F []).
Proof.
  intros Leaf Step a b Ha Hb.
  assert (P : forall t h, In h (transcripts outcomes t) ->
            0 <= a * run law h /\ 0 <= b * run law' h).
  { intros t h I; split; apply Rmult_le_pos; try assumption;
      apply run_nonneg with (outcomes := outcomes) (T := t); assumption. }
  assert (B : forall t, (t <= T)%nat ->
            total (transcripts outcomes t) (fun h => F h (a * run law h) (b * run law' h))
            <= F [] a b).
  { induction t as [|t IH]; intros Ht; [simpl; rewrite !Rmult_1_r; lra|].
    eapply Rle_trans; [|apply IH; lia]; rewrite total_transcripts_S.
    apply total_le; intros h Ih; destruct (P t h Ih) as [Pa Pb].
    eapply Rle_trans; [|apply (Step t h _ _ ltac:(lia) Ih Pa Pb)].
    right; apply total_ext; intros y _; simpl; f_equal; ring. }
  eapply Rle_trans; [|apply (B T (le_n T))].
  apply total_le; intros h Ih; destruct (P T h Ih); apply Leaf; assumption.
Qed.

(** The pair of round t is fixed beforehand: T rounds are dominated by the product of T pairs. *)
Theorem ledger_domination {K} (atoms : nat -> list K) (A' B' : nat -> K -> R) (T : nat) :
  (forall t, nonneg (atoms t) (A' t)) -> (forall t, nonneg (atoms t) (B' t)) ->
  (forall h, dominates (atoms (length h)) (A' (length h)) (B' (length h))
               (outcomes h) (law h) (law' h)) ->
  dominates (transcripts (fun h => atoms (length h)) T)
    (run (fun h => A' (length h))) (run (fun h => B' (length h)))
    (transcripts outcomes T) (run law) (run law').
Proof.
  intros HA HB H; apply dominates_of_below_profile.
  induction T as [|T IH]; intros a b Ha Hb; [unfold excess; simpl; lra|].
  assert (Len : forall h, In h (transcripts (fun h => atoms (length h)) T) -> length h = T).
  { intros h I; exact (transcripts_length (fun h => atoms (length h)) T h I). }
  assert (E : excess (transcripts (fun h => atoms (length h)) (S T))
                (run (fun h => A' (length h))) (run (fun h => B' (length h))) a b
              = total (atoms T) (fun z => excess (transcripts (fun h => atoms (length h)) T)
                  (run (fun h => A' (length h))) (run (fun h => B' (length h)))
                  (a * A' T z) (b * B' T z))).
  { rewrite <- (excess_swap (transcripts (fun h => atoms (length h)) T) (atoms T)).
    unfold excess at 1; rewrite total_transcripts_S.
    apply total_ext; intros h Ih; rewrite (Len h Ih).
    apply total_ext; intros y _; simpl; rewrite (Len h Ih); f_equal; ring. }
  rewrite E, excess_transcripts_S; clear E.
  transitivity (total (transcripts outcomes T)
    (fun h => excess (atoms T) (A' T) (B' T) (a * run law h) (b * run law' h))).
  - apply total_le; intros h Ih; specialize (H h).
    rewrite (transcripts_length outcomes T h Ih) in H.
    apply below_profile_of_dominates; auto; apply Rmult_le_pos; auto;
      apply run_nonneg with (outcomes := outcomes) (T := T); assumption.
  - rewrite (excess_swap (transcripts outcomes T) (atoms T)).
    apply total_le; intros z Iz; apply IH; apply Rmult_le_pos; auto;
      [apply HA|apply HB]; exact Iz.
Qed.

End Rounds.

(** ... and so (eps, delta)-DP for every event of the whole transcript, with the delta of the
    product pair. *)
Theorem ledger_dp {A D K} (adj : D -> D -> Prop) (outcomes : list A -> list A)
  (law : D -> list A -> A -> R) (atoms : nat -> list K) (A' B' : nat -> K -> R) (T : nat)
  (eps delta : R) :
  (forall d h, distribution (outcomes h) (law d h)) ->
  (forall t, nonneg (atoms t) (A' t)) -> (forall t, nonneg (atoms t) (B' t)) ->
  (forall h, dominated adj (atoms (length h)) (A' (length h)) (B' (length h))
               (outcomes h) (fun d => law d h)) ->
  hockey_stick (exp eps) (transcripts (fun h => atoms (length h)) T)
    (run (fun h => A' (length h))) (run (fun h => B' (length h))) <= delta ->
  dp adj (transcripts outcomes T) (fun d => run (law d)) eps delta.
Proof.
  intros Hl HA HB H Hd; apply dominated_dp with (2 := Hd); intros x y Axy.
  apply ledger_domination; auto; intros h; try apply Hl; apply H; exact Axy.
Qed.
