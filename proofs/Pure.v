(** Pure differential privacy: no outcome is more than e^eps times as likely on a neighbour. Adaptive
    composition with filters, groups, Laplace noise rounded to any grid, randomised response. *)

From Coq Require Import Reals List Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian.
Import ListNotations.
Open Scope R_scope.

Definition pure {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) (eps : R) : Prop :=
  forall x y, adj x y -> forall a, In a l -> M x a <= exp eps * M y a.

(** Pure DP is (eps, 0)-DP. *)
Theorem pure_dp {A D} (adj : D -> D -> Prop) (l : list A) M eps :
  pure adj l M eps -> dp adj l M eps 0.
Proof.
  intros H x y Hxy event; unfold prob; rewrite <- total_scal, Rplus_0_r.
  apply total_le; intros a I; destruct (event a); [apply H; assumption|lra].
Qed.

(** k steps of the neighbouring relation: k eps (Dwork and Roth 2014, Theorem 2.2). *)
Theorem pure_group {A D} (adj : D -> D -> Prop) (l : list A) M eps k :
  pure adj l M eps -> pure (steps adj k) l M (INR k * eps).
Proof.
  intros H; induction k as [|k IH]; intros x y S a I.
  - simpl in S; subst y; simpl; rewrite Rmult_0_l, exp_0; lra.
  - destruct S as (z & S & N); rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, Rmult_assoc.
    eapply Rle_trans; [apply (IH x z S a I)|].
    apply Rmult_le_compat_l; [left; apply exp_pos|apply H; assumption].
Qed.

(** ** Composition *)

Section Composition.

Context {A D : Type} (adj : D -> D -> Prop) (outcomes : list A -> list A).
Context (law : D -> list A -> A -> R) (cost : list A -> R).

Hypothesis laws : forall x h, nonneg (outcomes h) (law x h).
Hypothesis rounds_pure : forall h, pure adj (outcomes h) (fun x => law x h) (cost h).

Lemma run_pure T x y :
  adj x y -> forall h, In h (transcripts outcomes T) ->
  0 <= run (law y) h /\ run (law x) h <= exp (spent cost h) * run (law y) h.
Proof.
  intros N; induction T as [|T IH]; intros h I.
  - destruct I as [<-|[]]; simpl; rewrite exp_0; lra.
  - destruct h as [|a h]; [exfalso; apply transcripts_length in I; discriminate|].
    apply in_transcripts_S in I as [I J]; destruct (IH h I) as [P B]; simpl.
    pose proof (laws y h a J) as Py; pose proof (laws x h a J) as Px.
    split; [apply Rmult_le_pos; assumption|]; rewrite exp_plus.
    pose proof (rounds_pure h x y N a J) as R; pose proof (exp_pos (spent cost h)).
    eapply Rle_trans; [apply Rmult_le_compat_r; [exact Px|exact B]|].
    replace (exp (spent cost h) * exp (cost h) * (run (law y) h * law y h a))
      with (exp (spent cost h) * run (law y) h * (exp (cost h) * law y h a)) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|exact R].
Qed.

(** T adaptive rounds whose costs may depend on the messages, in no transcript more than the budget
    (Dwork and Roth 2014, Theorem 3.14, for costs fixed beforehand). *)
Theorem pure_filter T budget :
  (forall h, In h (transcripts outcomes T) -> spent cost h <= budget) ->
  pure adj (transcripts outcomes T) (fun x => run (law x)) budget.
Proof.
  intros Sp x y N h I; destruct (run_pure T x y N h I) as [P B].
  eapply Rle_trans; [exact B|]; apply Rmult_le_compat_r; [exact P|apply exp_le, Sp, I].
Qed.

End Composition.

(** Costs fixed beforehand add up: round t may be any mechanism of eps_t, chosen in view of all
    messages. *)
Corollary pure_composition {A D} (adj : D -> D -> Prop) (outcomes : list A -> list A)
  (law : D -> list A -> A -> R) (eps : nat -> R) T :
  (forall x h, nonneg (outcomes h) (law x h)) ->
  (forall h, pure adj (outcomes h) (fun x => law x h) (eps (length h))) ->
  pure adj (transcripts outcomes T) (fun x => run (law x)) (total (seq 0 T) eps).
Proof.
  intros L P; apply (pure_filter adj outcomes law (fun h => eps (length h)) L P).
  intros h I; rewrite <- (transcripts_length _ _ _ I); clear I; right.
  induction h as [|a h IH]; [reflexivity|].
  cbn [spent length]; rewrite IH, seq_S, total_app; simpl; ring.
Qed.

(** Log-densities that move by at most eps; what is impossible stays so. *)
Theorem pure_of_losses {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) eps :
  (forall x a, In a l -> 0 <= M x a) ->
  (forall x y a, adj x y -> In a l -> M y a = 0 -> M x a = 0) ->
  (forall x y a, adj x y -> In a l -> Rabs (ln (M x a) - ln (M y a)) <= eps) ->
  pure adj l M eps.
Proof.
  intros P Z H x y N a I; specialize (H x y a N I); pose proof (Rle_abs (ln (M x a) - ln (M y a))).
  destruct (Rle_lt_or_eq_dec _ _ (P y a I)) as [Py|Zy];
    [|rewrite <- Zy, (Z x y a N I (eq_sym Zy)); lra].
  destruct (Rle_lt_or_eq_dec _ _ (P x a I)) as [Px|Zx];
    [|rewrite <- Zx; apply Rmult_le_pos; [left; apply exp_pos|lra]].
  rewrite <- (exp_ln (M x a)), <- (exp_ln (M y a)), <- exp_plus by assumption.
  apply exp_le; lra.
Qed.

(** ** Laplace noise *)

(** The distribution function of the Laplace law of scale 1. *)
Definition laplace_cdf (x : R) : R := if Rle_dec x 0 then exp x / 2 else 1 - exp (- x) / 2.

Lemma laplace_low x : x <= 0 -> laplace_cdf x = exp x / 2.
Proof. intros H; unfold laplace_cdf; destruct (Rle_dec x 0); [reflexivity|contradiction]. Qed.

Lemma laplace_high x : 0 <= x -> laplace_cdf x = 1 - exp (- x) / 2.
Proof.
  intros H; unfold laplace_cdf; destruct (Rle_dec x 0); [|reflexivity].
  replace x with 0 by lra; rewrite Ropp_0, exp_0; lra.
Qed.

Lemma laplace_symmetric x : laplace_cdf (- x) = 1 - laplace_cdf x.
Proof.
  destruct (Rle_dec x 0).
  - rewrite laplace_high, laplace_low, Ropp_involutive by lra; ring.
  - rewrite laplace_low, laplace_high by lra; ring.
Qed.

Lemma laplace_pos x : 0 <= laplace_cdf x.
Proof.
  pose proof (exp_pos x); destruct (Rle_dec x 0).
  - rewrite laplace_low by assumption; lra.
  - rewrite laplace_high by lra; pose proof (exp_le (- x) 0 ltac:(lra)); rewrite exp_0 in *; lra.
Qed.

(** Moved by d, an interval is at most e^|d| times as likely. *)
Definition moves d t u : Prop :=
  laplace_cdf (u - d) - laplace_cdf (t - d) <= exp (Rabs d) * (laplace_cdf u - laplace_cdf t).

Lemma moves_trans d t c u : moves d t c -> moves d c u -> moves d t u.
Proof. unfold moves; lra. Qed.

Lemma moves_piece d t u :
  t <= u -> u <= 0 \/ 0 <= t -> u <= d \/ d <= t -> moves d t u.
Proof.
  intros Le Zero Moved; unfold moves.
  assert (Scale : forall k a, 0 <= a -> exp k * a <= exp (Rabs d) * a \/ Rabs d < k).
  { intros k a Ha; destruct (Rle_dec k (Rabs d)) as [L|L]; [left|right; lra].
    apply Rmult_le_compat_r; [exact Ha|apply exp_le, L]. }
  pose proof (Rle_abs d); pose proof (Rle_abs (- d)) as Neg; rewrite Rabs_Ropp in Neg.
  pose proof (exp_le t u Le) as Up; pose proof (exp_le (- u) (- t) ltac:(lra)) as Down.
  destruct Zero as [Z|Z]; destruct Moved as [M|M].
  - rewrite !laplace_low by lra; replace (u - d) with (- d + u) by ring.
    replace (t - d) with (- d + t) by ring; rewrite !exp_plus.
    destruct (Scale (- d) ((exp u - exp t) / 2)); lra.
  - rewrite (laplace_high (u - d)), (laplace_high (t - d)), !laplace_low by lra.
    replace (- (u - d)) with ((d - t - u) + t) by ring.
    replace (- (t - d)) with ((d - t - u) + u) by ring; rewrite !exp_plus.
    destruct (Scale (d - t - u) ((exp u - exp t) / 2)) as [B|B]; [lra|lra|].
    rewrite Rabs_left1 in B by lra; lra.
  - rewrite (laplace_low (u - d)), (laplace_low (t - d)), !laplace_high by lra.
    replace (u - d) with ((u + t - d) + - t) by ring.
    replace (t - d) with ((u + t - d) + - u) by ring; rewrite !exp_plus.
    destruct (Scale (u + t - d) ((exp (- t) - exp (- u)) / 2)) as [B|B]; [lra|lra|].
    rewrite Rabs_right in B by lra; lra.
  - rewrite !laplace_high by lra; replace (- (u - d)) with (d + - u) by ring.
    replace (- (t - d)) with (d + - t) by ring; rewrite !exp_plus.
    destruct (Scale d ((exp (- t) - exp (- u)) / 2)); lra.
Qed.

Lemma moves_interval d t u : t <= u -> moves d t u.
Proof.
  assert (Side : forall t u, t <= u -> u <= 0 \/ 0 <= t -> moves d t u).
  { clear; intros t u Le Z; destruct (Rle_dec u d); [apply moves_piece; auto|].
    destruct (Rle_dec d t); [apply moves_piece; auto|].
    apply moves_trans with d; apply moves_piece; lra. }
  intros Le; destruct (Rle_dec u 0); [auto|]; destruct (Rle_dec 0 t); [auto|].
  apply moves_trans with 0; apply Side; lra.
Qed.

Lemma laplace_lower_tail d u : laplace_cdf (u - d) <= exp (Rabs d) * laplace_cdf u.
Proof.
  destruct (Rle_dec (laplace_cdf (u - d)) (exp (Rabs d) * laplace_cdf u)) as [L|L]; [exact L|].
  exfalso; set (gap := laplace_cdf (u - d) - exp (Rabs d) * laplace_cdf u).
  assert (G : 0 < gap) by (unfold gap; lra).
  assert (Far : exists t, t <= u /\ t <= d /\ t <= d + ln gap).
  { exists (Rmin u (Rmin d (d + ln gap))).
    pose proof (Rmin_l u (Rmin d (d + ln gap))); pose proof (Rmin_r u (Rmin d (d + ln gap))).
    pose proof (Rmin_l d (d + ln gap)); pose proof (Rmin_r d (d + ln gap)); lra. }
  destruct Far as (t & Lu & Ld & Lg).
  pose proof (moves_interval d t u ltac:(lra)) as M; unfold moves in M.
  pose proof (laplace_pos t) as P; pose proof (exp_pos (Rabs d)).
  pose proof (exp_le (t - d) (ln gap) ltac:(lra)) as B; rewrite exp_ln in B by exact G.
  rewrite (laplace_low (t - d)) in M by lra.
  assert (0 <= exp (Rabs d) * laplace_cdf t) by (apply Rmult_le_pos; lra).
  unfold gap in *; lra.
Qed.

Lemma laplace_upper_tail d t : 1 - laplace_cdf (t - d) <= exp (Rabs d) * (1 - laplace_cdf t).
Proof.
  rewrite <- !laplace_symmetric; replace (- (t - d)) with (- t - - d) by ring.
  rewrite <- (Rabs_Ropp d); apply laplace_lower_tail.
Qed.

(** Probability up to a point, mean m, scale b; and of each cell of a grid. *)
Definition laplace_below (m b : R) (t : Rbar) : R :=
  match t with Finite x => laplace_cdf ((x - m) / b) | p_infty => 1 | m_infty => 0 end.
Definition rounded_laplace (m b : R) : Rbar * Rbar -> R := increment (laplace_below m b).

Lemma rounded_laplace_moved m m' b c :
  0 < b -> Rbar_le (fst c) (snd c) ->
  rounded_laplace m b c <= exp (Rabs (m - m') / b) * rounded_laplace m' b c.
Proof.
  intros B Le; set (d := (m - m') / b).
  assert (E : Rabs (m - m') / b = Rabs d).
  { unfold d, Rdiv; rewrite Rabs_mult, (Rabs_right (/ b)); [reflexivity|].
    apply Rle_ge, Rlt_le, Rinv_0_lt_compat, B. }
  assert (Moved : forall x, (x - m) / b = (x - m') / b - d) by (intros; unfold d; field; lra).
  rewrite E; unfold rounded_laplace, increment; destruct c as [lo hi]; cbn [fst snd] in *.
  pose proof (exp_le 0 (Rabs d) (Rabs_pos d)) as One; rewrite exp_0 in One.
  destruct lo as [t| |], hi as [u| |]; simpl in Le |- *; try contradiction; rewrite ?Moved;
    try (rewrite ?Rminus_0_r, ?Rminus_diag_eq by reflexivity; lra).
  - apply moves_interval; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, B|lra].
  - apply laplace_upper_tail.
  - rewrite !Rminus_0_r; apply laplace_lower_tail.
Qed.

Lemma laplace_increasing t u : t <= u -> laplace_cdf t <= laplace_cdf u.
Proof.
  intros Le; destruct (Rle_dec u 0); [rewrite !laplace_low by lra; pose proof (exp_le t u Le); lra|].
  destruct (Rle_dec 0 t).
  - rewrite !laplace_high by lra; pose proof (exp_le (- u) (- t) ltac:(lra)); lra.
  - rewrite laplace_low, laplace_high by lra.
    pose proof (exp_le t 0 ltac:(lra)); pose proof (exp_le (- u) 0 ltac:(lra)).
    rewrite exp_0 in *; lra.
Qed.

Lemma rounded_laplace_distribution m b cuts :
  0 < b -> ascending m_infty cuts ->
  distribution (cells m_infty cuts) (rounded_laplace m b).
Proof.
  intros B Up; split.
  - intros c I; apply cells_ordered in I; [|exact Up].
    unfold rounded_laplace, increment; destruct c as [lo hi]; cbn [fst snd] in *.
    assert (Scaled : forall x y, x <= y -> (x - m) / b <= (y - m) / b).
    { intros x y L; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, B|lra]. }
    destruct lo as [t| |], hi as [u| |]; simpl in I |- *; try contradiction; try lra.
    + pose proof (laplace_increasing _ _ (Scaled t u I)); lra.
    + pose proof (laplace_pos (- ((t - m) / b))) as P; rewrite laplace_symmetric in P; lra.
    + pose proof (laplace_pos ((u - m) / b)); lra.
  - unfold rounded_laplace; rewrite cells_total; simpl; ring.
Qed.

(** Noise of scale b on a number that moves by at most Delta, rounded to any grid: Delta / b
    (Dwork and Roth 2014, Theorem 3.6). *)
Theorem laplace_pure {D} (adj : D -> D -> Prop) (q : D -> R) b Delta cuts :
  0 < b -> ascending m_infty cuts -> (forall x y, adj x y -> Rabs (q x - q y) <= Delta) ->
  pure adj (cells m_infty cuts) (fun x => rounded_laplace (q x) b) (Delta / b).
Proof.
  intros B Up Moves x y N c I.
  eapply Rle_trans; [apply rounded_laplace_moved with (m' := q y); [exact B|]|].
  - apply (cells_ordered m_infty cuts c Up I).
  - apply Rmult_le_compat_r; [apply (rounded_laplace_distribution (q y) b cuts B Up), I|].
    apply exp_le, Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, B|apply Moves, N].
Qed.

(** Fresh noise on every coordinate of [q x], each rounded to a grid of its own. *)
Definition laplace_vector {D} (q : D -> nat -> R) (b : R) (x : D) : list (Rbar * Rbar) -> R :=
  run (fun h => rounded_laplace (q x (length h)) b).

Lemma laplace_vector_distribution {D} (q : D -> nat -> R) b d (cuts : list (Rbar * Rbar) -> list R) x :
  0 < b -> (forall h, ascending m_infty (cuts h)) ->
  distribution (transcripts (fun h => cells m_infty (cuts h)) d) (laplace_vector q b x).
Proof.
  intros B Up; apply run_distribution; intros h; apply rounded_laplace_distribution; auto.
Qed.

(** A vector of d numbers that move by at most Delta in l1, each coordinate rounded to a grid of its
    own: Delta / b. *)
Theorem vector_laplace_pure {D} (adj : D -> D -> Prop) (q : D -> nat -> R) b Delta d
  (cuts : list (Rbar * Rbar) -> list R) :
  0 < b -> (forall h, ascending m_infty (cuts h)) ->
  (forall x y, adj x y -> total (seq 0 d) (fun i => Rabs (q x i - q y i)) <= Delta) ->
  pure adj (transcripts (fun h => cells m_infty (cuts h)) d)
    (laplace_vector q b) (Delta / b).
Proof.
  intros B Up Moves x y N h I.
  set (cost := fun h : list (Rbar * Rbar) => Rabs (q x (length h) - q y (length h)) / b).
  apply (pure_filter (fun u v => u = x /\ v = y) (fun h => cells m_infty (cuts h))
           (fun u h => rounded_laplace (q u (length h)) b) cost) with (T := d);
    [| | |auto|exact I].
  - intros u h'; apply rounded_laplace_distribution; auto.
  - intros h' u v [-> ->] c J; apply rounded_laplace_moved; [exact B|].
    apply (cells_ordered m_infty (cuts h') c (Up h') J).
  - assert (Spent : forall T h, length h = T ->
              spent cost h = total (seq 0 T) (fun i => Rabs (q x i - q y i)) / b).
    { clear; intros T h <-; induction h as [|c h IH]; [simpl; unfold Rdiv; ring|].
      cbn [spent length]; rewrite IH, seq_S, total_app; unfold cost; simpl; unfold Rdiv; ring. }
    intros h' J; rewrite (Spent d h' (transcripts_length _ _ _ J)).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, B|apply Moves, N].
Qed.

(** ** Randomised response *)

(** The true one of k answers with probability p, any other with (1 - p) / (k - 1). *)
Definition response {A} (equal : A -> A -> bool) (p : R) (k : nat) (truth answer : A) : R :=
  if equal truth answer then p else (1 - p) / (INR k - 1).

(** (Warner 1965.) *)
Theorem response_pure {A} (equal : A -> A -> bool) p k eps (answers : list A) :
  0 < p < 1 -> (2 <= k)%nat -> 0 <= eps ->
  p * (INR k - 1) / (1 - p) <= exp eps -> (1 - p) / (p * (INR k - 1)) <= exp eps ->
  pure (fun _ _ => True) answers (response equal p k) eps.
Proof.
  intros P K E Odds Other t t' _ a _; unfold response.
  apply le_INR in K; change (INR 2) with (1 + 1) in K.
  pose proof (exp_le 0 eps E) as One; rewrite exp_0 in One.
  assert (Q : 0 < (1 - p) / (INR k - 1)) by (apply Rdiv_lt_0_compat; lra).
  assert (H : p <= exp eps * ((1 - p) / (INR k - 1))).
  { apply Rle_trans with (p * (INR k - 1) / (1 - p) * ((1 - p) / (INR k - 1)));
      [right; field; lra|apply Rmult_le_compat_r; lra]. }
  assert (H' : (1 - p) / (INR k - 1) <= exp eps * p).
  { apply Rle_trans with ((1 - p) / (p * (INR k - 1)) * p);
      [right; field; lra|apply Rmult_le_compat_r; lra]. }
  destruct (equal t a), (equal t' a); try assumption; nra.
Qed.

Lemma response_distribution p k truth :
  0 <= p <= 1 -> (2 <= k)%nat -> (truth < k)%nat ->
  distribution (seq 0 k) (response Nat.eqb p k truth).
Proof.
  intros P K T; pose proof (le_INR _ _ K) as L; change (INR 2) with (1 + 1) in L.
  assert (Q : 0 <= (1 - p) / (INR k - 1))
    by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  split; [intros a _; unfold response; destruct (Nat.eqb truth a); lra|].
  assert (Once : forall c, total (seq 0 k) (fun a => if Nat.eqb truth a then c else 0) = c).
  { intros c; clear K L Q; revert T; induction k as [|k IH]; [lia|]; intros T; rewrite total_seq_S.
    destruct (Nat.eq_dec truth k) as [->|N].
    - rewrite Nat.eqb_refl, total_zero; [ring|].
      intros a I; apply in_seq in I; destruct (Nat.eqb_spec k a); [lia|reflexivity].
    - rewrite IH by lia; destruct (Nat.eqb_spec truth k); [lia|ring]. }
  set (q := (1 - p) / (INR k - 1)) in *.
  transitivity (total (seq 0 k) (fun a => (if Nat.eqb truth a then p - q else 0) + q)).
  - apply total_ext; intros a _; unfold response; fold q; destruct (Nat.eqb truth a); ring.
  - rewrite total_plus, Once, total_const, seq_length; unfold q; field; lra.
Qed.
