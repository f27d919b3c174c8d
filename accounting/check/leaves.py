"""What one mechanism costs: rules without premises.

Every rule takes the run and its parameters, in the order of `privacy.RULES`, and returns what
follows from them.
"""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, comb, floor, isqrt
from typing import Any

from .intervals import Interval, exp_bounds, require_at_most
from .reading import (
    CertificateWrong,
    read_above,
    read_count,
    read_dyadic,
    read_kind,
    require_equal,
    require_least,
)
from .sensitivities import MEANS, Sens, means_over
from .statements import DIVIDED, HIDDEN, UNTOLD, Priv, Rules, Run

_OF_WHOM_IS_DRAWN = {"histogram", "histogram-l1", "strongly-convex-argmin"}
"""Rules under which a null record counts, or the number of those drawn does."""

MAX_ORDER = 512
"""The largest whole Rényi order of a sampled step: the sums have about as many terms."""


def _noisy(run: Run, place: Any, kind: str, norm: str, notion: str) -> Priv:
    """One mechanism with noise: (Δ/scale)² in GDP, half of it in zCDP."""
    scale = "noise_std" if norm == "l2" else "scale"
    sens, ratio = run.noise(run.at(place), kind, scale, norm)
    cost = ratio if notion == "gdp" else ratio / 2
    return Priv({place: 1}, sens.adjacency, 1, notion, (cost,))


def _gaussian_gdp(run: Run, place: Any) -> Priv:
    """Normal noise.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ------------------------------------------------------------------------------  gaussian-gdp
    Priv(f + N(0, σ²), Gdp(Δ²/σ²))

    Source: Dong, Roth, Su 2022, Theorem 2.7.
    Check: rounded_below_profile, vector_gaussian_below_profile.
    """
    return _noisy(run, place, "gaussian", "l2", "gdp")


def _gaussian_zcdp(run: Run, place: Any) -> Priv:
    """Normal noise.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ------------------------------------------------------------------------------  gaussian-zcdp
    Priv(f + N(0, σ²), Zcdp(Δ²/(2σ²)))

    Source: Bun, Steinke 2016, Lemma 2.5.
    Check: vector_gaussian_zcdp.
    """
    return _noisy(run, place, "gaussian", "l2", "zcdp")


def _discrete_gaussian_zcdp(run: Run, place: Any) -> Priv:
    """Discrete normal noise on whole numbers.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ----------------------------------------------------------------  discrete-gaussian-zcdp
    Priv(f + N_Z(0, σ²), Zcdp(Δ²/(2σ²)))

    Source: Canonne, Kamath, Steinke 2020, Theorem 14.
    Check: vector_discrete_gaussian_zcdp.
    """
    return _noisy(run, place, "discrete-gaussian", "l2", "zcdp")


def _laplace_zcdp(run: Run, place: Any) -> Priv:
    """Laplace noise is (Δ/b)-DP, and pure DP is zCDP.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh
    -----------------------------------------------------------------------------  laplace-zcdp
    Priv(f + Lap(b), Zcdp(Δ²/(2b²)))

    Source: Bun, Steinke 2016, Proposition 1.4.
    Check: vector_laplace_pure, odds_rdp.
    """
    return _noisy(run, place, "laplace", "l1", "zcdp")


def _discrete_laplace_zcdp(run: Run, place: Any) -> Priv:
    """Discrete Laplace noise on whole numbers is (Δ/b)-DP, and pure DP is zCDP.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh
    ----------------------------------------------------------------  discrete-laplace-zcdp
    Priv(f + Lap_Z(b), Zcdp(Δ²/(2b²)))

    Source: Bun, Steinke 2016, Proposition 1.4.
    Check: vector_geometric_pure, odds_rdp.
    """
    return _noisy(run, place, "discrete-laplace", "l1", "zcdp")


def _whole_order(run: Run, order: Any) -> int:
    """Return a whole Rényi order in [2, 512], and pay for a sum of that many large terms."""
    if not 2 <= read_count(order) <= MAX_ORDER:
        raise CertificateWrong(f"expected an order in [2, {MAX_ORDER}] instead got {order}")
    run.spend(order**2)
    return int(order)


def _require_moment(
    run: Run, terms: list[tuple[int, Fraction]], over: int, log_bound: Fraction
) -> None:
    """Raise unless the sum of (c / over) e^x over all terms (c, x) is at most e^log_bound."""

    def enclose(p: int) -> Interval:
        low = high = 0
        for c, x in terms:
            run.spend(p + int(max(x - log_bound, Fraction(0))) ** 2 // 256)
            ends = exp_bounds(x - log_bound, p)
            low, high = low + c * ends[c < 0] // over, high - (-c * ends[c >= 0] // over)
        return low, high

    require_at_most("moment / e^((order - 1) epsilon)", enclose, Fraction(1), run.spend)


def require_poisson(run: Run, sens: Sens) -> None:
    """Raise unless a Poisson sample of this quantity amplifies.

    A drawn record is compared with none. Under zero-out a null record stands in a cell of a
    histogram, so that a drawn one moves between two; and a minimiser is of those drawn.
    """
    if sens.adjacency not in ("add-remove-one", "zero-out-one"):
        raise CertificateWrong(f"expected add/remove or zero-out instead got {sens.adjacency}")
    if sens.adjacency == "add-remove-one" and sens.rules & MEANS:
        raise CertificateWrong("expected a sum divided by public numbers, got a renormalised mean")
    if sens.adjacency == "zero-out-one" and sens.rules & _OF_WHOM_IS_DRAWN:
        raise CertificateWrong("expected a sum to which null records add nothing in a sample")
    trust_sample(run, sens)


def trust_sample(run: Run, sens: Sens) -> None:
    """List what hiding a Poisson sample of this quantity rests on."""
    run.assumptions.add(HIDDEN)
    if sens.adjacency != "add-remove-one" and sens.reasons:
        run.assumptions.add(UNTOLD)
    if sens.rules & MEANS:
        run.assumptions.add(DIVIDED)


def poisson_rate(mechanism: Any) -> tuple[Any, Fraction]:
    """The event of a Poisson-sampled mechanism, and its rate."""
    event, rate = read_kind(mechanism, "poisson-sampled", "event", "rate")
    return event, read_dyadic(rate, Fraction(1))


def require_fixed_batch(run: Run, sens: Sens, mechanism: Any) -> None:
    """Raise unless a fixed batch amplifies under this relation, and means are over what it draws.

    Args:
        run: that rests on samples staying hidden.
        sens: of the mechanism's event, read.
        mechanism: of a fixed batch.
    """
    require_equal("adjacency", sens.adjacency, "replace-one")
    for count in means_over(mechanism["event"]["sensitivity"]["derivation"]):
        if count > mechanism["batch"]:
            batch = mechanism["batch"]
            raise CertificateWrong(f"expected means over the {batch} records drawn, got {count}")
    run.assumptions.add(HIDDEN)


def fixed_batch_share(mechanism: Any) -> tuple[Any, Fraction]:
    """The event of a mechanism on a fixed batch, and the share of the records drawn."""
    names = ("event", "batch", "records")
    event, batch, records = read_kind(mechanism, "sampled-without-replacement", *names)
    if read_count(batch) > read_count(records):
        raise CertificateWrong(f"expected a batch of at most {records} records, got {batch}")
    return event, Fraction(batch, records)


def _poisson_rdp(run: Run, place: Any, order: Any, epsilon: Any) -> Priv:
    """A Gaussian step on a Poisson sample.

    Sens(f, Δ²)    add/remove or zero-out    sample hidden, drawn with rate q
    under add/remove f divides by public numbers only    α in 2, 3, ...
    Σ_k C(α,k) q^k (1-q)^(α-k) e^(k(k-1)Δ²/(2σ²)) ≤ e^((α-1)ε), or q = 0, or Δ = 0
    ---------------------------------------------------------------------------  poisson-rdp
    Priv(PoissonSampled(f + N(0, σ²), q), Rdp(α, ε))

    The sum grows with q, which is rounded up to a multiple of 2^-128 if it has more digits. Where
    nobody is drawn, or nothing moves, it is 1.

    Source: Mironov, Talwar, Zhang 2019, Theorems 4 and 5, section 3.3.
    Check: removal_renyi, addition_renyi, poisson_renyi_at_most_sound.
    """
    event, q = poisson_rate(run.at(place))
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    require_poisson(run, sens)
    if q.denominator >> 128:
        q = Fraction(-int(-q * (1 << 128) // 1), 1 << 128)
    a, bound, n, d = _whole_order(run, order), read_above(epsilon, 0, False), *q.as_integer_ratio()
    if n and ratio:
        run.spend(a * (8 + (a * d.bit_length()) ** 2 // (1 << 21)))
        terms = [
            (comb(a, k) * n**k * (d - n) ** (a - k), k * (k - 1) * ratio / 2) for k in range(a + 1)
        ]
        _require_moment(run, terms, d**a, (a - 1) * bound)
    return Priv({place: 1}, sens.adjacency, 1, "rdp", (Fraction(a), bound))


def _fixed_batch_rdp(run: Run, place: Any, order: Any, epsilon: Any) -> Priv:
    """A Gaussian step on a batch of fixed size; ε_j = jΔ²/(2σ²), γ = batch / records.

    Sens(f, Δ²)    replace-one    batch hidden, uniform    α in 2, 3, ...
    1 + γ²C(α,2) min(4(e^ε₂-1), 2e^ε₂) + Σ_(j≥3) 2γ^j C(α,j) e^((j-1)ε_j) ≤ e^((α-1)ε), or Δ = 0
    --------------------------------------------------------------------------  fixed-batch-rdp
    Priv(SampledWithoutReplacement(f + N(0, σ²), batch, records), Rdp(α, ε))

    Source: Wang, Balle, Kasiviswanathan 2019, Theorem 9.
    Check: replaced_renyi, batch_renyi_at_most_sound.
    """
    event, share = fixed_batch_share(run.at(place))
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    require_fixed_batch(run, sens, run.at(place))
    a, bound, n, d = (
        _whole_order(run, order),
        read_above(epsilon, 0, False),
        *share.as_integer_ratio(),
    )
    pairs = comb(a, 2) * n**2 * d ** (a - 2)
    # either bound holds; the first is smaller while e^ε₂ < 2
    small = ratio <= Fraction(9, 13)
    terms = [(d**a, Fraction(0))]
    terms += [(4 * pairs, ratio), (-4 * pairs, Fraction(0))] if small else [(2 * pairs, ratio)]
    terms += [
        (2 * comb(a, j) * n**j * d ** (a - j), j * (j - 1) * ratio / 2) for j in range(3, a + 1)
    ]
    if ratio:
        _require_moment(run, terms, d**a, (a - 1) * bound)
    return Priv({place: 1}, sens.adjacency, 1, "rdp", (Fraction(a), bound))


def root_up(square: Fraction) -> Fraction:
    """A rational at or above the root: exact for squares, else within 2^-128 relatively."""
    n, d = square.numerator, square.denominator
    if isqrt(n) ** 2 == n and isqrt(d) ** 2 == d:
        return Fraction(isqrt(n), isqrt(d))
    shift = max(0, 128 - (n * d).bit_length() // 2)
    return Fraction(isqrt(n * d << 2 * shift) + 1, d << shift)


def _laplace_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """Laplace noise; ε is a witness.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh    ε² ≥ Δ²/b²
    -------------------------------------------------------------------------------  laplace-pure
    Priv(f + Lap(b), PureDp(ε))

    Source: Dwork, Roth 2014, Theorem 3.6.
    Check: vector_laplace_pure.
    Coq: laplace_pure.
    """
    sens, ratio = run.noise(run.at(place), "laplace", "scale", "l1")
    bound = read_above(epsilon, 0, False)
    require_least("epsilon²", bound**2, ratio)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def _discrete_laplace_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """Discrete Laplace noise on whole numbers, which move by whole numbers; ε is a witness.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh    ε ≥ floor(Δ)/b
    ----------------------------------------------------------------  discrete-laplace-pure
    Priv(f + Lap_Z(b), PureDp(ε))

    Source: Ghosh, Roughgarden, Sundararajan 2012: masses fall by e^(-1/b) a step.
    Check: vector_geometric_pure.
    """
    mechanism = run.at(place)
    sens, ratio = run.noise(mechanism, "discrete-laplace", "scale", "l1")
    bound, whole = read_above(epsilon, 0, False), isqrt(int(sens.squared))
    if whole:
        require_least("epsilon²", bound**2, whole**2 * ratio / sens.squared)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def _pure_step(run: Run, place: Any, epsilon: Any) -> Priv:
    """A mechanism whose log-density moves by at most Δ/b, whatever it is; ε is a witness.

    Sens(log-density, (Δ/b)²)    b > 0 fixed before the data are seen    ε² ≥ Δ²/b²
    --------------------------------------------------------------------------------  pure-step
    Priv(m, PureDp(ε))

    Source: the definition of pure differential privacy.
    Check: pure_of_losses.
    """
    sens, ratio = run.noise(run.at(place), "pure", "scale", "l1")
    bound = read_above(epsilon, 0, False)
    require_least("epsilon²", bound**2, ratio)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def randomised_truth(mechanism: Any) -> tuple[Fraction, int]:
    """The probability of the true answer, in (0, 1), and the number of answers."""
    truth, categories = read_kind(mechanism, "randomised-response", "truth", "categories")
    share = read_dyadic(truth, Fraction(1))
    if share in (0, 1):
        raise CertificateWrong("expected answers that exclude no other, got one that does")
    return share, read_count(categories, 2)


def _randomised_response_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """The true one of k answers with probability p, else any other of them; ε is a witness.

    0 < p < 1    r = p(k-1)/(1-p)    e^ε ≥ r    e^ε ≥ 1/r
    ------------------------------------------------------  randomised-response-pure
    Priv(RandomisedResponse(p, k), PureDp(ε)) under replace-one

    Source: Warner 1965: the ratio of the probabilities of an answer.
    Check: response_pure, at_most_exp_sound.
    """
    truth, categories = randomised_truth(run.at(place))
    odds, bound = truth * (categories - 1) / (1 - truth), read_above(epsilon, 0, False)
    _require_exponential("odds", [(max(odds, 1 / odds), Fraction(0))], bound, run.spend)
    return Priv({place: 1}, "replace-one", 1, "pure-dp", (bound,))


def _require_exponential(
    what: str, terms: list[tuple[Fraction, Fraction]], bound: Fraction, spend: Callable[[int], None]
) -> None:
    """Raise unless the sum of c e^x over all terms (c, x), c >= 0, is at most e^bound."""
    if all(x <= bound for c, x in terms if c) and sum(c for c, _ in terms) <= 1:
        return

    def enclose(p: int) -> Interval:
        ends = [(c, exp_bounds(x - bound, p)) for c, x in terms]
        return floor(sum(c * low for c, (low, _) in ends)), ceil(
            sum(c * high for c, (_, high) in ends)
        )

    spend(int(max([Fraction(0), *(x - bound for _, x in terms)])) ** 2 // 256)
    require_at_most(f"{what} / e^epsilon", enclose, Fraction(1), spend)


def _amplified(run: Run, place: int, sens: Sens, ratio: Fraction, q: Fraction, stated: Any) -> Priv:
    """Return pure DP of a Laplace step on a sample, ε the stated witness.

    Args:
        ratio: (sensitivity / scale)², so that its root is the ε of the step itself.
        q: the probability that a given record is in the sample.

    Source: Balle, Barthe, Gaboardi 2018, Theorems 8 and 9: ln(1 + q (e^ε₀ - 1)).
    """
    bound = read_above(stated, 0, False)
    if bound**2 < ratio:  # else it is enough without a sample
        terms = [(q, root_up(ratio)), (1 - q, Fraction(0))]
        _require_exponential("1 - q + q e^ε", terms, bound, run.spend)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def _poisson_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """A Laplace step on a Poisson sample; ε is a witness.

    Sens(f, Δ²)    l1 norm    add/remove or zero-out    sample hidden, drawn with rate q
    under add/remove f divides by public numbers only    e^ε ≥ 1 - q + q e^(Δ/b)
    ------------------------------------------------------------------------------  poisson-pure
    Priv(PoissonSampled(f + Lap(b), q), PureDp(ε))

    Source: Balle, Barthe, Gaboardi 2018, Theorem 8.
    Check: pure_of_profile, amplified_at_most_sound.
    """
    event, rate = poisson_rate(run.at(place))
    sens, ratio = run.noise(event, "laplace", "scale", "l1")
    require_poisson(run, sens)
    return _amplified(run, place, sens, ratio, rate, epsilon)


def _fixed_batch_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """A Laplace step on a batch of fixed size, γ = batch / records; ε is a witness.

    Sens(f, Δ²)    l1 norm    replace-one    batch hidden, uniform    e^ε ≥ 1 - γ + γ e^(Δ/b)
    -----------------------------------------------------------------------  fixed-batch-pure
    Priv(SampledWithoutReplacement(f + Lap(b), batch, records), PureDp(ε))

    Source: Balle, Barthe, Gaboardi 2018, Theorem 9.
    Check: pure_of_profile, amplified_at_most_sound.
    """
    event, share = fixed_batch_share(run.at(place))
    sens, ratio = run.noise(event, "laplace", "scale", "l1")
    require_fixed_batch(run, sens, run.at(place))
    return _amplified(run, place, sens, ratio, share, epsilon)


LEAVES: Rules = {
    # name: (function, names of its parameters, number of premises)
    "gaussian-gdp": (_gaussian_gdp, ("mechanism",), 0),
    "gaussian-zcdp": (_gaussian_zcdp, ("mechanism",), 0),
    "discrete-gaussian-zcdp": (_discrete_gaussian_zcdp, ("mechanism",), 0),
    "laplace-zcdp": (_laplace_zcdp, ("mechanism",), 0),
    "discrete-laplace-zcdp": (_discrete_laplace_zcdp, ("mechanism",), 0),
    "laplace-pure": (_laplace_pure, ("mechanism", "epsilon"), 0),
    "pure-step": (_pure_step, ("mechanism", "epsilon"), 0),
    "discrete-laplace-pure": (_discrete_laplace_pure, ("mechanism", "epsilon"), 0),
    "randomised-response-pure": (_randomised_response_pure, ("mechanism", "epsilon"), 0),
    "poisson-pure": (_poisson_pure, ("mechanism", "epsilon"), 0),
    "fixed-batch-pure": (_fixed_batch_pure, ("mechanism", "epsilon"), 0),
    "poisson-rdp": (_poisson_rdp, ("mechanism", "order", "epsilon"), 0),
    "fixed-batch-rdp": (_fixed_batch_rdp, ("mechanism", "order", "epsilon"), 0),
}
