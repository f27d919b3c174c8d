(** Enclosures for loss distributions: whole numbers above real ones, the profile of a Gaussian step
    on a Poisson sample at a point of the lattice, the shares of a mass whose step doubles, and
    delta. *)

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

(** [delta_series] where m and eps are enclosed. *)
Definition series_enclosure (p : Mantissa.precision) (n : nat) (mi ei : I.type) : I.type :=
  let half := I.div p mi (I.fromZ p 2) in
  let up := I.add p ei half in
  let down := I.sub p ei half in
  let '(sum, term) := mills p (I.div p (I.mul p up up) mi) (S n) in
  let square := I.div p (I.mul p down down) mi in
  let '(sum', _) := mills p square (S n) in
  I.add p
    (I.div p (I.sub p (I.fromZ p 1) (I.exp p ei)) (I.fromZ p 2))
    (I.mul p
       (I.div p (I.exp p (I.neg (I.div p square (I.fromZ p 2))))
          (I.sqrt p (I.mul p (I.mul p (I.fromZ p 2) (I.pi p)) mi)))
       (I.sub p (I.mul p up (I.add p sum (I.mul p (I.fromZ p 4) term)))
          (I.mul p down sum'))).

Lemma encloses_series p n mi ei m eps :
  0 < m -> encloses mi m -> encloses ei eps ->
  encloses (series_enclosure p n mi ei) (delta_series n m eps).
Proof.
  intros Hm Em Ee; unfold series_enclosure; cbv zeta.
  set (half := I.div p mi (I.fromZ p 2)).
  assert (Eh : encloses half (m / 2))
    by (apply encloses_div; [lra|exact Em|apply encloses_integer]).
  set (up := I.add p ei half); set (down := I.sub p ei half).
  assert (Eu : encloses up (eps + m / 2)) by (apply encloses_add; assumption).
  assert (Ed : encloses down (eps - m / 2)) by (apply encloses_sub; assumption).
  assert (Eb : encloses (I.div p (I.mul p up up) mi) ((eps + m / 2) * (eps + m / 2) / m))
    by (apply encloses_div; [lra|apply encloses_mul; assumption|exact Em]).
  assert (Ea : encloses (I.div p (I.mul p down down) mi) ((eps - m / 2) * (eps - m / 2) / m))
    by (apply encloses_div; [lra|apply encloses_mul; assumption|exact Em]).
  pose proof (encloses_mills p _ _ (S n) Eb) as Mb; pose proof (encloses_mills p _ _ (S n) Ea) as Ma.
  destruct (mills p (I.div p (I.mul p up up) mi) (S n)) as [sum term].
  destruct (mills p (I.div p (I.mul p down down) mi) (S n)) as [sum' term'].
  destruct Mb as [Mb Mt]; destruct Ma as [Ma _]; cbn [fst snd] in *.
  unfold delta_series; cbv zeta; apply encloses_add.
  - apply encloses_div; [lra| |apply encloses_integer].
    apply encloses_sub; [apply encloses_integer|apply encloses_exp, Ee].
  - apply encloses_mul.
    + pose proof PI_RGT_0; apply encloses_div.
      * apply Rgt_not_eq, sqrt_lt_R0; apply Rmult_lt_0_compat; [lra|exact Hm].
      * apply encloses_exp, encloses_neg, encloses_div; [lra|exact Ea|apply encloses_integer].
      * apply encloses_sqrt; [apply Rmult_le_pos; lra|].
        apply encloses_mul; [|exact Em]; apply encloses_mul; [apply encloses_integer|apply encloses_pi].
    + apply encloses_sub; apply encloses_mul; try assumption.
      apply encloses_add; [assumption|]; apply encloses_mul; [apply encloses_integer|assumption].
Qed.

Definition surely_at_most_zero (xi : I.type) : bool :=
  match at_most_zero xi with Some true => true | _ => false end.

Lemma surely_sound xi x : surely_at_most_zero xi = true -> encloses xi x -> x <= 0.
Proof.
  unfold surely_at_most_zero; intros H; apply at_most_zero_sound.
  destruct (at_most_zero xi) as [[|]|]; congruence.
Qed.

(** Above a * delta(eps), for eps >= 0. *)
Definition above_delta (bits : positive) (mi ei : I.type) : option I.type :=
  let p := Mantissa.PtoP bits in
  let up := I.add p ei (I.div p mi (I.fromZ p 2)) in
  let square := I.div p (I.mul p up up) mi in
  let least := (Z.max 0 (guess square) + 1)%Z in
  if (least <=? most_terms)%Z && surely_at_most_zero (I.sub p square (I.fromZ p least))
  then Some (series_enclosure p (Z.to_nat (least + Zpos bits / 2)) mi ei)
  else None.

Lemma above_delta_sound bits mi ei m eps xi :
  0 < m -> 0 <= eps -> encloses mi m -> encloses ei eps -> above_delta bits mi ei = Some xi ->
  exists v, encloses xi v /\ gaussian_delta (sqrt m) eps <= v.
Proof.
  intros Hm He Em Ee; unfold above_delta; cbv zeta.
  set (p := Mantissa.PtoP bits).
  set (square := I.div p (I.mul p (I.add p ei _) _) mi).
  set (least := (Z.max 0 (guess square) + 1)%Z).
  destruct (_ && _) eqn:G; [|discriminate]; intros E; injection E as <-.
  apply andb_true_iff in G as [_ G].
  apply surely_sound with (x := (eps + m / 2) * (eps + m / 2) / m - IZR least) in G.
  - set (n := Z.to_nat (least + Zpos bits / 2)).
    exists (delta_series n m eps); split; [apply encloses_series; assumption|].
    apply gaussian_delta_series; try assumption.
    assert (IZR least <= INR n); [|lra].
    unfold n; rewrite INR_IZR_INZ; apply IZR_le.
    pose proof (Z.div_pos (Zpos bits) 2 ltac:(lia) ltac:(lia)); lia.
  - apply encloses_sub; [|apply encloses_integer].
    assert (encloses (I.add p ei (I.div p mi (I.fromZ p 2))) (eps + m / 2)).
    { apply encloses_add; [exact Ee|]; apply encloses_div; [lra|exact Em|apply encloses_integer]. }
    apply encloses_div; [lra|apply encloses_mul; assumption|exact Em].
Qed.

(** Above the profile of mu^2 at weights a, b > 0 that are enclosed: where the sign of
    eps = ln (b / a) is unknown, above what either sign gives. *)
Definition above_profile (bits : positive) (mi ai bi : I.type) : option I.type :=
  let p := Mantissa.PtoP bits in
  let k := I.ln p (I.div p bi ai) in
  let rising (_ : unit) :=
    match above_delta bits mi k with Some d => Some (I.mul p ai d) | None => None end in
  let falling (_ : unit) :=
    match above_delta bits mi (I.neg k) with
    | Some d => Some (I.add p (I.sub p ai bi) (I.mul p bi d))
    | None => None
    end in
  if surely_at_most_zero (I.neg k) then rising tt
  else if surely_at_most_zero k then falling tt
  else match rising tt, falling tt with Some xi, Some yi => Some (I.join xi yi) | _, _ => None end.

Lemma above_profile_sound bits mi ai bi m a b xi :
  0 < m -> 0 < a -> 0 < b -> encloses mi m -> encloses ai a -> encloses bi b ->
  above_profile bits mi ai bi = Some xi ->
  exists v, encloses xi v /\ gaussian_profile (sqrt m) a b <= v.
Proof.
  intros Hm Ha Hb Em Ea Eb; unfold above_profile; cbv zeta.
  set (p := Mantissa.PtoP bits); set (k := I.ln p (I.div p bi ai)).
  assert (Ek : encloses k (ln (b / a))).
  { apply encloses_ln; [apply Rdiv_lt_0_compat; assumption|apply encloses_div; auto; lra]. }
  assert (En : encloses (I.neg k) (- ln (b / a))) by (apply encloses_neg, Ek).
  assert (Hs : 0 < sqrt m) by (apply sqrt_lt_R0, Hm).
  assert (Rising : 0 <= ln (b / a) -> forall d, above_delta bits mi k = Some d ->
            exists v, encloses (I.mul p ai d) v /\ gaussian_profile (sqrt m) a b <= v).
  { intros Hk d D; destruct (above_delta_sound bits mi k m _ d Hm Hk Em Ek D) as (v & Ev & Le).
    exists (a * v); split; [apply encloses_mul; assumption|].
    rewrite profile_delta by assumption; apply Rmult_le_compat_l; lra. }
  assert (Falling : ln (b / a) <= 0 -> forall d, above_delta bits mi (I.neg k) = Some d ->
            exists v, encloses (I.add p (I.sub p ai bi) (I.mul p bi d)) v
                      /\ gaussian_profile (sqrt m) a b <= v).
  { intros Hk d D.
    destruct (above_delta_sound bits mi (I.neg k) m (- ln (b / a)) d Hm ltac:(lra) Em En D)
      as (v & Ev & Le).
    exists (a - b + b * v); split.
    - apply encloses_add; [apply encloses_sub; assumption|apply encloses_mul; assumption].
    - rewrite profile_parity, profile_delta by lra; apply Rplus_le_compat_l.
      apply Rmult_le_compat_l; [lra|].
      replace (ln (a / b)) with (- ln (b / a)); [exact Le|].
      rewrite <- ln_Rinv by (apply Rdiv_lt_0_compat; assumption); f_equal; field; lra. }
  destruct (above_delta bits mi k) as [d|] eqn:D, (above_delta bits mi (I.neg k)) as [d'|] eqn:D';
    destruct (surely_at_most_zero (I.neg k)) eqn:N;
    try (apply surely_sound with (2 := En) in N);
    try (destruct (surely_at_most_zero k) eqn:P; [apply surely_sound with (2 := Ek) in P|]);
    intros E; try discriminate; injection E as <-;
    try (apply (Rising ltac:(lra) d eq_refl)); try (apply (Falling ltac:(lra) d' eq_refl)).
  destruct (Rle_dec 0 (ln (b / a))) as [Hk|Hk].
  - destruct (Rising Hk d eq_refl) as (v & Ev & Le); exists v; split; [|exact Le].
    apply I.join_correct; left; exact Ev.
  - destruct (Falling ltac:(lra) d' eq_refl) as (v & Ev & Le); exists v; split; [|exact Le].
    apply I.join_correct; right; exact Ev.
Qed.

(** Above the profile of a Gaussian step on a Poisson sample, with the record against without it,
    at the loss [x]: the profile at exp(x). *)
Definition above_removal (bits : positive) (m rate x : Q) : option I.type :=
  let p := Mantissa.PtoP bits in
  let e := I.exp p (rational p x) in
  let rest := I.sub p e (rational p (1 - rate)) in
  if surely_at_most_zero rest then Some (I.sub p (I.fromZ p 1) e)
  else if surely_at_most_zero (I.sub p (rational p (1 # 2 ^ bits)) rest)
  then above_profile bits (rational p m) (rational p rate) rest
  else None.

Lemma above_removal_sound bits m rate x xi :
  0 < Q2R m -> 0 < Q2R rate <= 1 -> above_removal bits m rate x = Some xi ->
  exists v, encloses xi v /\
  removal_profile (Q2R rate) (gaussian_profile (sqrt (Q2R m))) 1 (exp (Q2R x)) <= v.
Proof.
  intros Hm Hr; unfold above_removal; cbv zeta; set (p := Mantissa.PtoP bits).
  assert (Ee : encloses (I.exp p (rational p x)) (exp (Q2R x)))
    by (apply encloses_exp, encloses_rational).
  set (e := I.exp p (rational p x)) in *.
  assert (Er : encloses (I.sub p e (rational p (1 - rate))) (exp (Q2R x) - (1 - Q2R rate))).
  { apply encloses_sub; [exact Ee|].
    replace (1 - Q2R rate) with (Q2R (1 - rate)); [apply encloses_rational|].
    rewrite Q2R_minus; f_equal; unfold Q2R; simpl; field. }
  set (rest := I.sub p e (rational p (1 - rate))) in *.
  unfold removal_profile; rewrite !Rmult_1_l.
  destruct (surely_at_most_zero rest) eqn:N.
  - apply surely_sound with (2 := Er) in N; intros E.
    assert (xi = I.sub p (I.fromZ p 1) e) as -> by congruence.
    exists (1 - exp (Q2R x)); split; [apply encloses_sub; [apply encloses_integer|exact Ee]|].
    destruct (Rle_dec (1 - Q2R rate) (exp (Q2R x))); [|lra].
    replace (exp (Q2R x) - (1 - Q2R rate)) with 0 by lra; rewrite profile_b0; lra.
  - destruct (surely_at_most_zero (I.sub p (rational p (1 # 2 ^ bits)) rest)) eqn:P;
      [|discriminate]; intros E.
    apply surely_sound with (x := Q2R (1 # 2 ^ bits) - (exp (Q2R x) - (1 - Q2R rate))) in P;
      [|apply encloses_sub; [apply encloses_rational|exact Er]].
    assert (0 < Q2R (1 # 2 ^ bits)).
    { unfold Q2R; cbn [Qnum Qden]; rewrite Rmult_1_l; apply Rinv_0_lt_compat, IZR_lt; reflexivity. }
    destruct (Rle_dec (1 - Q2R rate) (exp (Q2R x))); [|lra].
    apply (above_profile_sound bits (rational p m) (rational p rate) rest); auto;
      try apply encloses_rational; lra.
Qed.
