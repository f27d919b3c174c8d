"""Faults: whatever breaks, no ledger says less than what left, and no release is drawn twice."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.accounting.ledger import LedgerError
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    FederationEnded,
    Journal,
    SocketLink,
    run_in_process,
    serve,
    take_part,
)
from dpledger.federation.channel import Channel
from dpledger.federation.journal import JournalError
from dpledger.federation.plan import PROTOCOL
from dpledger.federation.prepaid import OtherMessage
from dpledger.federation.protocol import (
    Answer,
    Ask,
    Bye,
    Ended,
    Hello,
    Reply,
    Request,
    Welcome,
    encoded_row,
)
from dpledger.mechanisms import InvalidParameter, SeededSampler, SystemSampler
from dpledger.solvers import CentralisedDpAdmm, PublishedDpAdmm, fused_lasso
from dpledger.solvers.star import DpAdmm
from dpledger.solvers.steps import SmoothSteps

from .federations import NAMES, POLICY, SHAPE, WIDTH, party_in, plan_of, seeded, solver

TOKEN = b"t" * 32
SCRIPT = Path(__file__).with_name("fault_schedules.py")


def schedules(folder: Path, seeds: Iterable[int | str], **environment: str) -> list[dict[str, Any]]:
    """Run fault schedules in processes of their own and return what each found."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *map(str, seeds)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_right(found: list[dict[str, Any]]) -> None:
    for line in found:
        assert (line["doubled"], line["lost"], line["under"]) == (0, 0, 0), line
        assert line["right"], line
        assert line["failures"] == [], line


def test_a_kill_at_every_point_of_a_round_changes_nothing(tmp_path: Path) -> None:
    (line,) = schedules(tmp_path, ["every-point"])
    assert line["kills"] == 10  # seven points of a party, three of the coordinator
    require_right([line])


def test_random_fault_schedules_end_as_one_process_without_faults(tmp_path: Path) -> None:
    found = schedules(tmp_path, range(2))
    assert len(found) == 2
    assert sum(line["kills"] for line in found) >= 2
    require_right(found)


@pytest.mark.slow
def test_two_hundred_random_fault_schedules(tmp_path: Path) -> None:
    found = schedules(tmp_path, range(200))
    assert len(found) == 200
    require_right(found)


def test_the_schedules_see_noise_that_is_drawn_twice(tmp_path: Path) -> None:
    # seed 3 kills a party after it has sent; fresh noise of the system is other noise
    (line,) = schedules(tmp_path, range(MUTANT_SEED, MUTANT_SEED + 1), MUTANT="redraws")
    assert line["doubled"] > 0


MUTANT_SEED = 3


# --- a coordinator that is asked wrongly -------------------------------------------------------


@pytest.fixture
def coordinator(tmp_path: Path) -> Any:
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        yield Coordinator(plan_of(), journal, patience=0.2)


def asked(coordinator: Coordinator, step: int, parts: dict[str, bytes]) -> dict[str, Reply]:
    """Return the replies to parts of one step that are sent at once."""
    found: dict[str, Reply] = {}

    def ask(name: str, part: bytes) -> None:
        found[name] = coordinator.reply(Ask(coordinator.run, name, step, part))

    threads = [threading.Thread(target=ask, args=each) for each in parts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def begun(coordinator: Coordinator) -> None:
    """Let all parties agree and pay."""
    for step in (0, 1):
        assert set(asked(coordinator, step, dict.fromkeys(NAMES, b"")).values()) == {
            Answer(step, b"")
        }


ROW = encoded_row(np.arange(WIDTH, dtype=float))
WRONG = {
    "not a number": (encoded_row(np.array([np.nan, 0, 0, 0])), "numbers that are not finite"),
    "infinite": (encoded_row(np.array([0, 0, np.inf, 0])), "numbers that are not finite"),
    "short": (ROW[:-8], f"sent {8 * (WIDTH - 1)} bytes where {8 * WIDTH} were due"),
    "long": (ROW + ROW, f"sent {16 * WIDTH} bytes where {8 * WIDTH} were due"),
    "empty": (b"", f"sent 0 bytes where {8 * WIDTH} were due"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_part_ends_the_run_for_all_and_names_its_party(
    fault: str, coordinator: Coordinator
) -> None:
    begun(coordinator)
    part, words = WRONG[fault]
    replies = asked(coordinator, 2, {**dict.fromkeys(NAMES, ROW), "south": part})
    assert len(set(replies.values())) == 1
    (reply,) = set(replies.values())
    assert isinstance(reply, Ended)
    assert "'south'" in reply.reason
    assert words in reply.reason


def test_who_is_missing_is_named(coordinator: Coordinator) -> None:
    begun(coordinator)
    present = {name: ROW for name in NAMES if name != "west"}
    replies = set(asked(coordinator, 2, present).values())
    sentence = "Party 'west' sent nothing for 0.2 s (step 3 of 9, mean)."
    assert replies == {Ended(sentence)}
    assert coordinator.reply(Ask(coordinator.run, "west", 2, ROW)) == Ended(sentence)


def test_a_step_is_answered_the_same_however_often_it_is_asked(coordinator: Coordinator) -> None:
    begun(coordinator)
    first = set(asked(coordinator, 2, dict.fromkeys(NAMES, ROW)).values())
    assert first == {Answer(2, encoded_row(4 * np.arange(WIDTH, dtype=float)))}
    # repeated, late, and with another part: it was added before, and is not added again
    assert {
        coordinator.reply(Ask(coordinator.run, "east", 2, part)) for part in (ROW, b"x")
    } == first


def test_who_asks_again_leaves_nobody_waiting(tmp_path: Path) -> None:
    """Parties that wait long ask often: none of it takes another's place at the coordinator."""
    plan = plan_of()
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=60.0)
        begun(coordinator)
        with serve(coordinator, ("127.0.0.1", 0), TOKEN) as address:
            links = {name: SocketLink(address, TOKEN, patience=60.0) for name in NAMES}
            impatient = SocketLink(address, TOKEN, patience=60.0, resend=0.02)
            replies: list[Reply] = []
            waiting = threading.Thread(
                target=lambda: replies.append(impatient.send(Ask(coordinator.run, "north", 2, ROW)))
            )
            waiting.start()
            for _ in range(2000):
                if coordinator.asked("north") >= 100:
                    break
                waiting.join(0.01)
            assert coordinator.asked("north") >= 100
            others = [
                threading.Thread(
                    target=lambda name=name: replies.append(  # type: ignore[misc]
                        links[name].send(Ask(coordinator.run, name, 2, ROW))
                    )
                )
                for name in NAMES[1:]
            ]
            for thread in others:
                thread.start()
            for thread in (waiting, *others):
                thread.join(30)
        assert replies == [Answer(2, encoded_row(4 * np.arange(WIDTH, dtype=float)))] * 4


def test_two_different_messages_for_one_step_end_the_run(coordinator: Coordinator) -> None:
    begun(coordinator)
    other = encoded_row(np.ones(WIDTH))
    # both wait for the rest: whichever comes second is the second message
    threads = [
        threading.Thread(target=asked, args=(coordinator, 2, {"north": part}))
        for part in (ROW, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert coordinator.ended == "Party 'north' sent two different messages (step 3 of 9, mean)."


def test_messages_of_another_run_version_or_party_end_nothing(coordinator: Coordinator) -> None:
    subject = coordinator.plan.subject
    strays = (
        Ask("another run", "north", 0, b""),
        Ask(coordinator.run, "nobody", 0, b""),
        Ask(coordinator.run, "north", 10**6, b""),
        Ask(coordinator.run, "north", -1, b""),
        Hello(PROTOCOL + 1, "north", subject),
        Hello(PROTOCOL, "nobody", subject),
    )
    for stray in strays:
        assert isinstance(coordinator.reply(stray), Ended)
    assert coordinator.ended is None
    assert coordinator.reply(Hello(PROTOCOL, "north", subject)) == Welcome(coordinator.run)
    begun(coordinator)
    # a party that all have agreed with does not come with another plan: this is a stranger
    assert isinstance(coordinator.reply(Hello(PROTOCOL, "north", "0" * 64)), Ended)
    assert coordinator.ended is None


def test_a_coordinator_that_comes_back_goes_on_with_its_run(tmp_path: Path) -> None:
    plan = plan_of()
    with Journal(tmp_path / "journal.sqlite") as journal:
        first = Coordinator(plan, journal, patience=5.0)
        begun(first)
        asked(first, 2, dict.fromkeys(NAMES, ROW))
    with Journal(tmp_path / "journal.sqlite") as journal:
        second = Coordinator(plan, journal, patience=5.0)
        assert second.run == first.run
        answered = second.reply(Ask(first.run, "north", 2, ROW))
        assert answered == Answer(2, encoded_row(4 * np.arange(WIDTH, dtype=float)))


def test_a_coordinator_waits_until_everybody_knows_the_end(coordinator: Coordinator) -> None:
    coordinator.patience = 30.0
    begun(coordinator)
    reply = asked(coordinator, 2, {"north": ROW[:-8]})["north"]
    assert isinstance(reply, Ended)
    waiting = threading.Thread(target=coordinator.wait)
    waiting.start()
    for name in NAMES:
        assert waiting.is_alive()
        coordinator.reply(Bye(coordinator.run, name))
    waiting.join(30)
    assert not waiting.is_alive()


# --- a party whose files do not agree ----------------------------------------------------------


class Lying:
    """A coordinator that answers as it likes."""

    def __init__(self, plan: FederatedPlan, sums: Any) -> None:
        self.plan, self.sums, self.asked = plan, sums, 0

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        if isinstance(request, Hello):
            return Welcome("run")
        self.asked += 1
        assert isinstance(request, Ask)
        width = self.plan.steps[request.step].width
        return Answer(request.step, self.sums(width) if width else b"")

    def leave(self, bye: Bye) -> None:
        pass


def one_party(folder: Path, plan: FederatedPlan, sums: Any, number: int = 0, **options: Any) -> Any:
    party = party_in(folder, number, **options)
    try:
        return take_part(party, plan, Lying(plan, sums)), party.ledger.events()
    finally:
        party.ledger.close()
        party.journal.close()


def test_whatever_comes_back_a_party_releases_its_plan_and_no_more(tmp_path: Path) -> None:
    plan = plan_of()
    wild = np.random.default_rng(1)
    took, events = one_party(
        tmp_path, plan, lambda width: encoded_row(10.0 * wild.normal(size=width))
    )
    assert tuple(events) == plan.events
    assert np.isfinite(took.state.model).all()


@pytest.mark.parametrize("limit", ["policy", "budget"])
def test_a_party_that_says_no_sends_nothing_whatever_is_answered(
    limit: str, tmp_path: Path
) -> None:
    """Nor where it said yes before it broke off, and its policy became stricter since."""
    plan = plan_of()
    stricter: dict[str, Any] = {
        "policy": {"policy": replace(POLICY, epsilon=0.01)},
        "budget": {"mu_squared": 1e-6},
    }[limit]
    link = Lying(plan, lambda width: encoded_row(np.zeros(width)))
    for _ in range(2):
        party = party_in(tmp_path, 0, **stricter)
        with pytest.raises(FederationEnded, match="does not take part"):
            take_part(party, plan, link)
        assert party.ledger.events() == []
        party.ledger.close()
        party.journal.close()
    assert link.asked == 1  # the agreement; the second time its answer is in the journal


@pytest.mark.parametrize("bad", [lambda width: b"x", lambda width: b"\xff" * 8 * width])
def test_an_answer_that_is_no_sum_stops_the_party(bad: Any, tmp_path: Path) -> None:
    with pytest.raises(FederationEnded, match="The coordinator answered step 2"):
        one_party(tmp_path, plan_of(), bad)


def interrupted(folder: Path, plan: FederatedPlan, after: int) -> None:
    """Let a party send some messages and then lose its coordinator."""
    left = [after]

    def sums(width: int) -> bytes:
        if not left[0]:
            raise FederationEnded("The coordinator was not reached.")
        left[0] -= 1
        return encoded_row(np.ones(width))

    with pytest.raises(FederationEnded, match="not reached"):
        one_party(folder, plan, sums, sampler=SystemSampler())


def test_a_lost_journal_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    plan = plan_of()
    interrupted(tmp_path, plan, 3)
    (tmp_path / "north" / "journal.sqlite").unlink()
    with pytest.raises(JournalError, match="must hold the 4 messages that left"):
        one_party(tmp_path, plan, lambda w: encoded_row(np.ones(w)), sampler=SystemSampler())


def test_files_of_a_killed_party_without_their_logs_send_nothing_twice(tmp_path: Path) -> None:
    """As databases are moved that nobody has open: the ledger knows what left, the journal not."""
    plan, left = plan_of(), [3]

    def sums(width: int) -> bytes:
        if not left[0]:  # the process is killed here: nothing is closed
            shutil.copytree(
                tmp_path / "north",
                tmp_path / "moved" / "north",
                ignore=shutil.ignore_patterns("*-wal", "*-shm"),
            )
            raise FederationEnded("The coordinator was not reached.")
        left[0] -= 1
        return encoded_row(np.ones(width))

    with pytest.raises(FederationEnded, match="not reached"):
        one_party(tmp_path, plan, sums, sampler=SystemSampler())
    with pytest.raises(JournalError, match="must hold the 4 messages that left"):
        one_party(
            tmp_path / "moved", plan, lambda w: encoded_row(np.ones(w)), sampler=SystemSampler()
        )


def test_an_older_journal_is_refused(tmp_path: Path) -> None:
    plan, journal = plan_of(), tmp_path / "north" / "journal.sqlite"
    interrupted(tmp_path, plan, 1)
    older = journal.read_bytes()
    interrupted(tmp_path, plan, 2)
    journal.write_bytes(older)
    with pytest.raises(JournalError, match="an older copy"):
        one_party(tmp_path, plan, lambda w: encoded_row(np.ones(w)), sampler=SystemSampler())


def test_a_copy_of_a_party_with_a_message_of_its_own_sends_nothing(tmp_path: Path) -> None:
    """Two copies of a journal, one ledger: what the other one recorded did not leave, and stays."""
    plan, path = plan_of(), tmp_path / "north" / "journal.sqlite"
    interrupted(tmp_path, plan, 1)
    with Journal(path) as journal:
        held = journal.count("run", "message")
    copy = path.read_bytes()
    interrupted(tmp_path, plan, 1)  # goes on by one message
    path.write_bytes(copy)
    own = encoded_row(np.ones(WIDTH))  # of the copy's own noise, killed before it was committed
    with Journal(path) as journal:
        journal.keep("run", "message", held, own)
    sent: list[bytes] = []

    class Listening(Lying):
        def send(self, request: Request, *, brief: bool = False) -> Reply:
            sent.extend([request.part] if isinstance(request, Ask) else [])
            return super().send(request, brief=brief)

    party = party_in(tmp_path, 0, sampler=SystemSampler())
    with pytest.raises(OtherMessage, match="another copy"):
        take_part(party, plan, Listening(plan, lambda width: encoded_row(np.ones(width))))
    assert sent
    assert own not in sent
    party.ledger.close()
    party.journal.close()


def test_a_party_that_was_done_needs_no_coordinator(tmp_path: Path) -> None:
    plan = plan_of()
    first, _ = one_party(tmp_path, plan, lambda width: encoded_row(np.ones(width)))

    class Gone(Lying):
        def send(self, request: Request, *, brief: bool = False) -> Reply:
            raise FederationEnded("The coordinator was not reached.")

    party = party_in(tmp_path, 0)
    again = take_part(party, plan, Gone(plan, None))
    assert (again.run, again.certificate) == (first.run, first.certificate)
    assert again.state.model.tobytes() == first.state.model.tobytes()
    with pytest.raises(FederationEnded, match="not reached"):
        take_part(party, plan_of(configuration="d" * 64), Gone(plan, None))
    party.ledger.close()
    party.journal.close()


def test_a_lost_ledger_is_refused(tmp_path: Path) -> None:
    plan = plan_of()
    interrupted(tmp_path, plan, 3)
    for file in (tmp_path / "north").glob("ledger*"):
        file.unlink()
    with pytest.raises(JournalError, match="must hold the 0 messages"):
        one_party(tmp_path, plan, lambda w: encoded_row(np.ones(w)), sampler=SystemSampler())


def test_a_party_does_not_come_back_with_another_sampler(tmp_path: Path) -> None:
    plan = plan_of()
    interrupted(tmp_path, plan, 2)
    with pytest.raises(InvalidParameter, match="sampler"):
        one_party(tmp_path, plan, lambda w: encoded_row(np.ones(w)), sampler=seeded(0))


def test_one_process_at_a_time_takes_part(tmp_path: Path) -> None:
    party = party_in(tmp_path, 0)
    with pytest.raises(JournalError, match="does another process take part"):
        Journal(tmp_path / "north" / "journal.sqlite")
    party.journal.close()
    party.ledger.close()


def test_a_full_disk_stops_a_party_before_its_message_leaves(tmp_path: Path) -> None:
    plan = plan_of(solver(60))
    party = party_in(tmp_path, 0, sampler=SystemSampler())
    full = party.journal._connection  # pyright: ignore[reportPrivateUsage]
    full.execute("PRAGMA max_page_count = 3")
    answers = Lying(plan, lambda width: encoded_row(np.ones(width)))
    with pytest.raises(JournalError, match=r"fit on the disk .* nothing was sent"):
        take_part(party, plan, answers)
    assert 0 < party.journal.count("run", "message") < len(plan.events)
    full.execute("PRAGMA max_page_count = 1000")
    assert tuple(party.ledger.events()) == plan.events
    take_part(party, plan, answers)
    assert party.ledger.verify().open == ()
    party.ledger.close()
    party.journal.close()


def test_a_journal_says_a_thing_once(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.keep("run", "message", 0, b"a")
        with pytest.raises(JournalError, match="must be new"):
            journal.keep("run", "message", 0, b"b")
        assert journal.get("run", "message", 0) == b"a"
        journal.keep("run", "message", 2, b"c")
        with pytest.raises(JournalError, match="without gaps"):
            journal.count("run", "message")


def test_a_seed_that_paid_before_stops_all_before_anything_is_sent(tmp_path: Path) -> None:
    plan = plan_of()
    parties = [party_in(tmp_path, number) for number in range(len(NAMES))]
    parties[2].ledger.run("earlier", configuration_hash="0").reserve(
        plan.events[:1], SeededSampler.stream(11, 2).provenance
    )
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        with pytest.raises((FederationEnded, LedgerError)):
            run_in_process(parties, plan, coordinator)
        assert "'south' did not pay: its ledger refused" in str(coordinator.ended)
    for party in parties:
        assert party.journal.count(coordinator.run, "message") == 0
        party.ledger.close()
        party.journal.close()


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (CentralisedDpAdmm(fused_lasso(4, []), 2, 1.0, 0.5), "a single one"),
        (PublishedDpAdmm(DpAdmm(2, 1.0, SmoothSteps(0.25, 5.0)), 2, 5.0), "protects all"),
    ],
)
def test_what_no_party_can_run_alone_is_refused_before_it_is_paid(solver: Any, words: str) -> None:
    assert len(SHAPE.parties) == 4
    with pytest.raises(InvalidParameter, match=words):
        plan_of(solver)


class Gone:
    """The way to a coordinator that is gone."""

    def __init__(self) -> None:
        self.brief: list[bool] = []

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        self.brief.append(brief)
        raise FederationEnded("The coordinator was not reached.")

    def leave(self, bye: Bye) -> None:
        """Nobody hears it."""


def test_a_party_killed_while_it_leaves_does_not_wait_for_a_coordinator_that_is_gone(
    tmp_path: Path,
) -> None:
    plan = plan_of()
    parties = [party_in(tmp_path, number) for number in range(len(NAMES))]
    keep = parties[0].journal.keep

    def killed(run: str, kind: str, number: int, content: bytes) -> None:
        if kind == "left":
            raise KeyboardInterrupt
        keep(run, kind, number, content)

    parties[0].journal.keep = killed  # type: ignore[method-assign]
    with Journal(tmp_path / "coordinator.sqlite") as journal, pytest.raises(KeyboardInterrupt):
        run_in_process(parties, plan, Coordinator(plan, journal, patience=20.0))
    for party in parties:
        party.ledger.close()
        party.journal.close()
    one, other = party_in(tmp_path, 0), party_in(tmp_path, 1)
    first, again, whole = Gone(), Gone(), Gone()
    found = [take_part(one, plan, link) for link in (first, again)]
    assert found[0].certificate == found[1].certificate
    assert take_part(other, plan, whole).state.model.tobytes() == found[0].state.model.tobytes()
    # only who never noted that it left is done at once: another may begin a new run
    assert (first.brief, again.brief, whole.brief) == ([True], [False], [False])
    for party in (one, other):
        party.ledger.close()
        party.journal.close()


def test_a_goodbye_that_is_lost_is_said_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, lost = plan_of(), []
    send = Channel.send

    def losing(channel: Channel, content: bytes) -> None:
        if b"Bye" in content and not lost:
            lost.append(content)
            raise ConnectionError
        send(channel, content)

    monkeypatch.setattr(Channel, "send", losing)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        with serve(coordinator, ("127.0.0.1", 0), TOKEN) as address:
            SocketLink(address, TOKEN, patience=5.0).leave(Bye(coordinator.run, "north"))
        assert len(lost) == journal.count(coordinator.run, "bye") == 1
