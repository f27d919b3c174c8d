"""What outcomes say of noise that is no release's."""

from __future__ import annotations

from ...accounting.guarantees import Guarantee
from ...audits.outcome import Row
from ...audits.report.record import REPEATABLE_NOISE
from ..sections import SECRET_SEED


def noise_rows(found: Guarantee) -> tuple[Row, ...]:
    """Return a row for noise from a seed, in the words that reports have for it; else none."""
    return (("noise", REPEATABLE_NOISE),) if SECRET_SEED in found.assumptions else ()
