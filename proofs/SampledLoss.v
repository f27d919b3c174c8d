(** The loss of one Gaussian step on a Poisson sample, in whole numbers: masses at dots whose profile
    is above the true one at every dot (connecting the dots). The masses themselves are only
    proposed; [descend] checks them, and its answer is what is proved. *)

From Coq Require Import Reals QArith Qreals Qround List ZArith Lra Lia Psatz Bool Sorted.
From Dpledger Require Import Sums Finite GaussianIntegral Domination GaussianComposition
  BatchSampling Losses Kronecker LossLists Enclosure LossEnclosures FixedPoint FixedGaussian.
Import ListNotations.
Open Scope Z_scope.

(** A dot, descending from the largest loss: its place, its mass in units of 2^-w, and a bound on
    the profile there in units of 2^-(w + bits). *)
Record dot := Dot { place : Z; weight : Z; height : Z }.

(** [above] is the mass at larger losses; [shrunk] bounds 2^bits times the sum of their masses, each
    times exp(z h - loss), for the place z last seen. *)
Fixpoint descend (bits : Z) (decay : Z -> option Z) (beyond above shrunk z : Z) (dots : list dot) :
  option Z :=
  match dots with
  | [] => Some above
  | d :: rest =>
      if (place d <? z) && (0 <=? weight d) then
        match decay (z - place d) with
        | Some e =>
            let shrunk' := shift_up (shrunk * e) bits in
            if height d <=? (beyond + above) * 2 ^ bits - shrunk'
            then descend bits decay beyond (above + weight d) (shrunk' + weight d * 2 ^ bits)
                   (place d) rest
            else None
        | None => None
        end
      else None
  end.

(** The same masses, one place after the other. *)
Fixpoint fill (z : Z) (ascending : list dot) : list Z :=
  match ascending with
  | [] => []
  | d :: rest => repeat 0 (Z.to_nat (place d - z)) ++ weight d :: fill (place d + 1) rest
  end.

(** Bits that fixed point keeps beyond those that are answered. *)
Definition guard : Z := 16.

Definition decay (bits : Z) (step : Q) (gap : Z) : option Z :=
  let p := (bits + guard)%Z in
  let x := (inject_Z gap * step)%Q in
  match exp_bounds p (- (Qnum x * 2 ^ p / Zpos (Qden x))) with
  | Some (_, e) => Some (shift_up e guard)
  | None => None
  end.

(** The most places of a list: longer ones take too long. *)
Definition most_places : Z := 2 ^ 21.

(** The loss of checked dots. *)
Definition checked (w bits : Z) (step : Q) (beyond : Z) (descending : list dot) :
  option whole_loss :=
  match descending with
  | [] => None
  | top :: _ =>
      match descend bits (decay bits step) beyond 0 0 (place top + 1) descending with
      | Some above =>
          if (0 <=? beyond) && (2 ^ w <=? beyond + above) then
            match rev descending with
            | (bottom :: _) as ascending =>
                if place top - place bottom <=? most_places
                then Some {| first := place bottom; masses := fill (place bottom) ascending;
                             beyond := beyond |}
                else None
            | [] => None
            end
          else None
      | None => None
      end
  end.

(** ** Proposals: nothing here needs to be right *)

(** Slopes of the chords give masses: [grown] is 2^bits exp(loss). *)
Fixpoint proposed (bits full slope : Z) (descending : list (Z * Z * Z)) : list dot :=
  match descending with
  | [] => []
  | (z, grown, f) :: rest =>
      let next :=
        match rest with
        | (_, grown', f') :: _ => (f - f') * 2 ^ bits / Z.max 1 (grown - grown')
        | [] => (f - full) * 2 ^ bits / Z.max 1 grown
        end in
      Dot z (Z.max 0 (shift_up (grown * (slope - next)) (2 * bits))) f
        :: proposed bits full next rest
  end.

Definition loss_from (w bits : Z) (step : Q) (descending : list (Z * Z * Z)) : option whole_loss :=
  match descending with
  | [] => None
  | (_, _, f) :: _ =>
      checked w bits step (Z.max 0 (shift_up f bits) + 2)
        (proposed bits (2 ^ (w + bits)) 0 descending)
  end.

(** ** The dots of a step: about what checker.py chooses *)

(** mu^2 / 2, rounded up, and 1 / (mu sqrt(2 pi)) for that mu, from above. *)
Definition half_above (p : Z) (m : Q) : Z := round_up (Qnum m * 2 ^ p) (2 * Zpos (Qden m)).

Definition scale_above (p half : Z) : option Z :=
  let q := Z.to_pos (p + 64) in
  let s := Mantissa.PtoP q in
  let square := I.mul s (I.mul s (I.fromZ s 4) (I.pi s)) (I.div s (I.fromZ s half) (I.fromZ s (2 ^ p))) in
  upper q (I.div s (I.fromZ s (2 ^ p)) (I.sqrt s square)).

(** Bounds on the profile, in units of 2^-(w + bits): at the place z, and with the two laws changed
    at -z; between them about 2^bits exp(loss). [above] bounds the profile where exp(loss) is between
    two numbers, in units of 2^-(w + bits + guard) all of them. *)
Definition heights (w bits : Z) (above : Z -> Z -> option Z) (step : Q) (z : Z) :
  option (Z * Z * Z) :=
  let p := (w + bits + guard)%Z in
  match exp_of_rational p (inject_Z z * step) with
  | Some (l, u) =>
      match above l u with
      | Some f =>
          let less := (f - 2 ^ p)%Z in
          let g := (2 ^ p + round_up (less * 2 ^ p) (if less <=? 0 then u else l))%Z in
          if (0 <? l)%Z
          then Some (shift_up f guard, Z.shiftr l (p - bits), shift_up g guard)
          else None
      | None => None
      end
  | None => None
  end.

Record known := Known { at_place : Z; grown : Z; removal : Z; addition : Z }.

Definition most_dots : Z := 20000.

Fixpoint walk (fuel : nat) (w bits : Z) (above : Z -> Z -> option Z) (step : Q)
  (dense tail towards z : Z) : option (list known) :=
  match fuel with
  | O => None
  | S fuel' =>
      match heights w bits above step z with
      | Some (f, e, g) =>
          let here := Known z e f g in
          if negb (z =? 0) && ((if 0 <? towards then f else g) <=? tail * 2 ^ bits)
          then Some [here]
          else
            match walk fuel' w bits above step dense tail towards
                    (z + towards * Z.max 1 (Z.abs z / dense)) with
            | Some rest => Some (here :: rest)
            | None => None
            end
      | None => None
      end
  end.

(** With the record against without it. *)
Definition removal_heights (w bits : Z) (m rate : Q) : option (Z -> Z -> option Z) :=
  let p := (w + bits + guard)%Z in
  let half := half_above p m in
  match scale_above p half with
  | Some scale => Some (removal_above p half scale rate)
  | None => None
  end.

(** Both orders: with the record against without it, and without it against with it. *)
Definition both_losses (w bits : Z) (above : Z -> Z -> option Z) (step : Q) (dense tail : Z) :
  option (whole_loss * whole_loss) :=
  let walked := walk (Z.to_nat most_dots) w bits above step dense tail in
  match walked 1 0, walked (-1) 0 with
  | Some up, Some down =>
      let ascending := rev (tl down) ++ up in
      let with_it := map (fun k => (at_place k, grown k, removal k)) (rev ascending) in
      let without :=
        map (fun k => (- at_place k, 2 ^ (2 * bits) / Z.max 1 (grown k), addition k)) ascending in
      match loss_from w bits step with_it, loss_from w bits step without with
      | Some l, Some l' => Some (l, l')
      | _, _ => None
      end
  | _, _ => None
  end.

Definition step_losses (w bits : Z) (m rate step : Q) (dense tail : Z) :
  option (whole_loss * whole_loss) :=
  match removal_heights w bits m rate with
  | Some above => both_losses w bits above step dense tail
  | None => None
  end.

(** Where either order of two laws has these heights from zero on: one of the orders at losses from
    zero on, the other one below. *)
Definition turned_losses (w bits : Z) (above : Z -> Z -> option Z) (step : Q) (dense tail : Z) :
  option whole_loss :=
  match walk (Z.to_nat most_dots) w bits above step dense tail 1 0 with
  | Some up =>
      if forallb (fun k => 0 <=? at_place k) up && forallb (fun k => 0 <? at_place k) (tl up)
      then
        loss_from w bits step
          (map (fun k => (at_place k, grown k, removal k)) (rev up)
           ++ map (fun k => (- at_place k, 2 ^ (2 * bits) / Z.max 1 (grown k), addition k))
                (tl up))
      else None
  | None => None
  end.

(** A batch of a fixed size. *)
Definition batch_losses (w bits : Z) (m rate step : Q) (dense tail : Z) : option whole_loss :=
  match removal_heights w bits m rate with
  | Some above => turned_losses w bits above step dense tail
  | None => None
  end.

(** Where it is told that the sample holds what differs. *)
Definition told_losses (w bits : Z) (m rate step : Q) (dense tail : Z) : option whole_loss :=
  match removal_heights w bits m 1 with
  | Some above =>
      let part low high :=
        match above low high with
        | Some n => Some (round_up (Qnum rate * n) (Zpos (Qden rate)))
        | None => None
        end in
      turned_losses w bits part step dense tail
  | None => None
  end.

(** ** Soundness *)

Open Scope R_scope.

Section Checked.

Variables (w bits : Z) (step : Q).
Hypotheses (Hw : (0 <= w)%Z) (Hbits : (0 <= bits)%Z) (Hstep : 0 < Q2R step).

Notation h := (Q2R step).
Notation unit := (unit_of w).

Lemma power_pos n : (0 <= n)%Z -> 0 < IZR (2 ^ n).
Proof. intros H; apply IZR_lt, Z.pow_pos_nonneg; lia. Qed.

Lemma guard_nonneg : (0 <= guard)%Z.
Proof. unfold guard; lia. Qed.

(** Without the guard. *)
Lemma without_guard n a :
  (0 <= n)%Z -> IZR a / unit_of (n + guard) <= IZR (shift_up a guard) / unit_of n.
Proof.
  intros Hn; pose proof guard_nonneg as G; pose proof (unit_pos n Hn) as P.
  pose proof (unit_pos guard G) as Pg; pose proof (shift_up_ge a guard G) as S.
  fold (unit_of guard) in S; rewrite unit_plus by assumption.
  apply (Rmult_le_compat_r (/ unit_of n)) in S; [|left; apply Rinv_0_lt_compat, P].
  eapply Rle_trans; [|exact S]; right; field; split; lra.
Qed.

Lemma decay_sound gap e :
  decay bits step gap = Some e -> exp (- (IZR gap * h)) <= IZR e / IZR (2 ^ bits).
Proof.
  unfold decay; cbv zeta; pose proof guard_nonneg.
  set (p := (bits + guard)%Z); set (x := (inject_Z gap * step)%Q).
  destruct (exp_bounds p _) as [[l u]|] eqn:E; [|discriminate]; intros I; injection I as <-.
  apply exp_bounds_sound in E as [_ E]; [|unfold p; lia].
  eapply Rle_trans; [|apply without_guard, Hbits]; fold p; eapply Rle_trans; [|exact E].
  apply exp_le; rewrite opp_IZR.
  pose proof (rational_floor p x ltac:(unfold p; lia)) as F.
  assert (Ex : Q2R x = IZR gap * h) by (unfold x; rewrite Q2R_mult, Q2R_integer; reflexivity).
  rewrite Ex in F; unfold Rdiv in *; lra.
Qed.

Definition atom (d : dot) : R * R := (IZR (place d) * h, IZR (weight d) / unit).

Lemma descend_nonneg dots fade beyond above shrunk z above' :
  descend bits fade beyond above shrunk z dots = Some above' ->
  forall d, In d dots -> (0 <= weight d)%Z.
Proof.
  revert above shrunk z; induction dots as [|d dots IH]; intros above shrunk z E d' I; [destruct I|].
  cbn [descend] in E; destruct (_ && _) eqn:G; [|discriminate].
  apply andb_true_iff in G as [_ G]; apply Z.leb_le in G.
  destruct (fade _); [|discriminate]; cbv zeta in E; destruct (_ <=? _)%Z; [|discriminate].
  destruct I as [<-|I]; [exact G|apply (IH _ _ _ E d' I)].
Qed.

Lemma descend_sound (S : loss) dots above shrunk z (done : list (R * R)) beyond above' :
  descend bits (decay bits step) beyond above shrunk z dots = Some above' ->
  (0 <= shrunk)%Z ->
  lost S = IZR beyond / unit ->
  (forall f, total (atoms S) f = total (map atom dots) f + total done f) ->
  (forall xm, In xm done -> 0 <= snd xm) ->
  total done snd = IZR above / unit ->
  total done (fun xm => snd xm * exp (IZR z * h - fst xm)) <= IZR shrunk / (IZR (2 ^ bits) * unit) ->
  (forall d, In d dots -> (place d < z)%Z /\ (0 <= weight d)%Z /\
     IZR (height d) / (IZR (2 ^ bits) * unit) <= profile S 1 (exp (IZR (place d) * h))) /\
  StronglySorted (fun a b => (b < a)%Z) (map place dots) /\
  total (atoms S) snd = IZR above' / unit.
Proof.
  pose proof (unit_pos w Hw) as Pu; pose proof (power_pos bits Hbits) as Pb.
  revert above shrunk z done; induction dots as [|d dots IH];
    intros above shrunk z done E Hshr Hl Split Pos Mass Shrunk; cbn [descend] in E.
  - injection E as <-; split; [intros d []|split; [constructor|]].
    rewrite Split; simpl; rewrite Mass; ring.
  - destruct (_ && _) eqn:G; [|discriminate]; apply andb_true_iff in G as [Gz Gw].
    apply Z.ltb_lt in Gz; apply Z.leb_le in Gw.
    destruct (decay bits step (z - place d)) as [e|] eqn:De; [|discriminate].
    cbv zeta in E; set (shrunk' := shift_up (shrunk * e) bits) in E.
    destruct (_ <=? _)%Z eqn:F; [|discriminate]; apply Z.leb_le in F.
    apply decay_sound in De.
    assert (He : (0 <= e)%Z).
    { apply le_IZR; pose proof (exp_pos (- (IZR (z - place d) * h))) as P.
      apply Rmult_le_reg_r with (/ IZR (2 ^ bits)); [apply Rinv_0_lt_compat, Pb|].
      unfold Rdiv in De; lra. }
    assert (Hs' : (0 <= shrunk')%Z) by (apply shift_up_nonneg; nia).
    pose proof (shift_up_ge (shrunk * e) bits Hbits) as Up; fold shrunk' in Up.
    rewrite mult_IZR in Up.
    assert (Le : total done (fun xm => snd xm * exp (IZR (place d) * h - fst xm))
                 <= IZR shrunk' / (IZR (2 ^ bits) * unit)).
    { rewrite (total_ext _ _ (fun xm => exp (- (IZR (z - place d) * h))
                                * (snd xm * exp (IZR z * h - fst xm)))).
      - rewrite total_scal.
        eapply Rle_trans; [apply Rmult_le_compat_l; [left; apply exp_pos|exact Shrunk]|].
        assert (0 <= IZR shrunk / (IZR (2 ^ bits) * unit)).
        { apply IZR_le in Hshr; apply Rmult_le_pos; [exact Hshr|].
          left; apply Rinv_0_lt_compat, Rmult_lt_0_compat; assumption. }
        eapply Rle_trans; [apply Rmult_le_compat_r; [assumption|exact De]|].
        replace (IZR e / IZR (2 ^ bits) * (IZR shrunk / (IZR (2 ^ bits) * unit)))
          with (IZR shrunk * IZR e / IZR (2 ^ bits) * / (IZR (2 ^ bits) * unit)) by (field; lra).
        apply Rmult_le_compat_r; [|exact Up].
        left; apply Rinv_0_lt_compat, Rmult_lt_0_compat; assumption.
      - intros xm _; rewrite minus_IZR.
        rewrite (Rmult_comm (exp _)), Rmult_assoc, <- exp_plus; do 2 f_equal; ring. }
    assert (Dot : IZR (height d) / (IZR (2 ^ bits) * unit) <= profile S 1 (exp (IZR (place d) * h))).
    { apply IZR_le in F; rewrite minus_IZR, mult_IZR, plus_IZR in F.
      apply Rle_trans with (lost S * 1 + total done (loss_term 1 (exp (IZR (place d) * h)))).
      - apply Rle_trans with (IZR beyond / unit + (IZR above / unit
                                - IZR shrunk' / (IZR (2 ^ bits) * unit))).
        + replace (IZR beyond / unit + (IZR above / unit - IZR shrunk' / (IZR (2 ^ bits) * unit)))
            with (((IZR beyond + IZR above) * IZR (2 ^ bits) - IZR shrunk')
                  / (IZR (2 ^ bits) * unit)) by (field; lra).
          apply Rmult_le_compat_r; [|exact F].
          left; apply Rinv_0_lt_compat, Rmult_lt_0_compat; assumption.
        + rewrite Hl, Rmult_1_r; apply Rplus_le_compat_l; rewrite <- Mass.
          apply Rle_trans with (total done snd
            - total done (fun xm => snd xm * exp (IZR (place d) * h - fst xm))); [lra|].
          rewrite <- total_minus; apply total_le; intros xm I; unfold loss_term.
          replace (snd xm - snd xm * exp (IZR (place d) * h - fst xm))
            with (snd xm * (1 - exp (IZR (place d) * h) * exp (- fst xm))).
          * apply Rmult_le_compat_l; [apply Pos, I|apply plus_part_ge].
          * unfold Rminus; rewrite exp_plus; ring.
      - unfold profile; apply Rplus_le_compat_l; rewrite Split.
        assert (0 <= total (map atom (d :: dots)) (loss_term 1 (exp (IZR (place d) * h)))); [|lra].
        rewrite total_map; apply total_nonneg; intros d' I'; apply loss_term_nonneg; simpl.
        assert (H : (0 <= weight d')%Z).
        { destruct I' as [<-|I']; [exact Gw|apply (descend_nonneg _ _ _ _ _ _ _ E d' I')]. }
        apply IZR_le in H; unfold Rdiv; apply Rmult_le_pos;
          [exact H|left; apply Rinv_0_lt_compat, Pu]. }
    destruct (IH _ _ _ (atom d :: done) E) as (All & Sorted & Full).
    + apply Z.add_nonneg_nonneg; [exact Hs'|]; pose proof (Z.pow_nonneg 2 bits); nia.
    + exact Hl.
    + intros f; rewrite Split; simpl; ring.
    + intros xm [<-|I]; [|apply Pos, I]; apply IZR_le in Gw; simpl; unfold Rdiv.
      apply Rmult_le_pos; [exact Gw|left; apply Rinv_0_lt_compat, Pu].
    + simpl; rewrite Mass, plus_IZR; field; lra.
    + cbn [total atom fst snd]; rewrite Rminus_diag_eq, exp_0 by reflexivity.
      rewrite plus_IZR, mult_IZR.
      replace ((IZR shrunk' + IZR (weight d) * IZR (2 ^ bits)) / (IZR (2 ^ bits) * unit))
        with (IZR (weight d) / unit * 1 + IZR shrunk' / (IZR (2 ^ bits) * unit)) by (field; lra).
      lra.
    + split; [|split; [|exact Full]].
      * intros d' [<-|I]; [split; [exact Gz|split; assumption]|].
        destruct (All d' I) as (H1 & H2 & H3); split; [lia|split; assumption].
      * simpl; constructor; [exact Sorted|]; rewrite Forall_forall; intros y Iy.
        apply in_map_iff in Iy as (d' & <- & I); apply (All d' I).
Qed.

Lemma sorted_snoc {A} (r : A -> A -> Prop) l a :
  StronglySorted r l -> Forall (fun b => r b a) l -> StronglySorted r (l ++ [a]).
Proof.
  induction 1 as [|b l S IH F]; intros G; simpl; [repeat constructor|].
  inversion G; subst; constructor; auto; apply Forall_app; split; [exact F|repeat constructor; auto].
Qed.

Lemma sorted_rev {A} (r : A -> A -> Prop) l :
  StronglySorted r l -> StronglySorted (fun a b => r b a) (rev l).
Proof.
  induction 1 as [|a l S IH F]; simpl; [constructor|].
  apply sorted_snoc; [exact IH|apply Forall_rev, F].
Qed.

Lemma row_fill t z dots :
  StronglySorted (fun a b => (a < b)%Z) (map place dots) ->
  (forall d, In d dots -> (z <= place d)%Z) ->
  row t z (fill z dots) = total dots (fun d => IZR (weight d) * t (place d)).
Proof.
  revert z; induction dots as [|d dots IH]; intros z S Above; simpl; [reflexivity|].
  apply StronglySorted_inv in S as [S F]; rewrite Forall_forall in F.
  rewrite row_app, row_zeros, repeat_length; pose proof (Above d (or_introl eq_refl)).
  rewrite Z2Nat.id by lia; replace (z + (place d - z))%Z with (place d) by lia.
  cbn [row]; rewrite IH; [ring|exact S|].
  intros d' I; specialize (F (place d') (in_map place _ _ I)); lia.
Qed.

Lemma fill_nonneg z dots :
  (forall d, In d dots -> (0 <= weight d)%Z) -> Forall (fun m => 0 <= m)%Z (fill z dots).
Proof.
  revert z; induction dots as [|d dots IH]; intros z H; simpl; [constructor|].
  apply Forall_app; split; [|constructor; [apply H; left; reflexivity|]].
  - apply Forall_forall; intros m I; apply repeat_spec in I; lia.
  - apply IH; intros; apply H; right; assumption.
Qed.

Theorem checked_sound {A} (l : list A) p q beyond dots L :
  checked w bits step beyond dots = Some L ->
  distribution l p -> nonneg l q ->
  (forall d, In d dots -> excess l p q 1 (exp (IZR (place d) * h))
                          <= IZR (height d) / (IZR (2 ^ bits) * unit)) ->
  sound_list L /\ below_profile l p q (profile (stands_for h unit L)).
Proof.
  pose proof (unit_pos w Hw) as Pu; unfold checked; intros E Dp Nq Heights.
  destruct dots as [|top others] eqn:Ed; [discriminate|]; rewrite <- Ed in *.
  destruct (descend _ _ _ _ _ _ dots) as [above|] eqn:D; [|discriminate].
  destruct (_ && _) eqn:G; [|discriminate]; apply andb_true_iff in G as [Gb Gf].
  apply Z.leb_le in Gb, Gf.
  destruct (rev dots) as [|bottom rest] eqn:Er; [discriminate|].
  destruct (_ <=? most_places)%Z; [|discriminate]; injection E as <-.
  set (S := Loss (map atom (rev dots)) (IZR beyond / unit)).
  destruct (descend_sound S dots 0 0 (place top + 1) [] beyond above D) as (All & Sorted & Full).
  - lia.
  - reflexivity.
  - intros f; unfold S; cbn [atoms]; rewrite !total_map; simpl; rewrite Rplus_0_r.
    clear; induction dots as [|d dots IH]; simpl; [reflexivity|].
    rewrite total_app, IH; simpl; ring.
  - intros xm [].
  - simpl; unfold Rdiv; ring.
  - simpl; unfold Rdiv; lra.
  - apply sorted_rev in Sorted; rewrite <- map_rev in Sorted; cbv beta in Sorted.
    assert (Up : forall d, In d (bottom :: rest) -> (place bottom <= place d)%Z).
    { rewrite Er in Sorted; simpl in Sorted; apply StronglySorted_inv in Sorted as [_ F].
      rewrite Forall_forall in F; intros d [<-|I]; [lia|].
      specialize (F (place d) (in_map place _ _ I)); lia. }
    assert (Snd : sound_list (WholeLoss (place bottom) (fill (place bottom) (bottom :: rest)) beyond)).
    { split; [exact Gb|]; cbn [masses]; apply fill_nonneg; rewrite <- Er; intros d I; apply in_rev in I.
      apply (All d I). }
    split; [exact Snd|].
    assert (Same : forall a b, profile (stands_for h unit (WholeLoss (place bottom)
                       (fill (place bottom) (bottom :: rest)) beyond)) a b = profile S a b).
    { intros a b; rewrite profile_stands by exact Pu; cbn [first masses LossLists.beyond].
      rewrite row_fill; [|rewrite <- Er; exact Sorted|exact Up].
      unfold profile, S; cbn [lost atoms]; rewrite total_map, Er; unfold Rdiv.
      rewrite Rmult_plus_distr_r, <- total_scal_r; f_equal; [ring|].
      apply total_ext; intros d _; unfold loss_term, kept, atom; cbn [fst snd]; unfold Rdiv; ring. }
    intros a b Ha Hb; rewrite Same; revert a b Ha Hb; apply dots_suffice; try assumption.
    + split.
      * unfold S; cbn [lost]; apply IZR_le in Gb; apply Rmult_le_pos;
          [exact Gb|left; apply Rinv_0_lt_compat, Pu].
      * unfold S; cbn [atoms]; intros xm I; apply in_map_iff in I as (d & <- & I).
        apply in_rev in I; destruct (All d I) as (_ & H & _); apply IZR_le in H; simpl.
        apply Rmult_le_pos; [exact H|left; apply Rinv_0_lt_compat, Pu].
    + unfold S; cbn [atoms]; rewrite map_map; simpl.
      clear - Sorted Hstep; induction (rev dots) as [|d dots' IH]; simpl in *; [constructor|].
      apply StronglySorted_inv in Sorted as [Sorted F]; constructor; [apply IH, Sorted|].
      rewrite Forall_forall in *; intros x I; apply in_map_iff in I as (d' & <- & I).
      specialize (F (place d') (in_map place _ _ I)); apply IZR_lt in F; nra.
    + unfold mass, finite_mass; rewrite Full; unfold S; cbn [lost].
      apply IZR_le in Gf; rewrite plus_IZR in Gf; fold unit in Gf.
      replace (IZR beyond / unit + IZR above / unit) with ((IZR beyond + IZR above) / unit)
        by (field; lra).
      apply Rmult_le_reg_r with (1 := Pu); unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
    + unfold S at 1; cbn [atoms]; intros xm I; apply in_map_iff in I as (d & <- & I).
      apply in_rev in I; cbn [atom fst]; eapply Rle_trans; [apply Heights, I|apply (All d I)].
Qed.

End Checked.

Section Steps.

Variables (w bits : Z) (m rate step : Q).
Hypotheses (Hw : (0 <= w)%Z) (Hbits : (0 <= bits)%Z) (Hstep : 0 < Q2R step).
Hypotheses (Hm : 0 < Q2R m) (Hrate : 0 < Q2R rate <= 1).

Notation h := (Q2R step).
Notation F := (gaussian_profile (sqrt (Q2R m))).

Notation p := (w + bits + guard)%Z.

Lemma p_nonneg : (0 <= p)%Z.
Proof. pose proof guard_nonneg; lia. Qed.

Lemma half_above_sound :
  (0 < half_above p m)%Z /\ Q2R m <= 2 * (IZR (half_above p m) / unit_of p).
Proof.
  pose proof p_nonneg as Hp; pose proof (unit_pos p Hp) as P.
  unfold half_above; set (d := (2 * Zpos (Qden m))%Z).
  pose proof (round_up_ge (Qnum m * 2 ^ p) d eq_refl) as U.
  rewrite mult_IZR in U; fold (unit_of p) in U; set (n := round_up _ d) in *.
  assert (Hd : 0 < IZR (Zpos (Qden m))) by (apply IZR_lt; reflexivity).
  assert (Ed : IZR d = 2 * IZR (Zpos (Qden m))) by (unfold d; rewrite mult_IZR; reflexivity).
  rewrite Ed in U; assert (Em : Q2R m = IZR (Qnum m) / IZR (Zpos (Qden m))) by reflexivity.
  replace (IZR (Qnum m) * unit_of p / (2 * IZR (Zpos (Qden m)))) with (Q2R m * unit_of p / 2) in U
    by (rewrite Em; field; lra).
  assert (L : Q2R m <= 2 * (IZR n / unit_of p)).
  { apply Rmult_le_reg_r with (1 := P); unfold Rdiv.
    replace (2 * (IZR n * / unit_of p) * unit_of p) with (2 * IZR n) by (field; lra); lra. }
  split; [|exact L]; apply lt_IZR; nra.
Qed.

Lemma scale_above_sound half scale :
  (0 < half)%Z -> scale_above p half = Some scale ->
  / (root_two_pi * sqrt (2 * (IZR half / unit_of p))) <= IZR scale / unit_of p.
Proof.
  intros Hh; pose proof p_nonneg as Hp; pose proof (unit_pos p Hp) as P; unfold scale_above; cbv zeta.
  set (q := Z.to_pos (p + 64)); set (s := Mantissa.PtoP q); intros E.
  pose proof (fixed_pos p Hp half Hh) as Ph; pose proof PI_RGT_0 as Pi.
  assert (Er : root_two_pi * sqrt (2 * (IZR half / unit_of p))
               = sqrt (4 * PI * (IZR half / unit_of p))).
  { unfold root_two_pi; rewrite <- sqrt_mult by lra; f_equal; ring. }
  rewrite Er; assert (Pr : 0 < sqrt (4 * PI * (IZR half / unit_of p))).
  { apply sqrt_lt_R0, Rmult_lt_0_compat; lra. }
  apply upper_sound with (x := unit_of p / sqrt (4 * PI * (IZR half / unit_of p))) in E.
  - apply Rmult_le_reg_l with (1 := P); unfold Rdiv in *.
    replace (unit_of p * (IZR scale * / unit_of p)) with (IZR scale) by (field; lra); exact E.
  - apply encloses_div; [lra|apply encloses_integer|].
    apply encloses_sqrt; [apply Rmult_le_pos; lra|].
    apply encloses_mul; [apply encloses_mul; [apply encloses_integer|apply encloses_pi]|].
    apply encloses_div; [lra|apply encloses_integer|apply encloses_integer].
Qed.

(** What [above] bounds: [G], at thresholds that are [good]. *)
Section Heights.

Variables (above : Z -> Z -> option Z) (G : R -> R) (good : R -> Prop).
Hypothesis above_sound : forall low high n y, good y -> 0 < y ->
  IZR low / unit_of p <= y <= IZR high / unit_of p -> above low high = Some n ->
  G y <= IZR n / unit_of p.

Definition known_at (z f g : Z) : Prop :=
  let y := exp (IZR z * h) in good y ->
  G y <= IZR f / (IZR (2 ^ bits) * unit_of w) /\
  1 - / y + / y * G y <= IZR g / (IZR (2 ^ bits) * unit_of w).

Lemma heights_sound z f e g : heights w bits above step z = Some (f, e, g) -> known_at z f g.
Proof.
  pose proof p_nonneg as Hp; pose proof (unit_pos p Hp) as P.
  pose proof guard_nonneg as Hg; unfold heights; cbv zeta.
  destruct (exp_of_rational p (inject_Z z * step)) as [[l u]|] eqn:E; [|discriminate].
  destruct (above l u) as [f0|] eqn:R; [|discriminate].
  destruct (0 <? l)%Z eqn:L; [|discriminate]; apply Z.ltb_lt in L.
  intros I; injection I as <- _ <-.
  apply exp_of_rational_sound in E; [|exact Hp]; rewrite Q2R_mult, Q2R_integer in E.
  unfold known_at; pose proof (exp_pos (IZR z * h)) as Py; set (y := exp (IZR z * h)) in *.
  intros Good; apply (above_sound _ _ _ y Good Py E) in R.
  assert (Eu : IZR (2 ^ bits) * unit_of w = unit_of (w + bits))
    by (rewrite unit_plus by assumption; unfold unit_of; ring).
  rewrite Eu; split.
  - apply Rle_trans with (1 := R), without_guard; lia.
  - eapply Rle_trans; [|apply without_guard; lia].
    set (v := G y) in *; set (less := (f0 - 2 ^ p)%Z).
    assert (Less : v - 1 <= IZR less / unit_of p).
    { unfold less; rewrite fixed_minus, fixed_one by exact Hp; lra. }
    rewrite fixed_plus, fixed_one by exact Hp.
    replace (1 - / y + / y * v) with (1 + (v - 1) / y) by (field; lra).
    apply Rplus_le_compat_l.
    apply Rle_trans with (IZR less / unit_of p / y).
    + apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Py|exact Less].
    + assert (Pu : (0 < u)%Z).
      { apply lt_IZR; apply Rmult_lt_reg_r with (/ unit_of p); [apply Rinv_0_lt_compat, P|].
        unfold Rdiv in E; lra. }
      assert (Turn : forall d, (0 < d)%Z ->
        IZR less / unit_of p / (IZR d / unit_of p)
          <= IZR (round_up (less * 2 ^ p) d) / unit_of p).
      { intros d Hd; pose proof (round_up_ge (less * 2 ^ p) d Hd) as U.
        rewrite mult_IZR in U; fold (unit_of p) in U; apply IZR_lt in Hd.
        apply (Rmult_le_compat_r (/ unit_of p)) in U; [|left; apply Rinv_0_lt_compat, P].
        eapply Rle_trans; [|exact U]; right; field; split; lra. }
      pose proof (fixed_pos p Hp l L) as Pl; pose proof (fixed_pos p Hp u Pu) as Pu'.
      destruct (less <=? 0)%Z eqn:Sg.
      * apply Z.leb_le in Sg; eapply Rle_trans; [|apply Turn, Pu].
        assert (N : IZR less / unit_of p <= 0).
        { apply IZR_le in Sg; assert (0 < / unit_of p) by (apply Rinv_0_lt_compat, P).
          unfold Rdiv; nra. }
        assert (/ (IZR u / unit_of p) <= / y) by (apply Rinv_le_contravar; lra).
        unfold Rdiv at 1 3; nra.
      * apply Z.leb_gt in Sg; eapply Rle_trans; [|apply Turn, L].
        apply Z.lt_le_incl, (fixed_nonneg p Hp) in Sg.
        apply Rmult_le_compat_l; [exact Sg|apply Rinv_le_contravar; lra].
Qed.

Lemma walk_sound fuel dense tail towards z found :
  walk fuel w bits above step dense tail towards z = Some found ->
  forall k, In k found -> known_at (at_place k) (removal k) (addition k).
Proof.
  revert z found; induction fuel as [|fuel IH]; intros z found; cbn [walk]; [discriminate|].
  destruct (heights w bits above step z) as [[[f e] g]|] eqn:E; [|discriminate].
  apply heights_sound in E; destruct (_ && _).
  - intros E'; injection E' as <-; intros k [<-|[]]; exact E.
  - destruct (walk fuel _ _ _ _ _ _ _ _) as [rest|] eqn:W; [|discriminate].
    intros E'; injection E' as <-; intros k [<-|I]; [exact E|apply (IH _ _ W k I)].
Qed.

End Heights.

Lemma proposed_in full slope l d :
  In d (proposed bits full slope l) -> exists e, In (place d, e, height d) l.
Proof.
  revert slope; induction l as [|[[z e] f] l IH]; intros slope; cbn [proposed]; [intros []|].
  intros [<-|I]; [exists e; left; reflexivity|].
  destruct (IH _ I) as [e' I']; exists e'; right; exact I'.
Qed.

Lemma loss_from_sound {A} (l : list A) p q G listed L :
  loss_from w bits step listed = Some L ->
  distribution l p -> nonneg l q -> below_profile l p q G ->
  (forall z e f, In (z, e, f) listed ->
     G 1 (exp (IZR z * h)) <= IZR f / (IZR (2 ^ bits) * unit_of w)) ->
  sound_list L /\ below_profile l p q (profile (stands_for h (unit_of w) L)).
Proof.
  unfold loss_from; intros E Dp Nq HG Known; destruct listed as [|[[z0 e0] f0] rest] eqn:El;
    [discriminate|]; rewrite <- El in *; clear El z0 e0 rest.
  apply (checked_sound w bits step Hw Hbits Hstep l p q) in E; try assumption.
  intros d I; apply proposed_in in I as [e I]; eapply Rle_trans; [|apply (Known _ e _ I)].
  apply HG; [lra|left; apply exp_pos].
Qed.

Lemma removal_heights_sound above :
  removal_heights w bits m rate = Some above ->
  forall low high n y, True -> 0 < y ->
  IZR low / unit_of p <= y <= IZR high / unit_of p -> above low high = Some n ->
  removal_profile (Q2R rate) F 1 y <= IZR n / unit_of p.
Proof.
  unfold removal_heights; cbv zeta; destruct half_above_sound as [Ph Hh].
  destruct (scale_above _ _) as [scale|] eqn:Es; [|discriminate]; intros I; injection I as <-.
  apply scale_above_sound in Es; [|exact Ph]; intros low high n y _ Py E R.
  apply (removal_above_sound p p_nonneg _ scale Ph Es rate low high n (sqrt (Q2R m)) y Hrate) in R;
    [exact R|split; [apply sqrt_lt_R0, Hm|apply sqrt_le_1_alt, Hh]|exact E|exact Py].
Qed.

(** [above] bounds the profile [G] of the first order. *)
Theorem sided_losses_sound above (G : R -> R) dense tail L L' :
  (forall low high n y, 0 < y ->
     IZR low / unit_of p <= y <= IZR high / unit_of p -> above low high = Some n -> G y <= IZR n / unit_of p) ->
  both_losses w bits above step dense tail = Some (L, L') ->
  forall A (l : list A) p q, distribution l p -> nonneg l q -> forall F,
  (below_profile l p q F -> (forall y, 0 < y -> F 1 y <= G y) ->
   sound_list L /\ below_profile l p q (profile (stands_for h (unit_of w) L))) /\
  (below_profile l p q F -> (forall y, 0 < y -> F 1 (/ y) <= 1 - / y + / y * G y) ->
   sound_list L' /\ below_profile l p q (profile (stands_for h (unit_of w) L'))).
Proof.
  intros Sound; unfold both_losses; cbv zeta.
  pose proof (walk_sound above G (fun _ => True) (fun low high n y _ => Sound low high n y)) as Walk.
  destruct (walk _ _ _ _ _ _ _ 1 0) as [up|] eqn:Up; [|discriminate].
  destruct (walk _ _ _ _ _ _ _ (-1) 0) as [down|] eqn:Down; [|discriminate].
  set (listed := (rev (tl down) ++ up)%list).
  assert (Known : forall k, In k listed -> known_at G (fun _ => True) (at_place k) (removal k) (addition k)).
  { intros k I; apply in_app_or in I as [I|I]; [|apply (Walk _ _ _ _ _ _ Up k I)].
    apply in_rev in I; apply (Walk _ _ _ _ _ _ Down k).
    destruct down as [|first rest]; [destruct I|right; exact I]. }
  destruct (loss_from w bits step _) as [L1|] eqn:E1; [|discriminate].
  destruct (loss_from w bits step (map (fun k => (- at_place k, _, _)) _)%Z) as [L2|] eqn:E2;
    [|discriminate].
  intros E; injection E as <- <-; intros A l p q Dp Nq H; split; intros B Le.
  - apply (loss_from_sound l p q _ _ _ E1 Dp Nq B); intros z e f I.
    apply in_map_iff in I as (k & E & I); injection E as <- _ <-; apply in_rev in I.
    eapply Rle_trans; [apply Le, exp_pos|apply (Known k I Logic.I)].
  - apply (loss_from_sound l p q _ _ _ E2 Dp Nq B); intros z e f I.
    apply in_map_iff in I as (k & E & I); injection E as <- _ <-.
    rewrite opp_IZR, <- Ropp_mult_distr_l, exp_Ropp.
    eapply Rle_trans; [apply Le, exp_pos|apply (Known k I Logic.I)].
Qed.

(** A sample that sees a record with probability [r], of laws that mirror each other. *)
Theorem both_losses_sound above r (G : R -> R -> R) dense tail L L' :
  both_losses w bits above step dense tail = Some (L, L') ->
  (forall low high n y, True -> 0 < y ->
     IZR low / unit_of p <= y <= IZR high / unit_of p -> above low high = Some n ->
     removal_profile r G 1 y <= IZR n / unit_of p) ->
  0 <= r <= 1 -> symmetric_profile G ->
  forall A (l : list A) p q, distribution l p -> nonneg l q ->
  (below_profile l p q (removal_profile r G) ->
   sound_list L /\ below_profile l p q (profile (stands_for h (unit_of w) L))) /\
  (below_profile l p q (addition_profile r G) ->
   sound_list L' /\ below_profile l p q (profile (stands_for h (unit_of w) L'))).
Proof.
  intros E Above Hr Symmetric A l p q Dp Nq.
  pose proof (sided_losses_sound above (removal_profile r G 1) dense tail L L' (fun low high n y => Above low high n y I) E A l p q Dp Nq) as S.
  split; intros B; [apply (proj1 (S _) B); intros; lra|apply (proj2 (S _) B)].
  intros y Hy; rewrite addition_of_removal by assumption; lra.
Qed.

Theorem step_losses_sound dense tail L L' :
  step_losses w bits m rate step dense tail = Some (L, L') ->
  forall A (l : list A) p q, distribution l p -> nonneg l q ->
  (below_profile l p q (removal_profile (Q2R rate) F) ->
   sound_list L /\ below_profile l p q (profile (stands_for h (unit_of w) L))) /\
  (below_profile l p q (addition_profile (Q2R rate) F) ->
   sound_list L' /\ below_profile l p q (profile (stands_for h (unit_of w) L'))).
Proof.
  unfold step_losses; destruct (removal_heights _ _ _ _) as [above|] eqn:Ea; [|discriminate].
  intros E; apply (both_losses_sound above _ F dense tail L L' E (removal_heights_sound above Ea)).
  - lra.
  - apply gaussian_symmetric.
Qed.

(** Both orders are bounded alike at thresholds above one; below, by the other order. *)
Theorem turned_losses_sound above dense tail L :
  turned_losses w bits above step dense tail = Some L ->
  forall A (l : list A) p0 q, distribution l p0 -> distribution l q ->
  (forall low high n y, 1 <= y -> 0 < y ->
     IZR low / unit_of p <= y <= IZR high / unit_of p -> above low high = Some n ->
     excess l p0 q 1 y <= IZR n / unit_of p /\ excess l q p0 1 y <= IZR n / unit_of p) ->
  sound_list L /\ below_profile l p0 q (profile (stands_for h (unit_of w) L)).
Proof.
  unfold turned_losses; destruct (walk _ _ _ _ _ _ _ 1 0) as [up|] eqn:Up; [|discriminate].
  destruct (_ && _) eqn:G; [|discriminate]; apply andb_true_iff in G as [G0 G1].
  rewrite forallb_forall in G0, G1; intros E A l p0 q Dp Dq Above.
  assert (Big : forall z, (0 <= z)%Z -> 1 <= exp (IZR z * h)).
  { intros z Hz; rewrite <- exp_0; apply exp_le, Rmult_le_pos; [apply IZR_le, Hz|lra]. }
  apply (loss_from_sound l p0 q (excess l p0 q) _ _ E Dp (proj1 Dq)); [intros a b _ _; lra|].
  intros z e f I; apply in_app_or in I as [I|I]; apply in_map_iff in I as (k & E' & I);
    injection E' as <- _ <-.
  - apply in_rev in I; refine (proj1 (walk_sound above (excess l p0 q 1) (Rle 1) _ _ _ _ _ _ _ Up k I _)).
    + intros low high n y Hy Py B R; apply (Above low high n y Hy Py B R).
    + apply Big, Z.leb_le, G0, I.
  - assert (Iup : In k up) by (destruct up; [destruct I|right; exact I]).
    apply G1, Z.ltb_lt in I.
    rewrite opp_IZR, <- Ropp_mult_distr_l, exp_Ropp.
    set (y := exp (IZR (at_place k) * h)); assert (Py : 0 < y) by apply exp_pos.
    assert (Iy : 0 < / y) by (apply Rinv_0_lt_compat, Py).
    rewrite (excess_turned l p0 q 1 (/ y) Dp Dq).
    replace (excess l q p0 (/ y) 1) with (/ y * excess l q p0 1 y).
    2:{ rewrite <- excess_scal by lra; f_equal; field; lra. }
    refine (proj2 (walk_sound above (excess l q p0 1) (Rle 1) _ _ _ _ _ _ _ Up k Iup _)).
    + intros low high n v Hv Pv B R; apply (Above low high n v Hv Pv B R).
    + apply Big; lia.
Qed.

Theorem batch_losses_sound dense tail L :
  batch_losses w bits m rate step dense tail = Some L ->
  forall A (l : list A) p q, distribution l p -> distribution l q ->
  below_profile l p q (replaced_profile (Q2R rate) F) ->
  sound_list L /\ below_profile l p q (profile (stands_for h (unit_of w) L)).
Proof.
  unfold batch_losses; destruct (removal_heights _ _ _ _) as [above|] eqn:Ea; [|discriminate].
  intros E A l p q Dp Dq B; apply (turned_losses_sound above dense tail L E A l p q Dp Dq).
  intros low high n y Hy Py Between R.
  pose proof (removal_heights_sound above Ea low high n y I Py Between R) as V.
  destruct (turned_both l p q _ y Dp Dq B Hy); split; lra.
Qed.

End Steps.

Theorem told_losses_sound w bits m rate step dense tail L :
  (0 <= w)%Z -> (0 <= bits)%Z -> 0 < Q2R step -> 0 < Q2R m -> 0 < Q2R rate <= 1 ->
  told_losses w bits m rate step dense tail = Some L ->
  forall A (l : list A) p q, distribution l p -> distribution l q ->
  below_profile l p q (told_profile (Q2R rate) (gaussian_profile (sqrt (Q2R m)))) ->
  sound_list L /\ below_profile l p q (profile (stands_for (Q2R step) (unit_of w) L)).
Proof.
  intros Hw Hb Hstep Hm Hr; set (F := gaussian_profile (sqrt (Q2R m))).
  assert (One : Q2R 1 = 1) by (unfold Q2R; simpl; field).
  unfold told_losses; destruct (removal_heights _ _ _ _) as [above|] eqn:Ea; [|discriminate].
  cbv zeta; intros E A l p q Dp Dq B.
  assert (Hp : (0 <= w + bits + guard)%Z) by (pose proof guard_nonneg; lia); pose proof (unit_pos _ Hp) as P.
  apply (turned_losses_sound w bits step Hw Hb Hstep _ dense tail L E A l p q Dp Dq).
  intros low high n y Hy Py Between; destruct (above low high) as [k|] eqn:R; [|discriminate].
  intros H; injection H as <-.
  assert (V : F 1 y <= IZR k / unit_of (w + bits + guard)).
  { pose proof (removal_heights_sound w bits m 1 Hw Hb Hm ltac:(lra) above Ea low high k y I Py Between R) as V.
    rewrite One in V; unfold removal_profile in V; rewrite Rminus_eq_0, !Rmult_0_r, Rminus_0_r, Rmult_1_r in V.
    destruct (Rle_dec 0 y); [exact V|lra]. }
  assert (Up : Q2R rate * F 1 y <= IZR (round_up (Qnum rate * k) (Zpos (Qden rate))) / unit_of (w + bits + guard)).
  { pose proof (round_up_ge (Qnum rate * k) (Zpos (Qden rate)) eq_refl) as U; rewrite mult_IZR in U.
    apply (Rmult_le_compat_r (/ unit_of (w + bits + guard))) in U; [|left; apply Rinv_0_lt_compat, P].
    eapply Rle_trans; [apply Rmult_le_compat_l; [lra|exact V]|]; eapply Rle_trans; [right|exact U].
    unfold Q2R, Rdiv; ring. }
  pose proof (B 1 y ltac:(lra) ltac:(lra)) as B1; pose proof (B y 1 ltac:(lra) ltac:(lra)) as B2.
  pose proof (profile_turned (sqrt (Q2R m)) y 1 ltac:(lra) ltac:(lra)) as T; fold F in T.
  rewrite (excess_turned l p q y 1 Dp Dq) in B2; unfold told_profile in B1, B2.
  rewrite plus_part_0 in B1 by lra; rewrite plus_part_id in B2 by lra; rewrite <- T in B2.
  split; lra.
Qed.

(** ** delta *)

(** Below 2^bits times the sum of m_i exp(- i h). *)
Fixpoint discounted (bits shrink : Z) (l : list Z) : Z :=
  match l with
  | [] => 0
  | m :: rest => (m * 2 ^ bits + Z.shiftr (shrink * discounted bits shrink rest) bits)%Z
  end.

Definition loss_delta_at_most (w bits : Z) (step : Q) (l : whole_loss) (eps delta : Q) : bool :=
  let skipped := Z.to_nat (Qfloor (eps / step) + 1 - first l) in
  let start := (first l + Z.of_nat skipped)%Z in
  let above := skipn skipped (masses l) in
  let below_eps := (inject_Z (start - 1) * step)%Q in
  let at_start := (inject_Z start * step)%Q in
  match exp_of_rational bits (- step), exp_of_rational bits (eps - at_start) with
  | Some (shrink, _), Some (c, _) =>
      let kept := Z.shiftr (c * discounted bits (Z.max 0 shrink) above) bits in
      let delta' := ((beyond l + sum above) * 2 ^ bits - kept)%Z in
      (0 <=? c)%Z && (0 <=? bits)%Z && Qle_bool eps at_start
      && ((skipped =? 0)%nat || Qle_bool below_eps eps)
      && Qle_bool (inject_Z delta') (delta * inject_Z (2 ^ (w + bits)))
  | _, _ => false
  end.

Lemma shiftr_le n bits : (0 <= bits)%Z -> IZR (Z.shiftr n bits) <= IZR n / IZR (2 ^ bits).
Proof.
  intros Hb; rewrite Z.shiftr_div_pow2 by exact Hb.
  assert (P : (0 < 2 ^ bits)%Z) by (apply Z.pow_pos_nonneg; lia).
  pose proof (Z.mul_div_le n (2 ^ bits) P) as L; apply IZR_le in L; rewrite mult_IZR in L.
  apply IZR_lt in P; apply Rmult_le_reg_r with (1 := P).
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

Section Delta.

Variables (w bits : Z) (step : Q) (l : whole_loss) (eps : Q).
Hypotheses (Hw : (0 <= w)%Z) (Hb : (0 <= bits)%Z) (Hstep : 0 < Q2R step) (Hl : sound_list l).

Notation h := (Q2R step).

Lemma discounted_sound shrink z ms :
  Forall (fun m => 0 <= m)%Z ms -> (0 <= shrink)%Z ->
  IZR shrink / IZR (2 ^ bits) <= exp (- h) ->
  (0 <= discounted bits shrink ms)%Z /\
  IZR (discounted bits shrink ms) / IZR (2 ^ bits)
    <= row (fun y => exp (- (IZR (y - z) * h))) z ms.
Proof.
  intros Fm Hs Hx; assert (P : 0 < IZR (2 ^ bits)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  revert z; induction Fm as [|m ms Hm Fm IH]; intros z; cbn [discounted row].
  - split; [lia|unfold Rdiv; lra].
  - destruct (IH (z + 1)%Z) as [N I].
    assert (N' : (0 <= Z.shiftr (shrink * discounted bits shrink ms) bits)%Z)
      by (apply Z.shiftr_nonneg; nia).
    split; [pose proof (Z.pow_nonneg 2 bits); nia|].
    rewrite Z.sub_diag, Rmult_0_l, Ropp_0, exp_0, Rmult_1_r, plus_IZR, mult_IZR.
    replace ((IZR m * IZR (2 ^ bits) + IZR (Z.shiftr (shrink * discounted bits shrink ms) bits))
             / IZR (2 ^ bits))
      with (IZR m + IZR (Z.shiftr (shrink * discounted bits shrink ms) bits) / IZR (2 ^ bits))
      by (field; lra).
    apply Rplus_le_compat_l.
    rewrite (row_ext _ (fun y => exp (- h) * exp (- (IZR (y - (z + 1)) * h)))).
    + rewrite row_scal.
      pose proof (shiftr_le (shrink * discounted bits shrink ms) bits Hb) as S.
      rewrite mult_IZR in S; apply IZR_le in N, Hs.
      apply Rle_trans with (IZR shrink / IZR (2 ^ bits)
                            * (IZR (discounted bits shrink ms) / IZR (2 ^ bits))).
      * apply Rmult_le_reg_r with (1 := P).
        unfold Rdiv at 1; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
        eapply Rle_trans; [exact S|right; field; lra].
      * assert (0 <= IZR (discounted bits shrink ms) / IZR (2 ^ bits))
          by (apply Rmult_le_pos; [exact N|left; apply Rinv_0_lt_compat, P]).
        pose proof (exp_pos (- h)); apply Rmult_le_compat; try assumption.
        apply Rmult_le_pos; [exact Hs|left; apply Rinv_0_lt_compat, P].
    + intros y; rewrite <- exp_plus, !minus_IZR, plus_IZR; f_equal; ring.
Qed.

Lemma row_zero t z ms :
  (forall y, (z <= y < z + Z.of_nat (length ms))%Z -> t y = 0) -> row t z ms = 0.
Proof.
  revert z; induction ms as [|m ms IH]; intros z H; cbn [row]; [reflexivity|].
  rewrite H, IH by (try intros y Hy; try apply H; cbn [length] in *; lia); ring.
Qed.

Lemma row_from t t' z ms :
  Forall (fun m => 0 <= m)%Z ms -> (forall y, (z <= y)%Z -> t y <= t' y) ->
  row t z ms <= row t' z ms.
Proof.
  intros G; revert z; induction G as [|m ms Hm G IH]; intros z H; cbn [row]; [lra|].
  apply Rplus_le_compat; [|apply IH; intros; apply H; lia].
  apply Rmult_le_compat_l; [apply IZR_le, Hm|apply H; lia].
Qed.

Lemma plus_part_id' x y : x = y -> 0 <= y -> plus_part x = y.
Proof. intros -> H; apply plus_part_id, H. Qed.

Lemma Forall_skipn {A} (P : A -> Prop) n (k : list A) : Forall P k -> Forall P (skipn n k).
Proof.
  intros F; rewrite <- (firstn_skipn n k), Forall_app in F; apply F.
Qed.

Theorem loss_delta_sound delta :
  loss_delta_at_most w bits step l eps delta = true ->
  profile (stands_for h (unit_of w) l) 1 (exp (Q2R eps)) <= Q2R delta.
Proof.
  pose proof (unit_pos w Hw) as Pu; destruct Hl as [Bl Ml].
  assert (P : 0 < IZR (2 ^ bits)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  unfold loss_delta_at_most; cbv zeta.
  set (n := Z.to_nat (Qfloor (eps / step) + 1 - first l)).
  set (start := (first l + Z.of_nat n)%Z); set (above := skipn n (masses l)).
  destruct (exp_of_rational bits (- step)) as [[shrink us]|] eqn:Es; [|discriminate].
  destruct (exp_of_rational bits (eps - _)) as [[c uc]|] eqn:Ec; [|discriminate].
  rewrite !andb_true_iff; intros [[[[Hc _] Start] Below] D].
  apply Z.leb_le in Hc; apply Qle_bool_R in Start, D.
  rewrite Q2R_mult, Q2R_integer in Start; rewrite Q2R_mult, !Q2R_integer in D.
  apply exp_of_rational_sound in Es as [Es _]; [|exact Hb]; rewrite Q2R_opp in Es.
  apply exp_of_rational_sound in Ec as [Ec _]; [|exact Hb].
  rewrite Q2R_minus, Q2R_mult, Q2R_integer in Ec.
  assert (Shrink : IZR (Z.max 0 shrink) / IZR (2 ^ bits) <= exp (- h)).
  { pose proof (exp_pos (- h)); destruct (Z.max_spec 0 shrink) as [[_ ->]|[_ ->]]; [exact Es|].
    unfold Rdiv; lra. }
  assert (Ma : Forall (fun m => 0 <= m)%Z above) by (apply Forall_skipn, Ml).
  destruct (discounted_sound (Z.max 0 shrink) start above Ma ltac:(lia) Shrink) as [N Disc].
  set (S := discounted bits (Z.max 0 shrink) above) in *.
  set (t := fun y => exp (- (IZR (y - start) * h))) in *.
  rewrite profile_stands by exact Pu; rewrite Rmult_1_r.
  (* no mass at or below eps counts *)
  assert (Split : row (kept h 1 (exp (Q2R eps))) (first l) (masses l)
                  = row (kept h 1 (exp (Q2R eps))) start above).
  { rewrite <- (firstn_skipn n (masses l)) at 1; rewrite row_app, row_zero.
    - fold above; rewrite firstn_length; destruct (Nat.le_gt_cases n (length (masses l))) as [L|G].
      + rewrite Nat.min_l by exact L; apply Rplus_0_l.
      + unfold above; rewrite skipn_all2 by lia; simpl; ring.
    - intros y [Hy1 Hy2]; rewrite firstn_length in Hy2; unfold kept; apply plus_part_0.
      apply orb_true_iff in Below as [Z0|Le]; [apply Nat.eqb_eq in Z0; lia|].
      apply Qle_bool_R in Le; rewrite Q2R_mult, Q2R_integer in Le.
      assert (Y : (y <= start - 1)%Z) by (unfold start; lia); apply IZR_le in Y.
      rewrite <- exp_plus; assert (1 <= exp (Q2R eps + - (IZR y * h))); [|lra].
      rewrite <- exp_0; apply exp_le; nra. }
  rewrite Split.
  assert (Kept : row (kept h 1 (exp (Q2R eps))) start above
                 <= IZR (sum above) - exp (Q2R eps - IZR start * h) * row t start above).
  { rewrite <- (row_sum start above), <- row_scal.
    replace (row (fun _ => 1) start above - row (fun y => exp (Q2R eps - IZR start * h) * t y) start above)
      with (row (fun y => 1 - exp (Q2R eps - IZR start * h) * t y) start above).
    - apply row_from; [exact Ma|]; intros y Hy; unfold kept; right; apply plus_part_id'.
      + unfold t; rewrite <- !exp_plus; do 2 f_equal; rewrite minus_IZR; ring.
      + unfold t; rewrite <- exp_plus, minus_IZR.
        assert (exp (Q2R eps - IZR start * h + - ((IZR y - IZR start) * h)) <= 1); [|lra].
        rewrite <- exp_0; apply exp_le; apply IZR_le in Hy; nra.
    - generalize (exp (Q2R eps - IZR start * h)) as u; generalize start.
      clear; induction above as [|k rest IH]; intros z u; simpl; [ring|].
      rewrite IH; ring. }
  assert (Low : IZR (Z.shiftr (c * S) bits) / IZR (2 ^ bits)
                <= exp (Q2R eps - IZR start * h) * row t start above).
  { pose proof (shiftr_le (c * S) bits Hb) as Sh; rewrite mult_IZR in Sh.
    pose proof (exp_pos (Q2R eps - IZR start * h)) as Pe; apply IZR_le in N, Hc.
    assert (I : 0 < / IZR (2 ^ bits)) by (apply Rinv_0_lt_compat, P).
    apply Rle_trans with (IZR c / IZR (2 ^ bits) * (IZR S / IZR (2 ^ bits))).
    - replace (IZR c / IZR (2 ^ bits) * (IZR S / IZR (2 ^ bits)))
        with (IZR c * IZR S / IZR (2 ^ bits) * / IZR (2 ^ bits)) by (field; lra).
      apply Rmult_le_compat_r; lra.
    - apply Rmult_le_compat; try exact Disc; try exact Ec; unfold Rdiv; nra. }
  rewrite Z.pow_add_r, mult_IZR in D by assumption.
  rewrite minus_IZR, mult_IZR, plus_IZR in D.
  apply Rmult_le_reg_r with (1 := Pu); apply Rmult_le_reg_r with (1 := P).
  unfold Rdiv at 1; rewrite (Rmult_assoc _ (/ unit_of w)), Rinv_l, Rmult_1_r by lra.
  rewrite Rmult_assoc; unfold unit_of in *.
  eapply Rle_trans; [|exact D].
  apply (Rmult_le_compat_r (IZR (2 ^ bits))) in Low; [|lra].
  unfold Rdiv in Low; rewrite Rmult_assoc, Rinv_l, Rmult_1_r in Low by lra.
  nra.
Qed.

End Delta.
