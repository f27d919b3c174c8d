(** The last number of a derivation bounds the squared sensitivity of what it is about:
    [derived_sound]. *)

From Coq Require Import Reals List Bool Lia Lra Psatz QArith Qreals Qround PArith ZArith
  FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Sensitivity Nonnegative Vertical Descent Enclosure Certificate Checker
  Operations.
Import ListNotations.
Open Scope R_scope.

(** ** Rational numbers *)

Lemma Q2R_times n a : Q2R (times n a) = IZR (Zpos n) * Q2R a.
Proof. unfold times, Q2R; cbn [Qnum Qden]; rewrite mult_IZR; ring. Qed.

Lemma Q2R_quotient q k d :
  k <> 0%Z -> Zpos d = (k * Zpos q)%Z ->
  forall n, IZR n / IZR (Zpos q) = IZR (n * k) / IZR (Zpos d).
Proof.
  intros Hk E n; rewrite E, !mult_IZR; pose proof (Pos_real q).
  field; split; [lra|apply not_0_IZR, Hk].
Qed.

Lemma divides (d q : positive) :
  (Z.rem (Zpos d) (Zpos q) =? 0)%Z = true ->
  (Zpos d / Zpos q)%Z <> 0%Z /\ Zpos d = (Zpos d / Zpos q * Zpos q)%Z.
Proof.
  intros H; apply Z.eqb_eq in H.
  assert (Em : (Zpos d mod Zpos q = 0)%Z) by (rewrite <- Z.rem_mod_nonneg; lia).
  pose proof (Z.div_mod (Zpos d) (Zpos q) ltac:(lia)) as E; rewrite Em in E.
  split; [intros Z0; rewrite Z0 in E; lia|lia].
Qed.

Lemma Q2R_plus' a b : Q2R (plus a b) = Q2R a + Q2R b.
Proof.
  unfold plus; cbv zeta.
  destruct (Z.rem (Zpos (Qden a)) (Zpos (Qden b)) =? 0)%Z eqn:E.
  - apply divides in E as [N E]; unfold Q2R; cbn [Qnum Qden].
    fold (IZR (Qnum b) / IZR (Zpos (Qden b))); rewrite (Q2R_quotient _ _ _ N E).
    rewrite plus_IZR; unfold Rdiv; ring.
  - destruct (Z.rem (Zpos (Qden b)) (Zpos (Qden a)) =? 0)%Z eqn:E'.
    + apply divides in E' as [N E']; unfold Q2R; cbn [Qnum Qden].
      fold (IZR (Qnum a) / IZR (Zpos (Qden a))); rewrite (Q2R_quotient _ _ _ N E').
      rewrite plus_IZR; unfold Rdiv; ring.
    + apply Q2R_plus.
Qed.

Lemma Q2R_equal a b : Qeq_bool a b = true -> Q2R a = Q2R b.
Proof. intros H; apply Qeq_eqR, Qeq_bool_iff, H. Qed.

Lemma positive_number_R a : positive_number a = true -> 0 < Q2R a.
Proof.
  unfold positive_number; rewrite negb_true_iff; intros H; apply Qle_bool_R_false in H.
  replace (Q2R 0) with 0 in H by (unfold Q2R; simpl; field); exact H.
Qed.

Lemma positive_number_zero a : positive_number a = false -> Q2R a <= 0.
Proof.
  unfold positive_number; rewrite negb_false_iff; intros H; apply Qle_bool_R in H.
  replace (Q2R 0) with 0 in H by (unfold Q2R; simpl; field); exact H.
Qed.

(** ** Sensitivities *)

Lemma stated_some needed squared s :
  stated needed squared = Some s ->
  s = squared /\ exists least, needed = Some least /\ Q2R least <= Q2R squared.
Proof.
  destruct needed as [least|]; simpl; [|discriminate]; intros H.
  apply guard_some in H as [H <-]; apply Qle_bool_R in H; eauto.
Qed.

Lemma square_nonneg a : 0 <= Q2R (a * a).
Proof. rewrite Q2R_mult; apply Rle_0_sqr. Qed.

Lemma derived_nonneg r d s : derived r d = Some s -> 0 <= Q2R s.
Proof.
  revert s; induction d as [rule squared|rule squared d IH|rule squared d IH e IH'];
    intros s H; cbn [derived] in H.
  - apply stated_some in H as [-> (least & E & Le)].
    destruct rule; cbn in E; cbv zeta in E;
      first [apply guard_some in E as [_ <-]|injection E as <-];
      lazymatch type of Le with
      | Q2R (?a * ?a) <= _ => pose proof (square_nonneg a); lra
      | Q2R (_ * (?a * ?a)) <= _ =>
          pose proof (square_nonneg a); rewrite Q2R_mult in Le; destruct r; cbn [both_count] in Le;
          rewrite Q2R_number in Le; lra
      | _ => destruct r; rewrite Q2R_number in Le; lra
      end.
  - destruct (derived r d) as [s'|]; [|discriminate]; specialize (IH s' eq_refl).
    apply stated_some in H as [-> (least & E & Le)]; destruct rule; cbn in E.
    + injection E as <-; rewrite Q2R_mult in Le; pose proof (square_nonneg factor); nra.
    + apply guard_some in E as [_ <-]; rewrite Q2R_mult in Le.
      pose proof (square_nonneg operator_norm); nra.
    + apply guard_some in E as [_ <-]; rewrite Q2R_minimum in Le.
      pose proof (square_nonneg (2 * radius)).
      assert (0 <= Rmin (Q2R s') (Q2R (2 * radius * (2 * radius)))) by (apply Rmin_glb; assumption).
      lra.
    + apply guard_some in E as [_ <-]; pose proof (square_nonneg (u + w)); lra.
    + apply guard_some in E as [_ <-].
      pose proof (square_nonneg (u + 2 * distance * integer dimension)); lra.
    + apply guard_some in E as [_ <-].
      pose proof (square_nonneg (u + 2 * error_of by_operations * integer rows)); lra.
    + apply guard_some in E as [_ <-]; pose proof (square_nonneg (u + w)); lra.
  - destruct (derived r d) as [s1|]; [|discriminate]; specialize (IH s1 eq_refl).
    destruct (derived r e) as [s2|]; [|discriminate]; specialize (IH' s2 eq_refl).
    apply stated_some in H as [-> (least & E & Le)]; destruct rule; cbn in E.
    + apply guard_some in E as [_ <-]; pose proof (square_nonneg (u + v)); lra.
    + injection E as <-; rewrite Q2R_plus in Le; lra.
    + injection E as <-; pose proof (maximum_ge s1 s2); lra.
Qed.

Section Derivations.

Context {X : Type} (null : X) (r : relation).

Lemma sensitivity_root {V : Space} (q : list X -> V) t s :
  sensitivity (neighbours null r) q t -> t * t <= s -> sensitivity (neighbours null r) q (sqrt s).
Proof.
  intros H Hs x y A; specialize (H x y A); pose proof (norm_pos (sub (q x) (q y))).
  rewrite <- (sqrt_square (norm (sub (q x) (q y)))) by assumption.
  apply sqrt_le_1_alt; nra.
Qed.

Lemma root_le s u : 0 <= u -> s <= u * u -> sqrt s <= u.
Proof. intros Hu H; rewrite <- (sqrt_square u Hu); apply sqrt_le_1_alt, H. Qed.

(** Off by at most [distance] in each of [dimension] coordinates, or rows. *)
Lemma sensitivity_off {V : Space} (q q' : list X -> V) s distance dimension u w squared :
  0 <= Q2R s -> sensitivity (neighbours null r) q (sqrt (Q2R s)) ->
  (forall l, norm (sub (q' l) (q l)) <= Q2R distance * sqrt (IZR (Zpos dimension))) ->
  0 <= Q2R distance -> 0 <= Q2R u -> 0 <= Q2R w -> Q2R s <= Q2R (u * u) ->
  Q2R ((2 * distance) * (2 * distance) * integer dimension) <= Q2R (w * w) ->
  Q2R ((u + w) * (u + w)) <= Q2R squared ->
  0 <= Q2R squared /\ sensitivity (neighbours null r) q' (sqrt (Q2R squared)).
Proof.
  intros P S Near Gd Gu Gw Us Ws Le.
  rewrite Q2R_mult in Us; rewrite Q2R_mult, Q2R_plus in Le; split; [nra|].
  apply sensitivity_root with (Q2R u + Q2R w); [|exact Le].
  apply sensitivity_weaken
    with (sqrt (Q2R s) + 2 * (Q2R distance * sqrt (IZR (Zpos dimension)))).
  - apply sensitivity_rounding with q; assumption.
  - apply Rplus_le_compat; [apply root_le; assumption|].
    pose proof (Pos_real dimension).
    replace (2 * (Q2R distance * sqrt (IZR (Zpos dimension))))
      with (sqrt (2 * Q2R distance * (2 * Q2R distance) * IZR (Zpos dimension))).
    + apply root_le; [exact Gw|].
      rewrite !Q2R_mult, Q2R_integer_positive, Q2R_number in Ws; exact Ws.
    + rewrite sqrt_mult_alt by (apply Rmult_le_pos; lra); rewrite sqrt_square by lra; ring.
Qed.

(** Off by at most [distance] in each of [dimension] coordinates, in any norm up to l1. *)
Lemma sensitivity_off_l1 {V : Space} (q q' : list X -> V) s distance dimension u squared :
  0 <= Q2R s -> sensitivity (neighbours null r) q (sqrt (Q2R s)) ->
  (forall l, norm (sub (q' l) (q l)) <= Q2R distance * IZR (Zpos dimension)) ->
  0 <= Q2R distance -> 0 <= Q2R u -> Q2R s <= Q2R (u * u) ->
  Q2R ((u + 2 * distance * integer dimension) * (u + 2 * distance * integer dimension))
    <= Q2R squared ->
  0 <= Q2R squared /\ sensitivity (neighbours null r) q' (sqrt (Q2R squared)).
Proof.
  intros P S Near Gd Gu Us Le; rewrite Q2R_mult in Us; pose proof (Pos_real dimension) as Pd.
  assert (Off : 0 <= Q2R distance * IZR (Zpos dimension)) by (apply Rmult_le_pos; lra).
  rewrite Q2R_mult, Q2R_plus, !Q2R_mult, Q2R_integer_positive, Q2R_number in Le.
  set (w := Q2R distance * IZR (Zpos dimension)) in *.
  replace (2 * Q2R distance * IZR (Zpos dimension)) with (2 * w) in Le by (unfold w; ring).
  split; [pose proof (Rle_0_sqr (Q2R u + 2 * w)); unfold Rsqr in *; lra|].
  apply sensitivity_root with (Q2R u + 2 * w); [|exact Le].
  apply sensitivity_weaken with (sqrt (Q2R s) + 2 * w).
  - apply sensitivity_rounding with q; assumption.
  - apply Rplus_le_compat_r, root_le; assumption.
Qed.

Lemma computes_exact {D} t d (f held : D -> nat -> R) :
  exact t = true -> computes t d f held -> held = f.
Proof.
  intros E C; induction C; try discriminate E; try reflexivity;
    apply andb_true_iff in E as [E E']; rewrite ?IHC1, ?IHC2 by assumption; reflexivity.
Qed.

Lemma entry_within_norm (v : euclidean 1) : Rabs (v 0%nat) <= norm v.
Proof. rewrite <- sqrt_Rsqr_abs; apply sqrt_le_1_alt; unfold Rsqr; simpl; lra. Qed.

Lemma computes_in_l1 {D} t d (f held : D -> nat -> R) l :
  bounded_in_l1 t = true -> 0 <= Q2R (error_of t) -> computes t d f held ->
  total (seq 0 d) (fun i => Rabs (held l i - f l i)) <= Q2R (error_of t).
Proof.
  unfold bounded_in_l1; intros B Ge C; destruct (computed_width t) as [w|] eqn:W; [|discriminate].
  apply orb_true_iff in B as [E|One].
  - rewrite (computes_exact t d f held E C), total_zero; [exact Ge|].
    intros i _; rewrite Rminus_diag_eq, Rabs_R0; reflexivity.
  - apply Pos.eqb_eq in One; subst w; destruct (computes_sound t d f held C _ W) as [-> S].
    destruct (S l) as [_ N]; eapply Rle_trans; [|exact N].
    eapply Rle_trans; [|apply entry_within_norm]; right; simpl; rewrite Rplus_0_r.
    f_equal; ring.
Qed.

Lemma moved_twice_R : Q2R (moved_twice r) = match r with ReplaceOne => 2 | _ => 1 end.
Proof. destruct r; apply Q2R_number. Qed.

Lemma both_count_R : Q2R (both_count r) = match r with ZeroOutOne => 1 | _ => 2 end.
Proof. destruct r; apply Q2R_number. Qed.

Lemma mean_present_sensitivity_r bound count (V : Space) (f : X -> V) :
  r = AddRemoveOne -> (forall x, norm (f x) <= bound) ->
  sensitivity (neighbours null r) (mean_present f count)
    (match r with ZeroOutOne => 1 | _ => 2 end * bound / IZR (Zpos count)).
Proof.
  intros Hr Hf; destruct r; try discriminate; apply mean_present_add_remove; exact Hf.
Qed.

Lemma nonnegative_mean_sensitivity bound count (V : Space) (f : X -> V) (q : list X -> V) :
  (forall x, norm (f x) <= bound) -> (forall x y, 0 <= inner (f x) (f y)) ->
  (r = ZeroOutOne -> f null = zero) ->
  q = match r with
      | AddRemoveOne => mean_present f count
      | _ => mean_over f (IZR (Zpos count))
      end ->
  sensitivity (neighbours null r) q
    (match r with ZeroOutOne => 1 | _ => sqrt 2 end * bound / IZR (Zpos count)).
Proof.
  intros Hf Acute Hz ->; pose proof (Pos_real count); destruct r; simpl.
  - apply nonnegative_mean_sensitivity_replace; assumption.
  - rewrite Rmult_1_l; apply mean_sensitivity_zero_out; auto.
  - apply nonnegative_mean_present_add_remove; assumption.
Qed.

Lemma histogram_l2_sensitivity (V : Space) (f : X -> V) :
  (forall x, norm (f x) <= 1) -> (forall x y, 0 <= inner (f x) (f y)) ->
  sensitivity (neighbours null r) (vsum f) (match r with AddRemoveOne => 1 | _ => sqrt 2 end).
Proof.
  intros Hf Acute; pose proof (nonnegative_sum_sensitivity_replace f 1 Hf Acute) as S.
  rewrite Rmult_1_r in S; destruct r; simpl; [exact S| |apply sum_sensitivity_add_remove, Hf].
  intros x y A; apply S; destruct A; constructor.
Qed.

Lemma mean_sensitivity bound count (V : Space) (f : X -> V) :
  r <> AddRemoveOne -> (forall x, norm (f x) <= bound) -> (r = ZeroOutOne -> f null = zero) ->
  sensitivity (neighbours null r) (mean_over f (IZR (Zpos count)))
    (match r with ReplaceOne => 2 | _ => 1 end * bound / IZR (Zpos count)).
Proof.
  intros Hr Hf Hz; pose proof (Pos_real count); destruct r; simpl in *; [| |congruence].
  - apply mean_sensitivity_replace; assumption.
  - rewrite Rmult_1_l; apply mean_sensitivity_zero_out; auto.
Qed.

Lemma total_sensitivity bound (V : Space) (f : X -> V) :
  (forall x, norm (f x) <= bound) -> (r = ZeroOutOne -> f null = zero) ->
  sensitivity (neighbours null r) (vsum f) (match r with ReplaceOne => 2 | _ => 1 end * bound).
Proof.
  intros Hf Hz; destruct r; simpl in *; rewrite ?Rmult_1_l.
  - apply sum_sensitivity_replace; assumption.
  - apply sum_sensitivity_zero_out; auto.
  - apply sum_sensitivity_add_remove; assumption.
Qed.

Lemma histogram_sensitivity (V : Space) (f : X -> V) :
  (forall x, norm (f x) <= 1) ->
  sensitivity (neighbours null r) (vsum f) (match r with AddRemoveOne => 1 | _ => 2 end).
Proof.
  intros Hf; pose proof (sum_sensitivity_replace f 1 Hf) as S; rewrite Rmult_1_r in S.
  destruct r; simpl; [exact S| |apply sum_sensitivity_add_remove, Hf].
  intros x y A; apply S; destruct A; constructor.
Qed.

(** A gradient of norm at most tau, as a solver measures it ([near_minimum_of_subgradient]), is
    within tau / lambda of the minimiser, as certificates say. *)
Theorem minimiser_within {V : Space} lambda tau (F : V -> R) x m :
  0 < lambda -> 0 <= tau -> near_minimum lambda tau F x -> near_minimum lambda 0 F m ->
  norm (sub x m) <= tau / lambda.
Proof.
  intros Hl Ht Hx Hm; specialize (Hx m); specialize (Hm x).
  rewrite (norm_sub_comm m x) in Hx; pose proof (norm_pos (sub x m)) as Hn.
  set (n := norm (sub x m)) in *; apply Rmult_le_reg_l with (1 := Hl).
  replace (lambda * (tau / lambda)) with tau by (field; lra).
  destruct Hn as [Hn|E]; [|rewrite <- E; lra].
  apply Rmult_le_reg_r with (1 := Hn); lra.
Qed.

(** Of minimisers that are exact, from those of what is within tolerance of them. *)
Lemma argmin_within lipschitz modulus tolerance count (V : Space) (minimiser solve : list X -> V) a :
  0 < modulus -> (forall data, norm (sub (solve data) (minimiser data)) <= tolerance / modulus) ->
  sensitivity (neighbours null r) minimiser (a * lipschitz / (modulus * IZR (Zpos count)) + 2 * 0 / modulus) ->
  sensitivity (neighbours null r) solve
    (a * lipschitz / (modulus * IZR (Zpos count)) + 2 * tolerance / modulus).
Proof.
  intros Hm Near S; pose proof (Pos_real count).
  apply sensitivity_weaken
    with (a * lipschitz / (modulus * IZR (Zpos count)) + 2 * 0 / modulus + 2 * (tolerance / modulus));
    [|right; field; lra].
  apply sensitivity_rounding with minimiser; [exact Near|exact S].
Qed.

Lemma argmin_sensitivity lipschitz modulus tolerance count (V : Space) (loss : X -> V -> R)
  (regulariser : V -> R) (minimiser solve : list X -> V) :
  0 <= lipschitz -> 0 < modulus ->
  (forall x y y', loss x y - loss x y' <= lipschitz * norm (sub y y')) ->
  (r = ZeroOutOne -> forall y, loss null y = 0) ->
  (forall data, near_minimum modulus 0
                  (match r with
                   | AddRemoveOne => objective_present loss regulariser count data
                   | _ => objective loss regulariser (IZR (Zpos count)) data
                   end) (minimiser data)) ->
  (forall data, norm (sub (solve data) (minimiser data)) <= tolerance / modulus) ->
  sensitivity (neighbours null r) solve
    (match r with ZeroOutOne => 1 | _ => 2 end * lipschitz / (modulus * IZR (Zpos count))
     + 2 * tolerance / modulus).
Proof.
  intros Hl Hm Hlip Hz N Near; pose proof (Pos_real count).
  apply argmin_within with minimiser; [exact Hm|exact Near|]; destruct r; simpl in *.
  - apply argmin_sensitivity_replace with (loss := loss) (reg := regulariser); auto; lra.
  - rewrite Rmult_1_l.
    apply argmin_sensitivity_zero_out with (loss := loss) (reg := regulariser); auto; lra.
  - apply argmin_present_add_remove with (loss := loss) (reg := regulariser); auto; lra.
Qed.

Lemma argmin_square lipschitz modulus tolerance count squared s (V : Space) (solve : list X -> V) :
  stated (leaf_square r (StronglyConvexArgmin lipschitz modulus tolerance count)) squared = Some s ->
  (0 <= Q2R lipschitz -> 0 < Q2R modulus ->
   sensitivity (neighbours null r) solve
     (match r with ZeroOutOne => 1 | _ => 2 end * Q2R lipschitz / (Q2R modulus * IZR (Zpos count))
      + 2 * Q2R tolerance / Q2R modulus)) ->
  0 <= Q2R s /\ sensitivity (neighbours null r) solve (sqrt (Q2R s)).
Proof.
  intros Hs S; apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
  apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
  destruct G as [[Gl Gm] Gt]; apply nonnegative_R in Gl, Gt; apply positive_number_R in Gm.
  specialize (S Gl Gm); pose proof (Pos_real count) as Pc.
  assert (0 < Q2R (modulus * integer count)).
  { rewrite Q2R_mult, Q2R_integer_positive; apply Rmult_lt_0_compat; assumption. }
  rewrite Q2R_mult, Q2R_plus, !Q2R_div, !Q2R_mult, both_count_R, Q2R_integer_positive, Q2R_number in Le
    by assumption.
  match type of Le with ?b * ?b <= _ => assert (Sq : 0 <= b * b) by (apply Rle_0_sqr) end.
  split; [lra|]; eapply sensitivity_root; eauto.
Qed.

Theorem derived_sound d (V : Space) (q : list X -> V) :
  derives null r d V q ->
  forall s, derived r d = Some s ->
  0 <= Q2R s /\ sensitivity (neighbours null r) q (sqrt (Q2R s)).
Proof.
  assert (Square : forall least squared t, Q2R least = t * t -> Q2R least <= Q2R squared ->
            0 <= Q2R squared /\ t * t <= Q2R squared).
  { intros least squared t E Le; pose proof (Rle_0_sqr t); unfold Rsqr in *; lra. }
  induction 1 as
    [ value squared V q Hq
    | bound count squared V f Hr Hf Hz
    | bound count squared V f Hr Hf
    | bound count squared V f q Hf Acute Hz Eq
    | bound squared V f Hf Hz
    | squared V f Hf
    | squared V f Hf Acute
    | lipschitz modulus tolerance count squared V loss regulariser minimiser solve Hr Hlip Hz N Near
    | lipschitz modulus tolerance count squared V loss regulariser minimiser solve Hr Hlip N Near
    | g b radius rho m tau u v squared n W row pull regulariser minimiser solve Hr Convex Hg Hz Hb Min Near
    | c g tau squared n slope public rho dual solve Hr Hrho Rises Gap Bd Solves Near
    | factor squared d V q H IH
    | bound squared d V W q f H IH Lin Bd
    | radius squared d V q H IH
    | distance dimension u w squared d V q q' H IH Near
    | distance dimension u squared d V q q' H IH Near
    | rows u w t squared d V q q' width row held H IH Rows Near
    | rows u t squared d V q q' width row held H IH Rows Near
    | u v squared d e V q q' H IH H' IH'
    | u v squared d e V q q' H IH H' IH'
    | squared d e V W q q' H IH H' IH'
    | squared d e V W q q' H IH H' IH' Apart
    | d V W q q' H IH Further ]; intros s Hs; cbn [derived] in Hs.
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [_ <-].
    destruct (Square _ _ (Q2R value) (Q2R_mult _ _) Le); split; [assumption|].
    eapply sensitivity_root; eauto.
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    apply guard_some in E as [_ <-].
    pose proof (mean_sensitivity _ count V f Hr Hf Hz) as S.
    eapply Square in Le; [|apply Q2R_mult].
    rewrite Q2R_div, Q2R_mult, both_count_R, Q2R_integer_positive in Le
      by (rewrite Q2R_integer_positive; apply Pos_real).
    destruct Le; split; [assumption|]; eapply sensitivity_root; [exact S|destruct r; tauto].
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    apply guard_some in E as [_ <-].
    pose proof (mean_present_sensitivity_r _ count V f Hr Hf) as S.
    eapply Square in Le; [|apply Q2R_mult].
    rewrite Q2R_div, Q2R_mult, both_count_R, Q2R_integer_positive in Le
      by (rewrite Q2R_integer_positive; apply Pos_real).
    destruct Le; split; [assumption|]; eapply sensitivity_root; eauto.
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    apply guard_some in E as [_ <-].
    pose proof (nonnegative_mean_sensitivity _ count V f q Hf Acute Hz Eq) as S.
    rewrite !Q2R_mult, Q2R_div, both_count_R, Q2R_integer_positive in Le
      by (rewrite Q2R_integer_positive; apply Pos_real).
    set (t := match r with ZeroOutOne => 1 | _ => sqrt 2 end * Q2R bound / IZR (Zpos count)) in S.
    assert (E : t * t = match r with ZeroOutOne => 1 | _ => 2 end
                        * (Q2R bound / IZR (Zpos count) * (Q2R bound / IZR (Zpos count)))).
    { assert (Root : forall a b, a * b / IZR (Zpos count) * (a * b / IZR (Zpos count))
                                 = a * a * (b / IZR (Zpos count) * (b / IZR (Zpos count))))
        by (intros; field; pose proof (Pos_real count); lra).
      unfold t; rewrite Root; destruct r; rewrite ?Rmult_1_l, ?sqrt_sqrt by lra; reflexivity. }
    rewrite <- E in Le; pose proof (Rle_0_sqr t) as P; unfold Rsqr in P.
    split; [lra|]; eapply sensitivity_root; [exact S|exact Le].
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    apply guard_some in E as [_ <-].
    pose proof (total_sensitivity _ V f Hf Hz) as S.
    eapply Square in Le; [|apply Q2R_mult]; rewrite Q2R_mult, moved_twice_R in Le.
    destruct Le; split; [assumption|]; eapply sensitivity_root; eauto.
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    injection E as <-; eapply Square in Le; [|apply Q2R_mult].
    replace (Q2R match r with AddRemoveOne => 1 | _ => 2 end)
      with (match r with AddRemoveOne => 1 | _ => 2 end) in Le by (destruct r; symmetry; apply Q2R_number).
    destruct Le; split; [assumption|]; eapply sensitivity_root; [apply histogram_sensitivity, Hf|].
    assumption.
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; injection E as <-.
    pose proof (sqrt_sqrt 2 ltac:(lra)) as Two.
    assert (Two' : match r with AddRemoveOne => 1 | _ => sqrt 2 end
                   * match r with AddRemoveOne => 1 | _ => sqrt 2 end <= Q2R squared).
    { destruct r; rewrite Q2R_number in Le; lra. }
    split; [destruct r; rewrite Q2R_number in Le; lra|].
    eapply sensitivity_root; [apply histogram_l2_sensitivity; assumption|exact Two'].
  - apply (argmin_square lipschitz modulus tolerance count squared s V solve Hs).
    intros Gl Gm; apply argmin_sensitivity with (loss := loss) (regulariser := regulariser)
      (minimiser := minimiser); auto; destruct r; [exact N|exact N|congruence].
  - apply (argmin_square lipschitz modulus tolerance count squared s V solve Hs).
    intros Gl Gm; apply argmin_sensitivity with (loss := loss) (regulariser := regulariser)
      (minimiser := minimiser); auto; [congruence|destruct r; try discriminate; exact N].
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[[[[[[[[_ Gg] Gb] Gr] Gp] Gm] Gt] Gu] Gv] Us] Vs].
    apply nonnegative_R in Gg, Gb, Gr, Gt, Gu, Gv; apply positive_number_R in Gp, Gm; apply Qle_bool_R in Us, Vs.
    assert (Stiff : 0 < Q2R (rho * m)) by (rewrite Q2R_mult; apply Rmult_lt_0_compat; assumption).
    rewrite Q2R_plus, Q2R_div, !Q2R_mult, Q2R_plus, !Q2R_mult, Q2R_number in Us by assumption.
    rewrite Q2R_div, !Q2R_mult in Vs by assumption.
    eapply Square in Le; [|apply Q2R_mult].
    rewrite Q2R_plus, Q2R_div, Q2R_mult, moved_twice_R, Q2R_number in Le by (rewrite Q2R_number; lra).
    destruct Le as [P Le]; split; [exact P|]; eapply sensitivity_root; [|exact Le].
    destruct r; [| |congruence]; simpl.
    + replace (2 * Q2R u / 2 + Q2R v) with (Q2R u + Q2R v) by field.
      apply predictions_sensitivity_replace with (pull := pull) (penalty := Q2R rho) (modulus := Q2R m)
        (regulariser := regulariser) (radius := Q2R radius) (bound := Q2R g) (slope := Q2R b)
        (minimiser := minimiser) (tolerance := Q2R tau); auto.
    + replace (1 * Q2R u / 2 + Q2R v) with (Q2R u / 2 + Q2R v) by field.
      apply predictions_sensitivity_zero_out with (pull := pull) (penalty := Q2R rho) (modulus := Q2R m)
        (regulariser := regulariser) (radius := Q2R radius) (bound := Q2R g) (slope := Q2R b)
        (minimiser := minimiser) (tolerance := Q2R tau); auto.
  - apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    apply guard_some in E as [_ <-]; eapply Square in Le; [|apply Q2R_mult].
    rewrite Q2R_plus, Q2R_mult, Q2R_number in Le.
    destruct Le as [P Le]; split; [exact P|]; eapply sensitivity_root; [|exact Le].
    destruct r; [| |congruence]; simpl.
    + apply dual_sensitivity_replace with (slope := slope) (public := public) (penalty := rho) (exact := dual); auto.
    + destruct (Bd eq_refl) as [Hc Hz].
      apply dual_sensitivity_zero_out with (slope := slope) (public := public) (penalty := rho) (exact := dual); auto.
  - destruct (derived r d) as [s'|]; [|discriminate]; destruct (IH s' eq_refl) as [P S].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; injection E as <-.
    rewrite !Q2R_mult in Le.
    split; [assert (0 <= Q2R factor * Q2R factor * Q2R s') by (apply Rmult_le_pos; nra); lra|].
    apply sensitivity_root with (Rabs (Q2R factor) * sqrt (Q2R s')).
    + apply sensitivity_scale, S.
    + replace (Rabs (Q2R factor) * sqrt (Q2R s') * (Rabs (Q2R factor) * sqrt (Q2R s')))
        with (Rabs (Q2R factor) * Rabs (Q2R factor) * (sqrt (Q2R s') * sqrt (Q2R s'))) by ring.
      rewrite sqrt_sqrt, <- Rabs_mult, Rabs_right by (try assumption; nra); exact Le.
  - destruct (derived r d) as [s'|]; [|discriminate]; destruct (IH s' eq_refl) as [P S].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; apply nonnegative_R in G; rewrite !Q2R_mult in Le.
    split; [assert (0 <= Q2R bound * Q2R bound * Q2R s') by (apply Rmult_le_pos; nra); lra|].
    apply sensitivity_root with (Q2R bound * sqrt (Q2R s')).
    + apply sensitivity_linear; assumption.
    + replace (Q2R bound * sqrt (Q2R s') * (Q2R bound * sqrt (Q2R s')))
        with (Q2R bound * Q2R bound * (sqrt (Q2R s') * sqrt (Q2R s'))) by ring.
      rewrite sqrt_sqrt by assumption; exact Le.
  - destruct (derived r d) as [s'|]; [|discriminate]; destruct (IH s' eq_refl) as [P S].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; apply nonnegative_R in G.
    rewrite Q2R_minimum, !Q2R_mult, Q2R_number in Le.
    pose proof (sensitivity_clip _ q (Q2R radius) (sqrt (Q2R s')) G S) as C.
    assert (M : Rmin (sqrt (Q2R s')) (2 * Q2R radius) * Rmin (sqrt (Q2R s')) (2 * Q2R radius)
                <= Rmin (Q2R s') (2 * Q2R radius * (2 * Q2R radius))).
    { pose proof (Rmin_l (sqrt (Q2R s')) (2 * Q2R radius)) as L.
      pose proof (Rmin_r (sqrt (Q2R s')) (2 * Q2R radius)) as L'.
      assert (0 <= Rmin (sqrt (Q2R s')) (2 * Q2R radius))
        by (apply Rmin_glb; [apply sqrt_pos|lra]).
      set (least' := Rmin _ _) in *; apply Rmin_glb; [|apply Rmult_le_compat; assumption].
      pose proof (sqrt_sqrt (Q2R s') P); nra. }
    split; [|eapply sensitivity_root; [exact C|lra]].
    pose proof (Rle_0_sqr (Rmin (sqrt (Q2R s')) (2 * Q2R radius))); unfold Rsqr in *; lra.
  - destruct (derived r d) as [s'|]; [|discriminate]; destruct (IH s' eq_refl) as [P S].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[[Gd Gu] Gw] Us] Ws]; apply nonnegative_R in Gd, Gu, Gw.
    apply Qle_bool_R in Us, Ws.
    apply (sensitivity_off q q' s' distance dimension u w squared); assumption.
  - destruct (derived r d) as [s'|]; [|discriminate]; destruct (IH s' eq_refl) as [P S].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[Gd Gu] Us]; apply nonnegative_R in Gd, Gu; apply Qle_bool_R in Us.
    apply (sensitivity_off_l1 q q' s' distance dimension u squared); assumption.
  - destruct (derived r d) as [s'|]; [|discriminate]; destruct (IH s' eq_refl) as [P S].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[[[Gt Ge] Gu] Gw] Us] Ws]; apply nonnegative_R in Ge, Gu, Gw.
    apply Qle_bool_R in Us, Ws.
    destruct (computed_width t) as [w'|] eqn:Ew; [|discriminate].
    apply (sensitivity_off q q' s' (error_of t) rows u w squared); try assumption.
    apply (block_sound (fun l => sub (q' l) (q l)) t rows width row held w'); assumption.
  - destruct (derived r d) as [s'|]; [|discriminate]; destruct (IH s' eq_refl) as [P S].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[Gt Ge] Gu] Us]; apply nonnegative_R in Ge, Gu; apply Qle_bool_R in Us.
    apply (sensitivity_off_l1 q q' s' (error_of t) rows u squared); try assumption.
    intros l; eapply Rle_trans; [apply Near|].
    replace (Q2R (error_of t) * IZR (Zpos rows))
      with (total (seq 0 (Pos.to_nat rows)) (fun _ => Q2R (error_of t)))
      by (rewrite total_const, seq_length, INR_positive; ring).
    apply total_le; intros k I; apply in_seq in I; apply computes_in_l1; auto; apply Rows; lia.
  - destruct (derived r d) as [s1|]; [|discriminate]; destruct (IH s1 eq_refl) as [P S].
    destruct (derived r e) as [s2|]; [|discriminate]; destruct (IH' s2 eq_refl) as [P' S'].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[Gu Gv] Us] Vt]; apply nonnegative_R in Gu, Gv.
    apply Qle_bool_R in Us, Vt; rewrite Q2R_mult in Us, Vt.
    rewrite Q2R_mult, Q2R_plus in Le; split; [nra|].
    apply sensitivity_root with (Q2R u + Q2R v); [|exact Le].
    apply sensitivity_weaken with (sqrt (Q2R s1) + sqrt (Q2R s2)).
    + apply sensitivity_sum; assumption.
    + apply Rplus_le_compat; apply root_le; assumption.
  - destruct (derived r d) as [s1|]; [|discriminate]; destruct (IH s1 eq_refl) as [P S].
    destruct (derived r e) as [s2|]; [|discriminate]; destruct (IH' s2 eq_refl) as [P' S'].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[Gu Gv] Us] Vt]; apply nonnegative_R in Gu, Gv.
    apply Qle_bool_R in Us, Vt; rewrite Q2R_mult in Us, Vt.
    rewrite Q2R_mult, Q2R_plus in Le; split; [nra|].
    apply sensitivity_root with (Q2R u + Q2R v); [|exact Le].
    apply sensitivity_weaken with (sqrt (Q2R s1) + sqrt (Q2R s2)).
    + apply sensitivity_sum; [exact S|].
      replace (sqrt (Q2R s2)) with (Rabs (-1) * sqrt (Q2R s2)) by (rewrite Rabs_minus_1; ring).
      apply (sensitivity_scale _ (-1)), S'.
    + apply Rplus_le_compat; apply root_le; assumption.
  - destruct (derived r d) as [s1|]; [|discriminate]; destruct (IH s1 eq_refl) as [P S].
    destruct (derived r e) as [s2|]; [|discriminate]; destruct (IH' s2 eq_refl) as [P' S'].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; injection E as <-.
    rewrite Q2R_plus in Le; split; [lra|].
    pose proof (sensitivity_concatenation _ q q' _ _ (sqrt_pos _) (sqrt_pos _) S S') as C.
    rewrite !sqrt_sqrt in C by assumption.
    eapply sensitivity_root; [exact C|rewrite sqrt_sqrt; lra].
  - destruct (derived r d) as [s1|]; [|discriminate]; destruct (IH s1 eq_refl) as [P S].
    destruct (derived r e) as [s2|]; [|discriminate]; destruct (IH' s2 eq_refl) as [P' S'].
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; injection E as <-.
    pose proof (maximum_ge s1 s2) as [M1 M2]; split; [lra|].
    intros l l' A; specialize (S l l' A); specialize (S' l l' A).
    assert (Zero : forall (U : Space) (x : U), inner (sub x x) (sub x x) = 0).
    { intros U x; rewrite sub_diag; pose proof (norm_sq (zero : U)) as Z.
      rewrite norm_zero in Z; lra. }
    assert (Root : forall (U : Space) (x : U) t, 0 <= t -> norm x <= sqrt t -> inner x x <= t).
    { intros U x t Ht Hx; rewrite <- norm_sq; pose proof (norm_pos x); pose proof (sqrt_pos t).
      pose proof (sqrt_sqrt t Ht); nra. }
    unfold norm; apply sqrt_le_1_alt.
    change (inner (sub (q l) (q l')) (sub (q l) (q l'))
            + inner (sub (q' l) (q' l')) (sub (q' l) (q' l')) <= Q2R squared).
    apply Root in S; [|exact P]; apply Root in S'; [|exact P'].
    destruct (Apart l l' A) as [E|E]; rewrite E in *; rewrite Zero in *; lra.
  - destruct (IH s Hs) as [P S]; split; [exact P|].
    intros l l' A; eapply Rle_trans; [apply Further|apply S, A].
Qed.

End Derivations.

Lemma bounds_linear d : bounds_each_record d = true -> linear_in_records d = true.
Proof.
  induction d as [rule squared|rule squared p IH|rule squared p IH q IH']; cbn [bounds_each_record linear_in_records].
  - auto.
  - destruct rule; auto; intros H; apply andb_true_iff in H as [Z H]; rewrite ?Z; apply IH, H.
  - destruct rule; intros H; repeat (apply andb_true_iff in H as [? H]); apply andb_true_iff; auto.
Qed.

(** What is derived of replacing a record is so of one record more. *)
Lemma derived_added d s : linear_in_records d = true -> derived ReplaceOne d = Some s -> derived AddRemoveOne d = Some s.
Proof.
  revert s; induction d as [rule squared|rule squared p IH|rule squared p IH q IH']; intros s; cbn [linear_in_records derived]; intros Linear.
  - assert (Less : forall least least', (least' <= least)%Q -> stated (Some least) squared = Some s -> stated (Some least') squared = Some s).
    { intros least least' Le; unfold stated, guard; destruct (Qle_bool least squared) eqn:G; [|discriminate].
      apply Qle_bool_iff in G; pose proof (Qle_trans _ _ _ Le G) as G'; apply Qle_bool_iff in G'; rewrite G'; auto. }
    destruct rule; try discriminate Linear; cbn [leaf_square both_count moved_twice]; cbv zeta; auto; try (apply Less; discriminate).
    destruct (Qle_bool 0 bound) eqn:G; [|discriminate]; apply Qle_bool_iff in G; apply Less; ring_simplify; nra.
  - assert (Lp : linear_in_records p = true) by (destruct rule; try exact Linear; apply andb_true_iff in Linear as [_ L]; exact L).
    destruct (derived ReplaceOne p) as [t|]; [rewrite (IH t Lp eq_refl); auto|discriminate].
  - assert (L : linear_in_records p = true /\ linear_in_records q = true) by (destruct rule; apply andb_true_iff, Linear).
    destruct (derived ReplaceOne p) as [t|]; [|discriminate]; destruct (derived ReplaceOne q) as [u|]; [|discriminate].
    rewrite (IH t (proj1 L) eq_refl), (IH' u (proj2 L) eq_refl); auto.
Qed.

(** Replacing a record of sums of bounded vectors takes one out and adds one: half as far each. *)
Theorem added_sound {X} (null : X) d (V : Space) (q : list X -> V) :
  derives null AddRemoveOne d V q -> forall s, bounds_each_record d = true ->
  derived ReplaceOne d = Some s ->
  0 <= Q2R s /\ sensitivity add_remove_one q (sqrt (Q2R s) / 2).
Proof.
  intros H s Each Hs; split; [exact (derived_nonneg _ _ _ Hs)|].
  assert (Nothing : forall d (V : Space) (q : list X -> V), derives null AddRemoveOne d V q -> forall s,
            linear_in_records d = true -> derived ReplaceOne d = Some s ->
            Qeq_bool (match d with Leaf _ squared | Unary _ squared _ | Binary _ squared _ _ => squared end) 0 = true ->
            sensitivity add_remove_one q (sqrt (Q2R s) / 2)).
  { intros d' V' q' H' s' L D Z; destruct (derived_sound null AddRemoveOne d' V' q' H' _ (derived_added _ _ L D)) as [_ S].
    assert (Zero : Q2R s' = 0).
    { apply Q2R_equal in Z; rewrite Q2R_number in Z; rewrite <- Z; destruct d' as [rule squared|rule squared p|rule squared p p'];
        cbn [derived] in D; repeat (destruct (derived ReplaceOne _); [|discriminate]); apply stated_some in D as [-> _]; reflexivity. }
    rewrite Zero, sqrt_0 in *; replace (0 / 2) with 0 by field; exact S. }
  assert (Half : forall x, 0 <= x -> sqrt x / 2 * (sqrt x / 2) = x / 4).
  { intros x Hx; replace (sqrt x / 2 * (sqrt x / 2)) with (sqrt x * sqrt x / 4) by field.
    rewrite sqrt_sqrt by exact Hx; reflexivity. }
  assert (Root : forall (U : Space) (f : list X -> U) t x, 0 <= t -> t * t <= x / 4 ->
            sensitivity add_remove_one f t -> sensitivity add_remove_one f (sqrt x / 2)).
  { intros U f t x Ht Hx S; apply sensitivity_weaken with (1 := S).
    pose proof (sqrt_pos x); assert (0 <= x) by nra; pose proof (Half x H1).
    apply Rnot_lt_le; intros L; nra. }
  revert s Each Hs; induction H; intros s Each Hs; pose proof (bounds_linear _ Each) as Linear; cbn [bounds_each_record] in Each;
    lazymatch type of Each with
    | false = true => discriminate Each
    | Qeq_bool _ 0 = true => refine (Nothing _ _ _ _ s Linear Hs Each)
    | (Qeq_bool _ 0 && _)%bool = true => apply andb_true_iff in Each as [Zero _]; refine (Nothing _ _ _ _ s Linear Hs Zero)
    | _ => idtac
    end;
    try solve [econstructor; eassumption]; cbn [derived] in Hs.
  - (* a sum *)
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; cbv zeta in E.
    apply guard_some in E as [G <-]; apply nonnegative_R in G.
    apply (Root _ _ (Q2R bound)); [exact G| |apply sum_sensitivity_add_remove; assumption].
    rewrite !Q2R_mult, Q2R_number in Le; lra.
  - (* scaled *)
    destruct (derived ReplaceOne d) as [s'|] eqn:D; [|discriminate].
    pose proof (derived_nonneg _ _ _ D) as P; specialize (IHderives s' Each eq_refl).
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; injection E as <-.
    rewrite !Q2R_mult in Le; pose proof (sqrt_pos (Q2R s')).
    apply (Root _ _ (Rabs (Q2R factor) * (sqrt (Q2R s') / 2)));
      [apply Rmult_le_pos; [apply Rabs_pos|lra]| |apply sensitivity_scale, IHderives].
    replace (Rabs (Q2R factor) * (sqrt (Q2R s') / 2) * (Rabs (Q2R factor) * (sqrt (Q2R s') / 2)))
      with (Rabs (Q2R factor) * Rabs (Q2R factor) * (sqrt (Q2R s') / 2 * (sqrt (Q2R s') / 2))) by ring.
    rewrite Half, <- Rabs_mult, Rabs_right by (try assumption; nra); lra.
  - (* mapped *)
    destruct (derived ReplaceOne d) as [s'|] eqn:D; [|discriminate].
    pose proof (derived_nonneg _ _ _ D) as P; specialize (IHderives s' Each eq_refl).
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; apply nonnegative_R in G; rewrite !Q2R_mult in Le.
    pose proof (sqrt_pos (Q2R s')).
    apply (Root _ _ (Q2R bound * (sqrt (Q2R s') / 2)));
      [apply Rmult_le_pos; lra| |apply sensitivity_linear; assumption].
    replace (Q2R bound * (sqrt (Q2R s') / 2) * (Q2R bound * (sqrt (Q2R s') / 2)))
      with (Q2R bound * Q2R bound * (sqrt (Q2R s') / 2 * (sqrt (Q2R s') / 2))) by ring.
    rewrite Half by assumption; lra.
  - (* a sum of two *)
    apply andb_true_iff in Each as [Each Each'].
    destruct (derived ReplaceOne d) as [s1|] eqn:D; [|discriminate].
    destruct (derived ReplaceOne e) as [s2|] eqn:D'; [|discriminate].
    specialize (IHderives1 s1 Each eq_refl); specialize (IHderives2 s2 Each' eq_refl).
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[Gu Gv] Us] Vt]; apply nonnegative_R in Gu, Gv.
    apply Qle_bool_R in Us, Vt; rewrite Q2R_mult in Us, Vt.
    rewrite Q2R_mult, Q2R_plus in Le; apply root_le in Us, Vt; try assumption.
    apply (Root _ _ (Q2R u / 2 + Q2R v / 2)); [lra|lra|].
    apply sensitivity_weaken with (sqrt (Q2R s1) / 2 + sqrt (Q2R s2) / 2); [|lra].
    apply sensitivity_sum; assumption.
  - (* a difference *)
    apply andb_true_iff in Each as [Each Each'].
    destruct (derived ReplaceOne d) as [s1|] eqn:D; [|discriminate].
    destruct (derived ReplaceOne e) as [s2|] eqn:D'; [|discriminate].
    specialize (IHderives1 s1 Each eq_refl); specialize (IHderives2 s2 Each' eq_refl).
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E.
    apply guard_some in E as [G <-]; rewrite !andb_true_iff in G.
    destruct G as [[[Gu Gv] Us] Vt]; apply nonnegative_R in Gu, Gv.
    apply Qle_bool_R in Us, Vt; rewrite Q2R_mult in Us, Vt.
    rewrite Q2R_mult, Q2R_plus in Le; apply root_le in Us, Vt; try assumption.
    apply (Root _ _ (Q2R u / 2 + Q2R v / 2)); [lra|lra|].
    apply sensitivity_weaken with (sqrt (Q2R s1) / 2 + sqrt (Q2R s2) / 2); [|lra].
    apply sensitivity_sum; [exact IHderives1|].
    replace (sqrt (Q2R s2) / 2) with (Rabs (-1) * (sqrt (Q2R s2) / 2)) by (rewrite Rabs_minus_1; ring).
    apply (sensitivity_scale _ (-1)), IHderives2.
  - (* side by side *)
    apply andb_true_iff in Each as [Each Each'].
    destruct (derived ReplaceOne d) as [s1|] eqn:D; [|discriminate].
    destruct (derived ReplaceOne e) as [s2|] eqn:D'; [|discriminate].
    specialize (IHderives1 s1 Each eq_refl); specialize (IHderives2 s2 Each' eq_refl).
    pose proof (derived_nonneg _ _ _ D); pose proof (derived_nonneg _ _ _ D').
    apply stated_some in Hs as [-> (least & E & Le)]; cbn in E; injection E as <-.
    rewrite Q2R_plus in Le; pose proof (sqrt_pos (Q2R s1)); pose proof (sqrt_pos (Q2R s2)).
    pose proof (sensitivity_concatenation _ q q' (sqrt (Q2R s1) / 2) (sqrt (Q2R s2) / 2)
                  ltac:(lra) ltac:(lra) IHderives1 IHderives2) as C.
    apply (Root _ _ _ _ (sqrt_pos _)) with (2 := C); rewrite !Half by assumption.
    rewrite sqrt_sqrt; lra.
  - intros l l' A; eapply Rle_trans; [apply H0|apply IHderives; assumption].
Qed.
