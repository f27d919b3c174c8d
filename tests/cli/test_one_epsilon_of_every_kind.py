"""Law: of every kind of step, what a command prints as proved is what the checker accepted.

And no command is left out: each is held to its grade, or has no epsilon of its own to print.
"""

import re
from fractions import Fraction
from pathlib import Path

import click
import pytest
from tests.golden.commands import ASKED
from tests.parameters import quick

from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.training_runs import RULES
from dpledger.cli.app import main

from .conftest import Call
from .test_one_epsilon import COMMANDS, GRADED, accepted

__all__ = ["accepted"]

COSTLY = ("with-replacement", "truncated-poisson")
"""What takes seconds under replace-one; the first of the two is among the releases too."""
RELEASES = {  # the relation promised, and what is released
    "gaussian": ("zero-out-one", 'mechanism = "gaussian"\nsensitivity = 1.0\nnoise_std = 20.0'),
    "laplace": ("replace-one", 'mechanism = "laplace"\nsensitivity = 1.0\nscale = 20.0'),
    "discrete gaussian": (
        "replace-one",
        'mechanism = "discrete-gaussian"\nsensitivity = 1.0\nnoise_std = 20.0',
    ),
    "discrete laplace": (
        "add-remove-one",
        'mechanism = "discrete-laplace"\nsensitivity = 1.0\nscale = 20.0',
    ),
    "answers": ("replace-one", 'mechanism = "randomised-response"\ncategories = 2\ntruth = 0.6'),
    "stated": ("replace-one", 'mechanism = "private"\nepsilon = 0.1\ndelta = 0.0'),
    "poisson": (
        "add-remove-one",
        'mechanism = "gaussian"\nclip_norm = 1.0\nnoise_std = 2.0\n'
        'sampling = "poisson"\nrate = 0.01',
    ),
    "poisson, replaced": (
        "replace-one",
        'mechanism = "gaussian"\nclip_norm = 1.0\nnoise_std = 2.0\n'
        'sampling = "poisson"\nrate = 0.01',
    ),
    "poisson laplace": (
        "add-remove-one",
        'mechanism = "laplace"\nclip_norm = 1.0\nscale = 2.0\nsampling = "poisson"\nrate = 0.01',
    ),
    "fixed batch": (
        "replace-one",
        'mechanism = "gaussian"\nclip_norm = 1.0\nnoise_std = 4.0\n'
        'sampling = "fixed-batch"\nbatch = 2\nrecords = 99',
    ),
    "with replacement": (
        "replace-one",
        'mechanism = "gaussian"\nclip_norm = 1.0\nnoise_std = 4.0\n'
        'sampling = "with-replacement"\nbatch = 2\nrecords = 99',
    ),
    "shuffled": (
        "zero-out-one",
        'mechanism = "gaussian"\nclip_norm = 1.0\nnoise_std = 9.0\n'
        'sampling = "shuffled"\nbatch = 2\nrecords = 99',
    ),
}


@pytest.mark.parametrize("kind", quick(RELEASES.keys() - {"poisson, replaced"}, RELEASES))
def test_of_every_kind_of_release_the_epsilon_of_a_claim_is_the_checkers(
    kind: str, call: Call, tmp_path: Path, accepted: list[Fraction]
) -> None:
    relation, stated = RELEASES[kind]
    claim = tmp_path / "claim.toml"
    claim.write_text(
        f'adjacency = "{relation}"\n[promise]\nepsilon = 20.0\ndelta = 1e-5\n'
        f"[[releases]]\n{stated}\nrounds = 6\n"
    )
    answer = call("claims", "check", claim, "--json")
    assert answer.status == 0, answer.err
    (evidence,) = answer.data["evidence"]
    assert Fraction(evidence["proved_epsilon"]) in accepted
    assert re.search(r"\bproved\b", call("claims", "check", claim).out)


OWN = {"truncated-poisson": ("--largest-batch", "60"), "cyclic-poisson": ("--cycle", "3")}


@pytest.mark.parametrize(
    ("scheme", "relation"),
    [
        pytest.param(scheme.value, each.value, marks=[pytest.mark.slow] if costly else [])
        for scheme, relations in RULES.items()
        for each in relations
        for costly in [each.value == "replace-one" and scheme.value in COSTLY]
    ],
)
def test_of_every_kind_of_sampling_the_epsilon_of_a_training_run_is_the_checkers(
    scheme: str, relation: str, call: Call, accepted: list[Fraction]
) -> None:
    drawn = ("--records", "990", "--batch", "10") if scheme != "none" else ()
    drawn += OWN.get(scheme, ())
    asked = ("--noise-multiplier", "4", "--steps", "9", "--delta", "1e-5")
    answer = call(
        "epsilon", *asked, *drawn, "--sampling", scheme, "--adjacency", relation, "--json"
    )
    assert answer.status == 0, answer.err
    found = answer.data["guarantee"]
    assert Fraction(found["epsilon"]["upper"]) in accepted
    if scheme == "truncated-poisson":
        # what is checked is of batches that are not cut, at a smaller delta
        assert found["grade"] == Grade.ENCLOSED.value
        assert "not cut" in found["not_proved"]
    else:
        assert (found["grade"], found["not_proved"]) == (Grade.PROVED.value, None)


PRICED = {  # a file's thousands of releases go into a ledger, whose epsilons are enclosed
    "import": (
        Grade.ENCLOSED,
        ("import", "opacus", "theirs.json", "--adjacency", "add-remove-one"),
    ),
    "stats": (Grade.PROVED, ("stats", "asked.toml", "--plan")),
}


@pytest.mark.parametrize("name", PRICED)
def test_of_files_and_of_statistics_the_epsilon_has_its_grade(
    name: str,
    call: Call,
    folder: Path,
    accepted: list[Fraction],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    (folder / "theirs.json").write_text('{"history": [[1.0, 0.01, 100]], "mechanism": "rdp"}')
    (folder / "asked.toml").write_text(ASKED)
    grade, asked = PRICED[name]
    answer = call(*asked, "--json")
    assert answer.status == 0, answer.err
    found = answer.data["guarantee"]
    assert (found["grade"], found["not_proved"]) == (grade.value, None)
    assert (Fraction(found["epsilon"]["upper"]) in accepted) == (grade is Grade.PROVED)
    assert re.search(rf"\b{grade.value}\b", call(*asked).out)


OTHERS = {
    "claims": "papers' claims: enclosed, as the README says",
    "demo": "prints what `plan` and `run` do, of the example that is shipped",
    "experiment": "sweeps: fast or enclosed, as the README says",
    "explain": "words about keys",
    "federate": "prints what the certificate that it writes proves",
    "init": "writes files",
    "ledger": "all but `show`: hashes and rows",
    "party": "a party's messages; `federate` says what they cost",
    "predict": "reads a model",
    "report": "renders what `run` found",
    "verify": "prints the checker's verdict and nothing else",
}


def test_every_command_is_held_to_its_grade_or_said_not_to_be() -> None:
    held = {name.split()[0] for name in (*COMMANDS, *GRADED, *PRICED)} - {"claims", "ledger"}
    assert not held & OTHERS.keys()
    assert held | OTHERS.keys() == set(main.list_commands(click.Context(main)))
