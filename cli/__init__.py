"""The front door: one module a command; parses, calls, prints; no mathematics.

A command parses its options, calls one function of a library room, and prints the outcome that
comes back. Whether something is a finding, how a bound is rounded and what a mistake is called is
decided there, so that a program that imports `dpledger` gets what a command prints. Options that
several commands have stand in `inputs`, printing and exit statuses in `output`.

No `if` here is about privacy, and none compares quantities: those that there are choose between
forms of a command (a run of ours or a model of the user's own), and refuse options of the other
form.
"""

from .app import main, run

__all__ = ["main", "run"]
