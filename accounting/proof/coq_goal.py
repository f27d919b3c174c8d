"""The last inequality of a certificate as a theorem that Coq proves by itself.

For certificates that `coq_theorem` does not cover. The checker computes with Python's integers;
here the inequality that decides about ε is written down for Coq's `interval` tactic, which
computes with integers of Coq's kernel. It takes a second for zCDP and Rényi DP, up to a minute for
the exact curve of GDP at very small δ.
"""

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...mechanisms.errors import DpledgerError
from ..check.pld_checker import check

_TIMEOUT = 300
"""Seconds for one goal: five times the minute that an exact curve takes at very small δ."""


class NoCoqGoal(DpledgerError, ValueError):
    """The certificate does not end in a conversion to (ε, δ). It may be right all the same."""


class CoqMissing(DpledgerError, RuntimeError):
    """There is no `coqc` here. Says nothing about the certificate."""


class CoqSilent(DpledgerError, TimeoutError):
    """Coq has not answered in time. Says nothing about the certificate."""


@dataclass(frozen=True, slots=True)
class CoqVerdict:
    """Whether coqc accepted the proof, and what it said. A failure is not a disproof."""

    proved: bool
    output: str


def coq_goal(document: bytes) -> str:
    """Return a self-contained Coq file that proves the last conversion of a certificate.

    Raises what `pld_checker.check` raises, and `NoCoqGoal` where nothing is converted: pure DP,
    what costs nothing, and loss distributions, which have their δ from a list of masses.
    """
    subject = check(document).subject
    nodes: list[dict[str, Any]] = json.loads(document)["nodes"]
    last = [node for node in nodes if node["rule"] in ("rdp-approx-dp", "gdp-approx-dp")]
    if len(last) != 1:
        raise NoCoqGoal(f"Expected one conversion to (epsilon, delta) instead got {len(last)}.")
    premise = nodes[last[0]["premises"][0]]["conclusion"]
    stated = premise | last[0]["parameters"]
    numbers = {name: Fraction(stated[name]) for name in _NUMBERS if name in stated}
    if Fraction(premise["mu_squared" if premise["notion"] == "gdp" else "epsilon"]) == 0:
        raise NoCoqGoal("Expected a cost above 0 instead got 0: no inequality is converted.")
    if premise["notion"] == "gdp":
        body = _gdp_goal(numbers)
    else:
        body = _rdp_goal(numbers, divergence=Fraction(premise["epsilon"]))
    return f"(* The run whose events hash to\n   {subject}. *)\n\n{body}"


_NUMBERS = ("mu_squared", "order", "epsilon", "delta")
"""Numbers of a conversion, from its premise and its parameters."""


def compiled_proofs() -> Path | None:
    """Return the folder of compiled proofs of this checkout, None without them (`make -C proofs`).

    A wheel has none.
    """
    folder = Path(__file__).resolve().parents[2] / "proofs"
    return folder if (folder / "Soundness.vo").is_file() else None


def prove(goal: str, *, proofs: Path | None = None, timeout: float = _TIMEOUT) -> CoqVerdict:
    """Return what coqc says about a goal, after at most `timeout` seconds.

    `proofs`: the folder of compiled proofs that the goal imports, if it imports any. Raises
    `CoqMissing` without coqc (Debian: coq libcoq-coquelicot libcoq-interval), and `CoqSilent` where
    coqc takes longer.

    Args:
        goal: text of a Coq file.
        proofs: as above.
        timeout: in seconds.
    """
    coqc = shutil.which("coqc")
    if coqc is None:
        raise CoqMissing("Expected coqc on the path: Debian has it in coq and libcoq-interval.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.v"
        path.write_text(goal)
        try:
            done = subprocess.run(
                [
                    coqc,
                    *(("-R", str(proofs), "Dpledger") if proofs else ()),
                    "-w",
                    "none",
                    path.name,
                ],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CoqSilent(f"coqc has not answered within {timeout:g} seconds.") from None
    return CoqVerdict(done.returncode == 0, (done.stdout + done.stderr).strip())


def _real(x: Fraction) -> str:
    """Return a fraction as a real number of Coq."""
    return f"({x.numerator} / {x.denominator})"


def _bits(delta: Fraction) -> int:
    """Return about -log2 of a number in (0, 1)."""
    return delta.denominator.bit_length() - delta.numerator.bit_length()


def _rdp_goal(numbers: dict[str, Fraction], *, divergence: Fraction) -> str:
    """Return the goal of a conversion from Rényi DP; `divergence` is the premise's epsilon."""
    order, delta = _real(numbers["order"]), _real(numbers["delta"])
    return f"""From Coq Require Import Reals.
From Interval Require Import Tactic.
Open Scope R_scope.

Definition order := {order}.
Definition divergence := {_real(divergence)}.
Definition delta := {delta}.
Definition epsilon := {_real(numbers["epsilon"])}.

(* Canonne, Kamath, Steinke 2020, Proposition 12: the side condition of rdp-approx-dp *)
Theorem epsilon_suffices :
  ln (/ delta) + (order - 1) * ln (1 - / order) - ln order <= (order - 1) * (epsilon - divergence).
Proof. unfold order, divergence, delta, epsilon; interval with (i_prec 200). Qed.
"""


def _gdp_goal(numbers: dict[str, Fraction]) -> str:
    """Return the goal of a conversion from GDP: δ of the normal shift, as two integrals of the
    density.

    The tactic must enclose both integrals to as many bits as δ has leading zeros, plus what
    multiplying the second by e^ε takes away.
    """
    mu_squared, epsilon = numbers["mu_squared"], numbers["epsilon"]
    # the second tail is multiplied by e^epsilon, and epsilon was rounded at the 53rd bit
    digits = 60 + _bits(numbers["delta"]) + 3 * int(epsilon) // 2
    below = "epsilon / mu - mu / 2"
    # the integral runs upwards from zero, so a negative end is mirrored
    mirrored = epsilon < mu_squared / 2
    near = f"- ({below})" if mirrored else below
    sign = "+" if mirrored else "-"
    enclose = f"with (i_prec {digits + 45}, i_relwidth {digits}, i_degree 30)"
    return f"""From Coq Require Import Reals.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Tactic.
Open Scope R_scope.

Definition mu := sqrt {_real(mu_squared)}.
Definition delta := {_real(numbers["delta"])}.
Definition epsilon := {_real(epsilon)}.

(* the integral of the normal density from 0 to x *)
Definition body (x : R) := RInt (fun t => exp (- (t * t) / 2)) 0 x / sqrt (2 * PI).

(* Balle, Wang 2018, Theorem 8: Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2) *)
Theorem delta_at_epsilon :
  (/ 2 {sign} body ({near})) - exp epsilon * (/ 2 - body (epsilon / mu + mu / 2)) <= delta.
Proof.
  unfold body, mu, delta, epsilon.
  match goal with |- (/ 2 {sign} ?I / _) - _ * (/ 2 - ?J / _) <= _ =>
    integral_intro I {enclose} as first;
    integral_intro J {enclose} as second;
    set (i := I) in first |- *; set (j := J) in second |- *; clearbody i j
  end.
  interval with (i_prec {digits + 45}).
Qed.
"""
