"""What may be published says nothing that was computed from records, whatever that was."""

from msgspec import structs

from dpledger.audits.report import Report, Skipped, public, to_html
from dpledger.audits.report.record import EmpiricalAudit, Utility


def test_the_public_page_does_not_depend_on_utility_or_attack(report: Report) -> None:
    audit, utility = report.audit, report.utility
    assert isinstance(audit, EmpiricalAudit)
    assert isinstance(utility, Utility)
    others = (
        structs.replace(report, audit=structs.replace(audit, trials=77, neighbour="Ada, 36")),
        structs.replace(
            report,
            utility=structs.replace(
                utility, results=tuple(structs.replace(r, correct=11) for r in utility.results)
            ),
        ),
        structs.replace(report, audit=Skipped(reason="no time"), utility=Skipped(reason="none")),
        structs.replace(
            report, access=structs.replace(report.access, not_covered=("a look at Ada's record",))
        ),
    )
    page = to_html(public(report))
    for other in others:
        assert to_html(other) != to_html(report)
        assert to_html(public(other)) == page


def test_the_public_page_keeps_the_promise_and_what_left_unprotected(report: Report) -> None:
    found = public(report)
    assert found.access.unprotected == report.access.unprotected != ()
    kept = [name for name in report.__struct_fields__ if name not in ("audit", "utility", "access")]
    assert {name: getattr(found, name) for name in kept} == {
        name: getattr(report, name) for name in kept
    }
