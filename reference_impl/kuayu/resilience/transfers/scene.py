"""What a shard plan follows from: links as they were measured, streams of training data, room for what comes early.

Bytes, seconds and bytes a second; instants are seconds after the plan is asked for. A *step* of a stream takes data
that came over a link or data of the local cache; a *slot* is when a step is due, whatever data it takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """The way from one domain to another.

    Attributes:
        source: Domain that sends.
        destination: Domain that receives.
        measured: Bytes a second, oldest first, one for each interval, (T,); nought where it was out, NaN where nothing
            was measured.
        latency_s: Seconds that a request takes beside its bytes.
        up: Whether it is known to carry now.
    """

    source: str
    destination: str
    measured: Floats
    latency_s: float
    up: bool = True


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A transfer that has begun.

    Attributes:
        link: Number of its link.
        begin: First byte, counted from the first byte of the next step that takes data from afar.
        end: The byte after its last.
        left: Bytes that have not come.
    """

    link: int
    begin: float
    end: float
    left: float


@dataclass(frozen=True, slots=True)
class Stream:
    """The data that one job's steps take in one domain.

    Attributes:
        name: Of the job.
        destination: Domain that computes.
        sources: Domains that hold copies.
        step_bytes: Bytes of a step.
        step_s: Seconds of a step.
        begins_s: When the next step is due.
        remote_steps: Steps that are still to take data from afar.
        local_steps: Steps whose data lie in the local cache. They may be taken in any slot: an epoch is read in any
            order. Nought where the order is fixed.
        gaps: Bytes that neither are here nor under way, as (begin, end) in rising order; counted like those of
            ``UnderWay``. Every other byte below the last end is here or under way.
        under_way: What is.
    """

    name: str
    destination: str
    sources: frozenset[str]
    step_bytes: float
    step_s: float
    begins_s: float
    remote_steps: int
    local_steps: int = 0
    gaps: tuple[tuple[float, float], ...] = ()
    under_way: tuple[UnderWay, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a plan follows from.

    Attributes:
        links: At most one from a source to a destination.
        streams: Of any number of destinations.
        rooms: Bytes that a destination can hold of what comes early; none where it is not named.
        interval_s: Seconds between measurements.
        horizon_s: How far ahead is planned.
        saving: Share of time that one more step of depth has to save, else the buffer stays free.
    """

    links: tuple[Link, ...]
    streams: tuple[Stream, ...]
    rooms: Mapping[str, float]
    interval_s: float
    horizon_s: float = 60.0
    saving: float = 1e-5

    def __post_init__(self) -> None:
        """Look whether figures can be what they stand for.

        Raises:
            ValueError: One cannot.
        """
        if not (self.interval_s > 0.0 and self.horizon_s > 0.0):
            raise ValueError("interval_s and horizon_s must be positive")
        if any(room < 0.0 for room in self.rooms.values()):
            raise ValueError("a room cannot be negative")
        pairs = [(link.source, link.destination) for link in self.links]
        if len(set(pairs)) < len(pairs):
            raise ValueError("two links join the same domains the same way")
        for stream in self.streams:
            if not (stream.step_bytes > 0.0 and stream.step_s > 0.0 and isfinite(stream.begins_s)):
                raise ValueError(f"stream {stream.name}: step_bytes and step_s must be positive, begins_s finite")
            if any(not 0 <= each.link < len(self.links) for each in stream.under_way):
                raise ValueError(f"stream {stream.name}: a transfer is under way over no known link")
