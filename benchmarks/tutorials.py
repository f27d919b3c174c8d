"""Follow every tutorial of the built site, as a new user would, and say how long each takes.

Usage: mkdocs build --site-dir SITE; python benchmarks/tutorials.py SITE

Commands and Python are taken from the pages themselves and run in order, in an empty folder, with
the `dpledger` and the `python` of the environment this runs in: make a fresh one from a fresh
clone. What a page shows below a command must be printed by it, line by line. Seconds are of the
wall; what a person takes to read is not in them.
"""

import argparse
import ast
import subprocess
import sys
import tempfile
import time
from html.parser import HTMLParser
from pathlib import Path

BIN = Path(sys.executable).parent
SESSION = """
import sys
room = {"__name__": "page"}
for line in sys.stdin:
    exec(compile(eval(line), "page", "exec"), room)
    print("done", flush=True)
"""
"""One interpreter for a page: each block stands on those before it."""


class Blocks(HTMLParser):
    """Collects the text of the code blocks of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._inside = True
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] += data


def is_python(text: str) -> bool:
    """Whether a block is a program, not something that one printed."""
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def follow(page: Path, folder: Path) -> tuple[int, float]:
    """Return how many blocks of a page were run, and how long they took; exit where one differs."""
    blocks = Blocks()
    blocks.feed(page.read_text(encoding="utf-8"))
    printed, ran, took = "", 0, 0.0
    with subprocess.Popen(
        [sys.executable, "-c", SESSION],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        for text in blocks.found:
            begun = time.perf_counter()
            if text.startswith("dpledger "):
                calls = [["/bin/sh", "-c", f"{BIN}/{line}"] for line in text.splitlines()]
                done = [
                    subprocess.run(c, cwd=folder, capture_output=True, text=True) for c in calls
                ]
                printed = "".join(one.stdout + one.stderr for one in done)
            elif is_python(text):
                print(repr(text), file=session.stdin, flush=True)
                while (line := session.stdout.readline()) != "done\n":
                    if not line:
                        sys.exit(f"{page.name}: this failed:\n{text}")
            else:
                missing = [line for line in text.splitlines() if line not in printed]
                if missing:
                    sys.exit(f"{page.name}: not printed: {missing}\n{printed}")
                continue
            ran, took = ran + 1, took + time.perf_counter() - begun
        session.stdin.close()
    return ran, took


def main() -> None:
    """Print a row for each tutorial."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("site", type=Path)
    site = parser.parse_args().site
    print("| tutorial | blocks run | seconds |\n|---|---|---|")
    for page in sorted((site / "tutorials").glob("*.html")):
        with tempfile.TemporaryDirectory() as folder:
            ran, took = follow(page, Path(folder))
        print(f"| {page.stem} | {ran} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
