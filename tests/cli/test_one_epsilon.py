"""Law: every printed epsilon has a grade, and what is *proved* is the checker's own number."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.accounting.check.checker import Verdict
from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.proof import proved as proving
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.accounting.proof.proved import NotProved
from dpledger.mechanisms import Adjacency, Event, Repeated, declared
from dpledger.runs.estimators import PrivateAdmmClassifier

from .conftest import Call

STATED = ("--delta", "1e-5", "--adjacency", "replace-one")
STEPS = ("--sampling", "none", "--steps", "9")
CLAIM = """adjacency = "replace-one"
[promise]
epsilon = 5.0
delta = 1e-5
[[releases]]
mechanism = "gaussian"
sensitivity = 1.0
noise_std = 10.0
rounds = 20
"""
COMMANDS: dict[str, Callable[[Path], tuple[object, ...]]] = {
    "plan": lambda folder: ("plan", folder / "run.toml"),
    "curve": lambda folder: ("curve", folder / "run.toml", "--points", "3"),
    "run": lambda folder: (
        *("run", folder / "run.toml", "--out", folder / "out"),
        *("--no-attack", "--no-crosscheck", "--no-baselines"),
    ),
    "calibrate noise": lambda _: ("calibrate", "--epsilon", "1", "--rounds", "9", *STATED),
    "calibrate rounds": lambda _: (
        *("calibrate", "--epsilon", "1", "--noise-multiplier", "30", *STATED),
    ),
    "epsilon": lambda _: ("epsilon", "--noise-multiplier", "4", *STEPS, *STATED),
    "noise": lambda _: ("noise", "--epsilon", "0.5", *STEPS, *STATED),
    "claims check": lambda folder: ("claims", "check", folder / "claim.toml"),
}


@pytest.fixture
def asked(folder: Path) -> Path:
    (folder / "claim.toml").write_text(CLAIM)
    return folder


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """The epsilons of certificates that the checker accepts while the test runs."""
    found: list[Fraction] = []

    def noted(document: bytes) -> Verdict:
        verdict = check(document)
        found.append(verdict.values[-1])
        return verdict

    monkeypatch.setattr(proving, "check", noted)
    return found


def test_the_readme_names_these_commands() -> None:
    text = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    meaning = text.split("**What a printed ε means.**")[1].split("print what is proved")[0]
    listed = meaning.rsplit("no guarantee.", 1)[1]
    named = {name.removeprefix("dpledger ") for name in re.findall(r"`([^`]+)`", listed)}
    assert named == {name.removesuffix(" noise").removesuffix(" rounds") for name in COMMANDS}


def guarantees(data: Any) -> Iterator[dict[str, Any]]:
    """Everything in an answer that states an epsilon as an enclosure."""
    if isinstance(data, dict):
        if isinstance(data.get("epsilon"), dict):
            yield data
        for each in data.values():
            yield from guarantees(each)
    elif isinstance(data, list):
        for each in data:
            yield from guarantees(each)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "claims check"])
def test_every_printed_epsilon_has_a_grade_and_proved_is_the_checkers(
    name: str, call: Call, asked: Path, accepted: list[Fraction]
) -> None:
    answer = call(*COMMANDS[name](asked), "--json")
    assert answer.status == 0, answer.err
    stated = list(guarantees(answer.data))
    assert stated
    for each in stated:
        assert each["grade"] == Grade.PROVED.value, each
        assert Fraction(each["epsilon"]["upper"]) in accepted
        assert each["not_proved"] is None


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "run"])
def test_the_grade_stands_in_the_text(name: str, call: Call, asked: Path) -> None:
    answer = call(*COMMANDS[name](asked))
    assert answer.status == 0, answer.err
    assert "epsilon" in answer.out
    assert "proved" in answer.out
    assert "not proved" not in answer.out


def test_the_epsilon_of_a_claim_is_the_checkers(
    call: Call, asked: Path, accepted: list[Fraction]
) -> None:
    answer = call(*COMMANDS["claims check"](asked), "--json")
    (evidence,) = answer.data["evidence"]
    assert [Fraction(evidence["proved_epsilon"])] == accepted


def test_what_cannot_be_proved_says_why(
    call: Call, asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpledger.accounting.check.statements.MAX_WORK", 10)
    monkeypatch.setattr("dpledger.accounting.check.statements.WORK_A_BYTE", 0)
    found = call(*COMMANDS["epsilon"](asked), "--json").data["guarantee"]
    assert found["grade"] == Grade.ENCLOSED.value
    assert "gave up after 10 units of work" in found["not_proved"]
    assert "gave up after 10 units" in call(*COMMANDS["epsilon"](asked)).out


GRADED: dict[str, tuple[str, Callable[[Path], tuple[object, ...]]]] = {
    "attack": ("claimed epsilon", lambda f: ("attack", f / "run.toml", "--trials", "10")),
    "attack --scores": (
        "claimed epsilon",
        lambda f: (
            *("attack", "--scores", f / "in.npy", f / "out.npy"),
            *("--epsilon", "1", "--delta", "1e-5"),
        ),
    ),
    "membership": (
        "The promise to one record:",
        lambda f: ("membership", f / "run.toml", "--trials", "2", "--shadows", "2"),
    ),
    "audit one-run": (
        "claimed epsilon",
        lambda _: ("audit", "one-run", "--canaries", "100", "--mu", "1", "--delta", "1e-5"),
    ),
    "crosscheck": ("ours", lambda f: ("crosscheck", f / "run.toml")),
    "ledger show": ("spent", lambda f: ("ledger", "show", f / "out" / "ledger.sqlite")),
    "watch": ("epsilon [0-9[]", lambda f: ("watch", f / "out" / "ledger.sqlite")),
}


@pytest.mark.parametrize("name", GRADED)
def test_a_grade_stands_in_the_line_of_an_epsilon(name: str, call: Call, asked: Path) -> None:
    for score in ("in", "out"):
        np.save(asked / f"{score}.npy", np.linspace(0, 1, 20)[::-1] % 0.3)
    if "out" in str(GRADED[name][1](Path("."))):
        call(*COMMANDS["run"](asked))
    start, arguments = GRADED[name]
    answer = call(*arguments(asked))
    assert answer.status == 0, answer.err
    (line,) = (line for line in answer.out.splitlines() if re.search(start, line))
    words = {grade.value for grade in Grade} | {"stated"}
    assert words & set(re.findall(r"[a-z]+", line)), line


def test_a_run_that_cannot_be_proved_says_why_in_its_text_and_its_report(
    call: Call, asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpledger.accounting.check.statements.MAX_WORK", 10)
    monkeypatch.setattr("dpledger.accounting.check.statements.WORK_A_BYTE", 0)
    for name in ("run", "plan", "epsilon"):
        assert re.search("enclosed, not proved: .*gave up after 10 units", _text(call, name, asked))
    for kind in ("html", "md"):
        text = (asked / "out" / f"report.{kind}").read_text(encoding="utf-8")
        assert re.search("enclosed: .*; not proved: .*gave up after 10 units", text)


def _text(call: Call, name: str, folder: Path) -> str:
    answer = call(*COMMANDS[name](folder))
    assert answer.status == 0, answer.err
    return answer.out


FORGED: dict[str, dict[str, Any]] = {
    "one event more": {"events": lambda events: [*events, events[0]]},
    "one event less": {"events": lambda events: _fewer(events)},
    "relation": {"events": lambda events: _related(events)},
    "delta": {"delta": 0.5},
    "group": {"group": 2},
}


def _fewer(events: tuple[Event, ...]) -> list[Event]:
    """The events but one, whether they stand in a list or are counted."""
    first, *others = events
    if isinstance(first.mechanism, Repeated):
        less = replace(first.mechanism, times=first.mechanism.times - 1)
        return [replace(first, mechanism=less), *others]
    return others


def _related(events: tuple[Event, ...]) -> list[Event]:
    """The events as they would be, were records zeroed out and not replaced."""

    def related(mechanism: Any) -> Any:
        if isinstance(mechanism, Repeated):
            return replace(mechanism, event=related(mechanism.event))
        size = declared(mechanism.sensitivity.root, "a forgery", adjacency=Adjacency.ZERO_OUT_ONE)
        return replace(mechanism, sensitivity=size)

    return [replace(event, mechanism=related(event.mechanism)) for event in events]


@pytest.fixture(params=FORGED)
def forger(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prover writes right certificates, of something else."""

    def other(events: tuple[Event, ...], *, delta: float, group: int, tight: bool) -> Certificate:
        asked: dict[str, Any] = {"delta": delta, "group": group, "tight": tight}
        asked |= FORGED[request.param]
        changed = asked.pop("events", lambda events: events)
        return certify(changed(events), **asked)

    monkeypatch.setattr(proving, "certify", other)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("forger")
def test_a_certificate_of_something_else_is_refused(name: str, call: Call, asked: Path) -> None:
    answer = call(*COMMANDS[name](asked), "--json")
    assert answer.status == 2
    assert "The certificate proves" in answer.err
    assert not (asked / "out").exists()


@pytest.mark.usefixtures("forger")
def test_a_fit_refuses_a_certificate_of_something_else() -> None:
    model = PrivateAdmmClassifier(
        epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, rounds=3, classes=(0, 1)
    )
    features = np.linspace(-0.5, 0.5, 40).reshape(20, 2)
    with pytest.raises(NotProved):
        model.fit(features, np.arange(20) % 2)
    assert not hasattr(model, "ledger_")
