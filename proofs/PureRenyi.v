(** Pure DP in zCDP: no outcome more than e^eps times as likely in either of two laws, then their
    Renyi divergence of order alpha is at most alpha eps^2 / 2 (Bun and Steinke 2016, Proposition
    1.4). The laws are mixtures of the two answers that are true with odds e^eps; the moment of these
    is cosh((alpha - 1/2) eps) / cosh(eps / 2), and cosh x / e^(x^2 / 2) falls from x = 0 on. *)

From Coq Require Import Reals List Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Pure Gaussian.
Import ListNotations.
Open Scope R_scope.

(** ** cosh x / e^(x^2 / 2) *)

Definition twice_cosh (x : R) : R := exp x + exp (- x).
Definition twice_sinh (x : R) : R := exp x - exp (- x).

Lemma sinh_at_most x : 0 <= x -> twice_sinh x <= x * twice_cosh x.
Proof.
  intros H.
  pose proof (le_of_derive (fun x => x * twice_cosh x - twice_sinh x) (fun x => x * twice_sinh x) 0 x H) as G.
  cbv beta in G; unfold twice_cosh, twice_sinh in *; rewrite Rmult_0_l, Ropp_0, exp_0 in G.
  enough (0 - (1 - 1) <= x * (exp x + exp (- x)) - (exp x - exp (- x))) by lra.
  apply G; [intros z; auto_derive; [exact I|ring]|].
  intros z Hz; apply Rmult_le_pos; [lra|]; pose proof (exp_le (- z) z ltac:(lra)); lra.
Qed.

Lemma cosh_ratio x y :
  0 <= x <= y -> twice_cosh y <= twice_cosh x * exp ((y * y - x * x) / 2).
Proof.
  intros [Hx Le].
  pose proof (le_of_derive (fun z => - (twice_cosh z * exp (- (z * z / 2))))
                (fun z => exp (- (z * z / 2)) * (z * twice_cosh z - twice_sinh z)) x y Le) as G.
  cbv beta in G; unfold twice_cosh, twice_sinh in G.
  assert (G' : - ((exp y + exp (- y)) * exp (- (y * y / 2))) >= - ((exp x + exp (- x)) * exp (- (x * x / 2)))).
  { apply Rle_ge, G.
    - intros z; change R in z; auto_derive; [exact I|]; unfold Rdiv; field.
    - intros z Hz; apply Rmult_le_pos; [left; apply exp_pos|].
      pose proof (sinh_at_most z ltac:(lra)); unfold twice_cosh, twice_sinh in *; lra. }
  unfold twice_cosh.
  replace ((y * y - x * x) / 2) with (y * y / 2 + - (x * x / 2)) by field; rewrite exp_plus.
  pose proof (exp_pos (y * y / 2)) as P.
  assert (One : exp (- (y * y / 2)) * exp (y * y / 2) = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  apply Rle_trans with ((exp y + exp (- y)) * exp (- (y * y / 2)) * exp (y * y / 2)).
  - rewrite Rmult_assoc, One; lra.
  - rewrite (Rmult_comm (exp (y * y / 2))), <- Rmult_assoc; apply Rmult_le_compat_r; lra.
Qed.

(** ** Two answers *)

Section Pair.

Context {A : Type} (l : list A) (p q : A -> R) (eps : R).
Hypotheses (Dp : distribution l p) (Dq : distribution l q) (He : 0 <= eps).
Hypothesis odds : forall a, In a l -> p a <= exp eps * q a /\ q a <= exp eps * p a.

Lemma odds_covered : covered l p q.
Proof.
  intros a I Z; destruct (odds a I) as [H _]; pose proof (proj1 Dp a I); rewrite Z in H; lra.
Qed.

(** The moment of the two answers. *)
Lemma odds_moment alpha :
  1 < alpha -> moment alpha l p q <= (exp (alpha * eps) + exp ((1 - alpha) * eps)) / (exp eps + 1).
Proof.
  intros Ha; set (E := exp eps); assert (One : 1 <= E) by (unfold E; rewrite <- exp_0; apply exp_le, He).
  destruct (Req_dec E 1) as [E1|N].
  - assert (Same : forall a, In a l -> p a = q a).
    { intros a I; destruct (odds a I) as [H1 H2]; fold E in H1, H2; rewrite E1 in H1, H2; lra. }
    assert (Z : eps = 0) by (apply exp_inv; rewrite exp_0; exact E1).
    rewrite Z, !Rmult_0_r, exp_0, E1; unfold moment; rewrite (total_ext l _ p).
    + rewrite (proj2 Dp); lra.
    + intros a I; rewrite <- Same by exact I; apply renyi_term_diag, Dp, I.
  - set (D := E - / E); assert (Inv : 0 < / E < 1).
    { split; [apply Rinv_0_lt_compat; lra|]; rewrite <- Rinv_1; apply Rinv_lt_contravar; lra. }
    assert (Ei : / E = exp (- eps)) by (unfold E; rewrite exp_Ropp; reflexivity).
    assert (PD : 0 < / D) by (apply Rinv_0_lt_compat; unfold D; lra).
    set (u := fun a => (p a - q a * / E) * / D); set (v := fun a => (E * q a - p a) * / D).
    assert (Up : forall a, In a l -> 0 <= u a).
    { intros a I; destruct (odds a I) as [_ H]; fold E in H; apply Rmult_le_pos; [|lra].
      apply Rmult_le_compat_r with (r := / E) in H; [|lra].
      rewrite (Rmult_comm E), Rmult_assoc, Rinv_r in H by lra; lra. }
    assert (Vp : forall a, In a l -> 0 <= v a).
    { intros a I; destruct (odds a I) as [H _]; fold E in H; apply Rmult_le_pos; lra. }
    assert (Term : forall a, In a l ->
              renyi_term alpha (p a) (q a) <= exp (alpha * eps) * u a + exp (- (alpha * eps)) * v a).
    { intros a I; specialize (Up a I); specialize (Vp a I).
      pose proof (renyi_term_total alpha [true; false]
                    (fun b : bool => if b then E * u a else / E * v a)
                    (fun b => if b then u a else v a) Ha) as T.
      unfold moment in T; cbn [total] in T; rewrite !Rplus_0_r in T.
      replace (E * u a + / E * v a) with (p a) in T by (unfold u, v, D; field; split; nra).
      replace (u a + v a) with (q a) in T by (unfold u, v, D; field; split; nra).
      assert (Lone : forall k w, 0 <= w -> renyi_term alpha (exp k * w) w = exp (alpha * k) * w).
      { intros k w Hw; rewrite <- (Rmult_1_l w) at 2.
        pose proof (exp_pos k); rewrite renyi_term_mult, (renyi_term_diag _ w) by lra.
        rewrite renyi_term_pos, ln_exp, ln_1 by lra; do 2 f_equal; ring. }
      eapply Rle_trans; [apply T|].
      - intros [|] _; apply Rmult_le_pos; lra.
      - intros [|] _; assumption.
      - intros [|] _ ->; ring.
      - right; rewrite Ei; change E with (exp eps); rewrite !Lone by assumption.
        do 3 f_equal; ring. }
    eapply Rle_trans; [apply total_le; exact Term|].
    rewrite total_plus, !total_scal.
    assert (Su : total l u = / (E + 1)).
    { unfold u; rewrite (total_ext l _ (fun a => / D * p a - / D * / E * q a)) by (intros; ring).
      rewrite total_minus, !total_scal, (proj2 Dp), (proj2 Dq); unfold D; field; split; nra. }
    assert (Sv : total l v = E * / (E + 1)).
    { unfold v; rewrite (total_ext l _ (fun a => / D * E * q a - / D * p a)) by (intros; ring).
      rewrite total_minus, !total_scal, (proj2 Dp), (proj2 Dq); unfold D; field; split; nra. }
    rewrite Su, Sv; right; replace ((1 - alpha) * eps) with (- (alpha * eps) + eps) by ring.
    rewrite exp_plus; fold E; field; lra.
Qed.

Theorem odds_rdp alpha : 1 < alpha -> rdp_pair l p q alpha (eps * eps / 2 * alpha).
Proof.
  intros Ha; split; [exact odds_covered|].
  eapply Rle_trans; [apply odds_moment, Ha|].
  pose proof (cosh_ratio (eps / 2) ((alpha - / 2) * eps)) as C; unfold twice_cosh in C.
  assert (P : 0 < exp (eps / 2)) by apply exp_pos; assert (P1 := exp_pos eps).
  assert (F1 : exp (alpha * eps) + exp ((1 - alpha) * eps)
          = exp (eps / 2) * (exp ((alpha - / 2) * eps) + exp (- ((alpha - / 2) * eps)))).
  { rewrite Rmult_plus_distr_l, <- !exp_plus; do 2 f_equal; field. }
  assert (F2 : exp eps + 1 = exp (eps / 2) * (exp (eps / 2) + exp (- (eps / 2)))).
  { rewrite Rmult_plus_distr_l, <- !exp_plus, Rplus_opp_r, exp_0; do 2 f_equal; field. }
  rewrite F1, F2; pose proof (exp_pos (- (eps / 2))).
  apply Rmult_le_reg_r with (exp (eps / 2) * (exp (eps / 2) + exp (- (eps / 2)))).
  { apply Rmult_lt_0_compat; lra. }
  unfold Rdiv at 1; rewrite (Rmult_assoc _ (/ _)), Rinv_l, Rmult_1_r by nra.
  replace ((alpha - 1) * (eps * eps / 2 * alpha))
    with (((alpha - / 2) * eps * ((alpha - / 2) * eps) - eps / 2 * (eps / 2)) / 2) by field.
  assert (0 <= (alpha - 1) * eps) by (apply Rmult_le_pos; lra).
  specialize (C ltac:(split; lra)); apply (Rmult_le_compat_l (exp (eps / 2))) in C; [|lra].
  eapply Rle_trans; [exact C|right; ring].
Qed.

End Pair.
