"""The part of a record that may be published: what the bound covers, and what is public anyway.

Accuracies on held-out records, models without noise and attacks on real records are computed from
records and covered by no epsilon; they stay with the holder of the data.
"""

import msgspec

from .record import Report, Skipped

_WITHHELD = Skipped(
    reason="it is computed from records, which no epsilon covers; the holder of the data has it"
)


def public(report: Report) -> Report:
    """Return the record without what was computed from records but not through paid noise.

    Args:
        report: of the holder; what stays in it is covered by the bound, or is no function of
            records.
    """
    return msgspec.structs.replace(
        report,
        utility=_WITHHELD,
        audit=_WITHHELD,
        # those accesses served only what is left out here
        access=msgspec.structs.replace(report.access, not_covered=()),
    )
