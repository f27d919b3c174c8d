(** The loss of discrete Laplace noise on whole numbers that move by so many steps in l1. Along a path
    of single steps no law is more likely than the next by a factor above e^(1/b), and the weights of
    the laws between may be chosen: all before one step fall by that factor, all after it grow by it.
    So the profile is at most that of noise on one number that moves as far ([path_below]). In whole
    numbers, from enclosures of that profile at dots. *)

From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian Pure DiscreteLaplace Domination GaussianComposition
  Losses LossLists Enclosure LossEnclosures FixedPoint FixedGaussian SampledLoss PureLoss.
Import ListNotations.

(** ** As a program *)

Open Scope Z_scope.

(** The step of a path that a loss turns at, of n + 1. *)
Definition turn (n : Z) (scale x : Q) : Z :=
  Z.max 0 (Z.min n (Qfloor ((inject_Z (n + 1) - x * scale) / 2))).

(** Above the profile at exp(x), in units of 2^-p. *)
Definition geometric_height (p n : Z) (scale x : Q) : option Z :=
  let s := turn n scale x in
  let decay j := exp_of_rational p (- (inject_Z j / scale)) in
  let grown j := exp_of_rational p (x - inject_Z j / scale) in
  match decay s, decay (s + 1), decay 1, grown (n + 1 - s), grown (n - s) with
  | Some (l, u), Some (_, u'), Some (r, _), Some (a, _), Some (b, _) =>
      if 0 <=? r
      then Some (2 ^ p - l
                 + round_up ((Z.max 0 (u - a) + Z.max 0 (u' - b)) * 2 ^ p) (2 ^ p + r))
      else None
  | _, _, _, _, _ => None
  end.

(** Places below [z], descending: those about the losses k / scale, (k - 2) / scale, ..., between which
    the profile is linear. *)
Fixpoint places_below (number : nat) (k z : Z) (scale step : Q) : list Z :=
  match number with
  | O => []
  | S number' =>
      let x := (inject_Z k / scale / step)%Q in
      let high := Qceiling x in
      let low := Qfloor x in
      (if high <? z then [high] else []) ++ (if (low <? high) && (low <? z) then [low] else [])
        ++ places_below number' (k - 2) (Z.min z low) scale step
  end.

Fixpoint geometric_heights (w bits n : Z) (scale step : Q) (places : list Z) :
  option (list (Z * Z * Z)) :=
  match places with
  | [] => Some []
  | z :: rest =>
      let p := w + bits + guard in
      let x := (inject_Z z * step)%Q in
      match exp_of_rational p x, geometric_height p n scale x,
            geometric_heights w bits n scale step rest with
      | Some (l, _), Some f, Some known => Some ((z, Z.shiftr l (p - bits), shift_up f guard) :: known)
      | _, _, _ => None
      end
  end.

(** Nothing is lost. *)
Definition no_loss (w : Z) : whole_loss := {| first := 0; masses := [2 ^ w]; beyond := 0 |}.

(** One loss for both orders, of noise on what moves by [k]. *)
Definition geometric_loss (w bits : Z) (scale : Q) (k : Z) (step : Q) : option whole_loss :=
  if k <=? 0 then Some (no_loss w)
  else if k <=? most_dots then
    let top := Qceiling (inject_Z k / scale / step) + 1 in
    match geometric_heights w bits (k - 1) scale step
            (places_below (Z.to_nat (k + 1)) k top scale step) with
    | Some listed => loss_from w bits step listed
    | None => None
    end
  else None.

(** ** Along a path *)

Open Scope R_scope.

(** The profile of noise on one number that moves by n + 1, at the losses about one step of the path;
    [r] is the factor e^(-1/b). *)
Definition turning (r : R) (n s : nat) (a b : R) : R :=
  a * (1 - r ^ s)
  + (plus_part (a * r ^ s - b * r ^ (n + 1 - s)) + plus_part (a * r ^ (s + 1) - b * r ^ (n - s)))
    / (1 + r).

Fixpoint least (f : nat -> R) (n : nat) : R :=
  match n with O => f O | S m => Rmin (f (S m)) (least f m) end.

Lemma least_le f n s : (s <= n)%nat -> least f n <= f s.
Proof.
  induction n as [|n IH]; intros H; cbn [least]; [replace s with O by lia; lra|].
  destruct (Nat.eq_dec s (S n)) as [->|N]; [apply Rmin_l|].
  eapply Rle_trans; [apply Rmin_r|apply IH; lia].
Qed.

Lemma least_ge f n v : (forall s, (s <= n)%nat -> v <= f s) -> v <= least f n.
Proof.
  induction n as [|n IH]; intros H; cbn [least]; [apply H; lia|].
  apply Rmin_glb; [apply H; lia|apply IH; intros; apply H; lia].
Qed.

Definition geometric_profile (r : R) (k : nat) (a b : R) : R :=
  match k with O => plus_part (a - b) | S n => least (fun s => turning r n s a b) n end.

Section Path.

Context {A : Type} (l : list A) (law : nat -> A -> R) (r : R).
Hypothesis Hr : 0 < r <= 1.

Lemma odds_of_factor a b :
  odds_profile (/ r) a b = (plus_part (a - b * r) + plus_part (a * r - b)) / (1 + r).
Proof.
  unfold odds_profile.
  replace (a * / r - b) with (/ r * (a - b * r)) by (field; lra).
  replace (a - b * / r) with (/ r * (a * r - b)) by (field; lra).
  assert (0 < / r) by (apply Rinv_0_lt_compat; lra).
  rewrite !plus_part_scal by lra; field; lra.
Qed.

(** No outcome of the first [m] laws is more likely than of the next by more. *)
Definition steady (m : nat) : Prop :=
  (forall i, distribution l (law i)) /\
  forall i, (i < m)%nat -> within_odds l (law i) (law (S i)) (/ r).

Lemma step_below i m : steady m -> (i < m)%nat ->
  below_profile l (law i) (law (S i)) (fun a b => (plus_part (a - b * r) + plus_part (a * r - b)) / (1 + r)).
Proof.
  intros [D W] Hi a b Ha Hb; rewrite <- odds_of_factor.
  apply odds_dominate; try apply D; try assumption; apply W, Hi.
Qed.

(** Falling weights at the front ... *)
Lemma falling m s i q a b :
  steady m -> (i + s <= m)%nat -> 0 <= a ->
  excess l (law i) q a b <= a * (1 - r ^ s) + excess l (law (i + s)) q (a * r ^ s) b.
Proof.
  intros St; revert i a; induction s as [|s IH]; intros i a Hi Ha.
  - rewrite Nat.add_0_r; simpl; rewrite Rmult_1_r, Rminus_diag_eq, Rmult_0_r by reflexivity; lra.
  - eapply Rle_trans; [apply (excess_triangle l (law i) (law (S i)) q a (a * r) b)|].
    assert (P : 0 <= a * r) by nra.
    pose proof (step_below i m St ltac:(lia) a (a * r) Ha P) as One.  cbv beta in One.
    specialize (IH (S i) (a * r) ltac:(lia) P).
    replace (S i + s)%nat with (i + S s)%nat in IH by lia.
    rewrite (plus_part_0 (a * r - a * r)), (plus_part_id (a - a * r * r)) in One by nra.
    replace ((a - a * r * r + 0) / (1 + r)) with (a * (1 - r)) in One by (field; lra).
    cbn [pow]; replace (a * (r * r ^ s)) with (a * r * r ^ s) by ring.
    replace (a * (1 - r * r ^ s)) with (a * (1 - r) + a * r * (1 - r ^ s)) by ring; lra.
Qed.

(** ... growing ones at the end. *)
Lemma growing m t i p a b :
  steady m -> (i + t <= m)%nat -> 0 <= b ->
  excess l p (law (i + t)) a b <= excess l p (law i) a (b * r ^ t).
Proof.
  intros St; revert b; induction t as [|t IH]; intros b Hi Hb.
  - rewrite Nat.add_0_r; simpl; rewrite Rmult_1_r; lra.
  - assert (P : 0 <= b * r) by nra.
    eapply Rle_trans; [apply (excess_triangle l p (law (i + t)) (law (i + S t)) a (b * r) b)|].
    pose proof (step_below (i + t) m St ltac:(lia) (b * r) b P Hb) as One.  cbv beta in One.
    rewrite <- Nat.add_succ_r in One.
    rewrite (plus_part_0 (b * r - b * r)), (plus_part_0 (b * r * r - b)) in One by nra.
    specialize (IH (b * r) ltac:(lia) P); cbn [pow].
    replace (b * (r * r ^ t)) with (b * r * r ^ t) by ring.
    replace ((0 + 0) / (1 + r)) with 0 in One by (field; lra); lra.
Qed.

Theorem path_below n :
  steady (S n) -> below_profile l (law 0) (law (S n)) (geometric_profile r (S n)).
Proof.
  intros St a b Ha Hb; cbn [geometric_profile]; apply least_ge; intros s Hs; unfold turning.
  assert (Ps : 0 < r ^ s) by (apply pow_lt; lra).
  assert (Pt : 0 < r ^ (n - s)) by (apply pow_lt; lra).
  eapply Rle_trans; [apply (falling (S n) s 0 _ a b St ltac:(lia) Ha)|].
  apply Rplus_le_compat_l; rewrite Nat.add_0_l.
  replace (S n) with (S s + (n - s))%nat at 1 by lia.
  eapply Rle_trans; [apply (growing (S n) (n - s) (S s)); [exact St|lia|exact Hb]|].
  eapply Rle_trans; [apply (step_below s (S n) St ltac:(lia)); nra|].
  replace (n + 1 - s)%nat with (S (n - s)) by lia; replace (s + 1)%nat with (S s) by lia; cbn [pow].
  right; do 4 f_equal; ring.
Qed.

End Path.

Lemma geometric_profile_diag r k a b :
  0 < r <= 1 -> 0 <= a -> 0 <= b -> plus_part (a - b) <= geometric_profile r k a b.
Proof.
  intros Hr Ha Hb; destruct k as [|n]; [cbn [geometric_profile]; lra|].
  assert (One : distribution [tt] (fun _ : unit => 1)) by (split; [intros u _; lra|simpl; ring]).
  rewrite <- (excess_diag [tt] (fun _ : unit => 1) a b One).
  apply (path_below [tt] (fun _ _ => 1) r Hr n); [|exact Ha|exact Hb]; split; [intros _; exact One|].
  assert (1 <= / r) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  intros i _ y _; lra.
Qed.

(** ** Vectors of whole numbers *)

Definition l1 (d : nat) (u v : nat -> Z) : Z := fold_right (fun i n => (Z.abs (u i - v i) + n)%Z) 0%Z (seq 0 d).

Lemma l1_total d u v : total (seq 0 d) (fun i => IZR (Z.abs (u i - v i))) = IZR (l1 d u v).
Proof.
  unfold l1; induction (seq 0 d) as [|i s IH]; cbn [total fold_right]; [reflexivity|].
  rewrite IH, plus_IZR; reflexivity.
Qed.

(** A step towards [v]. *)
Lemma towards d u v : (0 < l1 d u v)%Z ->
  exists u', (l1 d u u' <= 1)%Z /\ (l1 d u' v = l1 d u v - 1)%Z.
Proof.
  unfold l1; intros H.
  assert (Ex : exists i, In i (seq 0 d) /\ (u i <> v i)%Z).
  { induction (seq 0 d) as [|i s IH]; cbn [fold_right] in H; [lia|].
    destruct (Z.eq_dec (u i) (v i)) as [E|N]; [|exists i; split; [left; reflexivity|exact N]].
    destruct IH as (j & J & N); [rewrite E, Z.sub_diag in H; simpl in H; exact H|].
    exists j; split; [right; exact J|exact N]. }
  destruct Ex as (i & I & N).
  set (u' := fun j => if Nat.eqb j i then (u j + Z.sgn (v j - u j))%Z else u j).
  assert (At : (Z.abs (u i - u' i) = 1 /\ Z.abs (u' i - v i) = Z.abs (u i - v i) - 1)%Z)
    by (unfold u'; rewrite Nat.eqb_refl; lia).
  assert (Off : forall j, j <> i -> u' j = u j)
    by (intros j J; unfold u'; destruct (Nat.eqb_spec j i); [contradiction|reflexivity]).
  exists u'; clear H; pose proof (seq_NoDup d 0) as U; clearbody u'.
  assert (Elsewhere : forall s, ~ In i s ->
            fold_right (fun j n => (Z.abs (u j - u' j) + n)%Z) 0%Z s = 0%Z /\
            fold_right (fun j n => (Z.abs (u' j - v j) + n)%Z) 0%Z s
            = fold_right (fun j n => (Z.abs (u j - v j) + n)%Z) 0%Z s).
  { induction s as [|j s IH]; intros F; cbn [fold_right]; [split; reflexivity|].
    destruct IH as [-> ->]; [intros J; apply F; right; exact J|].
    rewrite (Off j) by (intros ->; apply F; left; reflexivity); lia. }
  induction (seq 0 d) as [|j s IH]; [destruct I|]; inversion U as [|? ? F U']; cbn [fold_right].
  destruct I as [->|I].
  - destruct (Elsewhere s F) as [-> ->]; lia.
  - destruct (IH I U') as [L1 L2].
    rewrite (Off j) by (intros ->; contradiction); split; [lia|rewrite L2; lia].
Qed.

Lemma path_of_steps d n u v : (l1 d u v <= Z.of_nat (S n))%Z ->
  exists w : nat -> nat -> Z, w O = u /\ w (S n) = v /\ forall i, (l1 d (w i) (w (S i)) <= 1)%Z.
Proof.
  assert (Zero : forall x, l1 d x x = 0%Z).
  { intros x; unfold l1; induction (seq 0 d) as [|i s IH]; cbn [fold_right]; [reflexivity|].
    rewrite IH, Z.sub_diag; reflexivity. }
  revert u; induction n as [|n IH]; intros u H.
  - exists (fun i => match i with O => u | S _ => v end); split; [reflexivity|split; [reflexivity|]].
    intros [|i]; [exact H|rewrite Zero; lia].
  - assert (Next : exists u', (l1 d u u' <= 1)%Z /\ (l1 d u' v <= Z.of_nat (S n))%Z).
    { destruct (Z_le_gt_dec (l1 d u v) (Z.of_nat (S n))) as [L|G].
      - exists u; rewrite Zero; split; [lia|exact L].
      - destruct (towards d u v ltac:(lia)) as (u' & L1 & L2); exists u'; split; [exact L1|lia]. }
    destruct Next as (u' & L1 & L2); destruct (IH u' L2) as (w & W0 & W1 & Ws).
    exists (fun i => match i with O => u | S j => w j end); split; [reflexivity|split; [exact W1|]].
    intros [|i]; [rewrite W0; exact L1|apply Ws].
Qed.

Theorem vector_geometric_profile (d : nat) (cuts : list (Rbar * Rbar) -> list R) (u v : nat -> Z) b k :
  0 < b -> (forall h, ascending m_infty (cuts h)) -> (l1 d u v <= Z.of_nat k)%Z ->
  below_profile (transcripts (fun h => cells m_infty (cuts h)) d)
    (geometric_vector (fun x => x) b u) (geometric_vector (fun x => x) b v)
    (geometric_profile (exp (- / b)) k).
Proof.
  intros B Up H; set (l := transcripts _ d).
  assert (D : forall x, distribution l (geometric_vector (fun y => y) b x))
    by (intros x; apply geometric_vector_distribution; assumption).
  assert (S : 0 < / b) by (apply Rinv_0_lt_compat, B).
  assert (Hr : 0 < exp (- / b) <= 1)
    by (split; [apply exp_pos|rewrite <- exp_0; apply exp_le; lra]).
  assert (Sym : forall x y, l1 d x y = l1 d y x).
  { intros x y; unfold l1; induction (seq 0 d) as [|i s IH]; cbn [fold_right]; [reflexivity|].
    rewrite IH; lia. }
  assert (Near : forall m x y, (l1 d x y <= m)%Z -> forall a, In a l ->
            geometric_vector (fun z => z) b x a <= exp (IZR m / b) * geometric_vector (fun z => z) b y a).
  { intros m x y L a I.
    apply (vector_geometric_pure (fun x y : nat -> Z => (l1 d x y <= m)%Z) (fun z => z) b (IZR m) d cuts B Up);
      [|exact L|exact I].
    intros x' y' L'; rewrite l1_total; apply IZR_le, L'. }
  destruct k as [|n].
  - intros a c Ha Hc; cbn [geometric_profile].
    assert (Same : forall y, In y l -> geometric_vector (fun z => z) b v y = geometric_vector (fun z => z) b u y).
    { intros y I; pose proof (Near 0%Z u v H y I) as N1.
      rewrite Sym in H; pose proof (Near 0%Z v u H y I) as N2.
      replace (0 / b) with 0 in N1, N2 by (unfold Rdiv; ring); rewrite exp_0 in N1, N2; lra. }
    right; rewrite <- (excess_diag l _ a c (D u)); apply total_ext; intros y I; rewrite (Same y I); reflexivity.
  - destruct (path_of_steps d n u v H) as (w & <- & <- & W).
    apply (path_below l (fun i => geometric_vector (fun z => z) b (w i)) _ Hr); split; [intros i; apply D|].
    intros i _ y I.
    assert (E : / exp (- / b) = exp (1 / b)) by (rewrite exp_Ropp, Rinv_inv; f_equal; field; lra).
    rewrite E; split; [apply (Near 1%Z); [apply W|exact I]|].
    apply (Near 1%Z); [rewrite Sym; apply W|exact I].
Qed.

(** ** The program *)

Section Sound.

Variables (scale : Q) (b : R).
Hypotheses (Hb : 0 < b) (Eb : Q2R scale = b).

Lemma decay_power m : exp (- / b) ^ m = exp (- (INR m / b)).
Proof.
  induction m as [|m IH]; [simpl; unfold Rdiv; rewrite Rmult_0_l, Ropp_0, exp_0; reflexivity|].
  cbn [pow]; rewrite IH, <- exp_plus, S_INR; f_equal; field; lra.
Qed.

Lemma decay_bounds p j l u :
  (0 <= p)%Z -> (0 <= j)%Z -> exp_of_rational p (- (inject_Z j / scale)) = Some (l, u) ->
  IZR l / unit_of p <= exp (- / b) ^ Z.to_nat j <= IZR u / unit_of p.
Proof.
  intros Hp Hj E; apply exp_of_rational_sound in E; [|exact Hp].
  rewrite Q2R_opp, Q2R_div, Q2R_integer, Eb in E by (rewrite Eb; lra).
  rewrite decay_power, INR_IZR_INZ, Z2Nat.id by exact Hj; exact E.
Qed.

Lemma grown_bounds p x j l u :
  (0 <= p)%Z -> (0 <= j)%Z -> exp_of_rational p (x - inject_Z j / scale) = Some (l, u) ->
  IZR l / unit_of p <= exp (Q2R x) * exp (- / b) ^ Z.to_nat j.
Proof.
  intros Hp Hj E; apply exp_of_rational_sound in E; [|exact Hp].
  rewrite Q2R_minus, Q2R_div, Q2R_integer, Eb in E by (rewrite Eb; lra).
  rewrite decay_power, INR_IZR_INZ, Z2Nat.id, <- exp_plus by exact Hj; apply E.
Qed.

Lemma geometric_height_sound p n x f :
  (0 <= p)%Z -> (0 <= n)%Z -> geometric_height p n scale x = Some f ->
  geometric_profile (exp (- / b)) (Z.to_nat (n + 1)) 1 (exp (Q2R x)) <= IZR f / unit_of p.
Proof.
  intros Hp Hn; unfold geometric_height; cbv zeta; set (s := turn n scale x).
  assert (Hs : (0 <= s <= n)%Z) by (unfold s, turn; lia).
  destruct (exp_of_rational p (- (inject_Z s / scale))) as [[l u]|] eqn:E1; [|discriminate].
  destruct (exp_of_rational p (- (inject_Z (s + 1) / scale))) as [[l2 u2]|] eqn:E2; [|discriminate].
  destruct (exp_of_rational p (- (inject_Z 1 / scale))) as [[q u3]|] eqn:E3; [|discriminate].
  destruct (exp_of_rational p (x - inject_Z (n + 1 - s) / scale)) as [[c u4]|] eqn:E4; [|discriminate].
  destruct (exp_of_rational p (x - inject_Z (n - s) / scale)) as [[d u5]|] eqn:E5; [|discriminate].
  destruct (0 <=? q)%Z eqn:Q; [|discriminate]; apply Z.leb_le in Q; intros H; injection H as <-.
  apply decay_bounds in E1, E2, E3; try lia; apply grown_bounds in E4, E5; try lia.
  pose proof (unit_pos p Hp) as P; assert (I : 0 < / unit_of p) by (apply Rinv_0_lt_compat, P).
  assert (PZ : (0 < 2 ^ p)%Z) by (apply Z.pow_pos_nonneg; lia).
  replace (Z.to_nat 1) with 1%nat in E3 by reflexivity; rewrite pow_1 in E3.
  replace (Z.to_nat (n + 1)) with (S (Z.to_nat n)) by lia; cbn [geometric_profile].
  eapply Rle_trans; [apply least_le with (s := Z.to_nat s); lia|]; unfold turning.
  replace (Z.to_nat n + 1 - Z.to_nat s)%nat with (Z.to_nat (n + 1 - s)) by lia.
  replace (Z.to_nat s + 1)%nat with (Z.to_nat (s + 1)) by lia.
  replace (Z.to_nat n - Z.to_nat s)%nat with (Z.to_nat (n - s)) by lia.
  set (r := exp (- / b)) in *; set (y := exp (Q2R x)) in *; rewrite !Rmult_1_l.
  set (X := (Z.max 0 (u - c) + Z.max 0 (u2 - d))%Z).
  pose proof (round_up_ge (X * 2 ^ p) (2 ^ p + q) ltac:(lia)) as U.
  rewrite mult_IZR, plus_IZR in U; fold (unit_of p) in U.
  apply IZR_le in Q as Q'; rewrite plus_IZR, minus_IZR; fold (unit_of p).
  unfold Rdiv at 2; rewrite Rmult_plus_distr_r, Rmult_minus_distr_r, Rinv_r by lra.
  apply Rplus_le_compat; [unfold Rdiv in E1; lra|].
  assert (Part : forall z v, v * unit_of p <= IZR z -> plus_part v <= IZR (Z.max 0 z) * / unit_of p).
  { intros z v L; pose proof (IZR_le _ _ (Z.le_max_l 0 z)); pose proof (IZR_le _ _ (Z.le_max_r 0 z)).
    apply Rmult_le_reg_r with (1 := P); rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    rewrite Rmult_comm, <- plus_part_scal by lra; apply Rmax_lub; lra. }
  assert (Off : forall v v' z z', v <= IZR z / unit_of p -> IZR z' / unit_of p <= v' ->
            (v - v') * unit_of p <= IZR (z - z')).
  { intros v v' z z' L L'; apply (Rmult_le_compat_r (unit_of p) _ _ (Rlt_le _ _ P)) in L, L'.
    replace (IZR z / unit_of p * unit_of p) with (IZR z) in L by (field; lra).
    replace (IZR z' / unit_of p * unit_of p) with (IZR z') in L' by (field; lra).
    rewrite minus_IZR; lra. }
  pose proof (Part _ _ (Off _ _ _ _ (proj2 E1) E4)) as B1.
  pose proof (Part _ _ (Off _ _ _ _ (proj2 E2) E5)) as B2.
  apply Rle_trans with (IZR X * / unit_of p / (1 + IZR q / unit_of p)).
  - assert (Iq : 0 <= IZR q / unit_of p) by (apply Rmult_le_pos; lra).
    assert (BX : plus_part (r ^ Z.to_nat s - y * r ^ Z.to_nat (n + 1 - s))
                 + plus_part (r ^ Z.to_nat (s + 1) - y * r ^ Z.to_nat (n - s)) <= IZR X * / unit_of p)
      by (unfold X; rewrite plus_IZR; lra).
    pose proof (plus_part_nonneg (r ^ Z.to_nat s - y * r ^ Z.to_nat (n + 1 - s))).
    pose proof (plus_part_nonneg (r ^ Z.to_nat (s + 1) - y * r ^ Z.to_nat (n - s))).
    assert (D : / (1 + r) <= / (1 + IZR q / unit_of p)) by (apply Rinv_le_contravar; lra).
    apply Rmult_le_compat; try lra; left; apply Rinv_0_lt_compat; lra.
  - apply (Rmult_le_compat_r (/ unit_of p)) in U; [|lra].
    eapply Rle_trans; [|exact U]; right; field; repeat split; lra.
Qed.

Lemma geometric_heights_sound w bits n step places listed z g f :
  (0 <= w)%Z -> (0 <= bits)%Z -> (0 <= n)%Z ->
  geometric_heights w bits n scale step places = Some listed -> In (z, g, f) listed ->
  geometric_profile (exp (- / b)) (Z.to_nat (n + 1)) 1 (exp (IZR z * Q2R step))
    <= IZR f / (IZR (2 ^ bits) * unit_of w).
Proof.
  intros Hw Hbits Hn; revert listed; induction places as [|z' rest IH]; intros listed;
    cbn [geometric_heights].
  - intros H; injection H as <-; intros [].
  - cbv zeta; destruct (exp_of_rational _ _) as [[l u]|]; [|discriminate].
    destruct (geometric_height _ _ _ _) as [f'|] eqn:G; [|discriminate].
    destruct (geometric_heights w bits n scale step rest) as [known|]; [|discriminate].
    intros H; injection H as <-; intros [I|I]; [|apply (IH known eq_refl I)].
    injection I as -> _ <-; pose proof guard_nonneg.
    apply geometric_height_sound in G; [|lia|exact Hn].
    rewrite Q2R_mult, Q2R_integer in G.
    replace (IZR (2 ^ bits) * unit_of w) with (unit_of (w + bits))
      by (rewrite unit_plus by assumption; unfold unit_of; ring).
    eapply Rle_trans; [exact G|apply without_guard; lia].
Qed.

Theorem geometric_loss_sound w bits k step L {A} (l : list A) P Q :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step ->
  geometric_loss w bits scale k step = Some L ->
  distribution l P -> nonneg l Q ->
  below_profile l P Q (geometric_profile (exp (- / b)) (Z.to_nat k)) ->
  sound_list L /\ below_profile l P Q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  intros Hw Hbits Hs; unfold geometric_loss; destruct (Z.leb_spec k 0) as [K|K].
  - intros E; injection E as <-; intros _ _ B; split.
    { split; cbn [beyond masses no_loss]; [lia|repeat constructor; apply Z.pow_nonneg; lia]. }
    intros a c Ha Hc; eapply Rle_trans; [apply B; assumption|].
    replace (Z.to_nat k) with O by lia; cbn [geometric_profile].
    pose proof (unit_pos w Hw) as Pu.
    rewrite profile_stands by exact Pu; unfold no_loss; cbn [first masses LossLists.beyond row].
    unfold kept; replace (- (0 * Q2R step)) with 0 by ring; rewrite exp_0, Rmult_1_r.
    unfold unit_of; right; field.
    unfold unit_of in Pu; lra.
  - destruct (k <=? most_dots)%Z; [|discriminate].
    destruct (geometric_heights _ _ _ _ _ _) as [listed|] eqn:H; [|discriminate]; intros F Dp Nq B.
    refine (loss_from_sound w bits step Hw Hbits Hs l P Q _ listed L F Dp Nq B _).
    intros z g f I; pose proof (geometric_heights_sound w bits (k - 1) step _ _ z g f Hw Hbits
                                  ltac:(lia) H I) as G.
    replace (k - 1 + 1)%Z with k in G by lia; exact G.
Qed.

End Sound.
