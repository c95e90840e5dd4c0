"""When a sample is delivered: at once, late, in a burst, after a partition, or never."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.telemetry.planning import Cut
from kuayu_conformance.testbed.telemetry.values import Scale

_LOST = 0.007  # share of samples that are lost, never two of a subject in a row
_LATE_NODES = 0.02
_LATE_BY = (1, 4)  # seconds
_LATE_DOMAIN_SECONDS = 16
_REPLAYED = 8  # seconds of stored telemetry that an aggregator sends in a second, oldest first
_NEVER = -1


@dataclass(frozen=True)
class Slow:
    """A whole domain is late for a while: it delivers in bursts, ``every`` seconds."""

    domain: int
    since: int
    until: int
    every: int


def slow(scale: Scale, seed: str, cut: Cut) -> Slow:
    """Which domain is late, and when; never the partitioned one unless there is no other."""
    chance = Chance(seed, "late domain")
    domain = (cut.domain + 1 + chance.below(max(1, scale.domains - 1))) % scale.domains
    since = scale.warm_up + 5 + chance.below(max(1, scale.seconds - _LATE_DOMAIN_SECONDS - 10))
    return Slow(domain, since, since + _LATE_DOMAIN_SECONDS, 3 + chance.below(2))


def lost(shape: tuple[int, int], chance: np.random.Generator) -> NDArray[np.bool_]:
    """Which samples (subjects × samples) are lost: single ones, their neighbours arrive."""
    gone = chance.random(shape, dtype=np.float32) < _LOST
    gone[:, 1:] &= ~gone[:, :-1]
    return gone


def seconds_of_delivery(
    sent: NDArray[np.bool_],
    domain: NDArray[np.int64],
    row: NDArray[np.int64],
    cut: Cut,
    late: Slow,
    chance: np.random.Generator,
) -> NDArray[np.int32]:
    """Second in which each sample is delivered.

    Args:
        sent: Which samples (subjects × samples) there are.
        domain: Domain of each subject.
        row: Node of each subject; the devices of a node are late together.
        cut: The partition.
        late: The domain that is late.
        chance: What decides who else is late.

    Returns:
        Subjects × samples; the second after that of the observation where nothing is in the way, -1 for never.
    """
    seconds = sent.shape[1]
    nodes = int(row.max()) + 1
    usual = np.arange(1, seconds + 1, dtype=np.int32)
    due = np.broadcast_to(usual, sent.shape).copy()
    tardy = chance.random(nodes) < _LATE_NODES
    by = chance.integers(_LATE_BY[0], _LATE_BY[1] + 1, nodes).astype(np.int32)
    bursts = chance.random(nodes) < 1 / 2
    for subject in np.flatnonzero(tardy[row]).tolist():
        period = int(by[row[subject]])
        due[subject] = (
            _in_bursts(usual, period, subject % period) if bursts[row[subject]] and period > 1 else usual + period
        )
    held_up = (domain == late.domain)[:, np.newaxis] & (due >= late.since) & (due < late.until)
    due = np.where(held_up, _in_bursts(due, late.every, 0), due)
    away = (domain == cut.domain)[:, np.newaxis] & (due >= cut.since)
    oldest = cut.since - 1 - _LATE_BY[1]
    replayed = cut.until + (usual - 1 - oldest) // _REPLAYED
    due = np.where(away, np.maximum(due, replayed), due)
    due[~sent] = _NEVER
    return due


def _in_bursts(usual: NDArray[np.int32], every: int, begin: int) -> NDArray[np.int32]:
    """Seconds in which what is usually delivered in others is delivered together."""
    return usual + (begin - usual) % every
