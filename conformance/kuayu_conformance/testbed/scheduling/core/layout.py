"""What the compiled world consists of: records and arrays, by number, lists within them, and handles of them.

1. **Numbers.** Everything has a number: domains, pools, kinds of accelerators, links, data sets and jobs, in the
   scenario's order; -1 is none.
2. **State.** It is a tuple of arrays, so that compiled functions take it as it is and Python reads the same memory.
3. **Space.** What there may be more of than expected (runs, flows, events, …) lies in arrays that are doubled in time:
   compiled functions lengthen nothing (:func:`.world.run_arrays`).
4. **Lists.** They lie within arrays, linked by number in both directions: an owner has ``first`` and ``last``, a node
   the others. A node is taken from those that were given back, else from behind those that were ever used: where a
   world begins or grows, memory that nobody needs is not written to.
5. **Handles.** Compiled functions are called with handles of these tuples (:mod:`.handles`).

SI units, as in the engine: seconds, bits a second, bytes; work in device seconds of the reference device.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.values import Split

NONE = -1
INF = np.inf

ABSENT, PENDING, STAGING, RESTARTING, RUNNING, SAVING, FINISHED = range(7)
"""Phases of a job, as ``engine.state.Phase``."""

ALONE, SYNCHRONOUS, PERIODIC, PIPELINE = range(4)
"""How a job is spread over domains, in the order of ``values.Split``."""

SPLITS = tuple(Split)
"""The same as values."""

RUN, SAVED, FINISH, CHECK, TOUCH, FAIL, REPAIR, CUT, HEAL, CLAIM, UNCLAIM = range(11)
"""Kinds of events: a job runs, is saved, ends; a transfer is looked at; a link changes; a node fails and is back; a
domain is cut off and joined again, claims too much and no longer."""

Records = NDArray[Any]
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

POOL = np.dtype(
    [
        ("site", "i8"),
        ("type", "i8"),
        ("devices", "i8"),
        ("per_node", "i8"),
        ("working", "i8"),
        ("free", "i8"),
        ("first", "i8"),  # who holds devices, in the order in which they came
        ("last", "i8"),
        ("there", "f8"),  # device seconds that were there, held, computed, and work
        ("taken", "f8"),
        ("computing", "f8"),
        ("work", "f8"),
        ("cut_working", "i8"),  # what was true when the domain was cut off
        ("cut_free", "i8"),
    ],
    align=True,
)
SITE = np.dtype([("speed", "f8"), ("cut", "i8"), ("claim", "f8")], align=True)
LINK = np.dtype(
    [
        ("capacity", "f8"),
        ("tariff", "f8"),
        ("source", "i8"),  # number of the domain, or none
        ("target", "i8"),
        ("begin", "i8"),  # of its variation in the table
        ("seen", "i8"),  # row of the table that held last
        ("end", "i8"),
        ("offered", "f8"),
        ("until", "f8"),
        ("count", "i8"),
        ("cut", "i8"),
        ("changed", "i8"),
        ("first", "i8"),  # bundles on it
        ("hope", "f8"),
        ("bits", "f8"),  # carried so far
        ("money", "f8"),
        ("left", "f8"),  # scratch of max-min sharing
        ("rising", "i8"),
        ("joined", "i8"),  # the time at which it was last among those that were shared; odd once it is filled
    ],
    align=True,
)
JOB = np.dtype(
    [
        ("submitted", "f8"),
        ("home", "i8"),
        ("priority", "i8"),
        ("requested", "i8"),
        ("minimum", "i8"),
        ("maximum", "i8"),
        ("memory", "f8"),
        ("profile", "i8"),
        ("gradient", "f8"),
        ("boundary", "f8"),
        ("checkpoint", "f8"),
        ("step", "f8"),
        ("serial", "f8"),
        ("used", "f8"),
        ("work", "f8"),
        ("stated", "f8"),
        ("data", "i8"),
        ("periodic", "i8"),  # whether it may be split and reconciled now and then
        ("phase", "i8"),
        ("known_used", "f8"),
        ("stated_work", "f8"),
        ("done", "f8"),
        ("rate", "f8"),
        ("since", "f8"),
        ("saved", "f8"),
        ("expected", "f8"),
        ("ready", "f8"),
        ("resumed", "f8"),
        ("interrupted", "f8"),
        ("interval", "f8"),
        ("pool", "i8"),
        ("devices", "i8"),
        ("version", "i8"),
        ("checkpoint_at", "i8"),
        ("run", "i8"),
        ("waits", "i8"),  # transfers that it waits for: the first of them, and how many
        ("missing", "i8"),
        ("fresh", "i8"),
        ("finished", "f8"),
        ("lost", "f8"),
        ("stops", "i8"),
        ("moves", "i8"),
        ("failures", "i8"),
        ("money", "f8"),
    ],
    align=True,
)
DATASET = np.dtype([("size", "f8"), ("pinned", "i8")], align=True)
ACTIVE = np.dtype(
    [
        ("job", "i8"),
        ("count", "i8"),
        ("split", "i8"),
        ("period", "i8"),
        ("penalty", "f8"),
        ("then_count", "i8"),
        ("then_split", "i8"),
        ("then_period", "i8"),
        ("then_penalty", "f8"),
        ("then_seconds", "f8"),  # until it runs there, and its rate then, as expected
        ("then_rate", "f8"),
        ("devices", "i8"),
        ("begin", "f8"),
        ("running", "f8"),
        ("stopped", "f8"),
        ("computing", "f8"),
        ("flows", "i8"),
        ("before", "i8"),
        ("after", "i8"),
    ],
    align=True,
)
HOLDER = np.dtype([("job", "i8"), ("devices", "i8"), ("before", "i8"), ("after", "i8")], align=True)
FLOW = np.dtype(
    [
        ("number", "i8"),
        ("source", "i8"),
        ("target", "i8"),
        ("wish", "f8"),
        ("bits", "f8"),
        ("owner", "i8"),
        ("rate", "f8"),
        ("occupied", "f8"),
        ("since", "f8"),
        ("paid", "f8"),
        ("bundle", "i8"),
        ("before", "i8"),  # in its bundle
        ("after", "i8"),
        ("data", "i8"),
        ("site", "i8"),
        ("looked_at", "f8"),
        ("first", "i8"),  # who waits for it
        ("last", "i8"),
    ],
    align=True,
)
BUNDLE = np.dtype(
    [
        ("source", "i8"),
        ("target", "i8"),
        ("wish", "f8"),
        ("count", "i8"),
        ("rate", "f8"),
        ("grown", "i8"),
        ("first", "i8"),  # its flows
        ("last", "i8"),
        ("after", "i8"),  # the next of its route
        ("joined", "i8"),
        ("order", "i8"),
        ("settled", "i8"),
    ],
    align=True,
)
INCIDENCE = np.dtype([("before", "i8"), ("after", "i8")], align=True)
WAIT = np.dtype(
    [("job", "i8"), ("flow", "i8"), ("before", "i8"), ("after", "i8"), ("next", "i8"), ("previous", "i8")], align=True
)
EVENT = np.dtype(
    [("at", "f8"), ("made", "i8"), ("kind", "i8"), ("what", "i8"), ("which", "i8"), ("when", "f8")], align=True
)
FAULT = np.dtype([("at", "f8"), ("pool", "i8"), ("place", "f8"), ("repaired", "f8")], align=True)
PERIOD = np.dtype(
    [
        ("job", "i8"),
        ("count", "i8"),
        ("split", "i8"),
        ("period", "i8"),
        ("begin", "f8"),
        ("running", "f8"),
        ("stopped", "f8"),
        ("end", "f8"),
    ],
    align=True,
)
CLOCK = np.dtype(
    [
        ("now", "f8"),
        ("made", "i8"),
        ("events", "i8"),
        ("arrived", "i8"),
        ("pending", "i8"),
        ("queue_changes", "i8"),
        ("changes", "i8"),
        ("numbers", "i8"),  # flows so far
        ("counted", "f8"),  # until when device seconds are counted
        ("factored_at", "f8"),
        ("factored", "f8"),
        ("shares_at", "f8"),
        ("changed", "i8"),  # links whose shares are to be looked at
        ("shared", "i8"),  # names the last time that links were shared
        ("fresh", "i8"),
        ("first", "i8"),  # jobs with devices, in the order in which they were given them
        ("last", "i8"),
        ("runs", "i8"),
        ("free_run", "i8"),  # the first of what was given back, and how many of an array were ever used
        ("free_holder", "i8"),
        ("free_flow", "i8"),
        ("free_bundle", "i8"),
        ("free_wait", "i8"),
        ("used_runs", "i8"),
        ("used_holders", "i8"),
        ("used_flows", "i8"),
        ("used_bundles", "i8"),
        ("used_waits", "i8"),
        ("periods", "i8"),
        ("faults", "i8"),
        ("variation_until", "f8"),
        ("copy_lifetime", "f8"),
        ("overlap", "f8"),
        ("micro_batches", "f8"),
        ("storage", "f8"),
        ("starting", "f8"),
        ("between_faults", "f8"),
        ("whole_day", "f8"),
        ("flows", "i8"),
        ("midway", "i8"),  # an instant was left before all had happened; whether a job was pending before it
        ("waited", "i8"),
        ("due", "i8"),  # a decision is to be made; whether time was passing, and the first instant of the next decision
        ("passing", "i8"),
        ("epoch", "f8"),
    ],
    align=True,
)


class State(NamedTuple):
    """Arrays of a world. Sizes: sites S, pools P, types T, links W, jobs J, data sets D; others grow.

    Attributes:
        clock: (1,) of ``CLOCK``: the instant, counters, heads of free lists, constants.
        pools: (P,) of ``POOL``.
        sites: (S,) of ``SITE``.
        memory: (T,) bytes of a device.
        indices: (T, profiles) compute indices.
        links: (W,) of ``LINK``.
        route_begin: (S, S) where the links of a route begin in ``route_links``.
        route_count: (S, S) how many there are; none at home or without a way.
        route_links: Links of all routes.
        round_trip: (S, S) seconds.
        variation_at: When a factor of a link begins, links one after the other.
        variation_factor: Share of the capacity from then on.
        tariff: (2, steps) hours that each factor of a day lasts, in seconds; and the factors.
        jobs: (J,) of ``JOB``.
        rates: (J, T) work a second on what a job asks for; as ``Register.rates``.
        datasets: (D,) of ``DATASET``.
        copies: (D, S) until when a copy is kept; infinite where it is from the beginning, -1 where there is none.
        under_way: (D, S) the flow that brings it.
        faults: Faults to come, of ``FAULT``.
        pending: (J,) jobs that wait, by priority and then by number.
        changed: (L,) links whose shares are to be looked at.
        fresh: (J,) jobs whose speed is to be set.
        events: Heap of ``EVENT``.
        runs: Jobs with devices, of ``ACTIVE``.
        run_pools, run_devices: (runs, S) what each holds.
        then_pools, then_devices: (runs, S) what it goes on with when it moves.
        run_flows: (runs, 2 S) its flows between domains.
        run_holders: (runs, P) its entries among ``holders``.
        holders: Who holds devices of a pool, of ``HOLDER``.
        flows: Of ``FLOW``.
        bundles: Flows of one route and wish, of ``BUNDLE``.
        route_first: (S, S) bundles of a route.
        incidence: (bundles × longest route) places of bundles on links, of ``INCIDENCE``.
        waits: Pairs of a job and a transfer, of ``WAIT``.
        periods: What jobs held, of ``PERIOD``.
        period_pools, period_devices: (periods, S).
        scratch: (5, …) whole numbers to work with.
        levels: (2, …) numbers to work with.
    """

    clock: Records
    pools: Records
    sites: Records
    memory: Floats
    indices: Floats
    links: Records
    route_begin: Numbers
    route_count: Numbers
    route_links: Numbers
    round_trip: Floats
    variation_at: Floats
    variation_factor: Floats
    tariff: Floats
    jobs: Records
    rates: Floats
    datasets: Records
    copies: Floats
    under_way: Numbers
    faults: Records
    pending: Numbers
    changed: Numbers
    fresh: Numbers
    events: Records
    runs: Records
    run_pools: Numbers
    run_devices: Numbers
    then_pools: Numbers
    then_devices: Numbers
    run_flows: Numbers
    run_holders: Numbers
    holders: Records
    flows: Records
    bundles: Records
    route_first: Numbers
    incidence: Records
    waits: Records
    periods: Records
    period_pools: Numbers
    period_devices: Numbers
    scratch: Numbers
    levels: Floats


COUNTS = np.dtype(
    [
        ("candidates", "i8"),
        ("members", "i8"),
        ("orders", "i8"),
        ("refused", "i8"),
        ("decisions", "i8"),
        ("refusals", "i8"),
        ("seen", "i8"),  # the revision of the world at which a plan was made (B4), or nothing was ordered (B3c)
        ("idle_until", "f8"),  # when those who then wait look again
    ],
    align=True,
)
CANDIDATE = np.dtype(
    [("begin", "i8"), ("count", "i8"), ("split", "i8"), ("period", "i8"), ("penalty", "f8")], align=True
)


class Workspace(NamedTuple):
    """What a baseline knows beside the world, and works with; numbers of sites S, pools P, jobs J.

    Attributes:
        counts: (1,) of ``COUNTS``.
        candidate_begin: (J,) first candidate of a job in ``candidates``; -1 before it was looked at.
        candidate_count: (J,) how many it has.
        queue_site: (J,) domain in whose queue it stands; in B2, the one that is asked first.
        candidates: Of ``CANDIDATE``.
        member_pools, member_devices: What candidates hold.
        penalty: (S + 1,) times as many steps that a split over so many domains takes at ``PERIOD``.
        nearest: (S, S) other domains by round-trip time; -1 where there is no more.
        site_begin, site_pools: Pools of a domain.
        trusted: (P,) until when reports of a pool are not believed.
        orders: (2, …) job and candidate of each order.
        refused: Candidates that were refused since devices were not free.
        free: (P,) devices that may be counted upon.
        known: (P,) how many rows of ``ends`` hold; -1 where it is not known yet.
        ends, freed: (P, …) when devices are given back, in order, and how many then.
        reserved: (P,) reservations of a pool.
        starts, extras: (P, S + 2) when each begins, and devices that are free then beside those that it needs.
        line, next: (S,) and (J,) jobs behind the first that waits in a domain; ``next`` lists candidates elsewhere.
        last: (S,) the last of them; -2 where nobody waits.
        sites: (S,) domains in which somebody waits, in the order in which that was found.
        flags: (J,) whether a job is a candidate in its domain.
        scores: What candidates of a job are chosen by.
        finish: When it would be finished in them.
        ahead: (J,) seconds that all devices need for what stands before a job in the queue.
        weights: (2,) of B3c: of money, and of what a job lacks in advantage.
        advantages: (T, profiles) comparative advantage.
        tariffs: (steps, S, S) money for a bit that is moved, by the step of the day.
        planned: (J,) of B4: the pool in which a job is to start; -1 without.
        value: (J,) what it is worth there.
        sources: (J, S) of B4: whether a domain held the data of a job when that was first seen; -1 before.
    """

    counts: Records
    candidate_begin: Numbers
    candidate_count: Numbers
    queue_site: Numbers
    candidates: Records
    member_pools: Numbers
    member_devices: Numbers
    penalty: Floats
    nearest: Numbers
    site_begin: Numbers
    site_pools: Numbers
    trusted: Floats
    orders: Numbers
    refused: Numbers
    free: Numbers
    known: Numbers
    ends: Floats
    freed: Numbers
    reserved: Numbers
    starts: Floats
    extras: Numbers
    line: Numbers
    next: Numbers
    last: Numbers
    sites: Numbers
    flags: Numbers
    scores: Floats
    finish: Floats
    ahead: Floats
    weights: Floats
    advantages: Floats
    tariffs: Floats
    planned: Numbers
    value: Floats
    sources: Numbers


FEW = 48
"""So many are sorted soonest by putting each in its place."""


@njit(cache=True)
def sort_by(keys, values, count):
    """Put the first so many keys in ascending order, and values with them."""
    if count > FEW:
        order = np.argsort(keys[:count])
        keys[:count], values[:count] = keys[:count][order], values[:count][order]
        return
    for place in range(1, count):
        key, value, spot = keys[place], values[place], place
        while spot > 0 and keys[spot - 1] > key:
            keys[spot], values[spot] = keys[spot - 1], values[spot - 1]
            spot -= 1
        keys[spot], values[spot] = key, value


@njit(cache=True)
def free_node(nodes, free, used):
    """A node to take, by the first that was given back and how many were ever used; and both of these from then on."""
    if free != NONE:
        return free, nodes[free].after, used
    assert used < nodes.size
    return used, NONE, used + 1


@njit(cache=True)
def append(nodes, owner, node):
    """A node becomes the last of an owner's list."""
    nodes[node].before, nodes[node].after = owner.last, NONE
    if owner.last == NONE:
        owner.first = node
    else:
        nodes[owner.last].after = node
    owner.last = node


@njit(cache=True)
def unlink(nodes, owner, node):
    """A node is taken out of an owner's list."""
    before, after = nodes[node].before, nodes[node].after
    if before == NONE:
        owner.first = after
    else:
        nodes[before].after = after
    if after == NONE:
        owner.last = before
    else:
        nodes[after].before = before
