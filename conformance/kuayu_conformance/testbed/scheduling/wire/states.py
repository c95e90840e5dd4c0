"""States of the world on the wire. What does not change from epoch to epoch is made once."""

from math import inf
from typing import Any

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.progress import Phase
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Placement
from kuayu_conformance.testbed.scheduling.wire.names import Names
from kuayu_conformance.testbed.scheduling.wire.orders import BadAnswer, orders_of, refused_of
from kuayu_conformance.testbed.scheduling.wire.specs import placement_of, spec_of

_Json = dict[str, Any]


class Wire:
    """A scenario as a service sees it in one run; it keeps what it has said of jobs that it has seen.

    Phases: a job whose data are on the way or that goes on from a checkpoint is *staging*; one that writes its
    checkpoint before it moves is so too, at its new place; one that writes it before it waits again is *interrupted*,
    and ``ready_at`` is when its devices are free. States are plain values that may share parts: whoever changes one
    copies it first.

    Args:
        seed: Names and the clock follow from it.
        priced: Whether pools say what their devices cost on demand; otherwise they cost nothing.
    """

    def __init__(self, seed: str, *, priced: bool = False) -> None:
        self.names = Names(seed)
        self._priced = priced
        self._asked = 0
        self._revision: _Json = {}
        self._specs: dict[int, _Json] = {}
        self._data: dict[int, str] = {}
        self._untouched: dict[int, _Json] = {}
        self._placed: dict[int, tuple[Placement, _Json]] = {}
        self._kinds: list[_Json] = []

    def state_of(self, view: View) -> _Json:
        """A ``SchedulingState``; each one has a revision of its own."""
        self._asked += 1
        self._revision = {"epoch": self.names.epoch, "number": self._asked}
        waiting, running = view.pending.tolist(), view.running.tolist()
        state = {
            "revision": self._revision,
            "now": self.names.instant(view.now),
            "accelerators": self._accelerators(view),
            "domains": self._domains(view),
            "links": self._links(view),
            "copies": self._copies(view, {*waiting, *running}),
            "waiting": self._waiting(view, waiting),
            "running": self._running(view, running),
        }
        if view.refused:
            state["refused"] = [refused_of(refused, self.names) for refused in view.refused]
        return state

    def orders_of(self, report: object) -> tuple[Order, ...]:
        """Orders from the answer to the last state.

        Raises:
            BadAnswer: It is none.
        """
        if not self._revision:
            raise BadAnswer("nothing was asked")
        return orders_of(report, self._revision, self.names)

    def _accelerators(self, view: View) -> list[_Json]:
        if not self._kinds:
            named = ((self.names.of("accelerator", name), name) for name in view.places.types)
            for given, name in sorted(named):
                device = view.topology.devices[name]
                profiles = sorted((self.names.of("profile", each), index) for each, index in device.index.items())
                indices = [{"profile": profile, "value": index} for profile, index in profiles]
                self._kinds.append({"id": given, "memory": device.memory, "indices": indices})
        return self._kinds

    def _domains(self, view: View) -> list[_Json]:
        places, working, free = view.places, view.working.tolist(), view.free.tolist()
        domains = []
        for number, name in enumerate(places.sites):
            pools = []
            for pool in places.of_site[number].tolist():
                told = {
                    "accelerator": self.names.of("accelerator", places.pools[pool][1]),
                    "devices": working[pool],
                    "free": free[pool],
                    "devices_per_node": int(places.per_node[pool]),
                }
                if self._priced:
                    told["offers"] = [self._offer(view, pool, free[pool])]
                pools.append(told)
            pools.sort(key=lambda told: str(told["accelerator"]))
            told = {"id": self.names.of("domain", name), "pools": pools}
            domains.append(told | {"reachable": False} if number in view.cut else told)
        return sorted(domains, key=lambda domain: str(domain["id"]))

    @staticmethod
    def _offer(view: View, pool: int, free: int) -> _Json:
        name, device = view.places.pools[pool]
        site = next(site for site in view.topology.sites if site.name == name)
        price = next(each.prices["on-demand"] for each in site.pools if each.device == device)
        return {"purchase": "on_demand", "devices": free, "price": price * view.topology.weather.price(view.now)}

    def _links(self, view: View) -> list[_Json]:
        hour = view.topology.weather.tariff(view.now)
        rows = zip(view.topology.wires, view.offered.tolist(), view.hopes.tolist(), strict=True)
        links = [
            {
                "source": self.names.of("domain", wire.source),
                "target": self.names.of("domain", wire.target),
                "bandwidth": offered,
                "available": hope,
                "round_trip_time": wire.round_trip,
                "tariff": wire.tariff * hour,
            }
            for wire, offered, hope in rows
        ]
        return sorted(links, key=lambda link: (link["source"], link["target"]))

    def _copies(self, view: View, active: set[int]) -> list[_Json]:
        read = {self._data[number] for number in active if number in self._data or self._learn(view, number)}
        copies = [
            {
                "artefact": self.names.of("data", name),
                "domains": sorted(self.names.of("domain", view.places.sites[site]) for site in sites),
            }
            for name, sites in view.moved_data(read)
        ]
        return sorted(copies, key=lambda copy: str(copy["artefact"]))

    def _learn(self, view: View, number: int) -> bool:
        """A job is seen for the first time."""
        job = view.job(number)
        self._data[number] = job.data
        self._specs[number] = spec = spec_of(job, view.dataset(number), self.names)
        self._untouched[number] = {"spec": spec}
        return True

    def _waiting(self, view: View, numbers: list[int]) -> list[_Json]:
        done = view.done(np.array(numbers, dtype=np.intp)).tolist()
        told = []
        for number, so_far in zip(numbers, done, strict=True):
            saved, used = view.checkpoint_at(number), view.job(number).used
            job = self._untouched[number]
            if so_far > 0.0 or saved is not None or used != 1.0:
                job = {**job, "used": used, "done": so_far}
                if saved is not None:
                    job["checkpoint_domain"] = self.names.of("domain", view.places.sites[saved])
            told.append(job)
        return told

    def _running(self, view: View, numbers: list[int]) -> list[_Json]:
        jobs = view.running
        columns = (view.done(jobs), view.rates(jobs), view.ready(jobs), view.interrupted(jobs))
        rows = zip(numbers, *(column.tolist() for column in columns), strict=True)
        return [self._runs(view, *row) for row in rows]

    def _runs(self, view: View, number: int, done: float, rate: float, ready: float, interrupted: float) -> _Json:
        phase, then = view.phase(number), view.going(number)
        known, saved = view.job(number).used, view.checkpoint_at(number)
        told: _Json = {
            "spec": self._specs[number],
            "placement": self._place(number, then or view.placement(number)),
            "phase": "running" if phase is Phase.RUNNING else "staging",
            "done": done,
        }
        if phase is Phase.RUNNING:
            told["rate"] = rate
        elif ready < inf:
            told["ready_at"] = self.names.instant(max(ready, view.now))
        if phase is Phase.SAVING and then is None:
            told["phase"] = "interrupted"
        if phase in {Phase.RUNNING, Phase.SAVING} or saved is not None or known != 1.0:
            told["used"] = known
        if saved is not None:
            told["checkpoint_domain"] = self.names.of("domain", view.places.sites[saved])
        if interrupted > -inf:
            told["interrupted_at"] = self.names.instant(interrupted)
        return told

    def _place(self, number: int, placement: Placement) -> _Json:
        kept = self._placed.get(number)
        if kept is None or kept[0] is not placement:
            kept = self._placed[number] = placement, placement_of(placement, self.names)
        return kept[1]
