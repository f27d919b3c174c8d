"""The page on experiments names those that there are, and shows figures that are there."""

import re
from pathlib import Path

from dpledger.papers.experiments import PAPERS, chosen

PAGE = Path(__file__).parents[3] / "docs" / "experiments.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_experiment_is_on_the_page() -> None:
    names = {f"{paper.name}/{one.name}" for paper in PAPERS for one in paper.experiments}
    assert {name for name in names if name not in TEXT} == set()


def test_commands_on_the_page_name_experiments() -> None:
    named = set(re.findall(r"^    dpledger experiment (\S+)", TEXT, re.MULTILINE)) - {"list"}
    assert len(named) > 5
    for name in named:
        assert chosen(name, PAPERS)


def test_figures_on_the_page_are_there_and_small() -> None:
    links = re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)
    assert links
    for link in links:
        assert (PAGE.parent / link).stat().st_size < 100_000
    assert {Path(link).name for link in links} == {p.name for p in PAGE.parent.glob("figures/*")}
