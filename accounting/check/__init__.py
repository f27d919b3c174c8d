"""The independent checker: the standard library and nothing of the project.

`reading` (documents, limits, errors) <- `intervals` (e^x, ln, tails between whole numbers),
`roundings` <- `sensitivities` <- `statements` (notions, axioms, the events of a run) <- `leaves`
(rules for one mechanism) <- `privacy` (rules for what was proved) <- `checker`. Beside it
`losses`, `normal` <- `pairs`, `lattices`, `integer_vectors` (a dominating pair) <- `one_step` (its
loss on a lattice) <- `dominating` (which mechanism has which pair) <- `pld_checker` (composition),
`laplace`: distributions of the privacy loss. `python check CERTIFICATE` runs it alone.
"""
