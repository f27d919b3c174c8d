(** Claims: what follows from one, whatever run it is about, and what is true of all that a filter
    lets happen. *)

From Coq Require Import Reals List Bool Lia Lra Psatz QArith Qreals FMapPositive
  FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Conversion Finite Gaussian Pure GaussianDelta Sensitivity Domination
  GaussianComposition PoissonSampling Events Enclosure GaussianDecision Certificate Checker Operations Derivations.
Import ListNotations.
Open Scope R_scope.

(** ** One step of a relation, and two *)

Section Steps.

Context {X : Type} (null : X).

Lemma with_own_part (data : nat -> list X) j : with_part data j (data j) = data.
Proof.
  extensionality i; unfold with_part; destruct (Nat.eqb_spec i j) as [->|]; reflexivity.
Qed.

Lemma same_with_part (x y : nat -> list X) j : same_but j x y -> y = with_part x j (y j).
Proof.
  intros E; extensionality i; unfold with_part.
  destruct (Nat.eqb_spec i j) as [->|N]; [reflexivity|symmetry; apply E, N].
Qed.

Lemma one_step (r : relation) x y :
  group_neighbours null r 1 x y -> one_part (neighbours null r) x y.
Proof. intros (z & E & A); simpl in E; subst z; exact A. Qed.

Lemma one_in_group (r : relation) x y :
  one_part (neighbours null r) x y -> group_neighbours null r 1 x y.
Proof. intros N; exists x; split; [reflexivity|exact N]. Qed.

Lemma neighbours_sym r (x y : list X) : neighbours null r x y -> neighbours null r y x.
Proof. destruct r; intros []; constructor. Qed.

Lemma steps_first {D} (adj : D -> D -> Prop) k x y z : adj x y -> steps adj k y z -> steps adj (S k) x z.
Proof.
  intros A; revert z; induction k as [|k IH]; intros z; simpl.
  - intros <-; exists x; auto.
  - intros (w & S' & B); exists w; split; [apply IH, S'|exact B].
Qed.

Lemma steps_sym {D} (adj : D -> D -> Prop) k x y :
  (forall u v, adj u v -> adj v u) -> steps adj k x y -> steps adj k y x.
Proof.
  intros Sym; revert y; induction k as [|k IH]; intros y; [intros <-; reflexivity|].
  intros (z & S' & A); apply steps_first with z; auto.
Qed.

Lemma steps_mono {D} (adj adj' : D -> D -> Prop) k x y :
  (forall u v, adj u v -> adj' u v) -> steps adj k x y -> steps adj' k x y.
Proof.
  intros H; revert y; induction k as [|k IH]; intros y; [auto|].
  intros (z & S' & A); exists z; auto.
Qed.

Lemma loses_neighbours r (x y : list X) : r <> ReplaceOne -> loses null r x y -> neighbours null r x y.
Proof. intros Hr (before & z & after & -> & ->); destruct r; [congruence| |]; constructor. Qed.

(** Records at once are as many steps, ... *)
Lemma at_once_steps r size (x y : list X) :
  at_once null r size x y -> steps (neighbours null r) (Pos.to_nat size) x y.
Proof.
  destruct r; unfold at_once; auto; intros [S'|S'];
    [|apply steps_sym; [apply neighbours_sym|]| |apply steps_sym; [apply neighbours_sym|]];
    apply steps_mono with (2 := S'); intros; apply loses_neighbours; auto; discriminate.
Qed.

(** ... which may be those of one party; *)
Lemma with_part_steps {adj : list X -> list X -> Prop} j k (x y : nat -> list X) :
  steps adj k (x j) (y j) -> same_but j x y -> steps (differ_at adj j) k x y.
Proof.
  revert y; induction k as [|k IH]; intros y.
  - intros E Same; simpl in *; extensionality i; destruct (Nat.eq_dec i j) as [->|N]; auto.
  - intros (z & S' & A) Same; exists (with_part x j z); split.
    + apply IH; [rewrite with_part_own; exact S'|intros i N; rewrite with_part_other; auto].
    + split; [rewrite with_part_own; exact A|].
      intros i N; rewrite with_part_other by exact N; apply Same, N.
Qed.

Lemma unit_in_group r size x y : unit_neighbours null r size x y -> group_neighbours null r size x y.
Proof.
  intros (j & A & Same); apply at_once_steps in A.
  apply steps_mono with (adj := differ_at (neighbours null r) j); [intros u v D; exists j; exact D|].
  apply with_part_steps; assumption.
Qed.

(** one record is a neighbour. *)
Lemma one_in_unit r x y : one_part (neighbours null r) x y -> unit_neighbours null r 1 x y.
Proof.
  intros (j & A & Same); exists j; split; [|exact Same]; unfold at_once.
  destruct r; simpl in *.
  - exists (x j); auto.
  - inversion A as [before after z E1 E2|before after z E1 E2]; [left|right];
      eexists; (split; [reflexivity|exists before, z, after; auto]).
  - inversion A as [before after z E1 E2|before after z E1 E2]; [left|right];
      eexists; (split; [reflexivity|exists before, z, after; auto]).
Qed.

Lemma replaced_in_two r (x y : nat -> list X) :
  r <> ReplaceOne -> one_part replace_one x y -> steps (one_part (neighbours null r)) 2 x y.
Proof.
  intros Hr (j & A & E); inversion A as [before after a b Ex Ey].
  set (middle := match r with ZeroOutOne => before ++ null :: after | _ => before ++ after end).
  assert (A1 : neighbours null r (x j) middle /\ neighbours null r middle (y j)).
  { rewrite <- Ex, <- Ey; unfold middle; destruct r; [congruence| |]; split; constructor. }
  assert (Own : forall part, with_part x j part j = part)
    by (intros; unfold with_part; rewrite Nat.eqb_refl; reflexivity).
  assert (Other : forall part i, i <> j -> with_part x j part i = x i).
  { intros part i N; unfold with_part; destruct (Nat.eqb_spec i j); congruence. }
  exists (with_part x j middle); split; [exists x; split; [reflexivity|]|].
  - exists j; split; [rewrite Own; apply A1|intros i N; rewrite Other; auto].
  - exists j; split; [rewrite Own; apply A1|intros i N; rewrite Other; auto].
Qed.

End Steps.

(** ** Weaker claims *)

Lemma profile_larger mu mu' a b :
  0 <= mu <= mu' -> 0 <= a -> 0 <= b -> gaussian_profile mu a b <= gaussian_profile mu' a b.
Proof.
  intros [H0 H] Ha Hb; destruct H0 as [H0|<-].
  2:{ rewrite (profile_zero 0) by lra; apply profile_ge; assumption. }
  destruct Ha as [Ha|<-]; [|rewrite !profile_a0; lra].
  destruct Hb as [Hb|<-]; [|rewrite !profile_b0; lra].
  rewrite !profile_delta by lra; apply Rmult_le_compat_l; [lra|].
  apply gaussian_delta_increasing; lra.
Qed.

Lemma dp_weaken_epsilon {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) eps eps' delta :
  (forall d, distribution l (M d)) -> eps <= eps' -> dp adj l M eps delta -> dp adj l M eps' delta.
Proof.
  intros Dl H Hd x y Axy event; specialize (Hd x y Axy event).
  assert (0 <= prob l (M y) event).
  { apply total_nonneg; intros a Ia; destruct (event a); [apply Dl, Ia|lra]. }
  pose proof (exp_le eps eps' H); nra.
Qed.

(** At divergence 0, of any order, there is nothing to tell. *)
Theorem renyi_nothing {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) alpha tau delta :
  (forall d, distribution l (M d)) -> 1 < alpha -> tau <= 0 -> 0 < delta -> rdp adj l M alpha tau -> dp adj l M 0 delta.
Proof.
  intros Laws Ha Ht Hd H x y Axy event; destruct (H x y Axy) as [Cov Mom], (Laws x) as [Nx Sx], (Laws y) as [Ny Sy].
  set (s := ln (1 + delta) / alpha); assert (As : alpha * s = ln (1 + delta)) by (unfold s; field; lra).
  set (P := prob l (M x) event); set (Q := prob l (M y) event).
  assert (Part : forall d, 0 <= prob l (M d) event <= 1).
  { intros d; destruct (Laws d) as [N S]; split; [apply total_nonneg|rewrite <- S; apply total_le];
      intros a I; pose proof (N a I); destruct (event a); lra. }
  pose proof (Part x) as HP; pose proof (Part y) as HQ; fold P in HP; fold Q in HQ.
  (* a tangent at the ratio e^s for what is in the event, at 1 for the rest *)
  assert (T : (alpha * exp ((alpha - 1) * s) - alpha) * P + (alpha * total l (M x)
              + (- ((alpha - 1) * (1 + delta) - (alpha - 1)) * Q + - (alpha - 1) * total l (M y))) <= 1).
  { apply Rle_trans with (moment alpha l (M x) (M y)).
    2:{ eapply Rle_trans; [exact Mom|]; apply Rle_trans with (exp 0); [apply exp_le; nra|rewrite exp_0; lra]. }
    unfold P, Q, prob; rewrite <- !total_scal, <- !total_plus.
    apply total_le; intros a I.
    pose proof (renyi_term_tangent alpha (if event a then s else 0) (M x a) (M y a) Ha (Nx a I) (Ny a I) (Cov a I)) as Tan.
    destruct (event a); [rewrite As, exp_ln in Tan by lra|rewrite !Rmult_0_r, exp_0 in Tan]; lra. }
  rewrite Sx, Sy in T.
  assert (E1 : (alpha - 1) * s <= exp ((alpha - 1) * s) - 1) by (pose proof (exp_ineq1_le ((alpha - 1) * s)); lra).
  assert (Ls : delta <= ln (1 + delta) * (1 + delta)).
  { pose proof (exp_ineq1_le (- ln (1 + delta))) as E; rewrite exp_Ropp, exp_ln in E by lra.
    apply (Rmult_le_compat_r (1 + delta)) in E; [|lra]; rewrite Rinv_l in E by lra; lra. }
  assert (Low : (alpha - 1) * (ln (1 + delta) * P) <= (alpha - 1) * (delta * Q)).
  { rewrite <- As; apply Rle_trans with (alpha * (exp ((alpha - 1) * s) - 1) * P); [|lra].
    replace ((alpha - 1) * (alpha * s * P)) with (alpha * ((alpha - 1) * s) * P) by ring.
    apply Rmult_le_compat_r; [lra|apply Rmult_le_compat_l; lra]. }
  apply Rmult_le_reg_l in Low; [|lra]; rewrite exp_0, Rmult_1_l.
  assert (delta * P <= delta * (Q * (1 + delta))) by nra.
  apply Rmult_le_reg_l in H0; [nra|exact Hd].
Qed.

Lemma dp_fewer {A D} (adj adj' : D -> D -> Prop) (l : list A) (M : D -> A -> R) eps delta :
  (forall x y, adj' x y -> adj x y) -> dp adj l M eps delta -> dp adj' l M eps delta.
Proof. intros H Hd x y A'; apply Hd, H, A'. Qed.

Lemma pure_weaken {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) eps eps' :
  (forall d, nonneg l (M d)) -> eps <= eps' -> pure adj l M eps -> pure adj l M eps'.
Proof.
  intros Nn H P x y Axy a I; eapply Rle_trans; [apply (P x y Axy a I)|].
  apply Rmult_le_compat_r; [apply Nn, I|apply exp_le, H].
Qed.

(** ** What follows from a claim *)

(** Orders are above one. *)
Definition said {X A} (null : X) (l : list A) (M : (nat -> list X) -> A -> R) (s : claim) : Prop :=
  match claim_notion s with Rdp order _ => 1 < Q2R order | _ => True end /\ claimed null l M s.

Section Claims.

Context {X A : Type} (null : X) (l : list A) (M : (nat -> list X) -> A -> R).
Hypothesis laws : forall x, distribution l (M x).

Notation said := (said null l M).

Lemma weaken_said a s s' : said s -> weaken a s = Some s' -> said s'.
Proof.
  unfold weaken; intros V H; apply guard_some in H as [Le <-]; apply Qle_bool_R in Le.
  destruct s as [r g [b|b|b|o b|o b]], V as [Ho V]; (split; [exact Ho|]);
    unfold claimed in *; simpl in *.
  - intros x y N; apply below_profile_weaken with (2 := V x y N); intros; apply profile_larger;
      try assumption; split; [apply sqrt_pos|apply sqrt_le_1_alt, Le].
  - intros alpha Ha x y N; apply rdp_pair_weaken with (3 := V alpha Ha x y N); [exact Ha|nra].
  - apply pure_weaken with (Q2R b); [intros x; apply laws|exact Le|exact V].
  - intros x y N; apply rdp_pair_weaken with (3 := V x y N); assumption.
  - apply dp_weaken_epsilon with (Q2R b); [apply laws|exact Le|exact V].
Qed.

Lemma square_times k a : Q2R (integer k * integer k * a) = IZR (Zpos k) * IZR (Zpos k) * Q2R a.
Proof. rewrite !Q2R_mult, !Q2R_integer_positive; reflexivity. Qed.

(** k steps of a relation, for claims about one step of it. *)
Lemma enlarged_steps r n k : said (Claim r 1 n) ->
  match n with
  | Gdp a => costs (steps (one_part (neighbours null r)) (Pos.to_nat k)) l M n
               (Q2R (integer k * integer k * a))
  | Zcdp a => costs (steps (one_part (neighbours null r)) (Pos.to_nat k)) l M n
                (Q2R (integer k * integer k * a))
  | PureDp a => costs (steps (one_part (neighbours null r)) (Pos.to_nat k)) l M n
                  (Q2R (integer k * a))
  | _ => True
  end.
Proof.
  intros [_ H]; pose proof (Pos_real k) as Pk.
  pose proof (one_in_group null r) as One.
  destruct n as [a|a|a|o a|o a]; try exact I; unfold claimed in H; simpl in H |- *.
  - rewrite square_times, sqrt_mult_alt, sqrt_square, <- INR_positive by nra; intros x y Sxy.
    apply (gdp_group (one_part (neighbours null r))); auto using sqrt_pos.
  - rewrite square_times, <- INR_positive.
    replace (INR (Pos.to_nat k) * INR (Pos.to_nat k) * Q2R a)
      with (INR (Pos.to_nat k) ^ 2 * Q2R a) by ring.
    apply group_privacy; [exact laws|]; intros alpha Ha x y N; apply (H alpha Ha), One, N.
  - rewrite Q2R_mult, Q2R_integer_positive, <- INR_positive.
    apply pure_group; intros x y N; apply H, One, N.
Qed.

Lemma enlarged_said group (r' : relation) k s s' :
  (forall x y, group_neighbours null r' group x y ->
     steps (one_part (neighbours null (claim_relation s))) (Pos.to_nat k) x y) ->
  said s -> enlarged k group r' s = Some s' -> said s'.
Proof.
  destruct s as [r g n]; unfold enlarged; cbn [claim_group claim_notion claim_relation].
  intros Near; destruct (Pos.eqb_spec g 1) as [->|]; [|discriminate].
  intros V H; pose proof (enlarged_steps r n k V) as S.
  destruct n as [a|a|a|o a|o a]; try discriminate; injection H as <-; (split; [exact I|]);
    unfold claimed; simpl in *.
  - intros x y N; apply S, Near, N.
  - intros alpha Ha x y N; apply (S alpha Ha), Near, N.
  - intros x y N; apply S, Near, N.
Qed.

Theorem concluded_said rule s s' : said s -> concluded rule s = Some s' -> said s'.
Proof.
  intros V H; destruct rule; try discriminate H.
  - apply weaken_said with (2 := H), V.
  - injection H as <-; exact V.
  - apply enlarged_said with (3 := H); [auto|exact V].
  - cbn [concluded] in H; destruct (claim_relation s) eqn:E; try discriminate;
      (apply enlarged_said with (3 := H); [|exact V]; intros x y N; apply one_step in N;
       rewrite E; apply (replaced_in_two null); [discriminate|exact N]).
  - destruct s as [r g [a|a|a|o a|o a]]; try discriminate; cbn [concluded] in H.
    apply guard_some in H as [G <-]; rewrite negb_true_iff in G; apply Qle_bool_R_false in G.
    rewrite Q2R_number in G; split; [exact G|]; unfold claimed; simpl.
    rewrite Q2R_mult, Rmult_comm; destruct V as [_ V]; apply (V (Q2R order) G).
  - destruct s as [r g [a|a|a|o a|o a]]; try discriminate; cbn [concluded] in H.
    apply guard_some in H as [G <-]; apply andb_true_iff in G as [G _]; apply positive_number_R in G.
    split; [exact I|]; destruct V as [_ V]; apply dp_fewer with (1 := fun x y => unit_in_group null r g x y).
    apply dp_weaken with 0; [lra|apply pure_dp, V].
  - destruct s as [r g [a|a|a|o a|o a]]; try discriminate; cbn [concluded] in H.
    apply guard_some in H as [G <-]; rewrite !andb_true_iff, orb_true_iff in G; destruct G as [[Gd Pe] G].
    destruct V as [Order V]; destruct G as [Z|G].
    { apply Qle_bool_R in Pe, Z; rewrite Q2R_number in Pe, Z; apply andb_true_iff in Gd as [Gd _].
      split; [exact I|]; apply dp_fewer with (1 := fun x y => unit_in_group null r g x y).
      apply dp_weaken_epsilon with (2 := Pe); [exact laws|].
      apply renyi_nothing with (5 := V); [exact laws|exact Order|exact Z|apply positive_number_R, Gd]. }
    destruct (order_suffices_sound _ _ _ _ G) as (Ho & Hd & Le); split; [exact I|].
    apply dp_fewer with (1 := fun x y => unit_in_group null r g x y).
    apply dp_weaken_epsilon with (2 := Le); [exact laws|].
    apply rdp_to_dp_at_delta; [exact laws|exact Ho|exact Hd|exact V].
  - destruct s as [r g [a|a|a|o a|o a]]; try discriminate; cbn [concluded] in H.
    apply guard_some in H as [G <-]; apply andb_true_iff in G as [Gd G].
    destruct V as [_ V]; apply orb_true_iff in G as [G|G].
    { apply andb_true_iff in G as [Za Ze]; apply Qle_bool_R in Za, Ze; rewrite Q2R_number in Za, Ze.
      apply andb_true_iff in Gd as [Gd _]; apply positive_number_R in Gd.
      assert (Root : sqrt (Q2R a) = 0) by (apply sqrt_neg_0, Za).
      split; [exact I|]; apply dp_fewer with (1 := fun x y => unit_in_group null r g x y).
      apply dp_hockey_stick; intros x y N; rewrite hockey_stick_excess.
      specialize (V x y N 1 (exp (Q2R epsilon)) Rle_0_1 (Rlt_le _ _ (exp_pos _))).
      cbn [claim_notion cost_of_notion] in V; rewrite Root, profile_zero in V by lra.
      pose proof (exp_le _ _ Ze) as E; rewrite exp_0 in E; rewrite plus_part_0 in V by lra.
      eapply Rle_trans; [exact V|left; exact Gd]. }
    destruct (gaussian_delta_at_most_sound _ _ _ G) as [Ha Le]; split; [exact I|].
    apply dp_fewer with (1 := fun x y => unit_in_group null r g x y).
    apply dp_weaken with (gaussian_delta (sqrt (Q2R a)) (Q2R epsilon)); [exact Le|].
    apply profile_dp; [apply sqrt_lt_R0, Ha|exact V].
Qed.

End Claims.

(** ** Filters *)

Section Filtered.

Context {X A : Type} (null : X) (kept : claim) (outcomes : list A -> list A).
Context (law : (nat -> list X) -> list A -> A -> R) (reads : list A -> nat -> bool).
Context (cost : list A -> R) (most : nat).
Hypothesis lets_happen : filtered null kept outcomes law reads cost most.

Notation adj := (neighbours null (claim_relation kept)).

Lemma filtered_laws x : distribution (transcripts outcomes most) (run (law x)).
Proof.
  apply run_distribution; intros h; apply (messages_are_drawn _ _ _ _ _ _ _ lets_happen).
Qed.

Lemma filtered_unread h j x y :
  reads h j = false -> differ_at adj j x y ->
  forall a, In a (outcomes h) -> law x h a = law y h a.
Proof.
  intros R [_ S] a I; rewrite (same_with_part x y j).
  - symmetry; apply (others_are_unread _ _ _ _ _ _ _ lets_happen); assumption.
  - intros i N; apply S, N.
Qed.

(** Whatever a filter lets happen, however it was chosen and whenever it ended, costs the budget:
    in GDP, zCDP and Renyi DP of one order, as [adaptive_filter] and [gaussian_filter] have it. *)
Theorem filtered_said :
  claim_group kept = 1%positive ->
  match claim_notion kept with
  | Gdp _ | Zcdp _ => True | Rdp order _ => 1 < Q2R order | _ => False
  end ->
  said null (transcripts outcomes most) (fun x => run (law x)) kept.
Proof.
  pose proof (messages_are_drawn _ _ _ _ _ _ _ lets_happen) as L.
  pose proof (rounds_cost _ _ _ _ _ _ _ lets_happen) as C.
  pose proof (budget_is_kept _ _ _ _ _ _ _ lets_happen) as B.
  pose proof filtered_unread as U.
  destruct kept as [r g n]; cbn [claim_group claim_relation claim_notion] in *; intros -> Kind.
  destruct n as [a|a|a|o a|o a]; try contradiction; (split; [exact Kind|]);
    unfold claimed; simpl in *.
  - intros x y N; apply one_step in N.
    apply (events_gdp (neighbours null r) outcomes law L reads U (Q2R a) cost most); auto.
    + intros h; apply C.
    + intros h j u v R; apply (proj2 (C h) j R).
  - intros alpha Ha x y N; apply one_step in N.
    apply (events_zcdp (neighbours null r) outcomes law L reads U (Q2R a) cost most); auto.
    intros h j u v order Ho R Duv; apply (proj2 (C h) j R order Ho u v Duv).
  - intros x y N; apply one_step in N.
    apply (events_rdp (neighbours null r) outcomes law L reads U (Q2R o) (Q2R a) cost most); auto.
    intros h j u v R Duv; apply (proj2 (C h) j R u v Duv).
Qed.

End Filtered.

(** ** From node to node *)

Section Nodes.

Context (table : PositiveMap.t mechanism) (r : relation) (seen apart : list exposure).
Context (all_pay_in : notion -> bool) (P : judgement -> Prop).
Hypothesis kept_by_rules : forall rule premises j,
  (forall i, In i premises -> P i) -> follows table r seen apart all_pay_in rule premises = Some j -> P j.

Lemma at_places_keep known places premises :
  (forall i j, PositiveMap.find i known = Some j -> P j) ->
  at_places known places = Some premises -> forall j, In j premises -> P j.
Proof.
  intros V; revert premises; induction places as [|i places IH]; simpl; intros premises H.
  - injection H as <-; intros j [].
  - destruct (PositiveMap.find i known) as [j|] eqn:E; [|discriminate].
    destruct (at_places known places) as [found|]; [|discriminate]; injection H as <-.
    intros j' [<-|I]; [apply (V i), E|apply (IH found eq_refl), I].
Qed.

(** What every rule keeps is true of the last node. *)
Lemma all_nodes_keep todo known next last j :
  (forall i j, PositiveMap.find i known = Some j -> P j) ->
  (forall j, last = Some j -> P j) ->
  all_nodes table r seen apart all_pay_in known next last todo = Some j -> P j.
Proof.
  revert known next last; induction todo as [|n todo IH]; simpl; intros known next last V L H.
  - apply L, H.
  - destruct (at_places known (node_premises n)) as [premises|] eqn:At; [|discriminate].
    destruct (follows _ _ _ _ _ (node_rule n) premises) as [j'|] eqn:F; [|discriminate].
    destruct (claim_eqb (statement_of j') (node_conclusion n)); [|discriminate].
    assert (V' : P j').
    { apply kept_by_rules with (2 := F); apply (at_places_keep known _ _ V At). }
    apply IH in H; auto.
    + intros i j''; destruct (Pos.eq_dec i next) as [->|N].
      * rewrite PositiveMap.gss; intros E; injection E as <-; exact V'.
      * rewrite PositiveMap.gso by exact N; apply V.
    + intros j'' E; injection E as <-; exact V'.
Qed.

End Nodes.

(** ** Soundness: what is concluded from a budget is true of whatever the filter lets happen. *)

Definition kept_valid (j : judgement) : Prop :=
  match j with
  | Kept kept s =>
      forall (X A : Type) (null : X) outcomes (law : (nat -> list X) -> list A -> A -> R) reads
        cost most, filtered null kept outcomes law reads cost most ->
      said null (transcripts outcomes most) (fun x => run (law x)) s
  | _ => True
  end.

Lemma filter_kept budget s j : filter budget s = Some j -> kept_valid j.
Proof.
  unfold filter; cbv zeta; intros H; apply guard_some in H as [G <-].
  rewrite !andb_true_iff in G; destruct G as [[_ _] G]; intros X A null outcomes law reads cost most F.
  apply (filtered_said null _ outcomes law reads cost most F); [reflexivity|].
  destruct (claim_notion s) as [a|a|a|o a|o a]; try discriminate G; try exact Logic.I; simpl.
  apply negb_true_iff, Qle_bool_R_false in G; rewrite Q2R_number in G; exact G.
Qed.

Lemma concluded_kept rule budget s j :
  kept_valid (Kept budget s) -> option_map (Kept budget) (concluded rule s) = Some j -> kept_valid j.
Proof.
  intros V H; destruct (concluded rule s) as [s'|] eqn:C; [|discriminate]; injection H as <-.
  intros X A null outcomes law reads cost most F.
  apply (concluded_said null _ _ (filtered_laws null budget outcomes law reads cost most F)
           rule s s' (V X A null outcomes law reads cost most F) C).
Qed.

(** No other rule speaks of a filter. *)
Lemma of_parts_kept table r seen apart pays rule premises j :
  of_parts table r seen apart pays rule premises = Some j -> kept_valid j.
Proof.
  destruct j as [e s|s|b s]; intros H; try exact Logic.I; exfalso; revert H.
  destruct rule; cbn [of_parts]; try (destruct premises; discriminate);
    unfold leaf, pure_leaf, renyi_leaf, stated_leaf, composition, repeated, by_party, all_events, weaken, privacy_loss, laplace_losses,
      option_map,
      guard;
    repeat (match goal with |- context [match ?x with _ => _ end] => destruct x end;
            try discriminate).
Qed.

Lemma follows_kept table r seen apart pays rule premises j :
  (forall i, In i premises -> kept_valid i) -> follows table r seen apart pays rule premises = Some j ->
  kept_valid j.
Proof.
  intros V H; destruct premises as [|[e s|s|b s] [|i premises]];
    try (apply of_parts_kept with (1 := H)).
  - destruct rule; cbn [follows] in H; try (apply filter_kept with (1 := H));
      (destruct (concluded _ s); [injection H as <-; exact Logic.I|discriminate]).
  - apply concluded_kept with (2 := H), V; left; reflexivity.
Qed.

Theorem check_filter_sound (c : certificate) (kept s : claim) :
  check_filter c = Some (kept, s) ->
  forall (X A : Type) (null : X) outcomes (law : (nat -> list X) -> list A -> A -> R) reads cost most,
  filtered null kept outcomes law reads cost most ->
  claimed null (transcripts outcomes most) (fun x => run (law x)) s.
Proof.
  unfold check_filter, judged; cbv zeta; intros H X A null outcomes law reads cost most F.
  destruct (andb _ _); [|discriminate].
  destruct (all_nodes _ _ _ _ _ _ _ _ _) as [[e s'|s'|k s']|] eqn:N; try discriminate.
  injection H as -> ->; apply all_nodes_keep with (P := kept_valid) in N.
  - exact (proj2 (N X A null outcomes law reads cost most F)).
  - apply follows_kept.
  - intros i j E; rewrite PositiveMap.gempty in E; discriminate.
  - intros j E; discriminate.
Qed.

(** The form that a reader asks for: (eps, delta)-DP for one record of one party. *)
Corollary check_filter_dp (c : certificate) (kept : claim) (r : relation) (delta eps : Q) :
  check_filter c = Some (kept, Claim r 1 (ApproxDp delta eps)) ->
  forall (X A : Type) (null : X) outcomes (law : (nat -> list X) -> list A -> A -> R) reads cost most,
  filtered null kept outcomes law reads cost most ->
  dp (one_part (neighbours null r)) (transcripts outcomes most) (fun x => run (law x))
    (Q2R eps) (Q2R delta).
Proof.
  intros H X A null outcomes law reads cost most F x y N.
  apply (check_filter_sound c kept _ H X A null outcomes law reads cost most F), one_in_unit, N.
Qed.
