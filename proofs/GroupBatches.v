(** Several records replaced in a batch drawn without replacement: a batch that none of them is in, with
    some of its places filled by them. *)

From Coq Require Import Reals List Lra Lia Permutation.
From Dpledger Require Import Sums Finite Domination Sensitivity PoissonSampling BatchSampling
  ReplacedSample CopiesSampling GroupSampling.
Import ListNotations.
Open Scope R_scope.

(** All ways to put [i] in one of the places. *)
Fixpoint struck (i : nat) (t : list nat) : list (list nat) :=
  match t with
  | [] => []
  | a :: rest => (i :: rest) :: map (cons a) (struck i rest)
  end.

Lemma struck_length i t : length (struck i t) = length t.
Proof. induction t; simpl; rewrite ?map_length; congruence. Qed.

Lemma struck_in i t t' : In t' (struck i t) ->
  exists before a after, t = before ++ a :: after /\ t' = before ++ i :: after.
Proof.
  revert t'; induction t as [|a t IH]; intros t' I; [destruct I|].
  destruct I as [<-|I]; [exists [], a, t; auto|].
  apply in_map_iff in I as (s & <- & I); destruct (IH s I) as (b & c & d & -> & ->).
  exists (a :: b), c, d; auto.
Qed.

(** A place kept free, as often as something is left over that may have been in it. *)
Lemma holes_struck n i l f :
  total (holes n l) (fun h => INR (length (snd h)) * f (filled h i))
  = total (sequences n l) (fun tr => total (struck i (fst tr)) f).
Proof.
  revert l f; induction n as [|n IH]; intros l f; [simpl; ring|].
  rewrite total_holes, total_sequences; unfold filled; cbn [fst snd app struck].
  rewrite (total_ext (picks l) (fun xr => total (holes n (snd xr)) _)
    (fun xr => total (sequences n (snd xr)) (fun tr => total (struck i (fst tr)) (fun t => f (fst xr :: t)))))
    by (intros xr _; apply (IH (snd xr) (fun t => f (fst xr :: t)))).
  rewrite (total_ext (sequences n l) _ (fun tr => total (picks (snd tr)) (fun js => f (i :: fst tr))))
    by (intros tr _; rewrite total_const, picks_length; reflexivity).
  rewrite (drawn_last n l (fun _ t => f (i :: t))), <- total_plus; apply total_ext; intros xr _.
  rewrite <- total_plus; apply total_ext; intros tr _; cbn [total]; rewrite total_map; reflexivity.
Qed.

(** One place more: it is not drawn, or it is in one of the places of a batch without it. *)
Lemma drawn_or_struck n i l f : (0 < n <= length l)%nat ->
  total (sequences n (i :: l)) (fun tr => f (fst tr))
  = total (sequences n l) (fun tr =>
      f (fst tr) + / INR (S (length l) - n) * total (struck i (fst tr)) f).
Proof.
  intros Hn; rewrite (drawn_or_not n i l f), total_plus; f_equal.
  rewrite total_scal, <- holes_struck, <- total_scal; apply total_ext; intros [[b a] r] I.
  apply holes_in in I as [P L]; apply Permutation_length in P; rewrite !app_length in P; cbn [snd].
  rewrite app_length in L; replace (length r) with (S (length l) - n)%nat by lia.
  field; apply not_0_INR; lia.
Qed.

(** The mean over all batches. *)
Definition batch_mean (n : nat) (l : list nat) (f : list nat -> R) : R :=
  total (sequences n l) (fun tr => f (fst tr)) / INR (length (sequences n l)).

Lemma sequences_positive n l : (n <= length l)%nat -> 0 < INR (length (sequences n l)).
Proof.
  intros H; apply lt_0_INR; pose proof (sequences_there n l H); destruct (sequences n l); [congruence|simpl; lia].
Qed.

Lemma batch_mean_more n i l f : (0 < n <= length l)%nat ->
  let N := INR (S (length l)) in
  batch_mean n (i :: l) f
  = batch_mean n l (fun t => (1 - INR n / N) * f t + / N * total (struck i t) f).
Proof.
  intros Hn N; unfold batch_mean.
  pose proof (drawn_or_struck n i l (fun _ => 1) Hn) as Count; cbv beta in Count; rewrite total_const, Rmult_1_r in Count.
  pose proof (sequences_positive n l ltac:(lia)) as Pl.
  assert (Rest : INR (S (length l) - n) = N - INR n) by (unfold N; apply minus_INR; lia).
  assert (Pr : 0 < N - INR n) by (rewrite <- Rest; apply lt_0_INR; lia).
  assert (Pn : 0 <= INR n) by apply pos_INR.
  rewrite (total_ext (sequences n l) _ (fun _ => N / (N - INR n))) in Count.
  2:{ intros [t r] I; apply sequences_in in I as [_ L]; cbn [fst].
      rewrite total_const, struck_length, L, Rest; field; lra. }
  rewrite total_const in Count; rewrite (drawn_or_struck n i l f Hn), Count, Rest.
  rewrite (total_ext (sequences n l) (fun tr => (1 - INR n / N) * f (fst tr) + _)
    (fun tr => ((N - INR n) / N) * (f (fst tr) + / (N - INR n) * total (struck i (fst tr)) f)))
    by (intros; field; lra).
  rewrite total_scal; field; lra.
Qed.

(** Batches of the places [ks] and others: a batch of the others, and what it becomes where some of
    [ks] are drawn, with probabilities that do not depend on it. *)
Lemma edited n ks l : (0 < n <= length l)%nat -> exists none (edits : list nat -> list (list nat * R)),
  let N := INR (length ks + length l) in
  1 - INR (length ks) * INR n / N <= none /\ none <= INR (length l) / N /\ 0 <= none /\
  (forall t, length t = n ->
     total (edits t) snd = 1 - none /\
     forall e, In e (edits t) -> 0 <= snd e /\ swapped (length ks) t (fst e)) /\
  forall f, batch_mean n (ks ++ l) f
    = batch_mean n l (fun t => none * f t + total (edits t) (fun e => snd e * f (fst e))).
Proof.
  intros Hn; assert (P1 : 1 <= INR n) by (apply (le_INR 1); lia).
  assert (Pl : INR n <= INR (length l)) by (apply le_INR; lia).
  induction ks as [|i ks (none & edits & Low & High & Pos & Edits & Mean)].
  - exists 1, (fun _ => []); cbv zeta; cbn [length app plus].
    split; [simpl INR; unfold Rdiv; lra|split; [right; field; lra|split; [lra|split]]].
    + intros t _; split; [simpl; ring|intros e []].
    + intros f; unfold batch_mean; f_equal; apply total_ext; intros; simpl; ring.
  - cbv zeta in *; set (N := INR (length ks + length l)) in *.
    set (N' := INR (length (i :: ks) + length l)).
    assert (EN : N' = N + 1) by (unfold N', N; cbn [length plus]; apply S_INR).
    assert (PN : 1 <= N) by (unfold N; rewrite plus_INR; pose proof (pos_INR (length ks)); lra).
    assert (Le : INR n <= N) by (unfold N; rewrite plus_INR; pose proof (pos_INR (length ks)); lra).
    assert (Hk : INR (length (i :: ks)) = INR (length ks) + 1) by (cbn [length]; apply S_INR).
    set (keep := 1 - INR n / N').
    assert (Keep : 0 <= keep <= 1 - / N').
    { unfold keep; split.
      - apply Rmult_le_reg_r with N'; [lra|]; unfold Rdiv; rewrite Rmult_minus_distr_r, Rmult_assoc, Rinv_l by lra; lra.
      - assert (0 < / N') by (apply Rinv_0_lt_compat; lra); unfold Rdiv; nra. }
    exists (none * keep), (fun t =>
      map (fun e => (fst e, keep * snd e)) (edits t)
      ++ flat_map (fun e => map (fun t' => (t', / N' * snd e)) (struck i (fst e))) (edits t)
      ++ map (fun t' => (t', / N' * none)) (struck i t)).
    assert (Pi : 0 < / N') by (apply Rinv_0_lt_compat; lra).
    assert (Same : forall t e, length t = n -> In e (edits t) -> length (fst e) = n).
    { intros t e L I; destruct (Edits t L) as [_ E]; destruct (E e I) as [_ S].
      clear - S L; subst n; induction S; simpl in *; congruence. }
    split; [|split; [|split; [|split]]].
    + (* what is lost is none n / N', at most n / N' *)
      assert (Small : none <= INR (length l) / N) by exact High.
      assert (ENl : N = INR (length ks) + INR (length l)) by (unfold N; apply plus_INR).
      rewrite Hk; pose proof (pos_INR (length ks)) as Pk.
      set (k := INR (length ks)) in *; set (m := INR n) in *; set (q := INR (length l)) in *.
      assert (Lost : none * m / N' <= q / N * m / N').
      { unfold Rdiv; apply Rmult_le_compat_r; [lra|apply Rmult_le_compat_r; [lra|exact Small]]. }
      replace (none * keep) with (none - none * m / N') by (unfold keep; field; lra).
      assert (Sum : k * m / N + q / N * m / N' <= (k + 1) * m / N'); [|lra].
      apply Rmult_le_reg_r with (N * N'); [apply Rmult_lt_0_compat; lra|].
      replace ((k * m / N + q / N * m / N') * (N * N')) with (k * m * N' + q * m) by (field; lra).
      replace ((k + 1) * m / N' * (N * N')) with ((k + 1) * m * N) by (field; lra).
      rewrite EN, ENl; nra.
    + assert (ENl : N = INR (length ks) + INR (length l)) by (unfold N; apply plus_INR).
      set (q := INR (length l)) in *.
      apply Rle_trans with (q / N * (N / N')).
      * apply Rmult_le_compat; [exact Pos|apply Keep|exact High|].
        replace (N / N') with (1 - / N') by (rewrite EN; field; lra); apply Keep.
      * right; field; lra.
    + apply Rmult_le_pos; lra.
    + intros t L; destruct (Edits t L) as [Sum Each]; split.
      * rewrite !total_app, !total_map, total_flat_map; cbn [snd]; rewrite total_scal, Sum.
        rewrite (total_ext (edits t) (fun e => total (map _ _) snd) (fun e => INR n * / N' * snd e)).
        -- rewrite total_scal, Sum, total_const, struck_length, L; unfold keep; field; lra.
        -- intros e I; rewrite total_map; cbn [snd]; rewrite total_const, struck_length, (Same t e L I); ring.
      * intros e I; apply in_app_or in I as [I|I]; [|apply in_app_or in I as [I|I]].
        -- apply in_map_iff in I as (e' & <- & I); destruct (Each e' I) as [A B]; cbn [fst snd length].
           split; [apply Rmult_le_pos; lra|apply swapped_less, B].
        -- apply in_flat_map in I as (e' & I & J); apply in_map_iff in J as (t' & <- & J); destruct (Each e' I) as [A B].
           apply struck_in in J as (b & a & c & E1 & ->); cbn [fst snd length].
           split; [apply Rmult_le_pos; lra|exact (swapped_more _ t _ b c a i B E1)].
        -- apply in_map_iff in I as (t' & <- & J).
           apply struck_in in J as (b & a & c & E1 & ->); cbn [fst snd length].
           split; [apply Rmult_le_pos; lra|].
           exact (swapped_more _ t t b c a i (swapped_same _ t) E1).
    + intros f; cbn [app].
      rewrite (batch_mean_more n i (ks ++ l) f) by (rewrite app_length; lia); cbv zeta.
      rewrite app_length; change (INR (S (length ks + length l))) with N'; fold keep.
      rewrite Mean; unfold batch_mean; f_equal; apply total_ext; intros [t r] I.
      rewrite !total_app, !total_map, total_flat_map; cbn [fst snd].
      rewrite (total_ext (edits t) (fun e => snd e * (keep * f (fst e) + _))
        (fun e => keep * snd e * f (fst e) + total (struck i (fst e)) (fun t' => / N' * snd e * f t')))
        by (intros; rewrite total_scal; ring).
      rewrite total_plus.
      rewrite (total_ext (edits t) (fun e => total (map _ _) _) (fun e => total (struck i (fst e)) (fun t' => / N' * snd e * f t')))
        by (intros; rewrite total_map; reflexivity).
      replace (total (struck i t) (fun t' => / N' * none * f t')) with (/ N' * none * total (struck i t) f)
        by (symmetry; apply total_scal).
      ring.
Qed.

Lemma swapped_map {X} (g : nat -> X) k t t' : swapped k t t' -> swapped k (map g t) (map g t').
Proof. induction 1; cbn [map]; constructor; assumption. Qed.

Lemma swapped_maps {X} (g h : nat -> X) k t t' :
  swapped k t t' -> (forall i, In i t -> g i = h i) -> swapped k (map g t') (map h t').
Proof.
  induction 1 as [|k z x y T IH|k a b x y T IH|k x y T IH]; intros Same; cbn [map].
  - constructor.
  - rewrite (Same z (or_introl eq_refl)); apply swapped_kept, IH; intros i I; apply Same; right; exact I.
  - apply swapped_one, IH; intros i I; apply Same; right; exact I.
  - apply swapped_less, IH, Same.
Qed.

Lemma swapped_up_to {X} j k (x y : list X) : (j <= k)%nat -> swapped j x y -> swapped k x y.
Proof. induction 1; [auto|intros; apply swapped_less; auto]. Qed.

(** Places that are all different. *)
Lemma swapped_distinct {X} (g h : nat -> X) t : NoDup t -> forall ps,
  (forall i, In i t -> ~ In i ps -> g i = h i) -> swapped (length ps) (map g t) (map h t).
Proof.
  induction 1 as [|i t N D IH]; intros ps Same; cbn [map]; [apply swapped_same|].
  destruct (in_dec Nat.eq_dec i ps) as [I|O].
  - apply (swapped_up_to (S (length (remove Nat.eq_dec i ps)))); [apply remove_length_lt, I|].
    apply swapped_one, IH; intros j J O; apply Same; [right; exact J|].
    intros K; apply O, in_in_remove; [intros ->; apply N, J|exact K].
  - rewrite (Same i (or_introl eq_refl) O); apply swapped_kept, IH.
    intros j J; apply Same; right; exact J.
Qed.

Section Batches.

Context {X A : Type} (size records k : nat) (filler : X).
Context (l : list A) (M : list X -> A -> R) (F : R -> R -> R) (q : R).
Hypothesis Hsize : (0 < size <= records)%nat.
Hypothesis Hq : 0 < q <= 1.
Hypothesis Fits : q = 1 \/ (size + k <= records)%nat /\ INR k * INR size / INR records <= q.
Hypothesis laws : forall s, distribution l (M s).
Hypothesis step : forall s s', swapped k s s' -> below_profile l (M s) (M s') F.

Lemma on_batch_mean (d : list X) m :
  on_batch size records filler M d m
  = batch_mean size (seq 0 records) (fun t => M (records_at filler d t) m).
Proof.
  unfold on_batch, on_drawn, batches, batch_mean; cbv zeta; rewrite total_map; cbn [fst snd].
  rewrite total_scal; unfold Rdiv; apply Rmult_comm.
Qed.

Lemma batch_mean_permutation n a b f : Permutation a b -> batch_mean n a f = batch_mean n b f.
Proof.
  intros P; unfold batch_mean; f_equal; [apply sequences_permutation, P|].
  pose proof (sequences_permutation n a b (fun _ => 1) P) as C; cbv beta in C; rewrite !total_const, !Rmult_1_r in C.
  rewrite C; reflexivity.
Qed.

Lemma uniform_sequences n b : (n <= length b)%nat ->
  distribution (sequences n b) (fun _ => / INR (length (sequences n b))).
Proof.
  intros H; pose proof (sequences_positive n b H) as P.
  split; [intros t _; left; apply Rinv_0_lt_compat, P|rewrite total_const; apply Rinv_r; lra].
Qed.

Lemma batch_mean_mixture n b (P : list nat -> A -> R) m :
  batch_mean n b (fun t => P t m)
  = mixture (sequences n b) (fun _ => / INR (length (sequences n b))) (fun tr => P (fst tr)) m.
Proof. unfold batch_mean, mixture; rewrite total_scal; unfold Rdiv; apply Rmult_comm. Qed.

Lemma mixed_distribution {I} (s : list I) w (P : I -> A -> R) :
  distribution s w -> (forall i, In i s -> distribution l (P i)) -> distribution l (mixture s w P).
Proof.
  intros [Nw Sw] D; split.
  - intros m Im; apply total_nonneg; intros i Ii; apply Rmult_le_pos; [apply Nw, Ii|apply (D i Ii), Im].
  - unfold mixture; rewrite total_swap, <- Sw; apply total_ext; intros i Ii.
    rewrite total_scal; destruct (D i Ii) as [_ ->]; ring.
Qed.

Lemma step_places (ps : list nat) (g h : nat -> X) t t' : (length ps <= k)%nat -> swapped (length ps) t t' -> (forall i, In i t -> g i = h i) ->
  below_profile l (M (map g t')) (M (map h t')) F.
Proof. intros L S Same; apply step, (swapped_up_to _ _ _ _ L), (swapped_maps _ _ _ _ _ S Same). Qed.

(** Domination of a mechanism on such a batch, of which records are replaced: all of a share [q]. *)
Theorem batch_swapped (x y : list X) : swapped k x y ->
  below_profile l (on_batch size records filler M x) (on_batch size records filler M y) (replaced_profile q F).
Proof.
  intros T; destruct (swapped_steps k x y T) as (j & Lj & S).
  destruct (differing filler j x y S) as (ps & L & Same); assert (Lps : (length ps <= k)%nat) by lia; clear S L Lj j.
  set (g := fun d i => nth i d filler).
  assert (Means : forall d m, on_batch size records filler M d m
            = batch_mean size (seq 0 records) (fun t => M (map (g d) t) m)) by apply on_batch_mean.
  pose proof (uniform_sequences size (seq 0 records) ltac:(rewrite seq_length; lia)) as Uniform.
  destruct Fits as [All|[Room Share]].
  - (* all of them may be drawn *)
    assert (Each : forall u v, (forall i, ~ In i ps -> g u i = g v i) ->
              below_profile l (on_batch size records filler M u) (on_batch size records filler M v) F).
    { assert (Mixtures : forall d m, on_batch size records filler M d m
                = mixture (sequences size (seq 0 records)) (fun _ => / INR (length (sequences size (seq 0 records))))
                    (fun tr => M (map (g d) (fst tr))) m).
      { intros d m; rewrite Means; apply (batch_mean_mixture _ _ (fun t => M (map (g d) t))). }
      intros u v D a b Ha Hb; eapply Rle_trans;
        [right; apply total_ext; intros m _; rewrite (Mixtures u), (Mixtures v); reflexivity|].
      apply (below_profile_mixture _ _ l Uniform
               (fun tr => M (map (g u) (fst tr))) (fun tr => M (map (g v) (fst tr)))); try assumption.
      intros [t r] I; apply step; cbn [fst]; apply (swapped_up_to _ _ _ _ Lps), swapped_distinct.
      - apply sequences_in in I as [P _].
        pose proof (Permutation_NoDup P (seq_NoDup records 0)) as N; clear - N.
        induction t as [|i t IH]; [constructor|]; apply NoDup_cons_iff in N as [O N].
        constructor; [intros J; apply O, in_or_app; left; exact J|apply IH, N].
      - intros i _; apply D. }
    assert (Laws : forall d, distribution l (on_batch size records filler M d)).
    { intros d; apply on_drawn_distribution; [apply batches_distribution; lia|exact laws]. }
    unfold replaced_profile; apply turned_below; [apply Laws|apply Laws|].
    intros a b H; unfold removal_profile; rewrite All, Rminus_eq_0, !Rmult_0_r, Rminus_0_r, Rmult_1_r.
    destruct (Rle_dec 0 b); [|lra].
    split; (apply Each; [|lra|lra]); intros i N; [|symmetry]; apply Same, N.
  - set (inside := fun i => existsb (Nat.eqb i) ps).
    set (ks := filter inside (seq 0 records)); set (rest := filter (fun i => negb (inside i)) (seq 0 records)).
    pose proof (split_places inside (seq 0 records)) as Split; fold ks rest in Split.
    assert (Inside : forall i, inside i = true <-> In i ps).
    { intros i; unfold inside; rewrite existsb_exists; split.
      - intros (j & J & E); apply Nat.eqb_eq in E as ->; exact J.
      - intros J; exists i; split; [exact J|apply Nat.eqb_refl]. }
    assert (Lks : (length ks <= length ps)%nat).
    { apply NoDup_incl_length; [apply NoDup_filter, seq_NoDup|].
      intros i I; apply filter_In in I as [_ I]; apply Inside, I. }
    pose proof (Permutation_length Split) as Le; rewrite seq_length, app_length in Le.
    destruct (edited size ks rest ltac:(lia)) as (none & edits & Low & High & Pos & Edits & Mean).
    cbv zeta in Low, High; rewrite <- Le in Low, High.
    assert (Pr : 0 < INR records) by (apply lt_0_INR; lia).
    assert (Enough : 1 - q <= none).
    { apply Rle_trans with (2 := Low).
      assert (INR (length ks) * INR size / INR records <= INR k * INR size / INR records); [|lra].
      unfold Rdiv; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pr|].
      apply Rmult_le_compat_r; [apply pos_INR|apply le_INR; lia]. }
    set (more := fun t => (t, none - (1 - q)) :: edits t).
    set (share := fun e : list nat * R => snd e / q).
    assert (More : forall t, length t = size ->
              total (more t) snd = q /\ forall e, In e (more t) -> 0 <= snd e /\ swapped (length ks) t (fst e)).
    { intros t L; destruct (Edits t L) as [Sum Each]; unfold more; cbn [total snd]; split; [lra|].
      intros e [<-|I]; [cbn [fst snd]; split; [lra|apply swapped_same]|apply Each, I]. }
    assert (Shares : forall t, length t = size -> distribution (more t) share).
    { intros t L; destruct (More t L) as [Sum Each]; unfold share; split.
      - intros e I; apply Rmult_le_pos; [apply Each, I|left; apply Rinv_0_lt_compat; lra].
      - unfold Rdiv; rewrite (total_ext _ _ (fun e => / q * snd e)) by (intros; ring).
        rewrite total_scal, Sum; field; lra. }
    set (u := fun d t => mixture (more t) share (fun e => M (map (g d) (fst e)))).
    set (w := fun t => M (map (g x) t)).
    assert (Agree : forall i, In i rest -> g x i = g y i).
    { intros i I; apply filter_In in I as [_ I]; apply Same; intros J; apply Inside in J; rewrite J in I; discriminate. }
    assert (Decomposed : forall d, (forall i, In i rest -> g d i = g x i) -> forall m,
              on_batch size records filler M d m
              = mixture (sequences size rest) (fun _ => / INR (length (sequences size rest)))
                  (fun tr => sampled q (u d (fst tr)) (w (fst tr))) m).
    { intros d Like m; rewrite Means, (batch_mean_permutation size _ _ _ Split), Mean.
      rewrite <- (batch_mean_mixture size rest (fun t => sampled q (u d t) (w t)) m).
      unfold batch_mean; f_equal; apply total_ext; intros [t r] I; cbn [fst].
      assert (Ew : map (g d) t = map (g x) t).
      { apply map_ext_in; intros i J; apply Like; apply sequences_in in I as [P _].
        apply (Permutation_in i (Permutation_sym P)), in_or_app; left; exact J. }
      unfold sampled, u, w, mixture, share, more; cbn [total fst snd]; rewrite Ew.
      rewrite (total_ext (edits t) (fun e => snd e / q * M (map (g d) (fst e)) m)
                 (fun e => / q * (snd e * M (map (g d) (fst e)) m))) by (intros; field; lra).
      rewrite total_scal; field; lra. }
    intros a b Ha Hb; eapply Rle_trans.
    { right; apply total_ext; intros m _.
      rewrite (Decomposed x), (Decomposed y) by (intros; try symmetry; auto; apply Agree; assumption); reflexivity. }
    apply (below_profile_mixture _ _ l (uniform_sequences size rest ltac:(lia))
             (fun tr => sampled q (u x (fst tr)) (w (fst tr))) (fun tr => sampled q (u y (fst tr)) (w (fst tr))));
      try assumption.
    intros [t r] I; cbn [fst]; apply sequences_in in I as [P L].
    assert (In_rest : forall i, In i t -> In i rest).
    { intros i J; apply (Permutation_in i (Permutation_sym P)), in_or_app; left; exact J. }
    destruct (More t L) as [_ Each].
    assert (Beside : forall d d', (forall i, In i rest -> g d i = g d' i) ->
              below_profile l (u d t) (u d' t) F).
    { intros d d' Like; apply (below_profile_mixture (more t) share l (Shares t L)); intros e Ie.
      apply (step_places ks (g d) (g d') t); [lia|apply Each, Ie|intros; apply Like, In_rest; assumption]. }
    assert (Alone : forall d, (forall i, In i rest -> g d i = g x i) -> below_profile l (u d t) (w t) F).
    { intros d Like a' b' Ha' Hb'.
      eapply Rle_trans; [|apply (below_profile_mixture (more t) share l (Shares t L)
               (fun e => M (map (g d) (fst e))) (fun _ => w t) F); try assumption].
      - right; apply total_ext; intros m _; do 2 f_equal; unfold mixture.
        rewrite total_scal_r; destruct (Shares t L) as [_ ->]; ring.
      - intros e Ie; unfold w; replace (map (g x) t) with (map (g d) t)
          by (apply map_ext_in; intros i J; apply Like, In_rest, J).
        apply step, swapped_sym, swapped_map, (swapped_up_to (length ks)); [lia|apply Each, Ie]. }
    assert (Mixed : forall d, distribution l (u d t)).
    { intros d; apply mixed_distribution; [apply Shares, L|intros; apply laws]. }
    apply replaced_beside; try apply Mixed; try apply laws; [lra|apply Beside|apply Beside|apply Alone|apply Alone];
      intros i Ii; try reflexivity; [apply Agree|symmetry; apply Agree|symmetry; apply Agree]; exact Ii.
Qed.

End Batches.
