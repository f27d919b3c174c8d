(** The checker as an OCaml program. Trusted beside it: extraction, the mapping of positive and Z to
    Zarith (Coq's own ExtrOcamlZBigInt, and what is below), of nat to native integers (they count
    terms of a series, at most tens of thousands). *)

From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlZBigInt ExtrOcamlNatInt.
From Coq Require Import ZArith.
From Coq Require ClassicalDedekindReals.
From Interval Require Specific_stdz.
From Dpledger Require Import Checker.

Extraction Language OCaml.
Set Warnings "-extraction-opaque-accessed".

(** As Coq's own, with a shift for a division by two. *)
Extract Inductive positive => "Big_int_Z.big_int"
 [ "(fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))"
   "Big_int_Z.mult_int_big_int 2" "Big_int_Z.unit_big_int" ]
 "(fun f2p1 f2p f1 p -> Big_int_Z.(
  if le_big_int p unit_big_int then f1 ()
  else
    let q = shift_right_big_int p 1 in
    if sign_big_int (and_big_int p unit_big_int) = 0 then f2p q else f2p1 q))".

Extract Constant Pos.eqb => "Big_int_Z.eq_big_int".
Extract Constant Pos.leb => "Big_int_Z.le_big_int".
Extract Constant Z.leb => "Big_int_Z.le_big_int".
Extract Constant Z.ltb => "Big_int_Z.lt_big_int".
Extract Constant Z.rem => "Big_int_Z.(fun a b ->
  if sign_big_int b = 0 then a
  else
    let r = mod_big_int (abs_big_int a) (abs_big_int b) in
    if sign_big_int a < 0 then minus_big_int r else r)".
Extract Constant Z.pow => "Big_int_Z.(fun a n ->
  if sign_big_int n < 0 then zero_big_int else power_big_int_positive_big_int a n)".
Extract Constant Z.log2 => "Big_int_Z.(fun a ->
  if sign_big_int a <= 0 then zero_big_int else big_int_of_int (Z.numbits a - 1))".
(** Coq's own appends one by one. *)
Extract Constant List.rev => "List.rev".
Extract Constant Z.sqrt => "Big_int_Z.(fun a ->
  if sign_big_int a <= 0 then zero_big_int else sqrt_big_int a)".

(** The library of intervals counts binary digits one by one; [Z.log2] is the one above. *)
Extract Constant Specific_stdz.StdZRadix2.digits_aux =>
  "(fun m n -> Big_int_Z.add_big_int (Z.log2 m) n)".

(** The library of intervals mentions real numbers; [judged] computes with none. *)
Extract Constant ClassicalDedekindReals.sig_forall_dec =>
  "(fun _ -> failwith ""a real number is being computed"")".

Extraction "kernel.ml" judged.
