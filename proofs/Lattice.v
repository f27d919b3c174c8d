(** Privacy-loss distributions on a lattice: masses at losses z h dominate a mechanism as soon as
    their profile lies above its own at the lattice points (connecting the dots, Doroshenko, Ghazi,
    Kamath, Kumar and Manurangsi 2022); composition is the convolution of lists; mass may be
    rounded up, moved up and given up for lost. *)

From Coq Require Import Reals List ZArith Lra Lia Psatz.
From Dpledger Require Import Sums Finite Domination.
Import ListNotations.
Open Scope R_scope.

(** A mass [m] at loss [z h] weighs m under the first law and m exp(-z h) under the second; [lost]
    is mass of the first law where the loss is infinite. *)
Definition lattice := list (Z * R).

Definition point (h : R) (z : Z) : R := exp (IZR z * h).

Definition lattice_term (h a b : R) (zm : Z * R) : R :=
  snd zm * plus_part (a - b * / point h (fst zm)).

Definition lattice_profile (h : R) (masses : lattice) (lost a b : R) : R :=
  lost * a + total masses (lattice_term h a b).

Definition masses_nonneg (masses : lattice) : Prop := forall zm, In zm masses -> 0 <= snd zm.

Lemma point_pos h z : 0 < point h z.
Proof. apply exp_pos. Qed.

Lemma point_plus h y z : point h (y + z) = point h y * point h z.
Proof. unfold point; rewrite plus_IZR, Rmult_plus_distr_r; apply exp_plus. Qed.

Lemma point_le h y z : 0 < h -> (y <= z)%Z -> point h y <= point h z.
Proof. intros Hh H; apply exp_le, Rmult_le_compat_r; [lra|apply IZR_le, H]. Qed.

Lemma lattice_term_nonneg h a b zm : 0 <= snd zm -> 0 <= lattice_term h a b zm.
Proof. intros H; apply Rmult_le_pos; [exact H|apply plus_part_nonneg]. Qed.

Lemma lattice_profile_scal h masses lost c a b :
  0 <= c -> lattice_profile h masses lost (c * a) (c * b) = c * lattice_profile h masses lost a b.
Proof.
  intros Hc; unfold lattice_profile; rewrite Rmult_plus_distr_l, <- total_scal; f_equal; [ring|].
  apply total_ext; intros zm _; unfold lattice_term.
  replace (c * a - c * b * / point h (fst zm)) with (c * (a - b * / point h (fst zm))) by ring.
  rewrite plus_part_scal by exact Hc; ring.
Qed.

(** ** Connecting the dots *)

(** Between two neighbouring points of the lattice the profile is affine. *)
Lemma lattice_profile_affine h masses lost z t :
  0 < h -> 0 <= t <= 1 ->
  let b := t * point h z + (1 - t) * point h (z + 1) in
  lattice_profile h masses lost 1 b
    = t * lattice_profile h masses lost 1 (point h z)
      + (1 - t) * lattice_profile h masses lost 1 (point h (z + 1)).
Proof.
  intros Hh Ht b; unfold lattice_profile.
  transitivity (lost * 1 + (t * total masses (lattice_term h 1 (point h z))
                + (1 - t) * total masses (lattice_term h 1 (point h (z + 1))))); [|ring].
  f_equal; rewrite <- !total_scal, <- total_plus; apply total_ext; intros [y m] _.
  unfold lattice_term; cbn [fst snd].
  pose proof (point_pos h y) as Py; pose proof (point_le h z (z + 1) Hh ltac:(lia)) as Pz.
  assert (Hb : point h z <= b <= point h (z + 1)) by (unfold b; nra).
  assert (Iy : 0 < / point h y) by (apply Rinv_0_lt_compat, Py).
  assert (One : point h y * / point h y = 1) by (field; lra).
  destruct (Z_le_gt_dec y z) as [L|G].
  - pose proof (point_le h y z Hh L).
    rewrite !plus_part_0 by nra; ring.
  - pose proof (point_le h (z + 1) y Hh ltac:(lia)).
    rewrite !plus_part_id by nra; unfold b; ring.
Qed.

(** Every positive number lies between two neighbouring points. *)
Lemma between_points h b : 0 < h -> 0 < b ->
  exists z t, 0 <= t <= 1 /\ b = t * point h z + (1 - t) * point h (z + 1).
Proof.
  intros Hh Hb; set (x := ln b / h); set (z := (up x - 1)%Z); exists z.
  destruct (archimed x) as [U1 U2].
  assert (L : IZR z <= x < IZR (z + 1)).
  { unfold z; rewrite plus_IZR, minus_IZR; simpl; lra. }
  assert (E : b = exp (x * h)).
  { unfold x; replace (ln b / h * h) with (ln b) by (field; lra); symmetry; apply exp_ln, Hb. }
  assert (Low : point h z <= b) by (rewrite E; apply exp_le, Rmult_le_compat_r; lra).
  assert (High : b < point h (z + 1)) by (rewrite E; apply exp_increasing, Rmult_lt_compat_r; lra).
  set (w := point h (z + 1) - point h z); assert (0 < w) by (unfold w; lra).
  exists ((point h (z + 1) - b) / w); split.
  - split.
    + apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; assumption].
    + apply Rmult_le_reg_r with w; [assumption|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra.
      unfold w; lra.
  - unfold w; field; unfold w in *; lra.
Qed.

(** Where the lattice's profile is above the mechanism's at every lattice point, and at 0 (no mass
    is missing), it is above everywhere: one is convex in b, the other affine in between. *)
Theorem connecting_the_dots {A} (l : list A) p q (F : R -> R -> R) h masses lost :
  0 < h -> distribution l p -> nonneg l q -> masses_nonneg masses ->
  below_profile l p q F ->
  (forall z, F 1 (point h z) <= lattice_profile h masses lost 1 (point h z)) ->
  1 <= lost + total masses snd ->
  below_profile l p q (lattice_profile h masses lost).
Proof.
  intros Hh Dp Nq Hm HF Dots Full.
  assert (One : forall b, 0 <= b -> excess l p q 1 b <= lattice_profile h masses lost 1 b).
  { intros b [Hb|<-].
    - destruct (between_points h b Hh Hb) as (z & t & Ht & ->).
      rewrite lattice_profile_affine by assumption.
      eapply Rle_trans; [apply excess_convex, Ht|].
      assert (D : forall z, excess l p q 1 (point h z)
                            <= lattice_profile h masses lost 1 (point h z)).
      { intros y; eapply Rle_trans; [apply HF; [lra|left; apply point_pos]|apply Dots]. }
      apply Rplus_le_compat; apply Rmult_le_compat_l; try apply D; lra.
    - eapply Rle_trans; [apply excess_le_mass; try assumption; lra|].
      unfold lattice_profile; eapply Rle_trans; [exact Full|].
      right; rewrite Rmult_1_r; f_equal; apply total_ext; intros zm _; unfold lattice_term.
      rewrite Rmult_0_l, Rminus_0_r, plus_part_id by lra; ring. }
  intros a b [Ha|<-] Hb.
  - replace a with (a * 1) by ring; replace b with (a * (b / a)) by (field; lra).
    rewrite excess_scal, lattice_profile_scal by lra.
    apply Rmult_le_compat_l; [lra|]; apply One.
    apply Rmult_le_pos; [exact Hb|left; apply Rinv_0_lt_compat, Ha].
  - rewrite excess_zero by assumption; unfold lattice_profile; rewrite Rmult_0_r, Rplus_0_l.
    apply total_nonneg; intros zm I; apply lattice_term_nonneg, Hm, I.
Qed.

(** ** Composition is convolution *)

Definition convolved (masses masses' : lattice) : lattice :=
  flat_map (fun x => map (fun y => ((fst x + fst y)%Z, snd x * snd y)) masses') masses.

Lemma convolved_nonneg masses masses' :
  masses_nonneg masses -> masses_nonneg masses' -> masses_nonneg (convolved masses masses').
Proof.
  intros H H' zm I; apply in_flat_map in I as (x & Ix & I); apply in_map_iff in I as (y & <- & Iy).
  apply Rmult_le_pos; [apply H, Ix|apply H', Iy].
Qed.

Lemma total_convolved masses masses' :
  total (convolved masses masses') snd = total masses snd * total masses' snd.
Proof.
  unfold convolved; rewrite total_flat_map, <- total_scal_r; apply total_ext; intros x _.
  rewrite total_map, <- total_scal; reflexivity.
Qed.

(** The mass of an infinite loss of both together: of the second, or of the first and then
    anything finite of the second. *)
Definition both_lost (lost lost' : R) (masses' : lattice) : R := lost' + lost * total masses' snd.

(** What follows after an outcome, summed over the outcomes. *)
Theorem lattice_step {A} (l : list A) p q h masses lost masses' lost' a b :
  distribution l p -> nonneg l q -> masses_nonneg masses' ->
  below_profile l p q (lattice_profile h masses lost) -> 0 <= a -> 0 <= b ->
  total l (fun y => lattice_profile h masses' lost' (a * p y) (b * q y))
    <= lattice_profile h (convolved masses masses') (both_lost lost lost' masses') a b.
Proof.
  intros [Hp Sp] Hq Hm' H Ha Hb.
  transitivity (lost' * a
    + total masses' (fun y => snd y * excess l p q a (b * / point h (fst y)))).
  { unfold lattice_profile; rewrite total_plus, total_scal, total_scal, Sp, Rmult_1_r.
    apply Rplus_le_compat_l; right; unfold lattice_term; rewrite total_swap.
    apply total_ext; intros y _; unfold excess; rewrite <- total_scal; apply total_ext; intros x _.
    do 2 f_equal; ring. }
  transitivity (lost' * a
    + total masses' (fun y => snd y * lattice_profile h masses lost a (b * / point h (fst y)))).
  { apply Rplus_le_compat_l, total_le; intros y Iy; apply Rmult_le_compat_l; [apply Hm', Iy|].
    apply H; [exact Ha|apply Rmult_le_pos; [exact Hb|left; apply Rinv_0_lt_compat, point_pos]]. }
  right; unfold lattice_profile at 1.
  rewrite (total_ext _ _ (fun y => lost * a * snd y
            + total masses (fun x => snd x * snd y
                * plus_part (a - b * / point h (fst x + fst y))))).
  - rewrite total_plus, total_scal, <- (total_swap masses masses').
    unfold lattice_profile, convolved, both_lost; rewrite total_flat_map.
    rewrite <- Rplus_assoc; f_equal; [ring|].
    apply total_ext; intros x _; rewrite total_map; reflexivity.
  - intros y _; rewrite Rmult_plus_distr_l, <- total_scal; f_equal; [ring|].
    apply total_ext; intros x _; unfold lattice_term; rewrite point_plus.
    rewrite Rmult_comm, (Rmult_comm (snd x) (snd y)), Rmult_assoc, Rmult_comm.
    replace (b * / point h (fst y) * / point h (fst x))
      with (b * / (point h (fst x) * point h (fst y)))
      by (field; split; apply Rgt_not_eq, point_pos).
    ring.
Qed.

(** Two mechanisms, the second chosen in view of the first one's outcome. *)
Theorem lattice_composition {A B} (l : list A) (l' : A -> list B) p q u v
  h masses lost masses' lost' :
  distribution l p -> nonneg l q -> masses_nonneg masses' ->
  below_profile l p q (lattice_profile h masses lost) ->
  (forall y, In y l -> below_profile (l' y) (u y) (v y) (lattice_profile h masses' lost')) ->
  below_profile (pairs l l') (joint p u) (joint q v)
    (lattice_profile h (convolved masses masses') (both_lost lost lost' masses')).
Proof.
  intros Dp Nq Hm' H1 H2 a b Ha Hb; rewrite excess_pairs.
  eapply Rle_trans; [|apply (lattice_step l p q h masses lost masses' lost' a b); assumption].
  apply total_le; intros y Iy; apply H2; [exact Iy| |];
    apply Rmult_le_pos; try assumption; [apply Dp|apply Nq]; exact Iy.
Qed.

(** Rounds [t], [t] + 1, ..., [t] + [n] - 1 together. *)
Fixpoint convolved_rounds (masses : nat -> lattice) (lost : nat -> R) (t n : nat) : lattice * R :=
  match n with
  | O => ([(0%Z, 1)], 0)
  | S n' =>
      let '(rest, gone) := convolved_rounds masses lost (S t) n' in
      (convolved (masses t) rest, both_lost (lost t) gone rest)
  end.

Lemma convolved_rounds_nonneg masses lost t n :
  (forall t, masses_nonneg (masses t)) -> masses_nonneg (fst (convolved_rounds masses lost t n)).
Proof.
  intros H; revert t; induction n as [|n IH]; intros t; simpl.
  - intros zm [<-|[]]; simpl; lra.
  - specialize (IH (S t)); destruct (convolved_rounds masses lost (S t) n) as [rest gone].
    apply convolved_nonneg; [apply H|exact IH].
Qed.

(** T adaptive rounds, the distribution of each fixed beforehand: the convolution of all. *)
Theorem lattice_ledger {A} (outcomes : list A -> list A) (law law' : list A -> A -> R)
  h (masses : nat -> lattice) (lost : nat -> R) (T : nat) :
  (forall hist, distribution (outcomes hist) (law hist)) ->
  (forall hist, nonneg (outcomes hist) (law' hist)) ->
  (forall t, masses_nonneg (masses t)) ->
  (forall hist, below_profile (outcomes hist) (law hist) (law' hist)
                  (lattice_profile h (masses (length hist)) (lost (length hist)))) ->
  let '(all, gone) := convolved_rounds masses lost 0 T in
  below_profile (transcripts outcomes T) (run law) (run law') (lattice_profile h all gone).
Proof.
  intros Dl Nl Hm H.
  set (rest := fun hist : list A => convolved_rounds masses lost (length hist) (T - length hist)).
  pose proof (adaptive_bound outcomes law law' (fun hist => proj1 (Dl hist)) Nl
    (fun hist => lattice_profile h (fst (rest hist)) (snd (rest hist))) T) as B.
  assert (E : rest [] = convolved_rounds masses lost 0 T)
    by (unfold rest; simpl; rewrite Nat.sub_0_r; reflexivity).
  cbv beta in B; rewrite E in B.
  destruct (convolved_rounds masses lost 0 T) as [all gone]; apply B; clear B E.
  - intros hist a b I _ _; unfold rest.
    rewrite (transcripts_length outcomes T hist I), Nat.sub_diag.
    unfold lattice_profile, lattice_term, point; simpl.
    rewrite !Rmult_0_l, exp_0, Rinv_1, Rmult_1_r; lra.
  - intros t hist a b Ht I Ha Hb; unfold rest.
    pose proof (transcripts_length outcomes t hist I) as L; cbn [length]; rewrite L.
    replace (T - t)%nat with (S (T - S t)) by lia; cbn [convolved_rounds].
    pose proof (convolved_rounds_nonneg masses lost (S t) (T - S t) Hm) as N.
    destruct (convolved_rounds masses lost (S t) (T - S t)) as [more gone']; cbn [fst snd] in *.
    specialize (H hist); rewrite L in H; apply lattice_step; auto.
Qed.

(** ** Rounding *)

(** More mass at a point, or the same mass at a larger loss. *)
Definition raised (zm zm' : Z * R) : Prop := (fst zm <= fst zm')%Z /\ 0 <= snd zm <= snd zm'.

Theorem lattice_raised h masses masses' lost lost' a b :
  0 < h -> 0 <= a -> 0 <= b -> Forall2 raised masses masses' -> lost <= lost' ->
  lattice_profile h masses lost a b <= lattice_profile h masses' lost' a b.
Proof.
  intros Hh Ha Hb H Hl; unfold lattice_profile; apply Rplus_le_compat.
  - apply Rmult_le_compat_r; assumption.
  - induction H as [|zm zm' masses masses' [Hz Hm] H IH]; [simpl; lra|]; simpl.
    apply Rplus_le_compat; [|exact IH]; unfold lattice_term.
    apply Rmult_le_compat; [apply Hm|apply plus_part_nonneg|apply Hm|].
    apply plus_part_le, Rplus_le_compat_l, Ropp_le_contravar, Rmult_le_compat_l; [exact Hb|].
    apply Rinv_le_contravar; [apply point_pos|apply point_le; assumption].
Qed.

(** Mass above the window counts as lost. *)
Theorem lattice_cut h z m masses lost a b :
  0 <= a -> 0 <= b -> 0 <= m ->
  lattice_profile h ((z, m) :: masses) lost a b <= lattice_profile h masses (lost + m) a b.
Proof.
  intros Ha Hb Hm; unfold lattice_profile; simpl; unfold lattice_term at 1; cbn [fst snd].
  assert (plus_part (a - b * / point h z) <= a).
  { apply Rmax_lub; [exact Ha|].
    assert (0 <= b * / point h z); [|lra].
    apply Rmult_le_pos; [exact Hb|left; apply Rinv_0_lt_compat, point_pos]. }
  nra.
Qed.

(** The mass of an infinite loss, as a checker may count it that has rounded up. *)
Lemma both_lost_le (masses masses' : lattice) (lost lost' : R) :
  0 <= lost' -> 1 <= lost + total masses snd ->
  both_lost lost lost' masses' <= lost * (total masses' snd + lost') + lost' * total masses snd.
Proof. intros Hl Full; unfold both_lost; nra. Qed.

(** ** Doubling the step

    Mass at [z] is shared between [z - 1] and [z + 1] so that the mass under both laws stays: the
    positive part is convex. *)
Theorem lattice_shared h z m masses lost a b :
  0 < h -> 0 <= m ->
  lattice_profile h ((z, m) :: masses) lost a b
    <= lattice_profile h (((z - 1)%Z, m * / (1 + exp h))
                          :: ((z + 1)%Z, m * (exp h * / (1 + exp h))) :: masses) lost a b.
Proof.
  intros Hh Hm; unfold lattice_profile; cbn [total]; unfold lattice_term at 1 3 4; cbn [fst snd].
  pose proof (exp_pos h) as He; set (w := / (1 + exp h)).
  assert (Hw : 0 < w) by (apply Rinv_0_lt_compat; lra).
  assert (One : w + exp h * w = 1) by (unfold w; field; lra).
  assert (Ed : / point h (z - 1) = exp h * / point h z).
  { unfold point; rewrite minus_IZR, <- !exp_Ropp, <- exp_plus; f_equal; ring. }
  assert (Eu : / point h (z + 1) = / exp h * / point h z).
  { unfold point; rewrite plus_IZR, <- !exp_Ropp, <- exp_plus; f_equal; ring. }
  rewrite Ed, Eu; set (c := b * / point h z).
  replace (b * (exp h * / point h z)) with (exp h * c) by (unfold c; ring).
  replace (b * (/ exp h * / point h z)) with (/ exp h * c) by (unfold c; ring).
  assert (Ie : exp h * / exp h = 1) by (apply Rinv_r; lra).
  assert (J : plus_part (a - c)
              <= w * plus_part (a - exp h * c) + exp h * w * plus_part (a - / exp h * c)).
  { apply Rmax_lub.
    - apply Rplus_le_le_0_compat; apply Rmult_le_pos; try apply plus_part_nonneg; nra.
    - pose proof (plus_part_ge (a - exp h * c)) as L1.
      pose proof (plus_part_ge (a - / exp h * c)) as L2.
      apply (Rmult_le_compat_l w) in L1; [|lra].
      apply (Rmult_le_compat_l (exp h * w)) in L2; [|nra].
      replace (a - c) with (w * (a - exp h * c) + exp h * w * (a - / exp h * c)); [lra|].
      replace (w * (a - exp h * c) + exp h * w * (a - / exp h * c))
        with ((w + exp h * w) * a - (exp h * w + w * (exp h * / exp h)) * c) by ring.
      rewrite Ie, Rmult_1_r, (Rplus_comm (exp h * w)), One; ring. }
  apply (Rmult_le_compat_l m) in J; [|exact Hm]; lra.
Qed.

(** Even points are the lattice of the double step. *)
Lemma point_doubled h z : point h (2 * z) = point (2 * h) z.
Proof. unfold point; rewrite mult_IZR; f_equal; ring. Qed.

(** ** delta *)

(** The expectation of (1 - exp(eps - loss))^+. *)
Definition lattice_delta (h : R) (masses : lattice) (lost eps : R) : R :=
  lost + total masses (fun zm => snd zm * plus_part (1 - exp (eps - IZR (fst zm) * h))).

Theorem lattice_event {A} (l : list A) p q h masses lost eps event :
  below_profile l p q (lattice_profile h masses lost) ->
  prob l p event <= exp eps * prob l q event + lattice_delta h masses lost eps.
Proof.
  intros H; pose proof (hockey_stick_event l p q (exp eps) event) as E.
  rewrite hockey_stick_excess in E; pose proof (exp_pos eps) as P.
  specialize (H 1 (exp eps) ltac:(lra) ltac:(lra)).
  assert (lattice_profile h masses lost 1 (exp eps) = lattice_delta h masses lost eps); [|lra].
  unfold lattice_profile, lattice_delta; rewrite Rmult_1_r; f_equal; apply total_ext; intros zm _.
  unfold lattice_term, point, Rminus; rewrite exp_plus, exp_Ropp; reflexivity.
Qed.

Corollary lattice_dp {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R)
  h masses lost eps delta :
  (forall x y, adj x y -> below_profile l (M x) (M y) (lattice_profile h masses lost)) ->
  lattice_delta h masses lost eps <= delta -> dp adj l M eps delta.
Proof.
  intros H Hd x y Axy event; pose proof (lattice_event l _ _ _ _ _ eps event (H x y Axy)); lra.
Qed.
