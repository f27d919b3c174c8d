"""Results of runs as outcomes: plans and training costs, executed runs, ledgers and certificates.

Pure functions of what `runs` and `accounting` return; called by the command line. Plans stand in a
module of their own, which loads no attack.
"""
