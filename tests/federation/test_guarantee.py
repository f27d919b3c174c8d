"""A federation's guarantee: the maximum over parties of disjoint records, the sum of shared."""

import json
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.proved import NotProved
from dpledger.federation import joint_events, verify_federation, write_federation
from dpledger.federation.guarantee import Held
from dpledger.federation.protocol import HandedIn, encoded_row
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    declared,
)
from dpledger.mechanisms.encoding import event_to_json

from .federations import NAMES, plan_of

DELTA = 1e-5


def events(noise_std: float, times: int, parties: tuple[str, ...]) -> list[Event]:
    step = GaussianStep(declared(1, "example", adjacency=Adjacency.REPLACE_ONE), noise_std)
    return [Event(step, Context(parties, k, "x", Audience.SERVER)) for k in range(1, times + 1)]


def test_disjoint_records_cost_the_largest_of_the_parties(tmp_path: Path) -> None:
    sent = {"a": events(4.0, 3, ("a", "b")), "b": events(2.0, 2, ("a", "b"))}
    joint = guarantee(joint_events(Held.BY_PARTY, sent), delta=DELTA)
    # mu² of b is 2/4, of a 3/16
    assert joint.epsilon.upper_float == guarantee(sent["b"], delta=DELTA).epsilon.upper_float
    assert joint.epsilon.upper_float > guarantee(sent["a"], delta=DELTA).epsilon.upper_float


def test_shared_records_cost_the_sum_of_the_parties() -> None:
    alone = guarantee(events(2.0, 4, ()), delta=DELTA)
    # also where every list names its own party: that says who sent, not whose records
    for names in ((), ()), (("a",), ("b",)), (("a", "b"), ("a", "b")):
        sent = {party: events(2.0, 2, each) for party, each in zip("ab", names, strict=True)}
        joint = guarantee(joint_events(Held.SHARED, sent), delta=DELTA)
        assert joint.epsilon.upper_float == alone.epsilon.upper_float


def test_a_list_about_others_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="about 'a'"):
        joint_events(Held.BY_PARTY, {"a": events(2.0, 1, ("b",))})
    with pytest.raises(InvalidParameter, match="about 'a'"):
        joint_events(Held.BY_PARTY, {"a": events(2.0, 1, ())})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan = plan_of()
    document = certify(plan.events, delta=plan.delta).to_json_bytes()
    part = msgspec.msgpack.encode(HandedIn(document, encoded_row([1.0, 2.0])))  # type: ignore[arg-type]
    write_federation(tmp_path, plan, "run", dict.fromkeys(NAMES, part))
    return tmp_path


def test_what_was_written_verifies(folder: Path) -> None:
    found = verify_federation(folder)
    assert found.joint.values[0] == Fraction(1e-5)
    assert {verdict.values for verdict in found.parties.values()} == {found.joint.values}


def test_a_federation_that_claims_to_share_no_records_is_held_to_it(folder: Path) -> None:
    # of vertical data the same lists add up: the certificate of the maximum is refused
    path = folder / "federation.json"
    manifest = json.loads(path.read_bytes())
    path.write_text(json.dumps({**manifest, "held": "shared"}))
    with pytest.raises(NotProved, match="subject"):
        verify_federation(folder)


@pytest.mark.parametrize("fault", ["an event less", "a party less", "another delta"])
def test_a_changed_folder_is_refused(fault: str, folder: Path) -> None:
    path = folder / "federation.json"
    manifest = json.loads(path.read_bytes())
    plan = plan_of()
    if fault == "an event less":
        manifest["lists"] = [manifest["lists"][0][:-1]]
    elif fault == "a party less":
        del manifest["parties"]["west"], manifest["models"]["west"]
    else:
        other = certify(plan.events, delta=1e-3).to_json_bytes()
        (folder / "west.certificate.json").write_bytes(other)
    path.write_text(json.dumps(manifest))
    with pytest.raises(NotProved):
        verify_federation(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "urn:dpledger:federation:2"},
        {"parties": {}},
        {"parties": {"north": 7}},
        {"parties": {"../north": 0}},
        {"more": 1},
    ],
)
def test_a_folder_of_something_else_is_named(change: dict[str, object], folder: Path) -> None:
    path = folder / "federation.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
    with pytest.raises(InvalidParameter, match=r"folder=|party="):
        verify_federation(folder)


def test_events_are_written_once_for_all_parties(folder: Path) -> None:
    manifest = json.loads((folder / "federation.json").read_bytes())
    assert manifest["lists"] == [[event_to_json(event) for event in plan_of().events]]
    assert set(manifest["parties"].values()) == {0}
