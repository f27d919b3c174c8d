(** Decisions about real numbers by computation: is the exact delta of Gaussian DP, or the delta of
    an order of Renyi DP, at most a given rational number?

    Intervals are those of the interval library on integers of Coq's own kernel (mantissas and
    exponents in Z): every function comes with a proof that its result contains the real one. *)

From Coq Require Import Reals QArith Qreals Qround ZArith Lra Lia Psatz Bool.
From Interval Require Import Xreal Interval Float_full Specific_ops Specific_stdz.
From Dpledger Require Import Sums Finite GaussianIntegral GaussianDelta GaussianSeries.
Open Scope R_scope.

Module Mantissa := SpecificFloat StdZRadix2.
Module I := FloatIntervalFull Mantissa.

Definition encloses (xi : I.type) (x : R) : Prop := contains (I.convert xi) (Xreal x).

(** ** One lemma for each operation *)

Section Operations.

Variable p : Mantissa.precision.

Lemma encloses_integer z : encloses (I.fromZ p z) (IZR z).
Proof. apply I.fromZ_correct. Qed.

Lemma encloses_add xi yi x y :
  encloses xi x -> encloses yi y -> encloses (I.add p xi yi) (x + y).
Proof. apply (I.add_correct p xi yi (Xreal x) (Xreal y)). Qed.

Lemma encloses_sub xi yi x y :
  encloses xi x -> encloses yi y -> encloses (I.sub p xi yi) (x - y).
Proof. apply (I.sub_correct p xi yi (Xreal x) (Xreal y)). Qed.

Lemma encloses_mul xi yi x y :
  encloses xi x -> encloses yi y -> encloses (I.mul p xi yi) (x * y).
Proof. apply (I.mul_correct p xi yi (Xreal x) (Xreal y)). Qed.

Lemma encloses_neg xi x : encloses xi x -> encloses (I.neg xi) (- x).
Proof. apply (I.neg_correct xi (Xreal x)). Qed.

Lemma encloses_div xi yi x y :
  y <> 0 -> encloses xi x -> encloses yi y -> encloses (I.div p xi yi) (x / y).
Proof.
  intros Hy Hx Hy'; pose proof (I.div_correct p xi yi (Xreal x) (Xreal y) Hx Hy') as H.
  unfold encloses; simpl in H; unfold Xdiv' in H; rewrite is_zero_false in H by exact Hy.
  exact H.
Qed.

Lemma encloses_exp xi x : encloses xi x -> encloses (I.exp p xi) (exp x).
Proof. apply (I.exp_correct p xi (Xreal x)). Qed.

Lemma encloses_ln xi x : 0 < x -> encloses xi x -> encloses (I.ln p xi) (ln x).
Proof.
  intros Hp Hx; pose proof (I.ln_correct p xi (Xreal x) Hx) as H.
  unfold encloses; simpl in H; unfold Xln' in H; rewrite is_positive_true in H by exact Hp.
  exact H.
Qed.

Lemma encloses_sqrt xi x : 0 <= x -> encloses xi x -> encloses (I.sqrt p xi) (sqrt x).
Proof.
  intros Hp Hx; exact (I.sqrt_correct p xi (Xreal x) Hx).
Qed.

Lemma encloses_pi : encloses (I.pi p) PI.
Proof. apply I.pi_correct. Qed.

Definition rational (q : Q) : I.type :=
  I.div p (I.fromZ p (Qnum q)) (I.fromZ p (Zpos (Qden q))).

Lemma encloses_rational q : encloses (rational q) (Q2R q).
Proof.
  apply encloses_div; try apply encloses_integer.
  apply not_0_IZR; discriminate.
Qed.

(** ** The power series of Mills' ratio: the sum of the first n terms, and the next term *)

Fixpoint mills (si : I.type) (n : nat) : I.type * I.type :=
  match n with
  | O => (I.fromZ p 0, I.fromZ p 1)
  | S n' =>
      let '(sum, term) := mills si n' in
      (I.add p sum term, I.div p (I.mul p term si) (I.fromZ p (2 * Z.of_nat n' + 3)))
  end.

Lemma encloses_mills si s n :
  encloses si s ->
  encloses (fst (mills si n)) (mills_sum s n) /\ encloses (snd (mills si n)) (mills_term s n).
Proof.
  intros Hs; induction n as [|n IH]; [split; apply encloses_integer|].
  simpl; destruct (mills si n) as [sum term]; destruct IH as [IHs IHt]; simpl in *; split.
  - apply encloses_add; assumption.
  - replace (2 * INR n + 3) with (IZR (2 * Z.of_nat n + 3)).
    + apply encloses_div; [apply not_0_IZR; lia|apply encloses_mul; assumption|].
      apply encloses_integer.
    + rewrite plus_IZR, mult_IZR, <- INR_IZR_INZ; reflexivity.
Qed.

Definition delta_enclosure (n : nat) (m eps : Q) : I.type :=
  let up := (eps + m / 2)%Q in
  let down := (eps - m / 2)%Q in
  let '(sum, term) := mills (rational (up * up / m)) (S n) in
  let '(sum', _) := mills (rational (down * down / m)) (S n) in
  I.add p
    (I.div p (I.sub p (I.fromZ p 1) (I.exp p (rational eps))) (I.fromZ p 2))
    (I.mul p
       (I.div p (I.exp p (I.neg (rational (down * down / m / 2))))
          (I.sqrt p (I.mul p (I.mul p (I.fromZ p 2) (I.pi p)) (rational m))))
       (I.sub p (I.mul p (rational up) (I.add p sum (I.mul p (I.fromZ p 4) term)))
          (I.mul p (rational down) sum'))).

End Operations.

Lemma Q2R_half q : Q2R (q / 2) = Q2R q / 2.
Proof.
  unfold Qdiv; rewrite Q2R_mult, Q2R_inv by discriminate; unfold Rdiv; f_equal.
  unfold Q2R; simpl; field.
Qed.

Lemma Q2R_div q r : 0 < Q2R r -> Q2R (q / r) = Q2R q / Q2R r.
Proof.
  intros Hr; apply Qreals.Q2R_div; intros E.
  apply Qeq_eqR in E; unfold Q2R at 2 in E; simpl in E; lra.
Qed.

Lemma encloses_delta p n m eps :
  0 < Q2R m -> encloses (delta_enclosure p n m eps) (delta_series n (Q2R m) (Q2R eps)).
Proof.
  intros Hm; unfold delta_enclosure; cbv zeta.
  set (up := (eps + m / 2)%Q); set (down := (eps - m / 2)%Q).
  assert (Eu : Q2R up = Q2R eps + Q2R m / 2)
    by (unfold up; rewrite Q2R_plus, Q2R_half; reflexivity).
  assert (Ed : Q2R down = Q2R eps - Q2R m / 2)
    by (unfold down; rewrite Q2R_minus, Q2R_half; reflexivity).
  assert (Eb : Q2R (up * up / m) = Q2R up * Q2R up / Q2R m)
    by (rewrite Q2R_div, Q2R_mult by exact Hm; reflexivity).
  assert (Ea : Q2R (down * down / m) = Q2R down * Q2R down / Q2R m)
    by (rewrite Q2R_div, Q2R_mult by exact Hm; reflexivity).
  pose proof (encloses_mills p _ _ (S n) (encloses_rational p (up * up / m))) as Mb.
  pose proof (encloses_mills p _ _ (S n) (encloses_rational p (down * down / m))) as Ma.
  destruct (mills p (rational p (up * up / m)) (S n)) as [sum term].
  destruct (mills p (rational p (down * down / m)) (S n)) as [sum' term'].
  destruct Mb as [Mb Mt]; destruct Ma as [Ma _]; cbn [fst snd] in *.
  unfold delta_series; cbv zeta.
  rewrite Eb in Mb, Mt; rewrite Ea in Ma; rewrite <- Eu, <- Ed.
  apply encloses_add.
  - apply encloses_div; [lra| |apply encloses_integer].
    apply encloses_sub; [apply encloses_integer|apply encloses_exp, encloses_rational].
  - apply encloses_mul.
    + apply encloses_div.
      * pose proof PI_RGT_0; apply Rgt_not_eq, sqrt_lt_R0.
        apply Rmult_lt_0_compat; [lra|exact Hm].
      * rewrite <- Ea, <- Q2R_half; apply encloses_exp, encloses_neg, encloses_rational.
      * pose proof PI_RGT_0; apply encloses_sqrt; [apply Rmult_le_pos; lra|].
        apply encloses_mul; [|apply encloses_rational].
        apply encloses_mul; [apply encloses_integer|apply encloses_pi].
    + apply encloses_sub; apply encloses_mul; try apply encloses_rational; try assumption.
      apply encloses_add; [assumption|].
      apply encloses_mul; [apply encloses_integer|assumption].
Qed.

(** ** Decisions *)

(** Whether everything in an interval is at most 0: [None] where its ends have different signs. *)
Definition at_most_zero (xi : I.type) : option bool :=
  match I.sign_large xi with
  | Xlt | Xeq => Some true
  | Xgt => Some false
  | Xund => None
  end.

Lemma at_most_zero_sound xi x : at_most_zero xi = Some true -> encloses xi x -> x <= 0.
Proof.
  unfold at_most_zero; intros H Hx; pose proof (I.sign_large_correct xi) as S.
  destruct (I.sign_large xi); try discriminate.
  - specialize (S _ Hx); injection S as ->; lra.
  - apply (S _ Hx).
Qed.

(** Ask at higher and higher precision until decided. *)
Fixpoint decide (question : positive -> option bool) (bits : positive) (tries : nat) : bool :=
  match tries with
  | O => false
  | S tries' =>
      match question bits with
      | Some answer => answer
      | None => decide question (2 * bits) tries'
      end
  end.

Lemma decide_true question bits tries :
  decide question bits tries = true -> exists bits', question bits' = Some true.
Proof.
  revert bits; induction tries as [|tries IH]; simpl; [discriminate|]; intros bits.
  destruct (question bits) as [[|]|] eqn:E; intros H; try discriminate; [eauto|eapply IH, H].
Qed.

Definition bits_of (delta eps : Q) : positive :=
  Z.to_pos (96 + Z.max 0 (Z.log2 (Zpos (Qden delta)) - Z.log2 (Qnum delta))
            + 2 * Z.max 0 (Qceiling eps)).

(** More terms than this are not worth the wait. *)
Definition most_terms : Z := 20000.

(** delta at eps of mu-GDP, mu^2 = m > 0, is at most delta. *)
Definition gaussian_delta_at_most (m eps delta : Q) : bool :=
  let up := (eps + m / 2)%Q in
  let first := Qceiling (up * up / m) in
  negb (Qle_bool m 0) && Qle_bool 0 eps && (first <=? most_terms)%Z &&
  decide (fun bits =>
    let n := Z.to_nat (first + Zpos bits) in
    let p := Mantissa.PtoP bits in
    at_most_zero (I.sub p (delta_enclosure p n m eps) (rational p delta)))
    (bits_of delta eps) 4.

Lemma Qle_bool_R q r : Qle_bool q r = true -> Q2R q <= Q2R r.
Proof. intros H; apply Qle_Rle, Qle_bool_iff, H. Qed.

Lemma Qle_bool_R_false q r : Qle_bool q r = false -> Q2R r < Q2R q.
Proof.
  intros H; apply Qlt_Rlt, Qnot_le_lt; intros L; apply Qle_bool_iff in L; congruence.
Qed.

Lemma Q2R_integer z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R, inject_Z; simpl; field. Qed.

Theorem gaussian_delta_at_most_sound m eps delta :
  gaussian_delta_at_most m eps delta = true ->
  0 < Q2R m /\ gaussian_delta (sqrt (Q2R m)) (Q2R eps) <= Q2R delta.
Proof.
  unfold gaussian_delta_at_most; cbv zeta; rewrite !andb_true_iff, negb_true_iff.
  intros [[[Hm He] Hf] H]; apply Qle_bool_R_false in Hm; apply Qle_bool_R in He.
  replace (Q2R 0) with 0 in Hm, He by (unfold Q2R; simpl; field).
  split; [exact Hm|].
  apply decide_true in H as [bits H]; apply Rle_trans with (delta_series
    (Z.to_nat (Qceiling ((eps + m / 2) * (eps + m / 2) / m) + Zpos bits)) (Q2R m) (Q2R eps)).
  - apply gaussian_delta_series; [exact Hm|exact He|].
    set (first := Qceiling ((eps + m / 2) * (eps + m / 2) / m)).
    assert (C : (Q2R eps + Q2R m / 2) * (Q2R eps + Q2R m / 2) / Q2R m <= IZR first).
    { rewrite <- Q2R_half, <- Q2R_plus, <- Q2R_mult, <- Q2R_div by exact Hm.
      rewrite <- Q2R_integer; apply Qle_Rle, Qle_ceiling. }
    assert (IZR first <= INR (Z.to_nat (first + Zpos bits))); [|lra].
    destruct (Z_le_gt_dec 0 (first + Zpos bits)) as [P|N].
    + rewrite INR_IZR_INZ, Z2Nat.id by exact P; apply IZR_le; lia.
    + apply Rle_trans with 0; [apply IZR_le; lia|apply pos_INR].
  - apply at_most_zero_sound with
      (x := delta_series (Z.to_nat (Qceiling ((eps + m / 2) * (eps + m / 2) / m) + Zpos bits))
              (Q2R m) (Q2R eps) - Q2R delta) in H; [lra|].
    apply encloses_sub; [apply encloses_delta, Hm|apply encloses_rational].
Qed.

(** ln(1/delta) + (alpha - 1) ln(1 - 1/alpha) - ln alpha <= (alpha - 1)(eps - tau): what order
    alpha of (alpha, tau)-RDP gives (Canonne, Kamath and Steinke 2020, Proposition 12). *)
Definition order_enclosure (p : Mantissa.precision) (alpha tau delta eps : Q) : I.type :=
  let less := (alpha - 1)%Q in
  I.sub p
    (I.sub p
       (I.sub p (I.mul p (rational p less) (I.ln p (rational p (less / alpha))))
          (I.ln p (rational p delta)))
       (I.ln p (rational p alpha)))
    (I.mul p (rational p less) (rational p (eps - tau))).

Definition order_suffices (alpha tau delta eps : Q) : bool :=
  negb (Qle_bool alpha 1) && negb (Qle_bool delta 0) &&
  decide (fun bits => at_most_zero (order_enclosure (Mantissa.PtoP bits) alpha tau delta eps))
    128 4.

Theorem order_suffices_sound alpha tau delta eps :
  order_suffices alpha tau delta eps = true ->
  1 < Q2R alpha /\ 0 < Q2R delta /\
  Q2R tau + ln (1 - / Q2R alpha) - (ln (Q2R delta) + ln (Q2R alpha)) / (Q2R alpha - 1)
    <= Q2R eps.
Proof.
  unfold order_suffices; rewrite !andb_true_iff, !negb_true_iff.
  intros [[Ha Hd] H]; apply Qle_bool_R_false in Ha, Hd.
  replace (Q2R 1) with 1 in Ha by (unfold Q2R; simpl; field).
  replace (Q2R 0) with 0 in Hd by (unfold Q2R; simpl; field).
  split; [exact Ha|split; [exact Hd|]].
  apply decide_true in H as [bits H].
  set (less := (alpha - 1)%Q).
  assert (El : Q2R less = Q2R alpha - 1).
  { unfold less; rewrite Q2R_minus; f_equal; unfold Q2R; simpl; field. }
  assert (Er : Q2R (less / alpha) = 1 - / Q2R alpha).
  { rewrite Q2R_div, El by lra; field; lra. }
  apply at_most_zero_sound with (x := Q2R less * ln (Q2R (less / alpha)) - ln (Q2R delta)
                                      - ln (Q2R alpha) - Q2R less * Q2R (eps - tau)) in H.
  - rewrite Er, El, Q2R_minus in H; set (a := Q2R alpha) in *.
    apply Rmult_le_reg_r with (a - 1); [lra|].
    replace ((Q2R tau + ln (1 - / a) - (ln (Q2R delta) + ln a) / (a - 1)) * (a - 1))
      with (Q2R tau * (a - 1) + ln (1 - / a) * (a - 1) - (ln (Q2R delta) + ln a)) by (field; lra).
    lra.
  - assert (0 < Q2R (less / alpha)).
    { rewrite Er; pose proof (inv_lt_1 (Q2R alpha) Ha); lra. }
    unfold order_enclosure; cbv zeta.
    apply encloses_sub; [apply encloses_sub; [apply encloses_sub|]|];
      repeat first [apply encloses_mul|apply encloses_rational|apply encloses_ln; [lra|]].
Qed.

(** a <= e^eps. *)
Definition at_most_exp (a eps : Q) : bool :=
  Qle_bool a 1 && Qle_bool 0 eps ||
  decide (fun bits =>
    let p := Mantissa.PtoP bits in
    at_most_zero (I.sub p (rational p a) (I.exp p (rational p eps)))) 128 4.

Theorem at_most_exp_sound a eps : at_most_exp a eps = true -> Q2R a <= exp (Q2R eps).
Proof.
  unfold at_most_exp; rewrite orb_true_iff, andb_true_iff; intros [[Ha He]|H].
  - apply Qle_bool_R in Ha, He; pose proof (exp_le _ _ He) as E.
    replace (Q2R 0) with 0 in E by (unfold Q2R; simpl; field).
    replace (Q2R 1) with 1 in Ha by (unfold Q2R; simpl; field).
    rewrite exp_0 in E; lra.
  - apply decide_true in H as [bits H].
    apply at_most_zero_sound with (x := Q2R a - exp (Q2R eps)) in H; [lra|].
    apply encloses_sub; [|apply encloses_exp]; apply encloses_rational.
Qed.
