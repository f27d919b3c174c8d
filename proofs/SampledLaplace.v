(** The loss of a Laplace step on a Poisson sample or on a batch, in whole numbers; and what it costs
    in pure DP (Balle, Barthe and Gaboardi 2018, Theorems 8 and 9). *)

From Coq Require Import Reals QArith Qreals List ZArith Lra Lia Psatz.
From Dpledger Require Import Sums Finite Domination BatchSampling LaplaceProfile Losses LossLists
  Enclosure LossEnclosures FixedPoint FixedGaussian SampledLoss LaplaceLoss.
Import ListNotations.
Open Scope Z_scope.

(** ** As a program *)

(** With the record against without it, at thresholds above [low], where [shrunk] is at most
    exp(-far); in units of 2^-p. *)
Definition laplace_removal (p shrunk : Z) (rate : Q) (low : Z) : Z :=
  let num := Qnum rate in
  let den := Zpos (Qden rate) in
  let left := low * den - (den - num) * 2 ^ p in
  if left <=? 0 then 2 ^ p - low
  else
    (* digits of the root below those of 2^-p are left out *)
    let t := Z.log2 den in
    let root := (Z.sqrt (shrunk * num * left / 2 ^ (2 * t)) * 2 ^ t)%Z in
    round_up (num * 2 ^ p - Z.min (num * 2 ^ p) (Z.min left root)) den.

Definition laplace_removal_heights (w bits : Z) (ratio rate : Q) : option (Z -> Z -> option Z) :=
  let p := w + bits + guard in
  let far := root_above p ratio in
  if Qle_bool 0 far && Qle_bool ratio (far * far) then
    match exp_of_rational p (- far) with
    | Some (shrunk, _) =>
        Some (fun low _ => Some (laplace_removal p (Z.max 0 shrunk) rate low))
    | None => None
    end
  else None.

Definition laplace_step_losses (w bits : Z) (ratio rate step : Q) (dense tail : Z) :
  option (whole_loss * whole_loss) :=
  match laplace_removal_heights w bits ratio rate with
  | Some above => both_losses w bits above step dense tail
  | None => None
  end.

Definition laplace_batch_losses (w bits : Z) (ratio rate step : Q) (dense tail : Z) :
  option whole_loss :=
  match laplace_removal_heights w bits ratio rate with
  | Some above => turned_losses w bits above step dense tail
  | None => None
  end.

(** Whether 1 - q + q exp(far) is at most exp(eps), for a root [far] of a ratio. *)
Definition amplified_at_most (ratio rate eps : Q) : bool :=
  let p := 192 in
  let far := root_above p ratio in
  Qle_bool 0 far && Qle_bool ratio (far * far) &&
  match exp_of_rational p far, exp_of_rational p eps with
  | Some (_, u), Some (l, _) =>
      (Zpos (Qden rate) - Qnum rate) * 2 ^ p + Qnum rate * u <=? Zpos (Qden rate) * l
  | _, _ => false
  end.

(** ** Soundness *)

Open Scope R_scope.

(** The profile of noise moved by [far] scales. *)
Definition laplace_at (far : R) : R -> R -> R := laplace_profile (exp (- far / 2)).

Lemma laplace_at_larger far far' a b : far <= far' -> laplace_at far a b <= laplace_at far' a b.
Proof.
  intros H; apply Rplus_le_compat_l, Ropp_le_contravar, common_part_le_r, exp_le; lra.
Qed.

Lemma laplace_symmetric k : symmetric_profile (laplace_profile k).
Proof.
  split; [|intros a b _ _; unfold laplace_profile; rewrite (common_part_comm k a b); ring].
  intros s a b Hs Ha Hb; unfold laplace_profile, common_part.
  assert (Least : forall u v, Rmin (s * u) (s * v) = s * Rmin u v)
    by (intros u v; unfold Rmin; destruct (Rle_dec u v), (Rle_dec (s * u) (s * v)); nra).
  replace (s * a * (s * b)) with (s * s * (a * b)) by ring.
  rewrite sqrt_mult, sqrt_square by nra.
  replace (k * (s * sqrt (a * b))) with (s * (k * sqrt (a * b))) by ring.
  rewrite !Least; ring.
Qed.

Lemma laplace_at_nonneg far a b : 0 <= a -> 0 <= b -> 0 <= laplace_at far a b.
Proof.
  intros Ha Hb; eapply Rle_trans; [apply plus_part_nonneg|].
  apply laplace_profile_ge; try eassumption; left; apply exp_pos.
Qed.

Lemma removal_larger r (F G : R -> R -> R) a b :
  0 <= r <= 1 -> (forall a b, 0 <= a -> 0 <= b -> F a b <= G a b) -> 0 <= a ->
  removal_profile r F a b <= removal_profile r G a b.
Proof.
  intros Hr H Ha; unfold removal_profile; destruct (Rle_dec _ _); [|lra].
  apply H; [apply Rmult_le_pos; lra|lra].
Qed.

Lemma addition_larger r (F G : R -> R -> R) a b :
  0 <= r <= 1 -> (forall a b, 0 <= a -> 0 <= b -> F a b <= G a b) -> 0 <= b ->
  addition_profile r F a b <= addition_profile r G a b.
Proof.
  intros Hr H Hb; unfold addition_profile; destruct (Rle_dec _ _); [|lra].
  apply H; [lra|apply Rmult_le_pos; lra].
Qed.

(** ** In pure DP *)

Lemma pure_of_profile {A} (l : list A) p q G y :
  below_profile l p q G -> 0 <= y -> G 1 y <= 0 -> forall a, In a l -> p a <= y * q a.
Proof.
  intros B Hy Z a I; specialize (B 1 y ltac:(lra) Hy).
  pose proof (total_zero_inv l (fun a => plus_part (1 * p a - y * q a))
                (fun a _ => plus_part_nonneg _)) as All.
  assert (E : total l (fun a => plus_part (1 * p a - y * q a)) = 0).
  { apply Rle_antisym; [unfold excess in B; lra|apply total_nonneg; intros; apply plus_part_nonneg]. }
  pose proof (plus_part_ge (1 * p a - y * q a)) as Le; rewrite (All E a I) in Le; lra.
Qed.

Section Amplified.

Variables (r far : R).
Hypotheses (Hr : 0 <= r <= 1) (Hfar : 0 <= far).

Definition amplified : R := 1 - r + r * exp far.

Lemma amplified_at_least : 1 <= amplified.
Proof.
  assert (1 <= exp far) by (rewrite <- exp_0; apply exp_le, Hfar); unfold amplified; nra.
Qed.

Lemma nothing_left a b : 0 <= a -> a * exp far <= b -> laplace_at far a b <= 0.
Proof.
  intros Ha Hb; unfold laplace_at, laplace_profile.
  assert (L : a <= common_part (exp (- far / 2)) a b); [|lra].
  assert (One : 1 <= exp far) by (rewrite <- exp_0; apply exp_le, Hfar).
  repeat apply Rmin_glb; [lra|nra|].
  rewrite <- (sqrt_square a) at 1 by exact Ha.
  rewrite <- (sqrt_square (exp (- far / 2))) by (left; apply exp_pos).
  assert (E : exp (- far / 2) * exp (- far / 2) * exp far = 1)
    by (rewrite <- !exp_plus, <- exp_0; f_equal; field).
  pose proof (exp_pos (- far / 2)) as P; pose proof (exp_pos far) as P'.
  rewrite <- sqrt_mult by nra; apply sqrt_le_1_alt.
  set (k := exp (- far / 2)) in *.
  apply Rle_trans with (k * k * (a * (a * exp far))).
  - right; replace (k * k * (a * (a * exp far))) with (k * k * exp far * (a * a)) by ring.
    rewrite E; ring.
  - apply Rmult_le_compat_l; [nra|apply Rmult_le_compat_l; assumption].
Qed.

Lemma removal_amplified : removal_profile r (laplace_at far) 1 amplified <= 0.
Proof.
  pose proof amplified_at_least as A; unfold removal_profile; destruct (Rle_dec _ _) as [_|N]; [|nra].
  rewrite !Rmult_1_l; apply nothing_left; [lra|unfold amplified; lra].
Qed.

Lemma addition_amplified : addition_profile r (laplace_at far) 1 amplified <= 0.
Proof.
  pose proof amplified_at_least as A; unfold addition_profile; destruct (Rle_dec _ _) as [L|_]; [|lra].
  apply nothing_left; [lra|].
  assert (One : 1 <= exp far) by (rewrite <- exp_0; apply exp_le, Hfar).
  unfold amplified in *; set (e := exp far) in *.
  (* of (1 - r + r e)((1 - r) e + r) at least e *)
  assert (0 <= r * (1 - r) * ((e - 1) * (e - 1))) by (repeat apply Rmult_le_pos; nra).
  nra.
Qed.

End Amplified.

Lemma replaced_amplified r far :
  0 <= r <= 1 -> 0 <= far -> replaced_profile r (laplace_at far) 1 (amplified r far) <= 0.
Proof.
  intros Hr Hf; unfold replaced_profile, turned; destruct (Rle_dec _ _) as [_|N].
  - apply removal_amplified; assumption.
  - destruct N; apply amplified_at_least; assumption.
Qed.

Theorem amplified_at_most_sound ratio rate eps far :
  0 < Q2R rate <= 1 -> far <= sqrt (Q2R ratio) -> amplified_at_most ratio rate eps = true ->
  amplified (Q2R rate) far <= exp (Q2R eps).
Proof.
  intros Hr Le; unfold amplified_at_most; cbv zeta; set (above := root_above 192 ratio).
  rewrite !andb_true_iff; intros [[G0 G1] G].
  assert (Far : far <= Q2R above).
  { assert (Zero : Q2R 0 = 0) by exact (Q2R_integer 0).
    apply Qle_bool_R in G0, G1; rewrite Zero in G0; rewrite Q2R_mult in G1.
    apply Rle_trans with (1 := Le); rewrite <- (sqrt_square (Q2R above)) by exact G0.
    apply sqrt_le_1_alt, G1. }
  destruct (exp_of_rational 192 above) as [[l u]|] eqn:U; [|discriminate].
  destruct (exp_of_rational 192 eps) as [[l' u']|] eqn:L; [|discriminate].
  apply exp_of_rational_sound in U as [_ U]; [|lia]; apply exp_of_rational_sound in L as [L _]; [|lia].
  apply Z.leb_le, IZR_le in G; rewrite plus_IZR, !mult_IZR, minus_IZR in G.
  change (IZR (2 ^ 192)) with (unit_of 192) in G; pose proof (unit_pos 192 ltac:(lia)) as P.
  assert (Er : Q2R rate = IZR (Qnum rate) / IZR (Zpos (Qden rate))) by reflexivity.
  assert (Hd : 0 < IZR (Zpos (Qden rate))) by (apply IZR_lt; reflexivity).
  apply Rle_trans with (2 := L).
  apply Rle_trans with (1 - Q2R rate + Q2R rate * (IZR u / unit_of 192)).
  { unfold amplified; apply Rplus_le_compat_l, Rmult_le_compat_l; [lra|].
    apply Rle_trans with (2 := U), exp_le, Far. }
  rewrite Er in *; set (n := IZR (Qnum rate)) in *; set (d := IZR (Zpos (Qden rate))) in *.
  apply Rmult_le_reg_l with (1 := Rmult_lt_0_compat _ _ Hd P).
  replace (d * unit_of 192 * (1 - n / d + n / d * (IZR u / unit_of 192)))
    with ((d - n) * unit_of 192 + n * IZR u) by (field; lra).
  replace (d * unit_of 192 * (IZR l' / unit_of 192)) with (d * IZR l') by (field; lra).
  exact G.
Qed.

(** ** By the loss *)

Section Heights.

Variables (p : Z) (rate : Q) (shrunk : Z) (far : R).
Hypotheses (Hp : (0 <= p)%Z) (Hrate : 0 < Q2R rate <= 1).
Hypotheses (Hshrunk : (0 <= shrunk)%Z) (Shrunk : IZR shrunk / unit_of p <= exp (- far)).

Lemma laplace_removal_sound low y :
  0 < y -> IZR low / unit_of p <= y ->
  removal_profile (Q2R rate) (laplace_at far) 1 y
    <= IZR (laplace_removal p shrunk rate low) / unit_of p.
Proof.
  intros Py Low; pose proof (unit_pos p Hp) as P; unfold laplace_removal; cbv zeta.
  assert (Er : Q2R rate = IZR (Qnum rate) / IZR (Zpos (Qden rate))) by reflexivity.
  assert (Hd : 0 < IZR (Zpos (Qden rate))) by (apply IZR_lt; reflexivity).
  set (left := (low * Zpos (Qden rate) - (Zpos (Qden rate) - Qnum rate) * 2 ^ p)%Z).
  assert (Left : IZR left / (IZR (Zpos (Qden rate)) * unit_of p)
                 = IZR low / unit_of p - (1 - Q2R rate)).
  { unfold left; rewrite minus_IZR, !mult_IZR, minus_IZR; fold (unit_of p); rewrite Er; field; lra. }
  assert (Num : (0 < Qnum rate)%Z).
  { apply lt_IZR; destruct Hrate as [H _]; rewrite Er in H.
    apply Rmult_lt_reg_r with (/ IZR (Zpos (Qden rate))); [apply Rinv_0_lt_compat, Hd|].
    unfold Rdiv in H; lra. }
  set (r := Q2R rate) in *; set (n := IZR (Qnum rate)) in *; set (d := IZR (Zpos (Qden rate))) in *.
  assert (Pdu : 0 < d * unit_of p) by (apply Rmult_lt_0_compat; assumption).
  unfold removal_profile; rewrite !Rmult_1_l; destruct (Z.leb_spec left 0) as [Small|Large].
  - apply IZR_le in Small.
    assert (Lr : IZR low / unit_of p <= 1 - r).
    { assert (IZR left / (d * unit_of p) <= 0); [|lra].
      apply Rmult_le_reg_r with (1 := Pdu); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
    rewrite fixed_minus, fixed_one by exact Hp.
    destruct (Rle_dec (1 - r) y) as [G|G]; [|lra].
    unfold laplace_at, laplace_profile.
    pose proof (common_part_nonneg (exp (- far / 2)) r (y - (1 - r)) ltac:(left; apply exp_pos)
                  ltac:(lra) ltac:(lra)); lra.
  - pose proof Large as Large'; apply IZR_lt in Large.
    set (v := IZR left / (d * unit_of p)) in *.
    assert (Pv : 0 < v) by (apply Rdiv_lt_0_compat; assumption).
    destruct (Rle_dec (1 - r) y) as [G|G]; [|lra].
    set (X := (shrunk * Qnum rate * left)%Z).
    assert (HX : (0 <= X)%Z) by (unfold X; nia).
    set (t := Z.log2 (Zpos (Qden rate))); set (root := (Z.sqrt (X / 2 ^ (2 * t)) * 2 ^ t)%Z).
    assert (Root : (0 <= root /\ root * root <= X)%Z).
    { assert (Pt : (0 < 2 ^ t)%Z) by (apply Z.pow_pos_nonneg; [lia|apply Z.log2_nonneg]).
      assert (E2 : (2 ^ (2 * t) = 2 ^ t * 2 ^ t)%Z).
      { rewrite <- Z.pow_add_r by apply Z.log2_nonneg; f_equal; lia. }
      assert (P2 : (0 < 2 ^ (2 * t))%Z) by (rewrite E2; nia).
      pose proof (Z.div_pos X _ HX P2) as Q; pose proof (Z.sqrt_nonneg (X / 2 ^ (2 * t))).
      pose proof (Z.sqrt_spec _ Q) as [S _]; pose proof (Z.mul_div_le X _ P2) as D.
      unfold root; split; [nia|]; rewrite E2 in *; nia. }
    set (c := Z.min (Qnum rate * 2 ^ p) (Z.min left root)).
    assert (Hc : (0 <= c)%Z).
    { unfold c; pose proof (Z.pow_nonneg 2 p); nia. }
    pose proof (round_up_ge (Qnum rate * 2 ^ p - c) (Zpos (Qden rate)) ltac:(lia)) as U.
    rewrite minus_IZR, mult_IZR in U; fold (unit_of p) in U; fold n d in U.
    apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
    eapply Rle_trans; [|exact U].
    replace ((n * unit_of p - IZR c) / d * / unit_of p) with (r - IZR c / (d * unit_of p))
      by (rewrite Er; field; lra).
    unfold laplace_at, laplace_profile; apply Rplus_le_compat_l, Ropp_le_contravar.
    assert (Below : forall z, (c <= z)%Z -> IZR c / (d * unit_of p) <= IZR z / (d * unit_of p)).
    { intros z Hz; apply IZR_le in Hz; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pdu|exact Hz]. }
    repeat apply Rmin_glb.
    + eapply Rle_trans; [apply (Below (Qnum rate * 2 ^ p)%Z); unfold c; lia|].
      rewrite mult_IZR; fold (unit_of p) n; right; rewrite Er; field; lra.
    + eapply Rle_trans; [apply (Below left); unfold c; lia|]; fold v; lra.
    + rewrite <- (sqrt_square (exp (- far / 2))) by (left; apply exp_pos).
      replace (exp (- far / 2) * exp (- far / 2)) with (exp (- far))
        by (rewrite <- exp_plus; f_equal; field).
      rewrite <- sqrt_mult by (try (left; apply exp_pos); apply Rmult_le_pos; lra).
      apply IZR_le in Hc; rewrite <- (sqrt_square (IZR c / (d * unit_of p)))
        by (apply Rmult_le_pos; [exact Hc|left; apply Rinv_0_lt_compat, Pdu]).
      apply sqrt_le_1_alt.
      assert (Sq : (c * c <= X)%Z).
      { apply le_IZR in Hc; assert (c <= root)%Z by (unfold c; lia); nia. }
      apply IZR_le in Sq; unfold X in Sq; rewrite !mult_IZR in Sq; fold n in Sq.
      apply Rle_trans with (IZR shrunk / unit_of p * (r * v)).
      * replace (IZR shrunk / unit_of p * (r * v))
          with (IZR shrunk * n * IZR left * (/ (d * unit_of p) * / (d * unit_of p)))
          by (unfold v; rewrite Er; field; lra).
        replace (IZR c / (d * unit_of p) * (IZR c / (d * unit_of p)))
          with (IZR c * IZR c * (/ (d * unit_of p) * / (d * unit_of p))) by (unfold Rdiv; ring).
        apply Rmult_le_compat_r; [|exact Sq].
        pose proof (Rinv_0_lt_compat _ Pdu); nra.
      * apply IZR_le in Hshrunk; apply Rmult_le_compat; [|apply Rmult_le_pos; lra|exact Shrunk|].
        -- apply Rmult_le_pos; [exact Hshrunk|left; apply Rinv_0_lt_compat, P].
        -- apply Rmult_le_compat_l; lra.
Qed.

End Heights.

Section Steps.

Variables (w bits : Z) (ratio rate step : Q) (far : R).
Hypotheses (Hw : (0 <= w)%Z) (Hbits : (0 <= bits)%Z) (Hstep : 0 < Q2R step).
Hypotheses (Hrate : 0 < Q2R rate <= 1) (Hfar : far <= sqrt (Q2R ratio)).

Notation p := (w + bits + guard)%Z.

Lemma laplace_removal_heights_sound above :
  laplace_removal_heights w bits ratio rate = Some above ->
  forall low high n y, True -> 0 < y ->
  IZR low / unit_of p <= y <= IZR high / unit_of p -> above low high = Some n ->
  removal_profile (Q2R rate) (laplace_at far) 1 y <= IZR n / unit_of p.
Proof.
  pose proof guard_nonneg as Hg; assert (Hp : (0 <= p)%Z) by lia.
  unfold laplace_removal_heights; cbv zeta; set (root := root_above p ratio).
  destruct (_ && _)%bool eqn:G; [|discriminate]; apply andb_true_iff in G as [G0 G1].
  assert (Far : far <= Q2R root).
  { assert (Zero : Q2R 0 = 0) by exact (Q2R_integer 0).
    apply Qle_bool_R in G0, G1; rewrite Zero in G0; rewrite Q2R_mult in G1.
    apply Rle_trans with (1 := Hfar); rewrite <- (sqrt_square (Q2R root)) by exact G0.
    apply sqrt_le_1_alt, G1. }
  destruct (exp_of_rational p (- root)) as [[s u]|] eqn:S; [|discriminate].
  intros E; injection E as <-; intros low high n y _ Py [Low _] E; injection E as <-.
  apply exp_of_rational_sound in S as [S _]; [|exact Hp]; rewrite Q2R_opp in S.
  apply Rle_trans with (removal_profile (Q2R rate) (laplace_at (Q2R root)) 1 y);
    [|apply (laplace_removal_sound p rate (Z.max 0 s)); try assumption; try lia].
  - apply removal_larger; [lra| |lra]; intros a b _ _; apply laplace_at_larger, Far.
  - pose proof (unit_pos p Hp) as P; destruct (Z.max_spec 0 s) as [[_ ->]|[_ ->]]; [exact S|].
    pose proof (exp_pos (- Q2R root)); unfold Rdiv; rewrite Rmult_0_l; lra.
Qed.

Theorem laplace_step_losses_sound dense tail L L' :
  laplace_step_losses w bits ratio rate step dense tail = Some (L, L') ->
  forall A (l : list A) p q, distribution l p -> nonneg l q ->
  (below_profile l p q (removal_profile (Q2R rate) (laplace_at far)) ->
   sound_list L /\ below_profile l p q (profile (stands_for (Q2R step) (unit_of w) L))) /\
  (below_profile l p q (addition_profile (Q2R rate) (laplace_at far)) ->
   sound_list L' /\ below_profile l p q (profile (stands_for (Q2R step) (unit_of w) L'))).
Proof.
  unfold laplace_step_losses; destruct (laplace_removal_heights _ _ _ _) as [above|] eqn:Ea; [|discriminate].
  intros E; apply (both_losses_sound w bits step Hw Hbits Hstep above _ (laplace_at far) dense tail L L' E).
  - exact (laplace_removal_heights_sound above Ea).
  - lra.
  - apply laplace_symmetric.
Qed.

Theorem laplace_batch_losses_sound dense tail L :
  laplace_batch_losses w bits ratio rate step dense tail = Some L ->
  forall A (l : list A) p q, distribution l p -> distribution l q ->
  below_profile l p q (replaced_profile (Q2R rate) (laplace_at far)) ->
  sound_list L /\ below_profile l p q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  unfold laplace_batch_losses; destruct (laplace_removal_heights _ _ _ _) as [above|] eqn:Ea; [|discriminate].
  intros E A l p q Dp Dq B.
  apply (turned_losses_sound w bits step Hw Hbits Hstep above dense tail L E A l p q Dp Dq).
  intros low high n y Hy Py Between R.
  pose proof (laplace_removal_heights_sound above Ea low high n y I Py Between R) as V.
  destruct (turned_both l p q _ y Dp Dq B Hy); split; lra.
Qed.

End Steps.
