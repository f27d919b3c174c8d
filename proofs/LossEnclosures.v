(** Enclosures for loss distributions: whole numbers above real ones, the shares of a mass whose step
    doubles, and the profile of a Gaussian step in the other order. *)

From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia Psatz Bool.
From Interval Require Import Xreal Interval Float_full Specific_ops Specific_stdz Float.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta GaussianSeries Domination
  GaussianComposition Losses LossLists Enclosure FixedPoint.
Import ListNotations.

(** ** Whole numbers above an interval *)

(** About the upper end, as a whole number; nothing depends on this. *)
Definition guess (xi : I.type) : Z :=
  match I.upper xi with
  | Float m e => if (0 <=? e)%Z then (m * 2 ^ e)%Z else shift_up m (- e)
  | Fnan => 0%Z
  end.

(** Surely at least everything in the interval. *)
Definition upper (bits : positive) (xi : I.type) : option Z :=
  let n := guess xi in
  let p := Mantissa.PtoP bits in
  match at_most_zero (I.sub p xi (I.fromZ p n)) with
  | Some true => Some n
  | _ => None
  end.

Lemma upper_sound bits xi x n : upper bits xi = Some n -> encloses xi x -> (x <= IZR n)%R.
Proof.
  unfold upper; cbv zeta; intros H Hx.
  destruct (at_most_zero _) as [[|]|] eqn:E; try discriminate; injection H as <-.
  apply at_most_zero_sound with (x := (x - IZR (guess xi))%R) in E; [lra|].
  apply encloses_sub; [exact Hx|apply encloses_integer].
Qed.

(** ** The exponential of a rational number, in fixed point *)

(** Bounds on exp(x), in units of 2^-p. *)
Definition exp_of_rational (p : Z) (x : Q) : option (Z * Z) :=
  let low := (Qnum x * 2 ^ p / Zpos (Qden x))%Z in
  let high := round_up (Qnum x * 2 ^ p) (Zpos (Qden x)) in
  match exp_bounds p low with
  | Some (l, u) =>
      if (low =? high)%Z then Some (l, u)
      else match exp_bounds p high with Some (_, u') => Some (l, u') | None => None end
  | None => None
  end.

(** ** Shares of a mass at an odd multiple of the step *)

Definition shares_bits (w : Z) : Z := (Z.max 0 w + 32)%Z.

Definition shares (w : Z) (step : Q) : option (Z * Z) :=
  let bits := shares_bits w in
  let p := (bits + 8)%Z in
  match exp_of_rational p step with
  | Some (l, u) =>
      if (0 <? l)%Z
      then Some (round_up (2 ^ bits * 2 ^ p) (2 ^ p + l), round_up (u * 2 ^ bits) (2 ^ p + u))
      else None
  | None => None
  end.

Open Scope R_scope.

Lemma rational_floor n x :
  (0 <= n)%Z -> IZR (Qnum x * 2 ^ n / Zpos (Qden x)) / unit_of n <= Q2R x.
Proof.
  intros Hn; pose proof (unit_pos n Hn) as P.
  pose proof (round_down_le (Qnum x * 2 ^ n) (Zpos (Qden x)) eq_refl) as D.
  rewrite mult_IZR in D; fold (unit_of n) in D.
  apply (Rmult_le_compat_r (/ unit_of n)) in D; [|left; apply Rinv_0_lt_compat, P].
  eapply Rle_trans; [exact D|]; unfold Q2R; right; field; split; [apply not_0_IZR; discriminate|lra].
Qed.

Lemma rational_ceiling n x :
  (0 <= n)%Z -> Q2R x <= IZR (round_up (Qnum x * 2 ^ n) (Zpos (Qden x))) / unit_of n.
Proof.
  intros Hn; pose proof (unit_pos n Hn) as P.
  pose proof (round_up_ge (Qnum x * 2 ^ n) (Zpos (Qden x)) eq_refl) as D.
  rewrite mult_IZR in D; fold (unit_of n) in D.
  apply (Rmult_le_compat_r (/ unit_of n)) in D; [|left; apply Rinv_0_lt_compat, P].
  eapply Rle_trans; [|exact D]; unfold Q2R; right; field; split; [lra|apply not_0_IZR; discriminate].
Qed.

Lemma exp_of_rational_sound p x l u :
  (0 <= p)%Z -> exp_of_rational p x = Some (l, u) ->
  IZR l / unit_of p <= exp (Q2R x) <= IZR u / unit_of p.
Proof.
  intros Hp; unfold exp_of_rational; cbv zeta.
  pose proof (rational_floor p x Hp) as F; pose proof (rational_ceiling p x Hp) as C.
  set (low := (Qnum x * 2 ^ p / Zpos (Qden x))%Z) in *; set (high := round_up _ _) in *.
  destruct (exp_bounds p low) as [[l1 u1]|] eqn:E1; [|discriminate].
  apply exp_bounds_sound in E1 as [L1 U1]; [|exact Hp].
  assert (L : IZR l1 / unit_of p <= exp (Q2R x))
    by (apply Rle_trans with (1 := L1), exp_le, F).
  destruct (low =? high)%Z eqn:H.
  - apply Z.eqb_eq in H; rewrite <- H in C; intros E; injection E as <- <-; split; [exact L|].
    replace (Q2R x) with (IZR low / unit_of p) by lra; exact U1.
  - destruct (exp_bounds p high) as [[l2 u2]|] eqn:E2; [|discriminate].
    apply exp_bounds_sound in E2 as [_ U2]; [|exact Hp].
    intros E; injection E as <- <-; split; [exact L|].
    apply Rle_trans with (2 := U2), exp_le, C.
Qed.

Lemma shares_sound w step down up :
  shares w step = Some (down, up) ->
  (0 <= shares_bits w)%Z /\
  / (1 + exp (Q2R step)) <= IZR down / IZR (2 ^ shares_bits w) /\
  exp (Q2R step) / (1 + exp (Q2R step)) <= IZR up / IZR (2 ^ shares_bits w).
Proof.
  unfold shares; cbv zeta; set (bits := shares_bits w); set (p := (bits + 8)%Z).
  assert (B : (0 <= bits)%Z) by (unfold bits, shares_bits; lia).
  destruct (exp_of_rational p step) as [[l u]|] eqn:E; [|discriminate].
  apply exp_of_rational_sound in E as [L U]; [|lia].
  destruct (0 <? l)%Z eqn:Pl; [|discriminate]; apply Z.ltb_lt in Pl.
  intros I; injection I as <- <-; split; [exact B|].
  pose proof (unit_pos p ltac:(lia)) as P; pose proof (exp_pos (Q2R step)) as He.
  assert (Q : 0 < IZR (2 ^ bits)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  set (e := exp (Q2R step)) in *; apply IZR_lt in Pl as Pl'.
  assert (Lu : IZR l <= e * unit_of p /\ e * unit_of p <= IZR u).
  { split; apply Rmult_le_reg_r with (/ unit_of p); try (apply Rinv_0_lt_compat, P);
      rewrite Rmult_assoc, Rinv_r by lra; lra. }
  assert (Pp : (0 < 2 ^ p)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (Pu : (0 < u)%Z) by (apply lt_IZR; nra).
  pose proof (round_up_ge (2 ^ bits * 2 ^ p) (2 ^ p + l) ltac:(lia)) as D.
  pose proof (round_up_ge (u * 2 ^ bits) (2 ^ p + u) ltac:(lia)) as D'.
  rewrite mult_IZR, plus_IZR in D; rewrite mult_IZR, plus_IZR in D'.
  fold (unit_of p) in D, D'; apply IZR_lt in Pu.
  apply (Rmult_le_compat_r (/ IZR (2 ^ bits))) in D; [|left; apply Rinv_0_lt_compat, Q].
  apply (Rmult_le_compat_r (/ IZR (2 ^ bits))) in D'; [|left; apply Rinv_0_lt_compat, Q].
  split; [apply Rle_trans with (2 := D)|apply Rle_trans with (2 := D')].
  - replace (IZR (2 ^ bits) * unit_of p / (unit_of p + IZR l) * / IZR (2 ^ bits))
      with (/ ((unit_of p + IZR l) / unit_of p)) by (field; lra).
    apply Rinv_le_contravar; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_le_reg_r with (1 := P); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
  - replace (IZR u * IZR (2 ^ bits) / (unit_of p + IZR u) * / IZR (2 ^ bits))
      with (1 - / ((unit_of p + IZR u) / unit_of p)) by (field; lra).
    replace (e / (1 + e)) with (1 - / (1 + e)) by (field; lra).
    apply Rplus_le_compat_l, Ropp_le_contravar, Rinv_le_contravar; [lra|].
    apply Rmult_le_reg_r with (1 := P); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

(** ** The profile of a Gaussian step *)

(** What a and b change places for: (x)^+ - (-x)^+ = x. *)
Lemma profile_parity mu a b :
  0 <= a -> 0 <= b -> gaussian_profile mu a b = a - b + gaussian_profile mu b a.
Proof.
  intros [Ha|<-] Hb; [|rewrite profile_a0, profile_b0 by assumption; ring].
  destruct Hb as [Hb|<-]; [|rewrite profile_a0, profile_b0 by lra; ring].
  destruct (Rle_dec mu 0) as [Hm|Hm].
  - rewrite !profile_zero by exact Hm; unfold plus_part, Rmax.
    destruct (Rle_dec 0 (a - b)), (Rle_dec 0 (b - a)); lra.
  - rewrite !profile_pos by lra.
    assert (E : ln (a / b) = - ln (b / a)).
    { rewrite <- ln_Rinv by (apply Rdiv_lt_0_compat; assumption); f_equal; field; lra. }
    rewrite E; set (k := ln (b / a)).
    replace (mu / 2 - - k / mu) with (- (- (mu / 2) - k / mu)) by (field; lra).
    replace (- (mu / 2) - - k / mu) with (- (mu / 2 - k / mu)) by (field; lra).
    rewrite !Phi_opp; ring.
Qed.

Lemma gaussian_symmetric mu : symmetric_profile (gaussian_profile mu).
Proof. split; [intros c a b; apply GaussianComposition.profile_scal|apply profile_parity]. Qed.
