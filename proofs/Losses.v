(** Distributions of the privacy loss with finitely many values: what a certificate's loss
    distributions are, whatever lattice each lies on. A mass m at the loss x weighs m under the
    first law and m exp(-x) under the second; [lost] is mass of the first law where the loss is
    infinite. Masses may add up to more than one: each is an upper bound.

    The steps of a certificate are composed in an order of its own (by squaring, halves first), and
    those of a run in an order that may depend on every message: [both] is commutative, associative
    and monotone as far as profiles go, so that the order does not matter. *)

From Coq Require Import Reals List Lra Lia Psatz Permutation Sorted.
From Dpledger Require Import Sums Finite Domination.
Import ListNotations.
Open Scope R_scope.

Record loss := Loss { atoms : list (R * R); lost : R }.

Definition loss_term (a b : R) (xm : R * R) : R := snd xm * plus_part (a - b * exp (- fst xm)).

(** The profile: sum (a P - b Q)^+. *)
Definition profile (L : loss) (a b : R) : R := lost L * a + total (atoms L) (loss_term a b).

Definition finite_mass (L : loss) : R := total (atoms L) snd.
Definition mass (L : loss) : R := lost L + finite_mass L.

Record proper (L : loss) : Prop := Proper {
  lost_nonneg : 0 <= lost L;
  atoms_nonneg : forall xm, In xm (atoms L) -> 0 <= snd xm }.

(** One loss is at most another: as an upper bound it is the better one. *)
Definition at_most (K L : loss) : Prop :=
  forall a b, 0 <= a -> 0 <= b -> profile K a b <= profile L a b.

Lemma at_most_refl L : at_most L L.
Proof. intros a b _ _; lra. Qed.

Lemma at_most_trans K L M : at_most K L -> at_most L M -> at_most K M.
Proof. intros H H' a b Ha Hb; eapply Rle_trans; [apply H|apply H']; assumption. Qed.

Lemma loss_term_nonneg a b xm : 0 <= snd xm -> 0 <= loss_term a b xm.
Proof. intros H; apply Rmult_le_pos; [exact H|apply plus_part_nonneg]. Qed.

Lemma profile_nonneg L a b : proper L -> 0 <= a -> 0 <= profile L a b.
Proof.
  intros [Hl Hm] Ha; apply Rplus_le_le_0_compat; [apply Rmult_le_pos; assumption|].
  apply total_nonneg; intros xm I; apply loss_term_nonneg, Hm, I.
Qed.

Lemma profile_scal L c a b : 0 <= c -> profile L (c * a) (c * b) = c * profile L a b.
Proof.
  intros Hc; unfold profile; rewrite Rmult_plus_distr_l, <- total_scal; f_equal; [ring|].
  apply total_ext; intros xm _; unfold loss_term.
  replace (c * a - c * b * exp (- fst xm)) with (c * (a - b * exp (- fst xm))) by ring.
  rewrite plus_part_scal by exact Hc; ring.
Qed.

Lemma profile_all L a : 0 <= a -> profile L a 0 = a * mass L.
Proof.
  intros Ha; unfold profile, mass, finite_mass; rewrite Rmult_plus_distr_l, <- total_scal.
  f_equal; [ring|]; apply total_ext; intros xm _; unfold loss_term.
  rewrite Rmult_0_l, Rminus_0_r, plus_part_id by exact Ha; ring.
Qed.

Lemma finite_mass_nonneg L : proper L -> 0 <= finite_mass L.
Proof. intros [_ H]; apply total_nonneg, H. Qed.

Lemma mass_nonneg L : proper L -> 0 <= mass L.
Proof.
  intros H; pose proof (finite_mass_nonneg L H); destruct H as [H _]; unfold mass; lra.
Qed.

Lemma at_most_mass K L : at_most K L -> mass K <= mass L.
Proof. intros H; specialize (H 1 0 ltac:(lra) ltac:(lra)); rewrite !profile_all in H; lra. Qed.

(** ** Composition *)

Definition both (K L : loss) : loss := {|
  atoms := flat_map (fun x => map (fun y => (fst x + fst y, snd x * snd y)) (atoms L)) (atoms K);
  lost := lost K * mass L + lost L * finite_mass K |}.

Definition nothing : loss := {| atoms := [(0, 1)]; lost := 0 |}.

Lemma finite_mass_both K L : finite_mass (both K L) = finite_mass K * finite_mass L.
Proof.
  unfold finite_mass, both; cbn [atoms]; rewrite total_flat_map, <- total_scal_r.
  apply total_ext; intros x _; rewrite total_map, <- total_scal; reflexivity.
Qed.

Lemma mass_both K L : mass (both K L) = mass K * mass L.
Proof.
  unfold mass at 1; rewrite finite_mass_both; unfold both; cbn [lost]; unfold mass; ring.
Qed.

Lemma both_proper K L : proper K -> proper L -> proper (both K L).
Proof.
  intros HK HL; pose proof (mass_nonneg L HL); pose proof (finite_mass_nonneg K HK).
  destruct HK as [lK mK], HL as [lL mL]; split; cbn [lost atoms both].
  - apply Rplus_le_le_0_compat; apply Rmult_le_pos; assumption.
  - intros xm I; apply in_flat_map in I as (x & Ix & I); apply in_map_iff in I as (y & <- & Iy).
    apply Rmult_le_pos; [apply mK, Ix|apply mL, Iy].
Qed.

(** The profile of both, from that of the second: linear in each of the two. *)
Lemma profile_both K L a b :
  profile (both K L) a b
    = total (atoms K) (fun x => snd x * profile L a (b * exp (- fst x)))
      + lost K * a * mass L.
Proof.
  unfold profile at 1, both; cbn [atoms lost]; rewrite total_flat_map.
  transitivity (lost L * finite_mass K * a
    + total (atoms K) (fun x => snd x * total (atoms L) (loss_term a (b * exp (- fst x))))
    + lost K * a * mass L).
  - rewrite Rmult_plus_distr_r; rewrite (Rplus_comm (lost K * mass L * a)).
    rewrite Rplus_assoc, (Rplus_comm (lost K * mass L * a)), <- Rplus_assoc.
    f_equal; [f_equal|ring]; apply total_ext; intros x _.
    rewrite total_map, <- total_scal; apply total_ext; intros y _; unfold loss_term; cbn [fst snd].
    replace (- (fst x + fst y)) with (- fst x + - fst y) by ring; rewrite exp_plus.
    rewrite <- Rmult_assoc; ring.
  - f_equal; unfold profile.
    rewrite (total_ext _ (fun x => snd x * (lost L * a + _))
              (fun x => lost L * a * snd x
                        + snd x * total (atoms L) (loss_term a (b * exp (- fst x)))))
      by (intros; ring).
    rewrite total_plus, total_scal; unfold finite_mass; ring.
Qed.

Lemma profile_both_comm K L a b : profile (both K L) a b = profile (both L K) a b.
Proof.
  unfold profile, both; cbn [atoms lost]; rewrite !total_flat_map; f_equal.
  - unfold mass; ring.
  - rewrite (total_ext (atoms K) _ (fun x => total (atoms L) (fun y =>
               loss_term a b (fst x + fst y, snd x * snd y))))
      by (intros; apply total_map).
    rewrite total_swap; apply total_ext; intros y _; rewrite total_map; apply total_ext.
    intros x _; f_equal; f_equal; ring.
Qed.

Lemma both_mono_r K L L' : proper K -> at_most L L' -> at_most (both K L) (both K L').
Proof.
  intros [lK mK] H a b Ha Hb; rewrite !profile_both; apply Rplus_le_compat.
  - apply total_le; intros x Ix; apply Rmult_le_compat_l; [apply mK, Ix|].
    apply H; [exact Ha|apply Rmult_le_pos; [exact Hb|left; apply exp_pos]].
  - apply Rmult_le_compat_l; [apply Rmult_le_pos; assumption|apply at_most_mass, H].
Qed.

Lemma both_comm K L : at_most (both K L) (both L K).
Proof. intros a b _ _; rewrite profile_both_comm; lra. Qed.

Lemma both_mono K K' L L' :
  proper K -> proper L' -> at_most K K' -> at_most L L' -> at_most (both K L) (both K' L').
Proof.
  intros HK HL' H H'; apply at_most_trans with (both K L'); [apply both_mono_r; assumption|].
  apply at_most_trans with (both L' K); [apply both_comm|].
  apply at_most_trans with (both L' K'); [apply both_mono_r; assumption|apply both_comm].
Qed.

Lemma profile_both_assoc K L M a b :
  profile (both K (both L M)) a b = profile (both (both K L) M) a b.
Proof.
  rewrite !profile_both, mass_both; cbn [atoms lost both].
  rewrite total_flat_map.
  rewrite (total_ext (atoms K) (fun x => total (map _ (atoms L)) _)
    (fun x => snd x * total (atoms L) (fun y =>
       snd y * profile M a (b * exp (- fst x) * exp (- fst y))))).
  - rewrite (total_ext (atoms K) (fun x => snd x * profile (both L M) a (b * exp (- fst x)))
      (fun x => snd x * total (atoms L) (fun y =>
         snd y * profile M a (b * exp (- fst x) * exp (- fst y)))
         + snd x * (lost L * a * mass M))) by (intros; rewrite profile_both; ring).
    rewrite total_plus, total_scal_r; unfold finite_mass; ring.
  - intros x _; rewrite total_map, <- total_scal; apply total_ext; intros y _; cbn [fst snd].
    replace (- (fst x + fst y)) with (- fst x + - fst y) by ring; rewrite exp_plus.
    rewrite <- !Rmult_assoc; reflexivity.
Qed.

Lemma profile_nothing a b : profile nothing a b = plus_part (a - b).
Proof.
  unfold profile, nothing, loss_term; simpl; rewrite Ropp_0, exp_0, Rmult_1_r; ring.
Qed.

Lemma nothing_proper : proper nothing.
Proof. split; [simpl; lra|]; intros xm [<-|[]]; simpl; lra. Qed.

Lemma mass_nothing : mass nothing = 1.
Proof. unfold mass, finite_mass; simpl; ring. Qed.

Lemma profile_both_nothing L a b : profile (both L nothing) a b = profile L a b.
Proof.
  rewrite profile_both, mass_nothing; unfold profile at 2.
  rewrite Rmult_1_r, Rplus_comm; f_equal.
  apply total_ext; intros x _; rewrite profile_nothing; reflexivity.
Qed.

(** The loss of all steps of a list. *)
Fixpoint all_of {I} (K : I -> loss) (l : list I) : loss :=
  match l with [] => nothing | i :: l' => both (K i) (all_of K l') end.

Lemma all_of_proper {I} (K : I -> loss) l :
  (forall i, In i l -> proper (K i)) -> proper (all_of K l).
Proof.
  induction l as [|i l IH]; intros H; simpl; [apply nothing_proper|].
  apply both_proper; [|apply IH; intros]; apply H; simpl; auto.
Qed.

(** Equal as upper bounds. *)
Definition alike (K L : loss) : Prop :=
  forall a b, 0 <= a -> 0 <= b -> profile K a b = profile L a b.

Lemma alike_refl K : alike K K.
Proof. intros a b _ _; reflexivity. Qed.

Lemma alike_sym K L : alike K L -> alike L K.
Proof. intros H a b Ha Hb; symmetry; apply H; assumption. Qed.

Lemma alike_trans K L M : alike K L -> alike L M -> alike K M.
Proof. intros H H' a b Ha Hb; rewrite H by assumption; apply H'; assumption. Qed.

Lemma alike_at_most K L : alike K L -> at_most K L.
Proof. intros H a b Ha Hb; rewrite H by assumption; lra. Qed.

Lemma alike_comm K L : alike (both K L) (both L K).
Proof. intros a b _ _; apply profile_both_comm. Qed.

Lemma alike_assoc K L M : alike (both K (both L M)) (both (both K L) M).
Proof. intros a b _ _; apply profile_both_assoc. Qed.

Lemma alike_nothing L : alike (both L nothing) L.
Proof. intros a b _ _; apply profile_both_nothing. Qed.

Lemma alike_both_r K L L' : alike L L' -> alike (both K L) (both K L').
Proof.
  intros H a b Ha Hb; rewrite !profile_both; f_equal.
  - apply total_ext; intros x _; rewrite H; [reflexivity|exact Ha|].
    apply Rmult_le_pos; [exact Hb|left; apply exp_pos].
  - f_equal; specialize (H 1 0 ltac:(lra) ltac:(lra)); rewrite !profile_all in H; lra.
Qed.

Lemma alike_both K K' L L' : alike K K' -> alike L L' -> alike (both K L) (both K' L').
Proof.
  intros H H'; apply alike_trans with (both K L'); [apply alike_both_r, H'|].
  apply alike_trans with (1 := alike_comm K L'), alike_trans with (2 := alike_comm L' K').
  apply alike_both_r, H.
Qed.

Lemma alike_swap K L M : alike (both K (both L M)) (both L (both K M)).
Proof.
  apply alike_trans with (1 := alike_assoc K L M).
  apply alike_trans with (2 := alike_sym _ _ (alike_assoc L K M)).
  apply alike_both; [apply alike_comm|apply alike_refl].
Qed.

(** Order does not matter. *)
Lemma all_of_permutation {I} (K : I -> loss) l l' :
  Permutation l l' -> alike (all_of K l) (all_of K l').
Proof.
  induction 1 as [|i l l' _ IH|i j l|l l' l'' _ IH _ IH']; simpl.
  - apply alike_refl.
  - apply alike_both_r, IH.
  - apply alike_swap.
  - apply alike_trans with (1 := IH), IH'.
Qed.

Lemma all_of_app {I} (K : I -> loss) l l' :
  alike (all_of K (l ++ l')) (both (all_of K l) (all_of K l')).
Proof.
  induction l as [|i l IH]; simpl.
  - apply alike_trans with (2 := alike_comm (all_of K l') nothing), alike_sym, alike_nothing.
  - apply alike_trans with (2 := alike_assoc _ _ _), alike_both_r, IH.
Qed.

(** ** Mechanisms *)

(** A step, and what follows after its outcome, summed over the outcomes. *)
Theorem loss_step {A} (l : list A) p q K L a b :
  distribution l p -> nonneg l q -> 1 <= mass K -> proper L ->
  below_profile l p q (profile K) -> 0 <= a -> 0 <= b ->
  total l (fun y => profile L (a * p y) (b * q y)) <= profile (both K L) a b.
Proof.
  intros [Hp Sp] Hq HK [lL mL] H Ha Hb; rewrite profile_both_comm, profile_both.
  rewrite (total_ext l _ (fun y => lost L * a * p y
     + total (atoms L) (fun x => snd x * plus_part (a * p y - b * exp (- fst x) * q y)))).
  2:{ intros y _; unfold profile, loss_term; f_equal; [ring|].
      apply total_ext; intros x _; do 2 f_equal; ring. }
  rewrite total_plus, total_scal, Sp, total_swap, Rplus_comm; apply Rplus_le_compat.
  - apply total_le; intros x Ix; rewrite total_scal; apply Rmult_le_compat_l; [apply mL, Ix|].
    apply H; [exact Ha|apply Rmult_le_pos; [exact Hb|left; apply exp_pos]].
  - apply Rmult_le_compat_l; [apply Rmult_le_pos; assumption|exact HK].
Qed.

(** A bound on a law against itself: at least (a - b)^+. *)
Definition covers (L : loss) : Prop :=
  forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= profile L a b.

Lemma covers_both K L : covers K -> covers L -> proper K -> proper L -> covers (both K L).
Proof.
  intros HK HL PK PL a b Ha Hb; rewrite <- profile_nothing, <- profile_both_nothing.
  apply both_mono; auto using nothing_proper; intros c d Hc Hd; rewrite profile_nothing; auto.
Qed.

Lemma covers_all_of {I} (K : I -> loss) l :
  (forall i, In i l -> proper (K i) /\ covers (K i)) -> covers (all_of K l).
Proof.
  induction l as [|i l IH]; intros H; simpl.
  - intros a b _ _; rewrite profile_nothing; lra.
  - apply covers_both; [apply H; left; reflexivity| |apply H; left; reflexivity|].
    + apply IH; intros; apply H; right; assumption.
    + apply all_of_proper; intros; apply H; right; assumption.
Qed.

Lemma covers_mass L : covers L -> 1 <= mass L.
Proof.
  intros H; specialize (H 1 0 ltac:(lra) ltac:(lra)).
  rewrite profile_all, plus_part_id in H; lra.
Qed.

(** More steps lose more. *)
Lemma all_of_more {I} (K : I -> loss) l l' :
  (forall i, In i (l ++ l') -> proper (K i) /\ covers (K i)) ->
  at_most (all_of K l) (all_of K (l ++ l')).
Proof.
  intros H; apply at_most_trans with (both (all_of K l) (all_of K l')).
  - apply at_most_trans with (1 := alike_at_most _ _ (alike_sym _ _ (alike_nothing _))).
    apply both_mono_r.
    + apply all_of_proper; intros; apply H, in_or_app; auto.
    + intros a b Ha Hb; rewrite profile_nothing; apply covers_all_of; try assumption.
      intros; apply H, in_or_app; auto.
  - apply alike_at_most, alike_sym, all_of_app.
Qed.

(** ** A filter: steps in an order that may depend on every message, within a fixed multiset *)

Section Filter.

Context {A I : Type} (same : forall i j : I, {i = j} + {i <> j}).
Context (outcomes : list A -> list A) (law law' : list A -> A -> R).
Hypothesis laws : forall h, distribution (outcomes h) (law h).
Hypothesis laws' : forall h, nonneg (outcomes h) (law' h).

(** The step of each round that is met; none if the laws agree. *)
Variable step : list A -> option I.

Fixpoint taken (h : list A) : list I :=
  match h with
  | [] => []
  | _ :: before => match step before with Some i => [i] | None => [] end ++ taken before
  end.

Hypothesis idle : forall h,
  step h = None -> forall y, In y (outcomes h) -> law h y = law' h y.

Fixpoint without (i : I) (l : list I) : list I :=
  match l with [] => [] | j :: l' => if same i j then l' else j :: without i l' end.

Lemma without_permutation i l : In i l -> Permutation l (i :: without i l).
Proof.
  induction l as [|j l IH]; simpl; [tauto|]; intros H; destruct (same i j) as [->|N]; [reflexivity|].
  destruct H as [->|H]; [congruence|].
  rewrite (IH H) at 1; apply perm_swap.
Qed.

Variable steps : list I.

(** What is left of the steps after a history. *)
Fixpoint left_over (h : list A) : list I :=
  match h with
  | [] => steps
  | _ :: before =>
      match step before with Some i => without i (left_over before) | None => left_over before end
  end.

Variable T : nat.
Hypothesis within : forall h, In h (transcripts outcomes T) ->
  exists rest, Permutation (taken h ++ rest) steps.

Lemma within_before t h : (t <= T)%nat -> In h (transcripts outcomes t) ->
  exists rest, Permutation (taken h ++ rest) steps.
Proof.
  intros Ht; replace t with (T - (T - t))%nat by lia.
  generalize (T - t)%nat as n; intros n; revert h; induction n as [|n IH]; intros h.
  - rewrite Nat.sub_0_r; apply within.
  - destruct (Nat.le_gt_cases T n) as [L|L].
    + replace (T - S n)%nat with (T - n)%nat by lia; apply IH.
    + intros Ih; destruct (laws h) as [_ S].
      assert (exists y, In y (outcomes h)) as [y Iy]
        by (destruct (outcomes h) as [|y o]; [simpl in S; lra|exists y; left; reflexivity]).
      destruct (IH (y :: h)) as [rest P].
      { replace (T - n)%nat with (Datatypes.S (T - Datatypes.S n)) by lia; simpl.
        apply in_flat_map; exists h; split; [exact Ih|apply (in_map (fun b => b :: h)), Iy]. }
      simpl in P; destruct (step h) as [i|]; [|exists rest; exact P].
      exists (i :: rest); rewrite <- P; simpl; apply Permutation_sym, Permutation_middle.
Qed.

Lemma left_over_taken t h : (t <= T)%nat -> In h (transcripts outcomes t) ->
  Permutation (taken h ++ left_over h) steps.
Proof.
  revert h; induction t as [|t IH]; intros h Ht Ih.
  - destruct Ih as [<-|[]]; reflexivity.
  - destruct (within_before (Datatypes.S t) h Ht Ih) as [rest P].
    simpl in Ih; apply in_flat_map in Ih as (g & Ig & Iy); apply in_map_iff in Iy as (y & <- & Iy).
    specialize (IH g ltac:(lia) Ig); simpl in P |- *; destruct (step g) as [i|]; [|exact IH].
    assert (Ii : In i (left_over g)).
    { apply Permutation_in with (i :: rest); [|left; reflexivity].
      apply Permutation_app_inv_l with (taken g).
      apply Permutation_trans with (2 := Permutation_sym IH), Permutation_trans with (2 := P).
      apply Permutation_sym, Permutation_middle. }
    apply Permutation_trans with (2 := IH).
    apply Permutation_trans with (1 := Permutation_middle (taken g) (without i (left_over g)) i).
    apply Permutation_app_head, Permutation_sym, without_permutation, Ii.
Qed.

(** A bound on what is left of the steps, in any order, that covers one more step in front. *)
Variable bound : list I -> R -> R -> R.
Hypothesis bound_covers : forall l a b, incl l steps -> 0 <= a -> 0 <= b ->
  plus_part (a - b) <= bound l a b.
Hypothesis bound_scal : forall l c a b, 0 <= c -> 0 <= a -> 0 <= b ->
  bound l (c * a) (c * b) = c * bound l a b.
Hypothesis bound_permuted : forall l l' a b, Permutation l l' -> incl l steps -> 0 <= a -> 0 <= b ->
  bound l a b <= bound l' a b.
Hypothesis bound_step : forall h i l a b, step h = Some i -> incl (i :: l) steps ->
  0 <= a -> 0 <= b ->
  total (outcomes h) (fun y => bound l (a * law h y) (b * law' h y)) <= bound (i :: l) a b.

Theorem steps_filter :
  below_profile (transcripts outcomes T) (run law) (run law') (bound steps).
Proof.
  apply (adaptive_bound outcomes law law' (fun h => proj1 (laws h)) laws'
           (fun h => bound (left_over h))).
  - intros h a b Ih Ha Hb; apply bound_covers; try assumption; intros i Ii.
    apply Permutation_in with (1 := left_over_taken T h (le_n T) Ih), in_or_app; auto.
  - intros t h a b Ht Ih Ha Hb; pose proof (left_over_taken t h ltac:(lia) Ih) as P.
    destruct (laws h) as [Np Sp]; simpl; destruct (step h) as [i|] eqn:E.
    + assert (Ii : In i (left_over h)).
      { destruct (outcomes h) as [|y o] eqn:O; [simpl in Sp; lra|].
        assert (Iy : In (y :: h) (transcripts outcomes (Datatypes.S t))).
        { simpl; apply in_flat_map; exists h; split; [exact Ih|].
          rewrite O; left; reflexivity. }
        destruct (within_before (Datatypes.S t) (y :: h) ltac:(lia) Iy) as [rest Q].
        simpl in Q; rewrite E in Q.
        apply Permutation_in with (i :: rest); [|left; reflexivity].
        apply Permutation_app_inv_l with (taken h).
        apply Permutation_trans with (2 := Permutation_sym P), Permutation_trans with (2 := Q).
        apply Permutation_sym, Permutation_middle. }
      assert (In' : incl (i :: without i (left_over h)) steps).
      { intros j Ij; apply Permutation_in with (1 := P), in_or_app; right.
        apply Permutation_in with (2 := Ij), Permutation_sym, without_permutation, Ii. }
      pose proof (without_permutation i _ Ii) as W.
      eapply Rle_trans; [apply (bound_step h i); assumption|].
      apply bound_permuted; try assumption; apply Permutation_sym, W.
    + rewrite (total_ext _ _ (fun y => law h y * bound (left_over h) a b)).
      * rewrite total_scal_r, Sp; lra.
      * intros y Iy; rewrite <- (idle h E y Iy).
        rewrite (Rmult_comm a), (Rmult_comm b); apply bound_scal; try assumption; apply Np, Iy.
Qed.

End Filter.

(** ** Connecting the dots, wherever they are *)

Lemma profile_between L c d t :
  0 <= c <= d -> 0 <= t <= 1 ->
  (forall xm, In xm (atoms L) -> exp (fst xm) <= c \/ d <= exp (fst xm)) ->
  let b := t * c + (1 - t) * d in
  profile L 1 b = t * profile L 1 c + (1 - t) * profile L 1 d.
Proof.
  intros Hcd Ht Gap b; unfold profile.
  transitivity (lost L * 1 + (t * total (atoms L) (loss_term 1 c)
                              + (1 - t) * total (atoms L) (loss_term 1 d))); [|ring].
  f_equal; rewrite <- !total_scal, <- total_plus; apply total_ext; intros [x m] I.
  specialize (Gap _ I); unfold loss_term; cbn [fst snd] in *; rewrite exp_Ropp.
  pose proof (exp_pos x) as Px; set (g := exp x) in *.
  assert (Iy : 0 < / g) by (apply Rinv_0_lt_compat, Px).
  assert (One : g * / g = 1) by (field; lra).
  assert (Hb : c <= b <= d) by (unfold b; nra).
  destruct Gap as [G|G].
  - rewrite !plus_part_0 by nra; ring.
  - rewrite !plus_part_id by nra; unfold b; ring.
Qed.

Lemma excess_le_weight {A} (l : list A) p q a b b' :
  nonneg l q -> b <= b' -> excess l p q a b' <= excess l p q a b.
Proof.
  intros Hq H; apply total_le; intros y Iy; apply plus_part_le; specialize (Hq y Iy); nra.
Qed.

Section Dots.

Context {A : Type} (l : list A) (p q : A -> R) (L : loss).
Hypotheses (Dp : distribution l p) (Nq : nonneg l q) (HL : proper L).

Lemma dots_from (rest : list (R * R)) c b :
  0 <= c -> c <= b -> StronglySorted Rle (map fst rest) ->
  (forall x, In x (map fst rest) -> c <= exp x) ->
  (forall xm, In xm (atoms L) -> exp (fst xm) <= c \/ In (fst xm) (map fst rest)) ->
  excess l p q 1 c <= profile L 1 c ->
  (forall xm, In xm rest -> excess l p q 1 (exp (fst xm)) <= profile L 1 (exp (fst xm))) ->
  excess l p q 1 b <= profile L 1 b.
Proof.
  revert c; induction rest as [|[x m] rest IH]; intros c Hc Hb Sorted Above Known Hc' Dots.
  - eapply Rle_trans; [apply excess_le_weight with (b := c); assumption|].
    eapply Rle_trans; [exact Hc'|].
    right; unfold profile; f_equal; apply total_ext; intros xm I; unfold loss_term.
    destruct (Known xm I) as [K|[]]; f_equal; rewrite exp_Ropp.
    pose proof (exp_pos (fst xm)) as P; assert (0 < / exp (fst xm)) by (apply Rinv_0_lt_compat, P).
    assert (exp (fst xm) * / exp (fst xm) = 1) by (field; lra).
    rewrite !plus_part_0; nra.
  - simpl in Sorted, Above, Known; apply StronglySorted_inv in Sorted as [Sorted First].
    rewrite Forall_forall in First; pose proof (Above x (or_introl eq_refl)) as Cx.
    set (d := exp x) in *; destruct (Rle_dec b d) as [Le|Gt].
    + assert (exists t, 0 <= t <= 1 /\ b = t * c + (1 - t) * d) as (t & Ht & ->).
      { destruct Cx as [Lt|E].
        - exists ((d - b) / (d - c)); split; [|field; lra]; split.
          + apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
          + apply Rmult_le_reg_r with (d - c); [lra|].
            unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
        - exists 1; split; lra. }
      rewrite profile_between; [|split; assumption|exact Ht|].
      * eapply Rle_trans; [apply excess_convex, Ht|].
        apply Rplus_le_compat; apply Rmult_le_compat_l; try lra.
        apply (Dots (x, m)); left; reflexivity.
      * intros xm I; destruct (Known xm I) as [K|[K|K]]; [left; exact K|right..].
        -- unfold d; rewrite K; lra.
        -- apply exp_le, First, K.
    + apply (IH d); try assumption.
      * left; apply exp_pos.
      * lra.
      * intros y Iy; apply exp_le, First, Iy.
      * intros xm I; destruct (Known xm I) as [K|[K|K]]; auto; left; [lra|].
        rewrite <- K; unfold d; lra.
      * apply (Dots (x, m)); left; reflexivity.
      * intros xm I; apply Dots; right; exact I.
Qed.

Theorem dots_suffice :
  StronglySorted Rle (map fst (atoms L)) -> 1 <= mass L ->
  (forall xm, In xm (atoms L) -> excess l p q 1 (exp (fst xm)) <= profile L 1 (exp (fst xm))) ->
  below_profile l p q (profile L).
Proof.
  intros Sorted Full Dots.
  assert (One : forall b, 0 <= b -> excess l p q 1 b <= profile L 1 b).
  { intros b Hb; apply (dots_from (atoms L) 0 b); try assumption; try lra.
    - intros x _; left; apply exp_pos.
    - intros xm I; right; apply in_map, I.
    - rewrite profile_all by lra.
      eapply Rle_trans; [apply excess_le_mass; try assumption; lra|lra]. }
  intros a b [Ha|<-] Hb.
  - replace a with (a * 1) by ring; replace b with (a * (b / a)) by (field; lra).
    rewrite excess_scal, profile_scal by lra; apply Rmult_le_compat_l; [lra|]; apply One.
    apply Rmult_le_pos; [exact Hb|left; apply Rinv_0_lt_compat, Ha].
  - rewrite excess_zero by assumption; apply profile_nonneg; [exact HL|lra].
Qed.

End Dots.

(** ** delta *)

Theorem loss_dp {A} (l : list A) p q (F : R -> R -> R) eps delta event :
  below_profile l p q F -> F 1 (exp eps) <= delta ->
  prob l p event <= exp eps * prob l q event + delta.
Proof.
  intros H Hd; pose proof (hockey_stick_event l p q (exp eps) event) as E.
  rewrite hockey_stick_excess in E.
  specialize (H 1 (exp eps) ltac:(lra) (Rlt_le _ _ (exp_pos eps))); lra.
Qed.
