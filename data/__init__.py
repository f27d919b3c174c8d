"""data: records from files, encoded by a public schema; the UCI Adult data set."""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from ..mechanisms.extras import MissingExtra as MissingExtra
    from .adult import load_adult as load_adult
    from .adult.binary import load_adult_binary as load_adult_binary
    from .digits import load_digits_with_probes as load_digits_with_probes
    from .encoding import load_records as load_records
    from .encoding import load_table as load_table
    from .encoding import load_unlabelled as load_unlabelled
    from .errors import BadValue as BadValue
    from .errors import DataError as DataError
    from .errors import EmptyParty as EmptyParty
    from .errors import NoRecords as NoRecords
    from .errors import SchemaError as SchemaError
    from .errors import UnreadableFile as UnreadableFile
    from .errors import WrongColumns as WrongColumns
    from .records import LabelledRecords as LabelledRecords
    from .records import split_by_content as split_by_content
    from .records import split_records as split_records
    from .schema import CategoricalColumn as CategoricalColumn
    from .schema import ClassColumn as ClassColumn
    from .schema import IgnoredColumn as IgnoredColumn
    from .schema import LabelColumn as LabelColumn
    from .schema import NumericColumn as NumericColumn
    from .schema import OnOutside as OnOutside
    from .schema import PartyColumn as PartyColumn
    from .schema import Schema as Schema
    from .schema import parse_schema as parse_schema
    from .schema import read_schema as read_schema
    from .synthetic import synthetic_records as synthetic_records

__getattr__, __dir__ = names_from(__name__)
