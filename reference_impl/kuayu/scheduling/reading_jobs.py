"""Jobs of a state as they are told, column by column; names and instants are still texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kuayu.scheduling.scene import Counts, Floats

Plain = Mapping[str, Any]

_NOTHING: Plain = {}

FIGURES = (
    *("minimum", "maximum", "requested", "step", "memory", "serial", "used", "duration", "done", "priority", "period"),
    *("step_time", "exchange", "boundary", "checkpoint", "bandwidth", "round_trip"),
)
"""Figures of a job, in the order in which they are read."""


class Read:
    """What is read of jobs: each once, and all of it while it is at hand, since that is what reading takes.

    Args:
        entries: Jobs that wait and jobs that run.

    Attributes:
        figures: By name; not a number where there is none.
        names: Of jobs.
        submitted: Instants, as texts.
        deadline: Likewise, or none.
        profile: Name, or none.
        home: Name of a domain, or none.
        saved: Likewise.
        modes: Split modes, and whether the job tells anything of its communication.
        kinds: Kinds of devices that will do; empty where all do.
        resumes: Whether it goes on from a checkpoint.
        readers: Number of the job, by artefact that is read.
        artefacts: Names of these.
        sizes: Bytes of each.
        pinned: Whether it may not leave its domains, if that is told.
        domains: Names of the domains that hold it.
        begun: Likewise of what jobs start from, whether it is still read or not.
    """

    def __init__(self, entries: Sequence[Plain]) -> None:
        self.names: list[str] = []
        self.submitted: list[str] = []
        self.deadline: list[str | None] = []
        self.profile: list[str | None] = []
        self.home: list[str | None] = []
        self.saved: list[str | None] = []
        self.modes: list[tuple[Any, ...]] = []
        self.kinds: list[tuple[str, ...]] = []
        self.resumes: list[bool] = []
        self.readers: list[int] = []
        self.artefacts: list[str] = []
        self.sizes: list[float] = []
        self.pinned: list[bool | None] = []
        self.domains: list[Sequence[str]] = []
        self.begun: list[Sequence[str]] = []
        figures: list[float | None] = []
        for number, entry in enumerate(entries):
            figures += self._job(number, entry)
        table = np.array(figures, dtype=np.float64).reshape(len(entries), len(FIGURES))
        self.figures: dict[str, Floats] = dict(zip(FIGURES, table.T.copy(), strict=True))

    def _job(self, number: int, entry: Plain) -> tuple[float | None, ...]:
        spec = entry["spec"]
        get = spec.get
        saved, start, talks = entry.get("checkpoint_domain"), get("checkpoint"), get("communication")
        self.names.append(spec["id"])
        self.submitted.append(spec["submitted_at"])
        self.deadline.append(get("deadline"))
        self.profile.append(get("task_profile"))
        self.home.append(get("home_domain"))
        self.saved.append(saved)
        self.modes.append((*spec["split_modes"], bool(talks)))
        self.kinds.append(tuple(get("device_kinds") or ()))
        self.resumes.append(saved is not None or start is not None)
        for artefact in get("data") or ():
            self._reads(number, artefact)
        talks = talks or _NOTHING
        size = talks.get("checkpoint_size")
        if start is not None:
            self.begun.append(start["domains"])
            if saved is None:
                # what it starts from is read like data until it has written one of its own
                self._reads(number, start)
                size = start["size"]
        devices, needs, duration = spec["devices"], get("links") or _NOTHING, get("duration") or _NOTHING
        return (
            devices["minimum"],
            devices["maximum"],
            devices.get("requested"),
            devices.get("step"),
            get("memory_per_device"),
            get("serial_share"),
            entry.get("used"),
            duration.get("expected"),
            entry.get("done"),
            get("priority"),
            get("sync_period"),
            talks.get("step_time"),
            talks.get("exchange"),
            talks.get("boundary"),
            size,
            needs.get("bandwidth"),
            needs.get("round_trip_time"),
        )

    def _reads(self, number: int, artefact: Plain) -> None:
        self.readers.append(number)
        self.artefacts.append(artefact["id"])
        self.sizes.append(artefact["size"])
        self.pinned.append(artefact.get("pinned"))
        self.domains.append(artefact["domains"])

    def figure(self, name: str, absent: float) -> Floats:
        """Figures by job."""
        found = self.figures[name]
        return np.where(np.isnan(found), absent, found)

    def whole(self, name: str, absent: float = 0.0) -> Counts:
        """Whole numbers by job."""
        return self.figure(name, absent).astype(np.int64)


def read_of(state: Plain) -> Read:
    """What is read of the jobs of a state."""
    return Read([*state["waiting"], *state["running"]])
