(** The series of fixed point (FixedPoint.v) with all terms in limbs: [quick_rise] is [rise], and
    [quick_fall] is [fall]. Numbers are taken apart once for a series, not once for each product. *)

From Coq Require Import List Bool ZArith Lia Uint63 FunctionalExtensionality.
From Dpledger Require Import MachineIntegers LossLists FixedPoint.
Import ListNotations.
Open Scope uint63_scope.

(** ** Limbs *)

(** None for what is not above zero. *)
Definition all_limbs (z : Z) : list int :=
  match z with Zpos p => limbs p 1 0 | _ => [] end.

(** Without zeros at the end. *)
Fixpoint stripped (l : list int) : list int :=
  match l with
  | [] => []
  | x :: l' => match stripped l' with [] => if x =? 0 then [] else [x] | rest => x :: rest end
  end.

(** Without the first [n], and whether these were zero. *)
Fixpoint dropped (n : nat) (l : list int) (zero : bool) : list int * bool :=
  match n, l with
  | S n', x :: l' => dropped n' l' (zero && (x =? 0))
  | _, _ => (l, zero)
  end.

(** Whether the number is. *)
Definition at_most_one (l : list int) : bool :=
  match l with [] => true | x :: l' => (x <=? 1) && forallb (fun y => y =? 0) l' end.

(** Of a number that something was cut off from, unless that is [exact]. *)
Definition rounded_up (l : list int) (exact : bool) : list int :=
  if exact then l else increased l 1.

Lemma all_limbs_value z : (0 <= z)%Z ->
  value (all_limbs z) = z /\ smalls (all_limbs z).
Proof.
  intros H; destruct z as [|p|p]; [split; [reflexivity|constructor]| |lia].
  destruct (limbs_of p) as [V F]; split; assumption.
Qed.

Lemma zero_word x : (x =? 0) = true <-> to_Z x = 0%Z.
Proof.
  rewrite eqb_spec; split; [intros ->; reflexivity|].
  intros E; apply to_Z_inj; exact E.
Qed.

Lemma stripped_value l : smalls l -> value (stripped l) = value l /\ smalls (stripped l).
Proof.
  induction 1 as [|x l Hx F [V S]]; cbn [stripped]; [split; [reflexivity|constructor]|].
  destruct (stripped l) as [|y rest] eqn:E.
  - cbn [value] in V |- *; rewrite <- V.
    destruct (x =? 0) eqn:Z; [apply zero_word in Z; rewrite Z; split; [reflexivity|constructor]|].
    split; [reflexivity|constructor; [exact Hx|constructor]].
  - cbn [value] in V |- *; rewrite V; split; [reflexivity|constructor; assumption].
Qed.

Lemma dropped_value n : forall l zero, smalls l ->
  let (high, exact) := dropped n l zero in
  smalls high /\ exists low, (0 <= low < 2 ^ (31 * Z.of_nat n))%Z /\
  value l = (low + 2 ^ (31 * Z.of_nat n) * value high)%Z /\ exact = zero && (low =? 0)%Z.
Proof.
  induction n as [|n IH]; intros l zero F.
  - cbn [dropped]; split; [exact F|]; exists 0%Z; change (2 ^ (31 * Z.of_nat 0))%Z with 1%Z.
    rewrite andb_true_r; repeat split; lia.
  - rewrite next_limb; assert (P : (0 < 2 ^ (31 * Z.of_nat n))%Z) by (apply Z.pow_pos_nonneg; lia).
    destruct F as [|x l Hx F]; cbn [dropped].
    + split; [constructor|]; exists 0%Z; cbn [value]; rewrite andb_true_r; repeat split; lia.
    + specialize (IH l (zero && (x =? 0)) F).
      destruct (dropped n l (zero && (x =? 0))) as [high exact].
      destruct IH as (S & low & B & V & E); split; [exact S|].
      pose proof (to_Z_bounded x); exists (to_Z x + 2 ^ 31 * low)%Z; cbn [value]; rewrite V.
      repeat split; [words; lia|words; nia|lia|]; rewrite E, <- andb_assoc; f_equal.
      destruct (x =? 0) eqn:Z.
      * apply zero_word in Z; rewrite Z; cbn [andb]; apply eq_iff_eq_true.
        rewrite !Z.eqb_eq; words; lia.
      * symmetry; apply Z.eqb_neq; intros C; cut (to_Z x = 0)%Z; [|words; lia].
        rewrite <- zero_word, Z; discriminate.
Qed.

Lemma all_zero l : smalls l -> forallb (fun y => y =? 0) l = (value l =? 0)%Z.
Proof.
  induction 1 as [|x l Hx F IH]; [reflexivity|]; cbn [forallb value]; rewrite IH.
  pose proof (to_Z_bounded x); pose proof (value_nonneg l); apply eq_iff_eq_true.
  rewrite andb_true_iff, zero_word, !Z.eqb_eq; words; lia.
Qed.

Lemma at_most_one_value l : smalls l -> at_most_one l = (value l <=? 1)%Z.
Proof.
  intros F; destruct F as [|x l Hx F]; [reflexivity|]; cbn [at_most_one value].
  rewrite (all_zero l F); pose proof (to_Z_bounded x); pose proof (value_nonneg l).
  apply eq_iff_eq_true; rewrite andb_true_iff, leb_spec, Z.eqb_eq, Z.leb_le; words; lia.
Qed.

Lemma rounded_up_value l exact : smalls l ->
  value (rounded_up l exact) = (value l + (if exact then 0 else 1))%Z /\ smalls (rounded_up l exact).
Proof.
  intros F; destruct exact; cbn [rounded_up]; [split; [lia|exact F]|].
  exact (increased_value l F 1 eq_refl).
Qed.

(** ** The next term *)

Lemma rounds_up n low high P : (0 <= low < P)%Z -> n = (low + P * high)%Z ->
  (- (- n / P) = high + (if low =? 0 then 0 else 1))%Z.
Proof.
  intros B ->; destruct (Z.eqb_spec low 0) as [->|N].
  - replace (- (0 + P * high))%Z with (- high * P)%Z by ring; rewrite Z.div_mul by lia; lia.
  - replace (- (low + P * high) / P)%Z with (- high - 1)%Z; [lia|].
    apply Z.div_unique with (P - low)%Z; lia.
Qed.

Section Terms.

(** [k] limbs are p + r bits; [s] is what each term is multiplied by, times 2^r. *)
Variables (k : nat) (s : list int) (p r x : Z).
Hypotheses (Hp : (0 <= p)%Z) (Hr : (0 <= r)%Z) (Hk : (31 * Z.of_nat k = p + r)%Z).
Hypotheses (Fs : smalls s) (Vs : (value s = x * 2 ^ r)%Z).

Definition multiplied (term : list int) : list int := long_product term s (map (fun _ => 0) s).

Definition risen (d : int) (term : list int) : list int :=
  let (high, exact) := dropped k (multiplied term) true in
  let (q, rest) := short_quotient d (rounded_up high exact) in
  stripped (rounded_up q (rest =? 0)).

Definition fallen (d : int) (term : list int) : list int :=
  stripped (fst (short_quotient d (fst (dropped k (multiplied term) true)))).

Lemma multiplied_value term : smalls term ->
  value (multiplied term) = (value term * x * 2 ^ r)%Z /\ smalls (multiplied term).
Proof.
  intros F; unfold multiplied.
  assert (Z0 : value (map (fun _ => 0) s) = 0%Z /\ smalls (map (fun _ : int => 0) s)).
  { clear; induction s as [|y l [V F]]; [split; [reflexivity|constructor]|].
    cbn [map value]; rewrite V; split; [reflexivity|constructor; [reflexivity|exact F]]. }
  destruct Z0 as [V0 F0].
  destruct (long_product_value term s F Fs _ F0) as [V S]; [rewrite map_length; reflexivity|].
  rewrite V, V0, Vs; split; [ring|exact S].
Qed.

Lemma powers : (2 ^ (31 * Z.of_nat k) = 2 ^ p * 2 ^ r)%Z.
Proof. rewrite Hk, Z.pow_add_r by assumption; reflexivity. Qed.

Lemma risen_value d term : smalls term -> small d -> (0 < to_Z d)%Z ->
  value (risen d term) = round_up (above p (value term) x) (to_Z d) /\ smalls (risen d term).
Proof.
  intros F Sd Pd; unfold risen; destruct (multiplied_value term F) as [V S].
  pose proof (dropped_value k _ true S) as D.
  destruct (dropped k (multiplied term) true) as [high exact].
  destruct D as (Sh & low & B & E & X).
  destruct (rounded_up_value high exact Sh) as [V1 S1].
  pose proof (short_quotient_value d _ Sd Pd S1) as Q.
  destruct (short_quotient d (rounded_up high exact)) as [q rest]; destruct Q as (V2 & R & S2).
  destruct (rounded_up_value q (rest =? 0) S2) as [V3 S3].
  destruct (stripped_value _ S3) as [V4 S4]; split; [|exact S4]; rewrite V4, V3.
  assert (P0 : (0 < 2 ^ r)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (A : above p (value term) x = value (rounded_up high exact)).
  { unfold above, shift_up; rewrite Z.shiftr_div_pow2 by exact Hp.
    rewrite <- (Z.div_mul_cancel_r _ (2 ^ p) (2 ^ r)) by (pose proof (Z.pow_pos_nonneg 2 p); lia).
    rewrite <- powers.
    replace (- (value term * x) * 2 ^ r)%Z with (- value (multiplied term))%Z by (rewrite V; ring).
    rewrite (rounds_up _ low (value high) (2 ^ (31 * Z.of_nat k)) B E), V1, X; cbn [andb].
    destruct (low =? 0)%Z; reflexivity. }
  rewrite A; unfold round_up.
  rewrite (rounds_up _ (to_Z rest) (value q) (to_Z d) R) by lia.
  replace (rest =? 0) with (to_Z rest =? 0)%Z
    by (apply eq_iff_eq_true; rewrite Z.eqb_eq, zero_word; reflexivity).
  destruct (to_Z rest =? 0)%Z; reflexivity.
Qed.

Lemma fallen_value d term : smalls term -> small d -> (0 < to_Z d)%Z ->
  value (fallen d term) = (below p (value term) x / to_Z d)%Z /\ smalls (fallen d term).
Proof.
  intros F Sd Pd; unfold fallen; destruct (multiplied_value term F) as [V S].
  pose proof (dropped_value k _ true S) as D.
  destruct (dropped k (multiplied term) true) as [high exact]; cbn [fst].
  destruct D as (Sh & low & B & E & _).
  pose proof (short_quotient_value d _ Sd Pd Sh) as Q.
  destruct (short_quotient d high) as [q rest]; destruct Q as (V2 & R & S2); cbn [fst].
  destruct (stripped_value _ S2) as [V4 S4]; split; [|exact S4]; rewrite V4.
  assert (P0 : (0 < 2 ^ r)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (A : below p (value term) x = value high).
  { unfold below; rewrite Z.shiftr_div_pow2 by exact Hp.
    rewrite <- (Z.div_mul_cancel_r _ (2 ^ p) (2 ^ r)) by (pose proof (Z.pow_pos_nonneg 2 p); lia).
    rewrite <- powers, <- V; symmetry; apply Z.div_unique with low; lia. }
  rewrite A; apply Z.div_unique with (to_Z rest); lia.
Qed.

(** ** The series *)

Fixpoint limb_rise (fuel : nat) (enough c d : int) (sum term : list int) :
  option (list int * list int) :=
  match fuel with
  | O => None
  | S fuel' =>
      if at_most_one term && (enough <=? d) then Some (sum, term)
      else limb_rise fuel' enough c (d + c) (total sum term 0) (risen d term)
  end.

Fixpoint limb_fall (fuel : nat) (c d : int) (sum term : list int) : list int :=
  match fuel with
  | O => sum
  | S fuel' =>
      if at_most_one term then sum
      else limb_fall fuel' c (d + c) (total sum term 0) (fallen d term)
  end.

Definition both_joined (found : option (list int * list int)) : option (Z * Z) :=
  match found with Some (sum, term) => Some (joined sum, joined term) | None => None end.

Lemma limb_rise_value fuel enough c : forall d sum term,
  smalls sum -> smalls term -> (0 < to_Z d)%Z ->
  (to_Z d + to_Z c * Z.of_nat fuel < 2 ^ 31)%Z ->
  (to_Z enough = - (- (2 * x) / 2 ^ p) + 2)%Z ->
  both_joined (limb_rise fuel enough c d sum term)
    = rise p fuel x (to_Z c) (to_Z d) (value sum) (value term).
Proof.
  induction fuel as [|fuel IH]; intros d sum term Fsum Fterm Pd Bd En; [reflexivity|].
  rewrite Nat2Z.inj_succ in Bd; pose proof (to_Z_bounded c).
  cbn [limb_rise rise]; rewrite at_most_one_value by exact Fterm.
  assert (P : (0 < 2 ^ p)%Z) by (apply Z.pow_pos_nonneg; lia).
  replace (2 * x <=? Z.shiftl (to_Z d - 2) p)%Z with (enough <=? d).
  2: { apply eq_iff_eq_true; rewrite leb_spec, Z.leb_le, Z.shiftl_mul_pow2, En by exact Hp.
       pose proof (Z.div_mod (- (2 * x)) (2 ^ p) ltac:(lia)).
       pose proof (Z.mod_pos_bound (- (2 * x)) (2 ^ p) P); nia. }
  destruct (_ && _); [cbn [both_joined]; rewrite !joined_value by assumption; reflexivity|].
  assert (Sd : small d) by nia.
  destruct (risen_value d term Fterm Sd Pd) as [V S].
  destruct (total_value sum Fsum term 0 Fterm eq_refl) as [V' S'].
  assert (D : to_Z (d + c) = (to_Z d + to_Z c)%Z) by (apply add_word; words; nia).
  rewrite IH; [|exact S'|exact S|rewrite D; lia|rewrite D; nia|exact En].
  rewrite D, V, V'; change (to_Z 0) with 0%Z; rewrite Z.add_0_r; reflexivity.
Qed.

Lemma limb_fall_value fuel c : forall d sum term,
  smalls sum -> smalls term -> (0 < to_Z d)%Z ->
  (to_Z d + to_Z c * Z.of_nat fuel < 2 ^ 31)%Z ->
  joined (limb_fall fuel c d sum term) = fall p fuel x (to_Z c) (to_Z d) (value sum) (value term).
Proof.
  induction fuel as [|fuel IH]; intros d sum term Fsum Fterm Pd Bd;
    [apply joined_value; exact Fsum|].
  rewrite Nat2Z.inj_succ in Bd; pose proof (to_Z_bounded c).
  cbn [limb_fall fall]; rewrite at_most_one_value by exact Fterm.
  destruct (value term <=? 1)%Z; [apply joined_value; exact Fsum|].
  assert (Sd : small d) by nia.
  destruct (fallen_value d term Fterm Sd Pd) as [V S].
  destruct (total_value sum Fsum term 0 Fterm eq_refl) as [V' S'].
  assert (D : to_Z (d + c) = (to_Z d + to_Z c)%Z) by (apply add_word; words; nia).
  rewrite IH; [|exact S'|exact S|rewrite D; lia|rewrite D; nia].
  rewrite D, V, V'; change (to_Z 0) with 0%Z; rewrite Z.add_0_r; reflexivity.
Qed.

End Terms.

Definition limbs_for (p : Z) : nat := Z.to_nat ((p + 30) / 31).

Definition within (p : Z) (fuel : nat) (s c d sum term : Z) : bool :=
  ((0 <=? p) && (0 <=? s) && (0 <=? sum) && (0 <=? term) && (0 <=? c) && (0 <? d)
   && (d + c * Z.of_nat fuel <? 2 ^ 31))%Z.

(** [otherwise] where a divisor might not fit in a limb. *)
Definition quick_rise (otherwise : Z -> nat -> Z -> Z -> Z -> Z -> Z -> option (Z * Z))
  (p : Z) (fuel : nat) (s c d sum term : Z) : option (Z * Z) :=
  let enough := (shift_up (2 * s) p + 2)%Z in
  if within p fuel s c d sum term && (enough <? 2 ^ 31)%Z then
    let k := limbs_for p in
    both_joined
      (limb_rise k (all_limbs (Z.shiftl s (31 * Z.of_nat k - p))) fuel (of_Z enough)
         (of_Z c) (of_Z d) (all_limbs sum) (all_limbs term))
  else otherwise p fuel s c d sum term.

Definition quick_fall (otherwise : Z -> nat -> Z -> Z -> Z -> Z -> Z -> Z)
  (p : Z) (fuel : nat) (s c d sum term : Z) : Z :=
  if within p fuel s c d sum term then
    let k := limbs_for p in
    joined
      (limb_fall k (all_limbs (Z.shiftl s (31 * Z.of_nat k - p))) fuel
         (of_Z c) (of_Z d) (all_limbs sum) (all_limbs term))
  else otherwise p fuel s c d sum term.

Lemma limbs_for_enough p : (0 <= p)%Z -> (p <= 31 * Z.of_nat (limbs_for p))%Z.
Proof.
  intros H; unfold limbs_for; pose proof (Z.div_mod (p + 30) 31 ltac:(lia)).
  pose proof (Z.mod_pos_bound (p + 30) 31 ltac:(lia)).
  rewrite Z2Nat.id by (apply Z.div_pos; lia); lia.
Qed.

Lemma word_of z : (0 <= z < 2 ^ 31)%Z -> to_Z (of_Z z) = z.
Proof. intros H; rewrite of_Z_spec; apply Z.mod_small; change wB with (2 ^ 63)%Z; words; lia. Qed.

Lemma within_spec p fuel s c d sum term : within p fuel s c d sum term = true ->
  (0 <= p /\ 0 <= s /\ 0 <= sum /\ 0 <= term /\ 0 <= c /\ 0 < d /\ d + c * Z.of_nat fuel < 2 ^ 31)%Z.
Proof. unfold within; rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt; intuition lia. Qed.

Lemma shifted_value s p : (0 <= s)%Z -> (0 <= p)%Z ->
  let r := (31 * Z.of_nat (limbs_for p) - p)%Z in
  (0 <= r)%Z /\ smalls (all_limbs (Z.shiftl s r)) /\
  value (all_limbs (Z.shiftl s r)) = (s * 2 ^ r)%Z.
Proof.
  intros Hs Hp r; pose proof (limbs_for_enough p Hp); assert (Hr : (0 <= r)%Z) by (unfold r; lia).
  rewrite Z.shiftl_mul_pow2 by exact Hr.
  destruct (all_limbs_value (s * 2 ^ r)) as [V F]; [apply Z.mul_nonneg_nonneg; lia|].
  repeat split; assumption.
Qed.

Theorem quick_rise_exact otherwise : otherwise = rise -> quick_rise otherwise = rise.
Proof.
  intros ->; extensionality p; extensionality fuel; extensionality s; extensionality c;
    extensionality d; extensionality sum; extensionality term; unfold quick_rise; cbv zeta.
  destruct (within p fuel s c d sum term) eqn:W; [|reflexivity].
  destruct (_ <? _)%Z eqn:E; [|reflexivity]; apply Z.ltb_lt in E; cbn [andb].
  apply within_spec in W as (Hp & Hs & Hsum & Hterm & Hc & Hd & Hb).
  destruct (shifted_value s p Hs Hp) as (Hr & Fs & Vs).
  destruct (all_limbs_value sum Hsum) as [Vsum Fsum], (all_limbs_value term Hterm) as [Vterm Fterm].
  destruct fuel as [|fuel]; [reflexivity|].
  assert (0 <= c * Z.of_nat fuel)%Z by (apply Z.mul_nonneg_nonneg; lia).
  assert (c <= c * Z.of_nat (S fuel))%Z by (rewrite Nat2Z.inj_succ, Z.mul_succ_r; lia).
  assert (U : shift_up (2 * s) p = (- (- (2 * s) / 2 ^ p))%Z)
    by (unfold shift_up; rewrite Z.shiftr_div_pow2 by exact Hp; reflexivity).
  assert (0 <= shift_up (2 * s) p)%Z.
  { rewrite U; pose proof (Z.pow_pos_nonneg 2 p eq_refl Hp).
    pose proof (Z.div_le_upper_bound (- (2 * s)) (2 ^ p) 0 ltac:(lia) ltac:(lia)); lia. }
  pose proof (word_of c ltac:(lia)) as Wc; pose proof (word_of d ltac:(lia)) as Wd.
  rewrite (limb_rise_value (limbs_for p) _ p (31 * Z.of_nat (limbs_for p) - p) s Hp Hr ltac:(lia) Fs Vs);
    rewrite ?Vsum, ?Vterm, ?Wc, ?Wd; auto; try lia.
  rewrite word_of by lia; lia.
Qed.

Theorem quick_fall_exact otherwise : otherwise = fall -> quick_fall otherwise = fall.
Proof.
  intros ->; extensionality p; extensionality fuel; extensionality s; extensionality c;
    extensionality d; extensionality sum; extensionality term; unfold quick_fall; cbv zeta.
  destruct (within p fuel s c d sum term) eqn:W; [|reflexivity].
  apply within_spec in W as (Hp & Hs & Hsum & Hterm & Hc & Hd & Hb).
  destruct (shifted_value s p Hs Hp) as (Hr & Fs & Vs).
  destruct (all_limbs_value sum Hsum) as [Vsum Fsum], (all_limbs_value term Hterm) as [Vterm Fterm].
  destruct fuel as [|fuel].
  { cbn [limb_fall fall]; rewrite joined_value by exact Fsum; exact Vsum. }
  assert (0 <= c * Z.of_nat fuel)%Z by (apply Z.mul_nonneg_nonneg; lia).
  assert (c <= c * Z.of_nat (S fuel))%Z by (rewrite Nat2Z.inj_succ, Z.mul_succ_r; lia).
  pose proof (word_of c ltac:(lia)) as Wc; pose proof (word_of d ltac:(lia)) as Wd.
  rewrite (limb_fall_value (limbs_for p) _ p (31 * Z.of_nat (limbs_for p) - p) s Hp Hr ltac:(lia) Fs Vs);
    rewrite ?Vsum, ?Vterm, ?Wc, ?Wd; auto; lia.
Qed.
