"""A fit on records that live with one party each: who holds them, and what is run and paid for.

`fit` of the classifier and the regressor ends here: labels are numbers of a public domain, rows
have norm at most 1, and what is left is to plan the solver, prove and pay for the plan, and only
then run.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.data_shape import EVERYBODY
from ...mechanisms.errors import InvalidParameter, Number, named, require_positive_int
from ...mechanisms.labels import LabelDomain, WeightedLabels
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...mechanisms.record_sets import RecordSets
from ...mechanisms.row_blocks import RowBlocks, require_unmasked
from ...mechanisms.share_data import OnlySums
from ...solvers.solver import ModelSolver, PublicModel
from ...solvers.threat_model import PerParty, Summed, ThreatModel, summed_name
from .algorithms import SolverFactory
from .linear import PrivateLinearModel
from .paid_run import History, PublicRound, paid_run
from .rows import Rows, without_cells

IntArray = npt.NDArray[np.integer[Any]]
"""Party of each record, a place among the names, shape (n,)."""

MOST_PARTIES = 10**6
"""Whom an estimator gives names to; more are told before memory is full of them."""

_START_ASSUMED = "the model that this fit starts from is public: fits before it paid for it"
"""An assumption of the promise where a fit goes on from a model: that model's own epsilon is not in
this one.
"""

_APART_ASSUMED = "no two parties hold the same records (such are refused aloud)"
"""An assumption of the promise where there are several, whoever dealt them their records."""

_WEIGHTS_ASSUMED = (
    "sample weights are in [0, weight_bound], larger ones cut or refused aloud as rows are, and "
    "not all 0 (others are refused aloud); each was computed from its own record and public facts "
    "alone (class_weight 'balanced' is not)"
)
"""An assumption of the promise where records have weights: a refusal tells of one."""


Solved = tuple[PublicModel, list[PublicRound]]
"""What a solver came to, and what every round made public."""


def solved(
    factory: SolverFactory, noise_multiplier: float, dataset: PrivateDataset, curator: Curator
) -> Solved:
    """Return what a solver of the factory comes to on data, planned or private, and its rounds."""
    history = History()
    solver = factory(noise_multiplier, dataset.shape)

    def observe(k: int, state: PublicModel) -> None:
        history.add(k, state.model)

    return solver.solve(dataset, curator, observe=observe), history.rounds


class PrivateModelOfParties(PrivateLinearModel):
    """A linear model of records that live with one party each.

    Args:
        delta: of the promise, in (0, 1).
        adjacency: the relation of neighbours.
        n_parties: how many parties records are dealt to; None for one, or as many as `parties`
            names.
        parties: their names, public.
        threat_model: what is seen of messages: each party's, or sums alone.
        n_min: public lower bound on the records of each party, under add-remove-one.
    """

    delta: Number
    adjacency: Adjacency | str
    n_parties: int | None
    parties: Sequence[str] | None
    threat_model: ThreatModel
    n_min: int | None

    def _trained(
        self,
        rows: Rows | RowBlocks,
        labels: FloatArray,
        domain: LabelDomain,
        party_of: Any,
        factory: SolverFactory,
        *,
        start: tuple[float, ...],
    ) -> tuple[FloatArray, ModelSolver]:
        """Return the model of a run that was planned, paid for and proved, and what made it.

        Notes what the run promises.

        Args:
            rows: of norm at most 1, of shape (n, d).
            labels: of shape (n,), each in `domain`.
            domain: public.
            party_of: as `fit` is given it.
            factory: of solvers.
            start: the model that solvers start from; empty for 0.

        Raises whatever `paid_run` does, before anything is spent.
        """
        private = self._private(rows, labels, domain, party_of)
        paid = paid_run(
            partial(solved, factory),
            planned=type(private).planned(private.shape),
            private=private,
            name=type(self).__name__,
            epsilon=self.epsilon,
            delta=self.delta,
            records_per_unit=self.records_per_unit,
            ledger=self.ledger,
            noise=self._noise(stacklevel=5),  # the caller of fit
        )
        shape = private.shape
        counted = (
            f"a party has at least {shape.count} records and at most {shape.most} "
            "(others are refused aloud)"
        )
        assuming = (
            *self._given(domain),
            *((_START_ASSUMED,) if start else ()),
            *((counted,) if shape.adjacency is Adjacency.ADD_REMOVE_ONE else ()),
        )
        state, history = self._note(paid, assuming=assuming)
        self.history_ = tuple(history)
        self.n_iter_ = len(history)
        return state.model, factory(paid.noise_multiplier, private.shape)

    def _given(self, domain: LabelDomain) -> tuple[str, ...]:
        """Return what a fit takes for granted of messages, of parties, and of weights in labels."""
        trust = self.threat_model.assumption
        weighted = (_WEIGHTS_ASSUMED,) if isinstance(domain, WeightedLabels) else ()
        apart = (_APART_ASSUMED,) if len(self._names()) > 1 else ()
        return (*(() if trust is None else (trust,)), *apart, *weighted)

    def _private(
        self, rows: Rows | RowBlocks, labels: FloatArray, domain: LabelDomain, party_of: Any
    ) -> PrivateDataset:
        """Return the records behind a handle, as the threat model sees them: by party, or summed.

        Parties that hold the same records are refused either way, although a sum has one party:
        who stands in it twice pays once.

        Args: as for `_trained`.
        """
        if not isinstance(self.threat_model, PerParty | Summed):
            raise InvalidParameter("threat_model", self.threat_model, "PER_PARTY or Summed()")
        names = self._names()
        holders = self._holders(party_of, len(labels), len(names))
        dealt, whose, least, handle = names, holders, self.n_min, PrivateDataset
        if isinstance(self.threat_model, Summed):
            self.threat_model.share(0.0, parties=len(names))  # refuses more colluders than parties
            least = None if least is None else least * len(names)
            holders, names = np.zeros_like(holders), (summed_name(len(names)),)
            handle = OnlySums
        private = handle(
            rows,
            labels,
            adjacency=self.adjacency,
            row_bound=1.0,
            party_of=holders,
            parties=names,
            n_min=least,
            label_domain=domain,
        )
        if len(dealt) > len(names):  # a handle compares the parties that it knows
            sets = RecordSets(private.shape.features)
            sets.add_rows(dealt, rows, labels, private.shape, party_of=whose)
        return private

    def _names(self) -> tuple[str, ...]:
        """Return the parties' names: those that are given, or numbered ones.

        Raises `InvalidParameter` where number and names do not agree, and for names that can be
        read once only.
        """
        if self.parties is None:
            number = 1 if self.n_parties is None else self.n_parties
            require_positive_int("n_parties", number)
            if number > MOST_PARTIES:
                raise InvalidParameter("n_parties", number, f"at most {MOST_PARTIES}")
            return tuple(f"party-{i + 1}" for i in range(number))
        # an iterator is empty when it is read again
        if isinstance(self.parties, Iterator | str) or not isinstance(self.parties, Iterable):
            raise InvalidParameter("parties", self.parties, "a list or a tuple of names")
        names = tuple(self.parties)
        if names == EVERYBODY:  # what records without parties say: events of it would name nobody
            names = ("party-1",)
        if self.n_parties not in (None, len(names)):
            raise InvalidParameter("n_parties", self.n_parties, f"None or {len(names)}")
        return names

    def _holders(self, party_of: Any, count: int, parties: int) -> IntArray:
        """Return whose each record is: as given, or dealt in turn.

        Raises `InvalidParameter` for another length, and under add-remove-one where records would
        be dealt: one record more would move all behind it to other parties.
        """
        if party_of is not None:
            require_unmasked("party_of", party_of)
            holders: IntArray = without_cells("party_of", partial(column_or_1d, party_of))
            if len(holders) != count:
                raise InvalidParameter("party_of.shape", holders.shape, f"({count},)")
            return holders
        if (
            parties > 1
            and named("adjacency", self.adjacency, Adjacency) is Adjacency.ADD_REMOVE_ONE
        ):
            raise InvalidParameter("party_of", None, "an array: dealing in turn moves records")
        return np.arange(count) % parties
