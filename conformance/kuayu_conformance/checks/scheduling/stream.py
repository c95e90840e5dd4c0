"""A busy federation from minute to minute: each state is a new one, and is written in little time.

The suite writes megabytes for each decision; so what has not changed is kept as text.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from kuayu_conformance.checks.scheduling.placement_requests import StateBuilder, alone, take
from kuayu_conformance.episode import instant

if TYPE_CHECKING:
    from kuayu_schemas import documents

STEP = 60.0
"""Seconds from one state to the next."""
SIZES = (1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 16)
"""Devices of a job: most want one, a few hold most of the devices."""
_TRIES = 4
"""Places that are looked at for each job that is to begin."""


@dataclass(frozen=True)
class Scale:
    """How large a federation is.

    Attributes:
        domains: How many.
        nodes: Nodes of a domain, in two pools.
        running: Jobs that run, as long as there is room.
        waiting: Jobs that wait.
    """

    domains: int
    nodes: int
    running: int
    waiting: int

    @property
    def label(self) -> str:
        """In words."""
        return f"{self.domains} domains, {self.domains * self.nodes} nodes, {self.running + self.waiting} active jobs"


@dataclass
class _Run:
    """A job that runs: its spec and placement as text, its pool, its share, and what it has done."""

    text: str
    pool: "documents.ComputePool"
    share: "documents.DomainShare"
    rate: float
    done: float


class Stream:
    """States of a federation, one after the other.

    Args:
        draft: Draws them.
        scale: How large.
    """

    def __init__(self, builder: StateBuilder, scale: Scale) -> None:
        self._draft, self._scale = builder, scale
        self._profiles = builder.names(4)
        kinds = [builder.accelerator(self._profiles, speed=1.0)]
        kinds += [builder.accelerator(self._profiles) for _ in range(4)]
        self._domains = []
        for _ in range(scale.domains):
            one, other = builder.chance.sample(kinds, 2)
            half = scale.nodes // 2
            pools = [builder.pool(one, scale.nodes - half, switches=4), builder.pool(other, half, switches=4)]
            self._domains.append(builder.domain(*pools))
        self._names = [domain["id"] for domain in self._domains]
        self._kinds, self._links = json.dumps(kinds), builder.mesh(self._names)
        self._number = builder.chance.randrange(1_000_000)
        self._minutes = 0
        self._places = [(domain["id"], pool) for domain in self._domains for pool in domain["pools"]]
        self._running: list[_Run] = []
        self._fill()
        self._waiting = [json.dumps({"spec": self._spec()}) for _ in range(scale.waiting)]

    def __iter__(self) -> Iterator[bytes]:
        """Requests for placements, without end."""
        while True:
            yield self._written()
            self._pass()

    def _pass(self) -> None:
        """A minute goes by: others have begun where jobs ended before, some end, and others come to wait.

        So what is free is what has just become so, as in a federation in which many wait.
        """
        chance = self._draft.chance
        self._minutes += 1
        self._number += chance.randrange(1, 50)
        for run in self._running:
            run.done += run.rate * STEP
        self._fill()
        for _ in range(max(1, len(self._running) // 40)):
            ended = self._running.pop(chance.randrange(len(self._running)))
            _give_back(ended)
        for link in self._links:
            link["available"] = link["bandwidth"] * chance.uniform(0.3, 1.0)
        come = max(1, self._scale.waiting // 20)
        for _ in range(come):
            del self._waiting[chance.randrange(len(self._waiting))]
        self._waiting += [json.dumps({"spec": self._spec()}) for _ in range(come)]

    def _fill(self) -> None:
        """Jobs begin until enough run, or until there is hardly any room."""
        missing = self._scale.running - len(self._running)
        tried = (run for _ in range(_TRIES * missing) if (run := self._begun()))
        self._running += islice(tried, missing)

    def _spec(self) -> "documents.JobSpec":
        chance = self._draft.chance
        devices = chance.choice(SIZES)
        modes = ["none", "periodic", "pipeline"] if devices >= 16 and chance.random() < 0.5 else ["none"]
        submitted = instant(self._draft.now + STEP * self._minutes - chance.randrange(1, 60))
        return self._draft.spec(
            chance.choice(self._profiles), chance.choice(self._names), (max(1, devices // 2), devices, devices),
            split_modes=modes, submitted_at=submitted,
        )  # fmt: skip

    def _begun(self) -> _Run | None:
        """A job that begins to run where there is room; one device in a hundred is left free."""
        chance = self._draft.chance
        name, pool = self._places[chance.randrange(len(self._places))]
        devices = min(chance.choice(SIZES), pool["free"] - pool["devices"] // 100)
        if devices <= 0:
            return None
        spec: documents.JobSpec = {**self._spec(), "devices": {"minimum": devices, "maximum": devices}}
        placement = alone(name, pool, devices)
        share = placement["shares"][0]
        take(pool, share)
        text = f'"spec":{json.dumps(spec)},"placement":{json.dumps(placement)}'
        return _Run(text, pool, share, float(devices), chance.uniform(0.0, 900.0) * devices)

    def _written(self) -> bytes:
        state = {
            "revision": {"epoch": self._draft.epoch, "number": self._number},
            "now": instant(self._draft.now + STEP * self._minutes),
            "links": self._links,
            "domains": self._domains,
        }
        running = ",".join(
            f'{{{run.text},"phase":"running","used":1.0,"rate":{run.rate!r},"done":{run.done!r}}}'
            for run in self._running
        )
        text = (
            f'{{"state":{json.dumps(state)[:-1]},"accelerators":{self._kinds},'
            f'"waiting":[{",".join(self._waiting)}],"running":[{running}]}}}}'
        )
        return text.encode()


def _give_back(run: _Run) -> None:
    run.pool["free"] += run.share["devices"]
    devices_by_node = {entry["node"]: entry["devices"] for entry in run.share["nodes"]}
    for node in run.pool["nodes"]:
        node["free"] += devices_by_node.get(node["id"], 0)
