"""Nodes that fail, as their logs tell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from kuayu.resilience.logs.recognising import recogniser
from kuayu.resilience.logs.values import Follows, Verdict


@dataclass(frozen=True, slots=True)
class Failing:
    """A line has told that a node, or a device of it, has to be reset or repaired.

    Attributes:
        node: The node.
        code: Which fault.
        because: What it is, and the line.
        received: When the line was heard, Unix seconds.
    """

    node: str
    code: str
    because: str
    received: float


def read(lines: Sequence[Mapping[str, Any]], received: float) -> Iterator[Failing]:
    """What lines tell, class LogLine, at most once for each of them and in their order.

    A job's own fault makes no node fail, nor does what only has to be counted.
    """
    by_node: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        by_node.setdefault(line["node"], []).append(place)
    found: dict[int, Verdict] = {}
    for places in by_node.values():  # what one node writes over several lines is no matter of another's
        texts = [lines[place]["text"].encode(errors="replace") for place in places]
        ends = list(accumulate(len(text) + 1 for text in texts))
        for verdict in recogniser().scan(b"".join(text + b"\n" for text in texts), ends, 0):
            if verdict.follows is Follows.DRAIN:
                found.setdefault(places[verdict.evidence.line], verdict)
    for place, verdict in sorted(found.items()):
        yield Failing(lines[place]["node"], verdict.code, _because(verdict), received)


def _because(verdict: Verdict) -> str:
    return f"{verdict.what}: {verdict.evidence.text}"
