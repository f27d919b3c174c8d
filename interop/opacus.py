"""Histories of other accountants as our mechanisms.

An Opacus accountant keeps what it was told as (noise_multiplier, sample_rate, num_steps), one entry
for each run of equal steps: Poisson-sampled sums of gradients clipped to norm 1 (in units of
`max_grad_norm`), the noise's standard deviation being the multiplier. Events of dp-accounting and
of jax_privacy, which uses the same, are read by `dpledger.interop.dp_events`.

>>> history = [(1.0, 0.01, 1000), (1.5, 0.01, 500)]
>>> [m.times for m in mechanisms_of_opacus(history, adjacency=Adjacency.ADD_REMOVE_ONE)]
[1000, 500]
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import hypot, inf, nextafter
from numbers import Integral, Real
from typing import Any
from weakref import ref

from ..accounting.guarantees import guarantee
from ..accounting.ledger.ledger import Ledger, Run
from ..accounting.proof.proved import proved_guarantee
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import (
    InvalidParameter,
    require_bool,
    require_positive,
    require_positive_int,
    shown_value,
)
from ..mechanisms.events import (
    AccumulatedPoisson,
    Audience,
    Context,
    Event,
    GaussianStep,
    Mechanism,
    PoissonSampled,
    Repeated,
)
from ..mechanisms.extras import import_extra
from ..mechanisms.sensitivity import declared
from .fields import MalformedImport

_REASON = (
    "Opacus: a step is one forward and one backward pass of one sample, which holds a record once, "
    "every sample has its step, and a record's gradient is clipped to max_grad_norm, the unit of "
    "this sensitivity"
)
"""Stands in every certificate over such a step, as the assumption that it rests on."""
_OF_SAMPLES = ", and every backward pass is of a Poisson sample of its own"
"""What a step that adds up several rests on besides."""
_RELATIONS = (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE)
"""Opacus states noise over the clip norm; a record replaced would move a sum by two of these."""


_Entry = tuple[float, float, int] | tuple[float, float, int, int]
"""Noise multiplier, sample rate, equal steps in a row, and how many samples each adds up, if more
than one."""


def mechanisms_of_opacus(
    history: Sequence[Sequence[object]], *, adjacency: Adjacency
) -> tuple[Repeated, ...]:
    """Return the mechanisms of an accountant's `history`, in order.

    Args:
        history: of (noise_multiplier, sample_rate, num_steps); a fourth number, which Opacus' own
            accountants have no place for, is how many Poisson samples each step adds up.
        adjacency: add/remove-one, which Opacus speaks of, or zero-out-one.

    Raises:
        MalformedImport: an entry is not three numbers, or four.
        InvalidParameter: another relation, or a number outside its range.
    """
    if adjacency not in _RELATIONS:
        raise InvalidParameter("adjacency", adjacency, "add-remove-one or zero-out-one")
    found: list[Repeated] = []
    for number, entry in enumerate(history):
        noise_multiplier, sample_rate, num_steps, *batches = _numbers(number, entry)
        reason = _REASON + (_OF_SAMPLES if batches else "")
        step = GaussianStep(declared(1, reason, adjacency=adjacency), noise_multiplier)
        sampled = (
            AccumulatedPoisson(step, sample_rate, batches[0])
            if batches
            else PoissonSampled(step, sample_rate)
        )
        found.append(Repeated(sampled, num_steps))
    return tuple(found)


class LedgerAccountant:
    """An accountant for Opacus that reserves each step in a ledger before its gradient is used.

        ledger = SqliteLedger("team.sqlite")
        register(LedgerAccountant.of(ledger, run="mnist", adjacency=Adjacency.ADD_REMOVE_ONE))
        engine = PrivacyEngine(accountant="dpledger")

    It has the methods of `opacus.accountants.IAccountant` and needs neither Opacus nor torch.
    Opacus calls `step` when the noise was drawn and before the parameters move, so that a step that
    the budget refuses raises `BudgetExceeded` and trains nothing. A budget that pays for sampled
    steps one by one is `Rdp`, of one order; (epsilon, delta) pays for plans.

    Args:
        run: an open run of a ledger.
        adjacency: add/remove-one, which Opacus speaks of, or zero-out-one.
        split_batches: says that steps which Opacus is told to skip are of parts of one Poisson
            sample, as its `BatchMemoryManager` makes them, all clipped to one norm, and that every
            sample is gone through to its last part: what a loop that breaks off before has added is
            in the next step. An optimiser does not know; where nobody says so, a step after a
            skipped one is refused.
        independent_batches: says that every backward pass which a step adds up is of a Poisson
            sample of its own, which went through the model at once. Nor does an optimiser know
            this: two losses of one sample clip its records twice. Where nobody says so, a step of
            several passes is refused, and so is one of a second optimiser beside a first, whose
            sample it may share.
        ghost_clip_norm: the norm, > 0, to which the module clips a record's gradient under ghost
            clipping, in one backward pass a step of the criterion that `make_private` returned:
            what that was given when the module was wrapped first. The optimiser, which adds the
            noise, knows neither it nor how many passes there were; where nobody says so, a step is
            refused.
    """

    def __init__(
        self,
        run: Run,
        *,
        adjacency: Adjacency,
        split_batches: bool = False,
        independent_batches: bool = False,
        ghost_clip_norm: float | None = None,
    ) -> None:
        require_bool("split_batches", split_batches)
        require_bool("independent_batches", independent_batches)
        if ghost_clip_norm is not None:
            require_positive("ghost_clip_norm", ghost_clip_norm)
        self.run = run
        self.adjacency = adjacency
        self.split_batches = split_batches
        self.independent_batches = independent_batches
        self.ghost_clip_norm = ghost_clip_norm
        self._taken: list[_Entry] = []
        self._asked: list[_Entry] | None = None
        self._seen = _Seen()

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        *,
        run: str,
        adjacency: Adjacency,
        split_batches: bool = False,
        independent_batches: bool = False,
        ghost_clip_norm: float | None = None,
    ) -> "Callable[[], LedgerAccountant]":
        """Return what makes the accountant of a run in a ledger, as a registry of Opacus asks.

        Args:
            ledger: that the run is opened in, or joined, when Opacus asks for an accountant.
            run: its name.
            adjacency, split_batches, independent_batches, ghost_clip_norm: as for the class.
        """

        seen = _Seen()

        def make() -> LedgerAccountant:
            opened = ledger.run(run, configuration_hash=f"opacus:{run}")
            accountant = cls(
                opened,
                adjacency=adjacency,
                split_batches=split_batches,
                independent_batches=independent_batches,
                ghost_clip_norm=ghost_clip_norm,
            )
            # two engines' optimisers may be on one sample as well as one's
            accountant._seen = seen
            return accountant

        return make

    @property
    def history(self) -> list[_Entry]:
        """The steps taken, or those that were set: Opacus sets some to ask what they would cost."""
        return list(self._taken if self._asked is None else self._asked)

    @history.setter
    def history(self, history: Sequence[Sequence[object]]) -> None:
        """Ask for these steps besides those that the ledger holds; see `get_epsilon`."""
        self._asked = [_numbers(number, entry) for number, entry in enumerate(history)]

    def step(self, *, noise_multiplier: float, sample_rate: float, batches: int = 1) -> None:
        """Reserve one step; raises as `Run.step` does, and for numbers out of range.

        Args:
            noise_multiplier: noise_std / clip norm.
            sample_rate: of Poisson sampling, a probability.
            batches: k drawn independently, whose gradients one step adds up. A record can be in
                several and move the sum by k clip norms, which a step of rate k·sample_rate does
                not pay for (`AccumulatedPoisson`). Parts in which one sample is computed are 1.

        Equal steps in a row share one entry of `history`, so that its length is that of the
        schedule.
        """
        require_positive_int("batches", batches)
        drawn = (noise_multiplier, sample_rate)
        entry: _Entry = (*drawn, 1) if batches == 1 else (*drawn, 1, batches)
        (mechanism,) = mechanisms_of_opacus([entry], adjacency=self.adjacency)
        context = Context(
            (),
            sum(entry[2] for entry in self._taken) + 1,
            "noisy sum of clipped gradients",
            Audience.PUBLIC,
        )
        self.run.step(Event(mechanism.event, context), sampler="opacus")
        last = self._taken[-1] if self._taken else None
        if last is not None and (last[:2], last[3:]) == (entry[:2], entry[3:]):
            entry = (*drawn, last[2] + 1) if batches == 1 else (*drawn, last[2] + 1, batches)
            self._taken.pop()
        self._taken.append(entry)

    def get_epsilon(self, delta: float, **_: object) -> float:
        """Return the epsilon of all steps that the run's ledger holds, rounded up.

        Those of a process before this one among them, whose history this one may not have loaded.
        Of accumulated batches the odometer knows a bound alone that may be several times too large;
        where `history` has some, the epsilon is what a certificate proves, in a second or so.

        Where `history` was set, its steps are priced besides: so Opacus looks for the noise of a
        target epsilon.

        Args:
            delta: in (0, 1). What Opacus passes besides, such as orders, is ignored.
        """
        if self._asked is not None:
            planned = mechanisms_of_opacus(self._asked, adjacency=self.adjacency)
            asked = (Event(each, Context((), 1, "planned", Audience.PUBLIC)) for each in planned)
            events = (*self.run.events(), *asked)
            return guarantee(events, delta=delta).epsilon.upper_float
        if any(len(entry) == 4 for entry in self._taken):
            return proved_guarantee(self.run.events(), delta=delta)[0].epsilon.upper_float
        return self.run.spent().epsilon(delta).upper_float

    def __len__(self) -> int:
        """Return the number of steps of `history`."""
        return sum(entry[2] for entry in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name under which Opacus knows it."""
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what Opacus attaches to its optimiser, called once a step before it moves.

        It raises `InvalidParameter` at the first step of an optimiser that adapts its clip norm,
        at a step after a skipped one unless `split_batches` says what was skipped, and at one of
        several backward passes, or of a second optimiser, unless `independent_batches` says what
        they are of; under ghost clipping unless `ghost_clip_norm` says to what; and where the clip
        norm changes among steps of several parts. An optimiser that is gone, as that of a training
        which is over, makes room for another.

        Args:
            sample_rate: of the Poisson samples that the optimiser's loader draws, a probability.
        """

        def hook(optimiser: Any) -> None:
            # a noisy count goes out besides, divided by the batch's own, private size
            if any(hasattr(optimiser, name) for name in _ADAPTS):
                need = "with a fixed clip norm: how an adaptive one moves has no price here"
                raise InvalidParameter("optimiser", type(optimiser).__name__, need)
            noise_multiplier = _noise_multiplier(optimiser, self.ghost_clip_norm)
            self._require_one_sample(optimiser)
            self._seen.optimiser = ref(optimiser)
            self._seen.clip_norm = float(optimiser.max_grad_norm)
            self.step(
                noise_multiplier=noise_multiplier,
                sample_rate=sample_rate,
                # backward passes since the last step; Opacus' own hook adds up their rates, which
                # is too little: see `step`
                batches=optimiser.accumulated_iterations,
            )

        return hook

    def _require_one_sample(self, optimiser: Any) -> None:
        """Raise `InvalidParameter` where a step may be of more than the one sample it pays for."""
        # what skipped steps added to the sum is in it still, and was counted by nobody
        batches = optimiser.accumulated_iterations
        if _skipped(optimiser) and not (self.split_batches and batches == 1):
            need = (
                "without skipped steps: independent batches are accumulated by backward passes,"
                " one Poisson batch is split by BatchMemoryManager and split_batches=True"
            )
            raise InvalidParameter("optimiser", type(optimiser).__name__, need)
        if batches != 1 and not self.independent_batches:
            need = (
                "1 unless independent_batches=True says that each backward pass is of a Poisson"
                " sample of its own; add up several losses of one sample before one pass"
            )
            raise InvalidParameter("accumulated_iterations", batches, need)
        first = self._seen.optimiser()
        if first is not None and first is not optimiser and not self.independent_batches:
            need = (
                "that of the steps before, unless independent_batches=True says that each draws"
                " a Poisson sample of its own: two steps on one sample cost more than two"
            )
            raise InvalidParameter("optimiser", type(optimiser).__name__, need)
        before, norm = self._seen.clip_norm, float(optimiser.max_grad_norm)
        if _skipped(optimiser) and before not in (None, norm):
            need = f"{before}, as at the step before: parts of a sample are clipped to one norm"
            raise InvalidParameter("max_grad_norm", norm, need)

    def state_dict(self, destination: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the history, in the form of Opacus' own accountants."""
        state = {} if destination is None else destination
        state["history"] = list(self._taken)
        state["mechanism"] = NAME
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the history of a checkpoint, whose steps this run's ledger must hold already.

        Raises `MalformedImport` where the ledger's run has other steps than the state says.
        """
        history = state.get("history")
        if not isinstance(history, list) or state.get("mechanism") != NAME:
            raise MalformedImport(f"the state must be one of an accountant named {NAME}.")
        found = mechanisms_of_opacus(history, adjacency=self.adjacency)
        stated = Counter[Mechanism]()
        for repeated in found:
            stated[repeated.event] += repeated.times
        if stated != Counter(event.mechanism for event in self.run.events()):
            raise MalformedImport(
                f"a state of {sum(stated.values())} steps must be of the run in the ledger, which "
                f"has {len(self.run.events())}, of these; import a checkpoint of others instead."
            )
        self._taken = [_numbers(number, entry) for number, entry in enumerate(history)]


class _Seen:
    """The step before: of all accountants that one registry makes, whose samples may be one."""

    def __init__(self) -> None:
        self.optimiser: Callable[[], Any] = lambda: None
        self.clip_norm: float | None = None


def _noise_multiplier(optimiser: Any, ghost_clip_norm: float | None) -> float:
    """Return noise_std over what a record's clipped gradient is at most, rounded down.

    The noise is a multiple of `max_grad_norm`, by which not every optimiser clips: one per layer
    has its own norms, whose root sum of squares it is until somebody sets it; under ghost clipping
    the module has one, which the optimiser does not know.
    """
    norm, multiplier = float(optimiser.max_grad_norm), float(optimiser.noise_multiplier)
    if hasattr(optimiser, "accumulate"):  # and clips nothing
        if ghost_clip_norm is None:
            need = "one that clips, unless ghost_clip_norm says to what norm its module does"
            raise InvalidParameter("optimiser", type(optimiser).__name__, need)
        clipped = [ghost_clip_norm]
    else:
        clipped = list(map(float, getattr(optimiser, "max_grad_norms", [norm])))
    if sum(Fraction(each) ** 2 for each in clipped) <= Fraction(norm) ** 2:
        return multiplier
    # Opacus computes the norm of the layers' in 24 bits: what it lost by that counts, too
    return multiplier * norm / hypot(*clipped) * (1.0 - 2.0**-50)


def _skipped(optimiser: Any) -> bool:
    """Return whether the step before was skipped, whose part of a sample is in the sum still."""
    return bool(getattr(optimiser, "_is_last_step_skipped", False))


_ADAPTS = ("target_unclipped_quantile", "_adjusted_noise_multiplier")
"""What optimisers have that adapt their clip norm: AdaClip's own, and what ghost clipping's loss
sets from the first backward pass on."""

NAME = "dpledger"
"""The word for `PrivacyEngine(accountant=...)`, and the mark of our states in checkpoints."""


def register(make: Callable[[], LedgerAccountant]) -> None:
    """Let `PrivacyEngine(accountant="dpledger")` use an accountant that `make` returns.

    Raises `MissingExtra` where Opacus is not installed, which no extra of ours does.
    """
    registry = import_extra("opacus.accountants", "opacus")
    registry.register_accountant(NAME, make, force=True)


def _numbers(number: int, entry: object) -> _Entry:
    """Return one entry of a history as binary64 numbers and whole numbers of steps and samples."""
    if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) not in (3, 4):
        raise MalformedImport(f"entry {number}, {shown_value(entry)}, must be three numbers.")
    noise_multiplier, sample_rate, num_steps, *batches = entry
    for value in entry:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise MalformedImport(f"entry {number} with {shown_value(value)} must be of numbers.")
    for name, value in (("num_steps", num_steps), *(("batches", n) for n in batches)):
        if not isinstance(value, Integral):
            raise MalformedImport(
                f"{name}={shown_value(value)} of entry {number} must be a whole number."
            )
    try:
        noise, rate = float(noise_multiplier), float(sample_rate)
    except OverflowError as error:
        raise MalformedImport(f"entry {number} must be of binary64 numbers.") from error
    # towards more epsilon, where a number has more digits than a binary64 holds
    noise = nextafter(noise, -inf) if noise > noise_multiplier else noise
    rate = nextafter(rate, inf) if rate < sample_rate else rate
    drawn = (noise, rate, int(num_steps))
    return (*drawn, int(batches[0])) if batches else drawn
