"""The claims of ADMM sharing (Hu, Liu, Ge et al. 2020, features held by several parties)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from scipy.stats import chi2

from ...accounting.conversions import (
    advanced_composition,
    classical_noise_multiplier,
    epsilon_from_zcdp,
)
from ...accounting.enclosure import Enclosure, ball_of, precision
from ...accounting.gaussian import mu_from_epsilon_delta
from ...accounting.guarantee import guarantee
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import PlanningCurator, SamplingCurator
from ...mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SeededSampler
from ...mechanisms.sensitivity import Sensitivity, vertical_predictions
from ...mechanisms.vertical_data import VerticalDataset, VerticalShape
from ...solvers.losses import Logistic
from ...solvers.sharing import (
    PublishedSharingAdmm,
    SharingAdmm,
    SharingState,
    lemma_1_bound,
    published_parameter_noise,
)
from ..falsifier import Falsification, FlippedColumn, Neighbours, SensitivityLemma, Table
from ..neighbours import NeighbourPair
from .attack import Attack, promised_by_mu
from .auditor import EpsilonPromise, SensitivityPromise, gaussian_steps
from .claim import Case, Claim, Counterexample, Paper, ThreatModel
from .lemma import LemmaPromise
from .structure import AssumptionPromise, ConstantsPromise, RegimePromise
from .sweep import Sweep

__all__ = ["PAPER", "SharingSetting", "standing_pair"]

_BITS = 128
_MOVING = 3
_MOST = {"d_m": 10**6, "M": 50, "N": 10**8, "T": 500, "ones": 10**6}
_TINY = 1e-9
_LARGE = 1e6
_CLOSE = 1e-9
# where noise is large, no smaller gradient norm can be certified; it is priced
_ATTACK_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class SharingSetting:
    """The paper's parameters; by default its a9a experiment, and theirs where it names none.

    Args:
        d_m: features of the party at hand.
        M: parties.
        N: records.
        T: rounds.
        rho: penalty.
        lam: lambda, the weight of R(x) = |x|²/2.
        c1, b1: bounds on R'' and on the norms of the iterates (Assumption 1).
        epsilon, delta: of one release; of the whole run in S-R.
        delta_prime: what Corollary 1 adds to T delta.
        B, b, lam_m, tau: slope bound, radius, modulus and tolerance of the repair.
        u: score plus y/rho at which S-6 shows a dual variable.
        ones: equal entries of a row that are not zero (a9a: 14).
        distance: of neighbouring matrices.
        public_labels: whether everybody knows the labels.
        zero_out: whether S-7's neighbours replace a record by a null record.
    """

    d_m: int = 66
    M: int = 2
    N: int = 32561
    T: int = 20
    rho: float = 1.0
    lam: float = 1e-3
    c1: float = 1.0
    b1: float = 1.0
    epsilon: float = 1.0
    delta: float = 1e-5
    delta_prime: float = 1e-5
    B: float = 1.0
    b: float = 1.0
    lam_m: float = 0.1
    tau: float = 1e-9
    u: float = 2.5
    ones: int = 14
    distance: float = 1.0
    public_labels: bool = False
    zero_out: bool = False

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            require_positive_int(name, value)
            if value > most:
                raise InvalidParameter(name, value, f"in [1, {most}]")
        require_open_unit("delta", self.delta)
        require_open_unit("delta_prime", self.delta_prime)
        for name in ("rho", "lam", "c1", "b1", "epsilon", "B", "b", "lam_m", "tau", "distance"):
            require_positive(name, getattr(self, name))
            if not 1e-12 <= getattr(self, name) <= 1e12:
                raise InvalidParameter(name, getattr(self, name), "in [1e-12, 1e12]")
        require_nonnegative("size of u", abs(self.u))
        if not abs(self.u) <= _LARGE:
            raise InvalidParameter("u", self.u, f"in [-{_LARGE:g}, {_LARGE:g}]")

    @property
    def relation(self) -> Adjacency:
        """The record-level relation of S-7 and S-R."""
        return Adjacency.ZERO_OUT_ONE if self.zero_out else Adjacency.REPLACE_ONE

    def shape(self, *, public_labels: bool) -> VerticalShape:
        """Return what is public about the data."""
        parties = tuple(f"party {m}" for m in range(self.M))
        widths = (self.d_m,) * self.M
        return VerticalShape(parties, self.N, widths, 1.0, self.relation, public_labels)


def _lemma_1(s: SharingSetting, size: float) -> float:
    return lemma_1_bound(
        features=s.d_m,
        parties=s.M,
        penalty=s.rho,
        regularisation=s.lam,
        curvature=s.c1,
        size=size,
    )


def _step(s: SharingSetting, table: Table, z: FloatArray) -> FloatArray:
    """The minimiser (6) with R = |x|²/2, y = 0 and nothing from other parties."""
    d = table.rows
    curvature = s.rho * d.T @ d + s.lam * np.eye(d.shape[1])
    return np.asarray(np.linalg.solve(curvature, s.rho * d.T @ z), dtype=np.float64)


def _sizes(s: SharingSetting, pair: Neighbours) -> float:
    """b_1: the largest norm that Assumption 1.1 has to cover at this pair."""
    steps = [_step(s, side, pair.public) for side in (pair.dataset, pair.neighbour)]
    return float(max(np.linalg.norm(v) for v in (*steps, pair.public)))


def _column_lemma(s: SharingSetting) -> SensitivityLemma:
    """Lemma 1. Columns 3 to d_m have one unit row each, no input, and so x = 0: left out here."""
    return SensitivityLemma(
        released=lambda table, z: np.asarray(table.rows @ _step(s, table, z)),
        domain=FlippedColumn(features=2, moving=_MOVING, distance=s.distance),
        claimed=lambda pair: _lemma_1(s, _sizes(s, pair)),
    )


def standing_pair() -> Neighbours:
    """Return rows (√3/2, ±1/2), (√3/2, 1/2), (1, 0) with z = (1, 1, 0): one sign flips."""
    rows = np.array([[sqrt(0.75), 0.5], [sqrt(0.75), 0.5], [1.0, 0.0]])
    flipped = rows.copy()
    flipped[0, 1] *= -1
    labels = np.ones(len(rows))
    return Neighbours(Table(rows, labels), Table(flipped, labels), np.array([1.0, 1.0, 0.0]))


def _described(s: SharingSetting, found: Falsification) -> str:
    sides = [np.round(side.rows, 6).tolist() for side in (found.pair.dataset, found.pair.neighbour)]
    return (
        f"columns 1 and 2 hold {sides[0]} or {sides[1]}, the other {s.d_m - 2} columns one unit "
        f"row each; z = {np.round(found.pair.public, 6).tolist()} there and 0 elsewhere, y = 0, "
        f"R = |x|²/2, rho = {s.rho:g}, lambda = {s.lam:g}"
    )


def _column_figures(s: SharingSetting) -> dict[str, Enclosure]:
    lemma, pair = _column_lemma(s), standing_pair()
    change, bound = lemma.change(pair), lemma.bound(pair)
    values = {"C": bound, "b1": _sizes(s, pair), "change": change, "change over C": change / bound}
    return {name: Enclosure.of(value) for name, value in values.items()}


def _found_figures(s: SharingSetting, found: Falsification) -> dict[str, Enclosure]:
    moved = float(np.linalg.norm(found.pair.dataset.rows - found.pair.neighbour.rows))
    return {
        **_column_figures(s),
        "C at b1 = 1": Enclosure.of(_lemma_1(s, 1.0)),
        "|D - D'|, pair found": Enclosure.of(moved),
        "change over C, pair found": Enclosure.of(found.factor),
    }


def _column_argument(s: SharingSetting) -> tuple[str, ...]:
    f = {name: value.upper_float for name, value in _column_figures(s).items()}
    return (
        "The proof takes |(D^T D)^-1| for 1/d_m; unit rows fix the trace of D^T D only, and its "
        "least eigenvalue can be 0. It also drops |D_k| <= sqrt(N), and mistakes R'' for R'.",
        "Rows (√3/2, 1/2), (√3/2, 1/2), (1, 0) in two columns, unit vectors in the others, "
        "z = (1, 1, 0, ...): flipping the sign of one entry, which is a change of norm 1 in one "
        f"column, moves D x by {f['change']:.6g}. Lemma 1 says C = {f['C']:.6g}: "
        f"{f['change over C']:.4g} times less, and the more the more columns there are.",
    )


def _unrelated(s: SharingSetting) -> str | None:
    """Whether a replaced record is a neighbour: one column differs, by `distance` at most."""
    columns = min(s.d_m, s.ones)
    row = np.zeros((1, s.d_m if s.d_m <= 1000 else 1000))
    row[0, :columns] = 1 / sqrt(columns)
    moved = 2 * row
    differing = int(np.any(moved != 0, axis=0).sum())
    length = float(np.linalg.norm(moved))
    flips = int(s.distance**2 * columns / 4 * (1 + _CLOSE))
    if differing == 1 and length <= s.distance * (1 + _CLOSE):
        return None
    told = f"at most {flips} signs of a column may flip" if flips else "no neighbour exists"
    return (
        f"rows of {columns} equal entries: {told}; a record turned round differs in {differing} "
        f"columns by {length:.3g}, beyond {s.distance:g}: nothing is said of records"
    )


def _plan(s: SharingSetting, solver: SharingAdmm | PublishedSharingAdmm) -> list[Event]:
    """The events of a run without data; labels are public unless the paper's are not."""
    curator = PlanningCurator()
    solver.solve(VerticalDataset.planned(s.shape(public_labels=s.public_labels)), curator)
    return curator.events


def _published(s: SharingSetting, rounds: int) -> PublishedSharingAdmm:
    """The paper's algorithm; the repair's ball and cut are too large to matter."""
    algorithm = SharingAdmm(
        rounds,
        0.0,
        penalty=s.rho,
        regularisation=s.lam,
        slope_bound=_LARGE,
        radius=_LARGE,
        tolerance=1e-6,
    )
    noise = published_parameter_noise(_lemma_1(s, s.b1), epsilon=s.epsilon, delta=s.delta)
    return PublishedSharingAdmm(algorithm, noise)


def _scores(s: SharingSetting) -> list[Event]:
    """What a published round lets out of D_m."""
    return [e for e in _plan(s, _published(s, 1)) if e.context.release.startswith("scores")]


def _duals(s: SharingSetting) -> list[Event]:
    return [e for e in _plan(s, _published(s, 1)) if e.context.release == "dual"]


def _run(
    s: SharingSetting, block: FloatArray, label: float, *, trials: int, seed: int
) -> SharingState:
    """One published round of one party with these rows; the first record has this label."""
    labels = np.ones(len(block))
    labels[0] = label
    dataset = VerticalDataset(
        [block], labels, adjacency=s.relation, parties=("party 0",), public_labels=False
    )
    curator = SamplingCurator(EventList(), SeededSampler(seed), trials=trials)
    return _published(s, 1).solve(dataset, curator)


def _column_space(s: SharingSetting, _: Enclosure) -> Counterexample:
    """Two equal rows have equal scores, whatever the noise on x."""
    pair = standing_pair()
    sides = (pair.dataset.rows, pair.neighbour.rows)

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        rates: list[float] = []
        for offset, rows in enumerate(sides):
            v = _run(s, rows, 1.0, trials=trials, seed=seed + offset).parts[..., 0, :]
            scale = np.maximum(np.abs(v[..., 0]), np.abs(v[..., 1]))
            rates.append(float(np.mean(np.abs(v[..., 0] - v[..., 1]) <= _CLOSE * scale)))
        return rates[0], rates[1]

    return Counterexample(
        f"rows {np.round(sides[0], 6).tolist()} or {np.round(sides[1], 6).tolist()}: one column, "
        "one sign, distance 1",
        "v_1 = v_2 for the scores v = D (x + xi)",
        Enclosure.of(1),
        Enclosure.of(0),
        rerun,
    )


def _space_figures(s: SharingSetting) -> dict[str, Enclosure]:
    pair = standing_pair()
    sides = {"D": pair.dataset, "D'": pair.neighbour}
    return {
        f"coefficient of x_{j + 1} in v_1 - v_2, {name}": Enclosure.of(
            float(side.rows[0, j] - side.rows[1, j])
        )
        for name, side in sides.items()
        for j in range(2)
    }


def _space_argument(s: SharingSetting) -> tuple[str, ...]:
    return (
        "The proof takes D xi for a sample of N(0, sigma²) in R^N. By (7) the noise is added to x, "
        f"in R^{s.d_m}, and D (x + xi) lies in the column space of D, which has at most {s.d_m} of "
        f"{s.N} dimensions: {s.d_m} such vectors show it completely.",
        "Of two data sets that differ in the sign of one entry, one has two equal rows: then v_1 = "
        "v_2 with probability 1; under the other v_1 - v_2 = -x_2 - xi_2, and the probability is "
        "0. No epsilon, and no delta below 1, covers that.",
        "Repair: add the noise to D x, in R^N.",
    )


def _composed(s: SharingSetting) -> Enclosure:
    found = advanced_composition(
        epsilon=s.epsilon, delta=s.delta, steps=s.T, delta_slack=s.delta_prime
    )
    return found.epsilon


def _total_delta(s: SharingSetting) -> float:
    return s.T * s.delta + s.delta_prime


def _classical(s: SharingSetting) -> float:
    at_one = classical_noise_multiplier(epsilon=1, delta=s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(at_one) / ball_of(s.epsilon)).upper_float


def _repaired(s: SharingSetting, noise_multiplier: float, rounds: int) -> SharingAdmm:
    return SharingAdmm(
        rounds,
        noise_multiplier,
        penalty=s.rho,
        regularisation=s.lam_m,
        slope_bound=s.B,
        radius=s.b,
        tolerance=s.tau,
    )


def _known_labels(s: SharingSetting) -> SharingSetting:
    return replace(s, public_labels=True)


def _one_party(s: SharingSetting) -> list[Event]:
    """T Gaussian steps with Theorem 1's noise, as if it were added in R^N."""
    alone = _known_labels(replace(s, M=1))
    return _positive(_plan(alone, _repaired(alone, _classical(s), s.T)))


def _positive(events: Sequence[Event]) -> list[Event]:
    """The events that cost something: with public labels the dual variable is free."""
    steps = zip(events, gaussian_steps(events), strict=True)
    return [event for event, step in steps if step.sensitivity.squared > 0]


def _composition_figures(s: SharingSetting) -> dict[str, Enclosure]:
    truth = guarantee(_one_party(s), delta=_total_delta(s))
    return {
        "Corollary 1": _composed(s),
        "by zCDP": epsilon_from_zcdp(rho=truth.rho, delta=_total_delta(s)),
        "exact": truth.epsilon,
    }


def _composition_regime(s: SharingSetting) -> str | None:
    return None if s.epsilon <= 1 else f"Theorem 1 asks for epsilon={s.epsilon:g} in (0, 1]"


def _noise(s: SharingSetting) -> float:
    """Of every coordinate of x, from the planned events of a published round."""
    kept = [e for e in _plan(s, _published(s, 1)) if e.context.release.endswith("kept")]
    (step, *_) = gaussian_steps(kept)
    return step.noise_std


def _unbounded(s: SharingSetting) -> float:
    """P(|x + xi| > b_1): least where x = 0 (Anderson's inequality)."""
    noise = _noise(s)
    return float(chi2.sf((s.b1 / noise) ** 2, s.d_m)) if noise else 0.0


def _dual_of(s: SharingSetting, label: float) -> float:
    """y_i of a record with this label, where scores plus y/rho come to u."""
    dataset = VerticalDataset(
        [np.zeros((1, 1))],
        np.array([label]),
        adjacency=s.relation,
        parties=("party 0",),
        public_labels=False,
    )
    dual = dataset.dual(Logistic(), np.array([s.rho * s.u]), penalty=s.rho, tolerance=1e-11)
    curator = SamplingCurator(EventList(), SeededSampler(0))
    found = curator.release_unprotected(dual, reason="shown to an audit", round=1, release="dual")
    return float(found.ravel()[0])


def _label_event(s: SharingSetting, _: Enclosure) -> Counterexample:
    rows = standing_pair().dataset.rows

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        rates: list[float] = []
        for offset, label in enumerate((1.0, -1.0)):
            dual = _run(s, rows, label, trials=trials, seed=seed + offset).dual
            rates.append(float(np.mean(dual[..., 0] < 0)))
        return rates[0], rates[1]

    return Counterexample(
        f"rows {np.round(rows, 6).tolist()}; the first record's label is 1 or -1",
        "y_1 < 0 in the first round",
        Enclosure.of(1),
        Enclosure.of(0),
        rerun,
    )


def _label_argument(s: SharingSetting) -> tuple[str, ...]:
    positive, negative = _dual_of(s, 1.0), _dual_of(s, -1.0)
    return (
        "By (8) and (9) y = grad l(z). For logistic loss y_i = -Y_i/(1 + exp(Y_i z_i)), whose sign "
        f"is -Y_i: at u = {s.u:g} it is {positive:.6g} for label 1 and {negative:.6g} for label "
        "-1. Line 12 sends it to every party in the first round.",
        "Repair: public labels, or noise on y; a label moves y_i by at most 1.",
    )


def _sensitivity(s: SharingSetting, relation: Adjacency, tolerance: float) -> Sensitivity:
    return vertical_predictions(
        row_bound=1,
        slope_bound=s.B,
        radius=s.b,
        penalty=s.rho,
        modulus=s.lam_m,
        tolerance=tolerance,
        adjacency=relation,
    )


def _record_bound(s: SharingSetting) -> list[Fraction]:
    """sqrt((B + rho b)²/(rho lambda m_R) + 4 b²), half of it for a null record; plus tau's part."""
    with precision(_BITS):
        rho, modulus, b = (ball_of(v) for v in (s.rho, s.lam_m, s.b))
        bound = ((ball_of(s.B) + rho * b) ** 2 / (rho * modulus) + 4 * b**2).sqrt()
        bound = bound / (2 if s.zero_out else 1) + ball_of(s.tau) / (rho * modulus).sqrt()
        return [Fraction(Enclosure.from_ball(bound).upper_float)] * s.M


def _one_round(s: SharingSetting) -> list[Event]:
    known = _known_labels(s)
    return _positive(_plan(known, _repaired(known, 1.0, 1)))


def _repaired_multiplier(s: SharingSetting) -> float:
    """sqrt(M T)/mu for the whole run's (epsilon, delta), rounded up."""
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(s.M * s.T).sqrt() / ball_of(mu)).upper_float


def _repair(s: SharingSetting) -> list[Event]:
    known = _known_labels(s)
    return _plan(known, _repaired(known, _repaired_multiplier(s), s.T))


def _two_records(s: SharingSetting) -> NeighbourPair:
    """Two orthogonal unit rows of one party, one of which is replaced; labels are public."""

    def side(first: tuple[float, float]) -> Any:
        rows = np.array([first, (0.0, 1.0)])
        return VerticalDataset(
            [rows], np.ones(2), adjacency=s.relation, parties=("party 0",), public_labels=True
        )

    told = "rows (1,0), (0,1) or (0,-1), (0,1), labels 1, one party"
    return NeighbourPair(side((1.0, 0.0)), side((0.0, -1.0)), None, told)


def _attack(
    s: SharingSetting, noise_multiplier: float, rounds: int, promised: tuple[float, float]
) -> Attack:
    """The repaired algorithm on two records; later messages' gap depends on earlier ones."""
    known = _known_labels(replace(s, M=1, zero_out=False, tau=max(s.tau, _ATTACK_TOLERANCE)))
    solve: Any = _repaired(known, noise_multiplier, rounds).solve
    told = f"{rounds} rounds of one party with noise of {noise_multiplier:.6g} sensitivities"
    return Attack(solve, _two_records(known), *promised, told)


def _record_attack(case: Case[SharingSetting]) -> Attack:
    # the first round's prediction is 0 for all data
    promised = promised_by_mu(2, case.setting.delta), case.setting.delta
    return _attack(case.setting, 1.0, 2, promised)


def _composition_attack(case: Case[SharingSetting]) -> Attack:
    s = case.setting
    promised = _composed(s).lower_float, _total_delta(s)
    return _attack(s, _classical(s), s.T, promised)


def _repair_attack(case: Case[SharingSetting]) -> Attack:
    s = replace(case.setting, M=1)
    return _attack(s, _repaired_multiplier(s), s.T, (s.epsilon, s.delta))


def _repair_figures(s: SharingSetting) -> dict[str, Enclosure]:
    (event, *_) = _positive(_repair(s))
    assert isinstance(event.mechanism, GaussianStep)
    return {"sigma": Enclosure.of(event.mechanism.noise_std)}


def _assumed_bound(s: SharingSetting) -> dict[str, Enclosure]:
    return {"C at this b1 and c1": Enclosure.of(_lemma_1(s, s.b1))}


_claim = partial(
    Claim,
    solver="ADMM sharing (Algorithm 1)",
    adjacency=Adjacency.REPLACE_FEATURE_COLUMN,
    threat_model=ThreatModel.ALL_MESSAGES,
)


PAPER = Paper(
    name="sharing",
    title="Hu, Liu, Ge et al. 2020: ADMM sharing over distributed features",
    setting=SharingSetting(),
    claims=(
        _claim(
            "S-1",
            "sensitivity of the scores",
            "|D x - D' x'| <= C = (3/(d_m rho)) (lambda c1 + (1 + M rho) b1), if one column "
            "differs, |D - D'| <= 1, and rows have norm 1",
            "Lemma 1, section 7.1",
            LemmaPromise(
                _column_lemma,
                described=_described,
                figures=_found_figures,
                argument=_column_argument,
            ),
        ),
        _claim(
            "S-2",
            "what a neighbour is",
            "matrices with unit rows that differ in one column by at most 1 are neighbours: "
            "privacy of that relation protects records",
            "Definition 1, Assumption 1.3",
            RegimePromise(_unrelated),
        ),
        _claim(
            "S-3",
            "noise in parameter space",
            "noise sigma = sqrt(2 ln(1.25/delta)) C/epsilon on x_m makes D_m (x_m + xi) "
            "(epsilon, delta)-DP",
            "Theorem 1, equation 7",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_scores,
                counterexample=_column_space,
                figures=_space_figures,
                argument=_space_argument,
            ),
        ),
        _claim(
            "S-4",
            "composition",
            "T rounds of (epsilon, delta)-DP are (sqrt(2 T ln(1/delta')) epsilon + T epsilon "
            "(e^epsilon - 1), T delta + delta')-DP",
            "Corollary 1",
            EpsilonPromise(
                _composed,
                delta=_total_delta,
                plan=_one_party,
                regime=_composition_regime,
                figures=_composition_figures,
            ),
            attack=_composition_attack,
        ),
        _claim(
            "S-5",
            "bounded iterates",
            "x, y and z have norms of at most b1",
            "Assumption 1.1",
            AssumptionPromise(
                "|x_m + xi| <= b1",
                _unbounded,
                figures=lambda s: {"noise of a coordinate": Enclosure.of(_noise(s))},
            ),
        ),
        _claim(
            "S-6",
            "labels",
            "the messages protect the data, though y is sent to every party",
            "Algorithm 1, line 12",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_duals,
                counterexample=_label_event,
                figures=lambda s: {
                    "y_i, label 1": Enclosure.of(_dual_of(s, 1.0)),
                    "y_i, label -1": Enclosure.of(_dual_of(s, -1.0)),
                },
                argument=_label_argument,
            ),
            adjacency=None,
        ),
        _claim(
            "S-7",
            "sensitivity to a record",
            "D x in R^N moves by at most sqrt((B + rho b)²/(rho lambda m_R) + 4 b²) if a record is "
            "replaced, half of it if it is made null, plus tau/sqrt(rho lambda m_R)",
            "ours",
            SensitivityPromise(
                _record_bound,
                plan=_one_round,
                figures=lambda s: {
                    "replace-one, exact": Enclosure.of(
                        _sensitivity(s, Adjacency.REPLACE_ONE, 0.0).root
                    ),
                    "zero-out-one, exact": Enclosure.of(
                        _sensitivity(s, Adjacency.ZERO_OUT_ONE, 0.0).root
                    ),
                },
            ),
            solver="ADMM sharing, repaired",
            adjacency=Adjacency.REPLACE_ONE,
            attack=_record_attack,
        ),
        _claim(
            "S-8",
            "the experiments",
            "noise levels are shown, without C and without an epsilon",
            "section 5, figure 3",
            ConstantsPromise(
                ("b1", "c1"),
                needed=lambda _: {},
                figures=_assumed_bound,
            ),
        ),
        _claim(
            "S-R",
            "the repair",
            "noise on D x in R^N, x in a ball, slopes cut, sqrt(M T)/mu*(epsilon, delta) "
            "sensitivities of noise, public labels: the whole run is (epsilon, delta)-DP",
            "ours",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_repair,
                figures=_repair_figures,
            ),
            solver="ADMM sharing, repaired",
            adjacency=Adjacency.REPLACE_ONE,
            attack=_repair_attack,
        ),
    ),
    sweeps=(
        Sweep(
            "S-4",
            "epsilon of a round",
            (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
            at=lambda s, epsilon: replace(s, epsilon=epsilon),
            claimed=_composed,
            certified=lambda s: guarantee(_one_party(s), delta=_total_delta(s)).epsilon,
            caption="Corollary 1 against exact composition, if noise were added in R^N.",
        ),
    ),
)
