(** The loss of a Gaussian step on a Poisson sample for several records at once, in whole numbers: how
    likely it is that so many of them take part, the profile of the step on as many more, and thresholds
    of these that the program picks. *)

From Coq Require Import Reals QArith Qreals List ZArith Lra Lia.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta Domination
  GaussianConvolution GaussianComposition BatchSampling CopiesSampling GroupSampling Losses LossLists
  Enclosure LossEnclosures FixedPoint FixedGaussian SampledLoss ReplacedLoss CopiesLoss.
Import ListNotations.
Open Scope R_scope.

(** With the records against without them, at a loss whose exp is [low] at least; [none] and [most] are
    below and above the probability that none takes part, [rest] above that of numbers that are not in
    the list. Where none takes part the threshold is one, where the mean of all others leaves as much;
    all tests end in one point. *)
Definition gathered_above (p none most rest : Z) (cs : list copy) (low high : Z) : option Z :=
  let target := (low - most)%Z in
  let thresholds := shares_at p (best_point p 0 target cs) 0 (2 ^ p) cs in
  if ((0 <? target) && (shares_spent p cs thresholds <=? target))%Z%bool then
    match height_of p 0 cs thresholds with
    | Some f => Some (f + rest)%Z
    | None => None
    end
  else Some (2 ^ p - below p none (Z.max 0 (Z.min (2 ^ p) (low * 2 ^ p / most))))%Z.

(** Of a step whose (sensitivity / noise)^2 is [m], in both orders. *)
Definition gathered_losses (w bits : Z) (m : Q) (group : positive) (rate step : Q) (dense tail : Z) :
  option (whole_loss * whole_loss) :=
  match copies_likely w bits m group rate tail with
  | Some (none, most, cs, rest) =>
      both_losses w bits (gathered_above (w + bits + guard) none most rest cs) step dense tail
  | None => None
  end.

Section Above.

Variables (p : Z) (m : Q) (group : positive) (r : R).
Hypotheses (Hp : (0 <= p)%Z) (Hm : 0 < Q2R m) (Hr : 0 < r < 1).

Notation fixed n := (IZR n / unit_of p).
Notation n := (Pos.to_nat group).
Notation mu := (sqrt (Q2R m)).

Theorem gathered_above_sound none most rest cs low high f y :
  0 < y -> fixed low <= y -> (0 <= none)%Z -> fixed none <= chance r n 0 <= fixed most ->
  all_fit p m group r 1 cs -> (length cs <= n)%nat ->
  1 - total (seq 0 (S (length cs))) (chance r n) <= fixed rest ->
  gathered_above p none most rest cs low high = Some f ->
  exists c, (forall j, 0 <= c j) /\ drawn_mean r n c <= y /\
    drawn_mean r n (fun j => gaussian_profile (INR j * mu) 1 (c j)) <= fixed f.
Proof.
  intros Hy Hlow Pnone [Hnone Hmost] Fit Len Rest; unfold gathered_above; cbv zeta.
  pose proof (unit_pos p Hp) as Pu; assert (Iu : 0 < / unit_of p) by (apply Rinv_0_lt_compat, Pu).
  pose proof (sqrt_lt_R0 _ Hm) as Pm.
  assert (Cn : 0 < chance r n 0) by (rewrite chance_none; apply pow_lt; lra).
  assert (Split : forall g, drawn_mean r n g = chance r n 0 * g 0%nat + total (seq 1 n) (fun j => chance r n j * g j))
    by (intros g; rewrite drawn_mean_chances; reflexivity).
  assert (All : chance r n 0 + total (seq 1 n) (chance r n) = 1) by apply (chances_sum r n).
  set (ts := shares_at p _ 0 (2 ^ p) cs).
  destruct (_ && _)%bool eqn:G.
  - apply andb_true_iff in G as [_ G]; apply Z.leb_le in G.
    destruct (height_of p 0 cs ts) as [g|] eqn:Eg; [|discriminate]; intros E; injection E as <-.
    pose proof (shares_nonneg p (best_point p 0 (low - most) cs) 0 cs (2 ^ p)) as Nn; fold ts in Nn.
    pose proof (shares_length p (best_point p 0 (low - most) cs) 0 cs (2 ^ p)) as Lts; fold ts in Lts.
    clearbody ts.
    set (t := fun k => fixed (nth (k - 1) ts 0%Z)).
    assert (Ht : forall k, 0 <= t k).
    { intros k; apply fixed_nonneg; [exact Hp|]; destruct (Nat.lt_ge_cases (k - 1) (length ts)) as [L|L].
      - rewrite Forall_forall in Nn; apply Nn, nth_In, L.
      - rewrite nth_overflow by exact L; lia. }
    assert (Two : forall g, total (seq 1 n) g = total (seq 1 (length cs)) g
                      + total (seq (S (length cs)) (n - length cs)) g).
    { intros g'; rewrite <- total_app, <- seq_app; do 2 f_equal; lia. }
    exists (fun j => match j with O => 1 | S _ => t j end); split; [intros [|j]; [lra|apply Ht]|].
    assert (Tail : forall g, total (seq 1 n) (fun j => chance r n j * g match j with O => 1 | S _ => t j end j)
                       = total (seq 1 n) (fun j => chance r n j * g (t j) j)).
    { intros g'; apply total_ext; intros [|j] I; [apply in_seq in I; lia|reflexivity]. }
    split.
    + rewrite Split, (Tail (fun c _ => c)), Two.
      replace (total (seq (S (length cs)) _) (fun k => chance r n k * t k)) with 0.
      2:{ symmetry; apply total_zero; intros k I; apply in_seq in I; unfold t.
          rewrite nth_overflow by lia; unfold Rdiv; ring. }
      pose proof (shares_spent_sound p Hp m group r cs 1 ts Fit Nn) as Spent; fold t in Spent.
      apply IZR_le in G; rewrite minus_IZR in G; apply (Rmult_le_compat_r (/ unit_of p)) in G; [|lra].
      assert (Diff : (IZR low - IZR most) * / unit_of p = fixed low - fixed most) by (unfold Rdiv; ring).
      assert (total (seq 1 (length cs)) (fun k => chance r n k * t k) <= fixed low - fixed most)
        by (rewrite <- Diff; exact (Rle_trans _ _ _ Spent G)).
      lra.
    + rewrite Split, (Tail (fun c j => gaussian_profile (INR j * mu) 1 c)), Two, fixed_plus by exact Hp.
      simpl INR; rewrite Rmult_0_l, profile_zero, Rminus_diag_eq, plus_part_0, Rmult_0_r, Rplus_0_l by lra.
      apply Rplus_le_compat.
      * pose proof (height_of_sound p Hp m group r Hm Hr 0 0 cs ltac:(unfold Rdiv; lra) ltac:(lra) 1 ts g
                      ltac:(lia) Fit Nn Eg) as Hg.
        eapply Rle_trans; [|exact Hg]; right; apply total_ext; intros j _; rewrite Rplus_0_l; reflexivity.
      * apply Rle_trans with (2 := Rest).
        apply Rle_trans with (total (seq (S (length cs)) (n - length cs)) (chance r n)).
        -- apply total_le; intros k I; apply in_seq in I; rewrite <- (Rmult_1_r (chance r n k)) at 2.
           apply Rmult_le_compat_l; [apply chance_nonneg; lra|].
           apply profile_at_most_one; [|apply Ht]; apply Rmult_lt_0_compat; [apply lt_0_INR; lia|exact Pm].
        -- rewrite Two in All; change (seq 0 (S (length cs))) with (0%nat :: seq 1 (length cs)).
           cbn [total]; lra.
  - clear G; clearbody ts; intros E; injection E as <-; set (c0 := Z.max 0 _).
    assert (Hmost0 : (0 < most)%Z).
    { apply lt_IZR; apply Rmult_lt_reg_r with (1 := Iu); unfold Rdiv in Hmost; lra. }
    assert (C : 0 <= fixed c0 <= 1 /\ fixed most * fixed c0 <= y).
    { split; [split|].
      - apply fixed_nonneg; [exact Hp|unfold c0; lia].
      - rewrite <- (fixed_one p Hp); apply Rmult_le_compat_r; [lra|apply IZR_le; unfold c0].
        pose proof (Z.pow_nonneg 2 p); lia.
      - destruct (Z.le_gt_cases low 0) as [L|L].
        + replace c0 with 0%Z; [unfold Rdiv; lra|]; unfold c0.
          assert (low * 2 ^ p / most <= 0)%Z; [|lia].
          apply Z.div_le_upper_bound; [lia|]; pose proof (Z.pow_nonneg 2 p); nia.
        + assert (c0 <= low * 2 ^ p / most)%Z.
          { unfold c0; assert (0 <= low * 2 ^ p / most)%Z; [|lia].
            apply Z.div_pos; [pose proof (Z.pow_nonneg 2 p); nia|lia]. }
          apply Rle_trans with (2 := Hlow).
          pose proof (round_down_le (low * 2 ^ p) most Hmost0) as D; apply IZR_le in H.
          pose proof (Rle_trans _ _ _ H D) as D'; rewrite mult_IZR in D'; fold (unit_of p) in D'.
          apply IZR_lt in Hmost0; unfold Rdiv in *.
          apply (Rmult_le_compat_l (IZR most * / unit_of p * / unit_of p)) in D';
            [|repeat apply Rmult_le_pos; lra].
          eapply Rle_trans; [right|eapply Rle_trans; [exact D'|right]]; field; lra. }
    destruct C as [C0 C1].
    exists (fun j => match j with O => fixed c0 | S _ => 0 end); split; [intros [|j]; lra|].
    split; rewrite Split.
    + rewrite total_zero by (intros [|j] I; [apply in_seq in I; lia|ring]); rewrite Rplus_0_r.
      apply Rle_trans with (2 := C1), Rmult_le_compat_r; lra.
    + simpl INR; rewrite Rmult_0_l, profile_zero, plus_part_id by lra.
      rewrite (total_ext (seq 1 n) _ (chance r n)).
      * rewrite fixed_minus, fixed_one by exact Hp.
        pose proof (below_le p Hp none c0) as B.
        assert (fixed none * fixed c0 <= chance r n 0 * fixed c0) by (apply Rmult_le_compat_r; lra).
        replace (total (seq 1 n) (chance r n)) with (1 - chance r n 0) by lra.
        lra.
      * intros [|j] I; [apply in_seq in I; lia|]; rewrite profile_b0 by lra; ring.
Qed.

End Above.

(** Of two laws, how far apart several records of a sample bring them: at any thresholds. *)
Definition gathered (r mu : R) (k : nat) {A} (l : list A) (p q : A -> R) : Prop :=
  forall y c, 0 < y -> (forall j, 0 <= c j) -> drawn_mean r k c <= y ->
  excess l p q 1 y <= drawn_mean r k (fun j => gaussian_profile (INR j * mu) 1 (c j)).

Lemma gathered_diag r mu k {A} (l : list A) p : 0 <= r <= 1 -> distribution l p -> gathered r mu k l p p.
Proof.
  intros Hr Dp y c Hy Hc Within; rewrite excess_diag by (try exact Dp; lra).
  rewrite drawn_mean_chances in *.
  assert (Each : forall j, plus_part (1 - c j) <= gaussian_profile (INR j * mu) 1 (c j))
    by (intros; apply profile_ge; [lra|apply Hc]).
  assert (P : forall j, 0 <= chance r k j) by (intros; apply chance_nonneg, Hr).
  unfold plus_part at 1; apply Rmax_lub.
  - apply total_nonneg; intros j _; apply Rmult_le_pos; [apply P|].
    eapply Rle_trans; [apply plus_part_nonneg|apply Each].
  - apply Rle_trans with (total (seq 0 (S k)) (fun j => chance r k j - chance r k j * c j)).
    + rewrite total_minus, chances_sum; lra.
    + apply total_le; intros j _; specialize (Each j); pose proof (plus_part_ge (1 - c j)); pose proof (P j); nra.
Qed.

Theorem gathered_losses_sound w bits m group rate step dense tail L L' :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R m -> 0 < Q2R rate < 1 -> 0 < Q2R step ->
  gathered_losses w bits m group rate step dense tail = Some (L, L') ->
  forall A (l : list A) p q, distribution l p -> distribution l q ->
  let near u v := gathered (Q2R rate) (sqrt (Q2R m)) (Pos.to_nat group) l u v in
  (near p q -> sound_list L /\ below_profile l p q (profile (stands_for (Q2R step) (unit_of w) L))) /\
  (near q p -> sound_list L' /\ below_profile l p q (profile (stands_for (Q2R step) (unit_of w) L'))).
Proof.
  intros Hw Hbits Hm Hr Hstep; unfold gathered_losses.
  destruct (copies_likely _ _ _ _ _ _) as [[[[none most] cs] rest]|] eqn:Ecs; [|discriminate].
  intros E A l p q Dp Dq; cbv zeta.
  assert (Hp : (0 <= w + bits + guard)%Z) by (pose proof guard_nonneg; lia).
  apply (copies_likely_sound w bits m group rate Hw Hbits Hm Hr) in Ecs as (L0 & Between & Fit & Len & Rest).
  assert (Sound : forall u v, gathered (Q2R rate) (sqrt (Q2R m)) (Pos.to_nat group) l u v ->
            forall low high n y, 0 < y ->
            IZR low / unit_of (w + bits + guard) <= y <= IZR high / unit_of (w + bits + guard) ->
            gathered_above (w + bits + guard) none most rest cs low high = Some n ->
            excess l u v 1 y <= IZR n / unit_of (w + bits + guard)).
  { intros u v Near low high n y Hy [Hlow _] Ea.
    destruct (gathered_above_sound _ m group (Q2R rate) Hp Hm Hr none most rest cs low high n y
                Hy Hlow L0 Between Fit Len Rest Ea) as (c & Hc & Within & Le).
    exact (Rle_trans _ _ _ (Near y c Hy Hc Within) Le). }
  split; intros Near.
  - apply (sided_losses_sound w bits step Hw Hbits Hstep _ _ dense tail L L' (Sound p q Near) E A l p q
             Dp (proj1 Dq) (excess l p q)); [intros a b _ _; lra|intros; lra].
  - apply (sided_losses_sound w bits step Hw Hbits Hstep _ _ dense tail L L' (Sound q p Near) E A l p q
             Dp (proj1 Dq) (excess l p q)); [intros a b _ _; lra|].
    intros y Hy; rewrite (excess_turned l p q 1 (/ y) Dp Dq).
    assert (0 < / y) by (apply Rinv_0_lt_compat, Hy).
    replace (excess l q p (/ y) 1) with (/ y * excess l q p 1 y); [lra|].
    rewrite <- excess_scal by lra; f_equal; field; lra.
Qed.
