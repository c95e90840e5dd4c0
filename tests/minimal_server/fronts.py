"""Pareto fronts: all schedules of a few jobs that could be the best, as far as a budget of trials reaches."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from time import monotonic

from minimal_server.choosing import Ledger, Seat
from minimal_server.core import Answer, Json, Request
from minimal_server.placing import Placing
from minimal_server.scene import Job, Pool, Scene, Way
from minimal_server.ways import SHRUNK

METHOD_OF_FRONTS = {"name": "minimal server: branch and bound", "version": "1"}
SOLUTIONS = 100
TRIALS = 60_000
"""Places of jobs that are tried; so the answer does not depend on the speed of a machine."""
NEAR = 0.002
"""What is so near to a schedule that was found is not looked for."""
LEANINGS = tuple(number / 16 for number in range(17))
PERIOD = 50


@dataclass(frozen=True)
class Option:
    """A way of a job: seconds to its end, money, and slots for which devices are held."""

    way: Way
    seconds: float
    money: float
    slots: int


Placed = tuple[int, int, int]
"""Job and option by number, and the slot in which it begins."""


@dataclass
class Search:
    """Jobs with their options, and the schedules found so far.

    Attributes:
        options: By job.
        capacity: Devices by pool.
        slot: Seconds.
        found: By mean period and money, none better than another in both.
        trials: How many places may still be tried.
        until: When to end, by ``time.monotonic``.
        seen: Beginnings of schedules that were tried.
    """

    options: list[list[Option]]
    capacity: list[int]
    slot: float
    found: dict[tuple[float, float], tuple[Placed, ...]] = field(default_factory=dict)
    trials: int = TRIALS
    until: float = math.inf
    seen: set[frozenset[Placed]] = field(default_factory=set)

    @property
    def late(self) -> bool:
        """Whether a schedule was found and the time is over."""
        return bool(self.found) and monotonic() > self.until

    def earliest(self, placed: Sequence[Placed], option: Option) -> int:
        """First slot, from one on, in which there is room for an option beside what is placed."""
        self.trials -= 1
        busy = [
            (start, start + other.slots, dict(other.way.shares))
            for job, number, start in placed
            if (other := self.options[job][number])
        ]
        for begin in sorted({1, *(end for _, end, _ in busy)}):
            if self.has_room(busy, option, begin):
                return begin
        raise AssertionError("there is room when all have ended")

    def has_room(self, busy: Sequence[tuple[int, int, dict[int, int]]], option: Option, begin: int) -> bool:
        """Whether an option finds its devices free for all of its slots; held numbers change where others begin."""
        end = begin + option.slots
        beside = [(start, stop, held) for start, stop, held in busy if start < end and stop > begin]
        moments = [begin, *(start for start, _, _ in beside if start > begin)]
        return all(
            devices + sum(held.get(pool, 0) for start, stop, held in beside if start <= moment < stop)
            <= self.capacity[pool]
            for pool, devices in option.way.shares
            for moment in moments
        )

    def ends(self, placed: Sequence[Placed]) -> tuple[float, float]:
        """Sum of ends, and money."""
        rows = [(start * self.slot, self.options[job][number]) for job, number, start in placed]
        return math.fsum(begin + one.seconds for begin, one in rows), math.fsum(one.money for _, one in rows)

    def keep(self, placed: Sequence[Placed]) -> None:
        """Keep a whole schedule that none beats, and none of those that it beats."""
        point = self.ends(placed)
        if any(other[0] <= point[0] and other[1] <= point[1] for other in self.found):
            return
        beaten = [other for other in self.found if point[0] <= other[0] and point[1] <= other[1]]
        for other in beaten:
            del self.found[other]
        self.found[point] = tuple(placed)

    def hopeless(self, period: float, money: float) -> bool:
        """Whether no schedule with at least that can be much better than all that were found."""
        return any(other[0] <= period * (1 + NEAR) and other[1] <= money * (1 + NEAR) + 1e-9 for other in self.found)


class Fronts(Placing):
    """Period against money."""

    def front(self, request: Request) -> Answer:
        """The best compromises between the mean period and the money for communication."""
        begun = monotonic()
        body = self.body(request, "ParetoRequest")
        self.check_scheduling(body)
        scene = self.scene(body["state"])
        search = Search(
            [self.options(scene, job, body["slot"]) for job in scene.waiting],
            [pool.free for pool in scene.pools],
            body["slot"],
            until=begun + body.get("time_limit", math.inf),
        )
        for number, options in enumerate(search.options):
            if not options:
                place = f"/state/waiting/{number}/spec"
                self.refuse_if("invalid-body", "a job can run nowhere", [(place, "it can run nowhere")])
        for leaning in LEANINGS if search.options else ():
            if not search.late:
                self.lean(search, leaning)
        self.branch(search, (), frozenset(range(len(search.options))))
        points = self.thinned(sorted(search.found), body.get("solutions", SOLUTIONS))
        solutions = [self.solution(scene, search, search.found[point]) for point in points]
        front = {"revision": self.echoed(body["state"]), "method": METHOD_OF_FRONTS, "solutions": solutions}
        return Answer(200, {**front, "partial": True} if self.is_partial(search) else front)

    def is_partial(self, search: Search) -> bool:
        """Whether time ended the search."""
        return search.late

    def options(self, scene: Scene, job: Job, slot: float) -> list[Option]:
        """Ways of a job that no other of its ways makes useless, the quickest first."""
        pools = [pool for pool in scene.pools if pool.free and self.fits(pool, job)]
        ways = dict.fromkeys([*self.sizes(job, pools), *self.pairs(scene, job, pools)])
        found = [
            Option(one.way, one.lasting, one.money, max(1, math.ceil(one.lasting / slot - 1e-9)))
            for one in self.prospects(scene, job, ways)
        ]
        found.sort(key=lambda option: (option.seconds, option.money))
        useful: list[Option] = []
        for option in found:
            if not any(self.replaces(other, option) for other in useful):
                useful.append(option)
        return useful

    def replaces(self, one: Option, other: Option) -> bool:
        """Whether an option is no slower, no dearer, and needs nothing that the other does not."""
        needs = dict(other.way.shares)
        fewer = all(devices <= needs.get(pool, 0) for pool, devices in one.way.shares)
        return fewer and one.seconds <= other.seconds and one.money <= other.money

    def sizes(self, job: Job, pools: Sequence[Pool]) -> Iterator[Way]:
        """In each pool as many as asked for, as few as will do, and three quarters of it."""
        for pool in pools:
            for devices in (min(job.requested, pool.free), job.most(job.requested), job.spec["devices"]["minimum"]):
                if job.takes(devices) and devices <= pool.free:
                    yield Way(((pool.number, devices),))
            shrunk = job.most(int(SHRUNK * pool.row["devices"]))
            if 0 < shrunk <= pool.free:
                yield Way(((pool.number, shrunk),))

    def pairs(self, scene: Scene, job: Job, pools: Sequence[Pool]) -> Iterator[Way]:
        """Over two domains, in proportion to their pools."""
        modes = [mode for mode in job.spec["split_modes"] if mode in {"synchronous", "periodic", "pipeline"}]
        if "communication" not in job.spec:
            return
        for pair in permutations(pools, 2):
            shares = self.shared(job, [(pool.number, pool.free) for pool in pair])
            if shares and self.joined(scene, job, pair):
                for mode in modes:
                    yield Way(shares, mode, job.spec.get("sync_period", PERIOD) if mode == "periodic" else 1)

    def lean(self, search: Search, leaning: float) -> None:
        """A schedule for one weight between period and money: jobs are placed one by one, then moved while it helps."""
        scale = max((option.money for options in search.options for option in options), default=0.0) or 1.0
        longest = max(option.seconds for options in search.options for option in options)

        def cost(end: float, money: float) -> float:
            return (1 - leaning) * end / longest + leaning * money / scale

        def place(placed: list[Placed], job: int) -> list[Placed]:
            tried = [(job, number, search.earliest(placed, one)) for number, one in enumerate(search.options[job])]
            return [*placed, min(tried, key=lambda one: cost(*search.ends([one])))]

        placed: list[Placed] = []
        for job in sorted(range(len(search.options)), key=lambda job: search.options[job][0].seconds):
            placed = place(placed, job)
        search.keep(placed)
        for job in range(len(search.options)):
            again = place([one for one in placed if one[0] != job], job)
            if cost(*search.ends(again)) < cost(*search.ends(placed)):
                placed = again
                search.keep(placed)

    def branch(self, search: Search, placed: tuple[Placed, ...], left: frozenset[int]) -> None:
        """Try all jobs that are left in all their ways next, unless what was found cannot be beaten from here."""
        if not left:
            search.keep(placed)
            return
        known = frozenset(placed)
        if known in search.seen:
            return
        search.seen.add(known)
        period, money = search.ends(placed)
        period += sum(search.slot + search.options[job][0].seconds for job in left)
        money += sum(min(option.money for option in search.options[job]) for job in left)
        if search.hopeless(period, money):
            return
        for job in sorted(left, key=lambda job: search.options[job][0].seconds):
            for number, option in enumerate(search.options[job]):
                if search.trials <= 0 or search.late:
                    return
                start = search.earliest(placed, option)
                self.branch(search, (*placed, (job, number, start)), left - {job})

    def thinned(self, points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
        """As many as asked for, from the quickest to the cheapest."""
        if len(points) <= most:
            return list(points)
        if most == 1:
            return [points[0]]
        return [points[round(number * (len(points) - 1) / (most - 1))] for number in range(most)]

    def solution(self, scene: Scene, search: Search, placed: Sequence[Placed]) -> Json:
        """A schedule as it is told."""
        period, money = search.ends(placed)
        ledger, held, rows = self.ledger(scene), list[tuple[int, Seat]](), dict[int, Json]()
        for job, number, start in sorted(placed, key=lambda one: one[2]):
            for one in [one for one in held if one[0] <= start]:
                self.give_back(ledger, one[1])
                held.remove(one)
            option = search.options[job][number]
            seat = self.seated(scene, ledger, scene.waiting[job], option.way)
            held.append((start + option.slots, seat))
            placement = self.placement(scene, option.way, seat.offers, seat.nodes)
            rows[job] = {"job": seat.job.name, "start": start * search.slot, "placement": placement}
        mean = period / max(1, len(placed))
        return {"mean_period": mean, "communication_cost": money, "jobs": [rows[job] for job in sorted(rows)]}

    def seated(self, scene: Scene, ledger: Ledger, job: Job, way: Way) -> Seat:
        """A job on nodes that are free, and taken off the ledger."""
        seat = Seat(job, way, starts=True)
        seat.offers = [
            self.cheapest(scene.pools[number], devices, ledger.offers[number]) for number, devices in way.shares
        ]
        self.account(ledger, way.shares, seat.offers, -1)
        seat.nodes = self.nodes(scene, ledger, way)
        return seat
