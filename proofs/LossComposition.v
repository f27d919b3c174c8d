(** Many steps by squaring: at a level every loss that occurs n times is squared, to occur n / 2
    times at the next, and losses left over single are multiplied in pairs; the step of the lattice
    doubles before some levels. *)

From Coq Require Import Reals QArith Qreals List ZArith Lra Lia Permutation Bool.
From Dpledger Require Import Sums Finite Domination Losses LossLists Enclosure LossEnclosures.
Import ListNotations.
Open Scope Z_scope.

Section Composition.

Variable w : Z.

Definition times (cut : Z) (k l : whole_loss) : whole_loss := trimmed cut (product w k l).

Definition counted := list (whole_loss * positive).

(** Half of n, and whether one is left over. *)
Definition half (n : positive) : option positive :=
  match n with xH => None | xO m | xI m => Some m end.
Definition odd (n : positive) : bool := match n with xO _ => false | _ => true end.

Definition squares (cut : Z) (items : counted) : counted :=
  flat_map (fun ln => match half (snd ln) with
                      | Some m => [(times cut (fst ln) (fst ln), m)]
                      | None => []
                      end) items.

Definition singles (items : counted) : list whole_loss :=
  flat_map (fun ln => if odd (snd ln) then [fst ln] else []) items.

Fixpoint in_pairs (cut : Z) (l : list whole_loss) : counted :=
  match l with
  | [] => []
  | [a] => [(a, 1%positive)]
  | a :: b :: rest => (times cut a b, 1%positive) :: in_pairs cut rest
  end.

Definition level (cut : Z) (items : counted) : counted :=
  squares cut items ++ in_pairs cut (singles items).

Definition number (items : counted) : Z :=
  fold_right (fun ln n => Zpos (snd ln) + n) 0 items.

(** Doubled [n] times; the step doubles with them. *)
Fixpoint doubled_often (n : nat) (step : Q) (items : counted) : option (Q * counted) :=
  match n with
  | O => Some (step, items)
  | S n' =>
      match shares w step with
      | Some (down, up) =>
          doubled_often n' (2 * step)%Q
            (map (fun ln => (doubled (shares_bits w) down up (fst ln), snd ln)) items)
      | None => None
      end
  end.

(** A loss on the lattice of the level at which it enters. *)
Record entry := Entry { enters_at : nat; on_step : Q; entry_loss : whole_loss;
                        how_often : positive }.

Definition entered (e : entry) : whole_loss * positive := (entry_loss e, how_often e).

(** One level after the other, from the [k]-th on, until nothing is to enter and one loss is left
    that occurs once; [cut] of mass may go at each level. *)
Fixpoint composed (fuel : nat) (cut : Z) (step : Q) (doublings : list nat) (k : nat)
  (waiting : list entry) (items : counted) : option (Q * whole_loss) :=
  match fuel with
  | O => None
  | S fuel' =>
      match doubled_often (hd O doublings) step items with
      | Some (step', kept) =>
          let (now, later) := partition (fun e => Nat.leb (enters_at e) k) waiting in
          if forallb (fun e => Qeq_bool (on_step e) step') now then
            match later, kept ++ map entered now with
            | [], [(l, 1%positive)] => Some (step', l)
            | _, items' =>
                composed fuel' cut step' (tl doublings) (S k) later
                  (level (cut / Z.max 1 (number items')) items')
            end
          else None
      | None => None
      end
  end.

(** ** Soundness *)

Open Scope R_scope.

Hypothesis Hw : (0 <= w)%Z.

Notation real step := (stands_for (Q2R step) (unit_of w)).

Fixpoint expanded (items : counted) : list whole_loss :=
  match items with
  | [] => []
  | (l, n) :: rest => repeat l (Pos.to_nat n) ++ expanded rest
  end.

Definition sound_items (items : counted) : Prop := forall l, In l (expanded items) -> sound_list l.

Section Level.

Variables (step : Q) (cut : Z).
Hypothesis Hstep : 0 < Q2R step.

Notation all l := (all_of (real step) l).

Lemma all_proper l : (forall k, In k l -> sound_list k) -> proper (all l).
Proof.
  intros H; apply all_of_proper; intros k I; apply stands_proper, H, I; apply unit_pos, Hw.
Qed.

Lemma times_sound k l :
  sound_list k -> sound_list l ->
  sound_list (times cut k l) /\ at_most (both (real step k) (real step l)) (real step (times cut k l)).
Proof.
  intros Hk Hl; destruct (product_sound w (Q2R step) Hw k l Hk Hl) as [S1 A1].
  destruct (trimmed_sound w (Q2R step) Hw Hstep cut _ S1) as [S2 A2].
  split; [exact S2|apply at_most_trans with (1 := A1), A2].
Qed.

Lemma to_nat_positive n : exists m, Pos.to_nat n = S m.
Proof. apply Pos2Nat.is_succ. Qed.

Lemma all_double l n : alike (all (repeat l (2 * n))) (all_of (fun k => both (real step k) (real step k)) (repeat l n)).
Proof.
  induction n as [|n IH]; [apply alike_refl|].
  replace (2 * S n)%nat with (S (S (2 * n))) by lia; cbn [repeat all_of].
  apply alike_trans with (1 := alike_assoc _ _ _), alike_both_r, IH.
Qed.

Lemma all_at_most {I} (K K' : I -> loss) l :
  (forall i, In i l -> proper (K i) /\ proper (K' i) /\ at_most (K i) (K' i)) ->
  at_most (all_of K l) (all_of K' l).
Proof.
  induction l as [|i l IH]; intros H; simpl; [apply at_most_refl|].
  destruct (H i (or_introl eq_refl)) as (P & P' & L).
  apply both_mono; try assumption.
  - apply all_of_proper; intros j J; apply H; right; exact J.
  - apply IH; intros j J; apply H; right; exact J.
Qed.

Lemma all_map {I J} (K : J -> loss) (f : I -> J) l : all_of K (map f l) = all_of (fun i => K (f i)) l.
Proof. induction l as [|i l IH]; simpl; congruence. Qed.

Lemma squared_sound l n :
  sound_list l ->
  at_most (all (repeat l (Pos.to_nat n)))
    (both (all (if odd n then [l] else []))
          (all (expanded (match half n with Some m => [(times cut l l, m)] | None => [] end)))).
Proof.
  intros Hl; destruct (times_sound l l Hl Hl) as [S A].
  assert (Pu : 0 < unit_of w) by (apply unit_pos, Hw).
  assert (Half : forall m, at_most (all (repeat l (2 * m))) (all (repeat (times cut l l) m))).
  { intros m; apply at_most_trans with (1 := alike_at_most _ _ (all_double l m)).
    replace (repeat (times cut l l) m) with (map (fun k => times cut k k) (repeat l m))
      by (induction m; simpl; congruence).
    rewrite all_map; apply all_at_most; intros k I; apply repeat_spec in I as ->.
    split; [apply both_proper; apply stands_proper; assumption|].
    split; [apply stands_proper; assumption|exact A]. }
  destruct n as [m|m|]; cbn [odd half expanded]; rewrite ?app_nil_r.
  - rewrite Pos2Nat.inj_xI; cbn [repeat all_of].
    apply at_most_trans with (both (real step l) (all (repeat (times cut l l) (Pos.to_nat m)))).
    + apply both_mono_r; [apply stands_proper; assumption|apply Half].
    + apply alike_at_most, alike_both; [apply alike_sym, alike_nothing|apply alike_refl].
  - rewrite Pos2Nat.inj_xO; apply at_most_trans with (1 := Half (Pos.to_nat m)), alike_at_most.
    apply alike_trans with (2 := alike_comm _ _), alike_sym, alike_nothing.
  - apply alike_at_most, alike_sym; change (Pos.to_nat 1) with 1%nat; apply alike_nothing.
Qed.

Lemma in_pairs_sound l :
  (forall k, In k l -> sound_list k) ->
  sound_items (in_pairs cut l) /\ at_most (all l) (all (expanded (in_pairs cut l))).
Proof.
  enough (H : forall n l, (length l <= n)%nat -> (forall k, In k l -> sound_list k) ->
            sound_items (in_pairs cut l) /\ at_most (all l) (all (expanded (in_pairs cut l))))
    by (intros; apply (H (length l)); auto).
  clear l; induction n as [|n IH]; intros [|a [|b l]] Hn H; simpl in Hn; try lia.
  1,2: split; [intros k []|apply at_most_refl].
  - split; [|apply at_most_refl]; intros k [<-|[]]; apply H; left; reflexivity.
  - assert (Ha : sound_list a) by (apply H; left; reflexivity).
    assert (Hb : sound_list b) by (apply H; right; left; reflexivity).
    destruct (times_sound a b Ha Hb) as [S A].
    destruct (IH l ltac:(lia) ltac:(intros; apply H; right; right; assumption)) as [S' A'].
    assert (Pu : 0 < unit_of w) by (apply unit_pos, Hw).
    cbn [in_pairs expanded]; change (Pos.to_nat 1) with 1%nat; cbn [repeat app]; split.
    + intros k [<-|I]; [exact S|apply S', I].
    + cbn [all_of]; apply at_most_trans with (1 := alike_at_most _ _ (alike_assoc _ _ _)).
      apply both_mono; try assumption.
      * apply both_proper; apply stands_proper; assumption.
      * apply all_proper; intros k I; apply S', I.
Qed.

Lemma expanded_app k l : expanded (k ++ l) = expanded k ++ expanded l.
Proof.
  induction k as [|[a n] k IH]; simpl; [reflexivity|rewrite IH, app_assoc; reflexivity].
Qed.

Lemma squares_sound items :
  sound_items items ->
  sound_items (squares cut items) /\ (forall k, In k (singles items) -> sound_list k) /\
  at_most (all (expanded items)) (both (all (singles items)) (all (expanded (squares cut items)))).
Proof.
  assert (Pu : 0 < unit_of w) by (apply unit_pos, Hw).
  induction items as [|[l n] items IH]; intros H.
  - split; [intros k []|split; [intros k []|]].
    apply alike_at_most, alike_sym, (alike_nothing nothing).
  - assert (Hl : sound_list l).
    { apply H; simpl; apply in_or_app; left; destruct (to_nat_positive n) as [m ->].
      left; reflexivity. }
    destruct (IH ltac:(intros k I; apply H; simpl; apply in_or_app; right; exact I))
      as (S1 & S2 & A).
    destruct (times_sound l l Hl Hl) as [St _].
    set (own := if odd n then [l] else []).
    set (two := match half n with Some m => [(times cut l l, m)] | None => [] end).
    assert (So : forall k, In k own -> sound_list k)
      by (unfold own; destruct (odd n); [intros k [<-|[]]; exact Hl|intros k []]).
    assert (Stwo : sound_items two).
    { unfold two; destruct (half n); [|intros k []]; intros k I; simpl in I.
      rewrite app_nil_r in I; apply repeat_spec in I as ->; exact St. }
    assert (E1 : singles ((l, n) :: items) = own ++ singles items) by reflexivity.
    assert (E2 : squares cut ((l, n) :: items) = two ++ squares cut items) by reflexivity.
    assert (Ss : sound_items (two ++ squares cut items)).
    { intros k I; rewrite expanded_app in I; apply in_app_or in I as [I|I]; auto. }
    rewrite E1, E2; split; [exact Ss|split].
    + intros k I; apply in_app_or in I as [I|I]; auto.
    + cbn [expanded]; apply at_most_trans with (1 := alike_at_most _ _ (all_of_app _ _ _)).
      apply at_most_trans with (both (both (all own) (all (expanded two)))
                                     (both (all (singles items)) (all (expanded (squares cut items))))).
      * apply both_mono.
        -- apply all_proper; intros k I; apply repeat_spec in I as ->; exact Hl.
        -- apply both_proper; apply all_proper; assumption.
        -- apply squared_sound, Hl.
        -- exact A.
      * apply alike_at_most; rewrite expanded_app.
        apply alike_trans with (1 := alike_sym _ _ (alike_assoc _ _ _)).
        apply alike_trans with (both (all own) (both (all (singles items))
                (both (all (expanded two)) (all (expanded (squares cut items)))))).
        -- apply alike_both_r, alike_swap.
        -- apply alike_trans with (1 := alike_assoc _ _ _).
           apply alike_both; apply alike_sym, all_of_app.
Qed.

Lemma level_sound items :
  sound_items items ->
  sound_items (level cut items)
  /\ at_most (all (expanded items)) (all (expanded (level cut items))).
Proof.
  intros H; destruct (squares_sound items H) as (S1 & S2 & A).
  destruct (in_pairs_sound (singles items) S2) as [S3 A3].
  unfold level; rewrite expanded_app; split.
  - intros k I; rewrite expanded_app in I; apply in_app_or in I as [I|I]; auto.
  - apply at_most_trans with (1 := A).
    apply at_most_trans with (both (all (expanded (in_pairs cut (singles items))))
                                   (all (expanded (squares cut items)))).
    + apply both_mono.
      * apply all_proper, S2.
      * apply all_proper; intros k I; apply S1, I.
      * exact A3.
      * apply at_most_refl.
    + apply at_most_trans with (1 := both_comm _ _).
      apply alike_at_most, alike_sym, all_of_app.
Qed.

End Level.

Lemma Q2R_twice step : Q2R (2 * step) = 2 * Q2R step.
Proof. rewrite Q2R_mult; f_equal; unfold Q2R; simpl; field. Qed.

Lemma doubled_often_sound n step items step' items' :
  0 < Q2R step -> sound_items items -> doubled_often n step items = Some (step', items') ->
  0 < Q2R step' /\ sound_items items' /\
  at_most (all_of (real step) (expanded items)) (all_of (real step') (expanded items')).
Proof.
  revert step items; induction n as [|n IH]; intros step items Hs Hi; simpl.
  - intros E; injection E as <- <-; split; [exact Hs|split; [exact Hi|apply at_most_refl]].
  - destruct (shares w step) as [[down up]|] eqn:Sh; [|discriminate]; intros E.
    destruct (shares_sound _ _ _ _ Sh) as (Bits & Down & Up).
    set (d := doubled (shares_bits w) down up) in *.
    assert (One : forall l, sound_list l ->
              sound_list (d l) /\ at_most (real step l) (real (2 * step) (d l))).
    { intros l Hl; rewrite Q2R_twice; apply doubled_sound; assumption. }
    assert (Ex : expanded (map (fun ln => (d (fst ln), snd ln)) items) = map d (expanded items)).
    { clear; induction items as [|[l n] items IH]; simpl; [reflexivity|].
      rewrite map_app, IH; f_equal; induction (Pos.to_nat n); simpl; congruence. }
    apply IH in E as (Hs' & Hi' & A).
    + split; [exact Hs'|split; [exact Hi'|]]; apply at_most_trans with (2 := A).
      rewrite Ex, all_map; apply all_at_most; intros l I.
      pose proof (unit_pos w Hw) as Pu; destruct (One l (Hi l I)) as [S L].
      split; [apply stands_proper; auto|split; [apply stands_proper; auto|exact L]].
    + rewrite Q2R_twice; lra.
    + intros l I; rewrite Ex in I; apply in_map_iff in I as (k & <- & I); apply One, Hi, I.
Qed.

(** All that is still to enter. *)
Definition all_waiting (waiting : list entry) : loss :=
  all_of (fun e => all_of (real (on_step e)) (expanded [entered e])) waiting.

Definition sound_entries (waiting : list entry) : Prop :=
  forall e, In e waiting -> sound_list (entry_loss e).

Lemma entered_sound waiting : sound_entries waiting -> sound_items (map entered waiting).
Proof.
  intros H; induction waiting as [|e rest IH]; intros l I; [destruct I|].
  simpl in I; apply in_app_or in I as [I|I].
  - apply repeat_spec in I as ->; apply H; left; reflexivity.
  - apply IH; [intros e' I'; apply H; right; exact I'|exact I].
Qed.

(** On one lattice, what enters is what there is. *)
Lemma all_entered step now :
  (forall e, In e now -> Q2R (on_step e) = Q2R step) ->
  alike (all_waiting now) (all_of (real step) (expanded (map entered now))).
Proof.
  unfold all_waiting; induction now as [|e now IH]; intros H; [apply alike_refl|].
  cbn [map expanded all_of entered]; rewrite app_nil_r, (H e (or_introl eq_refl)).
  apply alike_trans with (2 := alike_sym _ _ (all_of_app _ _ _)).
  apply alike_both_r, IH; intros e' I; apply H; right; exact I.
Qed.

Lemma partition_permutation {A} (f : A -> bool) l now later :
  partition f l = (now, later) -> Permutation l (now ++ later).
Proof.
  revert now later; induction l as [|a l IH]; intros now later; simpl.
  - intros E; injection E as <- <-; reflexivity.
  - destruct (partition f l) as [u v]; destruct (f a); intros E; injection E as <- <-;
      [simpl; rewrite (IH u v eq_refl); reflexivity|].
    rewrite (IH u v eq_refl); apply Permutation_middle.
Qed.

Theorem composed_sound fuel cut step doublings k waiting items step' l :
  0 < Q2R step -> sound_items items -> sound_entries waiting ->
  composed fuel cut step doublings k waiting items = Some (step', l) ->
  0 < Q2R step' /\ sound_list l /\
  at_most (both (all_of (real step) (expanded items)) (all_waiting waiting)) (real step' l).
Proof.
  assert (Pu : 0 < unit_of w) by (apply unit_pos, Hw).
  revert cut step doublings k waiting items; induction fuel as [|fuel IH];
    intros cut step doublings k waiting items Hs Hi He; cbn [composed]; [discriminate|].
  destruct (doubled_often (hd O doublings) step items) as [[step1 kept]|] eqn:D; [|discriminate].
  destruct (doubled_often_sound _ _ _ _ _ Hs Hi D) as (Hs1 & Hi1 & A1).
  destruct (partition _ waiting) as [now later] eqn:Part.
  apply partition_permutation in Part.
  destruct (forallb _ now) eqn:Here; [|discriminate].
  assert (Hnow : sound_entries now)
    by (intros e I; apply He; rewrite Part; apply in_or_app; left; exact I).
  assert (Hlater : sound_entries later)
    by (intros e I; apply He; rewrite Part; apply in_or_app; right; exact I).
  assert (On : forall e, In e now -> Q2R (on_step e) = Q2R step1).
  { intros e I; rewrite forallb_forall in Here; specialize (Here e I).
    apply Qeq_bool_eq, Qeq_eqR in Here; exact Here. }
  set (items1 := (kept ++ map entered now)%list).
  assert (Hi2 : sound_items items1).
  { intros u I; unfold items1 in I; rewrite expanded_app in I; apply in_app_or in I as [I|I];
      [apply Hi1, I|apply (entered_sound now Hnow u I)]. }
  assert (Proper : forall waiting', sound_entries waiting' -> proper (all_waiting waiting')).
  { intros v Hv; apply all_of_proper; intros e I; apply all_proper.
    intros u J; simpl in J; rewrite app_nil_r in J; apply repeat_spec in J as ->; apply Hv, I. }
  assert (A2 : at_most (both (all_of (real step) (expanded items)) (all_waiting waiting))
                 (both (all_of (real step1) (expanded items1)) (all_waiting later))).
  { apply at_most_trans with (both (all_of (real step1) (expanded kept)) (all_waiting waiting)).
    - apply both_mono; try (apply Proper, He); [apply all_proper, Hi|exact A1|apply at_most_refl].
    - apply alike_at_most; unfold items1; rewrite expanded_app.
      apply alike_trans with (both (all_of (real step1) (expanded kept))
                                   (both (all_waiting now) (all_waiting later))).
      + apply alike_both_r; apply alike_trans with (2 := all_of_app _ _ _).
        intros a b Ha Hb; apply (all_of_permutation _ _ _ Part a b Ha Hb).
      + apply alike_trans with (1 := alike_assoc _ _ _), alike_both; [|apply alike_refl].
        apply alike_trans with (2 := alike_sym _ _ (all_of_app _ _ _)).
        apply alike_both_r, all_entered, On. }
  set (cut' := (cut / Z.max 1 (number items1))%Z).
  assert (Go : composed fuel cut step1 (tl doublings) (S k) later (level cut' items1)
                 = Some (step', l) ->
            0 < Q2R step' /\ sound_list l /\
            at_most (both (all_of (real step) (expanded items)) (all_waiting waiting))
              (real step' l)).
  { intros E; destruct (level_sound step1 cut' Hs1 items1 Hi2) as [S A].
    destruct (IH _ _ _ _ _ _ Hs1 S Hlater E) as (H1 & H2 & H3); split; [exact H1|split; [exact H2|]].
    apply at_most_trans with (1 := A2), at_most_trans with (2 := H3).
    apply both_mono; try (apply Proper, Hlater);
      [apply all_proper, Hi2|exact A|apply at_most_refl]. }
  fold items1; destruct later as [|e later]; [|exact Go].
  destruct items1 as [|[u [n|n|]] [|]]; try exact Go.
  intros E; injection E as <- <-; split; [exact Hs1|split].
  - apply Hi2; simpl; auto.
  - apply at_most_trans with (1 := A2), alike_at_most; cbn [expanded all_waiting all_of].
    apply alike_trans with (1 := alike_nothing _), alike_nothing.
Qed.

End Composition.
