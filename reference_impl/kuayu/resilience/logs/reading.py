"""Reading of a log as it comes: bytes in pieces of any size in, verdicts out.

Each line is looked at, whatever it holds: a line of any length, bytes that are no text, no newline at the end. Memory
has a bound: of a line that goes on and on no more than ``LONGEST_LINE`` is held at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kuayu.resilience.logs.headers import host_of
from kuayu.resilience.logs.masking import LONGEST
from kuayu.resilience.logs.mining import MOST, Miner
from kuayu.resilience.logs.recognising import BEFORE_BYTES, REACH, recogniser, shown
from kuayu.resilience.logs.unusual import Rarity, calm
from kuayu.resilience.logs.values import About, Confidence, Evidence, Follows, Severity, Verdict

BLOCK = 1 << 20
"""Bytes that are worked on at once."""

LONGEST_LINE = 1 << 20
"""Bytes of an unfinished line after which its beginning is judged without the rest."""

MOST_UNUSUAL = 16
"""Unusual templates told of one block; ``LogReader.untold`` counts those beyond."""

LEARN_AGAIN = 1.1
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
        """Unusual templates beyond ``MOST_UNUSUAL`` of a block."""
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
            if len(self._rest) > LONGEST_LINE:
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
            self._head = self._rest[:LONGEST]
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
        if known >= LEARN_AGAIN * self._rarity.lines:
            self._rarity = Rarity.of({each.number: (each.words, each.seen) for each in self.miner.templates()})
        mined = block if self._head is None else self._head + block[ends[0] - 1 :]
        numbers = self.miner.take(mined)
        found = [
            replace(each, evidence=replace(each.evidence, template=self._text(numbers[each.evidence.line - first])))
            for each in found
        ]
        if not self._rarity.judges:
            return found
        known_faults = {each.evidence.line for each in found}
        strange = [
            each for each in self._strange(block, ends, first, numbers) if each.evidence.line not in known_faults
        ]
        return sorted(found + strange, key=lambda each: each.evidence.line)

    def _strange(self, block: bytes, ends: Sequence[int], first: int, numbers: Sequence[int]) -> Iterator[Verdict]:
        """A verdict for each template that is unusual and was not told before."""
        told = 0
        for number, row in {number: row for row, number in reversed(list(enumerate(numbers)))}.items():
            template = self.miner.template(number)
            if template is None or number in self._told or calm(template.words):
                continue
            bits = self._rarity.of_line(number, template.words)
            if bits <= self._rarity.limit:
                continue
            if len(self._told) > 2 * MOST:
                self._told.clear()
            self._told.add(number)
            if told == MOST_UNUSUAL:
                self.untold += 1
                continue
            told += 1
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
