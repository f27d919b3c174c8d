"""Federations as outcomes: what a party did, what all came to, and what certificates prove.

In come a `Participation`, a `Federated`, or a folder of one; the command line's `federation` prints
what goes out. Every epsilon and delta is rounded up.
"""

from __future__ import annotations

from pathlib import Path

from ...accounting.check.reading import CertificateWrong, Undecided
from ...accounting.numbers.enclosure import shown_up
from ...accounting.proof.proved import NotProved
from ...audits.outcome import Outcome, Row, TextColumns
from ...federation import FederationVerdict, verify_federation
from ...mechanisms.sensitivity import float_up
from ..federation import Federated
from ..federation_files import Participation


def participation_outcome(found: Participation) -> Outcome:
    """Return what a party's part came to.

    Args:
        found: of a party that took part to the end; it names the folder, and shows no balance.
    """
    return Outcome(
        title=f"Party {found.party}",
        data={"party": found.party, "run": found.run, "folder": str(found.folder)},
        rows=(
            ("took part in", found.run),
            ("files", f"{found.folder}/certificate.json, model.npy; ledger.sqlite, journal.sqlite"),
        ),
    )


def federated_outcome(found: Federated) -> Outcome:
    """Return what a federation came to, as its certificates prove it."""
    outcome = _verdict_outcome(found.verdict, f"Federation of {len(found.verdict.parties)} parties")
    files = ("files", f"{found.folder}/federation.json, certificate.json, one a party, model.npy")
    return Outcome(outcome.title, outcome.data, (*outcome.rows, files), outcome.tables)


def verified_federation_outcome(folder: Path) -> Outcome:
    """Return the checker's verdicts on a federation's folder; a finding where it refuses one.

    Args:
        folder: as `write_federation` writes it.

    What a checker refuses or leaves undecided is a finding; a folder of no federation raises
    `InvalidParameter`.
    """
    title = f"Federation {folder.name}"
    try:
        return _verdict_outcome(verify_federation(folder), title)
    except (CertificateWrong, NotProved, Undecided) as error:
        answer = "undecided" if isinstance(error, Undecided) else "refused"
        data = {"verdict": answer, "reason": str(error)}
        return Outcome(title, data, rows=((answer.upper(), str(error)),), finding=True)


def _verdict_outcome(found: FederationVerdict, title: str) -> Outcome:
    """Return what a verdict proves: the guarantee of all, then each party's own, then what is
    assumed.

    A federation of sums is a simulation: nothing hides the parts here, and the row that says so
    comes first.
    """

    def shown(values: tuple[object, ...]) -> str:
        delta, epsilon = (float_up(value) for value in values)  # type: ignore[arg-type]
        return f"({shown_up(epsilon, digits=6)}, {shown_up(delta, digits=6)})-dp"

    simulated = "sums over all parties, whose parts nothing hid: no guarantee against who adds"
    rows: tuple[Row, ...] = (
        *((("SIMULATION", simulated),) if found.simulation else ()),
        ("proved", f"{shown(found.joint.values)} per record, {found.joint.adjacency}"),
        ("run, by its file", found.run),
        ("plan, by its file", found.subject),
        ("models", "the same at all parties" if found.same_model else "each party's own"),
        *(("assumption", text) for text in found.assumptions),
    )
    if found.dropped:
        # after what is proved: their records are in it, and no certificate of theirs is here
        gone = (
            "dropped out",
            f"{', '.join(found.dropped)}: the others went on without their records",
        )
        rows = (*rows[:2], gone, *rows[2:])
    own = [(name, shown(verdict.values)) for name, verdict in found.parties.items()]
    return Outcome(
        title,
        data={
            "verdict": "proved",
            "simulation": found.simulation,
            "run": found.run,
            "subject": found.subject,
            "values": [str(value) for value in found.joint.values],
            "adjacency": found.joint.adjacency,
            "parties": {
                name: [str(value) for value in verdict.values]
                for name, verdict in found.parties.items()
            },
            "dropped": found.dropped,
            "assumptions": found.assumptions,
        },
        rows=rows,
        tables=(TextColumns(("party", "its records"), own),),
    )
