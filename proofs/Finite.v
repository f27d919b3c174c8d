(** Renyi differential privacy and zCDP of mechanisms with finitely many outcomes.

    Outcomes are the entries of a list; [p a] is the probability of entry [a]. Floating-point
    output is finite, so this is not a toy: Gaussian.v brings the real Gaussian here. *)

From Coq Require Import Reals List Lra Lia Psatz Bool.
From Dpledger Require Import Sums Conversion.
Import ListNotations.
Open Scope R_scope.

(** The exponential lies above its tangents: all convexity below comes from here. *)
Lemma exp_tangent x y : exp x * (1 + y - x) <= exp y.
Proof.
  replace y with (x + (y - x)) at 2 by ring; rewrite exp_plus.
  apply Rmult_le_compat_l; [left; apply exp_pos|].
  destruct (Req_dec (y - x) 0) as [E|N]; [rewrite E, exp_0; lra|].
  pose proof (exp_ineq1 (y - x) N); lra.
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; apply exp_increasing; exact H|right; reflexivity]. Qed.

(** ** Definitions *)

Definition nonneg {A} (l : list A) (p : A -> R) : Prop := forall a, In a l -> 0 <= p a.
Definition distribution {A} (l : list A) (p : A -> R) : Prop := nonneg l p /\ total l p = 1.

(** p^alpha q^(1-alpha), which is 0 when p = 0. The case q = 0 < p, where the divergence is
    infinite, is excluded by [covered]. *)
Definition renyi_term (alpha p q : R) : R :=
  if Rle_dec p 0 then 0
  else if Rle_dec q 0 then 0
  else exp (alpha * ln p + (1 - alpha) * ln q).

Definition moment {A} (alpha : R) (l : list A) (p q : A -> R) : R :=
  total l (fun a => renyi_term alpha (p a) (q a)).

Definition covered {A} (l : list A) (p q : A -> R) : Prop := forall a, In a l -> q a = 0 -> p a = 0.

(** D_alpha(p || q) (Renyi 1961), for [covered] pairs. *)
Definition renyi {A} (alpha : R) (l : list A) (p q : A -> R) : R :=
  ln (moment alpha l p q) / (alpha - 1).

(** D_alpha(p || q) <= eps, without logarithms. *)
Definition rdp_pair {A} (l : list A) (p q : A -> R) (alpha eps : R) : Prop :=
  covered l p q /\ moment alpha l p q <= exp ((alpha - 1) * eps).

(** (alpha, eps)-RDP of a mechanism [M] under [adj] (Mironov 2017, Definition 4). *)
Definition rdp {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) (alpha eps : R) : Prop :=
  forall x y, adj x y -> rdp_pair l (M x) (M y) alpha eps.

(** rho-zCDP (Bun and Steinke 2016, Definition 1.1). *)
Definition zcdp {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) (rho : R) : Prop :=
  forall alpha, 1 < alpha -> rdp adj l M alpha (rho * alpha).

(** ** The term p^alpha q^(1-alpha) *)

Section Term.

Variable alpha : R.

Lemma renyi_term_pos p q :
  0 < p -> 0 < q -> renyi_term alpha p q = exp (alpha * ln p + (1 - alpha) * ln q).
Proof.
  intros; unfold renyi_term; destruct (Rle_dec p 0); [lra|]; destruct (Rle_dec q 0); [lra|auto].
Qed.

Lemma renyi_term_nonneg p q : 0 <= renyi_term alpha p q.
Proof.
  unfold renyi_term; destruct (Rle_dec p 0); [lra|]; destruct (Rle_dec q 0); [lra|].
  left; apply exp_pos.
Qed.

Lemma renyi_term_0_l q : renyi_term alpha 0 q = 0.
Proof. unfold renyi_term; destruct (Rle_dec 0 0); lra. Qed.

Lemma renyi_term_0_r p : renyi_term alpha p 0 = 0.
Proof. unfold renyi_term; destruct (Rle_dec p 0), (Rle_dec 0 0); lra. Qed.

Lemma renyi_term_diag p : 0 <= p -> renyi_term alpha p p = p.
Proof.
  intros [H|<-]; [|apply renyi_term_0_l].
  rewrite renyi_term_pos by exact H.
  replace (alpha * ln p + (1 - alpha) * ln p) with (ln p) by ring; apply exp_ln; exact H.
Qed.

Lemma renyi_term_mult p q p' q' :
  0 <= p -> 0 <= q -> 0 <= p' -> 0 <= q' ->
  renyi_term alpha (p * p') (q * q') = renyi_term alpha p q * renyi_term alpha p' q'.
Proof.
  intros [Hp|<-] [Hq|<-] [Hp'|<-] [Hq'|<-];
    rewrite ?Rmult_0_l, ?Rmult_0_r, ?renyi_term_0_l, ?renyi_term_0_r, ?Rmult_0_l, ?Rmult_0_r;
    try reflexivity.
  rewrite !renyi_term_pos, <- exp_plus, !ln_mult by (try apply Rmult_lt_0_compat; assumption).
  f_equal; ring.
Qed.

(** The tangent at the ratio e^s, homogeneous in (p, q). *)
Lemma renyi_term_tangent s p q :
  1 < alpha -> 0 <= p -> 0 <= q -> (q = 0 -> p = 0) ->
  alpha * exp ((alpha - 1) * s) * p - (alpha - 1) * exp (alpha * s) * q <= renyi_term alpha p q.
Proof.
  intros Ha Hp Hq Hc; pose proof (exp_pos (alpha * s)).
  destruct Hp as [Hp|<-].
  2:{ rewrite renyi_term_0_l.
      assert (0 <= (alpha - 1) * exp (alpha * s) * q) by (repeat apply Rmult_le_pos; lra); lra. }
  destruct Hq as [Hq|E]; [|symmetry in E; specialize (Hc E); lra].
  rewrite renyi_term_pos by assumption.
  rewrite <- (exp_ln p) at 1 by exact Hp; rewrite <- (exp_ln q) at 1 by exact Hq.
  rewrite !Rmult_assoc, <- !exp_plus.
  pose proof (exp_tangent ((alpha - 1) * s + ln p) (alpha * ln p + (1 - alpha) * ln q)).
  pose proof (exp_tangent ((alpha - 1) * s + ln p) (alpha * s + ln q)).
  nra.
Qed.

(** The tangent at the ratio of p and q touches. *)
Lemma renyi_term_touches p q :
  0 < p -> 0 < q ->
  alpha * exp ((alpha - 1) * (ln p - ln q)) * p - (alpha - 1) * exp (alpha * (ln p - ln q)) * q
    = renyi_term alpha p q.
Proof.
  intros Hp Hq; rewrite renyi_term_pos by assumption.
  rewrite <- (exp_ln p) at 2 by exact Hp; rewrite <- (exp_ln q) at 3 by exact Hq.
  rewrite !Rmult_assoc, <- !exp_plus.
  replace ((alpha - 1) * (ln p - ln q) + ln p) with (alpha * ln p + (1 - alpha) * ln q) by ring.
  replace (alpha * (ln p - ln q) + ln q) with (alpha * ln p + (1 - alpha) * ln q) by ring.
  ring.
Qed.

(** Joint convexity: merging outcomes lowers the moment. *)
Lemma renyi_term_total {A} (l : list A) (p q : A -> R) :
  1 < alpha -> nonneg l p -> nonneg l q -> covered l p q ->
  renyi_term alpha (total l p) (total l q) <= moment alpha l p q.
Proof.
  intros Ha Hp Hq Hc.
  assert (0 <= moment alpha l p q) by (apply total_nonneg; intros; apply renyi_term_nonneg).
  destruct (total_nonneg l p Hp) as [Hp0|<-]; [|rewrite renyi_term_0_l; assumption].
  destruct (total_nonneg l q Hq) as [Hq0|<-]; [|rewrite renyi_term_0_r; assumption].
  rewrite <- renyi_term_touches by assumption; set (s := ln _ - ln _).
  rewrite <- !total_scal, <- total_minus.
  apply total_le; intros a Ia; apply renyi_term_tangent; auto.
Qed.

End Term.

Lemma rdp_pair_weaken {A} (l : list A) p q alpha eps eps' :
  1 < alpha -> eps <= eps' -> rdp_pair l p q alpha eps -> rdp_pair l p q alpha eps'.
Proof.
  intros Ha He [Hc Hm]; split; [exact Hc|].
  eapply Rle_trans; [exact Hm|apply exp_le; nra].
Qed.

Lemma rdp_pair_refl {A} (l : list A) p alpha : distribution l p -> rdp_pair l p p alpha 0.
Proof.
  intros [Hp H1]; split; [intros a _ E; exact E|].
  unfold moment; rewrite (total_ext l _ p), H1, Rmult_0_r, exp_0; [lra|].
  intros a Ia; apply renyi_term_diag; auto.
Qed.

(** [rdp_pair] says what it should: it bounds the Renyi divergence. *)
Theorem rdp_pair_renyi {A} (l : list A) (p q : A -> R) (alpha eps : R) :
  1 < alpha -> distribution l p -> distribution l q -> covered l p q ->
  rdp_pair l p q alpha eps <-> renyi alpha l p q <= eps.
Proof.
  intros Ha [Hp Sp] [Hq Sq] Hc.
  assert (M1 : 1 <= moment alpha l p q).
  { eapply Rle_trans; [|apply renyi_term_total; auto].
    rewrite Sp, Sq, renyi_term_diag; lra. }
  assert (E : moment alpha l p q = exp ((alpha - 1) * renyi alpha l p q)).
  { unfold renyi; replace ((alpha - 1) * (ln (moment alpha l p q) / (alpha - 1)))
      with (ln (moment alpha l p q)) by (field; lra); rewrite exp_ln; lra. }
  unfold rdp_pair; rewrite E; split.
  - intros [_ H]; apply Rnot_lt_le; intros L.
    apply (Rlt_irrefl (exp ((alpha - 1) * eps))), Rlt_le_trans with (2 := H).
    apply exp_increasing, Rmult_lt_compat_l; lra.
  - intros H; split; [exact Hc|]; apply exp_le, Rmult_le_compat_l; lra.
Qed.

(** ** Post-processing *)

Section PostProcessing.

Context {A B : Type} (l : list A) (l' : list B) (kernel : A -> B -> R).
Hypothesis markov : forall a, In a l -> distribution l' (kernel a).

(** The law of the output of [kernel] when its input has law [p]. *)
Definition push (p : A -> R) (b : B) : R := total l (fun a => p a * kernel a b).

Lemma push_nonneg p b : nonneg l p -> In b l' -> nonneg l (fun a => p a * kernel a b).
Proof. intros Hp Ib a Ia; apply Rmult_le_pos; [auto|apply markov; auto]. Qed.

(** Any Markov kernel may be applied to the output at no cost, at every order. *)
Theorem post_processing (p q : A -> R) (alpha eps : R) :
  1 < alpha -> nonneg l p -> nonneg l q ->
  rdp_pair l p q alpha eps -> rdp_pair l' (push p) (push q) alpha eps.
Proof.
  intros Ha Hp Hq [Hc Hm]; split.
  - intros b Ib Hb; apply total_zero; intros a Ia.
    pose proof (total_zero_inv l _ (push_nonneg q b Hq Ib) Hb a Ia) as Z; simpl in Z.
    destruct (Rmult_integral _ _ Z) as [Z'|Z']; [rewrite (Hc a Ia Z')|rewrite Z']; ring.
  - eapply Rle_trans; [|exact Hm].
    transitivity (total l' (fun b => total l (fun a => renyi_term alpha (p a) (q a) * kernel a b))).
    + apply total_le; intros b Ib; eapply Rle_trans.
      * apply renyi_term_total; [exact Ha|apply push_nonneg; auto|apply push_nonneg; auto|].
        intros a Ia Z; destruct (Rmult_integral _ _ Z) as [Z'|Z'];
          [rewrite (Hc a Ia Z')|rewrite Z']; ring.
      * apply Req_le, total_ext; intros a Ia.
        destruct (markov a Ia) as [K _]; rewrite renyi_term_mult, renyi_term_diag; auto.
    + rewrite <- total_swap; apply Req_le, total_ext; intros a Ia.
      rewrite total_scal; destruct (markov a Ia) as [_ ->]; ring.
Qed.

End PostProcessing.

(** ** Products and adaptive composition *)

Section Composition.

Context {A B : Type} (l : list A) (l' : A -> list B).

(** First an outcome of [l], then one of [l' a]: the second list may depend on the first. *)
Definition pairs : list (A * B) := flat_map (fun a => map (pair a) (l' a)) l.
Definition joint (p : A -> R) (k : A -> B -> R) (ab : A * B) : R :=
  p (fst ab) * k (fst ab) (snd ab).

Lemma in_pairs a b : In (a, b) pairs -> In a l /\ In b (l' a).
Proof.
  intros H; apply in_flat_map in H as (a' & Ia & H); apply in_map_iff in H as (b' & E & Ib).
  injection E as -> ->; auto.
Qed.

Lemma total_pairs f : total pairs f = total l (fun a => total (l' a) (fun b => f (a, b))).
Proof.
  unfold pairs; rewrite total_flat_map; apply total_ext; intros a _; apply total_map.
Qed.

Lemma moment_joint alpha p q k k' :
  nonneg l p -> nonneg l q ->
  (forall a, In a l -> nonneg (l' a) (k a)) -> (forall a, In a l -> nonneg (l' a) (k' a)) ->
  moment alpha pairs (joint p k) (joint q k')
    = total l (fun a => renyi_term alpha (p a) (q a) * moment alpha (l' a) (k a) (k' a)).
Proof.
  intros Hp Hq Hk Hk'; unfold moment; rewrite total_pairs.
  apply total_ext; intros a Ia; rewrite <- total_scal.
  apply total_ext; intros b Ib; unfold joint; simpl.
  specialize (Hk a Ia b Ib); specialize (Hk' a Ia b Ib).
  apply renyi_term_mult; auto.
Qed.

(** Adaptive composition: RDP adds up at equal order, the second mechanism may depend on the
    first outcome (Mironov 2017, Proposition 1). *)
Theorem adaptive_composition p q k k' alpha eps eps' :
  1 < alpha -> nonneg l p -> nonneg l q ->
  (forall a, In a l -> nonneg (l' a) (k a)) -> (forall a, In a l -> nonneg (l' a) (k' a)) ->
  rdp_pair l p q alpha eps -> (forall a, In a l -> rdp_pair (l' a) (k a) (k' a) alpha eps') ->
  rdp_pair pairs (joint p k) (joint q k') alpha (eps + eps').
Proof.
  intros Ha Hp Hq Hk Hk' [Hc Hm] H2; split.
  - intros [a b] I; apply in_pairs in I as [Ia Ib]; unfold joint; simpl; intros Z.
    destruct (Rmult_integral _ _ Z) as [Z'|Z'].
    + rewrite (Hc a Ia Z'); ring.
    + rewrite (proj1 (H2 a Ia) b Ib Z'); ring.
  - rewrite moment_joint by assumption.
    replace ((alpha - 1) * (eps + eps')) with ((alpha - 1) * eps + (alpha - 1) * eps') by ring.
    rewrite exp_plus.
    transitivity (total l (fun a => renyi_term alpha (p a) (q a) * exp ((alpha - 1) * eps'))).
    + apply total_le; intros a Ia; apply Rmult_le_compat_l; [apply renyi_term_nonneg|].
      apply H2; exact Ia.
    + rewrite total_scal_r; apply Rmult_le_compat_r; [left; apply exp_pos|exact Hm].
Qed.

End Composition.

(** The moment, and so the divergence, of independent outcomes is exactly additive. *)
Theorem renyi_product {A B} (l : list A) (l' : list B) p q p' q' alpha :
  1 < alpha -> distribution l p -> distribution l q -> distribution l' p' -> distribution l' q' ->
  covered l p q -> covered l' p' q' ->
  renyi alpha (pairs l (fun _ => l')) (joint p (fun _ => p')) (joint q (fun _ => q'))
    = renyi alpha l p q + renyi alpha l' p' q'.
Proof.
  intros Ha [Hp Sp] [Hq Sq] [Hp' Sp'] [Hq' Sq'] Hc Hc'.
  assert (1 <= moment alpha l p q).
  { eapply Rle_trans; [|apply renyi_term_total; auto]; rewrite Sp, Sq, renyi_term_diag; lra. }
  assert (1 <= moment alpha l' p' q').
  { eapply Rle_trans; [|apply renyi_term_total; auto]; rewrite Sp', Sq', renyi_term_diag; lra. }
  unfold renyi; rewrite moment_joint by auto.
  rewrite total_scal_r; fold (moment alpha l p q).
  rewrite ln_mult by lra; field; lra.
Qed.

(** ** A ledger of T adaptive rounds *)

Section Ledger.

Context {A : Type}.

(** After history [h] (latest message first) the next message is one of [outcomes h]; histories
    are all the adversary sees, and every later choice may depend on them. *)
Variable outcomes : list A -> list A.

Fixpoint transcripts (T : nat) : list (list A) :=
  match T with
  | O => [[]]
  | S T' => flat_map (fun h => map (fun a => a :: h) (outcomes h)) (transcripts T')
  end.

(** Probability of a transcript when [law h] is the law of the next message. *)
Fixpoint run (law : list A -> A -> R) (h : list A) : R :=
  match h with [] => 1 | a :: h' => run law h' * law h' a end.

(** What a history has spent when the round after [h] costs [cost h]. *)
Fixpoint spent (cost : list A -> R) (h : list A) : R :=
  match h with [] => 0 | _ :: h' => spent cost h' + cost h' end.

Lemma in_transcripts_S T a h :
  In (a :: h) (transcripts (S T)) -> In h (transcripts T) /\ In a (outcomes h).
Proof.
  intros H; apply in_flat_map in H as (h' & Ih & H); apply in_map_iff in H as (a' & E & Ia).
  injection E as -> ->; auto.
Qed.

Lemma in_transcripts_cons T h :
  In h (transcripts (S T)) -> exists a h', h = a :: h'.
Proof.
  intros H; apply in_flat_map in H as (h' & _ & H); apply in_map_iff in H as (a & <- & _); eauto.
Qed.

Lemma transcripts_length T h : In h (transcripts T) -> length h = T.
Proof.
  revert h; induction T as [|T IH]; intros h I; [destruct I as [<-|[]]; reflexivity|].
  destruct (in_transcripts_cons _ _ I) as (a & h' & ->).
  apply in_transcripts_S in I as [I _]; simpl; rewrite (IH _ I); reflexivity.
Qed.

Lemma total_transcripts_S T f :
  total (transcripts (S T)) f
    = total (transcripts T) (fun h => total (outcomes h) (fun a => f (a :: h))).
Proof.
  simpl; rewrite total_flat_map; apply total_ext; intros h _; apply total_map.
Qed.

Lemma run_nonneg law T h :
  (forall h, nonneg (outcomes h) (law h)) -> In h (transcripts T) -> 0 <= run law h.
Proof.
  intros Hl; revert h; induction T as [|T IH]; intros h I.
  - destruct I as [<-|[]]; simpl; lra.
  - destruct (in_transcripts_cons _ _ I) as (a & h' & ->).
    apply in_transcripts_S in I as [I Ia]; simpl.
    apply Rmult_le_pos; [auto|apply Hl; exact Ia].
Qed.

(** T rounds of probability laws make a probability law on transcripts. *)
Lemma run_distribution law T :
  (forall h, distribution (outcomes h) (law h)) -> distribution (transcripts T) (run law).
Proof.
  intros Hl; split.
  - intros h I; apply run_nonneg with T; auto; intros h'; apply Hl.
  - induction T as [|T IH]; [simpl; ring|].
    rewrite total_transcripts_S, <- IH; apply total_ext; intros h _; simpl.
    rewrite total_scal; destruct (Hl h) as [_ ->]; ring.
Qed.

Section Filter.

Variables (law law' : list A -> A -> R) (cost : list A -> R) (alpha : R).
Hypothesis Ha : 1 < alpha.
Hypothesis law_nonneg : forall h, nonneg (outcomes h) (law h).
Hypothesis law'_nonneg : forall h, nonneg (outcomes h) (law' h).
Hypothesis round : forall h, rdp_pair (outcomes h) (law h) (law' h) alpha (cost h).

Lemma run_covered T : covered (transcripts T) (run law) (run law').
Proof.
  induction T as [|T IH]; intros h I.
  - destruct I as [<-|[]]; simpl; lra.
  - destruct (in_transcripts_cons _ _ I) as (a & h' & ->).
    apply in_transcripts_S in I as [I Ia]; simpl; intros Z.
    destruct (Rmult_integral _ _ Z) as [Z'|Z'].
    + rewrite (IH h' I Z'); ring.
    + rewrite (proj1 (round h') a Ia Z'); ring.
Qed.

(** Each round, discounted by its own cost, does not raise the moment. *)
Lemma discounted_moment T :
  total (transcripts T)
    (fun h => renyi_term alpha (run law h) (run law' h) * exp (- (alpha - 1) * spent cost h)) <= 1.
Proof.
  induction T as [|T IH].
  - simpl; rewrite renyi_term_diag, Rmult_0_r, exp_0 by lra; lra.
  - rewrite total_transcripts_S; eapply Rle_trans; [|exact IH].
    apply total_le; intros h Ih; simpl.
    set (w := renyi_term alpha (run law h) (run law' h)).
    rewrite (total_ext _ _ (fun a => w * exp (- (alpha - 1) * spent cost h)
                                     * exp (- (alpha - 1) * cost h)
                                     * renyi_term alpha (law h a) (law' h a))).
    + rewrite total_scal; fold (moment alpha (outcomes h) (law h) (law' h)).
      rewrite Rmult_assoc; rewrite <- (Rmult_1_r (w * exp (- (alpha - 1) * spent cost h))) at 2.
      apply Rmult_le_compat_l.
      * apply Rmult_le_pos; [apply renyi_term_nonneg|left; apply exp_pos].
      * destruct (round h) as [_ Hm].
        apply Rmult_le_reg_l with (exp ((alpha - 1) * cost h)); [apply exp_pos|].
        rewrite <- Rmult_assoc, <- exp_plus.
        replace ((alpha - 1) * cost h + - (alpha - 1) * cost h) with 0 by ring.
        rewrite exp_0; lra.
    + intros a Ia; rewrite renyi_term_mult.
      * rewrite Rmult_plus_distr_l, exp_plus; fold w; ring.
      * apply run_nonneg with T; assumption.
      * apply run_nonneg with T; assumption.
      * apply law_nonneg; exact Ia.
      * apply law'_nonneg; exact Ia.
Qed.

(** The filter: costs may be chosen adaptively, as long as no transcript spends more than the
    budget (Feldman and Zrnic 2021, Theorem 4.3, at one order). *)
Theorem adaptive_filter (budget : R) (T : nat) :
  (forall h, In h (transcripts T) -> spent cost h <= budget) ->
  rdp_pair (transcripts T) (run law) (run law') alpha budget.
Proof.
  intros HB; split; [apply run_covered|].
  rewrite <- (Rmult_1_l (exp _)).
  eapply Rle_trans; [|apply Rmult_le_compat_r; [left; apply exp_pos|apply (discounted_moment T)]].
  rewrite <- total_scal_r; apply total_le; intros h Ih.
  rewrite Rmult_assoc, <- exp_plus.
  rewrite <- (Rmult_1_r (renyi_term _ _ _)) at 1.
  apply Rmult_le_compat_l; [apply renyi_term_nonneg|].
  transitivity (exp 0); [rewrite exp_0; lra|apply exp_le].
  specialize (HB h Ih); nra.
Qed.

End Filter.

(** ** Mechanisms on data *)

Context {D : Type} (adj : D -> D -> Prop) (law : D -> list A -> A -> R).
Hypothesis laws : forall d h, distribution (outcomes h) (law d h).

(** zCDP filter: adaptive costs, every transcript within the budget. *)
Theorem zcdp_filter (cost : list A -> R) (budget : R) (T : nat) :
  (forall h, zcdp adj (outcomes h) (fun d => law d h) (cost h)) ->
  (forall h, In h (transcripts T) -> spent cost h <= budget) ->
  zcdp adj (transcripts T) (fun d => run (law d)) budget.
Proof.
  intros Hz HB alpha Ha x y Axy.
  apply adaptive_filter with (cost := fun h => cost h * alpha); auto.
  - intros h; apply laws.
  - intros h; apply laws.
  - intros h; apply Hz; auto.
  - intros h Ih; replace (spent (fun h => cost h * alpha) h) with (spent cost h * alpha).
    + apply Rmult_le_compat_r; [lra|auto].
    + clear Ih; induction h as [|a h IH]; simpl; [ring|rewrite <- IH; ring].
Qed.

Lemma spent_by_round rho h :
  spent (fun h => rho (length h)) h = total (seq 0 (length h)) rho.
Proof.
  induction h as [|a h IH]; [reflexivity|].
  change (length (a :: h)) with (S (length h)); rewrite total_seq_S; simpl; rewrite IH; ring.
Qed.

(** The T-round adaptive ledger: costs fixed beforehand add up, while everything else about a
    round may depend on all messages so far (Bun and Steinke 2016, Lemma 2.3). *)
Theorem zcdp_ledger (rho : nat -> R) (T : nat) :
  (forall h, zcdp adj (outcomes h) (fun d => law d h) (rho (length h))) ->
  zcdp adj (transcripts T) (fun d => run (law d)) (total (seq 0 T) rho).
Proof.
  intros Hz; apply zcdp_filter with (cost := fun h => rho (length h)); [exact Hz|].
  intros h Ih; rewrite spent_by_round, (transcripts_length T h Ih); lra.
Qed.

End Ledger.

(** ** Disjoint parties *)

Section Parties.

Context {A D : Type} (adj : D -> D -> Prop) (outcomes : list A -> list A).

(** Party [party t] speaks in round t; the map is public. Data are one part a party, and
    neighbours differ in the part of one party only. *)
Variable party : nat -> nat.
Variable law : D -> list A -> A -> R.
Hypothesis laws : forall d h, distribution (outcomes h) (law d h).

Definition one_part (x y : nat -> D) : Prop :=
  exists j, adj (x j) (y j) /\ forall i, i <> j -> x i = y i.

Definition speak (x : nat -> D) (h : list A) : A -> R := law (x (party (length h))) h.

(** What the rounds of party [j] cost. *)
Definition cost_of (rho : nat -> R) (j t : nat) : R := if Nat.eqb (party t) j then rho t else 0.

(** Parallel composition: parties that answer each other adaptively cost only as much as the
    most expensive one of them. *)
Theorem parallel_composition (rho : nat -> R) (budget : R) (T : nat) :
  (forall h, zcdp adj (outcomes h) (fun d => law d h) (rho (length h))) ->
  (forall j, total (seq 0 T) (cost_of rho j) <= budget) ->
  zcdp one_part (transcripts outcomes T) (fun x => run (speak x)) budget.
Proof.
  intros Hz HB alpha Ha x y (j & Aj & Eq).
  apply rdp_pair_weaken with (eps := total (seq 0 T) (cost_of rho j) * alpha);
    [exact Ha|apply Rmult_le_compat_r; [lra|apply HB]|].
  apply adaptive_filter with (cost := fun h => cost_of rho j (length h) * alpha); auto.
  - intros h; apply laws.
  - intros h; apply laws.
  - intros h; unfold speak, cost_of.
    destruct (Nat.eqb_spec (party (length h)) j) as [<-|N].
    + apply Hz; auto.
    + rewrite (Eq _ N), Rmult_0_l; apply rdp_pair_refl, laws.
  - intros h Ih.
    rewrite (spent_by_round (fun t => cost_of rho j t * alpha)), total_scal_r.
    rewrite (transcripts_length outcomes T h Ih); lra.
Qed.

End Parties.

(** ** Groups *)

Section Groups.

Context {A D : Type} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R).
Hypothesis laws : forall d, distribution l (M d).

(** Weak triangle inequality: through a middle point at zCDP distances rho1 and rho2, at most
    t rho1 + t/(t-1) rho2 for every t > 1. *)
Lemma zcdp_triangle (p m q : A -> R) (rho1 rho2 t alpha : R) :
  1 < t -> 1 < alpha -> nonneg l p -> nonneg l m -> nonneg l q ->
  (forall beta, 1 < beta -> rdp_pair l p m beta (rho1 * beta)) ->
  (forall beta, 1 < beta -> rdp_pair l m q beta (rho2 * beta)) ->
  rdp_pair l p q alpha ((t * rho1 + t / (t - 1) * rho2) * alpha).
Proof.
  intros Ht Ha Hp Hm Hq H1 H2.
  set (b1 := t * (alpha - 1) + 1); set (b2 := t * alpha / (t - 1)).
  assert (B1 : 1 < b1) by (unfold b1; nra).
  assert (B2 : 1 < b2).
  { unfold b2; apply Rmult_lt_reg_r with (t - 1); [lra|].
    replace (t * alpha / (t - 1) * (t - 1)) with (t * alpha) by (field; lra); nra. }
  destruct (H1 b1 B1) as [C1 M1]; destruct (H2 b2 B2) as [C2 M2]; clear H1 H2.
  split; [intros a Ia Z; auto|].
  set (e1 := (b1 - 1) * (rho1 * b1)) in *; set (e2 := (b2 - 1) * (rho2 * b2)) in *.
  set (w := alpha / b1); set (E := w * e1 + (1 - w) * e2).
  assert (Hw : 0 < w < 1).
  { unfold w; split; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_lt_reg_r with b1; [lra|].
    replace (alpha / b1 * b1) with alpha by (field; lra); unfold b1; nra. }
  replace ((alpha - 1) * ((t * rho1 + t / (t - 1) * rho2) * alpha)) with E.
  2:{ unfold E, w, e1, e2, b2; unfold b1 in *; field; lra. }
  transitivity (total l (fun a => exp E * (w * (renyi_term b1 (p a) (m a) * exp (- e1))
                                   + (1 - w) * (renyi_term b2 (m a) (q a) * exp (- e2))))).
  - apply total_le; intros a Ia.
    assert (0 <= exp E * (w * (renyi_term b1 (p a) (m a) * exp (- e1))
                          + (1 - w) * (renyi_term b2 (m a) (q a) * exp (- e2)))).
    { apply Rmult_le_pos; [left; apply exp_pos|].
      apply Rplus_le_le_0_compat; (apply Rmult_le_pos; [lra|]);
        (apply Rmult_le_pos; [apply renyi_term_nonneg|left; apply exp_pos]). }
    destruct (Hp a Ia) as [Pp|Z]; [|rewrite <- Z at 1; rewrite renyi_term_0_l; assumption].
    assert (Pm : 0 < m a).
    { destruct (Hm a Ia) as [?|Z]; [assumption|]; specialize (C1 a Ia (eq_sym Z)); lra. }
    assert (Pq : 0 < q a).
    { destruct (Hq a Ia) as [?|Z]; [assumption|]; specialize (C2 a Ia (eq_sym Z)); lra. }
    rewrite !renyi_term_pos in * by assumption; rewrite <- !exp_plus.
    set (X := b1 * ln (p a) + (1 - b1) * ln (m a) + - e1).
    set (Y := b2 * ln (m a) + (1 - b2) * ln (q a) + - e2).
    replace (alpha * ln (p a) + (1 - alpha) * ln (q a)) with (E + (w * X + (1 - w) * Y)).
    2:{ unfold E, X, Y, w, b2; unfold b1 in *; field; lra. }
    rewrite exp_plus; apply Rmult_le_compat_l; [left; apply exp_pos|].
    pose proof (exp_tangent (w * X + (1 - w) * Y) X).
    pose proof (exp_tangent (w * X + (1 - w) * Y) Y).
    nra.
  - rewrite total_scal, total_plus, !total_scal, !total_scal_r.
    fold (moment b1 l p m); fold (moment b2 l m q).
    assert (U : forall x e, x <= exp e -> x * exp (- e) <= 1).
    { intros x e Hx; apply Rmult_le_reg_r with (exp e); [apply exp_pos|].
      rewrite Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0; lra. }
    apply U in M1; apply U in M2; rewrite <- (Rmult_1_r (exp E)) at 2.
    apply Rmult_le_compat_l; [left; apply exp_pos|].
    assert (forall x, x <= 1 -> w * x <= w /\ (1 - w) * x <= 1 - w) as Scaled by (intros; nra).
    apply Scaled in M1; apply Scaled in M2; lra.
Qed.

(** k steps of the neighbouring relation. *)
Fixpoint steps (k : nat) (x y : D) : Prop :=
  match k with O => x = y | S k' => exists z, steps k' x z /\ adj z y end.

(** A group of k records costs k^2 rho (Bun and Steinke 2016, Proposition 1.9). *)
Theorem group_privacy (rho : R) (k : nat) :
  zcdp adj l M rho -> zcdp (steps k) l M (INR k ^ 2 * rho).
Proof.
  intros Hz; induction k as [|k IH].
  - intros alpha Ha x y E; simpl in E; subst y; simpl.
    replace (0 * (0 * 1) * rho * alpha) with 0 by ring; apply rdp_pair_refl, laws.
  - intros alpha Ha x y (z & Sxz & Azy); destruct k as [|k].
    + simpl in Sxz; subst z; replace (INR 1 ^ 2 * rho) with rho by (simpl; ring).
      apply Hz; auto.
    + pose proof (lt_0_INR (S k) (Nat.lt_0_succ k)) as Pk.
      rewrite (S_INR (S k)); set (K := INR (S k)) in *.
      replace ((K + 1) ^ 2 * rho)
        with ((1 + / K) * (K ^ 2 * rho) + (1 + / K) / (1 + / K - 1) * rho) by (field; lra).
      pose proof (Rinv_0_lt_compat K Pk).
      apply zcdp_triangle with (m := M z); try apply laws; auto; try lra.
      * intros beta Hb; apply IH; auto.
      * intros beta Hb; apply Hz; auto.
Qed.

(** Two records, so also: from add-or-remove to replace-one: 4 rho. *)
Corollary group_of_two (rho : R) :
  zcdp adj l M rho -> zcdp (fun x y => exists z, adj x z /\ adj z y) l M (4 * rho).
Proof.
  intros Hz alpha Ha x y (z & Axz & Azy).
  replace (4 * rho) with (INR 2 ^ 2 * rho) by (simpl; ring).
  apply (group_privacy rho 2 Hz alpha Ha); exists z; split; [exists x; split|]; auto; reflexivity.
Qed.

End Groups.

(** ** Conversion to (eps, delta) *)

(** Probability of an event. *)
Definition prob {A} (l : list A) (p : A -> R) (event : A -> bool) : R :=
  total l (fun a => if event a then p a else 0).

(** (eps, delta)-DP of a mechanism: for every event. *)
Definition dp {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) (eps delta : R) : Prop :=
  forall x y, adj x y -> forall event,
  prob l (M x) event <= exp eps * prob l (M y) event + delta.

(** The delta that order [alpha] of (alpha, tau)-RDP gives at [eps]
    (Canonne, Kamath and Steinke 2020, Proposition 12). *)
Definition cks_delta (alpha tau eps : R) : R :=
  exp ((alpha - 1) * (tau - eps)) / (alpha - 1) * Rpower (1 - / alpha) alpha.

Section Conversion.

Context {A D : Type} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R).
Hypothesis laws : forall d, distribution l (M d).

Lemma inv_lt_1 alpha : 1 < alpha -> 0 < / alpha < 1.
Proof.
  intros H; split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1; apply Rinv_lt_contravar; lra.
Qed.

Lemma cks_point alpha eps p q :
  1 < alpha -> 0 <= p -> 0 <= q -> (q = 0 -> p = 0) ->
  p <= exp eps * q + renyi_term alpha p q * cks_delta alpha 0 eps.
Proof.
  intros Ha Hp Hq Hc.
  assert (Hi : 0 < 1 - / alpha) by (pose proof (inv_lt_1 alpha Ha); lra).
  set (u := ln (1 - / alpha)).
  pose proof (renyi_term_tangent alpha (eps - u) p q Ha Hp Hq Hc) as T.
  assert (Eu : exp u = 1 - / alpha) by (apply exp_ln; exact Hi).
  assert (Ecks : cks_delta alpha 0 eps * (alpha * exp ((alpha - 1) * (eps - u))) = 1).
  { unfold cks_delta, Rpower; fold u.
    transitivity (alpha / (alpha - 1) * (exp ((alpha - 1) * (0 - eps)) * exp (alpha * u)
                  * exp ((alpha - 1) * (eps - u)))); [field; lra|].
    rewrite <- !exp_plus.
    replace ((alpha - 1) * (0 - eps) + alpha * u + (alpha - 1) * (eps - u)) with u by ring.
    rewrite Eu; field; lra. }
  assert (Eq : (alpha - 1) * exp (alpha * (eps - u))
               = alpha * exp ((alpha - 1) * (eps - u)) * exp eps).
  { rewrite (Rmult_assoc alpha), <- exp_plus.
    replace (alpha * (eps - u)) with ((alpha - 1) * (eps - u) + eps + - u) by ring.
    rewrite exp_plus, exp_Ropp, Eu; field; lra. }
  rewrite Eq in T.
  set (c := alpha * exp ((alpha - 1) * (eps - u))) in *; set (d := cks_delta alpha 0 eps) in *.
  assert (0 < c) by (unfold c; apply Rmult_lt_0_compat; [lra|apply exp_pos]).
  assert (0 < d) by nra.
  assert (d * (c * p - c * exp eps * q) <= d * renyi_term alpha p q)
    by (apply Rmult_le_compat_l; lra).
  replace (d * (c * p - c * exp eps * q)) with (d * c * (p - exp eps * q)) in * by ring.
  rewrite Ecks in *; lra.
Qed.

(** (alpha, tau)-RDP gives (eps, delta)-DP for every eps, with delta as above. *)
Theorem rdp_to_dp (alpha tau eps : R) :
  1 < alpha -> rdp adj l M alpha tau -> dp adj l M eps (cks_delta alpha tau eps).
Proof.
  intros Ha Hr x y Axy event; destruct (Hr x y Axy) as [Hc Hm].
  assert (Hd : 0 < cks_delta alpha 0 eps).
  { unfold cks_delta, Rpower; apply Rmult_lt_0_compat; [|apply exp_pos].
    apply Rdiv_lt_0_compat; [apply exp_pos|lra]. }
  transitivity (exp eps * prob l (M y) event + moment alpha l (M x) (M y) * cks_delta alpha 0 eps).
  - unfold prob, moment; rewrite <- total_scal, <- total_scal_r, <- total_plus.
    apply total_le; intros a Ia; destruct (event a).
    + apply cks_point; auto; apply laws; exact Ia.
    + pose proof (renyi_term_nonneg alpha (M x a) (M y a)); nra.
  - apply Rplus_le_compat_l.
    replace (cks_delta alpha tau eps) with (exp ((alpha - 1) * tau) * cks_delta alpha 0 eps).
    + apply Rmult_le_compat_r; lra.
    + unfold cks_delta.
      replace ((alpha - 1) * (tau - eps))
        with ((alpha - 1) * tau + (alpha - 1) * (0 - eps)) by ring.
      rewrite exp_plus; field; lra.
Qed.

(** The same as an epsilon for a given delta: the witness (alpha, eps) of a certificate. *)
Corollary rdp_to_dp_at_delta (alpha tau delta : R) :
  1 < alpha -> 0 < delta -> rdp adj l M alpha tau ->
  dp adj l M (tau + ln (1 - / alpha) - (ln delta + ln alpha) / (alpha - 1)) delta.
Proof.
  intros Ha Hd Hr; set (eps := _ - _).
  replace delta with (cks_delta alpha tau eps); [apply rdp_to_dp; assumption|].
  assert (Hi : 0 < 1 - / alpha) by (pose proof (inv_lt_1 alpha Ha); lra).
  unfold cks_delta, Rpower, eps.
  replace ((alpha - 1) *
           (tau - (tau + ln (1 - / alpha) - (ln delta + ln alpha) / (alpha - 1))))
    with (ln delta + ln alpha + - ((alpha - 1) * ln (1 - / alpha))) by (field; lra).
  rewrite !exp_plus, exp_Ropp, !exp_ln by lra.
  replace (alpha * ln (1 - / alpha))
    with ((alpha - 1) * ln (1 - / alpha) + ln (1 - / alpha)) by ring.
  rewrite exp_plus, exp_ln by exact Hi.
  pose proof (exp_pos ((alpha - 1) * ln (1 - / alpha))); field; lra.
Qed.

Lemma dp_weaken eps delta delta' : delta <= delta' -> dp adj l M eps delta -> dp adj l M eps delta'.
Proof. intros H Hd x y Axy event; specialize (Hd x y Axy event); lra. Qed.

(** rho-zCDP gives (rho + 2 sqrt(rho ln(1/delta)), delta)-DP for every delta
    (Bun and Steinke 2016, Proposition 1.3; PR-ADMM, Lemma 3). *)
Theorem zcdp_to_dp (rho delta : R) :
  0 < rho -> 0 < delta < 1 -> zcdp adj l M rho -> dp adj l M (epsilon_zcdp rho delta) delta.
Proof.
  intros Hr Hd Hz; pose proof (best_order_gt_1 rho delta Hr Hd) as Ha.
  pose proof (zcdp_epsilon_attained rho delta Hr Hd) as E.
  set (alpha := best_order rho delta) in *; unfold epsilon_at in E.
  apply dp_weaken with (cks_delta alpha (rho * alpha) (epsilon_zcdp rho delta));
    [|apply rdp_to_dp; auto].
  unfold cks_delta; rewrite <- E.
  replace ((alpha - 1) * (rho * alpha - (rho * alpha + ln (/ delta) / (alpha - 1))))
    with (- ln (/ delta)) by (field; lra).
  rewrite ln_Rinv, Ropp_involutive, exp_ln by lra.
  pose proof (inv_lt_1 alpha Ha) as Hi.
  assert (P : Rpower (1 - / alpha) alpha <= 1 - / alpha).
  { unfold Rpower; rewrite <- (exp_ln (1 - / alpha)) at 2 by lra; apply exp_le.
    assert (ln (1 - / alpha) < 0) by (rewrite <- ln_1; apply ln_increasing; lra); nra. }
  replace (delta / (alpha - 1) * Rpower (1 - / alpha) alpha)
    with (delta * (Rpower (1 - / alpha) alpha / (alpha - 1))) by (field; lra).
  rewrite <- (Rmult_1_r delta) at 2; apply Rmult_le_compat_l; [lra|].
  apply Rmult_le_reg_r with (alpha - 1); [lra|].
  replace (Rpower (1 - / alpha) alpha / (alpha - 1) * (alpha - 1))
    with (Rpower (1 - / alpha) alpha) by (field; lra).
  assert ((1 - / alpha) * alpha = alpha - 1) by (field; lra); nra.
Qed.

End Conversion.
