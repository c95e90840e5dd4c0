"""States of the world on the wire, as text: thousands of jobs are told of, most of them as they were told of last.

What does not change from epoch to epoch is written once: specifications and places, and all of a running job but how
far it is. Numbers are written as ``json`` writes them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.state import Phase
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Placement
from kuayu_conformance.testbed.scheduling.wire.names import Names
from kuayu_conformance.testbed.scheduling.wire.orders import BadAnswer, orders_of, refused_of
from kuayu_conformance.testbed.scheduling.wire.specs import placement_of, spec_of

_Json = dict[str, Any]
RUNNING = int(Phase.RUNNING)
_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Wire:
    """A scenario as a service sees it in one run; it keeps what it has said of jobs that it has seen.

    Phases: a job whose data are on the way or that goes on from a checkpoint is *staging*; one that writes its
    checkpoint before it moves is so too, at its new place; one that writes it before it waits again is *interrupted*,
    and ``ready_at`` is when its devices are free.

    Args:
        seed: Names and the clock follow from it.
        priced: Whether pools say what their devices cost on demand; otherwise they cost nothing.
    """

    def __init__(self, seed: str, *, priced: bool = False) -> None:
        self.names = Names(seed)
        self._priced = priced
        self._asked = 0
        self._revision: _Json = {}
        self._specs: dict[int, str] = {}
        self._data: dict[int, str] = {}
        self._placed: dict[int, tuple[Placement, str]] = {}
        self._running_as: dict[int, tuple[tuple[Any, ...], tuple[str, str]]] = {}
        self._copied: dict[tuple[str, tuple[int, ...]], tuple[str, str]] = {}
        self._roads: list[tuple[str, str, int, str, str]] = []
        self._kinds = ""

    def state_of(self, view: View) -> _Json:
        """A ``SchedulingState``; each one has a revision of its own."""
        state: _Json = json.loads(self._state(view))
        return state

    def request_of(self, view: View, asking: Mapping[str, Any]) -> bytes:
        """A JSON object with such a state as its member ``state``, and with some others."""
        others = f",{_text(asking)[1:]}" if asking else "}"
        return f'{{"state":{self._state(view)}{others}'.encode()

    def _state(self, view: View) -> str:
        self._asked += 1
        self._revision = {"epoch": self.names.epoch, "number": self._asked}
        waiting, running = view.pending.tolist(), view.running.tolist()
        for number in (*waiting, *running):
            if number not in self._specs:
                self._learn(view, number)
        members = {
            "waiting": _list(self._waiting(view, waiting)),
            "running": _list(self._running(view, running)),
            "revision": _text(self._revision),
            "now": f'"{self.names.instant(view.now)}"',
            "accelerators": self._accelerators(view),
            "domains": _text(self._domains(view)),
            "links": _list(self._links(view)),
            "copies": _list(self._copies(view, {*waiting, *running})),
        }
        if view.refused:
            members["refused"] = _text([refused_of(refused, self.names) for refused in view.refused])
        return "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"

    def orders_of(self, report: object) -> tuple[Order, ...]:
        """Orders from the answer to the last state.

        Raises:
            BadAnswer: It is none.
        """
        if not self._revision:
            raise BadAnswer("nothing was asked")
        return orders_of(report, self._revision, self.names)

    def _accelerators(self, view: View) -> str:
        if not self._kinds:
            kinds = []
            named = ((self.names.of("accelerator", name), name) for name in view.places.types)
            for given, name in sorted(named):
                device = view.topology.devices[name]
                profiles = sorted((self.names.of("profile", profile), index) for profile, index in device.index.items())
                indices = [{"profile": profile, "value": index} for profile, index in profiles]
                kinds.append({"id": given, "memory": device.memory, "indices": indices})
            self._kinds = _text(kinds)
        return self._kinds

    def _domains(self, view: View) -> list[_Json]:
        places, working, free = view.places, view.working.tolist(), view.free.tolist()
        domains = []
        for number, name in enumerate(places.sites):
            pools = []
            for pool in places.of_site[number].tolist():
                offered = {
                    "accelerator": self.names.of("accelerator", places.pools[pool][1]),
                    "devices": working[pool],
                    "free": free[pool],
                    "devices_per_node": int(places.per_node[pool]),
                }
                if self._priced:
                    offered["offers"] = [self._offer(view, pool, free[pool])]
                pools.append(offered)
            pools.sort(key=lambda entry: str(entry["accelerator"]))
            domain = {"id": self.names.of("domain", name), "pools": pools}
            domains.append(domain | {"reachable": False} if number in view.cut else domain)
        return sorted(domains, key=lambda domain: str(domain["id"]))

    @staticmethod
    def _offer(view: View, pool: int, free: int) -> _Json:
        name, device = view.places.pools[pool]
        site = next(site for site in view.topology.sites if site.name == name)
        price = next(pool.prices["on-demand"] for pool in site.pools if pool.device == device)
        return {"purchase": "on_demand", "devices": free, "price": price * view.topology.weather.price(view.now)}

    def _links(self, view: View) -> Iterator[str]:
        wires = view.topology.wires
        if not self._roads:
            for number, wire in enumerate(wires):
                source, target = (self.names.of("domain", end) for end in (wire.source, wire.target))
                before = f'{{"source":"{source}","target":"{target}","bandwidth":'
                self._roads.append((source, target, number, before, _text(wire.round_trip)))
            self._roads.sort()
        hour, offered, hopes = view.topology.weather.tariff(view.now), _numbers(view.offered), _numbers(view.hopes)
        for _, _, number, before, trip in self._roads:
            paid = f'"round_trip_time":{trip},"tariff":{float(wires[number].tariff * hour)!r}'
            yield f'{before}{offered[number]!r},"available":{hopes[number]!r},{paid}}}'

    def _copies(self, view: View, active: set[int]) -> Iterator[str]:
        found = []
        for moved in view.moved_data({self._data[number] for number in active}):
            if moved not in self._copied:
                name, sites = moved
                artefact = self.names.of("data", name)
                domains = sorted(self.names.of("domain", view.places.sites[site]) for site in sites)
                self._copied[moved] = artefact, _text({"artefact": artefact, "domains": domains})
            found.append(self._copied[moved])
        return (text for _, text in sorted(found))

    def _learn(self, view: View, number: int) -> None:
        """A job is seen for the first time."""
        job = view.job(number)
        self._data[number] = job.data
        self._specs[number] = _text(spec_of(job, view.dataset(number), self.names))

    def _waiting(self, view: View, numbers: list[int]) -> Iterator[str]:
        jobs = np.array(numbers, dtype=np.intp)
        for number, done, used in zip(
            numbers, _numbers(view.done(jobs)), _numbers(view.register.used[jobs]), strict=True
        ):
            saved = view.checkpoint_at(number)
            text = f'{{"spec":{self._specs[number]}'
            if done > 0.0 or saved is not None or used != 1.0:
                text += f',"used":{used!r},"done":{done!r}{self._checkpoint(view, saved)}'
            yield text + "}"

    def _running(self, view: View, numbers: list[int]) -> Iterator[str]:
        jobs, last = view.running, self._running_as
        moments = (column.tolist() for column in (view.phases(jobs), view.ready(jobs), view.interrupted(jobs)))
        figures = map(_numbers, (view.register.used[jobs], view.done(jobs), view.rates(jobs)))
        for number, phase, ready, interrupted, used, done, rate in zip(numbers, *moments, *figures, strict=True):
            runs = phase == RUNNING
            placement, then, saved = view.placement(number), view.going(number), view.checkpoint_at(number)
            seen = placement, then, saved, phase, used, interrupted, None if runs else max(ready, view.now)
            known = last.get(number)
            if known is None or known[0] != seen:
                last[number] = known = seen, self._runs(view, number, *seen)
            before, after = known[1]
            yield f'{before}{done!r},"rate":{rate!r}{after}' if runs else f"{before}{done!r}{after}"

    def _runs(
        self,
        view: View,
        number: int,
        placement: Placement,
        then: Placement | None,
        saved: int | None,
        phase: int,
        used: float,
        interrupted: float,
        ready: float | None,
    ) -> tuple[str, str]:
        """What is said of a running job before what it has done, and behind its rate."""
        waits = "interrupted" if phase == Phase.SAVING and then is None else "staging"
        said = "running" if phase == RUNNING else waits
        place = self._place(number, then or placement)
        before = f'{{"spec":{self._specs[number]},"placement":{place},"phase":"{said}","done":'
        after = ""
        if ready is not None and ready < inf:
            after += f',"ready_at":"{self.names.instant(ready)}"'
        if phase in {Phase.RUNNING, Phase.SAVING} or saved is not None or used != 1.0:
            after += f',"used":{used!r}'
        after += self._checkpoint(view, saved)
        if interrupted > -inf:
            after += f',"interrupted_at":"{self.names.instant(interrupted)}"'
        return before, after + "}"

    def _checkpoint(self, view: View, saved: int | None) -> str:
        return "" if saved is None else f',"checkpoint_domain":"{self.names.of("domain", view.places.sites[saved])}"'

    def _place(self, number: int, placement: Placement) -> str:
        kept = self._placed.get(number)
        if kept is None or kept[0] is not placement:
            kept = self._placed[number] = placement, _text(placement_of(placement, self.names))
        return kept[1]


def _list(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _numbers(column: Floats) -> list[float]:
    """Numbers whose ``repr`` is JSON.

    Raises:
        ValueError: One is none of JSON.
    """
    if not np.isfinite(column).all():
        raise ValueError("JSON has no infinite numbers")
    numbers: list[float] = column.tolist()
    return numbers
