(** Several Poisson samples, each of all records and by itself, whose values are added up before there is
    noise. They are one sample of as many copies of the data: a record's copies are drawn one by one, and
    those with one number are one sample. *)

From Coq Require Import Reals List Lra Lia Arith FunctionalExtensionality.
From Dpledger Require Import Sums Finite Domination Sensitivity PoissonSampling GroupSampling Events.
Import ListNotations.
Open Scope R_scope.

Section Copies.

Context {X : Type}.
Implicit Types (data : list X) (drawn : list (nat * X)).

(** Of each number a copy of the data, and what of it is drawn. *)
Definition numbered_copies (numbers : list nat) data : list (nat * X) :=
  flat_map (fun n => map (pair n) data) numbers.
Definition sample_of (n : nat) drawn : list X := map snd (filter (fun copy => Nat.eqb (fst copy) n) drawn).

Definition copied (samples : nat) : list X -> list (nat * X) := numbered_copies (seq 0 samples).

(** The sum of a value of so many samples, of all parties. *)
Definition accumulated (samples : nat) (f : (nat -> list X) -> nat -> R)
  (drawn : nat -> list (nat * X)) : nat -> R :=
  fun i => total (seq 0 samples) (fun n => f (fun party => sample_of n (drawn party)) i).

Lemma sample_app n drawn drawn' : sample_of n (drawn ++ drawn') = sample_of n drawn ++ sample_of n drawn'.
Proof. unfold sample_of; rewrite filter_app, map_app; reflexivity. Qed.

Lemma sample_cons n k x drawn :
  sample_of n ((k, x) :: drawn) = if Nat.eqb k n then x :: sample_of n drawn else sample_of n drawn.
Proof. unfold sample_of; simpl; destruct (Nat.eqb k n); reflexivity. Qed.

Lemma sample_own n data : sample_of n (map (pair n) data) = data.
Proof.
  induction data as [|x data IH]; [reflexivity|].
  simpl map; rewrite sample_cons, Nat.eqb_refl, IH; reflexivity.
Qed.

Lemma sample_nothing n drawn : (forall copy, In copy drawn -> fst copy <> n) -> sample_of n drawn = [].
Proof.
  induction drawn as [|[k x] drawn IH]; intros N; [reflexivity|].
  rewrite sample_cons, IH by (intros; apply N; right; assumption).
  destruct (Nat.eqb_spec k n) as [E|_]; [|reflexivity].
  destruct (N (k, x) (or_introl eq_refl) E).
Qed.

(** ** That these are samples, each by itself *)

Context (r : R).

Lemma drawn_from {Y} (data : list Y) sw : In sw (draws r data) -> incl (fst sw) data.
Proof.
  revert sw; induction data as [|x data IH]; intros sw; [intros [<-|[]]; intros a []|].
  simpl; intros I; apply in_app_iff in I as [I|I]; apply in_map_iff in I as (s & <- & I); simpl.
  - intros a [<-|J]; [left; reflexivity|right; apply (IH s I), J].
  - intros a J; right; apply (IH s I), J.
Qed.

Lemma total_draws_map {Y Z} (g : Y -> Z) (data : list Y) f :
  total (draws r (map g data)) (fun sw => snd sw * f (fst sw))
  = total (draws r data) (fun sw => snd sw * f (map g (fst sw))).
Proof.
  revert f; induction data as [|x data IH]; intros f; [reflexivity|].
  simpl map; rewrite (total_draws_cons r x data (fun s => f (map g s))), total_draws_cons.
  rewrite (IH (fun s => f (g x :: s))), IH; reflexivity.
Qed.

(** The mean of what depends on so many samples, drawn one after the other. *)
Fixpoint sample_by_sample (samples : nat) data (f : list (list X) -> R) : R :=
  match samples with
  | O => f []
  | S k => total (draws r data) (fun sw => snd sw * sample_by_sample k data (fun rest => f (fst sw :: rest)))
  end.

Lemma numbered_samples numbers data f : NoDup numbers ->
  total (draws r (numbered_copies numbers data))
    (fun sw => snd sw * f (map (fun n => sample_of n (fst sw)) numbers))
  = sample_by_sample (length numbers) data f.
Proof.
  revert f; induction numbers as [|n numbers IH]; intros f U; [simpl; ring|].
  apply NoDup_cons_iff in U as [N U].
  change (numbered_copies (n :: numbers) data) with (map (pair n) data ++ numbered_copies numbers data).
  rewrite (total_draws_app r (map (pair n) data) (numbered_copies numbers data)
             (fun s => f (map (fun m => sample_of m s) (n :: numbers)))).
  rewrite (total_draws_map (pair n) data (fun s => total (draws r (numbered_copies numbers data))
             (fun a => snd a * f (map (fun m => sample_of m (s ++ fst a)) (n :: numbers))))).
  cbn [length sample_by_sample]; apply total_ext; intros [s w] _; cbn [fst snd]; f_equal.
  rewrite <- (IH _ U); apply total_ext; intros [t v] I; cbn [fst snd]; do 2 f_equal.
  apply drawn_from in I; cbn [fst] in I; simpl map; f_equal.
  - rewrite sample_app, sample_own, sample_nothing, app_nil_r; [reflexivity|].
    intros copy J E; apply I, in_flat_map in J as (m & Im & J).
    apply in_map_iff in J as (x & <- & _); simpl in E; congruence.
  - apply map_ext_in; intros m Im; rewrite sample_app, sample_nothing; [reflexivity|].
    intros copy J E; apply in_map_iff in J as (x & <- & _); simpl in E; congruence.
Qed.

(** Drawn together, they are what they are one by one. *)
Theorem copies_are_samples samples data f :
  total (draws r (copied samples data))
    (fun sw => snd sw * f (map (fun n => sample_of n (fst sw)) (seq 0 samples)))
  = sample_by_sample samples data f.
Proof.
  unfold copied; rewrite numbered_samples by apply seq_NoDup; rewrite seq_length; reflexivity.
Qed.

End Copies.

(** ** What records more do *)

Lemma thinned_app {X} j k (x y u v : list X) : thinned j x y -> thinned k u v -> thinned (j + k) (x ++ u) (y ++ v).
Proof. intros T T'; induction T; simpl; [exact T'|constructor; assumption..]. Qed.

Lemma thinned_map {X Y} (g : X -> Y) k x y : thinned k x y -> thinned k (map g x) (map g y).
Proof. induction 1; simpl; constructor; assumption. Qed.

(** So many records are as many copies more, of each number. *)
Lemma thinned_copied {X} samples k (x y : list X) :
  thinned k x y -> thinned (k * samples) (copied samples x) (copied samples y).
Proof.
  intros T; unfold copied; rewrite <- (seq_length samples 0) at 1.
  induction (seq 0 samples) as [|n numbers IH]; [rewrite Nat.mul_0_r; constructor|].
  cbn [length]; rewrite Nat.mul_succ_r, Nat.add_comm; apply thinned_app; [apply thinned_map, T|exact IH].
Qed.

(** What sees no copy of a null record does not see what is hidden. *)
Lemma hidden_copies {X V} (null : X) (f : list (nat * X) -> V) samples k x y z :
  (forall n before after, f (before ++ (n, null) :: after) = f (before ++ after)) ->
  hidden null k x y z -> f (copied samples y) = f (copied samples z).
Proof.
  intros Gone H; unfold copied; generalize (seq 0 samples) as numbers; intros numbers.
  assert (Prefix : forall before, f (before ++ numbered_copies numbers y) = f (before ++ numbered_copies numbers z));
    [|exact (Prefix [])].
  induction numbers as [|n numbers IH]; intros before; [reflexivity|].
  change (numbered_copies (n :: numbers) ?l) with (map (pair n) l ++ numbered_copies numbers l).
  rewrite app_assoc, IH, <- app_assoc.
  apply (hidden_unseen null (fun l => f (before ++ map (pair n) l ++ numbered_copies numbers z)) k x y z); [|exact H].
  intros s t; rewrite !map_app; simpl map; rewrite <- !app_assoc, <- app_comm_cons.
  rewrite !(app_assoc before (map (pair n) s)); apply Gone.
Qed.

Lemma total_one_differs n t (a b : nat -> R) :
  (forall s, s <> t -> a s = b s) ->
  total (seq 0 n) a - total (seq 0 n) b = if Nat.ltb t n then a t - b t else 0.
Proof.
  intros E; induction n as [|n IH]; [simpl; ring|].
  rewrite seq_S, !total_app; simpl total.
  replace (_ - _) with (total (seq 0 n) a - total (seq 0 n) b + (a n - b n)) by (simpl; ring).
  rewrite IH; destruct (Nat.ltb_spec t n), (Nat.ltb_spec t (S n)); try lia.
  - rewrite (E n) by lia; ring.
  - replace t with n by lia; ring.
  - rewrite (E n) by lia; ring.
Qed.

(** A copy more is in one sample, or in none. *)
Lemma one_sample_differs {X} (u v : list (nat * X)) : add_remove_one u v ->
  exists t, add_remove_one (sample_of t u) (sample_of t v) /\ forall n, n <> t -> sample_of n u = sample_of n v.
Proof.
  assert (Step : forall before after t (x : X),
            sample_of t (before ++ (t, x) :: after) = sample_of t before ++ x :: sample_of t after /\
            forall n, n <> t -> sample_of n (before ++ (t, x) :: after) = sample_of n (before ++ after)).
  { intros before after t x; split; [|intros n N]; rewrite !sample_app, sample_cons.
    - rewrite Nat.eqb_refl; reflexivity.
    - destruct (Nat.eqb_spec t n); [congruence|reflexivity]. }
  intros [before after [t x]|before after [t x]]; exists t; destruct (Step before after t x) as [E N];
    rewrite E, sample_app; (split; [constructor|]).
  - exact N.
  - intros n Hn; symmetry; apply N, Hn.
Qed.

(** So it moves their sum by what a record more does. *)
Theorem accumulated_sensitivity {X} (d samples j : nat) (f : (nat -> list X) -> euclidean d) (most : R) :
  0 <= most -> sensitivity (differ_at add_remove_one j) f most ->
  sensitivity (V := euclidean d) (differ_at add_remove_one j) (accumulated samples f) most.
Proof.
  intros P One u v [A Same]; destruct (one_sample_differs _ _ A) as (t & At & Others).
  assert (E : forall n, n <> t -> (fun party => sample_of n (u party)) = (fun party => sample_of n (v party))).
  { intros n N; extensionality party; destruct (Nat.eq_dec party j) as [->|J]; [apply Others, N|].
    rewrite (Same party J); reflexivity. }
  assert (Moved : sub (V := euclidean d) (accumulated samples f u) (accumulated samples f v)
                  = if Nat.ltb t samples
                    then sub (f (fun party => sample_of t (u party))) (f (fun party => sample_of t (v party)))
                    else zero).
  { extensionality i; pose proof (total_one_differs samples t
      (fun n => f (fun party => sample_of n (u party)) i) (fun n => f (fun party => sample_of n (v party)) i)) as D.
    cbv beta in D; specialize (D (fun s N => f_equal (fun x => f x i) (E s N))).
    unfold sub, accumulated in *; simpl; destruct (Nat.ltb t samples); simpl; lra. }
  rewrite Moved; destruct (Nat.ltb t samples); [|rewrite norm_zero; exact P].
  apply One; split; [exact At|]; intros party J; rewrite (Same party J); reflexivity.
Qed.
