"""Which code made a result: a kept result of other code is not the result of today's."""

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2]


@cache
def code_digest(
    rooms: tuple[str, ...], *, but: frozenset[str] = frozenset(), package: Path = PACKAGE
) -> str:
    """Return the SHA-256 of the names and contents of all modules in some rooms of the package.

    Args:
        rooms: names of folders, with all folders inside.
        but: modules that do not count, as paths inside the package.
        package: where the rooms are.
    """
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted((package / room).rglob("*.py")):
            name = path.relative_to(package).as_posix()
            if name not in but:
                digest.update(f"{name}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
