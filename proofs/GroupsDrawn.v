(** Batches drawn without replacement, of which several records are replaced: one of these after the
    other is put in a batch of the others, or not, whatever was said of those before it. So as many of
    them are drawn, at most, as of so many draws with replacement are one record. *)

From Coq Require Import Reals List Lra Lia Permutation FunctionalExtensionality.
From Dpledger Require Import Sums Finite Domination Sensitivity PoissonSampling BatchSampling
  CopiesSampling GroupSampling GroupBatches.
Import ListNotations.
Open Scope R_scope.

Section Struck.

Context (n : nat) (r : R) (rest : list nat).
Hypothesis Hn : (0 < n <= length rest)%nat.
Hypothesis Hr : INR n / INR (S (length rest)) <= r <= 1.

(** What becomes of a batch, where only those of [ks] whose bit is set are put in it: with which
    probability makes up for that of the bit. *)
Fixpoint strikes (ks : list nat) (mask : list bool) (t : list nat) : list (list nat * R) :=
  match ks, mask with
  | i :: ks', true :: mask' =>
      let p := INR n / INR (S (length ks' + length rest)) / r in
      flat_map (fun e => (fst e, (1 - p) * snd e)
                         :: map (fun t' => (t', / INR n * p * snd e)) (struck i (fst e))) (strikes ks' mask' t)
  | _ :: ks', false :: mask' => strikes ks' mask' t
  | _, _ => [(t, 1)]
  end.

Lemma strikes_none ks mask t : ones mask = 0%nat -> strikes ks mask t = [(t, 1)].
Proof.
  revert mask; induction ks as [|i ks IH]; intros [|[|] mask] E; try reflexivity; [discriminate|apply IH, E].
Qed.

Lemma size_positive : 0 < INR n.
Proof. apply lt_0_INR; lia. Qed.

Lemma bit_positive : 0 < r.
Proof.
  pose proof size_positive; apply Rlt_le_trans with (2 := proj1 Hr).
  apply Rdiv_lt_0_compat; [assumption|apply lt_0_INR; lia].
Qed.

(** The more there are, the less likely one of them is drawn. *)
Lemma drawn_given_bit k : 0 <= INR n / INR (S (k + length rest)) / r <= 1.
Proof.
  pose proof size_positive as Pn; pose proof bit_positive as Pr.
  assert (Pl : 0 < INR (S (length rest))) by (apply lt_0_INR; lia).
  assert (Le : INR (S (length rest)) <= INR (S (k + length rest))) by (apply le_INR; lia).
  assert (P : 0 <= INR n / INR (S (k + length rest)))
    by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  split; [apply Rmult_le_pos; [exact P|left; apply Rinv_0_lt_compat, Pr]|].
  apply Rmult_le_reg_r with (1 := Pr); unfold Rdiv at 1; rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra.
  apply Rle_trans with (2 := proj1 Hr); apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; assumption].
Qed.

Lemma swapped_length {X} k (x y : list X) : swapped k x y -> length x = length y.
Proof. induction 1; simpl; congruence. Qed.

Lemma total_strikes i ks mask t f :
  let p := INR n / INR (S (length ks + length rest)) / r in
  total (strikes (i :: ks) (true :: mask) t) (fun e => snd e * f (fst e))
  = total (strikes ks mask t) (fun e =>
      snd e * ((1 - p) * f (fst e) + / INR n * p * total (struck i (fst e)) f)).
Proof.
  intros p; cbn [strikes]; fold p; rewrite total_flat_map; apply total_ext; intros e _; cbn [total fst snd].
  rewrite total_map; cbn [fst snd]; rewrite total_scal; ring.
Qed.

Lemma strikes_are ks mask t : length mask = length ks -> length t = n ->
  distribution (strikes ks mask t) snd /\
  forall e, In e (strikes ks mask t) -> swapped (ones mask) t (fst e).
Proof.
  intros L Lt; revert mask L; induction ks as [|i ks IH]; intros [|b mask] L; try discriminate.
  - split; [split; [intros e [<-|[]]; simpl; lra|simpl; ring]|intros e [<-|[]]; apply swapped_same].
  - destruct (IH mask ltac:(simpl in L; lia)) as [[Pos Sum] Each]; destruct b; [|split; [split|]; assumption].
    pose proof (drawn_given_bit (length ks)) as Hp; pose proof size_positive as Pn.
    assert (Pi : 0 < / INR n) by (apply Rinv_0_lt_compat, Pn).
    split; [split|].
    + intros e I; cbn [strikes] in I; cbv zeta in I; set (p := INR n / _ / r) in *; clearbody p.
      apply in_flat_map in I as (e' & I & [<-|J]); [|apply in_map_iff in J as (t' & <- & _)];
        cbn [snd]; specialize (Pos e' I); repeat apply Rmult_le_pos; lra.
    + rewrite (total_ext _ snd (fun e => snd e * 1)) by (intros; ring).
      transitivity (total (strikes ks mask t) snd); [|exact Sum].
      rewrite (total_strikes i ks mask t (fun _ => 1)); apply total_ext; intros e I.
      rewrite total_const, struck_length, <- (swapped_length _ _ _ (Each e I)), Lt.
      generalize (INR n / INR (S (length ks + length rest)) / r) as p; intros p; field; lra.
    + intros e I; cbn [strikes] in I; cbv zeta in I; cbn [ones].
      apply in_flat_map in I as (e' & I & [<-|J]); cbn [fst]; [apply swapped_less, Each, I|].
      apply in_map_iff in J as (t' & <- & J); cbn [fst].
      apply struck_in in J as (before & c & after & E & ->).
      apply (swapped_more _ _ _ before after c i (Each e' I) E).
Qed.

(** A batch of [ks] and others is a batch of the others, of which some are struck. *)
Lemma batch_mean_struck ks f :
  batch_mean n (ks ++ rest) f
  = batch_mean n rest (fun t => total (masks r (length ks)) (fun mw =>
      snd mw * total (strikes ks (fst mw) t) (fun e => snd e * f (fst e)))).
Proof.
  revert f; induction ks as [|i ks IH]; intros f.
  - unfold batch_mean; f_equal; apply total_ext; intros tr _; simpl; ring.
  - cbn [app]; rewrite (batch_mean_more n i (ks ++ rest) f) by (rewrite app_length; lia); cbv zeta.
    rewrite IH, app_length; unfold batch_mean; f_equal; apply total_ext; intros tr _; cbn [length].
    rewrite (total_masks r (length ks) (fun m => total (strikes (i :: ks) m (fst tr)) (fun e => snd e * f (fst e)))).
    rewrite <- !total_scal, <- total_plus; apply total_ext; intros mw _.
    rewrite total_strikes; cbn [strikes]; set (N := INR (S (length ks + length rest))).
    transitivity (snd mw * (r * total (strikes ks (fst mw) (fst tr)) (fun e =>
        snd e * ((1 - INR n / N / r) * f (fst e) + / INR n * (INR n / N / r) * total (struck i (fst e)) f))
      + (1 - r) * total (strikes ks (fst mw) (fst tr)) (fun e => snd e * f (fst e)))); [|ring].
    f_equal; rewrite <- !total_scal, <- total_plus; apply total_ext; intros e _.
    pose proof size_positive; pose proof bit_positive.
    assert (0 < N) by (apply lt_0_INR; lia); field; lra.
Qed.

End Struck.

Section Drawn.

Context {X A : Type} (size records many : nat) (filler : X) (l : list A) (M : list X -> A -> R).
Context (F : nat -> R -> R -> R) (r : R).
Hypothesis Hsize : (0 < size)%nat /\ (size + many <= records)%nat.
Hypothesis Hr : INR size / INR (S (records - many)) <= r <= 1.
Hypothesis laws : forall s, distribution l (M s).
Hypothesis step : forall k s s', swapped k s s' -> below_profile l (M s) (M s') (F k).

Theorem batch_as_copies (x y : list X) a b (t : nat -> R) :
  steps replace_one many x y -> 0 <= a <= b -> (forall k, 0 <= t k) ->
  total (seq 1 many) (fun k => chance r many k * t k) <= (b - a) * chance r many 0 ->
  excess l (on_batch size records filler M x) (on_batch size records filler M y) a b
  <= total (seq 1 many) (fun k => chance r many k * F k a (b + t k)).
Proof.
  intros S Hab Ht Within; destruct (differing filler many x y S) as (ps & Lps & Same).
  destruct (so_many_places many records ps ltac:(lia)) as (ks & rest & P & Lk & Out).
  pose proof (Permutation_length P) as Le; rewrite seq_length, app_length in Le.
  assert (Hn : (0 < size <= length rest)%nat) by lia.
  assert (Hr' : INR size / INR (Datatypes.S (length rest)) <= r <= 1)
    by (replace (length rest) with (records - many)%nat by lia; exact Hr).
  pose proof (bit_positive size r rest Hn Hr') as Pr.
  set (at_ := fun d i => nth i d filler).
  set (u := fun d t m => mixture (strikes size r rest ks m t) snd (fun e => M (map (at_ d) (fst e)))).
  assert (Law : forall d m, on_batch size records filler M d m
            = mixture (sequences size rest) (fun _ => / INR (length (sequences size rest)))
                (fun tr => mixture (masks r many) snd (fun mw => u d (fst tr) (fst mw))) m).
  { intros d m; rewrite on_batch_mean, (batch_mean_permutation size _ _ _ P).
    rewrite (batch_mean_struck size r rest Hn Hr' ks), Lk.
    exact (batch_mean_mixture size rest (fun t => mixture (masks r many) snd (fun mw => u d t (fst mw))) m). }
  unfold excess; rewrite (total_ext l _ _ (fun m _ => f_equal plus_part (f_equal2 (fun v w => a * v - b * w) (Law x m) (Law y m)))).
  set (bound := total (seq 1 many) _).
  pose proof (uniform_sequences size rest ltac:(lia)) as D.
  eapply Rle_trans; [apply (excess_mixture (sequences size rest) _ l D)|].
  rewrite <- (Rmult_1_r bound), <- (proj2 D), <- total_scal.
  apply total_le; intros [s left_] I; rewrite (Rmult_comm bound); apply Rmult_le_compat_l; [apply (proj1 D _ I)|].
  apply sequences_in in I as [Ps Ls]; cbn [fst].
  assert (Agree : forall i, In i s -> at_ x i = at_ y i).
  { intros i Ii; apply Same, Out, (Permutation_in i (Permutation_sym Ps)), in_or_app; left; exact Ii. }
  assert (Nothing : forall d, mixture [(s, 1)] snd (fun e => M (map (at_ d) (fst e))) = M (map (at_ d) s)).
  { intros d; apply functional_extensionality; intros m; unfold mixture; cbn [total fst snd]; ring. }
  apply (excess_of_masks r many l (u x s) (u y s) (M (map (at_ x) s))); try assumption; [lra| |apply laws|].
  - intros m L; rewrite <- Lk in L; destruct (strikes_are size r rest Hn Hr' ks m s L Ls) as [Dm _].
    apply mixed_distribution; [exact Dm|intros; apply laws].
  - intros m L; rewrite <- Lk in L; destruct (strikes_are size r rest Hn Hr' ks m s L Ls) as [Dm Each].
    split; [|split].
    + intros E; unfold u; rewrite (strikes_none size r rest ks m s E), !Nothing.
      split; [reflexivity|rewrite (map_ext_in _ _ s Agree); reflexivity].
    + apply (below_profile_mixture _ _ l Dm); intros e I; apply step, (swapped_maps _ _ _ s); [apply Each, I|exact Agree].
    + assert (Alone : M (map (at_ x) s) = mixture (strikes size r rest ks m s) snd (fun _ => M (map (at_ x) s))).
      { apply functional_extensionality; intros y'; unfold mixture.
        rewrite total_scal_r, (proj2 Dm); ring. }
      rewrite Alone; apply (below_profile_mixture _ _ l Dm); intros e I.
      apply step, swapped_sym, swapped_map, Each, I.
Qed.

End Drawn.
