"""What was heard of nodes, domains and jobs. All times are milliseconds of a clock that runs while the service does."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from minimal_server.core import Json, milliseconds

REMEMBERED = 256
"""Beats of a node that are told from their repetitions."""

LATEST = 1500
"""Milliseconds by which a beat is late at most; if it seems later, the clock of its node was set."""

KEPT_STEPS = 128
"""Steps of a job of which it is known when they were done."""


@dataclass(slots=True)
class Watch:
    """One node.

    Attributes:
        name: The node.
        devices: How many it has.
        number: The greatest that was heard since it was started.
        sent: When that beat was sent, by its own clock.
        heard: When that was.
        period: Milliseconds between two of its beats, as is usual.
        beats: When the newest were sent, by number.
        low: Number, time and count of beats with lower numbers that may be those of a new start.
        steady: Since when it beats without a break.
        relapsed: Whether it fell silent while it was told dead.
        revived: When it last came back from being dead.
        offset: Milliseconds from its clock to ours, with the least delay of a beat.
    """

    name: str
    devices: int = 1
    number: int = -1
    sent: str = ""
    heard: int = 0
    period: float = 500.0
    beats: dict[int, str] = field(default_factory=dict)
    low: tuple[int, int, int] = (-1, 0, 0)
    steady: int = 0
    relapsed: bool = False
    revived: int = 0
    offset: float = 0.0

    def remember(self, beat: Json) -> None:
        """Tell this beat from its repetitions from now on."""
        self.beats[beat["number"]] = beat["sent_at"]
        if len(self.beats) > REMEMBERED:
            for number in list(self.beats)[: REMEMBERED // 2]:
                del self.beats[number]

    def sent_by(self, clock: int, sent_at: str) -> float:
        """When a beat was sent by our clock, which takes out what it was late."""
        sent = milliseconds(sent_at)
        late = clock - sent - self.offset
        if not 0 <= late <= LATEST:
            self.offset = clock - sent
        elif late:
            self.offset += min(late, 1.0)
        return min(clock, sent + self.offset)


@dataclass(slots=True)
class Site:
    """One domain: its nodes by name, since when it is heard again, and since when it is cut off; 0 where it is not."""

    name: str
    nodes: dict[str, Watch] = field(default_factory=dict)
    back: int = 0
    cut: int = 0


@dataclass(slots=True)
class Rank:
    """A rank: its node, its last step, when it was last seen to stand there, and which of its steps came late."""

    node: str
    step: int
    seen: float
    lates: deque[bool] = field(default_factory=lambda: deque(maxlen=20))
    late: float = 0.0


@dataclass(slots=True)
class Job:
    """One job.

    Attributes:
        ranks: Those that are watched.
        front: The last step that any of them has done.
        turned: When that was seen.
        moved: When any of them was seen to have done one.
        paces: Milliseconds that the newest steps took.
        longest: Milliseconds that the longest of all steps took.
        counts: Ranks that have done a step.
        done: When a quarter of the ranks had done it.
    """

    ranks: dict[int, Rank] = field(default_factory=dict)
    front: int = 0
    turned: int = 0
    moved: int = 0
    paces: deque[float] = field(default_factory=lambda: deque(maxlen=16))
    longest: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    done: dict[int, float] = field(default_factory=dict)

    @property
    def pace(self) -> float | None:
        """Milliseconds that a step usually takes, once some were seen."""
        return median(self.paces) if len(self.paces) >= 4 else None

    def begin_anew(self, number: int, rank: Rank, clock: int) -> None:
        """Go on from an earlier step, with the ranks that say so from now on."""
        self.ranks = {number: rank}
        self.counts, self.done = {}, {}
        self.front, self.turned, self.moved = rank.step, clock, clock

    def go_on(self, rank: Rank, step: int, clock: int, seen: float) -> None:
        """A rank has done steps since it was last seen."""
        self.moved = clock
        for done in range(max(rank.step, step - KEPT_STEPS) + 1, step + 1):
            self.counts[done] = self.counts.get(done, 0) + 1
            if self.counts[done] == -(-len(self.ranks) // 4):
                self.done[done] = seen
        for steps in (self.counts, self.done):
            if len(steps) > 2 * KEPT_STEPS:
                for old in sorted(steps)[:KEPT_STEPS]:
                    del steps[old]
        if step > self.front:
            self.longest = max(self.longest, clock - self.turned)
            self.paces.append((clock - self.turned) / (step - self.front))
            self.front, self.turned = step, clock


@dataclass(slots=True)
class Ward:
    """All that is watched for one tenant.

    Attributes:
        clock: Milliseconds for which the service has watched; it stands while the service is kept from watching.
        moment: When it was last read.
        number: Revision of the resources for which nodes were last put to their domains.
        nodes: By name.
        sites: By name of the domain.
        jobs: By name.
    """

    clock: int = 0
    moment: int = 0
    number: int = -1
    nodes: dict[str, Watch] = field(default_factory=dict)
    sites: dict[str, Site] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
