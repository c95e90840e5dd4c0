"""Wrong in placements: what a state cannot carry, and answers that differ from one time to the next."""

from collections.abc import Sequence
from typing import Any

from minimal_server.choosing import Ledger, Seat
from minimal_server.core import Answer, Json, Request
from minimal_server.packing import Free
from minimal_server.scene import Job, Scene, Way
from minimal_server.service import MinimalServer
from minimal_server.weighing import Outlook, Weights
from typing_extensions import override

from mutants.declaration import breaks


class Forgetful(MinimalServer):
    """Decides on jobs that wait as if they had asked for something else."""

    @override
    def scene(self, state: Json) -> Scene:
        waiting = [{**row, "spec": {**row["spec"], **self.taken_for(row["spec"])}} for row in state["waiting"]]
        return super().scene({**state, "waiting": waiting})

    def taken_for(self, spec: Json) -> Json:
        """Members that it takes a job to have."""
        raise NotImplementedError


@breaks("SCH-009", "SCH-013")
class MemoryIsForgotten(Forgetful):
    """Jobs are placed on devices with less memory than they need."""

    @override
    def taken_for(self, spec: Json) -> Json:
        return {"memory_per_device": 0.0}


@breaks("SCH-009", "SCH-013")
class PinnedDataAreMoved(Forgetful):
    """Jobs are placed away from data that may not be moved."""

    @override
    def taken_for(self, spec: Json) -> Json:
        return {"data": [{**row, "pinned": False} for row in spec["data"]]}


@breaks("SCH-013")
class StepsAreNotMinded(Forgetful):
    """Jobs that take devices in steps are started at once on as many as are free."""

    @override
    def taken_for(self, spec: Json) -> Json:
        return {"devices": {**spec["devices"], "step": 1}} if "step" in spec["devices"] else {}

    @override
    def best(self, scene: Scene, weights: Weights, job: Job, ledger: Ledger, *, later: bool) -> Outlook | None:
        return super().best(scene, weights, job, ledger, later=later and "step" not in job.spec["devices"])


@breaks("SCH-009", "SCH-013", "SCH-014")
class EveryJobIsSpread(Forgetful):
    """Jobs are spread over domains although they may not be."""

    @override
    def taken_for(self, spec: Json) -> Json:
        return {"split_modes": ["none", "periodic"]}


@breaks("SCH-009", "SCH-013")
class JobsReconcileAsItLikes(MinimalServer):
    """Jobs that say how often they reconcile do so at other times."""

    @override
    def periods(self, job: Job, mode: str) -> Sequence[int]:
        return (10,) if mode == "periodic" else super().periods(job, mode)


@breaks("SCH-009", "SCH-013")
class LinksNeedNotBeGood(MinimalServer):
    """What a job needs of links between its domains does not count."""

    @override
    def joined(self, scene: Scene, job: Job, pair: Sequence[Any]) -> bool:
        row = {**job.row, "spec": {**job.spec, "links": {}}}
        return super().joined(scene, Job(row, job.copies), pair)


@breaks("SCH-009", "SCH-013")
class UnreachableDomainsAreUsed(MinimalServer):
    """Jobs are placed in domains that cannot be reached."""

    @override
    def scene(self, state: Json) -> Scene:
        return super().scene({**state, "domains": [{**row, "reachable": True} for row in state["domains"]]})


@breaks("COM-030", "SCH-007", "SCH-009", "SCH-010", "SCH-013")
class NodesAreGivenTwice(MinimalServer):
    """Every job is given nodes as if it were the only one."""

    @override
    def nodes(
        self, scene: Scene, ledger: Ledger, way: Way, *, near: bool = True, need: Json | None = None
    ) -> list[list[Json]]:
        return super().nodes(scene, ledger.copy(), way, near=near, need=need)


@breaks("COM-030", "SCH-013")
class OffersNeverEnd(MinimalServer):
    """More is bought in a way than is offered."""

    @override
    def account(
        self, ledger: Ledger, shares: Sequence[tuple[int, int]], offers: Sequence[int | None], sign: int
    ) -> None:
        super().account(ledger, shares, [None for _ in offers], sign)


@breaks("COM-021", "SCH-013", "SCH-024")
class TheOrderTurnsEachTime(MinimalServer):
    """Every second time, those who came last are placed first."""

    times_asked = 0

    @override
    def queue(self, scene: Scene) -> list[Job]:
        self.times_asked += 1
        return super().queue(scene)[:: 1 if self.times_asked % 2 else -1]


@breaks("SCH-009", "SCH-013", "SCH-023")
class WhoHasNotBegunIsStopped(MinimalServer):
    """Jobs of less priority are stopped for others whatever they are about, and wherever they are."""

    @override
    def place(self, request: Request) -> Answer:
        answer = super().place(request)
        state = self.whole_request(request)["state"]
        most = max((row["spec"].get("priority", 0) for row in state["waiting"]), default=0)
        stopped = [
            {"job": row["spec"]["id"], "verb": "preempt"}
            for row in state["running"]
            if row["spec"].get("priority", 0) < most
        ]
        return Answer(200, {**answer.body, "decisions": stopped + answer.body["decisions"]})


@breaks("SCH-022")
class WhoWasInterruptedIsAgain(MinimalServer):
    """Jobs give devices up for others, however short a time after the last interruption."""

    @override
    def is_rested(self, scene: Scene, job: Job) -> bool:
        return True


@breaks("SCH-023")
class PriorityMakesNoRoom(MinimalServer):
    """Jobs of high priority wait as long as all others do."""

    @override
    def waits_long(self, seat: Seat) -> bool:
        return False


@breaks("SCH-023")
class WhoCanDoWithFewerIsStopped(MinimalServer):
    """Jobs give all their devices up where a few would do."""

    @override
    def smaller(self, jobs: list[Job], missing: int) -> list[Json]:
        return []


@breaks("SCH-024")
class NobodySaysUntilWhen(MinimalServer):
    """Who waits is not told until when others may go before."""

    @override
    def told_why(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> Json:
        told = super().told_why(scene, weights, seat, ledger, most)
        return {name: value for name, value in told.items() if name != "overtaken_until"}


@breaks("SCH-024")
class TheBoundIsPutOff(MinimalServer):
    """Until when a job may be overtaken is said anew each time: a day from now."""

    @override
    def told_why(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> Json:
        told = super().told_why(scene, weights, seat, ledger, most)
        return {**told, "overtaken_until": self.moment_after(scene, 86_400)} if "overtaken_until" in told else told


@breaks("SCH-024")
class NewcomersGoFirst(MinimalServer):
    """Whoever was submitted last is tried first, for however long others have waited."""

    @override
    def queue(self, scene: Scene) -> list[Job]:
        return sorted(super().queue(scene), key=lambda job: job.spec["submitted_at"], reverse=True)


@breaks("SCH-021")
class JobsThatFitOnANodeAreCut(MinimalServer):
    """Jobs that talk little take what is left over, though one node has room for all of it."""

    @override
    def roomy(self, nodes: Sequence[Json], free: Free, devices: int) -> list[Json]:
        return []


@breaks("SCH-021")
class NeedsOfNodesAreForgotten(Forgetful):
    """Whatever a job says of nodes, its devices lie where they fit."""

    @override
    def taken_for(self, spec: Json) -> Json:
        return {"nodes": {}}


@breaks("SCH-021")
class OneSwitchMayBeAny(MinimalServer):
    """Jobs that need nodes of one switch are given nodes of several."""

    @override
    def scopes(self, nodes: Sequence[Json], within: str | None) -> list[list[Json]]:
        return super().scopes(nodes, None if within == "switch" else within)


@breaks("SCH-021")
class PortionsMayBeUneven(MinimalServer):
    """A node that has fewer devices than a job needs on each gives what it has."""

    @override
    def portion(self, left: int, free: int, each: int | None) -> int:
        return min(left, free) if each is None else min(left, free, each)
