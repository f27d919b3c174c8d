(** What the named theorems rest on: the build log shows, file by file, every statement and the
    axioms under them together. Only those of Coq's classical reals may appear: excluded middle
    (in general, and computable for the two forms that real numbers need) and functional
    extensionality; under the fast checker alone also those of the kernel's primitive integers. *)

From Coq Require Import Reals List.
From Dpledger Require
  Schedules Conversion Sensitivity Nonnegative Rounding Finite Domination Lattice GaussianIntegral
  Gaussian Pure LaplaceProfile PureRenyi DiscreteLaplace GaussianWeights DiscreteGaussian
  GaussianDelta
  GaussianConvolution Descent GaussianComposition PoissonSampling BatchSampling ReplacedSample CopiesSampling GroupSampling GroupBatches GroupsDrawn Events AccumulatedSampling
  GaussianSeries Enclosure
  Losses GaussianLosses GaussianSplit Kronecker LossLists FixedPoint FixedGaussian LossEnclosures LossComposition SampledLoss
  GaussianDecision ReplacedLoss CopiesLoss GroupLoss PureLoss LaplaceLoss SampledLaplace GeometricLoss
  DiscreteGaussianProfile DiscreteGaussianShift DiscreteGaussianLoss LaplaceComposition LaplaceSums
  ProfileRenyi SampledRenyi RenyiDecision
  Checker MachineIntegers MachineSeries FastChecker Operations Derivations Claims Soundness
  Example FilterExample EndToEnd.

Open Scope R_scope.

Definition schedules_theorems := (
  @Schedules.periodic_schedule_sum,
  @Schedules.periodic_published_understates,
  @Schedules.periodic_published_single_release,
  @Schedules.iteration_schedule_sum,
  @Schedules.iteration_schedule_tail).
Print schedules_theorems.
Print Assumptions schedules_theorems.

Definition conversion_theorems := (
  @Conversion.zcdp_epsilon_lower,
  @Conversion.zcdp_epsilon_attained,
  @Conversion.zcdp_best_order_unique).
Print conversion_theorems.
Print Assumptions conversion_theorems.

Definition sensitivity_theorems := (
  @Sensitivity.sensitivity_weaken,
  @Sensitivity.sensitivity_linear,
  @Sensitivity.sensitivity_scale,
  @Sensitivity.sensitivity_shift,
  @Sensitivity.sensitivity_sum,
  @Sensitivity.sensitivity_sum_witnesses,
  @Sensitivity.sensitivity_rounding,
  @Sensitivity.sensitivity_rounding_witness,
  @Sensitivity.sensitivity_nonexpansive,
  @Sensitivity.sensitivity_concatenation,
  @Sensitivity.clip_norm,
  @Sensitivity.clip_nonexpansive,
  @Sensitivity.sensitivity_clip,
  @Sensitivity.mean_sensitivity_replace,
  @Sensitivity.mean_sensitivity_zero_out,
  @Sensitivity.sum_sensitivity_replace,
  @Sensitivity.sum_sensitivity_add_remove,
  @Sensitivity.sum_sensitivity_zero_out,
  @Sensitivity.mean_sensitivity_add_remove,
  @Sensitivity.clipped_mean_sensitivity_replace,
  @Sensitivity.near_minimum_of_subgradient,
  @Sensitivity.near_minimum_of_minimiser,
  @Sensitivity.argmin_sensitivity_replace,
  @Sensitivity.argmin_sensitivity_zero_out,
  @Sensitivity.argmin_sensitivity_add_remove,
  @Sensitivity.exact_argmin_sensitivity_replace,
  @Nonnegative.mean_present_add_remove,
  @Nonnegative.argmin_present_add_remove,
  @Vertical.predictions_sensitivity_replace,
  @Vertical.predictions_sensitivity_zero_out,
  @Vertical.dual_sensitivity_replace,
  @Vertical.dual_sensitivity_zero_out,
  @Nonnegative.nonnegative_mean_sensitivity_replace,
  @Nonnegative.nonnegative_mean_present_add_remove,
  @Nonnegative.nonnegative_sum_sensitivity_replace).
Print sensitivity_theorems.
Print Assumptions sensitivity_theorems.

Definition rounding_theorems := (
  @Rounding.summed_within,
  @Rounding.mean_within).
Print rounding_theorems.
Print Assumptions rounding_theorems.

Definition finite_theorems := (
  @Finite.rdp_pair_renyi,
  @Finite.post_processing,
  @Finite.adaptive_composition,
  @Finite.renyi_product,
  @Finite.adaptive_filter,
  @Finite.zcdp_filter,
  @Finite.zcdp_ledger,
  @Finite.parallel_composition,
  @Finite.group_privacy,
  @Finite.group_of_two,
  @Finite.rdp_to_dp,
  @Finite.rdp_to_dp_at_delta,
  @Finite.zcdp_to_dp).
Print finite_theorems.
Print Assumptions finite_theorems.

Definition domination_theorems := (
  @Domination.hockey_stick_event,
  @Domination.hockey_stick_attained,
  @Domination.dp_hockey_stick,
  @Domination.dominates_refl,
  @Domination.dominates_trans,
  @Domination.dominated_dp,
  @Domination.excess_post_processing,
  @Domination.dominates_post_processing,
  @Domination.excess_mixture,
  @Domination.below_profile_mixture,
  @Domination.dominates_mixture,
  @Domination.sampling_removal,
  @Domination.sampling_addition,
  @Domination.sampling_removal_profile,
  @Domination.sampling_addition_profile,
  @Domination.adaptive_domination,
  @Domination.adaptive_bound,
  @Domination.ledger_domination,
  @Domination.ledger_dp).
Print domination_theorems.
Print Assumptions domination_theorems.

Definition lattice_theorems := (
  @Lattice.connecting_the_dots,
  @Lattice.lattice_step,
  @Lattice.lattice_composition,
  @Lattice.lattice_ledger,
  @Lattice.lattice_raised,
  @Lattice.lattice_cut,
  @Lattice.lattice_shared,
  @Lattice.lattice_event,
  @Lattice.lattice_dp).
Print lattice_theorems.
Print Assumptions lattice_theorems.

Definition gaussian_integral_theorems := (
  @GaussianIntegral.gaussian_integral).
Print gaussian_integral_theorems.
Print Assumptions gaussian_integral_theorems.

Definition gaussian_theorems := (
  @Gaussian.normal_density_total,
  @Gaussian.gaussian_renyi,
  @Gaussian.rounded_cell,
  @Gaussian.gaussian_rounded_rdp,
  @Gaussian.gaussian_zcdp).
Print gaussian_theorems.
Print Assumptions gaussian_theorems.

Definition gaussian_delta_theorems := (
  @GaussianDelta.gaussian_rounded_delta,
  @GaussianDelta.gaussian_delta_attained,
  @GaussianDelta.gaussian_delta_increasing,
  @GaussianDelta.gaussian_dp).
Print gaussian_delta_theorems.
Print Assumptions gaussian_delta_theorems.

Definition descent_theorems := (
  @Descent.vector_gaussian_zcdp,
  @Descent.descent_zcdp,
  @Descent.descent_dp).
Print descent_theorems.
Print Assumptions descent_theorems.

Definition gaussian_composition_theorems := (
  @GaussianConvolution.window_upper,
  @GaussianConvolution.window_lower,
  @GaussianComposition.rounded_below_profile,
  @GaussianComposition.profile_step,
  @GaussianComposition.gaussian_filter,
  @GaussianComposition.profile_dp,
  @GaussianComposition.vector_gaussian_below_profile,
  @GaussianComposition.gaussian_ledger_dp,
  @GaussianComposition.gaussian_parties_dp,
  @GaussianComposition.below_profile_triangle,
  @GaussianComposition.gdp_group).
Print gaussian_composition_theorems.
Print Assumptions gaussian_composition_theorems.

Definition poisson_sampling_theorems := (
  @PoissonSampling.poisson_removal,
  @PoissonSampling.poisson_addition,
  @PoissonSampling.sampled_gaussians_dp,
  @PoissonSampling.on_samples_profile).
Print poisson_sampling_theorems.
Print Assumptions poisson_sampling_theorems.

Definition batch_sampling_theorems := (
  @GroupBatches.batch_swapped,
  @GroupsDrawn.batch_as_copies).
Print batch_sampling_theorems.
Print Assumptions batch_sampling_theorems.

Definition replaced_sample_theorems := (
  @ReplacedSample.poisson_replaced).
Print replaced_sample_theorems.
Print Assumptions replaced_sample_theorems.

Definition copies_sampling_theorems := (
  @CopiesSampling.copies_replaced,
  @CopiesSampling.copies_of_all,
  @AccumulatedSampling.copies_are_samples,
  @AccumulatedSampling.accumulated_sensitivity,
  @GroupSampling.poisson_thinned,
  @GroupSampling.poisson_removal_at_most,
  @GroupSampling.poisson_addition_at_most,
  @GroupSampling.poisson_swapped_beside,
  @GroupSampling.poisson_swapped,
  @GroupSampling.poisson_swapped_at_most,
  @GroupSampling.poisson_told).
Print copies_sampling_theorems.
Print Assumptions copies_sampling_theorems.

Definition events_theorems := (
  @Events.events_pure,
  @Events.events_rdp,
  @Events.events_zcdp,
  @Events.events_gdp,
  @Events.events_gdp_dp).
Print events_theorems.
Print Assumptions events_theorems.

Definition enclosure_theorems := (
  @GaussianSeries.bell_integral_lower,
  @GaussianSeries.bell_integral_upper,
  @GaussianDecision.gaussian_delta_at_most_sound,
  @Enclosure.at_most_exp_sound,
  @Enclosure.order_suffices_sound).
Print enclosure_theorems.
Print Assumptions enclosure_theorems.

Definition losses_theorems := (
  @Losses.loss_step,
  @Losses.steps_filter,
  @Losses.dots_suffice,
  @Losses.loss_dp,
  @GaussianLosses.followed_at_most,
  @GaussianLosses.step_then_rest,
  @GaussianLosses.gaussian_then_rest,
  @GaussianLosses.loss_filter,
  @GaussianSplit.noise_split,
  @Kronecker.kronecker_exact,
  @LossLists.row_multiply,
  @LossLists.product_sound,
  @LossLists.trimmed_sound,
  @LossLists.doubled_sound,
  @LossComposition.composed_sound,
  @FixedPoint.exp_bounds_sound,
  @FixedPoint.ln_below_sound,
  @FixedGaussian.removal_above_sound,
  @SampledLoss.checked_sound,
  @SampledLoss.both_losses_sound,
  @SampledLoss.sided_losses_sound,
  @SampledLoss.step_losses_sound,
  @SampledLoss.turned_losses_sound,
  @SampledLoss.batch_losses_sound,
  @SampledLoss.told_losses_sound,
  @ReplacedLoss.replaced_above_sound,
  @ReplacedLoss.replaced_losses_sound,
  @CopiesLoss.copies_above_sound,
  @CopiesLoss.copies_likely_sound,
  @CopiesLoss.copies_losses_sound,
  @GroupLoss.gathered_above_sound,
  @GroupLoss.gathered_losses_sound,
  @SampledLoss.loss_delta_sound,
  @PureLoss.odds_dominate,
  @PureLoss.answers_dominate,
  @PureLoss.odds_loss_sound,
  @GeometricLoss.path_below,
  @GeometricLoss.vector_geometric_profile,
  @GeometricLoss.geometric_loss_sound,
  @LaplaceComposition.composition_step,
  @LaplaceComposition.laplace_then_rest,
  @LaplaceComposition.laplace_filter,
  @ProfileRenyi.moment_of_profile,
  @ProfileRenyi.gaussian_pair,
  @SampledRenyi.removal_renyi,
  @SampledRenyi.addition_renyi,
  @SampledRenyi.replaced_renyi,
  @RenyiDecision.poisson_renyi_at_most_sound,
  @RenyiDecision.batch_renyi_at_most_sound,
  @LaplaceSums.laplace_delta_sound).
Print losses_theorems.
Print Assumptions losses_theorems.

Definition pure_theorems := (
  @Pure.pure_dp,
  @Pure.pure_group,
  @Pure.pure_filter,
  @Pure.pure_composition,
  @Pure.pure_of_losses,
  @Pure.laplace_pure,
  @Pure.vector_laplace_pure,
  @LaplaceProfile.laplace_step,
  @LaplaceProfile.laplace_overlap,
  @LaplaceProfile.rounded_laplace_overlap,
  @LaplaceProfile.vector_laplace_profile,
  @LaplaceLoss.laplace_loss_sound,
  @SampledLaplace.amplified_at_most_sound,
  @SampledLaplace.laplace_step_losses_sound,
  @SampledLaplace.laplace_batch_losses_sound,
  @DiscreteLaplace.vector_geometric_pure,
  @Pure.response_pure,
  @PureRenyi.odds_rdp).
Print pure_theorems.
Print Assumptions pure_theorems.

Definition discrete_gaussian_theorems := (
  @GaussianWeights.gaussian_kernel_positive,
  @GaussianWeights.weights_largest,
  @DiscreteGaussian.discrete_gaussian_rdp,
  @DiscreteGaussian.vector_discrete_gaussian_zcdp,
  @DiscreteGaussianProfile.cells_by_masses,
  @DiscreteGaussianProfile.cells_by_losses,
  @DiscreteGaussianProfile.vector_by_shifts,
  @DiscreteGaussianProfile.vector_moved_by,
  @DiscreteGaussianShift.shift_loss_sound,
  @DiscreteGaussianLoss.ways_sound,
  @DiscreteGaussianLoss.discrete_gaussian_loss_sound).
Print discrete_gaussian_theorems.
Print Assumptions discrete_gaussian_theorems.

Definition checker_theorems := (
  @Operations.computes_sound,
  @Operations.block_sound,
  @Derivations.minimiser_within,
  @Derivations.derived_sound,
  @Derivations.added_sound,
  @Claims.renyi_nothing,
  @Claims.concluded_said,
  @Claims.filtered_said,
  @Claims.check_filter_sound,
  @Claims.check_filter_dp,
  @Soundness.run_gdp,
  @Soundness.run_zcdp,
  @Soundness.run_rdp,
  @Soundness.run_pure,
  @Soundness.run_loss,
  @Soundness.follows_valid,
  @Soundness.unmoved_step,
  @Soundness.hushed_behaves,
  @Soundness.check_sound,
  @Soundness.check_dp,
  @Soundness.check_group_dp,
  @Soundness.check_pure,
  @Example.example_satisfied,
  @Example.example_attained,
  @Example.parties_satisfied,
  @Example.minimised_satisfied,
  @Example.predicted_satisfied,
  @Example.dual_satisfied,
  @Example.computed_satisfied,
  @Example.sampled_satisfied,
  @Example.together_satisfied,
  @Example.replaced_satisfied,
  @Example.mixture_satisfied,
  @Example.mixture_of_batch_satisfied,
  @Example.mixture_told_satisfied,
  @Example.accumulated_satisfied,
  @Example.batch_satisfied,
  @Example.poisson_renyi_satisfied,
  @Example.batch_renyi_satisfied,
  @Example.copies_satisfied,
  @Example.laplace_satisfied,
  @Example.laplace_sample_satisfied,
  @Example.total_in_l1,
  @Example.discrete_satisfied,
  @Example.discrete_gaussian_satisfied,
  @Example.response_satisfied,
  @Example.pure_satisfied,
  @Example.still_satisfied,
  @Example.empty_satisfied,
  @FilterExample.filter_satisfied,
  @Example.response_attained).
Print checker_theorems.
Print Assumptions checker_theorems.

Definition fast_checker_theorems := (
  @MachineIntegers.fast_mul_exact,
  @MachineIntegers.fast_div_exact,
  @MachineSeries.quick_rise_exact,
  @MachineSeries.quick_fall_exact,
  @FastChecker.fast_check_exact).
Print fast_checker_theorems.
Print Assumptions fast_checker_theorems.

Definition end_to_end_theorems := (
  @EndToEnd.gaussian_delta_mu_1_upper,
  @EndToEnd.gaussian_delta_mu_1_lower,
  @EndToEnd.gaussian_mu_1_dp,
  @EndToEnd.example_dp,
  @EndToEnd.parties_gdp,
  @EndToEnd.minimised_gdp,
  @EndToEnd.predicted_gdp,
  @EndToEnd.dual_gdp,
  @EndToEnd.computed_gdp,
  @EndToEnd.sampled_dp,
  @EndToEnd.sampled_renyi_dp,
  @EndToEnd.batch_renyi_dp,
  @EndToEnd.together_dp,
  @EndToEnd.replaced_dp,
  @EndToEnd.replaced_dp_of_two,
  @EndToEnd.mixture_dp,
  @EndToEnd.mixture_of_batch_dp,
  @EndToEnd.mixture_told_dp,
  @EndToEnd.accumulated_dp,
  @EndToEnd.accumulated_dp_of_two,
  @EndToEnd.batch_dp,
  @EndToEnd.batch_dp_of_two,
  @EndToEnd.copies_dp,
  @EndToEnd.copies_dp_of_two,
  @EndToEnd.laplace_run_pure,
  @EndToEnd.laplace_run_dp,
  @EndToEnd.laplace_run_dp_of_two,
  @EndToEnd.laplace_sample_dp,
  @EndToEnd.laplace_sample_dp_of_two,
  @EndToEnd.discrete_run_pure,
  @EndToEnd.discrete_gaussian_run_dp,
  @EndToEnd.discrete_gaussian_loss_dp,
  @EndToEnd.lucky_run_dp,
  @EndToEnd.pure_run_dp,
  @EndToEnd.still_run_dp,
  @EndToEnd.empty_run_dp,
  @EndToEnd.response_run_pure).
Print end_to_end_theorems.
Print Assumptions end_to_end_theorems.
