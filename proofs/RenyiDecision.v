(** Decisions of Renyi DP of Gaussian steps on samples at whole orders, by intervals: the sums that
    bound the moments, term by term, from each coefficient and each power the next. *)

From Coq Require Import Reals QArith Qreals ZArith List Lra Lia Psatz Bool.
From Dpledger Require Import Sums Finite SampledRenyi Enclosure.
Import ListNotations.
Open Scope R_scope.

(** What lies below 2^-300 is not told from it: sums need not be lined up over thousands of bits. *)
Definition clipped (p : Mantissa.precision) (xi : I.type) : I.type :=
  let small := I.join (I.fromZ p 0) (rational p (1 # 2 ^ 300)) in
  if I.subset xi small then small else xi.

Lemma encloses_clipped p xi x : encloses xi x -> encloses (clipped p xi) x.
Proof.
  intros H; unfold clipped; cbv zeta; destruct (I.subset _ _) eqn:S; [|exact H].
  exact (I.subset_correct xi _ _ H S).
Qed.

Section Sums.

Variables (p : Mantissa.precision) (ratio w : I.type).

(** Sum of the terms from [k] on, of which [left] follow, over a number: [c] is a coefficient over it, the next one is
    (n - k) / (k + 1) [ratio] times as large, [e] a power, the next one [u] times as large, and [u] grows by
    [w]. *)
Fixpoint terms (left : nat) (k : Z) (c e u : I.type) : I.type :=
  match left with
  | O => clipped p (I.mul p c e)
  | S less =>
      I.add p (clipped p (I.mul p c e))
        (terms less (k + 1)
           (I.div p (I.mul p (I.mul p (I.fromZ p (Z.of_nat left)) ratio) c) (I.fromZ p (k + 1)))
           (I.mul p e u) (I.mul p u w))
  end.

Variables (y x m over : R).
Hypotheses (Hy : 0 < y) (Ratio : encloses ratio (x / y)) (Power : encloses w (exp m)).

Lemma terms_sound left k c e u : let n := (k + left)%nat in
  encloses c (coefficient y x n k / over) -> encloses e (normal_power m k) -> encloses u (exp (INR k * m)) ->
  encloses (terms left (Z.of_nat k) c e u)
    (total (seq k (S left)) (fun j => coefficient y x n j * normal_power m j) / over).
Proof.
  revert k c e u; induction left as [|left IH]; intros k c e u n C E U; cbn [terms].
  - cbn [seq total]; rewrite Rplus_0_r; apply encloses_clipped; unfold Rdiv; rewrite Rmult_assoc, (Rmult_comm (normal_power m k)), <- Rmult_assoc.
    apply encloses_mul; assumption.
  - change (seq k (S (S left))) with (k :: seq (S k) (S left)); cbn [total]; rewrite Rdiv_plus_distr.
    apply encloses_add.
    { apply encloses_clipped; unfold Rdiv; rewrite Rmult_assoc, (Rmult_comm (normal_power m k)), <- Rmult_assoc.
      apply encloses_mul; assumption. }
    replace (Z.of_nat k + 1)%Z with (Z.of_nat (S k)) by lia; unfold n in *; clear n.
    replace (k + S left)%nat with (S k + left)%nat in * by lia; apply IH.
    + assert (Pk : 0 < INR k + 1) by (pose proof (pos_INR k); lra).
      replace (coefficient y x (S k + left) (S k) / over)
        with (IZR (Z.of_nat (S left)) * (x / y) * (coefficient y x (S k + left) k / over) / IZR (Z.of_nat (S k))).
      * apply encloses_div; [apply not_0_IZR; lia|apply encloses_mul; [apply encloses_mul; [apply encloses_integer|exact Ratio]|exact C]|apply encloses_integer].
      * pose proof (coefficient_next y x (S k + left) k) as N; rewrite <- !INR_IZR_INZ, (S_INR k).
        replace (INR (S left)) with (INR (S k + left) - INR k) by (rewrite plus_INR, !S_INR; ring).
        unfold Rdiv at 4; replace (coefficient y x (S k + left) (S k))
          with ((INR (S k + left) - INR k) * x * coefficient y x (S k + left) k * / ((INR k + 1) * y))
          by (rewrite <- N; field; lra).
        unfold Rdiv; rewrite (Rmult_comm (INR k + 1)), Rinv_mult; ring.
    + replace (normal_power m (S k)) with (normal_power m k * exp (INR k * m)); [apply encloses_mul; assumption|].
      unfold normal_power; rewrite <- exp_plus, S_INR; f_equal; field.
    + replace (exp (INR (S k) * m)) with (exp (INR k * m) * exp m); [apply encloses_mul; assumption|].
      rewrite <- exp_plus, S_INR; f_equal; ring.
Qed.

End Sums.

Fixpoint power (p : Mantissa.precision) (xi : I.type) (n : nat) : I.type :=
  match n with O => I.fromZ p 1 | S n' => I.mul p xi (power p xi n') end.

Lemma power_sound p xi x n : encloses xi x -> encloses (power p xi n) (x ^ n).
Proof. intros H; induction n as [|n IH]; cbn [power pow]; [apply encloses_integer|apply encloses_mul; assumption]. Qed.

(** e^((n - 1) eps). *)
Definition allowed_moment (n : positive) (eps : Q) (p : Mantissa.precision) : I.type :=
  I.exp p (rational p (inject_Z (Zpos n - 1) * eps)).

Lemma allowed_moment_encloses n eps p : encloses (allowed_moment n eps p) (exp ((INR (Pos.to_nat n) - 1) * Q2R eps)).
Proof.
  apply encloses_exp.
  replace ((INR (Pos.to_nat n) - 1) * Q2R eps) with (Q2R (inject_Z (Zpos n - 1) * eps)); [apply encloses_rational|].
  rewrite Q2R_mult, Q2R_integer, minus_IZR, INR_IZR_INZ, positive_nat_Z; reflexivity.
Qed.

Definition one_at_most (enclosed : Mantissa.precision -> I.type) : bool :=
  decide (fun bits => let p := Mantissa.PtoP bits in at_most_zero (I.sub p (enclosed p) (I.fromZ p 1))) 128 4.

Lemma one_at_most_sound enclosed n eps x :
  (forall p, encloses (enclosed p) (x / exp ((INR (Pos.to_nat n) - 1) * Q2R eps))) -> one_at_most enclosed = true ->
  x <= exp ((INR (Pos.to_nat n) - 1) * Q2R eps).
Proof.
  intros E H; apply decide_true in H as [bits H]; cbv zeta in H; pose proof (exp_pos ((INR (Pos.to_nat n) - 1) * Q2R eps)) as P.
  apply at_most_zero_sound with (x := x / exp ((INR (Pos.to_nat n) - 1) * Q2R eps) - 1) in H.
  - apply Rmult_le_reg_r with (/ exp ((INR (Pos.to_nat n) - 1) * Q2R eps)); [apply Rinv_0_lt_compat, P|].
    rewrite Rinv_r by lra; unfold Rdiv in H; lra.
  - apply encloses_sub; [apply E|apply encloses_integer].
Qed.

(** The moments over that; m = (sensitivity / noise)^2. *)
Definition poisson_moment (m rate : Q) (n : positive) (eps : Q) (p : Mantissa.precision) : I.type :=
  if Qle_bool 1 rate
  then clipped p (I.div p (I.exp p (rational p ((Zpos n * (Zpos n - 1) # 2) * m))) (allowed_moment n eps p))
  else
    terms p (rational p (rate / (1 - rate))) (I.exp p (rational p m)) (Pos.to_nat n) 0
      (I.div p (power p (rational p (1 - rate)) (Pos.to_nat n)) (allowed_moment n eps p)) (I.fromZ p 1) (I.fromZ p 1).

Definition batch_moment (m share : Q) (n : positive) (eps : Q) (p : Mantissa.precision) : I.type :=
  let grown := I.exp p (rational p m) in
  let most := allowed_moment n eps p in
  let pairs := ((Zpos n * (Zpos n - 1) # 2) * (share * share))%Q in
  let second :=
    if Qle_bool m (9 # 13) then I.mul p (I.fromZ p 4) (I.sub p grown (I.fromZ p 1)) else I.mul p (I.fromZ p 2) grown in
  let first := I.add p (clipped p (I.div p (I.fromZ p 1) most)) (clipped p (I.div p (I.mul p (rational p pairs) second) most)) in
  match Pos.to_nat n with
  | S (S (S rest)) =>
      let third := I.exp p (rational p (3 * m)) in
      I.add p first (I.mul p (I.fromZ p 2)
        (terms p (rational p share) grown rest 3
           (I.div p (rational p ((Zpos n * (Zpos n - 1) * (Zpos n - 2) # 6) * (share * share * share))) most) third third))
  | _ => first
  end.

Lemma one_number q : Q2R (1 - q) = 1 - Q2R q.
Proof. rewrite Q2R_minus; unfold Q2R at 1; simpl; field. Qed.

Lemma pairs_number n d : Q2R (n # d) = IZR n / IZR (Zpos d).
Proof. unfold Q2R; reflexivity. Qed.

Lemma poisson_moment_encloses m rate n eps p : 0 < Q2R rate <= 1 ->
  encloses (poisson_moment m rate n eps p)
    (mean_power (1 - Q2R rate) (Q2R rate) (Pos.to_nat n) (Q2R m) / exp ((INR (Pos.to_nat n) - 1) * Q2R eps)).
Proof.
  intros Hr; pose proof (allowed_moment_encloses n eps p) as Most.
  pose proof (exp_pos ((INR (Pos.to_nat n) - 1) * Q2R eps)) as P; set (most := exp _) in *.
  unfold poisson_moment; destruct (Qle_bool 1 rate) eqn:G.
  - apply Qle_bool_R in G; replace (Q2R 1) with 1 in G by (unfold Q2R; simpl; field).
    assert (One : Q2R rate = 1) by lra.
    replace (mean_power _ _ _ _) with (normal_power (Q2R m) (Pos.to_nat n)).
    + apply encloses_clipped, encloses_div; [lra| |exact Most]; unfold normal_power.
      replace (INR (Pos.to_nat n) * (INR (Pos.to_nat n) - 1) / 2 * Q2R m) with (Q2R ((Zpos n * (Zpos n - 1) # 2) * m));
        [apply encloses_exp, encloses_rational|].
      rewrite Q2R_mult, pairs_number, mult_IZR, minus_IZR, INR_IZR_INZ, positive_nat_Z; reflexivity.
    + rewrite One; unfold mean_power; replace (1 - 1) with 0 by ring.
      assert (Only : forall k j, coefficient 0 1 k j = if Nat.eqb j k then 1 else 0).
      { induction k as [|k IH]; intros [|j]; cbn [coefficient Nat.eqb]; try reflexivity; [ring|].
        rewrite IH, Rmult_0_l; ring. }
      rewrite total_seq_S, total_zero, Only, Nat.eqb_refl; [ring|].
      intros j I; apply in_seq in I; rewrite Only; destruct (Nat.eqb_spec j (Pos.to_nat n)); [lia|ring].
  - apply Qle_bool_R_false in G; replace (Q2R 1) with 1 in G by (unfold Q2R; simpl; field).
    unfold mean_power; change 0%Z with (Z.of_nat 0).
    apply (terms_sound p _ _ (1 - Q2R rate) (Q2R rate) (Q2R m) most); try lra.
    + replace (Q2R rate / (1 - Q2R rate)) with (Q2R (rate / (1 - rate)));
        [apply encloses_rational|rewrite Q2R_div, one_number by (rewrite one_number; lra); reflexivity].
    + apply encloses_exp, encloses_rational.
    + rewrite coefficient_first; apply encloses_div; [lra| |exact Most]; apply power_sound; rewrite <- one_number; apply encloses_rational.
    + unfold normal_power; simpl INR; replace (0 * (0 - 1) / 2 * Q2R m) with 0 by field; rewrite exp_0; apply encloses_integer.
    + simpl INR; rewrite Rmult_0_l, exp_0; apply encloses_integer.
Qed.

(** What Wang, Balle and Kasiviswanathan 2019 have is no less than what is proved. *)
Definition published_moment (r : R) (n : nat) (m : R) (second : R) : R :=
  1 + INR n * (INR n - 1) / 2 * (r * r) * second
  + 2 * total (seq 3 (n - 2)) (fun k => coefficient 1 r n k * normal_power m k).

Lemma published_above r n m second : (2 <= n)%nat -> 0 <= r -> 0 <= m ->
  second = 4 * (exp m - 1) \/ second = 2 * exp m -> batch_power r n m <= published_moment r n m second.
Proof.
  intros Hn Hr Hm Second; unfold batch_power, published_moment.
  assert (Grown : 1 <= exp m) by (rewrite <- exp_0; apply exp_le, Hm).
  assert (Order : 2 <= INR n) by (apply (le_INR 2), Hn).
  assert (Rest : 0 <= total (seq 3 (n - 2)) (fun k => coefficient 1 r n k * normal_power m k)).
  { apply total_nonneg; intros k _; apply Rmult_le_pos; [apply coefficient_nonneg; lra|left; apply exp_pos]. }
  assert (Pairs : 0 <= INR n * (INR n - 1) * (r * r)) by (apply Rmult_le_pos; nra).
  assert (Two : 2 * (exp m - 1) <= second) by (destruct Second as [->| ->]; lra).
  apply (Rmult_le_compat_l _ _ _ Pairs) in Two; simpl pow; lra.
Qed.

Lemma batch_moment_encloses m share n eps p : (2 <= Pos.to_nat n)%nat ->
  encloses (batch_moment m share n eps p) (published_moment (Q2R share) (Pos.to_nat n) (Q2R m)
    (if Qle_bool m (9 # 13) then 4 * (exp (Q2R m) - 1) else 2 * exp (Q2R m)) / exp ((INR (Pos.to_nat n) - 1) * Q2R eps)).
Proof.
  intros Hn; set (small := Qle_bool m (9 # 13)); unfold batch_moment; fold small; cbv zeta.
  pose proof (allowed_moment_encloses n eps p) as Most.
  pose proof (exp_pos ((INR (Pos.to_nat n) - 1) * Q2R eps)) as P; set (most := exp _) in *; set (most_i := allowed_moment n eps p) in *.
  assert (Grown : encloses (I.exp p (rational p m)) (exp (Q2R m))) by (apply encloses_exp, encloses_rational).
  set (grown := I.exp p (rational p m)) in *; unfold published_moment.
  assert (First : encloses (I.add p (clipped p (I.div p (I.fromZ p 1) most_i))
              (clipped p (I.div p (I.mul p (rational p ((Zpos n * (Zpos n - 1) # 2) * (share * share))%Q)
                 (if small then I.mul p (I.fromZ p 4) (I.sub p grown (I.fromZ p 1)) else I.mul p (I.fromZ p 2) grown)) most_i)))
            (1 / most + INR (Pos.to_nat n) * (INR (Pos.to_nat n) - 1) / 2 * (Q2R share * Q2R share)
                 * (if small then 4 * (exp (Q2R m) - 1) else 2 * exp (Q2R m)) / most)).
  { apply encloses_add; apply encloses_clipped, encloses_div; try lra; try exact Most; [apply encloses_integer|apply encloses_mul].
    - replace (INR (Pos.to_nat n) * (INR (Pos.to_nat n) - 1) / 2 * (Q2R share * Q2R share))
        with (Q2R ((Zpos n * (Zpos n - 1) # 2) * (share * share))%Q); [apply encloses_rational|].
      rewrite !Q2R_mult, pairs_number, mult_IZR, minus_IZR, INR_IZR_INZ, positive_nat_Z; reflexivity.
    - destruct small; (apply encloses_mul; [apply encloses_integer|]); [apply encloses_sub; [exact Grown|apply encloses_integer]|exact Grown]. }
  set (first := I.add p _ _) in *; clearbody first.
  set (rest := total (seq 3 _) _); rewrite !Rdiv_plus_distr; replace (2 * rest / most) with (2 * (rest / most)) by (unfold Rdiv; ring).
  unfold rest; clear rest.
  clearbody most most_i; destruct (Pos.to_nat n) as [|[|[|rest]]] eqn:En; [lia|lia| |].
  - rewrite (total_zero (seq 3 (2 - 2))) by (intros k []); replace (2 * (0 / most)) with 0 by (unfold Rdiv; ring).
    rewrite Rplus_0_r; exact First.
  - apply encloses_add; [exact First|apply encloses_mul; [apply encloses_integer|]].
    replace (S (S (S rest)) - 2)%nat with (S rest) by lia; change 3%Z with (Z.of_nat 3).
    apply (terms_sound p _ _ 1 (Q2R share) (Q2R m) most Rlt_0_1); try assumption.
    + unfold Rdiv; rewrite Rinv_1, Rmult_1_r; apply encloses_rational.
    + apply encloses_div; [lra| |exact Most].
      change (3 + rest)%nat with (S (S (S rest))); rewrite <- En.
      replace (coefficient 1 (Q2R share) (Pos.to_nat n) 3)
        with (Q2R ((Zpos n * (Zpos n - 1) * (Zpos n - 2) # 6) * (share * share * share))%Q); [apply encloses_rational|].
      rewrite !Q2R_mult, pairs_number, !mult_IZR, !minus_IZR; rewrite <- (positive_nat_Z n), <- INR_IZR_INZ.
      pose proof (coefficient_next 1 (Q2R share) (Pos.to_nat n) 0) as C1.
      pose proof (coefficient_next 1 (Q2R share) (Pos.to_nat n) 1) as C2.
      pose proof (coefficient_next 1 (Q2R share) (Pos.to_nat n) 2) as C3.
      rewrite coefficient_first, pow1 in C1; simpl INR in C1, C2, C3; rewrite !Rmult_1_r in *.
      set (N := INR (Pos.to_nat n)) in *; set (s := Q2R share) in *.
      assert (E1 : coefficient 1 s (Pos.to_nat n) 1 = N * s) by lra; rewrite E1 in C2.
      assert (E2 : coefficient 1 s (Pos.to_nat n) 2 = (N - 1) * s * (N * s) / 2) by lra; rewrite E2 in C3.
      assert (E3 : coefficient 1 s (Pos.to_nat n) 3 = (N - 2) * s * ((N - 1) * s * (N * s) / 2) / 3) by lra.
      rewrite E3; field.
    + unfold normal_power; simpl INR; replace ((1 + 1 + 1) * (1 + 1 + 1 - 1) / 2 * Q2R m) with (Q2R (3 * m));
        [apply encloses_exp, encloses_rational|rewrite Q2R_mult; unfold Q2R at 1; simpl; field].
    + simpl INR; replace ((1 + 1 + 1) * Q2R m) with (Q2R (3 * m));
        [apply encloses_exp, encloses_rational|rewrite Q2R_mult; unfold Q2R at 1; simpl; field].
Qed.

(** The decisions: at an order from 2 to 512. *)
Definition order_fits (n : positive) : bool := Pos.leb 2 n && Pos.leb n 512.

Definition poisson_renyi_at_most (m rate : Q) (n : positive) (eps : Q) : bool :=
  order_fits n && one_at_most (poisson_moment m rate n eps).
Definition batch_renyi_at_most (m share : Q) (n : positive) (eps : Q) : bool :=
  order_fits n && one_at_most (batch_moment m share n eps).

Lemma order_at_least n : order_fits n = true -> (2 <= Pos.to_nat n)%nat.
Proof. unfold order_fits; rewrite andb_true_iff, Pos.leb_le; intros [H _]; apply Pos2Nat.inj_le in H; exact H. Qed.

Theorem poisson_renyi_at_most_sound m rate n eps :
  0 < Q2R rate <= 1 -> poisson_renyi_at_most m rate n eps = true ->
  (2 <= Pos.to_nat n)%nat /\
  mean_power (1 - Q2R rate) (Q2R rate) (Pos.to_nat n) (Q2R m) <= exp ((INR (Pos.to_nat n) - 1) * Q2R eps).
Proof.
  intros Hr; unfold poisson_renyi_at_most; rewrite andb_true_iff; intros [Order H].
  split; [apply order_at_least, Order|]; apply (one_at_most_sound _ n eps _) with (2 := H).
  intros p; apply poisson_moment_encloses, Hr.
Qed.

Theorem batch_renyi_at_most_sound m share n eps :
  0 <= Q2R m -> 0 <= Q2R share -> batch_renyi_at_most m share n eps = true ->
  (2 <= Pos.to_nat n)%nat /\ batch_power (Q2R share) (Pos.to_nat n) (Q2R m) <= exp ((INR (Pos.to_nat n) - 1) * Q2R eps).
Proof.
  intros Hm Hs; unfold batch_renyi_at_most; rewrite andb_true_iff; intros [Order H].
  pose proof (order_at_least _ Order) as Hn; split; [exact Hn|].
  set (second := if Qle_bool m (9 # 13) then 4 * (exp (Q2R m) - 1) else 2 * exp (Q2R m)).
  apply Rle_trans with (published_moment (Q2R share) (Pos.to_nat n) (Q2R m) second).
  - apply published_above; try assumption; unfold second; destruct (Qle_bool m (9 # 13)); auto.
  - apply (one_at_most_sound _ n eps _) with (2 := H); intros p; apply batch_moment_encloses, Hn.
Qed.
