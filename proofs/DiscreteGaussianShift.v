(** The loss of discrete Gaussian noise on one whole number that moves by so much, in whole numbers: each
    mass from above, on the lattice on which all of its losses lie. *)

From Coquelicot Require Import Coquelicot.
From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia Psatz.
From Dpledger Require Import Sums Finite Gaussian GaussianWeights DiscreteGaussian Domination
  DiscreteGaussianProfile Losses LossLists Enclosure LossEnclosures FixedPoint.
Import ListNotations.

(** ** As a program *)

Open Scope Z_scope.

(** 1 / (2 s^2): losses are whole multiples of it. *)
Definition loss_unit (std : Q) : Q := / (inject_Z 2 * (std * std)).

(** Bounds on weights exp(-i^2 / (2 s^2)), in units of 2^-p, of [n] whole numbers in a row: those on the
    first, on its ratio to the next, and on exp(-1 / s^2), the ratio of one ratio to the next. *)
Fixpoint weights_from (p : Z) (n : nat) (low high ratio_low ratio_high fall_low fall_high : Z) :
  list (Z * Z) :=
  match n with
  | O => []
  | S n' =>
      (low, high)
        :: weights_from p n' (FixedPoint.below p low ratio_low) (FixedPoint.above p high ratio_high)
             (FixedPoint.below p ratio_low fall_low) (FixedPoint.above p ratio_high fall_high)
             fall_low fall_high
  end.

(** A whole number beyond which weights are below 2^-bits. *)
Definition spread (bits : Z) (std : Q) : Z :=
  Z.sqrt (Qfloor (2 * (std * std) * inject_Z (Z.max 0 bits))) + 2.

(** The masses of 0, 1, ..., N, and of all that lies further out, in units of 2^-p. *)
Definition noise_masses (p : Z) (std : Q) (N : nat) : option (list Z * Z) :=
  match exp_of_rational p (- loss_unit std) with
  | Some (l, u) =>
      let listed := weights_from p (N + 2) (2 ^ p) (2 ^ p) l u (FixedPoint.below p l l) (FixedPoint.above p u u) in
      let inside := firstn (N + 1) listed in
      let total := 2 * fold_right (fun lu n => fst lu + n) 0 inside - 2 ^ p in
      let next := snd (nth (N + 1) listed (0, 0)) in
      if (0 <=? l) && (0 <? total) && (u <? 2 ^ p)
      then Some (map (fun lu => round_up (snd lu * 2 ^ p) total) inside,
                 round_up (2 * round_up (next * 2 ^ p) (2 ^ p - u) * 2 ^ p) total)
      else None
  | None => None
  end.

(** Masses with [gap] places free between them. *)
Fixpoint spaced (gap : nat) (l : list Z) : list Z :=
  match l with
  | [] => []
  | [m] => [m]
  | m :: rest => m :: repeat 0 gap ++ spaced gap rest
  end.

(** The loss of noise on one number that moves by [j], in multiples of the unit. *)
Definition shift_loss (middle : list Z) (outside : Z) (N j : nat) : whole_loss :=
  let k := Z.of_nat j in
  {| first := k * k - 2 * k * Z.of_nat N;
     masses := spaced (2 * j - 1) (rev (tl middle) ++ middle);
     beyond := outside |}.

(** ** Soundness: masses *)

Open Scope R_scope.

Section Sound.

Variables (std : Q) (s : R).
Hypotheses (Hs : 0 < s) (Es : Q2R std = s).

Notation w := (gaussian_weight s).
Notation unit := (Q2R (loss_unit std)).

Lemma unit_value : unit = / (2 * (s * s)).
Proof.
  unfold loss_unit; rewrite Q2R_inv, !Q2R_mult, Es, Q2R_integer; [reflexivity|].
  intros Z; apply Qeq_eqR in Z; rewrite !Q2R_mult, Q2R_integer, Es in Z.
  change 0%Q with (inject_Z 0) in Z; rewrite Q2R_integer in Z; nra.
Qed.

Lemma unit_positive : 0 < unit.
Proof. rewrite unit_value; apply Rinv_0_lt_compat; nra. Qed.

Lemma weight_of i : w (INR i) = exp (- (INR i * INR i * unit)).
Proof. rewrite unit_value; unfold gaussian_weight; f_equal; field; lra. Qed.

Section Fixed.

Variable p : Z.
Hypothesis Hp : (0 <= p)%Z.

Notation fixed z := (IZR z / unit_of p).

Lemma weights_from_sound n low high ratio_low ratio_high fall_low fall_high k i :
  (0 <= low)%Z -> (0 <= ratio_low)%Z -> (0 <= fall_low)%Z ->
  fixed low <= w (INR k) <= fixed high ->
  fixed ratio_low <= exp (- ((2 * INR k + 1) * unit)) <= fixed ratio_high ->
  fixed fall_low <= exp (- (2 * unit)) <= fixed fall_high -> (i < n)%nat ->
  let '(l, u) := nth i (weights_from p n low high ratio_low ratio_high fall_low fall_high) (0, 0)%Z in
  (0 <= l)%Z /\ fixed l <= w (INR (k + i)) <= fixed u.
Proof.
  revert low high ratio_low ratio_high k i; induction n as [|n IH]; [lia|].
  intros low high ratio_low ratio_high k i P1 P2 P3 H1 H2 H3 L; cbn [weights_from].
  destruct i as [|i]; cbn [nth]; [rewrite Nat.add_0_r; split; assumption|].
  replace (k + S i)%nat with (S k + i)%nat by lia.
  apply (fixed_nonneg p Hp) in P1 as F1; apply (fixed_nonneg p Hp) in P2 as F2.
  apply (fixed_nonneg p Hp) in P3 as F3.
  assert (Next : w (INR (S k)) = w (INR k) * exp (- ((2 * INR k + 1) * unit))).
  { rewrite !weight_of, <- exp_plus, S_INR; f_equal; ring. }
  assert (Ratio : exp (- ((2 * INR (S k) + 1) * unit)) = exp (- ((2 * INR k + 1) * unit)) * exp (- (2 * unit))).
  { rewrite <- exp_plus, S_INR; f_equal; ring. }
  apply IH; try (apply below_nonneg; assumption); try assumption; [| |lia]; rewrite ?Next, ?Ratio;
    (split; [eapply Rle_trans; [apply below_le, Hp|]|eapply Rle_trans; [|apply above_ge, Hp]]);
    apply Rmult_le_compat; lra.
Qed.

Lemma noise_masses_sound N middle outside :
  noise_masses p std N = Some (middle, outside) ->
  length middle = (N + 1)%nat /\ (0 <= outside)%Z /\
  2 * DiscreteGaussianProfile.outside s N / all_weights s 0 <= fixed outside /\
  forall i, (i <= N)%nat -> (0 <= nth i middle 0)%Z /\ w (INR i) / all_weights s 0 <= fixed (nth i middle 0%Z).
Proof.
  unfold noise_masses; destruct (exp_of_rational p (- loss_unit std)) as [[l u]|] eqn:E; [|discriminate].
  apply exp_of_rational_sound in E; [|exact Hp]; rewrite Q2R_opp in E; cbv zeta.
  set (listed := weights_from _ _ _ _ _ _ _ _); set (inside := firstn (N + 1) listed).
  set (total := (2 * fold_right _ _ _ - _)%Z); set (next := snd _).
  destruct (_ && _)%bool eqn:G; [|discriminate]; intros H; injection H as <- <-.
  rewrite !andb_true_iff in G; destruct G as [[G1 G2] G3].
  apply Z.leb_le in G1; apply Z.ltb_lt in G2, G3.
  pose proof (unit_pos p Hp) as P; pose proof (fixed_one p Hp) as One.
  apply (fixed_nonneg p Hp) in G1 as F1.
  assert (Known : forall i, (i < N + 2)%nat ->
            let '(l, u) := nth i listed (0, 0)%Z in (0 <= l)%Z /\ fixed l <= w (INR i) <= fixed u).
  { intros i L; apply (weights_from_sound (N + 2) (2 ^ p) (2 ^ p) l u _ _ 0 i); try assumption.
    - apply Z.pow_nonneg; lia.
    - apply below_nonneg; assumption.
    - rewrite One, weight_of; simpl INR; rewrite !Rmult_0_l, Ropp_0, exp_0; lra.
    - simpl INR; replace (2 * 0 + 1) with 1 by ring; rewrite Rmult_1_l; exact E.
    - replace (- (2 * unit)) with (- unit + - unit) by ring; rewrite exp_plus; split.
      + eapply Rle_trans; [apply below_le, Hp|apply Rmult_le_compat; lra].
      + eapply Rle_trans; [|apply above_ge, Hp]; apply Rmult_le_compat; lra. }
  assert (Len : length listed = (N + 2)%nat).
  { unfold listed; generalize (2 ^ p)%Z at 1 as a; generalize (2 ^ p)%Z as b; generalize l at 1, u at 1.
    generalize (N + 2)%nat as n; induction n as [|n IH]; intros; [reflexivity|].
    cbn [weights_from length]; f_equal; apply IH. }
  assert (Inside : forall i, (i <= N)%nat -> nth i inside (0, 0)%Z = nth i listed (0, 0)%Z).
  { intros i L; unfold inside; rewrite <- (firstn_skipn (N + 1) listed) at 2.
    rewrite app_nth1; [reflexivity|rewrite firstn_length; lia]. }
  assert (LenI : length inside = (N + 1)%nat) by (unfold inside; rewrite firstn_length; lia).
  pose proof (weights_pos s Hs 0) as W; set (W0 := all_weights s 0) in *.
  (* the total from below *)
  assert (Low : fixed total <= W0).
  { assert (Sum : forall l, fixed (fold_right (fun lu n => fst lu + n)%Z 0%Z l)
                            = Sums.total (seq 0 (length l)) (fun i => fixed (fst (nth i l (0, 0)%Z)))).
    { clear; induction l as [|[a b] l IH]; [simpl; unfold Rdiv; ring|].
      cbn [fold_right length seq Sums.total nth fst]; rewrite <- seq_shift, total_map.
      cbn [nth]; rewrite <- IH; unfold Rdiv; rewrite plus_IZR; ring. }
    assert (Half : fixed (fold_right (fun lu n => fst lu + n)%Z 0%Z inside)
                   <= Sums.total (seq 0 (N + 1)) (fun i => w (INR i))).
    { rewrite Sum, LenI; apply total_le; intros i I; apply in_seq in I.
      rewrite Inside by lia; specialize (Known i ltac:(lia)); destruct (nth i listed (0, 0)%Z); apply Known. }
    assert (Both : 2 * Sums.total (seq 0 (N + 1)) (fun i => w (INR i)) - 1 <= W0).
    { unfold W0, all_weights; pose proof (partial_below s Hs (N + 1) 0) as B1.
      pose proof (partial_below s Hs N (- 0 - 1)) as B2; unfold partial in B1, B2.
      rewrite (total_ext _ (fun k => w (0 - INR k)) (fun i => w (INR i))) in B1
        by (intros; rewrite Rminus_0_l; apply weight_opp).
      rewrite (total_ext _ (fun k => w (- 0 - 1 - INR k)) (fun i => w (INR (S i)))) in B2
        by (intros; rewrite <- weight_opp; f_equal; rewrite S_INR; ring).
      rewrite <- (total_map S (seq 0 N) (fun i => w (INR i))), seq_shift in B2.
      rewrite Nat.add_1_r in B1 |- *; cbn [seq Sums.total] in B1 |- *.
      assert (W1 : w (INR 0) = 1) by (rewrite weight_of; simpl; rewrite !Rmult_0_l, Ropp_0; apply exp_0).
      rewrite W1 in B1 |- *; lra. }
    unfold total; rewrite fixed_minus, One; unfold Rdiv in *; rewrite mult_IZR; lra. }
  apply (fixed_pos p Hp) in G2 as F2.
  assert (Share : forall x n, 0 <= x <= fixed n -> x / W0 <= fixed (round_up (n * 2 ^ p) total)).
  { intros x n Hx; pose proof (round_up_ge (n * 2 ^ p) total G2) as U; rewrite mult_IZR in U.
    fold (unit_of p) in U; apply (Rmult_le_compat_r (/ unit_of p)) in U;
      [|left; apply Rinv_0_lt_compat, P].
    eapply Rle_trans; [|exact U].
    replace (IZR n * unit_of p / IZR total * / unit_of p) with (fixed n / fixed total)
      by (field; apply IZR_lt in G2; lra).
    apply Rmult_le_compat; try lra; [left; apply Rinv_0_lt_compat, W|].
    apply Rinv_le_contravar; assumption. }
  assert (Up : forall n, (0 <= n)%Z -> (0 <= round_up (n * 2 ^ p) total)%Z).
  { intros n Hn; apply le_IZR; eapply Rle_trans; [|apply round_up_ge, G2].
    apply IZR_lt in G2; apply Rmult_le_pos; [apply IZR_le|left; apply Rinv_0_lt_compat, G2].
    apply Z.mul_nonneg_nonneg; [exact Hn|apply Z.pow_nonneg; lia]. }
  assert (Gap : (0 < 2 ^ p - u)%Z) by lia.
  set (rest := round_up (next * 2 ^ p) (2 ^ p - u)).
  assert (Rest : DiscreteGaussianProfile.outside s N <= fixed rest /\ (0 <= rest)%Z).
  { specialize (Known (N + 1)%nat ltac:(lia)); 
    replace (w (INR (N + 1))) with (w (INR (S N))) in Known by (do 2 f_equal; lia).
    replace next with (snd (nth (N + 1) listed (0, 0)%Z)) in * by reflexivity.
    unfold rest, next; destruct (nth (N + 1) listed (0, 0)%Z) as [a b]; cbn [snd] in *.
    pose proof (outside_below s Hs N) as O; destruct Known as (_ & _ & Hb).
    rewrite <- unit_value in O.
    pose proof (weight_pos s (INR (S N))) as Wp.
    pose proof (round_up_ge (b * 2 ^ p) (2 ^ p - u) Gap) as U; rewrite mult_IZR in U; fold (unit_of p) in U.
    apply IZR_lt in Gap as Gap'; rewrite minus_IZR in U, Gap'; fold (unit_of p) in U, Gap'.
    assert (Pb : 0 <= IZR b).
    { apply Rmult_le_reg_r with (/ unit_of p); [apply Rinv_0_lt_compat, P|]; unfold Rdiv in Hb; lra. }
    assert (Hu : 0 < 1 - fixed u).
    { apply Rmult_lt_reg_r with (1 := P); replace ((1 - fixed u) * unit_of p) with (unit_of p - IZR u)
        by (field; lra); lra. }
    split.
    - apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
      eapply Rle_trans; [|exact U].
      replace (IZR b * unit_of p / (unit_of p - IZR u) * / unit_of p) with (fixed b / (1 - fixed u))
        by (field; repeat split; lra).
      apply Rmult_le_reg_r with (1 := Hu); unfold Rdiv at 2; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
      apply Rle_trans with (2 := Hb), Rle_trans with (2 := O); apply Rmult_le_compat_l; [|lra].
      apply GaussianWeights.below_nonneg, Hs.
    - apply le_IZR; eapply Rle_trans; [|apply U]; apply Rmult_le_pos; [apply Rmult_le_pos; lra|].
      left; apply Rinv_0_lt_compat; lra. }
  destruct Rest as [Rest RestZ].
  split; [rewrite map_length; exact LenI|split; [apply (Up (2 * rest)%Z); lia|split]].
  - apply (Share _ (2 * rest)%Z); rewrite mult_IZR; pose proof (GaussianWeights.below_nonneg s Hs (- INR (S N))).
    unfold DiscreteGaussianProfile.outside in *; unfold Rdiv in *; lra.
  - intros i L; rewrite (nth_indep _ 0%Z (round_up (snd (0, 0) * 2 ^ p) total)%Z)
      by (rewrite map_length; lia).
    rewrite (map_nth (fun lu => round_up (snd lu * 2 ^ p) total)), Inside by exact L.
    specialize (Known i ltac:(lia)); destruct (nth i listed (0, 0)%Z) as [a b]; cbn [snd].
    pose proof (weight_pos s (INR i)); split; [apply Up|apply Share; lra].
    apply (fixed_nonneg p Hp); lra.
Qed.

(** ** Soundness: one coordinate *)

Lemma row_spaced t gap l z :
  row t z (spaced gap l)
    = Sums.total (seq 0 (length l)) (fun i => IZR (nth i l 0%Z) * t (z + Z.of_nat i * (Z.of_nat gap + 1))%Z).
Proof.
  revert z; induction l as [|m l IH]; intros z; [reflexivity|].
  assert (Shift : Sums.total (seq 0 (length (m :: l)))
                    (fun i => IZR (nth i (m :: l) 0%Z) * t (z + Z.of_nat i * (Z.of_nat gap + 1))%Z)
                  = IZR m * t z + row t (z + (Z.of_nat gap + 1)) (spaced gap l)).
  { rewrite IH; cbn [length seq Sums.total nth]; f_equal; [do 2 f_equal; lia|].
    rewrite <- seq_shift, total_map; apply total_ext; intros i _; cbn [nth]; do 2 f_equal; lia. }
  rewrite Shift; clear; destruct l as [|n l]; [simpl; ring|].
  replace (spaced gap (m :: n :: l)) with (m :: repeat 0%Z gap ++ spaced gap (n :: l)) by reflexivity.
  cbn [row]; rewrite row_app, row_zeros, repeat_length, Rplus_0_l; do 2 f_equal; lia.
Qed.

Lemma spaced_nonnegative gap l : Forall (fun m => 0 <= m)%Z l -> Forall (fun m => 0 <= m)%Z (spaced gap l).
Proof.
  induction 1 as [|m l Hm F IH]; [constructor|]; destruct l as [|n l]; [constructor; [exact Hm|constructor]|].
  replace (spaced gap (m :: n :: l)) with (m :: repeat 0%Z gap ++ spaced gap (n :: l)) by reflexivity.
  constructor; [exact Hm|]; apply Forall_app; split; [|exact IH].
  apply Forall_forall; intros x I; apply repeat_spec in I; lia.
Qed.

(** A list about its first number, mirrored. *)
Lemma mirrored (middle : list Z) N t :
  length middle = (N + 1)%nat -> (t < 2 * N + 1)%nat ->
  nth t (rev (tl middle) ++ middle) 0%Z = nth (Z.abs_nat (Z.of_nat t - Z.of_nat N)) middle 0%Z.
Proof.
  destruct middle as [|m middle]; cbn [length tl]; [lia|]; intros L T.
  assert (Len : length (rev middle) = N) by (rewrite rev_length; lia).
  destruct (Nat.lt_ge_cases t N) as [Lt|Ge].
  - rewrite app_nth1, rev_nth by lia.
    replace (Z.abs_nat (Z.of_nat t - Z.of_nat N)) with (S (N - S t)) by lia; cbn [nth]; f_equal; lia.
  - rewrite app_nth2, Len by lia; f_equal; lia.
Qed.

Section Shifts.

Variables (N : nat) (middle : list Z) (outside : Z).
Hypothesis Masses : noise_masses p std N = Some (middle, outside).

Notation shift := (shift_loss middle outside N).
Notation real := (stands_for unit (unit_of p)).

Lemma shift_loss_list j : sound_list (shift j).
Proof.
  pose proof (noise_masses_sound N middle outside Masses) as (L & O & _ & M).
  split; [exact O|]; cbn [masses shift_loss].
  apply spaced_nonnegative, Forall_forall; intros x I.
  assert (In x middle) as I'.
  { apply in_app_or in I as [I|I]; [apply in_rev in I; destruct middle; [destruct I|right; exact I]|exact I]. }
  apply (In_nth _ _ 0%Z) in I' as (i & Li & <-); apply M; lia.
Qed.

Theorem shift_loss_sound j : (0 < j)%nat -> shift_bounded s j (real (shift j)).
Proof.
  intros Hj; pose proof (unit_pos p Hp) as P; split; [apply stands_proper, shift_loss_list; exact P|].
  pose proof (noise_masses_sound N middle outside Masses) as (L & O & Out & M).
  intros cuts m m' Up D a b Ha Hb; eapply Rle_trans; [apply (cells_by_losses s Hs m m' j N); assumption|].
  rewrite profile_stands by exact P; cbn [first masses beyond shift_loss].
  assert (Len : length (rev (tl middle) ++ middle) = (2 * N + 1)%nat).
  { rewrite app_length, rev_length; destruct middle; cbn [tl length] in *; lia. }
  rewrite row_spaced, Len; pose proof (weights_pos s Hs 0) as W; set (W0 := all_weights s 0) in *.
  unfold Rdiv at 1 2; rewrite Rmult_plus_distr_r, (Rmult_plus_distr_r (IZR outside * a)), Rplus_comm.
  apply Rplus_le_compat.
  - apply (Rmult_le_compat_r _ _ _ Ha) in Out; unfold Rdiv in Out; lra.
  - rewrite <- !total_scal_r; apply total_le; intros t I; apply in_seq in I; rewrite (mirrored middle N) by lia.
    set (l := (Z.of_nat t - Z.of_nat N)%Z) in *.
    specialize (M (Z.abs_nat l) ltac:(lia)).
    assert (Even : w (IZR l) = w (INR (Z.abs_nat l))).
    { rewrite INR_IZR_INZ, Zabs2Nat.id_abs; destruct (Z.abs_eq_or_opp l) as [-> | ->]; [reflexivity|].
      rewrite opp_IZR, weight_opp; reflexivity. }
    assert (Place : exp (- loss_at s j N t)
              = exp (- (IZR (Z.of_nat j * Z.of_nat j - 2 * Z.of_nat j * Z.of_nat N
                              + Z.of_nat t * (Z.of_nat (2 * j - 1) + 1)) * unit))).
    { unfold loss_at; rewrite unit_value; do 2 f_equal; unfold Rdiv; do 2 f_equal.
      rewrite Nat2Z.inj_sub by lia; lia. }
    unfold kept; rewrite Even, Place; set (k := plus_part _); pose proof (plus_part_nonneg
      (a - b * exp (- (IZR (Z.of_nat j * Z.of_nat j - 2 * Z.of_nat j * Z.of_nat N
                              + Z.of_nat t * (Z.of_nat (2 * j - 1) + 1)) * unit)))) as Pk; fold k in Pk.
    destruct M as [_ M]; apply (Rmult_le_compat_r _ _ _ Pk) in M; unfold Rdiv in M; lra.
Qed.

End Shifts.

End Fixed.

End Sound.
