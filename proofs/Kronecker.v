(** Products of polynomials with coefficients >= 0 by one multiplication of whole numbers
    (Kronecker's substitution): coefficients below 2^w are the digits of one number. *)

From Coq Require Import List ZArith Lia.
Import ListNotations.
Open Scope Z_scope.

Fixpoint sum (l : list Z) : Z := match l with [] => 0 | m :: l' => m + sum l' end.

(** ** The product, as it is defined *)

Fixpoint add_lists (k l : list Z) : list Z :=
  match k, l with
  | [], _ => l
  | _, [] => k
  | a :: k', b :: l' => a + b :: add_lists k' l'
  end.

Fixpoint multiply (k l : list Z) : list Z :=
  match k with
  | [] => []
  | a :: k' => add_lists (map (Z.mul a) l) (0 :: multiply k' l)
  end.

(** ** The product, as it is computed *)

(** The number with these digits, the lowest first. *)
Fixpoint value (w : Z) (digits : list Z) : Z :=
  match digits with [] => 0 | a :: rest => a + 2 ^ w * value w rest end.

(** Two digits become one, and one becomes two. *)
Fixpoint paired (w : Z) (digits : list Z) : list Z :=
  match digits with a :: b :: rest => a + Z.shiftl b w :: paired w rest | _ => digits end.

Definition halves (w x : Z) : list Z :=
  let high := Z.shiftr x w in [x - Z.shiftl high w; high].

Fixpoint packed (depth : nat) (w : Z) (digits : list Z) : Z :=
  match depth with
  | O => value w digits
  | S depth' => packed depth' (2 * w) (paired w digits)
  end.

Fixpoint unpacked (depth : nat) (w x : Z) : list Z :=
  match depth with
  | O => [x]
  | S depth' => flat_map (halves w) (unpacked depth' (2 * w) x)
  end.

(** No coefficient of the product is above the product of the sums. *)
Definition kronecker (k l : list Z) : list Z :=
  let w := Z.log2 (sum k) + Z.log2 (sum l) + 2 in
  let depth := Z.to_nat (Z.log2_up (Z.of_nat (length k + length l))) in
  unpacked depth w (packed depth w k * packed depth w l).

(** ** The two agree *)

Notation nonnegative := (Forall (fun m => 0 <= m)).
Notation digits_of w := (Forall (fun m => 0 <= m < 2 ^ w)).

Lemma sum_add k l : sum (add_lists k l) = sum k + sum l.
Proof. revert l; induction k as [|a k IH]; intros [|b l]; simpl; rewrite ?IH; lia. Qed.

Lemma sum_scaled c l : sum (map (Z.mul c) l) = c * sum l.
Proof. induction l as [|a l IH]; simpl; lia. Qed.

Lemma sum_multiply k l : sum (multiply k l) = sum k * sum l.
Proof.
  induction k as [|a k IH]; simpl; [reflexivity|].
  rewrite sum_add, sum_scaled; simpl; lia.
Qed.

Lemma value_add w k l : value w (add_lists k l) = value w k + value w l.
Proof. revert l; induction k as [|a k IH]; intros [|b l]; simpl; rewrite ?IH; lia. Qed.

Lemma value_scaled w c l : value w (map (Z.mul c) l) = c * value w l.
Proof. induction l as [|a l IH]; simpl; lia. Qed.

Lemma value_multiply w k l : value w (multiply k l) = value w k * value w l.
Proof.
  induction k as [|a k IH]; simpl; [reflexivity|].
  rewrite value_add, value_scaled; simpl; lia.
Qed.

Lemma length_add k l : length (add_lists k l) = Nat.max (length k) (length l).
Proof. revert l; induction k as [|a k IH]; intros [|b l]; simpl; rewrite ?IH; lia. Qed.

Lemma length_multiply k l : (length (multiply k l) <= length k + length l)%nat.
Proof.
  induction k as [|a k IH]; simpl; [lia|].
  rewrite length_add, map_length; simpl; lia.
Qed.

Lemma add_nonnegative k l : nonnegative k -> nonnegative l -> nonnegative (add_lists k l).
Proof.
  intros Hk; revert l; induction Hk as [|a k Ha Hk IH]; intros l Hl; [exact Hl|].
  destruct Hl as [|b l Hb Hl]; simpl; constructor; cbv beta in *; auto; lia.
Qed.

Lemma multiply_nonnegative k l : nonnegative k -> nonnegative l -> nonnegative (multiply k l).
Proof.
  intros Hk Hl; induction Hk as [|a k Ha Hk IH]; simpl; [constructor|].
  apply add_nonnegative; [|constructor; [lia|exact IH]].
  clear IH; induction Hl; simpl; constructor; auto; nia.
Qed.

Lemma sum_nonnegative l : nonnegative l -> 0 <= sum l.
Proof. induction 1; simpl; lia. Qed.

Lemma at_most_sum l a : nonnegative l -> In a l -> 0 <= a <= sum l.
Proof.
  induction 1 as [|b l Hb Hl IH]; [intros []|].
  apply sum_nonnegative in Hl; cbv beta in Hb; cbn [sum].
  intros [<-|I]; [|apply IH in I]; lia.
Qed.

Lemma paired_value w l : 0 <= w -> value (2 * w) (paired w l) = value w l.
Proof.
  intros Hw; enough (H : forall n l, (length l <= n)%nat -> value (2 * w) (paired w l) = value w l)
    by apply (H (length l) l (le_n _)).
  clear l; induction n as [|n IH]; intros [|a [|b l]] Hl; simpl in Hl; try lia.
  1,2: reflexivity.
  - cbn [paired value]; lia.
  - cbn [paired value]; rewrite IH, Z.shiftl_mul_pow2 by lia.
    replace (2 ^ (2 * w)) with (2 ^ w * 2 ^ w) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
    lia.
Qed.

Lemma packed_value depth w l : 0 <= w -> packed depth w l = value w l.
Proof.
  revert w l; induction depth as [|depth IH]; intros w l Hw; cbn [packed]; [reflexivity|].
  rewrite IH by lia; apply paired_value, Hw.
Qed.

Lemma halves_value w l :
  0 <= w -> value w (flat_map (halves w) l) = value (2 * w) l.
Proof.
  intros Hw; induction l as [|a l IH]; [reflexivity|]; cbn [flat_map halves app value].
  rewrite IH, Z.shiftl_mul_pow2 by lia.
  replace (2 ^ (2 * w)) with (2 ^ w * 2 ^ w) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
  lia.
Qed.

Lemma halves_digits w l : 0 <= w -> digits_of (2 * w) l -> digits_of w (flat_map (halves w) l).
Proof.
  intros Hw; assert (P : 0 < 2 ^ w) by (apply Z.pow_pos_nonneg; lia).
  induction 1 as [|a l Ha Hl IH]; [constructor|]; cbn [flat_map halves app].
  replace (2 ^ (2 * w)) with (2 ^ w * 2 ^ w) in Ha
    by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
  rewrite Z.shiftl_mul_pow2, Z.shiftr_div_pow2 by lia.
  pose proof (Z.mul_div_le a (2 ^ w) P); pose proof (Z.mul_succ_div_gt a (2 ^ w) P).
  pose proof (Z.div_pos a (2 ^ w) ltac:(lia) P).
  pose proof (Z.div_lt_upper_bound a (2 ^ w) (2 ^ w) P ltac:(lia)).
  repeat constructor; try lia; exact IH.
Qed.

Lemma unpacked_value depth w x : 0 <= w -> value w (unpacked depth w x) = x.
Proof.
  revert w; induction depth as [|depth IH]; intros w Hw; cbn [unpacked].
  - cbn [value]; lia.
  - rewrite halves_value by exact Hw; apply IH; lia.
Qed.

Lemma unpacked_digits depth w x :
  0 <= w -> 0 <= x < 2 ^ (w * 2 ^ Z.of_nat depth) -> digits_of w (unpacked depth w x).
Proof.
  revert w; induction depth as [|depth IH]; intros w Hw Hx; cbn [unpacked].
  - constructor; [|constructor]; rewrite Z.mul_1_r in Hx; exact Hx.
  - apply halves_digits; [exact Hw|]; apply IH; [lia|].
    rewrite Nat2Z.inj_succ, Z.pow_succ_r in Hx by lia.
    replace (2 * w * 2 ^ Z.of_nat depth) with (w * (2 * 2 ^ Z.of_nat depth)) by lia; exact Hx.
Qed.

Lemma length_unpacked depth w x : length (unpacked depth w x) = (2 ^ depth)%nat.
Proof.
  revert w; induction depth as [|depth IH]; intros w; cbn [unpacked]; [reflexivity|].
  rewrite Nat.pow_succ_r', <- (IH (2 * w)).
  generalize (unpacked depth (2 * w) x); intros l; induction l as [|a l IHl]; simpl in *; lia.
Qed.

Lemma value_below w l : 0 <= w -> digits_of w l -> 0 <= value w l < 2 ^ (w * Z.of_nat (length l)).
Proof.
  intros Hw; assert (P : 0 < 2 ^ w) by (apply Z.pow_pos_nonneg; lia).
  induction 1 as [|a l Ha Hl IH]; cbn [value length].
  - rewrite Z.mul_0_r; simpl; lia.
  - rewrite Nat2Z.inj_succ, Z.mul_succ_r, Z.pow_add_r by lia; nia.
Qed.

Lemma digits_unique w u v :
  0 <= w -> digits_of w u -> digits_of w v -> value w u = value w v ->
  (length u <= length v)%nat -> exists n, v = u ++ repeat 0 n.
Proof.
  intros Hw Hu; assert (P : 0 < 2 ^ w) by (apply Z.pow_pos_nonneg; lia).
  revert v; induction Hu as [|a u Ha Hu IH]; intros v Hv E L.
  - exists (length v); simpl in *; clear L; induction Hv as [|b v Hb Hv IHv]; [reflexivity|].
    cbn [value length repeat] in *; pose proof (value_below w v Hw Hv).
    assert (value w v = 0) by nia; assert (b = 0) by nia; subst b.
    rewrite <- IHv by lia; reflexivity.
  - destruct Hv as [|b v Hb Hv]; [simpl in L; lia|]; cbn [value length] in *.
    pose proof (value_below w u Hw Hu); pose proof (value_below w v Hw Hv).
    assert (value w u = value w v) by nia; assert (a = b) by nia; subst b.
    destruct (IH v Hv ltac:(assumption) ltac:(lia)) as [n ->]; exists n; reflexivity.
Qed.

Theorem kronecker_exact k l :
  nonnegative k -> nonnegative l -> exists n, kronecker k l = multiply k l ++ repeat 0 n.
Proof.
  intros Hk Hl; unfold kronecker.
  set (w := Z.log2 (sum k) + Z.log2 (sum l) + 2).
  set (depth := Z.to_nat (Z.log2_up (Z.of_nat (length k + length l)))).
  pose proof (Z.log2_nonneg (sum k)); pose proof (Z.log2_nonneg (sum l)).
  assert (Hw : 0 <= w) by lia.
  assert (Above : forall s, 0 <= s -> s < 2 ^ (Z.log2 s + 1)).
  { intros s Hs; destruct (Z.eq_dec s 0) as [->|N]; [reflexivity|].
    rewrite Z.add_1_r; apply Z.log2_spec; lia. }
  pose proof (sum_nonnegative k Hk); pose proof (sum_nonnegative l Hl).
  assert (D : digits_of w (multiply k l)).
  { pose proof (multiply_nonnegative k l Hk Hl) as N; apply Forall_forall; intros a I.
    apply (at_most_sum _ _ N) in I; rewrite sum_multiply in I; split; [lia|].
    pose proof (Above (sum k) ltac:(lia)); pose proof (Above (sum l) ltac:(lia)).
    unfold w; replace (Z.log2 (sum k) + Z.log2 (sum l) + 2)
      with (Z.log2 (sum k) + 1 + (Z.log2 (sum l) + 1)) by lia.
    rewrite Z.pow_add_r by lia; nia. }
  assert (L : (length (multiply k l) <= 2 ^ depth)%nat).
  { apply Nat.le_trans with (1 := length_multiply k l); unfold depth.
    destruct (length k + length l)%nat as [|n] eqn:E; [lia|]; rewrite <- E in *.
    pose proof (Z.log2_log2_up_spec (Z.of_nat (length k + length l)) ltac:(lia)) as [_ U].
    apply Nat2Z.inj_le; rewrite Nat2Z.inj_pow, Z2Nat.id by apply Z.log2_up_nonneg; exact U. }
  rewrite !packed_value, <- value_multiply by exact Hw.
  apply (digits_unique w); try assumption.
  - apply unpacked_digits; [exact Hw|]; pose proof (value_below w _ Hw D) as [V1 V2].
    split; [exact V1|]; apply Z.lt_le_trans with (1 := V2), Z.pow_le_mono_r; [lia|].
    apply Z.mul_le_mono_nonneg_l; [exact Hw|].
    rewrite <- (Nat2Z.inj_pow 2); apply Nat2Z.inj_le, L.
  - symmetry; apply unpacked_value, Hw.
  - rewrite length_unpacked; exact L.
Qed.
