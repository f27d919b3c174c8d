"""The plan of the house: no cycles, no room too large, and each of two things written once."""

import ast
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .test_architecture import ALLOWED, MODULES, ROOT

LINES = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}


@cache
def tree(path: Path) -> ast.Module:
    """Return a module's syntax."""
    return ast.parse(path.read_text(encoding="utf-8"))


def names_called(path: Path) -> set[str]:
    """Return the names of the functions that a module calls, without what stands before a dot."""
    functions = [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    named = {f.id for f in functions if isinstance(f, ast.Name)}
    return named | {f.attr for f in functions if isinstance(f, ast.Attribute)}


def loaded_at_once(body: list[ast.stmt]) -> Iterator[ast.ImportFrom]:
    """Yield the relative imports that a module makes when it is loaded itself."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node
        elif isinstance(node, ast.Try):
            yield from loaded_at_once(node.body)


def graph() -> dict[Path, set[Path]]:
    """Return which modules a module loads; a package's front counts where nothing else is meant."""
    known = {path.relative_to(ROOT).with_suffix("").parts: path for path in MODULES}
    found: dict[Path, set[Path]] = {path: set() for path in MODULES}
    for path in MODULES:
        package = path.relative_to(ROOT).parts[:-1]
        for node in loaded_at_once(tree(path).body):
            base = package[: len(package) - node.level + 1]
            base += tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:
                places = ((*base, alias.name), base, (*base, "__init__"))
                target = next((known[p] for p in places if p in known), None)
                if target is not None and target != path:
                    found[path].add(target)
    return found


def test_no_module_is_loaded_by_what_it_loads() -> None:
    edges, done, cycles = graph(), set[Path](), list[str]()

    def visit(path: Path, trail: tuple[Path, ...]) -> None:
        if path in trail:
            cycle = (*trail[trail.index(path) :], path)
            cycles.append(" -> ".join(str(p.relative_to(ROOT)) for p in cycle))
        elif path not in done:
            for target in sorted(edges[path]):
                visit(target, (*trail, path))
            done.add(path)

    for path in MODULES:
        visit(path, ())
    assert sum(map(len, edges.values())) > 500
    assert cycles == []


def test_no_room_has_more_than_three_tenths_of_the_lines() -> None:
    total = sum(LINES.values())
    shares = {
        room: sum(n for path, n in LINES.items() if path.relative_to(ROOT).parts[0] == room) / total
        for room in ALLOWED
    }
    assert {room: share for room, share in shares.items() if share > 0.3} == {}


def test_the_command_line_stays_small() -> None:
    assert sum(n for path, n in LINES.items() if path.is_relative_to(ROOT / "cli")) <= 2_500


def test_a_command_weighs_no_quantities() -> None:
    """What exceeds a promise, and what is a finding, a library says; a command prints it."""
    weighed = [
        (path.name, ast.unparse(node))
        for path in MODULES
        if path.is_relative_to(ROOT / "cli")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)
    ]
    # the range of two options
    assert weighed == [("curve.py", "_LEAST_DELTA <= smallest < largest < 1")]


def test_the_plan_of_a_solver_is_made_in_one_place() -> None:
    makers = [str(p.relative_to(ROOT)) for p in MODULES if "PlanningCurator" in names_called(p)]
    assert [name for name in makers if not name.startswith("mechanisms/")] == [
        "solvers/planning.py"
    ]


def test_a_run_is_calibrated_proved_and_trained_in_one_place() -> None:
    both = {"proved_noise_multiplier", "train_on"}
    makers = [str(p.relative_to(ROOT)) for p in MODULES if both <= names_called(p)]
    assert makers == ["runs/pipeline.py"]


def test_a_public_class_has_a_name_of_its_own() -> None:
    """The checker shares no code with the rest, and has what it needs once more by its name.

    Accountants in place of another library's have that one's names.
    """
    places: dict[str, list[str]] = {}
    for path in MODULES:
        ours = path != ROOT / "interop" / "dp_accounting.py"
        if ours and path.parent != ROOT / "accounting" / "check":
            for node in tree(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice == {}


def test_no_delta_is_shown_with_fewer_digits_than_it_has() -> None:
    """An epsilon holds at its own delta, and not at one that is rounded to a smaller one."""
    rounded = re.compile(r"\{[^{}]*\bdelta[^{}]*:\.?\d*g\}")
    shown = [
        f"{path}: {found}"
        for path in MODULES
        # settings of papers are short decimals
        if path.relative_to(ROOT).parts[0] not in ("papers", "tests")
        for found in rounded.findall(path.read_text(encoding="utf-8"))
    ]
    assert not shown


def test_no_test_reads_a_clock() -> None:
    """What is asserted of speed is a count of work, which no load of the machine can change."""
    clock = re.compile(r"\b(monotonic|perf_counter|process_time|thread_time|time_ns)\b")
    tests = {*(ROOT / "tests").rglob("*.py")} - {Path(__file__)}
    assert [p for p in tests if clock.search(p.read_text(encoding="utf-8"))] == []


def test_the_glossary_speaks_of_names_that_exist() -> None:
    defined: set[str] = set()
    for path in MODULES:
        defined |= {path.stem, *path.relative_to(ROOT).parts}
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                defined.add(node.name)
            elif isinstance(node, ast.arg):
                defined.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
    rows = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    ours = [row.split("|")[2] for row in rows if row.startswith("|")]
    names = {
        word
        for cell in ours
        for code in re.findall(r"`([^`]+)`", cell)
        for word in re.findall(r"[A-Za-z_]+", code.removesuffix(".py"))
    }
    assert len(names) > 40
    assert names <= defined, names - defined


LEAST_EXPLAINED = {
    "federation": 0.45,
    "interop": 0.4,
    "cli": 0.4,
    "solvers": 0.4,
    "data": 0.4,
    "mechanisms": 0.4,
    "runs": 0.4,
    "audits": 0.4,
    "accounting": 0.4,
    "papers": 0.4,
}
"""Lines of docstrings and comments over lines of code; a room that gets better raises its own."""


def test_the_reading_orders_name_six_files_that_define_what_they_say() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Two reading")[2]
    steps = re.findall(r"^([1-9])\. `([^`]+)` `([^`]+)`", text, re.MULTILINE)
    assert [int(place) for place, _, _ in steps] == [1, 2, 3, 4, 5, 6] * 2
    for _, name, defined in steps:
        path, last = ROOT / name, defined.rpartition(".")[2]
        nodes = list(ast.walk(tree(path))) if path.suffix == ".py" else []
        functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
        fields = {
            n.target.id
            for n in nodes
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        }
        # the front door and the README mention what others define
        mentioned = path.name in ("README.md", "__init__.py") and defined in path.read_text("utf-8")
        assert last in functions | fields or mentioned, (name, defined)


def test_no_room_is_explained_less_than_it_was() -> None:
    counts = runpy.run_path(str(ROOT / "benchmarks" / "documentation.py"))["counts"]
    shares = {}
    for room in LEAST_EXPLAINED:
        found = [counts(path) for path in MODULES if path.is_relative_to(ROOT / room)]
        explained, code = (sum(column) for column in zip(*found, strict=True))
        shares[room] = explained / code
    assert {r: s for r, s in shares.items() if s < LEAST_EXPLAINED[r]} == {}
