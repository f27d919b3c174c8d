(** What [check] answers is true: [check_sound]. *)

From Coq Require Import Reals List Bool Lia Lra Psatz QArith Qreals Qround PArith ZArith FMapPositive
  Permutation FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Conversion Finite Gaussian Pure LaplaceProfile PureRenyi DiscreteLaplace
  DiscreteGaussian GaussianDelta Sensitivity Descent
  Domination GaussianComposition PoissonSampling BatchSampling Events Enclosure Losses GaussianLosses LossLists
  LossEnclosures LossComposition FixedPoint SampledLoss ReplacedSample ReplacedLoss CopiesSampling
  GroupSampling GroupBatches GroupsDrawn AccumulatedSampling GaussianSplit CopiesLoss GroupLoss PureLoss LaplaceLoss SampledLaplace GeometricLoss DiscreteGaussianProfile DiscreteGaussianLoss
  LaplaceComposition LaplaceSums SampledRenyi RenyiDecision Certificate Unmoved Checker Operations Derivations
  Claims.
Import ListNotations.
Open Scope R_scope.

(** ** Sums over lists *)

Lemma total_concat_repeat {A} (l : list A) n f :
  total (concat (repeat l n)) f = INR n * total l f.
Proof.
  induction n as [|n IH]; [simpl; ring|].
  rewrite S_INR; simpl; rewrite total_app, IH; ring.
Qed.

Lemma total_repeat {A} (a : A) n f : total (repeat a n) f = INR n * f a.
Proof. induction n as [|n IH]; [simpl; ring|]; rewrite S_INR; simpl; rewrite IH; ring. Qed.

(** ** Messages of one kind *)

Lemma numbers_distribution l p : distribution l p -> distribution (map Numbers l) (of_numbers p).
Proof.
  intros [N S]; split; [|rewrite total_map; exact S].
  intros m I; apply in_map_iff in I as (v & <- & I); apply N, I.
Qed.

Lemma answers_distribution l p : distribution l p -> distribution (map Answer l) (of_answers p).
Proof.
  intros [N S]; split; [|rewrite total_map; exact S].
  intros m I; apply in_map_iff in I as (a & <- & I); apply N, I.
Qed.

Lemma numbers_below l p q F :
  below_profile l p q F -> below_profile (map Numbers l) (of_numbers p) (of_numbers q) F.
Proof. intros H a b Ha Hb; unfold excess; rewrite total_map; apply H; assumption. Qed.

Lemma numbers_rdp l p q alpha eps :
  rdp_pair l p q alpha eps -> rdp_pair (map Numbers l) (of_numbers p) (of_numbers q) alpha eps.
Proof.
  intros [C M]; split; [|unfold moment; rewrite total_map; exact M].
  intros m I; apply in_map_iff in I as (v & <- & I); apply C, I.
Qed.

(** ** Tables *)

Lemma numbered_in {A} (l : list A) start i a :
  PositiveMap.find i (numbered start l) = Some a -> In a l.
Proof.
  revert start; induction l as [|b l IH]; simpl; intros start.
  - rewrite PositiveMap.gempty; discriminate.
  - destruct (Pos.eq_dec i start) as [->|N].
    + rewrite PositiveMap.gss; intros E; injection E as ->; auto.
    + rewrite PositiveMap.gso by exact N; eauto.
Qed.

Lemma parties_of_in named events e p :
  In e events -> In p (named e) -> PositiveMap.find p (parties_of named events) = Some tt.
Proof.
  assert (Keep : forall l t p, PositiveMap.find p t = Some tt ->
            PositiveMap.find p (fold_right (fun p => PositiveMap.add p tt) t l) = Some tt).
  { induction l as [|a l IH]; simpl; auto; intros t q H.
    destruct (Pos.eq_dec q a) as [->|N];
      [apply PositiveMap.gss|rewrite PositiveMap.gso by exact N; auto]. }
  assert (New : forall l t p, In p l ->
            PositiveMap.find p (fold_right (fun p => PositiveMap.add p tt) t l) = Some tt).
  { induction l as [|a l IH]; simpl; [tauto|]; intros t q [->|H]; [apply PositiveMap.gss|].
    destruct (Pos.eq_dec q a) as [->|N];
      [apply PositiveMap.gss|rewrite PositiveMap.gso by exact N; auto]. }
  induction events as [|a events IH]; simpl; [tauto|]; intros [->|Ie] Ip; auto.
Qed.

(** ** Exposures *)

(** A round that reads nobody, and whose law no record changes. *)
Definition quiet_round {X} (null : X) (moved : relation) (r : execution X) (h : history) : Prop :=
  (forall j, reads r h j = false) /\
  (forall x, distribution (next_messages r h) (next_law r x h)) /\
  (forall j x y, differ_at (neighbours null moved) j x y ->
     forall m, In m (next_messages r h) -> next_law r x h m = next_law r y h m).

(** A step that something of a record may reach. *)
Definition moving (m : option mechanism) : Prop := forall step, m = Some step -> unmoved step = false.

(** A step of this kind is a round of this kind. *)
Definition round_of_kind {X} (null : X) (r : execution X) h (m : mechanism) : Prop :=
  match m with
  | GaussianStep _ _ _ _ | SampledStep _ _ _ _ _ | DiscreteGaussianStep _ _ _ _ => gaussian_round null r h (Some m)
  | LaplaceStep _ _ _ _ | SampledLaplaceStep _ _ _ _ _ | DiscreteLaplaceStep _ _ _ _ => laplace_round null r h (Some m)
  | ResponseStep _ _ => response_round r h (Some m)
  | PureStep _ _ _ _ => weighted_round null r h (Some m)
  | MixtureStep _ _ _ _ _ _ _ => mixture_round null r h (Some m)
  | AccumulatedStep _ _ _ _ _ _ => accumulated_round null r h (Some m)
  | Repeated _ _ | Parties _ => False
  end.

Lemma own_kind {X} (null : X) (r : execution X) h m : noisy_round null r h (Some m) -> round_of_kind null r h m.
Proof.
  intros [G|[G|[G|[G|[G|G]]]]]; destruct m; try exact G; exfalso.
  all: try (destruct G as (? & ? & ? & ? & [[[[G _]|(? & G & _)] _]|[G _]] & _); discriminate G).
  all: try (destruct G as (? & ? & ? & ? & [(G & _)|[(? & G & _)|(G & _)]] & _); discriminate G).
  all: try (destruct G as (? & ? & G & _); discriminate G).
  all: try (destruct G as (? & ? & ? & ? & ? & G & _); discriminate G).
  all: try (destruct G as (? & ? & ? & ? & ? & ? & ? & G & _); discriminate G).
  all: destruct G as (? & ? & ? & ? & ? & ? & G & _); discriminate G.
Qed.

(** What is used of a run that satisfies an event list, its rounds that nothing reaches as rounds that
    read nobody. *)
Record behaves {X} (null : X) (c : certificate) (r : execution X) : Prop := Behaves {
  grids_ascend : forall h before, ascending m_infty (cuts r h before);
  rounds_are_steps : forall h, quiet_round null (relation_of c) r h \/
    moving (mechanism_at c (next_mechanism r h)) /\ noisy_round null r h (mechanism_at c (next_mechanism r h));
  steps_are_allowed : forall j h, In h (all_transcripts r) ->
    exists rest, Permutation (met r j h ++ rest) (allowed c j) }.

Section Certificate.

Variable c : certificate.

Notation table := (numbered 1 (mechanisms c)).
Notation r0 := (relation_of c).

Hypothesis mechanisms_ok : forallb (mechanism_ok r0 table) (mechanisms c) = true.

(** mu^2 of a Gaussian step, epsilon of a Laplace step, of a response and of a pure step;
    (sensitivity / noise)^2 of a discrete Gaussian step. *)
Definition cost (i : positive) : R :=
  match mechanism_at c i with
  | Some (GaussianStep _ squared _ std | DiscreteGaussianStep _ squared _ std) =>
      Q2R squared / (Q2R std * Q2R std)
  | Some (LaplaceStep _ squared _ scale | PureStep _ squared _ scale) =>
      sqrt (Q2R squared) / Q2R scale
  | Some (DiscreteLaplaceStep _ squared _ scale) => Q2R (whole_root squared) / Q2R scale
  | Some (ResponseStep truth answers) => Rabs (ln (Q2R (odds truth answers)))
  | Some (SampledLaplaceStep drawn _ squared _ scale) =>
      ln (amplified (Q2R (share_drawn 1 drawn)) (sqrt (Q2R squared) / Q2R scale))
  | _ => 0
  end.

(** rho of a Gaussian step and of a Laplace step. *)
Definition rho (i : positive) : R :=
  match mechanism_at c i with
  | Some (LaplaceStep _ _ _ _ | DiscreteLaplaceStep _ _ _ _) => cost i * cost i / 2
  | _ => cost i / 2
  end.

Lemma mechanism_found i m : mechanism_at c i = Some m -> mechanism_ok r0 table m = true.
Proof.
  intros H; apply numbered_in in H; revert H; apply forallb_forall; exact mechanisms_ok.
Qed.

Lemma relation_eqb_eq r s : relation_eqb r s = true -> r = s.
Proof. destruct r, s; simpl; congruence. Qed.

Lemma gaussian_found i moved squared d std :
  mechanism_at c i = Some (GaussianStep moved squared d std) \/
  mechanism_at c i = Some (DiscreteGaussianStep moved squared d std) ->
  moved = r0 /\ 0 < Q2R std /\ exists s, derived r0 d = Some s /\ Q2R s = Q2R squared.
Proof.
  intros H; assert (Ok : mechanism_ok r0 table (GaussianStep moved squared d std) = true)
    by (destruct H as [H|H]; apply mechanism_found in H; exact H).
  clear H; rename Ok into H; cbn in H; rewrite !andb_true_iff in H.
  destruct H as [[Hr Hs] Hd]; apply relation_eqb_eq in Hr; apply positive_number_R in Hs.
  destruct (derived r0 d) as [s|]; [|discriminate]; apply Q2R_equal in Hd; eauto.
Qed.

(** What is known of a sampling scheme in the list. *)
Definition scheme_fits (drawn : scheme) (d : derivation) : Prop :=
  match drawn with
  | Poisson rate => 0 < Q2R rate <= 1 /\ (r0 = ReplaceOne -> bounds_each_record d = true)
  | FixedBatch size records => r0 = ReplaceOne /\ (Pos.to_nat size <= Pos.to_nat records)%nat
  | WithReplacement _ _ => r0 = ReplaceOne
  end.

Lemma scheme_ok_fits drawn d : scheme_ok drawn r0 d = true -> scheme_fits drawn d.
Proof.
  intros Hd.
  destruct drawn as [rate|size records|size records]; cbn [scheme_ok scheme_fits] in *;
    rewrite ?andb_true_iff in Hd.
  - destruct Hd as [[Ha Hp] H1]; apply positive_number_R in Hp; apply Qle_bool_R in H1.
    rewrite Q2R_number in H1; split; [split; assumption|intros E; rewrite E in Ha; exact Ha].
  - destruct Hd as [Ha Hn]; apply relation_eqb_eq in Ha; apply Pos.leb_le in Hn.
    split; [exact Ha|apply Pos2Nat.inj_le, Hn].
  - apply relation_eqb_eq, Hd.
Qed.

Lemma any_of_real rate group :
  Q2R (any_of rate group) = 1 - none (Q2R rate) (Pos.to_nat group).
Proof.
  assert (Pd : 0 < IZR (Zpos (Qden rate))) by (apply IZR_lt; reflexivity).
  assert (Pow : forall z, IZR (z ^ Zpos group) = IZR z ^ Pos.to_nat group)
    by (intros z; rewrite pow_IZR, positive_nat_Z; reflexivity).
  pose proof (pow_lt _ (Pos.to_nat group) Pd) as Pm.
  unfold any_of, none; cbv zeta; unfold Q2R at 1; cbn [Qnum Qden].
  rewrite Z2Pos.id by (apply Z.pow_pos_nonneg; lia).
  rewrite minus_IZR, !Pow, minus_IZR.
  replace (1 - Q2R rate) with ((IZR (Zpos (Qden rate)) - IZR (Qnum rate)) * / IZR (Zpos (Qden rate)))
    by (unfold Q2R; field; lra).
  rewrite Rpow_mult_distr, pow_inv by lra; field; lra.
Qed.

Lemma share_of_batch_real size records :
  Q2R (share_of_batch size records) = 1 /\ (records <= size)%positive \/
  Q2R (share_of_batch size records) = INR (Pos.to_nat size) / INR (Pos.to_nat records) /\ (size < records)%positive.
Proof.
  unfold share_of_batch; destruct (Pos.ltb_spec size records) as [L|L].
  - right; split; [|exact L]; unfold Q2R; cbn [Qnum Qden]; rewrite !INR_IZR_INZ, !positive_nat_Z; reflexivity.
  - left; split; [apply Q2R_number|exact L].
Qed.

Lemma share_of_batch_within size records : 0 < Q2R (share_of_batch size records) <= 1.
Proof.
  pose proof (pos_INR_nat_of_P size) as Ps; pose proof (pos_INR_nat_of_P records) as Pr.
  destruct (share_of_batch_real size records) as [[-> _]|[-> L]]; [lra|].
  apply Pos2Nat.inj_lt, lt_INR in L; split; [apply Rdiv_lt_0_compat; assumption|].
  apply Rmult_le_reg_r with (1 := Pr); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

(** Of such records each is in a batch with that probability at most, whatever is known of others. *)
Lemma counted_real group size records :
  let each := Z.to_pos (one_of group size records) in
  counted group size records = true ->
  (1 < each)%positive /\ (Pos.to_nat size + Pos.to_nat group <= Pos.to_nat records)%nat /\
  INR (Pos.to_nat size) / INR (S (Pos.to_nat records - Pos.to_nat group)) <= Q2R (1 # each) <= 1.
Proof.
  intros each; unfold counted; cbv zeta; rewrite !andb_true_iff; intros [[_ Two] _]; apply Z.leb_le in Two.
  assert (Ee : Zpos each = one_of group size records) by (apply Z2Pos.id; lia).
  assert (Room : (Zpos size * Zpos each <= Zpos records - Zpos group + 1)%Z)
    by (rewrite Ee; apply Z.mul_div_le; reflexivity).
  assert (Le : (Zpos size + Zpos group <= Zpos records)%Z) by nia.
  assert (Pn : (Pos.to_nat size + Pos.to_nat group <= Pos.to_nat records)%nat) by lia.
  split; [lia|split; [exact Pn|]].
  assert (Es : INR (S (Pos.to_nat records - Pos.to_nat group)) = IZR (Zpos records - Zpos group + 1))
    by (rewrite INR_IZR_INZ; f_equal; lia).
  rewrite Es, INR_IZR_INZ, positive_nat_Z; unfold Q2R; cbn [Qnum Qden].
  assert (Pe : 0 < IZR (Zpos each)) by (apply IZR_lt; reflexivity).
  assert (Pr : 0 < IZR (Zpos records - Zpos group + 1)) by (apply IZR_lt; lia).
  apply IZR_le in Room; rewrite mult_IZR in Room; split.
  - apply (Rmult_le_reg_r (IZR (Zpos records - Zpos group + 1) * IZR (Zpos each))); [apply Rmult_lt_0_compat; assumption|].
    eapply Rle_trans; [|eapply Rle_trans; [exact Room|]]; right; field; lra.
  - apply Rmult_le_reg_r with (1 := Pe); rewrite Rmult_assoc, Rinv_l by lra.
    rewrite !Rmult_1_l; apply IZR_le; lia.
Qed.

Lemma any_of_within rate group : 0 < Q2R rate <= 1 -> 0 < Q2R (any_of rate group) <= 1.
Proof.
  intros Hr; rewrite any_of_real.
  pose proof (none_within (Q2R rate) ltac:(lra) (Pos.to_nat group)) as N; split; [|lra].
  assert (none (Q2R rate) (Pos.to_nat group) <= 1 - Q2R rate); [|lra].
  destruct (Pos.to_nat group) as [|k] eqn:E; [pose proof (Pos2Nat.is_pos group); lia|].
  unfold none; simpl; pose proof (none_within (Q2R rate) ltac:(lra) k) as N'; unfold none in N'.
  assert (0 <= 1 - Q2R rate) by lra; nra.
Qed.

(** Records are drawn with that probability, where it is asked. *)
Lemma drawn_share many drawn d : scheme_fits drawn d -> 0 < Q2R (share_drawn many drawn) <= 1.
Proof.
  destruct drawn as [rate|size records|size records]; cbn [scheme_fits share_drawn]; intros Fits.
  - apply any_of_within, Fits.
  - apply share_of_batch_within.
  - rewrite Q2R_number; lra.
Qed.

Lemma sampled_found i drawn moved squared d std :
  mechanism_at c i = Some (SampledStep drawn moved squared d std) ->
  moved = r0 /\ scheme_fits drawn d /\ 0 < Q2R std /\
  exists s, derived r0 d = Some s /\ Q2R s = Q2R squared.
Proof.
  intros H; apply mechanism_found in H; cbn [mechanism_ok] in H; rewrite !andb_true_iff in H.
  destruct H as [[[[Hd Hr] _] Hs] D]; apply relation_eqb_eq in Hr; subst moved.
  apply positive_number_R in Hs.
  destruct (derived r0 d) as [s|]; [|discriminate]; apply Q2R_equal in D.
  split; [reflexivity|split; [apply scheme_ok_fits, Hd|split; [assumption|eauto]]].
Qed.

Lemma sampled_laplace_found i drawn moved squared d scale :
  mechanism_at c i = Some (SampledLaplaceStep drawn moved squared d scale) ->
  moved = r0 /\ scheme_fits drawn d /\ hides_all drawn r0 = true /\ 0 < Q2R scale /\
  exists s, derived r0 d = Some s /\ Q2R s = Q2R squared.
Proof.
  intros H; apply mechanism_found in H; cbn [mechanism_ok] in H; rewrite !andb_true_iff in H.
  destruct H as [[[[[Hd Hh] Hr] Hs] _] D]; apply relation_eqb_eq in Hr; subst moved.
  apply positive_number_R in Hs.
  destruct (derived r0 d) as [s|]; [|discriminate]; apply Q2R_equal in D.
  repeat split; [apply scheme_ok_fits, Hd|exact Hh|exact Hs|eauto].
Qed.

Lemma mixture_found i moved constant e squared d rate std :
  mechanism_at c i = Some (MixtureStep moved constant e squared d rate std) ->
  moved = r0 /\ 0 <= Q2R rate <= 1 /\ 0 < Q2R std /\
  (exists s, derived r0 e = Some s /\ Q2R s = Q2R constant) /\
  (exists s, derived r0 d = Some s /\ Q2R s = Q2R squared).
Proof.
  intros H; apply mechanism_found in H; cbn [mechanism_ok] in H; rewrite !andb_true_iff in H.
  destruct H as [[[[[Hp H1] Hr] _] Hs] D]; apply relation_eqb_eq in Hr; subst moved.
  apply positive_number_R in Hs; apply Qle_bool_R in H1, Hp; rewrite Q2R_number in H1, Hp.
  destruct (derived r0 e) as [s|]; [|discriminate]; destruct (derived r0 d) as [t|]; [|discriminate].
  apply andb_true_iff in D as [E D]; apply Q2R_equal in E, D.
  split; [reflexivity|split; [split; assumption|split; [exact Hs|split; eauto]]].
Qed.

Lemma accumulated_found i moved squared d rate samples std :
  mechanism_at c i = Some (AccumulatedStep moved squared d rate samples std) ->
  moved = r0 /\ r0 <> ReplaceOne /\ 0 < Q2R rate <= 1 /\ 0 < Q2R std /\
  exists s, derived r0 d = Some s /\ Q2R s = Q2R squared.
Proof.
  intros H; apply mechanism_found in H; cbn [mechanism_ok] in H; rewrite !andb_true_iff in H.
  destruct H as [[[[[Hd Not] Hr] _] Hs] D]; apply relation_eqb_eq in Hr; subst moved.
  apply positive_number_R in Hs; destruct (scheme_ok_fits _ _ Hd) as [Share _].
  destruct (derived r0 d) as [s|]; [|discriminate]; apply Q2R_equal in D.
  split; [reflexivity|split; [intros E; rewrite E in Not; discriminate Not|split; [exact Share|split; [exact Hs|eauto]]]].
Qed.

Lemma laplace_found i moved squared d scale :
  mechanism_at c i = Some (LaplaceStep moved squared d scale) \/
  mechanism_at c i = Some (DiscreteLaplaceStep moved squared d scale) \/
  mechanism_at c i = Some (PureStep moved squared d scale) ->
  moved = r0 /\ 0 < Q2R scale /\ sums d = true /\
  exists s, derived r0 d = Some s /\ Q2R s = Q2R squared.
Proof.
  intros H; assert (Ok : mechanism_ok r0 table (LaplaceStep moved squared d scale) = true)
    by (destruct H as [H|[H|H]]; apply mechanism_found in H; exact H).
  clear H; rename Ok into H; cbn [mechanism_ok] in H; rewrite !andb_true_iff in H.
  destruct H as [[[Hr Hs] Hl] Hd]; apply relation_eqb_eq in Hr; apply positive_number_R in Hs.
  destruct (derived r0 d) as [s|]; [|discriminate]; apply Q2R_equal in Hd; eauto 6.
Qed.

Lemma response_found i truth answers :
  mechanism_at c i = Some (ResponseStep truth answers) ->
  0 < Q2R truth < 1 /\ (2 <= Pos.to_nat answers)%nat /\
  Q2R (odds truth answers) = Q2R truth * (INR (Pos.to_nat answers) - 1) / (1 - Q2R truth) /\
  0 < Q2R (odds truth answers).
Proof.
  intros H; apply mechanism_found in H; cbn [mechanism_ok] in H; rewrite !andb_true_iff in H.
  destruct H as [[_ Hp] Hk]; apply Pos.ltb_lt in Hk; unfold probability in Hp.
  apply andb_true_iff in Hp as [P0 P1]; apply positive_number_R in P0.
  apply negb_true_iff, Qle_bool_R_false in P1; rewrite Q2R_number in P1.
  assert (K : (2 <= Pos.to_nat answers)%nat) by (apply Pos2Nat.inj_lt in Hk; lia).
  pose proof (le_INR _ _ K) as L; change (INR 2) with (1 + 1) in L.
  assert (E : Q2R (odds truth answers)
              = Q2R truth * (INR (Pos.to_nat answers) - 1) / (1 - Q2R truth)).
  { unfold odds; rewrite Q2R_div, Q2R_mult, !Q2R_minus, Q2R_integer_positive, Q2R_number, INR_positive
      by (rewrite Q2R_minus, Q2R_number; lra); reflexivity. }
  repeat split; try assumption; rewrite E; apply Rdiv_lt_0_compat; [|lra].
  apply Rmult_lt_0_compat; lra.
Qed.

Lemma alone i step :
  mechanism_at c i = Some step ->
  (forall inner n, step <> Repeated inner n) -> (forall parts, step <> Parties parts) ->
  forall j, steps_of c j i = [i].
Proof.
  intros F Once Whole j.
  assert (E : repeats c i = [i])
    by (unfold repeats; rewrite F; destruct step; try reflexivity; destruct (Once _ _ eq_refl)).
  unfold steps_of; rewrite E; cbn [flat_map]; rewrite app_nil_r; unfold held_by; rewrite F.
  destruct step; try (destruct (Whole _ eq_refl)); cbn [flat_map]; rewrite E; reflexivity.
Qed.

(** All steps of an exposure, for a record of party [j]. *)
Definition unrolled (j : nat) (e : exposure) : list positive :=
  flat_map (fun mn => concat (repeat (steps_of c j (fst mn)) (Pos.to_nat (snd mn)))) e.

Lemma unrolled_app j d e : unrolled j (d ++ e) = unrolled j d ++ unrolled j e.
Proof. apply flat_map_app. Qed.

Lemma unrolled_coalesce j e : unrolled j (coalesce e) = unrolled j e.
Proof.
  induction e as [|[m n] e IH]; [reflexivity|]; simpl coalesce.
  transitivity (concat (repeat (steps_of c j m) (Pos.to_nat n)) ++ unrolled j e); [|reflexivity].
  rewrite <- IH; destruct (coalesce e) as [|[m' n'] e']; [reflexivity|].
  destruct (Pos.eqb_spec m m') as [->|N]; [|reflexivity].
  unfold unrolled; cbn [flat_map fst snd].
  rewrite Pos2Nat.inj_add, repeat_app, concat_app, app_assoc; reflexivity.
Qed.

Lemma unrolled_canonical j e : Permutation (unrolled j (canonical e)) (unrolled j e).
Proof.
  unfold canonical; rewrite unrolled_coalesce; unfold unrolled.
  apply Permutation_flat_map, Permutation_sym, SortByNumber.Permuted_sort.
Qed.

(** What a party's record pays for an exposure, a price a step. *)
Definition weight (price : positive -> R) (j : nat) (e : exposure) : R := total (unrolled j e) price.

Lemma weight_canonical price j e : weight price j (canonical e) = weight price j e.
Proof. apply total_permutation, unrolled_canonical. Qed.

Lemma weight_app price j d e : weight price j (d ++ e) = weight price j d + weight price j e.
Proof. unfold weight; rewrite unrolled_app; apply total_app. Qed.

Lemma weight_repeated price j n e :
  weight price j (repeated_exposure n e) = IZR (Zpos n) * weight price j e.
Proof.
  unfold weight, unrolled, repeated_exposure; rewrite !total_flat_map, total_map, <- total_scal.
  apply total_ext; intros [m k] _; cbn [fst snd].
  rewrite !total_concat_repeat, Pos2Nat.inj_mul, mult_INR, !INR_positive; ring.
Qed.

Lemma exposure_eqb_eq d e : exposure_eqb d e = true -> d = e.
Proof.
  revert e; induction d as [|[m n] d IH]; intros [|[m' n'] e]; simpl; try congruence.
  rewrite !andb_true_iff, !Pos.eqb_eq; intros [[-> ->] H]; f_equal; auto.
Qed.

Lemma exposures_eqb_eq d e : exposures_eqb d e = true -> d = e.
Proof.
  revert e; induction d as [|x d IH]; intros [|y e]; simpl; try congruence.
  rewrite andb_true_iff; intros [E H]; f_equal; [apply exposure_eqb_eq, E|auto].
Qed.

(** ** Parts by party *)

Lemma repeat_repeat {A} (l : list A) n k :
  concat (repeat (concat (repeat l n)) k) = concat (repeat l (k * n)).
Proof.
  induction k as [|k IH]; [reflexivity|]; simpl; rewrite repeat_app, concat_app, IH; reflexivity.
Qed.

Lemma flat_map_both {A B} (f g : A -> list B) l :
  Permutation (flat_map f l ++ flat_map g l) (flat_map (fun a => f a ++ g a) l).
Proof.
  induction l as [|a l IH]; simpl; [constructor|]; rewrite <- IH, !app_assoc.
  apply Permutation_app_tail; rewrite <- !app_assoc.
  apply Permutation_app_head, Permutation_app_comm.
Qed.

(** All of them so often, or each of them. *)
Lemma flat_map_often {A B} (f : A -> list B) l k :
  Permutation (concat (repeat (flat_map f l) k)) (flat_map (fun a => concat (repeat (f a) k)) l).
Proof.
  induction k as [|k IH]; simpl; [induction l; simpl; auto|]; rewrite IH; apply flat_map_both.
Qed.

Lemma often_permutation {A} (l l' : list A) k :
  Permutation l l' -> Permutation (concat (repeat l k)) (concat (repeat l' k)).
Proof. intros P; induction k; simpl; [constructor|apply Permutation_app; assumption]. Qed.

Lemma flat_map_repeated {A B} (f : A -> list B) l n :
  flat_map f (concat (repeat l n)) = concat (repeat (flat_map f l) n).
Proof. induction n as [|n IH]; simpl; [reflexivity|]; rewrite flat_map_app, IH; reflexivity. Qed.

Lemma concat_singles {A} (a : A) n : concat (repeat [a] n) = repeat a n.
Proof. induction n; simpl; congruence. Qed.

(** What a mechanism repeats is no repetition. *)
Lemma steps_repeated m inner n j :
  mechanism_at c m = Some (Repeated inner n) ->
  steps_of c j m = concat (repeat (steps_of c j inner) (Pos.to_nat n)).
Proof.
  intros F; pose proof (mechanism_found _ _ F) as Ok; cbn in Ok; fold (mechanism_at c inner) in Ok.
  assert (Once : repeats c inner = [inner])
    by (unfold repeats; destruct (mechanism_at c inner) as [[]|]; try discriminate; reflexivity).
  unfold steps_of; rewrite Once; unfold repeats at 2; rewrite F, <- concat_singles.
  rewrite !flat_map_repeated; reflexivity.
Qed.

Lemma held_by_parts j m parts p :
  mechanism_at c m = Some (Parties parts) -> Pos.to_nat p = j -> held_by c j m = parts_for p parts.
Proof.
  unfold held_by, parts_for; intros -> <-; apply flat_map_ext; intros [q held]; cbn [fst snd].
  destruct (Pos.eqb_spec q p) as [->|N]; [rewrite Nat.eqb_refl; reflexivity|].
  destruct (Nat.eqb_spec (Pos.to_nat q) (Pos.to_nat p)) as [E|]; [|reflexivity].
  destruct N; apply Pos2Nat.inj, E.
Qed.

Lemma held_by_nobody j m parts :
  mechanism_at c m = Some (Parties parts) ->
  (forall p, Pos.to_nat p = j -> ~ In p (map fst parts)) -> held_by c j m = [].
Proof.
  unfold held_by; intros -> N; induction parts as [|[q held] parts IH]; [reflexivity|]; cbn [flat_map fst snd].
  destruct (Nat.eqb_spec (Pos.to_nat q) j) as [E|_]; [destruct (N q E); left; reflexivity|].
  apply IH; intros p E I; apply (N p E); right; exact I.
Qed.

Lemma steps_of_parts j m parts :
  mechanism_at c m = Some (Parties parts) -> steps_of c j m = flat_map (repeats c) (held_by c j m).
Proof.
  intros F; unfold steps_of, repeats at 2; rewrite F; cbn [flat_map]; rewrite app_nil_r; reflexivity.
Qed.

(** A part is the same to everybody. *)
Lemma part_steps j i : undivided table i = true -> steps_of c j i = repeats c i.
Proof.
  unfold undivided; fold (mechanism_at c i); destruct (mechanism_at c i) as [m|] eqn:F; [|discriminate].
  destruct m as [| | | | | | | | | |inner n|]; try discriminate; intros H;
    try (rewrite (alone i _ F) by discriminate; unfold repeats; rewrite F; reflexivity).
  fold (mechanism_at c inner) in H; destruct (mechanism_at c inner) as [m|] eqn:G; [|discriminate].
  assert (One : steps_of c j inner = [inner]).
  { apply (alone inner _ G); [intros inner' n' ->|intros parts ->; discriminate].
    pose proof (mechanism_found _ _ F) as Ok; cbn in Ok; fold (mechanism_at c inner) in Ok.
    rewrite G in Ok; discriminate. }
  rewrite (steps_repeated _ _ _ _ F), One, concat_singles; unfold repeats; rewrite F; reflexivity.
Qed.

Lemma parts_undivided m parts p i :
  mechanism_at c m = Some (Parties parts) -> In i (parts_for p parts) -> undivided table i = true.
Proof.
  intros F I; pose proof (mechanism_found _ _ F) as Ok; cbn [mechanism_ok] in Ok.
  rewrite forallb_forall in Ok; apply in_flat_map in I as (part & J & I); specialize (Ok part J).
  rewrite forallb_forall in Ok; destruct (Pos.eqb (fst part) p); [apply Ok, I|destruct I].
Qed.

(** Its party's parts, so often each. *)
Lemma divided_steps j m parts n p :
  divided table m = Some (parts, n) -> Pos.to_nat p = j ->
  Permutation (steps_of c j m) (unrolled j (map (fun i => (i, n)) (parts_for p parts))).
Proof.
  assert (Of : forall inner k, mechanism_at c inner = Some (Parties parts) -> Pos.to_nat p = j ->
            Permutation (concat (repeat (steps_of c j inner) (Pos.to_nat k)))
              (unrolled j (map (fun i => (i, k)) (parts_for p parts)))).
  { intros inner k F Ep; rewrite (steps_of_parts _ _ _ F), (held_by_parts _ _ _ _ F Ep), flat_map_often.
    unfold unrolled; rewrite flat_map_concat_map, (flat_map_concat_map _ (map _ _)), map_map.
    cbn [fst snd]; erewrite map_ext_in; [reflexivity|]; intros i I.
    cbv beta; rewrite (part_steps j i (parts_undivided _ _ _ _ F I)); reflexivity. }
  unfold divided; fold (mechanism_at c m); destruct (mechanism_at c m) as [[| | | | | | | | | |inner k|parts']|] eqn:F;
    try discriminate; intros E Ep.
  - fold (mechanism_at c inner) in E; destruct (mechanism_at c inner) as [[| | | | | | | | | | |parts']|] eqn:G;
      try discriminate; injection E as -> ->.
    rewrite (steps_repeated _ _ _ _ F); apply Of; assumption.
  - injection E as -> <-; rewrite <- (Of m 1%positive F Ep); simpl; rewrite app_nil_r; reflexivity.
Qed.

Lemma divided_nobody j m parts n :
  divided table m = Some (parts, n) ->
  (forall p, Pos.to_nat p = j -> ~ In p (map fst parts)) -> steps_of c j m = [].
Proof.
  unfold divided; fold (mechanism_at c m); destruct (mechanism_at c m) as [[| | | | | | | | | |inner k|parts']|] eqn:F;
    try discriminate; intros E N.
  - fold (mechanism_at c inner) in E; destruct (mechanism_at c inner) as [[| | | | | | | | | | |parts']|] eqn:G;
      try discriminate; injection E as -> ->.
    rewrite (steps_repeated _ _ _ _ F), (steps_of_parts _ _ _ G), (held_by_nobody _ _ _ G N).
    induction (Pos.to_nat n); simpl; auto.
  - injection E as -> _; rewrite (steps_of_parts _ _ _ F), (held_by_nobody _ _ _ F N); reflexivity.
Qed.

(** ** What a record can meet is in one of the views *)

Lemma names_concerns e p : names e p = concerns e (Pos.to_nat p).
Proof.
  unfold names, concerns; destruct (event_parties e) as [|q l]; [reflexivity|].
  generalize (q :: l) as named; intros named; induction named as [|a named IH]; [reflexivity|].
  simpl; rewrite IH; f_equal.
  destruct (Pos.eqb_spec p a) as [->|N]; symmetry; [apply Nat.eqb_refl|].
  apply Nat.eqb_neq; intros E; apply N, Pos2Nat.inj; auto.
Qed.

(** A party is named by some event or by none. *)
Lemma named_or_not named j :
  (exists p, Pos.to_nat p = j /\ PositiveMap.find p (parties_of named (events c)) = Some tt)
  \/ (forall p, Pos.to_nat p = j -> PositiveMap.find p (parties_of named (events c)) <> Some tt).
Proof.
  destruct (Nat.eq_dec j 0) as [->|N].
  - right; intros p E; pose proof (Pos2Nat.is_pos p); lia.
  - destruct (PositiveMap.find (Pos.of_nat j) (parties_of named (events c))) as [[]|] eqn:F.
    + left; exists (Pos.of_nat j); split; [apply Nat2Pos.id, N|exact F].
    + right; intros p E; rewrite <- E in F; rewrite Pos2Nat.id in F; congruence.
Qed.

(** An event that concerns a party that none names is everybody's. *)
Lemma everybodys named j e :
  (forall e, incl (event_parties e) (named e)) ->
  (forall p, Pos.to_nat p = j -> PositiveMap.find p (parties_of named (events c)) <> Some tt) ->
  In e (events c) -> concerns e j = true -> event_parties e = [].
Proof.
  intros All Unnamed Ie E; destruct (event_parties e) as [|q l] eqn:El; [reflexivity|exfalso].
  unfold concerns in E; rewrite El in E; apply existsb_exists in E as (p & Ip & E).
  apply Nat.eqb_eq in E; apply (Unnamed p E).
  apply parties_of_in with e; [exact Ie|apply All; rewrite El; exact Ip].
Qed.

(** A party's record meets no more than the exposure. *)
Definition enough (j : nat) (e : exposure) : Prop :=
  exists extra, Permutation (allowed c j ++ extra) (unrolled j e).

Lemma picked_enough j (pick : event -> exposure) :
  (forall e, In e (events c) -> concerns e j = true ->
     exists extra,
     Permutation (concat (repeat (steps_of c j (event_mechanism e)) (Pos.to_nat (event_times e))) ++ extra)
       (unrolled j (pick e))) ->
  enough j (canonical (flat_map pick (events c))).
Proof.
  intros H.
  assert (E : exists extra, Permutation (allowed c j ++ extra) (unrolled j (flat_map pick (events c)))).
  { unfold allowed; revert H; generalize (events c) as es; intros es.
    induction es as [|e es IH]; intros H; [exists []; constructor|].
    destruct IH as [extra P]; [intros; apply H; [right|]; assumption|].
    cbn [flat_map]; rewrite unrolled_app; destruct (concerns e j) eqn:C.
    - destruct (H e (or_introl eq_refl) C) as [extra' P']; exists (extra' ++ extra).
      rewrite <- P, <- P', <- !app_assoc; apply Permutation_app_head.
      rewrite !app_assoc; apply Permutation_app_tail, Permutation_app_comm.
    - exists (unrolled j (pick e) ++ extra); simpl.
      rewrite <- P, !app_assoc; apply Permutation_app_tail, Permutation_app_comm. }
  destruct E as [extra P]; exists extra; rewrite unrolled_canonical; exact P.
Qed.

Lemma selected_enough j (select : event -> bool) :
  (forall e, In e (events c) -> concerns e j = true -> select e = true) ->
  enough j (canonical (flat_map (fun e =>
    if select e then [(event_mechanism e, event_times e)] else []) (events c))).
Proof.
  intros H; apply picked_enough; intros e I C; rewrite (H e I C); exists []; simpl.
  unfold unrolled; simpl; reflexivity.
Qed.

Lemma view_enough j : exists v, In v (views (events c)) /\ enough j v.
Proof.
  set (t := parties_of event_parties (events c)).
  destruct (named_or_not event_parties j) as [(p & Ep & Fp)|Unnamed].
  - exists (view (events c) p); split; [|apply selected_enough].
    + unfold views; apply PositiveMap.elements_correct in Fp; fold t in Fp |- *.
      destruct (PositiveMap.elements t) as [|x l]; [destruct Fp|].
      apply (in_map (fun q => view (events c) (fst q))) in Fp; exact Fp.
    + intros e _ E; rewrite names_concerns, Ep; exact E.
  - assert (Common := everybodys event_parties j).
    unfold views; fold t; destruct (PositiveMap.elements t) as [|x l].
    + exists (common_view (events c)); split; [left; reflexivity|apply selected_enough].
      intros e Ie E; unfold common; rewrite (Common e); auto using incl_refl.
    + exists (view (events c) (fst x)); split; [left; reflexivity|apply selected_enough].
      intros e Ie E; unfold names; rewrite (Common e); auto using incl_refl.
Qed.

(** A view of mechanisms that are taken apart. *)
Lemma apart_enough j p :
  (Pos.to_nat p = j \/
   forall e, In e (events c) -> concerns e j = true -> event_parties e = [] /\
     forall q, Pos.to_nat q = j -> ~ In q (named_apart table e)) ->
  enough j (view_apart table (events c) p).
Proof.
  intros Own; apply picked_enough; intros e I C.
  assert (N : names e p = true).
  { destruct Own as [<-|Own]; [rewrite names_concerns; exact C|].
    unfold names; rewrite (proj1 (Own e I C)); reflexivity. }
  rewrite N; unfold taken_apart; destruct (divided table (event_mechanism e)) as [[parts n]|] eqn:D.
  2:{ exists []; simpl; unfold unrolled; simpl; reflexivity. }
  destruct Own as [Ep|Own].
  - exists []; rewrite app_nil_r.
    eapply Permutation_trans; [apply often_permutation, (divided_steps j _ _ _ p D Ep)|].
    unfold unrolled; rewrite !(flat_map_concat_map _ (map _ _)), !map_map, <- !flat_map_concat_map.
    rewrite flat_map_often; cbn [fst snd]; erewrite flat_map_ext; [reflexivity|]; intros i; cbv beta.
    rewrite repeat_repeat, Pos2Nat.inj_mul; reflexivity.
  - destruct (Own e I C) as [_ Nobody].
    rewrite (divided_nobody j _ _ _ D).
    + exists (unrolled j (map (fun i => (i, (event_times e * n)%positive)) (parts_for p parts))).
      induction (Pos.to_nat (event_times e)); simpl; auto.
    + intros q Eq Iq; apply (Nobody q Eq); unfold named_apart; rewrite D; apply in_or_app; right; exact Iq.
Qed.

Lemma not_filtered (v : exposure) (l : list exposure) :
  In v l ->
  In v (List.filter (fun v : exposure => match v with [] => false | _ => true end) l) \/ v = [].
Proof.
  destruct v; intros I; [right; reflexivity|left; apply filter_In; split; [exact I|reflexivity]].
Qed.

Lemma view_apart_enough j : exists v, (In v (views_apart table (events c)) \/ v = []) /\ enough j v.
Proof.
  set (t := parties_of (named_apart table) (events c)).
  destruct (named_or_not (named_apart table) j) as [(p & Ep & Fp)|Unnamed].
  - exists (view_apart table (events c) p); split; [|apply apart_enough; left; exact Ep].
    unfold views_apart; apply PositiveMap.elements_correct in Fp; fold t in Fp |- *.
    apply not_filtered; destruct (PositiveMap.elements t) as [|x l]; [destruct Fp|].
    apply (in_map (fun q => view_apart table (events c) (fst q))) in Fp; exact Fp.
  - assert (Other : forall p, enough j (view_apart table (events c) p)).
    { intros p; apply apart_enough; right; intros e I C; split.
      - apply (everybodys (named_apart table) j e); auto.
        intros e' q Iq; unfold named_apart; apply in_or_app; left; exact Iq.
      - intros q Eq Iq; apply (Unnamed q Eq), parties_of_in with e; assumption. }
    unfold views_apart; fold t; destruct (PositiveMap.elements t) as [|x l].
    + exists (view_apart table (events c) 1); split; [apply not_filtered; left; reflexivity|apply Other].
    + exists (view_apart table (events c) (fst x)); split; [apply not_filtered; left; reflexivity|apply Other].
Qed.

(** ** Runs *)

Section Run.

Context {X : Type} (null : X) (r : execution X).
Hypothesis run_satisfies : behaves null c r.

Notation adj := (neighbours null r0).
Notation mechanism_of h := (next_mechanism r h).

(** Which step a Gaussian round is, and what that makes its law. *)
Definition plain_round (h : history) (s std : R) : Prop :=
  (exists moved squared d std',
     mechanism_at c (mechanism_of h) = Some (GaussianStep moved squared d std')) /\
  sampled_parties r h = [] /\ cost (mechanism_of h) = s / (std * std).

Definition sampled_round (h : history) (s std : R) : Prop :=
  exists drawn moved squared d std',
  mechanism_at c (mechanism_of h) = Some (SampledStep drawn moved squared d std') /\
  s = Q2R squared /\ std = Q2R std' /\
  draws_as r h drawn /\ scheme_fits drawn d /\
  NoDup (sampled_parties r h) /\ (forall j, In j (sampled_parties r h) <-> reads r h j = true) /\
  (r0 = ZeroOutOne -> null_is_absent null r h).

(** Everything about a round with normal noise that is used ... *)
Definition normal_round (h : history) (s std : R) : Prop :=
  noise r h = Normal std /\ 0 < std /\ 0 <= s /\ (plain_round h s std \/ sampled_round h s std) /\
  (forall j, reads r h j = true ->
     sensitivity (V := euclidean (dimension r h)) (differ_at adj j) (value r h) (sqrt s)) /\
  (forall j x y, reads r h j = false -> same_but j x y -> value r h x = value r h y).

(** ... about one with discrete Gaussian noise ... *)
Definition discrete_round (h : history) : Prop :=
  (exists moved squared d std,
     mechanism_at c (mechanism_of h) = Some (DiscreteGaussianStep moved squared d std)) /\
  (forall x, distribution (next_messages r h) (next_law r x h)) /\
  (forall j x y, reads r h j = false -> same_but j x y -> next_law r x h = next_law r y h) /\
  (forall j, reads r h j = true ->
     zcdp (differ_at adj j) (next_messages r h) (fun x => next_law r x h) (rho (mechanism_of h))).

(** ... and about one in pure DP. *)
Definition pure_round (h : history) : Prop :=
  (exists m, mechanism_at c (mechanism_of h) = Some m /\
     pays_in (PureDp 0) m = true /\ pays_in (Gdp 0) m = false) /\
  (forall x, distribution (next_messages r h) (next_law r x h)) /\
  (forall j x y, reads r h j = false -> same_but j x y -> next_law r x h = next_law r y h) /\
  (forall j, reads r h j = true ->
     pure (differ_at adj j) (next_messages r h) (fun x => next_law r x h) (cost (mechanism_of h))).

Lemma unread_same_but {V} h (f : (nat -> list X) -> V) j x y :
  leaves_unread r h f -> reads r h j = false -> same_but j x y -> f x = f y.
Proof. intros U R Dxy; rewrite (same_with_part x y j Dxy); symmetry; apply U, R. Qed.

(** From one part's records to all that lies in their neighbourhood. *)
Lemma part_sensitivity (V : Space) h j squared d s (f : (nat -> list X) -> V) :
  derived r0 d = Some s -> Q2R s = Q2R squared ->
  (forall data, derives null r0 d V (fun part => f (with_part data j part))) ->
  reads r h j = true -> sensitivity (differ_at adj j) f (sqrt (Q2R squared)).
Proof.
  intros D E Read R x y Dxy; pose proof (same_with_part x y j (proj2 Dxy)) as Ey.
  destruct (derived_sound null r0 d _ _ (Read x) s D) as [_ S]; rewrite E in S.
  specialize (S (x j) (y j) (proj1 Dxy)); simpl in S.
  rewrite with_own_part, <- Ey in S; exact S.
Qed.

(** Where that is nothing, no number moves. *)
Lemma part_unmoved n h j squared d s (f : (nat -> list X) -> nat -> R) x y :
  derived r0 d = Some s -> Q2R s = Q2R squared -> Q2R squared = 0 ->
  (forall data, derives null r0 d (euclidean n) (fun part => f (with_part data j part))) ->
  reads r h j = true -> differ_at adj j x y -> forall i, (i < n)%nat -> f x i = f y i.
Proof.
  intros D E Z Read R Dxy i Hi.
  pose proof (part_sensitivity (euclidean n) h j squared d s f D E Read R x y Dxy) as Near.
  rewrite Z, sqrt_0 in Near; set (gap := @sub (euclidean n) (f x) (f y)) in *.
  pose proof (norm_pos gap) as P; pose proof (norm_sq gap) as Sq.
  replace (norm gap) with 0 in Sq by lra; rewrite Rmult_0_l in Sq; symmetry in Sq.
  pose proof (total_zero_inv _ _ (fun k _ => Rle_0_sqr (gap k)) Sq i ltac:(apply in_seq; lia)) as Zero.
  apply Rsqr_0_uniq in Zero; unfold gap, sub in Zero; simpl in Zero; lra.
Qed.

(** What is said of a row that no record moves, or of a sample that holds nobody, is not told from what is
    said of a neighbour. *)
Lemma unmoved_samples {A} h j (f : (nat -> list X) -> nat -> R) (K : (nat -> R) -> A -> R) a x y :
  NoDup (sampled_parties r h) -> (forall j, In j (sampled_parties r h) <-> reads r h j = true) ->
  (forall part, distribution (draws_of (sampled_by r h) part) snd) -> leaves_unread r h f ->
  (forall u v, (forall i, (i < dimension r h)%nat -> u i = v i) -> K u a = K v a) ->
  sampled_by r h = EachWith 0 \/
  (reads r h j = true -> forall u v, differ_at adj j u v -> forall i, (i < dimension r h)%nat -> f u i = f v i) ->
  differ_at adj j x y ->
  on_samples (draws_of (sampled_by r h)) (fun data => K (f data)) (sampled_parties r h) x a
  = on_samples (draws_of (sampled_by r h)) (fun data => K (f data)) (sampled_parties r h) y a.
Proof.
  intros U I Laws Unread Rows Still [A0 Same]; destruct (reads r h j) eqn:R.
  2:{ rewrite (on_samples_at _ _ _ x), (on_samples_at _ _ _ y).
      apply on_samples_unread with (j := j); [intros J; apply I in J; congruence|exact Same|].
      intros u v S _ _ _; rewrite (unread_same_but h f j u v Unread R S); reflexivity. }
  destruct Still as [Nobody|Still].
  - apply on_samples_alike with (j := j) (near := eq); try assumption; [| |apply I, R].
    + intros g _; rewrite Nobody; cbn [draws_of]; rewrite !mean_of_nobody; reflexivity.
    + intros u v S E; replace v with u; [reflexivity|]; extensionality i.
      destruct (Nat.eq_dec i j) as [->|N]; [exact E|apply S, N].
  - apply on_samples_alike with (j := j) (near := interchangeable r0); try assumption; [| |apply I, R].
    + intros g G; apply (mean_alike _ r0); [apply (neighbours_alike null), A0|exact Laws|exact G].
    + intros u v S Al; rewrite (same_with_part u v j S), <- (with_own_part u j) at 1.
      apply (unmoved_alike null r0 (fun part => K (f (with_part u j part)) a)); [|exact Al].
      intros p q N; apply Rows, (Still eq_refl); split; [rewrite !with_part_own; exact N|].
      intros i Ni; rewrite !with_part_other by exact Ni; reflexivity.
Qed.

Lemma int_part_whole n : Int_part (IZR n) = n.
Proof.
  destruct (base_Int_part (IZR n)) as [A B]; apply le_IZR in A.
  assert (H : IZR n < IZR (Int_part (IZR n)) + 1) by lra.
  rewrite <- plus_IZR in H; apply lt_IZR in H; lia.
Qed.

Lemma discrete_is_zcdp h moved squared d std :
  is_discrete_step r h (mechanism_at c (mechanism_of h)) moved squared d std ->
  0 < Q2R std -> 0 <= Q2R squared -> leaves_unread r h (value r h) ->
  (forall j, reads r h j = true ->
     sensitivity (V := euclidean (dimension r h)) (differ_at adj j) (value r h)
       (sqrt (Q2R squared))) ->
  discrete_round h.
Proof.
  intros (F & N & Whole) Hs Sq Unread Sens.
  set (q := fun x i => Int_part (value r h x i)).
  assert (Eq : (fun x i => IZR (q x i)) = value r h).
  { extensionality x; extensionality i; unfold q; destruct (Whole x i) as [n E].
    rewrite E, int_part_whole; reflexivity. }
  unfold discrete_round, next_messages, next_law; rewrite N; split; [|split; [|split]].
  - eauto.
  - intros x; apply numbers_distribution, discrete_gaussian_vector_distribution; [exact Hs|].
    apply (grids_ascend null c r run_satisfies h).
  - intros j x y R Dxy; unfold discrete_gaussian_vector.
    rewrite (unread_same_but h _ j x y Unread R Dxy); reflexivity.
  - intros j R alpha Ha x y Dxy; apply numbers_rdp.
    replace (rho (mechanism_of h)) with
      (sqrt (Q2R squared) * sqrt (Q2R squared) / (2 * (Q2R std * Q2R std)))
      by (unfold rho, cost; rewrite F, sqrt_sqrt by exact Sq; field; lra).
    apply (vector_discrete_gaussian_zcdp (differ_at adj j) q (Q2R std) (sqrt (Q2R squared))
             (dimension r h) (cuts r h)); [exact Hs| | |exact Ha|exact Dxy].
    + apply (grids_ascend null c r run_satisfies h).
    + rewrite Eq; apply Sens, R.
Qed.

Lemma gaussian_is_normal h :
  gaussian_round null r h (mechanism_at c (mechanism_of h)) ->
  (exists s std, normal_round h s std) \/ discrete_round h.
Proof.
  intros (moved & squared & d & std & F & Read & _ & Unread).
  assert (Found : moved = r0 /\ 0 < Q2R std /\ exists s, derived r0 d = Some s /\ Q2R s = Q2R squared).
  { destruct F as [[[[F _]|(rate & F & _)] _]|(F & _)].
    - exact (gaussian_found _ _ _ _ _ (or_introl F)).
    - destruct (sampled_found _ _ _ _ _ _ F) as (E & _ & Hs & D); auto.
    - exact (gaussian_found _ _ _ _ _ (or_intror F)). }
  destruct Found as (-> & Hs & s & D & E).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
  assert (Sens : forall j, reads r h j = true ->
            sensitivity (V := euclidean (dimension r h)) (differ_at adj j) (value r h)
              (sqrt (Q2R squared))).
  { intros j R; apply (part_sensitivity (euclidean (dimension r h)) h j squared d s);
      try assumption; intros data; apply Read, R. }
  destruct F as [[F N]|F];
    [left|right; apply (discrete_is_zcdp h r0 squared d std); assumption].
  exists (Q2R squared), (Q2R std);
    split; [exact N|split; [exact Hs|split; [exact Sq|split; [|split; [exact Sens|]]]]].
  - destruct F as [[F Z]|(rate & F & Er & U & I & Absent)]; [left|right].
    + split; [eauto|split; [exact Z|]]; unfold cost; rewrite F; reflexivity.
    + destruct (sampled_found _ _ _ _ _ _ F) as (_ & Ea & _).
      exists rate, r0, squared, d, std; repeat split; try assumption; apply I.
  - intros j x y R Dxy; apply (unread_same_but h _ j); assumption.
Qed.

(** The l1 norm is a total with the right signs. *)
Lemma signed_total n (a : nat -> R) : exists signs : nat -> R,
  (forall i, Rabs (signs i) = 1) /\
  total (seq 0 n) (fun i => signs i * a i) = total (seq 0 n) (fun i => Rabs (a i)).
Proof.
  exists (fun i => if Rle_dec 0 (a i) then 1 else -1); split.
  - intros i; destruct (Rle_dec 0 (a i)); [apply Rabs_R1|rewrite Rabs_left; lra].
  - apply total_ext; intros i _; destruct (Rle_dec 0 (a i)).
    + rewrite Rabs_right; lra.
    + rewrite Rabs_left; lra.
Qed.

Lemma moved_in_l1 h j squared d s x y :
  derived r0 d = Some s -> Q2R s = Q2R squared ->
  derives_in_l1 null r h r0 d ->
  reads r h j = true -> differ_at adj j x y ->
  total (seq 0 (dimension r h)) (fun i => Rabs (value r h x i - value r h y i))
    <= sqrt (Q2R squared).
Proof.
  intros D E Read R Dxy.
  destruct (signed_total (dimension r h) (fun i => value r h x i - value r h y i))
    as (signs & Hs & <-).
  pose proof (part_sensitivity (euclidean 1) h j squared d s
                (fun data _ => total (seq 0 (dimension r h)) (fun i => signs i * value r h data i))
                D E (fun data => Read j data signs R Hs) R x y Dxy) as S.
  eapply Rle_trans; [|exact S].
  apply Rle_trans with (norm (V := euclidean 1) (fun _ =>
    total (seq 0 (dimension r h)) (fun i => signs i * (value r h x i - value r h y i)))).
  - eapply Rle_trans; [apply Rle_abs|apply (entry_within_norm (fun _ => _))].
  - right; f_equal; unfold sub; simpl; apply functional_extensionality; intros _.
    rewrite <- total_scal, <- total_plus; apply total_ext; intros i _; ring.
Qed.

Lemma unmoved_in_l1 h j squared d s x y :
  derived r0 d = Some s -> Q2R s = Q2R squared -> Q2R squared = 0 -> derives_in_l1 null r h r0 d ->
  reads r h j = true -> differ_at adj j x y -> forall i, (i < dimension r h)%nat -> value r h x i = value r h y i.
Proof.
  intros D E Z Read R Dxy i Hi; pose proof (moved_in_l1 h j squared d s x y D E Read R Dxy) as Near.
  rewrite Z, sqrt_0 in Near.
  assert (Pos : forall k : nat, 0 <= Rabs (value r h x k - value r h y k)) by (intros; apply Rabs_pos).
  pose proof (total_zero_inv (seq 0 (dimension r h)) (fun k => Rabs (value r h x k - value r h y k))
                (fun k _ => Pos k)) as Zero.
  specialize (Zero (Rle_antisym _ _ Near (total_nonneg _ _ (fun k _ => Pos k))) i ltac:(apply in_seq; lia)).
  cbv beta in Zero; apply Rabs_eq_0 in Zero; lra.
Qed.

Lemma whole_total {A} (l : list A) (f : A -> Z) :
  exists n, total l (fun a => IZR (Z.abs (f a))) = IZR n /\ (0 <= n)%Z.
Proof.
  induction l as [|a l (n & E & P)]; [exists 0%Z; split; [reflexivity|lia]|].
  exists (Z.abs (f a) + n)%Z; simpl; rewrite E, plus_IZR; split; [reflexivity|lia].
Qed.

(** A whole number is at most a root if it is at most the root's whole part. *)
Lemma whole_root_above n squared :
  (0 <= n)%Z -> 0 <= Q2R squared -> IZR n <= sqrt (Q2R squared) -> IZR n <= Q2R (whole_root squared).
Proof.
  intros P Sq H; unfold whole_root; rewrite Q2R_integer; apply IZR_le.
  apply IZR_le in P; apply Rmult_le_compat with (1 := P) (2 := P) (3 := H) in H.
  rewrite sqrt_sqrt, <- mult_IZR, <- Q2R_integer in H by exact Sq; apply Rle_Qle in H.
  apply Qfloor_resp_le in H; rewrite Qfloor_Z in H.
  apply le_IZR in P; rewrite <- (Z.sqrt_square n P); apply Z.sqrt_le_mono, H.
Qed.

Lemma whole_root_below squared :
  0 <= Q2R squared -> 0 <= Q2R (whole_root squared) <= sqrt (Q2R squared).
Proof.
  intros Sq; unfold whole_root; rewrite Q2R_integer.
  assert (F : (0 <= Qfloor squared)%Z).
  { assert (H : (0 <= squared)%Q) by (apply Rle_Qle; rewrite Q2R_number; exact Sq).
    apply Qfloor_resp_le in H; exact H. }
  pose proof (Z.sqrt_nonneg (Qfloor squared)) as N; apply IZR_le in N; split; [exact N|].
  rewrite <- (sqrt_square _ N); apply sqrt_le_1_alt; rewrite <- mult_IZR.
  apply Rle_trans with (IZR (Qfloor squared)); [apply IZR_le, Z.sqrt_spec, F|].
  rewrite <- Q2R_integer; apply Qle_Rle, Qfloor_le.
Qed.

Lemma whole_moves h x y squared :
  whole_values r h -> 0 <= Q2R squared ->
  total (seq 0 (dimension r h)) (fun i => Rabs (value r h x i - value r h y i)) <= sqrt (Q2R squared) ->
  total (seq 0 (dimension r h)) (fun i =>
    IZR (Z.abs (Int_part (value r h x i) - Int_part (value r h y i)))) <= Q2R (whole_root squared).
Proof.
  intros Whole Sq Moves.
  destruct (whole_total (seq 0 (dimension r h))
              (fun i => (Int_part (value r h x i) - Int_part (value r h y i))%Z)) as (n & E & P).
  rewrite E; apply whole_root_above; [exact P|exact Sq|]; rewrite <- E.
  eapply Rle_trans; [|exact Moves]; right; apply total_ext; intros i _.
  destruct (Whole x i) as [u ->], (Whole y i) as [v ->].
  rewrite !int_part_whole, abs_IZR, minus_IZR; reflexivity.
Qed.

Lemma discrete_is_pure h moved squared d b :
  mechanism_at c (mechanism_of h) = Some (DiscreteLaplaceStep moved squared d b) ->
  noise r h = DiscreteLaplace (Q2R b) ->
  whole_values r h -> 0 < Q2R b -> 0 <= Q2R squared ->
  leaves_unread r h (value r h) ->
  (forall j x y, reads r h j = true -> differ_at adj j x y ->
     total (seq 0 (dimension r h)) (fun i => Rabs (value r h x i - value r h y i))
       <= sqrt (Q2R squared)) ->
  pure_round h.
Proof.
  intros F N Whole B Sq Unread Moves; set (q := fun x i => Int_part (value r h x i)).
  assert (L : forall x, distribution (vector_outcomes (dimension r h) (cuts r h))
                          (geometric_vector q (Q2R b) x)).
  { intros x; apply geometric_vector_distribution; [exact B|].
    apply (grids_ascend null c r run_satisfies h). }
  unfold pure_round, next_messages, next_law; rewrite N; split; [|split; [|split]].
  - eexists; split; [exact F|split; reflexivity].
  - intros x; apply numbers_distribution, L.
  - intros j x y R Dxy; unfold geometric_vector.
    rewrite (unread_same_but h _ j x y Unread R Dxy); reflexivity.
  - intros j R x y Dxy m I; apply in_map_iff in I as (cells' & <- & I); cbn [of_numbers].
    unfold cost; rewrite F.
    apply (vector_geometric_pure (differ_at adj j) q (Q2R b) (Q2R (whole_root squared))
             (dimension r h) (cuts r h)); [exact B| | |exact Dxy|exact I].
    + apply (grids_ascend null c r run_satisfies h).
    + clear x y Dxy I; intros x y Dxy; apply (whole_moves h x y squared Whole Sq (Moves j x y R Dxy)).
Qed.

(** Data sets that differ by so many records of party [j] at most. *)
Definition within_steps (k j : nat) (x y : nat -> list X) : Prop :=
  exists i, (i <= k)%nat /\ steps (differ_at adj j) i x y.

Lemma own_steps (near : list X -> list X -> Prop) k j x y : steps (differ_at near j) k x y -> steps near k (x j) (y j).
Proof.
  revert y; induction k as [|k IH]; intros y; [intros <-; reflexivity|].
  intros (z & S & [A _]); exists (z j); split; [apply IH, S|exact A].
Qed.

(** They move a value by as many times what one of them does. *)
Lemma far_within (dist : (nat -> list X) -> (nat -> list X) -> R) (a : R) j k x y :
  (forall x, dist x x = 0) -> (forall x y z, dist x z <= dist x y + dist y z) ->
  (forall x y, differ_at adj j x y -> dist x y <= a) ->
  steps (differ_at adj j) k x y -> dist x y <= INR k * a.
Proof.
  intros Z T One; revert y; induction k as [|k IH]; intros y.
  - intros <-; rewrite Z; simpl; lra.
  - intros (z & S' & A); rewrite S_INR; specialize (IH z S'); specialize (One z y A).
    pose proof (T x z y); lra.
Qed.

Lemma far_in_l2 n k j (f : (nat -> list X) -> euclidean n) a x y :
  sensitivity (differ_at adj j) f a -> steps (differ_at adj j) k x y -> norm (sub (f x) (f y)) <= INR k * a.
Proof.
  intros S; apply (far_within (fun x y => norm (sub (f x) (f y)))); [| |exact S].
  - intros u; rewrite sub_diag; apply norm_zero.
  - intros u v w; eapply Rle_trans; [|apply norm_add]; right; f_equal.
    unfold sub; simpl; extensionality i; ring.
Qed.

Lemma far_in_l1 h k j squared d s x y :
  derived r0 d = Some s -> Q2R s = Q2R squared ->
  derives_in_l1 null r h r0 d ->
  reads r h j = true -> within_steps k j x y ->
  total (seq 0 (dimension r h)) (fun i => Rabs (value r h x i - value r h y i))
    <= INR k * sqrt (Q2R squared).
Proof.
  intros D E Read R (i & Le & Sxy); apply Rle_trans with (INR i * sqrt (Q2R squared));
    [|apply Rmult_le_compat_r; [apply sqrt_pos|apply le_INR, Le]].
  apply (far_within (fun x y => total (seq 0 (dimension r h)) (fun i => Rabs (value r h x i - value r h y i)))
           _ j); [| | |exact Sxy].
  - intros u; apply total_zero; intros n _; rewrite Rminus_diag_eq by reflexivity; apply Rabs_R0.
  - intros u v w; rewrite <- total_plus; apply total_le; intros n _.
    replace (value r h u n - value r h w n)
      with ((value r h u n - value r h v n) + (value r h v n - value r h w n)) by ring.
    apply Rabs_triang.
  - intros u v Duv; apply (moved_in_l1 h j squared d s); assumption.
Qed.

(** So many records that are zeroed out, or removed. *)
Lemma lost_hidden k a b : steps (loses null ZeroOutOne) k a b -> exists b', hidden null k a b b'.
Proof.
  revert b; induction k as [|k IH]; intros b; [intros <-; exists a; apply hidden_all|].
  intros (z & Ls & before & w & after & -> & ->); destruct (IH _ Ls) as [z' H].
  apply (hidden_more null k a _ z' before w after H eq_refl).
Qed.

Lemma lost_removed k a b : steps (loses null AddRemoveOne) k a b -> thinned k a b.
Proof.
  revert b; induction k as [|k IH]; intros b; [intros <-; apply thinned_all|].
  intros (z & Ls & before & w & after & -> & ->); exact (thinned_more k a _ before after w (IH _ Ls) eq_refl).
Qed.

(** ** Samples of any noise *)

Section Samples.

(** So many records at once, of one party. *)
Variable many : positive.

Notation times := (Pos.to_nat many).

(** The two orders of data sets that differ by such records: with them against without them (or with
    null ones), or the other way round. *)
Definition in_order (with_first : bool) (a b : list X) : Prop :=
  if with_first then steps (loses null r0) times a b else steps (loses null r0) times b a.

(** What holds of records that are there against their loss, in that order, holds of both data sets. *)
Lemma in_either_order {V} (with_first : bool) j x y (f : (nat -> list X) -> V) (close : V -> V -> Prop) :
  same_but j x y -> in_order with_first (x j) (y j) ->
  (forall a b, steps (loses null r0) times a b ->
     let p := f (with_part x j a) in let q := f (with_part x j b) in
     close (if with_first then p else q) (if with_first then q else p)) ->
  close (f x) (f y).
Proof.
  intros Same O Lost; pose proof (same_with_part x y j Same) as Ey.
  unfold in_order in O; destruct with_first; specialize (Lost _ _ O); cbv zeta in Lost;
    rewrite with_own_part, <- Ey in Lost; exact Lost.
Qed.

(** Replace-one has one order. *)
Definition oriented (with_first : bool) (a b : list X) : Prop :=
  r0 <> ReplaceOne -> in_order with_first a b.

Variables (h : history) (j : nat) (drawn : scheme) (d : derivation).
Hypotheses (Fits : scheme_fits drawn d) (Samples : samples_as null r h drawn r0).

Lemma draws_are_laws (part : list X) : distribution (draws_of (sampled_by r h) part) snd.
Proof.
  destruct Samples as (As & _); unfold draws_as in As; destruct drawn as [rate|size records|size records],
    (sampled_by r h) as [q|n k filler|n k filler]; try contradiction; cbn [draws_of].
  - subst q; apply draws_distribution; cbn [scheme_fits] in Fits; lra.
  - destruct As as [-> ->]; apply batches_distribution, Fits.
  - destruct As as [-> ->]; apply copies_distribution, Pos2Nat.is_pos.
Qed.

Variables (outcomes : list (list (Rbar * Rbar))) (M : (nat -> list X) -> list (Rbar * Rbar) -> R).
Hypothesis Laws : forall data, distribution outcomes (M data).
Hypothesis by_value : forall u v, value r h u = value r h v -> M u = M v.

Notation on_all := (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h)).

Lemma samples_unread x y a :
  leaves_unread r h (value r h) -> reads r h j = false -> same_but j x y -> on_all x a = on_all y a.
Proof.
  destruct Samples as (_ & _ & I & _); intros Unread R Dxy.
  apply on_samples_unread with (j := j); [intros J; apply I in J; congruence|exact Dxy|].
  intros u w S _ _; rewrite (by_value u w); [reflexivity|apply (unread_same_but h _ j); assumption].
Qed.

Hypothesis Read : reads r h j = true.

(** What so many records do, where nothing is sampled. *)
Variable F : nat -> R -> R -> R.
Hypothesis near : forall k u v, within_steps k j u v -> below_profile outcomes (M u) (M v) (F k).

Lemma all_laws x : distribution outcomes (on_all x).
Proof. apply on_samples_distribution; [exact draws_are_laws|exact Laws]. Qed.

(** One part's records replaced. *)
Lemma near_replaced k u v :
  r0 = ReplaceOne -> same_but j u v -> steps replace_one k (u j) (v j) -> below_profile outcomes (M u) (M v) (F k).
Proof.
  intros E Suv S; apply near; exists k; split; [lia|]; rewrite E; apply (with_part_steps j k u v S Suv).
Qed.

Lemma batch_sample_below size records x y :
  drawn = FixedBatch size records -> same_but j x y -> steps (differ_at adj j) times x y ->
  below_profile outcomes (on_all x) (on_all y) (replaced_profile (Q2R (share_of_batch (many * size) records)) (F times)).
Proof.
  intros E Same Sxy; pose proof draws_are_laws as Draw; destruct Samples as (As & U & In_sample & _).
  assert (Drawn : In j (sampled_parties r h)) by apply In_sample, Read.
  rewrite E in *; cbn [scheme_fits] in *; destruct Fits as [Ea Fit]; unfold draws_as in As.
  destruct (sampled_by r h) as [q|n k filler|n k filler]; try contradiction; cbn [draws_of] in *.
  destruct As as [-> ->]; apply own_steps in Sxy; rewrite Ea in Sxy.
  apply (on_samples_profile (batches (Pos.to_nat size) (Pos.to_nat records) filler) M Draw outcomes
           Laws j (fun _ : unit => F times) (fun _ => swapped times)) with (part := x j) (part' := y j); auto.
  - intros _ u v Suv T; apply swapped_steps in T as (i & Le & T); apply near.
    exists i; split; [exact Le|]; rewrite Ea; apply (with_part_steps j i u v T Suv).
  - intros M' Laws' Near; pose proof (share_of_batch_within (many * size) records) as Share.
    pose proof (pos_INR_nat_of_P size) as Psz; pose proof (pos_INR_nat_of_P records) as Prc.
    apply (batch_swapped (Pos.to_nat size) (Pos.to_nat records) times filler); try assumption.
    + split; [apply Pos2Nat.is_pos|exact Fit].
    + destruct (share_of_batch_real (many * size) records) as [[Es _]|[-> Lt]]; [left; exact Es|right].
      rewrite Pos2Nat.inj_mul, mult_INR; split; [|apply Rle_refl].
      apply Pos2Nat.inj_lt in Lt; rewrite Pos2Nat.inj_mul in Lt.
      pose proof (Pos2Nat.is_pos size); pose proof (Pos2Nat.is_pos many); nia.
    + apply (Near tt).
    + apply replaced_swapped, Sxy.
Qed.

(** ... of which no more are in it than as many draws are one of so many. *)
Lemma counted_sample_below size records x y y0 t :
  drawn = FixedBatch size records -> counted many size records = true ->
  same_but j x y -> steps (differ_at adj j) times x y ->
  let chance := chance (Q2R (1 # Z.to_pos (one_of many size records))) times in
  1 <= y0 -> (forall k, 0 <= t k) ->
  total (seq 1 times) (fun k => chance k * t k) <= (y0 - 1) * chance 0%nat ->
  below_profile outcomes (on_all x) (on_all y)
    (at_point y0 (total (seq 1 times) (fun k => chance k * F k 1 (y0 + t k)))).
Proof.
  intros E Few Same Sxy chance Hy Ht Within; pose proof draws_are_laws as Draw; destruct Samples as (As & U & In_sample & _).
  assert (Drawn : In j (sampled_parties r h)) by apply In_sample, Read.
  rewrite E in *; cbn [scheme_fits] in *; destruct Fits as [Ea Fit]; unfold draws_as in As.
  destruct (sampled_by r h) as [q|n k filler|n k filler]; try contradiction; cbn [draws_of] in *.
  destruct As as [-> ->]; apply own_steps in Sxy; rewrite Ea in Sxy.
  destruct (counted_real many size records Few) as (_ & Room & Share).
  apply (on_samples_profile (batches (Pos.to_nat size) (Pos.to_nat records) filler) M Draw outcomes
           Laws j F swapped) with (part := x j) (part' := y j); auto.
  - intros k u v Suv T; apply swapped_steps in T as (i & Le & T); apply near.
    exists i; split; [exact Le|]; rewrite Ea; apply (with_part_steps j i u v T Suv).
  - intros M' Laws' Step; apply at_point_below;
      try (apply on_drawn_distribution; [apply Draw|exact Laws']).
    apply (batch_as_copies (Pos.to_nat size) (Pos.to_nat records) times filler outcomes M' F); try assumption; [|lra].
    split; [apply Pos2Nat.is_pos|exact Room].
Qed.

Lemma copies_sample_below size records x y y0 t :
  drawn = WithReplacement size records -> (many < records)%positive ->
  same_but j x y -> steps (differ_at adj j) times x y ->
  let chance := chance (Q2R (Zpos many # records)) (Pos.to_nat size) in
  1 <= y0 -> (forall k, 0 <= t k) ->
  total (seq 1 (Pos.to_nat size)) (fun k => chance k * t k) <= (y0 - 1) * chance 0%nat ->
  below_profile outcomes (on_all x) (on_all y)
    (at_point y0 (total (seq 1 (Pos.to_nat size)) (fun k => chance k * F k 1 (y0 + t k)))).
Proof.
  intros E Few Same Sxy chance Hy Ht Within; pose proof draws_are_laws as Draw; destruct Samples as (As & U & In_sample & _).
  assert (Drawn : In j (sampled_parties r h)) by apply In_sample, Read.
  rewrite E in *; cbn [scheme_fits] in *; pose proof Fits as Ea; unfold draws_as in As.
  destruct (sampled_by r h) as [q|n k filler|n k filler]; try contradiction; cbn [draws_of] in *.
  destruct As as [-> ->]; apply own_steps in Sxy; rewrite Ea in Sxy.
  assert (Share : Q2R (Zpos many # records) = INR times / INR (Pos.to_nat records))
    by (unfold Q2R; cbn [Qnum Qden]; rewrite !INR_IZR_INZ, !positive_nat_Z; reflexivity).
  unfold chance in *; clear chance; rewrite Share in *.
  apply (on_samples_profile (copies (Pos.to_nat size) (Pos.to_nat records) filler) M Draw outcomes
           Laws j F (steps replace_one)) with (part := x j) (part' := y j); auto.
  - intros k u v Suv S; apply near_replaced; assumption.
  - intros M' Laws' Step; apply at_point_below;
      try (apply on_drawn_distribution; [apply Draw|exact Laws']).
    apply (copies_replaced (Pos.to_nat size) (Pos.to_nat records) times filler outcomes M' F); try assumption; [|lra].
    split; [apply Pos2Nat.is_pos|apply Pos2Nat.inj_lt, Few].
Qed.

(** ... of which any may be replaced. *)
Lemma all_copies_below size records x y :
  drawn = WithReplacement size records -> same_but j x y ->
  below_profile outcomes (on_all x) (on_all y) (F (Pos.to_nat size)).
Proof.
  intros E Same; pose proof draws_are_laws as Draw; destruct Samples as (As & U & In_sample & _).
  assert (Drawn : In j (sampled_parties r h)) by apply In_sample, Read.
  rewrite E in *; cbn [scheme_fits] in *; pose proof Fits as Ea; unfold draws_as in As.
  destruct (sampled_by r h) as [q|n k filler|n k filler]; try contradiction; cbn [draws_of] in *.
  destruct As as [-> ->].
  apply (on_samples_profile (copies (Pos.to_nat size) (Pos.to_nat records) filler) M Draw outcomes Laws j
           (fun _ : unit => F (Pos.to_nat size)) (fun _ => steps replace_one (Pos.to_nat size)))
    with (part := x j) (part' := y j); auto.
  - intros _ u v Suv S; apply near_replaced; assumption.
  - intros M' Laws' Step; apply copies_of_all; [apply Pos2Nat.is_pos|exact Laws'|apply (Step tt)].
Qed.

Section Poisson.

Variable rate : Q.
Hypothesis is_poisson : drawn = Poisson rate.
Hypothesis Not_replaced : r0 <> ReplaceOne.

Lemma poisson_rate : 0 < Q2R rate <= 1.
Proof. rewrite is_poisson in Fits; apply Fits. Qed.

(** So many records less, or null ones, in a sample. *)
Lemma near_thinned k u v :
  same_but j u v -> thinned k (u j) (v j) -> below_profile outcomes (M u) (M v) (F k).
Proof.
  destruct Samples as (_ & _ & _ & Absent); intros Suv T; destruct r0 eqn:Er0; [congruence| |].
  - destruct (thinned_hidden null k _ _ T) as [z H]; destruct (hidden_steps null k _ _ _ H) as (i & Le & S).
    assert (Ev : M v = M (with_part u j z)).
    { rewrite (same_with_part u v j Suv); symmetry.
      apply (hidden_unseen null (fun part => M (with_part u j part)) k _ _ _) with (2 := H).
      intros before after; apply by_value, (Absent eq_refl j u before after Read). }
    rewrite Ev; apply near; exists i; split; [exact Le|]; rewrite Er0.
    rewrite <- (with_own_part u j) at 1; apply (with_part_steps j); [rewrite !with_part_own; exact S|].
    intros n N; rewrite !with_part_other by exact N; reflexivity.
  - apply thinned_steps in T as (i & Le & S); apply near; exists i; split; [exact Le|].
    rewrite Er0; apply (with_part_steps j i u v S Suv).
Qed.

(** Null records in it are as if they were not there. *)
Lemma lost_thinned data a b : steps (loses null r0) times a b -> exists b',
  thinned times a b' /\ forall m, on_all (with_part data j b) m = on_all (with_part data j b') m.
Proof.
  destruct Samples as (As & U & _ & Absent); intros Ls; destruct r0 eqn:Er0; [congruence| |].
  - destruct (lost_hidden times a b Ls) as [b' H]; exists b'; split; [apply (hidden_thinned _ _ _ _ _ H)|]; intros m.
    apply (hidden_unseen null (fun part => on_all (with_part data j part) m) times a) with (2 := H).
    unfold draws_as in As; rewrite is_poisson in As; destruct (sampled_by r h) as [q|n k filler|n k filler];
      try contradiction; cbn [draws_of]; subst q.
    intros before after; apply invisible_on_samples; [|exact U]; intros data' s1 s2.
    rewrite (by_value _ _ (Absent eq_refl j data' s1 s2 Read)); reflexivity.
  - exists b; split; [apply (lost_removed times a b Ls)|reflexivity].
Qed.

(** A bound on two such samples, from one on two samples of which one has so many records less. *)
Lemma poisson_lost data a b G :
  steps (loses null r0) times a b ->
  (forall b' (M' : list X -> list (Rbar * Rbar) -> R), thinned times a b' ->
     (forall s, distribution outcomes (M' s)) ->
     (forall k s s', thinned k s s' -> below_profile outcomes (M' s) (M' s') (F k)) ->
     below_profile outcomes (on_sample (Q2R rate) M' a) (on_sample (Q2R rate) M' b') G) ->
  below_profile outcomes (on_all (with_part data j a)) (on_all (with_part data j b)) G.
Proof.
  intros Ls Own; pose proof draws_are_laws as Draw; destruct (lost_thinned data a b Ls) as (b' & T & Alike).
  destruct Samples as (As & U & In_sample & _).
  assert (Drawn : In j (sampled_parties r h)) by apply In_sample, Read.
  unfold draws_as in As; rewrite is_poisson in As; destruct (sampled_by r h) as [q|n k filler|n k filler];
    try contradiction; cbn [draws_of] in *; subst q.
  intros u v Hu Hv; eapply Rle_trans; [right; apply total_ext; intros m _; rewrite Alike; reflexivity|].
  apply (on_samples_profile (draws (Q2R rate)) M Draw outcomes Laws j F thinned near_thinned G _ _ _ a b' U Drawn);
    try assumption; try apply with_part_own.
  - intros i N; rewrite !with_part_other by exact N; reflexivity.
  - intros M' Laws' Near; apply Own; assumption.
Qed.

Lemma poisson_sample_below (with_first : bool) x y :
  symmetric_profile (F times) ->
  (forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= F times a b) -> (forall a, 0 <= a -> F times a 0 <= a) ->
  same_but j x y -> in_order with_first (x j) (y j) ->
  below_profile outcomes (on_all x) (on_all y)
    (if with_first then removal_profile (Q2R (any_of rate many)) (F times)
     else addition_profile (Q2R (any_of rate many)) (F times)).
Proof.
  pose proof poisson_rate as Hr; intros Sym Ge All Same O.
  pose proof (same_with_part x y j Same) as Ey; pose proof (eq_sym (with_own_part x j)) as Ex.
  assert (Removal : forall a b, steps (loses null r0) times a b ->
            below_profile outcomes (on_all (with_part x j a)) (on_all (with_part x j b))
              (removal_profile (Q2R (any_of rate many)) (F times))).
  { intros a b Ls; apply poisson_lost; [exact Ls|]; intros b' M' T Laws' Near.
    apply (poisson_removal_at_most (Q2R rate) (Q2R (any_of rate many)) outcomes M' (F times) times);
      try assumption; try lra; [apply any_of_within, Hr|rewrite any_of_real; apply Rle_refl|apply Near|apply Sym]. }
  destruct with_first; cbn [in_order] in O; specialize (Removal _ _ O);
    [rewrite with_own_part, <- Ey in Removal; exact Removal|].
  rewrite with_own_part, <- Ey in Removal.
  apply addition_turned; try apply all_laws; try assumption; pose proof (any_of_within rate many Hr); lra.
Qed.

End Poisson.

End Samples.

(** Every pair of neighbours is in one order or the other. *)
Lemma some_order a b : adj a b -> exists with_first, oriented 1 with_first a b.
Proof.
  assert (One : forall u v, loses null r0 u v -> steps (loses null r0) 1 u v) by (intros u v L; exists u; split; [reflexivity|exact L]).
  intros A; unfold oriented, in_order; change (Pos.to_nat 1) with 1%nat; destruct r0 eqn:Er0.
  - exists true; congruence.
  - inversion A as [before after z|before after z]; [exists true|exists false]; intros _; apply One;
      exists before, z, after; auto.
  - inversion A as [before after z|before after z]; [exists true|exists false]; intros _; apply One;
      exists before, z, after; auto.
Qed.

(** The law of a Laplace step. *)
Lemma laplace_laws h b data : 0 < b ->
  distribution (vector_outcomes (dimension r h) (cuts r h)) (laplace_vector (value r h) b data).
Proof.
  intros B; apply laplace_vector_distribution; [exact B|apply (grids_ascend null c r run_satisfies h)].
Qed.

Lemma laplace_by_value h b u v :
  value r h u = value r h v -> laplace_vector (value r h) b u = laplace_vector (value r h) b v.
Proof. intros E; unfold laplace_vector; rewrite E; reflexivity. Qed.

Lemma laplace_moved_below h j squared d s b k u v :
  0 < Q2R b -> derived r0 d = Some s -> Q2R s = Q2R squared ->
  derives_in_l1 null r h r0 d ->
  reads r h j = true -> within_steps k j u v ->
  below_profile (vector_outcomes (dimension r h) (cuts r h))
    (laplace_vector (value r h) (Q2R b) u) (laplace_vector (value r h) (Q2R b) v)
    (laplace_at (INR k * (sqrt (Q2R squared) / Q2R b))).
Proof.
  intros B D E Read R Duv; unfold laplace_at.
  replace (INR k * (sqrt (Q2R squared) / Q2R b)) with (INR k * sqrt (Q2R squared) / Q2R b) by (unfold Rdiv; ring).
  apply (vector_laplace_profile (within_steps k j) (value r h) (Q2R b) (INR k * sqrt (Q2R squared))
           (dimension r h) (cuts r h)); [exact B| | |exact Duv].
  - apply (grids_ascend null c r run_satisfies h).
  - intros x y Dxy; apply (far_in_l1 h k j squared d s); auto.
Qed.

(** A Laplace step on a sample: how far apart so many records bring it, in either order. *)
Definition hidden_below (many : positive) (with_first : bool) (drawn : scheme) (far : R) {A} (l : list A)
  (p q : A -> R) : Prop :=
  let F := laplace_at (INR (Pos.to_nat many) * far) in
  let share := Q2R (share_drawn many drawn) in
  match drawn with
  | Poisson _ => below_profile l p q (if with_first then removal_profile share F else addition_profile share F)
  | FixedBatch _ _ => below_profile l p q (replaced_profile share F)
  | WithReplacement _ _ => True
  end.

Lemma sampled_laplace_below many (with_first : bool) h j x y drawn moved squared d b :
  laplace_round null r h (Some (SampledLaplaceStep drawn moved squared d b)) ->
  mechanism_at c (mechanism_of h) = Some (SampledLaplaceStep drawn moved squared d b) ->
  reads r h j = true -> same_but j x y -> steps (differ_at adj j) (Pos.to_nat many) x y ->
  oriented many with_first (x j) (y j) ->
  hidden_below many with_first drawn (sqrt (Q2R squared) / Q2R b)
    (next_messages r h) (next_law r x h) (next_law r y h).
Proof.
  intros (moved' & squared' & d' & b' & [(F' & _)|[(drawn' & F' & N & S)|(F' & _)]] & Read & _) F R Same Sxy O;
    [discriminate F'| |discriminate F']; injection F' as <- <- <- <- <-.
  destruct (sampled_laplace_found _ _ _ _ _ _ F) as (-> & Fits & Hides & B & s & D & E).
  pose proof (fun data => laplace_laws h (Q2R b) data B) as Laws.
  pose proof (fun k u v => laplace_moved_below h j squared d s b k u v B D E Read R) as Near.
  unfold hidden_below, next_messages, next_law; rewrite N; cbv zeta.
  destruct drawn as [rate|size records|size records]; [| |exact I]; apply numbers_below.
  - assert (Ea : r0 <> ReplaceOne) by (intros Ea; rewrite Ea in Hides; discriminate Hides).
    apply (poisson_sample_below many h j (Poisson rate) d Fits S _ _ Laws (laplace_by_value h (Q2R b)) R _ Near rate
             eq_refl Ea with_first x y); [apply laplace_symmetric| | |exact Same|exact (O Ea)].
    + intros; apply laplace_profile_ge; try assumption; left; apply exp_pos.
    + intros a Ha; unfold laplace_at, laplace_profile; rewrite common_part_zero by (auto; lra); lra.
  - apply (batch_sample_below many h j (FixedBatch size records) d Fits S _ _ Laws R _ Near size records x y);
      auto.
Qed.

Lemma laplace_is_pure h :
  laplace_round null r h (mechanism_at c (mechanism_of h)) -> pure_round h.
Proof.
  intros G; pose proof G as (moved & squared & d & b & F & Read & Unread).
  destruct F as [(F & N & Alone)|[(drawn & F & N & S)|(F & N & Whole)]].
  - destruct (laplace_found _ _ _ _ _ (or_introl F)) as (-> & B & _ & s & D & E).
    pose proof (fun data => laplace_laws h (Q2R b) data B) as L.
    unfold pure_round, next_messages, next_law; rewrite N, Alone; cbn [on_samples].
    split; [|split; [|split]].
    + eexists; split; [exact F|split; reflexivity].
    + intros x; apply numbers_distribution, L.
    + intros j x y R Dxy; unfold laplace_vector; rewrite (unread_same_but h _ j x y Unread R Dxy).
      reflexivity.
    + intros j R x y Dxy m I; apply in_map_iff in I as (cells' & <- & I); cbn [of_numbers].
      unfold cost; rewrite F.
      apply (vector_laplace_pure (differ_at adj j) (value r h) (Q2R b) (sqrt (Q2R squared))
               (dimension r h) (cuts r h)); [exact B| | |exact Dxy|exact I].
      * apply (grids_ascend null c r run_satisfies h).
      * clear x y Dxy I; intros x y Dxy; apply (moved_in_l1 h j squared d s); auto.
  - rewrite F in G; destruct (sampled_laplace_found _ _ _ _ _ _ F) as (-> & Fits & Hides & B & _).
    pose proof (fun data => laplace_laws h (Q2R b) data B) as Laws.
    pose proof (drawn_share 1 drawn d Fits) as Share.
    assert (Far : 0 <= sqrt (Q2R squared) / Q2R b)
      by (apply Rmult_le_pos; [apply sqrt_pos|left; apply Rinv_0_lt_compat, B]).
    split; [|split; [|split]].
    + eexists; split; [exact F|split; reflexivity].
    + intros x; unfold next_messages, next_law; rewrite N; apply numbers_distribution.
      apply on_samples_distribution; [apply (draws_are_laws h drawn d Fits S)|exact Laws].
    + intros j x y R Dxy; unfold next_law; rewrite N; extensionality m; destruct m as [v|]; [cbn [of_numbers]|reflexivity].
      apply (samples_unread h j drawn S _ (laplace_by_value h (Q2R b))); assumption.
    + intros j R x y Dxy; destruct (some_order _ _ (proj1 Dxy)) as [w O].
      pose proof (sampled_laplace_below 1 w h j x y drawn r0 squared d b G F R (proj2 Dxy)
                    (ex_intro _ x (conj eq_refl Dxy)) O) as W.
      set (far := sqrt (Q2R squared) / Q2R b) in *.
      pose proof (amplified_at_least (Q2R (share_drawn 1 drawn)) far ltac:(lra) Far) as One.
      assert (Cost : exp (cost (mechanism_of h)) = amplified (Q2R (share_drawn 1 drawn)) far)
        by (unfold cost; rewrite F; fold far; apply exp_ln; lra).
      rewrite Cost; unfold hidden_below in W; cbv zeta in W; change (INR (Pos.to_nat 1)) with 1 in W.
      rewrite Rmult_1_l in W; set (share := Q2R (share_drawn 1 drawn)) in *; clearbody share.
      destruct drawn as [rate|size records|size records]; [| |destruct r0; discriminate Hides];
        apply (pure_of_profile _ _ _ _ (amplified share far) W ltac:(lra)).
      * destruct w; [apply removal_amplified|apply addition_amplified]; lra.
      * apply replaced_amplified; lra.
  - destruct (laplace_found _ _ _ _ _ (or_intror (or_introl F))) as (-> & B & _ & s & D & E).
    assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
    assert (Ints : forall x i, exists n, value r h x i = IZR n)
      by (intros x i; destruct (Whole x i) as [n ->]; eauto).
    apply (discrete_is_pure h r0 squared d b); auto.
    intros j x y R Dxy; apply (moved_in_l1 h j squared d s); auto.
Qed.

Lemma response_is_pure h :
  response_round r h (mechanism_at c (mechanism_of h)) -> pure_round h.
Proof.
  intros (truth & answers & F & N & Within & Unread).
  destruct (response_found _ _ _ F) as (P & K & E & Pos).
  unfold pure_round, next_messages, next_law; rewrite N; split; [|split; [|split]].
  - eexists; split; [exact F|split; reflexivity].
  - intros x; pose proof (Within x).
    apply answers_distribution, response_distribution; [lra|exact K|lia].
  - intros j x y R Dxy; rewrite (unread_same_but h _ j x y Unread R Dxy); reflexivity.
  - intros j R x y Dxy m I; apply in_map_iff in I as (a & <- & I); cbn [of_answers].
    unfold cost; rewrite F.
    pose proof (Rle_abs (ln (Q2R (odds truth answers)))) as Up.
    pose proof (Rle_abs (- ln (Q2R (odds truth answers)))) as Down; rewrite Rabs_Ropp in Down.
    apply (response_pure Nat.eqb (Q2R truth) (Pos.to_nat answers)
             (Rabs (ln (Q2R (odds truth answers)))) (seq 0 (Pos.to_nat answers)));
      [exact P|exact K|apply Rabs_pos| | |exact Logic.I|exact I].
    + rewrite <- E; eapply Rle_trans; [|apply exp_le, Up]; rewrite exp_ln by exact Pos; lra.
    + pose proof (le_INR _ _ K) as L; change (INR 2) with (1 + 1) in L.
      apply Rle_trans with (/ Q2R (odds truth answers)); [right; rewrite E; field; lra|].
      eapply Rle_trans; [|apply exp_le, Down]; rewrite exp_Ropp, exp_ln by exact Pos; lra.
Qed.

Lemma weighted_is_pure h :
  weighted_round null r h (mechanism_at c (mechanism_of h)) -> pure_round h.
Proof.
  intros (moved & squared & d & b & answers & F & N & Law & Zero & Read & Unread).
  destruct (laplace_found _ _ _ _ _ (or_intror (or_intror F))) as (-> & B & _ & s & D & E).
  unfold pure_round, next_messages, next_law; rewrite N; split; [|split; [|split]].
  - eexists; split; [exact F|split; reflexivity].
  - intros x; apply answers_distribution, Law.
  - intros j x y R Dxy; rewrite (unread_same_but h _ j x y Unread R Dxy); reflexivity.
  - intros j R x y Dxy m I; apply in_map_iff in I as (a & <- & I); cbn [of_answers].
    unfold cost; rewrite F.
    apply (pure_of_losses (differ_at adj j) (seq 0 answers) (value r h)); [| | |exact Dxy|exact I].
    + intros u b' Ib; apply (Law u), Ib.
    + intros u v b' [A S] _; apply (Zero j v u b' R); split; [destruct r0, A; constructor|].
      intros i N'; symmetry; apply S, N'.
    + intros u v b' Duv _.
      pose proof (part_sensitivity (euclidean 1) h j squared d s
                    (fun data _ => Q2R b * ln (value r h data b')) D E
                    (fun data => Read j data b' R) R u v Duv) as Near.
      eapply Rle_trans in Near; [|apply (entry_within_norm (fun _ => _))].
      unfold sub in Near; simpl in Near.
      apply Rmult_le_reg_l with (1 := B); rewrite <- (Rabs_right (Q2R b)) at 1 by lra.
      rewrite <- Rabs_mult.
      replace (Q2R b * (sqrt (Q2R squared) / Q2R b)) with (sqrt (Q2R squared)) by (field; lra).
      eapply Rle_trans; [|exact Near]; right; f_equal; ring.
Qed.

(** A mixture, or several samples under one noise. *)
Definition mixed (m : mechanism) : bool :=
  match m with MixtureStep _ _ _ _ _ _ _ | AccumulatedStep _ _ _ _ _ _ => true | _ => false end.

(** Everything about such a round that does not ask how far it brings neighbours apart. *)
Definition mixed_round (h : history) : Prop :=
  (exists m, mechanism_at c (mechanism_of h) = Some m /\ mixed m = true) /\
  (forall x, distribution (next_messages r h) (next_law r x h)) /\
  (forall j x y, reads r h j = false -> same_but j x y -> next_law r x h = next_law r y h).

(** The law of one sample's party, however it is drawn. *)
Lemma mixture_draws h rate moved part : samples_at null r h rate moved -> 0 <= Q2R rate <= 1 ->
  distribution (draws_of (sampled_by r h) part) snd.
Proof.
  intros (As & _) Hr; destruct (sampled_by r h) as [q|n k filler|n k filler]; cbn [draws_of]; [| |contradiction].
  - destruct As as [-> _]; apply draws_distribution, Hr.
  - apply batches_distribution, As.
Qed.

Lemma mixture_is_mixed h :
  mixture_round null r h (mechanism_at c (mechanism_of h)) -> mixed_round h.
Proof.
  intros (moved & constant & e & squared & d & rate & std & F & N & Samples & _ & _ & _ & Open & Unread).
  destruct (mixture_found _ _ _ _ _ _ _ _ F) as (-> & Hr & Hs & _).
  unfold mixed_round, next_messages, next_law; rewrite N, F; split; [eexists; split; reflexivity|split].
  - intros x; apply numbers_distribution, on_samples_distribution.
    + intros part; apply (mixture_draws h rate r0); [exact Samples|exact Hr].
    + intros data; apply (noisy_vector_distribution _ (fun sample i => unsampled r h x i + value r h sample i)).
      * exact Hs.
      * apply (grids_ascend null c r run_satisfies).
  - intros j x y R Dxy; extensionality m; destruct m as [v|]; [cbn [of_numbers]|reflexivity].
    rewrite (unread_same_but h _ j x y Open R Dxy); destruct Samples as (_ & _ & I).
    apply on_samples_unread with (j := j); [intros J; apply I in J; congruence|exact Dxy|].
    intros u w S _ _; unfold noisy_vector; rewrite (unread_same_but h _ j u w Unread R S); reflexivity.
Qed.

(** A party's records are in no other's samples. *)
Lemma accumulated_unread h samples j u v :
  leaves_unread r h (value r h) -> reads r h j = false -> same_but j u v ->
  accumulated samples (value r h) u = accumulated samples (value r h) v.
Proof.
  intros Unread R S; extensionality i; apply total_ext; intros n _.
  refine (f_equal (fun w => w i) (unread_same_but h (value r h) j _ _ Unread R _)).
  intros party N; rewrite (S party N); reflexivity.
Qed.

Lemma accumulated_is_mixed h :
  accumulated_round null r h (mechanism_at c (mechanism_of h)) -> mixed_round h.
Proof.
  intros (moved & squared & d & rate & samples & std & F & N & (_ & I & _) & _ & Unread).
  destruct (accumulated_found _ _ _ _ _ _ _ F) as (_ & _ & Hr & Hs & _).
  unfold mixed_round, next_messages, next_law; rewrite N, F; split; [eexists; split; reflexivity|split].
  - intros x; apply numbers_distribution, on_samples_distribution.
    + intros part; apply draws_distribution; lra.
    + intros data; apply noisy_vector_distribution; [exact Hs|apply (grids_ascend null c r run_satisfies)].
  - intros j x y R Dxy; extensionality m; destruct m as [v|]; [cbn [of_numbers]|reflexivity].
    apply on_samples_unread with (j := j).
    + intros J; apply I in J; congruence.
    + intros party K; rewrite (Dxy party K); reflexivity.
    + intros u w S _ _; unfold noisy_vector; rewrite (accumulated_unread h _ j u w Unread R S); reflexivity.
Qed.

Lemma read_step h j : reads r h j = true -> noisy_round null r h (mechanism_at c (mechanism_of h)).
Proof.
  intros R; destruct (rounds_are_steps null c r run_satisfies h) as [(No & _)|[_ S]]; [|exact S].
  rewrite No in R; discriminate R.
Qed.

Lemma read_moving h j m : reads r h j = true -> mechanism_at c (mechanism_of h) = Some m -> unmoved m = false.
Proof.
  intros R F; destruct (rounds_are_steps null c r run_satisfies h) as [(No & _)|[Moving _]]; [|apply Moving, F].
  rewrite No in R; discriminate R.
Qed.

Lemma own_round h j m : mechanism_at c (mechanism_of h) = Some m -> reads r h j = true -> round_of_kind null r h m.
Proof. intros F R; apply own_kind; rewrite <- F; apply (read_step h j R). Qed.

Lemma noisy_kind h : noisy_round null r h (mechanism_at c (mechanism_of h)) ->
  (exists s std, normal_round h s std) \/ discrete_round h \/ pure_round h \/ mixed_round h.
Proof.
  intros [G|[L|[S|[W|[M|M]]]]].
  - destruct (gaussian_is_normal h G); auto.
  - right; right; left; apply laplace_is_pure, L.
  - right; right; left; apply response_is_pure, S.
  - right; right; left; apply weighted_is_pure, W.
  - right; right; right; apply mixture_is_mixed, M.
  - right; right; right; apply accumulated_is_mixed, M.
Qed.

Lemma round h j : reads r h j = true ->
  (exists s std, normal_round h s std) \/ discrete_round h \/ pure_round h \/ mixed_round h.
Proof. intros R; apply noisy_kind, (read_step h j R). Qed.

Lemma cost_nonneg i : 0 <= cost i.
Proof.
  unfold cost; destruct (mechanism_at c i) as
    [[moved squared d std| |moved squared d b|moved squared d b|moved squared d std| |drawn moved squared d b|moved squared d b| | | |]|]
    eqn:F; try lra.
  - destruct (gaussian_found _ _ _ _ _ (or_introl F)) as (_ & Hs & s & D & E).
    rewrite <- E; apply Rmult_le_pos; [exact (derived_nonneg r0 d s D)|].
    left; apply Rinv_0_lt_compat; nra.
  - destruct (laplace_found _ _ _ _ _ (or_introl F)) as (_ & B & _).
    apply Rmult_le_pos; [apply sqrt_pos|apply Rlt_le, Rinv_0_lt_compat, B].
  - destruct (laplace_found _ _ _ _ _ (or_intror (or_introl F))) as (_ & B & _).
    apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, B].
    unfold whole_root; rewrite Q2R_integer; apply IZR_le, Z.sqrt_nonneg.
  - destruct (gaussian_found _ _ _ _ _ (or_intror F)) as (_ & Hs & s & D & E).
    rewrite <- E; apply Rmult_le_pos; [exact (derived_nonneg r0 d s D)|].
    left; apply Rinv_0_lt_compat; nra.
  - apply Rabs_pos.
  - destruct (sampled_laplace_found _ _ _ _ _ _ F) as (_ & Fits & _ & B & _).
    rewrite <- ln_1; apply ln_le; [lra|]; apply amplified_at_least.
    + pose proof (drawn_share 1 drawn d Fits); lra.
    + apply Rmult_le_pos; [apply sqrt_pos|apply Rlt_le, Rinv_0_lt_compat, B].
  - destruct (laplace_found _ _ _ _ _ (or_intror (or_intror F))) as (_ & B & _).
    apply Rmult_le_pos; [apply sqrt_pos|apply Rlt_le, Rinv_0_lt_compat, B].
Qed.

Lemma noisy_laws h s std data :
  normal_round h s std ->
  distribution (vector_outcomes (dimension r h) (cuts r h))
    (noisy_vector (dimension r h) (value r h) std data).
Proof.
  intros (_ & Hs & _); apply (noisy_vector_distribution (dimension r h) (value r h) std Hs).
  apply (grids_ascend null c r run_satisfies).
Qed.

(** The messages of a Gaussian round, and their law. *)
Lemma normal_messages h s std :
  normal_round h s std ->
  next_messages r h = map Numbers (vector_outcomes (dimension r h) (cuts r h)) /\
  forall x, next_law r x h
    = of_numbers (on_samples (draws_of (sampled_by r h)) (noisy_vector (dimension r h) (value r h) std)
                    (sampled_parties r h) x).
Proof. intros (N & _); unfold next_messages, next_law; rewrite N; auto. Qed.

Lemma drawn_distribution h s std :
  sampled_round h s std -> forall part : list X, distribution (draws_of (sampled_by r h) part) snd.
Proof.
  intros (drawn & moved & squared & d & std' & _ & _ & _ & As & Fits & S).
  apply (draws_are_laws h drawn d Fits (conj As S)).
Qed.

Lemma laws x h : distribution (next_messages r h) (next_law r x h).
Proof.
  destruct (rounds_are_steps null c r run_satisfies h) as [(_ & L & _)|[_ Step]]; [apply L|].
  destruct (noisy_kind h Step) as [(s & std & Round)|[(_ & L & _)|[(_ & L & _)|(_ & L & _)]]];
    [|apply L|apply L|apply L].
  destruct (normal_messages h s std Round) as [-> ->]; apply numbers_distribution.
  pose proof (fun data => noisy_laws h s std data Round) as Laws.
  destruct Round as (_ & _ & _ & [(_ & -> & _)|S] & _); [apply Laws|].
  apply on_samples_distribution; [apply (drawn_distribution h s std S)|exact Laws].
Qed.

Lemma quiet_same k h j x y : quiet_round null r0 r h -> steps (differ_at adj j) k x y ->
  forall m, In m (next_messages r h) -> next_law r x h m = next_law r y h m.
Proof.
  intros (_ & _ & Same) S m I; revert x y S; induction k as [|k IH]; simpl; intros x y S; [rewrite S; reflexivity|].
  destruct S as (z & S & Dzy); rewrite (IH x z S); apply (Same j); assumption.
Qed.

Lemma unread_same k h j x y :
  reads r h j = false -> same_but j x y -> steps (differ_at adj j) k x y ->
  forall m, In m (next_messages r h) -> next_law r x h m = next_law r y h m.
Proof.
  intros R Dxy Sxy m In_messages;
    destruct (rounds_are_steps null c r run_satisfies h) as [Quiet|[_ Step]];
    [apply (quiet_same k h j x y Quiet Sxy m In_messages)|]; clear In_messages;
    destruct (noisy_kind h Step) as [(s & std & Round)|[(_ & _ & Same & _)|[(_ & _ & Same & _)|(_ & _ & Same)]]];
    [|rewrite (Same j x y R Dxy); reflexivity..].
  destruct (normal_messages h s std Round) as [_ Law]; rewrite !Law.
  destruct Round as (_ & _ & _ & Kind & _ & Same); destruct m as [v|]; [cbn [of_numbers]|reflexivity].
  assert (E : forall u v, same_but j u v -> forall a,
            noisy_vector (dimension r h) (value r h) std u a
            = noisy_vector (dimension r h) (value r h) std v a).
  { intros u w S a; unfold noisy_vector; rewrite (Same j u w R S); reflexivity. }
  destruct Kind as [(_ & -> & _)|S]; [apply E, Dxy|].
    destruct S as (drawn & moved & squared & d & std' & _ & _ & _ & _ & _ & _ & I & _).
  apply on_samples_unread with (j := j); [intros J; apply I in J; congruence|exact Dxy|].
  intros u w S _ _; apply E, S.
Qed.

Lemma unread h j x y :
  reads r h j = false -> differ_at adj j x y ->
  forall m, In m (next_messages r h) -> next_law r x h m = next_law r y h m.
Proof. intros R Dxy; apply (unread_same 1 h j x y R (proj2 Dxy) (ex_intro _ x (conj eq_refl Dxy))). Qed.

Lemma rho_nonneg i : 0 <= rho i.
Proof.
  pose proof (cost_nonneg i); unfold rho; destruct (mechanism_at c i) as [[]|]; nra.
Qed.

(** No record's part has cost more than the dearest view. *)
Lemma spent_met (price : positive -> R) j h :
  spent (cost_to (reads r) (fun h => price (mechanism_of h)) j) h = total (met r j h) price.
Proof.
  induction h as [|m h IH]; simpl; [ring|]; rewrite IH, total_app; unfold cost_to.
  destruct (reads r h j); simpl; ring.
Qed.

Lemma spent_within (price : positive -> R) (most : R) :
  (forall i, 0 <= price i) -> (forall j, total (allowed c j) price <= most) ->
  forall j h, In h (all_transcripts r) ->
  spent (cost_to (reads r) (fun h => price (mechanism_of h)) j) h <= most.
Proof.
  intros Nn H j h Ih; rewrite spent_met.
  destruct (steps_are_allowed null c r run_satisfies j h Ih) as [rest P].
  eapply Rle_trans; [|apply (H j)].
  rewrite <- (total_permutation _ _ _ P), total_app.
  assert (0 <= total rest price) by (apply total_nonneg; intros; apply Nn); lra.
Qed.

(** Every round's step is of a kind that pays in a notion. *)
Lemma pays kind m h :
  forallb (pays_in kind) (mechanisms c) = true -> mechanism_at c (mechanism_of h) = Some m ->
  pays_in kind m = true.
Proof. intros All F; apply numbered_in in F; revert F; apply forallb_forall, All. Qed.

Lemma round_gdp h s std j x y :
  normal_round h s std -> plain_round h s std -> reads r h j = true -> differ_at adj j x y ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (gaussian_profile (sqrt (cost (mechanism_of h)))).
Proof.
  intros Round (_ & Plain & Ec) R Dxy.
  destruct (normal_messages h s std Round) as [-> Law]; rewrite !Law, Plain.
  destruct Round as (_ & Hs & Ps & _ & Sens & _); apply numbers_below.
  assert (Er : sqrt (cost (mechanism_of h)) = sqrt s / std).
  { rewrite Ec, sqrt_div by (try assumption; nra); rewrite sqrt_square by lra; reflexivity. }
  rewrite Er.
  apply (vector_gaussian_below_profile (differ_at adj j) (dimension r h) (value r h) (sqrt s)
           std (cuts r h)).
  - exact Hs.
  - apply sqrt_pos.
  - apply (grids_ascend null c r run_satisfies).
  - apply Sens, R.
  - exact Dxy.
Qed.

Lemma gaussian_round_zcdp h s std j x y alpha :
  normal_round h s std -> plain_round h s std ->
  1 < alpha -> reads r h j = true -> differ_at adj j x y ->
  rdp_pair (next_messages r h) (next_law r x h) (next_law r y h) alpha
    (rho (mechanism_of h) * alpha).
Proof.
  intros Round ((moved & squared & d & std' & F) & Plain & Ec) Ha R Dxy.
  destruct (normal_messages h s std Round) as [-> Law]; rewrite !Law, Plain.
  destruct Round as (_ & Hs & Ps & _ & Sens & _); apply numbers_rdp.
  replace (rho (mechanism_of h) * alpha) with (sqrt s * sqrt s / (2 * (std * std)) * alpha).
  - apply (vector_gaussian_zcdp (differ_at adj j) (dimension r h) (value r h) (sqrt s)
             std Hs (cuts r h) (grids_ascend null c r run_satisfies h) (Sens j R)
             alpha Ha x y Dxy).
  - unfold rho; rewrite F, Ec, sqrt_sqrt by exact Ps; field; lra.
Qed.

Lemma differ_at_sym j x y : differ_at adj j x y -> differ_at adj j y x.
Proof.
  intros [A S]; split; [apply (neighbours_sym null), A|intros i N; symmetry; apply S, N].
Qed.

(** Laplace noise: pure DP is zCDP. *)
Lemma pure_round_zcdp h j x y alpha :
  pure_round h -> (exists m, mechanism_at c (mechanism_of h) = Some m /\ pays_in (Zcdp 0) m = true) ->
  1 < alpha -> reads r h j = true -> differ_at adj j x y ->
  rdp_pair (next_messages r h) (next_law r x h) (next_law r y h) alpha
    (rho (mechanism_of h) * alpha).
Proof.
  intros ((m' & F' & In & No) & L & _ & P) (m & F & Pays) Ha R Dxy.
  rewrite F in F'; injection F' as <-.
  replace (rho (mechanism_of h)) with (cost (mechanism_of h) * cost (mechanism_of h) / 2)
    by (unfold rho; rewrite F; destruct m; try discriminate; reflexivity).
  apply odds_rdp; [apply L|apply L|apply cost_nonneg| |exact Ha].
  intros a I; split; [apply (P j R x y Dxy a I)|apply (P j R y x (differ_at_sym j x y Dxy) a I)].
Qed.

Theorem run_gdp (most : R) :
  forallb (pays_in (Gdp 0)) (mechanisms c) = true ->
  (forall j, total (allowed c j) cost <= most) ->
  forall x y, one_part adj x y ->
  below_profile (all_transcripts r) (run_law r x) (run_law r y) (gaussian_profile (sqrt most)).
Proof.
  intros All H; apply (events_gdp adj (next_messages r) (next_law r) laws (reads r) unread most
                         (fun h => cost (mechanism_of h)) (rounds r)).
  - intros h; apply cost_nonneg.
  - intros h j x y R Dxy.
    destruct (round h j R) as
      [(s & std & Round)|[((moved & squared & d & std & F) & _)|[((m & F & _ & No) & _)|
        ((m & F & Mixed) & _)]]].
    + assert (Kind := Round); destruct Kind as (_ & _ & _ & [P|S] & _);
        [apply (round_gdp h s std j); assumption|].
      destruct S as (rate & moved & squared & d & std' & F & _); discriminate (pays _ _ _ All F).
    + discriminate (pays _ _ _ All F).
    + rewrite (pays _ m h All F) in No; discriminate.
    + pose proof (pays _ _ _ All F); destruct m; discriminate.
  - apply spent_within; [apply cost_nonneg|exact H].
Qed.

Theorem run_zcdp (most : R) :
  forallb (pays_in (Zcdp 0)) (mechanisms c) = true ->
  (forall j, total (allowed c j) rho <= most) ->
  zcdp (one_part adj) (all_transcripts r) (run_law r) most.
Proof.
  intros All H; apply (events_zcdp adj (next_messages r) (next_law r) laws (reads r) unread most
                         (fun h => rho (mechanism_of h)) (rounds r)).
  - intros h j x y alpha Ha R Dxy;
      destruct (round h j R) as [(s & std & Round)|[Discrete|[Pure|((m & F & Mixed) & _)]]].
    + assert (Kind := Round); destruct Kind as (_ & _ & _ & [P|S] & _);
        [apply (gaussian_round_zcdp h s std j); assumption|].
      destruct S as (rate & moved & squared & d & std' & F & _); discriminate (pays _ _ _ All F).
    + destruct Discrete as (_ & _ & _ & Z); apply (Z j R alpha Ha x y Dxy).
    + apply (pure_round_zcdp h j); try assumption; destruct Pure as ((m & F & _) & _).
      exists m; split; [exact F|exact (pays _ m h All F)].
    + pose proof (pays _ _ _ All F); destruct m; discriminate.
  - apply spent_within; [apply rho_nonneg|exact H].
Qed.

(** Laplace noise and responses alone: no outcome is more likely by more than that. *)
Theorem run_pure (most : R) :
  forallb (pays_in (PureDp 0)) (mechanisms c) = true ->
  (forall j, total (allowed c j) cost <= most) ->
  pure (one_part adj) (all_transcripts r) (run_law r) most.
Proof.
  intros All H; apply (events_pure adj (next_messages r) (next_law r) laws (reads r) unread most
                         (fun h => cost (mechanism_of h)) (rounds r)).
  - intros h j R; destruct (round h j R) as
      [(s & std & Round)|[((moved & squared & d & std & F) & _)|[(_ & _ & _ & P)|
        ((m & F & Mixed) & _)]]];
      [exfalso|discriminate (pays _ _ _ All F)|apply P, R|pose proof (pays _ _ _ All F); destruct m; discriminate].
    destruct Round as (_ & _ & _ & [((moved & squared & d & std' & F) & _)|S] & _).
    + discriminate (pays _ _ _ All F).
    + destruct S as (rate & moved & squared & d & std' & F & _); discriminate (pays _ _ _ All F).
  - apply spent_within; [apply cost_nonneg|exact H].
Qed.

Definition single (i : positive) : Prop := forall j, steps_of c j i = [i].

(** ** Steps by their losses *)

Lemma further_root n squared : 0 <= Q2R squared -> sqrt (Q2R (further n squared)) = INR (Pos.to_nat n) * sqrt (Q2R squared).
Proof.
  intros Sq; pose proof (Pos_real n); unfold further.
  rewrite square_times, INR_positive, sqrt_mult by nra; rewrite sqrt_square by lra; reflexivity.
Qed.

Lemma further_nonneg n squared : 0 <= Q2R squared -> 0 <= Q2R (further n squared).
Proof.
  intros Sq; pose proof (Pos_real n); unfold further; rewrite square_times.
  apply Rmult_le_pos; [nra|exact Sq].
Qed.

Lemma root_of_ratio squared b :
  0 <= Q2R squared -> 0 < Q2R b -> sqrt (Q2R (squared / (b * b))) = sqrt (Q2R squared) / Q2R b.
Proof.
  intros Sq B; rewrite Q2R_div, Q2R_mult by (rewrite Q2R_mult; nra).
  rewrite sqrt_div by nra; rewrite sqrt_square by lra; reflexivity.
Qed.

Lemma share_seen rate number : share_met (seen_by_each rate number) = rate.
Proof. unfold seen_by_each; destruct (Pos.eqb number 1); reflexivity. Qed.

Lemma seen_is_no_copy rate number size records : seen_by_each rate number <> Copied size records.
Proof. unfold seen_by_each; destruct (Pos.eqb number 1); discriminate. Qed.

(** So many records at once, of one party. *)
Section Together.

Variable many : positive.

(** Of the noise of each mixture, how much hides what is computed from all records. *)
Variable share : positive -> Q.
Hypothesis shares : forall i, 0 < Q2R (share i) < 1.

Notation times := (Pos.to_nat many).
Notation far := (IZR (Zpos many)).

(** How far apart a Gaussian step brings two laws, whose shift is [mu]. *)
Definition contrasted (with_first : bool) (x : contrast) (mu : R) {A} (l : list A)
  (p q : A -> R) : Prop :=
  let F := gaussian_profile mu in
  match x with
  | Removed rate =>
      below_profile l p q
        (if with_first then removal_profile (Q2R rate) F else addition_profile (Q2R rate) F)
  | Batched share group =>
      below_profile l p q (replaced_profile (Q2R share) (gaussian_profile (INR (Pos.to_nat group) * mu)))
  | Told share group =>
      below_profile l p q (told_profile (Q2R share) (gaussian_profile (INR (Pos.to_nat group) * mu)))
  | Exchanged rate group =>
      let far := INR (Pos.to_nat group) * mu in
      forall s, 0 <= s <= 1 ->
      below_profile l p q
        (turned (exchanged (Q2R (any_of rate group)) s (gaussian_profile far) (gaussian_profile (far / 2))))
  | Copied size rate =>
      let chance := chance (Q2R rate) (Pos.to_nat size) in
      forall y t, 1 <= y -> (forall k, 0 <= t k) ->
      total (seq 1 (Pos.to_nat size)) (fun k => chance k * t k) <= (y - 1) * chance 0%nat ->
      let most := total (seq 1 (Pos.to_nat size)) (fun k =>
                    chance k * gaussian_profile (INR k * mu) 1 (y + t k)) in
      excess l p q 1 y <= most /\ excess l q p 1 y <= most
  | Gathered rate group =>
      if with_first then gathered (Q2R rate) mu (Pos.to_nat group) l p q
      else gathered (Q2R rate) mu (Pos.to_nat group) l q p
  end.

(** How far apart a step brings two laws, but for what of it adds up as mu^2. *)
Definition beside_normal (with_first : bool) (i : positive) {A} (l : list A) (p q : A -> R) : Prop :=
  match mechanism_at c i with
  | Some (SampledStep drawn moved squared _ std) =>
      contrasted with_first (contrast_of many drawn moved) (sqrt (Q2R squared) / Q2R std) l p q
  | Some (SampledLaplaceStep drawn _ squared _ scale) =>
      hidden_below many with_first drawn (sqrt (Q2R squared) / Q2R scale) l p q
  | Some (LaplaceStep _ _ _ _) => below_profile l p q (laplace_profile (exp (- (far * cost i) / 2)))
  | Some (DiscreteLaplaceStep _ squared _ scale) =>
      below_profile l p q (geometric_profile (exp (- / Q2R scale))
                             (Z.to_nat (Z.sqrt (Qfloor (further many squared)))))
  | Some (DiscreteGaussianStep _ squared _ std) =>
      moved_by (Q2R std) (Z.to_nat (Qfloor (further many squared))) l p q
  | Some (ResponseStep truth answers) =>
      below_profile l p q (shared_profile (exp (cost i)) (Q2R (share_of truth answers)))
  | Some (PureStep _ _ _ _) => below_profile l p q (shared_profile (exp (far * cost i)) 1)
  | Some (MixtureStep moved constant _ squared d rate std) =>
      contrasted with_first (contrast_of_mixture rate many moved d)
        (sqrt (Q2R (sampled_ratio many moved (share_for constant (share i)) squared std))) l p q
  | Some (AccumulatedStep _ squared _ rate samples std) =>
      contrasted with_first (seen_by_each rate (many * samples)) (sqrt (Q2R squared) / Q2R std) l p q
  | _ => True
  end.

(** A Gaussian step of which no sample hides anything, and no loss is asked. *)
Definition plain (i : positive) : Prop :=
  exists m ratio, mechanism_at c i = Some m /\ whole_ratio many m = Some ratio.

Definition apart (with_first : bool) (i : positive) {A} (l : list A) (p q : A -> R) : Prop :=
  if lossless table many i then below_profile l p q (fun a b => plus_part (a - b))
  else beside_normal with_first i l p q.

(** A step that reads all records is as far apart in either order. *)
Lemma in_order_of_all (with_first : bool) F a b :
  0 <= a -> 0 <= b ->
  (if with_first then removal_profile (Q2R 1) F a b else addition_profile (Q2R 1) F a b) = F a b.
Proof.
  intros Ha Hb; rewrite Q2R_number; destruct with_first; unfold removal_profile, addition_profile;
    replace (1 - 1) with 0 by ring; rewrite !Rmult_0_r, !Rminus_0_r, !Rmult_1_r;
    destruct (Rle_dec 0 _); try contradiction; reflexivity.
Qed.

(** mu^2 of it, and of what a mixture computes from all records. *)
Definition mu_squared (i : positive) : R :=
  match normal_ratio table many share i with Some ratio => Q2R ratio | None => 0 end.

Lemma share_below (few records : positive) : Pos.ltb few records = true -> 0 < Q2R (Zpos few # records) < 1.
Proof.
  intros L; apply Pos.ltb_lt in L; assert (P : 0 < IZR (Zpos records)) by (apply IZR_lt; reflexivity).
  unfold Q2R; cbn [Qnum Qden]; split; [apply Rdiv_lt_0_compat; [apply IZR_lt; reflexivity|exact P]|].
  apply Rmult_lt_reg_r with (1 := P); rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra; apply IZR_lt, L.
Qed.

Lemma counted_below size records :
  counted many size records = true -> 0 < Q2R (1 # Z.to_pos (one_of many size records)) < 1.
Proof. intros Few; apply (share_below 1), Pos.ltb_lt; apply (counted_real many size records Few). Qed.

Lemma fewer_than_half records : Pos.leb (2 * many) records = true -> Pos.ltb many records = true.
Proof. intros L; apply Pos.leb_le in L; apply Pos.ltb_lt; lia. Qed.

Lemma share_found i drawn moved squared d std :
  mechanism_at c i = Some (SampledStep drawn moved squared d std) ->
  0 < Q2R (share_met (contrast_of many drawn moved)) <= 1.
Proof.
  intros F; destruct (sampled_found _ _ _ _ _ _ F) as (_ & Fits & _).
  destruct drawn as [rate|size records|size records]; cbn [scheme_fits contrast_of] in *.
  - destruct moved; [apply any_of_within, Fits| |]; (destruct many; apply Fits).
  - destruct (counted many size records) eqn:Few; [|apply share_of_batch_within].
    pose proof (counted_below size records Few); cbn [share_met]; lra.
  - destruct (Pos.leb (2 * many) records) eqn:L; cbn [share_met]; [|rewrite Q2R_number; lra].
    pose proof (share_below many records (fewer_than_half _ L)); lra.
Qed.

Lemma rate_of_copies drawn moved size rate :
  contrast_of many drawn moved = Copied size rate -> 0 < Q2R rate < 1.
Proof.
  destruct drawn as [r'|n k|n k]; cbn [contrast_of]; intros E.
  - destruct moved; [discriminate E| |]; destruct many; discriminate E.
  - destruct (counted many n k) eqn:Few; [|discriminate E].
    injection E as <- <-; apply counted_below, Few.
  - destruct (Pos.leb (2 * many) k) eqn:L; [|discriminate E]; injection E as <- <-; apply share_below, fewer_than_half, L.
Qed.

(** One record more moves the sum that a sample is taken for by half of what replacing one does. *)
Lemma each_record_bounded h j rate squared d std :
  gaussian_round null r h (mechanism_at c (mechanism_of h)) ->
  mechanism_at c (mechanism_of h) = Some (SampledStep (Poisson rate) ReplaceOne squared d std) ->
  r0 = ReplaceOne -> reads r h j = true ->
  sensitivity (V := euclidean (dimension r h)) (differ_at add_remove_one j) (value r h)
    (sqrt (Q2R squared) / 2).
Proof.
  intros (moved' & squared' & d' & std' & F' & _ & More & _) F E R x y Dxy.
  assert (Same : moved' = ReplaceOne /\ squared' = squared /\ d' = d /\ std' = std).
  { rewrite F in F'; destruct F' as [[[[F' _]|(drawn & F' & _)] _]|(F' & _)];
      [discriminate F'|injection F' as <- <- <- <- <-; auto|discriminate F']. }
  destruct Same as (-> & -> & -> & ->).
  destruct (sampled_found _ _ _ _ _ _ F) as (_ & [_ Each] & _ & s & D & Es).
  rewrite E in D; pose proof (same_with_part x y j (proj2 Dxy)) as Ey.
  rewrite F in More; pose proof (added_sound null d _ _ (More rate eq_refl j x R) s (Each E) D) as [_ S]; rewrite Es in S.
  specialize (S (x j) (y j) (proj1 Dxy)); cbv beta in S.
  rewrite with_own_part, <- Ey in S; exact S.
Qed.

(** A loss that bounds a step, in one of the orders. *)
Definition bounds_step (with_first : bool) (i : positive) (L : loss) : Prop :=
  proper L /\ covers L /\
  (forall (l : list message) p q, distribution l p -> distribution l q ->
   apart with_first i l p q -> below_profile l p q (profile L)).

(** The roots of what a mixture's parts are apart by, over their noise. *)
Lemma share_root n of squared std : 0 < of -> 0 < Q2R std -> 0 <= Q2R squared ->
  0 < sqrt of * Q2R std /\
  forall q, Q2R q = of ->
  Q2R (further n squared / (q * (std * std))) = IZR (Zpos n) * IZR (Zpos n) * Q2R squared / (of * (Q2R std * Q2R std)) /\
  sqrt (Q2R (further n squared / (q * (std * std)))) = IZR (Zpos n) * sqrt (Q2R squared) / (sqrt of * Q2R std).
Proof.
  intros P B S; pose proof (sqrt_lt_R0 _ P) as Pr; pose proof (Pos_real n) as Pn.
  split; [apply Rmult_lt_0_compat; assumption|]; intros q Eq.
  assert (Pos : 0 < of * (Q2R std * Q2R std)) by (apply Rmult_lt_0_compat; nra).
  assert (E : Q2R (further n squared / (q * (std * std)))
              = IZR (Zpos n) * IZR (Zpos n) * Q2R squared / (of * (Q2R std * Q2R std))).
  { rewrite Q2R_div by (rewrite !Q2R_mult, Eq; lra); rewrite !Q2R_mult, Eq; f_equal.
    unfold further; apply square_times. }
  split; [exact E|]; rewrite E; apply sqrt_lem_1.
  - apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, Pos]; apply Rmult_le_pos; [nra|exact S].
  - apply Rmult_le_pos; [apply Rmult_le_pos; [lra|apply sqrt_pos]|left; apply Rinv_0_lt_compat; nra].
  - replace (IZR (Zpos n) * sqrt (Q2R squared) / (sqrt of * Q2R std)
             * (IZR (Zpos n) * sqrt (Q2R squared) / (sqrt of * Q2R std)))
      with (IZR (Zpos n) * IZR (Zpos n) * (sqrt (Q2R squared) * sqrt (Q2R squared))
            / (sqrt of * sqrt of * (Q2R std * Q2R std))) by (field; lra).
    rewrite !sqrt_sqrt by lra; reflexivity.
Qed.

(** What a Gaussian step on samples meets. *)
Lemma met_found i m x ratio :
  mechanism_at c i = Some m -> contrast_met many m = Some (x, ratio) ->
  single i /\ 0 < Q2R (share_met x) <= 1 /\
  (forall size rate, x = Copied size rate -> 0 < Q2R rate < 1) /\
  exists squared std, 0 <= Q2R squared /\ 0 < Q2R std /\ ratio = (squared / (std * std))%Q.
Proof.
  intros F; destruct m as [| drawn moved squared d std| | | | | | | |moved squared d rate samples std| |];
    try discriminate; cbn [contrast_met]; intros H.
  - injection H as <- <-; destruct (sampled_found _ _ _ _ _ _ F) as (_ & _ & Hs & s & D & E).
    split; [refine (alone i _ F _ _); discriminate|split; [apply (share_found _ _ _ _ _ _ F)|split]].
    + intros size rate; apply rate_of_copies.
    + exists squared, std; rewrite <- E; split; [exact (derived_nonneg r0 _ s D)|auto].
  - apply guard_some in H as [_ H]; injection H as <- <-.
    destruct (accumulated_found _ _ _ _ _ _ _ F) as (_ & _ & Hr & Hs & s & D & E).
    split; [refine (alone i _ F _ _); discriminate|split; [rewrite share_seen; exact Hr|split]].
    + intros size part E'; destruct (seen_is_no_copy _ _ _ _ E').
    + exists squared, std; rewrite <- E; split; [exact (derived_nonneg r0 _ s D)|auto].
Qed.

Lemma ratio_nonneg squared std : 0 <= Q2R squared -> 0 < Q2R std -> 0 <= Q2R (squared / (std * std)).
Proof.
  intros Sq Hs; rewrite Q2R_div, Q2R_mult by (rewrite Q2R_mult; nra).
  apply Rmult_le_pos; [exact Sq|left; apply Rinv_0_lt_compat; nra].
Qed.

Lemma whole_found i m ratio :
  mechanism_at c i = Some m -> whole_ratio many m = Some ratio -> single i /\ 0 <= Q2R ratio.
Proof.
  intros F W; assert (One : single i)
    by (refine (alone i m F _ _); [intros inner n ->|intros parts ->]; discriminate W); split; [exact One|].
  assert (Met : match contrast_met many m with
                | Some (x, met) => option_map (fun n => further n met) (whole_shift x)
                | None => None
                end = Some ratio -> 0 <= Q2R ratio).
  { destruct (contrast_met many m) as [[x met]|] eqn:Em; [|discriminate].
    destruct (whole_shift x) as [n|]; [|discriminate]; intros E; injection E as <-.
    destruct (met_found _ _ _ _ F Em) as (_ & _ & _ & squared & std & Sq & Hs & ->).
    apply further_nonneg, ratio_nonneg; assumption. }
  assert (Sampled : (if unmoved m then Some 0%Q else match contrast_met many m with
                | Some (x, met) => option_map (fun n => further n met) (whole_shift x)
                | None => None
                end) = Some ratio -> 0 <= Q2R ratio).
  { destruct (unmoved m); [|exact Met]; intros E; injection E as <-; rewrite Q2R_number; apply Rle_refl. }
  destruct m as [moved squared d std| | | | | | | |moved constant e squared d rate std| | |]; try (exact (Sampled W)).
  - injection W as <-; destruct (gaussian_found _ _ _ _ _ (or_introl F)) as (_ & Hs & s & D & Es).
    apply further_nonneg, ratio_nonneg; [rewrite <- Es; exact (derived_nonneg r0 _ s D)|exact Hs].
  - apply guard_some in W as [_ <-]; destruct (mixture_found _ _ _ _ _ _ _ _ F) as (_ & _ & Hs & (s & D & Es) & _).
    apply further_nonneg, ratio_nonneg; [rewrite <- Es; exact (derived_nonneg r0 _ s D)|exact Hs].
Qed.

Lemma mu_squared_nonneg i : 0 <= mu_squared i.
Proof.
  pose proof (Pos_real many); assert (0 <= far * far) by nra.
  unfold mu_squared, normal_ratio; fold (mechanism_at c i); destruct (mechanism_at c i) as [m|] eqn:F; [|lra].
  destruct (whole_ratio many m) as [ratio|] eqn:W; [apply (whole_found _ _ _ F W)|].
  destruct m; try lra; unfold guard; destruct (positive_number constant); [|lra].
  destruct (mixture_found _ _ _ _ _ _ _ _ F) as (_ & _ & Hs & (s & D & E) & _).
  assert (S : 0 <= Q2R constant) by (rewrite <- E; exact (derived_nonneg r0 _ s D)).
  destruct (share_root many (Q2R (share i)) constant noise_std (proj1 (shares i)) Hs S) as [_ Root].
  unfold constant_ratio; destruct (Root (share i) eq_refl) as [-> _].
  apply Rmult_le_pos; [apply Rmult_le_pos; assumption|left; apply Rinv_0_lt_compat].
  apply Rmult_lt_0_compat; [apply shares|nra].
Qed.

(** Where a sample holds all that two laws differ in, they are as far apart as without it. *)
Lemma whole_below (with_first : bool) x n mu {A} (l : list A) p q :
  distribution l p -> distribution l q -> 0 < Q2R (share_met x) <= 1 -> whole_shift x = Some n ->
  contrasted with_first x mu l p q -> below_profile l p q (gaussian_profile (INR (Pos.to_nat n) * mu)).
Proof.
  intros Dp Dq Hr W; assert (One : Q2R (share_met x) = 1).
  { assert (G : Qle_bool 1 (share_met x) = true)
      by (destruct x; cbn [whole_shift] in W; try discriminate W; apply guard_some in W as [G _]; exact G).
    apply Qle_bool_R in G; rewrite Q2R_number in G; lra. }
  assert (Order : forall F a b, 0 <= a -> 0 <= b ->
            (if with_first then removal_profile 1 F a b else addition_profile 1 F a b) = F a b)
    by (intros F a b Ha Hb; pose proof (in_order_of_all with_first F a b Ha Hb) as E; rewrite Q2R_number in E; exact E).
  assert (Turn : forall F G a b, 0 <= a -> 0 <= b -> (forall a b, 0 <= a -> 0 <= b -> G a b = gaussian_profile F a b) ->
            turned G a b = gaussian_profile F a b).
  { intros F G a b Ha Hb E; unfold turned; destruct (Rle_dec a b); [apply E; assumption|].
    rewrite E by assumption; apply profile_turned; assumption. }
  destruct x as [rate|part group|part group|rate group|size rate|rate group]; cbn [whole_shift contrasted share_met] in *;
    try discriminate W; apply guard_some in W as [_ <-]; rewrite ?One; intros B.
  - change (INR (Pos.to_nat 1)) with 1; rewrite Rmult_1_l; intros a b Ha Hb.
    specialize (B a b Ha Hb); rewrite <- (Order (gaussian_profile mu) a b Ha Hb); destruct with_first; exact B.
  - intros a b Ha Hb; eapply Rle_trans; [apply (B a b Ha Hb)|]; right; apply Turn; try assumption.
    intros u v Hu Hv; pose proof (in_order_of_all true (gaussian_profile (INR (Pos.to_nat group) * mu)) u v Hu Hv) as E.
    rewrite Q2R_number in E; exact E.
  - intros a b Ha Hb; eapply Rle_trans; [apply (B a b Ha Hb)|]; right; unfold told_profile; ring.
  - intros a b Ha Hb; specialize (B 1 ltac:(lra) a b Ha Hb); eapply Rle_trans; [exact B|]; right.
    apply Turn; try assumption; intros u v Hu Hv; unfold exchanged.
    replace ((1 - 1) * u * 1) with 0 by ring; replace ((v - u) * (1 - 1)) with 0 by ring.
    rewrite profile_a0, !Rmult_1_r, Rmult_1_l by lra; ring.
  - set (F := gaussian_profile (INR (Pos.to_nat group) * mu)).
    assert (Near : forall u v, distribution l u -> distribution l v -> gathered 1 mu (Pos.to_nat group) l u v -> below_profile l u v F).
    { intros u v Du Dv G a b Ha Hb; destruct Ha as [Ha|<-].
      2:{ rewrite excess_zero by (try apply Dv; assumption); unfold F; rewrite profile_a0 by exact Hb; lra. }
      destruct Hb as [Hb|<-].
      2:{ unfold F; rewrite profile_b0 by lra; apply excess_le_mass; try assumption; try apply Dv; lra. }
      assert (Hy : 0 < b / a) by (apply Rdiv_lt_0_compat; assumption).
      specialize (G (b / a) (fun _ => b / a) Hy (fun _ => Rlt_le _ _ Hy)); rewrite !drawn_mean_all in G.
      specialize (G (Rle_refl _)); apply (Rmult_le_compat_l a) in G; [|lra].
      rewrite <- excess_scal in G by lra; unfold F; rewrite <- GaussianComposition.profile_scal in G by lra.
      replace (a * 1) with a in G by ring; replace (a * (b / a)) with b in G by (field; lra); exact G. }
    destruct with_first; [apply Near; assumption|]; intros a b Ha Hb.
    rewrite (excess_turned l p q a b Dp Dq); replace (F a b) with (a - b + F b a) by (apply profile_turned; assumption).
    apply Rplus_le_compat_l, (Near q p); assumption.
Qed.

Lemma one_at_most_exp i : 1 <= exp (cost i).
Proof. rewrite <- exp_0; apply exp_le, cost_nonneg. Qed.

Lemma answers_below l p q F :
  below_profile l p q F -> below_profile (map Answer l) (of_answers p) (of_answers q) F.
Proof.
  intros H a b Ha Hb; unfold excess; rewrite total_map; apply (H a b Ha Hb).
Qed.

Lemma share_of_response i truth answers :
  mechanism_at c i = Some (ResponseStep truth answers) ->
  Q2R (share_of truth answers)
    = Q2R truth + (1 - Q2R truth) / (INR (Pos.to_nat answers) - 1).
Proof.
  intros F; destruct (response_found _ _ _ F) as (_ & K & _).
  pose proof (le_INR _ _ K) as L; change (INR 2) with (1 + 1) in L; unfold share_of.
  assert (D : Q2R (integer answers - 1) = INR (Pos.to_nat answers) - 1)
    by (rewrite Q2R_minus, Q2R_integer_positive, Q2R_number, INR_positive; reflexivity).
  rewrite Q2R_plus, Q2R_div, D, Q2R_minus, Q2R_number by (rewrite D; lra); reflexivity.
Qed.

Lemma response_below h truth answers x y :
  response_round r h (Some (ResponseStep truth answers)) ->
  mechanism_at c (mechanism_of h) = Some (ResponseStep truth answers) ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (shared_profile (exp (cost (mechanism_of h))) (Q2R (share_of truth answers))).
Proof.
  intros (truth' & answers' & F' & N & Within & _) F; injection F' as <- <-.
  destruct (response_found _ _ _ F) as (P & K & E & Pos).
  unfold next_messages, next_law; rewrite N, (share_of_response _ _ _ F).
  apply answers_below, answers_dominate;
    [exact P|exact K|apply Within|apply Within|apply one_at_most_exp|].
  pose proof (le_INR _ _ K) as L; change (INR 2) with (1 + 1) in L.
  unfold cost; rewrite F; unfold Rabs; destruct (Rcase_abs _).
  - right; rewrite exp_Ropp, exp_ln, E by exact Pos; field; lra.
  - left; rewrite exp_ln, E by exact Pos; field; lra.
Qed.

(** What moves no probability by more than that is such an answer that everybody gives. *)
Lemma pure_below h j x y :
  pure_round h -> reads r h j = true -> steps (differ_at adj j) times x y ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (shared_profile (exp (far * cost (mechanism_of h))) 1).
Proof.
  intros (_ & L & _ & P) R Sxy a b Ha Hb; unfold shared_profile.
  rewrite Rmult_1_l, Rminus_eq_0, Rmult_0_l, Rplus_0_r, <- INR_positive.
  pose proof (pure_group (differ_at adj j) _ (fun x => next_law r x h) _ times (P j R)) as G.
  apply odds_dominate; try assumption; try apply L; intros m I.
  split; [exact (G x y Sxy m I)|exact (G y x (steps_sym _ _ _ _ (differ_at_sym j) Sxy) m I)].
Qed.

Lemma laplace_cost_eq i moved squared d b :
  mechanism_at c i = Some (LaplaceStep moved squared d b) -> cost i = sqrt (Q2R squared) / Q2R b.
Proof. intros F; unfold cost; rewrite F; reflexivity. Qed.

Lemma laplace_below h j x y moved squared d b :
  laplace_round null r h (Some (LaplaceStep moved squared d b)) ->
  mechanism_at c (mechanism_of h) = Some (LaplaceStep moved squared d b) ->
  reads r h j = true -> steps (differ_at adj j) times x y ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (laplace_profile (exp (- (far * cost (mechanism_of h)) / 2))).
Proof.
  intros (moved' & squared' & d' & b' & [(F' & N & Alone)|[(drawn & F' & _)|(F' & _)]] & Read & _) F R Dxy;
    [|discriminate F'|discriminate F'].
  injection F' as <- <- <- <-; rewrite (laplace_cost_eq _ _ _ _ _ F).
  destruct (laplace_found _ _ _ _ _ (or_introl F)) as (-> & B & Sums & s & D & E).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
  rewrite <- INR_positive; unfold next_messages, next_law; rewrite N, Alone; apply numbers_below.
  apply (laplace_moved_below h j squared d s b times x y B D E Read R); exists times; auto.
Qed.

Lemma geometric_below h j x y moved squared d b :
  laplace_round null r h (Some (DiscreteLaplaceStep moved squared d b)) ->
  mechanism_at c (mechanism_of h) = Some (DiscreteLaplaceStep moved squared d b) ->
  reads r h j = true -> steps (differ_at adj j) times x y ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (geometric_profile (exp (- / Q2R b)) (Z.to_nat (Z.sqrt (Qfloor (further many squared))))).
Proof.
  intros (moved' & squared' & d' & b' & [(F' & _)|[(drawn & F' & _)|(F' & N & Whole)]] & Read & _) F R Dxy;
    [discriminate F'|discriminate F'|].
  injection F' as <- <- <- <-.
  destruct (laplace_found _ _ _ _ _ (or_intror (or_introl F))) as (-> & B & _ & s & D & E).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
  assert (Ints : forall x i, exists n, value r h x i = IZR n)
    by (intros u i; destruct (Whole u i) as [n ->]; eauto).
  pose proof (whole_moves h x y (further many squared) Ints (further_nonneg many _ Sq)
                (Rle_trans _ _ _ (far_in_l1 h times j squared d s x y D E Read R (ex_intro _ times (conj (le_n _) Dxy)))
                   (Req_le _ _ (eq_sym (further_root many _ Sq))))) as M.
  rewrite l1_total in M; unfold whole_root in M; rewrite Q2R_integer in M; apply le_IZR in M.
  unfold next_messages, next_law; rewrite N; apply numbers_below.
  apply (vector_geometric_profile (dimension r h) (cuts r h) (fun i => Int_part (value r h x i))
           (fun i => Int_part (value r h y i)) (Q2R b)); [exact B| |].
  - apply (grids_ascend null c r run_satisfies h).
  - rewrite Z2Nat.id by apply Z.sqrt_nonneg; exact M.
Qed.

(** Squared distances of whole numbers are whole. *)
Lemma discrete_gaussian_below h j x y moved squared d std :
  gaussian_round null r h (Some (DiscreteGaussianStep moved squared d std)) ->
  mechanism_at c (mechanism_of h) = Some (DiscreteGaussianStep moved squared d std) ->
  reads r h j = true -> steps (differ_at adj j) times x y ->
  moved_by (Q2R std) (Z.to_nat (Qfloor (further many squared)))
    (next_messages r h) (next_law r x h) (next_law r y h).
Proof.
  intros (moved' & squared' & d' & std' & [[[[F' _]|(drawn & F' & _)] _]|(F' & N & Whole)] & Read & _) F R Dxy;
    try discriminate F'; injection F' as <- <- <- <-.
  destruct (gaussian_found _ _ _ _ _ (or_intror F)) as (-> & Hs & s & D & E).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
  assert (Near : norm (sub (V := euclidean (dimension r h)) (value r h x) (value r h y))
                 <= sqrt (Q2R (further many squared))).
  { rewrite (further_root many _ Sq); apply (far_in_l2 _ _ j); [|exact Dxy].
    apply (part_sensitivity (euclidean (dimension r h)) h j squared d s (value r h) D E (fun data => Read j data R) R). }
  set (u := fun i => Int_part (value r h x i)); set (v := fun i => Int_part (value r h y i)).
  set (gap := sub (V := euclidean (dimension r h)) (value r h x) (value r h y)) in Near.
  pose proof (norm_pos gap) as Pn; apply (Rmult_le_compat _ _ _ _ Pn Pn Near) in Near; rewrite sqrt_sqrt in Near by exact (further_nonneg many _ Sq).
  rewrite norm_sq in Near; unfold next_messages, next_law; rewrite N.
  assert (Squares : total (seq 0 (dimension r h)) (fun i => (IZR (u i) - IZR (v i)) * (IZR (u i) - IZR (v i)))
                    <= INR (Z.to_nat (Qfloor (further many squared)))).
  { set (n := fold_right (fun i n => ((u i - v i) * (u i - v i) + n)%Z) 0%Z (seq 0 (dimension r h))).
    assert (En : total (seq 0 (dimension r h)) (fun i => (IZR (u i) - IZR (v i)) * (IZR (u i) - IZR (v i))) = IZR n).
    { unfold n; induction (seq 0 (dimension r h)) as [|i l IH]; cbn [total fold_right]; [reflexivity|].
      rewrite IH, plus_IZR, mult_IZR, minus_IZR; reflexivity. }
    assert (Le : IZR n <= Q2R (further many squared)).
    { rewrite <- En; eapply Rle_trans; [|exact Near]; right; unfold gap, sub; simpl; apply total_ext.
      intros i _; unfold u, v; destruct (Whole x i) as [k ->], (Whole y i) as [k' ->].
      rewrite !int_part_whole; ring. }
    rewrite <- Q2R_integer in Le; apply Rle_Qle, Qfloor_resp_le in Le; rewrite Qfloor_Z in Le.
    rewrite En, INR_IZR_INZ; apply IZR_le; lia. }
  destruct (vector_moved_by (Q2R std) (dimension r h) _ (cuts r h) u v Hs
              (grids_ascend null c r run_satisfies h) Squares) as (ways & Pw & Sw & B).
  exists ways; split; [exact Pw|split; [exact Sw|]]; intros K HK; apply numbers_below, (B K HK).
Qed.

Lemma far_gdp h s std j x y :
  normal_round h s std -> plain_round h s std -> reads r h j = true ->
  steps (differ_at adj j) times x y ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (gaussian_profile (sqrt (far * far * cost (mechanism_of h)))).
Proof.
  intros Round Plain R Sxy; pose proof (Pos_real many).
  rewrite sqrt_mult, sqrt_square, <- INR_positive by (try apply cost_nonneg; nra).
  apply (gdp_group (differ_at adj j) (next_messages r h) (fun x => next_law r x h)); auto using sqrt_pos.
  - intros u; apply laws.
  - intros u v Duv; apply (round_gdp h s std j); assumption.
Qed.

(** A null record is not there, so that a record more in a sample is a neighbour. *)
Lemma one_more {V} j (M : (nat -> list X) -> V) (close : V -> V -> Prop) :
  r0 <> ReplaceOne ->
  (forall u v, differ_at adj j u v -> close (M u) (M v)) ->
  (r0 = ZeroOutOne -> forall data before after,
     M (with_part data j (before ++ null :: after)) = M (with_part data j (before ++ after))) ->
  forall u v, same_but j u v -> add_remove_one (u j) (v j) -> close (M u) (M v).
Proof.
  intros Ea Neighbours Absent u v Suv Auv.
  destruct r0 eqn:Er0; [congruence| |apply Neighbours; split; assumption].
  assert (Null : forall u s1 s2, u j = s1 ++ s2 ->
            M u = M (with_part u j (s1 ++ null :: s2)) /\ with_part u j (s1 ++ null :: s2) j = s1 ++ null :: s2).
  { intros t s1 s2 E; split; [|apply with_part_own].
    rewrite (Absent eq_refl), <- E, with_own_part; reflexivity. }
  inversion Auv as [s1 s2 z' E1 E2|s1 s2 z' E1 E2].
  - destruct (Null v s1 s2 (eq_sym E2)) as [-> Own]; apply Neighbours; split.
    + rewrite Own, <- E1; constructor.
    + intros i N; rewrite with_part_other by exact N; apply Suv, N.
  - destruct (Null u s1 s2 (eq_sym E1)) as [-> Own]; apply Neighbours; split.
    + rewrite Own, <- E2; constructor.
    + intros i N; rewrite with_part_other by exact N; apply Suv, N.
Qed.

(** So many records more, or copies of records, each of which a Poisson sample may hold, or not. *)
Lemma seen_below {Y} (with_first : bool) o parties j (richer poorer : nat -> list Y) rate number
  (M : (nat -> list Y) -> list (Rbar * Rbar) -> R) mu :
  0 < Q2R rate <= 1 -> NoDup parties -> In j parties -> (forall data, distribution o (M data)) -> 0 <= mu ->
  (forall u v, differ_at add_remove_one j u v -> below_profile o (M u) (M v) (gaussian_profile mu)) ->
  same_but j richer poorer -> thinned (Pos.to_nat number) (richer j) (poorer j) ->
  let p := of_numbers (on_samples (draws (Q2R rate)) M parties richer) in
  let q := of_numbers (on_samples (draws (Q2R rate)) M parties poorer) in
  contrasted with_first (seen_by_each rate number) mu (map Numbers o)
    (if with_first then p else q) (if with_first then q else p).
Proof.
  intros Hr U I Laws Pmu One Same T; cbv zeta.
  assert (Draw : forall part : list Y, distribution (draws (Q2R rate) part) snd)
    by (intros part; apply draws_distribution; lra).
  assert (Near : forall k u v, same_but j u v -> thinned k (u j) (v j) ->
            below_profile o (M u) (M v) (gaussian_profile (INR k * mu))).
  { intros k u v Suv Tuv; apply thinned_steps in Tuv as (i & Le & S); apply (with_part_steps j) in S; [|exact Suv].
    apply below_profile_weaken with (gaussian_profile (INR i * mu)).
    - intros a b Ha Hb; apply profile_larger; try assumption.
      split; [apply Rmult_le_pos; [apply pos_INR|exact Pmu]|apply Rmult_le_compat_r; [exact Pmu|apply le_INR, Le]].
    - apply (gdp_group (differ_at add_remove_one j) _ M mu i); auto. }
  unfold seen_by_each; destruct (Pos.eqb_spec number 1) as [->|_]; cbn [contrasted].
  - change (Pos.to_nat 1) with 1%nat in T; set (F := gaussian_profile mu).
    assert (Near1 : forall (_ : unit) u v, same_but j u v -> thinned 1 (u j) (v j) -> below_profile o (M u) (M v) F).
    { intros _ u v Suv Tuv; specialize (Near 1%nat u v Suv Tuv); simpl in Near; rewrite Rmult_1_l in Near; exact Near. }
    assert (Covers : forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= F a b)
      by (intros; apply profile_ge; assumption).
    assert (Scales : forall e a b, 0 <= e -> 0 <= a -> 0 <= b -> F (e * a) (e * b) = e * F a b)
      by (intros; apply GaussianComposition.profile_scal; assumption).
    assert (All : forall a, 0 <= a -> F a 0 <= a) by (intros a Ha; unfold F; rewrite profile_b0; lra).
    assert (Any : 1 - (1 - Q2R rate) ^ 1 <= Q2R rate) by (simpl; lra).
    destruct with_first; apply numbers_below.
    + apply (on_samples_profile (draws (Q2R rate)) M Draw _ Laws j (fun _ : unit => F) (fun _ => thinned 1) Near1)
        with (part := richer j) (part' := poorer j); try assumption; try reflexivity.
      intros M' Laws' Below; apply (poisson_removal_at_most (Q2R rate) (Q2R rate) _ M' F 1); try assumption; try lra.
      apply (Below tt).
    + apply (on_samples_profile (draws (Q2R rate)) M Draw _ Laws j (fun _ : unit => F) (fun _ => thinned 1) Near1)
        with (part := poorer j) (part' := richer j); try assumption; try reflexivity.
      * intros i N; symmetry; apply Same, N.
      * intros M' Laws' Below; apply (poisson_addition_at_most (Q2R rate) (Q2R rate) _ M' F 1); try assumption; try lra.
        -- apply (Below tt).
        -- intros u v Hu Hv; unfold F; rewrite profile_turned by assumption; lra.
  - assert (Gathers : gathered (Q2R rate) mu (Pos.to_nat number) (map Numbers o)
              (of_numbers (on_samples (draws (Q2R rate)) M parties richer))
              (of_numbers (on_samples (draws (Q2R rate)) M parties poorer))).
    { intros y0 cs Hy Hcs Within; apply at_point_here; [|lra]; apply numbers_below.
      apply (on_samples_profile (draws (Q2R rate)) M Draw _ Laws j (fun k => gaussian_profile (INR k * mu)) thinned Near)
        with (part := richer j) (part' := poorer j); try assumption; try reflexivity.
      intros M' Laws' Below; apply at_point_below; try (apply on_sample_distribution; [lra|exact Laws']).
      apply (poisson_thinned (Q2R rate) ltac:(lra) o M' (fun k => gaussian_profile (INR k * mu))); try assumption; try lra.
      - intros k s s' _; apply Below.
      - intros; apply Laws'. }
    destruct with_first; exact Gathers.
Qed.

(** Samples under one noise: of so many records, each has as many copies as there are samples. *)
Lemma accumulated_below (with_first : bool) h j x y moved squared d rate samples std :
  accumulated_round null r h (mechanism_at c (mechanism_of h)) ->
  mechanism_at c (mechanism_of h) = Some (AccumulatedStep moved squared d rate samples std) ->
  reads r h j = true -> same_but j x y -> oriented many with_first (x j) (y j) ->
  contrasted with_first (seen_by_each rate (many * samples)) (sqrt (Q2R squared) / Q2R std)
    (next_messages r h) (next_law r x h) (next_law r y h).
Proof.
  intros (moved' & squared' & d' & rate' & samples' & std' & F' & N & (U & I & Absent) & Read & _) F R Same O.
  rewrite F in F'; injection F' as <- <- <- <- <- <-.
  destruct (accumulated_found _ _ _ _ _ _ _ F) as (-> & Not & Hr & Hs & s & D & Es).
  specialize (O Not); unfold next_messages, next_law; rewrite N.
  set (n := Pos.to_nat samples); set (o := vector_outcomes (dimension r h) (cuts r h)).
  set (M := noisy_vector (dimension r h) (accumulated n (value r h)) (Q2R std)).
  set (copies := fun (data : nat -> list X) party => copied n (data party)).
  set (on_all := on_samples (draws (Q2R rate)) M (sampled_parties r h)).
  (* what a record more in one of the samples does *)
  assert (Sens : sensitivity (V := euclidean (dimension r h)) (differ_at add_remove_one j) (value r h)
                   (sqrt (Q2R squared))).
  { intros u v [A S].
    apply (one_more j (value r h) (fun p q => norm (sub (V := euclidean (dimension r h)) p q) <= sqrt (Q2R squared)) Not);
      [|intros Er0 data before after; apply (Absent Er0 j data before after R)|intros i Ni; apply S, Ni|exact A].
    exact (part_sensitivity (euclidean (dimension r h)) h j squared d s (value r h) D Es (fun data => Read j data R) R). }
  assert (One : forall u v, differ_at add_remove_one j u v ->
            below_profile o (M u) (M v) (gaussian_profile (sqrt (Q2R squared) / Q2R std))).
  { apply (vector_gaussian_below_profile (differ_at add_remove_one j) (dimension r h) (accumulated n (value r h))
             (sqrt (Q2R squared)) (Q2R std) (cuts r h)); [exact Hs|apply sqrt_pos|apply (grids_ascend null c r run_satisfies)|].
    apply accumulated_sensitivity; [apply sqrt_pos|exact Sens]. }
  assert (Laws : forall data, distribution o (M data))
    by (intros data; apply noisy_vector_distribution; [exact Hs|apply (grids_ascend null c r run_satisfies)]).
  (* null records in them are as if they were not there *)
  assert (Lost : forall a b, steps (loses null r0) times a b -> exists b', thinned times a b' /\
            on_all (copies (with_part x j b)) = on_all (copies (with_part x j b'))).
  { intros a b Ls; destruct r0 eqn:Er0; [congruence| |].
    - destruct (lost_hidden times a b Ls) as [b' H]; exists b'; split; [apply (hidden_thinned _ _ _ _ _ H)|].
      assert (Part : forall part, copies (with_part x j part) = with_part (copies x) j (copied n part)).
      { intros part; extensionality i; unfold copies, with_part; destruct (Nat.eqb i j); reflexivity. }
      rewrite !Part; extensionality m.
      apply (hidden_copies null (fun part => on_all (with_part (copies x) j part) m) n times a b b'); [|exact H].
      intros k before after; apply invisible_on_samples; [|exact U]; intros data s1 s2.
      assert (Sampled : forall t part, (fun party => sample_of t (with_part data j part party))
                = with_part (fun party => sample_of t (data party)) j (sample_of t part)).
      { intros t part; extensionality party; unfold with_part; destruct (Nat.eqb party j); reflexivity. }
      assert (Same_value : accumulated n (value r h) (with_part data j (s1 ++ (k, null) :: s2))
                = accumulated n (value r h) (with_part data j (s1 ++ s2))).
      { extensionality i; apply total_ext; intros t _; rewrite !Sampled, !sample_app, sample_cons.
        destruct (Nat.eqb k t); [|reflexivity]; rewrite (Absent eq_refl j _ _ _ R); reflexivity. }
      unfold M, noisy_vector; rewrite Same_value; reflexivity.
    - exists b; split; [apply (lost_removed times a b Ls)|reflexivity]. }
  apply (in_either_order many with_first j x y (fun data => of_numbers (on_all (copies data)))
           (contrasted with_first (seen_by_each rate (many * samples)) (sqrt (Q2R squared) / Q2R std) (map Numbers o)) Same O).
  intros a b Ls; cbv zeta.
  destruct (Lost a b Ls) as (b' & T & ->); apply (seen_below with_first o _ j); try assumption.
  - apply I, R.
  - apply Rmult_le_pos; [apply sqrt_pos|left; apply Rinv_0_lt_compat, Hs].
  - intros i Ni; unfold copies; rewrite !with_part_other by exact Ni; reflexivity.
  - unfold copies; rewrite !with_part_own, Pos2Nat.inj_mul; apply thinned_copied, T.
Qed.

(** Any of so many records is drawn with as many times the probability of one at most. *)
Lemma any_at_most q k : 0 <= q <= 1 -> 1 - none q k <= INR k * q.
Proof.
  intros Hr; induction k as [|k IH]; [unfold none; simpl; lra|].
  pose proof (none_within q Hr k) as N; rewrite S_INR; unfold none in *; simpl; nra.
Qed.

Lemma drawn_at_most_real rate :
  0 < Q2R rate <= 1 -> 0 < Q2R (drawn_at_most rate many) <= 1 /\
  (Q2R (drawn_at_most rate many) = INR times * Q2R rate \/
   Q2R (drawn_at_most rate many) = 1 /\ 1 <= INR times * Q2R rate).
Proof.
  intros Hr; pose proof (Pos_real many) as Pm; unfold drawn_at_most, minimum; rewrite INR_positive.
  assert (E : Q2R (integer many * rate) = far * Q2R rate) by (rewrite Q2R_mult, Q2R_integer_positive; reflexivity).
  assert (P : 0 < far * Q2R rate) by (apply Rmult_lt_0_compat; lra).
  destruct (Qle_bool _ 1) eqn:G.
  - apply Qle_bool_R in G; rewrite E, Q2R_number in G; rewrite E; split; [lra|left; reflexivity].
  - apply Qle_bool_R_false in G; rewrite E, Q2R_number in G; rewrite Q2R_number; split; [lra|right; lra].
Qed.

(** Several records more, or fewer, in a mixture's Poisson sample. *)
Lemma thinned_below (with_first : bool) h j x y rate M mu :
  0 < Q2R rate <= 1 -> r0 = AddRemoveOne -> samples_at null r h rate r0 -> reads r h j = true ->
  (forall data, distribution (vector_outcomes (dimension r h) (cuts r h)) (M data)) -> 0 <= mu ->
  (forall u v, differ_at add_remove_one j u v ->
     below_profile (vector_outcomes (dimension r h) (cuts r h)) (M u) (M v) (gaussian_profile mu)) ->
  same_but j x y -> in_order many with_first (x j) (y j) ->
  below_profile (vector_outcomes (dimension r h) (cuts r h))
    (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) x)
    (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) y)
    (let F := gaussian_profile (INR times * mu) in let q := Q2R (drawn_at_most rate many) in
     if with_first then removal_profile q F else addition_profile q F).
Proof.
  intros Hr Er Samples R Laws Pmu Neighbours Same O.
  pose proof (fun part => mixture_draws h rate r0 part Samples ltac:(lra)) as Draw.
  destruct Samples as (As & U & In_sample); assert (Drawn : In j (sampled_parties r h)) by apply In_sample, R.
  destruct (drawn_at_most_real rate Hr) as [Hq Eq]; set (q := Q2R (drawn_at_most rate many)) in *; cbv zeta.
  set (F := gaussian_profile (INR times * mu)).
  assert (Far : 0 <= INR times * mu) by (apply Rmult_le_pos; [apply pos_INR|exact Pmu]).
  assert (Any : 1 - (1 - Q2R rate) ^ times <= q).
  { pose proof (any_at_most (Q2R rate) times ltac:(lra)); pose proof (none_within (Q2R rate) ltac:(lra) times).
    unfold none in *; destruct Eq as [->|[-> _]]; lra. }
  assert (Thin : forall a b, steps (loses null r0) times a b -> thinned times a b)
    by (rewrite Er; apply lost_removed).
  assert (Near : forall u v, same_but j u v -> thinned times (u j) (v j) ->
            below_profile (vector_outcomes (dimension r h) (cuts r h)) (M u) (M v) F).
  { intros u v Suv T; apply thinned_steps in T as (i & Le & S); apply (with_part_steps j) in S; [|exact Suv].
    apply below_profile_weaken with (gaussian_profile (INR i * mu)).
    - intros a b Ha Hb; apply profile_larger; try assumption.
      split; [apply Rmult_le_pos; [apply pos_INR|exact Pmu]|apply Rmult_le_compat_r; [exact Pmu|apply le_INR, Le]].
    - apply (gdp_group (differ_at add_remove_one j) _ M mu i); auto. }
  rewrite Er in As; destruct (sampled_by r h) as [rate'|n k filler|n k filler];
    [|destruct As; congruence|contradiction].
  destruct As as [-> _]; cbn [draws_of] in *.
  assert (Covers : forall a b, 0 <= a -> 0 <= b -> plus_part (a - b) <= F a b)
    by (intros; apply profile_ge; assumption).
  assert (Scales : forall e a b, 0 <= e -> 0 <= a -> 0 <= b -> F (e * a) (e * b) = e * F a b)
    by (intros; apply GaussianComposition.profile_scal; assumption).
  assert (All : forall a, 0 <= a -> F a 0 <= a) by (intros a Ha; unfold F; rewrite profile_b0; lra).
  apply (on_samples_profile (draws (Q2R rate)) M Draw _ Laws j (fun _ : unit => F) (fun _ => thinned times))
    with (part := x j) (part' := y j); auto.
  intros M' Laws' Below; specialize (Below tt); destruct with_first; unfold in_order in O; apply Thin in O.
  - apply (poisson_removal_at_most (Q2R rate) q _ M' F times); try assumption; lra.
  - apply (poisson_addition_at_most (Q2R rate) q _ M' F times); try assumption; try lra.
    intros u v Hu Hv; unfold F; rewrite profile_turned by assumption; lra.
Qed.

(** To be told of a batch that it holds records, too, shows no less. *)
Lemma replaced_at_most_told q mu a b :
  0 <= q <= 1 -> 0 <= mu -> 0 <= a -> 0 <= b ->
  replaced_profile q (gaussian_profile mu) a b <= told_profile q (gaussian_profile mu) a b.
Proof.
  intros Hq Hmu Ha Hb; unfold replaced_profile, turned, told_profile.
  assert (Less : forall u v, 0 <= u <= v -> removal_profile q (gaussian_profile mu) u v <= q * gaussian_profile mu u v).
  { intros u v Huv; unfold removal_profile; destruct (Rle_dec (u * (1 - q)) v) as [_|N]; [|nra].
    rewrite <- GaussianComposition.profile_scal, (Rmult_comm u) by lra; apply profile_decreasing; nra. }
  destruct (Rle_dec a b) as [L|L].
  - rewrite plus_part_0 by lra; specialize (Less a b ltac:(lra)); lra.
  - rewrite plus_part_id by lra; specialize (Less b a ltac:(lra)).
    rewrite <- (profile_turned mu a b) by assumption; lra.
Qed.

(** Records that others may stand for, in a sample that holds each with some probability at most. *)
Lemma swapped_below (told : bool) h j x y rate M mu :
  0 < Q2R rate <= 1 -> r0 <> AddRemoveOne -> samples_at null r h rate r0 -> reads r h j = true ->
  (forall data, distribution (vector_outcomes (dimension r h) (cuts r h)) (M data)) -> 0 <= mu ->
  (forall u v, differ_at replace_one j u v ->
     below_profile (vector_outcomes (dimension r h) (cuts r h)) (M u) (M v) (gaussian_profile mu)) ->
  (told = false -> forall q, sampled_by r h = EachWith q -> forall u v, differ_at add_remove_one j u v ->
     below_profile (vector_outcomes (dimension r h) (cuts r h)) (M u) (M v) (gaussian_profile mu)) ->
  same_but j x y -> steps (differ_at adj j) times x y ->
  below_profile (vector_outcomes (dimension r h) (cuts r h))
    (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) x)
    (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) y)
    ((if told then told_profile else replaced_profile) (Q2R (drawn_at_most rate many)) (gaussian_profile (INR times * mu))).
Proof.
  intros Hr Ea Samples R Laws Pmu Replaced More Same Sxy.
  pose proof (fun part => mixture_draws h rate r0 part Samples ltac:(lra)) as Draw.
  destruct Samples as (As & U & In_sample); assert (Drawn : In j (sampled_parties r h)) by apply In_sample, R.
  destruct (drawn_at_most_real rate Hr) as [Hq Eq]; set (q := Q2R (drawn_at_most rate many)) in *.
  set (F := gaussian_profile (INR times * mu)).
  assert (Swap : swapped times (x j) (y j)).
  { apply replaced_swapped; clear - Sxy Ea; revert y Sxy; induction times as [|k IH]; intros y.
    - intros <-; reflexivity.
    - intros (z & S & [A _]); exists (z j); split; [apply IH, S|].
      destruct r0; [exact A|destruct A; constructor|congruence]. }
  assert (Far : forall adj' i u v, (i <= times)%nat -> steps (differ_at adj' j) i u v ->
            (forall u v, differ_at adj' j u v ->
               below_profile (vector_outcomes (dimension r h) (cuts r h)) (M u) (M v) (gaussian_profile mu)) ->
            below_profile (vector_outcomes (dimension r h) (cuts r h)) (M u) (M v) F).
  { intros adj' i u v Le S One; apply below_profile_weaken with (gaussian_profile (INR i * mu)).
    - intros a b Ha Hb; apply profile_larger; try assumption.
      split; [apply Rmult_le_pos; [apply pos_INR|exact Pmu]|apply Rmult_le_compat_r; [exact Pmu|apply le_INR, Le]].
    - apply (gdp_group (differ_at adj' j) _ M mu i); auto. }
  assert (Swapped : forall u v, same_but j u v -> swapped times (u j) (v j) ->
            below_profile (vector_outcomes (dimension r h) (cuts r h)) (M u) (M v) F).
  { intros u v Suv T; apply swapped_steps in T as (i & Le & S); apply (with_part_steps j) in S; [|exact Suv].
    apply (Far replace_one i); assumption. }
  destruct (sampled_by r h) as [rate'|n k filler|n k filler]; cbn [draws_of] in *; [| |contradiction].
  - destruct As as [-> _].
    assert (Any : 1 - none (Q2R rate) times <= q).
    { pose proof (any_at_most (Q2R rate) times ltac:(lra)).
      pose proof (none_within (Q2R rate) ltac:(lra) times); destruct Eq as [->|[-> _]]; lra. }
    apply (on_samples_profile (draws (Q2R rate)) M Draw _ Laws j (fun _ : unit => F)
             (fun _ s s' => swapped times s s' \/ told = false /\ thinned times s s')) with (part := x j) (part' := y j); auto.
    + intros _ u v Suv [T|[Hidden T]]; [apply Swapped; assumption|].
      apply thinned_steps in T as (i & Le & S); apply (with_part_steps j) in S; [|exact Suv].
      apply (Far add_remove_one i); try assumption; apply (More Hidden _ eq_refl).
    + intros M' Laws' Near; destruct told.
      * apply (poisson_told (Q2R rate) ltac:(lra) _ M' q F times); auto; intros t t' T; apply (Near tt); auto.
      * apply (poisson_swapped_at_most (Q2R rate) ltac:(lra) _ M' q F times); auto.
        intros t t' T; apply (Near tt); destruct T; auto.
  - destruct As as (_ & Fit & Share).
    apply below_profile_weaken with (replaced_profile q F).
    { intros a b Ha Hb; destruct told; [|lra]; apply replaced_at_most_told; try assumption; [lra|].
      apply Rmult_le_pos; [apply pos_INR|exact Pmu]. }
    apply (on_samples_profile (batches n k filler) M Draw _ Laws j (fun _ : unit => F) (fun _ => swapped times))
      with (part := x j) (part' := y j); auto.
    intros M' Laws' Near; apply (batch_swapped n k times filler); try assumption; [|apply (Near tt)].
    assert (Pk : 0 < INR k) by (apply lt_0_INR; lia); pose proof (pos_INR times) as Pt.
    assert (Times : INR times * INR n / INR k <= INR times * Q2R rate).
    { unfold Rdiv; rewrite Rmult_assoc; apply Rmult_le_compat_l; assumption. }
    destruct (Rle_lt_or_eq_dec q 1 (proj2 Hq)) as [Lt|E]; [right|left; exact E].
    destruct Eq as [Eq|[Eq _]]; [|lra]; rewrite Eq; split; [|exact Times].
    assert (Room : (times * n < k)%nat).
    { apply INR_lt; rewrite mult_INR; apply Rmult_lt_reg_r with (/ INR k); [apply Rinv_0_lt_compat, Pk|].
      rewrite Rinv_r by lra; unfold Rdiv in Times; lra. }
    pose proof (Pos2Nat.is_pos many); nia.
Qed.

(** Of a mixture's sample nothing is seen. *)
Lemma unseen_sample h rate moved squared :
  samples_at null r h rate moved -> sample_moves squared rate = false -> 0 <= Q2R rate -> 0 <= Q2R squared ->
  sampled_by r h = EachWith 0 \/ Q2R squared = 0.
Proof.
  intros (As & _) Still Hr Sq; unfold sample_moves in Still; apply andb_false_iff in Still as [Z|Z];
    apply positive_number_zero in Z; [right; lra|left].
  destruct (sampled_by r h) as [q|n k filler|n k filler]; [| |contradiction].
  - destruct As as [-> _]; f_equal; lra.
  - destruct As as (_ & Fit & Share); exfalso.
    assert (0 < INR n / INR k) by (apply Rdiv_lt_0_compat; apply lt_0_INR; lia); lra.
Qed.

Lemma open_below h j x y moved constant e squared d rate std :
  mixture_round null r h (mechanism_at c (mechanism_of h)) ->
  mechanism_at c (mechanism_of h) = Some (MixtureStep moved constant e squared d rate std) ->
  sample_moves squared rate = false -> reads r h j = true -> steps (differ_at adj j) times x y ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (gaussian_profile (INR times * sqrt (Q2R constant) / Q2R std)).
Proof.
  intros (moved' & constant' & e' & squared' & d' & rate' & std' & F' & N & Samples & Always & Read & _ & Open & Unread)
    F Still Rd Sxy.
  rewrite F in F'; injection F' as <- <- <- <- <- <- <-.
  destruct (mixture_found _ _ _ _ _ _ _ _ F) as (-> & Hr & Hs & (s & De & Ee) & (t & Dd & Ed)).
  pose proof (fun part => mixture_draws h rate r0 part Samples Hr) as Draw.
  unfold next_messages, next_law; rewrite N; apply numbers_below.
  set (o := vector_outcomes (dimension r h) (cuts r h)).
  set (M := fun (z : nat -> R) => noisy_vector (dimension r h) (fun sample i => z i + value r h sample i) (Q2R std)).
  set (on_all := fun z => on_samples (draws_of (sampled_by r h)) (M z) (sampled_parties r h)).
  change (below_profile o (on_all (unsampled r h x) x) (on_all (unsampled r h y) y)
            (gaussian_profile (INR times * sqrt (Q2R constant) / Q2R std))).
  pose proof (unseen_sample h rate r0 squared Samples Still (proj1 Hr)
                ltac:(rewrite <- Ed; exact (derived_nonneg r0 _ t Dd))) as Unseen.
  destruct Samples as (_ & U & In_sample).
  assert (Alike : forall z n u v, steps (differ_at adj j) n u v -> forall a, In a o -> on_all z u a = on_all z v a).
  { intros z n; induction n as [|n IH]; simpl; intros u v S a Ia; [rewrite S; reflexivity|].
    destruct S as (w & S & Dwv); rewrite (IH u w S a Ia).
    refine (unmoved_samples h j (fun sample i => z i + value r h sample i)
              (fun row => run (fun before => rounded (row (length before)) (Q2R std))) a w v U In_sample Draw _ _ _ Dwv).
    - intros k data part Rk; extensionality i; rewrite (Unread k data part Rk); reflexivity.
    - intros p q Same; apply (run_of_row (fun m => rounded m (Q2R std))).
      apply transcripts_length in Ia; rewrite Ia; exact Same.
    - destruct Unseen as [Nobody|Z]; [left; exact Nobody|right; intros _ p q Dpq i Hi; f_equal].
      apply (part_unmoved (dimension r h) h j squared d t); auto. }
  assert (Shifted : below_profile o (on_all (unsampled r h x) x) (on_all (unsampled r h y) x)
                      (gaussian_profile (INR times * sqrt (Q2R constant) / Q2R std))).
  { set (V := joint_samples (draws_of (sampled_by r h)) (sampled_parties r h) x).
    assert (Flat : forall z m, on_all z x m = total V (fun sw => snd sw * M z (fst sw) m))
      by (intros z m; apply on_joint_samples).
    intros a b Ha Hb; eapply Rle_trans; [right; apply total_ext; intros m _; rewrite (Flat (unsampled r h x)), (Flat (unsampled r h y)); reflexivity|].
    apply (below_profile_mixture V snd o (joint_samples_distribution _ _ _ Draw)
             (fun sw => M (unsampled r h x) (fst sw)) (fun sw => M (unsampled r h y) (fst sw))); try assumption.
    intros sw _; set (near := fun z z' => norm (@sub (euclidean (dimension r h)) z z') <= INR times * sqrt (Q2R constant)).
    apply (vector_gaussian_below_profile near (dimension r h) (fun z i => z i + value r h (fst sw) i)); try assumption.
    - apply Rmult_le_pos; [apply pos_INR|apply sqrt_pos].
    - apply (grids_ascend null c r run_satisfies).
    - intros z z' Near; eapply Rle_trans; [|exact Near]; right; f_equal.
      unfold sub; simpl; extensionality i; ring.
    - apply (far_in_l2 (dimension r h) times j); [|exact Sxy].
      apply (part_sensitivity (euclidean (dimension r h)) h j constant e s); try assumption.
      intros data; apply Always, Rd. }
  intros a b Ha Hb; eapply Rle_trans; [right; apply total_ext; intros m Im|apply (Shifted a b Ha Hb)].
  rewrite <- (Alike (unsampled r h y) times x y Sxy m Im); reflexivity.
Qed.

(** Any other mixture: its noise in two shares, one for either part, if both move. *)
Lemma mixture_below with_first h j x y moved constant e squared d rate std L :
  mixture_round null r h (mechanism_at c (mechanism_of h)) ->
  mechanism_at c (mechanism_of h) = Some (MixtureStep moved constant e squared d rate std) ->
  sample_moves squared rate = true ->
  reads r h j = true -> same_but j x y -> steps (differ_at adj j) times x y -> oriented many with_first (x j) (y j) ->
  bounds_step with_first (mechanism_of h) L ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (followed L (sqrt (mu_squared (mechanism_of h)))).
Proof.
  intros (moved' & constant' & e' & squared' & d' & rate' & std' & F' & N & Samples & Always & Read & More & Open & Unread)
    F Moves_sample Rd Same Sxy O (PL & CL & Bound).
  rewrite F in F'; injection F' as <- <- <- <- <- <- <-.
  destruct (mixture_found _ _ _ _ _ _ _ _ F) as (Em & Hr0 & Hs & (s & De & Ee) & (t & Dd & Ed)).
  rewrite Em in *; clear moved Em.
  assert (Hr : 0 < Q2R rate <= 1).
  { apply andb_true_iff in Moves_sample as [_ P]; apply positive_number_R in P; lra. }
  assert (Sc : 0 <= Q2R constant) by (rewrite <- Ee; exact (derived_nonneg r0 _ s De)).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- Ed; exact (derived_nonneg r0 _ t Dd)).
  destruct (shares (mechanism_of h)) as [S0 S1]; set (sh := share_for constant (share (mechanism_of h))).
  assert (Within : 0 <= Q2R sh < 1) by (unfold sh, share_for; destruct (positive_number constant); rewrite ?Q2R_number; lra).
  assert (Rest : Q2R (1 - sh) = 1 - Q2R sh) by (rewrite Q2R_minus, Q2R_number; reflexivity).
  set (t1 := sqrt (Q2R sh) * Q2R std) in *; set (t2 := sqrt (1 - Q2R sh) * Q2R std).
  assert (Root2 : forall n, 0 < t2 /\ sqrt (Q2R (further n squared / ((1 - sh) * (std * std))))
                                    = IZR (Zpos n) * (sqrt (Q2R squared) / t2)).
  { intros n; destruct (share_root n (1 - Q2R sh) squared std ltac:(lra) Hs Sq) as [P2 Root].
    split; [exact P2|]; destruct (Root _ Rest) as [_ ->]; fold t2; unfold Rdiv; ring. }
  assert (P2 : 0 < t2) by apply (Root2 1%positive).
  assert (Mu : mu_squared (mechanism_of h)
               = if positive_number constant then Q2R (constant_ratio many (share (mechanism_of h)) constant std) else 0).
  { unfold mu_squared, normal_ratio; fold (mechanism_at c (mechanism_of h)); rewrite F; cbn [whole_ratio].
    rewrite Moves_sample; cbn [negb guard]; destruct (positive_number constant); reflexivity. }
  unfold next_messages, next_law; rewrite N, Mu; apply numbers_below.
  set (o := vector_outcomes (dimension r h) (cuts r h)).
  pose proof (fun part => mixture_draws h rate r0 part Samples ltac:(lra)) as Draw.
  set (V := fun data => joint_samples (draws_of (sampled_by r h)) (sampled_parties r h) data).
  set (with_mean := fun (z : nat -> R) (sample : nat -> list X) i => z i + value r h sample i).
  assert (Flat : forall (z : nat -> R) (std' : R) (data : nat -> list X) (m : list (Rbar * Rbar)),
            on_samples (draws_of (sampled_by r h)) (noisy_vector (dimension r h) (with_mean z) std')
              (sampled_parties r h) data m
            = hidden_vector (V data) (fun v i => z i + value r h v i) std' m)
    by (intros z std' data m; etransitivity; [apply on_joint_samples|reflexivity]).
  intros a b Ha Hb; eapply Rle_trans;
    [right; apply total_ext; intros m _; rewrite (Flat (unsampled r h x)), (Flat (unsampled r h y)); reflexivity|].
  revert a b Ha Hb; change (below_profile o (hidden_vector (V x) (fun v i => unsampled r h x i + value r h v i) (Q2R std))
    (hidden_vector (V y) (fun v i => unsampled r h y i + value r h v i) (Q2R std))
    (followed L (sqrt (if positive_number constant then Q2R (constant_ratio many (share (mechanism_of h)) constant std) else 0)))).
  assert (Hidden : forall z, below_profile o (hidden_vector (V x) (fun v i => z i + value r h v i) t2)
                               (hidden_vector (V y) (fun v i => z i + value r h v i) t2) (profile L)).
  { intros z; set (M := noisy_vector (dimension r h) (with_mean z) t2).
    assert (Laws : forall data, distribution o (M data)).
    { intros data; apply (noisy_vector_distribution (dimension r h) (with_mean z) t2 P2).
      apply (grids_ascend null c r run_satisfies). }
    set (mu := sqrt (Q2R squared) / t2) in *.
    assert (Pmu : 0 <= mu) by (apply Rmult_le_pos; [apply sqrt_pos|left; apply Rinv_0_lt_compat, P2]).
    (* a step of the value is one of the mean *)
    assert (Moves : forall adj' far', sensitivity (V := euclidean (dimension r h)) (differ_at adj' j) (value r h) far' -> 0 <= far' ->
              forall u v, differ_at adj' j u v -> below_profile o (M u) (M v) (gaussian_profile (far' / t2))).
    { intros adj' far' Sens Pf; apply (vector_gaussian_below_profile (differ_at adj' j) (dimension r h) (with_mean z) far' t2);
        [exact P2|exact Pf|apply (grids_ascend null c r run_satisfies)|].
      intros u v Duv; eapply Rle_trans; [|apply (Sens u v Duv)]; right; f_equal.
      unfold sub, with_mean; simpl; extensionality i; ring. }
    pose proof (Moves (neighbours null r0) _ (part_sensitivity (euclidean (dimension r h)) h j squared d t _ Dd Ed
                                    (fun data => Read j data Rd) Rd) (sqrt_pos _)) as Neighbours.
    fold mu in Neighbours.
    assert (Below : below_profile (map Numbers o)
              (of_numbers (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) x))
              (of_numbers (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) y)) (profile L)).
    { apply Bound; [apply numbers_distribution, on_samples_distribution; assumption..|].
      unfold apart, lossless, beside_normal; fold (mechanism_at c (mechanism_of h)); rewrite F; cbn [whole_ratio].
      rewrite Moves_sample; cbn [negb guard]; fold sh; unfold sampled_ratio.
      assert (Kind : r0 = AddRemoveOne \/ r0 <> AddRemoveOne /\
                exists told : bool, (told = false -> r0 = ReplaceOne -> linear_in_records d = true) /\
                forall one, contrast_of_mixture rate many r0 d = one ->
                one = (if told then Told else Batched) (drawn_at_most rate many) 1%positive).
      { destruct r0; [right|right|left; reflexivity]; (split; [discriminate|]).
        - exists (negb (linear_in_records d)); unfold contrast_of_mixture.
          destruct (linear_in_records d); cbn [negb]; split; try discriminate; auto.
        - exists false; split; [discriminate|auto]. }
      destruct Kind as [Er|(Er & told & Linear & Kind)].
      - assert (Ec : contrast_of_mixture rate many r0 d = Removed (drawn_at_most rate many))
          by (rewrite Er; reflexivity).
        rewrite Ec, Er, (proj2 (Root2 many)), <- INR_positive; fold mu.
        assert (Not : r0 <> ReplaceOne) by congruence; specialize (O Not).
        cbn [contrasted]; apply numbers_below, (thinned_below with_first h j x y rate M mu); try assumption.
        intros u v D; apply Neighbours; rewrite Er; exact D.
      - rewrite (Kind _ eq_refl).
        assert (Either : forall mu', below_profile (map Numbers o)
                  (of_numbers (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) x))
                  (of_numbers (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) y))
                  ((if told then told_profile else replaced_profile) (Q2R (drawn_at_most rate many)) (gaussian_profile (INR 1 * mu'))) ->
                  contrasted with_first ((if told then Told else Batched) (drawn_at_most rate many) 1%positive) mu' (map Numbers o)
                    (of_numbers (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) x))
                    (of_numbers (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) y)))
          by (destruct told; auto).
        apply Either, numbers_below; clear Either.
        set (times_more := match r0 with ReplaceOne => 1 | ZeroOutOne => 2 | AddRemoveOne => 1 end).
        assert (Emu : INR 1 * sqrt (Q2R (further (match r0 with ZeroOutOne => 2 * many | _ => many end) squared
                                    / ((1 - sh) * (std * std)))) = INR times * (times_more * mu)).
        { unfold times_more; rewrite (proj2 (Root2 _)), INR_positive; fold mu; simpl INR.
          destruct r0; [ring|change (IZR (Zpos (2 * many))) with (IZR (2 * Zpos many)); rewrite mult_IZR; ring|congruence]. }
        rewrite Emu.
        assert (Replaced : forall u v, differ_at replace_one j u v -> below_profile o (M u) (M v) (gaussian_profile (times_more * mu))).
        { unfold times_more; intros u v [A Suv]; destruct r0 eqn:Er0; [rewrite Rmult_1_l; apply Neighbours; split; assumption| |congruence].
          inversion A as [before after w w' E1 E2].
          set (between := with_part u j (before ++ null :: after)).
          assert (D1 : differ_at (zero_out_one null) j u between).
          { split; [unfold between; rewrite with_part_own, <- E1; constructor|].
            intros i Ni; unfold between; rewrite with_part_other by exact Ni; reflexivity. }
          assert (D2 : differ_at (zero_out_one null) j between v).
          { split; [unfold between; rewrite with_part_own, <- E2; constructor|].
            intros i Ni; unfold between; rewrite with_part_other by exact Ni; apply Suv, Ni. }
          replace (2 * mu) with (mu + mu) by ring.
          apply (below_profile_triangle o (M u) (M between) (M v) mu mu); try assumption;
            [apply Laws|apply Laws|apply Neighbours, D1|apply Neighbours, D2]. }
        apply (swapped_below told h j x y rate M (times_more * mu)); try assumption.
        + apply Rmult_le_pos; [unfold times_more; destruct r0; lra|exact Pmu].
        + intros Hidden q Es u v [A Suv]; destruct Samples as (As & _); rewrite Es in As; destruct As as [_ Absent].
          apply below_profile_weaken with (gaussian_profile mu).
          { intros a b Ha Hb; apply profile_larger; try assumption; split; [exact Pmu|].
            unfold times_more; destruct r0; lra. }
          assert (Which : r0 = ReplaceOne \/ r0 = ZeroOutOne) by (destruct r0; [left|right|congruence]; reflexivity).
          destruct Which as [Er0|Er0];
            [|apply (one_more j M (fun p q => below_profile o p q _) ltac:(rewrite Er0; discriminate) Neighbours); try assumption].
          * apply (Moves add_remove_one (sqrt (Q2R squared))); [|apply sqrt_pos|split; assumption].
            intros u' v' D; pose proof (same_with_part u' v' j (proj2 D)) as Ey.
            destruct (derived_sound null AddRemoveOne d _ _ (More Er0 (Linear Hidden Er0) j u' Rd) t) as [_ S];
              [apply derived_added; [apply Linear; assumption|rewrite <- Er0; exact Dd]|].
            rewrite Ed in S; specialize (S (u' j) (v' j) (proj1 D)); cbv beta in S.
            rewrite with_own_part, <- Ey in S; exact S.
          * intros _ data before after; unfold M, noisy_vector, with_mean.
            rewrite (Absent Er0 j data before after Rd); reflexivity. }
    intros a b Ha Hb; specialize (Below a b Ha Hb); eapply Rle_trans; [right|exact Below].
    unfold excess; rewrite total_map; cbn [of_numbers]; apply total_ext; intros m _.
    rewrite <- !(Flat z t2); reflexivity. }
  destruct (positive_number constant) eqn:Moves_open.
  - assert (Es : sh = share (mechanism_of h)) by (unfold sh, share_for; rewrite Moves_open; reflexivity).
    rewrite <- Es in *; destruct (share_root many (Q2R sh) constant std S0 Hs Sc) as [P1 Root1]; fold t1 in P1, Root1.
    unfold constant_ratio; rewrite (proj2 (Root1 sh eq_refl)).
    apply (noise_split (dimension r h) (cuts r h) (grids_ascend null c r run_satisfies h) t1 t2 (Q2R std) P1 P2 Hs).
    + unfold t1, t2; transitivity ((sqrt (Q2R sh) * sqrt (Q2R sh) + sqrt (1 - Q2R sh) * sqrt (1 - Q2R sh)) * (Q2R std * Q2R std));
        [rewrite !sqrt_sqrt by lra|]; ring.
    + apply joint_samples_distribution, Draw.
    + apply joint_samples_distribution, Draw.
    + exact PL.
    + apply Rmult_le_pos; [pose proof (Pos_real many); lra|apply sqrt_pos].
    + rewrite <- INR_positive; apply (far_in_l2 (dimension r h) times j); [|exact Sxy].
      apply (part_sensitivity (euclidean (dimension r h)) h j constant e s); try assumption.
      intros data; apply Always, Rd.
    + exact Hidden.
  - (* what is of all records is the same *)
    assert (T2 : t2 = Q2R std).
    { unfold t2, sh, share_for; rewrite Moves_open, Q2R_number, Rminus_0_r, sqrt_1; ring. }
    rewrite T2 in Hidden; rewrite sqrt_0; intros a b Ha Hb; rewrite followed_by_nothing.
    eapply Rle_trans; [right|apply (Hidden (unsampled r h x) a b Ha Hb)].
    apply total_ext; intros m Im; do 3 f_equal; unfold hidden_vector; apply total_ext; intros vw _; f_equal; symmetry.
    apply (run_of_row (fun q => rounded q (Q2R std)) (fun i => unsampled r h x i + value r h (fst vw) i)
             (fun i => unsampled r h y i + value r h (fst vw) i)); intros i Hi; f_equal; apply transcripts_length in Im; rewrite Im in Hi.
    assert (Zero : Q2R constant = 0) by (apply positive_number_zero in Moves_open; lra).
    clear - Sxy Hi De Ee Zero Always Rd; revert y Sxy; induction times as [|n IH]; simpl; intros y;
      [intros <-; reflexivity|intros (w & S & Dwy); rewrite (IH w S)].
    exact (part_unmoved (dimension r h) h j constant e s (unsampled r h) w y De Ee Zero (fun data => Always j data Rd) Rd Dwy i Hi).
Qed.

(** A Gaussian step on a sample. *)
Lemma sampled_met (with_first : bool) h s std0 j x y :
  normal_round h s std0 -> sampled_round h s std0 -> reads r h j = true -> same_but j x y ->
  steps (differ_at adj j) times x y -> oriented many with_first (x j) (y j) ->
  exists drawn moved squared d std, mechanism_at c (mechanism_of h) = Some (SampledStep drawn moved squared d std) /\
  contrasted with_first (contrast_of many drawn moved) (sqrt (Q2R squared) / Q2R std) (next_messages r h) (next_law r x h) (next_law r y h).
Proof.
  intros Round S R Same Sxy O; destruct (normal_messages h s std0 Round) as [Messages Law].
  pose proof (fun data => noisy_laws h s std0 data Round) as Laws; pose proof (drawn_distribution h s std0 S) as Draw.
  destruct Round as (_ & Hs & Ps & _ & Sens & _).
  destruct S as (drawn & moved & squared & d & std & F & Es & En & As & Ea & U & In_sample & Absent).
  destruct (sampled_found _ _ _ _ _ _ F) as (Em & _); exists drawn, moved, squared, d, std; split; [exact F|].
  rewrite Messages, !Law.
  set (o := vector_outcomes (dimension r h) (cuts r h)) in *.
  set (M := noisy_vector (dimension r h) (value r h) std0) in *; set (mu := sqrt (Q2R squared) / Q2R std).
  assert (Pmu : 0 <= mu).
  { apply Rmult_le_pos; [apply sqrt_pos|left; apply Rinv_0_lt_compat; rewrite <- En; exact Hs]. }
  assert (Sampled : samples_as null r h drawn r0) by exact (conj As (conj U (conj In_sample Absent))).
  assert (ByValue : forall u v, value r h u = value r h v -> M u = M v)
    by (intros u v E; unfold M, noisy_vector; rewrite E; reflexivity).
  (* as many steps as lie between data sets *)
  assert (Many : forall (near : list X -> list X -> Prop) step, 0 <= step ->
            (forall u v, differ_at near j u v -> below_profile o (M u) (M v) (gaussian_profile step)) ->
            forall i k u v, (i <= k)%nat -> steps (differ_at near j) i u v ->
            below_profile o (M u) (M v) (gaussian_profile (INR k * step))).
  { intros near step Ps' One i k u v Le S; apply below_profile_weaken with (gaussian_profile (INR i * step)).
    - intros a b Ha Hb; apply profile_larger; try assumption.
      split; [apply Rmult_le_pos; [apply pos_INR|exact Ps']|apply Rmult_le_compat_r; [exact Ps'|apply le_INR, Le]].
    - apply (gdp_group (differ_at near j) o M step i); assumption. }
  assert (Near : forall k u v, within_steps k j u v -> below_profile o (M u) (M v) (gaussian_profile (INR k * mu))).
  { intros k u v (i & Le & S); apply (Many adj mu Pmu) with (i := i); try assumption.
    unfold mu; rewrite <- Es, <- En.
    apply (vector_gaussian_below_profile (differ_at adj j) (dimension r h) (value r h) (sqrt s)
             std0 (cuts r h)); [exact Hs|apply sqrt_pos| |apply Sens, R].
    apply (grids_ascend null c r run_satisfies). }
  assert (Ones : gaussian_profile (INR (Pos.to_nat 1) * mu) = gaussian_profile mu)
    by (change (INR (Pos.to_nat 1)) with 1; rewrite Rmult_1_l; reflexivity).
  destruct drawn as [rate|size records|size records]; cbn [contrast_of].
  3:{ destruct (Pos.leb (2 * many) records) eqn:Few; cbn [contrasted].
      2:{ apply below_profile_weaken with (gaussian_profile (INR (Pos.to_nat size) * mu)).
          { intros a b _ _; unfold told_profile; rewrite Q2R_number; lra. }
          apply numbers_below, (all_copies_below h j (WithReplacement size records) d Ea Sampled o M Laws R
                   (fun k => gaussian_profile (INR k * mu)) Near size records); auto. }
      pose proof (fewer_than_half _ Few) as Few'; apply Pos.ltb_lt in Few'; intros y0 t Hy Ht Within.
      split; apply at_point_here; try lra; apply numbers_below;
        apply (copies_sample_below many h j (WithReplacement size records) d Ea Sampled o M Laws R
                 (fun k => gaussian_profile (INR k * mu)) Near size records); auto.
      - intros i N; symmetry; apply Same, N.
      - apply steps_sym; [apply differ_at_sym|exact Sxy]. }
  2:{ destruct (counted many size records) eqn:Few; cbn [contrasted].
      { intros y0 t Hy Ht Within; split; apply at_point_here; try lra; apply numbers_below;
          apply (counted_sample_below many h j (FixedBatch size records) d Ea Sampled o M Laws R
                   (fun k => gaussian_profile (INR k * mu)) Near size records); auto.
        - intros i N; symmetry; apply Same, N.
        - apply steps_sym; [apply differ_at_sym|exact Sxy]. }
      apply numbers_below, (batch_sample_below many h j (FixedBatch size records) d Ea Sampled o M Laws R
               (fun k => gaussian_profile (INR k * mu)) Near size records); auto. }
  fold (contrast_of many (Poisson rate) moved).
  assert (Kind : moved = ReplaceOne /\ contrast_of many (Poisson rate) moved = Exchanged rate many \/
            r0 <> ReplaceOne /\ contrast_of many (Poisson rate) moved = seen_by_each rate many).
  { rewrite Em in *; destruct r0; [left; auto| |]; right; (split; [discriminate|reflexivity]). }
  destruct Kind as [[Kind ->]|[Not_replaced ->]].
  { assert (Replaced : r0 = ReplaceOne) by congruence.
    rewrite Kind in *; cbn [contrasted]; intros split Hsplit; apply numbers_below.
    pose proof (own_round h j _ F R) as G; cbv beta iota delta [round_of_kind] in G; rewrite <- F in G.
    pose proof (each_record_bounded h j rate squared d std G F Replaced R) as Half.
    unfold draws_as in As; destruct (sampled_by r h) as [q|n k filler|n k filler]; try contradiction;
      cbn [draws_of] in *; subst q; destruct Ea as [Hr Each].
    rewrite any_of_real.
    apply (on_samples_profile (draws (Q2R rate)) _ Draw _ Laws j
             (fun b : bool => gaussian_profile (if b then INR times * mu else INR times * mu / 2))
             (fun b => if b then swapped times else thinned times))
      with (part := x j) (part' := y j); auto.
    - intros [|] u v Suv T.
      + apply swapped_steps in T as (i & Le & S); apply Near; exists i; split; [exact Le|].
        rewrite Replaced; apply (with_part_steps j i u v S Suv).
      + apply thinned_steps in T as (i & Le & S); apply (with_part_steps j) in S; [|exact Suv].
        replace (INR times * mu / 2) with (INR times * (mu / 2)) by field.
        apply (Many add_remove_one (mu / 2) ltac:(lra)) with (i := i); try assumption.
        replace (mu / 2) with (sqrt (Q2R squared) / 2 / std0) by (unfold mu; rewrite En; field; lra).
        apply (vector_gaussian_below_profile (differ_at add_remove_one j) (dimension r h) (value r h)
                 (sqrt (Q2R squared) / 2) std0 (cuts r h));
          [exact Hs|pose proof (sqrt_pos (Q2R squared)); lra| |exact Half].
        apply (grids_ascend null c r run_satisfies).
    - apply In_sample, R.
    - intros M' Laws' Near'; apply poisson_swapped; try assumption; [lra| | | |].
      + rewrite <- any_of_real; apply any_of_within, Hr.
      + intros t t'; apply (Near' true).
      + intros t t'; apply (Near' false).
      + apply replaced_swapped; apply own_steps in Sxy; rewrite Replaced in Sxy; exact Sxy. }
  assert (Rate : draws_of (sampled_by r h) = draws (Q2R rate) (X := X)).
  { unfold draws_as in As; destruct (sampled_by r h); try contradiction; subst; reflexivity. }
  apply (in_either_order many with_first j x y
           (fun data => of_numbers (on_samples (draws_of (sampled_by r h)) M (sampled_parties r h) data))
           (contrasted with_first (seen_by_each rate many) mu (map Numbers o)) Same (O Not_replaced)).
  intros a b Ls; cbv zeta.
  destruct (lost_thinned many h j (Poisson rate) Sampled M ByValue R rate eq_refl Not_replaced x a b Ls) as (b' & T & Alike).
  apply functional_extensionality in Alike; rewrite Alike, Rate.
  apply (seen_below with_first o _ j); try assumption.
  - apply Ea.
  - apply In_sample, R.
  - intros u v [A S].
    apply (one_more j M (fun p q => below_profile o p q (gaussian_profile mu)) Not_replaced);
      [|intros Er0 data before after; apply ByValue, (Absent Er0 j data before after R)|intros i Ni; apply S, Ni|exact A].
    intros u' v' Duv; rewrite <- Ones; apply Near; exists 1%nat; split; [lia|]; exists u'; split; [reflexivity|exact Duv].
  - intros i N; rewrite !with_part_other by exact N; reflexivity.
  - rewrite !with_part_own; exact T.
Qed.

Lemma round_loss with_first h j x y L :
  reads r h j = true -> same_but j x y -> steps (differ_at adj j) times x y -> oriented many with_first (x j) (y j) ->
  bounds_step with_first (mechanism_of h) L ->
  below_profile (next_messages r h) (next_law r x h) (next_law r y h)
    (followed L (sqrt (mu_squared (mechanism_of h)))).
Proof.
  intros R Same Sxy O Bounds; assert (B := Bounds); destruct B as (PL & CL & Bound).
  assert (Lossy : forall m, mechanism_at c (mechanism_of h) = Some m -> whole_ratio many m = None ->
            match m with MixtureStep _ _ _ _ _ _ _ => False | _ => True end ->
            beside_normal with_first (mechanism_of h) (next_messages r h) (next_law r x h) (next_law r y h) ->
            below_profile (next_messages r h) (next_law r x h) (next_law r y h)
              (followed L (sqrt (mu_squared (mechanism_of h))))).
  { intros m F W Kind A a b Ha Hb.
    assert (Zero : mu_squared (mechanism_of h) = 0).
    { unfold mu_squared, normal_ratio; fold (mechanism_at c (mechanism_of h)); rewrite F, W.
      destruct m; try destruct Kind; reflexivity. }
    rewrite Zero, sqrt_0, followed_by_nothing; apply Bound; auto using laws.
    unfold apart, lossless; fold (mechanism_at c (mechanism_of h)); rewrite F, W; exact A. }
  (* where nothing is hidden, a Gaussian step on samples is one on all records *)
  assert (Normal : forall m, mechanism_at c (mechanism_of h) = Some m -> forall ratio mu, whole_ratio many m = Some ratio ->
            sqrt (Q2R ratio) = mu ->
            below_profile (next_messages r h) (next_law r x h) (next_law r y h) (gaussian_profile mu) ->
            below_profile (next_messages r h) (next_law r x h) (next_law r y h)
              (followed L (sqrt (mu_squared (mechanism_of h))))).
  { intros m F ratio mu W Root B a b Ha Hb.
    assert (Mu : mu_squared (mechanism_of h) = Q2R ratio)
      by (unfold mu_squared, normal_ratio; fold (mechanism_at c (mechanism_of h)); rewrite F, W; reflexivity).
    rewrite Mu, Root; eapply Rle_trans; [apply (B a b Ha Hb)|].
    rewrite <- nothing_followed; apply followed_at_most; try assumption; [apply nothing_proper| |rewrite <- Root; apply sqrt_pos].
    intros a' b' Ha' Hb'; rewrite profile_nothing; apply CL; assumption. }
  assert (Sampled : forall m, mechanism_at c (mechanism_of h) = Some m ->
            match m with GaussianStep _ _ _ _ | MixtureStep _ _ _ _ _ _ _ => False | _ => True end ->
            whole_ratio many m = match contrast_met many m with
                                 | Some (x', ratio) => option_map (fun n => further n ratio) (whole_shift x')
                                 | None => None
                                 end).
  { intros m F Kind; pose proof (read_moving h j m R F) as Moving; destruct m; try contradiction; cbn [whole_ratio];
      rewrite Moving; reflexivity. }
  assert (Met : forall m, mechanism_at c (mechanism_of h) = Some m -> forall x' ratio mu, contrast_met many m = Some (x', ratio) ->
            sqrt (Q2R ratio) = mu ->
            contrasted with_first x' mu (next_messages r h) (next_law r x h) (next_law r y h) ->
            beside_normal with_first (mechanism_of h) (next_messages r h) (next_law r x h) (next_law r y h) ->
            below_profile (next_messages r h) (next_law r x h) (next_law r y h)
              (followed L (sqrt (mu_squared (mechanism_of h))))).
  { intros m F x' ratio mu Em Root A A'; destruct (met_found _ _ _ _ F Em) as (_ & Share & _ & squared & std & Sq & Hs & Er).
    assert (Kind : match m with MixtureStep _ _ _ _ _ _ _ => False | _ => True end) by (destruct m; try exact Logic.I; discriminate Em).
    assert (W : whole_ratio many m = option_map (fun n => further n ratio) (whole_shift x'))
      by (rewrite (Sampled m F) by (destruct m; try exact Logic.I; discriminate Em); rewrite Em; reflexivity).
    destruct (whole_shift x') as [n|] eqn:Wx; [|apply (Lossy m F W Kind A')].
    apply (Normal m F _ (INR (Pos.to_nat n) * mu) W).
    - rewrite further_root, Root by (rewrite Er; apply ratio_nonneg; assumption); reflexivity.
    - apply (whole_below with_first x'); auto using laws. }
  destruct (round h j R) as [(s & std0 & Round)|
    [((moved & squared & d & std & F) & _)|[Pure|((m & F & Mixed) & _)]]];
    [| |pose proof Pure as ((m & F & In & Not) & _)|].
  4:{ destruct m as [| | | | | | | |moved constant e squared d rate std|moved squared d rate samples std| |];
        try discriminate Mixed; pose proof (own_round h j _ F R) as G; cbv beta iota delta [round_of_kind] in G; rewrite <- F in G;
        [destruct (sample_moves squared rate) eqn:Moves;
           [exact (mixture_below with_first h j x y _ _ _ _ _ _ _ L G F Moves R Same Sxy O Bounds)|]|].
      { destruct (mixture_found _ _ _ _ _ _ _ _ F) as (_ & _ & Hs & (s & D & Es) & _).
        assert (Sc : 0 <= Q2R constant) by (rewrite <- Es; exact (derived_nonneg r0 _ s D)).
        refine (Normal _ F (further many (constant / (std * std))) _ _ _ (open_below h j x y _ _ _ _ _ _ _ G F Moves R Sxy)).
        - cbn [whole_ratio]; rewrite Moves; reflexivity.
        - rewrite further_root, root_of_ratio by (try apply ratio_nonneg; assumption); unfold Rdiv; ring. }
      pose proof (accumulated_below with_first h j x y _ _ _ _ _ _ G F R Same O) as A.
      assert (A' : beside_normal with_first (mechanism_of h) (next_messages r h) (next_law r x h) (next_law r y h))
        by (unfold beside_normal; rewrite F; exact A).
      destruct (Pos.leb (many * samples) most_copies) eqn:Few.
      - destruct (accumulated_found _ _ _ _ _ _ _ F) as (_ & _ & _ & Hs & s & D & Es).
        refine (Met _ F _ (squared / (std * std))%Q (sqrt (Q2R squared) / Q2R std) _ _ A A').
        + cbn [contrast_met]; rewrite Few; reflexivity.
        + apply root_of_ratio; [rewrite <- Es; exact (derived_nonneg r0 _ s D)|exact Hs].
      - apply (Lossy _ F); [|exact Logic.I|exact A'].
        rewrite (Sampled _ F Logic.I); cbn [contrast_met]; rewrite Few; reflexivity. }
  2:{ apply (Lossy _ F (Sampled _ F Logic.I) Logic.I); unfold beside_normal; rewrite F.
      exact (discrete_gaussian_below h j x y _ _ _ _ (own_round h j _ F R) F R Sxy). }
  2:{ apply (Lossy _ F); [rewrite (Sampled m F) by (destruct m; try exact Logic.I; discriminate);
                          destruct m; try reflexivity; try discriminate Not; discriminate In
                         |destruct m; try exact Logic.I; discriminate In|].
      pose proof (own_round h j _ F R) as G; unfold beside_normal; rewrite F.
      destruct m as [| | | | |truth answers|drawn moved squared d b|moved squared d b| | | |]; try discriminate In;
        try discriminate Not; cbv beta iota delta [round_of_kind] in G.
      - exact (laplace_below h j x y _ _ _ _ G F R Sxy).
      - exact (geometric_below h j x y _ _ _ _ G F R Sxy).
      - apply response_below; [exact G|exact F].
      - exact (sampled_laplace_below many with_first h j x y _ _ _ _ _ G F R Same Sxy O).
      - exact (pure_below h j x y Pure R Sxy). }
  assert (Kept := Round); destruct Round as (_ & _ & _ & [Plain|S] & _).
  { assert (Step := Plain); destruct Step as ((moved & squared & d & std & F) & _ & Ec).
    apply (Normal _ F _ (sqrt (far * far * cost (mechanism_of h))) eq_refl);
      [|apply (far_gdp h s std0 j x y Kept Plain R Sxy)].
    f_equal; unfold further; rewrite square_times; f_equal; unfold cost; rewrite F.
    destruct (gaussian_found _ _ _ _ _ (or_introl F)) as (_ & Hs' & _).
    rewrite Q2R_div, Q2R_mult by (rewrite Q2R_mult; nra); reflexivity. }
  destruct (sampled_met with_first h s std0 j x y Kept S R Same Sxy O) as (drawn & moved & squared & d & std & F & A).
  destruct (sampled_found _ _ _ _ _ _ F) as (_ & _ & Hs' & t0 & D & Et).
  refine (Met _ F (contrast_of many drawn moved) (squared / (std * std))%Q (sqrt (Q2R squared) / Q2R std) _ _ A _).
  - reflexivity.
  - apply root_of_ratio; [rewrite <- Et; exact (derived_nonneg r0 _ t0 D)|exact Hs'].
  - unfold beside_normal; rewrite F; exact A.
Qed.

Lemma taken_met j h :
  taken (fun h => if reads r h j then Some (mechanism_of h) else None) h = met r j h.
Proof.
  induction h as [|m h IH]; simpl; [reflexivity|]; rewrite IH; destruct (reads r h j); reflexivity.
Qed.

Theorem run_loss with_first j x y listed extra (K : positive -> loss) :
  same_but j x y -> steps (differ_at adj j) times x y -> oriented many with_first (x j) (y j) ->
  Permutation (allowed c j ++ extra) listed ->
  (forall i, In i listed -> bounds_step with_first i (K i)) ->
  below_profile (all_transcripts r) (run_law r x) (run_law r y)
    (together K mu_squared listed).
Proof.
  intros Same Sxy O P B.
  apply (loss_filter Pos.eq_dec (next_messages r) (next_law r x) (next_law r y)
           (fun h => laws x h) (fun h => laws y h)
           (fun h => if reads r h j then Some (mechanism_of h) else None)) with (K := K).
  - intros h E; destruct (reads r h j) eqn:R; [discriminate|].
    intros m I; apply (unread_same times h j); assumption.
  - intros i I; destruct (B i I) as (P1 & P2 & _); auto using mu_squared_nonneg.
  - intros h i E I; destruct (reads r h j) eqn:R; [injection E as <-|discriminate].
    apply (round_loss with_first h j); auto.
  - intros h Ih; destruct (steps_are_allowed null c r run_satisfies j h Ih) as [rest Q].
    exists (rest ++ extra).
    rewrite taken_met, app_assoc, Q; exact P.
Qed.

End Together.

Lemma run_laws x : distribution (all_transcripts r) (run_law r x).
Proof. apply run_distribution; intros h; apply laws. Qed.

(** ** Claims *)

(** Of [k] records at once of party [j] that meet no other steps than these: (eps, delta)-DP. *)
Definition indistinct (k : positive) (j : nat) (listed : list positive) (eps delta : R) : Prop :=
  forall x y extra event, differ_at (at_once null r0 k) j x y ->
  Permutation (allowed c j ++ extra) listed ->
  prob (all_transcripts r) (run_law r x) event
    <= exp eps * prob (all_transcripts r) (run_law r y) event + delta.

Lemma indistinct_weaken k j listed eps eps' delta :
  eps <= eps' -> indistinct k j listed eps delta -> indistinct k j listed eps' delta.
Proof.
  intros H I x y extra event D P; eapply Rle_trans; [apply (I x y extra event D P)|].
  assert (0 <= prob (all_transcripts r) (run_law r y) event).
  { apply total_nonneg; intros a Ia; destruct (event a); [apply (run_laws y), Ia|lra]. }
  pose proof (exp_le eps eps' H); nra.
Qed.

(** How many steps of the mechanisms' relation a claim is about, which is about theirs or about
    records that are replaced. *)
Definition unit_steps (s : claim) : positive :=
  if relation_eqb (claim_relation s) r0 then claim_group s else (2 * claim_group s)%positive.

Definition known_unit (s : claim) : Prop :=
  claim_relation s = r0 \/
  claim_relation s = ReplaceOne /\ match claim_notion s with ApproxDp _ _ => False | _ => True end.

(** What a step costs in Renyi DP of an order, so many records away: as zCDP has it, or on a sample, of
    whose cost to several records nothing is known. *)
Definition sampled_moment (drawn : scheme) (ratio : Q) (n : nat) : R :=
  match drawn with
  | Poisson rate => mean_power (1 - Q2R rate) (Q2R rate) n (Q2R ratio)
  | FixedBatch size records => batch_power (Q2R (share_of_batch size records)) n (Q2R ratio)
  | WithReplacement _ _ => 1
  end.

Definition renyi_price (alpha : R) (k i : positive) : R :=
  match mechanism_at c i with
  | Some (SampledStep drawn _ squared _ std as m) =>
      if Pos.eqb k 1 && negb (unmoved m) then ln (sampled_moment drawn (squared / (std * std)) (Z.to_nat (Int_part alpha))) / (alpha - 1)
      else 0
  | _ => alpha * (IZR (Zpos k) * IZR (Zpos k) * rho i)
  end.

Lemma moment_at_least i drawn moved squared d std n :
  mechanism_at c i = Some (SampledStep drawn moved squared d std) ->
  1 <= sampled_moment drawn (squared / (std * std)) n.
Proof.
  intros F; destruct (sampled_found _ _ _ _ _ _ F) as (_ & Fits & Hs & t & D & E).
  assert (Nn : 0 <= Q2R (squared / (std * std))) by (apply ratio_nonneg; [rewrite <- E; exact (derived_nonneg r0 d t D)|exact Hs]).
  destruct drawn as [rate|size records|size records]; cbn [sampled_moment scheme_fits] in *; [| |lra].
  - apply mean_power_at_least; [lra|exact Nn].
  - apply batch_power_at_least; [pose proof (share_of_batch_within size records); lra|exact Nn].
Qed.

Lemma renyi_price_nonneg alpha k i : 1 < alpha -> 0 <= renyi_price alpha k i.
Proof.
  intros Ha; assert (Zcdp : 0 <= alpha * (IZR (Zpos k) * IZR (Zpos k) * rho i)).
  { pose proof (Pos_real k); pose proof (rho_nonneg i); apply Rmult_le_pos; [lra|apply Rmult_le_pos; [nra|assumption]]. }
  unfold renyi_price; destruct (mechanism_at c i) as [[]|] eqn:F; try exact Zcdp.
  destruct (_ && _)%bool; [|lra]; apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; lra].
  rewrite <- ln_1; apply ln_le; [lra|apply (moment_at_least _ _ _ _ _ _ _ F)].
Qed.

(** What steps cost a record of party [j] in a notion, [k] records away, at most. *)
Definition within (kind : notion) (k : positive) (j : nat) (listed : list positive) (a : R) : Prop :=
  let far := IZR (Zpos k) in
  match kind with
  | Gdp _ => far * far * total listed cost <= a
  | Zcdp _ => forall alpha, 1 < alpha -> total listed (renyi_price alpha k) <= alpha * a
  | PureDp _ => far * total listed cost <= a
  | Rdp order _ => 1 < Q2R order /\ total listed (renyi_price (Q2R order) k) <= a
  | ApproxDp delta _ => indistinct k j listed a (Q2R delta)
  end.

(** A part costs any party's record its steps; a claim about the whole holds. *)
Definition valid (j : judgement) : Prop :=
  match j with
  | Part e s =>
      known_unit s /\
      forall j, within (claim_notion s) (unit_steps s) j (unrolled j e) (Q2R (cost_of_notion (claim_notion s)))
  | Whole s => said null (all_transcripts r) (run_law r) s
  | Kept _ _ => True
  end.

(** Notions in which costs add up. *)
Definition adds_up (kind : notion) : Prop :=
  match kind with Rdp order _ => 1 < Q2R order | ApproxDp _ _ => False | _ => True end.

Lemma within_nothing kind k j : adds_up kind -> within kind k j [] 0.
Proof. destruct kind; simpl; intuition lra. Qed.

Lemma zcdp_price alpha k i : pays_in (Zcdp 0) (match mechanism_at c i with Some m => m | None => Repeated i i end) = true ->
  renyi_price alpha k i = alpha * (IZR (Zpos k) * IZR (Zpos k) * rho i).
Proof. unfold renyi_price; destruct (mechanism_at c i) as [[]|]; try reflexivity; discriminate. Qed.

Lemma zcdp_prices alpha k listed : forallb (pays_in (Zcdp 0)) (mechanisms c) = true ->
  total listed (renyi_price alpha k) = alpha * (IZR (Zpos k) * IZR (Zpos k) * total listed rho).
Proof.
  intros All; rewrite <- !total_scal; apply total_ext; intros i _; apply zcdp_price.
  destruct (mechanism_at c i) as [m|] eqn:F; [|reflexivity].
  apply numbered_in in F; revert F; apply forallb_forall, All.
Qed.

Lemma within_up kind k j listed a b : a <= b -> within kind k j listed a -> within kind k j listed b.
Proof.
  intros H; destruct kind; simpl; try lra.
  - intros W alpha Ha; specialize (W alpha Ha); nra.
  - apply indistinct_weaken with (1 := H).
Qed.

(** Fewer steps cost no more. *)
Lemma within_less kind k j listed extra all a :
  Permutation (listed ++ extra) all -> within kind k j all a -> within kind k j listed a.
Proof.
  intros P W; pose proof (Pos_real k) as Pk.
  assert (Less : forall price, (forall i, 0 <= price i) -> 0 <= total extra price /\
            total all price = total listed price + total extra price).
  { intros price N; split; [apply total_nonneg; auto|].
    rewrite <- (total_permutation _ _ price P); apply total_app. }
  destruct (Less cost cost_nonneg) as [Nc Ec].
  pose proof (fun alpha Ha => Less (renyi_price alpha k) (fun i => renyi_price_nonneg alpha k i Ha)) as LessR.
  destruct kind; simpl in *.
  - rewrite Ec in W; pose proof (Rmult_le_pos _ _ (Rlt_le _ _ (Rmult_lt_0_compat _ _ Pk Pk)) Nc); lra.
  - intros alpha Ha; specialize (W alpha Ha); destruct (LessR alpha Ha); lra.
  - rewrite Ec in W; pose proof (Rmult_le_pos _ _ (Rlt_le _ _ Pk) Nc); lra.
  - destruct W as [Ho W]; split; [exact Ho|]; destruct (LessR _ Ho); lra.
  - intros x y more event D Q.
    apply (W x y (more ++ extra) event D); rewrite <- P, app_assoc; apply Permutation_app_tail, Q.
Qed.

Lemma comparable_within n kind k j listed a :
  comparable n kind = true -> within n k j listed a -> within kind k j listed a.
Proof.
  destruct n as [b|b|b|o b|o b], kind as [b'|b'|b'|o' b'|o' b']; simpl; try discriminate; intros K;
    try apply Q2R_equal in K; try rewrite <- K; auto.
Qed.

Lemma same_comparable n kind : same_kind n kind = true -> comparable n kind = true.
Proof. destruct n, kind; auto. Qed.

(** What is the same kind as itself is no approximate DP. *)
Lemma part_adds_up e s kind : valid (Part e s) -> same_kind (claim_notion s) kind = true -> adds_up kind.
Proof.
  intros [_ W] K; specialize (W O); destruct (claim_notion s), kind; simpl in *; try discriminate; auto.
  apply Q2R_equal in K; rewrite <- K; apply W.
Qed.

Lemma part_within e s kind :
  valid (Part e s) -> comparable (claim_notion s) kind = true ->
  known_unit s /\
  forall j, within kind (unit_steps s) j (unrolled j e) (Q2R (cost_of_notion (claim_notion s))).
Proof. intros [K W] C; split; [exact K|intros j; apply (comparable_within _ _ _ _ _ _ C), W]. Qed.

Lemma within_valid e s a :
  known_unit s -> (forall j, within (claim_notion s) (unit_steps s) j (unrolled j e) (Q2R a)) ->
  valid (Part e (costing a s)).
Proof. destruct s as [r' g []]; intros K W; split; try exact K; exact W. Qed.

Lemma same_unit_eq s t :
  same_unit s t = true -> unit_steps s = unit_steps t.
Proof.
  unfold same_unit, unit_steps; rewrite andb_true_iff, Pos.eqb_eq.
  intros [R ->]; apply relation_eqb_eq in R as ->; reflexivity.
Qed.

(** One step of the mechanisms' own relation. *)
Lemma unit_of_own k n : unit_steps (Claim r0 k n) = k /\ known_unit (Claim r0 k n).
Proof.
  unfold unit_steps, known_unit; cbn [claim_relation claim_group].
  destruct r0; split; try reflexivity; left; reflexivity.
Qed.

Lemma unit_of_one n : unit_steps (Claim r0 1 n) = 1%positive /\ known_unit (Claim r0 1 n).
Proof. apply unit_of_own. Qed.

(** A step, to everybody. *)
Lemma unrolled_one j m : single m -> unrolled j [(m, 1%positive)] = [m].
Proof. intros One; unfold unrolled; simpl; rewrite (One j); reflexivity. Qed.

Lemma total_one price j m : single m -> total (unrolled j [(m, 1%positive)]) price = price m.
Proof. intros One; rewrite (unrolled_one j m One); simpl; ring. Qed.

Lemma leaf_valid ratio m conclude kind j :
  (forall a, conclude a = at_cost (cost_of_notion (conclude a)) kind) ->
  (forall step a, mechanism_at c m = Some step -> ratio step = Some a ->
     single m /\ forall j, within kind 1 j [m] (Q2R (cost_of_notion (conclude a)))) ->
  leaf table r0 ratio m conclude = Some j -> valid j.
Proof.
  unfold leaf; intros Kind W; fold (mechanism_at c m).
  destruct (mechanism_at c m) as [step|] eqn:F; [|discriminate].
  destruct (ratio step) as [a|] eqn:Ra; [|discriminate]; intros H; injection H as <-.
  destruct (unit_of_one kind) as [One Known]; destruct (W step a eq_refl Ra) as [Single W'].
  rewrite Kind; apply (within_valid _ (Claim r0 1 kind)); [exact Known|]; intros j.
  rewrite One, (unrolled_one j m Single); apply W'.
Qed.

Lemma gaussian_leaf m a step :
  mechanism_at c m = Some step ->
  gaussian_ratio step = Some a \/ discrete_gaussian_ratio step = Some a ->
  single m /\ cost m = Q2R a /\ rho m = Q2R a / 2.
Proof.
  intros F H; assert (Kind : exists moved squared d std, a = (squared / (std * std))%Q /\
    (step = GaussianStep moved squared d std \/ step = DiscreteGaussianStep moved squared d std)).
  { destruct step as [moved squared d std| | | |moved squared d std| | | | | | |], H as [H|H];
      try discriminate; injection H as <-; exists moved, squared, d, std; auto. }
  destruct Kind as (moved & squared & d & std & -> & K).
  destruct (gaussian_found m moved squared d std) as (_ & Hs & _);
    [destruct K as [<-|<-]; auto|].
  split; [refine (alone m _ F _ _); destruct K as [->| ->]; discriminate|].
  unfold rho, cost; rewrite F, Q2R_div, Q2R_mult by (rewrite Q2R_mult; nra).
  destruct K as [->| ->]; split; reflexivity.
Qed.

Lemma laplace_leaf m a step :
  mechanism_at c m = Some step ->
  laplace_ratio step = Some a \/ discrete_laplace_ratio step = Some a ->
  single m /\ rho m <= Q2R a / 2.
Proof.
  intros F H; assert (Kind : exists moved squared d b, a = (squared / (b * b))%Q /\
    (step = LaplaceStep moved squared d b \/ step = DiscreteLaplaceStep moved squared d b)).
  { destruct step as [| |moved squared d b|moved squared d b| | | | | | | |], H as [H|H]; try discriminate;
      injection H as <-; exists moved, squared, d, b; auto. }
  destruct Kind as (moved & squared & d & b & -> & K).
  assert (Listed : mechanism_at c m = Some (LaplaceStep moved squared d b) \/
                   mechanism_at c m = Some (DiscreteLaplaceStep moved squared d b))
    by (destruct K as [->| ->]; auto).
  destruct (laplace_found m moved squared d b ltac:(destruct Listed; auto)) as (_ & B & _ & s & D & E).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
  assert (Below : 0 <= Q2R (whole_root squared) <= sqrt (Q2R squared)) by (apply whole_root_below, Sq).
  pose proof (sqrt_sqrt _ Sq) as Root; set (u := sqrt (Q2R squared)) in *.
  split; [refine (alone m _ F _ _); destruct K as [->| ->]; discriminate|].
  rewrite Q2R_div, Q2R_mult, <- Root by (rewrite Q2R_mult; nra).
  assert (I : 0 < / Q2R b) by (apply Rinv_0_lt_compat, B).
  assert (Square : forall v, 0 <= v <= u ->
            v / Q2R b * (v / Q2R b) / 2 <= u * u / (Q2R b * Q2R b) / 2).
  { intros v Hv; replace (u * u / (Q2R b * Q2R b) / 2) with (u / Q2R b * (u / Q2R b) / 2)
      by (field; lra).
    assert (0 <= v / Q2R b <= u / Q2R b)
      by (split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra).
    apply Rmult_le_compat_r; [lra|apply Rmult_le_compat; lra]. }
  assert (Pu : 0 <= u) by apply sqrt_pos.
  unfold rho, cost; destruct Listed as [L|L]; rewrite L; fold u; apply Square;
    [split; [exact Pu|apply Rle_refl]|exact Below].
Qed.

Lemma zcdp_of_half kind j m a step : kind = Zcdp 0 -> mechanism_at c m = Some step -> pays_in (Zcdp 0) step = true ->
  rho m <= Q2R a / 2 -> within kind 1 j [m] (Q2R (cost_of_notion (Zcdp (a / 2)))).
Proof.
  intros -> F Pays H; cbn [within cost_of_notion total]; intros alpha Ha.
  rewrite zcdp_price, Q2R_half by (rewrite F; exact Pays); nra.
Qed.

Lemma stated_leaf_valid m enough kind j :
  (forall step, enough step = true -> mechanism_at c m = Some step ->
     single m /\ forall j, within kind 1 j [m] (Q2R (cost_of_notion kind))) ->
  stated_leaf table r0 m enough kind = Some j -> valid j.
Proof.
  unfold stated_leaf; fold (mechanism_at c m); intros Enough.
  destruct (mechanism_at c m) as [step|] eqn:F; [|discriminate].
  intros H; apply guard_some in H as [G <-]; destruct (Enough step G eq_refl) as [One Le].
  destruct (unit_of_one kind) as [Unit Known].
  split; [exact Known|]; intros j; rewrite Unit, (unrolled_one j m One); apply Le.
Qed.

Lemma pure_leaf_valid m enough eps j :
  (forall step, enough step = true -> mechanism_at c m = Some step ->
     single m /\ cost m <= Q2R eps) ->
  pure_leaf table r0 m enough eps = Some j -> valid j.
Proof.
  intros Enough; apply stated_leaf_valid; intros step G F; destruct (Enough step G F) as [One Le].
  split; [exact One|intros j'; cbn [within cost_of_notion total]; lra].
Qed.

Lemma whole_part n : Z.to_nat (Int_part (Q2R (integer n))) = Pos.to_nat n.
Proof. rewrite Q2R_integer_positive, int_part_whole; reflexivity. Qed.

Lemma renyi_leaf_valid m order enough eps j :
  (forall step, enough step = true -> mechanism_at c m = Some step ->
     exists drawn moved squared d std, step = SampledStep drawn moved squared d std /\ 0 <= Q2R eps /\
     (2 <= Pos.to_nat order)%nat /\ (unmoved step = true \/
     sampled_moment drawn (squared / (std * std)) (Pos.to_nat order) <= exp ((INR (Pos.to_nat order) - 1) * Q2R eps))) ->
  renyi_leaf table r0 m order enough eps = Some j -> valid j.
Proof.
  intros Enough; apply stated_leaf_valid; intros step G F.
  destruct (Enough step G F) as (drawn & moved & squared & d & std & -> & Pe & Hn & Le).
  split; [refine (alone m _ F _ _); discriminate|intros j'; cbn [within cost_of_notion total]].
  assert (Order : 1 < INR (Pos.to_nat order)) by (apply (lt_INR 1), Hn).
  unfold renyi_price; rewrite F, whole_part; cbn [Pos.eqb andb].
  replace (Q2R (integer order)) with (INR (Pos.to_nat order)) by (rewrite Q2R_integer_positive; apply INR_positive).
  split; [exact Order|]; rewrite Rplus_0_r; destruct (unmoved _) eqn:Quiet; cbn [negb]; [exact Pe|].
  destruct Le as [Le|Le]; [congruence|]; pose proof (moment_at_least _ _ _ _ _ _ (Pos.to_nat order) F) as One.
  apply ln_le in Le; [|lra]; rewrite ln_exp in Le.
  apply Rmult_le_reg_r with (INR (Pos.to_nat order) - 1); [lra|].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

Lemma poisson_renyi_cost order eps step m : poisson_renyi_suffices order eps step = true -> mechanism_at c m = Some step ->
  exists drawn moved squared d std, step = SampledStep drawn moved squared d std /\ 0 <= Q2R eps /\
  (2 <= Pos.to_nat order)%nat /\ (unmoved step = true \/
  sampled_moment drawn (squared / (std * std)) (Pos.to_nat order) <= exp ((INR (Pos.to_nat order) - 1) * Q2R eps)).
Proof.
  destruct step as [|[rate|size records|size records] moved squared d std| | | | | | | | | |]; try discriminate.
  cbn [poisson_renyi_suffices]; rewrite !andb_true_iff, orb_true_iff; intros [[[_ Pe] Order] G] F.
  destruct (sampled_found _ _ _ _ _ _ F) as (_ & [Hr _] & _); exists (Poisson rate), moved, squared, d, std.
  apply Qle_bool_R in Pe; rewrite Q2R_number in Pe.
  repeat split; [exact Pe|apply order_at_least, Order|].
  destruct G as [G|G]; [left; exact G|right; apply poisson_renyi_at_most_sound; assumption].
Qed.

Lemma batch_renyi_cost order eps step m : batch_renyi_suffices order eps step = true -> mechanism_at c m = Some step ->
  exists drawn moved squared d std, step = SampledStep drawn moved squared d std /\ 0 <= Q2R eps /\
  (2 <= Pos.to_nat order)%nat /\ (unmoved step = true \/
  sampled_moment drawn (squared / (std * std)) (Pos.to_nat order) <= exp ((INR (Pos.to_nat order) - 1) * Q2R eps)).
Proof.
  destruct step as [|[rate|size records|size records] moved squared d std| | | | | | | | | |]; try discriminate.
  cbn [batch_renyi_suffices]; rewrite !andb_true_iff, orb_true_iff; intros [[Pe Order] G] F.
  destruct (sampled_found _ _ _ _ _ _ F) as (_ & _ & Hs & t & D & E); exists (FixedBatch size records), moved, squared, d, std.
  apply Qle_bool_R in Pe; rewrite Q2R_number in Pe.
  repeat split; [exact Pe|apply order_at_least, Order|]; destruct G as [G|G]; [left; exact G|right].
  apply batch_renyi_at_most_sound; [|pose proof (share_of_batch_within size records); lra|exact G].
  apply ratio_nonneg; [rewrite <- E; exact (derived_nonneg r0 d t D)|exact Hs].
Qed.

Lemma root_at_most m moved squared d b eps :
  mechanism_at c m = Some (LaplaceStep moved squared d b) \/
  mechanism_at c m = Some (PureStep moved squared d b) ->
  (Qle_bool 0 eps && Qle_bool (squared / (b * b)) (eps * eps))%bool = true -> cost m <= Q2R eps.
Proof.
  intros F G.
  destruct (laplace_found m moved squared d b ltac:(destruct F; auto)) as (_ & B & _ & s & D & E).
  apply andb_true_iff in G as [G0 G]; apply nonnegative_R in G0; apply Qle_bool_R in G.
  rewrite Q2R_div, !Q2R_mult in G by (rewrite Q2R_mult; nra).
  replace (cost m) with (sqrt (Q2R squared) / Q2R b)
    by (unfold cost; destruct F as [F|F]; rewrite F; reflexivity).
  rewrite <- (sqrt_square (Q2R b)) by lra.
  rewrite <- sqrt_div by (try nra; rewrite <- E; exact (derived_nonneg r0 d s D)).
  apply root_le; assumption.
Qed.

Lemma far_root_at_most k m moved squared d b eps :
  mechanism_at c m = Some (LaplaceStep moved squared d b) \/
  mechanism_at c m = Some (PureStep moved squared d b) ->
  (Qle_bool 0 eps && Qle_bool (further k squared / (b * b)) (eps * eps))%bool = true ->
  IZR (Zpos k) * cost m <= Q2R eps.
Proof.
  intros F G.
  destruct (laplace_found m moved squared d b ltac:(destruct F; auto)) as (_ & B & _ & s & D & E).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
  apply andb_true_iff in G as [G0 G]; apply nonnegative_R in G0; apply Qle_bool_R in G.
  rewrite Q2R_div, !Q2R_mult in G by (rewrite Q2R_mult; nra).
  replace (IZR (Zpos k) * cost m) with (sqrt (Q2R (further k squared)) / Q2R b).
  2:{ rewrite (further_root k _ Sq), INR_positive.
      unfold cost; destruct F as [F|F]; rewrite F; unfold Rdiv; ring. }
  rewrite <- (sqrt_square (Q2R b)) by lra.
  rewrite <- sqrt_div by (try nra; apply further_nonneg, Sq).
  apply root_le; [assumption|]; unfold further in *; rewrite !Q2R_mult in *; exact G.
Qed.

Lemma laplace_cost m eps step :
  laplace_suffices eps step = true -> mechanism_at c m = Some step ->
  single m /\ cost m <= Q2R eps.
Proof.
  destruct step as [| |moved squared d b| | | | | | | | |]; try discriminate; cbn [laplace_suffices]; intros G F.
  split; [refine (alone m _ F _ _); discriminate|apply (root_at_most m moved squared d b); auto].
Qed.

Lemma pure_step_cost m eps step :
  pure_step_suffices eps step = true -> mechanism_at c m = Some step ->
  single m /\ cost m <= Q2R eps.
Proof.
  destruct step as [| | | | | | |moved squared d b| | | |]; try discriminate; cbn [pure_step_suffices]; intros G F.
  split; [refine (alone m _ F _ _); discriminate|apply (root_at_most m moved squared d b); auto].
Qed.

Lemma discrete_laplace_cost m eps step :
  discrete_laplace_suffices eps step = true -> mechanism_at c m = Some step ->
  single m /\ cost m <= Q2R eps.
Proof.
  destruct step as [| | |moved squared d b| | | | | | | |]; try discriminate; simpl; intros G F.
  split; [refine (alone m _ F _ _); discriminate|].
  destruct (laplace_found _ _ _ _ _ (or_intror (or_introl F))) as (_ & B & _).
  apply Qle_bool_R in G; rewrite Q2R_div in G by exact B.
  unfold cost; rewrite F; exact G.
Qed.

Lemma response_cost m eps step :
  response_suffices eps step = true -> mechanism_at c m = Some step ->
  single m /\ cost m <= Q2R eps.
Proof.
  destruct step as [| | | | |truth answers| | | | | |]; try discriminate; simpl; intros G F.
  split; [refine (alone m _ F _ _); discriminate|].
  destruct (response_found _ _ _ F) as (_ & _ & _ & Pos).
  apply andb_true_iff in G as [G G']; apply at_most_exp_sound in G, G'.
  rewrite Q2R_inv in G' by (intros Z; apply Qeq_eqR in Z; rewrite Q2R_number in Z; lra).
  unfold cost; rewrite F; apply Rabs_le; split.
  - apply Ropp_le_cancel; rewrite Ropp_involutive, <- ln_Rinv by exact Pos.
    rewrite <- (ln_exp (Q2R eps)); apply ln_le; [apply Rinv_0_lt_compat, Pos|exact G'].
  - rewrite <- (ln_exp (Q2R eps)); apply ln_le; assumption.
Qed.

Lemma sample_cost of m eps step :
  sample_suffices of eps step = true -> mechanism_at c m = Some step ->
  single m /\ cost m <= Q2R eps.
Proof.
  destruct step as [| | | | | |drawn moved squared d b| | | | |]; try discriminate; cbn [sample_suffices]; intros G F.
  split; [refine (alone m _ F _ _); discriminate|]; apply andb_true_iff in G as [_ G].
  destruct (sampled_laplace_found _ _ _ _ _ _ F) as (_ & Fits & _ & B & s & D & E).
  assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d s D)).
  pose proof (drawn_share 1 drawn d Fits) as Share; pose proof (root_of_ratio squared b Sq B) as Root.
  assert (Far : 0 <= sqrt (Q2R squared) / Q2R b)
    by (apply Rmult_le_pos; [apply sqrt_pos|left; apply Rinv_0_lt_compat, B]).
  pose proof (amplified_at_least (Q2R (share_drawn 1 drawn)) _ ltac:(lra) Far) as One.
  unfold cost; rewrite F; apply orb_true_iff in G as [G|G].
  { (* no more than without a sample *)
    apply andb_true_iff in G as [P Le]; apply Qle_bool_R in P, Le; rewrite Q2R_number in P; rewrite Q2R_mult in Le.
    apply sqrt_le_1_alt in Le; rewrite sqrt_square, Root in Le by exact P.
    rewrite <- (ln_exp (Q2R eps)); apply ln_le; [lra|]; apply exp_le in Le.
    pose proof (exp_le _ _ Far) as E0; rewrite exp_0 in E0; unfold amplified; nra. }
  rewrite <- (ln_exp (Q2R eps)); apply ln_le; [lra|].
  apply (amplified_at_most_sound _ _ _ _ Share (Req_le _ _ (eq_sym Root)) G).
Qed.

Lemma composed_within counts premises first e total' :
  (forall j, In j premises -> valid j) -> adds_up (claim_notion first) ->
  composed counts premises first = Some (e, total') ->
  forall j, within (claim_notion first) (unit_steps first) j (unrolled j e) (Q2R total').
Proof.
  intros V K H j; revert premises e total' V H; induction counts as [|n counts IH];
    intros [|[e1 s1|s1|b1 s1] premises] e total' V H; simpl in H; try discriminate.
  - injection H as <- <-; rewrite Q2R_number; apply within_nothing, K.
  - destruct (_ && _)%bool eqn:E; [|discriminate]; apply andb_true_iff in E as [U E].
    destruct (composed counts premises first) as [[rest most]|] eqn:C; [|discriminate].
    injection H as <- <-.
    specialize (IH premises rest most (fun j I => V j (or_intror I)) C).
    destruct (part_within e1 s1 _ (V _ (or_introl eq_refl)) (same_comparable _ _ E)) as [_ W].
    specialize (W j); rewrite (same_unit_eq _ _ U) in W; pose proof (Pos_real n) as Pn.
    rewrite Q2R_plus', Q2R_times; apply Rlt_le in Pn.
    pose proof (fun price => weight_app price j (repeated_exposure n e1) rest) as App.
    pose proof (fun price => weight_repeated price j n e1) as Often; unfold weight in App, Often.
    destruct (claim_notion first); unfold within in *; cbv zeta in *; try contradiction;
      [|intros alpha Ha; specialize (W alpha Ha); specialize (IH alpha Ha)| |split; [apply IH|apply proj2 in W, IH]];
      rewrite App, Often; apply (Rmult_le_compat_l _ _ _ Pn) in W; lra.
Qed.

Lemma composition_valid counts premises j :
  (forall j, In j premises -> valid j) -> composition counts premises = Some j -> valid j.
Proof.
  intros V; unfold composition; destruct premises as [|first premises]; [discriminate|].
  destruct (composed counts (first :: premises) (statement_of first)) as [[e most]|] eqn:C;
    [|discriminate]; intros H; injection H as <-.
  assert (K : known_unit (statement_of first) /\ adds_up (claim_notion (statement_of first))).
  { destruct counts; [discriminate|]; destruct first as [e1 s1| |]; try discriminate; simpl in C.
    destruct (_ && _)%bool eqn:S; [|discriminate]; apply andb_true_iff in S as [_ S].
    pose proof (V _ (or_introl eq_refl)) as V1; split; [apply V1|exact (part_adds_up e1 s1 _ V1 S)]. }
  apply within_valid; [apply K|]; intros j.
  apply (within_less _ _ _ _ [] (unrolled j e)); [rewrite app_nil_r; apply unrolled_canonical|].
  apply (composed_within counts (first :: premises)); [exact V|apply K|exact C].
Qed.

Lemma repeated_valid m premises j :
  (forall j, In j premises -> valid j) -> repeated table m premises = Some j -> valid j.
Proof.
  intros V; unfold repeated; fold (mechanism_at c m).
  destruct (mechanism_at c m) as [[| | | | | | | | | |inner n|]|] eqn:F; try discriminate.
  destruct premises as [|[[|[i k] [|]] s| |] [|]]; try discriminate; intros H.
  apply guard_some in H as [G <-]; rewrite !andb_true_iff, !Pos.eqb_eq in G.
  destruct G as [[-> ->] S]; specialize (V _ (or_introl eq_refl)).
  pose proof (part_adds_up _ _ _ V S) as K; destruct V as [Known H].
  apply within_valid; [exact Known|]; intros j; specialize (H j); rewrite Q2R_times.
  assert (W : forall price, total (unrolled j [(m, 1%positive)]) price
                            = IZR (Zpos n) * total (unrolled j [(inner, 1%positive)]) price).
  { intros price; unfold unrolled; cbn [flat_map fst snd].
    change (Pos.to_nat 1) with 1%nat; cbn [repeat concat]; rewrite !app_nil_r.
    rewrite (steps_repeated _ _ _ _ F), total_concat_repeat, INR_positive; reflexivity. }
  pose proof (Pos_real n) as Pn; apply Rlt_le in Pn.
  destruct (claim_notion s); unfold within in *; cbv zeta in *; try contradiction;
    [|intros alpha Ha; specialize (H alpha Ha)| |split; [apply H|apply proj2 in H]];
    rewrite W; apply (Rmult_le_compat_l _ _ _ Pn) in H; lra.
Qed.

(** ** Groups of what a part is about *)

Lemma renyi_further alpha k k' i : 1 < alpha ->
  renyi_price alpha (k * k') i <= IZR (Zpos k) * IZR (Zpos k) * renyi_price alpha k' i.
Proof.
  intros Ha; pose proof (renyi_price_nonneg alpha k' i Ha) as Nn; pose proof (Pos_real k) as Pk.
  assert (Zcdp : alpha * (IZR (Zpos (k * k')) * IZR (Zpos (k * k')) * rho i)
                 <= IZR (Zpos k) * IZR (Zpos k) * (alpha * (IZR (Zpos k') * IZR (Zpos k') * rho i)))
    by (rewrite Pos2Z.inj_mul, mult_IZR; right; ring).
  unfold renyi_price in *; destruct (mechanism_at c i) as [[]|]; try exact Zcdp.
  destruct (Pos.eqb_spec (k * k') 1) as [E|_]; [|apply Rmult_le_pos; [nra|exact Nn]].
  assert (k = 1%positive) as -> by lia; assert (k' = 1%positive) as -> by lia; cbn [Pos.eqb] in *; lra.
Qed.

Lemma enlarged_valid e k group (r' : relation) s s' :
  (forall n, match n with ApproxDp _ _ => False | _ => True end -> known_unit s ->
     known_unit (Claim r' group n) /\ unit_steps (Claim r' group n) = (k * unit_steps s)%positive) ->
  valid (Part e s) -> enlarged k group r' s = Some s' -> valid (Part e s').
Proof.
  intros U V; unfold enlarged; destruct (Pos.eqb (claim_group s) 1); [|discriminate].
  pose proof (Pos_real k) as Pk; apply Rlt_le in Pk.
  destruct s as [r1 g [a|a|a|o a|o a]]; cbn [claim_notion]; try discriminate;
    intros H; injection H as <-; destruct V as [Known W];
    [specialize (U (Gdp (integer k * integer k * a)) I Known)
    |specialize (U (Zcdp (integer k * integer k * a)) I Known)
    |specialize (U (PureDp (integer k * a)) I Known)]; destruct U as [Known' U];
    (split; [exact Known'|]); intros j; specialize (W j);
    cbn [claim_notion cost_of_notion within] in *;
    rewrite U, ?square_times, ?Q2R_mult, ?Q2R_integer_positive.
  - rewrite Pos2Z.inj_mul, mult_IZR; apply (Rmult_le_compat_l _ _ _ (Rmult_le_pos _ _ Pk Pk)) in W; lra.
  - intros alpha Ha; specialize (W alpha Ha); apply (Rmult_le_compat_l _ _ _ (Rmult_le_pos _ _ Pk Pk)) in W.
    eapply Rle_trans; [apply total_le; intros i _; apply (renyi_further alpha k _ i Ha)|]; rewrite total_scal; lra.
  - rewrite Pos2Z.inj_mul, mult_IZR; apply (Rmult_le_compat_l _ _ _ Pk) in W; lra.
Qed.

Lemma grouped_valid rule e s s' :
  match rule with Group _ | ReplaceOneRule => True | _ => False end ->
  valid (Part e s) -> concluded rule s = Some s' -> valid (Part e s').
Proof.
  intros Rule V H.
  assert (One : claim_group s = 1%positive).
  { destruct rule; try contradiction; cbn [concluded] in H;
      [|destruct (claim_relation s); try discriminate]; unfold enlarged in H;
      destruct (Pos.eqb_spec (claim_group s) 1) as [E|]; try discriminate; exact E. }
  destruct rule; try contradiction; cbn [concluded] in H.
  - apply enlarged_valid with (2 := V) (3 := H); intros n Curve; unfold known_unit, unit_steps.
    cbn [claim_relation claim_group claim_notion]; rewrite One; intros Known; split; [tauto|].
    destruct (relation_eqb _ _); lia.
  - assert (Other : claim_relation s <> ReplaceOne) by (intros E; rewrite E in H; discriminate).
    assert (H' : enlarged 2 1 ReplaceOne s = Some s') by (destruct (claim_relation s); [congruence| |]; exact H).
    apply enlarged_valid with (2 := V) (3 := H'); intros n Curve; unfold known_unit, unit_steps.
    cbn [claim_relation claim_group claim_notion]; rewrite One; intros [E|[E _]]; [|congruence].
    split; [auto|]; rewrite E in *; destruct r0; try congruence; reflexivity.
Qed.

Lemma dearest_within premises first covered most :
  (forall j, In j premises -> valid j) -> dearest premises first = Some (covered, most) ->
  forall e, In e covered -> forall j, within (claim_notion first) (unit_steps first) j (unrolled j e) (Q2R most).
Proof.
  revert covered most; induction premises as [|[e1 s1|s1|b1 s1] premises IH];
    intros covered most V H; simpl in H; try discriminate.
  - injection H as <- <-; intros e [].
  - destruct (_ && _)%bool eqn:E; [|discriminate]; apply andb_true_iff in E as [U E].
    destruct (dearest premises first) as [[covered' most']|] eqn:C; [|discriminate].
    injection H as <- <-.
    pose proof (maximum_ge (cost_of_notion (claim_notion s1)) most') as [M1 M2].
    intros e [<-|Ie] j.
    + destruct (part_within e1 s1 _ (V _ (or_introl eq_refl)) E) as [_ W]; specialize (W j).
      rewrite (same_unit_eq _ _ U) in W; apply within_up with (1 := M1), W.
    + apply within_up with (1 := M2).
      apply (IH covered' most' (fun j I => V j (or_intror I)) eq_refl e Ie).
Qed.

(** The first premise is covered, and has its own unit. *)
Lemma dearest_first first premises covered most :
  valid first -> dearest (first :: premises) (statement_of first) = Some (covered, most) ->
  known_unit (statement_of first) /\ exists e, In e covered.
Proof.
  destruct first as [e s|s|b s]; try discriminate; intros [Known _]; cbn [dearest statement_of].
  destruct (_ && _)%bool; [|discriminate]; destruct (dearest premises s) as [[covered' most']|]; [|discriminate].
  intros H; injection H as <- <-; split; [exact Known|exists e; left; reflexivity].
Qed.

(** Each party's part costs no more than the dearest. *)
Lemma by_party_valid m premises j :
  (forall j, In j premises -> valid j) -> by_party table m premises = Some j -> valid j.
Proof.
  intros V; unfold by_party; fold (mechanism_at c m).
  destruct (mechanism_at c m) as [[| | | | | | | | | | |parts]|] eqn:F; try discriminate.
  destruct premises as [|first premises]; [discriminate|].
  destruct (dearest (first :: premises) (statement_of first)) as [[covered most]|] eqn:C; [|discriminate].
  intros H; apply guard_some in H as [G <-]; apply exposures_eqb_eq in G.
  destruct (dearest_first _ _ _ _ (V _ (or_introl eq_refl)) C) as [Known [e1 I1]].
  pose proof (dearest_within _ _ _ _ V C) as W; apply within_valid; [exact Known|]; intros j.
  assert (Steps : unrolled j [(m, 1%positive)] = steps_of c j m)
    by (unfold unrolled; simpl; rewrite !app_nil_r; reflexivity).
  assert (Nothing : steps_of c j m = [] ->
            within (claim_notion (statement_of first)) (unit_steps (statement_of first)) j
              (unrolled j [(m, 1%positive)]) (Q2R most)).
  { intros E; rewrite Steps, E; apply within_less with (2 := W e1 I1 j) (extra := unrolled j e1).
    reflexivity. }
  destruct (in_dec Nat.eq_dec j (map (fun part => Pos.to_nat (fst part)) parts)) as [I|N].
  2:{ apply Nothing; rewrite (steps_of_parts _ _ _ F), (held_by_nobody j m parts F); [reflexivity|].
      intros p <- I; apply N; rewrite <- (map_map fst Pos.to_nat); apply in_map, I. }
  apply in_map_iff in I as ([p held] & Ep & I); cbn [fst] in Ep.
  destruct (parts_for p parts) as [|i l] eqn:E.
  - apply Nothing; rewrite (steps_of_parts _ _ _ F), (held_by_parts j m parts p F Ep), E; reflexivity.
  - apply within_less with (extra := []) (all := unrolled j (canonical (map (fun i => (i, 1%positive)) (i :: l)))).
    + rewrite app_nil_r, Steps, unrolled_canonical, <- E.
      rewrite (divided_steps j m parts 1 p); [reflexivity| |exact Ep].
      unfold divided; fold (mechanism_at c m); rewrite F; reflexivity.
    + apply W; rewrite G; apply in_flat_map; exists (p, held); split; [exact I|].
      cbn [fst]; rewrite E; left; reflexivity.
Qed.

(** So many steps lead from one of the claim's neighbours to the other. *)
Lemma steps_to_unit s x y :
  known_unit s -> group_neighbours null (claim_relation s) (claim_group s) x y ->
  steps (one_part adj) (Pos.to_nat (unit_steps s)) x y.
Proof.
  unfold known_unit, unit_steps, group_neighbours; intros Known.
  destruct (relation_eqb (claim_relation s) r0) eqn:E; [apply relation_eqb_eq in E as ->; auto|].
  assert (Other : r0 <> ReplaceOne /\ claim_relation s = ReplaceOne).
  { destruct Known as [Er|[Er _]]; rewrite Er in *; [revert E; destruct r0; discriminate|].
    split; [intros E'; rewrite E' in E; discriminate|reflexivity]. }
  destruct Other as [Hr ->]; rewrite Pos2Nat.inj_mul; change (Pos.to_nat 2) with 2%nat.
  generalize (Pos.to_nat (claim_group s)) as k; intros k; revert y.
  induction k as [|k IH]; intros y S; [exact S|]; destruct S as (z & S & A).
  apply (replaced_in_two null r0 z y Hr) in A as (w & (z' & <- & A1) & A2).
  replace (2 * Datatypes.S k)%nat with (Datatypes.S (Datatypes.S (2 * k))) by lia.
  exists w; split; [exists z; split; [apply IH, S|exact A1]|exact A2].
Qed.

(** Renyi DP of an order, towards one record. *)
Lemma whole_order order : is_whole order = true -> 1 < Q2R order ->
  (2 <= Z.to_nat (Int_part (Q2R order)))%nat /\ INR (Z.to_nat (Int_part (Q2R order))) = Q2R order.
Proof.
  unfold is_whole; rewrite Z.eqb_eq; intros G Ho.
  assert (E : Q2R order = IZR (Qnum order ÷ Zpos (Qden order))).
  { pose proof (Z.quot_rem' (Qnum order) (Zpos (Qden order))) as Q; rewrite G, Z.add_0_r in Q.
    assert (P : 0 < IZR (Zpos (Qden order))) by (apply IZR_lt; reflexivity).
    unfold Q2R; rewrite Q at 1; rewrite mult_IZR; field; lra. }
  rewrite E in *; rewrite int_part_whole; set (z := (Qnum order ÷ Zpos (Qden order))%Z) in *.
  assert (2 <= z)%Z by (apply lt_IZR in Ho; lia); split; [lia|].
  rewrite INR_IZR_INZ, Z2Nat.id by lia; reflexivity.
Qed.

Theorem run_rdp (order : Q) (most : R) :
  1 < Q2R order -> forallb (pays_in (Rdp order 0)) (mechanisms c) = true ->
  (forall j, total (allowed c j) (renyi_price (Q2R order) 1) <= most) ->
  rdp (one_part adj) (all_transcripts r) (run_law r) (Q2R order) most.
Proof.
  intros Ho All H; apply (events_rdp adj (next_messages r) (next_law r) laws (reads r) unread (Q2R order) most
                            (fun h => renyi_price (Q2R order) 1 (mechanism_of h)) (rounds r)); [exact Ho| |].
  2:{ apply spent_within; [intros i; apply renyi_price_nonneg, Ho|exact H]. }
  intros h j x y R Dxy.
  assert (ByZcdp : forall m, mechanism_at c (mechanism_of h) = Some m -> pays_in (Zcdp 0) m = true ->
            rdp_pair (next_messages r h) (next_law r x h) (next_law r y h) (Q2R order) (rho (mechanism_of h) * Q2R order) ->
            rdp_pair (next_messages r h) (next_law r x h) (next_law r y h) (Q2R order)
              (renyi_price (Q2R order) 1 (mechanism_of h))).
  { intros m F Pays P; rewrite zcdp_price by (rewrite F; exact Pays).
    replace (Q2R order * (1 * 1 * rho (mechanism_of h))) with (rho (mechanism_of h) * Q2R order) by ring; exact P. }
  destruct (round h j R) as [(s & std & Round)|[Discrete|[Pure|((m & F & Mixed) & _)]]].
  - assert (Kind := Round); destruct Kind as (_ & _ & _ & [P|S] & _).
    + assert (Step := P); destruct Step as ((moved & squared & d & std' & F) & _).
      apply (ByZcdp _ F eq_refl), (gaussian_round_zcdp h s std j); assumption.
    + clear ByZcdp; destruct (some_order _ _ (proj1 Dxy)) as [with_first O].
      destruct (sampled_met 1 with_first h s std j x y Round S R (proj2 Dxy) (ex_intro _ x (conj eq_refl Dxy)) O)
        as (drawn & moved & squared & d & std' & F & A).
      pose proof (pays _ _ _ All F) as Pays; cbn [pays_in] in Pays; apply andb_true_iff in Pays as [Whole Pays].
      destruct (whole_order order Whole Ho) as [Hn En]; set (n := Z.to_nat (Int_part (Q2R order))) in *.
      destruct (sampled_found _ _ _ _ _ _ F) as (Em & Fits & Hs & t & D & E).
      assert (Sq : 0 <= Q2R squared) by (rewrite <- E; exact (derived_nonneg r0 d t D)).
      set (ratio := (squared / (std' * std'))%Q).
      assert (Nn : 0 <= Q2R ratio) by (apply ratio_nonneg; assumption).
      assert (Mu : sqrt (Q2R squared) / Q2R std' = sqrt (Q2R ratio)) by (symmetry; apply root_of_ratio; assumption).
      rewrite Mu in A; pose proof (sqrt_pos (Q2R ratio)) as Pmu; pose proof (sqrt_sqrt _ Nn) as Square.
      enough (M : covered (next_messages r h) (next_law r x h) (next_law r y h) /\
                  moment (INR n) (next_messages r h) (next_law r x h) (next_law r y h) <= sampled_moment drawn ratio n).
      { split; [apply M|]; unfold renyi_price; rewrite F, Pos.eqb_refl, (read_moving h j _ R F); cbn [andb negb]; fold n ratio; rewrite <- En in *.
        pose proof (moment_at_least _ _ _ _ _ _ n F) as One; fold ratio in One.
        replace ((INR n - 1) * (ln (sampled_moment drawn ratio n) / (INR n - 1))) with (ln (sampled_moment drawn ratio n))
          by (field; lra); rewrite exp_ln by lra; apply M. }
      destruct (laws x h) as [Nx _], (laws y h) as [Ny _].
      destruct drawn as [rate|size records|size records]; [| |discriminate Pays]; cbn [sampled_moment scheme_fits] in *;
        rewrite <- Square.
      * replace (contrast_of 1 (Poisson rate) moved) with (Removed rate) in A
          by (destruct moved; [discriminate Pays|reflexivity..]).
        cbn [contrasted] in A.
        destruct with_first; [apply removal_renyi|apply addition_renyi]; try assumption; lra.
      * change (contrast_of 1 (FixedBatch size records) moved) with (Batched (share_of_batch (1 * size) records) 1) in A.
        cbn [contrasted] in A; change (INR (Pos.to_nat 1)) with 1 in A; rewrite Rmult_1_l in A.
        apply replaced_renyi; try assumption; pose proof (share_of_batch_within size records); lra.
  - destruct Discrete as ((moved & squared & d & std & F) & _ & _ & Z).
    apply (ByZcdp _ F eq_refl), (Z j R (Q2R order) Ho x y Dxy).
  - assert (P := Pure); destruct P as ((m & F & In & Not) & _); pose proof (pays _ _ _ All F) as Pays.
    assert (Zc : pays_in (Zcdp 0) m = true) by (destruct m; try discriminate; reflexivity).
    apply (ByZcdp _ F Zc), (pure_round_zcdp h j); try assumption; exists m; auto.
  - pose proof (pays _ _ _ All F); destruct m; discriminate.
Qed.

(** From what any party's record pays to the run, if every step pays in the notion. *)
Lemma whole_valid s a :
  known_unit s -> forallb (pays_in (paid r0 s)) (mechanisms c) = true ->
  (forall j, within (claim_notion s) (unit_steps s) j (allowed c j) (Q2R a)) ->
  valid (Whole (costing a s)).
Proof.
  intros Known Pays W; pose proof (steps_to_unit s) as Near.
  assert (Alone : (relation_eqb (claim_relation s) r0 && Pos.eqb (claim_group s) 1)%bool = true -> unit_steps s = 1%positive).
  { rewrite andb_true_iff, Pos.eqb_eq; unfold unit_steps; intros [-> ->]; reflexivity. }
  set (k := unit_steps s) in *; pose proof (Pos_real k) as Pk.
  assert (Far : INR (Pos.to_nat k) = IZR (Zpos k)) by apply INR_positive.
  assert (Divided : forall far x y, 0 < far -> far * x <= y -> x <= y / far).
  { intros far x y F H; apply Rmult_le_reg_l with (1 := F).
    replace (far * (y / far)) with y by (field; lra); exact H. }
  assert (Square : 0 < IZR (Zpos k) * IZR (Zpos k)) by nra.
  destruct s as [r' g [b|b|b|o b|o b]]; unfold costing; unfold paid in Pays;
    cbn [claim_notion claim_relation claim_group at_cost] in *.
  - split; [exact I|]; intros x y A; cbn [claim_notion cost_of_notion].
    pose proof (gdp_group (one_part adj) (all_transcripts r) (run_law r)
                  (sqrt (Q2R a / (IZR (Zpos k) * IZR (Zpos k)))) (Pos.to_nat k) run_laws (sqrt_pos _)) as G.
    replace (sqrt (Q2R a)) with (INR (Pos.to_nat k) * sqrt (Q2R a / (IZR (Zpos k) * IZR (Zpos k)))).
    + apply G; [apply run_gdp; [exact Pays|]|apply (Near x y Known A)].
      intros j; apply Divided; [exact Square|exact (W j)].
    + rewrite Far, sqrt_div_alt, sqrt_square by lra; field; lra.
  - split; [exact I|]; intros alpha Ha x y A; cbn [claim_notion cost_of_notion].
    replace (Q2R a) with (INR (Pos.to_nat k) ^ 2 * (Q2R a / (IZR (Zpos k) * IZR (Zpos k))))
      by (rewrite Far; field; lra).
    apply (group_privacy (one_part adj) (all_transcripts r) (run_law r) run_laws);
      [apply run_zcdp; [exact Pays|]|exact Ha|apply (Near x y Known A)].
    intros j; apply Divided; [exact Square|].
    specialize (W j 2 ltac:(lra)); rewrite (zcdp_prices _ _ _ Pays) in W; lra.
  - split; [exact I|]; intros x y A; cbn [claim_notion cost_of_notion].
    replace (Q2R a) with (INR (Pos.to_nat k) * (Q2R a / IZR (Zpos k))) by (rewrite Far; field; lra).
    apply (pure_group (one_part adj)); [apply run_pure; [exact Pays|]|apply (Near x y Known A)].
    intros j; apply Divided; [exact Pk|exact (W j)].
  - destruct (W O) as [Ho _].
    split; [exact Ho|]; intros x y A; cbn [claim_notion cost_of_notion].
    destruct (relation_eqb r' r0 && Pos.eqb g 1)%bool.
    { specialize (Near x y Known A); specialize (Alone eq_refl); unfold k in *; rewrite Alone in *.
      destruct Near as (z & E & N); simpl in E; subst z.
      apply (run_rdp o (Q2R a) Ho Pays); [intros j; apply (W j)|exact N]. }
    replace (Q2R a)
      with (INR (Pos.to_nat k) ^ 2 * (Q2R a / Q2R o / (IZR (Zpos k) * IZR (Zpos k))) * Q2R o)
      by (rewrite Far; field; lra).
    apply (group_privacy (one_part adj) (all_transcripts r) (run_law r) run_laws);
      [apply run_zcdp; [exact Pays|]|exact Ho|apply (Near x y Known A)].
    intros j; apply Divided, Divided; [exact Square|lra|].
    destruct (W j) as [_ Wj]; rewrite (zcdp_prices _ _ _ Pays) in Wj; exact Wj.
  - split; [exact I|]; intros x y A event; cbn [claim_notion] in *.
    destruct Known as [Er|[_ []]]; cbn [claim_relation] in Er; subst r'.
    rewrite (proj1 (unit_of_own g (ApproxDp o b)) : k = g) in W.
    destruct A as (j & A); apply (W j x y [] event A); rewrite app_nil_r; reflexivity.
Qed.

(** Of steps whose losses are bounded in both orders. *)
Lemma losses_indistinct k share (shares : forall i, 0 < Q2R (share i) < 1) j listed eps delta :
  (forall with_first, exists K,
     (forall i, In i listed -> bounds_step k share with_first i (K i)) /\
     together K (mu_squared k share) listed 1 (exp eps) <= delta) ->
  indistinct k j listed eps delta.
Proof.
  intros H x y extra event [Axy Same] P.
  assert (O : exists with_first, oriented k with_first (x j) (y j)).
  { clear - Axy; unfold oriented, in_order, at_once in *; destruct r0;
      [exists true; congruence|destruct Axy; [exists true|exists false]; auto..]. }
  destruct O as [with_first O]; destruct (H with_first) as (K & B & D).
  apply at_once_steps, (with_part_steps j _ x y) in Axy; [|exact Same].
  apply (loss_dp _ _ _ _ eps delta event
           (run_loss k share shares with_first j x y listed extra K Same Axy O P B) D).
Qed.

Lemma same_exposures_in covered vs v : same_exposures covered vs = true -> In v vs -> In v covered.
Proof.
  unfold same_exposures; rewrite andb_true_iff; intros [G _] Iv; rewrite forallb_forall in G.
  specialize (G v Iv); apply existsb_exists in G as (e & Ie & E); apply exposure_eqb_eq in E; subst e.
  exact Ie.
Qed.

Lemma all_events_valid premises j :
  (forall j, In j premises -> valid j) ->
  all_events r0 (views (events c)) (views_apart table (events c))
    (fun kind => forallb (pays_in kind) (mechanisms c)) premises = Some j ->
  valid j.
Proof.
  intros V; unfold all_events; destruct premises as [|first premises]; [discriminate|].
  destruct (dearest (first :: premises) (statement_of first)) as [[covered most]|] eqn:C; [|discriminate].
  intros H; apply guard_some in H as [G <-]; apply andb_true_iff in G as [U G].
  destruct (dearest_first _ _ _ _ (V _ (or_introl eq_refl)) C) as [Known [e1 I1]].
  pose proof (dearest_within _ _ _ _ V C) as W; apply whole_valid; [exact Known|exact U|]; intros j.
  assert (Covered : exists e extra, In e covered /\ Permutation (allowed c j ++ extra) (unrolled j e)).
  { apply orb_true_iff in G as [G|G].
    - destruct (view_enough j) as (v & Iv & extra & P).
      exists v, extra; split; [apply (same_exposures_in _ _ _ G Iv)|exact P].
    - destruct (view_apart_enough j) as (v & [Iv| ->] & extra & P).
      + exists v, extra; split; [apply (same_exposures_in _ _ _ G Iv)|exact P].
      + apply Permutation_sym, Permutation_nil, app_eq_nil in P as [E _].
        exists e1, (unrolled j e1); split; [exact I1|rewrite E; reflexivity]. }
  destruct Covered as (e & extra & Ie & P); apply within_less with (1 := P), W, Ie.
Qed.

Lemma weaken_part a e s s' : valid (Part e s) -> weaken a s = Some s' -> valid (Part e s').
Proof.
  unfold weaken; intros [Known V] H; apply guard_some in H as [Le <-]; apply Qle_bool_R in Le.
  apply within_valid; [exact Known|intros j; apply within_up with (1 := Le), V].
Qed.

(** ** Compositions, for a record of any party *)

Section OfParty.

Variables (party : nat) (many : positive) (share : positive -> Q).
Hypothesis shares : forall i, 0 < Q2R (share i) < 1.

Notation unrolled := (unrolled party).
Notation apart := (apart many share).
Notation mu_squared := (mu_squared many share).
Notation bounds_step := (bounds_step many share).
Notation far := (IZR (Zpos many)).

Lemma unrolled_cons mn e : unrolled (mn :: e) = unrolled [mn] ++ unrolled e.
Proof. unfold unrolled; cbn [flat_map]; rewrite app_nil_r; reflexivity. Qed.

Lemma unrolled_alone i n : single i -> unrolled [(i, n)] = repeat i (Pos.to_nat n).
Proof.
  intros One; unfold unrolled; cbn [flat_map fst snd]; rewrite app_nil_r, One; apply concat_singles.
Qed.

(** What a mechanism repeats is a step. *)
Lemma repeated_step_alone m inner n :
  repeated_step table m = Some (inner, n) -> single inner.
Proof.
  unfold repeated_step; fold (mechanism_at c m).
  destruct (mechanism_at c m) as [step|] eqn:F; [|discriminate].
  assert (Und : forall i n', Checker.guard (undivided table m) (i, n') = Some (inner, n) ->
            undivided table m = true /\ i = inner).
  { intros i n' H; apply guard_some in H as [G E]; injection E as -> _; auto. }
  destruct step as [| | | | | | | | | |step times|];
    intros H; apply Und in H as [G <-]; unfold undivided in G; fold (mechanism_at c m) in G; rewrite F in G;
    try discriminate; try (refine (alone m _ F _ _); discriminate).
  fold (mechanism_at c step) in G; destruct (mechanism_at c step) as [inner'|] eqn:F'; [|discriminate].
  pose proof (mechanism_found _ _ F) as Ok; cbn in Ok; fold (mechanism_at c step) in Ok; rewrite F' in Ok.
  refine (alone step _ F' _ _); [intros i' n' ->|intros parts ->]; discriminate.
Qed.

Lemma repeated_step_unrolled m often inner n :
  repeated_step table m = Some (inner, n) -> unrolled [(m, often)] = unrolled [(inner, (often * n)%positive)].
Proof.
  intros H; pose proof (repeated_step_alone m inner n H) as One; rewrite (unrolled_alone inner _ One).
  unfold repeated_step in H; fold (mechanism_at c m) in H.
  destruct (mechanism_at c m) as [step|] eqn:F; [|discriminate].
  destruct step as [| | | | | | | | | |inner' n'|]; apply guard_some in H as [_ H]; injection H as <- <-;
    rewrite ?Pos.mul_1_r; try apply (unrolled_alone m _ One).
  unfold unrolled; cbn [flat_map fst snd]; rewrite app_nil_r.
  rewrite (steps_repeated _ _ _ _ F), (One party), repeat_repeat, Pos2Nat.inj_mul; apply concat_singles.
Qed.

Lemma steps_in_unrolled parts steps :
  steps_in table parts = Some steps -> unrolled (map fst parts) = unrolled (map fst steps).
Proof.
  revert steps; induction parts as [|[[m often] level] parts IH]; intros steps; cbn [steps_in].
  - intros H; injection H as <-; reflexivity.
  - destruct (repeated_step table m) as [[inner n]|] eqn:E; [|discriminate].
    destruct (steps_in table parts) as [found|]; [|discriminate]; intros H; injection H as <-.
    cbn [map fst]; rewrite unrolled_cons, (unrolled_cons (inner, _)), (IH found eq_refl).
    f_equal; apply repeated_step_unrolled, E.
Qed.

(** Nothing below asks what these compute. *)
Strategy opaque [step_losses batch_losses told_losses replaced_losses copies_losses gathered_losses laplace_loss geometric_loss discrete_gaussian_loss odds_loss LossComposition.composed loss_delta_at_most].

(** How much likelier an answer may become. *)
Lemma odds_above_sound p i truth answers :
  (0 <= p)%Z -> mechanism_at c i = Some (ResponseStep truth answers) ->
  exp (cost i) <= IZR (odds_above p truth answers) / unit_of p.
Proof.
  intros Hp F; unfold cost, odds_above; rewrite F; cbv zeta.
  destruct (response_found _ _ _ F) as (_ & _ & _ & Pos).
  eapply Rle_trans; [|apply (rational_ceiling p _ Hp)].
  destruct (maximum_ge (odds truth answers) (/ odds truth answers)) as [M1 M2].
  rewrite Q2R_inv in M2 by (intros Z; apply Qeq_eqR in Z; rewrite Q2R_number in Z; lra).
  set (x := Q2R (odds truth answers)) in *; unfold Rabs; destruct (Rcase_abs (ln x)).
  - rewrite exp_Ropp, exp_ln by exact Pos; exact M2.
  - rewrite exp_ln by exact Pos; exact M1.
Qed.

Lemma sampled_diag (with_first : bool) q (F : R -> R -> R) a b :
  0 <= q <= 1 -> (forall u v, 0 <= u -> 0 <= v -> plus_part (u - v) <= F u v) -> 0 <= a -> 0 <= b ->
  plus_part (a - b) <= (if with_first then removal_profile q F else addition_profile q F) a b.
Proof.
  intros Hr P Ha Hb; destruct with_first; [unfold removal_profile|unfold addition_profile].
  - destruct (Rle_dec (a * (1 - q)) b) as [L|L].
    + eapply Rle_trans; [|apply P; nra]; right; f_equal; ring.
    + assert (0 <= a * (1 - q) <= a) by nra; rewrite plus_part_id; lra.
  - destruct (Rle_dec (b * (1 - q)) a) as [L|L].
    + eapply Rle_trans; [|apply P; nra]; right; f_equal; ring.
    + assert (0 <= b * (1 - q) <= b) by nra; rewrite plus_part_0; lra.
Qed.

Lemma mixture_share i moved constant e squared d rate std :
  mechanism_at c i = Some (MixtureStep moved constant e squared d rate std) -> sample_moves squared rate = true ->
  0 < Q2R (share_met (contrast_of_mixture rate many moved d)) <= 1 /\
  forall size records, contrast_of_mixture rate many moved d <> Copied size records.
Proof.
  intros F Moves; destruct (mixture_found _ _ _ _ _ _ _ _ F) as (_ & Hr & _).
  apply andb_true_iff in Moves as [_ P]; apply positive_number_R in P.
  destruct (drawn_at_most_real many rate ltac:(lra)) as [Hq _].
  unfold contrast_of_mixture; destruct moved; try destruct (linear_in_records d); (split; [assumption|discriminate]).
Qed.

(** The same laws on both sides are not apart. *)
Lemma apart_diag with_first i : apart with_first i [tt] (fun _ => 1) (fun _ => 1).
Proof.
  assert (One : distribution [tt] (fun _ : unit => 1)) by (split; [intros u _; lra|simpl; ring]).
  assert (Normal : forall x mu, 0 < Q2R (share_met x) <= 1 ->
            (forall size rate, x = Copied size rate -> 0 < Q2R rate < 1) ->
            contrasted with_first x mu [tt] (fun _ => 1) (fun _ => 1)).
  { intros x mu Hr Many.
    assert (P : forall mu u v, 0 <= u -> 0 <= v -> plus_part (u - v) <= gaussian_profile mu u v)
      by (intros; apply profile_ge; assumption).
    assert (P0 : forall mu u v, 0 <= u -> 0 <= v -> 0 <= gaussian_profile mu u v)
      by (intros; eapply Rle_trans; [apply plus_part_nonneg|apply P; assumption]).
    destruct x as [rate|part group|part group|rate group|size rate|rate group]; cbn [contrasted share_met] in *.
    6:{ assert (Same : gathered (Q2R rate) mu (Pos.to_nat group) [tt] (fun _ => 1) (fun _ => 1));
          [|destruct with_first; exact Same].
        apply gathered_diag; [lra|exact One]. }
    5:{ intros y t Hy Ht _; cbv zeta; rewrite excess_diag, plus_part_0 by (try exact One; lra).
        split; apply total_nonneg; intros k _; (apply Rmult_le_pos; [apply chance_nonneg; lra|]);
          apply P0; specialize (Ht k); lra. }
    all: [> intros a b Ha Hb|intros a b Ha Hb|intros a b Ha Hb|intros s Hshare a b Ha Hb]; rewrite excess_diag by exact One.
    2:{ apply replaced_diag; try assumption; [lra|apply P]. }
    2:{ apply told_diag; try assumption; [lra|apply P]. }
    2:{ apply turned_diag; try assumption; intros u v H; unfold exchanged.
        revert Hr; generalize (Q2R (any_of rate group)) as q; intros q Hr.
        apply Rplus_le_le_0_compat; apply P0; repeat apply Rmult_le_pos; lra. }
    apply (sampled_diag with_first); try assumption; [lra|apply P]. }
  unfold apart; destruct (lossless table many i) eqn:Plain.
  { intros a b Ha Hb; rewrite excess_diag by exact One; apply Rle_refl. }
  unfold lossless in Plain; fold (mechanism_at c i) in Plain; unfold beside_normal;
    destruct (mechanism_at c i)
      as [[|drawn moved squared d std|moved squared d b'|moved squared d b'|moved squared d std
          |truth answers|drawn moved squared d b'|moved squared d b'|moved constant e squared d rate std
          |moved squared d rate samples std| |]|] eqn:F;
    try exact I.
  - apply Normal; [apply (share_found _ _ _ _ _ _ _ F)|intros size part; apply rate_of_copies].
  - intros a b Ha Hb; rewrite excess_diag by exact One.
    apply laplace_profile_ge; try assumption; left; apply exp_pos.
  - destruct (laplace_found _ _ _ _ _ (or_intror (or_introl F))) as (_ & B & _).
    intros a b Ha Hb; rewrite excess_diag by exact One; apply geometric_profile_diag; try assumption.
    split; [apply exp_pos|]; rewrite <- exp_0; apply exp_le.
    pose proof (Rinv_0_lt_compat _ B); lra.
  - apply moved_by_nothing.
  - intros a b Ha Hb; rewrite excess_diag by exact One.
    apply shared_profile_diag; try assumption; [apply one_at_most_exp|].
    rewrite (share_of_response _ _ _ F); destruct (response_found _ _ _ F) as (P & K & _).
    pose proof (le_INR _ _ K) as L; change (INR 2) with (1 + 1) in L.
    assert (0 < (1 - Q2R truth) / (INR (Pos.to_nat answers) - 1)) by (apply Rdiv_lt_0_compat; lra).
    lra.
  - destruct (sampled_laplace_found _ _ _ _ _ _ F) as (_ & Fits & _).
    pose proof (drawn_share many drawn d Fits) as Share; unfold hidden_below; cbv zeta; set (moves := _ * _).
    assert (P : forall u v, 0 <= u -> 0 <= v -> plus_part (u - v) <= laplace_at moves u v)
      by (intros; apply laplace_profile_ge; try assumption; left; apply exp_pos).
    revert Share; generalize (Q2R (share_drawn many drawn)) as part; intros part Share.
    destruct drawn as [rate|size records|size records]; [| |exact I];
      intros a b Ha Hb; rewrite excess_diag by exact One.
    + apply (sampled_diag with_first); try assumption; lra.
    + apply replaced_diag; try assumption; lra.
  - intros a b Ha Hb; rewrite excess_diag by exact One.
    apply shared_profile_diag; try assumption; [|lra].
    rewrite <- exp_0; apply exp_le, Rmult_le_pos; [pose proof (Pos_real many); lra|apply cost_nonneg].
  - assert (Moves : sample_moves squared rate = true)
      by (cbn [whole_ratio] in Plain; destruct (sample_moves squared rate); [reflexivity|discriminate Plain]).
    destruct (mixture_share _ _ _ _ _ _ _ _ F Moves) as [Share Not]; apply Normal; [exact Share|].
    intros size records E; destruct (Not size records E).
  - destruct (accumulated_found _ _ _ _ _ _ _ F) as (_ & _ & Hr & _); apply Normal; [rewrite share_seen; exact Hr|].
    intros size records E; destruct (seen_is_no_copy _ _ _ _ E).
Qed.

Lemma root_odds_sound p i moved squared d b e :
  (0 <= p)%Z -> mechanism_at c i = Some (PureStep moved squared d b) ->
  root_odds p (further many squared / (b * b)) = Some e -> exp (far * cost i) <= IZR e / unit_of p.
Proof.
  intros Hp F; unfold root_odds; cbv zeta; set (reach := LaplaceLoss.root_above p _).
  destruct (_ && _)%bool eqn:G; [|discriminate].
  destruct (exp_of_rational p reach) as [[l u]|] eqn:Ex; [|discriminate]; intros H; injection H as <-.
  apply exp_of_rational_sound in Ex as [_ Ex]; [|exact Hp]; apply Rle_trans with (2 := Ex), exp_le.
  apply (far_root_at_most many i moved squared d b); auto.
Qed.

Lemma losses_sound i m w bits step dense tail l l' :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step -> mechanism_at c i = Some m ->
  losses_of many (share i) m w bits step dense tail = Some (l, l') -> forall with_first : bool,
  let k := if with_first then l else l' in
  sound_list k /\ bounds_step with_first i (stands_for (Q2R step) (unit_of w) k).
Proof.
  intros Hw Hb Hstep F E with_first k; assert (Pu : 0 < unit_of w) by (apply unit_pos, Hw).
  assert (Twice : forall one, twice one = Some (l, l') -> one = Some k).
  { intros [one|]; [|discriminate]; intros H; injection H as <- <-; unfold k.
    destruct with_first; reflexivity. }
  assert (Bound : forall A (o : list A) p q, distribution o p -> distribution o q ->
            apart with_first i o p q ->
            sound_list k /\ below_profile o p q (profile (stands_for (Q2R step) (unit_of w) k))).
  { unfold losses_of in E; destruct (whole_ratio many m) as [|] eqn:Ew; [discriminate E|].
    intros A o p q Dp Dq; unfold apart, lossless; fold (mechanism_at c i); rewrite F, Ew; unfold beside_normal; rewrite F.
    assert (Normal : forall x ratio mu, 0 < Q2R (share_met x) <= 1 ->
              (forall size rate, x = Copied size rate -> 0 < Q2R rate < 1) ->
              (forall rate group, x = Gathered rate group -> 0 < Q2R rate < 1) ->
              0 < Q2R ratio -> sqrt (Q2R ratio) = mu -> contrasted with_first x mu o p q ->
              contrast_losses x w bits ratio step dense tail = Some (l, l') ->
              sound_list k /\ below_profile o p q (profile (stands_for (Q2R step) (unit_of w) k))).
    { intros x ratio mu Hr Many Part Hm Eroot W E'.
      unfold contrast_losses in E'; cbv zeta in E'.
      destruct x as [rate|part group|part group|rate group|size rate|rate group]; cbn [contrasted share_met] in *.
      - pose proof (step_losses_sound w bits _ _ step Hw Hb Hstep Hm Hr _ _ _ _ E' A o p q Dp
                      (proj1 Dq)) as [S1 S2].
        rewrite Eroot in S1, S2; unfold k; destruct with_first; [apply S1, W|apply S2, W].
      - assert (Pf : 0 < Q2R (further group ratio)).
        { pose proof (Pos_real group); unfold further; rewrite square_times; apply Rmult_lt_0_compat; [nra|exact Hm]. }
        rewrite <- Eroot, <- (further_root group) in W by lra.
        apply (batch_losses_sound w bits _ _ step Hw Hb Hstep Pf Hr _ _ _ (Twice _ E') A o p q Dp Dq W).
      - assert (Pf : 0 < Q2R (further group ratio)).
        { pose proof (Pos_real group); unfold further; rewrite square_times; apply Rmult_lt_0_compat; [nra|exact Hm]. }
        rewrite <- Eroot, <- (further_root group) in W by lra.
        apply (told_losses_sound w bits _ _ step _ _ _ Hw Hb Hstep Pf Hr (Twice _ E') A o p q Dp Dq W).
      - assert (Pf : 0 < Q2R (further group ratio)).
        { pose proof (Pos_real group); unfold further; rewrite square_times; apply Rmult_lt_0_compat; [nra|exact Hm]. }
        cbv zeta in W; rewrite <- Eroot, <- (further_root group) in W by lra.
        apply (replaced_losses_sound w bits _ _ step _ _ _ Hw Hb Hstep Pf Hr (Twice _ E') A o p q Dp Dq W).
      - rewrite <- Eroot in W; apply (copies_losses_sound w bits _ size rate step dense tail _ Hw Hb Hm
                                         (Many _ _ eq_refl) Hstep
                                         (Twice _ E') A o p q Dp Dq W).
      - rewrite <- Eroot in W.
        destruct (gathered_losses_sound w bits _ group rate step _ _ _ _ Hw Hb Hm (Part _ _ eq_refl) Hstep E' A o p q Dp Dq)
          as [S1 S2].
        unfold k; destruct with_first; [apply S1, W|apply S2, W]. }
    assert (Met : forall m' x ratio squared std, mechanism_at c i = Some m' -> contrast_met many m' = Some (x, ratio) ->
              whole_ratio many m' = None -> 0 < Q2R ratio -> 0 <= Q2R squared ->
              contrast_losses x w bits ratio step dense tail = Some (l, l') ->
              ratio = (squared / (std * std))%Q -> 0 < Q2R std ->
              contrasted with_first x (sqrt (Q2R squared) / Q2R std) o p q ->
              sound_list k /\ below_profile o p q (profile (stands_for (Q2R step) (unit_of w) k))).
    { intros m' x ratio squared std F' Em Ew' Pm Sq E' Er Hs W.
      destruct (met_found many i m' x ratio F' Em) as (_ & Share & Many & _).
      assert (Wx : whole_shift x = None).
      { destruct m'; try discriminate Em; cbn [whole_ratio] in Ew'; rewrite Em in Ew';
          (destruct (unmoved _); [discriminate Ew'|]); (destruct (whole_shift x); [discriminate Ew'|reflexivity]). }
      pose proof (root_of_ratio squared std Sq Hs) as Root; rewrite <- Er in Root.
      refine (Normal x ratio (sqrt (Q2R squared) / Q2R std) Share Many _ Pm Root W E').
      intros rate group ->; cbn [whole_shift share_met] in *; unfold guard in Wx.
      destruct (Qle_bool 1 rate) eqn:G; [discriminate Wx|]; apply Qle_bool_R_false in G; rewrite Q2R_number in G; lra. }
    destruct m as [|drawn moved squared d std|moved squared d scale|moved squared d scale|moved squared d std
                  |truth answers|drawn moved squared d scale|moved squared d scale
                  |moved constant e squared d rate std|moved squared d rate samples std| |];
      try discriminate E.
    - destruct (contrast_met many _) as [[x ratio]|] eqn:Em; [|discriminate E].
      destruct (positive_number ratio) eqn:Gq; [|discriminate E]; apply positive_number_R in Gq.
      intros W; destruct (sampled_found _ _ _ _ _ _ F) as (_ & _ & Hs & s & D & Es).
      assert (Sq : 0 <= Q2R squared) by (rewrite <- Es; exact (derived_nonneg r0 d s D)).
      apply (Met _ x ratio squared std F); try assumption; injection Em as <- <-; [reflexivity|exact W].
    - destruct (laplace_found _ _ _ _ _ (or_introl F)) as (_ & B & _ & s & D & Es).
      assert (Sq : 0 <= Q2R squared) by (rewrite <- Es; exact (derived_nonneg r0 d s D)).
      pose proof (further_nonneg many _ Sq) as Sq'.
      assert (Em : Q2R (further many squared / (scale * scale)) = Q2R (further many squared) / (Q2R scale * Q2R scale))
        by (rewrite Q2R_div, Q2R_mult by (rewrite Q2R_mult; nra); reflexivity).
      assert (Hm : 0 <= Q2R (further many squared / (scale * scale)))
        by (rewrite Em; apply Rmult_le_pos; [exact Sq'|left; apply Rinv_0_lt_compat; nra]).
      assert (Root : far * cost i <= sqrt (Q2R (further many squared / (scale * scale)))).
      { rewrite (laplace_cost_eq _ _ _ _ _ F), Em, sqrt_div by nra; rewrite sqrt_square by lra.
        rewrite (further_root _ _ Sq), INR_positive; unfold Rdiv; lra. }
      intros W; apply (laplace_loss_sound w bits _ step dense o p q (far * cost i) k Hw Hb Hstep Hm (Twice _ E)
                         Root Dp (proj1 Dq) W).
    - destruct (laplace_found _ _ _ _ _ (or_intror (or_introl F))) as (_ & B & _); intros W.
      apply (fun Same => geometric_loss_sound _ (Q2R scale) B Same w bits _ step k o p q Hw Hb Hstep
               (Twice _ E) Dp (proj1 Dq) W); reflexivity.
    - destruct (gaussian_found _ _ _ _ _ (or_intror F)) as (_ & Hs & _); intros W.
      apply (fun Same => discrete_gaussian_loss_sound _ (Q2R std) w bits _ step k o p q Hs Same Hw Hb Hstep
               (Twice _ E) Dp (proj1 Dq) W); reflexivity.
    - intros W; assert (Hp : (0 <= w + bits + SampledLoss.guard)%Z) by (pose proof guard_nonneg; lia).
      pose proof (conj (one_at_most_exp i) (odds_above_sound _ i truth answers Hp F)) as Le.
      apply (odds_loss_sound w bits _ (share_of truth answers) step o p q (exp (cost i)) k Hw Hb Hstep
               (Twice _ E) Le Dp (proj1 Dq) W).
    - destruct (sampled_laplace_found _ _ _ _ _ _ F) as (-> & Fits & _ & B & s & D & Es).
      assert (Sq : 0 <= Q2R squared) by (rewrite <- Es; exact (derived_nonneg r0 d s D)).
      pose proof (drawn_share many drawn d Fits) as Hr.
      set (ratio := (squared / (scale * scale))%Q) in *.
      assert (Ratio : sqrt (Q2R ratio) = sqrt (Q2R squared) / Q2R scale) by (apply root_of_ratio; assumption).
      assert (Nn : 0 <= Q2R ratio).
      { unfold ratio; rewrite Q2R_div, Q2R_mult by (rewrite Q2R_mult; nra).
        apply Rmult_le_pos; [exact Sq|left; apply Rinv_0_lt_compat; nra]. }
      assert (Root : INR (Pos.to_nat many) * (sqrt (Q2R squared) / Q2R scale) <= sqrt (Q2R (further many ratio)))
        by (rewrite (further_root _ _ Nn), Ratio; apply Rle_refl).
      unfold laplace_sample_losses in E; cbv zeta in E; intros W; unfold hidden_below in W; cbv zeta in W.
      revert Hr E W; generalize (share_drawn many drawn) as part; intros part Hr E W.
      destruct drawn as [rate|size records|size records]; [| |discriminate E].
      + pose proof (laplace_step_losses_sound w bits _ _ step _ Hw Hb Hstep Hr Root _ _ _ _ E A o p q Dp
                      (proj1 Dq)) as [S1 S2].
        unfold k; destruct with_first; [apply S1, W|apply S2, W].
      + apply (laplace_batch_losses_sound w bits _ _ step _ Hw Hb Hstep Hr Root _ _ _ (Twice _ E) A o p q
                 Dp Dq W).
    - destruct (root_odds _ _) as [e|] eqn:Eo; [|discriminate E].
      intros W; assert (Hp : (0 <= w + bits + SampledLoss.guard)%Z) by (pose proof guard_nonneg; lia).
      assert (One' : 1 <= exp (far * cost i)).
      { rewrite <- exp_0; apply exp_le, Rmult_le_pos; [pose proof (Pos_real many); lra|apply cost_nonneg]. }
      pose proof (conj One' (root_odds_sound _ i _ _ _ _ _ Hp F Eo)) as Le.
      apply (odds_loss_sound w bits e 1 step o p q (exp (far * cost i)) k Hw Hb Hstep (Twice _ E) Le Dp (proj1 Dq)).
      rewrite Q2R_number; exact W.
    - assert (Moves : sample_moves squared rate = true)
        by (cbn [whole_ratio] in Ew; destruct (sample_moves squared rate); [reflexivity|discriminate Ew]).
      assert (Gq : 0 < Q2R squared) by (apply andb_true_iff in Moves as [Gq _]; apply positive_number_R, Gq).
      destruct (mixture_found _ _ _ _ _ _ _ _ F) as (_ & _ & Hs & _).
      destruct (mixture_share _ _ _ _ _ _ _ _ F Moves) as [Share Not].
      assert (S1 : Q2R (share_for constant (share i)) < 1)
        by (destruct (shares i); unfold share_for; destruct (positive_number constant); rewrite ?Q2R_number; lra).
      assert (Whole : forall rate' n, contrast_of_mixture rate many moved d = Gathered rate' n -> 0 < Q2R rate' < 1)
        by (intros rate' n; unfold contrast_of_mixture; destruct moved; try destruct (linear_in_records d); discriminate).
      intros W; refine (Normal _ _ _ Share (fun size records E' => match Not size records E' with end) Whole _ eq_refl W E).
      unfold sampled_ratio; set (n := match moved with ZeroOutOne => _ | _ => many end).
      set (part := share_for constant (share i)) in *.
      assert (Rest : Q2R (1 - part) = 1 - Q2R part) by (rewrite Q2R_minus, Q2R_number; reflexivity).
      destruct (share_root n (1 - Q2R part) squared std ltac:(lra) Hs ltac:(lra)) as [_ Root].
      destruct (Root _ Rest) as [-> _]; pose proof (Pos_real n).
      apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; [nra|exact Gq]|apply Rmult_lt_0_compat; nra].
    - destruct (contrast_met many _) as [[x ratio]|] eqn:Em; [|discriminate E].
      destruct (positive_number ratio) eqn:Gq; [|discriminate E]; apply positive_number_R in Gq.
      pose proof Em as Em'; cbn [contrast_met] in Em'; apply guard_some in Em' as [_ Em']; injection Em' as <- <-.
      intros W; destruct (accumulated_found _ _ _ _ _ _ _ F) as (_ & _ & _ & Hs & s & D & Es).
      assert (Sq : 0 <= Q2R squared) by (rewrite <- Es; exact (derived_nonneg r0 d s D)).
      apply (Met _ _ _ squared std F Em); auto. }
  assert (One : distribution [tt] (fun _ : unit => 1)) by (split; [intros u _; lra|simpl; ring]).
  destruct (Bound unit [tt] _ _ One One (apart_diag with_first i)) as [Sk Diag].
  split; [exact Sk|split; [apply stands_proper; assumption|split]].
  - intros a b Ha Hb'; specialize (Diag a b Ha Hb'); rewrite excess_diag in Diag by exact One.
    exact Diag.
  - intros o p q Dp Dq A; apply (Bound message o p q Dp Dq A).
Qed.

(** ** What is computed from all records: mu^2 adds up *)

Lemma mu_squared_above_sound p i :
  (0 <= p)%Z ->
  mu_squared i <= match mu_squared_above table many share p i with Some z => IZR z / unit_of p | None => 0 end.
Proof.
  intros Hp; unfold mu_squared_above, mu_squared; destruct (normal_ratio table many share i); [apply rational_ceiling, Hp|lra].
Qed.

Lemma lossless_plain i : lossless table many i = true -> plain many i /\ single i.
Proof.
  unfold lossless; fold (mechanism_at c i); destruct (mechanism_at c i) as [m|] eqn:F; [|discriminate].
  destruct (whole_ratio many m) as [ratio|] eqn:W; [|discriminate]; intros _.
  split; [exists m, ratio; auto|apply (whole_found many i m ratio F W)].
Qed.

Lemma summed_sound p counts sum others (K : positive -> loss) :
  (0 <= p)%Z -> summed table many share p counts = (sum, others) ->
  (forall mn, In mn others -> single (fst mn)) -> (forall i, plain many i -> K i = nothing) ->
  total (unrolled counts) mu_squared <= IZR sum / unit_of p /\
  alike (all_of K (unrolled counts)) (all_of K (unrolled others)) /\
  (forall i, In i (unrolled counts) -> plain many i \/ In i (unrolled others)).
Proof.
  intros Hp E One Nothing; pose proof (unit_pos p Hp) as P; revert sum others E One.
  induction counts as [|[i n] counts IH]; intros sum others; cbn [summed].
  - intros E; injection E as <- <-; intros _; split; [simpl; unfold Rdiv; lra|].
    split; [apply alike_refl|intros i []].
  - destruct (summed table many share p counts) as [rest found]; intros E One; apply pair_equal_spec in E as [<- <-].
    assert (Alone : single i).
    { destruct (lossless table many i) eqn:Ls; [apply lossless_plain, Ls|apply (One (i, n) (or_introl eq_refl))]. }
    destruct (IH _ _ eq_refl) as (Le & Same & All).
    { intros mn I; apply One; destruct (lossless table many i); [exact I|right; exact I]. }
    rewrite (unrolled_cons _ counts), total_app, (unrolled_alone i n Alone), total_repeat, INR_positive; split; [|split].
    + pose proof (mu_squared_above_sound p i Hp) as Low; pose proof (Pos_real n) as Pn.
      destruct (mu_squared_above table many share p i) as [z|].
      * rewrite plus_IZR, mult_IZR; apply (Rmult_le_compat_l (IZR (Zpos n))) in Low; [|lra]; unfold Rdiv in *; lra.
      * apply (Rmult_le_compat_l (IZR (Zpos n))) in Low; lra.
    + destruct (lossless table many i) eqn:Ls.
      * apply alike_trans with (2 := Same), alike_trans with (1 := all_of_app _ _ _).
        apply alike_trans with (1 := alike_comm _ _), alike_trans with (2 := alike_nothing _).
        apply alike_both_r; induction (Pos.to_nat n) as [|k IHk]; [apply alike_refl|].
        cbn [repeat all_of]; rewrite (Nothing i (proj1 (lossless_plain i Ls))).
        apply alike_trans with (1 := alike_comm _ _), alike_trans with (1 := alike_nothing _), IHk.
      * rewrite (unrolled_cons _ found), (unrolled_alone i n Alone).
        apply alike_trans with (1 := all_of_app _ _ _), alike_trans with (2 := alike_sym _ _ (all_of_app _ _ _)).
        apply alike_both_r, Same.
    + intros j J; apply in_app_or in J as [J|J]; destruct (lossless table many i) eqn:Ls.
      * left; apply repeat_spec in J as ->; apply lossless_plain, Ls.
      * right; rewrite (unrolled_cons _ found), (unrolled_alone i n Alone); apply in_or_app; left; exact J.
      * apply All, J.
      * destruct (All j J) as [Pl|I]; [left; exact Pl|right].
        rewrite (unrolled_cons _ found); apply in_or_app; right; exact I.
Qed.

Lemma followed_larger K m m' a b :
  proper K -> 0 <= m <= m' -> 0 <= a -> 0 <= b -> followed K m a b <= followed K m' a b.
Proof.
  intros [_ N] Hm Ha Hb; apply Rplus_le_compat_l, total_le; intros xm I.
  apply Rmult_le_compat_l; [apply N, I|]; apply profile_larger; auto using shrunk_nonneg.
Qed.

(** On the lattice at last. *)
Lemma normal_losses_sound w bits sum step dense tail normal (with_first : bool) :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step ->
  normal_losses w bits sum step dense tail = Some normal ->
  let side (l : whole_loss * whole_loss) := if with_first then fst l else snd l in
  (forall l, In l normal -> sound_list (side l)) /\
  forall K v a b, proper K -> 0 <= v <= IZR sum / unit_of (w + bits) -> 0 <= a -> 0 <= b ->
  followed K (sqrt v) a b
    <= profile (both (all_of (fun l => stands_for (Q2R step) (unit_of w) (side l)) normal) K) a b.
Proof.
  intros Hw Hb Hs; unfold normal_losses; destruct (Z.leb_spec sum 0) as [L|L].
  - intros E; injection E as <-; split; [intros l []|]; intros K v a b PK Hv Ha Hb'.
    assert (v = 0) as ->.
    { apply IZR_le in L; pose proof (unit_pos (w + bits) ltac:(lia)) as P.
      assert (IZR sum / unit_of (w + bits) <= 0); [|lra].
      apply Rmult_le_reg_r with (1 := P); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
    rewrite sqrt_0, followed_by_nothing; cbn [all_of]; rewrite profile_both_comm, profile_both_nothing; lra.
  - destruct (step_losses _ _ _ _ _ _ _) as [[l l']|] eqn:E; [|discriminate]; intros H; injection H as <-.
    set (k := if with_first then l else l').
    assert (Em : Q2R (Qmake sum (Z.to_pos (2 ^ (w + bits)))) = IZR sum / unit_of (w + bits)).
    { unfold Q2R, unit_of; cbn [Qnum Qden]; rewrite Z2Pos.id by (apply Z.pow_pos_nonneg; lia); reflexivity. }
    pose proof (unit_pos (w + bits) ltac:(lia)) as P; pose proof (unit_pos w Hw) as Pu.
    set (M := IZR sum / unit_of (w + bits)) in *.
    assert (HM : 0 < M) by (apply Rdiv_lt_0_compat; [apply IZR_lt, L|exact P]).
    assert (One : 0 < Q2R 1 <= 1) by (rewrite Q2R_number; lra).
    assert (Below : forall cuts, ascending m_infty cuts ->
              sound_list k /\ below_profile (cells m_infty cuts) (rounded (sqrt M) 1) (rounded 0 1)
                               (profile (stands_for (Q2R step) (unit_of w) k))).
    { intros cuts Hc; pose proof (rounded_unit_below (sqrt M) cuts (sqrt_pos _) Hc) as B.
      pose proof (step_losses_sound w bits _ 1 step Hw Hb Hs ltac:(rewrite Em; exact HM) One _ _ _ _ E _
                    (cells m_infty cuts) (rounded (sqrt M) 1) (rounded 0 1)
                    (rounded_unit_laws _ cuts Hc) (proj1 (rounded_unit_laws _ cuts Hc))) as [S1 S2].
      rewrite Em in S1, S2; unfold k; destruct with_first; [apply S1|apply S2];
        intros a b Ha Hb'; eapply Rle_trans; try (apply B; assumption); right; symmetry.
      - apply (in_order_of_all true); assumption.
      - apply (in_order_of_all false); assumption. }
    destruct (Below [] Logic.I) as [Sk _]; split.
    { intros l2 [<-|[]]; unfold k in Sk; destruct with_first; exact Sk. }
    intros K v a b PK Hv Ha Hb'; assert (Pk : proper (stands_for (Q2R step) (unit_of w) k)) by (apply stands_proper; assumption).
    assert (G : forall a b, 0 <= a -> 0 <= b ->
              gaussian_profile (sqrt M) a b <= profile (stands_for (Q2R step) (unit_of w) k) a b)
      by (apply profile_least; [apply sqrt_pos|intros cuts Hc; apply Below, Hc]).
    apply Rle_trans with (followed K (sqrt M) a b).
    { apply followed_larger; try assumption; split; [apply sqrt_pos|apply sqrt_le_1_alt, Hv]. }
    apply Rle_trans with (profile (both K (stands_for (Q2R step) (unit_of w) k)) a b).
    { apply followed_both; try assumption; apply covers_mass; intros a' b' Ha' Hb''.
      eapply Rle_trans; [apply profile_ge|apply G]; assumption. }
    right; rewrite profile_both_comm; cbn [all_of].
    assert (Ek : (if with_first then fst (l, l') else snd (l, l')) = k) by (destruct with_first; reflexivity).
    rewrite Ek; apply (alike_both _ _ _ _ (alike_sym _ _ (alike_nothing _)) (alike_refl K) a b Ha Hb').
Qed.

Lemma each_loss_found w bits dense tail lattice counts found :
  each_loss table many share w bits dense tail lattice counts = Some found ->
  map fst found = counts /\
  forall i n l, In (i, n, l) found -> losses_at table many share w bits dense tail lattice i = Some l.
Proof.
  revert found; induction counts as [|[i n] counts IH]; intros found; cbn [each_loss].
  - intros H; injection H as <-; split; [reflexivity|intros ? ? ? []].
  - destruct (losses_at table many share w bits dense tail lattice i) as [l|] eqn:L; [|discriminate].
    destruct (each_loss _ _ _ _ _ _ _ _ counts) as [rest|]; [|discriminate]; intros H; injection H as <-.
    destruct (IH rest eq_refl) as [<- All]; split; [reflexivity|].
    intros i' n' l'' [E|I]; [injection E as <- _ <-; exact L|apply (All i' n'), I].
Qed.

Lemma step_at_pos step doublings level : 0 < Q2R step -> 0 < Q2R (step_at step doublings level).
Proof.
  assert (Twice : forall n q, 0 < Q2R q -> 0 < Q2R (Nat.iter n (fun s => 2 * s)%Q q)).
  { intros n q Hq; induction n as [|n IH]; [exact Hq|]; cbn [Nat.iter nat_rect].
    rewrite Q2R_mult, Q2R_number; apply Rmult_lt_0_compat; [lra|exact IH]. }
  revert step doublings; induction level as [|level IH]; intros step doublings Hs; cbn [step_at];
    [|apply IH]; apply Twice, Hs.
Qed.

(** A loss that is met so often. *)
Definition often (k : positive) (L : loss) : loss := all_of (fun _ => L) (repeat tt (Pos.to_nat k)).

Lemma all_of_repeat {I} (K : I -> loss) i k : all_of (fun _ => K i) (repeat tt k) = all_of K (repeat i k).
Proof. induction k as [|k IH]; [reflexivity|]; cbn [repeat all_of]; rewrite IH; reflexivity. Qed.

Lemma often_bounds with_first i k L : bounds_step with_first i L -> bounds_step with_first i (often k L).
Proof.
  intros (P & C & B).
  split; [apply all_of_proper; auto|split; [apply covers_all_of; auto|]].
  intros l p q Dp Dq A a b Ha Hb; eapply Rle_trans; [apply (B l p q Dp Dq A a b Ha Hb)|].
  pose proof (all_of_more (fun _ : unit => L) [tt] (repeat tt (pred (Pos.to_nat k)))
                (fun _ _ => conj P C) a b Ha Hb) as M.
  unfold often; replace (Pos.to_nat k) with (S (pred (Pos.to_nat k))) by (pose proof (Pos2Nat.is_pos k); lia).
  eapply Rle_trans; [|exact M]; right; symmetry; apply alike_nothing; assumption.
Qed.

Lemma composition_indistinct parts steps step doublings dense digits cut delta eps :
  steps_in table parts = Some steps -> 0 < Q2R step ->
  composition_at_most table many share steps step doublings dense digits cut delta eps = true ->
  indistinct many party (unrolled (canonical (map fst parts))) (Q2R eps) (Q2R delta).
Proof.
  intros St Gs G; apply (losses_indistinct many share shares).
  apply steps_in_unrolled in St.
  unfold composition_at_most in G; cbv zeta in G.
  set (w := mass_bits digits) in *; set (bits := working_bits w step) in *.
  assert (Hw : (0 <= w)%Z).
  { unfold w, mass_bits; pose proof (Z.log2_nonneg (10 ^ Zpos digits)); lia. }
  assert (Hb : (0 <= bits)%Z) by (unfold bits, working_bits; lia).
  assert (Pu : 0 < unit_of w) by (apply unit_pos, Hw).
  destruct (summed table many share (w + bits) (canonical (map fst steps))) as [sum counts] eqn:Su.
  set (fuel := (_ + _ + _ + 2)%nat) in *.
  set (lattice := fun i => step_at step doublings (level_of steps i)) in *.
  set (tail := Z.max 1 _) in *; set (last := step_at step doublings (normal_level table many share steps)) in *.
  destruct (normal_losses w bits sum last (Zpos dense) tail) as [normal|] eqn:N; [|discriminate].
  destruct (each_loss table many share w bits (Zpos dense) tail lattice counts) as [found|] eqn:E; [|destruct normal; discriminate].
  destruct (each_loss_found _ _ _ _ _ _ _ E) as [Counts Found].
  intros with_first; set (side := fun l : whole_loss * whole_loss => if with_first then fst l else snd l).
  set (entry_of := fun found : positive * positive * (whole_loss * whole_loss) =>
    let '(i, n, losses) := found in
    Entry (level_of steps i) (lattice i) (side losses) (n * answers_met table many i)).
  set (normal_entry := fun l => Entry (normal_level table many share steps) last (side l) 1).
  set (entries := map normal_entry normal ++ map entry_of found).
  assert (D : entries = [] /\ (Qle_bool 0 eps && Qle_bool 0 delta)%bool = true \/
              match LossComposition.composed w fuel (cut * 2 ^ w / 10 ^ Zpos digits)%Z step
                      doublings 0 entries [] with
              | Some (step', k') => loss_delta_at_most w bits step' k' eps delta
              | None => false
              end = true).
  { destruct normal as [|one normal], found as [|another found]; [left; split; [reflexivity|exact G]|right..];
      (apply andb_true_iff in G; unfold entries, entry_of, normal_entry, side; destruct with_first; apply G). }
  clear G; set (K := fun i =>
    match losses_at table many share w bits (Zpos dense) tail lattice i with
    | Some l => often (answers_met table many i) (stands_for (Q2R (lattice i)) (unit_of w) (side l))
    | None => nothing
    end).
  (* each step is bounded on the lattice of its level *)
  assert (Sound : forall i n l, In (i, n, l) found ->
            single i /\ sound_list (side l) /\ bounds_step with_first i (K i) /\
            K i = often (answers_met table many i) (stands_for (Q2R (lattice i)) (unit_of w) (side l))).
  { intros i n l I; pose proof (Found i n l I) as L; unfold K; rewrite L.
    unfold losses_at in L; fold (mechanism_at c i) in L.
    destruct (mechanism_at c i) as [m|] eqn:F; [|discriminate]; destruct l as [l l'].
    destruct (losses_sound i m w bits (lattice i) _ _ l l' Hw Hb (step_at_pos _ _ _ Gs) F L with_first)
      as [Sk Bk].
    split; [refine (alone i m F _ _); [intros inner n' ->|intros parts' ->]; discriminate L|].
    split; [exact Sk|split; [|reflexivity]].
    apply often_bounds, Bk. }
  assert (Listed : forall mn, In mn counts -> exists l, In (fst mn, snd mn, l) found).
  { intros mn I; rewrite <- Counts in I; apply in_map_iff in I as ([[i n] l] & <- & I); exists l; exact I. }
  (* those that are summed have none *)
  assert (Plain : forall i, plain many i -> K i = nothing).
  { intros i (m & ratio & F & W); unfold K, losses_at; fold (mechanism_at c i); rewrite F.
    unfold losses_of; rewrite W; reflexivity. }
  assert (Alone : forall mn, In mn counts -> single (fst mn)).
  { intros mn I; destruct (Listed mn I) as [l J]; apply (Sound _ _ _ J). }
  destruct (summed_sound (w + bits) _ _ _ K ltac:(lia) Su Alone Plain) as (Spent & Same & All).
  pose proof (unrolled_canonical party (map fst parts)) as P.
  rewrite St in P; rewrite <- (unrolled_canonical party (map fst steps)) in P.
  set (listed := unrolled (canonical (map fst steps))) in *.
  assert (Bounds : forall i, In i listed -> bounds_step with_first i (K i)).
  { intros i I; destruct (All i I) as [Pl|J].
    - rewrite (Plain i Pl); split; [apply nothing_proper|split].
      + intros a b _ _; rewrite profile_nothing; apply Rle_refl.
      + destruct Pl as (m & ratio & F & W); intros l p q _ _; unfold apart, lossless; fold (mechanism_at c i); rewrite F, W.
        intros B a b Ha Hb'; rewrite profile_nothing; apply B; assumption.
    - apply in_flat_map in J as (mn & J & J'); destruct (Listed mn J) as [l L].
      destruct (Sound _ _ _ L) as (One & _ & B & _).
      rewrite (One party), concat_singles in J'; apply repeat_spec in J' as ->; exact B. }
  assert (Proper : proper (all_of K listed)) by (apply all_of_proper; intros i I; apply (Bounds i I)).
  assert (Waiting : alike (all_of K (unrolled counts)) (all_waiting w (map entry_of found))).
  { rewrite <- Counts; clear - Sound; induction found as [|[[i n] l] found IH];
      [apply alike_refl|].
    destruct (Sound i n l (or_introl eq_refl)) as (One & _ & _ & Same).
    cbn [map fst]; rewrite unrolled_cons, (unrolled_alone i n One).
    apply alike_trans with (1 := all_of_app _ _ _); apply alike_both.
    - unfold entry_of, entered; cbn [expanded entry_loss how_often on_step]; rewrite app_nil_r.
      rewrite Pos2Nat.inj_mul; clear - Same; induction (Pos.to_nat n) as [|k IHk]; [apply alike_refl|].
      cbn [repeat all_of Nat.mul]; rewrite repeat_app, Same.
      apply alike_trans with (2 := alike_sym _ _ (all_of_app _ _ _)).
      unfold often; rewrite (all_of_repeat _ (side l)); apply alike_both_r, IHk.
    - apply IH; intros i' n' l' I; apply (Sound i' n' l'); right; exact I. }
  assert (Normal : alike (all_of (fun l => stands_for (Q2R last) (unit_of w) (side l)) normal)
                     (all_waiting w (map normal_entry normal))).
  { clear; induction normal as [|l normal IH]; [apply alike_refl|]; cbn [all_of map].
    apply alike_both; [|exact IH]; apply alike_sym, alike_nothing. }
  destruct (normal_losses_sound w bits sum last (Zpos dense) tail normal with_first Hw Hb
              (step_at_pos _ _ _ Gs) N) as [Sn Bn]; fold side in Sn.
  exists K; split; [intros i I; apply Bounds, (Permutation_in _ P), I|].
  assert (Se : sound_entries entries).
  { intros e I; apply in_app_or in I as [I|I]; apply in_map_iff in I as (l & <- & I); [apply Sn, I|].
    destruct l as [[i n] l]; apply (Sound i n l I). }
  assert (One : 0 <= 1) by lra; pose proof (Rlt_le _ _ (exp_pos (Q2R eps))) as Pe.
  assert (Small : profile (all_waiting w entries) 1 (exp (Q2R eps)) <= Q2R delta).
  { destruct D as [[None_moves G]|D].
    - rewrite None_moves; cbn [all_waiting all_of]; rewrite profile_nothing.
      apply andb_true_iff in G as [Ge Gd]; apply Qle_bool_R in Ge, Gd; rewrite Q2R_number in Ge, Gd.
      pose proof (exp_le _ _ Ge) as Low; rewrite exp_0 in Low; rewrite plus_part_0 by lra; exact Gd.
    - destruct (LossComposition.composed w fuel _ step doublings 0 _ []) as [[step' k']|] eqn:C; [|discriminate].
      destruct (composed_sound w Hw _ _ _ _ _ _ [] _ _ Gs (fun l I => match I with end) Se C) as (Hs' & Sk' & Le).
      apply Rle_trans with (profile (stands_for (Q2R step') (unit_of w) k') 1 (exp (Q2R eps)));
        [|exact (loss_delta_sound w bits step' k' eps Hw Hb Hs' Sk' delta D)].
      eapply Rle_trans; [|apply Le; assumption]; rewrite profile_both_comm; cbn [expanded all_of].
      rewrite profile_both_nothing; apply Rle_refl. }
  assert (Spent0 : 0 <= total listed mu_squared)
    by (apply total_nonneg; intros; apply (mu_squared_nonneg many share shares)).
  eapply Rle_trans; [|exact Small]; unfold together.
  rewrite (total_permutation _ _ _ P).
  eapply Rle_trans; [apply (followed_at_most _ (all_of K listed)); try assumption; try apply sqrt_pos|].
  - apply all_of_proper; intros i I; apply (Bounds i), (Permutation_in _ P), I.
  - apply alike_at_most, all_of_permutation, P.
  - eapply Rle_trans; [apply (Bn (all_of K listed)); try assumption; split; assumption|].
    right; unfold entries.
    assert (Entered : alike (both (all_of (fun l => stands_for (Q2R last) (unit_of w) (side l)) normal)
                               (all_of K listed))
                        (all_waiting w (map normal_entry normal ++ map entry_of found))).
    { apply alike_trans with (2 := alike_sym _ _ (all_of_app _ _ _)), alike_both; [exact Normal|].
      apply alike_trans with (1 := Same), Waiting. }
    apply Entered; assumption.
Qed.

Strategy transparent [step_losses batch_losses told_losses replaced_losses copies_losses gathered_losses laplace_loss geometric_loss discrete_gaussian_loss odds_loss LossComposition.composed loss_delta_at_most].

(** ** Laplace noise alone *)

(** A shift in scales of the noise, rounded up. *)
Definition shift_above (p : Z) (i : positive) : R :=
  match mechanism_at c i with
  | Some (LaplaceStep _ squared _ scale) => Q2R (LaplaceLoss.root_above p (further many squared / (scale * scale)))
  | _ => 0
  end.

Lemma laplace_groups_sound p counts groups :
  (0 <= p)%Z -> laplace_groups table many p counts = Some groups ->
  map (shift_above p) (unrolled counts) = group_shifts p groups /\
  forall i, In i (unrolled counts) ->
  (exists moved squared d scale, mechanism_at c i = Some (LaplaceStep moved squared d scale)) /\
  far * cost i <= shift_above p i.
Proof.
  intros Hp; revert groups; induction counts as [|[i n] counts IH]; intros groups; cbn [laplace_groups].
  - intros H; injection H as <-; split; [reflexivity|intros i []].
  - fold (mechanism_at c i); destruct (mechanism_at c i) as [[| |moved squared d scale| | | | | | | | |]|] eqn:F;
      try discriminate.
    destruct (laplace_groups table many p counts) as [found|]; [|discriminate]; cbv zeta.
    set (ratio := (further many squared / (scale * scale))%Q); set (reach := LaplaceLoss.root_above p ratio).
    destruct (_ && _)%bool eqn:G; [|discriminate]; intros H; injection H as <-.
    rewrite !andb_true_iff in G; destruct G as [[_ G0] G1]; apply Qle_bool_R in G0, G1.
    destruct (IH _ eq_refl) as [Same All].
    assert (One : single i) by (refine (alone i _ F _ _); discriminate).
    assert (Shift : shift_above p i = Q2R reach) by (unfold shift_above; rewrite F; reflexivity).
    assert (Far : Q2R reach = IZR (Qnum reach) / unit_of p).
    { unfold Q2R, unit_of; subst reach; unfold LaplaceLoss.root_above; cbn [Qnum Qden].
      rewrite Z2Pos.id by (apply Z.pow_pos_nonneg; lia); reflexivity. }
    assert (Low : far * cost i <= shift_above p i).
    { destruct (laplace_found _ _ _ _ _ (or_introl F)) as (_ & B & _ & s & D & Es).
      assert (Sq : 0 <= Q2R squared) by (rewrite <- Es; exact (derived_nonneg r0 d s D)).
      pose proof (further_nonneg many _ Sq) as Sq'.
      rewrite Shift, (laplace_cost_eq _ _ _ _ _ F).
      replace (far * (sqrt (Q2R squared) / Q2R scale)) with (sqrt (Q2R (further many squared)) / Q2R scale)
        by (rewrite (further_root _ _ Sq), INR_positive; unfold Rdiv; ring).
      rewrite Q2R_number in G0; rewrite Q2R_mult in G1; unfold ratio in G1.
      rewrite Q2R_div, Q2R_mult in G1 by (rewrite Q2R_mult; nra).
      rewrite <- (sqrt_square (Q2R scale)) by lra; rewrite <- sqrt_div by nra.
      rewrite <- (sqrt_square (Q2R reach)) by exact G0; apply sqrt_le_1_alt, G1. }
    rewrite unrolled_cons, (unrolled_alone i n One), map_app, Same; split.
    + transitivity (repeat (shift_above p i) (Pos.to_nat n) ++ group_shifts p found).
      * f_equal; induction (Pos.to_nat n) as [|k IHk]; cbn [repeat map]; [reflexivity|rewrite IHk; reflexivity].
      * rewrite Shift, Far; reflexivity.
    + intros i' I'; apply in_app_or in I' as [I'|I']; [|apply All, I'].
      apply repeat_spec in I' as ->; split; [exists moved, squared, d, scale; exact F|exact Low].
Qed.

Lemma laplace_profile_larger k k' a b : k' <= k -> laplace_profile k a b <= laplace_profile k' a b.
Proof.
  intros H; apply Rplus_le_compat_l, Ropp_le_contravar, common_part_le_r, H.
Qed.

Lemma laplace_indistinct parts steps delta eps :
  steps_in table (map (fun mn => (mn, O)) parts) = Some steps ->
  laplace_at_most table many (canonical (map fst steps)) delta eps = true ->
  indistinct many party (unrolled (canonical parts)) (Q2R eps) (Q2R delta).
Proof.
  intros St G.
  apply steps_in_unrolled in St; rewrite map_map in St; cbn [fst] in St; rewrite map_id in St.
  unfold laplace_at_most in G; destruct (laplace_groups table many 8 _) as [rough|]; [|discriminate].
  cbv zeta in G; set (p := bits_of_shifts rough delta) in *.
  set (counts := canonical (map fst steps)) in *.
  destruct (laplace_groups table many p counts) as [groups|] eqn:Gr; [|discriminate].
  apply andb_true_iff in G as [_ G].
  assert (Hp : (0 <= p)%Z) by (unfold p, bits_of_shifts; lia).
  destruct (laplace_groups_sound p counts groups Hp Gr) as [Same All].
  apply laplace_delta_sound in G; [|exact Hp].
  pose proof (rational_floor p eps Hp) as Low; set (point := IZR _ / unit_of p) in *.
  apply indistinct_weaken with (1 := Low); intros x y extra event [Axy Same'] P.
  pose proof (with_part_steps party _ x y (at_once_steps null r0 many _ _ Axy) Same') as Sxy.
  assert (P' : Permutation (allowed c party ++ extra) (unrolled counts)).
  { rewrite P, unrolled_canonical, St; unfold counts; symmetry; apply unrolled_canonical. }
  apply (loss_dp _ _ _ (composed_profile (group_shifts p groups))); [|exact G]; rewrite <- Same.
  apply (laplace_filter Pos.eq_dec (next_messages r) (next_law r x) (next_law r y)
           (fun h => laws x h) (fun h => laws y h)
           (fun h => if reads r h party then Some (mechanism_of h) else None)).
  - intros h E; destruct (reads r h party) eqn:R; [discriminate|].
    intros m I; apply (unread_same (Pos.to_nat many) h party); assumption.
  - intros i I; eapply Rle_trans; [|apply (All i I)].
    pose proof (Pos_real many); apply Rmult_le_pos; [lra|apply cost_nonneg].
  - intros h i E I; destruct (reads r h party) eqn:R; [injection E as <-|discriminate].
    destruct (All _ I) as [(moved & squared & d & scale & F) Le].
    intros a b Ha Hb; eapply Rle_trans; [apply (laplace_below many h party x y _ _ _ _ (own_round h party _ F R) F R Sxy a b Ha Hb)|].
    apply laplace_profile_larger, exp_le; lra.
  - intros h Ih; destruct (steps_are_allowed null c r run_satisfies party h Ih) as [rest Q].
    exists (rest ++ extra); rewrite taken_met, app_assoc, Q; exact P'.
Qed.

End OfParty.

(** To everybody, by its steps. *)
Lemma approx_dp_valid e k delta eps :
  (forall j, indistinct k j (unrolled j e) (Q2R eps) (Q2R delta)) ->
  valid (Part e (Claim r0 k (ApproxDp delta eps))).
Proof.
  intros I; destruct (unit_of_own k (ApproxDp delta eps)) as [One Known].
  split; [exact Known|intros j; rewrite One; apply I].
Qed.

Lemma split_of_within partial : forallb (fun ms => probability (snd ms)) partial = true ->
  forall i, 0 < Q2R (split_of table partial i) < 1.
Proof.
  induction partial as [|[m q] rest IH]; cbn [forallb split_of snd]; intros G i.
  - replace (Q2R (1 # 2)) with (/ 2) by (unfold Q2R; simpl; lra); lra.
  - apply andb_true_iff in G as [Pq G]; specialize (IH G i).
    destruct (repeated_step table m) as [[inner n]|]; [|exact IH]; destruct (Pos.eqb i inner); [|exact IH].
    apply andb_true_iff in Pq as [P0 P1]; apply positive_number_R in P0.
    apply negb_true_iff, Qle_bool_R_false in P1; rewrite Q2R_number in P1; lra.
Qed.

Lemma privacy_loss_valid parts partial group step doublings dense digits cut delta eps j :
  privacy_loss table r0 parts partial group step doublings dense digits cut delta eps = Some j -> valid j.
Proof.
  unfold privacy_loss; destruct (steps_in table parts) as [steps|] eqn:St; [|discriminate].
  intros H; apply guard_some in H as [G <-]; rewrite !andb_true_iff in G.
  destruct G as [[[Gs _] Shares] G]; apply positive_number_R in Gs; apply approx_dp_valid; intros j.
  apply (composition_indistinct _ _ _ (split_of_within _ Shares) _ _ _ _ _ _ _ _ _ St Gs G).
Qed.

Lemma laplace_losses_valid parts group delta eps j :
  laplace_losses table r0 parts group delta eps = Some j -> valid j.
Proof.
  unfold laplace_losses; destruct (steps_in table _) as [steps|] eqn:St; [|discriminate].
  intros H; apply guard_some in H as [G <-]; apply andb_true_iff in G as [_ G].
  apply approx_dp_valid; intros j; apply (laplace_indistinct _ _ _ _ _ _ St G).
Qed.

Lemma of_parts_valid rule premises j :
  (forall i, In i premises -> valid i) ->
  of_parts table r0 (views (events c)) (views_apart table (events c)) (fun kind => forallb (pays_in kind) (mechanisms c)) rule premises = Some j ->
  valid j.
Proof.
  intros V H;
    destruct rule as [m|m|m|m|m|m eps|m eps|m eps|m eps|m eps|m eps|m order eps|m order eps|counts|m|m| |a| |a|size| |order|delta|delta eps|delta eps
                     |parts step doublings dense digits cut delta eps|parts delta eps]; cbn [of_parts] in H.
  - destruct premises; [|discriminate]; apply leaf_valid with (kind := Gdp 0) (3 := H); [reflexivity|].
    intros step a F E; destruct (gaussian_leaf m a step F (or_introl E)) as (One & W & _).
    split; [exact One|intros j'; cbn [within cost_of_notion total]; lra].
  - destruct premises; [|discriminate]; apply leaf_valid with (kind := Zcdp 0) (3 := H); [reflexivity|].
    intros step a F E; destruct (gaussian_leaf m a step F (or_introl E)) as (One & _ & W).
    split; [exact One|intros j'; apply (zcdp_of_half _ _ _ _ step eq_refl F); [destruct step; try discriminate E; reflexivity|lra]].
  - destruct premises; [|discriminate]; apply leaf_valid with (kind := Zcdp 0) (3 := H); [reflexivity|].
    intros step a F E; destruct (laplace_leaf m a step F (or_introl E)) as (One & W).
    split; [exact One|intros j'; apply (zcdp_of_half _ _ _ _ step eq_refl F); [destruct step; try discriminate E; reflexivity|exact W]].
  - destruct premises; [|discriminate]; apply leaf_valid with (kind := Zcdp 0) (3 := H); [reflexivity|].
    intros step a F E; destruct (laplace_leaf m a step F (or_intror E)) as (One & W).
    split; [exact One|intros j'; apply (zcdp_of_half _ _ _ _ step eq_refl F); [destruct step; try discriminate E; reflexivity|exact W]].
  - destruct premises; [|discriminate]; apply leaf_valid with (kind := Zcdp 0) (3 := H); [reflexivity|].
    intros step a F E; destruct (gaussian_leaf m a step F (or_intror E)) as (One & _ & W).
    split; [exact One|intros j'; apply (zcdp_of_half _ _ _ _ step eq_refl F); [destruct step; try discriminate E; reflexivity|lra]].
  - destruct premises; [|discriminate]; apply pure_leaf_valid with (2 := H); intros step.
    apply laplace_cost.
  - destruct premises; [|discriminate]; apply pure_leaf_valid with (2 := H); intros step.
    apply discrete_laplace_cost.
  - destruct premises; [|discriminate]; apply pure_leaf_valid with (2 := H); intros step.
    apply response_cost.
  - destruct premises; [|discriminate]; apply pure_leaf_valid with (2 := H); intros step.
    apply sample_cost.
  - destruct premises; [|discriminate]; apply pure_leaf_valid with (2 := H); intros step.
    apply sample_cost.
  - destruct premises; [|discriminate]; apply pure_leaf_valid with (2 := H); intros step.
    apply pure_step_cost.
  - destruct premises; [|discriminate]; apply renyi_leaf_valid with (2 := H); intros step G F.
    apply (poisson_renyi_cost order eps step m G F).
  - destruct premises; [|discriminate]; apply renyi_leaf_valid with (2 := H); intros step G F.
    apply (batch_renyi_cost order eps step m G F).
  - apply composition_valid with (2 := H), V.
  - apply repeated_valid with (2 := H), V.
  - apply by_party_valid with (2 := H), V.
  - apply all_events_valid with (2 := H), V.
  - destruct premises as [|[e s|s|b s] [|]]; try discriminate.
    destruct (weaken a s) as [s'|] eqn:E; [|discriminate]; injection H as <-.
    apply weaken_part with (2 := E), V; left; reflexivity.
  - destruct premises as [|[e s|s|b s] [|]]; try discriminate; injection H as <-.
    apply V; left; reflexivity.
  - destruct premises; discriminate.
  - destruct premises as [|[e s|s|b s] [|]]; try discriminate.
    destruct (concluded _ s) as [s'|] eqn:E; [|discriminate]; injection H as <-.
    apply grouped_valid with (3 := E); [exact I|apply V; left; reflexivity].
  - destruct premises as [|[e s|s|b s] [|]]; try discriminate.
    destruct (concluded _ s) as [s'|] eqn:E; [|discriminate]; injection H as <-.
    apply grouped_valid with (3 := E); [exact I|apply V; left; reflexivity].
  - destruct premises as [|[e [r' g [a|a|a|o a|o a]]|s|b s] [|]]; try discriminate.
    cbn [concluded] in H; unfold guard in H.
    destruct (Qle_bool order 1) eqn:Ho; [discriminate|]; injection H as <-.
    apply Qle_bool_R_false in Ho; rewrite Q2R_number in Ho.
    destruct (V _ (or_introl eq_refl)) as [Known W].
    split; [exact Known|]; intros j; specialize (W j); split; [exact Ho|].
    cbn [claim_notion cost_of_notion within] in *; rewrite Q2R_mult; apply (W _ Ho).
  - destruct premises; discriminate.
  - destruct premises; discriminate.
  - destruct premises; discriminate.
  - destruct premises; [|discriminate]; apply privacy_loss_valid with (1 := H).
  - destruct premises; [|discriminate]; apply laplace_losses_valid with (1 := H).
Qed.

(** Every rule. Of what a filter lets happen nothing is said here: see [check_filter_sound]. *)
Theorem follows_valid rule premises j :
  (forall i, In i premises -> valid i) ->
  follows table r0 (views (events c)) (views_apart table (events c)) (fun kind => forallb (pays_in kind) (mechanisms c)) rule premises = Some j ->
  valid j.
Proof.
  intros V H; destruct premises as [|[e s|s|b s] [|i premises]];
    try (apply of_parts_valid with (1 := V) (2 := H)).
  - pose proof (V (Whole s) (or_introl eq_refl) : said null (all_transcripts r) (run_law r) s) as V'.
    destruct rule; cbn [follows] in H; try (apply guard_some in H as [_ <-]; exact I);
      (destruct (concluded _ s) as [s'|] eqn:C; [|discriminate]; injection H as <-;
       apply (concluded_said null _ _ run_laws _ s s' V' C)).
  - cbn [follows] in H; destruct (concluded rule s); [injection H as <-; exact I|discriminate].
Qed.

End Run.

End Certificate.

(** ** Steps that nothing of a record reaches *)

Section Unmoved.

Variable c : certificate.

Notation stated := (for_all_steps as_if_drawn c).
Notation plain := (for_all_steps quiet c).

Hypothesis stated_ok : steps_ok stated = true.

Lemma find_map {A B} (f : A -> B) l start i :
  PositiveMap.find i (numbered start (map f l)) = option_map f (PositiveMap.find i (numbered start l)).
Proof.
  revert start; induction l as [|a l IH]; intros start; cbn [map numbered].
  - rewrite !PositiveMap.gempty; reflexivity.
  - destruct (Pos.eq_dec i start) as [->|N]; [rewrite !PositiveMap.gss; reflexivity|].
    rewrite !PositiveMap.gso by assumption; apply IH.
Qed.

Lemma step_found f i : mechanism_at (for_all_steps f c) i = option_map f (mechanism_at c i).
Proof. apply find_map. Qed.

Lemma same_relation : relation_of stated = relation_of plain.
Proof.
  unfold relation_of; cbn [mechanisms for_all_steps]; induction (mechanisms c) as [|m l IH]; [reflexivity|].
  cbn [map]; unfold quiet, as_if_drawn; destruct m; cbn [still with_noise unmoved]; try exact IH;
    repeat (match goal with |- context [if ?b then _ else _] => destruct b end); reflexivity.
Qed.

Lemma quiet_allowed j : allowed plain j = allowed c j.
Proof.
  assert (Rep : repeats plain = repeats c).
  { extensionality i; unfold repeats; rewrite step_found.
    destruct (mechanism_at c i) as [[]|]; try reflexivity; cbn [option_map]; unfold quiet, as_if_drawn;
      repeat (match goal with |- context [if ?b then _ else _] => destruct b end); reflexivity. }
  assert (Held : held_by plain j = held_by c j).
  { extensionality i; unfold held_by; rewrite step_found.
    destruct (mechanism_at c i) as [[]|]; try reflexivity; cbn [option_map]; unfold quiet, as_if_drawn;
      repeat (match goal with |- context [if ?b then _ else _] => destruct b end); reflexivity. }
  unfold allowed, steps_of; rewrite Rep, Held; reflexivity.
Qed.

Lemma still_unmoved m : still m = true -> unmoved m = true.
Proof.
  destruct m; cbn [still unmoved]; try easy; rewrite !andb_true_iff; intros H; try (destruct H as [-> _]; reflexivity).
  destruct H as [[Z S] _]; apply negb_true_iff, orb_false_iff; unfold sample_moves.
  assert (No : forall q, Qeq_bool q 0 = true -> positive_number q = false).
  { intros q E; apply negb_false_iff, Qle_bool_iff; apply Qeq_bool_iff in E; rewrite E; apply Qle_refl. }
  rewrite (No _ Z); split; [reflexivity|]; apply orb_true_iff in S as [S|S]; rewrite (No _ S); [reflexivity|].
  apply andb_false_r.
Qed.

Context {X : Type} (null : X).

Notation adj := (neighbours null (relation_of stated)).

(** What a round says by a law of its row of numbers is a law, and the same of neighbours. *)
Definition unmoved_law (e : execution X) (h : history) : Prop :=
  (forall A (l : list A) law data, (forall row, distribution l (law row)) -> distribution l (said_of e h law data)) /\
  (forall A (law : (nat -> R) -> A -> R) a j x y,
     (forall u v, (forall i, (i < dimension e h)%nat -> u i = v i) -> law u a = law v a) ->
     differ_at adj j x y -> said_of e h law x a = said_of e h law y a).

(** Of all records. *)
Lemma plain_unmoved (e : execution X) h row :
  (forall A (law : (nat -> R) -> A -> R) data, said_of e h law data = law (row data)) -> leaves_unread e h row ->
  (forall j x y, reads e h j = true -> differ_at adj j x y ->
     forall i, (i < dimension e h)%nat -> row x i = row y i) -> unmoved_law e h.
Proof.
  intros Said Unread Same; split; intros A; [intros l law data Laws; rewrite Said; apply Laws|].
  intros law a j x y Rows Dxy; rewrite !Said; destruct (reads e h j) eqn:R; [apply Rows, (Same j); assumption|].
  rewrite (unread_same_but e h row j x y Unread R (proj2 Dxy)); reflexivity.
Qed.

(** Of samples. *)
Lemma samples_unmoved (e : execution X) h :
  (forall A (law : (nat -> R) -> A -> R) data, said_of e h law data =
     on_samples (draws_of (sampled_by e h)) (fun sample => law (value e h sample)) (sampled_parties e h) data) ->
  NoDup (sampled_parties e h) -> (forall j, In j (sampled_parties e h) <-> reads e h j = true) ->
  (forall part, distribution (draws_of (sampled_by e h) part) snd) -> leaves_unread e h (value e h) ->
  sampled_by e h = EachWith 0 \/ (forall j x y, reads e h j = true -> differ_at adj j x y ->
     forall i, (i < dimension e h)%nat -> value e h x i = value e h y i) -> unmoved_law e h.
Proof.
  intros Said U I Draw Unread Same; split; intros A.
  - intros l law data Laws; rewrite Said; apply on_samples_distribution; [exact Draw|intros; apply Laws].
  - intros law a j x y Rows Dxy; rewrite !Said.
    apply (unmoved_samples stated null e h j (value e h) law a x y); try assumption.
    destruct Same as [Nobody|Same]; [left; exact Nobody|right; intros R u v; apply (Same j), R].
Qed.

Lemma drawn_laws (e : execution X) h drawn d :
  scheme_fits stated (drawing drawn) d -> draws_as e h drawn ->
  (forall part, distribution (draws_of (sampled_by e h) part) snd) /\
  (draws_nobody drawn = true -> sampled_by e h = EachWith 0).
Proof.
  unfold drawing, draws_as; destruct drawn as [rate|size records|size records];
    cbn [draws_nobody]; destruct (sampled_by e h) as [q|n k filler|n k filler]; try contradiction; cbn [draws_of].
  - intros Fits ->; destruct (Qeq_bool rate 0) eqn:Z; cbn [scheme_fits] in Fits.
    + apply Q2R_equal in Z; rewrite Q2R_number in Z; rewrite Z; split; [|reflexivity].
      intros part; apply draws_distribution; lra.
    + split; [|discriminate]; intros part; apply draws_distribution; lra.
  - intros [_ Fit] [-> ->]; split; [|discriminate]; intros part; apply batches_distribution, Fit.
  - intros _ [-> ->]; split; [|discriminate]; intros part; apply copies_distribution, Pos2Nat.is_pos.
Qed.

Lemma square_zero squared : Qeq_bool squared 0 = true -> Q2R squared = 0.
Proof. intros Z; apply Q2R_equal in Z; rewrite Q2R_number in Z; exact Z. Qed.

(** A step of which nothing moves, or that draws nobody. *)
Lemma accumulated_unmoved (e : execution X) h j rate std samples squared d s :
  relation_of stated <> ReplaceOne -> 0 <= Q2R rate <= 1 ->
  noise e h = Accumulated (Q2R rate) std samples -> samples_all null e h (relation_of stated) ->
  derived (relation_of stated) d = Some s -> Q2R s = Q2R squared ->
  value_derives null e h (relation_of stated) d -> reads e h j = true ->
  Q2R squared = 0 \/ Q2R rate = 0 ->
  forall A (law : (nat -> R) -> A -> R) a x y,
  (forall u v, (forall i, (i < dimension e h)%nat -> u i = v i) -> law u a = law v a) ->
  differ_at adj j x y -> said_of e h law x a = said_of e h law y a.
Proof.
  intros Not Hr N (U & I & Absent) D Es Read R Zero A law a x y Rows [_ Same]; unfold said_of; rewrite N.
  assert (Copies : same_but j (fun k => copied samples (x k)) (fun k => copied samples (y k)))
    by (intros k Nk; rewrite (Same k Nk); reflexivity).
  destruct Zero as [Z|Z].
  - (* no sample's value moves, whoever is drawn *)
    assert (Any : forall w w', same_but j w w' -> forall i, (i < dimension e h)%nat -> value e h w i = value e h w' i).
    { intros w w' Sw i Hi; rewrite (same_with_part w w' j Sw), <- (with_own_part w j) at 1.
      apply (by_nothing (fun part => value e h (with_part w j part) i)); intros before z after.
      assert (Near : forall part part', neighbours null (relation_of stated) part part' ->
                value e h (with_part w j part) i = value e h (with_part w j part') i).
      { intros part part' Np; apply (part_unmoved stated null e (dimension e h) h j squared d s); try assumption.
        - intros data; apply Read, R.
        - split; [rewrite !with_part_own; exact Np|intros k Nk; rewrite !with_part_other by exact Nk; reflexivity]. }
      destruct (relation_of stated) eqn:Er; [contradiction Not; reflexivity| |apply Near; constructor].
      rewrite (Near (before ++ z :: after) (before ++ null :: after)) by constructor.
      rewrite (Absent eq_refl j w before after R); reflexivity. }
    apply on_samples_alike with (j := j) (near := fun _ _ => True); try assumption; [| |apply I, R].
    + intros g G; rewrite !(mean_constant _ g (g [])); auto using draws_distribution.
    + intros u v Suv _; apply Rows; intros i Hi; apply total_ext; intros t _; apply Any; [|exact Hi].
      intros k Nk; rewrite (Suv k Nk); reflexivity.
  - rewrite Z; apply on_samples_alike with (j := j) (near := eq); try assumption; [| |apply I, R].
    + intros g _; rewrite !mean_of_nobody; reflexivity.
    + intros u v Suv E; replace v with u; [reflexivity|]; extensionality k.
      destruct (Nat.eq_dec k j) as [->|Nk]; [exact E|apply Suv, Nk].
Qed.

Theorem unmoved_step (e : execution X) h i m :
  mechanism_at c i = Some m -> unmoved m = true -> noisy_round null e h (Some (if still m then with_noise m else m)) ->
  unmoved_law e h.
Proof.
  intros F Quiet Round; pose proof (step_found as_if_drawn i) as Fd; rewrite F in Fd; cbn [option_map] in Fd.
  unfold as_if_drawn in Fd; apply own_kind in Round.
  assert (Plain : forall moved squared d s, moved = relation_of stated -> derived (relation_of stated) d = Some s ->
            Q2R s = Q2R squared -> Qeq_bool squared 0 = true -> value_derives null e h moved d ->
            forall j x y, reads e h j = true -> differ_at adj j x y ->
            forall i, (i < dimension e h)%nat -> value e h x i = value e h y i).
  { intros moved squared d s -> D Es Z Read j x y R Dxy.
    apply (part_unmoved stated null e (dimension e h) h j squared d s); auto using square_zero. }
  assert (InL1 : forall moved squared d s, moved = relation_of stated -> derived (relation_of stated) d = Some s ->
            Q2R s = Q2R squared -> Qeq_bool squared 0 = true -> derives_in_l1 null e h moved d ->
            forall j x y, reads e h j = true -> differ_at adj j x y ->
            forall i, (i < dimension e h)%nat -> value e h x i = value e h y i).
  { intros moved squared d s -> D Es Z Read j x y R Dxy.
    apply (unmoved_in_l1 stated null e h j squared d s); auto using square_zero. }
  destruct m as [moved squared d std|drawn moved squared d std|moved squared d b|moved squared d b|moved squared d std
                |truth answers|drawn moved squared d b|moved squared d b|moved constant e0 squared d rate std
                |moved squared d rate samples std| |]; try discriminate Quiet; cbn [unmoved] in Quiet.
  - rewrite Quiet in Fd, Round; cbn [with_noise round_of_kind] in Fd, Round; cbn [still] in Quiet.
    apply andb_true_iff in Quiet as [Z _].
    destruct (gaussian_found stated stated_ok _ _ _ _ _ (or_introl Fd)) as (Em & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & [[[[E Nobody]|(? & E & _)] N]|[E _]] & Read & _ & Unread); try discriminate E.
    injection E as <- <- <- <-; apply (plain_unmoved e h (value e h)); [|exact Unread|].
    + intros A law data; unfold said_of; rewrite N, Nobody; reflexivity.
    + apply (Plain moved squared d s); assumption.
  - assert (Std : exists std', (if still (SampledStep drawn moved squared d std)
                                then with_noise (SampledStep drawn moved squared d std)
                                else SampledStep drawn moved squared d std) = SampledStep drawn moved squared d std')
      by (destruct (still _); eexists; reflexivity).
    destruct Std as [std' Std]; rewrite Std in Fd, Round; cbn [round_of_kind] in Round.
    destruct (sampled_found stated stated_ok _ _ _ _ _ _ Fd) as (Em & Fits & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & [[[[E _]|(? & E & As & U & I & _)] N]|[E _]] & Read & _ & Unread); try discriminate E.
    injection E as <- <- <- <- <-; destruct (drawn_laws e h drawn d Fits As) as [Draw Nobody].
    apply samples_unmoved; try assumption.
    + intros A law data; unfold said_of; rewrite N; reflexivity.
    + apply orb_true_iff in Quiet as [Z|Z]; [right; apply (Plain moved squared d s); assumption|left; exact (Nobody Z)].
  - rewrite Quiet in Fd, Round; cbn [with_noise round_of_kind] in Fd, Round; cbn [still] in Quiet.
    apply andb_true_iff in Quiet as [Z _].
    destruct (laplace_found stated stated_ok _ _ _ _ _ (or_introl Fd)) as (Em & _ & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & [(E & N & Nobody)|[(? & E & _)|(E & _)]] & Read & Unread); try discriminate E.
    injection E as <- <- <- <-; apply (plain_unmoved e h (value e h)); [|exact Unread|].
    + intros A law data; unfold said_of; rewrite N, Nobody; reflexivity.
    + apply (InL1 moved squared d s); assumption.
  - rewrite Quiet in Fd, Round; cbn [with_noise round_of_kind] in Fd, Round; cbn [still] in Quiet.
    apply andb_true_iff in Quiet as [Z _].
    destruct (laplace_found stated stated_ok _ _ _ _ _ (or_intror (or_introl Fd))) as (Em & _ & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & [(E & _)|[(? & E & _)|(E & N & _)]] & Read & Unread); try discriminate E.
    injection E as <- <- <- <-; apply (plain_unmoved e h (value e h)); [|exact Unread|].
    + intros A law data; unfold said_of; rewrite N; reflexivity.
    + apply (InL1 moved squared d s); assumption.
  - rewrite Quiet in Fd, Round; cbn [with_noise round_of_kind] in Fd, Round; cbn [still] in Quiet.
    apply andb_true_iff in Quiet as [Z _].
    destruct (gaussian_found stated stated_ok _ _ _ _ _ (or_intror Fd)) as (Em & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & [[[[E _]|(? & E & _)] _]|(E & N & _)] & Read & _ & Unread); try discriminate E.
    injection E as <- <- <- <-; apply (plain_unmoved e h (value e h)); [|exact Unread|].
    + intros A law data; unfold said_of; rewrite N; reflexivity.
    + apply (Plain moved squared d s); assumption.
  - assert (Scale : exists b', (if still (SampledLaplaceStep drawn moved squared d b)
                                then with_noise (SampledLaplaceStep drawn moved squared d b)
                                else SampledLaplaceStep drawn moved squared d b) = SampledLaplaceStep drawn moved squared d b')
      by (destruct (still _); eexists; reflexivity).
    destruct Scale as [b' Scale]; rewrite Scale in Fd, Round; cbn [round_of_kind] in Round.
    destruct (sampled_laplace_found stated stated_ok _ _ _ _ _ _ Fd) as (Em & Fits & _ & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & [(E & _)|[(? & E & N & As & U & I & _)|(E & _)]] & Read & Unread); try discriminate E.
    injection E as <- <- <- <- <-; destruct (drawn_laws e h drawn d Fits As) as [Draw Nobody].
    apply samples_unmoved; try assumption.
    + intros A law data; unfold said_of; rewrite N; reflexivity.
    + apply orb_true_iff in Quiet as [Z|Z]; [right; apply (InL1 moved squared d s); assumption|left; exact (Nobody Z)].
  - rewrite Quiet in Fd, Round; cbn [with_noise round_of_kind] in Fd, Round; cbn [still] in Quiet.
    apply andb_true_iff in Quiet as [Z _].
    destruct (laplace_found stated stated_ok _ _ _ _ _ (or_intror (or_intror Fd))) as (Em & _ & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & answers & E & N & Law & Possible & Read & Unread); injection E as <- <- <- <-.
    apply (plain_unmoved e h (fun data a => if (a <? answers)%nat then value e h data a else 0)).
    + intros A law data; unfold said_of; rewrite N; reflexivity.
    + intros j data part R; extensionality a; rewrite (Unread j data part R); reflexivity.
    + intros j x y R Dxy a _; destruct (Nat.ltb_spec a answers) as [La|]; [|reflexivity].
      assert (Ia : In a (seq 0 answers)) by (apply in_seq; lia).
      pose proof (proj1 (Law x) a Ia) as Px; pose proof (proj1 (Law y) a Ia) as Py.
      assert (Logs : ln (value e h x a) = ln (value e h y a)).
      { assert (L := part_unmoved stated null e 1 h j squared d s (fun data _ => Q2R 1 * ln (value e h data a)) x y D Es
                       (square_zero _ Z)); rewrite <- Em in L.
        specialize (L (fun data => Read j data a R) R ltac:(rewrite Em; exact Dxy) O ltac:(lia)); cbv beta in L.
        rewrite Q2R_number, !Rmult_1_l in L; exact L. }
      destruct Px as [Px|Px].
      * destruct Py as [Py|Py]; [apply ln_inv; assumption|].
        symmetry in Py; apply (Possible j y x a R) in Py; [lra|].
        rewrite Em; apply (differ_at_sym stated null), Dxy.
      * symmetry in Px; rewrite Px; symmetry; apply (Possible j x y a R); [rewrite Em; exact Dxy|exact Px].
  - assert (Std : exists std', (if still (MixtureStep moved constant e0 squared d rate std)
                                then with_noise (MixtureStep moved constant e0 squared d rate std)
                                else MixtureStep moved constant e0 squared d rate std)
                               = MixtureStep moved constant e0 squared d rate std')
      by (destruct (still _); eexists; reflexivity).
    destruct Std as [std' Std]; rewrite Std in Fd, Round; cbn [round_of_kind] in Round.
    destruct (mixture_found stated stated_ok _ _ _ _ _ _ _ _ Fd) as (Em & Hr & _ & (s & De & Ee) & (t & Dd & Ed)).
    destruct Round as (? & ? & ? & ? & ? & ? & ? & E & N & Samples & Always & Read & _ & Open & Unread).
    injection E as <- <- <- <- <- <- <-; apply negb_true_iff, orb_false_iff in Quiet as [Zc Zs].
    apply positive_number_zero in Zc; pose proof (derived_nonneg _ _ s De) as Pc; pose proof (derived_nonneg _ _ t Dd) as Pd.
    pose proof (fun part => mixture_draws null e h rate moved part Samples Hr) as Draw.
    destruct (unseen_sample null e h rate moved squared Samples Zs (proj1 Hr) ltac:(lra)) as [Nobody|Z0].
    1, 2: destruct Samples as (_ & U & I); split; intros A;
      [intros l law data Laws; unfold said_of; rewrite N; apply on_samples_distribution; [exact Draw|intros; apply Laws]|];
      intros law a j x y Rows Dxy; unfold said_of; rewrite N.
    1, 2: assert (Moved : forall i, (i < dimension e h)%nat -> unsampled e h x i = unsampled e h y i)
        by (destruct (reads e h j) eqn:R;
            [apply (part_unmoved stated null e (dimension e h) h j constant e0 s); try assumption;
               [lra|intros data; rewrite <- Em; apply Always, R]
            |intros i' _; rewrite (unread_same_but e h _ j x y Open R (proj2 Dxy)); reflexivity]).
    1, 2: transitivity (on_samples (draws_of (sampled_by e h)) (fun sample => law (fun i => unsampled e h y i + value e h sample i))
                    (sampled_parties e h) x a);
      [rewrite !on_joint_samples; apply total_ext; intros sw _; f_equal; apply Rows; intros k Hk; rewrite (Moved k Hk); reflexivity|].
    1, 2: apply (unmoved_samples stated null e h j (fun sample i => unsampled e h y i + value e h sample i) law a x y);
      try assumption; try (intros k data part Rk; extensionality n; rewrite (Unread k data part Rk); reflexivity).
    + left; exact Nobody.
    + right; intros R u v Duv k Hk; f_equal.
      apply (part_unmoved stated null e (dimension e h) h j squared d t); try assumption.
      intros data; rewrite <- Em; apply Read, R.
  - assert (Std : exists std', (if still (AccumulatedStep moved squared d rate samples std)
                                then with_noise (AccumulatedStep moved squared d rate samples std)
                                else AccumulatedStep moved squared d rate samples std)
                               = AccumulatedStep moved squared d rate samples std')
      by (destruct (still _); eexists; reflexivity).
    destruct Std as [std' Std]; rewrite Std in Fd, Round; cbn [round_of_kind] in Round.
    destruct (accumulated_found stated stated_ok _ _ _ _ _ _ _ Fd) as (Em & Not & Hr & _ & s & D & Es).
    destruct Round as (? & ? & ? & ? & ? & ? & E & N & Samples & Read & Unread); injection E as <- <- <- <- <- <-.
    assert (Zero : Q2R squared = 0 \/ Q2R rate = 0) by (apply orb_true_iff in Quiet as [Z|Z]; auto using square_zero).
    assert (Rate : 0 <= Q2R rate <= 1).
    { destruct (Qeq_bool rate 0) eqn:Z; [rewrite (square_zero _ Z)|]; lra. }
    rewrite Em in Samples, Read; split; intros A.
    + intros l law data Laws; unfold said_of; rewrite N; apply on_samples_distribution; [|intros; apply Laws].
      intros part; apply draws_distribution, Rate.
    + intros law a j x y Rows Dxy; destruct (reads e h j) eqn:R.
      * apply (accumulated_unmoved e h j rate (Q2R std') (Pos.to_nat samples) squared d s); assumption.
      * unfold said_of; rewrite N, (on_samples_at _ _ _ (fun k => copied _ (x k))), (on_samples_at _ _ _ (fun k => copied _ (y k))).
        apply on_samples_unread with (j := j).
        -- intros J; apply (proj1 (proj2 Samples)) in J; congruence.
        -- intros k Nk; rewrite (proj2 Dxy k Nk); reflexivity.
        -- intros u v Suv _ _ _; rewrite (accumulated_unread e h _ j u v Unread R Suv); reflexivity.
Qed.

Variable r : execution X.

(** The same run, its rounds that nothing reaches as rounds that read nobody. *)
Definition hushed : execution X := {|
  rounds := rounds r;
  next_mechanism := next_mechanism r;
  reads := fun h =>
    match mechanism_at c (next_mechanism r h) with
    | Some m => if unmoved m then fun _ => false else reads r h
    | None => reads r h
    end;
  sampled_parties := sampled_parties r;
  sampled_by := sampled_by r;
  dimension := dimension r;
  value := value r;
  unsampled := unsampled r;
  answer := answer r;
  noise := noise r;
  cuts := cuts r |}.

Lemma met_hushed j h : exists others, Permutation (met hushed j h ++ others) (met r j h).
Proof.
  induction h as [|m h [others IH]]; [exists []; reflexivity|]; cbn [met].
  change (next_mechanism hushed h) with (next_mechanism r h).
  assert (E : reads hushed h j = reads r h j \/ reads hushed h j = false).
  { cbn [reads hushed]; destruct (mechanism_at c _) as [m'|]; [destruct (unmoved m')|]; auto. }
  destruct E as [->| ->]; [exists others; rewrite <- app_assoc, IH; reflexivity|].
  exists ((if reads r h j then [next_mechanism r h] else []) ++ others).
  rewrite Permutation_app_swap_app, IH; reflexivity.
Qed.

(** A row with noise, number by number. *)
Lemma noisy_says h m :
  mechanism_at c (next_mechanism r h) = Some m -> unmoved m = true -> still m = false -> noisy_round null r h (Some m) ->
  exists one : R -> Rbar * Rbar -> R,
  (forall grid v, ascending m_infty grid -> distribution (cells m_infty grid) (one v)) /\
  next_messages r h = map Numbers (vector_outcomes (dimension r h) (cuts r h)) /\
  forall data, next_law r data h
    = of_numbers (said_of r h (fun row => run (fun before => one (row (length before)))) data).
Proof.
  intros F Quiet Noisy Round; pose proof (step_found as_if_drawn (next_mechanism r h)) as Fd; rewrite F in Fd.
  cbn [option_map] in Fd; unfold as_if_drawn in Fd; rewrite Noisy in Fd; apply own_kind in Round.
  assert (Gauss : forall std, 0 < std -> forall grid v, ascending m_infty grid ->
            distribution (cells m_infty grid) (rounded v std)) by (intros; apply rounded_distribution; assumption).
  destruct m as [moved squared d std|drawn moved squared d std|moved squared d b|moved squared d b|moved squared d std
                |truth answers|drawn moved squared d b|moved squared d b|moved constant e0 squared d rate std
                |moved squared d rate samples std| |]; try discriminate Quiet; cbn [unmoved] in Quiet; try congruence;
    cbn [round_of_kind] in Round.
  - destruct (sampled_found stated stated_ok _ _ _ _ _ _ Fd) as (_ & _ & Hs & _).
    destruct Round as (? & ? & ? & ? & [[[[E _]|(? & E & _)] N]|[E _]] & _); try discriminate E; injection E as <- <- <- <- <-.
    exists (fun v => rounded v (Q2R std)); split; [apply Gauss, Hs|].
    unfold next_messages, next_law, said_of; rewrite N; split; reflexivity.
  - destruct (sampled_laplace_found stated stated_ok _ _ _ _ _ _ Fd) as (_ & _ & _ & B & _).
    destruct Round as (? & ? & ? & ? & [(E & _)|[(? & E & N & _)|(E & _)]] & _); try discriminate E; injection E as <- <- <- <- <-.
    exists (fun v => rounded_laplace v (Q2R b)); split; [intros grid v; apply rounded_laplace_distribution, B|].
    unfold next_messages, next_law, said_of; rewrite N; split; reflexivity.
  - destruct (mixture_found stated stated_ok _ _ _ _ _ _ _ _ Fd) as (_ & _ & Hs & _).
    destruct Round as (? & ? & ? & ? & ? & ? & ? & E & N & _); injection E as <- <- <- <- <- <- <-.
    exists (fun v => rounded v (Q2R std)); split; [apply Gauss, Hs|].
    unfold next_messages, next_law, said_of; rewrite N; split; reflexivity.
  - destruct (accumulated_found stated stated_ok _ _ _ _ _ _ _ Fd) as (_ & _ & _ & Hs & _).
    destruct Round as (? & ? & ? & ? & ? & ? & E & N & _); injection E as <- <- <- <- <- <-.
    exists (fun v => rounded v (Q2R std)); split; [apply Gauss, Hs|].
    unfold next_messages, next_law, said_of; rewrite N; split; reflexivity.
Qed.

Lemma unmoved_is_quiet h m :
  (forall before, ascending m_infty (cuts r h before)) ->
  mechanism_at c (next_mechanism r h) = Some m -> unmoved m = true -> round_of null r h (Some m) ->
  quiet_round null (relation_of plain) hushed h.
Proof.
  intros Ascend F Quiet Round; cbn [round_of] in Round.
  assert (Reads : forall j, reads hushed h j = false) by (intros j; cbn [reads hushed]; rewrite F, Quiet; reflexivity).
  rewrite <- same_relation; destruct (still m) eqn:St.
  - destruct Round as (e & answers & law & Noisy & _ & N & Said & Laws & Rows).
    destruct (unmoved_step e h _ m F Quiet) as [Law Same]; [rewrite St; exact Noisy|].
    assert (Told : forall x, next_law hushed x h = of_answers (said_of e h law x))
      by (intros x; unfold next_law; change (noise hushed h) with (noise r h); rewrite N; rewrite <- Said; reflexivity).
    split; [exact Reads|split].
    + intros x; rewrite Told; unfold next_messages; change (noise hushed h) with (noise r h); rewrite N.
      apply answers_distribution, Law, Laws.
    + intros j x y Dxy [cells|a] _; rewrite !Told; [reflexivity|cbn [of_answers]].
      apply (Same _ law a j x y); [intros u v E; rewrite (Rows u v E); reflexivity|exact Dxy].
  - destruct (noisy_says h m F Quiet St Round) as (one & One & Messages & Says).
    destruct (unmoved_step r h _ m F Quiet) as [Law Same]; [rewrite St; exact Round|].
    unfold quiet_round; change (next_messages hushed h) with (next_messages r h); rewrite Messages.
    split; [exact Reads|split].
    + intros x; change (next_law hushed x h) with (next_law r x h); rewrite Says.
      apply numbers_distribution, Law; intros row; apply run_distribution; intros before; apply One, Ascend.
    + intros j x y Dxy m' I; change (next_law hushed) with (next_law r); rewrite !Says.
      apply in_map_iff in I as (cells & <- & I); cbn [of_numbers]; apply (Same _ _ cells j x y); [|exact Dxy].
      intros u v E; apply (run_of_row one); apply transcripts_length in I; rewrite I; exact E.
Qed.

Theorem hushed_behaves : satisfies null c r -> behaves null plain hushed.
Proof.
  intros [Ascend Steps Allowed]; split; [exact Ascend| |].
  - intros h; specialize (Steps h); rewrite step_found.
    change (next_mechanism hushed h) with (next_mechanism r h).
    destruct (mechanism_at c (next_mechanism r h)) as [m|] eqn:F; [|contradiction].
    destruct (unmoved m) eqn:Quiet; [left; apply (unmoved_is_quiet h m); auto|right].
    cbn [option_map]; unfold quiet; rewrite Quiet; split; [intros step E; injection E as <-; exact Quiet|].
    assert (Moves : still m = false) by (destruct (still m) eqn:St; [rewrite (still_unmoved m St) in Quiet; discriminate|reflexivity]).
    cbn [round_of] in Steps; rewrite Moves in Steps.
    assert (E : reads hushed h = reads r h) by (cbn [reads hushed]; rewrite F, Quiet; reflexivity).
    unfold noisy_round, gaussian_round, laplace_round, derives_in_l1, response_round, weighted_round, mixture_round,
      accumulated_round, is_step, is_laplace_step, samples_as, samples_at, samples_all, null_is_absent,
      value_derives, leaves_unread; rewrite E; exact Steps.
  - intros j h I; destruct (Allowed j h I) as [rest P], (met_hushed j h) as [others Q].
    exists (others ++ rest); rewrite quiet_allowed, app_assoc, Q; exact P.
Qed.

End Unmoved.

(** ** Soundness: a checked certificate's claim holds of every run that satisfies its event list. *)
Theorem check_sound (c : certificate) (s : claim) :
  check c = Some s ->
  forall (X : Type) (null : X) (r : execution X), satisfies null c r -> holds null r s.
Proof.
  unfold check, judged; cbv zeta; intros H X null r Sat.
  destruct (_ && _)%bool eqn:Ok; [|discriminate]; apply andb_true_iff in Ok as [Stated Ok].
  destruct (all_nodes _ _ _ _ _ _ _ _ _) as [[e s'|s'|b s']|] eqn:N; try discriminate.
  set (plain := for_all_steps quiet c) in *; set (quietly := hushed c r).
  injection H as ->; apply all_nodes_keep with (P := valid plain null quietly) in N.
  - exact (proj2 N).
  - apply (follows_valid plain Ok null quietly (hushed_behaves c Stated null r Sat)).
  - intros i j E; rewrite PositiveMap.gempty in E; discriminate.
  - intros j E; discriminate.
Qed.

(** The form that a reader asks for: (eps, delta)-DP for one record of one party. *)
Corollary check_dp (c : certificate) (r' : relation) (delta eps : Q) :
  check c = Some (Claim r' 1 (ApproxDp delta eps)) ->
  forall (X : Type) (null : X) (r : execution X), satisfies null c r ->
  dp (one_part (neighbours null r')) (all_transcripts r) (run_law r) (Q2R eps) (Q2R delta).
Proof.
  intros H X null r Sat x y A; apply (check_sound c _ H X null r Sat), one_in_unit, A.
Qed.

(** Of so many records at once, of one party. *)
Corollary check_group_dp (c : certificate) (r' : relation) (size : positive) (delta eps : Q) :
  check c = Some (Claim r' size (ApproxDp delta eps)) ->
  forall (X : Type) (null : X) (r : execution X), satisfies null c r ->
  dp (unit_neighbours null r' size) (all_transcripts r) (run_law r) (Q2R eps) (Q2R delta).
Proof. intros H X null r Sat; exact (check_sound c _ H X null r Sat). Qed.

(** Pure DP, for one record of one party. *)
Corollary check_pure (c : certificate) (r' : relation) (eps : Q) :
  check c = Some (Claim r' 1 (PureDp eps)) ->
  forall (X : Type) (null : X) (r : execution X), satisfies null c r ->
  pure (one_part (neighbours null r')) (all_transcripts r) (run_law r) (Q2R eps).
Proof.
  intros H X null r Sat x y A; apply (check_sound c _ H X null r Sat).
  exists x; split; [reflexivity|exact A].
Qed.
