"""Privacy profiles of compositions, tight: closed forms, contour integrals, exact integers.

From the bottom:

| modules | what they say |
|---|---|
| `pairs`, `from_mechanisms`, `profiles` | a mechanism's dominating pair, its profile |
| `quadrature`, `nodes`, `moments`, `decay`, `saddle` | moment functions M(1+z) |
| `placement`, `contour` | the inversion of M on a line |
| `closed_form`, `revealed_sample` | losses with few values; shifts so long that one sees them |
| `discretisation`, `distribution` | loss distributions on a lattice, composed in exact integers |
| `routes`, `privacy_profile`, `accountant` | which of these answers; the curve; the accountant |

The modules named `…_certified` do the same in ball arithmetic with proven error terms; "certified"
means there that the bound is *enclosed*, not that a certificate of it was checked.
"""

from typing import TYPE_CHECKING

from ...mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .privacy_profile import PrivacyProfile as PrivacyProfile

__getattr__, __dir__ = names_from(__name__)
