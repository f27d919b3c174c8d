"""Laws of the headline: its one sentence is true, and it never sounds better than the record."""

from math import exp

import mpmath
import numpy as np
import pytest
from msgspec import structs

from dpledger.accounting.numbers.grade import Grade
from dpledger.audits.report import Skipped, to_html, to_markdown
from dpledger.audits.report.headline import Tone, headline
from dpledger.audits.report.record import Interval
from dpledger.mechanisms import Adjacency


def drawn_by(report, source):
    return structs.replace(report, sampling=structs.replace(report.sampling, noise_source=source))


@pytest.fixture
def report(report):
    """A report of a release: its noise cannot be drawn again."""
    return drawn_by(report, "exact-system-entropy, not repeatable")


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("exact-philox, a recorded seed", "experiment: repeatable noise"),
        ("a simulation: numpy-philox, a recorded seed", "simulation"),
    ],
)
def test_nothing_is_green_of_a_run_whose_noise_others_may_know(report, source, word):
    assert "Noise" not in tones(report)
    assert Tone.GOOD in tones(report).values()
    first = headline(drawn_by(report, source)).verdicts[0]
    assert (first.label, first.tone) == ("Noise", Tone.BAD)
    assert first.text.startswith(word)
    assert Tone.GOOD not in tones(drawn_by(report, source)).values()
    assert headline(report).tone is Tone.GOOD
    assert headline(drawn_by(report, source)).tone is Tone.NEUTRAL
    assert 'class="headline good"' in to_html(report)
    assert 'class="headline neutral"' in to_html(drawn_by(report, source))
    assert word in to_html(drawn_by(report, source))
    assert word in to_markdown(drawn_by(report, source))


def test_a_bound_for_several_parties_names_what_it_assumes(report):
    (row, *_) = report.privacy.by_party
    for rows, assumed in (
        ((), False),
        ((structs.replace(row, count=1),), False),
        ((structs.replace(row, count=2),), True),
        ((structs.replace(row, count=1),) * 2, True),
    ):
        assert ("Assumed" in tones(with_privacy(report, by_party=rows))) == assumed
    assert "stands under two names" in to_html(with_privacy(report, by_party=(row, row)))


def with_privacy(report, **changes):
    return structs.replace(report, privacy=structs.replace(report.privacy, **changes))


def tones(report):
    return {verdict.label: verdict.tone for verdict in headline(report).verdicts}


def said_rate(report):
    return float(headline(report).meaning.split("at most ")[1].split(" %")[0]) / 100


@pytest.mark.parametrize(
    ("epsilon", "delta", "records", "weak"),
    [
        (1.0, 1e-5, 99_999, 0),
        (1.0, 1e-5, 100_000, 1),
        (1.0, 0.1, None, 0),
        (10.0, 1e-5, 120, 0),
        (1000.0, 1e-5, 120, 1),
        (1000.0, 0.1, 2000, 2),
    ],
)
def test_no_promise_that_protects_nobody_is_green(report, epsilon, delta, records, weak):
    promise = structs.replace(report.promise, records=records)
    made = structs.replace(
        with_privacy(report, epsilon=Interval(lower=0.0, upper=epsilon), delta=delta),
        promise=promise,
        access=structs.replace(report.access, unprotected=(), not_covered=()),
    )
    found = [v for v in headline(made).verdicts if v.label == "Promise"]
    assert len(found) == weak
    assert (Tone.GOOD in tones(made).values()) == (weak == 0)
    assert (headline(made).tone is Tone.BAD) == (weak > 0)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 40.0, 5000.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
def test_the_sentence_is_the_best_guess_that_epsilon_and_delta_allow(report, epsilon, delta):
    bound = Interval(lower=0.0, upper=epsilon)
    rate = said_rate(with_privacy(report, epsilon=bound, delta=delta, mu=None))
    # all error rates that (epsilon, delta) allows, on a fine grid
    false = np.linspace(0, 1, 200_001)
    odds = exp(min(epsilon, 700))
    missed = np.maximum(0, np.maximum(1 - delta - odds * false, (1 - delta - false) / odds))
    best = 1 - ((false + missed) / 2).min()
    assert best <= rate + 1e-12
    assert rate <= best + 0.0011


@pytest.mark.parametrize("mu", [0.001, 0.268, 1.0, 3.0, 20.0])
def test_mu_makes_the_sentence_sharper(report, mu):
    rate = said_rate(
        with_privacy(report, mu=mu, epsilon=Interval(lower=0.0, upper=900.0), delta=0.0)
    )
    best = mpmath.ncdf(mpmath.mpf(mu) / 2)
    assert best <= rate
    assert rate <= best + 0.0011


def test_the_bound_is_rounded_up(report):
    other = with_privacy(report, epsilon=Interval(lower=1.0, upper=1.00000001))
    assert headline(other).bound == "ε ≤ 1.0001"


@pytest.mark.parametrize("adjacency", [*Adjacency, None])
def test_every_relation_has_its_question(report, adjacency):
    other = structs.replace(report, promise=structs.replace(report.promise, adjacency=adjacency))
    assert "right at most" in headline(other).meaning


def test_infinite_epsilon_promises_nothing(report):
    other = with_privacy(report, epsilon=Interval(lower="infinity", upper="infinity"), mu=None)
    found = headline(other)
    assert found.tone is Tone.BAD
    assert found.bound == "ε = ∞"
    assert "no promise" in found.meaning
    assert tones(other)["Bound"] is Tone.BAD
    for text in (to_html(other), to_markdown(other)):
        assert "ε ≤" not in text.split("Promise")[0]


def test_an_estimate_is_no_guarantee(report):
    found = headline(with_privacy(report, grade=Grade.ESTIMATE))
    assert found.tone is Tone.BAD
    assert found.bound.startswith("ε ≈")
    assert found.meaning.startswith("An estimate, no guarantee")


def test_unprotected_messages_are_bad_and_uncovered_ones_are_not_hidden(report):
    assert tones(report)["Data accesses"] is Tone.BAD
    access = structs.replace(report.access, unprotected=())
    assert tones(structs.replace(report, access=access))["Data accesses"] is Tone.NEUTRAL
    access = structs.replace(access, not_covered=())
    assert tones(structs.replace(report, access=access))["Data accesses"] is Tone.GOOD


def audited(report, **changes):
    return structs.replace(report, audit=structs.replace(report.audit, **changes))


def bounded(report, epsilon):
    bounds = tuple(structs.replace(b, epsilon=epsilon, applies=True) for b in report.audit.bounds)
    return audited(report, bounds=bounds)


def test_an_attack_is_told_by_what_it_shows(report):
    claimed = report.audit.claimed_epsilon
    assert tones(bounded(report, 0.0))["Attack"] is Tone.NEUTRAL
    assert tones(bounded(report, claimed / 2))["Attack"] is Tone.GOOD
    assert tones(bounded(report, claimed * 2))["Attack"] is Tone.NEUTRAL
    assert tones(audited(report, contradicts_promise=True))["Attack"] is Tone.BAD
    assert tones(structs.replace(report, audit=Skipped(reason="no")))["Attack"] is Tone.NEUTRAL


def test_a_bound_that_does_not_apply_is_not_told(report):
    bounds = tuple(structs.replace(b, epsilon=99.0, applies=False) for b in report.audit.bounds)
    texts = [verdict.text for verdict in headline(audited(report, bounds=bounds)).verdicts]
    assert not any("99" in text for text in texts)


def test_a_loud_null_control_and_a_disagreement_are_bad(report):
    null = structs.replace(report.audit.null_control, silent=False)
    assert tones(audited(report, null_control=null))["Null control"] is Tone.BAD
    checks = structs.replace(report.accounting.crosschecks, agree=False)
    accounting = structs.replace(report.accounting, crosschecks=checks)
    assert tones(structs.replace(report, accounting=accounting))["Cross-check"] is Tone.BAD
