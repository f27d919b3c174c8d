(** Batches drawn with replacement: so many draws, each of them any of a public number of records, as
    likely as another, and who is drawn stays hidden. A record that is replaced fills a random number
    of places; what it does in so many of them is told from its replacement there, and from others in
    its places. *)

From Coq Require Import Reals List Lra Lia Psatz.
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

End Uniform.

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

(** ** Which places a record fills *)

Section Places.

Context {X : Type} (r : R).
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

Fixpoint fill (mask : list bool) (others : list X) (z : X) : list X :=
  match mask, others with
  | b :: m, o :: rest => (if b then z else o) :: fill m rest z
  | _, _ => []
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

(** A choice is the record itself, or another one; where there is none, it does not matter which. *)
Lemma uniform_split n (before after : list X) z other others f :
  let choices := before ++ z :: after in
  r = / INR (length choices) ->
  others = match before ++ after with [] => [other] | l => l end ->
  total (uniform n choices) (fun tw => snd tw * f (fst tw))
    = total (uniform n others) (fun ow => snd ow
        * total (masks n) (fun mw => snd mw * f (fill (fst mw) (fst ow) z))).
Proof.
  intros choices Er Eo; assert (Lo : INR (length others) <> 0).
  { apply not_0_INR; subst others; destruct (before ++ after); discriminate. }
  assert (Each : forall g : X -> R, total choices (fun y => / INR (length choices) * g y)
            = r * g z + (1 - r) * total others (fun y => / INR (length others) * g y)).
  { intros g; rewrite !total_scal, <- Er; unfold choices; rewrite total_app; cbn [total].
    assert (Lc : INR (length choices) = 1 + INR (length (before ++ after))).
    { unfold choices; rewrite !app_length; cbn [length]; rewrite Nat.add_succ_r, S_INR; ring. }
    assert (Eg : total before g + total after g = total (before ++ after) g)
      by (rewrite total_app; reflexivity).
    replace (total before g + (g z + total after g)) with (g z + total (before ++ after) g)
      by (rewrite <- Eg; ring).
    destruct (before ++ after) as [|x l] eqn:E.
    - simpl in Lc; subst others; simpl; rewrite Er, Lc; field.
    - subst others; set (o := x :: l) in *; pose proof (pos_INR (length o)).
      rewrite Er, Lc; field; split; [exact Lo|lra]. }
  clear Eo; revert f; induction n as [|n IH]; intros f; [simpl; ring|].
  rewrite (total_uniform n choices f), Each.
  rewrite (total_uniform n others (fun o =>
    total (masks (S n)) (fun mw => snd mw * f (fill (fst mw) o z)))).
  rewrite (IH (fun t => f (z :: t))).
  rewrite (total_ext others (fun y => _ * total (uniform n choices) _)
    (fun y => / INR (length others) * total (uniform n others) (fun ow => snd ow
        * total (masks n) (fun mw => snd mw * f (y :: fill (fst mw) (fst ow) z)))))
    by (intros y _; rewrite (IH (fun t => f (y :: t))); reflexivity).
  set (own := total (uniform n others) (fun ow => snd ow
    * total (masks n) (fun mw => snd mw * f (z :: fill (fst mw) (fst ow) z)))).
  transitivity (total others (fun y => / INR (length others) * (r * own
    + (1 - r) * total (uniform n others) (fun ow => snd ow
        * total (masks n) (fun mw => snd mw * f (y :: fill (fst mw) (fst ow) z)))))).
  - rewrite (total_ext others (fun y => / INR (length others) * (r * own + _))
      (fun y => / INR (length others) * (r * own) + (1 - r) * (/ INR (length others) * total (uniform n others) (fun ow => snd ow
        * total (masks n) (fun mw => snd mw * f (y :: fill (fst mw) (fst ow) z))))))
      by (intros; ring).
    rewrite total_plus, total_const, !total_scal; field; exact Lo.
  - apply total_ext; intros y _; f_equal; unfold own; rewrite <- !total_scal, <- total_plus.
    apply total_ext; intros ow _; cbn [fst snd].
    rewrite (total_masks n (fun m => f (fill m (y :: fst ow) z))); cbn [fill]; ring.
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

(** [S] bounds at weights 1 and [y]; at others the mass does. *)
Definition at_point (y S a b : R) : R :=
  if Req_EM_T a 1 then if Req_EM_T b y then S else a else a.

Section Replaced.

Context {X A : Type} (size records : nat) (filler : X) (l : list A) (M : list X -> A -> R).
Context (F : nat -> R -> R -> R).
Hypothesis Hrecords : (0 < records)%nat.
Hypothesis laws : forall s, distribution l (M s).
Hypothesis step : forall k s s', steps replace_one k s s' -> below_profile l (M s) (M s') (F k).

Notation r := (/ INR records).

Lemma share_within : 0 <= r <= 1.
Proof.
  assert (P : 1 <= INR records) by (apply (le_INR 1); exact Hrecords).
  split; [left; apply Rinv_0_lt_compat; lra|rewrite <- Rinv_1; apply Rinv_le_contravar; lra].
Qed.

Lemma steps_cons k (x : X) s s' : steps replace_one k s s' -> steps replace_one k (x :: s) (x :: s').
Proof.
  revert s'; induction k as [|k IH]; intros s' H; [simpl in *; congruence|].
  destruct H as (z & H & O); exists (x :: z); split; [apply IH, H|].
  destruct O as [before after u v]; apply (replaced (x :: before) after u v).
Qed.

(** So many places filled otherwise. *)
Lemma filled_steps mask (others : list X) z z' :
  length mask = length others ->
  steps replace_one (ones mask) (fill mask others z) (fill mask others z') /\
  steps replace_one (ones mask) (fill mask others z) others.
Proof.
  revert others; induction mask as [|b mask IH]; intros [|o others] L; try discriminate L;
    [split; reflexivity|].
  destruct (IH others ltac:(simpl in L; lia)) as [H H'].
  destruct b; cbn [ones fill steps]; [|split; apply steps_cons; assumption].
  split; [exists (z :: fill mask others z')|exists (z :: others)];
    (split; [apply steps_cons; assumption|]).
  - apply (replaced [] (fill mask others z') z z').
  - apply (replaced [] others z o).
Qed.

Lemma fill_none mask (others : list X) z z' :
  ones mask = 0%nat -> fill mask others z = fill mask others z'.
Proof.
  revert others; induction mask as [|[] mask IH]; intros [|o others] E; try reflexivity; try discriminate E.
  cbn [fill]; f_equal; apply IH, E.
Qed.

Lemma masks_length n mw : In mw (masks r n) -> length (fst mw) = n.
Proof.
  revert mw; induction n as [|n IH]; intros mw I; [destruct I as [<-|[]]; reflexivity|].
  cbn [masks] in I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (s & <- & I);
    cbn [fst length]; f_equal; apply IH, I.
Qed.

Lemma uniform_length {Y} n (choices : list Y) tw : In tw (uniform n choices) -> length (fst tw) = n.
Proof.
  revert tw; induction n as [|n IH]; intros tw I; [destruct I as [<-|[]]; reflexivity|].
  cbn [uniform] in I; apply in_flat_map in I as (y & _ & I); apply in_map_iff in I as (s & <- & I).
  cbn [fst length]; f_equal; apply IH, I.
Qed.

(** Given what the places hold otherwise. Shares [t] of what no place holds are told from it beside its
    replacement; together they are at most what there is. *)
Lemma excess_of_places (others : list X) z z' a b (t : nat -> R) :
  length others = size -> 0 <= a <= b -> (forall k, 0 <= t k) ->
  total (seq 1 size) (fun k => chance r size k * t k) <= (b - a) * chance r size 0 ->
  excess l (mixture (masks r size) snd (fun mw => M (fill (fst mw) others z)))
           (mixture (masks r size) snd (fun mw => M (fill (fst mw) others z'))) a b
  <= total (seq 1 size) (fun k => chance r size k * F k a (b + t k)).
Proof.
  intros Lo Hab Ht Within; pose proof share_within as Hr.
  set (W := M others).
  set (g := fun m y => match ones m with
              | O => - ((b - a) * W y)
              | S _ => a * M (fill m others z) y - b * M (fill m others z') y end).
  set (e := fun m y => match ones m with
              | O => 0
              | S _ => plus_part (a * M (fill m others z) y - b * M (fill m others z') y
                                  - t (ones m) * W y) end).
  assert (Same : forall mw, In mw (masks r size) -> ones (fst mw) = 0%nat ->
            fill (fst mw) others z = others /\ fill (fst mw) others z' = others).
  { intros mw I E; pose proof (masks_length size mw I) as L; rewrite <- Lo in L.
    destruct (filled_steps (fst mw) others z z' L) as [_ H]; rewrite E in H; simpl in H.
    rewrite <- (fill_none (fst mw) others z z' E); auto. }
  apply Rle_trans with (total (masks r size) (fun mw => snd mw * total l (e (fst mw)))).
  - rewrite (total_ext (masks r size) _ (fun mw => total l (fun y => snd mw * e (fst mw) y)))
      by (intros; rewrite total_scal; reflexivity).
    rewrite total_swap; apply total_le; intros y Iy.
    assert (Ny : 0 <= W y) by (apply laws, Iy).
    assert (Ne : forall mw, In mw (masks r size) -> 0 <= snd mw * e (fst mw) y).
    { intros mw I; apply Rmult_le_pos; [apply (masks_nonneg r Hr size), I|].
      unfold e; destruct (ones (fst mw)); [lra|apply plus_part_nonneg]. }
    unfold plus_part at 1; apply Rmax_lub; [apply total_nonneg, Ne|].
    replace (a * mixture (masks r size) snd (fun mw => M (fill (fst mw) others z)) y
             - b * mixture (masks r size) snd (fun mw => M (fill (fst mw) others z')) y)
      with (total (masks r size) (fun mw => snd mw * g (fst mw) y)).
    2:{ unfold mixture; rewrite <- !total_scal, <- total_minus; apply total_ext; intros mw I; unfold g.
        destruct (ones (fst mw)) eqn:E; [|ring].
        destruct (Same mw I E) as [-> ->]; unfold W; ring. }
    apply Rle_trans with (total (masks r size) (fun mw => snd mw * e (fst mw) y)
      + W y * total (masks r size) (fun mw => snd mw
          * match ones (fst mw) with O => - (b - a) | S _ => t (ones (fst mw)) end)).
    + rewrite <- total_scal, <- total_plus; apply total_le; intros mw I.
      pose proof (masks_nonneg r Hr size mw I) as Nw; unfold g, e; destruct (ones (fst mw)) as [|k].
      * right; ring.
      * pose proof (plus_part_ge (a * M (fill (fst mw) others z) y - b * M (fill (fst mw) others z') y
                                  - t (S k) * W y)); nra.
    + rewrite (masks_by_ones r size (fun k => match k with O => - (b - a) | S _ => t k end)).
      change (seq 0 (S size)) with (0%nat :: seq 1 size); cbn [total].
      rewrite (total_ext (seq 1 size) (fun k => chance r size k * match k with O => _ | S _ => t k end)
        (fun k => chance r size k * t k)) by (intros [|k] I; [apply in_seq in I; lia|reflexivity]).
      assert (chance r size 0 * - (b - a) + total (seq 1 size) (fun k => chance r size k * t k) <= 0)
        by lra.
      nra.
  - eapply Rle_trans.
    + apply total_le with (g := fun mw => snd mw * match ones (fst mw) with
                              | O => 0 | S _ => F (ones (fst mw)) a (b + t (ones (fst mw))) end).
      intros mw I; apply Rmult_le_compat_l; [apply (masks_nonneg r Hr size), I|].
      unfold e; destruct (ones (fst mw)) as [|k] eqn:E; [right; apply total_zero; reflexivity|].
      pose proof (masks_length size mw I) as L; rewrite <- Lo in L.
      destruct (filled_steps (fst mw) others z z' L) as [H H']; rewrite E in H, H'.
      apply excess_beside; try apply laws; try lra; try apply Ht;
        [apply step, H|apply step, H'].
    + rewrite (masks_by_ones r size (fun k => match k with O => 0 | S _ => F k a (b + t k) end)).
      change (seq 0 (S size)) with (0%nat :: seq 1 size); cbn [total]; right.
      rewrite Rmult_0_r, Rplus_0_l; apply total_ext; intros [|k] I; [apply in_seq in I; lia|reflexivity].
Qed.

Theorem copies_replaced (x y : list X) a b (t : nat -> R) :
  replace_one x y -> (forall k a b, 0 <= a -> 0 <= b -> 0 <= F k a b) ->
  0 <= a <= b -> (forall k, 0 <= t k) ->
  total (seq 1 size) (fun k => chance r size k * t k) <= (b - a) * chance r size 0 ->
  excess l (on_drawn (copies size records filler) M x) (on_drawn (copies size records filler) M y) a b
  <= total (seq 1 size) (fun k => chance r size k * F k a (b + t k)).
Proof.
  intros [before after z z'] Nf Hab Ht Within; pose proof share_within as Hr.
  set (x' := before ++ z :: after); set (y' := before ++ z' :: after).
  assert (Same : forall i, i <> length before -> nth i x' filler = nth i y' filler).
  { intros i N; unfold x', y'; destruct (Nat.lt_ge_cases i (length before)) as [L|L].
    - rewrite !app_nth1 by exact L; reflexivity.
    - rewrite !app_nth2 by exact L; destruct (i - length before)%nat eqn:E; [lia|reflexivity]. }
  destruct (Nat.lt_ge_cases (length before) records) as [L|L].
  - set (b' := map (fun i => nth i x' filler) (seq 0 (length before))).
    set (a' := map (fun i => nth i x' filler) (seq (S (length before)) (records - S (length before)))).
    assert (Split : forall d w, nth (length before) d filler = w ->
              (forall i, i <> length before -> nth i x' filler = nth i d filler) ->
              records_at filler d (seq 0 records) = b' ++ w :: a').
    { intros d w <- Like; unfold records_at, b', a'.
      replace records with (length before + S (records - S (length before)))%nat at 1 by lia.
      rewrite seq_app, map_app; cbn [seq map plus]; f_equal; [|f_equal];
        apply map_ext_in; intros i I; apply in_seq in I; symmetry; apply Like; lia. }
    pose proof (Split x' z ltac:(unfold x'; rewrite nth_middle; reflexivity) ltac:(auto)) as Ex.
    pose proof (Split y' z' ltac:(unfold y'; rewrite nth_middle; reflexivity) Same) as Ey.
    set (others := match b' ++ a' with [] => [z] | o => o end).
    assert (Count : forall w, r = / INR (length (b' ++ w :: a'))).
    { intros w; unfold a', b'; rewrite app_length; cbn [length]; rewrite !map_length, !seq_length.
      do 2 f_equal; lia. }
    assert (Law : forall d w, records_at filler d (seq 0 records) = b' ++ w :: a' -> forall m,
              on_drawn (copies size records filler) M d m
              = mixture (uniform size others) snd (fun ow =>
                  mixture (masks r size) snd (fun mw => M (fill (fst mw) (fst ow) w))) m).
    { intros d w E m; unfold on_drawn, copies; rewrite E.
      rewrite (uniform_split r size b' a' w z others (fun s => M s m) (Count w) eq_refl); reflexivity. }
    unfold excess; rewrite (total_ext l _ (fun m => plus_part
      (a * mixture (uniform size others) snd (fun ow =>
             mixture (masks r size) snd (fun mw => M (fill (fst mw) (fst ow) z))) m
       - b * mixture (uniform size others) snd (fun ow =>
             mixture (masks r size) snd (fun mw => M (fill (fst mw) (fst ow) z'))) m)))
      by (intros m _; rewrite (Law x' z Ex), (Law y' z' Ey); reflexivity).
    assert (D : distribution (uniform size others) snd)
      by (apply uniform_distribution; unfold others; destruct (b' ++ a'); discriminate).
    eapply Rle_trans; [apply (excess_mixture (uniform size others) snd l D)|].
    rewrite <- (Rmult_1_r (total (seq 1 size) _)), <- (proj2 D), <- total_scal.
    apply total_le; intros ow I; rewrite (Rmult_comm (total (seq 1 size) _)).
    apply Rmult_le_compat_l; [apply D, I|].
    apply excess_of_places; try assumption; apply (uniform_length size others ow I).
  - (* a record that is never drawn *)
    assert (Equal : records_at filler y' (seq 0 records) = records_at filler x' (seq 0 records)).
    { apply map_ext_in; intros i I; apply in_seq in I; symmetry; apply Same; lia. }
    apply Rle_trans with 0.
    + right; unfold excess; rewrite (total_ext l _ (fun m => plus_part
        (a * on_drawn (copies size records filler) M x' m - b * on_drawn (copies size records filler) M x' m)))
        by (intros m _; unfold on_drawn, copies; rewrite Equal; reflexivity).
      change (excess l (on_drawn (copies size records filler) M x') (on_drawn (copies size records filler) M x') a b = 0).
      rewrite excess_diag; [apply plus_part_0; lra|].
      apply on_drawn_distribution; [apply copies_distribution; exact Hrecords|exact laws].
    + apply total_nonneg; intros k _; apply Rmult_le_pos; [apply chance_nonneg, Hr|].
      apply Nf; [lra|specialize (Ht k); lra].
Qed.

End Replaced.
