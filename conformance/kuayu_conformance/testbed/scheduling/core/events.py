"""Time in the compiled world: what happens by itself, until somebody has to decide.

1. Events come in the order of time, and of their making where they coincide; then come the jobs that are submitted at
   that instant; then links are shared anew.
2. Decisions are due at whole multiples of an epoch at which a job is pending; what happens at that instant comes first.
3. Whatever may have become too small is told of between two events, and they go on when it has been enlarged.
"""

from math import ceil

from numba import njit

from kuayu_conformance.testbed.scheduling.core.jobs import (
    check,
    count_devices,
    finish,
    lose,
    queue_up,
    rate_of,
    run_now,
    saved,
    set_speeds,
)
from kuayu_conformance.testbed.scheduling.core.layout import (
    CHECK,
    CLAIM,
    CUT,
    FAIL,
    FINISH,
    HEAL,
    INF,
    NONE,
    REPAIR,
    RUN,
    SAVED,
    TOUCH,
    UNCLAIM,
    State,
)
from kuayu_conformance.testbed.scheduling.core.network import at, mark, pop

DUE, OVER, SHORT = range(3)
"""A decision is due; the time is over, or all jobs are finished; an array is too short."""


@njit(cache=True)
def short(w: State):
    """Whether an array may not suffice for the next event."""
    c = w.clock[0]
    return (
        c.events + 2 * (c.flows + c.runs) + w.links.size + 64 > w.events.size or c.periods + c.runs + 8 > w.periods.size
    )


@njit(cache=True)
def over(w: State):
    """Whether all jobs have been submitted and are finished."""
    c = w.clock[0]
    return c.arrived == w.jobs.size and c.pending == 0 and c.runs == 0


@njit(cache=True)
def expect_fault(w: State):
    """The next fault is an event."""
    c = w.clock[0]
    if c.faults < w.faults.size:
        at(w.events, w.clock, w.faults[c.faults].at, FAIL, c.faults, 0, 0.0)
        c.faults += 1


@njit(cache=True)
def fail(w: State, fault):
    """A node fails: whoever holds devices of it loses them.

    Jobs fill the working devices of a pool in the order in which they came; ``place`` is where among these the node is.
    """
    f = w.faults[fault]
    p = w.pools[f.pool]
    size = min(p.per_node, p.working)
    first = int(f.place * (p.working - size + 1))
    hit, begin, holder = 0, 0, p.first
    while holder != NONE:
        h = w.holders[holder]
        if begin < first + size and first < begin + h.devices:
            w.scratch[0, hit] = h.job
            hit += 1
        begin += h.devices
        holder = h.after
    for place in range(hit):
        lose(w, w.scratch[0, place])
    if size:
        count_devices(w)
        assert size <= p.free
        p.free -= size
        p.working -= size
        at(w.events, w.clock, f.repaired, REPAIR, f.pool, size, 0.0)
    w.clock[0].changes += 1
    expect_fault(w)


@njit(cache=True)
def rewire(w: State):
    """Links of domains that are cut off offer nothing."""
    for number in range(w.links.size):
        link = w.links[number]
        cut = 0
        if link.source != NONE and w.sites[link.source].cut:
            cut = 1
        if link.target != NONE and w.sites[link.target].cut:
            cut = 1
        if cut != link.cut:
            link.cut = cut
            mark(w, number)
    w.clock[0].changes += 1


@njit(cache=True)
def happen(w: State):
    """The first event, which is due."""
    e = w.events[pop(w.events, w.clock)]
    kind, what, which, when = e.kind, e.what, e.which, e.when
    if kind == FINISH:
        if w.jobs[what].version == which:
            finish(w, what)
    elif kind == CHECK:
        if w.flows[what].number == which and w.flows[what].looked_at == when:
            check(w, what)
    elif kind == TOUCH:
        mark(w, what)
    elif kind == RUN:
        if w.jobs[what].version == which:
            run_now(w, what)
    elif kind == SAVED:
        if w.jobs[what].version == which:
            saved(w, what)
    elif kind == FAIL:
        fail(w, what)
    elif kind == REPAIR:
        count_devices(w)
        w.pools[what].free += which
        w.pools[what].working += which
        w.clock[0].changes += 1
    elif kind == CUT:
        w.sites[what].cut = 1
        for pool in range(w.pools.size):
            p = w.pools[pool]
            if p.site == what:
                p.cut_working, p.cut_free = p.working, p.free
        rewire(w)
    elif kind == HEAL:
        w.sites[what].cut = 0
        rewire(w)
    elif kind == CLAIM:
        w.sites[what].claim = when
        w.clock[0].changes += 1
    elif kind == UNCLAIM:
        w.sites[what].claim = 1.0
        w.clock[0].changes += 1


@njit(cache=True)
def admit(w: State):
    """The next job is submitted."""
    c = w.clock[0]
    j = w.jobs[c.arrived]
    j.known_used = 1.0
    j.stated_work = j.stated * 1.0 * j.requested
    rate_of(w, c.arrived)
    queue_up(w, c.arrived)
    c.arrived += 1


@njit(cache=True)
def advance(w: State, epoch, until, seconds):
    """Let time pass to the next epoch at which a job is pending.

    Args:
        w: The world.
        epoch: The first instant at which a decision may be due.
        until: When to stop at the latest.
        seconds: Between epochs.

    Returns:
        ``DUE``, ``OVER`` or ``SHORT``, and the first instant at which a decision may be due from then on.
    """
    c = w.clock[0]
    while not over(w):
        due = epoch if c.pending else INF
        instant = w.events[0].at if c.events else INF
        if c.arrived < w.jobs.size:
            instant = min(instant, w.jobs[c.arrived].submitted)
        if min(instant, due, until) >= c.weather_until:
            return SHORT, epoch
        if instant <= min(due, until) or c.midway:
            if not c.midway:
                c.now, c.waited, c.midway = instant, c.pending > 0, 1
            while c.events and w.events[0].at <= c.now:
                if short(w):
                    return SHORT, epoch
                happen(w)
            c.midway = 0
            while c.arrived < w.jobs.size and w.jobs[c.arrived].submitted <= c.now:
                admit(w)
            set_speeds(w)
            if not c.waited:
                epoch = max(epoch, ceil(c.now / seconds) * seconds)
        elif due <= until:
            c.now = due
            return DUE, epoch
        else:
            c.now = until
            return OVER, epoch
    return OVER, epoch
