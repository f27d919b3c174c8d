(** A checker of certificates, on rational numbers and intervals: [check c = Some v] where the last
    node of [c] claims [v] of the whole run and every step follows. Definitions only; what the
    answer is worth is [check_sound] (Soundness.v). [None] says that nothing was decided. *)

From Coq Require Import List Bool QArith Qround PArith ZArith Lia FMapPositive Mergesort Orders.
From Dpledger Require Import Enclosure LossLists LossEnclosures LossComposition FixedPoint
  SampledLoss GaussianDecision ReplacedLoss CopiesLoss GroupLoss PureLoss LaplaceLoss SampledLaplace GeometricLoss
  DiscreteGaussianLoss LaplaceSums RenyiDecision
  Certificate.
Import ListNotations.
Open Scope Q_scope.

(** ** Arithmetic *)

(** Addition that keeps denominators short where one divides the other. *)
Definition plus (a b : Q) : Q :=
  let da := Zpos (Qden a) in
  let db := Zpos (Qden b) in
  if (Z.rem da db =? 0)%Z then Qmake (Qnum a + Qnum b * (da / db)) (Qden a)
  else if (Z.rem db da =? 0)%Z then Qmake (Qnum a * (db / da) + Qnum b) (Qden b)
  else a + b.

Definition times (n : positive) (a : Q) : Q := Qmake (Zpos n * Qnum a) (Qden a).
Definition maximum (a b : Q) : Q := if Qle_bool a b then b else a.
Definition minimum (a b : Q) : Q := if Qle_bool a b then a else b.
Definition positive_number (a : Q) : bool := negb (Qle_bool a 0).
Definition probability (a : Q) : bool := positive_number a && negb (Qle_bool 1 a).
Definition integer (n : positive) : Q := Qmake (Zpos n) 1.

Definition guard {A} (condition : bool) (a : A) : option A := if condition then Some a else None.

(** ** Rounding: bounds on a computed row, in the standard model of floating-point arithmetic *)

(** gamma_n = n u / (1 - n u) at u = 2^-53. *)
Definition unit_roundoff : Q := 1 # (2 ^ 53).
Definition few (n : positive) : bool := Pos.ltb n (2 ^ 53).
Definition gamma (n : positive) : Q := Qmake (Zpos n) (2 ^ 53 - n).

(** [a] + [lost] 2^-1074 is at most [b]: products lose no more by underflow. *)
Definition exceeds (a : Q) (lost : positive) (b : Q) : bool :=
  let gap := b - a in Z.leb (Zpos lost * Zpos (Qden gap)) (Z.shiftl (Qnum gap) 1074).

(** Bounds [m] and [e] hold of what is [size] long and [slip] off, and has lost so many products. *)
Definition bounded (size error slip : Q) (lost : positive) (m e : Q) : bool :=
  exceeds (size + slip) lost m && exceeds (error + slip) lost e.

Definition sum_bounded (size : Q) (depth lost : positive) (m e : Q) : bool :=
  few depth && Qle_bool 0 size && bounded size 0 (gamma depth * size) lost m e.

Definition leaf_width (rule : float_leaf) (m e : Q) : option positive :=
  match rule with
  | FloatExact width => guard (Qle_bool 0 m && Qle_bool 0 e) width
  | FloatCount most width =>
      guard (Pos.leb most (2 ^ 53) && Qle_bool (integer most) m && Qle_bool 0 e) width
  | FloatGrid most step width =>
      guard (Qle_bool most (step * integer (2 ^ 53)) && Qle_bool most m && Qle_bool 0 e) width
  | FloatMean bound count width => guard (sum_bounded bound (sum_depth count) (2 * width) m e) width
  | FloatTotal bound count width =>
      guard (Qle_bool 0 bound
             && sum_bounded (integer count * bound) (sum_depth count) (count * width) m e) width
  | FloatScores bound terms width =>
      guard (Qle_bool 0 bound
             && sum_bounded (bound * Qmake (root_above width) 1) (terms + 1) (terms * width) m e) width
  end.

(** [size] and [error]: of the row that goes in, [width] numbers. *)
Definition unary_width (rule : float_unary) (size error : Q) (width : positive) (m e : Q) :
  option positive :=
  match rule with
  | FloatShift shift =>
      let most := size + shift in
      guard (Qle_bool 0 shift && Qle_bool (most + unit_roundoff * most) m
             && Qle_bool (error + unit_roundoff * most) e) width
  | FloatScale factor =>
      guard (Qle_bool 0 factor &&
             (if Qeq_bool factor 1 then Qle_bool size m && Qle_bool error e
              else bounded (factor * size) (factor * error) (unit_roundoff * factor * size) width
                     m e)) width
  | FloatProduct factor wide =>
      guard (Qle_bool 0 factor && Z.eqb (Z.rem (Zpos wide) (Zpos width)) 0
             && bounded (factor * size) (factor * error) (unit_roundoff * factor * size) wide m e)
        wide
  | FloatMap norm height =>
      guard (Qle_bool 0 norm && few width
             && bounded (norm * size) (norm * error)
                  (gamma width * (norm * Qmake (root_above (Pos.min height width)) 1) * size)
                  (height * width) m e) height
  | FloatClip radius =>
      let most := minimum size radius in
      guard (Qle_bool 0 radius && few (2 * width + 16)
             && bounded most error (gamma (2 * width + 16) * most) width m e) width
  end.

Definition binary_width (rule : float_binary) (size error : Q) (width : positive)
  (size' error' : Q) (width' : positive) (m e : Q) : option positive :=
  match rule with
  | FloatAdd =>
      let most := size + size' in
      guard (Pos.eqb width width' && Qle_bool (most + unit_roundoff * most) m
             && Qle_bool (error + error' + unit_roundoff * most) e) width
  | FloatPair =>
      guard (Qle_bool (size + size') m && Qle_bool (error + error') e) (width + width')%positive
  | FloatRows =>
      guard (Pos.eqb width width' && Qle_bool (maximum size size') m
             && Qle_bool (maximum error error') e) width
  end.

(** The numbers in a row, if its bounds follow from its operations. *)
Fixpoint computed_width (t : operations) : option positive :=
  match t with
  | RoundLeaf rule m e => leaf_width rule m e
  | RoundUnary rule m e p =>
      match computed_width p with
      | Some width => unary_width rule (magnitude_of p) (error_of p) width m e
      | None => None
      end
  | RoundBinary rule m e p q =>
      match computed_width p, computed_width q with
      | Some width, Some width' =>
          binary_width rule (magnitude_of p) (error_of p) width
            (magnitude_of q) (error_of q) width' m e
      | _, _ => None
      end
  end.

(** ** Sensitivities: the square that a step may state, at least *)

Definition moved_twice (r : relation) : Q :=
  match r with ReplaceOne => 2 | _ => 1 end.

(** Means and minimisers move by both records of a pair, or by one and the mean of the others. *)
Definition both_count (r : relation) : Q :=
  match r with ZeroOutOne => 1 | _ => 2 end.

(** Relations of data with equally many records. *)
Definition keeps_count (r : relation) : bool := match r with AddRemoveOne => false | _ => true end.

Definition leaf_square (r : relation) (rule : leaf_rule) : option Q :=
  match rule with
  | Declared v => guard (Qle_bool 0 v) (v * v)
  | MeanOfBounded bound count =>
      guard (Qle_bool 0 bound) (let s := both_count r * bound / integer count in s * s)
  | MeanOfNonnegative bound count =>
      guard (Qle_bool 0 bound) (let s := bound / integer count in both_count r * (s * s))
  | SumOfBounded bound =>
      guard (Qle_bool 0 bound) (let s := moved_twice r * bound in s * s)
  | HistogramL1 => let s := match r with AddRemoveOne => 1 | _ => 2 end in Some (s * s)
  | Histogram => Some (match r with AddRemoveOne => 1 | _ => 2 end)
  | StronglyConvexArgmin lipschitz modulus tolerance count =>
      guard (Qle_bool 0 lipschitz && positive_number modulus && Qle_bool 0 tolerance)
        (let s := both_count r * lipschitz / (modulus * integer count)
                  + 2 * tolerance / modulus in s * s)
  | VerticalPredictions rows slope radius penalty modulus tolerance u v =>
      let stiff := penalty * modulus in
      let steepest := rows * (slope + penalty * rows * radius) in
      guard (keeps_count r && Qle_bool 0 rows && Qle_bool 0 slope && Qle_bool 0 radius
             && positive_number penalty && positive_number modulus && Qle_bool 0 tolerance
             && Qle_bool 0 u && Qle_bool 0 v
             && Qle_bool (steepest * steepest / stiff + 4 * (rows * rows * (radius * radius))) (u * u)
             && Qle_bool (tolerance * tolerance / stiff) (v * v))
        (let s := moved_twice r * u / 2 + v in s * s)
  | LabelDual slope gap tolerance =>
      guard (keeps_count r && Qle_bool 0 slope && Qle_bool 0 gap && Qle_bool 0 tolerance)
        (let s := match r with ReplaceOne => gap | _ => slope end + 2 * tolerance in s * s)
  end.

(** Operations that hold a row as it is. *)
Fixpoint exact (t : operations) : bool :=
  match t with
  | RoundLeaf (FloatExact _ | FloatCount _ _ | FloatGrid _ _ _) _ _ => true
  | RoundBinary (FloatPair | FloatRows) _ _ p q => exact p && exact q
  | _ => false
  end.

(** Operations whose error is bounded in l1, too: those, and those of one number. *)
Definition bounded_in_l1 (t : operations) : bool :=
  match computed_width t with
  | Some width => exact t || Pos.eqb width 1
  | None => false
  end.

Definition unary_square (rule : unary_rule) (s : Q) : option Q :=
  match rule with
  | Scaled factor => Some (factor * factor * s)
  | LinearMap norm => guard (Qle_bool 0 norm) (norm * norm * s)
  | Clip radius =>
      guard (Qle_bool 0 radius) (minimum s ((2 * radius) * (2 * radius)))
  | Lattice distance dimension u w =>
      guard (Qle_bool 0 distance && Qle_bool 0 u && Qle_bool 0 w && Qle_bool s (u * u)
             && Qle_bool ((2 * distance) * (2 * distance) * integer dimension) (w * w))
        ((u + w) * (u + w))
  | LatticeL1 distance dimension u =>
      guard (Qle_bool 0 distance && Qle_bool 0 u && Qle_bool s (u * u))
        ((u + 2 * distance * integer dimension) * (u + 2 * distance * integer dimension))
  | ComputedL1 rows u t =>
      guard (bounded_in_l1 t && Qle_bool 0 (error_of t) && Qle_bool 0 u && Qle_bool s (u * u))
        ((u + 2 * error_of t * integer rows) * (u + 2 * error_of t * integer rows))
  | Computed rows u w t =>
      guard (match computed_width t with Some _ => true | None => false end
             && Qle_bool 0 (error_of t) && Qle_bool 0 u && Qle_bool 0 w && Qle_bool s (u * u)
             && Qle_bool ((2 * error_of t) * (2 * error_of t) * integer rows) (w * w))
        ((u + w) * (u + w))
  end.

Definition binary_square (rule : binary_rule) (s t : Q) : option Q :=
  match rule with
  | Sum u v =>
      guard (Qle_bool 0 u && Qle_bool 0 v && Qle_bool s (u * u) && Qle_bool t (v * v))
        ((u + v) * (u + v))
  | Concatenation => Some (s + t)
  | Disjoint => Some (maximum s t)
  end.

Definition stated (needed : option Q) (squared : Q) : option Q :=
  match needed with
  | Some least => guard (Qle_bool least squared) squared
  | None => None
  end.

(** The squared sensitivity that a derivation concludes. *)
Fixpoint derived (r : relation) (d : derivation) : option Q :=
  match d with
  | Leaf rule squared => stated (leaf_square r rule) squared
  | Unary rule squared p =>
      match derived r p with
      | Some s => stated (unary_square rule s) squared
      | None => None
      end
  | Binary rule squared p q =>
      match derived r p, derived r q with
      | Some s, Some t => stated (binary_square rule s t) squared
      | _, _ => None
      end
  end.

(** ** Mechanisms *)

Definition relation_eqb (r s : relation) : bool :=
  match r, s with
  | ReplaceOne, ReplaceOne | ZeroOutOne, ZeroOutOne | AddRemoveOne, AddRemoveOne => true
  | _, _ => false
  end.

(** Rules of sensitivities that bound l1 too. *)
Fixpoint sums (d : derivation) : bool :=
  match d with
  | Leaf (Declared _) _ | Leaf HistogramL1 _ => true
  | Unary (Scaled _ | LinearMap _ | LatticeL1 _ _ _ | ComputedL1 _ _ _) _ p => sums p
  | Binary (Sum _ _ | Disjoint) _ p q => sums p && sums q
  | _ => false
  end.

(** Sums of vectors that are bounded one by one, and what brings nothing: a record more moves them by half
    of what replacing one does. *)
Fixpoint bounds_each_record (d : derivation) : bool :=
  match d with
  | Leaf (SumOfBounded _) _ => true
  | Leaf (VerticalPredictions _ _ _ _ _ _ _ _ | LabelDual _ _ _) _ => false
  | Leaf _ squared => Qeq_bool squared 0
  | Unary (Scaled _ | LinearMap _) _ p => bounds_each_record p
  | Unary _ squared p => Qeq_bool squared 0 && bounds_each_record p
  | Binary (Sum _ _ | Concatenation) _ p q => bounds_each_record p && bounds_each_record q
  | Binary _ squared p q => Qeq_bool squared 0 && (bounds_each_record p && bounds_each_record q)
  end.

(** Samples that hide a record under a relation. *)
Definition scheme_ok (s : scheme) (moved : relation) (d : derivation) : bool :=
  match s with
  | Poisson rate =>
      (negb (relation_eqb moved ReplaceOne) || bounds_each_record d)
      && positive_number rate && Qle_bool rate 1
  | FixedBatch size records => relation_eqb moved ReplaceOne && Pos.leb size records
  | WithReplacement _ _ => relation_eqb moved ReplaceOne
  end.

(** Samples under which Laplace noise is priced: those that hide all of a record. *)
Definition hides_all (s : scheme) (moved : relation) : bool :=
  match s, moved with
  | Poisson _, ReplaceOne | WithReplacement _ _, _ => false
  | _, _ => true
  end.

(** Rules that divide by the number of records that are there. *)
Fixpoint renormalised (d : derivation) : bool :=
  match d with
  | Leaf (MeanOfBounded _ _ | MeanOfNonnegative _ _ | StronglyConvexArgmin _ _ _ _) _ => true
  | Leaf _ _ => false
  | Unary _ _ p => renormalised p
  | Binary _ _ p q => renormalised p || renormalised q
  end.

(** A listed mechanism that is not made of parts by party, and repeats none that is. *)
Definition undivided (table : PositiveMap.t mechanism) (i : positive) : bool :=
  match PositiveMap.find i table with
  | Some (Repeated inner _) =>
      match PositiveMap.find inner table with Some (Parties _) | None => false | Some _ => true end
  | Some (Parties _) | None => false
  | Some _ => true
  end.

(** A step under [r] whose sensitivity follows; repetitions of such a step, and parts by party. *)
Definition mechanism_ok (r : relation) (table : PositiveMap.t mechanism) (m : mechanism) : bool :=
  match m with
  | GaussianStep moved squared d std | DiscreteGaussianStep moved squared d std =>
      relation_eqb moved r && positive_number std &&
      match derived r d with Some s => Qeq_bool s squared | None => false end
  | SampledStep drawn moved squared d std =>
      scheme_ok drawn moved d && relation_eqb moved r
      && negb (relation_eqb r AddRemoveOne && renormalised d) && positive_number std &&
      match derived r d with Some s => Qeq_bool s squared | None => false end
  | SampledLaplaceStep drawn moved squared d scale =>
      scheme_ok drawn moved d && hides_all drawn moved && relation_eqb moved r
      && positive_number scale && sums d &&
      match derived r d with Some s => Qeq_bool s squared | None => false end
  | LaplaceStep moved squared d scale | DiscreteLaplaceStep moved squared d scale
  | PureStep moved squared d scale =>
      relation_eqb moved r && positive_number scale && sums d &&
      match derived r d with Some s => Qeq_bool s squared | None => false end
  | MixtureStep moved constant e squared d rate std =>
      Qle_bool 0 rate && Qle_bool rate 1 && relation_eqb moved r
      && negb (relation_eqb r AddRemoveOne && renormalised d) && positive_number std &&
      match derived r e, derived r d with
      | Some s, Some t => Qeq_bool s constant && Qeq_bool t squared
      | _, _ => false
      end
  | AccumulatedStep moved squared d rate _ std =>
      scheme_ok (Poisson rate) moved d
      && negb (relation_eqb moved ReplaceOne) && relation_eqb moved r
      && negb (relation_eqb r AddRemoveOne && renormalised d) && positive_number std &&
      match derived r d with Some s => Qeq_bool s squared | None => false end
  | ResponseStep truth answers =>
      relation_eqb ReplaceOne r && probability truth && Pos.ltb 1 answers
  | Repeated inner _ =>
      match PositiveMap.find inner table with
      | Some (Repeated _ _) | None => false
      | Some _ => true
      end
  | Parties parts => forallb (fun part => forallb (undivided table) (snd part)) parts
  end.

(** ** Steps that nothing of a record reaches *)

(** Nobody is drawn. *)
Definition draws_nobody (s : scheme) : bool :=
  match s with Poisson rate => Qeq_bool rate 0 | _ => false end.

(** What is computed from a mixture's sample moves with somebody who is drawn. *)
Definition sample_moves (squared rate : Q) : bool := positive_number squared && positive_number rate.

(** Its sample holds nobody, or nobody in it moves what is computed; or it needs no noise. *)
Definition unmoved (m : mechanism) : bool :=
  match m with
  | SampledStep drawn _ squared _ _ | SampledLaplaceStep drawn _ squared _ _ =>
      Qeq_bool squared 0 || draws_nobody drawn
  | AccumulatedStep _ squared _ rate _ _ => Qeq_bool squared 0 || Qeq_bool rate 0
  | MixtureStep _ constant _ squared _ rate _ => negb (positive_number constant || sample_moves squared rate)
  | _ => still m
  end.

(** What such a step states follows as if it had noise, and everybody were drawn. *)
Definition drawing (s : scheme) : scheme := if draws_nobody s then Poisson 1 else s.

Definition as_if_drawn (m : mechanism) : mechanism :=
  match (if still m then with_noise m else m) with
  | SampledStep drawn moved squared d std => SampledStep (drawing drawn) moved squared d std
  | SampledLaplaceStep drawn moved squared d scale => SampledLaplaceStep (drawing drawn) moved squared d scale
  | AccumulatedStep moved squared d rate samples std =>
      AccumulatedStep moved squared d (if Qeq_bool rate 0 then 1 else rate) samples std
  | noisy => noisy
  end.

(** It costs what a step costs that moves by nothing. *)
Definition quiet (m : mechanism) : mechanism :=
  let nothing := Leaf (Declared 0) 0 in
  if unmoved m then
    match as_if_drawn m with
    | SampledStep drawn moved _ _ std => SampledStep drawn moved 0 nothing std
    | SampledLaplaceStep drawn moved _ _ scale => SampledLaplaceStep drawn moved 0 nothing scale
    | AccumulatedStep moved _ _ rate samples std => AccumulatedStep moved 0 nothing rate samples std
    | noisy => noisy
    end
  else m.

(** ** Exposures: how often which mechanism reads a record; by number, each number once *)

Definition exposure := list (positive * positive).

Module ByNumber <: TotalLeBool'.
  Definition t := (positive * positive)%type.
  Definition leb (x y : t) : bool := Pos.leb (fst x) (fst y).
  Infix "<=?" := leb (at level 70).
  Lemma leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof.
    intros x y; unfold leb; rewrite !Pos.leb_le; lia.
  Qed.
End ByNumber.
Module SortByNumber := Sort ByNumber.

Fixpoint coalesce (l : exposure) : exposure :=
  match l with
  | [] => []
  | (m, n) :: rest =>
      match coalesce rest with
      | (m', n') :: rest' =>
          if Pos.eqb m m' then (m, (n + n')%positive) :: rest' else (m, n) :: (m', n') :: rest'
      | [] => [(m, n)]
      end
  end.

Definition canonical (l : exposure) : exposure := coalesce (SortByNumber.sort l).

Definition repeated_exposure (n : positive) (e : exposure) : exposure :=
  map (fun mk => (fst mk, (n * snd mk)%positive)) e.

Fixpoint exposure_eqb (d e : exposure) : bool :=
  match d, e with
  | [], [] => true
  | (m, n) :: d', (m', n') :: e' => Pos.eqb m m' && Pos.eqb n n' && exposure_eqb d' e'
  | _, _ => false
  end.

(** What a record of party [p], or of nobody in particular, is exposed to. *)
Definition names (e : event) (p : positive) : bool :=
  match event_parties e with [] => true | named => existsb (Pos.eqb p) named end.

Definition view (events : list event) (p : positive) : exposure :=
  canonical (flat_map (fun e =>
    if names e p then [(event_mechanism e, event_times e)] else []) events).

Definition common (e : event) : bool := match event_parties e with [] => true | _ => false end.

Definition common_view (events : list event) : exposure :=
  canonical (flat_map (fun e =>
    if common e then [(event_mechanism e, event_times e)] else []) events).

(** Each party once that events name, by a table of those seen. *)
Fixpoint parties_of (named : event -> list positive) (events : list event) : PositiveMap.t unit :=
  match events with
  | [] => PositiveMap.empty unit
  | e :: rest => fold_right (fun p => PositiveMap.add p tt) (parties_of named rest) (named e)
  end.

Definition views (events : list event) : list exposure :=
  match PositiveMap.elements (parties_of event_parties events) with
  | [] => [common_view events]
  | named => map (fun p => view events (fst p)) named
  end.

(** The same where mechanisms that are made of parts by party are taken apart: a record meets its own
    party's part, as often as the whole is repeated. *)
Section Apart.

Variable table : PositiveMap.t mechanism.

Definition parts_for (p : positive) (parts : list (positive * list positive)) : list positive :=
  flat_map (fun part => if Pos.eqb (fst part) p then snd part else []) parts.

(** The parts of a mechanism by party, and how often it repeats them. *)
Definition divided (i : positive) : option (list (positive * list positive) * positive) :=
  match PositiveMap.find i table with
  | Some (Parties parts) => Some (parts, 1%positive)
  | Some (Repeated inner n) =>
      match PositiveMap.find inner table with
      | Some (Parties parts) => Some (parts, n)
      | _ => None
      end
  | _ => None
  end.

Definition taken_apart (p : positive) (e : event) : exposure :=
  match divided (event_mechanism e) with
  | Some (parts, n) => map (fun i => (i, (event_times e * n)%positive)) (parts_for p parts)
  | None => [(event_mechanism e, event_times e)]
  end.

Definition named_apart (e : event) : list positive :=
  event_parties e
  ++ match divided (event_mechanism e) with Some (parts, _) => map fst parts | None => [] end.

Definition view_apart (events : list event) (p : positive) : exposure :=
  canonical (flat_map (fun e => if names e p then taken_apart p e else []) events).

(** A party that releases nothing costs nothing. *)
Definition views_apart (events : list event) : list exposure :=
  filter (fun v => match v with [] => false | _ => true end)
    (match PositiveMap.elements (parties_of named_apart events) with
     | [] => [view_apart events 1]
     | named => map (fun p => view_apart events (fst p)) named
     end).

(** What the parts of a mechanism expose the records of each party to that runs any. *)
Definition exposures_by_party (parts : list (positive * list positive)) : list exposure :=
  flat_map (fun part =>
    match parts_for (fst part) parts with
    | [] => []
    | held => [canonical (map (fun i => (i, 1%positive)) held)]
    end) parts.

End Apart.

(** ** Nodes *)

(** What is known: a cost of what a record is exposed to, a claim about the whole run, or one about
    whatever a filter lets happen that has kept a budget. *)
Inductive judgement :=
  | Part (e : exposure) (statement : claim)
  | Whole (statement : claim)
  | Kept (budget statement : claim).

Definition statement_of (j : judgement) : claim :=
  match j with Part _ s | Whole s | Kept _ s => s end.

(** (sensitivity / noise)^2 *)
Definition gaussian_ratio (m : mechanism) : option Q :=
  match m with
  | GaussianStep _ squared _ std => Some (squared / (std * std))
  | _ => None
  end.

Definition discrete_gaussian_ratio (m : mechanism) : option Q :=
  match m with
  | DiscreteGaussianStep _ squared _ std => Some (squared / (std * std))
  | _ => None
  end.

Definition laplace_ratio (m : mechanism) : option Q :=
  match m with
  | LaplaceStep _ squared _ scale => Some (squared / (scale * scale))
  | _ => None
  end.

Definition discrete_laplace_ratio (m : mechanism) : option Q :=
  match m with
  | DiscreteLaplaceStep _ squared _ scale => Some (squared / (scale * scale))
  | _ => None
  end.

Definition is_whole (order : Q) : bool := Z.eqb (Z.rem (Qnum order) (Zpos (Qden order))) 0.

(** Samples of which Renyi DP is known. *)
Definition pays_sampled (s : scheme) (moved : relation) : bool :=
  match s with
  | Poisson _ => negb (relation_eqb moved ReplaceOne)
  | FixedBatch _ _ => true
  | WithReplacement _ _ => false
  end.

(** Steps whose costs in a notion bound what they do: Gaussian ones on all records in GDP and zCDP,
    discrete Gaussian ones in zCDP, Laplace noise in zCDP and pure DP, responses, pure steps and Laplace
    noise on samples in pure DP; in Renyi DP what pays in zCDP, and Gaussian ones on samples at whole
    orders. Approximate DP is of a part's own steps. *)
Definition pays_in (kind : notion) (m : mechanism) : bool :=
  match kind, m with
  | _, Parties _ => true
  | Gdp _, (GaussianStep _ _ _ _ | Repeated _ _) => true
  | (Zcdp _ | Rdp _ _), (GaussianStep _ _ _ _ | Repeated _ _) => true
  | (Zcdp _ | Rdp _ _), (LaplaceStep _ _ _ _ | DiscreteLaplaceStep _ _ _ _) => true
  | (Zcdp _ | Rdp _ _), DiscreteGaussianStep _ _ _ _ => true
  | Rdp order _, SampledStep drawn moved _ _ _ => is_whole order && pays_sampled drawn moved
  | PureDp _, (LaplaceStep _ _ _ _ | DiscreteLaplaceStep _ _ _ _) => true
  | PureDp _, (ResponseStep _ _ | SampledLaplaceStep _ _ _ _ _ | PureStep _ _ _ _ | Repeated _ _) => true
  | ApproxDp _ _, _ => true
  | _, _ => false
  end.

(** The same notion (at the same order or delta), at another cost. *)
Definition at_cost (c : Q) (n : notion) : notion :=
  match n with
  | Gdp _ => Gdp c
  | Zcdp _ => Zcdp c
  | PureDp _ => PureDp c
  | Rdp order _ => Rdp order c
  | ApproxDp delta _ => ApproxDp delta c
  end.

Definition same_kind (m n : notion) : bool :=
  match m, n with
  | Gdp _, Gdp _ | Zcdp _, Zcdp _ | PureDp _, PureDp _ => true
  | Rdp order _, Rdp order' _ => Qeq_bool order order'
  | _, _ => false
  end.

(** Costs of views in these two notions can be compared. *)
Definition comparable (m n : notion) : bool :=
  match m, n with
  | ApproxDp delta _, ApproxDp delta' _ => Qeq_bool delta delta'
  | _, _ => same_kind m n
  end.

Definition notion_eqb (m n : notion) : bool :=
  match m, n with
  | Gdp c, Gdp d | Zcdp c, Zcdp d | PureDp c, PureDp d => Qeq_bool c d
  | Rdp a c, Rdp b d | ApproxDp a c, ApproxDp b d => Qeq_bool a b && Qeq_bool c d
  | _, _ => false
  end.

(** About the same neighbours. *)
Definition same_unit (c d : claim) : bool :=
  relation_eqb (claim_relation c) (claim_relation d) && Pos.eqb (claim_group c) (claim_group d).

Definition claim_eqb (c d : claim) : bool :=
  same_unit c d && notion_eqb (claim_notion c) (claim_notion d).

(** The same claim at another cost. *)
Definition costing (c : Q) (s : claim) : claim :=
  Claim (claim_relation s) (claim_group s) (at_cost c (claim_notion s)).

(** ** The loss of a step, composed *)

(** Bits of the masses: as many as [digits] decimal digits take. *)
Definition mass_bits (digits : positive) : Z := (Z.log2 (10 ^ Zpos digits) + 1)%Z.

(** Bits of everything else: what differences of differences lose at this step, and some. *)
Definition working_bits (w : Z) (step : Q) : Z :=
  (w + 2 * Z.max 0 (Z.log2 (Zpos (Qden step)) - Z.log2 (Qnum step)) + 24)%Z.

(** The true answer to another one's probability, and the other way round. *)
Definition odds (truth : Q) (answers : positive) : Q :=
  truth * (integer answers - 1) / (1 - truth).

(** How far whole numbers move whose distance is at most a root. *)
Definition whole_root (squared : Q) : Q := inject_Z (Z.sqrt (Qfloor squared)).

(** How much likelier an answer may become, in units of 2^-p. *)
Definition odds_above (p : Z) (truth : Q) (answers : positive) : Z :=
  let most := maximum (odds truth answers) (/ odds truth answers) in
  round_up (Qnum most * 2 ^ p) (Zpos (Qden most)).

(** exp of the root of a ratio, likewise. *)
Definition root_odds (p : Z) (ratio : Q) : option Z :=
  let far := LaplaceLoss.root_above p ratio in
  if Qle_bool 0 far && Qle_bool ratio (far * far) then
    match exp_of_rational p far with Some (_, u) => Some u | None => None end
  else None.

(** How many answers differ at all: the true ones, of either data set. *)
Definition share_of (truth : Q) (answers : positive) : Q :=
  truth + (1 - truth) / (integer answers - 1).

(** One loss for both orders. *)
Definition twice (l : option whole_loss) : option (whole_loss * whole_loss) :=
  match l with Some l => Some (l, l) | None => None end.

(** What neighbours differ in, as a Gaussian step on a sample meets it: a record that it sees with some
    probability, or it is not there; records of a batch or of a Poisson sample, and others in their
    places, which may be told; records that each of so many draws may be, and others in their places;
    several records, each of which a Poisson sample sees with some probability, or none of them is there. *)
Inductive contrast :=
  | Removed (rate : Q)
  | Batched (share : Q) (group : positive)
  | Told (share : Q) (group : positive)
  | Exchanged (rate : Q) (group : positive)
  | Copied (size : positive) (rate : Q)
  | Gathered (rate : Q) (group : positive).

(** A batch's share of the records, at most all of them. *)
Definition share_of_batch (size records : positive) : Q :=
  if Pos.ltb size records then Zpos size # records else 1.

(** So many records, or copies of records, of which a sample sees each with that probability. *)
Definition seen_by_each (rate : Q) (number : positive) : contrast :=
  if Pos.eqb number 1 then Removed rate else Gathered rate number.

(** More copies take too long. *)
Definition most_copies : positive := 64.

(** A batch holds each of several records as one of so many at most, whichever of the others it holds. *)
Definition one_of (group size records : positive) : Z := ((Zpos records - Zpos group + 1) / Zpos size)%Z.

(** So many of them are then in it, at most, as draws of one record; where there is no other one, or they
    are too many for those, all of them count as drawn with any of them. *)
Definition counted (group size records : positive) : bool :=
  let each := one_of group size records in
  Pos.ltb 1 group && Z.leb 2 each && Z.leb (Zpos group) (8 * each).

(** What so many records at once differ in. With replacement, as if they filled every place of a batch
    where they are more than half of all. *)
Definition contrast_of (group : positive) (drawn : scheme) (moved : relation) : contrast :=
  match drawn, moved with
  | FixedBatch size records, _ =>
      if counted group size records then Copied group (1 # Z.to_pos (one_of group size records))
      else Batched (share_of_batch (group * size) records) group
  | WithReplacement size records, _ =>
      if Pos.leb (2 * group) records then Copied size (Zpos group # records) else Told 1 size
  | Poisson rate, ReplaceOne => Exchanged rate group
  | Poisson rate, _ => seen_by_each rate group
  end.

(** The squared distance that so many records move together by, each of them by a root of [squared]. *)
Definition further (group : positive) (squared : Q) : Q := integer group * integer group * squared.

(** The probability that any of so many records takes part. *)
Definition any_of (rate : Q) (group : positive) : Q :=
  let most := (Zpos (Qden rate) ^ Zpos group)%Z in
  (most - (Zpos (Qden rate) - Qnum rate) ^ Zpos group) # Z.to_pos most.

(** The probability that a sample holds any of them, at most; not asked where it may hold them often. *)
Definition share_drawn (group : positive) (s : scheme) : Q :=
  match s with
  | Poisson rate => any_of rate group
  | FixedBatch size records => share_of_batch (group * size) records
  | WithReplacement _ _ => 1
  end.

(** The losses of a step whose (sensitivity / noise)^2 this is, in both orders. *)
Definition contrast_losses (x : contrast) (w bits : Z) (ratio step : Q) (dense tail : Z) :
  option (whole_loss * whole_loss) :=
  match x with
  | Removed rate => step_losses w bits ratio rate step dense tail
  | Batched share group =>
      twice (batch_losses w bits (further group ratio) share step dense tail)
  | Told share group => twice (told_losses w bits (further group ratio) share step dense tail)
  | Exchanged rate group =>
      twice (replaced_losses w bits (further group ratio) (any_of rate group) step dense tail)
  | Copied size rate => twice (copies_losses w bits ratio size rate step dense tail)
  | Gathered rate group => gathered_losses w bits ratio group rate step dense tail
  end.

Definition share_met (x : contrast) : Q :=
  match x with
  | Removed share | Batched share _ | Told share _ | Copied _ share | Gathered share _ => share
  | Exchanged rate group => any_of rate group
  end.

(** By how many of its distances a step moves two laws whose sample holds all that they differ in. *)
Definition whole_shift (x : contrast) : option positive :=
  match x with
  | Removed _ => guard (Qle_bool 1 (share_met x)) 1%positive
  | Batched _ group | Told _ group | Exchanged _ group | Gathered _ group => guard (Qle_bool 1 (share_met x)) group
  | Copied _ _ => None
  end.

(** The same of Laplace noise, under the relations under which a sample is priced. *)
Definition laplace_sample_losses (group : positive) (drawn : scheme) (w bits : Z) (ratio step : Q)
  (dense tail : Z) : option (whole_loss * whole_loss) :=
  let share := share_drawn group drawn in
  match drawn with
  | Poisson _ => laplace_step_losses w bits (further group ratio) share step dense tail
  | FixedBatch _ _ => twice (laplace_batch_losses w bits (further group ratio) share step dense tail)
  | WithReplacement _ _ => None
  end.

(** (distance / noise)^2 of what a mixture computes from all records, and from a sample, for so many
    records at once: [share] of the noise's variance is for the former. Another record may stand where
    one that is zeroed out would, twice as far away. *)
Definition constant_ratio (group : positive) (share constant std : Q) : Q :=
  further group constant / (share * (std * std)).
Definition sampled_ratio (group : positive) (moved : relation) (share squared std : Q) : Q :=
  further (match moved with ZeroOutOne => 2 * group | _ => group end) squared
  / ((1 - share) * (std * std)).

(** Any of so many records is drawn with that probability at most. *)
Definition drawn_at_most (rate : Q) (group : positive) : Q := minimum (integer group * rate) 1.

(** A sample where records are replaced is told, unless a drawn one is known to move it no further. *)
Definition contrast_of_mixture (rate : Q) (group : positive) (moved : relation) (d : derivation) : contrast :=
  let q := drawn_at_most rate group in
  match moved with
  | AddRemoveOne => Removed q
  | ZeroOutOne => Batched q 1
  | ReplaceOne => if linear_in_records d then Batched q 1 else Told q 1
  end.

(** What so many records at once differ in, as a Gaussian step on samples meets it, and
    (distance / noise)^2 of one of them. *)
Definition contrast_met (group : positive) (m : mechanism) : option (contrast * Q) :=
  match m with
  | SampledStep drawn moved squared _ std =>
      Some (contrast_of group drawn moved, squared / (std * std))
  | AccumulatedStep _ squared _ rate samples std =>
      guard (Pos.leb (group * samples) most_copies)
        (seen_by_each rate (group * samples), squared / (std * std))
  | _ => None
  end.

(** (distance / noise)^2 of a Gaussian step that no sample hides anything of. *)
Definition whole_ratio (group : positive) (m : mechanism) : option Q :=
  match m with
  | GaussianStep _ squared _ std => Some (further group (squared / (std * std)))
  | MixtureStep _ constant _ squared _ rate std =>
      guard (negb (sample_moves squared rate)) (further group (constant / (std * std)))
  | _ =>
      if unmoved m then Some 0 else
      match contrast_met group m with
      | Some (x, ratio) => option_map (fun n => further n ratio) (whole_shift x)
      | None => None
      end
  end.

(** How much of a mixture's noise hides what is computed from all records, if that moves at all. *)
Definition share_for (constant share : Q) : Q := if positive_number constant then share else 0.

(** The losses of one step for so many records at once, in both orders; a pure step's is symmetric.
    Gaussian steps of which no sample hides anything, and what nothing moves, have none of their own: of
    these, mu^2 adds up; nor does what a mixture computes from all records. *)
Definition losses_of (group : positive) (share : Q) (m : mechanism) (w bits : Z) (step : Q) (dense tail : Z) :
  option (whole_loss * whole_loss) :=
  match whole_ratio group m with
  | Some _ => None
  | None =>
  match m with
  | SampledStep _ _ _ _ _ | AccumulatedStep _ _ _ _ _ _ =>
      match contrast_met group m with
      | Some (x, ratio) => if positive_number ratio then contrast_losses x w bits ratio step dense tail else None
      | None => None
      end
  | SampledLaplaceStep drawn _ squared _ scale =>
      laplace_sample_losses group drawn w bits (squared / (scale * scale)) step dense tail
  | LaplaceStep _ squared _ scale =>
      twice (laplace_loss w bits (further group squared / (scale * scale)) step dense)
  | DiscreteLaplaceStep _ squared _ scale =>
      twice (geometric_loss w bits scale (Z.sqrt (Qfloor (further group squared))) step)
  | DiscreteGaussianStep _ squared _ std =>
      twice (discrete_gaussian_loss w bits std (Qfloor (further group squared)) step)
  | MixtureStep moved constant _ squared d rate std =>
      contrast_losses (contrast_of_mixture rate group moved d) w bits
        (sampled_ratio group moved (share_for constant share) squared std) step dense tail
  | ResponseStep truth answers =>
      twice (odds_loss w bits (odds_above (w + bits + SampledLoss.guard) truth answers)
               (share_of truth answers) step)
  | PureStep _ squared _ scale =>
      match root_odds (w + bits + SampledLoss.guard) (further group squared / (scale * scale)) with
      | Some e => twice (odds_loss w bits e 1 step)
      | None => None
      end
  | _ => None
  end
  end.

(** Laplace steps of one scale, and choices of how many of their signs are +: more take too long. *)
Definition most_shifts : positive := 4096.
Definition most_knots : Z := 2 ^ 16.

(** A mechanism, how often, and the level at which it enters. *)
Definition part := (positive * positive * nat)%type.

Fixpoint level_of (parts : list part) (i : positive) : nat :=
  match parts with
  | [] => O
  | (j, _, level) :: rest => if Pos.eqb i j then level else level_of rest i
  end.

(** The step of the lattice at a level. *)
Fixpoint step_at (step : Q) (doublings : list nat) (level : nat) : Q :=
  let here := Nat.iter (hd O doublings) (fun s => 2 * s) step in
  match level with O => here | S below => step_at here (tl doublings) below end.

Section Losses.

Variables (table : PositiveMap.t mechanism) (group : positive).

(** How much of its noise a mixture's step has for what it computes from all records. *)
Variable share : positive -> Q.

(** The step that a mechanism repeats, and how often. *)
Definition repeated_step (m : positive) : option (positive * positive) :=
  match PositiveMap.find m table with
  | Some (Repeated inner n) => guard (undivided table m) (inner, n)
  | Some _ => guard (undivided table m) (m, 1%positive)
  | None => None
  end.

(** Where nothing is said, half of it. *)
Fixpoint split_of (shares : list (positive * Q)) (i : positive) : Q :=
  match shares with
  | [] => 1 # 2
  | (m, share) :: rest =>
      match repeated_step m with
      | Some (inner, _) => if Pos.eqb i inner then share else split_of rest i
      | None => split_of rest i
      end
  end.

Fixpoint steps_in (parts : list part) : option (list part) :=
  match parts with
  | [] => Some []
  | (m, often, level) :: rest =>
      match repeated_step m, steps_in rest with
      | Some (inner, n), Some found => Some ((inner, (often * n)%positive, level) :: found)
      | _, _ => None
      end
  end.

Section Steps.

Variables (w bits dense tail : Z) (lattice : positive -> Q).

Definition losses_at (i : positive) : option (whole_loss * whole_loss) :=
  match PositiveMap.find i table with
  | Some m => losses_of group (share i) m w bits (lattice i) dense tail
  | None => None
  end.

(** Each step with its losses. *)
Fixpoint each_loss (counts : exposure) :
  option (list (positive * positive * (whole_loss * whole_loss))) :=
  match counts with
  | [] => Some []
  | (i, n) :: rest =>
      match losses_at i, each_loss rest with
      | Some losses, Some found => Some ((i, n, losses) :: found)
      | _, _ => None
      end
  end.

End Steps.

(** How many answers of a step differ at most: every record's own. *)
Definition answers_met (i : positive) : positive :=
  match PositiveMap.find i table with Some (ResponseStep _ _) => group | _ => 1%positive end.

(** (distance / noise)^2 of what a step computes from all records, for so many of them. *)
Definition normal_ratio (i : positive) : option Q :=
  match PositiveMap.find i table with
  | Some m =>
      match whole_ratio group m, m with
      | None, MixtureStep _ constant _ _ _ _ std =>
          guard (positive_number constant) (constant_ratio group (share i) constant std)
      | ratio, _ => ratio
      end
  | None => None
  end.

(** This mu^2, rounded up, in units of 2^-p. *)
Definition mu_squared_above (p : Z) (i : positive) : option Z :=
  match normal_ratio i with
  | Some ratio => Some (round_up (Qnum ratio * 2 ^ p) (Zpos (Qden ratio)))
  | None => None
  end.

(** Those that compute nothing else have no other loss. *)
Definition lossless (i : positive) : bool :=
  match PositiveMap.find i table with
  | Some m => match whole_ratio group m with Some _ => true | None => false end
  | None => false
  end.

(** The mu^2 of all of these, and the steps that have losses. *)
Fixpoint summed (p : Z) (counts : exposure) : Z * exposure :=
  match counts with
  | [] => (0%Z, [])
  | (i, n) :: rest =>
      let (sum, others) := summed p rest in
      (match mu_squared_above p i with Some one => Zpos n * one + sum | None => sum end%Z,
       if lossless i then others else (i, n) :: others)
  end.

(** The last level at which one of them enters. *)
Definition normal_level (steps : list part) : nat :=
  fold_right (fun s last =>
    match mu_squared_above 0 (fst (fst s)) with Some _ => Nat.max (snd s) last | None => last end)
    O steps.

(** The losses of one Gaussian step with that mu^2. *)
Definition normal_losses (w bits sum : Z) (step : Q) (dense tail : Z) :
  option (list (whole_loss * whole_loss)) :=
  if (sum <=? 0)%Z then Some []
  else
    match step_losses w bits (Qmake sum (Z.to_pos (2 ^ (w + bits)))) 1 step dense tail with
    | Some l => Some [l]
    | None => None
    end.

(** delta at [epsilon] of all steps is at most [delta], in either order; it is 0 if none moves. *)
Definition composition_at_most (steps : list part) (step : Q) (doublings : list nat)
  (dense digits : positive) (cut : Z) (delta epsilon : Q) : bool :=
  let w := mass_bits digits in
  let bits := working_bits w step in
  let cut' := (cut * 2 ^ w / 10 ^ Zpos digits)%Z in
  let (sum, counts) := summed (w + bits) (canonical (map fst steps)) in
  let number :=
    fold_right (fun mn n => Zpos (snd mn * answers_met (fst mn)) + n)%Z
      (if (0 <? sum)%Z then 1 else 0)%Z counts in
  let tail := Z.max 1 (cut' / (8 * number))%Z in
  let lattice i := step_at step doublings (level_of steps i) in
  let last := normal_level steps in
  let entry_of side (found : positive * positive * (whole_loss * whole_loss)) :=
    let '(i, n, losses) := found in
    Entry (level_of steps i) (lattice i) (side losses) (n * answers_met i) in
  let normal_entry side losses := Entry last (step_at step doublings last) (side losses) 1 in
  let fuel := (Pos.to_nat (Pos.size (Z.to_pos number)) + length doublings
               + fold_right (fun s => Nat.max (snd s)) O steps + 2)%nat in
  match normal_losses w bits sum (step_at step doublings last) (Zpos dense) tail,
        each_loss w bits (Zpos dense) tail lattice counts with
  | Some [], Some [] => Qle_bool 0 epsilon && Qle_bool 0 delta
  | Some normal, Some found =>
      let small side :=
        match LossComposition.composed w fuel cut' step doublings 0
                (map (normal_entry side) normal ++ map (entry_of side) found) []
        with
        | Some (step', l) => loss_delta_at_most w bits step' l epsilon delta
        | None => false
        end in
      small fst && small snd
  | _, _ => false
  end.

(** The shifts of Laplace steps in scales of their noise, rounded up, in units of 2^-p, and how often
    each. *)
Fixpoint laplace_groups (p : Z) (counts : exposure) : option (list (Z * nat)) :=
  match counts with
  | [] => Some []
  | (i, n) :: rest =>
      match PositiveMap.find i table, laplace_groups p rest with
      | Some (LaplaceStep _ squared _ scale), Some found =>
          let ratio := further group squared / (scale * scale) in
          let far := LaplaceLoss.root_above p ratio in
          if Pos.leb n most_shifts && Qle_bool 0 far && Qle_bool ratio (far * far)
          then Some ((Qnum far, Pos.to_nat n) :: found) else None
      | _, _ => None
      end
  end.

(** Bits that leave the exponentials of all shifts, and delta, right to some 150 of them. *)
Definition bits_of_shifts (rough : list (Z * nat)) (delta : Q) : Z :=
  (192 + 2 * (Z.max 0 (group_sum rough / 2 ^ 8) + 1)
   + Z.max 0 (Z.log2 (Zpos (Qden delta)) - Z.log2 (Qnum delta)))%Z.

(** delta of these Laplace steps at [epsilon] is at most [delta]. *)
Definition laplace_at_most (counts : exposure) (delta epsilon : Q) : bool :=
  match laplace_groups 8 counts with
  | Some rough =>
      let p := bits_of_shifts rough delta in
      match laplace_groups p counts with
      | Some groups =>
          Z.leb (fold_right (fun en k => (Z.of_nat (snd en) + 1) * k)%Z 1%Z groups) most_knots
          && laplace_delta_at_most p groups (Qnum epsilon * 2 ^ p / Zpos (Qden epsilon))%Z delta
      | None => false
      end
  | None => false
  end.

End Losses.

Section Nodes.

(** What a record can be exposed to: mechanisms as they are, or taken apart by party. *)
Variables (table : PositiveMap.t mechanism) (r : relation) (seen seen_apart : list exposure).

(** Whether all mechanisms pay in a notion. *)
Variable all_pay_in : notion -> bool.

(** A leaf: (sensitivity / noise)^2, or half of it. *)
Definition leaf (ratio : mechanism -> option Q) (m : positive) (conclude : Q -> notion) :
  option judgement :=
  match PositiveMap.find m table with
  | Some step =>
      match ratio step with
      | Some cost => Some (Part [(m, 1%positive)] (Claim r 1 (conclude cost)))
      | None => None
      end
  | None => None
  end.

(** What a step costs in a notion, at most, if that is enough: Laplace noise and a response in pure DP. *)
Definition stated_leaf (m : positive) (enough : mechanism -> bool) (cost : notion) : option judgement :=
  match PositiveMap.find m table with
  | Some step => guard (enough step) (Part [(m, 1%positive)] (Claim r 1 cost))
  | None => None
  end.

Definition pure_leaf (m : positive) (enough : mechanism -> bool) (eps : Q) : option judgement :=
  stated_leaf m enough (PureDp eps).
Definition renyi_leaf (m order : positive) (enough : mechanism -> bool) (eps : Q) : option judgement :=
  stated_leaf m enough (Rdp (integer order) eps).

Definition laplace_suffices (eps : Q) (m : mechanism) : bool :=
  match m with
  | LaplaceStep _ squared _ scale =>
      Qle_bool 0 eps && Qle_bool (squared / (scale * scale)) (eps * eps)
  | _ => false
  end.

Definition discrete_laplace_suffices (eps : Q) (m : mechanism) : bool :=
  match m with
  | DiscreteLaplaceStep _ squared _ scale => Qle_bool (whole_root squared / scale) eps
  | _ => false
  end.

Definition response_suffices (eps : Q) (m : mechanism) : bool :=
  match m with
  | ResponseStep truth answers =>
      at_most_exp (odds truth answers) eps && at_most_exp (/ odds truth answers) eps
  | _ => false
  end.

(** On a sample, of which a record is part with some probability. *)
Definition sample_suffices (of : scheme -> bool) (eps : Q) (m : mechanism) : bool :=
  match m with
  | SampledLaplaceStep drawn _ squared _ scale =>
      let ratio := squared / (scale * scale) in
      of drawn && (Qle_bool 0 eps && Qle_bool ratio (eps * eps) || amplified_at_most ratio (share_drawn 1 drawn) eps)
  | _ => false
  end.

Definition is_poisson (s : scheme) : bool := match s with Poisson _ => true | _ => false end.
Definition is_fixed_batch (s : scheme) : bool := match s with FixedBatch _ _ => true | _ => false end.

(** On a sample, in Renyi DP at a whole order. *)
Definition poisson_renyi_suffices (order : positive) (eps : Q) (m : mechanism) : bool :=
  match m with
  | SampledStep (Poisson rate) moved squared _ std =>
      pays_sampled (Poisson rate) moved && Qle_bool 0 eps && order_fits order
      && (unmoved m || poisson_renyi_at_most (squared / (std * std)) rate order eps)
  | _ => false
  end.

Definition batch_renyi_suffices (order : positive) (eps : Q) (m : mechanism) : bool :=
  match m with
  | SampledStep (FixedBatch size records) _ squared _ std =>
      Qle_bool 0 eps && order_fits order
      && (unmoved m || batch_renyi_at_most (squared / (std * std)) (share_of_batch size records) order eps)
  | _ => false
  end.

Definition pure_step_suffices (eps : Q) (m : mechanism) : bool :=
  match m with
  | PureStep _ squared _ scale => Qle_bool 0 eps && Qle_bool (squared / (scale * scale)) (eps * eps)
  | _ => false
  end.

(** Costs of parts add up; all of them in the first one's notion, towards as many records. *)
Fixpoint composed (counts : list positive) (premises : list judgement) (first : claim) :
  option (exposure * Q) :=
  match counts, premises with
  | [], [] => Some ([], 0)
  | n :: counts', Part e s :: premises' =>
      if same_unit s first && same_kind (claim_notion s) (claim_notion first) then
        match composed counts' premises' first with
        | Some (rest, total) =>
            Some (repeated_exposure n e ++ rest,
                  plus (times n (cost_of_notion (claim_notion s))) total)
        | None => None
        end
      else None
  | _, _ => None
  end.

Definition composition (counts : list positive) (premises : list judgement) : option judgement :=
  match premises with
  | [] => None
  | first :: _ =>
      match composed counts premises (statement_of first) with
      | Some (e, total) => Some (Part (canonical e) (costing total (statement_of first)))
      | None => None
      end
  end.

Definition repeated (m : positive) (premises : list judgement) : option judgement :=
  match PositiveMap.find m table, premises with
  | Some (Repeated inner n), [Part [(i, k)] s] =>
      guard (Pos.eqb i inner && Pos.eqb k 1 && same_kind (claim_notion s) (claim_notion s))
        (Part [(m, 1%positive)] (costing (times n (cost_of_notion (claim_notion s))) s))
  | _, _ => None
  end.

(** The dearest of premises in the first one's notion, with all that they are about. *)
Fixpoint dearest (premises : list judgement) (first : claim) : option (list exposure * Q) :=
  match premises with
  | [] => Some ([], 0)
  | Part e s :: premises' =>
      if same_unit s first && comparable (claim_notion s) (claim_notion first) then
        match dearest premises' first with
        | Some (covered, most) =>
            Some (e :: covered, maximum (cost_of_notion (claim_notion s)) most)
        | None => None
        end
      else None
  | _ :: _ => None
  end.

(** The same of what each party's part of a mechanism exposes its records to. *)
Fixpoint exposures_eqb (d e : list exposure) : bool :=
  match d, e with
  | [], [] => true
  | x :: d', y :: e' => exposure_eqb x y && exposures_eqb d' e'
  | _, _ => false
  end.

Definition by_party (m : positive) (premises : list judgement) : option judgement :=
  match PositiveMap.find m table, premises with
  | Some (Parties parts), first :: _ =>
      match dearest premises (statement_of first) with
      | Some (covered, most) =>
          guard (exposures_eqb covered (exposures_by_party parts))
            (Part [(m, 1%positive)] (costing most (statement_of first)))
      | None => None
      end
  | _, _ => None
  end.

(** Every one of these is covered, and nothing else is. *)
Definition same_exposures (covered vs : list exposure) : bool :=
  forallb (fun v => existsb (exposure_eqb v) covered) vs
  && forallb (fun e => existsb (exposure_eqb e) vs) covered.

(** What all steps must pay in: samples have costs in Renyi DP towards one record, as zCDP has them of
    none. *)
Definition paid (s : claim) : notion :=
  match claim_notion s with
  | Rdp _ _ as kind => if relation_eqb (claim_relation s) r && Pos.eqb (claim_group s) 1 then kind else Zcdp 0
  | kind => kind
  end.

(** From what a record of each party is exposed to, to the run. *)
Definition all_events (premises : list judgement) : option judgement :=
  match premises with
  | [] => None
  | first :: _ =>
      match dearest premises (statement_of first) with
      | Some (covered, most) =>
          guard (all_pay_in (paid (statement_of first))
                 && (same_exposures covered seen || same_exposures covered seen_apart))
            (Whole (costing most (statement_of first)))
      | None => None
      end
  end.

Definition weaken (cost : Q) (s : claim) : option claim :=
  guard (Qle_bool (cost_of_notion (claim_notion s)) cost) (costing cost s).

(** k records: k^2 times the cost, k times in pure DP. *)
Definition enlarged (k : positive) (group : positive) (r' : relation) (s : claim) : option claim :=
  if Pos.eqb (claim_group s) 1 then
    match claim_notion s with
    | Gdp c => Some (Claim r' group (Gdp (integer k * integer k * c)))
    | Zcdp c => Some (Claim r' group (Zcdp (integer k * integer k * c)))
    | PureDp c => Some (Claim r' group (PureDp (integer k * c)))
    | _ => None
    end
  else None.

(** What follows from one claim, whatever run it is about. *)
Definition concluded (rule : rule) (s : claim) : option claim :=
  match rule, s with
  | Weaken cost, _ => weaken cost s
  | Restate, _ => Some s
  | Group size, _ => enlarged size size (claim_relation s) s
  | ReplaceOneRule, _ =>
      match claim_relation s with
      | ReplaceOne => None
      | _ => enlarged 2 1 ReplaceOne s
      end
  | ZcdpRdp order, Claim r' g (Zcdp rho) =>
      guard (negb (Qle_bool order 1)) (Claim r' g (Rdp order (order * rho)))
  | PureApproxDp delta, Claim r' g (PureDp eps) =>
      guard (probability delta) (Claim r' g (ApproxDp delta eps))
  | RdpApproxDp delta eps, Claim r' g (Rdp order tau) =>
      guard (probability delta && Qle_bool 0 eps && (Qle_bool tau 0 || order_suffices order tau delta eps))
        (Claim r' g (ApproxDp delta eps))
  | GdpApproxDp delta eps, Claim r' g (Gdp mu_squared) =>
      guard (probability delta && (Qle_bool mu_squared 0 && Qle_bool 0 eps
                                   || gaussian_delta_at_most mu_squared eps delta))
        (Claim r' g (ApproxDp delta eps))
  | _, _ => None
  end.

(** A budget above what the list at hand costs one record, which is then one that could happen. *)
Definition filter (budget : Q) (s : claim) : option judgement :=
  let kept := Claim (claim_relation s) 1 (at_cost budget (claim_notion s)) in
  guard (Pos.eqb (claim_group s) 1 && Qle_bool (cost_of_notion (claim_notion s)) budget
         && match claim_notion s with
            | Gdp _ | Zcdp _ => true
            | Rdp order _ => negb (Qle_bool order 1)
            | _ => false
            end) (Kept kept kept).

Definition privacy_loss (parts : list part) (shares : list (positive * Q)) (group : positive) (step : Q)
  (doublings : list nat) (dense digits : positive) (cut : Z) (delta eps : Q) : option judgement :=
  match steps_in table parts with
  | Some steps =>
      guard (positive_number step && probability delta && forallb (fun ms => probability (snd ms)) shares
             && composition_at_most table group (split_of table shares) steps step doublings dense digits cut delta eps)
        (Part (canonical (map fst parts)) (Claim r group (ApproxDp delta eps)))
  | None => None
  end.

Definition laplace_losses (parts : list (positive * positive)) (group : positive) (delta eps : Q) :
  option judgement :=
  match steps_in table (map (fun mn => (mn, O)) parts) with
  | Some steps =>
      guard (probability delta && laplace_at_most table group (canonical (map fst steps)) delta eps)
        (Part (canonical parts) (Claim r group (ApproxDp delta eps)))
  | None => None
  end.

(** Rules about mechanisms, and what a record is exposed to. *)
Definition of_parts (rule : rule) (premises : list judgement) : option judgement :=
  match rule, premises with
  | GaussianGdp m, [] => leaf gaussian_ratio m Gdp
  | GaussianZcdp m, [] => leaf gaussian_ratio m (fun c => Zcdp (c / 2))
  | LaplaceZcdp m, [] => leaf laplace_ratio m (fun c => Zcdp (c / 2))
  | DiscreteLaplaceZcdp m, [] => leaf discrete_laplace_ratio m (fun c => Zcdp (c / 2))
  | DiscreteGaussianZcdp m, [] => leaf discrete_gaussian_ratio m (fun c => Zcdp (c / 2))
  | LaplacePure m eps, [] => pure_leaf m (laplace_suffices eps) eps
  | DiscreteLaplacePure m eps, [] => pure_leaf m (discrete_laplace_suffices eps) eps
  | RandomisedResponsePure m eps, [] => pure_leaf m (response_suffices eps) eps
  | PoissonPure m eps, [] => pure_leaf m (sample_suffices is_poisson eps) eps
  | FixedBatchPure m eps, [] => pure_leaf m (sample_suffices is_fixed_batch eps) eps
  | PureStepRule m eps, [] => pure_leaf m (pure_step_suffices eps) eps
  | PoissonRdp m order eps, [] => renyi_leaf m order (poisson_renyi_suffices order eps) eps
  | FixedBatchRdp m order eps, [] => renyi_leaf m order (batch_renyi_suffices order eps) eps
  | Composition counts, _ => composition counts premises
  | RepeatedRule m, _ => repeated m premises
  | PartiesRule m, _ => by_party m premises
  | EventsRule, _ => all_events premises
  | Weaken cost, [Part e s] => option_map (Part e) (weaken cost s)
  | Restate, [Part e s] => Some (Part e s)
  | (Group _ | ReplaceOneRule), [Part e s] => option_map (Part e) (concluded rule s)
  | ZcdpRdp _, [Part e (Claim _ _ (Zcdp _) as s)] => option_map (Part e) (concluded rule s)
  | PrivacyLoss parts shares group step doublings dense digits cut delta eps, [] =>
      privacy_loss parts shares group step doublings dense digits cut delta eps
  | LaplaceLosses parts group delta eps, [] => laplace_losses parts group delta eps
  | _, _ => None
  end.

Definition follows (rule : rule) (premises : list judgement) : option judgement :=
  match premises, rule with
  | [Whole s], Filter budget => filter budget s
  | [Whole s], _ => option_map Whole (concluded rule s)
  | [Kept budget s], _ => option_map (Kept budget) (concluded rule s)
  | _, _ => of_parts rule premises
  end.

Fixpoint at_places (known : PositiveMap.t judgement) (places : list positive) :
  option (list judgement) :=
  match places with
  | [] => Some []
  | i :: rest =>
      match PositiveMap.find i known, at_places known rest with
      | Some j, Some found => Some (j :: found)
      | _, _ => None
      end
  end.

(** One node after the other, numbered from [next]; the last judgement. *)
Fixpoint all_nodes (known : PositiveMap.t judgement) (next : positive) (last : option judgement)
  (todo : list node) : option judgement :=
  match todo with
  | [] => last
  | n :: rest =>
      match at_places known (node_premises n) with
      | Some premises =>
          match follows (node_rule n) premises with
          | Some j =>
              if claim_eqb (statement_of j) (node_conclusion n)
              then all_nodes (PositiveMap.add next j known) (Pos.succ next) (Some j) rest
              else None
          | None => None
          end
      | None => None
      end
  end.

End Nodes.

(** All mechanisms are about one relation, that of the first which states one. *)
Fixpoint first_relation (l : list mechanism) : relation :=
  match l with
  | (GaussianStep moved _ _ _ | SampledStep _ moved _ _ _ | LaplaceStep moved _ _ _
     | DiscreteLaplaceStep moved _ _ _ | DiscreteGaussianStep moved _ _ _
     | SampledLaplaceStep _ moved _ _ _ | PureStep moved _ _ _
     | MixtureStep moved _ _ _ _ _ _ | AccumulatedStep moved _ _ _ _ _) :: _ => moved
  | (Repeated _ _ | Parties _) :: rest => first_relation rest
  | _ => ReplaceOne
  end.

Definition relation_of (c : certificate) : relation := first_relation (mechanisms c).

Definition for_all_steps (f : mechanism -> mechanism) (c : certificate) : certificate :=
  Certificate (map f (mechanisms c)) (events c) (nodes c).

Definition steps_ok (c : certificate) : bool :=
  forallb (mechanism_ok (relation_of c) (numbered 1 (mechanisms c))) (mechanisms c).

Definition judged (c : certificate) : option judgement :=
  let plain := for_all_steps quiet c in
  let table := numbered 1 (mechanisms plain) in
  if steps_ok (for_all_steps as_if_drawn c) && steps_ok plain then
    all_nodes table (relation_of plain) (views (events c)) (views_apart table (events c))
      (fun kind => forallb (pays_in kind) (mechanisms plain)) (PositiveMap.empty judgement) 1 None (nodes c)
  else None.

Definition check (c : certificate) : option claim :=
  match judged c with Some (Whole s) => Some s | _ => None end.

(** The budget that a filter kept, and what follows of whatever it lets happen. *)
Definition check_filter (c : certificate) : option (claim * claim) :=
  match judged c with Some (Kept budget s) => Some (budget, s) | _ => None end.
