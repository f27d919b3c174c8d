"""What it costs to start: processor time of commands over that of their heavy libraries.

    python benchmarks/startup.py [RUNS]

Prints medians and the least of RUNS runs each (default 9), user and system time of the process, and
their ratios. Command and libraries take turns, so that a machine that gets busier slows both; byte
code is compiled beforehand, as an installation does.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

DEMO = Path(__file__).parents[1] / "runs" / "demo.toml"
CASES = {
    "dpledger --version": (["-m", "dpledger", "--version"], "import numpy"),
    "dpledger plan demo.toml": (
        ["-m", "dpledger", "plan", str(DEMO)],
        "import numpy, scipy.special, flint, click",
    ),
}


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Return the processor time of one run of the interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(runs: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for name, (arguments, libraries) in CASES.items():
            both = arguments, ["-c", libraries]
            for each in both:
                seconds(each, environment)
            pairs = [[seconds(each, environment) for each in both] for _ in range(runs)]
            ours, theirs = zip(*pairs, strict=True)
            for word, of in (("median", median), ("least", min)):
                a, b = of(ours), of(theirs)
                print(f"{name:25} {word:6} {a:.3f} s = {a / b:.2f} x {b:.3f} s of `{libraries}`")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
