"""A guarantee for others: an entry of OpenDP's deployments registry, a model card's section.

The registry's entries are YAML (github.com/opendp/deployments-registry-data, its schema of July
2026). What nobody but the curator knows is asked for and never invented: it stands in
`Deployment`, and a field that is not stated is left out.

In come a `Deployment`, a `Guarantee` and its events; out goes text. Epsilon is the upper end of
its enclosure in both documents.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from math import isfinite

from ..accounting.guarantees import Guarantee
from ..accounting.numbers.enclosure import shown_in_full, shown_up
from ..accounting.numbers.grade import Grade
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.events import (
    AccumulatedPoisson,
    Event,
    Mechanism,
    Parties,
    PoissonSampled,
    Repeated,
    SampledWithReplacement,
)
from ..mechanisms.events import SampledWithoutReplacement as FixedBatch
from ..mechanisms.sensitivity import float_up

PRODUCTS = (
    *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data"),
    *("Interactive API", "SQL queries"),
)
"""The kinds of data product that the registry's schema lists."""
MODELS = ("Local", "Central", "Shuffle", "Federated")
"""Who is trusted with raw data: nobody (local), a curator (central), a shuffler, or each party."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What the curator of a data product says of it.

    Args:
        name: of the data product.
        data_curators: who publishes it.
        description, intended_use: in a sentence.
        data_product_type: one of `PRODUCTS`.
        data_product_region: where the data are from, or whose law applies.
        publication_date: the first, if there are several.
        model_name: one of `MODELS`.
        privacy_unit: whose data change between neighbours, such as "person".
        unprotected_quantities: what is published without protection.
        preprocessing: before protection, tuning included, and whether it was accounted for.
    """

    name: str
    data_curators: Sequence[str]
    description: str
    intended_use: str
    data_product_type: str
    data_product_region: str
    publication_date: date
    model_name: str
    privacy_unit: str
    unprotected_quantities: str = ""
    preprocessing: str = ""

    def __post_init__(self) -> None:
        for name, allowed in (("data_product_type", PRODUCTS), ("model_name", MODELS)):
            if getattr(self, name) not in allowed:
                raise InvalidParameter(name, getattr(self, name), f"one of {', '.join(allowed)}")
        if not self.data_curators or isinstance(self.data_curators, str):
            raise InvalidParameter("data_curators", self.data_curators, "a list of names")
        for field in fields(self):
            value = getattr(self, field.name)
            required = field.name not in ("unprotected_quantities", "preprocessing")
            if required and isinstance(value, str) and not value.strip():
                raise InvalidParameter(field.name, value, "stated")


def registry_entry(said: Deployment, found: Guarantee, events: Sequence[Event]) -> str:
    """Return the YAML of a registry's entry, a draft of tier 2, for the curator to complete.

    Args:
        said: by the curator.
        found: the guarantee of `events`, whose epsilon is rounded up.
        events: what was released.

    Raises `InvalidParameter` for a guarantee that is infinite, where nothing was protected, and for
    an estimate, which promises nothing.
    """
    epsilon = found.epsilon.upper_float
    if not isfinite(epsilon):
        raise InvalidParameter("epsilon", epsilon, "finite: an entry is of what is protected")
    if found.grade is Grade.ESTIMATE:
        raise InvalidParameter("grade", found.grade.value, "proved, enclosed or fast: a promise")
    relation = "none" if found.adjacency is None else found.adjacency.value
    entry: Mapping[str, object] = {
        "url_slug": "-".join(said.name.lower().split()),
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": said.name,
                "data_curators": list(said.data_curators),
                "description": said.description,
                "intended_use": said.intended_use,
                "data_product_type": said.data_product_type,
                "data_product_region": said.data_product_region,
                "publication_date": said.publication_date.isoformat(),
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if found.delta else "Pure DP",
                "unprotected_quantities": said.unprotected_quantities,
            },
            "privacy_loss": {
                "privacy_unit": said.privacy_unit,
                "privacy_unit_details": f"Neighbouring data sets: {relation}{_several(found)}.",
                "privacy_parameters": {"epsilon": epsilon, "delta": float_up(found.delta)},
            },
            "deployment_model": {"model_name": said.model_name},
            "accounting": {"composition": f"{found.method} ({found.graded})"},
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": said.preprocessing,
                "mechanisms": ", ".join(_mechanisms(events)),
            },
        },
    }
    return "\n".join(_yaml(entry)) + "\n"


def _several(found: Guarantee) -> str:
    """Return of how many records a unit is at most, where it is of several."""
    return f", of a unit of at most {found.group} records" if found.group > 1 else ""


def model_card_section(said: Deployment, found: Guarantee, events: Sequence[Event]) -> str:
    """Return a Markdown section on privacy for a model's card; arguments as `registry_entry`.

    A guarantee that is infinite is not refused here, as in an entry: the section says that there
    is no promise, and why.
    """
    relation = "none" if found.adjacency is None else found.adjacency.value
    epsilon = found.epsilon.upper_float
    rows = [
        (
            "Promise",
            f"({shown_up(epsilon, digits=6)}, {shown_in_full(found.delta)})-differential privacy",
        ),
        ("Unit", f"{said.privacy_unit}; neighbouring data sets: {relation}{_several(found)}"),
        ("Mechanisms", ", ".join(_mechanisms(events))),
        ("Accounting", f"{found.method} ({found.graded})"),
        ("Assumed", "; ".join(found.assumptions) or "nothing declared"),
        ("Not protected", said.unprotected_quantities or "not stated"),
        ("Preprocessing and tuning", said.preprocessing or "not stated"),
    ]
    if found.grade is Grade.ESTIMATE:
        rows[0] = ("Promise", f"none: an estimate of {rows[0][1]}")
    if found.unprotected or not isfinite(epsilon):
        rows[0] = ("Promise", f"none: {'; '.join(found.unprotected) or 'epsilon is infinite'}")
    lines = ["## Privacy", "", "| | |", "|---|---|"]
    flat = ((name, " ".join(text.replace("|", "/").split())) for name, text in rows)
    lines += [f"| {name} | {text} |" for name, text in flat]
    return "\n".join(lines) + "\n"


def _mechanisms(events: Sequence[Event]) -> dict[str, None]:
    """Return the names of all mechanisms of events, each once, in order of first use."""
    return dict.fromkeys(name for event in events for name in _names(event.mechanism))


def _names(mechanism: Mechanism) -> Iterator[str]:
    """Yield the class names inside a mechanism, with the sampling that they run on."""
    match mechanism:
        case Repeated():
            yield from _names(mechanism.event)
        case PoissonSampled():
            yield from (f"{name} on Poisson samples" for name in _names(mechanism.event))
        case AccumulatedPoisson():
            names = _names(mechanism.event)
            yield from (f"{name} on sums of Poisson samples" for name in names)
        case FixedBatch():
            yield from (f"{name} on fixed batches" for name in _names(mechanism.event))
        case SampledWithReplacement():
            names = _names(mechanism.event)
            yield from (f"{name} on batches drawn with replacement" for name in names)
        case Parties():
            for _, parts in mechanism.parts:
                for part in parts:
                    yield from _names(part)
        case _:
            yield type(mechanism).__name__


def _yaml(value: Mapping[str, object], indent: str = "") -> Iterator[str]:
    """Yield the lines of nested mappings; scalars and lists as JSON, which YAML 1.2 contains.

    Args:
        value: mappings, texts, numbers, and lists of texts; what is empty is left out.
        indent: of the lines.
    """
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            lines = list(_yaml(inner, indent + "  "))
            yield from ([f"{indent}{key}:", *lines] if lines else [])
        elif inner != "":
            text = json.dumps(inner, ensure_ascii=False)
            if isinstance(inner, float) and "." not in text:
                text = text.replace("e", ".0e")  # to YAML 1.1 a number without a point is a text
            yield f"{indent}{key}: {text}"
