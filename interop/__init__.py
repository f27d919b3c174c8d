"""What other tools wrote, as typed events; and what they read, from ours.

In come files of strangers (a JSON document, a checkpoint) or live `DpEvent`s, with the
neighbouring relation that the reader states for them; out come mechanisms, which `import_into`
records in a ledger, and `DpEvent`s, registry entries and model cards. Nothing read here is ever
executed. Called by the command line's `import` and by audits that compare accountants.

Names are loaded when they are asked for; everything else is importable from its module.
"""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .deployments import Deployment as Deployment
    from .deployments import model_card_section as model_card_section
    from .deployments import registry_entry as registry_entry
    from .dp_events import dp_event_of as dp_event_of
    from .dp_events import mechanism_of as mechanism_of
    from .event_trees import EventTree as EventTree
    from .event_trees import Untranslatable as Untranslatable
    from .event_trees import document_of_tree as document_of_tree
    from .event_trees import tree_of_document as tree_of_document
    from .fields import MalformedImport as MalformedImport
    from .files import KINDS as KINDS
    from .files import import_into as import_into
    from .files import read as read
    from .matrix_mechanism import participation_sensitivity as participation_sensitivity
    from .opacus import mechanisms_of_opacus as mechanisms_of_opacus

__getattr__, __dir__ = names_from(__name__)
