"""Repeating a configured run for a watcher: on neighbouring data, with a control, and its noise.

A production run happens once, on data that nobody may audit. What can be repeated is its
configuration: the installed code, on the holder's records and on a neighbour of them. A sequential
test (`audits.sequential`) adds up the evidence of all repetitions and may be looked at after each;
a control of runs that do not differ tells a broken test from a broken promise. Called by `dpledger
watch` through `audits.watching.Repeats`.

The allowed error 1 - confidence is divided beforehand (`ERROR_SHARES`) between the test, its
control, and the tests of the noise, of which there is one at every look: the k-th has the share
6/(pi k)², and these add up to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np

from ..accounting.ledger.ledger import Ledger, RunSummary
from ..audits.claim_tests import ERROR_SHARES
from ..audits.noise_tests import noise_test_of_run
from ..audits.replay import replay_chunks
from ..audits.sequential import Evidence, SequentialTest, plan_bet
from ..audits.watching import Memory
from ..mechanisms.errors import require_open_unit
from .attack import attacked
from .configuration import Configuration
from .pipeline import Plan
from .planning import plan
from .sections import Noise, SamplerName

_CHUNK = 100
"""Pairs of runs that are repeated in one call of a solver, between two looks at the evidence."""


@dataclass(frozen=True, eq=False)
class RepeatedRuns:
    """The runs of one configuration, whatever their seeds, repeated for a sequential test.

    Args:
        configuration: of the runs.
        trials: pairs of runs that are added for each run of the ledger.
        confidence: that a guarantee that is kept is never refuted, nor its control or its noise
            accused, however many runs come.
    """

    configuration: Configuration
    trials: int
    confidence: float

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)

    @cached_property
    def _plan(self) -> Plan:
        """The plan, made once: the promise and the noise multiplier of every repetition."""
        return plan(self.configuration)

    def key(self, summary: RunSummary, ledger: Ledger) -> str | None:
        """Return what evidence about a run of a ledger is filed under; None for another
        configuration's.

        That is the hash of the configuration with noise of the system. In older ledgers a run with
        another seed has another hash; its seed stands in the ledger.

        Args:
            summary: of the run.
            ledger: that it stands in.
        """
        hashes = set(self.configuration.known_as)
        seeds = {r.provenance.seed for r in ledger.reservations(summary.run)}
        for seed in seeds - {None}:
            for sampler in (SamplerName.PHILOX, SamplerName.PCG64):
                hashes |= self._with(Noise(sampler=sampler, seed=seed)).known_as
        hashes |= self._with(Noise(sampler=SamplerName.SYSTEM)).known_as
        if summary.configuration_hash not in hashes:
            return None
        return self._with(Noise(sampler=SamplerName.SYSTEM)).sha256

    def _with(self, noise: Noise) -> Configuration:
        """Return the configuration with another section of noise."""
        return msgspec.structs.replace(self.configuration, noise=noise)

    def more(self, memory: Memory, key: str, findings: list[str]) -> Evidence | None:
        """Return the evidence after `trials` pairs more; None if nothing is promised.

        A guarantee that is refuted stays so, and only the noise is tested further.

        Args:
            memory: what the watcher knows; evidence of control and noise is kept in it.
            key: what the evidence is filed under, from `key`.
            findings: texts are added to it where noise is not as stated or the control fails.
        """
        configuration, planned = self.configuration, self._plan
        if planned.guarantee.unprotected:
            return None
        error = 1 - self.confidence
        null_test = SequentialTest(
            plan_bet(claimed=planned.promise), 1 - ERROR_SHARES["null control"] * error
        )
        share = 1 - ERROR_SHARES["null control"] - ERROR_SHARES["noise"]
        test = replace(null_test, confidence=1 - share * error)
        solver, pair = attacked(configuration, planned.noise_multiplier)
        tested = memory.noise_tests.get(key, 0) + 1
        # the sum over all tests to come is the noise's share
        level = ERROR_SHARES["noise"] * error * 6 / (math.pi * tested) ** 2
        noise = noise_test_of_run(
            solver.solve, pair.dataset, configuration.build_sampler(), level=level
        )
        memory.noise_tests[key] = tested
        if noise.refuted:
            findings.append(f"noise is not as stated: {noise.detail}")
        evidence, null = (of.get(key, Evidence()) for of in (memory.evidence, memory.nulls))
        if evidence.refuted_after is not None:
            # it stands: no pair is added, so that the control's would be the same ones at each look
            return evidence
        # other noise than that of all pairs before
        words = [configuration.attack.seed, evidence.pairs]
        seed = int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
        for scores in replay_chunks(
            solver.solve, pair.dataset, pair.neighbour, trials=self.trials, seed=seed, chunk=_CHUNK
        ):
            evidence, null = test.after(scores.attack, evidence), null_test.after(scores.null, null)
            if evidence.refuted_after is not None:
                break
        memory.nulls[key] = null
        if null.refuted_after is not None:
            findings.append(
                f"null control failed after {null.refuted_after} pairs: the test proves nothing"
            )
            return Evidence()
        return evidence
