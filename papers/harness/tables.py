"""Measured cells as tables: all runs, their means, their times, published beside repaired."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from .cell import CellKind
from .engine import Measured

_HEAD = ("line", "kind", "x")
_PROMISE = ("delta", "nominal_epsilon", "enclosed_epsilon", "noisy_part_epsilon", "noise_std")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation over runs (n - 1 in its denominator; 0 for a single run)."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A published cell beside the repaired one of the same promise.

    Args:
        line: of the published cell.
        x: where both stand, if anywhere.
        delta, nominal: the promise.
        published, repaired: enclosed epsilons; infinity where there is none.
        noise_ratio: the published noise over the repaired one, in units of the sensitivity where it
            is one number.
        excess_loss: published and repaired means.
        accuracy: published and repaired means on test records, where they were measured.
    """

    line: str
    x: float | None
    delta: float
    nominal: float
    published: float
    repaired: float
    noise_ratio: float
    excess_loss: tuple[float, float]
    accuracy: tuple[float, float] | None


def spread(measured: Measured, metric: str, at: int = -1) -> Spread:
    """Return a metric over runs, at the place `at` among the measured rounds.

    Args:
        measured: a cell with its runs.
        metric: a key of `METRICS`.
        at: which of the measured rounds; the last by default.
    """
    if metric == "seconds":
        values = [trace.seconds for trace in measured.traces]
    else:
        values = [trace.values[metric][at] for trace in measured.traces]
    return Spread(fmean(values), stdev(values) if len(values) > 1 else 0.0)


def comparisons(cells: Sequence[Measured]) -> list[Comparison]:
    """Return published cells, each beside the repaired one that promises the same, if there is."""
    found: list[Comparison] = []
    for one in cells:
        if one.cell.kind is not CellKind.PUBLISHED or one.privacy.nominal is None:
            continue
        for other in cells:
            if other.cell.kind is CellKind.REPAIRED and _alike(one, other):
                found.append(_compared(one, other, one.privacy.nominal))
                break
    return found


def _alike(one: Measured, other: Measured) -> bool:
    """Return whether two cells promise the same: the same pair of algorithms, place, delta and
    epsilon.
    """

    def of(measured: Measured) -> tuple[object, ...]:
        cell, privacy = measured.cell, measured.privacy
        return cell.pair, cell.x, privacy.delta, privacy.nominal

    return of(one) == of(other)


def _compared(one: Measured, other: Measured, nominal: float) -> Comparison:
    """Return a published cell beside a repaired one.

    The noise ratio is of noise multipliers, in units of each one's own sensitivity; of standard
    deviations where a release has no single sensitivity.
    """
    a, b = one.privacy, other.privacy
    if a.noise_multiplier is not None and b.noise_multiplier is not None:
        ratio = a.noise_multiplier / b.noise_multiplier
    else:
        ratio = a.noise_std / b.noise_std

    def means(metric: str) -> tuple[float, float]:
        return spread(one, metric).mean, spread(other, metric).mean

    return Comparison(
        line=one.cell.line,
        x=one.cell.x,
        delta=a.delta,
        nominal=nominal,
        published=a.certified_epsilon,
        repaired=b.certified_epsilon,
        noise_ratio=ratio,
        excess_loss=means("excess_loss"),
        accuracy=means("accuracy") if "accuracy" in one.traces[0].values else None,
    )


def write_tables(cells: Sequence[Measured], folder: Path) -> None:
    """Write runs.csv (every number), summary.csv (means) and times.csv (of this machine).

    Numbers are written with all digits, so that a table can be read back; times stand in a file of
    their own, as they alone differ between machines.
    """
    _write(folder / "runs.csv", (*_HEAD, "run", "round", "metric", "value"), _runs(cells))
    head = (*_HEAD, *_PROMISE, "runs", "round", "metric", "mean", "standard_deviation")
    _write(folder / "summary.csv", head, _summary(cells))
    _write(folder / "times.csv", (*_HEAD, "run", "seconds"), _times(cells))


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows(rows)


def _start(measured: Measured) -> tuple[str, str, object]:
    """Return the first columns of a row: line, kind and place."""
    cell = measured.cell
    return cell.line, cell.kind.value, "" if cell.x is None else cell.x


def _runs(cells: Sequence[Measured]) -> Iterator[Sequence[object]]:
    """Yield every measured number."""
    for measured in cells:
        for run, trace in enumerate(measured.traces):
            for metric, values in trace.values.items():
                for at, value in zip(trace.rounds, values, strict=True):
                    yield (*_start(measured), run, at, metric, repr(value))


def _summary(cells: Sequence[Measured]) -> Iterator[Sequence[object]]:
    """Yield means and deviations with the promise beside them."""
    for measured in cells:
        privacy = measured.privacy
        promise = (
            privacy.delta,
            "" if privacy.nominal is None else privacy.nominal,
            privacy.certified_epsilon,
            privacy.noisy_epsilon,
            privacy.noise_std,
        )
        first = measured.traces[0]
        for metric in first.values:
            for place, at in enumerate(first.rounds):
                over = spread(measured, metric, place)
                row = (len(measured.traces), at, metric, repr(over.mean), repr(over.deviation))
                yield (*_start(measured), *promise, *row)


def _times(cells: Sequence[Measured]) -> Iterator[Sequence[object]]:
    """Yield the seconds of every run."""
    for measured in cells:
        for run, trace in enumerate(measured.traces):
            yield (*_start(measured), run, trace.seconds)
