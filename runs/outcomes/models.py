"""Predictions as outcomes: each record's class, and what the model was promised.

A prediction of a public model costs nothing: the epsilon that is printed is the one that was paid
in training.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ...accounting.numbers.enclosure import shown_in_full, shown_up
from ...audits.outcome import Outcome, TextColumns
from ..models import Prediction

_SHOWN = 20
"""Records whose prediction is printed; a file has them all."""


def prediction_outcome(found: Prediction, out: Path | None = None) -> Outcome:
    """Return what was predicted.

    Args:
        found: by a model.
        out: where it was written, if it was.

    All predictions stand in the data; people see the first twenty, and how often each class was
    predicted.
    """
    classes = [str(word) for word in found.classes]
    model = found.model
    counted = Counter(classes)
    counts = {word: counted[word] for word in model.classes}
    relation = "" if model.adjacency is None else f", {model.adjacency}"
    shown = model.epsilon if isinstance(model.epsilon, str) else shown_up(model.epsilon, digits=6)
    promise = f"{shown} at delta {shown_in_full(model.delta)} per {model.unit}{relation}"
    rest = len(classes) - _SHOWN
    return Outcome(
        title=f"{len(classes)} predictions of {model.algorithm}",
        data={
            "predictions": classes,
            "counts": counts,
            "epsilon": model.epsilon,
            "delta": model.delta,
            "subject": model.subject,
            "file": None if out is None else str(out),
        },
        rows=(
            *((f"predicted {word}", str(count)) for word, count in counts.items()),
            ("the model's epsilon", promise),
            ("file", None if out is None else str(out)),
            ("not shown", f"{rest} more; --out writes them all" if rest > 0 else None),
        ),
        tables=(
            TextColumns(
                ("record", "prediction"),
                [(str(k), word) for k, word in enumerate(classes[:_SHOWN], 1)],
            ),
        ),
    )
