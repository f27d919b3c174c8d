(** Discrete Laplace noise: whole numbers that are up to e^(1/b) less likely a step. Pure DP of a
    vector in l1, rounded to any grid. *)

From Coq Require Import Reals List Lra Lia Psatz ZArith.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian Pure.
Import ListNotations.
Open Scope R_scope.

(** ** Discrete Laplace noise *)

(** The probability that noise of scale 1/s on whole numbers is at most n (masses fall by e^-s a
    step). *)
Definition geometric_cdf (s : R) (n : Z) : R :=
  if Z_lt_dec n 0 then exp (s * IZR n) / (1 + exp (- s))
  else 1 - exp (- s * (IZR n + 1)) / (1 + exp (- s)).

(** The probability of n. *)
Definition geometric_mass (s : R) (n : Z) : R :=
  (1 - exp (- s)) / (1 + exp (- s)) * exp (- s * IZR (Z.abs n)).

Section Geometric.

Variable s : R.
Hypothesis s_positive : 0 < s.

Lemma geometric_decay : 0 < exp (- s) < 1.
Proof. split; [apply exp_pos|]; rewrite <- exp_0; apply exp_increasing; lra. Qed.

Lemma geometric_step n :
  geometric_cdf s n - geometric_cdf s (n - 1) = geometric_mass s n.
Proof.
  pose proof geometric_decay as D; unfold geometric_cdf, geometric_mass.
  destruct (Z_lt_dec n 0) as [N|N]; destruct (Z_lt_dec (n - 1) 0) as [M|M]; try lia.
  - rewrite Z.abs_neq, opp_IZR, minus_IZR by lia.
    replace (s * (IZR n - 1)) with (s * IZR n + - s) by ring.
    replace (- s * - IZR n) with (s * IZR n) by ring; rewrite exp_plus; field; lra.
  - replace n with 0%Z by lia; simpl.
    replace (- s * (0 + 1)) with (- s) by ring; replace (s * -1) with (- s) by ring.
    replace (- s * 0) with 0 by ring; rewrite exp_0; field; lra.
  - rewrite Z.abs_eq, minus_IZR by lia.
    replace (- s * (IZR n + 1)) with (- s * IZR n + - s) by ring.
    replace (- s * (IZR n - 1 + 1)) with (- s * IZR n) by ring; rewrite exp_plus; field; lra.
Qed.

Lemma geometric_symmetric n : geometric_cdf s (- n - 1) = 1 - geometric_cdf s n.
Proof.
  unfold geometric_cdf.
  destruct (Z_lt_dec n 0) as [N|N]; destruct (Z_lt_dec (- n - 1) 0) as [M|M]; try lia.
  - rewrite minus_IZR, opp_IZR; replace (- s * (- IZR n - 1 + 1)) with (s * IZR n) by ring; ring.
  - rewrite minus_IZR, opp_IZR; replace (s * (- IZR n - 1)) with (- s * (IZR n + 1)) by ring; ring.
Qed.

Lemma geometric_mass_moved n d :
  0 <= geometric_mass s (n - d) <= exp (s * IZR (Z.abs d)) * geometric_mass s n.
Proof.
  pose proof geometric_decay as D; unfold geometric_mass.
  assert (C : 0 <= (1 - exp (- s)) / (1 + exp (- s)))
    by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  set (c := (1 - exp (- s)) / (1 + exp (- s))) in *; split.
  - apply Rmult_le_pos; [exact C|left; apply exp_pos].
  - replace (exp (s * IZR (Z.abs d)) * (c * exp (- s * IZR (Z.abs n))))
      with (c * exp (s * (IZR (Z.abs d) - IZR (Z.abs n))))
      by (rewrite (Rmult_comm (exp _) (c * _)), Rmult_assoc, <- exp_plus; do 2 f_equal; ring).
    apply Rmult_le_compat_l; [exact C|]; apply exp_le.
    assert (Z.abs n - Z.abs (n - d) <= Z.abs d)%Z as T by lia.
    apply IZR_le in T; rewrite minus_IZR in T; nra.
Qed.

Lemma geometric_pos n : 0 <= geometric_cdf s n.
Proof.
  pose proof geometric_decay as D; unfold geometric_cdf.
  assert (P : 0 < / (1 + exp (- s)) <= 1).
  { split; [apply Rinv_0_lt_compat; lra|].
    rewrite <- Rinv_1; apply Rinv_le_contravar; lra. }
  destruct (Z_lt_dec n 0) as [N|N].
  - apply Rmult_le_pos; [left; apply exp_pos|lra].
  - assert (0 <= n)%Z as N' by lia; apply IZR_le in N'.
    pose proof (exp_le (- s * (IZR n + 1)) 0 ltac:(nra)) as E; rewrite exp_0 in E.
    pose proof (exp_pos (- s * (IZR n + 1))); unfold Rdiv; nra.
Qed.

(** Moved by d, a range is at most e^(s |d|) times as likely; so are the ends. *)
Lemma geometric_range d n k :
  0 <= geometric_cdf s (n + Z.of_nat k - d) - geometric_cdf s (n - d)
    <= exp (s * IZR (Z.abs d)) * (geometric_cdf s (n + Z.of_nat k) - geometric_cdf s n).
Proof.
  induction k as [|k IH].
  - simpl; rewrite Z.add_0_r; rewrite !Rminus_diag_eq by reflexivity; lra.
  - rewrite Nat2Z.inj_succ.
    pose proof (geometric_step (n + Z.succ (Z.of_nat k) - d)) as A.
    pose proof (geometric_step (n + Z.succ (Z.of_nat k))) as B.
    pose proof (geometric_mass_moved (n + Z.succ (Z.of_nat k)) d) as M.
    replace (n + Z.succ (Z.of_nat k) - d - 1)%Z with (n + Z.of_nat k - d)%Z in A by lia.
    replace (n + Z.succ (Z.of_nat k) - 1)%Z with (n + Z.of_nat k)%Z in B by lia.
    rewrite <- A, <- B in M; lra.
Qed.

Lemma geometric_low d n : geometric_cdf s (n - d) <= exp (s * IZR (Z.abs d)) * geometric_cdf s n.
Proof.
  pose proof geometric_decay as D; pose proof (geometric_pos n) as P.
  assert (Low : forall m, (m < 0)%Z -> (m - d < 0)%Z ->
            geometric_cdf s (m - d) <= exp (s * IZR (Z.abs d)) * geometric_cdf s m).
  { intros m N N'; unfold geometric_cdf.
    destruct (Z_lt_dec m 0); [|lia]; destruct (Z_lt_dec (m - d) 0); [|lia].
    unfold Rdiv; rewrite <- Rmult_assoc, <- exp_plus.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|]; apply exp_le.
    assert (m - d <= Z.abs d + m)%Z as T by lia; apply IZR_le in T.
    rewrite minus_IZR in *; rewrite plus_IZR in T; nra. }
  set (k := Z.to_nat (Z.abs n + Z.abs d + 1)).
  pose proof (geometric_range d (n - Z.of_nat k) k) as R.
  replace (n - Z.of_nat k + Z.of_nat k)%Z with n in R by lia.
  specialize (Low (n - Z.of_nat k)%Z ltac:(lia) ltac:(lia)); lra.
Qed.

Lemma geometric_high d n :
  1 - geometric_cdf s (n - d) <= exp (s * IZR (Z.abs d)) * (1 - geometric_cdf s n).
Proof.
  rewrite <- !geometric_symmetric.
  replace (- (n - d) - 1)%Z with (- n - 1 - - d)%Z by lia.
  rewrite <- (Z.abs_opp d); apply geometric_low.
Qed.

End Geometric.

(** Noise of scale b on the whole number m, rounded to any grid: up to a point the whole numbers
    that are at most there. *)
Definition whole_below (m : Z) (b : R) (t : Rbar) : R :=
  match t with
  | Finite x => geometric_cdf (/ b) (Int_part x - m)
  | p_infty => 1
  | m_infty => 0
  end.
Definition rounded_geometric (m : Z) (b : R) : Rbar * Rbar -> R := increment (whole_below m b).

Lemma int_part_le x y : x <= y -> (Int_part x <= Int_part y)%Z.
Proof.
  intros Le; destruct (base_Int_part x) as [X _]; destruct (base_Int_part y) as [_ Y].
  assert (Near : IZR (Int_part x) < IZR (Int_part y) + 1) by lra.
  rewrite <- plus_IZR in Near; apply lt_IZR in Near; lia.
Qed.

Lemma rounded_geometric_moved m m' b c :
  0 < b -> Rbar_le (fst c) (snd c) ->
  0 <= rounded_geometric m b c
    <= exp (IZR (Z.abs (m - m')) / b) * rounded_geometric m' b c.
Proof.
  intros B Le; assert (S : 0 < / b) by (apply Rinv_0_lt_compat, B).
  pose proof (geometric_range (/ b) S) as Range; pose proof (geometric_low (/ b) S) as Low.
  pose proof (geometric_high (/ b) S) as High; pose proof (geometric_pos (/ b) S) as Pos.
  unfold Rdiv; rewrite (Rmult_comm _ (/ b)).
  assert (E : forall x, (Int_part x - m)%Z = (Int_part x - m' - (m - m'))%Z) by (intros; lia).
  unfold rounded_geometric, increment; destruct c as [lo hi]; cbn [fst snd] in *.
  pose proof (exp_le 0 (/ b * IZR (Z.abs (m - m')))) as One; rewrite exp_0 in One.
  assert (Abs : 0 <= IZR (Z.abs (m - m'))) by (apply IZR_le; lia).
  specialize (One ltac:(nra)).
  destruct lo as [t| |], hi as [u| |]; simpl in Le |- *; try contradiction; rewrite ?E; try lra.
  - specialize (Range (m - m')%Z (Int_part t - m')%Z (Z.to_nat (Int_part u - Int_part t))).
    apply int_part_le in Le.
    replace (Int_part t - m' + Z.of_nat (Z.to_nat (Int_part u - Int_part t)))%Z
      with (Int_part u - m')%Z in Range by lia; exact Range.
  - split; [|apply High].
    rewrite <- geometric_symmetric by exact S; apply Pos.
  - rewrite !Rminus_0_r; split; [apply Pos|apply Low].
Qed.

(** Fresh noise on every coordinate of [q x], each rounded to a grid of its own. *)
Definition geometric_vector {D} (q : D -> nat -> Z) (b : R) (x : D) : list (Rbar * Rbar) -> R :=
  run (fun h => rounded_geometric (q x (length h)) b).

Lemma geometric_vector_distribution {D} (q : D -> nat -> Z) b d
  (cuts : list (Rbar * Rbar) -> list R) x :
  0 < b -> (forall h, ascending m_infty (cuts h)) ->
  distribution (transcripts (fun h => cells m_infty (cuts h)) d) (geometric_vector q b x).
Proof.
  intros B Up; apply run_distribution; intros h; split.
  - intros c I; apply (rounded_geometric_moved _ (q x (length h)) b c B).
    apply (cells_ordered m_infty (cuts h) c (Up h) I).
  - unfold rounded_geometric; rewrite cells_total; simpl; ring.
Qed.

(** A vector of d whole numbers that move by at most Delta in l1, each coordinate rounded to a grid
    of its own: Delta / b (Ghosh, Roughgarden and Sundararajan 2012). *)
Theorem vector_geometric_pure {D} (adj : D -> D -> Prop) (q : D -> nat -> Z) b Delta d
  (cuts : list (Rbar * Rbar) -> list R) :
  0 < b -> (forall h, ascending m_infty (cuts h)) ->
  (forall x y, adj x y -> total (seq 0 d) (fun i => IZR (Z.abs (q x i - q y i))) <= Delta) ->
  pure adj (transcripts (fun h => cells m_infty (cuts h)) d) (geometric_vector q b) (Delta / b).
Proof.
  intros B Up Moves x y N h I.
  set (cost := fun h : list (Rbar * Rbar) => IZR (Z.abs (q x (length h) - q y (length h))) / b).
  apply (pure_filter (fun u v => u = x /\ v = y) (fun h => cells m_infty (cuts h))
           (fun u h => rounded_geometric (q u (length h)) b) cost) with (T := d);
    [| | |auto|exact I].
  - intros u h' c J; apply (rounded_geometric_moved _ (q u (length h')) b c B).
    apply (cells_ordered m_infty (cuts h') c (Up h') J).
  - intros h' u v [-> ->] c J; apply rounded_geometric_moved; [exact B|].
    apply (cells_ordered m_infty (cuts h') c (Up h') J).
  - assert (Spent : forall T h, length h = T ->
              spent cost h = total (seq 0 T) (fun i => IZR (Z.abs (q x i - q y i))) / b).
    { clear; intros T h <-; induction h as [|c h IH]; [simpl; unfold Rdiv; ring|].
      cbn [spent length]; rewrite IH, seq_S, total_app; unfold cost; simpl; unfold Rdiv; ring. }
    intros h' J; rewrite (Spent d h' (transcripts_length _ _ _ J)).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, B|apply Moves, N].
Qed.
