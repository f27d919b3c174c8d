(** The loss of a step in pure DP: of two laws no outcome of which is more likely by a factor above E
    in either, none is further apart than an answer that is true with odds E (Kairouz, Oh and
    Viswanath 2015). For randomised response between two answers, and for discrete Laplace noise on
    a count, that is the loss itself. *)

From Coq Require Import Reals QArith Qreals List ZArith Lra Lia.
From Dpledger Require Import Sums Finite Domination Losses LossLists LossEnclosures Enclosure
  FixedPoint FixedGaussian SampledLoss.
Import ListNotations.
Open Scope Z_scope.

(** ** As a program *)

(** 2^p times the profile at dots above l, for the odds e; both in units of 2^-p. *)
Definition odds_height (p e l : Z) : Z :=
  round_up (Z.max 0 (e - l) * 2 ^ p + Z.max 0 (2 ^ (2 * p) - l * e)) (2 ^ p + e).

(** The profile bends at ln E and at - ln E: dots about them, descending. Which these are decides
    how fine the answer is, and nothing else. *)
Definition places_about (p e : Z) (step : Q) : list Z :=
  let q := Mantissa.PtoP (Z.to_pos (p + 32)) in
  let ratio := I.div q (I.fromZ q e) (I.fromZ q (2 ^ p)) in
  match upper 64 (I.div q (I.ln q ratio) (rational q step)) with
  | Some n =>
      let up := if n <=? 1 then [1; 0] else [n; n - 1; n - 2] in
      up ++ map Z.opp (rev (filter (fun z => 0 <? z) up))
  | None => []
  end.

Fixpoint odds_heights (w bits e : Z) (step : Q) (places : list Z) : option (list (Z * Z * Z)) :=
  match places with
  | [] => Some []
  | z :: rest =>
      let p := w + bits + guard in
      match exp_of_rational p (inject_Z z * step), odds_heights w bits e step rest with
      | Some (l, _), Some known =>
          Some ((z, Z.shiftr l (p - bits), shift_up (odds_height p e l) guard) :: known)
      | _, _ => None
      end
  end.

(** One loss for both orders: the profile is symmetric. *)
Definition odds_loss (w bits e : Z) (step : Q) : option whole_loss :=
  if 0 <=? e then
    match odds_heights w bits e step (places_about (w + bits + guard) e step) with
    | Some listed => loss_from w bits step listed
    | None => None
    end
  else None.

(** ** Soundness *)

Open Scope R_scope.

(** No outcome is more likely by a factor above [E] in either law. *)
Definition within_odds {A} (l : list A) (p q : A -> R) (E : R) : Prop :=
  forall y, In y l -> p y <= E * q y /\ q y <= E * p y.

Definition odds_profile (E a b : R) : R :=
  (plus_part (a * E - b) + plus_part (a - b * E)) / (1 + E).

(** Every outcome is a mixture of the two answers. *)
Theorem odds_dominate {A} (l : list A) p q E :
  distribution l p -> distribution l q -> within_odds l p q E ->
  below_profile l p q (odds_profile E).
Proof.
  intros [Np Sp] [Nq Sq] H a b Ha Hb.
  assert (One : 1 <= E).
  { rewrite <- Sp; rewrite <- (Rmult_1_r E), <- Sq, <- total_scal; apply total_le.
    intros y I; apply H, I. }
  destruct (Rle_lt_or_eq_dec 1 E One) as [L|<-].
  - set (u := plus_part (a * E - b)); set (v := plus_part (a - b * E)).
    assert (Pu : 0 <= u) by apply plus_part_nonneg; assert (Pv : 0 <= v) by apply plus_part_nonneg.
    assert (D : 0 < E * E - 1) by nra.
    assert (Each : excess l p q a b
              <= total l (fun y => / (E * E - 1) * ((u * E - v) * p y + (v * E - u) * q y))).
    { apply total_le; intros y I; destruct (H y I) as [H1 H2].
      apply Rmult_le_reg_l with (1 := D); rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
      assert (Hu : a * E - b <= u) by apply plus_part_ge.
      assert (Hv : a - b * E <= v) by apply plus_part_ge.
      rewrite <- plus_part_scal by lra; unfold plus_part at 1; apply Rmax_lub.
      - assert (0 <= u * (E * p y - q y)) by (apply Rmult_le_pos; lra).
        assert (0 <= v * (E * q y - p y)) by (apply Rmult_le_pos; lra); lra.
      - assert ((a * E - b) * (E * p y - q y) <= u * (E * p y - q y))
          by (apply Rmult_le_compat_r; lra).
        assert ((a - b * E) * (E * q y - p y) <= v * (E * q y - p y))
          by (apply Rmult_le_compat_r; lra).
        lra. }
    eapply Rle_trans; [exact Each|]; rewrite total_scal, total_plus, !total_scal, Sp, Sq.
    right; unfold odds_profile; fold u v; field; split; nra.
  - assert (Same : excess l p q a b = excess l p p a b).
    { apply total_ext; intros y I; destruct (H y I); replace (q y) with (p y) by lra; reflexivity. }
    rewrite Same, excess_diag by (split; assumption); unfold odds_profile.
    right; rewrite !Rmult_1_r; field.
Qed.

Lemma odds_profile_diag E a b :
  1 <= E -> 0 <= a -> 0 <= b -> plus_part (a - b) <= odds_profile E a b.
Proof.
  intros HE Ha Hb; pose proof (excess_diag [tt] (fun _ => 1) a b) as D.
  assert (One : distribution [tt] (fun _ : unit => 1)) by (split; [intros u _; lra|simpl; ring]).
  rewrite <- (D One); apply odds_dominate; try assumption; intros y _; lra.
Qed.

Section Odds.

Variables (w bits e : Z) (step : Q).
Hypotheses (Hw : (0 <= w)%Z) (Hbits : (0 <= bits)%Z) (Hstep : 0 < Q2R step).

Notation p := (w + bits + guard)%Z.
Notation E := (IZR e / unit_of p).

Lemma bits_nonneg : (0 <= p)%Z.
Proof. pose proof guard_nonneg; lia. Qed.

Lemma odds_height_sound l y :
  (0 <= e)%Z -> IZR l / unit_of p <= y ->
  odds_profile E 1 y <= IZR (odds_height p e l) / unit_of p.
Proof.
  intros He Hy; pose proof bits_nonneg as Hp; pose proof (unit_pos p Hp) as P.
  pose proof (IZR_le _ _ He) as Re.
  assert (PZ : (0 < 2 ^ p)%Z) by (apply Z.pow_pos_nonneg; lia).
  pose proof (round_up_ge (Z.max 0 (e - l) * 2 ^ p + Z.max 0 (2 ^ (2 * p) - l * e)) (2 ^ p + e)
                ltac:(lia)) as U; fold (odds_height p e l) in U.
  apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
  eapply Rle_trans; [|exact U]; clear U.
  rewrite !plus_IZR, mult_IZR; fold (unit_of p).
  assert (Hplus : forall z, IZR (Z.max 0 z) = plus_part (IZR z)).
  { intros z; unfold plus_part; destruct (Z.max_spec 0 z) as [[L ->]|[L ->]].
    - rewrite Rmax_right; [reflexivity|apply IZR_le; lia].
    - rewrite Rmax_left; [reflexivity|apply IZR_le, L]. }
  assert (Sq : IZR (2 ^ (2 * p)) = unit_of p * unit_of p)
    by (unfold unit_of; rewrite <- mult_IZR, <- Z.pow_add_r by lia; do 2 f_equal; lia).
  rewrite !Hplus, !minus_IZR, mult_IZR, Sq; unfold odds_profile.
  assert (Den : 0 < 1 + E).
  { assert (0 <= E) by (apply Rmult_le_pos; [exact Re|left; apply Rinv_0_lt_compat, P]); lra. }
  replace ((plus_part (IZR e - IZR l) * unit_of p
            + plus_part (unit_of p * unit_of p - IZR l * IZR e))
           / (unit_of p + IZR e) * / unit_of p)
    with ((/ unit_of p * plus_part (IZR e - IZR l)
           + / (unit_of p * unit_of p) * plus_part (unit_of p * unit_of p - IZR l * IZR e))
          / (1 + E)) by (field; repeat split; nra).
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Den|].
  assert (I1 : 0 < / unit_of p) by (apply Rinv_0_lt_compat, P).
  assert (I2 : 0 < / (unit_of p * unit_of p)) by (apply Rinv_0_lt_compat; nra).
  assert (PE : 0 <= E) by (apply Rmult_le_pos; lra).
  rewrite <- !plus_part_scal by lra.
  apply Rplus_le_compat; apply plus_part_le.
  - rewrite Rmult_1_l; replace (/ unit_of p * (IZR e - IZR l)) with (E - IZR l / unit_of p)
      by (field; lra); lra.
  - replace (/ (unit_of p * unit_of p) * (unit_of p * unit_of p - IZR l * IZR e))
      with (1 - IZR l / unit_of p * E) by (field; lra).
    pose proof (Rmult_le_compat_r E _ _ PE Hy); lra.
Qed.

Lemma odds_heights_sound places listed z g f :
  (0 <= e)%Z -> odds_heights w bits e step places = Some listed -> In (z, g, f) listed ->
  odds_profile E 1 (exp (IZR z * Q2R step)) <= IZR f / (IZR (2 ^ bits) * unit_of w).
Proof.
  intros He; revert listed; induction places as [|z' rest IH]; intros listed; cbn [odds_heights].
  - intros H; injection H as <-; intros [].
  - destruct (exp_of_rational p (inject_Z z' * step)) as [[l u]|] eqn:X; [|discriminate].
    destruct (odds_heights w bits e step rest) as [known|]; [|discriminate].
    intros H; injection H as <-; intros [I|I]; [|apply (IH known eq_refl I)].
    injection I as -> _ <-; apply exp_of_rational_sound in X; [|assumption|assumption].
    rewrite Q2R_mult, Q2R_integer in X.
    replace (IZR (2 ^ bits) * unit_of w) with (unit_of (w + bits))
      by (rewrite unit_plus by assumption; unfold unit_of; ring).
    eapply Rle_trans; [apply (odds_height_sound l); [exact He|apply X]|].
    apply without_guard; lia.
Qed.

Theorem odds_loss_sound {A} (l : list A) P Q ratio L :
  odds_loss w bits e step = Some L -> ratio <= E ->
  distribution l P -> distribution l Q -> within_odds l P Q ratio ->
  sound_list L /\ below_profile l P Q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  unfold odds_loss; destruct (Z.leb_spec 0 e) as [He|]; [|discriminate].
  destruct (odds_heights _ _ _ _ _) as [listed|] eqn:H; [|discriminate]; intros F Le Dp Dq W.
  refine (loss_from_sound w bits step Hw Hbits Hstep l P Q (odds_profile E) listed L F Dp
            (proj1 Dq) _ _).
  - apply odds_dominate; try assumption; intros y I; destruct (W y I) as [W1 W2].
    pose proof (proj1 Dp y I); pose proof (proj1 Dq y I); split; nra.
  - intros z g f I; apply (odds_heights_sound _ _ _ _ _ He H I).
Qed.

End Odds.
