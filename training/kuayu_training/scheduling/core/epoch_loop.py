"""Epoch after epoch in the compiled world, until a question is open or the time is over."""

from kuayu.bench.reference import AGAIN
from kuayu_conformance.testbed.scheduling.core.jobs import DUE, SHORT, advance, short
from kuayu_training.scheduling.core import scheduler
from kuayu_training.scheduling.core.layout import MAX_LOOKED_AT, QUESTION, compiled
from kuayu_training.scheduling.core.orders import obey

ASKED = 100
"""A question is open; beside ``OVER`` and ``SHORT``."""


@compiled
def roomy(w, r):
    """Whether an epoch has room in all arrays: every job that waits might start, every one that runs move."""
    c = w.clock[0]
    free = width = 0
    for pool in range(w.pools.size):
        p = w.pools[pool]
        free += p.free
        working = max(p.working, p.cut_working if w.sites[p.site].cut else 0)
        width = max(width, int(working * max(w.sites[p.site].claim, 1.0)) + 3)
    runs = w.runs.size
    return (
        runs - c.runs > min(c.pending, free)
        and c.events + 8 * (c.pending + 8) < w.events.size
        and width <= r.when.shape[1]
        and runs <= r.running.size
        and r.order_job.size > MAX_LOOKED_AT + runs
    )


@compiled
def count_present(w, r):
    """Account for the seconds that jobs have been there, all of them and large ones, as ``ledger.Ledger`` does."""
    e, c, pending, run, runs, of_size = r.epoch[0], w.clock[0], w.pending, w.clock[0].first, w.runs, r.large
    large = 0
    for place in range(c.pending):
        large += of_size[pending[place]]
    while run != -1:
        large += of_size[runs[run].job]
        run = runs[run].after
    present, passed = float(c.pending + c.runs), c.now - e.counted
    e.spent += 0.5 * (e.present + present) * passed
    e.spent_large += 0.5 * (e.present_large + large) * passed
    e.present, e.present_large, e.counted = present, float(large), c.now


@compiled
def play(w, r, until, seconds):
    """Let the rule decide at each epoch from now until an instant, until all jobs are finished, or until it asks.

    Args:
        w: The world.
        r: The tables.
        until: Seconds since the scenario began.
        seconds: Between epochs.

    Returns:
        ``ASKED``; ``OVER``; or ``SHORT`` where an array is to be enlarged before it goes on.
    """
    c, e = w.clock[0], r.epoch[0]
    while True:
        if not e.open:
            if not c.due:
                if not c.passing:
                    c.epoch = (c.now // seconds + 1.0) * seconds
                how, c.epoch = advance(w, c.epoch, until, seconds)
                c.passing = how == SHORT
                if how != DUE:
                    return how
                c.due = 1
                e.steps += 1
                if e.asking:
                    count_present(w, r)
            if c.queue_changes + c.changes == e.idle_revision and c.now < e.idle_until:
                c.due = 0
                continue
            if short(w) or not roomy(w, r):
                return SHORT
            scheduler.begin(w, r)
            e.open = 1
        if scheduler.go_on(w, r) == QUESTION:
            return ASKED
        scheduler.close(w, r)
        if e.orders == 0:
            e.idle_revision, e.idle_until = c.queue_changes + c.changes, c.now + AGAIN
        obey(w, r)
        e.open = c.due = 0


@compiled
def decide(w, r):
    """Decide the present epoch and carry nothing out; orders are in the tables. The arrays have to be long enough."""
    scheduler.begin(w, r)
    scheduler.go_on(w, r)
    scheduler.close(w, r)
