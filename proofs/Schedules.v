(** The two noise schedules of PR-ADMM and the totals that its Theorems 3 and 4 state.

    Round k (k = 0, ..., K-1) costs rho_1 times a schedule factor; zCDP adds up over rounds. *)

From Coq Require Import Reals List Lra Lia Arith.
From Dpledger Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(** ** Periodic linear decay: the variance is multiplied by [decay] after every [period] rounds *)

Definition periodic_factor (decay : R) (period k : nat) : R := / decay ^ (k / period).

(** What the rounds really cost. *)
Definition periodic_total (rho1 decay : R) (period rounds : nat) : R :=
  total (seq 0 rounds) (fun k => rho1 * periodic_factor decay period k).

(** The closed form printed in PR-ADMM, Theorem 3, with J = rounds / period. *)
Definition periodic_published (rho1 decay : R) (period J : nat) : R :=
  rho1 * (INR period * (1 - decay ^ J) / (decay ^ (J - 1) - decay ^ J) - 1).

Lemma period_sum decay period j :
  (0 < period)%nat ->
  total (seq (period * j) period) (periodic_factor decay period) = INR period / decay ^ j.
Proof.
  intros Hp.
  rewrite (total_ext _ _ (fun _ => / decay ^ j)).
  - rewrite total_const, seq_length; reflexivity.
  - intros k Hk; apply in_seq in Hk; unfold periodic_factor.
    replace (k / period)%nat with j; [reflexivity|].
    apply Nat.div_unique with (r := (k - period * j)%nat); lia.
Qed.

(** The schedule sum: sum_(k<K) R^(-floor(k/Kp)) = Kp (1 - R^J) / (R^(J-1) - R^J), J = K/Kp. *)
Theorem periodic_schedule_sum (decay : R) (period J : nat) :
  0 < decay < 1 -> (0 < period)%nat -> (0 < J)%nat ->
  total (seq 0 (period * J)) (periodic_factor decay period)
    = INR period * (1 - decay ^ J) / (decay ^ (J - 1) - decay ^ J).
Proof.
  intros [H0 H1] Hp HJ.
  destruct J as [|J]; [lia|]; clear HJ.
  replace (S J - 1)%nat with J by lia.
  assert (Hpow : forall n, 0 < decay ^ n) by (intros; apply pow_lt; exact H0).
  induction J as [|J IH].
  - rewrite Nat.mul_1_r.
    pose proof (period_sum decay period 0 Hp) as E; rewrite Nat.mul_0_r in E.
    rewrite E; simpl; field; lra.
  - replace (period * S (S J))%nat with (period * S J + period)%nat by lia.
    rewrite seq_app, total_app, IH, Nat.add_0_l, period_sum by exact Hp.
    specialize (Hpow J); simpl in *; set (r := decay ^ J) in *.
    assert (r * (1 - decay) <> 0) by (apply Rmult_integral_contrapositive; lra).
    assert (decay * r * (1 - decay) <> 0) by (apply Rmult_integral_contrapositive; split; nra).
    field; repeat split; nra.
Qed.

(** The printed closed form understates the true cost by exactly rho_1 (PR-ADMM, Theorem 3). *)
Theorem periodic_published_understates (rho1 decay : R) (period J : nat) :
  0 < decay < 1 -> (0 < period)%nat -> (0 < J)%nat ->
  periodic_total rho1 decay period (period * J) = periodic_published rho1 decay period J + rho1.
Proof.
  intros H0 Hp HJ; unfold periodic_total, periodic_published.
  rewrite total_scal, periodic_schedule_sum by assumption; ring.
Qed.

(** Its smallest case: one noisy release is printed as costing nothing. *)
Corollary periodic_published_single_release (rho1 decay : R) :
  0 < decay < 1 -> periodic_published rho1 decay 1 1 = 0.
Proof. intros; unfold periodic_published; simpl; field; lra. Qed.

(** ** Iteration-based decay: sigma_(k+1)^2 = sigma_1^2 / (R_T k (k+1)) for k >= 1 *)

(** Round 0 costs rho_1: the printed scheme divides by zero there, so sigma_1 is used. *)
Definition iteration_factor (growth : R) (k : nat) : R :=
  match k with O => 1 | S _ => growth * (INR k * INR (k + 1)) end.

(** The schedule sum: 1 + R_T sum_(k=1)^(K-1) k (k+1) = (R_T K (K^2 - 1) + 3) / 3
    (PR-ADMM, Theorem 4, under the convention above). *)
Theorem iteration_schedule_sum (growth : R) (rounds : nat) :
  (0 < rounds)%nat ->
  total (seq 0 rounds) (iteration_factor growth)
    = (growth * INR rounds * (INR rounds ^ 2 - 1) + 3) / 3.
Proof.
  intros H; induction rounds as [|K IH]; [lia|clear H].
  rewrite total_seq_S; destruct K as [|K]; [simpl; field|].
  rewrite IH by lia; unfold iteration_factor.
  rewrite plus_INR, (S_INR (S K)), (S_INR K); simpl (INR 1); field.
Qed.

(** With the division by zero read as infinite variance, the summand 1 of round 0 disappears. *)
Corollary iteration_schedule_tail (growth : R) (rounds : nat) :
  total (seq 1 rounds) (iteration_factor growth)
    = growth * INR (rounds + 1) * (INR (rounds + 1) ^ 2 - 1) / 3.
Proof.
  assert (E := iteration_schedule_sum growth (S rounds)).
  specialize (E (Nat.lt_0_succ _)).
  change (seq 0 (S rounds)) with (0%nat :: seq 1 rounds) in E.
  replace (rounds + 1)%nat with (S rounds) by lia.
  cbn [total] in E; unfold iteration_factor at 1 in E; lra.
Qed.
