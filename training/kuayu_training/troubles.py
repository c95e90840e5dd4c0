"""Troubles of the training generator: what befalls nodes, for how long, and what state that is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.values import Flags, Instants, Places
from kuayu_training.jobs import SYNCHRONOUS, Jobs
from kuayu_training.region import Region

NONE, SLOW_CLOCK, SLOW_HOST, SLOW_MEMORY, SLOW_DEVICE, SLOW_LINK, FAULTS, PART_LOST, DEAD, STUCK, AWAY, LEFT = range(12)
"""Causes: clock, host or memory slower, one device or the network card slow, faults mended, devices missing; hung with
nothing, or with an odd utilisation that stands still; silent; and a member that is no longer needed, which is no
trouble."""

CAUSES = (
    "none",
    "slow clock",
    "slow host",
    "slow memory",
    "one slow device",
    "slow link",
    "mended faults",
    "devices missing",
    "hung",
    "stuck",
    "away",
    "left its job",
)

CHANCES = np.array([0.0, 0.2, 0.14, 0.09, 0.03, 0.05, 0.08, 0.1, 0.14, 0.12, 0.08, 0.04])
WHILE_IDLE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.12, 0.5, 0.0, 0.08, 0.3, 0.0])

IDLE_CHANCE = 0.004
"""Chance by second that something befalls a node that does not work; idle nodes have nothing to do with each other."""

WORSE = 0.3
"""Share of the troubles that end in a worse one."""

STUCK_BUSY = 0.6
"""Share of the kernels that never end which keep all accelerators of the node busy, as their utilisation shows."""

CALM = 30
"""Seconds at the beginning of a world in which nothing befalls anyone."""

SLOW = (SLOW_CLOCK, SLOW_HOST, SLOW_MEMORY, SLOW_DEVICE, SLOW_LINK)
STOPPED = (DEAD, STUCK)

SETTLING = 12
"""Seconds of work before which slowness cannot be told, since nothing is usual yet."""

TELLING = np.array([0.0, 0.1, 0.1, 0.7, 0.3, 0.4, 1.0, 0.1, 0.0, 0.0, 0.0, 0.0])
"""Share of the troubles of each cause that show mended faults while they last, such as errors of memory or links."""


@dataclass(slots=True)
class Troubles:
    """What befalls each node now; one value for each node."""

    cause: Places
    since: Instants
    until: Instants
    speed: Instants
    power: Instants
    odd: Instants
    rate: Instants
    burst: Instants
    lost: Instants
    tells: Flags
    holds: Flags
    withheld: Instants

    @classmethod
    def none(cls, nodes: int) -> "Troubles":
        """No trouble anywhere."""
        names = ("since", "until", "speed", "power", "odd", "rate", "burst", "lost", "withheld")
        return cls(
            cause=np.zeros(nodes, np.intp),
            tells=np.zeros(nodes, bool),
            holds=np.zeros(nodes, bool),
            **{name: np.zeros(nodes) for name in names},
        )

    def step(
        self,
        random: np.random.Generator,
        region: Region,
        second: int,
        group: Places,
        jobs: Jobs,
        works: Flags,
        visible: Flags,
    ) -> None:
        """End what is over, and let new troubles befall nodes: of those that work together mostly one at a time.

        Args:
            random: Source of chance.
            region: Where parameters are drawn from.
            second: Seconds since the world began.
            group: Group of each node.
            jobs: What the groups do.
            works: Whether each node takes part in it.
            visible: Whether faults, missing devices, and what is sent again can be seen of a node, and whether faults
                show for as long as they stand, (4, nodes).
        """
        over = (second >= self.until) & (self.cause != NONE)
        self._worsen(random, over & works, second, region)
        over &= second >= self.until
        again = np.zeros(len(jobs.kind), bool)
        again[group[over & stops(self.cause)]] = True
        jobs.begin(random, region, second, again & jobs.alone & jobs.working & (random.random(len(again)) < 0.7))
        self.cause[over] = NONE
        size = np.bincount(group, minlength=len(jobs.kind))
        having = np.bincount(group[(self.cause != NONE) & works], minlength=len(size))
        chance = (
            0.0
            if second < CALM
            else np.minimum(0.012 * size, 0.12) * np.select([having == 0, having < 0.3 * size], [1, 0.2], 0)
        )
        alone = 0.0 if second < CALM else IDLE_CHANCE
        picked = random.random(len(group)) < np.where(works, (chance / size)[group], alone)
        rows = np.flatnonzero(picked & (self.cause == NONE))
        if not len(rows):
            return
        count = len(rows)
        working = works[rows]
        drawn = random.choice(len(CAUSES), count, p=CHANCES / CHANCES.sum())
        drawn_idle = random.choice(len(CAUSES), count, p=WHILE_IDLE / WHILE_IDLE.sum())
        drawn = np.where(working, drawn, drawn_idle)
        hidden = ((drawn == FAULTS) & ~visible[0, rows]) | ((drawn == PART_LOST) & ~visible[1, rows])
        lone = (jobs.kind != SYNCHRONOUS)[group[rows]] | ~(visible[0, rows] | visible[2, rows])
        hidden |= (drawn == SLOW_LINK) & lone
        slowed = np.bincount(group[np.isin(self.cause, SLOW)], minlength=len(size)) > 0
        early = second < (jobs.ready + SETTLING)
        hidden |= np.isin(drawn, SLOW) & (slowed | early)[group[rows]]
        self.cause[rows] = np.where(hidden, NONE, drawn)
        self.since[rows] = second
        lasts = random.uniform(*region.dwell, count) * np.where(random.random(count) < 0.15, 4, 1)
        self.until[rows] = second + lasts
        self.speed[rows] = random.uniform(*region.slowness, count)
        self.power[rows] = random.uniform(*region.exponent, count)
        full = random.random(count) < np.where(self.cause[rows] == STUCK, STUCK_BUSY, 0.1)
        self.odd[rows] = np.where(full, 1.0, random.uniform(0.05, 1.0, count))
        self.rate[rows] = np.where(visible[3, rows], 1e3, np.exp(random.uniform(np.log(0.25), np.log(1.5), count)))
        self.burst[rows] = np.where(random.random(count) < 0.6, random.integers(1, 20, count), 0)
        self.lost[rows] = np.where(random.random(count) < 0.5, 0.06, random.uniform(0.05, 0.8, count))
        silent_link = (self.cause[rows] == SLOW_LINK) & ~visible[2, rows]
        self.tells[rows] = (random.random(count) < TELLING[self.cause[rows]]) | silent_link
        told = visible[0, rows] & (self.burst[rows] > 0)
        freed = (told | (self.cause[rows] == STUCK)) & (random.random(count) < 0.15)
        self.holds[rows] = working & ~freed
        self.withheld[rows] = np.where(random.random(count) < 0.4, random.uniform(0, 15, count), np.inf)

    def _worsen(self, random: np.random.Generator, over: Flags, second: int, region: Region) -> None:
        """Let some troubles of work end in a worse one: what is mended again and again is not mended in the end."""
        worse = over & np.isin(self.cause, (*SLOW, FAULTS, PART_LOST)) & (random.random(len(over)) < WORSE)
        count = int(worse.sum())
        self.cause[worse] = random.choice((DEAD, STUCK, AWAY), count, p=(0.5, 0.3, 0.2))
        self.since[worse] = second
        self.until[worse] = second + random.uniform(*region.dwell, count)
        self.odd[worse] = np.where(random.random(count) < STUCK_BUSY, 1.0, random.uniform(0.05, 1.0, count))
        self.burst[worse] = np.where(random.random(count) < 0.6, random.integers(1, 20, count), 0)
        self.tells[worse] = False
        self.holds[worse] = True
        self.withheld[worse] = np.inf

    def end_jobs(self, random: np.random.Generator, second: int, group: Places, jobs: Jobs) -> None:
        """Let jobs that miss a member end once their patience does; a lost device ends some at once."""
        failed = stops(self.cause) | ((self.cause == PART_LOST) & (self.odd > 0.5))
        gone = failed & (jobs.kind == SYNCHRONOUS)[group] & (second - self.since >= jobs.patience[group])
        which, until = np.zeros(len(jobs.kind), bool), np.zeros(len(jobs.kind))
        which[group[gone & ~jobs.elastic[group]]] = True
        np.maximum.at(until, group[gone], self.until[gone])
        jobs.give_up(random, second, which, until)

    def stop_of_idle(self, works: Flags) -> None:
        """What slows or stops work ends with the work, as what leaves it does."""
        of_work = np.isin(self.cause, (*SLOW, LEFT))
        self.cause[of_work & ~works] = NONE

    def faults(self, random: np.random.Generator, second: int) -> Instants:
        """Faults that are seen in this second."""
        count = len(self.cause)
        seen = (random.random(count) < 2e-4).astype(float)
        age = second - self.since
        stopped = np.isin(self.cause, STOPPED)
        onset = stopped & (age < 2) & (self.burst > 0)
        seen += np.where(onset, random.poisson(self.burst), 0)
        seen = np.where(stopped & (self.rate > 100) & (self.burst > 0), np.maximum(seen, 1), seen)
        mended = self.tells & (self.cause != NONE)
        again = random.random(count) < np.minimum(self.rate, 0.9)
        return seen + np.where(mended & (again | (age < 1)), random.integers(1, 4, count), 0)

    def states(self, group: Places, jobs: Jobs, works: Flags, hung: Flags) -> NDArray[np.int8]:
        """The truth, as the clause has it; in a group that hangs nobody waits for one who is only slow.

        Who hangs alone with nothing that counts it shows what a rest with its memory held shows, and is idle.
        """
        works = works & (self.cause != LEFT)
        found = np.where(works, states.BUSY, states.IDLE)
        waited_for = (jobs.kind == SYNCHRONOUS)[group]
        slow = np.isin(self.cause, SLOW) & ~(hung[group] & waited_for)
        found = np.where(slow & works, np.where(waited_for, states.STRAGGLING, states.DEGRADED), found)
        found = np.where(np.isin(self.cause, (FAULTS, PART_LOST)), states.DEGRADED, found)
        found = np.where(np.isin(self.cause, STOPPED), states.FAULTY, found)
        found = np.where((self.cause == DEAD) & (self.burst == 0) & ~waited_for, states.IDLE, found)
        return np.where(self.cause == AWAY, states.OFFLINE, found).astype(np.int8)

    def missing_share(self, devices: Places) -> Instants:
        """Share of the accelerators that are there."""
        lost = np.clip(np.round(self.lost * devices), 1, np.maximum(devices - 1, 1)) / devices
        there = np.where(self.cause == PART_LOST, 1 - np.where(devices > 1, lost, 0.0), 1.0)
        return np.where((self.cause == DEAD) & (self.odd < 0.15), 1 - np.minimum(lost, 0.5), there)


def stops(cause: Places) -> Flags:
    """Whether the others of a synchronous family hang."""
    return np.isin(cause, (*STOPPED, AWAY))
