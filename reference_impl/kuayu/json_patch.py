"""JSON Patch (RFC 6902) on large documents: applied by sharing what stays, and made between two documents.

The library jsonpatch copies a document in depth before it changes it, which takes longer than to read megabytes anew,
and does not tell what has stayed. Here every object and array that a patch does not touch is the same Python object
before and after, so that what was found out about it still holds; nothing of the document before is changed. Tests hold
both against the library.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from kuayu import canonical
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents

MAX_DEPTH = 64
"""Objects and arrays within one another, as in every JSON text of the standard."""


class PatchError(ValueError):
    """A patch does not fit the document that it is applied to.

    Attributes:
        position: Place of the operation among all, from nought.
        detail: Why it cannot be carried out.
    """

    def __init__(self, position: int, detail: str) -> None:
        super().__init__(f"operation {position}: {detail}")
        self.position, self.detail = position, detail


def apply(document: Any, operations: Sequence[Mapping[str, Any]], levels: int = MAX_DEPTH) -> Any:
    """What a patch makes of a document, which stays as it was.

    Args:
        document: Any JSON value.
        operations: Valid instances of class PatchOperation: add, remove, replace and test.
        levels: How many objects and arrays may stand within one another in what it makes.

    Raises:
        PatchError: An operation cannot be carried out.
    """
    target = _TargetDocument(document, levels)
    for position, operation in enumerate(operations):
        try:
            if not target.replaces_member(operation):
                target.carry_out(operation)
        except LookupError as error:
            raise PatchError(position, str(error.args[0])) from None
    return target.root


_SIMPLE = (str, float, int, bool, type(None))
"""Types of values that hold no others; a tuple, as there are few."""


class _TargetDocument:
    """A document while it is patched: containers are copied when they are first written to."""

    def __init__(self, root: Any, levels: int) -> None:
        self.root = root
        self._levels = levels
        self._own: dict[int, Any] = {}
        """Copies that were made, by their number: they may be written to, and live as long as they are here."""
        self._array: tuple[str, list[Any]] | None = None
        """Path of the array in whose entries a member was replaced last, and its copy."""

    def replaces_member(self, operation: Mapping[str, Any]) -> bool:
        """Carry out what nearly all operations of a large patch are, if it is that.

        That is to replace a text, a number or the like in an object of the array in which the one before did so, where
        no other operation came between. Whatever else it is, nothing is done.
        """
        if operation["op"] != "replace" or (value := operation.get("value")).__class__ not in _SIMPLE:
            return False
        head, _, last = operation["path"].rpartition("/")
        where, _, index = head.rpartition("/")
        if self._array is None or where != self._array[0] or not index.isdecimal() or "~" in last:
            return False
        entries = self._array[1]
        place = _index(index, len(entries))
        entry = entries[place]
        if entry.__class__ is not dict or last not in entry:
            return False
        if id(entry) not in self._own:
            entry = entries[place] = self._owned(entry)
        entry[last] = value
        return True

    def carry_out(self, operation: Mapping[str, Any]) -> None:
        """Carry out one operation.

        Raises:
            LookupError: There is no such place, or another value.
        """
        verb, path = operation["op"], operation["path"]
        if verb != "remove" and "value" not in operation:
            raise LookupError(f"{verb} needs a value")
        value = operation.get("value")
        self._array = None
        steps = path.split("/")[1:]
        if "~" in path:
            steps = [step.replace("~1", "/").replace("~0", "~") for step in steps]
        if isinstance(value, dict | list) and len(steps) + _depth(value) > self._levels:
            raise LookupError(f"what it leads to would be nested deeper than {self._levels} levels")
        if verb == "test":
            target = self.root
            for step in steps:
                target = target[_place(target, step)]
            if not _equal(target, value):
                raise LookupError(f"there is another value at {path!r}")
        elif not steps:
            if verb == "remove":
                raise LookupError("nothing would be left of the document")
            self.root = value
        else:
            self._write(verb, steps, value)

    def _write(self, verb: str, steps: list[str], value: Any) -> None:
        own, last = self._own, steps.pop()
        parent, array = self.root, None
        if id(parent) not in own:
            parent = self.root = self._owned(parent)
        for step in steps:
            place = _place(parent, step)
            child = parent[place]
            if id(child) not in own:
                child = parent[place] = self._owned(child)
            array, parent = parent, child
        if verb == "replace":
            parent[_place(parent, last)] = value
            if isinstance(array, list) and not any("/" in step for step in steps):
                self._array = "".join(f"/{step}" for step in steps[:-1]), array
        elif verb == "remove":
            del parent[_place(parent, last)]
        elif isinstance(parent, list):
            parent.insert(len(parent) if last == "-" else _index(last, len(parent) + 1), value)
        elif isinstance(parent, dict):
            parent[last] = value
        else:
            raise LookupError(f"{last!r} is asked for of what is neither an object nor an array")

    def _owned(self, container: Any) -> Any:
        """A copy that may be written to; what is neither object nor array is left for the next step to refuse."""
        if not isinstance(container, dict | list):
            return container
        copied = container.copy()
        self._own[id(copied)] = copied
        return copied


def _place(parent: Any, step: str) -> Any:
    """Key or index of a member that is there.

    Raises:
        LookupError: It is not.
    """
    if isinstance(parent, dict):
        if step not in parent:
            raise LookupError(f"there is no member {step!r}")
        return step
    if isinstance(parent, list):
        return _index(step, len(parent))
    raise LookupError(f"{step!r} is asked for of what is neither an object nor an array")


def _index(step: str, length: int) -> int:
    if not (step.isascii() and step.isdecimal()) or (step[0] == "0" and len(step) > 1):
        raise LookupError(f"{step!r} is no index of an array")
    # longer ones are beyond any array, and reading them would take long
    index = int(step) if len(step) < 10 else length  # noqa: PLR2004
    if index >= length:
        raise LookupError(f"there is no index {step[:20]} in an array of {length}")
    return index


def _depth(value: Any) -> int:
    """Objects and arrays within one another; nought of anything else."""
    depth, layer = 0, [value]
    while layer := [value for value in layer if isinstance(value, dict | list)]:
        depth += 1
        layer = [child for value in layer for child in (value.values() if isinstance(value, dict) else value)]
    return depth


def _equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: numbers are by value, and true is no number."""
    try:
        return canonical.dumps(one) == canonical.dumps(other)
    except schema.NotCanonicalError:
        return False


def difference(
    before: Mapping[str, object],
    after: Mapping[str, object],
    key: Callable[[str, Any], Any] = lambda _path, _each: None,
) -> "Iterator[documents.PatchOperation]":
    """Operations that lead from one object to another.

    Args:
        before: Where they lead from.
        after: Where they lead to.
        key: What an entry of an array is known by, from the path of the array and the entry; None where entries are
            known by their place alone. An array with a key that stands twice is replaced as a whole.
    """
    yield from _object("", before, after, key)


def _object(
    path: str, before: Mapping[str, object], after: Mapping[str, object], key: Callable[[str, Any], Any]
) -> "Iterator[documents.PatchOperation]":
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
    for name, value in after.items():
        place = f"{path}/{_escaped(name)}"
        if name in before:
            yield from _value(place, before[name], value, key)
        else:
            yield {"op": "add", "path": place, "value": value}


def _value(
    path: str, before: object, after: object, key: Callable[[str, Any], Any]
) -> "Iterator[documents.PatchOperation]":
    if before is after or orjson.dumps(before) == orjson.dumps(after):  # most of a document, and soon seen
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _object(path, before, after, key)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _array(path, before, after, key)
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _array(
    path: str, before: list[Any], after: list[Any], key: Callable[[str, Any], Any]
) -> "Iterator[documents.PatchOperation]":
    """What is gone goes first, from the end, so that no index moves before its turn; then the rest comes in order."""
    old, new = [key(path, entry) for entry in before], [key(path, entry) for entry in after]
    if None in old or None in new:
        if len(before) != len(after):
            yield {"op": "replace", "path": path, "value": after}
            return
        old = new = list(range(len(before)))
    wanted, old_entries = set(new), dict(zip(old, before, strict=True))
    stayed = [name for name in old if name in wanted]
    if len(wanted) < len(new) or len(old_entries) < len(old) or stayed != [name for name in new if name in old_entries]:
        yield {"op": "replace", "path": path, "value": after}
        return
    for index in range(len(old) - 1, -1, -1):
        if old[index] not in wanted:
            yield {"op": "remove", "path": f"{path}/{index}"}
    for index, (name, value) in enumerate(zip(new, after, strict=True)):
        if name in old_entries:
            yield from _value(f"{path}/{index}", old_entries[name], value, key)
        else:
            yield {"op": "add", "path": f"{path}/{index}", "value": value}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
