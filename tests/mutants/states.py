"""Wrong in the states of nodes, and near-misses of the figures about them."""

from collections import Counter, deque
from typing import Any
from zlib import crc32

from minimal_server.core import Json, Tenant
from minimal_server.recognition import Finding
from minimal_server.service import MinimalServer
from minimal_server.states import REPORTED, SILENT, UNREACHABLE, Sight, Site, Watch
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss

Vertices = dict[str, dict[str, Json]]

FEW_DEVICES = 2
"""Devices of a node in the world of MET-024 at most."""

MANY = 100
"""Nodes of a domain that is no small one."""


@breaks("MET-022")
class PartitionsAreMassFailures(MinimalServer):
    """The nodes of a domain that is not heard any more are shown as offline."""

    @override
    def finding(self, watch: Watch, found: Finding | None, *, reachable: bool) -> Finding:
        return super().finding(watch, found, reachable=True) if reachable else SILENT


@breaks("MET-022")
class DomainsAreAlwaysReachable(MinimalServer):
    """A domain is shown as reachable even while nothing comes of it."""

    @override
    def domain_vertex(self, tenant: Tenant, name: str, nodes: list[Json]) -> Json:
        return {**super().domain_vertex(tenant, name, nodes), "reachable": True}


@breaks("MET-006", "MET-016")
class StragglersPassForDegraded(MinimalServer):
    """A node that others wait for is shown as degraded."""

    @override
    def finding(self, watch: Watch, found: Finding | None, *, reachable: bool) -> Finding:
        finding = super().finding(watch, found, reachable=reachable)
        return Finding("degraded", finding.because) if finding.state == "straggling" else finding


@breaks("MET-006", "MET-016")
class SilenceIsNotMinded(MinimalServer):
    """A node that falls silent is shown as it was before."""

    @override
    def silent(self, watch: Watch, site: Site | None) -> bool:
        return False


@breaks("MET-006", "MET-016", "MET-022")
class SilenceIsNeverNoticed(SilenceIsNotMinded):
    """Nodes and whole domains that fall silent are shown as they were before."""

    @override
    def reachable(self, tenant: Tenant, domain: str) -> bool:
        return True


@breaks("MET-005", "MET-024")
class ReportsOfHealthAreIgnored(MinimalServer):
    """States are recognised only, whatever is reported of a node's health."""

    @override
    def reported(self, watch: Watch) -> str:
        return ""


class Hesitant(MinimalServer):
    """A node of a domain of many that is reported offline is shown as unknown for a while."""

    seconds = 0.0
    crowded: frozenset[str] = frozenset()

    @override
    def vertices(self, tenant: Tenant) -> Vertices:
        fellows = Counter(str(node["domain"]) for node in self.held(tenant, "nodes").values())
        self.crowded = frozenset(name for name, count in fellows.items() if count > MANY)
        return super().vertices(tenant)

    @override
    def node_vertex(self, tenant: Tenant, record: Json) -> Json:
        vertex = super().node_vertex(tenant, record)
        shown = self.shown_state(self.sight(tenant), record["id"])
        is_reported = shown.state == "offline" and shown.because == REPORTED and record["domain"] in self.crowded
        if is_reported and self.moment - shown.since < 1000 * self.seconds:
            vertex["state"] = "unknown"
        return vertex


@near_miss("MET-005")
class OfflineIsShownAfterThirtyOneSeconds(Hesitant):
    """A node of a domain of many that is reported offline is shown so after 31 s, where 30 s are allowed."""

    seconds = 31.0


@control("MET-005")
class OfflineIsShownAfterTwentyFiveSeconds(Hesitant):
    """A node of a domain of many that is reported offline is shown so after 25 s, where 30 s are allowed."""

    seconds = 25.0


class Slow(MinimalServer):
    """What is recognised is shown later by some seconds; what was reported is shown at once."""

    seconds = 0.0
    unshown: dict[tuple[int, str], deque[tuple[float, Finding]]]

    @override
    def __init__(self, *arguments: Any) -> None:
        self.unshown = {}
        super().__init__(*arguments)

    @override
    def show(self, sight: Sight, name: str, finding: Finding) -> None:
        waiting = self.unshown.setdefault((id(sight), name), deque())
        if finding.because == REPORTED or finding is UNREACHABLE:
            waiting.clear()
            super().show(sight, name, finding)
            return
        newest = waiting[-1][1].state if waiting else self.shown_state(sight, name).state
        if finding.state != newest:
            waiting.append((self.moment + 1000 * self.seconds, finding))
        while waiting and waiting[0][0] <= self.moment:
            super().show(sight, name, waiting.popleft()[1])


@near_miss("MET-006")
class RecognitionTakesFourSecondsMore(Slow):
    """States are shown 4 s after they were recognised, so that some take more than 10 s."""

    seconds = 4.0


@control("MET-006")
class RecognitionTakesASecondMore(Slow):
    """States are shown a second after they were recognised, so that hardly any takes more than 9 s."""

    seconds = 1.0


class Forgetful(MinimalServer):
    """Some nodes that have been idle for long are shown as busy, and busy ones as idle; each change is shown aright.

    Nodes of few devices are not forgotten, so that MET-024, whose nodes are such, is none of its affairs.
    """

    percent = 0

    @override
    def node_vertex(self, tenant: Tenant, record: Json) -> Json:
        vertex = super().node_vertex(tenant, record)
        long = self.moment - self.shown_state(self.sight(tenant), record["id"]).since > 7000
        if long and len(record.get("devices", ())) > FEW_DEVICES and crc32(record["id"].encode()) % 100 < self.percent:
            vertex["state"] = {"idle": "busy", "busy": "idle"}.get(vertex["state"], vertex["state"])
        return vertex


@near_miss("MET-016")
class AThirdIsForgotten(Forgetful):
    """A third of the nodes are shown as idle where they have long been busy, and the other way round."""

    percent = 35


@control("MET-016")
class AFifthIsForgotten(Forgetful):
    """A fifth of the nodes are shown as idle where they have long been busy, and the other way round."""

    percent = 20


class Late(MinimalServer):
    """Nodes that are registered in a domain of many, once it is heard, join the graph late."""

    late: dict[tuple[str, str], int]

    @override
    def __init__(self, *arguments: Any) -> None:
        self.late = {}
        super().__init__(*arguments)

    @override
    def changed(self, tenant: Tenant, kind: str, name: str) -> None:
        super().changed(tenant, kind, name)
        node = self.held(tenant, kind).get(name) if kind == "nodes" else None
        if node is not None and name not in self.graph(tenant).vertices["nodes"]:
            fellows = [one for one in self.held(tenant, "nodes").values() if one["domain"] == node["domain"]]
            if len(fellows) > MANY and self.sight(tenant).sites.get(node["domain"], Site()).gap:
                self.late.setdefault((tenant.name, name), self.moment)

    def is_out(self, tenant: Tenant, name: str) -> bool:
        """Whether a node is not in the graph yet."""
        raise NotImplementedError

    @override
    def vertices(self, tenant: Tenant) -> Vertices:
        found = super().vertices(tenant)
        nodes = {name: vertex for name, vertex in found["nodes"].items() if not self.is_out(tenant, name)}
        for name in {found["nodes"][name]["domain"] for name in found["nodes"].keys() - nodes.keys()}:
            members = [vertex for vertex in nodes.values() if vertex["domain"] == name]
            found["domains"][name] = self.domain_vertex(tenant, name, members)
        return {**found, "nodes": nodes}


@near_miss("MET-004")
class OneNodeNeverJoins(Late):
    """The first node that is registered in a domain of many, once it is heard, never joins the graph."""

    @override
    def is_out(self, tenant: Tenant, name: str) -> bool:
        return next(iter(self.late), None) == (tenant.name, name)


@breaks("MET-004", "MET-005", "MET-006", "MET-016", "MET-022", "MET-024")
class NothingIsNoticed(SilenceIsNeverNoticed, ReportsOfHealthAreIgnored, OneNodeNeverJoins):
    """Neither silence nor a report of health changes a state, and one node never joins the graph.

    All that two worlds of telemetry show is broken at once, so that a cover set plays each of them for one mutant.
    """


@control("MET-004")
class NodesJoinFiveSecondsLate(Late):
    """Nodes that are registered in a domain of many, once it is heard, join the graph 5 s later."""

    @override
    def is_out(self, tenant: Tenant, name: str) -> bool:
        since = self.late.get((tenant.name, name))
        return since is not None and self.moment - since < 5000
