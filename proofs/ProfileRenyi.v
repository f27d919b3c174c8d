(** From privacy profiles to Renyi divergences. Two laws below whose profile lies that of others have
    no smaller moment of any order: the largest of tangents to p^alpha q^(1-alpha) is a sum of excesses.
    What lies below the profile of a Gaussian step does so at any finitely many points below a finite
    pair: normal laws cut where the profile has its thresholds, in either order as likely. *)

From Coq Require Import Reals List Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian GaussianDelta Domination BatchSampling GaussianComposition.
Import ListNotations.
Open Scope R_scope.

(** ** Sorted points *)

Lemma inserted x lo cuts : ascending lo cuts -> Rbar_le lo (Finite x) ->
  exists cuts', ascending lo cuts' /\ In x cuts' /\ incl cuts cuts'.
Proof.
  revert lo; induction cuts as [|c cuts IH]; intros lo A L.
  - exists [x]; split; [split; [exact L|exact I]|split; [left; reflexivity|intros y []]].
  - destruct A as [Lc A]; destruct (Rle_lt_dec x c) as [Le|Gt].
    + exists (x :: c :: cuts); split; [split; [exact L|split; [exact Le|exact A]]|].
      split; [left; reflexivity|intros y I; right; exact I].
    + destruct (IH (Finite c) A (Rlt_le _ _ Gt)) as (cuts' & A' & J & K).
      exists (c :: cuts'); split; [split; assumption|split; [right; exact J|]].
      intros y [->|I]; [left; reflexivity|right; apply K, I].
Qed.

Lemma sorted (points : list R) : exists cuts, ascending m_infty cuts /\ incl points cuts.
Proof.
  induction points as [|x points (cuts & A & J)]; [exists []; split; [exact I|intros y []]|].
  destruct (inserted x m_infty cuts A I) as (cuts' & A' & K & J'); exists cuts'; split; [exact A'|].
  intros y [<-|L]; [exact K|apply J', J, L].
Qed.

(** ** Tangents *)

Section Tangents.

Variable alpha : R.
Hypothesis Ha : 1 < alpha.

(** Weights and thresholds. *)
Definition kinked (ks : list (R * R)) (p q : R) : R :=
  total ks (fun k => fst k * plus_part (p - snd k * q)).

Definition under (ks : list (R * R)) : Prop :=
  (forall k, In k ks -> 0 <= fst k /\ 0 <= snd k) /\
  forall p q, 0 <= p -> 0 <= q -> (q = 0 -> p = 0) -> kinked ks p q <= renyi_term alpha p q.

(** From some ratio on a line that touches at [ratio]. *)
Definition ends_in (ks : list (R * R)) (slope less ratio : R) : Prop :=
  0 <= ratio /\ slope * ratio - less = renyi_term alpha ratio 1 /\
  (forall p q, 0 <= p -> 0 <= q -> (q = 0 -> p = 0) -> slope * p - less * q <= renyi_term alpha p q) /\
  exists from, from <= ratio /\ forall p q, 0 <= q -> from * q <= p -> kinked ks p q = slope * p - less * q.

Lemma one_more_tangent ks slope less ratio s :
  under ks -> ends_in ks slope less ratio -> ratio <= exp s ->
  exists ks' slope' less', under ks' /\ ends_in ks' slope' less' (exp s) /\
  forall p q, kinked ks p q <= kinked ks' p q.
Proof.
  intros [Nn Low] (Hr & Touch & Line & from & Lf & End) Le.
  set (slope' := alpha * exp ((alpha - 1) * s)); set (less' := (alpha - 1) * exp (alpha * s)).
  pose proof (exp_pos s) as Pe.
  assert (Line' : forall p q, 0 <= p -> 0 <= q -> (q = 0 -> p = 0) ->
            slope' * p - less' * q <= renyi_term alpha p q)
    by (intros p q; apply (renyi_term_tangent alpha s p q Ha)).
  assert (Touch' : slope' * exp s - less' = renyi_term alpha (exp s) 1).
  { pose proof (renyi_term_touches alpha (exp s) 1 Pe Rlt_0_1) as T; rewrite ln_exp, ln_1, Rminus_0_r in T.
    unfold slope', less'; lra. }
  assert (N01 : 1 = 0 -> exp s = 0) by lra; assert (N0r : 1 = 0 -> ratio = 0) by lra.
  destruct (Rle_lt_dec (exp s) ratio) as [Ge|Lt].
  { replace (exp s) with ratio by lra; exists ks, slope, less.
    split; [split; assumption|split; [|intros; lra]].
    split; [exact Hr|split; [exact Touch|split; [exact Line|exists from; split; assumption]]]. }
  pose proof (Line (exp s) 1 ltac:(lra) ltac:(lra) N01) as E2; rewrite <- Touch' in E2.
  pose proof (Line' ratio 1 Hr ltac:(lra) N0r) as E1; rewrite <- Touch in E1.
  destruct (Rle_lt_dec slope' slope) as [Flat|Steep].
  { assert (slope' = slope) as Es by nra; assert (less' = less) as El by nra.
    exists ks, slope, less; split; [split; assumption|split; [|intros; lra]].
    split; [lra|split; [rewrite <- Es, <- El; exact Touch'|split; [exact Line|]]].
    exists from; split; [lra|exact End]. }
  set (at_ := (less' - less) / (slope' - slope)).
  assert (Ea : (slope' - slope) * at_ = less' - less) by (unfold at_; field; lra).
  assert (A1 : ratio <= at_) by (apply Rmult_le_reg_l with (slope' - slope); lra).
  assert (A2 : at_ <= exp s) by (apply Rmult_le_reg_l with (slope' - slope); lra).
  assert (Meet : forall p q, 0 <= q -> at_ * q <= p ->
            kinked ((slope' - slope, at_) :: ks) p q = slope' * p - less' * q).
  { intros p q Hq Hp; unfold kinked; cbn [total fst snd]; fold (kinked ks p q).
    rewrite plus_part_id, End by nra.
    replace ((slope' - slope) * (p - at_ * q)) with ((slope' - slope) * p - (slope' - slope) * at_ * q) by ring.
    rewrite Ea; ring. }
  exists ((slope' - slope, at_) :: ks), slope', less'; split; [split|split].
  - intros k [<-|I]; [cbn [fst snd]; lra|apply Nn, I].
  - intros p q Hp Hq Z; destruct (Rle_lt_dec (at_ * q) p) as [G|L].
    + rewrite Meet by assumption; apply Line'; assumption.
    + unfold kinked; cbn [total fst snd]; fold (kinked ks p q).
      rewrite plus_part_0, Rmult_0_r, Rplus_0_l by lra; apply Low; assumption.
  - split; [lra|split; [exact Touch'|split; [exact Line'|exists at_; split; [exact A2|exact Meet]]]].
  - intros p q; unfold kinked; cbn [total fst snd]; fold (kinked ks p q).
    pose proof (plus_part_nonneg (p - at_ * q)); nra.
Qed.

Lemma touching ks slope less ratio p q s :
  ends_in ks slope less ratio -> ratio = exp s -> 0 < q -> p = exp s * q -> kinked ks p q = renyi_term alpha p q.
Proof.
  intros (_ & Touch & _ & from & Lf & End) -> Hq ->; pose proof (exp_pos s).
  rewrite End by nra; replace (slope * (exp s * q) - less * q) with ((slope * exp s - less) * q) by ring.
  rewrite Touch; replace q with (1 * q) at 3 by ring; rewrite renyi_term_mult, (renyi_term_diag _ q) by lra; reflexivity.
Qed.

Lemma tangents_from lo cuts : ascending lo cuts -> forall ks slope less ratio,
  under ks -> ends_in ks slope less ratio ->
  match lo with Finite s => ratio = exp s | m_infty => ratio = 0 | p_infty => False end ->
  exists ks', under ks' /\ (forall p q, kinked ks p q <= kinked ks' p q) /\
  forall s p q, In s cuts -> 0 < q -> p = exp s * q -> renyi_term alpha p q <= kinked ks' p q.
Proof.
  revert lo; induction cuts as [|c cuts IH]; intros lo A ks slope less ratio U E R.
  - exists ks; split; [exact U|split; [intros; lra|intros s p q []]].
  - destruct A as [Lc A].
    assert (Le : ratio <= exp c).
    { destruct lo as [s| |]; [|contradiction|]; rewrite R; [apply exp_le, Lc|left; apply exp_pos]. }
    destruct (one_more_tangent ks slope less ratio c U E Le) as (ks1 & slope1 & less1 & U1 & E1 & G1).
    destruct (IH (Finite c) A ks1 slope1 less1 (exp c) U1 E1 eq_refl) as (ks' & U' & G' & T').
    exists ks'; split; [exact U'|split].
    + intros p q; eapply Rle_trans; [apply G1|apply G'].
    + intros s p q [<-|I] Hq Hp; [|apply (T' s); assumption].
      rewrite <- (touching ks1 slope1 less1 (exp c) p q c E1 eq_refl Hq Hp); apply G'.
Qed.

Lemma tangents (points : list R) : exists ks, under ks /\
  (forall p q, 0 <= kinked ks p q) /\
  forall s p q, In s points -> 0 < q -> p = exp s * q -> renyi_term alpha p q <= kinked ks p q.
Proof.
  destruct (sorted points) as (cuts & A & J).
  assert (U : under []) by (split; [intros k []|intros; apply renyi_term_nonneg]).
  assert (E : ends_in [] 0 0 0).
  { split; [lra|split; [rewrite renyi_term_0_l; ring|split]].
    - intros p q _ _ _; pose proof (renyi_term_nonneg alpha p q); lra.
    - exists 0; split; [lra|intros; unfold kinked; simpl; ring]. }
  destruct (tangents_from m_infty cuts A [] 0 0 0 U E eq_refl) as (ks & U' & _ & T).
  exists ks; split; [exact U'|split; [|intros s p q I; apply T, J, I]].
  intros p q; apply total_nonneg; intros k I; apply Rmult_le_pos; [apply U', I|apply plus_part_nonneg].
Qed.

Lemma kinked_total {A} (l : list A) ks p q :
  total l (fun a => kinked ks (p a) (q a)) = total ks (fun k => fst k * excess l p q 1 (snd k)).
Proof.
  unfold kinked; rewrite total_swap; apply total_ext; intros k _; rewrite total_scal; f_equal.
  apply total_ext; intros a _; f_equal; ring.
Qed.

Lemma excess_at_least {A} (l : list A) p q a0 b a : nonneg l p -> nonneg l q -> In a l ->
  plus_part (a0 * p a - b * q a) <= excess l p q a0 b.
Proof.
  intros Np Nq I; unfold excess; induction l as [|y l IH]; [destruct I|]; simpl.
  assert (Nn : 0 <= total l (fun y => plus_part (a0 * p y - b * q y)))
    by (apply total_nonneg; intros; apply plus_part_nonneg).
  destruct I as [->|I]; [lra|]; pose proof (plus_part_nonneg (a0 * p y - b * q y)).
  assert (plus_part (a0 * p a - b * q a) <= total l (fun y => plus_part (a0 * p y - b * q y))); [|lra].
  apply IH; [intros z J; apply Np; right; exact J|intros z J; apply Nq; right; exact J|exact I].
Qed.

(** Below finite pairs of such a moment, at any thresholds, are laws of such a moment. *)
Theorem moment_of_profile {A B} (l : list A) (p q : A -> R) most : nonneg l p -> nonneg l q ->
  (forall gammas : list R, exists (l' : list B) p' q',
     nonneg l' p' /\ nonneg l' q' /\ covered l' p' q' /\ moment alpha l' p' q' <= most /\
     forall g, In g gammas -> 0 <= g -> excess l p q 1 g <= excess l' p' q' 1 g) ->
  covered l p q /\ moment alpha l p q <= most.
Proof.
  intros Np Nq Finite.
  assert (Kinks : forall ks, under ks -> total ks (fun k => fst k * excess l p q 1 (snd k)) <= most).
  { intros ks [Nn Low]; destruct (Finite (map snd ks)) as (l' & p' & q' & Np' & Nq' & C & M & E).
    apply Rle_trans with (2 := M).
    apply Rle_trans with (total ks (fun k => fst k * excess l' p' q' 1 (snd k))).
    - apply total_le; intros k I; destruct (Nn k I); apply Rmult_le_compat_l; [assumption|].
      apply E; [apply in_map, I|assumption].
    - rewrite <- kinked_total; apply total_le; intros b I; apply Low; auto. }
  split.
  - intros a I Z; destruct (Np a I) as [Pos|E]; [exfalso|symmetry; exact E].
    assert (Most : 0 <= most).
    { refine (Kinks [] _); split; [intros k []|intros u v _ _ _; apply renyi_term_nonneg]. }
    set (s := ln ((most + 1) / p a) / (alpha - 1)).
    assert (Up : 0 < (most + 1) / p a) by (apply Rdiv_lt_0_compat; lra).
    assert (Es : exp ((alpha - 1) * s) * p a = most + 1).
    { unfold s; replace ((alpha - 1) * (ln ((most + 1) / p a) / (alpha - 1))) with (ln ((most + 1) / p a)) by (field; lra).
      rewrite exp_ln by exact Up; field; lra. }
    set (slope := alpha * exp ((alpha - 1) * s)); set (less := (alpha - 1) * exp (alpha * s)).
    pose proof (exp_pos ((alpha - 1) * s)) as P1; pose proof (exp_pos (alpha * s)) as P2.
    assert (Ps : 0 < slope) by (unfold slope; apply Rmult_lt_0_compat; lra).
    assert (Pl : 0 <= less) by (unfold less; apply Rmult_le_pos; lra).
    assert (U : under [(slope, less / slope)]).
    { split.
      - intros k [<-|[]]; cbn [fst snd]; split; [lra|]; apply Rmult_le_pos; [exact Pl|left; apply Rinv_0_lt_compat, Ps].
      - intros u v Hu Hv Zu; unfold kinked; cbn [total fst snd]; rewrite Rplus_0_r.
        unfold plus_part, Rmax; destruct (Rle_dec 0 _); [|rewrite Rmult_0_r; apply renyi_term_nonneg].
        eapply Rle_trans; [right|apply (renyi_term_tangent alpha s u v Ha Hu Hv Zu)].
        fold slope less; field; lra. }
    specialize (Kinks _ U); cbn [total fst snd] in Kinks; rewrite Rplus_0_r in Kinks.
    pose proof (excess_at_least l p q 1 (less / slope) a Np Nq I) as E; rewrite Z, Rmult_0_r, Rmult_1_l, Rminus_0_r in E.
    rewrite plus_part_id in E by lra; apply (Rmult_le_compat_l slope) in E; [|lra].
    assert (Big : slope * p a = alpha * (most + 1)) by (unfold slope; rewrite Rmult_assoc, Es; reflexivity).
    rewrite Big in E; assert (1 * (most + 1) < alpha * (most + 1)) by (apply Rmult_lt_compat_r; lra); lra.
  - destruct (tangents (map (fun a => ln (p a) - ln (q a)) l)) as (ks & U & Nn & Touch).
    eapply Rle_trans; [|apply (Kinks ks U)]; rewrite <- kinked_total; apply total_le; intros a I.
    destruct (Np a I) as [Pp|<-]; [|rewrite renyi_term_0_l; apply Nn].
    destruct (Nq a I) as [Pq|<-]; [|rewrite renyi_term_0_r; apply Nn].
    apply (Touch (ln (p a) - ln (q a))); [apply (in_map (fun a => ln (p a) - ln (q a)) l a I)|exact Pq|].
    unfold Rminus; rewrite exp_plus, exp_Ropp, !exp_ln by assumption; field; lra.
Qed.

End Tangents.

(** ** Finite pairs for a Gaussian step *)

Section Pair.

Variable mu : R.
Hypothesis Hmu : 0 <= mu.

Notation cell := (Rbar * Rbar)%type.

(** Two laws, in either order as likely. *)
Definition both_ways (cuts : list R) : list (bool * cell) :=
  map (pair true) (cells m_infty cuts) ++ map (pair false) (cells m_infty cuts).
Definition one_way (u v : cell -> R) (y : bool * cell) : R := (if fst y then u (snd y) else v (snd y)) / 2.

Notation P := (rounded mu 1).
Notation Q := (rounded 0 1).

Lemma total_both_ways cuts f :
  total (both_ways cuts) f = total (cells m_infty cuts) (fun c => f (true, c)) + total (cells m_infty cuts) (fun c => f (false, c)).
Proof. unfold both_ways; rewrite total_app, !total_map; reflexivity. Qed.

Lemma excess_both_ways cuts u v a b :
  excess (both_ways cuts) (one_way u v) (one_way v u) a b
    = (excess (cells m_infty cuts) u v a b + excess (cells m_infty cuts) v u a b) / 2.
Proof.
  unfold excess; rewrite total_both_ways; unfold one_way; cbn [fst snd].
  assert (Half : forall (f g : cell -> R) c, plus_part (a * (f c / 2) - b * (g c / 2)) = / 2 * plus_part (a * f c - b * g c))
    by (intros f g c; rewrite <- plus_part_scal by lra; f_equal; field).
  rewrite (total_ext _ _ _ (fun c _ => Half u v c)), (total_ext _ _ _ (fun c _ => Half v u c)), !total_scal; field.
Qed.

(** Cells beyond a cut. *)
Lemma beyond_cut F lo cuts t : In t cuts ->
  F p_infty - F (Finite t) <= total (cells lo cuts) (fun c => plus_part (increment F c)).
Proof.
  revert lo; induction cuts as [|c cuts IH]; intros lo; [intros []|]; cbn [cells total].
  pose proof (plus_part_nonneg (increment F (lo, Finite c))) as Nn; intros [->|I]; [|specialize (IH (Finite c) I); lra].
  assert (F p_infty - F (Finite t) <= total (cells (Finite t) cuts) (fun c => plus_part (increment F c))); [|lra].
  rewrite <- cells_total with (cuts := cuts); apply total_le; intros; apply plus_part_ge.
Qed.

Lemma cut_reaches cuts a b : 0 < mu -> 0 < a -> 0 < b -> In (threshold mu 0 1 (ln (b / a))) cuts ->
  gaussian_profile mu a b <= excess (cells m_infty cuts) P Q a b.
Proof.
  intros Pm Pa Pb I; rewrite profile_delta by assumption.
  pose proof (beyond_cut (GaussianDelta.excess mu 0 1 (ln (b / a))) m_infty cuts _ I) as B.
  assert (Sh : shift mu 0 1 = mu) by (unfold shift; field).
  rewrite (excess_above mu 0 1 (ln (b / a)) Rlt_0_1 ltac:(lra) ltac:(rewrite Sh; exact Pm)), Sh, Rabs_right in B by lra.
  apply (Rmult_le_compat_l a) in B; [|lra]; eapply Rle_trans; [exact B|right].
  rewrite <- total_scal; apply total_ext; intros c _; rewrite <- plus_part_scal by lra; f_equal.
  unfold rounded, increment, GaussianDelta.excess; rewrite exp_ln by (apply Rdiv_lt_0_compat; assumption); field; lra.
Qed.

Lemma excess_ge_difference {A} (l : list A) p q a b : distribution l p -> distribution l q ->
  plus_part (a - b) <= excess l p q a b.
Proof.
  intros [_ Sp] [_ Sq]; eapply Rle_trans; [|apply plus_part_total].
  rewrite total_minus, !total_scal, Sp, Sq; apply plus_part_le; lra.
Qed.

Lemma both_ways_law cuts u v : distribution (cells m_infty cuts) u -> distribution (cells m_infty cuts) v ->
  distribution (both_ways cuts) (one_way u v).
Proof.
  intros [Nu Su] [Nv Sv]; split.
  - intros y I; unfold both_ways in I; apply in_app_or in I as [I|I]; apply in_map_iff in I as (c & <- & I);
      unfold one_way; cbn [fst snd]; [specialize (Nu c I)|specialize (Nv c I)]; lra.
  - rewrite total_both_ways; unfold one_way; cbn [fst snd].
    rewrite (total_ext _ (fun c => u c / 2) (fun c => / 2 * u c)), (total_ext _ (fun c => v c / 2) (fun c => / 2 * v c))
      by (intros; field); rewrite !total_scal, Su, Sv; field.
Qed.

Theorem gaussian_pair (points : list (R * R)) : exists cuts, ascending m_infty cuts /\
  forall a b, In (a, b) points -> 0 <= a -> 0 <= b ->
  gaussian_profile mu a b <= excess (both_ways cuts) (one_way P Q) (one_way Q P) a b.
Proof.
  destruct (sorted (flat_map (fun ab => [threshold mu 0 1 (ln (snd ab / fst ab)); threshold mu 0 1 (ln (fst ab / snd ab))]) points))
    as (cuts & A & J); exists cuts; split; [exact A|].
  assert (DP : distribution (cells m_infty cuts) P) by (apply rounded_distribution; [lra|exact A]).
  assert (DQ : distribution (cells m_infty cuts) Q) by (apply rounded_distribution; [lra|exact A]).
  intros a b I Ha Hb; pose proof (excess_ge_difference (both_ways cuts) (one_way P Q) (one_way Q P) a b
                                    (both_ways_law _ _ _ DP DQ) (both_ways_law _ _ _ DQ DP)) as Least.
  destruct Hmu as [Pm|<-]; [|rewrite profile_zero by lra; exact Least].
  destruct Ha as [Pa|<-].
  2:{ rewrite profile_a0 by exact Hb; apply Rle_trans with (2 := Least), plus_part_nonneg. }
  destruct Hb as [Pb|<-].
  2:{ rewrite profile_b0 by lra; apply Rle_trans with (2 := Least); eapply Rle_trans; [|apply plus_part_ge]; lra. }
  rewrite excess_both_ways, (excess_turned _ Q P a b DQ DP).
  assert (Both : forall x, In x [threshold mu 0 1 (ln (b / a)); threshold mu 0 1 (ln (a / b))] -> In x cuts).
  { intros x K; apply J, in_flat_map; exists (a, b); split; [exact I|exact K]. }
  pose proof (cut_reaches cuts a b Pm Pa Pb (Both _ (or_introl eq_refl))) as B1.
  pose proof (cut_reaches cuts b a Pm Pb Pa (Both _ (or_intror (or_introl eq_refl)))) as B2.
  pose proof (profile_turned mu a b ltac:(lra) ltac:(lra)); lra.
Qed.

End Pair.
