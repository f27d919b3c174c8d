"""Digits 4 against 9 with thousands of features: a stand-in for the gisette data set.

>>> load_digits_with_probes(features=500).features.shape
(361, 500)

Gisette (Guyon, Gunn, Ben-Hur, Dror 2004) is 7,000 handwritten digits 4 and 9 of 28×28 pixels, whose
5,000 features are pixels, products of pairs of pixels, and probes without any information. This is
the same made of the 8×8 images that scikit-learn ships: 64 pixels, products, and 30 % probes. It
is not gisette: it has 361 records and less detail. What it keeps is the case of many more features
than records.
"""

import numpy as np

from ..mechanisms.clipping import project_to_ball
from ..mechanisms.data_shape import EVERYBODY
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.extras import import_extra
from .records import LabelledRecords

_GREATEST = 16.0
"""The darkest value of a pixel, by the documentation of the images."""

_PIXELS = 64
"""Of an 8×8 image."""

_SHARE_OF_PROBES = 0.3
"""Of all features: what is drawn without a look at any image."""


def load_digits_with_probes(*, features: int = 5000, seed: int = 0) -> LabelledRecords:
    """Return the images of 4 (label +1) and 9 (label -1) as dense rows of norm at most 1.

    A record's row depends on its own image, its position and the seed only. Pixels are mapped from
    their public range [0, 16] onto [0, 1], and a row longer than 1 is scaled down to it.

    Args:
        features: in all, at least 100; 3 of 10 are probes, 64 pixels, the others products.
        seed: of the choice of products, and of the probes.

    Raises:
        MissingExtra: scikit-learn, whose images these are, is not installed.
    """
    if features < 100:
        raise InvalidParameter("features", features, "a whole number in [100, inf)")
    datasets = import_extra("sklearn.datasets", "sklearn")
    images, digits = datasets.load_digits(return_X_y=True)
    chosen = np.flatnonzero((digits == 4) | (digits == 9))
    pixels = np.clip(images[chosen] / _GREATEST, 0.0, 1.0)
    rng = np.random.default_rng(seed)
    probes = int(features * _SHARE_OF_PROBES)
    pairs = rng.integers(_PIXELS, size=(2, features - probes - _PIXELS))
    products = pixels[:, pairs[0]] * pixels[:, pairs[1]]
    # as dark as products of pixels often are, and as often
    noise = rng.random((len(pixels), probes)) * (rng.random((len(pixels), probes)) < 0.25)
    rows = project_to_ball(np.hstack([pixels, products, noise]), 1.0)
    return LabelledRecords(
        features=rows,
        labels=np.where(digits[chosen] == 4, 1.0, -1.0),
        feature_names=(
            *(f"pixel {i}" for i in range(_PIXELS)),
            *(f"pixel {i} × pixel {j}" for i, j in pairs.T),
            *(f"probe {i}" for i in range(probes)),
        ),
        row_bound=1.0,
        description=f"digits 4 and 9 (scikit-learn), {features} features, {probes} of them probes",
        parties=EVERYBODY,
        party_of=np.zeros(len(rows), dtype=np.intp),
    )
