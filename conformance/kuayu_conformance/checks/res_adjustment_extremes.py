"""Requests for adjustments in which something is as little or as much as may be, or stands where one does not look."""

from itertools import pairwise

from kuayu_conformance.checks.res_adjustment_draft import GIGA, RISE, Draft
from kuayu_conformance.checks.res_fixtures import Json


def nearly_taken(draft: Draft) -> Json:
    """Others take nearly all of a domain: one part there may be too many."""
    one, two, three, _ = draft.domains
    jobs = [draft.job([one, two]), draft.job([one, three, two], total=24), draft.job([one])]
    return draft.request(jobs, loads={one: 0.99})


def wholly_taken(draft: Draft) -> Json:
    """Others take all of a domain, by now and before: no job makes a step there, whatever it does."""
    one, two, three, four = draft.domains
    draft.loads[four] = 1.0
    jobs = [draft.job([one, two]), draft.job([two, three], parts=[40, 56]), draft.job([one, three, two])]
    jobs.append({**draft.job([one, three]), "planned": [draft.planned(jobs[0], [3.0, 2.0], order=[three, one])]})
    return draft.request(jobs, loads={one: 1.0})


def levels_of_nought(draft: Draft) -> Json:
    """Loads and latencies were nought: one of each still is, others are not."""
    one, two, three, four = draft.domains
    draft.loads |= {one: 0.0, four: 0.0}
    draft.delays |= {(one, two): 0.0, (two, three): 0.0}
    jobs = [draft.job([one, two]), draft.many_rounds([one, two, three]), draft.many_rounds([four, three])]
    return draft.request(jobs, loads={one: 0.45}, delays={(two, three): 0.05})


def come_to_nought(draft: Draft) -> Json:
    """A load and all latencies come to nought."""
    one, two, three, _ = draft.domains
    jobs = [draft.job([one, two]), draft.many_rounds([three, one, two])]
    return draft.request(jobs, loads={one: 0.0}, delays=dict.fromkeys(draft.delays, 0.0))


def uneven_links(draft: Draft) -> Json:
    """Links carry 0.5 to 40 Gbit/s, there and back not alike; rings go over all that are slow, or over none."""
    slow = [draft.domains[at] for at in (0, 2, 1, 3)]
    quick = slow[::-1]
    for way in draft.bandwidths:
        carried = (0.5, 1.0) if way in pairwise([*slow, slow[0]]) else (20.0, 40.0)
        draft.bandwidths[way] = float(round(draft.chance.uniform(*carried) * GIGA))
    jobs = [
        draft.job(slow, exchange=3e9),
        draft.job(quick, exchange=3e9, order=slow[1:] + slow[:1], collective="ring", total=200),
        draft.job(quick, exchange=3e9, collective="low_communication", period=5),
    ]
    return draft.request(jobs, loads={slow[3]: RISE * draft.loads[slow[3]]})


def few_measurements(draft: Draft) -> Json:
    """One interval, two or three were measured of each, where patience spans five."""
    one, two, three, _ = draft.domains
    asked = draft.request(
        [draft.job([one, two]), draft.many_rounds([two, three])], loads={one: RISE * draft.loads[one]}
    )
    for number, each in enumerate([*asked["domains"], *asked["links"]]):
        told = "loads" if "loads" in each else "latencies"
        each[told] = each[told][-1 - number % 3 :]
    return asked


def even_patience(draft: Draft) -> Json:
    """Patience spans three intervals and a bit: the median of four is the mean of two, and has changed or is calm."""
    one, two, three, _ = draft.domains
    asked = draft.request([draft.job([one, two]), draft.job([two, three])], patience=6.7)
    for each, factors in zip(asked["domains"], ((1.5, 1.1, 1.4, 1.6), (1.0, 1.16, 1.17, 0.99)), strict=False):
        each["loads"][-4:] = [round(each["level"] * factor, 9) for factor in factors]
    for each in asked["links"]:
        each["latencies"][-4:] = [round(each["level"] * factor, 9) for factor in (1.4, 1.8, 0.9, 1.9)]
    return asked


def last_interval(draft: Draft) -> Json:
    """Patience is shorter than an interval: the last one alone counts."""
    one, two, three, four = draft.domains
    asked = draft.request([draft.job([one, two]), draft.job([three, two])], interval=15.0)
    for each, last in zip(asked["domains"], (0.65, 0.2, None, None), strict=True):
        each["loads"][-1] = each["loads"][-1] if last is None else last
    for each in asked["links"]:
        if {each["source"], each["target"]} == {three, four}:
            each["latencies"][-1] = round(3.0 * each["level"], 9)
    return asked


def nothing_to_divide(draft: Draft) -> Json:
    """Every domain computes one part only; a load and the latencies have risen."""
    one, two, three, _ = draft.domains
    jobs = [draft.job([one, two], total=2), draft.many_rounds([two, one, three], total=3)]
    delays = {way: 3.0 * level for way, level in draft.delays.items()}
    return draft.request(jobs, loads={one: RISE * draft.loads[one]}, delays=delays)


def long_moves(draft: Draft) -> Json:
    """A part takes long to move, so that all at once would cost far more than may be lost."""
    one, two, three, _ = draft.domains
    jobs = [
        draft.job([one, two], total=256, move_time=0.05),
        draft.many_rounds([one, two, three], total=200, move_time=0.03, switch_time=2.0),
    ]
    late = {way: 6.0 * level for way, level in draft.delays.items()}
    return draft.request(jobs, loads={one: RISE * draft.loads[one]}, delays=late)


def nothing_may_be_lost(draft: Draft) -> Json:
    """No share of the speed may be lost, and yet what is planned is not enough; one job changes for nothing."""
    one, two, three, _ = draft.domains
    free: Json = {"move_time": 0.0, "switch_time": 0.0}
    jobs = [draft.job([one, two]), draft.job([three, one], **free), draft.many_rounds([one, two, three], **free)]
    return draft.request(jobs, loads={one: RISE * draft.loads[one]}, allowance=0.0)


def short_window(draft: Draft) -> Json:
    """All may be lost, over a window that is shorter than a move."""
    one, two, three, _ = draft.domains
    jobs = [draft.job([one, two], move_time=0.5), draft.job([two, three, one], switch_time=9.0)]
    return draft.request(jobs, loads={one: RISE * draft.loads[one]}, allowance=1.0, window=0.3)


def long_window(draft: Draft) -> Json:
    """A tenth may be lost over hours; moves are long, or were hours ago."""
    one, two, three, _ = draft.domains
    jobs = [draft.job([one, two], move_time=2.0), draft.job([two, three, one], changed=7200.0)]
    return draft.request(jobs, loads={one: RISE * draft.loads[one]}, window=1e4)
