"""Write pins anew: `python tests/golden/record.py NAME...`, of plans, plans_whole,
compositions, documents, commands, court; `new-documents` adds documents that are missing.

A pin may move only in a commit that means to move it, and whose message says why: a tighter bound,
a new verdict, a key that `--json` gained. Read the difference; what moved besides is a mistake.
What moves an epsilon downwards needs its theorem. Files in `data/documents/` never change, and what
they say never does: a new format adds files, and reads the old ones as before.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import compositions
import court
import documents
import plans

DATA = Path(__file__).parent / "data"


def _compositions() -> dict[str, Any]:
    return {
        name: entry | {"cost": compositions.found(entry)}
        for name, entry in compositions.inputs().items()
    }


def _commands() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return commands.found(Path(folder))


def _documents() -> dict[str, Any]:
    """Return what documents say, of those that nothing is pinned for yet."""
    path = DATA / "documents.json"
    pinned: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    return documents.found() | pinned


PINS: dict[str, Callable[[], dict[str, Any]]] = {
    "plans": plans.found,
    "plans_whole": plans.whole,
    "compositions": _compositions,
    "documents": _documents,
    "commands": _commands,
    "court": court.found,
}


def main(names: list[str]) -> None:
    """Write the named pins, an entry a line."""
    if not names or not set(names) <= {*PINS, "new-documents"}:
        sys.exit(f"Expected names among new-documents, {', '.join(PINS)} instead got {names}.")
    for name in names:
        if name == "new-documents":
            documents.write(lambda plan: plans.PLANS[plan]())
            continue
        entries = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in PINS[name]().items()]
        (DATA / f"{name}.json").write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
