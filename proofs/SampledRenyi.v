(** Renyi divergences of Gaussian steps on samples at whole orders, from their profiles: on Poisson
    samples by the binomial sum of the moments of normal laws (Mironov, Talwar and Zhang 2019), in the
    other order by no more, and on batches of a fixed size below the sum of Wang, Balle and
    Kasiviswanathan 2019. *)

From Coq Require Import Reals List Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian Domination BatchSampling GaussianComposition ProfileRenyi.
Import ListNotations.
Open Scope R_scope.

(** ** Powers of sums *)

(** The coefficient of t^k in (y + x t)^n. *)
Fixpoint coefficient (y x : R) (n k : nat) : R :=
  match n, k with
  | O, O => 1
  | O, S _ => 0
  | S n', O => y * coefficient y x n' 0
  | S n', S k' => x * coefficient y x n' k' + y * coefficient y x n' (S k')
  end.

Lemma coefficient_beyond y x n k : (n < k)%nat -> coefficient y x n k = 0.
Proof.
  revert k; induction n as [|n IH]; intros [|k] H; try lia; cbn [coefficient]; [reflexivity|].
  rewrite !IH by lia; ring.
Qed.

Lemma coefficient_nonneg y x n k : 0 <= y -> 0 <= x -> 0 <= coefficient y x n k.
Proof.
  intros Hy Hx; revert k; induction n as [|n IH]; intros [|k]; cbn [coefficient]; try lra.
  - apply Rmult_le_pos; auto.
  - apply Rplus_le_le_0_compat; apply Rmult_le_pos; auto.
Qed.

Lemma coefficient_first y x n : coefficient y x n 0 = y ^ n.
Proof. induction n as [|n IH]; cbn [coefficient pow]; [reflexivity|rewrite IH; reflexivity]. Qed.

Lemma coefficient_next y x n k :
  (INR k + 1) * y * coefficient y x n (S k) = (INR n - INR k) * x * coefficient y x n k.
Proof.
  revert k; induction n as [|n IH]; intros k.
  - destruct k; cbn [coefficient]; simpl INR; ring.
  - destruct k as [|k].
    + pose proof (IH 0%nat) as E; cbn [coefficient] in *; rewrite S_INR in *; simpl INR in *.
      replace ((0 + 1) * y * (x * coefficient y x n 0 + y * coefficient y x n 1))
        with (x * y * coefficient y x n 0 + y * ((0 + 1) * y * coefficient y x n 1)) by ring.
      rewrite E; ring.
    + pose proof (IH k) as E; pose proof (IH (S k)) as E'; rewrite !S_INR in *; cbn [coefficient] in *.
      replace ((INR k + 1 + 1) * y * (x * coefficient y x n (S k) + y * coefficient y x n (S (S k))))
        with (x * ((INR k + 1) * y * coefficient y x n (S k)) + x * y * coefficient y x n (S k)
              + y * ((INR k + 1 + 1) * y * coefficient y x n (S (S k)))) by ring.
      rewrite E, E'; ring.
Qed.

Lemma total_from_first n (f : nat -> R) :
  total (seq 0 (S n)) f = f 0%nat + total (seq 0 n) (fun k => f (S k)).
Proof. cbn [seq total]; rewrite <- seq_shift, total_map; reflexivity. Qed.

Lemma power_of_sum y x t n : (y + x * t) ^ n = total (seq 0 (S n)) (fun k => coefficient y x n k * t ^ k).
Proof.
  induction n as [|n IH]; [simpl; ring|]; rewrite <- tech_pow_Rmult, IH.
  set (T := total (seq 0 (S n)) (fun k => coefficient y x n k * t ^ k)).
  assert (Last : T = coefficient y x n 0 + total (seq 0 (S n)) (fun k => coefficient y x n (S k) * t ^ S k)).
  { rewrite (total_seq_S n (fun k => coefficient y x n (S k) * t ^ S k)), (coefficient_beyond y x n (S n)) by lia.
    unfold T; rewrite total_from_first; cbn [pow]; ring. }
  rewrite total_from_first; cbn [coefficient].
  rewrite (total_ext (seq 0 (S n)) _ (fun k => x * t * (coefficient y x n k * t ^ k) + y * (coefficient y x n (S k) * t ^ S k)))
    by (intros k _; cbn [pow]; ring).
  rewrite total_plus, !total_scal; fold T.
  replace (total (seq 0 (S n)) (fun k => coefficient y x n (S k) * t ^ S k)) with (T - coefficient y x n 0) by lra.
  cbn [pow]; ring.
Qed.

(** Second powers from above. *)
Lemma inverse_power x m : 0 <= x -> (/ (1 + x)) ^ m <= 1 - INR m * x + INR m * (INR m + 1) / 2 * x ^ 2.
Proof.
  intros Hx; assert (P : 0 < / (1 + x)) by (apply Rinv_0_lt_compat; lra).
  induction m as [|m IH]; [simpl; lra|]; rewrite <- tech_pow_Rmult, S_INR.
  apply Rmult_le_reg_l with (1 + x); [lra|]; rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
  apply Rle_trans with (1 := IH); pose proof (pos_INR m) as Pm; simpl pow; rewrite !Rmult_1_r.
  assert (0 <= (INR m + 1) * (INR m + 1 + 1) / 2 * (x * x * x)).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [nra|lra]|apply Rmult_le_pos; [nra|lra]]. }
  nra.
Qed.

(** ** Terms at whole orders *)

Lemma power_term n p q : (1 <= n)%nat -> 0 <= p -> 0 <= q -> (q = 0 -> p = 0) ->
  renyi_term (INR n) p q = q * (p / q) ^ n.
Proof.
  intros Hn Hp [Hq|<-] Z; [|rewrite renyi_term_0_r; ring].
  destruct Hp as [Hp|<-]; [|rewrite renyi_term_0_l; unfold Rdiv; rewrite Rmult_0_l, pow_i by lia; ring].
  rewrite renyi_term_pos, <- Rpower_pow by (try assumption; apply Rdiv_lt_0_compat; assumption); unfold Rpower.
  replace (ln (p / q)) with (ln p - ln q) by (unfold Rdiv; rewrite ln_mult, ln_Rinv by (auto using Rinv_0_lt_compat); ring).
  rewrite <- (exp_ln q) at 2 by exact Hq; rewrite <- exp_plus; f_equal; ring.
Qed.

Lemma grows n a b : 1 <= a <= b -> a ^ n + (/ a) ^ n <= b ^ n + (/ b) ^ n.
Proof.
  intros [H1 H2]; rewrite !pow_inv.
  assert (A1 : 1 <= a ^ n) by (apply pow_R1_Rle, H1); assert (B1 : a ^ n <= b ^ n) by (apply pow_incr; lra).
  assert (Pi : 0 < / a ^ n) by (apply Rinv_0_lt_compat; lra).
  assert (/ a ^ n - / b ^ n <= b ^ n - a ^ n); [|lra].
  replace (/ a ^ n - / b ^ n) with ((b ^ n - a ^ n) * (/ a ^ n * / b ^ n)) by (field; lra).
  assert (I1 : / a ^ n <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (I2 : 0 < / b ^ n <= 1) by (split; [apply Rinv_0_lt_compat; lra|rewrite <- Rinv_1; apply Rinv_le_contravar; lra]).
  assert (/ a ^ n * / b ^ n <= 1) by nra; nra.
Qed.

(** A law against its mixture with another, and that one against its own, are no further apart than the
    mixtures against the laws. *)
Lemma exchanged_terms n r p q : (1 <= n)%nat -> 0 <= r <= 1 -> 0 < p -> 0 < q ->
  let g := r * p + (1 - r) * q in let h := r * q + (1 - r) * p in
  renyi_term (INR n) q g + renyi_term (INR n) p h <= renyi_term (INR n) g q + renyi_term (INR n) h p.
Proof.
  intros Hn Hr Hp Hq; cbv zeta.
  set (g := r * p + (1 - r) * q); set (h := r * q + (1 - r) * p).
  assert (Pg : 0 < g) by (unfold g; destruct (Rle_lt_dec r 0); nra).
  assert (Ph : 0 < h) by (unfold h; destruct (Rle_lt_dec r 0); nra).
  rewrite !power_term by (assumption || lra).
  set (u := g / q); set (v := h / p).
  assert (Pu : 0 < u) by (apply Rdiv_lt_0_compat; assumption); assert (Pv : 0 < v) by (apply Rdiv_lt_0_compat; assumption).
  replace (q / g) with (/ u) by (unfold u; field; lra); replace (p / h) with (/ v) by (unfold v; field; lra).
  assert (Eg : g = q * u) by (unfold u; field; lra); assert (Eh : h = p * v) by (unfold v; field; lra).
  assert (Sum : g + h = p + q) by (unfold g, h; ring).
  assert (Mu : q * (u - 1) = r * (p - q)) by (replace (q * (u - 1)) with (g - q) by (rewrite Eg; ring); unfold g; ring).
  assert (Mv : p * (v - 1) = r * (q - p)) by (replace (p * (v - 1)) with (h - p) by (rewrite Eh; ring); unfold h; ring).
  assert (One : 1 <= u * v).
  { replace (u * v) with (g * h / (p * q)) by (unfold u, v; field; lra).
    apply Rmult_le_reg_r with (p * q); [apply Rmult_lt_0_compat; assumption|].
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by (apply Rgt_not_eq; nra).
    unfold g, h; assert (0 <= r * (1 - r) * ((p - q) * (p - q))) by (apply Rmult_le_pos; [nra|apply Rle_0_sqr]); nra. }
  (* the larger ratio is further from one *)
  assert (Wide : forall k, 0 <= r * (p - q) * ((u ^ k + (/ u) ^ k) - (v ^ k + (/ v) ^ k))).
  { intros k; assert (Low : forall a b, 0 < a -> 0 < b -> 1 <= a * b -> b <= 1 ->
              b ^ k + (/ b) ^ k <= a ^ k + (/ a) ^ k).
    { intros a b Pa Pb Ab B1; replace (b ^ k + (/ b) ^ k) with ((/ b) ^ k + (/ / b) ^ k) by (rewrite Rinv_inv; ring).
      apply grows; split; [rewrite <- Rinv_1; apply Rinv_le_contravar; lra|].
      apply Rmult_le_reg_r with b; [exact Pb|]; rewrite Rinv_l by lra; lra. }
    destruct (Rle_lt_dec q p) as [Le|Gt].
    - assert (V1 : v <= 1) by (apply Rmult_le_reg_l with p; nra).
      specialize (Low u v Pu Pv One V1); apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra].
    - assert (U1 : u <= 1) by (apply Rmult_le_reg_l with q; nra).
      specialize (Low v u Pv Pu ltac:(lra) U1).
      replace (r * (p - q) * (u ^ k + (/ u) ^ k - (v ^ k + (/ v) ^ k)))
        with (r * (q - p) * (v ^ k + (/ v) ^ k - (u ^ k + (/ u) ^ k))) by ring.
      apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]. }
  rewrite Eg, Eh; induction Hn as [|k Hk IH].
  - rewrite !pow_1, !Rmult_assoc, !Rinv_r, !Rmult_1_r by lra; lra.
  - specialize (Wide k); rewrite <- !tech_pow_Rmult.
    replace (q * u * (/ u * (/ u) ^ k)) with (q * u * (/ u) ^ k - q * (u - 1) * (/ u) ^ k) by (field; lra).
    replace (p * v * (/ v * (/ v) ^ k)) with (p * v * (/ v) ^ k - p * (v - 1) * (/ v) ^ k) by (field; lra).
    replace (q * (u * u ^ k)) with (q * u ^ k + q * (u - 1) * u ^ k) by ring.
    replace (p * (v * v ^ k)) with (p * v ^ k + p * (v - 1) * v ^ k) by ring.
    rewrite Mu, Mv; lra.
Qed.

(** Both halves of a mixture, as a batch has them, at the ratio 1 + x. *)
Lemma halves_at_most n x : (2 <= n)%nat -> 0 <= x ->
  (1 + x) ^ n + (1 + x) * (/ (1 + x)) ^ n - (1 + x) - 1
    <= INR n * (INR n - 1) * x ^ 2 + total (seq 3 (n - 2)) (fun k => coefficient 1 1 n k * x ^ k).
Proof.
  intros Hn Hx; pose proof (inverse_power x (n - 1) Hx) as Low.
  rewrite minus_INR in Low by lia; change (INR 1) with 1 in Low.
  assert (En : (1 + x) * (/ (1 + x)) ^ n = (/ (1 + x)) ^ (n - 1)).
  { replace n with (S (n - 1)) at 1 by lia; rewrite <- tech_pow_Rmult; field_simplify; [reflexivity|lra]. }
  rewrite En; pose proof (power_of_sum 1 1 x n) as Sum; rewrite Rmult_1_l in Sum; rewrite Sum.
  assert (C0 : coefficient 1 1 n 0 = 1) by (rewrite coefficient_first; apply pow1).
  pose proof (coefficient_next 1 1 n 0) as C1; pose proof (coefficient_next 1 1 n 1) as C2.
  rewrite C0 in C1; simpl INR in C1, C2; assert (E1 : coefficient 1 1 n 1 = INR n) by lra.
  assert (E2 : coefficient 1 1 n 2 = INR n * (INR n - 1) / 2) by (rewrite E1 in C2; lra).
  replace n with (S (S (n - 2))) at 1 by lia; rewrite !total_from_first.
  set (rest := total (seq 0 (n - 2)) _); replace (total (seq 3 (n - 2)) _) with rest.
  2:{ unfold rest; rewrite <- !seq_shift, !total_map; reflexivity. }
  rewrite C0, E1, E2; simpl pow in *; lra.
Qed.

(** ** Normal laws *)

(** e^(k (k - 1) m / 2): the moment of order k of normal laws m apart, in squares. *)
Definition normal_power (m : R) (k : nat) : R := exp (INR k * (INR k - 1) / 2 * m).

Definition mean_power (y x : R) (n : nat) (m : R) : R :=
  total (seq 0 (S n)) (fun k => coefficient y x n k * normal_power m k).

Section Moments.

Variables (mu r : R) (n : nat).
Hypotheses (Hmu : 0 <= mu) (Hr : 0 <= r <= 1) (Hn : (2 <= n)%nat).

Notation P := (rounded mu 1).
Notation Q := (rounded 0 1).
Notation up := (one_way P Q).
Notation low := (one_way Q P).

Lemma order_above_one : 1 < INR n.
Proof. apply (lt_INR 1), Hn. Qed.

Section Cut.

Variable cuts : list R.
Hypothesis Hc : ascending m_infty cuts.

Notation o := (both_ways cuts).

Lemma cell_laws c : In c (cells m_infty cuts) -> 0 <= P c /\ 0 <= Q c /\ (P c = 0 <-> Q c = 0).
Proof.
  intros I; assert (Le : Rbar_le (fst c) (snd c)) by (apply (cells_ordered m_infty cuts); assumption).
  split; [apply (rounded_distribution mu 1 cuts Rlt_0_1 Hc), I|split; [apply (rounded_distribution 0 1 cuts Rlt_0_1 Hc), I|]].
  split; apply rounded_zero; auto using Rlt_0_1.
Qed.

Lemma way_laws y : In y o -> 0 <= up y /\ 0 <= low y /\ (up y = 0 <-> low y = 0).
Proof.
  intros I; unfold both_ways in I; apply in_app_or in I as [I|I]; apply in_map_iff in I as (c & <- & I);
    destruct (cell_laws c I) as (H1 & H2 & H3); unfold one_way; cbn [fst snd]; (split; [lra|split; [lra|]]);
    split; intros E; [assert (P c = 0) by lra; rewrite (proj1 H3) by assumption|
                      assert (Q c = 0) by lra; rewrite (proj2 H3) by assumption|
                      assert (Q c = 0) by lra; rewrite (proj2 H3) by assumption|
                      assert (P c = 0) by lra; rewrite (proj1 H3) by assumption]; lra.
Qed.

Lemma up_law : distribution o up.
Proof. apply both_ways_law; apply rounded_distribution; auto using Rlt_0_1. Qed.
Lemma low_law : distribution o low.
Proof. apply both_ways_law; apply rounded_distribution; auto using Rlt_0_1. Qed.

Lemma cell_power m1 m0 k : (m1 - m0) * (m1 - m0) = mu * mu ->
  total (cells m_infty cuts) (fun c => rounded m0 1 c * (rounded m1 1 c / rounded m0 1 c) ^ k) <= normal_power (mu * mu) k.
Proof.
  intros Em; pose proof (rounded_distribution m1 1 cuts Rlt_0_1 Hc) as [N1 S1].
  pose proof (rounded_distribution m0 1 cuts Rlt_0_1 Hc) as [N0 S0].
  assert (Zero : forall c, In c (cells m_infty cuts) -> rounded m0 1 c = 0 -> rounded m1 1 c = 0)
    by (intros c I; apply rounded_zero; auto using Rlt_0_1; apply (cells_ordered m_infty cuts); assumption).
  unfold normal_power; destruct k as [|[|k]].
  - simpl INR; rewrite (total_ext _ _ (rounded m0 1)) by (intros; simpl; ring); rewrite S0.
    replace (0 * (0 - 1) / 2 * (mu * mu)) with 0 by field; rewrite exp_0; lra.
  - simpl INR; rewrite (total_ext _ _ (rounded m1 1)), S1.
    + replace (1 * (1 - 1) / 2 * (mu * mu)) with 0 by field; rewrite exp_0; lra.
    + intros c I; simpl pow; destruct (Req_dec (rounded m0 1 c) 0) as [E|E]; [rewrite (Zero c I E), E; ring|field; exact E].
  - assert (Order : 1 < INR (S (S k))) by (apply (lt_INR 1); lia).
    destruct (gaussian_rounded_rdp m1 m0 1 (INR (S (S k))) cuts Rlt_0_1 Order Hc) as [_ M].
    rewrite Em in M; eapply Rle_trans; [|eapply Rle_trans; [exact M|right; f_equal; field]].
    right; unfold moment; apply total_ext; intros c I; symmetry; apply power_term; auto; lia.
Qed.

Lemma way_power k : total o (fun y => low y * (up y / low y) ^ k) <= normal_power (mu * mu) k.
Proof.
  rewrite total_both_ways; unfold one_way; cbn [fst snd].
  pose proof (cell_power mu 0 k ltac:(ring)) as C1; pose proof (cell_power 0 mu k ltac:(ring)) as C2.
  assert (Half : forall u v : Rbar * Rbar -> R,
            total (cells m_infty cuts) (fun c => v c / 2 * (u c / 2 / (v c / 2)) ^ k)
            = / 2 * total (cells m_infty cuts) (fun c => v c * (u c / v c) ^ k)).
  { intros u v; rewrite <- total_scal; apply total_ext; intros c _.
    destruct (Req_dec (v c) 0) as [E|E]; [rewrite E; lra|].
    replace (u c / 2 / (v c / 2)) with (u c / v c) by (field; exact E); field. }
  rewrite !Half; lra.
Qed.

Notation mixed := (sampled r up low).

Lemma mixed_laws y : In y o -> 0 <= mixed y /\ (mixed y = 0 -> low y = 0) /\ (low y = 0 -> mixed y = 0).
Proof.
  intros I; destruct (way_laws y I) as (H1 & H2 & H3); unfold sampled.
  assert (0 <= r * up y) by (apply Rmult_le_pos; lra); assert (0 <= (1 - r) * low y) by (apply Rmult_le_pos; lra).
  split; [lra|split; intros E; [|rewrite E, (proj2 H3 E); ring]].
  destruct (Req_dec r 0) as [->|Nz]; [lra|].
  apply H3; apply Rmult_eq_reg_l with r; [|exact Nz]; lra.
Qed.

Lemma mixed_moment : moment (INR n) o mixed low <= mean_power (1 - r) r n (mu * mu).
Proof.
  unfold moment, mean_power.
  rewrite (total_ext o _ (fun y => total (seq 0 (S n)) (fun k => coefficient (1 - r) r n k * (low y * (up y / low y) ^ k)))).
  - rewrite total_swap; apply total_le; intros k _; rewrite total_scal.
    apply Rmult_le_compat_l; [apply coefficient_nonneg; lra|apply way_power].
  - intros y I; destruct (way_laws y I) as (H1 & H2 & H3), (mixed_laws y I) as (M1 & _ & M2).
    rewrite power_term by (auto; lia).
    rewrite (total_ext (seq 0 (S n)) _ (fun k => low y * (coefficient (1 - r) r n k * (up y / low y) ^ k))) by (intros; ring).
    rewrite total_scal, <- power_of_sum; destruct (Req_dec (low y) 0) as [E|E]; [rewrite E; ring|].
    do 2 f_equal; unfold sampled; field; exact E.
Qed.

(** In the other order. *)
Lemma turned_moment : moment (INR n) o low mixed <= moment (INR n) o mixed low.
Proof.
  unfold moment; rewrite !total_both_ways, <- !total_plus; apply total_le; intros c I.
  destruct (cell_laws c I) as (H1 & H2 & H3); unfold sampled, one_way; cbn [fst snd].
  destruct H1 as [H1|E].
  2:{ rewrite <- E, (proj1 H3 (eq_sym E)); unfold Rdiv; rewrite !Rmult_0_l, !Rmult_0_r, Rplus_0_r, !renyi_term_0_l; lra. }
  destruct H2 as [H2|E]; [|rewrite (proj2 H3 (eq_sym E)) in H1; lra].
  apply (exchanged_terms n r (P c / 2) (Q c / 2) ltac:(lia) Hr); lra.
Qed.

(** A mixture's excess, by that of its parts. *)
Lemma mixed_excess a b F : 0 <= a -> 0 <= b ->
  (forall u v, u = a * r -> v = b - a * (1 - r) -> 0 <= u -> 0 <= v -> F u v <= excess o up low u v) ->
  removal_profile r F a b <= excess o mixed low a b.
Proof.
  intros Ha Hb Le; unfold removal_profile; destruct (Rle_dec (a * (1 - r)) b) as [G|G].
  - eapply Rle_trans; [apply Le; try reflexivity; [apply Rmult_le_pos; lra|lra]|].
    right; apply total_ext; intros y _; f_equal; unfold sampled; ring.
  - destruct up_law as [_ Su], low_law as [_ Sl].
    apply Rle_trans with (total o (fun y => a * mixed y - b * low y)); [|apply total_le; intros; apply plus_part_ge].
    rewrite total_minus, !total_scal; unfold sampled; rewrite total_plus, !total_scal, Su, Sl; lra.
Qed.

Lemma turned_excess a b F : 0 <= a -> 0 <= b ->
  (forall u v, u = a - b * (1 - r) -> v = b * r -> 0 <= u -> 0 <= v -> F u v <= excess o up low u v) ->
  addition_profile r F a b <= excess o low mixed a b.
Proof.
  intros Ha Hb Le; unfold addition_profile; destruct (Rle_dec (b * (1 - r)) a) as [G|G]; [|apply excess_nonneg].
  eapply Rle_trans; [apply Le; try reflexivity; [lra|apply Rmult_le_pos; lra]|].
  assert (Same : forall u v, excess o up low u v = excess o low up u v)
    by (intros; rewrite !excess_both_ways; field).
  rewrite Same; right; apply total_ext; intros y _; f_equal; unfold sampled; ring.
Qed.

End Cut.

Theorem removal_renyi {A} (l : list A) p q : nonneg l p -> nonneg l q ->
  below_profile l p q (removal_profile r (gaussian_profile mu)) ->
  covered l p q /\ moment (INR n) l p q <= mean_power (1 - r) r n (mu * mu).
Proof.
  intros Np Nq B; apply (moment_of_profile (B := bool * (Rbar * Rbar)) (INR n) order_above_one l p q _ Np Nq); intros gammas.
  destruct (gaussian_pair mu Hmu (map (fun g => (1 * r, g - 1 * (1 - r))) gammas)) as (cuts & Hc & Reach).
  exists (both_ways cuts), (sampled r up low), low.
  split; [intros y I; apply (mixed_laws cuts Hc y I)|split; [intros y I; apply (way_laws cuts Hc y I)|split]].
  - intros y I; apply (mixed_laws cuts Hc y I).
  - split; [apply mixed_moment, Hc|]; intros g I Hg; eapply Rle_trans; [apply (B 1 g); lra|].
    apply mixed_excess; try assumption; [lra|]; intros u v -> -> Hu Hv; apply Reach; try assumption.
    apply (in_map (fun g => (1 * r, g - 1 * (1 - r)))), I.
Qed.

Theorem addition_renyi {A} (l : list A) p q : nonneg l p -> nonneg l q ->
  below_profile l p q (addition_profile r (gaussian_profile mu)) ->
  covered l p q /\ moment (INR n) l p q <= mean_power (1 - r) r n (mu * mu).
Proof.
  intros Np Nq B; apply (moment_of_profile (B := bool * (Rbar * Rbar)) (INR n) order_above_one l p q _ Np Nq); intros gammas.
  destruct (gaussian_pair mu Hmu (map (fun g => (1 - g * (1 - r), g * r)) gammas)) as (cuts & Hc & Reach).
  exists (both_ways cuts), low, (sampled r up low).
  split; [intros y I; apply (way_laws cuts Hc y I)|split; [intros y I; apply (mixed_laws cuts Hc y I)|split]].
  - intros y I; apply (mixed_laws cuts Hc y I).
  - split; [eapply Rle_trans; [apply turned_moment, Hc|apply mixed_moment, Hc]|].
    intros g I Hg; eapply Rle_trans; [apply (B 1 g); lra|].
    apply turned_excess; try assumption; [lra|]; intros u v -> -> Hu Hv; apply Reach; try assumption.
    apply (in_map (fun g => (1 - g * (1 - r), g * r))), I.
Qed.

(** ** Batches of a fixed size: the upper half of one order and the lower half of the other *)

Definition batch_power (m : R) : R :=
  1 + INR n * (INR n - 1) * r ^ 2 * (exp m - 1)
  + total (seq 3 (n - 2)) (fun k => coefficient 1 r n k * normal_power m k).

Lemma coefficient_scaled k m : coefficient 1 r m k = r ^ k * coefficient 1 1 m k.
Proof.
  revert k; induction m as [|m IH]; intros [|k]; cbn [coefficient pow]; try ring; rewrite !IH; cbn [pow]; ring.
Qed.

Section Halves.

Variable cuts : list R.
Hypothesis Hc : ascending m_infty cuts.

Notation o := (both_ways cuts).
Notation mixed := (sampled r up low).

(** Where the first law is larger. *)
Definition upper (y : bool * (Rbar * Rbar)) : R := if Rlt_dec (low y) (up y) then 1 else 0.
Definition left_over : R := 1 - total o (fun y => upper y * (mixed y + low y)).

Definition halves : list (option (bool * (bool * (Rbar * Rbar)))) :=
  None :: map (fun y => Some (true, y)) o ++ map (fun y => Some (false, y)) o.
Definition half_first (z : option (bool * (bool * (Rbar * Rbar)))) : R :=
  match z with
  | None => left_over
  | Some (true, y) => upper y * mixed y
  | Some (false, y) => upper y * low y
  end.
Definition half_second (z : option (bool * (bool * (Rbar * Rbar)))) : R :=
  match z with
  | None => left_over
  | Some (true, y) => upper y * low y
  | Some (false, y) => upper y * mixed y
  end.

Lemma total_halves f : total halves f = f None + total o (fun y => f (Some (true, y)) + f (Some (false, y))).
Proof. unfold halves; cbn [total]; rewrite total_app, !total_map, total_plus; reflexivity. Qed.

Lemma upper_cases y : In y o -> upper y = 0 /\ mixed y <= low y \/ upper y = 1 /\ 0 < low y < up y /\ low y <= mixed y <= up y.
Proof.
  intros I; destruct (way_laws cuts Hc y I) as (H1 & H2 & H3); unfold upper, sampled.
  destruct (Rlt_dec (low y) (up y)) as [L|L]; [right|left; split; [reflexivity|nra]].
  split; [reflexivity|]; assert (low y <> 0) by (intros E; rewrite (proj2 H3 E) in L; lra); nra.
Qed.

Lemma left_over_nonneg : 0 <= left_over.
Proof.
  unfold left_over; enough (total o (fun y => upper y * (mixed y + low y)) <= 1) by lra.
  apply Rle_trans with (total o (fun y => upper y * (up y + low y))).
  - apply total_le; intros y I; destruct (upper_cases y I) as [[-> _]|(-> & _ & H)]; lra.
  - rewrite total_both_ways, <- total_plus; unfold upper, one_way; cbn [fst snd].
    pose proof (rounded_distribution mu 1 cuts Rlt_0_1 Hc) as [_ S1].
    pose proof (rounded_distribution 0 1 cuts Rlt_0_1 Hc) as [_ S0].
    apply Rle_trans with (total (cells m_infty cuts) (fun c => / 2 * P c + / 2 * Q c)).
    + apply total_le; intros c I; destruct (cell_laws cuts Hc c I) as (H1 & H2 & _).
      destruct (Rlt_dec (Q c / 2) (P c / 2)), (Rlt_dec (P c / 2) (Q c / 2)); lra.
    + rewrite total_plus, !total_scal, S1, S0; lra.
Qed.

Lemma half_laws z : In z halves -> 0 <= half_first z /\ 0 <= half_second z /\ (half_second z = 0 -> half_first z = 0).
Proof.
  intros [<-|I]; [cbn [half_first half_second]; pose proof left_over_nonneg; auto|].
  apply in_app_or in I as [I|I]; apply in_map_iff in I as (y & <- & I); cbn [half_first half_second];
    destruct (upper_cases y I) as [[-> _]|(-> & L & H)]; repeat split; intros; lra.
Qed.

Lemma half_excess g F : 0 <= g ->
  (forall a b, 0 <= a -> 0 <= b -> In (a, b) [(1, g); (g, 1)] -> removal_profile r F a b <= excess o mixed low a b) ->
  replaced_profile r F 1 g <= excess halves half_first half_second 1 g.
Proof.
  intros Hg Le; unfold excess at 1; rewrite total_halves; cbn [half_first half_second].
  pose proof left_over_nonneg as W; unfold replaced_profile, turned; destruct (Rle_dec 1 g) as [G|G].
  - eapply Rle_trans; [apply (Le 1 g); [lra|lra|left; reflexivity]|]; unfold excess.
    pose proof (plus_part_nonneg (1 * left_over - g * left_over)).
    enough (total o (fun y => plus_part (1 * mixed y - g * low y)) <=
            total o (fun y => plus_part (1 * (upper y * mixed y) - g * (upper y * low y))
                              + plus_part (1 * (upper y * low y) - g * (upper y * mixed y)))) by lra.
    apply total_le; intros y I; destruct (way_laws cuts Hc y I) as (_ & H2 & _).
    destruct (upper_cases y I) as [[-> K]|(-> & L & K)].
    + rewrite !Rmult_0_l, !Rmult_0_r, Rminus_0_r, plus_part_0 by nra; pose proof (plus_part_nonneg 0); lra.
    + rewrite !Rmult_1_l; pose proof (plus_part_nonneg (low y - g * mixed y)); lra.
  - specialize (Le g 1 Hg ltac:(lra) (or_intror (or_introl eq_refl))).
    rewrite (plus_part_id (1 * left_over - g * left_over)) by nra.
    apply Rle_trans with (1 - g + excess o mixed low g 1); [lra|].
    apply Rle_trans with (1 * left_over - g * left_over
      + total o (fun y => (1 - g) * (upper y * (mixed y + low y)) + plus_part (g * mixed y - 1 * low y))).
    + rewrite total_plus, total_scal; fold (excess o mixed low g 1); unfold left_over; lra.
    + apply Rplus_le_compat_l, total_le; intros y I; destruct (mixed_laws cuts Hc y I) as (M1 & _).
      destruct (way_laws cuts Hc y I) as (_ & H2 & _).
      destruct (upper_cases y I) as [[-> K]|(-> & L & K)].
      * rewrite !Rmult_0_l, !Rmult_0_r, Rminus_0_r, (plus_part_0 (g * mixed y - 1 * low y)) by nra.
        pose proof (plus_part_nonneg 0); lra.
      * rewrite !Rmult_1_l, (plus_part_id (mixed y - g * low y)) by nra.
        unfold plus_part, Rmax; destruct (Rle_dec 0 (g * mixed y - low y)), (Rle_dec 0 (low y - g * mixed y)); lra.
Qed.

Lemma half_moment : moment (INR n) halves half_first half_second <= batch_power (mu * mu).
Proof.
  unfold moment; rewrite total_halves; cbn [half_first half_second].
  rewrite renyi_term_diag by apply left_over_nonneg.
  apply Rle_trans with (left_over + total o (fun y => upper y * (mixed y + low y)
    + (INR n * (INR n - 1) * r ^ 2 * (low y * (up y / low y - 1) ^ 2)
       + total (seq 3 (n - 2)) (fun k => coefficient 1 r n k * (low y * (up y / low y) ^ k))))).
  - apply Rplus_le_compat_l, total_le; intros y I; destruct (way_laws cuts Hc y I) as (H1 & H2 & _).
    assert (Nn : 0 <= INR n * (INR n - 1)).
    { pose proof order_above_one; apply Rmult_le_pos; lra. }
    assert (Rest : 0 <= INR n * (INR n - 1) * r ^ 2 * (low y * (up y / low y - 1) ^ 2)).
    { rewrite <- !Rsqr_pow2; apply Rmult_le_pos; [apply Rmult_le_pos; [exact Nn|apply Rle_0_sqr]|].
      apply Rmult_le_pos; [exact H2|apply Rle_0_sqr]. }
    destruct (upper_cases y I) as [[-> _]|(-> & Lt & H)].
    + rewrite !Rmult_0_l, !renyi_term_0_l, Rplus_0_l, Rplus_0_l.
      apply Rplus_le_le_0_compat; [exact Rest|]; apply total_nonneg; intros k _.
      apply Rmult_le_pos; [apply coefficient_nonneg; lra|]; destruct H2 as [H2|<-]; [|lra].
      apply Rmult_le_pos; [lra|apply pow_le; apply Rmult_le_pos; [exact H1|left; apply Rinv_0_lt_compat, H2]].
    + rewrite !Rmult_1_l, !power_term by (lia || lra).
      set (t := up y / low y); set (x := r * (t - 1)).
      assert (T : 1 <= t) by (apply Rmult_le_reg_r with (low y); [lra|]; unfold t, Rdiv; rewrite Rmult_assoc, Rinv_l; lra).
      assert (Hx : 0 <= x) by (apply Rmult_le_pos; lra).
      assert (Em : mixed y = low y * (1 + x)) by (unfold x, t, sampled; field; lra).
      rewrite Em; replace (low y * (1 + x) / low y) with (1 + x) by (field; lra).
      replace (low y / (low y * (1 + x))) with (/ (1 + x)) by (field; lra).
      pose proof (halves_at_most n x Hn Hx) as Le; apply (Rmult_le_compat_l (low y)) in Le; [|lra].
      apply Rle_trans with (low y * (1 + x) + low y + low y *
        (INR n * (INR n - 1) * x ^ 2 + total (seq 3 (n - 2)) (fun k => coefficient 1 1 n k * x ^ k))); [lra|].
      apply Rplus_le_compat_l; rewrite Rmult_plus_distr_l; apply Rplus_le_compat.
      * right; unfold x; simpl; ring.
      * rewrite <- total_scal; apply total_le; intros k _; rewrite coefficient_scaled.
        replace (low y * (coefficient 1 1 n k * x ^ k)) with (coefficient 1 1 n k * (low y * x ^ k)) by ring.
        replace (r ^ k * coefficient 1 1 n k * (low y * t ^ k)) with (coefficient 1 1 n k * (low y * (r * t) ^ k))
          by (rewrite Rpow_mult_distr; ring).
        apply Rmult_le_compat_l; [apply coefficient_nonneg; lra|]; apply Rmult_le_compat_l; [lra|].
        apply pow_incr; split; [exact Hx|apply Rmult_le_compat_l; lra].
  - rewrite total_plus, total_plus, total_scal; unfold left_over, batch_power.
    assert (Square : total o (fun y => low y * (up y / low y - 1) ^ 2) <= exp (mu * mu) - 1).
    { destruct (up_law cuts Hc) as [_ Su], (low_law cuts Hc) as [_ Sl].
      rewrite (total_ext o _ (fun y => low y * (up y / low y) ^ 2 - 2 * up y + low y)).
      - rewrite total_plus, total_minus, total_scal, Su, Sl; pose proof (way_power cuts Hc 2) as W; unfold normal_power in W.
        simpl INR in W; replace ((1 + 1) * (1 + 1 - 1) / 2 * (mu * mu)) with (mu * mu) in W by field; lra.
      - intros y I; destruct (way_laws cuts Hc y I) as (_ & _ & Z); destruct (Req_dec (low y) 0) as [E|E]; [rewrite E, (proj2 Z E); ring|field; exact E]. }
    assert (Rest : total o (fun y => total (seq 3 (n - 2)) (fun k => coefficient 1 r n k * (low y * (up y / low y) ^ k)))
                   <= total (seq 3 (n - 2)) (fun k => coefficient 1 r n k * normal_power (mu * mu) k)).
    { rewrite total_swap; apply total_le; intros k _; rewrite total_scal.
      apply Rmult_le_compat_l; [apply coefficient_nonneg; lra|apply way_power, Hc]. }
    assert (Nn : 0 <= INR n * (INR n - 1) * r ^ 2).
    { pose proof order_above_one; rewrite <- Rsqr_pow2; apply Rmult_le_pos; [apply Rmult_le_pos; lra|apply Rle_0_sqr]. }
    apply (Rmult_le_compat_l _ _ _ Nn) in Square; lra.
Qed.

End Halves.

Theorem replaced_renyi {A} (l : list A) p q : nonneg l p -> nonneg l q ->
  below_profile l p q (replaced_profile r (gaussian_profile mu)) ->
  covered l p q /\ moment (INR n) l p q <= batch_power (mu * mu).
Proof.
  intros Np Nq B.
  apply (moment_of_profile (B := option (bool * (bool * (Rbar * Rbar)))) (INR n) order_above_one l p q _ Np Nq); intros gammas.
  destruct (gaussian_pair mu Hmu (flat_map (fun g => [(1 * r, g - 1 * (1 - r)); (g * r, 1 - g * (1 - r))]) gammas))
    as (cuts & Hc & Reach).
  exists (halves cuts), (half_first cuts), (half_second cuts).
  split; [intros z I; apply (half_laws cuts Hc z I)|split; [intros z I; apply (half_laws cuts Hc z I)|split]].
  - intros z I; apply (half_laws cuts Hc z I).
  - split; [apply half_moment, Hc|]; intros g I Hg; eapply Rle_trans; [apply (B 1 g); lra|].
    apply half_excess; try assumption; intros a b Ha Hb J; apply mixed_excess; try assumption.
    intros u v -> -> Hu Hv; apply Reach; try assumption; apply in_flat_map; exists g; split; [exact I|].
    destruct J as [J|[J|[]]]; injection J as <- <-; [left|right; left]; reflexivity.
Qed.

End Moments.

(** No moment is below one. *)
Lemma normal_power_at_least m k : 0 <= m -> 1 <= normal_power m k.
Proof.
  intros Hm; unfold normal_power; rewrite <- exp_0 at 1; apply exp_le.
  assert (0 <= INR k * (INR k - 1)); [|apply Rmult_le_pos; lra].
  destruct k as [|k]; [simpl; lra|]; rewrite S_INR; pose proof (pos_INR k); nra.
Qed.

Lemma mean_power_at_least r n m : 0 <= r <= 1 -> 0 <= m -> 1 <= mean_power (1 - r) r n m.
Proof.
  intros Hr Hm; apply Rle_trans with (total (seq 0 (S n)) (fun k => coefficient (1 - r) r n k * 1 ^ k)).
  - rewrite <- power_of_sum; replace (1 - r + r * 1) with 1 by ring; rewrite pow1; lra.
  - apply total_le; intros k _; rewrite pow1; apply Rmult_le_compat_l; [apply coefficient_nonneg; lra|].
    apply normal_power_at_least, Hm.
Qed.

Lemma batch_power_at_least r n m : 0 <= r <= 1 -> 0 <= m -> 1 <= batch_power r n m.
Proof.
  intros Hr Hm; unfold batch_power.
  assert (Grown : 1 <= exp m) by (rewrite <- exp_0; apply exp_le, Hm).
  assert (Nn : 0 <= INR n * (INR n - 1)).
  { destruct n as [|n]; [simpl; lra|]; rewrite S_INR; pose proof (pos_INR n); nra. }
  assert (0 <= INR n * (INR n - 1) * r ^ 2 * (exp m - 1)).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [exact Nn|rewrite <- Rsqr_pow2; apply Rle_0_sqr]|lra]. }
  assert (0 <= total (seq 3 (n - 2)) (fun k => coefficient 1 r n k * normal_power m k)); [|lra].
  apply total_nonneg; intros k _; apply Rmult_le_pos; [apply coefficient_nonneg; lra|left; apply exp_pos].
Qed.
