(** What every named theorem rests on; the build log shows it. *)

From Dpledger Require Schedules Conversion Sensitivity Finite GaussianIntegral Gaussian GaussianDelta
  EndToEnd.

(* Schedules *)
Print Assumptions Schedules.periodic_schedule_sum.
Print Assumptions Schedules.periodic_published_understates.
Print Assumptions Schedules.periodic_published_single_release.
Print Assumptions Schedules.iteration_schedule_sum.
Print Assumptions Schedules.iteration_schedule_tail.

(* Conversion *)
Print Assumptions Conversion.zcdp_epsilon_lower.
Print Assumptions Conversion.zcdp_epsilon_attained.
Print Assumptions Conversion.zcdp_best_order_unique.

(* Sensitivity *)
Print Assumptions Sensitivity.sensitivity_weaken.
Print Assumptions Sensitivity.sensitivity_linear.
Print Assumptions Sensitivity.sensitivity_scale.
Print Assumptions Sensitivity.sensitivity_shift.
Print Assumptions Sensitivity.sensitivity_sum.
Print Assumptions Sensitivity.sensitivity_sum_witnesses.
Print Assumptions Sensitivity.clip_norm.
Print Assumptions Sensitivity.mean_sensitivity_replace.
Print Assumptions Sensitivity.mean_sensitivity_zero_out.
Print Assumptions Sensitivity.mean_sensitivity_add_remove.
Print Assumptions Sensitivity.clipped_mean_sensitivity_replace.
Print Assumptions Sensitivity.near_minimum_of_subgradient.
Print Assumptions Sensitivity.near_minimum_of_minimiser.
Print Assumptions Sensitivity.argmin_sensitivity_replace.
Print Assumptions Sensitivity.argmin_sensitivity_zero_out.
Print Assumptions Sensitivity.exact_argmin_sensitivity_replace.

(* Finite *)
Print Assumptions Finite.rdp_pair_renyi.
Print Assumptions Finite.post_processing.
Print Assumptions Finite.adaptive_composition.
Print Assumptions Finite.renyi_product.
Print Assumptions Finite.adaptive_filter.
Print Assumptions Finite.zcdp_filter.
Print Assumptions Finite.zcdp_ledger.
Print Assumptions Finite.parallel_composition.
Print Assumptions Finite.group_privacy.
Print Assumptions Finite.group_of_two.
Print Assumptions Finite.rdp_to_dp.
Print Assumptions Finite.rdp_to_dp_at_delta.
Print Assumptions Finite.zcdp_to_dp.

(* GaussianIntegral *)
Print Assumptions GaussianIntegral.gaussian_integral.

(* Gaussian *)
Print Assumptions Gaussian.gaussian_renyi.
Print Assumptions Gaussian.gaussian_rounded_rdp.
Print Assumptions Gaussian.gaussian_zcdp.

(* GaussianDelta *)
Print Assumptions GaussianDelta.gaussian_rounded_delta.
Print Assumptions GaussianDelta.gaussian_delta_attained.
Print Assumptions GaussianDelta.gaussian_delta_increasing.
Print Assumptions GaussianDelta.gaussian_dp.

(* EndToEnd *)
Print Assumptions EndToEnd.gaussian_delta_mu_1_upper.
Print Assumptions EndToEnd.gaussian_delta_mu_1_lower.
Print Assumptions EndToEnd.gaussian_mu_1_dp.
Print Assumptions EndToEnd.vector_gaussian_zcdp.
Print Assumptions EndToEnd.descent_zcdp.
Print Assumptions EndToEnd.descent_dp.
