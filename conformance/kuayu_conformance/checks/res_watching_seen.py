"""What a service showed while it was watched: faults and actions, look by look."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.states_timeline import Clock
from kuayu_conformance.episode import Stream
from kuayu_conformance.streams import StreamEvent

Fault = Mapping[str, Any]
Action = Mapping[str, Any]


@dataclass(frozen=True)
class Look:
    """Faults and open actions at one time.

    Attributes:
        at: Unix time at which all of it was there.
        faults: Pages of the listing of faults.
        actions: Open actions of each domain, by its name; they were asked for after the faults.
    """

    at: float
    faults: tuple[Answer, ...]
    actions: Mapping[str, Answer]

    @cached_property
    def open_actions(self) -> dict[str, tuple[str, Action]]:
        """Domain that is asked, and action, by identifier."""
        return {
            action["id"]: (domain, action)
            for domain, answer in self.actions.items()
            for action in answer.items("items")
            if isinstance(action, dict) and isinstance(action.get("id"), str)
        }


@dataclass(frozen=True)
class Reply:
    """An answer to an action: what was asked, how it was answered at what time, and what came back."""

    action: str
    outcome: str
    at: float
    answer: Answer


@dataclass(frozen=True)
class Told:
    """One fault as it was seen.

    Attributes:
        fault: As it was listed last.
        told: Unix time of the look that showed it first.
        cleared: That of the look that showed it cleared first; infinite where none did.
        answer: The page that showed it first.
    """

    fault: Fault
    told: float
    cleared: float
    answer: Answer


@dataclass(frozen=True)
class Listed:
    """A listing in pages, and the events that had come by then."""

    query: str
    limit: int
    pages: tuple[Answer, ...]

    @property
    def faults(self) -> list[Fault]:
        """Faults of all pages."""
        return [fault for page in self.pages for fault in page.items("items") if isinstance(fault, dict)]


@dataclass(frozen=True)
class Observed:
    """What was played, and what was seen of it.

    Attributes:
        clock: From seconds of the script to Unix time.
        names: Name of each node, domain and job at the target, by label.
        refused: The first answer that was no 2xx, of beats, lines and deletions.
        batches: Answers to odd batches, by what they are.
        looks: In order.
        replies: In order.
        streams: The stream of faults; more than one where it ended and was resumed.
        resumed: A stream that was resumed behind ``behind`` when all was over.
        behind: The identifier of an event.
        listed: Listings when all was over.
    """

    clock: Clock
    names: Mapping[str, str]
    refused: Answer | None
    batches: Mapping[str, Answer]
    looks: Sequence[Look]
    replies: Sequence[Reply]
    streams: Sequence[Stream]
    resumed: Stream | None
    behind: str
    listed: Sequence[Listed]

    def ours(self, fault: Fault) -> bool:
        """Whether a fault is about what was played here; others may use the same tenant."""
        return any(fault.get(member) in self._known for member in ("node", "job", "domain"))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names.values())

    @cached_property
    def told(self) -> dict[str, Told]:
        """Faults of ours by identifier, in the order in which they were seen."""
        found: dict[str, Told] = {}
        for look in self.looks:
            for page in look.faults:
                for fault in page.items("items"):
                    if isinstance(fault, dict) and isinstance(fault.get("id"), str) and self.ours(fault):
                        before = found.get(fault["id"])
                        cleared = look.at if fault.get("state") == "cleared" else inf
                        found[fault["id"]] = Told(
                            fault,
                            before.told if before else look.at,
                            min(before.cleared, cleared) if before else cleared,
                            before.answer if before else page,
                        )
        return found

    def about(self, kind: str, member: str, label: str) -> list[Told]:
        """Faults of a kind about a node, domain or job."""
        wanted = (kind, self.names[label])
        return [each for each in self.told.values() if (each.fault.get("kind"), each.fault.get(member)) == wanted]

    @cached_property
    def events(self) -> tuple[StreamEvent, ...]:
        """Events of all pieces of the stream, in order."""
        return tuple(event for stream in self.streams for event in stream.events)

    def actions(self) -> Iterator[tuple[str, Action]]:
        """Every action that was ever seen, once, with the domain that was asked."""
        seen: set[str] = set()
        for look in self.looks:
            for name, row in look.open_actions.items():
                if name not in seen:
                    seen.add(name)
                    yield row
