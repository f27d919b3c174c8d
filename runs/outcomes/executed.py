"""An executed run as an outcome: its guarantee, its models, its cross-checks and its attack.

What comes in is a `RunResult`; what goes out is printed by `dpledger run` and `dpledger demo`.

Whatever is wrong makes a finding, and the command exits with 1: a release without protection, a run
that left its plan, another library that disagrees, an attack above the promise.
"""

from __future__ import annotations

from ...accounting.numbers.enclosure import shown_up
from ...audits.outcome import Outcome, TextColumns, guarantee_data, shown
from ...audits.outcomes.attacks import attack_outcome
from ..results import RunResult
from ..sections import repeatable_noise


def run_outcome(result: RunResult) -> Outcome:
    """Return what a run says; a finding if anything is wrong with it (`RunResult.is_finding`).

    Args:
        result: of the run; its attack's rows and tables are those of `attack_outcome`, without
            notes.
    """
    found, agrees = result.guarantee, result.crosschecks_agree
    attack = result.attack
    attacked = None if attack is None else attack_outcome(attack.pair, attack.result)
    delta = shown_up(float(found.delta))
    models = [(m.name, f"{m.training.accuracy.share:.2%}", m.guarantee) for m in result.models]
    return Outcome(
        title=result.title,
        data={
            "run": result.name,
            "folder": str(result.folder),
            "guarantee": guarantee_data(found),
            "noise_multiplier": result.plan.noise_multiplier,
            "plan_equals_run": result.kept_to_plan,
            "ledger_head": result.ledger_head,
            "models": [
                {
                    "model": model.name,
                    "guarantee": model.guarantee,
                    "right": model.training.accuracy.right,
                    "records": model.training.accuracy.total,
                    "accuracy": model.training.accuracy.share,
                }
                for model in result.models
            ],
            "crosschecks_agree": agrees,
            "attack": None if attacked is None else attacked.data,
        },
        rows=(
            ("epsilon", f"{shown(found.epsilon)} at delta {delta}, {found.graded}"),
            ("noise", repeatable_noise(found.assumptions)),
            ("promised to", f"each {result.unit}"),
            ("plan = run", "yes" if result.kept_to_plan else "NO"),
            ("cross-check", "skipped" if agrees is None else "agrees" if agrees else "DISAGREES"),
            *(() if attacked is None else (r for r in attacked.rows if r[0] != "note")),
            ("files", f"{result.folder}/report.html, .md, .json; certificate, ledger, model"),
        ),
        tables=(
            TextColumns(("model", "accuracy", "privacy"), models),
            *(() if attacked is None else attacked.tables),
        ),
        finding=result.is_finding,
    )
