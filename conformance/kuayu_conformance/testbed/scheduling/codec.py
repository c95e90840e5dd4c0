"""The simulated world as the standard's model has it: states that are asked about, and the orders in the answers.

    codec = StateCodec(seed)                               # one for each scenario and run
    policy = RemotePolicy(ask, codec, {"weights": {"period": 1.0, "communication": 0.2}})
    played = play_window(scenario, policy, "service")

``ask(path, body)`` posts bytes of JSON and returns the JSON value that came back with status 200, or None.

1. **Names.** They follow from the seed of the run, so that a name that was seen before says nothing; lists are in the
   order of these names. The clock is shifted by whole days: hours stay what they are, as tariffs follow them.
2. **Specifications.** A job is told as the standard's ``JobSpec``: what was submitted, and nothing that only the world
   knows. Placements and data sets are told likewise.
3. **Orders.** Decisions of a ``PlacementReport`` become orders; what the state does not hold becomes an order that the
   engine refuses, and refusals are told in the next state.
4. **States.** A ``SchedulingState`` is written as text. Thousands of jobs are told of, most of them as they were told
   of last, so that what does not change from epoch to epoch is written once: specifications and places, and all of a
   running job but how far it is. Numbers are written as ``json`` writes them.
5. **Remote policy.** Whoever answers decides; an answer that is none is counted, and nothing is ordered.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Refusal, RefusedOrder, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.state import Phase
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Dataset, Job, Placement, Share, Split
from kuayu_schemas import schema

LOWER, HIGHER, COVERAGE = 0.5, 2.0, 0.8
"""Interval about the seconds that a job states: four in five lie inside, where jobs state what they usually do."""
REASONS: Mapping[Refusal, str] = MappingProxyType(
    {
        Refusal.UNKNOWN_JOB: "unknown_job",
        Refusal.NOT_PENDING: "not_waiting",
        Refusal.NOT_RUNNING: "not_running",
        Refusal.UNKNOWN_POOL: "unknown_pool",
        Refusal.TWICE: "twice",
        Refusal.SIZE: "size",
        Refusal.MEMORY: "memory",
        Refusal.SPLIT: "split",
        Refusal.DATA: "data",
        Refusal.NO_WAY: "unreachable",
        Refusal.CUT_OFF: "unreachable",
        Refusal.NO_ROOM: "no_room",
    }
)
"""``RefusalReason`` of what the engine says."""
RUNNING = int(Phase.RUNNING)
PATH = "/v1/placements"
Ask = Callable[[str, bytes], object]
"""Posts JSON to a path; the JSON value that came back with status 200, or None."""
_SINCE = datetime(2000, 1, 1, 16, tzinfo=UTC)
"""Midnight in China; a scenario begins at one."""
_DAYS = 36_500
_Json = dict[str, Any]
_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_KEPT = 10


class Names:
    """Names of a run, and back.

    Args:
        seed: Names and the clock follow from it.
    """

    def __init__(self, seed: str) -> None:
        self._key = blake2b(seed.encode(), digest_size=16).digest()
        self._begin = _SINCE + timedelta(days=Chance(seed, "date").below(_DAYS))
        self.epoch = self._named("epoch", "")
        self._given: dict[tuple[str, str], str] = {}
        self._meant: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """What something is called in this run.

        Args:
            kind: What it is, a word of lower-case letters.
            name: What it is called in the world.
        """
        given = self._given.get((kind, name))
        if given is None:
            given = self._given[kind, name] = self._named(kind, name)
            self._meant[kind, given] = name
        return given

    def meant(self, kind: str, given: str) -> str:
        """What something is called in the world; for a name that was never given, one that nothing there has."""
        return self._meant.get((kind, given), f"?{given}")

    def again(self, kind: str, name: str) -> str:
        """What an answer called it, which ``meant`` has translated."""
        return name[1:] if name.startswith("?") else self.of(kind, name)

    def by(self, kind: str) -> Callable[[str], str]:
        """``of`` for one kind."""
        return lambda name: self.of(kind, name)

    def instant(self, seconds: float) -> str:
        """The time of a second of the scenario, to the millisecond."""
        moment = self._begin + timedelta(milliseconds=round(seconds * 1e3))
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"

    def _named(self, kind: str, name: str) -> str:
        digest = blake2b(name.encode(), digest_size=6, key=self._key, person=kind.encode()[:16])
        return f"{kind}-{digest.hexdigest()}"


def spec_of(job: Job, data: Dataset, names: Names) -> dict[str, Any]:
    """A ``JobSpec``: what was submitted, and nothing that only the world knows.

    Args:
        job: As policies know it.
        data: What it reads, where it lay at the beginning.
        names: What everything is called.
    """
    spec: dict[str, Any] = {
        "id": names.of("job", job.name),
        "tenant": names.of("tenant", job.tenant),
        "kind": job.kind.name.lower(),
        "priority": job.priority,
        "home_domain": names.of("domain", job.home),
        "submitted_at": names.instant(job.submitted),
        "devices": {"minimum": job.minimum, "maximum": job.maximum, "requested": job.requested},
        "memory_per_device": job.memory,
        "task_profile": names.of("profile", job.profile),
        "duration": {
            "expected": job.stated,
            "low": LOWER * job.stated,
            "high": HIGHER * job.stated,
            "coverage": COVERAGE,
        },
        "serial_share": job.serial,
        "communication": {
            "step_time": job.model.step,
            "exchange": job.model.gradient,
            "boundary": job.model.boundary,
            "checkpoint_size": job.model.checkpoint,
        },
        "split_modes": list(dict.fromkeys([Split.NONE.value, *(split.value for split in job.splits)])),
        "data": [artefact_of(data, names)],
    }
    if job.deadline < inf:
        spec["deadline"] = names.instant(job.deadline)
    return spec


def artefact_of(data: Dataset, names: Names) -> dict[str, Any]:
    """An ``Artefact``."""
    return {
        "id": names.of("data", data.name),
        "size": data.size,
        "domains": sorted(names.of("domain", site) for site in data.sites),
        "pinned": data.pinned,
    }


def placement_of(placement: Placement, names: Names) -> dict[str, Any]:
    """A ``JobPlacement``."""
    shares = [
        {
            "domain": names.of("domain", share.site),
            "accelerator": names.of("accelerator", share.device),
            "devices": share.devices,
        }
        for share in placement.shares
    ]
    placed: dict[str, Any] = {"shares": shares, "split_mode": placement.split.value}
    if placement.split is Split.PERIODIC:
        placed["sync_period"] = placement.period
    return placed


class BadAnswer(Exception):
    """What came back is no answer to what was asked; the message says why not."""


def orders_of(report: object, revision: Mapping[str, Any], names: Names) -> tuple[Order, ...]:
    """Orders in the order of a report's decisions; jobs that are to wait are left out.

    What the state does not hold becomes an order that the engine refuses. Nodes and ways of buying are not told in
    states, and not looked at.

    Args:
        report: What came back.
        revision: That of the state that was asked about.
        names: What everything is called.

    Raises:
        BadAnswer: It is no ``PlacementReport``, or one of another state, or a job is to run and nothing says where.
    """
    if not isinstance(report, dict) or not schema.is_valid("PlacementReport", report, reader=True):
        raise BadAnswer("not a placement report")
    if any(report["revision"][key] != revision[key] for key in ("epoch", "number")):
        raise BadAnswer("of another revision")
    orders = (_order(decision, names) for decision in report["decisions"])
    return tuple(order for order in orders if order is not None)


def refused_of(refused: RefusedOrder, names: Names) -> dict[str, str]:
    """A ``RefusedDecision``."""
    order = refused.order
    return {"job": names.again("job", order.job), "verb": _verb(order), "reason": REASONS[refused.why]}


class StateCodec:
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
        return {"purchase": "on_demand", "devices": free, "price": price * view.topology.variation.price(view.now)}

    def _links(self, view: View) -> Iterator[str]:
        links = view.topology.links
        if not self._roads:
            for number, link in enumerate(links):
                source, target = (self.names.of("domain", end) for end in (link.source, link.target))
                before = f'{{"source":"{source}","target":"{target}","bandwidth":'
                self._roads.append((source, target, number, before, _text(link.round_trip)))
            self._roads.sort()
        hour, offered, available = (
            view.topology.variation.tariff(view.now),
            _numbers(view.offered),
            _numbers(view.next_flow_rates),
        )
        for _, _, number, before, trip in self._roads:
            paid = f'"round_trip_time":{trip},"tariff":{float(links[number].tariff * hour)!r}'
            yield f'{before}{offered[number]!r},"available":{available[number]!r},{paid}}}'

    def _copies(self, view: View, active: set[int]) -> Iterator[str]:
        rows = []
        for moved in view.moved_data({self._data[number] for number in active}):
            if moved not in self._copied:
                name, sites = moved
                artefact = self.names.of("data", name)
                domains = sorted(self.names.of("domain", view.places.sites[site]) for site in sites)
                self._copied[moved] = artefact, _text({"artefact": artefact, "domains": domains})
            rows.append(self._copied[moved])
        return (text for _, text in sorted(rows))

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
        known = self._placed.get(number)
        if known is None or known[0] is not placement:
            known = self._placed[number] = placement, _text(placement_of(placement, self.names))
        return known[1]


class RemotePolicy:
    """Whoever answers decides. An answer that is none is counted, and nothing is ordered.

    Args:
        ask: Posts a request; None is no answer.
        codec: The world as it is told; one for each scenario.
        asking: Members of the request beside the state, such as ``weights``.

    Attributes:
        answers: How many answers were orders, if only that nothing be done.
        bad_answers: How many were none.
        reasons: Why the first of them were none.
    """

    def __init__(self, ask: Ask, codec: StateCodec, asking: Mapping[str, Any] | None = None) -> None:
        self._ask, self._codec, self._asking = ask, codec, dict(asking or {})
        self.answers = self.bad_answers = 0
        self.reasons: list[str] = []

    def decide(self, view: View) -> Sequence[Order]:
        """One request for all that waits."""
        answer = self._ask(PATH, self._codec.request_of(view, self._asking))
        try:
            orders = self._codec.orders_of(answer)
        except BadAnswer as wrong:
            self.bad_answers += 1
            if len(self.reasons) < _KEPT:
                self.reasons.append(str(wrong) if answer is not None else "no answer")
            return ()
        self.answers += 1
        return orders


def _verb(order: Order) -> str:
    if isinstance(order, Start):
        return "start"
    if isinstance(order, Stop):
        return "stop"
    return "migrate" if isinstance(order, Move) else "resize"


def _order(decision: Mapping[str, Any], names: Names) -> Order | None:
    job, verb = names.meant("job", decision["job"]), decision["verb"]
    if verb == "stop":
        return Stop(job)
    if verb not in {"start", "migrate", "resize"}:
        return None
    if "placement" not in decision:
        raise BadAnswer(f"a job is to {verb} without a place")
    placement = _placement(decision["placement"], names)
    if verb == "start":
        return Start(job, placement)
    if verb == "resize" and len(placement.shares) == 1:
        return Resize(job, placement.shares[0].devices)
    return Move(job, placement)


def _placement(said: Mapping[str, Any], names: Names) -> Placement:
    """A placement; one of a split that this version does not name is spread as nothing can be."""
    shares = tuple(
        Share(
            names.meant("domain", share["domain"]), names.meant("accelerator", share["accelerator"]), share["devices"]
        )
        for share in said["shares"]
    )
    known = {split.value: split for split in Split}
    split = known.get(said["split_mode"], Split.NONE)
    return Placement(shares, split, said.get("sync_period", 1) if split is Split.PERIODIC else 1)


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
