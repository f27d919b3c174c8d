"""`dpledger claims check`: claims of the user's own, of anyone's runs, and of adversaries."""

import sqlite3
import sys
from collections.abc import Mapping
from math import exp
from pathlib import Path

import pytest
from tests.parameters import slow

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import SqliteLedger
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    Provenance,
    declared,
)
from dpledger.runs.configuration import read_configuration
from dpledger.runs.planning import plan

from ..conftest import Calls
from .conftest import Call, edited

PROMISE = "[promise]\nepsilon = 5.0\ndelta = 1e-5\n"
RELEASE = """
[[releases]]
mechanism = "gaussian"
sensitivity = 1.0
noise_std = 10.0
rounds = 100
"""
STATED = 'adjacency = "zero-out-one"\ntuning = "none"\nunit = "record"\npreprocessing = "none"\n'
FUNCTION = """
adjacency = "replace-one"
[promise]
sensitivity = {claimed}
[function]
code = "{code}"
count = 5
features = 2
"""
MEAN = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
def mean(rows, labels, public):
    return rows.mean(axis=0)
def other(rows, labels, public):
    raise KeyError("no such thing")
"""


def write(folder: Path, text: str, name: str = "claim.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# --- verdicts ----------------------------------------------------------------------------------


def test_what_is_stated_in_full_holds_or_is_not_implied(call: Call, tmp_path: Path) -> None:
    # 100 steps of noise multiplier 10 are 1-GDP: epsilon 4.37717806 at delta 1e-5
    for sampling, said in (('sampling = "none"\n', []), ("", ["taken to be of all records"])):
        text = STATED + PROMISE + RELEASE + sampling
        answer = call("claims", "check", write(tmp_path, text), "--json")
        assert answer.status == 0
        assert answer.data["verdict"] == "holds"
        assert [line.rpartition("; ")[2] for line in answer.data["missing"]] == said
        assert answer.data["factor"] == pytest.approx(5 / 4.377178, rel=1e-6)
    short = (STATED + PROMISE + RELEASE).replace("epsilon = 5.0", "epsilon = 4.3771")
    answer = call("claims", "check", write(tmp_path, short), "--json")
    assert answer.status == 1
    assert answer.data["verdict"] == "not implied by what is stated"
    assert answer.data["true"]["lower"] == pytest.approx(4.377178, rel=1e-6)


@pytest.mark.parametrize(("adjacency", "status"), [("replace-one", 0), ("add-remove-one", 3)])
def test_shuffled_epochs_are_priced_or_refused(
    call: Call, tmp_path: Path, adjacency: str, status: int
) -> None:
    # ten epochs of ten steps: a record is in ten releases
    text = STATED.replace("zero-out-one", adjacency) + PROMISE.replace("5.0", "1.27") + RELEASE
    path = write(tmp_path, text + 'sampling = "shuffled"\nbatch = 6\nrecords = 60\n')
    answer = call("claims", "check", path, "--json")
    assert answer.status == status
    assert ("shifts every batch" in answer.data["reason"]) is (status == 3)


@pytest.mark.parametrize(("promise", "kept"), [("rho = 0.5", True), ("mu = 0.99", False)])
def test_other_units(call: Call, tmp_path: Path, promise: str, kept: bool) -> None:
    text = STATED + f"[promise]\n{promise}\n" + RELEASE
    answer = call("claims", "check", write(tmp_path, text), "--json")
    assert answer.data["verdict"] == ("holds" if kept else "not implied by what is stated")


def test_what_is_not_stated_is_named(call: Call, tmp_path: Path) -> None:
    sampled = RELEASE + "rate = 0.01\n"
    answer = call("claims", "check", write(tmp_path, PROMISE + sampled), "--json")
    assert answer.status == 1
    assert answer.data["verdict"] == "unspecified"
    named = " ".join(answer.data["missing"])
    for what in ("adjacency", "sampling scheme", "tuning", "unit of privacy", "preprocessing"):
        assert what in named
    # by one reading it is met, by another it is not
    ends = [float(reading["upper"]) for reading in answer.data["figures"].values()]
    assert min(ends) < 5 < max(ends)


def test_a_promise_that_no_reading_keeps_is_not_implied_whatever_was_not_stated(
    call: Call, tmp_path: Path
) -> None:
    text = "[promise]\nepsilon = 1.0\ndelta = 1e-5\n" + RELEASE
    answer = call("claims", "check", write(tmp_path, text), "--json")
    assert answer.data["verdict"] == "not implied by what is stated"


def test_a_number_that_is_not_stated_makes_no_truth_infinite(call: Call, tmp_path: Path) -> None:
    known = (
        'adjacency = "add-remove-one"\nunit = "a record"\ntuning = "none"\npreprocessing = "none"\n'
    )
    release = '[[releases]]\nmechanism = "gaussian"\nclip_norm = 1.0\nnoise_std = 2.0\n'
    promise = "[promise]\nepsilon = 1.0\ndelta = 1e-5\n"
    path = write(tmp_path, known + promise + release)
    assert call("claims", "check", path, "--json").data["factor"] is None
    answer = call("claims", "check", path)
    assert "not implied" in answer.out
    assert "infinite" not in answer.out


def test_what_costs_nothing_holds_with_a_certificate(call: Call, tmp_path: Path) -> None:
    free = (
        '[[releases]]\nmechanism = "randomised-response"\ncategories = 2\ntruth = 0.5\nrounds = 2\n'
    )
    text = STATED.replace("zero-out-one", "replace-one") + PROMISE + free
    answer = call("claims", "check", write(tmp_path, text), "--json")
    assert answer.status == 0
    assert answer.data["verdict"] == "holds"
    assert answer.data["evidence"][0]["proved_epsilon"] == 0


@pytest.mark.parametrize(
    "stated",
    [
        'mechanism = "laplace"\nsensitivity = 1.0\nscale = 4.0',
        'mechanism = "l2-exponential"\nsensitivity = 1.0\nscale = 4.0',
        'mechanism = "exponential"\nepsilon = 0.25',
    ],
)
def test_pure_epsilon_holds_with_a_certificate_of_delta_0(
    call: Call, tmp_path: Path, stated: str
) -> None:
    releases = f"[[releases]]\n{stated}\nrounds = 8\n"
    promise = PROMISE.replace("1e-5", "0.0")
    answer = call("claims", "check", write(tmp_path, STATED + promise + releases), "--json")
    assert (answer.status, answer.data["verdict"]) == (0, "holds")
    evidence = answer.data["evidence"][0]
    assert (evidence["proved_epsilon"], evidence["delta"]) == (2.0, 0.0)


@pytest.mark.parametrize("left_out", ["sensitivity", "noise_std", "rounds"])
def test_a_number_that_is_not_stated_decides(call: Call, tmp_path: Path, left_out: str) -> None:
    lines = [line for line in RELEASE.splitlines() if not line.startswith(left_out)]
    text = STATED + PROMISE + "\n".join(lines)
    answer = call("claims", "check", write(tmp_path, text), "--json")
    assert answer.data["verdict"] == "unspecified"


def test_tuning_on_the_data_is_an_access(call: Call, tmp_path: Path) -> None:
    text = STATED.replace('"none"\nunit', '"on the data, not accounted"\nunit')
    answer = call("claims", "check", write(tmp_path, text + PROMISE + RELEASE), "--json")
    assert answer.status == 1
    assert answer.data["verdict"] == "unaccounted access"


def test_a_plan_is_judged_by_its_configuration(call: Call, folder: Path) -> None:
    text = 'run = "run.toml"\nadjacency = "replace-one"\n[promise]\nepsilon = {}\ndelta = 1e-5\n'
    assert call("claims", "check", write(folder, text.format(2.0001))).status == 0
    assert call("claims", "check", write(folder, text.format(1.9))).status == 1


def test_what_is_proved_of_a_plan_for_persons_is_their_epsilon(call: Call, folder: Path) -> None:
    """It was that of one of their records."""
    person = 'delta = 1e-5\nunit = "person"\nrecords_per_unit = 3'
    edited(folder, ("delta = 1e-5", person)).rename(folder / "run.toml")
    text = 'run = "run.toml"\nadjacency = "replace-one"\n[promise]\nepsilon = {}\ndelta = 1e-5\n'
    for epsilon, status in ((2.0001, 0), (1.9, 1)):
        answer = call("claims", "check", write(folder, text.format(epsilon)), "--json")
        assert answer.status == status
        evidence = answer.data["evidence"][0]
        assert evidence["records_per_unit"] == 3
        assert answer.data["true"]["lower"] <= evidence["proved_epsilon"]
        assert evidence["proved_epsilon"] == pytest.approx(2.0, rel=1e-3)
        # of the exact event an observer may look for, whose probabilities break the promise
        for seen in answer.data["evidence"][1:]:
            first, second = (seen[k]["lower"] for k in ("probability", "neighbour_probability"))
            assert first - exp(epsilon) * second > 1e-5


def test_whom_a_plan_is_for_is_said_beside_whom_the_claim_is_about(
    call: Call, folder: Path
) -> None:
    """A claim about persons was judged by a plan for records, and nothing said so."""
    text = 'run = "run.toml"\n{}[promise]\nepsilon = 2.1\ndelta = 1e-5\n'
    silent = call("claims", "check", write(folder, text.format(""))).out
    said = call("claims", "check", write(folder, text.format('unit = "a patient"\n'))).out
    for answer in (silent, said):
        assert "relation" in answer
        assert "replace-one" in answer
        assert "a record, as the run plans for" in answer
    assert "taken to be the claim's, 'a patient'" in said


# --- functions ---------------------------------------------------------------------------------


def test_a_function_is_run_only_when_asked(call: Call, tmp_path: Path) -> None:
    write(tmp_path, MEAN, "mine.py")
    path = write(tmp_path, FUNCTION.format(claimed=0.2, code="mine.py:mean"))
    answer = call("claims", "check", path)
    assert answer.status == 2
    assert "--run-code" in answer.err
    assert not (tmp_path / "ran").exists()
    # the mean of five rows of norm 1 moves by 2/5 when one is replaced
    answer = call("claims", "check", path, "--run-code", "--json")
    assert answer.status == 1
    assert answer.data["verdict"] == "fails"
    assert answer.data["true"]["upper"] == pytest.approx(0.4, rel=1e-6)
    write(tmp_path, FUNCTION.format(claimed=0.4, code="mine.py:mean"))
    answer = call("claims", "check", path, "--run-code", "--json")
    assert answer.data["verdict"] == "unspecified"


@pytest.mark.parametrize(
    "code",
    [
        "os:system",
        "../mine.py:mean",
        "folder/../../mine.py:mean",
        "/etc/passwd:root",
        "mine.py:__import__",
        "mine.py:_hidden",
        "mine.py:mean; rm",
        "__import__('os').system('true')",
        "mine.py",
        "absent.py:mean",
        "link.py:mean",
        "mine.py:absent",
        "mine.py:other",
    ],
)
def test_no_other_code_is_run(call: Call, tmp_path: Path, code: str) -> None:
    folder = tmp_path / "claims"
    folder.mkdir()
    write(tmp_path, MEAN, "mine.py")
    (folder / "link.py").symlink_to(tmp_path / "mine.py")
    if code in ("mine.py:absent", "mine.py:other"):
        write(folder, MEAN, "mine.py")
    path = write(folder, FUNCTION.format(claimed=0.2, code=code))
    answer = call("claims", "check", path, "--run-code")
    assert answer.status == 2
    assert any(word in answer.err for word in ("must", "Expected", "expected"))
    assert not (tmp_path / "ran").exists()


# --- adversaries -------------------------------------------------------------------------------

DEEP = sys.getrecursionlimit() * 3
FAULTS = {
    "an unknown key": (PROMISE + RELEASE + "sigma = 1\n", "unknown field `sigma`"),
    "a misspelt key": (PROMISE + RELEASE.replace("rounds", "round"), "nearest: 'rounds'"),
    "an unknown section": (PROMISE + RELEASE + "[hook]\npath = 'x'\n", "unknown field `hook`"),
    "a negative delta": (PROMISE.replace("1e-5", "-1e-5") + RELEASE, "`float` >= 0.0"),
    "delta 1": (PROMISE.replace("1e-5", "1.0") + RELEASE, "`float` < 1.0"),
    "delta NaN": (PROMISE.replace("1e-5", "nan") + RELEASE, "`float` >= 0.0"),
    "epsilon NaN": (PROMISE.replace("5.0", "nan") + RELEASE, "`float` >= 0.0"),
    "infinite noise": (PROMISE + RELEASE.replace("10.0", "inf"), "`float` <= 1e+30"),
    "a negative noise": (PROMISE + RELEASE.replace("10.0", "-1.0"), "`float` >= 0.0"),
    "1e30 rounds": (PROMISE + RELEASE.replace("100", "1" + "0" * 30), "`int` <= 1000000000"),
    "5000 digits": (PROMISE + RELEASE.replace("100", "9" * 5000), "limit"),
    "a number as text": (PROMISE + RELEASE.replace("100", '"100"'), "got `str`"),
    "code as a number": (PROMISE + RELEASE.replace("100", '"__import__(1)"'), "got `str`"),
    "no release": (PROMISE, "one of [[releases]], run, [function]"),
    "no promise": (RELEASE, "missing required field `promise`"),
    "two promises": (PROMISE + "rho = 1.0\n" + RELEASE, "one of epsilon, rho, mu"),
    "epsilon alone": ("[promise]\nepsilon = 1.0\n" + RELEASE, "delta with epsilon"),
    "a run elsewhere": ('run = "../run.toml"\n' + PROMISE, "beside the claim"),
    "an absolute run": ('run = "/etc/passwd"\n' + PROMISE, "beside the claim"),
    "no run": ('run = "absent.toml"\n' + PROMISE, "existing file"),
    "a NUL in a path": ('run = "a\\u0000b"\n' + PROMISE, "printable"),
    "a title that steers": ('title = "\\u001b[2J"\n' + PROMISE + RELEASE, "printable"),
    "a direction override": ('title = "\\u202e"\n' + PROMISE + RELEASE, "printable"),
    "an endless title": (f'title = "{"x" * 9999}"\n' + PROMISE + RELEASE, "length <= 80"),
    "many releases": (PROMISE + RELEASE * 300, "length <= 200"),
    "a gigantic file": (PROMISE + "#" * 10_000_000, "at most 65536 bytes"),
    "deep arrays": ("x = " + "[" * DEEP, "Expected TOML"),
    "deep tables": ("x = " + "{a=" * DEEP, "Expected TOML"),
    "a long dotted key": ("a" + ".a" * 30_000 + " = 1", "dots in a line"),
    "no TOML": ("<html>", "Expected TOML"),
    "no text": ("\x00\x01", "Expected TOML"),
    "noise twice": (PROMISE + RELEASE + "noise_multiplier = 1.0\n", "without noise_std"),
    "a batch of more": (PROMISE + RELEASE + "batch = 9\nrecords = 5\n", "in [1, records=5]"),
    "a clip norm too": (PROMISE + RELEASE + "clip_norm = 1.0\n", "in place of sensitivity"),
    "a divisor alone": (PROMISE + RELEASE + "divisor = 9\n", "with averaging"),
    "a decay of nothing": (
        PROMISE + RELEASE.replace("noise_std = 10.0", "noise_decay = 0.9"),
        "noise_decay with rounds",
    ),
    "a noise too few": (PROMISE + RELEASE.replace("10.0", "[1.0, 2.0]"), "as many as noises"),
    "steps half stated": (
        PROMISE + '[[releases]]\nmechanism = "private"\nepsilon = 1.0\n',
        "delta with epsilon (0 if it is pure)",
    ),
    "a delta of a pure choice": (
        PROMISE + '[[releases]]\nmechanism = "exponential"\nepsilon = 1.0\ndelta = 0.0\n',
        "no delta of the exponential mechanism",
    ),
    "an epsilon of noise": (
        PROMISE + '[[releases]]\nmechanism = "l2-exponential"\nepsilon = 1.0\n',
        "epsilon alone also with exponential",
    ),
    "fits of nothing": ("fits = 3\n" + PROMISE + RELEASE, "fits with a tuning on the data"),
    "a scheme none": (PROMISE + RELEASE + 'sampling = "none"\nrate = 0.1\n', "another scheme"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_claim_is_a_clear_error(call: Call, tmp_path: Path, fault: str) -> None:
    text, message = FAULTS[fault]
    answer = call("claims", "check", write(tmp_path, text))
    assert answer.status == 2
    assert message in answer.err
    assert "\x1b" not in answer.err
    assert len(answer.err) < 1000


def test_an_unknown_key_that_steers_the_terminal_is_shown_as_escapes(
    call: Call, tmp_path: Path
) -> None:
    answer = call("claims", "check", write(tmp_path, PROMISE + RELEASE + '"\\u001b[2J" = 1\n'))
    assert answer.status == 2
    assert "\x1b" not in answer.err
    assert "\\x1b[2J" in answer.err


def test_markup_in_a_title_is_printed_as_it_is(call: Call, tmp_path: Path) -> None:
    text = 'title = "[red]<script>[/red] [/]"\n' + STATED + PROMISE + RELEASE
    answer = call("claims", "check", write(tmp_path, text))
    assert answer.status == 0
    assert "[red]<script>[/red] [/]" in answer.out


@pytest.mark.parametrize(
    ("adjacency", "sampling"),
    [
        ("zero-out-one", 'sampling = "poisson"\nrate = 0.5\n'),
        *slow(("replace-one", 'sampling = "fixed-batch"\nbatch = 3\nrecords = 1000\n')),
    ],
)
def test_a_thousandfold_of_releases_is_not_tenfold_the_work(
    call: Call, calls: Calls, tmp_path: Path, adjacency: str, sampling: str
) -> None:
    def check(rounds: int) -> None:
        release = RELEASE.replace("100", str(rounds)) + sampling
        stated = f'adjacency = "{adjacency}"\n'
        assert call("claims", "check", write(tmp_path, stated + PROMISE + release)).status < 2

    check(10**6)  # modules are loaded once
    assert calls(lambda: check(10**9)) <= 10 * calls(lambda: check(10**6))


@pytest.mark.parametrize(
    ("old", "new"),
    [("rounds = 6", f"rounds = {10**15}"), ("parties = 4", f"parties = {10**9}")],
)
def test_a_plan_of_absurd_size_is_refused(call: Call, folder: Path, old: str, new: str) -> None:
    text = (folder / "run.toml").read_text().replace(old, new)
    write(folder, text.replace("train_records = 48", f"train_records = {10**9}"), "huge.toml")
    answer = call("claims", "check", write(folder, 'run = "huge.toml"\n' + PROMISE))
    assert answer.status == 2
    assert "must be in [1, 1000000]" in answer.err


def test_a_plan_for_persons_is_judged_for_persons(call: Call, folder: Path) -> None:
    """The plan keeps epsilon 2 for a person with three records; a record alone pays less."""
    text = (folder / "run.toml").read_text()
    assert "[privacy]" in text
    person = text.replace("[privacy]", '[privacy]\nunit = "person"\nrecords_per_unit = 3')
    write(folder, person, "person.toml")
    promise = "[promise]\nepsilon = {}\ndelta = 1e-5\n"
    for epsilon, status in (("2.0", 0), ("1.5", 1)):
        claim = write(folder, 'run = "person.toml"\n' + promise.format(epsilon))
        assert call("claims", "check", claim).status == status
    # the same events, were the promise to a record
    events = plan(read_configuration(folder / "person.toml")).events
    assert guarantee(events, delta=1e-5).epsilon.upper_float < 1.5


# --- finished runs -----------------------------------------------------------------------------


@pytest.fixture
def ledger(call: Call, folder: Path) -> Path:
    """The ledger of a run that promised epsilon 2 at delta 1e-5."""
    path = folder / "ledger.sqlite"
    answer = call(
        "run", folder / "run.toml", "--out", folder / "out", "--ledger", path,
        "--no-attack", "--no-baselines", "--no-crosscheck", "--json",
    )  # fmt: skip
    assert answer.status == 0
    return path


def test_a_finished_run_is_recomputed_certified_and_attacked(
    call: Call, folder: Path, ledger: Path
) -> None:
    arguments = ("claims", "check", "--ledger", ledger, "--json", "--promise")
    answer = call(*arguments, "epsilon=2.001, delta=1e-5", "--config", folder / "run.toml")
    assert answer.status == 0
    checks = {check["name"]: check for check in answer.data["checks"]}
    for name in ("ledger", "certificate", "cross-check", "attack"):
        assert checks[name]["passed"], name
    _, epsilon, _, _, delta, *_ = checks["certificate"]["text"].replace(",", "").split()
    assert (1.99 < float(epsilon) <= 2.001, float(delta)) == (True, 1e-5)
    assert any("tuning" in what for what in answer.data["missing"])
    answer = call(*arguments, "epsilon=1.9, delta=1e-5")
    assert answer.status == 1
    assert answer.data["verdict"] == "not implied by what is stated"
    attack = next(c for c in answer.data["checks"] if c["name"] == "attack")
    assert attack["passed"] is None
    assert "not at hand" in attack["text"]


def test_another_configuration_is_not_attacked_in_its_place(
    call: Call, folder: Path, ledger: Path
) -> None:
    text = (folder / "run.toml").read_text()
    other = write(folder, text.replace("rounds = 6", "rounds = 7"), "other.toml")
    promised = ("--promise", "epsilon=2.001, delta=1e-5")
    answer = call("claims", "check", "--ledger", ledger, *promised, "--config", other)
    assert answer.status == 2
    assert "Expected the configuration of the ledger's runs" in answer.err


def recorded(
    path: Path, runs: Mapping[str, str], *, planned: bool, seed: int | None = None
) -> Path:
    """Write a ledger in which each run releases once, about the records of one party."""
    size = declared(1, "a unit", adjacency=Adjacency.ZERO_OUT_ONE)
    with SqliteLedger(path) as opened:
        for name, party in runs.items():
            event = Event(GaussianStep(size, 5.0), Context((party,), 1, "sum", Audience.PUBLIC))
            run = opened.run(name, configuration_hash="c", plan=[event] if planned else None)
            run.commit(run.reserve([event], Provenance("some", seed)))
    return path


def test_runs_that_name_the_same_records_otherwise_are_not_priced_by_name(
    call: Call, tmp_path: Path
) -> None:
    path = recorded(tmp_path / "renamed.sqlite", {"one": "a", "two": "b"}, planned=True)
    arguments = ("--ledger", path, "--promise", "mu=0.21")  # of one run, not of both
    assert call("claims", "check", *arguments, "--run", "one").status == 0
    answer = call("claims", "check", *arguments)
    assert answer.status == 2
    assert "party names" in answer.err
    written = tmp_path / "certificate.json"
    assert call("ledger", "export", path, "--certificate", written).status == 2
    assert not written.exists()
    assert call("ledger", "export", path, "--certificate", written, "--run", "one").status == 0
    assert call("verify", written, "--ledger", path).status == 2


def test_a_certificate_of_one_run_of_several_is_told_how_it_is_asked_about(
    call: Call, tmp_path: Path
) -> None:
    path = recorded(tmp_path / "two.sqlite", {"one": "a", "two": "a"}, planned=True)
    written = tmp_path / "certificate.json"
    assert call("ledger", "export", path, "--certificate", written, "--run", "one").status == 0
    refused = call("verify", written, "--ledger", path)
    assert refused.status == 1
    assert "of all 2 runs; if it is of one, name that (--run)" in refused.out + refused.err
    assert call("verify", written, "--ledger", path, "--run", "one").status == 0


def test_nothing_is_written_over_a_ledger(call: Call, tmp_path: Path) -> None:
    path = recorded(tmp_path / "kept.sqlite", {"one": "a"}, planned=True)
    before = path.read_bytes()
    for arguments in (
        ("ledger", "export", path, "--certificate", path),
        ("watch", path, "--metrics", path),
        ("claims", "page", "ding2020_network", "H-2", "--set", "K=5", "--out", path),
    ):
        found = call(*arguments)
        assert found.status == 2
        assert "a database, a ledger perhaps, would be written over" in found.err
        assert path.read_bytes() == before


def test_a_ledger_under_a_budget_exports_the_proof_of_its_budget(
    call: Call, tmp_path: Path
) -> None:
    """Nobody planned the run: what it spent is an estimate, and the filter's budget is not."""
    path, written = tmp_path / "filter.sqlite", tmp_path / "certificate.json"
    budget = ("--epsilon", "2", "--delta", "1e-5", "--adjacency", "zero-out-one")
    assert call("ledger", "create", path, *budget).status == 0
    recorded(path, {"one": "a", "two": "a"}, planned=False)
    found = call("ledger", "export", path, "--certificate", written, "--json")
    assert (found.status, found.data["epsilon"]) == (0, 2.0)
    verified = call("verify", written, "--ledger", path)
    assert verified.status == 0
    assert "a filter's budget: gdp (zero-out-one)" in verified.out
    assert "an estimate" not in verified.out
    assert "time of stopping" not in verified.out
    recorded(path, {"three": "a"}, planned=False)
    assert call("verify", written, "--ledger", path).status != 0


def test_a_certificate_of_what_nobody_planned_is_said_to_be_an_estimate(
    call: Call, tmp_path: Path
) -> None:
    """Who stopped when he liked what came out has an epsilon that no sum of costs tells."""
    written = tmp_path / "certificate.json"
    for planned in (True, False):
        path = recorded(tmp_path / f"{planned}.sqlite", {"one": "a"}, planned=planned)
        found = call("ledger", "export", path, "--certificate", written)
        assert found.status == 0
        assert ("an estimate" in found.out) is not planned


def test_runs_that_share_a_seed_keep_no_promise(call: Call, tmp_path: Path) -> None:
    path = recorded(tmp_path / "seed.sqlite", {"one": "a", "two": "a"}, planned=True, seed=1)
    for chosen in ((), ("--run", "one")):
        answer = call("claims", "check", "--ledger", path, "--promise", "mu=9", *chosen, "--json")
        assert answer.status == 1
        assert "noise did not pass" in answer.data["reason"]


def test_a_promise_of_a_run_without_a_plan_is_not_said_to_hold(call: Call, tmp_path: Path) -> None:
    path = recorded(tmp_path / "adaptive.sqlite", {"one": "a"}, planned=False)
    answer = call("claims", "check", "--ledger", path, "--promise", "mu=0.3", "--json")
    assert answer.status == 1
    assert answer.data["verdict"] == "unspecified"
    assert call("claims", "check", "--ledger", path, "--promise", "mu=0.1").status == 1


def test_what_a_run_without_a_plan_spent_is_not_called_proved(call: Call, tmp_path: Path) -> None:
    promise = "epsilon=5,delta=1e-5"
    for planned in (True, False):
        path = recorded(tmp_path / f"{planned}.sqlite", {"one": "a"}, planned=planned)
        arguments = ("claims", "check", "--ledger", path, "--promise", promise)
        data = call(*arguments, "--json").data
        (certificate,) = (each for each in data["checks"] if each["name"] == "certificate")
        assert certificate["passed"] is (True if planned else None)
        assert ("estimate" in certificate["text"]) is not planned
        proofs = {each.get("proved_epsilon") for each in data["evidence"]}
        assert (proofs == {None}) is not planned
        assert ("\nproved" in call(*arguments).out) is planned


def test_what_a_ledgers_price_rests_on_stands_beside_its_verdict(call: Call, ledger: Path) -> None:
    """A seed that must be secret, and parties that share no record: neither was said."""
    promise = ("--ledger", ledger, "--promise", "epsilon=9, delta=1e-5")
    answer = call("claims", "check", *promise).out
    assert "the seeds of its noise are secret" in answer
    assert "every record belongs to one party" in answer


def test_a_tampered_ledger_fails(call: Call, ledger: Path) -> None:
    with sqlite3.connect(ledger) as connection:
        connection.execute("DROP TRIGGER rows_update")
        connection.execute("UPDATE rows SET run = 'another' WHERE sequence = 2")
    answer = call("claims", "check", "--ledger", ledger, "--promise", "mu=9", "--json")
    assert answer.status == 1
    assert answer.data["verdict"] == "fails"
    assert "tampered" in answer.data["reason"]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\0" * 200])
def test_what_is_no_ledger_is_refused(call: Call, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    assert call("claims", "check", "--ledger", path, "--promise", "mu=1").status == 2


@pytest.mark.parametrize(
    "promise",
    [
        "epsilon=1",
        "epsilon=1, delta=-1",
        "epsilon=nan, delta=1e-5",
        "epsilon=1, delta=1e-5, epsilon=2",
        "epsilon",
        "sigma=1",
        "sensitivity=1",
        "epsilon=__import__('os'), delta=1e-5",
        "",
    ],
)
def test_a_promise_that_is_none_is_refused(call: Call, tmp_path: Path, promise: str) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(b"no ledger")
    answer = call("claims", "check", "--ledger", path, "--promise", promise)
    assert answer.status == 2
    assert any(word in answer.err for word in ("must", "Expected", "expected"))


def test_the_price_of_a_reading_is_said_once(call: Call, tmp_path: Path) -> None:
    promise = PROMISE.replace("5.0", "1.0")
    text = STATED + promise + RELEASE.replace("rounds", "rate = 0.01\nrounds")
    path = write(tmp_path, text)
    answer = call("claims", "check", path, "--json")
    assert answer.data["verdict"] == "unspecified"
    (derivation,) = answer.data["evidence"]
    assert len(derivation["lines"]) == len(answer.data["figures"]) > 1
    shown = call("claims", "check", path).out
    assert all(shown.count(line) == 1 for line in derivation["lines"])
    assert "not stated: sampling scheme" in shown
