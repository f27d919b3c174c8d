"""The tight engine: privacy profiles of compositions, by contour integrals and exact integers.

The way of a number: `leaves` reads mechanisms as `dominating` pairs; their moment functions
(`moments`, integrated as `quadrature` plans) are multiplied on the line of the `contour`, which is
placed by bounds from single moments (`saddle`) and cut off where they have fallen (`decay`), very
long sampled shifts as if the sample were told (`revealed`); where that leaves too much open, loss
distributions on a lattice (`discretisation`) are composed in exact integers (`pld`). The modules
named `…_certified` do the same in ball arithmetic with proven error terms. `PrivacyProfile` asks.
"""

from .privacy_profile import PrivacyProfile

__all__ = ["PrivacyProfile"]
