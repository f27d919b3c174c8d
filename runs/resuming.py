"""An interrupted run goes on from its recorded messages, and pays for its plan once.

A run writes every message down before anything else sees it, and its whole plan is paid for before
the first. Where it breaks off, the same call with the run's folder goes on: what was recorded is
given back as it was, and never drawn again. A message that was drawn and not recorded was seen by
nobody: its release, which is paid for, is drawn now. Noise from a seed is drawn once more and
dropped where a message is recorded, so that a seeded run ends as if nothing had happened.

The record lies beside the ledger until the run is over. It holds a digest of the records under a
random key of its own, which is for the holder of the data: other data, another configuration or
another schema are refused. Of several copies of the folder that go on, the ledger takes the first
message of each release, by its digest, and refuses every other before it leaves.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from ..data.strict import ConfigurationError
from ..federation.journal import MESSAGE, Journal, RecordedCurator
from ..federation.prepaid import PrepaidRun
from ..mechanisms.sampling import Sampler
from .configuration import Configuration

if TYPE_CHECKING:
    from ..accounting.ledger import Run
    from ..data import LabelledRecords

__all__ = ["RunRecord"]

RECORD = "messages.sqlite"
"""The file in a run's folder that its messages are recorded in."""

# A message passes five points: its event is the plan's next, its noise is drawn, it is recorded
# here, its digest enters the ledger, the solver sees it. Killed before it is recorded, nobody saw
# it, and it is drawn anew; killed after, it is read back, and its digest enters the ledger if it
# has not yet.

_KEY_BYTES = 32
"""Of the digest's random key, 256 bits: without it nobody can test guesses of the records against
the digest."""


@dataclass(frozen=True, slots=True, eq=False)
class RunRecord:
    """What a run that goes on must know; `close` it, or let it `end`.

    Args:
        folder: of the run.
        journal: where its messages are recorded.
        name: of the run in the ledger.
        configuration: the hash of its configuration, as it stands in the ledger.
        ledger: file that it is paid from.
        anchor: file elsewhere that remembers how far the ledger had come; None for none.
        resumed: whether the run broke off before.
    """

    folder: Path
    journal: Journal
    name: str
    configuration: str
    ledger: Path
    anchor: Path | None
    resumed: bool

    @classmethod
    def begin(
        cls,
        folder: Path,
        configuration: Configuration,
        records: LabelledRecords,
        *,
        name: str,
        ledger: Path,
        anchor: Path | None,
    ) -> Self:
        """Return the record of a new run, which a time makes other than all before.

        Args:
            folder: of the run, new.
            configuration: of the run.
            records: to train on; their digest is kept.
            name: of the run; the time is added.
            ledger: file that pays.
            anchor: of the ledger; None for none.
        """
        name = f"{name} {datetime.now(UTC).isoformat(timespec='microseconds')}"
        journal = Journal(folder / RECORD)
        key = os.urandom(_KEY_BYTES)
        facts = {
            "configuration": configuration.sha256.encode(),
            "key": key,
            "records": _digest(records, key),
            "ledger": str(ledger.absolute()).encode(),
            "anchor": b"" if anchor is None else str(anchor.absolute()).encode(),
            "name": name.encode(),  # the last: with it the record is complete
        }
        for kind, content in facts.items():
            journal.keep("", kind, 0, content)
        return cls(folder, journal, name, configuration.sha256, ledger, anchor, resumed=False)

    @classmethod
    def resume(
        cls,
        folder: Path,
        configuration: Configuration,
        records: LabelledRecords,
        *,
        ledger: Path | None,
        anchor: Path | None,
    ) -> Self:
        """Return the record of a run that broke off.

        Raises `ConfigurationError`, with nothing spent, where there is none, and for another
        configuration, other records, another ledger or another anchor than it began with;
        `JournalError` while the run goes on elsewhere.

        Args:
            folder: of the run that broke off.
            configuration: must be the one that it began with; that its seed is, too, is seen by
                the ledger, which alone knows it.
            records: must be those that it began with.
            ledger: must be the one that it began with; None to take that.
            anchor: must be the one that it began with, if it had one; None to take that.
        """
        if not (folder / RECORD).exists():
            raise ConfigurationError(
                f"{folder}: Expected a run that broke off, with {RECORD}; a run that is over has "
                "none. Leave out the folder to run anew."
            )
        journal = Journal(folder / RECORD)
        try:
            found = {
                kind: journal.get("", kind, 0)
                for kind in ("configuration", "key", "records", "ledger", "anchor", "name")
            }
            name, key, paid_from = found["name"], found["key"], found["ledger"]
            said = (found["configuration"] or b"").decode()
            # the name is written last, so that without it nothing was paid for yet
            if name is None or key is None or paid_from is None:
                raise ConfigurationError(
                    f"{folder}: Expected a run that had begun instead got one that broke off "
                    "before anything was spent; run anew."
                )
            kept, held_by = Path(paid_from.decode()), (found["anchor"] or b"").decode()
            anchored = Path(held_by) if held_by else None
            elsewhere = anchor is not None and anchored not in (None, anchor.absolute())
            for what, differs in (
                ("configuration and schema", said not in configuration.known_as),
                ("records", found["records"] != _digest(records, key)),
                ("ledger", ledger is not None and ledger.absolute() != kept),
                ("anchor", elsewhere),
            ):
                if differs:
                    raise ConfigurationError(
                        f"{folder}: Expected the {what} that the run began with instead got other; "
                        "nothing was spent or released."
                    )
            record = cls(
                folder, journal, name.decode(), said, kept, anchored or anchor, resumed=True
            )
            if record.messages and not kept.exists():
                raise ConfigurationError(
                    f"ledger={kept} must be there: the run's messages were paid from it. Nothing "
                    "was spent or released."
                )
        except BaseException:
            journal.close()
            raise
        return record

    @property
    def messages(self) -> int:
        """How many messages are recorded: as many as left by the ledger, or one more."""
        return self.journal.count(self.name, MESSAGE)

    def require_paid(self, run: Run) -> None:
        """Raise `ConfigurationError` if messages are recorded that the ledger knows nothing of.

        They left, so that they were paid for somewhere: paying again here would begin a ledger that
        has forgotten what else was spent.

        Args:
            run: of the ledger at hand, under the name that the run began with.
        """
        if self.messages and not any(run.ledger.reservations(run.run)):
            raise ConfigurationError(
                f"ledger={self.ledger} must hold what {self.name} has paid: it is another, or an "
                "older copy. Nothing was spent or released."
            )

    @property
    def title(self) -> str:
        """The run's name without its time."""
        return self.name.rpartition(" ")[0]

    def curator(self, paid: PrepaidRun, sampler: Sampler) -> RecordedCurator:
        """Return the curator of the run, which records, and gives back what is recorded.

        Args:
            paid: where the plan is paid for.
            sampler: of the run's noise; of a seeded run, fresh and of the same seed.
        """
        return RecordedCurator(paid, sampler, self.journal, self.name)

    def end(self) -> None:
        """Remove the record: the run is over, and nothing is left to go on from."""
        self.journal.close()
        (self.folder / RECORD).unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()


def _digest(records: LabelledRecords, key: bytes) -> bytes:
    """Return a keyed digest of records: who holds which rows and labels.

    Args:
        records: in their order, which decides who is in which party's sums.
        key: of this run alone, kept beside the digest in a file for the holder alone.
    """
    features = records.features
    parts = (
        (features,)
        if isinstance(features, np.ndarray)
        else (features.data, features.indices, features.indptr)
    )
    found = hashlib.blake2b(repr((features.shape, records.parties)).encode(), key=key)
    for array in (*parts, records.labels, records.party_of):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()
