"""The worst mechanism against the one-run bound over all numbers of guesses, by linear programming.

Among all mechanisms that are (epsilon, delta)-DP in each of m fair coins, and that say in which
order the canaries are ranked, the program finds the one whose bound exceeds epsilon most often.
Ties and randomised guesses are mixtures of orders, so that no mechanism is left out.

`worst_chance_in_full` has a variable for each vector of coins and each order. `worst_chance` has
few: bound and constraints do not change when canaries are renamed, and some best mechanism does not
either, as the average of one over all names is as good. It is given by the probability q(c) of one
order, times m!, where q depends on how many canaries of each block of ranks are in: blocks lie
between consecutive numbers of guesses. Averages over names make the sums over outputs:

    maximise   2^-m sum_c M(c) q(c) [bound(c) > epsilon]
    with       the mean of q over all coins with w ones = 1, for each w,
               the mean of (q(c) - e^epsilon q(c'))^+ over neighbours, w to w + 1 ones, <= delta,
               and the same the other way round.
"""

from collections.abc import Callable
from itertools import permutations, product
from math import comb, exp, prod

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import expit

from dpledger.audits.one_run_counts import _by_walk, _chances, _counts

Exceeds = Callable[[tuple[int, ...]], bool]


def solved(objective, above, most, equal) -> float:
    """The maximum of `objective` under `above` x <= `most`, `equal` x = 1 and x >= 0."""
    found = linprog(
        -objective, A_ub=above, b_ub=most, A_eq=equal, b_eq=np.ones(equal.shape[0]), method="highs"
    )
    assert found.status == 0, found.message
    return -float(found.fun)


def matrix(entries, columns):
    """A sparse matrix of rows, lists of pairs (column, value)."""
    rows = [row for row, each in enumerate(entries) for _ in each]
    flat = [pair for each in entries for pair in each]
    places, values = zip(*flat, strict=True)
    return sparse.csr_matrix((values, (rows, places)), shape=(len(entries), columns))


def program(weights, bad, groups, neighbours, epsilon, delta) -> float:
    """Solve one of the two programs.

    Args:
        weights: of each variable in the objective.
        bad: whether the bound is above epsilon there.
        groups: lists of pairs (variable, weight) that sum to 1.
        neighbours: for each sum that delta bounds, triples (variable, its neighbour, weight).
        epsilon, delta: of the mechanism.
    """
    size = len(weights)
    above, limits, slack = [], [], size
    for each in neighbours:
        sums = []
        for one, other, weight in each:
            above.append([(one, 1.0), (other, -exp(epsilon)), (slack, -1.0)])
            sums.append((slack, weight))
            slack += 1
        limits.append(sums)
    most = np.repeat([0.0, delta], [len(above), len(limits)])
    objective = np.zeros(slack)
    objective[:size] = np.asarray(weights) * np.asarray(bad)
    return solved(objective, matrix(above + limits, slack), most, matrix(groups, slack))


def worst_chance(m: int, each, epsilon: float, delta: float, exceeds: Exceeds) -> float:
    """The largest chance that `exceeds` says yes to the right guesses at numbers `each`."""
    steps = np.diff(each, prepend=0).tolist()
    blocks = [*steps, m - 2 * each[-1], *steps[::-1]]
    coins = list(product(*(range(size + 1) for size in blocks)))
    place = {c: i for i, c in enumerate(coins)}
    many = [prod(map(comb, blocks, c)) for c in coins]

    def right(c):
        low = np.cumsum([size - k for size, k in zip(steps, c, strict=False)])
        return tuple((low + np.cumsum(c[: -len(steps) - 1 : -1])).tolist())

    groups = [[] for _ in range(m + 1)]
    neighbours = [[] for _ in range(2 * m)]
    for c, number in zip(coins, many, strict=True):
        ones = sum(c)
        groups[ones].append((place[c], number / comb(m, ones)))
        for j, size in enumerate(blocks):
            if c[j] < size:
                other = place[(*c[:j], c[j] + 1, *c[j + 1 :])]
                weight = number * (size - c[j]) / (comb(m, ones) * (m - ones))
                neighbours[ones].append((place[c], other, weight))
                neighbours[m + ones].append((other, place[c], weight))
    bad = [exceeds(right(c)) for c in coins]
    return program(np.array(many) / 2**m, bad, groups, neighbours, epsilon, delta)


def worst_chance_in_full(m: int, each, epsilon: float, delta: float, exceeds: Exceeds) -> float:
    """The same, with a variable for each vector of coins and each order of canaries."""
    coins, orders = list(product((0, 1), repeat=m)), list(permutations(range(m)))
    place = {pair: i for i, pair in enumerate(product(coins, orders))}

    def right(c, order):
        ranked = [c[k] for k in order]
        return tuple(n - sum(ranked[:n]) + sum(ranked[m - n :]) for n in each)

    flips = [(c, (*c[:j], 1 - c[j], *c[j + 1 :])) for c in coins for j in range(m)]
    return program(
        np.full(len(place), 2.0**-m),
        [exceeds(right(c, order)) for c, order in place],
        [[(place[c, order], 1.0) for order in orders] for c in coins],
        [[(place[c, o], place[d, o], 1.0) for o in orders] for c, d in flips],
        epsilon,
        delta,
    )


def bound_above(m: int, each, epsilon: float, delta: float, confidence: float) -> Exceeds:
    """Whether the bound of right guesses exceeds epsilon."""
    return lambda right: _by_walk(right, each, m, confidence, delta)[0] > epsilon


@pytest.mark.parametrize("delta", [1e-12, 0.05])
def test_few_variables_find_what_all_orders_find(delta: float) -> None:
    case = (3, (1,), 0.49, delta)
    exceeds = bound_above(*case, 0.3)
    found = worst_chance(*case, exceeds)
    assert found == pytest.approx(worst_chance_in_full(*case, exceeds), abs=1e-9)
    assert found > 0.3  # something was looked for


# just below a point of the grid of epsilon, where the bound exceeds the truth most easily
@pytest.mark.parametrize(
    ("m", "epsilon", "delta", "confidence"),
    [
        (12, 1 / 128, 1e-12, 0.9),
        (12, 0.5, 1e-3, 0.5),
        (10, 1 / 128, 0.02, 0.5),
        (12, 1.0, 1e-12, 0.95),
        (11, 1.0, 1e-12, 0.8),
    ],
)
def test_no_mechanism_makes_the_bound_exceed_its_epsilon_more_often_than_stated(
    m: int, epsilon: float, delta: float, confidence: float
) -> None:
    case = (m, _counts(m), epsilon - 1e-9, delta)
    found = worst_chance(*case, bound_above(*case, confidence))
    assert 0 < found <= 1 - confidence


def test_the_search_finds_out_the_best_of_all_counts_without_a_correction() -> None:
    each, epsilon, error = (1, 2, 3, 4), 0.5, 0.4
    guesses, success = 2 * np.array(each), float(expit(epsilon))

    def exceeds(right):
        return bool(_chances(np.array(right), guesses, success).min() < error)

    assert worst_chance(8, each, epsilon, 1e-12, exceeds) > error


def test_the_search_finds_out_a_bound_that_forgets_delta() -> None:
    case = (12, _counts(12), 0.5 - 1e-9)
    assert worst_chance(*case, 0.05, bound_above(*case, 1e-12, 0.9)) > 0.1
    assert worst_chance(*case, 0.05, bound_above(*case, 0.05, 0.9)) <= 0.1
