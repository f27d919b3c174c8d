(** What a certificate is, what it means for a run to satisfy its event list, and what its claims
    say: definitions only. [check_sound] (Soundness.v) is about these and nothing else.

    Mechanisms, events and nodes are those of the project's certificates (version 1), as far as
    Gaussian noise (discrete, too) and the rules of zCDP and GDP go, and Laplace noise (discrete,
    too), randomised response, whatever else moves its probabilities by known factors, and the rules of
    pure DP. Everything is numbered from 1. *)

From Coq Require Import Reals List QArith Qreals FMapPositive Permutation.
From Coquelicot Require Import Coquelicot.
From Dpledger Require Import Sums Finite Gaussian Pure DiscreteLaplace DiscreteGaussian Sensitivity
  Nonnegative Vertical Rounding Descent Domination GaussianComposition PoissonSampling BatchSampling CopiesSampling
  Events AccumulatedSampling.
Import ListNotations.

(** ** Documents *)

Inductive relation := ReplaceOne | ZeroOutOne | AddRemoveOne.

(** How a row is computed in doubles, operation by operation; each states bounds on the size of
    what is held then, and on its distance from the row that is meant. *)
Inductive float_leaf :=
  | FloatExact (width : positive)
  | FloatCount (most width : positive)
  | FloatGrid (most step : Q) (width : positive)
  | FloatMean (bound : Q) (count width : positive)
  | FloatTotal (bound : Q) (count width : positive)
  | FloatScores (bound : Q) (terms width : positive).

Inductive float_unary :=
  | FloatShift (size : Q)
  | FloatScale (factor : Q)
  | FloatProduct (size : Q) (width : positive)
  | FloatMap (operator_norm : Q) (height : positive)
  | FloatClip (radius : Q).

Inductive float_binary := FloatAdd | FloatPair | FloatRows.

Inductive operations :=
  | RoundLeaf (rule : float_leaf) (magnitude error : Q)
  | RoundUnary (rule : float_unary) (magnitude error : Q) (premise : operations)
  | RoundBinary (rule : float_binary) (magnitude error : Q) (left right : operations).

Definition magnitude_of (t : operations) : Q :=
  match t with RoundLeaf _ m _ | RoundUnary _ m _ _ | RoundBinary _ m _ _ _ => m end.
Definition error_of (t : operations) : Q :=
  match t with RoundLeaf _ _ e | RoundUnary _ _ e _ | RoundBinary _ _ e _ _ => e end.

Inductive leaf_rule :=
  | Declared (value : Q)
  | MeanOfBounded (bound : Q) (count : positive)
  | MeanOfNonnegative (bound : Q) (count : positive)
  | SumOfBounded (bound : Q)
  | HistogramL1
  | Histogram
  | StronglyConvexArgmin (lipschitz modulus tolerance : Q) (count : positive)
  | VerticalPredictions (row_bound slope_bound radius penalty modulus tolerance u v : Q)
  | LabelDual (derivative_bound label_gap tolerance : Q).

Inductive unary_rule :=
  | Scaled (factor : Q)
  | LinearMap (operator_norm : Q)
  | Clip (radius : Q)
  | Lattice (distance : Q) (dimension : positive) (u w : Q)
  | LatticeL1 (distance : Q) (dimension : positive) (u : Q)
  | ComputedL1 (rows : positive) (u : Q) (by_operations : operations)
  | Computed (rows : positive) (u w : Q) (by_operations : operations).

Inductive binary_rule :=
  | Sum (u v : Q)
  | Concatenation
  | Disjoint.

(** A derivation of a sensitivity in l2; [squared] is the bound that each step states. *)
Inductive derivation :=
  | Leaf (rule : leaf_rule) (squared : Q)
  | Unary (rule : unary_rule) (squared : Q) (premise : derivation)
  | Binary (rule : binary_rule) (squared : Q) (left right : derivation).

(** How a sample is drawn: every record takes part by itself with a probability, or so many different
    ones do out of a public number, each choice as likely, or so many draws are made, each of them any
    of a public number. *)
Inductive scheme :=
  | Poisson (rate : Q)
  | FixedBatch (size records : positive)
  | WithReplacement (size records : positive).

(** A sampled step is a Gaussian or a Laplace step on a sample; who is drawn stays hidden. The
    sensitivity of a Laplace step is in l1. A
    response is the true one of so many answers with probability [truth], else any other; it is
    about replace-one. A pure step is anything of which [scale] times the logarithm of a probability
    is of that sensitivity. A mixture is a Gaussian step on what is computed from all records, which
    moves by a root of [constant], and from a sample, which moves by a root of [squared]. An accumulated
    step is a Gaussian step on the sum of what is computed from so many Poisson samples, each of all
    records. *)
Inductive mechanism :=
  | GaussianStep (moved : relation) (squared : Q) (by_rules : derivation) (noise_std : Q)
  | SampledStep (drawn : scheme) (moved : relation) (squared : Q) (by_rules : derivation)
      (noise_std : Q)
  | LaplaceStep (moved : relation) (squared : Q) (by_rules : derivation) (scale : Q)
  | DiscreteLaplaceStep (moved : relation) (squared : Q) (by_rules : derivation) (scale : Q)
  | DiscreteGaussianStep (moved : relation) (squared : Q) (by_rules : derivation) (noise_std : Q)
  | ResponseStep (truth : Q) (answers : positive)
  | SampledLaplaceStep (drawn : scheme) (moved : relation) (squared : Q) (by_rules : derivation)
      (scale : Q)
  | PureStep (moved : relation) (squared : Q) (by_rules : derivation) (scale : Q)
  | MixtureStep (moved : relation) (constant : Q) (by_constant : derivation) (squared : Q)
      (by_rules : derivation) (rate noise_std : Q)
  | AccumulatedStep (moved : relation) (squared : Q) (by_rules : derivation) (rate : Q)
      (samples : positive) (noise_std : Q)
  | Repeated (inner times : positive)
  (** Made of parts by party: of each party its number, and the mechanisms that it runs. *)
  | Parties (parts : list (positive * list positive)).

(** A release, [times] times; it names the parties whose records enter it, or nobody if everybody's
    do. *)
Record event := Event { event_mechanism : positive; event_parties : list positive;
                        event_times : positive }.

Inductive notion :=
  | Gdp (mu_squared : Q)
  | Zcdp (rho : Q)
  | PureDp (epsilon : Q)
  | Rdp (order epsilon : Q)
  | ApproxDp (delta epsilon : Q).

(** The claim that a node states, for records of one party and groups of [claim_group] of them. *)
Record claim := Claim { claim_relation : relation; claim_group : positive;
                        claim_notion : notion }.

Inductive rule :=
  | GaussianGdp (mechanism : positive)
  | GaussianZcdp (mechanism : positive)
  | LaplaceZcdp (mechanism : positive)
  | DiscreteLaplaceZcdp (mechanism : positive)
  | DiscreteGaussianZcdp (mechanism : positive)
  | LaplacePure (mechanism : positive) (epsilon : Q)
  | DiscreteLaplacePure (mechanism : positive) (epsilon : Q)
  | RandomisedResponsePure (mechanism : positive) (epsilon : Q)
  | PoissonPure (mechanism : positive) (epsilon : Q)
  | FixedBatchPure (mechanism : positive) (epsilon : Q)
  | PureStepRule (mechanism : positive) (epsilon : Q)
  | PoissonRdp (mechanism order : positive) (epsilon : Q)
  | FixedBatchRdp (mechanism order : positive) (epsilon : Q)
  | Composition (times : list positive)
  | RepeatedRule (mechanism : positive)
  | PartiesRule (mechanism : positive)
  | EventsRule
  | Weaken (value : Q)
  | Restate  (** post-processing, given *)
  | Filter (budget : Q)
  | Group (size : positive)
  | ReplaceOneRule
  | ZcdpRdp (order : Q)
  | PureApproxDp (delta : Q)
  | RdpApproxDp (delta epsilon : Q)
  | GdpApproxDp (delta epsilon : Q)
  (** The loss distributions of steps for so many records at once, composed on a lattice whose step
      doubles before some levels: parts are a mechanism, how often, and the level at which it enters;
      shares a mixture, and how much of its noise hides what is computed from all records.
      What the numbers after [group] and before [delta] are decides how fine it is, and nothing else. *)
  | PrivacyLoss (parts : list (positive * positive * nat)) (shares : list (positive * Q))
      (group : positive) (step : Q)
      (doublings : list nat) (dense digits : positive) (cut : Z) (delta epsilon : Q)
  (** Laplace steps alone, in closed form: parts are a mechanism, and how often. *)
  | LaplaceLosses (parts : list (positive * positive)) (group : positive) (delta epsilon : Q).

Record node := Node { node_rule : rule; node_premises : list positive; node_conclusion : claim }.

Record certificate := Certificate { mechanisms : list mechanism; events : list event;
                                    nodes : list node }.

Fixpoint numbered {A} (start : positive) (l : list A) : PositiveMap.t A :=
  match l with
  | [] => PositiveMap.empty A
  | a :: l' => PositiveMap.add start a (numbered (Pos.succ start) l')
  end.

Definition mechanism_at (c : certificate) (i : positive) : option mechanism :=
  PositiveMap.find i (numbered 1 (mechanisms c)).

(** Sums of vectors that are bounded one by one, and what is linear in them but for what it is rounded by;
    what brings nothing may be beside. *)
Fixpoint linear_in_records (d : derivation) : bool :=
  match d with
  | Leaf (SumOfBounded _) _ => true
  | Leaf (VerticalPredictions _ _ _ _ _ _ _ _ | LabelDual _ _ _) _ => false
  | Leaf _ squared => Qeq_bool squared 0
  | Unary (Scaled _ | LinearMap _ | Lattice _ _ _ _ | Computed _ _ _ _) _ p => linear_in_records p
  | Unary _ squared p => Qeq_bool squared 0 && linear_in_records p
  | Binary (Sum _ _ | Concatenation | Disjoint) _ p q => linear_in_records p && linear_in_records q
  end.

(** ** Data and neighbours *)

Open Scope R_scope.

(** A record that is zeroed out becomes [null]. *)
Definition neighbours {X} (null : X) (r : relation) : list X -> list X -> Prop :=
  match r with
  | ReplaceOne => replace_one
  | ZeroOutOne => zero_out_one null
  | AddRemoveOne => add_remove_one
  end.

(** Data are one list of records a party. Neighbours differ in one record of one party, groups of k
    in k such steps. *)
Definition group_neighbours {X} (null : X) (r : relation) (size : positive) :
  (nat -> list X) -> (nat -> list X) -> Prop :=
  steps (one_part (neighbours null r)) (Pos.to_nat size).

(** A record less, or one that is zeroed out. *)
Definition loses {X} (null : X) (r : relation) (x y : list X) : Prop :=
  exists before z after, x = before ++ z :: after /\
    y = before ++ match r with ZeroOutOne => null :: after | _ => after end.

(** So many records at once, of one party: all of them are replaced, or one of the data sets has all
    of them and the other has none. A record may also be replaced by itself. *)
Definition at_once {X} (null : X) (r : relation) (size : positive) (x y : list X) : Prop :=
  match r with
  | ReplaceOne => steps replace_one (Pos.to_nat size) x y
  | _ => steps (loses null r) (Pos.to_nat size) x y \/ steps (loses null r) (Pos.to_nat size) y x
  end.

Definition unit_neighbours {X} (null : X) (r : relation) (size : positive) :
  (nat -> list X) -> (nat -> list X) -> Prop :=
  one_part (at_once null r size).

(** ** What it says that a row is computed by some operations *)

(** A number goes through its product, a division and the additions of its block; beside other
    blocks, through 62 that cover those of the blocks' sums. *)
Definition sum_depth (count : positive) : positive :=
  if Pos.leb count 1024 then (count + 2)%positive else 1088%positive.

Definition root_above (n : positive) : Z := Z.sqrt_up (Zpos n).

Section Computing.

Context {D : Type}.

Notation width_of w := (Pos.to_nat w).

(** [computes t d f held]: of all data, [held] is the row of [d] numbers that a program holds in place
    of [f], whose operations are [t]. Every premise is about public sizes, or is the standard model
    for one operation ([rounds], [rounds_product], and [sum_within], which any order of additions
    satisfies: [summed_within], [mean_within]; compensated sums are supposed to). *)
Inductive computes : operations -> nat -> (D -> nat -> R) -> (D -> nat -> R) -> Prop :=
  | computes_exactly w m e f :
      (forall l, row_norm (width_of w) (f l) <= Q2R m) ->
      computes (RoundLeaf (FloatExact w) m e) (width_of w) f f
  | computes_counts most w m e f :
      (forall l, row_norm (width_of w) (f l) <= IZR (Zpos most)) ->
      computes (RoundLeaf (FloatCount most w) m e) (width_of w) f f
  (** Sums of multiples of a public power of two: doubles up to 2^53 of its steps. *)
  | computes_on_grid most step w m e f :
      (forall l, row_norm (width_of w) (f l) <= Q2R most) ->
      computes (RoundLeaf (FloatGrid most step w) m e) (width_of w) f f
  | computes_mean bound count w m e (terms : D -> list (nat -> R)) (n : D -> R) held :
      (forall l, 1 <= n l /\ INR (length (terms l)) <= n l) ->
      (forall l v, In v (terms l) -> row_norm (width_of w) v <= Q2R bound) ->
      (forall l j, (j < width_of w)%nat ->
         sum_within (width_of (sum_depth count)) 2
           (map (fun t => t / n l) (map (fun v => v j) (terms l))) (held l j)) ->
      computes (RoundLeaf (FloatMean bound count w) m e) (width_of w)
        (fun l j => exactly (map (fun t => t / n l) (map (fun v => v j) (terms l)))) held
  | computes_total bound count w m e (terms : D -> list (nat -> R)) held :
      (forall l, INR (length (terms l)) <= IZR (Zpos count)) ->
      (forall l v, In v (terms l) -> row_norm (width_of w) v <= Q2R bound) ->
      (forall l j, (j < width_of w)%nat ->
         sum_within (width_of (sum_depth count)) (width_of count)
           (map (fun v => v j) (terms l)) (held l j)) ->
      computes (RoundLeaf (FloatTotal bound count w) m e) (width_of w)
        (fun l j => exactly (map (fun v => v j) (terms l))) held
  | computes_scores bound terms w m e (products : D -> nat -> list R) held :
      (forall l i, (i < width_of w)%nat -> sizes (products l i) <= Q2R bound) ->
      (forall l i, (i < width_of w)%nat ->
         sum_within (width_of (terms + 1)) (width_of terms) (products l i) (held l i)) ->
      computes (RoundLeaf (FloatScores bound terms w) m e) (width_of w)
        (fun l i => exactly (products l i)) held
  | computes_shift size m e t d f held (c : nat -> R) held' :
      computes t d f held -> row_norm d c <= Q2R size ->
      (forall l i, (i < d)%nat -> rounds (held l i + c i) (held' l i)) ->
      computes (RoundUnary (FloatShift size) m e t) d (fun l i => f l i + c i) held'
  | computes_multiple factor m e t d f held c held' :
      computes t d f held -> Rabs c = Q2R factor ->
      (forall l i, (i < d)%nat ->
         if Req_EM_T (Rabs c) 1 then held' l i = c * held l i
         else rounds_product (c * held l i) (held' l i)) ->
      computes (RoundUnary (FloatScale factor) m e t) d (fun l i => c * f l i) held'
  (** Numbers of its own for each entry, or an outer product: [by_public] multiplies by them. *)
  | computes_product size w m e t d f held (by_public : (nat -> R) -> nat -> R) held' :
      computes t d f held ->
      (forall x y i, by_public (@sub (euclidean d) x y) i = by_public x i - by_public y i) ->
      (forall x, row_norm (width_of w) (by_public x) <= Q2R size * row_norm d x) ->
      (forall l i, (i < width_of w)%nat -> rounds_product (by_public (held l) i) (held' l i)) ->
      computes (RoundUnary (FloatProduct size w) m e t) (width_of w)
        (fun l => by_public (f l)) held'
  (** A public matrix [a]; what its entries' sizes do to a row is bounded as their squares are. *)
  | computes_map norm_bound height m e t w f held (a : nat -> nat -> R) held' :
      computes t (width_of w) f held ->
      (forall x, row_norm (width_of height) (fun i => total (seq 0 (width_of w)) (fun k => a i k * x k))
                 <= Q2R norm_bound * row_norm (width_of w) x) ->
      (forall x, row_norm (width_of height)
                   (fun i => sizes (map (fun k => a i k * x k) (seq 0 (width_of w))))
                 <= Q2R norm_bound * IZR (root_above (Pos.min height w)) * row_norm (width_of w) x) ->
      (forall l i, (i < width_of height)%nat ->
         sum_within (width_of w) (width_of w)
           (map (fun k => a i k * held l k) (seq 0 (width_of w))) (held' l i)) ->
      computes (RoundUnary (FloatMap norm_bound height) m e t) (width_of height)
        (fun l i => total (seq 0 (width_of w)) (fun k => a i k * f l k)) held'
  (** A norm, a root, a quotient and products: 2 d + 16 operations. *)
  | computes_clip radius m e t w f held held' :
      computes t (width_of w) f held ->
      (forall l, row_norm (width_of w)
                   (@sub (euclidean (width_of w)) (held' l) (@clip (euclidean (width_of w)) (Q2R radius) (held l)))
                 <= gamma_n (width_of (2 * w + 16)) * Rmin (row_norm (width_of w) (held l)) (Q2R radius)
                    + INR (width_of w) * underflow) ->
      computes (RoundUnary (FloatClip radius) m e t) (width_of w)
        (fun l => @clip (euclidean (width_of w)) (Q2R radius) (f l)) held'
  | computes_add m e t t' d f held g held' held'' :
      computes t d f held -> computes t' d g held' ->
      (forall l i, (i < d)%nat -> rounds (held l i + held' l i) (held'' l i)) ->
      computes (RoundBinary FloatAdd m e t t') d (fun l i => f l i + g l i) held''
  | computes_difference m e t t' d f held g held' held'' :
      computes t d f held -> computes t' d g held' ->
      (forall l i, (i < d)%nat -> rounds (held l i - held' l i) (held'' l i)) ->
      computes (RoundBinary FloatAdd m e t t') d (fun l i => f l i - g l i) held''
  | computes_pair m e t t' d d' f held g held' :
      computes t d f held -> computes t' d' g held' ->
      computes (RoundBinary FloatPair m e t t') (d + d')
        (fun l i => if (i <? d)%nat then f l i else g l (i - d)%nat)
        (fun l i => if (i <? d)%nat then held l i else held' l (i - d)%nat)
  (** Any row of two blocks. *)
  | computes_row_above m e t t' d f held g held' :
      computes t d f held -> computes t' d g held' ->
      computes (RoundBinary FloatRows m e t t') d f held
  | computes_row_below m e t t' d f held g held' :
      computes t d f held -> computes t' d g held' ->
      computes (RoundBinary FloatRows m e t t') d g held'.

End Computing.

(** ** What a derivation says of a function of one party's records *)

Section Derivations.

Context {X : Type} (null : X) (r : relation).

Inductive derives : derivation -> forall V : Space, (list X -> V) -> Prop :=
  | derives_declared value squared (V : Space) (q : list X -> V) :
      sensitivity (neighbours null r) q (Q2R value) ->
      derives (Leaf (Declared value) squared) V q
  | derives_mean bound count squared (V : Space) (f : X -> V) :
      r <> AddRemoveOne -> (forall x, norm (f x) <= Q2R bound) ->
      (r = ZeroOutOne -> f null = zero) ->
      derives (Leaf (MeanOfBounded bound count) squared) V (mean_over f (IZR (Zpos count)))
  (** Of the records that are there: what is said of less than [count] of them, where the number is
      promised, is their sum divided by [count]. *)
  | derives_mean_present bound count squared (V : Space) (f : X -> V) :
      r = AddRemoveOne -> (forall x, norm (f x) <= Q2R bound) ->
      derives (Leaf (MeanOfBounded bound count) squared) V (mean_present f count)
  (** No two of them point apart. *)
  | derives_mean_nonnegative bound count squared (V : Space) (f : X -> V) (q : list X -> V) :
      (forall x, norm (f x) <= Q2R bound) -> (forall x y, 0 <= inner (f x) (f y)) ->
      (r = ZeroOutOne -> f null = zero) ->
      q = match r with
          | AddRemoveOne => mean_present f count
          | _ => mean_over f (IZR (Zpos count))
          end ->
      derives (Leaf (MeanOfNonnegative bound count) squared) V q
  | derives_sum_of bound squared (V : Space) (f : X -> V) :
      (forall x, norm (f x) <= Q2R bound) -> (r = ZeroOutOne -> f null = zero) ->
      derives (Leaf (SumOfBounded bound) squared) V (vsum f)
  (** Counts of cells: a record adds one to one of them. *)
  | derives_histogram squared (V : Space) (f : X -> V) :
      (forall x, norm (f x) <= 1) -> derives (Leaf HistogramL1 squared) V (vsum f)
  | derives_histogram_l2 squared (V : Space) (f : X -> V) :
      (forall x, norm (f x) <= 1) -> (forall x y, 0 <= inner (f x) (f y)) ->
      derives (Leaf Histogram squared) V (vsum f)
  (** Within tolerance / modulus of the exact minimiser. *)
  | derives_argmin lipschitz modulus tolerance count squared (V : Space)
      (loss : X -> V -> R) (regulariser : V -> R) (minimiser solve : list X -> V) :
      r <> AddRemoveOne ->
      (forall x y y', loss x y - loss x y' <= Q2R lipschitz * norm (sub y y')) ->
      (r = ZeroOutOne -> forall y, loss null y = 0) ->
      (forall data, near_minimum (Q2R modulus) 0
                      (objective loss regulariser (IZR (Zpos count)) data) (minimiser data)) ->
      (forall data, norm (sub (solve data) (minimiser data)) <= Q2R tolerance / Q2R modulus) ->
      derives (Leaf (StronglyConvexArgmin lipschitz modulus tolerance count) squared) V solve
  (** Over the records that are there, as the mean. *)
  | derives_argmin_present lipschitz modulus tolerance count squared (V : Space)
      (loss : X -> V -> R) (regulariser : V -> R) (minimiser solve : list X -> V) :
      r = AddRemoveOne ->
      (forall x y y', loss x y - loss x y' <= Q2R lipschitz * norm (sub y y')) ->
      (forall data, near_minimum (Q2R modulus) 0
                      (objective_present loss regulariser count data) (minimiser data)) ->
      (forall data, norm (sub (solve data) (minimiser data)) <= Q2R tolerance / Q2R modulus) ->
      derives (Leaf (StronglyConvexArgmin lipschitz modulus tolerance count) squared) V solve
  (** A coordinate for each record, its row's product with a point that is close to the minimiser on
      the ball, of all records. *)
  | derives_predictions row_bound slope_bound radius penalty modulus tolerance u v squared (d : nat)
      (W : Space) (row : X -> W) (pull : nat -> R) (regulariser : W -> R) (minimiser solve : list X -> W) :
      r <> AddRemoveOne -> strongly_convex (Q2R modulus) regulariser ->
      (forall x, norm (row x) <= Q2R row_bound) -> (r = ZeroOutOne -> row null = zero) ->
      (forall i, Rabs (pull i) <= Q2R slope_bound) ->
      (forall data, minimises_on_ball (Q2R radius)
                      (ball_objective row pull (Q2R penalty) regulariser data) (minimiser data)) ->
      (forall data, norm (@sub (euclidean d) (predictions row data (solve data))
                            (predictions row data (minimiser data)))
                    <= Q2R tolerance / (2 * sqrt (Q2R penalty * Q2R modulus))) ->
      derives (Leaf (VerticalPredictions row_bound slope_bound radius penalty modulus tolerance u v) squared)
        (euclidean d) (fun data => predictions row data (solve data))
  (** A coordinate for each record, close to the slope of its loss at a score that is public but for
      that slope. *)
  | derives_label_dual derivative_bound label_gap tolerance squared (d : nat) (slope : X -> R -> R)
      (public : nat -> R) penalty (dual solve : nat -> X -> R) :
      r <> AddRemoveOne -> 0 < penalty -> (forall x z z', z <= z' -> slope x z <= slope x z') ->
      (r = ReplaceOne -> forall x y z, Rabs (slope x z - slope y z) <= Q2R label_gap) ->
      (r = ZeroOutOne -> (forall x z, Rabs (slope x z) <= Q2R derivative_bound) /\ forall z, slope null z = 0) ->
      (forall i x, exists z, dual i x = slope x z /\ dual i x + penalty * z = public i) ->
      (forall i x, Rabs (solve i x - dual i x) <= Q2R tolerance) ->
      derives (Leaf (LabelDual derivative_bound label_gap tolerance) squared) (euclidean d) (by_record solve)
  | derives_scaled factor squared d (V : Space) (q : list X -> V) :
      derives d V q ->
      derives (Unary (Scaled factor) squared d) V (fun l => scale (Q2R factor) (q l))
  | derives_linear bound squared d (V W : Space) (q : list X -> V) (f : V -> W) :
      derives d V q -> (forall x y, f (sub x y) = sub (f x) (f y)) ->
      (forall x, norm (f x) <= Q2R bound * norm x) ->
      derives (Unary (LinearMap bound) squared d) W (fun l => f (q l))
  | derives_clip radius squared d (V : Space) (q : list X -> V) :
      derives d V q ->
      derives (Unary (Clip radius) squared d) V (fun l => clip (Q2R radius) (q l))
  (** Rounded: off by at most [distance] in each of [dimension] coordinates. *)
  | derives_lattice distance dimension u w squared d (V : Space) (q q' : list X -> V) :
      derives d V q ->
      (forall l, norm (sub (q' l) (q l)) <= Q2R distance * sqrt (IZR (Zpos dimension))) ->
      derives (Unary (Lattice distance dimension u w) squared d) V q'
  (** The same in l1. *)
  | derives_lattice_l1 distance dimension u squared d (V : Space) (q q' : list X -> V) :
      derives d V q ->
      (forall l, norm (sub (q' l) (q l)) <= Q2R distance * IZR (Zpos dimension)) ->
      derives (Unary (LatticeL1 distance dimension u) squared d) V q'
  (** Computed in doubles, a block of [rows] rows, each by the operations [t]: no further off than
      all of its rows. *)
  | derives_computed rows u w t squared d (V : Space) (q q' : list X -> V) width row held :
      derives d V q ->
      (forall k, (k < Pos.to_nat rows)%nat -> computes t width (row k) (held k)) ->
      (forall l, norm (sub (q' l) (q l)) * norm (sub (q' l) (q l))
                 <= total (seq 0 (Pos.to_nat rows)) (fun k =>
                      row_norm width (@sub (euclidean width) (held k l) (row k l))
                      * row_norm width (@sub (euclidean width) (held k l) (row k l)))) ->
      derives (Unary (Computed rows u w t) squared d) V q'
  (** The same in l1. *)
  | derives_computed_l1 rows u t squared d (V : Space) (q q' : list X -> V) width row held :
      derives d V q ->
      (forall k, (k < Pos.to_nat rows)%nat -> computes t width (row k) (held k)) ->
      (forall l, norm (sub (q' l) (q l))
                 <= total (seq 0 (Pos.to_nat rows)) (fun k =>
                      total (seq 0 width) (fun i => Rabs (held k l i - row k l i)))) ->
      derives (Unary (ComputedL1 rows u t) squared d) V q'
  | derives_sum u v squared d e (V : Space) (q q' : list X -> V) :
      derives d V q -> derives e V q' ->
      derives (Binary (Sum u v) squared d e) V (fun l => add (q l) (q' l))
  | derives_difference u v squared d e (V : Space) (q q' : list X -> V) :
      derives d V q -> derives e V q' ->
      derives (Binary (Sum u v) squared d e) V (fun l => sub (q l) (q' l))
  | derives_concatenation squared d e (V W : Space) (q : list X -> V) (q' : list X -> W) :
      derives d V q -> derives e W q' ->
      derives (Binary Concatenation squared d e) (product V W) (fun l => (q l, q' l))
  | derives_disjoint squared d e (V W : Space) (q : list X -> V) (q' : list X -> W) :
      derives d V q -> derives e W q' ->
      (forall l l', neighbours null r l l' -> q l = q l' \/ q' l = q' l') ->
      derives (Binary Disjoint squared d e) (product V W) (fun l => (q l, q' l))
  (** What moves no more than a derived function: a public shift, a block beside the blocks of
      other parties, a reordering, a projection. *)
  | derives_no_further d (V W : Space) (q : list X -> V) (q' : list X -> W) :
      derives d V q -> (forall l l', norm (sub (q' l) (q' l')) <= norm (sub (q l) (q l'))) ->
      derives d W q'.

End Derivations.

(** ** Runs *)

(** A message is a vector of rounded numbers, or the number of an answer; a history the messages so
    far (latest first). *)
Inductive message := Numbers (rounded : list (Rbar * Rbar)) | Answer (number : nat).
Definition history := list message.

(** What the message of a round is: a value with noise on every coordinate, one of so many answers,
    the true one with probability [truth], or one of so many, each as likely as the value says.
    [Beside]: to the value of a sample, what all records have in common is added. [Accumulated]: the
    values of so many samples are added up, each of which a record enters with a probability. *)
Inductive randomness :=
  | Normal (std : R)
  | Beside (std : R)
  | Accumulated (rate std : R) (samples : nat)
  | Laplace (scale : R)
  | DiscreteLaplace (scale : R)
  | DiscreteGaussian (std : R)
  | Response (truth : R) (answers : nat)
  | Weighted (answers : nat).

(** How a round samples: each record with a probability, or a batch of so many records out of so many
    places, one after the other, each of those left as likely, or each place as likely every time; a
    place that holds no record holds [filler]. *)
Inductive sampling (X : Type) :=
  | EachWith (rate : R)
  | OutOf (size records : nat) (filler : X)
  | Again (size records : nat) (filler : X).

Arguments EachWith {X}. Arguments OutOf {X}. Arguments Again {X}.

Definition draws_of {X} (s : sampling X) : list X -> list (list X * R) :=
  match s with
  | EachWith rate => draws rate
  | OutOf size records filler => batches size records filler
  | Again size records filler => copies size records filler
  end.

(** After each history: which mechanism comes next, whose records it reads, whose records it samples
    and how, the value that it adds noise to (of so many dimensions), what it adds to that of all
    records, sampled or not, or the true answer, its noise, and the grid that each coordinate is
    rounded to. All of it may depend on all messages so far. *)
Record execution (X : Type) := Execution {
  rounds : nat;
  next_mechanism : history -> positive;
  reads : history -> nat -> bool;
  sampled_parties : history -> list nat;
  sampled_by : history -> sampling X;
  dimension : history -> nat;
  value : history -> (nat -> list X) -> nat -> R;
  unsampled : history -> (nat -> list X) -> nat -> R;
  answer : history -> (nat -> list X) -> nat;
  noise : history -> randomness;
  cuts : history -> list (Rbar * Rbar) -> list R }.

Arguments rounds {X}. Arguments next_mechanism {X}. Arguments reads {X}.
Arguments sampled_parties {X}. Arguments sampled_by {X}.
Arguments dimension {X}. Arguments value {X}. Arguments unsampled {X}. Arguments answer {X}. Arguments noise {X}.
Arguments cuts {X}.

Definition of_numbers (law : list (Rbar * Rbar) -> R) (m : message) : R :=
  match m with Numbers cells => law cells | Answer _ => 0 end.
Definition of_answers (law : nat -> R) (m : message) : R :=
  match m with Numbers _ => 0 | Answer a => law a end.

Section Executions.

Context {X : Type} (r : execution X).

Definition next_messages (h : history) : list message :=
  match noise r h with
  | Response _ answers | Weighted answers => map Answer (seq 0 answers)
  | _ => map Numbers (vector_outcomes (dimension r h) (cuts r h))
  end.

(** The law of the next message: a fresh sample, noise on every coordinate, then rounding; or an
    answer. *)
Definition next_law (data : nat -> list X) (h : history) : message -> R :=
  match noise r h with
  | Normal std =>
      of_numbers (on_samples (draws_of (sampled_by r h))
                    (noisy_vector (dimension r h) (value r h) std) (sampled_parties r h) data)
  | Beside std =>
      of_numbers (on_samples (draws_of (sampled_by r h))
                    (noisy_vector (dimension r h) (fun sample i => unsampled r h data i + value r h sample i) std)
                    (sampled_parties r h) data)
  | Accumulated rate std samples =>
      of_numbers (on_samples (draws rate)
                    (noisy_vector (dimension r h) (accumulated samples (value r h)) std)
                    (sampled_parties r h) (fun j => copied samples (data j)))
  | Laplace scale =>
      of_numbers (on_samples (draws_of (sampled_by r h)) (laplace_vector (value r h) scale)
                    (sampled_parties r h) data)
  | DiscreteLaplace scale =>
      of_numbers (geometric_vector (fun x i => Int_part (value r h x i)) scale data)
  | DiscreteGaussian std =>
      of_numbers (discrete_gaussian_vector (fun x i => Int_part (value r h x i)) std data)
  | Response truth answers => of_answers (response Nat.eqb truth answers (answer r h data))
  | Weighted _ => of_answers (value r h data)
  end.

(** All that is ever seen of a run, and its law. *)
Definition all_transcripts : list history := transcripts next_messages (rounds r).
Definition run_law (data : nat -> list X) : history -> R := run (next_law data).

(** The mechanisms that have read the records of party [j]. *)
Fixpoint met (j : nat) (h : history) : list positive :=
  match h with
  | [] => []
  | _ :: before => (if reads r before j then [next_mechanism r before] else []) ++ met j before
  end.

End Executions.

(** ** Satisfying an event list *)

(** A step without noise, which needs none: nothing moves. *)
Definition still (m : mechanism) : bool :=
  match m with
  | GaussianStep _ squared _ size | DiscreteGaussianStep _ squared _ size | LaplaceStep _ squared _ size
  | DiscreteLaplaceStep _ squared _ size | PureStep _ squared _ size | SampledStep _ _ squared _ size
  | SampledLaplaceStep _ _ squared _ size | AccumulatedStep _ squared _ _ _ size =>
      Qeq_bool squared 0 && Qeq_bool size 0
  | MixtureStep _ constant _ squared _ rate size =>
      Qeq_bool constant 0 && (Qeq_bool squared 0 || Qeq_bool rate 0) && Qeq_bool size 0
  | ResponseStep _ _ | Repeated _ _ | Parties _ => false
  end.

(** The same with noise. *)
Definition with_noise (m : mechanism) : mechanism :=
  match m with
  | GaussianStep moved squared d _ => GaussianStep moved squared d 1
  | DiscreteGaussianStep moved squared d _ => DiscreteGaussianStep moved squared d 1
  | LaplaceStep moved squared d _ => LaplaceStep moved squared d 1
  | DiscreteLaplaceStep moved squared d _ => DiscreteLaplaceStep moved squared d 1
  | PureStep moved squared d _ => PureStep moved squared d 1
  | SampledStep drawn moved squared d _ => SampledStep drawn moved squared d 1
  | SampledLaplaceStep drawn moved squared d _ => SampledLaplaceStep drawn moved squared d 1
  | AccumulatedStep moved squared d rate samples _ => AccumulatedStep moved squared d rate samples 1
  | MixtureStep moved constant e squared d rate _ => MixtureStep moved constant e squared d rate 1
  | ResponseStep _ _ | Repeated _ _ | Parties _ => m
  end.

(** What a mechanism repeats, so often. *)
Definition repeats (c : certificate) (i : positive) : list positive :=
  match mechanism_at c i with
  | Some (Repeated inner times) => repeat inner (Pos.to_nat times)
  | _ => [i]
  end.

(** What a mechanism is to a record of party [j]: that party's part. *)
Definition held_by (c : certificate) (j : nat) (i : positive) : list positive :=
  match mechanism_at c i with
  | Some (Parties parts) =>
      flat_map (fun part => if Nat.eqb (Pos.to_nat (fst part)) j then snd part else []) parts
  | _ => [i]
  end.

(** Steps that a mechanism consists of, for a record of party [j]; parts may repeat something, too. *)
Definition steps_of (c : certificate) (j : nat) (i : positive) : list positive :=
  flat_map (repeats c) (flat_map (held_by c j) (repeats c i)).

(** Whether an event reads the records of party [j]. *)
Definition concerns (e : event) (j : nat) : bool :=
  match event_parties e with
  | [] => true
  | named => existsb (fun p => Nat.eqb (Pos.to_nat p) j) named
  end.

(** The steps that the events allow to read the records of party [j]. *)
Definition allowed (c : certificate) (j : nat) : list positive :=
  flat_map (fun e =>
    if concerns e j
    then concat (repeat (steps_of c j (event_mechanism e)) (Pos.to_nat (event_times e)))
    else []) (events c).

Section Rounds.

Context {X : Type} (null : X) (r : execution X) (h : history).

(** Nothing of a party's records that the round does not read enters [f]. *)
Definition leaves_unread {V} (f : (nat -> list X) -> V) : Prop :=
  forall j data part, reads r h j = false -> f (with_part data j part) = f data.

(** The values that noise is added to are whole numbers. *)
Definition whole_values : Prop := forall data i, exists n : Z, value r h data i = IZR n.

(** A record that is zeroed out is as if it were not in the sample. *)
Definition null_is_absent : Prop :=
  forall j data before after, reads r h j = true ->
  value r h (with_part data j (before ++ null :: after))
  = value r h (with_part data j (before ++ after)).

Definition draws_as (s : scheme) : Prop :=
  match s, sampled_by r h with
  | Poisson rate, EachWith q => q = Q2R rate
  | FixedBatch size records, OutOf n k _ => n = Pos.to_nat size /\ k = Pos.to_nat records
  | WithReplacement size records, Again n k _ => n = Pos.to_nat size /\ k = Pos.to_nat records
  | _, _ => False
  end.

(** A step that samples does so for every party whose records it reads. *)
Definition samples_all (moved : relation) : Prop :=
  NoDup (sampled_parties r h) /\
  (forall j, In j (sampled_parties r h) <-> reads r h j = true) /\
  (moved = ZeroOutOne -> null_is_absent).

Definition samples_as (drawn : scheme) (moved : relation) : Prop :=
  draws_as drawn /\ samples_all moved.

(** So does a mixture, which is told a probability: of a Poisson sample, or at least that of a batch
    of different records, whose number does not change. *)
Definition samples_at (rate : Q) (moved : relation) : Prop :=
  match sampled_by r h with
  | EachWith q => q = Q2R rate /\ (moved = ZeroOutOne -> null_is_absent)
  | OutOf size records _ =>
      moved <> AddRemoveOne /\ (0 < size <= records)%nat /\ INR size / INR records <= Q2R rate
  | Again _ _ _ => False
  end /\ NoDup (sampled_parties r h) /\
  (forall j, In j (sampled_parties r h) <-> reads r h j = true).

(** Which Gaussian step a round is. *)
Definition is_step (m : option mechanism) (moved : relation) (squared : Q) (d : derivation)
  (std : Q) : Prop :=
  (m = Some (GaussianStep moved squared d std) /\ sampled_parties r h = []) \/
  (exists drawn, m = Some (SampledStep drawn moved squared d std) /\ samples_as drawn moved).

(** Discrete noise is added to whole numbers. *)
Definition is_discrete_step (m : option mechanism) (moved : relation) (squared : Q)
  (d : derivation) (std : Q) : Prop :=
  m = Some (DiscreteGaussianStep moved squared d std) /\
  noise r h = DiscreteGaussian (Q2R std) /\ whole_values.

(** The value is derived so, as a function of each party's records that the round reads. *)
Definition value_derives (moved : relation) (d : derivation) : Prop :=
  forall j data, reads r h j = true ->
  derives null moved d (euclidean (dimension r h)) (fun part => value r h (with_part data j part)).

(** The value is derived as the list says; where records of a Poisson sample are replaced, by the same
    of one more, too: what is declared to bring nothing does not tell how many were drawn. *)
Definition gaussian_round (m : option mechanism) : Prop :=
  exists moved squared d std,
  (is_step m moved squared d std /\ noise r h = Normal (Q2R std) \/
   is_discrete_step m moved squared d std) /\
  value_derives moved d /\
  (forall rate, m = Some (SampledStep (Poisson rate) ReplaceOne squared d std) -> value_derives AddRemoveOne d) /\
  leaves_unread (value r h).

(** Both are derived so: what all records have in common, and the value of a sample, which is derived of
    one record more, too, if it is linear in the records. *)
Definition mixture_round (m : option mechanism) : Prop :=
  exists moved constant e squared d rate std,
  m = Some (MixtureStep moved constant e squared d rate std) /\ noise r h = Beside (Q2R std) /\
  samples_at rate moved /\
  (forall j data, reads r h j = true ->
     derives null moved e (euclidean (dimension r h))
       (fun part => unsampled r h (with_part data j part))) /\
  value_derives moved d /\
  (moved = ReplaceOne -> linear_in_records d = true -> value_derives AddRemoveOne d) /\
  leaves_unread (unsampled r h) /\ leaves_unread (value r h).

(** What is derived is the value of one sample. *)
Definition accumulated_round (m : option mechanism) : Prop :=
  exists moved squared d rate samples std,
  m = Some (AccumulatedStep moved squared d rate samples std) /\
  noise r h = Accumulated (Q2R rate) (Q2R std) (Pos.to_nat samples) /\ samples_all moved /\
  value_derives moved d /\
  leaves_unread (value r h).

(** Which Laplace step a round is. *)
Definition is_laplace_step (m : option mechanism) (moved : relation) (squared : Q)
  (d : derivation) (scale : Q) : Prop :=
  (m = Some (LaplaceStep moved squared d scale) /\ noise r h = Laplace (Q2R scale) /\
     sampled_parties r h = []) \/
  (exists drawn, m = Some (SampledLaplaceStep drawn moved squared d scale) /\
     noise r h = Laplace (Q2R scale) /\ samples_as drawn moved) \/
  (m = Some (DiscreteLaplaceStep moved squared d scale) /\
     noise r h = DiscreteLaplace (Q2R scale) /\ whole_values).

(** The total of the value's coordinates with any signs is derived so: the largest is the l1 norm. *)
Definition derives_in_l1 (moved : relation) (d : derivation) : Prop :=
  forall j data (signs : nat -> R), reads r h j = true -> (forall i, Rabs (signs i) = 1) ->
  derives null moved d (euclidean 1)
    (fun part _ => total (seq 0 (dimension r h)) (fun i => signs i * value r h (with_part data j part) i)).

Definition laplace_round (m : option mechanism) : Prop :=
  exists moved squared d scale,
  is_laplace_step m moved squared d scale /\ derives_in_l1 moved d /\ leaves_unread (value r h).

Definition response_round (m : option mechanism) : Prop :=
  exists truth answers,
  m = Some (ResponseStep truth answers) /\ noise r h = Response (Q2R truth) (Pos.to_nat answers) /\
  (forall data, (answer r h data < Pos.to_nat answers)%nat) /\ leaves_unread (answer r h).

(** The value is a law of answers. What is impossible of some data is so of their neighbours. *)
Definition weighted_round (m : option mechanism) : Prop :=
  exists moved squared d scale answers,
  m = Some (PureStep moved squared d scale) /\ noise r h = Weighted answers /\
  (forall data, distribution (seq 0 answers) (value r h data)) /\
  (forall j x y a, reads r h j = true -> differ_at (neighbours null moved) j x y ->
     value r h x a = 0 -> value r h y a = 0) /\
  (forall j data a, reads r h j = true ->
     derives null moved d (euclidean 1)
       (fun part _ => Q2R scale * ln (value r h (with_part data j part) a))) /\
  leaves_unread (value r h).

(** Which round of a step with noise this is. *)
Definition noisy_round (m : option mechanism) : Prop :=
  gaussian_round m \/ laplace_round m \/ response_round m \/
  weighted_round m \/ mixture_round m \/ accumulated_round m.

(** What is said of data by [law] of the row of numbers that noise would be added to, a sample's too. *)
Definition said_of {A} (law : (nat -> R) -> A -> R) (data : nat -> list X) : A -> R :=
  match noise r h with
  | Normal _ | Laplace _ =>
      on_samples (draws_of (sampled_by r h)) (fun sample => law (value r h sample)) (sampled_parties r h) data
  | Beside _ =>
      on_samples (draws_of (sampled_by r h)) (fun sample => law (fun i => unsampled r h data i + value r h sample i))
        (sampled_parties r h) data
  | Accumulated rate _ samples =>
      on_samples (draws rate) (fun sample => law (accumulated samples (value r h) sample))
        (sampled_parties r h) (fun j => copied samples (data j))
  | Weighted answers => law (fun a => if (a <? answers)%nat then value r h data a else 0)
  | _ => law (value r h data)
  end.

End Rounds.

(** In place of a row with noise, as [with_noise] has it, one of finitely many answers is said, by a law that
    is a function of the row, the row itself, say. *)
Definition still_round {X} (null : X) (r : execution X) (h : history) (m : mechanism) : Prop :=
  exists (noisy : execution X) answers (law : (nat -> R) -> nat -> R),
  noisy_round null noisy h (Some (with_noise m)) /\ reads noisy h = reads r h /\
  noise r h = Weighted answers /\ (forall data, value r h data = said_of noisy h law data) /\
  (forall row, distribution (seq 0 answers) (law row)) /\
  (forall u v, (forall i, (i < dimension noisy h)%nat -> u i = v i) -> law u = law v).

(** Which round this is: of a step with noise, or of one that needs none. *)
Definition round_of {X} (null : X) (r : execution X) (h : history) (m : option mechanism) : Prop :=
  match m with
  | Some step => if still step then still_round null r h step else noisy_round null r h m
  | None => False
  end.

(** A run satisfies a certificate's event list if every round is a step of the list, and if the
    records of no party are read by more steps than the list allows, in any transcript and in
    whatever order. *)
Record satisfies {X} (null : X) (c : certificate) (r : execution X) : Prop := Satisfies {
  grids_ascend : forall h before, ascending m_infty (cuts r h before);
  rounds_are_steps : forall h, round_of null r h (mechanism_at c (next_mechanism r h));
  steps_are_allowed : forall j h, In h (all_transcripts r) ->
    exists rest, Permutation (met r j h ++ rest) (allowed c j) }.

(** ** What a claim says *)

(** A notion's last number: the larger, the less is said. *)
Definition cost_of_notion (n : notion) : Q :=
  match n with
  | Gdp c | Zcdp c | PureDp c => c
  | Rdp _ e | ApproxDp _ e => e
  end.

(** What a notion, with the last number [a], says of a mechanism of finitely many outcomes. *)
Definition costs {A D} (adj : D -> D -> Prop) (l : list A) (M : D -> A -> R) (n : notion)
  (a : R) : Prop :=
  match n with
  | Gdp _ => forall x y, adj x y -> below_profile l (M x) (M y) (gaussian_profile (sqrt a))
  | Zcdp _ => zcdp adj l M a
  | PureDp _ => pure adj l M a
  | Rdp order _ => rdp adj l M (Q2R order) a
  | ApproxDp delta _ => dp adj l M a (Q2R delta)
  end.

(** Of a group approximate DP says what its records do at once. The other notions say it of any
    so many steps of the relation, which may be at several parties. *)
Definition neighbours_of {X} (null : X) (n : notion) :
  relation -> positive -> (nat -> list X) -> (nat -> list X) -> Prop :=
  match n with ApproxDp _ _ => unit_neighbours null | _ => group_neighbours null end.

Definition claimed {X A} (null : X) (l : list A) (M : (nat -> list X) -> A -> R)
  (statement : claim) : Prop :=
  costs (neighbours_of null (claim_notion statement) (claim_relation statement) (claim_group statement))
    l M (claim_notion statement) (Q2R (cost_of_notion (claim_notion statement))).

(** Of a run: of all that is ever seen of it. *)
Definition holds {X} (null : X) (r : execution X) (statement : claim) : Prop :=
  claimed null (all_transcripts r) (run_law r) statement.

(** ** What a filter lets happen *)

(** A run of at most so many rounds, whose messages are any: what a round does may depend on all
    messages so far, so may what it costs, and a run that has stopped has rounds that read nobody.
    Towards a record of a party whose records it reads a round costs [cost h], in the notion of the
    budget that was [kept]; no transcript holds rounds that cost a party's records more than it. *)
Record filtered {X A} (null : X) (kept : claim) (outcomes : list A -> list A)
  (law : (nat -> list X) -> list A -> A -> R) (reads : list A -> nat -> bool)
  (cost : list A -> R) (most : nat) : Prop := Filtered {
  messages_are_drawn : forall data h, distribution (outcomes h) (law data h);
  others_are_unread : forall h j data part, reads h j = false ->
    forall a, In a (outcomes h) -> law (with_part data j part) h a = law data h a;
  rounds_cost : forall h, 0 <= cost h /\ forall j, reads h j = true ->
    costs (differ_at (neighbours null (claim_relation kept)) j) (outcomes h)
      (fun data => law data h) (claim_notion kept) (cost h);
  budget_is_kept : forall j h, In h (transcripts outcomes most) ->
    spent (cost_to reads cost j) h <= Q2R (cost_of_notion (claim_notion kept)) }.
