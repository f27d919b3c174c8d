(** The checker as an OCaml program. Trusted beside it: extraction, the mapping of positive and Z to
    Zarith (Coq's own ExtrOcamlZBigInt, and the few functions below), of nat to native integers
    (they count terms of a series, at most tens of thousands). *)

From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlZBigInt ExtrOcamlNatInt.
From Coq Require Import ZArith.
From Coq Require ClassicalDedekindReals.
From Dpledger Require Import Checker.

Extraction Language OCaml.
Set Warnings "-extraction-opaque-accessed".

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

(** The library of intervals mentions real numbers; [judged] computes with none. *)
Extract Constant ClassicalDedekindReals.sig_forall_dec =>
  "(fun _ -> failwith ""a real number is being computed"")".

Extraction "kernel.ml" judged.
