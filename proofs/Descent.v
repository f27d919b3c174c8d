(** Noisy descent: T adaptive rounds that each release the mean of clipped vectors with Gaussian
    noise, on any grid of floating-point numbers. Everything else in this folder meets here. *)

From Coq Require Import Reals List Lra.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Conversion Finite Gaussian Sensitivity.
Import ListNotations.
Open Scope R_scope.

(** ** Vectors: one rounded Gaussian a coordinate *)

Section Vector.

Context {D : Type} (adj : D -> D -> Prop) (d : nat) (q : D -> euclidean d) (Delta s : R).
Hypothesis Hs : 0 < s.

(** The grid of a coordinate may depend on the coordinates already released. *)
Variable cuts : list (Rbar * Rbar) -> list R.
Hypothesis grid : forall h, ascending m_infty (cuts h).

Definition vector_outcomes : list (list (Rbar * Rbar)) :=
  transcripts (fun h => cells m_infty (cuts h)) d.

Definition noisy_vector (x : D) : list (Rbar * Rbar) -> R :=
  run (fun h => rounded (q x (length h)) s).

Lemma noisy_vector_distribution x : distribution vector_outcomes (noisy_vector x).
Proof. apply run_distribution; intros h; apply rounded_distribution; auto. Qed.

(** The vector Gaussian mechanism with l2 sensitivity Delta, noise s in every coordinate and any
    rounding of the coordinates is Delta^2/(2 s^2)-zCDP. *)
Theorem vector_gaussian_zcdp :
  sensitivity adj q Delta -> zcdp adj vector_outcomes noisy_vector (Delta * Delta / (2 * (s * s))).
Proof.
  intros Hq alpha Ha x y Axy; specialize (Hq x y Axy).
  set (rho := fun i => alpha * ((q x i - q y i) * (q x i - q y i) / (2 * (s * s)))).
  apply adaptive_filter with (cost := fun h => rho (length h)).
  - exact Ha.
  - intros h; apply rounded_distribution; auto.
  - intros h; apply rounded_distribution; auto.
  - intros h; apply gaussian_rounded_rdp; auto.
  - intros h Ih; rewrite spent_by_round, (transcripts_length _ _ _ Ih).
    assert (E : total (seq 0 d) rho
                = alpha * (inner (sub (q x) (q y)) (sub (q x) (q y)) / (2 * (s * s)))).
    { unfold rho; rewrite total_scal; f_equal; unfold Rdiv; rewrite total_scal_r; f_equal.
      apply total_ext; intros i _; unfold sub; simpl; ring. }
    rewrite E, (Rmult_comm _ alpha); apply Rmult_le_compat_l; [lra|].
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|].
    rewrite <- norm_sq; pose proof (norm_pos (sub (q x) (q y))); nra.
Qed.

End Vector.

(** ** T rounds of noisy clipped means *)

Section Descent.

Context {X : Type} (d T : nat) (C n s : R).
Hypotheses (HC : 0 <= C) (Hn : 0 < n) (Hs : 0 < s).

(** All a round does (which direction it asks of each record, on which grid it rounds) may depend
    on every message before it. *)
Variable direction : list (list (Rbar * Rbar)) -> X -> euclidean d.
Variable cuts : list (list (Rbar * Rbar)) -> list (Rbar * Rbar) -> list R.
Hypothesis grid : forall h h', ascending m_infty (cuts h h').

Definition clipped_mean (h : list (list (Rbar * Rbar))) : list X -> euclidean d :=
  mean_over (fun r => clip C (direction h r)) n.

Definition messages : list (list (list (Rbar * Rbar))) :=
  transcripts (fun h => vector_outcomes d (cuts h)) T.

Definition descent (data : list X) : list (list (Rbar * Rbar)) -> R :=
  run (fun h => noisy_vector d (clipped_mean h) s data).

Definition descent_rho : R := INR T * (2 * C / n * (2 * C / n) / (2 * (s * s))).

Lemma descent_distribution data : distribution messages (descent data).
Proof. apply run_distribution; intros h; apply noisy_vector_distribution; auto. Qed.

(** T adaptive rounds of noisy clipped means, replace-one: T (2C/n)^2/(2 s^2)-zCDP. *)
Theorem descent_zcdp : zcdp replace_one messages descent descent_rho.
Proof.
  unfold descent_rho; rewrite <- (seq_length T 0), <- total_const.
  apply (zcdp_ledger (fun h => vector_outcomes d (cuts h)) replace_one
           (fun data h => noisy_vector d (clipped_mean h) s data)).
  - intros data h; apply noisy_vector_distribution; auto.
  - intros h; apply vector_gaussian_zcdp; auto.
    apply mean_sensitivity_replace; [|exact Hn]; intros r; apply clip_norm, HC.
Qed.

(** ... and so (rho + 2 sqrt(rho ln(1/delta)), delta)-DP for every delta. *)
Theorem descent_dp (delta : R) :
  0 < descent_rho -> 0 < delta < 1 ->
  dp replace_one messages descent (epsilon_zcdp descent_rho delta) delta.
Proof.
  intros Hr Hd; apply zcdp_to_dp; auto using descent_distribution, descent_zcdp.
Qed.

End Descent.
