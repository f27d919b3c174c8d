"""docs/federation.md is true: its files and its commands, in three terminals, as written."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.runs.outcomes.federation import verified_federation_outcome

TEXT = (Path(__file__).parents[2] / "docs" / "federation.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```(?:toml|python)\n# file: (\S+)\n(.*?)```", TEXT, re.DOTALL))
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()
]
PORT = "7707"


def begun(folder: Path, line: str) -> subprocess.Popen[str]:
    """Start a command of the tutorial."""
    words = shlex.split(line)
    ours = {"python": [], "dpledger": ["-m", "dpledger"]}[words[0]]
    return subprocess.Popen(
        [sys.executable, *ours, *words[1:]],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(process: subprocess.Popen[str]) -> str:
    """Return what a command printed; it must have gone well."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder after the run in three terminals."""
    made = tmp_path_factory.mktemp("hospitals")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    assert TEXT.count(PORT) == 1
    for name, content in FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(content.replace(PORT, port), encoding="utf-8")
    assert COMMANDS[0] == "python make_files.py"
    done(begun(made, COMMANDS[0]))
    terminals = [COMMANDS[k + 1] for k, line in enumerate(COMMANDS) if line.startswith("# term")]
    assert len(terminals) == 3
    running = [begun(made, line) for line in terminals]
    for process in running:
        done(process)
    return made


def test_three_terminals_end_with_one_proved_epsilon(folder: Path) -> None:
    (line,) = [line for line in COMMANDS if line.endswith("--federation together")]
    found = json.loads(done(begun(folder, line + " --json")))
    delta, epsilon = map(Fraction, found["values"])
    assert 0.999 < epsilon <= 1
    assert delta == Fraction(1e-5)
    assert set(found["parties"]) == {"north", "south"}
    assert found["parties"]["north"] == found["parties"]["south"] == found["values"]
    assert any("records fit the schema" in text for text in found["assumptions"])


def test_each_hospital_finds_its_own_ledger_right(folder: Path) -> None:
    lines = [line for line in COMMANDS if "ledger.sqlite" in line]
    assert len(lines) == 2
    proved, spent = (done(begun(folder, line)) for line in lines)
    assert "chain intact, events are the certificate's" in proved
    assert "kept to plan" in spent


def test_the_model_is_the_same_everywhere(folder: Path) -> None:
    models = {
        (folder / place / "model.npy").read_bytes() for place in ("together", "north", "south")
    }
    assert len(models) == 1


def test_the_same_files_run_in_one_process(folder: Path) -> None:
    (line,) = [line for line in COMMANDS if "--out alone" in line]
    assert "proved" in done(begun(folder, line))
    # it paid for a second run, from the same ledgers
    with SqliteLedger(folder / "north" / "ledger.sqlite", read_only=True) as ledger:
        assert [run.kept_to_plan for run in ledger.runs()] == [True, True]


def test_the_same_files_run_as_sums_and_the_answer_says_simulation(
    folder: Path, tmp_path: Path
) -> None:
    shown = dict(
        re.findall(r"^(\w+) = (.*)$", re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)[0], re.M)
    )
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_bytes((folder / f"{name}.csv").read_bytes())
        text = FILES[f"{name}.toml"]
        (tmp_path / f"{name}.toml").write_text(text + 'threat_models = ["summed"]\n')
    lines = "".join(f"{name} = {value}\n" for name, value in shown.items())
    (tmp_path / "schema.toml").write_text(FILES["schema.toml"])
    (tmp_path / "run.toml").write_text(
        FILES["run.toml"].replace("[federation]\n", "[federation]\n" + lines)
    )
    (line,) = [line for line in COMMANDS if "--out alone" in line]
    found = json.loads(done(begun(tmp_path, line + " --json")))
    assert found["simulation"] is True
    assert Fraction(found["values"][1]) <= 1
    assert any("only sums over all parties are seen" in each for each in found["assumptions"])
    assert "SIMULATION" in done(begun(tmp_path, "dpledger verify --federation alone"))


def test_an_older_copy_of_a_party_is_refused_by_its_anchor(folder: Path, tmp_path: Path) -> None:
    for name, text in FILES.items():
        if "/" in name:
            continue
        text = text.replace("rounds = 20", "rounds = 2")
        if name == "north.toml":
            text = text.replace("[noise]", 'anchor = "elsewhere"\n\n[noise]')
        (tmp_path / name).write_text(text)
    for name in ("north.csv", "south.csv"):
        shutil.copy(folder / name, tmp_path)
    line = "dpledger federate run.toml --party north.toml --party south.toml --out {}"
    done(begun(tmp_path, line.format("first")))
    shutil.copytree(tmp_path / "north", tmp_path / "kept")
    done(begun(tmp_path, line.format("second")))
    shutil.rmtree(tmp_path / "north")
    (tmp_path / "kept").rename(tmp_path / "north")
    with SqliteLedger(tmp_path / "north" / "ledger.sqlite", read_only=True) as ledger:
        before = ledger.events()
    third = begun(tmp_path, line.format("third"))
    out, err = third.communicate(timeout=120)
    assert third.returncode not in (0, 1)
    assert "its ledger refused (RolledBack)" in out + err
    with SqliteLedger(tmp_path / "north" / "ledger.sqlite", read_only=True) as ledger:
        assert ledger.events() == before


def test_a_changed_certificate_is_found(folder: Path) -> None:
    path = folder / "together" / "south.certificate.json"
    kept = path.read_bytes()
    assert not verified_federation_outcome(folder / "together").finding
    try:
        path.write_bytes((folder / "together" / "certificate.json").read_bytes())
        outcome = verified_federation_outcome(folder / "together")
        assert outcome.finding
        assert outcome.data["verdict"] == "refused"
        path.write_bytes(kept.replace(b"replace-one", b"zero-out-one"))
        assert verified_federation_outcome(folder / "together").finding
    finally:
        path.write_bytes(kept)


def test_every_command_of_the_tutorial_was_tried() -> None:
    tried = ("python", "dpledger federate", "dpledger party", "dpledger verify", "dpledger ledger")
    assert all(line.startswith((*tried, "# terminal")) for line in COMMANDS)
    assert len(FILES) == 10


def test_a_bank_and_a_shop_train_on_columns_of_the_same_customers(folder: Path) -> None:
    lines = [line for line in COMMANDS if "columns/" in line]
    made, trained, verified = (done(begun(folder, line)) for line in lines)
    assert (made, "proved" in trained) == ("", True)
    assert "accepted" in verified or "proved" in verified
    place = folder / "columns"
    messages = [
        list(ledger.messages(ledger.runs()[0].run).values())
        for name in ("bank", "shop")
        for ledger in [SqliteLedger(place / name / "ledger.sqlite", read_only=True)]
    ]
    assert messages[0] == messages[1]
    assert len(messages[0]) == 3  # what labels tell, and a model of each
    # income and debt; the basket is worth less than the noise
    signs = np.sign(np.load(place / "together" / "model.npy"))
    assert signs[:2].tolist() == [-1.0, 1.0]
