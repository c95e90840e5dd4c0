"""All traffic on the wires: which way it takes, who gets how much, when a transfer is through, and what it costs.

1. **Routes.** From one domain to another traffic takes the wires of the path of least round-trip time.
2. **Flows.** Flows of the same route and wish are bundled: wires are shared among bundles, not flows.
3. **Traffic.** Rates are max-min fair and piecewise constant; what wires have carried is billed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Topology
from kuayu_conformance.testbed.scheduling.engine.paths import Path, rates_of_kinds, shortest_paths
from kuayu_conformance.testbed.scheduling.values import Wire

_BIT = 0.5
"""Less than that is nothing: what rounding leaves of a transfer."""


class Routes:
    """Routes between all pairs of domains: the paths of least round-trip time.

    Attributes:
        paths: Numbers of the wires by source and target, numbers of domains; none where there is no way.
        round_trips: Seconds, (domains, domains); zero at home, infinite where there is no way.
    """

    def __init__(self, sites: Sequence[str], wires: Sequence[Wire]) -> None:
        self._sites = len(sites)
        self.paths: dict[tuple[int, int], Path] = {}
        self.round_trips = np.full((len(sites), len(sites)), np.inf)
        for ends, (seconds, path) in shortest_paths(sites, wires).items():
            self.round_trips[ends] = seconds
            if path:
                self.paths[ends] = path
        self._pairs = np.array(list(self.paths), dtype=np.intp).reshape(-1, 2)
        self._wires = np.array([wire for path in self.paths.values() for wire in path], dtype=np.intp)
        lengths = [len(path) for path in self.paths.values()]
        self._begins = np.cumsum([0, *lengths[:-1]]) if lengths else np.zeros(0, dtype=np.intp)

    def narrowest(self, by_wire: Floats) -> Floats:
        """Least of a figure of wires along each route, (domains, domains); infinite at home, zero without a way."""
        least = np.zeros((self._sites, self._sites))
        np.fill_diagonal(least, np.inf)
        if len(self._wires):
            least[self._pairs[:, 0], self._pairs[:, 1]] = np.minimum.reduceat(by_wire[self._wires], self._begins)
        return least

    def total(self, by_wire: Floats) -> Floats:
        """Sum of a figure of wires along each route, (domains, domains); zero at home, infinite without a way."""
        total = np.full((self._sites, self._sites), np.inf)
        np.fill_diagonal(total, 0.0)
        if len(self._wires):
            total[self._pairs[:, 0], self._pairs[:, 1]] = np.add.reduceat(by_wire[self._wires], self._begins)
        return total


@dataclass(slots=True)
class Current:
    """A flow on its wires.

    Attributes:
        wires: Numbers of the wires of its route; at least one.
        wish: Bits a second beyond which more is of no use.
        bits: What is left to move; infinite for one that ends with its job.
        owner: Number of the job on whose account it goes.
        rate: Bits a second that it is granted.
        held: Bits a second that it occupies, at most ``rate``.
        since: Instant until which it is accounted for.
        paid: Integral of the tariff's factor until then.
    """

    wires: tuple[int, ...]
    wish: float
    bits: float
    owner: int
    rate: float = 0.0
    held: float = 0.0
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
    """Flows of one route and wish, which are all granted the same: wires are shared among bundles, not flows.

    Attributes:
        wires: Numbers of the wires of their route.
        wish: Bits a second beyond which more is of no use to one of them.
        numbers: Their numbers, in order.
        rate: Bits a second that each was granted when wires were last shared.
        grown: Whether one has come since then.
    """

    wires: tuple[int, ...]
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
    """What wires have carried.

    Attributes:
        bits: Integral of the occupied bandwidth, by wire.
        money: That by tariff and time of day, by wire.
        of_job: Money by the number of the job on whose account it was.
    """

    bits: Floats
    money: Floats
    of_job: Floats


@dataclass
class Traffic:
    """Flows on wires; rates are max-min fair and piecewise constant.

    What changes is collected, and :meth:`rebalance` then shares anew the wires that it touches, and those that are
    joined to them by flows.

    Attributes:
        topology: Its wires and weather.
        routes: Which wires lead where.
        jobs: How many jobs there are.
        flows: Flows by number.
        count: How many flows there are on each wire.
    """

    topology: Topology
    routes: Routes
    jobs: int
    flows: dict[int, Current] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wires = self.topology.wires
        self._capacity = np.array([wire.capacity for wire in wires], dtype=np.float64)
        self._tariff = [wire.tariff for wire in wires]
        self._all = np.arange(len(wires), dtype=np.intp)
        self.count = np.zeros(len(wires), dtype=np.int64)
        self._bill = Bill(np.zeros(len(wires)), np.zeros(len(wires)), np.zeros(self.jobs))
        self._bundles: dict[tuple[tuple[int, ...], float], Bundle] = {}
        self._on: dict[int, set[Bundle]] = {}
        self._offered: dict[int, tuple[float, float]] = {}
        self._cut: set[int] = set()
        self._changed: set[int] = set()
        self._next = 0
        self._shares: tuple[float, Floats] = (-inf, np.zeros(0))
        self._hopes: Floats = np.zeros(0)
        self._tariff_seconds = (0.0, 0.0)

    def open(self, wires: tuple[int, ...], wish: float, bits: float, owner: int, now: float) -> int:
        """Number of a new flow, which has rate zero until wires are shared anew."""
        self._next += 1
        self.flows[self._next] = Current(wires, wish, bits, owner, since=now, paid=self._factored(now))
        bundle = self._bundles.get((wires, wish))
        if bundle is None:
            bundle = self._bundles[wires, wish] = Bundle(wires, wish)
            for wire in wires:
                self._on.setdefault(wire, set()).add(bundle)
        bundle.numbers[self._next], bundle.grown = None, True
        for wire in wires:
            self.count[wire] += 1
        self._changed.update(wires)
        return self._next

    def close(self, number: int, now: float) -> None:
        """End a flow."""
        flow = self.flows[number]
        self._settle(flow, now, self._bill)
        del self.flows[number]
        bundle = self._bundles[flow.wires, flow.wish]
        del bundle.numbers[number]
        if not bundle.numbers:
            del self._bundles[flow.wires, flow.wish]
            for wire in flow.wires:
                self._on[wire].remove(bundle)
        for wire in flow.wires:
            self.count[wire] -= 1
        self._changed.update(flow.wires)

    def hold(self, number: int, held: float, now: float) -> None:
        """From now on a flow occupies so much of what it is granted."""
        flow = self.flows[number]
        self._settle(flow, now, self._bill)
        flow.held = min(held, flow.rate)

    def cut(self, wires: set[int]) -> None:
        """From now on these wires offer nothing, and all others what their weather has them offer."""
        self._changed |= wires ^ self._cut
        self._cut = wires

    def touch(self, wire: int) -> None:
        """The weather of a wire has changed."""
        self._changed.add(wire)

    def offered(self, now: float) -> Floats:
        """Bits a second that each wire offers to all."""
        offered: Floats = self._capacity * self.topology.weather.factor(self._all, now)
        offered[list(self._cut)] = 0.0
        return offered

    def shares(self, now: float) -> Floats:
        """Bits a second that one more flow may hope for, (domains, domains); as it was when first asked at ``now``."""
        if self._shares[0] != now:
            self._hopes = self.offered(now) / (1.0 + self.count)
            self._shares = now, self.routes.narrowest(self._hopes)
        return self._shares[1]

    def hopes(self, now: float) -> Floats:
        """The same by wire."""
        self.shares(now)
        return self._hopes

    def rebalance(self, now: float) -> tuple[list[int], list[tuple[int, float]]]:
        """Flows whose rate is another now, and wires that carry some with the next change of their weather."""
        if not self._changed:
            return [], []
        wires, bundles = self._joined()
        self._changed.clear()
        if not bundles:
            return [], []
        changes = [(wire, self._ask(wire, now)) for wire in wires if self._offered.get(wire, (0.0, -inf))[1] <= now]
        offered = {wire: 0.0 if wire in self._cut else self._offered[wire][0] for wire in wires}
        rates = rates_of_kinds(
            offered,
            [bundle.wires for bundle in bundles],
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
            flow.held = rate if flow.transfer else min(flow.held, rate)
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
        """Wires that share flows with those that changed, directly or by others, and all these flows; both in order."""
        wires, bundles = set(self._changed), set[Bundle]()
        ahead = list(wires)
        while ahead:
            for bundle in self._on.get(ahead.pop(), set()) - bundles:
                bundles.add(bundle)
                for wire in bundle.wires:
                    if wire not in wires:
                        wires.add(wire)
                        ahead.append(wire)
        return sorted(wire for wire in wires if self._on.get(wire)), sorted(bundles, key=lambda bundle: bundle.first)

    def _ask(self, wire: int, now: float) -> float:
        """Look at the weather of a wire; when it changes next."""
        single = self._all[wire : wire + 1]
        until = float(self.topology.weather.until(single, now)[0])
        self._offered[wire] = float(self._capacity[wire] * self.topology.weather.factor(single, now)[0]), until
        return until

    def _settle(self, flow: Current, now: float, bill: Bill) -> None:
        self._charge(flow, now, bill)
        flow.bits -= flow.rate * (now - flow.since)
        flow.since, flow.paid = now, self._factored(now)

    def _factored(self, now: float) -> float:
        """Integral of the tariff's factor from the begin of the scenario: asked once for all flows of an instant."""
        if self._tariff_seconds[0] != now:
            self._tariff_seconds = now, self.topology.weather.tariff_seconds(0.0, now)
        return self._tariff_seconds[1]

    def _charge(self, flow: Current, now: float, bill: Bill) -> None:
        if flow.held <= 0.0 or now <= flow.since:
            return
        bits = flow.held * (now - flow.since)
        factored = flow.held * (self._factored(now) - flow.paid)
        for wire in flow.wires:
            bill.bits[wire] += bits
            bill.money[wire] += factored * self._tariff[wire]
            bill.of_job[flow.owner] += factored * self._tariff[wire]
