"""Checks one certificate, with this folder and the standard library alone.

    python check run.cert.json

The folder may be copied anywhere and have any name; nothing beside it is imported.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _package() -> str:
    """Return the dotted name of this folder's package, loaded by its path if it has none yet."""
    if __package__:
        return __package__
    here, name = Path(__file__).resolve().parent, "dpledger_check"
    spec = spec_from_file_location(
        name, here / "__init__.py", submodule_search_locations=[str(here)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = package = module_from_spec(spec)
    spec.loader.exec_module(package)
    return name


def main(arguments: list[str]) -> int:
    """Check one file; 0: proved, 1: the certificate is wrong, 2: misuse, 3: not decided."""
    package = _package()
    checker, pld_checker, reading = (
        import_module(f"{package}.{name}") for name in ("checker", "pld_checker", "reading")
    )
    if len(arguments) != 1:
        print("usage: python check CERTIFICATE", file=sys.stderr)
        return 2
    try:
        with open(arguments[0], "rb") as file:
            print(checker.report(pld_checker.check(file.read(reading.MAX_BYTES + 1))))
    except (OSError, reading.CalledWrong) as error:
        print(f"cannot check: {error}", file=sys.stderr)
        return 2
    except reading.CertificateWrong as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    except reading.Undecided as error:
        print(f"undecided: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
