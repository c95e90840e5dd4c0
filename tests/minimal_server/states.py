"""States of nodes as they are shown: of those that are silent, as they were reported, and as they are recognised.

What goes on at a node that answers is recognised by :mod:`minimal_server.recognition`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from minimal_server.core import Json, Tenant
from minimal_server.plans import Plans
from minimal_server.recognition import Finding, Recogniser
from minimal_server.records import Make
from minimal_server.samples import Good

STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline", "unknown")

LIVES = {"constancy": "dynamic", "period": 60}
"""How the indicator register describes the measures of links and the state of health."""

MISSED = 4
"""So many of its gaps, beyond what it is usually late, a silent node is behind."""

STILL = 2.5
"""For so many of its gaps nothing at all has come of a silent node; what is late still comes."""

CUT = 8
"""For so many gaps nothing has come of any node of a domain that cannot be reached."""

LATEST = 10_000
"""Milliseconds by which a node's samples are late at most; what is older is history, and tells nothing of now."""

QUICKEST, SLOWEST = 1000, 60_000
"""Milliseconds between two samples of a node: no fewer are counted on, and so many where one only has come."""

STRIDE = 3000
"""Milliseconds that a domain's clock goes on at most between two arrivals: it stands while the domain is not heard."""

SILENT = Finding("offline", "silent while others of its domain are heard")
UNREACHABLE = Finding("unknown", "nothing comes of its domain")
REPORTED = "reported so"


@dataclass(slots=True)
class Watch:
    """What has come of one node.

    Attributes:
        make: What it is made of.
        observed: Instant of its newest sample.
        mark: Time of its domain's clock when something came last.
        gap: Milliseconds that usually lie between two of its samples; nought where one only has come.
        behind: Milliseconds by which its samples are late, as far as was seen lately.
        reported: Newest health state of the node itself, and its instant.
    """

    make: Make
    observed: int = 0
    mark: int = 0
    gap: float = 0.0
    behind: float = 0.0
    reported: tuple[int, str] = 0, ""


@dataclass(slots=True)
class Site:
    """What has come of one domain.

    Attributes:
        heard: When anything came last.
        observed: The newest instant.
        before: The newest instant when it was heard before.
        clock: Milliseconds for which it was heard.
        gap: Milliseconds between two samples of a node, as is usual.
    """

    heard: int = 0
    observed: int = 0
    before: int = 0
    clock: int = 0
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A state that is shown, since when, and why."""

    state: str
    since: int
    because: str


@dataclass(slots=True)
class Sight:
    """What one tenant's telemetry tells."""

    watches: dict[str, Watch] = field(default_factory=dict)
    sites: dict[str, Site] = field(default_factory=dict)
    shown: dict[str, Shown] = field(default_factory=dict)
    recogniser: Recogniser = field(default_factory=Recogniser)
    number: int = -1


class States(Plans):
    """Listens to all samples, and from time to time looks what they tell."""

    def __init__(self, *arguments: Any) -> None:
        """Nothing is known of any node."""
        super().__init__(*arguments)
        self.sights: dict[str, Sight] = {}

    def sight(self, tenant: Tenant) -> Sight:
        """What the tenant's telemetry tells."""
        sight = self.sights.get(tenant.name)
        if sight is None:
            sight = self.sights[tenant.name] = Sight()
        return sight

    def take(self, tenant: Tenant, samples: list[Good]) -> None:
        """Samples are held, and listened to."""
        super().take(tenant, samples)
        sight, nodes = self.sight(tenant), self.held(tenant, "nodes")
        of_nodes = [sample for sample in samples if sample.subject_kind in {"node", "device"}]
        for name in {nodes[sample.subject]["domain"] for sample in of_nodes}:
            site = sight.sites.setdefault(name, Site(self.moment))
            site.clock += min(self.moment - site.heard, STRIDE)
            site.heard, site.before = self.moment, site.observed
        for sample in of_nodes:
            node = nodes[sample.subject]
            watch = sight.watches.get(sample.subject)
            if watch is None:
                watch = sight.watches[sample.subject] = Watch(make_of(node))
            self.hear(sight, sight.sites[node["domain"]], watch, sample)

    def hear(self, sight: Sight, site: Site, watch: Watch, sample: Good) -> None:
        """Take note of a sample; one that is late tells that its node lives, and no more."""
        moment = sample.moment
        watch.mark = site.clock
        watch.behind = max(min(site.before - moment, LATEST), 0.98 * watch.behind)
        if moment < watch.observed and not sample.device:
            return
        if moment > watch.observed:
            if watch.observed:
                gap = moment - watch.observed
                watch.gap += (min(gap, 3 * watch.gap) - watch.gap) / 8 if watch.gap else gap
                site.gap += (watch.gap - site.gap) / 64 if site.gap else watch.gap
            watch.observed = moment
            site.observed = max(site.observed, moment)
        if "health_state" in sample.measures and not sample.device:
            watch.reported = moment, sample.measures["health_state"]
        sight.recogniser.hear(sample.subject, watch.make, sample.device, moment, sample.measures, watch.behind)

    def forget(self, tenant: Tenant, kind: str, name: str) -> None:
        """What was heard of a node or a domain goes with it."""
        super().forget(tenant, kind, name)
        sight = self.sight(tenant)
        if kind == "nodes":
            sight.watches.pop(name, None)
            sight.shown.pop(name, None)
        if kind == "domains":
            sight.sites.pop(name, None)

    def recognise(self, tenant: Tenant) -> None:
        """Look at every node anew."""
        sight, nodes = self.sight(tenant), self.held(tenant, "nodes")
        if sight.number != tenant.number:
            sight.number = tenant.number
            for name, watch in sight.watches.items():
                watch.make = make_of(nodes[name])
            sight.recogniser.arrange({n: watch.make for n, watch in sight.watches.items()}, self.families(tenant))
        answering = [
            name
            for name, watch in sight.watches.items()
            if not self.silent(watch, sight.sites.get(nodes[name]["domain"]))
        ]
        found = sight.recogniser.recognise(answering)
        cut = {name for name in sight.sites if not self.reachable(tenant, name)}
        for name, node in nodes.items():
            heard = sight.watches.get(name)
            if heard is not None:
                self.show(sight, name, self.finding(heard, found.get(name), reachable=node["domain"] not in cut))

    def families(self, tenant: Tenant) -> list[list[str]]:
        """Nodes of each family."""
        members: dict[str, list[str]] = {}
        for name, record in self.held(tenant, "nodes").items():
            if "compute_identifier" in record:
                members.setdefault(record["compute_identifier"], []).append(name)
        return [
            [name for member in record["members"] for name in members.get(member, ())]
            for urn, record in self.held(tenant, "compute-identifiers").items()
            if urn.startswith("urn:kuayu:family:")
        ]

    def silent(self, watch: Watch, site: Site | None) -> bool:
        """Whether a node has missed several samples while others of its domain were heard."""
        gap = max(watch.gap or SLOWEST, QUICKEST)
        if site is None or site.observed - watch.observed <= MISSED * gap + watch.behind:
            return False
        return site.clock - watch.mark > STILL * gap

    def reachable(self, tenant: Tenant, domain: str) -> bool:
        """Whether anything still comes of a domain, or nothing ever came again and again."""
        site = self.sight(tenant).sites.get(domain)
        return site is None or not site.gap or self.moment - site.heard <= CUT * max(site.gap, QUICKEST)

    def finding(self, watch: Watch, found: Finding | None, *, reachable: bool) -> Finding:
        """The state of a node, of which ``found`` was recognised unless it is silent."""
        reported = self.reported(watch)
        if not reachable:
            return UNREACHABLE
        if reported in {"faulty", "offline"}:
            return Finding(reported, REPORTED)
        if found is None:
            return SILENT
        if reported == "degraded" and found.state != "straggling":
            return Finding(reported, REPORTED)
        return found

    def reported(self, watch: Watch) -> str:
        """Health state that was reported of a node itself, while it lives; empty where there is none."""
        moment, state = watch.reported
        return state if state and not self.stale(LIVES, moment, self.moment) else ""

    def show(self, sight: Sight, name: str, finding: Finding) -> None:
        """Show a state; it is shown since it became another."""
        shown = self.shown_state(sight, name)
        if finding.state != shown.state:
            sight.shown[name] = Shown(finding.state, self.moment, finding.because)

    def shown_state(self, sight: Sight, name: str) -> Shown:
        """The state that is shown of a node."""
        shown = sight.shown.get(name)
        if shown is None:
            shown = sight.shown[name] = Shown("unknown", self.moment, "nothing has come of it")
        return shown

    def utilisation(self, tenant: Tenant, names: Iterable[str]) -> float | None:
        """Mean utilisation of those nodes that state one; None where none does."""
        nodes = self.sight(tenant).recogniser.nodes
        stated = [share for name in names if name in nodes and (share := nodes[name].newest.utilisation) is not None]
        return sum(stated) / len(stated) if stated else None


def make_of(node: Json) -> Make:
    """What a registered node is made of."""
    devices = node.get("devices", ())
    first = devices[0] if devices else {}
    names = tuple(device["id"] for device in devices)
    return Make(names, first.get("memory_capacity"), first.get("power_limit"), first.get("model", ""))
