"""Heartbeats and log lines: taken item by item, and from time to time looked at for what is wrong with nodes."""

import threading
import time
from collections.abc import Callable
from typing import Any

from minimal_server.core import LIMITS, Answer, Json, Refusal, Request, Tenant, instant, wrong_body
from minimal_server.faults import FENCED
from minimal_server.hearing import Site, Ward, Watch
from minimal_server.stepping import Stepping
from minimal_server.telling import told_by

LOOK = 0.1
"""Seconds between two looks at what was heard."""

STRIDE = 500
"""Milliseconds that the clock goes on at most between two readings; for longer the service itself was kept from it."""

SILENCE = 2200
"""Milliseconds of silence after which a node is dead that beats twice a second; lost and late beats make less."""

PERIODS = 3
"""So many of its periods a node is silent that beats less often."""

DOUBT = 600
"""Milliseconds more that are waited where most of a domain is silent, for all of it may be."""

HUSH = 1200
"""Milliseconds of silence that count when it is looked at how many nodes of a domain are silent."""

NEARLY_ALL = 0.9
"""Share of the nodes of a domain that are silent where it cannot be reached."""

CUT_OFF = 2000
"""Milliseconds for which nearly all of a domain is silent before it is told."""

BREAK = 1600
"""Milliseconds of silence that break what is steady."""

STEADY, STEADY_AGAIN = 8000, 15_000
"""Milliseconds for which a node beats before it is alive again, and if it has fallen silent in between."""


class Watching(Stepping):
    """What is taken in, and what follows for nodes and domains.

    Attributes:
        lookers: Who looks at what else has come to be, as often.
    """

    lookers: tuple[Callable[[Tenant], None], ...] = ()

    def __init__(self, *arguments: Any) -> None:
        """Nothing is watched."""
        super().__init__(*arguments)
        self.wards: dict[str, Ward] = {}

    def begin(self) -> None:
        """Look at what was heard from now on."""
        super().begin()
        threading.Thread(target=self.watch_forever, daemon=True).start()

    def watch_forever(self) -> None:
        """Look again and again."""
        while True:
            with self.lock:
                self.moment = self.read_clock()
                for tenant in list(self.tenants.values()):
                    self.look_after(tenant)
                    for look in self.lookers:
                        look(tenant)
            time.sleep(LOOK)

    def ward(self, tenant: Tenant) -> Ward:
        """What is watched for a tenant, with its clock as it is now."""
        ward = self.wards.get(tenant.name)
        if ward is None:
            ward = self.wards[tenant.name] = Ward(moment=self.moment)
        ward.clock += max(0, min(self.moment - ward.moment, STRIDE))
        ward.moment = self.moment
        return ward

    def post_heartbeats(self, request: Request) -> Answer:
        """Take beats."""
        ward = self.ward(request.tenant)
        return self.take_in(request, "beats", lambda beat: self.take_beat(request.tenant, ward, beat))

    def post_log_lines(self, request: Request) -> Answer:
        """Take lines of logs."""
        ward = self.ward(request.tenant)
        return self.take_in(request, "lines", lambda line: self.take_line(request.tenant, ward, line))

    def take_in(self, request: Request, member: str, take: Callable[[Json], None]) -> Answer:
        """Take every good item of a batch and name every bad one."""
        items = self.batch(request, member)
        rejected = []
        for index, item in enumerate(items):
            try:
                self.check_item(request.tenant, member, item, f"/{member}/{index}")
            except Refusal as refusal:
                rejected.append({"index": index, "problem": self.problem(refusal)})
            else:
                take(item)
        return self.taken_in(len(items) - len(rejected), rejected)

    def batch(self, request: Request, member: str) -> list[Any]:
        """The items of a body that is a batch."""
        model = {"beats": "HeartbeatBatch", "lines": "LogBatch"}[member]
        items: list[Any] = self.body(request, model, without=member)[member]
        if len(items) > LIMITS["max_batch"]:
            raise wrong_body("invalid-body", f"/{member}", f"a batch holds {LIMITS['max_batch']} items at most")
        return items

    def check_item(self, tenant: Tenant, member: str, item: Any, at: str) -> None:
        """An item is as the schema says, and about a node that is registered."""
        model = {"beats": "Heartbeat", "lines": "LogLine"}[member]
        errors = self.schema_errors(model, item)
        if errors:
            places = [{"pointer": at + pointer, "detail": detail} for pointer, detail in errors]
            raise Refusal("invalid-body", f"the item is no {model}", places)
        self.check_node(tenant, item["node"], at)

    def check_node(self, tenant: Tenant, node: str, at: str) -> None:
        """A node is registered."""
        if node not in self.held(tenant, "nodes"):
            raise wrong_body("unknown-reference", f"{at}/node", f"{node} is not registered")

    def taken_in(self, accepted: int, rejected: list[Json]) -> Answer:
        """What became of a batch."""
        told = {"accepted": accepted, "rejected": rejected, "received_at": instant(self.moment)}
        return Answer(200, told, kept=False)

    def take_beat(self, tenant: Tenant, ward: Ward, beat: Json) -> None:
        """A beat is a sign of life of its node, and tells how far ranks are, unless it is an old one."""
        watch = ward.nodes.get(beat["node"])
        if watch is None:
            watch = ward.nodes[beat["node"]] = Watch(beat["node"])
            ward.number = -1
        elif beat["number"] <= watch.number:
            if self.was_heard(watch, beat) or not self.begins_anew(ward, watch, beat):
                return
            self.start_anew(tenant, watch)
        elif self.was_heard(watch, beat):
            return
        self.note_life(ward, watch, beat)
        seen = watch.sent_by(ward.clock, beat["sent_at"])
        for step in beat.get("steps", ()):
            self.take_step(tenant, ward, watch.name, step, seen)

    def was_heard(self, watch: Watch, beat: Json) -> bool:
        """Whether this very beat was heard before."""
        sent: str = beat["sent_at"]
        return watch.beats.get(beat["number"]) == sent

    def begins_anew(self, ward: Ward, watch: Watch, beat: Json) -> bool:
        """Whether beats with lower numbers go on from there, and were not just overtaken on their way."""
        number, since, count = watch.low
        count = count + 1 if count and beat["number"] > number else 1
        since = since if count > 1 else ward.clock
        watch.low = beat["number"], since, count
        watch.remember(beat)
        later = beat["sent_at"] > watch.sent
        return (count > 1 and later) or (count > 2 and ward.clock - since >= 1000)

    def start_anew(self, tenant: Tenant, watch: Watch) -> None:
        """A node was started anew, and is not what it was: what failed before is over."""
        watch.number = -1
        self.clear(tenant, ("node_failing", watch.name, -1), self.moment)

    def note_life(self, ward: Ward, watch: Watch, beat: Json) -> None:
        """A node was heard, and usually is after so long."""
        silent = ward.clock - watch.heard
        if watch.number >= 0:
            period = silent / (beat["number"] - watch.number)
            watch.period += (min(period, 3 * watch.period) - watch.period) / 8
        if silent > max(BREAK, 2 * watch.period):
            watch.steady = ward.clock
        watch.remember(beat)
        watch.number, watch.sent, watch.heard, watch.low = beat["number"], beat["sent_at"], ward.clock, (-1, 0, 0)

    def take_line(self, tenant: Tenant, ward: Ward, line: Json) -> None:
        """A line may tell that a node has to be reset or repaired."""
        code = told_by(line["text"])
        if code and line["node"] in ward.nodes:
            domain = self.held(tenant, "nodes")[line["node"]]["domain"]
            about = {"domain": domain, "node": line["node"], "code": code}
            because = f"a line of its log tells {code}: {line['text'][:1000]}"
            self.tell(tenant, ("node_failing", line["node"], -1), about, self.moment, because)

    def look_after(self, tenant: Tenant) -> None:
        """Look at all that is watched."""
        ward = self.ward(tenant)
        self.put_to_domains(tenant, ward)
        for site in list(ward.sites.values()):
            self.look_at_domain(tenant, ward, site)
        self.look_at_jobs(tenant, ward)

    def put_to_domains(self, tenant: Tenant, ward: Ward) -> None:
        """Nodes are where they are registered."""
        if ward.number == tenant.number:
            return
        ward.number = tenant.number
        for site in ward.sites.values():
            site.nodes = {}
        for name, watch in ward.nodes.items():
            domain = self.held(tenant, "nodes")[name]["domain"]
            ward.sites.setdefault(domain, Site(domain)).nodes[name] = watch

    def look_at_domain(self, tenant: Tenant, ward: Ward, site: Site) -> None:
        """Tell whether it can be reached, and if so, who of it is dead."""
        if not site.nodes:
            self.clear(tenant, ("domain_unreachable", site.name, -1), self.moment)
            del ward.sites[site.name]
            return
        told = self.docket(tenant).open
        living = [watch for watch in site.nodes.values() if ("node_dead", watch.name, -1) not in told]
        hushed = sum(self.silence(ward, site, watch) > max(HUSH, 2 * watch.period) for watch in living)
        self.note_cut(ward, site, cut=self.is_cut(len(living), hushed))
        self.judge_reach(tenant, ward, site)
        if not site.cut:
            doubt = DOUBT if 2 * hushed > len(living) else 0
            for watch in living:
                self.judge_node(tenant, ward, site, watch, doubt)
        if len(living) < len(site.nodes):
            for name, watch in site.nodes.items():
                if ("node_dead", name, -1) in told:
                    self.judge_dead(tenant, ward, watch)

    def silence(self, ward: Ward, site: Site, watch: Watch) -> int:
        """Milliseconds for which a node was silent while its domain could be reached."""
        return ward.clock - max(watch.heard, site.back)

    def is_cut(self, living: int, hushed: int) -> bool:
        """Whether nothing seems to come of a domain any more."""
        return living > 0 and hushed >= NEARLY_ALL * living

    def note_cut(self, ward: Ward, site: Site, *, cut: bool) -> None:
        """A domain falls silent, or is heard again; then its nodes have their time anew."""
        if cut and not site.cut:
            site.cut = ward.clock
        elif site.cut and not cut:
            site.cut, site.back = 0, ward.clock

    def judge_reach(self, tenant: Tenant, ward: Ward, site: Site) -> None:
        """Tell that a domain cannot be reached, or that it can again."""
        if site.cut and ward.clock - site.cut >= CUT_OFF - HUSH:
            newest = max(watch.heard for watch in site.nodes.values())
            because = f"nothing came of {len(site.nodes)} nodes for {(ward.clock - newest) / 1000:.1f} s"
            since = self.moment - (ward.clock - newest)
            self.tell(tenant, ("domain_unreachable", site.name, -1), {"domain": site.name}, since, because)
        elif not site.cut and ward.clock - site.back > HUSH:
            over = self.moment - (ward.clock - site.back)
            self.clear(tenant, ("domain_unreachable", site.name, -1), over)

    def judge_node(self, tenant: Tenant, ward: Ward, site: Site, watch: Watch, doubt: int) -> None:
        """Tell a node dead that was silent for too long."""
        if self.silence(ward, site, watch) <= max(SILENCE, PERIODS * watch.period) + doubt:
            return
        silent = ward.clock - watch.heard
        watch.relapsed, watch.steady = False, ward.clock
        about = {"domain": site.name, "node": watch.name}
        because = f"silent for {silent / 1000:.1f} s, and others of its domain are heard"
        self.tell(tenant, ("node_dead", watch.name, -1), about, self.moment - silent, because)

    def judge_dead(self, tenant: Tenant, ward: Ward, watch: Watch) -> None:
        """A node that was told dead is alive again when it has been heard for a while without a break."""
        if ward.clock - watch.heard > max(BREAK, 2 * watch.period):
            watch.relapsed = watch.relapsed or watch.heard > watch.steady
            return
        if ward.clock - watch.steady >= (STEADY_AGAIN if watch.relapsed else STEADY):
            watch.revived = ward.clock
            over = self.moment - (ward.clock - watch.steady)
            self.clear(tenant, ("node_dead", watch.name, -1), over)

    def forget(self, tenant: Tenant, kind: str, name: str) -> None:
        """A node that is no more is not watched, nor are the ranks on it."""
        super().forget(tenant, kind, name)
        if kind == "nodes":
            self.unwatch(tenant, self.ward(tenant), name)

    def unwatch(self, tenant: Tenant, ward: Ward, node: str) -> None:
        """Watch a node no more; what was told of it is over."""
        ward.nodes.pop(node, None)
        for fault in FENCED:
            self.clear(tenant, (fault, node, -1), self.moment)
        self.forget_ranks(tenant, ward, node)
