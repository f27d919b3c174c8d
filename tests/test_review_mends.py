"""Laws that a review found broken, one test each: what is fitted, printed and judged."""

import re
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, cast

import mpmath
import numpy as np
import pytest

from dpledger import audit_claim
from dpledger.accounting.guarantees import deltas_at, epsilons_at, guarantee
from dpledger.accounting.ledger import LedgerError, MemoryLedger, SqliteLedger
from dpledger.accounting.numbers.grade import Grade
from dpledger.audits.bounds import Scores
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.claim_file import promise_from_text
from dpledger.audits.claims.own import PromisedEpsilon
from dpledger.audits.scores import ClaimedPrivacy, judge_scores
from dpledger.data.strict import ConfigurationError
from dpledger.interop import Deployment, model_card_section
from dpledger.interop.opacus import LedgerAccountant
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DataShape,
    Event,
    GaussianStep,
    InvalidParameter,
    Norm,
    PrivateDataset,
    PureStep,
    Repeated,
    VerticalShape,
    declared,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.runs.claims import judge_claim_file
from dpledger.runs.estimators import AdmmAlgorithm, PrivateAdmmClassifier
from dpledger.solvers import ClassShares, Summed
from dpledger.solvers.consensus import Centring

REPLACE = Adjacency.REPLACE_ONE
NOWHERE = Context((), 1, "message", Audience.PUBLIC)


def records(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)) / 5, rng.integers(0, 2, n)


def classifier(**given: Any) -> PrivateAdmmClassifier:
    settings = {"epsilon": 1.0, "classes": (0, 1), "rounds": 2} | given
    return PrivateAdmmClassifier(delta=1e-5, adjacency="replace-one", clip=True, **settings)


def shares_of_classes(noise_multiplier: float, shape: Any) -> ClassShares:
    return ClassShares(noise_multiplier, shape.features - 1)


def test_noise_that_is_no_sum_of_shares_is_refused_where_sums_alone_are_seen() -> None:
    """A solver of one's own that adds Laplace noise: no party has a share of it."""
    model = classifier(n_parties=3, threat_model=Summed(colluders=2), algorithm=shares_of_classes)
    with pytest.raises(InvalidParameter, match="Gaussian noise: only sums are seen"):
        model.fit(*records())
    assert not hasattr(model, "privacy_")


@pytest.mark.parametrize(
    "first", [shares_of_classes, AdmmAlgorithm.PVP_ADMM, AdmmAlgorithm.SAMPLED_PS_ADMM]
)
def test_a_candidate_that_is_no_sum_is_refused_before_a_search_is_paid_for(first: Any) -> None:
    """Alone it was refused; among candidates it was paid for, and Laplace noise was run, too."""
    ledger = MemoryLedger()
    own = {"algorithm": first} | ({} if callable(first) else {"rounds": 2})
    model = classifier(
        n_parties=3, threat_model=Summed(), rounds=None, candidates=[own, {"rounds": 3}]
    ).set_params(ledger=ledger)
    with pytest.raises(InvalidParameter, match=r"only sums .*are seen"):
        model.fit(*records())
    assert ledger.runs() == ()


def test_parties_with_the_same_records_are_refused_where_sums_alone_are_seen() -> None:
    rows, labels = records()
    model = classifier(n_parties=2, threat_model=Summed())
    dealt = np.repeat([0, 1], len(labels))
    with pytest.raises(InvalidParameter, match="holders of different records"):
        model.fit(np.vstack([rows, rows[::-1]]), np.r_[labels, labels[::-1]], party_of=dealt)
    model.fit(np.vstack([rows, rows / 2]), np.r_[labels, labels], party_of=dealt)


@dataclass(frozen=True)
class Short:
    """A solver that forgets the column of the constant."""

    solver: ClassShares

    def solve(self, dataset: Any, curator: Any, *, observe: Any = None) -> Any:
        """Return a model that is too short."""
        state = self.solver.solve(dataset, curator, observe=observe)
        return replace(state, model=state.model[:2])


def test_a_fit_that_fails_after_it_was_paid_for_leaves_model_and_promise_of_the_one_before() -> (
    None
):
    model = classifier(epsilon=8.0).fit(*records())
    before = {**vars(model)}
    model.set_params(epsilon=0.5, algorithm=lambda z, shape: Short(shares_of_classes(z, shape)))
    with pytest.raises((IndexError, ValueError)):
        model.fit(*records())
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after == {name: value for name, value in before.items() if name.endswith("_")}
    assert after["privacy_"].epsilon.upper_float > 0.5


@pytest.mark.parametrize("fitted", [False, True])
def test_a_number_in_place_of_an_array_is_not_shown(fitted: bool) -> None:
    rows, labels = records()
    model = classifier().fit(rows, labels)
    asked = partial(model.score, rows) if fitted else partial(model.fit, rows, labels)
    with pytest.raises((TypeError, ValueError)) as refused:
        asked(np.array(777123.5))
    assert "777123" not in str(refused.value)


@pytest.mark.parametrize("descending", [False, True])
def test_sorted_scores_are_refused_and_scores_in_order_of_runs_are_judged(
    descending: bool,
) -> None:
    """A threshold is learned from a third by place, which is no random third of sorted scores."""
    rng, claimed = np.random.default_rng(1), ClaimedPrivacy.of(epsilon=1.0, mu=None, delta=0.0)
    scores = rng.normal(size=(2, 60))
    judge_scores(Scores(*scores), claimed, confidence=0.95)
    scores[1] = np.sort(scores[1])[:: -1 if descending else 1]
    with pytest.raises(InvalidParameter, match="neighbour='sorted'"):
        judge_scores(Scores(*scores), claimed, confidence=0.95)


@pytest.mark.parametrize("late", [0, 1, 4])
def test_few_scores_that_stand_last_by_chance_are_judged(late: int) -> None:
    world = np.r_[np.zeros(60), np.ones(late)]
    claimed = ClaimedPrivacy.of(epsilon=1.0, mu=None, delta=0.0)
    judge_scores(Scores(world, world), claimed, confidence=0.95)


def test_a_line_break_in_a_declared_text_begins_no_line_of_a_model_card() -> None:
    sensitivity = declared(1, "ok\n\n# Promise: | (0.001, 0)", adjacency=Adjacency.REPLACE_ONE)
    event = Event(GaussianStep(sensitivity, 4.0), Context((), 1, "sum", Audience.SERVER))
    said = Deployment(
        name="model",
        data_curators=["A"],
        description="words",
        intended_use="suggestions",
        data_product_type="Machine learning model",
        data_product_region="no",
        publication_date=date(2026, 1, 1),
        model_name="Central",
        privacy_unit="person\n# of two",
    )
    card = model_card_section(said, guarantee([event], delta=1e-5), [event])
    assert all(line.startswith("|") for line in card.splitlines()[2:])


@pytest.mark.parametrize(
    ("claimed", "clipped", "verdict"),
    [
        (3.0, False, ClaimVerdict.UNSPECIFIED),
        (3.0, True, ClaimVerdict.NOT_IMPLIED),
        (6.0, False, ClaimVerdict.HOLDS),
    ],
)
def test_a_noise_multiplier_of_nothing_stated_is_read_both_ways_where_a_record_is_replaced(
    tmp_path: Path, claimed: float, clipped: bool, verdict: ClaimVerdict
) -> None:
    """0.722 over the sensitivity, 5.488 over a clip norm: a record moves two of that."""
    claim = tmp_path / "claim.toml"
    claim.write_text(
        'adjacency = "replace-one"\nunit = "a record"\ntuning = "none"\npreprocessing = "none"\n'
        f"[promise]\nepsilon = {claimed}\ndelta = 1e-5\n"
        '[[releases]]\nname = "gradients"\nmechanism = "gaussian"\nnoise_multiplier = 1.1\n'
        'rounds = 1000\nsampling = "fixed-batch"\nbatch = 256\nrecords = 60000\n'
        + ("clip_norm = 1.0\n" if clipped else "")
    )
    assert judge_claim_file(claim).finding.verdict is verdict


def test_a_noise_multiplier_is_read_both_ways_where_a_column_is_replaced(tmp_path: Path) -> None:
    claim = tmp_path / "claim.toml"
    claim.write_text(
        'adjacency = "replace-feature-column"\nunit = "a column"\ntuning = "none"\n'
        'preprocessing = "none"\n[promise]\nepsilon = 1.0\ndelta = 1e-5\n'
        '[[releases]]\nname = "sum"\nmechanism = "gaussian"\nnoise_multiplier = 5\nrounds = 1\n'
    )
    finding = judge_claim_file(claim).finding
    assert finding.verdict is ClaimVerdict.UNSPECIFIED
    readings = sorted(found.upper_float for found in finding.figures.values())
    assert readings == pytest.approx([0.7255, 1.555], rel=1e-3)


def test_no_epsilon_in_a_sentence_of_an_argument_is_below_the_truth() -> None:
    for name, key in (("H-3", "exact epsilon"), ("DPA-1", "exact epsilon, zero-out-one")):
        found = audit_claim(name)
        said = float(f"{found.figures[key].upper_float:.5g}")
        numbers = [float(x) for text in found.argument for x in re.findall(r"\d+\.\d{3,}", text)]
        near = [x for x in numbers if abs(x - said) <= 2e-4 * said]
        assert near
        assert all(x >= found.figures[key].lower_float for x in near)


def test_an_empty_file_that_becomes_a_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    """A placeholder that others may read: a seed in it would show the noise."""
    path = tmp_path / "census.sqlite"
    path.touch(0o644)
    SqliteLedger(path).close()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["x\0y", "circle", "a" * 300])
def test_a_name_that_no_file_can_have_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(LedgerError):
        SqliteLedger(tmp_path / name)
    assert [found.name for found in tmp_path.iterdir()] == ["circle"]


@pytest.mark.parametrize(
    "given", [{"threat_model": "summed"}, {"parties": iter(["a", "b"])}, {"threat_model": None}]
)
def test_what_a_fit_cannot_take_is_refused_before_anything_is_spent(given: dict[str, Any]) -> None:
    ledger = MemoryLedger()
    with pytest.raises(InvalidParameter, match=next(iter(given))):
        classifier(ledger=ledger, **given).fit(*records())
    assert ledger.events() == []


@pytest.mark.parametrize(("scale", "steps"), [(0.3, 19), (0.3, 2), (3.0, 40), (0.03, 5)])
def test_deltas_near_the_largest_loss_are_upper_bounds(scale: float, steps: int) -> None:
    """The best order of a bound of one moment is so high there that its difference has no digits:
    delta was too small by up to some per cent."""
    step = PureStep(declared(1, "x", adjacency=REPLACE, norm=Norm.L1), scale)
    with mpmath.workdps(60):
        e = 1 / mpmath.mpf(scale)
        likely = 1 / (1 + mpmath.exp(-e))
        largest = float(steps * e)
        epsilons = [largest * (1 - places * 2.0**-53) for places in (1, 3, 16, 100, 10**4, 10**8)]
        events = [Event(Repeated(step, steps), NOWHERE)]
        found = deltas_at(events, epsilons=epsilons, grade=Grade.FAST).delta
        for epsilon, delta in zip(epsilons, found, strict=True):
            # the losses of k of the steps are e, the others' -e
            truth = mpmath.fsum(
                mpmath.binomial(steps, k)
                * likely**k
                * (1 - likely) ** (steps - k)
                * max(0, -mpmath.expm1(epsilon - (2 * k - steps) * e))
                for k in range(steps + 1)
            )
            assert truth * (1 - mpmath.mpf(10) ** -12) <= delta


def test_the_largest_loss_of_many_small_ones_beside_a_large_one_is_added_without_loss() -> None:
    unit = declared(1, "x", adjacency=REPLACE, norm=Norm.L1)
    small = [PureStep(unit, 2.0**46 * (1 + k * 2.0**-20)) for k in range(300)]
    events = [Event(step, NOWHERE) for step in (PureStep(unit, 2.0**-8), *small)]
    total = 256 + sum(1 / Fraction(step.scale) for step in small)
    (epsilon,) = epsilons_at(events, deltas=[1e-300], grade=Grade.FAST).epsilon
    # all of it is lost with a probability of 2^-300
    assert (
        total * (1 - Fraction(1, 2**52)) <= Fraction(epsilon) <= total * (1 + Fraction(1, 10**14))
    )
    (delta,) = deltas_at(events, epsilons=[256.0000000000012], grade=Grade.FAST).delta
    assert delta > 0


def test_a_word_is_no_answer_to_a_question_of_yes_or_no() -> None:
    """Of "no" Python makes True; public labels were then told without noise."""
    with pytest.raises(InvalidParameter, match=r"public_labels='no' must be True or False"):
        VerticalShape(("a", "b"), 10, (2, 3), 1.0, REPLACE, cast("bool", "no"))
    run = MemoryLedger().run("run", configuration_hash="x")
    for name in ("split_batches", "independent_batches"):
        said: Any = {name: "False"}
        with pytest.raises(InvalidParameter, match=f"{name}='False' must be True or False"):
            LedgerAccountant(run, adjacency=Adjacency.ADD_REMOVE_ONE, **said)


@pytest.mark.parametrize("radius", [0.2, 0.45])
def test_columns_can_be_scaled_to_the_largest_factor_whatever_the_row_bound(radius: float) -> None:
    """One bound in ten was refused for the last place of a product."""
    metric = Centring(column=2, radius=radius, scaling=True)
    for bound in np.arange(1, 300) / 100:
        shape = DataShape(("a",), count=9, features=3, row_bound=float(bound), adjacency=REPLACE)
        scale = metric.scale(np.zeros(3), 0.0, float(bound))
        data = PrivateDataset.planned(shape)
        CentredRows(data, np.zeros(3), radius=radius * bound, scale=scale)
    with pytest.raises(InvalidParameter, match="scale"):
        CentredRows(data, np.zeros(3), radius=1.0, scale=np.full(3, 64.0 / bound * (1 + 1e-15)))


def test_a_promise_is_read_to_its_end_or_not_at_all() -> None:
    """Of a text that was cut, the last number was another one."""
    promised = promise_from_text(f"epsilon=1{' ' * 190}, delta=0.00001")
    assert promised == PromisedEpsilon(epsilon=1.0, delta=1e-5)
    with pytest.raises(ConfigurationError, match="at most 1000 characters"):
        promise_from_text("epsilon=1, delta=0." + 1000 * "1")
