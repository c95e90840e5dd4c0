"""All traffic on the links: which way it takes, who gets how much, when a transfer is through, and what it costs.

1. **Routes.** From one domain to another traffic takes the links of the path of least round-trip time.
2. **Flows.** Flows of the same route and wish are bundled: links are shared among bundles, not flows.
3. **Traffic.** Rates are max-min fair and piecewise constant; what links have carried is billed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Topology
from kuayu_conformance.testbed.scheduling.engine.paths import Path, rates_of_kinds, shortest_paths
from kuayu_conformance.testbed.scheduling.values import Link

_BIT = 0.5
"""Less than that is nothing: what rounding leaves of a transfer."""


class Routes:
    """Routes between all pairs of domains: the paths of least round-trip time.

    Attributes:
        paths: Numbers of the links by source and target, numbers of domains; none where there is no way.
        round_trips: Seconds, (domains, domains); zero at home, infinite where there is no way.
    """

    def __init__(self, sites: Sequence[str], links: Sequence[Link]) -> None:
        self._sites = len(sites)
        self.paths: dict[tuple[int, int], Path] = {}
        self.round_trips = np.full((len(sites), len(sites)), np.inf)
        for ends, (seconds, path) in shortest_paths(sites, links).items():
            self.round_trips[ends] = seconds
            if path:
                self.paths[ends] = path
        self._pairs = np.array(list(self.paths), dtype=np.intp).reshape(-1, 2)
        self._links = np.array([link for path in self.paths.values() for link in path], dtype=np.intp)
        lengths = [len(path) for path in self.paths.values()]
        self._begins = np.cumsum([0, *lengths[:-1]]) if lengths else np.zeros(0, dtype=np.intp)

    def narrowest(self, by_link: Floats) -> Floats:
        """Least of a figure of links along each route, (domains, domains); infinite at home, zero without a way."""
        least = np.zeros((self._sites, self._sites))
        np.fill_diagonal(least, np.inf)
        if len(self._links):
            least[self._pairs[:, 0], self._pairs[:, 1]] = np.minimum.reduceat(by_link[self._links], self._begins)
        return least

    def total(self, by_link: Floats) -> Floats:
        """Sum of a figure of links along each route, (domains, domains); zero at home, infinite without a way."""
        total = np.full((self._sites, self._sites), np.inf)
        np.fill_diagonal(total, 0.0)
        if len(self._links):
            total[self._pairs[:, 0], self._pairs[:, 1]] = np.add.reduceat(by_link[self._links], self._begins)
        return total


@dataclass(slots=True)
class Current:
    """A flow on its links.

    Attributes:
        links: Numbers of the links of its route; at least one.
        wish: Bits a second beyond which more is of no use.
        bits: What is left to move; infinite for one that ends with its job.
        owner: Number of the job on whose account it goes.
        rate: Bits a second that it is granted.
        occupied: Bits a second that it occupies, at most ``rate``.
        since: Instant until which it is accounted for.
        paid: Integral of the tariff's factor until then.
    """

    links: tuple[int, ...]
    wish: float
    bits: float
    owner: int
    rate: float = 0.0
    occupied: float = 0.0
    since: float = 0.0
    paid: float = 0.0

    @property
    def transfer(self) -> bool:
        """Whether it has an end of its own."""
        return self.bits < inf

    def ends(self, now: float) -> float:
        """When it is through if its rate stays."""
        return now + self.bits / self.rate if self.rate > 0.0 else inf


@dataclass(slots=True, eq=False)
class Bundle:
    """Flows of one route and wish, which are all granted the same: links are shared among bundles, not flows.

    Attributes:
        links: Numbers of the links of their route.
        wish: Bits a second beyond which more is of no use to one of them.
        numbers: Their numbers, in order.
        rate: Bits a second that each was granted when links were last shared.
        grown: Whether one has come since then.
    """

    links: tuple[int, ...]
    wish: float
    numbers: dict[int, None] = field(default_factory=dict)
    rate: float = 0.0
    grown: bool = True

    @property
    def first(self) -> int:
        """Number of its first flow."""
        return next(iter(self.numbers))


@dataclass(slots=True)
class Bill:
    """What links have carried.

    Attributes:
        bits: Integral of the occupied bandwidth, by link.
        money: That by tariff and time of day, by link.
        of_job: Money by the number of the job on whose account it was.
    """

    bits: Floats
    money: Floats
    of_job: Floats


@dataclass
class Traffic:
    """Flows on links; rates are max-min fair and piecewise constant.

    What changes is collected, and :meth:`rebalance` then shares anew the links that it touches, and those that are
    joined to them by flows.

    Attributes:
        topology: Its links and variation.
        routes: Which links lead where.
        jobs: How many jobs there are.
        flows: Flows by number.
        count: How many flows there are on each link.
    """

    topology: Topology
    routes: Routes
    jobs: int
    flows: dict[int, Current] = field(default_factory=dict)

    def __post_init__(self) -> None:
        links = self.topology.links
        self._capacity = np.array([link.capacity for link in links], dtype=np.float64)
        self._tariff = [link.tariff for link in links]
        self._all = np.arange(len(links), dtype=np.intp)
        self.count = np.zeros(len(links), dtype=np.int64)
        self._bill = Bill(np.zeros(len(links)), np.zeros(len(links)), np.zeros(self.jobs))
        self._bundles: dict[tuple[tuple[int, ...], float], Bundle] = {}
        self._on: dict[int, set[Bundle]] = {}
        self._offered: dict[int, tuple[float, float]] = {}
        self._cut: set[int] = set()
        self._changed: set[int] = set()
        self._next = 0
        self._shares: tuple[float, Floats] = (-inf, np.zeros(0))
        self._hopes: Floats = np.zeros(0)
        self._tariff_seconds = (0.0, 0.0)

    def open(self, links: tuple[int, ...], wish: float, bits: float, owner: int, now: float) -> int:
        """Number of a new flow, which has rate zero until links are shared anew."""
        self._next += 1
        self.flows[self._next] = Current(links, wish, bits, owner, since=now, paid=self._factored(now))
        bundle = self._bundles.get((links, wish))
        if bundle is None:
            bundle = self._bundles[links, wish] = Bundle(links, wish)
            for link in links:
                self._on.setdefault(link, set()).add(bundle)
        bundle.numbers[self._next], bundle.grown = None, True
        for link in links:
            self.count[link] += 1
        self._changed.update(links)
        return self._next

    def close(self, number: int, now: float) -> None:
        """End a flow."""
        flow = self.flows[number]
        self._settle(flow, now, self._bill)
        del self.flows[number]
        bundle = self._bundles[flow.links, flow.wish]
        del bundle.numbers[number]
        if not bundle.numbers:
            del self._bundles[flow.links, flow.wish]
            for link in flow.links:
                self._on[link].remove(bundle)
        for link in flow.links:
            self.count[link] -= 1
        self._changed.update(flow.links)

    def hold(self, number: int, occupied: float, now: float) -> None:
        """From now on a flow occupies so much of what it is granted."""
        flow = self.flows[number]
        self._settle(flow, now, self._bill)
        flow.occupied = min(occupied, flow.rate)

    def cut(self, links: set[int]) -> None:
        """From now on these links offer nothing, and all others what their variation has them offer."""
        self._changed |= links ^ self._cut
        self._cut = links

    def touch(self, link: int) -> None:
        """The variation of a link has changed."""
        self._changed.add(link)

    def offered(self, now: float) -> Floats:
        """Bits a second that each link offers to all."""
        offered: Floats = self._capacity * self.topology.variation.factor(self._all, now)
        offered[list(self._cut)] = 0.0
        return offered

    def shares(self, now: float) -> Floats:
        """Bits a second that one more flow may hope for, (domains, domains); as it was when first asked at ``now``."""
        if self._shares[0] != now:
            self._hopes = self.offered(now) / (1.0 + self.count)
            self._shares = now, self.routes.narrowest(self._hopes)
        return self._shares[1]

    def next_flow_rates(self, now: float) -> Floats:
        """The same by link."""
        self.shares(now)
        return self._hopes

    def rebalance(self, now: float) -> tuple[list[int], list[tuple[int, float]]]:
        """Flows whose rate is another now, and links that carry some with the next change of their variation."""
        if not self._changed:
            return [], []
        links, bundles = self._joined()
        self._changed.clear()
        if not bundles:
            return [], []
        changes = [(link, self._ask(link, now)) for link in links if self._offered.get(link, (0.0, -inf))[1] <= now]
        offered = {link: 0.0 if link in self._cut else self._offered[link][0] for link in links}
        rates = rates_of_kinds(
            offered,
            [bundle.links for bundle in bundles],
            [bundle.wish for bundle in bundles],
            [len(bundle.numbers) for bundle in bundles],
        )
        granted: dict[int, float] = {}
        for bundle, rate in zip(bundles, rates, strict=True):
            if bundle.grown or rate != bundle.rate:
                granted.update((number, rate) for number in bundle.numbers if rate != self.flows[number].rate)
            bundle.rate, bundle.grown = rate, False
        other = sorted(granted)
        for number in other:
            flow, rate = self.flows[number], granted[number]
            self._settle(flow, now, self._bill)
            flow.rate = rate
            flow.occupied = rate if flow.transfer else min(flow.occupied, rate)
        return other, changes

    def through(self, number: int, now: float) -> bool:
        """Whether a transfer has moved everything."""
        flow = self.flows[number]
        self._settle(flow, now, self._bill)
        return flow.bits <= max(_BIT, flow.rate * 1e-6)

    def bill(self, now: float) -> Bill:
        """What was carried until now; nothing changes by asking."""
        bill = Bill(self._bill.bits.copy(), self._bill.money.copy(), self._bill.of_job.copy())
        for flow in self.flows.values():
            self._charge(flow, now, bill)
        return bill

    def _joined(self) -> tuple[list[int], list[Bundle]]:
        """Links that share flows with those that changed, directly or by others, and all these flows; both in order."""
        links, bundles = set(self._changed), set[Bundle]()
        ahead = list(links)
        while ahead:
            for bundle in self._on.get(ahead.pop(), set()) - bundles:
                bundles.add(bundle)
                for link in bundle.links:
                    if link not in links:
                        links.add(link)
                        ahead.append(link)
        return sorted(link for link in links if self._on.get(link)), sorted(bundles, key=lambda bundle: bundle.first)

    def _ask(self, link: int, now: float) -> float:
        """Look at the variation of a link; when it changes next."""
        single = self._all[link : link + 1]
        until = float(self.topology.variation.until(single, now)[0])
        self._offered[link] = float(self._capacity[link] * self.topology.variation.factor(single, now)[0]), until
        return until

    def _settle(self, flow: Current, now: float, bill: Bill) -> None:
        self._charge(flow, now, bill)
        flow.bits -= flow.rate * (now - flow.since)
        flow.since, flow.paid = now, self._factored(now)

    def _factored(self, now: float) -> float:
        """Integral of the tariff's factor since the scenario began: asked once for all flows of an instant."""
        if self._tariff_seconds[0] != now:
            self._tariff_seconds = now, self.topology.variation.tariff_seconds(0.0, now)
        return self._tariff_seconds[1]

    def _charge(self, flow: Current, now: float, bill: Bill) -> None:
        if flow.occupied <= 0.0 or now <= flow.since:
            return
        bits = flow.occupied * (now - flow.since)
        factored = flow.occupied * (self._factored(now) - flow.paid)
        for link in flow.links:
            bill.bits[link] += bits
            bill.money[link] += factored * self._tariff[link]
            bill.of_job[flow.owner] += factored * self._tariff[link]
