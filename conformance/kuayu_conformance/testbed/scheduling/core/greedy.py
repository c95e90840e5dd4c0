"""B3, B3c and B4 compiled: ``baselines.greedy``, where their rules and sources stand, with the scores of each.

They differ in what a job goes by, in who is looked at first behind the one that waits, and in who rather waits.
"""

import numpy as np
from numba import njit

from kuayu_conformance.testbed.scheduling.core.baselines import (
    anywhere,
    best_now,
    find_candidates,
    find_ends,
    fits_somewhere,
    order,
    prepare,
    room_for_ways,
    waits,
)
from kuayu_conformance.testbed.scheduling.core.goodput import planned_scores
from kuayu_conformance.testbed.scheduling.core.layout import NONE, Desk, State
from kuayu_conformance.testbed.scheduling.core.weighed import look_ahead, rather_waits, weighed_scores

EARLIEST, WEIGHED, PLANNED = range(3, 6)
"""B3, B3c, B4."""


@njit(cache=True)
def find_scores(w: State, d: Desk, job, rules):
    """What a job goes by in each of its ways, into ``scores``; when it would be finished stands in ``finish``."""
    if rules == WEIGHED:
        weighed_scores(w, d, job)
    elif rules == PLANNED:
        planned_scores(d, job)
    else:
        for place in range(d.way_count[job]):
            d.scores[place] = d.finish[place]


@njit(cache=True)
def decide_anywhere(w: State, d: Desk, rules):
    """Each job where its score is least, with backfill; False if room is short."""
    prepare(w, d)
    if rules == WEIGHED:
        look_ahead(w, d)
    pending, place = w.clock[0].pending, 0
    while place < pending:
        job = w.pending[place]
        place += 1
        if not find_ends(w, d, job):
            return False
        find_scores(w, d, job, rules)
        best = best_now(d, job)
        if waits(w, d, job, best):
            break
        if best != NONE:
            order(w, d, job, d.way_begin[job] + best, d.finish[best])
    candidates = d.next[: find_candidates(w, d, place)]
    if rules == PLANNED:
        candidates = candidates[np.argsort(-d.value[candidates], kind="mergesort")]
    for job in candidates:
        if d.way_begin[job] == NONE:
            if not room_for_ways(w, d):
                return False
            anywhere(w, d, job)
        if not fits_somewhere(d, job):
            continue
        find_ends(w, d, job)
        find_scores(w, d, job, rules)
        best = best_now(d, job)
        if best != NONE and not (rules == WEIGHED and rather_waits(w, d, job, best)):
            order(w, d, job, d.way_begin[job] + best, d.finish[best])
    return True
