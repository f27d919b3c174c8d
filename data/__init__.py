"""data: records from files, encoded by a public schema; the UCI Adult data set."""

from .adult import load_adult
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
    IgnoredColumn,
    LabelColumn,
    NumericColumn,
    OnOutside,
    PartyColumn,
    Schema,
    parse_schema,
    read_schema,
)

__all__ = [
    "BadValue",
    "CategoricalColumn",
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
    "load_records",
    "parse_schema",
    "read_schema",
    "split_records",
]
