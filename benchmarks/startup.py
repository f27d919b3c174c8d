"""What it costs to start: processor time of commands over that of their heavy libraries.

    python benchmarks/startup.py

Prints the least of five runs each, user and system time of the process, and the ratios.
"""

import resource
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[1] / "runs" / "demo.toml"
RUNS = 5
CASES = {
    "dpledger --version": (["-m", "dpledger", "--version"], "import numpy"),
    "dpledger plan demo.toml": (
        ["-m", "dpledger", "plan", str(DEMO)],
        "import numpy, scipy.special, flint, click",
    ),
}


def seconds(arguments: list[str]) -> float:
    """Return the least processor time of some runs of the interpreter."""
    found: list[float] = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> None:
    """Print the table."""
    for name, (arguments, libraries) in CASES.items():
        ours, least = seconds(arguments), seconds(["-c", libraries])
        print(f"{name:25} {ours:.3f} s = {ours / least:.2f} x {least:.3f} s of `{libraries}`")


if __name__ == "__main__":
    main()
