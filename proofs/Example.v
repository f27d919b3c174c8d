(** [check_sound] speaks of something: a certificate, a run that satisfies it, and neighbours and an
    event of that run for which the delta of its mu is exact. EndToEnd.v checks the certificate. *)

From Coq Require Import Reals List Lra Lia QArith Qreals Permutation FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian Pure GaussianDelta Sensitivity
  Nonnegative Vertical Rounding Descent PoissonSampling Certificate Checker Operations Derivations Soundness.
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

(** How a round samples that does not. *)
Definition whole : sampling R := EachWith 0.

(** Party 1 releases [held] of its records, or of a sample of them, once, with this noise; or the
    answer whether its first record is positive. *)
Definition one_message (law : randomness) (sampled : list nat) (how : sampling R)
  (held : list R -> euclidean 1) (grid : list R) : execution R := {|
  rounds := 1;
  next_mechanism := fun _ => 1%positive;
  reads := fun _ j => Nat.eqb 1 j;
  sampled_parties := fun _ => sampled;
  sampled_by := fun _ => how;
  dimension := fun _ => 1%nat;
  value := fun _ data => held (data 1%nat);
  unsampled := fun _ data => held (data 1%nat);
  answer := fun _ data => if Rle_dec (nth 0 (data 1%nat) 0) 0 then 0%nat else 1%nat;
  noise := fun _ => law;
  cuts := fun _ _ => grid |}.

Definition one_release := one_message (Normal 1).

Definition example_run : list R -> execution R := one_release [] whole (mean_over cut_to_1 2).

(** Other parties' records do not enter, and one event allows one message. *)
Lemma reads_party_1 law sampled how held grid V (f : list R -> V) :
  leaves_unread (one_message law sampled how held grid) [] (fun data => f (data 1%nat)).
Proof.
  intros j data part R; cbn [reads one_message] in R; unfold with_part; rewrite R; reflexivity.
Qed.

Lemma message_satisfies law sampled how held m todo grid :
  ascending m_infty grid ->
  match m with Repeated _ _ | Parties _ => False | _ => True end ->
  (forall h, round_of 0 (one_message law sampled how held grid) h (Some m)) ->
  satisfies 0 (Certificate [m] [Event 1 [1%positive] 1] todo)
    (one_message law sampled how held grid).
Proof.
  intros Hg Once Hm; split; [intros h before; exact Hg|exact Hm|].
  intros j h I; exists [].
  apply transcripts_length in I; destruct h as [|o [|o' h]]; try discriminate.
  destruct m; try contradiction;
    simpl; unfold allowed, concerns; simpl; destruct j as [|[|j]]; simpl; reflexivity.
Qed.

Lemma one_message_satisfies law sampled how held m todo grid :
  ascending m_infty grid ->
  match m with Repeated _ _ | Parties _ => False | _ => still m = false end ->
  noisy_round 0 (one_message law sampled how held grid) [] (Some m) ->
  satisfies 0 (Certificate [m] [Event 1 [1%positive] 1] todo)
    (one_message law sampled how held grid).
Proof.
  intros Hg Once Hm; apply message_satisfies; [exact Hg|destruct m; easy|].
  intros h; unfold round_of; replace (still m) with false by (destruct m; easy); exact Hm.
Qed.

Lemma one_release_satisfies sampled how held m moved squared d todo grid :
  ascending m_infty grid ->
  is_step 0 (one_release sampled how held grid) [] (Some m) moved squared d 1 ->
  derives 0 moved d (euclidean 1) held ->
  (forall rate, m = SampledStep (Poisson rate) ReplaceOne squared d 1 -> derives 0 AddRemoveOne d (euclidean 1) held) ->
  satisfies 0 (Certificate [m] [Event 1 [1%positive] 1] todo) (one_release sampled how held grid).
Proof.
  intros Hg Hm Hd More; apply one_message_satisfies; [exact Hg| |left].
  - destruct Hm as [[E _]|(drawn & E & _)]; injection E as ->; apply andb_false_r.
  - exists moved, squared, d, 1%Q.
    split; [left; split; [exact Hm|cbn; f_equal; symmetry; apply Q2R_number]|split; [|split]].
    + intros j data R; apply Nat.eqb_eq in R; subst j; exact Hd.
    + intros rate E j data R; injection E as E; apply Nat.eqb_eq in R; subst j; exact (More rate E).
    + apply reads_party_1.
Qed.

Lemma cut_to_1_bounded x : norm (cut_to_1 x) <= 1.
Proof.
  apply norm_le; [lra|]; unfold cut_to_1; simpl.
  unfold Rmax, Rmin; destruct (Rle_dec 1 x); destruct (Rle_dec (-1) _); nra.
Qed.

Lemma mean_derives squared :
  derives 0 ReplaceOne (Leaf (MeanOfBounded 1 2) squared) (euclidean 1) (mean_over cut_to_1 2).
Proof.
  apply (derives_mean 0 ReplaceOne 1 2 squared (euclidean 1) cut_to_1); try discriminate.
  intros x; rewrite Q2R_number; apply cut_to_1_bounded.
Qed.

Theorem example_satisfied grid :
  ascending m_infty grid -> satisfies 0 example (example_run grid).
Proof.
  intros Hg; apply one_release_satisfies with (2 := or_introl (conj eq_refl eq_refl));
    [exact Hg|apply mean_derives|discriminate].
Qed.

(** The same as a release of two parties, the second of which releases nothing; a record's own
    party's part counts once. *)
Definition parties_example : certificate := Certificate
  [GaussianStep ReplaceOne 1 (Leaf (MeanOfBounded 1 2) 1) 1; Parties [(1, [1]); (2, [])]%positive]
  [Event 2 [] 1]
  [Node (GaussianGdp 1) [] (Claim ReplaceOne 1 (Gdp 1));
   Node (PartiesRule 2) [1%positive] (Claim ReplaceOne 1 (Gdp 1));
   Node EventsRule [2%positive] (Claim ReplaceOne 1 (Gdp 1));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (Gdp 1))].

Theorem parties_satisfied grid :
  ascending m_infty grid -> satisfies 0 parties_example (example_run grid).
Proof.
  intros Hg; destruct (example_satisfied grid Hg) as [Ascend Steps Allowed].
  split; [exact Ascend|exact Steps|]; intros j h I.
  replace (allowed parties_example j) with (allowed example j); [apply Allowed, I|].
  destruct j as [|[|[|j]]]; reflexivity.
Qed.

(** The probability of an event of the only message's only number. *)
Lemma example_probability grid data event :
  prob (all_transcripts (example_run grid)) (run_law (example_run grid) data)
    (fun h => match h with [Numbers [c]] => event c | _ => false end)
  = prob (cells m_infty grid) (rounded (mean_over cut_to_1 2 (data 1%nat) 0%nat) 1) event.
Proof.
  unfold prob.
  transitivity (total (transcripts (next_messages (example_run grid)) 0) (fun h =>
    total (next_messages (example_run grid) h) (fun m =>
      if match m with Numbers [c] => event c | _ => false end
      then run_law (example_run grid) data (m :: h) else 0))).
  { etransitivity; [exact (total_transcripts_S (next_messages (example_run grid)) 0 _)|].
    apply total_ext; intros h Ih; destruct Ih as [<-|[]]; reflexivity. }
  cbn [transcripts total]; rewrite Rplus_0_r.
  unfold next_messages, vector_outcomes; cbn [noise dimension cuts example_run one_release one_message].
  rewrite total_map.
  etransitivity; [exact (total_transcripts_S (fun _ => cells m_infty grid) 0 _)|].
  cbn [transcripts total]; rewrite Rplus_0_r.
  apply total_ext; intros c _; destruct (event c); [|reflexivity].
  unfold run_law, next_law; cbn [run length value noise dimension sampled_parties on_samples of_numbers
    example_run one_release one_message]; unfold noisy_vector; cbn [run length].
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
  exists (fun h => match h with [Numbers [c]] => event c | _ => false end); split.
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

(** ** A minimiser over the records that are there *)

(** y^2/2 less the mean of the records times y: least at that mean. *)
Definition minimised_example : certificate := Certificate
  [GaussianStep AddRemoveOne 1 (Leaf (StronglyConvexArgmin 1 1 0 2) 1) 1]
  [Event 1 [1%positive] 1]
  [Node (GaussianGdp 1) [] (Claim AddRemoveOne 1 (Gdp 1));
   Node EventsRule [1%positive] (Claim AddRemoveOne 1 (Gdp 1))].

Definition reward (x : R) (y : euclidean 1) : R := - (cut_to_1 x 0%nat * y 0%nat).
Definition half_square (y : euclidean 1) : R := y 0%nat * y 0%nat / 2.

Lemma rewards data v : total data (fun z => - (cut_to_1 z 0%nat * v)) = - (vsum cut_to_1 data 0%nat * v).
Proof.
  induction data as [|x data IH]; cbn [total]; [simpl; ring|]; rewrite IH; simpl; ring.
Qed.

Lemma least_at_the_mean data :
  near_minimum 1 0 (objective_present reward half_square 2 data) (mean_present cut_to_1 2 data).
Proof.
  intros y; rewrite norm_sq; unfold objective_present, objective, reward, half_square, mean_present, mean_over.
  assert (Hn : 0 < Rmax (IZR 2) (INR (length data)))
    by (pose proof (Rmax_l (IZR 2) (INR (length data))); lra).
  set (n := Rmax _ _) in *; clearbody n.
  rewrite !rewards; simpl; right; field; lra.
Qed.

Theorem minimised_satisfied grid :
  ascending m_infty grid ->
  satisfies 0 minimised_example (one_release [] whole (mean_present cut_to_1 2) grid).
Proof.
  intros Hg; apply one_release_satisfies with (2 := or_introl (conj eq_refl eq_refl)); [exact Hg| |discriminate].
  apply (derives_argmin_present 0 AddRemoveOne 1 1 0 2 1 (euclidean 1) reward half_square
           (mean_present cut_to_1 2) (mean_present cut_to_1 2) eq_refl); rewrite ?Q2R_number.
  - intros x y y'; rewrite Rmult_1_l; eapply Rle_trans; [|apply (entry_within_norm (sub y y'))].
    pose proof (entry_within_norm (cut_to_1 x)) as Bx; pose proof (cut_to_1_bounded x) as Cx.
    replace (reward x y - reward x y')
      with (- (cut_to_1 x 0%nat * sub y y' 0%nat)) by (unfold reward, sub; simpl; ring).
    eapply Rle_trans; [apply Rle_abs|]; rewrite Rabs_Ropp, Rabs_mult.
    pose proof (Rabs_pos (sub y y' 0%nat)); nra.
  - exact least_at_the_mean.
  - intros data; rewrite sub_diag, norm_zero; lra.
Qed.

(** ** A coordinate for each record *)

(** Predictions of the point that is least in y^2/2, the squares of all records' products with it and
    the first one's product; and the slopes of linear losses. *)
Definition predicted_example : certificate := Certificate
  [GaussianStep ZeroOutOne (9 # 4) (Leaf (VerticalPredictions 1 1 1 1 1 0 3 0) (9 # 4)) 1]
  [Event 1 [1%positive] 1]
  [Node (GaussianGdp 1) [] (Claim ZeroOutOne 1 (Gdp (9 # 4)));
   Node EventsRule [1%positive] (Claim ZeroOutOne 1 (Gdp (9 # 4)))].

Definition dual_example : certificate := Certificate
  [GaussianStep ReplaceOne 4 (Leaf (LabelDual 1 2 0) 4) 1]
  [Event 1 [1%positive] 1]
  [Node (GaussianGdp 1) [] (Claim ReplaceOne 1 (Gdp 4));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (Gdp 4))].

Definition pulls_first (i : nat) : R := match i with O => 1 | _ => 0 end.
Definition entries : list R -> nat -> R := by_record (fun _ x => cut_to_1 x 0%nat).
Definition pull_of (l : list R) : R :=
  total (seq 0 (length l)) (fun i => pulls_first i * entries l i).
Definition squares_of (l : list R) : R := total (seq 0 (length l)) (fun i => entries l i * entries l i).
Definition least_on_ball (l : list R) : euclidean 1 := fun _ => - pull_of l / (squares_of l + 1).

Lemma cut_to_1_within x : Rabs (cut_to_1 x 0%nat) <= 1.
Proof. eapply Rle_trans; [apply entry_within_norm|apply cut_to_1_bounded]. Qed.

Lemma pull_within l : Rabs (pull_of l) <= 1.
Proof.
  unfold pull_of; destruct l as [|x l]; [simpl; rewrite Rabs_R0; lra|].
  cbn [length]; rewrite <- cons_seq; cbn [total]; rewrite total_zero.
  - rewrite Rplus_0_r; unfold pulls_first; rewrite Rmult_1_l; apply cut_to_1_within.
  - intros [|i] I; [apply in_seq in I; lia|unfold pulls_first; ring].
Qed.

Lemma ball_example l (y : euclidean 1) :
  ball_objective cut_to_1 pulls_first 1 half_square l y
  = pull_of l * y 0%nat + (squares_of l + 1) / 2 * (y 0%nat * y 0%nat).
Proof.
  unfold ball_objective, pull_of, squares_of, half_square.
  rewrite (total_ext _ _ (fun i => pulls_first i * entries l i * y 0%nat
             + y 0%nat * y 0%nat / 2 * (entries l i * entries l i))).
  - rewrite total_plus, total_scal, total_scal_r; field.
  - intros i _; unfold predictions, entries, by_record, cost_at; destruct (nth_error l i); simpl; field.
Qed.

Lemma least_is_least l :
  minimises_on_ball 1 (ball_objective cut_to_1 pulls_first 1 half_square l) (least_on_ball l).
Proof.
  assert (Hs : 0 <= squares_of l) by (apply total_nonneg; intros; apply Rle_0_sqr).
  pose proof (pull_within l) as B; apply Rabs_le_between in B.
  assert (E : least_on_ball l 0%nat * (squares_of l + 1) = - pull_of l)
    by (unfold least_on_ball; field; lra).
  split.
  - apply norm_le; [lra|]; simpl; set (y := least_on_ball l 0%nat) in *.
    assert (-1 <= y <= 1) by (split; nra); nra.
  - intros y _; rewrite !ball_example; set (y0 := least_on_ball l 0%nat) in *.
    assert (0 <= (squares_of l + 1) / 2 * ((y 0%nat - y0) * (y 0%nat - y0)))
      by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]); nra.
Qed.

Theorem predicted_satisfied grid :
  ascending m_infty grid ->
  satisfies 0 predicted_example
    (one_release [] whole (fun l => predictions cut_to_1 l (least_on_ball l)) grid).
Proof.
  intros Hg; apply one_release_satisfies with (2 := or_introl (conj eq_refl eq_refl)); [exact Hg| |discriminate].
  apply (derives_predictions 0 ZeroOutOne 1 1 1 1 1 0 3 0 (9 # 4) 1 (euclidean 1) cut_to_1 pulls_first
           half_square least_on_ball least_on_ball); rewrite ?Q2R_number; try discriminate.
  - intros x y t _; unfold half_square, sub; simpl; right; field.
  - exact cut_to_1_bounded.
  - intros _; apply functional_extensionality; intros i; unfold cut_to_1; simpl.
    rewrite Rmin_right, Rmax_right by lra; reflexivity.
  - intros [|i]; simpl; rewrite ?Rabs_R1, ?Rabs_R0; lra.
  - exact least_is_least.
  - intros l; rewrite sub_diag, norm_zero; unfold Rdiv; rewrite Rmult_0_l; lra.
Qed.

Theorem dual_satisfied grid :
  ascending m_infty grid -> satisfies 0 dual_example (one_release [] whole entries grid).
Proof.
  intros Hg; apply one_release_satisfies with (2 := or_introl (conj eq_refl eq_refl)); [exact Hg| |discriminate].
  apply (derives_label_dual 0 ReplaceOne 1 2 0 4 1 (fun x _ => cut_to_1 x 0%nat) (fun _ => 0) 1
           (fun _ x => cut_to_1 x 0%nat) (fun _ x => cut_to_1 x 0%nat)); rewrite ?Q2R_number; try discriminate.
  - lra.
  - intros; lra.
  - intros _ x y _; pose proof (cut_to_1_within x); pose proof (cut_to_1_within y).
    apply Rabs_le_between in H, H0; apply Rabs_le; lra.
  - intros i x; exists (- cut_to_1 x 0%nat); split; [reflexivity|ring].
  - intros i x; rewrite Rminus_diag_eq, Rabs_R0; [lra|reflexivity].
Qed.

(** ** A value that is computed in floating point *)

(** The same release, its mean computed in doubles: both records, their sum and the quotient are
    rounded. *)
Definition computed_example : certificate := Certificate
  [GaussianStep ReplaceOne (1000001 # 1000000)
     (Unary (Computed 1 1 (1 # 2 ^ 49)
               (RoundLeaf (FloatMean 1 2 1) 2 (1 # 2 ^ 50)))
        (1000001 # 1000000) (Leaf (MeanOfBounded 1 2) 1)) 1]
  [Event 1 [1%positive] 1]
  [Node (GaussianGdp 1) [] (Claim ReplaceOne 1 (Gdp (1000001 # 1000000)));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (Gdp (1000001 # 1000000)))].

Section Computed.

(** Rounding to the nearest double, or any other that the standard model allows. *)
Variable fl : R -> R.
Hypothesis fl_rounds : forall x, Rounding.rounds x (fl x).

(** Data are two records; what a program would hold of any other number of them is left exact. *)
Definition held_mean (l : list R) : euclidean 1 :=
  match l with
  | [x; y] => fun i => fl (fl (fl (cut_to_1 x i) + fl (cut_to_1 y i)) / 2)
  | _ => mean_over cut_to_1 2 l
  end.

Lemma fl_product x : rounds_product x (fl x).
Proof.
  pose proof (fl_rounds x) as H; pose proof underflow_pos.
  unfold Rounding.rounds in H; unfold rounds_product; lra.
Qed.

Definition divided_by (l : list R) : R :=
  match l with [_; _] => 2 | _ => INR (S (length l)) end.

Definition meant_row (l : list R) : nat -> R :=
  fun j => exactly (map (fun t => t / divided_by l) (map (fun v => v j) (map cut_to_1 l))).

Definition held_row (l : list R) : nat -> R :=
  match l with [_; _] => held_mean l | _ => meant_row l end.

Lemma exact_within n lost ts : 0 <= gamma_n n -> sum_within n lost ts (exactly ts).
Proof.
  intros G; unfold sum_within; rewrite Rminus_diag_eq, Rabs_R0 by reflexivity.
  pose proof (sizes_nonneg ts); pose proof (pos_INR lost); pose proof underflow_pos; nra.
Qed.

Lemma gamma_4_pos : 0 <= gamma_n 4.
Proof.
  unfold gamma_n, roundoff; change (INR 4) with (1 + 1 + 1 + 1).
  assert (0 < / IZR (2 ^ 53) <= / 8).
  { split; [apply Rinv_0_lt_compat, IZR_lt; reflexivity|].
    apply Rinv_le_contravar; [lra|apply IZR_le; vm_compute; discriminate]. }
  apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra].
Qed.

Lemma held_row_within l j :
  sum_within 4 2 (map (fun t => t / divided_by l) (map (fun v => v j) (map cut_to_1 l)))
    (held_row l j).
Proof.
  destruct l as [|x [|y [|z l]]]; try exact (exact_within 4 2 _ gamma_4_pos).
  apply (mean_within 3 _ (fl (fl (cut_to_1 x j) + fl (cut_to_1 y j))) 2).
  - change (INR 4) with (1 + 1 + 1 + 1); unfold roundoff.
    assert (/ IZR (2 ^ 53) <= / 8)
      by (apply Rinv_le_contravar; [lra|apply IZR_le; vm_compute; discriminate]); lra.
  - apply summed_deeper with 2%nat; [lia|].
    apply (summed_plus 1 [cut_to_1 x j] [cut_to_1 y j] (fl (cut_to_1 x j)) (fl (cut_to_1 y j)));
      [apply summed_term, fl_product|apply summed_term, fl_product|apply fl_rounds].
  - lra.
  - simpl; lra.
  - apply fl_product.
Qed.

Lemma held_row_computes :
  computes (RoundLeaf (FloatMean 1 2 1) 2 (1 # 2 ^ 50)) 1 meant_row held_row.
Proof.
  apply (computes_mean 1 2 1 2 (1 # 2 ^ 50) (fun l => map cut_to_1 l) divided_by held_row).
  - intros l; rewrite map_length.
    destruct l as [|x [|y [|z l]]]; cbn [divided_by length]; rewrite ?S_INR; cbn [INR];
      try lra; pose proof (pos_INR (length l)); lra.
  - intros l v I; apply in_map_iff in I as (x & <- & _); rewrite Q2R_number.
    apply cut_to_1_bounded.
  - intros l j _; apply held_row_within.
Qed.

(** Whatever the rounding, the run satisfies the certificate. *)
Theorem computed_satisfied grid :
  ascending m_infty grid -> satisfies 0 computed_example (one_release [] whole held_mean grid).
Proof.
  intros Hg; apply one_release_satisfies with (2 := or_introl (conj eq_refl eq_refl)); [exact Hg| |discriminate].
  apply (derives_computed 0 ReplaceOne 1 1 (1 # 2 ^ 49)
           (RoundLeaf (FloatMean 1 2 1) 2 (1 # 2 ^ 50)) _ (Leaf (MeanOfBounded 1 2) 1)
           (euclidean 1) (mean_over cut_to_1 2) held_mean 1 (fun _ => meant_row)
           (fun _ => held_row)); [apply mean_derives|intros k _; exact held_row_computes|].
  intros l; change (Pos.to_nat 1) with 1%nat; cbn [seq total]; rewrite Rplus_0_r.
  destruct l as [|x [|y [|z l]]];
    try (cbn [held_mean held_row]; rewrite !sub_diag, norm_zero; lra).
  apply Req_le; f_equal; f_equal; f_equal; apply functional_extensionality; intros i;
    unfold mean_over, meant_row, exactly; simpl; field.
Qed.

End Computed.

(** ** A step on a sample *)

(** One party releases [d] of numbers cut to [-1, 1] with noise 1, over a sample; what so many records
    at once lose by it. *)
Definition sampled_at (size : positive) (epsilon : Q) (drawn : scheme) (moved : relation)
  (d : derivation) : certificate :=
  let claimed := Claim moved size (ApproxDp (1 # 100000) epsilon) in
  Certificate
  [SampledStep drawn moved 1 d 1]
  [Event 1 [1%positive] 1]
  [Node (PrivacyLoss [(1, 1, O)%positive] [] size (1 # 4) [] 4 8 1000 (1 # 100000) epsilon) [] claimed;
   Node EventsRule [1%positive] claimed].

Definition sampled_example : scheme -> relation -> derivation -> certificate := sampled_at 1 (5 # 2).

(** A sum, over a sample that each record enters with probability 1/8; a record that is zeroed out is
    0. *)
Definition poisson_example (moved : relation) : certificate :=
  sampled_example (Poisson (1 # 8)) moved (Leaf (SumOfBounded 1) 1).

(** Two records of it at once. *)
Definition together_example (moved : relation) : certificate :=
  sampled_at 2 5 (Poisson (1 # 8)) moved (Leaf (SumOfBounded 1) 1).

(** Half of the sum, of which a record is replaced: each moves it by 1/2 at most. *)
Definition half_sum : derivation := Unary (Scaled (1 # 2)) 1 (Leaf (SumOfBounded 1) 4).
Definition replaced_at (size : positive) (epsilon : Q) : certificate :=
  sampled_at size epsilon (Poisson (1 # 8)) ReplaceOne half_sum.
Definition replaced_example : certificate := replaced_at 1 (5 # 2).

(** A mean of 2 records out of 16, and of 2 out of 32, each of the two any of them. *)
Definition batch_at (size : positive) (epsilon : Q) : certificate :=
  sampled_at size epsilon (FixedBatch 2 16) ReplaceOne (Leaf (MeanOfBounded 1 2) 1).
Definition batch_example : certificate := batch_at 1 (5 # 2).
Definition copies_at (size : positive) (epsilon : Q) : certificate :=
  sampled_at size epsilon (WithReplacement 2 32) ReplaceOne (Leaf (MeanOfBounded 1 2) 1).
Definition copies_example : certificate := copies_at 1 (5 # 2).

Lemma samples_party_1 law how held grid moved :
  let r := one_message law [1%nat] how held grid in
  (moved = ZeroOutOne -> null_is_absent 0 r []) -> samples_all 0 r [] moved.
Proof.
  intros r Absent; split; [|split; [|exact Absent]].
  - constructor; [intros []|constructor].
  - intros j; cbn [sampled_parties reads r one_message]; rewrite Nat.eqb_eq; split.
    + intros [E|[]]; exact E.
    + intros E; left; exact E.
Qed.

Lemma sample_satisfies size epsilon how drawn moved d held grid :
  ascending m_infty grid -> draws_as (one_release [1%nat] how held grid) [] drawn ->
  (moved = ZeroOutOne -> null_is_absent 0 (one_release [1%nat] how held grid) []) ->
  derives 0 moved d (euclidean 1) held ->
  match drawn, moved with Poisson _, ReplaceOne => derives 0 AddRemoveOne d (euclidean 1) held | _, _ => True end ->
  satisfies 0 (sampled_at size epsilon drawn moved d) (one_release [1%nat] how held grid).
Proof.
  intros Hg As Absent D More; apply one_release_satisfies with (moved := moved) (squared := 1%Q) (d := d);
    [exact Hg| |exact D|intros rate E; injection E as -> ->; exact More].
  right; exists drawn; split; [reflexivity|split; [exact As|apply samples_party_1, Absent]].
Qed.

Lemma zero_is_null : cut_to_1 0 = zero.
Proof.
  apply functional_extensionality; intros i; unfold cut_to_1; simpl.
  rewrite Rmin_right, Rmax_right by lra; reflexivity.
Qed.

(** What the sum moves by; a null record in it is as if it were not there. *)
Lemma sums_derive moved :
  derives 0 moved (Leaf (SumOfBounded 1) 1) (euclidean 1) (vsum cut_to_1) /\
  forall data before after,
  vsum cut_to_1 (with_part data 1 (before ++ 0 :: after) 1%nat)
  = vsum cut_to_1 (with_part data 1 (before ++ after) 1%nat).
Proof.
  split.
  - apply (derives_sum_of 0 moved 1 1 (euclidean 1) cut_to_1); [|intros _; apply zero_is_null].
    intros x; rewrite Q2R_number; apply cut_to_1_bounded.
  - intros data before after; rewrite !with_part_own, vsum_insert, zero_is_null.
    rewrite add_comm, add_zero; reflexivity.
Qed.

Lemma sums_satisfied size epsilon moved grid :
  ascending m_infty grid ->
  satisfies 0 (sampled_at size epsilon (Poisson (1 # 8)) moved (Leaf (SumOfBounded 1) 1))
    (one_release [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid).
Proof.
  intros Hg; destruct (sums_derive moved) as [D Absent]; apply sample_satisfies; [exact Hg|reflexivity| |exact D|].
  - intros _ j data before after E; apply Nat.eqb_eq in E; subst j; apply Absent.
  - destruct moved; try exact Logic.I; apply sums_derive.
Qed.

Theorem sampled_satisfied moved grid :
  ascending m_infty grid ->
  satisfies 0 (poisson_example moved)
    (one_release [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid).
Proof. apply sums_satisfied. Qed.

Theorem together_satisfied moved grid :
  ascending m_infty grid ->
  satisfies 0 (together_example moved)
    (one_release [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid).
Proof. apply sums_satisfied. Qed.

Lemma half_sum_derives moved : moved <> ZeroOutOne ->
  derives 0 moved half_sum (euclidean 1) (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)).
Proof.
  intros Hm; apply (derives_scaled 0 moved (1 # 2) 1 (Leaf (SumOfBounded 1) 4) (euclidean 1) (vsum cut_to_1)).
  apply (derives_sum_of 0 moved 1 4 (euclidean 1) cut_to_1); [|contradiction].
  intros x; rewrite Q2R_number; apply cut_to_1_bounded.
Qed.

Theorem replaced_satisfied size epsilon grid :
  ascending m_infty grid ->
  satisfies 0 (replaced_at size epsilon)
    (one_release [1%nat] (EachWith (Q2R (1 # 8))) (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)) grid).
Proof.
  intros Hg; apply sample_satisfies; [exact Hg|reflexivity|discriminate|apply half_sum_derives..]; discriminate.
Qed.

Theorem batch_satisfied size epsilon grid :
  ascending m_infty grid ->
  satisfies 0 (batch_at size epsilon) (one_release [1%nat] (OutOf 2 16 0) (mean_over cut_to_1 2) grid).
Proof.
  intros Hg; apply sample_satisfies; [exact Hg|split; reflexivity|discriminate|apply mean_derives|exact Logic.I].
Qed.

Theorem copies_satisfied size epsilon grid :
  ascending m_infty grid ->
  satisfies 0 (copies_at size epsilon) (one_release [1%nat] (Again 2 32 0) (mean_over cut_to_1 2) grid).
Proof.
  intros Hg; apply sample_satisfies; [exact Hg|split; reflexivity|discriminate|apply mean_derives|exact Logic.I].
Qed.

(** What is concluded is none of a run's business. *)
Definition concluding (c : certificate) (steps : list node) : certificate :=
  Certificate (mechanisms c) (events c) steps.

Lemma concluding_satisfied {X} (null : X) c steps r : satisfies null c r -> satisfies null (concluding c steps) r.
Proof. intros [Grids Rounds Allowed]; split; assumption. Qed.

(** The sum, and the mean, in Renyi DP of order 6. *)
Definition by_renyi (moved : relation) (of : rule) (tau epsilon : Q) : list node := [
  Node of [] (Claim moved 1 (Rdp 6 tau));
  Node EventsRule [1%positive] (Claim moved 1 (Rdp 6 tau));
  Node (RdpApproxDp (1 # 100000) epsilon) [2%positive] (Claim moved 1 (ApproxDp (1 # 100000) epsilon))].

Definition poisson_renyi_example (moved : relation) : certificate :=
  concluding (poisson_example moved)
    (by_renyi moved (PoissonRdp 1 6 (58745 # 100000)) (58745 # 100000) (23494 # 10000)).
Definition batch_renyi_example : certificate :=
  concluding batch_example
    (by_renyi ReplaceOne (FixedBatchRdp 1 6 (7369 # 10000)) (7369 # 10000) (24989 # 10000)).

Theorem poisson_renyi_satisfied moved grid :
  ascending m_infty grid ->
  satisfies 0 (poisson_renyi_example moved) (one_release [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid).
Proof. intros Hg; apply concluding_satisfied, sums_satisfied, Hg. Qed.

Theorem batch_renyi_satisfied grid :
  ascending m_infty grid ->
  satisfies 0 batch_renyi_example (one_release [1%nat] (OutOf 2 16 0) (mean_over cut_to_1 2) grid).
Proof. intros Hg; apply concluding_satisfied, batch_satisfied, Hg. Qed.

(** A sum over all records beside one over a sample of them, with noise 1, of which 3/4 hide the
    former: Poisson samples, or where records are replaced batches of 2 out of 16. *)
Definition mixture_example (moved : relation) (d : derivation) (epsilon : Q) : certificate :=
  let claimed := Claim moved 1 (ApproxDp (1 # 100000) epsilon) in
  Certificate
  [MixtureStep moved 1 d 1 d (1 # 8) 1]
  [Event 1 [1%positive] 1]
  [Node (PrivacyLoss [(1, 1, O)%positive] [(1%positive, 3 # 4)] 1 (1 # 4) [] 4 8 1000 (1 # 100000) epsilon) []
     claimed;
   Node EventsRule [1%positive] claimed].

Lemma mixture_satisfies moved d how held epsilon grid :
  ascending m_infty grid -> derives 0 moved d (euclidean 1) held ->
  (moved = ReplaceOne -> linear_in_records d = true -> derives 0 AddRemoveOne d (euclidean 1) held) ->
  match how with
  | EachWith q => q = Q2R (1 # 8) /\
      (moved = ZeroOutOne -> null_is_absent 0 (one_message (Beside 1) [1%nat] how held grid) [])
  | OutOf size records _ => moved <> AddRemoveOne /\ (0 < size <= records)%nat /\ INR size / INR records <= Q2R (1 # 8)
  | Again _ _ _ => False
  end ->
  satisfies 0 (mixture_example moved d epsilon) (one_message (Beside 1) [1%nat] how held grid).
Proof.
  intros Hg D More As; apply one_message_satisfies; [exact Hg|reflexivity|right; right; right; right; left].
  exists moved, 1%Q, d, 1%Q, d, (1 # 8)%Q, 1%Q.
  split; [reflexivity|split; [cbn; f_equal; symmetry; apply Q2R_number|split; [split; [exact As|split]|split; [|split; [|split]]]]].
  - constructor; [intros []|constructor].
  - intros j; cbn [sampled_parties reads one_message]; rewrite Nat.eqb_eq; split.
    + intros [E|[]]; exact E.
    + intros E; left; exact E.
  - intros j data E; apply Nat.eqb_eq in E; subst j; exact D.
  - intros j data E; apply Nat.eqb_eq in E; subst j; exact D.
  - intros Er Linear j data E; apply Nat.eqb_eq in E; subst j; exact (More Er Linear).
  - split; apply reads_party_1.
Qed.

Theorem mixture_satisfied moved epsilon grid :
  ascending m_infty grid ->
  satisfies 0 (mixture_example moved (Leaf (SumOfBounded 1) 1) epsilon)
    (one_message (Beside 1) [1%nat] (EachWith (Q2R (1 # 8))) (vsum cut_to_1) grid).
Proof.
  intros Hg; destruct (sums_derive moved) as [D Absent]; apply mixture_satisfies; [exact Hg|exact D|intros; apply sums_derive|split; [reflexivity|]].
  intros _ j data before after E; apply Nat.eqb_eq in E; subst j; apply Absent.
Qed.

Theorem mixture_of_batch_satisfied epsilon grid :
  ascending m_infty grid ->
  satisfies 0 (mixture_example ReplaceOne half_sum epsilon)
    (one_message (Beside 1) [1%nat] (OutOf 2 16 0) (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)) grid).
Proof.
  intros Hg; apply mixture_satisfies;
    [exact Hg|apply half_sum_derives; discriminate|intros; apply half_sum_derives; discriminate|split; [discriminate|split; [lia|]]].
  rewrite !INR_IZR_INZ; unfold Q2R; simpl; lra.
Qed.

(** Of a number whose derivation says nothing of one record, the sample is told. *)
Theorem mixture_told_satisfied epsilon grid :
  ascending m_infty grid ->
  satisfies 0 (mixture_example ReplaceOne (Leaf (Declared 1) 1) epsilon)
    (one_message (Beside 1) [1%nat] (EachWith (Q2R (1 # 8))) (fun l => scale (Q2R (1 # 2)) (vsum cut_to_1 l)) grid).
Proof.
  intros Hg; apply mixture_satisfies; [exact Hg| |discriminate|split; [reflexivity|discriminate]].
  apply derives_declared, sensitivity_weaken with (Rabs (Q2R (1 # 2)) * (2 * 1)).
  - apply sensitivity_scale, sum_sensitivity_replace, cut_to_1_bounded.
  - unfold Q2R; simpl; rewrite Rabs_right; lra.
Qed.

(** Two samples of it, under one noise. *)
Definition accumulated_example (moved : relation) (size : positive) (epsilon : Q) : certificate :=
  let claimed := Claim moved size (ApproxDp (1 # 100000) epsilon) in
  Certificate
  [AccumulatedStep moved 1 (Leaf (SumOfBounded 1) 1) (1 # 8) 2 1]
  [Event 1 [1%positive] 1]
  [Node (PrivacyLoss [(1, 1, O)%positive] [] size (1 # 4) [] 4 8 1000 (1 # 100000) epsilon) [] claimed;
   Node EventsRule [1%positive] claimed].

Definition accumulated_run : list R -> execution R :=
  one_message (Accumulated (Q2R (1 # 8)) 1 2) [1%nat] whole (vsum cut_to_1).

Theorem accumulated_satisfied moved size epsilon grid :
  ascending m_infty grid -> satisfies 0 (accumulated_example moved size epsilon) (accumulated_run grid).
Proof.
  intros Hg; apply one_message_satisfies; [exact Hg|reflexivity|right; right; right; right; right].
  destruct (sums_derive moved) as [D Absent].
  exists moved, 1%Q, (Leaf (SumOfBounded 1) 1), (1 # 8)%Q, 2%positive, 1%Q.
  split; [reflexivity|split; [cbn; f_equal; symmetry; apply Q2R_number|split; [|split]]].
  - apply samples_party_1; intros _ j data before after E; apply Nat.eqb_eq in E; subst j; apply Absent.
  - intros j data E; apply Nat.eqb_eq in E; subst j; exact D.
  - apply reads_party_1.
Qed.

(** ** Laplace noise, and an answer *)

(** How many records are positive, with noise of scale 2. *)
Definition laplace_example (size : positive) (cost : rule) (claimed : notion) : certificate := Certificate
  [LaplaceStep AddRemoveOne 1 (Leaf HistogramL1 1) 2]
  [Event 1 [1%positive] 1]
  [Node cost [] (Claim AddRemoveOne size claimed);
   Node EventsRule [1%positive] (Claim AddRemoveOne size claimed)].

Definition is_positive (x : R) : euclidean 1 := fun _ => if Rle_dec x 0 then 0 else 1.

Definition laplace_run : list R -> execution R := one_message (Laplace 2) [] whole (vsum is_positive).

Lemma counts_derive (signs : nat -> R) (data : nat -> list R) :
  (forall i, Rabs (signs i) = 1) ->
  derives 0 AddRemoveOne (Leaf HistogramL1 1) (euclidean 1)
    (fun part (_ : nat) => total (seq 0 1) (fun i =>
       signs i * vsum is_positive (with_part data 1 part 1%nat) i)).
Proof.
  intros Hs; set (signed := fun (x : R) (_ : nat) => signs 0%nat * is_positive x 0%nat).
  replace (fun part _ => _) with (vsum (V := euclidean 1) signed).
  - apply (derives_histogram 0 AddRemoveOne 1 (euclidean 1) signed); intros x.
    apply norm_le; [lra|]; unfold signed, is_positive; simpl.
    pose proof (Hs 0%nat) as S; destruct (Rle_dec x 0); [lra|].
    unfold Rabs in S; destruct (Rcase_abs (signs 0%nat)); nra.
  - apply functional_extensionality; intros part; apply functional_extensionality; intros i.
    unfold with_part; cbn [Nat.eqb seq total]; rewrite Rplus_0_r.
    induction part as [|x part IH]; [simpl; ring|].
    simpl in *; rewrite IH; unfold signed; ring.
Qed.

Theorem laplace_satisfied size cost claimed grid :
  ascending m_infty grid -> satisfies 0 (laplace_example size cost claimed) (laplace_run grid).
Proof.
  intros Hg; apply one_message_satisfies; [exact Hg|reflexivity|right; left].
  exists AddRemoveOne, 1%Q, (Leaf HistogramL1 1), 2%Q.
  split; [left; split; [reflexivity|split; [cbn; f_equal; symmetry; apply Q2R_number|reflexivity]]|split].
  - intros j data signs R Hs; apply Nat.eqb_eq in R; subst j; apply counts_derive, Hs.
  - apply (reads_party_1 (Laplace 2) [] whole (vsum is_positive) grid _ (vsum is_positive)).
Qed.

(** The same of a sample that each record enters with probability 1/8, for so many records at once. *)
Definition laplace_sample_at (size : positive) (delta : Q) : certificate := Certificate
  [SampledLaplaceStep (Poisson (1 # 8)) AddRemoveOne 1 (Leaf HistogramL1 1) 2]
  [Event 1 [1%positive] 1]
  [Node (PoissonPure 1 (1 # 12)) [] (Claim AddRemoveOne 1 (PureDp (1 # 12)));
   Node EventsRule [1%positive] (Claim AddRemoveOne 1 (PureDp (1 # 12)));
   Node (PrivacyLoss [(1, 1, O)%positive] [] size (1 # 256) [] 32 12 1000 delta (1 # 20)) []
     (Claim AddRemoveOne size (ApproxDp delta (1 # 20)));
   Node EventsRule [3%positive] (Claim AddRemoveOne size (ApproxDp delta (1 # 20)))].

Definition laplace_sample_run : list R -> execution R :=
  one_message (Laplace 2) [1%nat] (EachWith (Q2R (1 # 8))) (vsum is_positive).

Theorem laplace_sample_satisfied size delta grid :
  ascending m_infty grid -> satisfies 0 (laplace_sample_at size delta) (laplace_sample_run grid).
Proof.
  intros Hg; apply one_message_satisfies; [exact Hg|reflexivity|right; left].
  exists AddRemoveOne, 1%Q, (Leaf HistogramL1 1), 2%Q.
  split; [right; left; exists (Poisson (1 # 8)); split; [reflexivity|split; [|split; [|split; [|split]]]]|split].
  - cbn; f_equal; symmetry; apply Q2R_number.
  - reflexivity.
  - constructor; [intros []|constructor].
  - intros j; cbn [sampled_parties reads one_message laplace_sample_run]; rewrite Nat.eqb_eq; split.
    + intros [E|[]]; exact E.
    + intros E; left; exact E.
  - discriminate.
  - intros j data signs R Hs; apply Nat.eqb_eq in R; subst j; apply counts_derive, Hs.
  - apply (reads_party_1 (Laplace 2) [1%nat] (EachWith (Q2R (1 # 8))) (vsum is_positive) grid _ (vsum is_positive)).
Qed.

(** In l1 a total of numbers of size at most [bound] is a linear map of a histogram. *)
Theorem total_in_l1 {X} (null : X) r (f : X -> R) (bound s s' : Q) (sign : R) :
  0 < Q2R bound -> (forall x, Rabs (f x) <= Q2R bound) -> Rabs sign = 1 ->
  derives null r (Unary (LinearMap bound) s (Leaf HistogramL1 s')) (euclidean 1)
    (fun part _ => sign * total part f).
Proof.
  intros Hb Hf Hs; set (share := fun (x : X) (_ : nat) => f x / Q2R bound).
  replace (fun part _ => _)
    with (fun part => scale (s := euclidean 1) (sign * Q2R bound) (vsum (V := euclidean 1) share part)).
  - apply (derives_linear null r bound s (Leaf HistogramL1 s') (euclidean 1) (euclidean 1)
             (vsum (V := euclidean 1) share) (scale (s := euclidean 1) (sign * Q2R bound))).
    + apply (derives_histogram null r s' (euclidean 1) share); intros x; apply norm_le; [lra|].
      specialize (Hf x); apply Rabs_le_between in Hf; unfold share; simpl.
      assert (-1 <= f x / Q2R bound <= 1).
      { split; [apply Rle_div_r|apply Rle_div_l]; lra. }
      nra.
    + intros x y; apply functional_extensionality; intros i; unfold sub; simpl; ring.
    + intros x; rewrite norm_scale, Rabs_mult, Hs, Rabs_right by lra; lra.
  - apply functional_extensionality; intros part; apply functional_extensionality; intros i.
    simpl; induction part as [|x part IH]; [simpl; ring|].
    simpl in *; rewrite Rmult_plus_distr_l, IH; unfold share; field; lra.
Qed.

(** One party counts its positive records, with discrete noise. *)
Definition discrete_example : certificate := Certificate
  [DiscreteLaplaceStep AddRemoveOne 1 (Leaf HistogramL1 1) 2]
  [Event 1 [1%positive] 1]
  [Node (DiscreteLaplacePure 1 (1 # 2)) [] (Claim AddRemoveOne 1 (PureDp (1 # 2)));
   Node EventsRule [1%positive] (Claim AddRemoveOne 1 (PureDp (1 # 2)))].

Definition discrete_run : list R -> execution R :=
  one_message (DiscreteLaplace 2) [] whole (vsum is_positive).

(** What counts is a whole number. *)
Lemma counts_whole law grid :
  whole_values (one_message law [] whole (vsum is_positive) grid) [].
Proof.
  intros data i; cbn [value one_message].
  induction (data 1%nat) as [|x l [n E]]; [exists 0%Z; reflexivity|].
  exists ((if Rle_dec x 0 then 0 else 1) + n)%Z; rewrite plus_IZR, <- E.
  simpl; unfold is_positive; destruct (Rle_dec x 0); reflexivity.
Qed.

Theorem discrete_satisfied grid :
  ascending m_infty grid -> satisfies 0 discrete_example (discrete_run grid).
Proof.
  intros Hg; apply one_message_satisfies; [exact Hg|reflexivity|right; left].
  exists AddRemoveOne, 1%Q, (Leaf HistogramL1 1), 2%Q.
  split; [right; right; split; [reflexivity|split]|split].
  - cbn; f_equal; symmetry; apply Q2R_number.
  - apply counts_whole.
  - intros j data signs R Hs; apply Nat.eqb_eq in R; subst j; apply counts_derive, Hs.
  - apply (reads_party_1 (DiscreteLaplace 2) [] whole (vsum is_positive) grid _ (vsum is_positive)).
Qed.

(** The same count with discrete Gaussian noise. *)
Definition discrete_gaussian_example : list node -> certificate := Certificate
  [DiscreteGaussianStep AddRemoveOne 1 (Leaf Histogram 1) 2]
  [Event 1 [1%positive] 1].

Definition by_zcdp : list node := [
  Node (DiscreteGaussianZcdp 1) [] (Claim AddRemoveOne 1 (Zcdp (1 # 8)));
  Node EventsRule [1%positive] (Claim AddRemoveOne 1 (Zcdp (1 # 8)));
  Node (ZcdpRdp 10) [2%positive] (Claim AddRemoveOne 1 (Rdp 10 (10 # 8)));
  Node (RdpApproxDp (1 # 100000) (2169 # 1000)) [3%positive]
    (Claim AddRemoveOne 1 (ApproxDp (1 # 100000) (2169 # 1000)))].

(** Its losses are multiples of an eighth. *)
Definition by_its_loss : list node :=
  let claimed := Claim AddRemoveOne 1 (ApproxDp (1 # 100000) (20114 # 10000)) in
  [Node (PrivacyLoss [(1, 1, O)%positive] [] 1 (1 # 8) [] 32 12 1000 (1 # 100000) (20114 # 10000)) [] claimed;
   Node EventsRule [1%positive] claimed].

Definition discrete_gaussian_run : list R -> execution R :=
  one_message (DiscreteGaussian 2) [] whole (vsum is_positive).

Theorem discrete_gaussian_satisfied claimed grid :
  ascending m_infty grid -> satisfies 0 (discrete_gaussian_example claimed) (discrete_gaussian_run grid).
Proof.
  intros Hg; apply one_message_satisfies; [exact Hg|reflexivity|left].
  exists AddRemoveOne, 1%Q, (Leaf Histogram 1), 2%Q; split; [right; split; [reflexivity|split]|split; [|split]].
  - cbn; f_equal; symmetry; apply Q2R_number.
  - apply counts_whole.
  - intros j data R; apply Nat.eqb_eq in R; subst j.
    apply (derives_histogram_l2 0 AddRemoveOne 1 (euclidean 1) is_positive); intros x.
    + apply norm_le; [lra|]; unfold is_positive; simpl; destruct (Rle_dec x 0); lra.
    + intros y; unfold is_positive; simpl; destruct (Rle_dec x 0), (Rle_dec y 0); lra.
  - discriminate.
  - apply (reads_party_1 (DiscreteGaussian 2) [] whole (vsum is_positive) grid _ (vsum is_positive)).
Qed.

(** Whether the first record is positive, told truly three times in four. *)
Definition response_example : certificate := Certificate
  [ResponseStep (3 # 4) 2]
  [Event 1 [1%positive] 1]
  [Node (RandomisedResponsePure 1 (10987 # 10000)) [] (Claim ReplaceOne 1 (PureDp (10987 # 10000)));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (PureDp (10987 # 10000)))].

Definition response_run : execution R :=
  one_message (Response (3 / 4) 2) [] whole (mean_over cut_to_1 2) [].

Theorem response_satisfied : satisfies 0 response_example response_run.
Proof.
  apply one_message_satisfies; [exact Logic.I|reflexivity|right; right; left].
  exists (3 # 4)%Q, 2%positive; split; [reflexivity|split; [|split]].
  - cbn; f_equal; unfold Q2R; simpl; lra.
  - intros data; cbn; destruct (Rle_dec _ 0); lia.
  - apply (reads_party_1 (Response (3 / 4) 2) [] whole (mean_over cut_to_1 2) [] nat
             (fun l => if Rle_dec (nth 0 l 0) 0 then 0%nat else 1%nat)).
Qed.

(** Answers whose probabilities are known only to move by a factor of exp(1/2) at most: here whether
    the first record is positive, told truly three times in five. *)
Definition pure_example : certificate := Certificate
  [PureStep ReplaceOne (1 # 4) (Leaf (Declared (1 # 2)) (1 # 4)) 1]
  [Event 1 [1%positive] 1]
  [Node (PureStepRule 1 (1 # 2)) [] (Claim ReplaceOne 1 (PureDp (1 # 2)));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (PureDp (1 # 2)));
   Node (PrivacyLoss [(1, 1, O)%positive] [] 1 (1 # 64) [] 32 12 1000 (63 # 1000) (2 # 5)) []
     (Claim ReplaceOne 1 (ApproxDp (63 # 1000) (2 # 5)));
   Node EventsRule [3%positive] (Claim ReplaceOne 1 (ApproxDp (63 # 1000) (2 # 5)))].

Definition told (l : list R) : euclidean 1 := fun a =>
  if Rle_dec (nth 0 l 0) 0 then match a with O => 3 / 5 | _ => 2 / 5 end
  else match a with O => 2 / 5 | _ => 3 / 5 end.

Definition pure_run : execution R := one_message (Weighted 2) [] whole told [].

Theorem pure_satisfied : satisfies 0 pure_example pure_run.
Proof.
  assert (Two : forall l a, told l a = 2 / 5 \/ told l a = 3 / 5).
  { intros l a; unfold told; destruct (Rle_dec _ _), a; auto. }
  apply one_message_satisfies; [exact Logic.I|reflexivity|right; right; right; left].
  exists ReplaceOne, (1 # 4)%Q, (Leaf (Declared (1 # 2)) (1 # 4)), 1%Q, 2%nat.
  split; [reflexivity|split; [reflexivity|split; [|split; [|split]]]].
  - intros data; split; [intros a _; cbn; destruct (Two (data 1%nat) a) as [-> | ->]; lra|].
    cbn [value one_message seq total]; unfold told; destruct (Rle_dec _ _); lra.
  - intros j x y a _ _ Z; exfalso; cbn in Z; destruct (Two (x 1%nat) a); lra.
  - intros j data a R; apply Nat.eqb_eq in R; subst j; apply derives_declared; intros u v _.
    cbn [value one_message]; rewrite !with_part_own, !Q2R_number.
    assert (Half : Q2R (1 # 2) = 1 / 2) by (unfold Q2R; simpl; lra); rewrite Half.
    assert (L : ln (2 / 5) <= ln (3 / 5) <= ln (2 / 5) + 1 / 2).
    { split; [apply ln_le; lra|]; rewrite <- (ln_exp (1 / 2)), <- ln_mult by (try apply exp_pos; lra).
      apply ln_le; [lra|]; pose proof (exp_ineq1_le (1 / 2)); lra. }
    apply norm_le; [lra|]; unfold sub; simpl.
    destruct (Two u a) as [-> | ->], (Two v a) as [-> | ->]; nra.
  - apply (reads_party_1 (Weighted 2) [] whole told [] _ told).
Qed.

(** ** A step that needs no noise *)

(** Whether a party has any records is told as it is; whose they are does not change it. *)
Definition still_example : certificate := Certificate
  [GaussianStep ReplaceOne 0 (Leaf (Declared 0) 0) 0]
  [Event 1 [1%positive] 1]
  [Node (GaussianGdp 1) [] (Claim ReplaceOne 1 (Gdp 0));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (Gdp 0));
   Node (GdpApproxDp (1 # 100000) 0) [2%positive] (Claim ReplaceOne 1 (ApproxDp (1 # 100000) 0))].

Definition count_of (l : list R) : nat -> R := fun _ => INR (length l).
Definition whether (u : nat -> R) (a : nat) : R :=
  if Req_EM_T (u 0%nat) 0 then match a with O => 1 | _ => 0 end else match a with O => 0 | _ => 1 end.

Definition still_run : execution R := one_message (Weighted 2) [] whole (fun l => whether (count_of l)) [].

Theorem still_satisfied : satisfies 0 still_example still_run.
Proof.
  apply message_satisfies; [exact Logic.I|exact Logic.I|intros h].
  exists (one_release [] whole count_of []), 2%nat, whether.
  split; [left|split; [reflexivity|split; [reflexivity|split; [reflexivity|split]]]].
  - exists ReplaceOne, 0%Q, (Leaf (Declared 0) 0), 1%Q.
    split; [left; split; [left; split; reflexivity|cbn; f_equal; symmetry; apply Q2R_number]|split; [|split]].
    + intros j data R; apply Nat.eqb_eq in R; subst j; apply derives_declared; intros u v A.
      cbn [value one_release one_message]; unfold count_of; rewrite !with_part_own; replace (length v) with (length u)
        by (destruct A; rewrite !app_length; reflexivity).
      rewrite sub_diag, norm_zero, Q2R_number; lra.
    + discriminate.
    + apply (reads_party_1 (Normal 1) [] whole count_of [] _ count_of).
  - intros row; split; unfold whether; destruct (Req_EM_T _ _);
      [intros [|a] _; lra|intros [|a] _; lra|simpl; lra|simpl; lra].
  - intros u v E; unfold whether; rewrite (E 0%nat) by (cbn [dimension one_release one_message]; lia); reflexivity.
Qed.

(** ** A sample that nobody is drawn into *)

Definition empty_example : certificate := Certificate
  [SampledStep (Poisson 0) AddRemoveOne 1 (Leaf (SumOfBounded 1) 1) 1]
  [Event 1 [1%positive] 1]
  [Node (PoissonRdp 1 2 0) [] (Claim AddRemoveOne 1 (Rdp 2 0));
   Node EventsRule [1%positive] (Claim AddRemoveOne 1 (Rdp 2 0));
   Node (RdpApproxDp (1 # 100000) 0) [2%positive] (Claim AddRemoveOne 1 (ApproxDp (1 # 100000) 0))].

Definition empty_run : list R -> execution R := one_release [1%nat] (EachWith (Q2R 0)) (vsum cut_to_1).

Theorem empty_satisfied grid : ascending m_infty grid -> satisfies 0 empty_example (empty_run grid).
Proof.
  intros Hg; apply (one_release_satisfies _ _ _ _ AddRemoveOne 1 (Leaf (SumOfBounded 1) 1)); [exact Hg| | |discriminate].
  - right; exists (Poisson 0); split; [reflexivity|split; [reflexivity|split; [|split; [|discriminate]]]].
    + constructor; [intros []|constructor].
    + intros j; cbn [reads sampled_parties empty_run one_release one_message]; rewrite Nat.eqb_eq; split; [intros [E|[]]; auto|left; auto].
  - apply derives_sum_of; [intros x; rewrite Q2R_number; apply cut_to_1_bounded|discriminate].
Qed.


(** No smaller eps is true of it than ln 3: an answer is three times as likely on a neighbour. *)
Theorem response_attained :
  exists x y h, one_part replace_one x y /\ In h (all_transcripts response_run) /\
  run_law response_run x h = 3 * run_law response_run y h /\ 0 < run_law response_run y h.
Proof.
  exists (fun _ => [1]), (with_part (fun _ => [1]) 1 [-1]), [Answer 1]; split; [|split].
  - exists 1%nat; split; [exact (replaced [] [] 1 (-1))|].
    intros i N; unfold with_part; destruct (Nat.eqb_spec i 1); congruence.
  - simpl; auto.
  - unfold run_law, next_law; cbn [run noise response_run one_message of_answers answer].
    change (with_part (fun _ => [1]) 1 [-1] 1%nat) with [-1]; cbn [nth].
    destruct (Rle_dec 1 0); [lra|]; destruct (Rle_dec (-1) 0); [|lra].
    unfold response; simpl; lra.
Qed.
