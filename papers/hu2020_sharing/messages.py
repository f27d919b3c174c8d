"""S-3 and S-6: what a published round tells of features, and of labels.

Noise on the coefficients x, in R^{d_m}, reaches the scores D (x + xi) through D itself: they lie in
the column space of D whatever the noise, and two equal rows have equal scores with probability 1. A
neighbour that makes the rows unequal gives that event probability 0, so that no epsilon is finite.
The dual variable y_i is the slope of the loss at a record's score, whose sign is the label's, and
is sent to all without noise.
"""

import numpy as np

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.auditor import EpsilonPromise
from ...audits.claims.claim import Counterexample
from ...audits.claims.structure import AccessPromise
from ...audits.datasets import VerticalAuditDataset
from ...mechanisms.curators import SamplingCurator
from ...mechanisms.events import Event
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ...solvers.losses import Logistic
from ...solvers.sharing import SharingState
from .column import standing_pair
from .setting import SharingSetting, claim, planned_round, published

_CLOSE = 1e-9
"""Relative difference that counts as equal: rounding only."""


def _one_party(
    s: SharingSetting, rows: FloatArray, *, label: float, trials: int, seed: int
) -> SharingState:
    """A published round of one party with these rows; the first record has this label.

    Args:
        s: the parameters.
        rows: of the one party, shape (n, 2).
        label: of the first record; all others have 1.
        trials: runs at once.
        seed: of the noise.
    """
    labels = np.ones(len(rows))
    labels[0] = label
    dataset = VerticalAuditDataset(
        [rows], labels, adjacency=s.relation, parties=("party 0",), public_labels=False
    )
    curator = SamplingCurator(EventList(), SimulationSampler(seed), trials=trials)
    return published(s, 1).solve(dataset, curator)


def _scores(s: SharingSetting) -> list[Event]:
    """Return the releases of D_m (x_m + xi) in a published round."""
    return [e for e in planned_round(s) if e.context.release.startswith("scores")]


def _duals(s: SharingSetting) -> list[Event]:
    """Return the release of y in a published round."""
    return [e for e in planned_round(s) if e.context.release == "dual"]


def _equal_scores(s: SharingSetting, _: Enclosure) -> Counterexample:
    """Two equal rows have equal scores, whatever the noise on x.

    Evidence is exact (probabilities 1 and 0), and seen in runs of the published solver, up to
    rounding.
    """
    pair = standing_pair()
    sides = (pair.dataset.rows, pair.neighbour.rows)

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        rates: list[float] = []
        for offset, rows in enumerate(sides):
            ran = _one_party(s, rows, label=1.0, trials=trials, seed=seed + offset)
            v = ran.parts[..., 0, :]
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


def _score_figures(_: SharingSetting) -> dict[str, Enclosure]:
    """Return v_1 - v_2 as a function of x, under both data sets.

        coefficient of x_j in v_1 - v_2   0 for both under D; under D' that of x_2 is not

    So under D' the difference is a normal number, which is 0 with probability 0.
    """
    pair = standing_pair()
    sides = {"D": pair.dataset, "D'": pair.neighbour}
    return {
        f"coefficient of x_{j + 1} in v_1 - v_2, {name}": Enclosure.of(
            float(side.rows[0, j] - side.rows[1, j])
        )
        for name, side in sides.items()
        for j in range(2)
    }


def _score_argument(s: SharingSetting) -> tuple[str, ...]:
    """Return why noise on x leaves D x without cover in R^N."""
    return (
        "The proof takes D xi for a sample of N(0, sigma²) in R^N. By (7) the noise is added to x, "
        f"in R^{s.d_m}, and D (x + xi) lies in the column space of D, which has at most {s.d_m} of "
        f"{s.N} dimensions: {s.d_m} such vectors show it completely.",
        "Of two data sets that differ in the sign of one entry, one has two equal rows: then v_1 = "
        "v_2 with probability 1; under the other v_1 - v_2 = -x_2 - xi_2, and the probability is "
        "0. No epsilon, and no delta below 1, covers that.",
        "Repair: add the noise to D x, in R^N.",
    )


def _dual_of(s: SharingSetting, label: float) -> float:
    """y_i of a record with this label, where scores plus y/rho come to u.

    Found by the solver's own step for the dual variable, not by a formula of its own.
    """
    dataset = VerticalAuditDataset(
        [np.zeros((1, 1))],
        np.array([label]),
        adjacency=s.relation,
        parties=("party 0",),
        public_labels=False,
    )
    dual = dataset.dual(Logistic(), np.array([s.rho * s.u]), penalty=s.rho, tolerance=1e-11)
    curator = SamplingCurator(EventList(), SimulationSampler(0))
    found = curator.release_unprotected(dual, reason="shown to an audit", round=1, release="dual")
    return float(found.ravel()[0])


def _sign_of_dual(s: SharingSetting, _: Enclosure) -> Counterexample:
    """Return the event y_1 < 0, which shows the label of the first record.

    The label of the first record is all that differs between the two data sets.
    """
    rows = standing_pair().dataset.rows

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        rates: list[float] = []
        for offset, label in enumerate((1.0, -1.0)):
            dual = _one_party(s, rows, label=label, trials=trials, seed=seed + offset).dual
            rates.append(float(np.mean(dual[..., 0] < 0)))
        return rates[0], rates[1]

    return Counterexample(
        f"rows {np.round(rows, 6).tolist()}; the first record's label is 1 or -1",
        "y_1 < 0 in the first round",
        Enclosure.of(1),
        Enclosure.of(0),
        rerun,
    )


def _dual_argument(s: SharingSetting) -> tuple[str, ...]:
    """Return why the sign of y is the label."""
    positive, negative = _dual_of(s, 1.0), _dual_of(s, -1.0)
    return (
        "By (8) and (9) y = grad l(z). For logistic loss y_i = -Y_i/(1 + exp(Y_i z_i)), whose sign "
        f"is -Y_i: at u = {s.u:g} it is {positive:.6g} for label 1 and {negative:.6g} for label "
        "-1. Line 12 sends it to every party in the first round.",
        "Repair: public labels, or noise on y; a label moves y_i by at most 1.",
    )


def _sharing_argument(s: SharingSetting) -> tuple[str, ...]:
    """Return what the shared numbers tell."""
    return (
        f"D_m x_m of {s.d_m} rounds with independent x_m spans the column space of D_m: all inner "
        f"products of its {s.N} rows are then known up to one invertible map of {s.d_m} "
        "dimensions, and whether two rows are equal is known after one round.",
    )


FEATURES = claim(
    "S-3",
    "noise in parameter space",
    "noise sigma = sqrt(2 ln(1.25/delta)) C/epsilon on x_m makes D_m (x_m + xi) "
    "(epsilon, delta)-DP",
    "Theorem 1, equation 7",
    EpsilonPromise(
        plan=_scores,
        counterexample=_equal_scores,
        figures=_score_figures,
        argument=_score_argument,
    ),
)
"""Fails, with infinite epsilon: noise in parameter space hides no row.

The paper: Theorem 1's proof takes D_m xi for a sample of N(0, sigma²) in R^N, which has rank d_m <
N. Evidence: two rows that are equal in one data set and not in the other, one sign apart; the event
"equal scores" has probability 1 and 0. Enough, because no epsilon, and no delta below 1, covers
such an event.
"""

LABELS = claim(
    "S-6",
    "labels",
    "the messages protect the data, though y is sent to every party",
    "Algorithm 1, line 12",
    EpsilonPromise(
        plan=_duals,
        counterexample=_sign_of_dual,
        figures=lambda s: {
            "y_i, label 1": Enclosure.of(_dual_of(s, 1.0)),
            "y_i, label -1": Enclosure.of(_dual_of(s, -1.0)),
        },
        argument=_dual_argument,
    ),
    adjacency=None,
)
"""Fails, with infinite epsilon: the sign of y shows the label in the first round.

The paper: line 12 of Algorithm 1 sends y to every party. For logistic loss y_i = -Y_i/(1 + exp(Y_i
z_i)); a replaced label turns its sign, with certainty.
"""

SHARING = claim(
    "S-9",
    "sharing without noise",
    "one number a sample and round is shared, no feature: the risk of leakage is minimised",
    "abstract",
    AccessPromise(_scores, argument=_sharing_argument),
    attack=lambda case: _equal_scores(case.setting, Enclosure.of(0)),
)
"""Unaccounted access: what is shared without noise determines rows up to one linear map.

The paper: the abstract. One round suffices to tell whether two rows are equal, which is the event
of S-3 without any noise.
"""
