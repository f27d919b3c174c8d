"""Epsilon of training runs, as people state them."""

from collections.abc import Callable
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from dpledger.accounting import guarantee, training
from dpledger.accounting.planning import UnattainableTarget
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.renyi.curves import Selection
from dpledger.accounting.training import AmbiguousRun
from dpledger.accounting.training_runs import Sampling, TrainingRun
from dpledger.mechanisms import InvalidParameter

MNIST = {"records": 60000, "batch": 256, "epochs": 60}
ADD_REMOVE = "add-remove-one"


def peer(event: dp_event.DpEvent, relation: NeighboringRelation, delta: float) -> float:
    """Return dp_accounting's epsilon by privacy-loss distributions: pessimistic, 1e-4 apart."""
    return float(PLDAccountant(relation).compose(event).get_epsilon(delta))


def test_the_commonest_question_has_the_answer_of_a_peer() -> None:
    found = training.epsilon(
        noise_multiplier=1.1, delta=1e-5, sampling="poisson", adjacency=ADD_REMOVE, **MNIST
    )
    assert found.steps == 14063  # 14,062.5, rounded up
    event = dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(256 / 60000, dp_event.GaussianDpEvent(1.1)), 14063
    )
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    assert found.epsilon == pytest.approx(peer(event, relation, 1e-5), rel=1e-3)


def test_steps_are_exact_and_epochs_are_rounded_up() -> None:
    stated = {"sampling": "poisson", "adjacency": ADD_REMOVE, "records": 60000, "batch": 256}
    exact = training.epsilon(noise_multiplier=1.1, delta=1e-5, steps=14062, **stated)
    assert exact.steps == 14062
    assert round(exact.epsilon, 4) == 2.3816
    assert TrainingRun.of(epochs=Fraction(1, 1000), **stated).steps == 1


def test_a_relation_of_replacement_moves_the_sum_twice_as_far() -> None:
    stated = {"sampling": "none", "steps": 10, "delta": 1e-5}
    twice = training.epsilon(noise_multiplier=8.0, adjacency="replace-one", **stated)
    once = training.epsilon(noise_multiplier=4.0, adjacency="zero-out-one", **stated)
    assert twice.epsilon == pytest.approx(once.epsilon, rel=1e-12)
    assert any("2 clip norms" in warning for warning in twice.warnings)


def test_shuffled_epochs_cost_one_release_an_epoch() -> None:
    stated = {"noise_multiplier": 1.1, "delta": 1e-5, "adjacency": "zero-out-one"}
    shuffled = training.epsilon(sampling="shuffled", **MNIST, **stated)
    sixty = training.epsilon(sampling="none", steps=60, **stated)
    assert shuffled.epsilon == sixty.epsilon
    assert round(shuffled.epsilon, 2) == 54.05


@pytest.mark.parametrize("gamma", [1.0, 1.5, 3.0, 10.0])
@pytest.mark.parametrize("other", [-1.0, 0.0, 0.7, 1.0])
def test_two_shuffled_batches_stay_below_one_gaussian(gamma: float, other: float) -> None:
    """Brute force: two records, two batches of one, the order hidden; one record is zeroed."""
    x = np.linspace(-9, 9, 721)
    cell = (x[1] - x[0]) ** 2

    def density(first: float, second: float) -> np.ndarray:
        return np.outer(norm.pdf(x - first), norm.pdf(x - second))

    p = (density(other, 1.0) + density(1.0, other)) / 2
    q = (density(other, 0.0) + density(0.0, other)) / 2
    one = norm.cdf(0.5 - np.log(gamma)) - gamma * norm.cdf(-0.5 - np.log(gamma))
    for left, right in ((p, q), (q, p)):
        assert np.maximum(left - gamma * right, 0).sum() * cell <= one + 1e-6


def test_what_does_not_fill_a_batch_makes_more_epochs() -> None:
    # three batches of 30 an epoch: the tenth step opens a fourth epoch
    run = TrainingRun.of(
        sampling="shuffled", adjacency="replace-one", records=100, batch=30, steps=10
    )
    assert run.releases == 4


@pytest.mark.parametrize(("records", "batch"), [(1001, 2), (100, 3), (100, 60), (10, 10)])
def test_the_most_shuffled_steps_cost_no_more_when_they_are_asked_for(
    records: int, batch: int
) -> None:
    stated: dict[str, Any] = {
        "noise_multiplier": 2.0, "delta": 1e-3, "sampling": "shuffled",
        "adjacency": "zero-out-one", "records": records, "batch": batch,
    }  # fmt: skip
    most = training.steps(epsilon=6.0, **stated)
    assert most.steps is not None
    assert training.epsilon(steps=most.steps, **stated).epsilon == most.epsilon <= 6.0
    assert training.epsilon(steps=most.steps + records, **stated).epsilon > 6.0


@pytest.mark.parametrize("sampling", ["shuffled", "none", "poisson"])
def test_parts_of_a_batch_hold_no_record_twice(sampling: str) -> None:
    with pytest.raises(InvalidParameter, match=r"rate=0\.6 must be at most 1 / 2"):
        TrainingRun.of(
            sampling=sampling, adjacency="zero-out-one", rate=0.6, accumulation=2, steps=1
        )


@pytest.mark.parametrize("sampling", ["shuffled", "none"])
def test_that_parts_of_a_batch_share_no_record_is_said(sampling: str) -> None:
    """A loop that ends no step with its epoch has a record of two epochs in one step."""
    stated = {"sampling": sampling, "adjacency": "zero-out-one", "records": 12, "batch": 3}
    one, two = (
        training.epsilon(noise_multiplier=1.0, delta=1e-5, steps=4, accumulation=parts, **stated)
        for parts in (1, 2)
    )
    said = "no record is in two of the 2 parts of a batch"
    assert (said in one.guarantee.assumptions, said in two.guarantee.assumptions) == (False, True)


def test_a_percentage_for_a_rate_is_refused_with_its_fraction() -> None:
    stated = {"steps": 10, "sampling": "poisson", "adjacency": ADD_REMOVE}
    with pytest.raises(InvalidParameter, match=r"rate=5\.0 must be in \[0, 1\]; 5 % is 0\.05"):
        training.epsilon(noise_multiplier=1.0, delta=1e-5, rate=5.0, **stated)
    with pytest.raises(InvalidParameter, match=r"rate=256 must be in \[0, 1\]\.$"):
        training.epsilon(noise_multiplier=1.0, delta=1e-5, rate=256, **stated)


@pytest.mark.slow  # the same question stands in cli/test_training.py
def test_what_is_missing_is_asked_for_with_the_readings() -> None:
    with pytest.raises(AmbiguousRun, match="sampling must be stated") as caught:
        training.epsilon(noise_multiplier=1.1, delta=1e-5, **MNIST)
    readings = {(r.run.sampling, r.run.adjacency.value): r for r in caught.value.readings}
    assert len(readings) == 10 == str(caught.value).count("\n  ")
    assert readings[Sampling.POISSON, ADD_REMOVE].steps == 14063
    assert readings[Sampling.NONE, ADD_REMOVE].epsilon > 6000


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"sampling": "fixed-batch", "adjacency": ADD_REMOVE}, "replaced record"),
        ({"sampling": "shuffled", "adjacency": ADD_REMOVE}, "shifts every batch"),
        ({"sampling": "shufled", "adjacency": ADD_REMOVE}, "'shuffled'"),
        ({"sampling": "poisson", "adjacency": "add"}, "'add-remove-one'"),
        ({"sampling": "poisson", "adjacency": ADD_REMOVE, "steps": 5}, "not both"),
        ({"sampling": "poisson", "adjacency": ADD_REMOVE, "batch": 60001}, "60000"),
        ({"sampling": "poisson", "adjacency": ADD_REMOVE, "batch": 2.5}, "whole number"),
        ({"sampling": "poisson", "adjacency": ADD_REMOVE, "rate": 1.5, "batch": None}, "rate"),
    ],
)
def test_what_has_no_rule_is_refused_with_the_reason(
    stated: dict[str, object], message: str
) -> None:
    whole = {**MNIST, **stated}
    with pytest.raises(InvalidParameter, match=message):
        training.epsilon(noise_multiplier=1.1, delta=1e-5, **whole)  # type: ignore[arg-type]


def test_noise_and_steps_meet_the_target_and_hardly_more_does() -> None:
    stated = {"sampling": "poisson", "adjacency": ADD_REMOVE, "rate": 0.01, "delta": 1e-6}
    found = training.noise_multiplier(epsilon=2.0, steps=1000, **stated)
    assert found.epsilon <= 2.0
    less = training.epsilon(
        noise_multiplier=found.noise_multiplier * (1 - 1e-5), steps=1000, **stated
    )
    assert less.epsilon > 2.0
    most = training.steps(epsilon=2.0, noise_multiplier=found.noise_multiplier, **stated)
    assert most.steps == 1000
    with pytest.raises(UnattainableTarget):
        training.steps(epsilon=1e-3, noise_multiplier=0.1, **stated)


def test_a_promise_that_protects_nobody_is_said_to() -> None:
    found = training.epsilon(
        noise_multiplier=0.0, sampling="none", adjacency=ADD_REMOVE, steps=1, delta=0.1, records=100
    )
    assert found.epsilon == inf
    assert any("no protection" in warning for warning in found.warnings)
    assert any("1 / records" in warning for warning in found.warnings)


def test_an_answer_is_one_short_line() -> None:
    found = training.epsilon(
        noise_multiplier=4.0, sampling="none", adjacency=ADD_REMOVE, steps=1, delta=1e-5
    )
    assert repr(found).startswith("ε ≤ ")
    assert len(repr(found)) < 200
    assert "\n" not in repr(found)


def test_the_curve_falls_and_passes_through_the_answer() -> None:
    stated = {"noise_multiplier": 1.0, "sampling": "none", "adjacency": ADD_REMOVE, "steps": 4}
    found = training.curve(deltas=[1e-8, 1e-5, 1e-2], **stated)
    assert (np.diff(found.epsilon) < 0).all()
    assert found.epsilon[1] == training.epsilon(delta=1e-5, **stated).epsilon


def test_the_best_of_several_runs_is_priced_and_says_so() -> None:
    """As dp_accounting prices it, at the best of its list of orders."""
    stated = {"sampling": "poisson", "adjacency": ADD_REMOVE, "rate": 0.01, "steps": 500}
    select = Selection(20)
    found = training.epsilon(noise_multiplier=1.0, delta=1e-5, select=select, **stated)
    one = dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0)), 500
    )
    best = dp_event.RepeatAndSelectDpEvent(one, 20.0, 1.0)
    theirs = RdpAccountant().compose(best).get_epsilon(1e-5)
    assert theirs * (1 - 2e-3) <= found.epsilon <= theirs * (1 + 1e-9)
    assert "best of 20 runs" in repr(found)
    assert found.guarantee.mu.upper_float == found.guarantee.rho.upper_float == inf
    assert any("Papernot" in theorem.source for theorem in found.guarantee.theorems)
    html = found._repr_html_()
    assert html != training.epsilon(noise_multiplier=1.0, delta=1e-5, **stated)._repr_html_()


def test_the_best_of_several_runs_is_not_proved_and_is_never_pure() -> None:
    stated = {"sampling": "none", "adjacency": ADD_REMOVE, "steps": 3, "select": Selection(20)}
    with pytest.raises(InvalidParameter, match="proved"):
        training.epsilon(noise_multiplier=1.0, delta=1e-5, proved=True, **stated)
    events = TrainingRun.of(sampling="none", adjacency=ADD_REMOVE, steps=3).events(1.0)
    with pytest.raises(InvalidParameter, match="best of several"):
        guarantee(events, delta=0, selection=Selection(20))
    with pytest.raises(AmbiguousRun) as asked:
        training.epsilon(
            noise_multiplier=1.0, delta=1e-5, steps=3, sampling="none", select=Selection(20)
        )
    assert all(reading.select == Selection(20) for reading in asked.value.readings)


def test_noise_steps_and_curve_of_the_best_of_several_runs_are_its_epsilons() -> None:
    stated = {"sampling": "none", "adjacency": ADD_REMOVE, "select": Selection(20)}
    found = training.noise_multiplier(epsilon=2, delta=1e-5, steps=3, **stated)
    again = training.epsilon(noise_multiplier=found.noise_multiplier, delta=1e-5, steps=3, **stated)
    assert again.epsilon == found.epsilon <= 2
    less = found.noise_multiplier * (1 - 2e-6)
    assert training.epsilon(noise_multiplier=less, delta=1e-5, steps=3, **stated).epsilon > 2
    one = training.noise_multiplier(
        epsilon=2, delta=1e-5, steps=3, sampling="none", adjacency=ADD_REMOVE
    )
    assert found.noise_multiplier > 1.2 * one.noise_multiplier
    most = training.steps(epsilon=2, noise_multiplier=found.noise_multiplier, delta=1e-5, **stated)
    assert most.steps == 3
    assert found.guarantee.not_proved == most.guarantee.not_proved != ""
    curve = training.curve(
        noise_multiplier=found.noise_multiplier, deltas=[1e-8, 1e-5], steps=3, **stated
    )
    assert curve.epsilon[1] == found.epsilon


@pytest.mark.parametrize("delta", [Fraction(1, 10**400), Fraction(1, 10**5000)])
def test_a_delta_below_every_double_is_refused_and_never_written_as_zero(delta: Fraction) -> None:
    run: dict[str, Any] = {"rate": 0.01, "sampling": "poisson", "adjacency": "add-remove-one"}
    events = TrainingRun.of(**run, steps=10).events(1.0)
    asked: list[Callable[[], object]] = [
        lambda: training.epsilon(noise_multiplier=1, delta=delta, steps=10, **run),
        lambda: training.noise_multiplier(epsilon=1, delta=delta, steps=10, **run),
        lambda: training.steps(epsilon=1, noise_multiplier=1, delta=delta, **run),
        lambda: guarantee(events, delta=delta),
        lambda: certify(events, delta=delta),
    ]
    for ask in asked:
        with pytest.raises(InvalidParameter, match="at least 5e-324, the least positive double"):
            ask()
    assert guarantee(events, delta=5e-324).epsilon.upper_float < inf
