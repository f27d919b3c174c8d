"""A federation's folder proves what its events say, whatever its manifest says of them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.accounting.check.test_forgeries import sealed

from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.proved import NotProved
from dpledger.federation.guarantee import Held, joint_events, verify_federation
from dpledger.federation.protocol import encoded_row
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DpledgerError,
    Event,
    GaussianStep,
    InvalidParameter,
    declared,
)
from dpledger.mechanisms.encoding import event_to_json
from dpledger.runs.outcomes.federation import verified_federation_outcome

Node = dict[str, Any]
Step = tuple[str, dict[str, Any], list[int]]


# --- federations' folders -----------------------------------------------------------------------

PARTIES = ("north", "south")
MODEL = np.arange(3.0)


def released(parties: tuple[str, ...], relation: Adjacency = Adjacency.REPLACE_ONE) -> Event:
    step = GaussianStep(declared(1, "example", adjacency=relation), noise_std=4.0)
    return Event(step, Context(parties, 1, "model", Audience.PUBLIC))


def certificate_with(events: list[Event], *steps: Step) -> bytes:
    """Of events of one mechanism."""
    forms = [event_to_json(each) for each in events]
    mechanism = forms[0]["mechanism"]
    for form in forms:
        del form["schema"]
        form.update(mechanism=0, times=1)
    return sealed([mechanism], forms, steps)


def federation_folder(
    folder: Path, held: str, own: list[Event], document: bytes, joint: bytes
) -> Path:
    for name in PARTIES:
        (folder / f"{name}.certificate.json").write_bytes(document)
    (folder / "certificate.json").write_bytes(joint)
    manifest = {
        "format": "urn:dpledger:federation:1",
        "run": "run",
        "subject": "subject",
        "held": held,
        "lists": [[event_to_json(each) for each in own]],
        "parties": dict.fromkeys(PARTIES, 0),
        "models": dict.fromkeys(PARTIES, hashlib.sha256(encoded_row(MODEL)).hexdigest()),
    }
    np.save(folder / "model.npy", MODEL)
    (folder / "federation.json").write_text(json.dumps(manifest))
    return folder


# once: what both parties send of every record is priced as what one sends
def test_sums_of_a_federation_say_that_they_are_sums(tmp_path: Path) -> None:
    own = [released(())]
    one = certify(own, delta=1e-5).to_json_bytes()
    with pytest.raises((DpledgerError, CertificateWrong)):
        verify_federation(federation_folder(tmp_path, "summed", own, one, one))


def test_shared_records_of_a_federation_pay_for_all_parties(tmp_path: Path) -> None:
    own = [released(())]
    one = certify(own, delta=1e-5).to_json_bytes()
    both = joint_events(Held.SHARED, dict.fromkeys(PARTIES, own))
    joint = certify(both, delta=1e-5).to_json_bytes()
    found = verify_federation(federation_folder(tmp_path, "shared", own, one, joint))
    assert found.joint.values[1] > found.parties["north"].values[1]
    with pytest.raises((DpledgerError, CertificateWrong)):
        verify_federation(federation_folder(tmp_path, "shared", own, one, one))
    with pytest.raises((DpledgerError, CertificateWrong)):
        verify_federation(federation_folder(tmp_path, "by-party", own, one, one))


# once: the order of Renyi DP is printed as delta; other notions end in a ValueError
@pytest.mark.parametrize("notion", ["gdp", "zcdp", "rdp"])
def test_a_federation_prints_the_notion_that_is_proved(tmp_path: Path, notion: str) -> None:
    noise: Step = (f"gaussian-{'gdp' if notion == 'gdp' else 'zcdp'}", {"mechanism": 0}, [])
    more: list[Step] = [("zcdp-rdp", {"order": "3/2"}, [0])] if notion == "rdp" else []
    steps = [noise, *more, ("events", {}, [len(more)])]
    own = [released(PARTIES)]
    joint = certificate_with(joint_events(Held.BY_PARTY, dict.fromkeys(PARTIES, own)), *steps)
    folder = federation_folder(tmp_path, "by-party", own, certificate_with(own, *steps), joint)
    outcome = verified_federation_outcome(folder)
    assert not any("1.5)-dp" in str(row) for row in outcome.rows)


# once: any model passes
def test_the_model_of_a_federation_is_the_one_that_was_hashed(tmp_path: Path) -> None:
    own = [released(PARTIES)]
    joint = certify(joint_events(Held.BY_PARTY, dict.fromkeys(PARTIES, own)), delta=1e-5)
    one = certify(own, delta=1e-5)
    documents = one.to_json_bytes(), joint.to_json_bytes()
    folder = federation_folder(tmp_path, "by-party", own, *documents)
    assert verify_federation(folder).same_model
    np.save(folder / "model.npy", np.ones(3))
    with pytest.raises(NotProved, match=r"model\.npy"):
        verify_federation(folder)
    np.save(folder / "model.npy", np.zeros(2, dtype=[("a", "<f8"), ("b", "<f8")]))
    with pytest.raises(NotProved, match=r"model\.npy.*kind"):
        verify_federation(folder)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }\n"
    head = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (folder / "model.npy").write_bytes(head + header + bytes(64))
    with pytest.raises(NotProved, match=r"model\.npy"):
        verify_federation(folder)
    (folder / "model.npy").unlink()
    with pytest.raises(NotProved, match=r"model\.npy"):
        verify_federation(folder)


# once: "the same at all parties" of one party's
@pytest.mark.parametrize(
    "change",
    [
        {"models": {"a": "0" * 64}},
        {"dropped": [PARTIES[0]]},
        {"dropped": ["elsewhere"]},
        {"dropped": ["../elsewhere"]},
    ],
)
def test_models_and_those_who_dropped_out_are_of_this_federation(
    change: dict[str, Any], tmp_path: Path
) -> None:
    own = [released(PARTIES)]
    joint = certify(joint_events(Held.BY_PARTY, dict.fromkeys(PARTIES, own)), delta=1e-5)
    one = certify(own, delta=1e-5)
    folder = federation_folder(
        tmp_path, "by-party", own, one.to_json_bytes(), joint.to_json_bytes()
    )
    manifest = json.loads((folder / "federation.json").read_text())
    (folder / "federation.json").write_text(json.dumps(manifest | change))
    with pytest.raises(InvalidParameter, match=r"models of other|a party twice|dropped out"):
        verify_federation(folder)
