(* SHA-256 (FIPS 180-4), on the low 32 bits of native integers. *)

let mask = 0xffffffff

(* The first 32 bits of the fractional parts of the cube roots (or square roots) of the first
   primes, by whole-number roots. *)
let primes n =
  let rec go found k =
    if List.length found = n then List.rev found
    else go (if List.exists (fun p -> k mod p = 0) found then found else k :: found) (k + 1) in
  go [] 2

let fraction root p = Z.to_int (Z.logand (root (Z.shift_left (Z.of_int p))) (Z.of_int mask))

let constants =
  Array.of_list (List.map (fraction (fun shifted -> Z.root (shifted 96) 3)) (primes 64))

let start = Array.of_list (List.map (fraction (fun shifted -> Z.sqrt (shifted 64))) (primes 8))

let rotated x n = ((x lsr n) lor (x lsl (32 - n))) land mask

let padded message =
  let length = String.length message in
  let zeros = (119 - (length mod 64)) mod 64 in
  let buffer = Buffer.create (length + zeros + 9) in
  Buffer.add_string buffer message;
  Buffer.add_char buffer '\x80';
  Buffer.add_string buffer (String.make zeros '\x00');
  Buffer.add_int64_be buffer (Int64.of_int (8 * length));
  Buffer.contents buffer

let block state message offset =
  let w = Array.make 64 0 in
  for t = 0 to 15 do
    w.(t) <- Int32.to_int (String.get_int32_be message (offset + (4 * t))) land mask
  done;
  for t = 16 to 63 do
    let a = w.(t - 15) and b = w.(t - 2) in
    let s0 = rotated a 7 lxor rotated a 18 lxor (a lsr 3) in
    let s1 = rotated b 17 lxor rotated b 19 lxor (b lsr 10) in
    w.(t) <- (w.(t - 16) + s0 + w.(t - 7) + s1) land mask
  done;
  let v = Array.copy state in
  for t = 0 to 63 do
    let a = v.(0) and e = v.(4) in
    let s1 = rotated e 6 lxor rotated e 11 lxor rotated e 25 in
    let choice = (e land v.(5)) lxor (lnot e land mask land v.(6)) in
    let t1 = (v.(7) + s1 + choice + constants.(t) + w.(t)) land mask in
    let s0 = rotated a 2 lxor rotated a 13 lxor rotated a 22 in
    let majority = (a land v.(1)) lxor (a land v.(2)) lxor (v.(1) land v.(2)) in
    let t2 = (s0 + majority) land mask in
    Array.blit v 0 v 1 7;
    v.(4) <- (v.(4) + t1) land mask;
    v.(0) <- (t1 + t2) land mask
  done;
  Array.iteri (fun i x -> state.(i) <- (state.(i) + x) land mask) v

let hex message =
  let message = padded message in
  let state = Array.copy start in
  for i = 0 to (String.length message / 64) - 1 do
    block state message (64 * i)
  done;
  String.concat "" (Array.to_list (Array.map (Printf.sprintf "%08x") state))
