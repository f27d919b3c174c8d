(** The loss of discrete Gaussian noise on vectors of whole numbers that move by so much in l2, in whole
    numbers: of each way to move, the losses of its coordinates composed (DiscreteGaussianShift.v); then,
    at dots, the largest profile of any way. *)

From Coquelicot Require Import Coquelicot.
From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia Psatz Permutation.
From Dpledger Require Import Sums Finite Gaussian GaussianWeights DiscreteGaussian Domination
  DiscreteGaussianProfile Losses LossLists LossComposition Enclosure LossEnclosures FixedPoint SampledLoss
  GeometricLoss DiscreteGaussianShift.
Import ListNotations.

(** ** As a program *)

Open Scope Z_scope.

Fixpoint power (p cut : Z) (l : whole_loss) (n : nat) : whole_loss :=
  match n with
  | O => no_loss p
  | S O => trimmed cut l
  | S n' => times p cut l (power p cut l n')
  end.

(** The losses of all ways to move by squares that add up to [n], by [j] at most in each coordinate. *)
Fixpoint ways (p cut : Z) (shift : nat -> whole_loss) (j n : nat) : list whole_loss :=
  match j with
  | O => []
  | S O => [power p cut (shift 1%nat) n]
  | S j' =>
      flat_map (fun k =>
        if Nat.leb (k * (j * j)) n
        then match k with
             | O => ways p cut shift j' n
             | _ => map (times p cut (power p cut (shift j) k)) (ways p cut shift j' (n - k * (j * j)))
             end
        else []) (seq 0 (S n))
  end.

(** Down to the [target]-th place of the lattice: from there on what is left, the mass above, and from
    below the sum of its parts, each times exp(the place's loss - its own); [fall] is below exp(-unit). *)
Fixpoint advance (p fall target k : Z) (rest : list Z) (above shrunk : Z) : Z * list Z * Z * Z :=
  match rest with
  | [] => (k, [], above, shrunk)
  | m :: rest' =>
      if target <? k
      then advance p fall target (k - 1) rest' (above + m) (FixedPoint.below p (shrunk + m) fall)
      else (k, rest, above, shrunk)
  end.

(** Places of another lattice, each with the last one of this lattice below it, and a bound from below on
    exp of how far it is above that. *)
Fixpoint marked (p : Z) (unit step : Q) (places : list Z) : option (list (Z * Z * Z)) :=
  match places with
  | [] => Some []
  | z :: rest =>
      let x := (inject_Z z * step)%Q in
      let target := Qfloor (x / unit) in
      match exp_of_rational p (x - inject_Z target * unit), marked p unit step rest with
      | Some (e, _), Some found => Some ((z, target, e) :: found)
      | _, _ => None
      end
  end.

(** The profile there from above, of what is known at the [k]-th place: below the last one if its own was
    not reached. *)
Definition height_from (p : Z) (unit step : Q) (k above shrunk : Z) (place : Z * Z * Z) : Z :=
  let '(z, target, e) := place in
  if target =? k then above - FixedPoint.below p e shrunk
  else if target <? k then
    match exp_of_rational p (inject_Z z * step - inject_Z k * unit) with
    | Some (e', _) => above - FixedPoint.below p e' shrunk
    | None => above
    end
  else above.

(** At each of these places, descending. *)
Fixpoint profile_at (p fall : Z) (unit step : Q) (k : Z) (rest : list Z) (above shrunk : Z)
  (places : list (Z * Z * Z)) : list Z :=
  match places with
  | [] => []
  | place :: places' =>
      let '(k', rest', above', shrunk') := advance p fall (snd (fst place)) k rest above shrunk in
      height_from p unit step k' above' shrunk' place
        :: profile_at p fall unit step k' rest' above' shrunk' places'
  end.

(** The place of the largest loss. *)
Definition end_of (l : whole_loss) : Z := first l + Z.of_nat (length (masses l)) - 1.

Definition heights_of (p fall : Z) (unit step : Q) (places : list (Z * Z * Z)) (l : whole_loss) : list Z :=
  profile_at p fall unit step (end_of l) (rev (masses l)) (beyond l) 0 places.

(** The larger ones, one by one. *)
Fixpoint larger (k l : list Z) : list Z :=
  match k, l with m :: k', n :: l' => Z.max m n :: larger k' l' | _, _ => [] end.

Fixpoint largest_heights (p fall : Z) (unit step : Q) (places : list (Z * Z * Z)) (l : list whole_loss) : list Z :=
  match l with
  | [] => []
  | [k] => heights_of p fall unit step places k
  | k :: rest => larger (heights_of p fall unit step places k) (largest_heights p fall unit step places rest)
  end.

Fixpoint dots_of (p bits more : Z) (step : Q) (places : list (Z * Z * Z)) (heights : list Z) :
  option (list (Z * Z * Z)) :=
  match places, heights with
  | (z, _, _) :: places', f :: heights' =>
      match exp_of_rational p (inject_Z z * step), dots_of p bits more step places' heights' with
      | Some (l, _), Some known => Some ((z, Z.shiftr l (p - bits), shift_up f more) :: known)
      | _, _ => None
      end
  | _, _ => Some []
  end.

(** The largest number whose square is so much at most, and the most outcomes that are told apart. *)
Definition most_squared : Z := 25.
Definition most_spread : Z := 2 ^ 16.

(** One loss for both orders, of noise on what moves by [n] in squares. Slopes at large losses x are as
    small as exp(-x). *)
Definition discrete_gaussian_loss (w bits : Z) (std : Q) (n : Z) (step : Q) : option whole_loss :=
  if n <=? 0 then Some (no_loss w)
  else
    let unit := loss_unit std in
    let N := spread (w + 16) std in
    let largest := Qceiling (unit * inject_Z (n + 2 * Z.sqrt_up n * N)) in
    let bits := bits + Z.max 0 (3 * largest / 2) in
    let p := w + bits + guard in
    if (n <=? most_squared) && (N <=? most_spread) then
      match noise_masses p std (Z.to_nat N), exp_of_rational p (- unit) with
      | Some (middle, outside), Some (fall, _) =>
          let shift := shift_loss middle outside (Z.to_nat N) in
          let found := ways p (2 ^ (bits + guard - 8)) shift (Z.to_nat (Z.sqrt n)) (Z.to_nat n) in
          let top := fold_right (fun l z => Z.max z (end_of l)) 0 found in
          let bottom := fold_right (fun l z => Z.min z (first l)) 0 found in
          let k := if Z.even (top - n) then top else top + 1 in
          match marked p unit step
                  (places_below (Z.to_nat ((k - bottom) / 2 + 1)) k
                     (Qceiling (inject_Z k * unit / step) + 1) (/ unit) step) with
          | Some places =>
              match dots_of p bits guard step places (largest_heights p fall unit step places found) with
              | Some listed => if 0 <=? fall then loss_from w bits step listed else None
              | None => None
              end
          | None => None
          end
      | _, _ => None
      end
    else None.

(** ** Soundness: all ways to move *)

Open Scope R_scope.

Section Sound.

Variables (std : Q) (s : R) (p : Z).
Hypotheses (Hs : 0 < s) (Es : Q2R std = s) (Hp : (0 <= p)%Z).

Notation unit := (Q2R (loss_unit std)).
Notation fixed z := (IZR z / unit_of p).

Let unit_positive := unit_positive std s Hs Es.

Section Ways.

Variables (N : nat) (middle : list Z) (outside cut : Z).
Hypothesis Masses : noise_masses p std N = Some (middle, outside).

Notation shift := (shift_loss middle outside N).
Notation real := (stands_for unit (unit_of p)).

Let shift_loss_list := shift_loss_list std s Hs Es p Hp N middle outside Masses.
Let shift_loss_sound := shift_loss_sound std s Hs Es p Hp N middle outside Masses.

Notation K := (fun j => real (shift j)).

Lemma power_sound j n :
  sound_list (power p cut (shift j) n) /\
  at_most (all_of K (repeat j n)) (real (power p cut (shift j) n)).
Proof.
  pose proof (unit_pos p Hp) as P; pose proof (shift_loss_list j) as Sj.
  induction n as [|[|n] IH].
  - split; [split; cbn [beyond masses power no_loss]; [lia|repeat constructor; apply Z.pow_nonneg; lia]|].
    intros a b Ha Hb; cbn [repeat all_of power]; rewrite profile_nothing, profile_stands by exact P.
    unfold no_loss; cbn [first masses beyond row]; unfold kept.
    replace (- (0 * unit)) with 0 by ring; rewrite exp_0, Rmult_1_r; unfold unit_of in *; right; field; lra.
  - destruct (trimmed_sound p unit Hp unit_positive cut _ Sj) as [St At]; split; [exact St|].
    apply at_most_trans with (2 := At), alike_at_most, alike_nothing.
  - destruct IH as [Si Ai]; destruct (times_sound p Hp (loss_unit std) cut unit_positive _ _ Sj Si) as [St At].
    split; [exact St|]; apply at_most_trans with (2 := At).
    apply both_mono_r; [apply stands_proper; assumption|exact Ai].
Qed.

Lemma all_moves_sound v : (forall j, In j v -> (0 < j)%nat) -> proper (all_of K v) /\ covers (all_of K v).
Proof.
  intros Pv; split; [apply all_of_proper|apply covers_all_of]; intros j I;
    pose proof (shift_loss_sound j (Pv j I)) as B; [apply B|split; [apply B|]].
  apply (shift_covers s j _ Hs B).
Qed.

Lemma without_one (j : nat) v : Permutation v (repeat j (count_occ Nat.eq_dec v j) ++ remove Nat.eq_dec j v).
Proof.
  induction v as [|i v IH]; [constructor|]; cbn [count_occ remove].
  destruct (Nat.eq_dec i j) as [->|Ne]; [|destruct (Nat.eq_dec j i); [congruence|]].
  - destruct (Nat.eq_dec j j); [|congruence]; cbn [repeat app]; constructor; exact IH.
  - apply Permutation_trans with (i :: repeat j (count_occ Nat.eq_dec v j) ++ remove Nat.eq_dec j v);
      [constructor; exact IH|apply Permutation_middle].
Qed.

Lemma squares_permuted u v : Permutation u v -> squares_total u = squares_total v.
Proof. induction 1; simpl in *; lia. Qed.

Lemma squares_repeated j k v : squares_total (repeat j k ++ v) = (k * (j * j) + squares_total v)%nat.
Proof. induction k as [|k IH]; [reflexivity|]; cbn [repeat app squares_total fold_right]; unfold squares_total in *; lia. Qed.

Theorem ways_sound j n :
  (forall l, In l (ways p cut shift j n) -> sound_list l) /\
  forall v, (0 < j)%nat -> (forall i, In i v -> (0 < i <= j)%nat) -> (squares_total v <= n)%nat ->
  exists l, In l (ways p cut shift j n) /\ at_most (all_of K v) (real l).
Proof.
  revert n; induction j as [|[|j'] IH]; intros n.
  - split; [intros l []|intros v H; lia].
  - destruct (power_sound 1 n) as [S1 A1]; split; [intros l [<-|[]]; exact S1|]; intros v _ Pv Sq.
    exists (power p cut (shift 1%nat) n); split; [left; reflexivity|].
    assert (Ev : v = repeat 1%nat (length v)).
    { clear Sq; induction v as [|i v IHv]; [reflexivity|]; cbn [length repeat]; f_equal.
      - specialize (Pv i (or_introl eq_refl)); lia.
      - apply IHv; intros k I; apply Pv; right; exact I. }
    assert (L : (length v <= n)%nat).
    { rewrite Ev, <- (app_nil_r (repeat _ _)), squares_repeated in Sq; simpl in Sq; lia. }
    apply at_most_trans with (2 := A1); rewrite Ev.
    replace (repeat 1%nat n) with (repeat 1%nat (length v) ++ repeat 1%nat (n - length v))
      by (rewrite <- repeat_app; f_equal; lia).
    apply all_of_more; intros i I; assert (i = 1%nat) as ->.
    { apply in_app_or in I as [I|I]; apply repeat_spec in I; exact I. }
    pose proof (shift_loss_sound 1 ltac:(lia)) as B; split; [apply B|apply (shift_covers s 1 _ Hs B)].
  - set (j := S (S j')) in *.
    replace (ways p cut shift j n) with (flat_map (fun k =>
        if Nat.leb (k * (j * j)) n
        then match k with
             | O => ways p cut shift (S j') n
             | _ => map (times p cut (power p cut (shift j) k)) (ways p cut shift (S j') (n - k * (j * j)))
             end
        else []) (seq 0 (S n))) by reflexivity.
    assert (One : forall k l, sound_list l ->
              sound_list (times p cut (power p cut (shift j) k) l) /\
              at_most (both (real (power p cut (shift j) k)) (real l))
                (real (times p cut (power p cut (shift j) k) l))).
    { intros k l Sl; apply times_sound; [exact Hp|apply unit_positive|apply power_sound|exact Sl]. }
    split.
    + intros l I; apply in_flat_map in I as (k & _ & I); destruct (Nat.leb _ n); [|destruct I].
      destruct k as [|k]; [apply (proj1 (IH n) l I)|].
      apply in_map_iff in I as (l' & <- & I); apply One, (proj1 (IH _) l' I).
    + intros v _ Pv Sq; pose proof (without_one j v) as Pm.
      set (k := count_occ Nat.eq_dec v j) in *; set (rest := remove Nat.eq_dec j v) in *.
      rewrite (squares_permuted _ _ Pm), squares_repeated in Sq.
      assert (Pr : forall i, In i rest -> (0 < i <= S j')%nat).
      { intros i I; apply in_remove in I as [I Ne]; specialize (Pv i I); lia. }
      destruct (proj2 (IH (n - k * (j * j))%nat) rest ltac:(lia) Pr ltac:(lia)) as (l & Il & Al).
      assert (Permuted : at_most (all_of K v) (all_of K (repeat j k ++ rest)))
        by (apply alike_at_most, all_of_permutation, Pm).
      assert (Hk : Nat.leb (k * (j * j)) n = true) by (apply Nat.leb_le; lia).
      assert (Ik : In k (seq 0 (S n))).
      { assert (J : (1 <= j * j)%nat) by (unfold j; lia); apply (Nat.mul_le_mono_l 1 (j * j) k) in J.
        apply in_seq; lia. }
      assert (Sl : sound_list l) by (apply (proj1 (IH _) l Il)).
      destruct (Nat.eq_dec k 0) as [Z|NZ].
      * exists l; split; [|rewrite Z in Permuted; apply at_most_trans with (1 := Permuted), Al].
        apply in_flat_map; exists k; split; [exact Ik|]; rewrite Hk, Z in *.
        rewrite Nat.mul_0_l, Nat.sub_0_r in Il; exact Il.
      * exists (times p cut (power p cut (shift j) k) l); split.
        -- apply in_flat_map; exists k; split; [exact Ik|]; rewrite Hk; destruct k; [congruence|].
           apply in_map, Il.
        -- destruct (One k l Sl) as [_ At]; apply at_most_trans with (2 := At).
           apply at_most_trans with (1 := Permuted).
           apply at_most_trans with (1 := alike_at_most _ _ (all_of_app _ _ _)).
           pose proof (unit_pos p Hp) as P; destruct (power_sound j k) as [Sp Ap].
           apply both_mono; [|apply stands_proper; assumption|exact Ap|exact Al].
           apply all_of_proper; intros i I; apply repeat_spec in I as ->.
           apply (shift_loss_sound j); lia.
Qed.

End Ways.

(** ** Soundness: profiles at dots *)

(** Like [row], from the largest place down. *)
Fixpoint descending (t : Z -> R) (k : Z) (l : list Z) : R :=
  match l with [] => 0 | m :: l' => IZR m * t k + descending t (k - 1) l' end.

Lemma descending_app t k l l' :
  descending t k (l ++ l') = descending t k l + descending t (k - Z.of_nat (length l)) l'.
Proof.
  revert k; induction l as [|m l IH]; intros k; cbn [app descending length].
  - rewrite Z.sub_0_r; ring.
  - rewrite IH, Rplus_assoc; do 3 f_equal; lia.
Qed.

Lemma row_descending t z l : row t z l = descending t (z + Z.of_nat (length l) - 1) (rev l).
Proof.
  revert z; induction l as [|m l IH]; intros z; [reflexivity|]; cbn [row rev].
  rewrite descending_app, IH, rev_length; cbn [descending length].
  rewrite Rplus_comm; f_equal; [f_equal; lia|rewrite Rplus_0_r; do 2 f_equal; lia].
Qed.

Section Profiles.

Variables (fall : Z) (l : whole_loss).
Hypotheses (Hl : sound_list l) (Hfall : (0 <= fall)%Z) (Lfall : fixed fall <= exp (- unit)).

(** The profile at exp(x), in units of 2^-p. *)
Definition height_at (x : R) : R := IZR (beyond l) + row (kept unit 1 (exp x)) (first l) (masses l).

(** What is known on the way down to a place. *)
Definition so_far (k : Z) (rest : list Z) (above shrunk : Z) : Prop :=
  Forall (fun m => 0 <= m)%Z rest /\ (0 <= shrunk)%Z /\
  forall x, height_at x <= IZR above + descending (kept unit 1 (exp x)) k rest /\
  (x <= (IZR k + 1) * unit ->
   height_at x <= IZR above - exp (x - IZR k * unit) * IZR shrunk
                  + descending (kept unit 1 (exp x)) k rest).

Lemma advance_sound target k rest above shrunk :
  so_far k rest above shrunk ->
  let '(k', rest', above', shrunk') := advance p fall target k rest above shrunk in
  so_far k' rest' above' shrunk' /\ (rest' = [] \/ (k' <= target)%Z).
Proof.
  pose proof (unit_pos p Hp) as P.
  revert k above shrunk; induction rest as [|m rest IH]; intros k above shrunk H; cbn [advance]; [auto|].
  destruct (Z.ltb_spec target k) as [L|L]; [|auto]; apply IH; clear IH.
  destruct H as (F & Ps & H); pose proof (Forall_inv F) as Hm; cbv beta in Hm; apply Forall_inv_tail in F as F'; clear F.
  apply IZR_le in Hm as Hm'; apply IZR_le in Ps as Ps'.
  split; [exact F'|split; [apply FixedPoint.below_nonneg; lia|]]; intros x.
  destruct (H x) as [H1 H2]; cbn [descending] in H1, H2; rewrite plus_IZR; split.
  - eapply Rle_trans; [exact H1|].
    pose proof (kept_le_all unit 1 (exp x) k ltac:(lra) (Rlt_le _ _ (exp_pos x))); nra.
  - rewrite minus_IZR; intros Hx; specialize (H2 ltac:(pose proof unit_positive; lra)).
    eapply Rle_trans; [exact H2|].
    pose proof (below_le p Hp (shrunk + m) fall) as B; rewrite plus_IZR in B.
    set (fallen := FixedPoint.below p (shrunk + m) fall) in *.
    assert (B' : IZR fallen <= (IZR shrunk + IZR m) * exp (- unit)).
    { apply (Rmult_le_compat_r (unit_of p) _ _ (Rlt_le _ _ P)) in B.
      replace (fixed fallen * unit_of p) with (IZR fallen) in B by (field; lra).
      replace ((IZR shrunk + IZR m) / unit_of p * fixed fall * unit_of p)
        with ((IZR shrunk + IZR m) * fixed fall) in B by (field; lra).
      eapply Rle_trans; [exact B|apply Rmult_le_compat_l; lra]. }
    assert (Kept : kept unit 1 (exp x) k = 1 - exp (x - IZR k * unit)).
    { unfold kept, Rminus at 2; rewrite <- exp_plus; apply plus_part_id.
      assert (exp (x + - (IZR k * unit)) <= 1); [|unfold Rminus; lra].
      rewrite <- exp_0; apply exp_le; lra. }
    assert (E : exp (x - (IZR k - 1) * unit) = exp (x - IZR k * unit) * exp unit)
      by (rewrite <- exp_plus; f_equal; ring).
    rewrite Kept, E; pose proof (exp_pos (x - IZR k * unit)) as Pe; set (e := exp (x - IZR k * unit)) in *.
    assert (U : exp unit * IZR fallen <= IZR shrunk + IZR m).
    { apply (Rmult_le_compat_l (exp unit)) in B'; [|left; apply exp_pos].
      replace (exp unit * ((IZR shrunk + IZR m) * exp (- unit))) with (IZR shrunk + IZR m) in B'; [exact B'|].
      rewrite exp_Ropp; field; apply Rgt_not_eq, exp_pos. }
    apply (Rmult_le_compat_l e) in U; [|lra]; lra.
Qed.

Lemma nothing_below target k rest x :
  rest = [] \/ (k <= target)%Z -> IZR target * unit <= x -> descending (kept unit 1 (exp x)) k rest = 0.
Proof.
  intros [->|L] Hx; [reflexivity|]; revert k L; induction rest as [|m rest IH]; intros k L; cbn [descending];
    [reflexivity|rewrite IH by lia].
  unfold kept; rewrite plus_part_0; [ring|].
  rewrite <- exp_plus; assert (1 <= exp (x + - (IZR k * unit))); [|lra].
  rewrite <- exp_0; apply exp_le; apply IZR_le in L; pose proof unit_positive; nra.
Qed.

Variables (step : Q).
Hypothesis Hstep : 0 < Q2R step.

(** A place as it is marked. *)
Definition is_marked (place : Z * Z * Z) : Prop :=
  let '(z, target, e) := place in
  IZR target * unit <= IZR z * Q2R step < (IZR target + 1) * unit /\
  fixed e <= exp (IZR z * Q2R step - IZR target * unit).

Definition height_bounded (place : Z * Z * Z) (f : Z) : Prop :=
  height_at (IZR (fst (fst place)) * Q2R step) <= IZR f.

Lemma height_from_sound k rest above shrunk place :
  so_far k rest above shrunk -> is_marked place -> rest = [] \/ (k <= snd (fst place))%Z ->
  height_bounded place (height_from p (loss_unit std) step k above shrunk place).
Proof.
  pose proof (unit_pos p Hp) as P; pose proof unit_positive as Pu.
  destruct place as [[z target] e]; intros (_ & Ps & H) [M E] Low; unfold height_bounded, height_from; cbn [fst snd] in *.
  set (x := IZR z * Q2R step) in *; destruct (H x) as [H1 H2].
  rewrite (nothing_below target k rest x Low (proj1 M)), Rplus_0_r in H1, H2.
  assert (Lower : forall e, fixed e <= exp (x - IZR k * unit) -> (target <= k)%Z ->
            height_at x <= IZR (above - FixedPoint.below p e shrunk)).
  { intros e' L T; apply IZR_le in T; eapply Rle_trans; [apply H2; nra|].
    rewrite minus_IZR; apply Rplus_le_compat_l, Ropp_le_contravar.
    pose proof (below_le p Hp e' shrunk) as B; apply (Rmult_le_compat_r (unit_of p) _ _ (Rlt_le _ _ P)) in B.
    apply IZR_le in Ps; set (fallen := FixedPoint.below p e' shrunk) in *.
    replace (fixed fallen * unit_of p) with (IZR fallen) in B by (field; lra).
    replace (fixed e' * fixed shrunk * unit_of p) with (fixed e' * IZR shrunk) in B by (field; lra).
    eapply Rle_trans; [exact B|apply Rmult_le_compat_r; assumption]. }
  destruct (Z.eqb_spec target k) as [->|Ne]; [apply Lower; [exact E|lia]|].
  destruct (Z.ltb_spec target k) as [Lt|]; [|exact H1].
  destruct (exp_of_rational p _) as [[e' u]|] eqn:Ee; [|exact H1].
  apply exp_of_rational_sound in Ee as [Ee _]; [|exact Hp].
  rewrite Q2R_minus, !Q2R_mult, !Q2R_integer in Ee; apply Lower; [exact Ee|lia].
Qed.

Lemma profile_at_sound places k rest above shrunk :
  so_far k rest above shrunk -> Forall is_marked places ->
  Forall2 height_bounded places (profile_at p fall (loss_unit std) step k rest above shrunk places).
Proof.
  revert k rest above shrunk; induction places as [|place places IH];
    intros k rest above shrunk H F; cbn [profile_at]; [constructor|].
  pose proof (Forall_inv F) as M; apply Forall_inv_tail in F as F'.
  pose proof (advance_sound (snd (fst place)) k rest above shrunk H) as A.
  destruct (advance _ _ _ _ _ _ _) as [[[k' rest'] above'] shrunk']; destruct A as [A Low].
  constructor; [apply (height_from_sound k' rest'); assumption|apply IH; assumption].
Qed.

Lemma heights_of_sound places :
  Forall is_marked places -> Forall2 height_bounded places (heights_of p fall (loss_unit std) step places l).
Proof.
  intros F; apply profile_at_sound; [|exact F]; destruct Hl as [_ M]; unfold end_of; split; [|split; [lia|]].
  - apply Forall_rev, M.
  - intros x; rewrite <- row_descending.
    unfold height_at; split; [lra|intros _]; rewrite Rmult_0_r; lra.
Qed.

End Profiles.

Section Dots.

Variables (step : Q) (fall : Z).
Hypotheses (Hstep : 0 < Q2R step) (Hfall : (0 <= fall)%Z) (Lfall : fixed fall <= exp (- unit)).

Lemma marked_sound places found : marked p (loss_unit std) step places = Some found -> Forall (is_marked step) found.
Proof.
  revert found; induction places as [|z places IH]; intros found; cbn [marked].
  - intros H; injection H as <-; constructor.
  - cbv zeta; set (x := (inject_Z z * step)%Q); set (target := Qfloor (x / loss_unit std)).
    destruct (exp_of_rational p _) as [[e e']|] eqn:E; [|discriminate].
    destruct (marked p _ step places) as [rest|]; [|discriminate]; intros H; injection H as <-.
    constructor; [|apply IH; reflexivity].
    apply exp_of_rational_sound in E as [E _]; [|exact Hp].
    pose proof unit_positive as Pu; assert (Ex : Q2R x = IZR z * Q2R step)
      by (unfold x; rewrite Q2R_mult, Q2R_integer; reflexivity).
    rewrite Q2R_minus, Q2R_mult, Q2R_integer, Ex in E; split; [|exact E].
    assert (Ratio : Q2R (x / loss_unit std) = IZR z * Q2R step / unit)
      by (rewrite (Q2R_div x _ Pu), Ex; reflexivity).
    pose proof (Qfloor_le (x / loss_unit std)) as L; pose proof (Qlt_floor (x / loss_unit std)) as U.
    apply Qle_Rle in L; apply Qlt_Rlt in U; fold target in L, U.
    rewrite Q2R_integer, Ratio in L; rewrite Q2R_integer, Ratio, plus_IZR in U.
    apply (Rmult_le_compat_r unit) in L; [|lra]; apply (Rmult_lt_compat_r unit) in U; [|lra].
    replace (IZR z * Q2R step / unit * unit) with (IZR z * Q2R step) in L, U by (field; lra); split; assumption.
Qed.

Lemma larger_sound (P : Z * Z * Z -> Z -> Prop) places k k' :
  (forall place f f', P place f -> (f <= f')%Z -> P place f') -> length k' = length k ->
  Forall2 P places k \/ Forall2 P places k' -> Forall2 P places (larger k k').
Proof.
  intros Up; revert k k'; induction places as [|place places IH]; intros [|f k] [|f' k'] L [H|H];
    try discriminate L; inversion H as [|? ? ? ? H1 H2]; try constructor; cbn [larger];
    try (apply (Up _ _ _ H1); lia); (apply IH; [injection L as L; exact L|]); auto.
Qed.

Lemma larger_length k k' n : length k = n -> length k' = n -> length (larger k k') = n.
Proof.
  revert k' n; induction k as [|m k IH]; intros [|m' k'] n L L'; cbn [larger length] in *; try lia.
  destruct n as [|n]; [lia|]; f_equal; apply IH; lia.
Qed.

Lemma heights_length places l : length (heights_of p fall (loss_unit std) step places l) = length places.
Proof.
  unfold heights_of; generalize (end_of l) as k; generalize (beyond l) as above.
  generalize 0%Z as shrunk; generalize (rev (masses l)) as rest.
  induction places as [|place places IH]; intros; [reflexivity|]; cbn [profile_at].
  destruct (advance _ _ _ _ _ _ _) as [[[k' rest'] above'] shrunk']; cbn [length]; rewrite IH; reflexivity.
Qed.

Lemma largest_heights_sound places found :
  Forall (is_marked step) places -> (forall l, In l found -> sound_list l) ->
  (found <> [] -> length (largest_heights p fall (loss_unit std) step places found) = length places) /\
  forall l, In l found -> Forall2 (height_bounded l step) places (largest_heights p fall (loss_unit std) step places found).
Proof.
  intros F; induction found as [|k found IH]; intros S; [split; [congruence|intros l []]|].
  assert (One : forall l, In l (k :: found) -> Forall2 (height_bounded l step) places (heights_of p fall (loss_unit std) step places l))
    by (intros l I; apply heights_of_sound; auto).
  destruct found as [|k' found].
  - cbn [largest_heights]; split; [intros _; apply heights_length|]; intros l [<-|[]]; apply One; left; reflexivity.
  - destruct IH as [L IH]; [intros; apply S; right; assumption|]; specialize (L ltac:(discriminate)).
    replace (largest_heights p fall (loss_unit std) step places (k :: k' :: found))
      with (larger (heights_of p fall (loss_unit std) step places k) (largest_heights p fall (loss_unit std) step places (k' :: found)))
      by reflexivity.
    split; [intros _; apply larger_length; [apply heights_length|exact L]|]; intros l I.
    apply larger_sound; [|rewrite L, heights_length; reflexivity|].
    + intros place f f' H Le; apply IZR_le in Le; unfold height_bounded in *; lra.
    + destruct I as [<-|I]; [left; apply One; left; reflexivity|right; apply IH, I].
Qed.

Lemma dots_of_sound (P : Z * Z * Z -> Z -> Prop) bits more places heights listed z e f :
  Forall2 P places heights -> dots_of p bits more step places heights = Some listed -> In (z, e, f) listed ->
  exists place f', fst (fst place) = z /\ P place f' /\ f = shift_up f' more.
Proof.
  intros H; revert listed; induction H as [|[[z' t] e'] f' places heights One H IH]; intros listed;
    cbn [dots_of]; [intros E; injection E as <-; intros []|].
  destruct (exp_of_rational p _) as [[l u]|]; [|discriminate].
  destruct (dots_of _ _ _ _ places heights) as [known|]; [|discriminate]; intros E; injection E as <-.
  intros [I|I]; [injection I as <- _ <-; exists (z', t, e'), f'; auto|apply (IH known eq_refl I)].
Qed.

End Dots.

End Sound.

Theorem discrete_gaussian_loss_sound (std : Q) (s : R) w bits n step L {A} (l : list A) P Q :
  0 < s -> Q2R std = s -> (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step ->
  discrete_gaussian_loss w bits std n step = Some L ->
  distribution l P -> nonneg l Q -> moved_by s (Z.to_nat n) l P Q ->
  sound_list L /\ below_profile l P Q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  intros Hs Es Hw Hbits Hstep; unfold discrete_gaussian_loss; destruct (Z.leb_spec n 0) as [Hn|Hn].
  { intros E; injection E as <-; intros _ _ (v & Pv & Sq & B); pose proof (unit_pos w Hw) as Pu; split.
    { split; cbn [beyond masses no_loss]; [lia|repeat constructor; apply Z.pow_nonneg; lia]. }
    destruct v as [|j v]; [|specialize (Pv j (or_introl eq_refl)); cbn [squares_total fold_right] in Sq; nia].
    intros a b Ha Hb.
    assert (K : forall j : nat, (0 < j)%nat -> shift_bounded s j (Loss [] 1)).
    { intros j _; split; [split; simpl; [lra|intros x []]|]; intros cuts m m' Up _ a' b' Ha' Hb'.
      unfold profile; cbn [lost atoms total]; rewrite Rmult_1_l, Rplus_0_r.
      apply excess_le_mass; try assumption; apply rounded_discrete_distribution; assumption. }
    eapply Rle_trans; [apply (B _ K a b Ha Hb)|]; cbn [all_of]; rewrite profile_nothing, profile_stands by exact Pu.
    unfold no_loss; cbn [first masses beyond row]; unfold kept.
    replace (- (0 * Q2R step)) with 0 by ring; rewrite exp_0, Rmult_1_r; unfold unit_of in *; right; field; lra. }
  cbv zeta; set (bits' := (bits + Z.max 0 _)%Z); assert (Hbits' : (0 <= bits')%Z) by (unfold bits'; lia).
  clearbody bits'; clear bits Hbits; rename bits' into bits, Hbits' into Hbits.
  set (p := (w + bits + guard)%Z); pose proof guard_nonneg as Hg.
  assert (Hp : (0 <= p)%Z) by (unfold p; lia); pose proof (unit_pos p Hp) as Pp.
  destruct (_ && _)%bool; [|discriminate].
  destruct (noise_masses p std _) as [[middle outside]|] eqn:M; [|discriminate].
  destruct (exp_of_rational p (- loss_unit std)) as [[fall fall']|] eqn:E; [|discriminate].
  set (N := Z.to_nat (spread (w + 16) std)) in *.
  set (found := ways p _ _ _ _);
  destruct (marked p _ step _) as [places|] eqn:Mk; [|discriminate].
  destruct (dots_of p bits guard step places _) as [listed|] eqn:D; [|discriminate].
  destruct (Z.leb_spec 0 fall) as [Hf|]; [|discriminate]; intros F Dp Nq (v & Pv & Sq & B).
  apply exp_of_rational_sound in E as [E _]; [|exact Hp]; rewrite Q2R_opp in E.
  apply (marked_sound std s p Hs Es Hp step) in Mk.
  assert (Small : forall i, In i v -> (0 < i <= Z.to_nat (Z.sqrt n))%nat).
  { intros i I; specialize (Pv i I); split; [exact Pv|].
    assert (S1 : (i * i <= squares_total v)%nat).
    { clear - I; induction v as [|k v IH]; [destruct I|]; cbn [squares_total fold_right].
      destruct I as [->|I]; [lia|specialize (IH I); unfold squares_total in IH; lia]. }
    assert (Si : (Z.of_nat i <= Z.sqrt n)%Z) by (apply Z.sqrt_le_square; nia); lia. }
  assert (Positive : (0 < Z.to_nat (Z.sqrt n))%nat) by (pose proof (proj2 (Z.sqrt_pos n) Hn); lia).
  destruct (ways_sound std s p Hs Es Hp N middle outside (2 ^ (bits + guard - 8)) M (Z.to_nat (Z.sqrt n))
              (Z.to_nat n)) as [All Way]; destruct (Way v Positive Small Sq) as (way & Iw & Aw).
  destruct (largest_heights_sound std s p Hs Es Hp step fall Hf E places found Mk All) as [_ High].
  specialize (High way Iw).
  refine (loss_from_sound w bits step Hw Hbits Hstep l P Q (excess l P Q) listed L F Dp Nq _ _);
    [intros a b _ _; lra|]; intros z g f I.
  destruct (dots_of_sound p step _ _ _ _ _ _ _ _ _ High D I) as (place & f' & Ez & Hf' & ->).
  unfold height_bounded in Hf'; rewrite Ez in Hf'; set (x := IZR z * Q2R step) in *.
  replace (IZR (2 ^ bits) * unit_of w) with (unit_of (w + bits))
    by (rewrite unit_plus by assumption; unfold unit_of; ring).
  eapply Rle_trans; [|apply without_guard; lia]; fold p.
  pose proof (exp_pos x) as Px.
  eapply Rle_trans; [apply (B (fun j => stands_for (Q2R (loss_unit std)) (unit_of p) (shift_loss middle outside N j)))|]; try lra.
  { intros j Hj; apply (shift_loss_sound std s Hs Es p Hp N middle outside M j Hj). }
  eapply Rle_trans; [apply Aw; lra|]; rewrite profile_stands by exact Pp; rewrite Rmult_1_r.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pp|exact Hf'].
Qed.
