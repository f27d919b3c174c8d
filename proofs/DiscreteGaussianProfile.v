(** The privacy loss of discrete Gaussian noise. About two whole numbers that are d apart the loss
    takes the values (d^2 + 2 d i) / (2 s^2), with the probability of i: losses of finitely many i, if
    their masses are at least these and what is left counts as lost, bound it on any grid
    ([cells_by_masses]). Noise on the coordinates of a vector is independent: the losses of those that
    move compose ([vector_by_shifts]). *)

From Coq Require Import Reals List Lra Lia ZArith.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian DiscreteLaplace GaussianWeights DiscreteGaussian
  Domination Losses.
Import ListNotations.
Open Scope R_scope.

(** ** One number *)

(** Whether a whole number is at most at a point. *)
Definition up_to_here (k : Z) (t : Rbar) : R :=
  match t with
  | Finite x => if Z_le_dec k (Int_part x) then 1 else 0
  | p_infty => 1
  | m_infty => 0
  end.

Lemma up_to_here_increment k c : Rbar_le (fst c) (snd c) -> 0 <= increment (up_to_here k) c.
Proof.
  destruct c as [[x| |] [y| |]]; unfold increment; cbn [fst snd up_to_here]; simpl Rbar_le;
    try contradiction; intros Le; repeat destruct Z_le_dec; try lra.
  apply int_part_le in Le; lia.
Qed.

Section Cells.

Variable s : R.
Hypothesis s_positive : 0 < s.

Notation w := (gaussian_weight s).
Notation up_to := (weights_up_to s).

Lemma below_grows m (i j : Z) : (i <= j)%Z -> weights_below s (IZR i - m) <= weights_below s (IZR j - m).
Proof.
  intros H; pose proof (below_increasing s s_positive (IZR i - m) (Z.to_nat (j - i))) as I.
  replace (IZR i - m + INR (Z.to_nat (j - i))) with (IZR j - m) in I
    by (rewrite INR_IZR_INZ, Z2Nat.id, minus_IZR by lia; ring); exact I.
Qed.

Lemma below_all m (i : Z) : weights_below s (IZR i - m) <= all_weights s m.
Proof.
  pose proof (weights_above s s_positive m i); pose proof (below_nonneg s s_positive (m - IZR i - 1)); lra.
Qed.

(** The weights of n whole numbers from [a] on, up to a point. *)
Definition window (a : Z) (n : nat) (m : R) (t : Rbar) : R :=
  total (seq 0 n) (fun i => w (IZR (a + Z.of_nat i) - m) * up_to_here (a + Z.of_nat i) t).

Definition clamped (a : Z) (n : nat) (t : Rbar) : Z :=
  match t with
  | Finite x => Z.max (a - 1) (Z.min (a - 1 + Z.of_nat n) (Int_part x))
  | p_infty => a - 1 + Z.of_nat n
  | m_infty => a - 1
  end.

Lemma window_clamped a n m t :
  window a n m t = weights_below s (IZR (clamped a n t) - m) - weights_below s (IZR (a - 1) - m).
Proof.
  induction n as [|n IH]; unfold window in *; [|rewrite total_seq_S, IH].
  - replace (clamped a 0 t) with (a - 1)%Z by (unfold clamped; destruct t; lia); simpl; ring.
  - assert (Step : forall z, clamped a n t = (z - 1)%Z -> clamped a (S n) t = z ->
              up_to_here (a + Z.of_nat n) t = 1 -> z = (a + Z.of_nat n)%Z ->
              weights_below s (IZR (clamped a n t) - m) - weights_below s (IZR (a - 1) - m)
              + w (IZR (a + Z.of_nat n) - m) * up_to_here (a + Z.of_nat n) t
              = weights_below s (IZR (clamped a (S n) t) - m) - weights_below s (IZR (a - 1) - m)).
    { intros z E1 E2 -> <-; rewrite E1, E2, (below_step s s_positive (IZR z - m)).
      replace (IZR (z - 1) - m) with (IZR z - m - 1) by (rewrite minus_IZR; ring); ring. }
    destruct t as [x| |]; cbn [clamped up_to_here] in *.
    + destruct (Z_le_dec (a + Z.of_nat n) (Int_part x)) as [L|G].
      * apply (Step (a + Z.of_nat n)%Z); lia || reflexivity.
      * rewrite Rmult_0_r, Rplus_0_r; do 4 f_equal; lia.
    + apply (Step (a + Z.of_nat n)%Z); lia || reflexivity.
    + rewrite Rmult_0_r, Rplus_0_r; reflexivity.
Qed.

(** A cell weighs at least what those of the window in it do. *)
Lemma window_within a n m c :
  Rbar_le (fst c) (snd c) -> increment (window a n m) c <= increment (up_to m) c.
Proof.
  intros Le; unfold increment; rewrite !window_clamped; destruct c as [lo hi]; cbn [fst snd] in *.
  enough (H : weights_below s (IZR (clamped a n hi) - m) - up_to m hi
              <= weights_below s (IZR (clamped a n lo) - m) - up_to m lo) by lra.
  pose proof (fun i j => below_grows m i j) as G; pose proof (below_all m) as T.
  assert (N : forall x, 0 <= weights_below s (IZR x - m)) by (intros; apply below_nonneg, s_positive).
  destruct lo as [x| |], hi as [y| |]; simpl in Le; try contradiction; cbn [clamped weights_up_to];
    try apply int_part_le in Le.
  - destruct (Z_le_dec (Int_part y) (a - 1)) as [Y|Y].
    { rewrite !Z.max_l by lia; pose proof (G _ _ Le); lra. }
    destruct (Z_le_dec (a - 1 + Z.of_nat n) (Int_part x)) as [X|X].
    { replace (Z.max _ (Z.min _ (Int_part x))) with (a - 1 + Z.of_nat n)%Z by lia.
      replace (Z.max _ (Z.min _ (Int_part y))) with (a - 1 + Z.of_nat n)%Z by lia.
      pose proof (G _ _ Le); lra. }
    pose proof (G (Z.max (a - 1) (Z.min (a - 1 + Z.of_nat n) (Int_part y))) (Int_part y) ltac:(lia)).
    pose proof (G (Int_part x) (Z.max (a - 1) (Z.min (a - 1 + Z.of_nat n) (Int_part x))) ltac:(lia)); lra.
  - destruct (Z_le_dec (a - 1 + Z.of_nat n) (Int_part x)) as [X|X].
    { replace (Z.max _ (Z.min _ (Int_part x))) with (a - 1 + Z.of_nat n)%Z by lia.
      specialize (T (Int_part x)); lra. }
    pose proof (T (a - 1 + Z.of_nat n)%Z).
    pose proof (G (Int_part x) (Z.max (a - 1) (Z.min (a - 1 + Z.of_nat n) (Int_part x))) ltac:(lia)); lra.
  - lra.
  - destruct (Z_le_dec (Int_part y) (a - 1)) as [Y|Y].
    { rewrite Z.max_l by lia; pose proof (N (Int_part y)); lra. }
    pose proof (G (Z.max (a - 1) (Z.min (a - 1 + Z.of_nat n) (Int_part y))) (Int_part y) ltac:(lia)).
    pose proof (N (a - 1)%Z); lra.
  - specialize (T (a - 1 + Z.of_nat n)%Z); pose proof (N (a - 1)%Z); lra.
  - lra.
Qed.

(** What lies further from the middle than N, on either side. *)
Definition outside (N : nat) : R := weights_below s (- INR (S N)).

Lemma weights_inside m N :
  window (m - Z.of_nat N) (2 * N + 1) (IZR m) p_infty = all_weights s (IZR m) - 2 * outside N.
Proof.
  rewrite window_clamped; cbn [clamped]; unfold outside.
  replace (m - Z.of_nat N - 1 + Z.of_nat (2 * N + 1))%Z with (m + Z.of_nat N)%Z by lia.
  pose proof (weights_above s s_positive (IZR m) (m + Z.of_nat N)) as A.
  replace (IZR m - IZR (m + Z.of_nat N) - 1) with (- INR (S N)) in A
    by (rewrite S_INR, plus_IZR, <- INR_IZR_INZ; ring).
  replace (IZR (m - Z.of_nat N - 1) - IZR m) with (- INR (S N))
    by (rewrite S_INR, !minus_IZR, <- INR_IZR_INZ; ring); lra.
Qed.

Theorem cells_by_masses (m m' : Z) N cuts a b :
  ascending m_infty cuts -> 0 <= a -> 0 <= b ->
  excess (cells m_infty cuts) (rounded_discrete m s) (rounded_discrete m' s) a b
    <= (total (seq 0 (2 * N + 1)) (fun i =>
          let z := (m - Z.of_nat N + Z.of_nat i)%Z in
          plus_part (a * w (IZR z - IZR m) - b * w (IZR z - IZR m')))
        + 2 * outside N * a) / all_weights s 0.
Proof.
  intros Up Ha Hb; pose proof (weights_pos s s_positive 0) as W; set (W0 := all_weights s 0) in *.
  set (f := fun z => plus_part (a * w (IZR z - IZR m) - b * w (IZR z - IZR m'))).
  set (A := (m - Z.of_nat N)%Z); set (n := (2 * N + 1)%nat).
  set (G := fun t => a * (up_to (IZR m) t - window A n (IZR m) t)
                     + total (seq 0 n) (fun i => f (A + Z.of_nat i)%Z * up_to_here (A + Z.of_nat i) t)).
  apply Rle_trans with (total (cells m_infty cuts) (fun c => increment G c / W0)).
  - apply total_le; intros c I; pose proof (cells_ordered _ _ _ Up I) as Le.
    assert (IW : 0 < / W0) by (apply Rinv_0_lt_compat, W).
    unfold rounded_discrete; rewrite (weights_whole s s_positive m), (weights_whole s s_positive m').
    fold W0; unfold Rdiv.
    replace (a * (increment (up_to (IZR m)) c * / W0) - b * (increment (up_to (IZR m')) c * / W0))
      with (/ W0 * (a * increment (up_to (IZR m)) c - b * increment (up_to (IZR m')) c)) by ring.
    rewrite plus_part_scal by lra; rewrite Rmult_comm; apply Rmult_le_compat_r; [lra|].
    pose proof (window_within A n (IZR m) c Le) as L1; pose proof (window_within A n (IZR m') c Le) as L2.
    assert (Inc : increment G c
              = a * (increment (up_to (IZR m)) c - increment (window A n (IZR m)) c)
                + total (seq 0 n) (fun i => f (A + Z.of_nat i)%Z * increment (up_to_here (A + Z.of_nat i)) c)).
    { unfold G, increment.
      rewrite (total_ext (seq 0 n) (fun i => f (A + Z.of_nat i)%Z * (_ - _)) (fun i =>
        f (A + Z.of_nat i)%Z * up_to_here (A + Z.of_nat i) (snd c)
        - f (A + Z.of_nat i)%Z * up_to_here (A + Z.of_nat i) (fst c))) by (intros; ring).
      rewrite total_minus; ring. }
    assert (Win : forall x, increment (window A n x) c
              = total (seq 0 n) (fun i =>
                  w (IZR (A + Z.of_nat i) - x) * increment (up_to_here (A + Z.of_nat i)) c)).
    { intros x; unfold increment, window; rewrite <- total_minus; apply total_ext; intros; ring. }
    assert (Each : a * increment (window A n (IZR m)) c - b * increment (window A n (IZR m')) c
              <= total (seq 0 n) (fun i => f (A + Z.of_nat i)%Z * increment (up_to_here (A + Z.of_nat i)) c)).
    { rewrite !Win, <- !total_scal, <- total_minus; apply total_le; intros i _.
      pose proof (up_to_here_increment (A + Z.of_nat i) c Le) as P.
      pose proof (plus_part_ge (a * w (IZR (A + Z.of_nat i) - IZR m)
                                - b * w (IZR (A + Z.of_nat i) - IZR m'))) as Q.
      fold (f (A + Z.of_nat i)%Z) in Q; apply (Rmult_le_compat_r _ _ _ P) in Q; lra. }
    assert (Rest : 0 <= total (seq 0 n) (fun i =>
                     f (A + Z.of_nat i)%Z * increment (up_to_here (A + Z.of_nat i)) c)).
    { apply total_nonneg; intros i _; apply Rmult_le_pos;
        [apply plus_part_nonneg|apply up_to_here_increment, Le]. }
    apply (Rmult_le_compat_l b) in L2; [|exact Hb].
    assert (0 <= a * (increment (up_to (IZR m)) c - increment (window A n (IZR m)) c))
      by (apply Rmult_le_pos; lra).
    rewrite Inc; apply Rmax_lub; lra.
  - unfold Rdiv; rewrite total_scal_r, cells_total; apply Rmult_le_compat_r;
      [left; apply Rinv_0_lt_compat, W|right].
    unfold G; assert (In : window A n (IZR m) p_infty = all_weights s (IZR m) - 2 * outside N)
      by apply weights_inside.
    rewrite In; cbn [weights_up_to].
    replace (window A n (IZR m) m_infty) with 0
      by (symmetry; apply total_zero; intros; cbn [up_to_here]; ring).
    rewrite (total_zero (seq 0 n) (fun i => f (A + Z.of_nat i)%Z * up_to_here (A + Z.of_nat i) m_infty))
      by (intros; cbn [up_to_here]; ring).
    rewrite (total_ext (seq 0 n) (fun i => f (A + Z.of_nat i)%Z * up_to_here (A + Z.of_nat i) p_infty)
               (fun i => f (A + Z.of_nat i)%Z)) by (intros; cbn [up_to_here]; ring).
    unfold f; ring.
Qed.

(** By the loss at each of these: [t - N] is how far below the first of two numbers, [j] apart, an
    outcome lies on the side of the other, if j > 0 on either side. *)
Definition loss_at (j : nat) (N t : nat) : R :=
  IZR (Z.of_nat j * Z.of_nat j + 2 * Z.of_nat j * (Z.of_nat t - Z.of_nat N)) / (2 * (s * s)).

Lemma weight_ratio d z : w (z - d) = w z * exp (- ((d * d - 2 * d * z) / (2 * (s * s)))).
Proof. unfold gaussian_weight; rewrite <- exp_plus; f_equal; field; lra. Qed.

Theorem cells_by_losses (m m' : Z) j N cuts a b :
  ascending m_infty cuts -> Z.abs (m - m') = Z.of_nat j -> 0 <= a -> 0 <= b ->
  excess (cells m_infty cuts) (rounded_discrete m s) (rounded_discrete m' s) a b
    <= (total (seq 0 (2 * N + 1)) (fun t =>
          w (IZR (Z.of_nat t - Z.of_nat N)) * plus_part (a - b * exp (- loss_at j N t)))
        + 2 * outside N * a) / all_weights s 0.
Proof.
  intros Up D Ha Hb; eapply Rle_trans; [apply (cells_by_masses m m' N cuts a b Up Ha Hb)|].
  pose proof (weights_pos s s_positive 0) as W.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, W|]; apply Rplus_le_compat_r; right.
  assert (Term : forall x d l, w x = w (IZR l) -> d * x = - IZR (Z.of_nat j * l) ->
            d * d = IZR (Z.of_nat j * Z.of_nat j) ->
            plus_part (a * w x - b * w (x - d))
            = w (IZR l) * plus_part (a - b * exp (- (IZR (Z.of_nat j * Z.of_nat j + 2 * (Z.of_nat j * l))
                                                      / (2 * (s * s)))))).
  { intros x d l E1 E2 E3; rewrite weight_ratio, E1, <- plus_part_scal by (left; apply weight_pos).
    f_equal; rewrite plus_IZR, (mult_IZR 2), <- E3.
    replace (d * d - 2 * d * x) with (d * d + 2 * IZR (Z.of_nat j * l)) by (rewrite Rmult_assoc, E2; ring).
    ring. }
  destruct (Z_le_dec m m') as [Le|Gt].
  - rewrite total_reversed; apply total_ext; intros t I; apply in_seq in I; unfold loss_at.
    set (l := (Z.of_nat t - Z.of_nat N)%Z).
    replace (m - Z.of_nat N + Z.of_nat (2 * N + 1 - S t))%Z with (m - l)%Z by (unfold l; lia).
    replace (IZR (m - l) - IZR m) with (- IZR l) by (rewrite minus_IZR; ring).
    replace (IZR (m - l) - IZR m') with (- IZR l - IZR (Z.of_nat j))
      by (rewrite <- D, Z.abs_neq, opp_IZR, !minus_IZR by lia; ring).
    rewrite <- Z.mul_assoc; apply Term; [apply weight_opp|rewrite mult_IZR; ring|apply eq_sym, mult_IZR].
  - apply total_ext; intros t I; apply in_seq in I; unfold loss_at; set (l := (Z.of_nat t - Z.of_nat N)%Z).
    replace (m - Z.of_nat N + Z.of_nat t)%Z with (m + l)%Z by (unfold l; lia).
    replace (IZR (m + l) - IZR m) with (IZR l) by (rewrite plus_IZR; ring).
    replace (IZR (m + l) - IZR m') with (IZR l - - IZR (Z.of_nat j))
      by (rewrite <- D, Z.abs_eq, plus_IZR, minus_IZR by lia; ring).
    rewrite <- Z.mul_assoc; apply Term; [reflexivity|rewrite mult_IZR; ring|rewrite mult_IZR; ring].
Qed.

(** Weights fall by exp(-1 / (2 s^2)) at least. *)
Lemma outside_below N :
  outside N * (1 - exp (- / (2 * (s * s)))) <= w (INR (S N)).
Proof.
  set (q := exp (- / (2 * (s * s)))).
  assert (R : 0 < / (2 * (s * s))) by (apply Rinv_0_lt_compat; nra).
  assert (Q : 0 < q < 1)
    by (split; [apply exp_pos|unfold q; rewrite <- exp_0; apply exp_increasing; lra]).
  assert (Fall : forall n, w (INR (S n)) <= q * w (INR n)).
  { intros n; unfold gaussian_weight, q; rewrite <- exp_plus; apply exp_le; rewrite S_INR.
    pose proof (pos_INR n); unfold Rdiv; nra. }
  enough (L : outside N <= w (INR (S N)) / (1 - q)).
  { apply (Rmult_le_compat_r (1 - q)) in L; [|lra]; eapply Rle_trans; [exact L|right; field; lra]. }
  apply (below_limit s s_positive); intros k; generalize (S N) as n; clear N.
  induction k as [|k IH]; intros n; unfold partial in *.
  - simpl; apply Rmult_le_pos; [left; apply weight_pos|left; apply Rinv_0_lt_compat; lra].
  - cbn [seq total]; rewrite Rminus_0_r, weight_opp, <- seq_shift, total_map.
    specialize (IH (S n)).
    rewrite (total_ext (seq 0 k) _ (fun i => w (- INR (S n) - INR i)))
      by (intros; f_equal; rewrite !S_INR; ring).
    assert (w (INR (S n)) / (1 - q) <= q * w (INR n) / (1 - q))
      by (apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|apply Fall]).
    replace (w (INR n) / (1 - q)) with (w (INR n) + q * w (INR n) / (1 - q)) by (field; lra); lra.
Qed.

End Cells.

(** ** Vectors *)

(** A loss that bounds noise on numbers that are [j] apart, on any grid. *)
Definition shift_bounded (s : R) (j : nat) (L : loss) : Prop :=
  proper L /\
  forall cuts m m', ascending m_infty cuts -> Z.abs (m - m') = Z.of_nat j ->
  below_profile (cells m_infty cuts) (rounded_discrete m s) (rounded_discrete m' s) (profile L).

Lemma shift_covers s j L : 0 < s -> shift_bounded s j L -> covers L.
Proof.
  intros Hs [_ B] a b Ha Hb; specialize (B [] 0%Z (Z.of_nat j) Logic.I ltac:(lia) a b Ha Hb).
  assert (One : forall m : Z, rounded_discrete m s (m_infty, p_infty) = 1).
  { intros m; unfold rounded_discrete, increment; cbn [fst snd weights_up_to].
    pose proof (weights_pos s Hs (IZR m)); field; lra. }
  unfold excess in B; cbn [cells total] in B; rewrite !One in B.
  replace (a * 1 - b * 1) with (a - b) in B by ring; lra.
Qed.

(** How far each of the first [d] coordinates moves that moves at all. *)
Fixpoint moves (u v : nat -> Z) (d : nat) : list nat :=
  match d with
  | O => []
  | S d' => let j := Z.abs_nat (u d' - v d') in
            match j with O => moves u v d' | _ => j :: moves u v d' end
  end.

Definition squares_total (l : list nat) : nat := fold_right (fun j n => j * j + n)%nat O l.

Lemma moves_squares u v d :
  INR (squares_total (moves u v d)) = total (seq 0 d) (fun i => (IZR (u i) - IZR (v i)) * (IZR (u i) - IZR (v i))).
Proof.
  induction d as [|d IH]; [reflexivity|]; rewrite total_seq_S, <- IH.
  replace (moves u v (S d)) with (match Z.abs_nat (u d - v d) with
    O => moves u v d | _ => Z.abs_nat (u d - v d) :: moves u v d end) by reflexivity.
  assert (E : (IZR (u d) - IZR (v d)) * (IZR (u d) - IZR (v d))
              = INR (Z.abs_nat (u d - v d) * Z.abs_nat (u d - v d))).
  { rewrite mult_INR, !INR_IZR_INZ, Zabs2Nat.id_abs, <- mult_IZR, <- Z.abs_mul, Z.abs_eq
      by apply Z.square_nonneg; rewrite mult_IZR, minus_IZR; reflexivity. }
  rewrite E; destruct (Z.abs_nat (u d - v d)) as [|j]; cbn [squares_total fold_right].
  - simpl; ring.
  - rewrite plus_INR; unfold squares_total; ring.
Qed.

Lemma moves_positive u v d j : In j (moves u v d) -> (0 < j)%nat.
Proof.
  induction d as [|d IH]; [intros []|]; cbn [moves]; destruct (Z.abs_nat (u d - v d)); [exact IH|].
  intros [<-|I]; [lia|apply IH, I].
Qed.

Theorem vector_by_shifts (s : R) (d : nat) (cuts : list (Rbar * Rbar) -> list R) (u v : nat -> Z)
  (K : nat -> loss) :
  0 < s -> (forall h, ascending m_infty (cuts h)) -> (forall j, (0 < j)%nat -> shift_bounded s j (K j)) ->
  below_profile (transcripts (fun h => cells m_infty (cuts h)) d)
    (discrete_gaussian_vector (fun x => x) s u) (discrete_gaussian_vector (fun x => x) s v)
    (profile (all_of K (moves u v d))).
Proof.
  intros Hs Up HK; unfold discrete_gaussian_vector; induction d as [|d IH]; intros a b Ha Hb.
  - cbn [moves all_of]; rewrite profile_nothing; unfold excess; cbn [transcripts total run].
    replace (a * 1 - b * 1) with (a - b) by ring; lra.
  - rewrite excess_transcripts_S.
    assert (Laws : forall (x : nat -> Z) h, distribution (cells m_infty (cuts h)) (rounded_discrete (x (length h)) s))
      by (intros; apply rounded_discrete_distribution; auto).
    pose proof (run_distribution _ _ d (Laws u)) as Du; pose proof (run_distribution _ _ d (Laws v)) as Dv.
    assert (Known : forall l, (forall j, In j l -> (0 < j)%nat) -> proper (all_of K l) /\ covers (all_of K l)).
    { intros l P; split; [apply all_of_proper|apply covers_all_of]; intros j I; specialize (HK j (P j I));
        [apply HK|split; [apply HK|apply (shift_covers s j); assumption]]. }
    destruct (Known _ (moves_positive u v d)) as [Pm Cm].
    cbn [moves]; destruct (Z.abs_nat (u d - v d)) as [|j] eqn:E.
    + assert (Same : u d = v d) by lia.
      eapply Rle_trans; [|apply (IH a b Ha Hb)]; unfold excess at 2; right.
      apply total_ext; intros h I; pose proof (transcripts_length _ _ _ I) as L; rewrite L, Same.
      destruct Du as [Nu _], Dv as [Nv _]; specialize (Nu h I); specialize (Nv h I); cbv beta in Nu, Nv.
      rewrite <- (L) in Same |- *; rewrite <- Same.
      apply excess_diag, Laws.
    + assert (Pj : (0 < S j)%nat) by lia; destruct (HK (S j) Pj) as [Pk Bk].
      apply Rle_trans with (total (transcripts (fun h => cells m_infty (cuts h)) d) (fun h =>
        profile (K (S j)) (a * run (fun h => rounded_discrete (u (length h)) s) h)
                          (b * run (fun h => rounded_discrete (v (length h)) s) h))).
      * apply total_le; intros h I; pose proof (transcripts_length _ _ _ I) as L; rewrite L.
        apply Bk; [apply Up|lia|apply Rmult_le_pos; [exact Ha|apply Du, I]|].
        apply Rmult_le_pos; [exact Hb|apply Dv, I].
      * cbn [all_of]; rewrite profile_both_comm.
        apply loss_step; try assumption; [apply Dv|apply covers_mass, Cm].
Qed.

(** Two laws no further apart than noise on vectors of whole numbers that move by [n] in squares. *)
Definition moved_by (s : R) (n : nat) {A} (l : list A) (P Q : A -> R) : Prop :=
  exists v, (forall j, In j v -> (0 < j)%nat) /\ (squares_total v <= n)%nat /\
  forall K : nat -> loss, (forall j, (0 < j)%nat -> shift_bounded s j (K j)) ->
  below_profile l P Q (profile (all_of K v)).

Theorem vector_moved_by (s : R) (d n : nat) (cuts : list (Rbar * Rbar) -> list R) (u v : nat -> Z) :
  0 < s -> (forall h, ascending m_infty (cuts h)) ->
  total (seq 0 d) (fun i => (IZR (u i) - IZR (v i)) * (IZR (u i) - IZR (v i))) <= INR n ->
  moved_by s n (transcripts (fun h => cells m_infty (cuts h)) d)
    (discrete_gaussian_vector (fun x => x) s u) (discrete_gaussian_vector (fun x => x) s v).
Proof.
  intros Hs Up Near; exists (moves u v d); split; [apply moves_positive|split].
  - apply INR_le; rewrite moves_squares; exact Near.
  - intros K HK; apply vector_by_shifts; assumption.
Qed.

Lemma moved_by_nothing s n : moved_by s n [tt] (fun _ => 1) (fun _ => 1).
Proof.
  exists []; split; [intros j []|split; [simpl; lia|]]; intros K _ a b Ha Hb.
  cbn [all_of]; rewrite profile_nothing; unfold excess; cbn [total].
  replace (a * 1 - b * 1) with (a - b) by ring; lra.
Qed.
