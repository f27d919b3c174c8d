"""Law: a wrong rule in the checker breaks its proof of soundness, a wrong meaning its example.

Each fault is planted in a copy of a file of `proofs/`; it and what must break are compiled again,
in order, until coqc refuses a lemma. Only that counts, not a definition, an import or a word that
is refused; and without a fault all of it compiles.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dpledger.accounting.proof.coq_goal import compiled_proofs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("coqc") is None or compiled_proofs() is None,
        reason="coqc or the compiled proofs are not here (make -C proofs)",
    ),
]
PROOFS = ("Operations", "Derivations", "Claims", "Soundness")
EXAMPLES = ("Example", "FilterExample")
RULES = {
    "factor 2 forgotten": ("Checker", "ReplaceOne => 2 | _ => 1", "ReplaceOne => 1 | _ => 1"),
    "noise not squared": (
        "Checker",
        "| GaussianStep _ squared _ std => Some (squared / (std * std))",
        "| GaussianStep _ squared _ std => Some (squared / std)",
    ),
    "discrete noise not squared": (
        "Checker",
        "| DiscreteGaussianStep _ squared _ std => Some (squared / (std * std))",
        "| DiscreteGaussianStep _ squared _ std => Some (squared / std)",
    ),
    "zCDP of half the cost": (
        "Checker",
        "leaf gaussian_ratio m (fun c => Zcdp (c / 2))",
        "leaf gaussian_ratio m (fun c => Zcdp (c / 4))",
    ),
    "Laplace noise at half its cost in zCDP": (
        "Checker",
        "leaf laplace_ratio m (fun c => Zcdp (c / 2))",
        "leaf laplace_ratio m (fun c => Zcdp (c / 4))",
    ),
    "discrete Laplace noise at half its cost in zCDP": (
        "Checker",
        "leaf discrete_laplace_ratio m (fun c => Zcdp (c / 2))",
        "leaf discrete_laplace_ratio m (fun c => Zcdp (c / 4))",
    ),
    "discrete Gaussian noise at half its cost in zCDP": (
        "Checker",
        "leaf discrete_gaussian_ratio m (fun c => Zcdp (c / 2))",
        "leaf discrete_gaussian_ratio m (fun c => Zcdp (c / 4))",
    ),
    "discrete Gaussian noise at the price of normal noise in GDP": (
        "Checker",
        "| Gdp _, (GaussianStep _ _ _ _ |",
        "| Gdp _, (GaussianStep _ _ _ _ | DiscreteGaussianStep _ _ _ _ |",
    ),
    "sampled steps pay in zCDP": (
        "Checker",
        "  | PureDp _, (LaplaceStep",
        "  | Zcdp _, SampledStep _ _ _ _ _ => true\n  | PureDp _, (LaplaceStep",
    ),
    "how often, forgotten": (
        "Checker",
        "plus (times n (cost_of_notion (claim_notion s))) total",
        "plus (cost_of_notion (claim_notion s)) total",
    ),
    "repetitions forgotten": (
        "Checker",
        "(costing (times n (cost_of_notion (claim_notion s))) s)",
        "(costing (cost_of_notion (claim_notion s)) s)",
    ),
    "cheapest party": ("Checker", "then b else a.", "then a else b."),
    "common events forgotten": (
        "Checker",
        "[] => true | named => existsb (Pos.eqb p) named",
        "[] => false | named => existsb (Pos.eqb p) named",
    ),
    "equal events counted once": ("Checker", "(m, (n + n')%positive)", "(m, n)"),
    "groups cost k": ("Checker", "Zcdp (integer k * integer k * c)", "Zcdp (integer k * c)"),
    "minimisers that move by the record alone": (
        "Checker",
        "(let s := both_count r * lipschitz",
        "(let s := moved_twice r * lipschitz",
    ),
    "parts by party, once": (
        "Checker",
        "(i, (event_times e * n)%positive)",
        "(i, event_times e)",
    ),
    "all parties' parts but one": (
        "Checker",
        "guard (exposures_eqb covered (exposures_by_party parts))",
        "guard (exposures_eqb covered (tl (exposures_by_party parts)))",
    ),
    "parts made of parts": (
        "Checker",
        "forallb (fun part => forallb (undivided table) (snd part)) parts",
        "true",
    ),
    "losses of what is made of parts": (
        "Checker",
        "| Some (Repeated inner n) => guard (undivided table m) (inner, n)",
        "| Some (Repeated inner n) => Some (inner, n)",
    ),
    "groups of any size added up": (
        "Checker",
        "if same_unit s first && same_kind (claim_notion s)",
        "if same_kind (claim_notion s)",
    ),
    "groups of any size compared": (
        "Checker",
        "if same_unit s first && comparable (claim_notion s)",
        "if comparable (claim_notion s)",
    ),
    "replace-one for free": ("Checker", "enlarged 2 1 ReplaceOne", "enlarged 1 1 ReplaceOne"),
    "weaken downwards": (
        "Checker",
        "(Qle_bool (cost_of_notion (claim_notion s)) cost)",
        "(Qle_bool cost (cost_of_notion (claim_notion s)))",
    ),
    "clip to the radius": ("Checker", "((2 * radius) * (2 * radius))", "(radius * radius)"),
    "rounding of one neighbour": (
        "Checker",
        "(2 * error_of t) * (2 * error_of t)",
        "error_of t * error_of t",
    ),
    "in l1, a lattice of one neighbour": (
        "Checker",
        "((u + 2 * distance * integer dimension) * (u + 2 * distance * integer dimension))",
        "((u + distance * integer dimension) * (u + distance * integer dimension))",
    ),
    "in l1, means taken for exact": (
        "Checker",
        "RoundLeaf (FloatExact _ | FloatCount _ _ |",
        "RoundLeaf (FloatExact _ | FloatMean _ _ _ |",
    ),
    "in l1, rows of any width": ("Checker", "exact t || Pos.eqb width 1", "true"),
    "operations unchecked": (
        "Checker",
        "guard (match computed_width t with Some _ => true | None => false end",
        "guard (true",
    ),
    "half of a roundoff": (
        "Checker",
        "unit_roundoff : Q := 1 # (2 ^ 53)",
        "unit_roundoff : Q := 1 # (2 ^ 54)",
    ),
    "underflow forgotten": (
        "Checker",
        "Z.leb (Zpos lost * Zpos (Qden gap))",
        "Z.leb (0 * Zpos (Qden gap))",
    ),
    "rounding of one term of a sum": (
        "Checker",
        "(error + error' + unit_roundoff",
        "(error + unit_roundoff",
    ),
    "a matrix no larger than its norm": (
        "Checker",
        "(norm * Qmake (root_above (Pos.min height width)) 1)",
        "norm",
    ),
    "roots unchecked": ("Checker", " && Qle_bool s (u * u) && Qle_bool t (v * v)", ""),
    "mechanisms unchecked": (
        "Checker",
        "  forallb (mechanism_ok (relation_of c) (numbered 1 (mechanisms c))) (mechanisms c).",
        "  true.",
    ),
    "mechanisms unchecked where nothing moves": (
        "Checker",
        "if steps_ok (for_all_steps as_if_drawn c) && steps_ok plain then",
        "if steps_ok plain && steps_ok plain then",
    ),
    "samples of a half as if nobody were drawn": (
        "Checker",
        "match s with Poisson rate => Qeq_bool rate 0 |",
        "match s with Poisson rate => Qle_bool rate (1 # 2) |",
    ),
    "several samples as if nobody were drawn": (
        "Checker",
        "  | AccumulatedStep _ squared _ rate _ _ => Qeq_bool squared 0 || Qeq_bool rate 0",
        "  | AccumulatedStep _ squared _ rate _ _ => Qeq_bool squared 0 || Qle_bool rate 1",
    ),
    "a mixture that moves as if nothing did": (
        "Checker",
        "negb (positive_number constant || sample_moves squared rate)",
        "negb (sample_moves squared rate)",
    ),
    "a mixture's sample as if nobody were drawn": (
        "Checker",
        "positive_number squared && positive_number rate.",
        "positive_number squared && positive_number (rate - 1).",
    ),
    "a mixture's noise twice for its sample": (
        "Checker",
        "if positive_number constant then share else 0.",
        "if positive_number constant then 0 else 0.",
    ),
    "a mixture of whose sample nothing moves at half its price": (
        "Checker",
        "(further group (constant / (std * std)))",
        "(further group (constant / (2 * std * std)))",
    ),
    "Laplace noise on samples for nothing": (
        "Checker",
        "(Qle_bool 0 eps && Qle_bool ratio (eps * eps) ||",
        "(Qle_bool 0 eps ||",
    ),
    "moments for nothing": (
        "Checker",
        "&& (unmoved m || poisson_renyi_at_most",
        "&& (true || poisson_renyi_at_most",
    ),
    "a batch's moments for nothing": (
        "Checker",
        "&& (unmoved m || batch_renyi_at_most",
        "&& (true || batch_renyi_at_most",
    ),
    "orders of one where nothing moves": (
        "Checker",
        "&& Qle_bool 0 eps && order_fits order\n",
        "&& Qle_bool 0 eps\n",
    ),
    "divergences for nothing": ("Checker", "(Qle_bool tau 0 ||", "(Qle_bool tau 1 ||"),
    "samples of nobody without noise": (
        "Checker",
        "match (if still m then with_noise m else m) with",
        "match with_noise m with",
    ),
    "one order of the data sets": ("Checker", "small fst && small snd", "small fst"),
    "sampled steps without their cost": (
        "Checker",
        "guard (all_pay_in (paid (statement_of first))",
        "guard (all_pay_in (paid (statement_of first)) || true",
    ),
    "replaced records of any size": (
        "Checker",
        "(negb (relation_eqb moved ReplaceOne) || bounds_each_record d)\n      && ",
        "",
    ),
    "replaced records declared together": (
        "Checker",
        "| Leaf (SumOfBounded _) _ => true",
        "| Leaf (SumOfBounded _ | Declared _) _ => true",
    ),
    "replaced records clipped together": (
        "Checker",
        "| Unary (Scaled _ | LinearMap _) _ p => bounds",
        "| Unary (Scaled _ | LinearMap _ | Clip _) _ p => bounds",
    ),
    "replaced records as if taken out": (
        "Checker",
        "Poisson rate, ReplaceOne => Exchanged rate group",
        "Poisson rate, ReplaceOne => Removed rate",
    ),
    "a record half as far from its replacement": (
        "ReplacedLoss",
        "let half := half_above p m in",
        "let half := half_above p (m / 4) in",
    ),
    "a record a quarter as far from none": (
        "ReplacedLoss",
        "let half1 := half_above p (m / 4) in",
        "let half1 := half_above p (m / 16) in",
    ),
    "none in a record's place forgotten": (
        "ReplacedLoss",
        "Some (round_up (num * (f + g)) den)",
        "Some (round_up (num * f) den)",
    ),
    "none in a record's place more likely": (
        "ReplacedLoss",
        "let rest := (Z.max 0 (low - 2 ^ p) * (den - num) / num)%Z in",
        "let rest := Z.max 0 (low - 2 ^ p) in",
    ),
    "a share of more than all": (
        "ReplacedLoss",
        "Z.max 0 (Z.min (2 ^ p) (square / ((w + root) * (w + root))))",
        "square / ((w + root) * (w + root))",
    ),
    "batches under any relation": (
        "Checker",
        "relation_eqb moved ReplaceOne && Pos.leb",
        "Pos.leb",
    ),
    "batches of more than all": ("Checker", " && Pos.leb size records", ""),
    "draws with replacement under any relation": (
        "Checker",
        "WithReplacement _ _ => relation_eqb moved ReplaceOne",
        "WithReplacement _ _ => true",
    ),
    "draws with replacement as if without": (
        "Checker",
        "then Copied size (Zpos group # records)",
        "then Batched (Zpos size # records) group",
    ),
    "shares of more than no place holds": (
        "CopiesLoss",
        "if (shares_spent cs shares <=? target)%Z then",
        "if true then",
    ),
    "shares below none": ("CopiesLoss", "Z.max 0 (ratio' - y) ::", "(ratio' - y)%Z ::"),
    "many places that move as one": (
        "CopiesLoss",
        "let h := half_above p (m * inject_Z (k * k)) in",
        "let h := half_above p m in",
    ),
    "places rounded down": (
        "CopiesLoss",
        "let up' := round_up (up * ways) over in",
        "let up' := (up * ways / over)%Z in",
    ),
    "numbers of places left out": ("CopiesLoss", "Some f => Some (f + rest)%Z", "Some f => Some f"),
    "no place rounded up": (
        "CopiesLoss",
        "let low := power_below p (none / records) draws in",
        "let low := power_above p (round_up none records) draws in",
    ),
    "draws out of more records": (
        "CopiesLoss",
        "let over := (k * (records - hit))%Z in",
        "let over := (k * records)%Z in",
    ),
    "a share of more records": (
        "Checker",
        "then Zpos size # records else 1",
        "then Zpos size # (2 * records) else 1",
    ),
    "a share of more records, of Laplace noise": (
        "Checker",
        "FixedBatch size records => share_of_batch (group * size) records",
        "FixedBatch size records => share_of_batch (group * size) (2 * records)",
    ),
    "one order of a batch": (
        "SampledLoss",
        "addition k))\n                (tl up))",
        "removal k))\n                (tl up))",
    ),
    "repetitions of a sampled step": ("Checker", "(inner, (often * n)%positive", "(inner, often"),
    "losses that occur once": (
        "Checker",
        "(side losses) (n * answers_met i) in",
        "(side losses) (answers_met i) in",
    ),
    "losses of less than all records": (
        "Checker",
        "(Z.to_pos (2 ^ (w + bits)))) 1 step",
        "(Z.to_pos (2 ^ (w + bits)))) (1 # 2) step",
    ),
    "Gaussian steps beside losses counted once": (
        "Checker",
        "Some one => Zpos n * one + sum",
        "Some one => one + sum",
    ),
    "Gaussian steps beside losses forgotten": (
        "Checker",
        "(map (normal_entry side) normal ++",
        "(map (normal_entry side) (tl normal) ++",
    ),
    "mu squared rounded down": (
        "Checker",
        "Some (round_up (Qnum ratio * 2 ^ p) (Zpos (Qden ratio)))",
        "Some (Qnum ratio * 2 ^ p / Zpos (Qden ratio))%Z",
    ),
    "losses on another lattice": ("LossComposition", "Qeq_bool (on_step e) step'", "true"),
    "what enters later forgotten": (
        "LossComposition",
        "match later, kept ++",
        "match @nil entry, kept ++",
    ),
    "Laplace noise not squared": (
        "Checker",
        "(squared / (scale * scale)) (eps * eps)\n  | _ => false\n  end.\n\nDefinition discrete",
        "(squared / scale) (eps * eps)\n  | _ => false\n  end.\n\nDefinition discrete",
    ),
    "Laplace noise on any sample": ("Checker", " && hides_all drawn moved", ""),
    "Laplace noise on samples of which a record is replaced": (
        "Checker",
        "| Poisson _, ReplaceOne | WithReplacement _ _, _ => false",
        "| WithReplacement _ _, _ => false",
    ),
    "Laplace noise on samples told where it is not": (
        "Checker",
        "laplace_step_losses w bits (further group ratio) share",
        "laplace_step_losses w bits (further group ratio) (share * share)",
    ),
    "Laplace noise on batches of a smaller share": (
        "Checker",
        "laplace_batch_losses w bits (further group ratio) share",
        "laplace_batch_losses w bits (further group ratio) (share * share)",
    ),
    "Laplace noise on samples, not squared": (
        "Checker",
        "laplace_sample_losses group drawn w bits (squared / (scale * scale))",
        "laplace_sample_losses group drawn w bits (squared / scale)",
    ),
    "groups of records in samples with Laplace noise": (
        "Checker",
        "laplace_sample_losses group drawn",
        "laplace_sample_losses 1 drawn",
    ),
    "several records in a sample with Laplace noise at the shift of one": (
        "Checker",
        "laplace_step_losses w bits (further group ratio)",
        "laplace_step_losses w bits ratio",
    ),
    "several records in a batch with Laplace noise at the shift of one": (
        "Checker",
        "laplace_batch_losses w bits (further group ratio)",
        "laplace_batch_losses w bits ratio",
    ),
    "several records in a sample with Laplace noise as often as one": (
        "Checker",
        "Poisson rate => any_of rate group",
        "Poisson rate => rate",
    ),
    "several records in a batch with Laplace noise as often as one": (
        "Checker",
        "FixedBatch size records => share_of_batch (group * size) records",
        "FixedBatch size records => share_of_batch size records",
    ),
    "a sample's share in pure DP squared": (
        "Checker",
        "(share_drawn 1 drawn) eps",
        "(share_drawn 1 drawn * share_drawn 1 drawn) eps",
    ),
    "a sample that leaves more in common": (
        "SampledLaplace",
        "(Z.min left root)) den",
        "left) den",
    ),
    "a root rounded up": (
        "SampledLaplace",
        "(Z.sqrt (shrunk * num * left /",
        "(Z.sqrt_up (shrunk * num * left /",
    ),
    "a sample of a record that never counts": (
        "SampledLaplace",
        "let left := low * den - (den - num) * 2 ^ p in",
        "let left := low * den in",
    ),
    "a sample's profile rounded down": (
        "SampledLaplace",
        "    round_up (num * 2 ^ p",
        "    (fun n d => n / d) (num * 2 ^ p",
    ),
    "a sample in pure DP by the lower end": (
        "SampledLaplace",
        "| Some (_, u), Some (l, _) =>\n      (Zpos",
        "| Some (u, _), Some (l, _) =>\n      (Zpos",
    ),
    "pure steps at a power of their cost": (
        "Checker",
        "| PureStep _ squared _ scale => Qle_bool 0 eps && Qle_bool (squared / (scale * scale))",
        "| PureStep _ squared _ scale => Qle_bool 0 eps && Qle_bool (squared / scale)",
    ),
    "odds below those of the root": (
        "Checker",
        "if Qle_bool 0 far && Qle_bool ratio (far * far) then\n    match exp",
        "if Qle_bool 0 far then\n    match exp",
    ),
    "odds rounded down": (
        "Checker",
        "match exp_of_rational p far with Some (_, u) =>",
        "match exp_of_rational p far with Some (u, _) =>",
    ),
    "pure steps of which a share differs": (
        "Checker",
        "twice (odds_loss w bits e 1 step)",
        "twice (odds_loss w bits e (1 # 2) step)",
    ),
    "sums over any orders": (
        "Checker",
        "Rdp order _, Rdp order' _ => Qeq_bool order order'",
        "Rdp order _, Rdp order' _ => true",
    ),
    "a filter that keeps what was spent": ("Checker", "(Kept kept kept)", "(Kept kept s)"),
    "a filter in any notion": (
        "Checker",
        "| Rdp order _ => negb (Qle_bool order 1)\n            | _ => false",
        "| Rdp order _ => negb (Qle_bool order 1)\n            | _ => true",
    ),
    "half of a whole number": (
        "Checker",
        "inject_Z (Z.sqrt (Qfloor squared))",
        "inject_Z (Z.sqrt (Qfloor (squared / 2)))",
    ),
    "as if there were two answers": (
        "Checker",
        "truth * (integer answers - 1) / (1 - truth)",
        "truth / (1 - truth)",
    ),
    "a lie is no less likely than the truth": (
        "Checker",
        "at_most_exp (odds truth answers) eps && at_most_exp (/ odds truth answers) eps",
        "at_most_exp (/ odds truth answers) eps",
    ),
    "answers that are always true": ("Checker", "probability truth && ", ""),
    "a record moves one count in l2": (
        "Checker",
        "Histogram => Some (match r with AddRemoveOne => 1 | _ => 2 end)",
        "Histogram => Some (match r with AddRemoveOne => 1 | _ => 1 end)",
    ),
    "means move by one record": ("Checker", "ZeroOutOne => 1 | _ => 2", "ZeroOutOne => 1 | _ => 1"),
    "nonnegative means move by one record": (
        "Checker",
        "both_count r * (s * s)",
        "s * s",
    ),
    "a record moves one count": ("Checker", "AddRemoveOne => 1 | _ => 2 end in", "_ => 1 end in"),
    "groups in pure DP for free": ("Checker", "PureDp (integer k * c)", "PureDp c"),
    "delta and epsilon swapped": (
        "Checker",
        "gaussian_delta_at_most mu_squared eps delta",
        "gaussian_delta_at_most mu_squared delta eps",
    ),
    "delta at a larger epsilon": (
        "GaussianDecision",
        "if Qle_bool cap eps then cap else eps.",
        "if Qle_bool eps cap then cap else eps.",
    ),
    "delta in other units": (
        "GaussianDecision",
        "(delta * inject_Z (2 ^ p))",
        "(delta * inject_Z (2 ^ (p + 1)))",
    ),
    "delta of no noise": (
        "Checker",
        "(Qle_bool mu_squared 0 && Qle_bool 0 eps",
        "(Qle_bool mu_squared 1 && Qle_bool 0 eps",
    ),
    "undecided taken for yes": ("Enclosure", "| Xund => None", "| Xund => Some true"),
    "digits that overlap": ("Kronecker", "Z.log2 (sum l) + 2 in", "Z.log2 (sum l) in"),
    "limbs of one bit less": (
        "MachineIntegers",
        "mask : int := 2147483647",
        "mask : int := 1073741823",
    ),
    "a product's carry forgotten": (
        "MachineIntegers",
        "in t land mask :: row x (t >> width)",
        "in t land mask :: row x 0",
    ),
    "a sum's carry forgotten": (
        "MachineIntegers",
        "let t := x + y + carry in t land mask :: total k' l' (t >> width)",
        "let t := x + y + carry in t land mask :: total k' l' 0",
    ),
    "a difference's borrow forgotten": (
        "MachineIntegers",
        "t land mask :: difference k' l' (1 - (t >> width))",
        "t land mask :: difference k' l' 0",
    ),
    "Karatsuba without the high product": (
        "MachineIntegers",
        "(difference all (total low high 0) 0)",
        "(difference all low 0)",
    ),
    "signs forgotten": (
        "MachineIntegers",
        "Zneg q | Zneg p, Zpos q => - positive_product p q",
        "Zneg q | Zneg p, Zpos q => positive_product p q",
    ),
    "a remainder's high half forgotten": (
        "MachineIntegers",
        "let t := (r << width) + x in",
        "let t := r + x in",
    ),
    "a quotient that need not fit": (
        "MachineIntegers",
        "if ((0 <=? r) && (r <? d))%Z then q",
        "if (0 <=? r)%Z then q",
    ),
    "quotients of numbers below zero towards zero": (
        "MachineIntegers",
        "| _ => (- positive_quotient (Pos.pred p) d - 1)%Z",
        "| _ => (- positive_quotient p d)%Z",
    ),
    "a series in limbs that rounds down": (
        "MachineSeries",
        "if exact then l else increased l 1.",
        "if exact then l else l.",
    ),
    "limbs cut off taken for zeros": (
        "MachineSeries",
        "dropped n' l' (zero && (x =? 0))",
        "dropped n' l' zero",
    ),
    "a series in limbs that ends too early": (
        "MachineSeries",
        "if at_most_one term && (enough <=? d) then",
        "if at_most_one term then",
    ),
    "divisors beyond a limb": (
        "MachineSeries",
        "(d + c * Z.of_nat fuel <? 2 ^ 31)",
        "(d <? 2 ^ 31)",
    ),
    "a share that goes up alone": (
        "LossLists",
        "carry + m + shift_up (n * down) bits ::",
        "carry + m ::",
    ),
    "a share that goes down alone": (
        "LossLists",
        "shared bits down up (shift_up (n * up) bits) rest",
        "shared bits down up 0 rest",
    ),
    "shares rounded down": (
        "LossLists",
        "carry + m + shift_up (n * down) bits ::",
        "carry + m + Z.shiftr (n * down) bits ::",
    ),
    "answers that differ less often": (
        "Checker",
        "truth + (1 - truth) / (integer answers - 1).",
        "truth.",
    ),
    "mass cut off and not lost": ("LossLists", "beyond := beyond l + gone", "beyond := beyond l"),
    "terms rounded inward": (
        "FixedPoint",
        "(total + term) (round_up (above term s) d)",
        "(total + term) (above term s / d)",
    ),
    "rest of a series in fixed point forgotten": (
        "FixedGaussian",
        "Some (above p v (total + 2 * term))",
        "Some (above p v total)",
    ),
    "delta of the other side": (
        "FixedGaussian",
        "match delta_above half scale (- k), exp_bounds p k with",
        "match delta_above half scale k, exp_bounds p k with",
    ),
    "bounds of a divisor swapped": (
        "SampledLoss",
        "(if less <=? 0 then u else l)",
        "(if less <=? 0 then l else u)",
    ),
    "rate of the sample halved": (
        "SampledLoss",
        "Some (removal_above p half scale rate)",
        "Some (removal_above p half scale (rate / 2))",
    ),
    "one of the two answers": (
        "PureLoss",
        " + Z.max 0 (2 ^ (2 * p) - l * e) in",
        " in",
    ),
    "Laplace laws half as far apart": (
        "LaplaceLoss",
        "exp_of_rational p ((inject_Z z * step - far) / 2),",
        "exp_of_rational p ((inject_Z z * step - far / 2) / 2),",
    ),
    "a root below its square's": ("LaplaceLoss", " && Qle_bool ratio (far * far)", ""),
    "Laplace laws that have more in common": (
        "LaplaceLoss",
        "Z.min (2 ^ p) (Z.min l r)) guard",
        "Z.min (2 ^ p) l) guard",
    ),
    "answers of which fewer differ": (
        "Checker",
        "truth + (1 - truth) / (integer answers - 1)",
        "truth + (1 - truth) / integer answers",
    ),
    "odds of the false answer": (
        "Checker",
        "let most := maximum (odds truth answers) (/ odds truth answers) in",
        "let most := / odds truth answers in",
    ),
    "losses of half of the noise": (
        "Checker",
        "twice (geometric_loss w bits scale (Z",
        "twice (geometric_loss w bits (2 * scale) (Z",
    ),
    "losses of a shift by one less": (
        "Checker",
        "(geometric_loss w bits scale (Z.sqrt (Qfloor (further group squared))) step)",
        "(geometric_loss w bits scale (Z.sqrt (Qfloor (further group squared)) - 1) step)",
    ),
    "weights that fall too far": (
        "GeometricLoss",
        "let decay j := exp_of_rational p (- (inject_Z j / scale)) in",
        "let decay j := exp_of_rational p (- (inject_Z (j + 1) / scale)) in",
    ),
    "one side of the turn": (
        "GeometricLoss",
        "(Z.max 0 (u - a) + Z.max 0 (u' - b))",
        "Z.max 0 (u - a)",
    ),
    "losses of noise of the square of its size": (
        "Checker",
        "twice (discrete_gaussian_loss w bits std (",
        "twice (discrete_gaussian_loss w bits (std * std) (",
    ),
    "losses of what moves by a root": (
        "Checker",
        "discrete_gaussian_loss w bits std (Qfloor (further group squared))",
        "discrete_gaussian_loss w bits std (Z.sqrt (Qfloor (further group squared)))",
    ),
    "variance that is not doubled": (
        "DiscreteGaussianShift",
        "/ (inject_Z 2 * (std * std))",
        "/ (std * std)",
    ),
    "masses rounded down": (
        "DiscreteGaussianShift",
        "Some (map (fun lu => round_up (snd lu * 2 ^ p) total) inside,",
        "Some (map (fun lu => (snd lu * 2 ^ p) / total) inside,",
    ),
    "masses in shares of too large a total": (
        "DiscreteGaussianShift",
        "let total := 2 * fold_right (fun lu n => fst lu + n) 0 inside - 2 ^ p in",
        "let total := 2 * fold_right (fun lu n => snd lu + n) 0 inside - 2 ^ p in",
    ),
    "zero counted twice in the total": (
        "DiscreteGaussianShift",
        "let total := 2 * fold_right (fun lu n => fst lu + n) 0 inside - 2 ^ p in",
        "let total := 2 * fold_right (fun lu n => fst lu + n) 0 inside in",
    ),
    "nothing outside": (
        "DiscreteGaussianShift",
        "round_up (2 * round_up (next * 2 ^ p) (2 ^ p - u) * 2 ^ p) total)",
        "0)",
    ),
    "one side outside": (
        "DiscreteGaussianShift",
        "round_up (2 * round_up (next * 2 ^ p)",
        "round_up (round_up (next * 2 ^ p)",
    ),
    "only the next outside": (
        "DiscreteGaussianShift",
        "round_up (2 * round_up (next * 2 ^ p) (2 ^ p - u) * 2 ^ p) total)",
        "round_up (2 * next * 2 ^ p) total)",
    ),
    "losses one multiple lower": (
        "DiscreteGaussianShift",
        "first := k * k - 2 * k * Z.of_nat N;",
        "first := k * k - 2 * k * Z.of_nat N - 1;",
    ),
    "losses closer to each other": (
        "DiscreteGaussianShift",
        "masses := spaced (2 * j - 1)",
        "masses := spaced (2 * j - 2)",
    ),
    "ways that leave a square out": (
        "DiscreteGaussianLoss",
        "(ways p cut shift j' (n - k * (j * j)))",
        "(ways p cut shift j' (n - (k + 1) * (j * j)))",
    ),
    "ways without the longest coordinate": (
        "DiscreteGaussianLoss",
        "(Z.to_nat (Z.sqrt n)) (Z.to_nat n) in",
        "(Z.to_nat (Z.sqrt n - 1)) (Z.to_nat n) in",
    ),
    "the smaller of two profiles": (
        "DiscreteGaussianLoss",
        "Z.max m n :: larger",
        "Z.min m n :: larger",
    ),
    "a place too far down": (
        "DiscreteGaussianLoss",
        "      if target <? k\n",
        "      if target - 1 <? k\n",
    ),
    "what is left falls too little": (
        "DiscreteGaussianLoss",
        "exp_of_rational p (- unit) with",
        "exp_of_rational p (- unit / 2) with",
    ),
    "Laplace steps alone counted once": (
        "Checker",
        "Some ((Qnum far, Pos.to_nat n) :: found)",
        "Some ((Qnum far, 1%nat) :: found)",
    ),
    "a shift below its square's": (
        "Checker",
        "Pos.leb n most_shifts && Qle_bool 0 far && Qle_bool ratio (far * far)",
        "Pos.leb n most_shifts && Qle_bool 0 far",
    ),
    "a point above epsilon": (
        "Checker",
        "(Qnum epsilon * 2 ^ p / Zpos (Qden epsilon))%Z delta",
        "(Qnum epsilon * 2 ^ p / Zpos (Qden epsilon) + 1)%Z delta",
    ),
    "a sign the other way": (
        "LaplaceSums",
        "times_plus 0 (removelast",
        "times_minus 0 (removelast",
    ),
    "choices that occur once": (
        "LaplaceSums",
        "(b * knot_ways x) :: spread",
        "(knot_ways x) :: spread",
    ),
    "all signs + without the exponential": (
        "LaplaceSums",
        "Some (fst last * e + horner_above",
        "Some (horner_above",
    ),
    "a polynomial rounded inward": (
        "LaplaceSums",
        "round_up (horner_above q num den (j + 1) rest * num) (den * (j + 1))",
        "horner_above q num den (j + 1) rest * num / (den * (j + 1))",
    ),
    "choices more likely than they are": (
        "LaplaceSums",
        "(delta * inject_Z (2 ^ (2 * p + Z.of_nat n)))",
        "(delta * inject_Z (2 ^ (2 * p + 1 + Z.of_nat n)))",
    ),
    "records at once that move as far as one": (
        "Checker",
        "integer group * integer group * squared.",
        "integer group * squared.",
    ),
    "samples of several records at the price of one": (
        "Checker",
        "Poisson rate, _ => seen_by_each rate group",
        "Poisson rate, _ => Removed rate",
    ),
    "a batch of several records at the price of one": (
        "Checker",
        "else Batched (share_of_batch (group * size) records) group",
        "else Batched (share_of_batch size records) group",
    ),
    "replaced records that take part as often as one": (
        "Checker",
        "(any_of rate group) step dense tail",
        "rate step dense tail",
    ),
    "replaced records as far apart as one": (
        "Checker",
        "twice (replaced_losses w bits (further group ratio) (any_of",
        "twice (replaced_losses w bits ratio (any_of",
    ),
    "none of them drawn more often": (
        "Checker",
        "(Zpos (Qden rate) - Qnum rate) ^ Zpos group)",
        "(Zpos (Qden rate) - Qnum rate))",
    ),
    "records replaced in a batch at the shift of one": (
        "Checker",
        "twice (batch_losses w bits (further group ratio) share",
        "twice (batch_losses w bits ratio share",
    ),
    "draws with replacement of several records at the price of one": (
        "Checker",
        "then Copied size (Zpos group # records)",
        "then Copied size (1 # records)",
    ),
    "draws with replacement as many as are replaced": (
        "Checker",
        "then Copied size (Zpos group # records)",
        "then Copied group (Zpos group # records)",
    ),
    "every record drawn at once": (
        "Checker",
        "if Pos.leb (2 * group) records then",
        "if Pos.leb group records then",
    ),
    "others left where all of a group are drawn": (
        "Checker",
        "if Pos.leb (2 * group) records then",
        "if Pos.leb 2 records then",
    ),
    "others left wherever records are drawn": (
        "Checker",
        "if Pos.leb (2 * group) records then",
        "if true then",
    ),
    "all records drawn again and again at the price of one": (
        "Checker",
        "else Told 1 size",
        "else Told 1 1",
    ),
    "as many places as records of a group": ("Checker", "else Told 1 size", "else Told 1 group"),
    "all records drawn again and again half the time": (
        "Checker",
        "else Told 1 size",
        "else Told (1 # 2) size",
    ),
    "all records of a group at the shift of one": (
        "Checker",
        "Some (further group (squared / (std * std)))",
        "Some (squared / (std * std))",
    ),
    "thresholds of those that take part above what is left": (
        "GroupLoss",
        "let target := (low - most)%Z",
        "let target := low",
    ),
    "numbers of those that take part, forgotten": (
        "GroupLoss",
        "Some (f + rest)%Z",
        "Some f",
    ),
    "none takes part more often than it does": (
        "GroupLoss",
        "(2 ^ p - below p none (",
        "(2 ^ p - below p most (",
    ),
    "a mixture's sample beside all of the noise": (
        "Checker",
        "/ ((1 - share) * (std * std))",
        "/ (std * std)",
    ),
    "what a mixture computes from all records beside all of the noise": (
        "Checker",
        "/ (share * (std * std))",
        "/ (std * std)",
    ),
    "what a mixture computes from all records, forgotten": (
        "Checker",
        "(positive_number constant) (constant_ratio group (share i) constant std)",
        "(positive_number constant) (0 * constant_ratio group (share i) constant std)",
    ),
    "a mixture's sample, forgotten": (
        "Checker",
        "  | Some m => match whole_ratio group m with Some _ => true | None => false end\n",
        "  | Some (MixtureStep _ _ _ _ _ _ _) => true\n"
        "  | Some m => match whole_ratio group m with Some _ => true | None => false end\n",
    ),
    "noise all of which is for one part": (
        "Checker",
        " && forallb (fun ms => probability (snd ms)) shares",
        "",
    ),
    "a batch's record in a mixture that is not replaced": (
        "Checker",
        "ZeroOutOne => 2 * group |",
        "ZeroOutOne => group |",
    ),
    "records of a mixture drawn as often as one": (
        "Checker",
        "minimum (integer group * rate) 1",
        "minimum rate 1",
    ),
    "records of a mixture as far apart as one": (
        "Checker",
        "further (match moved with ZeroOutOne => 2 * group | _ => group end) squared",
        "further (match moved with ZeroOutOne => 2 | _ => 1 end) squared",
    ),
    "replaced records of any size in a mixture": (
        "Checker",
        "if linear_in_records d then Batched q 1 else Told q 1",
        "Batched q 1",
    ),
    "a mixture of which half is derived": (
        "Checker",
        "Qeq_bool s constant && Qeq_bool t squared",
        "Qeq_bool t squared",
    ),
    "mixtures pay in zCDP": (
        "Checker",
        "| (Zcdp _ | Rdp _ _), (LaplaceStep _ _ _ _ |",
        "| (Zcdp _ | Rdp _ _), (MixtureStep _ _ _ _ _ _ _ | LaplaceStep _ _ _ _ |",
    ),
    "several samples at the price of one": (
        "Checker",
        "(seen_by_each rate (group * samples), squared",
        "(seen_by_each rate group, squared",
    ),
    "samples of several records at the price of one's": (
        "Checker",
        "(seen_by_each rate (group * samples), squared",
        "(seen_by_each rate samples, squared",
    ),
    "two copies at the price of one": (
        "Checker",
        "if Pos.eqb number 1 then Removed rate",
        "if Pos.leb number 2 then Removed rate",
    ),
    "replaced records in accumulated samples": (
        "Checker",
        "&& negb (relation_eqb moved ReplaceOne) && relation_eqb moved r",
        "&& relation_eqb moved r",
    ),
    "accumulated samples pay in zCDP": (
        "Checker",
        "| (Zcdp _ | Rdp _ _), (LaplaceStep _ _ _ _ |",
        "| (Zcdp _ | Rdp _ _), (AccumulatedStep _ _ _ _ _ _ | LaplaceStep _ _ _ _ |",
    ),
    "samples that share what is drawn": (
        "AccumulatedSampling",
        "filter (fun copy => Nat.eqb (fst copy) n) drawn",
        "filter (fun copy => Nat.eqb (fst copy) 0) drawn",
    ),
    "a loss below that of no step": ("GeometricLoss", "masses := [2 ^ w]", "masses := [2 ^ w - 1]"),
    "half of everybody is everybody": (
        "Checker",
        "Gathered _ group => guard (Qle_bool 1 (share_met x)) group",
        "Gathered _ group => guard (Qle_bool (1 # 2) (share_met x)) group",
    ),
    "everybody's samples that move as far as one record": (
        "Checker",
        "option_map (fun n => further n ratio) (whole_shift x)",
        "option_map (fun n => ratio) (whole_shift x)",
    ),
    "a moment without its smallest terms": (
        "RenyiDecision",
        "| O => clipped p (I.mul p c e)\n",
        "| O => I.fromZ p 0\n",
    ),
    "a moment of powers that grow too slowly": (
        "RenyiDecision",
        "(I.mul p e u) (I.mul p u w)",
        "(I.mul p e u) u",
    ),
    "a moment up to the order's exponential": (
        "RenyiDecision",
        "(rational p (inject_Z (Zpos n - 1) * eps)).",
        "(rational p (inject_Z (Zpos n) * eps)).",
    ),
    "a batch's moment without half of its terms": (
        "RenyiDecision",
        "(I.mul p (I.fromZ p 2)\n        (terms",
        "(I.mul p (I.fromZ p 0)\n        (terms",
    ),
    "a batch's moment at a share of its share": (
        "RenyiDecision",
        "((Zpos n * (Zpos n - 1) # 2) * (share * share))%Q in",
        "((Zpos n * (Zpos n - 1) # 2) * (share * share * share))%Q in",
    ),
    "orders of one": ("RenyiDecision", "Pos.leb 2 n && Pos.leb n 512", "Pos.leb n 512"),
    "moments of noise that is not squared": (
        "Checker",
        "|| poisson_renyi_at_most (squared / (std * std))",
        "|| poisson_renyi_at_most (squared / std)",
    ),
    "a batch's moments of noise that is not squared": (
        "Checker",
        "|| batch_renyi_at_most (squared / (std * std))",
        "|| batch_renyi_at_most (squared / std)",
    ),
    "Renyi DP of replaced records in Poisson samples": (
        "Checker",
        "| Poisson _ => negb (relation_eqb moved ReplaceOne)\n  | FixedBatch",
        "| Poisson _ => true\n  | FixedBatch",
    ),
    "Renyi DP of draws with replacement": (
        "Checker",
        "| WithReplacement _ _ => false\n  end.\n\n(** Steps whose",
        "| WithReplacement _ _ => true\n  end.\n\n(** Steps whose",
    ),
    "Renyi DP of samples at any order": (
        "Checker",
        "=> is_whole order && pays_sampled drawn moved",
        "=> pays_sampled drawn moved",
    ),
    "Renyi DP of samples towards groups": (
        "Checker",
        "if relation_eqb (claim_relation s) r && Pos.eqb (claim_group s) 1 then kind",
        "if relation_eqb (claim_relation s) r then kind",
    ),
    "Renyi DP of samples towards other neighbours": (
        "Checker",
        "if relation_eqb (claim_relation s) r && Pos.eqb (claim_group s) 1 then kind",
        "if Pos.eqb (claim_group s) 1 then kind",
    ),
    "predictions without the record's own": (
        "Checker",
        "stiff + 4 * (rows",
        "stiff + 0 * (rows",
    ),
    "predictions that others' rows move half as far": (
        "Checker",
        "(steepest * steepest / stiff +",
        "(steepest * steepest / (2 * stiff) +",
    ),
    "predictions pulled by slopes alone": (
        "Checker",
        "rows * (slope + penalty * rows * radius)",
        "rows * slope",
    ),
    "predictions of a minimiser of half the tolerance": (
        "Checker",
        "(tolerance * tolerance / stiff)",
        "(tolerance * tolerance / (4 * stiff))",
    ),
    "a replaced row's predictions at the price of a null one": (
        "Checker",
        "moved_twice r * u / 2 + v",
        "u / 2 + v",
    ),
    "labels that move by the bound on slopes": (
        "Checker",
        "ReplaceOne => gap | _ => slope end",
        "ReplaceOne => slope | _ => slope end",
    ),
    "slopes off by their tolerance once": (
        "Checker",
        "slope end + 2 * tolerance",
        "slope end + tolerance",
    ),
    "every step priced with noise of size 1": (
        "Checker",
        "    end\n  else m.\n",
        "    end\n  else with_noise m.\n",
    ),
    "a told sample at half its probability": (
        "Checker",
        "twice (told_losses w bits (further group ratio) share step",
        "twice (told_losses w bits (further group ratio) (share / 2) step",
    ),
    "losses of a told sample rounded down": (
        "SampledLoss",
        "Some (round_up (Qnum rate * n) (Zpos (Qden rate)))",
        "Some (Qnum rate * n / Zpos (Qden rate))%Z",
    ),
    "losses of a told sample in one order alone": (
        "SampledLoss",
        "      turned_losses w bits part step dense tail\n",
        "      option_map fst (both_losses w bits part step dense tail)\n",
    ),
    "a mixture's rate above one": (
        "Checker",
        "Qle_bool 0 rate && Qle_bool rate 1 && relation_eqb moved r\n",
        "Qle_bool 0 rate && relation_eqb moved r\n",
    ),
    "replaced records clipped to nothing much": (
        "Checker",
        "| Unary _ squared p => Qeq_bool squared 0 && bounds_each_record p",
        "| Unary _ squared p => bounds_each_record p",
    ),
    "replaced records of which anything is declared": (
        "Checker",
        "| Leaf _ squared => Qeq_bool squared 0",
        "| Leaf _ squared => true",
    ),
    "a group's records out of one more each": (
        "Checker",
        "Zpos group + 1) / Zpos size)%Z",
        "Zpos group + 1) / Zpos size + 1)%Z",
    ),
    "a group's records as if the others were drawn, too": (
        "Checker",
        "(Zpos records - Zpos group + 1) / Zpos size",
        "Zpos records / Zpos size",
    ),
    "several records in a batch as often as one": (
        "Checker",
        "then Copied group (1 # Z.to_pos",
        "then Copied 1 (1 # Z.to_pos",
    ),
    "records counted where each is drawn": ("Checker", "Z.leb 2 each", "Z.leb 1 each"),
    "bits that make no record likelier": (
        "GroupsDrawn",
        "/ INR (S (length ks' + length rest)) / r in",
        "/ INR (S (length ks' + length rest)) in",
    ),
    "every record as likely as the first": (
        "GroupsDrawn",
        "INR (S (length ks' + length rest)) / r in",
        "INR (S (length rest)) / r in",
    ),
    "shares of batches that are not there": (
        "GroupsDrawn",
        "<= (b - a) * chance r many 0 ->",
        "<= (b - a) ->",
    ),
}
MEANINGS = {
    "nothing is allowed": ("Certificate", "if concerns e j\n", "if false\n"),
    "noise that no run has": (
        "Certificate",
        "noise r h = Normal (Q2R std)",
        "noise r h = Normal (- Q2R std)",
    ),
    "every record reads every round": (
        "Certificate",
        "forall j data part, reads r h j = false -> f",
        "forall j data part, f",
    ),
    "a scale that no run has": (
        "Certificate",
        "noise r h = Laplace (Q2R scale) /\\\n     sampled",
        "noise r h = Laplace (- Q2R scale) /\\\n     sampled",
    ),
    "all whole numbers are even": (
        "Certificate",
        "exists n : Z, value r h data i = IZR n",
        "exists n : Z, value r h data i = IZR (2 * n)",
    ),
    "discrete noise that no run has": (
        "Certificate",
        "noise r h = DiscreteGaussian (Q2R std)",
        "noise r h = DiscreteGaussian (- Q2R std)",
    ),
    "one answer of two": (
        "Certificate",
        "(answer r h data < Pos.to_nat answers)%nat",
        "(S (answer r h data) < Pos.to_nat answers)%nat",
    ),
    "a scale that no sample has": (
        "Certificate",
        "noise r h = Laplace (Q2R scale) /\\ samples_as",
        "noise r h = Laplace (- Q2R scale) /\\ samples_as",
    ),
    "one answer too many": (
        "Certificate",
        "scale) /\\ noise r h = Weighted answers /\\",
        "scale) /\\ noise r h = Weighted (S answers) /\\",
    ),
    "a null record that is drawn may count": (
        "Certificate",
        "reads r h j = true) /\\\n  (moved = ZeroOutOne -> null_is_absent)",
        "reads r h j = true) /\\\n  (moved = ZeroOutOne -> True)",
    ),
    "a rate that no sample has": (
        "Certificate",
        "Poisson rate, EachWith q => q = Q2R rate",
        "Poisson rate, EachWith q => q = 1 + Q2R rate",
    ),
    "a mixture's noise that no run has": (
        "Certificate",
        "noise r h = Beside (Q2R std)",
        "noise r h = Beside (- Q2R std)",
    ),
    "a mixture's rate that no sample has": (
        "Certificate",
        "EachWith q => q = Q2R rate /\\",
        "EachWith q => q = 1 + Q2R rate /\\",
    ),
    "a mixture's batch that no sample has": (
        "Certificate",
        "(0 < size <= records)%nat",
        "(records < size <= records)%nat",
    ),
    "a null record in a mixture's sample may count": (
        "Certificate",
        "q = Q2R rate /\\ (moved = ZeroOutOne -> null_is_absent)",
        "q = Q2R rate /\\ (moved = ZeroOutOne -> True)",
    ),
    "accumulated samples' noise that no run has": (
        "Certificate",
        "noise r h = Accumulated (Q2R rate) (Q2R std)",
        "noise r h = Accumulated (Q2R rate) (- Q2R std)",
    ),
    "accumulated samples' rate that no run has": (
        "Certificate",
        "noise r h = Accumulated (Q2R rate)",
        "noise r h = Accumulated (1 + Q2R rate)",
    ),
    "a sample too many": (
        "Certificate",
        "(Q2R std) (Pos.to_nat samples)",
        "(Q2R std) (S (Pos.to_nat samples))",
    ),
    "what a mixture computes from all records may be anything": (
        "Certificate",
        "leaves_unread (unsampled r h) /\\",
        "True /\\",
    ),
    "a batch that no sample has": (
        "Certificate",
        "OutOf n k _ => n = Pos.to_nat size /\\",
        "OutOf n k _ => n = S (Pos.to_nat size) /\\",
    ),
    "draws that no sample has": (
        "Certificate",
        "Again n k _ => n = Pos.to_nat size /\\",
        "Again n k _ => n = S (Pos.to_nat size) /\\",
    ),
    "minimisers over all records but one": (
        "Certificate",
        "(objective_present loss regulariser count data)",
        "(objective_present loss regulariser count (tl data))",
    ),
    "another party's part": (
        "Certificate",
        "if Nat.eqb (Pos.to_nat (fst part)) j then",
        "if Nat.eqb (Pos.to_nat (fst part)) (S j) then",
    ),
    "sums that round nothing": (
        "Certificate",
        "sum_within (width_of (sum_depth count)) 2\n",
        "sum_within 0 0\n",
    ),
    "counts that cancel": (
        "Certificate",
        "(forall x, norm (f x) <= 1) -> (forall x y, 0 <= inner",
        "(forall x, norm (f x) <= 1) -> (forall x y, 0 >= inner",
    ),
    "a filter that lets nothing happen": (
        "Certificate",
        "spent (cost_to reads cost j) h <= Q2R",
        "spent (cost_to reads cost j) h <= - Q2R",
    ),
    "filtered rounds that read everybody": (
        "Certificate",
        "forall h j data part, reads h j = false ->\n    forall a",
        "forall h j data part,\n    forall a",
    ),
    "losses of records of several parties": (
        "Certificate",
        "ApproxDp _ _ => unit_neighbours null |",
        "ApproxDp _ _ => group_neighbours null |",
    ),
    "all values are zero": (
        "Certificate",
        "(forall x, norm (f x) <= Q2R bound) ->\n      (r = ZeroOutOne",
        "(forall x, norm (f x) <= 0 * Q2R bound) ->\n      (r = ZeroOutOne",
    ),
    "rows that pull at nothing": (
        "Certificate",
        "Rabs (pull i) <= Q2R slope_bound",
        "Rabs (pull i) <= 0 * Q2R slope_bound",
    ),
    "labels that all say the same": (
        "Certificate",
        "<= Q2R label_gap",
        "<= 0 * Q2R label_gap",
    ),
    "steps without noise that move": (
        "Certificate",
        "Qeq_bool squared 0 && Qeq_bool size 0",
        "Qeq_bool size 0",
    ),
    "steps without noise that tell anything": (
        "Certificate",
        "u i = v i) -> law u = law v)",
        "u i = v i) -> law u = law u)",
    ),
    "samples without noise of which all records are told": (
        "Certificate",
        "(fun sample => law (value r h sample))",
        "(fun sample => law (value r h data))",
    ),
    "laws of answers that add up to anything": (
        "Certificate",
        "  (forall row, distribution (seq 0 answers) (law row)) /\\\n",
        "",
    ),
    "what is declared is linear in the records": (
        "Certificate",
        "| Leaf _ squared => Qeq_bool squared 0",
        "| Leaf _ squared => true",
    ),
    "what brings nothing to a mixture's sample may count it": (
        "Certificate",
        "linear_in_records d = true -> value_derives AddRemoveOne d)",
        "linear_in_records d = true -> value_derives ReplaceOne d)",
    ),
    "what brings nothing to a sample may count it": (
        "Certificate",
        "ReplaceOne squared d std) -> value_derives AddRemoveOne d)",
        "ReplaceOne squared d std) -> value_derives ReplaceOne d)",
    ),
}

ALONE = sorted({file for file, *_ in RULES.values()} - {"Checker"})
LEMMA = re.compile(r"^ *(?:Lemma|Theorem|Corollary) +([\w']+)", re.MULTILINE)
END = re.compile(r"\b(?:Qed|Defined)\.")


def lemma_at(source: str, line: int) -> str | None:
    """Return the lemma that this line, of those counted from 1, states or proves; None if none."""
    lines = source.splitlines(keepends=True)
    stated = list(LEMMA.finditer("".join(lines[:line])))
    ended = list(END.finditer("".join(lines[: line - 1])))
    if not stated or (ended and ended[-1].start() > stated[-1].start()):
        return None
    return stated[-1][1]


def refused_lemma(
    folder: Path, files: tuple[str, ...], fault: tuple[str, str, str] | None = None
) -> tuple[str, str] | None:
    """Compile the files in order; return the first one refused and its lemma, None if all pass.

    Raises AssertionError if coqc refuses anything but a lemma, or ends in another way.
    """
    proofs = compiled_proofs()
    assert proofs is not None
    for path in proofs.glob("*.vo"):
        if path.stem not in files:  # coqc writes through a link
            (folder / path.name).symlink_to(path)
    for file in files:
        shutil.copy(proofs / f"{file}.v", folder)
    if fault is not None:
        file, old, new = fault
        source = folder / f"{file}.v"
        text = source.read_text()
        assert text.count(old) == 1, (old, text.count(old))
        source.write_text(text.replace(old, new))
    for file in files:
        command = ["coqc", "-R", ".", "Dpledger", "-w", "none", f"{file}.v"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode == 0:
            continue
        said = re.match(rf'File "./{file}.v", line (\d+), characters [\d-]+:\nError:', ended.stderr)
        assert (ended.returncode, said is None) == (1, False), ended.stderr
        lemma = lemma_at((folder / f"{file}.v").read_text(), int(said[1]))
        assert lemma is not None, ended.stderr
        assert "Syntax error" not in ended.stderr, ended.stderr
        return file, lemma
    return None


@pytest.mark.parametrize(
    "files",
    [("Certificate", "Unmoved", "Checker", *PROOFS, *EXAMPLES), *((file,) for file in ALONE)],
)
def test_without_a_fault_everything_compiles(tmp_path, files):
    assert refused_lemma(tmp_path, files) is None


@pytest.mark.parametrize("name", RULES)
def test_a_wrong_rule_breaks_soundness(tmp_path, name, record_property):
    planted = RULES[name][0]
    files = (planted,) if planted in ALONE else (planted, *PROOFS)
    refused = refused_lemma(tmp_path, files, RULES[name])
    assert refused is not None
    record_property("refused", ".".join(refused))
    assert planted in ALONE or refused[0] in PROOFS


@pytest.mark.parametrize("name", MEANINGS)
def test_a_meaning_that_no_run_has_breaks_the_example(tmp_path, name, record_property):
    files = ("Certificate", "Unmoved", "Checker", *PROOFS, *EXAMPLES)
    refused = refused_lemma(tmp_path, files, MEANINGS[name])
    assert refused is not None
    record_property("refused", ".".join(refused))
    assert refused[0] in (*PROOFS, *EXAMPLES)


NOTHING_BROKEN = {
    "Definition rule := nothing.": "nothing was not found",
    "From Dpledger Require Import Nothing.": "Cannot find",
    "Lemma rule : (0 = 0.": "Syntax error",
    "Lemma rule : 0 = 0. Proof. reflexivity. Qed.\nDefinition rule' := nothing.": "nothing was not",
}


def in_schedules(said: str) -> tuple[str, str, str]:
    return ("Schedules", "Open Scope R_scope.", f"Open Scope R_scope.\n{said}")


@pytest.mark.parametrize("said", NOTHING_BROKEN)
def test_what_breaks_no_lemma_is_no_catch(tmp_path, said):
    with pytest.raises(AssertionError, match=NOTHING_BROKEN[said]):
        refused_lemma(tmp_path, ("Schedules",), in_schedules(said))


@pytest.mark.parametrize(
    "said", ["Lemma rule : 0 = 1.\nProof.\n  reflexivity.\nQed.", "Lemma rule : 1."]
)
def test_a_broken_lemma_is_named(tmp_path, said):
    refused = refused_lemma(tmp_path, ("Schedules",), in_schedules(said))
    assert refused == ("Schedules", "rule")
