"""What is written for others says what is known and what the curator stated, and nothing else."""

import re
from dataclasses import replace
from datetime import date

import pytest

from dpledger.accounting import guarantee
from dpledger.accounting.numbers.grade import Grade
from dpledger.interop import Deployment, model_card_section, registry_entry
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    PoissonSampled,
    Repeated,
    UnprotectedRelease,
    declared,
)

yaml = pytest.importorskip("yaml")

STEP = GaussianStep(declared(1, "clipped", adjacency=Adjacency.ADD_REMOVE_ONE), 1.1)
CONTEXT = Context((), 1, "gradient", Audience.PUBLIC)
EVENTS = [Event(Repeated(PoissonSampled(STEP, 0.01), 500), CONTEXT)]
STATED = {
    "name": 'Next "word" model: 2026',
    "data_curators": ["A & B", "C: D"],
    "description": "Ünïcode, with: a colon\nand a line.",
    "intended_use": "suggestions",
    "data_product_type": "Machine learning model",
    "data_product_region": "no",
    "publication_date": date(2026, 1, 1),
    "model_name": "Central",
    "privacy_unit": "person",
}


def test_an_entry_is_yaml_with_the_registrys_fields_and_an_epsilon_rounded_up():
    found = guarantee(EVENTS, delta=1e-5)
    entry = yaml.safe_load(registry_entry(Deployment(**STATED), found, EVENTS))
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    assert (entry["status"], entry["tier"]) == ("Draft", 2)
    inside = entry["deployment"]
    for name in ("name", "data_curators", "description", "intended_use", "data_product_region"):
        assert inside["basic"][name] == STATED[name]
    assert inside["privacy_loss"]["privacy_parameters"]["epsilon"] == found.epsilon.upper_float
    assert inside["privacy_loss"]["privacy_parameters"]["delta"] == 1e-5
    assert inside["implementation"] == {"mechanisms": "GaussianStep on Poisson samples"}
    assert "unprotected_quantities" not in inside["dp_variant"]


def test_a_card_says_what_is_not_stated():
    card = model_card_section(Deployment(**STATED), guarantee(EVENTS, delta=1e-5), EVENTS)
    assert card.count("not stated") == 2
    assert "add-remove-one" in card
    assert "clipped" in card


def test_what_is_not_protected_has_no_entry_and_its_card_says_why():
    leak = [*EVENTS, Event(UnprotectedRelease("a raw mean"), CONTEXT)]
    found = guarantee(leak, delta=1e-5)
    with pytest.raises(InvalidParameter, match="finite"):
        registry_entry(Deployment(**STATED), found, leak)
    assert "none: a raw mean" in model_card_section(Deployment(**STATED), found, leak)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("data_product_type", "Model"),
        ("model_name", "central"),
        ("data_curators", "A"),
        ("name", " "),
    ],
)
def test_what_is_stated_is_checked(field, value):
    with pytest.raises(InvalidParameter, match=field):
        Deployment(**{**STATED, field: value})


def test_a_published_promise_holds_at_the_delta_beside_it() -> None:
    """They were rounded to the nearest of six digits: 0.291267 for at least 0.29126731."""
    step = GaussianStep(declared(1, "stated", adjacency=Adjacency.ADD_REMOVE_ONE), 20.0)
    events = [Event(step, CONTEXT)] * 3
    for delta in (1e-5, 1.0000004e-5):
        found = guarantee(events, delta=delta)
        card = model_card_section(Deployment(**STATED), found, events)
        (promised,) = re.findall(r"Promise \| \((\S+), (\S+)\)-differential", card)
        epsilon, at = map(float, promised)
        assert at == delta
        assert found.epsilon.upper_float <= epsilon < found.epsilon.upper_float * 1.00001


def test_a_unit_of_several_records_is_named():
    found = guarantee(EVENTS, delta=1e-5, group=3)
    entry = yaml.safe_load(registry_entry(Deployment(**STATED), found, EVENTS))
    text = "a unit of at most 3 records"
    assert text in str(entry["deployment"])
    assert text in model_card_section(Deployment(**STATED), found, EVENTS)


def test_an_estimate_promises_nothing():
    """A run without a plan, stopped when its owner liked what came out."""
    found = replace(guarantee(EVENTS, delta=1e-5), grade=Grade.ESTIMATE)
    card = model_card_section(Deployment(**STATED), found, EVENTS)
    assert "| Promise | none: an estimate of (" in card
    with pytest.raises(InvalidParameter, match="estimate"):
        registry_entry(Deployment(**STATED), found, EVENTS)
