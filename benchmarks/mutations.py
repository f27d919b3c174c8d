"""Bent certificates before the checker, many thousand: is anything false accepted?

Usage: python benchmarks/mutations.py STORE.jsonl [--first SEED] [--batches N] [--minutes M]

A batch bends certificates 1,000 times from a seed of its own, half of them of loss distributions,
and judges what the checker accepts by another route (`test_mutation.py` and `test_loss_mutation.py`
in `tests/accounting/proof/`). Each finished batch is a line of STORE; a run goes on where another
ended. By default 100 batches; after M minutes no further one is begun. A batch in which something
false was accepted is printed with its seed, and stays to be done; the others go on, and the exit
status is 1. A forger that stumbles over what it broke bends nothing: the count printed is of
documents that came before the checker.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

import mpmath

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.accounting.conftest import examples
from tests.accounting.proof.test_loss_mutation import loss_examples, mutate_losses
from tests.accounting.proof.test_mutation import BENT, mutate

BATCH = 1_000
FIRST_SEED = 2026_000


def main() -> int:
    parser = argparse.ArgumentParser(description="Bent certificates before the checker.")
    parser.add_argument("store", type=Path)
    parser.add_argument("--first", type=int, default=FIRST_SEED, metavar="SEED")
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    begun = time.monotonic()
    lines = options.store.read_text().splitlines() if options.store.exists() else []
    done = {found["seed"]: Counter(found["accepted"]) for found in map(json.loads, lines)}
    certificates = {name: make() for name, make in examples().items()}
    failed = 0
    distributions = {name: make() for name, make in loss_examples().items()}
    for seed in range(options.first, options.first + options.batches):
        if seed in done or time.monotonic() - begun > 60 * options.minutes:
            continue
        try:
            with mpmath.workdps(50):
                done[seed] = mutate(certificates, BATCH // 2, seed)
                done[seed] += mutate_losses(distributions, BATCH // 2, seed)
        except AssertionError as error:
            print(f"seed {seed}: {error}", flush=True)
            failed += 1
            continue
        with options.store.open("a") as store:
            store.write(json.dumps({"seed": seed, "accepted": done[seed]}) + "\n")
    accepted = sum(done.values(), Counter[str]())
    bent = accepted.pop(BENT, 0)
    print(f"{bent:,} bent, {accepted.total():,} accepted, {failed} batches with a false one")
    print(accepted)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
