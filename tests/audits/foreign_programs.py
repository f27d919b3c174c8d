"""Small programs with one planted bug each, of kinds found in practice, and honest twins.

They add their own normal or Laplace noise, as another library would. All are meant for five records
of two features under replace-one, whose rows may be ten times as long as the clipping norm 1, and
claim mu = 1/2 for the whole (or epsilon = 1, where noise is Laplace's).
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from dpledger.audits.foreign_code import Asked, Program, Recorder
from dpledger.mechanisms.protocols import FloatArray

ROUNDS = 4
MU = 0.5
RECORDS = 5


def clipped(rows: FloatArray, bound: float = 1.0) -> FloatArray:
    """Return rows of norm at most `bound`."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, bound / np.maximum(lengths, 1e-300))


def gradients(rows: FloatArray, labels: FloatArray, model: FloatArray) -> FloatArray:
    """Return the clipped gradients of the logistic loss, a row a record."""
    slopes = -labels / (1.0 + np.exp(np.clip(labels * (rows @ model), -50, 50)))
    return clipped(slopes[:, None] * rows)


def noise_for(sensitivity: float, rounds: int = ROUNDS) -> float:
    """Return the standard deviation by which so many releases are mu-GDP together."""
    return sensitivity * sqrt(rounds) / MU


def send(generator: np.random.Generator, noise_std: float) -> Callable[[FloatArray], FloatArray]:
    """Return a mechanism that adds normal noise."""
    return lambda value: value + noise_std * generator.normal(size=np.shape(value))


def descent(
    rows: FloatArray,
    labels: FloatArray,
    record: Recorder,
    *,
    mean: Callable[[FloatArray], FloatArray] = lambda parts: parts.sum(axis=0) / RECORDS,
    gradient: Callable[[FloatArray, FloatArray, FloatArray], FloatArray] = gradients,
    sensitivity: float = 2 / RECORDS,
    rounds: int = ROUNDS,
    sigma: float | None = None,
    sender: Callable[[np.random.Generator, float], Any] = send,
    stream: int = 0,
) -> FloatArray:
    """Run noisy gradient descent; what a bug changes is an argument."""
    generator = np.random.default_rng([record.seed, stream])
    stated = noise_for(sensitivity) if sigma is None else sigma
    mechanism, model = sender(generator, stated), np.zeros(rows.shape[1])
    for _ in range(rounds):
        value = mean(gradient(rows, labels, model))
        model = model - record.normal(value, mechanism, sensitivity=sensitivity, noise_std=stated)
    return model


# --- thirteen bugs, each with the question that finds it -----------------------------------------


def loops_until_converged(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The number of rounds is decided by the raw mean of the data."""
    return descent(rows, labels, record, rounds=1 + int(abs(clipped(rows).sum()) < 2))


def sensitivity_of_uncensored_data(
    rows: FloatArray, labels: FloatArray, record: Recorder
) -> FloatArray:
    """Nothing clips the rows, and the sensitivity is that of clipped ones."""
    return descent(rows, labels, record, gradient=lambda x, y, _: y[:, None] * x)


def double_spending(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """A second training takes the noise for the whole budget again."""
    descent(rows, labels, record)
    return descent(rows, -labels, record, stream=1)


def noise_reused(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The noise is drawn once, and added in every round."""

    def once(generator: np.random.Generator, noise_std: float) -> Any:
        noise = noise_std * generator.normal(size=rows.shape[1])
        return lambda value: value + noise

    return descent(rows, labels, record, sender=once)


def averaged_by_the_wrong_n(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The sum of a part of the records is divided by its size, and the noise by all records."""
    return descent(rows, labels, record, mean=lambda parts: parts[:2].mean(axis=0))


def seed_fixed(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """Every run draws the same noise."""

    def seeded(_: np.random.Generator, noise_std: float) -> Any:
        return send(np.random.default_rng(987_654_321), noise_std)

    return descent(rows, labels, record, sender=seeded)


def clipping_per_microbatch(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The mean of all gradients is clipped, and not each of them."""

    def raw(x: FloatArray, y: FloatArray, _: FloatArray) -> FloatArray:
        return clipped((y[:, None] * x).mean(axis=0, keepdims=True))

    return descent(rows, labels, record, gradient=raw, mean=lambda parts: parts[0])


def variance_for_deviation(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The generator takes what is meant as a variance for a standard deviation, and halves it."""
    return descent(rows, labels, record, sender=lambda g, std: send(g, std**2 / 4))


def noise_scaled_by_the_data(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """Sensitivity and noise are those of the longest row at hand."""
    longest = float(np.linalg.norm(rows, axis=1).max())
    return descent(
        rows,
        labels,
        record,
        gradient=lambda x, y, _: y[:, None] * x,
        sensitivity=2 * max(longest, 1e-3) / RECORDS,
    )


def another_relation(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The sensitivity of a removed record, for a replaced one."""
    return descent(rows, labels, record, sensitivity=1 / RECORDS)


def best_model_by_the_data(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The better of two private models is chosen by its loss on the private data."""
    generator = np.random.default_rng(record.seed)
    noise = noise_for(2 / RECORDS)
    models = [
        record.normal(
            gradients(rows, labels, start).sum(axis=0) / RECORDS,
            send(generator, noise),
            sensitivity=2 / RECORDS,
            noise_std=noise,
        )
        for start in (np.zeros(2), np.ones(2))
    ]
    return min(models, key=lambda model: float(np.logaddexp(0, -labels * (rows @ model)).sum()))


def one_number_for_all_coordinates(
    rows: FloatArray, labels: FloatArray, record: Recorder
) -> FloatArray:
    """A scalar of noise is added to the whole vector."""
    return descent(
        rows, labels, record, sender=lambda g, std: lambda value: value + std * g.normal()
    )


def columns_scaled_by_their_maxima(
    rows: FloatArray, labels: FloatArray, record: Recorder
) -> FloatArray:
    """Preprocessing divides every column by its largest entry, which one record decides."""
    scaled = rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)
    mean = clipped(scaled).sum(axis=0) / RECORDS
    noise = noise_for(2 / RECORDS)
    return record.normal(
        mean,
        send(np.random.default_rng(record.seed), noise),
        sensitivity=2 / RECORDS,
        noise_std=noise,
    )


BUGS: dict[Program, str] = {
    loops_until_converged: "structure",
    sensitivity_of_uncensored_data: "sensitivity",
    double_spending: "cost",
    noise_reused: "noise",
    averaged_by_the_wrong_n: "sensitivity",
    seed_fixed: "noise",
    clipping_per_microbatch: "sensitivity",
    variance_for_deviation: "noise",
    noise_scaled_by_the_data: "structure",
    another_relation: "sensitivity",
    best_model_by_the_data: "output",
    one_number_for_all_coordinates: "noise",
    columns_scaled_by_their_maxima: "sensitivity",
}


# --- ten honest twins ----------------------------------------------------------------------------


def honest_descent(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """Noisy gradient descent for a fixed number of rounds."""
    return descent(rows, labels, record)


def loops_until_messages_converge(
    rows: FloatArray, labels: FloatArray, record: Recorder
) -> FloatArray:
    """It stops early where a noisy message is short: messages alone decide."""
    generator, noise = np.random.default_rng(record.seed), noise_for(2 / RECORDS)
    model = np.zeros(2)
    for _ in range(ROUNDS):
        step = record.normal(
            gradients(rows, labels, model).sum(axis=0) / RECORDS,
            send(generator, noise),
            sensitivity=2 / RECORDS,
            noise_std=noise,
        )
        model = model - step
        if np.linalg.norm(step) < 0.5:
            break
    return model


def clips_what_it_sums(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """The sum of clipped rows."""
    noise = noise_for(2.0, 1)
    return record.normal(
        clipped(rows).sum(axis=0),
        send(np.random.default_rng(record.seed), noise),
        sensitivity=2.0,
        noise_std=noise,
    )


def spends_halves(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """Two trainings, each with noise for half of mu squared."""
    noise = noise_for(2 / RECORDS, 2 * ROUNDS)
    descent(rows, labels, record, sigma=noise)
    return descent(rows, -labels, record, sigma=noise, stream=1)


def averages_a_part_by_its_size(
    rows: FloatArray, labels: FloatArray, record: Recorder
) -> FloatArray:
    """The mean of two records, with the sensitivity of such a mean."""
    return descent(rows, labels, record, mean=lambda parts: parts[:2].mean(axis=0), sensitivity=1.0)


def clips_microbatches_of_one(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """Each record is a microbatch."""
    return descent(rows, labels, record, gradient=lambda x, y, _: clipped(y[:, None] * x))


def noise_falls_by_a_schedule(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """Rounds have different noise by a public schedule, whose total is the claimed mu."""
    generator = np.random.default_rng(record.seed)
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    scales = noise_for(2 / RECORDS, 1) * np.sqrt(weights.sum() / weights)
    model = np.zeros(2)
    for scale in scales:
        model = model - record.normal(
            gradients(rows, labels, model).sum(axis=0) / RECORDS,
            send(generator, float(scale)),
            sensitivity=2 / RECORDS,
            noise_std=float(scale),
        )
    return model


def best_model_by_the_messages(
    rows: FloatArray, labels: FloatArray, record: Recorder
) -> FloatArray:
    """The shorter of two private models is chosen."""
    generator, noise = np.random.default_rng(record.seed), noise_for(2 / RECORDS)
    models = [
        record.normal(
            gradients(rows, labels, start).sum(axis=0) / RECORDS,
            send(generator, noise),
            sensitivity=2 / RECORDS,
            noise_std=noise,
        )
        for start in (np.zeros(2), np.ones(2))
    ]
    return min(models, key=lambda model: float(np.linalg.norm(model)))


def counts_labels(rows: FloatArray, labels: FloatArray, record: Recorder) -> FloatArray:
    """A histogram of labels with Laplace noise: l1 sensitivity 2."""
    generator = np.random.default_rng(record.seed)
    counts = np.array([np.sum(labels > 0), np.sum(labels <= 0)], dtype=np.float64)
    return record.laplace(
        counts,
        lambda value: value + generator.laplace(scale=5.0, size=2),
        sensitivity=2.0,
        scale=5.0,
    )


def columns_scaled_by_public_bounds(
    rows: FloatArray, labels: FloatArray, record: Recorder
) -> FloatArray:
    """Preprocessing divides by a bound that is public."""
    mean = clipped(rows / 10.0).sum(axis=0) / RECORDS
    noise = noise_for(2 / RECORDS)
    wrapped = record.wrap(
        lambda value, std: value + std * np.random.default_rng(record.seed).normal(size=2),
        lambda value, std: Asked(value, 2 / RECORDS, std),
    )
    return np.asarray(wrapped(mean, noise))


TWINS: tuple[Program, ...] = (
    honest_descent,
    loops_until_messages_converge,
    clips_what_it_sums,
    spends_halves,
    averages_a_part_by_its_size,
    clips_microbatches_of_one,
    noise_falls_by_a_schedule,
    best_model_by_the_messages,
    counts_labels,
    columns_scaled_by_public_bounds,
)
