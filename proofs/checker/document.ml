(* From a document to the certificate that the extracted checker knows, and everything about a
   document that is text: its form, the hash of its events, its assumptions and axioms. *)

exception Wrong of string  (* the document proves nothing *)
exception Unsupported of string  (* the checker in Coq does not cover it *)

let wrong fmt = Printf.ksprintf (fun reason -> raise (Wrong reason)) fmt
let unsupported fmt = Printf.ksprintf (fun reason -> raise (Unsupported reason)) fmt

(* In the order in which lists of texts are written. *)
module Texts = Set.Make (struct
  type t = string

  let compare a b = compare (Json.code_points a) (Json.code_points b)
end)

(* --- reading --- *)

let fields names value =
  match value with
  | Json.Object found when List.length found = List.length names ->
    let field name =
      match List.assoc_opt name found with
      | Some value -> value
      | None -> wrong "expected the field %s" name in
    List.map field names
  | _ -> wrong "expected the fields %s" (String.concat ", " names)

let list = function Json.List l -> l | _ -> wrong "expected a list"
let text = function Json.Text s -> s | _ -> wrong "expected a text"

let at_least least = function
  | Json.Int n when Z.geq n (Z.of_int least) -> n
  | _ -> wrong "expected a whole number >= %d" least

let count = at_least 1
let place value = Z.succ (at_least 0 value)
let is_digits s = s <> "" && String.for_all (fun c -> c >= '0' && c <= '9') s

let unsigned s =
  if s <> "" && s.[0] = '-' then (String.sub s 1 (String.length s - 1), Z.neg) else (s, Fun.id)

let quotient numerator denominator : Kernel.q =
  let g = Z.gcd numerator denominator in
  { qnum = Z.divexact numerator g; qden = Z.divexact denominator g }

let rational value =
  let written = text value in
  let top, bottom =
    match String.index_opt written '/' with
    | None -> (written, "1")
    | Some i ->
      (String.sub written 0 i, String.sub written (i + 1) (String.length written - i - 1)) in
  let digits, sign = unsigned top in
  let fits s = is_digits s && String.length s <= 1500 in
  if not (fits digits && fits bottom) || Z.equal (Z.of_string bottom) Z.zero then
    wrong "expected a rational of up to 1500 digits";
  quotient (sign (Z.of_string digits)) (Z.of_string bottom)

let nonnegative (q : Kernel.q) =
  if Z.sign q.qnum < 0 then wrong "expected a number >= 0" else q

let dyadic value =
  let written = text value in
  match String.split_on_char 'p' written with
  | [ top; bottom ] ->
    let digits, sign = unsigned top and places, direction = unsigned bottom in
    if not (is_digits digits && is_digits places)
       || String.length digits > 16 || String.length places > 4 then
      wrong "expected a number such as '3p-2'";
    let mantissa = sign (Z.of_string digits) in
    let exponent = Z.to_int (direction (Z.of_string places)) in
    if abs exponent > 1100 || (Z.is_even mantissa && written <> "0p0") then
      wrong "expected a number such as '3p-2'";
    nonnegative
      (if exponent >= 0 then quotient (Z.shift_left mantissa exponent) Z.one
       else quotient mantissa (Z.shift_left Z.one (-exponent)))
  | _ -> wrong "expected a number such as '3p-2'"

let whole (q : Kernel.q) =
  if Z.equal q.qden Z.one && Z.geq q.qnum Z.one then q.qnum
  else wrong "expected a whole count >= 1"

(* --- sensitivities --- *)

let relation value : Kernel.relation =
  match text value with
  | "replace-one" -> ReplaceOne
  | "zero-out-one" -> ZeroOutOne
  | "add-remove-one" -> AddRemoveOne
  | "replace-feature-column" -> unsupported "replace-feature-column"
  | other -> wrong "expected a relation instead got %s" other

(* A step of a derivation as it is written: its parameters but for reasons, and its premises. *)
type step = {
  id : int; rule : string; squared : Kernel.q; numbers : (string * Kernel.q) list;
  above : step list }

let step_count = ref 0

let rec step depth value =
  if depth > 65 then wrong "expected a derivation up to 64 deep";
  match fields [ "rule"; "squared"; "parameters"; "premises" ] value with
  | [ rule; squared; parameters; premises ] ->
    let number pair =
      match list pair with
      | [ name; (Json.Text _ as value) ] -> Some (text name, rational value)
      | [ _; _ ] -> None
      | _ -> wrong "expected a pair" in
    incr step_count;
    { id = !step_count; rule = text rule; squared = rational squared;
      numbers = List.filter_map number (list parameters);
      above = List.map (step (depth + 1)) (list premises) }
  | _ -> assert false

(* A power of two in [2^-1074, 2^970]: 2^53 of them are doubles. *)
let is_step (q : Kernel.q) =
  let is_power z = Z.sign z > 0 && Z.sign (Z.logand z (Z.pred z)) = 0 in
  is_power q.qnum && is_power q.qden && Z.numbits q.qnum <= 971 && Z.numbits q.qden <= 1075

let float_shapes = [
  ("float-exact", (0, [ "width" ]));
  ("float-count", (0, [ "most"; "width" ]));
  ("float-grid", (0, [ "most"; "step"; "width" ]));
  ("float-mean", (0, [ "bound"; "count"; "width" ]));
  ("float-total", (0, [ "bound"; "count"; "width" ]));
  ("float-scores", (0, [ "bound"; "terms"; "width" ]));
  ("float-shift", (1, [ "size" ]));
  ("float-scale", (1, [ "factor" ]));
  ("float-product", (1, [ "size"; "width" ]));
  ("float-add", (2, []));
  ("float-pair", (2, []));
  ("float-rows", (2, []));
  ("float-map", (1, [ "operator_norm"; "height" ]));
  ("float-clip", (1, [ "radius" ])) ]

(* How a row is computed: the bounds that it states are for the kernel to follow. *)
let rec operations { rule; squared; numbers; above; _ } : Kernel.operations =
  let arity, names =
    match List.assoc_opt rule float_shapes with
    | Some shape -> shape
    | None -> wrong "expected a rule of rounding instead got %s" rule in
  if List.map fst numbers <> names @ [ "magnitude"; "error" ] || List.length above <> arity then
    wrong "%s: expected other parameters or premises" rule;
  List.iter (fun (_, q) -> ignore (nonnegative q)) numbers;
  let m = List.assoc "magnitude" numbers and e = List.assoc "error" numbers in
  if not (Z.equal squared.qnum (Z.mul e.qnum e.qnum) && Z.equal squared.qden (Z.mul e.qden e.qden))
  then wrong "%s: expected the square of its error" rule;
  match (rule, List.map snd numbers, List.map operations above) with
  | "float-exact", width :: _, [] -> RoundLeaf (FloatExact (whole width), m, e)
  | "float-count", n :: width :: _, [] -> RoundLeaf (FloatCount (whole n, whole width), m, e)
  | "float-grid", most :: step :: width :: _, [] ->
    if not (is_step step) then wrong "expected a step that is a power of two";
    RoundLeaf (FloatGrid (most, step, whole width), m, e)
  | "float-mean", g :: n :: width :: _, [] ->
    RoundLeaf (FloatMean (g, whole n, whole width), m, e)
  | "float-total", g :: n :: width :: _, [] ->
    RoundLeaf (FloatTotal (g, whole n, whole width), m, e)
  | "float-scores", g :: n :: width :: _, [] ->
    RoundLeaf (FloatScores (g, whole n, whole width), m, e)
  | "float-shift", c :: _, [ p ] -> RoundUnary (FloatShift c, m, e, p)
  | "float-scale", c :: _, [ p ] -> RoundUnary (FloatScale c, m, e, p)
  | "float-product", c :: width :: _, [ p ] -> RoundUnary (FloatProduct (c, whole width), m, e, p)
  | "float-map", a :: height :: _, [ p ] -> RoundUnary (FloatMap (a, whole height), m, e, p)
  | "float-clip", c :: _, [ p ] -> RoundUnary (FloatClip c, m, e, p)
  | "float-add", _, [ p; q ] -> RoundBinary (FloatAdd, m, e, p, q)
  | "float-pair", _, [ p; q ] -> RoundBinary (FloatPair, m, e, p, q)
  | "float-rows", _, [ p; q ] -> RoundBinary (FloatRows, m, e, p, q)
  | _ -> wrong "%s: expected other parameters" rule

let at_most (a : Kernel.q) (b : Kernel.q) =
  Z.leq (Z.mul a.qnum b.qden) (Z.mul b.qnum a.qden)

let one : Kernel.q = { qnum = Z.one; qden = Z.one }
let over (a : Kernel.q) (b : Kernel.q) =
  quotient (Z.mul a.qnum b.qden) (Z.mul a.qden b.qnum)
let product (a : Kernel.q) (b : Kernel.q) =
  quotient (Z.mul a.qnum b.qnum) (Z.mul a.qden b.qden)
let twice (q : Kernel.q) = quotient (Z.shift_left q.qnum 1) q.qden
let size (q : Kernel.q) : Kernel.q = { q with qnum = Z.abs q.qnum }
let first s = snd (List.hd s.numbers)
let most_pairs = 1 lsl 16

(* Nothing is left to compare: nothing moves, or a leaf's own rounding is bounded. *)
let rec counts step reach a =
  match a.rule with
  | "scaled" ->
    let factor = first a in
    let steps = quotient (Z.mul factor.qnum step.Kernel.qden) (Z.mul factor.qden step.qnum) in
    Z.equal steps.qden Z.one && Z.sign factor.qnum <> 0
    && List.for_all (counts one (over reach (size factor))) a.above
  | "linear-map" -> List.for_all (counts one reach) a.above
  | "sum-of-bounded" -> at_most (List.assoc "bound" a.numbers) reach
  | "histogram" | "histogram-l1" -> at_most one reach
  | "declared" -> true
  | _ -> false

let is_of a x =
  let stated name = List.assoc name a.numbers and bounds name = List.assoc name x.numbers in
  a.rule = "declared" || Z.sign a.squared.qnum = 0
  ||
  match (a.rule, x.rule) with
  | ("mean-of-bounded" | "mean-of-nonnegative"), "float-mean" ->
    at_most (stated "bound") (bounds "bound") && at_most (stated "count") (bounds "count")
  | "sum-of-bounded", ("float-total" | "float-scores") ->
    at_most (stated "bound") (bounds "bound")
  | "linear-map", "float-total" -> (* a sum of numbers, one a record, in l1 *)
    (List.hd a.above).rule = "histogram-l1" && at_most (first a) (bounds "bound")
  | _, "float-count" -> counts one (twice (bounds "most")) a
  | _, "float-grid" -> counts (bounds "step") (twice (bounds "most")) a
  | "vertical-predictions", "float-scores" ->
    at_most (product (stated "row_bound") (stated "radius")) (bounds "bound")
  | ("strongly-convex-argmin" | "label-dual"), "float-exact" -> true
  | _ -> false

let moved a = List.filter (fun p -> Z.sign p.squared.qnum <> 0) a.above

(* Every operation that a sensitivity was derived by is among those that are rounded; more may be,
   of what moves nothing. No theorem needs it: a run satisfies both trees or is not meant. *)
let require_same_operations ~l1 meant rounded =
  let known = Hashtbl.create 64 and left = ref most_pairs in
  let rec same a x =
    match Hashtbl.find_opt known (a.id, x.id) with
    | Some found -> found
    | None ->
      decr left;
      if !left < 0 then unsupported "more than %d pairs of operations" most_pairs;
      let found = is_of a x || corresponds a x || unmoved a x || larger a x in
      Hashtbl.add known (a.id, x.id) found;
      found
  and both a x =
    match (a.above, x.above) with
    | [ p; q ], [ y; z ] -> (same p y && same q z) || (same p z && same q y)
    | _ -> false
  and corresponds a x =
    let through fits = fits && same (List.hd a.above) (List.hd x.above) in
    match (a.rule, x.rule) with
    | "scaled", "float-scale" -> through (size (first a) = first x)
    | "scaled", "float-product" -> through (at_most (size (first a)) (first x))
    | "linear-map", "float-map" | "clip", "float-clip" -> through (at_most (first a) (first x))
    | "sum", "float-shift" -> (
        match moved a with [ p ] -> same p (List.hd x.above) | _ -> false)
    | "sum", "float-add" | "concatenation", "float-pair" | "disjoint", "float-rows" -> both a x
    | "sum", "float-pair" -> l1 && both a x (* how a concatenation is written in l1 *)
    | _ -> false
  and unmoved a x =
    match a.rule with
    | "disjoint" -> List.for_all (fun p -> same p x) a.above
    | "scaled" -> size (first a) = one && same (List.hd a.above) x
    | "concatenation" -> (match moved a with [ p ] -> same p x | _ -> false)
    | _ -> false
  and larger a x =
    let passes =
      match x.rule with
      | "float-shift" | "float-add" | "float-pair" | "float-rows" -> true
      | "float-scale" -> first x = one
      | "float-product" -> at_most one (first x)
      | _ -> false in
    passes && List.exists (same a) x.above in
  if not (same meant rounded) then
    wrong "expected the same operations in a sensitivity and its rounding"

let shapes = [
  ("declared", (0, [ "value"; "reason" ]));
  ("mean-of-bounded", (0, [ "bound"; "count" ]));
  ("sum-of-bounded", (0, [ "bound" ]));
  ("mean-of-nonnegative", (0, [ "bound"; "count" ]));
  ("histogram", (0, []));
  ("histogram-l1", (0, []));
  ("strongly-convex-argmin", (0, [ "lipschitz"; "modulus"; "tolerance"; "count" ]));
  ("vertical-predictions",
   (0, [ "row_bound"; "slope_bound"; "radius"; "penalty"; "modulus"; "tolerance"; "u"; "v" ]));
  ("label-dual", (0, [ "derivative_bound"; "label_gap"; "tolerance" ]));
  ("scaled", (1, [ "factor" ]));
  ("sum", (2, [ "u"; "v" ]));
  ("linear-map", (1, [ "operator_norm" ]));
  ("clip", (1, [ "radius" ]));
  ("lattice", (1, [ "distance"; "dimension"; "u"; "w" ]));
  ("lattice-l1", (1, [ "distance"; "dimension"; "u" ]));
  ("computed-l1", (2, [ "rows"; "u" ]));
  ("computed", (2, [ "rows"; "u"; "w" ]));
  ("concatenation", (2, []));
  ("disjoint", (2, [])) ]

let most_depth = 64

(* The derivation, and the reasons given for numbers typed in by hand. *)
let rec derivation ?(below = "") depth value : Kernel.derivation * Texts.t =
  match fields [ "rule"; "squared"; "parameters"; "premises" ] value with
  | [ rule; squared; parameters; premises ] ->
    let rule = text rule in
    if depth > most_depth then wrong "expected a derivation up to %d deep" most_depth;
    let arity, names =
      match List.assoc_opt rule shapes with
      | Some shape -> shape
      | None -> unsupported "rule %s" rule in
    let pairs = List.map
      (fun pair -> match list pair with
         | [ name; value ] -> (text name, value)
         | _ -> wrong "expected a pair") (list parameters) in
    if List.map fst pairs <> names then wrong "%s: expected other parameters" rule;
    if List.length (list premises) <> arity then wrong "%s: expected %d premises" rule arity;
    let meant, rounding =
      match (rule, list premises) with
      | "computed", [ meant; rounding ] when depth = 1 && below = "lattice" ->
        ([ meant ], Some (step 2 rounding))
      | "computed-l1", [ meant; rounding ] when depth = 1 && below = "lattice-l1" ->
        ([ meant ], Some (step 2 rounding))
      | ("computed" | "computed-l1"), _ -> wrong "computed: expected it to be what a lattice is about"
      | _, premises -> (premises, None) in
    let premises = List.map (derivation ~below:rule (depth + 1)) meant in
    let follow found =
      let followed = operations found in
      let l1 = rule = "computed-l1" in
      if l1 && not (Kernel.bounded_in_l1 followed) then unsupported "rounding of rows in l1";
      require_same_operations ~l1 (step 2 (List.hd meant)) found;
      followed in
    let rounding = Option.map follow rounding in
    let reason = if rule = "declared" then Some (List.assoc "reason" pairs) else None in
    let numbers = List.filter (fun (name, _) -> name <> "reason") pairs in
    let numbers = List.map (fun (_, value) -> rational value) numbers in
    if rule <> "scaled" then List.iter (fun q -> ignore (nonnegative q)) numbers;
    let reasons = List.fold_left (fun all (_, more) -> Texts.union all more) Texts.empty premises in
    let reasons =
      match reason with
      | None -> reasons
      | Some value -> Texts.add (text (List.hd (fields [ "text" ] value))) reasons in
    (built ?rounding rule (rational squared) numbers (List.map fst premises), reasons)
  | _ -> assert false

and built ?rounding rule squared numbers premises : Kernel.derivation =
  match (rule, numbers, premises) with
  | "declared", [ v ], [] -> Leaf0 (Declared v, squared)
  | "mean-of-bounded", [ bound; n ], [] -> Leaf0 (MeanOfBounded (bound, whole n), squared)
  | "sum-of-bounded", [ bound ], [] -> Leaf0 (SumOfBounded bound, squared)
  | "mean-of-nonnegative", [ bound; n ], [] ->
    Leaf0 (MeanOfNonnegative (bound, whole n), squared)
  | "histogram", [], [] -> Leaf0 (Histogram, squared)
  | "histogram-l1", [], [] -> Leaf0 (HistogramL1, squared)
  | "strongly-convex-argmin", [ lipschitz; modulus; tolerance; n ], [] ->
    Leaf0 (StronglyConvexArgmin (lipschitz, modulus, tolerance, whole n), squared)
  | "vertical-predictions", [ rows; slope; radius; penalty; modulus; tolerance; u; v ], [] ->
    Leaf0 (VerticalPredictions (rows, slope, radius, penalty, modulus, tolerance, u, v), squared)
  | "label-dual", [ slope; gap; tolerance ], [] -> Leaf0 (LabelDual (slope, gap, tolerance), squared)
  | "scaled", [ factor ], [ p ] -> Unary (Scaled factor, squared, p)
  | "linear-map", [ norm ], [ p ] -> Unary (LinearMap norm, squared, p)
  | "clip", [ radius ], [ p ] -> Unary (Clip radius, squared, p)
  | "lattice", [ distance; dimension; u; w ], [ p ] ->
    Unary (Lattice (distance, whole dimension, u, w), squared, p)
  | "lattice-l1", [ distance; dimension; u ], [ p ] ->
    Unary (LatticeL1 (distance, whole dimension, u), squared, p)
  | "computed", [ rows; u; w ], [ p ] ->
    Unary (Computed (whole rows, u, w, Option.get rounding), squared, p)
  | "computed-l1", [ rows; u ], [ p ] ->
    Unary (ComputedL1 (whole rows, u, Option.get rounding), squared, p)
  | "sum", [ u; v ], [ p; q ] -> Binary (Sum (u, v), squared, p, q)
  | "concatenation", [], [ p; q ] -> Binary (Concatenation, squared, p, q)
  | "disjoint", [], [ p; q ] -> Binary (Disjoint, squared, p, q)
  | _ -> wrong "%s: expected other parameters" rule

(* What is computed is put on a lattice of all its numbers, no finer than that of the noise. *)
let require_lattice (tree : Kernel.derivation) (noise : Kernel.q) =
  match tree with
  | Unary (Lattice (distance, dimension, _, _), _, Unary (Computed (rows, _, _, t), _, _))
  | Unary (LatticeL1 (distance, dimension, _), _, Unary (ComputedL1 (rows, _, t), _, _)) -> (
      match Kernel.computed_width t with
      | Some width ->
        if not (Z.equal dimension (Z.mul rows width)) then wrong "expected another dimension";
        (* rounding moves a coordinate by at most (1/2 + 2^-12) 2^-50 of the noise *)
        let least = quotient (Z.mul (Z.of_int 2049) noise.qnum) (Z.shift_left noise.qden 62) in
        if not (at_most least distance) then wrong "expected a lattice of a larger distance"
      | None -> wrong "expected bounds on rounding that follow from the operations")
  | _ -> ()

(* --- mechanisms and events --- *)

let kind_of = function
  | Json.Object found -> (
      match List.assoc_opt "kind" found with
      | Some value -> text value
      | None -> wrong "expected a kind")
  | _ -> wrong "expected a mechanism"

(* The places of mechanisms, by canonical form. *)
let places texts =
  let table = Hashtbl.create 64 in
  List.iteri
    (fun i text ->
       if Hashtbl.mem table text then wrong "expected distinct mechanisms";
       Hashtbl.add table text (Z.of_int (i + 1)))
    texts;
  table

(* The relation, the squared sensitivity in [expected], and its derivation; the reasons. *)
let sensitivity expected noise value =
  match fields [ "norm"; "adjacency"; "squared"; "derivation" ] value with
  | [ norm; adjacency; squared; tree ] ->
    if text norm <> expected then unsupported "norm %s" (text norm);
    let tree, reasons = derivation 0 tree in
    require_lattice tree noise;
    (relation adjacency, rational squared, tree, reasons)
  | _ -> assert false

(* The same with the noise. *)
let noisy scale expected value =
  match fields [ "kind"; "sensitivity"; scale ] value with
  | [ _; stated; noise ] ->
    let noise = dyadic noise in
    let moved, squared, tree, reasons = sensitivity expected noise stated in
    (moved, squared, tree, noise, reasons)
  | _ -> assert false

let gaussian = noisy "noise_std" "l2"

let response value : Kernel.mechanism =
  match fields [ "kind"; "truth"; "categories" ] value with
  | [ _; truth; categories ] ->
    let truth = dyadic truth in
    if Z.sign truth.qnum = 0 || Z.geq truth.qnum truth.qden then
      wrong "expected answers that exclude no other";
    ResponseStep (truth, at_least 2 categories)
  | _ -> assert false

let by_party = "every record belongs to one party, and who holds which record is public and fixed"

let samples_hidden = "samples are drawn afresh, as stated, and stay hidden"
let untold = "what is declared does not tell who was drawn"
let divided = "means of a Poisson sample divide by the number in their derivation"
let whole_numbers = "what discrete noise is added to is whole numbers"

(* Whether a value is whole numbers by its derivation; false where that is the list's word. *)
let rec is_whole (tree : Kernel.derivation) =
  match tree with
  | (Leaf0 (_, squared) | Unary (_, squared, _) | Binary (_, squared, _, _))
    when Z.sign squared.qnum = 0 -> true
  | Leaf0 ((Histogram | HistogramL1), _) -> true
  | Leaf0 ((Declared _ | SumOfBounded _), _) -> false
  | Unary (Scaled factor, _, p) when Z.equal factor.qden Z.one -> is_whole p
  | Unary (LinearMap _, _, p) ->
    ignore (is_whole p);
    false
  | Binary (_, _, p, q) ->
    let first = is_whole p in
    is_whole q && first
  | _ -> wrong "expected discrete noise on whole numbers"

(* Whether a rule of this kind is in a derivation. *)
let rec has kind (tree : Kernel.derivation) =
  match tree with
  | Leaf0 (rule, _) -> kind rule
  | Unary (_, _, p) -> has kind p
  | Binary (_, _, p, q) -> has kind p || has kind q

(* What hiding a Poisson sample of records takes on trust. *)
let trusted_sample moved tree reasons =
  let is_mean : Kernel.leaf_rule -> bool = function
    | MeanOfBounded _ | MeanOfNonnegative _ | StronglyConvexArgmin _ -> true
    | _ -> false in
  let found = if moved = Kernel.AddRemoveOne || Texts.is_empty reasons then [] else [ untold ] in
  Texts.of_list (samples_hidden :: (if has is_mean tree then divided :: found else found))

(* The same, where it hides what moves; under zero-out, null records add nothing. *)
let sampled moved tree reasons =
  let is_of_whom : Kernel.leaf_rule -> bool = function
    | Histogram | HistogramL1 | StronglyConvexArgmin _ -> true
    | _ -> false in
  if moved = Kernel.ReplaceOne && not (Kernel.bounds_each_record tree) then
    wrong "expected a sum of vectors that are bounded one by one";
  if moved = ZeroOutOne && has is_of_whom tree then
    wrong "expected a sum to which null records add nothing in a sample";
  trusted_sample moved tree reasons

(* What is sampled: Gaussian or Laplace noise. *)
let sampled_noise event : (_ -> _ -> _ -> _ -> _ -> Kernel.mechanism) * _ =
  match kind_of event with
  | "gaussian" ->
    ( (fun drawn moved squared tree noise -> SampledStep (drawn, moved, squared, tree, noise)),
      gaussian event )
  | "laplace" ->
    ( (fun drawn moved squared tree noise -> SampledLaplaceStep (drawn, moved, squared, tree, noise)),
      noisy "scale" "l1" event )
  | kind -> unsupported "sampled mechanism %s" kind

(* What using a mechanism takes on trust. *)
type steps = { read : Kernel.mechanism; trusts : Texts.t }

let declared = Texts.map (fun reason -> "declared: " ^ reason)

let of_whole tree reasons =
  let said = if is_whole tree then Texts.empty else Texts.singleton whole_numbers in
  Texts.union said (declared reasons)

(* Whether a mechanism, repeated or not, is made of parts by party. *)
let rec is_split value =
  match kind_of value with
  | "parties" -> true
  | "repeated" -> (
      match fields [ "kind"; "event"; "times" ] value with
      | [ _; inner; _ ] -> is_split inner
      | _ -> assert false)
  | _ -> false

let listed_place table value =
  match Hashtbl.find_opt table (Json.canonical value) with
  | Some i -> i
  | None -> wrong "expected a listed mechanism"

(* Each party's number, and the mechanisms that it runs. *)
let parts_by_party number table value =
  match fields [ "kind"; "parts" ] value with
  | [ _; parts ] ->
    let part value =
      match list value with
      | [ name; held ] -> (text name, list held)
      | _ -> wrong "expected a party and its mechanisms" in
    let parts = List.map part (list parts) in
    let names = List.map fst parts in
    if List.length (List.sort_uniq compare names) < List.length names then
      wrong "expected each party once";
    if List.exists (fun (_, held) -> List.exists is_split held) parts then
      wrong "expected parties that are not split into parties again";
    List.map (fun (name, held) -> (number name, List.map (listed_place table) held)) parts
  | _ -> assert false

let mechanism number table value : steps =
  match kind_of value with
  | "parties" ->
    { read = Parties (parts_by_party number table value); trusts = Texts.empty }
  | "gaussian" ->
    let moved, squared, tree, noise, reasons = gaussian value in
    { read = GaussianStep (moved, squared, tree, noise); trusts = declared reasons }
  | "laplace" ->
    let moved, squared, tree, scale, reasons = noisy "scale" "l1" value in
    { read = LaplaceStep (moved, squared, tree, scale); trusts = declared reasons }
  | "discrete-laplace" ->
    let moved, squared, tree, scale, reasons = noisy "scale" "l1" value in
    { read = DiscreteLaplaceStep (moved, squared, tree, scale); trusts = of_whole tree reasons }
  | "discrete-gaussian" ->
    let moved, squared, tree, noise, reasons = gaussian value in
    { read = DiscreteGaussianStep (moved, squared, tree, noise); trusts = of_whole tree reasons }
  | "randomised-response" -> { read = response value; trusts = Texts.empty }
  | "pure" ->
    let moved, squared, tree, scale, reasons = noisy "scale" "l1" value in
    { read = PureStep (moved, squared, tree, scale); trusts = declared reasons }
  | "poisson-sampled" -> (
      match fields [ "kind"; "event"; "rate" ] value with
      | [ _; event; rate ] ->
        let step, (moved, squared, tree, noise, reasons) = sampled_noise event in
        let rate = dyadic rate in
        if Z.gt rate.qnum rate.qden then wrong "expected a rate in [0, 1]";
        { read = step (Kernel.Poisson rate) moved squared tree noise;
          trusts = Texts.union (sampled moved tree reasons) (declared reasons) }
      | _ -> assert false)
  | "sampled-without-replacement" | "sampled-with-replacement" -> (
      match fields [ "kind"; "event"; "batch"; "records" ] value with
      | [ _; event; size; records ] ->
        let step, (moved, squared, tree, noise, reasons) = sampled_noise event in
        let size = count size and records = count records in
        let again = kind_of value = "sampled-with-replacement" in
        if Z.gt size records && not again then wrong "expected a batch of at most all records";
        if moved <> ReplaceOne then wrong "expected replace-one";
        let too_many : Kernel.leaf_rule -> bool = function
          | MeanOfBounded (_, n) | StronglyConvexArgmin (_, _, _, n) -> Z.gt n size
          | _ -> false in
        if has too_many tree then wrong "expected means over the records drawn";
        let drawn : Kernel.scheme =
          if again then WithReplacement (size, records) else FixedBatch (size, records) in
        { read = step drawn moved squared tree noise;
          trusts = Texts.add samples_hidden (declared reasons) }
      | _ -> assert false)
  | "gaussian-mixture" -> (
      match fields [ "kind"; "constant"; "sampled"; "rate"; "noise_std" ] value with
      | [ _; constant; drawn; rate; noise ] ->
        let noise = dyadic noise and rate = dyadic rate in
        if Z.gt rate.qnum rate.qden then wrong "expected a rate in [0, 1]";
        let moved, always, by_constant, told = sensitivity "l2" noise constant in
        let moved', squared, tree, reasons = sensitivity "l2" noise drawn in
        if moved <> moved' then wrong "expected one relation";
        let trust = if moved = ReplaceOne then trusted_sample else sampled in
        { read = MixtureStep (moved, always, by_constant, squared, tree, rate, noise);
          trusts = Texts.union (trust moved tree reasons) (declared (Texts.union told reasons)) }
      | _ -> assert false)
  | "poisson-accumulated" -> (
      match fields [ "kind"; "event"; "rate"; "batches" ] value with
      | [ _; event; rate; samples ] ->
        if kind_of event <> "gaussian" then wrong "expected samples under Gaussian noise";
        let moved, squared, tree, noise, reasons = gaussian event in
        let rate = dyadic rate and samples = count samples in
        if Z.gt rate.qnum rate.qden then wrong "expected a rate in [0, 1]";
        if moved = ReplaceOne then wrong "expected add/remove or zero-out";
        (match tree with
         | Unary (Lattice _, _, Unary (Computed _, _, _)) ->
           unsupported "a sum of samples of each of which is told how it is rounded"
         | _ -> ());
        { read = AccumulatedStep (moved, squared, tree, rate, samples, noise);
          trusts = Texts.union (sampled moved tree reasons) (declared reasons) }
      | _ -> assert false)
  | "repeated" -> (
      match fields [ "kind"; "event"; "times" ] value with
      | [ _; inner; times ] ->
        { read = Repeated (listed_place table inner, count times); trusts = Texts.empty }
      | _ -> assert false)
  | kind -> unsupported "mechanism %s" kind

let most_events = 1_000_000

type events = { listed : Kernel.event list; subject : string; parties : bool }

(* Parties are numbered as they appear. *)
let numbered () =
  let numbers = Hashtbl.create 64 in
  fun party ->
    match Hashtbl.find_opt numbers party with
    | Some n -> n
    | None ->
      let n = Z.of_int (Hashtbl.length numbers + 1) in
      Hashtbl.add numbers party n;
      n

(* The events, and the hash of the list as it was written when the run was recorded. *)
let read_events number mechanisms texts value =
  let texts = Array.of_list texts and split = Array.of_list (List.map is_split mechanisms) in
  let by_party = ref false in
  let written = Buffer.create 65536 and total = ref 0 in
  let event value : Kernel.event =
    match fields [ "audience"; "mechanism"; "parties"; "release"; "round"; "times" ] value with
    | [ audience; place; named; release; round; times ] ->
      let mechanism = Z.to_int (at_least 0 place) and times = Z.to_int (count times) in
      total := !total + times;
      if !total > most_events || mechanism >= Array.length texts then
        wrong "expected up to %d events of listed mechanisms" most_events;
      let audience = text audience and named = List.map text (list named) in
      if List.length (List.sort_uniq compare named) < List.length named
         || (named <> [] && split.(mechanism)) then
        wrong "expected parties named once";
      if named <> [] || split.(mechanism) then by_party := true;
      let release = text release in
      if not (List.mem audience [ "server"; "neighbours"; "public" ]) || release = "" then
        wrong "expected a known audience and a release";
      let one =
        Printf.sprintf
          "{\"audience\":\"%s\",\"mechanism\":%s,\"parties\":[%s],\"release\":\"%s\",\
           \"round\":%s,\"schema\":1}"
          audience texts.(mechanism)
          (String.concat "," (List.map (Printf.sprintf "\"%s\"") named))
          release
          (Z.to_string (at_least 0 round)) in
      for _ = 1 to times do
        if Buffer.length written > 0 then Buffer.add_char written ',';
        Buffer.add_string written one
      done;
      { event_mechanism = Z.of_int (mechanism + 1);
        event_parties = List.map number (List.sort_uniq compare named);
        event_times = Z.of_int times }
    | _ -> assert false in
  let listed = List.map event (list value) in
  { listed;
    subject = Sha256.hex ("[" ^ Buffer.contents written ^ "]");
    parties = !by_party }

(* --- nodes --- *)

let notion labels values : Kernel.notion =
  match (labels, values) with
  | "gdp", [ a ] -> Gdp a
  | "zcdp", [ a ] -> Zcdp a
  | "pure-dp", [ a ] -> PureDp a
  | "rdp", [ order; epsilon ] -> Rdp (order, epsilon)
  | "approx-dp", [ delta; epsilon ] -> ApproxDp (delta, epsilon)
  | _ -> wrong "expected a notion instead got %s" labels

let notion_fields = function
  | "gdp" -> [ "mu_squared" ]
  | "zcdp" -> [ "rho" ]
  | "pure-dp" -> [ "epsilon" ]
  | "rdp" -> [ "order"; "epsilon" ]
  | "approx-dp" -> [ "delta"; "epsilon" ]
  | other -> wrong "expected a notion instead got %s" other

let claim value : Kernel.claim =
  let kind =
    match value with
    | Json.Object found when List.mem_assoc "notion" found -> text (List.assoc "notion" found)
    | _ -> wrong "expected a notion" in
  match fields ([ "adjacency"; "group"; "notion" ] @ notion_fields kind) value with
  | adjacency :: group :: _ :: values ->
    { claim_relation = relation adjacency;
      claim_group = count group;
      claim_notion = notion kind (List.map rational values) }
  | _ -> assert false

let probability value : Kernel.q =
  let q = rational value in
  if Z.sign q.qnum <= 0 || Z.geq q.qnum q.qden || Z.numbits q.qden - Z.numbits q.qnum > 2000 then
    wrong "expected delta in (2^-2000, 1)";
  q

(* What a node takes on trust, in the words of the document. *)
type trust = { used : Z.t list; statements : Texts.t }

let nothing = { used = []; statements = Texts.empty }

let using m = { nothing with used = [ m ] }

(* A mechanism, how often, and the level at which it enters. *)
let part value =
  match list value with
  | [ m; times; level ] ->
    let level = at_least 0 level in
    if Z.gt level (Z.of_int 128) then wrong "expected a level up to 128";
    ((place m, count times), Z.to_int level)
  | _ -> wrong "expected a mechanism, how often, and a level"

(* In place of the word about stopping. *)
let filtered =
  Texts.of_list
    [ "the filter's budget, its notion and its order were fixed before the first release, and every \
       release that would have crossed it was refused";
      "what a release does was decided before its noise was drawn, by earlier messages and nothing \
       else that was learnt from the data" ]

(* A mixture, and how much of its noise is for what it computes from all records. *)
let share value =
  match list value with
  | [ m; share ] ->
    let share = rational share in
    if Z.sign share.qnum <= 0 || Z.geq share.qnum share.qden then
      wrong "expected shares of the noise in (0, 1)";
    (match m with
     | Json.Int n when Z.sign n >= 0 -> (Z.succ n, share)
     | _ -> unsupported "shares of what is no mechanism")
  | _ -> wrong "expected a mechanism, and a share of its noise"

(* A mechanism, and how often. *)
let pair value =
  match list value with
  | [ m; times ] -> (place m, count times)
  | _ -> wrong "expected a mechanism, and how often"

let composed parts shares group (step : Kernel.q) doublings dense digits cut delta epsilon : Kernel.rule * trust =
  if Z.gt step.qden (Z.shift_left step.qnum 32) then
    unsupported "a step below 2^-32: its lists are too long";
  if Z.gt digits (Z.of_int 64) then unsupported "masses of more than 64 digits";
  ( PrivacyLoss (parts, shares, group, step, doublings, dense, digits, cut, delta, epsilon),
    { nothing with used = List.map (fun ((m, _), _) -> m) parts } )

let privacy_loss parameters =
  let names =
    [ "parts"; "shares"; "group"; "step"; "doublings"; "dense"; "digits"; "cut"; "delta";
      "epsilon" ] in
  match fields names parameters with
  | [ parts; shares; group; step; doublings; dense; digits; cut; delta; epsilon ] ->
      let cut = nonnegative (rational cut) and dense = at_least 4 dense in
      let digits = count digits and step = rational step in
      let doublings = List.map (at_least 0) (list doublings) in
      let often = List.fold_left Z.add Z.zero doublings in
      if Z.sign step.qnum <= 0
         || Z.gt step.qnum (Z.mul (Z.of_int 512) step.qden)
         || Z.numbits step.qden > 1024
         || Z.gt digits (Z.of_int 400) || Z.gt dense (Z.of_int 4096)
         || List.length doublings > 128 || Z.gt often (Z.of_int 128) then
        wrong "expected a grid within the limits";
      let group = count group in
      if Z.gt group (Z.of_int 64) then unsupported "groups of more than 64 records";
      (* of several for one mechanism the last counts *)
      let shares = List.rev_map share (list shares) in
      let parts = List.map part (list parts) in
      composed parts shares group step (List.map Z.to_int doublings) dense digits
        (Z.div cut.qnum cut.qden) (probability delta) (nonnegative (rational epsilon))
  | _ -> assert false

(* The same as documents first had it: on one step, dots half of it apart. *)
let loss_distribution parameters =
  match fields [ "parts"; "step"; "reach"; "bits"; "delta"; "epsilon" ] parameters with
  | [ parts; step; reach; bits; delta; epsilon ] ->
    let parts = List.map (fun part -> (pair part, 0)) (list parts) in
    let step = rational step and reach = count reach and bits = count bits in
    if Z.sign step.qnum <= 0 || Z.gt reach (Z.of_int 32768) || Z.gt bits (Z.of_int 512)
       || Z.gt (Z.mul reach step.qnum) (Z.mul (Z.of_int 512) step.qden) then
      wrong "expected a grid within the limits";
    let digits = Z.add (Z.div bits (Z.of_int 3)) (Z.of_int 2) and delta = probability delta in
    let power n = Z.pow (Z.of_int 10) n in
    let cut = Z.div (Z.mul delta.qnum (power (Z.to_int digits))) (Z.mul delta.qden (power 9)) in
    composed parts [] Z.one (quotient step.qnum (Z.mul (Z.of_int 2) step.qden)) [] (Z.mul (Z.of_int 2) reach)
      digits cut delta (nonnegative (rational epsilon))
  | _ -> assert false

let laplace_losses parameters : Kernel.rule * trust =
  match fields [ "parts"; "group"; "delta"; "epsilon" ] parameters with
  | [ parts; group; delta; epsilon ] ->
    let parts = List.map pair (list parts) in
    if parts = [] then wrong "expected a mechanism";
    ( LaplaceLosses (parts, count group, probability delta, nonnegative (rational epsilon)),
      { nothing with used = List.map fst parts } )
  | _ -> assert false

let rule name parameters : Kernel.rule * trust =
  let saying s = { nothing with statements = Texts.singleton s } in
  let one field = List.hd (fields [ field ] parameters) in
  let two a b =
    match fields [ a; b ] parameters with [ x; y ] -> (x, y) | _ -> assert false in
  let none () = ignore (fields [] parameters) in
  match name with
  | "gaussian-gdp" ->
    let m = place (one "mechanism") in
    (GaussianGdp m, using m)
  | "gaussian-zcdp" ->
    let m = place (one "mechanism") in
    (GaussianZcdp m, using m)
  | "laplace-zcdp" ->
    let m = place (one "mechanism") in
    (LaplaceZcdp m, using m)
  | "discrete-laplace-zcdp" ->
    let m = place (one "mechanism") in
    (DiscreteLaplaceZcdp m, using m)
  | "discrete-gaussian-zcdp" ->
    let m = place (one "mechanism") in
    (DiscreteGaussianZcdp m, using m)
  | "laplace-pure" ->
    let m, epsilon = two "mechanism" "epsilon" in
    (LaplacePure (place m, nonnegative (rational epsilon)), using (place m))
  | "discrete-laplace-pure" ->
    let m, epsilon = two "mechanism" "epsilon" in
    ( DiscreteLaplacePure (place m, nonnegative (rational epsilon)),
      using (place m) )
  | "randomised-response-pure" ->
    let m, epsilon = two "mechanism" "epsilon" in
    (RandomisedResponsePure (place m, nonnegative (rational epsilon)), using (place m))
  | "poisson-pure" ->
    let m, epsilon = two "mechanism" "epsilon" in
    (PoissonPure (place m, nonnegative (rational epsilon)), using (place m))
  | "fixed-batch-pure" ->
    let m, epsilon = two "mechanism" "epsilon" in
    (FixedBatchPure (place m, nonnegative (rational epsilon)), using (place m))
  | "poisson-rdp" | "fixed-batch-rdp" -> (
      match fields [ "mechanism"; "order"; "epsilon" ] parameters with
      | [ m; order; epsilon ] ->
        let m = place m and order = at_least 2 order and epsilon = nonnegative (rational epsilon) in
        let found : Kernel.rule =
          if name = "poisson-rdp" then PoissonRdp (m, order, epsilon)
          else FixedBatchRdp (m, order, epsilon) in
        (found, using m)
      | _ -> assert false)
  | "pure-step" ->
    let m, epsilon = two "mechanism" "epsilon" in
    (PureStepRule (place m, nonnegative (rational epsilon)), using (place m))
  | "composition" -> (Composition (List.map count (list (one "times"))), nothing)
  | "repeated" -> (RepeatedRule (place (one "mechanism")), nothing)
  | "parties" -> (PartiesRule (place (one "mechanism")), { nothing with statements = Texts.singleton by_party })
  | "events" -> none (); (EventsRule, nothing)
  | "weaken" -> (Weaken (rational (one "value")), nothing)
  | "post-processing" ->
    (Restate, saying ("reads released messages only: " ^ text (one "function")))
  | "given" -> (Restate, saying ("taken for granted: " ^ text (one "statement")))
  | "filter" ->
    (Filter (rational (one "budget")), { nothing with statements = filtered })
  | "group" -> (Group (count (one "size")), nothing)
  | "replace-one" -> none (); (ReplaceOneRule, nothing)
  | "zcdp-rdp" -> (ZcdpRdp (rational (one "order")), nothing)
  | "pure-approx-dp" -> (PureApproxDp (probability (one "delta")), nothing)
  | "rdp-approx-dp" ->
    let delta, epsilon = two "delta" "epsilon" in
    (RdpApproxDp (probability delta, nonnegative (rational epsilon)), nothing)
  | "gdp-approx-dp" ->
    let delta, epsilon = two "delta" "epsilon" in
    (GdpApproxDp (probability delta, nonnegative (rational epsilon)), nothing)
  | "privacy-loss" -> privacy_loss parameters
  | "loss-distribution" -> loss_distribution parameters
  | "laplace-losses" -> laplace_losses parameters
  | other -> unsupported "rule %s" other

(* Listed since a later version. *)
let parallel = "McSherry 2009, Theorem 4 (parallel composition)"

(* Published theorems that certificates name, by rule and notion. *)
let axiom rule (conclusion : Kernel.claim) =
  match (rule, conclusion.claim_notion) with
  | "gaussian-gdp", Gdp _ -> [ "Dong, Roth, Su 2022, Theorem 2.7 (Gaussian noise is GDP)" ]
  | ("composition" | "repeated"), Gdp _ ->
    [ "Dong, Roth, Su 2022, Corollary 3.3 (composition of GDP)" ]
  | ("group" | "replace-one"), Gdp _ -> [ "Dong, Roth, Su 2022, Theorem 2.14 (GDP of groups)" ]
  | "gdp-approx-dp", ApproxDp _ -> [ "Balle, Wang 2018, Theorem 8 (delta of GDP)" ]
  | "laplace-pure", PureDp _ -> [ "Dwork, Roth 2014, Theorem 3.6 (Laplace noise)" ]
  | "discrete-laplace-pure", PureDp _ ->
    [ "Ghosh, Roughgarden, Sundararajan 2012 (discrete Laplace noise)" ]
  | "poisson-pure", PureDp _ ->
    [ "Balle, Barthe, Gaboardi 2018, Theorem 8 (Poisson sampling)" ]
  | "fixed-batch-pure", PureDp _ ->
    [ "Balle, Barthe, Gaboardi 2018, Theorem 9 (sampling a fixed batch)" ]
  | "poisson-rdp", Rdp _ ->
    [ "Mironov, Talwar, Zhang 2019, Theorems 4 and 5 (Poisson sampling)" ]
  | "fixed-batch-rdp", Rdp _ ->
    [ "Wang, Balle, Kasiviswanathan 2019, Theorem 9 (sampling a fixed batch)" ]
  | ("laplace-zcdp" | "discrete-laplace-zcdp"), Zcdp _ ->
    [ "Bun, Steinke 2016, Proposition 1.4 (pure DP is zCDP)" ]
  | "discrete-gaussian-zcdp", Zcdp _ ->
    [ "Canonne, Kamath, Steinke 2020, Theorem 14 (discrete Gaussian)" ]
  | ("composition" | "repeated"), PureDp _ ->
    [ "Dwork, Roth 2014, Theorem 3.14 (composition of pure DP)" ]
  | ("group" | "replace-one"), PureDp _ -> [ "Dwork, Roth 2014, Theorem 2.2 (pure DP of groups)" ]
  | "filter", Gdp _ ->
    [ "Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023 (filters of GDP)" ]
  | "filter", Zcdp _ -> [ "Whitehouse, Ramdas, Rogers, Wu 2023 (filters of zCDP)" ]
  | "filter", Rdp _ -> [ "Feldman, Zrnic 2021, Theorem 3.1 (filters of one R\\u00e9nyi order)" ]
  | ("privacy-loss" | "laplace-losses" | "loss-distribution"), ApproxDp _ ->
    [ "Zhu, Dong, Wang 2022, Theorems 10 and 11 (dominating pairs)" ]
  | ("parties" | "events"), (ApproxDp _ | PureDp _) -> [ parallel ]
  | _ -> []

(* Of a Poisson sample that may hold any of so many. *)
let of_several number (rate : Kernel.q) (squared : Kernel.q) =
  if Z.gt number Z.one && Z.sign rate.qnum > 0 && Z.lt rate.qnum rate.qden && Z.sign squared.qnum > 0
  then [ "Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (mixtures of Gaussian shifts)" ]
  else []

let drawn_again = "docs/rules.md, privacy-loss (a batch drawn with replacement)"

(* Whether it is counted how many of a group are in a batch of different records. *)
let counted group (drawn : Kernel.scheme) moved =
  match (drawn, Kernel.contrast_of group drawn moved) with
  | FixedBatch _, Copied _ -> true
  | _ -> false

(* ... and by the step that a node is about, for groups of so many records. *)
let axiom_of_step group : Kernel.mechanism -> string list = function
  | SampledStep (Poisson rate, ReplaceOne, squared, _, _)
    when Z.sign rate.qnum > 0 && Z.sign squared.qnum > 0 ->
    [ "docs/rules.md, privacy-loss (a record is replaced in a Poisson sample)" ]
  | SampledStep (Poisson rate, _, squared, _, _) -> of_several group rate squared
  | AccumulatedStep (_, squared, _, rate, samples, _) -> of_several (Z.mul group samples) rate squared
  | SampledStep (WithReplacement (size, records), _, squared, _, _)
    when Z.gt size Z.one && Z.gt (Z.div records group) Z.one && Z.sign squared.qnum > 0 ->
    [ drawn_again ]
  | SampledStep (drawn, moved, squared, _, _)
    when counted group drawn moved && Z.sign squared.qnum > 0 -> [ drawn_again ]
  | _ -> []

let always = [
  "the event list is complete and says what happened";
  "the noise is ideal, independent and drawn afresh for every release";
  "sensitivities, noise and sampling rates do not depend on the data" ]

(* Listed since a later version: an older document may leave it out. *)
let stopping =
  "the number of events and the time of stopping do not depend on what was released, or all of \
   the plan is in the list"

(* Of groups over parties whose records pay different costs, in notions of which none need be the
   largest. *)
let one_party = "all records of a unit live with one party"

(* ... and of groups that are drawn into one batch, where it is counted how many are. *)
let together group : Kernel.mechanism -> bool = function
  | SampledStep (WithReplacement _, _, squared, _, _) ->
    Z.gt group Z.one && Z.sign squared.qnum > 0
  | SampledStep (drawn, moved, squared, _, _) ->
    counted group drawn moved && Z.sign squared.qnum > 0
  | _ -> false

let spread name premises (stated : Kernel.claim) =
  match stated.claim_notion with
  | Rdp _ | ApproxDp _ ->
    (name = "events" || name = "parties")
    && List.length premises > 1 && Z.gt stated.claim_group Z.one
  | _ -> false

type t = { certificate : Kernel.certificate; hash : string }

(* Older documents may leave out what was not listed in their time. *)
let later =
  Texts.of_list [ stopping; parallel; whole_numbers; one_party; untold; divided; drawn_again ]

let same what stated expected =
  let stated = List.map text (list stated) in
  let listed = Texts.of_list stated in
  if stated <> Texts.elements listed
     || not (Texts.subset (Texts.diff expected later) listed && Texts.subset listed expected)
  then wrong "expected other %s" what

(* Whether the last node follows from a filter's budget. *)
let follows_from_filter nodes =
  let nodes = Array.of_list nodes in
  let rec follows i =
    let { Kernel.node_rule; node_premises; _ } = nodes.(i) in
    match (node_rule, node_premises) with
    | Filter _, _ -> true
    | _, [ p ] -> Z.lt p (Z.of_int (i + 1)) && follows (Z.to_int p - 1)
    | _ -> false in
  Array.length nodes > 0 && follows (Array.length nodes - 1)

(* Refuse a mechanism that stands in no event, no step and no mechanism of these. *)
let require_all_met values texts met =
  if not (Array.for_all Fun.id met) then begin
    let inside = Hashtbl.create 64 in
    let rec meet (value : Json.t) =
      match value with
      | Object named ->
        if List.mem_assoc "kind" named then Hashtbl.replace inside (Json.canonical value) ();
        List.iter (fun (_, each) -> meet each) named
      | List each -> List.iter meet each
      | _ -> () in
    List.iteri (fun i value -> if met.(i) then meet value) values;
    List.iteri
      (fun i text ->
         if not (met.(i) || Hashtbl.mem inside text) then
           wrong "expected mechanisms that are used")
      texts
  end

let read source =
  if String.length source > 16 * 1024 * 1024 then wrong "expected up to 16 MiB";
  let names =
    [ "format"; "subject"; "mechanisms"; "events"; "nodes"; "assumptions"; "axioms" ] in
  match fields names (Json.parse source) with
  | [ form; subject; mechanisms; events; nodes; assumptions; axioms ] ->
    if text form <> "urn:dpledger:certificate:1" then wrong "expected another format";
    let mechanisms = list mechanisms in
    let texts = List.map Json.canonical mechanisms in
    let table = places texts in
    let number = numbered () in
    let events = read_events number mechanisms texts events in
    if text subject <> events.subject then wrong "expected subject %s" events.subject;
    let values = mechanisms in
    let mechanisms = List.map (mechanism number table) mechanisms in
    let steps = Array.of_list mechanisms in
    let met = Array.map (fun _ -> false) steps in
    let meet m = met.(Z.to_int m - 1) <- true in
    List.iter (fun (e : Kernel.event) -> meet e.event_mechanism) events.listed;
    let rec step_of m =
      let found = steps.(Z.to_int m - 1) in
      match found.read with Repeated (inner, _) -> step_of inner | _ -> found in
    let common = stopping :: (if events.parties then by_party :: always else always) in
    let trusted = ref (Texts.of_list common) in
    let published = ref Texts.empty in
    let node value : Kernel.node =
      match fields [ "rule"; "parameters"; "premises"; "conclusion" ] value with
      | [ name; parameters; premises; conclusion ] ->
        let found, trust = rule (text name) parameters in
        let group = match found with PrivacyLoss (_, _, group, _, _, _, _, _, _, _) -> group | _ -> Z.one in
        let stated = claim conclusion in
        let premises = List.map place (list premises) in
        trusted := Texts.union !trusted trust.statements;
        if spread (text name) premises stated then trusted := Texts.add one_party !trusted;
        List.iter
          (fun m ->
             if Z.gt m (Z.of_int (Array.length steps)) then wrong "expected a listed mechanism";
             meet m;
             let step = step_of m in
             trusted := Texts.union !trusted step.trusts;
             if together group step.read then trusted := Texts.add one_party !trusted;
             published := Texts.union !published (Texts.of_list (axiom_of_step group step.read)))
          trust.used;
        published := Texts.union !published (Texts.of_list (axiom (text name) stated));
        { node_rule = found;
          node_premises = premises;
          node_conclusion = stated }
      | _ -> assert false in
    let nodes = List.map node (list nodes) in
    if follows_from_filter nodes then trusted := Texts.remove stopping !trusted
    else if Texts.subset filtered !trusted then
      wrong "expected a conclusion that follows from the filter";
    require_all_met values texts met;
    same "assumptions" assumptions !trusted;
    same "axioms" axioms !published;
    { certificate = { mechanisms = List.map (fun m -> m.read) mechanisms; events = events.listed; nodes };
      hash = events.subject }
  | _ -> assert false
