(** Distributions of the privacy loss in whole numbers: masses, in multiples of 2^-w, at the losses
    first h, (first + 1) h, ..., and of an infinite loss. Every operation here rounds up, so that
    what it answers bounds what it stands for from above. *)

From Coq Require Import Reals List ZArith Lra Lia Psatz Permutation Bool.
From Dpledger Require Import Sums Finite Domination Losses Kronecker.
Import ListNotations.
Open Scope Z_scope.

Record whole_loss := WholeLoss { first : Z; masses : list Z; beyond : Z }.

(** n / 2^w, rounded up. *)
Definition shift_up (n w : Z) : Z := - (Z.shiftr (- n) w).

(** ** Operations *)

Section Operations.

Variable w : Z.

Definition product (k l : whole_loss) : whole_loss := {|
  first := first k + first l;
  masses := map (fun n => shift_up n w) (kronecker (masses k) (masses l));
  beyond := shift_up (beyond k * (sum (masses l) + beyond l) + beyond l * sum (masses k)) w |}.

(** Mass of at most [cut] is moved up from the bottom. *)
Fixpoint without_bottom (cut below z : Z) (l : list Z) : Z * list Z :=
  match l with
  | [] => (z, [])
  | m :: l' =>
      match l' with
      | [] => (z, [below + m])
      | _ =>
          if below + m <=? cut then without_bottom cut (below + m) (z + 1) l'
          else (z, below + m :: l')
      end
  end.

(** The list from its end: mass of at most [cut] is taken away and counted as lost. *)
Fixpoint without_top (cut above : Z) (reversed : list Z) : Z * list Z :=
  match reversed with
  | m :: rest => if above + m <=? cut then without_top cut (above + m) rest else (above, reversed)
  | [] => (above, [])
  end.

Definition trimmed (cut : Z) (l : whole_loss) : whole_loss :=
  let '(gone, kept) := without_top cut 0 (rev_append (masses l) []) in
  let '(z, kept') := without_bottom cut 0 (first l) (rev_append kept []) in
  {| first := z; masses := kept'; beyond := beyond l + gone |}.

(** The step h doubles: the mass of an odd multiple is shared between its neighbours. [down] and
    [up] are upper bounds on 2^bits / (1 + e^h) and 2^bits e^h / (1 + e^h). The list starts at an
    even multiple. *)
Fixpoint shared (bits down up carry : Z) (l : list Z) : list Z :=
  match l with
  | [] => [carry]
  | [m] => [carry + m]
  | m :: n :: rest =>
      carry + m + shift_up (n * down) bits :: shared bits down up (shift_up (n * up) bits) rest
  end.

Definition doubled (bits down up : Z) (l : whole_loss) : whole_loss :=
  let even := Z.even (first l) in
  {| first := (if even then first l else first l - 1) / 2;
     masses := shared bits down up 0 (if even then masses l else 0 :: masses l);
     beyond := beyond l |}.

End Operations.

(** ** What the lists stand for *)

Open Scope R_scope.

Fixpoint places (h unit : R) (z : Z) (l : list Z) : list (R * R) :=
  match l with
  | [] => []
  | m :: l' => (IZR z * h, IZR m / unit) :: places h unit (z + 1) l'
  end.

Definition stands_for (h unit : R) (l : whole_loss) : loss :=
  Loss (places h unit (first l) (masses l)) (IZR (beyond l) / unit).

Definition sound_list (l : whole_loss) : Prop :=
  (0 <= beyond l)%Z /\ Forall (fun m => 0 <= m)%Z (masses l).

Fixpoint row (t : Z -> R) (z : Z) (l : list Z) : R :=
  match l with [] => 0 | m :: l' => IZR m * t z + row t (z + 1) l' end.

Lemma total_places h unit z l g :
  0 < unit ->
  total (places h unit z l) (fun xm => snd xm * g (fst xm)) = row (fun y => g (IZR y * h)) z l / unit.
Proof.
  intros Hu; revert z; induction l as [|m l IH]; intros z; simpl; [field; lra|].
  rewrite IH; field; lra.
Qed.

Lemma row_ext t t' z l : (forall y, t y = t' y) -> row t z l = row t' z l.
Proof. intros E; revert z; induction l; intros z; simpl; [reflexivity|rewrite E, IHl; reflexivity]. Qed.

Lemma row_scal c t z l : row (fun y => c * t y) z l = c * row t z l.
Proof. revert z; induction l as [|m l IH]; intros z; simpl; [ring|rewrite IH; ring]. Qed.

Lemma row_shift d t z l : row (fun y => t (y + d)%Z) z l = row t (z + d)%Z l.
Proof.
  revert z; induction l as [|m l IH]; intros z; simpl; [reflexivity|].
  rewrite IH; do 2 f_equal; lia.
Qed.

Lemma row_le t t' z l :
  Forall (fun m => 0 <= m)%Z l -> (forall y, t y <= t' y) -> row t z l <= row t' z l.
Proof.
  intros F H; revert z; induction F as [|m l Hm F IH]; intros z; simpl; [lra|].
  apply IZR_le in Hm; specialize (IH (z + 1)%Z); specialize (H z); nra.
Qed.

Lemma row_nonneg t z l :
  Forall (fun m => 0 <= m)%Z l -> (forall y, 0 <= t y) -> 0 <= row t z l.
Proof.
  intros F H; revert z; induction F as [|m l Hm F IH]; intros z; simpl; [lra|].
  apply IZR_le in Hm; specialize (IH (z + 1)%Z); specialize (H z); nra.
Qed.

Lemma row_app t z k l : row t z (k ++ l) = row t z k + row t (z + Z.of_nat (length k)) l.
Proof.
  revert z; induction k as [|m k IH]; intros z; cbn [length app row].
  - change (Z.of_nat 0) with 0%Z; rewrite Z.add_0_r; ring.
  - rewrite IH; replace (z + Z.of_nat (S (length k)))%Z
      with (z + 1 + Z.of_nat (length k))%Z by lia; ring.
Qed.

Lemma row_sum z l : row (fun _ => 1) z l = IZR (sum l).
Proof. revert z; induction l as [|m l IH]; intros z; simpl; [reflexivity|]; rewrite IH, plus_IZR; ring. Qed.

(** The profile, in multiples of 1/unit. *)
Definition kept (h a b : R) (z : Z) : R := plus_part (a - b * exp (- (IZR z * h))).

Lemma kept_nonneg h a b z : 0 <= kept h a b z.
Proof. apply plus_part_nonneg. Qed.

Lemma kept_le_all h a b z : 0 <= a -> 0 <= b -> kept h a b z <= a.
Proof.
  intros Ha Hb; apply Rmax_lub; [exact Ha|].
  pose proof (exp_pos (- (IZR z * h))); nra.
Qed.

Lemma kept_mono h a b y z : 0 <= h -> 0 <= b -> (y <= z)%Z -> kept h a b y <= kept h a b z.
Proof.
  intros Hh Hb H; apply plus_part_le; apply IZR_le in H.
  assert (exp (- (IZR z * h)) <= exp (- (IZR y * h))) by (apply exp_le; nra); nra.
Qed.

Lemma profile_stands h unit l a b :
  0 < unit ->
  profile (stands_for h unit l) a b
    = (IZR (beyond l) * a + row (kept h a b) (first l) (masses l)) / unit.
Proof.
  intros Hu; unfold profile, stands_for; cbn [atoms lost]; unfold loss_term.
  rewrite (total_places h unit (first l) (masses l) (fun x => plus_part (a - b * exp (- x)))) by exact Hu.
  unfold kept; field; lra.
Qed.

Lemma finite_mass_stands h unit l :
  0 < unit -> finite_mass (stands_for h unit l) = IZR (sum (masses l)) / unit.
Proof.
  intros Hu; unfold finite_mass, stands_for; cbn [atoms].
  rewrite (total_ext _ snd (fun xm => snd xm * 1)) by (intros; ring).
  rewrite (total_places h unit (first l) (masses l) (fun _ => 1)) by exact Hu.
  rewrite row_sum; reflexivity.
Qed.

Lemma mass_stands h unit l :
  0 < unit -> mass (stands_for h unit l) = IZR (beyond l + sum (masses l)) / unit.
Proof.
  intros Hu; unfold mass; rewrite finite_mass_stands by exact Hu; unfold stands_for; cbn [lost].
  rewrite plus_IZR; field; lra.
Qed.

Lemma stands_proper h unit l : 0 < unit -> sound_list l -> proper (stands_for h unit l).
Proof.
  intros Hu [Hb Hm]; assert (0 < / unit) by (apply Rinv_0_lt_compat, Hu); split; simpl.
  - apply IZR_le in Hb; unfold Rdiv; nra.
  - generalize (first l); induction Hm as [|m rest Hm F IH]; intros z xm I; simpl in I; [tauto|].
    destruct I as [<-|I]; [|apply (IH (z + 1)%Z), I].
    apply IZR_le in Hm; simpl; unfold Rdiv; nra.
Qed.

(** ** Products *)

Lemma row_add t z k l : row t z (add_lists k l) = row t z k + row t z l.
Proof.
  revert z l; induction k as [|a k IH]; intros z [|b l]; simpl; try ring.
  rewrite IH, plus_IZR; ring.
Qed.

Lemma row_map_mul t z c l : row t z (map (Z.mul c) l) = IZR c * row t z l.
Proof. revert z; induction l as [|m l IH]; intros z; simpl; [ring|rewrite IH, mult_IZR; ring]. Qed.

Lemma row_zeros t z n : row t z (repeat 0%Z n) = 0.
Proof. revert z; induction n as [|n IH]; intros z; simpl; [reflexivity|rewrite IH; ring]. Qed.

Theorem row_multiply t y z k l :
  row t (y + z) (multiply k l) = row (fun x => row (fun x' => t (x + x')%Z) z l) y k.
Proof.
  revert y; induction k as [|a k IH]; intros y; simpl; [reflexivity|].
  replace (row (fun x' => t (y + x')%Z) z l) with (row t (y + z) l).
  2:{ rewrite (row_ext (fun x' => t (y + x')%Z) (fun x' => t (x' + y)%Z))
        by (intros; f_equal; lia).
      rewrite row_shift; f_equal; lia. }
  rewrite row_add, row_map_mul; simpl.
  replace (y + z + 1)%Z with (y + 1 + z)%Z by lia; rewrite IH; ring.
Qed.

Lemma row_kronecker t z k l :
  nonnegative k -> nonnegative l -> row t z (kronecker k l) = row t z (multiply k l).
Proof.
  intros Hk Hl; destruct (kronecker_exact k l Hk Hl) as [n ->].
  rewrite row_app, row_zeros; ring.
Qed.

Lemma kronecker_nonnegative k l : nonnegative k -> nonnegative l -> nonnegative (kronecker k l).
Proof.
  intros Hk Hl; destruct (kronecker_exact k l Hk Hl) as [n ->]; apply Forall_app; split.
  - apply multiply_nonnegative; assumption.
  - apply Forall_forall; intros m I; apply repeat_spec in I; lia.
Qed.

Section Rounded.

Variables (w : Z) (h : R).
Hypotheses (Hw : (0 <= w)%Z) (Hh : 0 < h).

Definition unit_of : R := IZR (2 ^ w).

Lemma unit_pos : 0 < unit_of.
Proof. apply IZR_lt, Z.pow_pos_nonneg; lia. Qed.

Notation real := (stands_for h unit_of).

Lemma shift_up_ge n v : (0 <= v)%Z -> IZR n / IZR (2 ^ v) <= IZR (shift_up n v).
Proof.
  intros Hv; unfold shift_up; rewrite Z.shiftr_div_pow2 by exact Hv.
  assert (P : (0 < 2 ^ v)%Z) by (apply Z.pow_pos_nonneg; lia).
  pose proof (Z.mul_div_le (- n) (2 ^ v) P) as D.
  assert (L : (n <= 2 ^ v * - (- n / 2 ^ v))%Z) by lia.
  apply IZR_le in L; rewrite mult_IZR in L; apply IZR_lt in P.
  apply Rmult_le_reg_r with (IZR (2 ^ v)); [exact P|].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

Lemma shift_up_nonneg n v : (0 <= v)%Z -> (0 <= n)%Z -> (0 <= shift_up n v)%Z.
Proof.
  intros Hv Hn; apply le_IZR; eapply Rle_trans; [|apply shift_up_ge, Hv].
  apply IZR_le in Hn; apply Rmult_le_pos; [exact Hn|].
  left; apply Rinv_0_lt_compat, IZR_lt, Z.pow_pos_nonneg; lia.
Qed.

Lemma row_shift_up t z l :
  (forall y, 0 <= t y) -> row t z l / unit_of <= row t z (map (fun n => shift_up n w) l).
Proof.
  intros Ht; revert z; induction l as [|m l IH]; intros z; simpl.
  - unfold Rdiv; rewrite Rmult_0_l; lra.
  - pose proof (shift_up_ge m w Hw) as U; fold unit_of in U; specialize (IH (z + 1)%Z).
    pose proof (Ht z); pose proof unit_pos.
    replace ((IZR m * t z + row t (z + 1) l) / unit_of)
      with (IZR m / unit_of * t z + row t (z + 1) l / unit_of) by (field; lra).
    nra.
Qed.

Theorem product_sound k l :
  sound_list k -> sound_list l ->
  sound_list (product w k l) /\ at_most (both (real k) (real l)) (real (product w k l)).
Proof.
  intros [Bk Mk] [Bl Ml]; pose proof unit_pos as Pu.
  assert (Sum : forall m, Forall (fun n => 0 <= n)%Z m -> (0 <= sum m)%Z)
    by (induction 1; simpl; lia).
  pose proof (Sum _ Mk) as Sk; pose proof (Sum _ Ml) as Sl.
  set (gone := (beyond k * (sum (masses l) + beyond l) + beyond l * sum (masses k))%Z).
  assert (Hg : (0 <= gone)%Z) by (unfold gone; nia).
  split.
  - split; [apply shift_up_nonneg; assumption|]; simpl.
    pose proof (kronecker_nonnegative _ _ Mk Ml) as F; induction F; simpl; constructor; auto.
    apply shift_up_nonneg; assumption.
  - intros a b Ha Hb.
    assert (E : profile (both (real k) (real l)) a b
                = (IZR gone / unit_of * a
                   + row (kept h a b) (first k + first l) (multiply (masses k) (masses l)) / unit_of)
                  / unit_of).
    { unfold profile at 1; unfold both; cbn [atoms lost].
      rewrite mass_stands, finite_mass_stands by exact Pu; rewrite total_flat_map.
      set (g := fun x => total (atoms (real l)) (fun y =>
                  snd y * plus_part (a - b * exp (- (x + fst y))))).
      rewrite (total_ext _ _ (fun x => snd x * g (fst x))).
      2:{ intros x _; unfold g; rewrite total_map, <- total_scal; apply total_ext; intros y _.
          unfold loss_term; cbn [fst snd]; ring. }
      change (atoms (real k)) with (places h unit_of (first k) (masses k)).
      rewrite (total_places h unit_of (first k) (masses k) g) by exact Pu; rewrite row_multiply.
      rewrite (row_ext (fun y => g (IZR y * h))
        (fun x => / unit_of * row (fun y => kept h a b (x + y)) (first l) (masses l))).
      - rewrite row_scal; unfold stands_for; cbn [lost]; unfold gone.
        repeat rewrite ?plus_IZR, ?mult_IZR; field; lra.
      - intros x; unfold g, stands_for; cbn [atoms].
        rewrite (total_places h unit_of (first l) (masses l)
          (fun y => plus_part (a - b * exp (- (IZR x * h + y))))) by exact Pu.
        unfold Rdiv; rewrite Rmult_comm; f_equal; apply row_ext; intros y; unfold kept.
        rewrite plus_IZR; do 5 f_equal; ring. }
    rewrite E, profile_stands by exact Pu.
    unfold Rdiv at 1 4; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Pu|].
    unfold product; cbn [first masses beyond]; fold gone; apply Rplus_le_compat.
    + apply Rmult_le_compat_r; [exact Ha|apply shift_up_ge, Hw].
    + rewrite <- (row_kronecker _ _ _ _ Mk Ml).
      apply row_shift_up; intros; apply kept_nonneg.
Qed.

(** ** Trimming *)

Lemma without_bottom_sound cut t below z l :
  Forall (fun m => 0 <= m)%Z l -> (0 <= below)%Z ->
  (forall y y', (y <= y')%Z -> 0 <= t y <= t y') -> l <> [] ->
  let r := without_bottom cut below z l in
  IZR below * t z + row t z l <= row t (fst r) (snd r) /\ Forall (fun m => 0 <= m)%Z (snd r).
Proof.
  intros F; cbv zeta; revert below z; induction F as [|m l Hm F IH]; intros below z Hb Ht N;
    [congruence|].
  assert (Base : IZR below * t z + row t z (m :: l) = row t z (below + m :: l)%Z)
    by (simpl; rewrite plus_IZR; ring).
  destruct l as [|n l]; cbn [without_bottom fst snd].
  - rewrite Base; split; [lra|constructor; [lia|constructor]].
  - destruct (below + m <=? cut)%Z.
    + destruct (IH (below + m)%Z (z + 1)%Z ltac:(lia) Ht ltac:(discriminate)) as [IH1 IHF].
      split; [|exact IHF]; eapply Rle_trans; [|exact IH1].
      rewrite Base; cbn [row]; apply Rplus_le_compat_r.
      apply Rmult_le_compat_l; [apply IZR_le; lia|apply Ht; lia].
    + cbn [fst snd]; rewrite Base; split; [lra|constructor; [lia|exact F]].
Qed.

Lemma without_top_sound cut above l :
  Forall (fun m => 0 <= m)%Z l -> (0 <= above)%Z ->
  let '(gone, l') := without_top cut above l in
  (above <= gone)%Z /\ Forall (fun m => 0 <= m)%Z l' /\
  exists l'', l = l'' ++ l' /\ gone = (above + sum l'')%Z /\ Forall (fun m => 0 <= m)%Z l''.
Proof.
  intros F; revert above; induction F as [|m l Hm F IH]; intros above Ha; simpl.
  - split; [lia|split; [constructor|exists []; simpl; split; [reflexivity|split; [lia|constructor]]]].
  - destruct (above + m <=? cut)%Z.
    + specialize (IH (above + m)%Z ltac:(lia)).
      destruct (without_top cut (above + m) l) as [gone l'].
      destruct IH as (I1 & I2 & l'' & -> & -> & I3); split; [lia|split; [exact I2|]].
      exists (m :: l''); simpl; split; [reflexivity|split; [lia|constructor; assumption]].
    + split; [lia|split; [constructor; assumption|]]; exists []; simpl.
      split; [reflexivity|split; [lia|constructor]].
Qed.

Lemma sum_rev l : sum (rev l) = sum l.
Proof.
  assert (A : forall u v, sum (u ++ v) = (sum u + sum v)%Z)
    by (induction u; intros; simpl; [reflexivity|rewrite IHu; lia]).
  induction l as [|m l IH]; simpl; [reflexivity|rewrite A, IH; simpl; lia].
Qed.

Lemma row_le_sum t z l a :
  Forall (fun m => 0 <= m)%Z l -> (forall y, t y <= a) -> row t z l <= IZR (sum l) * a.
Proof.
  intros F H; revert z; induction F as [|m l Hm F IH]; intros z; simpl; [lra|].
  apply IZR_le in Hm; rewrite plus_IZR; specialize (IH (z + 1)%Z); specialize (H z); nra.
Qed.

Theorem trimmed_sound cut l :
  sound_list l -> sound_list (trimmed cut l) /\ at_most (real l) (real (trimmed cut l)).
Proof.
  intros [B M]; unfold trimmed; rewrite rev_append_rev, app_nil_r.
  pose proof (without_top_sound cut 0 (rev (masses l)) (Forall_rev M) ltac:(lia)) as T.
  destruct (without_top cut 0 (rev (masses l))) as [gone top].
  rewrite rev_append_rev, app_nil_r.
  destruct T as (G & Ft & cut_off & E & -> & Fc); rewrite Z.add_0_l in *.
  assert (El : masses l = rev top ++ rev cut_off).
  { rewrite <- rev_app_distr, <- E, rev_involutive; reflexivity. }
  assert (Top : forall a b, 0 <= a -> 0 <= b ->
            row (kept h a b) (first l) (masses l)
              <= row (kept h a b) (first l) (rev top) + IZR (sum cut_off) * a).
  { intros a b Ha Hb; rewrite El, row_app; apply Rplus_le_compat_l; rewrite <- (sum_rev cut_off).
    apply row_le_sum; [apply Forall_rev, Fc|intros; apply kept_le_all; assumption]. }
  destruct (rev top) as [|m rest] eqn:Er.
  - cbn [without_bottom]; split; [split; [simpl; lia|constructor]|].
    intros a b Ha Hb; rewrite !profile_stands by apply unit_pos; cbn [first masses beyond].
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, unit_pos|].
    specialize (Top a b Ha Hb); rewrite plus_IZR; simpl row in *; lra.
  - assert (F : Forall (fun m => 0 <= m)%Z (m :: rest)) by (rewrite <- Er; apply Forall_rev, Ft).
    destruct (without_bottom cut 0 (first l) (m :: rest)) as [z' l'] eqn:W.
    assert (Bottom : forall a b, 0 <= a -> 0 <= b ->
              row (kept h a b) (first l) (m :: rest) <= row (kept h a b) z' l'
              /\ Forall (fun m => 0 <= m)%Z l').
    { intros a b Ha Hb.
      pose proof (without_bottom_sound cut (kept h a b) 0 (first l) (m :: rest) F ltac:(lia)) as S.
      rewrite W in S; rewrite Rmult_0_l, Rplus_0_l in S; apply S; [|discriminate].
      intros y y' Hy; split; [apply kept_nonneg|apply kept_mono; lra || assumption]. }
    split.
    + split; [simpl; lia|apply (Bottom 0 0); lra].
    + intros a b Ha Hb; rewrite !profile_stands by apply unit_pos; cbn [first masses beyond].
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, unit_pos|].
      specialize (Top a b Ha Hb); destruct (Bottom a b Ha Hb); rewrite plus_IZR; lra.
Qed.

(** ** Doubling the step *)

Section Doubling.

Variables (bits down up : Z).
Hypothesis Hbits : (0 <= bits)%Z.
Hypothesis Hdown : / (1 + exp h) <= IZR down / IZR (2 ^ bits).
Hypothesis Hup : exp h / (1 + exp h) <= IZR up / IZR (2 ^ bits).

(** An odd multiple is the mean of its neighbours, as far as exp(-loss) goes. *)
Lemma kept_shared a b z :
  kept h a b (z + 1) <= / (1 + exp h) * kept h a b z + exp h / (1 + exp h) * kept h a b (z + 2).
Proof.
  unfold kept; rewrite !plus_IZR.
  set (c := exp (- ((IZR z + 1) * h))).
  replace (exp (- (IZR z * h))) with (exp h * c)
    by (unfold c; rewrite <- exp_plus; f_equal; ring).
  replace (exp (- ((IZR z + 2) * h))) with (/ exp h * c)
    by (unfold c; rewrite <- exp_Ropp, <- exp_plus; f_equal; ring).
  pose proof (exp_pos h) as He; set (e := exp h) in *.
  assert (Hv : 0 < / (1 + e)) by (apply Rinv_0_lt_compat; lra); set (v := / (1 + e)) in *.
  assert (One : v * (1 + e) = 1) by (unfold v; field; lra).
  unfold Rdiv; fold v.
  apply Rmax_lub.
  - apply Rplus_le_le_0_compat; apply Rmult_le_pos; try apply plus_part_nonneg; nra.
  - pose proof (plus_part_ge (a - b * (e * c))) as L1.
    pose proof (plus_part_ge (a - b * (/ e * c))) as L2.
    apply (Rmult_le_compat_l v) in L1; [|lra].
    apply (Rmult_le_compat_l (e * v)) in L2; [|nra].
    replace (a - b * c) with (v * (a - b * (e * c)) + e * v * (a - b * (/ e * c))); [lra|].
    replace (e * v * (a - b * (/ e * c))) with (v * (e * a - b * (e * / e * c))) by ring.
    rewrite Rinv_r by lra.
    replace (v * (a - b * (e * c)) + v * (e * a - b * (1 * c))) with (v * (1 + e) * (a - b * c))
      by ring.
    rewrite One; ring.
Qed.

Lemma kept_half a b z : kept h a b (2 * z) = kept (2 * h) a b z.
Proof. unfold kept; rewrite mult_IZR; do 5 f_equal; ring. Qed.

Lemma shared_sound a b z carry l :
  Forall (fun m => 0 <= m)%Z l -> (0 <= carry)%Z ->
  IZR carry * kept h a b (2 * z) + row (kept h a b) (2 * z) l
    <= row (kept (2 * h) a b) z (shared bits down up carry l)
  /\ Forall (fun m => 0 <= m)%Z (shared bits down up carry l).
Proof.
  assert (Pw : 0 < IZR (2 ^ bits)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  assert (Inv : forall n, 0 < n -> 0 < / n) by (intros; apply Rinv_0_lt_compat; assumption).
  pose proof (exp_pos h) as He.
  assert (P1 : 0 < / (1 + exp h)) by (apply Inv; lra).
  assert (Dn : (0 <= down)%Z).
  { apply le_IZR; apply Rmult_le_reg_r with (/ IZR (2 ^ bits)); [apply Inv, Pw|].
    fold (IZR down / IZR (2 ^ bits)); lra. }
  assert (Un : (0 <= up)%Z).
  { apply le_IZR; apply Rmult_le_reg_r with (/ IZR (2 ^ bits)); [apply Inv, Pw|].
    fold (IZR up / IZR (2 ^ bits)); assert (0 <= exp h / (1 + exp h)) by (unfold Rdiv; nra); lra. }
  revert z carry.
  enough (Both : forall n l, (length l <= n)%nat -> forall z carry,
            Forall (fun m => 0 <= m)%Z l -> (0 <= carry)%Z ->
            IZR carry * kept h a b (2 * z) + row (kept h a b) (2 * z) l
              <= row (kept (2 * h) a b) z (shared bits down up carry l)
            /\ Forall (fun m => 0 <= m)%Z (shared bits down up carry l))
    by (intros z carry; apply (Both (length l) l (le_n _))).
  clear l; induction n as [|n IH]; intros [|m [|m' l]] Hn z carry F Hc; simpl in Hn; try lia.
  1,2: cbn [row shared]; rewrite <- kept_half; split; [lra|repeat constructor; lia].
  - apply Forall_inv in F as Hm; cbn [row shared]; rewrite <- kept_half, plus_IZR.
    split; [lra|repeat constructor; lia].
  - inversion F as [|? ? Hm F']; subst; inversion F' as [|? ? Hm' F'']; subst.
    assert (S1 : (0 <= shift_up (m' * down) bits)%Z) by (apply shift_up_nonneg; nia).
    assert (S2 : (0 <= shift_up (m' * up) bits)%Z) by (apply shift_up_nonneg; nia).
    destruct (IH l ltac:(simpl in Hn; lia) (z + 1)%Z (shift_up (m' * up) bits) F'' S2) as [I1 I2].
    cbn [row shared]; split; [|constructor; [lia|exact I2]].
    eapply Rle_trans; [|apply Rplus_le_compat_l, I1].
    rewrite <- kept_half, !plus_IZR.
    replace (2 * (z + 1))%Z with (2 * z + 2)%Z by lia.
    replace (2 * z + 1 + 1)%Z with (2 * z + 2)%Z by lia.
    pose proof (kept_shared a b (2 * z)) as K.
    pose proof (shift_up_ge (m' * down) bits Hbits) as U1.
    pose proof (shift_up_ge (m' * up) bits Hbits) as U2.
    rewrite mult_IZR in U1, U2.
    pose proof (kept_nonneg h a b (2 * z)) as N1; pose proof (kept_nonneg h a b (2 * z + 2)) as N2.
    apply IZR_le in Hm'.
    assert (J1 : IZR m' * / (1 + exp h) <= IZR (shift_up (m' * down) bits)).
    { eapply Rle_trans; [apply Rmult_le_compat_l; [exact Hm'|exact Hdown]|].
      unfold Rdiv in *; rewrite <- Rmult_assoc; exact U1. }
    assert (J2 : IZR m' * (exp h / (1 + exp h)) <= IZR (shift_up (m' * up) bits)).
    { eapply Rle_trans; [apply Rmult_le_compat_l; [exact Hm'|exact Hup]|].
      unfold Rdiv in *; rewrite <- Rmult_assoc; exact U2. }
    apply (Rmult_le_compat_l (IZR m')) in K; [|exact Hm'].
    apply (Rmult_le_compat_r (kept h a b (2 * z))) in J1; [|exact N1].
    apply (Rmult_le_compat_r (kept h a b (2 * z + 2))) in J2; [|exact N2].
    lra.
Qed.

Theorem doubled_sound l :
  sound_list l ->
  sound_list (doubled bits down up l)
  /\ at_most (real l) (stands_for (2 * h) unit_of (doubled bits down up l)).
Proof.
  intros [B M].
  set (start := if Z.even (first l) then first l else (first l - 1)%Z).
  set (list := if Z.even (first l) then masses l else 0%Z :: masses l).
  assert (Es : start = (2 * (start / 2))%Z).
  { unfold start; destruct (Z.even (first l)) eqn:E.
    - apply Z.even_spec in E as [k ->]; rewrite Z.mul_comm, Z.div_mul; lia.
    - rewrite <- Z.negb_odd in E; apply negb_false_iff, Z.odd_spec in E as [k ->].
      replace (2 * k + 1 - 1)%Z with (k * 2)%Z by lia; rewrite Z.div_mul; lia. }
  assert (F : Forall (fun m => 0 <= m)%Z list)
    by (unfold list; destruct (Z.even (first l)); [exact M|constructor; [lia|exact M]]).
  assert (Ed : doubled bits down up l
               = WholeLoss (start / 2) (shared bits down up 0 list) (beyond l))
    by (unfold doubled, start, list; destruct (Z.even (first l)); reflexivity).
  rewrite Ed; split.
  - split; [exact B|]; apply (shared_sound 0 0 0 0 list F); lia.
  - intros a b Ha Hb; rewrite !profile_stands by apply unit_pos; cbn [first masses beyond].
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, unit_pos|]; apply Rplus_le_compat_l.
    destruct (shared_sound a b (start / 2) 0 list F ltac:(lia)) as [S _].
    rewrite <- Es, Rmult_0_l, Rplus_0_l in S; eapply Rle_trans; [|exact S]; right.
    unfold start, list; destruct (Z.even (first l)); [reflexivity|]; cbn [row].
    rewrite Rmult_0_l, Rplus_0_l; f_equal; lia.
Qed.

End Doubling.

End Rounded.
