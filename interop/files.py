"""Files of other tools as events, and into a ledger: one function, by kind.

Every kind that does not state its neighbouring relation is asked for one; nothing is guessed. What
is no such file, or has no rule here, is refused in one sentence and records nothing.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..accounting.accountants import tightest_accountant
from ..accounting.composition import composed
from ..accounting.ledger.ledger import Ledger, Run
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import DpledgerError, InvalidParameter
from ..mechanisms.events import Audience, Context, Event, Mechanism
from ..mechanisms.protocols import IMPORTED, Provenance
from .accountant_states import mechanisms_of_diffprivlib, mechanisms_of_flower
from .checkpoints import plain_data_of
from .dp_events import mechanisms_of_tree
from .event_trees import tree_of_document
from .fields import MalformedImport, json_of
from .opacus import mechanisms_of_opacus
from .training_parameters import (
    mechanisms_of_jax_privacy,
    mechanisms_of_matrix,
    mechanisms_of_tf_privacy,
)

MOST_FILE_BYTES = 1 << 30
"""Of a checkpoint, weights included; a document is far smaller (`fields.MOST_BYTES`)."""


def _dp_event(document: Any, where: str, *, adjacency: Adjacency) -> tuple[Mechanism, ...]:
    # their noise multiplier is noise over the bound on a record, and one replaced moves two
    """Return the mechanisms of a document of dp_accounting's events."""
    size = 2 if adjacency is Adjacency.REPLACE_ONE else 1
    return mechanisms_of_tree(tree_of_document(document), adjacency=adjacency, sensitivity=size)


def _opacus(held: Any, where: str, *, adjacency: Adjacency) -> tuple[Mechanism, ...]:
    """Find the accountant's state: what `save_checkpoint` calls it, or a document itself."""
    states = _states(held)
    if len(states) > 1:
        raise MalformedImport(f"{where}: must hold one accountant, not several.")
    for state in states or (held if isinstance(held, list) else [held]):
        if isinstance(state, Mapping) and isinstance(state.get("history"), list):
            if not states and len(state) > 1 and "mechanism" not in state:
                raise MalformedImport(
                    f"{where}: must hold the state of an accountant of Opacus, which has a "
                    "mechanism beside its history: this may be a history of something else."
                )
            return mechanisms_of_opacus(state["history"], adjacency=adjacency)
    raise MalformedImport(f"{where}: must hold a history of an accountant of Opacus.")


def _states(held: Any) -> list[Any]:
    """Return what stands under `_IN_CHECKPOINT` in a document, at any depth.

    A checkpoint has keys of its user's own beside the state, or around it, which may be called like
    those of a state. One that carries another state beside its own (of a model that it was tuned
    from) holds two; nothing says which of them, or whether both, the reader means to be priced.

    Args:
        held: plain containers, which may share parts, or contain themselves.
    """
    found, looked, waiting = list[Any](), set[int](), [held]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping | list | tuple) and id(one) not in looked:
            looked.add(id(one))
            if isinstance(one, Mapping) and _IN_CHECKPOINT in one:
                found.append(one[_IN_CHECKPOINT])
            waiting += one.values() if isinstance(one, Mapping) else one
    return found


_IN_CHECKPOINT = "privacy_accountant_state_dict"
"""The key under which `PrivacyEngine.save_checkpoint` of Opacus keeps its accountant's state."""

_Reader = Callable[..., tuple[Mechanism, ...]]
_READERS: Mapping[str, _Reader] = {
    "dp-event": _dp_event,
    "opacus": _opacus,
    "tf-privacy": mechanisms_of_tf_privacy,
    "jax-privacy": mechanisms_of_jax_privacy,
    "matrix": mechanisms_of_matrix,
    "flower": mechanisms_of_flower,
    "diffprivlib": mechanisms_of_diffprivlib,
}
"""By kind: from the parsed document, the file's name and the relation to mechanisms."""

RELATIONS = (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE)
"""The relations of one record, of which other tools' numbers speak."""

KINDS = tuple(_READERS)
"""What `read` knows: a document of dp_accounting's events, a state or checkpoint of Opacus, stated
parameters of TensorFlow Privacy or jax-privacy, a matrix mechanism, states of Flower's and of
diffprivlib's accountants."""


def read(kind: str, file: Path | str, *, adjacency: Adjacency) -> list[Event]:
    """Return the events that a file of another tool lists; nothing in it is executed.

    Args:
        kind: one of `KINDS`.
        file: its path.
        adjacency: the relation that its numbers are to be read under; a file that states its own
            must state this one.

    Raises:
        MalformedImport: no such file, or not of this kind.
        Untranslatable: what it lists has no rule here; named.
        InvalidParameter: a number outside its range, or an unknown kind.
    """
    return read_bytes(kind, _content(Path(file)), Path(file).name, adjacency=adjacency)


def _content(path: Path) -> bytes:
    """Return a file's bytes; its size is looked at before it is read."""
    if path.stat().st_size > MOST_FILE_BYTES:
        raise MalformedImport(f"{path.name}: must have at most {MOST_FILE_BYTES} bytes.")
    return path.read_bytes()


def read_bytes(kind: str, content: bytes, where: str, *, adjacency: Adjacency) -> list[Event]:
    """Return the events that a file's bytes list; `where` names it in messages. As `read`."""
    if kind not in _READERS:
        raise InvalidParameter("kind", kind, f"one of {', '.join(KINDS)}")
    if adjacency not in RELATIONS:
        # their numbers are against the bound on one record, which says nothing of others
        allowed = ", ".join(relation.value for relation in RELATIONS)
        raise InvalidParameter("adjacency", adjacency.value, f"one of {allowed}")
    if kind == "opacus" and content.lstrip()[:1] != b"{":
        document: Any = plain_data_of(content, where)
    else:
        document = json_of(content, where)
    try:
        mechanisms = _READERS[kind](document, where, adjacency=adjacency)
    except DpledgerError as error:
        # a reader that knows the place inside the file has said so already
        if str(error).startswith(where):
            raise
        raise MalformedImport(f"{where}: {error}") from error
    if not mechanisms:
        raise MalformedImport(f"{where}: must list at least one release.")
    release = f"as {kind} lists it"
    return [
        Event(mechanism, Context((), place, release, Audience.PUBLIC))
        for place, mechanism in enumerate(mechanisms, start=1)
    ]


def import_into(
    ledger: Ledger, kind: str, file: Path | str, *, adjacency: Adjacency, run: str | None = None
) -> tuple[Run, list[Event]]:
    """Record a file's events in a ledger as a run of its own, all or nothing; return both.

    The ledger's budget refuses what would cross it; that it was spent elsewhere already is for
    whoever imports to mend. Nobody here saw the noise: the row's sampler says where it is from. Nor
    does a history tell whether its steps and its end were fixed beforehand: certificates name that
    as assumed (`accounting.ledger.ledger.HISTORY`).

    Args:
        ledger: opened for writing.
        kind, file, adjacency: as for `read`.
        run: its name; by default the kind and the first digits of the file's SHA-256.

    Raises as `read` and `Run.reserve` do; `UnpricedMechanism` for what has no rule here under this
    relation, and would leave the ledger without an epsilon; `InvalidParameter` for a run that is
    there already and has its events; one that was cut off before it had any goes on.
    """
    content = _content(Path(file))
    events = read_bytes(kind, content, Path(file).name, adjacency=adjacency)
    digest = hashlib.sha256(content).hexdigest()
    name = run or f"{kind} {digest[:12]}"
    # a run without a reservation is one that was cut off, or lost the race for the budget
    if any(known.run == name and known.reservations for known in ledger.runs()):
        raise InvalidParameter("run", name, "a new one: a file is imported once")
    # all of them, before the run is opened: a refused import leaves no row
    tightest_accountant(composed(events))
    ledger.require(events)
    opened = ledger.run(name, configuration_hash=digest, plan=events)
    opened.commit(opened.reserve(events, Provenance(f"{IMPORTED}{kind}", None)))
    return opened, events
