"""The engine "flower": messages that start a process each, parties whose only memory is on disk."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    Journal,
    Party,
    Policy,
    take_part,
    verify_federation,
    write_federation,
)
from dpledger.federation.flower import coordinate, said
from dpledger.federation.party import Link, TookPart
from dpledger.mechanisms import Adjacency, EventList
from dpledger.runs.flower import write_app
from dpledger.solvers import ConsensusDpAdmm

from .federations import NAMES, POLICY, one_process, party_in, plan_of
from .test_summed import by_hand, summed_plan, summing_party
from .test_tutorial import FILES, TEXT

SOLVER = ConsensusDpAdmm(3, 2.0, 4.0)
Made = Callable[[Path, int], Party]


class Nodes:
    """A grid without Flower: a party is opened for each message and closed after it."""

    def __init__(self, folder: Path, plan: FederatedPlan, made: Made = party_in) -> None:
        self.folder, self.plan, self.made = folder, plan, made
        self.took: dict[int, TookPart] = {}
        self.messages = 0

    def exchange(self, told: Mapping[int, bytes]) -> dict[int, bytes]:
        return {node: self.one(node, content) for node, content in told.items()}

    def one(self, node: int, content: bytes) -> bytes:
        self.messages += 1
        party = self.made(self.folder, node)

        def take(link: Link) -> TookPart:
            self.took[node] = take_part(party, self.plan, link)
            return self.took[node]

        try:
            return said(take, content)
        finally:
            party.ledger.close()
            party.journal.close()


def run(nodes: Nodes, *, patience: float = 20.0) -> str | None:
    """Return why a run ended before its time, or None."""
    with Journal(nodes.folder / "coordinator.sqlite") as journal:
        coordinator = Coordinator(nodes.plan, journal, patience=patience)
        coordinate(coordinator, range(len(NAMES)), nodes.exchange)
        if coordinator.finished:
            handed_in = coordinator.handed_in()
            write_federation(nodes.folder / "out", nodes.plan, coordinator.run, handed_in)
        return coordinator.ended


def test_a_process_for_every_message_comes_to_the_bits_of_one_process(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, plan_of(SOLVER))
    assert run(nodes) is None
    alone = one_process(SOLVER, EventList())
    assert {part.state.model.tobytes() for part in nodes.took.values()} == {alone.model.tobytes()}
    # greeting, agreement, payment, three rounds, the certificate, goodbye: once each a party
    assert nodes.messages == 4 * (len(nodes.plan.steps) + 2)
    assert verify_federation(tmp_path / "out").same_model
    for name in NAMES:
        with SqliteLedger(tmp_path / name / "ledger.sqlite", read_only=True) as ledger:
            assert tuple(ledger.events()) == nodes.plan.events
            assert ledger.verify().open == ()


def test_sums_travel_by_messages_too(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, summed_plan(SOLVER), summing_party)
    assert run(nodes) is None
    assert nodes.took[0].state.model == pytest.approx(by_hand(3), abs=1e-9)
    assert verify_federation(tmp_path / "out").simulation


class Repeating(Nodes):
    """Messages that arrive twice, and answers that are lost once."""

    def __init__(self, folder: Path, plan: FederatedPlan) -> None:
        super().__init__(folder, plan)
        self.said: dict[tuple[int, bytes], set[bytes]] = {}

    def exchange(self, told: Mapping[int, bytes]) -> dict[int, bytes]:
        found = {}
        for node, content in told.items():
            first, again = self.one(node, content), self.one(node, content)
            before = self.said.setdefault((node, content), set())
            if before or node % 2:
                found[node] = again
            before.update((first, again))
        return found


def test_a_message_that_comes_again_is_answered_with_the_same_bytes(tmp_path: Path) -> None:
    nodes = Repeating(tmp_path, plan_of(SOLVER))
    assert run(nodes) is None
    assert all(len(answers) == 1 for answers in nodes.said.values())
    alone = one_process(SOLVER, EventList())
    assert nodes.took[2].state.model.tobytes() == alone.model.tobytes()


class Silent(Nodes):
    """The second party says nothing after so many messages."""

    def exchange(self, told: Mapping[int, bytes]) -> dict[int, bytes]:
        heard = {node: told[node] for node in told if node != 1 or self.messages < 20}
        return super().exchange(heard)


def test_a_party_that_falls_silent_ends_the_run_in_a_sentence_that_names_it(
    tmp_path: Path,
) -> None:
    ended = run(Silent(tmp_path, plan_of(SOLVER)), patience=0.5)
    assert ended is not None
    assert ended.startswith("Party 'east' sent nothing for 0.5 s")


def test_a_party_that_says_no_ends_the_run_for_all(tmp_path: Path) -> None:
    refusing = Policy(
        epsilon=1e-3, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, algorithms=("consensus-admm",)
    )

    def made(folder: Path, number: int) -> Party:
        return party_in(folder, number, policy=refusing if number == 2 else POLICY)

    nodes = Nodes(tmp_path, plan_of(SOLVER), made)
    assert "'south' does not take part" in (run(nodes) or "")
    assert nodes.took == {}


# --- Flower itself -----------------------------------------------------------------------------


def begun(folder: Path, log: str, *words: str) -> subprocess.Popen[bytes]:
    """Start one of Flower's programs, in a group of its own, with its output in a file."""
    environment = {
        **os.environ,
        "FLWR_HOME": str(folder),
        "FLWR_TELEMETRY_ENABLED": "0",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with (folder / log).open("wb") as out:
        return subprocess.Popen(
            words, cwd=folder, env=environment, stdout=out, stderr=out, start_new_session=True
        )


SECURED = re.findall(r"```text\n(openssl .*?)```", TEXT, re.DOTALL)[0]
"""The commands of the tutorial by which certificates and keys are made and nodes are known."""


def made_keys(folder: Path) -> None:
    """Make the certificates, and the keys of both hospitals, as the tutorial does."""
    lines = [
        line
        for line in SECURED.splitlines()
        if line.startswith(("openssl", "printf", "ssh-keygen"))
    ]
    for line in lines:
        for name in ("north", "south") if "north" in line else ("",):
            command = line.replace("north", name)
            subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True, capture_output=True)


def words_of(program: str) -> list[str]:
    """Return the options of the tutorial's line of a program, but for what another block has."""
    (line,) = [line for line in SECURED.splitlines() if line.startswith(program)]
    return [word for word in line.split()[1:] if word != "..."]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("flwr") is None, reason="needs dpledger[flower]")
@pytest.mark.parametrize("secured", [False, True], ids=["insecure", "tls"])
def test_two_supernodes_come_to_the_bits_of_threads(secured: bool, tmp_path: Path) -> None:
    (tmp_path / "make_files.py").write_text(FILES["make_files.py"])
    for name in ("schema.toml", "run.toml", "north.toml", "south.toml"):
        text = FILES[name].replace("rounds = 20", "rounds = 2")
        text = text.replace('sampler = "system"', f'sampler = "philox"\nseed = {len(name)}')
        (tmp_path / name).write_text(text)
    subprocess.run([sys.executable, "make_files.py"], cwd=tmp_path, check=True)
    write_app(tmp_path / "app", tmp_path / "run.toml")
    trust = "insecure = true"
    if secured:
        made_keys(tmp_path)
        trust = f'root-certificates = "{tmp_path / "ca.pem"}"'
    (tmp_path / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:18000"\n{trust}\n'
    )
    link = begun(
        tmp_path, "link", "flower-superlink", "--port", "18000",
        *(words_of("flower-superlink") if secured else ["--insecure"]),
        "--disable-runtime-dependency-installation",
    )  # fmt: skip
    running = [link]
    try:
        time.sleep(8)
        if secured:
            for name in ("north", "south"):
                register = [word.replace("north", name) for word in words_of("flwr supernode")]
                assert begun(tmp_path, "registered", "flwr", *register).wait(120) == 0
        for k, name in enumerate(("north", "south")):
            known = ["--insecure"]
            if secured:
                known = [word.replace("north", name) for word in words_of("flower-supernode")]
            party = f'party="{tmp_path / f"{name}.toml"}"'
            running.append(
                begun(
                    tmp_path, name + ".log", "flower-supernode", *known, "--superlink",
                    "127.0.0.1:18000", "--port", str(19094 + k), "--node-config", party,
                )
            )  # fmt: skip
        time.sleep(8)
        running.append(begun(tmp_path, "run", "flwr", "run", "app", "here", "--stream"))
        for _ in range(600):
            if (tmp_path / "app" / "together" / "federation.json").exists():
                break
            time.sleep(0.5)
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(30)
    flower = np.load(tmp_path / "app" / "together" / "model.npy")
    assert verify_federation(tmp_path / "app" / "together").same_model
    for name in ("north", "south"):
        shutil.rmtree(tmp_path / name)
    words = ["federate", "run.toml", "--party", "north.toml", "--party", "south.toml"]
    subprocess.run(
        [sys.executable, "-m", "dpledger", *words, "--out", "alone"], cwd=tmp_path, check=True
    )
    assert np.load(tmp_path / "alone" / "model.npy").tobytes() == flower.tobytes()
