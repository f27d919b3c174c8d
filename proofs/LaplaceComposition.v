(** Laplace noise composed in closed form. A loss of N steps, shifts e_1 ... e_N, is a sum over choices
    of signs: of a choice with k of them + and the sum t, ((1 + J)^k (1 - J)^(N-k) f)(t - x), where J is
    half of the integral from below and f(u) = (e^(u/2) - e^(-u/2))^+ ([composition]). A step more
    is such a sum again ([composition_step]), whatever was before it, so that a filter holds
    ([laplace_filter]). In whole numbers it is polynomials and one exponential ([waves_plus],
    [waves_minus], [waves_mixed]). *)

From Coq Require Import Reals List ZArith Lra Lia Psatz Permutation Binomial.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian Domination GaussianComposition LaplaceProfile Losses.
Import ListNotations.
Open Scope R_scope.

(** ** Half of the integral from zero *)

Definition integral (f : R -> R) (u : R) : R := / 2 * RInt f 0 u.
Definition plus_integral (f : R -> R) (u : R) : R := f u + integral f u.
Definition minus_integral (f : R -> R) (u : R) : R := f u - integral f u.

(** Continuous, and zero below zero. *)
Definition wave (f : R -> R) : Prop := (forall u, continuous f u) /\ forall u, u <= 0 -> f u = 0.

Lemma wave_integrable f a b : wave f -> ex_RInt f a b.
Proof. intros [C _]; apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros; apply C. Qed.

Lemma integral_derive f u : wave f -> is_derive (integral f) u (/ 2 * f u).
Proof.
  intros Wf; apply is_derive_scal, (is_derive_RInt f (fun x => RInt f 0 x) 0 u); [|apply Wf].
  exists (mkposreal 1 Rlt_0_1); intros y _.
  apply (RInt_correct (V := R_CompleteNormedModule)), wave_integrable, Wf.
Qed.

Lemma integral_wave f : wave f -> wave (integral f).
Proof.
  intros Wf; split.
  - intros u; apply (ex_derive_continuous (V := R_NormedModule)); eexists; apply integral_derive, Wf.
  - intros u Hu; unfold integral; rewrite <- (opp_RInt_swap (V := R_CompleteNormedModule))
      by (apply wave_integrable, Wf).
    rewrite (RInt_ext _ (fun _ => 0)).
    + rewrite RInt_const; unfold scal, opp; simpl; unfold mult; simpl; ring.
    + intros x; rewrite Rmin_left, Rmax_right by exact Hu; intros Hx; apply Wf; lra.
Qed.

Lemma plus_wave f : wave f -> wave (plus_integral f).
Proof.
  intros Wf; pose proof (integral_wave f Wf) as WJ; split.
  - intros u; apply (continuous_plus (V := R_NormedModule)); [apply Wf|apply WJ].
  - intros u Hu; unfold plus_integral; rewrite (proj2 Wf u Hu), (proj2 WJ u Hu); ring.
Qed.

Lemma minus_wave f : wave f -> wave (minus_integral f).
Proof.
  intros Wf; pose proof (integral_wave f Wf) as WJ; split.
  - intros u; apply (continuous_minus (V := R_NormedModule)); [apply Wf|apply WJ].
  - intros u Hu; unfold minus_integral; rewrite (proj2 Wf u Hu), (proj2 WJ u Hu); ring.
Qed.

Lemma integral_ext f g u : (forall x, f x = g x) -> integral f u = integral g u.
Proof. intros E; unfold integral; f_equal; apply RInt_ext; intros; apply E. Qed.

Lemma both_ways f u : wave f -> minus_integral (plus_integral f) u = plus_integral (minus_integral f) u.
Proof.
  intros Wf; pose proof (wave_integrable f 0 u Wf) as I1.
  pose proof (wave_integrable (integral f) 0 u (integral_wave f Wf)) as I2.
  pose proof (RInt_plus (V := R_CompleteNormedModule) f (integral f) 0 u I1 I2) as P.
  pose proof (RInt_minus (V := R_CompleteNormedModule) f (integral f) 0 u I1 I2) as M.
  unfold plus, minus, opp in P, M; simpl in P, M.
  assert (P' : integral (plus_integral f) u = integral f u + integral (integral f) u)
    by (unfold integral at 1; unfold plus_integral; rewrite P; unfold integral; ring).
  assert (M' : integral (minus_integral f) u = integral f u - integral (integral f) u).
  { unfold integral at 1; unfold minus_integral.
    rewrite (RInt_ext _ (fun x => f x + - integral f x)) by (intros; unfold Rminus; reflexivity).
    transitivity (/ 2 * (RInt f 0 u + - RInt (integral f) 0 u));
      [f_equal; exact M|unfold integral; ring]. }
  transitivity (plus_integral f u - integral (plus_integral f) u); [reflexivity|]; rewrite P'.
  transitivity (minus_integral f u + integral (minus_integral f) u); [rewrite M'|reflexivity].
  unfold plus_integral, minus_integral; ring.
Qed.

Fixpoint iterated {A} (n : nat) (f : A -> A) (a : A) : A :=
  match n with O => a | S m => f (iterated m f a) end.

Definition first_wave (u : R) : R := plus_part (exp (u / 2) - exp (- u / 2)).

Definition waves (k m : nat) : R -> R :=
  iterated k plus_integral (iterated m minus_integral first_wave).

Lemma first_wave_wave : wave first_wave.
Proof.
  split.
  - intros u; apply continuous_ext with
      (f := fun u => scal (/ 2) (plus (exp (u / 2) - exp (- u / 2)) (Rabs (exp (u / 2) - exp (- u / 2))))).
    { intros t; unfold first_wave; rewrite plus_part_abs; reflexivity. }
    assert (C : continuous (fun u => exp (u / 2) - exp (- u / 2)) u)
      by (apply (ex_derive_continuous (V := R_NormedModule)); auto_derive; exact I).
    apply (continuous_scal_r (V := R_NormedModule)), (continuous_plus (V := R_NormedModule));
      [exact C|].
    apply (continuous_comp (fun u => exp (u / 2) - exp (- u / 2)) Rabs); [exact C|apply continuous_Rabs].
  - intros u Hu; apply plus_part_0; assert (exp (u / 2) <= exp (- u / 2)) by (apply exp_le; lra); lra.
Qed.

Lemma iterated_wave n f g : (forall h, wave h -> wave (f h)) -> wave g -> wave (iterated n f g).
Proof. intros Hf Hg; induction n as [|n IH]; [exact Hg|apply Hf, IH]. Qed.

Lemma waves_wave k m : wave (waves k m).
Proof.
  apply iterated_wave; [apply plus_wave|apply iterated_wave; [apply minus_wave|apply first_wave_wave]].
Qed.

Lemma waves_up k m u : plus_integral (waves k m) u = waves (S k) m u.
Proof. reflexivity. Qed.

Lemma waves_down k m u : minus_integral (waves k m) u = waves k (S m) u.
Proof.
  unfold waves; cbn [iterated]; set (f := iterated m minus_integral first_wave).
  assert (Wf : wave f) by (apply iterated_wave; [apply minus_wave|apply first_wave_wave]).
  clearbody f; revert u; induction k as [|k IH]; intros u; [reflexivity|]; cbn [iterated].
  rewrite both_ways by (apply iterated_wave; [apply plus_wave|exact Wf]).
  unfold plus_integral at 1; rewrite IH, (integral_ext _ _ u IH); reflexivity.
Qed.

Lemma first_integral u : 0 <= u -> integral first_wave u = exp (u / 2) + exp (- u / 2) - 2.
Proof.
  intros Hu; unfold integral; rewrite (RInt_ext _ (fun z => exp (z / 2) - exp (- z / 2))).
  - rewrite (is_RInt_unique _ _ _ (minus (2 * exp (u / 2) + 2 * exp (- u / 2))
                                     (2 * exp (0 / 2) + 2 * exp (- 0 / 2)))).
    + unfold minus, plus, opp; simpl; replace (0 / 2) with 0 by field.
      replace (- 0 / 2) with 0 by field; rewrite exp_0; field.
    + apply (is_RInt_derive (fun z => 2 * exp (z / 2) + 2 * exp (- z / 2))).
      * intros z _; auto_derive; [exact I|unfold Rdiv; field].
      * intros z _; apply (ex_derive_continuous (V := R_NormedModule)); auto_derive; exact I.
  - intros z; rewrite Rmin_left, Rmax_right by exact Hu; intros Hz; unfold first_wave.
    apply plus_part_id; assert (exp (- z / 2) <= exp (z / 2)) by (apply exp_le; lra); lra.
Qed.

Lemma waves_one u : waves 1 0 u = plus_part (2 * exp (u / 2) - 2).
Proof.
  destruct (Rle_dec u 0) as [L|L].
  - rewrite (proj2 (waves_wave 1 0) u L); symmetry; apply plus_part_0.
    assert (exp (u / 2) <= exp 0) by (apply exp_le; lra); rewrite exp_0 in *; lra.
  - unfold waves; cbn [iterated]; unfold plus_integral; rewrite first_integral by lra; unfold first_wave.
    assert (exp (- u / 2) <= exp (u / 2)) by (apply exp_le; lra).
    assert (exp 0 <= exp (u / 2)) by (apply exp_le; lra); rewrite exp_0 in *.
    rewrite !plus_part_id by lra; ring.
Qed.

(** ** Choices of signs *)

(** The sum of the signed shifts, and how many of the signs are + and -. *)
Definition choice := (R * nat * nat)%type.

Definition up (e : R) (c : choice) : choice := let '(t, k, m) := c in (t + e, S k, m).
Definition down (e : R) (c : choice) : choice := let '(t, k, m) := c in (t - e, k, S m).

Fixpoint choices (shifts : list R) : list choice :=
  match shifts with
  | [] => [(0, O, O)]
  | e :: rest => map (up e) (choices rest) ++ map (down e) (choices rest)
  end.

Definition value_at (x : R) (c : choice) : R := let '(t, k, m) := c in waves k m (t - x).

Fixpoint factor (shifts : list R) : R :=
  match shifts with [] => 1 | e :: rest => exp (- e / 2) / 2 * factor rest end.

(** exp(-x/2) times the profile at exp(x). *)
Definition composition (shifts : list R) (x : R) : R :=
  factor shifts * total (choices shifts) (value_at x).

Lemma factor_pos shifts : 0 < factor shifts.
Proof.
  induction shifts as [|e l IH]; simpl; [lra|]; pose proof (exp_pos (- e / 2)).
  apply Rmult_lt_0_compat; lra.
Qed.

Lemma total_map' {A B} (f : A -> B) (l : list A) g : total (map f l) g = total l (fun a => g (f a)).
Proof. induction l as [|a l IH]; simpl; [reflexivity|rewrite IH; reflexivity]. Qed.

(** One step more, from any function. *)
Definition stepped (e : R) (g : R -> R) (x : R) : R :=
  exp (- e / 2) / 2 * (g (x - e) + g (x + e) + / 2 * RInt g (x - e) (x + e)).

Lemma composition_continuous shifts x : continuous (composition shifts) x.
Proof.
  apply (continuous_scal_r (V := R_NormedModule)).
  induction (choices shifts) as [|[[t k] m] l IH]; cbn [total].
  - apply continuous_const.
  - apply (continuous_plus (V := R_NormedModule)); [|exact IH]; unfold value_at.
    apply (continuous_comp (fun x => t - x) (waves k m)); [|apply waves_wave].
    apply (continuous_minus (V := R_NormedModule)); [apply continuous_const|apply continuous_id].
Qed.

Lemma is_RInt_mirrored f t a b :
  wave f -> is_RInt (fun y => f (t - y)) a b (2 * (integral f (t - a) - integral f (t - b))).
Proof.
  intros Wf; pose proof (wave_integrable f (t - a) (t - b) Wf) as I.
  apply (RInt_correct (V := R_CompleteNormedModule)) in I.
  pose proof (RInt_Chasles (V := R_CompleteNormedModule) f 0 (t - a) (t - b)
                (wave_integrable f _ _ Wf) (wave_integrable f _ _ Wf)) as C.
  unfold plus in C; simpl in C.
  replace (2 * (integral f (t - a) - integral f (t - b))) with (-1 * RInt f (t - a) (t - b))
    by (unfold integral; lra).
  apply is_RInt_ext with (f := fun y => -1 * (-1 * f (-1 * y + t))).
  { intros y _; change (-1 * (-1 * f (-1 * y + t)) = f (t - y)).
    replace (-1 * y + t) with (t - y) by ring; ring. }
  apply (is_RInt_scal (V := R_NormedModule) (fun y => -1 * f (-1 * y + t)) a b (-1)).
  apply (is_RInt_comp_lin (V := R_NormedModule) f (-1) t a b).
  replace (-1 * a + t) with (t - a) by ring; replace (-1 * b + t) with (t - b) by ring; exact I.
Qed.

(** A step more doubles the choices. *)
Theorem composition_step e shifts x :
  composition (e :: shifts) x = stepped e (composition shifts) x.
Proof.
  unfold composition at 1; cbn [factor choices]; unfold stepped.
  set (inner := fun (z : R) (c : choice) => let '(t, k, m) := c in integral (waves k m) (t - z)).
  set (l := choices shifts).
  assert (R : RInt (composition shifts) (x - e) (x + e)
              = factor shifts * (2 * (total l (inner (x - e)) - total l (inner (x + e))))).
  { rewrite <- total_minus, <- total_scal; apply is_RInt_unique, (is_RInt_scal (V := R_NormedModule)).
    fold l; induction l as [|[[t k] m] l IH]; cbn [total].
    - pose proof (is_RInt_const (V := R_NormedModule) (x - e) (x + e) 0) as C.
      unfold scal in C; simpl in C; unfold mult in C; simpl in C; rewrite Rmult_0_r in C; exact C.
    - apply (is_RInt_plus (V := R_NormedModule)); [|exact IH].
      apply (is_RInt_mirrored (waves k m) t), waves_wave. }
  assert (Up : total l (fun c => value_at x (up e c)) = total l (value_at (x - e)) + total l (inner (x - e))).
  { rewrite <- total_plus; apply total_ext; intros [[t k] m] _; unfold value_at, up, inner.
    rewrite <- waves_up; unfold plus_integral.
    replace (t + e - x) with (t - (x - e)) by ring; reflexivity. }
  assert (Down : total l (fun c => value_at x (down e c)) = total l (value_at (x + e)) - total l (inner (x + e))).
  { rewrite <- total_minus; apply total_ext; intros [[t k] m] _; unfold value_at, down, inner.
    rewrite <- waves_down; unfold minus_integral.
    replace (t - e - x) with (t - (x + e)) by ring; reflexivity. }
  rewrite R; unfold composition; rewrite total_app, !total_map', Up, Down; fold l; field.
Qed.

(** ** The order of steps does not matter *)

Lemma stepped_ext e g g' x : (forall y, g y = g' y) -> stepped e g x = stepped e g' x.
Proof. intros E; unfold stepped; rewrite !E, (RInt_ext g g') by (intros; apply E); reflexivity. Qed.

Lemma composition_swap d e l x : composition (d :: e :: l) x = composition (e :: d :: l) x.
Proof.
  unfold composition; cbn [factor choices]; f_equal; [ring|].
  rewrite !map_app, !map_map, !total_app, !total_map'.
  assert (Swap : forall f g : choice -> choice, (forall c, value_at x (f c) = value_at x (g c)) ->
            total (choices l) (fun c => value_at x (f c)) = total (choices l) (fun c => value_at x (g c)))
    by (intros f g E; apply total_ext; intros; apply E).
  rewrite (Swap (fun c => up d (up e c)) (fun c => up e (up d c))).
  2:{ intros [[t k] m]; unfold up, value_at; f_equal; ring. }
  rewrite (Swap (fun c => up d (down e c)) (fun c => down e (up d c))).
  2:{ intros [[t k] m]; unfold up, down, value_at; f_equal; ring. }
  rewrite (Swap (fun c => down d (up e c)) (fun c => up e (down d c))).
  2:{ intros [[t k] m]; unfold up, down, value_at; f_equal; ring. }
  rewrite (Swap (fun c => down d (down e c)) (fun c => down e (down d c))).
  2:{ intros [[t k] m]; unfold down, value_at; f_equal; ring. }
  ring.
Qed.

Lemma composition_permuted l l' x : Permutation l l' -> composition l x = composition l' x.
Proof.
  intros P; revert x; induction P as [|e l l' _ IH|d e l|l l' l'' _ IH _ IH']; intros x.
  - reflexivity.
  - rewrite !composition_step; apply stepped_ext, IH.
  - apply composition_swap.
  - rewrite IH; apply IH'.
Qed.

(** ** The profile *)

Definition composed_profile (shifts : list R) (a b : R) : R :=
  if Rle_dec a 0 then 0 else if Rle_dec b 0 then a
  else sqrt (a * b) * composition shifts (ln (b / a)).

Lemma composed_zero l b : composed_profile l 0 b = 0.
Proof. unfold composed_profile; destruct (Rle_dec 0 0); lra. Qed.

Lemma composed_all l a : 0 <= a -> composed_profile l a 0 = a.
Proof.
  intros Ha; unfold composed_profile; destruct (Rle_dec a 0); [lra|].
  destruct (Rle_dec 0 0); lra.
Qed.

Lemma composed_inside l a b :
  0 < a -> 0 < b -> composed_profile l a b = sqrt (a * b) * composition l (ln (b / a)).
Proof.
  intros Ha Hb; unfold composed_profile; destruct (Rle_dec a 0); [lra|].
  destruct (Rle_dec b 0); lra.
Qed.

Lemma composed_scal l c a b :
  0 <= c -> 0 <= a -> 0 <= b -> composed_profile l (c * a) (c * b) = c * composed_profile l a b.
Proof.
  intros [Hc|<-] Ha Hb; [|rewrite !Rmult_0_l, composed_zero; ring].
  destruct Ha as [Ha|<-]; [|rewrite Rmult_0_r, !composed_zero; ring].
  destruct Hb as [Hb|<-]; [|rewrite Rmult_0_r, !composed_all by nra; ring].
  assert (0 < c * a) by nra; assert (0 < c * b) by nra.
  rewrite !composed_inside by assumption.
  replace (c * b / (c * a)) with (b / a) by (field; lra).
  replace (c * a * (c * b)) with (c * c * (a * b)) by ring.
  rewrite sqrt_mult_alt, sqrt_square by nra; ring.
Qed.

Section Step.

Context {A : Type} (o : list A) (p q : A -> R).
Hypotheses (Dp : distribution o p) (Dq : distribution o q).

(** What an outcome contributes at the weights exp(-x/2), exp(x/2). *)
Definition contributed (l : list R) (y : A) (x : R) : R :=
  if Rle_dec (p y) 0 then 0 else if Rle_dec (q y) 0 then exp (- x / 2) * p y
  else sqrt (p y * q y) * composition l (x + ln (q y / p y)).

Lemma contributed_continuous l y x : continuous (contributed l y) x.
Proof.
  unfold contributed; destruct (Rle_dec (p y) 0); [apply continuous_const|].
  destruct (Rle_dec (q y) 0).
  - apply (ex_derive_continuous (V := R_NormedModule)); auto_derive; exact I.
  - apply (continuous_scal_r (V := R_NormedModule)).
    apply (continuous_comp (fun x => x + ln (q y / p y)) (composition l)); [|apply composition_continuous].
    apply (continuous_plus (V := R_NormedModule)); [apply continuous_id|apply continuous_const].
Qed.

Lemma contributed_step e l y x : contributed (e :: l) y x = stepped e (contributed l y) x.
Proof.
  unfold contributed at 1; unfold stepped.
  destruct (Rle_dec (p y) 0) as [P|P].
  { unfold contributed; destruct (Rle_dec (p y) 0); [|contradiction].
    rewrite RInt_const; unfold scal; simpl; unfold mult; simpl; ring. }
  destruct (Rle_dec (q y) 0) as [Q|Q].
  - unfold contributed; destruct (Rle_dec (p y) 0); [contradiction|].
    destruct (Rle_dec (q y) 0); [|contradiction].
    assert (R : RInt (fun x0 => exp (- x0 / 2) * p y) (x - e) (x + e)
                = -2 * exp (- (x + e) / 2) * p y - -2 * exp (- (x - e) / 2) * p y).
    { apply is_RInt_unique, (is_RInt_derive (fun z => -2 * exp (- z / 2) * p y)).
      - intros z _; auto_derive; [exact I|unfold Rdiv; field].
      - intros z _; apply (ex_derive_continuous (V := R_NormedModule)); auto_derive; exact I. }
    rewrite R.
    replace (- (x + e) / 2) with (- x / 2 + - e / 2) by field.
    replace (- (x - e) / 2) with (- x / 2 + e / 2) by field; rewrite !exp_plus.
    assert (E : exp (- e / 2) * exp (e / 2) = 1)
      by (rewrite <- exp_plus; replace (- e / 2 + e / 2) with 0 by field; apply exp_0).
    replace (exp (- e / 2) / 2 * (exp (- x / 2) * exp (e / 2) * p y + exp (- x / 2) * exp (- e / 2) * p y
      + / 2 * (-2 * (exp (- x / 2) * exp (- e / 2)) * p y - -2 * (exp (- x / 2) * exp (e / 2)) * p y)))
      with (exp (- e / 2) * exp (e / 2) * (exp (- x / 2) * p y)) by field.
    rewrite E; ring.
  - rewrite composition_step; unfold stepped.
    set (s := ln (q y / p y)); set (c := sqrt (p y * q y)).
    assert (E : forall z, contributed l y z = c * composition l (z + s)).
    { intros z; unfold contributed; destruct (Rle_dec (p y) 0); [contradiction|].
      destruct (Rle_dec (q y) 0); [contradiction|reflexivity]. }
    rewrite !E.
    assert (R : RInt (contributed l y) (x - e) (x + e)
                = c * RInt (composition l) (x + s - e) (x + s + e)).
    { apply is_RInt_unique, is_RInt_ext with (f := fun z => c * composition l (z + s)).
      { intros z _; symmetry; apply E. }
      apply (is_RInt_scal (V := R_NormedModule)).
      apply is_RInt_ext with (f := fun z => scal 1 (composition l (1 * z + s))).
      { intros z _; change (1 * composition l (1 * z + s) = composition l (z + s)).
        rewrite !Rmult_1_l; reflexivity. }
      apply (is_RInt_comp_lin (V := R_NormedModule) (composition l) 1 s).
      replace (1 * (x - e) + s) with (x + s - e) by ring; replace (1 * (x + e) + s) with (x + s + e) by ring.
      apply (RInt_correct (V := R_CompleteNormedModule)), (ex_RInt_continuous (V := R_CompleteNormedModule)).
      intros; apply composition_continuous. }
    rewrite R; replace (x - e + s) with (x + s - e) by ring; replace (x + e + s) with (x + s + e) by ring; ring.
Qed.

Lemma total_contributed_step e l x :
  total o (fun y => contributed (e :: l) y x) = stepped e (fun z => total o (fun y => contributed l y z)) x.
Proof.
  rewrite (total_ext _ _ (fun y => stepped e (contributed l y) x)) by (intros; apply contributed_step).
  unfold stepped; rewrite total_scal, !total_plus, total_scal; do 3 f_equal.
  symmetry; apply is_RInt_unique, RInt_total; intros y _.
  apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros; apply contributed_continuous.
Qed.

Lemma stepped_le e g g' x :
  0 <= e -> (forall y, continuous g y) -> (forall y, continuous g' y) -> (forall y, g y <= g' y) ->
  stepped e g x <= stepped e g' x.
Proof.
  intros He C C' H; unfold stepped; apply Rmult_le_compat_l.
  - pose proof (exp_pos (- e / 2)); lra.
  - pose proof (H (x - e)); pose proof (H (x + e)).
    assert (RInt g (x - e) (x + e) <= RInt g' (x - e) (x + e)); [|lra].
    apply RInt_le; [lra| | |intros; apply H];
      apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros; [apply C|apply C'].
Qed.

Variable d : R.
Hypotheses (Hd : 0 <= d) (B : below_profile o p q (laplace_profile (exp (- d / 2)))).

(** Of one step: the profile that is known. *)
Lemma of_one_step x : composition [d] x = laplace_profile (exp (- d / 2)) (exp (- x / 2)) (exp (x / 2)).
Proof.
  assert (Minus : forall u, waves 0 1 u = plus_part (2 - 2 * exp (- u / 2))).
  { intros u; destruct (Rle_dec u 0) as [L|L].
    - rewrite (proj2 (waves_wave 0 1) u L); symmetry; apply plus_part_0.
      assert (exp 0 <= exp (- u / 2)) by (apply exp_le; lra); rewrite exp_0 in *; lra.
    - unfold waves; cbn [iterated]; unfold minus_integral; rewrite first_integral by lra; unfold first_wave.
      assert (exp (- u / 2) <= exp (u / 2)) by (apply exp_le; lra).
      assert (exp (- u / 2) <= exp 0) by (apply exp_le; lra); rewrite exp_0 in *.
      rewrite !plus_part_id by lra; ring. }
  unfold composition; cbn [factor choices map up down total value_at app].
  rewrite waves_one, Minus, Rplus_0_l, Rmult_1_r; set (r := exp (- d / 2)).
  assert (Pr : 0 < r) by apply exp_pos; pose proof (exp_pos (x / 2)) as Px.
  replace (exp (- x / 2)) with (/ exp (x / 2)) by (rewrite <- exp_Ropp; f_equal; field).
  replace (exp ((d - x) / 2)) with (/ r * / exp (x / 2)).
  2:{ unfold r; rewrite <- !exp_Ropp, <- exp_plus; f_equal; field. }
  replace (exp (- (0 - d - x) / 2)) with (/ r * exp (x / 2)).
  2:{ unfold r; rewrite <- exp_Ropp, <- exp_plus; f_equal; field. }
  set (y := exp (x / 2)) in *; assert (Iy : 0 < / y) by (apply Rinv_0_lt_compat, Px).
  replace (2 * (/ r * / y) - 2) with (2 / r * (/ y - r)) by (field; lra).
  replace (2 - 2 * (/ r * y)) with (2 / r * (r - y)) by (field; lra).
  rewrite !plus_part_scal by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, Pr]).
  replace (r / 2 * (2 / r * plus_part (/ y - r) + (2 / r * plus_part (r - y) + 0)))
    with (plus_part (/ y - r) + plus_part (r - y)) by (field; lra).
  unfold laplace_profile, common_part; rewrite Rinv_l, sqrt_1, Rmult_1_r by lra.
  assert (R1 : r <= 1) by (unfold r; rewrite <- exp_0; apply exp_le; lra).
  assert (One : y * / y = 1) by (field; lra).
  unfold plus_part, Rmax, Rmin.
  destruct (Rle_dec 0 (/ y - r)), (Rle_dec 0 (r - y)), (Rle_dec (/ y) y), (Rle_dec _ r); nra.
Qed.

(** Before any other steps: a step more. *)
Lemma total_contributed l x :
  (forall e, In e l -> 0 <= e) -> total o (fun y => contributed l y x) <= composition (d :: l) x.
Proof.
  revert x; induction l as [|e l IH]; intros x Hl.
  - rewrite of_one_step; eapply Rle_trans; [|apply B; left; apply exp_pos].
    right; apply total_ext; intros y Iy; unfold contributed.
    pose proof (proj1 Dp y Iy) as Py; pose proof (proj1 Dq y Iy) as Qy; pose proof (exp_pos (- x / 2)).
    pose proof (exp_pos (x / 2)).
    destruct (Rle_dec (p y) 0) as [P|P].
    { replace (p y) with 0 by lra; symmetry; apply plus_part_0; nra. }
    destruct (Rle_dec (q y) 0) as [Q|Q].
    { replace (q y) with 0 by lra; rewrite Rmult_0_r, Rminus_0_r, plus_part_id by nra; reflexivity. }
    unfold composition; cbn [factor choices total value_at]; unfold waves; cbn [iterated].
    rewrite Rmult_1_l, Rplus_0_r; unfold first_wave; rewrite <- plus_part_scal by apply sqrt_pos.
    f_equal; rewrite Rmult_minus_distr_l.
    assert (Sp : sqrt (p y) * sqrt (p y) = p y) by (apply sqrt_sqrt; lra).
    assert (Sq : sqrt (q y) * sqrt (q y) = q y) by (apply sqrt_sqrt; lra).
    assert (Pp : 0 < sqrt (p y)) by (apply sqrt_lt_R0; lra).
    assert (Pq : 0 < sqrt (q y)) by (apply sqrt_lt_R0; lra).
    assert (Half : exp (ln (q y / p y) / 2) = sqrt (q y) / sqrt (p y)).
    { apply Rsqr_inj; [left; apply exp_pos|left; apply Rdiv_lt_0_compat; lra|]; unfold Rsqr.
      rewrite <- exp_plus; replace (ln (q y / p y) / 2 + ln (q y / p y) / 2) with (ln (q y / p y)) by field.
      rewrite exp_ln by (apply Rdiv_lt_0_compat; lra); rewrite <- Sp at 1; rewrite <- Sq at 1; field; lra. }
    assert (Half' : exp (- (ln (q y / p y) / 2)) = sqrt (p y) / sqrt (q y))
      by (rewrite exp_Ropp, Half; field; lra).
    rewrite sqrt_mult by lra.
    replace ((0 - (x + ln (q y / p y))) / 2) with (- x / 2 + - (ln (q y / p y) / 2)) by field.
    replace (- (0 - (x + ln (q y / p y))) / 2) with (x / 2 + ln (q y / p y) / 2) by field.
    rewrite !exp_plus, Half, Half'.
    transitivity (exp (- x / 2) * (sqrt (p y) * sqrt (p y)) - exp (x / 2) * (sqrt (q y) * sqrt (q y)));
      [field; lra|rewrite Sp, Sq; reflexivity].
  - rewrite total_contributed_step, composition_swap, composition_step.
    apply stepped_le; [apply Hl; left; reflexivity| |intros; apply composition_continuous|].
    + intros y; clear; induction o as [|a o' IHo]; cbn [total]; [apply continuous_const|].
      apply (continuous_plus (V := R_NormedModule)); [apply contributed_continuous|exact IHo].
    + intros y; apply IH; intros e' I'; apply Hl; right; exact I'.
Qed.

Theorem laplace_then_rest l a b :
  (forall e, In e l -> 0 <= e) -> 0 <= a -> 0 <= b ->
  total o (fun y => composed_profile l (a * p y) (b * q y)) <= composed_profile (d :: l) a b.
Proof.
  intros Hl [Ha|<-] Hb.
  2:{ rewrite composed_zero; right; apply total_zero; intros y _; rewrite Rmult_0_l; apply composed_zero. }
  destruct Hb as [Hb|<-].
  2:{ rewrite composed_all by lra; right.
      rewrite (total_ext _ _ (fun y => a * p y)), total_scal, (proj2 Dp); [ring|].
      intros y Iy; rewrite Rmult_0_l; apply composed_all, Rmult_le_pos; [lra|apply Dp, Iy]. }
  rewrite composed_inside by assumption; set (x := ln (b / a)).
  assert (Pr : 0 < sqrt (a * b)) by (apply sqrt_lt_R0, Rmult_lt_0_compat; assumption).
  assert (Half : sqrt (a * b) * exp (- x / 2) = a).
  { apply Rsqr_inj; [left; apply Rmult_lt_0_compat; [exact Pr|apply exp_pos]|lra|]; unfold Rsqr.
    replace (sqrt (a * b) * exp (- x / 2) * (sqrt (a * b) * exp (- x / 2)))
      with (sqrt (a * b) * sqrt (a * b) * (exp (- x / 2) * exp (- x / 2))) by ring.
    rewrite sqrt_sqrt, <- exp_plus by nra.
    replace (- x / 2 + - x / 2) with (- x) by field; unfold x.
    rewrite exp_Ropp, exp_ln by (apply Rdiv_lt_0_compat; assumption); field; lra. }
  eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|apply (total_contributed l x Hl)]].
  rewrite <- total_scal; right; apply total_ext; intros y Iy; unfold contributed.
  pose proof (proj1 Dp y Iy) as Py; pose proof (proj1 Dq y Iy) as Qy.
  destruct (Rle_dec (p y) 0) as [P|P].
  { replace (p y) with 0 by lra; rewrite Rmult_0_r, composed_zero; ring. }
  destruct (Rle_dec (q y) 0) as [Q|Q].
  { replace (q y) with 0 by lra; rewrite Rmult_0_r, composed_all by nra.
    rewrite <- Rmult_assoc, Half; reflexivity. }
  rewrite composed_inside by (apply Rmult_lt_0_compat; lra).
  replace (a * p y * (b * q y)) with (a * b * (p y * q y)) by ring.
  rewrite sqrt_mult, Rmult_assoc by nra; do 3 f_equal; unfold x.
  replace (b * q y / (a * p y)) with (b / a * (q y / p y)) by (field; lra).
  apply ln_mult; apply Rdiv_lt_0_compat; lra.
Qed.

End Step.

Lemma composed_covers l a b :
  (forall e, In e l -> 0 <= e) -> 0 <= a -> 0 <= b -> plus_part (a - b) <= composed_profile l a b.
Proof.
  assert (One : distribution [tt] (fun _ : unit => 1)) by (split; [intros u _; lra|simpl; ring]).
  induction l as [|e l IH]; intros Hl Ha Hb.
  - destruct Ha as [Ha|<-]; [|rewrite composed_zero; right; apply plus_part_0; lra].
    destruct Hb as [Hb|<-]; [|rewrite composed_all, plus_part_id by lra; lra].
    rewrite composed_inside by assumption; unfold composition; cbn [factor choices total value_at].
    unfold waves; cbn [iterated]; rewrite Rmult_1_l, Rplus_0_r; unfold first_wave.
    rewrite <- plus_part_scal by apply sqrt_pos; right; f_equal; rewrite Rmult_minus_distr_l.
    assert (Sp : sqrt a * sqrt a = a) by (apply sqrt_sqrt; lra).
    assert (Sq : sqrt b * sqrt b = b) by (apply sqrt_sqrt; lra).
    assert (Pp : 0 < sqrt a) by (apply sqrt_lt_R0; lra).
    assert (Pq : 0 < sqrt b) by (apply sqrt_lt_R0; lra).
    assert (Half : exp (ln (b / a) / 2) = sqrt b / sqrt a).
    { apply Rsqr_inj; [left; apply exp_pos|left; apply Rdiv_lt_0_compat; lra|]; unfold Rsqr.
      rewrite <- exp_plus; replace (ln (b / a) / 2 + ln (b / a) / 2) with (ln (b / a)) by field.
      rewrite exp_ln by (apply Rdiv_lt_0_compat; lra).
      transitivity (sqrt b * sqrt b / (sqrt a * sqrt a)); [rewrite Sp, Sq; reflexivity|field; lra]. }
    replace ((0 - ln (b / a)) / 2) with (- (ln (b / a) / 2)) by field.
    replace (- (0 - ln (b / a)) / 2) with (ln (b / a) / 2) by field.
    rewrite exp_Ropp, Half, sqrt_mult by lra.
    transitivity (sqrt a * sqrt a - sqrt b * sqrt b); [rewrite Sp, Sq; reflexivity|field; lra].
  - eapply Rle_trans; [apply IH; auto|]; [intros; apply Hl; right; assumption|].
    assert (Same : below_profile [tt] (fun _ : unit => 1) (fun _ => 1) (laplace_profile (exp (- e / 2)))).
    { intros u v Hu Hv; rewrite excess_diag by exact One.
      apply laplace_profile_ge; try assumption; left; apply exp_pos. }
    pose proof (laplace_then_rest [tt] (fun _ => 1) (fun _ => 1) One One e (Hl e (or_introl eq_refl)) Same
                  l a b (fun d I => Hl d (or_intror I)) Ha Hb) as S.
    cbn [total] in S; rewrite !Rmult_1_r, Rplus_0_r in S; exact S.
Qed.

(** ** A filter *)

Section Filter.

Context {A I : Type} (same : forall i j : I, {i = j} + {i <> j}).
Context (outcomes : list A -> list A) (law law' : list A -> A -> R).
Hypothesis laws : forall h, distribution (outcomes h) (law h).
Hypothesis laws' : forall h, distribution (outcomes h) (law' h).
Variable step : list A -> option I.
Hypothesis idle : forall h,
  step h = None -> forall y, In y (outcomes h) -> law h y = law' h y.
Variables (shift : I -> R) (steps : list I) (T : nat).
Hypothesis shifts_ok : forall i, In i steps -> 0 <= shift i.
Hypothesis dominated : forall h i, step h = Some i -> In i steps ->
  below_profile (outcomes h) (law h) (law' h) (laplace_profile (exp (- shift i / 2))).
Hypothesis within : forall h, In h (transcripts outcomes T) ->
  exists rest, Permutation (taken step h ++ rest) steps.

(** Laplace steps in an order that may depend on every message: the composition of them all. *)
Theorem laplace_filter :
  below_profile (transcripts outcomes T) (run law) (run law') (composed_profile (map shift steps)).
Proof.
  assert (Ok : forall l, incl l steps -> forall e, In e (map shift l) -> 0 <= e).
  { intros l Hl e J; apply in_map_iff in J as (i & <- & J); apply shifts_ok, Hl, J. }
  apply (steps_filter same outcomes law law' laws (fun h => proj1 (laws' h)) step idle steps T within
           (fun l => composed_profile (map shift l))).
  - intros l a b Hl Ha Hb; apply composed_covers; try assumption; apply Ok, Hl.
  - intros l c a b Hc Ha Hb; apply composed_scal; assumption.
  - intros l l' a b P Hl Ha Hb; unfold composed_profile.
    rewrite (composition_permuted _ _ _ (Permutation_map shift P)); apply Rle_refl.
  - intros h i l a b E Hl Ha Hb; cbn [map].
    apply laplace_then_rest; try assumption; [apply laws|apply laws'|apply shifts_ok, Hl; left; reflexivity| |].
    + apply dominated; [exact E|apply Hl; left; reflexivity].
    + apply Ok; intros j J; apply Hl; right; exact J.
Qed.

End Filter.
