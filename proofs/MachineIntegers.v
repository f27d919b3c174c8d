(** Products and quotients of whole numbers by the primitive integers of the kernel (Uint63),
    where it works bit by bit otherwise: [fast_mul] is [Z.mul], and [fast_div] is [Z.div]. Numbers
    are taken apart into limbs of 31 bits, the lowest first, and put together again. The axioms are
    those of Uint63; [check_sound] needs nothing from here. *)

From Coq Require Import List Bool ZArith Lia Uint63 FunctionalExtensionality.
Import ListNotations.
Open Scope uint63_scope.

(** ** Limbs *)

Definition width : int := 31.
Definition mask : int := 2147483647.
Definition top_bit : int := 1073741824.

(** The bits of [p], [acc] below them; the next one has weight [bit]. *)
Fixpoint limbs (p : positive) (bit acc : int) : list int :=
  match p with
  | xH => [acc + bit]
  | xO q => if bit =? top_bit then acc :: limbs q 1 0 else limbs q (bit << 1) acc
  | xI q => if bit =? top_bit then acc + bit :: limbs q 1 0 else limbs q (bit << 1) (acc + bit)
  end.

(** The low [n] bits of [x], then [p]. *)
Fixpoint below (n : nat) (x : int) (p : positive) : positive :=
  match n with
  | O => p
  | S n' => if is_even x then xO (below n' (x >> 1) p) else xI (below n' (x >> 1) p)
  end.

Fixpoint joined (l : list int) : Z :=
  match l with
  | [] => 0
  | x :: l' => match joined l' with Zpos p => Zpos (below 31 x p) | _ => to_Z x end
  end.

Fixpoint value (l : list int) : Z :=
  match l with [] => 0 | x :: l' => to_Z x + 2 ^ 31 * value l' end.

Notation small x := (to_Z x < 2 ^ 31)%Z.
Notation smalls l := (Forall (fun x => small x) l).


Lemma next_bit bit k : (0 <= k < 30)%Z -> to_Z bit = (2 ^ k)%Z -> to_Z (bit << 1) = (2 ^ (k + 1))%Z.
Proof.
  intros H E; rewrite lsl_spec, E; change (to_Z 1) with 1%Z.
  rewrite <- Z.pow_add_r by lia; apply Z.mod_small.
  split; [apply Z.pow_nonneg; lia|].
  apply Z.le_lt_trans with (2 ^ 30)%Z; [apply Z.pow_le_mono_r; lia|reflexivity].
Qed.

Lemma limbs_value p : forall bit acc k,
  (0 <= k <= 30)%Z -> to_Z bit = (2 ^ k)%Z -> (to_Z acc < 2 ^ k)%Z ->
  value (limbs p bit acc) = (to_Z acc + 2 ^ k * Zpos p)%Z /\
  smalls (limbs p bit acc).
Proof.
  induction p as [p IH|p IH|]; intros bit acc k Hk Hb Ha; cbn [limbs];
    assert (P : (0 < 2 ^ k <= 2 ^ 30)%Z)
      by (split; [apply Z.pow_pos_nonneg; lia|apply Z.pow_le_mono_r; lia]);
    pose proof (to_Z_bounded acc) as A;
    assert (S : to_Z (acc + bit) = (to_Z acc + 2 ^ k)%Z)
      by (rewrite add_spec, Hb; apply Z.mod_small; unfold wB, size; simpl; lia).
  - destruct (bit =? top_bit) eqn:E.
    + apply eqb_spec in E; rewrite E in Hb; change (to_Z top_bit) with (2 ^ 30)%Z in Hb.
      destruct (IH 1 0 0%Z) as [V F]; [lia|reflexivity|reflexivity|].
      cbn [value]; rewrite V, S, <- Hb; change (to_Z 0) with 0%Z.
      split; [rewrite Pos2Z.inj_xI; lia|constructor; [lia|exact F]].
    + destruct (Z.eq_dec k 30) as [->|N].
      { apply eqb_false_spec in E; contradict E; apply to_Z_inj; exact Hb. }
      destruct (IH (bit << 1) (acc + bit) (k + 1)%Z) as [V F]; [lia|apply next_bit; lia|..].
      { rewrite S, Z.pow_add_r; lia. }
      split; [|exact F]; rewrite V, S, Z.pow_add_r, Pos2Z.inj_xI by lia; lia.
  - destruct (bit =? top_bit) eqn:E.
    + apply eqb_spec in E; rewrite E in Hb; change (to_Z top_bit) with (2 ^ 30)%Z in Hb.
      destruct (IH 1 0 0%Z) as [V F]; [lia|reflexivity|reflexivity|].
      cbn [value]; rewrite V, <- Hb; change (to_Z 0) with 0%Z.
      split; [rewrite Pos2Z.inj_xO; lia|constructor; [lia|exact F]].
    + destruct (Z.eq_dec k 30) as [->|N].
      { apply eqb_false_spec in E; contradict E; apply to_Z_inj; exact Hb. }
      destruct (IH (bit << 1) acc (k + 1)%Z) as [V F]; [lia|apply next_bit; lia|..].
      { rewrite Z.pow_add_r; lia. }
      split; [|exact F]; rewrite V, Z.pow_add_r, Pos2Z.inj_xO by lia; lia.
  - cbn [value]; rewrite S; split; [lia|constructor; [lia|constructor]].
Qed.

Lemma below_value n : forall x p,
  (to_Z x < 2 ^ Z.of_nat n)%Z -> Zpos (below n x p) = (to_Z x + 2 ^ Z.of_nat n * Zpos p)%Z.
Proof.
  induction n as [|n IH]; intros x p Hx; pose proof (to_Z_bounded x) as B.
  - change (2 ^ Z.of_nat 0)%Z with 1%Z in *; cbn [below]; lia.
  - rewrite Nat2Z.inj_succ, Z.pow_succ_r in * by lia.
    assert (H : to_Z (x >> 1) = (to_Z x / 2)%Z) by (rewrite lsr_spec; reflexivity).
    pose proof (Z.div_mod (to_Z x) 2 ltac:(lia)); pose proof (is_even_spec x) as E.
    cbn [below]; destruct (is_even x); [rewrite Pos2Z.inj_xO|rewrite Pos2Z.inj_xI];
      rewrite IH, H by (rewrite H; apply Z.div_lt_upper_bound; lia); lia.
Qed.

Lemma value_nonneg l : (0 <= value l)%Z.
Proof. induction l as [|x l IH]; cbn [value]; [lia|pose proof (to_Z_bounded x); lia]. Qed.

Lemma joined_value l : smalls l -> joined l = value l.
Proof.
  induction 1 as [|x l Hx F IH]; [reflexivity|]; cbn [joined value]; rewrite IH.
  pose proof (value_nonneg l); destruct (value l) as [|p|p]; [lia| |lia].
  rewrite below_value by exact Hx; reflexivity.
Qed.

(** ** Products *)

(** [acc] + [x] [l] + [carry]; [acc] is as long as [l]. *)
Fixpoint row (x carry : int) (l acc : list int) : list int :=
  match l, acc with
  | y :: l', a :: acc' =>
      let t := a + x * y + carry in t land mask :: row x (t >> width) l' acc'
  | _, _ => [carry]
  end.

(** [k] [l] + [acc]; [acc] is as long as [l]. *)
Fixpoint long_product (k l acc : list int) : list int :=
  match k with
  | [] => acc
  | x :: k' =>
      match row x 0 l acc with
      | low :: rest => low :: long_product k' l rest
      | [] => []
      end
  end.

Lemma split_word t :
  small (t land mask) /\ to_Z t = (to_Z (t land mask) + 2 ^ 31 * to_Z (t >> width))%Z.
Proof.
  rewrite land_spec', lsr_spec; change (to_Z mask) with (Z.ones 31).
  rewrite Z.land_ones by lia; change (2 ^ to_Z width)%Z with (2 ^ 31)%Z.
  pose proof (Z.mod_pos_bound (to_Z t) (2 ^ 31) ltac:(lia)).
  pose proof (Z.div_mod (to_Z t) (2 ^ 31) ltac:(lia)); lia.
Qed.

Lemma row_value x l : small x -> smalls l -> forall carry acc,
  small carry -> smalls acc -> length acc = length l ->
  value (row x carry l acc) = (value acc + to_Z x * value l + to_Z carry)%Z /\
  smalls (row x carry l acc) /\ length (row x carry l acc) = S (length l).
Proof.
  intros Hx F; induction F as [|y l Hy F IH]; intros carry acc Hc Fa L.
  - destruct acc; [|discriminate]; cbn; repeat split; [lia|constructor; [exact Hc|constructor]].
  - destruct Fa as [|a acc Ha Fa]; [discriminate|]; injection L as L.
    cbn [row value length]; cbv zeta.
    set (t := a + x * y + carry).
    pose proof (to_Z_bounded x); pose proof (to_Z_bounded y); pose proof (to_Z_bounded a);
      pose proof (to_Z_bounded carry).
    assert (Product : (0 <= to_Z x * to_Z y <= (2 ^ 31 - 1) * (2 ^ 31 - 1))%Z)
      by (split; [apply Z.mul_nonneg_nonneg|apply Z.mul_le_mono_nonneg]; lia).
    assert (T : to_Z t = (to_Z a + to_Z x * to_Z y + to_Z carry)%Z).
    { unfold t; rewrite !add_spec, mul_spec.
      rewrite (Z.mod_small (to_Z x * to_Z y)) by (unfold wB, size; simpl; lia).
      rewrite Z.mod_small; rewrite Z.mod_small by (unfold wB, size; simpl; lia);
        [reflexivity|unfold wB, size; simpl; lia]. }
    destruct (split_word t) as [Sm Sp]; pose proof (to_Z_bounded (t >> width));
      pose proof (to_Z_bounded (t land mask)).
    destruct (IH (t >> width) acc) as (V & F' & L'); try assumption; [|].
    { rewrite T in Sp; change (2 ^ 31)%Z with 2147483648%Z in *; lia. }
    rewrite V; repeat split; [lia|constructor; assumption|congruence].
Qed.

Lemma long_product_value k l :
  smalls k -> smalls l -> forall acc,
  smalls acc -> length acc = length l ->
  value (long_product k l acc) = (value k * value l + value acc)%Z /\
  smalls (long_product k l acc).
Proof.
  intros Fk Fl; induction Fk as [|x k Hx Fk IH]; intros acc Fa L; cbn [long_product].
  - split; [cbn [value]; lia|exact Fa].
  - destruct (row_value x l Hx Fl 0 acc) as (V & F & Lr); try assumption; [reflexivity|].
    change (to_Z 0) with 0%Z in V.
    destruct (row x 0 l acc) as [|low rest]; [discriminate|]; inversion F; subst.
    injection Lr as Lr; destruct (IH rest) as [V' F']; try assumption.
    cbn [value] in *; split; [lia|constructor; assumption].
Qed.

(** ** Sums and differences *)

Fixpoint increased (l : list int) (carry : int) : list int :=
  match l with
  | [] => [carry]
  | x :: l' => let t := x + carry in t land mask :: increased l' (t >> width)
  end.

Fixpoint total (k l : list int) (carry : int) : list int :=
  match k, l with
  | [], _ => increased l carry
  | _, [] => increased k carry
  | x :: k', y :: l' => let t := x + y + carry in t land mask :: total k' l' (t >> width)
  end.

(** [k] - [l] - [borrow], if that is not below zero. *)
Fixpoint difference (k l : list int) (borrow : int) : list int :=
  match k, l with
  | [], _ => []
  | x :: k', [] =>
      let t := x + mask + (1 - borrow) in t land mask :: difference k' [] (1 - (t >> width))
  | x :: k', y :: l' =>
      let t := x + (mask - y) + (1 - borrow) in t land mask :: difference k' l' (1 - (t >> width))
  end.

(** [low] + 2^(31 n) [high]. *)
Fixpoint placed (n : nat) (low high : list int) : list int :=
  match n, low with
  | O, _ => total low high 0
  | S n', [] => 0 :: placed n' [] high
  | S n', x :: low' => x :: placed n' low' high
  end.

Lemma add_word x y : (to_Z x + to_Z y < 2 ^ 63)%Z -> to_Z (x + y) = (to_Z x + to_Z y)%Z.
Proof.
  intros H; pose proof (to_Z_bounded x); pose proof (to_Z_bounded y).
  rewrite add_spec; apply Z.mod_small; split; [lia|exact H].
Qed.

Lemma sub_word x y : (to_Z y <= to_Z x)%Z -> to_Z (x - y) = (to_Z x - to_Z y)%Z.
Proof.
  intros H; pose proof (to_Z_bounded x); pose proof (to_Z_bounded y).
  rewrite sub_spec; apply Z.mod_small; lia.
Qed.

Lemma carried t n : to_Z t = n -> (n < 2 ^ 62)%Z ->
  (0 <= to_Z (t land mask) < 2 ^ 31)%Z /\ (0 <= to_Z (t >> width) < 2 ^ 31)%Z /\
  n = (to_Z (t land mask) + 2 ^ 31 * to_Z (t >> width))%Z.
Proof.
  intros E B; destruct (split_word t) as [S E']; pose proof (to_Z_bounded (t land mask));
    pose proof (to_Z_bounded (t >> width)); change (2 ^ 62)%Z with (2 ^ 31 * 2 ^ 31)%Z in B.
  change (2 ^ 31)%Z with 2147483648%Z in *; lia.
Qed.

(** Constants as numbers, for [lia]. *)
Ltac words :=
  change (2 ^ 31)%Z with 2147483648%Z in *; change (2 ^ 62)%Z with 4611686018427387904%Z in *;
  change (2 ^ 63)%Z with 9223372036854775808%Z in *; change (to_Z mask) with 2147483647%Z in *;
  change (to_Z 1) with 1%Z in *; change (to_Z 0) with 0%Z in *.

Lemma increased_value l : smalls l -> forall carry, small carry ->
  value (increased l carry) = (value l + to_Z carry)%Z /\ smalls (increased l carry).
Proof.
  induction 1 as [|x l Hx F IH]; intros carry Hc; cbn [increased value]; cbv zeta.
  - split; [lia|constructor; [exact Hc|constructor]].
  - assert (T : to_Z (x + carry) = (to_Z x + to_Z carry)%Z) by (apply add_word; words; lia).
    destruct (carried _ _ T) as (L & C & E); [words; lia|].
    destruct (IH ((x + carry) >> width)) as [V F']; [lia|].
    rewrite V; split; [lia|constructor; [lia|exact F']].
Qed.

Lemma total_value k : smalls k -> forall l carry, smalls l -> small carry ->
  value (total k l carry) = (value k + value l + to_Z carry)%Z /\ smalls (total k l carry).
Proof.
  induction 1 as [|x k Hx F IH]; intros l carry Fl Hc.
  - destruct (increased_value l Fl carry Hc) as [V S]; cbn [total value]; split; [lia|exact S].
  - destruct Fl as [|y l Hy Fl]; cbn [total].
    + destruct (increased_value (x :: k) ltac:(constructor; assumption) carry Hc) as [V S].
      split; [rewrite V; cbn [value]; lia|exact S].
    + cbv zeta; assert (T : to_Z (x + y + carry) = (to_Z x + to_Z y + to_Z carry)%Z).
      { rewrite !add_word; words; try rewrite add_word; words; lia. }
      destruct (carried _ _ T) as (L & C & E); [words; lia|].
      destruct (IH l ((x + y + carry) >> width) Fl) as [V F']; [lia|].
      cbn [value]; rewrite V; split; [lia|constructor; [lia|exact F']].
Qed.

Lemma taken_away x y borrow t :
  small x -> small y -> (to_Z borrow <= 1)%Z ->
  t = x + (mask - y) + (1 - borrow) ->
  (0 <= to_Z (1 - (t >> width)) <= 1)%Z /\ small (t land mask) /\
  to_Z (t land mask) = (to_Z x - to_Z y - to_Z borrow + 2 ^ 31 * to_Z (1 - (t >> width)))%Z.
Proof.
  intros Hx Hy Hb ->; set (t := x + (mask - y) + (1 - borrow)).
  pose proof (to_Z_bounded x); pose proof (to_Z_bounded y); pose proof (to_Z_bounded borrow).
  assert (Y : to_Z (mask - y) = (2 ^ 31 - 1 - to_Z y)%Z) by (rewrite sub_word; words; lia).
  assert (B : to_Z (1 - borrow) = (1 - to_Z borrow)%Z) by (rewrite sub_word; words; lia).
  assert (T : to_Z t = (to_Z x + 2 ^ 31 - to_Z y - to_Z borrow)%Z).
  { unfold t; rewrite !add_word; rewrite ?Y, ?B; words; try rewrite add_word; rewrite ?Y; words;
      lia. }
  destruct (carried _ _ T) as (L & C & E); [words; lia|].
  assert (D : to_Z (1 - (t >> width)) = (1 - to_Z (t >> width))%Z)
    by (rewrite sub_word; words; lia).
  rewrite D; words; lia.
Qed.

Lemma difference_value k : smalls k -> forall l borrow, smalls l -> (to_Z borrow <= 1)%Z ->
  (value l + to_Z borrow <= value k)%Z ->
  value (difference k l borrow) = (value k - value l - to_Z borrow)%Z /\
  smalls (difference k l borrow).
Proof.
  induction 1 as [|x k Hx F IH]; intros l borrow Fl Hb Le.
  - cbn [difference value] in *; pose proof (value_nonneg l); pose proof (to_Z_bounded borrow).
    split; [lia|constructor].
  - destruct Fl as [|y l Hy Fl]; cbn [difference]; cbv zeta.
    + destruct (taken_away x 0 borrow (x + (mask - 0) + (1 - borrow))) as (B & S & E);
        [assumption|reflexivity|assumption|reflexivity|].
      change (mask - 0) with mask in *.
      destruct (IH [] (1 - ((x + mask + (1 - borrow)) >> width))) as [V S'];
        [constructor|lia|cbn [value] in *; words; lia|].
      cbn [value] in *; rewrite V; split; [words; lia|constructor; assumption].
    + destruct (taken_away x y borrow (x + (mask - y) + (1 - borrow))) as (B & S & E);
        try assumption; [reflexivity|].
      set (t := x + (mask - y) + (1 - borrow)) in *.
      destruct (IH l (1 - (t >> width))) as [V S'];
        [assumption|lia|cbn [value] in *; words; lia|].
      cbn [value] in *; rewrite V; split; [words; lia|constructor; assumption].
Qed.

Lemma next_limb n : (2 ^ (31 * Z.of_nat (S n)) = 2 ^ 31 * 2 ^ (31 * Z.of_nat n))%Z.
Proof. rewrite Nat2Z.inj_succ, <- Z.pow_add_r by lia; f_equal; lia. Qed.

Lemma placed_value n : forall low high, smalls low -> smalls high ->
  value (placed n low high) = (value low + 2 ^ (31 * Z.of_nat n) * value high)%Z /\
  smalls (placed n low high).
Proof.
  induction n as [|n IH]; intros low high Fl Fh.
  - destruct (total_value low Fl high 0 Fh) as [V S]; [reflexivity|].
    cbn [placed]; rewrite V; change (2 ^ (31 * Z.of_nat 0))%Z with 1%Z; words; split; [lia|exact S].
  - rewrite next_limb; destruct Fl as [|x low Hx Fl]; cbn [placed value].
    + destruct (IH [] high ltac:(constructor) Fh) as [V S]; cbn [value] in V; rewrite V.
      split; [words; lia|constructor; [reflexivity|exact S]].
    + destruct (IH low high Fl Fh) as [V S]; rewrite V.
      split; [lia|constructor; assumption].
Qed.

(** ** Long products: Karatsuba's three instead of four *)

(** [cuts]: where to halve, and the halves again. *)
Fixpoint product (cuts : list nat) (k l : list int) : list int :=
  match cuts with
  | [] => long_product k l (map (fun _ => 0) l)
  | n :: cuts' =>
      let (k0, k1) := (firstn n k, skipn n k) in
      let (l0, l1) := (firstn n l, skipn n l) in
      let low := product cuts' k0 l0 in
      let high := product cuts' k1 l1 in
      let all := product cuts' (total k0 k1 0) (total l0 l1 0) in
      placed n low (placed n (difference all (total low high 0) 0) high)
  end.

Lemma firstn_value n : forall l, smalls l ->
  value l = (value (firstn n l) + 2 ^ (31 * Z.of_nat n) * value (skipn n l))%Z /\
  smalls (firstn n l) /\ smalls (skipn n l).
Proof.
  induction n as [|n IH]; intros l F.
  - cbn [firstn skipn value]; change (2 ^ (31 * Z.of_nat 0))%Z with 1%Z.
    repeat split; [lia|constructor|exact F].
  - destruct F as [|x l Hx F]; [cbn; repeat split; [lia|constructor..]|].
    destruct (IH l F) as (V & F0 & F1); cbn [firstn skipn value]; rewrite V.
    rewrite next_limb; repeat split; [lia|constructor; assumption|exact F1].
Qed.

Lemma product_value cuts : forall k l, smalls k -> smalls l ->
  value (product cuts k l) = (value k * value l)%Z /\ smalls (product cuts k l).
Proof.
  induction cuts as [|n cuts IH]; intros k l Fk Fl; cbn [product].
  - assert (Z : value (map (fun _ => 0) l) = 0%Z /\ smalls (map (fun _ : int => 0) l)).
    { clear; induction l as [|x l [V F]]; cbn [map value]; [split; [reflexivity|constructor]|].
      rewrite V; split; [reflexivity|constructor; [reflexivity|exact F]]. }
    destruct Z as [V F]; destruct (long_product_value k l Fk Fl _ F (map_length _ _)) as [V' F'].
    split; [lia|exact F'].
  - destruct (firstn_value n k Fk) as (-> & K0 & K1), (firstn_value n l Fl) as (-> & L0 & L1).
    set (k0 := firstn n k) in *; set (k1 := skipn n k) in *.
    set (l0 := firstn n l) in *; set (l1 := skipn n l) in *.
    destruct (IH k0 l0 K0 L0) as [V0 F0], (IH k1 l1 K1 L1) as [V1 F1].
    destruct (total_value k0 K0 k1 0 K1 eq_refl) as [Vk Fk'].
    destruct (total_value l0 L0 l1 0 L1 eq_refl) as [Vl Fl'].
    destruct (IH _ _ Fk' Fl') as [Va Fa]; rewrite Vk, Vl in Va.
    destruct (total_value _ F0 _ 0 F1 eq_refl) as [Vt Ft]; rewrite V0, V1 in Vt.
    change (to_Z 0) with 0%Z in *.
    destruct (difference_value _ Fa _ 0 Ft) as [Vd Fd]; [words; lia| |].
    { rewrite Va, Vt; change (to_Z 0) with 0%Z.
      pose proof (value_nonneg k0); pose proof (value_nonneg k1); pose proof (value_nonneg l0);
        pose proof (value_nonneg l1); nia. }
    destruct (placed_value n _ _ Fd F1) as [Vp Fp].
    destruct (placed_value n _ _ F0 Fp) as [Vq Fq].
    split; [|exact Fq]; rewrite Vq, Vp, Vd, Va, Vt, V0, V1; change (to_Z 0) with 0%Z; ring.
Qed.

(** Halved until about 40 limbs are left. *)
Fixpoint halvings (fuel n : nat) : list nat :=
  match fuel with
  | O => []
  | S fuel' => if Nat.leb n 40 then [] else let h := Nat.div2 (S n) in h :: halvings fuel' h
  end.

Definition positive_product (p q : positive) : Z :=
  let k := limbs p 1 0 in
  let l := limbs q 1 0 in
  joined (product (halvings 64 (Nat.min (length k) (length l))) k l).

Definition fast_mul (a b : Z) : Z :=
  match a, b with
  | Z0, _ | _, Z0 => 0
  | Zpos (1 | 2 | 4), _ => a * b
  | Zpos p, Zpos q | Zneg p, Zneg q => positive_product p q
  | Zpos p, Zneg q | Zneg p, Zpos q => - positive_product p q
  end.

Lemma limbs_of p : value (limbs p 1 0) = Zpos p /\ smalls (limbs p 1 0).
Proof.
  destruct (limbs_value p 1 0 0%Z) as [V F]; [lia|reflexivity|reflexivity|].
  rewrite V; split; [|exact F]; words; lia.
Qed.

Lemma positive_product_exact p q : positive_product p q = Zpos (p * q).
Proof.
  unfold positive_product; cbv zeta; destruct (limbs_of p) as [Vp Fp], (limbs_of q) as [Vq Fq].
  match goal with |- joined (product ?cuts _ _) = _ =>
    destruct (product_value cuts _ _ Fp Fq) as [V F] end.
  rewrite (joined_value _ F), V, Vp, Vq; reflexivity.
Qed.

Theorem fast_mul_exact : fast_mul = Z.mul.
Proof.
  apply functional_extensionality; intros a; apply functional_extensionality; intros b.
  destruct a as [|[p|[p|[p|p|]|]|]|p], b; cbn [fast_mul];
    rewrite ?positive_product_exact; reflexivity.
Qed.

(** ** Quotients *)

(** By one limb: the quotient and the rest. *)
Fixpoint short_quotient (d : int) (l : list int) : list int * int :=
  match l with
  | [] => ([], 0)
  | x :: l' =>
      let (q, r) := short_quotient d l' in
      let t := (r << width) + x in
      (t / d :: q, t mod d)
  end.

Lemma short_quotient_value d l :
  small d -> (0 < to_Z d)%Z -> smalls l ->
  let (q, r) := short_quotient d l in
  value l = (to_Z d * value q + to_Z r)%Z /\ (0 <= to_Z r < to_Z d)%Z /\ smalls q.
Proof.
  intros Hd Pd; induction 1 as [|x l Hx F IH]; cbn [short_quotient].
  - cbn [value]; change (to_Z 0) with 0%Z; repeat split; [lia..|constructor].
  - destruct (short_quotient d l) as [q r]; destruct IH as (V & R & S); cbv zeta.
    pose proof (to_Z_bounded x) as Bx.
    assert (H : to_Z (r << width) = (2 ^ 31 * to_Z r)%Z).
    { rewrite lsl_spec; change (2 ^ to_Z width)%Z with (2 ^ 31)%Z.
      rewrite Z.mod_small; [ring|]; change wB with (2 ^ 63)%Z; words; lia. }
    assert (T : to_Z ((r << width) + x) = (2 ^ 31 * to_Z r + to_Z x)%Z)
      by (rewrite add_word; rewrite H; words; lia).
    cbn [value]; rewrite V, div_spec, mod_spec, T.
    pose proof (Z.div_mod (2 ^ 31 * to_Z r + to_Z x) (to_Z d) ltac:(lia)).
    pose proof (Z.mod_pos_bound (2 ^ 31 * to_Z r + to_Z x) (to_Z d) Pd).
    repeat split; [lia|lia|lia|constructor; [|exact S]].
    rewrite div_spec, T; apply Z.div_lt_upper_bound; words; [lia|nia].
Qed.

(** [k] - [t] [l] - [borrow], about. *)
Fixpoint less (t : int) (k l : list int) (borrow : int) : list int * int :=
  match k with
  | [] => ([], borrow)
  | x :: k' =>
      let (y, l') := match l with y :: l' => (y, l') | [] => (0, []) end in
      let u := t * y + borrow in
      let low := u land mask in
      let (v, more) := if x <? low then (x + mask + 1 - low, 1) else (x - low, 0) in
      let (rest, b) := less t k' l' ((u >> width) + more) in
      (v :: rest, b)
  end.

(** The last two limbs in one word; the last one. *)
Fixpoint leading (l : list int) : int :=
  match l with
  | [] => 0
  | [x] => x
  | [x; y] => (y << width) + x
  | _ :: l' => leading l'
  end.

(** [d] goes into [r], which is a limb longer, [q] times, or once or twice more. *)
Fixpoint settled (fuel : nat) (d : list int) (q : int) (r : list int) : int * list int :=
  match fuel with
  | O => (q, r)
  | S fuel' =>
      let (r', b) := less 1 r d 0 in
      if b =? 0 then settled fuel' d (q + 1) r' else (q, r)
  end.

(** By a divisor whose last limb, [head], has its top bit set. *)
Fixpoint guessed (head : int) (d l : list int) : list int * list int :=
  match l with
  | [] => ([], map (fun _ => 0) d)
  | x :: l' =>
      let (q, r) := guessed head d l' in
      let r1 := x :: r in
      let t := leading r1 / (head + 1) in
      let (t', r2) := settled 4 d t (fst (less t r1 d 0)) in
      (t' :: q, removelast r2)
  end.

(** About a / d. *)
Definition guess (a d : positive) : Z :=
  let s := (31 - (Zpos (Pos.size d) - 1) mod 31 - 1)%Z in
  match Z.shiftl (Zpos a) s, Z.shiftl (Zpos d) s with
  | Zpos a', Zpos d' =>
      let l := limbs d' 1 0 in joined (fst (guessed (last l 0) l (limbs a' 1 0)))
  | _, _ => 0
  end.

(** A guess that fits is the quotient. *)
Definition fitting (a d q : Z) : Z :=
  let r := (a - fast_mul q d)%Z in
  if ((0 <=? r) && (r <? d))%Z then q else (a / d)%Z.

Definition positive_quotient (a d : positive) : Z :=
  match limbs d 1 0 with
  | [x] => joined (fst (short_quotient x (limbs a 1 0)))
  | _ => fitting (Zpos a) (Zpos d) (guess a d)
  end.

(** -a / d = -((a - 1) / d) - 1 *)
Definition fast_div (a b : Z) : Z :=
  match a, b with
  | Z0, _ => 0
  | Zpos p, Zpos d => positive_quotient p d
  | Zneg p, Zpos d =>
      match p with
      | xH => -1
      | _ => (- positive_quotient (Pos.pred p) d - 1)%Z
      end
  | _, _ => (a / b)%Z
  end.

Lemma fitting_exact a d q : (0 < d)%Z -> fitting a d q = (a / d)%Z.
Proof.
  intros Hd; unfold fitting; cbv zeta; rewrite fast_mul_exact.
  destruct (_ && _) eqn:E; [|reflexivity]; apply andb_true_iff in E as [L U].
  apply Z.leb_le in L; apply Z.ltb_lt in U; apply Z.div_unique with (a - q * d)%Z; lia.
Qed.

Lemma positive_quotient_exact a d : positive_quotient a d = (Zpos a / Zpos d)%Z.
Proof.
  unfold positive_quotient; destruct (limbs_of a) as [Va Fa], (limbs_of d) as [Vd Fd].
  destruct (limbs d 1 0) as [|x [|]]; try (apply fitting_exact; reflexivity).
  inversion Fd; subst; cbn [value] in Vd.
  pose proof (short_quotient_value x (limbs a 1 0) ltac:(assumption) ltac:(lia) Fa) as H.
  destruct (short_quotient x (limbs a 1 0)) as [q r]; destruct H as (V & R & S); cbn [fst].
  rewrite (joined_value _ S); apply Z.div_unique with (to_Z r); lia.
Qed.

Theorem fast_div_exact : fast_div = Z.div.
Proof.
  apply functional_extensionality; intros a; apply functional_extensionality; intros b.
  destruct a as [|p|p], b as [|d|d]; try reflexivity; cbn [fast_div].
  - apply positive_quotient_exact.
  - destruct (Pos.eq_dec p 1) as [->|N].
    + apply Z.div_unique with (Zpos d - 1)%Z; lia.
    + replace (match p with xH => _ | _ => _ end) with (- positive_quotient (Pos.pred p) d - 1)%Z
        by (destruct p; [reflexivity|reflexivity|contradiction]).
      rewrite positive_quotient_exact.
      pose proof (Z.div_mod (Zpos (Pos.pred p)) (Zpos d) ltac:(lia)).
      pose proof (Z.mod_pos_bound (Zpos (Pos.pred p)) (Zpos d) ltac:(lia)).
      rewrite Pos2Z.inj_pred in * by exact N.
      apply Z.div_unique with (Zpos d - 1 - (Z.pred (Zpos p)) mod Zpos d)%Z; lia.
Qed.
