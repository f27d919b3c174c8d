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

(** From one order of a sample to the other one. *)
Lemma addition_turned {A} (l : list A) p q r F :
  distribution l p -> distribution l q -> 0 <= r <= 1 -> symmetric_profile F ->
  below_profile l q p (removal_profile r F) -> below_profile l p q (addition_profile r F).
Proof.
  intros Dp Dq Hr [_ Mirror] B a b Ha Hb; specialize (B b a Hb Ha).
  rewrite (excess_turned l p q a b Dp Dq); unfold removal_profile, addition_profile in *.
  destruct (Rle_dec (b * (1 - r)) a) as [L|L]; [|lra].
  assert (0 <= b * r) by (apply Rmult_le_pos; lra); rewrite Mirror; lra.
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

(** Where it is told whether it is. *)
Definition told_profile (a b : R) : R := r * F a b + (1 - r) * plus_part (a - b).

Lemma told_beside u v w :
  distribution l w -> below_profile l u v F -> below_profile l (sampled r u w) (sampled r v w) told_profile.
Proof.
  intros Dw B a b Ha Hb; apply Rle_trans with (r * excess l u v a b + (1 - r) * excess l w w a b).
  - unfold excess; rewrite <- !total_scal, <- total_plus; apply total_le; intros y _.
    rewrite <- !plus_part_scal by lra; unfold plus_part at 1; apply Rmax_lub.
    + apply Rplus_le_le_0_compat; apply plus_part_nonneg.
    + eapply Rle_trans; [|apply Rplus_le_compat; apply plus_part_ge]; right; unfold sampled; ring.
  - rewrite excess_diag by assumption; apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|apply B; assumption].
Qed.

Lemma told_diag a b :
  (forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= F a b) -> 0 <= a -> 0 <= b ->
  plus_part (a - b) <= told_profile a b.
Proof. intros HF Ha Hb; specialize (HF a b Ha Hb); unfold told_profile; nra. Qed.

End Replaced.

(** The law of a mechanism that sees only the batch. *)
Definition on_batch {X A} (size records : nat) (filler : X) : (list X -> A -> R) -> list X -> A -> R :=
  on_drawn (batches size records filler).
