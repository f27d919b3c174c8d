"""A choice among settings that is paid for: every fit and the choice itself stand in one ledger.

Scores on private records tell of them, the winner's name included; so a search that looks at such
scores and reports the epsilon of the winner's fit alone reports too little (Papernot, Steinke
2022). Here records are divided once, by their places, into training and holdout. All K candidates
are trained on the first, and share its budget equally: mu/sqrt(K) each, of a Gaussian mechanism.
The exponential mechanism chooses by the numbers of wrong predictions on the second, with (nearly)
the whole epsilon, since a record lives in one part only and the parts compose in parallel. It errs
by more than (2/epsilon)(ln K + t) holdout records with probability e^-t (McSherry, Talwar 2007).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt

from ...accounting.gaussian.exact import epsilon_from_delta, mu_from_epsilon_delta
from ...accounting.planning import require_target
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.errors import InvalidParameter, named
from ...mechanisms.events import Event
from ...mechanisms.labels import LabelDomain, WeightedLabels
from ...mechanisms.noise import ExponentialMechanism
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...mechanisms.row_blocks import RowBlocks
from ...solvers.planning import planned_events
from ...solvers.solver import ModelSolver
from ..pipeline import Terms, calibrate
from .algorithms import SolverFactory
from .paid_run import paid_run
from .parties import PrivateModelOfParties, Solved, solved
from .rows import Rows

HOLDOUT = "holdout"
"""Name of the part that candidates are compared on: one more party, in events and in the ledger."""

SETTINGS = frozenset({"algorithm", "rounds", "regularisation"})
"""What a candidate may set: the rest is one for all, or is what is promised."""

_SHARE_OF_CHOICE = 0.999
"""Of epsilon: the accountant rounds upwards, and must still meet the target."""


@dataclass(frozen=True, eq=False, slots=True)
class Divided:
    """Both parts of the records, each with parties of its own."""

    training: PrivateDataset
    holdout: PrivateDataset

    def planned(self) -> "Divided":
        """Return the same public facts without records, which plan as these parts do."""
        parts = (self.training, self.holdout)
        return Divided(*(type(part).planned(part.shape) for part in parts))


class SearchedModelOfParties(PrivateModelOfParties):
    """A classifier of parties' records that may choose among settings, within its epsilon.

    Args:
        candidates: settings to choose among, each of some of `SETTINGS`; None for no choice.
        holdout: share of the records, evenly spaced by their places, that the choice is made on.
    """

    candidates: Sequence[Mapping[str, Any]] | None
    holdout: float

    best_index_: int
    best_params_: dict[str, Any]

    def _candidates(self) -> list[dict[str, Any]]:
        """Return the candidates; raise `InvalidParameter` where a choice cannot be offered."""
        given = self.candidates or ()
        if not isinstance(given, Sequence) or not all(isinstance(each, Mapping) for each in given):
            raise InvalidParameter("candidates", given, "None or a list of settings, each by name")
        found = [dict(each) for each in given]
        if len(found) < 2:
            raise InvalidParameter("candidates", found, "None or at least two settings")
        for each in found:
            if not SETTINGS.issuperset(each):
                raise InvalidParameter("candidates", each, f"of {sorted(SETTINGS)} only")
        if not 0.0 < self.holdout < 1.0:
            raise InvalidParameter("holdout", self.holdout, "in (0, 1)")
        if named("adjacency", self.adjacency, Adjacency) is Adjacency.ADD_REMOVE_ONE:
            need = "replace-one or zero-out-one: one record more would move others to the holdout"
            raise InvalidParameter("adjacency", self.adjacency, need)
        if self.records_per_unit != 1:
            need = "1 with candidates: a person's records may lie in both parts"
            raise InvalidParameter("records_per_unit", self.records_per_unit, need)
        return found

    def _epsilon_of_a_candidate(self) -> float:
        """Return the epsilon of mu/sqrt(K), where mu is what the whole target allows.

        Raises `InvalidParameter` for an epsilon outside the accountant's range.
        """
        require_target("epsilon", self.epsilon)
        mu = mu_from_epsilon_delta(epsilon=self.epsilon, delta=self.delta).lower_float
        count = len(self._candidates())
        own = epsilon_from_delta(mu_squared=mu**2 / count, delta=self.delta).upper_float
        if own == 0.0:
            raise InvalidParameter("epsilon", self.epsilon, f"larger for {count} candidates")
        return own

    def _searched(
        self,
        rows: Rows | RowBlocks,
        labels: FloatArray,
        domain: LabelDomain,
        party_of: Any,
        factories: Sequence[SolverFactory],
    ) -> tuple[FloatArray, ModelSolver]:
        """Return the chosen candidate's model, and what made it; note which one it is.

        Args:
            rows, labels, domain, party_of: as `_trained` takes them, of all records.
            factories: of the candidates' solvers, in their order.

        Raises whatever `paid_run` does, before anything is spent.
        """
        data = self._divided(rows, labels, domain, party_of)
        planned = data.planned()
        own, terms = self._epsilon_of_a_candidate(), Terms(self.delta)
        multipliers = [
            calibrate(
                partial(_planned, made, planned.training), epsilon=own, terms=terms
            ).noise_multiplier
            for made in factories
        ]

        def work(factor: float, parts: Divided, curator: Curator) -> tuple[int, Solved]:
            """Return the chosen candidate's place and run, at `factor` times the noise of each."""
            runs = [
                solved(made, factor * z, parts.training, curator)
                for made, z in zip(factories, multipliers, strict=True)
            ]
            chosen = curator.release(
                parts.holdout.wrong_predictions([state.model for state, _ in runs]),
                mechanism=ExponentialMechanism(_SHARE_OF_CHOICE * float(self.epsilon)),
                round=0,
                release="choice of a candidate",
            )
            best = int(np.argmax(chosen))
            return best, runs[best]

        paid = paid_run(
            work,
            planned=planned,
            private=data,
            name=f"{type(self).__name__}, {len(factories)} candidates",
            epsilon=self.epsilon,
            delta=self.delta,
            ledger=self.ledger,
            noise=self._noise(stacklevel=5),  # the caller of fit
        )
        best, (state, history) = self._note(paid, assuming=self._given(domain))
        self.best_index_, self.best_params_ = best, self._candidates()[best]
        self.history_, self.n_iter_ = tuple(history), len(history)
        noise = paid.noise_multiplier * multipliers[best]
        self.noise_multiplier_ = noise
        return state.model, factories[best](noise, data.training.shape)

    def _divided(
        self, rows: Rows | RowBlocks, labels: FloatArray, domain: LabelDomain, party_of: Any
    ) -> Divided:
        """Return the records in two parts; who is held out is public and fixed, by its place.

        Held-out records count alike in the choice, whatever their weights.
        """
        if HOLDOUT in self._names():
            raise InvalidParameter("parties", HOLDOUT, "other names: it is the holdout's")
        held = held_out(len(labels), self.holdout)
        holders = None if party_of is None else self._holders(party_of, len(labels), 1)[~held]
        training = self._private(rows[~held], labels[~held], domain, holders)
        if isinstance(domain, WeightedLabels):
            labels, domain = domain.parts(labels)[0], domain.labels
        holdout = PrivateDataset(
            rows[held],
            labels[held],
            adjacency=self.adjacency,
            row_bound=1.0,
            parties=(HOLDOUT,),
            label_domain=domain,
        )
        return Divided(training, holdout)


def _planned(
    factory: SolverFactory, training: PrivateDataset, noise_multiplier: float
) -> tuple[Event, ...]:
    """Return the events of one candidate by itself."""
    return planned_events(partial(solved, factory, noise_multiplier), training)


def held_out(count: int, share: float) -> npt.NDArray[np.bool_]:
    """Return which of `count` records are held out, evenly spaced: of shape (count,).

    Raises `InvalidParameter` where a part would be empty.

    >>> held_out(10, 0.2).nonzero()[0].tolist()
    [4, 9]
    """
    before = np.array([floor(place * share) for place in range(count + 1)])
    held = np.diff(before) > 0
    if not held.any() or held.all():
        raise InvalidParameter("holdout", share, f"a share that divides {count} records")
    return held
