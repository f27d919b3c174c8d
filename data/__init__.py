"""data: records from files, encoded by a public schema; the UCI Adult data set."""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .adult import load_adult
    from .adult.binary import load_adult_binary
    from .digits import load_digits_with_probes
    from .encoding import load_records
    from .errors import (
        BadValue,
        DataError,
        EmptyParty,
        MissingExtra,
        NoRecords,
        SchemaError,
        UnreadableFile,
        WrongColumns,
    )
    from .records import LabelledRecords, split_records
    from .schema import (
        CategoricalColumn,
        ClassColumn,
        IgnoredColumn,
        LabelColumn,
        NumericColumn,
        OnOutside,
        PartyColumn,
        Schema,
        parse_schema,
        read_schema,
    )
    from .synthetic import synthetic_records

__all__ = [
    "BadValue",
    "CategoricalColumn",
    "ClassColumn",
    "DataError",
    "EmptyParty",
    "IgnoredColumn",
    "LabelColumn",
    "LabelledRecords",
    "MissingExtra",
    "NoRecords",
    "NumericColumn",
    "OnOutside",
    "PartyColumn",
    "Schema",
    "SchemaError",
    "UnreadableFile",
    "WrongColumns",
    "load_adult",
    "load_adult_binary",
    "load_digits_with_probes",
    "load_records",
    "parse_schema",
    "read_schema",
    "split_records",
    "synthetic_records",
]

__getattr__ = names_from(
    __name__,
    {
        "adult": ("load_adult",),
        "adult.binary": ("load_adult_binary",),
        "digits": ("load_digits_with_probes",),
        "encoding": ("load_records",),
        "errors": (
            "BadValue",
            "DataError",
            "EmptyParty",
            "MissingExtra",
            "NoRecords",
            "SchemaError",
            "UnreadableFile",
            "WrongColumns",
        ),
        "records": (
            "LabelledRecords",
            "split_records",
        ),
        "schema": (
            "CategoricalColumn",
            "ClassColumn",
            "IgnoredColumn",
            "LabelColumn",
            "NumericColumn",
            "OnOutside",
            "PartyColumn",
            "Schema",
            "parse_schema",
            "read_schema",
        ),
        "synthetic": ("synthetic_records",),
    },
)
