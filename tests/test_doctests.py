"""Every example in a docstring is true."""

import doctest
import importlib
import pkgutil

import pytest

import dpledger

MODULES = ["dpledger"] + [
    found.name
    for found in pkgutil.walk_packages(dpledger.__path__, "dpledger.")
    if not found.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    found = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert found.failed == 0


def test_some_modules_have_examples() -> None:
    finder = doctest.DocTestFinder()
    with_examples = [
        name
        for name in MODULES
        if any(each.examples for each in finder.find(importlib.import_module(name)))
    ]
    assert len(with_examples) >= 10
