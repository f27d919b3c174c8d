"""Releases on a lattice: rounding is priced, the message is a function of the lattice point alone.

Statistical tests have fixed seeds and a false-alarm rate of 1e-6 each, should a seed change.
"""

from fractions import Fraction
from math import inf, ldexp, nan, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpledger.accounting.check import sensitivities
from dpledger.audits.curators import ReplayCurator
from dpledger.mechanisms import (
    Adjacency,
    EventList,
    GaussianStep,
    InvalidParameter,
    LaplaceNoise,
    LaplaceStep,
    PlanningCurator,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SimulationSampler,
    SystemSampler,
    declared,
)
from dpledger.mechanisms.encoding import mechanism_to_json
from dpledger.mechanisms.exact_noise import LAPLACE, NORMAL, rounded_deviates
from dpledger.mechanisms.lattice import (
    LATTICE_BITS,
    _nearest,
    noise_std_on_lattice,
    on_lattice,
    release_on_lattice,
)
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.rounding import exact
from dpledger.mechanisms.sensitivity import Norm

REPLACE = Adjacency.REPLACE_ONE
DISTANCE = Fraction(1, 2) + Fraction(1, 2**12)  # in steps of the lattice
FALSE_ALARM = 1e-6

numbers = st.one_of(
    st.floats(-(2.0**300), 2.0**300),
    st.floats(-1e3, 1e3),
    st.builds(ldexp, st.integers(-(2**53), 2**53), st.integers(-400, 200)),
)
scales = st.one_of(st.floats(1e-6, 1e6), st.floats(2.0**-300, 2.0**300))


def points(value: FloatArray, scale: float) -> list[int]:
    """Return the numbers of the lattice points that stand for the values, in steps."""
    coarse, fine = _nearest(value, scale)
    return [(int(c) << 32) + int(f) for c, f in zip(coarse.ravel(), fine.ravel(), strict=True)]


def message_at(point: int, scale: float) -> float:
    """Return the message that stands for a lattice point: a function of the point alone."""
    coarse, fine = divmod(point, 2**32)
    return float(fine) * ldexp(scale, -LATTICE_BITS) + float(coarse) * ldexp(
        scale, 32 - LATTICE_BITS
    )


def is_message(message: float, scale: float) -> bool:
    """Return whether any lattice point has this message, whatever the data."""
    near = round(Fraction(message) / Fraction(ldexp(scale, -LATTICE_BITS)))
    # a message is at most three roundings off its point
    slack = abs(near) // 2**51 + 2
    return any(message_at(near + i, scale) == message for i in range(-slack, slack + 1))


def sensitive(value: FloatArray, bound: float = 1.0) -> Sensitive:
    unit = declared(bound, "an example", adjacency=REPLACE)
    return Sensitive(
        unit,
        exact(Fraction(1), width=value.shape[-1]),
        parties=("only",),
        dimension=value.shape[-1],
        compute=lambda: value,
        auditable=True,
    )


# Rounding ----------------------------------------------------------------------------------------


@given(numbers, scales)
def test_a_value_is_rounded_to_a_point_as_near_as_it_says(value: float, scale: float) -> None:
    held = min(max(value, -ldexp(scale, 42)), ldexp(scale, 42))
    (point,) = points(np.array([value]), scale)
    away = abs(Fraction(held) / Fraction(ldexp(scale, -LATTICE_BITS)) - point)
    assert away <= DISTANCE
    if abs(value) <= ldexp(scale, 34):
        assert away <= Fraction(1, 2) + Fraction(1, 2**20)


@given(st.lists(st.tuples(numbers, st.floats(-1, 1)), min_size=1, max_size=6), scales)
def test_neighbours_on_the_lattice_are_no_further_apart_than_the_price(
    pairs: list[tuple[float, float]], scale: float
) -> None:
    one = np.array([value for value, _ in pairs])
    other = np.array([value + move * scale for value, move in pairs])
    moves = [abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True)]
    squared = sum(move**2 for move in moves)
    if not Fraction(1, 2**700) < squared < 2**700:
        return  # no sensitivity is so small or large
    step = Fraction(ldexp(scale, -LATTICE_BITS))
    gaps = [
        abs(p - q) * step for p, q in zip(points(one, scale), points(other, scale), strict=True)
    ]
    for norm, moved in ((Norm.L2, sum(gap**2 for gap in gaps)), (Norm.L1, sum(gaps) ** 2)):
        apart = squared
        if norm is Norm.L1:
            apart = (
                sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True)) ** 2
            )
        bound = declared(1, "an example", adjacency=REPLACE, norm=norm)
        bound = type(bound)(norm, REPLACE, apart, type(bound.derivation)("declared", apart))
        assert moved <= on_lattice(bound, exact(Fraction(1), width=len(pairs)), scale=scale).squared


@given(numbers, scales, st.integers(0, 2**64 - 1), st.sampled_from([NORMAL, LAPLACE]))
def test_a_message_is_a_function_of_the_noisy_lattice_point(
    value: float, scale: float, seed: int, law: object
) -> None:
    words = np.random.PCG64(seed).random_raw
    found = release_on_lattice(np.array([value]), scale=scale, law=law, words=words)
    (point,) = points(np.array([value]), scale)
    (noise,) = rounded_deviates(law, 1, LATTICE_BITS, np.random.PCG64(seed).random_raw)
    assert found[0] == message_at(point + int(noise), scale)


@pytest.mark.parametrize("value", [nan, inf, -inf, 1.7e308, -1.7e308, 5e-324, -0.0])
@pytest.mark.parametrize("scale", [2.0**-300, 1.0, 2.0**300])
def test_no_value_is_told_by_an_error(value: float, scale: float) -> None:
    words = np.random.PCG64(0).random_raw
    with np.errstate(all="raise"):
        found = release_on_lattice(np.full((2, 3), value), scale=scale, law=NORMAL, words=words)
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= scale * (2.0**42 + 10)


@pytest.mark.parametrize("scale", [2.0**-901, 5e-324, 2.0**901, inf, nan, -1.0])
def test_scales_whose_lattice_cannot_be_computed_are_refused(scale: float) -> None:
    words = np.random.PCG64(0).random_raw
    unit = declared(1, "an example", adjacency=REPLACE)
    with pytest.raises(InvalidParameter, match="noise_std"):
        on_lattice(unit, exact(Fraction(1), width=1), scale=scale)
    with pytest.raises(InvalidParameter, match="noise_std"):
        release_on_lattice(np.zeros(1), scale=scale, law=NORMAL, words=words)


# The price ---------------------------------------------------------------------------------------


def derived_again(step: GaussianStep | LaplaceStep) -> Fraction:
    """Return the squared sensitivity that the checker derives."""
    written: Any = mechanism_to_json(step)
    return sensitivities.read_sensitivity(written["sensitivity"]).squared


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("dimension", [1, 2, 104, 10**6])
def test_the_price_is_the_triangle_inequalitys(norm: Norm, dimension: int) -> None:
    unit = declared(Fraction(1, 3), "an example", adjacency=REPLACE, norm=norm)
    priced = on_lattice(unit, exact(Fraction(1), width=dimension), scale=3.0)
    stretch = dimension if norm is Norm.L1 else np.sqrt(dimension)
    expected = 2 * float(DISTANCE) * ldexp(3.0, -LATTICE_BITS) * stretch
    assert float(priced.root - Fraction(1, 3)) == pytest.approx(expected, rel=1e-12)
    step = GaussianStep(priced, 1.0) if norm is Norm.L2 else LaplaceStep(priced, 1.0)
    assert derived_again(step) == priced.squared
    assert priced.assumptions == unit.assumptions


def test_the_demos_rounding_x_of_its_sensitivity() -> None:
    # 10 parties of 104 coordinates, noise 37.3 times the sensitivity
    unit = declared(0.005, "an example", adjacency=REPLACE)
    priced = on_lattice(unit, exact(Fraction(1), width=1040), scale=37.3064 * 0.005)
    assert priced.root / unit.root - 1 < Fraction(1, 10**11)


def test_what_is_public_costs_nothing_on_a_lattice_either() -> None:
    nothing = declared(0, "a constant", adjacency=REPLACE)
    assert on_lattice(nothing, exact(Fraction(1), width=7), scale=1.0) is nothing
    # of equal bounds each keeps what it rests on
    for reason in ("one", "another"):
        bound = declared(1, reason, adjacency=Adjacency.REPLACE_ONE)
        assert on_lattice(bound, exact(Fraction(1), width=7), scale=1.0).assumptions == (reason,)
    unit = declared(1, "an example", adjacency=REPLACE)
    assert on_lattice(unit, exact(Fraction(1), width=7), scale=0.0) is unit


@given(st.floats(1e-3, 1e6), st.fractions(Fraction(1, 10**9), 10**9), st.integers(1, 10**6))
def test_a_noise_multiplier_counts_the_rounding(
    multiplier: float, bound: Fraction, dimension: int
) -> None:
    unit = declared(bound, "an example", adjacency=REPLACE)
    noise_std = noise_std_on_lattice(unit, exact(Fraction(1), width=dimension), multiplier)

    def ratio(scale: float) -> Fraction:
        return (
            Fraction(scale)
            / on_lattice(unit, exact(Fraction(1), width=dimension), scale=scale).root
        )

    assert ratio(noise_std) >= Fraction(multiplier)
    assert ratio(nextafter(nextafter(noise_std, 0.0), 0.0)) < Fraction(multiplier)


def test_multipliers_that_no_noise_reaches_on_its_lattice_are_refused() -> None:
    unit = declared(1, "an example", adjacency=REPLACE)
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        noise_std_on_lattice(unit, exact(Fraction(1), width=1), 2.0**50)


# Releases ----------------------------------------------------------------------------------------


def test_plan_run_and_simulation_emit_the_priced_event() -> None:
    unit = sensitive(np.zeros((1, 4))).sensitivity
    expected = GaussianStep(on_lattice(unit, exact(Fraction(1), width=4), scale=2.0), 2.0)
    plan, planned = (
        PlanningCurator(),
        Sensitive(unit, exact(Fraction(2**40), width=4), parties=("only",), dimension=4),
    )
    plan.release(planned, round=1, release="x", noise_std=2.0)
    lists = [plan.events]
    for sampler in (SeededSampler(1), SystemSampler(), SimulationSampler(1)):
        sink = EventList()
        run = SamplingCurator(sink, sampler)
        run.release(sensitive(np.zeros((1, 4))), round=1, release="x", noise_std=2.0)
        lists.append(sink.events)
    assert all(events == plan.events for events in lists)
    assert plan.events[0].mechanism == expected


def test_values_beyond_the_lattice_are_refused_by_their_public_bound() -> None:
    for curator in (SamplingCurator(EventList(), SeededSampler(1)), PlanningCurator()):
        planned = Sensitive(
            declared(1, "an example", adjacency=REPLACE),
            exact(Fraction(2**40), width=4),
            parties=("only",),
            dimension=4,
            compute=None if isinstance(curator, PlanningCurator) else lambda: np.zeros((1, 4)),
        )
        curator.release(planned, round=1, release="x", noise_std=0.25)
        with pytest.raises(InvalidParameter, match=r"noise_std=0.2499.* \[0.25, inf\)"):
            curator.release(planned, round=1, release="x", noise_std=0.2499)


def assert_no_release_rules_a_neighbour_out(sampler: object, releases: int) -> None:
    """The support attack: which data can have led to this message? (Mironov 2012)"""
    scale, values = 37.3064 * 0.005, np.array([0.01, 0.01 + 0.005 / np.sqrt(104)])
    lows = np.zeros((2, 8), dtype=np.int64)
    for value, low in zip(values, lows, strict=True):
        curator = SamplingCurator(EventList(), sampler)  # type: ignore[arg-type]
        block = sensitive(np.full((1, releases), value))
        (messages,) = curator.release(block, round=1, release="x", noise_std=scale)
        # one lattice for all data: every point of it is reached from everywhere
        assert all(is_message(float(message), scale) for message in messages)
        steps = np.rint(messages / ldexp(scale, -LATTICE_BITS)).astype(np.int64)
        low += np.bincount(steps & 7, minlength=8)
    # nor do low bits tell: they are uniform
    assert stats.chisquare(lows.ravel()).pvalue > FALSE_ALARM


def test_the_support_attack_finds_nothing() -> None:
    assert_no_release_rules_a_neighbour_out(SeededSampler(6), 5000)


@pytest.mark.slow
def test_the_support_attack_finds_nothing_in_a_million_releases() -> None:
    assert_no_release_rules_a_neighbour_out(SeededSampler(7), 500_000)


def test_the_support_attack_would_find_floating_point_noise() -> None:
    with pytest.raises(AssertionError):
        assert_no_release_rules_a_neighbour_out(SimulationSampler(6), 100)


# Laplace -----------------------------------------------------------------------------------------


def counts(value: FloatArray | None) -> Sensitive:
    unit = declared(2, "two counts change by one", adjacency=REPLACE, norm=Norm.L1)
    return Sensitive(
        unit,
        exact(Fraction(100), width=3),
        parties=("only",),
        dimension=3,
        compute=None if value is None else lambda: value,
        auditable=True,
    )


def test_laplace_releases_are_planned_run_and_replayed_alike() -> None:
    given = {"mechanism": LaplaceNoise(4.0), "round": 1, "release": "counts"}
    plan, sink = PlanningCurator(), EventList()
    plan.release(counts(None), **given)
    run = SamplingCurator(sink, SeededSampler(3), trials=2000, record=True)
    values = np.array([[10.0, 20.0, 30.0]]), np.array([[11.0, 20.0, 29.0]])
    message = run.release(counts(values[0]), **given)
    assert plan.events == sink.events
    step = sink.events[0].mechanism
    assert isinstance(step, LaplaceStep)
    assert step.sensitivity.derivation.rule == "lattice-l1"
    assert derived_again(step) == step.sensitivity.squared
    assert stats.kstest(((message - values[0]) / 4.0).ravel(), "laplace").pvalue > FALSE_ALARM
    densities = []
    for value in values:
        replay = ReplayCurator(run.transcript)
        replay.release(counts(value), **given)
        densities.append(replay.log_density)
    expected = [stats.laplace.logpdf(message, value, 4.0).sum(axis=(-2, -1)) for value in values]
    ratio = densities[0] - densities[1]
    np.testing.assert_allclose(ratio, expected[0] - expected[1], atol=1e-12)
    # pure privacy: no ratio exceeds sensitivity / scale, and some reach it
    assert np.abs(ratio).max() == pytest.approx(0.5, rel=1e-12)


def test_laplace_releases_ask_for_exact_noise_and_an_l1_sensitivity() -> None:
    given = {"mechanism": LaplaceNoise(4.0), "round": 1, "release": "counts"}
    sink = EventList()
    curator = SamplingCurator(sink, SimulationSampler(3))
    with pytest.raises(InvalidParameter, match="ExactSampler"):
        curator.release(counts(np.zeros((1, 3))), **given)
    with pytest.raises(InvalidParameter, match="norm"):
        SamplingCurator(sink, SeededSampler(3)).release(sensitive(np.zeros((1, 3))), **given)
    assert not sink.events
