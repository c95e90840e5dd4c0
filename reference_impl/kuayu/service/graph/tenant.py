"""The living graph of one tenant: registrations and newest values in, published changes out.

Registrations come from the writer's thread, everything else from the graph's; a lock keeps them apart where they meet.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

import numpy as np

from kuayu.perception.graph import Hierarchy, LinkTracker, Seen
from kuayu.perception.graph.links import NOTHING, Quality
from kuayu.perception.identifiers import tier_of
from kuayu.perception.links import Path, estimate
from kuayu.perception.recognition import REASONS, SIGNALS, Recogniser, Recognition, Telemetry
from kuayu.service import instants
from kuayu.service.graph.live import COLUMNS, LINK_MEASURES, LiveTable, lives
from kuayu.service.graph.rows import RegisteredLink, RegisteredNode, Rows
from kuayu.service.graph.shown import ShownGraph
from kuayu.service.graph.telemetry import NodeTelemetry
from kuayu.service.kinds import COMPUTE_IDENTIFIER, DOMAIN, LINK, NODE, Body
from kuayu.service.storage.catalogue import SubjectKey

SHARE = 0.1
"""Share of the time that arranging nodes anew may take while registrations come one after another."""

LINKS_FROM = COLUMNS.index(LINK_MEASURES[0])
LINK_ROUND = 5.0
"""Seconds after which links are looked at even where no sample came, since values die."""

ESTIMATED_EVERY = 10.0
"""Seconds between two estimates of links, at least."""

ESTIMATING = 0.01
"""Share of the time that they may take."""

UTILISATION = SIGNALS.index("accelerator_utilisation")

DIGITS = 3
"""Digits of an estimate that mean anything."""


class TenantGraph:
    """What is registered, what is known of it, and what is shown.

    Args:
        table: Newest values of all tenants; only the graph's thread uses it.
        shown: What readers get.
        recognised: Is told how many seconds each recognition took.
    """

    def __init__(self, table: LiveTable, shown: ShownGraph, recognised: Callable[[float], None]) -> None:
        self.shown = shown
        self._table = table
        self._recognised = recognised
        self._lock = threading.Lock()
        self._hierarchy = Hierarchy()
        self._links = LinkTracker()
        self._births = count()
        self._nodes: dict[str, RegisteredNode] = {}
        self._domains: dict[str, Body] = {}
        self._link_of: dict[str, RegisteredLink] = {}
        self._gone: set[int] = set()
        self._families: dict[str, Sequence[str]] = {}
        self._arranged = False
        self._arrange_from = 0.0
        self._rows = Rows()
        self._link_names: list[str] = []
        self._link_rows = table.rows([])
        self._telemetry = NodeTelemetry(table, table.rows([]), table.rows([]), [])
        self._recogniser: Recogniser | None = None
        self._links_at = float("-inf")
        self._estimate_from = float("-inf")

    def begin(self, resources: Iterable[tuple[str, Body]], numbers: Mapping[SubjectKey, int]) -> None:
        """Take in what is registered when the service starts: kinds and bodies, domains first."""
        for kind, body in resources:
            self._put(kind, body, numbers)
        self.shown.begin(self._hierarchy.changed()[0] | self._links.changed(time.monotonic())[0])

    def put(self, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        """Something was registered or replaced; ``numbers`` are those of its subjects."""
        with self._lock:
            self._put(kind, body, numbers)
            self._publish(instants.now(), time.monotonic())

    def drop(self, kind: str, name: str) -> None:
        """Something is no longer registered."""
        with self._lock:
            if kind == NODE.name:
                self._forget(self._nodes.pop(name, None))
                self._hierarchy.drop_node(name)
            elif kind == DOMAIN.name:
                self._domains.pop(name, None)
                self._hierarchy.drop_domain(name)
            elif kind == LINK.name:
                self._forget(self._link_of.pop(name, None))
                self._links.drop(name)
            elif kind == COMPUTE_IDENTIFIER.name:
                self._families.pop(name, None)
            self._arranged = False
            self._publish(instants.now(), time.monotonic())

    def numbers(self) -> list[int]:
        """Numbers of all that samples may be about, for the table to be filled."""
        with self._lock:
            return self._numbers()

    def look(self, now: int) -> None:
        """Recognise and publish.

        Args:
            now: Milliseconds since 1970.
        """
        clock = time.monotonic()
        try:
            if not self._arranged and clock >= self._arrange_from:
                self._arrange()
                self._arrange_from = clock + (time.monotonic() - clock) / SHARE
            self._look_at_nodes(now, clock)
        except Exception:
            # Whatever went wrong, it shall not last: the next look begins with a recogniser that knows nothing.
            self._recogniser, self._arranged = None, False
            raise
        finally:
            self._look_at_links(now, clock)
            with self._lock:
                self._publish(now, clock)

    def _put(self, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        if kind == DOMAIN.name:
            self._arranged &= body["id"] in self._domains
            self._domains[body["id"]] = body
            self._hierarchy.put_domain(body["id"])
        elif kind == NODE.name:
            self._put_node(body, numbers)
        elif kind == LINK.name:
            name = body["id"]
            link = RegisteredLink(body["source"], body["destination"], body.get("capacity"), numbers[kind, name, None])
            self._arranged &= link == self._link_of.get(name)
            self._link_of[name] = link
            self._links.put(name, link.source, link.destination, link.capacity)
        elif kind == COMPUTE_IDENTIFIER.name and tier_of(body["urn"]) == "family":
            self._families[body["urn"]] = body["members"]
            self._arranged = False

    def _put_node(self, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        name = body["id"]
        held = self._nodes.get(name)
        devices = tuple(numbers["device", name, device["id"]] for device in body.get("devices", ()))
        node = RegisteredNode(
            body["domain"],
            body.get("compute_identifier"),
            numbers[NODE.name, name, None],
            devices,
            held.born if held else next(self._births),
        )
        self._arranged &= node == held
        self._forget(held)
        self._nodes[name] = node
        self._hierarchy.put_node(name, node.domain, len(devices), instants.to_text(instants.now()))

    def _forget(self, subject: RegisteredNode | RegisteredLink | None) -> None:
        """Note the numbers of what is registered no longer, or otherwise."""
        if subject is not None:
            self._gone.update((subject.number, *(subject.devices if isinstance(subject, RegisteredNode) else ())))

    def _numbers(self) -> list[int]:
        nodes = [node.number for node in self._nodes.values()]
        links = [link.number for link in self._link_of.values()]
        return [*nodes, *links, *(number for node in self._nodes.values() for number in node.devices)]

    def _publish(self, now: int, clock: float) -> None:
        nodes, gone = self._hierarchy.changed()
        links, gone_links = self._links.changed(clock)
        if nodes or links or gone or gone_links:
            self.shown.publish(nodes | links, [*gone, *gone_links], now)

    def _arrange(self) -> None:
        """Put what is registered into arrays, and take along what is known of what was there before."""
        with self._lock:
            nodes, families = dict(self._nodes), dict(self._families)
            domains, links = sorted(self._domains), dict(self._link_of)
            gone, self._gone = self._gone.difference(self._numbers()), set()
            self._arranged = True
        self._table.drop(list(gone))
        before = self._rows.names
        self._rows, origin = self._rows.arranged(nodes, domains)
        self._link_names = list(links)
        self._link_rows = self._table.rows([link.number for link in links.values()])
        telemetry = NodeTelemetry(
            self._table,
            self._table.rows([node.number for node in nodes.values()]),
            self._table.rows([number for node in nodes.values() for number in node.devices]),
            [len(node.devices) for node in nodes.values()],
        )
        telemetry.go_on_from(self._telemetry, origin)
        self._telemetry = telemetry
        population = self._rows.population(nodes.values(), families)
        if self._recogniser is None or not len(before):
            self._recogniser = Recogniser(population)
        else:
            self._recogniser.rearrange(population, origin)

    def _look_at_nodes(self, now: int, clock: float) -> None:
        rows = self._rows
        if self._recogniser is None or not rows.domains:
            return
        values, observed, arrived, fresh = self._telemetry.read(now)
        began = time.perf_counter()
        found = self._recogniser.update(Telemetry(now / 1000.0, values, observed, arrived, fresh))
        self._recognised(time.perf_counter() - began)
        told = rows.tell(found, clock)
        utilisation = rows.utilisation(found, values[:, UTILISATION])
        with self._lock:
            at = instants.to_text(now)
            for row in told:
                node = self._nodes.get(rows.names[row])
                if node is not None and node.born == rows.born[row]:
                    self._hierarchy.see(rows.names[row], _seen(found, row), at)
            for name, reachable, mean in zip(rows.domains, found.reachable.tolist(), utilisation, strict=True):
                if name in self._domains:
                    self._hierarchy.summarise(name, reachable=reachable, utilisation=mean, now=clock)

    def _look_at_links(self, now: int, clock: float) -> None:
        rows = self._link_rows
        touched = self._table.touched[rows]
        everything = clock >= self._links_at + LINK_ROUND
        if everything:
            self._links_at = clock
            touched[:] = True
        places = np.flatnonzero(touched)
        if not len(places):
            return
        self._table.touched[rows[places]] = False
        found = rows[places]
        values, observed = self._table.values[found, LINKS_FROM:], self._table.instants[found, LINKS_FROM:]
        alive = observed >= now - lives()[LINKS_FROM:]
        with self._lock:
            for place, measured, living, moments in zip(
                places.tolist(), values.tolist(), alive.tolist(), observed.tolist(), strict=True
            ):
                name = self._link_names[place]
                if name in self._link_of:
                    self._links.measure(name, _quality(measured, living), moments[0] / 1000.0, clock)
        if everything and clock >= self._estimate_from:
            self._estimate_links(clock)
            self._estimate_from = clock + max(ESTIMATED_EVERY, (time.monotonic() - clock) / ESTIMATING)

    def _estimate_links(self, clock: float) -> None:
        """Estimate links on which nothing is measured; one of which something is stays as it is."""
        with self._lock:
            links, measured = dict(self._link_of), self._links.measured()
            places = {name: place for name, body in self._domains.items() if (place := _place(body))}
        if len(measured) == len(links):
            return
        paths = [
            Path(name, link.source, link.destination, link.capacity, *measured.get(name, NOTHING)[:2])
            for name, link in links.items()
        ]
        found = estimate(places, paths)
        with self._lock:
            for name in links.keys() - measured.keys():
                if name in self._link_of:
                    each = found[name]
                    self._links.estimate(name, _rounded(each.bandwidth), _rounded(each.round_trip), clock)


def _quality(values: Sequence[float], alive: Sequence[bool]) -> Quality:
    bandwidth, round_trip, loss = (value if living else None for value, living in zip(values, alive, strict=True))
    return bandwidth, round_trip, loss


def _place(domain: Body) -> tuple[float, float] | None:
    """Latitude and longitude of a domain, where both are registered."""
    location = domain.get("location", {})
    if "latitude" not in location or "longitude" not in location:
        return None
    return location["latitude"], location["longitude"]


def _rounded(value: float | None) -> float | None:
    """A number in as many digits as mean anything."""
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _seen(found: Recognition, row: int) -> Seen:
    return Seen(int(found.state[row]), round(float(found.confidence[row]), 2), REASONS[int(found.reason[row])])
