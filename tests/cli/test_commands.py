"""The command line as a user meets it: plans, runs, ledgers, certificates, mistakes, findings."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.accounting.proof.extracted import ExtractedVerdict
from dpledger.mechanisms import Event
from dpledger.runs.training import Accuracy

from .conftest import Call, edited

QUICK = ("--no-attack", "--no-baselines", "--no-crosscheck")


def test_calibrate_meets_the_public_figure(call: Call) -> None:
    # claim H-R: z = 37.3063 for t = 100, (1, 1e-5)
    answer = call(
        "calibrate", "--epsilon", 1, "--delta", 1e-5, "--rounds", 100,
        "--adjacency", "replace-one", "--json",
    )  # fmt: skip
    assert answer.status == 0
    assert answer.data["noise_multiplier"] == pytest.approx(37.3063, abs=5e-5)
    assert answer.data["guarantee"]["epsilon"]["upper"] <= 1


def test_calibrate_finds_the_rounds_that_noise_allows(call: Call) -> None:
    answer = call(
        "calibrate", "--epsilon", 1, "--delta", 1e-5, "--noise-multiplier", 37.31,
        "--adjacency", "replace-one", "--json",
    )  # fmt: skip
    assert (answer.status, answer.data["rounds"]) == (0, 100)


def test_plan_needs_no_records(call: Call, folder: Path) -> None:
    (folder / "people.csv").unlink()
    answer = call("plan", folder / "run.toml", "--json")
    assert answer.status == 0
    assert answer.data["events"] == 6
    assert 1.999999 < answer.data["guarantee"]["epsilon"]["upper"] <= 2.0
    assert answer.data["guarantee"]["grade"] == "proved"


def test_run_writes_ledger_certificate_model_and_report(call: Call, folder: Path) -> None:
    out = folder / "out"
    answer = call("run", folder / "run.toml", "--out", out, "--json")
    assert answer.status == 0, answer.err
    assert answer.data["plan_equals_run"] is True
    assert answer.data["guarantee"]["epsilon"]["upper"] <= 2.0
    assert {model["model"] for model in answer.data["models"]} == {
        "DP-ADMM (repaired)",
        "PVP",
        "ADMM without noise, 6 rounds",
        "Without privacy, converged",
    }
    assert answer.data["attack"]["trials"] == 40
    assert np.load(out / "model.npy").shape == (4,)
    report = json.loads((out / "report.json").read_bytes())
    assert report["identity"]["configuration_sha256"]
    assert "<svg" in (out / "report.html").read_text()
    verified = call("verify", out / "certificate.json", "--ledger", out / "ledger.sqlite", "--json")
    assert (verified.status, verified.data["verdict"]) == (0, "proved")
    assert call("ledger", "verify", out / "ledger.sqlite").status == 0
    before = (out / "report.html").read_bytes()
    assert call("report", out).status == 0
    assert (out / "report.html").read_bytes() == before


def test_plan_report_and_certificate_say_what_a_run_takes_for_granted(
    call: Call, folder: Path
) -> None:
    system = edited(folder, ('sampler = "philox"\nseed = 5', 'sampler = "system"'))
    for name, path, stated in (
        ("seeded", folder / "run.toml", ["noise.seed is secret", "records fit the schema"]),
        ("system", system, ["records fit the schema"]),
    ):
        out = folder / name
        planned = call("plan", path, "--json").data["guarantee"]["assumptions"]
        assert call("run", path, "--out", out, *QUICK).status == 0
        proved = call("verify", out / "certificate.json", "--json").data["assumptions"]
        granted = [text.removeprefix("taken for granted: ") for text in proved if "granted" in text]
        of_ledger = ("row ", "the seeds of its noise are secret")
        granted = [text for text in granted if not text.startswith(of_ledger)]
        # a run of several parties; derived from its events, and not granted
        apart = "every record belongs to one party, and who holds which record is public and fixed"
        assert apart in proved
        assert [*granted, apart] == sorted(planned, key=lambda text: (text == apart, text))
        assert all(text.startswith(words) for text, words in zip(granted, stated, strict=True))
        report = (out / "report.md").read_text()
        assert all(text in report for text in planned)


def test_a_baseline_that_cannot_be_planned_is_refused_before_the_run_pays(
    call: Call, folder: Path
) -> None:
    """It solves problems that the run does not: the run was paid for, and then refused."""
    path = edited(folder, ("rounds = 6", "rounds = 2\npenalty = 1e-6"))
    ledger = folder / "ledger.sqlite"
    refused = call("run", path, "--out", folder / "out", "--ledger", ledger, "--no-attack")
    assert refused.status == 2
    assert "--no-baselines" in refused.err
    assert not ledger.exists()
    assert not (folder / "out").exists()
    assert call("run", path, "--out", folder / "out", *QUICK).status == 0


def test_the_recorded_seed_reproduces_the_model_bit_for_bit(call: Call, folder: Path) -> None:
    for name in ("first", "second"):
        assert call("run", folder / "run.toml", "--out", folder / name, *QUICK).status == 0
    first, second = ((folder / n / "model.npy").read_bytes() for n in ("first", "second"))
    assert first == second


def test_a_changed_event_is_found(call: Call, folder: Path) -> None:
    out = folder / "out"
    call("run", folder / "run.toml", "--out", out, *QUICK)
    with sqlite3.connect(out / "ledger.sqlite") as raw:
        for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type='trigger'"):
            raw.execute(f"DROP TRIGGER {trigger}")
        table = next(
            name
            for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type='table'")
            if "body" in {column[1] for column in raw.execute(f"PRAGMA table_info({name})")}
        )
        raw.execute(f"UPDATE {table} SET body = replace(body, '\"round\":3', '\"round\":4')")
        changed = raw.total_changes
    raw.close()
    assert changed > 0
    answer = call("ledger", "verify", out / "ledger.sqlite", "--json")
    assert (answer.status, answer.data["intact"]) == (1, False)
    assert call("verify", out / "certificate.json", "--ledger", out / "ledger.sqlite").status == 1


def test_a_certificate_of_another_run_is_refused(call: Call, folder: Path) -> None:
    out, other = folder / "out", folder / "other"
    call("run", folder / "run.toml", "--out", out, *QUICK)
    longer = edited(folder, ("rounds = 6", "rounds = 7"))
    call("run", longer, "--out", other, *QUICK)
    answer = call("verify", out / "certificate.json", "--ledger", other / "ledger.sqlite", "--json")
    assert (answer.status, answer.data["verdict"]) == (1, "refused")


def test_a_certificate_names_a_row_that_only_its_own_ledger_has(call: Call, folder: Path) -> None:
    # both ledgers hold equal events; the rows differ by time
    for name in ("one", "other"):
        call("run", folder / "run.toml", "--out", folder / name, *QUICK)
    ledgers = {name: folder / name / "ledger.sqlite" for name in ("one", "other")}
    certificate = folder / "one" / "certificate.json"
    own = call("verify", certificate, "--ledger", ledgers["one"], "--json")
    assert (own.status, own.data["verdict"]) == (0, "proved")
    with SqliteLedger(ledgers["one"], read_only=True) as opened:
        named = f"taken for granted: {opened.last_row.statement}"
    assert named in own.data["assumptions"]
    another = call("verify", certificate, "--ledger", ledgers["other"], "--json")
    assert (another.status, another.data["verdict"]) == (1, "refused")
    assert "another ledger" in another.data["reason"]


def test_an_anchor_is_written_by_hand_or_by_runs_and_refuses_what_is_behind(
    call: Call, folder: Path
) -> None:
    ledger, anchor = folder / "team.sqlite", folder / "team.anchor"
    paid = ("--ledger", ledger, "--anchor", anchor, *QUICK)
    assert call("run", folder / "run.toml", "--out", folder / "first", *paid).status == 0
    lines = anchor.read_text().splitlines()
    with SqliteLedger(ledger, read_only=True) as paid_from:
        # the whole plan at once, and then each message
        assert len(lines) == 1 + len(paid_from.messages())
    assert call("ledger", "anchor", ledger, "--to", anchor).status == 0
    (line,) = call("ledger", "anchor", ledger).out.splitlines()
    assert anchor.read_text().splitlines() == [*lines, line]
    with anchor.open("a") as file:
        file.write(f"999 {64 * 'a'}\n")
    behind = call("ledger", "anchor", ledger, "--to", anchor)
    assert (behind.status, "older copy" in behind.out) == (1, True)
    later = edited(folder, ("seed = 5", "seed = 6"))
    refused = call("run", later, "--out", folder / "second", *paid)
    assert refused.status == 2
    assert "RolledBack" in refused.err


def test_gold_mode_writes_the_last_inequality_as_a_theorem(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("run", folder / "run.toml", "--out", folder / "out", *QUICK)
    monkeypatch.setenv("PATH", "")  # coqc itself is tried where the goal is made
    answer = call("verify", folder / "out" / "certificate.json", "--coq", "--json")
    assert answer.status == 0
    assert "not run" in answer.data["coq"]
    assert "Theorem" in (folder / "out" / "certificate.v").read_text()


def test_the_extracted_checker_is_asked_too(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("run", folder / "run.toml", "--out", folder / "out", *QUICK)
    certificate = folder / "out" / "certificate.json"

    def saying(line: str) -> tuple[int, str]:
        found = ExtractedVerdict(line.partition(" ")[0].rstrip(":"), line)
        monkeypatch.setattr(
            "dpledger.accounting.proof.opinions.run_extracted", lambda paths: [found]
        )
        answer = call("verify", certificate, "--extracted", "--json")
        return answer.status, answer.data["extracted"]

    assert saying("undecided: beyond this checker") == (0, "undecided: beyond this checker")
    status, said = saying(f"proved {'0' * 64} replace-one group 1 approx-dp 1/2 1/1")
    assert status == 1
    assert "not the same verdict" in said
    monkeypatch.undo()
    monkeypatch.setattr("dpledger.accounting.proof.extracted.extracted_checker", lambda: None)
    assert (
        "make -C proofs" in call("verify", certificate, "--extracted", "--json").data["extracted"]
    )


def test_a_budget_refuses_before_anything_is_drawn(call: Call, folder: Path) -> None:
    ledger = folder / "team.sqlite"
    made = call(
        "ledger", "create", ledger, "--epsilon", 2, "--delta", 1e-5, "--adjacency", "replace-one"
    )
    assert made.status == 0
    to_ledger = ("--ledger", ledger, *QUICK)
    first = call("run", folder / "run.toml", "--out", folder / "first", *to_ledger)
    assert first.status == 0
    other_noise = edited(folder, ("seed = 5", "seed = 6"))
    refused = call("run", other_noise, "--out", folder / "second", *to_ledger)
    assert refused.status == 2
    assert "BudgetExceeded" in refused.err
    with SqliteLedger(ledger, read_only=True) as opened:
        assert len(opened.events()) == 6
        assert opened.spent().epsilon(1e-5) <= 2.0


def test_a_run_that_the_budget_cannot_pay_spends_nothing_and_leaves_nothing(
    call: Call, folder: Path
) -> None:
    ledger = folder / "team.sqlite"
    budget = ("--epsilon", 2.2, "--delta", 1e-5, "--adjacency", "replace-one")
    assert call("ledger", "create", ledger, *budget).status == 0
    to_ledger = ("--ledger", ledger, *QUICK)
    assert call("run", folder / "run.toml", "--out", folder / "first", *to_ledger).status == 0
    with SqliteLedger(ledger, read_only=True) as opened:
        before, head = opened.spent().epsilon(1e-5).upper_float, opened.head
    # one round of six would still fit
    refused = call(
        "run", edited(folder, ("seed = 5", "seed = 6")), "--out", folder / "second", *to_ledger
    )
    assert refused.status == 2
    assert "epsilon at delta 1e-05 <= 2.2 in all: 2 is spent" in refused.err
    assert not (folder / "second").exists()
    with SqliteLedger(ledger, read_only=True) as opened:
        assert opened.head == head
        assert opened.spent().epsilon(1e-5).upper_float == before


@pytest.mark.parametrize(
    "forged", [{"events": slice(1)}, {"delta": 0.5}, {"group": 2}], ids=["events", "delta", "group"]
)
def test_a_certificate_of_something_else_stops_the_run_before_it_spends(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, forged: dict[str, Any]
) -> None:
    def other(events: Sequence[Event], *, delta: float, group: int, tight: bool) -> Certificate:
        asked: dict[str, Any] = {"delta": delta, "group": group, "tight": tight} | forged
        return certify(events[asked.pop("events", slice(None))], **asked)

    monkeypatch.setattr("dpledger.accounting.proof.proved.certify", other)
    answer = call("run", folder / "run.toml", "--out", folder / "out", *QUICK)
    assert answer.status == 2
    assert "The certificate proves" in answer.err
    assert not (folder / "out").exists()


def test_interruption_leaves_a_valid_ledger(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []

    def interrupted(*_: object) -> Accuracy:
        rounds.append(1)
        if len(rounds) == 3:
            raise KeyboardInterrupt
        return Accuracy(1, 2)

    monkeypatch.setattr("dpledger.runs.training.accuracy", interrupted)
    answer = call("run", folder / "run.toml", "--out", folder / "out", *QUICK)
    assert answer.status == 130
    assert "ledgers stay valid" in answer.err
    verified = call("ledger", "verify", folder / "out" / "ledger.sqlite", "--json")
    # the whole plan was paid before the first round, and counts as spent
    assert (verified.status, verified.data["reservations"]) == (0, 1)


def test_the_published_variant_is_a_finding(call: Call, folder: Path) -> None:
    published = edited(
        folder,
        ('"dp-admm"', '"dp-admm-published"'),
        ("epsilon = 2.0", "noise_multiplier = 5.0"),
    )
    answer = call("plan", published, "--json")
    assert answer.status == 1
    assert answer.data["guarantee"]["epsilon"]["upper"] == "infinity"
    assert "pre-training" in answer.data["guarantee"]["unprotected"][0]
    curve = call("curve", published, "--points", 2, "--json")
    assert (curve.status, curve.data["epsilon"]) == (0, ["infinity", "infinity"])


def test_no_noise_reaches_a_target_for_the_published_variant(call: Call, folder: Path) -> None:
    answer = call("plan", edited(folder, ('"dp-admm"', '"dp-admm-published"')))
    assert answer.status == 2
    assert "UnattainableTarget" in answer.err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rounds = 6", "round = 6", "nearest: 'rounds'"),
        ('"dp-admm"', '"dp-adm"', "nearest: 'dp-admm'"),
        ("[noise]", "[nois]", "nearest: 'noise'"),
        ("delta = 1e-5", "delta = 1.5", "delta=1.5 must be in (0, 1)"),
        ("epsilon = 2.0", "epsilon = -2.0", "epsilon=-2.0 must be in (0, inf)"),
        ('adjacency = "replace-one"', "", "missing required field `adjacency`"),
        ('"replace-one"', '"add-remove-one"', "data.held_out=None must be stated"),
        ("rounds = 6", "rounds = 0", "rounds=0 must be in [1, 1000000]"),
        ("parties = 4", "parties = 49", "parties=49 must be in [1, 48]"),
        ("seed = 5", "", "Expected a seed for philox"),
        ("train_records = 48", "train_records = 60", "data.train_records=60 must be in [1, 59]"),
        ("people.csv", "nobody.csv", "nobody.csv"),
        ("rounds = 6", "rounds =", "Expected TOML"),
        ("trials = 40", "trials = 1", "trials=1 must be in [10, 10000000]"),
    ],
)
def test_a_mistake_is_one_line_with_value_and_range(
    call: Call, folder: Path, old: str, new: str, words: str
) -> None:
    answer = call("run", edited(folder, (old, new)), "--out", folder / "out", *QUICK)
    assert answer.status == 2
    assert words in answer.err
    assert not (folder / "out" / "ledger.sqlite").exists()


def test_a_ledger_is_never_overwritten(call: Call, folder: Path) -> None:
    arguments = ("run", folder / "run.toml", "--out", folder / "out", *QUICK)
    assert call(*arguments).status == 0
    again = call(*arguments)
    assert again.status == 2
    assert "without a ledger" in again.err


def test_exported_lines_hold_the_whole_ledger(call: Call, folder: Path) -> None:
    call("run", folder / "run.toml", "--out", folder / "out", *QUICK)
    lines = call("ledger", "export", folder / "out" / "ledger.sqlite").out.splitlines()
    with SqliteLedger(folder / "out" / "ledger.sqlite", read_only=True) as opened:
        assert json.loads(lines[-1])["head"] == opened.head


@pytest.mark.parametrize("sampler", ['"philox"\nseed = 5', '"system"'])
def test_a_ledgers_certificate_says_whether_seeds_have_to_be_secret(
    call: Call, folder: Path, sampler: str
) -> None:
    path, out = edited(folder, ('"philox"\nseed = 5', sampler)), folder / "out"
    assert call("run", path, "--out", out, *QUICK).status == 0
    ledger, written = out / "ledger.sqlite", out / "exported.json"
    assert call("ledger", "export", ledger, "--certificate", written).status == 0
    verified = call("verify", written, "--ledger", ledger, "--json")
    assert verified.status == 0
    words = "taken for granted: the seeds of its noise are secret"
    assert (words in verified.data["assumptions"]) is ("seed" in sampler)


def test_a_crosscheck_of_what_leaks_is_data_as_well(call: Call, folder: Path) -> None:
    leaky = edited(
        folder, ('"dp-admm"', '"dp-admm-published"'), ("epsilon = 2.0", "noise_multiplier = 5.0")
    )
    found = call("crosscheck", leaky, "--json")
    assert found.status == 0
    assert found.data["ours"] == {"lower": "infinity", "upper": "infinity"}
    # a peer that finds infinity as well, or was not asked
    assert {peer["epsilon"] for peer in found.data["peers"]} <= {"infinity", None}


def test_crosscheck_and_curve_and_attack_answer(call: Call, folder: Path) -> None:
    crosscheck = call("crosscheck", folder / "run.toml", "--json")
    assert (crosscheck.status, crosscheck.data["agrees"]) == (0, True)
    curve = call("curve", folder / "run.toml", "--points", 5, "--json")
    assert curve.status == 0
    assert curve.data["epsilon"] == sorted(curve.data["epsilon"], reverse=True)
    attack = call("attack", folder / "run.toml", "--json")
    assert attack.status == 0
    assert attack.data["measured_mu"]["lower"] <= attack.data["share"] * attack.data["claimed_mu"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((('"replace-one"', '"zero-out-one"'),), "made null"),
        ((("trials = 40", 'trials = 40\nneighbour = "opposite"'),), "full length"),
    ],
)
def test_attacks_fit_the_relation(
    call: Call, folder: Path, changes: tuple[tuple[str, str], ...], words: str
) -> None:
    answer = call("attack", edited(folder, *changes), "--json")
    assert answer.status == 0
    assert words in answer.data["neighbours"]


def test_help_and_version_and_unknown_commands(call: Call) -> None:
    assert call("--version").status == 0
    assert "demo" in call("--help").out
    unknown = call("epsilom")
    assert unknown.status == 2
    assert "nearest: 'epsilon'" in unknown.err


def test_a_curve_is_drawn_of_a_training_run_of_any_tool(call: Call, tmp_path: Path) -> None:
    run = ("--noise-multiplier", 2, "--steps", 9, "--sampling", "none")
    run = (*run, "--adjacency", "replace-one")
    path = tmp_path / "curve.svg"
    found = call("curve", *run, "--from", 1e-5, "--points", 3, "--plot", path, "--json")
    assert found.status == 0
    alone = call("epsilon", *run, "--delta", 1e-5, "--json")
    assert found.data["promised"] == alone.data["guarantee"]
    assert found.data["epsilon"][0] == pytest.approx(alone.data["guarantee"]["epsilon"]["upper"])
    drawn = ElementTree.parse(path).getroot()
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(drawn.findall(".//{*}path")) >= 2
    # what cannot be drawn leaves no file
    none = ("--noise-multiplier", 0, *run[2:])
    refused = call("curve", *none, "--plot", tmp_path / "none.svg")
    assert refused.status == 2
    assert "none.svg" in refused.err
    assert not (tmp_path / "none.svg").exists()
