"""Own features of the nodes, from the samples of each; ``relations`` compares nodes with each other.

All are near the range −2 … 2, zero where they cannot be told, with shape (features, nodes), float32.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kuayu.perception.recognition import baselines as usual
from kuayu.perception.recognition.baselines import Baselines
from kuayu.perception.recognition.rows import Column, blank, put_together, rearranged
from kuayu.perception.recognition.values import SIGNALS, Flags, Floats, Instants, Places, Telemetry

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
"""Seconds over which the allocatable share before a job is averaged: a process is listed before its memory is."""

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

THREE = 3
"""Signals that have to be lower together."""

KNOWN, LONGEST_SLOWED = 60, 8.0
"""Samples at work after which slowness by itself is told, and seconds beyond which it is not counted."""

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

WIDEST = 2.5
"""Largest difference of logarithms that is told apart."""

MAX_FEATURE = 8.0
"""Largest feature; what is beyond is no telemetry but a mistake."""

_PLACE = {name: place for place, name in enumerate(SIGNALS)}


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
        signals, power, memory = _signals(values), values[_PLACE["power"]], values[_PLACE["accelerator_memory_used"]]
        usual.learn_power(baselines, power, step, fresh)
        dynamic = usual.dynamic_share(baselines, power)
        logs = _logs(signals, dynamic)
        # what is drawn at rest is in it, too, and only where that is known or the work is even does it say anything
        compares = baselines.seen_at_rest | (baselines.restless < usual.UNEVEN)
        logs[usual.PER_POWER] = np.where(compares, logs[usual.PER_POWER], np.float32(np.nan))
        working = _works(signals, dynamic)
        above = (power - baselines.lowest) / np.maximum(baselines.highest - baselines.lowest, 1.0) > POWERED
        bursts: Flags = above & self.varied & (power > RISES * self._history.power)
        self._history.powered = np.where(fresh, bursts, self._history.powered)
        self._count(values[_PLACE["faults"]], signals, step, fresh)
        share = values[_PLACE["allocatable_share"]]
        self._give_out(share, memory, fresh, working, step)
        lost = np.where(working, baselines.share, baselines.share_idle) - share
        given_out = self._history.given_out | (np.isnan(memory) & ~working)
        lost = np.where(given_out, np.float32(0.0), lost)
        most_memory = np.fmax(baselines.most_memory, memory)
        strange = (baselines.counted == 0) & ~working & ~np.isnan(signals[usual.UTILISATION])
        held_memory = memory / np.maximum(most_memory, 1.0)
        _lasts(self._history.quiet, fresh, _does_nothing(signals) & ~self._history.powered, step)
        beside = logs - baselines.usual
        same_job = ~usual.another_job(baselines, memory) & (baselines.counted >= KNOWN)
        slowed = same_job & _lower_together(beside, signals)
        less = np.where(working, np.maximum(self._history.slowed - 2 * step, 0), np.float32(0.0))
        more = np.where(slowed, np.minimum(self._history.slowed + step, LONGEST_SLOWED), less)
        np.copyto(self._history.slowed, more, where=fresh)
        ratio = _sent_over_received(values)
        np.copyto(self._history.sends_more, np.nan_to_num(ratio - self._history.sent_over_received), where=fresh)
        usual.follow(self._history.sent_over_received, ratio, step, RATIO_TIME, fresh)
        levels = [
            *signals[:3],
            np.where(strange, np.float32(np.nan), dynamic),
            np.where(strange, np.float32(np.nan), held_memory),
            0.1 * (logs[usual.FLOW] - np.log(FLOORS[usual.FLOW])),
            0.1 * (logs[usual.STORAGE] - np.log(FLOORS[usual.STORAGE])),
        ]
        devices = values[_PLACE["device_share"]]
        features = put_together(
            self._made,
            [
                *levels,
                np.clip(beside, -WIDEST, WIDEST),
                np.clip(logs[: usual.SIGNAL_CHANNELS] - baselines.short, -WIDEST, WIDEST),
                np.clip(logs[: usual.SIGNAL_CHANNELS] - baselines.medium, -WIDEST, WIDEST),
                np.clip(np.log(np.maximum(memory, 1.0) / np.maximum(baselines.memory, 1.0)), -WIDEST, WIDEST),
                np.log1p(np.nan_to_num(values[_PLACE["faults"]])),
                np.log1p(self._history.faults),
                np.log1p(np.minimum(self._history.still, 20)) / 2,
                share,
                lost,
                devices - 1,
                10 * baselines.noise,
                RESTLESS * baselines.restless,
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
        usual.forget(baselines, fresh & np.where(np.isnan(memory), ~working, usual.another_job(baselines, memory)))
        usual.learn(baselines, logs, memory, step, fresh, working)
        usual.learn_share(baselines, share, step, fresh, working)
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
    def even(self) -> Flags:
        """Whether the work of each node was even before it began to deviate from its usual."""
        flags: Flags = self._baselines.uneven < usual.UNEVEN
        return flags

    @property
    def slowed(self) -> Floats:
        """Seconds for which all signals of work of each node have stood below their usual; breaks count twice.

        Zero where work is half as uneven as a server's: a load that falls is no slowness.
        """
        seconds: Floats = np.where(self._baselines.uneven < usual.UNEVEN / 2, self._history.slowed, np.float32(0.0))
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
        it does: there it does not fall when one begins.
        """
        history = self._history
        history.least_memory = np.where(fresh, np.fmin(history.least_memory, memory), history.least_memory)
        used: Flags = working | (memory > 1.5 * history.least_memory + CONTEXT)
        before = np.where(np.isnan(history.share_before), np.float32(1.0), history.share_before)
        history.given_out |= fresh & used & ~history.used & (history.unused >= UNUSED) & (share < before - PART)
        out_of_use = np.where(used, np.float32(0.0), np.where(history.used, step, history.unused + step))
        np.copyto(history.unused, out_of_use, where=fresh)
        usual.follow(history.share_before, share, step, GIVEN_OUT_WITHIN, fresh & ~used)
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
            ((history.utilisation, signals[usual.UTILISATION]), (history.power, signals[usual.POWER]))
        ):
            history.still[row] = np.where(fresh, np.where(before == now, history.still[row] + 1, 0), history.still[row])
            np.copyto(before, now, where=fresh)


def _lower_together(beside: Floats, signals: Floats) -> Flags:
    """Whether all signals of work that are known stand below what is usual, three of them at least.

    Args:
        beside: Difference of logarithms from the usual, (channels, nodes).
        signals: The six signals, (6, nodes).
    """
    of_work = beside[[usual.UTILISATION, usual.PIPE, usual.MEMORY_PIPE, usual.POWER]]
    known = ~np.isnan(of_work)
    lower = of_work < LOWER
    few = known.sum(axis=0) < THREE
    read = few & (beside[usual.STORAGE] < LOWER[0])
    flags: Flags = (lower | ~known).all(axis=0) & ((known.sum(axis=0) + read) >= THREE)
    flags &= known[usual.UTILISATION] & (signals[usual.UTILISATION] > WORKS_AT)
    return flags


def _sent_over_received(values: Floats) -> Floats:
    """Logarithm of what is sent over what is received: a degraded port sends again and again what was lost."""
    sent, received = values[_PLACE["scale_out_transmit_flow"]], values[_PLACE["scale_out_receive_flow"]]
    moves = (sent > MOVES) & (received > MOVES)
    ratio = np.log(np.where(moves, sent, np.float32(1.0)) / np.where(moves, received, np.float32(1.0)))
    ratios: Floats = np.where(moves, np.clip(ratio, -WIDEST, WIDEST), np.float32(np.nan))
    return ratios


def _signals(values: Floats) -> Floats:
    """The six signals, (6, nodes); a flow is the mean of what is known of its two ways."""
    sent, received = values[_PLACE["scale_out_transmit_flow"]], values[_PLACE["scale_out_receive_flow"]]
    both = np.where(np.isnan(sent), received, np.where(np.isnan(received), sent, 0.5 * (sent + received)))
    names = ("accelerator_utilisation", "matrix_pipe_activity", "memory_bandwidth_utilisation", "power")
    return np.stack([*(values[_PLACE[name]] for name in names), both, values[_PLACE["storage_read_flow"]]])


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
