"""Model files: what a run trained, with all that is needed to apply it, and what it was promised.

A model is public once it is released, so that applying it costs nothing. The file is JSON: the
schema that rows are encoded by (bounds scale numbers, words have places), the names of features in
order, classes, coefficients, and the guarantee with the subject of its certificate. `dpledger
predict MODEL FILE` applies it; in Python,

    model = read_model(Path("trained/model.json"))
    model.predict(Path("people.csv"))
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..data import Schema, load_unlabelled
from ..data.strict import ConfigurationError
from ..mechanisms import ClassLabels
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.protocols import FloatArray

_MOST_BYTES = 1 << 26
"""Of a model file: a million coefficients."""


class ModelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trained linear model.

    Args:
        format: of this file.
        algorithm: that trained it, in words.
        schema: by which rows of a file are encoded.
        features: their names, in the order of the coefficients; a last one, "constant", is that of
            an intercept.
        classes: the words that are predicted; of two, the second where the score is positive.
        coefficients: a list for each feature: one number for two classes, else one for each.
        epsilon: of what was released, rounded up; "infinity" where there is no promise.
        delta: at which.
        adjacency: the neighbouring relation; None where no event speaks of one.
        unit: whom the promise is for.
        subject: SHA-256 of the released events, which the run's certificate is about.
    """

    format: Literal["urn:dpledger:model:1"] = "urn:dpledger:model:1"
    algorithm: str
    schema: Schema
    features: tuple[str, ...]
    classes: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]
    epsilon: float | Literal["infinity"]
    delta: float
    adjacency: str | None
    unit: str
    subject: str

    def __post_init__(self) -> None:
        width = 1 if len(self.classes) == 2 else len(self.classes)
        if len(self.classes) < 2 or any(len(row) != width for row in self.coefficients):
            raise ValueError(f"coefficients must be lists of {width} numbers, one a class")
        names = self.schema.feature_names
        if self.features not in (names, (*names, _CONSTANT)):
            raise ValueError("features must be those of the schema, in order")
        if len(self.coefficients) != len(self.features):
            raise ValueError(f"coefficients must be {len(self.features)} lists, one a feature")
        if not all(isfinite(number) for row in self.coefficients for number in row):
            raise ValueError("coefficients must be finite numbers")

    def scores(self, path: Path) -> FloatArray:
        """Return the scores of a file's records: (n,) for two classes, else (n, K).

        Args:
            path: of the file; its rows are encoded and cut as those that were trained on.

        Raises `DataError` for a file that does not fit the schema.
        """
        records = load_unlabelled(path, schema=self.schema)
        if self.features != self.schema.feature_names:  # see `_CONSTANT`
            records = records.with_constant()
        found = np.asarray(records.features @ np.array(self.coefficients))
        return found[:, 0] if len(self.classes) == 2 else found

    def predict(self, path: Path) -> NDArray[np.str_]:
        """Return the predicted class of each record of a file, of shape (n,).

        Args:
            path: of the file, with the features' columns.
        """
        return self.chosen(self.scores(path))

    def chosen(self, scores: FloatArray) -> NDArray[np.str_]:
        """Return the classes with the largest scores, the first of equals; of two, by the sign.

        Args:
            scores: of shape (n,) for two classes, else (n, K), as `scores` returns them.
        """
        places = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(np.array(self.classes)[places])


_CONSTANT = "constant"
"""The name of an intercept's feature; see `LabelledRecords.with_constant`."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model predicts of a file.

    Args:
        model: that predicted.
        classes: of each record, in order.
        scores: as `ModelFile.scores`.
    """

    model: ModelFile
    classes: NDArray[np.str_]
    scores: FloatArray


def classes_of(schema: Schema) -> tuple[str, ...]:
    """Return the words of the classes: of two, that of -1 and that of +1, as first spelt."""
    numbers = schema.label.numbers
    if isinstance(schema.label.domain, ClassLabels):
        return tuple(numbers)
    return tuple(next(w for w, n in numbers.items() if n == sign) for sign in (-1.0, 1.0))


def read_model(path: Path) -> ModelFile:
    """Return the model in a JSON file; raise `ConfigurationError` for what is none."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigurationError(f"{path}: Expected at most {_MOST_BYTES} bytes.")
        return msgspec.json.decode(content, type=ModelFile)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: Expected a model file ({error!s:.300}).") from error


def predict_file(model: Path, records: Path, out: Path | None = None) -> Prediction:
    """Return what a model predicts of a file's records; write it as CSV where asked.

    Args:
        model: the model file.
        records: with the features' columns; those of labels and parties may be missing.
        out: a new CSV file with columns `prediction` and scores, a line for each record.

    Raises `DataError` for columns or cells that do not fit; `InvalidParameter` for an
    `out` that exists.
    """
    made = read_model(model)
    scores = made.scores(records)
    found = Prediction(made, made.chosen(scores), scores)
    if out is not None:
        if out.exists():
            raise InvalidParameter("out", str(out), "a new file: this one exists")
        several = scores.ndim == 2
        names = [f"score of {name}" for name in made.classes] if several else ["score"]
        with out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["prediction", *names])
            rows = scores.tolist() if several else [[score] for score in scores.tolist()]
            writer.writerows([word, *row] for word, row in zip(found.classes, rows, strict=True))
    return found
