"""Files of strangers: read as they are meant, or refused in one sentence; nothing is executed.

Every file is made here. Hostile pickles would create a file if they were executed.
"""

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import MemoryLedger, Run, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.interop import KINDS, Untranslatable, import_into, read
from dpledger.interop.checkpoints import plain_data_of
from dpledger.interop.fields import MalformedImport
from dpledger.interop.files import read_bytes
from dpledger.mechanisms import Adjacency, InvalidParameter
from dpledger.mechanisms.errors import DpledgerError
from dpledger.runs.outcomes import imports

ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE
HISTORY = [(1.0, 0.01, 1000), (1.5, 0.01, 500)]
STATE = {"history": HISTORY, "mechanism": "prv"}


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def zipped(data: bytes, name: str = "archive/data.pkl") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
        archive.writestr("archive/data/0", b"\0" * 64)
    return stream.getvalue()


def short(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n(("
    + short("storage")
    + b"ctorch\nFloatStorage\n"
    + short("0")
    + short("cpu")
    + b"K\x10tQK\x00(K\x04K\x04t(K\x04K\x01t\x89ccollections\nOrderedDict\n)RtR"
)
"""What torch writes for a tensor of shape (4, 4): a persistent reference, and a call."""


def checkpoint(weights: bytes = TENSOR) -> bytes:
    state = pickle.dumps(STATE, protocol=2)[2:-1]
    return (
        b"\x80\x02}("
        + short("module_state_dict")
        + b"ccollections\nOrderedDict\n)R("
        + short("layer.weight")
        + weights
        + b"u"
        + short("privacy_accountant_state_dict")
        + state
        + b"u."
    )


class Hostile:
    """A pickle of it would create the file that the environment names."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (os.system, (f"touch {os.environ['DPLEDGER_TEST_TRACE']}",))


def hostile(protocol: int) -> bytes:
    return pickle.dumps(
        {"history": HISTORY, "mechanism": "prv", "other": Hostile()}, protocol=protocol
    )


def gaussian(noise: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "module_name": "dp_accounting.dp_event",
        "class_name": "GaussianDpEvent",
        "noise_multiplier": noise,
        **more,
    }


def dp_event(name: str, **fields: Any) -> dict[str, Any]:
    return {"module_name": "dp_accounting.dp_event", "class_name": name, **fields}


def flower(**config: Any) -> dict[str, Any]:
    stated = {
        "target_delta": 1e-5,
        "population_size": 1000,
        "neighboring_relation": "add-or-remove-one",
        "sampling_method": "poisson",
        "max_epsilon": None,
    }
    event = {"noise_multiplier": 1.0, "sample_size": 10, "population_size": 1000}
    return {
        "schema_version": 1,
        "backend": "rdp",
        "config": {**stated, **config},
        "orders": [2.0, 3.0],
        "compositions": [{"event": event, "count": 100}],
    }


TF = {
    "number_of_examples": 60000,
    "batch_size": 256,
    "num_epochs": 60,
    "noise_multiplier": 1.1,
    "used_microbatching": False,
    "sampling": "poisson",
    "delta": 1e-5,
}
JAX = {
    "noise_multipliers": 1.1,
    "num_samples": 60000,
    "batch_size": 256,
    "num_updates": 14063,
    "sampling_method": "POISSON",
    "delta": 1e-5,
}
BANDS = {"strategy": [1.0, 0.5, 0.25], "iterations": 30, "noise_multiplier": 4.0}

GOOD: dict[str, tuple[str, bytes, Adjacency]] = {
    "dp event": ("dp-event", text(gaussian()), ADD),
    "dp events composed": (
        "dp-event",
        text(
            dp_event(
                "ComposedDpEvent",
                events=[gaussian(), dp_event("SelfComposedDpEvent", event=gaussian(2.0), count=9)],
            )
        ),
        ZERO,
    ),
    "opacus state": ("opacus", text(STATE), ADD),
    "opacus state in a checkpoint": ("opacus", zipped(checkpoint()), ADD),
    "opacus state saved by itself": ("opacus", zipped(pickle.dumps(STATE, protocol=2)), ZERO),
    "opacus checkpoint of an old torch": (
        "opacus",
        pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
        + pickle.dumps(1001, protocol=2)
        + pickle.dumps({"little_endian": True, "sizes": 4}, protocol=2)
        + checkpoint(),
        ADD,
    ),
    "tf-privacy": ("tf-privacy", text(TF), ADD),
    "tf-privacy, shuffled": ("tf-privacy", text({**TF, "sampling": "shuffled"}), REPLACE),
    "jax-privacy": ("jax-privacy", text(JAX), ADD),
    "jax-privacy, cut": ("jax-privacy", text({**JAX, "truncated_batch_size": 300}), ADD),
    "jax-privacy, bands": ("jax-privacy", text({**JAX, "cycle_length": 4}), ZERO),
    "jax-privacy, bands of one multiplier said twice": (
        "jax-privacy",
        text({**JAX, "cycle_length": 4, "noise_multipliers": [[0, 1.5], [1000, 1.5]]}),
        ZERO,
    ),
    "jax-privacy, a schedule": (
        "jax-privacy",
        text({**JAX, "noise_multipliers": [[0, 1.5], [1000, 1.1]]}),
        ADD,
    ),
    "matrix, bands": ("matrix", text({**BANDS, "min_separation": 3}), ZERO),
    "matrix, sampled bands": ("matrix", text({**BANDS, "sampling_prob": 0.1}), ZERO),
    "matrix by rows": (
        "matrix",
        text({"matrix": [[1, 0], [1, 1]], "noise_multiplier": 2, "min_separation": 1}),
        REPLACE,
    ),
    "flower": ("flower", text(flower()), ADD),
    "flower without amplification": (
        "flower",
        text(flower(sampling_method="no-amplification", neighboring_relation="replace-one")),
        REPLACE,
    ),
    "diffprivlib": ("diffprivlib", text({"spent_budget": [[0.5, 0], [0.5, 0], [1, 0]]}), REPLACE),
}

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
BAD: dict[str, tuple[str, bytes, Adjacency]] = {
    "nothing": ("dp-event", b"", ADD),
    "no JSON": ("flower", b"\xff\xfe\x00", ADD),
    "JSON cut off": ("opacus", text(STATE)[:-7], ADD),
    "JSON nested without end": ("dp-event", DEEP, ADD),
    "a key twice": ("opacus", b'{"history": [[9.0, 0.01, 1]], "history": [[1.0, 0.01, 1]]}', ADD),
    "NaN": ("opacus", b'{"history": [[NaN, 0.01, 1000]]}', ADD),
    "infinity as a large number": ("opacus", b'{"history": [[1e999, 0.01, 1000]]}', ADD),
    "a number of 5000 digits": ("dp-event", text(gaussian())[:-5] + b"9" * 5000 + b"}", ADD),
    "a history of no steps": ("opacus", text({"history": [[1.0, 0.01, 0]]}), ADD),
    "a history without entries": ("opacus", text({"history": []}), ADD),
    "a history of 2.9 steps": ("opacus", text({"history": [[1.0, 0.01, 2.9]]}), ADD),
    "a history of 10^30 steps": ("opacus", text({"history": [[1.0, 0.01, 10**30]]}), ADD),
    "a rate above 1": ("opacus", text({"history": [[1.0, 1.5, 10]]}), ADD),
    "a history of texts": ("opacus", text({"history": ["abc"]}), ADD),
    "a relation that it does not speak of": ("opacus", text(STATE), REPLACE),
    "a zip cut off": ("opacus", zipped(checkpoint())[:-30], ADD),
    "a zip without a pickle": ("opacus", zipped(b"", "readme.txt"), ADD),
    "a zip of zeros, unpacked a billion": ("opacus", zipped(b"\0" * (1 << 24)), ADD),
    "a pickle cut off": ("opacus", zipped(checkpoint()[:-9]), ADD),
    "a checkpoint without a history": ("opacus", zipped(pickle.dumps({"a": 1, "b": 2})), ADD),
    "a pickle with a far memo": ("opacus", zipped(b"\x80\x02}r\xff\xff\xff\x7f."), ADD),
    "a pickle of the extension registry": ("opacus", zipped(b"\x80\x02\x82\x01."), ADD),
    "an executing pickle of protocol 0": ("opacus", b"cos\nsystem\n(S'true'\ntR.", ADD),
    "an event of another module": ("dp-event", text({**gaussian(), "module_name": "os"}), ADD),
    "an event of no class": ("dp-event", text({"class_name": "GaussianDpEvent"}), ADD),
    "an event with one field more": ("dp-event", text(gaussian(code="import os")), ADD),
    "events nested too deep": (
        "dp-event",
        b'{"module_name":"dp_accounting.dp_event","class_name":"SelfComposedDpEvent","count":1,'
        b'"event":' * 200 + text(gaussian()) + b"}" * 200,
        ADD,
    ),
    "a count of 10^19": (
        "dp-event",
        text(dp_event("SelfComposedDpEvent", event=gaussian(), count=10**19)),
        ADD,
    ),
    "an event without a rule": ("dp-event", text(dp_event("ZCDpEvent", rho=0.5)), ADD),
    "an epsilon with a delta": ("diffprivlib", text({"spent_budget": [[1.0, 1e-6]]}), REPLACE),
    "a spend of three numbers": ("diffprivlib", text({"spent_budget": [[1, 0, 0]]}), REPLACE),
    "spends of one record more": ("diffprivlib", text({"spent_budget": [[1.0, 0]]}), ADD),
    "spends of a null record": ("diffprivlib", text({"spent_budget": [[1.0, 0]]}), ZERO),
    "flower of another relation": ("flower", text(flower()), REPLACE),
    "flower of another version": ("flower", text({**flower(), "schema_version": 2}), ADD),
    "tf-privacy of no scheme": (
        "tf-privacy",
        text({key: value for key, value in TF.items() if key != "sampling"}),
        ADD,
    ),
    "tf-privacy of a negative noise": ("tf-privacy", text({**TF, "noise_multiplier": -1}), ADD),
    "tf-privacy of several records a user": (
        "tf-privacy",
        text({**TF, "max_examples_per_user": 8}),
        ADD,
    ),
    "jax-privacy with truncated batches": (
        "jax-privacy",
        text({**JAX, "truncated_batch_size": 300}),
        ZERO,
    ),
    "jax-privacy, bands of several multipliers": (
        "jax-privacy",
        text({**JAX, "cycle_length": 4, "noise_multipliers": [[0, 1.5], [1000, 1.1]]}),
        ZERO,
    ),
    "jax-privacy, bands under add/remove": ("jax-privacy", text({**JAX, "cycle_length": 4}), ADD),
    "a matrix of uneven rows": (
        "matrix",
        text({"matrix": [[1, 0], [1]], "noise_multiplier": 2, "min_separation": 1}),
        ZERO,
    ),
    "a matrix without a pattern": ("matrix", text({**BANDS}), ZERO),
    "a matrix of numbers too large for a double": (
        "matrix",
        text({"matrix": [[10**400]], "noise_multiplier": 2, "min_separation": 1}),
        ZERO,
    ),
}


def written(folder: Path, content: bytes) -> Path:
    path = folder / "theirs"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", GOOD)
def test_a_good_file_is_read_and_has_a_price(name: str, tmp_path: Path) -> None:
    kind, content, adjacency = GOOD[name]
    events = read(kind, written(tmp_path, content), adjacency=adjacency)
    found = guarantee(events, delta=1e-5, adjacency=adjacency)
    assert 0 < found.epsilon.upper_float < 1000
    assert found.assumptions


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_sentence_and_records_nothing(
    name: str, tmp_path: Path
) -> None:
    kind, content, adjacency = BAD[name]
    ledger = MemoryLedger()
    with pytest.raises(DpledgerError) as refused:
        import_into(ledger, kind, written(tmp_path, content), adjacency=adjacency)
    assert isinstance(refused.value, MalformedImport | Untranslatable | InvalidParameter)
    assert str(refused.value).startswith("theirs")
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)
    assert list(ledger.rows()) == []


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("packed", [True, False])
def test_a_pickle_that_executes_is_read_without_executing(
    protocol: int, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "executed"
    monkeypatch.setenv("DPLEDGER_TEST_TRACE", str(trace))
    content = hostile(protocol)
    file = written(tmp_path, zipped(content) if packed else content)
    events = read("opacus", file, adjacency=ADD)
    assert len(events) == 2
    assert not trace.exists()
    # the same bytes do execute where they are unpickled
    pickle.loads(content)
    assert trace.exists()


def test_every_kind_has_a_good_file_and_there_are_forty_files() -> None:
    assert {kind for kind, _, _ in GOOD.values()} == set(KINDS)
    assert len(GOOD) + len(BAD) + 8 >= 40


def test_the_ways_of_stating_one_training_agree() -> None:
    def epsilon(name: str) -> float:
        kind, content, adjacency = GOOD[name]
        events = read_bytes(kind, content, name, adjacency=adjacency)
        return guarantee(events, delta=1e-5).epsilon.upper_float

    assert epsilon("tf-privacy") == pytest.approx(2.38168, abs=1e-4)
    assert epsilon("tf-privacy") == epsilon("jax-privacy")
    states = [epsilon(name) for name in GOOD if name.startswith("opacus")]
    assert max(states) == min(states)


@pytest.mark.parametrize(("largest", "noise"), [(300, 0.55), (60_000, 0.55), (60_001, 1.1)])
def test_a_record_of_a_batch_that_may_be_cut_moves_twice_as_far(largest: int, noise: float) -> None:
    def epsilon(**said: Any) -> float:
        content = text({**JAX, "num_updates": 100, **said})
        events = read_bytes("jax-privacy", content, "run", adjacency=ADD)
        found = guarantee(events, delta=1e-5)
        assert any("clip" in each for each in found.assumptions)
        return found.epsilon.upper_float

    cut = epsilon(truncated_batch_size=largest)
    assert cut == pytest.approx(epsilon(noise_multipliers=noise), rel=1e-9)


@pytest.mark.parametrize("sampling", ["poisson", "shuffled", "none"])
@pytest.mark.parametrize("adjacency", [ADD, Adjacency.ZERO_OUT_ONE, REPLACE])
def test_imported_trainings_list_that_gradients_are_clipped(
    sampling: str, adjacency: Adjacency
) -> None:
    """Nobody here saw the gradients; once: not where a sample hides a replaced record."""
    content = text({**TF, "sampling": sampling})
    try:
        events = read_bytes("tf-privacy", content, "run", adjacency=adjacency)
    except MalformedImport:  # a scheme without a rule under this relation
        assert (sampling, adjacency) == ("shuffled", ADD)
        return
    assert any("clip" in each for each in guarantee(events, delta=1e-5).assumptions)


@pytest.mark.parametrize(("cycle", "said"), [(1, False), (4, True)])
def test_what_banded_noise_asks_of_its_strategy_is_named(cycle: int, said: bool) -> None:
    """With more bands than groups a record's noise is shared by two of its own steps."""
    events = read_bytes("jax-privacy", text({**JAX, "cycle_length": cycle}), "x", adjacency=ZERO)
    named = guarantee(events, delta=1e-5).assumptions
    assert any(f"at most {cycle} bands" in each for each in named) is said


def test_a_file_is_imported_once_and_within_the_budget(tmp_path: Path) -> None:
    file = written(tmp_path, text(STATE))
    ledger = MemoryLedger()
    run, events = import_into(ledger, "opacus", file, adjacency=ADD)
    assert run.events() == events
    with pytest.raises(InvalidParameter, match="imported once"):
        import_into(ledger, "opacus", file, adjacency=ADD)
    poor = MemoryLedger()
    poor.set_budget(Budget(ApproxDp(0.5, 1e-5), adjacency=ADD))
    with pytest.raises(BudgetExceeded):
        import_into(poor, "opacus", file, adjacency=ADD)
    assert poor.events() == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_record_moves_says_nothing_of_a_column(kind: str, tmp_path: Path) -> None:
    content = next(content for known, content, _ in GOOD.values() if known == kind)
    with pytest.raises(InvalidParameter, match="adjacency"):
        read(kind, written(tmp_path, content), adjacency=Adjacency.REPLACE_FEATURE_COLUMN)


def test_an_unknown_kind_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="opacus"):
        read("onnx", written(tmp_path, b"{}"), adjacency=ADD)


@pytest.mark.parametrize("way", ["duplicated", "remembered"])
@pytest.mark.parametrize("depth", [30, 60, 1000])
def test_a_key_of_tuples_of_tuples_is_refused_before_it_is_hashed(
    way: str, depth: int, tmp_path: Path
) -> None:
    """A few hundred bytes whose one key has 2^depth parts: hashing it would never end."""
    pair = {"duplicated": b"2\x86", "remembered": b"q\x00h\x00\x86"}[way]
    path = tmp_path / "bomb.pt"
    path.write_bytes(b"\x80\x02}K\x01\x85" + pair * depth + b"K\x01s.")
    with pytest.raises(MalformedImport, match="parts in all"):
        plain_data_of(path.read_bytes(), "bomb.pt")


def test_tuples_of_a_true_checkpoint_are_far_from_the_limit() -> None:
    shapes = {f"layer {k}": (64, (3, 3), tuple(range(8))) for k in range(10_000)}
    assert plain_data_of(pickle.dumps(shapes, protocol=2), "shapes")[0] == shapes


def test_what_lists_very_many_steps_is_bounded_by_divergences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty different spends of a budget took minutes."""
    file = tmp_path / "budget.json"
    file.write_bytes(text({"spent_budget": [[k / 9999, 0] for k in range(1, 31)]}))
    monkeypatch.setattr(imports, "UNITS_OF_WORK", 3_000)
    found = imports.import_outcome("diffprivlib", file, adjacency=REPLACE).data["guarantee"]
    # histograms are of a record more, and may cost twice the spend where one is replaced
    pure = sum(2 * k / 9999 for k in range(1, 31))
    # by zCDP alone, ρ = Σ ε²/2 (Bun, Steinke 2016, Propositions 1.3 and 1.4)
    rho = sum((2 * k / 9999) ** 2 for k in range(1, 31)) / 2
    assert "Rényi" in found["method"]
    assert found["epsilon"].upper_float <= min(pure, rho + 2 * (rho * log(1e5)) ** 0.5) * (1 + 1e-9)


def test_a_checkpoints_own_history_is_not_taken_for_the_accountants() -> None:
    """Losses and accuracies of three epochs, which could be noise, rates and steps."""
    own = {"history": [(2.3, 0.1, 1), (1.9, 0.3, 2)], "privacy_accountant_state_dict": STATE}
    for content in (text(own), zipped(pickle.dumps(own))):
        both = read_bytes("opacus", content, "both", adjacency=ADD)
        assert both == read_bytes("opacus", text(STATE), "both", adjacency=ADD)


def test_a_state_inside_another_document_is_found_and_no_other_history() -> None:
    """The history beside it, or one of something else, was priced as the accountant's."""
    own = {"history": [[2.0, 0.01, 1]], "privacy": {"privacy_accountant_state_dict": STATE}}
    found = read_bytes("opacus", text(own), "x", adjacency=ADD)
    assert found == read_bytes("opacus", text(STATE), "x", adjacency=ADD)
    losses = {"model": {}, "history": [[0.69, 0.5, 1], [0.51, 0.71, 2]]}
    with pytest.raises(MalformedImport, match="history of something else"):
        read_bytes("opacus", text(losses), "x", adjacency=ADD)


MATRIX = {"strategy": [1.0, 0.5], "iterations": 60, "noise_multiplier": 2.0, "sampling_prob": 0.1}


def test_zeros_behind_the_last_band_make_no_groups() -> None:
    """Of sixty bands, fifty-eight of them 0, a record was drawn once for thirty times."""
    plain = read_bytes("matrix", text(MATRIX), "x", adjacency=ZERO)
    padded = {**MATRIX, "strategy": [1.0, 0.5, *([0.0] * 58)]}
    assert read_bytes("matrix", text(padded), "x", adjacency=ZERO) == plain
    assert "2 groups in turn" in guarantee(plain, delta=1e-5).assumptions[0]


@pytest.mark.parametrize(
    "more",
    [
        {"min_separation": 1},
        {"max_participations": 60},
        {"strategy": None, "matrix": [[1.0, 0.0], [0.5, 1.0]], "sampling_prob": None},
    ],
)
def test_a_matrix_says_one_thing_of_its_steps(more: dict[str, Any]) -> None:
    document = {name: value for name, value in (MATRIX | more).items() if value is not None}
    with pytest.raises(MalformedImport, match="must state"):
        read_bytes("matrix", text(document), "x", adjacency=ZERO)


def test_a_checkpoint_of_two_accountants_is_refused() -> None:
    """A fine-tuned model's checkpoint that carries its first one's beside its own: which counts?"""
    own: dict[str, object] = {"privacy_accountant_state_dict": STATE}
    for nested in (own, [own], {"before": {"checkpoint": own}}):
        for content in (text(own | {"first": nested}), zipped(pickle.dumps(own | {"f": nested}))):
            with pytest.raises(MalformedImport, match="one accountant"):
                read_bytes("opacus", content, "both", adjacency=ADD)


def test_an_import_that_was_cut_off_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between opening its run and paying: the run was empty, and the file refused."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    (tmp_path / "state.json").write_bytes(text(STATE))
    with SqliteLedger(tmp_path / "a.ledger") as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(Run, "reserve", killed)
            with pytest.raises(KeyboardInterrupt):
                import_into(ledger, "opacus", tmp_path / "state.json", adjacency=ADD)
        assert not ledger.events()
        _, events = import_into(ledger, "opacus", tmp_path / "state.json", adjacency=ADD)
        assert ledger.events() == events
        with pytest.raises(InvalidParameter, match="imported once"):
            import_into(ledger, "opacus", tmp_path / "state.json", adjacency=ADD)
