"""What moving costs: staging, checkpoints, restarts, migration. Bytes and seconds."""

from math import inf, sqrt

from kuayu_conformance.testbed.scheduling.law.facts import PUBLISHED, Constants
from kuayu_conformance.testbed.scheduling.values import Placement, Split

_BITS = 8.0


def transfer(size: float, bandwidth: float, round_trip: float = 0.0) -> float:
    """Seconds in which so many bytes arrive over so many bits a second; infinite if none are granted."""
    if size <= 0.0:
        return 0.0
    return size * _BITS / bandwidth + round_trip if bandwidth > 0.0 else inf


def saving(checkpoint: float, placement: Placement, constants: Constants = PUBLISHED) -> float:
    """Seconds in which a checkpoint is written: by the largest replica, since all are alike, or by all stages."""
    counts = [share.devices for share in placement.shares]
    writers = sum(counts) if placement.split is Split.PIPELINE else max(counts)
    return checkpoint / (constants.storage * writers)


def restart(checkpoint: float, placement: Placement, constants: Constants = PUBLISHED) -> float:
    """Seconds until the first step: processes begin, and the smallest replica, or all stages, read the checkpoint."""
    counts = [share.devices for share in placement.shares]
    counted = sum(counts) if placement.split is Split.PIPELINE else min(counts)
    return constants.starting + checkpoint / (constants.storage * counted)


def interval(checkpoint: float, placement: Placement, constants: Constants = PUBLISHED) -> float:
    """Seconds between checkpoints: ``√(2 · saving · time between faults)``, and no less than saving takes.

    J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974). They are written
    while the job goes on, so that they do not slow it.
    """
    saving_time = saving(checkpoint, placement, constants)
    between = constants.between_faults / sum(share.devices for share in placement.shares)
    return max(saving_time, sqrt(2.0 * saving_time * between))


def migration(
    checkpoint: float,
    missing: float,
    before: Placement,
    after: Placement,
    bandwidth: float,
    round_trip: float = 0.0,
    constants: Constants = PUBLISHED,
) -> float:
    """Seconds without progress when a job moves: saved, sent with the data that the new place lacks, and begun again.

    Args:
        checkpoint: Bytes of it.
        missing: Bytes of data that go the same way.
        before: Where the job was.
        after: Where it goes on.
        bandwidth: Bits a second between the two.
        round_trip: Seconds between them.
        constants: What is the same for all jobs.
    """
    sent = transfer(checkpoint + missing, bandwidth, round_trip)
    return saving(checkpoint, before, constants) + sent + restart(checkpoint, after, constants)
