"""How well probabilities fit: log loss and calibration error of the default classifier.

    python benchmarks/calibration.py

UCI Adult, 40,000 training and 5,222 test records, one split, δ = 1e-5, replace-one. `logistic`
takes scores for log-odds; `link` is what `predict_proba` does: the probability at which a score has
the least expected loss, slopes being cut at one half. The error is the mean distance of predicted
and observed shares over ten equal bins, weighted by their records.
"""

import warnings

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit

from dpledger.data import LabelledRecords, load_adult, split_records
from dpledger.mechanisms.errors import RepeatableNoise
from dpledger.mechanisms.protocols import FloatArray
from dpledger.runs.estimators import PrivateAdmmClassifier


def rows_of(records: LabelledRecords) -> FloatArray:
    features = records.features
    return np.asarray(features.toarray() if issparse(features) else features)


def log_loss(chances: FloatArray, labels: FloatArray) -> float:
    return float(-np.mean(np.log(np.where(labels > 0, chances, 1.0 - chances))))


def calibration_error(chances: FloatArray, labels: FloatArray) -> float:
    bins = np.clip((10.0 * chances).astype(int), 0, 9)
    sums = [np.abs(np.sum(chances[bins == k] - (labels[bins == k] > 0))) for k in range(10)]
    return float(np.sum(sums)) / len(labels)


def main() -> None:
    warnings.simplefilter("ignore", RepeatableNoise)
    train, test = split_records(load_adult(), train_records=40_000, seed=7)
    print(f"{'parties':>7} {'eps':>5}  {'log loss':^17}  {'calibration error':^17}")
    print(f"{'':>7} {'':>5}  {'logistic':>8} {'link':>8}  {'logistic':>8} {'link':>8}")
    for parties in (1, 100):
        for epsilon in (10.0, 1.0, 0.1):
            model = PrivateAdmmClassifier(
                epsilon=epsilon,
                delta=1e-5,
                adjacency="replace-one",
                n_parties=parties,
                classes=(-1, 1),
                clip=True,
                random_state=1,
            ).fit(rows_of(train), train.labels)
            rows = rows_of(test)
            both = expit(model.decision_function(rows)), model.predict_proba(rows)[:, 1]
            found = [f(p, test.labels) for f in (log_loss, calibration_error) for p in both]
            print(f"{parties:7} {epsilon:5g}  {found[0]:8.4f} {found[1]:8.4f}  ", end="")
            print(f"{found[2]:8.4f} {found[3]:8.4f}", flush=True)


if __name__ == "__main__":
    main()
