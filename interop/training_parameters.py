"""Parameters of trainings as TensorFlow Privacy and jax-privacy state them, and matrix mechanisms.

Each is a JSON object with the names that the library's own function has, and the two things that
those leave to the reader where they do: the sampling scheme and the relation.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from ..accounting.cut_batches import twice_moved
from ..accounting.training_runs import Sampling, TrainingRun
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.events import (
    GaussianStep,
    Mechanism,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from ..mechanisms.sensitivity import concatenated, declared, float_down, float_up
from .event_trees import Untranslatable
from .fields import Fields, MalformedImport
from .matrix_mechanism import MOST_STEPS, banded_toeplitz, participation_sensitivity

_CLIPPED = "every gradient is clipped, in units of the clip norm"
"""The assumption that a certificate over these parameters lists: nobody here saw the gradients."""
_MICROBATCHED = (
    "in units of twice the clip norm: a record moves the clipped gradient of its own microbatch, "
    "and all others stay in theirs, whoever is there or drawn"
)
"""The same of gradients that are averaged in microbatches before they are clipped."""
_MOVES = {Adjacency.ADD_REMOVE_ONE: 1, Adjacency.ZERO_OUT_ONE: 1, Adjacency.REPLACE_ONE: 2}
"""By how many clip norms a sum of clipped gradients moves between neighbours."""


def mechanisms_of_tf_privacy(
    document: Any, where: str, *, adjacency: Adjacency
) -> tuple[Mechanism, ...]:
    """Return the mechanisms of the arguments of `compute_dp_sgd_privacy_statement`, as JSON.

    Fields: number_of_examples, batch_size, num_epochs, noise_multiplier; sampling (poisson,
    shuffled or none), which the statement gives both answers for; used_microbatching (true by
    default, as there), by which a microbatch of one record more moves by 2 clip norms; delta.

    Args:
        document: the parsed JSON object.
        where: its name, for messages.
        adjacency: the relation that the noise multiplier is to be read under.

    `delta` is accepted and not used: the mechanisms do not depend on it.
    """
    required = ("number_of_examples", "batch_size", "num_epochs", "noise_multiplier", "sampling")
    optional = ("used_microbatching", "max_examples_per_user", "delta")
    fields = Fields.of(document, where, required=required, optional=optional)
    if fields.has("max_examples_per_user") and fields.whole("max_examples_per_user") != 1:
        raise Untranslatable(
            f"{where}: max_examples_per_user must be 1 here; a ledger prices groups."
        )
    known = {scheme.value: scheme for scheme in Sampling}
    run = TrainingRun.of(
        sampling=fields.word("sampling", known),
        adjacency=adjacency,
        records=fields.whole("number_of_examples"),
        batch=fields.whole("batch_size"),
        epochs=fields.number("num_epochs"),
    )
    micro = fields.flag("used_microbatching", True)
    noise = Fraction(fields.number("noise_multiplier")) / (2 if micro else 1)
    reason = _MICROBATCHED if micro else _CLIPPED
    return tuple(_assuming(event.mechanism, reason) for event in run.events(noise))


def _assuming(mechanism: Mechanism, reason: str) -> Mechanism:
    """Return a run's mechanism whose derivation names what is taken for granted of its gradients.

    A sum of bounded rows, which a replaced record in a Poisson sample is priced by, is derived from
    a bound that nobody here saw kept; any other is declared with the reason alone.

    Args:
        mechanism: of a `TrainingRun`.
        reason: in place of the run's.
    """
    match mechanism:
        case Repeated(event=event, times=times):
            return Repeated(_assuming(event, reason), times)
        case PoissonSampled(event=GaussianStep() as step, rate=rate):
            return PoissonSampled(_told(step, reason), rate)
        case SampledWithoutReplacement(event=GaussianStep() as step, batch=batch, records=records):
            return SampledWithoutReplacement(_told(step, reason), batch, records)
        case GaussianStep():
            return _told(mechanism, reason)
        case _:
            return mechanism


def _told(step: GaussianStep, reason: str) -> GaussianStep:
    """Return a step that is declared for this reason, or derived with it as an assumption."""
    size = step.sensitivity
    if size.assumptions:
        told = declared(size.root, reason, adjacency=size.adjacency)
    else:
        told = concatenated(size, declared(0, reason, adjacency=size.adjacency))
    return GaussianStep(told, step.noise_std)


def mechanisms_of_jax_privacy(
    document: Any, where: str, *, adjacency: Adjacency
) -> tuple[Mechanism, ...]:
    """Return the mechanisms of the fields of jax-privacy's `DpParams`, with num_updates, as JSON.

    Fields: noise_multipliers (a number, or a list of [step, number]), num_samples, batch_size,
    num_updates; sampling_method (POISSON or FIXED_BATCH_SIZE); cycle_length, by which records are
    dealt to so many groups that take turns (cyclic Poisson sampling, banded noise of at most as
    many bands, unit columns); delta. A matrix of one's own is kind `matrix`.

    Poisson batches cut to truncated_batch_size are at twice the shift (`accounting.cut_batches`;
    `dpledger epsilon --sampling truncated-poisson` takes rare cuts from delta instead).

    Raises `Untranslatable` for several examples a user, for several multipliers with cycles (of
    which jax-privacy knows no price, either), and for truncated batches but of Poisson samples of
    all records under add-remove-one.

    Args:
        document: the parsed JSON object.
        where: its name, for messages.
        adjacency: zero-out-one where records are dealt to groups, any of one record otherwise.
    """
    required = ("noise_multipliers", "num_samples", "batch_size", "num_updates", "sampling_method")
    optional = ("cycle_length", "truncated_batch_size", "examples_per_user", "delta")
    fields = Fields.of(document, where, required=required, optional=optional)
    if fields.has("examples_per_user") and fields.whole("examples_per_user") != 1:
        raise Untranslatable(f"{where}: examples_per_user must be 1: no rule here prices it yet.")
    records, batch = fields.whole("num_samples"), fields.whole("batch_size")
    cycle = fields.whole("cycle_length") if fields.has("cycle_length") else 1
    group = records // max(cycle, 1)
    if not (cycle and batch and batch <= group):
        raise fields.wrong("batch_size", "in [1, num_samples / cycle_length]")
    poisson = fields.word("sampling_method", {"POISSON": True, "FIXED_BATCH_SIZE": False})
    if cycle > 1 and (adjacency is not Adjacency.ZERO_OUT_ONE or not poisson):
        raise Untranslatable(
            f"{where}: cycle_length={cycle} must be read under zero-out-one with POISSON: records "
            "are dealt to groups by their place."
        )
    dealt = (
        f"; the strategy's matrix has at most {cycle} bands and no column longer than 1, and "
        f"records are dealt to the {cycle} groups by their place"
    )
    size = declared(_MOVES[adjacency], _CLIPPED + dealt * (cycle > 1), adjacency=adjacency)
    # a neighbour may have one record more
    if fields.has("truncated_batch_size") and fields.whole("truncated_batch_size") <= records:
        if adjacency is not Adjacency.ADD_REMOVE_ONE or not poisson:
            raise Untranslatable(
                f"{where}: truncated_batch_size must be read under add-remove-one with POISSON: "
                "elsewhere a record takes another's place in both data sets."
            )
        size = concatenated(twice_moved(size), declared(0, _CLIPPED, adjacency=adjacency))
    found: list[Mechanism] = []
    stretches = _stretches(fields)
    if cycle > 1 and len({noise for _, noise in stretches}) > 1:
        raise Untranslatable(
            f"{where}: noise_multipliers must be one number with cycle_length={cycle}: banded "
            "noise hides a record by several steps', and what it then hides has no price here."
        )
    for steps, noise in stretches:
        step = GaussianStep(size, noise)
        one: Mechanism = SampledWithoutReplacement(step, batch, records)
        if poisson:
            one = PoissonSampled(step, float_up(Fraction(batch, group)))
        # a record's group is drawn from once in a cycle, in a stretch that may begin anywhere
        found.append(Repeated(one, ceil(Fraction(steps, cycle))))
    return tuple(found)


def _stretches(fields: Fields) -> Sequence[tuple[int, float]]:
    """Return (steps, noise multiplier) of each stretch of a schedule.

    A list of [step, number] states from which step on, counted from 0, a multiplier holds; the
    last one holds to the end. Stretches that begin after the last update are left out.
    """
    updates = fields.whole("num_updates")
    if not updates:
        raise fields.wrong("num_updates", "a whole number in [1, inf)")
    if not fields.is_list("noise_multipliers"):
        return [(updates, fields.number("noise_multipliers"))]
    starts: list[tuple[int, float]] = []
    for pair in fields.listed("noise_multipliers", MOST_STEPS):
        right = isinstance(pair, list) and len(pair) == 2
        if not right or isinstance(pair[0], bool) or not isinstance(pair[0], int):
            raise fields.wrong("noise_multipliers", "a number, or a list of [step, number]")
        if isinstance(pair[1], bool) or not isinstance(pair[1], int | float):
            raise fields.wrong("noise_multipliers", "a number, or a list of [step, number]")
        starts.append((pair[0], pair[1]))
    rising = [start for start, _ in starts]
    if not starts or rising[0] != 0 or sorted(set(rising)) != rising:
        raise fields.wrong("noise_multipliers", "of rising steps, the first 0")
    ends = [*rising[1:], updates]
    return [
        (min(end, updates) - start, noise)
        for (start, noise), end in zip(starts, ends, strict=True)
        if start < updates
    ]


def mechanisms_of_matrix(
    document: Any, where: str, *, adjacency: Adjacency
) -> tuple[Mechanism, ...]:
    """Return the one Gaussian step that a matrix mechanism is (DP-FTRL, BandMF, buffered noise).

    Fields: matrix (rows of C), or strategy and iterations (the diagonals of a banded Toeplitz C);
    noise_multiplier, the standard deviation of the noise added to C G over the clip norm;
    min_separation and max_participations of a record's steps. With sampling_prob in place of
    these, and a strategy, records are dealt to as many groups as there are bands, which take turns
    and are sampled: then the largest column is the sensitivity (arXiv:2306.08153, Theorem 4).

    One release, not many: the rows of C G + noise are a Gaussian mechanism in all steps at once,
    with the sensitivity of the whole matrix (arXiv:2211.06530, section 2).
    """
    optional = (
        *("matrix", "strategy", "iterations", "min_separation", "max_participations"),
        *("sampling_prob", "delta"),
    )
    fields = Fields.of(document, where, required=("noise_multiplier",), optional=optional)
    if adjacency not in (Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE):
        raise Untranslatable(f"{where}: must be read under zero-out-one or replace-one.")
    if fields.has("matrix") == fields.has("strategy"):
        raise MalformedImport(f"{where}: must state matrix, or strategy with iterations.")
    bands = fields.numbers("strategy", MOST_STEPS) if fields.has("strategy") else []
    matrix: Any = (
        banded_toeplitz(bands, fields.whole("iterations"))
        if bands
        else [
            Fields({"row": row}, where).numbers("row", MOST_STEPS)
            for row in fields.listed("matrix", MOST_STEPS)
        ]
    )
    if len({len(row) for row in matrix}) != 1:
        raise MalformedImport(f"{where}: the rows of a matrix must be of one length.")
    if fields.has("matrix") and fields.has("iterations"):
        raise MalformedImport(f"{where}: must state iterations with strategy alone.")
    if fields.has("sampling_prob"):
        if fields.has("min_separation") or fields.has("max_participations"):
            raise MalformedImport(
                f"{where}: must state sampling_prob, or min_separation and max_participations."
            )
        # zeros behind the last band are none: records are dealt to as many groups as there are
        number = max((place for place, band in enumerate(bands, 1) if band), default=0)
        return _cyclic(fields, matrix, number, adjacency)
    separation = fields.whole("min_separation") if fields.has("min_separation") else 0
    if not separation:
        raise fields.wrong("min_separation", "a whole number in [1, inf), or sampling_prob stated")
    most = fields.whole("max_participations") if fields.has("max_participations") else None
    bound = participation_sensitivity(matrix, separation=separation, participations=most)
    return (_matrix_step(fields, bound, adjacency, f"steps at least {separation} apart"),)


def _cyclic(fields: Fields, matrix: Any, bands: int, adjacency: Adjacency) -> tuple[Mechanism, ...]:
    """Return the mechanism under cyclic Poisson sampling, repeated once a cycle."""
    if not bands or adjacency is not Adjacency.ZERO_OUT_ONE:
        raise Untranslatable(
            f"{fields.where}: sampling_prob must stand with a strategy, under zero-out-one."
        )
    # one participation: the largest column
    bound = participation_sensitivity(matrix, separation=len(matrix), participations=1)
    step = _matrix_step(fields, bound, adjacency, f"the largest column, {bands} groups in turn")
    rounds = ceil(Fraction(len(matrix), bands))
    return (Repeated(PoissonSampled(step, fields.number("sampling_prob")), rounds),)


def _matrix_step(fields: Fields, bound: float, adjacency: Adjacency, words: str) -> GaussianStep:
    """Return Gaussian noise against a matrix's sensitivity of `bound` clip norms."""
    size = _MOVES[adjacency] * Fraction(bound)
    reason = f"{_CLIPPED}; the matrix moves by at most {bound:.6g} of these: {words}"
    noise = fields.number("noise_multiplier")
    return GaussianStep(declared(size, reason, adjacency=adjacency), float_down(noise))


KINDS: Mapping[str, Any] = {
    "tf-privacy": mechanisms_of_tf_privacy,
    "jax-privacy": mechanisms_of_jax_privacy,
    "matrix": mechanisms_of_matrix,
}
"""The kinds of document of this module, by the names that `interop.files` gives them."""
