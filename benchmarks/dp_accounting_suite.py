"""dp_accounting's own accountant tests, run against the accountants that stand in for its own.

    python benchmarks/dp_accounting_suite.py CHECKOUT/python/dp_accounting

CHECKOUT is one of Google's differential-privacy repository, whose code is imported from there and
nowhere copied. Each of its tests of accountants runs with `PldAccountant` or `RdpAccountant` in
place of theirs; a test that fails is looked up in a list of argued exceptions below, and one that
is not there makes the status 1. A test whose value differs because ours is *tighter* is one of
these, and named so: the value asserted is an upper bound there, and ours lies below it.
"""

import argparse
import importlib
import io
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUITES = {
    "dp_accounting.pld.pld_privacy_accountant_test": (
        "dp_accounting.pld.pld_privacy_accountant",
        "PLDAccountant",
        "PldAccountant",
    ),
    "dp_accounting.rdp.rdp_privacy_accountant_test": (
        "dp_accounting.rdp.rdp_privacy_accountant",
        "RdpAccountant",
        "RdpAccountant",
    ),
}

_SENTENCE = "refused as it asks, in another sentence"
_SAMPLED_ZCDP = "refused: a sample of a mechanism that is known by its zCDP alone has no rule"
_POISSON_REPLACED = "refused: no published pair bounds Poisson sampling where a record is replaced"
_REPLACED = "answered, where theirs refuses: a record replaced moves two norms"
_SELECTION = "refused: a Poisson number of runs has no rule here"
_NULL = (
    "looser: a null record may answer anything here, a uniform answer there; priced as any other "
    "answer"
)
_PRIVATE = "reads a private attribute of theirs"
EXCEPTIONS: dict[str, str] = {
    "PldPrivacyAccountantTest.test_composition_errors_for_neighboring_relation0": _SENTENCE,
    "PldPrivacyAccountantTest.test_composition_errors_for_neighboring_relation1": _REPLACED,
    "PldPrivacyAccountantTest.test_composition_errors_for_neighboring_relation2": _SENTENCE,
    "PldPrivacyAccountantTest.test_composition_errors_for_neighboring_relation3": _REPLACED,
    "PldPrivacyAccountantTest.test_composition_errors_for_neighboring_relation4": _SENTENCE,
    "PldPrivacyAccountantTest.test_composition_errors_for_neighboring_relation5": _REPLACED,
    "PldPrivacyAccountantTest.test_contains_non_dp_event": _PRIVATE,
    "PldPrivacyAccountantTest.test_mixture_of_gaussians_basic": (
        "looser: mixtures of three and more are priced by their largest shift"
    ),
    "PldPrivacyAccountantTest.test_permute_and_flip": (
        "looser: priced by its epsilon alone, not as Laplace noise"
    ),
    "PldPrivacyAccountantTest.test_randomized_response1": _NULL,
    "PldPrivacyAccountantTest.test_randomized_response2": _NULL,
    "PldPrivacyAccountantTest.test_supports_gaussian1": _POISSON_REPLACED,
    "PldPrivacyAccountantTest.test_supports_subsampled_gaussian": _POISSON_REPLACED,
    "PldPrivacyAccountantTest.test_truncated_subsampled": (
        "looser: a record of a cut batch is priced as if it always took another's place"
    ),
    "RdpPrivacyAccountantTest.test_compute_rdp_exponential": (
        "looser: priced by its epsilon alone, not by its bounded range"
    ),
    "RdpPrivacyAccountantTest.test_permute_and_flip": (
        "looser: priced by its epsilon alone, not as Laplace noise"
    ),
    "RdpPrivacyAccountantTest.test_compute_rdp_poisson_sampled_gaussian": (
        "tighter: 0.000650071 for 0.000670580 at order 1.5, equal at whole orders"
    ),
    "RdpPrivacyAccountantTest.test_compute_rdp_randomized_response_replace_special": _NULL,
    "RdpPrivacyAccountantTest.test_compute_rdp_tree_restart_raise": _SENTENCE,
    "RdpPrivacyAccountantTest.test_epsilon_delta_dp_event_self_composed": _PRIVATE,
    "RdpPrivacyAccountantTest.test_epsilon_delta_dp_event_with_epsilon": (
        "tighter: 0.99998633 for at least 1"
    ),
    "RdpPrivacyAccountantTest.test_laplace_repetition": "tighter: 83.1518 for 100",
    "RdpPrivacyAccountantTest.test_log_a_frac_early_termination": (
        "asks for a warning of theirs that a series was cut off; none is here"
    ),
    "RdpPrivacyAccountantTest.test_poisson_sampled_discrete_gaussian": (
        "refused: a Poisson sample of discrete noise has no rule here"
    ),
    "RdpPrivacyAccountantTest.test_poisson_sampled_zcdp": _SAMPLED_ZCDP,
    "RdpPrivacyAccountantTest.test_raises_on_invalid": _SENTENCE,
    "RdpPrivacyAccountantTest.test_repeat_and_select": _SELECTION,
    "RdpPrivacyAccountantTest.test_repeat_select_gaussian_negative_binomial_small": (
        "looser: by at most 1.2e-7 of the value, as the second order is searched on a grid"
    ),
    "RdpPrivacyAccountantTest.test_supports": (
        "refused: a Poisson sample of discrete noise has no rule here"
    ),
    "RdpPrivacyAccountantTest.test_tree_wrong_neighbor_rel_replace": _REPLACED,
}
"""Beginning of a case's name -> why it does not pass as it stands."""


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """Yield the single tests of a suite."""
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases(each)
        else:
            yield each


def outcome(test: unittest.TestCase) -> str:
    """Return "pass", "skip", or the last line of what went wrong."""
    result = unittest.TestResult()
    test.run(result)
    wrong = result.errors + result.failures
    if wrong:
        lines = [line for line in wrong[0][1].strip().splitlines() if line.strip()]
        return lines[-1][:160]
    return "skip" if result.skipped else "pass"


def main() -> None:
    """Run both suites and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="python/dp_accounting of a checkout")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    asked = parser.parse_args()
    sys.path.insert(0, str(asked.checkout))
    ours: Any = importlib.import_module("dpledger.interop.dp_accounting")
    rows: list[tuple[str, str, str]] = []
    for suite, (module, theirs, name) in SUITES.items():
        setattr(importlib.import_module(module), theirs, getattr(ours, name))
        loaded = unittest.defaultTestLoader.loadTestsFromName(suite)
        for test in cases(loaded):
            case = test.id().removeprefix(f"{suite}.")
            if asked.only in case:
                rows.append((name, case, outcome(test)))
    report(rows)


def report(rows: list[tuple[str, str, str]]) -> None:
    """Print the table, and exit with 1 if something fails without an argument."""
    passed = sum(found == "pass" for _, _, found in rows)
    table, unexplained = io.StringIO(), 0
    for name, case, found in rows:
        reason = next((why for start, why in EXCEPTIONS.items() if case.startswith(start)), "")
        if found == "pass":
            word = "pass"
        elif found != "skip" and not reason:
            word, unexplained = f"**fails: {found}**", unexplained + 1
        else:
            word = reason or found
        named = case.partition(" ")[0].removeprefix(name.removesuffix("Accountant"))
        named = named.removeprefix("PrivacyAccountantTest.")
        print(f"| {name} | {named} | {word} |", file=table)
    print(f"{passed} of {len(rows)} pass; {unexplained} fail without an argument\n")
    print("| accountant | case | outcome |\n|---|---|---|")
    print(table.getvalue(), end="")
    sys.exit(unexplained > 0)


if __name__ == "__main__":
    main()
