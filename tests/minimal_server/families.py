"""Nodes that work on one job together: whether it goes on, how fast, and whom the others wait for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from minimal_server.records import Node, Record

WINDOW = 4
"""Records of a node that are looked at together."""

SLOWER, AS_USUAL = 0.92, 0.94
"""Pace, over what is usual, below which somebody is looked for, and above which nobody is waited for any more."""

SLOWEST = 0.35
"""Pace below which a job does not get on at all."""

SHORTLY = 10_000
"""Milliseconds before a stand-still in which a fault is taken for its cause."""


@dataclass(slots=True)
class Family:
    """A family.

    Attributes:
        members: Its nodes.
        straggler: The one that the others wait for, while there is one.
        stopped: Since when none of them gets on; None while they do.
        fine: Whether they are as fast as usual.
        utilised: Those that show that they work, or wait.
    """

    members: tuple[str, ...]
    straggler: str | None = None
    stopped: int | None = None
    fine: bool = True
    utilised: set[str] = field(default_factory=set)

    def look(self, nodes: Mapping[str, Node]) -> None:
        """Look at those of its nodes that answer and hold a part of the job."""
        self.utilised = {name for name, node in nodes.items() if not node.hangs}
        if len(nodes) < 2:
            self.straggler, self.stopped, self.fine = None, None, True
            return
        self._look_whether_it_goes_on(nodes)
        working = {name: node for name, node in nodes.items() if not (node.hangs or node.stuck)}
        windows = _windows(working)
        pace = _pace(working, windows) if len(working) > 1 else None
        gets_on = self.stopped is None and (pace is None or pace > SLOWEST)
        if self.straggler not in working or not gets_on or (pace is not None and pace > AS_USUAL):
            self.straggler = None
        self.fine = self.stopped is None and (pace is None or pace > SLOWER)
        if pace is not None and gets_on and (not self.fine or self.straggler):
            self._look_who_differs(_scores(working, windows))

    def waits(self, name: str) -> bool:
        """Whether another of its nodes shows that it works, or waits, while this one does nothing."""
        return bool(self.utilised - {name})

    def _look_who_differs(self, scores: Mapping[str, float]) -> None:
        """The one that differs most, if it does so clearly; another one only if it does so more clearly."""
        name = max(scores, key=lambda one: scores[one])
        if scores[name] >= max(1.0, 1.5 * scores.get(self.straggler or "", 0.0)):
            self.straggler = name

    def _look_whether_it_goes_on(self, nodes: Mapping[str, Node]) -> None:
        """Where nobody gets on, whoever has just had a fault is stuck, and the others wait."""
        if not all(node.hangs or node.spins for node in nodes.values()):
            self.stopped = None
            return
        if self.stopped is None:
            self.stopped = max(node.newest.moment for node in nodes.values())
        for node in nodes.values():
            if node.spins and node.faults and node.faults[-1] > self.stopped - SHORTLY:
                node.stuck = True


def _windows(nodes: Mapping[str, Node]) -> dict[str, list[Record]]:
    """The newest records of each node up to an instant that all have reached, but those in which all of them pause."""
    until = min((node.newest.moment for node in nodes.values()), default=0) + 1000
    spans = {name: [one for one in node.records if one.moment < until] for name, node in nodes.items()}
    rests = {name: [one.moment for one in span if (one.utilisation or 0.0) < 0.75] for name, span in spans.items()}

    def together(record: Record) -> bool:
        return all(any(abs(moment - record.moment) < 1000 for moment in moments) for moments in rests.values())

    return {
        name: [one for one in span if not one.pausing and not ((one.utilisation or 0.0) < 0.75 and together(one))][
            -WINDOW:
        ]
        for name, span in spans.items()
    }


def _pace(nodes: Mapping[str, Node], windows: Mapping[str, Sequence[Record]]) -> float | None:
    """Work that is done, over what is usual; None where too little is known."""
    if any(len(records) < WINDOW - 1 for records in windows.values()):
        return None
    means = {
        level: fmean(ratios)
        for level in ("bandwidth", "read", "pipe", "power")
        if (ratios := [ratio for name in nodes if (ratio := nodes[name].ratio(level, windows[name])) is not None])
    }
    return means["bandwidth"] if "bandwidth" in means else fmean(means.values()) if means else None


def _scores(nodes: Mapping[str, Node], windows: Mapping[str, Sequence[Record]]) -> dict[str, float]:
    """How each node differs from the others, in a way that slows them all; more than one is clear."""
    shapes = {name: _shape(node, windows[name]) for name, node in nodes.items()}
    scores = {}
    for name, mine in shapes.items():
        ahead = {
            part: value - fmean(theirs)
            for part, value in mine.items()
            if (theirs := [shape[part] for other, shape in shapes.items() if other != name and part in shape])
        }
        power = ahead.get("power", 0.0)
        scores[name] = max(
            -ahead["utilisation"] / 0.1,  # its host keeps its devices waiting
            (ahead["pipe"] - power) / 0.2 if "pipe" in ahead else -power / 0.08,  # its clock is low
            ahead.get("again", 0.0) / 0.1,  # it sends again what was lost
            1.5 if nodes[name].recurring else 0.0,
        )
    return scores


def _shape(node: Node, records: Sequence[Record]) -> dict[str, float]:
    """How a node stands to what is usual of it, and how much more it sends than it receives."""
    sent = sum(record.sent or 0.0 for record in records)
    received = sum(record.received or 0.0 for record in records)
    shape = {
        "utilisation": fmean(record.utilisation or 0.0 for record in records),
        "pipe": node.ratio("pipe", records),
        "power": node.ratio("power", records),
        "again": sent / received if received else None,
    }
    return {part: value for part, value in shape.items() if value is not None}
