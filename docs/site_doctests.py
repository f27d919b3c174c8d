"""Doctests of docstrings as code blocks on the site: their `>>>` would be read as quotations."""

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"(?:^[ \t]*>>> .*\n?(?:^[ \t]*\S.*\n?)*)+", re.MULTILINE)


class Doctests(griffe.Extension):
    """Fences each doctest; a line that follows without a blank one is its output."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object before it is rendered."""
        if obj.docstring is not None:
            obj.docstring.value = _DOCTEST.sub(_fenced, obj.docstring.value)


def _fenced(block: re.Match[str]) -> str:
    return f"```pycon\n{block[0].rstrip()}\n```\n"
