"""A check in plain words, for somebody who has to decide and not to compute.

In comes a `MembershipCheck`; out go sentences in the order of reading: what is promised, what was
tried, how far it got, what it shows, and what it does not mean. Rates are of the models at hand;
only the bound on epsilon holds beyond them.
"""

from ...accounting.numbers.enclosure import shown_down, shown_in_full, shown_up
from ...accounting.numbers.notions import Gdp
from ..claim_tests import claim_grade
from .game import MembershipCheck, ScoreResult

_NOT_MEANT = (
    "An attack that fails proves nothing: another attack, another record or more models may do "
    "better. Whether the promise holds rests on its proof, not on what these attacks stayed below.",
    "Rates describe the models that were trained; only the lower bound on epsilon holds beyond "
    "them, with the stated confidence.",
)
"""What no check can say; the last lines of every verdict."""


def verdict(check: MembershipCheck) -> tuple[str, ...]:
    """Return one page: what is promised, what the best attack reached, and what it means.

    The order of the lines is that of the questions people ask; the last two say what no attack can
    show.

    Args:
        check: with one result for each score.
    """
    lines = [_promised(check), _trained(check)]
    reached = [_reached(check, place) for place in range(len(check.results[0].tpr_at_fpr))]
    lines += reached or [
        f"With {check.trials} models no false-positive rate that matters can be measured: "
        "train more."
    ]
    lines.append(_shown(check))
    ceiling = shown_up(check.ceiling, digits=3)
    lines.append(
        f"So few models could have shown an epsilon of {ceiling} at most."
        if check.ceiling <= check.claimed_epsilon
        else f"So many models could have shown an epsilon of up to {ceiling}."
    )
    if check.reach is not None:
        lines.append(_price(check, check.reach))
    lines.append(
        "NULL CONTROL FAILED: leakage was found between models that do not differ. This check "
        "proves nothing; repeat it with a new seed, and look for what tells the models' worlds "
        "apart besides the record."
        if check.null_control_failed
        else "Null control: between models that do not differ, no attack found anything."
    )
    return (*lines, *_NOT_MEANT)


def _shown(check: MembershipCheck) -> str:
    """Return what the best bound says of the promise.

    A broken promise is said first, then leakage below it, then nothing found; each with its
    confidence.
    """
    bounds = [(result.bound, result.name) for result in check.results if result.bound is not None]
    if not bounds:
        return "No bound stands: see the null control."
    best, name = max(bounds, key=lambda found: found[0].epsilon)
    epsilon = shown_down(best.epsilon, digits=3)
    if check.refutes_promise:
        result, test = next((r, t) for r in check.results for t in r.tests if t.refuted)
        shown = (
            f"{name} shows an epsilon of at least {epsilon} at delta {shown_in_full(check.delta)}"
        )
        if best.epsilon <= check.claimed_epsilon:
            shown = f"{result.name}, {test.name}: {test.detail}"
        return f"THE PROMISE IS BROKEN: {shown} (confidence {check.confidence:g})."
    if best.positive:
        return (
            f"Nothing here contradicts the promise. {name} shows an epsilon of at least "
            f"{epsilon}, of the {shown_up(check.claimed_epsilon, digits=3)} promised "
            f"(confidence {check.confidence:g})."
        )
    return "Nothing here contradicts the promise: no attack showed any leakage."


def _price(check: MembershipCheck, reach: float) -> str:
    """Return how much of what is promised the attacked pair costs where the noise is as stated."""
    words = f"The best attack there is on the last model reaches mu = {shown_up(reach, digits=4)}"
    if isinstance(check.promise, Gdp) and check.promise.mu_squared > 0:
        share = reach / float(check.promise.mu_squared) ** 0.5
        words += f", {share:.3g} of the promised one"
    return f"{words}, if the noise is as stated: less is the attack's fault, more is the run's."


def _promised(check: MembershipCheck) -> str:
    """Return the promise, as an epsilon rounded up, with its relation."""
    promise = check.promise
    words = (
        f"epsilon {shown_up(check.claimed_epsilon, digits=4)} at delta {shown_in_full(check.delta)}"
    )
    words += f", {claim_grade(promise)}"
    if isinstance(promise, Gdp):
        words = f"{shown_up(float(promise.mu_squared) ** 0.5, digits=4)}-GDP, that is {words}"
    return f"The promise to one record: {words}, under {check.adjacency}."


def _trained(check: MembershipCheck) -> str:
    """Return how many models were trained, and with what in the target's place."""
    return (
        f"The attack: {check.trials} models trained with {check.target} and {check.trials} with "
        f"{check.absent} were told apart by {len(check.results)} scores, learned on "
        f"{2 * check.shadows} others. It says nothing under another relation than "
        f"{check.adjacency}."
    )


def _reached(check: MembershipCheck, place: int) -> str:
    """Return the sentence for one false-positive rate, about the score that did best at it.

    Args:
        check: of all scores.
        place: which of the measured false-positive rates.
    """

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
