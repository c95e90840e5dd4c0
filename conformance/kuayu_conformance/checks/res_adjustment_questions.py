"""Requests for adjustments that are hard to answer: each has something that is easily overlooked."""

from collections.abc import Callable, Iterator
from random import Random

from kuayu_conformance.checks import res_adjustment_extremes as extremes
from kuayu_conformance.checks.res_adjustment_draft import FALL, RISE, Draft
from kuayu_conformance.checks.res_fixtures import Json


def calm(draft: Draft) -> Json:
    """Nothing has changed, though jobs are far from the best, and the last two intervals of all were bad."""
    one, two, three, _ = draft.domains
    jobs = [
        draft.job([one, two], parts=[12, 84]),
        draft.many_rounds([two, one, three], nodes=32),
        draft.job([three], collective="ring"),
    ]
    asked = draft.request(jobs)
    for each in asked["domains"]:
        each["loads"][-2:] = [min(1.0, 1.6 * one) for one in each["loads"][-2:]]
    for each in asked["links"]:
        each["latencies"][-2:] = [4.0 * one for one in each["latencies"][-2:]]
    return asked


def calm_with_plans(draft: Draft) -> Json:
    """Nothing has changed; what is planned is bad, at its end or on the way there, and stays as it is."""
    one, two, three, _ = draft.domains
    jobs = [draft.job([one, two]), draft.job([two, three, one], changed=4.0)]
    jobs[0]["planned"] = [draft.planned(jobs[0], [1.0, 5.0])]
    on_the_way = [draft.planned(jobs[1], speeds, after=after) for speeds, after in (([1, 1, 9], 0.0), ([8, 1, 1], 9.0))]
    jobs[1]["planned"] = [*on_the_way, draft.planned(jobs[1], draft.speeds(jobs[1], {}), after=30.0)]
    return draft.request(jobs)


def load_rises(draft: Draft) -> Json:
    """A domain is taken by others; two jobs have far too many parts there, a third runs elsewhere."""
    one, two, three, four = draft.domains
    jobs = [
        draft.job([two, one]),
        draft.job([three, four]),
        draft.job([one, two, three, four], total=150, collective="low_communication", period=20, changed=70.0),
    ]
    return draft.request(jobs, loads={one: RISE * draft.loads[one]})


def load_falls(draft: Draft) -> Json:
    """Others leave a domain; jobs there have too few parts."""
    one, two, three, _ = draft.domains
    draft.loads[one] = 0.7
    jobs = [draft.job([one, two]), draft.job([three, one], collective="ring"), draft.job([two, three])]
    return draft.request(jobs, loads={one: FALL * 0.7})


def loads_cross(draft: Draft) -> Json:
    """One domain is taken and another is left at once; both jobs are in both."""
    one, two, _, four = draft.domains
    draft.loads[one] = draft.loads[two] = 0.5
    jobs = [draft.job([one, two]), draft.job([four, two, one], collective="low_communication", period=15)]
    return draft.request(jobs, loads={one: 0.65, two: 0.3})


def latency_rises(draft: Draft) -> Json:
    """All ways from and to a domain take four times as long; rings of many nodes hardly move any more."""
    one, two, three, four = draft.domains
    jobs = [draft.many_rounds([one, two, three]), draft.many_rounds([three, four]), draft.job([two, one])]
    return draft.request(jobs, delays={way: 4.0 * level for way, level in draft.delays.items() if one in way})


def latency_rises_one_way(draft: Draft) -> Json:
    """A single way takes ten times as long; the way back does not."""
    one, two, three, _ = draft.domains
    jobs = [draft.many_rounds([one, two]), draft.many_rounds([one, two, three]), draft.many_rounds([three, two, one])]
    return draft.request(jobs, delays={(one, two): 10.0 * draft.delays[one, two]})


def latency_falls(draft: Draft) -> Json:
    """Messages take a third of what they took: no change that counts, and not calm."""
    one, two, three, _ = draft.domains
    jobs = [
        draft.many_rounds([one, two, three]),
        draft.job([two, three], collective="low_communication", period=200),
    ]
    return draft.request(jobs, delays={way: level / 3.0 for way, level in draft.delays.items()})


def in_between(draft: Draft) -> Json:
    """Loads and latencies have moved, but not by as much as counts; a service does as it thinks best."""
    one, two, three, four = draft.domains
    jobs = [draft.job([one, two], parts=[20, 76]), draft.many_rounds([two, three, four])]
    loads = {one: 1.15 * draft.loads[one], two: 0.86 * draft.loads[two]}
    late = {(two, three): 1.4 * draft.delays[two, three], (three, four): 0.7 * draft.delays[three, four]}
    return draft.request(jobs, loads=loads, delays=late)


def in_one_domain(draft: Draft) -> Json:
    """Jobs of one domain, which is taken by others: there is nothing to divide, and nothing to gain."""
    one = draft.domains[0]
    jobs = [
        draft.job([one], collective=kind, period=period, nodes=nodes, exchange=8e9)
        for kind, period, nodes in (
            ("ring", 1, 1),
            ("hierarchical", 1, 8),
            ("low_communication", 50, 8),
            ("ring", 1, 8),
        )
    ]
    return draft.request(jobs, loads={one: RISE * draft.loads[one]})


def planned_well(draft: Draft) -> Json:
    """A load has risen further; what is planned for one job is right already, for the other it comes too short."""
    one, two, three, _ = draft.domains
    now = {one: RISE * draft.loads[one]}
    jobs = [draft.job([one, two]), draft.job([one, three, two])]
    steps = [draft.planned(jobs[0], [5.0, 3.0], after=1.0)]
    jobs[0]["planned"] = [*steps, draft.planned(jobs[0], draft.speeds(jobs[0], now), after=12.0)]
    jobs[1]["planned"] = [draft.planned(jobs[1], draft.speeds(jobs[1], {one: 1.1 * draft.loads[one]}))]
    return draft.request(jobs, loads=now)


def planned_otherwise(draft: Draft) -> Json:
    """What is planned is for a load that has come otherwise: parts would go where they take longest now.

    One job runs well, and would not any more.
    """
    one, two, three, _ = draft.domains
    jobs = [draft.job([one, two]), draft.job([two, three, one], collective="ring"), draft.job([two, three])]
    for job in jobs[:2]:
        fewer = draft.planned(job, draft.speeds(job, {one: FALL * draft.loads[one]}), after=3.0)
        job["planned"] = [fewer, {**fewer, "after": 3.0, "collective": "low_communication", "period": 500}]
    first, second = jobs[2]["shares"]
    second["parts"] += 3
    first["parts"] -= 3
    jobs[2]["planned"] = [draft.planned(jobs[2], [1.0, 3.0])]
    return draft.request(jobs, loads={one: RISE * draft.loads[one]})


def on_its_way(draft: Draft) -> Json:
    """Changes are just being carried out or just in force, and the load is another one again."""
    one, two, three, _ = draft.domains
    jobs = [
        draft.job([one, two], changed=0.0),
        draft.job([three, one], changed=0.0),
        draft.job([two, one, three], changed=1.5),
    ]
    jobs[1]["planned"] = [draft.planned(jobs[1], [1.0, 1.0], after=0.0)]
    return draft.request(jobs, loads={one: RISE * draft.loads[one]})


def all_collectives(draft: Draft) -> Json:
    """Every collective with periods that are not the usual ones, for few and many bytes, bounded by links and nodes."""
    domains = draft.domains
    kinds = (("ring", 1), ("hierarchical", 1), ("low_communication", 7), ("low_communication", 333))
    few: Json = {"exchange": 3e8, "nodes": 6}
    much: Json = {"exchange": 9e9, "nodes": 3, "node_bandwidth": 6.1e9}
    jobs = [
        draft.job(domains[:count], collective=kind, period=period, step=1.0, **its)
        for kind, period in kinds
        for count, its in ((2, few), (3, much))
    ]
    delays = {way: 2.2 * level for way, level in draft.delays.items() if domains[1] in way}
    return draft.request(jobs, delays=delays)


def five_domains(draft: Draft) -> Json:
    """A job in five domains whose shares, order and links stand in orders of their own."""
    wide = Draft(draft.chance, 5)
    names = wide.domains[:]
    wide.chance.shuffle(names)
    jobs = [wide.job(names, total=240, order=wide.domains, collective="ring"), wide.job(names[1:3])]
    asked = wide.request(jobs, loads={names[1]: RISE * wide.loads[names[1]]})
    for told in ("domains", "links"):
        wide.chance.shuffle(asked[told])
    return asked


def far_from_jobs(draft: Draft) -> Json:
    """What changes is a domain where no job is, and its links; the jobs are badly off, but could be before."""
    one, two, three, four = draft.domains
    jobs = [draft.job([one, two]), draft.job([three])]
    delays = {way: 5.0 * level for way, level in draft.delays.items() if four in way}
    return draft.request(jobs, loads={four: FALL * draft.loads[four]}, delays=delays)


def no_jobs(draft: Draft) -> Json:
    """A load changes, and no job runs."""
    one = draft.domains[0]
    return draft.request([], loads={one: RISE * draft.loads[one]})


QUESTIONS: dict[str, Callable[[Draft], Json]] = {
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
    "a domain that others take nearly wholly": extremes.nearly_taken,
    "domains that others take wholly": extremes.wholly_taken,
    "levels of nought": extremes.levels_of_nought,
    "levels that come to nought": extremes.come_to_nought,
    "links that are very different": extremes.uneven_links,
    "all collectives": all_collectives,
    "five domains": five_domains,
    "few measurements": extremes.few_measurements,
    "an even number of measurements": extremes.even_patience,
    "one measurement": extremes.last_interval,
    "nothing to divide": extremes.nothing_to_divide,
    "a change far from all jobs": far_from_jobs,
    "no jobs": no_jobs,
    "moves that take long": extremes.long_moves,
    "nothing that may be lost": extremes.nothing_may_be_lost,
    "a window that is short": extremes.short_window,
    "a window that is long": extremes.long_window,
}
"""By what is hard about them."""


def questions(chance: Random, times: int) -> Iterator[tuple[str, Json]]:
    """Each so many times, with other numbers."""
    for _ in range(times):
        for what, drawn in QUESTIONS.items():
            yield what, drawn(Draft(chance))
