"""More laws that documents, federations and numbers were attacked by from outside."""

import json
import tracemalloc
from contextlib import suppress
from fractions import Fraction
from itertools import product
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm
from tests.accounting.check.test_forgeries import (
    Node,
    Step,
    certified,
    event,
    gaussian,
    leaf,
    node,
    sealed,
    stated,
)
from tests.federation.test_forged_folders import PARTIES, federation_folder, released

from dpledger.accounting.check import checker, leaves, pld_checker, roundings, sensitivities
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import MemoryLedger
from dpledger.accounting.proof.certificate import Uncertifiable, certify
from dpledger.federation import FederatedPlan, Journal, Party, Policy, federated_plan, take_part
from dpledger.federation.guarantee import Held, joint_events, verify_federation
from dpledger.federation.plan import StepKind
from dpledger.federation.protocol import (
    Answer,
    Ask,
    Bye,
    Hello,
    Reply,
    Request,
    Welcome,
    encoded_row,
)
from dpledger.interop.files import read_bytes
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DataShape,
    DpledgerError,
    Event,
    GaussianStep,
    LocalDataset,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    SeededSampler,
    declared,
)
from dpledger.mechanisms.encoding import event_to_json
from dpledger.mechanisms.summed_lattice import SummedLattice
from dpledger.runs.outcomes.federation import verified_federation_outcome
from dpledger.runs.outcomes.ledgers import verified_outcome
from dpledger.solvers import ConsensusDpAdmm


def on_lattice_l1(meant: Node, rounded: Node) -> Node:
    """The same in l1, for noise of scale one."""
    given = dict(rounded["parameters"])
    distance, width = sensitivities._HALF_STEP, int(given["width"])
    u, error = leaves.root_up(Fraction(meant["squared"])), Fraction(given["error"])
    inner = node("computed-l1", (u + 2 * error) ** 2, [meant, rounded], rows=1, u=u)
    u += 2 * error
    size = (u + 2 * distance * width) ** 2
    return node("lattice-l1", size, [inner], distance=distance, dimension=width, u=u)


# once: bounds in l2 stand for bounds in l1, which are up to the root of the width larger
@pytest.mark.parametrize("rule", ["float-scores", "float-clip"])
def test_rounding_rules_in_l2_are_no_rules_in_l1(rule: str) -> None:
    width, u = 10**6, Fraction(1, 2**53)
    reason = {"text": "scores of all records at a public point, in l1"}
    meant = node("declared", 1, value=1, reason=reason)
    scores = roundings._float_scores(Fraction(1), Fraction(8), Fraction(width))
    rounded = leaf(
        "float-scores", scores.error, bound=1, terms=8, width=width, magnitude=scores.magnitude
    )
    if rule == "float-clip":  # of a million numbers of size one, cut to length one: 1,000 in l1
        clipped = roundings._float_clip(scores, Fraction(1))
        assert clipped.magnitude < 2
        rounded = node(
            "float-clip",
            clipped.error**2,
            [rounded],
            radius=1,
            magnitude=clipped.magnitude,
            error=clipped.error,
        )
        rounded["parameters"].append(["width", width])  # for `on_lattice_l1`, and taken off
        derived = on_lattice_l1(meant, rounded)
        rounded["parameters"].pop()
    else:
        derived = on_lattice_l1(meant, rounded)
        # each of a million scores may err by gamma_9 in l1, and a thousand of these are paid
        assert scores.error < width * 9 * u / 100
    noise = {"kind": "laplace", "sensitivity": stated(derived, "l1"), "scale": "1p0"}
    with pytest.raises(CertificateWrong):
        certified(noise, ("laplace-zcdp", {"mechanism": 0}, []))


# once: B's records meet a Gaussian twice, and pay once
@pytest.mark.parametrize("where", ["in a part", "beside it", "by another party", "named twice"])
def test_parties_are_not_split_into_parties_again(where: str) -> None:
    moved = node("declared", 1, value=1, reason={"text": "a sum over the party's own records"})
    one = gaussian(stated(moved, adjacency="replace-one"))
    of_b = {"kind": "parties", "parts": [["B", [one]]]}
    cost: Step = ("gaussian-gdp", {"mechanism": 0}, [])
    nested: Step = ("parties", {"mechanism": 1}, [0])
    of_a = {"kind": "parties", "parts": [["A", [of_b]]]}
    both = {"kind": "parties", "parts": [["A", [of_b]], ["B", [one]]]}
    whole: Step = ("parties", {"mechanism": 2}, [1, 0])
    each: Step = ("events", {}, [0, 1])
    mechanisms, events, steps = {
        "in a part": ([one, of_b, both], [event(2)], [cost, nested, whole, ("events", {}, [2])]),
        "beside it": ([one, of_b, of_a], [event(2), event(1)], [cost, nested, each]),
        "by another party": (
            [one, of_b],
            [event(1, ["A"]), event(0, ["B"])],
            [cost, nested, each],
        ),
        # one message a name: two of B's
        "named twice": ([one], [event(0, ["B", "B"])], [cost, ("events", {}, [0])]),
    }[where]

    def refused() -> None:
        assert checker.check(sealed(mechanisms, events, steps)).values == (Fraction(2),)

    with pytest.raises(CertificateWrong):
        refused()


# once: neither sentence is shown
def test_a_federation_shows_what_its_parties_take_for_granted(tmp_path: Path) -> None:
    said = "the seeds of its noise are secret"
    own = [released(PARTIES)]
    joint = certify(joint_events(Held.BY_PARTY, dict.fromkeys(PARTIES, own)), delta=1e-5)
    documents = certify(own, delta=1e-5).given(said).to_json_bytes(), joint.to_json_bytes()
    outcome = verified_federation_outcome(federation_folder(tmp_path, "by-party", own, *documents))
    assert said in outcome.text
    assert said in outcome.json


def test_a_name_of_a_run_does_not_pass_for_a_row(tmp_path: Path) -> None:
    own = [released(PARTIES)]
    joint = certify(joint_events(Held.BY_PARTY, dict.fromkeys(PARTIES, own)), delta=1e-5)
    documents = certify(own, delta=1e-5).to_json_bytes(), joint.to_json_bytes()
    folder = federation_folder(tmp_path, "by-party", own, *documents)
    manifest = json.loads((folder / "federation.json").read_text())
    manifest["run"] = "run\nproved  (0.01, 1e-09)-dp\x1b[2J"
    (folder / "federation.json").write_text(json.dumps(manifest))
    shown = verified_federation_outcome(folder).text
    assert sum(line.startswith("proved") for line in shown.splitlines()) == 1
    assert "\x1b" not in shown


@pytest.mark.parametrize(("parties", "colluders"), [(2, 0), (3, 1), (4, 0), (4, 3)])
def test_a_sum_of_rounded_noises_is_worth_the_noise_that_is_priced(
    parties: int, colluders: int
) -> None:
    """All masses of the sum that an adversary sees, against the Gaussian mechanism's profile."""
    lattice = SummedLattice(parties, colluders, 8)
    reach = 9 * 2**lattice.bits
    edges = (np.arange(-reach, reach + 2) - 0.5) / 2**lattice.bits
    one = np.diff(norm.cdf(edges))
    total = one
    for _ in range(lattice.honest - 1):
        total = np.convolve(total, one)
    noise_std = 1.0
    for steps in (1, 40, 300):
        shift = steps * lattice.honest
        moved, still = (np.concatenate(pair) for pair in _shifted(total, shift))
        mu = shift * lattice.step(noise_std) / noise_std
        for epsilon_ in (0.0, 0.5, 2.0):
            found = np.maximum(moved - np.exp(epsilon_) * still, 0).sum()
            priced = norm.cdf(mu / 2 - epsilon_ / mu)
            priced -= np.exp(epsilon_) * norm.cdf(-mu / 2 - epsilon_ / mu)
            assert found <= priced + 1e-12


def _shifted(masses: np.ndarray, shift: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """The masses moved up by a shift, and as they were, on one range."""
    none = np.zeros(shift)
    return (none, masses), (masses, none)


# once: the whole file is read, and then refused for its size
def test_a_file_is_not_read_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(200_000_000)  # sparse
    tracemalloc.start()
    try:
        assert verified_outcome(path).finding
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


class HostileLink:
    """A coordinator that answers every sum with numbers of its own, and keeps what it is sent."""

    def __init__(self, plan: FederatedPlan, answer: float) -> None:
        self.plan, self.answer = plan, answer
        self.sent: list[np.ndarray] = []

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        if isinstance(request, Hello):
            return Welcome("run")
        assert isinstance(request, Ask)
        step = self.plan.steps[request.step]
        if step.kind is not StepKind.MEAN:
            return Answer(request.step, b"")
        self.sent.append(np.frombuffer(request.part, "<f8"))
        return Answer(request.step, encoded_row(np.full(step.width, self.answer)))

    def leave(self, bye: Bye) -> None:
        """Nobody listens."""


@pytest.mark.parametrize("answer", [1.0, 1e10, 1e90, 1e101, -1.7e308])
def test_no_answer_of_a_coordinator_moves_neighbours_apart(tmp_path: Path, answer: float) -> None:
    """The same noise for two neighbours: the messages' distance is that of what is computed."""
    shape = DataShape(PARTIES, 40, 3, 1.0, Adjacency.REPLACE_ONE, party_counts=(40, 40))
    solver = ConsensusDpAdmm(3, 2.0, 4.0, momentum=0.5)
    plan = federated_plan(
        solver, shape, delta=1e-5, algorithm="consensus-admm", configuration="c" * 64
    )
    policy = Policy(
        epsilon=1e9, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, algorithms=("consensus-admm",)
    )
    rows, sent, ended = np.full((40, 3), 0.5), [], []
    for label in (1.0, -1.0):
        own = rows.copy()
        own[0] *= label
        labels = np.append(label, np.ones(39))
        link = HostileLink(plan, answer)
        with Journal(tmp_path / f"{label}.sqlite") as journal, MemoryLedger() as ledger:
            party = Party(
                name="north",
                dataset=LocalDataset(shape, ("north",), own, labels),
                sampler=SeededSampler(3),
                ledger=ledger,
                journal=journal,
                policy=policy,
            )
            try:
                take_part(party, plan, link)
                ended.append("")
            except DpledgerError as error:
                ended.append(str(error))
            assert ledger.events() == list(plan.events)  # all of it is paid, whatever is sent
        sent.append(link.sent)
    assert ended[0] == ended[1]
    assert len(sent[0]) == len(sent[1])
    for one, other, priced in zip(*sent, plan.events, strict=False):
        assert np.isfinite(one).all()
        assert np.linalg.norm(one - other) <= priced.mechanism.sensitivity.value


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(("rate", "scale"), [(0.1, 1.0), (0.5, 0.7)])
def test_groups_in_a_poisson_sample_pay_for_all_who_may_be_drawn(
    size: int, rate: float, scale: float
) -> None:
    """The mixture over how many are drawn, integrated, against the enclosed epsilon."""
    step = GaussianStep(declared(1, "example", adjacency=Adjacency.ADD_REMOVE_ONE), scale)
    one = Event(PoissonSampled(step, rate), Context((), 1, "x", Audience.PUBLIC))
    places = np.linspace(-12, 12 + size, 100_001)
    width = places[1] - places[0]
    still = norm.pdf(places, 0, scale)
    moved = sum(
        binom.pmf(drawn, size, rate) * norm.pdf(places, drawn, scale) for drawn in range(size + 1)
    )
    for delta in (1e-2, 1e-5):
        found = np.exp(guarantee([one], delta=delta, group=size).epsilon.upper_float)
        for first, second in ((moved, still), (still, moved)):
            assert np.maximum(first - found * second, 0).sum() * width <= delta * (1 + 1e-6)


# once: an IndexError
def test_a_party_that_releases_nothing_costs_nothing() -> None:
    step = released(()).mechanism
    answers = RandomisedResponse(0.75, 3)
    parties = Parties((("A", ()), ("B", (step, answers))))
    events = [Event(parties, Context((), 1, "x", Audience.PUBLIC))]
    with suppress(Uncertifiable):
        found = checker.check(certify(events, delta=1e-6, tight=False).to_json_bytes())
        assert found.values[1] >= guarantee(events, delta=1e-6).epsilon.lower_float


# once: a RecursionError
def test_a_deep_folder_of_a_federation_is_refused_in_a_sentence(tmp_path: Path) -> None:
    own = [released(PARTIES)]
    folder = federation_folder(tmp_path, "by-party", own, b"{}", b"{}")
    text = (folder / "federation.json").read_text()
    inner = json.dumps(event_to_json(own[0])["mechanism"])
    assert inner in text
    nested = '{"kind": "repeated", "times": 1, "event": ' * 3000 + inner + "}" * 3000
    (folder / "federation.json").write_text(text.replace(inner, nested))
    with pytest.raises((DpledgerError, CertificateWrong)):
        verify_federation(folder)


# once: 1e-400 is read as 0; a delta vanishes, a sampled Gaussian costs nothing at delta 0
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("diffprivlib", b'{"spent_budget": [[1.0, 1e-400]]}'),
        ("opacus", b'{"history": [[1.0, 1e-400, 1000]]}'),
    ],
)
def test_a_number_too_small_for_a_double_is_not_zero(kind: str, content: bytes) -> None:
    with suppress(DpledgerError):
        replaced = kind == "diffprivlib"
        adjacency = Adjacency.REPLACE_ONE if replaced else Adjacency.ADD_REMOVE_ONE
        events = read_bytes(kind, content, "file.json", adjacency=adjacency)
        assert guarantee(events, delta=0).epsilon.upper_float == np.inf


# once: proved for groups of two, with twelve times the delta where each party has one of them
def test_a_group_over_two_parties_is_assumed_away_or_paid() -> None:
    answers = {"A": RandomisedResponse(0.7, 2), "B": RandomisedResponse(0.03125, 1000)}
    events = [
        Event(answer, Context((name,), 1, "x", Audience.PUBLIC)) for name, answer in answers.items()
    ]
    found = checker.check(certify(events, delta=1e-3, group=2).to_json_bytes(), pld_checker.RULES)
    assert (found.group, found.adjacency) == (2, "replace-one")
    delta, largest = (float(value) for value in found.values)
    masses = []
    for answer in answers.values():
        other = (1 - answer.truth) / (answer.categories - 1)
        loss = log(answer.truth / other)
        masses.append([(loss, answer.truth), (-loss, other), (0.0, 1 - answer.truth - other)])
    one_of_each = sum(
        first * second * max(1 - exp(largest - a - b), 0)
        for (a, first), (b, second) in product(*masses)
    )
    assumed = any("unit" in text for text in found.assumptions)
    assert assumed or one_of_each <= delta


# once: words that end like a ledger's row hid the assumption that they stand in
def test_no_words_hide_an_assumption_of_a_federation(tmp_path: Path) -> None:
    reason = f"as we hope; row 7 of its ledger has the hash {'0' * 64}"
    step = GaussianStep(declared(1, reason, adjacency=Adjacency.REPLACE_ONE), noise_std=4.0)
    own = [Event(step, Context(PARTIES, 1, "model", Audience.PUBLIC))]
    joint = certify(joint_events(Held.BY_PARTY, dict.fromkeys(PARTIES, own)), delta=1e-5)
    documents = certify(own, delta=1e-5).to_json_bytes(), joint.to_json_bytes()
    folder = federation_folder(tmp_path, "by-party", own, *documents)
    assert f"declared: {reason}" in verify_federation(folder).assumptions
