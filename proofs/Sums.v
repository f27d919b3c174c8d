(** Finite sums of reals over lists: what every other file adds up with. *)

From Coq Require Import Reals List Lra Lia RelationClasses Permutation.
Import ListNotations.
Open Scope R_scope.

#[global] Instance Rle_transitive : Transitive Rle := Rle_trans.

Fixpoint total {A} (l : list A) (f : A -> R) : R :=
  match l with
  | [] => 0
  | a :: l' => f a + total l' f
  end.

Section Laws.

Context {A : Type}.
Implicit Types (l : list A) (f g : A -> R).

Lemma total_ext l f g : (forall a, In a l -> f a = g a) -> total l f = total l g.
Proof.
  induction l as [|a l IH]; simpl; intros E; [reflexivity|].
  rewrite E, IH; auto.
Qed.

Lemma total_le l f g : (forall a, In a l -> f a <= g a) -> total l f <= total l g.
Proof.
  induction l as [|a l IH]; simpl; intros E; [lra|].
  apply Rplus_le_compat; auto.
Qed.

Lemma total_nonneg l f : (forall a, In a l -> 0 <= f a) -> 0 <= total l f.
Proof.
  induction l as [|a l IH]; simpl; intros E; [lra|].
  apply Rplus_le_le_0_compat; auto.
Qed.

Lemma total_plus l f g : total l (fun a => f a + g a) = total l f + total l g.
Proof. induction l as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma total_minus l f g : total l (fun a => f a - g a) = total l f - total l g.
Proof. induction l as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma total_scal l c f : total l (fun a => c * f a) = c * total l f.
Proof. induction l as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma total_scal_r l c f : total l (fun a => f a * c) = total l f * c.
Proof. induction l as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma total_const l c : total l (fun _ => c) = INR (length l) * c.
Proof.
  induction l as [|a l IH]; [simpl; ring|].
  change (length (a :: l)) with (S (length l)); rewrite S_INR; simpl; rewrite IH; ring.
Qed.

Lemma total_app l1 l2 f : total (l1 ++ l2) f = total l1 f + total l2 f.
Proof. induction l1 as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma total_zero l f : (forall a, In a l -> f a = 0) -> total l f = 0.
Proof.
  intros E; rewrite (total_ext l f (fun _ => 0) E), total_const; ring.
Qed.

(** A sum of non-negative numbers that vanishes has only vanishing terms. *)
Lemma total_zero_inv l f :
  (forall a, In a l -> 0 <= f a) -> total l f = 0 -> forall a, In a l -> f a = 0.
Proof.
  induction l as [|a l IH]; simpl; intros Pos Z b [].
  - subst; assert (0 <= total l f) by (apply total_nonneg; auto).
    specialize (Pos b (or_introl eq_refl)); lra.
  - apply IH; auto.
    assert (0 <= total l f) by (apply total_nonneg; auto).
    specialize (Pos a (or_introl eq_refl)); lra.
Qed.

Lemma total_map {B} (h : B -> A) (l : list B) f : total (map h l) f = total l (fun b => f (h b)).
Proof. induction l as [|b l IH]; simpl; congruence. Qed.

Lemma total_flat_map {B} (h : B -> list A) (l : list B) f :
  total (flat_map h l) f = total l (fun b => total (h b) f).
Proof. induction l as [|b l IH]; simpl; [ring|rewrite total_app, IH; ring]. Qed.

End Laws.

Lemma total_swap {A B} (l : list A) (l' : list B) (f : A -> B -> R) :
  total l (fun a => total l' (f a)) = total l' (fun b => total l (fun a => f a b)).
Proof.
  induction l as [|a l IH]; simpl.
  - induction l' as [|b l' IH]; simpl; lra.
  - rewrite IH, <- total_plus; reflexivity.
Qed.

(** Sums over 0, ..., n-1 grow at the end. *)
Lemma total_seq_S n (f : nat -> R) : total (seq 0 (S n)) f = total (seq 0 n) f + f n.
Proof. rewrite seq_S, total_app; simpl; ring. Qed.

Lemma total_permutation {A} (l l' : list A) f : Permutation l l' -> total l f = total l' f.
Proof. induction 1; simpl; lra. Qed.
