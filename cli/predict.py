"""`dpledger predict`: a trained model on a file of records.

Asks for a run's model.json and a file of records; scaling and columns are the model's own. Nothing
is recorded in a ledger: a function of a public model and of new records spends no budget of the
records it was trained on.

Prints each record's class, how many of each, and the epsilon that the model was trained under;
--out writes all predictions and scores as CSV. Exit status 0; 2 for a file without the model's
columns, or another format.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.outcome import Outcome
from ..runs.models import predict_file
from ..runs.outcomes.models import prediction_outcome
from .inputs import FILE, NEW_FILE
from .output import answers


@click.command()
@click.argument("model", type=FILE)
@click.argument("records", metavar="FILE", type=FILE)
@click.option("--out", type=NEW_FILE, help="Write predictions and scores to this new CSV file.")
@answers
def predict(model: Path, records: Path, out: Path | None) -> Outcome:
    """Predict the class of each record of FILE with MODEL, a run's model.json.

    A released model is public: predicting costs no privacy. FILE needs the columns of the features;
    that of the label may be missing.
    """
    return prediction_outcome(predict_file(model, records, out), out)
