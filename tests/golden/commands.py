"""Every command of `dpledger`, as a user calls it: exit statuses, and the shape of `--json`.

A call is a name, the folder's placeholders filled in, and run in this process. Calls run in the
order they stand, since what one writes, others read.
"""

import io
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
import numpy as np

from dpledger.cli import main
from dpledger.cli import run as entry_point

__all__ = [
    "CALLS",
    "CONFIGURATION",
    "SCHEMA",
    "called_commands",
    "every_command",
    "found",
    "write_people",
]

SCHEMA = """
row_bound = 1.0
description = "sixty invented people"
on_outside = "clip"
columns = [
    {kind = "numeric", name = "age", lower = 0, upper = 100},
    {kind = "categorical", name = "town", categories = ["north", "south", "west"]},
    {kind = "label", name = "income", positive = ["high"], negative = ["low"]},
]
"""
CONFIGURATION = """
[data]
files = ["people.csv"]
schema = "people.toml"
train_records = 48
parties = 4

[privacy]
adjacency = "replace-one"
epsilon = 2.0
delta = 1e-5

[solver]
algorithm = "dp-admm"
rounds = 6
distance = 5.0

[noise]
sampler = "philox"
seed = 5

[attack]
trials = 20
"""
FEDERATION = """
[federation]
parties = ["east", "west"]
records = [60, 60]
schema = "people.toml"

[privacy]
adjacency = "replace-one"
noise_multiplier = 5.0
delta = 1e-5

[solver]
algorithm = "dp-admm"
rounds = 3
distance = 5.0
"""
PARTY = """
[party]
name = "{name}"
run = "federation.toml"
files = ["{name}.csv"]
folder = "{name}"

[noise]
sampler = "system"

[policy]
epsilon = 9.0
delta = 1e-5
adjacency = "replace-one"
algorithms = ["dp-admm"]
"""
CLAIM = """
title = "a hundred Gaussian steps"
adjacency = "replace-one"
tuning = "none"
unit = "record"
preprocessing = "none"
[promise]
epsilon = {epsilon}
delta = 1e-5
[[releases]]
mechanism = "gaussian"
sensitivity = 1.0
noise_std = 37.4
rounds = 100
"""
MODEL = """
import numpy as np


class Coin:
    classes_ = np.array([-1, 1])

    def predict_proba(self, rows):
        return np.full((len(rows), 2), 0.5)


class Memory(Coin):
    def __init__(self, features, labels):
        self.known = {row.tobytes(): label for row, label in zip(features, labels)}

    def predict_proba(self, rows):
        positive = 0.5 + 0.4 * np.array([self.known.get(row.tobytes(), 0) for row in rows])
        return np.stack([1 - positive, positive], axis=1)


def coin(features, labels, seed):
    return Coin()


def memory(features, labels, seed):
    return Memory(features, labels)


def forgetful(answers, trials, generator):
    return answers + generator.laplace(size=(trials, answers.size))


def mean(rows, labels, public):
    return rows.mean(axis=0)


def noisy(rows, labels, record):
    generator = np.random.default_rng(record.seed)
    record.normal(
        rows.mean(axis=0),
        lambda value: generator.normal(value, 4.0),
        sensitivity=0.4,
        noise_std=4.0,
    )
"""

NOISE = "--epsilon 1 --delta 1e-5 --adjacency replace-one"
OWN = (
    "--adjacency add-remove-one --records own.npz --epsilon 1 --delta 1e-5 --trials 60 --shadows 6"
)
BOX = "audit blackbox own.py:forgetful --queries 3 --seed 1"
TABLE = "--records 5 --features 2 --adjacency replace-one"
FOREIGN = f"--delta 1e-5 --confidence 0.999 {TABLE}"
PUBLISHED = "--no-attack --no-baselines --no-crosscheck"

CALLS: dict[str, str] = {
    "no command": "",
    "help": "--help",
    "version": "--version",
    "an unknown command": "nonsense",
    "init a template": "init people.csv --template --json",
    "init over files": "init people.csv --template --json",
    "explain": "explain privacy.delta --json",
    "explain an unknown key": "explain nothing --json",
    "calibrate noise": f"calibrate {NOISE} --rounds 100 --json",
    "calibrate rounds": f"calibrate {NOISE} --noise-multiplier 37.31 --json",
    "calibrate both": f"calibrate {NOISE} --rounds 3 --noise-multiplier 37.31 --json",
    "calibrate a wrong delta": (
        "calibrate --epsilon 1 --delta 2 --rounds 3 --adjacency replace-one --json"
    ),
    "plan": "plan run.toml --certificate planned.json --json",
    "plan a leak": "plan published.toml --json",
    "plan a missing file": "plan nothing.toml --json",
    "plan a wrong key": "plan wrong.toml --json",
    "curve": "curve run.toml --points 3 --json",
    "curve, fast": "curve run.toml --points 3 --grade fast --json",
    "curve of a training run": "curve --noise-multiplier 2 --steps 9 --sampling none"
    " --adjacency replace-one --points 2 --plot curve.svg --json",
    "curve of a leak": "curve published.toml --points 2 --json",
    "curve from a wrong delta": "curve run.toml --from 2 --json",
    "crosscheck": "crosscheck run.toml --json",
    "crosscheck a leak": "crosscheck published.toml",
    "run": "run run.toml --out out --json",
    "run over a ledger": "run run.toml --out out --json",
    "run a leak": f"run published.toml --out leaky {PUBLISHED} --json",
    "run a wrong file": "run wrong.toml --out wrong --json",
    "verify": "verify out/certificate.json --ledger out/ledger.sqlite --json",
    "verify a plan": "verify planned.json --json",
    "verify against another ledger": (
        "verify out/certificate.json --ledger leaky/ledger.sqlite --json"
    ),
    "verify a changed certificate": "verify changed.json --json",
    "verify no certificate": "verify run.toml --json",
    "verify a missing file": "verify nothing.json --json",
    "report": "report out",
    "report as JSON": "report out --json",
    "report as Markdown": "report out --format markdown",
    "report of nothing": "report .",
    "import": "import opacus theirs.json --adjacency add-remove-one --json",
    "import into a ledger": (
        "import opacus theirs.json --adjacency add-remove-one --ledger theirs.sqlite --json"
    ),
    "import twice": (
        "import opacus theirs.json --adjacency add-remove-one --ledger theirs.sqlite --json"
    ),
    "import no such file": "import flower theirs.json --adjacency add-remove-one",
    "ledger create": f"ledger create team.sqlite {NOISE} --json",
    "ledger create again": f"ledger create team.sqlite {NOISE}",
    "ledger show": "ledger show out/ledger.sqlite --json",
    "ledger show a leak": "ledger show leaky/ledger.sqlite --json",
    "ledger show an empty one": "ledger show team.sqlite --json",
    "ledger verify": "ledger verify out/ledger.sqlite --json",
    "ledger verify another head": "ledger verify out/ledger.sqlite --head 0123 --json",
    "ledger verify a changed one": "ledger verify changed.sqlite --json",
    "ledger verify no ledger": "ledger verify run.toml --json",
    "ledger anchor": "ledger anchor out/ledger.sqlite --to elsewhere.anchor --json",
    "ledger anchor of another ledger": "ledger anchor leaky/ledger.sqlite --to elsewhere.anchor",
    "ledger export": "ledger export out/ledger.sqlite",
    "ledger export a certificate": (
        "ledger export out/ledger.sqlite --certificate exported.json --delta 1e-6 --json"
    ),
    "ledger export a certificate of a leak": (
        "ledger export leaky/ledger.sqlite --certificate leak.json"
    ),
    "watch": "watch out/ledger.sqlite --config run.toml --trials 10 --json",
    "watch again": "watch out/ledger.sqlite --json",
    "watch with a memory that no key signed": "watch out/ledger.sqlite --key run.toml --json",
    "watch a leak": "watch leaky/ledger.sqlite --json",
    "watch a changed one": "watch changed.sqlite --json",
    "attack": "attack run.toml --json",
    "attack nothing": "attack",
    "attack by scores": "attack --scores in.npy out.npy --mu 3 --delta 1e-5 --json",
    "attack by scores, refuted": "attack --scores in.npy out.npy --epsilon 1 --delta 1e-5 --json",
    "attack by scores without delta": "attack --scores in.npy out.npy --epsilon 1 --json",
    "attack a model": f"attack --model own.py:memory {OWN} --target worst --json",
    "membership": "membership run.toml --trials 40 --shadows 6 --json",
    "membership of a model": f"membership --model own.py:coin {OWN} --target random --json",
    "membership of a model that remembers": (
        f"membership --model own.py:memory {OWN} --target worst --json"
    ),
    "membership of nothing": "membership --json",
    "plan of a one-run audit": "audit one-run --canaries 200 --mu 1 --delta 1e-5 --json",
    "one-run audit of nothing": "audit one-run --mu 1 --delta 1e-5",
    "audit of a black box": f"{BOX} --epsilon 1 --json",
    "audit of a black box by kernels": f"{BOX} --epsilon 1 --kernel --json",
    "audit of a black box, a bound": f"{BOX} --epsilon 0.1 --delta 1e-5 --bound --json",
    "audit of a black box of no claim": BOX,
    "audit of a sensitivity": f"audit sensitivity own.py:mean --claimed 0.2 {TABLE} --json",
    "audit of foreign code": (
        f"audit foreign own.py:noisy --mu 0.1 {FOREIGN} --row-bound 1 --seed 1 --json"
    ),
    "audit of foreign code, uncensored": (
        f"audit foreign own.py:noisy --mu 0.1 {FOREIGN} --seed 1 --json"
    ),
    "claims list": "claims list --json",
    "claims list one": "claims list H-3 --json",
    "claims list an unknown one": "claims list H-99 --json",
    "claims show": "claims show H-3 --json",
    "claims show a paper": "claims show huang2020_star --json",
    "claims audit what holds": "claims audit H-R H-3 --set t=10 --set eps=1 --json",
    "claims audit what fails": "claims audit H-3 PR-9 DPA-1 --json",
    "claims audit a wrong parameter": "claims audit H-3 --set nothing=1 --json",
    "claims explain": "claims explain H-3 --json",
    "claims explain an unknown one": "claims explain X --json",
    "claims page": "claims page H-3 --out page.html --json",
    "claims check what holds": "claims check holds.toml --json",
    "claims check a file of others": (
        "claims check theirs.json --kind opacus --adjacency add-remove-one "
        "--promise epsilon=2,delta=1e-5 --json"
    ),
    "claims check what fails": "claims check fails.toml --json",
    "claims check no claim": "claims check people.toml --json",
    "claims check a run": (
        "claims check --ledger out/ledger.sqlite --promise epsilon=2,delta=1e-5 --json"
    ),
    "claims check a run, refuted": (
        "claims check --ledger out/ledger.sqlite --promise epsilon=1,delta=1e-5 --json"
    ),
    "claims check nothing": "claims check --json",
    "epsilon": "epsilon --noise-multiplier 2 --steps 9 --sampling none --adjacency replace-one"
    " --delta 1e-5 --json",
    "epsilon of what is not stated": "epsilon --noise-multiplier 2 --steps 9 --delta 1e-5 --json",
    "noise": "noise --epsilon 2 --steps 9 --sampling none --adjacency replace-one"
    " --delta 1e-5 --json",
    "experiment list": "experiment list --json",
    "experiment": (
        "experiment hu2020_sharing/noise_digits --quick --runs 1 --out experiments --json"
    ),
    "experiment of another name": "experiment huang2020_star/nothing --json",
    "predict": "predict out/model.json people.csv --out predicted.csv --json",
    "predict with no model": "predict people.csv people.csv --json",
    "stats, planned": "stats asked.toml --plan --json",
    "stats": "stats asked.toml --out statistics --json",
    "stats of a wrong file": "stats run.toml --json",
    "demo": "demo --out demo --rounds 2 --trials 10 --json",
    "federate": "federate federation.toml --party east.toml --party west.toml --json",
    "federate one party of two": "federate federation.toml --party east.toml",
    "party serve without a token": "party serve east.toml",
    "verify a federation": "verify --federation federation --json",
    "verify a changed federation": "verify --federation changed --json",
    "verify a certificate and a federation": "verify changed.json --federation federation",
}


ASKED = """
[data]
files = ["people.csv"]
schema = "people.toml"
records = 60
[privacy]
adjacency = "replace-one"
epsilon = 1.0
[[statistics]]
kind = "mean"
column = "age"
[[statistics]]
kind = "quantile"
column = "age"
quantile = 0.5
[[statistics]]
kind = "histogram"
column = "town"
"""


def write_people(folder: Path, name: str = "people", seed: int = 0) -> None:
    """Write the records of sixty invented people, and their schema."""
    rng = np.random.default_rng(seed)
    towns = rng.choice(["north", "south", "west"], size=60)
    ages = rng.integers(18, 90, size=60)
    labels = np.where((ages > 50) ^ (rng.random(60) < 0.1), "high", "low")
    rows = [f"{a},{t},{y}" for a, t, y in zip(ages, towns, labels, strict=True)]
    text = "age,town,income\n" + "\n".join(rows) + "\n"
    (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    (folder / "people.toml").write_text(SCHEMA, encoding="utf-8")


def _people(folder: Path) -> None:
    """Write sixty people, their schema, and configurations."""
    write_people(folder)
    # parties hold different records: the same ones would pay for one party's releases only
    write_people(folder, "east", seed=1)
    write_people(folder, "west", seed=2)
    leaky = CONFIGURATION.replace('"dp-admm"', '"dp-admm-published"')
    # what pre-training finds on these records: a run keeps to a plan that guesses it
    leaky = leaky.replace("distance = 5.0", "distance = 13.0")
    for name, text in {
        "run.toml": CONFIGURATION,
        "published.toml": leaky.replace("epsilon = 2.0", "noise_multiplier = 5.0"),
        "wrong.toml": CONFIGURATION.replace("rounds = 6", "round = 6"),
        "federation.toml": FEDERATION,
        "east.toml": PARTY.format(name="east"),
        "west.toml": PARTY.format(name="west"),
        "theirs.json": '{"history": [[1.0, 0.01, 1000]], "mechanism": "rdp"}',
        "holds.toml": CLAIM.format(epsilon=1.0),
        "fails.toml": CLAIM.format(epsilon=0.9),
        "own.py": MODEL,
        "asked.toml": ASKED,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")


def _scores(folder: Path) -> None:
    """Write scores of a 3-GDP pair, and records for a model of the user's own."""
    rng = np.random.default_rng(91)
    np.save(folder / "in.npy", rng.normal(4.5, 3.0, 500))
    np.save(folder / "out.npy", rng.normal(-4.5, 3.0, 500))
    np.savez(
        folder / "own.npz",
        features=rng.normal(size=(20, 2)),
        labels=np.repeat([-1, 1], 10),
        population_features=rng.normal(size=(10, 2)),
        population_labels=np.repeat([-1, 1], 5),
    )


def _changed_certificate(folder: Path) -> None:
    text = (folder / "out" / "certificate.json").read_text(encoding="utf-8")
    (folder / "changed.json").write_text(text.replace('"round":3', '"round":4'), encoding="utf-8")


def _changed_ledger(folder: Path) -> None:
    """Copy the run's ledger with one round renamed, as somebody with the file could."""
    with (
        sqlite3.connect(folder / "out" / "ledger.sqlite") as old,
        sqlite3.connect(folder / "changed.sqlite") as new,
    ):
        old.backup(new)
        for (trigger,) in new.execute("SELECT name FROM sqlite_master WHERE type='trigger'"):
            new.execute(f"DROP TRIGGER {trigger}")
        (table,) = new.execute(
            "SELECT name FROM sqlite_master WHERE type='table' AND sql LIKE '%previous%'"
        ).fetchone()
        new.execute(f"UPDATE {table} SET body = replace(body, '\"round\":3', '\"round\":4')")
    old.close()
    new.close()


def _changed_federation(folder: Path) -> None:
    shutil.copytree(folder / "federation", folder / "changed")
    shutil.copy(folder / "out" / "certificate.json", folder / "changed" / "west.certificate.json")


AFTER: dict[str, Callable[[Path], None]] = {
    "verify": _changed_certificate,
    "ledger verify": _changed_ledger,
    "federate": _changed_federation,
}
"""What somebody does after a call: changes a copy of what it read."""


def _answer(arguments: list[str]) -> tuple[int, str]:
    """Return the exit status and the standard output of one call."""
    written, before = io.BytesIO(), sys.argv
    out = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    sys.argv = ["dpledger", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            entry_point()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.argv = before
    return status, written.getvalue().decode()


def _shape(value: Any) -> Any:
    """Return a JSON value with types in place of values; of a list, its first element's."""
    match value:
        case dict():
            return {key: _shape(value[key]) for key in sorted(value)}
        case list():
            return [_shape(each) for each in value[:1]]
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return "null"


def found(folder: Path, names: Iterable[str] = CALLS) -> dict[str, dict[str, Any]]:
    """Return each call's exit status and, with `--json`, the shape of what it prints."""
    _people(folder)
    _scores(folder)
    measured: dict[str, dict[str, Any]] = {}
    with chdir(folder):
        for name in names:
            line = CALLS[name]
            status, out = _answer(line.split())
            measured[name] = {"call": line, "status": status}
            if line.endswith("--json") and out:
                measured[name]["json"] = _shape(json.loads(out))
            if name in AFTER:
                AFTER[name](folder)
    return measured


def _leaves(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _leaves(below, (*path, name))
    else:
        yield " ".join(path)


def every_command() -> set[str]:
    """Return the commands that there are, as "ledger show"."""
    return set(_leaves(main, ()))


def called_commands() -> set[str]:
    """Return the commands that some call is of."""
    lines = [f"{line} " for line in CALLS.values()]
    return {name for name in every_command() if any(line.startswith(f"{name} ") for line in lines)}
