"""Training a configured run: the solver on records, and how well its public models do.

Accuracies are measured on held-out records with models that were released, so they cost the
training records nothing; the held-out records' own privacy is not covered by the epsilon.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np

from ..data import LabelledRecords
from ..data.strict import ConfigurationError
from ..mechanisms import ClassLabels, Curator, LabelDomain, PrivateDataset
from ..mechanisms.protocols import FloatArray
from ..solvers.optimum import logistic_optimum
from ..solvers.solver import ModelSolver, PublicModel
from .configuration import Configuration
from .resuming import RECORD

Progress = Callable[[int, int], None]
"""Called with the number of rounds done and of all rounds."""

StartProgress = Callable[[str], Progress]
"""Called with what is begun; returns what is called as it goes on."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many held-out records a model classifies rightly.

    Args:
        right: their number.
        total: of all held-out records.
    """

    right: int
    total: int

    @property
    def share(self) -> float:
        """right / total."""
        return self.right / self.total


@dataclass(frozen=True, eq=False, slots=True)
class Training:
    """A finished run.

    Args:
        state: the last public state, with the model.
        history: the accuracy after every round.
    """

    state: PublicModel
    history: tuple[Accuracy, ...]

    @property
    def accuracy(self) -> Accuracy:
        """The accuracy of the final model."""
        return self.history[-1]


def weights(model: FloatArray, labels: LabelDomain) -> FloatArray:
    """Return what rows are multiplied by: of shape (d,) for labels ±1, (d, K) for K classes."""
    return model.reshape(-1, labels.classes) if isinstance(labels, ClassLabels) else model


def accuracy(model: FloatArray, records: LabelledRecords) -> Accuracy:
    """Return how many records a model classifies rightly; ties count as wrong.

    Of labels ±1 the sign of the score is chosen, of classes the one with the largest score.

    Args:
        model: of shape (d,), or (d·K,) of K classes.
        records: held out, n rows of d features.
    """
    scores = records.features @ weights(model, records.label_domain)
    if scores.ndim == 1:
        right = scores * records.labels > 0
    else:
        own = np.take_along_axis(scores, records.labels.astype(np.intp)[:, None], axis=1)
        right = (scores >= own).sum(axis=1) == 1
    return Accuracy(int(np.count_nonzero(right)), len(records))


def train(
    configuration: Configuration,
    solver: ModelSolver,
    dataset: PrivateDataset,
    test: LabelledRecords,
    curator: Curator,
    *,
    progress: Progress | None = None,
) -> Training:
    """Run a solver once, every release by `curator`; return the model and its accuracies.

    Args:
        configuration: of the run.
        solver: with its noise multiplier.
        dataset: the training records behind their handle.
        test: held-out records.
        curator: reserves every event before its noise.
        progress: called with the rounds done and all rounds.
    """
    rounds = configuration.solver.rounds
    history: list[Accuracy] = []

    def observe(k: int, state: PublicModel) -> None:
        history.append(accuracy(state.model, test))
        if progress is not None:
            progress(k, rounds)

    return Training(solver.solve(dataset, curator, observe=observe), tuple(history))


def converged(configuration: Configuration) -> tuple[Training, float]:
    """Return the optimum of regularised logistic regression on the training records, no release,
    and the norm of its gradient.

    Its history is its accuracy in every round: a line to compare with.

    Raises `InvalidParameter` for labels other than ±1.
    """
    train, test = configuration.records()
    dense = train.features if isinstance(train.features, np.ndarray) else train.features.toarray()
    regularisation = configuration.solver.regularisation
    found = logistic_optimum(np.asarray(dense), train.labels, regularisation=regularisation)
    reached = accuracy(found.model, test)
    return Training(found, (reached,) * configuration.solver.rounds), found.gradient_norm


_OF_A_RUN = (
    "ledger.sqlite",
    "journal.sqlite",
    "federation.json",
    RECORD,
    "configuration.toml",
    "certificate.json",
    "statistics.json",
    "model.json",
    "model.npy",
    "public.html",
    "report.html",
    "report.json",
    "report.md",
)
"""Files that a run writes into its folder, none of which may be there before."""

HOLDERS_COPY = "configuration.holder.toml"
"""What ran with its seed of noise, for the holder alone."""

_COPIES = (HOLDERS_COPY, "schema.toml")
"""Those that it copies there: see `new_folder`."""


def new_folder(
    out: Path | None,
    name: str,
    *others: Path | None,
    first: str = "configuration.toml",
    copies: Mapping[str, bytes] | None = None,
) -> Path:
    """Return a fresh folder for a run's files: `out`, or `dpledger-runs/<name>-<time>`.

    Args:
        out: where it is to be.
        name: of the run.
        others: files that the run adds to, a ledger and its anchor: they are none of those.
        first: file of the run that is made here, empty: of two runs that are told one folder at one
            moment, one makes it.
        copies: what is copied there, by file name; the same may be there, of the user's own folder.

    Raises `FileExistsError` if `out` already holds files of a run, finished or broken off: nothing
    of it is overwritten, and no page of one run lies beside the model of another.
    """
    try:
        folder = out or _fresh(Path("dpledger-runs"), name)
        folder.mkdir(parents=True, exist_ok=True)
        taken = any((folder / file).exists() for file in _OF_A_RUN)
        own = {(folder / file).resolve() for file in (*_OF_A_RUN, *_COPIES)}
        taken |= any(other.resolve() in own for other in others if other is not None)
        there = [(folder / file, text) for file, text in (copies or {}).items()]
        taken |= any(path.exists() and path.read_bytes() != text for path, text in there)
        taken = taken or not _made(folder / first)
    except OSError as error:
        raise ConfigurationError(
            f"out={out or 'dpledger-runs'} must be a folder that can be made ({error.strerror}); "
            "choose another"
        ) from error
    if taken:
        raise _taken(folder)
    return folder


def _made(file: Path) -> bool:
    """Return whether an empty file could be made: False where it is there, or another made it.

    The operating system decides between two that try at one moment.

    Args:
        file: in a folder that is there.
    """
    with suppress(FileExistsError):
        file.touch(exist_ok=False)
        return True
    return False


def _fresh(parent: Path, name: str) -> Path:
    """Make a folder that nobody else has, and return it: making it is what takes its name.

    Args:
        parent: of all runs without a folder of their own.
        name: of the run; second, process and, for a second run in it, a number follow.

    Raises `OSError` where none can be made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    for number in count():
        folder = parent / f"{name}-{stamp}-{os.getpid()}{f'-{number}' if number else ''}"
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise AssertionError  # there is always a number more


def journal_folder(folder: Path, *anchors: Path) -> Path:
    """Make the folder of a federation or of a party, and return its journal's file.

    Args:
        folder: of the federation, or of the party with its ledger.
        anchors: of the parties' ledgers: files that are none of the folder's.

    Raises `FileExistsError` where there is no journal yet but files of another run, and
    `ConfigurationError` for an anchor that is one of the files written there.
    """
    journal = folder / "journal.sqlite"
    others = [file for file in _OF_A_RUN if file != "ledger.sqlite"]
    if not journal.exists() and any((folder / file).exists() for file in others):
        raise _taken(folder)
    own = {(folder / file).resolve() for file in _OF_A_RUN}
    for anchor in anchors:
        if anchor.resolve() in own:
            raise ConfigurationError(f"anchor={anchor} must be none of the files of {folder}.")
    folder.mkdir(parents=True, exist_ok=True)
    return journal


def _taken(folder: Path) -> FileExistsError:
    resume = ", or resume its run" if (folder / RECORD).exists() else ""
    return FileExistsError(
        f"out={folder} must be a folder without a ledger or other files of a run; choose "
        f"another{resume}."
    )


class NewLedger(UserWarning):
    """A ledger that was named to pay is not there: a new one is made, which has no budget."""


def warn_of_new(ledger: Path) -> None:
    """Warn where there is no ledger of this name yet: a mistyped name has no budget."""
    if not ledger.exists():
        words = (
            f"ledger={ledger} is new and has no budget; `dpledger ledger create` makes one that has"
        )
        warnings.warn(words, NewLedger, stacklevel=3)
