"""Ranges of bytes that a stream misses or that are under way: what they must hold to."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kuayu.refusals import Complaint

Plain = Mapping[str, Any]

SLACK = 1e-6
"""Share of a step that ranges may be off, being sums of shares of steps."""

ROUNDED = 1e-15
"""Share of all bytes of a stream that their number may be off, being a product."""


def check_ranges(stream: Plain, place: str) -> Iterator[Complaint]:
    """Ranges that end before they begin, overlap, or lie beyond the last step."""
    size, missing, transfers = stream["step_size"], stream["missing"], stream.get("transfers") or ()
    slack, total = SLACK * size, stream["remote_steps"] * size
    named = [
        *((f"{place}/missing/{number}", each) for number, each in enumerate(missing)),
        *((f"{place}/transfers/{number}", each) for number, each in enumerate(transfers)),
    ]
    for where, each in named:
        if each["end"] <= each["begin"]:
            yield f"{where}/end", "it is not after the begin"
        elif each["end"] > total * (1 + ROUNDED) + slack:
            yield f"{where}/end", f"{stream['remote_steps']} steps from afar end before"
    for number, each in enumerate(transfers):
        if each["left"] > (each["end"] - each["begin"]) * (1 + SLACK):
            yield f"{place}/transfers/{number}/left", "more than all of it"
    for number, (one, other) in enumerate(pairwise(missing), start=1):
        if other["begin"] < one["end"] - slack:
            yield f"{place}/missing/{number}/begin", "ranges rise and lie apart"
    yield from _overlaps(named, slack)


def _overlaps(named: Sequence[tuple[str, Plain]], slack: float) -> Iterator[Complaint]:
    """What is under way although it is missing, or under way a second time."""
    end, under_way = float("-inf"), False
    for where, each in sorted(named, key=lambda entry: float(entry[1]["begin"])):
        moves = "/transfers/" in where
        if (moves or under_way) and each["begin"] < end - slack:
            yield f"{where}/begin", "what is under way overlaps what is missing or under way"
        if each["end"] > end:
            end, under_way = each["end"], moves
