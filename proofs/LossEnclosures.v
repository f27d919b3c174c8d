(** Enclosures for loss distributions: whole numbers above real ones, the shares of a mass whose step
    doubles, and the profile of a Gaussian step on a Poisson sample in the other order. *)

From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia Psatz Bool.
From Interval Require Import Xreal Interval Float_full Specific_ops Specific_stdz Float.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta GaussianSeries Domination
  GaussianComposition Losses LossLists Enclosure.
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

(** ** Shares of a mass at an odd multiple of the step *)

Definition shares_bits (w : Z) : Z := Z.max 0 w + 32.

Definition shares (w : Z) (step : Q) : option (Z * Z) :=
  let bits := shares_bits w in
  let q := Z.to_pos (2 * bits + 32) in
  let p := Mantissa.PtoP q in
  let e := I.exp p (rational p step) in
  let all := I.add p (I.fromZ p 1) e in
  let scale := I.fromZ p (2 ^ bits) in
  match upper q (I.div p scale all), upper q (I.div p (I.mul p scale e) all) with
  | Some down, Some up => Some (down, up)
  | _, _ => None
  end.

Open Scope R_scope.

Lemma shares_sound w step down up :
  shares w step = Some (down, up) ->
  (0 <= shares_bits w)%Z /\
  / (1 + exp (Q2R step)) <= IZR down / IZR (2 ^ shares_bits w) /\
  exp (Q2R step) / (1 + exp (Q2R step)) <= IZR up / IZR (2 ^ shares_bits w).
Proof.
  unfold shares; cbv zeta; set (bits := shares_bits w).
  set (q := Z.to_pos (2 * bits + 32)); set (p := Mantissa.PtoP q).
  destruct (upper q _) as [d|] eqn:D; [|discriminate].
  destruct (upper q (I.div p (I.mul p _ _) _)) as [u|] eqn:U; [|discriminate].
  intros E; injection E as <- <-.
  assert (B : (0 <= bits)%Z) by (unfold bits, shares_bits; lia); split; [exact B|].
  assert (P : 0 < IZR (2 ^ bits)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  pose proof (exp_pos (Q2R step)) as He.
  assert (Ee : encloses (I.exp p (rational p step)) (exp (Q2R step)))
    by (apply encloses_exp, encloses_rational).
  assert (Ea : encloses (I.add p (I.fromZ p 1) (I.exp p (rational p step))) (1 + exp (Q2R step)))
    by (apply encloses_add; [apply encloses_integer|exact Ee]).
  apply upper_sound with (x := IZR (2 ^ bits) / (1 + exp (Q2R step))) in D.
  2:{ apply encloses_div; [lra|apply encloses_integer|exact Ea]. }
  apply upper_sound with (x := IZR (2 ^ bits) * exp (Q2R step) / (1 + exp (Q2R step))) in U.
  2:{ apply encloses_div; [lra| |exact Ea]; apply encloses_mul; [apply encloses_integer|exact Ee]. }
  split; apply Rmult_le_reg_l with (IZR (2 ^ bits)); try exact P;
    match goal with |- _ <= ?s * (?n / ?s) => replace (s * (n / s)) with n by (field; lra) end.
  - exact D.
  - unfold Rdiv in *; rewrite <- Rmult_assoc; exact U.
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

(** The other order of the two laws, at the mirrored point. *)
Lemma addition_of_removal rate mu b :
  0 <= rate <= 1 -> 0 < b ->
  addition_profile rate (gaussian_profile mu) 1 (/ b)
    = 1 - / b + / b * removal_profile rate (gaussian_profile mu) 1 b.
Proof.
  intros Hr Hb; assert (Ib : 0 < / b) by (apply Rinv_0_lt_compat, Hb).
  assert (One : b * / b = 1) by (field; lra).
  unfold addition_profile, removal_profile; rewrite !Rmult_1_l.
  destruct (Rle_dec (/ b * (1 - rate)) 1) as [G|G], (Rle_dec (1 - rate) b) as [K|K]; try nra.
  replace (1 - / b * (1 - rate)) with (/ b * (b - (1 - rate))) by (field; lra).
  rewrite GaussianComposition.profile_scal by lra.
  rewrite (profile_parity mu (b - (1 - rate)) rate) by lra; field; lra.
Qed.
