(** Poisson sampling: every record takes part by itself with probability [r], and who does stays
    hidden. T adaptive rounds of Gaussian steps on such samples, add/remove one record, through
    loss distributions on a lattice: what the certificate's loss-distribution node claims. *)

From Coq Require Import Reals List ZArith Lra Lia FunctionalExtensionality.
From Dpledger Require Import Sums Finite Gaussian Domination Lattice GaussianComposition
  Sensitivity Descent.
Import ListNotations.
Open Scope R_scope.

(** The law of a mechanism that sees only what is drawn: [draw] is all samples of a data set, each with
    its probability. *)
Definition on_drawn {X A} (draw : list X -> list (list X * R)) (M : list X -> A -> R)
  (data : list X) (y : A) : R :=
  total (draw data) (fun sw => snd sw * M (fst sw) y).

Lemma on_drawn_distribution {X A} (draw : list X -> list (list X * R)) (l : list A)
  (M : list X -> A -> R) data :
  distribution (draw data) snd -> (forall s, distribution l (M s)) ->
  distribution l (on_drawn draw M data).
Proof.
  intros [Nd Sd] DM; split.
  - intros y Iy; apply total_nonneg; intros sw Is; apply Rmult_le_pos; [apply Nd, Is|].
    apply DM, Iy.
  - unfold on_drawn; rewrite total_swap, <- Sd; apply total_ext; intros sw _.
    rewrite total_scal; destruct (DM (fst sw)) as [_ ->]; ring.
Qed.

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
Definition on_sample {A} : (list X -> A -> R) -> list X -> A -> R := on_drawn draws.

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
  unfold on_sample, on_drawn, mixture, sampled.
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
  unfold on_sample, on_drawn, mixture.
  rewrite (total_around before after (fun b a => M (b ++ a) y)).
  apply (total_draws_app before after (fun s => M s y)).
Qed.

Lemma on_sample_distribution {A} (l : list A) (M : list X -> A -> R) data :
  (forall s, distribution l (M s)) -> distribution l (on_sample M data).
Proof. apply on_drawn_distribution, draws_distribution. Qed.

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

(** ** Samples of several parties *)

Definition with_part {X} (data : nat -> list X) (j : nat) (part : list X) : nat -> list X :=
  fun i => if Nat.eqb i j then part else data i.

Lemma with_part_own {X} (data : nat -> list X) j part : with_part data j part j = part.
Proof. unfold with_part; rewrite Nat.eqb_refl; reflexivity. Qed.

Lemma with_part_other {X} (data : nat -> list X) i j part :
  i <> j -> with_part data j part i = data i.
Proof. intros N; unfold with_part; apply Nat.eqb_neq in N; rewrite N; reflexivity. Qed.

Lemma with_part_with_part {X} (data : nat -> list X) j part part' :
  with_part (with_part data j part) j part' = with_part data j part'.
Proof. extensionality i; unfold with_part; destruct (Nat.eqb i j); reflexivity. Qed.

Lemma with_part_swap {X} (data : nat -> list X) j k part part' :
  k <> j -> with_part (with_part data j part) k part' = with_part (with_part data k part') j part.
Proof.
  intros N; extensionality i; unfold with_part.
  destruct (Nat.eqb_spec i k), (Nat.eqb_spec i j); congruence.
Qed.

Section Parties.

Context {X A : Type} (draw : list X -> list (list X * R)) (M : (nat -> list X) -> A -> R).

(** The law of a mechanism that sees a sample of each of these parties' records, drawn party by
    party, and all of the others'. *)
Fixpoint on_samples (drawn : list nat) (data : nat -> list X) : A -> R :=
  match drawn with
  | [] => M data
  | j :: rest =>
      on_drawn draw (fun part => on_samples rest (with_part data j part)) (data j)
  end.

Hypothesis draw_distribution : forall data, distribution (draw data) snd.
Variable l : list A.
Hypothesis laws : forall data, distribution l (M data).

Lemma on_samples_distribution drawn data : distribution l (on_samples drawn data).
Proof.
  revert data; induction drawn as [|j drawn IH]; intros data; simpl; [apply laws|].
  apply on_drawn_distribution; auto.
Qed.

Definition same_but (j : nat) (x y : nat -> list X) : Prop := forall i, i <> j -> x i = y i.

Lemma same_but_with_part j k x y part :
  same_but j x y -> same_but j (with_part x k part) (with_part y k part).
Proof.
  intros S i N; destruct (Nat.eq_dec i k) as [->|K].
  - rewrite !with_part_own; reflexivity.
  - rewrite !with_part_other by exact K; auto.
Qed.

(** Nobody's sample differs. *)
Lemma on_samples_unread drawn j x y :
  ~ In j drawn -> same_but j x y ->
  (forall u v, same_but j u v -> u j = x j -> v j = y j -> forall a, M u a = M v a) ->
  forall a, on_samples drawn x a = on_samples drawn y a.
Proof.
  revert x y; induction drawn as [|k drawn IH]; intros x y N S H a; simpl.
  - apply H; auto.
  - simpl in N; assert (K : k <> j) by tauto; rewrite (S k K); apply total_ext; intros sw _; f_equal.
    apply IH; [tauto|apply same_but_with_part, S|].
    rewrite !with_part_other by auto; exact H.
Qed.

Section Profiles.

(** Samples that are [near] in any of some ways, and the profile of the mechanism for each. *)
Context {W : Type} (j : nat) (F : W -> R -> R -> R) (near : W -> list X -> list X -> Prop).

(** One party's part differs, and is not sampled: the draw of the others is a hidden one. *)
Lemma on_samples_others i drawn x y :
  ~ In j drawn -> same_but j x y ->
  (forall u v, same_but j u v -> u j = x j -> v j = y j -> below_profile l (M u) (M v) (F i)) ->
  below_profile l (on_samples drawn x) (on_samples drawn y) (F i).
Proof.
  revert x y; induction drawn as [|k drawn IH]; intros x y N S H; simpl.
  - apply H; auto.
  - simpl in N; assert (K : k <> j) by tauto; rewrite <- (S k K).
    apply (below_profile_mixture (draw (x k)) snd l (draw_distribution (x k))
             (fun sw => on_samples drawn (with_part x k (fst sw)))
             (fun sw => on_samples drawn (with_part y k (fst sw)))).
    intros sw _; apply IH; [tauto|apply same_but_with_part, S|].
    rewrite !with_part_other by auto; exact H.
Qed.

Hypothesis step : forall i u v, same_but j u v -> near i (u j) (v j) ->
  below_profile l (M u) (M v) (F i).

Lemma own_part_below i drawn x y s s' :
  ~ In j drawn -> same_but j x y -> near i s s' ->
  below_profile l (on_samples drawn (with_part x j s)) (on_samples drawn (with_part y j s')) (F i).
Proof.
  intros N S H; apply (on_samples_others i); [exact N| |].
  - intros k K; rewrite !with_part_other by exact K; auto.
  - rewrite !with_part_own; intros u v Suv Eu Ev; apply step; [exact Suv|].
    rewrite Eu, Ev; exact H.
Qed.

(** One party's part differs, and is sampled: what holds of a sample of its records alone, holds of
    the samples of all parties. *)
Theorem on_samples_profile (G : R -> R -> R) drawn x y part part' :
  NoDup drawn -> In j drawn -> same_but j x y -> x j = part -> y j = part' ->
  (forall M' : list X -> A -> R,
     (forall s, distribution l (M' s)) ->
     (forall i s s', near i s s' -> below_profile l (M' s) (M' s') (F i)) ->
     below_profile l (on_drawn draw M' part) (on_drawn draw M' part') G) ->
  below_profile l (on_samples drawn x) (on_samples drawn y) G.
Proof.
  revert x y; induction drawn as [|k drawn IH]; intros x y U I S Ex Ey Own; [destruct I|].
  apply NoDup_cons_iff in U as [N U]; simpl; destruct (Nat.eq_dec k j) as [->|K].
  - assert (E : (fun part => on_samples drawn (with_part y j part))
                = (fun part => on_samples drawn (with_part x j part))).
    { extensionality s; f_equal; extensionality i; unfold with_part.
      destruct (Nat.eqb_spec i j); [reflexivity|symmetry; auto]. }
    rewrite E, Ex, Ey; apply Own.
    + intros s; apply on_samples_distribution.
    + intros i s s' H; apply own_part_below; [exact N|intros k _; reflexivity|exact H].
  - destruct I as [I|I]; [congruence|]; rewrite <- (S k K).
    apply (below_profile_mixture (draw (x k)) snd l (draw_distribution (x k))
             (fun sw => on_samples drawn (with_part x k (fst sw)))
             (fun sw => on_samples drawn (with_part y k (fst sw)))).
    intros sw _; apply IH; auto; try (rewrite with_part_other by auto; assumption).
    apply same_but_with_part, S.
Qed.

End Profiles.

End Parties.

(** All samples of these parties' records at once, each with its probability. *)
Fixpoint joint_samples {X} (draw : list X -> list (list X * R)) (drawn : list nat) (data : nat -> list X) :
  list ((nat -> list X) * R) :=
  match drawn with
  | [] => [(data, 1)]
  | j :: rest =>
      flat_map (fun sw => map (fun tv => (fst tv, snd sw * snd tv))
                            (joint_samples draw rest (with_part data j (fst sw)))) (draw (data j))
  end.

Lemma on_joint_samples {X A} (draw : list X -> list (list X * R)) (M : (nat -> list X) -> A -> R) drawn data y :
  on_samples draw M drawn data y
  = total (joint_samples draw drawn data) (fun sw => snd sw * M (fst sw) y).
Proof.
  revert data; induction drawn as [|j drawn IH]; intros data; cbn [joint_samples on_samples]; [simpl; ring|].
  rewrite total_flat_map; apply total_ext; intros sw _; rewrite IH, total_map, <- total_scal.
  apply total_ext; intros tv _; cbn [fst snd]; ring.
Qed.

Lemma joint_samples_distribution {X} (draw : list X -> list (list X * R)) drawn data :
  (forall data, distribution (draw data) snd) -> distribution (joint_samples draw drawn data) snd.
Proof.
  intros D; split.
  - revert data; induction drawn as [|j drawn IH]; intros data sw; cbn [joint_samples]; [intros [<-|[]]; simpl; lra|].
    intros I; apply in_flat_map in I as (s & Is & I); apply in_map_iff in I as (tv & <- & It).
    apply Rmult_le_pos; [apply (D (data j)), Is|exact (IH _ _ It)].
  - pose proof (on_samples_distribution draw (fun _ (_ : unit) => 1) D [tt]
                  (fun _ => conj (fun _ _ => Rle_0_1) (Rplus_0_r 1)) drawn data) as [_ Sum].
    cbn [total] in Sum; rewrite on_joint_samples, Rplus_0_r in Sum; rewrite <- Sum.
    apply total_ext; intros; ring.
Qed.

(** A record that changes nothing where it is in a Poisson sample changes nothing. *)
Section Invisible.

Context {X A : Type} (r : R) (M : (nat -> list X) -> A -> R) (j : nat) (null : X) (y : A).
Hypothesis invisible : forall data before after,
  M (with_part data j (before ++ null :: after)) y = M (with_part data j (before ++ after)) y.

Lemma invisible_to_others drawn data before after :
  ~ In j drawn -> on_samples (draws r) M drawn (with_part data j (before ++ null :: after)) y
                  = on_samples (draws r) M drawn (with_part data j (before ++ after)) y.
Proof.
  revert data; induction drawn as [|k drawn IH]; intros data N; [apply invisible|].
  simpl in N; assert (K : k <> j) by tauto; cbn [on_samples].
  rewrite !(with_part_other data k j) by exact K; apply total_ext; intros sw _; f_equal.
  rewrite !(with_part_swap data j k) by exact K; apply IH; tauto.
Qed.

Lemma invisible_on_samples drawn data before after :
  NoDup drawn -> on_samples (draws r) M drawn (with_part data j (before ++ null :: after)) y
                 = on_samples (draws r) M drawn (with_part data j (before ++ after)) y.
Proof.
  revert data; induction drawn as [|k drawn IH]; intros data U; [apply invisible|].
  apply NoDup_cons_iff in U as [N U]; destruct (Nat.eq_dec k j) as [->|K]; cbn [on_samples].
  - rewrite !with_part_own.
    assert (E : forall part', (fun part => on_samples (draws r) M drawn (with_part (with_part data j part') j part))
                = (fun part => on_samples (draws r) M drawn (with_part data j part)))
      by (intros; extensionality part; rewrite with_part_with_part; reflexivity).
    rewrite !E; change (@on_drawn X A (draws r)) with (@on_sample X r A); rewrite on_sample_with, on_sample_without; apply total_ext; intros ba _; f_equal.
    unfold sampled; rewrite invisible_to_others by exact N; ring.
  - rewrite !(with_part_other data k j) by exact K; apply total_ext; intros sw _; f_equal.
    rewrite !(with_part_swap data j k) by exact K; apply IH, U.
Qed.

End Invisible.
