(** The profile of a Gaussian step on a Poisson sample in fixed point, bounded from above. *)

From Coq Require Import Reals Bool QArith Qreals ZArith Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta GaussianConvolution
  GaussianSeries Domination GaussianComposition LossLists FixedPoint.
Open Scope R_scope.

(** ** Two inequalities *)

Lemma Phi_tail x : x <= 0 -> Phi x <= bell x.
Proof.
  intros Hx; assert (Hy : 0 <= - x) by lra.
  pose proof (bell_kernel_constant (- x) Hy) as K.
  pose proof (kernel_integral_bounds (- x)) as [_ U].
  pose proof (bell_integral_nonneg (- x) Hy) as B0.
  assert (Eb : bell (- x) = bell x) by (unfold bell; f_equal; field).
  rewrite Eb in U; rewrite bell_integral_opp in K, B0; pose proof (bell_pos x) as Pb.
  pose proof root_two_pi_pos as Hr; unfold Phi; set (b := bell_integral x) in *.
  assert (Pi : PI / 2 = root_two_pi * root_two_pi / 4).
  { unfold root_two_pi; rewrite sqrt_sqrt by (pose proof PI_RGT_0; lra); field. }
  rewrite Pi in K; pose proof PI2_1 as P1.
  set (r := root_two_pi) in *; assert (Hr4 : 4 < r * r) by lra.
  assert (L : (r / 2 + b) * (r / 2 - b) <= 2 * bell x).
  { replace ((r / 2 + b) * (r / 2 - b)) with (r * r / 4 - (- b) ^ 2) by field; lra. }
  assert (Lb : (r / 2 + b) * (r / 2) <= 2 * bell x).
  { destruct (Rle_lt_dec 0 (r / 2 + b)); [nra|].
    apply Rle_trans with 0; [|lra]; nra. }
  replace (/ 2 + b / r) with ((r / 2 + b) / r) by (field; lra).
  apply Rmult_le_reg_r with (r * r / 2); [nra|].
  replace ((r / 2 + b) / r * (r * r / 2)) with ((r / 2 + b) * (r / 2)) by (field; lra); nra.
Qed.

Lemma gaussian_delta_decreasing mu eps eps' :
  0 < mu -> eps <= eps' -> gaussian_delta mu eps' <= gaussian_delta mu eps.
Proof.
  intros Hm He; pose proof root_two_pi_pos as Hr.
  pose proof (le_of_derive (fun e => - gaussian_delta mu e)
    (fun e => exp e * Phi (- (mu / 2) - e / mu)) eps eps' He) as M; cbv beta in M.
  enough (- gaussian_delta mu eps <= - gaussian_delta mu eps') by lra; apply M.
  - intros e; unfold gaussian_delta.
    assert (D1 : is_derive (fun e => mu / 2 - e / mu) e (- / mu)) by (auto_derive; [lra|field; lra]).
    assert (D2 : is_derive (fun e => - (mu / 2) - e / mu) e (- / mu))
      by (auto_derive; [lra|field; lra]).
    pose proof (is_derive_comp Phi _ e _ _ (is_derive_Phi _) D1) as C1.
    pose proof (is_derive_comp Phi _ e _ _ (is_derive_Phi _) D2) as C2.
    pose proof (is_derive_times exp _ e _ _ (is_derive_exp e) C2) as C3.
    pose proof (is_derive_opp (V := R_NormedModule) _ _ _
      (is_derive_minus (V := R_NormedModule) _ _ _ _ _ C1 C3)) as D.
    unfold minus, plus, opp, scal in D; simpl in D; unfold mult in D; simpl in D.
    match type of D with is_derive _ _ ?v =>
      replace (exp e * Phi (- (mu / 2) - e / mu)) with v end; [exact D|].
    rewrite <- (bell_shift mu e Hm); field; lra.
  - intros e _; pose proof (Phi_bounds (- (mu / 2) - e / mu)); pose proof (exp_pos e).
    apply Rmult_le_pos; lra.
Qed.

(** ** delta at k / 2^p of a step with mu^2 = 2 half / 2^p *)

Section Delta.

Variable p : Z.

Definition most_steps (s : Z) : nat :=
  Z.to_nat (Z.min 20000 (2 * p + 4 * Z.shiftr s p + 64)).

(** exp(x^2/2) times the integral of exp(-t^2/2) over [0, x], times mu, at x = v / mu. *)
Definition odd_above (half v : Z) : option Z :=
  if (0 <=? v)%Z then
    let s := round_up (v * v) (2 * half) in
    match rise p (most_steps s) s 2 5 (2 ^ p) (round_up s 3) with
    | Some (total, term) => Some (above p v (total + 2 * term))
    | None => None
    end
  else
    let s := (v * v / (2 * half))%Z in
    Some (- below p (- v) (fall p (most_steps s) s 2 5 (2 ^ p) (s / 3)))%Z.

(** [scale] is above 1 / (mu sqrt(2 pi)). Far out, where two terms as large as exp(k) cancel to half
    of their digits, the tail is bounded by the density. *)
Definition delta_above (half scale k : Z) : option Z :=
  let d := (half - k)%Z in
  let exponent := (d * d / (4 * half))%Z in
  match exp_bounds p (- exponent) with
  | Some (_, e) =>
      if ((d <? 0) && (p * 45426 <? 65536 * Z.shiftr (2 * exponent + k) p))%Z%bool then Some e
      else
        match odd_above half d, odd_above half (half + k), exp_bounds p k with
        | Some nd, Some nu, Some (l, _) =>
            Some (round_up (2 ^ p - l) 2 + above p (above p scale e) (Z.max 0 (nd + nu)))%Z
        | _, _, _ => None
        end
  | None => None
  end.

(** The same for k < 0: delta(k) = 1 - e^k + e^k delta(-k). *)
Definition delta_anywhere (half scale k : Z) : option Z :=
  if (0 <=? k)%Z then delta_above half scale k
  else
    match delta_above half scale (- k), exp_bounds p k with
    | Some d, Some (l, u) => Some (2 ^ p - l + above p u d)%Z
    | _, _ => None
    end.

(** The profile of the step on a Poisson sample, with the record against without it, at a loss
    whose exp is between [low] and [high]. *)
Definition removal_above (half scale : Z) (rate : Q) (low high : Z) : option Z :=
  let num := Qnum rate in
  let den := Zpos (Qden rate) in
  let rest := (low - 2 ^ p + num * 2 ^ p / den)%Z in
  if (high - 2 ^ p + round_up (num * 2 ^ p) den <=? 0)%Z then Some (2 ^ p - low)%Z
  else if (0 <? rest)%Z then
    match ln_below p (rest * den / num) with
    | Some k =>
        match delta_anywhere half scale k with
        | Some d => Some (round_up (num * d) den)
        | None => None
        end
    | None => None
    end
  else None.

Hypothesis Hp : (0 <= p)%Z.
Variables (half scale : Z).
Hypothesis Hhalf : (0 < half)%Z.

Notation fixed n := (IZR n / unit_of p).
Notation mu := (sqrt (2 * fixed half)).

Hypothesis Hscale : / (root_two_pi * mu) <= fixed scale.

Lemma half_pos : 0 < fixed half.
Proof. apply fixed_pos; assumption. Qed.

Lemma mu_pos : 0 < mu.
Proof. pose proof half_pos; apply sqrt_lt_R0; lra. Qed.

Lemma mu_squared : mu * mu = 2 * fixed half.
Proof. pose proof half_pos; apply sqrt_sqrt; lra. Qed.

Lemma square_over v : (fixed v / mu) * (fixed v / mu) = IZR (v * v) / IZR (2 * half) / unit_of p.
Proof.
  pose proof mu_pos as Pm; pose proof mu_squared as E; pose proof half_pos as Ph.
  pose proof (unit_pos p Hp) as Pu; apply IZR_lt in Hhalf.
  replace (fixed v / mu * (fixed v / mu)) with (fixed v * fixed v / (mu * mu)) by (field; lra).
  rewrite E, !mult_IZR; field; lra.
Qed.

Lemma odd_above_sound v n :
  odd_above half v = Some n ->
  bell_integral (fixed v / mu) <= bell (fixed v / mu) * (fixed n / mu).
Proof.
  pose proof mu_pos as Pm; pose proof (unit_pos p Hp) as Pu.
  assert (P2 : (0 < 2 * half)%Z) by lia.
  assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  assert (Im : 0 < / mu) by (apply Rinv_0_lt_compat, Pm).
  pose proof (square_over v) as Sq; set (x := fixed v / mu) in *; unfold odd_above.
  assert (Hxx : 0 <= x * x) by nra.
  destruct (0 <=? v)%Z eqn:V.
  - apply Z.leb_le in V; cbv zeta; set (s := round_up (v * v) (2 * half)).
    destruct (rise p _ s 2 5 _ _) as [[total term]|] eqn:R; [|discriminate].
    intros E; injection E as <-.
    assert (Hs : x * x <= fixed s).
    { rewrite Sq; apply Rmult_le_compat_r; [lra|apply round_up_ge, P2]. }
    destruct (rise_sound p Hp 2 3 (x * x) ltac:(lia) ltac:(lia) Hxx s (most_steps s) 5 (2 ^ p) (round_up s 3)
      total term 1) as (m & L & Rs & Rt & Rx); try exact R.
    + exact Hs.
    + simpl; lra.
    + rewrite fixed_one by exact Hp; simpl; lra.
    + pose proof (round_up_ge s 3 ltac:(lia)) as U.
      apply (Rmult_le_compat_r (/ unit_of p)) in U; [|lra]; simpl; unfold Rdiv in *; lra.
    + destruct m as [|m]; [lia|]; rewrite mills_sums in Rs; rewrite mills_terms in Rt.
      assert (Hv : 0 <= fixed v) by (apply fixed_nonneg; assumption).
      assert (Hx : 0 <= x) by (apply Rmult_le_pos; lra).
      rewrite S_INR in Rx.
      eapply Rle_trans; [apply (bell_integral_upper m x Hx); lra|].
      apply Rmult_le_compat_l; [left; apply bell_pos|].
      pose proof (above_ge p Hp v (total + 2 * term)) as A.
      rewrite plus_IZR, mult_IZR in A.
      apply Rle_trans with (fixed v * ((IZR total + 2 * IZR term) / unit_of p) / mu).
      * replace (fixed v * ((IZR total + 2 * IZR term) / unit_of p) / mu)
          with (x * (fixed total + 2 * fixed term)) by (unfold x; field; lra).
        replace (x * mills_sum (x * x) (S m) + 2 * (x * mills_term (x * x) (S m)))
          with (x * (mills_sum (x * x) (S m) + 2 * mills_term (x * x) (S m))) by ring.
        apply Rmult_le_compat_l; lra.
      * apply Rmult_le_compat_r; [lra|exact A].
  - apply Z.leb_gt in V; cbv zeta; set (s := (v * v / (2 * half))%Z).
    intros E; injection E as <-.
    assert (Hs0 : (0 <= s)%Z) by (apply Z.div_pos; nia).
    assert (Hs : fixed s <= x * x).
    { rewrite Sq; apply Rmult_le_compat_r; [lra|apply round_down_le, P2]. }
    set (found := fall p _ s 2 5 (2 ^ p) (s / 3)).
    destruct (fall_sound p Hp 2 3 (x * x) ltac:(lia) ltac:(lia) s (most_steps s) 5 (2 ^ p) (s / 3) 1)
      as (m & L & Fs).
    1: exact Hs0.
    1: exact Hs.
    1: simpl; lra.
    1: rewrite fixed_one by exact Hp; simpl; lra.
    1: apply Z.div_pos; lia.
    1: { pose proof (round_down_le s 3 ltac:(lia)) as U.
         apply (Rmult_le_compat_r (/ unit_of p)) in U; [|lra]; simpl; unfold Rdiv in *; lra. }
    fold found in Fs; destruct m as [|m]; [lia|]; rewrite mills_sums in Fs.
    assert (Hv : 0 < fixed (- v)) by (apply fixed_pos; [exact Hp|lia]).
    pose proof (below_le p Hp (- v) found) as B.
    assert (Hx : 0 < - x).
    { unfold x; rewrite fixed_opp in Hv; unfold Rdiv in *; nra. }
    pose proof (bell_integral_lower m (- x) ltac:(lra)) as Lo.
    rewrite bell_integral_opp in Lo.
    replace (- x * - x) with (x * x) in Lo by ring.
    replace (bell (- x)) with (bell x) in Lo by (unfold bell; f_equal; field).
    rewrite fixed_opp.
    enough (bell x * (fixed (below p (- v) found) / mu) <= bell x * (- x * mills_sum (x * x) (S m)))
      by (unfold Rdiv in *; lra).
    apply Rmult_le_compat_l; [left; apply bell_pos|].
    replace (- x) with (fixed (- v) / mu) by (rewrite fixed_opp; unfold x; field; lra).
    apply Rle_trans with (fixed (- v) * fixed found / mu).
    + apply Rmult_le_compat_r; lra.
    + replace (fixed (- v) * fixed found / mu) with (fixed (- v) / mu * fixed found) by (field; lra).
      apply Rmult_le_compat_l; [|exact Fs]; apply Rmult_le_pos; lra.
Qed.

Lemma delta_above_sound k n :
  delta_above half scale k = Some n -> gaussian_delta mu (fixed k) <= fixed n.
Proof.
  pose proof mu_pos as Pm; pose proof mu_squared as Em; pose proof (unit_pos p Hp) as Pu.
  pose proof half_pos as Ph; pose proof root_two_pi_pos as Pr.
  assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  unfold delta_above; cbv zeta; set (d := (half - k)%Z); set (w := (d * d / (4 * half))%Z).
  destruct (exp_bounds p (- w)) as [[e0 e]|] eqn:E; [|discriminate].
  apply exp_bounds_sound in E as [_ E]; [|exact Hp].
  set (x := fixed d / mu); set (y := fixed (half + k) / mu).
  assert (Ex : mu / 2 - fixed k / mu = x).
  { unfold x, d; rewrite fixed_minus by exact Hp.
    apply Rmult_eq_reg_r with mu; [|lra].
    replace ((mu / 2 - fixed k / mu) * mu) with (mu * mu / 2 - fixed k) by (field; lra).
    rewrite Em; field; lra. }
  assert (Ey : - (mu / 2) - fixed k / mu = - y).
  { unfold y; rewrite fixed_plus by exact Hp.
    apply Rmult_eq_reg_r with mu; [|lra].
    replace ((- (mu / 2) - fixed k / mu) * mu) with (- (mu * mu / 2) - fixed k) by (field; lra).
    rewrite Em; field; lra. }
  assert (Eb : bell x <= fixed e).
  { eapply Rle_trans; [|exact E]; unfold bell; apply exp_le.
    rewrite fixed_opp; pose proof (round_down_le (d * d) (4 * half) ltac:(lia)) as W; fold w in W.
    apply (Rmult_le_compat_r (/ unit_of p)) in W; [|lra].
    unfold x; pose proof (square_over d) as Sq; fold x in Sq |- *.
    replace (- (x * x) / 2) with (- (x * x / 2)) by field; apply Ropp_le_contravar.
    rewrite Sq; eapply Rle_trans; [exact W|]; apply IZR_lt in Hhalf.
    rewrite !mult_IZR; right; field; lra. }
  destruct (_ && _) eqn:G.
  - intros H; injection H as <-; apply andb_prop in G as [G _]; apply Z.ltb_lt in G.
    eapply Rle_trans; [|exact Eb]; unfold gaussian_delta; rewrite Ex.
    assert (Hx : x <= 0).
    { unfold x; apply IZR_lt in G; unfold Rdiv.
      assert (0 < / mu) by (apply Rinv_0_lt_compat, Pm).
      assert (IZR d * / unit_of p < 0) by nra; nra. }
    pose proof (Phi_tail x Hx); pose proof (Phi_bounds (- (mu / 2) - fixed k / mu)).
    pose proof (exp_pos (fixed k)).
    assert (0 <= exp (fixed k) * Phi (- (mu / 2) - fixed k / mu)) by (apply Rmult_le_pos; lra); lra.
  - destruct (odd_above half d) as [nd|] eqn:D; [|discriminate].
    destruct (odd_above half (half + k)) as [nu|] eqn:U; [|discriminate].
    destruct (exp_bounds p k) as [[l u]|] eqn:K; [|discriminate].
    apply exp_bounds_sound in K as [K _]; [|exact Hp].
    intros H; injection H as <-.
    apply odd_above_sound in D; fold x in D; apply odd_above_sound in U; fold y in U.
    pose proof (bell_shift mu (fixed k) Pm) as Sh; rewrite Ex, Ey in Sh.
    replace (bell (- y)) with (bell y) in Sh by (unfold bell; f_equal; field).
    replace (gaussian_delta mu (fixed k)) with
      ((1 - exp (fixed k)) / 2
       + (bell_integral x + exp (fixed k) * bell_integral y) / root_two_pi).
    2:{ unfold gaussian_delta, Phi; rewrite Ex, Ey, bell_integral_opp; field; lra. }
    rewrite fixed_plus by exact Hp; apply Rplus_le_compat.
    + pose proof (round_up_ge (2 ^ p - l) 2 ltac:(lia)) as R2.
      apply (Rmult_le_compat_r (/ unit_of p)) in R2; [|lra].
      eapply Rle_trans; [|exact R2]; pose proof (fixed_one p Hp) as One.
      rewrite minus_IZR.
      replace ((IZR (2 ^ p) - IZR l) / 2 * / unit_of p) with ((fixed (2 ^ p) - fixed l) / 2)
        by (field; lra).
      rewrite One; lra.
    + apply (Rmult_le_compat_l (exp (fixed k))) in U; [|left; apply exp_pos].
      rewrite <- Rmult_assoc, Sh in U.
      apply Rle_trans with (bell x * (fixed (nd + nu) / mu) / root_two_pi).
      * apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pr|].
        rewrite fixed_plus by exact Hp; unfold Rdiv in *; lra.
      * pose proof (above_ge p Hp (above p scale e) (Z.max 0 (nd + nu))) as A2.
        pose proof (above_ge p Hp scale e) as A1.
        eapply Rle_trans; [|exact A2].
        assert (Mx : fixed (nd + nu) <= fixed (Z.max 0 (nd + nu)))
          by (apply Rmult_le_compat_r; [lra|apply IZR_le; lia]).
        assert (M0 : 0 <= fixed (Z.max 0 (nd + nu))) by (apply fixed_nonneg; [exact Hp|lia]).
        replace (bell x * (fixed (nd + nu) / mu) / root_two_pi)
          with (/ (root_two_pi * mu) * bell x * fixed (nd + nu)) by (field; lra).
        pose proof (bell_pos x).
        assert (Pi : 0 < / (root_two_pi * mu)).
        { apply Rinv_0_lt_compat, Rmult_lt_0_compat; assumption. }
        apply Rle_trans with (/ (root_two_pi * mu) * bell x * fixed (Z.max 0 (nd + nu))).
        -- apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|exact Mx].
        -- apply Rmult_le_compat_r; [exact M0|].
           apply Rle_trans with (fixed scale * fixed e); [|exact A1].
           apply Rmult_le_compat; lra.
Qed.

Lemma delta_anywhere_sound k n :
  delta_anywhere half scale k = Some n -> gaussian_delta mu (fixed k) <= fixed n.
Proof.
  pose proof mu_pos as Pm; pose proof (unit_pos p Hp) as Pu; unfold delta_anywhere.
  destruct (0 <=? k)%Z; [apply delta_above_sound|].
  destruct (delta_above half scale (- k)) as [d|] eqn:D; [|discriminate].
  destruct (exp_bounds p k) as [[l u]|] eqn:K; [|discriminate].
  apply exp_bounds_sound in K as [K1 K2]; [|exact Hp]; intros H; injection H as <-.
  apply delta_above_sound in D; rewrite fixed_opp in D.
  set (e := exp (fixed k)) in *; assert (Pe : 0 < e) by apply exp_pos.
  pose proof (gaussian_delta_nonneg mu (- fixed k) Pm) as N.
  assert (Parity : gaussian_delta mu (fixed k) = 1 - e + e * gaussian_delta mu (- fixed k)).
  { unfold gaussian_delta; fold e.
    replace (exp (- fixed k)) with (/ e) by (unfold e; symmetry; apply exp_Ropp).
    replace (mu / 2 - - fixed k / mu) with (- (- (mu / 2) - fixed k / mu)) by (field; split; lra).
    replace (- (mu / 2) - - fixed k / mu) with (- (mu / 2 - fixed k / mu)) by (field; split; lra).
    rewrite !Phi_opp; field; lra. }
  rewrite Parity, fixed_plus, fixed_minus, fixed_one by exact Hp.
  apply Rplus_le_compat; [lra|].
  eapply Rle_trans; [|apply above_ge, Hp]; apply Rmult_le_compat; lra.
Qed.

Theorem removal_above_sound rate low high n mu' y :
  0 < Q2R rate <= 1 -> 0 < mu' <= mu ->
  fixed low <= y <= fixed high -> 0 < y ->
  removal_above half scale rate low high = Some n ->
  removal_profile (Q2R rate) (gaussian_profile mu') 1 y <= fixed n.
Proof.
  intros Hr [Pm' Hm] [L1 L2] Hy; unfold removal_above; cbv zeta.
  pose proof (unit_pos p Hp) as Pu; assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  assert (Er : Q2R rate = IZR (Qnum rate) / IZR (Zpos (Qden rate))) by reflexivity.
  set (num := Qnum rate) in *; set (den := Zpos (Qden rate)) in *.
  assert (Hden : (0 < den)%Z) by reflexivity; apply IZR_lt in Hden as Hden'.
  assert (Hnum : 0 < IZR num).
  { destruct Hr as [Hr _]; rewrite Er in Hr.
    apply Rmult_lt_reg_r with (/ IZR den); [apply Rinv_0_lt_compat, Hden'|unfold Rdiv in Hr; lra]. }
  assert (Hnum' : (0 < num)%Z) by (apply lt_IZR, Hnum).
  set (rest := (low - 2 ^ p + num * 2 ^ p / den)%Z).
  set (far := (high - 2 ^ p + round_up (num * 2 ^ p) den)%Z).
  assert (Rate : IZR (num * 2 ^ p) / IZR den / unit_of p = Q2R rate).
  { rewrite mult_IZR, Er; fold (unit_of p); field; lra. }
  assert (Rest : fixed rest <= y - (1 - Q2R rate)).
  { unfold rest; rewrite fixed_plus, fixed_minus, fixed_one by exact Hp.
    pose proof (round_down_le (num * 2 ^ p) den Hden) as D.
    apply (Rmult_le_compat_r (/ unit_of p)) in D; [|lra].
    unfold Rdiv in *; rewrite Rate in D; lra. }
  assert (Far : y - (1 - Q2R rate) <= fixed far).
  { unfold far; rewrite fixed_plus, fixed_minus, fixed_one by exact Hp.
    pose proof (round_up_ge (num * 2 ^ p) den Hden) as D.
    apply (Rmult_le_compat_r (/ unit_of p)) in D; [|lra].
    unfold Rdiv in *; rewrite Rate in D; lra. }
  unfold removal_profile; rewrite !Rmult_1_l.
  destruct (far <=? 0)%Z eqn:F.
  - apply Z.leb_le in F; intros H; injection H as <-.
    assert (Hf : fixed far <= 0) by (apply IZR_le in F; unfold Rdiv; nra).
    rewrite fixed_minus, fixed_one by exact Hp.
    destruct (Rle_dec (1 - Q2R rate) y); [|lra].
    replace (y - (1 - Q2R rate)) with 0 by lra; rewrite profile_b0; lra.
  - destruct (0 <? rest)%Z eqn:R; [|discriminate]; apply Z.ltb_lt in R.
    apply (fixed_pos p Hp) in R as R'.
    destruct (ln_below p (rest * den / num)) as [k|] eqn:K; [|discriminate].
    destruct (delta_anywhere half scale k) as [d|] eqn:D; [|discriminate].
    intros H; injection H as <-.
    apply ln_below_sound in K as [Kr K]; [|exact Hp].
    apply delta_anywhere_sound in D.
    destruct (Rle_dec (1 - Q2R rate) y); [|lra].
    set (b := y - (1 - Q2R rate)) in *.
    rewrite profile_delta by lra.
    assert (Kb : fixed k <= ln (b / Q2R rate)).
    { apply Rle_trans with (1 := K); apply ln_le; [apply fixed_pos; assumption|].
      pose proof (round_down_le (rest * den) num Hnum') as Q.
      apply (Rmult_le_compat_r (/ unit_of p)) in Q; [|lra].
      eapply Rle_trans; [exact Q|]; rewrite mult_IZR, Er.
      replace (IZR rest * IZR den / IZR num * / unit_of p) with (fixed rest * (IZR den / IZR num))
        by (field; lra).
      replace (b / (IZR num / IZR den)) with (b * (IZR den / IZR num)) by (field; lra).
      apply Rmult_le_compat_r; [left; apply Rdiv_lt_0_compat; assumption|exact Rest]. }
    assert (Dl : gaussian_delta mu' (ln (b / Q2R rate)) <= fixed d).
    { apply Rle_trans with (gaussian_delta mu' (fixed k));
        [apply gaussian_delta_decreasing; assumption|].
      apply Rle_trans with (2 := D), gaussian_delta_increasing; split; assumption. }
    pose proof (round_up_ge (num * d) den Hden) as U.
    apply (Rmult_le_compat_r (/ unit_of p)) in U; [|lra].
    eapply Rle_trans; [|exact U]; rewrite mult_IZR, Er.
    replace (IZR num * IZR d / IZR den * / unit_of p) with (IZR num / IZR den * fixed d)
      by (field; lra).
    apply Rmult_le_compat_l; [rewrite <- Er; lra|exact Dl].
Qed.

End Delta.
