"""A command imports what it needs: how long that takes, benchmarks/startup.py tells."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "runs" / "demo.toml"
# prints the modules that a command has loaded when it ends
PROBE = """
import json, sys
from dpledger.cli import run
sys.argv = ["dpledger", *sys.argv[1:]]
try:
    run()
finally:
    print("\\n" + json.dumps(sorted(sys.modules)))
"""


def loaded(*arguments: str) -> set[str]:
    """Return the names of the modules that a command loads in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--version",), ("plan", "--help")])
def test_words_about_the_program_load_no_experiments_and_no_audits(
    arguments: tuple[str, ...],
) -> None:
    modules = loaded(*arguments)
    assert "dpledger.cli.app" in modules
    forbidden = {"matplotlib", "jinja2", "joblib", "scipy.stats", "scipy.optimize"}
    assert not modules & (forbidden | {"dpledger.audits.report", "dpledger.audits.assessment"})


def test_the_version_needs_no_arrays() -> None:
    assert "numpy" not in loaded("--version")


def test_a_plan_loads_no_statistics_no_plots_and_no_reports() -> None:
    modules = loaded("plan", str(DEMO))
    assert "dpledger.runs.planning" in modules
    forbidden = {
        "dpledger.audits.report", "dpledger.papers", "dpledger.accounting.pld.routes", "jinja2",
        "joblib", "matplotlib", "numpy.ma",
        "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "sklearn",
    }  # fmt: skip
    assert not modules & forbidden


FIRST_ANSWERS = """
import sys
from fractions import Fraction
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.pairs import GaussianShift, Order, Sampled
shift = GaussianShift(Fraction(1))
for pair in (shift, *(Sampled(shift, Fraction(1, 80), order) for order in Order)):
    profile = PrivacyProfile.of_pairs({pair: 1000})
    assert profile.epsilon(1e-5).lower_float <= profile.epsilon_upper(1e-5)
print([name for name in sys.modules if name.startswith("scipy")])
"""


def test_first_answers_of_the_accountant_wait_for_no_scipy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_ANSWERS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]"]


def test_every_name_that_a_package_lists_is_loaded_on_demand() -> None:
    import dpledger.audits
    import dpledger.data
    import dpledger.solvers

    for package in (dpledger.audits, dpledger.data, dpledger.solvers):
        for name in package.__all__:
            found = getattr(package, name)
            assert getattr(found, "__name__", name) == name or not callable(found)
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            package.nothing  # noqa: B018
