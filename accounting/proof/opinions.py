"""Second opinions on a certificate: of Coq's kernel, and of the checker that is proved in Coq.

Both are asked after the checker of this package has accepted the document, and neither can turn a
refusal into an acceptance. "No answer" is one of their answers: what they do not cover is not
wrong.
"""

from dataclasses import dataclass
from pathlib import Path

from ...mechanisms.errors import InvalidParameter
from ..check.checker import Verdict
from .coq_goal import CoqMissing, CoqSilent, NoCoqGoal, compiled_proofs, coq_goal, prove
from .coq_theorem import BeyondTheorem, coq_theorem
from .extracted import ExtractedMissing, agrees, run_extracted

_PATIENCE = 1800
"""Seconds for a theorem: a loss distribution takes a minute or two of processor time."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody else says of a certificate; `against` if they refuse what was found proved.

    Args:
        text: in a line.
        against: a finding: two checkers do not agree.
    """

    text: str
    against: bool = False


def opinion_of_extracted(path: Path, verdict: Verdict) -> Opinion:
    """Return whether the extracted checker proves the same of a certificate's file.

    Args:
        path: of the certificate.
        verdict: of this package's checker, which it is compared with field by field.
    """
    try:
        (found,) = run_extracted([path])
    except ExtractedMissing as missing:
        return Opinion(f"no answer: {missing}")
    if agrees(found, verdict):
        return Opinion("proved by the checker that is proved in Coq")
    if found.word == "undecided":
        return Opinion(found.line)
    return Opinion(f"not the same verdict: {found.line}", against=True)


_HEADER = b"The run whose events hash to"
"""How every Coq file of a certificate begins."""


def opinion_of_coq(path: Path) -> Opinion:
    """Write a certificate's file as a Coq file beside it, run it, and return what came of it.

    For runs that the checker in Coq covers it ends in the theorem that the run is private, for
    others in the certificate's last inequality; where there is none, nothing is written.

    The `.v` file stays, so that whoever has Coq can check it elsewhere.

    Args:
        path: of the certificate, which this package's checker has accepted.

    Raises `InvalidParameter` where another file has the name that the Coq file would have.
    """
    goal, document, proofs = path.with_suffix(".v"), path.read_bytes(), compiled_proofs()
    try:
        text, what, runs = coq_theorem(document), "this run is private", proofs is not None
    except BeyondTheorem as beyond:
        try:
            text = coq_goal(document)
        except NoCoqGoal:
            return Opinion(f"no answer: {beyond}")
        what, runs, proofs = f"the last inequality ({beyond})", True, None
    if goal.exists() and _HEADER not in goal.read_bytes()[:80]:
        raise InvalidParameter("certificate", path, f"beside no other file called {goal.name}")
    goal.write_text(text, encoding="utf-8")
    written = f"{goal} written: {what}; not run:"
    if not runs:
        return Opinion(f"{written} needs the proofs of a checkout (make -C proofs)")
    try:
        verdict = prove(text, proofs=proofs, timeout=_PATIENCE)
    except (CoqMissing, CoqSilent) as missing:
        return Opinion(f"{written} {missing}")
    if verdict.proved:
        return Opinion(f"{goal}: proved by coqc: {what}")
    said = verdict.output.strip()[-300:]
    return Opinion(f"not proved by coqc ({goal}): {said}", against=True)
