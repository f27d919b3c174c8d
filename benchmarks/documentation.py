"""How much is explained: lines of docstrings and comments over lines of code, by room.

    python benchmarks/documentation.py [ROOM ...]

Prints a row a room, or a row a file of the named rooms, the least explained first. A line counts as
documentation if it belongs to a docstring (of a module, class, function, or below a constant) or
holds nothing but a comment; blank lines count as nothing. A comment behind code is not counted.
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def counts(path: Path) -> tuple[int, int]:
    """Return the lines of documentation and of code of a Python file."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    explained = {i for i, line in enumerate(lines, 1) if line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(source)):
        match node:
            # a string that stands alone is a docstring, or the explanation of a constant
            case ast.Expr(value=ast.Constant(value=str())):
                explained |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case _:
                pass
    filled = {i for i, line in enumerate(lines, 1) if line.strip()}
    return len(explained & filled), len(filled - explained)


def main(rooms: list[str]) -> None:
    """Print the table."""
    if rooms:
        groups = {str(p.relative_to(ROOT)): [p] for r in rooms for p in (ROOT / r).rglob("*.py")}
    else:
        fronts = sorted(p.parent for p in ROOT.glob("*/__init__.py"))
        groups = {room.name: list(room.rglob("*.py")) for room in fronts}
    rows: list[tuple[float, str, int, int]] = []
    for name, files in groups.items():
        explained, code = (sum(column) for column in zip(*map(counts, files), strict=True))
        rows.append((explained / max(1, code), name, explained, code))
    for ratio, name, explained, code in sorted(rows):
        print(f"{ratio:5.2f}  {explained:6} / {code:6}  {name}")
    explained, code = sum(row[2] for row in rows), sum(row[3] for row in rows)
    print(f"{explained / max(1, code):5.2f}  {explained:6} / {code:6}  all")


if __name__ == "__main__":
    main(sys.argv[1:])
