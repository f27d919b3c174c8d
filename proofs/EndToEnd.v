(** Numbers end to end: mu = 1 gives (4.37718, 1e-5), by the interval tactic and by the checker.

    Interval arithmetic runs on integers of Coq's own kernel (no primitive floats, hence no axioms
    about them). *)

From Coq Require Import Reals List Lra QArith Qreals.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Tactic.
From Interval.Float Require Import Specific_ops Specific_stdz.
From Dpledger Require Import Finite GaussianIntegral Gaussian Pure GaussianDelta Sensitivity
  Nonnegative Vertical Certificate Checker Soundness Claims Example
  FilterExample.
Import ListNotations.
Open Scope R_scope.

Module KernelFloat := SpecificFloat StdZRadix2.
Module KernelInterval := Interval.Tactic.IntervalTactic KernelFloat.
Import KernelInterval.

Lemma gaussian_delta_1 eps :
  gaussian_delta 1 eps
    = / 2 - bell_integral (eps - / 2) / root_two_pi
      - exp eps * (/ 2 - bell_integral (eps + / 2) / root_two_pi).
Proof.
  unfold gaussian_delta, Phi.
  replace (1 / 2 - eps / 1) with (- (eps - / 2)) by field.
  replace (- (1 / 2) - eps / 1) with (- (eps + / 2)) by field.
  rewrite !bell_integral_opp; unfold Rdiv; ring.
Qed.

Ltac enclose_integral x H :=
  integral_intro (RInt (fun t => exp (- (t * t) / 2)) 0 x)
    with (i_prec 46, i_relwidth 38, i_degree 20) as H.

(** The exact delta of the Gaussian mechanism with mu = 1 at eps = 4.37718 is at most 1e-5. *)
Theorem gaussian_delta_mu_1_upper : gaussian_delta 1 4.37718 <= 1 / 100000.
Proof.
  rewrite gaussian_delta_1; unfold bell_integral, bell, root_two_pi.
  replace (4.37718 - / 2) with 3.87718 by lra; replace (4.37718 + / 2) with 4.87718 by lra.
  enclose_integral 3.87718 H1; enclose_integral 4.87718 H2.
  set (I1 := RInt _ 0 3.87718) in *; set (I2 := RInt _ 0 4.87718) in *.
  clearbody I1 I2; interval with (i_prec 60).
Qed.

(** One unit of the last digit less is too little. *)
Theorem gaussian_delta_mu_1_lower : 1 / 100000 < gaussian_delta 1 4.37717.
Proof.
  rewrite gaussian_delta_1; unfold bell_integral, bell, root_two_pi.
  replace (4.37717 - / 2) with 3.87717 by lra; replace (4.37717 + / 2) with 4.87717 by lra.
  enclose_integral 3.87717 H1; enclose_integral 4.87717 H2.
  set (I1 := RInt _ 0 3.87717) in *; set (I2 := RInt _ 0 4.87717) in *.
  clearbody I1 I2; interval with (i_prec 60).
Qed.

(** A release whose noise equals its sensitivity is (4.37718, 1e-5)-DP, rounded in any way. *)
Theorem gaussian_mu_1_dp {D} (adj : D -> D -> Prop) (q : D -> R) (s : R) (cuts : list R) :
  0 < s -> ascending m_infty cuts -> (forall x y, adj x y -> Rabs (q x - q y) <= s) ->
  dp adj (cells m_infty cuts) (fun x => rounded (q x) s) 4.37718 (1 / 100000).
Proof.
  intros Hs Hc Hq; apply dp_weaken with (gaussian_delta (s / s) 4.37718).
  - replace (s / s) with 1 by (field; lra); exact gaussian_delta_mu_1_upper.
  - apply gaussian_dp; auto; lra.
Qed.

(** The checker accepts a certificate, and a run satisfies it. *)
Tactic Notation "checked" uconstr(rule) uconstr(satisfied) :=
  eapply rule; [vm_compute; reflexivity|apply satisfied; assumption].

(** The same number by the checker, for the run of Example.v. *)
Theorem example_dp (grid : list R) :
  ascending m_infty grid ->
  dp (one_part replace_one) (all_transcripts (example_run grid)) (run_law (example_run grid))
    (Q2R (437718 # 100000)) (Q2R (1 # 100000)).
Proof. intros Hg; checked (check_dp example ReplaceOne) example_satisfied. Qed.

(** As a release of several parties, each party's part counted for its own records. *)
Theorem parties_gdp (grid : list R) :
  ascending m_infty grid -> holds 0 (example_run grid) (Claim ReplaceOne 1 (Gdp 1)).
Proof. intros Hg; checked (check_sound parties_example) parties_satisfied. Qed.

(** The minimiser over the records that are there, one of which is added or removed. *)
Theorem minimised_gdp (grid : list R) :
  ascending m_infty grid ->
  holds 0 (one_release [] whole (mean_present cut_to_1 2) grid) (Claim AddRemoveOne 1 (Gdp 1)).
Proof. intros Hg; checked (check_sound minimised_example) minimised_satisfied. Qed.

(** Predictions of one of vertically held records that is zeroed out, and the slope of its loss. *)
Theorem predicted_gdp (grid : list R) :
  ascending m_infty grid ->
  holds 0 (one_release [] whole (fun l => predictions cut_to_1 l (least_on_ball l)) grid)
    (Claim ZeroOutOne 1 (Gdp (9 # 4))).
Proof. intros Hg; checked (check_sound predicted_example) predicted_satisfied. Qed.

Theorem dual_gdp (grid : list R) :
  ascending m_infty grid -> holds 0 (one_release [] whole entries grid) (Claim ReplaceOne 1 (Gdp 4)).
Proof. intros Hg; checked (check_sound dual_example) dual_satisfied. Qed.

(** The release whose mean is computed with a rounding, of any kind that the standard model allows. *)
Theorem computed_gdp (fl : R -> R) (grid : list R) :
  (forall x, Rounding.rounds x (fl x)) -> ascending m_infty grid ->
  holds 0 (one_release [] whole (held_mean fl) grid) (Claim ReplaceOne 1 (Gdp (1000001 # 1000000))).
Proof. intros Hf Hg; checked (check_sound computed_example) computed_satisfied. Qed.

(** The releases on a sample, by the distribution of their loss. *)
Theorem sampled_dp (moved : relation) (grid : list R) :
  moved <> ReplaceOne -> ascending m_infty grid ->
  let r := one_release [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid in
  dp (one_part (neighbours 0 moved)) (all_transcripts r) (run_law r)
    (Q2R (5 # 2)) (Q2R (1 # 100000)).
Proof.
  intros Hm Hg r; destruct moved; [congruence| |].
  - checked (check_dp (poisson_example ZeroOutOne) ZeroOutOne) sampled_satisfied.
  - checked (check_dp (poisson_example AddRemoveOne) AddRemoveOne) sampled_satisfied.
Qed.

(** The same by the moment of order 6. *)
Theorem sampled_renyi_dp (moved : relation) (grid : list R) :
  moved <> ReplaceOne -> ascending m_infty grid ->
  let r := one_release [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid in
  dp (one_part (neighbours 0 moved)) (all_transcripts r) (run_law r)
    (Q2R (23494 # 10000)) (Q2R (1 # 100000)).
Proof.
  intros Hm Hg r; destruct moved; [congruence| |].
  - checked (check_dp (poisson_renyi_example ZeroOutOne) ZeroOutOne) poisson_renyi_satisfied.
  - checked (check_dp (poisson_renyi_example AddRemoveOne) AddRemoveOne) poisson_renyi_satisfied.
Qed.

(** Two records at once, of which the sample sees both, one or none. *)
Theorem together_dp (moved : relation) (grid : list R) :
  moved <> ReplaceOne -> ascending m_infty grid ->
  let r := one_release [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid in
  dp (unit_neighbours 0 moved 2) (all_transcripts r) (run_law r) (Q2R 5) (Q2R (1 # 100000)).
Proof.
  intros Hm Hg r; destruct moved; [congruence| |].
  - checked (check_group_dp (together_example ZeroOutOne) ZeroOutOne 2) together_satisfied.
  - checked (check_group_dp (together_example AddRemoveOne) AddRemoveOne 2) together_satisfied.
Qed.

Theorem replaced_dp (grid : list R) :
  ascending m_infty grid ->
  let r := one_release [1%nat] (EachWith (Q2R (1 # 8)))
             (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)) grid in
  dp (one_part replace_one) (all_transcripts r) (run_law r) (Q2R (5 # 2)) (Q2R (1 # 100000)).
Proof. intros Hg r; checked (check_dp replaced_example ReplaceOne) replaced_satisfied. Qed.

(** Two of its records, both, one or none of which the sample sees. *)
Theorem replaced_dp_of_two (grid : list R) :
  ascending m_infty grid ->
  let r := one_release [1%nat] (EachWith (Q2R (1 # 8)))
             (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)) grid in
  dp (unit_neighbours 0 ReplaceOne 2) (all_transcripts r) (run_law r) (Q2R 5) (Q2R (1 # 100000)).
Proof. intros Hg r; checked (check_group_dp (replaced_at 2 5) ReplaceOne 2) replaced_satisfied. Qed.

(** What all records have in common beside what a sample of them has. *)
Theorem mixture_dp (grid : list R) :
  ascending m_infty grid ->
  let r := one_message (Beside 1) [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid in
  dp (one_part add_remove_one) (all_transcripts r) (run_law r) (Q2R 10) (Q2R (1 # 100000)).
Proof.
  intros Hg r; checked (check_dp (mixture_example AddRemoveOne (Leaf (SumOfBounded 1) 1) 10) AddRemoveOne)
                 mixture_satisfied.
Qed.

(** The same of a batch, of which a record is replaced. *)
Theorem mixture_of_batch_dp (grid : list R) :
  ascending m_infty grid ->
  let r := one_message (Beside 1) [1%nat] (OutOf 2 16 0)
             (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)) grid in
  dp (one_part replace_one) (all_transcripts r) (run_law r) (Q2R 10) (Q2R (1 # 100000)).
Proof.
  intros Hg r; checked (check_dp (mixture_example ReplaceOne half_sum 10) ReplaceOne) mixture_of_batch_satisfied.
Qed.

(** The same where it is told who is drawn. *)
Theorem mixture_told_dp (grid : list R) :
  ascending m_infty grid ->
  let r := one_message (Beside 1) [1%nat] (EachWith (Q2R (1 # 8)))
             (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)) grid in
  dp (one_part replace_one) (all_transcripts r) (run_law r) (Q2R 16) (Q2R (1 # 100000)).
Proof.
  intros Hg r; checked (check_dp (mixture_example ReplaceOne (Leaf (Declared 1) 1) 16) ReplaceOne) mixture_told_satisfied.
Qed.

(** The sum of two samples, under one noise, and of two records of it at once. *)
Theorem accumulated_dp (grid : list R) :
  ascending m_infty grid ->
  dp (one_part add_remove_one) (all_transcripts (accumulated_run grid)) (run_law (accumulated_run grid))
    (Q2R 5) (Q2R (1 # 100000)).
Proof. intros Hg; checked (check_dp (accumulated_example AddRemoveOne 1 5) AddRemoveOne) accumulated_satisfied. Qed.

Theorem accumulated_dp_of_two (grid : list R) :
  ascending m_infty grid ->
  dp (unit_neighbours 0 AddRemoveOne 2) (all_transcripts (accumulated_run grid)) (run_law (accumulated_run grid))
    (Q2R 10) (Q2R (1 # 100000)).
Proof.
  intros Hg; checked (check_group_dp (accumulated_example AddRemoveOne 2 10) AddRemoveOne 2) accumulated_satisfied.
Qed.

Theorem batch_dp (grid : list R) :
  ascending m_infty grid ->
  let r := one_release [1%nat] (OutOf 2 16 0) (mean_over cut_to_1 2) grid in
  dp (one_part replace_one) (all_transcripts r) (run_law r) (Q2R (5 # 2)) (Q2R (1 # 100000)).
Proof. intros Hg r; checked (check_dp batch_example ReplaceOne) batch_satisfied. Qed.

(** By the moment of order 6. *)
Theorem batch_renyi_dp (grid : list R) :
  ascending m_infty grid ->
  let r := one_release [1%nat] (OutOf 2 16 0) (mean_over cut_to_1 2) grid in
  dp (one_part replace_one) (all_transcripts r) (run_law r) (Q2R (24989 # 10000)) (Q2R (1 # 100000)).
Proof. intros Hg r; checked (check_dp batch_renyi_example ReplaceOne) batch_renyi_satisfied. Qed.

(** Of two of its records. *)
Theorem batch_dp_of_two (grid : list R) :
  ascending m_infty grid ->
  let r := one_release [1%nat] (OutOf 2 16 0) (mean_over cut_to_1 2) grid in
  dp (unit_neighbours 0 ReplaceOne 2) (all_transcripts r) (run_law r) (Q2R 5) (Q2R (1 # 100000)).
Proof. intros Hg r; checked (check_group_dp (batch_at 2 5) ReplaceOne 2) batch_satisfied. Qed.

Theorem copies_dp (grid : list R) :
  ascending m_infty grid ->
  let r := one_release [1%nat] (Again 2 32 0) (mean_over cut_to_1 2) grid in
  dp (one_part replace_one) (all_transcripts r) (run_law r) (Q2R (5 # 2)) (Q2R (1 # 100000)).
Proof. intros Hg r; checked (check_dp copies_example ReplaceOne) copies_satisfied. Qed.

Theorem copies_dp_of_two (grid : list R) :
  ascending m_infty grid ->
  let r := one_release [1%nat] (Again 2 32 0) (mean_over cut_to_1 2) grid in
  dp (unit_neighbours 0 ReplaceOne 2) (all_transcripts r) (run_law r) (Q2R 6) (Q2R (1 # 100000)).
Proof. intros Hg r; checked (check_group_dp (copies_at 2 6) ReplaceOne 2) copies_satisfied. Qed.

(** Laplace noise, and an answer, in pure DP. *)
Theorem laplace_run_pure (grid : list R) :
  ascending m_infty grid ->
  pure (one_part add_remove_one) (all_transcripts (laplace_run grid)) (run_law (laplace_run grid))
    (Q2R (1 # 2)).
Proof.
  intros Hg; checked (check_pure (laplace_example 1 (LaplacePure 1 (1 # 2)) (PureDp (1 # 2))) AddRemoveOne)
    laplace_satisfied.
Qed.

(** The same release by its loss: delta is 1 - exp(-1/20), smaller than that of an answer. *)
Theorem laplace_run_dp (grid : list R) :
  ascending m_infty grid ->
  dp (one_part add_remove_one) (all_transcripts (laplace_run grid)) (run_law (laplace_run grid))
    (Q2R (2 # 5)) (Q2R (49 # 1000)).
Proof.
  intros Hg; set (cost := PrivacyLoss [(1, 1, O)%positive] [] 1 (1 # 64) [] 32 12 1000 (49 # 1000) (2 # 5)).
  checked (check_dp (laplace_example 1 cost (ApproxDp (49 # 1000) (2 # 5))) AddRemoveOne) laplace_satisfied.
Qed.

(** For two records at once: of twice the shift, delta is as large at an epsilon larger by a half. *)
Theorem laplace_run_dp_of_two (grid : list R) :
  ascending m_infty grid ->
  dp (unit_neighbours 0 AddRemoveOne 2) (all_transcripts (laplace_run grid)) (run_law (laplace_run grid))
    (Q2R (9 # 10)) (Q2R (49 # 1000)).
Proof.
  intros Hg; set (cost := LaplaceLosses [(1, 1)%positive] 2 (49 # 1000) (9 # 10)).
  checked (check_group_dp (laplace_example 2 cost (ApproxDp (49 # 1000) (9 # 10))) AddRemoveOne 2)
    laplace_satisfied.
Qed.

(** On a sample. *)
Theorem laplace_sample_dp (grid : list R) :
  ascending m_infty grid ->
  dp (one_part add_remove_one) (all_transcripts (laplace_sample_run grid))
    (run_law (laplace_sample_run grid)) (Q2R (1 # 20)) (Q2R (10 # 1000)).
Proof.
  intros Hg; checked (check_dp (laplace_sample_at 1 (10 # 1000)) AddRemoveOne) laplace_sample_satisfied.
Qed.

(** For two records at once: twice the shift, and any of them is in the sample with probability 15/64. *)
Theorem laplace_sample_dp_of_two (grid : list R) :
  ascending m_infty grid ->
  dp (unit_neighbours 0 AddRemoveOne 2) (all_transcripts (laplace_sample_run grid))
    (run_law (laplace_sample_run grid)) (Q2R (1 # 20)) (Q2R (78 # 1000)).
Proof.
  intros Hg; checked (check_group_dp (laplace_sample_at 2 (78 # 1000)) AddRemoveOne 2) laplace_sample_satisfied.
Qed.

Theorem discrete_run_pure (grid : list R) :
  ascending m_infty grid ->
  pure (one_part add_remove_one) (all_transcripts (discrete_run grid)) (run_law (discrete_run grid))
    (Q2R (1 # 2)).
Proof. intros Hg; checked (check_pure discrete_example AddRemoveOne) discrete_satisfied. Qed.

(** Whatever a filter lets happen: here a run that stops when it is lucky. *)
Theorem lucky_run_dp (grid : list R) :
  ascending m_infty grid ->
  dp (one_part replace_one) (transcripts (lucky_outcomes grid) 2) (fun x => run (lucky_law x))
    (Q2R (49834 # 10000)) (Q2R (1 # 100000)).
Proof.
  intros Hg; apply (check_filter_dp filter_example filter_budget ReplaceOne)
    with (null := 0) (reads := lucky_reads) (cost := lucky_cost).
  - vm_compute; reflexivity.
  - apply filter_satisfied, Hg.
Qed.

(** Discrete Gaussian noise, through zCDP. *)
Theorem discrete_gaussian_run_dp (grid : list R) :
  ascending m_infty grid ->
  dp (one_part add_remove_one) (all_transcripts (discrete_gaussian_run grid))
    (run_law (discrete_gaussian_run grid)) (Q2R (2169 # 1000)) (Q2R (1 # 100000)).
Proof.
  intros Hg; checked (check_dp (discrete_gaussian_example by_zcdp) AddRemoveOne) discrete_gaussian_satisfied.
Qed.

(** The same release by its loss. *)
Theorem discrete_gaussian_loss_dp (grid : list R) :
  ascending m_infty grid ->
  dp (one_part add_remove_one) (all_transcripts (discrete_gaussian_run grid))
    (run_law (discrete_gaussian_run grid)) (Q2R (20114 # 10000)) (Q2R (1 # 100000)).
Proof.
  intros Hg; checked (check_dp (discrete_gaussian_example by_its_loss) AddRemoveOne) discrete_gaussian_satisfied.
Qed.

(** What is only known in pure DP, by its loss. *)
Theorem pure_run_dp :
  dp (one_part replace_one) (all_transcripts pure_run) (run_law pure_run)
    (Q2R (2 # 5)) (Q2R (63 # 1000)).
Proof. checked (check_dp pure_example ReplaceOne) pure_satisfied. Qed.

(** What no record changes, told without noise. *)
Theorem still_run_dp :
  dp (one_part replace_one) (all_transcripts still_run) (run_law still_run) (Q2R 0) (Q2R (1 # 100000)).
Proof. checked (check_dp still_example ReplaceOne) still_satisfied. Qed.

(** A sample that nobody is drawn into. *)
Theorem empty_run_dp grid :
  ascending m_infty grid ->
  dp (one_part add_remove_one) (all_transcripts (empty_run grid)) (run_law (empty_run grid)) (Q2R 0) (Q2R (1 # 100000)).
Proof. intros G; checked (check_dp empty_example AddRemoveOne) empty_satisfied. Qed.

Theorem response_run_pure :
  pure (one_part replace_one) (all_transcripts response_run) (run_law response_run)
    (Q2R (10987 # 10000)).
Proof. checked (check_pure response_example ReplaceOne) response_satisfied. Qed.
