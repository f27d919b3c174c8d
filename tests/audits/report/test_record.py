"""Laws of the record: JSON holds all of it and nothing else, and no number turns into silence."""

import json
from math import inf, nan

import msgspec
import pytest

from dpledger.audits.report import MalformedReport, from_json, to_json
from dpledger.audits.report.record import Interval, finite_or_word


def objects(value, path=()):
    """Yield the path of every object in a JSON value."""
    if isinstance(value, dict):
        yield path
        for key, below in value.items():
            yield from objects(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from objects(below, (*path, index))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def test_a_record_survives_json(report):
    assert from_json(to_json(report)) == report
    assert to_json(from_json(to_json(report))) == to_json(report)


def test_an_unknown_key_is_refused_wherever_it_stands(report):
    document = json.loads(to_json(report))
    paths = list(objects(document))
    assert len(paths) > 50
    for path in paths:
        changed = json.loads(to_json(report))
        at(changed, path)["surplus"] = 1
        with pytest.raises(MalformedReport, match="surplus"):
            from_json(json.dumps(changed).encode())


YOUNGER = {("promise", "records"), ("statement",)}
"""What older records lack."""


def test_a_missing_key_is_refused_wherever_it_stands(report):
    document = json.loads(to_json(report))
    for path in objects(document):
        for key in at(document, path):
            changed = json.loads(to_json(report))
            del at(changed, path)[key]
            if (*path, key) in YOUNGER:
                assert from_json(json.dumps(changed).encode()) != report
                continue
            with pytest.raises(MalformedReport):
                from_json(json.dumps(changed).encode())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("identity", "format"), "urn:dpledger:report:2"),
        (("privacy", "delta"), 1.5),
        (("privacy", "delta"), "1e-5"),
        (("privacy", "epsilon", "upper"), None),
        (("privacy", "epsilon", "upper"), "inf"),
        (("privacy", "grade"), "guessed"),
        (("promise", "adjacency"), "replace-two"),
        (("audit", "trials"), 0),
        (("audit", "status"), "unknown"),
        (("limitations",), "one text"),
    ],
)
def test_a_value_out_of_range_is_refused(report, path, value):
    changed = json.loads(to_json(report))
    at(changed, path[:-1])[path[-1]] = value
    with pytest.raises(MalformedReport):
        from_json(json.dumps(changed).encode())


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b"\xff\xfe", b'{"promise": 1e999}'])
def test_what_is_no_record_is_refused(document):
    with pytest.raises(MalformedReport):
        from_json(document)


def test_infinity_is_written_as_a_word():
    interval = Interval(lower=0.0, upper=finite_or_word(inf))
    assert msgspec.json.decode(msgspec.json.encode(interval)) == {"lower": 0.0, "upper": "infinity"}


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_a_number_that_json_would_drop_cannot_enter_a_record(value):
    with pytest.raises(ValueError, match="upper"):
        Interval(lower=0.0, upper=value)


@pytest.mark.parametrize("value", [-inf, nan])
def test_only_plus_infinity_has_a_word(value):
    with pytest.raises(ValueError, match=r"value=.* must "):
        finite_or_word(value)
