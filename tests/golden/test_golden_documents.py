"""Law: what any version wrote verifies for ever, and says what it said; a changed copy does not."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpledger.accounting.check.pld_checker import (
    check,
)
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.ledger import SqliteLedger, TamperedLedger, exported
from dpledger.audits.report import from_json, to_html, to_markdown
from dpledger.runs.configuration import (
    read_configuration,
)

from .commands import SCHEMA
from .documents import FOLDER, certificate, ledger, read_export

PINNED: dict[str, dict[str, Any]] = json.loads((FOLDER.parent / "documents.json").read_bytes())
CERTIFICATES = sorted(path.name for path in FOLDER.glob("*.certificate.json"))
LEDGERS = sorted(path.name.removesuffix(".ledger.jsonl") for path in FOLDER.glob("*.ledger.jsonl"))


def test_every_document_is_pinned() -> None:
    ledgers = [f"{name}.ledger.{form}" for name in LEDGERS for form in ("jsonl", "sqlite")]
    assert sorted(PINNED) == sorted([*CERTIFICATES, *ledgers])
    assert len(CERTIFICATES) >= 15


LISTED_LATER = {
    "assumptions": (
        "the number of events and the time of stopping do not depend on what was released, or "
        "all of the plan is in the list",
        "what discrete noise is added to is whole numbers",
        "all records of a unit live with one party",
    ),
    "axioms": (
        "McSherry 2009, Theorem 4 (parallel composition)",
        "docs/rules.md, privacy-loss (a batch drawn with replacement)",
    ),
}


# checking a loss distribution takes seconds; one of the two is enough for every day
LONG = {"batch-tight.certificate.json"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in CERTIFICATES],
)
def test_an_old_certificate_verifies_and_says_what_it_said(name: str) -> None:
    found, said = certificate(FOLDER / name), PINNED[name]
    for kind, later in LISTED_LATER.items():
        # a verdict may list more of what it always rested on, and nothing else
        assert set(said[kind]) <= set(found[kind]) <= {*said[kind], *later}
        assert found[kind] == sorted(found[kind])
    assert found | {kind: said[kind] for kind in LISTED_LATER} == said


@pytest.mark.parametrize("name", CERTIFICATES)
def test_an_old_certificate_of_other_events_is_refused(name: str) -> None:
    document = json.loads((FOLDER / name).read_bytes())
    document["events"][-1]["round"] += 1
    with pytest.raises(CertificateWrong, match="subject"):
        check(json.dumps(document).encode())


@pytest.mark.parametrize("name", LEDGERS)
def test_an_old_export_verifies_and_exports_as_the_same_bytes(name: str) -> None:
    path = FOLDER / f"{name}.ledger.jsonl"
    read = read_export(path)
    assert ledger(read) == PINNED[path.name]
    assert "".join(f"{line}\n" for line in exported(read)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LEDGERS)
def test_an_old_export_with_another_noise_is_refused(name: str, tmp_path: Path) -> None:
    text = (FOLDER / f"{name}.ledger.jsonl").read_text(encoding="utf-8")
    changed = text.replace('\\"round\\":1', '\\"round\\":9')
    assert changed != text
    path = tmp_path / "changed.jsonl"
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(TamperedLedger):
        read_export(path)


@pytest.mark.parametrize("name", LEDGERS)
def test_an_old_ledger_file_opens_verifies_and_equals_its_export(name: str, tmp_path: Path) -> None:
    # a copy, for SQLite makes files beside the one that it reads
    path = Path(shutil.copy(FOLDER / f"{name}.ledger.sqlite", tmp_path))
    with SqliteLedger(path, read_only=True) as opened:
        assert ledger(opened) == PINNED[path.name]
        lines = "".join(f"{line}\n" for line in exported(opened))
    assert lines == (FOLDER / f"{name}.ledger.jsonl").read_text(encoding="utf-8")


def test_an_old_ledger_goes_on(tmp_path: Path) -> None:
    path = Path(shutil.copy(FOLDER / "two-runs.ledger.sqlite", tmp_path))
    with SqliteLedger(path) as opened:
        (event, *_) = opened.events("second")
        run = opened.run("third", configuration_hash="5" * 64)
        before, rows = opened.spent(), opened.verify().rows
        run.commit(run.reserve((event,), next(opened.reservations("first")).provenance))
        assert opened.verify().rows == rows + 2
        assert opened.spent().epsilon(1e-5).upper >= before.epsilon(1e-5).upper


def test_an_old_report_and_an_old_configuration_can_be_read(tmp_path: Path) -> None:
    report = from_json((FOLDER / "run.report.json").read_bytes())
    assert "<svg" in to_html(report)
    assert to_markdown(report)
    # a ledger names its configuration by this hash
    (run,) = PINNED["run.ledger.jsonl"]["runs"]
    (tmp_path / "run.toml").write_bytes((FOLDER / "run.toml").read_bytes())
    (tmp_path / "people.toml").write_text(SCHEMA)
    assert run[1] in read_configuration(tmp_path / "run.toml").known_as
