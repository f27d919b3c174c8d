(** Normal noise is the sum of two independent ones: what a value with a hidden part and an open one
    tells, by the loss of the hidden part with one share of the noise, and a Gaussian step of the open
    part with the rest. The first share is told on a grid, which costs no more; it may be as fine as
    one likes ([split_cell]), and rounded messages see the difference the less, the finer it is. *)

From Coq Require Import Reals List Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian Domination GaussianConvolution
  Sensitivity Descent GaussianComposition Losses GaussianLosses.
Import ListNotations.
Open Scope R_scope.

(** ** The normal law is nowhere steep *)

Lemma phi_at_most_1 x : phi x <= 1.
Proof.
  unfold phi, bell.
  assert (Top : exp (- (x * x) / 2) <= 1) by (rewrite <- exp_0; apply exp_le; nra).
  assert (Low : 1 <= root_two_pi).
  { unfold root_two_pi; rewrite <- sqrt_1; apply sqrt_le_1_alt; pose proof PI2_1; unfold PI2 in *; lra. }
  apply Rmult_le_reg_r with root_two_pi; [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

Lemma Phi_near x y : Rabs (Phi x - Phi y) <= Rabs (x - y).
Proof.
  assert (Up : forall x y, x <= y -> 0 <= Phi y - Phi x <= y - x).
  { clear; intros x y H; split; [pose proof (Phi_le x y H); lra|].
    assert (x - Phi x <= y - Phi y); [|lra].
    apply (le_of_derive (fun t => t - Phi t) (fun t => 1 - phi t)); [exact H| |].
    - intros t; apply (is_derive_minus (V := R_NormedModule) (fun t => t) Phi);
        [apply (is_derive_id (K := R_AbsRing))|apply is_derive_Phi].
    - intros t _; pose proof (phi_at_most_1 t); lra. }
  destruct (Rle_dec x y) as [H|H].
  - pose proof (Up x y H); rewrite !Rabs_left1 by lra; lra.
  - pose proof (Up y x ltac:(lra)); rewrite !Rabs_right by lra; lra.
Qed.

(** ** One coordinate *)

(** A number that stands for a cell. *)
Definition point_of (z : Rbar * Rbar) : R :=
  match z with (Finite x, _) | (_, Finite x) => x | _ => 0 end.

Fixpoint grid_from (n : nat) (x step : R) : list R :=
  match n with O => [] | S n => (x + step) :: grid_from n (x + step) step end.

Lemma grid_ascends n x step : 0 <= step -> ascending (Finite x) (grid_from n x step).
Proof.
  intros H; revert x; induction n as [|n IH]; intros x; [exact I|].
  split; [simpl; lra|apply IH].
Qed.

Section Coordinate.

Variables t1 t2 s : R.
Hypotheses (H1 : 0 < t1) (H2 : 0 < t2) (Hs : 0 < s) (Split : s * s = t1 * t1 + t2 * t2).

Section Threshold.

Variables c v h step : R.
Hypothesis Hstep : 0 <= step.

Notation al := ((h - v - c) / t2).
Notation be := (- (t1 / t2)).
Notation at_ x := ((x - c) / t1).

(** Where the first share fell, how likely the second one stays below [h]. *)
Definition below (x : R) : R := cdf (x + v) t2 (Finite h).

Lemma below_at x : below x = Phi (al + be * at_ x).
Proof. unfold below; simpl; f_equal; field; lra. Qed.

Lemma below_within x : 0 <= below x <= 1.
Proof. apply Phi_bounds. Qed.

(** Over one cell. *)
Lemma cell_sum x y : x <= y -> y - x <= step ->
  let inside := RInt (fun t => phi t * Phi (al + be * t)) (at_ x) (at_ y) in
  Rabs ((Phi (at_ y) - Phi (at_ x)) * below x - inside) <= step / t2 * (Phi (at_ y) - Phi (at_ x)).
Proof.
  intros Hxy Near inside; set (k := below x); set (e := step / t2).
  assert (Order : at_ x <= at_ y).
  { apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, H1|lra]. }
  assert (Const : forall w, is_RInt (fun t => w * phi t) (at_ x) (at_ y) (w * (Phi (at_ y) - Phi (at_ x)))).
  { intros w; pose proof (is_RInt_phi_lin 0 1 (at_ x) (at_ y)) as P; rewrite !Rplus_0_l, !Rmult_1_l in P.
    apply (is_RInt_scal (V := R_NormedModule) _ _ _ w) in P.
    eapply is_RInt_ext; [|exact P]; intros t _; unfold scal; simpl; unfold mult; simpl.
    rewrite Rplus_0_l, !Rmult_1_l; reflexivity. }
  assert (Close : forall t, at_ x < t < at_ y -> Rabs (Phi (al + be * t) - k) <= e).
  { intros t [Lo Hi]; unfold k; rewrite below_at; eapply Rle_trans; [apply Phi_near|].
    replace (al + be * t - (al + be * at_ x)) with (- (t1 / t2 * (t - at_ x))) by ring.
    assert (0 < t1 / t2) by (apply Rdiv_lt_0_compat; assumption).
    rewrite Rabs_Ropp, Rabs_right by (apply Rle_ge, Rmult_le_pos; lra).
    apply Rle_trans with (t1 / t2 * (at_ y - at_ x)); [apply Rmult_le_compat_l; lra|].
    replace (t1 / t2 * (at_ y - at_ x)) with ((y - x) / t2) by (field; lra).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, H2|exact Near]. }
  assert (Up : inside <= (k + e) * (Phi (at_ y) - Phi (at_ x))).
  { rewrite <- (is_RInt_unique _ _ _ _ (Const (k + e))).
    apply RInt_le; [exact Order|apply ex_RInt_product|eexists; apply Const|].
    intros t Ht; specialize (Close t Ht); pose proof (phi_pos t).
    rewrite Rmult_comm; apply Rmult_le_compat_r; [lra|]; revert Close; unfold Rabs; destruct (Rcase_abs _); lra. }
  assert (Low : (k - e) * (Phi (at_ y) - Phi (at_ x)) <= inside).
  { rewrite <- (is_RInt_unique _ _ _ _ (Const (k - e))).
    apply RInt_le; [exact Order|eexists; apply Const|apply ex_RInt_product|].
    intros t Ht; specialize (Close t Ht); pose proof (phi_pos t).
    rewrite (Rmult_comm (phi t)); apply Rmult_le_compat_r; [lra|]; revert Close; unfold Rabs; destruct (Rcase_abs _); lra. }
  apply Rabs_le; lra.
Qed.

Lemma grid_sum n x :
  let y := x + INR n * step in
  Rabs (total (cells (Finite x) (grid_from n x step)) (fun z => rounded c t1 z * below (point_of z))
        - RInt (fun t => phi t * Phi (al + be * t)) (at_ x) (at_ y))
  <= step / t2 * (Phi (at_ y) - Phi (at_ x)) + (1 - Phi (at_ y)).
Proof.
  cbv zeta; revert x; induction n as [|n IH]; intros x.
  - replace (x + INR 0 * step) with x by (simpl; ring); rewrite RInt_point.
    cbn [grid_from cells total].
    unfold rounded, increment; cbn [fst snd point_of cdf]; unfold zero; cbn.
    change (Phi ((h - (x + v)) / t2)) with (below x).
    pose proof (below_within x); pose proof (Phi_bounds (at_ x)).
    assert (0 <= (1 - Phi (at_ x)) * below x <= 1 - Phi (at_ x)) by nra.
    rewrite Rabs_right; lra.
  - cbn [grid_from cells total]; unfold rounded at 1, increment; cbn [fst snd point_of].
    replace (x + INR (S n) * step) with (x + step + INR n * step) by (rewrite S_INR; ring).
    specialize (IH (x + step)); set (y := x + step + INR n * step) in *.
    pose proof (cell_sum x (x + step) ltac:(lra) ltac:(lra)) as One; cbv zeta in One.
    rewrite <- (RInt_Chasles (V := R_CompleteNormedModule) _ (at_ x) (at_ (x + step)) (at_ y))
      by apply ex_RInt_product.
    unfold plus; simpl; set (head := RInt _ (at_ x) _) in *; set (tail := RInt _ _ (at_ y)) in *.
    set (sum := total _ _) in *; simpl cdf.
    replace ((Phi (at_ (x + step)) - Phi (at_ x)) * below x + sum - (head + tail))
      with (((Phi (at_ (x + step)) - Phi (at_ x)) * below x - head) + (sum - tail)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; lra.
Qed.

Lemma threshold_near n lo :
  let hi := lo + INR n * step in
  Rabs (total (cells m_infty (lo :: grid_from n lo step)) (fun z => rounded c t1 z * below (point_of z))
        - cdf (c + v) s (Finite h))
  <= step / t2 + 2 * (1 - Phi (at_ hi)) + 2 * Phi (at_ lo).
Proof.
  cbv zeta; set (hi := lo + INR n * step); cbn [cells total].
  unfold rounded at 1, increment; cbn [fst snd point_of]; simpl cdf.
  pose proof (grid_sum n lo) as Sum; cbv zeta in Sum; fold hi in Sum.
  set (sum := total _ _) in *; set (inside := RInt _ _ _) in *.
  assert (Order : at_ lo <= at_ hi).
  { apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, H1|]; unfold hi.
    pose proof (Rmult_le_pos _ _ (pos_INR n) Hstep); lra. }
  pose proof (window_upper be (at_ lo) (at_ hi) Order al) as Up.
  pose proof (window_lower be (at_ lo) (at_ hi) al Order) as Low.
  change (window be (at_ lo) (at_ hi) al) with inside in Up, Low.
  assert (Spread : spread be = s / t2).
  { unfold spread; apply sqrt_lem_1; [nra|apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, H2]|].
    replace (s / t2 * (s / t2)) with (s * s / (t2 * t2)) by (field; lra); rewrite Split; field; lra. }
  assert (Exact : Phi (al / spread be) = Phi ((h - (c + v)) / s)) by (rewrite Spread; f_equal; field; lra).
  rewrite Exact in Up, Low; set (exact := Phi ((h - (c + v)) / s)) in *.
  pose proof (below_within lo); pose proof (Phi_bounds (at_ lo)); pose proof (Phi_bounds (at_ hi)).
  assert (Slope : 0 <= step / t2) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, H2]).
  assert (step / t2 * (Phi (at_ hi) - Phi (at_ lo)) <= step / t2) by nra.
  assert (0 <= (Phi (at_ lo) - 0) * below lo <= Phi (at_ lo)) by nra.
  revert Sum; unfold Rabs; destruct (Rcase_abs _), (Rcase_abs _); lra.
Qed.

End Threshold.

(** Cells so fine that nobody sees them. *)
Lemma split_cell most eps : 0 < eps -> exists cuts, ascending m_infty cuts /\
  forall c v y, Rabs c <= most ->
  Rabs (total (cells m_infty cuts) (fun z => rounded c t1 z * rounded (point_of z + v) t2 y)
        - rounded (c + v) s y) <= eps.
Proof.
  intros He; destruct (Phi_small (eps / 16) ltac:(lra)) as [w Hw].
  set (W := Rabs w + 1); set (lo := - Rabs most - t1 * W); set (step := eps * t2 / 4).
  assert (HW : - W < w /\ 0 < W) by (unfold W, Rabs; destruct (Rcase_abs w); lra).
  assert (Hstep : 0 < step) by (unfold step; nra).
  destruct (nfloor_ex (2 * (Rabs most + t1 * W) / step)) as [n [_ Hn]].
  { apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, Hstep]; pose proof (Rabs_pos most); nra. }
  set (cuts := lo :: grid_from (S n) lo step).
  exists cuts; split; [split; [exact I|apply grid_ascends; lra]|]; intros c v y Hc.
  assert (Far : Rabs most + t1 * W <= lo + INR (S n) * step).
  { apply (Rmult_lt_compat_r step) in Hn; [|exact Hstep].
    replace (2 * (Rabs most + t1 * W) / step * step) with (2 * (Rabs most + t1 * W)) in Hn by (field; lra).
    rewrite S_INR; unfold lo; lra. }
  assert (Within : - Rabs most <= c <= Rabs most).
  { pose proof (Rle_abs most); revert Hc; unfold Rabs at 1; destruct (Rcase_abs c); lra. }
  assert (Left : Phi ((lo - c) / t1) <= eps / 16).
  { left; apply Hw, Rle_lt_trans with (- W); [|apply HW].
    apply Rmult_le_reg_r with t1; [exact H1|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; unfold lo; nra. }
  assert (Right : 1 - Phi ((lo + INR (S n) * step - c) / t1) <= eps / 16).
  { rewrite <- (Ropp_involutive ((lo + INR (S n) * step - c) / t1)), Phi_opp.
    assert (Phi (- ((lo + INR (S n) * step - c) / t1)) <= eps / 16); [|lra].
    left; apply Hw, Rle_lt_trans with (- W); [|apply HW]; apply Ropp_le_contravar.
    apply Rmult_le_reg_r with t1; [exact H1|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; nra. }
  assert (Each : forall b, Rabs (total (cells m_infty cuts) (fun z => rounded c t1 z * cdf (point_of z + v) t2 b)
                                 - cdf (c + v) s b) <= eps / 2).
  { assert (All : total (cells m_infty cuts) (rounded c t1) = 1)
      by (unfold rounded; rewrite cells_total; simpl; ring).
    intros [h| |]; simpl cdf.
    - pose proof (threshold_near c v h step ltac:(lra) (S n) lo) as T; cbv zeta in T.
      change (lo :: grid_from (S n) lo step) with cuts in T; unfold below in T; simpl cdf in T.
      assert (step / t2 = eps / 4) by (unfold step; field; lra); lra.
    - rewrite total_scal_r, All, Rmult_1_l, Rminus_diag_eq, Rabs_R0 by reflexivity; lra.
    - rewrite total_scal_r, Rmult_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity; lra. }
  unfold rounded at 2, increment.
  rewrite (total_ext (cells m_infty cuts) _ (fun z =>
    rounded c t1 z * cdf (point_of z + v) t2 (snd y) - rounded c t1 z * cdf (point_of z + v) t2 (fst y)))
    by (intros z _; unfold increment; ring).
  rewrite total_minus; pose proof (Each (snd y)) as Hi; pose proof (Each (fst y)) as Lo.
  unfold rounded at 3, increment.
  set (a := total _ _) in *; set (b := total _ (fun z => rounded c t1 z * cdf _ _ (fst y))) in *.
  replace (a - b - (cdf (c + v) s (snd y) - cdf (c + v) s (fst y)))
    with ((a - cdf (c + v) s (snd y)) + - (b - cdf (c + v) s (fst y))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; lra.
Qed.

End Coordinate.

(** ** Vectors *)

(** The point that a history of cells, the latest first, stands for. *)
Definition points (z : list (Rbar * Rbar)) (i : nat) : R := point_of (nth i (rev z) (m_infty, m_infty)).

Lemma one_of_total {A} (l : list A) f w : nonneg l f -> In w l -> f w <= total l f.
Proof.
  induction l as [|a l IH]; intros N I; [destruct I|]; cbn [total].
  pose proof (total_nonneg l f (fun b J => N b (or_intror J))); pose proof (N a (or_introl eq_refl)).
  destruct I as [->|I]; [lra|specialize (IH (fun b J => N b (or_intror J)) I); lra].
Qed.

Lemma run_near {A} (outcomes : list A -> list A) (f g : list A -> A -> R) e d y :
  0 <= e -> In y (transcripts outcomes d) ->
  (forall h w, (length h < d)%nat -> In w (outcomes h) ->
     0 <= f h w <= 1 /\ 0 <= g h w <= 1 /\ Rabs (f h w - g h w) <= e) ->
  0 <= run f y <= 1 /\ 0 <= run g y <= 1 /\ Rabs (run f y - run g y) <= INR d * e.
Proof.
  intros He; revert y; induction d as [|d IH]; intros y I Close.
  - destruct I as [<-|[]]; simpl; rewrite Rminus_diag_eq, Rabs_R0 by reflexivity; lra.
  - destruct (in_transcripts_cons _ _ _ I) as (w & h & ->); apply in_transcripts_S in I as [I Iw].
    destruct (IH h I (fun h w L => Close h w ltac:(lia))) as (F & G & N).
    destruct (Close h w ltac:(rewrite (transcripts_length _ _ _ I); lia) Iw) as (F1 & G1 & N1).
    cbn [run]; split; [nra|split; [nra|]].
    replace (run f h * f h w - run g h * g h w)
      with (run f h * (f h w - g h w) + (run f h - run g h) * g h w) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult, (Rabs_right (run f h)), (Rabs_right (g h w)) by lra.
    rewrite S_INR; pose proof (Rabs_pos (f h w - g h w)); pose proof (Rabs_pos (run f h - run g h)); nra.
Qed.

Lemma run_by_points (v : nat -> R) s (z : list (Rbar * Rbar)) g y : (length y <= length z)%nat ->
  run (fun h => rounded (points (g :: z) (length h) + v (length h)) s) y
  = run (fun h => rounded (points z (length h) + v (length h)) s) y.
Proof.
  induction y as [|w y IH]; intros L; [reflexivity|]; cbn [run]; simpl in L.
  rewrite IH by lia; do 2 f_equal; unfold points; cbn [rev]; rewrite app_nth1 by (rewrite rev_length; lia).
  reflexivity.
Qed.

(** Coordinate by coordinate. *)
Lemma split_vector (c v : nat -> R) t1 t2 cuts y :
  total (vector_outcomes (length y) (fun _ => cuts)) (fun z =>
    run (fun h => rounded (c (length h)) t1) z
    * run (fun h => rounded (points z (length h) + v (length h)) t2) y)
  = run (fun h w => total (cells m_infty cuts) (fun z =>
      rounded (c (length h)) t1 z * rounded (point_of z + v (length h)) t2 w)) y.
Proof.
  unfold vector_outcomes; induction y as [|w y IH]; [simpl; ring|]; cbn [length transcripts run].
  rewrite total_flat_map, <- IH, <- total_scal_r; apply total_ext; intros z Iz.
  rewrite total_map; pose proof (transcripts_length _ _ _ Iz) as L.
  rewrite <- total_scal; apply total_ext; intros g _; cbn [run]; rewrite (run_by_points v t2 z g y) by lia.
  assert (E : points (g :: z) (length y) = point_of g).
  { unfold points; cbn [rev]; rewrite app_nth2, rev_length, L, Nat.sub_diag by (rewrite rev_length; lia); reflexivity. }
  rewrite E, L; ring.
Qed.

(** A vector with noise, whose mean depends on what stays hidden. *)
Definition hidden_vector {W} (draws : list (W * R)) (mean : W -> nat -> R) (s : R)
  (y : list (Rbar * Rbar)) : R :=
  total draws (fun vw => snd vw * run (fun h => rounded (mean (fst vw) (length h)) s) y).

Section Vector.

Context {W : Type} (d : nat) (cuts : list (Rbar * Rbar) -> list R).
Hypothesis grid : forall h, ascending m_infty (cuts h).
Variables (t1 t2 s : R).
Hypotheses (H1 : 0 < t1) (H2 : 0 < t2) (Hs : 0 < s) (Split : s * s = t1 * t1 + t2 * t2).

Notation outcomes := (vector_outcomes d cuts).

(** The two shares of the noise one after the other, on a grid: nearly the whole of it. *)
Lemma split_near (draws : list (W * R)) (c : nat -> R) (m : W -> nat -> R) most eps g y :
  distribution draws snd -> In y outcomes -> 0 <= eps -> ascending m_infty g ->
  (forall i, (i < d)%nat -> Rabs (c i) <= most) ->
  (forall c v y, Rabs c <= most ->
     Rabs (total (cells m_infty g) (fun z => rounded c t1 z * rounded (point_of z + v) t2 y)
           - rounded (c + v) s y) <= eps) ->
  Rabs (total (vector_outcomes d (fun _ => g)) (fun z =>
          run (fun h => rounded (c (length h)) t1) z
          * hidden_vector draws (fun v i => points z i + m v i) t2 y)
        - hidden_vector draws (fun v i => c i + m v i) s y) <= INR d * eps.
Proof.
  intros [Nd Sd] Iy He Ag Near Fine.
  assert (Ly : length y = d) by (unfold vector_outcomes in Iy; exact (transcripts_length _ _ _ Iy)).
  set (joined := fun (v : W) (h : list (Rbar * Rbar)) w => total (cells m_infty g) (fun z =>
         rounded (c (length h)) t1 z * rounded (point_of z + m v (length h)) t2 w)).
  assert (E : total (vector_outcomes d (fun _ => g)) (fun z =>
            run (fun h => rounded (c (length h)) t1) z
            * hidden_vector draws (fun v i => points z i + m v i) t2 y)
          = total draws (fun vw => snd vw * run (joined (fst vw)) y)).
  { unfold hidden_vector; rewrite (total_ext (vector_outcomes d _) _ (fun z => total draws (fun vw =>
      snd vw * (run (fun h => rounded (c (length h)) t1) z
                * run (fun h => rounded (points z (length h) + m (fst vw) (length h)) t2) y))))
      by (intros; rewrite <- total_scal; apply total_ext; intros; ring).
    rewrite total_swap; apply total_ext; intros vw _; rewrite total_scal; f_equal.
    rewrite <- Ly; apply split_vector. }
  rewrite E; unfold hidden_vector; rewrite <- total_minus.
  assert (Each : forall vw : W * R, Rabs (run (joined (fst vw)) y
            - run (fun h : list (Rbar * Rbar) => rounded (c (length h) + m (fst vw) (length h)) s) y) <= INR d * eps).
  { intros [v w0]; cbn [fst]; apply (run_near (fun h => cells m_infty (cuts h)) _ _ eps d y He Iy).
    intros h w L Iw.
    assert (In01 : forall mean std, 0 < std -> 0 <= rounded mean std w <= 1).
    { intros mean std P; destruct (rounded_distribution mean std (cuts h) P (grid h)) as [Nn Sn].
      split; [apply Nn, Iw|rewrite <- Sn; apply (one_of_total _ _ w Nn Iw)]. }
    split; [|split; [apply In01, Hs|apply Fine, Near, L]].
    destruct (rounded_distribution (c (length h)) t1 g H1 Ag) as [Nn Sn]; unfold joined; split.
    - apply total_nonneg; intros z Iz; apply Rmult_le_pos; [apply Nn, Iz|apply In01, H2].
    - rewrite <- Sn; apply total_le; intros z Iz; rewrite <- (Rmult_1_r (rounded (c (length h)) t1 z)) at 2.
      apply Rmult_le_compat_l; [apply Nn, Iz|apply In01, H2]. }
  apply Rle_trans with (total draws (fun vw => snd vw * (INR d * eps))); [|rewrite total_scal_r, Sd; lra].
  assert (Abs : forall l (f : W * R -> R), Rabs (total l f) <= total l (fun a => Rabs (f a))).
  { clear; induction l as [|a l IH]; intros f; cbn [total]; [rewrite Rabs_R0; lra|].
    eapply Rle_trans; [apply Rabs_triang|]; specialize (IH f); lra. }
  eapply Rle_trans; [apply Abs|]; apply total_le; intros vw I.
  rewrite <- Rmult_minus_distr_l, Rabs_mult, Rabs_right by (apply Rle_ge, Nd, I).
  apply Rmult_le_compat_l; [apply Nd, I|apply Each].
Qed.

(** Below the loss of the hidden part, and a Gaussian step of the open one. *)
Theorem noise_split (draws draws' : list (W * R)) (m m' : W -> nat -> R) (c c' : euclidean d) K far :
  distribution draws snd -> distribution draws' snd -> proper K -> 0 <= far -> norm (sub c c') <= far ->
  (forall z : nat -> R,
     below_profile outcomes (hidden_vector draws (fun v i => z i + m v i) t2)
       (hidden_vector draws' (fun v i => z i + m' v i) t2) (profile K)) ->
  below_profile outcomes (hidden_vector draws (fun v i => c i + m v i) s)
    (hidden_vector draws' (fun v i => c' i + m' v i) s) (followed K (far / t1)).
Proof.
  intros D D' PK Hfar Moved Inner a b Ha Hb; apply le_epsilon; intros eps He.
  set (most := total (seq 0 d) (fun i => Rabs (c i) + Rabs (c' i))).
  assert (Most : forall i, (i < d)%nat -> Rabs (c i) <= most /\ Rabs (c' i) <= most).
  { intros i L; pose proof (Rabs_pos (c i)); pose proof (Rabs_pos (c' i)).
    assert (Rabs (c i) + Rabs (c' i) <= most); [|lra].
    apply (one_of_total (seq 0 d) (fun i => Rabs (c i) + Rabs (c' i)) i); [|apply in_seq; lia].
    intros j _; pose proof (Rabs_pos (c j)); pose proof (Rabs_pos (c' j)); lra. }
  set (n := (a + b) * INR (length outcomes) * INR d).
  assert (Pn : 0 <= n) by (unfold n; apply Rmult_le_pos; [apply Rmult_le_pos; [lra|apply pos_INR]|apply pos_INR]).
  assert (He' : 0 < eps / (n + 1)) by (apply Rdiv_lt_0_compat; lra).
  set (e := eps / (n + 1)) in *.
  destruct (split_cell t1 t2 s H1 H2 Hs Split most e He') as (g & Ag & Fine).
  set (Z := vector_outcomes d (fun _ => g)).
  set (first := fun c : nat -> R => run (fun h : list (Rbar * Rbar) => rounded (c (length h)) t1)).
  set (joined := fun (draws : list (W * R)) (c : nat -> R) (m : W -> nat -> R) y => total Z (fun z =>
         first c z * hidden_vector draws (fun v i => points z i + m v i) t2 y)).
  assert (Near : forall draws (c : nat -> R) m y, distribution draws snd -> (forall i, (i < d)%nat -> Rabs (c i) <= most) ->
            In y outcomes ->
            Rabs (joined draws c m y - hidden_vector draws (fun v i => c i + m v i) s y) <= INR d * e).
  { intros dr c0 m0 y Dd Mc Iy; apply split_near with most; try assumption; lra. }
  assert (Whole : excess outcomes (joined draws c m) (joined draws' c' m') a b <= followed K (far / t1) a b).
  { apply Rle_trans with (total Z (fun z => profile K (a * first c z) (b * first c' z))).
    - apply Rle_trans with (total Z (fun z => total outcomes (fun y =>
        plus_part (a * first c z * hidden_vector draws (fun v i => points z i + m v i) t2 y
                   - b * first c' z * hidden_vector draws' (fun v i => points z i + m' v i) t2 y)))).
      + unfold excess; rewrite total_swap; apply total_le; intros y _.
        eapply Rle_trans; [|apply plus_part_total]; right; f_equal; unfold joined.
        rewrite <- !total_scal, <- total_minus; apply total_ext; intros z _; ring.
      + apply total_le; intros z Iz; apply (Inner (points z)).
        * apply Rmult_le_pos; [exact Ha|].
          apply (noisy_vector_distribution d (fun _ : unit => c) t1 H1 (fun _ => g) (fun _ => Ag) tt), Iz.
        * apply Rmult_le_pos; [exact Hb|].
          apply (noisy_vector_distribution d (fun _ : unit => c') t1 H1 (fun _ => g) (fun _ => Ag) tt), Iz.
    - assert (Pm : 0 <= far / t1) by (apply Rmult_le_pos; [exact Hfar|left; apply Rinv_0_lt_compat, H1]).
      pose (q := fun first_one : bool => if first_one then c else c').
      assert (B : below_profile Z (first c) (first c') (gaussian_profile (far / t1))).
      { apply (vector_gaussian_below_profile (fun x y => x = true /\ y = false) d q far t1 (fun _ => g))
          with (x := true) (y := false); try assumption; [intros _; exact Ag| |split; reflexivity].
        intros x y [-> ->]; exact Moved. }
      eapply Rle_trans; [|eapply Rle_trans;
        [apply (gaussian_then_rest Z (first c) (first c') K
                  (noisy_vector_distribution d (fun _ : unit => c) t1 H1 (fun _ => g) (fun _ => Ag) tt)
                  (noisy_vector_distribution d (fun _ : unit => c') t1 H1 (fun _ => g) (fun _ => Ag) tt)
                  PK (far / t1) 0 a b B Pm (Rle_refl 0) Ha Hb)|]].
      + right; apply total_ext; intros z _; symmetry; apply followed_by_nothing.
      + replace (0 * 0 + far / t1 * (far / t1)) with (far / t1 * (far / t1)) by ring.
        rewrite sqrt_square by exact Pm; lra. }
  apply Rle_trans with (excess outcomes (joined draws c m) (joined draws' c' m') a b
                        + INR (length outcomes) * ((a + b) * (INR d * e))).
  - rewrite <- total_const; unfold excess; rewrite <- total_plus; apply total_le; intros y Iy.
    pose proof (Near draws c m y D (fun i L => proj1 (Most i L)) Iy) as N.
    pose proof (Near draws' c' m' y D' (fun i L => proj2 (Most i L)) Iy) as N'.
    set (p := hidden_vector draws _ s y) in *; set (q := hidden_vector draws' _ s y) in *.
    set (p' := joined draws c m y) in *; set (q' := joined draws' c' m' y) in *.
    pose proof (plus_part_nonneg (a * p' - b * q')); pose proof (plus_part_ge (a * p' - b * q')).
    assert (0 <= INR d * e) by (apply Rmult_le_pos; [apply pos_INR|lra]).
    assert (p - p' <= INR d * e) by (revert N; unfold Rabs; destruct (Rcase_abs _); lra).
    assert (q' - q <= INR d * e) by (revert N'; unfold Rabs; destruct (Rcase_abs _); lra).
    apply Rmax_lub; nra.
  - assert (Small : INR (length outcomes) * ((a + b) * (INR d * e)) <= eps).
    { replace (INR (length outcomes) * ((a + b) * (INR d * e))) with (n * e) by (unfold n; ring).
      assert (e * (n + 1) = eps) by (unfold e; field; lra); nra. }
    lra.
Qed.

End Vector.
