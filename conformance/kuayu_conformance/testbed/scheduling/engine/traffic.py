"""All traffic on the wires: who gets how much, when a transfer is through, and what it costs."""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.flows import Bill, Bundle, Current
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Topology
from kuayu_conformance.testbed.scheduling.engine.routes import Routes
from kuayu_conformance.testbed.scheduling.engine.sharing import rates_of_kinds

_BIT = 0.5
"""Less than that is nothing: what rounding leaves of a transfer."""


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
