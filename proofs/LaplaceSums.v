(** Laplace noise composed in closed form, as a program on whole numbers: what a choice of signs
    contributes is a polynomial, and one exponential where all signs are +. *)

From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia Psatz Permutation Factorial.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Domination LaplaceProfile LaplaceComposition LossLists Enclosure
  LossEnclosures FixedPoint FixedGaussian LaplaceLoss.
Import ListNotations.

(** ** As a program *)

Open Scope Z_scope.

(** Coefficients of (1 + z) f, (1 - z) f and f / (1 - z), the constant first. *)
Fixpoint times_plus (before : Z) (l : list Z) : list Z :=
  match l with [] => [before] | c :: rest => (before + c) :: times_plus c rest end.
Fixpoint times_minus (before : Z) (l : list Z) : list Z :=
  match l with [] => [- before] | c :: rest => (c - before) :: times_minus c rest end.
Fixpoint running (sum : Z) (l : list Z) : list Z :=
  match l with [] => [] | c :: rest => (sum + c) :: running (sum + c) rest end.

Definition less (a : Z) (l : list Z) : list Z :=
  match l with [] => [- a] | c :: rest => (c - a) :: rest end.

(** A sign + in place of one -. *)
Definition next_row (row : list Z) : list Z := times_plus 0 (removelast (running 0 row)).

Fixpoint rows (number : nat) (row : list Z) : list (list Z) :=
  match number with O => [] | S n => row :: rows n (next_row row) end.

(** Of n signs: the polynomials for 1, 2, ..., n - 1 of them +. *)
Definition mixed_rows (n : nat) : list (list Z) :=
  rows (n - 1) (iterated (n - 2) (times_minus 0) [0; 2]).

(** Of [S n] signs, all +: beside 2^(n + 1) times the exponential. *)
Fixpoint all_plus (n : nat) : Z * list Z :=
  match n with
  | O => (2, [-2])
  | S m => let (a, l) := all_plus m in (2 * a, less a (times_plus 0 l))
  end.

(** Above the sum of c_j (j!/(j + i)!) h^i for h = num / den >= 0, in units of 2^-q. *)
Fixpoint horner_above (q num den j : Z) (l : list Z) : Z :=
  match l with
  | [] => 0
  | c :: rest => c * 2 ^ q + round_up (horner_above q num den (j + 1) rest * num) (den * (j + 1))
  end.

(** What a choice contributes whose sum is above the point by [u] units of 2^-p. *)
Definition contribution (p : Z) (n : nat) (mixed : list (list Z)) (last : Z * list Z) (u : Z) (k m : nat) :
  option Z :=
  if u <=? 0 then Some 0
  else if negb (Nat.eqb (k + m) n) then None
  else
    match k, m with
    | O, _ => None
    | S _, O =>
        match exp_of_rational p (Qmake u (Z.to_pos (2 ^ (p + 1)))) with
        | Some (_, e) => Some (fst last * e + horner_above p u (2 ^ (p + 1)) 0 (snd last))
        | None => None
        end
    | S k', S _ => Some (horner_above p u (2 ^ (p + 1)) 0 (nth k' mixed []))
    end.

(** A sum of signed shifts, how many signs are + and -, and in how many ways it arises. *)
Record knot := Knot { knot_sum : Z; knot_plus : nat; knot_minus : nat; knot_ways : Z }.

Fixpoint binomials (n : nat) : list Z :=
  match n with O => [1] | S m => times_plus 0 (binomials m) end.

Fixpoint spread (e : Z) (n j : nat) (row : list Z) (x : knot) : list knot :=
  match row with
  | [] => []
  | b :: rest =>
      Knot (knot_sum x + (2 * Z.of_nat j - Z.of_nat n) * e) (knot_plus x + j) (knot_minus x + (n - j))
           (b * knot_ways x) :: spread e n (S j) rest x
  end.

Fixpoint knots (groups : list (Z * nat)) : list knot :=
  match groups with
  | [] => [Knot 0 0 0 1]
  | (e, n) :: rest => flat_map (spread e n 0 (binomials n)) (knots rest)
  end.

Fixpoint contributions (p : Z) (n : nat) (mixed : list (list Z)) (last : Z * list Z) (x : Z)
  (l : list knot) : option Z :=
  match l with
  | [] => Some 0
  | k :: rest =>
      match contribution p n mixed last (knot_sum k - x) (knot_plus k) (knot_minus k),
            contributions p n mixed last x rest with
      | Some v, Some sum => if 0 <=? knot_ways k then Some (knot_ways k * v + sum) else None
      | _, _ => None
      end
  end.

Definition group_number (groups : list (Z * nat)) : nat := fold_right (fun en n => (snd en + n)%nat) O groups.
Definition group_sum (groups : list (Z * nat)) : Z :=
  fold_right (fun en s => fst en * Z.of_nat (snd en) + s) 0 groups.

(** delta at the point is at most [delta]; shifts and the point in units of 2^-p. *)
Definition laplace_delta_at_most (p : Z) (groups : list (Z * nat)) (x : Z) (delta : Q) : bool :=
  let n := group_number groups in
  let unit := Z.to_pos (2 ^ (p + 1)) in
  match contributions p n (mixed_rows n) (all_plus (n - 1)) x (knots groups),
        exp_of_rational p (Qmake (x - group_sum groups) unit) with
  | Some sum, Some (_, e) =>
      Qle_bool (inject_Z (e * Z.max 0 sum)) (delta * inject_Z (2 ^ (2 * p + Z.of_nat n)))
  | _, _ => false
  end.

(** ** Lists of coefficients *)

Lemma times_commute a b c d l : b = d -> a - b = d - c ->
  times_plus a (times_minus b l) = times_minus c (times_plus d l).
Proof.
  revert a b c d; induction l as [|x l IH]; intros a b c d E F; cbn [times_plus times_minus].
  - f_equal; [lia|f_equal; lia].
  - f_equal; [lia|apply IH; lia].
Qed.

Lemma running_minus b l : running b (times_minus b l) = l ++ [0].
Proof.
  revert b; induction l as [|x l IH]; intros b; cbn [times_minus running app].
  - f_equal; lia.
  - replace (b + (x - b)) with x by lia; rewrite IH; reflexivity.
Qed.

Lemma iterated_swap {A} (f g : A -> A) n a : (forall x, f (g x) = g (f x)) ->
  iterated n f (g a) = g (iterated n f a).
Proof. intros E; induction n as [|n IH]; cbn [iterated]; [reflexivity|rewrite IH, E; reflexivity]. Qed.

Definition mixed_row (k m : nat) : list Z :=
  iterated k (times_plus 0) (iterated m (times_minus 0) [0; 2]).

Lemma next_mixed k m : next_row (mixed_row k (S m)) = mixed_row (S k) m.
Proof.
  unfold next_row, mixed_row; cbn [iterated].
  rewrite iterated_swap by (intros; apply times_commute; reflexivity).
  rewrite running_minus, removelast_last; reflexivity.
Qed.

Lemma nth_rows k number m j :
  (j < number)%nat -> (number <= S m)%nat ->
  nth j (rows number (mixed_row k m)) [] = mixed_row (k + j) (m - j).
Proof.
  revert k m j; induction number as [|number IH]; intros k m j Hj Hm; [lia|]; cbn [rows].
  destruct j as [|j]; cbn [nth]; [rewrite Nat.add_0_r, Nat.sub_0_r; reflexivity|].
  destruct m as [|m]; [lia|]; rewrite next_mixed, IH by lia; f_equal; lia.
Qed.

Lemma nth_mixed n k : (1 <= k < n)%nat -> nth (k - 1) (mixed_rows n) [] = mixed_row (k - 1) (n - k - 1).
Proof.
  intros H; unfold mixed_rows; change (iterated (n - 2) (times_minus 0) [0; 2]) with (mixed_row 0 (n - 2)).
  rewrite nth_rows by lia; f_equal; lia.
Qed.

Open Scope R_scope.

(** ** Polynomials *)

Fixpoint series (j : nat) (l : list Z) (h : R) : R :=
  match l with [] => 0 | c :: rest => IZR c * (h ^ j / INR (fact j)) + series (S j) rest h end.

Lemma series_plus j before l h :
  series j (times_plus before l) h
    = IZR before * (h ^ j / INR (fact j)) + series j l h + series (S j) l h.
Proof.
  revert j before; induction l as [|c l IH]; intros j before; cbn [times_plus series]; [ring|].
  rewrite IH, plus_IZR; cbn [series]; ring.
Qed.

Lemma series_minus j before l h :
  series j (times_minus before l) h
    = series j l h - series (S j) l h - IZR before * (h ^ j / INR (fact j)).
Proof.
  revert j before; induction l as [|c l IH]; intros j before; cbn [times_minus series];
    [rewrite opp_IZR; ring|].
  rewrite IH, minus_IZR; cbn [series]; ring.
Qed.

Lemma series_less a l h : series 0 (less a l) h = series 0 l h - IZR a.
Proof.
  destruct l as [|c l]; cbn [less series]; rewrite ?opp_IZR, ?minus_IZR; simpl; field.
Qed.

Lemma series_derive j l u :
  is_derive (fun z => series (S j) l (z / 2)) u (/ 2 * series j l (u / 2)).
Proof.
  revert j; induction l as [|c l IH]; intros j; cbn [series].
  - rewrite Rmult_0_r; apply (is_derive_const (V := R_NormedModule)).
  - rewrite Rmult_plus_distr_l; apply (is_derive_plus (V := R_NormedModule)); [|apply IH].
    pose proof (INR_fact_neq_0 j); pose proof (not_0_INR (S j) ltac:(lia)) as Hj.
    assert (E : INR (fact (S j)) = INR (S j) * INR (fact j)) by (rewrite fact_simpl, mult_INR; reflexivity).
    assert (N : INR (fact (S j)) <> 0) by apply INR_fact_neq_0.
    set (F := INR (fact (S j))) in *; auto_derive; [exact I|]; cbn [pred].
    change (match j with O => 1 | S _ => INR j + 1 end) with (INR (S j)).
    rewrite E; unfold Rdiv; field; split; assumption.
Qed.

Lemma series_zero j l : series (S j) l 0 = 0.
Proof.
  revert j; induction l as [|c l IH]; intros j; cbn [series]; [reflexivity|].
  rewrite IH, pow_ne_zero by lia; unfold Rdiv; ring.
Qed.

Lemma series_continuous j l u : continuous (fun z => series j l (z / 2)) u.
Proof.
  revert j; induction l as [|c l IH]; intros j; cbn [series]; [apply continuous_const|].
  apply (continuous_plus (V := R_NormedModule)); [|apply IH].
  apply (ex_derive_continuous (V := R_NormedModule)); auto_derive; exact I.
Qed.

(** ** What waves are *)

(** An exponential and a polynomial, above zero. *)
Definition amounts (f : R -> R) (a : Z) (l : list Z) : Prop :=
  forall u, 0 <= u -> f u = IZR a * exp (u / 2) + series 0 l (u / 2).

Lemma amounts_integral f a l u :
  amounts f a l -> 0 <= u -> integral f u = IZR a * (exp (u / 2) - 1) + series 1 l (u / 2).
Proof.
  intros F Hu; unfold integral.
  rewrite (RInt_ext _ (fun z => IZR a * exp (z / 2) + series 0 l (z / 2))).
  - rewrite (is_RInt_unique _ _ _ (minus (2 * (IZR a * exp (u / 2)) + 2 * series 1 l (u / 2))
                                     (2 * (IZR a * exp (0 / 2)) + 2 * series 1 l (0 / 2)))).
    + unfold minus, plus, opp; simpl; replace (0 / 2) with 0 by field.
      rewrite series_zero, exp_0; field.
    + apply (is_RInt_derive (fun z => 2 * (IZR a * exp (z / 2)) + 2 * series 1 l (z / 2))).
      * intros z _; replace (IZR a * exp (z / 2) + series 0 l (z / 2))
          with (2 * (IZR a * (/ 2 * exp (z / 2))) + 2 * (/ 2 * series 0 l (z / 2))) by field.
        apply (is_derive_plus (V := R_NormedModule)).
        -- auto_derive; [exact I|unfold Rdiv; field].
        -- apply is_derive_scal, series_derive.
      * intros z _; apply (continuous_plus (V := R_NormedModule)); [|apply series_continuous].
        apply (ex_derive_continuous (V := R_NormedModule)); auto_derive; exact I.
  - intros z; rewrite Rmin_left, Rmax_right by exact Hu; intros Hz; apply F; lra.
Qed.

Lemma amounts_plus f a l :
  amounts f a l -> amounts (plus_integral f) (2 * a) (less a (times_plus 0 l)).
Proof.
  intros F u Hu; unfold plus_integral; rewrite (amounts_integral f a l u F Hu), (F u Hu).
  rewrite series_less, series_plus, mult_IZR; simpl; ring.
Qed.

Lemma amounts_minus f a l :
  amounts f a l -> amounts (minus_integral f) 0 (less (- a) (times_minus 0 l)).
Proof.
  intros F u Hu; unfold minus_integral; rewrite (amounts_integral f a l u F Hu), (F u Hu).
  rewrite series_less, series_minus, opp_IZR; simpl; ring.
Qed.

Lemma amounts_ext f g a l : (forall u, f u = g u) -> amounts f a l -> amounts g a l.
Proof. intros E F u Hu; rewrite <- E; apply F, Hu. Qed.

Lemma amounts_alike f a l l' : (forall h, series 0 l h = series 0 l' h) -> amounts f a l -> amounts f a l'.
Proof. intros E F u Hu; rewrite <- E; apply F, Hu. Qed.

Lemma waves_all_plus n : amounts (waves (S n) 0) (fst (all_plus n)) (snd (all_plus n)).
Proof.
  induction n as [|n IH].
  - intros u Hu; rewrite waves_one; cbn [all_plus fst snd series fact].
    assert (exp 0 <= exp (u / 2)) by (apply exp_le; lra); rewrite exp_0 in *.
    rewrite plus_part_id by lra; simpl; field.
  - cbn [all_plus]; destruct (all_plus n) as [a l]; apply (amounts_plus _ a l IH).
Qed.

Lemma waves_mixed k m : amounts (waves (S k) (S m)) 0 (mixed_row k m).
Proof.
  assert (Zero : forall l h, series 0 (less 0 l) h = series 0 l h)
    by (intros; rewrite series_less; simpl; ring).
  assert (Base : amounts (waves 1 1) 0 [0; 2]%Z).
  { apply amounts_ext with (1 := waves_down 1 0).
    pose proof (amounts_minus _ _ _ (waves_all_plus 0)) as M; exact M. }
  assert (Down : amounts (waves 1 (S m)) 0 (iterated m (times_minus 0) [0; 2]%Z)).
  { induction m as [|m IH]; [exact Base|]; apply amounts_ext with (1 := waves_down 1 (S m)).
    cbn [iterated]; apply amounts_minus in IH; revert IH; apply amounts_alike, Zero. }
  unfold mixed_row; induction k as [|k IH]; [exact Down|]; cbn [iterated].
  apply amounts_ext with (1 := waves_up (S k) (S m)).
  apply amounts_plus in IH; revert IH; apply amounts_alike, Zero.
Qed.

(** ** From above *)

Fixpoint horner (j : nat) (l : list Z) (h : R) : R :=
  match l with [] => 0 | c :: rest => IZR c + h / INR (S j) * horner (S j) rest h end.

Lemma series_horner j l h : series j l h = h ^ j / INR (fact j) * horner j l h.
Proof.
  revert j; induction l as [|c l IH]; intros j; cbn [series horner]; [ring|].
  rewrite IH; pose proof (INR_fact_neq_0 j); pose proof (not_0_INR (S j) ltac:(lia)).
  rewrite fact_simpl, mult_INR; cbn [pow]; field; split; assumption.
Qed.

Lemma horner_above_sound q num den j l :
  (0 <= q)%Z -> (0 <= num)%Z -> (0 < den)%Z ->
  horner j l (IZR num / IZR den) <= IZR (horner_above q num den (Z.of_nat j) l) / unit_of q.
Proof.
  intros Hq Hn Hd; pose proof (unit_pos q Hq) as P; revert j; induction l as [|c l IH]; intros j;
    cbn [horner horner_above]; [unfold Rdiv; lra|].
  specialize (IH (S j)); rewrite Nat2Z.inj_succ in IH; unfold Z.succ in IH.
  set (H := horner_above q num den (Z.of_nat j + 1) l) in *.
  assert (Dj : (0 < den * (Z.of_nat j + 1))%Z) by nia.
  pose proof (round_up_ge (H * num) (den * (Z.of_nat j + 1)) Dj) as U.
  assert (Ej : IZR (Z.of_nat j + 1) = INR (S j)) by (rewrite plus_IZR, <- INR_IZR_INZ, S_INR; reflexivity).
  rewrite !mult_IZR, Ej in U; rewrite plus_IZR, mult_IZR; fold (unit_of q).
  apply IZR_lt in Hd; apply IZR_le in Hn; pose proof (lt_0_INR (S j) ltac:(lia)) as Pj.
  replace ((IZR c * unit_of q + IZR (round_up (H * num) (den * (Z.of_nat j + 1)))) / unit_of q)
    with (IZR c + IZR (round_up (H * num) (den * (Z.of_nat j + 1))) / unit_of q) by (field; lra).
  apply Rplus_le_compat_l.
  apply Rle_trans with (IZR num / IZR den / INR (S j) * (IZR H / unit_of q)).
  - apply Rmult_le_compat_l; [|exact IH].
    repeat (apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; assumption]); exact Hn.
  - apply (Rmult_le_compat_r (/ unit_of q)) in U; [|left; apply Rinv_0_lt_compat, P].
    eapply Rle_trans; [|exact U]; right; field; repeat split; lra.
Qed.

Lemma all_plus_nonneg n : (0 <= fst (all_plus n))%Z.
Proof. induction n as [|n IH]; cbn [all_plus]; [simpl; lia|]; destruct (all_plus n); cbn [fst] in *; lia. Qed.

Lemma contribution_sound p n u k m v :
  (0 <= p)%Z ->
  contribution p n (mixed_rows n) (all_plus (n - 1)) u k m = Some v ->
  waves k m (IZR u / unit_of p) <= IZR v / unit_of p.
Proof.
  intros Hp; pose proof (unit_pos p Hp) as P; unfold contribution.
  destruct (Z.leb_spec u 0) as [L|L].
  - intros E; injection E as <-; apply IZR_le in L.
    rewrite (proj2 (waves_wave k m)); [unfold Rdiv; lra|].
    assert (0 < / unit_of p) by (apply Rinv_0_lt_compat, P); unfold Rdiv; nra.
  - destruct (Nat.eqb_spec (k + m) n) as [N|]; cbn [negb]; [|discriminate]; subst n.
    assert (Hu : 0 <= IZR u / unit_of p).
    { apply IZR_lt in L; apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, P]. }
    assert (Half : IZR u / unit_of p / 2 = IZR u / IZR (2 ^ (p + 1))).
    { replace (2 ^ (p + 1))%Z with (2 ^ p * 2)%Z by (rewrite Z.pow_add_r by lia; reflexivity).
      rewrite mult_IZR; fold (unit_of p); field; lra. }
    assert (PZ : (0 < 2 ^ (p + 1))%Z) by (apply Z.pow_pos_nonneg; lia).
    assert (Poly : forall l, series 0 l (IZR u / unit_of p / 2)
                      <= IZR (horner_above p u (2 ^ (p + 1)) 0 l) / unit_of p).
    { intros l; rewrite series_horner, Half; simpl (_ ^ 0); simpl (INR (fact 0)).
      replace (1 / 1) with 1 by field; rewrite Rmult_1_l.
      apply (horner_above_sound p u (2 ^ (p + 1)) 0 l Hp); lia. }
    destruct k as [|k]; [discriminate|]; destruct m as [|m].
    + replace (S k + 0 - 1)%nat with k by lia.
      destruct (exp_of_rational p _) as [[l e]|] eqn:E; [|discriminate]; intros I; injection I as <-.
      apply exp_of_rational_sound in E as [_ E]; [|exact Hp].
      assert (Eq : Q2R (u # Z.to_pos (2 ^ (p + 1))) = IZR u / IZR (2 ^ (p + 1)))
        by (unfold Q2R; cbn [Qnum Qden]; rewrite Z2Pos.id by exact PZ; reflexivity).
      rewrite Eq, <- Half in E; rewrite (waves_all_plus k _ Hu).
      pose proof (IZR_le _ _ (all_plus_nonneg k)) as A; specialize (Poly (snd (all_plus k))).
      rewrite plus_IZR, mult_IZR, Rdiv_plus_distr; apply Rplus_le_compat; [|exact Poly].
      replace (IZR (fst (all_plus k)) * IZR e / unit_of p) with (IZR (fst (all_plus k)) * (IZR e / unit_of p))
        by (unfold Rdiv; ring).
      apply Rmult_le_compat_l; [exact A|exact E].
    + pose proof (nth_mixed (S k + S m) (S k) ltac:(lia)) as R.
      replace (S k - 1)%nat with k in R by lia; rewrite R.
      replace (S k + S m - S k - 1)%nat with m by lia.
      intros I; injection I as <-; rewrite (waves_mixed k m _ Hu), Rmult_0_l, Rplus_0_l; apply Poly.
Qed.

(** ** Choices, by how many there are *)

Fixpoint dot (i : nat) (row : list Z) (H : nat -> R) : R :=
  match row with [] => 0 | b :: rest => IZR b * H i + dot (S i) rest H end.

Lemma dot_ext i row H H' :
  (forall j, (i <= j < i + length row)%nat -> H j = H' j) -> dot i row H = dot i row H'.
Proof.
  revert i; induction row as [|b row IH]; intros i E; cbn [dot]; [reflexivity|].
  rewrite E, (IH (S i)); [reflexivity|intros j J; apply E; cbn [length]; lia|cbn [length]; lia].
Qed.

Lemma dot_plus i row H H' : dot i row (fun j => H j + H' j) = dot i row H + dot i row H'.
Proof. revert i; induction row as [|b row IH]; intros i; cbn [dot]; [ring|rewrite IH; ring]. Qed.

Lemma dot_times before i row H :
  dot i (times_plus before row) H = IZR before * H i + dot i row (fun j => H j + H (S j)).
Proof.
  revert before i; induction row as [|b row IH]; intros before i; cbn [times_plus dot]; [ring|].
  rewrite IH, plus_IZR; ring.
Qed.

Lemma binomials_length n : length (binomials n) = S n.
Proof.
  assert (L : forall b l, length (times_plus b l) = S (length l)).
  { intros b l; revert b; induction l as [|c l IH]; intros b; cbn [times_plus length]; [reflexivity|].
    rewrite IH; reflexivity. }
  induction n as [|n IH]; cbn [binomials]; [reflexivity|rewrite L, IH; reflexivity].
Qed.

Definition moved (e : R) (n j : nat) (c : choice) : choice :=
  let '(t, k, m) := c in (t + (2 * INR j - INR n) * e, (k + j)%nat, (m + (n - j))%nat).

Lemma same_choice (t t' : R) (k k' m m' : nat) :
  t = t' -> k = k' -> m = m' -> (t, k, m) = (t', k', m').
Proof. congruence. Qed.

Lemma choices_repeated e n l F :
  total (choices (repeat e n ++ l)) F
    = total (choices l) (fun c => dot 0 (binomials n) (fun j => F (moved e n j c))).
Proof.
  revert F; induction n as [|n IH]; intros F; cbn [repeat app choices].
  - apply total_ext; intros [[t k] m] _; cbn [binomials dot moved]; simpl.
    rewrite Rmult_1_l, Rplus_0_r; f_equal; apply same_choice; try lia; ring.
  - rewrite total_app, !total_map', !IH, <- total_plus; apply total_ext; intros [[t k] m] _.
    cbn [binomials]; rewrite dot_times, Rmult_0_l, Rplus_0_l, <- dot_plus.
    apply dot_ext; intros j J; rewrite binomials_length in J; cbn [moved up down].
    rewrite Rplus_comm; f_equal; f_equal; apply same_choice; try lia; rewrite !S_INR; ring.
Qed.

Definition group_shifts (p : Z) (groups : list (Z * nat)) : list R :=
  flat_map (fun en => repeat (IZR (fst en) / unit_of p) (snd en)) groups.

Definition choice_of (p : Z) (k : knot) : choice :=
  (IZR (knot_sum k) / unit_of p, knot_plus k, knot_minus k).

Lemma knots_sound p groups F :
  (0 <= p)%Z ->
  total (choices (group_shifts p groups)) F
    = total (knots groups) (fun k => IZR (knot_ways k) * F (choice_of p k)).
Proof.
  intros Hp; pose proof (unit_pos p Hp) as P; revert F.
  induction groups as [|[e n] groups IH]; intros F; cbn [group_shifts flat_map knots].
  - simpl; unfold choice_of; simpl; replace (0 / unit_of p) with 0 by (field; lra); ring.
  - cbn [fst snd]; rewrite choices_repeated; fold (group_shifts p groups); rewrite IH, total_flat_map.
    apply total_ext; intros k _.
    assert (Row : forall row j, (j + length row <= S n)%nat ->
              IZR (knot_ways k) * dot j row (fun i => F (moved (IZR e / unit_of p) n i (choice_of p k)))
              = total (spread e n j row k) (fun k => IZR (knot_ways k) * F (choice_of p k))).
    { induction row as [|b row IHr]; intros j J; cbn [dot spread total]; [ring|].
      cbn [length] in J; rewrite <- IHr by lia; cbn [knot_ways].
      assert (Same : moved (IZR e / unit_of p) n j (choice_of p k)
                = choice_of p (Knot (knot_sum k + (2 * Z.of_nat j - Z.of_nat n) * e) (knot_plus k + j)
                                 (knot_minus k + (n - j)) (b * knot_ways k))).
      { unfold moved, choice_of; cbn [knot_sum knot_plus knot_minus]; apply same_choice; try reflexivity.
        rewrite plus_IZR, mult_IZR, minus_IZR, mult_IZR, <- !INR_IZR_INZ; field; lra. }
      rewrite Same, mult_IZR; ring. }
    apply (Row _ O); rewrite binomials_length; lia.
Qed.

Lemma contributions_sound p n x l sum :
  (0 <= p)%Z ->
  contributions p n (mixed_rows n) (all_plus (n - 1)) x l = Some sum ->
  total l (fun k => IZR (knot_ways k) * value_at (IZR x / unit_of p) (choice_of p k))
    <= IZR sum / unit_of p.
Proof.
  intros Hp; pose proof (unit_pos p Hp) as P; revert sum.
  induction l as [|k l IH]; intros sum; cbn [contributions total].
  - intros E; injection E as <-; unfold Rdiv; lra.
  - destruct (contribution _ _ _ _ _ _ _) as [v|] eqn:V; [|discriminate].
    destruct (contributions _ _ _ _ _ l) as [rest|]; [|discriminate].
    destruct (0 <=? knot_ways k)%Z eqn:W; [|discriminate]; intros E; injection E as <-.
    apply Z.leb_le, IZR_le in W; apply contribution_sound in V; [|exact Hp].
    rewrite plus_IZR, mult_IZR, Rdiv_plus_distr; apply Rplus_le_compat; [|apply IH; reflexivity].
    replace (IZR (knot_ways k) * IZR v / unit_of p) with (IZR (knot_ways k) * (IZR v / unit_of p))
      by (unfold Rdiv; ring).
    apply Rmult_le_compat_l; [exact W|].
    unfold value_at, choice_of; eapply Rle_trans; [right|exact V]; f_equal.
    rewrite minus_IZR; field; lra.
Qed.

Lemma factor_sum p groups :
  (0 <= p)%Z ->
  factor (group_shifts p groups)
    = exp (- (IZR (group_sum groups) / unit_of p) / 2) / IZR (2 ^ Z.of_nat (group_number groups)).
Proof.
  intros Hp; pose proof (unit_pos p Hp) as P.
  induction groups as [|[e n] groups IH]; cbn [group_shifts flat_map group_sum group_number fold_right].
  - simpl; replace (- (0 / unit_of p) / 2) with 0 by (field; lra); rewrite exp_0; field.
  - fold (group_shifts p groups) (group_sum groups) (group_number groups); cbn [fst snd].
    assert (Two : forall k, IZR (2 ^ Z.of_nat (S k)) = 2 * IZR (2 ^ Z.of_nat k)).
    { intros k; rewrite Nat2Z.inj_succ, Z.pow_succ_r, mult_IZR by lia; reflexivity. }
    induction n as [|n IHn]; cbn [repeat app factor].
    + rewrite IH, Z.mul_0_r; reflexivity.
    + rewrite IHn; replace (S n + group_number groups)%nat with (S (n + group_number groups)) by lia.
      rewrite Two, Nat2Z.inj_succ.
      pose proof (IZR_lt _ _ (Z.pow_pos_nonneg 2 (Z.of_nat (n + group_number groups)) eq_refl ltac:(lia))).
      transitivity (exp (- (IZR e / unit_of p) / 2 + - (IZR (e * Z.of_nat n + group_sum groups) / unit_of p) / 2)
                    / (2 * IZR (2 ^ Z.of_nat (n + group_number groups)))).
      * rewrite exp_plus; field; lra.
      * do 2 f_equal; rewrite !plus_IZR, !mult_IZR, succ_IZR; field; lra.
Qed.

Theorem laplace_delta_sound p groups x delta :
  (0 <= p)%Z -> laplace_delta_at_most p groups x delta = true ->
  composed_profile (group_shifts p groups) 1 (exp (IZR x / unit_of p)) <= Q2R delta.
Proof.
  intros Hp; pose proof (unit_pos p Hp) as P; unfold laplace_delta_at_most; cbv zeta.
  set (n := group_number groups).
  destruct (contributions _ _ _ _ _ _) as [sum|] eqn:C; [|discriminate].
  destruct (exp_of_rational p _) as [[l e]|] eqn:E; [|discriminate]; intros D.
  apply contributions_sound in C; [|exact Hp]; rewrite <- knots_sound in C by exact Hp.
  apply exp_of_rational_sound in E as [_ E]; [|exact Hp]; apply Qle_bool_R in D.
  rewrite Q2R_mult, !Q2R_integer in D.
  assert (PZ : (0 < 2 ^ (p + 1))%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (Eq : Q2R (x - group_sum groups # Z.to_pos (2 ^ (p + 1)))
               = (IZR x / unit_of p - IZR (group_sum groups) / unit_of p) / 2).
  { unfold Q2R; cbn [Qnum Qden]; rewrite Z2Pos.id by exact PZ.
    replace (2 ^ (p + 1))%Z with (2 ^ p * 2)%Z by (rewrite Z.pow_add_r by lia; reflexivity).
    rewrite mult_IZR, minus_IZR; fold (unit_of p); field; lra. }
  rewrite Eq in E; set (X := IZR x / unit_of p) in *; set (S := IZR (group_sum groups) / unit_of p) in *.
  pose proof (exp_pos X) as PX; rewrite composed_inside by lra.
  rewrite Rmult_1_l; replace (exp X / 1) with (exp X) by field; rewrite ln_exp.
  assert (Root : sqrt (exp X) = exp (X / 2)).
  { replace (exp X) with (exp (X / 2) * exp (X / 2)) by (rewrite <- exp_plus; f_equal; field).
    apply sqrt_square; left; apply exp_pos. }
  unfold composition; rewrite Root, factor_sum by exact Hp; fold S n.
  assert (P2 : 0 < IZR (2 ^ Z.of_nat n)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  set (T := total _ _) in *.
  assert (Ee : exp (X / 2) * (exp (- S / 2) / IZR (2 ^ Z.of_nat n) * T)
               = exp ((X - S) / 2) * T / IZR (2 ^ Z.of_nat n)).
  { replace ((X - S) / 2) with (X / 2 + - S / 2) by field; rewrite exp_plus; field; lra. }
  rewrite Ee; apply Rmult_le_reg_r with (1 := P2); unfold Rdiv at 1; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (Pe : 0 <= IZR e / unit_of p) by (pose proof (exp_pos ((X - S) / 2)); lra).
  assert (T' : T <= IZR (Z.max 0 sum) / unit_of p).
  { eapply Rle_trans; [exact C|]; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, P|].
    apply IZR_le; lia. }
  assert (M : 0 <= IZR (Z.max 0 sum) / unit_of p).
  { apply Rmult_le_pos; [apply IZR_le; lia|left; apply Rinv_0_lt_compat, P]. }
  apply Rle_trans with (IZR e / unit_of p * (IZR (Z.max 0 sum) / unit_of p)).
  - apply Rle_trans with (exp ((X - S) / 2) * (IZR (Z.max 0 sum) / unit_of p)).
    + apply Rmult_le_compat_l; [left; apply exp_pos|exact T'].
    + apply Rmult_le_compat_r; [exact M|exact E].
  - rewrite mult_IZR in D.
    assert (U : IZR (2 ^ (2 * p + Z.of_nat n)) = unit_of p * unit_of p * IZR (2 ^ Z.of_nat n)).
    { rewrite Z.pow_add_r, mult_IZR by lia; f_equal; unfold unit_of.
      rewrite <- mult_IZR, <- Z.pow_add_r by lia; do 2 f_equal; lia. }
    rewrite U in D; apply Rmult_le_reg_r with (unit_of p * unit_of p); [nra|].
    replace (IZR e / unit_of p * (IZR (Z.max 0 sum) / unit_of p) * (unit_of p * unit_of p))
      with (IZR e * IZR (Z.max 0 sum)) by (field; lra).
    eapply Rle_trans; [exact D|right; ring].
Qed.
