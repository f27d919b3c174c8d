"""A claim of the user's own in a file: strict TOML, read within limits, nothing executed.

    adjacency = "zero-out-one"
    tuning = "on public data"

    [promise]
    epsilon = 2.0
    delta = 1e-5

    [[releases]]
    mechanism = "gaussian"
    sensitivity = 1.0
    noise_std = 20.0
    rounds = 100
    sampling = "none"

`sampling` is none, poisson (with `rate`), fixed-batch, with-replacement or shuffled (with `batch`
and `records`); of shuffled epochs `rounds` counts the steps. Instead of `[[releases]]` a file may
say `run = "run.toml"`, a run's configuration, or have a section `[function]` about a Python
function, whose sensitivity is promised. What is left out is "not stated"; the court reads it in
every way that it could mean.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec

from ...data.strict import ConfigurationError, converted, read_toml
from ...mechanisms import Adjacency
from ...mechanisms.sensitivity import float_down
from .claim import Finding
from .own import (
    Averaging,
    ClaimedAccountant,
    MechanismKind,
    OwnPromise,
    PromisedEpsilon,
    PromisedMu,
    PromisedRho,
    Sampling,
    StatedRelease,
    judged,
)

_Positive = Annotated[float, msgspec.Meta(gt=0, le=1e30)]
_Size = Annotated[float, msgspec.Meta(ge=0, le=1e30)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Rounds = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
_Records = Annotated[int, msgspec.Meta(ge=1, le=10**12)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
_Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_MOST_RELEASES = 200
_MOST_ROUNDS_APART = 20_000
_Noise = _Size | Annotated[tuple[_Size, ...], msgspec.Meta(min_length=1, max_length=1000)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Tuning(Enum):
    """How settings were chosen."""

    NONE = "none"
    PUBLIC = "on public data"
    ACCOUNTED = "on the data, and among the releases"
    FITS = "on the data, by what a number of fits released"
    UNACCOUNTED = "on the data, not accounted"


class PromiseSection(_Section, frozen=True, kw_only=True):
    """What is promised: epsilon with delta, or rho, or mu, or (of a function) a sensitivity.

    Args:
        epsilon: of (epsilon, delta)-DP.
        delta: with epsilon; 0 is pure epsilon-DP, and must be said.
        rho: of zero-concentrated DP (Bun, Steinke 2016).
        mu: of Gaussian DP (Dong, Roth, Su 2022).
        sensitivity: of the file's function, in the l2 norm.
    """

    epsilon: _Size | None = None
    delta: Annotated[float, msgspec.Meta(ge=0, lt=1)] | None = None
    rho: _Positive | None = None
    mu: _Positive | None = None
    sensitivity: _Positive | None = None

    def __post_init__(self) -> None:
        kinds = [self.epsilon, self.rho, self.mu, self.sensitivity]
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("Expected one of epsilon, rho, mu, sensitivity")
        if (self.epsilon is None) != (self.delta is None):
            raise ValueError("Expected delta with epsilon (0 if it is pure), and only there")

    def made(self) -> OwnPromise:
        """Return the promise about releases."""
        if self.epsilon is not None and self.delta is not None:
            return PromisedEpsilon(self.epsilon, self.delta)
        if self.rho is not None:
            return PromisedRho(self.rho)
        if self.mu is not None:
            return PromisedMu(self.mu)
        raise ConfigurationError("Expected a promise of epsilon, rho or mu for releases.")


class ReleaseSection(_Section, frozen=True, kw_only=True):
    """One kind of release, `rounds` times.

    Args:
        mechanism: what adds the noise; l2-exponential has density ∝ exp(-‖v‖₂ / scale), exponential
            is the exponential mechanism of an epsilon, and private any that is (epsilon, delta)-DP.
        name: of the release, in the verdict.
        sensitivity: of what is released, in the norm of the noise.
        clip_norm: in place of sensitivity: what a record moves then follows from the adjacency.
        averaging: what the sum of clipped terms is divided by.
        divisor: how much that is; of their own number, at least.
        noise_std: standard deviation of gaussian noise in what is released: a number, or one a
            round.
        noise_multiplier: in place of noise_std: over the sensitivity, or over the clip norm as in
            DP-SGD; under replace-one without clip_norm it is read both ways.
        scale: of laplace and l2-exponential noise in what is released: a number, or one a round.
        noise_decay: each round's noise over that of the round before.
        truth: probability of the true answer, of randomised-response.
        categories: how many answers there are, of randomised-response.
        epsilon: of one private release, or of one exponential mechanism.
        delta: of one private release; 0 is pure epsilon-DP.
        rounds: how often; of shuffled batches the number of steps.
        sampling: who takes part in a round.
        rate: probability that a record takes part, of poisson.
        batch: records that take part, of fixed-batch, with-replacement and shuffled.
        records: of all, of fixed-batch, with-replacement and shuffled.
        party: who releases it, where records are of one party each.
    """

    mechanism: MechanismKind
    name: _Name = "release"
    sensitivity: _Size | None = None
    clip_norm: _Positive | None = None
    averaging: Averaging = Averaging.SUM
    divisor: _Records | None = None
    noise_std: _Noise | None = None
    noise_multiplier: _Noise | None = None
    scale: _Noise | None = None
    noise_decay: _Positive | None = None
    truth: _Share | None = None
    categories: Annotated[int, msgspec.Meta(ge=2, le=10**9)] | None = None
    epsilon: _Size | None = None
    delta: Annotated[float, msgspec.Meta(ge=0, lt=1)] | None = None
    rounds: _Rounds | None = None
    sampling: Sampling | None = None
    rate: _Share | None = None
    batch: _Records | None = None
    records: _Records | None = None
    party: _Name | None = None

    def __post_init__(self) -> None:
        _require_printable(self.name, self.party)
        self._require_fitting()
        if self.batch is not None and self.rate is not None:
            raise ValueError("Expected either rate or batch")
        if self.batch is not None and self.records is not None and self.batch > self.records:
            raise ValueError(f"batch={self.batch} must be in [1, records={self.records}]")
        if self.noise_decay is not None:
            if isinstance(self._noise, tuple) or self._noise is None or self.rounds is None:
                raise ValueError("Expected noise_decay with rounds and the noise of the first")
            if self.rounds > _MOST_ROUNDS_APART:
                raise ValueError(f"Expected at most {_MOST_ROUNDS_APART} rounds with noise_decay")
        if self.noise_multiplier is not None and self.averaging is Averaging.OWN:
            raise ValueError(
                "Expected noise_std, of the mean, where they divide by their own number"
            )
        if (self.averaging is Averaging.SUM) != (self.divisor is None):
            raise ValueError("Expected divisor with averaging, and only there")
        # what else does not fit is told with its place in the file
        self.made()

    def _require_fitting(self) -> None:
        """Raise `ValueError` for a key that is of another mechanism."""
        laplace = self.mechanism in (
            MechanismKind.LAPLACE,
            MechanismKind.DISCRETE_LAPLACE,
            MechanismKind.L2_EXPONENTIAL,
        )
        gaussian = self.mechanism in (MechanismKind.GAUSSIAN, MechanismKind.DISCRETE_GAUSSIAN)
        if self.scale is not None and not laplace:
            raise ValueError("Expected scale with laplace or l2-exponential noise only")
        if self.noise_std is not None and not gaussian:
            raise ValueError("Expected noise_std with gaussian noise only")
        answered = self.mechanism is MechanismKind.RANDOMISED_RESPONSE
        if not answered and (self.truth, self.categories) != (None, None):
            raise ValueError("Expected truth and categories with randomised-response only")
        selected = self.mechanism is MechanismKind.EXPONENTIAL
        if selected and self.delta is not None:
            raise ValueError("Expected no delta of the exponential mechanism, which is pure")
        stated = not selected and (self.epsilon, self.delta) != (None, None)
        if stated and self.mechanism is not MechanismKind.PRIVATE:
            raise ValueError(
                "Expected epsilon and delta of a release with private only, epsilon alone also "
                "with exponential"
            )
        if stated and (self.epsilon is None) != (self.delta is None):
            raise ValueError("Expected delta with epsilon (0 if it is pure) of a private release")
        apart = self.noise_std is None and self.sensitivity is None
        if self.noise_multiplier is not None and not (gaussian and apart):
            raise ValueError(
                "Expected noise_multiplier with gaussian noise, without noise_std and sensitivity"
            )
        if self.noise_multiplier is not None and self.mechanism is not MechanismKind.GAUSSIAN:
            raise ValueError(
                "Expected noise_std and sensitivity of discrete noise, whose price is not a "
                "function of their ratio, and no noise_multiplier"
            )

    @property
    def _noise(self) -> float | tuple[float, ...] | None:
        noises = (self.noise_multiplier, self.noise_std, self.scale, self.truth)
        return next((value for value in noises if value is not None), None)

    def made(self) -> StatedRelease:
        """Return the release."""
        by_multiplier = self.noise_multiplier is not None
        summed = by_multiplier or self.averaging is Averaging.SUM
        noise = self._noise
        if self.noise_decay is not None and isinstance(noise, float):
            noise = _decaying(noise, self.noise_decay, self.rounds or 1)
        rounds = len(noise) if isinstance(noise, tuple) and self.rounds is None else self.rounds
        clipped = None if self.clip_norm is None else 1.0 if by_multiplier else self.clip_norm
        return StatedRelease(
            self.mechanism,
            sensitivity=1.0 if by_multiplier and clipped is None else self.sensitivity,
            multiplied=by_multiplier and clipped is None,
            noise=noise,
            rounds=rounds,
            sampling=self.sampling,
            rate=self.rate,
            batch=self.batch,
            records=self.records,
            party=self.party,
            name=self.name,
            clip_norm=clipped,
            # dividing sum and noise by a public number is post-processing
            averaging=Averaging.SUM if summed else self.averaging,
            divisor=None if summed else self.divisor,
            step_epsilon=self.epsilon,
            step_delta=self.delta,
            categories=self.categories,
        )


def _decaying(first: float, factor: float, rounds: int) -> tuple[float, ...]:
    """Return the noise of each round, each factor times the one before, rounded down."""
    noises = [first]
    for _ in range(rounds - 1):
        noises.append(float_down(Fraction(noises[-1]) * Fraction(factor)))
    return tuple(noises)


class Function(_Section, frozen=True, kw_only=True):
    """A function of the user's own: f(rows, labels, public) -> array.

    Args:
        code: "mine.py:name"; executed only where that is asked for.
        count: number of records.
        features: entries of a row.
        row_bound: l2 norm that rows are cut to.
        labels: those that a record can have.
        public: how many public numbers the function is given.
        public_bound: largest size of each.
    """

    code: _Reference
    count: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    features: Annotated[int, msgspec.Meta(ge=1, le=100)]
    row_bound: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 1.0
    labels: Annotated[tuple[float, ...], msgspec.Meta(min_length=1, max_length=100)] = (-1.0, 1.0)
    public: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    public_bound: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 1.0


class ClaimFile(_Section, frozen=True, kw_only=True):
    """A claim: what is promised, of what, and what else is stated.

    Args:
        promise: what is claimed.
        title: of the claim, in the verdict.
        adjacency: what neighbouring data sets are.
        unit: whom the promise is about; sensitivities and clip norms are of it.
        records_per_unit: records that a unit has at most; sensitivities are then of one record.
        tuning: how settings were chosen.
        fits: among how many runs of all releases they were chosen.
        accountant: how epsilon was computed.
        source: where the claim stands; nothing depends on it.
        note: why it is worth a look; nothing depends on it.
        preprocessing: what was done to the records before.
        releases: what was released.
        run: in place of releases: the configuration of a run of ours.
        function: in place of releases: whose sensitivity is promised.
    """

    promise: PromiseSection
    title: _Name = "a claim"
    adjacency: Adjacency | None = None
    unit: _Name | None = None
    records_per_unit: Annotated[int, msgspec.Meta(ge=1, le=10**6)] | None = None
    tuning: Tuning | None = None
    fits: Annotated[int, msgspec.Meta(ge=1, le=10**6)] | None = None
    accountant: ClaimedAccountant | None = None
    source: _Reference | None = None
    note: _Reference | None = None
    preprocessing: _Reference | None = None
    releases: Annotated[tuple[ReleaseSection, ...], msgspec.Meta(max_length=_MOST_RELEASES)] = ()
    run: _Reference | None = None
    function: Function | None = None

    def __post_init__(self) -> None:
        _require_printable(
            self.title, self.unit, self.preprocessing, self.run, self.source, self.note
        )
        if sum((bool(self.releases), self.run is not None, self.function is not None)) != 1:
            raise ValueError("Expected one of [[releases]], run, [function]")
        if (self.promise.sensitivity is None) != (self.function is None):
            raise ValueError("Expected a promised sensitivity with [function], and only there")
        self._require_releases()

    def _require_releases(self) -> None:
        """Raise `ValueError` for what only stated releases can have."""
        of_releases = (self.records_per_unit, self.fits, self.accountant)
        if not self.releases and any(each is not None for each in of_releases):
            raise ValueError(
                "Expected records_per_unit, fits and accountant with [[releases]] only"
            )
        if self.tuning is Tuning.FITS and self.fits is None:
            raise ValueError(f"Expected fits, their number, with tuning {Tuning.FITS.value!r}")
        if self.fits is not None and self.tuning not in (Tuning.FITS, Tuning.UNACCOUNTED):
            raise ValueError("Expected fits with a tuning on the data only")
        if self.accountant is not None and self.promise.epsilon is None:
            raise ValueError("Expected accountant with a promised epsilon only")

    def judged(self) -> Finding:
        """Return what the court finds about the promise for the releases."""
        return judged(
            [release.made() for release in self.releases],
            self.promise.made(),
            adjacency=self.adjacency,
            group=self.records_per_unit or 1,
            fits=self.fits or 1,
            accountant=self.accountant,
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """What a promise needs besides releases, and this file does not say."""
        stated = {
            "unit of privacy": self.unit,
            "preprocessing": self.preprocessing,
            "tuning of settings": self.tuning,
        }
        return tuple(f"{name}: not stated" for name, value in stated.items() if value is None)


def read_claim(path: Path) -> ClaimFile:
    """Return the claim in a TOML file, or raise `ConfigurationError`."""
    return read_toml(path, ClaimFile)


_LONGEST_PROMISE = 1000
"""Characters of a promise on the command line; cut, a number would be another one."""


def promise_from_text(text: str) -> OwnPromise:
    """Return the promise in a text such as "epsilon=1, delta=1e-5"; nothing is evaluated.

    Raises `ConfigurationError` for another text, and one of over 1,000 characters.
    """
    values: dict[str, object] = {}
    if len(text) > _LONGEST_PROMISE:
        raise ConfigurationError(f"--promise: Expected at most {_LONGEST_PROMISE} characters.")
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and name) or name in values:
            raise ConfigurationError(f"--promise: Expected name=value once each, not {part!r}.")
        values[name] = value
    return converted(values, PromiseSection, source="--promise", texts=True).made()


def file_beside(claim: Path, name: str) -> Path:
    """Return the file that a claim names: beside the claim or below, never elsewhere.

    Raises `ConfigurationError`.
    """
    folder = claim.resolve().parent
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise ConfigurationError(f"{claim}: Expected a file beside the claim instead got {name!r}.")
    if not path.is_file():
        raise ConfigurationError(f"{claim}: Expected an existing file instead got {name!r}.")
    return path


def _require_printable(*texts: str | None) -> None:
    """Raise `ValueError` for a name that could steer a terminal or break a page."""
    for text in texts:
        if text is not None and not text.isprintable():
            raise ValueError(f"Expected a name of printable characters instead got {text!r}")
