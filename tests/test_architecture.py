"""The house keeps its order: every import is read, none runs against the arrows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpledger.cli.app import _COMMANDS as COMMANDS

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "mechanisms": set[str](),
    "data": {"mechanisms"},
    "accounting": {"mechanisms"},
    "interop": {"mechanisms", "accounting"},
    "solvers": {"mechanisms", "accounting", "interop", "data"},
    "federation": {"mechanisms", "accounting", "interop", "solvers"},
}
for _room in ("audits", "runs", "papers", "cli"):
    ALLOWED[_room] = set(ALLOWED)
"""A room imports rooms above it in this list only; data knows mechanisms."""

MODULES = [path for room in ALLOWED for path in sorted((ROOT / room).rglob("*.py"))]


def imports(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Yield (level, dotted name) of every import, at any depth of the module."""
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            yield from ((node.level, f"{base}.{alias.name}".strip(".")) for alias in node.names)


def faults(path: Path, source: str) -> list[str]:
    """Return what is wrong with a module's imports, in words."""
    place = path.relative_to(ROOT).parts
    room = place[0]
    found: list[str] = []
    for level, name in imports(path, source):
        top = name.split(".")[0]
        if level == 0 and top == "dpledger":
            found.append(f"absolute import of {name}")
        elif level == 0 and top in ALLOWED:
            found.append(f"bare import of {name}")
        elif level > 0:
            # one dot stays in the module's folder; each further dot goes one folder up
            package = ("dpledger", *place[:-1])
            target = (*package[: len(package) - level + 1], *name.split("."))
            if level > len(package) or target[0] != "dpledger":
                found.append(f"import from outside the package: {name}")
            elif target[1] in ALLOWED and target[1] not in {room, *ALLOWED[room]}:
                found.append(f"{room} imports {target[1]}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_runs_against_the_order_of_the_rooms(path: Path) -> None:
    assert faults(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("place", "line", "fault"),
    [
        ("accounting/x.py", "from ..solvers import star", "accounting imports solvers"),
        ("accounting/x.py", "from .. import solvers", "accounting imports solvers"),
        ("mechanisms/x.py", "def f():\n    from ..accounting.notions import Gdp", "accounting"),
        ("data/x.py", "from ..accounting import notions", "data imports accounting"),
        ("mechanisms/x.py", "from ..data import schema", "mechanisms imports data"),
        ("accounting/x.py", "from ..data import schema", "accounting imports data"),
        ("audits/claims/x.py", "from ...cli import run", "audits imports cli"),
        ("audits/claims/x.py", "from ....cli import run", "outside the package"),
        ("cli/x.py", "import dpledger.mechanisms", "absolute import"),
        ("cli/x.py", "from dpledger import mechanisms", "absolute import"),
        ("cli/x.py", "import accounting", "bare import"),
        ("cli/x.py", "from accounting.notions import Gdp", "bare import"),
    ],
)
def test_each_kind_of_fault_is_found(place: str, line: str, fault: str) -> None:
    (found,) = faults(ROOT / place, line)
    assert fault in found


def test_all_rooms_have_modules_and_are_links_of_the_package() -> None:
    for room in ALLOWED:
        assert (ROOT / room / "__init__.py").is_file()
        assert (ROOT / "src" / "dpledger" / room).resolve() == ROOT / room


def reached_from_outside() -> set[Path]:
    """Return the modules that an entry point, a room's front or a test leads to by imports."""
    known = {("dpledger", *p.relative_to(ROOT).with_suffix("").parts): p for p in MODULES}
    tests = list((ROOT / "tests").rglob("*.py"))
    todo = [ROOT / "src" / "dpledger" / "__main__.py", *tests]
    todo += [p for p in MODULES if p.name in ("__init__.py", "__main__.py")]
    # commands are imported by name, when they are called
    todo += [ROOT / "cli" / f"{module}.py" for module in set(COMMANDS.values())]
    seen: set[Path] = set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        inside = path in known.values()
        package = ("dpledger", *path.relative_to(ROOT).parts[:-1]) if inside else ("dpledger",)
        for level, name in imports(path, path.read_text(encoding="utf-8")):
            base = package[: len(package) - level + 1] if level else ()
            target = (*base, *name.split("."))
            # `from .a import b` may name a module b or a member of a
            todo += [known[t] for t in (target, target[:-1]) if t in known]
    return seen


def test_every_module_is_reachable() -> None:
    reached = reached_from_outside()
    assert [str(p.relative_to(ROOT)) for p in MODULES if p not in reached] == []


def test_a_bare_import_of_a_room_is_refused() -> None:
    with pytest.raises(ImportError, match=r"Expected import dpledger\.accounting"):
        __import__("accounting")


# --- the two walks of ARCHITECTURE.md ----------------------------------------------------------

WALKS = [
    re.findall(r"^\d\. `([^`]+)` `([^`]+)`:", part, re.M)
    for part in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("\nFrom ")[1:]
]


def defined(tree: ast.AST, name: str) -> bool:
    """Return whether a dotted name is of a function, a class or a field here, or handed on."""
    first, _, rest = name.partition(".")
    imported = (n.names for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))
    if any(name == (alias.asname or alias.name) for names in imported for alias in names):
        return True
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == first:
            return not rest or defined(node, rest)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return True
    return False


def words(text: str) -> set[str]:
    """Return the identifiers in a text."""
    return set(re.findall(r"\w+", text))


def test_each_walk_leads_from_file_to_file_and_has_six_at_most() -> None:
    assert len(WALKS) == 2
    for walk in WALKS:
        assert 3 <= len(walk) <= 6
        seen: set[str] = set()
        for path, name in walk:
            source = (ROOT / path).read_text(encoding="utf-8")
            if path.endswith(".py"):
                assert defined(ast.parse(source), name), f"{path} has no {name}"
            # the reader comes by a name: one that was met before, or that is met here again
            assert not seen or seen & words(name), f"nothing leads to {name} in {path}"
            seen |= words(source)
