(** Samples whose records do not matter: what a mechanism says of the one that was drawn it would say
    of any other, or nobody is drawn at all. *)

From Coq Require Import Reals List Lra FunctionalExtensionality.
From Dpledger Require Import Sums Finite Sensitivity Domination PoissonSampling BatchSampling CopiesSampling
  Certificate.
Import ListNotations.
Open Scope R_scope.

(** ** Of one party's records *)

Section Records.

Context {X : Type}.

(** A function that a record does not move by itself depends on the number of records, or on nothing. *)
Definition interchangeable (r : relation) (u v : list X) : Prop :=
  match r with AddRemoveOne => True | _ => length u = length v end.

Lemma by_number {V} (g : list X -> V) :
  (forall before z w after, g (before ++ z :: after) = g (before ++ w :: after)) ->
  forall u v, length u = length v -> g u = g v.
Proof.
  intros Same; enough (H : forall u v before, length u = length v -> g (before ++ u) = g (before ++ v))
    by (intros u v; apply (H u v [])).
  induction u as [|a u IH]; intros [|b v] before E; try discriminate E; [reflexivity|].
  injection E as E; rewrite (Same before a b u).
  change (b :: u) with ([b] ++ u); change (b :: v) with ([b] ++ v); rewrite !app_assoc; apply IH, E.
Qed.

Lemma by_nothing {V} (g : list X -> V) :
  (forall before z after, g (before ++ z :: after) = g (before ++ after)) -> forall u v, g u = g v.
Proof.
  intros Same; enough (H : forall u, g u = g []) by (intros u v; rewrite H, (H v); reflexivity).
  induction u as [|a u IH]; [reflexivity|]; rewrite <- IH; apply (Same [] a u).
Qed.

Lemma unmoved_alike {V} (null : X) r (g : list X -> V) :
  (forall u v, neighbours null r u v -> g u = g v) -> forall u v, interchangeable r u v -> g u = g v.
Proof.
  intros Same; destruct r; cbn [neighbours interchangeable] in *.
  - apply by_number; intros; apply Same; constructor.
  - apply by_number; intros; transitivity (g (before ++ null :: after)); [|symmetry]; apply Same; constructor.
  - intros u v _; apply by_nothing; intros; apply Same; constructor.
Qed.

Lemma neighbours_alike (null : X) r u v : neighbours null r u v -> interchangeable r u v.
Proof. destruct r; cbn [neighbours interchangeable]; auto; intros []; rewrite !app_length; reflexivity. Qed.

(** ** The mean over a sample *)

Definition mean (drawn : list (list X * R)) (f : list X -> R) : R :=
  total drawn (fun sw => snd sw * f (fst sw)).

Lemma mean_constant drawn f a : distribution drawn snd -> (forall s, f s = a) -> mean drawn f = a.
Proof.
  intros [_ One] E; unfold mean; rewrite (total_ext _ _ (fun sw => a * snd sw)) by (intros; rewrite E; ring).
  rewrite total_scal, One; ring.
Qed.

(** Nobody is drawn. *)
Lemma mean_of_nobody data f : mean (draws 0 data) f = f [].
Proof.
  unfold mean; induction data as [|z data IH]; [simpl; ring|]; rewrite total_draws_cons, IH; ring.
Qed.

Lemma mean_of_some r u v f :
  length u = length v -> (forall s t, length s = length t -> f s = f t) -> mean (draws r u) f = mean (draws r v) f.
Proof.
  unfold mean; revert v f; induction u as [|a u IH]; intros [|b v] f E Same; try discriminate E; [reflexivity|].
  injection E as E; rewrite !total_draws_cons, (IH v f E Same), (IH v (fun s => f (a :: s)) E)
    by (intros; apply Same; simpl; congruence).
  do 2 f_equal; apply total_ext; intros sw _; f_equal; apply Same; reflexivity.
Qed.

(** However it is drawn, it does not matter of which of two data sets. *)
Lemma mean_alike (s : sampling X) r u v f :
  interchangeable r u v -> (forall part, distribution (draws_of s part) snd) ->
  (forall t t', interchangeable r t t' -> f t = f t') -> mean (draws_of s u) f = mean (draws_of s v) f.
Proof.
  intros A Laws Same; destruct (match r with AddRemoveOne => true | _ => false end) eqn:E.
  { rewrite !(mean_constant _ f (f [])) by (try apply Laws; intros; apply Same; destruct r; easy); reflexivity. }
  assert (L : length u = length v) by (destruct r; easy).
  assert (ByLength : forall t t', length t = length t' -> f t = f t') by (intros; apply Same; destruct r; easy).
  destruct s as [q|n k filler|n k filler]; cbn [draws_of].
  - apply mean_of_some; assumption.
  - unfold mean, batches; rewrite !total_map; apply total_ext; intros t _; cbn [fst snd]; f_equal.
    apply ByLength; unfold records_at; rewrite !map_length; reflexivity.
  - unfold mean, copies, records_at; rewrite !uniform_map; apply total_ext; intros t _; f_equal.
    apply ByLength; rewrite !map_length; reflexivity.
Qed.

End Records.

(** ** Of the samples of all parties *)

Lemma on_samples_at {X A} draw (M : (nat -> list X) -> A -> R) drawn x a :
  on_samples draw M drawn x a = on_samples draw (fun data (_ : unit) => M data a) drawn x tt.
Proof.
  revert x; induction drawn as [|j drawn IH]; intros x; [reflexivity|]; cbn [on_samples]; unfold on_drawn.
  apply total_ext; intros sw _; f_equal; apply IH.
Qed.

(** The one party's whose records differ does not matter. *)
Lemma on_samples_alike {X A} (draw : list X -> list (list X * R)) (M : (nat -> list X) -> A -> R) a j
  (near : list X -> list X -> Prop) drawn x y :
  (forall f, (forall s t, near s t -> f s = f t) -> mean (draw (x j)) f = mean (draw (y j)) f) ->
  (forall u v, same_but j u v -> near (u j) (v j) -> M u a = M v a) ->
  NoDup drawn -> In j drawn -> same_but j x y -> on_samples draw M drawn x a = on_samples draw M drawn y a.
Proof.
  intros Draw Near U I S; revert x y Draw I S; induction drawn as [|k drawn IH]; intros x y Draw I S; [destruct I|].
  apply NoDup_cons_iff in U as [N U]; cbn [on_samples]; unfold on_drawn; destruct (Nat.eq_dec k j) as [->|K].
  - etransitivity; [apply (Draw (fun s => on_samples draw M drawn (with_part x j s) a))|].
    + intros s t Nst; rewrite (on_samples_at draw M drawn (with_part x j s)), (on_samples_at draw M drawn (with_part x j t)).
      apply on_samples_unread with (j := j); [exact N|intros i Ni; rewrite !with_part_other by exact Ni; reflexivity|].
      rewrite !with_part_own; intros u v Suv Eu Ev _; apply Near; [exact Suv|rewrite Eu, Ev; exact Nst].
    + apply total_ext; intros sw _; do 2 f_equal; extensionality i; unfold with_part.
      destruct (Nat.eqb_spec i j); [reflexivity|apply S; assumption].
  - destruct I as [I|I]; [congruence|]; rewrite (S k K); apply total_ext; intros sw _; f_equal.
    apply IH; [exact U| |exact I|apply same_but_with_part, S].
    rewrite !with_part_other by auto; exact Draw.
Qed.

(** ** What is said of a row, number by number *)

Lemma run_of_row {A} (law : R -> A -> R) (u v : nat -> R) h :
  (forall i, (i < length h)%nat -> u i = v i) ->
  run (fun before => law (u (length before))) h = run (fun before => law (v (length before))) h.
Proof.
  induction h as [|b h IH]; intros Same; [reflexivity|]; simpl in *.
  rewrite IH, (Same (length h)) by auto; reflexivity.
Qed.
