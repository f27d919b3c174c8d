(** The loss of a Gaussian step on a batch drawn with replacement, of which records are replaced, in
    whole numbers: a bound on the probability that they fill so many places, the profile of the
    step on so many records more, and shares of what no place holds, which the program picks. *)

From Coq Require Import Reals QArith Qreals List ZArith Lra Lia.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Domination
  GaussianConvolution GaussianComposition BatchSampling CopiesSampling Losses LossLists
  Enclosure LossEnclosures FixedPoint FixedGaussian SampledLoss ReplacedLoss.
Import ListNotations.
Open Scope R_scope.

(** A number of places: how likely, in units of 2^-p, half of mu^2 and a scale of the step on as
    many records, and about the factor by which exp(-mu^2/2) falls from one place less. *)
Record copy := Copy { likely : Z; half_of : Z; scale_of : Z; fall_of : Z }.

Section Copies.

Variable p : Z.

(** ** Programs *)

Fixpoint power_below (x : Z) (m : positive) : Z :=
  match m with
  | xH => x
  | xO m' => let y := power_below x m' in below p y y
  | xI m' => let y := power_below x m' in below p x (below p y y)
  end.

Fixpoint power_above (x : Z) (m : positive) : Z :=
  match m with
  | xH => x
  | xO m' => let y := power_above x m' in above p y y
  | xI m' => let y := power_above x m' in above p x (above p y y)
  end.

Definition copy_of (m : Q) (k up : Z) : option copy :=
  let h := half_above p (m * inject_Z (k * k)) in
  match scale_above p h, exp_bounds p (half_above p (m * inject_Z ((k - 1) * (k - 1))) - h) with
  | Some s, Some (f, _) => Some (Copy up h s f)
  | _, _ => None
  end.

(** Numbers of places from [k] on, as long as they are more likely than [least], and what is left of
    [rest]; [low] and [up] are of one place less. Each draw hits it
    with probability [hit] / [records]. *)
Fixpoint copies_from (fuel : nat) (m : Q) (draws hit records least k low up rest : Z) :
  option (list copy * Z) :=
  match fuel with
  | O => Some ([], rest)
  | S fuel' =>
      if ((up <=? least) && (2 * draws * hit <=? k * records))%Z%bool then Some ([], rest)
      else
        let ways := ((draws - k + 1) * hit)%Z in
        let over := (k * (records - hit))%Z in
        let low' := (low * ways / over)%Z in
        let up' := round_up (up * ways) over in
        match copy_of m k up',
              copies_from fuel' m draws hit records least (k + 1) low' up' (rest - low')%Z with
        | Some c, Some (cs, others) => Some (c :: cs, others)
        | _, _ => None
        end
  end.

(** Shares at a threshold [y] for which all tests end in one point x with exp(mu x) = [s]: there the
    ratio of k places, s^k exp(-k^2 mu^2/2), is y and the share, if it is not less. *)
Fixpoint shares_at (s y ratio : Z) (cs : list copy) : list Z :=
  match cs with
  | [] => []
  | c :: rest =>
      let ratio' := above p (above p ratio s) (fall_of c) in
      Z.max 0 (ratio' - y) :: shares_at s y ratio' rest
  end.

Fixpoint shares_spent (cs : list copy) (ts : list Z) : Z :=
  match cs, ts with
  | c :: cs', t :: ts' => (above p (likely c) t + shares_spent cs' ts')%Z
  | _, _ => 0%Z
  end.

(** About what they spend, and s times its slope in s: nothing here needs to be right. *)
Fixpoint spending (s y k ratio : Z) (cs : list copy) : Z * Z :=
  match cs with
  | [] => (0, 0)%Z
  | c :: rest =>
      let ratio' := above p (above p ratio s) (fall_of c) in
      let '(sum, slope) := spending s y (k + 1) ratio' rest in
      if (y <? ratio')%Z
      then (above p (likely c) (ratio' - y) + sum, above p (likely c) (k * ratio') + slope)%Z
      else (sum, slope)
  end.

(** The point at which they spend a little less than the target, by Newton's method from above. *)
Fixpoint beyond_target (fuel : nat) (y target : Z) (cs : list copy) (s : Z) : Z :=
  match fuel with
  | O => s
  | S fuel' =>
      if (fst (spending s y 1 (2 ^ p) cs) <=? target)%Z
      then beyond_target fuel' y target cs (2 * s) else s
  end.

Fixpoint newton (fuel : nat) (y target : Z) (cs : list copy) (s : Z) : Z :=
  match fuel with
  | O => s
  | S fuel' =>
      let '(sum, slope) := spending s y 1 (2 ^ p) cs in
      let move := ((sum - target) * s / Z.max 1 slope)%Z in
      if (move <=? 0)%Z then s else newton fuel' y target cs (s - move)%Z
  end.

Definition best_point (y target : Z) (cs : list copy) : Z :=
  let less := (target - 2 ^ 20 - Z.shiftr target (p - 20))%Z in
  if (less <=? 0)%Z then (2 ^ p)%Z else newton 200 y less cs (beyond_target 200 y less cs (2 ^ p)).

Fixpoint height_of (y : Z) (cs : list copy) (ts : list Z) : option Z :=
  match cs, ts with
  | c :: cs', t :: ts' =>
      match weighted_above p (half_of c) (scale_of c) (2 ^ p) (y + t), height_of y cs' ts' with
      | Some f, Some g => Some (above p (likely c) f + g)%Z
      | _, _ => None
      end
  | [], _ => Some 0%Z
  | _, [] => None
  end.

(** At a loss whose exp is [low] at least; [none] is below the probability of no place, [rest] above
    that of places that are not in the list. *)
Definition copies_above (none rest : Z) (cs : list copy) (low high : Z) : option Z :=
  let target := below p (Z.max 0 (low - 2 ^ p)) none in
  let shares := shares_at (best_point low target cs) low (2 ^ p) cs in
  if (shares_spent cs shares <=? target)%Z then
    match height_of low cs shares with
    | Some f => Some (f + rest)%Z
    | None => None
    end
  else None.

(** ** Soundness *)

Hypothesis Hp : (0 <= p)%Z.

Notation fixed n := (IZR n / unit_of p).

Lemma power_below_sound x v m :
  0 <= v -> (0 <= x)%Z -> fixed x <= v -> (0 <= power_below x m)%Z /\ fixed (power_below x m) <= v ^ Pos.to_nat m.
Proof.
  intros Hv Hx Le; assert (N : forall z, (0 <= z)%Z -> 0 <= fixed z) by (intros; apply fixed_nonneg; assumption).
  assert (Mul : forall a b u w, (0 <= a)%Z -> (0 <= b)%Z -> fixed a <= u -> fixed b <= w ->
            (0 <= below p a b)%Z /\ fixed (below p a b) <= u * w).
  { intros a b u w Ha Hb La Lb; split; [apply below_nonneg; assumption|].
    eapply Rle_trans; [apply below_le, Hp|]; apply Rmult_le_compat; auto. }
  induction m as [m [N' IH]|m [N' IH]|]; cbn [power_below]; cbv zeta.
  - rewrite Pos2Nat.inj_xI; replace (S (2 * Pos.to_nat m)) with (1 + (Pos.to_nat m + Pos.to_nat m))%nat by lia.
    rewrite !pow_add, pow_1; destruct (Mul _ _ _ _ N' N' IH IH); apply Mul; assumption.
  - rewrite Pos2Nat.inj_xO; replace (2 * Pos.to_nat m)%nat with (Pos.to_nat m + Pos.to_nat m)%nat by lia.
    rewrite pow_add; apply Mul; assumption.
  - change (Pos.to_nat 1) with 1%nat; rewrite pow_1; auto.
Qed.

Lemma power_above_sound x v m :
  0 <= v -> v <= fixed x -> v ^ Pos.to_nat m <= fixed (power_above x m).
Proof.
  intros Hv Le.
  assert (Mul : forall a b u w, 0 <= u -> 0 <= w -> u <= fixed a -> w <= fixed b ->
            u * w <= fixed (above p a b)).
  { intros a b u w Hu Hw La Lb; eapply Rle_trans; [|apply above_ge, Hp].
    apply Rmult_le_compat; auto. }
  induction m as [m IH|m IH|]; cbn [power_above]; cbv zeta; pose proof (pow_le v).
  - rewrite Pos2Nat.inj_xI; replace (S (2 * Pos.to_nat m)) with (1 + (Pos.to_nat m + Pos.to_nat m))%nat by lia.
    rewrite !pow_add, pow_1; apply Mul; auto; apply Rmult_le_pos; auto.
  - rewrite Pos2Nat.inj_xO; replace (2 * Pos.to_nat m)%nat with (Pos.to_nat m + Pos.to_nat m)%nat by lia.
    rewrite pow_add; apply Mul; auto.
  - change (Pos.to_nat 1) with 1%nat; rewrite pow_1; exact Le.
Qed.

Variables (m : Q) (draws : positive) (r : R).
Hypothesis Hm : 0 < Q2R m.
Hypothesis Hr : 0 < r < 1.

Notation n := (Pos.to_nat draws).
Notation mu := (sqrt (Q2R m)).

Definition fits (k : nat) (c : copy) : Prop :=
  chance r n k <= fixed (likely c) /\ (0 < half_of c)%Z /\
  / (root_two_pi * sqrt (2 * fixed (half_of c))) <= fixed (scale_of c) /\
  INR k * mu <= sqrt (2 * fixed (half_of c)).

Fixpoint all_fit (k : nat) (cs : list copy) : Prop :=
  match cs with [] => True | c :: rest => fits k c /\ all_fit (S k) rest end.

Lemma nth_next {A} (d : A) t ts k i : (k < i)%nat -> nth (i - k) (t :: ts) d = nth (i - S k) ts d.
Proof. intros H; replace (i - k)%nat with (S (i - S k)) by lia; reflexivity. Qed.

Lemma shares_spent_sound cs : forall k ts,
  all_fit k cs -> List.Forall (fun t => (0 <= t)%Z) ts ->
  total (seq k (length cs)) (fun i => chance r n i * fixed (nth (i - k) ts 0%Z)) <= fixed (shares_spent cs ts).
Proof.
  assert (Z0 : fixed 0 = 0) by (unfold Rdiv; ring).
  induction cs as [|c cs IH]; intros k ts; cbn [all_fit length seq total shares_spent]; [intros _ _; lra|].
  intros [(Le & _) Fit] Nn; destruct ts as [|t ts].
  - assert (Nil : forall j, nth j [] 0%Z = 0%Z) by (intros []; reflexivity).
    rewrite total_zero by (intros i _; rewrite Nil, Z0; ring); rewrite Nil, Z0; lra.
  - inversion Nn as [|? ? Ht Nn']; subst; rewrite Nat.sub_diag; change (nth 0 (t :: ts) 0%Z) with t.
    rewrite fixed_plus by exact Hp; apply Rplus_le_compat.
    + eapply Rle_trans; [|apply above_ge, Hp]; apply Rmult_le_compat_r; [apply fixed_nonneg; assumption|exact Le].
    + eapply Rle_trans; [|apply (IH (S k) ts Fit Nn')]; right; apply total_ext; intros i I.
      apply in_seq in I; rewrite nth_next by lia; reflexivity.
Qed.

Lemma height_of_sound low y cs : fixed low <= y -> 0 <= y -> forall k ts f,
  (0 < k)%nat -> all_fit k cs -> List.Forall (fun t => (0 <= t)%Z) ts -> height_of low cs ts = Some f ->
  total (seq k (length cs)) (fun i => chance r n i
    * gaussian_profile (INR i * mu) 1 (y + fixed (nth (i - k) ts 0%Z))) <= fixed f.
Proof.
  intros Hlow Hy; pose proof (sqrt_lt_R0 _ Hm) as Pm.
  induction cs as [|c cs IH]; intros k ts f Hk; cbn [all_fit length seq total height_of].
  - intros _ _ E; injection E as <-; unfold Rdiv; rewrite Rmult_0_l; lra.
  - intros [(Le & Ph & Ps & Lm) Fit] Nn; destruct ts as [|t ts]; [discriminate|].
    destruct (weighted_above _ _ _ _ _) as [f1|] eqn:Ew; [|discriminate].
    destruct (height_of low cs ts) as [g|] eqn:Eg; [|discriminate]; intros E; injection E as <-.
    inversion Nn as [|? ? Ht Nn']; subst; rewrite Nat.sub_diag; change (nth 0 (t :: ts) 0%Z) with t.
    pose proof (proj1 (fixed_nonneg p Hp t) Ht) as Pt.
    assert (Pk : 0 < INR k) by (apply lt_0_INR, Hk).
    apply (weighted_above_sound p Hp (half_of c) (scale_of c) (2 ^ p) (low + t) f1 (INR k * mu) (y + fixed t)) in Ew;
      try assumption;
      [|split; [apply Rmult_lt_0_compat; assumption|exact Lm]|apply Z.pow_nonneg; lia
       |rewrite fixed_plus by exact Hp; lra|lra].
    rewrite fixed_one in Ew by exact Hp; rewrite fixed_plus by exact Hp; apply Rplus_le_compat.
    + eapply Rle_trans; [|apply above_ge, Hp]; apply Rmult_le_compat; try assumption.
      * apply chance_nonneg; lra.
      * eapply Rle_trans; [apply plus_part_nonneg|apply profile_ge; lra].
    + eapply Rle_trans; [|apply (IH (S k) ts g ltac:(lia) Fit Nn' Eg)]; right; apply total_ext.
      intros i I; apply in_seq in I; rewrite nth_next by lia; reflexivity.
Qed.

Lemma shares_nonneg s y cs : forall power, List.Forall (fun t => (0 <= t)%Z) (shares_at s y power cs).
Proof.
  induction cs as [|c cs IH]; intros power; cbn [shares_at]; constructor; [apply Z.le_max_l|apply IH].
Qed.

Lemma shares_length s y cs : forall power, length (shares_at s y power cs) = length cs.
Proof.
  induction cs as [|c cs IH]; intros power; cbn [shares_at length]; [reflexivity|f_equal; apply IH].
Qed.

Lemma profile_at_most_one mu' b : 0 < mu' -> 0 <= b -> gaussian_profile mu' 1 b <= 1.
Proof.
  intros Hmu [Hb|<-]; [|rewrite profile_b0; lra]; rewrite profile_pos by lra.
  match goal with |- _ * Phi ?u - _ * Phi ?v <= _ =>
    pose proof (Phi_bounds u); pose proof (Phi_bounds v) end; nra.
Qed.

(** What holds of the profile at shares, holds at those that are picked. *)
Theorem copies_above_sound none rest cs low high f y :
  1 <= y -> fixed low <= y -> fixed none <= chance r n 0 -> (0 <= none)%Z -> all_fit 1 cs -> (length cs <= n)%nat ->
  1 - total (seq 0 (S (length cs))) (chance r n) <= fixed rest ->
  copies_above none rest cs low high = Some f ->
  exists t, (forall k, 0 <= t k) /\
    total (seq 1 n) (fun k => chance r n k * t k) <= (y - 1) * chance r n 0 /\
    total (seq 1 n) (fun k => chance r n k * gaussian_profile (INR k * mu) 1 (y + t k)) <= fixed f.
Proof.
  intros Hy Hlow Hnone Pnone Fit Len Rest; unfold copies_above; cbv zeta.
  set (target := below p _ none); set (s := best_point _ _ _); set (ts := shares_at s low (2 ^ p) cs).
  destruct (shares_spent cs ts <=? target)%Z eqn:In'; [|discriminate]; apply Z.leb_le in In'.
  destruct (height_of low cs ts) as [g|] eqn:Eg; [|discriminate]; intros E; injection E as <-.
  pose proof (shares_nonneg s low cs (2 ^ p)) as Nn; fold ts in Nn.
  pose proof (sqrt_lt_R0 _ Hm) as Pm.
  pose proof (shares_length s low cs (2 ^ p)) as Lts; fold ts in Lts.
  clearbody ts; clear s.
  set (t := fun k => fixed (nth (k - 1) ts 0%Z)).
  assert (Ht : forall k, 0 <= t k).
  { intros k; apply fixed_nonneg; [exact Hp|]; destruct (Nat.lt_ge_cases (k - 1) (length ts)) as [L|L].
    - rewrite Forall_forall in Nn; apply Nn, nth_In, L.
    - rewrite nth_overflow by exact L; lia. }
  assert (Split : forall g, total (seq 1 n) g = total (seq 1 (length cs)) g
                    + total (seq (S (length cs)) (n - length cs)) g).
  { intros g'; rewrite <- total_app, <- seq_app; do 2 f_equal; lia. }
  exists t; split; [exact Ht|split].
  - rewrite Split.
    replace (total (seq (S (length cs)) _) (fun k => chance r n k * t k)) with 0.
    2:{ symmetry; apply total_zero; intros k I; apply in_seq in I; unfold t.
        rewrite nth_overflow by lia; unfold Rdiv; ring. }
    rewrite Rplus_0_r; eapply Rle_trans; [apply (shares_spent_sound cs 1 ts Fit Nn)|].
    apply Rle_trans with (fixed target).
    { apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, unit_pos, Hp|apply IZR_le, In']. }
    eapply Rle_trans; [apply below_le, Hp|]; apply Rmult_le_compat; try exact Hnone;
      try (apply fixed_nonneg; [exact Hp|lia]).
    destruct (Z.max_spec 0 (low - 2 ^ p)) as [[_ ->]|[_ ->]].
    + rewrite fixed_minus, fixed_one by exact Hp; lra.
    + unfold Rdiv; rewrite Rmult_0_l; lra.
  - rewrite Split, fixed_plus by exact Hp; apply Rplus_le_compat.
    + apply (height_of_sound low y cs Hlow ltac:(lra) 1 ts g ltac:(lia) Fit Nn Eg).
    + apply Rle_trans with (2 := Rest).
      apply Rle_trans with (total (seq (S (length cs)) (n - length cs)) (chance r n)).
      * apply total_le; intros k I; apply in_seq in I; rewrite <- (Rmult_1_r (chance r n k)) at 2.
        apply Rmult_le_compat_l; [apply chance_nonneg; lra|]; specialize (Ht k).
        apply profile_at_most_one; [|lra]; apply Rmult_lt_0_compat; [apply lt_0_INR; lia|exact Pm].
      * rewrite <- (chances_sum r n).
        replace (seq 0 (S n)) with (seq 0 (S (length cs)) ++ seq (S (length cs)) (n - length cs))
          by (rewrite <- seq_app; f_equal; lia).
        rewrite total_app; lra.
Qed.

End Copies.

(** ** The loss *)

(** The probabilities of no hit, from below and above, and of so many: each of [draws] hits with
    probability [rate]; those of others together from above. *)
Definition copies_likely (w bits : Z) (m : Q) (draws : positive) (rate : Q) (tail : Z) :
  option (Z * Z * list copy * Z) :=
  let p := (w + bits + guard)%Z in
  let hit := Qnum rate in
  let records := Zpos (Qden rate) in
  let none := ((records - hit) * 2 ^ p)%Z in
  let low := power_below p (none / records) draws in
  let up := power_above p (round_up none records) draws in
  let least := (tail * 2 ^ (bits + guard) / 64)%Z in
  match copies_from p (Z.to_nat (Z.min 1000 (Zpos draws))) m (Zpos draws) hit records least 1 low up
          (2 ^ p - low) with
  | Some (cs, rest) => if (rest <=? 32 * least)%Z then Some (low, up, cs, rest) else None
  | None => None
  end.

(** Of a step whose (sensitivity / noise)^2 is [m]. *)
Definition copies_heights (w bits : Z) (m : Q) (draws : positive) (rate : Q) (tail : Z) :
  option (Z -> Z -> option Z) :=
  match copies_likely w bits m draws rate tail with
  | Some (low, _, cs, rest) => Some (copies_above (w + bits + guard) low rest cs)
  | None => None
  end.

Definition copies_losses (w bits : Z) (m : Q) (draws : positive) (rate step : Q)
  (dense tail : Z) : option whole_loss :=
  match copies_heights w bits m draws rate tail with
  | Some above => turned_losses w bits above step dense tail
  | None => None
  end.

Section Likely.

Variables (w bits : Z) (m : Q) (draws : positive) (rate : Q).
Hypotheses (Hw : (0 <= w)%Z) (Hbits : (0 <= bits)%Z) (Hm : 0 < Q2R m).
Hypothesis Hrate : 0 < Q2R rate < 1.

Notation p := (w + bits + guard)%Z.
Notation fixed n := (IZR n / unit_of p).
Notation n := (Pos.to_nat draws).
Notation r := (Q2R rate).

Lemma copy_fits k up c :
  copy_of p m (Z.of_nat (S k)) up = Some c -> chance r n (S k) <= fixed up ->
  fits p m draws r (S k) c.
Proof.
  unfold copy_of; cbv zeta; set (q := (m * inject_Z _)%Q); intros E Hup.
  assert (Pk : 0 < INR (S k)) by (apply lt_0_INR; lia).
  assert (Eq : Q2R q = Q2R m * (INR (S k) * INR (S k))).
  { unfold q; rewrite Q2R_mult, Q2R_integer, mult_IZR, <- !INR_IZR_INZ; reflexivity. }
  assert (Pq : 0 < Q2R q) by (rewrite Eq; apply Rmult_lt_0_compat; [exact Hm|nra]).
  destruct (half_above_sound w bits q Hw Hbits Pq) as [Ph Hh].
  destruct (scale_above p _) as [s|] eqn:Es; [|discriminate].
  destruct (exp_bounds p _) as [[f f']|]; [|discriminate]; injection E as <-.
  apply (scale_above_sound w bits Hw Hbits) in Es; [|exact Ph].
  repeat split; cbn [likely half_of scale_of]; try assumption.
  replace (INR (S k) * sqrt (Q2R m)) with (sqrt (Q2R q)); [apply sqrt_le_1_alt, Hh|].
  rewrite Eq, sqrt_mult by nra; rewrite sqrt_square by lra; ring.
Qed.

Lemma copies_from_sound least fuel : forall k low up rest cs others,
  copies_from p fuel m (Zpos draws) (Qnum rate) (Zpos (Qden rate)) least (Z.of_nat (S k)) low up rest = Some (cs, others) ->
  (0 <= low)%Z -> fixed low <= chance r n k <= fixed up -> (k + fuel <= n)%nat ->
  all_fit p m draws r (S k) cs /\ (length cs <= fuel)%nat /\
  fixed rest - total (seq (S k) (length cs)) (chance r n) <= fixed others.
Proof.
  assert (Hp : (0 <= p)%Z) by (pose proof guard_nonneg; lia).
  pose proof (unit_pos p Hp) as Pu; assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  assert (Er : Q2R rate = IZR (Qnum rate) / IZR (Zpos (Qden rate))) by reflexivity.
  set (hit := Qnum rate) in *; set (records := Zpos (Qden rate)) in *.
  assert (Pd : 0 < IZR records) by (apply IZR_lt; reflexivity).
  assert (Ph : 0 < IZR hit < IZR records).
  { destruct Hrate as [R1 R2]; rewrite Er in R1, R2; split.
    - apply Rmult_lt_reg_r with (/ IZR records); [apply Rinv_0_lt_compat, Pd|unfold Rdiv in R1; lra].
    - apply Rmult_lt_reg_r with (/ IZR records); [apply Rinv_0_lt_compat, Pd|].
      rewrite Rinv_r by lra; exact R2. }
  induction fuel as [|fuel IH]; intros k low up rest cs others; cbn [copies_from];
    [intros E; injection E as <- <-; cbn; repeat split; [lia|lra]|].
  destruct (_ && _)%bool; [intros E; injection E as <- <-; cbn; repeat split; [lia|lra]|].
  set (ways := ((Zpos draws - Z.of_nat (S k) + 1) * hit)%Z).
  set (over := (Z.of_nat (S k) * (records - hit))%Z).
  intros E Hlow [L U] Hk.
  destruct (copy_of p m (Z.of_nat (S k)) _) as [c|] eqn:Ec; [|discriminate].
  destruct (copies_from p fuel _ _ _ _ _ _ _ _ _) as [[cs' others']|] eqn:Ecs; [|discriminate].
  injection E as <- <-.
  assert (Ew : IZR ways = (INR n - INR k) * IZR hit).
  { assert (Ed : INR n = IZR (Zpos draws)) by (rewrite INR_IZR_INZ, positive_nat_Z; reflexivity).
    unfold ways; rewrite mult_IZR, plus_IZR, minus_IZR, <- INR_IZR_INZ, S_INR, Ed; ring. }
  assert (Eo : IZR over = (INR k + 1) * (IZR records - IZR hit))
    by (unfold over; rewrite mult_IZR, minus_IZR, <- INR_IZR_INZ, S_INR; reflexivity).
  pose proof (pos_INR k) as Pk; assert (Hkn : INR k + 1 <= INR n).
  { rewrite <- S_INR; apply le_INR; lia. }
  assert (Pw : 0 < IZR ways) by (rewrite Ew; apply Rmult_lt_0_compat; lra).
  assert (Po : 0 < IZR over) by (rewrite Eo; apply Rmult_lt_0_compat; lra).
  assert (Hways : (0 < ways)%Z) by (apply lt_IZR, Pw); assert (Hover : (0 < over)%Z) by (apply lt_IZR, Po).
  assert (Next : chance r n (S k) = chance r n k * IZR ways / IZR over).
  { pose proof (chance_next r n k) as E; rewrite Ew, Eo.
    apply Rmult_eq_reg_l with ((INR k + 1) * (1 - r)).
    - rewrite E, Er; field; lra.
    - apply Rgt_not_eq, Rmult_lt_0_compat; lra. }
  assert (L' : fixed (low * ways / over) <= chance r n (S k)).
  { pose proof (round_down_le (low * ways) over Hover) as D; rewrite Next.
    apply (Rmult_le_compat_r (/ unit_of p)) in D; [|lra]; eapply Rle_trans; [exact D|].
    rewrite mult_IZR; replace (IZR low * IZR ways / IZR over * / unit_of p)
      with (fixed low * (IZR ways / IZR over)) by (field; lra).
    replace (chance r n k * IZR ways / IZR over) with (chance r n k * (IZR ways / IZR over))
      by (unfold Rdiv; ring).
    apply Rmult_le_compat_r; [|exact L].
    left; apply Rdiv_lt_0_compat; assumption. }
  assert (U' : chance r n (S k) <= fixed (round_up (up * ways) over)).
  { pose proof (round_up_ge (up * ways) over Hover) as D; rewrite Next.
    apply (Rmult_le_compat_r (/ unit_of p)) in D; [|lra]; eapply Rle_trans; [|exact D].
    rewrite mult_IZR; replace (IZR up * IZR ways / IZR over * / unit_of p)
      with (fixed up * (IZR ways / IZR over)) by (field; lra).
    replace (chance r n k * IZR ways / IZR over) with (chance r n k * (IZR ways / IZR over))
      by (unfold Rdiv; ring).
    apply Rmult_le_compat_r; [|exact U].
    left; apply Rdiv_lt_0_compat; assumption. }
  replace (Z.of_nat (S k) + 1)%Z with (Z.of_nat (S (S k))) in Ecs by lia.
  apply IH in Ecs as (Fit & Len & Rest); [|apply Z.div_pos; nia|split; assumption|lia].
  cbn [all_fit length seq total]; split; [split; [apply (copy_fits k _ c Ec U')|exact Fit]|].
  split; [lia|]; rewrite fixed_minus in Rest by exact Hp; lra.
Qed.

Theorem copies_likely_sound tail none up cs rest :
  copies_likely w bits m draws rate tail = Some (none, up, cs, rest) ->
  (0 <= none)%Z /\ fixed none <= chance r n 0 <= fixed up /\
  all_fit p m draws r 1 cs /\ (length cs <= n)%nat /\
  1 - total (seq 0 (S (length cs))) (chance r n) <= fixed rest.
Proof.
  unfold copies_likely; cbv zeta.
  set (low := power_below p _ draws); set (high := power_above p _ draws).
  destruct (copies_from _ _ _ _ _ _ _ _ _ _ _) as [[cs' rest']|] eqn:Ecs; [|discriminate].
  destruct (rest' <=? _)%Z; [|discriminate]; intros E; injection E as <- <- <- <-.
  assert (Hp : (0 <= p)%Z) by (pose proof guard_nonneg; lia).
  pose proof (unit_pos p Hp) as Pu; assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  assert (Er : Q2R rate = IZR (Qnum rate) / IZR (Zpos (Qden rate))) by reflexivity.
  assert (Pd : 0 < IZR (Zpos (Qden rate))) by (apply IZR_lt; reflexivity).
  assert (Base : 0 <= 1 - r) by lra.
  set (whole := ((Zpos (Qden rate) - Qnum rate) * 2 ^ p)%Z) in *.
  assert (Whole : IZR whole / IZR (Zpos (Qden rate)) * / unit_of p = 1 - r).
  { unfold whole; rewrite mult_IZR, minus_IZR, Er; fold (unit_of p); field; lra. }
  assert (Hwhole : (0 <= whole)%Z).
  { assert (Qnum rate <= Zpos (Qden rate))%Z; [|pose proof (Z.pow_nonneg 2 p); unfold whole; nia].
    apply le_IZR; apply Rmult_le_reg_r with (/ IZR (Zpos (Qden rate))); [apply Rinv_0_lt_compat, Pd|].
    rewrite Rinv_r by lra; fold (IZR (Qnum rate) / IZR (Zpos (Qden rate))); lra. }
  assert (Low : (0 <= low)%Z /\ fixed low <= chance r n 0).
  { rewrite chance_none; apply power_below_sound; [exact Hp|exact Base| |].
    - apply Z.div_pos; lia.
    - pose proof (round_down_le whole (Zpos (Qden rate)) eq_refl) as D.
      apply (Rmult_le_compat_r (/ unit_of p)) in D; [|lra]; unfold Rdiv in *; rewrite Whole in D; exact D. }
  assert (Up : chance r n 0 <= fixed high).
  { rewrite chance_none; apply power_above_sound; [exact Hp|exact Base|].
    pose proof (round_up_ge whole (Zpos (Qden rate)) eq_refl) as D.
    apply (Rmult_le_compat_r (/ unit_of p)) in D; [|lra]; unfold Rdiv in *; rewrite Whole in D; exact D. }
  clearbody low high; destruct Low as [L0 Low].
  apply (copies_from_sound _ _ 0 low high (2 ^ p - low) cs' rest') in Ecs as (Fit & Len & Rest);
    [|exact L0|split; assumption|apply Nat2Z.inj_le; rewrite Nat.add_0_l, Z2Nat.id, positive_nat_Z; lia].
  rewrite fixed_minus, fixed_one in Rest by exact Hp.
  split; [exact L0|split; [split; assumption|split; [exact Fit|split]]].
  - apply Nat2Z.inj_le; rewrite positive_nat_Z; apply Nat2Z.inj_le in Len; rewrite Z2Nat.id in Len; lia.
  - change (seq 0 (S (length cs'))) with (0%nat :: seq 1 (length cs')); cbn [total]; lra.
Qed.

End Likely.

Theorem copies_losses_sound w bits m draws rate step dense tail L :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R m -> 0 < Q2R rate < 1 ->
  0 < Q2R step -> copies_losses w bits m draws rate step dense tail = Some L ->
  forall A (l : list A) q q', distribution l q -> distribution l q' ->
  (forall y t, 1 <= y -> (forall k, 0 <= t k) ->
     let n := Pos.to_nat draws in
     let r := Q2R rate in
     total (seq 1 n) (fun k => chance r n k * t k) <= (y - 1) * chance r n 0 ->
     let most := total (seq 1 n) (fun k =>
                   chance r n k * gaussian_profile (INR k * sqrt (Q2R m)) 1 (y + t k)) in
     excess l q q' 1 y <= most /\ excess l q' q 1 y <= most) ->
  sound_list L /\ below_profile l q q' (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  intros Hw Hbits Hm Hr Hstep; unfold copies_losses, copies_heights.
  destruct (copies_likely _ _ _ _ _ _) as [[[[low up] cs] rest]|] eqn:Ecs; [|discriminate].
  intros E A l q q' Dq Dq' Bound; cbv zeta in Bound.
  assert (Hp : (0 <= w + bits + guard)%Z) by (pose proof guard_nonneg; lia).
  apply (copies_likely_sound w bits m draws rate Hw Hbits Hm Hr) in Ecs as (L0 & [Low _] & Fit & Len & Rest).
  apply (turned_losses_sound w bits step Hw Hbits Hstep _ dense tail L E A l q q' Dq Dq').
  intros lo hi f y Hy _ [Hlo _] H.
  destruct (copies_above_sound _ Hp m draws (Q2R rate) Hm Hr low rest cs lo hi f y Hy Hlo Low L0 Fit Len Rest H)
    as (t & Ht & Within & Most).
  destruct (Bound y t Hy Ht Within) as [B1 B2]; split; [exact (Rle_trans _ _ _ B1 Most)|exact (Rle_trans _ _ _ B2 Most)].
Qed.
