"""Own features of the nodes, from the samples of each and from what is usual for it; ``groups`` compares nodes.

1. Features are near the range −2 … 2, zero where they cannot be told, with shape (features, nodes), float32.
2. What is usual for a node is a running baseline of its signals, which follows the node and not its faults. All is in
   logarithms, so that a ratio is a difference.
3. *Usual* is the level while the node works: it follows values near it within half a minute and higher ones within a
   minute, but much lower ones only after a quarter of an hour, since work that is slow for minutes is not yet the
   usual; unless the memory in use tells that another job has come. A node that gave its memory back begins anew with
   its next job.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kuayu.perception.recognition.values import (
    SIGNALS,
    Column,
    Flags,
    Floats,
    Instants,
    Places,
    Telemetry,
    blank,
    rearranged,
    stacked,
)

UTILISATION, PIPE, MEMORY_PIPE, POWER, FLOW, STORAGE, PER_PIPE, PER_MEMORY, PER_POWER = range(9)
"""Channels: six signals, and three of them for each unit of utilisation."""

CHANNELS = 9
SIGNAL_CHANNELS = 6
STEADY = [UTILISATION, PIPE, MEMORY_PIPE, POWER, PER_PIPE, PER_MEMORY, PER_POWER]
"""Channels that do not come in bursts."""

NEAR_USUAL = 0.12
"""Difference of logarithms within which a value counts as the usual one."""

NEAR_TIME, HIGH_TIME, LOW_TIME, OTHER_JOB_TIME = 25.0, 60.0, 900.0, 30.0
"""Seconds within which the usual follows values near it, above it, below it, and of another job."""

FAR_ABOVE, FAR_TIME = 0.5, 6.0
"""Difference of logarithms above the usual, and seconds within which it follows then: what was learnt was not the
usual, since nothing works that much better than it can. Not so for flow and storage, which come in bursts."""

OTHER_MEMORY = 0.15
"""Part by which the memory in use differs between jobs, and not within one."""

RESTLESS_TIME = 120.0
"""Seconds over which deviations of the utilisation from its usual are averaged, or of the pipe's activity or of power
where that is not known: a server's are always large."""

UNEVEN = 0.2
"""Mean of these deviations above which the work of a node is as uneven as a server's."""

MOST_DEVIATION = np.array([[1.0], [0.25]], np.float32)
"""Deviations that count no more than this. By the second a pause counts as little as what a server's load makes of any
second, so that one checkpoint among the first samples does not make a job uneven."""

EVEN_BETWEEN_PAUSES = 0.09
"""Mean of the deviations, by the second, below which the work of a node alone is a job's: most jobs lie below it, and
most servers above."""

SETTLED, DIP = 20, 0.5
"""Samples at work after which it is known what is usual: until then a baseline is a plain mean, in which what lies
further below it counts as this difference of logarithms, since jobs pause for a second and work no better than they
can."""

RISE = 0.0015
"""How much a second can add to the unevenness from then on: a node that is slowed deviates from its usual all the
while, and is not uneven for that until two minutes are over."""

SHORT_TIME, MEDIUM_TIME = 2.0, 15.0
"""Seconds of the two averages that tell sudden changes."""

FORGET_TIME = 3600.0
"""Seconds within which the lowest and the highest power are forgotten."""

LEVELS = ("utilisation", "pipe", "memory pipe", "dynamic power", "memory", "flow", "storage")
CHANNEL_NAMES = ("utilisation", "pipe", "memory pipe", "power", "flow", "storage")
EFFICIENCIES = ("pipe per utilisation", "memory pipe per utilisation", "power per utilisation")

OWN = (
    *(f"level of {name}" for name in LEVELS),
    *(f"usual of {name}" for name in (*CHANNEL_NAMES, *EFFICIENCIES)),
    *(f"sudden in {name}" for name in CHANNEL_NAMES),
    *(f"recent in {name}" for name in CHANNEL_NAMES),
    "usual of memory",
    "faults now",
    "faults of seconds",
    "faults of a minute",
    "samples with faults in a minute",
    "utilisation stands still",
    "power stands still",
    "allocatable share",
    "allocatable share lost",
    "device share",
    "noise of utilisation",
    "noise of power",
    "restlessness",
    "sent over received",
    "samples at work",
    *(f"has {name}" for name in (*LEVELS, "allocatable share", "device share")),
    "in a family",
)
"""Names of a node's own features."""

FLOORS = np.array([0.02, 0.01, 0.01, 1.0, 1e6, 1e5], np.float32)[:, None]
"""Values of the six signals that count as nothing."""

WORKS_AT, WORKS_AT_PIPE, WORKS_AT_POWER = 0.1, 0.05, 0.15
"""Utilisation, activity of the matrix pipe and dynamic power above which the baselines count a sample as work."""

IDLE_UTILISATION, NOTHING = 0.04, 0.005
"""Utilisation, and activity of the matrix pipe and of memory, below which no accelerator works: what monitoring and
drivers make."""

BEGUN = 0.05
"""Seconds for which something has been shown that is shown for the first time."""

HOLDS = 0.1
"""Share of the most memory ever used above which a node holds a job."""

REST = 6.0
"""Seconds after which who shows nothing is at rest: longer than checkpoints and stalls of most jobs take."""

CONTEXT = 2e8
"""Bytes above the least memory that was ever in use, and half as much again, from which on a process has a device: an
open context alone takes some (758 MB on an H100, ``tests/perception/recordings``)."""

GIVEN_OUT_WITHIN = 3.0
"""Seconds over which the allocatable share and the memory in use before a job are averaged: a process is listed before
its memory is."""

UNUSED = 2 * GIVEN_OUT_WITHIN
"""Seconds for which accelerators must have been out of use before a job that begins tells whether their share falls
with it: a device that is lost halts the work for a second, too."""

LAPSE, LAPSE_GAPS, RECURRED = 4.0, 4.0, 4
"""Seconds without a fault, and how many of the usual gaps between samples with faults, after which faults that came
again and again are over; from how many samples on that is known."""

FORGOTTEN = 240.0
"""Seconds without a fault after which the next one is a first one."""

LOWER = np.array([-0.12, -0.12, -0.12, -0.08], np.float32)[:, None]
"""Difference of logarithms from the usual below which utilisation, pipe, memory pipe and power are lower: part of the
power is drawn at rest, too."""

MIN_LOWER_SIGNALS = 3
"""Signals that have to be lower together."""

SLOWED_FOR = 3.0
"""Seconds for which all signals of work have to be lower together until that alone is slowness."""

MAX_SLOWED_SECONDS = 8.0
"""Seconds of slowness beyond which it is not counted."""

RATIO_TIME = 60.0
"""Seconds over which what is sent over what is received is averaged, to tell when it changes."""

PART = 0.01
"""Share of the accelerators that is missing."""

POWERED, RISES = 0.3, 1.3
"""Where power stands between the lowest and the highest, and how much it has risen since the sample before, from which
on accelerators work whatever their utilisation shows: that is sampled, and misses bursts of less than half a second
(``tests/perception/recordings``, *bursts*)."""

TWO_LEVELS = 1.4
"""Highest over lowest power from which on a node was seen both at rest and at work: noise makes about 1.2 of it, and
an idle accelerator draws half of its highest power at the most."""

ABOVE_REST = 1.15
"""Power over the lowest from which on a node is not at rest: noise and drift of an idle accelerator make less."""

MOVES = 1e6
"""Bytes a second below which flows tell nothing of what is sent again."""

RESTLESS = 5
"""Factor of the restlessness, which is small."""

MAX_DIFFERENCE = 2.5
"""Largest difference of logarithms that is told apart."""

MAX_FEATURE = 8.0
"""Largest feature; what is beyond is no telemetry but a mistake."""

_SIGNAL_PLACE = {name: place for place, name in enumerate(SIGNALS)}


@dataclass(slots=True)
class Baselines:
    """Memory of each node; logarithms but for power, in W, and memory, in bytes."""

    usual: Annotated[Floats, Column(np.nan, np.float32, CHANNELS)]
    short: Annotated[Floats, Column(np.nan, np.float32, SIGNAL_CHANNELS)]
    medium: Annotated[Floats, Column(np.nan, np.float32, SIGNAL_CHANNELS)]
    counted: Annotated[Floats, Column(0.0, np.float32)]
    lowest: Annotated[Floats, Column(np.nan)]
    highest: Annotated[Floats, Column(np.nan)]
    memory: Annotated[Floats, Column(np.nan)]
    most_memory: Annotated[Floats, Column(np.nan)]
    seen_at_rest: Annotated[Flags, Column(0, np.bool_)]
    share: Annotated[Floats, Column(np.nan)]
    share_idle: Annotated[Floats, Column(np.nan)]
    noise: Annotated[Floats, Column(0.05, np.float32, 2)]
    restless: Annotated[Floats, Column(0.1, np.float32, 2)]
    uneven: Annotated[Floats, Column(0.1, np.float32, 2)]


def follow(average: Floats, value: Floats, step: Floats, seconds: float | Floats, where: Flags) -> None:
    """Let an average move to a value in place; it begins with the first one, and NaN leaves it as it is."""
    seen = where & ~np.isnan(value)
    begun = average + (value - average) * (step / (step + seconds))
    np.copyto(average, np.where(np.isnan(average), value, begun), where=seen)


def learn_power(baselines: Baselines, power: Floats, step: Floats, fresh: Flags) -> None:
    """Follow the lowest and the highest power: quickly outwards, slowly inwards."""
    down = np.where(power < baselines.lowest, np.float32(3.0), np.float32(FORGET_TIME))
    up = np.where(power > baselines.highest, np.float32(8.0), np.float32(FORGET_TIME))
    follow(baselines.lowest, power, step, down, fresh)
    follow(baselines.highest, power, step, up, fresh)


def dynamic_share(baselines: Baselines, power: Floats) -> Floats:
    """Where the power stands between the idle and the highest one.

    A node that was never seen idle is taken to idle at three tenths of its highest power or less.
    """
    idle = np.fmin(baselines.lowest, 0.3 * baselines.highest)
    share: Floats = (power - idle) / np.maximum(baselines.highest - idle, 1.0)
    return share


def learn_usual(
    baselines: Baselines, logs: Floats, memory: Floats, step: Floats, fresh: Flags, working: Flags, slow: Flags
) -> None:
    """Let the baselines follow a fresh sample of channels (channels, nodes); work that is slow is not uneven for it."""
    at_work = fresh & working
    baselines.counted += at_work
    baselines.seen_at_rest |= fresh & ~working
    difference = logs - baselines.usual
    other_job = another_job(baselines, memory)
    low = np.where(other_job, np.float32(OTHER_JOB_TIME), np.float32(LOW_TIME))
    seconds = np.where(
        difference > NEAR_USUAL, np.float32(HIGH_TIME), np.where(difference < -NEAR_USUAL, low, np.float32(NEAR_TIME))
    )
    seconds[STEADY] = np.where(difference[STEADY] > FAR_ABOVE, np.float32(FAR_TIME), seconds[STEADY])
    weight = step / (step + seconds)
    begins = baselines.counted < SETTLED
    weight = np.maximum(weight, np.where(begins, 1 / np.maximum(baselines.counted, 1), 0))
    known = ~np.isnan(logs)
    moved = difference.copy()
    moved[STEADY] = np.where(begins, np.maximum(difference[STEADY], -DIP), difference[STEADY])
    begun = np.where(np.isnan(baselines.usual), logs, baselines.usual + weight * moved)
    np.copyto(baselines.usual, begun, where=at_work & known)
    mean = step * np.maximum(baselines.counted - 1, 0.0)  # a plain one, until as much is known as is averaged over
    follow(baselines.memory, memory, step, np.minimum(mean, NEAR_TIME), at_work)
    most = np.where(memory > baselines.most_memory, np.float32(0.1), np.float32(FORGET_TIME))
    follow(baselines.most_memory, memory, step, most, fresh)
    jump = np.abs(logs[[UTILISATION, POWER]] - baselines.short[[UTILISATION, POWER]])
    follow(baselines.noise, np.minimum(jump, 0.3), step, 30.0, fresh)
    of_work = np.where(np.isnan(difference[PIPE]), difference[POWER], difference[PIPE])
    of_work = np.where(np.isnan(difference[UTILISATION]), of_work, difference[UTILISATION])
    deviation = np.minimum(np.abs(of_work), MOST_DEVIATION)
    follow(baselines.restless, deviation, step, np.minimum(mean, RESTLESS_TIME), at_work)
    rise = RISE * np.stack([step, np.where(slow, np.float32(0.0), step)])
    settled = np.fmin(baselines.restless, baselines.uneven + rise)
    np.copyto(baselines.uneven, np.where(begins, baselines.restless, settled), where=at_work)
    follow(baselines.short, logs[:SIGNAL_CHANNELS], step, SHORT_TIME, fresh)
    follow(baselines.medium, logs[:SIGNAL_CHANNELS], step, MEDIUM_TIME, fresh)


def another_job(baselines: Baselines, memory: Floats) -> Flags:
    """Whether as much memory is in use as no longer belongs to the job that is known: given back, or another's."""
    flags: Flags = np.abs(memory - baselines.memory) > OTHER_MEMORY * baselines.memory
    return flags


def forget_usual(baselines: Baselines, where: Flags) -> None:
    """Let the next job begin anew: what was usual for the last one says little about it."""
    baselines.counted = np.where(where & (baselines.counted > 0), np.float32(0.5), baselines.counted)


def learn_share(baselines: Baselines, share: Floats, step: Floats, fresh: Flags, working: Flags) -> None:
    """Follow the allocatable share, apart while the node works and while it is idle; upwards soon, downwards late.

    All of an idle node can be given out unless something is wrong; while it works, that depends on the scheduler.
    """
    for usual, regime in ((baselines.share, working), (baselines.share_idle, ~working)):
        seconds = np.where(share >= usual, np.float32(5.0), np.float32(LOW_TIME))
        follow(usual, share, step, seconds, fresh & regime)


@dataclass(slots=True)
class _History:
    observed: Annotated[Instants, Column(np.nan, np.float64)]
    utilisation: Annotated[Floats, Column(np.nan)]
    power: Annotated[Floats, Column(np.nan)]
    still: Annotated[Floats, Column(0.0, np.float32, 2)]
    faults: Annotated[Floats, Column(0.0, np.float32, 3)]
    since_fault: Annotated[Floats, Column(np.inf)]
    fault_gap: Annotated[Floats, Column(0.0)]
    fault_count: Annotated[Floats, Column(0.0)]
    faults_at_rest: Annotated[Flags, Column(0, np.bool_)]
    sent_over_received: Annotated[Floats, Column(np.nan)]
    sends_more: Annotated[Floats, Column(0.0)]
    slowed: Annotated[Floats, Column(0.0)]
    quiet: Annotated[Floats, Column(0.0)]
    powered: Annotated[Flags, Column(0, np.bool_)]
    least_memory: Annotated[Floats, Column(np.nan)]
    share_before: Annotated[Floats, Column(np.nan)]
    memory_before: Annotated[Floats, Column(np.nan)]
    used: Annotated[Flags, Column(0, np.bool_)]
    unused: Annotated[Floats, Column(np.inf)]
    given_out: Annotated[Flags, Column(0, np.bool_)]


class Tracker:
    """Keeps what is usual for each node, and makes its own features from each fresh sample."""

    def __init__(self, nodes: int) -> None:
        self._baselines = blank(Baselines, nodes)
        self._history = blank(_History, nodes)
        self._features = np.zeros((len(OWN), nodes), np.float32)
        self._made = np.empty_like(self._features)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._baselines = rearranged(self._baselines, origin)
        self._history = rearranged(self._history, origin)
        self._features = np.where(origin >= 0, self._features[:, origin], np.float32(0.0))
        self._made = np.empty_like(self._features)

    def update(self, telemetry: Telemetry, related: Flags) -> Floats:
        """Own features of all nodes, in place; those without a fresh sample stay as they were.

        Args:
            telemetry: The newest samples.
            related: Whether each node is in a family.
        """
        baselines, fresh = self._baselines, telemetry.fresh
        values = np.ascontiguousarray(telemetry.values.T, np.float32)
        step = self._steps(telemetry)
        signals, power, memory = (
            _signals(values),
            values[_SIGNAL_PLACE["power"]],
            values[_SIGNAL_PLACE["accelerator_memory_used"]],
        )
        learn_power(baselines, power, step, fresh)
        dynamic = dynamic_share(baselines, power)
        logs = _logs(signals, dynamic)
        # what is drawn at rest is in it, too, and only where that is known or the work is even does it say anything
        compares = baselines.seen_at_rest | (baselines.restless[0] < UNEVEN)
        logs[PER_POWER] = np.where(compares, logs[PER_POWER], np.float32(np.nan))
        working = _works(signals, dynamic)
        above = (power - baselines.lowest) / np.maximum(baselines.highest - baselines.lowest, 1.0) > POWERED
        bursts: Flags = above & self.varied & (power > RISES * self._history.power)
        self._history.powered = np.where(fresh, bursts, self._history.powered)
        self._count(values[_SIGNAL_PLACE["faults"]], signals, step, fresh)
        share = values[_SIGNAL_PLACE["allocatable_share"]]
        self._give_out(share, memory, fresh, working, step)
        lost = np.where(working, baselines.share, baselines.share_idle) - share
        given_out = self._history.given_out | (np.isnan(memory) & ~working)
        lost = np.where(given_out, np.float32(0.0), lost)
        most_memory = np.fmax(baselines.most_memory, memory)
        strange = (baselines.counted == 0) & ~working & ~np.isnan(signals[UTILISATION])
        held_memory = memory / np.maximum(most_memory, 1.0)
        _lasts(self._history.quiet, fresh, _does_nothing(signals) & ~self._history.powered, step)
        beside = logs - baselines.usual
        same_job = ~another_job(baselines, memory)
        slowed = same_job & (baselines.counted >= SETTLED) & _lower_together(beside, signals)
        ends = np.where(working, np.maximum(self._history.slowed - 2 * step, 0), np.float32(0.0))
        # utilisation is that of an instant, and power a mean: who waits for input is seen at rest and at work in turn
        stalls = (self._history.quiet > 0) & (self._history.quiet < REST)
        waits = same_job & np.where(working, beside[POWER] < LOWER[-1], stalls)
        less = np.where(waits, self._history.slowed, ends)
        more = np.where(slowed, np.minimum(self._history.slowed + step, MAX_SLOWED_SECONDS), less)
        np.copyto(self._history.slowed, more, where=fresh)
        ratio = _sent_over_received(values)
        np.copyto(self._history.sends_more, np.nan_to_num(ratio - self._history.sent_over_received), where=fresh)
        follow(self._history.sent_over_received, ratio, step, RATIO_TIME, fresh)
        levels = [
            *signals[:3],
            np.where(strange, np.float32(np.nan), dynamic),
            np.where(strange, np.float32(np.nan), held_memory),
            0.1 * (logs[FLOW] - np.log(FLOORS[FLOW])),
            0.1 * (logs[STORAGE] - np.log(FLOORS[STORAGE])),
        ]
        devices = values[_SIGNAL_PLACE["device_share"]]
        features = stacked(
            self._made,
            [
                *levels,
                np.clip(beside, -MAX_DIFFERENCE, MAX_DIFFERENCE),
                np.clip(logs[:SIGNAL_CHANNELS] - baselines.short, -MAX_DIFFERENCE, MAX_DIFFERENCE),
                np.clip(logs[:SIGNAL_CHANNELS] - baselines.medium, -MAX_DIFFERENCE, MAX_DIFFERENCE),
                np.clip(
                    np.log(np.maximum(memory, 1.0) / np.maximum(baselines.memory, 1.0)), -MAX_DIFFERENCE, MAX_DIFFERENCE
                ),
                np.log1p(np.nan_to_num(values[_SIGNAL_PLACE["faults"]])),
                np.log1p(self._history.faults),
                np.log1p(np.minimum(self._history.still, 20)) / 2,
                share,
                lost,
                devices - 1,
                10 * baselines.noise,
                RESTLESS * baselines.restless[0],
                ratio,
                np.log1p(baselines.counted) / 3,
                *(~np.isnan(level) for level in levels),
                ~np.isnan(share),
                ~np.isnan(devices),
                related,
            ],
        )
        np.copyto(features, 0, where=np.isnan(features))
        np.clip(features, -MAX_FEATURE, MAX_FEATURE, out=features)
        np.copyto(self._features, features, where=fresh)
        forget_usual(baselines, fresh & np.where(np.isnan(memory), ~working, another_job(baselines, memory)))
        slow = self._history.slowed >= SLOWED_FOR
        learn_usual(baselines, logs, memory, step, fresh, working, slow)
        learn_share(baselines, share, step, fresh, working)
        return self._features

    @property
    def above_rest(self) -> Flags:
        """Whether the power of each node stands above the lowest that was seen by more than its noise."""
        flags: Flags = self._history.power > ABOVE_REST * self._baselines.lowest
        return flags

    @property
    def powered(self) -> Flags:
        """Whether the power of each node, seen at two levels, has risen to one at which it works."""
        return self._history.powered

    @property
    def uneven(self) -> Floats:
        """How uneven the work of each node was before it began to deviate from its usual, as ``UNEVEN`` has it."""
        averages: Floats = self._baselines.uneven[0]
        return averages

    @property
    def uneven_between_pauses(self) -> Floats:
        """The same, but that pauses count as little as what a server's load makes of any second."""
        averages: Floats = self._baselines.uneven[1]
        return averages

    @property
    def slowed(self) -> Floats:
        """Seconds for which all signals of work of each node have stood below their usual.

        Samples in which they do not count twice against it, and not at all where power is lower all the same. Zero
        where work is uneven between pauses too: a load that falls is no slowness.
        """
        even = self.uneven_between_pauses < EVEN_BETWEEN_PAUSES
        seconds: Floats = np.where(even, self._history.slowed, np.float32(0.0))
        return seconds

    @property
    def sends_more(self) -> Floats:
        """By how much more each node sends over what it receives than it did, difference of logarithms."""
        return self._history.sends_more

    @property
    def faults_at_rest(self) -> Flags:
        """Whether the faults of each node began while it was at rest, and it has not worked since."""
        return self._history.faults_at_rest

    @property
    def faults_over(self) -> Flags:
        """Whether faults that came again and again come no more."""
        history = self._history
        flags: Flags = (history.fault_count >= RECURRED) & (
            history.since_fault > np.maximum(LAPSE, LAPSE_GAPS * history.fault_gap)
        )
        return flags

    @property
    def quiet(self) -> Floats:
        """Seconds for which each node has shown that nothing is done; zero where that is not shown."""
        return self._history.quiet

    @property
    def varied(self) -> Flags:
        """Whether the power of each node has been seen at two levels."""
        flags: Flags = self._baselines.highest > TWO_LEVELS * self._baselines.lowest
        return flags

    def _give_out(self, share: Floats, memory: Floats, fresh: Flags, working: Flags, step: Floats) -> None:
        """Notice nodes whose allocatable share falls when a job begins: what is given out can no longer be (STA-3).

        What such a share loses says nothing of accelerators that are missing. Where jobs share accelerators in time,
        it does: there it does not fall when one begins. No job begins where less memory is in use than before.
        """
        history = self._history
        history.least_memory = np.where(fresh, np.fmin(history.least_memory, memory), history.least_memory)
        used: Flags = working | (memory > 1.5 * history.least_memory + CONTEXT)
        before = np.where(np.isnan(history.share_before), np.float32(1.0), history.share_before)
        begins = fresh & used & ~history.used & (history.unused >= UNUSED)
        history.given_out |= begins & (share < before - PART) & ~(memory < (1 - PART) * history.memory_before)
        out_of_use = np.where(used, np.float32(0.0), np.where(history.used, step, history.unused + step))
        np.copyto(history.unused, out_of_use, where=fresh)
        follow(history.share_before, share, step, GIVEN_OUT_WITHIN, fresh & ~used)
        follow(history.memory_before, memory, step, GIVEN_OUT_WITHIN, fresh & ~used)
        history.used = np.where(fresh, used, history.used)

    def _recur(self, faulty: Flags, elapsed: Floats) -> None:
        """Follow how often samples with faults come, and whether the first of them came while the node was at rest."""
        history = self._history
        since = history.since_fault + elapsed
        first = faulty & (since > FORGOTTEN)
        history.faults_at_rest = np.where(first, history.quiet >= REST, history.faults_at_rest & (history.quiet > 0))
        history.fault_count = np.where(first, np.float32(1.0), history.fault_count + faulty)
        weight = 1 / np.clip(history.fault_count - 1, 1, 10)
        gap = np.where(history.fault_count > 2, history.fault_gap + weight * (since - history.fault_gap), since)  # noqa: PLR2004
        np.copyto(history.fault_gap, gap, where=faulty & ~first)
        history.since_fault = np.where(faulty, np.float32(0.0), since)

    def _steps(self, telemetry: Telemetry) -> Floats:
        """Seconds since the sample before, for fresh rows."""
        history = self._history
        step = np.nan_to_num(telemetry.observed - history.observed, nan=1.0)
        np.copyto(history.observed, telemetry.observed, where=telemetry.fresh)
        return np.clip(step, 0.05, 120.0).astype(np.float32)

    def _count(self, faults: Floats, signals: Floats, step: Floats, fresh: Flags) -> None:
        """Count faults, and samples in which utilisation or power stand exactly where they stood."""
        history = self._history
        seen = np.where(fresh, np.nan_to_num(faults), np.float32(0.0))
        elapsed = np.where(fresh, step, np.float32(0.0))
        self._recur(seen > 0, elapsed)
        history.faults *= np.exp(-elapsed / np.array([[8.0], [60.0], [60.0]], np.float32))
        history.faults += np.stack([seen, seen, np.minimum(seen, 1)])
        for row, (before, now) in enumerate(
            ((history.utilisation, signals[UTILISATION]), (history.power, signals[POWER]))
        ):
            history.still[row] = np.where(fresh, np.where(before == now, history.still[row] + 1, 0), history.still[row])
            np.copyto(before, now, where=fresh)


def _lower_together(beside: Floats, signals: Floats) -> Flags:
    """Whether all signals of work that are known stand below what is usual, three of them at least.

    Args:
        beside: Difference of logarithms from the usual, (channels, nodes).
        signals: The six signals, (6, nodes).
    """
    of_work = beside[[UTILISATION, PIPE, MEMORY_PIPE, POWER]]
    known = ~np.isnan(of_work)
    lower = of_work < LOWER
    few = known.sum(axis=0) < MIN_LOWER_SIGNALS
    read = few & (beside[STORAGE] < LOWER[0])
    flags: Flags = (lower | ~known).all(axis=0) & ((known.sum(axis=0) + read) >= MIN_LOWER_SIGNALS)
    flags &= known[UTILISATION] & (signals[UTILISATION] > WORKS_AT)
    return flags


def _sent_over_received(values: Floats) -> Floats:
    """Logarithm of what is sent over what is received: a degraded port sends again and again what was lost."""
    sent, received = values[_SIGNAL_PLACE["scale_out_transmit_flow"]], values[_SIGNAL_PLACE["scale_out_receive_flow"]]
    moves = (sent > MOVES) & (received > MOVES)
    ratio = np.log(np.where(moves, sent, np.float32(1.0)) / np.where(moves, received, np.float32(1.0)))
    ratios: Floats = np.where(moves, np.clip(ratio, -MAX_DIFFERENCE, MAX_DIFFERENCE), np.float32(np.nan))
    return ratios


def _signals(values: Floats) -> Floats:
    """The six signals, (6, nodes); a flow is the mean of what is known of its two ways."""
    sent, received = values[_SIGNAL_PLACE["scale_out_transmit_flow"]], values[_SIGNAL_PLACE["scale_out_receive_flow"]]
    both = np.where(np.isnan(sent), received, np.where(np.isnan(received), sent, 0.5 * (sent + received)))
    names = ("accelerator_utilisation", "matrix_pipe_activity", "memory_bandwidth_utilisation", "power")
    return np.stack(
        [*(values[_SIGNAL_PLACE[name]] for name in names), both, values[_SIGNAL_PLACE["storage_read_flow"]]]
    )


def _logs(signals: Floats, dynamic: Floats) -> Floats:
    """Logarithms of all channels, (9, nodes); what is for each unit of utilisation only where there is some."""
    logs = np.log(np.maximum(signals, FLOORS))
    busy = np.where(signals[0] > WORKS_AT, logs[0], np.float32(np.nan))
    dynamic = np.log(np.maximum(dynamic, np.float32(0.02)))
    return np.vstack([logs, logs[1] - busy, logs[2] - busy, dynamic - busy])


def _lasts(seconds: Floats, fresh: Flags, shown: Flags, step: Floats) -> None:
    """Count for how long something has been shown without a break, in place.

    What was before the first sample that shows it is not known, and does not count.
    """
    longer = np.where(seconds > 0, seconds + step, np.float32(BEGUN))
    np.copyto(seconds, np.where(shown, longer, np.float32(0.0)), where=fresh)


def _does_nothing(signals: Floats) -> Flags:
    """Whether all is zero that is known of utilisation, pipe and memory bandwidth, and something is."""
    nothing: Flags = signals[:3] <= np.array([[IDLE_UTILISATION], [NOTHING], [NOTHING]], np.float32)
    known: Flags = ~np.isnan(signals[:3])
    flags: Flags = np.logical_and(known.any(axis=0), np.logical_or(nothing, ~known).all(axis=0))
    return flags


def _works(signals: Floats, dynamic: Floats) -> Flags:
    """Whether accelerators work, by the first of utilisation, pipe and power that is known."""
    by_pipe = np.where(np.isnan(signals[1]), dynamic > WORKS_AT_POWER, signals[1] > WORKS_AT_PIPE)
    return np.where(np.isnan(signals[0]), by_pipe, signals[0] > WORKS_AT)
