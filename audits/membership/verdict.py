"""A check in plain words, for somebody who has to decide and not to compute."""

from ...accounting.enclosure import shown_down, shown_up
from ...accounting.notions import Gdp
from .game import Check, ScoreResult

__all__ = ["verdict"]

_NOT_MEANT = (
    "An attack that fails proves nothing: another attack, another record or more models may do "
    "better. The promise holds because it is proved, not because these attacks stayed below it.",
    "Rates describe the models that were trained; only the lower bound on epsilon holds beyond "
    "them, with the stated confidence.",
)


def verdict(check: Check) -> tuple[str, ...]:
    """Return one page: what is promised, what the best attack reached, and what it means."""
    lines = [_promised(check), _trained(check)]
    reached = [_reached(check, place) for place in range(len(check.results[0].tpr_at_fpr))]
    lines += reached or [
        f"With {check.trials} models no false-positive rate that matters can be measured: "
        "train more."
    ]
    best = max(check.results, key=lambda result: result.bound.epsilon)
    if check.refutes_promise:
        lines.append(
            f"THE PROMISE IS BROKEN: {best.name} shows an epsilon of at least "
            f"{shown_down(best.bound.epsilon, digits=3)} at delta {check.delta:g} "
            f"(confidence {check.confidence:g})."
        )
    elif best.bound.positive:
        lines.append(
            f"Nothing here contradicts the promise. {best.name} shows an epsilon of at least "
            f"{shown_down(best.bound.epsilon, digits=3)}, of the "
            f"{shown_up(check.claimed_epsilon, digits=3)} promised "
            f"(confidence {check.confidence:g})."
        )
    else:
        lines.append("Nothing here contradicts the promise: no attack showed any leakage.")
    ceiling = shown_up(check.ceiling, digits=3)
    lines.append(
        f"So few models could have shown an epsilon of {ceiling} at most."
        if check.ceiling <= check.claimed_epsilon
        else f"So many models could have shown an epsilon of up to {ceiling}."
    )
    lines.append(
        "NULL CONTROL FAILED: leakage was found between models that do not differ. Distrust this "
        "check and repeat it with a new seed."
        if check.null_control_failed
        else "Null control: between models that do not differ, no attack found anything."
    )
    return (*lines, *_NOT_MEANT)


def _promised(check: Check) -> str:
    promise = check.promise
    words = f"epsilon {shown_up(check.claimed_epsilon, digits=4)} at delta {check.delta:g}"
    if isinstance(promise, Gdp):
        words = f"{float(promise.mu_squared) ** 0.5:.4g}-GDP, that is {words}"
    return f"The promise: {words}."


def _trained(check: Check) -> str:
    return (
        f"The attack: {check.trials} models trained with {check.target} and {check.trials} without "
        f"it were told apart by {len(check.results)} scores, learned on {2 * check.shadows} others."
    )


def _reached(check: Check, place: int) -> str:
    """Return the sentence for one false-positive rate, about the score that did best at it."""

    def tpr(result: ScoreResult) -> float:
        return result.tpr_at_fpr[place].tpr

    best = max(check.results, key=tpr)
    point = best.tpr_at_fpr[place]
    margin = max(point.tpr - point.lower, point.upper - point.tpr)
    return (
        f"At a false-positive rate of {point.fpr:g} the bound says an attacker has a true-positive "
        f"rate of at most {shown_up(point.claimed, digits=3)}; the best attack reached "
        f"{point.tpr:.3g} ± {margin:.1g} ({best.name})."
    )
