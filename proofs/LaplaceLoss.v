(** The loss of Laplace noise, in whole numbers: from enclosures of its exact profile at dots. *)

From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia.
From Dpledger Require Import Sums Finite Domination LaplaceProfile Losses LossLists Enclosure
  LossEnclosures FixedPoint FixedGaussian SampledLoss.
Import ListNotations.
Open Scope Z_scope.

(** ** As a program *)

(** At least the root of a rational; half of it is what is used. *)
Definition root_above (p : Z) (ratio : Q) : Q :=
  Qmake (Z.sqrt_up (round_up (Qnum ratio * 2 ^ (2 * p)) (Zpos (Qden ratio)))) (Z.to_pos (2 ^ p)).

(** Dots from the place z upwards, as far as the loss reaches; descending, with those below zero. *)
Fixpoint places_from (fuel : nat) (far step : Q) (dense z : Z) : list Z :=
  match fuel with
  | O => []
  | S fuel' =>
      z :: if Qle_bool far (inject_Z z * step) then []
           else places_from fuel' far step dense (z + Z.max 1 (z / dense))
  end.

Definition laplace_places (far step : Q) (dense : Z) : list Z :=
  let up := places_from (Z.to_nat most_dots) far step dense 1 in
  rev up ++ 0 :: map Z.opp up.

(** Bounds on the profile, in units of 2^-(w + bits), at each place. *)
Fixpoint laplace_heights (w bits : Z) (far step : Q) (places : list Z) : option (list (Z * Z * Z)) :=
  match places with
  | [] => Some []
  | z :: rest =>
      let p := w + bits + guard in
      match exp_of_rational p (inject_Z z * step), exp_of_rational p ((inject_Z z * step - far) / 2),
            laplace_heights w bits far step rest with
      | Some (l, _), Some (r, _), Some known =>
          Some ((z, Z.shiftr l (p - bits), shift_up (2 ^ p - Z.min (2 ^ p) (Z.min l r)) guard) :: known)
      | _, _, _ => None
      end
  end.

(** One loss for both orders, for (sensitivity / scale)^2. *)
Definition laplace_loss (w bits : Z) (ratio step : Q) (dense : Z) : option whole_loss :=
  let far := root_above (w + bits + guard) ratio in
  if Qle_bool 0 far && Qle_bool ratio (far * far) then
    match laplace_heights w bits far step (laplace_places far step dense) with
    | Some listed => loss_from w bits step listed
    | None => None
    end
  else None.

(** ** Soundness *)

Open Scope R_scope.

Section Sound.

Variables (w bits : Z) (far step : Q).
Hypotheses (Hw : (0 <= w)%Z) (Hbits : (0 <= bits)%Z) (Hstep : 0 < Q2R step).

Notation p := (w + bits + guard)%Z.

Lemma laplace_height_sound z l u r v :
  exp_of_rational p (inject_Z z * step) = Some (l, u) ->
  exp_of_rational p ((inject_Z z * step - far) / 2) = Some (r, v) ->
  laplace_profile (exp (- Q2R far / 2)) 1 (exp (IZR z * Q2R step))
    <= IZR (2 ^ p - Z.min (2 ^ p) (Z.min l r)) / unit_of p.
Proof.
  intros L R; pose proof guard_nonneg as Hg; assert (Hp : (0 <= p)%Z) by lia.
  pose proof (unit_pos p Hp) as P; assert (I : 0 < / unit_of p) by (apply Rinv_0_lt_compat, P).
  apply exp_of_rational_sound in L; [|pose proof guard_nonneg; lia].
  apply exp_of_rational_sound in R; [|pose proof guard_nonneg; lia].
  rewrite Q2R_mult, Q2R_integer in L; destruct L as [L _], R as [R _].
  assert (Half : Q2R ((inject_Z z * step - far) / 2) = IZR z * Q2R step / 2 - Q2R far / 2).
  { assert (Two : Q2R 2 = 2) by exact (Q2R_integer 2).
    rewrite Q2R_div by (rewrite Two; lra).
    rewrite Q2R_minus, Q2R_mult, Q2R_integer, Two; field. }
  rewrite Half in R; set (y := IZR z * Q2R step) in *.
  unfold laplace_profile, common_part; rewrite Rmult_1_l.
  assert (Root : exp (- Q2R far / 2) * sqrt (exp y) = exp (y / 2 - Q2R far / 2)).
  { replace (exp y) with (exp (y / 2) * exp (y / 2)) by (rewrite <- exp_plus; f_equal; field).
    rewrite sqrt_square by (left; apply exp_pos); rewrite <- exp_plus; f_equal; field. }
  rewrite Root, minus_IZR; unfold Rdiv at 3; rewrite Rmult_minus_distr_r.
  fold (unit_of p); rewrite Rinv_r by lra; apply Rplus_le_compat_l, Ropp_le_contravar.
  assert (Below : forall n, (Z.min (2 ^ p) (Z.min l r) <= n)%Z ->
            IZR (Z.min (2 ^ p) (Z.min l r)) * / unit_of p <= IZR n / unit_of p).
  { intros n H; apply IZR_le in H; apply Rmult_le_compat_r; [lra|exact H]. }
  repeat apply Rmin_glb.
  - eapply Rle_trans; [apply (Below (2 ^ p)%Z); lia|]; fold (unit_of p); right; field; lra.
  - eapply Rle_trans; [apply (Below l); lia|exact L].
  - eapply Rle_trans; [apply (Below r); lia|exact R].
Qed.

Lemma laplace_heights_sound places listed z g f :
  laplace_heights w bits far step places = Some listed -> In (z, g, f) listed ->
  laplace_profile (exp (- Q2R far / 2)) 1 (exp (IZR z * Q2R step))
    <= IZR f / (IZR (2 ^ bits) * unit_of w).
Proof.
  revert listed; induction places as [|z' rest IH]; intros listed; cbn [laplace_heights].
  - intros H; injection H as <-; intros [].
  - destruct (exp_of_rational p (inject_Z z' * step)) as [[l u]|] eqn:L; [|discriminate].
    destruct (exp_of_rational p ((inject_Z z' * step - far) / 2)) as [[r v]|] eqn:R; [|discriminate].
    destruct (laplace_heights w bits far step rest) as [known|]; [|discriminate].
    intros H; injection H as <-; intros [I|I]; [|apply (IH known eq_refl I)].
    injection I as -> _ <-.
    replace (IZR (2 ^ bits) * unit_of w) with (unit_of (w + bits))
      by (rewrite unit_plus by assumption; unfold unit_of; ring).
    eapply Rle_trans; [apply (laplace_height_sound _ _ _ _ _ L R)|apply without_guard; lia].
Qed.

End Sound.

Theorem laplace_loss_sound w bits ratio step dense {A} (l : list A) P Q far L :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step -> 0 <= Q2R ratio ->
  laplace_loss w bits ratio step dense = Some L ->
  far <= sqrt (Q2R ratio) ->
  distribution l P -> nonneg l Q -> below_profile l P Q (laplace_profile (exp (- far / 2))) ->
  sound_list L /\ below_profile l P Q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  intros Hw Hb Hs Hr; unfold laplace_loss; cbv zeta.
  set (above := root_above (w + bits + guard) ratio).
  destruct (_ && _)%bool eqn:G; [|discriminate]; apply andb_true_iff in G as [G0 G1].
  assert (Zero : Q2R 0 = 0) by exact (Q2R_integer 0).
  apply Qle_bool_R in G0, G1; rewrite Zero in G0; rewrite Q2R_mult in G1.
  destruct (laplace_heights _ _ _ _ _) as [listed|] eqn:H; [|discriminate]; intros F Le Dp Nq B.
  assert (Far : far <= Q2R above).
  { apply Rle_trans with (1 := Le); rewrite <- (sqrt_square (Q2R above)) by exact G0.
    apply sqrt_le_1_alt, G1. }
  refine (loss_from_sound w bits step Hw Hb Hs l P Q (laplace_profile (exp (- Q2R above / 2)))
            listed L F Dp Nq _ _).
  - intros a b Ha Hb'; eapply Rle_trans; [apply B; assumption|].
    unfold laplace_profile; apply Rplus_le_compat_l, Ropp_le_contravar, common_part_le_r, exp_le; lra.
  - intros z g f I; apply (laplace_heights_sound w bits above step Hw Hb _ _ _ _ _ H I).
Qed.
