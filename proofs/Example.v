(** [check_sound] speaks of something: a certificate, a run that satisfies it, and neighbours and an
    event of that run for which the delta of its mu is exact. EndToEnd.v checks the certificate. *)

From Coq Require Import Reals List Lra Lia QArith Qreals Permutation.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Sensitivity Descent
  PoissonSampling Certificate Checker Soundness.
Import ListNotations.

(** One party releases the mean of numbers cut to [-1, 1], divided by 2, with noise 1. *)
Definition example : certificate := Certificate
  [GaussianStep ReplaceOne 1 (Leaf (MeanOfBounded 1 2) 1) 1]
  [Event 1 [1%positive] 1]
  [Node (GaussianGdp 1) [] (Claim ReplaceOne 1 (Gdp 1));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (Gdp 1));
   Node (GdpApproxDp (1 # 100000) (437718 # 100000)) [2%positive]
     (Claim ReplaceOne 1 (ApproxDp (1 # 100000) (437718 # 100000)))].

Open Scope R_scope.

Definition cut_to_1 (x : R) : euclidean 1 := fun _ => Rmax (-1) (Rmin 1 x).

Definition example_run (grid : list R) : execution R := {|
  rounds := 1;
  next_mechanism := fun _ => 1%positive;
  reads := fun _ j => Nat.eqb 1 j;
  sampled_parties := fun _ => [];
  sampling_rate := fun _ => 0;
  dimension := fun _ => 1%nat;
  value := fun _ data => mean_over cut_to_1 2 (data 1%nat);
  noise_std := fun _ => 1;
  cuts := fun _ _ => grid |}.

Lemma cut_to_1_bounded x : norm (cut_to_1 x) <= 1.
Proof.
  apply norm_le; [lra|]; unfold cut_to_1; simpl.
  unfold Rmax, Rmin; destruct (Rle_dec 1 x); destruct (Rle_dec (-1) _); nra.
Qed.

Theorem example_satisfied grid :
  ascending m_infty grid -> satisfies 0 example (example_run grid).
Proof.
  intros Hg; split.
  - intros h h'; exact Hg.
  - intros h; exists ReplaceOne, 1%Q, (Leaf (MeanOfBounded 1 2) 1), 1%Q.
    split; [left; split; reflexivity|split; [symmetry; apply Q2R_number|split]].
    + intros j data R; apply Nat.eqb_eq in R; subst j.
      apply (derives_mean 0 ReplaceOne 1 2 1 (euclidean 1) cut_to_1); try discriminate.
      intros x; rewrite Q2R_number; apply cut_to_1_bounded.
    + intros j data part R; cbn [reads value example_run] in R |- *.
      unfold with_part; rewrite R; reflexivity.
  - intros j h I; exists [].
    apply transcripts_length in I; destruct h as [|m [|m' h]]; try discriminate.
    simpl; unfold allowed, concerns; simpl.
    destruct j as [|[|j]]; simpl; reflexivity.
Qed.

(** The probability of an event of the only message's only number. *)
Lemma example_probability grid data event :
  prob (all_transcripts (example_run grid)) (run_law (example_run grid) data)
    (fun h => match h with [[c]] => event c | _ => false end)
  = prob (cells m_infty grid) (rounded (mean_over cut_to_1 2 (data 1%nat) 0%nat) 1) event.
Proof.
  unfold prob.
  transitivity (total (transcripts (next_messages (example_run grid)) 0) (fun h =>
    total (next_messages (example_run grid) h) (fun m =>
      if match m with [c] => event c | _ => false end
      then run_law (example_run grid) data (m :: h) else 0))).
  { etransitivity; [exact (total_transcripts_S (next_messages (example_run grid)) 0 _)|].
    apply total_ext; intros h Ih; destruct Ih as [<-|[]]; reflexivity. }
  cbn [transcripts total]; rewrite Rplus_0_r.
  unfold next_messages, vector_outcomes; cbn [dimension cuts example_run].
  etransitivity; [exact (total_transcripts_S (fun _ => cells m_infty grid) 0 _)|].
  cbn [transcripts total]; rewrite Rplus_0_r.
  apply total_ext; intros c _; destruct (event c); [|reflexivity].
  unfold run_law, next_law; cbn [run length value noise_std dimension sampled_parties on_samples
    example_run]; unfold noisy_vector; cbn [run length].
  ring.
Qed.

(** No smaller delta is true of this run, at any eps. *)
Theorem example_attained eps :
  exists grid, ascending m_infty grid /\
  exists x y event, one_part replace_one x y /\
  prob (all_transcripts (example_run grid)) (run_law (example_run grid) x) event
  = exp eps * prob (all_transcripts (example_run grid)) (run_law (example_run grid) y) event
    + gaussian_delta 1 eps.
Proof.
  set (grid := [threshold (/ 2) (- / 2) 1 eps]); exists grid; split; [simpl; auto|].
  exists (fun _ => [1]), (with_part (fun _ => [1]) 1 [-1]).
  destruct (gaussian_delta_attained (/ 2) (- / 2) 1 eps ltac:(lra) ltac:(lra)) as [event E].
  exists (fun h => match h with [[c]] => event c | _ => false end); split.
  - exists 1%nat; split.
    + exact (replaced [] [] 1 (-1)).
    + intros i N; unfold with_part; destruct (Nat.eqb_spec i 1); congruence.
  - rewrite !example_probability.
    assert (M : forall x, -1 <= x <= 1 -> mean_over cut_to_1 2 [x] 0%nat = x / 2).
    { intros x Hx; unfold mean_over, cut_to_1; simpl.
      rewrite Rmin_right, Rmax_right by lra; field. }
    change (with_part (fun _ => [1]) 1 [-1] 1%nat) with [-1].
    rewrite !M by lra.
    replace (1 / 2) with (/ 2) by field; replace (-1 / 2) with (- / 2) by field.
    cbv zeta in E; fold grid in E; rewrite E; do 2 f_equal.
    unfold shift; replace ((/ 2 - - / 2) / 1) with 1 by field; apply Rabs_right; lra.
Qed.
