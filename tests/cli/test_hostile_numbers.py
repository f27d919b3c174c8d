"""Numbers at the edge and beyond, on the command line: answered or refused at once, by name.

An adversary with fresh eyes tried them; the first part was found and is mended, the second held.
"""

import json
from pathlib import Path

import pytest

from dpledger.accounting.numbers.work import WorkExhausted, limited
from dpledger.accounting.training import epsilon, noise_multiplier

from .conftest import Answer, Call, edited

POISSON = {"sampling": "poisson", "adjacency": "add-remove-one"}
FIXED_BATCH = {"sampling": "fixed-batch", "adjacency": "replace-one"}
RUN = {"records": 1000, "batch": 50, "steps": 7, "delta": "1e-5", **POISSON}


def training(call: Call, command: str, *flags: object, **changes: object) -> Answer:
    """Answer a command about a training run of so many steps, with some options changed."""
    needed = {"noise_multiplier": 2} if command == "epsilon" else {}
    named = {**needed, **RUN, **changes}
    pairs = ((f"--{name.replace('_', '-')}", value) for name, value in named.items())
    return call(command, *(word for pair in pairs for word in pair), *flags)


def ends(call: Call, **changes: object) -> tuple[float, float]:
    answer = training(call, "epsilon", "--json", **changes)
    assert answer.status == 0, answer.err
    found = strict(answer.out)["guarantee"]["epsilon"]
    return found["lower"], found["upper"]


def strict(text: str) -> dict:
    """Read JSON as RFC 8259 has it: no NaN, no Infinity, no name twice."""

    def refuse(name: str) -> float:
        raise ValueError(name)

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        assert len({name for name, _ in found}) == len(found)
        return dict(found)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


# --- what hung, or ended in a traceback ----------------------------------------------------------


@pytest.mark.parametrize("noise", ["1e-30", "1e-60", "1e-80", "1e-150", "1e-308"])
@pytest.mark.parametrize("scheme", [POISSON, FIXED_BATCH])
def test_noise_that_hides_nothing_costs_infinity(call: Call, noise: str, scheme: dict) -> None:
    answer = training(call, "epsilon", "--json", noise_multiplier=noise, **scheme)
    assert (answer.status, answer.data["guarantee"]["epsilon"]["upper"]) == (0, "infinity")


def test_the_least_noise_that_counts_is_priced(call: Call) -> None:
    _, upper = ends(call, noise_multiplier=2.0**-47)
    # a record is in more than 4 of 7 samples with probability 6e-6; each costs about mu²/2 = 2^93
    assert 4 * 2.0**93 <= upper < 4.001 * 2.0**93


@pytest.mark.parametrize("target", ["1e-308", "1e-12", "1e308", "0", "-1", "nan"])
@pytest.mark.parametrize("command", ["noise", "calibrate"])
def test_a_target_out_of_reach_is_refused_by_name(call: Call, command: str, target: str) -> None:
    if command == "noise":
        answer = training(call, "noise", epsilon=target)
    else:
        options = ("--delta", "1e-5", "--rounds", 3, "--adjacency", "replace-one")
        answer = call("calibrate", "--epsilon", target, *options)
    assert answer.status == 2
    assert "epsilon=" in answer.err


def test_noise_falls_as_the_target_grows() -> None:
    """Also where no certificate is sought, and its bound is no guide; and it is near the least."""
    run = {"delta": 1e-5, "steps": 1, "rate": 0.01, **POISSON}
    multipliers = []
    for target in (2.0, 2e4, 1e6):
        found = noise_multiplier(epsilon=target, proved=True, **run)
        multipliers.append(found.noise_multiplier)
        less = epsilon(noise_multiplier=0.99 * found.noise_multiplier, **run)
        assert found.epsilon <= target < less.epsilon
    assert multipliers == sorted(multipliers, reverse=True)


@pytest.mark.parametrize(
    "chosen",
    [
        ("--epsilon", 1, "--rounds", 10**18),
        ("--epsilon", 1, "--noise-multiplier", "1e8"),
        ("--epsilon", 10**6, "--noise-multiplier", 10),
    ],
)
def test_any_number_of_gaussian_rounds_is_calibrated(call: Call, chosen: tuple) -> None:
    answer = call("calibrate", *chosen, "--delta", "1e-5", "--adjacency", "replace-one")
    assert answer.status == 0
    assert "proved" in answer.out


@pytest.mark.parametrize("rounds", [-3, 0, 10**18 + 1])
def test_rounds_out_of_range_are_refused(call: Call, rounds: int) -> None:
    options = ("--delta", "1e-5", "--rounds", rounds, "--adjacency", "replace-one")
    answer = call("calibrate", "--epsilon", 1, *options)
    assert answer.status == 2
    assert f"rounds={rounds} must be" in answer.err


def test_a_million_million_million_steps_are_priced_within_a_limit_of_work() -> None:
    with limited(20_000):
        found = epsilon(
            noise_multiplier=1, delta=1e-5, proved=True, steps=10**18, rate=0.01, **POISSON
        )
    assert found.epsilon > 1e13


def test_a_long_walk_on_fixed_batches_is_counted() -> None:
    with limited(10), pytest.raises(WorkExhausted):
        epsilon(
            noise_multiplier=1.25, delta=1e-5, steps=470, batch=256, records=60_000, **FIXED_BATCH
        )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rounds = 6", f"rounds = {10**18}", "must be in [1, 1000000]"),
        ("rounds = 6", "rounds = 1000000", "times inner_steps and parties"),
        ("distance = 5.0", "distance = nan", "distance=nan must be in (0, inf)"),
        ("distance = 5.0", "distance = inf", "distance=inf must be in (0, inf)"),
        ("distance = 5.0", "distance = -1.0", "distance=-1.0 must be in (0, inf)"),
        ("rounds = 6", "rounds = 6\npenalty = 0.0", "penalty=0.0 must be in (0, inf)"),
        ("rounds = 6", "rounds = 6\ntolerance = nan", "tolerance=nan must be in (0, inf)"),
        ("trials = 40", f"trials = {10**15}", "must be in [10, 10000000]"),
        ("trials = 40", "trials = 40\nseed = -1", "seed=-1 must be in [0, inf)"),
        ("seed = 5", "seed = -5", "seed=-5 must be in [0, inf)"),
    ],
)
def test_a_configuration_out_of_range_is_refused_at_once(
    call: Call, folder: Path, old: str, new: str, words: str
) -> None:
    answer = call("plan", edited(folder, (old, new)))
    assert answer.status == 2
    assert words in answer.err


def test_options_of_watch_and_curve_are_ranges(call: Call, folder: Path) -> None:
    ledger = folder / "none.sqlite"
    ledger.touch()
    for options in (("--confidence", 1.5, "--config", folder / "run.toml"), ("--delta", 2)):
        answer = call("watch", ledger, *options)
        assert answer.status == 2
        assert f"{options[0][2:]}={float(options[1])} must be in (0, 1)".replace(".0 ", "") in (
            answer.err.replace(".0 ", "")
        )
    answer = call("curve", folder / "run.toml", "--from", "1e-320")
    assert answer.status == 2
    assert "--from" in answer.err


CANARIES = ("audit", "one-run", "--delta", "1e-5")


def test_a_one_run_plan_has_a_limit_of_canaries(call: Call) -> None:
    answer = call(*CANARIES, "--canaries", 10**18, "--epsilon", 1)
    assert answer.status == 2
    assert f"canaries={10**18} must be in [1, 1000000]" in answer.err


def test_a_one_run_plan_for_a_claim_of_nothing_is_made(call: Call) -> None:
    assert call(*CANARIES, "--canaries", 1000, "--epsilon", "1e308").status == 0
    answer = call(*CANARIES, "--canaries", 1000, "--mu", "1e308")
    assert answer.status == 2
    assert "mu=1e+308 must be in" in answer.err


def test_no_more_is_guessed_than_there_are_canaries(call: Call) -> None:
    answer = call(*CANARIES, "--canaries", 2, "--epsilon", 1, "--guesses", 5, 5)
    assert answer.status == 2
    assert "guesses=(5, 5) must be in [1, canaries=2]" in answer.err


# --- what held -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("delta", value) for value in ("0", "1", "nan", "-1", "1e400")),
        *(("noise_multiplier", value) for value in ("-1", "nan", "inf")),
        ("batch", 0),
        ("batch", 1001),
        ("records", 0),
        ("steps", 0),
        ("steps", -1),
        ("sampling", "nosuch"),
        ("adjacency", "nosuch"),
    ],
)
def test_a_bad_number_is_refused_by_name(call: Call, name: str, value: object) -> None:
    answer = training(call, "epsilon", **{name: value})
    assert answer.status == 2
    assert answer.err.startswith("InvalidParameter: ")
    assert name in answer.err


def test_json_is_strict_where_epsilon_is_infinite(call: Call) -> None:
    answer = training(call, "epsilon", "--json", noise_multiplier=0)
    assert answer.status == 0
    assert strict(answer.out)["guarantee"]["epsilon"] == {"lower": "infinity", "upper": "infinity"}


def test_epsilon_falls_with_noise_and_grows_with_steps(call: Call) -> None:
    assert ends(call, noise_multiplier=3)[0] <= ends(call, noise_multiplier=1)[1]
    assert ends(call, steps=100)[1] >= ends(call, steps=7)[0]


def test_epsilon_is_not_below_the_optimistic_one_of_dp_accounting(call: Call) -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    least = pld.from_gaussian_mechanism(
        2.0, sampling_prob=0.05, pessimistic_estimate=False, value_discretization_interval=1e-3
    )
    assert ends(call)[1] >= least.self_compose(7).get_epsilon_for_delta(1e-5)


@pytest.fixture
def document(call: Call, tmp_path: Path) -> str:
    path = tmp_path / "certificate.json"
    assert training(call, "epsilon", "--certificate", path, sampling="none").status == 0
    return path.read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"times":7', '"times":6'),
        ('"times":7', '"times":7.0'),
        ('"group":1', '"group":2'),
        ('"adjacency":"add-remove-one"', '"adjacency":"replace-one"'),
        ('"delta":"5902958103587057/', '"delta":"5902958103587056/'),
        ('"events":', '"events":[],"events":'),
        ('"mechanisms":[', '"mechanisms":[{"kind":"magic"},'),
    ],
)
def test_an_edited_certificate_is_refused(
    call: Call, document: str, tmp_path: Path, old: str, new: str
) -> None:
    assert old in document
    path = tmp_path / "edited.json"
    path.write_text(document.replace(old, new, 1))
    assert call("verify", path).status == 1


def test_a_deep_document_is_refused(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    assert call("verify", path).status == 1


def test_steps_beyond_the_limit_are_refused(call: Call) -> None:
    answer = training(call, "epsilon", steps=10**18 + 1)
    assert answer.status == 2
    assert "10**18" in answer.err


# once: a square that doubles do not hold was divided by; the checker's refusal was a traceback
def test_noise_whose_square_no_double_holds_is_answered(call: Call) -> None:
    changes = {"delta": "1e-300", "adjacency": "zero-out-one"}
    answer = training(call, "epsilon", "--json", noise_multiplier=1e150, **changes)
    assert answer.status == 0, answer.err
    assert strict(answer.out)["guarantee"]["epsilon"]["upper"] >= 0


# once: `run` read all of a file before it looked at its size, and as UTF-8
@pytest.mark.parametrize("command", ["run", "plan"])
def test_what_is_no_configuration_is_refused_in_a_sentence(
    call: Call, command: str, tmp_path: Path
) -> None:
    (tmp_path / "no.toml").write_bytes(b"\x93NUMPY\xff")
    (tmp_path / "large.toml").write_bytes(b"#" * 70_000)
    for name, words in (("no.toml", "readable TOML"), ("large.toml", "at most 65536 bytes")):
        answer = call(command, tmp_path / name)
        assert answer.status == 2
        assert words in answer.err


def test_a_unit_of_too_many_records_is_refused(call: Call) -> None:
    answer = training(call, "epsilon", records_per_unit=10**21)
    assert answer.status == 2
    assert "[1, 10^18]" in answer.err


# once: nothing to pay, in units of several records, divided by a proved epsilon of 0
def test_units_that_pay_nothing_need_no_noise(call: Call) -> None:
    options = {"records": None, "batch": None, "rate": 0, "records_per_unit": 2, "delta": "0.9"}
    words = {name: value for name, value in (RUN | options).items() if value is not None}
    pairs = ((f"--{name.replace('_', '-')}", value) for name, value in words.items())
    answer = call("noise", "--epsilon", 1, *(word for pair in pairs for word in pair))
    assert answer.status == 0, answer.err


# once: losses that are one number to a double have no spread to divide by
def test_a_curve_at_a_rate_of_next_to_nothing_is_drawn(call: Call) -> None:
    ends = ("--from", 1e-300, "--to", 1e-5, "--points", 3, "--grade", "enclosed")
    options = ("--noise-multiplier", 1e3, "--rate", 1e-300, "--steps", 7, "--sampling", "poisson")
    answer = call("curve", *ends, *options, "--adjacency", "zero-out-one")
    assert answer.status == 0, answer.err
