(** The exact privacy profile of the Gaussian mechanism (Balle and Wang 2018, Theorem 8).

    For every event of every finite interval partition,
    P(event) <= e^eps Q(event) + delta with delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu),
    and one cut at the right place attains it, so the real Gaussian is no better. *)

From Coq Require Import Reals List Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian.
Import ListNotations.
Open Scope R_scope.

Definition gaussian_delta (mu eps : R) : R :=
  Phi (mu / 2 - eps / mu) - exp eps * Phi (- (mu / 2) - eps / mu).

(** ** A signed measure is bounded by its part on one side of a point *)

(** The two ways to fold the line at a point. *)
Definition from (a : R) (x : Rbar) : Rbar := if Rbar_le_dec x (Finite a) then Finite a else x.
Definition upto (a : R) (x : Rbar) : Rbar := if Rbar_le_dec x (Finite a) then x else Finite a.

Section Folding.

Variables (G : Rbar -> R) (a : R).
Hypothesis reg : regular G.

Definition falls_then_rises : Prop :=
  (forall y z, y <= z <= a -> G (Finite z) <= G (Finite y)) /\
  (forall y z, a <= y <= z -> G (Finite y) <= G (Finite z)).

Definition rises_then_falls : Prop :=
  (forall y z, y <= z <= a -> G (Finite y) <= G (Finite z)) /\
  (forall y z, a <= y <= z -> G (Finite z) <= G (Finite y)).

Lemma regular_opp : regular (fun x => -1 * G x).
Proof. apply regular_scal, reg. Qed.

Lemma fold_from x y :
  falls_then_rises -> Rbar_le x y ->
  0 <= G (from a y) - G (from a x) /\ G y - G x <= G (from a y) - G (from a x).
Proof.
  intros [Fall Rise] Hxy.
  assert (Up : forall x y, Rbar_le (Finite a) x -> Rbar_le x y -> G x <= G y)
    by (apply extend_above; assumption).
  assert (Down : forall x y, Rbar_le y (Finite a) -> Rbar_le x y -> G y <= G x).
  { intros u v Hv Huv.
    pose proof (extend_below (fun x => -1 * G x) a regular_opp
                  ltac:(intros y' z' H; specialize (Fall y' z' H); simpl; lra) u v Hv Huv) as D.
    simpl in D; lra. }
  unfold from.
  destruct (Rbar_le_dec x (Finite a)) as [Hx|Hx], (Rbar_le_dec y (Finite a)) as [Hy|Hy].
  - specialize (Down x y Hy Hxy); lra.
  - apply Rbar_not_le_lt, Rbar_lt_le in Hy.
    specialize (Up (Finite a) y (Rbar_le_refl _) Hy).
    specialize (Down x (Finite a) (Rbar_le_refl _) Hx); lra.
  - elim Hx; apply Rbar_le_trans with y; assumption.
  - apply Rbar_not_le_lt, Rbar_lt_le in Hx; specialize (Up x y Hx Hxy); lra.
Qed.

Lemma fold_upto x y :
  rises_then_falls -> Rbar_le x y ->
  0 <= G (upto a y) - G (upto a x) /\ G y - G x <= G (upto a y) - G (upto a x).
Proof.
  intros [Rise Fall] Hxy.
  assert (Up : forall x y, Rbar_le y (Finite a) -> Rbar_le x y -> G x <= G y)
    by (apply extend_below; assumption).
  assert (Down : forall x y, Rbar_le (Finite a) x -> Rbar_le x y -> G y <= G x).
  { intros u v Hu Huv.
    pose proof (extend_above (fun x => -1 * G x) a regular_opp
                  ltac:(intros y' z' H; specialize (Fall y' z' H); simpl; lra) u v Hu Huv) as D.
    simpl in D; lra. }
  unfold upto.
  destruct (Rbar_le_dec x (Finite a)) as [Hx|Hx], (Rbar_le_dec y (Finite a)) as [Hy|Hy].
  - specialize (Up x y Hy Hxy); lra.
  - apply Rbar_not_le_lt, Rbar_lt_le in Hy.
    specialize (Up x (Finite a) (Rbar_le_refl _) Hx).
    specialize (Down (Finite a) y (Rbar_le_refl _) Hy); lra.
  - elim Hx; apply Rbar_le_trans with y; assumption.
  - apply Rbar_not_le_lt, Rbar_lt_le in Hx; specialize (Down x y Hx Hxy); lra.
Qed.

End Folding.

(** An event's sum of increments of [G] is at most the total increment of a function [H] that
    never decreases and never increases less than [G]. *)
Lemma event_increment (G H : Rbar -> R) lo cuts (event : Rbar * Rbar -> bool) :
  ascending lo cuts ->
  (forall x y, Rbar_le x y -> 0 <= H y - H x /\ G y - G x <= H y - H x) ->
  total (cells lo cuts) (fun c => if event c then increment G c else 0) <= H p_infty - H lo.
Proof.
  intros Hc Dom; rewrite <- (cells_total H lo cuts).
  apply total_le; intros c I; destruct (Dom _ _ (cells_ordered _ _ _ Hc I)).
  unfold increment; destruct (event c); assumption.
Qed.

(** ** The two Gaussians *)

Section Pair.

Variables (m1 m0 s eps : R).
Hypotheses (Hs : 0 < s) (Hm : m1 <> m0).

Definition shift : R := (m1 - m0) / s.

(** The point where the log-ratio of the densities is eps. *)
Definition threshold : R := m0 + s * (eps / shift + shift / 2).

(** P - e^eps Q up to a point. *)
Definition excess (x : Rbar) : R := cdf m1 s x + - exp eps * cdf m0 s x.

Lemma shift_neq_0 : shift <> 0.
Proof.
  unfold shift; intros E; apply Hm.
  apply Rmult_eq_compat_r with (r := s) in E.
  replace ((m1 - m0) / s * s) with (m1 - m0) in E by (field; lra); lra.
Qed.

Lemma regular_excess : regular excess.
Proof. apply regular_plus; [|apply regular_scal]; apply regular_cdf, Hs. Qed.

Definition excess_density (x : R) : R := density m1 s x + - exp eps * density m0 s x.

Lemma is_derive_excess x : is_derive (fun y => excess (Finite y)) x (excess_density x).
Proof.
  apply (is_derive_plus (V := R_NormedModule)); [|apply is_derive_scal]; apply is_derive_cdf, Hs.
Qed.

(** The density of the excess has the sign of mu (x - threshold). *)
Lemma excess_density_sign x :
  (0 <= shift * (x - threshold) -> 0 <= excess_density x) /\
  (shift * (x - threshold) <= 0 -> excess_density x <= 0).
Proof.
  pose proof shift_neq_0 as Hn; pose proof (density_pos m0 s Hs x) as Hd.
  assert (E : density m1 s x = exp (eps + shift * (x - threshold) / s) * density m0 s x).
  { rewrite !density_scaled by exact Hs; rewrite <- (Rmult_assoc (exp _)), <- exp_plus.
    do 2 f_equal.
    replace m1 with (m0 + shift * s) by (unfold shift; field; lra).
    unfold threshold; field; split; lra. }
  unfold excess_density; rewrite E, exp_plus; pose proof (exp_pos eps).
  assert (0 < exp eps * density m0 s x) by (apply Rmult_lt_0_compat; assumption).
  assert (0 < / s) by (apply Rinv_0_lt_compat, Hs).
  split; intros Sg.
  - assert (1 <= exp (shift * (x - threshold) / s)); [|nra].
    rewrite <- exp_0; apply exp_le; unfold Rdiv; nra.
  - assert (exp (shift * (x - threshold) / s) <= 1); [|nra].
    rewrite <- exp_0; apply exp_le; unfold Rdiv; nra.
Qed.

Lemma excess_le y z :
  y <= z -> (forall x, y <= x <= z -> 0 <= shift * (x - threshold)) ->
  excess (Finite y) <= excess (Finite z).
Proof.
  intros Hyz Sg; apply (le_of_derive (fun y => excess (Finite y)) excess_density); auto.
  - apply is_derive_excess.
  - intros x Hx; apply excess_density_sign, Sg, Hx.
Qed.

Lemma excess_ge y z :
  y <= z -> (forall x, y <= x <= z -> shift * (x - threshold) <= 0) ->
  excess (Finite z) <= excess (Finite y).
Proof.
  intros Hyz Sg.
  assert (-1 * excess (Finite y) <= -1 * excess (Finite z)); [|lra].
  apply (le_of_derive (fun y => -1 * excess (Finite y)) (fun x => -1 * excess_density x)); auto.
  - intros x; apply is_derive_scal, is_derive_excess.
  - intros x Hx; destruct (excess_density_sign x) as [_ Sg']; specialize (Sg' (Sg x Hx)); lra.
Qed.

Lemma excess_threshold :
  excess (Finite threshold)
    = Phi (eps / shift - shift / 2) - exp eps * Phi (eps / shift + shift / 2).
Proof.
  pose proof shift_neq_0; unfold excess, cdf.
  replace ((threshold - m0) / s) with (eps / shift + shift / 2)
    by (unfold threshold; field; split; lra).
  replace ((threshold - m1) / s) with (eps / shift - shift / 2).
  - ring.
  - replace m1 with (m0 + shift * s) by (unfold shift; field; lra).
    unfold threshold; field; split; lra.
Qed.

(** The cells above (shift > 0) or below (shift < 0) the threshold weigh gaussian_delta. *)
Lemma excess_above : 0 < shift ->
  excess p_infty - excess (Finite threshold) = gaussian_delta (Rabs shift) eps.
Proof.
  intros Hp; rewrite excess_threshold, Rabs_right by lra; unfold gaussian_delta, excess; simpl.
  replace (shift / 2 - eps / shift) with (- (eps / shift - shift / 2)) by ring.
  replace (- (shift / 2) - eps / shift) with (- (eps / shift + shift / 2)) by ring.
  rewrite !Phi_opp; ring.
Qed.

Lemma excess_below : shift < 0 ->
  excess (Finite threshold) - excess m_infty = gaussian_delta (Rabs shift) eps.
Proof.
  intros Hn; rewrite excess_threshold, Rabs_left by lra; unfold gaussian_delta, excess; simpl.
  replace (- shift / 2 - eps / - shift) with (eps / shift - shift / 2) by (field; lra).
  replace (- (- shift / 2) - eps / - shift) with (eps / shift + shift / 2) by (field; lra).
  ring.
Qed.

Lemma prob_excess cuts event :
  prob (cells m_infty cuts) (rounded m1 s) event
    - exp eps * prob (cells m_infty cuts) (rounded m0 s) event
  = total (cells m_infty cuts) (fun c => if event c then increment excess c else 0).
Proof.
  unfold prob; rewrite <- total_scal, <- total_minus.
  apply total_ext; intros c _; unfold rounded, increment, excess; destruct (event c); ring.
Qed.

(** The bound, for every event of every interval partition. *)
Theorem gaussian_rounded_delta cuts event :
  ascending m_infty cuts ->
  prob (cells m_infty cuts) (rounded m1 s) event
    <= exp eps * prob (cells m_infty cuts) (rounded m0 s) event + gaussian_delta (Rabs shift) eps.
Proof.
  intros Hc; pose proof (prob_excess cuts event) as E; pose proof shift_neq_0 as Hn.
  assert (B : total (cells m_infty cuts) (fun c => if event c then increment excess c else 0)
              <= gaussian_delta (Rabs shift) eps); [|lra].
  destruct (Rle_lt_dec shift 0) as [Le|Gt].
  - rewrite <- excess_below by lra.
    replace (excess (Finite threshold) - excess m_infty)
      with (excess (upto threshold p_infty) - excess (upto threshold m_infty)).
    + apply (event_increment excess (fun x => excess (upto threshold x)) m_infty); [exact Hc|].
      intros x y; apply fold_upto; [apply regular_excess|split].
      * intros y' z' H; apply excess_le; [lra|intros; nra].
      * intros y' z' H; apply excess_ge; [lra|intros; nra].
    + unfold upto; destruct (Rbar_le_dec p_infty threshold) as [H|_]; [destruct H|].
      destruct (Rbar_le_dec m_infty threshold) as [_|H]; [reflexivity|elim H; exact I].
  - rewrite <- excess_above by exact Gt.
    replace (excess p_infty - excess (Finite threshold))
      with (excess (from threshold p_infty) - excess (from threshold m_infty)).
    + apply (event_increment excess (fun x => excess (from threshold x)) m_infty); [exact Hc|].
      intros x y; apply fold_from; [apply regular_excess|split].
      * intros y' z' H; apply excess_ge; [lra|intros; nra].
      * intros y' z' H; apply excess_le; [lra|intros; nra].
    + unfold from; destruct (Rbar_le_dec p_infty threshold) as [H|_]; [destruct H|].
      destruct (Rbar_le_dec m_infty threshold) as [_|H]; [reflexivity|elim H; exact I].
Qed.

(** It is attained: a partition with one cut has an event with equality. *)
Theorem gaussian_delta_attained :
  exists event, let l := cells m_infty [threshold] in
  prob l (rounded m1 s) event
    = exp eps * prob l (rounded m0 s) event + gaussian_delta (Rabs shift) eps.
Proof.
  pose proof shift_neq_0 as Hn; destruct (Rle_lt_dec shift 0) as [Le|Gt].
  - set (event := fun c : Rbar * Rbar => match snd c with Finite _ => true | _ => false end).
    exists event; cbv zeta; pose proof (prob_excess [threshold] event) as E.
    rewrite <- excess_below by lra; unfold increment, event in *; cbn in E |- *; lra.
  - set (event := fun c : Rbar * Rbar => match snd c with Finite _ => false | _ => true end).
    exists event; cbv zeta; pose proof (prob_excess [threshold] event) as E.
    rewrite <- excess_above by exact Gt; unfold increment, event in *; cbn in E |- *; lra.
Qed.

End Pair.

(** ** Monotone in mu, so a bound on the sensitivity is enough *)

Lemma bell_shift mu eps :
  0 < mu -> exp eps * bell (- (mu / 2) - eps / mu) = bell (mu / 2 - eps / mu).
Proof. intros Hmu; unfold bell; rewrite <- exp_plus; f_equal; field; lra. Qed.

Lemma is_derive_gaussian_delta mu eps :
  0 < mu ->
  is_derive (fun mu => gaussian_delta mu eps) mu (bell (mu / 2 - eps / mu) / root_two_pi).
Proof.
  intros Hmu; pose proof root_two_pi_pos as Hr; unfold gaussian_delta.
  assert (D1 : is_derive (fun mu => mu / 2 - eps / mu) mu (/ 2 + eps / (mu * mu)))
    by (auto_derive; [lra|field; lra]).
  assert (D2 : is_derive (fun mu => - (mu / 2) - eps / mu) mu (- / 2 + eps / (mu * mu)))
    by (auto_derive; [lra|field; lra]).
  pose proof (is_derive_comp Phi _ mu _ _ (is_derive_Phi _) D1) as C1.
  pose proof (is_derive_comp Phi _ mu _ _ (is_derive_Phi _) D2) as C2.
  pose proof (is_derive_minus (V := R_NormedModule) _ _ _ _ _ C1
                (is_derive_scal _ _ (exp eps) _ C2)) as D.
  unfold minus, plus, opp, scal in D; simpl in D; unfold mult in D; simpl in D.
  match type of D with is_derive _ _ ?v =>
    replace (bell (mu / 2 - eps / mu) / root_two_pi) with v end; [exact D|].
  rewrite <- (bell_shift mu eps Hmu); field; lra.
Qed.

(** A larger shift has a larger delta. *)
Theorem gaussian_delta_increasing mu mu' eps :
  0 < mu <= mu' -> gaussian_delta mu eps <= gaussian_delta mu' eps.
Proof.
  intros [Hmu Hle].
  destruct (MVT_gen (fun mu => gaussian_delta mu eps) mu mu'
              (fun mu => bell (mu / 2 - eps / mu) / root_two_pi)) as (c & Hc & E);
    rewrite Rmin_left, Rmax_right in * by exact Hle.
  - intros x Hx; apply is_derive_gaussian_delta; lra.
  - intros x Hx; apply continuity_pt_filterlim.
    apply (ex_derive_continuous (V := R_NormedModule) (fun mu => gaussian_delta mu eps)).
    eexists; apply is_derive_gaussian_delta; lra.
  - pose proof root_two_pi_pos; pose proof (bell_pos (c / 2 - eps / c)).
    assert (0 <= bell (c / 2 - eps / c) / root_two_pi * (mu' - mu)); [|lra].
    apply Rmult_le_pos; [left; apply Rdiv_lt_0_compat; assumption|lra].
Qed.

Lemma gaussian_delta_nonneg mu eps : 0 < mu -> 0 <= gaussian_delta mu eps.
Proof.
  intros Hmu.
  pose proof (gaussian_rounded_delta mu 0 1 eps Rlt_0_1 ltac:(lra) [] (fun _ => false) I) as H.
  unfold prob in H; simpl in H; unfold shift in H.
  replace ((mu - 0) / 1) with mu in H by field; rewrite Rabs_right in H; lra.
Qed.

(** The Gaussian mechanism on the reals with sensitivity Delta and noise s is
    (eps, gaussian_delta(Delta/s, eps))-DP for every eps >= 0, also after rounding. *)
Theorem gaussian_dp {D} (adj : D -> D -> Prop) (q : D -> R) (Delta s eps : R) (cuts : list R) :
  0 < s -> 0 < Delta -> 0 <= eps -> ascending m_infty cuts ->
  (forall x y, adj x y -> Rabs (q x - q y) <= Delta) ->
  dp adj (cells m_infty cuts) (fun x => rounded (q x) s) eps (gaussian_delta (Delta / s) eps).
Proof.
  intros Hs HD He Hc Hq x y Axy event; specialize (Hq x y Axy).
  assert (Hmu : 0 < Delta / s) by (apply Rdiv_lt_0_compat; assumption).
  destruct (Req_dec (q x) (q y)) as [E|N].
  - rewrite E; pose proof (gaussian_delta_nonneg (Delta / s) eps Hmu).
    assert (1 <= exp eps) by (rewrite <- exp_0; apply exp_le; exact He).
    assert (0 <= prob (cells m_infty cuts) (rounded (q y) s) event); [|nra].
    apply total_nonneg; intros c I; destruct (event c); [|lra].
    apply (rounded_distribution (q y) s cuts Hs Hc); exact I.
  - eapply Rle_trans; [apply (gaussian_rounded_delta (q x) (q y) s eps Hs N cuts event Hc)|].
    apply Rplus_le_compat_l, gaussian_delta_increasing; split.
    + apply Rabs_pos_lt, shift_neq_0; assumption.
    + unfold shift, Rdiv; rewrite Rabs_mult, (Rabs_right (/ s))
        by (left; apply Rinv_0_lt_compat, Hs).
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Hs|exact Hq].
Qed.
