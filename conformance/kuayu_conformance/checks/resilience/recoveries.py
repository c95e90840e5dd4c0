"""Failover plans that can be carried out (RES-014).

The first window of RES-003 begins again, too: it follows from the nonce alone, and the same request has the same answer
(COM-029), so that these are plans on which that figure rests.

1. Plans in the first hours of the first window of RES-003, looked at for their own sake.
2. Requests for failover plans that are hard to answer: each has a way that looks good and may not be gone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import CaseVerdicts, Json, UnsoundAnswers, drawn, name, verdicts
from kuayu_conformance.checks.resilience.failover import Player
from kuayu_conformance.checks.resilience.resilience_requests import (
    FAILED,
    FAILOVERS,
    UNKNOWN,
    UNREACHABLE,
    FailoverRequestBuilder,
    Place,
    deviations,
    fenced,
    standings,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds
from kuayu_conformance.testbed.recovery.world import LEAD_S, World

if TYPE_CHECKING:
    from kuayu_schemas import documents

MOST_PLANS = 60
"""Failover plans that are looked at; who lets jobs wait is asked every ten seconds."""


@dataclass
class RecoveryInspector(Player):
    """Plays so much of a window, and looks at all that deviates in failover plans, their order and revision as well.

    Attributes:
        hours: From when things may fail; all of it where the window is shorter.
        plans: Failover plans that were looked at.
        deviating: Those in which something deviates.
    """

    hours: float = 2.0
    plans: int = 0
    deviating: UnsoundAnswers = field(default_factory=UnsoundAnswers)

    def _drawn(self, number: int) -> World:
        whole = super()._drawn(number)
        ends = min(whole.ends_s, LEAD_S + self.hours * 3600.0)
        return replace(whole, faults=tuple(fault for fault in whole.faults if fault.instant < ends), ends_s=ends)

    def _ask(self, path: str, body: Mapping[str, Any]) -> Answer | None:
        if path == FAILOVERS and self.plans >= MOST_PLANS:
            return None
        answer = super()._ask(path, body)
        if path == FAILOVERS and answer is not None:
            self.plans += 1
            self.deviating = self.deviating.noted(
                deviations(cast("documents.FailoverRequest", body), answer.json), answer
            )
        return answer


def _all(job: "documents.ProtectedJob", member: Json | None) -> dict[Place, Json | None]:
    """The same for all nodes of a job."""
    return {(replica, node): member for replica in range(job["replicas"]) for node in range(job["nodes_each"])}


def nothing_broken(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """All jobs are whole, though a free node has failed."""
    jobs = [builder.job(3, 1, 2), builder.job(1, 1, 4)]
    nodes = [node for job in jobs for node in builder.nodes_of(job)]
    return builder.request(jobs, [*nodes, *builder.free(builder.here, 4), *builder.free(builder.here, 1, **FAILED)])


def one_broken(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """A node of one job has failed; its neighbours are fit and may be used again. Another job is whole."""
    job, other = builder.job(4, 2, 2), builder.job(2, 1, 2)
    nodes = builder.nodes_of(job, {(2, 1): FAILED})
    return builder.request([other, job], [*nodes, *builder.nodes_of(other), *builder.free(builder.here, 3)])


def several_broken(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Three of five replicas are broken; there are free nodes for one and a half."""
    job = builder.job(5, 2, 4)
    nodes = builder.nodes_of(job, {(0, 0): FAILED, (0, 1): FAILED, (3, 2): FAILED, (4, 0): FAILED, (4, 3): FAILED})
    return builder.request([job], [*nodes, *builder.free(builder.here, 6), *builder.free(builder.near, 20)])


def given_up(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """No node has failed, but a replica, and all of one job, were given up before; another was left too few nodes."""
    job, short, gone = builder.job(3, 2, 2), builder.job(2, 1, 3), builder.job(2, 1, 2)
    nodes = [*builder.nodes_of(job, {(1, 0): None, (1, 1): None}), *builder.nodes_of(short, {(1, 2): None})]
    return builder.request([job, gone, short], [*nodes, *builder.free(builder.here, 1)])


def too_few_whole(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Fewer replicas are whole than the job can go on with; free nodes are here for as many as it lacks."""
    job = builder.job(4, 3, 2)
    nodes = builder.nodes_of(job, {(0, 0): FAILED, (1, 0): FAILED, (1, 1): FAILED})
    return builder.request([job], [*nodes, *builder.free(builder.here, 2)])


def too_few_to_replace(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Too few are whole, and free nodes are in other domains only."""
    job = builder.job(4, 3, 2)
    nodes = builder.nodes_of(job, {(0, 0): FAILED, (1, 0): FAILED, (3, 1): FAILED})
    return builder.request([job], [*nodes, *builder.free(builder.near, 5), *builder.free(builder.far, 6)])


def none_whole(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """One node of each replica has failed. What is left are nodes of its own, enough for two replicas of three."""
    job = builder.job(3, 2, 3)
    return builder.request([job], builder.nodes_of(job, {(0, 1): FAILED, (1, 0): FAILED, (2, 2): FAILED}))


def all_failed(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """All nodes have failed, and free ones are here and elsewhere."""
    job = builder.job(3, 1, 4)
    nodes = builder.nodes_of(job, _all(job, FAILED))
    return builder.request([job], [*nodes, *builder.free(builder.here, 5), *builder.free(builder.near, 11)])


def scattered(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """All have failed; free nodes are enough for the least, but in no single domain."""
    job = builder.job(4, 2, 4)
    free = [node for domain in builder.domains for node in builder.free(domain, 7)]
    return builder.request([job], [*builder.nodes_of(job, _all(job, FAILED)), *free])


def copy_out_of_reach(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """The only copy is far; from there links that are up lead to no domain with free nodes."""
    job = builder.job(2, 1, 2)
    job["copies"] = [{**job["copies"][0], "domain": builder.far}]
    nodes = [*builder.nodes_of(job, _all(job, FAILED)), *builder.free(builder.here, 4), *builder.free(builder.near, 4)]
    pairs = [(builder.far, builder.here), (builder.far, builder.near)]
    return builder.request([job], nodes, links=builder.links(pairs))


def links_one_way(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Two jobs whose copies lie where no link comes from, but one leads to; free nodes are at one copy."""
    jobs = [builder.job(2, 1, 2), builder.job(1, 1, 2)]
    for job, domain in zip(jobs, (builder.near, builder.far), strict=True):
        job["copies"] = [{**job["copies"][0], "domain": domain}]
    nodes = [node for job in jobs for node in builder.nodes_of(job, _all(job, FAILED))]
    nodes += [*builder.free(builder.here, 6), *builder.free(builder.near, 2)]
    links = [builder.link(builder.here, builder.near), builder.link(builder.here, builder.far)]
    return builder.request(jobs, nodes, links=links)


def one_copy_in_reach(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """The youngest copy's link is out; an older one's is up."""
    job = builder.job(2, 1, 3)
    young, old = (copy["age"] for copy in job["copies"])
    job["copies"] = [{"domain": builder.near, "age": young}, {"domain": builder.far, "age": old}]
    nodes = [*builder.nodes_of(job, _all(job, FAILED)), *builder.free(builder.here, 7)]
    return builder.request([job], nodes, links=builder.links([(builder.near, builder.here)]))


def no_copies(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """No checkpoint was ever copied: one job has a whole replica, one has none."""
    jobs = [builder.job(3, 2, 2, copies=[]), builder.job(2, 1, 1, copies=[])]
    nodes = [
        *builder.nodes_of(jobs[0], {(0, 0): FAILED, (2, 1): FAILED}),
        *builder.nodes_of(jobs[1], _all(jobs[1], FAILED)),
    ]
    return builder.request(jobs, [*nodes, *builder.free(builder.here, 1), *builder.free(builder.near, 6)])


def nothing_free(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """There are no free nodes: one job can go on with less, one can but wait, one has fit nodes left for a restart."""
    jobs = [builder.job(3, 1, 2), builder.job(3, 3, 1), builder.job(2, 1, 4)]
    nodes = [*builder.nodes_of(jobs[0], {(1, 1): FAILED}), *builder.nodes_of(jobs[1], {(2, 0): FAILED})]
    return builder.request(jobs, [*nodes, *builder.nodes_of(jobs[2], {(0, 0): FAILED, (1, 3): FAILED})])


def cut_off(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Nothing is heard of a whole domain; its nodes are fenced at several times. Nodes are free elsewhere."""
    jobs = [builder.job(2, 1, 2), builder.job(1, 1, 3)]
    nodes_of_jobs = [node for job in jobs for node in builder.nodes_of(job)]
    nodes: list[documents.StandingNode] = [
        {**node, "condition": "unreachable", "fenced_in": round(builder.chance.uniform(5.0, 90.0), 3)}
        for node in nodes_of_jobs
    ]
    nodes += builder.free(builder.here, 3, **fenced(30.0))
    return builder.request(jobs, [*nodes, *builder.free(builder.near, 9), *builder.free(builder.far, 2)])


def cut_off_for_good(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Nothing is heard of a job, and nobody knows when it is fenced; a copy and nodes are near."""
    job = builder.job(2, 1, 2)
    nodes = builder.nodes_of(job, _all(job, UNREACHABLE))
    return builder.request([job], [*nodes, *builder.free(builder.here, 4), *builder.free(builder.near, 6)])


def fenced_in_part(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """All nodes but one are fenced or have failed; of the last, nobody knows. Another job's are all fenced."""
    jobs = [builder.job(2, 1, 3), builder.job(2, 2, 1)]
    conditions: dict[Place, Json | None] = {**_all(jobs[0], fenced(0.0)), (0, 1): FAILED, (1, 2): UNREACHABLE}
    late = builder.chance.uniform(20.0, 60.0)
    other: dict[Place, Json | None] = {(0, 0): fenced(round(late, 3)), (1, 0): fenced(0.0)}
    nodes = [*builder.nodes_of(jobs[0], conditions), *builder.nodes_of(jobs[1], other)]
    return builder.request(jobs, [*nodes, *builder.free(builder.here, 5), *builder.free(builder.near, 5)])


def one_unheard(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Of one node nothing is heard, some others failed; whole replicas are there, but too few, and no nodes here."""
    job = builder.job(4, 3, 2)
    position = round(builder.chance.uniform(20.0, 60.0), 3)
    nodes = builder.nodes_of(job, {(0, 0): fenced(position), (1, 0): FAILED, (2, 1): FAILED})
    return builder.request([job], [*nodes, *builder.free(builder.near, 8)])


def of_no_known_kind(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Conditions are of a kind that nobody names: of a held node of one job, and of most free ones."""
    jobs = [builder.job(3, 1, 2), builder.job(1, 1, 2)]
    nodes = [
        *builder.nodes_of(jobs[0], {(0, 0): UNKNOWN}),
        *builder.nodes_of(jobs[1], {(0, 0): UNKNOWN, (0, 1): FAILED}),
    ]
    free = [*builder.free(builder.here, 20, **UNKNOWN), *builder.free(builder.here, 1)]
    return builder.request(jobs, [*nodes, *free, *builder.free(builder.near, 2)])


def unfit_and_free(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Most free nodes have failed, or nothing is heard of them."""
    job = builder.job(3, 2, 3)
    nodes = builder.nodes_of(job, {(0, 0): FAILED, (2, 0): FAILED, (2, 1): FAILED})
    free = [
        *builder.free(builder.here, 6, **FAILED),
        *builder.free(builder.here, 6, **fenced(0.0)),
        *builder.free(builder.here, 1),
    ]
    return builder.request([job], [*nodes, *free, *builder.free(builder.near, 7, **UNREACHABLE)])


def contenders(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Six jobs of several priorities want the same three free nodes."""
    jobs = [builder.job(2 + number % 2, 1, 1, priority=builder.chance.randrange(-9, 10)) for number in range(6)]
    nodes = [node for job in jobs for node in builder.nodes_of(job, {(1, 0): FAILED})]
    return builder.request(jobs, [*nodes, *builder.free(builder.here, 3)])


def rivals_for_a_restart(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Three jobs have lost everything; nodes for two of them are near, and a copy of each."""
    jobs = [builder.job(2, 1, 2, priority=priority) for priority in (3, 7, -1)]
    nodes = [node for job in jobs for node in builder.nodes_of(job, _all(job, FAILED))]
    return builder.request(jobs, [*nodes, *builder.free(builder.near, 5), *builder.free(builder.far, 1)])


def held_by_others(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Fit nodes are held by jobs that are on their way back already; the only other free one is too few."""
    jobs = [builder.job(3, 2, 2), builder.job(2, 2, 2)]
    strangers = [builder.node(builder.here, job=name(builder.chance), replica=0) for _ in range(8)]
    nodes = [*builder.nodes_of(jobs[0], {(1, 0): FAILED, (1, 1): FAILED}), *builder.nodes_of(jobs[1], {(0, 1): FAILED})]
    return builder.request(jobs, [*nodes, *strangers, *builder.free(builder.here, 1)])


def given_up_by_others(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """Each of two jobs has fit nodes in broken replicas that would do for the other's, but they are not free."""
    jobs = [builder.job(3, 2, 4, priority=priority) for priority in (9, -9)]
    nodes = [node for job in jobs for node in builder.nodes_of(job, {(0, 0): FAILED, (2, 3): FAILED})]
    return builder.request(jobs, nodes)


def one_node(builder: FailoverRequestBuilder) -> "documents.FailoverRequest":
    """The only node of a job has failed; one is free, and a copy is here."""
    job = builder.job(1, 1, 1)
    return builder.request([job], [*builder.nodes_of(job, {(0, 0): FAILED}), *builder.free(builder.here, 1)])


QUESTIONS: "dict[str, Callable[[FailoverRequestBuilder], documents.FailoverRequest]]" = {
    "nothing broken": nothing_broken,
    "one broken replica": one_broken,
    "several broken replicas": several_broken,
    "replicas that were given up before": given_up,
    "too few whole replicas": too_few_whole,
    "too few whole replicas and no nodes here": too_few_to_replace,
    "no whole replica but fit nodes": none_whole,
    "all nodes failed": all_failed,
    "free nodes scattered over domains": scattered,
    "a copy out of reach": copy_out_of_reach,
    "links that lead the other way": links_one_way,
    "the younger copy out of reach": one_copy_in_reach,
    "no copies": no_copies,
    "no free nodes": nothing_free,
    "a domain that is cut off": cut_off,
    "a job that nobody knows to be fenced": cut_off_for_good,
    "a job fenced in part": fenced_in_part,
    "one unreachable node": one_unheard,
    "conditions of no known kind": of_no_known_kind,
    "free nodes that are not fit": unfit_and_free,
    "contenders for spare nodes": contenders,
    "contenders for a restart": rivals_for_a_restart,
    "nodes held by other jobs": held_by_others,
    "fit nodes that another job gives up": given_up_by_others,
    "a job of one node": one_node,
}
"""By what is hard about them."""


def questions(chance: Random, times: int) -> "Iterator[tuple[str, documents.FailoverRequest]]":
    """Each so many times, with other numbers."""
    return drawn(QUESTIONS, FailoverRequestBuilder, chance, times)


REQUIREMENT = "RES-014"

HOURS_QUICK, HOURS_FULL = 2.0, 24.0
"""How much of the window is played, from when things may fail; all of it where it is shorter."""


@dataclass(frozen=True)
class RecoveryAnswers:
    """Plans that were looked at.

    Attributes:
        questions: Hard ones.
        able: Jobs of which enough replicas are whole to go on, in those of them that have a failover plan.
        waiting: How many of these were told to wait.
        plans: Failover plans in the window.
        unsound: Those that were not sound.
        bad_answers: Answers in the window that were no plans.
        bad: One of these.
    """

    questions: CaseVerdicts
    able: int
    waiting: int
    plans: int
    unsound: UnsoundAnswers
    bad_answers: int
    bad: Answer | None


def observe(episode: Episode) -> RecoveryAnswers:
    """Ask hard questions, then play a window."""
    cases = verdicts(episode, FAILOVERS, "failover plan", questions, deviations)
    plans = [
        (able_to_go_on(cast("documents.FailoverRequest", case.body)), case.answer.json["recoveries"])
        for case in cases.cases
        if case.valid
    ]
    able = sum(len(jobs) for jobs, _ in plans)
    waiting = sum(row["job"] in jobs and row["strategy"] == "wait" for jobs, rows in plans for row in rows)
    seen = RecoveryInspector(episode, hours=HOURS_FULL if episode.settings.full else HOURS_QUICK)
    seen.window(0)
    return RecoveryAnswers(cases, able, waiting, seen.plans, seen.deviating, seen.bad_answers, seen.bad)


def able_to_go_on(body: "documents.FailoverRequest") -> set[str]:
    """Jobs with a broken replica of which enough are whole."""
    stands = standings(body).values()
    return {stand.job["id"] for stand in stands if stand.whole >= stand.job["least_replicas"]}


def judge(o: RecoveryAnswers) -> Iterable[Finding]:
    """Claims about every hard question, about all of them together, and about the plans of the window."""
    yield from o.questions.findings(REQUIREMENT)
    if o.able:
        # to wait is to stand still until there is another way, and there is one for each of these
        expected = "not every job of which enough replicas are whole is told to wait"
        yield holds(REQUIREMENT, o.waiting < o.able, expected, f"{o.waiting} of {o.able} are")
    expected, observed = (
        "in a window, every answer is a plan",
        f"{o.bad_answers} are none, {o.plans} are failover plans",
    )
    yield holds(REQUIREMENT, not o.bad_answers, expected, observed, o.bad)
    expected, count = "in a window, every failover plan is sound", f"{o.unsound.count} of {o.plans} are not"
    yield from o.unsound.findings(REQUIREMENT, expected, count)


CHECK = Check("res_recoveries", (REQUIREMENT,), observe, judge)
