(* dpledger-check FILE...: one line a certificate, by the checker that is proved in Coq.

   proved HASH RELATION group K NOTION NUMBERS [within RELATION NOTION NUMBERS] |
   undecided REASON | wrong REASON
   What is within a budget is proved of whatever a filter with it lets happen.
   Exit status 0: all proved; 1: some wrong; 3: some undecided; 2: misuse. *)

let relation : Kernel.relation -> string = function
  | ReplaceOne -> "replace-one"
  | ZeroOutOne -> "zero-out-one"
  | AddRemoveOne -> "add-remove-one"

let number (q : Kernel.q) = Printf.sprintf "%s/%s" (Z.to_string q.qnum) (Z.to_string q.qden)

let notion : Kernel.notion -> string = function
  | Gdp a -> "gdp " ^ number a
  | Zcdp a -> "zcdp " ^ number a
  | PureDp a -> "pure-dp " ^ number a
  | Rdp (order, a) -> Printf.sprintf "rdp %s %s" (number order) (number a)
  | ApproxDp (delta, a) -> Printf.sprintf "approx-dp %s %s" (number delta) (number a)

let contents path =
  let channel = open_in_bin path in
  Fun.protect
    ~finally:(fun () -> close_in channel)
    (fun () -> really_input_string channel (in_channel_length channel))

let proved hash (claim : Kernel.claim) =
  Printf.sprintf "proved %s %s group %s %s" hash
    (relation claim.claim_relation) (Z.to_string claim.claim_group)
    (notion claim.claim_notion)

(* [Kernel.judged] is what both [check] and [check_filter] ask. *)
let verdict path =
  match
    let source = contents path in
    let document = Document.read source in
    (document.hash, Kernel.judged document.certificate)
  with
  | hash, Some (Whole claim) -> (0, proved hash claim)
  | hash, Some (Kept (budget, claim)) ->
    ( 0,
      Printf.sprintf "%s within %s %s" (proved hash claim)
        (relation budget.claim_relation) (notion budget.claim_notion) )
  | _, (Some (Part _) | None) -> (3, "undecided: a step does not follow, or is beyond this checker")
  | exception Document.Unsupported reason -> (3, "undecided: beyond this checker: " ^ reason)
  | exception (Document.Wrong reason | Json.Malformed reason) -> (1, "wrong: " ^ reason)
  | exception (Stack_overflow | Out_of_memory | Z.Overflow) -> (3, "undecided: too large")
  | exception Sys_error reason -> (2, "cannot read: " ^ reason)

let () =
  match List.tl (Array.to_list Sys.argv) with
  | [] ->
    prerr_endline "usage: dpledger-check CERTIFICATE...";
    exit 2
  | paths ->
    let report worst path =
      let status, line = verdict path in
      print_endline line;
      if worst = 2 || status = 2 then 2 else if worst = 1 || status = 1 then 1 else max worst status
    in
    exit (List.fold_left report 0 paths)
