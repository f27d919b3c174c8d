(** Sensitivities: how far a function of the data moves when one record changes.

    Vectors live in any real space with an inner product; definiteness is never used, so it is
    not asked for. [euclidean d] is the instance R^d. *)

From Coq Require Import Reals List Lra Lia Psatz FunctionalExtensionality.
From Dpledger Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Record Space := {
  vec :> Type;
  zero : vec;
  add : vec -> vec -> vec;
  scale : R -> vec -> vec;
  inner : vec -> vec -> R;
  add_comm : forall x y, add x y = add y x;
  add_assoc : forall x y z, add x (add y z) = add (add x y) z;
  add_zero : forall x, add x zero = x;
  scale_0 : forall x, scale 0 x = zero;
  scale_1 : forall x, scale 1 x = x;
  scale_scale : forall a b x, scale a (scale b x) = scale (a * b) x;
  scale_plus : forall a b x, scale (a + b) x = add (scale a x) (scale b x);
  scale_add : forall a x y, scale a (add x y) = add (scale a x) (scale a y);
  inner_comm : forall x y, inner x y = inner y x;
  inner_add : forall x y z, inner (add x y) z = inner x z + inner y z;
  inner_scale : forall a x z, inner (scale a x) z = a * inner x z;
  inner_pos : forall x, 0 <= inner x x;
}.

Arguments zero {_}. Arguments add {_}. Arguments scale {_}. Arguments inner {_}.
Arguments add_comm {_}. Arguments add_assoc {_}. Arguments add_zero {_}. Arguments scale_0 {_}.
Arguments scale_1 {_}. Arguments scale_scale {_}. Arguments scale_plus {_}.
Arguments scale_add {_}. Arguments inner_comm {_}. Arguments inner_add {_}.
Arguments inner_scale {_}. Arguments inner_pos {_}.

(** R^d: functions of an index, of which the inner product reads the first d. *)
Definition euclidean (d : nat) : Space.
Proof.
  refine {|
    vec := nat -> R;
    zero := fun _ => 0;
    add := fun x y i => x i + y i;
    scale := fun a x i => a * x i;
    inner := fun x y => total (seq 0 d) (fun i => x i * y i);
  |}; intros; try (extensionality i; ring).
  - apply total_ext; intros; ring.
  - rewrite <- total_plus; apply total_ext; intros; ring.
  - rewrite <- total_scal; apply total_ext; intros; ring.
  - apply total_nonneg; intros; nra.
Defined.

(** Pairs of vectors. *)
Definition product (V W : Space) : Space.
Proof.
  refine {|
    vec := V * W;
    zero := (zero, zero);
    add := fun x y => (add (fst x) (fst y), add (snd x) (snd y));
    scale := fun a x => (scale a (fst x), scale a (snd x));
    inner := fun x y => inner (fst x) (fst y) + inner (snd x) (snd y);
  |}; intros; simpl.
  - f_equal; apply add_comm.
  - f_equal; apply add_assoc.
  - destruct x; simpl; f_equal; apply add_zero.
  - f_equal; apply scale_0.
  - destruct x; simpl; f_equal; apply scale_1.
  - f_equal; apply scale_scale.
  - f_equal; apply scale_plus.
  - f_equal; apply scale_add.
  - f_equal; apply inner_comm.
  - rewrite !inner_add; ring.
  - rewrite !inner_scale; ring.
  - pose proof (inner_pos (fst x)); pose proof (inner_pos (snd x)); lra.
Defined.

(** ** Norm *)

Definition norm {V : Space} (x : V) : R := sqrt (inner x x).
Definition sub {V : Space} (x y : V) : V := add x (scale (-1) y).

Lemma Rabs_minus_1 : Rabs (-1) = 1.
Proof. rewrite Rabs_left; lra. Qed.

Section Norm.

Context {V : Space}.
Implicit Types x y z : V.

Lemma norm_pos x : 0 <= norm x.
Proof. apply sqrt_pos. Qed.

Lemma norm_sq x : norm x * norm x = inner x x.
Proof. apply sqrt_sqrt, inner_pos. Qed.

Lemma norm_le x c : 0 <= c -> inner x x <= c * c -> norm x <= c.
Proof.
  intros Hc H; unfold norm; rewrite <- (sqrt_square c) by exact Hc.
  apply sqrt_le_1_alt; exact H.
Qed.

Lemma inner_add_r x y z : inner x (add y z) = inner x y + inner x z.
Proof. rewrite inner_comm, inner_add, (inner_comm y), (inner_comm z); ring. Qed.

Lemma inner_scale_r a x z : inner x (scale a z) = a * inner x z.
Proof. rewrite inner_comm, inner_scale, inner_comm; ring. Qed.

Lemma cauchy_schwarz x y : inner x y <= norm x * norm y.
Proof.
  assert (Q : forall s t, 0 <= s * s * inner x x - 2 * s * t * inner x y + t * t * inner y y).
  { intros s t; pose proof (inner_pos (add (scale s x) (scale (- t) y))) as P.
    rewrite inner_add, !inner_add_r, !inner_scale, !inner_scale_r, (inner_comm y x) in P; nra. }
  rewrite <- !norm_sq in Q.
  pose proof (norm_pos x) as Hx; pose proof (norm_pos y) as Hy.
  set (a := norm x) in *; set (b := norm y) in *; set (u := inner x y) in *.
  destruct (Rle_dec u 0) as [|Hu]; [nra|].
  assert (Small : forall c, (c * c + 1) / u * u = c * c + 1) by (intros; field; lra).
  destruct (Req_dec a 0) as [Za|]; [specialize (Q ((b * b + 1) / u) 1);
                                     specialize (Small b); rewrite Za in *; nra|].
  destruct (Req_dec b 0) as [Zb|]; [specialize (Q 1 ((a * a + 1) / u));
                                     specialize (Small a); rewrite Zb in *; nra|].
  specialize (Q b a); assert (0 < a * b) by (apply Rmult_lt_0_compat; lra); nra.
Qed.

Lemma norm_add x y : norm (add x y) <= norm x + norm y.
Proof.
  pose proof (norm_pos x); pose proof (norm_pos y).
  apply norm_le; [lra|].
  rewrite inner_add, !inner_add_r, (inner_comm y x), <- !norm_sq.
  pose proof (cauchy_schwarz x y); nra.
Qed.

Lemma norm_scale a x : norm (scale a x) = Rabs a * norm x.
Proof.
  unfold norm; rewrite inner_scale, inner_scale_r, <- Rmult_assoc.
  rewrite sqrt_mult_alt by nra.
  f_equal; apply sqrt_Rsqr_abs.
Qed.

Lemma norm_zero : norm (zero : V) = 0.
Proof. rewrite <- (scale_0 zero), norm_scale, Rabs_R0; ring. Qed.

Lemma add_zero_l x : add zero x = x.
Proof. rewrite add_comm; apply add_zero. Qed.

Lemma sub_diag x : sub x x = zero.
Proof.
  unfold sub; rewrite <- (scale_1 x) at 1; rewrite <- scale_plus.
  replace (1 + -1) with 0 by ring; apply scale_0.
Qed.

Lemma sub_zero x : sub x zero = x.
Proof. unfold sub; rewrite <- (scale_0 zero), scale_scale, Rmult_0_r, scale_0; apply add_zero. Qed.

Lemma norm_sub x y : norm (sub x y) <= norm x + norm y.
Proof.
  unfold sub; eapply Rle_trans; [apply norm_add|].
  rewrite norm_scale, Rabs_minus_1; lra.
Qed.

Lemma norm_sub_comm x y : norm (sub x y) = norm (sub y x).
Proof.
  replace (sub y x) with (scale (-1) (sub x y)).
  - rewrite norm_scale, Rabs_minus_1; ring.
  - unfold sub; rewrite scale_add, scale_scale.
    replace (-1 * -1) with 1 by ring; rewrite scale_1; apply add_comm.
Qed.

Lemma sub_add_sub x y x' y' : sub (add x y) (add x' y') = add (sub x x') (sub y y').
Proof.
  unfold sub; rewrite scale_add, <- !add_assoc; f_equal.
  rewrite !add_assoc; f_equal; apply add_comm.
Qed.

Lemma sub_scale a x y : sub (scale a x) (scale a y) = scale a (sub x y).
Proof.
  unfold sub; rewrite scale_add, !scale_scale; do 2 f_equal; ring.
Qed.

End Norm.

(** ** The calculus: sensitivity of a query under a neighbouring relation *)

(** [sensitivity adj q s]: neighbouring data move [q] by at most [s]. *)
Definition sensitivity {D} {V : Space} (adj : D -> D -> Prop) (q : D -> V) (s : R) : Prop :=
  forall x y, adj x y -> norm (sub (q x) (q y)) <= s.

Section Calculus.

Context {D : Type} (adj : D -> D -> Prop) {V W : Space}.
Implicit Types (q : D -> V).

(** Sensitivities may be rounded up. *)
Theorem sensitivity_weaken q s s' : sensitivity adj q s -> s <= s' -> sensitivity adj q s'.
Proof. intros H Hs x y A; specialize (H x y A); lra. Qed.

(** A linear map multiplies the sensitivity by any bound on its operator norm. *)
Theorem sensitivity_linear (f : V -> W) (bound : R) q s :
  (forall x y, f (sub x y) = sub (f x) (f y)) ->
  (forall x, norm (f x) <= bound * norm x) -> 0 <= bound ->
  sensitivity adj q s -> sensitivity adj (fun x => f (q x)) (bound * s).
Proof.
  intros Lin Bd Pos H x y A; rewrite <- Lin.
  eapply Rle_trans; [apply Bd|apply Rmult_le_compat_l; auto].
Qed.

(** Scaling by a public number c multiplies the sensitivity by |c|. *)
Theorem sensitivity_scale (c : R) q s :
  sensitivity adj q s -> sensitivity adj (fun x => scale c (q x)) (Rabs c * s).
Proof.
  intros H x y A; rewrite sub_scale, norm_scale.
  apply Rmult_le_compat_l; [apply Rabs_pos|auto].
Qed.

(** A public shift changes nothing. *)
Theorem sensitivity_shift (v : V) q s :
  sensitivity adj q s -> sensitivity adj (fun x => add (q x) v) s.
Proof. intros H x y A; rewrite sub_add_sub, sub_diag, add_zero; auto. Qed.

(** A sum has at most the sum of the sensitivities. *)
Theorem sensitivity_sum q1 q2 s1 s2 :
  sensitivity adj q1 s1 -> sensitivity adj q2 s2 ->
  sensitivity adj (fun x => add (q1 x) (q2 x)) (s1 + s2).
Proof.
  intros H1 H2 x y A; rewrite sub_add_sub.
  eapply Rle_trans; [apply norm_add|apply Rplus_le_compat; auto].
Qed.

(** The same in squares, with witnesses u, v of the roots: (u + v)^2 bounds the square. *)
Theorem sensitivity_sum_witnesses q1 q2 s1 s2 sq1 sq2 u v :
  0 <= s1 -> 0 <= s2 -> 0 <= u -> 0 <= v ->
  s1 * s1 <= sq1 -> s2 * s2 <= sq2 -> sq1 <= u * u -> sq2 <= v * v ->
  sensitivity adj q1 s1 -> sensitivity adj q2 s2 ->
  forall x y, adj x y ->
  inner (sub (add (q1 x) (q2 x)) (add (q1 y) (q2 y)))
        (sub (add (q1 x) (q2 x)) (add (q1 y) (q2 y))) <= (u + v) * (u + v).
Proof.
  intros P1 P2 Pu Pv S1 S2 U1 U2 H1 H2 x y A; rewrite <- norm_sq.
  pose proof (sensitivity_sum q1 q2 s1 s2 H1 H2 x y A) as H; simpl in H.
  assert (s1 <= u) by nra; assert (s2 <= v) by nra.
  match goal with |- norm ?z * _ <= _ => pose proof (norm_pos z) end; nra.
Qed.

(** What is computed instead of [q]: off by at most [r] everywhere, it moves by at most 2 r more.
    This is the premise that ties a rule about real numbers to floating-point arithmetic. *)
Theorem sensitivity_rounding (computed : D -> V) q s r :
  (forall x, norm (sub (computed x) (q x)) <= r) ->
  sensitivity adj q s -> sensitivity adj computed (s + 2 * r).
Proof.
  intros Hr H x y A.
  replace (sub (computed x) (computed y))
    with (add (sub (q x) (q y)) (sub (sub (computed x) (q x)) (sub (computed y) (q y)))).
  - eapply Rle_trans; [apply norm_add|].
    pose proof (norm_sub (sub (computed x) (q x)) (sub (computed y) (q y))).
    specialize (H x y A); pose proof (Hr x); pose proof (Hr y); lra.
  - rewrite <- sub_add_sub, !(add_comm (q _)).
    assert (Cancel : forall u v : V, add (sub u v) v = u).
    { intros u v; unfold sub; rewrite <- add_assoc, (add_comm _ v).
      fold (sub v v); rewrite sub_diag; apply add_zero. }
    rewrite !Cancel; reflexivity.
Qed.

(** The same in squares, with a witness u of the root: (u + 2 r)^2 bounds the square. *)
Theorem sensitivity_rounding_witness (computed : D -> V) q s r sq u :
  0 <= s -> 0 <= u -> s * s <= sq -> sq <= u * u ->
  (forall x, norm (sub (computed x) (q x)) <= r) ->
  sensitivity adj q s -> sensitivity adj computed (u + 2 * r).
Proof.
  intros Ps Pu S1 U1 Hr H; apply sensitivity_rounding with q; [exact Hr|].
  apply sensitivity_weaken with s; [exact H|nra].
Qed.

(** A map that moves no two points apart costs nothing: a public shift, an embedding beside the
    blocks of others, coordinates in another order. *)
Theorem sensitivity_nonexpansive (f : V -> W) q s :
  (forall x y, norm (sub (f x) (f y)) <= norm (sub x y)) ->
  sensitivity adj q s -> sensitivity adj (fun x => f (q x)) s.
Proof. intros Hf H x y A; eapply Rle_trans; [apply Hf|auto]. Qed.

(** Two functions of the same records, side by side: squares add up. *)
Theorem sensitivity_concatenation (q : D -> V) (r : D -> W) s t :
  0 <= s -> 0 <= t -> sensitivity adj q s -> sensitivity adj r t ->
  sensitivity (V := product V W) adj (fun x => (q x, r x)) (sqrt (s * s + t * t)).
Proof.
  intros Ps Pt Hq Hr x y A; apply norm_le; [apply sqrt_pos|].
  rewrite sqrt_sqrt by nra; simpl.
  change (inner (sub (q x) (q y)) (sub (q x) (q y)) + inner (sub (r x) (r y)) (sub (r x) (r y))
          <= s * s + t * t).
  rewrite <- !norm_sq; specialize (Hq x y A); specialize (Hr x y A).
  pose proof (norm_pos (sub (q x) (q y))); pose proof (norm_pos (sub (r x) (r y))).
  apply Rplus_le_compat; apply Rmult_le_compat; assumption.
Qed.

End Calculus.

(** ** Clipping *)

Section Clipping.

Context {V : Space}.

(** x min(1, C / |x|). *)
Definition clip (C : R) (x : V) : V :=
  if Rle_dec (norm x) C then x else scale (C / norm x) x.

(** Clipping gives norm at most C. *)
Theorem clip_norm (C : R) (x : V) : 0 <= C -> norm (clip C x) <= C.
Proof.
  intros HC; unfold clip; destruct (Rle_dec (norm x) C) as [H|H]; [exact H|].
  rewrite norm_scale, Rabs_right.
  - apply Req_le; field; lra.
  - apply Rle_ge, Rmult_le_pos; [exact HC|apply Rlt_le, Rinv_0_lt_compat; lra].
Qed.

(** The clipped vector is the point of the ball nearest to x: nothing in the ball lies beyond it. *)
Lemma clip_obtuse (C : R) (x z : V) :
  0 <= C -> norm z <= C -> inner (sub x (clip C x)) (sub z (clip C x)) <= 0.
Proof.
  intros HC Hz; unfold clip; destruct (Rle_dec (norm x) C) as [H|H].
  - rewrite sub_diag, <- (scale_0 (zero : V)), inner_scale; lra.
  - set (c := C / norm x).
    assert (Hc : c * norm x = C) by (unfold c; field; lra).
    assert (c < 1) by nra.
    unfold sub; rewrite scale_scale, <- (scale_1 x) at 1; rewrite <- scale_plus.
    rewrite inner_scale, inner_add_r, scale_scale, inner_scale_r, <- norm_sq.
    pose proof (cauchy_schwarz x z).
    assert (norm x * norm z <= norm x * C) by (apply Rmult_le_compat_l; lra).
    assert (inner x z + -1 * c * (norm x * norm x) <= 0).
    { replace (-1 * c * (norm x * norm x)) with (- (C * norm x)) by (rewrite <- Hc; ring); lra. }
    assert (0 <= 1 + -1 * c) by lra; nra.
Qed.

(** Clipping moves no two points apart. *)
Theorem clip_nonexpansive (C : R) (x y : V) :
  0 <= C -> norm (sub (clip C x) (clip C y)) <= norm (sub x y).
Proof.
  intros HC; set (p := clip C x); set (r := clip C y).
  pose proof (clip_obtuse C x r HC (clip_norm C y HC)) as Ox; fold p in Ox.
  pose proof (clip_obtuse C y p HC (clip_norm C x HC)) as Oy; fold r in Oy.
  pose proof (cauchy_schwarz (sub x y) (sub p r)) as CS.
  assert (E : norm (sub p r) * norm (sub p r) <= inner (sub x y) (sub p r)).
  { rewrite norm_sq; unfold sub in *.
    rewrite !inner_add, !inner_add_r, !inner_scale, !inner_scale_r in *.
    rewrite (inner_comm r p), (inner_comm y p), (inner_comm y r) in *; lra. }
  pose proof (norm_pos (sub p r)); pose proof (norm_pos (sub x y)).
  apply Rnot_lt_le; intros L; nra.
Qed.

(** So a clipped function keeps its sensitivity, and never has more than 2C. *)
Theorem sensitivity_clip {D} (adj : D -> D -> Prop) (q : D -> V) (C s : R) :
  0 <= C -> sensitivity adj q s -> sensitivity adj (fun x => clip C (q x)) (Rmin s (2 * C)).
Proof.
  intros HC H x y A; apply Rmin_glb.
  - eapply Rle_trans; [apply clip_nonexpansive, HC|auto].
  - eapply Rle_trans; [apply norm_sub|].
    pose proof (clip_norm C (q x) HC); pose proof (clip_norm C (q y) HC); lra.
Qed.

End Clipping.

(** ** Means over records *)

(** Replace one record; zero-out replaces it by the null record. *)
Inductive replace_one {X} : list X -> list X -> Prop :=
  | replaced : forall before after x y,
      replace_one (before ++ x :: after) (before ++ y :: after).

Inductive zero_out_one {X} (null : X) : list X -> list X -> Prop :=
  | zeroed : forall before after x,
      zero_out_one null (before ++ x :: after) (before ++ null :: after)
  | restored : forall before after x,
      zero_out_one null (before ++ null :: after) (before ++ x :: after).

Inductive add_remove_one {X} : list X -> list X -> Prop :=
  | removed : forall before after x, add_remove_one (before ++ x :: after) (before ++ after)
  | added : forall before after x, add_remove_one (before ++ after) (before ++ x :: after).

Section Means.

Context {X : Type} {V : Space} (f : X -> V) (C : R).
Hypothesis bounded : forall x, norm (f x) <= C.

Fixpoint vsum (l : list X) : V :=
  match l with [] => zero | x :: l' => add (f x) (vsum l') end.

Lemma vsum_norm l : norm (vsum l) <= INR (length l) * C.
Proof.
  induction l as [|x l IH]; [simpl; rewrite norm_zero; lra|].
  change (length (x :: l)) with (S (length l)); rewrite S_INR; simpl.
  eapply Rle_trans; [apply norm_add|specialize (bounded x); lra].
Qed.

Lemma vsum_insert before after x :
  vsum (before ++ x :: after) = add (f x) (vsum (before ++ after)).
Proof.
  induction before as [|b before IH]; [reflexivity|].
  simpl; rewrite IH, !add_assoc; f_equal; apply add_comm.
Qed.

(** The sum divided by a public number n, whatever the true number of records. *)
Definition mean_over (n : R) (l : list X) : V := scale (/ n) (vsum l).

Lemma mean_replace n before after x y :
  sub (mean_over n (before ++ x :: after)) (mean_over n (before ++ y :: after))
    = scale (/ n) (sub (f x) (f y)).
Proof.
  unfold mean_over; rewrite sub_scale, !vsum_insert, sub_add_sub, sub_diag, add_zero; reflexivity.
Qed.

Lemma norm_scale_inv n (v : V) : 0 < n -> norm (scale (/ n) v) = norm v / n.
Proof.
  intros Hn; rewrite norm_scale, Rabs_right; [field; lra|].
  apply Rle_ge, Rlt_le, Rinv_0_lt_compat; exact Hn.
Qed.

(** Mean of clipped vectors, replace-one: 2C/n. *)
Theorem mean_sensitivity_replace (n : R) :
  0 < n -> sensitivity replace_one (mean_over n) (2 * C / n).
Proof.
  intros Hn ? ? [before after x y]; rewrite mean_replace, norm_scale_inv by exact Hn.
  apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; exact Hn|].
  eapply Rle_trans; [apply norm_sub|].
  pose proof (bounded x); pose proof (bounded y); lra.
Qed.

(** Mean of clipped vectors, one record replaced by a null record that contributes 0: C/n. *)
Theorem mean_sensitivity_zero_out (null : X) (n : R) :
  0 < n -> f null = zero -> sensitivity (zero_out_one null) (mean_over n) (C / n).
Proof.
  intros Hn Hnull ? ? [before after x|before after x];
    [|rewrite norm_sub_comm]; rewrite mean_replace, norm_scale_inv, Hnull, sub_zero by exact Hn;
    apply Rmult_le_compat_r; auto; apply Rlt_le, Rinv_0_lt_compat; exact Hn.
Qed.

(** The sum itself: C when a record is added, removed or zeroed out, 2C when it is replaced. *)
Theorem sum_sensitivity_replace : sensitivity replace_one vsum (2 * C).
Proof.
  intros ? ? [before after x y]; rewrite !vsum_insert, sub_add_sub, sub_diag, add_zero.
  eapply Rle_trans; [apply norm_sub|].
  pose proof (bounded x); pose proof (bounded y); lra.
Qed.

Theorem sum_sensitivity_add_remove : sensitivity add_remove_one vsum C.
Proof.
  assert (E : forall before after x,
            sub (vsum (before ++ x :: after)) (vsum (before ++ after)) = f x).
  { intros; rewrite vsum_insert; rewrite <- (add_zero_l (vsum (before ++ after))) at 2.
    rewrite sub_add_sub, sub_diag, add_zero, sub_zero; reflexivity. }
  intros ? ? [before after x|before after x]; [|rewrite norm_sub_comm]; rewrite E; apply bounded.
Qed.

Theorem sum_sensitivity_zero_out (null : X) :
  f null = zero -> sensitivity (zero_out_one null) vsum C.
Proof.
  intros Hnull ? ? [before after x|before after x]; [|rewrite norm_sub_comm];
    rewrite !vsum_insert, sub_add_sub, sub_diag, add_zero, Hnull, sub_zero; apply bounded.
Qed.

(** The mean over the records that are there. *)
Definition mean (l : list X) : V := mean_over (INR (length l)) l.

Lemma mean_norm l : 0 < INR (length l) -> norm (mean l) <= C.
Proof.
  intros H; unfold mean, mean_over; rewrite norm_scale_inv by exact H.
  apply Rmult_le_reg_r with (INR (length l)); [exact H|].
  replace (norm (vsum l) / INR (length l) * INR (length l)) with (norm (vsum l)) by (field; lra).
  rewrite Rmult_comm; apply vsum_norm.
Qed.

Lemma mean_insert before after x : 0 < INR (length (before ++ after)) ->
  sub (mean (before ++ x :: after)) (mean (before ++ after))
    = scale (/ (INR (length (before ++ after)) + 1)) (sub (f x) (mean (before ++ after))).
Proof.
  intros H; unfold mean, mean_over; rewrite vsum_insert.
  replace (length (before ++ x :: after)) with (S (length (before ++ after)))
    by (rewrite !app_length; simpl; lia).
  rewrite S_INR; unfold sub; rewrite !scale_add, <- add_assoc, !scale_scale, <- scale_plus.
  do 2 f_equal; field; lra.
Qed.

Lemma mean_remove n_min before after x :
  0 < n_min -> n_min <= INR (length (before ++ after)) ->
  norm (sub (mean (before ++ x :: after)) (mean (before ++ after))) <= 2 * C / n_min.
Proof.
  intros Hn Hl; rewrite mean_insert, norm_scale_inv by lra.
  pose proof (mean_norm (before ++ after) ltac:(lra)) as Hv.
  set (n := INR (length (before ++ after))) in *; set (v := mean (before ++ after)) in *.
  pose proof (norm_sub (f x) v); pose proof (bounded x); pose proof (norm_pos (f x)).
  unfold Rdiv; apply Rmult_le_compat; try apply norm_pos; try lra.
  - apply Rlt_le, Rinv_0_lt_compat; lra.
  - apply Rinv_le_contravar; lra.
Qed.

(** Renormalised mean, one record added or removed, both sizes at least a public n_min: 2C/n_min. *)
Theorem mean_sensitivity_add_remove (n_min : R) :
  0 < n_min ->
  sensitivity
    (fun l l' => add_remove_one l l' /\ n_min <= INR (length l) /\ n_min <= INR (length l'))
    mean (2 * C / n_min).
Proof.
  intros Hn l l' [[before after x|before after x] [H H']].
  - apply mean_remove; assumption.
  - rewrite norm_sub_comm; apply mean_remove; assumption.
Qed.

End Means.

(** Clipping, then the mean over a public n, replace-one: 2C/n. *)
Corollary clipped_mean_sensitivity_replace {V : Space} (C n : R) :
  0 <= C -> 0 < n -> sensitivity replace_one (mean_over (V := V) (clip C) n) (2 * C / n).
Proof. intros HC Hn; apply mean_sensitivity_replace; auto using clip_norm. Qed.

(** ** Output of a strongly convex minimisation *)

Section StronglyConvex.

Context {V : Space}.
Implicit Types (F : V -> R) (x y : V) (lam tau : R).

Definition strongly_convex (lam : R) F : Prop :=
  forall x y t, 0 <= t <= 1 ->
  F (add x (scale t (sub y x)))
    <= (1 - t) * F x + t * F y - lam / 2 * (t * (1 - t)) * inner (sub y x) (sub y x).

Definition minimises F x : Prop := forall y, F x <= F y.
Definition subgradient F x (s : V) : Prop := forall y, F x + inner s (sub y x) <= F y.

(** What is needed of an output: quadratic growth around it, up to a slope [tau]. *)
Definition near_minimum (lam tau : R) F x : Prop :=
  forall y, F x - tau * norm (sub y x) + lam / 2 * (norm (sub y x) * norm (sub y x)) <= F y.

Lemma le_of_small a b c : (forall t, 0 < t <= 1 -> a - t * b <= c) -> a <= c.
Proof.
  intros H; apply Rnot_lt_le; intros L.
  pose proof (Rabs_pos b); pose proof (Rle_abs b).
  set (g := a - c) in *; assert (0 < g) by (unfold g; lra).
  set (t := g / (2 * (g + Rabs b))).
  assert (Ht : t * (2 * (g + Rabs b)) = g) by (unfold t; field; lra).
  assert (0 < t) by (unfold t; apply Rdiv_lt_0_compat; lra).
  assert (t <= 1) by nra.
  assert (Hc : a - t * b <= c) by (apply H; lra).
  assert (t * b <= t * Rabs b) by (apply Rmult_le_compat_l; lra).
  unfold g in *; nra.
Qed.

(** A point with a subgradient of norm at most tau is near the minimum. *)
Theorem near_minimum_of_subgradient lam tau F x (s : V) :
  strongly_convex lam F -> subgradient F x s -> norm s <= tau -> near_minimum lam tau F x.
Proof.
  intros SC Sub Hs y; rewrite norm_sq; set (d := inner (sub y x) (sub y x)) in *.
  assert (Slope : - tau * norm (sub y x) <= inner s (sub y x)).
  { pose proof (cauchy_schwarz (scale (-1) s) (sub y x)) as CS.
    rewrite inner_scale, norm_scale, Rabs_minus_1 in CS.
    pose proof (norm_pos (sub y x)); nra. }
  apply le_of_small with (b := lam / 2 * d); intros t Ht.
  pose proof (SC x y t ltac:(lra)) as C; fold d in C.
  pose proof (Sub (add x (scale t (sub y x)))) as G.
  replace (sub (add x (scale t (sub y x))) x) with (scale t (sub y x)) in G.
  - rewrite inner_scale_r in G.
    assert (0 <= t * (F y - F x - inner s (sub y x) - lam / 2 * (1 - t) * d)) by nra.
    assert (0 <= F y - F x - inner s (sub y x) - lam / 2 * (1 - t) * d); [|nra].
    apply Rnot_lt_le; intros N; nra.
  - unfold sub at 2; rewrite (add_comm x), <- add_assoc.
    fold (sub x x); rewrite sub_diag, add_zero; reflexivity.
Qed.

(** An exact minimiser is near the minimum with slope 0; no derivative is needed. *)
Theorem near_minimum_of_minimiser lam F x :
  strongly_convex lam F -> minimises F x -> near_minimum lam 0 F x.
Proof.
  intros SC Min; apply near_minimum_of_subgradient with (s := zero); [exact SC| |].
  - intros y; rewrite <- (scale_0 (zero : V)), inner_scale; pose proof (Min y); lra.
  - rewrite norm_zero; lra.
Qed.

Lemma near_minimum_distance lam tau slope F F' x x' :
  0 < lam -> 0 <= tau -> 0 <= slope ->
  near_minimum lam tau F x -> near_minimum lam tau F' x' ->
  (forall y y', F y - F' y - (F y' - F' y') <= slope * norm (sub y y')) ->
  norm (sub x x') <= slope / lam + 2 * tau / lam.
Proof.
  intros Hl Ht Hs N N' Lip.
  specialize (N x'); specialize (N' x); specialize (Lip x' x).
  rewrite (norm_sub_comm x' x) in *; pose proof (norm_pos (sub x x')) as Hd.
  set (d := norm (sub x x')) in *.
  replace (slope / lam + 2 * tau / lam) with ((slope + 2 * tau) / lam) by (field; lra).
  apply Rmult_le_reg_r with lam; [exact Hl|].
  replace ((slope + 2 * tau) / lam * lam) with (slope + 2 * tau) by (field; lra).
  apply Rnot_lt_le; intros L.
  assert (0 < d) by nra; nra.
Qed.

Context {X : Type} (loss : X -> V -> R) (reg : V -> R) (G : R).
Hypothesis lipschitz : forall z y y', loss z y - loss z y' <= G * norm (sub y y').

(** (1/n) sum of losses + regulariser, which may depend on everything public. *)
Definition objective (n : R) (data : list X) (y : V) : R :=
  total data (fun z => loss z y) / n + reg y.

Lemma objective_replace n before after z z' y :
  0 < n ->
  objective n (before ++ z :: after) y - objective n (before ++ z' :: after) y
    = (loss z y - loss z' y) / n.
Proof.
  intros Hn; unfold objective; rewrite !total_app; simpl; field; lra.
Qed.

(** Strongly convex argmin with tolerance, replace-one: 2G/(lambda n) + 2 tau/lambda.
    [solve] is any solver whose outputs are near the minimum: exact minimisers (tau = 0), or
    points with a (sub)gradient of norm at most tau. Only the total need be strongly convex. *)
Theorem argmin_sensitivity_replace (lam tau n : R) (solve : list X -> V) :
  0 < lam -> 0 <= tau -> 0 < n -> 0 <= G ->
  (forall data, near_minimum lam tau (objective n data) (solve data)) ->
  sensitivity replace_one solve (2 * G / (lam * n) + 2 * tau / lam).
Proof.
  intros Hl Ht Hn HG N ? ? [before after z z'].
  replace (2 * G / (lam * n)) with (2 * G / n / lam) by (field; lra).
  eapply near_minimum_distance; eauto.
  - apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; exact Hn].
  - intros u u'; rewrite !objective_replace by exact Hn.
    apply Rmult_le_reg_r with n; [exact Hn|].
    replace ((loss z u - loss z' u) / n - (loss z u' - loss z' u') / n)
      with ((loss z u - loss z' u - (loss z u' - loss z' u')) / n) by (field; lra).
    replace (2 * G / n * norm (sub u u') * n) with (2 * G * norm (sub u u')) by (field; lra).
    replace ((loss z u - loss z' u - (loss z u' - loss z' u')) / n * n)
      with (loss z u - loss z' u - (loss z u' - loss z' u')) by (field; lra).
    pose proof (lipschitz z u u'); pose proof (lipschitz z' u' u).
    rewrite (norm_sub_comm u' u) in *; lra.
Qed.

(** Strongly convex argmin with tolerance, zero-out: G/(lambda n) + 2 tau/lambda. *)
Theorem argmin_sensitivity_zero_out (lam tau n : R) (null : X) (solve : list X -> V) :
  0 < lam -> 0 <= tau -> 0 < n -> 0 <= G -> (forall y, loss null y = 0) ->
  (forall data, near_minimum lam tau (objective n data) (solve data)) ->
  sensitivity (zero_out_one null) solve (G / (lam * n) + 2 * tau / lam).
Proof.
  intros Hl Ht Hn HG Z N.
  replace (G / (lam * n)) with (G / n / lam) by (field; lra).
  intros ? ? [before after z|before after z]; [|rewrite norm_sub_comm];
    (eapply near_minimum_distance; eauto;
     [apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; exact Hn]|]);
    intros u u'; rewrite !objective_replace, !Z by exact Hn;
    replace ((loss z u - 0) / n - (loss z u' - 0) / n)
      with ((loss z u - loss z u') / n) by (field; lra);
    replace (G / n * norm (sub u u')) with (G * norm (sub u u') / n) by (field; lra);
    apply Rmult_le_compat_r; auto; apply Rlt_le, Rinv_0_lt_compat; exact Hn.
Qed.

(** The objective over the records that are there. *)
Definition own_objective (data : list X) : V -> R := objective (INR (length data)) data.

Lemma losses_lipschitz data u u' :
  total data (fun z => loss z u) - total data (fun z => loss z u')
    <= INR (length data) * (G * norm (sub u u')).
Proof.
  rewrite <- total_minus, <- total_const; apply total_le; auto.
Qed.

Lemma argmin_remove lam tau n_min before after z x x' :
  0 < lam -> 0 <= tau -> 0 < n_min -> 0 <= G -> n_min <= INR (length (before ++ after)) ->
  near_minimum lam tau (own_objective (before ++ z :: after)) x ->
  near_minimum lam tau (own_objective (before ++ after)) x' ->
  norm (sub x x') <= 2 * G / (lam * n_min) + 2 * tau / lam.
Proof.
  intros Hl Ht Hn HG Hlen N N'.
  replace (2 * G / (lam * n_min)) with (2 * G / n_min / lam) by (field; lra).
  eapply near_minimum_distance; eauto.
  { apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; exact Hn]. }
  intros u u'; unfold own_objective, objective.
  replace (length (before ++ z :: after)) with (S (length (before ++ after)))
    by (rewrite !app_length; simpl; lia).
  pose proof (losses_lipschitz (before ++ after) u' u) as HS; rewrite norm_sub_comm in HS.
  pose proof (lipschitz z u u') as Hz; pose proof (norm_pos (sub u u')) as Hd.
  rewrite S_INR; set (n := INR (length (before ++ after))) in *.
  rewrite !total_app in *; cbn [total].
  set (d := norm (sub u u')) in *.
  set (a := total before (fun z => loss z u)) in *; set (b := total after (fun z => loss z u)) in *.
  set (a' := total before (fun z => loss z u')) in *.
  set (b' := total after (fun z => loss z u')) in *.
  transitivity (2 * G * d / (n + 1)).
  - replace ((a + (loss z u + b)) / (n + 1) + reg u - ((a + b) / n + reg u)
             - ((a' + (loss z u' + b')) / (n + 1) + reg u' - ((a' + b') / n + reg u')))
      with ((loss z u - loss z u' + (a' + b' - (a + b)) / n) / (n + 1)) by (field; lra).
    apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; lra|].
    assert ((a' + b' - (a + b)) / n <= G * d); [|lra].
    apply Rmult_le_reg_r with n; [lra|].
    replace ((a' + b' - (a + b)) / n * n) with (a' + b' - (a + b)) by (field; lra); lra.
  - replace (2 * G / n_min * d) with (2 * G * d * / n_min) by (field; lra).
    apply Rmult_le_compat_l; [nra|apply Rinv_le_contravar; lra].
Qed.

(** Strongly convex argmin with tolerance, one record added or removed, the loss averaged over the
    records that are there, both sizes at least a public n_min: 2G/(lambda n_min) + 2 tau/lambda. *)
Theorem argmin_sensitivity_add_remove (lam tau n_min : R) (solve : list X -> V) :
  0 < lam -> 0 <= tau -> 0 < n_min -> 0 <= G ->
  (forall data, near_minimum lam tau (own_objective data) (solve data)) ->
  sensitivity
    (fun l l' => add_remove_one l l' /\ n_min <= INR (length l) /\ n_min <= INR (length l'))
    solve (2 * G / (lam * n_min) + 2 * tau / lam).
Proof.
  intros Hl Ht Hn HG N ? ? [[before after z|before after z] [H H']].
  - apply argmin_remove with before after z; auto.
  - rewrite norm_sub_comm; apply argmin_remove with before after z; auto.
Qed.

(** Strongly convex argmin solved exactly, replace-one: 2G/(lambda n)
    (Chaudhuri, Monteleoni and Sarwate 2011, Corollary 8, without differentiability). *)
Corollary exact_argmin_sensitivity_replace (lam n : R) (solve : list X -> V) :
  0 < lam -> 0 < n -> 0 <= G ->
  (forall data, strongly_convex lam (objective n data)) ->
  (forall data, minimises (objective n data) (solve data)) ->
  sensitivity replace_one solve (2 * G / (lam * n)).
Proof.
  intros Hl Hn HG SC Min.
  replace (2 * G / (lam * n)) with (2 * G / (lam * n) + 2 * 0 / lam) by (field; lra).
  apply argmin_sensitivity_replace; auto using near_minimum_of_minimiser; lra.
Qed.

End StronglyConvex.
