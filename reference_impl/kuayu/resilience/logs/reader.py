"""Logs as they come: bytes in pieces of any size in, verdicts out, and verdicts put together.

1. Each line is looked at, whatever it holds: a line of any length, bytes that are no text, no newline at the end.
2. Memory has a bound: of a line that goes on and on no more than ``MAX_PENDING_BYTES`` is held at once.
3. Known faults are recognised first; what is unusual is told only of lines that tell no known fault.
4. The same fault of the same subject on the same node is one group, with how often and where; beyond ``MAX_GROUPS``
   subjects and nodes are put together.
5. A link that went down several times and came up in between flaps, which is one fault.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kuayu.resilience.logs.anomalies import Rarity, is_calm
from kuayu.resilience.logs.catalogue import About, Confidence, Evidence, Follows, Severity, Verdict
from kuayu.resilience.logs.headers import host_of
from kuayu.resilience.logs.recogniser import BEFORE_BYTES, REACH, recogniser, shown
from kuayu.resilience.logs.templates import MAX_LINE_BYTES, MAX_TEMPLATES, Miner

BLOCK = 1 << 20
"""Bytes that are worked on at once."""

MAX_PENDING_BYTES = 1 << 20
"""Bytes of an unfinished line after which its beginning is judged without the rest."""

MAX_UNUSUAL = 16
"""Unusual templates told of one block; ``LogReader.untold`` counts those beyond."""

LEARN_AGAIN_RATIO = 1.1
"""Growth of the number of lines after which what is usual is reckoned anew."""


class LogReader:
    """Reads one log.

    Args:
        miner: Knows templates already; a new one by default. Readers of many logs may share one.
        unusual: Whether unusual lines are told too; templates are mined only then.
    """

    def __init__(self, miner: Miner | None = None, *, unusual: bool = True) -> None:
        self.miner = miner or Miner()
        self.lines = 0
        """Lines that were ended."""
        self.bytes = 0
        self.untold = 0
        """Unusual templates beyond ``MAX_UNUSUAL`` of a block."""
        self._unusual = unusual
        self._recogniser = recogniser()
        self._rest = b""
        self._before = b""
        self._since = 0
        self._head: bytes | None = None
        self._rarity = Rarity.of({})
        self._told: set[int] = set()

    @property
    def judges(self) -> bool:
        """Whether enough has been learned to tell unusual lines."""
        return self._rarity.judges

    def take(self, data: bytes) -> list[Verdict]:
        """Verdicts of the lines that these bytes end, and of what is long already."""
        self.bytes += len(data)
        found: list[Verdict] = []
        for start in range(0, len(data), BLOCK):
            self._rest += data[start : start + BLOCK]
            cut = self._rest.rfind(b"\n") + 1
            if cut:
                found += self._block(cut)
            if len(self._rest) > MAX_PENDING_BYTES:
                found += self._piece()
        return found

    def end(self) -> list[Verdict]:
        """Verdicts of a last line without a newline."""
        if not self._rest:
            return []
        self._rest += b"\n"
        return self._block(len(self._rest))

    def _piece(self) -> list[Verdict]:
        """Judge the beginning of a line that has not ended; the end of it is judged again with what follows."""
        until = len(self._rest) - REACH
        found = list(self._recogniser.scan(self._rest, [], self.lines + 1, self._since, until))
        if self._head is None:
            self._head = self._rest[:MAX_LINE_BYTES]
        self._rest, self._since = self._rest[until - REACH :], REACH
        return found

    def _block(self, cut: int) -> list[Verdict]:
        block, self._rest = self._rest[:cut], self._rest[cut:]
        ends: list[int] = (np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1).tolist()
        first = self.lines + 1
        found = list(self._recogniser.scan(block, ends, first, self._since, before=self._before))
        self._before = (self._before + block[-BEFORE_BYTES:])[-BEFORE_BYTES:]
        self.lines += len(ends)
        if self._unusual:
            found = self._mine(block, ends, first, found)
        self._since, self._head = 0, None
        return found

    def _mine(self, block: bytes, ends: Sequence[int], first: int, found: list[Verdict]) -> list[Verdict]:
        """Add templates to the evidence, and verdicts on what is unusual."""
        known = self.miner.lines
        if known >= LEARN_AGAIN_RATIO * self._rarity.lines:
            self._rarity = Rarity.of(
                {verdict.number: (verdict.words, verdict.seen) for verdict in self.miner.templates()}
            )
        mined = block if self._head is None else self._head + block[ends[0] - 1 :]
        numbers = self.miner.take(mined)
        found = [
            replace(
                verdict, evidence=replace(verdict.evidence, template=self._text(numbers[verdict.evidence.line - first]))
            )
            for verdict in found
        ]
        if not self._rarity.judges:
            return found
        known_faults = {verdict.evidence.line for verdict in found}
        strange = [
            verdict
            for verdict in self._strange(block, ends, first, numbers)
            if verdict.evidence.line not in known_faults
        ]
        return sorted(found + strange, key=lambda verdict: verdict.evidence.line)

    def _strange(self, block: bytes, ends: Sequence[int], first: int, numbers: Sequence[int]) -> Iterator[Verdict]:
        """A verdict for each template that is unusual and was not told before."""
        reported = 0
        for number, row in {number: row for row, number in reversed(list(enumerate(numbers)))}.items():
            template = self.miner.template(number)
            if template is None or number in self._told or is_calm(template.words):
                continue
            bits = self._rarity.of_line(number, template.words)
            if bits <= self._rarity.limit:
                continue
            if len(self._told) > 2 * MAX_TEMPLATES:
                self._told.clear()
            self._told.add(number)
            if reported == MAX_UNUSUAL:
                self.untold += 1
                continue
            reported += 1
            begin = ends[row - 1] if row else 0
            yield Verdict(
                code="unusual.line",
                kind="anomaly",
                severity=Severity.INFO,
                about=About.NODE,
                subject=None,
                node=host_of(block[begin : begin + 256]),
                follows=Follows.WATCH,
                what=f"a line as this log hardly has any: surprise {bits:.0f} bits, usual {self._rarity.usual:.0f}",
                confidence=Confidence.POSSIBLE,
                evidence=Evidence(first + row, shown(block, begin, ends[row], begin), template.text),
                source=None,
            )

    def _text(self, number: int) -> str | None:
        template = self.miner.template(number)
        return None if template is None else template.text


MAX_GROUPS = 10_000
"""Different faults that are kept apart; beyond them subjects and nodes are put together."""

MIN_FLAPS = 3
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
            if len(self._groups) >= MAX_GROUPS and key not in self._groups:
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
        made = [self._flapping(group) for group in self._groups.values()]
        return sorted(
            made,
            key=lambda group: (
                -_ORDER.index(group.verdict.follows),
                -group.verdict.severity,
                group.verdict.evidence.line,
                group.verdict.code,
            ),
        )

    def _flapping(self, group: Group) -> Group:
        verdict = group.verdict
        ups = self._ups.get((verdict.node, verdict.subject), 0)
        if verdict.code != "link.down" or group.count < MIN_FLAPS or ups < MIN_FLAPS - 1:
            return group
        what = f"a link went down {group.count} times and came up again"
        return replace(group, verdict=replace(verdict, code="link.flap", severity=Severity.CRITICAL, what=what))
