"""Laws of losses: their public constants hold against an adversary, and are no larger than need be.

Gradients are compared with derivatives of independent formulas at 40 digits. Constants are compared
with what a search over records, labels and models finds: many random starts in a seeded population,
the best of them polished. Nothing found exceeds a constant, and every constant is attained within
1 %, as the module's docstring says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.parameters import quick

from dpledger.mechanisms import (
    Adjacency,
    ClassLabels,
    DataShape,
    InvalidParameter,
    LabelLoss,
    RealLabels,
    SignLabels,
)
from dpledger.solvers import (
    ClippedLogistic,
    Hinge,
    Huber,
    LinearLoss,
    Logistic,
    Multinomial,
    Shifted,
    SmoothedHinge,
    SmoothedQuantile,
    Weighted,
    bounded_squared,
)

WIDTH = 2
"""Features of a record: with one only, opposite gradients of saturated slopes do not exist."""

Formula = Callable[[list[mpmath.mpf], float], mpmath.mpf]


@dataclass(frozen=True)
class Case:
    """A loss, labels to try, and its value written once more, for mpmath."""

    loss: LabelLoss
    labels: tuple[float, ...]
    formula: Formula


def logistic(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
    return mpmath.log(1 + mpmath.exp(-y * s[0]))


def clipped_logistic(bound: float) -> Formula:
    def value(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
        b, margin = mpmath.mpf(bound), y * s[0]
        corner = mpmath.log(1 / b - 1)
        if margin >= corner:
            return mpmath.log1p(mpmath.exp(-margin))
        return mpmath.log1p(mpmath.exp(-corner)) + b * (corner - margin)

    return value


def shifted_logistic(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
    return mpmath.log(1 + mpmath.exp(-y * (s[0] - mpmath.mpf("1.25"))))


def smoothed_check(level: float, width: float) -> Formula:
    def value(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
        tau, h = mpmath.mpf(level), mpmath.mpf(width)

        def check(r: mpmath.mpf) -> mpmath.mpf:
            return r * tau if r > 0 else r * (tau - 1)

        def primitive(r: mpmath.mpf) -> mpmath.mpf:
            return r * check(r) / 2

        # the mean of the check loss at residuals y - s + u, u uniform on [-h, h]
        r = y - s[0]
        return (primitive(r + h) - primitive(r - h)) / (2 * h)

    return value


def linear(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
    return y * s[0]


def hinge(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
    return max(mpmath.mpf(0), 1 - y * s[0])


def huber_margin(width: float) -> Formula:
    def value(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
        margin = y * s[0]
        if margin > 1 + width:
            return mpmath.mpf(0)
        if margin < 1 - width:
            return 1 - margin
        return (1 + width - margin) ** 2 / (4 * mpmath.mpf(width))

    return value


def huber_residual(width: float) -> Formula:
    def value(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
        residual = abs(s[0] - y)
        return residual**2 / 2 if residual <= width else width * (residual - width / 2)

    return value


def cross_entropy(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
    return -mpmath.log(mpmath.exp(s[int(y)]) / mpmath.fsum(mpmath.exp(x) for x in s))


def weighted_logistic(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
    label, weight = {0.0: (-1, 0), 1.0: (-1, 1), 2.25: (1, mpmath.mpf("0.25")), 3.0: (1, 1)}[y]
    return weight * logistic(s, label)


def weighted_classes(s: list[mpmath.mpf], y: float) -> mpmath.mpf:
    return mpmath.mpf(y % 2) * cross_entropy(s, y // 2)


SIGNS = (-1.0, 1.0)
CASES: dict[str, Case] = {
    "logistic": Case(Logistic(), SIGNS, logistic),
    "shifted logistic": Case(Shifted(Logistic(), -1.25), SIGNS, shifted_logistic),
    "clipped logistic": Case(ClippedLogistic(0.5), SIGNS, clipped_logistic(0.5)),
    "tightly clipped logistic": Case(ClippedLogistic(0.2), SIGNS, clipped_logistic(0.2)),
    "loosely clipped logistic": Case(ClippedLogistic(0.9), SIGNS, clipped_logistic(0.9)),
    "linear": Case(LinearLoss(), SIGNS, linear),
    "hinge": Case(Hinge(), SIGNS, hinge),
    "smoothed hinge": Case(SmoothedHinge(0.5), SIGNS, huber_margin(0.5)),
    "wide smoothed hinge": Case(SmoothedHinge(2.5), SIGNS, huber_margin(2.5)),
    "quantile": Case(
        SmoothedQuantile(0.3, 0.5, 2.0), (-2.0, -0.3, 0.0, 2.0), smoothed_check(0.3, 0.5)
    ),
    "narrow quantile": Case(
        SmoothedQuantile(0.8, 0.1, 0.5), (-0.5, 0.1, 0.5), smoothed_check(0.8, 0.1)
    ),
    "huber": Case(Huber(0.7, 2.0), (-2.0, -0.3, 0.0, 2.0), huber_residual(0.7)),
    "wide huber": Case(Huber(3.0, 0.5), (-0.5, 0.1, 0.5), huber_residual(3.0)),
    "bounded squared": Case(
        bounded_squared(score_bound=1.5, label_bound=2.0), (-2.0, 0.4, 2.0), huber_residual(3.5)
    ),
    "two classes": Case(Multinomial(2), (0.0, 1.0), cross_entropy),
    "weighted": Case(Weighted(Logistic()), (0.0, 1.0, 2.25, 3.0), weighted_logistic),
    "weighted classes": Case(Weighted(Multinomial(3)), (1.0, 2.5, 3.0, 5.0), weighted_classes),
    "four classes": Case(Multinomial(4), (0.0, 1.0, 2.0, 3.0), cross_entropy),
}
ALL = pytest.mark.parametrize("name", CASES)


def with_outputs(loss: LabelLoss, scores: np.ndarray) -> np.ndarray:
    """Scores of shape (n, K) in the shape that the loss takes."""
    return scores if loss.outputs > 1 else scores[:, 0]


@ALL
def test_value_and_derivative_are_those_of_an_independent_formula(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(5)
    k = case.loss.outputs
    scores = np.round(rng.normal(size=(40, k)) * rng.choice([0.3, 3.0, 20.0], size=(40, 1)), 3)
    scores += 1e-4 * rng.random()  # off the kinks, whose subgradient is a choice
    labels = rng.choice(case.labels, size=40)
    values = case.loss.value(with_outputs(case.loss, scores), labels)
    slopes = case.loss.derivative(with_outputs(case.loss, scores), labels).reshape(40, k)
    with mpmath.workdps(40):
        for s, y, value, slope in zip(scores, labels, values, slopes, strict=True):
            point = [mpmath.mpf(x) for x in s]
            exact = case.formula(point, y)
            assert value == pytest.approx(float(exact), rel=1e-12, abs=1e-14)
            for j in range(k):
                order = tuple(int(i == j) for i in range(k))
                partial = mpmath.diff(lambda *x, y=y: case.formula(list(x), y), tuple(point), order)
                assert slope[j] == pytest.approx(float(partial), rel=1e-11, abs=1e-15)


@ALL
def test_extreme_scores_give_finite_values_and_slopes(name: str) -> None:
    loss, labels = CASES[name].loss, CASES[name].labels
    for s, y in product((-1e150, -800.0, 0.0, 800.0, 1e150), labels):
        scores = np.full((1, loss.outputs), s)
        scores[:, 0] = -s
        shaped = with_outputs(loss, scores)
        assert np.isfinite(loss.value(shaped, np.array([y]))).all()
        assert np.isfinite(loss.derivative(shaped, np.array([y]))).all()


@pytest.mark.parametrize("loss", [Logistic(), ClippedLogistic(0.5), ClippedLogistic(0.3)], ids=str)
def test_slopes_by_margins_are_the_slopes_by_scores_and_labels(
    loss: Logistic | ClippedLogistic,
) -> None:
    scores = np.array([-np.inf, -1e4, -3.0, -1e-300, 0.0, 0.7, 40.0, 1e4, np.inf])
    for label in (-1.0, 1.0):
        margins = label * scores
        slopes = loss.margin_derivative(margins)
        assert slopes is margins  # written over them
        expected = loss.derivative(scores, np.array([label]))
        assert np.array_equal(label * slopes, expected)


@given(score=st.floats(-30, 30), sign=st.sampled_from(SIGNS), bound=st.floats(0.01, 0.99))
def test_a_cut_slope_is_the_logistic_slope_or_the_bound(
    score: float, sign: float, bound: float
) -> None:
    s, y = np.array([score]), np.array([sign])
    free, cut = Logistic().derivative(s, y)[0], ClippedLogistic(bound).derivative(s, y)[0]
    assert cut == (free if abs(free) <= bound else np.copysign(bound, free))
    assert ClippedLogistic(bound).value(s, y)[0] <= Logistic().value(s, y)[0] * (1 + 1e-12)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.5, float("nan")])
def test_a_slope_is_cut_inside_the_unit_interval(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="bound"):
        ClippedLogistic(bad)


def test_a_narrow_smoothed_hinge_keeps_its_slopes_accurate() -> None:
    width = 1e-9
    scores = 1.0 + width * np.linspace(-2, 2, 101)
    slopes = SmoothedHinge(width).derivative(scores, np.ones(101))
    for score, slope in zip(scores, slopes, strict=True):
        exact = (1 + Fraction(width) - Fraction(score)) / (2 * Fraction(width))
        assert abs(Fraction(slope) + min(Fraction(1), max(Fraction(0), exact))) <= 2**-51


@given(score=st.floats(-30, 30), sign=st.sampled_from(SIGNS), width=st.floats(1e-3, 10))
def test_smoothed_hinge_lies_above_the_hinge_by_a_quarter_width(
    score: float, sign: float, width: float
) -> None:
    s, y = np.array([score]), np.array([sign])
    gap = SmoothedHinge(width).value(s, y) - Hinge().value(s, y)
    assert -1e-12 <= gap[0] <= width / 4 + 1e-12


@given(score=st.floats(-1.5, 1.5), label=st.floats(-2.0, 2.0))
def test_bounded_squared_is_the_squared_loss_on_its_domain(score: float, label: float) -> None:
    loss = bounded_squared(score_bound=1.5, label_bound=2.0)
    s, y = np.array([score]), np.array([label])
    assert loss.value(s, y)[0] == pytest.approx(0.5 * (score - label) ** 2, rel=1e-14, abs=1e-300)
    assert loss.derivative(s, y)[0] == score - label


def test_bounded_squared_enforces_the_textbook_lipschitz_bound() -> None:
    row, ball, label = 2.0, 3.0, 5.0  # R(RB + Y) = 2(2·3 + 5)
    loss = bounded_squared(score_bound=row * ball, label_bound=label)
    shape = DataShape(("a",), 9, 4, row, Adjacency.REPLACE_ONE, RealLabels(label))
    assert shape.gradient_bound(loss) == 22


@given(score=st.floats(-40, 40), label=st.sampled_from([0, 1]))
def test_two_classes_are_logistic_regression(score: float, label: int) -> None:
    scores, sign = np.array([[0.0, score]]), np.array([2.0 * label - 1.0])
    both, one = Multinomial(2), Logistic()
    y = np.array([float(label)])
    assert both.value(scores, y) == pytest.approx(one.value(scores[:, 1], sign), rel=1e-12)
    slopes = both.derivative(scores, y)[0]
    assert slopes[1] == pytest.approx(one.derivative(scores[:, 1], sign)[0], rel=1e-12, abs=1e-15)
    assert slopes[0] == pytest.approx(-slopes[1], rel=1e-12, abs=1e-15)


Points = tuple[np.ndarray, ...]
Quantity = Callable[[LabelLoss, Points, Points], np.ndarray]


def gradients(loss: LabelLoss, row: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradients (B, d·K) of rows (B, d) cut to the unit ball, at matrices w (B, d·K)."""
    row = row / np.maximum(1.0, np.linalg.norm(row, axis=-1, keepdims=True))
    matrices = w.reshape(len(w), WIDTH, loss.outputs)
    scores = np.einsum("bd,bdk->bk", row, matrices)
    slopes = loss.derivative(with_outputs(loss, scores), y).reshape(scores.shape)
    return np.einsum("bd,bk->bdk", row, slopes).reshape(len(w), -1)


def length(loss: LabelLoss, points: Points, labels: Points) -> np.ndarray:
    row, _, w, _ = points
    return np.linalg.norm(gradients(loss, row, w, labels[0]), axis=-1)


def pair_difference(loss: LabelLoss, points: Points, labels: Points) -> np.ndarray:
    row, other, w, _ = points
    here, there = gradients(loss, row, w, labels[0]), gradients(loss, other, w, labels[1])
    return np.linalg.norm(here - there, axis=-1)


def label_difference(loss: LabelLoss, points: Points, labels: Points) -> np.ndarray:
    row, _, w, _ = points
    here, there = gradients(loss, row, w, labels[0]), gradients(loss, row, w, labels[1])
    return np.linalg.norm(here - there, axis=-1)


def gradient_change(loss: LabelLoss, points: Points, labels: Points) -> np.ndarray:
    """The change of a gradient per unit of the model, over distances that rounding allows."""
    row, _, w, step = points
    step = step * np.maximum(1.0, 1e-4 / np.linalg.norm(step, axis=-1, keepdims=True))
    apart = np.linalg.norm((w + step) - w, axis=-1)
    moved = gradients(loss, row, w + step, labels[0]) - gradients(loss, row, w, labels[0])
    return np.linalg.norm(moved, axis=-1) / apart


CONSTANTS: dict[str, tuple[Quantity, Callable[[LabelLoss], Fraction | None]]] = {
    "length": (length, lambda loss: loss.derivative_bound),
    "pair": (pair_difference, lambda loss: 2 * loss.derivative_bound),
    "label": (label_difference, lambda loss: loss.label_gap_bound),
    "change": (gradient_change, lambda loss: loss.curvature_bound),
}


def largest_found(
    case: Case, quantity: Quantity, *, starts: int = 3000, polished: int = 2, seed: int = 0
) -> float:
    """The largest value of a quantity that a search over rows, models and labels finds."""
    rng, k = np.random.default_rng(seed), case.loss.outputs
    sizes = np.cumsum([WIDTH, WIDTH, WIDTH * k])
    x = rng.normal(size=(starts, 2 * WIDTH + 2 * WIDTH * k))
    x[:, sizes[1] : sizes[2]] *= 10.0 ** rng.uniform(-1, 3, size=(starts, 1))
    x[:, sizes[2] :] *= 10.0 ** rng.uniform(-3, 1, size=(starts, 1))
    chosen = rng.choice(case.labels, size=(2, starts))

    def value(v: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return quantity(case.loss, tuple(np.split(v, sizes, axis=-1)), tuple(labels))

    found = value(x, chosen)
    best = float(found.max())
    for i in np.argsort(found)[-polished:]:

        def objective(v: np.ndarray, i: int = i) -> float:
            return -float(value(v[None], chosen[:, [i]])[0])

        climbed = minimize(objective, x[i], method="Nelder-Mead", options={"maxiter": 800})
        best = max(best, -float(climbed.fun))
    return best


def check_constant(name: str, constant: str, **search: int) -> None:
    quantity, bound_of = CONSTANTS[constant]
    bound, found = bound_of(CASES[name].loss), largest_found(CASES[name], quantity, **search)
    if bound is None:
        assert found > 1e3
    else:
        assert found <= float(bound) + 1e-9
        assert found >= 0.99 * float(bound)


@ALL
@pytest.mark.parametrize("constant", quick(CONSTANTS.keys() - {"pair"}, CONSTANTS))
def test_constants_are_attained_and_never_exceeded(name: str, constant: str) -> None:
    check_constant(name, constant)


@ALL
def test_losses_are_convex_in_the_score(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(8)
    k, labels = case.loss.outputs, rng.choice(case.labels, size=5000)
    sizes = 10.0 ** rng.uniform(-3, 2, size=(5000, 1))
    here, there = sizes * rng.normal(size=(2, 5000, k))
    slopes = [
        case.loss.derivative(with_outputs(case.loss, scores), labels).reshape(5000, k)
        for scores in (here, there)
    ]
    # slopes never turn against the way from one score to another
    along = ((slopes[1] - slopes[0]) * (there - here)).sum(axis=1)
    assert along.min() >= -1e-12 * sizes.max()
    if case.loss.curvature_bound != 0:
        assert along.max() > 0.1


@pytest.mark.slow
@ALL
@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants_withstand_a_long_search(name: str, constant: str) -> None:
    for seed in range(1, 4):
        check_constant(name, constant, starts=20_000, polished=8, seed=seed)


@ALL
def test_constants_are_exact_rationals_for_the_declared_labels(name: str) -> None:
    case = CASES[name]
    assert isinstance(case.loss.derivative_bound, Fraction)
    assert isinstance(case.loss.label_gap_bound, Fraction)
    case.loss.label_domain.require(np.array(case.labels))


def test_the_multinomial_bound_is_the_root_of_two_rounded_up() -> None:
    bound = Multinomial(3).derivative_bound
    assert 0 <= bound**2 - 2 <= Fraction(1, 2**90)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_losses_refuse_parameters_that_are_not_positive(bad: float) -> None:
    for make in (
        lambda: SmoothedHinge(bad),
        lambda: SmoothedQuantile(0.5, bad, 1.0),
        lambda: SmoothedQuantile(0.5, 0.1, bad),
        lambda: Huber(bad, 1.0),
        lambda: Huber(1.0, bad),
        lambda: bounded_squared(score_bound=bad, label_bound=1.0),
        lambda: bounded_squared(score_bound=1.0, label_bound=bad),
    ):
        with pytest.raises(InvalidParameter, match="in \\(0, inf\\)"):
            make()


@pytest.mark.parametrize("bad", [0, 1, 2.0, True])
def test_classes_are_at_least_two(bad: int) -> None:
    with pytest.raises(InvalidParameter, match="whole number in \\[2, inf\\)"):
        Multinomial(bad)


def test_losses_say_which_labels_they_are_defined_for() -> None:
    assert Multinomial(3).label_domain == ClassLabels(3)
    assert Huber(1.0, 2.0).label_domain == RealLabels(2.0)
    for loss in (Logistic(), LinearLoss(), Hinge(), SmoothedHinge()):
        assert loss.label_domain == SignLabels()


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.5, float("nan")])
def test_a_quantile_has_a_level_between_0_and_1(bad: float) -> None:
    with pytest.raises(InvalidParameter, match=r"level=.* must be in \(0, 1\)"):
        SmoothedQuantile(bad, 0.1, 1.0)


@pytest.mark.parametrize("bound", [0.3, 0.5, 0.9])
def test_a_cut_losses_probability_is_that_of_least_expected_loss(bound: float) -> None:
    loss, none = ClippedLogistic(bound), np.zeros(0)
    assert loss.probability(none).shape == (0,)
    for chance in (0.55, 0.7, 0.95, 0.2):

        def expected(s: np.ndarray, chance: float = chance) -> float:
            yes, no = (loss.value(s, np.full(1, y)) for y in (1.0, -1.0))
            return float((chance * yes + (1 - chance) * no)[0])

        best = minimize(expected, np.zeros(1), method="Nelder-Mead", options={"xatol": 1e-10})
        assert loss.probability(best.x)[0] == pytest.approx(chance, abs=1e-4)
    scores = np.array([-800.0, -1.0, 0.0, 1.0, 800.0])
    found = loss.probability(scores)
    assert found[0] == 0.0
    assert found[-1] == 1.0
    assert found + found[::-1] == pytest.approx(np.ones(5), abs=1e-15)
    assert np.all(np.diff(found) >= 0.0)


def test_a_loss_that_is_hardly_cut_has_the_logistic_probability() -> None:
    scores = np.linspace(-5.0, 5.0, 11)
    near = ClippedLogistic(1.0 - 1e-12).probability(scores)
    assert near == pytest.approx(1.0 / (1.0 + np.exp(-scores)), abs=1e-11)
