"""PR-9 attacked: PR-ADMM whose minimisers are no better than the tolerance tau.

Equation 12 has an argmin, and whoever runs Algorithm 1 stops somewhere: a point is taken for the
minimiser once the gradient there is at most tau. Of all such points these are among those that tell
most: the public part is minimised exactly, and one gradient step of length (1 + o)/m on the data
goes beyond the minimiser by o times its distance. For linear losses |gradient| = o V/|D_i| there.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from ...audits.claims.attack import ClaimAttack, promised_by_mu
from ...audits.claims.claim import Case
from ...audits.neighbours import turned_record
from ...mechanisms.curators import Curator
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sensitive import Sensitive
from ...solvers.decentralised import NetworkState, PrAdmm, trusted_sums
from ...solvers.losses import LinearLoss
from .setting import PrSetting

_ROUNDS = 25
"""Of the attack: the more rounds, the more a difference of one per cent in each of them shows."""

_MOST_RECORDS = 8000
"""Of an agent in the attack: so many that runs take seconds."""

_VISIBLE = 0.006
"""How much farther apart two releases must be than claimed, for a few thousand runs to tell."""


@dataclass(frozen=True, slots=True)
class InexactPrAdmm(PrAdmm):
    """PR-ADMM whose agents stop beyond their minimisers, where the gradient is tau.

    Args:
        overshoot: o = tau |D_i|/V, > 0; 0 for exact minimisers of linear losses.
    """

    overshoot: float = 0.0

    def agent_step(
        self, dataset: PrivateDataset, state: NetworkState, weights: FloatArray | None = None
    ) -> Sensitive:
        """Return -linear/m - ((1 + o)/m) times the mean gradient there, times `weights`.

        The minimiser of the public part is -linear/m; of linear losses the exact minimiser is one
        step of length 1/m away, and the gradient here is -o times the mean gradient.

        Args:
            dataset: the agents' records.
            state: what is public before the round.
            weights: of shape (P,), public; as for the exact step.
        """
        degrees = self.network.degrees.astype(np.float64)
        near = trusted_sums(state, self.network, self.threshold)
        linear = state.duals - self.penalty * (degrees[:, None] * state.messages + near)
        factors = (np.ones(len(degrees)) if weights is None else weights) / self.moduli
        start = dataset.own(-linear / self.moduli[:, None])
        step = dataset.mean_gradient(self.loss, start, weights=-(1.0 + self.overshoot) * factors)
        return step - dataset.own(linear * factors[:, None])


def attacked_setting(case: Case[PrSetting]) -> PrSetting:
    """Return what is run: the case, in a size of data and of so many rounds that the excess shows.

    Fewer records than the claim's have a larger tolerance, which leaves the share tau |D_i|/V as it
    is; how far one minimiser moves does not depend on K.
    """
    s = case.setting
    count = min(s.D, _MOST_RECORDS)
    return replace(s, D=count, tau=s.tau * s.D / count, K=_ROUNDS, K_p=1)


def exact_value(s: PrSetting) -> Fraction:
    """Return 2V/(|D_i| m), by which a record moves an exact minimiser at most.

    Args:
        s: the parameters; m = 2 eta |V_i| + 2 Lambda/N.
    """
    return 2 * Fraction(s.V) / (s.D * s.modulus)


def inexact_run(case: Case[PrSetting]) -> ClaimAttack | None:
    """Return the attack on all messages of PR-ADMM whose minimisers are known to tau only.

    Noise in a round is what a record may move an exact minimiser by, so that K rounds would be
    sqrt(K)-GDP. None where tau is too small for the difference to show, unless it is 0.

    The excess is o in every round, and so in mu: at eight thousand records and tau = 1e-6 it is
    0.8 %, which one round could not show and twenty-five do.

    Args:
        case: the parameters; tau is the verdict's own.
    """
    s = attacked_setting(case)
    overshoot = s.tau * s.D / s.V
    if 0 < overshoot < _VISIBLE:
        return None
    algorithm = InexactPrAdmm(
        s.network,
        s.K,
        1.0,
        penalty=s.eta,
        regularisation=s.Lambda,
        loss=LinearLoss(),
        overshoot=overshoot,
    )

    def solve(dataset: PrivateDataset, curator: Curator) -> None:
        algorithm.run(dataset, curator, exact_value(s), None)

    pair = turned_record(s.shape().parties, each=s.D, row_bound=s.V)
    words = (
        f"{s.K} rounds of PR-ADMM whose agents stop at gradient norm tau = {s.tau:g}, with noise "
        f"as large as the claimed sensitivity, which would make them {sqrt(s.K):.4g}-GDP"
    )
    return ClaimAttack(solve, pair, promised_by_mu(s.K, s.delta), s.delta, words)
