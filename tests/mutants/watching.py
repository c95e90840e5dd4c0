"""Wrong in what is recognised of nodes, domains and jobs, and in what batches are taken."""

from typing import Any

from minimal_server.core import Answer, Json, Refusal, Request, Tenant
from minimal_server.faults import FaultKey
from minimal_server.hearing import Job, Site, Ward, Watch
from minimal_server.service import MinimalServer
from minimal_server.watching import BREAK, SILENCE
from typing_extensions import override

from mutants.declaration import breaks


@breaks("RES-017")
class SilentDomainsAreDeadNodes(MinimalServer):
    """All nodes of a domain of which nothing comes are told dead."""

    @override
    def is_cut(self, living: int, hushed: int) -> bool:
        return False


@breaks("RES-017")
class SilentDomainsAreNotTold(MinimalServer):
    """Nobody is told that a domain cannot be reached."""

    @override
    def judge_reach(self, tenant: Tenant, ward: Ward, site: Site) -> None:
        """Nothing is said."""


@breaks("RES-017")
class WhoDiesAmidSilenceIsForgotten(MinimalServer):
    """A node that has not come back with its domain is never told dead."""

    @override
    def silence(self, ward: Ward, site: Site, watch: Watch) -> int:
        return 0 if watch.heard < site.back else super().silence(ward, site, watch)


@breaks("RES-018", "RES-019")
class TheDeadStayDead(MinimalServer):
    """A node that was told dead stays so, however long it beats."""

    @override
    def judge_dead(self, tenant: Tenant, ward: Ward, watch: Watch) -> None:
        """Nobody comes back."""


@breaks("RES-018")
class HungJobsStayHung(MinimalServer):
    """A job that was told to hang stays so, however many steps it makes."""

    @override
    def judge_job(self, tenant: Tenant, ward: Ward, name: str, job: Job) -> None:
        if ("job_hung", name, -1) not in self.docket(tenant).open:
            super().judge_job(tenant, ward, name, job)


@breaks("RES-018")
class EachFlapIsAFault(MinimalServer):
    """A node is alive again with its first beat, so that one that comes and goes has many faults."""

    @override
    def judge_dead(self, tenant: Tenant, ward: Ward, watch: Watch) -> None:
        if ward.clock - watch.heard <= BREAK:
            self.clear(tenant, ("node_dead", watch.name, -1), self.moment)


@breaks("RES-020")
class RepeatedBeatsAreLife(MinimalServer):
    """A beat that was heard before is a sign of life."""

    @override
    def take_beat(self, tenant: Tenant, ward: Ward, beat: Json) -> None:
        watch = ward.nodes.get(beat["node"])
        if watch is not None and self.was_heard(watch, beat):
            watch.heard = ward.clock
        super().take_beat(tenant, ward, beat)


@breaks("RES-020")
class OvertakenBeatsAreLife(MinimalServer):
    """A beat is a sign of life unless it is the very last one again."""

    @override
    def take_beat(self, tenant: Tenant, ward: Ward, beat: Json) -> None:
        watch = ward.nodes.get(beat["node"])
        if watch is not None and beat["number"] < watch.number:
            watch.heard = ward.clock
        super().take_beat(tenant, ward, beat)


@breaks("RES-018", "RES-019", "RES-020")
class NobodyIsStartedAnew(MinimalServer):
    """Lower numbers are never those of a sender that was started anew."""

    @override
    def begins_anew(self, ward: Ward, watch: Watch, beat: Json) -> bool:
        return False


@breaks("RES-021")
class BadItemsAreSwallowed(MinimalServer):
    """Nobody is told which items were bad."""

    @override
    def taken_in(self, accepted: int, rejected: list[Json]) -> Answer:
        return super().taken_in(accepted, [])


@breaks("COM-019", "RES-021")
class BadItemsCountAsTaken(MinimalServer):
    """What is answered as taken includes what was not."""

    @override
    def taken_in(self, accepted: int, rejected: list[Json]) -> Answer:
        return super().taken_in(accepted + len(rejected), rejected)


@breaks("RES-021")
class OneBadBeatRefusesAll(MinimalServer):
    """A batch with a bad item is refused as a whole."""

    @override
    def taken_in(self, accepted: int, rejected: list[Json]) -> Answer:
        if rejected:
            raise Refusal("invalid-body", "an item is bad")
        return super().taken_in(accepted, rejected)


@breaks("RES-021")
class BadBatchesAreRefused(MinimalServer):
    """A batch of bad items only is refused as a whole."""

    @override
    def taken_in(self, accepted: int, rejected: list[Json]) -> Answer:
        if not accepted:
            raise Refusal("invalid-body", "all items are bad")
        return super().taken_in(accepted, rejected)


@breaks("RES-021")
class ItemsAreCountedFromOne(MinimalServer):
    """The index of the first item is one."""

    @override
    def taken_in(self, accepted: int, rejected: list[Json]) -> Answer:
        return super().taken_in(accepted, [{**row, "index": row["index"] + 1} for row in rejected])


@breaks("COM-019", "RES-021")
class NodesNeedNotBeRegistered(MinimalServer):
    """An item about a node that nobody knows counts as taken."""

    @override
    def check_node(self, tenant: Tenant, node: str, at: str) -> None:
        """Any will do."""

    @override
    def take_beat(self, tenant: Tenant, ward: Ward, beat: Json) -> None:
        if beat["node"] in self.held(tenant, "nodes"):
            super().take_beat(tenant, ward, beat)


@breaks("COM-004", "COM-006", "RES-021")
class NothingIsABatch(MinimalServer):
    """A batch without items is taken."""

    @override
    def batch(self, request: Request, member: str) -> list[Any]:
        try:
            return super().batch(request, member)
        except Refusal:
            if self.parse(request.body) == {member: []}:
                return []
            raise


@breaks("RES-022")
class TheDeletedAreToldDead(MinimalServer):
    """A node that is deleted while it beats is told dead when it beats no more."""

    deleted: tuple[tuple[Tenant, str, str, int], ...] = ()

    @override
    def unwatch(self, tenant: Tenant, ward: Ward, node: str) -> None:
        domain = next((site.name for site in ward.sites.values() if node in site.nodes), "")
        if node in ward.nodes and domain:
            self.deleted = *self.deleted, (tenant, node, domain, self.moment)
        super().unwatch(tenant, ward, node)

    @override
    def look_after(self, tenant: Tenant) -> None:
        super().look_after(tenant)
        for owner, name, domain, since in self.deleted:
            if owner is tenant and self.moment - since > SILENCE:
                about = {"domain": domain, "node": name}
                self.tell(tenant, ("node_dead", name, -1), about, since, "it beats no more")

    @override
    def fence(self, tenant: Tenant, fault: Json) -> Json:
        nodes = self.held(tenant, "nodes")
        known = fault["node"] in nodes
        nodes.setdefault(fault["node"], {})
        action = super().fence(tenant, fault)
        if not known:
            del nodes[fault["node"]]
        return action


@breaks("RES-022")
class FaultsOutliveTheirNodes(MinimalServer):
    """What was told of a node stays open when that is deleted."""

    forgetting = False

    @override
    def unwatch(self, tenant: Tenant, ward: Ward, node: str) -> None:
        self.forgetting = True
        super().unwatch(tenant, ward, node)
        self.forgetting = False

    @override
    def clear(self, tenant: Tenant, key: FaultKey, over: int) -> None:
        if not self.forgetting:
            super().clear(tenant, key, over)


@breaks("RES-022")
class EndedJobsHang(MinimalServer):
    """Ranks that have ended are waited for."""

    @override
    def end_rank(self, tenant: Tenant, ward: Ward, name: str, job: Job, number: int) -> None:
        """They are watched on."""
