"""`dpledger init`: first files for a table of one's own; `dpledger explain`: what a key means.

`init` asks for a table, reads its first line and no record, and asks for what is public about each
column: bounds, categories, labels, parties. With --template it asks nothing and leaves question
marks, which the reader of schemas refuses until they are filled in. It writes TABLE.schema.toml and
TABLE.run.toml, never over a file that exists, and prints their names with the command to go on
with.

`explain` prints the meaning of a key of run.toml, a schema or a claim file, taken from the
docstrings of their sections; --json-schema prints what an editor needs to check such a file.

Exit status 0; 2 for a table without a header, a file that exists, or a key that there is not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..audits.outcome import Outcome, TextColumns
from ..runs.documents import FILES, Key, all_keys, explained, json_schema
from ..runs.starting import UNSAID, column_names, run_text, schema_text, write_new
from .inputs import FILE
from .output import answers

_LISTS = ("categories", "positive", "negative", "classes", "parties")
"""Keys whose answer is several texts, divided by commas."""


@click.command()
@click.argument("table", type=FILE)
@click.option("--delimiter", default=",", help="Between the cells of the table.")
@click.option("--template", is_flag=True, help="Ask nothing; leave what is public to be filled in.")
@answers
def init(table: Path, delimiter: str, template: bool) -> Outcome:
    """Write a commented schema and a commented run.toml beside TABLE, from its header only.

    What is public about the columns is asked for: bounds, categories, counts. No record is read.
    """
    schema, run = table.with_suffix(".schema.toml"), table.with_suffix(".run.toml")
    names = column_names(table, delimiter=delimiter)
    # names alone come from the table; kinds, bounds and categories from whoever answers
    columns = [{"name": name, **({"kind": UNSAID} if template else _asked(name))} for name in names]
    public = {"row_bound": 1.0, "on_outside": "clip", "delimiter": delimiter}
    # beside the run, which is where its paths start
    data = {"files": [table.name], "schema": schema.name}
    texts = schema_text(columns, public), run_text(_sections(data, columns, ask=not template))
    # both texts were made before either is written, so that a wrong answer leaves no half of them
    for path, text in zip((schema, run), texts, strict=True):
        write_new(path, text)
    return Outcome(
        title=f"{len(names)} columns of {table.name}; no record was read",
        data={"schema": str(schema), "run": str(run), "columns": names},
        rows=(("schema", str(schema)), ("run", str(run)), ("next", f"dpledger plan {run}")),
    )


def _asked(name: str) -> dict[str, Any]:
    """Ask what is public about a column.

    Questions go to standard error, so that standard output has the answer alone.
    """
    keys = [key for key in all_keys() if key.file == "schema" and "." in key.path]
    kinds = dict.fromkeys(key.path.partition(".")[0] for key in keys)
    kind = click.prompt(f"{name}: kind", type=click.Choice([*kinds]), err=True)
    said: dict[str, Any] = {"kind": kind}
    for key in keys:
        of, _, word = key.path.partition(".")
        # what has a default need not be asked for
        if of == kind and key.default is None and word != "name":
            several = word in _LISTS
            words = f"  {word}{', divided by commas' if several else ''}: {key.text.rstrip('.')}"
            answer: Any = click.prompt(words, type=str if several else float, err=True)
            said[word] = [each.strip() for each in answer.split(",")] if several else answer
    return said


def _sections(
    data: dict[str, Any], columns: list[dict[str, Any]], *, ask: bool
) -> dict[str, dict[str, Any]]:
    """Return what a first run says; of what is asked for, a placeholder where nothing is.

    Args:
        data: the files and the schema.
        columns: as stated: whether one names parties, or classes, decides what else is asked.
        ask: whether somebody is there to answer; defaults stand in otherwise.
    """

    def answer(words: str, default: float) -> Any:
        return click.prompt(words, default=default, err=True) if ask else default

    # parties of a column are read off the schema; records without one are dealt evenly
    by_column = any(column["kind"] == "party" for column in columns)
    several = any(column["kind"] == "class" for column in columns)
    records = answer("records to train on (public)", 1000)
    parties = "least records of a party (public)" if by_column else "parties to deal them to"
    share = answer(parties, 1)
    epsilon = answer("epsilon", 1.0)
    delta = answer("delta", 1e-6)
    return {
        "data": {
            **data,
            "train_records": records,
            ("party_records" if by_column else "parties"): share,
        },
        "privacy": {"adjacency": "replace-one", "epsilon": epsilon, "delta": delta},
        "solver": {
            "algorithm": "consensus-admm",
            "rounds": 36,
            "intercept": True,
            **({"loss": "multinomial"} if several else {}),
        },
        "noise": {"sampler": "system"},
        "attack": {"trials": 1000},
    }


@click.command()
@click.argument("key", required=False)
@click.option(
    "--json-schema",
    "json_schema_of",
    type=click.Choice([*FILES]),
    help="Print a file's JSON schema.",
)
@answers
def explain(key: str | None, json_schema_of: str | None) -> Outcome | None:
    """Say what KEY of a run, a schema or a claim means; without a KEY, list all of them."""
    if json_schema_of is not None:
        click.echo(json.dumps(json_schema(json_schema_of), indent=2))
        return None
    # an unknown key raises, and names the nearest one
    keys = all_keys() if key is None else explained(key)
    head = ("file", "key", "default", "meaning")
    return Outcome(
        title="Keys of the files that people write" if key is None else f"Key {key}",
        data={"keys": keys},
        tables=(TextColumns(head, [_row(each) for each in keys]),),
    )


def _row(key: Key) -> tuple[str, ...]:
    """Return a key as a row of the table."""
    allowed = f" One of {', '.join(key.allowed)}." if key.allowed else ""
    default = {None: "required", "null": ""}.get(key.default, key.default or "")
    return key.file, key.path, default, f"{key.text}{allowed}"
