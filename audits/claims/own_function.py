"""A sensitivity that somebody promises for a Python function of their own.

The function runs as it is, with all that it may do: nothing here is a sandbox, and callers ask
first. The falsifier searches for neighbours that refute the promise; where it finds none the court
says `UNSPECIFIED`, for a search proves nothing.
"""

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ...mechanisms.errors import InvalidParameter
from ...mechanisms.protocols import FloatArray
from ..falsifier import Falsification, ReplacedRecord, SearchTable, SensitivityLemma
from .claim import Case, Finding
from .lemma import LemmaPromise

Released = Callable[[FloatArray, FloatArray, FloatArray], object]
"""f(rows of shape (n, d), labels of shape (n,), public of shape (p,)), an array."""

_REFERENCE = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_./-]*\.py):([A-Za-z][A-Za-z0-9_]*)")
"""A relative path below the claim's folder, and a name that does not begin with an underscore."""
_SAMPLES = 500
"""Random pairs that the search starts from: each costs two calls of somebody's function."""


def reference(text: str) -> tuple[str, str]:
    """Return file and name of "mine.py:name"; nothing is opened.

    Raises `InvalidParameter` for anything but a plain path below the folder and a public name.
    """
    found = _REFERENCE.fullmatch(text)
    if found is None or ".." in text.split(":")[0].split("/"):
        raise InvalidParameter("code", text[:80], "of the form FILE.py:NAME, a public name")
    return found[1], found[2]


def load_function(path: Path, name: str) -> Released:
    """Return the function of this name after running the file.

    Raises `InvalidParameter` if the file does not run, or has no such function.

    Args:
        path: of the Python file, which is executed.
        name: of a function in it.
    """
    spec = importlib.util.spec_from_file_location("claimed_function", path)
    if spec is None or spec.loader is None:
        raise InvalidParameter("code", path.name, "a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InvalidParameter("code", path.name, f"a file that runs ({error!r})") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise InvalidParameter("code", f"{path.name}:{name}", "a function that the file defines")
    return found  # type: ignore[no-any-return]


def judged_function(released: Released, domain: ReplacedRecord, claimed: float) -> Finding:
    """Return what the falsifier finds about a promised l2 sensitivity.

    Args:
        released: the function; deterministic.
        domain: the pairs of neighbours that it promises something about.
        claimed: the sensitivity.

    Raises `InvalidParameter` if the function fails or returns no finite array.
    """

    def query(table: SearchTable, public: FloatArray) -> FloatArray:
        try:
            found = released(table.rows.copy(), table.labels.copy(), public.copy())
            return np.asarray(found, dtype=np.float64)
        except (Exception, SystemExit) as error:
            allowed = f"a function that returns an array of numbers ({error!r})"
            raise InvalidParameter("code", released, allowed) from error

    def described(domain: ReplacedRecord, found: Falsification) -> str:
        first, second = found.pair.dataset, found.pair.neighbour
        pairs = (
            f"{t.rows[0].tolist()}, label {t.labels[0]:g}"
            if len(t.rows) == domain.count
            else "none"
            for t in (first, second)
        )
        words = " against ".join(pairs)
        if domain.count > 1:
            words += f"; each of {domain.count - 1} others {first.rows[-1].tolist()}, "
            words += f"label {first.labels[-1]:g}"
        if domain.public:
            words += f"; public {found.pair.public.tolist()}"
        return words

    lemma = SensitivityLemma(query, domain, claimed)
    return LemmaPromise(lambda _: lemma, described, samples=_SAMPLES).judge(Case(domain))
