(* JSON as certificates use it: whole numbers only, no field twice, nothing after the value.

   A string is kept as it is written in canonical form (ASCII, as Python's json.dumps): two strings
   are equal if and only if their canonical forms are. They are ordered by `code_points`. *)

exception Malformed of string

type t =
  | Null
  | Bool of bool
  | Int of Z.t
  | Text of string
  | List of t list
  | Object of (string * t) list

let fail fmt = Printf.ksprintf (fun reason -> raise (Malformed reason)) fmt

let escaped buffer code =
  match code with
  | 0x22 -> Buffer.add_string buffer "\\\""
  | 0x5c -> Buffer.add_string buffer "\\\\"
  | 0x0a -> Buffer.add_string buffer "\\n"
  | 0x0d -> Buffer.add_string buffer "\\r"
  | 0x09 -> Buffer.add_string buffer "\\t"
  | 0x08 -> Buffer.add_string buffer "\\b"
  | 0x0c -> Buffer.add_string buffer "\\f"
  | _ when code >= 0x20 && code < 0x7f -> Buffer.add_char buffer (Char.chr code)
  | _ when code < 0x10000 -> Printf.bprintf buffer "\\u%04x" code
  | _ ->
    let code = code - 0x10000 in
    Printf.bprintf buffer "\\u%04x\\u%04x" (0xd800 lor (code lsr 10)) (0xdc00 lor (code land 0x3ff))

(* What a string in canonical form stands for. *)
let code_points written =
  let unit at = int_of_string ("0x" ^ String.sub written (at + 2) 4) in
  let is_unit at = at + 6 <= String.length written && String.sub written at 2 = "\\u" in
  let rec go at found =
    if at >= String.length written then List.rev found
    else if written.[at] <> '\\' then go (at + 1) (Char.code written.[at] :: found)
    else
      match written.[at + 1] with
      | 'u' ->
        let high = unit at in
        let low = if is_unit (at + 6) then unit (at + 6) else 0 in
        if high land 0xfc00 = 0xd800 && low land 0xfc00 = 0xdc00 then
          go (at + 12) (0x10000 + ((high land 0x3ff) lsl 10) + (low land 0x3ff) :: found)
        else go (at + 6) (high :: found)
      | 'n' -> go (at + 2) (0x0a :: found)
      | 'r' -> go (at + 2) (0x0d :: found)
      | 't' -> go (at + 2) (0x09 :: found)
      | 'b' -> go (at + 2) (0x08 :: found)
      | 'f' -> go (at + 2) (0x0c :: found)
      | c -> go (at + 2) (Char.code c :: found) in
  go 0 []

(* The code point at a byte, and how many bytes it takes: the shortest form, no surrogates. *)
let utf_8 source at =
  let byte i =
    if at + i < String.length source then Char.code source.[at + i]
    else fail "the document ends too early" in
  let rest n =
    let rec go i code =
      if i > n then code
      else if byte i land 0xc0 <> 0x80 then fail "expected UTF-8 at byte %d" at
      else go (i + 1) ((code lsl 6) lor (byte i land 0x3f)) in
    go 1 (byte 0 land (0x3f lsr n)) in
  let within low high n =
    let code = rest n in
    if code < low || code > high || (code >= 0xd800 && code <= 0xdfff) then
      fail "expected UTF-8 at byte %d" at;
    (code, n + 1) in
  match byte 0 with
  | c when c < 0x80 -> (c, 1)
  | c when c >= 0xc0 && c < 0xe0 -> within 0x80 0x7ff 1
  | c when c >= 0xe0 && c < 0xf0 -> within 0x800 0xffff 2
  | c when c >= 0xf0 && c < 0xf8 -> within 0x10000 0x10ffff 3
  | _ -> fail "expected UTF-8 at byte %d" at

(* Brackets deeper than this are refused: no certificate comes near. *)
let most_depth = 512
let most = Z.of_string "1000000000000000000"

let parse source =
  let length = String.length source in
  let at = ref 0 in
  let peek () = if !at < length then source.[!at] else fail "the document ends too early" in
  let rec blank () =
    if !at < length then
      match source.[!at] with ' ' | '\t' | '\n' | '\r' -> incr at; blank () | _ -> () in
  let expect c =
    if peek () <> c then fail "expected %C at byte %d" c !at;
    incr at in
  let word literal value =
    let n = String.length literal in
    if !at + n > length || String.sub source !at n <> literal then fail "byte %d" !at;
    at := !at + n;
    value in
  let hex () =
    if !at + 4 > length then fail "the document ends too early";
    let digits = String.sub source !at 4 in
    let digit = function '0' .. '9' | 'a' .. 'f' | 'A' .. 'F' -> true | _ -> false in
    if not (String.for_all digit digits) then fail "expected four hexadecimal digits at %d" !at;
    at := !at + 4;
    int_of_string ("0x" ^ digits) in
  let text () =
    expect '"';
    let buffer = Buffer.create 16 in
    let rec go () =
      match peek () with
      | '"' -> incr at
      | '\\' ->
        incr at;
        let c = peek () in
        incr at;
        (match c with
         | '"' | '\\' | '/' -> escaped buffer (Char.code c)
         | 'n' -> escaped buffer 0x0a
         | 'r' -> escaped buffer 0x0d
         | 't' -> escaped buffer 0x09
         | 'b' -> escaped buffer 0x08
         | 'f' -> escaped buffer 0x0c
         | 'u' -> escaped buffer (hex ())
         | _ -> fail "unknown escape at byte %d" !at);
        go ()
      | c when Char.code c < 0x20 -> fail "control character at byte %d" !at
      | _ ->
        let code, bytes = utf_8 source !at in
        at := !at + bytes;
        escaped buffer code;
        go () in
    go ();
    Buffer.contents buffer in
  let number () =
    let start = !at in
    if peek () = '-' then incr at;
    let first = !at in
    while !at < length && source.[!at] >= '0' && source.[!at] <= '9' do incr at done;
    let digits = !at - first in
    if digits = 0 || (digits > 1 && source.[first] = '0') then fail "number at byte %d" start;
    let written = String.sub source start (!at - start) in
    if String.length written > 19 || Z.gt (Z.of_string written) most then
      fail "expected whole numbers of up to 10^18";
    if !at < length && (match source.[!at] with '.' | 'e' | 'E' -> true | _ -> false) then
      fail "expected exact numbers at byte %d" start;
    Int (Z.of_string written) in
  let rec value depth =
    if depth > most_depth then fail "expected shallow JSON";
    blank ();
    let found = match peek () with
      | 'n' -> word "null" Null
      | 't' -> word "true" (Bool true)
      | 'f' -> word "false" (Bool false)
      | '"' -> Text (text ())
      | '[' -> incr at; List (members depth ']' (fun () -> value (depth + 1)))
      | '{' -> incr at; Object (fields depth)
      | _ -> number () in
    blank ();
    found
  and members : 'a. int -> char -> (unit -> 'a) -> 'a list = fun _ close one ->
    blank ();
    if peek () = close then (incr at; [])
    else
      let rec go found =
        let found = one () :: found in
        blank ();
        match peek () with
        | ',' -> incr at; go found
        | c when c = close -> incr at; List.rev found
        | _ -> fail "expected ',' or %C at byte %d" close !at in
      go []
  and fields depth =
    let seen = Hashtbl.create 8 in
    members depth '}' (fun () ->
      blank ();
      let name = text () in
      if Hashtbl.mem seen name then fail "expected each field once instead got %s twice" name;
      Hashtbl.add seen name ();
      blank ();
      expect ':';
      (name, value (depth + 1))) in
  let found = value 0 in
  if !at < length then fail "expected the end of the document at byte %d" !at;
  found

let rec write buffer = function
  | Null -> Buffer.add_string buffer "null"
  | Bool b -> Buffer.add_string buffer (string_of_bool b)
  | Int n -> Buffer.add_string buffer (Z.to_string n)
  | Text s -> Printf.bprintf buffer "\"%s\"" s
  | List l -> separated buffer '[' ']' (write buffer) l
  | Object l ->
    let field (name, value) =
      Printf.bprintf buffer "\"%s\":" name;
      write buffer value in
    separated buffer '{' '}' field (List.sort (fun (a, _) (b, _) -> compare a b) l)

and separated : 'a. Buffer.t -> char -> char -> ('a -> unit) -> 'a list -> unit =
  fun buffer opening closing one l ->
  Buffer.add_char buffer opening;
  List.iteri (fun i x -> if i > 0 then Buffer.add_char buffer ','; one x) l;
  Buffer.add_char buffer closing

(* With sorted fields and without blanks: the form that is hashed. *)
let canonical value =
  let buffer = Buffer.create 256 in
  write buffer value;
  Buffer.contents buffer
