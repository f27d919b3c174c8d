(** Poisson sampling: every record takes part by itself with probability [r], and who does stays
    hidden. T adaptive rounds of Gaussian steps on such samples, add/remove one record, through
    loss distributions on a lattice: what the certificate's loss-distribution node claims. *)

From Coq Require Import Reals List ZArith Lra Lia.
From Dpledger Require Import Sums Finite Gaussian Domination Lattice GaussianComposition
  Sensitivity Descent.
Import ListNotations.
Open Scope R_scope.

Section Draws.

Context {X : Type} (r : R).
Hypothesis Hr : 0 <= r <= 1.

(** All samples of a data set, each with its probability. *)
Fixpoint draws (data : list X) : list (list X * R) :=
  match data with
  | [] => [([], 1)]
  | x :: rest =>
      map (fun sw => (x :: fst sw, r * snd sw)) (draws rest)
      ++ map (fun sw => (fst sw, (1 - r) * snd sw)) (draws rest)
  end.

(** The law of a mechanism that sees only the sample. *)
Definition on_sample {A} (M : list X -> A -> R) (data : list X) (y : A) : R :=
  total (draws data) (fun sw => snd sw * M (fst sw) y).

Lemma total_draws_cons x rest f :
  total (draws (x :: rest)) (fun sw => snd sw * f (fst sw))
    = r * total (draws rest) (fun sw => snd sw * f (x :: fst sw))
      + (1 - r) * total (draws rest) (fun sw => snd sw * f (fst sw)).
Proof.
  simpl; rewrite total_app, !total_map, <- !total_scal; f_equal; apply total_ext; intros; simpl;
    ring.
Qed.

Lemma draws_distribution data : distribution (draws data) snd.
Proof.
  induction data as [|x rest [Hn Hs]]; split.
  - intros sw [<-|[]]; simpl; lra.
  - simpl; ring.
  - intros sw I; simpl in I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (s & <- & Is);
      simpl; apply Rmult_le_pos; auto; lra.
  - simpl; rewrite total_app, !total_map; cbn [snd]; rewrite !total_scal, Hs; ring.
Qed.

(** A draw of the records before and after a place. *)
Definition around (before after : list X) : list ((list X * R) * (list X * R)) :=
  flat_map (fun b => map (pair b) (draws after)) (draws before).

Definition around_weight (ba : (list X * R) * (list X * R)) : R := snd (fst ba) * snd (snd ba).

Lemma around_distribution before after : distribution (around before after) around_weight.
Proof.
  destruct (draws_distribution before) as [Nb Sb], (draws_distribution after) as [Na Sa]; split.
  - intros [b a] I; apply in_flat_map in I as (b' & Ib & I).
    apply in_map_iff in I as (a' & E & Ia); injection E as -> ->.
    apply Rmult_le_pos; [apply Nb, Ib|apply Na, Ia].
  - unfold around; rewrite total_flat_map, <- Sb; apply total_ext; intros b _.
    rewrite total_map; unfold around_weight; cbn [fst snd]; rewrite total_scal, Sa; ring.
Qed.

Lemma total_around before after f :
  total (around before after) (fun ba => around_weight ba * f (fst (fst ba)) (fst (snd ba)))
    = total (draws before) (fun b => snd b
        * total (draws after) (fun a => snd a * f (fst b) (fst a))).
Proof.
  unfold around; rewrite total_flat_map; apply total_ext; intros b _.
  rewrite total_map, <- total_scal; apply total_ext; intros a _; unfold around_weight; simpl; ring.
Qed.

Lemma total_draws_app before after f :
  total (draws (before ++ after)) (fun sw => snd sw * f (fst sw))
    = total (draws before) (fun b => snd b
        * total (draws after) (fun a => snd a * f (fst b ++ fst a))).
Proof.
  revert f; induction before as [|x before IH]; intros f.
  - simpl; rewrite Rplus_0_r, Rmult_1_l; reflexivity.
  - simpl app; rewrite total_draws_cons, (IH (fun s => f (x :: s))), IH.
    rewrite (total_draws_cons x before
               (fun b => total (draws after) (fun a => snd a * f (b ++ fst a)))).
    reflexivity.
Qed.

(** With the record it is drawn or not; without it, it is not. *)
Lemma on_sample_with {A} (M : list X -> A -> R) before x after y :
  on_sample M (before ++ x :: after) y
    = mixture (around before after) around_weight (fun ba =>
        sampled r (M (fst (fst ba) ++ x :: fst (snd ba))) (M (fst (fst ba) ++ fst (snd ba)))) y.
Proof.
  unfold on_sample, mixture, sampled.
  rewrite (total_around before after
    (fun b a => r * M (b ++ x :: a) y + (1 - r) * M (b ++ a) y)).
  rewrite (total_draws_app before (x :: after) (fun s => M s y)).
  apply total_ext; intros b _; f_equal.
  rewrite (total_draws_cons x after (fun a => M (fst b ++ a) y)), <- !total_scal, <- total_plus.
  apply total_ext; intros a _; ring.
Qed.

Lemma on_sample_without {A} (M : list X -> A -> R) before after y :
  on_sample M (before ++ after) y
    = mixture (around before after) around_weight (fun ba => M (fst (fst ba) ++ fst (snd ba))) y.
Proof.
  unfold on_sample, mixture.
  rewrite (total_around before after (fun b a => M (b ++ a) y)).
  apply (total_draws_app before after (fun s => M s y)).
Qed.

Lemma on_sample_distribution {A} (l : list A) (M : list X -> A -> R) data :
  (forall s, distribution l (M s)) -> distribution l (on_sample M data).
Proof.
  intros DM; destruct (draws_distribution data) as [Nd Sd]; split.
  - intros y Iy; apply total_nonneg; intros sw Is; apply Rmult_le_pos; [apply Nd, Is|].
    apply DM, Iy.
  - unfold on_sample; rewrite total_swap, <- Sd; apply total_ext; intros sw _.
    rewrite total_scal; destruct (DM (fst sw)) as [_ ->]; ring.
Qed.

(** Domination of a sampled mechanism from that of the mechanism itself, in both orders. *)
Theorem poisson_removal {A} (l : list A) (M : list X -> A -> R) F before x after :
  (forall s, distribution l (M s)) ->
  (forall s s', add_remove_one s s' -> below_profile l (M s) (M s') F) ->
  below_profile l (on_sample M (before ++ x :: after)) (on_sample M (before ++ after))
    (removal_profile r F).
Proof.
  intros DM H a b Ha Hb; eapply Rle_trans.
  { right; apply total_ext; intros y _; rewrite on_sample_with, on_sample_without; reflexivity. }
  apply (sampling_removal_profile (around before after) around_weight l
           (fun ba => M (fst (fst ba) ++ x :: fst (snd ba)))
           (fun ba => M (fst (fst ba) ++ fst (snd ba))) r); auto using around_distribution.
  intros ba _; apply H; constructor.
Qed.

Theorem poisson_addition {A} (l : list A) (M : list X -> A -> R) F before x after :
  (forall s, distribution l (M s)) ->
  (forall s s', add_remove_one s s' -> below_profile l (M s) (M s') F) ->
  below_profile l (on_sample M (before ++ after)) (on_sample M (before ++ x :: after))
    (addition_profile r F).
Proof.
  intros DM H a b Ha Hb; eapply Rle_trans.
  { right; apply total_ext; intros y _; rewrite on_sample_with, on_sample_without; reflexivity. }
  apply (sampling_addition_profile (around before after) around_weight l
           (fun ba => M (fst (fst ba) ++ x :: fst (snd ba)))
           (fun ba => M (fst (fst ba) ++ fst (snd ba))) r); auto using around_distribution.
  intros ba _; apply H; constructor.
Qed.

End Draws.

(** ** T rounds of Gaussian steps on fresh samples *)

Section SampledGaussians.

Context {X : Type} (T d : nat) (rate Delta s : nat -> R).
Hypothesis Hrate : forall t, 0 <= rate t <= 1.
Hypothesis HDelta : forall t, 0 <= Delta t.
Hypothesis Hs : forall t, 0 < s t.

(** What is asked and the grid it is rounded to may depend on all messages before. *)
Notation message := (list (Rbar.Rbar * Rbar.Rbar)).
Variable query : list message -> list X -> euclidean d.
Variable cuts : list message -> message -> list R.
Hypothesis grid : forall h h', ascending Rbar.m_infty (cuts h h').
Hypothesis moves : forall h, sensitivity add_remove_one (query h) (Delta (length h)).

Definition sampled_outcomes (h : list message) : list message := vector_outcomes d (cuts h).
Definition sampled_law (data : list X) (h : list message) : message -> R :=
  on_sample (rate (length h)) (noisy_vector d (query h) (s (length h))) data.

Lemma sampled_law_distribution data h : distribution (sampled_outcomes h) (sampled_law data h).
Proof.
  apply on_sample_distribution; [apply Hrate|]; intros sample.
  apply noisy_vector_distribution; auto.
Qed.

(** Masses on a lattice above the profiles of each order, at every lattice point: (eps, delta) for
    the delta of the composed lists, the larger of the two orders. *)
Theorem sampled_gaussians_dp (h eps delta : R) (removal addition : nat -> lattice)
  (lost lost' : nat -> R) :
  0 < h ->
  (forall t, masses_nonneg (removal t)) -> (forall t, masses_nonneg (addition t)) ->
  (forall t, 1 <= lost t + total (removal t) snd) ->
  (forall t, 1 <= lost' t + total (addition t) snd) ->
  (forall t z, removal_profile (rate t) (gaussian_profile (Delta t / s t)) 1 (point h z)
               <= lattice_profile h (removal t) (lost t) 1 (point h z)) ->
  (forall t z, addition_profile (rate t) (gaussian_profile (Delta t / s t)) 1 (point h z)
               <= lattice_profile h (addition t) (lost' t) 1 (point h z)) ->
  (let '(all, gone) := convolved_rounds removal lost 0 T in
   lattice_delta h all gone eps <= delta) ->
  (let '(all, gone) := convolved_rounds addition lost' 0 T in
   lattice_delta h all gone eps <= delta) ->
  dp add_remove_one (transcripts sampled_outcomes T) (fun data => run (sampled_law data)) eps delta.
Proof.
  intros Hh Nr Na Fr Fa Dr Da Er Ea.
  assert (Step : forall hist sample sample', add_remove_one sample sample' ->
            below_profile (sampled_outcomes hist)
              (noisy_vector d (query hist) (s (length hist)) sample)
              (noisy_vector d (query hist) (s (length hist)) sample')
              (gaussian_profile (Delta (length hist) / s (length hist)))).
  { intros hist sample sample' A.
    apply (vector_gaussian_below_profile add_remove_one d (query hist) (Delta (length hist))
             (s (length hist)) (cuts hist)); auto. }
  assert (Laws : forall hist sample, distribution (sampled_outcomes hist)
            (noisy_vector d (query hist) (s (length hist)) sample))
    by (intros; apply noisy_vector_distribution; auto).
  intros x y Axy event; destruct Axy as [before after z|before after z].
  - pose proof (lattice_ledger sampled_outcomes (sampled_law (before ++ z :: after))
      (sampled_law (before ++ after)) h removal lost T
      (sampled_law_distribution _) (fun hist => proj1 (sampled_law_distribution _ hist)) Nr) as L.
    destruct (convolved_rounds removal lost 0 T) as [all gone].
    assert (B : below_profile (transcripts sampled_outcomes T)
                  (run (sampled_law (before ++ z :: after))) (run (sampled_law (before ++ after)))
                  (lattice_profile h all gone)).
    { apply L; intros hist; apply connecting_the_dots with
        (F := removal_profile (rate (length hist))
                (gaussian_profile (Delta (length hist) / s (length hist)))); auto.
      - apply sampled_law_distribution.
      - apply sampled_law_distribution.
      - apply poisson_removal; auto. }
    pose proof (lattice_event _ _ _ _ _ _ eps event B); lra.
  - pose proof (lattice_ledger sampled_outcomes (sampled_law (before ++ after))
      (sampled_law (before ++ z :: after)) h addition lost' T
      (sampled_law_distribution _) (fun hist => proj1 (sampled_law_distribution _ hist)) Na) as L.
    destruct (convolved_rounds addition lost' 0 T) as [all gone].
    assert (B : below_profile (transcripts sampled_outcomes T)
                  (run (sampled_law (before ++ after))) (run (sampled_law (before ++ z :: after)))
                  (lattice_profile h all gone)).
    { apply L; intros hist; apply connecting_the_dots with
        (F := addition_profile (rate (length hist))
                (gaussian_profile (Delta (length hist) / s (length hist)))); auto.
      - apply sampled_law_distribution.
      - apply sampled_law_distribution.
      - apply poisson_addition; auto. }
    pose proof (lattice_event _ _ _ _ _ _ eps event B); lra.
Qed.

End SampledGaussians.
