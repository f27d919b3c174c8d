"""Logistic regression of diffprivlib on the splits of `utility.py`: one party, pure epsilon.

    python benchmarks/utility.py --first 1000 --export adult.npz
    python benchmarks/utility_diffprivlib.py adult.npz

or on those of `utility_sets.py`. The second command needs diffprivlib (0.6.6, with a scikit-learn
below 1.6) and nothing of this project, so it may run in an environment of its own. C is the best of
five on development records. Its noise is that of Chaudhuri, Monteleoni and Sarwate (2011), with
delta 0.
"""

from __future__ import annotations

import sys
import warnings
from math import sqrt

import numpy as np
from diffprivlib.models import LogisticRegression
from scipy.stats import t as student

WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


def accuracy(train: tuple, test: tuple, epsilon: float, weight: float, seed: int) -> float:
    """Return the accuracy of one fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the solver has not converged
        model = LogisticRegression(
            epsilon=epsilon, data_norm=1.0, C=weight, max_iter=300, random_state=seed
        )
        return float(model.fit(*train).score(*test))


def main() -> None:
    """Run from the command line."""
    with np.load(sys.argv[1]) as held:
        data = dict(held)
    rows, labels = data["development_rows"], data["development_labels"]
    for epsilon in (1.0, 0.1):
        tuned = {}
        for weight in WEIGHTS:
            found = []
            for k in range(3):
                order, held = np.random.default_rng(k).permutation(len(rows)), len(rows) // 5
                train, test = order[held:], order[:held]
                parts = (rows[train], labels[train]), (rows[test], labels[test])
                found.append(accuracy(*parts, epsilon, weight, k))
            tuned[weight] = np.mean(found)
        best = max(tuned, key=tuned.__getitem__)
        found = [
            accuracy(
                (data[f"train_rows_{k}"], data[f"train_labels_{k}"]),
                (data[f"test_rows_{k}"], data[f"test_labels_{k}"]),
                epsilon,
                best,
                k,
            )
            for k in range(int(data["splits"]))
        ]
        half = student.ppf(0.975, len(found) - 1) * np.std(found, ddof=1) / sqrt(len(found))
        print(f"eps {epsilon:g}, C {best:g}: {100 * np.mean(found):.2f} ± {100 * half:.2f}")


if __name__ == "__main__":
    main()
