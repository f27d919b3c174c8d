"""Laws of the extracted checker: one verdict with checker.py (bent documents: test_mutation.py)."""

import pytest

from dpledger.accounting.check.checker import check
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.proof.extracted import (
    ExtractedMissing,
    agrees,
    extracted_checker,
    run_extracted,
)

needs_checker = pytest.mark.skipif(
    extracted_checker() is None, reason="dpledger-check is not built (make -C proofs checker)"
)
COVERED = (
    *("one Gaussian step", "schedule of two parties", "repeated", "group", "computed"),
    *("summed on a grid", "by hand"),
)


def verdict_of(document):
    try:
        return check(document)
    except (CertificateWrong, Undecided):
        return None


@needs_checker
def test_certificates_of_gaussian_runs_are_proved_and_no_others(certificates, tmp_path):
    paths = []
    for name in certificates:
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_bytes(certificates[name].to_json_bytes())
    for path, found in zip(paths, run_extracted(paths), strict=True):
        if path.stem in COVERED:
            assert agrees(found, check(path.read_bytes())), found.line
        else:
            assert found.word == "undecided", found.line


@needs_checker
@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "{}{}", '{"a":1,"a":2}', "1.5", "NaN", '{"a":1e3}', "01", "--1"),
        *('"\\ud800"', '"\x01"', '"\\x"', "\ufeff{}", "[" * 100_000, "1" * 19, "tru"),
    ],
)
def test_what_is_no_certificate_is_wrong(tmp_path, text):
    path = tmp_path / "document.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert run_extracted([path])[0].word == "wrong"


@needs_checker
def test_invalid_utf_8_is_wrong(certificates, tmp_path):
    document = certificates["one Gaussian step"].to_json_bytes()
    for k, bad in enumerate((b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2")):
        path = tmp_path / f"{k}.json"
        path.write_bytes(document.replace(b"model", b"mo" + bad + b"el"))
        assert run_extracted([path])[0].word == "wrong"
        assert verdict_of(path.read_bytes()) is None


def test_without_it_nothing_is_claimed(monkeypatch, tmp_path):
    monkeypatch.setattr("dpledger.accounting.proof.extracted.extracted_checker", lambda: None)
    with pytest.raises(ExtractedMissing, match="make -C proofs checker"):
        run_extracted([tmp_path])
