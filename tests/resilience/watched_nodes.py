"""Nodes that beat in simulated time before a watch, and what it tells of them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kuayu.resilience.faults import Change, Subject, Watch

BEGIN = 1_800_000_000.0
PERIOD, LOOK = 0.5, 0.1

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


def instant(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


class Nodes:
    """Nodes of some domains, each with its phase; time goes on only by ``go``.

    Attributes:
        watch: What watches them.
        domains: Domain of each node.
        changes: Second and change, in order.
        steps: What beats tell of ranks: job, rank and step, by node.
        ahead: Seconds by which clocks of nodes are ahead.
    """

    def __init__(self, **sizes: int) -> None:
        self.watch = Watch()
        self.domains = {f"{domain}-{number}": domain for domain, size in sizes.items() for number in range(size)}
        self.now = 0.0
        self.numbers = dict.fromkeys(self.domains, 0)
        self.changes: list[tuple[float, Change]] = []
        self.steps: dict[str, Sequence[Mapping[str, Any]]] = {}
        self.ahead: dict[str, float] = {}

    def go(self, seconds: float, mute: Collection[str] = ()) -> None:
        """Let time pass in which some do not beat."""
        for _ in range(round(seconds / LOOK)):
            self.now = round(self.now + LOOK, 3)
            turn = round(self.now / LOOK) % round(PERIOD / LOOK)
            beating = [node for number, node in enumerate(self.domains) if number % 5 == turn and node not in mute]
            if beating:
                self.beat(*beating)
            self.look()

    def beat(self, *nodes: str) -> None:
        """Let nodes beat now."""
        beats = []
        for node in nodes:
            self.numbers[node] += 1
            steps = {"steps": self.steps[node]} if node in self.steps else {}
            sent = instant(self.at + self.ahead.get(node, 0.0))
            beats.append({"node": node, "number": self.numbers[node], "sent_at": sent, **steps})
        self.watch.hear(beats, self.domains, self.at + 0.01)

    def hear(self, node: str, number: int, sent: float) -> None:
        """A beat comes that was sent in another second."""
        beat = {"node": node, "number": number, "sent_at": instant(BEGIN + sent)}
        self.watch.hear([beat], self.domains, self.at + 0.01)

    def log(self, node: str, text: str) -> None:
        """A node logs a line."""
        self.watch.read([{"node": node, "logged_at": instant(self.at), "text": text}], self.domains, self.at)

    def delete(self, node: str) -> None:
        """A node is no longer registered."""
        del self.domains[node]
        self.watch.drop(node)

    def look(self) -> None:
        """See what has changed."""
        self.changes += [(self.now, change) for change in self.watch.look(self.at + 0.02)]

    @property
    def at(self) -> float:
        """Unix time."""
        return BEGIN + self.now

    def told(self, since: float = 0.0) -> list[tuple[str, str, bool]]:
        """Kind of each change since a second, what it is about, and whether it begins."""
        return [(change.subject.kind, name(change.subject), change.open) for at, change in self.changes if at >= since]

    def open(self) -> set[tuple[str, str]]:
        """Kind of each fault that is open, and what it is about."""
        found: dict[Subject, bool] = {}
        for _, change in self.changes:
            found[change.subject] = change.open
        return {(subject.kind, name(subject)) for subject, is_open in found.items() if is_open}


def name(subject: Subject) -> str:
    if subject.rank is not None:
        return f"{subject.job}:{subject.rank}"
    return subject.job or subject.node or subject.domain or ""
