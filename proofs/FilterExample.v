(** [check_filter_sound] speaks of something: a run that stops when it is lucky, and spends more where
    it is not, within a budget. EndToEnd.v checks the certificate. *)

From Coq Require Import Reals List Lra Lia QArith Qreals.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Sensitivity Domination
  GaussianComposition Events PoissonSampling Certificate Checker Derivations Claims Example.
Import ListNotations.

(** One release of a mean of two numbers cut to [-1, 1] with noise 1, of a budget that has room for
    another with noise 2. *)
Definition filter_example : certificate := Certificate
  [GaussianStep ReplaceOne 1 (Leaf (MeanOfBounded 1 2) 1) 1]
  [Event 1 [1%positive] 1]
  [Node (GaussianGdp 1) [] (Claim ReplaceOne 1 (Gdp 1));
   Node EventsRule [1%positive] (Claim ReplaceOne 1 (Gdp 1));
   Node (Filter (5 # 4)) [2%positive] (Claim ReplaceOne 1 (Gdp (5 # 4)));
   Node (GdpApproxDp (1 # 100000) (49834 # 10000)) [3%positive]
     (Claim ReplaceOne 1 (ApproxDp (1 # 100000) (49834 # 10000)))].

Definition filter_budget : claim := Claim ReplaceOne 1 (Gdp (5 # 4)).

Open Scope R_scope.

Section LuckyRun.

Variable grid : list R.
Hypothesis grid_ascends : ascending m_infty grid.

(** Above the whole grid, and the run stops: nobody is read, and the message is the last one. *)
Definition lucky (c : Rbar * Rbar) : bool := match snd c with p_infty => true | _ => false end.

Definition stopped (h : list (Rbar * Rbar)) : bool :=
  match h with [] => false | c :: _ => lucky c end.

Definition later_std (h : list (Rbar * Rbar)) : R := match h with [] => 1 | _ => 2 end.

Definition lucky_outcomes (h : list (Rbar * Rbar)) : list (Rbar * Rbar) :=
  if stopped h then firstn 1 h else cells m_infty grid.

Definition lucky_law (data : nat -> list R) (h : list (Rbar * Rbar)) : Rbar * Rbar -> R :=
  if stopped h then fun _ => 1
  else rounded (mean_over cut_to_1 2 (data 1%nat) 0%nat) (later_std h).

Definition lucky_reads (h : list (Rbar * Rbar)) (j : nat) : bool :=
  negb (stopped h) && Nat.eqb 1 j.

Definition lucky_cost (h : list (Rbar * Rbar)) : R := / (later_std h * later_std h).

Lemma later_std_pos h : 0 < later_std h.
Proof. destruct h; simpl; lra. Qed.

Theorem filter_satisfied :
  filtered 0 filter_budget lucky_outcomes lucky_law lucky_reads lucky_cost 2.
Proof.
  split; unfold lucky_outcomes, lucky_law, lucky_reads.
  - intros data h; destruct (stopped h) eqn:S.
    + destruct h as [|c h]; [discriminate|]; split; [intros a _; lra|simpl; ring].
    + apply rounded_distribution; [apply later_std_pos|exact grid_ascends].
  - intros h j data part R a _; destruct (stopped h); [reflexivity|cbn [negb andb] in R].
    unfold with_part; rewrite R; reflexivity.
  - intros h; pose proof (later_std_pos h) as Hs.
    split; [left; apply Rinv_0_lt_compat; nra|]; intros j R.
    destruct (stopped h); [discriminate|cbn [negb andb] in R]; apply Nat.eqb_eq in R; subst j.
    intros x y [N _]; set (mean := mean_over cut_to_1 2) in *.
    apply below_profile_weaken with (2 := rounded_below_profile (mean (x 1%nat) 0%nat)
      (mean (y 1%nat) 0%nat) (later_std h) grid Hs grid_ascends).
    intros a b Ha Hb; apply profile_larger; [|exact Ha|exact Hb].
    assert (Near : Rabs (mean (x 1%nat) 0%nat - mean (y 1%nat) 0%nat) <= 1).
    { apply Rle_trans with (norm (sub (mean (x 1%nat)) (mean (y 1%nat)))).
      - replace (mean (x 1%nat) 0%nat - mean (y 1%nat) 0%nat)
          with (sub (mean (x 1%nat)) (mean (y 1%nat)) 0%nat) by (unfold sub; simpl; ring).
        apply entry_within_norm.
      - eapply Rle_trans; [apply (mean_sensitivity_replace cut_to_1 1 cut_to_1_bounded 2)|];
          [lra|exact N|lra]. }
    unfold lucky_cost; rewrite sqrt_inv, sqrt_square by lra.
    unfold Rdiv; rewrite Rabs_mult, (Rabs_right (/ _)) by (left; apply Rinv_0_lt_compat, Hs).
    split; [apply Rmult_le_pos; [apply Rabs_pos|left; apply Rinv_0_lt_compat, Hs]|].
    rewrite <- (Rmult_1_l (/ later_std h)) at 2.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Hs|exact Near].
  - intros j h I; apply transcripts_length in I.
    destruct h as [|c' [|c [|]]]; try discriminate.
    cbn [filter_budget claim_notion cost_of_notion spent]; unfold cost_to, lucky_cost.
    replace (Q2R (5 # 4)) with (5 / 4) by (unfold Q2R; simpl; lra).
    cbn [later_std]; destruct (negb (stopped [c]) && Nat.eqb 1 j), (negb (stopped []) && Nat.eqb 1 j);
      lra.
Qed.

End LuckyRun.
