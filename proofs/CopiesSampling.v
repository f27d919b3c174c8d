(** Batches drawn with replacement: so many draws, each of them any of a public number of records, as
    likely as another, and who is drawn stays hidden. Records that are replaced fill a random number
    of places; what they do in so many of them is told from their replacements there, and from others
    in their places. *)

From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Dpledger Require Import Sums Finite Domination Sensitivity PoissonSampling BatchSampling.
Import ListNotations.
Open Scope R_scope.

(** ** Draws *)

Section Uniform.

Context {Y : Type}.

(** All sequences of so many choices, each with its probability. *)
Fixpoint uniform (n : nat) (choices : list Y) : list (list Y * R) :=
  match n with
  | O => [([], 1)]
  | S n' => flat_map (fun y =>
      map (fun tw => (y :: fst tw, / INR (length choices) * snd tw)) (uniform n' choices)) choices
  end.

Lemma total_uniform n choices f :
  total (uniform (S n) choices) (fun tw => snd tw * f (fst tw))
    = total choices (fun y => / INR (length choices)
        * total (uniform n choices) (fun tw => snd tw * f (y :: fst tw))).
Proof.
  cbn [uniform]; rewrite total_flat_map; apply total_ext; intros y _.
  rewrite total_map, <- total_scal; apply total_ext; intros tw _; cbn [fst snd]; ring.
Qed.

Lemma uniform_distribution n choices : choices <> [] -> distribution (uniform n choices) snd.
Proof.
  intros H; assert (L : 0 < INR (length choices)) by (apply lt_0_INR; destruct choices; [congruence|simpl; lia]).
  induction n as [|n [Hn Hs]]; [split; [intros tw [<-|[]]; simpl; lra|simpl; ring]|].
  split.
  - intros tw I; cbn [uniform] in I; apply in_flat_map in I as (y & _ & I).
    apply in_map_iff in I as (s & <- & I); cbn [snd].
    apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, L|apply Hn, I].
  - pose proof (total_uniform n choices (fun _ => 1)) as E.
    rewrite (total_ext _ snd (fun tw => snd tw * 1)) by (intros; ring); rewrite E.
    rewrite (total_ext (uniform n choices) _ snd) by (intros; ring); rewrite Hs.
    rewrite total_const; field; lra.
Qed.

Lemma uniform_permutation n choices choices' f : Permutation choices choices' ->
  total (uniform n choices) (fun tw => snd tw * f (fst tw))
    = total (uniform n choices') (fun tw => snd tw * f (fst tw)).
Proof.
  intros P; revert f; induction n as [|n IH]; intros f; [reflexivity|].
  rewrite !total_uniform, (total_permutation _ _ _ P), (Permutation_length P).
  apply total_ext; intros y _; rewrite (IH (fun t => f (y :: t))); reflexivity.
Qed.

Lemma uniform_in n choices tw : In tw (uniform n choices) -> length (fst tw) = n /\ incl (fst tw) choices.
Proof.
  revert tw; induction n as [|n IH]; intros tw I; [destruct I as [<-|[]]; split; [reflexivity|intros y []]|].
  cbn [uniform] in I; apply in_flat_map in I as (y & J & I); apply in_map_iff in I as (s & <- & I).
  destruct (IH s I) as [L In_choices]; cbn [fst length]; split; [congruence|].
  intros z [<-|K]; [exact J|apply In_choices, K].
Qed.

End Uniform.

Lemma uniform_map {X Y} (g : Y -> X) n choices f :
  total (uniform n (map g choices)) (fun tw => snd tw * f (fst tw))
    = total (uniform n choices) (fun tw => snd tw * f (map g (fst tw))).
Proof.
  revert f; induction n as [|n IH]; intros f; [reflexivity|].
  rewrite total_uniform, (total_uniform n choices (fun t => f (map g t))), total_map, map_length.
  apply total_ext; intros y _; rewrite (IH (fun t => f (g y :: t))); reflexivity.
Qed.

(** All batches of [size] draws out of [records] places. *)
Definition copies {X} (size records : nat) (filler : X) (data : list X) : list (list X * R) :=
  uniform size (records_at filler data (seq 0 records)).

Lemma copies_distribution {X} size records filler (data : list X) :
  (0 < records)%nat -> distribution (copies size records filler data) snd.
Proof.
  intros H; apply uniform_distribution; destruct records; [lia|discriminate].
Qed.

Lemma total_seq_next n (f : nat -> R) : total (seq 1 n) f = total (seq 0 n) (fun k => f (S k)).
Proof. rewrite <- seq_shift, total_map; reflexivity. Qed.

(** ** Which places records fill *)

Section Places.

Context (r : R).
Hypothesis Hr : 0 <= r <= 1.

(** Each place by itself, with probability [r]. *)
Fixpoint masks (n : nat) : list (list bool * R) :=
  match n with
  | O => [([], 1)]
  | S n' => map (fun mw => (true :: fst mw, r * snd mw)) (masks n')
            ++ map (fun mw => (false :: fst mw, (1 - r) * snd mw)) (masks n')
  end.

Fixpoint ones (mask : list bool) : nat :=
  match mask with [] => O | true :: m => S (ones m) | false :: m => ones m end.

Fixpoint fill {X} (mask : list bool) (others own : list X) : list X :=
  match mask, others, own with
  | b :: m, o :: rest, z :: more => (if b then z else o) :: fill m rest more
  | _, _, _ => []
  end.

Lemma total_masks n f :
  total (masks (S n)) (fun mw => snd mw * f (fst mw))
    = r * total (masks n) (fun mw => snd mw * f (true :: fst mw))
      + (1 - r) * total (masks n) (fun mw => snd mw * f (false :: fst mw)).
Proof.
  cbn [masks]; rewrite total_app, !total_map, <- !total_scal.
  f_equal; apply total_ext; intros mw _; cbn [fst snd]; ring.
Qed.

Lemma masks_nonneg n : nonneg (masks n) snd.
Proof.
  induction n as [|n IH]; intros mw I; [destruct I as [<-|[]]; simpl; lra|].
  cbn [masks] in I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (s & <- & I);
    cbn [snd]; apply Rmult_le_pos; try apply IH; try assumption; lra.
Qed.

(** The probability of so many places. *)
Fixpoint chance (n k : nat) : R :=
  match n, k with
  | O, O => 1
  | O, S _ => 0
  | S n', O => (1 - r) * chance n' 0
  | S n', S k' => r * chance n' k' + (1 - r) * chance n' (S k')
  end.

Lemma chance_beyond n k : (n < k)%nat -> chance n k = 0.
Proof.
  revert k; induction n as [|n IH]; intros [|k] H; try lia; cbn [chance]; [reflexivity|].
  rewrite !IH by lia; ring.
Qed.

Lemma chance_nonneg n k : 0 <= chance n k.
Proof.
  revert k; induction n as [|n IH]; intros [|k]; cbn [chance]; try lra.
  - apply Rmult_le_pos; [lra|apply IH].
  - pose proof (IH k); pose proof (IH (S k)); nra.
Qed.

Lemma chance_none n : chance n 0 = (1 - r) ^ n.
Proof. induction n as [|n IH]; simpl; [reflexivity|rewrite IH; reflexivity]. Qed.

Lemma chance_next n k : (INR k + 1) * (1 - r) * chance n (S k) = (INR n - INR k) * r * chance n k.
Proof.
  revert k; induction n as [|n IH]; intros k.
  - destruct k; simpl; ring.
  - rewrite S_INR; destruct k as [|k].
    + pose proof (IH 0%nat) as E; cbn [chance]; simpl INR in *.
      replace ((0 + 1) * (1 - r) * (r * chance n 0 + (1 - r) * chance n 1))
        with ((1 - r) * r * chance n 0 + (1 - r) * ((0 + 1) * (1 - r) * chance n 1)) by ring.
      rewrite E; ring.
    + pose proof (IH k) as E; pose proof (IH (S k)) as E'; rewrite S_INR in *; cbn [chance] in *.
      replace ((INR k + 1 + 1) * (1 - r) * (r * chance n (S k) + (1 - r) * chance n (S (S k))))
        with ((INR k + 2) * (1 - r) * r * chance n (S k)
              + (1 - r) * ((INR k + 1 + 1) * (1 - r) * chance n (S (S k)))) by ring.
      rewrite E'.
      replace ((INR n + 1 - (INR k + 1)) * r * (r * chance n k + (1 - r) * chance n (S k)))
        with (r * ((INR n - INR k) * r * chance n k)
              + (INR n - INR k) * r * (1 - r) * chance n (S k)) by ring.
      rewrite <- E; ring.
Qed.

Lemma masks_by_ones n g :
  total (masks n) (fun mw => snd mw * g (ones (fst mw)))
    = total (seq 0 (S n)) (fun k => chance n k * g k).
Proof.
  revert g; induction n as [|n IH]; intros g; [simpl; ring|].
  rewrite (total_masks n (fun m => g (ones m))); cbn [ones].
  rewrite (IH (fun k => g (S k))), (IH g).
  assert (Last : total (seq 0 (S n)) (fun k => chance n k * g k)
                 = chance n 0 * g 0%nat + total (seq 0 (S n)) (fun k => chance n (S k) * g (S k))).
  { rewrite (total_seq_S n (fun k => chance n (S k) * g (S k))), (chance_beyond n (S n)) by lia.
    change (seq 0 (S n)) with (0%nat :: seq 1 n); cbn [total].
    rewrite (total_seq_next n (fun k => chance n k * g k)); ring. }
  rewrite Last; change (seq 0 (S (S n))) with (0%nat :: seq 1 (S n)); cbn [total].
  rewrite (total_seq_next (S n) (fun k => chance (S n) k * g k)); cbn [chance].
  rewrite (total_ext (seq 0 (S n)) (fun k => (r * chance n k + (1 - r) * chance n (S k)) * g (S k))
    (fun k => r * (chance n k * g (S k)) + (1 - r) * (chance n (S k) * g (S k)))) by (intros; ring).
  rewrite total_plus, !total_scal; ring.
Qed.

Lemma chances_sum n : total (seq 0 (S n)) (chance n) = 1.
Proof.
  rewrite (total_ext _ (chance n) (fun k => chance n k * 1)) by (intros; ring).
  rewrite <- (masks_by_ones n (fun _ => 1)); clear Hr; induction n as [|n IH]; [simpl; ring|].
  rewrite (total_masks n (fun _ => 1)), IH; ring.
Qed.

Lemma masks_length n mw : In mw (masks n) -> length (fst mw) = n.
Proof.
  revert mw; induction n as [|n IH]; intros mw I; [destruct I as [<-|[]]; reflexivity|].
  cbn [masks] in I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (s & <- & I);
    cbn [fst length]; f_equal; apply IH, I.
Qed.

(** A choice is one of these, or another one. *)
Lemma uniform_split {X} n (own others : list X) f :
  own <> [] -> others <> [] -> r = INR (length own) / INR (length (own ++ others)) ->
  total (uniform n (own ++ others)) (fun tw => snd tw * f (fst tw))
    = total (uniform n others) (fun ow => snd ow * total (uniform n own) (fun zw => snd zw
        * total (masks n) (fun mw => snd mw * f (fill (fst mw) (fst ow) (fst zw))))).
Proof.
  intros Hown Hothers Er.
  assert (Pz : 0 < INR (length own)) by (apply lt_0_INR; destruct own; [congruence|simpl; lia]).
  assert (Po : 0 < INR (length others)) by (apply lt_0_INR; destruct others; [congruence|simpl; lia]).
  rewrite app_length, plus_INR in Er.
  assert (Each : forall g : X -> R, total (own ++ others) (fun y => / INR (length (own ++ others)) * g y)
            = r * total own (fun z => / INR (length own) * g z)
              + (1 - r) * total others (fun y => / INR (length others) * g y)).
  { intros g; rewrite !total_scal, total_app, app_length, plus_INR, Er; field; lra. }
  revert f; induction n as [|n IH]; intros f; [simpl; ring|].
  set (W := fun g : list X -> R => total (uniform n others) (fun ow => snd ow * total (uniform n own) (fun zw =>
              snd zw * total (masks n) (fun mw => snd mw * g (fill (fst mw) (fst ow) (fst zw)))))).
  rewrite (total_uniform n (own ++ others) f), Each.
  rewrite (total_ext own _ (fun z => / INR (length own) * W (fun t => f (z :: t))))
    by (intros z _; rewrite (IH (fun t => f (z :: t))); reflexivity).
  rewrite (total_ext others _ (fun y => / INR (length others) * W (fun t => f (y :: t))))
    by (intros y _; rewrite (IH (fun t => f (y :: t))); reflexivity).
  rewrite (total_uniform n others (fun o => total (uniform (S n) own) (fun zw => snd zw
    * total (masks (S n)) (fun mw => snd mw * f (fill (fst mw) o (fst zw)))))).
  assert (Next : forall y, total (uniform n others) (fun ow => snd ow * total (uniform (S n) own) (fun zw =>
              snd zw * total (masks (S n)) (fun mw => snd mw * f (fill (fst mw) (y :: fst ow) (fst zw)))))
            = total own (fun z => / INR (length own) * (r * W (fun t => f (z :: t)) + (1 - r) * W (fun t => f (y :: t))))).
  { intros y; rewrite (total_ext (uniform n others) _ (fun ow => total own (fun z => / INR (length own)
        * (snd ow * total (uniform n own) (fun zw => snd zw
            * (r * total (masks n) (fun mw => snd mw * f (z :: fill (fst mw) (fst ow) (fst zw)))
               + (1 - r) * total (masks n) (fun mw => snd mw * f (y :: fill (fst mw) (fst ow) (fst zw))))))))).
    - rewrite total_swap; apply total_ext; intros z _; rewrite total_scal; f_equal.
      unfold W; rewrite <- !total_scal, <- total_plus; apply total_ext; intros ow _.
      rewrite (total_ext (uniform n own) _ (fun zw =>
          r * (snd zw * total (masks n) (fun mw => snd mw * f (z :: fill (fst mw) (fst ow) (fst zw))))
          + (1 - r) * (snd zw * total (masks n) (fun mw => snd mw * f (y :: fill (fst mw) (fst ow) (fst zw))))))
        by (intros; ring).
      rewrite total_plus, !total_scal; ring.
    - intros ow _; rewrite (total_uniform n own (fun z => total (masks (S n)) (fun mw =>
          snd mw * f (fill (fst mw) (y :: fst ow) z)))), <- total_scal.
      apply total_ext; intros z _.
      rewrite (total_ext (uniform n own) _ (fun zw => snd zw
            * (r * total (masks n) (fun mw => snd mw * f (z :: fill (fst mw) (fst ow) (fst zw)))
               + (1 - r) * total (masks n) (fun mw => snd mw * f (y :: fill (fst mw) (fst ow) (fst zw)))))); [ring|].
      intros zw _; rewrite (total_masks n (fun m => f (fill m (y :: fst ow) (z :: fst zw)))); reflexivity. }
  transitivity (total others (fun y => / INR (length others) * total own (fun z => / INR (length own)
    * (r * W (fun t => f (z :: t)) + (1 - r) * W (fun t => f (y :: t))))));
    [|apply total_ext; intros y _; f_equal; symmetry; apply Next].
  rewrite (total_ext others (fun y => _ * total own _)
    (fun y => / INR (length others) * (r * total own (fun z => / INR (length own) * W (fun t => f (z :: t))))
              + (1 - r) * (/ INR (length others) * W (fun t => f (y :: t))))).
  - rewrite total_plus, total_const, !total_scal; field; lra.
  - intros y _; rewrite (total_ext own _ (fun z => r * (/ INR (length own) * W (fun t => f (z :: t)))
        + / INR (length own) * ((1 - r) * W (fun t => f (y :: t))))) by (intros; ring).
    rewrite total_plus, total_const, !total_scal; field; lra.
Qed.

End Places.

(** Laws of which one is beside two others: both of these weigh. *)
Lemma excess_beside {A} (l : list A) u v w F a b t :
  nonneg l v -> nonneg l w -> below_profile l u v F -> below_profile l u w F ->
  0 <= a -> 0 <= b -> 0 <= t ->
  total l (fun y => plus_part (a * u y - b * v y - t * w y)) <= F a (b + t).
Proof.
  intros Nv Nw Bv Bw Ha Hb Ht; destruct (Rle_lt_or_eq_dec 0 (b + t) ltac:(lra)) as [P|Z].
  - assert (Ib : 0 <= b / (b + t)) by (apply Rmult_le_pos; [exact Hb|left; apply Rinv_0_lt_compat, P]).
    assert (It : 0 <= t / (b + t)) by (apply Rmult_le_pos; [exact Ht|left; apply Rinv_0_lt_compat, P]).
    assert (One : b / (b + t) + t / (b + t) = 1) by (field; lra).
    apply Rle_trans with (b / (b + t) * excess l u v a (b + t) + t / (b + t) * excess l u w a (b + t)).
    + unfold excess; rewrite <- !total_scal, <- total_plus; apply total_le; intros y _.
      rewrite <- !plus_part_scal by assumption; unfold plus_part at 1; apply Rmax_lub.
      * apply Rplus_le_le_0_compat; apply plus_part_nonneg.
      * eapply Rle_trans; [|apply Rplus_le_compat; apply plus_part_ge]; right; field; lra.
    + specialize (Bv a (b + t) Ha ltac:(lra)); specialize (Bw a (b + t) Ha ltac:(lra)).
      rewrite <- (Rmult_1_l (F a (b + t))), <- One, Rmult_plus_distr_r.
      apply Rplus_le_compat; apply Rmult_le_compat_l; assumption.
  - replace b with 0 in * by lra; replace t with 0 in * by lra; rewrite Rplus_0_r.
    eapply Rle_trans; [|apply (Bv a 0 Ha); lra]; right; apply total_ext; intros y _; f_equal; ring.
Qed.

(** Laws by the places that records fill, which agree with a third one where there is none. Shares [t] of
    that one are told from them beside their replacement; together they are at most what there is. *)
Lemma excess_of_masks {A} (r : R) n (l : list A) (P Q : list bool -> A -> R) (W : A -> R) (F : nat -> R -> R -> R)
    a b (t : nat -> R) :
  0 <= r <= 1 -> (forall m, length m = n -> nonneg l (Q m)) -> nonneg l W ->
  (forall m, length m = n -> (ones m = 0%nat -> P m = W /\ Q m = W) /\
     below_profile l (P m) (Q m) (F (ones m)) /\ below_profile l (P m) W (F (ones m))) ->
  0 <= a <= b -> (forall k, 0 <= t k) ->
  total (seq 1 n) (fun k => chance r n k * t k) <= (b - a) * chance r n 0 ->
  excess l (mixture (masks r n) snd (fun mw => P (fst mw))) (mixture (masks r n) snd (fun mw => Q (fst mw))) a b
  <= total (seq 1 n) (fun k => chance r n k * F k a (b + t k)).
Proof.
  intros Hr Nq Nw Near Hab Ht Within.
  set (g := fun m y => match ones m with O => - ((b - a) * W y) | S _ => a * P m y - b * Q m y end).
  set (e := fun m y => match ones m with
              | O => 0 | S _ => plus_part (a * P m y - b * Q m y - t (ones m) * W y) end).
  apply Rle_trans with (total (masks r n) (fun mw => snd mw * total l (e (fst mw)))).
  - rewrite (total_ext (masks r n) _ (fun mw => total l (fun y => snd mw * e (fst mw) y)))
      by (intros; rewrite total_scal; reflexivity).
    rewrite total_swap; apply total_le; intros y Iy.
    assert (Ny : 0 <= W y) by (apply Nw, Iy).
    assert (Ne : forall mw, In mw (masks r n) -> 0 <= snd mw * e (fst mw) y).
    { intros mw I; apply Rmult_le_pos; [apply (masks_nonneg r Hr n), I|].
      unfold e; destruct (ones (fst mw)); [lra|apply plus_part_nonneg]. }
    unfold plus_part at 1; apply Rmax_lub; [apply total_nonneg, Ne|].
    replace (a * mixture (masks r n) snd (fun mw => P (fst mw)) y - b * mixture (masks r n) snd (fun mw => Q (fst mw)) y)
      with (total (masks r n) (fun mw => snd mw * g (fst mw) y)).
    2:{ unfold mixture; rewrite <- !total_scal, <- total_minus; apply total_ext; intros mw I; unfold g.
        destruct (ones (fst mw)) eqn:E; [|ring].
        destruct (Near (fst mw) (masks_length r n mw I)) as [Same _]; destruct (Same E) as [-> ->]; ring. }
    apply Rle_trans with (total (masks r n) (fun mw => snd mw * e (fst mw) y)
      + W y * total (masks r n) (fun mw => snd mw
          * match ones (fst mw) with O => - (b - a) | S _ => t (ones (fst mw)) end)).
    + rewrite <- total_scal, <- total_plus; apply total_le; intros mw I.
      pose proof (masks_nonneg r Hr n mw I) as Nm; unfold g, e; destruct (ones (fst mw)) as [|k].
      * right; ring.
      * pose proof (plus_part_ge (a * P (fst mw) y - b * Q (fst mw) y - t (S k) * W y)); nra.
    + rewrite (masks_by_ones r n (fun k => match k with O => - (b - a) | S _ => t k end)).
      change (seq 0 (S n)) with (0%nat :: seq 1 n); cbn [total].
      rewrite (total_ext (seq 1 n) (fun k => chance r n k * match k with O => _ | S _ => t k end)
        (fun k => chance r n k * t k)) by (intros [|k] I; [apply in_seq in I; lia|reflexivity]).
      assert (chance r n 0 * - (b - a) + total (seq 1 n) (fun k => chance r n k * t k) <= 0)
        by lra.
      nra.
  - eapply Rle_trans.
    + apply total_le with (g := fun mw => snd mw * match ones (fst mw) with
                              | O => 0 | S _ => F (ones (fst mw)) a (b + t (ones (fst mw))) end).
      intros mw I; apply Rmult_le_compat_l; [apply (masks_nonneg r Hr n), I|].
      pose proof (masks_length r n mw I) as L; destruct (Near (fst mw) L) as (_ & H & H').
      unfold e; destruct (ones (fst mw)) as [|k] eqn:E; [right; apply total_zero; reflexivity|].
      apply excess_beside; try assumption; try lra; [apply Nq, L|apply Ht].
    + rewrite (masks_by_ones r n (fun k => match k with O => 0 | S _ => F k a (b + t k) end)).
      change (seq 0 (S n)) with (0%nat :: seq 1 n); cbn [total]; right.
      rewrite Rmult_0_r, Rplus_0_l; apply total_ext; intros [|k] I; [apply in_seq in I; lia|reflexivity].
Qed.

(** [S] bounds at weights 1 and [y]; at others the mass does. *)
Definition at_point (y S a b : R) : R :=
  if Req_EM_T a 1 then if Req_EM_T b y then S else a else a.

Lemma at_point_here {A} (l : list A) p q y S : below_profile l p q (at_point y S) -> 0 <= y -> excess l p q 1 y <= S.
Proof.
  intros B Hy; specialize (B 1 y ltac:(lra) Hy); unfold at_point in B.
  destruct (Req_EM_T 1 1) as [_|N]; [|congruence]; destruct (Req_EM_T y y) as [_|N]; [exact B|congruence].
Qed.

Lemma at_point_below {A} (l : list A) p q y S :
  distribution l p -> nonneg l q -> excess l p q 1 y <= S -> below_profile l p q (at_point y S).
Proof.
  intros Dp Nq H a b Ha Hb; unfold at_point.
  destruct (Req_EM_T a 1) as [->|_]; [destruct (Req_EM_T b y) as [->|_]; [exact H|]|];
    apply excess_le_mass; assumption.
Qed.

(** Where data sets differ. *)
Lemma differing {X} (filler : X) k x y : steps replace_one k x y ->
  exists places, (length places <= k)%nat /\ forall i, ~ In i places -> nth i x filler = nth i y filler.
Proof.
  revert y; induction k as [|k IH]; intros y.
  - intros <-; exists []; split; [simpl; lia|reflexivity].
  - intros (z & S & A); destruct (IH z S) as (ps & L & Same).
    destruct A as [before after u v]; exists (length before :: ps); cbn [length]; split; [lia|].
    intros i N; rewrite Same by (intros I; apply N; right; exact I).
    destruct (Nat.lt_ge_cases i (length before)) as [Lt|Ge].
    + rewrite !app_nth1 by exact Lt; reflexivity.
    + rewrite !app_nth2 by exact Ge; destruct (i - length before)%nat eqn:E; [|reflexivity].
      destruct N; left; lia.
Qed.

Lemma split_places (p : nat -> bool) l :
  Permutation l (filter p l ++ filter (fun i => negb (p i)) l).
Proof.
  induction l as [|i l IH]; [constructor|]; cbn [filter]; destruct (p i); cbn [negb app].
  - apply perm_skip, IH.
  - apply Permutation_cons_app, IH.
Qed.

(** So many places, these among them, and the others. *)
Lemma so_many_places k n (ps : list nat) : (length ps <= k <= n)%nat -> exists ks rest,
  Permutation (seq 0 n) (ks ++ rest) /\ length ks = k /\ forall i, In i rest -> ~ In i ps.
Proof.
  intros Hk; set (inside := fun i => existsb (Nat.eqb i) ps).
  assert (Inside : forall i, inside i = true <-> In i ps).
  { intros i; unfold inside; rewrite existsb_exists; split.
    - intros (j & J & E); apply Nat.eqb_eq in E as ->; exact J.
    - intros J; exists i; split; [exact J|apply Nat.eqb_refl]. }
  pose proof (split_places inside (seq 0 n)) as P.
  set (a := filter inside (seq 0 n)) in *; set (b := filter (fun i => negb (inside i)) (seq 0 n)) in *.
  pose proof (Permutation_length P) as L; rewrite seq_length, app_length in L.
  assert (La : (length a <= length ps)%nat).
  { apply NoDup_incl_length; [apply NoDup_filter, seq_NoDup|].
    intros i I; apply filter_In in I as [_ I]; apply Inside, I. }
  exists (a ++ firstn (k - length a) b), (skipn (k - length a) b); split; [|split].
  - rewrite <- app_assoc, firstn_skipn; exact P.
  - rewrite app_length, firstn_length; lia.
  - intros i I J; apply Inside in J.
    assert (K : In i b) by (rewrite <- (firstn_skipn (k - length a) b); apply in_or_app; right; exact I).
    apply filter_In in K as [_ K]; rewrite J in K; discriminate.
Qed.

Section Replaced.

Context {X A : Type} (size records many : nat) (filler : X) (l : list A) (M : list X -> A -> R).
Context (F : nat -> R -> R -> R).
Hypothesis Hmany : (0 < many < records)%nat.
Hypothesis laws : forall s, distribution l (M s).
Hypothesis step : forall k s s', steps replace_one k s s' -> below_profile l (M s) (M s') (F k).

Notation r := (INR many / INR records).

Lemma share_within : 0 <= r <= 1.
Proof.
  pose proof (lt_INR _ _ (proj2 Hmany)) as L; pose proof (pos_INR many) as P.
  split; [apply Rmult_le_pos; [exact P|left; apply Rinv_0_lt_compat; lra]|].
  apply Rmult_le_reg_r with (INR records); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Lemma steps_cons k (x : X) s s' : steps replace_one k s s' -> steps replace_one k (x :: s) (x :: s').
Proof.
  revert s'; induction k as [|k IH]; intros s' H; [simpl in *; congruence|].
  destruct H as (z & H & O); exists (x :: z); split; [apply IH, H|].
  destruct O as [before after u v]; apply (replaced (x :: before) after u v).
Qed.

(** So many places filled otherwise. *)
Lemma filled_steps mask (others own own' : list X) :
  length mask = length others -> length own = length others -> length own' = length others ->
  steps replace_one (ones mask) (fill mask others own) (fill mask others own') /\
  steps replace_one (ones mask) (fill mask others own) others.
Proof.
  revert others own own'; induction mask as [|b mask IH];
    intros [|o others] [|z own] [|z' own'] L L1 L2; try discriminate; [split; reflexivity|].
  cbn [length] in *; destruct (IH others own own' ltac:(lia) ltac:(lia) ltac:(lia)) as [H H'].
  destruct b; cbn [ones fill steps]; [|split; apply steps_cons; assumption].
  split; [exists (z :: fill mask others own')|exists (z :: others)];
    (split; [apply steps_cons; assumption|]).
  - apply (replaced [] (fill mask others own') z z').
  - apply (replaced [] others z o).
Qed.

(** Given what the places hold otherwise. *)
Lemma excess_of_places (others own own' : list X) a b (t : nat -> R) :
  length others = size -> length own = size -> length own' = size -> 0 <= a <= b -> (forall k, 0 <= t k) ->
  total (seq 1 size) (fun k => chance r size k * t k) <= (b - a) * chance r size 0 ->
  excess l (mixture (masks r size) snd (fun mw => M (fill (fst mw) others own)))
           (mixture (masks r size) snd (fun mw => M (fill (fst mw) others own'))) a b
  <= total (seq 1 size) (fun k => chance r size k * F k a (b + t k)).
Proof.
  intros Lo Lz Lz' Hab Ht Within; rewrite <- Lo in Lz, Lz'.
  apply (excess_of_masks r size l (fun m => M (fill m others own)) (fun m => M (fill m others own')) (M others));
    try assumption; [exact share_within|intros; apply laws|apply laws|].
  intros m L; rewrite <- Lo in L.
  destruct (filled_steps m others own own' L Lz Lz') as [H H'], (filled_steps m others own' own L Lz' Lz) as [_ H''].
  split; [|split; apply step; assumption].
  intros E; rewrite E in H', H''; cbn [steps] in H', H''; rewrite H', H''; auto.
Qed.

Theorem copies_replaced (x y : list X) a b (t : nat -> R) :
  steps replace_one many x y -> 0 <= a <= b -> (forall k, 0 <= t k) ->
  total (seq 1 size) (fun k => chance r size k * t k) <= (b - a) * chance r size 0 ->
  excess l (on_drawn (copies size records filler) M x) (on_drawn (copies size records filler) M y) a b
  <= total (seq 1 size) (fun k => chance r size k * F k a (b + t k)).
Proof.
  intros S Hab Ht Within; destruct (differing filler many x y S) as (ps & Lps & Same).
  destruct (so_many_places many records ps ltac:(lia)) as (ks & rest & P & Lk & Out).
  pose proof (Permutation_length P) as Le; rewrite seq_length in Le.
  assert (Hks : ks <> []) by (intros ->; simpl in Lk; lia).
  assert (Hrest : rest <> []) by (intros ->; rewrite app_nil_r in Le; lia).
  set (at_ := fun d i => nth i d filler).
  assert (Law : forall d m, on_drawn (copies size records filler) M d m
            = mixture (uniform size rest) snd (fun ow => mixture (uniform size ks) snd (fun zw =>
                mixture (masks r size) snd (fun mw => M (fill (fst mw) (map (at_ d) (fst ow)) (map (at_ d) (fst zw)))))) m).
  { intros d m; unfold on_drawn, copies, records_at; fold (at_ d).
    rewrite (uniform_map (at_ d) size _ (fun s => M s m)).
    rewrite (uniform_permutation size _ _ (fun s => M (map (at_ d) s) m) P).
    rewrite (uniform_split r size ks rest (fun s => M (map (at_ d) s) m) Hks Hrest) by (rewrite Lk, <- Le; reflexivity).
    unfold mixture; apply total_ext; intros ow _; f_equal; apply total_ext; intros zw _; f_equal.
    apply total_ext; intros mw _; do 2 f_equal; clear; generalize (fst ow) (fst zw).
    induction (fst mw) as [|b mask IH]; intros [|o os] [|z zs]; try reflexivity.
    cbn [fill map]; f_equal; [destruct b; reflexivity|apply IH]. }
  unfold excess; rewrite (total_ext l _ (fun m => plus_part
      (a * mixture (uniform size rest) snd (fun ow => mixture (uniform size ks) snd (fun zw =>
             mixture (masks r size) snd (fun mw => M (fill (fst mw) (map (at_ x) (fst ow)) (map (at_ x) (fst zw)))))) m
       - b * mixture (uniform size rest) snd (fun ow => mixture (uniform size ks) snd (fun zw =>
             mixture (masks r size) snd (fun mw => M (fill (fst mw) (map (at_ y) (fst ow)) (map (at_ y) (fst zw)))))) m)))
    by (intros m _; rewrite (Law x), (Law y); reflexivity).
  set (bound := total (seq 1 size) _).
  pose proof (uniform_distribution size rest Hrest) as Dr; pose proof (uniform_distribution size ks Hks) as Dk.
  eapply Rle_trans; [apply (excess_mixture (uniform size rest) snd l Dr)|].
  rewrite <- (Rmult_1_r bound), <- (proj2 Dr), <- total_scal.
  apply total_le; intros ow I; rewrite (Rmult_comm bound); apply Rmult_le_compat_l; [apply Dr, I|].
  eapply Rle_trans; [apply (excess_mixture (uniform size ks) snd l Dk)|].
  rewrite <- (Rmult_1_r bound), <- (proj2 Dk), <- total_scal.
  apply total_le; intros zw J; rewrite (Rmult_comm bound); apply Rmult_le_compat_l; [apply Dk, J|].
  apply uniform_in in I as [Lo Io], J as [Lz _].
  replace (map (at_ y) (fst ow)) with (map (at_ x) (fst ow))
    by (apply map_ext_in; intros i I; apply Same, Out, Io, I).
  apply excess_of_places; rewrite ?map_length; assumption.
Qed.

End Replaced.

Lemma steps_of_all {X} k (s s' : list X) : length s = k -> length s' = k -> steps replace_one k s s'.
Proof.
  revert s s'; induction k as [|k IH]; intros [|u s] [|v s'] L L'; try discriminate; [reflexivity|].
  exists (u :: s'); split; [apply steps_cons, IH; auto|apply (replaced [] s' u v)].
Qed.

(** Where nobody else is there, every place may be filled otherwise. *)
Theorem copies_of_all {X A} size records filler (l : list A) (M : list X -> A -> R) (F : R -> R -> R) x y :
  (0 < records)%nat -> (forall s, distribution l (M s)) ->
  (forall s s', steps replace_one size s s' -> below_profile l (M s) (M s') F) ->
  below_profile l (on_drawn (copies size records filler) M x) (on_drawn (copies size records filler) M y) F.
Proof.
  intros Hr Laws Step a b Ha Hb; set (at_ := fun d i => nth i d filler); set (U := uniform size (seq 0 records)).
  assert (Law : forall d m, on_drawn (copies size records filler) M d m
            = mixture U snd (fun tw => M (map (at_ d) (fst tw))) m).
  { intros d m; unfold on_drawn, copies, records_at; fold (at_ d); apply (uniform_map (at_ d) size _ (fun s => M s m)). }
  unfold excess; rewrite (total_ext l _ (fun m => plus_part
      (a * mixture U snd (fun tw => M (map (at_ x) (fst tw))) m - b * mixture U snd (fun tw => M (map (at_ y) (fst tw))) m)))
    by (intros m _; rewrite !Law; reflexivity).
  assert (D : distribution U snd) by (apply uniform_distribution; destruct records; [lia|discriminate]).
  eapply Rle_trans; [apply (excess_mixture U snd l D)|]; set (bound := F a b).
  rewrite <- (Rmult_1_r bound), <- (proj2 D), <- total_scal.
  apply total_le; intros tw I; rewrite (Rmult_comm bound); apply Rmult_le_compat_l; [apply D, I|].
  apply uniform_in in I as [L _]; apply Step; try assumption; apply steps_of_all; rewrite map_length; exact L.
Qed.
