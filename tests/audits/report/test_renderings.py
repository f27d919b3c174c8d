"""Laws of the renderings.

1. Every field of the record stands in HTML and in Markdown: changing it changes both.
2. What is missing is called missing.
3. HTML is one well-formed page that runs nothing and fetches nothing; its plots are XML.
4. Texts of a record are shown as they are, never obeyed, in both formats.
5. Equal records give equal bytes, in any process.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest
from markdown_it import MarkdownIt

from dpledger.audits.report import Report, Skipped, from_json, to_html, to_json, to_markdown

from .test_record import YOUNGER

VOID = {"meta", "br", "hr", "img", "input", "link", "source", "base", "embed"}
ACTIVE = {"script", "iframe", "object", "embed", "link", "img", "base", "form", "audio", "video"}

HOSTILE = (
    '<script>alert(1)</script> "><img src=x onerror=alert(1)> </style></title> {{ 7*7 }} '
    "[a](javascript:b) ![c](http://d) | e | `f` ``` **g** $h$ &lt; \u202e\x00 <!-- -->"
)


class Page(HTMLParser):
    """Elements, attributes and text of a page; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.text = [], Counter(), [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *attr) for attr in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *attr) for attr in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data


def flat(text):
    return " ".join(text.split())


def leaves(value, path=()):
    """Yield (path, leaf) of a record's plain form; of long lists the first and the last entry."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list) and value:
        for index in {0, len(value) - 1}:
            yield from leaves(value[index], (*path, index))
    else:
        yield path, value


def changed(report, path, value):
    """Return the record with another value at `path`, or None if that is no record."""
    plain = json.loads(to_json(report))
    place = plain
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        return msgspec.convert(plain, Report)
    except msgspec.ValidationError:
        return None


def another(value):
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value / 2 if value else 0.25
        case "enclosed":
            return "fast"
        case "fast":
            return "enclosed"
        case "replace-one":
            return "zero-out-one"
        case str():
            return f"{value}, changed"
    raise AssertionError(value)


def test_every_field_stands_in_html_and_markdown(report):
    html, markdown = to_html(report), to_markdown(report)
    seen = 0
    for path, value in leaves(json.loads(to_json(report))):
        if value is None or path[-1] == "format" or (path[-1] == "status" and value == "done"):
            continue  # the first is looked at below, the others have one legal value
        other = changed(report, path, another(value))
        assert other is not None, path
        assert to_html(other) != html, path
        assert to_markdown(other) != markdown, path
        seen += 1
    assert seen > 100


def test_what_is_missing_is_called_missing(report):
    missing = ("not stated", "not given", "has none", "not told apart", "scores are not normal")
    plain = json.loads(to_json(report))
    paths = {p[: k + 1] for p, value in leaves(plain) if value is not None for k in range(len(p))}
    optional = [(p, other) for p in paths if (other := changed(report, p, None)) is not None]
    assert len(optional) > 20
    for render in (to_html, to_markdown):
        before = sum(map(render(report).count, missing))
        for path, other in optional:
            if path in YOUNGER:
                assert len(render(other)) < len(render(report)), path
                continue
            assert sum(map(render(other).count, missing)) > before, path


@pytest.mark.parametrize("part", ["audit", "utility"])
def test_what_was_skipped_says_why(report, part):
    other = msgspec.structs.replace(report, **{part: Skipped(reason="the extra is not there")})
    assert from_json(to_json(other)) == other
    for text in (to_html(other), to_markdown(other)):
        assert "the extra is not there" in text


def test_the_page_runs_nothing_and_fetches_nothing(report):
    html = to_html(report)
    page = Page(html)
    assert not ACTIVE & set(page.tags)
    assert not [a for _, a, _ in page.attributes if a.startswith("on") or a == "src"]
    ids = {value for _, a, value in page.attributes if a == "id"}
    links = [value for _, a, value in page.attributes if a == "href"]
    # the contents, all of which lead to a place on the page
    assert len(links) >= 15
    assert {f"#{name}" for name in ids} >= set(links)
    assert "url(" not in html
    assert "@import" not in html
    assert "://" not in html
    assert page.tags["svg"] >= 4


def test_plots_are_well_formed_and_named(report):
    html = to_html(report)
    drawn = [
        ElementTree.fromstring("<svg" + rest.split("</svg>")[0] + "</svg>")
        for rest in html.split("<svg")[1:]
    ]
    plots = [svg for svg in drawn if svg.get("role") == "img"]
    assert len(plots) == 4
    for svg in plots:
        title = svg.find("title")
        assert title.get("id") == svg.get("aria-labelledby")
        assert title.text
        shown = svg.find("desc")
        assert shown.get("id") == svg.get("aria-describedby")
        assert " at " in shown.text
        assert svg.findall("path")
    ids = [value for _, name, value in Page(html).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def hostile(report):
    """Return the record with every free text replaced by a hostile one."""
    plain = json.loads(to_json(report))
    for path, value in leaves(plain):
        other = changed(report, path, HOSTILE) if isinstance(value, str) else None
        report = report if other is None else other
    return report


def test_texts_are_shown_in_html_and_never_obeyed(report):
    report = changed(
        report, ("sampling", "noise_source"), "the system"
    )  # no word of the headline's
    attacked = hostile(report)
    assert attacked.preparation.data == HOSTILE
    plain, page = Page(to_html(report)), Page(to_html(attacked))
    assert page.tags == plain.tags
    assert [a[:2] for a in page.attributes] == [a[:2] for a in plain.attributes]
    shown = flat(HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\x00"))
    assert flat(page.text).count(shown) > 30


def test_texts_are_shown_in_markdown_and_never_obeyed(report):
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    plain = Page(reader.render(to_markdown(report)))
    page = Page(reader.render(to_markdown(hostile(report))))
    assert not ACTIVE & set(page.tags)
    assert not set(page.tags) - set(plain.tags)
    assert page.tags["td"] == plain.tags["td"]
    shown = flat(HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\x00"))
    assert flat(page.text).count(shown) > 30


@pytest.mark.parametrize("start", ["- a", "# a", "1. a", "+ a", "> a", "=== a", "--- a", "1) a"])
def test_a_text_cannot_open_a_markdown_block(report, start):
    reader = MarkdownIt("commonmark").enable("table")
    plain = Page(reader.render(to_markdown(report)))
    other = changed(report, ("limitations", 0), start)
    page = Page(reader.render(to_markdown(other)))
    assert page.tags == plain.tags
    assert start in page.text


def test_a_configuration_cannot_leave_its_fence(report):
    text = "a = '```'\n````\n# <b>\n~~~\n"
    other = changed(report, ("identity", "configuration"), text)
    rendered = MarkdownIt("commonmark").render(to_markdown(other))
    assert text.rstrip() in Page(rendered).text
    assert "<b>" not in rendered


def test_equal_records_give_equal_bytes_in_another_process(report, tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(to_json(report))
    program = (
        "import hashlib, pathlib, sys; from dpledger.audits.report import *\n"
        "r = from_json(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "t = to_json(r) + to_html(r).encode() + to_markdown(r).encode()\n"
        "print(hashlib.sha256(t).hexdigest())"
    )
    here = to_json(report) + to_html(report).encode() + to_markdown(report).encode()
    there = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == hashlib.sha256(here).hexdigest()


def test_no_place_on_this_machine_is_printed(report):
    for text in (to_html(report), to_markdown(report), to_json(report).decode()):
        for place in (os.getcwd(), os.path.expanduser("~"), sys.prefix):
            assert place not in text
