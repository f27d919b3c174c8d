"""Errors of reading records: which file, row, column and value, and what is allowed.

All of them are raised while the data are read, so before any privacy is spent. A message may quote
a private value: it is meant for the person who holds the data, not for publication.
"""

from ..mechanisms.errors import DpledgerError, must, shown_value


class DataError(DpledgerError, ValueError):
    """The records or their schema are not as declared; nothing was spent."""


class SchemaError(DataError):
    """The schema itself is wrong; no data were read."""


class UnreadableFile(DataError):
    """A file is missing, or is not of the kind that its name says."""


class WrongColumns(DataError):
    """The columns of a file are not those of the schema."""


class NoRecords(DataError):
    """No record is left: the file is empty, or every record has a missing value."""


class EmptyParty(NoRecords):
    """A party that the schema names holds no record."""


class BadValue(DataError):
    """One cell is not what the schema allows.

    `place` names file and row, `column` and `value` the cell, `allowed` what the schema says.
    """

    def __init__(self, place: str, column: str, value: object, allowed: str) -> None:
        super().__init__(f"{place}: {column}={shown_value(value)} {must(allowed)}.")
        self.place = place
        self.column = column
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type["BadValue"], tuple[str, str, object, str]]:
        return (type(self), (self.place, self.column, self.value, self.allowed))
