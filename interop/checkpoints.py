"""Checkpoints of torch as plain data, executed nowhere: containers and numbers, all else opaque.

A checkpoint is a zip file with a pickle in it (or, before torch 1.6, pickles one after the other).
A pickle is a program; this reads the few instructions that build dictionaries, lists, tuples,
numbers and texts, and answers every class or function that it names with `Opaque`, which can be
called and does nothing. No module is imported, no weight is read, and tensors are `Opaque`.
"""

import io
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from typing import Any, NoReturn

from .fields import MalformedImport

_MOST_BYTES = 1 << 22
"""Of a checkpoint's pickle: names and shapes, 100 bytes a tensor; the weights are elsewhere."""
_MOST_PICKLES = 6
"""A checkpoint before torch 1.6 is five pickles (magic number, protocol, system, object, keys of
its storages) and then raw weights; one more shows that the weights were reached."""

_INSTRUCTIONS = frozenset(
    word
    for line in (
        # the end, containers, and how they are filled
        "PROTO FRAME STOP MARK EMPTY_DICT EMPTY_LIST EMPTY_TUPLE EMPTY_SET TUPLE TUPLE1 TUPLE2",
        "TUPLE3 SETITEM SETITEMS APPEND APPENDS ADDITEMS POP POP_MARK DUP",
        # constants
        "NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT BINUNICODE",
        "SHORT_BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 SHORT_BINSTRING BINSTRING",
        # references
        "BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE BINPERSID",
        # classes and calls, which are opaque
        "GLOBAL STACK_GLOBAL REDUCE NEWOBJ BUILD",
    )
    for word in line.split()
)
"""The opcodes of `pickletools` that are read. INST, OBJ and EXT*, which call or look up in other
ways, are not among them; GLOBAL and REDUCE are, because `find_class` answers them with `Opaque`."""


_MOST_HASHED = 1 << 22
"""Parts of tuples that loading a pickle may hash; each is counted whenever its tuple is used."""


class _TupleWork:
    """Bounds what hashing the tuples of a pickle can cost, before anything is loaded.

    A tuple of two references to a tuple of two references ... has 2^depth parts in a few bytes, and
    as a key of a dictionary all of them are hashed. So the stack is followed with numbers of parts
    in place of values: a tuple has one more than its entries together, everything else has one. A
    tuple is hashed at most once each time it is put on the stack, so the sum of those bounds it.
    """

    def __init__(self, where: str) -> None:
        self._where, self._work = where, 0
        self._stack: list[int | None] = []  # None is a mark
        self._memo: dict[int, int] = {}

    def step(self, instruction: pickletools.OpcodeInfo, argument: Any) -> None:
        """Follow one instruction; raises `MalformedImport` above `_MOST_HASHED`.

        Args:
            instruction: of `pickletools`, which knows what each takes from the stack and leaves.
            argument: that stands behind it; of the memo's instructions the place.
        """
        name = instruction.name
        if name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._memo[len(self._memo) if name == "MEMOIZE" else int(argument)] = self._top()
            return
        if name in ("BINGET", "LONG_BINGET"):
            self._push(self._memo.get(int(argument), 1))
        elif name == "DUP":
            self._push(self._top())
        elif name == "MARK":
            self._stack.append(None)
        else:
            taken = self._taken(instruction)
            parts = 1 + sum(taken) if name.startswith("TUPLE") else 1
            for _ in instruction.stack_after:
                self._push(parts)

    def _taken(self, instruction: pickletools.OpcodeInfo) -> list[int]:
        """Remove what an instruction takes from the stack, and return it.

        A pickle that takes more than there is is broken; loading it will say so, and here what is
        missing counts as one part.
        """
        before = instruction.stack_before
        taken: list[int] = []
        if pickletools.markobject in before:
            while self._stack and (found := self._stack.pop()) is not None:
                taken.append(found)
            before = before[: before.index(pickletools.markobject)]
        taken += [self._stack.pop() or 1 if self._stack else 1 for _ in before]
        return taken

    def _top(self) -> int:
        return (self._stack[-1] or 1) if self._stack else 1

    def _push(self, parts: int) -> None:
        """Put a value of so many parts on the stack; only tuples have more than one."""
        self._stack.append(parts)
        self._work += parts - 1
        if self._work > _MOST_HASHED:
            raise MalformedImport(
                f"{self._where}: its tuples must have at most {_MOST_HASHED} parts in all."
            )


class Opaque:
    """Whatever a pickle names: it takes any arguments, any state and any items, and keeps none."""

    def __new__(cls, *args: object, **named: object) -> "Opaque":
        return super().__new__(cls)

    def __init__(self, *args: object, **named: object) -> None:
        """Take anything."""

    def __call__(self, *args: object, **named: object) -> "Opaque":
        return Opaque()

    def __setstate__(self, state: object) -> None:
        """Keep nothing."""

    def __setitem__(self, key: object, value: object) -> None:
        """Keep nothing."""

    def append(self, value: object) -> None:
        """Keep nothing."""

    def extend(self, values: object) -> None:
        """Keep nothing."""

    add = append
    update = extend


class _Inert(pickle.Unpickler):
    """An unpickler for which every name but that of an ordered dictionary is `Opaque`."""

    def find_class(self, module: str, name: str, /) -> Any:
        """Return `OrderedDict`, as torch keeps a state, or `Opaque`; never imports anything."""
        return OrderedDict if (module, name) == ("collections", "OrderedDict") else Opaque

    def persistent_load(self, pid: Any, /) -> Any:
        """Return `Opaque` for a tensor's storage, whose bytes lie elsewhere in the file."""
        return Opaque()


def plain_data_of(content: bytes, where: str) -> list[Any]:
    """Return what the pickles of a checkpoint hold, one after the other.

    Args:
        content: the file's bytes.
        where: its name, for messages.

    Raises `MalformedImport` for what is none, or too large, or uses other instructions.
    """
    if zipfile.is_zipfile(io.BytesIO(content)):
        return [_pickled(io.BytesIO(_zipped(content, where)), where)]
    stream, found = io.BytesIO(content[:_MOST_BYTES]), list[Any]()
    while len(found) < _MOST_PICKLES and stream.tell() < len(stream.getbuffer()):
        try:
            found.append(_pickled(stream, where))
        except MalformedImport:
            if not found:
                raise
            break  # behind an old checkpoint's pickles are the weights
    if not found:
        raise MalformedImport(f"{where}: must not be empty.")
    return found


def _zipped(content: bytes, where: str) -> bytes:
    """Return the bytes of the one data.pkl in a zip file, `_MOST_BYTES` at most.

    Both the size that the archive states and the bytes that come out are bounded: a stated size
    may be a lie, and a small archive can unpack to any length. `MalformedImport` for all that is
    wrong.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = [m for m in archive.infolist() if m.filename.rpartition("/")[2] == "data.pkl"]
            if len(inside) != 1:
                raise MalformedImport(
                    f"{where}: must hold one data.pkl, as checkpoints of torch do."
                )
            if inside[0].file_size > _MOST_BYTES:
                _too_large(where)
            with archive.open(inside[0]) as member:
                found = member.read(_MOST_BYTES + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as error:
        raise MalformedImport(f"{where}: must be a whole zip file: {error}.") from error
    except ValueError as error:
        if isinstance(error, MalformedImport):
            raise
        raise MalformedImport(f"{where}: must be a whole zip file.") from error
    if len(found) > _MOST_BYTES:
        _too_large(where)
    return found


def _too_large(where: str) -> NoReturn:
    raise MalformedImport(f"{where}: its pickle must have at most {_MOST_BYTES} bytes.")


def _pickled(stream: io.BytesIO, where: str) -> Any:
    """Return what the pickle at a stream's position holds; leaves the stream behind it.

    Two passes: all opcodes are read and compared with `_INSTRUCTIONS` first, so that nothing of a
    pickle is loaded where its last opcode is a forbidden one.
    """
    start = stream.tell()
    try:
        work = _TupleWork(where)
        for instruction, argument, _ in pickletools.genops(stream):
            if instruction.name not in _INSTRUCTIONS:
                raise MalformedImport(
                    f"{where}: instruction {instruction.name} of its pickle must be one of plain "
                    "data; it is not executed."
                )
            # a memo is an array: one far place would take all memory
            if instruction.name == "LONG_BINPUT" and int(argument or 0) > _MOST_BYTES:
                raise MalformedImport(f"{where}: place {argument} in a memo must be a near one.")
            work.step(instruction, argument)
        stream.seek(start)
        return _Inert(stream).load()
    except MalformedImport:
        raise
    except (Exception, RecursionError) as error:
        # a broken pickle raises almost anything
        reason = f"{type(error).__name__}: {error}"[:200]
        raise MalformedImport(f"{where}: must be a whole pickle ({reason}).") from error
