"""Collectives: by the law of the standard on links as they are, changed when it would have paid already."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from minimal_server.core import Answer, Json, Request
from minimal_server.sharding import Pair, Sharding

METHOD_OF_COLLECTIVES = {"name": "minimal server: the quickest, once the switch would have paid", "version": "1"}
PERIODS = (2, 5, 10, 20, 50, 100, 200, 500)
HIDDEN = 2 / 3
"""Part of a step behind which exchanges hide."""
TRIED = 7
"""Domains of which all orders are tried; of more, the nearest one comes next."""

Network = Mapping[Pair, tuple[float, float]]
"""Latency and bit/s by link; nought where it is out."""


@dataclass(frozen=True)
class Way:
    """How replicas agree.

    Attributes:
        kind: Name of the collective.
        period: Steps from one exchange over domains to the next.
        order: Domains in the order of the ring.
    """

    kind: str
    period: int
    order: tuple[str, ...]


class Agreeing(Sharding):
    """By which collective replicas are to agree."""

    def choose_collective(self, request: Request) -> Answer:
        """The collective in use, or the quickest one."""
        body = self.body(request, "CollectiveRequest")
        self.check_collective(body)
        network, used = self.network_now(body), self.used(body)
        tried = self.tried(body, network)
        best = self.quickest(body, network, tried)
        chosen = best if used is None or self.pays(body, network, used, best) else used
        looked_at = {(way.kind, way.period): way for way in (*tried, chosen)}
        return Answer(
            200,
            {
                "revision": body["revision"],
                "method": METHOD_OF_COLLECTIVES,
                "collective": chosen.kind,
                "period": chosen.period,
                "order": list(chosen.order),
                "switched": used is not None and self.is_other(used, chosen),
                "candidates": [self.told_way(body, network, way) for way in looked_at.values()],
            },
        )

    def used(self, body: Json) -> Way | None:
        """What is in use."""
        row = body.get("in_use")
        return Way(row["collective"], row["period"], tuple(row["order"])) if row else None

    def told_way(self, body: Json, network: Network, way: Way) -> Json:
        """What was looked at, as it is told."""
        rate = self.steps_a_second(body, network, way)
        return {"collective": way.kind, "period": way.period, "rate": rate}

    def is_other(self, one: Way, other: Way) -> bool:
        """Whether ways differ by more than where their rings begin."""
        return (one.kind, one.period, self.turned(one.order)) != (other.kind, other.period, self.turned(other.order))

    def turned(self, order: Sequence[str]) -> tuple[str, ...]:
        """A ring from its first name on."""
        begin = order.index(min(order))
        return (*order[begin:], *order[:begin])

    def network_now(self, body: Json) -> Network:
        """Links as they are expected to be."""
        return {(link["source"], link["target"]): (link["latency"], self.carried(link)) for link in body["links"]}

    def network_before(self, body: Json, intervals: int) -> Network:
        """Links as they were measured so many intervals ago; one is the last interval."""
        return {
            (link["source"], link["target"]): (link["latency"], link["bandwidths"][-intervals])
            for link in body["links"]
        }

    def tried(self, body: Json, network: Network) -> list[Way]:
        """Collectives with periods, each in its best order."""
        domains = len(body["domains"])
        one = self.best_order(body, network, 8 * body["exchange"] / (domains * body["nodes"]))
        other = self.best_order(body, network, 8 * body["exchange"] / domains)
        rare = [Way("low_communication", period, other) for period in PERIODS]
        return [Way("ring", 1, one), Way("hierarchical", 1, other), *rare]

    def quickest(self, body: Json, network: Network, ways: Sequence[Way]) -> Way:
        """The way that makes the most steps; of several the first."""
        return max(ways, key=lambda way: self.steps_a_second(body, network, way))

    def best_order(self, body: Json, network: Network, bits: float) -> tuple[str, ...]:
        """The order of domains whose slowest message of so many bits is the quickest."""
        first, *others = body["domains"]
        if len(others) < TRIED:
            orders = ((first, *order) for order in permutations(others))
            return min(orders, key=lambda order: self.slowest_message(network, order, bits))
        order = [first]
        while others:
            order.append(min(others, key=lambda other: self.message_time(*network[order[-1], other], bits)))
            others.remove(order[-1])
        return tuple(order)

    def slowest_message(self, network: Network, order: Sequence[str], bits: float) -> float:
        """Seconds of a round from each domain to the next one; nought where there is one domain."""
        neighbours = pairwise((*order, order[0])) if len(order) > 1 else ()
        return max((self.message_time(*network[pair], bits) for pair in neighbours), default=0.0)

    def message_time(self, latency: float, bandwidth: float, bits: float) -> float:
        """Seconds of a message; endless over a link that is out."""
        return latency + bits / bandwidth if bandwidth > 0 else math.inf

    def steps_a_second(self, body: Json, network: Network, way: Way) -> float:
        """Steps a second by the law of the standard; none of a kind that is not known."""
        inside, over = self.exchanges(body, network, way)
        step, hidden = body["step_time"], HIDDEN * body["step_time"]
        if way.kind != "low_communication":
            return float(1 / (step + max(0.0, inside + over - hidden)))
        seconds = way.period * (step + max(0.0, inside - hidden)) + max(0.0, over - max(0.0, hidden - inside))
        return float(way.period / (seconds * self.more_steps(len(way.order), way.period)))

    def exchanges(self, body: Json, network: Network, way: Way) -> tuple[float, float]:
        """Seconds of an exchange inside domains, and over them."""
        domains, nodes, bits = len(way.order), body["nodes"], 8 * body["exchange"]
        node = body["node_latency"], body["node_bandwidth"]
        if way.kind == "ring":
            part = bits / (domains * nodes)
            slowest = self.slowest_message(network, way.order, part)
            within = self.message_time(*node, part) if nodes > 1 else 0.0
            return 0.0, 2 * (domains * nodes - 1) * max(slowest, within)
        if way.kind not in {"hierarchical", "low_communication"}:
            return 0.0, math.inf
        inside = 2 * (nodes - 1) * self.message_time(*node, bits / nodes)
        return inside, 2 * (domains - 1) * self.slowest_message(network, way.order, bits / domains)

    def more_steps(self, domains: int, period: int) -> float:
        """How many times as many steps are needed where domains agree once in a period.

        Scheduling has the same law; it stands here again so that what is wrong there is not wrong here.
        """
        if domains == 1:
            return 1.0
        lost = 0.0240 * (domains - 1) ** 0.818 * math.log(1 + period / 18.4)
        return float((1 + lost) ** (1 / 0.3658))

    def pays(self, body: Json, network: Network, used: Way, best: Way) -> bool:
        """Whether to switch: at once where no step is made, else when what was lost by staying pays for it."""
        rates = [self.steps_a_second(body, network, way) for way in (used, best)]
        if rates[0] >= rates[1] or not self.is_other(used, best):
            return False
        return rates[0] == 0 or self.lost(body, used, best) >= rates[1] * body["switch_time"]

    def lost(self, body: Json, used: Way, best: Way) -> float:
        """Steps that were lost by staying, as if they were a debt: what is gained in between pays it back."""
        debt = 0.0
        for network in self.networks_since(body):
            mine, other = (self.steps_a_second(body, network, way) for way in (used, best))
            debt = max(0.0, debt + body["interval"] * (other - mine))
        return debt

    def networks_since(self, body: Json) -> Iterator[Network]:
        """Links in every interval since what is in use was begun, as far as they are known, the oldest first."""
        known = min((len(link["bandwidths"]) for link in body["links"]), default=0)
        for intervals in range(min(known, math.floor(body["in_use"]["since"] / body["interval"])), 0, -1):
            yield self.network_before(body, intervals)
