"""The schema of a file: everything that is public about its columns, in strict TOML.

>>> schema = parse_schema('''
... row_bound = 1.0
... on_outside = "clip"
... columns = [
...     {kind = "numeric", name = "age", lower = 17, upper = 99},
...     {kind = "categorical", name = "sex", categories = ["Female", "Male"]},
...     {kind = "label", name = "income", positive = [">50K"], negative = ["<=50K"]},
... ]
... ''')
>>> schema.feature_names
('age', 'sex=Female', 'sex=Male')

The keys are described in `README.md` beside this file. A schema is written from a data set's
documentation, never from its records: a bound or a category read off the records is a release.
"""

from collections.abc import Iterable
from enum import Enum
from math import isfinite
from pathlib import Path

import msgspec

from ..mechanisms.labels import SIGNS, ClassLabels, LabelDomain
from .errors import SchemaError, UnreadableFile
from .strict import ConfigurationError, parse_toml, toml_text


class OnOutside(Enum):
    """What happens to a number outside its public bounds."""

    CLIP = "clip"
    REFUSE = "refuse"


# thousands of columns, or of categories
_MOST_BYTES = 1 << 22


class _Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of the file.

    Args:
        name: as the header spells it.
    """

    name: str


class NumericColumn(_Column, frozen=True, kw_only=True, tag_field="kind", tag="numeric"):
    """A number with public bounds; becomes one feature, mapped affinely onto [0, 1].

    Args:
        lower: public, from the documentation of the data.
        upper: public, likewise.
        on_outside: what happens to a number outside, in this column.
    """

    lower: float
    upper: float
    on_outside: OnOutside | None = None

    def __post_init__(self) -> None:
        if not (self.lower < self.upper and isfinite(self.upper - self.lower)):
            raise ValueError(f"Expected finite lower={self.lower} < upper={self.upper}")


class CategoricalColumn(_Column, frozen=True, kw_only=True, tag_field="kind", tag="categorical"):
    """One of several public categories; becomes one 0/1 feature per category.

    Args:
        categories: all that may occur, public.
    """

    categories: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_words("categories", self.categories)


class LabelColumn(_Column, frozen=True, kw_only=True, tag_field="kind", tag="label"):
    """The label of two classes.

    Args:
        positive: the spellings of the class +1.
        negative: the spellings of the class -1.
    """

    positive: tuple[str, ...]
    negative: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_words("positive", self.positive)
        _require_words("negative", self.negative)
        _require_words("positive + negative", self.positive + self.negative)

    @property
    def numbers(self) -> dict[str, float]:
        """What each spelling becomes."""
        return dict.fromkeys(self.positive, 1.0) | dict.fromkeys(self.negative, -1.0)

    @property
    def domain(self) -> LabelDomain:
        """Which numbers a label can become."""
        return SIGNS


class ClassColumn(_Column, frozen=True, kw_only=True, tag_field="kind", tag="class"):
    """The label, one of two or more public classes.

    Args:
        classes: all that may occur, public; they become 0, 1, ... in this order.
    """

    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_words("classes", self.classes)
        if len(self.classes) < 2:
            raise ValueError(f"classes={list(self.classes)} must be two or more words")

    @property
    def numbers(self) -> dict[str, float]:
        """What each class becomes."""
        return {name: float(number) for number, name in enumerate(self.classes)}

    @property
    def domain(self) -> LabelDomain:
        """Which numbers a label can become."""
        return ClassLabels(len(self.classes))


class PartyColumn(_Column, frozen=True, kw_only=True, tag_field="kind", tag="party"):
    """The data provider that holds the record.

    Args:
        parties: all that there are, public.
    """

    parties: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_words("parties", self.parties)


class IgnoredColumn(_Column, frozen=True, kw_only=True, tag_field="kind", tag="ignored"):
    """A column of the file that is not read."""


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything public about a file: its columns in order, its bounds, how it is written.

    Args:
        columns: one table a column of the file.
        row_bound: public bound on the l2 norm of a row of features; longer rows are scaled down.
        description: of the data, for reports.
        on_outside: what happens to numbers outside their bounds: clip them, or refuse the file.
        missing: spellings of a missing value; a number, however it is spelled (-1 and -1.00).
        drop_missing: whether records with missing values are left out (else they are refused).
        header: whether the first line of a text file names the columns.
        delimiter: between the cells of a text file.
        comment: lines of a text file that begin so are skipped.
    """

    columns: tuple[
        NumericColumn | CategoricalColumn | LabelColumn | ClassColumn | PartyColumn | IgnoredColumn,
        ...,
    ]
    row_bound: float
    description: str = ""
    on_outside: OnOutside = OnOutside.REFUSE
    missing: tuple[str, ...] = ("",)
    drop_missing: bool = False
    header: bool = True
    delimiter: str = ","
    comment: str | None = None

    def __post_init__(self) -> None:
        # the squares of numbers near a smaller bound underflow, and the row norms with them
        if not 1e-100 <= self.row_bound <= 1e100:
            raise ValueError(f"row_bound={self.row_bound} must be in [1e-100, 1e+100]")
        if len(self.delimiter) != 1:
            raise ValueError(f"delimiter={self.delimiter!r} must be one character")
        if self.comment == "":
            raise ValueError("Expected comment to be at least one character")
        _require_words("column names", [column.name for column in self.columns])
        labels = sum(isinstance(column, LabelColumn | ClassColumn) for column in self.columns)
        parties = sum(isinstance(column, PartyColumn) for column in self.columns)
        if labels > 1 or parties > 1 or not self.features:
            raise ValueError(
                "Expected at most one label or class column, at most one party column and at least "
                f"one feature, instead got {labels}, {parties} and {len(self.features)}"
            )

    @property
    def features(self) -> tuple[NumericColumn | CategoricalColumn, ...]:
        """The columns that become features, in order."""
        return tuple(c for c in self.columns if isinstance(c, NumericColumn | CategoricalColumn))

    @property
    def label(self) -> LabelColumn | ClassColumn:
        """The column that is to be learned.

        Raises `SchemaError` where there is none: statistics need no label, training does.
        """
        for column in self.columns:
            if isinstance(column, LabelColumn | ClassColumn):
                return column
        raise SchemaError("Expected one label or class column, which is what is learned.")

    @property
    def party(self) -> PartyColumn | None:
        """The party column, or None."""
        return next((c for c in self.columns if isinstance(c, PartyColumn)), None)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The d names of the features: `age`, `sex=Female`, `sex=Male`, ..."""
        return tuple(name for column in self.features for name in _feature_names(column))


def read_schema(path: str | Path) -> Schema:
    """The schema in the TOML file `path`.

    Raises:
        UnreadableFile: the file is missing or is not text.
        SchemaError: the text is not TOML, a key is unknown (the nearest known one is suggested) or
            missing, or a value is not allowed.
    """
    try:
        text = toml_text(Path(path), _MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"{path}: Expected a readable TOML file in UTF-8 ({error})."
        ) from error
    except ConfigurationError as error:
        raise SchemaError(str(error)) from error
    return parse_schema(text, source=str(path))


def parse_schema(text: str, *, source: str = "schema") -> Schema:
    """The schema in the TOML `text`; `source` is what error messages call it."""
    try:
        return parse_toml(text, Schema, source=source)
    except ConfigurationError as error:
        raise SchemaError(str(error)) from error


def _require_words(what: str, words: Iterable[str]) -> None:
    listed = list(words)
    if not listed or len(set(listed)) < len(listed) or any(w != w.strip() or not w for w in listed):
        raise ValueError(
            f"{what}={listed} must be one or more different words without outer blanks"
        )


def _feature_names(column: NumericColumn | CategoricalColumn) -> tuple[str, ...]:
    if isinstance(column, NumericColumn):
        return (column.name,)
    return tuple(f"{column.name}={category}" for category in column.categories)
