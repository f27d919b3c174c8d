"""Results of audits as outcomes: pure functions, one module a kind of audit.

What comes in is a result (of a replay attack, of scores, of a black box, of the court, of a look at
a ledger); what goes out is an `Outcome`, whose data are pinned for users by tests/golden. Called by
the command line, and by `runs.outcomes` for what a run includes.
"""
