"""UCI Adult: 45,222 complete records of the 1994 US census survey, 104 features, income over $50K.

>>> records = load_adult()
>>> records.features.shape, records.row_bound
((45222, 104), 1.0)
"""

from pathlib import Path

from ..encoding import load_records
from ..records import LabelledRecords
from ..schema import Schema, read_schema

__all__ = ["adult_schema", "load_adult"]

_FOLDER = Path(__file__).parent


def load_adult() -> LabelledRecords:
    """The complete records of UCI Adult, training file first, by the public bounds of `adult.toml`.

    Returns CSR features of shape (45222, 104) with rows of ℓ2 norm at most 1, and labels +1 for an
    income over $50K. `split_records(records, train_records=40_000, seed=...)` divides them in the
    proportion of Huang, Hu, Guo, Chan-Tin and Gong, "DP-ADMM", IEEE TIFS 2020, section VI.

    Source: Becker and Kohavi, 1996; see ATTRIBUTION.md.
    """
    files = [_FOLDER / "adult.data.xz", _FOLDER / "adult.test.xz"]
    return load_records(files, schema=adult_schema())


def adult_schema() -> Schema:
    """The public schema of UCI Adult, which is also the example of a schema."""
    return read_schema(_FOLDER / "adult.toml")
