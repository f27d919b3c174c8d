(** The conversion of zCDP that papers print: the best order alpha in
    rho alpha + ln(1/delta) / (alpha - 1) is 1 + sqrt(ln(1/delta) / rho). *)

From Coq Require Import Reals Lra Psatz.
Open Scope R_scope.

(** The epsilon that order [alpha] of rho-zCDP gives (Mironov 2017, Proposition 3). *)
Definition epsilon_at (rho delta alpha : R) : R := rho * alpha + ln (/ delta) / (alpha - 1).

(** rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016, Proposition 1.3). *)
Definition epsilon_zcdp (rho delta : R) : R := rho + 2 * sqrt (rho * ln (/ delta)).

Definition best_order (rho delta : R) : R := 1 + sqrt (ln (/ delta) / rho).

Lemma ln_inv_delta_pos delta : 0 < delta < 1 -> 0 < ln (/ delta).
Proof.
  intros H; rewrite ln_Rinv by lra.
  assert (ln delta < ln 1) by (apply ln_increasing; lra).
  rewrite ln_1 in *; lra.
Qed.

Lemma best_order_gt_1 rho delta : 0 < rho -> 0 < delta < 1 -> 1 < best_order rho delta.
Proof.
  intros Hr Hd; unfold best_order.
  assert (0 < sqrt (ln (/ delta) / rho)); [|lra].
  apply sqrt_lt_R0, Rdiv_lt_0_compat; [now apply ln_inv_delta_pos|exact Hr].
Qed.

(** With s = alpha - 1 and u = sqrt(L/rho): rho s + L/s - 2 rho u = rho (s - u)^2 / s. *)
Lemma epsilon_gap rho delta alpha :
  0 < rho -> 0 < delta < 1 -> 1 < alpha ->
  epsilon_at rho delta alpha - epsilon_zcdp rho delta
    = rho * (alpha - best_order rho delta) ^ 2 / (alpha - 1).
Proof.
  intros Hr Hd Ha; pose proof (ln_inv_delta_pos delta Hd) as HL.
  unfold epsilon_at, epsilon_zcdp, best_order; set (L := ln (/ delta)) in *.
  assert (EL : L = rho * sqrt (L / rho) ^ 2).
  { rewrite pow2_sqrt by (apply Rlt_le, Rdiv_lt_0_compat; lra); field; lra. }
  assert (ES : sqrt (rho * L) = rho * sqrt (L / rho)).
  { rewrite EL at 1; replace (rho * (rho * sqrt (L / rho) ^ 2)) with (Rsqr (rho * sqrt (L / rho)))
      by (unfold Rsqr; ring).
    apply sqrt_Rsqr, Rmult_le_pos; [lra|apply sqrt_pos]. }
  rewrite ES; set (u := sqrt (L / rho)) in *; rewrite EL; field; lra.
Qed.

(** No order gives a smaller epsilon than rho + 2 sqrt(rho ln(1/delta)). *)
Theorem zcdp_epsilon_lower (rho delta alpha : R) :
  0 < rho -> 0 < delta < 1 -> 1 < alpha -> epsilon_zcdp rho delta <= epsilon_at rho delta alpha.
Proof.
  intros Hr Hd Ha; pose proof (epsilon_gap rho delta alpha Hr Hd Ha) as E.
  assert (0 <= rho * (alpha - best_order rho delta) ^ 2 / (alpha - 1)); [|lra].
  apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat; lra].
  apply Rmult_le_pos; [lra|apply pow2_ge_0].
Qed.

(** The order 1 + sqrt(ln(1/delta) / rho) attains it. *)
Theorem zcdp_epsilon_attained (rho delta : R) :
  0 < rho -> 0 < delta < 1 ->
  epsilon_at rho delta (best_order rho delta) = epsilon_zcdp rho delta.
Proof.
  intros Hr Hd; pose proof (best_order_gt_1 rho delta Hr Hd).
  pose proof (epsilon_gap rho delta (best_order rho delta) Hr Hd H) as E.
  replace (rho * (best_order rho delta - best_order rho delta) ^ 2 / (best_order rho delta - 1))
    with 0 in E by (field; lra).
  lra.
Qed.

(** No other order attains it. *)
Theorem zcdp_best_order_unique (rho delta alpha : R) :
  0 < rho -> 0 < delta < 1 -> 1 < alpha ->
  epsilon_at rho delta alpha = epsilon_zcdp rho delta -> alpha = best_order rho delta.
Proof.
  intros Hr Hd Ha Heq; pose proof (epsilon_gap rho delta alpha Hr Hd Ha) as E.
  destruct (Req_dec (alpha - best_order rho delta) 0) as [Z|NZ]; [lra|exfalso].
  assert (0 < rho * (alpha - best_order rho delta) ^ 2 / (alpha - 1)); [|lra].
  apply Rdiv_lt_0_compat; [|lra].
  apply Rmult_lt_0_compat; [exact Hr|rewrite <- Rsqr_pow2; apply Rsqr_pos_lt; exact NZ].
Qed.
