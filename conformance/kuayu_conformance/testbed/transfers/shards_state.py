"""What a policy may look at and order in a window, and what came of it."""

from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from kuayu_conformance.testbed.transfers.shards_world import Window


@dataclass(slots=True, eq=False)
class Transfer:
    """A piece of a job's data from afar; bytes count from the first byte of its first step.

    Attributes:
        slot: Slot of the job that takes its first byte, counted from the job's first.
        ends_s: When it ends, unless it is given up.
        late: Whether a slot that is to take bytes of it was due before it ended.
    """

    stream: int
    link: int
    begin: float
    end: float
    slot: int
    start_s: float = 0.0
    ends_s: float = inf
    given_up: bool = False
    late: bool = False

    @property
    def size(self) -> float:
        """Bytes."""
        return self.end - self.begin


@dataclass(slots=True)
class Job:
    """How far a job is.

    Attributes:
        due_s: When its next slot is due.
        local_left: Local steps that have not begun.
        missing: Bytes of each step from afar that are not here.
        slot: Number of the next slot.
        remote: Steps from afar that have begun.
        dues: When each slot so far was due.
        waited_s: Seconds that it has waited.
        waiting: Whether its next slot is due and has not begun.
    """

    due_s: float
    local_left: int
    missing: list[float]
    slot: int = 0
    remote: int = 0
    dues: list[float] = field(default_factory=list)
    waited_s: float = 0.0
    waiting: bool = False


@dataclass(slots=True)
class State:
    """All that a policy may look at, beside the measurements so far."""

    window: Window
    now: float
    jobs: list[Job]
    busy: list[Transfer | None]
    used: float = 0.0


class Policy(Protocol):
    """What is compared."""

    def ask(self, state: State) -> list[Transfer]:
        """Look at the world anew; the transfers to be given up."""

    def fetch(self, link: int, state: State) -> Transfer | float:
        """What an idle link fetches now; else the instant at which to look again if nothing happens before."""

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:
        """Whether the slot that is due takes local data; asked only while there are any."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Attributes:
        waiting: Share of time in which jobs waited for data, mean of jobs.
        blocked: Share of transfers that were blocked.
        blocked_bytes: The same by bytes.
        transfers: How many there were.
        held: Mean share of the room that was taken.
        finished: Whether all steps had begun at the limit.
    """

    waiting: float
    blocked: float
    blocked_bytes: float
    transfers: int
    held: float
    finished: bool = True
