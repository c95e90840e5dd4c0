"""Jobs of a state as they are told, column by column; names and instants are still texts."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from kuayu.scheduling.scene import Counts, Floats

Plain = Mapping[str, Any]

_NOTHING: Plain = {}


class Read:
    """What is read of jobs, column by column: a state has thousands of them.

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
        specs: list[Plain] = [entry["spec"] for entry in entries]
        devices: list[Plain] = [spec["devices"] for spec in specs]
        talks: list[Plain] = [spec.get("communication") or _NOTHING for spec in specs]
        needs: list[Plain] = [spec.get("links") or _NOTHING for spec in specs]
        starts: list[Plain | None] = [spec.get("checkpoint") for spec in specs]
        self.names: list[str] = [spec["id"] for spec in specs]
        self.submitted: list[str] = [spec["submitted_at"] for spec in specs]
        self.deadline: list[str | None] = [spec.get("deadline") for spec in specs]
        self.profile: list[str | None] = [spec.get("task_profile") for spec in specs]
        self.home: list[str | None] = [spec.get("home_domain") for spec in specs]
        self.saved: list[str | None] = [entry.get("checkpoint_domain") for entry in entries]
        self.modes = [(*spec["split_modes"], bool(each)) for spec, each in zip(specs, talks, strict=True)]
        self.kinds: list[tuple[str, ...]] = [tuple(spec.get("device_kinds") or ()) for spec in specs]
        self.begun: list[Sequence[str]] = [start["domains"] for start in starts if start is not None]
        self.resumes = [saved is not None for saved in self.saved]
        reads = [(number, each) for number, spec in enumerate(specs) for each in spec.get("data") or ()]
        sizes: list[float | None] = [each.get("checkpoint_size") for each in talks]
        for number, start in enumerate(starts):
            if start is not None and not self.resumes[number]:
                # what it starts from is read like data until it has written one of its own
                reads.append((number, start))
                sizes[number] = start["size"]
            self.resumes[number] |= start is not None
        reads.sort(key=itemgetter(0))
        self.readers = [number for number, _ in reads]
        self.artefacts: list[str] = [each["id"] for _, each in reads]
        self.sizes: list[float] = [each["size"] for _, each in reads]
        self.pinned: list[bool | None] = [each.get("pinned") for _, each in reads]
        self.domains: list[Sequence[str]] = [each["domains"] for _, each in reads]
        self.figures: dict[str, Floats] = {
            name: np.array(column, dtype=np.float64)
            for name, column in (
                ("minimum", [each["minimum"] for each in devices]),
                ("maximum", [each["maximum"] for each in devices]),
                ("requested", [each.get("requested") for each in devices]),
                ("step", [each.get("step") for each in devices]),
                ("memory", [spec.get("memory_per_device") for spec in specs]),
                ("serial", [spec.get("serial_share") for spec in specs]),
                ("used", [entry.get("used") for entry in entries]),
                ("duration", [(spec.get("duration") or _NOTHING).get("expected") for spec in specs]),
                ("done", [entry.get("done") for entry in entries]),
                ("priority", [spec.get("priority") for spec in specs]),
                ("period", [spec.get("sync_period") for spec in specs]),
                ("step_time", [each.get("step_time") for each in talks]),
                ("exchange", [each.get("exchange") for each in talks]),
                ("boundary", [each.get("boundary") for each in talks]),
                ("checkpoint", sizes),
                ("bandwidth", [each.get("bandwidth") for each in needs]),
                ("round_trip", [each.get("round_trip_time") for each in needs]),
            )
        }

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
