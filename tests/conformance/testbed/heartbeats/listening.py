"""How tests listen to a world of heartbeats: all that it sends in order, by node, and who lives and is heard when."""

from collections import defaultdict
from collections.abc import Iterator

from kuayu_conformance.testbed.heartbeats import NODE_DEAD, QUICK, Beat, Delivery, Slots, World


def quick() -> World:
    """A quick world."""
    return World(QUICK, "stories", lambda label: f"run-{label}")


def deliveries(its: World) -> Iterator[Delivery]:
    """All that it sends, in order."""
    for sending in range(its.sendings):
        delivery = its.delivery(sending)
        if delivery is not None:
            yield delivery


def alive(its: World) -> dict[str, list[tuple[float, float]]]:
    """When each node lives and is heard: from the incidents and partitions alone."""
    gone: dict[str, list[tuple[float, float]]] = defaultdict(list)
    slots = Slots(its.scale.domains)
    for body in its.nodes:
        for cut in its.cuts:
            if its.domains[cut.domain]["id"] == body["domain"]:
                span = slots.at(cut.domain, cut.since), slots.at(cut.domain, cut.until)
                gone[str(body["id"])].append(span)
    for each in its.incidents:
        if each.kind == NODE_DEAD and each.node:
            gone[each.node].append((each.onset, each.until))
    found = {}
    for body in its.nodes:
        spans, since = [], 0.0
        for begin, end in sorted(gone[str(body["id"])]):
            if begin > since:
                spans.append((since, begin))
            since = max(since, end)
        spans.append((since, its.scale.total))
        found[str(body["id"])] = [(begin, min(end, its.scale.total)) for begin, end in spans if begin < its.scale.total]
    return found


def by_node(sent: list[Delivery]) -> dict[str, list[tuple[float, Beat]]]:
    """Beats of each node, and when they came."""
    found: dict[str, list[tuple[float, Beat]]] = defaultdict(list)
    for delivery in sent:
        for beat in delivery.beats:
            found[beat.body["node"]].append((delivery.instant, beat))
    return found
