"""Law: who finds a proof and who checks it share no code, in either direction."""

import ast
import sys
from pathlib import Path

import pytest

import dpledger

ROOT = Path(dpledger.__file__).resolve().parent
CHECKERS = sorted(path.stem for path in (ROOT / "accounting" / "check").glob("[!_]*.py"))


def imported(path):
    """The modules of the package that a file imports, by path from its root."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = path.relative_to(ROOT).parent
        for _ in range(node.level - 1):
            folder = folder.parent
        base = folder.joinpath(*(node.module or "").split("."))
        for place in (base, *(base / alias.name for alias in node.names)):
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if (ROOT / file).is_file():
                    found.add(ROOT / file)
    return found


def reached_from(path):
    """All files that importing this one runs, but for packages on the way."""
    seen, waiting = set(), [path]
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting.extend(imported(here))
    return {file.relative_to(ROOT).as_posix() for file in seen}


@pytest.mark.parametrize("module", ["prover", "losses", "certificate", "derivation"])
def test_whoever_finds_a_proof_imports_no_checker(module):
    reached = reached_from(ROOT / "accounting" / "proof" / f"{module}.py")
    assert len(reached) > 5
    assert not [file for file in reached if file.startswith("accounting/check/")]


@pytest.mark.parametrize("name", CHECKERS)
def test_a_checker_imports_the_standard_library_flint_and_other_checkers(name):
    path = ROOT / "accounting" / "check" / f"{name}.py"
    reached = {file for file in reached_from(path) if not file.endswith("__init__.py")}
    assert reached <= {f"accounting/check/{other}.py" for other in CHECKERS}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    bare |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level}
    assert bare <= {*sys.stdlib_module_names, "collections.abc", "flint", *CHECKERS}


@pytest.mark.parametrize("name", CHECKERS)
def test_a_checker_uses_no_private_name_of_another(name):
    tree = ast.parse((ROOT / "accounting" / "check" / f"{name}.py").read_text(encoding="utf-8"))
    private = [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in CHECKERS
        and node.attr.startswith("_")
    ]
    private += [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.level or node.module in CHECKERS)
        for alias in node.names
        if alias.name.startswith("_")
    ]
    assert not private
