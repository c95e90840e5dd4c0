"""Verdicts put together: the same fault of the same thing once, with how often and where; links that flap."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kuayu.resilience.logs.values import Follows, Severity, Verdict

MOST = 10_000
"""Different faults that are kept apart; beyond them subjects and nodes are put together."""

FLAPS = 3
"""Times that a link must go down, and come up in between, to be called flapping."""

_ORDER = tuple(Follows)


@dataclass(slots=True)
class Group:
    """The same fault of the same subject on the same node.

    Attributes:
        verdict: The first that told it.
        count: Lines that told it.
        last: Number of the last of them.
    """

    verdict: Verdict
    count: int
    last: int


class Summary:
    """Puts verdicts together as they come."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str | None, str | None], Group] = {}
        self._ups: dict[tuple[str | None, str | None], int] = {}

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Take verdicts in the order of their lines."""
        for verdict in verdicts:
            key = (verdict.code, verdict.node, verdict.subject)
            place = (verdict.node, verdict.subject)
            if len(self._groups) >= MOST and key not in self._groups:
                key = (verdict.code, None, None)
                verdict = replace(verdict, node=None, subject=None)  # noqa: PLW2901 - kept apart no longer
            if verdict.code == "link.up":
                if ("link.down", *place) in self._groups:
                    self._ups[place] = self._ups.get(place, 0) + 1
                continue
            group = self._groups.setdefault(key, Group(verdict, 0, verdict.evidence.line))
            group.count += 1
            group.last = verdict.evidence.line

    def groups(self) -> list[Group]:
        """What was told, what has most to follow first; links that flap are called so."""
        made = [self._flapping(each) for each in self._groups.values()]
        return sorted(
            made,
            key=lambda each: (
                -_ORDER.index(each.verdict.follows),
                -each.verdict.severity,
                each.verdict.evidence.line,
                each.verdict.code,
            ),
        )

    def _flapping(self, group: Group) -> Group:
        verdict = group.verdict
        ups = self._ups.get((verdict.node, verdict.subject), 0)
        if verdict.code != "link.down" or group.count < FLAPS or ups < FLAPS - 1:
            return group
        what = f"a link went down {group.count} times and came up again"
        return replace(group, verdict=replace(verdict, code="link.flap", severity=Severity.CRITICAL, what=what))
