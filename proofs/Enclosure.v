(** Decisions about real numbers by computation: is the delta of an order of Renyi DP at most a given
    rational number, or a rational number at most an exponential?

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

Lemma Qle_bool_R q r : Qle_bool q r = true -> Q2R q <= Q2R r.
Proof. intros H; apply Qle_Rle, Qle_bool_iff, H. Qed.

Lemma Qle_bool_R_false q r : Qle_bool q r = false -> Q2R r < Q2R q.
Proof.
  intros H; apply Qlt_Rlt, Qnot_le_lt; intros L; apply Qle_bool_iff in L; congruence.
Qed.

Lemma Q2R_integer z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R, inject_Z; simpl; field. Qed.

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
