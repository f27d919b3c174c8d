(** The Gaussian mechanism: on the real line, and rounded to any finite interval partition.

    Rounding to floating-point numbers (or to any grid, with saturation) cuts the line into
    finitely many intervals, so the rounded Gaussian is what a computer can release at best. It is
    mu^2/2-zCDP and meets the exact delta(eps) of the real one. *)

From Coq Require Import Reals List Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral.
Import ListNotations.
Open Scope R_scope.

(** ** Functions on the extended line *)

(** [F] is continuous at both infinities. *)
Definition regular (F : Rbar -> R) : Prop :=
  is_lim (fun x => F (Finite x)) m_infty (F m_infty) /\
  is_lim (fun x => F (Finite x)) p_infty (F p_infty).

Lemma regular_plus F G : regular F -> regular G -> regular (fun x => F x + G x).
Proof. intros [? ?] [? ?]; split; apply is_lim_plus'; assumption. Qed.

Lemma regular_scal c F : regular F -> regular (fun x => c * F x).
Proof.
  assert (E : forall v, Finite (c * v) = Rbar_mult c v) by reflexivity.
  intros [? ?]; split; rewrite E; apply is_lim_scal_l; assumption.
Qed.

Lemma regular_above F (a x : R) :
  regular F -> (forall y z, a <= y <= z -> F (Finite y) <= F (Finite z)) ->
  a <= x -> F (Finite x) <= F p_infty.
Proof.
  intros [_ Lp] Mono Hx.
  apply (is_lim_le_loc (fun _ => F (Finite x)) (fun y => F (Finite y)) p_infty
           (F (Finite x)) (F p_infty)); [|apply is_lim_const|exact Lp].
  exists x; intros y Hy; apply Mono; lra.
Qed.

Lemma regular_below F (a x : R) :
  regular F -> (forall y z, y <= z <= a -> F (Finite y) <= F (Finite z)) ->
  x <= a -> F m_infty <= F (Finite x).
Proof.
  intros [Lm _] Mono Hx.
  apply (is_lim_le_loc (fun y => F (Finite y)) (fun _ => F (Finite x)) m_infty
           (F m_infty) (F (Finite x))); [|exact Lm|apply is_lim_const].
  exists x; intros y Hy; apply Mono; lra.
Qed.

(** Monotone on a real half line, monotone on the extended one. *)
Lemma extend_above F (a : R) :
  regular F -> (forall y z, a <= y <= z -> F (Finite y) <= F (Finite z)) ->
  forall x y, Rbar_le (Finite a) x -> Rbar_le x y -> F x <= F y.
Proof.
  intros Reg Mono [x| |] [y| |] Hx Hxy; simpl in *; try contradiction; try lra.
  - apply Mono; lra.
  - apply (regular_above F a); assumption.
Qed.

Lemma extend_below F (a : R) :
  regular F -> (forall y z, y <= z <= a -> F (Finite y) <= F (Finite z)) ->
  forall x y, Rbar_le y (Finite a) -> Rbar_le x y -> F x <= F y.
Proof.
  intros Reg Mono [x| |] [y| |] Hy Hxy; simpl in *; try contradiction; try lra.
  - apply Mono; lra.
  - apply (regular_below F a); assumption.
Qed.

Lemma extend_line F :
  regular F -> (forall y z, y <= z -> F (Finite y) <= F (Finite z)) ->
  forall x y, Rbar_le x y -> F x <= F y.
Proof.
  intros Reg Mono x y Hxy; destruct (Rbar_le_lt_dec (Finite 0) x) as [H|H].
  - apply (extend_above F 0); auto; intros; apply Mono; lra.
  - apply Rbar_lt_le in H; destruct (Rbar_le_lt_dec y (Finite 0)) as [H'|H'].
    + apply (extend_below F 0); auto; intros; apply Mono; lra.
    + apply Rbar_lt_le in H'; apply Rle_trans with (F (Finite 0)).
      * apply (extend_below F 0); auto; [intros; apply Mono; lra|apply Rbar_le_refl].
      * apply (extend_above F 0); auto; [intros; apply Mono; lra|apply Rbar_le_refl].
Qed.

(** A derivative that is not negative between two points. *)
Lemma le_of_derive (f df : R -> R) (a b : R) :
  a <= b -> (forall x, is_derive f x (df x)) -> (forall x, a <= x <= b -> 0 <= df x) -> f a <= f b.
Proof.
  intros Hab Hd Pos.
  destruct (MVT_gen f a b df) as (c & Hc & E).
  - intros x _; apply Hd.
  - intros x _; apply continuity_pt_filterlim, (ex_derive_continuous (V := R_NormedModule)).
    eexists; apply Hd.
  - rewrite Rmin_left, Rmax_right in Hc by exact Hab; specialize (Pos c Hc); nra.
Qed.

Lemma lt_of_derive (f df : R -> R) (a b : R) :
  a < b -> (forall x, is_derive f x (df x)) -> (forall x, 0 < df x) -> f a < f b.
Proof.
  intros Hab Hd Pos.
  destruct (MVT_gen f a b df) as (c & Hc & E).
  - intros x _; apply Hd.
  - intros x _; apply continuity_pt_filterlim, (ex_derive_continuous (V := R_NormedModule)).
    eexists; apply Hd.
  - specialize (Pos c); nra.
Qed.

(** ** Normal laws *)

Definition density (m s x : R) : R := bell ((x - m) / s) / (s * root_two_pi).

Definition cdf (m s : R) (x : Rbar) : R :=
  match x with Finite r => Phi ((r - m) / s) | p_infty => 1 | m_infty => 0 end.

Section Normal.

Variables (m s : R).
Hypothesis Hs : 0 < s.

Lemma density_pos x : 0 < density m s x.
Proof.
  apply Rdiv_lt_0_compat; [apply bell_pos|apply Rmult_lt_0_compat; [exact Hs|]].
  apply root_two_pi_pos.
Qed.

Lemma is_derive_cdf x : is_derive (fun y => cdf m s (Finite y)) x (density m s x).
Proof.
  pose proof root_two_pi_pos; unfold cdf, density.
  pose proof (is_derive_comp Phi (fun y => (y - m) / s) x _ (/ s)
                (is_derive_Phi ((x - m) / s))) as D.
  unfold scal in D; simpl in D; unfold mult in D; simpl in D.
  replace (bell ((x - m) / s) / (s * root_two_pi))
    with (/ s * (bell ((x - m) / s) / root_two_pi)) by (field; lra).
  apply D; auto_derive; [exact I|field; lra].
Qed.

Lemma continuous_density x : continuous (density m s) x.
Proof.
  apply (ex_derive_continuous (V := R_NormedModule)).
  unfold density, bell; auto_derive; exact I.
Qed.

Lemma regular_cdf : regular (cdf m s).
Proof.
  assert (Hi : 0 < / s) by (apply Rinv_0_lt_compat; exact Hs).
  split; simpl.
  - apply is_lim_comp with m_infty; [apply is_lim_Phi_m| |exists 0; intros; discriminate].
    apply is_lim_ext with (f := fun x => / s * x + - m / s); [intros; field; lra|].
    apply (is_lim_comp_lin (fun x => x) (/ s) (- m / s) m_infty m_infty); [|lra].
    replace (Rbar_plus (Rbar_mult (/ s) m_infty) (- m / s)) with m_infty; [apply is_lim_id|].
    unfold Rbar_mult, Rbar_mult'; destruct (Rle_dec 0 (/ s)) as [H|H]; [|lra].
    destruct (Rle_lt_or_eq_dec 0 (/ s) H); [reflexivity|lra].
  - apply is_lim_comp with p_infty; [apply is_lim_Phi_p| |exists 0; intros; discriminate].
    apply is_lim_ext with (f := fun x => / s * x + - m / s); [intros; field; lra|].
    apply (is_lim_comp_lin (fun x => x) (/ s) (- m / s) p_infty p_infty); [|lra].
    replace (Rbar_plus (Rbar_mult (/ s) p_infty) (- m / s)) with p_infty; [apply is_lim_id|].
    unfold Rbar_mult, Rbar_mult'; destruct (Rle_dec 0 (/ s)) as [H|H]; [|lra].
    destruct (Rle_lt_or_eq_dec 0 (/ s) H); [reflexivity|lra].
Qed.

Lemma cdf_le x y : Rbar_le x y -> cdf m s x <= cdf m s y.
Proof.
  apply extend_line; [apply regular_cdf|]; intros a b Hab.
  apply (le_of_derive (fun y => cdf m s (Finite y)) (density m s)); [exact Hab| |].
  - apply is_derive_cdf.
  - intros; left; apply density_pos.
Qed.

Lemma cdf_lt_real a b : a < b -> cdf m s (Finite a) < cdf m s (Finite b).
Proof.
  intros Hab; apply (lt_of_derive (fun y => cdf m s (Finite y)) (density m s));
    auto using is_derive_cdf, density_pos.
Qed.

Lemma cdf_lt x y : Rbar_lt x y -> cdf m s x < cdf m s y.
Proof.
  intros H; destruct x as [x| |], y as [y| |]; simpl in H; try contradiction.
  - apply cdf_lt_real; exact H.
  - apply Rlt_le_trans with (cdf m s (Finite (x + 1)));
      [apply cdf_lt_real; lra|apply cdf_le; exact I].
  - apply Rle_lt_trans with (cdf m s (Finite (y - 1)));
      [apply cdf_le; exact I|apply cdf_lt_real; lra].
  - simpl; lra.
Qed.

(** The normal density integrates to one over the line ... *)
Theorem normal_density_total :
  is_RInt_gen (density m s) (Rbar_locally m_infty) (Rbar_locally p_infty) 1.
Proof.
  destruct regular_cdf as [Lm Lp].
  replace 1 with (cdf m s p_infty - cdf m s m_infty) by (simpl; ring).
  apply is_RInt_gen_line with (fun y => cdf m s (Finite y));
    [apply is_derive_cdf|apply continuous_density|exact Lm|exact Lp].
Qed.

End Normal.

(** ** Renyi divergence of two normal laws with the same standard deviation *)

Lemma density_scaled m s x : 0 < s ->
  density m s x = exp (- ((x - m) * (x - m)) / (2 * (s * s))) * / (s * root_two_pi).
Proof.
  intros Hs; unfold density, bell, Rdiv at 1; do 2 f_equal; field; lra.
Qed.

Section RenyiGaussian.

Variables (m1 m0 s alpha : R).
Hypothesis Hs : 0 < s.

(** The mean of the tilted law. *)
Definition tilted : R := alpha * m1 + (1 - alpha) * m0.

Definition gaussian_moment : R :=
  exp ((alpha - 1) * (alpha * ((m1 - m0) * (m1 - m0) / (2 * (s * s))))).

Lemma renyi_term_density x :
  renyi_term alpha (density m1 s x) (density m0 s x) = gaussian_moment * density tilted s x.
Proof.
  pose proof root_two_pi_pos.
  assert (0 < / (s * root_two_pi)) by (apply Rinv_0_lt_compat, Rmult_lt_0_compat; lra).
  rewrite !density_scaled by exact Hs.
  rewrite renyi_term_mult by (first [left; apply exp_pos|lra]).
  rewrite (renyi_term_diag alpha (/ (s * root_two_pi))) by lra.
  rewrite renyi_term_pos, !ln_exp by apply exp_pos.
  unfold gaussian_moment; rewrite <- (Rmult_assoc (exp _)), <- exp_plus.
  f_equal; f_equal; unfold tilted; field; lra.
Qed.

(** Over the real line, D_alpha(N(m1, s^2) || N(m0, s^2)) = alpha mu^2 / 2 with
    mu = (m1 - m0)/s: the integral of p^alpha q^(1-alpha) is exp((alpha-1) alpha mu^2 / 2)
    (Mironov 2017, Proposition 7). *)
Theorem gaussian_renyi :
  is_RInt_gen (fun x => renyi_term alpha (density m1 s x) (density m0 s x))
    (Rbar_locally m_infty) (Rbar_locally p_infty)
    (exp ((alpha - 1) * (alpha * ((m1 - m0) * (m1 - m0) / (2 * (s * s)))))).
Proof.
  destruct (regular_scal gaussian_moment _ (regular_cdf tilted s Hs)) as [Lm Lp].
  pose proof (fun d c => is_RInt_gen_line _
    (fun x => renyi_term alpha (density m1 s x) (density m0 s x)) _ _ d c Lm Lp) as L.
  replace (gaussian_moment * cdf tilted s p_infty - gaussian_moment * cdf tilted s m_infty)
    with gaussian_moment in L by (simpl; ring).
  apply L; clear L.
  - intros x; rewrite renyi_term_density; apply is_derive_scal, is_derive_cdf, Hs.
  - intros x; apply continuous_ext with (f := fun x => scal gaussian_moment (density tilted s x)).
    + intros y; rewrite renyi_term_density; reflexivity.
    + apply (continuous_scal_r (V := R_NormedModule)), continuous_density.
Qed.

End RenyiGaussian.

(** ** Interval partitions of the line *)

(** The intervals that ascending cut points leave above [lo]. *)
Fixpoint cells (lo : Rbar) (cuts : list R) : list (Rbar * Rbar) :=
  match cuts with
  | [] => [(lo, p_infty)]
  | c :: cuts' => (lo, Finite c) :: cells (Finite c) cuts'
  end.

Fixpoint ascending (lo : Rbar) (cuts : list R) : Prop :=
  match cuts with
  | [] => True
  | c :: cuts' => Rbar_le lo (Finite c) /\ ascending (Finite c) cuts'
  end.

Definition increment (F : Rbar -> R) (c : Rbar * Rbar) : R := F (snd c) - F (fst c).

(** The rounded normal law: the probability of each cell. *)
Definition rounded (m s : R) : Rbar * Rbar -> R := increment (cdf m s).

Lemma cells_ordered lo cuts c :
  ascending lo cuts -> In c (cells lo cuts) -> Rbar_le (fst c) (snd c).
Proof.
  revert lo; induction cuts as [|x cuts IH]; simpl; intros lo H [<-|I]; simpl.
  - destruct lo; exact Logic.I.
  - destruct I.
  - apply H.
  - apply (IH (Finite x)); [apply H|exact I].
Qed.

Lemma cells_total F lo cuts : total (cells lo cuts) (increment F) = F p_infty - F lo.
Proof.
  revert lo; induction cuts as [|x cuts IH]; simpl; intros lo; [|rewrite IH];
    unfold increment; simpl; ring.
Qed.

Lemma rounded_distribution m s cuts :
  0 < s -> ascending m_infty cuts -> distribution (cells m_infty cuts) (rounded m s).
Proof.
  intros Hs Hc; split.
  - intros c I; pose proof (cdf_le m s Hs _ _ (cells_ordered _ _ _ Hc I)).
    unfold rounded, increment; lra.
  - unfold rounded; rewrite cells_total; simpl; ring.
Qed.

Lemma rounded_zero m s m' s' c :
  0 < s -> Rbar_le (fst c) (snd c) -> rounded m s c = 0 -> rounded m' s' c = 0.
Proof.
  intros Hs Hc Z; unfold rounded, increment in *.
  destruct (Rbar_le_lt_or_eq_dec _ _ Hc) as [L|E]; [|rewrite E; ring].
  pose proof (cdf_lt m s Hs _ _ L); lra.
Qed.

(** ... and to the probability of a rounded value over the cell that is rounded to it. *)
Theorem rounded_cell m s a b :
  0 < s -> is_RInt (density m s) a b (rounded m s (Finite a, Finite b)).
Proof.
  intros Hs; apply (is_RInt_derive (fun x => cdf m s (Finite x))); intros x _.
  - apply is_derive_cdf, Hs.
  - apply continuous_density.
Qed.

(** ** The rounded Gaussian is zCDP *)

Section RoundedRenyi.

Variables (m1 m0 s alpha : R).
Hypotheses (Hs : 0 < s) (Ha : 1 < alpha).

(** Rounding lowers the moment of every cell. *)
Lemma rounded_term c :
  Rbar_le (fst c) (snd c) ->
  renyi_term alpha (rounded m1 s c) (rounded m0 s c)
    <= gaussian_moment m1 m0 s alpha * rounded (tilted m1 m0 alpha) s c.
Proof.
  intros Hc; set (C := gaussian_moment m1 m0 s alpha).
  assert (HC : 0 < C) by apply exp_pos.
  assert (P : forall m, 0 <= rounded m s c)
    by (intros m; pose proof (cdf_le m s Hs _ _ Hc); unfold rounded, increment; lra).
  assert (0 <= C * rounded (tilted m1 m0 alpha) s c) by (apply Rmult_le_pos; [lra|apply P]).
  destruct (P m1) as [P1|<-]; [|rewrite renyi_term_0_l; assumption].
  destruct (P m0) as [P0|<-]; [|rewrite renyi_term_0_r; assumption].
  rewrite <- renyi_term_touches by assumption.
  set (t := ln (rounded m1 s c) - ln (rounded m0 s c)).
  set (a := alpha * exp ((alpha - 1) * t)); set (b := (alpha - 1) * exp (alpha * t)).
  set (L := fun x => C * cdf (tilted m1 m0 alpha) s x + (- a * cdf m1 s x + b * cdf m0 s x)).
  assert (Mono : L (fst c) <= L (snd c)).
  { apply extend_line; [|intros y z Hyz|exact Hc].
    - apply regular_plus; [|apply regular_plus]; apply regular_scal, regular_cdf, Hs.
    - apply (le_of_derive (fun x => L (Finite x))
               (fun x => C * density (tilted m1 m0 alpha) s x
                         + (- a * density m1 s x + b * density m0 s x))); [exact Hyz| |].
      + intros x; unfold L.
        apply (is_derive_plus (V := R_NormedModule));
          [|apply (is_derive_plus (V := R_NormedModule))]; apply is_derive_scal, is_derive_cdf, Hs.
      + intros x _; unfold C; rewrite <- renyi_term_density by exact Hs.
        pose proof (density_pos m1 s Hs x); pose proof (density_pos m0 s Hs x).
        pose proof (renyi_term_tangent alpha t (density m1 s x) (density m0 s x) Ha) as T.
        fold a b in T; specialize (T ltac:(lra) ltac:(lra) ltac:(lra)); lra. }
  unfold L in Mono; unfold rounded, increment in *; lra.
Qed.

End RoundedRenyi.

(** Rounded to any finite interval partition, N(m1, s^2) and N(m0, s^2) stay within Renyi
    divergence alpha mu^2/2 at every order alpha. *)
Theorem gaussian_rounded_rdp (m1 m0 s alpha : R) (cuts : list R) :
  0 < s -> 1 < alpha -> ascending m_infty cuts ->
  rdp_pair (cells m_infty cuts) (rounded m1 s) (rounded m0 s) alpha
    (alpha * ((m1 - m0) * (m1 - m0) / (2 * (s * s)))).
Proof.
  intros Hs Ha Hc; split.
  - intros c I; apply rounded_zero; [exact Hs|exact (cells_ordered _ _ _ Hc I)].
  - fold (gaussian_moment m1 m0 s alpha).
    transitivity (total (cells m_infty cuts)
                    (fun c => gaussian_moment m1 m0 s alpha * rounded (tilted m1 m0 alpha) s c)).
    + apply total_le; intros c I; apply rounded_term; auto.
      exact (cells_ordered _ _ _ Hc I).
    + rewrite total_scal, (proj2 (rounded_distribution _ s cuts Hs Hc)); lra.
Qed.

(** The Gaussian mechanism on the reals: sensitivity Delta and noise s give Delta^2/(2 s^2)-zCDP,
    also after rounding (Bun and Steinke 2016, Proposition 1.6). *)
Theorem gaussian_zcdp {D} (adj : D -> D -> Prop) (q : D -> R) (Delta s : R) (cuts : list R) :
  0 < s -> ascending m_infty cuts -> (forall x y, adj x y -> Rabs (q x - q y) <= Delta) ->
  zcdp adj (cells m_infty cuts) (fun x => rounded (q x) s) (Delta * Delta / (2 * (s * s))).
Proof.
  intros Hs Hc Hq alpha Ha x y Axy.
  apply rdp_pair_weaken with (alpha * ((q x - q y) * (q x - q y) / (2 * (s * s))));
    [exact Ha| |apply gaussian_rounded_rdp; assumption].
  rewrite (Rmult_comm _ alpha); apply Rmult_le_compat_l; [lra|].
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|].
  specialize (Hq x y Axy); pose proof (Rabs_pos (q x - q y)).
  replace ((q x - q y) * (q x - q y)) with (Rabs (q x - q y) * Rabs (q x - q y))
    by (rewrite <- Rabs_mult; apply Rabs_right, Rle_ge, Rle_0_sqr).
  apply Rmult_le_compat; lra.
Qed.
