(** The checker with other products and quotients: [fast_check] is [check], function by function,
    with [fast_mul] and [fast_div] (MachineIntegers.v) in place of [Z.mul] and [Z.div], and with series
    in limbs (MachineSeries.v). Coq derives each from the function that it equals; one that is not named
    here is as slow as it was. *)

From Coq Require Import List ZArith QArith Derive.
From Dpledger Require Import MachineIntegers MachineSeries Enclosure Kronecker LossLists FixedPoint FixedGaussian
  LossEnclosures LossComposition SampledLoss ReplacedLoss CopiesLoss GroupLoss PureLoss LaplaceLoss SampledLaplace
  GeometricLoss
  DiscreteGaussianShift DiscreteGaussianLoss LaplaceSums Certificate Checker.

Create HintDb fast.
#[local] Hint Rewrite <- fast_mul_exact fast_div_exact : fast.

(** What is derived: [f], with all that was derived before in place of what it equals. *)
Ltac quicken f :=
  match goal with |- ?g = _ => unfold f; autorewrite with fast; subst g; reflexivity end.

(** ** Fixed point *)

Derive fast_below SuchThat (fast_below = FixedPoint.below) As fast_below_exact.
Proof. quicken FixedPoint.below. Qed.
#[local] Hint Rewrite <- fast_below_exact : fast.

Derive fast_above SuchThat (fast_above = FixedPoint.above) As fast_above_exact.
Proof. quicken FixedPoint.above. Qed.
#[local] Hint Rewrite <- fast_above_exact : fast.

Derive fast_round_up SuchThat (fast_round_up = round_up) As fast_round_up_exact.
Proof. quicken round_up. Qed.
#[local] Hint Rewrite <- fast_round_up_exact : fast.

Derive fast_rise SuchThat (fast_rise = rise) As fast_rise_exact.
Proof. quicken rise. Qed.
#[local] Hint Rewrite <- (quick_rise_exact fast_rise fast_rise_exact) : fast.

Derive fast_fall SuchThat (fast_fall = fall) As fast_fall_exact.
Proof. quicken fall. Qed.
#[local] Hint Rewrite <- (quick_fall_exact fast_fall fast_fall_exact) : fast.

Derive fast_squared_above SuchThat (fast_squared_above = squared_above) As fast_squared_above_exact.
Proof. quicken squared_above. Qed.
#[local] Hint Rewrite <- fast_squared_above_exact : fast.

Derive fast_squared_below SuchThat (fast_squared_below = squared_below) As fast_squared_below_exact.
Proof. quicken squared_below. Qed.
#[local] Hint Rewrite <- fast_squared_below_exact : fast.

Derive fast_exp_of_positive SuchThat (fast_exp_of_positive = exp_of_positive)
  As fast_exp_of_positive_exact.
Proof. quicken exp_of_positive. Qed.
#[local] Hint Rewrite <- fast_exp_of_positive_exact : fast.

Derive fast_exp_bounds SuchThat (fast_exp_bounds = exp_bounds) As fast_exp_bounds_exact.
Proof. quicken exp_bounds. Qed.
#[local] Hint Rewrite <- fast_exp_bounds_exact : fast.

Derive fast_closer SuchThat (fast_closer = closer) As fast_closer_exact.
Proof. quicken closer. Qed.
#[local] Hint Rewrite <- fast_closer_exact : fast.

Derive fast_ln_guess SuchThat (fast_ln_guess = ln_guess) As fast_ln_guess_exact.
Proof. quicken ln_guess. Qed.
#[local] Hint Rewrite <- fast_ln_guess_exact : fast.

Derive fast_ln_below SuchThat (fast_ln_below = ln_below) As fast_ln_below_exact.
Proof. quicken ln_below. Qed.
#[local] Hint Rewrite <- fast_ln_below_exact : fast.

(** ** The loss of a step *)

Derive fast_odd_above SuchThat (fast_odd_above = odd_above) As fast_odd_above_exact.
Proof. quicken odd_above. Qed.
#[local] Hint Rewrite <- fast_odd_above_exact : fast.

Derive fast_delta_above SuchThat (fast_delta_above = delta_above) As fast_delta_above_exact.
Proof. quicken delta_above. Qed.
#[local] Hint Rewrite <- fast_delta_above_exact : fast.

Derive fast_delta_anywhere SuchThat (fast_delta_anywhere = delta_anywhere)
  As fast_delta_anywhere_exact.
Proof. quicken delta_anywhere. Qed.
#[local] Hint Rewrite <- fast_delta_anywhere_exact : fast.

Derive fast_removal_above SuchThat (fast_removal_above = removal_above) As fast_removal_above_exact.
Proof. quicken removal_above. Qed.
#[local] Hint Rewrite <- fast_removal_above_exact : fast.

Derive fast_descend SuchThat (fast_descend = descend) As fast_descend_exact.
Proof. quicken descend. Qed.
#[local] Hint Rewrite <- fast_descend_exact : fast.

Derive fast_decay SuchThat (fast_decay = decay) As fast_decay_exact.
Proof. quicken decay. Qed.
#[local] Hint Rewrite <- fast_decay_exact : fast.

Derive fast_checked SuchThat (fast_checked = checked) As fast_checked_exact.
Proof. quicken checked. Qed.
#[local] Hint Rewrite <- fast_checked_exact : fast.

Derive fast_proposed SuchThat (fast_proposed = proposed) As fast_proposed_exact.
Proof. quicken proposed. Qed.
#[local] Hint Rewrite <- fast_proposed_exact : fast.

Derive fast_loss_from SuchThat (fast_loss_from = loss_from) As fast_loss_from_exact.
Proof. quicken loss_from. Qed.
#[local] Hint Rewrite <- fast_loss_from_exact : fast.

Derive fast_half_above SuchThat (fast_half_above = half_above) As fast_half_above_exact.
Proof. quicken half_above. Qed.
#[local] Hint Rewrite <- fast_half_above_exact : fast.

Derive fast_exp_of_rational SuchThat (fast_exp_of_rational = exp_of_rational)
  As fast_exp_of_rational_exact.
Proof. quicken exp_of_rational. Qed.
#[local] Hint Rewrite <- fast_exp_of_rational_exact : fast.

Derive fast_heights SuchThat (fast_heights = heights) As fast_heights_exact.
Proof. quicken heights. Qed.
#[local] Hint Rewrite <- fast_heights_exact : fast.

Derive fast_walk SuchThat (fast_walk = walk) As fast_walk_exact.
Proof. quicken walk. Qed.
#[local] Hint Rewrite <- fast_walk_exact : fast.

Derive fast_removal_heights SuchThat (fast_removal_heights = removal_heights)
  As fast_removal_heights_exact.
Proof. quicken removal_heights. Qed.
#[local] Hint Rewrite <- fast_removal_heights_exact : fast.

Derive fast_both_losses SuchThat (fast_both_losses = both_losses) As fast_both_losses_exact.
Proof. quicken both_losses. Qed.
#[local] Hint Rewrite <- fast_both_losses_exact : fast.

Derive fast_step_losses SuchThat (fast_step_losses = step_losses) As fast_step_losses_exact.
Proof. quicken step_losses. Qed.
#[local] Hint Rewrite <- fast_step_losses_exact : fast.

Derive fast_turned_losses SuchThat (fast_turned_losses = turned_losses) As fast_turned_losses_exact.
Proof. quicken turned_losses. Qed.
#[local] Hint Rewrite <- fast_turned_losses_exact : fast.

Derive fast_batch_losses SuchThat (fast_batch_losses = batch_losses) As fast_batch_losses_exact.
Proof. quicken batch_losses. Qed.
#[local] Hint Rewrite <- fast_batch_losses_exact : fast.

Derive fast_told_losses SuchThat (fast_told_losses = told_losses) As fast_told_losses_exact.
Proof. quicken told_losses. Qed.
#[local] Hint Rewrite <- fast_told_losses_exact : fast.

Derive fast_weighted_above SuchThat (fast_weighted_above = weighted_above)
  As fast_weighted_above_exact.
Proof. quicken weighted_above. Qed.
#[local] Hint Rewrite <- fast_weighted_above_exact : fast.

Derive fast_best_share SuchThat (fast_best_share = best_share) As fast_best_share_exact.
Proof. quicken best_share. Qed.
#[local] Hint Rewrite <- fast_best_share_exact : fast.

Derive fast_replaced_above SuchThat (fast_replaced_above = replaced_above)
  As fast_replaced_above_exact.
Proof. quicken replaced_above. Qed.
#[local] Hint Rewrite <- fast_replaced_above_exact : fast.

Derive fast_replaced_heights SuchThat (fast_replaced_heights = replaced_heights)
  As fast_replaced_heights_exact.
Proof. quicken replaced_heights. Qed.
#[local] Hint Rewrite <- fast_replaced_heights_exact : fast.

Derive fast_replaced_losses SuchThat (fast_replaced_losses = replaced_losses)
  As fast_replaced_losses_exact.
Proof. quicken replaced_losses. Qed.
#[local] Hint Rewrite <- fast_replaced_losses_exact : fast.

Derive fast_power_below SuchThat (fast_power_below = power_below) As fast_power_below_exact.
Proof. quicken power_below. Qed.
#[local] Hint Rewrite <- fast_power_below_exact : fast.

Derive fast_power_above SuchThat (fast_power_above = power_above) As fast_power_above_exact.
Proof. quicken power_above. Qed.
#[local] Hint Rewrite <- fast_power_above_exact : fast.

Derive fast_copy_of SuchThat (fast_copy_of = copy_of) As fast_copy_of_exact.
Proof. quicken copy_of. Qed.
#[local] Hint Rewrite <- fast_copy_of_exact : fast.

Derive fast_copies_from SuchThat (fast_copies_from = copies_from) As fast_copies_from_exact.
Proof. quicken copies_from. Qed.
#[local] Hint Rewrite <- fast_copies_from_exact : fast.

Derive fast_shares_at SuchThat (fast_shares_at = shares_at) As fast_shares_at_exact.
Proof. quicken shares_at. Qed.
#[local] Hint Rewrite <- fast_shares_at_exact : fast.

Derive fast_shares_spent SuchThat (fast_shares_spent = shares_spent) As fast_shares_spent_exact.
Proof. quicken shares_spent. Qed.
#[local] Hint Rewrite <- fast_shares_spent_exact : fast.

Derive fast_spending SuchThat (fast_spending = spending) As fast_spending_exact.
Proof. quicken spending. Qed.
#[local] Hint Rewrite <- fast_spending_exact : fast.

Derive fast_beyond_target SuchThat (fast_beyond_target = beyond_target) As fast_beyond_target_exact.
Proof. quicken beyond_target. Qed.
#[local] Hint Rewrite <- fast_beyond_target_exact : fast.

Derive fast_newton SuchThat (fast_newton = newton) As fast_newton_exact.
Proof. quicken newton. Qed.
#[local] Hint Rewrite <- fast_newton_exact : fast.

Derive fast_best_point SuchThat (fast_best_point = best_point) As fast_best_point_exact.
Proof. quicken best_point. Qed.
#[local] Hint Rewrite <- fast_best_point_exact : fast.

Derive fast_height_of SuchThat (fast_height_of = height_of) As fast_height_of_exact.
Proof. quicken height_of. Qed.
#[local] Hint Rewrite <- fast_height_of_exact : fast.

Derive fast_copies_above SuchThat (fast_copies_above = copies_above) As fast_copies_above_exact.
Proof. quicken copies_above. Qed.
#[local] Hint Rewrite <- fast_copies_above_exact : fast.

Derive fast_copies_likely SuchThat (fast_copies_likely = copies_likely) As fast_copies_likely_exact.
Proof. quicken copies_likely. Qed.
#[local] Hint Rewrite <- fast_copies_likely_exact : fast.

Derive fast_gathered_above SuchThat (fast_gathered_above = gathered_above)
  As fast_gathered_above_exact.
Proof. quicken gathered_above. Qed.
#[local] Hint Rewrite <- fast_gathered_above_exact : fast.

Derive fast_gathered_losses SuchThat (fast_gathered_losses = gathered_losses)
  As fast_gathered_losses_exact.
Proof. quicken gathered_losses. Qed.
#[local] Hint Rewrite <- fast_gathered_losses_exact : fast.

Derive fast_copies_heights SuchThat (fast_copies_heights = copies_heights)
  As fast_copies_heights_exact.
Proof. quicken copies_heights. Qed.
#[local] Hint Rewrite <- fast_copies_heights_exact : fast.

Derive fast_copies_losses SuchThat (fast_copies_losses = copies_losses) As fast_copies_losses_exact.
Proof. quicken copies_losses. Qed.
#[local] Hint Rewrite <- fast_copies_losses_exact : fast.

Derive fast_odds_height SuchThat (fast_odds_height = odds_height) As fast_odds_height_exact.
Proof. quicken odds_height. Qed.
#[local] Hint Rewrite <- fast_odds_height_exact : fast.

Derive fast_odds_heights SuchThat (fast_odds_heights = odds_heights) As fast_odds_heights_exact.
Proof. quicken odds_heights. Qed.
#[local] Hint Rewrite <- fast_odds_heights_exact : fast.

Derive fast_odds_loss SuchThat (fast_odds_loss = odds_loss) As fast_odds_loss_exact.
Proof. quicken odds_loss. Qed.
#[local] Hint Rewrite <- fast_odds_loss_exact : fast.

Derive fast_root_above SuchThat (fast_root_above = root_above) As fast_root_above_exact.
Proof. quicken root_above. Qed.
#[local] Hint Rewrite <- fast_root_above_exact : fast.

Derive fast_places_from SuchThat (fast_places_from = places_from) As fast_places_from_exact.
Proof. quicken places_from. Qed.
#[local] Hint Rewrite <- fast_places_from_exact : fast.

Derive fast_laplace_places SuchThat (fast_laplace_places = laplace_places)
  As fast_laplace_places_exact.
Proof. quicken laplace_places. Qed.
#[local] Hint Rewrite <- fast_laplace_places_exact : fast.

Derive fast_laplace_heights SuchThat (fast_laplace_heights = laplace_heights)
  As fast_laplace_heights_exact.
Proof. quicken laplace_heights. Qed.
#[local] Hint Rewrite <- fast_laplace_heights_exact : fast.

Derive fast_laplace_loss SuchThat (fast_laplace_loss = laplace_loss) As fast_laplace_loss_exact.
Proof. quicken laplace_loss. Qed.
#[local] Hint Rewrite <- fast_laplace_loss_exact : fast.

Derive fast_laplace_removal SuchThat (fast_laplace_removal = laplace_removal)
  As fast_laplace_removal_exact.
Proof. quicken laplace_removal. Qed.
#[local] Hint Rewrite <- fast_laplace_removal_exact : fast.

Derive fast_laplace_removal_heights SuchThat (fast_laplace_removal_heights = laplace_removal_heights)
  As fast_laplace_removal_heights_exact.
Proof. quicken laplace_removal_heights. Qed.
#[local] Hint Rewrite <- fast_laplace_removal_heights_exact : fast.

Derive fast_laplace_step_losses SuchThat (fast_laplace_step_losses = laplace_step_losses)
  As fast_laplace_step_losses_exact.
Proof. quicken laplace_step_losses. Qed.
#[local] Hint Rewrite <- fast_laplace_step_losses_exact : fast.

Derive fast_laplace_batch_losses SuchThat (fast_laplace_batch_losses = laplace_batch_losses)
  As fast_laplace_batch_losses_exact.
Proof. quicken laplace_batch_losses. Qed.
#[local] Hint Rewrite <- fast_laplace_batch_losses_exact : fast.

Derive fast_amplified_at_most SuchThat (fast_amplified_at_most = amplified_at_most)
  As fast_amplified_at_most_exact.
Proof. quicken amplified_at_most. Qed.
#[local] Hint Rewrite <- fast_amplified_at_most_exact : fast.

Derive fast_geometric_height SuchThat (fast_geometric_height = geometric_height)
  As fast_geometric_height_exact.
Proof. quicken geometric_height. Qed.
#[local] Hint Rewrite <- fast_geometric_height_exact : fast.

Derive fast_geometric_heights SuchThat (fast_geometric_heights = geometric_heights)
  As fast_geometric_heights_exact.
Proof. quicken geometric_heights. Qed.
#[local] Hint Rewrite <- fast_geometric_heights_exact : fast.

Derive fast_geometric_loss SuchThat (fast_geometric_loss = geometric_loss)
  As fast_geometric_loss_exact.
Proof. quicken geometric_loss. Qed.
#[local] Hint Rewrite <- fast_geometric_loss_exact : fast.

(** ** Composition *)

Derive fast_value SuchThat (fast_value = Kronecker.value) As fast_value_exact.
Proof. quicken Kronecker.value. Qed.
#[local] Hint Rewrite <- fast_value_exact : fast.

Derive fast_packed SuchThat (fast_packed = packed) As fast_packed_exact.
Proof. quicken packed. Qed.
#[local] Hint Rewrite <- fast_packed_exact : fast.

Derive fast_kronecker SuchThat (fast_kronecker = kronecker) As fast_kronecker_exact.
Proof. quicken kronecker. Qed.
#[local] Hint Rewrite <- fast_kronecker_exact : fast.

Derive fast_product SuchThat (fast_product = LossLists.product) As fast_product_exact.
Proof. quicken LossLists.product. Qed.
#[local] Hint Rewrite <- fast_product_exact : fast.

Derive fast_shared SuchThat (fast_shared = shared) As fast_shared_exact.
Proof. quicken shared. Qed.
#[local] Hint Rewrite <- fast_shared_exact : fast.

Derive fast_doubled SuchThat (fast_doubled = doubled) As fast_doubled_exact.
Proof. quicken doubled. Qed.
#[local] Hint Rewrite <- fast_doubled_exact : fast.

Derive fast_times SuchThat (fast_times = LossComposition.times) As fast_times_exact.
Proof. quicken LossComposition.times. Qed.
#[local] Hint Rewrite <- fast_times_exact : fast.

Derive fast_squares SuchThat (fast_squares = squares) As fast_squares_exact.
Proof. quicken squares. Qed.
#[local] Hint Rewrite <- fast_squares_exact : fast.

Derive fast_in_pairs SuchThat (fast_in_pairs = in_pairs) As fast_in_pairs_exact.
Proof. quicken in_pairs. Qed.
#[local] Hint Rewrite <- fast_in_pairs_exact : fast.

Derive fast_level SuchThat (fast_level = level) As fast_level_exact.
Proof. quicken level. Qed.
#[local] Hint Rewrite <- fast_level_exact : fast.

Derive fast_doubled_often SuchThat (fast_doubled_often = doubled_often) As fast_doubled_often_exact.
Proof. quicken doubled_often. Qed.
#[local] Hint Rewrite <- fast_doubled_often_exact : fast.

Derive fast_composed SuchThat (fast_composed = LossComposition.composed) As fast_composed_exact.
Proof. quicken LossComposition.composed. Qed.
#[local] Hint Rewrite <- fast_composed_exact : fast.

Derive fast_discounted SuchThat (fast_discounted = discounted) As fast_discounted_exact.
Proof. quicken discounted. Qed.
#[local] Hint Rewrite <- fast_discounted_exact : fast.

Derive fast_loss_delta_at_most SuchThat (fast_loss_delta_at_most = loss_delta_at_most)
  As fast_loss_delta_at_most_exact.
Proof. quicken loss_delta_at_most. Qed.
#[local] Hint Rewrite <- fast_loss_delta_at_most_exact : fast.

(** ** Discrete Gaussian noise *)

Derive fast_weights_from SuchThat (fast_weights_from = weights_from)
  As fast_weights_from_exact.
Proof. quicken weights_from. Qed.
#[local] Hint Rewrite <- fast_weights_from_exact : fast.

Derive fast_noise_masses SuchThat (fast_noise_masses = noise_masses)
  As fast_noise_masses_exact.
Proof. quicken noise_masses. Qed.
#[local] Hint Rewrite <- fast_noise_masses_exact : fast.

Derive fast_power SuchThat (fast_power = DiscreteGaussianLoss.power) As fast_power_exact.
Proof. quicken DiscreteGaussianLoss.power. Qed.
#[local] Hint Rewrite <- fast_power_exact : fast.

Derive fast_ways SuchThat (fast_ways = DiscreteGaussianLoss.ways) As fast_ways_exact.
Proof. quicken DiscreteGaussianLoss.ways. Qed.
#[local] Hint Rewrite <- fast_ways_exact : fast.

Derive fast_advance SuchThat (fast_advance = DiscreteGaussianLoss.advance) As fast_advance_exact.
Proof. quicken DiscreteGaussianLoss.advance. Qed.
#[local] Hint Rewrite <- fast_advance_exact : fast.

Derive fast_marked SuchThat (fast_marked = DiscreteGaussianLoss.marked) As fast_marked_exact.
Proof. quicken DiscreteGaussianLoss.marked. Qed.
#[local] Hint Rewrite <- fast_marked_exact : fast.

Derive fast_height_from SuchThat (fast_height_from = DiscreteGaussianLoss.height_from)
  As fast_height_from_exact.
Proof. quicken DiscreteGaussianLoss.height_from. Qed.
#[local] Hint Rewrite <- fast_height_from_exact : fast.

Derive fast_profile_at SuchThat (fast_profile_at = DiscreteGaussianLoss.profile_at)
  As fast_profile_at_exact.
Proof. quicken DiscreteGaussianLoss.profile_at. Qed.
#[local] Hint Rewrite <- fast_profile_at_exact : fast.

Derive fast_heights_of SuchThat (fast_heights_of = DiscreteGaussianLoss.heights_of)
  As fast_heights_of_exact.
Proof. quicken DiscreteGaussianLoss.heights_of. Qed.
#[local] Hint Rewrite <- fast_heights_of_exact : fast.

Derive fast_largest_heights SuchThat (fast_largest_heights = DiscreteGaussianLoss.largest_heights)
  As fast_largest_heights_exact.
Proof. quicken DiscreteGaussianLoss.largest_heights. Qed.
#[local] Hint Rewrite <- fast_largest_heights_exact : fast.

Derive fast_dots_of SuchThat (fast_dots_of = DiscreteGaussianLoss.dots_of) As fast_dots_of_exact.
Proof. quicken DiscreteGaussianLoss.dots_of. Qed.
#[local] Hint Rewrite <- fast_dots_of_exact : fast.

Derive fast_discrete_gaussian_loss SuchThat (fast_discrete_gaussian_loss = DiscreteGaussianLoss.discrete_gaussian_loss)
  As fast_discrete_gaussian_loss_exact.
Proof. quicken DiscreteGaussianLoss.discrete_gaussian_loss. Qed.
#[local] Hint Rewrite <- fast_discrete_gaussian_loss_exact : fast.

(** ** Laplace noise alone *)

Derive fast_all_plus SuchThat (fast_all_plus = all_plus) As fast_all_plus_exact.
Proof. quicken all_plus. Qed.
#[local] Hint Rewrite <- fast_all_plus_exact : fast.

Derive fast_horner_above SuchThat (fast_horner_above = horner_above) As fast_horner_above_exact.
Proof. quicken horner_above. Qed.
#[local] Hint Rewrite <- fast_horner_above_exact : fast.

Derive fast_contribution SuchThat (fast_contribution = contribution) As fast_contribution_exact.
Proof. quicken contribution. Qed.
#[local] Hint Rewrite <- fast_contribution_exact : fast.

Derive fast_spread SuchThat (fast_spread = LaplaceSums.spread) As fast_spread_exact.
Proof. quicken LaplaceSums.spread. Qed.
#[local] Hint Rewrite <- fast_spread_exact : fast.

Derive fast_knots SuchThat (fast_knots = knots) As fast_knots_exact.
Proof. quicken knots. Qed.
#[local] Hint Rewrite <- fast_knots_exact : fast.

Derive fast_contributions SuchThat (fast_contributions = contributions) As fast_contributions_exact.
Proof. quicken contributions. Qed.
#[local] Hint Rewrite <- fast_contributions_exact : fast.

Derive fast_group_sum SuchThat (fast_group_sum = group_sum) As fast_group_sum_exact.
Proof. quicken group_sum. Qed.
#[local] Hint Rewrite <- fast_group_sum_exact : fast.

Derive fast_laplace_delta_at_most SuchThat (fast_laplace_delta_at_most = laplace_delta_at_most) As fast_laplace_delta_at_most_exact.
Proof. quicken laplace_delta_at_most. Qed.
#[local] Hint Rewrite <- fast_laplace_delta_at_most_exact : fast.

(** ** The checker *)

Derive fast_root_odds SuchThat (fast_root_odds = root_odds) As fast_root_odds_exact.
Proof. quicken root_odds. Qed.
#[local] Hint Rewrite <- fast_root_odds_exact : fast.

Derive fast_any_of SuchThat (fast_any_of = any_of) As fast_any_of_exact.
Proof. quicken any_of. Qed.
#[local] Hint Rewrite <- fast_any_of_exact : fast.

Derive fast_contrast_losses SuchThat (fast_contrast_losses = contrast_losses)
  As fast_contrast_losses_exact.
Proof. quicken contrast_losses. Qed.
#[local] Hint Rewrite <- fast_contrast_losses_exact : fast.

Derive fast_share_met SuchThat (fast_share_met = share_met) As fast_share_met_exact.
Proof. quicken share_met. Qed.
#[local] Hint Rewrite <- fast_share_met_exact : fast.

Derive fast_whole_shift SuchThat (fast_whole_shift = whole_shift) As fast_whole_shift_exact.
Proof. quicken whole_shift. Qed.
#[local] Hint Rewrite <- fast_whole_shift_exact : fast.

Derive fast_whole_ratio SuchThat (fast_whole_ratio = whole_ratio) As fast_whole_ratio_exact.
Proof. quicken whole_ratio. Qed.
#[local] Hint Rewrite <- fast_whole_ratio_exact : fast.

Derive fast_share_drawn SuchThat (fast_share_drawn = share_drawn) As fast_share_drawn_exact.
Proof. quicken share_drawn. Qed.
#[local] Hint Rewrite <- fast_share_drawn_exact : fast.

Derive fast_laplace_sample_losses SuchThat (fast_laplace_sample_losses = laplace_sample_losses)
  As fast_laplace_sample_losses_exact.
Proof. quicken laplace_sample_losses. Qed.
#[local] Hint Rewrite <- fast_laplace_sample_losses_exact : fast.

Derive fast_losses_of SuchThat (fast_losses_of = losses_of) As fast_losses_of_exact.
Proof. quicken losses_of. Qed.
#[local] Hint Rewrite <- fast_losses_of_exact : fast.

Derive fast_losses_at SuchThat (fast_losses_at = losses_at) As fast_losses_at_exact.
Proof. quicken losses_at. Qed.
#[local] Hint Rewrite <- fast_losses_at_exact : fast.

Derive fast_each_loss SuchThat (fast_each_loss = each_loss) As fast_each_loss_exact.
Proof. quicken each_loss. Qed.
#[local] Hint Rewrite <- fast_each_loss_exact : fast.

Derive fast_normal_ratio SuchThat (fast_normal_ratio = normal_ratio) As fast_normal_ratio_exact.
Proof. quicken normal_ratio. Qed.
#[local] Hint Rewrite <- fast_normal_ratio_exact : fast.

Derive fast_lossless SuchThat (fast_lossless = lossless) As fast_lossless_exact.
Proof. quicken lossless. Qed.
#[local] Hint Rewrite <- fast_lossless_exact : fast.

Derive fast_mu_squared_above SuchThat (fast_mu_squared_above = mu_squared_above)
  As fast_mu_squared_above_exact.
Proof. quicken mu_squared_above. Qed.
#[local] Hint Rewrite <- fast_mu_squared_above_exact : fast.

Derive fast_summed SuchThat (fast_summed = summed) As fast_summed_exact.
Proof. quicken summed. Qed.
#[local] Hint Rewrite <- fast_summed_exact : fast.

Derive fast_normal_losses SuchThat (fast_normal_losses = normal_losses) As fast_normal_losses_exact.
Proof. quicken normal_losses. Qed.
#[local] Hint Rewrite <- fast_normal_losses_exact : fast.

Derive fast_composition_at_most SuchThat (fast_composition_at_most = composition_at_most)
  As fast_composition_at_most_exact.
Proof. quicken composition_at_most. Qed.
#[local] Hint Rewrite <- fast_composition_at_most_exact : fast.

Derive fast_privacy_loss SuchThat (fast_privacy_loss = privacy_loss) As fast_privacy_loss_exact.
Proof. quicken privacy_loss. Qed.
#[local] Hint Rewrite <- fast_privacy_loss_exact : fast.

Derive fast_laplace_groups SuchThat (fast_laplace_groups = laplace_groups) As fast_laplace_groups_exact.
Proof. quicken laplace_groups. Qed.
#[local] Hint Rewrite <- fast_laplace_groups_exact : fast.

Derive fast_bits_of_shifts SuchThat (fast_bits_of_shifts = bits_of_shifts) As fast_bits_of_shifts_exact.
Proof. quicken bits_of_shifts. Qed.
#[local] Hint Rewrite <- fast_bits_of_shifts_exact : fast.

Derive fast_laplace_at_most SuchThat (fast_laplace_at_most = laplace_at_most) As fast_laplace_at_most_exact.
Proof. quicken laplace_at_most. Qed.
#[local] Hint Rewrite <- fast_laplace_at_most_exact : fast.

Derive fast_laplace_losses SuchThat (fast_laplace_losses = laplace_losses) As fast_laplace_losses_exact.
Proof. quicken laplace_losses. Qed.
#[local] Hint Rewrite <- fast_laplace_losses_exact : fast.

Derive fast_sample_suffices SuchThat (fast_sample_suffices = sample_suffices)
  As fast_sample_suffices_exact.
Proof. quicken sample_suffices. Qed.
#[local] Hint Rewrite <- fast_sample_suffices_exact : fast.

Derive fast_of_parts SuchThat (fast_of_parts = of_parts) As fast_of_parts_exact.
Proof. quicken of_parts. Qed.
#[local] Hint Rewrite <- fast_of_parts_exact : fast.

Derive fast_follows SuchThat (fast_follows = follows) As fast_follows_exact.
Proof. quicken follows. Qed.
#[local] Hint Rewrite <- fast_follows_exact : fast.

Derive fast_all_nodes SuchThat (fast_all_nodes = all_nodes) As fast_all_nodes_exact.
Proof. quicken all_nodes. Qed.
#[local] Hint Rewrite <- fast_all_nodes_exact : fast.

Derive fast_judged SuchThat (fast_judged = judged) As fast_judged_exact.
Proof. quicken judged. Qed.
#[local] Hint Rewrite <- fast_judged_exact : fast.

Derive fast_check SuchThat (fast_check = check) As fast_check_exact.
Proof. quicken check. Qed.
