"""Adjustments that state what is and can be carried out (RES-016).

The first window of RES-007 is played again, too: it follows from the nonce alone, and the same request has the same
answer (COM-029), so that these are adjustments on which the figures of RES-008 and RES-009 rest.

1. Adjustments in the first window of RES-007, looked at for their own sake.
2. Requests for adjustments in which something is as little or as much as may be, or stands where one does not look.
3. Requests for adjustments that are hard to answer: each has something that is easily overlooked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import CaseVerdicts, Json, UnsoundAnswers, drawn, verdicts
from kuayu_conformance.checks.resilience.adjustment_gain import (
    FALL,
    RISE,
    AdjustmentRequestBuilder,
    Player,
    deviations,
    untimely,
)
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, bandwidth
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds
from kuayu_conformance.testbed.adjustment.run import play

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass
class AdjustmentInspector(Player):
    """Plays a window alone, and looks at all that deviates in rates and changes, their order and revision as well.

    Whether triggers and changes come in time is what RES-007 says of the same window.

    Attributes:
        deviating: Adjustments in which something deviates.
    """

    deviating: UnsoundAnswers = field(default_factory=UnsoundAnswers)

    def alone(self, number: int) -> None:
        """Play a window for the sake of its adjustments."""
        play(self._drawn(number), self.adjustment)

    def _ask(self, path: str, body: Mapping[str, Any]) -> Answer | None:
        answer = super()._ask(path, body)
        if answer is not None:
            self.deviating = self.deviating.noted(
                deviations(cast("documents.AdjustmentRequest", body), answer.json), answer
            )
        return answer


def nearly_taken(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Others take nearly all of a domain: one part there may be too many."""
    one, two, three, _ = builder.domains
    jobs = [builder.job([one, two]), builder.job([one, three, two], total=24), builder.job([one])]
    return builder.request(jobs, loads={one: 0.99})


def wholly_taken(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Others take all of a domain, by now and before: no job makes a step there, whatever it does."""
    one, two, three, four = builder.domains
    builder.loads[four] = 1.0
    jobs = [builder.job([one, two]), builder.job([two, three], parts=[40, 56]), builder.job([one, three, two])]
    jobs.append({**builder.job([one, three]), "planned": [builder.planned(jobs[0], [3.0, 2.0], order=[three, one])]})
    return builder.request(jobs, loads={one: 1.0})


def levels_of_nought(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Loads and latencies were zero: one of each still is, others are not."""
    one, two, three, four = builder.domains
    builder.loads |= {one: 0.0, four: 0.0}
    builder.delays |= {(one, two): 0.0, (two, three): 0.0}
    jobs = [builder.job([one, two]), builder.many_rounds([one, two, three]), builder.many_rounds([four, three])]
    return builder.request(jobs, loads={one: 0.45}, delays={(two, three): 0.05})


def come_to_nought(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A load and all latencies come to zero."""
    one, two, three, _ = builder.domains
    jobs = [builder.job([one, two]), builder.many_rounds([three, one, two])]
    return builder.request(jobs, loads={one: 0.0}, delays=dict.fromkeys(builder.delays, 0.0))


def uneven_links(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Links carry 0.5 to 40 Gbit/s, there and back not alike; rings go over all that are slow, or over none."""
    slow = [builder.domains[place] for place in (0, 2, 1, 3)]
    quick = slow[::-1]
    for link in builder.bandwidths:
        carried = (0.5, 1.0) if link in pairwise([*slow, slow[0]]) else (20.0, 40.0)
        builder.bandwidths[link] = bandwidth(builder.chance, *carried)
    jobs = [
        builder.job(slow, exchange=3e9),
        builder.job(quick, exchange=3e9, order=slow[1:] + slow[:1], collective="ring", total=200),
        builder.job(quick, exchange=3e9, collective="low_communication", period=5),
    ]
    return builder.request(jobs, loads={slow[3]: RISE * builder.loads[slow[3]]})


def few_measurements(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """One interval, two or three were measured of each, where patience spans five."""
    one, two, three, _ = builder.domains
    request = builder.request(
        [builder.job([one, two]), builder.many_rounds([two, three])], loads={one: RISE * builder.loads[one]}
    )
    for number, domain in enumerate(request["domains"]):
        domain["loads"] = domain["loads"][-1 - number % 3 :]
    for number, link in enumerate(request["links"], len(request["domains"])):
        link["latencies"] = link["latencies"][-1 - number % 3 :]
    return request


def even_patience(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Patience spans three intervals and a bit: the median of four is the mean of two, and has changed or is calm."""
    one, two, three, _ = builder.domains
    request = builder.request([builder.job([one, two]), builder.job([two, three])], patience=6.7)
    for entry, factors in zip(request["domains"], ((1.5, 1.1, 1.4, 1.6), (1.0, 1.16, 1.17, 0.99)), strict=False):
        entry["loads"][-4:] = [round(entry["level"] * factor, 9) for factor in factors]
    for link in request["links"]:
        link["latencies"][-4:] = [round(link["level"] * factor, 9) for factor in (1.4, 1.8, 0.9, 1.9)]
    return request


def last_interval(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Patience is shorter than an interval: the last one alone counts."""
    one, two, three, four = builder.domains
    request = builder.request([builder.job([one, two]), builder.job([three, two])], interval=15.0)
    for entry, last in zip(request["domains"], (0.65, 0.2, None, None), strict=True):
        entry["loads"][-1] = entry["loads"][-1] if last is None else last
    for link in request["links"]:
        if {link["source"], link["target"]} == {three, four}:
            link["latencies"][-1] = round(3.0 * link["level"], 9)
    return request


def nothing_to_divide(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Every domain computes one part only; a load and the latencies have risen."""
    one, two, three, _ = builder.domains
    jobs = [builder.job([one, two], total=2), builder.many_rounds([two, one, three], total=3)]
    delays = {link: 3.0 * level for link, level in builder.delays.items()}
    return builder.request(jobs, loads={one: RISE * builder.loads[one]}, delays=delays)


def long_moves(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A part takes long to move, so that all at once would cost far more than may be lost."""
    one, two, three, _ = builder.domains
    jobs = [
        builder.job([one, two], total=256, move_time=0.05),
        builder.many_rounds([one, two, three], total=200, move_time=0.03, switch_time=2.0),
    ]
    late = {link: 6.0 * level for link, level in builder.delays.items()}
    return builder.request(jobs, loads={one: RISE * builder.loads[one]}, delays=late)


def nothing_may_be_lost(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """No share of the speed may be lost, and yet what is planned is not enough; one job changes for nothing."""
    one, two, three, _ = builder.domains
    free: Json = {"move_time": 0.0, "switch_time": 0.0}
    jobs = [builder.job([one, two]), builder.job([three, one], **free), builder.many_rounds([one, two, three], **free)]
    return builder.request(jobs, loads={one: RISE * builder.loads[one]}, allowance=0.0)


def short_window(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """All may be lost, over a window that is shorter than a move."""
    one, two, three, _ = builder.domains
    jobs = [builder.job([one, two], move_time=0.5), builder.job([two, three, one], switch_time=9.0)]
    return builder.request(jobs, loads={one: RISE * builder.loads[one]}, allowance=1.0, window=0.3)


def long_window(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A tenth may be lost over hours; moves are long, or were hours ago."""
    one, two, three, _ = builder.domains
    jobs = [builder.job([one, two], move_time=2.0), builder.job([two, three, one], changed=7200.0)]
    return builder.request(jobs, loads={one: RISE * builder.loads[one]}, window=1e4)


def calm(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Nothing has changed, though jobs are far from the best, and the last two intervals of all were bad."""
    one, two, three, _ = builder.domains
    jobs = [
        builder.job([one, two], parts=[12, 84]),
        builder.many_rounds([two, one, three], nodes=32),
        builder.job([three], collective="ring"),
    ]
    request = builder.request(jobs)
    for domain in request["domains"]:
        domain["loads"][-2:] = [min(1.0, 1.6 * one) for one in domain["loads"][-2:]]
    for link in request["links"]:
        link["latencies"][-2:] = [4.0 * one for one in link["latencies"][-2:]]
    return request


def calm_with_plans(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Nothing has changed; what is planned is bad, at its end or on the way there, and stays as it is."""
    one, two, three, _ = builder.domains
    jobs = [builder.job([one, two]), builder.job([two, three, one], changed=4.0)]
    jobs[0]["planned"] = [builder.planned(jobs[0], [1.0, 5.0])]
    on_the_way = [
        builder.planned(jobs[1], speeds, after=after) for speeds, after in (([1, 1, 9], 0.0), ([8, 1, 1], 9.0))
    ]
    jobs[1]["planned"] = [*on_the_way, builder.planned(jobs[1], builder.speeds(jobs[1], {}), after=30.0)]
    return builder.request(jobs)


def load_rises(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A domain is taken by others; two jobs have far too many parts there, a third runs elsewhere."""
    one, two, three, four = builder.domains
    jobs = [
        builder.job([two, one]),
        builder.job([three, four]),
        builder.job([one, two, three, four], total=150, collective="low_communication", period=20, changed=70.0),
    ]
    return builder.request(jobs, loads={one: RISE * builder.loads[one]})


def load_falls(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Others leave a domain; jobs there have too few parts."""
    one, two, three, _ = builder.domains
    builder.loads[one] = 0.7
    jobs = [builder.job([one, two]), builder.job([three, one], collective="ring"), builder.job([two, three])]
    return builder.request(jobs, loads={one: FALL * 0.7})


def loads_cross(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """One domain is taken and another is left at once; both jobs are in both."""
    one, two, _, four = builder.domains
    builder.loads[one] = builder.loads[two] = 0.5
    jobs = [builder.job([one, two]), builder.job([four, two, one], collective="low_communication", period=15)]
    return builder.request(jobs, loads={one: 0.65, two: 0.3})


def latency_rises(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """All ways from and to a domain take four times as long; rings of many nodes hardly move any more."""
    one, two, three, four = builder.domains
    jobs = [builder.many_rounds([one, two, three]), builder.many_rounds([three, four]), builder.job([two, one])]
    return builder.request(jobs, delays={link: 4.0 * level for link, level in builder.delays.items() if one in link})


def latency_rises_one_way(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A single way takes ten times as long; the way back does not."""
    one, two, three, _ = builder.domains
    jobs = [
        builder.many_rounds([one, two]),
        builder.many_rounds([one, two, three]),
        builder.many_rounds([three, two, one]),
    ]
    return builder.request(jobs, delays={(one, two): 10.0 * builder.delays[one, two]})


def latency_falls(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Messages take a third of what they took: no change that counts, and not calm."""
    one, two, three, _ = builder.domains
    jobs = [
        builder.many_rounds([one, two, three]),
        builder.job([two, three], collective="low_communication", period=200),
    ]
    return builder.request(jobs, delays={link: level / 3.0 for link, level in builder.delays.items()})


def in_between(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Loads and latencies have moved, but not by as much as counts; a service does as it thinks best."""
    one, two, three, four = builder.domains
    jobs = [builder.job([one, two], parts=[20, 76]), builder.many_rounds([two, three, four])]
    loads = {one: 1.15 * builder.loads[one], two: 0.86 * builder.loads[two]}
    late = {(two, three): 1.4 * builder.delays[two, three], (three, four): 0.7 * builder.delays[three, four]}
    return builder.request(jobs, loads=loads, delays=late)


def in_one_domain(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Jobs of one domain, which is taken by others: there is nothing to divide, and nothing to gain."""
    one = builder.domains[0]
    jobs = [
        builder.job([one], collective=kind, period=period, nodes=nodes, exchange=8e9)
        for kind, period, nodes in (
            ("ring", 1, 1),
            ("hierarchical", 1, 8),
            ("low_communication", 50, 8),
            ("ring", 1, 8),
        )
    ]
    return builder.request(jobs, loads={one: RISE * builder.loads[one]})


def planned_well(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A load has risen further; what is planned for one job is right already, for the other it comes too short."""
    one, two, three, _ = builder.domains
    now = {one: RISE * builder.loads[one]}
    jobs = [builder.job([one, two]), builder.job([one, three, two])]
    steps = [builder.planned(jobs[0], [5.0, 3.0], after=1.0)]
    jobs[0]["planned"] = [*steps, builder.planned(jobs[0], builder.speeds(jobs[0], now), after=12.0)]
    jobs[1]["planned"] = [builder.planned(jobs[1], builder.speeds(jobs[1], {one: 1.1 * builder.loads[one]}))]
    return builder.request(jobs, loads=now)


def planned_otherwise(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """What is planned is for a load that has come otherwise: parts would go where they take longest now.

    One job runs well, and would not any more.
    """
    one, two, three, _ = builder.domains
    jobs = [builder.job([one, two]), builder.job([two, three, one], collective="ring"), builder.job([two, three])]
    for job in jobs[:2]:
        fewer = builder.planned(job, builder.speeds(job, {one: FALL * builder.loads[one]}), after=3.0)
        job["planned"] = [fewer, {**fewer, "after": 3.0, "collective": "low_communication", "period": 500}]
    first, second = jobs[2]["shares"]
    second["parts"] += 3
    first["parts"] -= 3
    jobs[2]["planned"] = [builder.planned(jobs[2], [1.0, 3.0])]
    return builder.request(jobs, loads={one: RISE * builder.loads[one]})


def on_its_way(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Changes are just being carried out or just in force, and the load is another one again."""
    one, two, three, _ = builder.domains
    jobs = [
        builder.job([one, two], changed=0.0),
        builder.job([three, one], changed=0.0),
        builder.job([two, one, three], changed=1.5),
    ]
    jobs[1]["planned"] = [builder.planned(jobs[1], [1.0, 1.0], after=0.0)]
    return builder.request(jobs, loads={one: RISE * builder.loads[one]})


def all_collectives(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """Every collective with periods that are not the usual ones, for few and many bytes, bounded by links and nodes."""
    domains = builder.domains
    kinds = (("ring", 1), ("hierarchical", 1), ("low_communication", 7), ("low_communication", 333))
    few: Json = {"exchange": 3e8, "nodes": 6}
    much: Json = {"exchange": 9e9, "nodes": 3, "node_bandwidth": 6.1e9}
    jobs = [
        builder.job(domains[:count], collective=kind, period=period, step=1.0, **entry)
        for kind, period in kinds
        for count, entry in ((2, few), (3, much))
    ]
    delays = {link: 2.2 * level for link, level in builder.delays.items() if domains[1] in link}
    return builder.request(jobs, delays=delays)


def five_domains(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A job in five domains whose shares, order and links stand in orders of their own."""
    wide = AdjustmentRequestBuilder(builder.chance, 5)
    names = wide.domains[:]
    wide.chance.shuffle(names)
    jobs = [wide.job(names, total=240, order=wide.domains, collective="ring"), wide.job(names[1:3])]
    request = wide.request(jobs, loads={names[1]: RISE * wide.loads[names[1]]})
    wide.chance.shuffle(request["domains"])
    wide.chance.shuffle(request["links"])
    return request


def far_from_jobs(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """What changes is a domain where no job is, and its links; the jobs are badly off, but could be before."""
    one, two, three, four = builder.domains
    jobs = [builder.job([one, two]), builder.job([three])]
    delays = {link: 5.0 * level for link, level in builder.delays.items() if four in link}
    return builder.request(jobs, loads={four: FALL * builder.loads[four]}, delays=delays)


def no_jobs(builder: AdjustmentRequestBuilder) -> "documents.AdjustmentRequest":
    """A load changes, and no job runs."""
    one = builder.domains[0]
    return builder.request([], loads={one: RISE * builder.loads[one]})


QUESTIONS: "dict[str, Callable[[AdjustmentRequestBuilder], documents.AdjustmentRequest]]" = {
    "levels that are calm": calm,
    "levels that are calm and bad plans": calm_with_plans,
    "a load that rises": load_rises,
    "a load that falls": load_falls,
    "a load that rises while another falls": loads_cross,
    "latencies that rise": latency_rises,
    "a latency that rises one way": latency_rises_one_way,
    "latencies that fall": latency_falls,
    "levels between calm and change": in_between,
    "jobs in one domain": in_one_domain,
    "changes planned well and too short": planned_well,
    "changes planned otherwise": planned_otherwise,
    "changes on their way": on_its_way,
    "a domain that others take nearly wholly": nearly_taken,
    "domains that others take wholly": wholly_taken,
    "levels of nought": levels_of_nought,
    "levels that come to nought": come_to_nought,
    "links that are very different": uneven_links,
    "all collectives": all_collectives,
    "five domains": five_domains,
    "few measurements": few_measurements,
    "an even number of measurements": even_patience,
    "one measurement": last_interval,
    "nothing to divide": nothing_to_divide,
    "a change far from all jobs": far_from_jobs,
    "no jobs": no_jobs,
    "moves that take long": long_moves,
    "nothing that may be lost": nothing_may_be_lost,
    "a window that is short": short_window,
    "a window that is long": long_window,
}
"""By what is hard about them."""


def questions(chance: Random, times: int) -> "Iterator[tuple[str, documents.AdjustmentRequest]]":
    """Each so many times, with other numbers."""
    return drawn(QUESTIONS, AdjustmentRequestBuilder, chance, times)


REQUIREMENT = "RES-016"


@dataclass(frozen=True)
class AdjustmentAnswers:
    """Adjustments that were looked at.

    Attributes:
        questions: Hard ones.
        adjustments: In the window.
        unsound: Those that were not sound.
        bad_answers: Answers in the window that were no adjustments.
        bad: One of these.
    """

    questions: CaseVerdicts
    adjustments: int
    unsound: UnsoundAnswers
    bad_answers: int
    bad: Answer | None


def observe(episode: Episode) -> AdjustmentAnswers:
    """Ask hard questions, then play a window."""
    cases = verdicts(episode, ADJUSTMENTS, "adjustment", questions, _deviations)
    seen = AdjustmentInspector(episode)
    seen.alone(0)
    return AdjustmentAnswers(cases, seen.answers, seen.deviating, seen.bad_answers, seen.bad)


def _deviations(body: "documents.AdjustmentRequest", adjustment: "documents.Adjustment") -> list[str]:
    return [*deviations(body, adjustment), *untimely(body, adjustment)]


def judge(o: AdjustmentAnswers) -> Iterable[Finding]:
    """Claims about every hard question, and about the adjustments of the window."""
    yield from o.questions.findings(REQUIREMENT)
    expected = "in a window, every answer is an adjustment"
    observed = f"{o.bad_answers} are none, {o.adjustments} are adjustments"
    yield holds(REQUIREMENT, not o.bad_answers, expected, observed, o.bad)
    expected, count = "in a window, every adjustment is sound", f"{o.unsound.count} of {o.adjustments} are not"
    yield from o.unsound.findings(REQUIREMENT, expected, count)


CHECK = Check("res_adjustments", (REQUIREMENT,), observe, judge)
