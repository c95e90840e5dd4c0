"""Rules of the register of stability: which mark the changed item had, and what its promise says of the change.

1. What counts is the mark in the older version: that is what somebody relied on.
2. A breaking change of a stable item comes with a major version alone, before 1.0 with a minor one, and is told as
   such. One of a provisional item is permitted with any minor version. A deprecated item is withdrawn as announced,
   no earlier than the version that it names.
3. A class has the firmest mark of the operations that carry it; a measure and a mapping that of their indicator.
4. What has no mark, such as an exporter, and all of a version without the register, is held to be stable.

Sources: clause *Data*, section *Stability*; Semantic Versioning 2.0.0, for numbers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from changes import interface
from changes.change import Change, change, from_to
from changes.versions import Row, Version
from lint.stability import DEPRECATED, mark_of

KINDS: Mapping[str, str] = {
    "requirements": "requirement",
    "features": "feature",
    "operations": "operation",
    "indicators": "indicator",
}
"""Members of the register, and what an item of each is called."""
STABLE, PROVISIONAL = "stable", "provisional"
FIRMEST = (STABLE, DEPRECATED, PROVISIONAL)

_WITHDRAWN = {"requirement-withdrawn", "operation-withdrawn", "part-withdrawn", "row-withdrawn"}
_OPERATION = re.compile(r"[A-Z]+ /[^\s,]+")


def differences(old: Version, new: Version) -> Iterator[Change]:
    """Items whose mark differs; what is new or withdrawn is told of by other rules."""
    for kind, name in KINDS.items():
        before, after = old.stability.get(kind) or {}, new.stability.get(kind) or {}
        for item in sorted(before.keys() & after.keys()):
            was, now = mark_of(before[item]), mark_of(after[item])
            if was == now:
                continue
            if now == DEPRECATED:
                yield change("additive", "item-deprecated", f"{name} {item}", from_to(was, now))
            elif was == STABLE:
                yield change("breaking", "mark-lowered", f"{name} {item}", from_to(was, now))
            else:
                yield change("additive", "mark-raised", f"{name} {item}", from_to(was, now))


def with_marks(changes: Iterable[Change], old: Version, new: Version) -> list[Change]:
    """The changes, each with the mark that its item had, and whether that permits it."""
    marks, number = Marks(old), _minor(new.number)
    return [_with_mark(one, marks, number) for one in changes]


def _with_mark(one: Change, marks: "Marks", number: tuple[int, ...]) -> Change:
    said = marks.said(one)
    mark = mark_of(said) if said else ""
    permitted = one.severity != "breaking" or mark == PROVISIONAL
    if mark == DEPRECATED and one.rule in _WITHDRAWN and isinstance(said, Mapping):
        permitted = number >= _minor(str(said["until"]))
    return replace(one, mark=mark, permitted=permitted)


@dataclass(frozen=True)
class Marks:
    """Marks of a version, by where a change is.

    Attributes:
        version: The older of two.
    """

    version: Version

    def said(self, one: Change) -> Any:
        """What the register says of the changed item: its mark, an object where it is deprecated, None for none."""
        if found := _OPERATION.match(one.place):
            return self._operations.get(_bare(found[0]))
        kind, _, name = one.place.partition(", ")[0].partition(" ")
        match kind:
            case "requirement" | "feature" | "indicator":
                return self._of(f"{kind}s").get(name)
            case "operation":
                return self._of("operations").get(name)
            case "measure":
                return self._of("indicators").get(name.partition(" ")[0])
            case "mapping":
                return self._of("indicators").get(self._indicators.get(name.partition(" ")[0], ""))
            case "profile" | "sub-profile":
                return self._of_part(one.detail)
            case "class":
                return self._classes.get(name)
        return None

    def _of_part(self, detail: str) -> Any:
        """Of what came to a profile or went from it: a feature, an operation or a requirement."""
        if found := _OPERATION.match(detail):
            return self._operations.get(_bare(found[0]))
        first, _, rest = detail.partition(" ")
        return self._of("features").get(rest) if first == "feature" else self._of("requirements").get(first)

    def _of(self, kind: str) -> Row:
        return self.version.stability.get(kind) or {}

    @cached_property
    def _operations(self) -> dict[str, Any]:
        return {_bare(name): said for name, said in self._of("operations").items()}

    @cached_property
    def _indicators(self) -> dict[str, str]:
        """Indicators by the names of their measures."""
        rows = self.version.indicators["indicators"]
        return {measure["name"]: row["id"] for row in rows for measure in row["measures"]}

    @cached_property
    def _classes(self) -> dict[str, str]:
        """The firmest mark of the operations that carry a class, or a class that refers to it."""
        found: dict[str, str] = {}
        for operation, classes in interface.carried(self.version.interface).items():
            said = self._operations.get(_bare(operation))
            if said is None:
                continue
            for name in classes:
                found[name] = min(mark_of(said), found.get(name, PROVISIONAL), key=FIRMEST.index)
        return found


def _bare(operation: str) -> str:
    """An operation without the names of what its path takes."""
    return re.sub(r"\{[^}]*\}", "{}", operation)


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
