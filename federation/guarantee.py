"""A federation's guarantee: every party's certificate about its own records, and the one of all.

Where records live with one party each, a record pays for its own party's releases only: the joint
event list names the party of each, and composition takes the maximum over parties. Where every
party holds a part of every record (vertical data), all releases add up, and stand in every party's
list.

A folder holds what a stranger needs to check it all:

    federation.json          parties, subject, event lists
    PARTY.certificate.json   a certificate a party
    certificate.json         the federation's
    model.npy                the public model, where all parties have the same

>>> from dpledger.mechanisms import Adjacency, Audience, Context, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.ZERO_OUT_ONE), noise_std=2.0)
>>> sent = Event(step, Context(("north", "south"), 1, "model", Audience.PUBLIC))
>>> joint = joint_events(Held.BY_PARTY, {"north": [sent, sent], "south": [sent]})
>>> [event.context.parties for event in joint]
[('north',), ('north',), ('south',)]
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..accounting.check.checker import Verdict
from ..accounting.ledger.anchor import Head
from ..accounting.proof.certificate import certify
from ..accounting.proof.proved import NotProved, certificate_bytes, delta_and_epsilon, proved
from ..mechanisms.encoding import event_from_json, event_to_json
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.events import Event
from ..mechanisms.share_data import SIMULATION, summed_name
from ..solvers.threat_model import SHARES, spared
from .plan import FederatedPlan
from .protocol import HandedIn, decoded_row, encoded_row

__all__ = ["FederationVerdict", "Held", "joint_events", "verify_federation", "write_federation"]

FORMAT = "urn:dpledger:federation:1"
"""Of federation.json; another format is refused, never guessed at."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
"""A party's name as part of a file name: no separators and no leading dot, so that it stays in
the folder."""
_MOST_BYTES = 1 << 28
"""Of federation.json, 256 MiB: bounds the memory that a hostile folder takes."""


class Held(Enum):
    """Where the records of one person are."""

    BY_PARTY = "by-party"
    """With one party, wholly."""
    SHARED = "shared"
    """A part of each with every party."""
    COLUMNS = "columns"
    """A part of each with every party, whose list has what all of them released."""
    SUMMED = "summed"
    """With one party, wholly; of messages, sums over all parties alone are seen."""


class _Manifest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """`federation.json`; `lists` are event lists, `parties` says which is whose."""

    format: str
    run: str
    subject: str
    held: Held
    lists: list[list[Any]]
    parties: dict[str, int]
    models: dict[str, str]
    """SHA-256 of each party's public model."""
    dropped: list[str] = []
    """Parties that dropped out of the sums: their ledgers have paid, and handed in nothing."""


@dataclass(frozen=True, slots=True)
class FederationVerdict:
    """What the independent checker says of all certificates, all of which it accepted.

    Args:
        run: of the federation.
        subject: of its plan.
        parties: the verdict on each party's certificate.
        joint: the verdict on the federation's.
        same_model: whether all parties ended with the same public model.
        simulation: whether anything was a sum that no protocol hid the parts of.
        dropped: who dropped out of the sums; their records cost what the joint verdict says.
    """

    run: str
    subject: str
    parties: dict[str, Verdict]
    joint: Verdict
    same_model: bool
    simulation: bool
    dropped: tuple[str, ...] = ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the joint certificate rests on and what parties' own take for granted, each once.

        But for the rows of their ledgers, which are each party's own.
        """
        everyone = (self.joint, *self.parties.values())
        found = {text for verdict in everyone for text in verdict.assumptions}
        return tuple(sorted(text for text in found if not Head.stated([text])))


def joint_events(held: Held, sent: Mapping[str, Sequence[Event]]) -> list[Event]:
    """Return what the federation released, as one list.

    Args:
        held: where records are, and what of them is seen.
        sent: each party's own event list, as in its ledger.

    Raises `InvalidParameter` for an event of records that live with one party that is not about the
    party whose list it is in; for sums that are not the same in all lists.
    """
    found: list[Event] = []
    if held in (Held.SUMMED, Held.COLUMNS):
        # one release, in every party's ledger; a record enters a sum by its own party
        one = list(next(iter(sent.values())))
        for party, each in sent.items():
            if list(each) != one:
                raise InvalidParameter("events", f"those of {party!r}", "those of all parties")
        # of columns any record may enter any release: nothing is taken for disjoint
        if held is Held.COLUMNS and any(event.context.parties for event in one):
            raise InvalidParameter(
                "event.context.parties", "names", "none: records are everybody's"
            )
        return one
    if held is Held.SHARED:
        # whoever sent it, any record may have entered: nothing is taken for disjoint
        for events in sent.values():
            found += (replace(e, context=replace(e.context, parties=())) for e in events)
        return found
    for party, events in sent.items():
        for event in events:
            if party not in event.context.parties:
                raise InvalidParameter("event", event.context, f"about {party!r}")
            # a change of this party's record moves its own row of the message alone
            found.append(replace(event, context=replace(event.context, parties=(party,))))
    return found


def require_file_names(parties: Sequence[str]) -> None:
    """Raise `InvalidParameter` for a party whose name cannot be part of a file's."""
    for name in parties:
        if not _NAME.fullmatch(name):
            raise InvalidParameter("party", name, "of letters, digits, spaces and . _ -")


def write_federation(
    folder: Path, plan: FederatedPlan, run: str, handed_in: Mapping[str, bytes]
) -> None:
    """Write what the parties handed in, and the federation's certificate, to a folder.

    Nothing of it is taken on trust: `verify_federation` derives it anew.

    Args:
        folder: made if it is missing.
        plan: of the run.
        run: its name.
        handed_in: by party, as `Coordinator.handed_in` returns it; of all parties, or all but as
            many as the plan lets drop out.

    Raises `InvalidParameter` where more are missing.
    """
    require_file_names(plan.parties)
    there = [name for name in plan.parties if name in handed_in]
    dropped = [name for name in plan.parties if name not in handed_in]
    if len(dropped) > plan.dropouts:
        raise InvalidParameter("handed_in", there, f"of all parties but {plan.dropouts}")
    parts = {name: msgspec.msgpack.decode(handed_in[name], type=HandedIn) for name in there}
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        (folder / f"{name}.certificate.json").write_bytes(part.certificate)
    held = Held.COLUMNS if plan.senders else Held.BY_PARTY
    held = held if plan.summed is None else Held.SUMMED
    events = joint_events(held, dict.fromkeys(plan.parties, plan.events))
    certificate = certify(events, delta=plan.delta).given(*plan.assumptions)
    (folder / "certificate.json").write_bytes(certificate.to_json_bytes())
    models = {name: hashlib.sha256(part.model).hexdigest() for name, part in parts.items()}
    if len(set(models.values())) == 1:
        np.save(folder / "model.npy", decoded_row(parts[there[0]].model)[0])
    manifest = _Manifest(
        format=FORMAT,
        run=run,
        subject=plan.subject,
        held=held,
        lists=[[event_to_json(event) for event in plan.events]],
        parties=dict.fromkeys(there, 0),
        models=models,
        dropped=dropped,
    )
    (folder / "federation.json").write_bytes(msgspec.json.encode(manifest))


def verify_federation(folder: Path) -> FederationVerdict:
    """Return the checker's verdicts on a federation's certificates.

    Raises:
        NotProved: a certificate is right, and about other events than the folder says, or about
            another adjacency or delta than the federation's.
        CertificateWrong, Undecided: the checker's.
        InvalidParameter: the folder is none of a federation.

    Args:
        folder: as `write_federation` writes it; nothing in it is trusted.

    A party's certificate must speak of the same notion, relation, group and delta as the joint
    one: each may be right alone and still say less than the federation promises.
    """
    manifest = _read(folder / "federation.json")
    require_file_names([*manifest.parties, *manifest.dropped])
    lists = [[event_from_json(each) for each in events] for events in manifest.lists]
    sent = {name: lists[number] for name, number in manifest.parties.items()}
    events = joint_events(manifest.held, sent)
    if manifest.held is Held.SUMMED:
        _require_sums(events, len(manifest.parties), len(manifest.dropped))
    joint = proved(_document(folder / "certificate.json"), events=events)
    if delta_and_epsilon(joint) is None:
        raise NotProved("notion", joint.notion, "an epsilon at a delta")
    parties: dict[str, Verdict] = {}
    for name, own in sent.items():
        document = _document(folder / f"{name}.certificate.json")
        parties[name] = verdict = proved(document, events=own)
        for what, found, expected in (
            ("notion", verdict.notion, joint.notion),
            ("adjacency", verdict.adjacency, joint.adjacency),
            ("group", verdict.group, joint.group),
            ("delta", verdict.values[0], joint.values[0]),
        ):
            if found != expected:
                raise NotProved(f"{what} of {name!r}", found, expected)
    same = len(set(manifest.models.values())) == 1
    if same:
        _require_model(folder / "model.npy", next(iter(manifest.models.values())))
    simulation = any(SIMULATION in name for event in events for name in event.context.parties)
    return FederationVerdict(
        manifest.run,
        manifest.subject,
        parties,
        joint,
        same,
        simulation,
        tuple(manifest.dropped),
    )


def _document(path: Path) -> bytes:
    """Return a certificate's bytes; raise `InvalidParameter` for a folder without it."""
    try:
        return certificate_bytes(path)
    except OSError as error:
        raise InvalidParameter("folder", str(path.parent), f"with {path.name}") from error


def _require_sums(events: Sequence[Event], parties: int, dropped: int) -> None:
    """Raise `InvalidParameter` unless every event is one sum over so many parties, and says so.

    Without this a folder could have what each party sent of all records priced as what one did.

    Args:
        events: of the run.
        parties: those that were there at its end.
        dropped: those that were not; as many must be among what the events assume.
    """
    for event in events:
        reasons = getattr(event.mechanism, "sensitivity", None)
        said = () if reasons is None else reasons.assumptions
        one = event.context.parties == (summed_name(parties + dropped),)
        if not one or not any(SHARES in each and dropped <= spared(each) for each in said):
            words = f"of a sum over {parties + dropped} parties, {dropped} of which may drop out"
            raise InvalidParameter("event", event.context, words)


def _require_model(path: Path, stated: str) -> None:
    """Raise `NotProved` unless the folder's model is the one whose hash all parties handed in."""
    try:
        with path.open("rb") as file:
            model = np.load(file, allow_pickle=False)
            if model.dtype.kind != "f":
                raise ValueError(f"numbers of kind {model.dtype}")
            found = hashlib.sha256(encoded_row(model)).hexdigest()
    except Exception as error:  # a forged header makes NumPy raise almost anything
        found = f"none ({type(error).__name__}: {error!s:.100})"
    if found != stated:
        raise NotProved("model.npy", found, stated)


def _read(path: Path) -> _Manifest:
    """Return the manifest of a folder; every way to be none is one `InvalidParameter`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        manifest = msgspec.json.decode(path.read_bytes(), type=_Manifest)
        if manifest.format != FORMAT:
            raise ValueError(f"format {manifest.format!r:.100}")
        if not manifest.parties:
            raise ValueError("no parties")
        if manifest.models.keys() != manifest.parties.keys():
            raise ValueError("models of other parties than are there")
        gone = manifest.dropped
        if len({*gone, *manifest.parties}) < len(gone) + len(manifest.parties):
            raise ValueError("a party twice, or there and dropped out")
        if gone and manifest.held is not Held.SUMMED:
            raise ValueError("parties that dropped out of a run without sums")
        for name, number in manifest.parties.items():
            if not 0 <= number < len(manifest.lists):
                raise ValueError(f"no event list of {name!r}")
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidParameter("folder", str(path.parent), f"of a federation ({error})") from error
    return manifest
