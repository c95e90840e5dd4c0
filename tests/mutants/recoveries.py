"""Wrong in failover plans: nodes that are given, copies that are read, and what is told of jobs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from minimal_server.core import Answer, Json, Request
from minimal_server.recovering import Placed, Recovery, Standing
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


class Retelling(MinimalServer):
    """Tells plans otherwise."""

    @override
    def plan_failover(self, request: Request) -> Answer:
        told = super().plan_failover(request).body
        return Answer(200, {**told, **self.failover_otherwise(told, self.body(request, "FailoverRequest"))})

    def failover_otherwise(self, told: Json, body: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("COM-028", "RES-014")
class FailoversAreOfTheFirstRevision(Retelling):
    """Failover plans tell the revision of the first question that was ever asked."""

    kept: Json | None = None

    @override
    def failover_otherwise(self, told: Json, body: Json) -> Json:
        self.kept = self.kept or told["revision"]
        return {"revision": self.kept}


@breaks("COM-029")
class FailoversAreNumbered(Retelling):
    """The version of the method is the number of the question, so that no failover plan is the same again."""

    numbers = count(1)

    @override
    def failover_otherwise(self, told: Json, body: Json) -> Json:
        return {"method": {**told["method"], "version": f"{next(self.numbers)}"}}


@breaks("RES-014")
class TheLastRecoveryIsForgotten(Retelling):
    """Nothing is said of the last of several broken jobs."""

    @override
    def failover_otherwise(self, told: Json, body: Json) -> Json:
        return {"recoveries": told["recoveries"][:-1] or told["recoveries"]}


@breaks("RES-014")
class TheFirstJobRecoversTwice(Retelling):
    """The first recovery stands in the plan once more, at the end."""

    @override
    def failover_otherwise(self, told: Json, body: Json) -> Json:
        return {"recoveries": told["recoveries"] + told["recoveries"][:1]}


@breaks("RES-014")
class WholeJobsGoOn(Retelling):
    """Jobs that are whole are told to go on."""

    @override
    def failover_otherwise(self, told: Json, body: Json) -> Json:
        found = {row["job"]: row for row in told["recoveries"]}
        rest = {"strategy": "go_on", "replicas": [], "after": 0.0}
        return {"recoveries": [found.get(job["id"], {"job": job["id"], **rest}) for job in body["jobs"]]}


@breaks("RES-014")
class RecoveriesStandByPriority(MinimalServer):
    """Recoveries stand in the order in which jobs chose, not in that of the request."""

    @override
    def jobs_in_order(self, body: Json) -> list[Json]:
        return self.jobs_in_turn(body)


@breaks("RES-014")
class JobsWithoutNodesAreLeftAlone(MinimalServer):
    """Jobs that hold no node any more are taken to be given up."""

    @override
    def is_broken(self, job: Json, standing: Standing) -> bool:
        return bool(standing.held[job["id"]]) and super().is_broken(job, standing)


@breaks("RES-014")
class FailedNodesBreakReplicasAndNothingElseDoes(MinimalServer):
    """A replica without all of its nodes is whole as long as those that it has are fit."""

    @override
    def is_broken(self, job: Json, standing: Standing) -> bool:
        held = standing.held[job["id"]]
        return not held or any(not self.is_fit(node) for node in held)


@breaks("RES-014")
class NodesGoToTwoJobs(MinimalServer):
    """What one job gets is free for the next one."""

    @override
    def give_away(self, standing: Standing, recovery: Recovery) -> None:
        super().give_away(standing, replace(recovery, replicas=()))


class Placing(MinimalServer):
    """Gives replicas other nodes."""

    @override
    def placed(self, replicas: Iterable[int], nodes: Sequence[str], number: int, each: int) -> tuple[Placed, ...]:
        return self.placed_otherwise(super().placed(replicas, nodes, number, each))

    def placed_otherwise(self, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
        """What replicas get instead."""
        raise NotImplementedError


@breaks("RES-014")
class ReplicasShareANode(Placing):
    """The last of several replicas gets the first node of the first one."""

    @override
    def placed_otherwise(self, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
        (_, first), (number, nodes) = placed[0], placed[-1]
        return placed if len(placed) < 2 else (*placed[:-1], (number, (*nodes[:-1], first[0])))


@breaks("RES-014")
class ReplicasLackANode(Placing):
    """Replicas of several nodes get one too few."""

    @override
    def placed_otherwise(self, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
        return tuple((number, nodes[:-1] or nodes) for number, nodes in placed)


@breaks("RES-014")
class ReplicasAreNamedTwice(Placing):
    """Of several replicas the last one has the number of the first."""

    @override
    def placed_otherwise(self, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
        return (*placed[:-1], (placed[0][0], placed[-1][1]))


@breaks("RES-014")
class TheLastNodeIsMadeUp(Placing):
    """The last node that is given is one that nobody knows."""

    @override
    def placed_otherwise(self, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
        number, nodes = placed[-1]
        return (*placed[:-1], (number, (*nodes[:-1], f"{nodes[-1][:100]}-other")))


class Fitter(MinimalServer):
    """Takes free nodes of other conditions to be fit as well, and gives these first."""

    conditions: frozenset[str]

    @override
    def standing(self, body: Json) -> Standing:
        first = sorted(body["nodes"], key=lambda node: node["condition"] not in self.conditions)
        nodes = [{**node, "condition": self.taken_for(node)} for node in first]
        return super().standing({**body, "nodes": nodes})

    def taken_for(self, node: Json) -> str:
        """Condition that a node is taken to have."""
        return "fit" if "job" not in node and node["condition"] in self.conditions else str(node["condition"])


@breaks("RES-014")
class FailedNodesAreGiven(Fitter):
    """Free nodes that have failed are given to jobs."""

    conditions = frozenset({"failed"})


@breaks("RES-014")
class NodesOfUnknownConditionAreGiven(Fitter):
    """Free nodes whose condition is not known are given to jobs."""

    conditions = frozenset({"unknown"})


@breaks("RES-014")
class NodesOfOthersAreGiven(MinimalServer):
    """Fit nodes of jobs that are not in the request are given to others."""

    @override
    def standing(self, body: Json) -> Standing:
        jobs = {job["id"] for job in body["jobs"]}
        free = [{"id": node["id"], "domain": node["domain"], "condition": node["condition"]} for node in body["nodes"]]
        rows = zip(body["nodes"], free, strict=True)
        nodes = [node if "job" not in node or node["job"] in jobs else other for node, other in rows]
        return super().standing({**body, "nodes": nodes})


@breaks("RES-014")
class WholeReplicasLendNodes(MinimalServer):
    """Broken replicas get nodes of whole ones first."""

    @override
    def own(self, job: Json, standing: Standing, but: Iterable[int] = ()) -> list[str]:
        return super().own(job, standing)


@breaks("RES-014")
class WholeReplicasAreReplaced(MinimalServer):
    """The replicas that are replaced are the first ones, broken or not."""

    @override
    def broken_replicas(self, whole: Iterable[int]) -> Iterator[int]:
        return count()


@breaks("RES-014")
class ReplicasAreReplacedElsewhere(MinimalServer):
    """Broken replicas get nodes of any domain where those of their own are not enough."""

    @override
    def replacing(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        others = [node for domain, nodes in standing.free.items() if domain != job["domain"] for node in nodes]
        near = standing.free[job["domain"]]
        yield from super().replacing(job, replace(standing, free={job["domain"]: [*near, *others]}))


@breaks("RES-014")
class ReplicasAreReplacedFromNothing(MinimalServer):
    """Broken replicas are replaced though none is whole."""

    @override
    def replacing(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        if self.whole_replicas(job, standing):
            yield from super().replacing(job, standing)
            return
        nodes = [*self.own(job, standing), *standing.free[job["domain"]]]
        if len(nodes) >= job["replicas"] * job["nodes_each"]:
            placed = self.placed(count(), nodes, job["replicas"], job["nodes_each"])
            yield Recovery("replace", placed, 60.0, 60.0)


@breaks("RES-014")
class JobsGoOnWithTooFew(MinimalServer):
    """A job goes on with whatever is left of it, or is replaced in parts."""

    @override
    def going_on(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        if self.whole_replicas(job, standing):
            yield Recovery("go_on", seconds=float(job["regroup_time"]))


@breaks("RES-014")
class TooFewAreReplaced(MinimalServer):
    """As many broken replicas are replaced as there are nodes for, though that is not enough for steps."""

    @override
    def replacing(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        yield from super().replacing({**job, "least_replicas": 1}, standing)


@breaks("RES-014")
class TooFewAreRestored(MinimalServer):
    """As many replicas are restored as there are nodes for, though that is not enough for steps."""

    @override
    def restoring(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        yield from super().restoring({**job, "least_replicas": 1}, standing)


@breaks("RES-014")
class MoreAreRestoredThanThereWere(MinimalServer):
    """One replica more than the job has is restored where there are nodes for it."""

    @override
    def number_restored(self, job: Json, most: int) -> int:
        return min(int(job["replicas"]) + 1, most)


@breaks("RES-014")
class RestoredReplicasAreCountedFromOne(MinimalServer):
    """Replicas that are restored have numbers from one on."""

    @override
    def restored(
        self, job: Json, copy: Json, domain: str, placed: tuple[Placed, ...], begins: float, standing: Standing
    ) -> Recovery:
        placed = tuple((number + 1, nodes) for number, nodes in placed)
        return super().restored(job, copy, domain, placed, begins, standing)


@breaks("RES-014")
class RestoredReplicasAreSpread(MinimalServer):
    """Where no domain has nodes for all, replicas that are restored get nodes of several."""

    @override
    def restoring(self, job: Json, standing: Standing) -> Iterator[Recovery]:
        yield from super().restoring(job, standing)
        nodes = [node for free in standing.free.values() for node in free]
        yield from super().restoring(job, replace(standing, free={job["domain"]: nodes}))


@breaks("RES-014")
class EveryStoreHoldsACopy(MinimalServer):
    """A job is restored from the store of the domain where it begins anew, whether there is a copy or not."""

    @override
    def readable(self, job: Json, domain: str, standing: Standing) -> Iterator[Json]:
        yield from super().readable(job, domain, standing)
        if domain in standing.stores and job["copies"]:
            yield {**job["copies"][0], "domain": domain}


@breaks("RES-014")
class RecoveriesReadOverLinksThatAreOut(MinimalServer):
    """Links that are out are taken to carry what they carried before."""

    @override
    def standing(self, body: Json) -> Standing:
        return super().standing({**body, "links": [{**link, "up": True} for link in body["links"]]})


@breaks("RES-014")
class RecoveriesReadOverNoLink(MinimalServer):
    """Copies are read in any domain, whether a link leads there or not."""

    @override
    def standing(self, body: Json) -> Standing:
        domains = {node["domain"] for node in body["nodes"]} | {row["domain"] for row in body["stores"]}
        held = {(link["source"], link["target"]) for link in body["links"]}
        pairs = [(one, other) for one in domains for other in domains if one != other and (one, other) not in held]
        made_up = [{"source": one, "target": other, "latency": 0.0, "bandwidths": [1e10]} for one, other in pairs]
        return super().standing({**body, "links": [*body["links"], *made_up]})


@breaks("RES-014")
class FencesAreNotWaitedFor(MinimalServer):
    """A job is restored at once, whatever still runs."""

    @override
    def fenced_after(self, job: Json, standing: Standing) -> float:
        return 0.0


@breaks("RES-014")
class TheFirstFenceIsEnough(MinimalServer):
    """A job is restored when the first of its unreachable nodes is fenced."""

    @override
    def fenced_after(self, job: Json, standing: Standing) -> float:
        unseen = [node for node in standing.held[job["id"]] if self.is_unseen(node)]
        last = super().fenced_after(job, standing)
        return min((node["fenced_in"] for node in unseen), default=last) if last < float("inf") else last


@breaks("RES-014")
class FencesAreAMinute(MinimalServer):
    """Nodes of which nobody knows when they are fenced are taken to be so in a minute."""

    @override
    def fenced_after(self, job: Json, standing: Standing) -> float:
        unseen = [node for node in standing.held[job["id"]] if self.is_unseen(node)]
        return max((float(node.get("fenced_in", 60.0)) for node in unseen), default=0.0)


@breaks("RES-014")
class NodesOfUnknownConditionAreFenced(MinimalServer):
    """Nothing is taken to run on nodes whose condition is not known."""

    @override
    def is_unseen(self, node: Json) -> bool:
        return bool(node["condition"] == "unreachable")


class Telling(MinimalServer):
    """Tells recoveries otherwise."""

    @override
    def told_recovery(self, job: Json, recovery: Recovery) -> Json:
        return self.recovery_otherwise(super().told_recovery(job, recovery), job)

    def recovery_otherwise(self, told: Json, job: Json) -> Json:
        """How it tells a recovery."""
        raise NotImplementedError


@breaks("RES-014")
class ReplacementsHaveASource(Telling):
    """Replicas that are replaced are told to come from the domain of their job."""

    @override
    def recovery_otherwise(self, told: Json, job: Json) -> Json:
        return {**told, "source": job["domain"]} if told["strategy"] == "replace" else told


@breaks("RES-014")
class SourcesAreNotTold(Telling):
    """Whence a job is restored is not told."""

    @override
    def recovery_otherwise(self, told: Json, job: Json) -> Json:
        return {name: value for name, value in told.items() if name != "source"}


@breaks("RES-014")
class JobsThatWaitAreUnknown(Telling):
    """Jobs for which there is no way have a strategy that nobody knows."""

    @override
    def recovery_otherwise(self, told: Json, job: Json) -> Json:
        return {**told, "strategy": "unknown"} if told["strategy"] == "wait" else told
