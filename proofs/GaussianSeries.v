(** The exact delta of Gaussian DP by a series with a bound on its rest, in mu^2 alone.

    exp(x^2/2) times the integral of exp(-t^2/2) over [0, x] is the sum of x^(2n+1)/(2n+1)!!. With
    a, b = eps/mu -+ mu/2, e^eps exp(-b^2/2) = exp(-a^2/2); hence
    delta = (1 - e^eps)/2 + exp(-a^2/2)/sqrt(2 pi) (S(b) - S(a)), where S(x) is that sum: x times a
    power series in x^2, and a^2, b^2, mu a and mu b are rational in mu^2 and eps. *)

From Coq Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta.
Open Scope R_scope.

(** s^n / (2n+1)!!, and the sum of the first n of them. *)
Fixpoint mills_term (s : R) (n : nat) : R :=
  match n with O => 1 | S n' => mills_term s n' * s / (2 * INR n' + 3) end.
Fixpoint mills_sum (s : R) (n : nat) : R :=
  match n with O => 0 | S n' => mills_sum s n' + mills_term s n' end.

Lemma odd_pos n : 0 < 2 * INR n + 3.
Proof. pose proof (pos_INR n); lra. Qed.

Lemma mills_term_nonneg s n : 0 <= s -> 0 <= mills_term s n.
Proof.
  intros Hs; induction n as [|n IH]; simpl; [lra|].
  pose proof (odd_pos n); apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; assumption].
Qed.

Lemma mills_term_le s s' n : 0 <= s <= s' -> mills_term s n <= mills_term s' n.
Proof.
  intros H; induction n as [|n IH]; simpl; [lra|].
  pose proof (mills_term_nonneg s n ltac:(lra)); pose proof (odd_pos n).
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; assumption|nra].
Qed.

Lemma is_derive_times (f g : R -> R) (x df dg : R) :
  is_derive f x df -> is_derive g x dg ->
  is_derive (fun x => f x * g x) x (df * g x + f x * dg).
Proof. intros Hf Hg; apply (is_derive_mult f g x df dg Hf Hg), Rmult_comm. Qed.

Lemma is_derive_square (x : R) : is_derive (fun x => x * x) x (2 * x).
Proof.
  replace (2 * x) with (1 * x + x * 1) by ring.
  apply (is_derive_times (fun x => x) (fun x => x)); apply (is_derive_id (K := R_AbsRing)).
Qed.

(** x^(2n+1) / (2n+1)!! differentiates to x times the one before. *)
Lemma is_derive_odd_term n x :
  is_derive (fun x => x * mills_term (x * x) n) x
    (match n with O => 1 | S m => x * (x * mills_term (x * x) m) end).
Proof.
  induction n as [|n IH].
  - apply is_derive_ext with (f := fun x => x);
      [intros t; symmetry; apply Rmult_1_r|apply (is_derive_id (K := R_AbsRing))].
  - pose proof (odd_pos n).
    apply is_derive_ext with
      (f := fun x => / (2 * INR n + 3) * ((x * x) * (x * mills_term (x * x) n))).
    { intros t; simpl; field; lra. }
    set (t := x * mills_term (x * x) n) in *.
    assert (D : is_derive (fun x => / (2 * INR n + 3) * ((x * x) * (x * mills_term (x * x) n))) x
                  (/ (2 * INR n + 3) * ((2 * x) * t
                   + (x * x) * match n with O => 1 | S m => x * (x * mills_term (x * x) m) end))).
    { apply is_derive_scal.
      apply (is_derive_times (fun x => x * x) (fun x => x * mills_term (x * x) n));
        [apply is_derive_square|exact IH]. }
    match type of D with is_derive _ _ ?v => replace (x * t) with v; [exact D|] end.
    assert (E : (x * x) * match n with O => 1 | S m => x * (x * mills_term (x * x) m) end
                = (2 * INR n + 1) * (x * t)).
    { unfold t; destruct n as [|m]; [simpl; ring|].
      rewrite S_INR; pose proof (odd_pos m); simpl mills_term; field; lra. }
    rewrite E; field; lra.
Qed.

Lemma is_derive_odd_sum n x :
  is_derive (fun x => x * mills_sum (x * x) (S n)) x (1 + x * (x * mills_sum (x * x) n)).
Proof.
  induction n as [|n IH].
  - apply is_derive_ext with (f := fun x => x);
      [intros t; simpl; rewrite Rplus_0_l; symmetry; apply Rmult_1_r|].
    simpl; replace (1 + x * (x * 0)) with 1 by ring; apply (is_derive_id (K := R_AbsRing)).
  - apply is_derive_ext with
      (f := fun x => plus (x * mills_sum (x * x) (S n)) (x * mills_term (x * x) (S n))).
    { intros t; unfold plus; simpl; ring. }
    replace (1 + x * (x * mills_sum (x * x) (S n)))
      with (plus (1 + x * (x * mills_sum (x * x) n)) (x * (x * mills_term (x * x) n)))
      by (unfold plus; simpl; ring).
    apply (is_derive_plus (K := R_AbsRing) (V := R_NormedModule));
      [exact IH|apply (is_derive_odd_term (S n))].
Qed.

Lemma is_derive_bell x : is_derive bell x (- x * bell x).
Proof. unfold bell, Rdiv; auto_derive; [exact I|field]. Qed.

Lemma is_derive_bell_sum n x :
  is_derive (fun x => bell x * (x * mills_sum (x * x) (S n))) x
    (bell x * (1 - x * (x * mills_term (x * x) n))).
Proof.
  pose proof (is_derive_times bell _ x _ _ (is_derive_bell x) (is_derive_odd_sum n x)) as D.
  match type of D with is_derive _ _ ?v =>
    replace (bell x * (1 - x * (x * mills_term (x * x) n))) with v; [exact D|] end.
  simpl; ring.
Qed.

Lemma bell_integral_0 : bell_integral 0 = 0.
Proof. exact (RInt_point (V := R_CompleteNormedModule) 0 bell). Qed.

(** From below by any partial sum. *)
Theorem bell_integral_lower n x :
  0 <= x -> bell x * (x * mills_sum (x * x) (S n)) <= bell_integral x.
Proof.
  intros Hx; pose proof (le_of_derive
    (fun x => bell_integral x - bell x * (x * mills_sum (x * x) (S n)))
    (fun x => bell x - bell x * (1 - x * (x * mills_term (x * x) n))) 0 x Hx) as M.
  pose proof bell_integral_0 as Z.
  cut (bell_integral 0 - bell 0 * (0 * mills_sum (0 * 0) (S n))
       <= bell_integral x - bell x * (x * mills_sum (x * x) (S n))).
  { rewrite Z; rewrite Rmult_0_l, Rmult_0_r; lra. }
  apply M.
  - intros y; apply (is_derive_minus (V := R_NormedModule));
      [apply is_derive_bell_integral|apply is_derive_bell_sum].
  - intros y Hy; pose proof (bell_pos y).
    pose proof (mills_term_nonneg (y * y) n ltac:(nra)).
    replace (bell y - bell y * (1 - y * (y * mills_term (y * y) n)))
      with (bell y * (y * y * mills_term (y * y) n)) by ring.
    apply Rmult_le_pos; [lra|apply Rmult_le_pos; nra].
Qed.

(** From above by a partial sum and twice the first term left out, once terms have begun to
    halve. *)
Theorem bell_integral_upper n x :
  0 <= x -> x * x <= INR n + 3 / 2 ->
  bell_integral x
    <= bell x * (x * mills_sum (x * x) (S n) + 2 * (x * mills_term (x * x) (S n))).
Proof.
  intros Hx Hn.
  set (u := fun x => bell x * (x * mills_sum (x * x) (S n))).
  set (w := fun x => bell x * (x * mills_term (x * x) (S n))).
  assert (Dw : forall y, is_derive w y
            (bell y * (y * (y * mills_term (y * y) n)) - y * w y)).
  { intros y; pose proof (is_derive_times bell _ y _ _ (is_derive_bell y)
                            (is_derive_odd_term (S n) y)) as D.
    match type of D with is_derive _ _ ?v =>
      replace (bell y * (y * (y * mills_term (y * y) n)) - y * w y) with v; [exact D|] end.
    unfold w; ring. }
  pose proof (le_of_derive (fun y => u y + 2 * w y - bell_integral y)
    (fun y => bell y * (1 - y * (y * mills_term (y * y) n))
              + 2 * (bell y * (y * (y * mills_term (y * y) n)) - y * w y) - bell y) 0 x Hx) as M.
  pose proof bell_integral_0 as Z.
  cut (u 0 + 2 * w 0 - bell_integral 0 <= u x + 2 * w x - bell_integral x).
  { unfold u, w; rewrite Z, !Rmult_0_l, Rmult_0_r; lra. }
  apply M.
  - intros y; apply (is_derive_minus (V := R_NormedModule)); [|apply is_derive_bell_integral].
    apply (is_derive_plus (V := R_NormedModule)); [apply is_derive_bell_sum|].
    apply is_derive_scal, Dw.
  - intros y Hy; pose proof (bell_pos y); pose proof (odd_pos n).
    pose proof (mills_term_nonneg (y * y) n ltac:(nra)) as Ht.
    set (t := mills_term (y * y) n) in *.
    replace (bell y * (1 - y * (y * t)) + 2 * (bell y * (y * (y * t)) - y * w y) - bell y)
      with (bell y * (y * y * t * (1 - 2 * (y * y) / (2 * INR n + 3))))
      by (unfold w; simpl; fold t; field; lra).
    assert (2 * (y * y) / (2 * INR n + 3) <= 1).
    { apply Rmult_le_reg_r with (2 * INR n + 3); [assumption|].
      replace (2 * (y * y) / (2 * INR n + 3) * (2 * INR n + 3)) with (2 * (y * y)) by (field; lra).
      assert (y * y <= x * x) by nra; lra. }
    apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [|lra].
    apply Rmult_le_pos; [nra|exact Ht].
Qed.
