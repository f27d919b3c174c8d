"""Linear constraints A x + B y = c, and the graph-guided fused lasso's: A = [W; I], y = A x.

>>> fused_lasso(2, [(0, 1)]).a.tolist()
[[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..mechanisms.errors import InvalidParameter, require_positive, require_positive_int
from ..mechanisms.protocols import FloatArray
from .regularisers import L1

_GLASSO_ROUNDS = 2000
_GLASSO_CHANGE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A x + B y = c with public matrices of any rank.

    Args:
        a: array of shape (m, d).
        b: array of shape (m, q), or None for -I, so that y = A x - c.
        c: array of shape (m,), or None for 0.

    Attributes:
        norm_squared: ‖A‖².
        split_norm_squared: ‖B‖².

    Raises:
        InvalidParameter: shapes that do not fit, entries that are not finite, b = 0.
    """

    a: FloatArray
    b: FloatArray | None = None
    c: FloatArray | None = None
    norm_squared: float = field(init=False)
    split_norm_squared: float = field(init=False)

    def __post_init__(self) -> None:
        rows = np.shape(self.a)[:1]
        for name, ndim in (("a", 2), ("b", 2), ("c", 1)):
            given = getattr(self, name)
            if given is None:
                continue
            array = np.array(given, dtype=np.float64)
            if array.ndim != ndim or array.size == 0 or array.shape[:1] != rows:
                raise InvalidParameter(f"{name}.shape", array.shape, f"{ndim}-D with {rows} rows")
            if not np.all(np.isfinite(array)):
                raise InvalidParameter(name, "NaN or infinity", "with finite entries")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.b is not None and not self.b.any():
            raise InvalidParameter("b", "zero", "with an entry other than 0")
        split = 1.0 if self.b is None else float(np.linalg.norm(self.b, 2) ** 2)
        object.__setattr__(self, "norm_squared", float(np.linalg.norm(self.a, 2) ** 2))
        object.__setattr__(self, "split_norm_squared", split)

    @property
    def split_dimension(self) -> int:
        """The number q of coordinates of y."""
        return int((self.a if self.b is None else self.b.T).shape[0])

    def residual(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return A x + B y - c of shape (..., m), x of shape (..., d), y of shape (..., q)."""
        moved = x @ self.a.T + (-y if self.b is None else y @ self.b.T)
        return moved if self.c is None else moved - self.c

    def split_adjoint(self, r: FloatArray) -> FloatArray:
        """Return Bᵀ r of shape (..., q), r of shape (..., m)."""
        return -r if self.b is None else r @ self.b


def fused_lasso(
    features: int, edges: Sequence[tuple[int, int]], signs: Sequence[float] | None = None
) -> Constraint:
    """Return y = [W; I] x: differences of neighbouring coefficients, and the coefficients.

    Args:
        features: d.
        edges: public pairs of features; each gives a row x_i - sign·x_j of W.
        signs: ±1 for each edge (the sign of a correlation), all +1 without.
    """
    require_positive_int("features", features)
    given = [1.0] * len(edges) if signs is None else [float(sign) for sign in signs]
    if len(given) != len(edges) or any(abs(sign) != 1.0 for sign in given):
        raise InvalidParameter("signs", signs, f"{len(edges)} numbers in {{-1, +1}}")
    w = np.zeros((len(edges), features))
    for row, (i, j), sign in zip(w, edges, given, strict=True):
        if not (0 <= i < features and 0 <= j < features) or i == j:
            raise InvalidParameter("edge", (i, j), f"of two features in [0, {features - 1}]")
        row[i], row[j] = 1.0, -sign
    return Constraint(np.vstack([w, np.eye(features)]))


def inverse_covariance_edges(moment: FloatArray, *, penalty: float) -> list[tuple[int, int]]:
    """Return the pairs of features that a sparse inverse covariance joins, a public function.

    The inverse covariance minimises tr(S Θ) - ln det Θ + penalty·sum|Θ_ij| (Friedman, Hastie,
    Tibshirani 2008), found by ADMM (Boyd et al. 2011, section 6.5).

    Args:
        moment: S of shape (d, d); its symmetric, positive semidefinite part is used, so that a
            noisy one will do.
        penalty: > 0; a pair whose |S_ij| and all whose indirect ties are below it is not joined.
    """
    require_positive("penalty", penalty)
    values, vectors = np.linalg.eigh((moment + moment.T) / 2.0)
    s = (vectors * np.maximum(values, 0.0)) @ vectors.T
    z = u = np.zeros_like(s)
    for _ in range(_GLASSO_ROUNDS):
        values, vectors = np.linalg.eigh(z - u - s)
        theta = (vectors * (values + np.sqrt(values**2 + 4.0)) / 2.0) @ vectors.T
        before, z = z, L1().proximal(theta + u, penalty)
        u = u + theta - z
        if np.abs(z - before).max() <= _GLASSO_CHANGE * np.abs(z).max():
            break
    i, j = np.nonzero(np.triu(z, 1))
    return [(int(a), int(b)) for a, b in zip(i, j, strict=True)]
