(** The loss of a Gaussian step on a Poisson sample of which a record is replaced, in whole numbers:
    sums of vectors, each of them bounded, so that one record more moves them by half of what
    replacing one does. *)

From Coq Require Import Reals QArith Qreals Qround ZArith Lra Lia.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Domination
  GaussianConvolution GaussianComposition BatchSampling ReplacedSample Losses LossLists LossEnclosures FixedPoint
  FixedGaussian SampledLoss.
Open Scope R_scope.

(** ** The profile of a Gaussian step at two weights *)

Section Weighted.

Variable p : Z.

(** At weights [s], and [b] or more. *)
Definition weighted_above (half scale s b : Z) : option Z :=
  if (s <=? 0)%Z then Some 0%Z
  else if (b <=? 0)%Z then Some s
  else
    match ln_below p (b * 2 ^ p / s) with
    | Some k =>
        match delta_anywhere p half scale k with
        | Some d => Some (above p s d)
        | None => None
        end
    | None => None
    end.

(** About the share at which both likelihood ratios meet: phi(t - m) = y phi(t + m) + w phi(t) is a
    quadratic equation in exp(m t); [c] is about exp(-m^2/2). Nothing here needs to be right. *)
Definition best_share (c w y : Z) : Z :=
  let square := (4 * y * (c * c))%Z in
  let root := Z.sqrt (w * w + square / 2 ^ p) in
  if (w =? 0)%Z then 2 ^ p
  else Z.max 0 (Z.min (2 ^ p) (square / ((w + root) * (w + root)))).

(** A record of a sample against another one in its place, at a loss whose exp is [low] at least;
    [half] and [scale] of the step, [half1] and [scale1] of half of its shift. *)
Definition replaced_above (half scale half1 scale1 c : Z) (rate : Q) (low high : Z) : option Z :=
  let num := Qnum rate in
  let den := Zpos (Qden rate) in
  let rest := (Z.max 0 (low - 2 ^ p) * (den - num) / num)%Z in
  let s := best_share c rest low in
  match weighted_above half scale s low, weighted_above half1 scale1 (2 ^ p - s) rest with
  | Some f, Some g => Some (round_up (num * (f + g)) den)
  | _, _ => None
  end.

Hypothesis Hp : (0 <= p)%Z.

Notation fixed n := (IZR n / unit_of p).
Notation mu half := (sqrt (2 * fixed half)).

Lemma weighted_above_sound half scale s b n mu' y :
  (0 < half)%Z -> / (root_two_pi * mu half) <= fixed scale -> 0 < mu' <= mu half ->
  (0 <= s)%Z -> fixed b <= y -> 0 <= y -> weighted_above half scale s b = Some n ->
  gaussian_profile mu' (fixed s) y <= fixed n.
Proof.
  intros Hh Hsc [Pm Hm] Hs Hb Hy; unfold weighted_above.
  pose proof (unit_pos p Hp) as Pu; assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  destruct (s <=? 0)%Z eqn:S.
  { apply Z.leb_le in S; replace s with 0%Z by lia; intros E; injection E as <-.
    unfold Rdiv; rewrite !Rmult_0_l, profile_a0 by exact Hy; lra. }
  apply Z.leb_gt in S; pose proof (fixed_pos p Hp s S) as Ps.
  destruct (b <=? 0)%Z eqn:B.
  { intros E; injection E as <-; destruct Hy as [Hy|<-]; [|rewrite profile_b0; lra].
    rewrite profile_pos by assumption.
    match goal with |- _ * Phi ?u - _ * Phi ?v <= _ =>
      pose proof (Phi_bounds u); pose proof (Phi_bounds v) end; nra. }
  apply Z.leb_gt in B; pose proof (fixed_pos p Hp b B) as Pb.
  destruct (ln_below p _) as [k|] eqn:K; [|discriminate].
  destruct (delta_anywhere p half scale k) as [d|] eqn:D; [|discriminate].
  intros E; injection E as <-; apply ln_below_sound in K as [Kr K]; [|exact Hp].
  apply (delta_anywhere_sound p Hp half scale Hh Hsc) in D.
  rewrite profile_delta by lra; eapply Rle_trans; [|apply above_ge, Hp].
  apply Rmult_le_compat_l; [lra|]; apply Rle_trans with (2 := D).
  apply Rle_trans with (gaussian_delta mu' (fixed k)).
  - apply gaussian_delta_decreasing; [exact Pm|]; apply Rle_trans with (1 := K).
    apply Rcomplements.ln_le; [apply fixed_pos; assumption|].
    pose proof (round_down_le (b * 2 ^ p) s S) as Q; apply (Rmult_le_compat_r (/ unit_of p)) in Q;
      [|lra].
    eapply Rle_trans; [exact Q|]; rewrite mult_IZR; fold (unit_of p); apply IZR_lt in S.
    replace (IZR b * unit_of p / IZR s * / unit_of p) with (fixed b / fixed s)
      by (field; split; lra).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Ps|exact Hb].
  - apply gaussian_delta_increasing; split; assumption.
Qed.

Lemma best_share_within c w y : (0 <= best_share c w y <= 2 ^ p)%Z.
Proof.
  pose proof (Z.pow_nonneg 2 p); unfold best_share; cbv zeta; destruct (_ =? _)%Z; lia.
Qed.

Theorem replaced_above_sound half scale half1 scale1 c rate low high n mu' y :
  (0 < half)%Z -> / (root_two_pi * mu half) <= fixed scale ->
  (0 < half1)%Z -> / (root_two_pi * mu half1) <= fixed scale1 ->
  0 < mu' <= mu half -> mu' / 2 <= mu half1 ->
  0 < Q2R rate <= 1 -> 1 <= y -> fixed low <= y ->
  replaced_above half scale half1 scale1 c rate low high = Some n ->
  exists s, 0 <= s <= 1 /\
    exchanged (Q2R rate) s (gaussian_profile mu') (gaussian_profile (mu' / 2)) 1 y <= fixed n.
Proof.
  intros Hh Hsc Hh1 Hsc1 Hm Hm1 Hr Hy Hlow; unfold replaced_above; cbv zeta.
  pose proof (unit_pos p Hp) as Pu; assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  assert (Er : Q2R rate = IZR (Qnum rate) / IZR (Zpos (Qden rate))) by reflexivity.
  set (num := Qnum rate) in *; set (den := Zpos (Qden rate)) in *.
  assert (Hden : (0 < den)%Z) by reflexivity; apply IZR_lt in Hden as Hden'.
  assert (Hnum : 0 < IZR num).
  { destruct Hr as [Hr _]; rewrite Er in Hr.
    apply Rmult_lt_reg_r with (/ IZR den); [apply Rinv_0_lt_compat, Hden'|unfold Rdiv in Hr; lra]. }
  assert (Hnum' : (0 < num)%Z) by (apply lt_IZR, Hnum).
  set (rest := (Z.max 0 (low - 2 ^ p) * (den - num) / num)%Z); set (s := best_share c rest low).
  pose proof (best_share_within c rest low) as Hs; fold s in Hs.
  destruct (weighted_above half scale s low) as [f|] eqn:Ef; [|discriminate].
  destruct (weighted_above half1 scale1 (2 ^ p - s) rest) as [g|] eqn:Eg; [|discriminate].
  intros E; injection E as <-; exists (fixed s); set (q := Q2R rate) in *.
  assert (S0 : 0 <= fixed s) by (apply fixed_nonneg; [exact Hp|lia]).
  assert (S1 : 0 <= fixed (2 ^ p - s)) by (apply fixed_nonneg; [exact Hp|lia]).
  assert (One : fixed (2 ^ p - s) = 1 - fixed s) by (rewrite fixed_minus, fixed_one by exact Hp; ring).
  split; [lra|].
  assert (Rest : fixed rest <= (y - 1) * (1 - q) / q).
  { unfold rest; pose proof (round_down_le (Z.max 0 (low - 2 ^ p) * (den - num)) num Hnum') as D.
    apply (Rmult_le_compat_r (/ unit_of p)) in D; [|lra]; eapply Rle_trans; [exact D|].
    assert (M : fixed (Z.max 0 (low - 2 ^ p)) <= y - 1).
    { destruct (Z.max_spec 0 (low - 2 ^ p)) as [[_ ->]|[_ ->]].
      - rewrite fixed_minus, fixed_one by exact Hp; lra.
      - unfold Rdiv; rewrite Rmult_0_l; lra. }
    rewrite mult_IZR, minus_IZR; rewrite Er.
    replace (IZR (Z.max 0 (low - 2 ^ p)) * (IZR den - IZR num) / IZR num * / unit_of p)
      with (fixed (Z.max 0 (low - 2 ^ p)) * ((IZR den - IZR num) / IZR num)) by (field; lra).
    replace ((y - 1) * (1 - IZR num / IZR den) / (IZR num / IZR den))
      with ((y - 1) * ((IZR den - IZR num) / IZR num)) by (field; lra).
    apply Rmult_le_compat_r; [|exact M].
    apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, Hnum].
    destruct Hr as [_ Hr]; rewrite Er in Hr.
    apply (Rmult_le_compat_r (IZR den)) in Hr; [|lra]; unfold Rdiv in Hr.
    rewrite Rmult_assoc, Rinv_l in Hr by lra; lra. }
  assert (Pw : 0 <= (y - 1) * (1 - q) / q)
    by (repeat apply Rmult_le_pos; try (left; apply Rinv_0_lt_compat); lra).
  assert (Hm2 : 0 < mu' / 2 <= mu half1) by (split; [lra|exact Hm1]).
  apply (weighted_above_sound half scale s low f mu' y Hh Hsc Hm (proj1 Hs) Hlow ltac:(lra)) in Ef.
  apply (weighted_above_sound half1 scale1 (2 ^ p - s) rest g (mu' / 2) _ Hh1 Hsc1 Hm2 ltac:(lia) Rest Pw)
    in Eg; rewrite One in Eg.
  unfold exchanged.
  replace (fixed s * 1 * q) with (q * fixed s) by ring; replace (y * q) with (q * y) by ring.
  replace ((1 - fixed s) * 1 * q) with (q * (1 - fixed s)) by ring.
  replace ((y - 1) * (1 - q)) with (q * ((y - 1) * (1 - q) / q)) by (field; lra).
  rewrite !GaussianComposition.profile_scal by lra.
  pose proof (round_up_ge (num * (f + g)) den Hden) as U.
  apply (Rmult_le_compat_r (/ unit_of p)) in U; [|lra].
  eapply Rle_trans; [|exact U]; rewrite mult_IZR, plus_IZR.
  replace (IZR num * (IZR f + IZR g) / IZR den * / unit_of p) with (q * (fixed f + fixed g))
    by (rewrite Er; field; lra).
  rewrite <- Rmult_plus_distr_l; apply Rmult_le_compat_l; lra.
Qed.

End Weighted.

(** ** The loss *)

(** Of a step whose (sensitivity / noise)^2 is [m]. *)
Definition replaced_heights (w bits : Z) (m rate : Q) : option (Z -> Z -> option Z) :=
  let p := (w + bits + guard)%Z in
  let half := half_above p m in
  let half1 := half_above p (m / 4) in
  match scale_above p half, scale_above p half1, exp_bounds p (- half1) with
  | Some scale, Some scale1, Some (c, _) => Some (replaced_above p half scale half1 scale1 c rate)
  | _, _, _ => None
  end.

Definition replaced_losses (w bits : Z) (m rate step : Q) (dense tail : Z) : option whole_loss :=
  match replaced_heights w bits m rate with
  | Some above => turned_losses w bits above step dense tail
  | None => None
  end.

Theorem replaced_losses_sound w bits m rate step dense tail L :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step -> 0 < Q2R m -> 0 < Q2R rate <= 1 ->
  replaced_losses w bits m rate step dense tail = Some L ->
  forall A (l : list A) p q, distribution l p -> distribution l q ->
  (forall s, 0 <= s <= 1 ->
     below_profile l p q (turned (exchanged (Q2R rate) s (gaussian_profile (sqrt (Q2R m)))
                                    (gaussian_profile (sqrt (Q2R m) / 2))))) ->
  sound_list L /\ below_profile l p q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  intros Hw Hb Hstep Hm Hr; unfold replaced_losses, replaced_heights; cbv zeta.
  assert (E4 : Q2R (m / 4) = Q2R m / 4).
  { unfold Qdiv; rewrite Q2R_mult; unfold Q2R at 2; simpl; field. }
  destruct (half_above_sound w bits m Hw Hb Hm) as [Ph Hh].
  destruct (half_above_sound w bits (m / 4) Hw Hb ltac:(lra)) as [Ph1 Hh1].
  assert (Hp : (0 <= w + bits + guard)%Z) by (pose proof guard_nonneg; lia).
  destruct (scale_above _ (half_above _ m)) as [scale|] eqn:Es; [|discriminate].
  destruct (scale_above _ (half_above _ (m / 4))) as [scale1|] eqn:Es1; [|discriminate].
  destruct (exp_bounds _ _) as [[c c']|]; [|discriminate].
  apply (scale_above_sound w bits Hw Hb) in Es; [|exact Ph].
  apply (scale_above_sound w bits Hw Hb) in Es1; [|exact Ph1].
  intros E A l p q Dp Dq B.
  apply (turned_losses_sound w bits step Hw Hb Hstep _ dense tail L E A l p q Dp Dq).
  intros low high n y Hy _ [Hlow _] R.
  destruct (replaced_above_sound _ Hp _ scale _ scale1 c rate low high n (sqrt (Q2R m)) y Ph Es Ph1 Es1)
    as (s & Hs & V); try assumption.
  - split; [apply sqrt_lt_R0, Hm|apply sqrt_le_1_alt, Hh].
  - rewrite <- (sqrt_square 2) at 1 by lra; rewrite <- sqrt_div by lra; apply sqrt_le_1_alt.
    rewrite E4 in Hh1; lra.
  - destruct (turned_both l p q _ y Dp Dq (B s Hs) Hy); split; lra.
Qed.
