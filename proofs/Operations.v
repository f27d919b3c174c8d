(** What a row is computed by bounds its rounding error: [computed_width t = Some w] where every
    bound that [t] states follows, and then they hold of every program whose operations are [t]
    ([computes], Certificate.v). *)

From Coq Require Import Reals List Lra Lia Psatz FunctionalExtensionality QArith Qreals PArith ZArith.
From Dpledger Require Import Sums Sensitivity Rounding Enclosure Certificate Checker.
Import ListNotations.
Open Scope R_scope.

(** ** Numbers *)

Lemma Q2R_number z : Q2R (Qmake z 1) = IZR z.
Proof. unfold Q2R; simpl; field. Qed.

Lemma Q2R_integer_positive n : Q2R (integer n) = IZR (Zpos n).
Proof. apply Q2R_number. Qed.

Lemma Pos_real n : 0 < IZR (Zpos n).
Proof. apply IZR_lt; reflexivity. Qed.

Lemma maximum_ge a b : Q2R a <= Q2R (maximum a b) /\ Q2R b <= Q2R (maximum a b).
Proof.
  unfold maximum; destruct (Qle_bool a b) eqn:E;
    [apply Qle_bool_R in E|apply Qle_bool_R_false in E]; lra.
Qed.

Lemma Q2R_minimum a b : Q2R (minimum a b) = Rmin (Q2R a) (Q2R b).
Proof.
  unfold minimum; destruct (Qle_bool a b) eqn:E;
    [apply Qle_bool_R in E; rewrite Rmin_left
    |apply Qle_bool_R_false in E; rewrite Rmin_right]; lra.
Qed.

Lemma nonnegative_R a : Qle_bool 0 a = true -> 0 <= Q2R a.
Proof.
  intros H; apply Qle_bool_R in H.
  replace (Q2R 0) with 0 in H by (unfold Q2R; simpl; field); exact H.
Qed.

Lemma guard_some {A} condition (a b : A) :
  guard condition a = Some b -> condition = true /\ a = b.
Proof. unfold guard; destruct condition; [intros H; injection H; auto|discriminate]. Qed.

Lemma INR_positive n : INR (Pos.to_nat n) = IZR (Zpos n).
Proof. rewrite INR_IZR_INZ, positive_nat_Z; reflexivity. Qed.

Lemma unit_roundoff_real : Q2R unit_roundoff = roundoff.
Proof. unfold Q2R, unit_roundoff, roundoff; cbn [Qnum Qden]; apply Rmult_1_l. Qed.

Lemma exceeds_sound a lost b :
  exceeds a lost b = true -> Q2R a + IZR (Zpos lost) * underflow <= Q2R b.
Proof.
  unfold exceeds, underflow; cbv zeta; set (gap := (b - a)%Q); intros H; apply Z.leb_le in H.
  rewrite Z.shiftl_mul_pow2 in H by lia.
  assert (G : Q2R gap = Q2R b - Q2R a) by apply Q2R_minus.
  apply IZR_le in H; rewrite !mult_IZR in H.
  replace 1074%Z with (Z.of_nat 1074) in H by reflexivity; rewrite <- pow_IZR in H.
  assert (P : 0 < 2 ^ 1074) by (apply pow_lt; lra).
  set (two := 2 ^ 1074) in *; clearbody two.
  assert (D : 0 < IZR (Zpos (Qden gap))) by (apply IZR_lt; reflexivity).
  enough (IZR (Zpos lost) * / two <= Q2R gap) by lra.
  unfold Q2R; apply (Rmult_le_reg_r (two * IZR (Zpos (Qden gap)))); [nra|].
  replace (IZR (Zpos lost) * / two * (two * IZR (Zpos (Qden gap))))
    with (IZR (Zpos lost) * IZR (Zpos (Qden gap))) by (field; lra).
  replace (IZR (Qnum gap) * / IZR (Zpos (Qden gap)) * (two * IZR (Zpos (Qden gap))))
    with (IZR (Qnum gap) * two) by (field; lra).
  exact H.
Qed.

Lemma few_real n :
  few n = true -> Q2R (gamma n) = gamma_n (Pos.to_nat n) /\ 0 <= gamma_n (Pos.to_nat n).
Proof.
  unfold few; intros H; apply Pos.ltb_lt in H.
  assert (L : 0 < IZR (Zpos (2 ^ 53 - n))) by (apply IZR_lt; reflexivity).
  assert (E : IZR (Zpos (2 ^ 53 - n)) = IZR (2 ^ 53) - IZR (Zpos n)).
  { rewrite Pos2Z.inj_sub by exact H; apply minus_IZR. }
  assert (T : 0 < IZR (2 ^ 53)) by (apply IZR_lt; reflexivity).
  assert (N : 0 < IZR (Zpos n)) by (apply IZR_lt; reflexivity).
  unfold gamma_n, roundoff; rewrite INR_positive.
  set (big := IZR (2 ^ 53)) in *; clearbody big.
  assert (Q : Q2R (gamma n) = IZR (Zpos n) * / big / (1 - IZR (Zpos n) * / big)).
  { unfold Q2R, gamma; cbn [Qnum Qden]; rewrite E; field; lra. }
  split; [exact Q|]; rewrite <- Q; unfold Q2R, gamma; cbn [Qnum Qden].
  apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, L].
Qed.

Lemma bounded_sound size error slip lost m e :
  bounded size error slip lost m e = true ->
  Q2R size + Q2R slip + IZR (Zpos lost) * underflow <= Q2R m /\
  Q2R error + Q2R slip + IZR (Zpos lost) * underflow <= Q2R e.
Proof.
  unfold bounded; rewrite andb_true_iff; intros [M E].
  apply exceeds_sound in M, E; rewrite Q2R_plus in M, E; split; assumption.
Qed.

(** ** Rows *)

Lemma row_between d (a b c : nat -> R) :
  row_norm d (@sub (euclidean d) a c)
  <= row_norm d (@sub (euclidean d) a b) + row_norm d (@sub (euclidean d) b c).
Proof.
  replace (@sub (euclidean d) a c)
    with (@add (euclidean d) (@sub (euclidean d) a b) (@sub (euclidean d) b c)).
  - apply norm_add.
  - apply functional_extensionality; intros i; simpl; ring.
Qed.

Lemma row_size d (a b : nat -> R) :
  row_norm d a <= row_norm d b + row_norm d (@sub (euclidean d) a b).
Proof.
  replace a with (@add (euclidean d) b (@sub (euclidean d) a b)) at 1.
  - apply norm_add.
  - apply functional_extensionality; intros i; simpl; ring.
Qed.

(** One more operation: [meant] of a row that is [s] long and [r] off is at most [slip] off what is
    held then. *)
Lemma held_after d (meant from_held held : nat -> R) size error slip m e :
  row_norm d from_held <= size -> row_norm d (@sub (euclidean d) from_held meant) <= error ->
  row_norm d (@sub (euclidean d) held from_held) <= slip ->
  size + slip <= m -> error + slip <= e ->
  row_norm d held <= m /\ row_norm d (@sub (euclidean d) held meant) <= e.
Proof.
  intros S E L M B; pose proof (row_size d held from_held).
  pose proof (row_between d held from_held meant); lra.
Qed.

Lemma total_seq_shift s d n (f : nat -> R) :
  total (seq (s + d) n) f = total (seq s n) (fun i => f (d + i)%nat).
Proof.
  revert s; induction n as [|n IH]; intros s; simpl; [reflexivity|].
  rewrite <- (IH (S s)); f_equal; f_equal; lia.
Qed.

Lemma row_pair d d' (x y : nat -> R) :
  row_norm (d + d') (fun i => if (i <? d)%nat then x i else y (i - d)%nat)
  <= row_norm d x + row_norm d' y.
Proof.
  pose proof (norm_pos (x : euclidean d)) as P; pose proof (norm_pos (y : euclidean d')) as P'.
  apply norm_le; [lra|].
  pose proof (norm_sq (x : euclidean d)) as S; pose proof (norm_sq (y : euclidean d')) as S'.
  simpl in S, S' |- *; rewrite seq_app, total_app, (Nat.add_0_l d).
  assert (A : total (seq 0 d) (fun i => (if (i <? d)%nat then x i else y (i - d)%nat)
                * (if (i <? d)%nat then x i else y (i - d)%nat))
              = total (seq 0 d) (fun i => x i * x i)).
  { apply total_ext; intros i I; apply in_seq in I; destruct (Nat.ltb_spec i d); [reflexivity|lia]. }
  assert (B : total (seq d d') (fun i => (if (i <? d)%nat then x i else y (i - d)%nat)
                * (if (i <? d)%nat then x i else y (i - d)%nat))
              = total (seq 0 d') (fun i => y i * y i)).
  { rewrite <- (Nat.add_0_l d) at 1; rewrite total_seq_shift; apply total_ext; intros i _.
    destruct (Nat.ltb_spec (d + i) d); [lia|]; replace (d + i - d)%nat with i by lia; reflexivity. }
  rewrite A, B, <- S, <- S'; nra.
Qed.

Lemma row_same d (x : nat -> R) : row_norm d (@sub (euclidean d) x x) = 0.
Proof.
  replace (@sub (euclidean d) x x) with (@zero (euclidean d)); [apply norm_zero|].
  apply functional_extensionality; intros i; simpl; ring.
Qed.

Lemma clip_no_longer d C (x : nat -> R) :
  0 <= C -> row_norm d (@clip (euclidean d) C x) <= Rmin (row_norm d x) C.
Proof.
  intros P; apply Rmin_glb; [|apply (@clip_norm (euclidean d)), P].
  pose proof (@clip_norm (euclidean d) C x P) as N; unfold clip in *.
  destruct (Rle_dec _ _); [apply Rle_refl|lra].
Qed.

(** A shift by 1074 places, which conversion would write out. *)
#[local] Opaque exceeds.

Lemma sum_bounded_size size depth lost m e :
  sum_bounded size depth lost m e = true -> 0 <= Q2R size.
Proof.
  unfold sum_bounded; rewrite !andb_true_iff; intros [[_ P] _]; apply nonnegative_R, P.
Qed.

(** Stated beside the theorem, by rewriting: there the kernel compares both sides of this step by
    writing out a shift by 1074 places. *)
Lemma leaf_equation rule m e : computed_width (RoundLeaf rule m e) = leaf_width rule m e.
Proof. reflexivity. Qed.

Lemma mean_equation bound count w m e :
  leaf_width (FloatMean bound count w) m e
  = guard (sum_bounded bound (sum_depth count) (2 * w) m e) w.
Proof. reflexivity. Qed.

Lemma mean_width bound count w m e w' :
  computed_width (RoundLeaf (FloatMean bound count w) m e) = Some w' ->
  sum_bounded bound (sum_depth count) (2 * w) m e = true /\ w = w'.
Proof. rewrite leaf_equation, mean_equation; apply guard_some. Qed.

Lemma count_equation most w m e :
  leaf_width (FloatCount most w) m e
  = guard (Pos.leb most (2 ^ 53) && Qle_bool (integer most) m && Qle_bool 0 e) w.
Proof. reflexivity. Qed.

Lemma count_width most w m e w' :
  computed_width (RoundLeaf (FloatCount most w) m e) = Some w' ->
  (Qle_bool (integer most) m = true /\ Qle_bool 0 e = true) /\ w = w'.
Proof.
  rewrite leaf_equation, count_equation; intros W; apply guard_some in W as [G ->].
  rewrite !andb_true_iff in G; tauto.
Qed.

Lemma grid_equation most step w m e :
  leaf_width (FloatGrid most step w) m e
  = guard (Qle_bool most (step * integer (2 ^ 53)) && Qle_bool most m && Qle_bool 0 e) w.
Proof. reflexivity. Qed.

Lemma grid_width most step w m e w' :
  computed_width (RoundLeaf (FloatGrid most step w) m e) = Some w' ->
  (Qle_bool most m = true /\ Qle_bool 0 e = true) /\ w = w'.
Proof.
  rewrite leaf_equation, grid_equation; intros W; apply guard_some in W as [G ->].
  rewrite !andb_true_iff in G; tauto.
Qed.

Section Soundness.

Context {D : Type}.

(** The bounds that a list of operations states hold of what it computes, whatever the data. *)
Definition within (t : operations) (d : nat) (f held : D -> nat -> R) : Prop :=
  forall l, row_norm d (held l) <= Q2R (magnitude_of t) /\
            row_norm d (@sub (euclidean d) (held l) (f l)) <= Q2R (error_of t).

Lemma sum_bounded_within size depth lost m e d (f held : nat -> R) (terms : nat -> list R)
  (each : nat) :
  sum_bounded size depth lost m e = true ->
  (forall i, (i < d)%nat -> sum_within (Pos.to_nat depth) each (terms i) (held i)) ->
  INR d * INR each = IZR (Zpos lost) ->
  row_norm d (fun i => sizes (terms i)) <= Q2R size ->
  f = (fun i => exactly (terms i)) ->
  row_norm d held <= Q2R m /\ row_norm d (@sub (euclidean d) held f) <= Q2R e.
Proof.
  unfold sum_bounded; rewrite !andb_true_iff; intros [[Few _] B] W L S ->.
  apply few_real in Few as [G P]; apply bounded_sound in B as [M E].
  rewrite Q2R_mult, G in M, E; replace (Q2R 0) with 0 in E by (unfold Q2R; simpl; ring).
  assert (X : row_norm d (fun i => exactly (terms i)) <= Q2R size).
  { eapply Rle_trans; [apply row_norm_monotone with (w := fun i => sizes (terms i))|exact S].
    intros i _; apply exactly_sizes. }
  pose proof (row_of_sums d terms held _ each _ P W S) as O.
  rewrite <- Rmult_assoc, L in O.
  apply held_after with (from_held := fun i => exactly (terms i)) (size := Q2R size) (error := 0)
    (slip := gamma_n (Pos.to_nat depth) * Q2R size + IZR (Zpos lost) * underflow);
    [exact X| |exact O|lra|lra].
  apply Req_le, row_same.
Qed.

Lemma terms_of_records d (vs : list (nat -> R)) bound c (scale_of : R -> R) :
  (forall v, In v vs -> row_norm d v <= bound) -> 0 <= c ->
  (forall x, Rabs (scale_of x) = c * Rabs x) ->
  row_norm d (fun j => sizes (map scale_of (map (fun v => v j) vs)))
  <= c * (INR (length vs) * bound).
Proof.
  intros B C E.
  replace (fun j => sizes (map scale_of (map (fun v : nat -> R => v j) vs)))
    with (@scale (euclidean d) c (fun j => total vs (fun v => Rabs (v j)))).
  - rewrite norm_scale, Rabs_right by lra.
    apply Rmult_le_compat_l; [exact C|apply row_of_vectors, B].
  - apply functional_extensionality; intros j; simpl; unfold sizes.
    rewrite !total_map, <- total_scal; apply total_ext; intros v _; symmetry; apply E.
Qed.

Theorem computes_sound t d (f held : D -> nat -> R) :
  computes t d f held -> forall w, computed_width t = Some w ->
  d = Pos.to_nat w /\ within t d f held.
Proof.
  pose proof roundoff_pos as U; pose proof underflow_pos as T.
  induction 1 as
    [ w m e f B
    | most w m e f B
    | most step w m e f B
    | bound count w m e terms n held N B S
    | bound count w m e terms held N B S
    | bound terms w m e products held B S
    | size m e t d f held c held' H IH C R
    | factor m e t d f held c held' H IH C R
    | size w m e t d f held by_public held' H IH Lin Bd R
    | norm_bound height m e t w f held a held' H IH Bd Abs S
    | radius m e t w f held held' H IH R
    | m e t t' d f held g held' held'' H IH H' IH' R
    | m e t t' d f held g held' held'' H IH H' IH' R
    | m e t t' d d' f held g held' H IH H' IH'
    | m e t t' d f held g held' H IH H' IH'
    | m e t t' d f held g held' H IH H' IH' ]; intros w0 W;
    [cbn [computed_width leaf_width] in W|apply count_width in W|apply grid_width in W|apply mean_width in W
    |cbn [computed_width leaf_width] in W..].
  - apply guard_some in W as [G <-]; rewrite andb_true_iff in G; destruct G as [_ E].
    split; [reflexivity|]; intros l; cbn; split; [apply B|].
    eapply Rle_trans; [apply Req_le, row_same|apply nonnegative_R, E].
  - destruct W as [[M E] <-]; split; [reflexivity|]; intros l; cbn; split.
    + apply Qle_bool_R in M; rewrite Q2R_integer_positive in M; specialize (B l); lra.
    + eapply Rle_trans; [apply Req_le, row_same|apply nonnegative_R, E].
  - destruct W as [[M E] <-]; split; [reflexivity|]; intros l; cbn; split.
    + apply Qle_bool_R in M; specialize (B l); lra.
    + eapply Rle_trans; [apply Req_le, row_same|apply nonnegative_R, E].
  - destruct W as [G <-]; split; [reflexivity|]; intros l; cbn.
    destruct (N l) as [N1 N2].
    assert (I : 0 < / n l) by (apply Rinv_0_lt_compat; lra).
    pose proof (sum_bounded_size _ _ _ _ _ G) as P.
    assert (Lost : INR (Pos.to_nat w) * INR 2 = IZR (Zpos (2 * w))).
    { replace (INR 2) with 2 by (simpl; ring).
      rewrite INR_positive, (Pos2Z.inj_mul 2 w), mult_IZR; apply Rmult_comm. }
    assert (Each : forall x, Rabs (x / n l) = / n l * Rabs x).
    { intros x; unfold Rdiv; rewrite Rabs_mult, (Rabs_right (/ n l)) by lra; apply Rmult_comm. }
    pose proof (terms_of_records (Pos.to_nat w) (terms l) (Q2R bound) (/ n l) (fun t => t / n l)
                  (B l) (Rlt_le _ _ I) Each) as O.
    apply (sum_bounded_within bound (sum_depth count) (2 * w) m e (Pos.to_nat w) _ (held l) _ 2 G
             (S l) Lost); [|reflexivity].
    eapply Rle_trans; [exact O|]; clear -N1 N2 P I.
    apply (Rmult_le_reg_l (n l)); [lra|].
    rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    apply Rmult_le_compat_r; assumption.
  - apply guard_some in W as [G <-]; rewrite andb_true_iff in G; destruct G as [P G].
    apply nonnegative_R in P; split; [reflexivity|]; intros l; cbn.
    eapply sum_bounded_within; [exact G|apply S| | |reflexivity].
    + rewrite !INR_positive, Pos2Z.inj_mul, mult_IZR; ring.
    + rewrite Q2R_mult, Q2R_integer_positive.
      pose proof (terms_of_records (Pos.to_nat w) (terms l) (Q2R bound) 1 (fun x => x) (B l)
                    ltac:(lra) (fun x => eq_sym (Rmult_1_l _))) as O.
      rewrite Rmult_1_l in O.
      replace (fun j => sizes (map (fun v : nat -> R => v j) (terms l)))
        with (fun j => sizes (map (fun x : R => x) (map (fun v : nat -> R => v j) (terms l))))
        by (apply functional_extensionality; intros j; rewrite map_id; reflexivity).
      eapply Rle_trans; [exact O|apply Rmult_le_compat_r; [exact P|apply N]].
  - apply guard_some in W as [G <-]; rewrite andb_true_iff in G; destruct G as [P G].
    apply nonnegative_R in P; split; [reflexivity|]; intros l; cbn.
    eapply sum_bounded_within; [exact G|apply S| | |reflexivity].
    + rewrite !INR_positive, Pos2Z.inj_mul, mult_IZR; ring.
    + rewrite Q2R_mult, Q2R_number.
      assert (Rt : sqrt (INR (Pos.to_nat w)) <= IZR (root_above w)).
      { unfold root_above; destruct (Z.sqrt_up_spec (Zpos w) eq_refl) as [_ Up].
        pose proof (Z.sqrt_up_nonneg (Zpos w)) as Nn.
        apply IZR_le in Nn, Up; rewrite mult_IZR in Up.
        rewrite <- (sqrt_square (IZR (Z.sqrt_up (Zpos w)))) by exact Nn.
        rewrite INR_positive; apply sqrt_le_1_alt, Up. }
      eapply Rle_trans; [apply row_norm_monotone with (w := fun _ => Q2R bound)|].
      * intros i I; rewrite Rabs_right by apply Rle_ge, sizes_nonneg; apply B, I.
      * unfold norm; simpl; rewrite total_const, seq_length, sqrt_mult_alt, sqrt_square
          by (try apply pos_INR; exact P).
        rewrite (Rmult_comm (Q2R bound)); apply Rmult_le_compat_r; assumption.
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> B].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[P M] E]; apply Qle_bool_R in M, E.
    rewrite !Q2R_plus, Q2R_mult, unit_roundoff_real, Q2R_plus in M, E.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be]; cbn.
    set (d := Pos.to_nat w1) in *.
    assert (Sz : row_norm d (@add (euclidean d) (held l) c) <= Q2R (magnitude_of t) + Q2R size)
      by (eapply Rle_trans; [apply norm_add|lra]).
    eapply held_after with (from_held := @add (euclidean d) (held l) c); [exact Sz| | | |].
    + replace (@sub (euclidean d) (@add (euclidean d) (held l) c) (fun i => f l i + c i))
        with (@sub (euclidean d) (held l) (f l)); [exact Be|].
      apply functional_extensionality; intros i; simpl; ring.
    + eapply Rle_trans; [apply row_rounds, R|].
      apply Rmult_le_compat_l; [lra|exact Sz].
    + lra.
    + lra.
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> B].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite andb_true_iff in G.
    destruct G as [P G]; apply nonnegative_R in P.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be]; cbn; specialize (R l).
    set (d := Pos.to_nat w1) in *.
    assert (Sz : row_norm d (@scale (euclidean d) c (held l))
                 <= Q2R factor * Q2R (magnitude_of t)).
    { rewrite norm_scale, C; apply Rmult_le_compat_l; assumption. }
    assert (Er : row_norm d (@sub (euclidean d) (@scale (euclidean d) c (held l))
                   (fun i => c * f l i)) <= Q2R factor * Q2R (error_of t)).
    { change (row_norm d (@sub (euclidean d) (@scale (euclidean d) c (held l))
                (@scale (euclidean d) c (f l))) <= Q2R factor * Q2R (error_of t)).
      rewrite sub_scale, norm_scale, C; apply Rmult_le_compat_l; assumption. }
    destruct (Qeq_bool factor 1) eqn:One.
    + apply Qeq_bool_iff, Qeq_eqR in One.
      replace (Q2R 1) with 1 in One by (unfold Q2R; simpl; field).
      rewrite andb_true_iff in G; destruct G as [M E]; apply Qle_bool_R in M, E.
      eapply held_after with (slip := 0); [exact Sz|exact Er| |rewrite One; lra|rewrite One; lra].
      replace 0 with (0 * row_norm d (held l) + INR d * 0) by ring.
      apply row_off; [lra|lra|]; intros i I; specialize (R i I).
      destruct (Req_EM_T (Rabs c) 1) as [_|No]; [|exfalso; apply No; lra].
      simpl; rewrite R; replace (c * held l i + -1 * (c * held l i)) with 0 by ring.
      rewrite Rabs_R0; lra.
    + apply bounded_sound in G as [M E].
      rewrite !Q2R_mult, unit_roundoff_real in M, E.
      eapply held_after with
        (slip := roundoff * (Q2R factor * Q2R (magnitude_of t)) + IZR (Zpos w1) * underflow);
        [exact Sz|exact Er| |lra|lra].
      rewrite <- INR_positive; fold d.
      eapply Rle_trans; [apply row_rounds_product with (x := @scale (euclidean d) c (held l))|].
      * intros i I; specialize (R i I); simpl.
        destruct (Req_EM_T (Rabs c) 1); [|exact R].
        unfold rounds_product; rewrite R, Rminus_diag_eq, Rabs_R0 by reflexivity.
        pose proof (Rabs_pos (c * held l i)); nra.
      * apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|exact Sz].
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> B].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[P _] G]; apply nonnegative_R in P; apply bounded_sound in G as [M E].
    rewrite !Q2R_mult, unit_roundoff_real in M, E.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be]; cbn; specialize (R l).
    assert (Sz : row_norm (Pos.to_nat w) (by_public (held l))
                 <= Q2R size * Q2R (magnitude_of t)).
    { eapply Rle_trans; [apply Bd|apply Rmult_le_compat_l; assumption]. }
    eapply held_after with (from_held := by_public (held l))
      (slip := roundoff * (Q2R size * Q2R (magnitude_of t)) + IZR (Zpos w) * underflow)
      (error := Q2R size * Q2R (error_of t)); [exact Sz| | |lra|lra].
    + replace (@sub (euclidean (Pos.to_nat w)) (by_public (held l)) (by_public (f l)))
        with (by_public (@sub (euclidean (Pos.to_nat w1)) (held l) (f l))).
      * eapply Rle_trans; [apply Bd|apply Rmult_le_compat_l; assumption].
      * apply functional_extensionality; intros i; rewrite Lin; simpl; ring.
    + rewrite <- INR_positive.
      eapply Rle_trans; [apply row_rounds_product, R|].
      apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|exact Sz].
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [Same B].
    apply Pos2Nat.inj in Same; subst w1.
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[P Few] G]; apply nonnegative_R in P; apply few_real in Few as [Gm Gp].
    apply bounded_sound in G as [M E]; rewrite !Q2R_mult, Gm, Q2R_number in M, E.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be]; cbn.
    set (n := Pos.to_nat w) in *; set (h := Pos.to_nat height) in *.
    set (root := IZR (root_above (Pos.min height w))) in *.
    pose (from := fun i => total (seq 0 n) (fun k => a i k * held l k)).
    assert (Sz : row_norm h from <= Q2R norm_bound * Q2R (magnitude_of t)).
    { eapply Rle_trans; [apply Bd|apply Rmult_le_compat_l; assumption]. }
    assert (Ab : row_norm h (fun i => sizes (map (fun k => a i k * held l k) (seq 0 n)))
                 <= Q2R norm_bound * root * Q2R (magnitude_of t)).
    { eapply Rle_trans; [apply Abs|]; apply Rmult_le_compat_l; [|exact Bm].
      apply Rmult_le_pos; [exact P|]; apply IZR_le; unfold root_above; apply Z.sqrt_up_nonneg. }
    eapply held_after with (from_held := from) (size := Q2R norm_bound * Q2R (magnitude_of t))
      (error := Q2R norm_bound * Q2R (error_of t))
      (slip := gamma_n n * (Q2R norm_bound * root * Q2R (magnitude_of t))
               + IZR (Zpos (height * w)) * underflow); [exact Sz| | |lra|lra].
    + replace (@sub (euclidean h) from (fun i => total (seq 0 n) (fun k => a i k * f l k)))
        with (fun i => total (seq 0 n) (fun k => a i k * @sub (euclidean n) (held l) (f l) k)).
      * eapply Rle_trans; [apply Bd|apply Rmult_le_compat_l; assumption].
      * apply functional_extensionality; intros i; unfold from; simpl.
        replace (-1 * total (seq 0 n) (fun k => a i k * f l k))
          with (total (seq 0 n) (fun k => -1 * (a i k * f l k))) by apply total_scal.
        rewrite <- total_plus; apply total_ext; intros k _; ring.
    + pose proof (row_of_sums h (fun i => map (fun k => a i k * held l k) (seq 0 n)) (held' l) n n
                    _ Gp (S l) Ab) as O.
      assert (From : from = (fun i => exactly (map (fun k => a i k * held l k) (seq 0 n)))).
      { apply functional_extensionality; intros i; unfold from, exactly.
        rewrite total_map; reflexivity. }
      rewrite From, Pos2Z.inj_mul, mult_IZR, <- !INR_positive; fold h n.
      eapply Rle_trans; [exact O|apply Req_le; ring].
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [Same B].
    apply Pos2Nat.inj in Same; subst w1.
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[P Few] G]; apply nonnegative_R in P; apply few_real in Few as [Gm Gp].
    apply bounded_sound in G as [M E]; rewrite Q2R_mult, Q2R_minimum in M, E; rewrite Gm in M, E.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be]; cbn; specialize (R l).
    set (n := Pos.to_nat w) in *.
    assert (Most : Rmin (row_norm n (held l)) (Q2R radius)
                   <= Rmin (Q2R (magnitude_of t)) (Q2R radius)).
    { apply Rmin_glb; [eapply Rle_trans; [apply Rmin_l|exact Bm]|apply Rmin_r]. }
    eapply held_after with (from_held := @clip (euclidean n) (Q2R radius) (held l))
      (slip := gamma_n (Pos.to_nat (2 * w + 16)) * Rmin (Q2R (magnitude_of t)) (Q2R radius)
               + IZR (Zpos w) * underflow).
    + eapply Rle_trans; [apply clip_no_longer, P|exact Most].
    + eapply Rle_trans; [apply clip_nonexpansive, P|exact Be].
    + eapply Rle_trans; [exact R|]; rewrite <- INR_positive; fold n.
      apply Rplus_le_compat_r, Rmult_le_compat_l; [exact Gp|exact Most].
    + lra.
    + lra.
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> B].
    destruct (computed_width t') as [w2|]; [|discriminate]; destruct (IH' w2 eq_refl) as [_ B'].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[_ M] E]; apply Qle_bool_R in M, E.
    rewrite !Q2R_plus, Q2R_mult, unit_roundoff_real, Q2R_plus in M, E.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be]; destruct (B' l) as [Bm' Be']; cbn.
    set (d := Pos.to_nat w1) in *.
    assert (Sz : row_norm d (@add (euclidean d) (held l) (held' l))
                 <= Q2R (magnitude_of t) + Q2R (magnitude_of t'))
      by (eapply Rle_trans; [apply norm_add|lra]).
    eapply held_after with (from_held := @add (euclidean d) (held l) (held' l))
      (slip := roundoff * (Q2R (magnitude_of t) + Q2R (magnitude_of t')))
      (error := Q2R (error_of t) + Q2R (error_of t')); [exact Sz| | |lra|lra].
    + replace (@sub (euclidean d) (@add (euclidean d) (held l) (held' l)) (fun i => f l i + g l i))
        with (@add (euclidean d) (@sub (euclidean d) (held l) (f l))
                (@sub (euclidean d) (held' l) (g l))).
      * eapply Rle_trans; [apply norm_add|lra].
      * apply functional_extensionality; intros i; simpl; ring.
    + eapply Rle_trans; [apply row_rounds, R|apply Rmult_le_compat_l; [lra|exact Sz]].
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> B].
    destruct (computed_width t') as [w2|]; [|discriminate]; destruct (IH' w2 eq_refl) as [_ B'].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[_ M] E]; apply Qle_bool_R in M, E.
    rewrite !Q2R_plus, Q2R_mult, unit_roundoff_real, Q2R_plus in M, E.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be]; destruct (B' l) as [Bm' Be']; cbn.
    set (d := Pos.to_nat w1) in *.
    pose (from := fun i => held l i - held' l i).
    assert (Sz : row_norm d from <= Q2R (magnitude_of t) + Q2R (magnitude_of t')).
    { replace from with (@sub (euclidean d) (held l) (held' l))
        by (apply functional_extensionality; intros i; unfold from; simpl; ring).
      eapply Rle_trans; [apply norm_sub|lra]. }
    eapply held_after with (from_held := from)
      (slip := roundoff * (Q2R (magnitude_of t) + Q2R (magnitude_of t')))
      (error := Q2R (error_of t) + Q2R (error_of t')); [exact Sz| | |lra|lra].
    + replace (@sub (euclidean d) from (fun i => f l i - g l i))
        with (@sub (euclidean d) (@sub (euclidean d) (held l) (f l))
                (@sub (euclidean d) (held' l) (g l))).
      * eapply Rle_trans; [apply norm_sub|lra].
      * apply functional_extensionality; intros i; unfold from; simpl; ring.
    + eapply Rle_trans; [apply row_rounds, R|apply Rmult_le_compat_l; [lra|exact Sz]].
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> B].
    destruct (computed_width t') as [w2|]; [|discriminate]; destruct (IH' w2 eq_refl) as [-> B'].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite andb_true_iff in G.
    destruct G as [M E]; apply Qle_bool_R in M, E; rewrite Q2R_plus in M, E.
    split; [symmetry; apply Pos2Nat.inj_add|]; intros l.
    destruct (B l) as [Bm Be]; destruct (B' l) as [Bm' Be']; cbn [magnitude_of error_of]; split.
    + eapply Rle_trans; [apply row_pair|lra].
    + eapply Rle_trans; [|exact E].
      eapply Rle_trans; [|apply Rplus_le_compat; [exact Be|exact Be']].
      eapply Rle_trans; [|apply row_pair]; apply Req_le; f_equal.
      apply functional_extensionality; intros i; cbn -[Nat.ltb].
      destruct (i <? Pos.to_nat w1)%nat; reflexivity.
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> B].
    destruct (computed_width t') as [w2|]; [|discriminate].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[_ M] E]; apply Qle_bool_R in M, E.
    pose proof (maximum_ge (magnitude_of t) (magnitude_of t')) as Hm.
    pose proof (maximum_ge (error_of t) (error_of t')) as He.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be].
    split; eapply Rle_trans; [exact Bm| |exact Be|]; cbn [magnitude_of error_of]; clear -M E Hm He; lra.
  - destruct (computed_width t) as [w1|]; [|discriminate]; destruct (IH w1 eq_refl) as [-> _].
    destruct (computed_width t') as [w2|]; [|discriminate]; destruct (IH' w2 eq_refl) as [_ B].
    cbn [unary_width binary_width] in W; apply guard_some in W as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[_ M] E]; apply Qle_bool_R in M, E.
    pose proof (maximum_ge (magnitude_of t) (magnitude_of t')) as Hm.
    pose proof (maximum_ge (error_of t) (error_of t')) as He.
    split; [reflexivity|]; intros l; destruct (B l) as [Bm Be].
    split; eapply Rle_trans; [exact Bm| |exact Be|]; cbn [magnitude_of error_of]; clear -M E Hm He; lra.
Qed.

(** A block of [rows] rows, each computed by [t], is off by at most the error of [t] times the root
    of how many. *)
Theorem block_sound {V : Space} (off : D -> V) t rows width row held w :
  computed_width t = Some w -> 0 <= Q2R (error_of t) ->
  (forall k, (k < Pos.to_nat rows)%nat -> computes t width (row k) (held k)) ->
  (forall l, norm (off l) * norm (off l)
             <= total (seq 0 (Pos.to_nat rows)) (fun k =>
                  row_norm width (@sub (euclidean width) (held k l) (row k l))
                  * row_norm width (@sub (euclidean width) (held k l) (row k l)))) ->
  forall l, norm (off l) <= Q2R (error_of t) * sqrt (IZR (Zpos rows)).
Proof.
  intros W P C N l; specialize (N l); set (e := Q2R (error_of t)) in *.
  assert (B : norm (off l) * norm (off l) <= e * e * IZR (Zpos rows)).
  { eapply Rle_trans; [exact N|].
    replace (e * e * IZR (Zpos rows)) with (total (seq 0 (Pos.to_nat rows)) (fun _ => e * e))
      by (rewrite total_const, seq_length, INR_positive; ring).
    apply total_le; intros k I; apply in_seq in I.
    destruct (computes_sound _ _ _ _ (C k ltac:(lia)) w W) as [_ S].
    destruct (S l) as [_ E]; apply Rmult_le_compat; try apply norm_pos; exact E. }
  rewrite <- (sqrt_square (norm (off l))) by apply norm_pos.
  rewrite <- (sqrt_square e P) at 1.
  rewrite <- sqrt_mult_alt by apply Rle_0_sqr; apply sqrt_le_1_alt, B.
Qed.

End Soundness.
