(** Event lists: parties hold disjoint parts of the data, every round may read the parts of any of
    them, and neighbours differ in the part of one. A record pays for the rounds that read its
    party's part and for no others. Rounds that read everybody's data are common to all parties;
    which round comes next, whom it reads and what it costs may depend on all messages so far. *)

From Coq Require Import Reals List Lra Lia.
From Dpledger Require Import Sums Finite Gaussian Pure GaussianDelta Domination GaussianComposition.
Import ListNotations.
Open Scope R_scope.

(** Neighbours: one party's part differs. *)
Definition differ_at {D} (adj : D -> D -> Prop) (j : nat) (x y : nat -> D) : Prop :=
  adj (x j) (y j) /\ forall i, i <> j -> x i = y i.

Lemma one_part_at {D} (adj : D -> D -> Prop) x y :
  one_part adj x y <-> exists j, differ_at adj j x y.
Proof. reflexivity. Qed.

Section Events.

Context {A D : Type} (adj : D -> D -> Prop) (outcomes : list A -> list A).
Variable law : (nat -> D) -> list A -> A -> R.
Hypothesis laws : forall x h, distribution (outcomes h) (law x h).

(** Whether the round after the history [h] reads the part of party [j]. *)
Variable reads : list A -> nat -> bool.
Hypothesis unread : forall h j x y,
  reads h j = false -> differ_at adj j x y -> forall a, In a (outcomes h) -> law x h a = law y h a.

(** What that round costs a record of party [j]. *)
Definition cost_to (cost : list A -> R) (j : nat) (h : list A) : R :=
  if reads h j then cost h else 0.

Lemma rdp_pair_ext {B} (l : list B) p q q' alpha eps :
  (forall b, In b l -> q b = q' b) -> rdp_pair l p q alpha eps -> rdp_pair l p q' alpha eps.
Proof.
  intros E [Hc Hm]; split.
  - intros b Ib Z; apply Hc; [exact Ib|rewrite E; assumption].
  - unfold moment in *; rewrite (total_ext l _ (fun b => renyi_term alpha (p b) (q b))); auto.
    intros b Ib; rewrite E; auto.
Qed.

(** Pure DP: no record's part meets more than the budget. *)
Theorem events_pure (budget : R) (cost : list A -> R) (T : nat) :
  (forall h j, reads h j = true ->
     pure (differ_at adj j) (outcomes h) (fun x => law x h) (cost h)) ->
  (forall j h, In h (transcripts outcomes T) -> spent (cost_to cost j) h <= budget) ->
  pure (one_part adj) (transcripts outcomes T) (fun x => run (law x)) budget.
Proof.
  intros H HB x y (j & Dj).
  apply (pure_filter (differ_at adj j) outcomes law (cost_to cost j)) with (T := T);
    [intros u h; apply laws| |apply HB|exact Dj].
  intros h; unfold cost_to; destruct (reads h j) eqn:E; [apply H, E|].
  intros u v Duv a Ia; rewrite exp_0, (unread h j u v E Duv a Ia); lra.
Qed.

(** At one order of Renyi DP. *)
Theorem events_rdp (alpha budget : R) (cost : list A -> R) (T : nat) :
  1 < alpha ->
  (forall h j x y, reads h j = true -> differ_at adj j x y ->
     rdp_pair (outcomes h) (law x h) (law y h) alpha (cost h)) ->
  (forall j h, In h (transcripts outcomes T) -> spent (cost_to cost j) h <= budget) ->
  rdp (one_part adj) (transcripts outcomes T) (fun x => run (law x)) alpha budget.
Proof.
  intros Ha H HB x y (j & Dj).
  apply adaptive_filter with (cost := cost_to cost j); auto.
  - intros h; apply laws.
  - intros h; apply laws.
  - intros h; unfold cost_to; destruct (reads h j) eqn:E; [apply (H h j); assumption|].
    apply rdp_pair_ext with (law x h); [intros a Ia; apply (unread h j); assumption|].
    apply rdp_pair_refl, laws.
Qed.

(** zCDP. [parallel_composition] is the case of one party a round and a fixed schedule. *)
Theorem events_zcdp (budget : R) (cost : list A -> R) (T : nat) :
  (forall h j x y alpha, 1 < alpha -> reads h j = true -> differ_at adj j x y ->
     rdp_pair (outcomes h) (law x h) (law y h) alpha (cost h * alpha)) ->
  (forall j h, In h (transcripts outcomes T) -> spent (cost_to cost j) h <= budget) ->
  zcdp (one_part adj) (transcripts outcomes T) (fun x => run (law x)) budget.
Proof.
  intros H HB alpha Ha; apply events_rdp with (cost := fun h => cost h * alpha);
    [exact Ha|intros h j x y; apply H, Ha|].
  intros j h Ih; replace (spent (cost_to (fun h => cost h * alpha) j) h)
    with (spent (cost_to cost j) h * alpha).
  - apply Rmult_le_compat_r; [lra|auto].
  - clear Ih; induction h as [|a h IH]; simpl; [ring|rewrite <- IH].
    unfold cost_to; destruct (reads h j); ring.
Qed.

Lemma below_profile_ext {B} (l : list B) p q q' F :
  (forall b, In b l -> q b = q' b) -> below_profile l p q F -> below_profile l p q' F.
Proof.
  intros E H a b Ha Hb; eapply Rle_trans; [|apply H; assumption].
  right; apply total_ext; intros y Iy; rewrite E; auto.
Qed.

(** A history that can be continued has spent no more than its continuations. *)
Lemma spent_before (cost : list A -> R) (budget : R) T :
  (forall h, 0 <= cost h) ->
  (forall h, exists a, In a (outcomes h)) ->
  (forall h, In h (transcripts outcomes T) -> spent cost h <= budget) ->
  forall t h, (t <= T)%nat -> In h (transcripts outcomes t) -> spent cost h <= budget.
Proof.
  intros Hc Ho HB t h Ht; replace t with (T - (T - t))%nat by lia.
  generalize (T - t)%nat as n; intros n; revert h; induction n as [|n IH]; intros h.
  - rewrite Nat.sub_0_r; apply HB.
  - destruct (Nat.le_gt_cases T n) as [L|L].
    + replace (T - S n)%nat with (T - n)%nat by lia; apply IH.
    + intros Ih; destruct (Ho h) as [a Ia]; pose proof (Hc h).
      assert (I : In (a :: h) (transcripts outcomes (T - n))).
      { replace (T - n)%nat with (S (T - S n)) by lia; simpl.
        apply in_flat_map; exists h; split; [exact Ih|].
        apply (in_map (fun b => b :: h)), Ia. }
      specialize (IH _ I); simpl in IH; lra.
Qed.

Lemma distribution_inhabited {B} (l : list B) p : distribution l p -> exists b, In b l.
Proof. intros [_ S]; destruct l as [|b l]; [simpl in S; lra|exists b; left; reflexivity]. Qed.

(** Gaussian DP, with costs mu^2: no record's part meets more than the budget, so the run lies
    below the profile of its root ... *)
Theorem events_gdp (budget : R) (cost : list A -> R) (T : nat) :
  (forall h, 0 <= cost h) ->
  (forall h j x y, reads h j = true -> differ_at adj j x y ->
     below_profile (outcomes h) (law x h) (law y h) (gaussian_profile (sqrt (cost h)))) ->
  (forall j h, In h (transcripts outcomes T) -> spent (cost_to cost j) h <= budget) ->
  forall x y, one_part adj x y ->
  below_profile (transcripts outcomes T) (run (law x)) (run (law y))
    (gaussian_profile (sqrt budget)).
Proof.
  intros Hc H HB x y (j & Dj).
  assert (Nn : forall h, 0 <= cost_to cost j h).
  { intros h; unfold cost_to; destruct (reads h j); [apply Hc|lra]. }
  apply gaussian_filter with (cost := cost_to cost j); auto.
  - intros h; unfold cost_to; destruct (reads h j) eqn:E; [apply (H h j); assumption|].
    apply below_profile_ext with (law x h); [intros a Ia; apply (unread h j); assumption|].
    rewrite sqrt_0; intros a b Ha Hb; rewrite excess_diag by apply laws.
    apply profile_ge; assumption.
  - apply spent_before; auto; intros h; apply (distribution_inhabited _ (law x h)), laws.
Qed.

(** ... and is (eps, delta)-DP with the exact delta of one Gaussian release at that mu. *)
Theorem events_gdp_dp (budget eps : R) (cost : list A -> R) (T : nat) :
  0 < budget -> (forall h, 0 <= cost h) ->
  (forall h j x y, reads h j = true -> differ_at adj j x y ->
     below_profile (outcomes h) (law x h) (law y h) (gaussian_profile (sqrt (cost h)))) ->
  (forall j h, In h (transcripts outcomes T) -> spent (cost_to cost j) h <= budget) ->
  dp (one_part adj) (transcripts outcomes T) (fun x => run (law x)) eps
    (gaussian_delta (sqrt budget) eps).
Proof.
  intros Hp Hc H HB; apply profile_dp; [apply sqrt_lt_R0, Hp|].
  apply events_gdp with (cost := cost); assumption.
Qed.

End Events.
