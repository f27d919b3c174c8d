(** Exponentials, logarithms and the exact delta of a Gaussian step in fixed point: whole numbers
    that stand for multiples of 2^-p. Intervals (Enclosure.v) answer the same questions more
    generally, and a hundred times more slowly. *)

From Coq Require Import Reals Bool ZArith Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite GaussianIntegral Gaussian GaussianDelta GaussianSeries
  LossLists.
Open Scope R_scope.

(** ** Power series whose n-th term is the one before times s / (c n + e) *)

Section Series.

Variables c e s : R.

Fixpoint power_term (n : nat) : R :=
  match n with O => 1 | S n' => power_term n' * s / (c * INR n' + e) end.
Fixpoint power_sum (n : nat) : R :=
  match n with O => 0 | S n' => power_sum n' + power_term n' end.

End Series.

Lemma mills_terms s n : power_term 2 3 s n = mills_term s n.
Proof. induction n as [|n IH]; simpl; [reflexivity|rewrite IH; reflexivity]. Qed.

Lemma mills_sums s n : power_sum 2 3 s n = mills_sum s n.
Proof. induction n as [|n IH]; simpl; [reflexivity|rewrite IH, mills_terms; reflexivity]. Qed.

Lemma is_derive_exp_term n t :
  is_derive (fun t => power_term 1 1 t n) t
    (match n with O => 0 | S m => power_term 1 1 t m end).
Proof.
  induction n as [|n IH]; [exact (is_derive_const (V := R_NormedModule) 1 t)|].
  pose proof (pos_INR n) as Pn.
  apply is_derive_ext with (f := fun t => / (1 * INR n + 1) * (power_term 1 1 t n * t)).
  { intros x; simpl; field; lra. }
  pose proof (is_derive_scal _ t (/ (1 * INR n + 1)) _
    (is_derive_times (fun t => power_term 1 1 t n) (fun t => t) t _ 1 IH
      (is_derive_id (K := R_AbsRing) t))) as D.
  match type of D with is_derive _ _ ?v =>
    replace (power_term 1 1 t n) with v; [exact D|] end.
  destruct n as [|m]; [simpl; field|].
  rewrite S_INR in *; pose proof (pos_INR m); simpl power_term; field; lra.
Qed.

Lemma is_derive_exp_sum n t :
  is_derive (fun t => power_sum 1 1 t (S n)) t (power_sum 1 1 t n).
Proof.
  induction n as [|n IH].
  - apply (is_derive_ext (fun _ => 1)); [intros x; simpl; ring|].
    exact (is_derive_const (V := R_NormedModule) 1 t).
  - apply (is_derive_plus (V := R_NormedModule) (fun t => power_sum 1 1 t (S n))
      (fun t => power_term 1 1 t (S n))); [exact IH|apply (is_derive_exp_term (S n))].
Qed.

Lemma exp_term_0 n : power_term 1 1 0 (S n) = 0.
Proof. simpl; unfold Rdiv; ring. Qed.

Lemma exp_sum_0 n : power_sum 1 1 0 (S n) = 1.
Proof.
  induction n as [|n IH]; [simpl; ring|].
  cbn [power_sum] in *; rewrite IH, exp_term_0; ring.
Qed.

Lemma exp_lower n t : 0 <= t -> power_sum 1 1 t n <= exp t.
Proof.
  revert t; induction n as [|n IH]; intros t Ht; [simpl; left; apply exp_pos|].
  pose proof (le_of_derive (fun t => exp t - power_sum 1 1 t (S n))
    (fun t => exp t - power_sum 1 1 t n) 0 t Ht) as M.
  cbv beta in M; rewrite exp_sum_0, exp_0 in M.
  enough (1 - 1 <= exp t - power_sum 1 1 t (S n)) by lra; apply M.
  - intros x; apply (is_derive_minus (V := R_NormedModule));
      [apply is_derive_exp|apply is_derive_exp_sum].
  - intros x Hx; specialize (IH x ltac:(lra)); lra.
Qed.

Lemma exp_upper n t :
  0 <= t <= 1 / 2 -> exp t <= power_sum 1 1 t n + 2 * power_term 1 1 t n.
Proof.
  revert t; induction n as [|n IH]; intros t [Ht Hh].
  - simpl; rewrite Rplus_0_l, Rmult_1_r.
    apply Rle_trans with (exp (1 / 2)); [apply exp_le; lra|].
    pose proof (exp_pos (1 / 2)); pose proof exp_le_3.
    assert (exp (1 / 2) * exp (1 / 2) = exp 1) by (rewrite <- exp_plus; f_equal; lra); nra.
  - pose proof (le_of_derive
      (fun t => power_sum 1 1 t (S n) + 2 * power_term 1 1 t (S n) - exp t)
      (fun t => power_sum 1 1 t n + 2 * power_term 1 1 t n - exp t) 0 t Ht) as M.
    cbv beta in M; rewrite exp_sum_0, exp_term_0, exp_0 in M.
    enough (1 + 2 * 0 - 1 <= power_sum 1 1 t (S n) + 2 * power_term 1 1 t (S n) - exp t) by lra.
    apply M.
    + intros x; apply (is_derive_minus (V := R_NormedModule)); [|apply is_derive_exp].
      apply (is_derive_plus (V := R_NormedModule) (fun t => power_sum 1 1 t (S n))
        (fun t => 2 * power_term 1 1 t (S n))); [apply is_derive_exp_sum|].
      apply is_derive_scal, (is_derive_exp_term (S n)).
    + intros x Hx; specialize (IH x ltac:(lra)); lra.
Qed.

(** ** Rounded arithmetic *)

Definition round_up (n d : Z) : Z := (- (- n / d))%Z.

Lemma round_down_le n d : (0 < d)%Z -> IZR (n / d) <= IZR n / IZR d.
Proof.
  intros Hd; pose proof (Z.mul_div_le n d Hd) as L; apply IZR_le in L; rewrite mult_IZR in L.
  apply IZR_lt in Hd; apply Rmult_le_reg_r with (1 := Hd).
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

Lemma round_up_ge n d : (0 < d)%Z -> IZR n / IZR d <= IZR (round_up n d).
Proof.
  intros Hd; unfold round_up; pose proof (round_down_le (- n) d Hd) as L.
  rewrite !opp_IZR in *; unfold Rdiv in *; lra.
Qed.

Section Fixed.

Variable p : Z.
Hypothesis Hp : (0 <= p)%Z.

Notation fixed n := (IZR n / unit_of p).

Definition below (a b : Z) : Z := Z.shiftr (a * b) p.
Definition above (a b : Z) : Z := shift_up (a * b) p.

Lemma unit_positive : 0 < unit_of p.
Proof. apply unit_pos, Hp. Qed.

Lemma fixed_le a b : IZR a <= IZR b <-> fixed a <= fixed b.
Proof.
  pose proof unit_positive as P; split; intros H.
  - apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, P|exact H].
  - apply Rmult_le_reg_r with (/ unit_of p); [apply Rinv_0_lt_compat, P|exact H].
Qed.

Lemma fixed_nonneg a : (0 <= a)%Z <-> 0 <= fixed a.
Proof.
  replace 0 with (fixed 0) by (unfold Rdiv; ring); rewrite <- fixed_le; split.
  - apply IZR_le.
  - apply le_IZR.
Qed.

Lemma fixed_pos a : (0 < a)%Z -> 0 < fixed a.
Proof. intros H; apply IZR_lt in H; apply Rdiv_lt_0_compat; [exact H|apply unit_positive]. Qed.

Lemma fixed_plus a b : fixed (a + b) = fixed a + fixed b.
Proof. rewrite plus_IZR; unfold Rdiv; ring. Qed.

Lemma fixed_minus a b : fixed (a - b) = fixed a - fixed b.
Proof. rewrite minus_IZR; unfold Rdiv; ring. Qed.

Lemma fixed_opp a : fixed (- a) = - fixed a.
Proof. rewrite opp_IZR; unfold Rdiv; ring. Qed.

Lemma fixed_one : fixed (2 ^ p) = 1.
Proof. pose proof unit_positive; unfold unit_of in *; field; lra. Qed.

Lemma above_ge a b : fixed a * fixed b <= fixed (above a b).
Proof.
  pose proof unit_positive as P; pose proof (shift_up_ge (a * b) p Hp) as U.
  fold (unit_of p) in U; rewrite mult_IZR in U.
  apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
  unfold above; eapply Rle_trans; [|exact U]; right; field; lra.
Qed.

Lemma below_le a b : fixed (below a b) <= fixed a * fixed b.
Proof.
  pose proof unit_positive as P; unfold below; rewrite Z.shiftr_div_pow2 by exact Hp.
  pose proof (round_down_le (a * b) (2 ^ p) ltac:(apply Z.pow_pos_nonneg; lia)) as L.
  fold (unit_of p) in L; rewrite mult_IZR in L.
  apply (Rmult_le_compat_r (/ unit_of p)) in L; [|left; apply Rinv_0_lt_compat, P].
  eapply Rle_trans; [exact L|]; right; field; lra.
Qed.

Lemma below_nonneg a b : (0 <= a)%Z -> (0 <= b)%Z -> (0 <= below a b)%Z.
Proof. intros; apply Z.shiftr_nonneg; nia. Qed.

(** ** Series: [d] divides the next term but one *)

Fixpoint rise (fuel : nat) (s c d total term : Z) : option (Z * Z) :=
  match fuel with
  | O => None
  | S fuel' =>
      if (term <=? 1)%Z && (2 * s <=? Z.shiftl (d - 2) p)%Z then Some (total, term)
      else rise fuel' s c (d + c) (total + term) (round_up (above term s) d)
  end.

Fixpoint fall (fuel : nat) (s c d total term : Z) : Z :=
  match fuel with
  | O => total
  | S fuel' =>
      if (term <=? 1)%Z then total
      else fall fuel' s c (d + c) (total + term) (below term s / d)
  end.

Section Sums.

Variables (c e : Z) (x : R).
Hypotheses (Hc : (0 <= c)%Z) (He : (0 < e)%Z) (Hx : 0 <= x).

Notation term_ n := (power_term (IZR c) (IZR e) x n).
Notation sum_ n := (power_sum (IZR c) (IZR e) x n).

Lemma divisor_pos n : 0 < IZR c * INR n + IZR e.
Proof.
  apply IZR_le in Hc; apply IZR_lt in He; pose proof (pos_INR n); nra.
Qed.

Lemma power_term_nonneg n : 0 <= term_ n.
Proof.
  induction n as [|n IH]; simpl; [lra|]; pose proof (divisor_pos n).
  apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; assumption].
Qed.

Lemma rise_sound s fuel d total term total' term' n :
  x <= fixed s -> IZR d = IZR c * INR n + IZR e ->
  sum_ n <= fixed total -> term_ n <= fixed term ->
  rise fuel s c d total term = Some (total', term') ->
  exists m, (n <= m)%nat /\ sum_ m <= fixed total' /\ term_ m <= fixed term' /\
            2 * x <= IZR c * INR m + IZR e - 2.
Proof.
  intros Hs; revert d total term n; induction fuel as [|fuel IH];
    intros d total term n Hd Ht Hm; cbn [rise]; [discriminate|].
  destruct (_ && _) eqn:G.
  - intros E; injection E as <- <-; exists n; repeat split; try lia; try assumption.
    apply andb_prop in G as [_ G]; apply Z.leb_le in G; rewrite Z.shiftl_mul_pow2 in G by exact Hp.
    apply IZR_le in G; rewrite !mult_IZR, minus_IZR in G; fold (unit_of p) in G.
    rewrite <- Hd; pose proof unit_positive as P.
    assert (2 * fixed s <= IZR d - 2); [|lra].
    apply Rmult_le_reg_r with (1 := P); unfold Rdiv.
    replace (2 * (IZR s * / unit_of p) * unit_of p) with (2 * IZR s) by (field; lra); lra.
  - intros E; apply IH with (n := S n) in E as (m & L & R); [exists m; split; [lia|exact R]| | |].
    + rewrite plus_IZR, Hd, S_INR; ring.
    + cbn [power_sum]; rewrite fixed_plus; lra.
    + cbn [power_term]; rewrite <- Hd; pose proof (divisor_pos n) as Pd; rewrite <- Hd in Pd.
      pose proof (above_ge term s) as A; pose proof (power_term_nonneg n).
      pose proof unit_positive as P.
      assert (Hd0 : (0 < d)%Z) by (apply lt_IZR, Pd).
      pose proof (round_up_ge (above term s) d Hd0) as U.
      apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
      eapply Rle_trans; [|exact U].
      assert (term_ n * x <= fixed term * fixed s) by (apply Rmult_le_compat; lra).
      replace (IZR (above term s) / IZR d * / unit_of p) with (fixed (above term s) / IZR d)
        by (field; lra).
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pd|lra].
Qed.

Lemma fall_sound s fuel d total term n :
  (0 <= s)%Z -> fixed s <= x -> IZR d = IZR c * INR n + IZR e ->
  fixed total <= sum_ n -> (0 <= term)%Z -> fixed term <= term_ n ->
  exists m, (n <= m)%nat /\ fixed (fall fuel s c d total term) <= sum_ m.
Proof.
  intros Hs0 Hs; revert d total term n; induction fuel as [|fuel IH];
    intros d total term n Hd Ht Hm0 Hm; cbn [fall]; [exists n; split; [lia|exact Ht]|].
  destruct (term <=? 1)%Z; [exists n; split; [lia|exact Ht]|].
  pose proof (divisor_pos n) as Pd; rewrite <- Hd in Pd.
  assert (Hd0 : (0 < d)%Z) by (apply lt_IZR, Pd).
  destruct (IH (d + c)%Z (total + term)%Z (below term s / d)%Z (S n)) as (m & L & R);
    [| | | |exists m; split; [lia|exact R]].
  - rewrite plus_IZR, Hd, S_INR; ring.
  - cbn [power_sum]; rewrite fixed_plus; lra.
  - apply Z.div_pos; [apply below_nonneg; assumption|exact Hd0].
  - cbn [power_term]; rewrite <- Hd; pose proof unit_positive as P.
    pose proof (below_le term s) as B; pose proof (round_down_le (below term s) d Hd0) as U.
    apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
    eapply Rle_trans; [exact U|].
    replace (IZR (below term s) / IZR d * / unit_of p) with (fixed (below term s) / IZR d)
      by (field; lra).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pd|].
    apply Rle_trans with (1 := B); apply fixed_nonneg in Hs0, Hm0; apply Rmult_le_compat; lra.
Qed.

End Sums.


End Fixed.

(** ** exp: by its series near 0, then squared *)

Fixpoint squared_above (n : nat) (p a : Z) : Z :=
  match n with O => a | S n' => squared_above n' p (above p a a) end.
Fixpoint squared_below (n : nat) (p a : Z) : Z :=
  match n with O => a | S n' => squared_below n' p (below p a a) end.

Definition guard_bits : Z := 8.

(** Bounds on exp at y >= 0: 2^n-th powers of bounds at y / 2^n. *)
Definition exp_of_positive (p y : Z) : option (Z * Z) :=
  let n := Z.to_nat (Z.log2 y + 6 - p) in
  let extra := (Z.of_nat n + guard_bits)%Z in
  let q := (p + extra)%Z in
  let t := Z.shiftl y guard_bits in
  let fuel := Z.to_nat q in
  match rise q fuel t 1 1 0 (2 ^ q) with
  | Some (total, term) =>
      if (0 <=? y)%Z && (2 * t <=? 2 ^ q)%Z then
        Some (Z.shiftr (squared_below n q (fall q fuel t 1 1 0 (2 ^ q))) extra,
              shift_up (squared_above n q (total + 2 * term)) extra)
      else None
  | None => None
  end.

Definition exp_bounds (p y : Z) : option (Z * Z) :=
  match exp_of_positive p (Z.abs y) with
  | Some (low, high) =>
      if (0 <=? y)%Z then Some (low, high)
      else if (0 <? low)%Z then Some (2 ^ (2 * p) / high, round_up (2 ^ (2 * p)) low)%Z
      else None
  | None => None
  end.

Lemma squared_above_sound p (Hp : (0 <= p)%Z) n a x :
  0 <= x <= IZR a / unit_of p -> x ^ (2 ^ n) <= IZR (squared_above n p a) / unit_of p.
Proof.
  revert a x; induction n as [|n IH]; intros a x H; cbn [squared_above Nat.pow].
  - rewrite pow_1; apply H.
  - replace (x ^ (2 * 2 ^ n)) with ((x * x) ^ (2 ^ n)).
    + apply IH; pose proof (above_ge p Hp a a); split; [nra|].
      apply Rle_trans with (IZR a / unit_of p * (IZR a / unit_of p)); [nra|assumption].
    + rewrite pow_mult; f_equal; simpl; ring.
Qed.

Lemma squared_below_sound p (Hp : (0 <= p)%Z) n a x :
  (0 <= a)%Z -> IZR a / unit_of p <= x -> IZR (squared_below n p a) / unit_of p <= x ^ (2 ^ n).
Proof.
  revert a x; induction n as [|n IH]; intros a x Ha H; cbn [squared_below Nat.pow].
  - rewrite pow_1; exact H.
  - replace (x ^ (2 * 2 ^ n)) with ((x * x) ^ (2 ^ n)).
    + apply IH; [apply below_nonneg; assumption|].
      pose proof (below_le p Hp a a); apply fixed_nonneg with (p := p) in Ha; [|exact Hp].
      apply Rle_trans with (IZR a / unit_of p * (IZR a / unit_of p)); [assumption|nra].
    + rewrite pow_mult; f_equal; simpl; ring.
Qed.

Section Exp.

Variable p : Z.
Hypothesis Hp : (0 <= p)%Z.

Lemma exp_power x n : exp x ^ n = exp (INR n * x).
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_l, exp_0; reflexivity|].
  rewrite S_INR; simpl; rewrite IH, <- exp_plus; f_equal; ring.
Qed.

Lemma unit_plus a b : (0 <= a)%Z -> (0 <= b)%Z -> unit_of (a + b) = unit_of a * unit_of b.
Proof. intros; unfold unit_of; rewrite Z.pow_add_r, mult_IZR by assumption; reflexivity. Qed.

Lemma fall_nonneg q fuel s c d total term :
  (0 <= s)%Z -> (0 <= c)%Z -> (0 < d)%Z -> (0 <= total)%Z -> (0 <= term)%Z ->
  (0 <= fall q fuel s c d total term)%Z.
Proof.
  revert d total term; induction fuel as [|fuel IH]; intros d total term Hs Hc Hd Ht Hm;
    cbn [fall]; [exact Ht|].
  destruct (term <=? 1)%Z; [exact Ht|]; apply IH; try lia.
  apply Z.div_pos; [apply below_nonneg; assumption|exact Hd].
Qed.

Lemma exp_of_positive_sound y low high :
  exp_of_positive p y = Some (low, high) ->
  IZR low / unit_of p <= exp (IZR y / unit_of p) <= IZR high / unit_of p.
Proof.
  unfold exp_of_positive; cbv zeta.
  set (n := Z.to_nat (Z.log2 y + 6 - p)); set (extra := (Z.of_nat n + guard_bits)%Z).
  set (q := (p + extra)%Z); set (t := Z.shiftl y guard_bits).
  destruct (rise q _ t 1 1 0 _) as [[total term]|] eqn:R; [|discriminate].
  destruct (_ && _) eqn:G; [|discriminate]; intros E; injection E as <- <-.
  apply andb_prop in G as [Gy Gt]; apply Z.leb_le in Gy, Gt.
  assert (Hg : (0 <= guard_bits)%Z) by (unfold guard_bits; lia).
  assert (Hx : (0 <= extra)%Z) by (unfold extra; lia).
  assert (Hq : (0 <= q)%Z) by (unfold q; lia).
  pose proof (unit_pos p Hp) as Pp; pose proof (unit_pos extra Hx) as Px.
  pose proof (unit_pos q Hq) as Pq.
  assert (Ht : (0 <= t)%Z) by (apply Z.shiftl_nonneg; exact Gy).
  assert (One : IZR (2 ^ q) / unit_of q = 1) by (apply fixed_one, Hq).
  set (x := IZR t / unit_of q).
  assert (Hx0 : 0 <= x) by (apply fixed_nonneg; assumption).
  assert (Hx2 : x <= 1 / 2).
  { apply IZR_le in Gt; rewrite mult_IZR in Gt; unfold x.
    apply (Rmult_le_compat_r (/ unit_of q)) in Gt; [|left; apply Rinv_0_lt_compat, Pq].
    fold (IZR (2 ^ q) / unit_of q) in Gt; rewrite One in Gt; unfold Rdiv in *; lra. }
  assert (Power : exp x ^ (2 ^ n) = exp (IZR y / unit_of p)).
  { rewrite exp_power; f_equal; unfold x, t, q.
    rewrite Z.shiftl_mul_pow2, mult_IZR by exact Hg; fold (unit_of guard_bits).
    rewrite unit_plus by assumption; unfold extra at 1; rewrite unit_plus by lia.
    replace (INR (2 ^ n)) with (unit_of (Z.of_nat n)).
    - pose proof (unit_pos (Z.of_nat n) ltac:(lia)); pose proof (unit_pos guard_bits Hg).
      field; repeat split; lra.
    - unfold unit_of; rewrite INR_IZR_INZ, Nat2Z.inj_pow; reflexivity. }
  assert (Up : exp x <= IZR (total + 2 * term) / unit_of q).
  { destruct (rise_sound q Hq 1 1 x ltac:(lia) ltac:(lia) Hx0 t (Z.to_nat q) 1 0 (2 ^ q) total term O)
      as (m & _ & Rs & Rt & _); try exact R; try (simpl; lra); [unfold x; lra|].
    rewrite plus_IZR, mult_IZR; pose proof (exp_upper m x (conj Hx0 Hx2)); unfold Rdiv in *; lra. }
  assert (Down : IZR (fall q (Z.to_nat q) t 1 1 0 (2 ^ q)) / unit_of q <= exp x).
  { destruct (fall_sound q Hq 1 1 x ltac:(lia) ltac:(lia) t (Z.to_nat q) 1 0 (2 ^ q) O)
      as (m & _ & Fs).
    1: exact Ht.
    1: unfold x; lra.
    1: simpl; lra.
    1: simpl; unfold Rdiv; lra.
    1: apply Z.pow_nonneg; lia.
    1: simpl power_term; lra.
    apply Rle_trans with (1 := Fs), exp_lower, Hx0. }
  assert (Fn : (0 <= fall q (Z.to_nat q) t 1 1 0 (2 ^ q))%Z)
    by (apply fall_nonneg; try lia; apply Z.pow_nonneg; lia).
  assert (Eq : unit_of q = unit_of p * unit_of extra) by (apply unit_plus; assumption).
  rewrite <- Power; pose proof (exp_pos x) as Pe; split.
  - eapply Rle_trans; [|apply (squared_below_sound q Hq n _ _ Fn Down)].
    rewrite Z.shiftr_div_pow2 by exact Hx.
    pose proof (round_down_le (squared_below n q (fall q (Z.to_nat q) t 1 1 0 (2 ^ q))) (2 ^ extra)
                  ltac:(apply Z.pow_pos_nonneg; lia)) as L; fold (unit_of extra) in L.
    rewrite Eq.
    apply (Rmult_le_compat_r (/ unit_of p)) in L; [|left; apply Rinv_0_lt_compat, Pp].
    eapply Rle_trans; [exact L|]; right; field; split; lra.
  - eapply Rle_trans; [apply (squared_above_sound q Hq n _ _ (conj (Rlt_le _ _ Pe) Up))|].
    pose proof (shift_up_ge (squared_above n q (total + 2 * term)) extra Hx) as L.
    fold (unit_of extra) in L; rewrite Eq.
    apply (Rmult_le_compat_r (/ unit_of p)) in L; [|left; apply Rinv_0_lt_compat, Pp].
    eapply Rle_trans; [|exact L]; right; field; split; lra.
Qed.

Theorem exp_bounds_sound y low high :
  exp_bounds p y = Some (low, high) ->
  IZR low / unit_of p <= exp (IZR y / unit_of p) <= IZR high / unit_of p.
Proof.
  unfold exp_bounds; destruct (exp_of_positive p (Z.abs y)) as [[l u]|] eqn:E; [|discriminate].
  apply exp_of_positive_sound in E; pose proof (unit_pos p Hp) as P.
  destruct (0 <=? y)%Z eqn:Y.
  - apply Z.leb_le in Y; rewrite Z.abs_eq in E by exact Y.
    intros H; injection H as <- <-; exact E.
  - apply Z.leb_gt in Y; rewrite Z.abs_neq in E by lia.
    destruct (0 <? l)%Z eqn:L; [|discriminate]; apply Z.ltb_lt in L.
    intros H; injection H as <- <-; destruct E as [E1 E2].
    pose proof (fixed_pos p Hp l L) as Pl.
    set (v := exp (IZR (- y) / unit_of p)) in *.
    assert (Pv : 0 < v) by apply exp_pos.
    assert (Ev : exp (IZR y / unit_of p) = / v).
    { unfold v; rewrite <- exp_Ropp; f_equal; rewrite opp_IZR; unfold Rdiv; ring. }
    assert (Pu : 0 < IZR u / unit_of p) by lra.
    assert (U : (0 < u)%Z).
    { apply lt_IZR; apply Rmult_lt_reg_r with (/ unit_of p); [apply Rinv_0_lt_compat, P|].
      unfold Rdiv in Pu; lra. }
    assert (Sq : IZR (2 ^ (2 * p)) = unit_of p * unit_of p).
    { unfold unit_of; rewrite <- mult_IZR, <- Z.pow_add_r by assumption; do 2 f_equal; lia. }
    apply IZR_lt in U as U'; apply IZR_lt in L as L'; rewrite Ev; split.
    + pose proof (round_down_le (2 ^ (2 * p)) u U) as D; rewrite Sq in D.
      apply (Rmult_le_compat_r (/ unit_of p)) in D; [|left; apply Rinv_0_lt_compat, P].
      apply Rle_trans with (1 := D).
      replace (unit_of p * unit_of p / IZR u * / unit_of p) with (/ (IZR u / unit_of p))
        by (field; split; lra).
      apply Rinv_le_contravar; assumption.
    + pose proof (round_up_ge (2 ^ (2 * p)) l L) as D; rewrite Sq in D.
      apply (Rmult_le_compat_r (/ unit_of p)) in D; [|left; apply Rinv_0_lt_compat, P].
      eapply Rle_trans; [|exact D].
      replace (unit_of p * unit_of p / IZR l * / unit_of p) with (/ (IZR l / unit_of p))
        by (field; split; lra).
      apply Rinv_le_contravar; assumption.
Qed.

End Exp.

(** ** ln: a guess k, and ln r >= k + 1 - e^k / r whatever k is *)

Fixpoint closer (n : nat) (q r k : Z) : Z :=
  match n with
  | O => k
  | S n' =>
      match exp_bounds q k with
      | Some (_, e) => closer n' q r (k + 2 * (r - e) * 2 ^ q / Z.max 1 (r + e))%Z
      | None => k
      end
  end.

(** About ln (r / 2^p), to about half the bits: Halley's method from the number of bits. *)
Definition ln_guess (p r : Z) : Z :=
  let q := (p / 2 + 40)%Z in
  let start := Z.shiftr (Z.shiftl ((Z.log2 r - p) * 45426 + 22713) q) 16 in
  Z.shiftl (closer 3 q (Z.shiftl r (q - p)) start) (p - q).

Definition ln_below (p r : Z) : option Z :=
  let k := ln_guess p r in
  match exp_bounds p k with
  | Some (_, e) => if (0 <? r)%Z then Some (k + 2 ^ p - round_up (e * 2 ^ p) r)%Z else None
  | None => None
  end.

Theorem ln_below_sound p r k :
  (0 <= p)%Z -> ln_below p r = Some k ->
  (0 < r)%Z /\ IZR k / unit_of p <= ln (IZR r / unit_of p).
Proof.
  intros Hp; unfold ln_below; cbv zeta; set (g := ln_guess p r).
  destruct (exp_bounds p g) as [[l e]|] eqn:E; [|discriminate].
  destruct (0 <? r)%Z eqn:R; [|discriminate]; apply Z.ltb_lt in R.
  intros H; injection H as <-; split; [exact R|].
  apply exp_bounds_sound in E as [_ E]; [|exact Hp].
  pose proof (unit_pos p Hp) as P; pose proof (fixed_pos p Hp r R) as Pr.
  rewrite fixed_minus, fixed_plus, fixed_one by exact Hp.
  pose proof (round_up_ge (e * 2 ^ p) r R) as U; rewrite mult_IZR in U; fold (unit_of p) in U.
  apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
  apply IZR_lt in R as R'.
  replace (IZR e * unit_of p / IZR r * / unit_of p) with (IZR e / unit_of p / (IZR r / unit_of p))
    in U by (field; split; lra).
  set (x := IZR g / unit_of p) in *; set (v := IZR r / unit_of p) in *.
  pose proof (exp_ineq1_le (x - ln v)) as I.
  assert (Ei : exp (x - ln v) = exp x / v).
  { unfold Rminus; rewrite exp_plus, exp_Ropp, exp_ln by exact Pr; reflexivity. }
  rewrite Ei in I; clear Ei.
  assert (exp x / v <= IZR e / unit_of p / v)
    by (apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pr|exact E]).
  unfold Rdiv in *; lra.
Qed.
