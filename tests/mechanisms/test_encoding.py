"""Events and their written form: frozen, equal by value, exact, canonical, and strict when read."""

import copy
import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    AdjacencyMismatch,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    MalformedEvent,
    Norm,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.encoding import (
    canonical_json,
    dyadic,
    event_from_json,
    event_to_json,
    from_dyadic,
    from_rational,
    mechanism_from_json,
    mechanism_to_json,
    rational,
    subject_hash,
)
from dpledger.mechanisms.events import adjacencies
from dpledger.mechanisms.sensitivity import added, clipped, mean_of_bounded, scaled

REPLACE, ZERO = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE
L2 = declared(Fraction(1, 3), "an example", adjacency=REPLACE)
L1 = declared(0.1, "an example", adjacency=REPLACE, norm=Norm.L1)
STEP = GaussianStep(L2, 0.75)
CONTEXT = Context(("a", "b"), 3, "primal", Audience.SERVER)

# Strategies --------------------------------------------------------------------------------------

magnitudes = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30) | st.just(Fraction(0))
noise = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
rate = st.floats(0.0, 1.0)
words = st.text(min_size=1, max_size=8)


@st.composite
def sensitivities(draw: st.DrawFn, norm: Norm, adjacency: Adjacency):
    if norm is Norm.L2 and draw(st.booleans()):
        mean = mean_of_bounded(draw(magnitudes), draw(st.integers(1, 10**6)), adjacency)
        return clipped(added(mean, scaled(mean, Fraction(1, 7))), draw(magnitudes))
    return draw(declarations(norm, adjacency))


@st.composite
def declarations(draw: st.DrawFn, norm: Norm, adjacency: Adjacency):
    reason = draw(words.filter(str.strip))
    return declared(draw(magnitudes), reason, adjacency=adjacency, norm=norm)


@st.composite
def steps(draw: st.DrawFn):
    adjacency = draw(st.sampled_from([REPLACE, ZERO, Adjacency.ADD_REMOVE_ONE]))
    if draw(st.booleans()):
        return GaussianStep(draw(sensitivities(Norm.L2, adjacency)), draw(noise))
    return LaplaceStep(draw(sensitivities(Norm.L1, adjacency)), draw(noise))


@st.composite
def mixtures(draw: st.DrawFn):
    pair = [draw(sensitivities(Norm.L2, ZERO)) for _ in range(2)]
    return GaussianMixtureStep(*pair, draw(rate), draw(noise))


@st.composite
def accumulated(draw: st.DrawFn):
    step = GaussianStep(draw(sensitivities(Norm.L2, ZERO)), draw(noise))
    return AccumulatedPoisson(step, draw(rate), draw(st.integers(1, 10**6)))


@st.composite
def batches(draw: st.DrawFn):
    records = draw(st.integers(1, 10**9))
    return SampledWithoutReplacement(draw(steps()), draw(st.integers(1, records)), records)


@st.composite
def draws(draw: st.DrawFn):
    step = GaussianStep(draw(sensitivities(Norm.L2, ZERO)), draw(noise))
    return SampledWithReplacement(step, draw(st.integers(1, 10**9)), draw(st.integers(1, 10**9)))


leaves = st.one_of(
    steps(),
    draws(),
    mixtures(),
    batches(),
    st.builds(DiscreteGaussianStep, declarations(Norm.L2, REPLACE), noise),
    st.builds(DiscreteLaplaceStep, sensitivities(Norm.L1, REPLACE), noise),
    st.builds(RandomisedResponse, st.just(0.0) | st.floats(2.0**-1000, 1), st.integers(2, 10**6)),
    st.builds(PoissonSampled, steps(), rate),
    accumulated(),
    st.builds(UnprotectedRelease, words.filter(str.strip)),
)
mechanisms = st.recursive(
    leaves,
    lambda child: (
        st.builds(Repeated, child, st.integers(1, 10**4))
        | st.dictionaries(
            words, st.lists(child, max_size=2).map(tuple), min_size=1, max_size=2
        ).map(lambda parts: Parties(tuple(parts.items())))
    ),
    max_leaves=3,
)
contexts = st.builds(
    Context,
    st.lists(words, max_size=3).map(tuple),
    st.integers(0, 10**9),
    words,
    st.sampled_from(Audience),
)
events = st.builds(Event, mechanisms, contexts)

# Round trips -------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(events)
def test_every_event_comes_back_from_its_bytes(event: Event) -> None:
    written = canonical_json(event_to_json(event))
    read = event_from_json(json.loads(written))
    assert read == event
    assert hash(read) == hash(event)
    assert canonical_json(event_to_json(read)) == written
    written.decode("ascii")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_binary64_is_written_exactly_and_in_one_way(value: float) -> None:
    text = dyadic(value)
    mantissa, exponent = map(int, text.split("p"))
    assert Fraction(mantissa) * Fraction(2) ** exponent == Fraction(value)
    assert mantissa % 2 == 1 or text == "0p0"
    assert from_dyadic(text) == value


@given(st.fractions())
def test_rationals_are_written_exactly_and_in_one_way(value: Fraction) -> None:
    assert from_rational(rational(value)) == value


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 2.0**-1022, 0.1]
)
def test_binary64_at_the_edges(value: float) -> None:
    assert from_dyadic(dyadic(value)) == value


BAD_DYADIC = [
    "2p0",
    "4p-1",
    "0p1",
    "-0p0",
    "1p1024",
    "1p-1075",
    "9007199254740993p0",
    "9999999999999999p9999",
    "1",
    "p0",
    "1p",
    "+1p0",
    "01p0",
    "1p00",
    " 1p0",
    "1p0\n",
    "1P0",
    "1.5p0",
    "nan",
    "inf",
    "١p0",
    "",
    1,
    1.0,
    None,
    True,
]


@pytest.mark.parametrize("text", BAD_DYADIC, ids=repr)
def test_other_spellings_of_a_binary64_are_refused(text: object) -> None:
    with pytest.raises(MalformedEvent, match="Expected"):
        from_dyadic(text)


BAD_RATIONAL = [
    "2/4",
    "1/1",
    "0/5",
    "-0",
    "1/0",
    "1/-2",
    "+1",
    "01",
    "1/02",
    "1.5",
    " 1",
    "1\n",
    "1e3",
    "nan",
    "",
    "/",
    "1/",
    "١",
    "9" * 4097,
    "1/" + "7" * 4097,
    1,
    0.5,
    None,
    True,
]


@pytest.mark.parametrize("text", BAD_RATIONAL, ids=lambda t: repr(t)[:20])
def test_other_spellings_of_a_rational_are_refused(text: object) -> None:
    with pytest.raises(MalformedEvent, match="Expected"):
        from_rational(text)


# Identity ----------------------------------------------------------------------------------------


def test_equal_mechanisms_coalesce_whatever_their_context_and_derivation() -> None:
    derived = GaussianStep(mean_of_bounded(1, 6, REPLACE), 0.75)
    assert {STEP, GaussianStep(L2, 0.75), derived} == {STEP}
    assert len({STEP, GaussianStep(L2, nextafter(0.75, 1)), LaplaceStep(L1, 0.75)}) == 3
    assert Event(STEP, CONTEXT) != Event(STEP, Context(("a", "b"), 4, "primal", Audience.SERVER))


@pytest.mark.parametrize("number", [1, 1.0, np.float64(1.0), Fraction(1)], ids=repr)
def test_equal_numbers_of_any_type_have_equal_bytes(number: Any) -> None:
    event = Event(GaussianStep(L2, number), CONTEXT)
    assert type(event.mechanism.noise_std) is float
    assert subject_hash([event]) == subject_hash([Event(GaussianStep(L2, 1.0), CONTEXT)])


def test_the_hash_depends_on_order_and_on_every_field() -> None:
    first, second = Event(STEP, CONTEXT), Event(GaussianStep(L2, 1.0), CONTEXT)
    assert subject_hash([first, second]) != subject_hash([second, first])
    contexts = (
        CONTEXT,
        Context(("b", "a"), 3, "primal", Audience.SERVER),
        Context(("a", "b"), 4, "primal", Audience.SERVER),
        Context(("a", "b"), 3, "dual", Audience.SERVER),
        Context(("a", "b"), 3, "primal", Audience.PUBLIC),
    )
    assert len({subject_hash([Event(STEP, c)]) for c in contexts}) == 5


def test_the_written_form_is_pinned() -> None:
    assert canonical_json(event_to_json(Event(STEP, CONTEXT))) == (
        b'{"audience":"server","mechanism":{"kind":"gaussian","noise_std":"3p-2","sensitivity":'
        b'{"adjacency":"replace-one","derivation":{"parameters":[["value","1/3"],["reason",'
        b'{"text":"an example"}]],"premises":[],"rule":"declared","squared":"1/9"},"norm":"l2",'
        b'"squared":"1/9"}},"parties":["a","b"],"release":"primal","round":3,"schema":1}'
    )


@pytest.mark.parametrize("frozen", [STEP, CONTEXT, Event(STEP, CONTEXT), L2, L2.derivation])
def test_nothing_is_changed_afterwards(frozen: Any) -> None:
    name = fields(frozen)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(frozen, name, None)
    assert copy.deepcopy(frozen) == frozen


# Constructors ------------------------------------------------------------------------------------

BAD_EVENTS: dict[str, Callable[[], object]] = {
    "noise negative": lambda: GaussianStep(L2, -1.0),
    "noise NaN": lambda: GaussianStep(L2, nan),
    "noise infinite": lambda: GaussianStep(L2, inf),
    "noise bool": lambda: GaussianStep(L2, True),
    "noise not a binary64": lambda: GaussianStep(L2, Fraction(1, 3)),
    "noise text": lambda: GaussianStep(L2, "1"),
    "Gaussian in l1": lambda: GaussianStep(L1, 1.0),
    "Laplace in l2": lambda: LaplaceStep(L2, 1.0),
    "Laplace scale": lambda: LaplaceStep(L1, -1.0),
    "discrete Gaussian in l1": lambda: DiscreteGaussianStep(L1, 1.0),
    "discrete Laplace in l2": lambda: DiscreteLaplaceStep(L2, 1.0),
    "truth above 1": lambda: RandomisedResponse(1.5),
    "truth NaN": lambda: RandomisedResponse(nan),
    "one category": lambda: RandomisedResponse(0.5, 1),
    "rate above 1": lambda: PoissonSampled(STEP, 1.0000001),
    "rate NaN": lambda: PoissonSampled(STEP, nan),
    "rate negative": lambda: GaussianMixtureStep(L2, L2, -0.1, 1.0),
    "Laplace accumulated": lambda: AccumulatedPoisson(LaplaceStep(L1, 1.0), 0.5, 2),
    "sampled unprotected": lambda: PoissonSampled(UnprotectedRelease("x"), 0.5),
    "sampled repetition": lambda: PoissonSampled(Repeated(STEP, 2), 0.5),
    "batch above records": lambda: SampledWithoutReplacement(STEP, 5, 4),
    "Laplace with replacement": lambda: SampledWithReplacement(LaplaceStep(L1, 1.0), 2, 4),
    "draws 0": lambda: SampledWithReplacement(STEP, 0, 4),
    "batch 0": lambda: SampledWithoutReplacement(STEP, 0, 4),
    "times 0": lambda: Repeated(STEP, 0),
    "times fractional": lambda: Repeated(STEP, 1.0),
    "no reason": lambda: UnprotectedRelease(" "),
    "no parties": lambda: Parties(()),
    "party twice": lambda: Parties((("a", (STEP,)), ("a", (STEP,)))),
    "round negative": lambda: Context(("a",), -1, "x", Audience.SERVER),
    "round bool": lambda: Context(("a",), True, "x", Audience.SERVER),
    "no release": lambda: Context(("a",), 1, "", Audience.SERVER),
}


@pytest.mark.parametrize("fault", BAD_EVENTS)
def test_an_impossible_event_is_refused(fault: str) -> None:
    with pytest.raises(InvalidParameter, match=" must "):
        BAD_EVENTS[fault]()


def test_the_parts_of_a_mixture_speak_of_one_relation() -> None:
    with pytest.raises(AdjacencyMismatch):
        GaussianMixtureStep(L2, declared(1, "x", adjacency=ZERO), 0.5, 1.0)


def test_adjacencies_are_found_at_any_depth() -> None:
    zero = GaussianStep(declared(1, "x", adjacency=ZERO), 1.0)
    nested = Parties(
        (
            ("a", (Repeated(PoissonSampled(zero, 0.5), 2), UnprotectedRelease("x"))),
            (
                "b",
                (
                    RandomisedResponse(0.7),
                    GaussianMixtureStep(zero.sensitivity, zero.sensitivity, 0.1, 1.0),
                ),
            ),
        )
    )
    assert list(adjacencies(nested)) == [ZERO, REPLACE, ZERO]


# Reading -----------------------------------------------------------------------------------------

Document = dict[str, Any]


def document() -> Document:
    return json.loads(canonical_json(event_to_json(Event(STEP, CONTEXT))))


def put(*path: Any, to: object) -> Callable[[Document], None]:
    def change(found: Any) -> None:
        for key in path[:-1]:
            found = found[key]
        found[path[-1]] = to

    return change


def drop(*path: str) -> Callable[[Document], None]:
    def change(found: Any) -> None:
        for key in path[:-1]:
            found = found[key]
        del found[path[-1]]

    return change


SENS = ("mechanism", "sensitivity")
TREE = (*SENS, "derivation")
MALFORMED: dict[str, Callable[[Document], None]] = {
    "unknown field": put("note", to=1),
    "unknown field of a mechanism": put("mechanism", "note", to=1),
    "unknown field of a sensitivity": put(*SENS, "note", to=1),
    "unknown field of a derivation": put(*TREE, "note", to=1),
    "missing field": drop("release"),
    "missing field of a mechanism": drop("mechanism", "noise_std"),
    "missing derivation": drop(*TREE),
    "future schema": put("schema", to=2),
    "schema true": put("schema", to=True),
    "schema 1.0": put("schema", to=1.0),
    "unknown kind": put("mechanism", "kind", to="gauss"),
    "kind in a list": put("mechanism", "kind", to=["gaussian"]),
    "mechanism null": put("mechanism", to=None),
    "mechanism list": put("mechanism", to=[]),
    "noise as number": put("mechanism", "noise_std", to=0.75),
    "noise NaN": put("mechanism", "noise_std", to=nan),
    "noise negative": put("mechanism", "noise_std", to="-3p-2"),
    "noise not in lowest terms": put("mechanism", "noise_std", to="6p-3"),
    "noise too large": put("mechanism", "noise_std", to="1p9999"),
    "noise with gigantic digits": put("mechanism", "noise_std", to="1" * 10**5 + "p0"),
    "square as number": put(*SENS, "squared", to=1),
    "square negative": put(*SENS, "squared", to="-1/9"),
    "square not in lowest terms": put(*SENS, "squared", to="2/18"),
    "square with gigantic digits": put(*SENS, "squared", to="1/" + "9" * 10**5),
    "square divided by zero": put(*SENS, "squared", to="1/0"),
    "square beyond doubles": put(*SENS, "squared", to=str(2**900)),
    "square unlike its derivation": put(*SENS, "squared", to="1/10"),
    "unknown norm": put(*SENS, "norm", to="l3"),
    "wrong norm": put(*SENS, "norm", to="l1"),
    "unknown adjacency": put(*SENS, "adjacency", to="replace"),
    "adjacency null": put(*SENS, "adjacency", to=None),
    "rule null": put(*TREE, "rule", to=None),
    "premises null": put(*TREE, "premises", to=None),
    "parameter of three": put(*TREE, "parameters", to=[["value", "1/3", "x"]]),
    "parameter as number": put(*TREE, "parameters", to=[["value", 1]]),
    "parameter as free text": put(*TREE, "parameters", to=[["value", {"text": 1}]]),
    "parties as text": put("parties", to="ab"),
    "party as number": put("parties", to=[1]),
    "round as text": put("round", to="3"),
    "round true": put("round", to=True),
    "round negative": put("round", to=-1),
    "release empty": put("release", to=""),
    "release null": put("release", to=None),
    "unknown audience": put("audience", to="everybody"),
    "audience list": put("audience", to=[]),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_document_is_refused(fault: str) -> None:
    found = document()
    event_from_json(found)
    MALFORMED[fault](found)
    with pytest.raises(MalformedEvent, match="Expected") as caught:
        event_from_json(found)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("found", [None, 1, "x", [], [[]], {}, nan], ids=repr)
def test_what_is_no_object_is_refused(found: object) -> None:
    for read in (event_from_json, mechanism_from_json):
        with pytest.raises(MalformedEvent):
            read(found)


def test_mixed_adjacencies_are_refused_when_read() -> None:
    mixture = mechanism_to_json(GaussianMixtureStep(L2, L2, 0.5, 1.0))
    mixture["sampled"]["adjacency"] = "zero-out-one"
    with pytest.raises(MalformedEvent, match="one adjacency"):
        mechanism_from_json(mixture)


def test_repetitions_of_repetitions_are_multiplied_out_also_when_read() -> None:
    found = mechanism_to_json(STEP)
    for times in (2, 3, 5):
        found = {"kind": "repeated", "event": found, "times": times}
    read_back = mechanism_from_json(found)
    assert read_back == Repeated(STEP, 30) == Repeated(Repeated(Repeated(STEP, 2), 3), 5)
    assert mechanism_to_json(read_back) == mechanism_to_json(Repeated(STEP, 30))


def test_nesting_is_capped_alike_when_written_and_when_read() -> None:
    deep = L2
    for _ in range(64):
        deep = scaled(deep, 1)
    mechanism = GaussianStep(deep, 1.0)
    assert mechanism_from_json(mechanism_to_json(mechanism)) == mechanism
    with pytest.raises(InvalidParameter, match="depth"):
        mechanism_to_json(GaussianStep(scaled(deep, 1), 1.0))
    found = mechanism_to_json(STEP)
    for _ in range(500):
        found = {"kind": "repeated", "event": found, "times": 1}
    with pytest.raises(MalformedEvent, match="deep"):
        mechanism_from_json(found)
