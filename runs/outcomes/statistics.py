"""Released statistics as outcomes: the numbers, how far noise may have moved them, their price.

Intervals are of the noise alone, and say so; an epsilon is printed as the upper end of its
enclosure, with its grade beside it and what it takes for granted below.
"""

from __future__ import annotations

from ...accounting.numbers.enclosure import shown_in_full
from ...audits.outcome import Outcome, Row, TextColumns, grade_rows, guarantee_data, shown
from ..pipeline import Plan
from ..sections import repeatable_noise
from ..statistics import Released, StatisticsFile, StatisticsResult


def statistics_plan_outcome(name: str, asked: StatisticsFile, plan: Plan) -> Outcome:
    """Return what statistics will cost; no record is read.

    Args:
        name: of the file.
        asked: what it asks.
        plan: its plan.
    """
    labels = [(each.label, f"{each.weight:g}") for each in asked.statistics]
    return Outcome(
        title=f"Plan of {name}",
        data={
            "noise_multiplier": plan.noise_multiplier,
            "events": len(plan.events),
            "guarantee": guarantee_data(plan.guarantee),
            "statistics": [label for label, _ in labels],
        },
        rows=_promise_rows(plan, asked.privacy.unit_text),
        tables=(TextColumns(("statistic", "weight"), labels),),
    )


def statistics_outcome(result: StatisticsResult) -> Outcome:
    """Return the released numbers and what they cost together.

    Args:
        result: the numbers as released, which are public now.
    """
    rows = [
        (each.statistic.label, cell, f"{value:.6g}", _within(each))
        for each in result.statistics
        for cell, value in zip(each.cells or ("",) * len(each.values), each.values, strict=True)
    ]
    return Outcome(
        title=f"Statistics: {len(result.statistics)} released",
        data={
            "folder": str(result.folder),
            "guarantee": guarantee_data(result.plan.guarantee),
            "unit": result.unit,
            "statistics": [
                {
                    "statistic": each.statistic.label,
                    "values": list(each.values),
                    "cells": list(each.cells),
                    "within_95_percent": each.within,
                }
                for each in result.statistics
            ],
        },
        rows=(
            *_promise_rows(result.plan, result.unit),
            ("files", f"{result.folder}/statistics.json; certificate, ledger"),
        ),
        tables=(TextColumns(("statistic", "cell", "value", "95 % of the noise"), rows),),
    )


def _within(found: Released) -> str:
    """Return how far noise moved a number, in 95 of 100 releases."""
    return "depends on the records" if found.within is None else f"± {found.within:.4g}"


def _promise_rows(plan: Plan, unit: str) -> tuple[Row, ...]:
    """Return what all statistics together promise, and to whom."""
    found = plan.guarantee
    relation = "none" if found.adjacency is None else found.adjacency.value
    promised = (
        f"{shown(found.epsilon)} at delta {shown_in_full(found.delta)} per {unit}, {relation}"
    )
    return (
        ("epsilon", promised),
        ("noise", repeatable_noise(found.assumptions)),
        *grade_rows(found),
        *(("assumption", text) for text in found.assumptions),
    )
