"""The checker that is proved in Coq, extracted to a program: `make -C proofs checker` builds it.

It covers what `coq_theorem` covers, in milliseconds. Trusted beside the proof: extraction to OCaml,
Zarith, and the reader of documents in `proofs/checker/`.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ...mechanisms.errors import DpledgerError
from ..check.checker import Verdict

_TIMEOUT = 20
"""Seconds for each file of a call. Milliseconds do, but where epsilon is in the hundreds: the
enclosure of its exponentials then takes longer than anybody waits."""


class ExtractedMissing(DpledgerError, RuntimeError):
    """There is no extracted checker here. Says nothing about the certificate."""


@dataclass(frozen=True, slots=True)
class ExtractedVerdict:
    """What the extracted checker says: `proved`, `wrong` or `undecided`, and its line.

    Args:
        word: the verdict; `undecided` is no refusal.
        line: as printed.
    """

    word: str
    line: str


def extracted_checker() -> Path | None:
    """Return the extracted checker: of this checkout, or `dpledger-check` on the path."""
    built = Path(__file__).resolve().parents[2] / "proofs" / "checker" / "dpledger-check"
    if built.is_file():
        return built
    found = shutil.which("dpledger-check")
    return None if found is None else Path(found)


def run_extracted(paths: Sequence[Path], *, timeout: float = _TIMEOUT) -> list[ExtractedVerdict]:
    """Return what the extracted checker says of each certificate, in order.

    Raises `ExtractedMissing` where it is not built, or does not answer within `timeout` seconds a
    file.
    """
    program = extracted_checker()
    if program is None:
        raise ExtractedMissing("dpledger-check must be built first; make -C proofs checker.")
    most = timeout * len(paths)
    try:
        done = subprocess.run(
            [program, *paths], capture_output=True, text=True, timeout=most, check=False
        )
    except subprocess.TimeoutExpired:
        late = f"dpledger-check must answer within {most:g} seconds; it did not."
        raise ExtractedMissing(late) from None
    except OSError as error:
        raise ExtractedMissing(f"{program} must answer; it did not: {error}") from error
    lines = done.stdout.splitlines()
    if len(lines) != len(paths):
        raise ExtractedMissing(f"{program} must answer once a file; it said {done.stderr[-200:]!r}")
    return [ExtractedVerdict(line.partition(" ")[0].rstrip(":"), line) for line in lines]


def agrees(found: ExtractedVerdict, verdict: Verdict) -> bool:
    """Return whether the extracted checker has proved exactly this verdict.

    Subject, relation, group, notion, every number and a filter's budget must be the same.
    """
    if found.word != "proved":
        return False
    whole, _, kept = found.line.partition(" within ")
    _, subject, adjacency, _, group, notion, *values = whole.split()
    relation, kind, *numbers = kept.split() or (None, None)
    budget = None if relation is None else (relation, kind, tuple(map(Fraction, numbers)))
    return (subject, adjacency, int(group), notion, tuple(map(Fraction, values)), budget) == (
        verdict.subject,
        verdict.adjacency,
        verdict.group,
        verdict.notion,
        verdict.values,
        verdict.budget,
    )
