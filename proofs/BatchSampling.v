(** Batches of a fixed size: so many different records out of a public number, drawn one after the
    other, every one of those left as likely, and who is drawn stays hidden. Where a record is
    replaced, a batch that draws it differs, and is beside batches that draw another one in its
    place: what a Gaussian step on a Poisson sample is under add/remove, in both orders at once. *)

From Coq Require Import Reals List Lra Lia Permutation.
From Dpledger Require Import Sums Finite Domination Sensitivity PoissonSampling.
Import ListNotations.
Open Scope R_scope.

(** ** Sequences of different places *)

(** Each element, with all others. *)
Fixpoint picks (l : list nat) : list (nat * list nat) :=
  match l with
  | [] => []
  | x :: rest => (x, rest) :: map (fun yr => (fst yr, x :: snd yr)) (picks rest)
  end.

(** So many elements, one after the other, with those left over. *)
Fixpoint sequences (n : nat) (l : list nat) : list (list nat * list nat) :=
  match n with
  | O => [([], l)]
  | S n' => flat_map (fun xr =>
      map (fun tr => (fst xr :: fst tr, snd tr)) (sequences n' (snd xr))) (picks l)
  end.

(** The same with a place kept free: what stands before and after it, and those left over. *)
Fixpoint holes (n : nat) (l : list nat) : list ((list nat * list nat) * list nat) :=
  match n with
  | O => []
  | S n' => map (fun tr => (([], fst tr), snd tr)) (sequences n' l)
      ++ flat_map (fun xr => map (fun h => ((fst xr :: fst (fst h), snd (fst h)), snd h))
                               (holes n' (snd xr))) (picks l)
  end.

Definition filled (h : (list nat * list nat) * list nat) (k : nat) : list nat :=
  fst (fst h) ++ k :: snd (fst h).

Lemma total_picks x l f :
  total (picks (x :: l)) f = f (x, l) + total (picks l) (fun yr => f (fst yr, x :: snd yr)).
Proof. simpl; rewrite total_map; reflexivity. Qed.

Lemma total_sequences n l f :
  total (sequences (S n) l) f
    = total (picks l) (fun xr => total (sequences n (snd xr)) (fun tr => f (fst xr :: fst tr, snd tr))).
Proof.
  cbn [sequences]; rewrite total_flat_map; apply total_ext; intros xr _; apply total_map.
Qed.

Lemma total_holes n l f :
  total (holes (S n) l) f
    = total (sequences n l) (fun tr => f (([], fst tr), snd tr))
      + total (picks l) (fun xr =>
          total (holes n (snd xr)) (fun h => f ((fst xr :: fst (fst h), snd (fst h)), snd h))).
Proof.
  cbn [holes]; rewrite total_app, total_map, total_flat_map; f_equal.
  apply total_ext; intros xr _; apply total_map.
Qed.

Lemma picks_permutation l l' f :
  Permutation l l' -> (forall x r r', Permutation r r' -> f (x, r) = f (x, r')) ->
  total (picks l) f = total (picks l') f.
Proof.
  intros P; revert f; induction P as [|x l l' P IH|x y l|l l' l'' _ IH _ IH']; intros f F.
  - reflexivity.
  - rewrite !total_picks, (F x l l' P); f_equal; apply (IH (fun yr => f (fst yr, x :: snd yr))).
    intros y r r' Q; apply F, perm_skip, Q.
  - rewrite !total_picks; cbn [fst snd].
    rewrite (total_ext (picks l) _ (fun yr => f (fst yr, x :: y :: snd yr))); [ring|].
    intros [z r] _; apply F, perm_swap.
  - rewrite IH by exact F; apply IH', F.
Qed.

Lemma sequences_permutation n l l' f :
  Permutation l l' ->
  total (sequences n l) (fun tr => f (fst tr)) = total (sequences n l') (fun tr => f (fst tr)).
Proof.
  revert l l' f; induction n as [|n IH]; intros l l' f P; [reflexivity|].
  rewrite !total_sequences; cbn [fst].
  apply (picks_permutation l l' (fun xr => total (sequences n (snd xr)) (fun tr => f (fst xr :: fst tr))) P).
  intros x r r' Q; apply (IH r r' (fun t => f (x :: t)) Q).
Qed.

(** Sequences draw an element or do not. *)
Lemma drawn_or_not n k l f :
  total (sequences n (k :: l)) (fun tr => f (fst tr))
    = total (sequences n l) (fun tr => f (fst tr)) + total (holes n l) (fun h => f (filled h k)).
Proof.
  revert l f; induction n as [|n IH]; intros l f; [simpl; ring|].
  rewrite total_holes, !total_sequences, total_picks; cbn [fst snd filled app].
  rewrite (total_ext (picks l) (fun yr => total (sequences n (k :: snd yr)) _)
    (fun yr => total (sequences n (snd yr)) (fun tr => f (fst yr :: fst tr))
               + total (holes n (snd yr)) (fun h => f (fst yr :: filled h k))))
    by (intros yr _; apply (IH (snd yr) (fun t => f (fst yr :: t)))).
  rewrite total_plus; unfold filled; cbn [fst snd app]; ring.
Qed.

(** Two draws may change places. *)
Lemma picks_twice l (f : nat -> nat -> list nat -> R) :
  total (picks l) (fun xr => total (picks (snd xr)) (fun ys => f (fst xr) (fst ys) (snd ys)))
  = total (picks l) (fun xr => total (picks (snd xr)) (fun ys => f (fst ys) (fst xr) (snd ys))).
Proof.
  revert f; induction l as [|a l IH]; intros f; [reflexivity|].
  rewrite !total_picks; cbn [fst snd].
  rewrite (total_ext (picks l) (fun yr => total (picks (a :: snd yr)) _)
    (fun xr => f (fst xr) a (snd xr)
       + total (picks (snd xr)) (fun ys => f (fst xr) (fst ys) (a :: snd ys))))
    by (intros xr _; rewrite total_picks; reflexivity).
  rewrite (total_ext (picks l) (fun yr => total (picks (a :: snd yr)) _)
    (fun xr => f a (fst xr) (snd xr)
       + total (picks (snd xr)) (fun ys => f (fst ys) (fst xr) (a :: snd ys))))
    by (intros xr _; rewrite total_picks; reflexivity).
  rewrite !total_plus, (IH (fun x y r => f x y (a :: r))); ring.
Qed.

(** The last draw may be the first. *)
Lemma drawn_last n l (f : nat -> list nat -> R) :
  total (sequences n l) (fun tr => total (picks (snd tr)) (fun js => f (fst js) (fst tr)))
  = total (picks l) (fun js => total (sequences n (snd js)) (fun tr => f (fst js) (fst tr))).
Proof.
  revert l f; induction n as [|n IH]; intros l f.
  - simpl; rewrite Rplus_0_r; apply total_ext; intros js _; ring.
  - rewrite total_sequences; cbn [fst snd].
    rewrite (total_ext (picks l) _ (fun xr => total (picks (snd xr)) (fun js =>
      total (sequences n (snd js)) (fun tr => f (fst js) (fst xr :: fst tr)))))
      by (intros xr _; apply (IH (snd xr) (fun j t => f j (fst xr :: t)))).
    rewrite (picks_twice l (fun x j r =>
      total (sequences n r) (fun tr => f j (x :: fst tr)))).
    apply total_ext; intros js _; rewrite total_sequences; reflexivity.
Qed.

(** Free places filled with one of those left over: every sequence, once for each of its places. *)
Lemma holes_filled n l (f : list nat -> R) :
  total (holes n l) (fun h => total (picks (snd h)) (fun js => f (filled h (fst js))))
  = INR n * total (sequences n l) (fun tr => f (fst tr)).
Proof.
  revert l f; induction n as [|n IH]; intros l f; [simpl; ring|].
  rewrite total_holes; unfold filled; cbn [fst snd app].
  rewrite (drawn_last n l (fun j t => f (j :: t))).
  rewrite (total_ext (picks l)
    (fun xr => total (holes n (snd xr)) _)
    (fun xr => INR n * total (sequences n (snd xr)) (fun tr => f (fst xr :: fst tr))))
    by (intros xr _; apply (IH (snd xr) (fun t => f (fst xr :: t)))).
  rewrite total_scal, S_INR, total_sequences; cbn [fst snd]; ring.
Qed.

Lemma picks_length l : length (picks l) = length l.
Proof. induction l; simpl; rewrite ?map_length; congruence. Qed.

Lemma picks_in l x r : In (x, r) (picks l) -> Permutation l (x :: r).
Proof.
  revert x r; induction l as [|a l IH]; intros x r I; [destruct I|].
  destruct I as [E|I]; [injection E as <- <-; reflexivity|].
  apply in_map_iff in I as ([y s] & E & I); cbn in E; injection E as <- <-.
  rewrite (IH y s I); apply perm_swap.
Qed.

Lemma sequences_in n l t r : In (t, r) (sequences n l) -> Permutation l (t ++ r) /\ length t = n.
Proof.
  revert l t r; induction n as [|n IH]; intros l t r I.
  - destruct I as [E|[]]; injection E as <- <-; split; reflexivity.
  - cbn [sequences] in I; apply in_flat_map in I as ([x s] & Ix & I).
    apply in_map_iff in I as ([t' r'] & E & I); cbn in E; injection E as <- <-.
    destruct (IH s t' r' I) as [P L]; split; [|simpl; congruence].
    rewrite (picks_in l x s Ix); cbn [app]; apply perm_skip, P.
Qed.

Lemma holes_in n l b a r : In ((b, a), r) (holes n l) ->
  Permutation l (b ++ a ++ r) /\ (S (length (b ++ a)) = n)%nat.
Proof.
  revert l b a r; induction n as [|n IH]; intros l b a r I; [destruct I|].
  cbn [holes] in I; apply in_app_or in I as [I|I].
  - apply in_map_iff in I as ([t s] & E & I); cbn in E; injection E as <- <- <-.
    apply sequences_in in I as [P L]; split; [exact P|simpl; congruence].
  - apply in_flat_map in I as ([x s] & Ix & I).
    apply in_map_iff in I as ([[b' a'] r'] & E & I); cbn in E; injection E as <- <- <-.
    destruct (IH s b' a' r' I) as [P L]; split; [|cbn [app length]; lia].
    rewrite (picks_in l x s Ix); cbn [app]; apply perm_skip, P.
Qed.

Lemma sequences_there n l : (n <= length l)%nat -> sequences n l <> [].
Proof.
  revert l; induction n as [|n IH]; intros l H; [discriminate|].
  destruct l as [|x l]; [simpl in H; lia|]; cbn [sequences picks flat_map fst snd].
  specialize (IH l ltac:(simpl in H; lia)).
  destruct (sequences n l); [congruence|discriminate].
Qed.

(** ** Batches *)

(** All batches of [size] out of [records] places, each with its probability. The number of records is
    public: a place beyond their end holds [filler], and records beyond the last place are not drawn. *)
Definition records_at {X} (filler : X) (data : list X) (places : list nat) : list X :=
  map (fun i => nth i data filler) places.

Definition batches {X} (size records : nat) (filler : X) (data : list X) : list (list X * R) :=
  let drawn := sequences size (seq 0 records) in
  map (fun tr => (records_at filler data (fst tr), / INR (length drawn))) drawn.

Lemma batches_distribution {X} size records filler (data : list X) :
  (size <= records)%nat -> distribution (batches size records filler data) snd.
Proof.
  intros H; unfold batches; set (drawn := sequences size (seq 0 records)).
  assert (L : 0 < INR (length drawn)).
  { apply lt_0_INR; pose proof (sequences_there size (seq 0 records)) as T.
    rewrite seq_length in T; specialize (T H); fold drawn in T.
    destruct drawn; [congruence|simpl; lia]. }
  split.
  - intros sw I; apply in_map_iff in I as (tr & <- & _); left; apply Rinv_0_lt_compat, L.
  - rewrite total_map; cbn [snd]; rewrite total_const; apply Rinv_r; lra.
Qed.

(** ** A record replaced *)

(** A bound at thresholds above one; below, the two laws change places. *)
Definition turned (G : R -> R -> R) (a b : R) : R :=
  if Rle_dec a b then G a b else a - b + G b a.

Lemma turned_diag G a b :
  (forall a b, 0 <= a <= b -> 0 <= G a b) -> 0 <= a -> 0 <= b ->
  plus_part (a - b) <= turned G a b.
Proof.
  intros HG Ha Hb; unfold turned; destruct (Rle_dec a b) as [L|L].
  - rewrite plus_part_0 by lra; apply HG; lra.
  - rewrite plus_part_id by lra; pose proof (HG b a ltac:(lra)); lra.
Qed.

Lemma excess_turned {A} (l : list A) p q a b :
  distribution l p -> distribution l q -> excess l p q a b = a - b + excess l q p b a.
Proof.
  intros [_ Sp] [_ Sq].
  transitivity (total l (fun y => (a * p y - b * q y) + plus_part (b * q y - a * p y))).
  - apply total_ext; intros y _; unfold plus_part, Rmax.
    destruct (Rle_dec 0 (a * p y - b * q y)), (Rle_dec 0 (b * q y - a * p y)); lra.
  - rewrite total_plus, total_minus, !total_scal, Sp, Sq; unfold excess; ring.
Qed.

Lemma turned_below {A} (l : list A) p q G :
  distribution l p -> distribution l q ->
  (forall a b, 0 <= a <= b -> excess l p q a b <= G a b /\ excess l q p a b <= G a b) ->
  below_profile l p q (turned G).
Proof.
  intros Dp Dq H a b Ha Hb; unfold turned; destruct (Rle_dec a b) as [L|L]; [apply H; lra|].
  rewrite (excess_turned l p q a b Dp Dq); apply Rplus_le_compat_l, H; lra.
Qed.

Lemma turned_both {A} (l : list A) p q G y :
  distribution l p -> distribution l q -> below_profile l p q (turned G) -> 1 <= y ->
  excess l p q 1 y <= G 1 y /\ excess l q p 1 y <= G 1 y.
Proof.
  intros Dp Dq B Hy; split.
  - specialize (B 1 y ltac:(lra) ltac:(lra)); unfold turned in B.
    destruct (Rle_dec 1 y); [exact B|lra].
  - specialize (B y 1 ltac:(lra) ltac:(lra)); unfold turned in B.
    rewrite (excess_turned l p q y 1 Dp Dq) in B; destruct (Rle_dec y 1); [|lra].
    replace y with 1 in * by lra; lra.
Qed.

(** With a record that is sampled against without it. *)
Definition replaced_profile (r : R) (F : R -> R -> R) : R -> R -> R := turned (removal_profile r F).

Lemma replaced_diag r F a b :
  0 <= r <= 1 -> (forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= F a b) ->
  0 <= a -> 0 <= b -> plus_part (a - b) <= replaced_profile r F a b.
Proof.
  intros Hr HF; apply turned_diag; intros u v H.
  unfold removal_profile; destruct (Rle_dec (u * (1 - r)) v) as [L|L]; [|nra].
  apply Rle_trans with (plus_part (u * r - (v - u * (1 - r)))); [apply plus_part_nonneg|].
  apply HF; nra.
Qed.

Lemma sampled_distribution {A} (l : list A) r p w :
  0 <= r <= 1 -> distribution l p -> distribution l w -> distribution l (sampled r p w).
Proof.
  intros Hr [Np Sp] [Nw Sw]; split.
  - intros y Iy; specialize (Np y Iy); specialize (Nw y Iy); unfold sampled.
    apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra.
  - unfold sampled; rewrite total_plus, !total_scal, Sp, Sw; ring.
Qed.

Section Replaced.

Context {A : Type} (l : list A) (r : R) (F : R -> R -> R).
Hypothesis Hr : 0 <= r <= 1.

(** Two laws, and one beside both that a share of them is. *)
Lemma removed_beside u v w a b :
  distribution l u -> distribution l v -> distribution l w ->
  below_profile l u v F -> below_profile l u w F -> 0 <= a <= b ->
  excess l (sampled r u w) (sampled r v w) a b <= removal_profile r F a b.
Proof.
  intros [Nu Su] [Nv _] [Nw _] Buv Buw [Ha Hab]; unfold removal_profile.
  assert (Keep : a * (1 - r) <= b) by nra.
  destruct (Rle_dec (a * (1 - r)) b) as [_|N]; [|contradiction].
  set (c := b - a * (1 - r)); assert (Hc : 0 <= c) by (unfold c; lra).
  assert (Har : 0 <= a * r) by (apply Rmult_le_pos; lra).
  destruct (Rle_lt_or_eq_dec 0 c Hc) as [Pc|Zc].
  - set (s := b * r / c); set (t := (b - a) * (1 - r) / c).
    assert (Ps : 0 <= s)
      by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; apply Rinv_0_lt_compat, Pc]).
    assert (Pt : 0 <= t)
      by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; apply Rinv_0_lt_compat, Pc]).
    assert (One : s + t = 1) by (unfold s, t, c in *; field; lra).
    apply Rle_trans with (s * excess l u v (a * r) c + t * excess l u w (a * r) c).
    + unfold excess; rewrite <- !total_scal, <- total_plus; apply total_le; intros y _.
      rewrite <- !plus_part_scal by assumption; unfold plus_part at 1; apply Rmax_lub.
      * apply Rplus_le_le_0_compat; apply plus_part_nonneg.
      * eapply Rle_trans; [|apply Rplus_le_compat; apply plus_part_ge].
        right; unfold sampled; replace (s * (a * r * u y - c * v y) + t * (a * r * u y - c * w y))
          with ((s + t) * (a * r * u y) - (s * c) * v y - (t * c) * w y) by ring.
        rewrite One; replace (s * c) with (b * r) by (unfold s; field; lra).
        replace (t * c) with ((b - a) * (1 - r)) by (unfold t; field; lra); ring.
    + specialize (Buv (a * r) c Har Hc); specialize (Buw (a * r) c Har Hc).
      apply Rle_trans with (s * F (a * r) c + t * F (a * r) c); [|right].
      * apply Rplus_le_compat; apply Rmult_le_compat_l; assumption.
      * rewrite <- Rmult_plus_distr_r, One; ring.
  - assert (Z : a * r = 0) by (unfold c in Zc; nra).
    rewrite <- Zc; apply Rle_trans with (excess l u v (a * r) 0);
      [|apply Buv; lra].
    apply Rle_trans with 0; [right|apply excess_nonneg].
    apply total_zero; intros y Iy; specialize (Nu y Iy); specialize (Nv y Iy); specialize (Nw y Iy).
    apply plus_part_0; unfold sampled.
    replace (a * (r * u y + (1 - r) * w y)) with (a * r * u y + a * (1 - r) * w y) by ring.
    rewrite Z; assert (0 <= (b - a) * (1 - r) * w y) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= b * r * v y) by (repeat apply Rmult_le_pos; lra); nra.
Qed.

Lemma replaced_beside u v w :
  distribution l u -> distribution l v -> distribution l w ->
  below_profile l u v F -> below_profile l v u F -> below_profile l u w F -> below_profile l v w F ->
  below_profile l (sampled r u w) (sampled r v w) (replaced_profile r F).
Proof.
  intros Du Dv Dw Buv Bvu Buw Bvw.
  apply turned_below; [apply sampled_distribution; auto|apply sampled_distribution; auto|].
  intros a b H; split; apply removed_beside; auto.
Qed.

End Replaced.

(** The law of a mechanism that sees only the batch. *)
Definition on_batch {X A} (size records : nat) (filler : X) : (list X -> A -> R) -> list X -> A -> R :=
  on_drawn (batches size records filler).

Section Batch.

Context {X A : Type} (size records : nat) (filler : X).
Context (l : list A) (M : list X -> A -> R) (F : R -> R -> R).
Hypothesis Hsize : (0 < size <= records)%nat.
Hypothesis laws : forall s, distribution l (M s).
Hypothesis step : forall s s', replace_one s s' -> below_profile l (M s) (M s') F.

Notation records_at := (records_at filler).

Section Place.

Variables (k : nat) (x y : list X).
Hypothesis Hk : (k < records)%nat.
Hypothesis same : forall i, i <> k -> nth i x filler = nth i y filler.

Let others : list nat := seq 0 k ++ seq (S k) (records - S k).
Let free := holes size others.
Let share : R := INR size / INR records.

Lemma places_split : Permutation (seq 0 records) (k :: others).
Proof.
  unfold others; replace records with (k + S (records - S k))%nat at 1 by lia.
  rewrite seq_app; cbn [seq plus]; symmetry; apply Permutation_middle.
Qed.

Lemma others_differ i : In i others -> i <> k.
Proof. intros I E; apply in_app_or in I as [I|I]; apply in_seq in I; lia. Qed.

Lemma others_length : length others = (records - 1)%nat.
Proof. unfold others; rewrite app_length, !seq_length; lia. Qed.

(** One place filled otherwise: another record, in its place. *)
Lemma filled_otherwise (d d' : list X) h i j :
  records_at d (fst (fst h)) = records_at d' (fst (fst h)) ->
  records_at d (snd (fst h)) = records_at d' (snd (fst h)) ->
  replace_one (records_at d (filled h i)) (records_at d' (filled h j)).
Proof.
  unfold filled, BatchSampling.records_at; intros Eb Ea; rewrite !map_app, Eb; cbn [map]; rewrite Ea.
  constructor.
Qed.

Lemma free_others h : In h free ->
  (forall i, In i (fst (fst h)) -> i <> k) /\ (forall i, In i (snd (fst h)) -> i <> k) /\
  (forall i, In i (snd h) -> i <> k) /\ length (snd h) = (records - size)%nat.
Proof.
  destruct h as [[b a] r]; intros I; apply holes_in in I as [P L]; cbn [fst snd].
  assert (O : forall i, In i (b ++ a ++ r) -> i <> k)
    by (intros i J; apply others_differ, (Permutation_in i (Permutation_sym P)), J).
  pose proof (Permutation_length P) as Le; rewrite others_length, !app_length in Le.
  rewrite app_length in L; repeat split; try lia; intros; apply O; apply in_or_app; auto;
    right; apply in_or_app; auto.
Qed.

(** Of a batch with a place kept free: filled with another record, or, where all are drawn, anything. *)
Let beside (h : (list nat * list nat) * list nat) (m : A) : R :=
  match snd h with
  | [] => M (records_at x (filled h k)) m
  | _ => mixture (picks (snd h)) (fun _ => / INR (records - size)) (fun js => M (records_at x (filled h (fst js)))) m
  end.

Lemma picks_uniform h : In h free -> snd h <> [] ->
  distribution (picks (snd h)) (fun _ => / INR (records - size)).
Proof.
  intros I N; destruct (free_others h I) as (_ & _ & _ & L).
  assert (P : 0 < INR (records - size)).
  { apply lt_0_INR; rewrite <- L; destruct (snd h); [congruence|simpl; lia]. }
  split; [intros js _; left; apply Rinv_0_lt_compat, P|].
  rewrite total_const, picks_length, L; apply Rinv_r; lra.
Qed.

Lemma beside_distribution h : In h free -> distribution l (beside h).
Proof.
  intros I; unfold beside; destruct (snd h) as [|j r] eqn:E; [apply laws|].
  pose proof (picks_uniform h I ltac:(congruence)) as D; rewrite E in D.
  destruct D as [Nw Sw]; split.
  - intros m Im; apply total_nonneg; intros js J; apply Rmult_le_pos; [exact (Nw js J)|apply (proj1 (laws _)), Im].
  - unfold mixture; rewrite total_swap, <- Sw; apply total_ext; intros js _.
    rewrite total_scal; destruct (laws (records_at x (filled h (fst js)))) as [_ ->]; ring.
Qed.

Lemma beside_below (d : list X) h : In h free ->
  (forall places, (forall i, In i places -> i <> k) -> records_at d places = records_at x places) ->
  below_profile l (M (records_at d (filled h k))) (beside h) F.
Proof.
  intros I Agree; destruct (free_others h I) as (Hb & Ha & Hl & _); unfold beside.
  destruct (snd h) as [|j r] eqn:E.
  - apply step, filled_otherwise; auto.
  - pose proof (picks_uniform h I ltac:(congruence)) as D; rewrite E in D.
    assert (Const : forall m, M (records_at d (filled h k)) m
              = mixture (picks (j :: r)) (fun _ => / INR (records - size)) (fun _ => M (records_at d (filled h k))) m).
    { intros m; unfold mixture; destruct D as [_ Sw].
      rewrite total_scal_r, Sw; ring. }
    intros a b Ha' Hb'; eapply Rle_trans.
    { right; apply total_ext; intros m _; rewrite Const; reflexivity. }
    apply (below_profile_mixture (picks (j :: r)) (fun _ => / INR (records - size)) l D
             (fun _ => M (records_at d (filled h k)))
             (fun js => M (records_at x (filled h (fst js))))); try assumption.
    intros [i s] J; apply step, filled_otherwise; auto.
Qed.

(** How many sequences there are, and how many draw the record. *)
Lemma counts :
  let all := INR (length (sequences size (seq 0 records))) in
  0 < all /\ INR (length free) = share * all /\
  total (sequences size others) (fun _ => 1) = (1 - share) * all.
Proof.
  intros all; assert (N : 0 < INR records) by (apply lt_0_INR; lia).
  assert (Eall : all = total (sequences size (seq 0 records)) (fun _ => 1))
    by (unfold all; rewrite total_const; ring).
  assert (Pall : 0 < all).
  { apply lt_0_INR; pose proof (sequences_there size (seq 0 records)) as T.
    rewrite seq_length in T; specialize (T ltac:(lia)).
    destruct (sequences size (seq 0 records)); [congruence|simpl; lia]. }
  rewrite (sequences_permutation size _ _ (fun _ => 1) places_split) in Eall.
  rewrite (drawn_or_not size k others (fun _ => 1)) in Eall.
  pose proof (holes_filled size others (fun _ => 1)) as H.
  rewrite (total_ext (holes size others) _ (fun _ => INR records - INR size)) in H.
  - rewrite !total_const, Rmult_1_r in *; fold free in H, Eall |- *.
    set (drawn := INR (length free)) in *; set (rest := INR (length (sequences size others))) in *.
    assert (E : drawn * INR records = INR size * all) by (rewrite Eall; nra).
    assert (E' : drawn = share * all)
      by (unfold share; apply Rmult_eq_reg_r with (INR records); [rewrite E; field; lra|lra]).
    split; [exact Pall|split; [exact E'|]].
    rewrite Rmult_minus_distr_r, <- E', Rmult_1_l; lra.
  - intros h I; rewrite total_const, picks_length, Rmult_1_r.
    destruct (free_others h I) as (_ & _ & _ & ->); apply minus_INR; lia.
Qed.

(** A batch is drawn in two steps: all but one place, and then the record itself or another. *)
Lemma on_batch_split (d : list X) m :
  (forall places, (forall i, In i places -> i <> k) -> records_at d places = records_at x places) ->
  on_batch size records filler M d m
    = mixture free (fun _ => / INR (length free))
        (fun h => sampled share (M (records_at d (filled h k))) (beside h)) m.
Proof.
  intros Agree; destruct counts as (Pall & Efree & Erest).
  set (all := INR (length (sequences size (seq 0 records)))) in *.
  assert (N : 0 < INR records) by (apply lt_0_INR; lia).
  assert (Ps : 0 < share)
    by (apply Rdiv_lt_0_compat; [apply lt_0_INR; lia|exact N]).
  unfold on_batch, on_drawn, batches; rewrite total_map; cbn [fst snd]; fold all.
  rewrite total_scal, (sequences_permutation size _ _ (fun t => M (records_at d t) m) places_split).
  rewrite (drawn_or_not size k others (fun t => M (records_at d t) m)); fold free.
  unfold mixture, sampled; rewrite total_scal, total_plus, !total_scal, Efree.
  assert (Rest : total (sequences size others) (fun tr => M (records_at d (fst tr)) m)
            = (1 - share) / share * total free (fun h => beside h m)).
  { assert (Ns : 0 < INR size) by (apply lt_0_INR; lia).
    apply Rmult_eq_reg_l with (INR size); [|lra]; rewrite <- (holes_filled size others (fun t => M (records_at d t) m)); fold free.
    rewrite <- Rmult_assoc; replace (INR size * ((1 - share) / share)) with (INR (records - size)).
    2:{ rewrite minus_INR by lia; unfold share; field; lra. }
    rewrite <- total_scal; apply total_ext; intros h I.
    destruct (free_others h I) as (Hb & Ha & Hl & L); unfold beside.
    destruct (snd h) as [|j r] eqn:E.
    - simpl in L; rewrite <- L; simpl; ring.
    - unfold mixture; rewrite total_scal, <- Rmult_assoc, Rinv_r, Rmult_1_l.
      + apply total_ext; intros [i s] J; cbn [fst]; f_equal; apply Agree.
        intros i' J'; unfold filled in J'; apply in_app_or in J' as [J'|[J'|J']]; auto.
        subst i'; apply Hl, Permutation_in with (1 := Permutation_sym (picks_in _ _ _ J)).
        left; reflexivity.
      + apply not_0_INR; rewrite <- L; discriminate. }
  rewrite Rest; field; split; lra.
Qed.

Theorem batch_profile :
  below_profile l (on_batch size records filler M x) (on_batch size records filler M y)
    (replaced_profile share F).
Proof.
  destruct counts as (Pall & Efree & _); assert (N : 0 < INR records) by (apply lt_0_INR; lia).
  assert (Ps : 0 < share <= 1).
  { unfold share; split; [apply Rdiv_lt_0_compat; [apply lt_0_INR; lia|exact N]|].
    apply Rmult_le_reg_r with (1 := N); unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra.
    apply le_INR; lia. }
  assert (Pfree : 0 < INR (length free)) by (rewrite Efree; apply Rmult_lt_0_compat; lra).
  assert (D : distribution free (fun _ => / INR (length free))).
  { split; [intros h _; left; apply Rinv_0_lt_compat, Pfree|].
    rewrite total_const; apply Rinv_r; lra. }
  assert (Agree : forall places, (forall i, In i places -> i <> k) ->
            records_at y places = records_at x places)
    by (intros places H; apply map_ext_in; intros i I; symmetry; apply same, H, I).
  intros a b Ha Hb; eapply Rle_trans.
  { right; apply total_ext; intros m _.
    rewrite (on_batch_split x m (fun _ _ => eq_refl)), (on_batch_split y m Agree); reflexivity. }
  apply (below_profile_mixture free (fun _ => / INR (length free)) l D
           (fun h => sampled share (M (records_at x (filled h k))) (beside h))
           (fun h => sampled share (M (records_at y (filled h k))) (beside h))); try assumption.
  intros h I; destruct (free_others h I) as (Hb' & Ha' & _).
  apply replaced_beside; auto using beside_distribution; try lra.
  - apply step, filled_otherwise; symmetry; apply Agree; assumption.
  - apply step, filled_otherwise; apply Agree; assumption.
  - apply beside_below; [exact I|reflexivity].
  - apply beside_below; [exact I|exact Agree].
Qed.

End Place.

(** Domination of a mechanism on a batch from that of the mechanism itself. *)
Theorem batch_replaced (x y : list X) :
  (forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= F a b) -> replace_one x y ->
  below_profile l (on_batch size records filler M x) (on_batch size records filler M y)
    (replaced_profile (INR size / INR records) F).
Proof.
  intros Covers H; destruct H as [before after z z'].
  assert (Same : forall i, i <> length before ->
            nth i (before ++ z :: after) filler = nth i (before ++ z' :: after) filler).
  { intros i N; destruct (Nat.lt_ge_cases i (length before)) as [L|L].
    - rewrite !app_nth1 by exact L; reflexivity.
    - rewrite !app_nth2 by exact L; destruct (i - length before)%nat eqn:E; [lia|reflexivity]. }
  destruct (Nat.lt_ge_cases (length before) records) as [L|L].
  - apply batch_profile with (k := length before); assumption.
  - (* a record that is never drawn *)
    assert (Equal : forall m, on_batch size records filler M (before ++ z' :: after) m
              = on_batch size records filler M (before ++ z :: after) m).
    { intros m; unfold on_batch, on_drawn, batches; rewrite !total_map; apply total_ext; intros [t r] I.
      cbn [fst snd]; do 2 f_equal; apply map_ext_in; intros i Ii; symmetry; apply Same.
      apply sequences_in in I as [P _]; intros E; subst i.
      assert (J : In (length before) (seq 0 records)).
      { apply Permutation_in with (1 := Permutation_sym P), in_or_app; left; exact Ii. }
      apply in_seq in J; lia. }
    intros a b Ha Hb; apply Rle_trans with (plus_part (a - b)).
    + rewrite <- (excess_diag l (on_batch size records filler M (before ++ z :: after)) a b).
      * right; apply total_ext; intros m _; rewrite Equal; reflexivity.
      * apply on_drawn_distribution; [apply batches_distribution; lia|exact laws].
    + apply replaced_diag; try assumption.
      assert (N : 0 < INR records) by (apply lt_0_INR; lia).
      split; [apply Rmult_le_pos; [apply pos_INR|left; apply Rinv_0_lt_compat, N]|].
      apply Rmult_le_reg_r with (1 := N); unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra; apply le_INR; lia.
Qed.

End Batch.
