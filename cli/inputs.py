"""Arguments and options that several commands share.

A file that must exist is checked before a command runs; a new one may exist, and what it then means
is the command's to say. Relations are spelt as in configurations and ledgers: "replace-one",
"zero-out-one", "add-remove-one".
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from ..mechanisms.adjacency import Adjacency

F = TypeVar("F", bound=Callable[..., Any])
"""A command, before and after options are added to it."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""An existing file."""
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
"""A file that may exist or be made."""
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
"""An existing folder."""
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
"""A folder that may exist or be made."""


class Among(click.Choice[str]):
    """One of the values of an enum; the command gets the enum."""

    def __init__(self, kind: type[Enum]) -> None:
        """Take the texts of an enum's values as choices."""
        super().__init__([each.value for each in kind])
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the enum of a text."""
        return self._kind(super().convert(value, param, ctx))


RELATION = Among(Adjacency)
"""A relation of neighbours, by its text."""

configuration_argument = click.argument("configuration_path", metavar="CONFIG", type=FILE)
"""The TOML file of a run."""
adjacency_option = click.option("--adjacency", type=RELATION, required=True)
"""A relation that has no default: what a number means depends on it, so nobody may guess it."""
certificate_option = click.option(
    "--certificate",
    type=NEW_FILE,
    help="Write a certificate to this file: `dpledger verify` checks it.",
)
"""Where to write the proof of what is printed; nothing is written where nothing could be proved."""


def options(*each: Callable[[F], F]) -> Callable[[F], F]:
    """Return several options as one decorator, in the order of the help page."""

    def decorate(command: F) -> F:
        for option in reversed(each):
            command = option(command)
        return command

    return decorate


training_options = options(
    click.option(
        "--sampling",
        help="none, poisson, truncated-poisson, cyclic-poisson, fixed-batch, with-replacement or "
        "shuffled.",
    ),
    click.option("--adjacency", help="add-remove-one, zero-out-one or replace-one."),
    click.option("--records", type=int, help="Number of records, public."),
    click.option("--batch", type=int, help="(Expected) records of a batch."),
    click.option("--rate", type=float, help="In place of --batch / --records; cyclic: of a group."),
    click.option("--steps", type=int, help="Optimiser steps, exact."),
    click.option("--epochs", type=float, help="In place of --steps; rounded up to whole steps."),
    click.option("--accumulation", type=int, default=1, help="Parts a batch is computed in."),
    click.option("--largest-batch", type=int, help="Truncated-poisson: larger ones are cut to it."),
    click.option("--cycle", type=int, help="Cyclic-poisson: groups of records that take turns."),
    click.option("--records-per-unit", type=int, default=1, help="Records of a person, at most."),
    click.option("--best-of", type=float, help="Mean of a geometric number of runs: the best's."),
)
"""What people state of a training run, for `accounting.training`; sampling and relation have no
defaults, and an answer without them lists every reading.
"""


def claim_options(words: str) -> Callable[[F], F]:
    """Return the options --epsilon and --mu, of which a claim states one, with this help."""
    return options(
        click.option("--epsilon", type=float, help=words),
        click.option("--mu", type=float, help=words),
    )


def confidence_option(words: str | None = None) -> Callable[[F], F]:
    """Return the option --confidence, 0.95 by default, with this help."""
    return click.option("--confidence", type=float, default=0.95, help=words)


def refuse(rule: str, *options: object) -> None:
    """Raise a mistake of usage, "Expected RULE.", if any of these options is given.

    Args:
        rule: when they may be given, for instance "--trials with --rerun only".
        options: their values, None where an option is not given.
    """
    if any(option is not None for option in options):
        raise click.UsageError(f"Expected {rule}.")


class Redirected(click.Command):
    """A command that hands calls with a certain word in them to another, with all options.

    `dpledger curve CONFIG` and `dpledger curve --noise-multiplier ...` ask for different things:
    each is a command of its own with its own options, required ones among them, and the word that
    only one of them knows decides.
    """

    other: ClassVar[click.Command]
    word: ClassVar[str]
    first: ClassVar[bool]

    @classmethod
    def to(cls, other: click.Command, word: str, *, first: bool = False) -> type[Redirected]:
        """Return the class of a command that hands over where `word` is an option, or is first.

        Args:
            other: the command that answers instead.
            word: an option; or, with `first`, the first argument, which is left out then.
            first: whether the word counts as a first argument only.
        """
        # click makes a command of a class: so the class knows where to go
        return type("Redirected", (cls,), {"other": other, "word": word, "first": first})

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of the command that will answer.

        Args:
            info_name: the command as it was called.
            args: all arguments, of which one may be the word.
            parent: the group's context.
        """
        # the word itself is no argument of the other command
        if self.first and args[:1] == [self.word]:
            name = f"{info_name} {self.word}"
            return self.other.make_context(name, args[1:], parent, **extra)
        if not self.first and any(arg.partition("=")[0] == self.word for arg in args):
            return self.other.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)
