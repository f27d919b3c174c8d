(** The decision of the exact delta of Gaussian DP, in fixed point. *)

From Coq Require Import Reals QArith Qreals Qround ZArith Lra Lia Bool.
From Dpledger Require Import GaussianDelta GaussianIntegral LossLists Enclosure LossEnclosures FixedPoint FixedGaussian
  SampledLoss.

Open Scope Z_scope.

(** About log2(1/delta). *)
Definition bits_below (delta : Q) : Z := Z.max 0 (Z.log2 (Zpos (Qden delta)) - Z.log2 (Qnum delta)).

(** delta falls with eps, and is small enough at [cap], where a bound on the tail is. *)
Definition capped (m eps delta : Q) : Q :=
  let k := bits_below m + 8 in
  let most := Qceiling (2 * m * inject_Z (bits_below delta + 2) * inject_Z (2 ^ (2 * k))) in
  let cap := (m / 2 + Qmake (Z.sqrt_up most + 1) (Z.to_pos (2 ^ k)))%Q in
  if Qle_bool cap eps then cap else eps.

(** Bits that leave delta right to some 90 of them: they are lost to exp(eps), to a small mu, and twice
    to a small delta ([delta_above] cancels). *)
Definition decision_bits (m eps delta : Q) : Z :=
  96 + 2 * bits_below delta + 2 * Z.max 0 (Qceiling eps) + 2 * bits_below m.

(** More terms of a series than this are not worth the wait. *)
Definition most_terms : Q := 20000.

(** delta at eps of mu-GDP, mu^2 = m > 0, is at most delta. *)
Definition decided_at (p : Z) (m eps delta : Q) : bool :=
  let half := half_above p m in
  match scale_above p half with
  | Some scale =>
      match delta_above p half scale (Qnum eps * 2 ^ p / Zpos (Qden eps)) with
      | Some d => Qle_bool (inject_Z d) (delta * inject_Z (2 ^ p))
      | None => false
      end
  | None => false
  end.

Definition gaussian_delta_at_most (m eps delta : Q) : bool :=
  let near := capped m eps delta in
  let up := (near + m / 2)%Q in
  let p := decision_bits m near delta in
  negb (Qle_bool m 0) && Qle_bool (up * up) (most_terms * m)
  && decided_at p m near delta.

Open Scope R_scope.

Lemma decided_at_sound p m eps delta :
  (guard <= p)%Z -> 0 < Q2R m -> decided_at p m eps delta = true ->
  gaussian_delta (sqrt (Q2R m)) (Q2R eps) <= Q2R delta.
Proof.
  intros Hg Hm; pose proof guard_nonneg; assert (Hp : (0 <= p)%Z) by lia.
  pose proof (unit_pos p Hp) as P; assert (Pm : 0 < sqrt (Q2R m)) by apply sqrt_lt_R0, Hm.
  unfold decided_at; cbv zeta; assert (E : (p - guard + 0 + guard)%Z = p) by lia.
  destruct (half_above_sound (p - guard) 0 m ltac:(lia) ltac:(lia) Hm) as [Ph Hh]; rewrite E in Ph, Hh.
  destruct (scale_above p _) as [scale|] eqn:S; [|discriminate].
  rewrite <- E in S at 1; apply (scale_above_sound (p - guard) 0 ltac:(lia) ltac:(lia)) in S; [|exact Ph].
  rewrite E in S; set (half := half_above p m) in *.
  destruct (delta_above _ _ _ _) as [d|] eqn:D; [|discriminate]; intros Le; apply Qle_bool_R in Le.
  rewrite Q2R_mult, !Q2R_integer in Le; fold (unit_of p) in Le.
  apply (delta_above_sound p Hp half scale Ph S) in D.
  pose proof (rational_floor p eps Hp) as F.
  eapply Rle_trans; [apply (gaussian_delta_decreasing _ _ _ Pm F)|].
  eapply Rle_trans; [apply gaussian_delta_increasing; split; [exact Pm|apply sqrt_le_1_alt, Hh]|].
  eapply Rle_trans; [exact D|]; apply Rmult_le_reg_r with (1 := P).
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra; exact Le.
Qed.

Theorem gaussian_delta_at_most_sound m eps delta :
  gaussian_delta_at_most m eps delta = true ->
  0 < Q2R m /\ gaussian_delta (sqrt (Q2R m)) (Q2R eps) <= Q2R delta.
Proof.
  unfold gaussian_delta_at_most; cbv zeta; set (near := capped m eps delta).
  rewrite !andb_true_iff, negb_true_iff; intros [[Hm _] D].
  apply Qle_bool_R_false in Hm; replace (Q2R 0) with 0 in Hm by (unfold Q2R; simpl; field).
  split; [exact Hm|].
  assert (Near : Q2R near <= Q2R eps).
  { unfold near, capped; cbv zeta; destruct (Qle_bool _ eps) eqn:E; [apply Qle_bool_R, E|lra]. }
  eapply Rle_trans; [apply gaussian_delta_decreasing; [apply sqrt_lt_R0, Hm|exact Near]|].
  assert (Bits : (guard <= decision_bits m near delta)%Z)
    by (unfold decision_bits, bits_below, guard; lia).
  apply decided_at_sound in D; assumption.
Qed.
