"""`dpledger report`: render the report of a run again, from its record.

Asks for the folder of a run. `report.json` is the record that the run wrote; pages are renderings
of it, so that a later version can draw them again. --format prints Markdown or the record itself,
and writes nothing.

Prints the names of the files that it wrote. Exit status 0; 2 where the folder has no record, or one
of another format.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.report import from_json, to_markdown, write_pages
from .inputs import FOLDER


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--format",
    "form",
    type=click.Choice(["files", "markdown", "json"]),
    default="files",
    help="Write report.html, report.md and public.html into DIR, or print to standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def report(folder: Path, form: str, as_json: bool) -> None:
    """Render the report of the run in DIR from its report.json."""
    # the bytes as they are: --json must print the record that was written, not one written anew
    document = (folder / "report.json").read_bytes()
    record = from_json(document)
    if as_json or form == "json":
        click.echo(document)
    elif form == "markdown":
        click.echo(to_markdown(record))
    else:
        write_pages(record, folder)
        for name in ("report.html", "report.md", "public.html"):
            click.echo(folder / name)
