"""A federation by any engine: what its parties' files say, run to its end.

The files are read by `runs.federation_files`; here they are run as threads, as processes over
sockets, as ranks of MPI, or written as an app for Flower.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ..data.strict import ConfigurationError
from ..federation import (
    Coordinator,
    FederatedPlan,
    FederationEnded,
    FederationVerdict,
    Journal,
    SocketLink,
    run_in_process,
    serve,
    take_part,
    verify_federation,
    write_federation,
)
from ..federation.channel import read_token
from ..federation.coordinator import run_name
from ..federation.mpi import Ranks, begun, run_by_ranks, world
from ..federation.party import Link
from ..federation.sockets import address_of
from .federation_columns import ColumnsFederation
from .federation_files import Federation, Participant, Participation, read_federation
from .flower import write_app
from .pipeline import Plan
from .training import Progress, journal_folder

__all__ = ["Engine", "Federated", "federate", "participate"]


class Engine(Enum):
    """How the parties' parts are run: as threads of this process; as processes that connect to
    the coordinator; as ranks of one job; or as SuperNodes that Flower carries messages to.

    All give the same bits for the same seeds. What a crash costs differs: over sockets and Flower a
    party goes on where it broke off while the others wait; a job of ranks is started again as a
    whole and goes on with its run.
    """

    IN_PROCESS = "in-process"
    SOCKETS = "sockets"
    MPI = "mpi"
    FLOWER = "flower"


@dataclass(frozen=True, slots=True, eq=False)
class Federated:
    """A federation that ran to its end: its plan, its folder, and the checker's verdicts.

    Args:
        plan: with its proof.
        folder: the coordinator's.
        verdict: of the standard-library checker on every certificate that was handed in.
    """

    plan: Plan
    folder: Path
    verdict: FederationVerdict


def participate(path: Path, progress: Progress | None = None) -> Participation:
    """Take part as the party in a file, over sockets, to the end of the run.

    Args:
        path: of the party file.
        progress: called with rounds done and in all.

    Raises what `take_part` raises.
    """
    participant = Participant.read(path)
    holder, meeting = participant.file.party, participant.federation.file.federation
    if not holder.token:
        raise ConfigurationError(f"{path}: Expected party.token, the file of the token.")
    link = SocketLink(
        address_of(meeting.address),
        read_token(participant.here / holder.token),
        patience=meeting.patience,
    )
    try:
        return _part(participant, link, progress)
    finally:
        link.close()


def _part(participant: Participant, link: Link, progress: Progress | None = None) -> Participation:
    """Run one participant's part over a link, with its files open only while it runs."""
    plan, _ = participant.federation.plan()
    rounds = participant.federation.rounds

    def observe(k: int, state: object) -> None:
        if progress is not None:
            progress(k, rounds)

    with participant.opened() as party:
        return participant.written(take_part(party, plan, link, observe=observe))


def federate(
    path: Path,
    *,
    engine: Engine,
    out: Path,
    parties: tuple[Path, ...] = (),
    token: Path | None = None,
) -> Federated | None:
    """Run a federation to its end and return what came of it; None where nothing came of it here.

    That is at ranks that do not coordinate, and with flower, whose run is to come.

    Args:
        path: of the run file.
        engine: in-process and mpi run the given parties; sockets waits for them to connect; flower
            writes an app to `out`, which `flwr run` runs.
        out: the coordinator's folder: its journal, the certificates, the model. The same folder
            goes on with a run that broke off.
        parties: their files, in the order of the run.
        token: file of the token, for sockets.

    Raises `FederationEnded` with the sentence that all parties get, `FileExistsError` where the
    folder has the files of another run, and `JournalError` where it is of another plan.
    """
    federation = read_federation(path)
    plan, made = federation.plan()
    meeting = federation.file.federation
    if engine is Engine.FLOWER:
        write_app(out, path)
        return None
    if engine is Engine.MPI:
        return _by_ranks(federation, plan, made, parties, out)
    participants = _participants(federation, parties) if engine is Engine.IN_PROCESS else []
    with Journal(journal_folder(out, *_anchors(participants))) as journal:
        coordinator = Coordinator(plan, journal, patience=meeting.patience)
        if engine is Engine.SOCKETS:
            if token is None:
                raise ConfigurationError("Expected a token with the engine sockets.")
            with serve(coordinator, address_of(meeting.address), read_token(token)):
                coordinator.wait()
        else:
            _as_threads(federation, plan, participants, coordinator)
        if coordinator.ended is not None:
            raise FederationEnded(coordinator.ended)
        write_federation(out, plan, coordinator.run, coordinator.handed_in())
    return Federated(made, out, verify_federation(out))


def _participants(
    federation: Federation | ColumnsFederation, paths: tuple[Path, ...]
) -> list[Participant]:
    """Return the participants in files, which must be those of the run, in its order."""
    found = [Participant.read(path) for path in paths]
    names = tuple(each.file.party.name for each in found)
    if names != federation.file.federation.parties:
        raise ConfigurationError(
            f"parties={names} must be the files of {federation.file.federation.parties}, in order."
        )
    return found


def _anchors(participants: Iterable[Participant]) -> list[Path]:
    """Return the files that anchor their ledgers."""
    return [anchor for each in participants for anchor in each.anchors]


def _as_threads(
    federation: Federation | ColumnsFederation,
    plan: FederatedPlan,
    participants: list[Participant],
    coordinator: Coordinator,
) -> None:
    """Run all parties in this process; every party's files are written once all have finished."""
    sets = federation.record_sets()
    with ExitStack() as opened:
        parties = [opened.enter_context(each.opened(sets)) for each in participants]
        found = run_in_process(parties, plan, coordinator)
    there = [p for p in participants if p.file.party.name not in coordinator.dropped]
    for each, took in zip(there, found, strict=True):
        each.written(took)


def _by_ranks(
    federation: Federation | ColumnsFederation,
    plan: FederatedPlan,
    made: Plan,
    paths: tuple[Path, ...],
    out: Path,
) -> Federated | None:
    """Run this rank's parties; rank 0 writes the federation's folder.

    Returns None at all ranks but 0. Rank 0 keeps the run's name in the folder: a job that was
    killed goes on with its run when it is started again.
    """
    communicator = world()
    ranks = Ranks(plan.parties, communicator)
    participants = {each.file.party.name: each for each in _participants(federation, paths)}

    def named() -> str:
        with Journal(journal_folder(out, *_anchors(participants.values()))) as journal:
            return run_name(journal, plan.subject)

    run = begun(communicator, named)
    sets = federation.record_sets()
    opened = [participants[name].opened(sets) for name in ranks.served]
    found, handed_in = run_by_ranks(opened, plan, run, ranks)
    for name, took in zip(ranks.served, found, strict=True):
        participants[name].written(took)
    if communicator.Get_rank() != 0:
        return None
    write_federation(out, plan, run, handed_in)
    return Federated(made, out, verify_federation(out))
