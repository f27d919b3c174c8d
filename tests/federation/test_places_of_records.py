"""Law: where a party keeps its records (memory, a disk, a cluster) shows in no message."""

from pathlib import Path
from typing import Any

import pytest

from dpledger.federation import Coordinator, Journal, run_in_process
from dpledger.mechanisms import ClusterRows, EventList, LocalDataset, RowBlocks
from dpledger.solvers import ConsensusDpAdmm

from . import federations
from .federations import NAMES, SHAPE, one_process, party_in, plan_of, records

SOLVER = ConsensusDpAdmm(4, 2.0, 4.0, momentum=0.5)


@pytest.mark.filterwarnings("ignore:Port .* is already in use")
def test_parties_with_records_elsewhere_come_to_the_bits_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    client = distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    )

    def elsewhere(party: int) -> LocalDataset:
        rows, labels = records(party)
        kept: Any = {
            "east": RowBlocks(rows.shape, lambda some: rows[some], tmp_path),
            "south": ClusterRows(lazy.from_array(rows, chunks=(7, 4)), client),
        }.get(NAMES[party], rows)
        return LocalDataset(SHAPE, (NAMES[party],), kept, labels)

    monkeypatch.setattr(federations, "local_data", elsewhere)
    parties = [party_in(tmp_path, number) for number in range(len(NAMES))]
    with client, Journal(tmp_path / "coordinator.sqlite") as journal:
        plan = plan_of(SOLVER)
        found = run_in_process(parties, plan, Coordinator(plan, journal, patience=20.0))
    alone = one_process(SOLVER, EventList())
    assert {part.state.model.tobytes() for part in found} == {alone.model.tobytes()}
    for party in parties:
        assert tuple(party.ledger.events()) == plan.events
        party.ledger.close()
        party.journal.close()
