"""What other tools wrote, as typed events; and what they read, from ours.

Names are loaded when they are asked for; everything else is importable from its module.
"""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .dp_events import dp_event_of as dp_event_of
    from .dp_events import mechanism_of as mechanism_of
    from .event_trees import EventTree as EventTree
    from .event_trees import Untranslatable as Untranslatable
    from .event_trees import document_of_tree as document_of_tree
    from .event_trees import tree_of_document as tree_of_document
    from .opacus import mechanisms_of_opacus as mechanisms_of_opacus
    from .opacus import mechanisms_of_opacus_state as mechanisms_of_opacus_state

__getattr__, __dir__ = names_from(__name__)
