"""The command `dpledger` and its exit statuses: 0 good, 1 a finding, 2 a mistake, 3 undecided.

Start-up is the price of every call, so each command's module is imported when that command is
called; the list of names stands here, and `--help` of the group alone loads all of them.

Standard output has the answer, in text or with `--json` in JSON; standard error has progress, on a
terminal only, and mistakes. The statuses are for scripts:

    0    good: nothing was found
    1    a finding: a broken promise, a refuted claim, a changed ledger, an unprotected release
    2    a mistake of the caller's, or a file that cannot be read: one line says what must be
    3    undecided: no rule applies, or the search was in vain
    130  interrupted; what was reserved counts as spent, and ledgers stay valid
"""

from __future__ import annotations

import sys
from importlib import import_module
from keyword import iskeyword

import click

INTERRUPTED = 130
"""The status of a process that was interrupted: 128 and the number of SIGINT, as shells have it."""

_COMMANDS = {
    "attack": "attack",
    "audit": "audit",
    "calibrate": "calibrate",
    "claims": "claims",
    "crosscheck": "crosscheck",
    "curve": "curve",
    "demo": "run",
    "epsilon": "training",
    "experiment": "experiment",
    "federate": "federation",
    "explain": "init",
    "import": "foreign",
    "init": "init",
    "ledger": "ledger",
    "membership": "membership",
    "noise": "training",
    "party": "federation",
    "plan": "plan",
    "predict": "predict",
    "report": "report",
    "run": "run",
    "stats": "stats",
    "verify": "verify",
    "watch": "watch",
}
"""Name of a command -> the module that has it; imported when the command is called."""


class _Commands(click.Group):
    """A group whose commands are imported when they are called, or listed by `--help`.

    `dpledger plan` then pays for its own imports alone, and not for scikit-learn's or matplotlib's.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return a command by its name; fail for any other, with the nearest."""
        if cmd_name not in _COMMANDS:
            from ..data.hints import among

            ctx.fail(f"command={cmd_name!r} must be {among(cmd_name, sorted(_COMMANDS))}")
        # relative to this package, wherever it is installed
        module = import_module(f".{_COMMANDS[cmd_name]}", __package__)
        # a word of Python's has an underscore behind it
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(module, name)
        return command


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="dpledger", prog_name="dpledger")
def main() -> None:
    """A proof-carrying ledger for differential privacy.

    Every printed epsilon says its grade: proved, enclosed, fast, or estimate.
    """


def run() -> None:
    """Run the command line; mistakes become one line on standard error and status 2.

    click's own statuses are not used: it would give 1, which stands for a finding, to a mistake.
    """
    try:
        main(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted: what was reserved counts as spent; ledgers stay valid.", err=True)
        sys.exit(INTERRUPTED)
    except Exception as error:
        _tell(error)


def _tell(error: Exception) -> None:
    """Print a mistake and exit; raise what is none again.

    What is no mistake, but a fault of this program, is raised with its traceback: it must not be
    taken for a mistake of the caller's.
    """
    from ..audits.visible_text import mistake
    from ..mechanisms.errors import DpledgerError

    # only what the library raises on purpose, and what the file system refuses, is a mistake
    if not isinstance(error, DpledgerError | OSError):
        raise error
    click.echo(mistake(error), err=True)
    sys.exit(2)
