(** The loss of a step in pure DP: of two laws no outcome of which is more likely by a factor above E
    in either, none is further apart than an answer that is true with odds E (Kairouz, Oh and
    Viswanath 2015). For discrete Laplace noise on a count that is the loss itself. Of answers among
    more than two, those that are true of neither data set tell nothing: only a share of them all
    differs. *)

From Coq Require Import Reals QArith Qreals List ZArith Lra Lia.
From Dpledger Require Import Sums Finite Pure Domination Losses LossLists LossEnclosures Enclosure
  FixedPoint FixedGaussian SampledLoss.
Import ListNotations.
Open Scope Z_scope.

(** ** As a program *)

(** 2^p times the profile at dots above l, for the odds e; both in units of 2^-p. *)
Definition odds_height (p e : Z) (share : Q) (l : Z) : Z :=
  let differing := Z.max 0 (e - l) * 2 ^ p + Z.max 0 (2 ^ (2 * p) - l * e) in
  round_up (Qnum share * differing) (Zpos (Qden share) * (2 ^ p + e))
  + round_up ((Zpos (Qden share) - Qnum share) * Z.max 0 (2 ^ p - l)) (Zpos (Qden share)).

(** The profile bends at ln E, at 0 and at - ln E: dots about them, descending. Which these are decides
    how fine the answer is, and nothing else. *)
Definition places_about (p e : Z) (step : Q) : list Z :=
  let q := Mantissa.PtoP (Z.to_pos (p + 32)) in
  let ratio := I.div q (I.fromZ q e) (I.fromZ q (2 ^ p)) in
  match upper 64 (I.div q (I.ln q ratio) (rational q step)) with
  | Some n =>
      let up := filter (fun z => 0 <? z) [Z.max 1 n; n - 1; n - 2] in
      up ++ 0 :: map Z.opp (rev up)
  | None => []
  end.

Fixpoint odds_heights (w bits e : Z) (share step : Q) (places : list Z) : option (list (Z * Z * Z)) :=
  match places with
  | [] => Some []
  | z :: rest =>
      let p := w + bits + guard in
      match exp_of_rational p (inject_Z z * step), odds_heights w bits e share step rest with
      | Some (l, _), Some known =>
          Some ((z, Z.shiftr l (p - bits), shift_up (odds_height p e share l) guard) :: known)
      | _, _ => None
      end
  end.

(** One loss for both orders: the profile is symmetric. *)
Definition odds_loss (w bits e : Z) (share step : Q) : option whole_loss :=
  if (0 <=? e) && (0 <=? Qnum share) && (Qnum share <=? Zpos (Qden share)) then
    match odds_heights w bits e share step (places_about (w + bits + guard) e step) with
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

(** Two answers attain it, and so larger odds have a larger profile. *)
Lemma odds_profile_le E E' a b :
  1 <= E <= E' -> 0 <= a -> 0 <= b -> odds_profile E a b <= odds_profile E' a b.
Proof.
  intros [HE Le] Ha Hb; assert (S : 0 < / (1 + E)) by (apply Rinv_0_lt_compat; lra).
  set (p := fun y : bool => if y then E / (1 + E) else / (1 + E)).
  set (q := fun y : bool => if y then / (1 + E) else E / (1 + E)).
  assert (Law : distribution [true; false] p /\ distribution [true; false] q).
  { split; (split; [intros [|] _; unfold p, q, Rdiv; nra|simpl; field; lra]). }
  apply Rle_trans with (excess [true; false] p q a b).
  - right; unfold odds_profile, excess, p, q; cbn [total].
    replace (a * (E / (1 + E)) - b * / (1 + E)) with (/ (1 + E) * (a * E - b)) by (field; lra).
    replace (a * / (1 + E) - b * (E / (1 + E))) with (/ (1 + E) * (a - b * E)) by (field; lra).
    rewrite !plus_part_scal by lra; field; lra.
  - apply odds_dominate; try apply Law; try assumption.
    set (s := / (1 + E)) in *; assert (s <= E * s <= E' * s) by (split; nra).
    assert (s <= E' * (E * s)) by nra; intros [|] _; unfold p, q, Rdiv; fold s; split; lra.
Qed.

(** Only a share of the mass differs. *)
Definition shared_profile (E share a b : R) : R :=
  share * odds_profile E a b + (1 - share) * plus_part (a - b).

Lemma shared_profile_diag E share a b :
  1 <= E -> 0 <= share -> 0 <= a -> 0 <= b -> plus_part (a - b) <= shared_profile E share a b.
Proof.
  intros HE Hs Ha Hb; pose proof (odds_profile_diag E a b HE Ha Hb); unfold shared_profile.
  assert (0 <= share * (odds_profile E a b - plus_part (a - b))) by (apply Rmult_le_pos; lra); lra.
Qed.

Lemma total_once (l : list nat) t c :
  NoDup l -> In t l -> total l (fun y => if Nat.eqb t y then c else 0) = c.
Proof.
  intros U; induction U as [|y l N U IH]; intros I; [destruct I|]; cbn [total].
  destruct (Nat.eqb_spec t y) as [->|D].
  - rewrite total_zero; [ring|].
    intros z Iz; destruct (Nat.eqb_spec y z) as [->|]; [contradiction|reflexivity].
  - destruct I as [->|I]; [congruence|]; rewrite IH by exact I; ring.
Qed.

(** Answers that are true of neither are as likely on both sides. *)
Theorem answers_dominate p k t t' E :
  0 < p < 1 -> (2 <= k)%nat -> (t < k)%nat -> (t' < k)%nat ->
  let other := (1 - p) / (INR k - 1) in
  1 <= E -> E = p / other \/ E = other / p ->
  below_profile (seq 0 k) (response Nat.eqb p k t) (response Nat.eqb p k t')
    (shared_profile E (p + other)).
Proof.
  intros Hp Hk Ht Ht' o HE Odds a b Ha Hb.
  pose proof (le_INR _ _ Hk) as K; change (INR 2) with (1 + 1) in K.
  assert (Ho : 0 < o) by (apply Rdiv_lt_0_compat; lra).
  destruct (Nat.eq_dec t t') as [<-|N].
  { rewrite excess_diag by (apply response_distribution; [lra|exact Hk|exact Ht]).
    apply shared_profile_diag; lra. }
  set (A := plus_part (a * p - b * o)); set (B := plus_part (a * o - b * p)).
  set (C := plus_part (a * o - b * o)).
  assert (Split : excess (seq 0 k) (response Nat.eqb p k t) (response Nat.eqb p k t') a b
            = (A - C) + (B - C) + INR k * C).
  { transitivity (total (seq 0 k) (fun y => (if Nat.eqb t y then A - C else 0)
                    + ((if Nat.eqb t' y then B - C else 0) + C))).
    - apply total_ext; intros y _; unfold response; fold o.
      destruct (Nat.eqb_spec t y), (Nat.eqb_spec t' y); [congruence| | |];
        unfold A, B, C; ring.
    - rewrite !total_plus, !total_once, total_const, seq_length
        by (try apply seq_NoDup; apply in_seq; lia); ring. }
  assert (Same : C = o * plus_part (a - b))
    by (unfold C; rewrite <- plus_part_scal by lra; f_equal; ring).
  assert (Rest : (INR k - 2) * o = 1 - (p + o)) by (unfold o; field; lra).
  assert (Both : A + B = (p + o) * odds_profile E a b).
  { unfold odds_profile; destruct Odds as [->| ->].
    - replace A with (o * plus_part (a * (p / o) - b))
        by (unfold A; rewrite <- plus_part_scal by lra; f_equal; field; lra).
      replace B with (o * plus_part (a - b * (p / o)))
        by (unfold B; rewrite <- plus_part_scal by lra; f_equal; field; lra).
      field; lra.
    - replace A with (p * plus_part (a - b * (o / p)))
        by (unfold A; rewrite <- plus_part_scal by lra; f_equal; field; lra).
      replace B with (p * plus_part (a * (o / p) - b))
        by (unfold B; rewrite <- plus_part_scal by lra; f_equal; field; lra).
      field; lra. }
  right; rewrite Split; unfold shared_profile; rewrite <- Both, <- Rest, Same; ring.
Qed.

Section Odds.

Variables (w bits e : Z) (share step : Q).
Hypotheses (Hw : (0 <= w)%Z) (Hbits : (0 <= bits)%Z) (Hstep : 0 < Q2R step).

Notation p := (w + bits + guard)%Z.
Notation E := (IZR e / unit_of p).

Lemma bits_nonneg : (0 <= p)%Z.
Proof. pose proof guard_nonneg; lia. Qed.

Hypotheses (He : (0 <= e)%Z) (Hshare : (0 <= Qnum share <= Zpos (Qden share))%Z).

Lemma positive_part z : IZR (Z.max 0 z) = plus_part (IZR z).
Proof.
  unfold plus_part; destruct (Z.max_spec 0 z) as [[L ->]|[L ->]].
  - rewrite Rmax_right; [reflexivity|apply IZR_le; lia].
  - rewrite Rmax_left; [reflexivity|apply IZR_le, L].
Qed.

Lemma odds_height_sound l y :
  IZR l / unit_of p <= y ->
  shared_profile E (Q2R share) 1 y <= IZR (odds_height p e share l) / unit_of p.
Proof.
  intros Hy; pose proof bits_nonneg as Hp; pose proof (unit_pos p Hp) as P.
  pose proof (IZR_le _ _ He) as Re; destruct Hshare as [S0 S1]; apply IZR_le in S0, S1.
  assert (PZ : (0 < 2 ^ p)%Z) by (apply Z.pow_pos_nonneg; lia).
  unfold odds_height; cbv zeta.
  set (X := (Z.max 0 (e - l) * 2 ^ p + Z.max 0 (2 ^ (2 * p) - l * e))%Z).
  set (n := IZR (Qnum share)) in *; set (d := IZR (Zpos (Qden share))) in *.
  assert (Hd : 0 < d) by (apply IZR_lt; reflexivity).
  pose proof (round_up_ge (Qnum share * X) (Zpos (Qden share) * (2 ^ p + e)) ltac:(lia)) as U.
  pose proof (round_up_ge ((Zpos (Qden share) - Qnum share) * Z.max 0 (2 ^ p - l))
                (Zpos (Qden share)) eq_refl) as V.
  rewrite !mult_IZR, plus_IZR in U; rewrite mult_IZR, minus_IZR in V.
  rewrite positive_part, minus_IZR in V; fold (unit_of p) in U, V; fold n d in U, V.
  assert (I1 : 0 < / unit_of p) by (apply Rinv_0_lt_compat, P).
  assert (PE : 0 <= E) by (apply Rmult_le_pos; lra).
  assert (Odds : odds_profile E 1 y <= IZR X / (unit_of p + IZR e) / unit_of p).
  { unfold X; rewrite plus_IZR, mult_IZR, !positive_part, !minus_IZR, mult_IZR; fold (unit_of p).
    assert (Sq : IZR (2 ^ (2 * p)) = unit_of p * unit_of p)
      by (unfold unit_of; rewrite <- mult_IZR, <- Z.pow_add_r by lia; do 2 f_equal; lia).
    rewrite Sq; unfold odds_profile.
    replace ((plus_part (IZR e - IZR l) * unit_of p
              + plus_part (unit_of p * unit_of p - IZR l * IZR e)) / (unit_of p + IZR e) / unit_of p)
      with ((/ unit_of p * plus_part (IZR e - IZR l)
             + / (unit_of p * unit_of p) * plus_part (unit_of p * unit_of p - IZR l * IZR e))
            / (1 + E)) by (field; repeat split; nra).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|].
    assert (I2 : 0 < / (unit_of p * unit_of p)) by (apply Rinv_0_lt_compat; nra).
    rewrite <- !plus_part_scal by lra.
    apply Rplus_le_compat; apply plus_part_le.
    - rewrite Rmult_1_l; replace (/ unit_of p * (IZR e - IZR l)) with (E - IZR l / unit_of p)
        by (field; lra); lra.
    - replace (/ (unit_of p * unit_of p) * (unit_of p * unit_of p - IZR l * IZR e))
        with (1 - IZR l / unit_of p * E) by (field; lra).
      pose proof (Rmult_le_compat_r E _ _ PE Hy); lra. }
  assert (Rest : plus_part (1 - y) <= / unit_of p * plus_part (unit_of p - IZR l)).
  { rewrite <- plus_part_scal by lra; apply plus_part_le.
    replace (/ unit_of p * (unit_of p - IZR l)) with (1 - IZR l / unit_of p) by (field; lra); lra. }
  rewrite plus_IZR, Rdiv_plus_distr; unfold shared_profile.
  assert (Es : Q2R share = n / d) by reflexivity; rewrite Es.
  apply Rplus_le_compat.
  - apply Rle_trans with (n / d * (IZR X / (unit_of p + IZR e) / unit_of p)).
    + apply Rmult_le_compat_l; [apply Rmult_le_pos; [exact S0|left; apply Rinv_0_lt_compat, Hd]|].
      exact Odds.
    + apply (Rmult_le_compat_r (/ unit_of p)) in U; [|lra].
      eapply Rle_trans; [|exact U]; right; field; repeat split; lra.
  - apply Rle_trans with ((1 - n / d) * (/ unit_of p * plus_part (unit_of p - IZR l))).
    + apply Rmult_le_compat_l; [|exact Rest].
      apply Rmult_le_reg_r with (1 := Hd); unfold Rdiv; rewrite Rmult_0_l, Rmult_minus_distr_r.
      rewrite Rmult_assoc, Rinv_l by lra; lra.
    + apply (Rmult_le_compat_r (/ unit_of p)) in V; [|lra].
      eapply Rle_trans; [|exact V]; right; field; lra.
Qed.

Lemma odds_heights_sound places listed z g f :
  odds_heights w bits e share step places = Some listed -> In (z, g, f) listed ->
  shared_profile E (Q2R share) 1 (exp (IZR z * Q2R step)) <= IZR f / (IZR (2 ^ bits) * unit_of w).
Proof.
  revert listed; induction places as [|z' rest IH]; intros listed; cbn [odds_heights].
  - intros H; injection H as <-; intros [].
  - destruct (exp_of_rational p (inject_Z z' * step)) as [[l u]|] eqn:X; [|discriminate].
    destruct (odds_heights w bits e share step rest) as [known|]; [|discriminate].
    intros H; injection H as <-; intros [I|I]; [|apply (IH known eq_refl I)].
    injection I as -> _ <-; apply exp_of_rational_sound in X; [|pose proof guard_nonneg; lia].
    rewrite Q2R_mult, Q2R_integer in X.
    replace (IZR (2 ^ bits) * unit_of w) with (unit_of (w + bits))
      by (rewrite unit_plus by assumption; unfold unit_of; ring).
    eapply Rle_trans; [apply (odds_height_sound l), X|apply without_guard; lia].
Qed.

End Odds.

Theorem odds_loss_sound w bits e share step {A} (l : list A) P Q ratio L :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step ->
  odds_loss w bits e share step = Some L ->
  1 <= ratio <= IZR e / unit_of (w + bits + guard) ->
  distribution l P -> nonneg l Q -> below_profile l P Q (shared_profile ratio (Q2R share)) ->
  sound_list L /\ below_profile l P Q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  intros Hw Hb Hs; unfold odds_loss; destruct (_ && _)%bool eqn:G; [|discriminate].
  apply andb_true_iff in G as [G G2]; apply andb_true_iff in G as [G0 G1].
  apply Z.leb_le in G0, G1, G2.
  destruct (odds_heights _ _ _ _ _ _) as [listed|] eqn:H; [|discriminate]; intros F Le Dp Nq B.
  refine (loss_from_sound w bits step Hw Hb Hs l P Q
            (shared_profile (IZR e / unit_of (w + bits + guard)) (Q2R share)) listed L F Dp Nq _ _).
  - intros a b Ha Hb'; eapply Rle_trans; [apply B; assumption|].
    unfold shared_profile; apply Rplus_le_compat_r, Rmult_le_compat_l.
    + apply IZR_le in G1; unfold Q2R; apply Rmult_le_pos; [exact G1|].
      left; apply Rinv_0_lt_compat, IZR_lt; reflexivity.
    + apply odds_profile_le; [exact Le|exact Ha|exact Hb'].
  - intros z g f I; apply (odds_heights_sound w bits e share step Hw Hb G0 (conj G1 G2) _ _ _ _ _ H I).
Qed.
