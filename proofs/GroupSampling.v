(** Several records at once in a Poisson sample: as many of them take part as a binomial draw says, and
    the rest of the sample stays hidden. *)

From Coq Require Import Reals List Lra Lia.
From Dpledger Require Import Sums Finite Domination Sensitivity PoissonSampling BatchSampling
  ReplacedSample CopiesSampling.
Import ListNotations.
Open Scope R_scope.

(** [y] is [x] without at most so many of its records. *)
Inductive thinned {X} : nat -> list X -> list X -> Prop :=
  | thinned_nothing : thinned 0 [] []
  | thinned_kept : forall k z x y, thinned k x y -> thinned k (z :: x) (z :: y)
  | thinned_lost : forall k z x y, thinned k x y -> thinned (S k) (z :: x) y
  | thinned_less : forall k x y, thinned k x y -> thinned (S k) x y.

Lemma thinned_all {X} (x : list X) : thinned 0 x x.
Proof. induction x; constructor; assumption. Qed.

Lemma thinned_none {X} (x y : list X) : thinned 0 x y -> x = y.
Proof.
  remember 0%nat as k eqn:E; intros T; revert E.
  induction T; intros E; try discriminate E; [reflexivity|f_equal; auto].
Qed.

Lemma thinned_more {X} k (x y before after : list X) z :
  thinned k x y -> y = before ++ z :: after -> thinned (S k) x (before ++ after).
Proof.
  intros T; revert before; induction T as [|k a x y T IH|k a x y T IH|k x y T IH]; intros before E.
  - destruct before; discriminate.
  - destruct before as [|b before]; injection E as -> E.
    + subst y; constructor; exact T.
    + constructor; apply IH, E.
  - constructor; apply IH, E.
  - constructor; apply IH, E.
Qed.

Lemma thinned_up_to {X} j k (x y : list X) : (j <= k)%nat -> thinned j x y -> thinned k x y.
Proof. induction 1; [auto|intros; apply thinned_less; auto]. Qed.

Lemma thinned_steps {X} k (x y : list X) : thinned k x y -> exists j, (j <= k)%nat /\ steps add_remove_one j x y.
Proof.
  assert (First : forall (adj : list X -> list X -> Prop) n u v w,
            adj u v -> steps adj n v w -> steps adj (S n) u w).
  { intros adj n u v w A; revert w; induction n as [|n IH]; intros w.
    - intros <-; exists u; split; [reflexivity|exact A].
    - intros (t & S & B); exists t; split; [apply IH, S|exact B]. }
  assert (Keep : forall z n (u v : list X), steps add_remove_one n u v -> steps add_remove_one n (z :: u) (z :: v)).
  { intros z n u; induction n as [|n IH]; intros v; [intros <-; reflexivity|].
    intros (t & S & A); exists (z :: t); split; [apply IH, S|].
    destruct A as [before after a|before after a];
      [apply (removed (z :: before) after a)|apply (added (z :: before) after a)]. }
  induction 1 as [|k z x y T (j & L & IH)|k z x y T (j & L & IH)|k x y T (j & L & IH)].
  - exists 0%nat; split; [lia|reflexivity].
  - exists j; split; [exact L|apply Keep, IH].
  - exists (S j); split; [lia|apply First with x; [apply (removed [] x z)|exact IH]].
  - exists j; split; [lia|exact IH].
Qed.

(** [y] is [x] with at most so many of its records null, and [z] is [y] without these. *)
Inductive hidden {X} (null : X) : nat -> list X -> list X -> list X -> Prop :=
  | hidden_nothing : hidden null 0 [] [] []
  | hidden_kept : forall k a x y z, hidden null k x y z -> hidden null k (a :: x) (a :: y) (a :: z)
  | hidden_null : forall k a x y z, hidden null k x y z -> hidden null (S k) (a :: x) (null :: y) z
  | hidden_less : forall k x y z, hidden null k x y z -> hidden null (S k) x y z.

Lemma hidden_all {X} (null : X) x : hidden null 0 x x x.
Proof. induction x; constructor; assumption. Qed.

Lemma hidden_thinned {X} (null : X) k x y z : hidden null k x y z -> thinned k x z.
Proof. induction 1; constructor; assumption. Qed.

Lemma thinned_hidden {X} (null : X) k x z : thinned k x z -> exists y, hidden null k x y z.
Proof.
  induction 1 as [|k a x z T [y H]|k a x z T [y H]|k x z T [y H]].
  - exists []; constructor.
  - exists (a :: y); constructor; exact H.
  - exists (null :: y); constructor; exact H.
  - exists y; constructor; exact H.
Qed.

Lemma hidden_steps {X} (null : X) k x y z :
  hidden null k x y z -> exists i, (i <= k)%nat /\ steps (zero_out_one null) i x y.
Proof.
  assert (Keep : forall a n (u v : list X),
            steps (zero_out_one null) n u v -> steps (zero_out_one null) n (a :: u) (a :: v)).
  { intros a n u; induction n as [|n IH]; intros v; [intros <-; reflexivity|].
    intros (t & S & A); exists (a :: t); split; [apply IH, S|].
    destruct A as [before after b|before after b];
      [apply (zeroed null (a :: before) after b)|apply (restored null (a :: before) after b)]. }
  induction 1 as [|k a x y z H (i & L & S)|k a x y z H (i & L & S)|k x y z H (i & L & S)].
  - exists 0%nat; split; [lia|reflexivity].
  - exists i; split; [exact L|apply Keep, S].
  - exists (1 + i)%nat; split; [lia|]; exists (a :: y); split; [apply Keep, S|apply (zeroed null [] y a)].
  - exists i; split; [lia|exact S].
Qed.

(** What does not see null records does not see what is hidden. *)
Lemma hidden_unseen {X V} (null : X) (f : list X -> V) k x y z :
  (forall before after, f (before ++ null :: after) = f (before ++ after)) -> hidden null k x y z -> f y = f z.
Proof.
  intros Gone H; assert (Prefix : forall before, f (before ++ y) = f (before ++ z)); [|exact (Prefix [])].
  induction H as [|k w x y z H IH|k w x y z H IH|k x y z H IH]; intros before; [reflexivity| | |apply IH].
  - specialize (IH (before ++ [w])); rewrite <- !app_assoc in IH; exact IH.
  - rewrite Gone; apply IH.
Qed.

Lemma hidden_more {X} (null : X) k x y z before a after :
  hidden null k x y z -> y = before ++ a :: after ->
  exists z', hidden null (S k) x (before ++ null :: after) z'.
Proof.
  intros H; revert before; induction H as [|k b x y z H IH|k b x y z H IH|k x y z H IH]; intros before E.
  - destruct before; discriminate.
  - destruct before as [|b' before]; injection E as -> E.
    + subst y; exists z; constructor; exact H.
    + destruct (IH before E) as [z' H']; exists (b' :: z'); constructor; exact H'.
  - destruct before as [|b' before]; injection E as <- E.
    + subst y; exists z; apply hidden_less, hidden_null, H.
    + destruct (IH before E) as [z' H']; exists z'; apply hidden_null, H'.
  - destruct (IH before E) as [z' H']; exists z'; apply hidden_less, H'.
Qed.

Section Drawn.

Context (r : R).
Hypothesis Hr : 0 <= r <= 1.

(** The mean of what depends on how many of [k] records take part. *)
Definition drawn_mean (k : nat) (g : nat -> R) : R :=
  total (masks r k) (fun mw => snd mw * g (ones (fst mw))).

Lemma drawn_mean_none g : drawn_mean 0 g = g 0%nat.
Proof. unfold drawn_mean; simpl; ring. Qed.

Lemma drawn_mean_more k g :
  drawn_mean (S k) g = r * drawn_mean k (fun j => g (S j)) + (1 - r) * drawn_mean k g.
Proof. exact (total_masks r k (fun m => g (ones m))). Qed.

Lemma drawn_mean_chances k g : drawn_mean k g = total (seq 0 (S k)) (fun j => chance r k j * g j).
Proof. apply masks_by_ones. Qed.

Lemma drawn_mean_scal k g c : drawn_mean k (fun j => g j * c) = drawn_mean k g * c.
Proof.
  unfold drawn_mean; rewrite (Rmult_comm _ c), <- total_scal; apply total_ext; intros; ring.
Qed.

Context {X : Type}.

(** A sample of both data sets at once: of those with the records, of those without them, and how many
    of the records the first has more. *)
Record two_samples := TwoSamples { richer : list X; poorer : list X; gained : nat; chance_of : R }.

Lemma paired k (x y : list X) : thinned k x y -> exists pairs : list two_samples,
  (forall q, In q pairs -> 0 <= chance_of q /\ (gained q <= k)%nat /\
     thinned (gained q) (richer q) (poorer q)) /\
  (forall f, total (draws r x) (fun sw => snd sw * f (fst sw))
             = total pairs (fun q => chance_of q * f (richer q))) /\
  (forall g, total (draws r y) (fun sw => snd sw * drawn_mean k (g (fst sw)))
             = total pairs (fun q => chance_of q * g (poorer q) (gained q))).
Proof.
  induction 1 as [|k z x y T (pairs & Ok & Fx & Fy)|k z x y T (pairs & Ok & Fx & Fy)|k x y T (pairs & Ok & Fx & Fy)].
  - exists [TwoSamples [] [] 0 1]; split; [|split].
    + intros q [<-|[]]; split; [simpl; lra|split; [simpl; lia|constructor]].
    + reflexivity.
    + intros g; cbn [draws total fst snd]; rewrite drawn_mean_none; reflexivity.
  - exists (map (fun q => TwoSamples (z :: richer q) (z :: poorer q) (gained q) (r * chance_of q)) pairs
            ++ map (fun q => TwoSamples (richer q) (poorer q) (gained q) ((1 - r) * chance_of q)) pairs).
    split; [|split].
    + intros q I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (p & <- & I);
        destruct (Ok p I) as (P & L & S); split; cbn [chance_of gained richer poorer];
        try (apply Rmult_le_pos; lra); (split; [lia|]); try constructor; exact S.
    + intros f; rewrite total_draws_cons, (Fx (fun s => f (z :: s))), Fx.
      rewrite total_app, !total_map; cbn [chance_of richer]; rewrite <- !total_scal.
      f_equal; apply total_ext; intros; ring.
    + intros g; rewrite (total_draws_cons r z y (fun s => drawn_mean k (g s))).
      rewrite (Fy (fun s => g (z :: s))), Fy, total_app, !total_map.
      cbn [chance_of poorer gained]; rewrite <- !total_scal; f_equal; apply total_ext; intros; ring.
  - exists (map (fun q => TwoSamples (z :: richer q) (poorer q) (S (gained q)) (r * chance_of q)) pairs
            ++ map (fun q => TwoSamples (richer q) (poorer q) (gained q) ((1 - r) * chance_of q)) pairs).
    split; [|split].
    + intros q I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (p & <- & I);
        destruct (Ok p I) as (P & L & S); split; cbn [chance_of gained richer poorer];
        try (apply Rmult_le_pos; lra); (split; [lia|]); try constructor; exact S.
    + intros f; rewrite total_draws_cons, (Fx (fun s => f (z :: s))), Fx.
      rewrite total_app, !total_map; cbn [chance_of richer]; rewrite <- !total_scal.
      f_equal; apply total_ext; intros; ring.
    + intros g; rewrite (total_ext (draws r y) _ (fun sw =>
                 r * (snd sw * drawn_mean k (fun j => g (fst sw) (S j)))
                 + (1 - r) * (snd sw * drawn_mean k (g (fst sw))))) by (intros; rewrite drawn_mean_more; ring).
      rewrite total_plus, !total_scal, (Fy (fun s j => g s (S j))), Fy, total_app, !total_map.
      cbn [chance_of poorer gained]; rewrite <- !total_scal; f_equal; apply total_ext; intros; ring.
  - exists (map (fun q => TwoSamples (richer q) (poorer q) (S (gained q)) (r * chance_of q)) pairs
            ++ map (fun q => TwoSamples (richer q) (poorer q) (gained q) ((1 - r) * chance_of q)) pairs).
    split; [|split].
    + intros q I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (p & <- & I);
        destruct (Ok p I) as (P & L & S); split; cbn [chance_of gained richer poorer];
        try (apply Rmult_le_pos; lra); (split; [lia|]); try constructor; exact S.
    + intros f; rewrite (Fx f), total_app, !total_map; cbn [chance_of richer].
      rewrite <- total_plus; apply total_ext; intros; ring.
    + intros g; rewrite (total_ext (draws r y) _ (fun sw =>
                 r * (snd sw * drawn_mean k (fun j => g (fst sw) (S j)))
                 + (1 - r) * (snd sw * drawn_mean k (g (fst sw))))) by (intros; rewrite drawn_mean_more; ring).
      rewrite total_plus, !total_scal, (Fy (fun s j => g s (S j))), Fy, total_app, !total_map.
      cbn [chance_of poorer gained]; rewrite <- !total_scal; f_equal; apply total_ext; intros; ring.
Qed.

(** Domination of a sampled mechanism by what is known of it for each number of records: at any
    thresholds of these whose mean is no larger. *)
Theorem poisson_thinned {A} (l : list A) (M : list X -> A -> R) (F : nat -> R -> R -> R) k x y a b c :
  (forall j s s', (j <= k)%nat -> thinned j s s' -> below_profile l (M s) (M s') (F j)) ->
  (forall s, nonneg l (M s)) ->
  thinned k x y -> 0 <= a -> (forall j, 0 <= c j) -> drawn_mean k c <= b ->
  excess l (on_sample r M x) (on_sample r M y) a b <= drawn_mean k (fun j => F j a (c j)).
Proof.
  intros Below Nn T Ha Hc Hb; destruct (paired k x y T) as (pairs & Ok & Fx & Fy).
  assert (Mass : total (draws r y) snd = 1) by apply draws_distribution, Hr.
  apply Rle_trans with (total pairs (fun q => chance_of q * excess l (M (richer q)) (M (poorer q)) a (c (gained q)))).
  - unfold excess; rewrite (total_ext pairs _ (fun q => total l (fun m =>
        chance_of q * plus_part (a * M (richer q) m - c (gained q) * M (poorer q) m))))
      by (intros; rewrite total_scal; reflexivity).
    rewrite total_swap; apply total_le; intros m Im.
    apply Rle_trans with (plus_part (total pairs (fun q =>
      chance_of q * (a * M (richer q) m - c (gained q) * M (poorer q) m)))).
    + apply plus_part_le; unfold on_sample, on_drawn.
      rewrite (Fx (fun s => M s m)).
      assert (Least : drawn_mean k c * total (draws r y) (fun sw => snd sw * M (fst sw) m)
                      = total pairs (fun q => chance_of q * (c (gained q) * M (poorer q) m))).
      { rewrite <- (Fy (fun s j => c j * M s m)), <- total_scal; apply total_ext; intros sw _.
        rewrite drawn_mean_scal; ring. }
      assert (P : 0 <= total (draws r y) (fun sw => snd sw * M (fst sw) m)).
      { apply total_nonneg; intros sw I; apply Rmult_le_pos; [apply (draws_distribution r Hr y), I|apply Nn, Im]. }
      apply (Rmult_le_compat_r _ _ _ P) in Hb; rewrite Least in Hb.
      rewrite (total_ext pairs (fun q => chance_of q * (a * _ - _))
                 (fun q => a * (chance_of q * M (richer q) m) - chance_of q * (c (gained q) * M (poorer q) m)))
        by (intros; ring).
      rewrite total_minus, total_scal; lra.
    + eapply Rle_trans; [apply plus_part_total|]; apply total_le; intros q I.
      right; apply plus_part_scal, Ok, I.
  - eapply Rle_trans.
    + apply total_le; intros q I; destruct (Ok q I) as (P & L & S).
      apply Rmult_le_compat_l; [exact P|]; apply (Below _ _ _ L S); auto.
    + right; rewrite <- (Fy (fun _ j => F j a (c j))).
      rewrite (total_ext _ _ (fun sw => drawn_mean k (fun j => F j a (c j)) * snd sw)) by (intros; ring).
      rewrite total_scal, Mass; ring.
Qed.

End Drawn.

(** What depends on whether any of them takes part. *)
Lemma drawn_mean_any r k g0 g1 : 0 <= r <= 1 ->
  drawn_mean r k (fun j => match j with O => g0 | S _ => g1 end) = (1 - r) ^ k * g0 + (1 - (1 - r) ^ k) * g1.
Proof.
  intros Hr; assert (Const : forall k g, drawn_mean r k (fun _ => g) = g).
  { clear k; induction k as [|k IH]; intros g; [apply drawn_mean_none|].
    rewrite drawn_mean_more, IH; ring. }
  induction k as [|k IH]; [rewrite drawn_mean_none; simpl; ring|].
  rewrite drawn_mean_more, Const, IH; simpl; ring.
Qed.

Section Any.

Context (r q : R) {X A : Type} (l : list A) (M : list X -> A -> R) (F : R -> R -> R) (k : nat).
Hypothesis Hr : 0 <= r <= 1.
Hypothesis Hq : 0 < q <= 1.
Hypothesis Any : 1 - (1 - r) ^ k <= q.
Hypothesis laws : forall s, distribution l (M s).
Hypothesis step : forall s s', thinned k s s' -> below_profile l (M s) (M s') F.
Hypothesis covers : forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= F a b.
Hypothesis scales : forall c a b, 0 <= c -> 0 <= a -> 0 <= b -> F (c * a) (c * b) = c * F a b.
Hypothesis all : forall a, 0 <= a -> F a 0 <= a.

(** Domination of a sampled mechanism of whose data sets one has such records more, as if all of them
    took part with a probability no smaller than that any does. *)
Theorem poisson_removal_at_most x y : thinned k x y ->
  below_profile l (on_sample r M x) (on_sample r M y) (removal_profile q F).
Proof.
  intros T a b Ha Hb; set (none := (1 - r) ^ k) in *.
  assert (N : 0 <= none <= 1).
  { unfold none; split; [apply pow_le; lra|].
    pose proof (pow_incr (1 - r) 1 k ltac:(lra)) as H; rewrite pow1 in H; exact H. }
  set (G := fun j => match j with
    | O => fun a b => plus_part (a - b) | S _ => if le_lt_dec j k then F else fun a _ => a end).
  assert (Bound : forall c0 c1, 0 <= c0 -> 0 <= c1 -> none * c0 + (1 - none) * c1 <= b ->
            excess l (on_sample r M x) (on_sample r M y) a b
            <= none * plus_part (a - c0) + (1 - none) * F a c1).
  { intros c0 c1 P0 P1 Sum.
    pose proof (drawn_mean_any r k (plus_part (a - c0)) (F a c1) Hr) as E; fold none in E; rewrite <- E; clear E.
    pose proof (drawn_mean_any r k c0 c1 Hr) as E; fold none in E; rewrite <- E in Sum; clear E.
    eapply Rle_trans; [apply (poisson_thinned r Hr l M G k x y a b
                                (fun j => match j with O => c0 | S _ => c1 end)); try assumption|].
    - (* nobody takes part, or somebody *)
      intros [|j] s s' _ Tj; unfold G.
      + assert (s = s') as <-.
        { apply thinned_none, Tj. }
        intros a' b' _ _; rewrite excess_diag by apply laws; apply Rle_refl.
      + destruct (le_lt_dec (S j) k) as [Le|_].
        * apply step; clear - Tj Le; replace k with ((k - S j) + S j)%nat by lia.
          induction (k - S j)%nat; [exact Tj|constructor; assumption].
        * intros a' b' Ha' Hb'; apply Rle_trans with (total l (fun m => a' * M s m));
            [|rewrite total_scal, (proj2 (laws s)); lra].
          apply total_le; intros m Im; apply Rmax_lub; [apply Rmult_le_pos; [lra|apply laws, Im]|].
          pose proof (proj1 (laws s') m Im); assert (0 <= b' * M s' m) by (apply Rmult_le_pos; lra); lra.
    - intros s; apply laws.
    - intros [|j]; assumption.
    - right; rewrite !drawn_mean_chances; apply total_ext; intros j I; apply in_seq in I; f_equal; unfold G.
      destruct j as [|j]; [reflexivity|]; destruct (le_lt_dec (S j) k); [reflexivity|lia]. }
  unfold removal_profile; destruct (Rle_dec (a * (1 - q)) b) as [G1|G1].
  - set (c := (b - a * (1 - q)) / q).
    assert (Pc : 0 <= c) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
    assert (Ec : q * c = b - a * (1 - q)) by (unfold c; field; lra).
    rewrite <- Ec, (Rmult_comm a q), scales by lra.
    destruct (Rle_lt_or_eq_dec 0 none (proj1 N)) as [Pn|Zn].
    + set (c0 := (a * (1 - q) + (q - (1 - none)) * c) / none).
      assert (E0 : none * c0 = a * (1 - q) + (q - (1 - none)) * c) by (unfold c0; field; lra).
      assert (P0 : 0 <= c0).
      { apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, Pn].
        apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra. }
      eapply Rle_trans; [apply (Bound c0 c P0 Pc); lra|].
      rewrite <- plus_part_scal by lra.
      replace (none * (a - c0)) with ((q - (1 - none)) * (a - c)) by
        (transitivity (none * a - none * c0); [rewrite E0|]; ring).
      rewrite plus_part_scal by lra.
      pose proof (covers a c Ha Pc) as Cov; apply (Rmult_le_compat_l (q - (1 - none))) in Cov; lra.
    + assert (Eq : q = 1) by lra; eapply Rle_trans; [apply (Bound a c Ha Pc)|]; rewrite <- Zn.
      * rewrite Eq in Ec; lra.
      * rewrite Eq; lra.
  - assert (Pn : 0 < none) by nra.
    eapply Rle_trans; [apply (Bound (b / none) 0); [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, Pn]|lra|]|].
    + right; field; lra.
    + rewrite <- plus_part_scal by lra; replace (none * (a - b / none)) with (none * a - b) by (field; lra).
      pose proof (all a Ha); rewrite plus_part_id by nra; nra.
Qed.

(** In the other order. *)
Theorem poisson_addition_at_most x y :
  (forall u v, 0 <= u -> 0 <= v -> u - v + F v u <= F u v) -> thinned k x y ->
  below_profile l (on_sample r M y) (on_sample r M x) (addition_profile q F).
Proof.
  intros Turned T a b Ha Hb.
  rewrite (excess_turned l _ _ a b) by (apply on_sample_distribution; assumption).
  pose proof (poisson_removal_at_most x y T b a Hb Ha) as B; unfold removal_profile in B; unfold addition_profile.
  destruct (Rle_dec (b * (1 - q)) a) as [G|G]; [|lra].
  specialize (Turned (a - b * (1 - q)) (b * q) ltac:(lra) ltac:(apply Rmult_le_pos; lra)); lra.
Qed.

End Any.

(** All of them take part. *)
Lemma drawn_mean_all k g : drawn_mean 1 k g = g k.
Proof.
  revert g; induction k as [|k IH]; intros g; [apply drawn_mean_none|].
  rewrite drawn_mean_more, (IH (fun j => g (S j))); ring.
Qed.

(** ** Records that are replaced *)

(** [y] is [x] with others in the places of at most so many of its records. *)
Inductive swapped {X} : nat -> list X -> list X -> Prop :=
  | swapped_nothing : swapped 0 [] []
  | swapped_kept : forall k z x y, swapped k x y -> swapped k (z :: x) (z :: y)
  | swapped_one : forall k a b x y, swapped k x y -> swapped (S k) (a :: x) (b :: y)
  | swapped_less : forall k x y, swapped k x y -> swapped (S k) x y.

Lemma swapped_all {X} (x : list X) : swapped 0 x x.
Proof. induction x; constructor; assumption. Qed.

Lemma swapped_sym {X} k (x y : list X) : swapped k x y -> swapped k y x.
Proof. induction 1; constructor; assumption. Qed.

Lemma swapped_more {X} k (x y before after : list X) a b :
  swapped k x y -> y = before ++ a :: after -> swapped (S k) x (before ++ b :: after).
Proof.
  intros T; revert before; induction T as [|k c x y T IH|k c d x y T IH|k x y T IH]; intros before E.
  - destruct before; discriminate.
  - destruct before as [|e before]; injection E as -> E.
    + subst y; constructor; exact T.
    + constructor; apply IH, E.
  - destruct before as [|e before]; injection E as -> E.
    + subst y; apply swapped_less; constructor; exact T.
    + constructor; apply IH, E.
  - constructor; apply IH, E.
Qed.

Lemma replaced_swapped {X} k (x y : list X) : steps replace_one k x y -> swapped k x y.
Proof.
  revert y; induction k as [|k IH]; intros y; [intros <-; apply swapped_all|].
  intros (z & S & A); inversion A as [before after a b E1 E2]; subst.
  exact (swapped_more k x _ before after a b (IH _ S) eq_refl).
Qed.

Lemma swapped_steps {X} k (x y : list X) : swapped k x y -> exists j, (j <= k)%nat /\ steps replace_one j x y.
Proof.
  assert (Keep : forall z n (u v : list X), steps replace_one n u v -> steps replace_one n (z :: u) (z :: v)).
  { intros z n u; induction n as [|n IH]; intros v; [intros <-; reflexivity|].
    intros (t & S & A); inversion A as [before after a b E1 E2]; subst.
    eexists; split; [apply IH, S|apply (replaced (z :: before) after a b)]. }
  induction 1 as [|k z x y T (j & L & IH)|k a b x y T (j & L & IH)|k x y T (j & L & IH)].
  - exists 0%nat; split; [lia|reflexivity].
  - exists j; split; [exact L|apply Keep, IH].
  - exists (S j); split; [lia|]; exists (a :: y); split; [apply Keep, IH|apply (replaced [] y a b)].
  - exists j; split; [lia|exact IH].
Qed.

Lemma swapped_same {X} k (x : list X) : swapped k x x.
Proof. induction k; [apply swapped_all|apply swapped_less; assumption]. Qed.

Lemma thinned_same {X} k (x : list X) : thinned k x x.
Proof. induction k; [apply thinned_all|apply thinned_less; assumption]. Qed.

Section Swapped.

Context (r : R) {X : Type}.
Hypothesis Hr : 0 <= r <= 1.

(** A sample of the other records, and those that some of the replaced records are in. *)
Record base := Base { others : list X; base_chance : R; hits : list (list X * list X * R) }.

Definition hit_chance (h : list X * list X * R) : R := snd h.
Definition none (k : nat) : R := (1 - r) ^ k.

Definition sound_base (k : nat) (b : base) : Prop :=
  0 <= base_chance b /\ total (hits b) hit_chance = 1 - none k /\
  forall h, In h (hits b) -> 0 <= hit_chance h /\ swapped k (fst (fst h)) (snd (fst h)) /\
    thinned k (fst (fst h)) (others b) /\ thinned k (snd (fst h)) (others b).

Lemma none_within k : 0 <= none k <= 1.
Proof.
  unfold none; split; [apply pow_le; lra|].
  pose proof (pow_incr (1 - r) 1 k ltac:(lra)) as H; rewrite pow1 in H; exact H.
Qed.

Lemma bases k (x y : list X) : swapped k x y -> exists bs : list base,
  (forall b, In b bs -> sound_base k b) /\
  (forall f, total (draws r x) (fun sw => snd sw * f (fst sw))
             = total bs (fun b => base_chance b * (none k * f (others b)
                 + total (hits b) (fun h => hit_chance h * f (fst (fst h)))))) /\
  (forall f, total (draws r y) (fun sw => snd sw * f (fst sw))
             = total bs (fun b => base_chance b * (none k * f (others b)
                 + total (hits b) (fun h => hit_chance h * f (snd (fst h)))))).
Proof.
  induction 1 as [|k z x y T (bs & Ok & Fx & Fy)|k z z' x y T (bs & Ok & Fx & Fy)|k x y T (bs & Ok & Fx & Fy)].
  - exists [Base [] 1 []]; split; [|split; intros f; unfold none; simpl; ring].
    intros b [<-|[]]; split; [simpl; lra|split; [unfold none; simpl; ring|intros h []]].
  - set (with_z := fun b => Base (z :: others b) (r * base_chance b)
           (map (fun h => (z :: fst (fst h), z :: snd (fst h), snd h)) (hits b))).
    set (less := fun b => Base (others b) ((1 - r) * base_chance b) (hits b)).
    exists (map with_z bs ++ map less bs); split; [|split].
    + intros b I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (b' & <- & I);
        destruct (Ok b' I) as (P & Sum & Each); unfold sound_base, with_z, less; cbn [base_chance hits others].
      * split; [apply Rmult_le_pos; lra|split; [rewrite total_map; exact Sum|]].
        intros h Ih; apply in_map_iff in Ih as (h' & <- & Ih); destruct (Each h' Ih) as (A & B & C & D).
        split; [exact A|split; [apply swapped_kept, B|split; apply thinned_kept; assumption]].
      * split; [apply Rmult_le_pos; lra|split; [exact Sum|exact Each]].
    + intros f; rewrite total_draws_cons, (Fx (fun s => f (z :: s))), Fx, total_app, !total_map.
      unfold with_z, less; cbn [base_chance others hits]; rewrite <- !total_scal.
      f_equal; apply total_ext; intros b _; rewrite ?total_map; unfold hit_chance; cbn [fst snd]; ring.
    + intros f; rewrite total_draws_cons, (Fy (fun s => f (z :: s))), Fy, total_app, !total_map.
      unfold with_z, less; cbn [base_chance others hits]; rewrite <- !total_scal.
      f_equal; apply total_ext; intros b _; rewrite ?total_map; unfold hit_chance; cbn [fst snd]; ring.
  - set (more := fun b => Base (others b) (base_chance b)
           ((z :: others b, z' :: others b, r * none k)
            :: map (fun h => (z :: fst (fst h), z' :: snd (fst h), r * snd h)) (hits b)
            ++ map (fun h => (fst (fst h), snd (fst h), (1 - r) * snd h)) (hits b))).
    exists (map more bs); split; [|split].
    + intros b I; apply in_map_iff in I as (b' & <- & I); destruct (Ok b' I) as (P & Sum & Each).
      unfold sound_base, more; cbn [base_chance hits others]; split; [exact P|split].
      * cbn [total]; rewrite total_app, !total_map; cbn [snd hit_chance].
        rewrite !total_scal; fold hit_chance; unfold hit_chance in Sum |- *; cbn [snd] in *.
        change (fun a => snd a) with (@snd (list X * list X) R) in *; rewrite Sum; unfold none; simpl; ring.
      * pose proof (none_within k) as Pn.
        intros h [<-|Ih].
        { cbn [fst snd hit_chance]; split; [apply Rmult_le_pos; lra|split; [|split]].
          - apply swapped_one, swapped_same.
          - apply thinned_lost, thinned_same.
          - apply thinned_lost, thinned_same. }
        apply in_app_iff in Ih as [Ih|Ih]; apply in_map_iff in Ih as (h' & <- & Ih);
          destruct (Each h' Ih) as (A & B & C & D); cbn [fst snd hit_chance]; unfold hit_chance in A;
          (split; [apply Rmult_le_pos; cbn [snd]; lra|]).
        -- split; [apply swapped_one, B|split; apply thinned_lost; assumption].
        -- split; [apply swapped_less, B|split; apply thinned_less; assumption].
    + intros f; rewrite total_draws_cons, (Fx (fun s => f (z :: s))), Fx, total_map, <- !total_scal, <- total_plus.
      unfold more; cbn [base_chance others hits]; apply total_ext; intros b _; cbn [total].
      rewrite total_app, !total_map; cbn [fst snd hit_chance].
      rewrite (total_ext (hits b) (fun h => r * snd h * f (z :: fst (fst h))) (fun h => r * (snd h * f (z :: fst (fst h)))))
        by (intros; ring).
      rewrite (total_ext (hits b) (fun h => (1 - r) * snd h * f (fst (fst h))) (fun h => (1 - r) * (snd h * f (fst (fst h)))))
        by (intros; ring).
      rewrite !total_scal; unfold none, hit_chance; simpl; ring.
    + intros f; rewrite total_draws_cons, (Fy (fun s => f (z' :: s))), Fy, total_map, <- !total_scal, <- total_plus.
      unfold more; cbn [base_chance others hits]; apply total_ext; intros b _; cbn [total].
      rewrite total_app, !total_map; cbn [fst snd hit_chance].
      rewrite (total_ext (hits b) (fun h => r * snd h * f (z' :: snd (fst h))) (fun h => r * (snd h * f (z' :: snd (fst h)))))
        by (intros; ring).
      rewrite (total_ext (hits b) (fun h => (1 - r) * snd h * f (snd (fst h))) (fun h => (1 - r) * (snd h * f (snd (fst h)))))
        by (intros; ring).
      rewrite !total_scal; unfold none, hit_chance; simpl; ring.
  - set (more := fun b => Base (others b) (base_chance b) ((others b, others b, r * none k) :: hits b)).
    exists (map more bs); split; [|split].
    + intros b I; apply in_map_iff in I as (b' & <- & I); destruct (Ok b' I) as (P & Sum & Each).
      unfold sound_base, more; cbn [base_chance hits others]; split; [exact P|split].
      * cbn [total]; rewrite Sum; unfold none, hit_chance; simpl; ring.
      * pose proof (none_within k) as Pn; intros h [<-|Ih].
        { cbn [fst snd hit_chance]; split; [apply Rmult_le_pos; lra|split; [|split]].
          - apply swapped_same.
          - apply thinned_same.
          - apply thinned_same. }
        destruct (Each h Ih) as (A & B & C & D).
        split; [exact A|split; [apply swapped_less, B|split; apply thinned_less; assumption]].
    + intros f; rewrite (Fx f), total_map; unfold more; cbn [base_chance others hits]; apply total_ext; intros b _.
      cbn [total fst snd]; unfold none, hit_chance; simpl; ring.
    + intros f; rewrite (Fy f), total_map; unfold more; cbn [base_chance others hits]; apply total_ext; intros b _.
      cbn [total fst snd]; unfold none, hit_chance; simpl; ring.
Qed.

(** A sampled mechanism of which such records are replaced: a hidden draw of pairs of laws, a share [q]
    of each told from another as replacing the records tells, and from what is the rest of both as so
    many records more do. *)
Theorem poisson_swapped_beside {A} (l : list A) (M : list X -> A -> R) q F F1 G k x y :
  0 < q <= 1 -> 1 - none k <= q -> (forall sample, distribution l (M sample)) ->
  (forall t t', swapped k t t' -> below_profile l (M t) (M t') F) ->
  (forall t t', thinned k t t' -> below_profile l (M t) (M t') F1) ->
  (forall u v w : A -> R, distribution l u -> distribution l v -> distribution l w ->
     below_profile l u v F -> below_profile l v u F -> below_profile l u w F1 -> below_profile l v w F1 ->
     below_profile l (sampled q u w) (sampled q v w) G) ->
  swapped k x y -> below_profile l (on_sample r M x) (on_sample r M y) G.
Proof.
  intros Hq Any DM Replaced One Beside T; destruct (bases k x y T) as (bs' & Ok' & Fx' & Fy').
  (* as if somebody took part as often as that *)
  set (as_often := fun b => Base (others b) (base_chance b) ((others b, others b, q - (1 - none k)) :: hits b)).
  set (bs := map as_often bs').
  assert (Ok : forall b, In b bs -> 0 <= base_chance b /\ total (hits b) hit_chance = q /\
            forall h, In h (hits b) -> 0 <= hit_chance h /\ swapped k (fst (fst h)) (snd (fst h)) /\
              thinned k (fst (fst h)) (others b) /\ thinned k (snd (fst h)) (others b)).
  { intros b I; apply in_map_iff in I as (b' & <- & I); destruct (Ok' b' I) as (P & Sum & Each).
    split; [exact P|split].
    - unfold as_often; cbn [hits total]; rewrite Sum; unfold hit_chance; cbn [snd]; lra.
    - intros h [<-|Ih]; [|apply Each, Ih]; unfold hit_chance, as_often; cbn [fst snd others].
      split; [lra|split; [apply swapped_same|split; apply thinned_same]]. }
  assert (Fx : forall f, total (draws r x) (fun sw => snd sw * f (fst sw))
             = total bs (fun b => base_chance b * ((1 - q) * f (others b)
                 + total (hits b) (fun h => hit_chance h * f (fst (fst h)))))).
  { intros f; rewrite (Fx' f); unfold bs; rewrite total_map; apply total_ext; intros b _.
    unfold as_often, hit_chance; cbn [base_chance hits others total fst snd]; ring. }
  assert (Fy : forall f, total (draws r y) (fun sw => snd sw * f (fst sw))
             = total bs (fun b => base_chance b * ((1 - q) * f (others b)
                 + total (hits b) (fun h => hit_chance h * f (snd (fst h)))))).
  { intros f; rewrite (Fy' f); unfold bs; rewrite total_map; apply total_ext; intros b _.
    unfold as_often, hit_chance; cbn [base_chance hits others total fst snd]; ring. }
  clearbody bs; clear bs' Ok' Fx' Fy' as_often Any.
  assert (Chances : distribution bs base_chance).
  { split; [intros b I; apply (Ok b I)|].
    pose proof (Fx (fun _ => 1)) as E; destruct (draws_distribution r Hr x) as [_ Mass].
    rewrite (total_ext (draws r x) _ snd), Mass in E by (intros; ring); rewrite E.
    apply total_ext; intros b I; destruct (Ok b I) as (_ & Sum & _).
    rewrite (total_ext (hits b) _ hit_chance), Sum by (intros; ring); ring. }
  set (share := fun h : list X * list X * R => hit_chance h / q).
  set (u := fun b => mixture (hits b) share (fun h => M (fst (fst h)))).
  set (v := fun b => mixture (hits b) share (fun h => M (snd (fst h)))).
  set (w := fun b => M (others b)).
  assert (Shares : forall b, In b bs -> distribution (hits b) share).
  { intros b I; destruct (Ok b I) as (_ & Sum & Each); unfold share; split.
    - intros h Ih; apply Rmult_le_pos; [apply Each, Ih|left; apply Rinv_0_lt_compat, Hq].
    - unfold Rdiv; rewrite (total_ext _ _ (fun h => / q * hit_chance h)) by (intros; ring).
      rewrite total_scal, Sum; field; lra. }
  assert (Mixed : forall b P, In b bs -> (forall h, distribution l (P h)) -> distribution l (mixture (hits b) share P)).
  { intros b P I D; destruct (Shares b I) as [Nn Sum]; split.
    - intros m Im; apply total_nonneg; intros h Ih; apply Rmult_le_pos; [apply Nn, Ih|apply D, Im].
    - unfold mixture; rewrite total_swap, <- Sum; apply total_ext; intros h _.
      rewrite total_scal; destruct (D h) as [_ ->]; ring. }
  assert (Ex : forall m, on_sample r M x m = mixture bs base_chance (fun b => sampled q (u b) (w b)) m).
  { intros m; unfold on_sample, on_drawn; rewrite (Fx (fun t => M t m)); apply total_ext; intros b _.
    f_equal; unfold sampled, u, w, mixture, share; rewrite <- total_scal, Rplus_comm.
    f_equal; apply total_ext; intros h _; field; lra. }
  assert (Ey : forall m, on_sample r M y m = mixture bs base_chance (fun b => sampled q (v b) (w b)) m).
  { intros m; unfold on_sample, on_drawn; rewrite (Fy (fun t => M t m)); apply total_ext; intros b _.
    f_equal; unfold sampled, v, w, mixture, share; rewrite <- total_scal, Rplus_comm.
    f_equal; apply total_ext; intros h _; field; lra. }
  intros a b Ha Hb; eapply Rle_trans; [right; apply total_ext; intros m _; rewrite Ex, Ey; reflexivity|].
  apply (below_profile_mixture bs base_chance l Chances (fun b => sampled q (u b) (w b)) (fun b => sampled q (v b) (w b)));
    try assumption.
  intros base I; destruct (Ok base I) as (_ & _ & Each).
  assert (Alone : forall G (P : list X * list X * R -> A -> R),
            (forall h, In h (hits base) -> below_profile l (P h) (w base) G) ->
            below_profile l (mixture (hits base) share P) (w base) G).
  { clear G Beside; intros G P H a' b' Ha' Hb'.
    eapply Rle_trans; [|apply (below_profile_mixture (hits base) share l (Shares base I) P (fun _ => w base) G H a' b' Ha' Hb')].
    right; apply total_ext; intros m _; do 2 f_equal; unfold mixture.
    rewrite total_scal_r; destruct (Shares base I) as [_ ->]; ring. }
  apply Beside; try assumption.
  - apply Mixed; [exact I|intros; apply DM].
  - apply Mixed; [exact I|intros; apply DM].
  - apply DM.
  - apply (below_profile_mixture (hits base) share l (Shares base I)); intros h Ih; apply Replaced, (Each h Ih).
  - apply (below_profile_mixture (hits base) share l (Shares base I)); intros h Ih.
    apply Replaced, swapped_sym, (Each h Ih).
  - apply Alone; intros h Ih; apply One, (Each h Ih).
  - apply Alone; intros h Ih; apply One, (Each h Ih).
Qed.

(** Domination of such a mechanism, if any record takes part: [F] bounds what replacing them does, [F1]
    what as many records more do. *)
Theorem poisson_swapped {A} (l : list A) (M : list X -> A -> R) s F F1 k x y :
  0 < 1 - none k -> 0 <= s <= 1 -> (forall sample, distribution l (M sample)) ->
  (forall t t', swapped k t t' -> below_profile l (M t) (M t') F) ->
  (forall t t', thinned k t t' -> below_profile l (M t) (M t') F1) ->
  swapped k x y ->
  below_profile l (on_sample r M x) (on_sample r M y) (turned (exchanged (1 - none k) s F F1)).
Proof.
  intros Hq Hs DM Replaced One; pose proof (none_within k) as N.
  apply (poisson_swapped_beside l M (1 - none k) F F1); try assumption; try lra.
  intros u v w; apply exchanged_turned; lra.
Qed.

(** The same where nothing better is known of records more than of replaced ones, at any share above. *)
Theorem poisson_swapped_at_most {A} (l : list A) (M : list X -> A -> R) q F k x y :
  0 < q <= 1 -> 1 - none k <= q -> (forall sample, distribution l (M sample)) ->
  (forall t t', swapped k t t' \/ thinned k t t' -> below_profile l (M t) (M t') F) ->
  swapped k x y ->
  below_profile l (on_sample r M x) (on_sample r M y) (replaced_profile q F).
Proof.
  intros Hq Any DM Near; apply (poisson_swapped_beside l M q F F); auto.
  intros u v w; apply replaced_beside; lra.
Qed.

(** Of a sample that is told nothing more needs to be known. *)
Theorem poisson_told {A} (l : list A) (M : list X -> A -> R) q F k x y :
  0 < q <= 1 -> 1 - none k <= q -> (forall sample, distribution l (M sample)) ->
  (forall t t', swapped k t t' -> below_profile l (M t) (M t') F) ->
  swapped k x y -> below_profile l (on_sample r M x) (on_sample r M y) (told_profile q F).
Proof.
  intros Hq Any DM Replaced; apply (poisson_swapped_beside l M q F (fun a _ => a)); auto.
  - intros t t' _ a b Ha Hb; apply excess_le_mass; try assumption; apply DM.
  - intros u v w Du Dv Dw B _ _ _; apply told_beside; try assumption; lra.
Qed.

End Swapped.
