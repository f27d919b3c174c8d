"""The policy of verdicts: what other checks may make of a finding, for libraries and commands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .claim import ClaimVerdict, Finding


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at besides the promise; `passed` is None where it could not be."""

    name: str
    text: str
    passed: bool | None = None


def final_verdict(
    finding: Finding,
    checks: Sequence[Check] = (),
    *,
    fixed_in_advance: bool = True,
    accounted_tuning: bool = True,
) -> Finding:
    """Return the finding as everything that was looked at leaves it; nothing gets better.

    `holds` can be lost; what was not implied fails where a check shows it.

    Args:
        finding: about the events, or the releases as stated.
        checks: what else was looked at; one that did not pass makes a promise fail.
        fixed_in_advance: whether what ran is known not to depend on what was released; otherwise
            the sum of its events bounds nothing, and too little is known.
        accounted_tuning: whether settings were chosen without the data, or at a cost that stands
            among the events.
    """
    if finding.verdict not in (ClaimVerdict.HOLDS, ClaimVerdict.NOT_IMPLIED):
        return finding
    failed = [check.name for check in checks if check.passed is False]
    if failed:
        verdict, why = ClaimVerdict.FAILS, f"{', '.join(failed)} did not pass"
    elif finding.verdict is ClaimVerdict.NOT_IMPLIED:
        return finding
    elif not fixed_in_advance:
        verdict = ClaimVerdict.UNSPECIFIED
        why = "what ran, or when it ended, may depend on what was released; if it does not"
    elif not accounted_tuning:
        verdict = ClaimVerdict.UNACCOUNTED_ACCESS
        why = "settings were tuned on the data, not accounted; the releases alone"
    else:
        return finding
    return replace(finding, verdict=verdict, reason=f"{why}: {finding.reason}")
