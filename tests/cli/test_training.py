"""`dpledger epsilon` and `dpledger noise` as a user meets them."""

from pathlib import Path

import pytest
from tests.parameters import slow

from .conftest import Call

RUN = ["--records", "60000", "--batch", "256", "--epochs", "60", "--delta", "1e-5"]
STATED = ["--sampling", "poisson", "--adjacency", "add-remove-one"]


def test_the_commonest_question_is_one_command(call: Call) -> None:
    answer = call("epsilon", "--noise-multiplier", "1.1", *RUN, *STATED, "--json")
    assert answer.status == 0
    assert answer.data["steps"] == 14063
    found = answer.data["guarantee"]
    assert found["grade"] == "proved"
    assert found["epsilon"]["lower"] == pytest.approx(2.38169, rel=1e-6)
    assert 2.38169 < found["epsilon"]["upper"] < 2.38169 * 1.001


def test_the_best_of_several_runs_is_enclosed_and_has_no_certificate(
    call: Call, tmp_path: Path
) -> None:
    best = call("epsilon", "--noise-multiplier", 1, *RUN, *STATED, "--best-of", 20, "--json")
    plain = call("epsilon", "--noise-multiplier", 1, *RUN, *STATED, "--json")
    assert (best.data["guarantee"]["grade"], plain.data["guarantee"]["grade"]) == (
        "enclosed",
        "proved",
    )
    assert best.data["guarantee"]["epsilon"]["upper"] > plain.data["guarantee"]["epsilon"]["upper"]
    refused = call(
        *("epsilon", "--noise-multiplier", 1, *RUN, *STATED, "--best-of", 20),
        *("--certificate", tmp_path / "no.json"),
    )
    assert refused.status == 2
    assert "--best-of" in refused.err
    words = ("--noise-multiplier", 1, *RUN, *STATED, "--best-of", 20, "--points", 2, "--json")
    curve = call("curve", *words).data
    assert curve["promised"]["epsilon"] == best.data["guarantee"]["epsilon"]
    assert curve["grade"] == "enclosed"
    assert "in [1, inf)" in call("noise", "--epsilon", 2, *RUN, *STATED, "--best-of", 0.5).err


def test_noise_answers_what_epsilon_asks(call: Call) -> None:
    noise = call("noise", "--epsilon", "2", *RUN, *STATED, "--json")
    multiplier = noise.data["noise_multiplier"]
    back = call("epsilon", "--noise-multiplier", repr(multiplier), *RUN, *STATED, "--json")
    assert back.data["guarantee"]["epsilon"] == noise.data["guarantee"]["epsilon"]
    assert back.data["guarantee"]["epsilon"]["upper"] <= 2.0


@pytest.mark.parametrize("missing", [[], *slow(STATED[:2], STATED[2:])])
def test_what_is_not_stated_is_asked_for(call: Call, missing: list[str]) -> None:
    answer = call("epsilon", "--noise-multiplier", "1.1", *RUN, *missing)
    assert answer.status == 2
    assert "must be stated; epsilon by reading" in answer.err
    assert "poisson under add-remove-one: 2.38169" in answer.err
    if not missing:
        assert answer.err.count(" under ") == 10


def test_a_certificate_of_the_answer_verifies(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    asked = ["--sampling", "none", "--adjacency", "replace-one", "--steps", "9", "--delta", "1e-6"]
    answer = call("epsilon", "--noise-multiplier", "9", *asked, "--certificate", path, "--json")
    assert answer.status == 0
    assert call("verify", path).status == 0


def test_a_promise_to_nobody_carries_a_warning(call: Call) -> None:
    asked = ["--sampling", "none", "--adjacency", "replace-one", "--steps", "9", "--delta", "0.1"]
    answer = call("epsilon", "--noise-multiplier", "0.1", "--records", "100", *asked, "--json")
    assert len(answer.data["warnings"]) == 3
