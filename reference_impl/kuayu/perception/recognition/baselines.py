"""What is usual for a node: running baselines of its signals, which follow the node and not its troubles.

All in logarithms, so that a ratio is a difference. *Usual* is the level while the node works: it follows values near
it within half a minute and higher ones within a minute, but much lower ones only after a quarter of an hour, since
work that is slow for minutes is not yet the usual; unless the memory in use tells that another job has come. A node
that gave its memory back begins anew with its next job.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kuayu.perception.recognition.rows import Column
from kuayu.perception.recognition.values import Flags, Floats

UTILISATION, PIPE, MEMORY_PIPE, POWER, FLOW, STORAGE, PER_PIPE, PER_MEMORY, PER_POWER = range(9)
"""Channels: six signals, and three of them for each unit of utilisation."""

CHANNELS = 9
SIGNAL_CHANNELS = 6
STEADY = [UTILISATION, PIPE, MEMORY_PIPE, POWER, PER_PIPE, PER_MEMORY, PER_POWER]
"""Channels that do not come in bursts."""

NEAR = 0.12
"""Difference of logarithms within which a value counts as the usual one."""

NEAR_TIME, HIGH_TIME, LOW_TIME, OTHER_JOB_TIME = 25.0, 60.0, 900.0, 30.0
"""Seconds within which the usual follows values near it, above it, below it, and of another job."""

FAR, FAR_TIME = 0.5, 6.0
"""Difference of logarithms above the usual, and seconds within which it follows then: what was learnt was not the
usual, since nothing works that much better than it can. Not so for flow and storage, which come in bursts."""

OTHER_MEMORY = 0.15
"""Part by which the memory in use differs between jobs, and not within one."""

RESTLESS_TIME = 120.0
"""Seconds over which deviations of the utilisation from its usual are averaged, or of the pipe's activity or of power
where that is not known: a server's are always large."""

UNEVEN = 0.2
"""Mean of these deviations above which the work of a node is as uneven as a server's."""

SETTLED, RISE = 20, 0.0015
"""Samples at work after which the unevenness that is usual is known, and how much of it a second can add from then on:
a node that is slowed deviates from its usual all the while, and is not uneven for that until two minutes are over."""

SHORT, MEDIUM = 2.0, 15.0
"""Seconds of the two averages that tell sudden changes."""

FORGET = 3600.0
"""Seconds within which the lowest and the highest power are forgotten."""

QUICK = 10
"""Samples at work after which a baseline is no longer a plain mean."""


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
    restless: Annotated[Floats, Column(0.1, np.float32)]
    uneven: Annotated[Floats, Column(0.1, np.float32)]


def follow(average: Floats, value: Floats, step: Floats, seconds: float | Floats, where: Flags) -> None:
    """Let an average move to a value in place; it begins with the first one, and NaN leaves it as it is."""
    seen = where & ~np.isnan(value)
    begun = average + (value - average) * (step / (step + seconds))
    np.copyto(average, np.where(np.isnan(average), value, begun), where=seen)


def learn_power(baselines: Baselines, power: Floats, step: Floats, fresh: Flags) -> None:
    """Follow the lowest and the highest power: quickly outwards, slowly inwards."""
    down = np.where(power < baselines.lowest, np.float32(3.0), np.float32(FORGET))
    up = np.where(power > baselines.highest, np.float32(8.0), np.float32(FORGET))
    follow(baselines.lowest, power, step, down, fresh)
    follow(baselines.highest, power, step, up, fresh)


def dynamic_share(baselines: Baselines, power: Floats) -> Floats:
    """Where the power stands between the idle and the highest one.

    A node that was never seen idle is taken to idle at three tenths of its highest power or less.
    """
    idle = np.fmin(baselines.lowest, 0.3 * baselines.highest)
    share: Floats = (power - idle) / np.maximum(baselines.highest - idle, 1.0)
    return share


def learn(baselines: Baselines, logs: Floats, memory: Floats, step: Floats, fresh: Flags, working: Flags) -> None:
    """Let the baselines follow a fresh sample of channels (channels, nodes)."""
    at_work = fresh & working
    baselines.counted += at_work
    baselines.seen_at_rest |= fresh & ~working
    difference = logs - baselines.usual
    other_job = another_job(baselines, memory)
    low = np.where(other_job, np.float32(OTHER_JOB_TIME), np.float32(LOW_TIME))
    seconds = np.where(
        difference > NEAR, np.float32(HIGH_TIME), np.where(difference < -NEAR, low, np.float32(NEAR_TIME))
    )
    seconds[STEADY] = np.where(difference[STEADY] > FAR, np.float32(FAR_TIME), seconds[STEADY])
    weight = step / (step + seconds)
    weight = np.maximum(weight, np.where(baselines.counted < QUICK, 1 / np.maximum(baselines.counted, 1), 0))
    known = ~np.isnan(logs)
    begun = np.where(np.isnan(baselines.usual), logs, baselines.usual + weight * difference)
    np.copyto(baselines.usual, begun, where=at_work & known)
    mean = step * np.maximum(baselines.counted - 1, 0.0)  # a plain one, until as much is known as is averaged over
    follow(baselines.memory, memory, step, np.minimum(mean, NEAR_TIME), at_work)
    most = np.where(memory > baselines.most_memory, np.float32(0.1), np.float32(FORGET))
    follow(baselines.most_memory, memory, step, most, fresh)
    moved = np.abs(logs[[UTILISATION, POWER]] - baselines.short[[UTILISATION, POWER]])
    follow(baselines.noise, np.minimum(moved, 0.3), step, 30.0, fresh)
    of_work = np.where(np.isnan(difference[PIPE]), difference[POWER], difference[PIPE])
    of_work = np.where(np.isnan(difference[UTILISATION]), of_work, difference[UTILISATION])
    deviation = np.minimum(np.abs(of_work), 1.0)
    follow(baselines.restless, deviation, step, np.minimum(mean, RESTLESS_TIME), at_work)
    known = np.where(
        baselines.counted < SETTLED, baselines.restless, np.fmin(baselines.restless, baselines.uneven + RISE * step)
    )
    np.copyto(baselines.uneven, known, where=at_work)
    follow(baselines.short, logs[:SIGNAL_CHANNELS], step, SHORT, fresh)
    follow(baselines.medium, logs[:SIGNAL_CHANNELS], step, MEDIUM, fresh)


def another_job(baselines: Baselines, memory: Floats) -> Flags:
    """Whether as much memory is in use as no longer belongs to the job that is known: given back, or another's."""
    flags: Flags = np.abs(memory - baselines.memory) > OTHER_MEMORY * baselines.memory
    return flags


def forget(baselines: Baselines, where: Flags) -> None:
    """Let the next job begin anew: what was usual for the last one says little about it."""
    baselines.counted = np.where(where & (baselines.counted > 0), np.float32(0.5), baselines.counted)


def learn_share(baselines: Baselines, share: Floats, step: Floats, fresh: Flags, working: Flags) -> None:
    """Follow the allocatable share, apart while the node works and while it is idle; upwards soon, downwards late.

    All of an idle node can be given out unless something is wrong; while it works, that depends on the scheduler.
    """
    for usual, regime in ((baselines.share, working), (baselines.share_idle, ~working)):
        seconds = np.where(share >= usual, np.float32(5.0), np.float32(LOW_TIME))
        follow(usual, share, step, seconds, fresh & regime)
