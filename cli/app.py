"""The command `dpledger` and its exit statuses: 0 good, 1 a finding, 2 a mistake, 3 undecided."""

import sys

import click

from ..audits.report.outline import visible
from ..mechanisms.errors import DpledgerError
from .attack import attack
from .audit import audit
from .calibrate import calibrate
from .claims import claims
from .crosscheck import crosscheck
from .curve import curve
from .demo import demo
from .experiment import experiment
from .ledger import ledger
from .membership import membership
from .plan import plan
from .report import report
from .run import run as run_command
from .training import epsilon, noise
from .verify import verify
from .watch import watch

__all__ = ["main", "run"]

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dpledger", prog_name="dpledger")
def main() -> None:
    """A proof-carrying ledger for differential privacy.

    Every printed epsilon says its grade: certified (rigorous), fast, or estimate.
    """


for _command in (
    attack,
    audit,
    calibrate,
    claims,
    crosscheck,
    curve,
    demo,
    epsilon,
    experiment,
    ledger,
    membership,
    noise,
    plan,
    report,
    run_command,
    verify,
    watch,
):
    main.add_command(_command)


def run() -> None:
    """Run the command line; mistakes become one line on standard error and status 2."""
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
    except (DpledgerError, OSError) as error:
        # a message may quote what a stranger wrote
        click.echo(visible(f"{type(error).__name__}: {error}"), err=True)
        sys.exit(2)
