"""What a round over Flower costs: a SuperLink, a SuperNode for each party, and an app that runs.

    python benchmarks/federation_flower.py [--parties 2 4] [--rounds 2 8]     (dpledger[flower])

Parties have as many records as in `benchmarks/federation.py`, 10,000 of 100 dense features, in a
CSV file each, and train by DP-ADMM linearised at the consensus; Flower's programs, all on this
machine, ask for no certificates. Flower starts a process for every message, which reads its party's
file anew. A round is the seconds of the longer run less those of the shorter, over the rounds
between them; printed beside it is what both runs take besides: greeting, agreement, payment and
certificate.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from dpledger.runs.flower import write_app

RECORDS, WIDTH, PORT, LONGEST = 10_000, 100, 18_100, 600.0
"""Records a party, features, the first port, and the seconds after which a run has failed."""

RUN = """[federation]
parties = [{names}]
records = [{counts}]
schema = "schema.toml"
address = "127.0.0.1:7707"
patience = 300.0

[privacy]
adjacency = "replace-one"
epsilon = 1.0
delta = 1e-5

[solver]
algorithm = "consensus-admm"
rounds = {rounds}
"""

PARTY = """[party]
name = "{name}"
run = "run.toml"
files = ["{name}.csv"]
folder = "{name}"
token = "token.txt"

[noise]
sampler = "system"

[policy]
epsilon = 10.0
delta = 1e-5
adjacency = "replace-one"
algorithms = ["consensus-admm"]
budget = 10.0
"""


def write_files(folder: Path, names: list[str], rounds: int) -> None:
    """Write all that a federation needs, records included."""
    columns = "".join(
        f'[[columns]]\nname = "x{k}"\nkind = "numeric"\nlower = -1.0\nupper = 1.0\n\n'
        for k in range(WIDTH)
    )
    label = '[[columns]]\nname = "y"\nkind = "label"\npositive = ["yes"]\nnegative = ["no"]\n'
    schema = f'row_bound = 1.0\ndescription = "random"\n\n{columns}{label}'
    (folder / "schema.toml").write_text(schema)
    (folder / "token.txt").write_text("0" * 64)
    quoted, counts = (
        ", ".join(f'"{name}"' for name in names),
        ", ".join([str(RECORDS)] * len(names)),
    )
    (folder / "run.toml").write_text(RUN.format(names=quoted, counts=counts, rounds=rounds))
    header = ",".join([*(f"x{k}" for k in range(WIDTH)), "y"])
    for number, name in enumerate(names):
        (folder / f"{name}.toml").write_text(PARTY.format(name=name))
        rows = np.random.default_rng(number).uniform(-1.0, 1.0, size=(RECORDS, WIDTH))
        lines = (
            ",".join([*(f"{x:.4f}" for x in row), "yes" if row[0] > 0 else "no"]) for row in rows
        )
        (folder / f"{name}.csv").write_text("\n".join([header, *lines, ""]))
    config = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{PORT}"\n'
    (folder / "config.toml").write_text(f"{config}insecure = true\n")
    write_app(folder / "app", folder / "run.toml")


def begin(stack: ExitStack, folder: Path, log: str, *words: str) -> subprocess.Popen[bytes]:
    """Start one of Flower's programs; it is ended with the stack."""
    environment = {
        **os.environ,
        "FLWR_HOME": str(folder),
        "FLWR_TELEMETRY_ENABLED": "0",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with (folder / log).open("wb") as out:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=out, stderr=out)
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
    return process


def seconds(parties: int, rounds: int) -> float:
    """Return the seconds from `flwr run` to the certificates of all."""
    names = [f"party-{k:02d}" for k in range(parties)]
    with tempfile.TemporaryDirectory() as where, ExitStack() as stack:
        folder = Path(where)
        write_files(folder, names, rounds)
        begin(
            stack, folder, "link.log", "flower-superlink", "--port", str(PORT), "--insecure",
            "--disable-runtime-dependency-installation",
        )  # fmt: skip
        time.sleep(8)
        for number, name in enumerate(names):
            begin(
                stack, folder, f"{name}.log", "flower-supernode", "--insecure", "--superlink",
                f"127.0.0.1:{PORT}", "--port", str(PORT + 1_000 + number), "--node-config",
                f'party="{folder / f"{name}.toml"}"',
            )  # fmt: skip
        time.sleep(8)
        start = time.perf_counter()
        run = begin(stack, folder, "run.log", "flwr", "run", "app", "here", "--stream")
        while not (folder / "app" / "together" / "federation.json").exists():
            if run.poll() is not None or time.perf_counter() - start > LONGEST:
                raise RuntimeError((folder / "run.log").read_text()[-2_000:])
            time.sleep(0.1)
        return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a round over Flower costs.")
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, nargs=2, default=[2, 8])
    given = parser.parse_args()
    few, many = given.rounds
    print("| parties | engine | s a round | s besides |\n|--:|---|--:|--:|")
    for parties in given.parties:
        short, long = (seconds(parties, rounds) for rounds in (few, many))
        each = (long - short) / (many - few)
        print(f"| {parties} | flower | {each:.1f} | {short - few * each:.0f} |", flush=True)


if __name__ == "__main__":
    main()
