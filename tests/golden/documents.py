"""Documents that a version wrote: certificates, ledgers, exports of ledgers, reports.

`write` made those in `data/documents/`. They are never written again: whoever holds a file that
some version wrote, must be able to verify it for ever. A later format adds files beside these.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dpledger.accounting.check.pld_checker import (
    check,
)
from dpledger.accounting.ledger import Ledger, MemoryLedger, SqliteLedger, exported, imported
from dpledger.accounting.ledger.budget import (
    Budget,
)
from dpledger.accounting.numbers.notions import (
    ApproxDp,
    Rdp,
)
from dpledger.accounting.proof.certificate import (
    Certificate,
    certify,
)
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Norm,
    Parties,
    PoissonSampled,
    Provenance,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.encoding import subject_hash
from dpledger.mechanisms.sensitivity import rounded_to_lattice, scaled, sum_of_bounded

__all__ = ["FOLDER", "certificate", "found", "ledger", "read_export", "write"]

FOLDER = Path(__file__).parent / "data" / "documents"

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE


def _event(mechanism: Any, round: int = 1, parties: tuple[str, ...] = ()) -> Event:
    return Event(mechanism, Context(parties, round, "model", Audience.SERVER))


def _step(noise_std: float, value: float = 1.0, adjacency: Adjacency = REPLACE) -> GaussianStep:
    return GaussianStep(declared(value, "pinned", adjacency=adjacency), noise_std)


def _laplace(scale: float, adjacency: Adjacency = REPLACE) -> LaplaceStep:
    return LaplaceStep(declared(1.0, "pinned", adjacency=adjacency, norm=Norm.L1), scale)


def _answer() -> RandomisedResponse:
    return RandomisedResponse(0.75, 4)


def _mixture() -> GaussianMixtureStep:
    one = sum_of_bounded(1, REPLACE)
    return GaussianMixtureStep(scaled(one, 0.25), one, 0.01, 4.0)


def _on_lattice(step: Any) -> Any:
    return replace(step, sensitivity=rounded_to_lattice(step.sensitivity, Fraction(1, 1 << 40), 3))


def _discrete() -> list[Event]:
    whole = declared(1, "pinned", adjacency=REPLACE)
    pure = declared(1, "pinned", adjacency=REPLACE, norm=Norm.L1)
    return [
        _event(DiscreteGaussianStep(whole, 6.0)),
        _event(DiscreteLaplaceStep(pure, 9.0), 2),
        _event(_laplace(8.0), 3),
    ]


SAMPLED = Repeated(PoissonSampled(_step(1.0, adjacency=ADD), 0.01), 100)
BATCH = Repeated(SampledWithoutReplacement(_step(4.0), 10, 1000), 40)


def _certificates(plan: Callable[[str], Sequence[Event]]) -> dict[str, Certificate]:
    parts = Parties((("a", (_step(4.0),)), ("b", (_step(3.0), _step(5.0, 0.5)))))
    gaussian = [_event(_step(20.0), k) for k in range(1, 11)]
    return {
        "gaussian": certify(gaussian, delta=1e-5),
        "small-delta": certify(gaussian, delta=1e-100),
        "group": certify(gaussian, delta=1e-6, group=3),
        "repeated": certify([_event(Repeated(_step(50.0), 1000))], delta=1e-9),
        "parties": certify([_event(_step(2.0), 1, ("a",)), _event(parts, 2)], delta=1e-5),
        "discrete": certify(_discrete(), delta=1e-6),
        "sampled": certify([_event(SAMPLED), _event(_step(5.0, adjacency=ADD), 2)], delta=1e-5),
        "sampled-losses": certify([_event(SAMPLED)], delta=1e-5),
        "batch": certify([_event(BATCH)], delta=1e-6),
        "given": certify(gaussian, delta=1e-5).given("the seeds of its noise are secret"),
        "star": certify(plan("star, own noise"), delta=1e-5),
        "network": certify(plan("network, iteration decay, hub"), delta=1e-5),
        "stochastic": certify(plan("stochastic, Poisson, add-remove-one"), delta=1e-5),
        "columns": certify(plan("columns, private labels, zero-out-one"), delta=1e-5),
        "privacy-loss": certify([_event(SAMPLED), _event(_laplace(9.0, ADD), 2)], delta=1e-5),
        "privacy-loss-batch": certify([_event(BATCH), _event(_answer(), 2)], delta=1e-6),
        "privacy-loss-group": certify([_event(SAMPLED)], delta=1e-5, group=2),
        "privacy-loss-mixture": certify([_event(_mixture(), k) for k in (1, 2)], delta=1e-5),
        "lattice": certify([_event(_on_lattice(_step(20.0)), k) for k in (1, 2)], delta=1e-5),
        "lattice-l1": certify([_event(_on_lattice(_laplace(8.0)))], delta=1e-5, tight=False),
        "computed": certify(plan("star, own noise"), delta=1e-5),
        "computed-sample": certify(plan("stochastic, Poisson, add-remove-one"), delta=1e-5),
    }


def _fill(ledger: Ledger) -> None:
    """Record two runs under a budget: one to its end, one broken off and without a plan."""
    ledger.set_budget(Budget(ApproxDp(2.0, 1e-5), adjacency=REPLACE))
    plan = [_event(_step(20.0), k, ("a",)) for k in range(1, 4)]
    run = ledger.run("first", configuration_hash="0" * 64, plan=plan)
    for event in plan:
        run.commit(run.reserve((event,), Provenance("system", None)))
    other = ledger.run("second", configuration_hash="1" * 64)
    other.reserve((_event(_step(90.0)), _event(_step(40.0), 2)), Provenance("philox", 7))


def _rdp(ledger: Ledger) -> None:
    """Record every noise under a budget of one Rényi order."""
    ledger.set_budget(Budget(Rdp(8, 2.0), adjacency=REPLACE))
    run = ledger.run("discrete", configuration_hash="4" * 64, plan=_discrete())
    run.commit(run.reserve(tuple(_discrete()), Provenance("system", None)))


def _leak(ledger: Ledger) -> None:
    run = ledger.run("leaky", configuration_hash="2" * 64)
    run.commit(run.reserve((_event(UnprotectedRelease("means as they are")),), Provenance("x", 1)))


def _sampled(ledger: Ledger) -> None:
    run = ledger.run("sampled", configuration_hash="3" * 64)
    run.commit(run.reserve((_event(SAMPLED),), Provenance("pcg64", 3)))


def _messages(ledger: Ledger) -> None:
    """Record a plan paid at once, of which the first messages left, and one release by itself."""
    plan = [_event(_step(20.0), k, ("a",)) for k in range(1, 4)]
    run = ledger.run("prepaid", configuration_hash="5" * 64, plan=plan)
    token = run.reserve(plan, Provenance("system", None))
    for k in range(2):
        run.commit(token, np.array([[0.5 * k, -1.0]]), event=k)
    single = ledger.run("single", configuration_hash="6" * 64)
    single.commit(single.reserve(plan[:1], Provenance("system", None)), np.zeros((1, 2)))


LEDGERS: dict[str, Callable[[Ledger], None]] = {
    "two-runs": _fill,
    "rdp-budget": _rdp,
    "leak": _leak,
    "sampled": _sampled,
    "messages": _messages,
}


def write(plan: Callable[[str], Sequence[Event]]) -> None:
    """Write what `certify` makes now, each only where there is no document of its name."""
    for name, made in _certificates(plan).items():
        path = FOLDER / f"{name}.certificate.json"
        if not path.exists():
            path.write_bytes(made.to_json_bytes())
    for name, fill in LEDGERS.items():
        path = FOLDER / f"{name}.ledger.sqlite"
        if path.exists():
            continue
        with SqliteLedger(path) as opened:
            fill(opened)
            lines = [*exported(opened)]
        (FOLDER / f"{name}.ledger.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def certificate(path: Path) -> dict[str, Any]:
    """Return what the independent checker says that a certificate proves."""
    proved = check(path.read_bytes())
    return {
        "notion": proved.notion,
        "values": [str(value) for value in proved.values],
        "adjacency": proved.adjacency,
        "group": proved.group,
        "subject": proved.subject,
        "steps": proved.steps,
        "assumptions": list(proved.assumptions),
        "axioms": list(proved.axioms),
    }


def read_export(path: Path) -> MemoryLedger:
    """Return the ledger of a file of exported lines."""
    read = MemoryLedger()
    imported(path.read_text(encoding="utf-8").splitlines(), read)
    return read


def ledger(opened: Ledger) -> dict[str, Any]:
    """Return what a ledger says of itself, after its chain is verified."""
    found, spent = opened.verify(), opened.spent()
    cost = spent.epsilon(1e-5)
    return {
        "rows": found.rows,
        "documents": found.documents,
        "reservations": found.reservations,
        "open": list(found.open),
        "head": found.head,
        "epsilon": f"{cost.upper_float:.10g}",
        "grade": spent.grade.value,
        "unprotected": list(spent.unprotected),
        "subject": subject_hash(opened.joint_events()),
        "runs": [[r.run, r.configuration_hash, r.events, r.kept_to_plan] for r in opened.runs()],
        "budget": None if opened.budget is None else str(opened.budget.adjacency.value),
    }


def ledger_file(path: Path) -> dict[str, Any]:
    """Return what a ledger's file says; of a copy, for SQLite makes files beside what it reads."""
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, folder))
        with SqliteLedger(copy, read_only=True) as opened:
            return ledger(opened)


def found() -> dict[str, dict[str, Any]]:
    """Return what every document says, by file name; of a report, nothing."""
    measured: dict[str, dict[str, Any]] = {}
    for path in sorted(FOLDER.iterdir()):
        if path.name.endswith(".certificate.json"):
            measured[path.name] = certificate(path)
        elif path.name.endswith(".ledger.jsonl"):
            measured[path.name] = ledger(read_export(path))
        elif path.name.endswith(".ledger.sqlite"):
            measured[path.name] = ledger_file(path)
    return measured
