"""Many worlds in one call: each goes on until it asks, or to an instant; what is seen of it is written in place."""

from math import log1p

from kuayu_conformance.testbed.scheduling.core.jobs import short
from kuayu_training.scheduling.core import epoch_loop
from kuayu_training.scheduling.core.layout import compiled
from kuayu_training.scheduling.core.network import see
from kuayu_training.scheduling.core.scheduler import priority_order
from kuayu_training.scheduling.core.snapshot import take_stock
from kuayu_training.scheduling.observation import BOUND

GRID = 600.0
"""Seconds between rows of a curve."""
UNIT = 10.0
"""As ``ledger.UNIT``: rewards sum up to the gain times that."""
ASKED = epoch_loop.ASKED


@compiled
def on_curve(r, instant, column):
    """A column of the curve at an instant; the last row beyond its end."""
    curve, place = r.curve, instant / GRID
    row = min(int(place), curve.shape[0] - 1)
    then = min(row + 1, curve.shape[0] - 1)
    return curve[row, column] + (curve[then, column] - curve[row, column]) * (place - row)


@compiled
def rewarded(r, since, spent, spent_large, scale):
    """By how much less time jobs were there since an instant than under the one it is measured by."""
    e = r.epoch[0]
    if r.curve.shape[0] == 0:
        return 0.0
    saved = on_curve(r, e.counted, 0) - on_curve(r, since, 0) - (e.spent - spent)
    saved_large = on_curve(r, e.counted, 1) - on_curve(r, since, 1) - (e.spent_large - spent_large)
    return UNIT * 0.5 * (saved / scale[0] + saved_large / scale[1])


@compiled
def clip(value):
    """Nothing that is seen is farther from zero than ``BOUND``."""
    return min(max(value, -BOUND), BOUND)


@compiled
def look_around(w, r, until, seen):
    """How far the scenario is, who is there and who will come, and how many more than under the other: (6,)."""
    c, count = w.clock[0], max(w.jobs.size, 1)
    present = c.pending + c.runs
    lead = present - on_curve(r, c.now, 2) if r.curve.shape[0] else 0.0
    seen[0], seen[1], seen[2] = clip(c.now / until), clip(lead / 10.0), clip(10.0 * lead / count)
    seen[3], seen[4], seen[5] = clip(log1p(c.pending)), clip(log1p(c.runs)), clip(1.0 - c.arrived / count)


@compiled
def go_on(worlds, tables, first, last, answers, until, seconds, scale, status, rewards, around, masks):
    """Let worlds go on by their answers until they ask again, or until their instants.

    Args:
        worlds: Handles of N worlds.
        tables: Of their tables; questions are written into their arrays.
        first: Place of the first that goes on, and
        last: of the one behind the last.
        answers: (N,) rows of the questions.
        until: (N,) instants.
        seconds: Between epochs.
        scale: (N, 2) what rewards are divided by.
        status: (N,) how each was left, and is left now; ``ASKED``, ``OVER`` or ``SHORT``.
        rewards: (N,) what is to be rewarded; added up.
        around: (N, 6) surroundings.
        masks: (N, rows) which rows there are.
    """
    for place in range(first, last):
        w, r = worlds[place], tables[place]
        e = r.epoch[0]
        e.answer = answers[place]
        since, spent, spent_large = e.counted, e.spent, e.spent_large
        status[place] = epoch_loop.play(w, r, until[place], seconds)
        rewards[place] += rewarded(r, since, spent, spent_large, scale[place])
        look_around(w, r, until[place], around[place])
        for row in range(masks.shape[1]):
            masks[place, row] = row < e.seen


@compiled
def go_on_alone(worlds, tables, first, last, until, horizon, seconds, scale, status, rewards, seen):
    """Let the rule decide in worlds to an instant, without questions; arguments as those of :func:`go_on`.

    Args:
        worlds, tables, first, last, seconds, scale, status, rewards: As there.
        until: (N,) instants; ``horizon``: (N,) ends of the scenarios.
        horizon: See ``until``.
        seen: (N, 12) what is seen: how things stand (``core.network.see``); how much of the scenario is left, and
            how many more jobs are there than under the one it is measured by, which is for critics alone.
    """
    for place in range(first, last):
        w, r = worlds[place], tables[place]
        e = r.epoch[0]
        since, spent, spent_large = e.counted, e.spent, e.spent_large
        status[place] = epoch_loop.play(w, r, until[place], seconds)
        epoch_loop.count_present(w, r)
        rewards[place] += rewarded(r, since, spent, spent_large, scale[place])
        if short(w) or not epoch_loop.roomy(w, r):
            continue
        take_stock(w, r)
        priority_order(w, r)
        see(w, r)
        seen[place, : r.seen.size] = r.seen
        c = w.clock[0]
        lead = c.pending + c.runs - (on_curve(r, c.now, 2) if r.curve.shape[0] else 0.0)
        seen[place, r.seen.size] = 1.0 - c.now / horizon[place]
        seen[place, r.seen.size + 1] = clip(lead / 10.0)
