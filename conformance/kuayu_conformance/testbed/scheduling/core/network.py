"""Traffic of the compiled world: flows on links, who gets how much, what it costs; variation and tariffs.

1. Rates are max-min fair and piecewise constant (Bertsekas and Gallager, "Data Networks", 2nd edition, 1992, section
   6.5.2). Flows of one route and wish get the same, so that links are shared among *bundles* of them.
2. What changes is marked, and :func:`rebalance` shares anew the links that it touches and those that flows join to
   them.
3. Sums are made in the order of ``engine.traffic``, so that the same numbers come out to the last bit.
"""

from numba import njit

from kuayu_conformance.testbed.scheduling.core.layout import INF, NONE, TOUCH, State, append, free_node, sort_by, unlink

_BIT = 0.5
"""Less than that is nothing: what rounding leaves of a transfer."""


@njit(cache=True)
def earlier(events, a, b):
    """Whether an event comes before another: by time, then by their making."""
    return events[a].at < events[b].at or (events[a].at == events[b].at and events[a].made < events[b].made)


@njit(cache=True)
def at(events, clock, instant, kind, what, which, when):
    """At an instant, not before now, something happens; never if the instant is infinite."""
    if not instant < INF:
        return
    c = clock[0]
    c.made += 1
    place = c.events
    c.events += 1
    instant = max(instant, c.now)
    while place > 0:
        above = (place - 1) // 2
        if events[above].at <= instant:  # made before, so it stays before at the same instant
            break
        events[place] = events[above]
        place = above
    e = events[place]
    e.at, e.made, e.kind, e.what, e.which, e.when = instant, c.made, kind, what, which, when


@njit(cache=True)
def pop(events, clock):
    """Take the first event out of the heap; it stands behind the last one then, at the place that is returned."""
    c = clock[0]
    c.events -= 1
    last = c.events
    if last == 0:
        return 0
    first = events[0].at, events[0].made, events[0].kind, events[0].what, events[0].which, events[0].when
    moved = events[last].at, events[last].made
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and earlier(events, below + 1, below):
            below += 1
        if not (events[below].at < moved[0] or (events[below].at == moved[0] and events[below].made < moved[1])):
            break
        events[place] = events[below]
        place = below
    events[place] = events[last]
    e = events[last]
    e.at, e.made, e.kind, e.what, e.which, e.when = first
    return last


@njit(cache=True)
def factor_seconds(w: State, instant):
    """Integral of the tariff's factor from the beginning of the scenario."""
    days = instant // 86_400.0
    left, total = instant - days * 86_400.0, days * w.clock[0].whole_day
    for step in range(w.tariff.shape[1]):
        length = w.tariff[0, step]
        total += min(left, length) * w.tariff[1, step]
        left = max(left - length, 0.0)
    return total


@njit(cache=True)
def factored(w: State, now):
    """The same, computed once for all flows of an instant."""
    c = w.clock[0]
    if c.factored_at != now:
        c.factored_at, c.factored = now, factor_seconds(w, now)
    return c.factored


@njit(cache=True)
def look(w: State, link, now):
    """See to it that the row of the variation table that holds now is the one seen last."""
    row = w.links[link]
    if w.variation_at[row.seen] > now:
        row.seen = row.begin
    while row.seen + 1 < row.end and w.variation_at[row.seen + 1] <= now:
        row.seen += 1


@njit(cache=True)
def capacity_now(w: State, link, now):
    """Bits a second that a link offers to all; nothing while it is cut."""
    look(w, link, now)
    row = w.links[link]
    return 0.0 if row.cut else row.capacity * w.variation_factor[row.seen]


@njit(cache=True)
def offered(w: State, now, capacities):
    """Bits a second that each link offers to all, into ``capacities``."""
    for link in range(w.links.size):
        capacities[link] = capacity_now(w, link, now)


@njit(cache=True)
def changes_next(w: State, link):
    """When the variation changes next after what was seen last; infinite if never."""
    row = w.links[link]
    return w.variation_at[row.seen + 1] if row.seen + 1 < row.end else INF


@njit(cache=True)
def charge(w: State, flow, now):
    """Account for what a flow has carried."""
    f = w.flows[flow]
    if f.occupied <= 0.0 or now <= f.since:
        return
    bits = f.occupied * (now - f.since)
    costs = f.occupied * (factored(w, now) - f.paid)
    begin = w.route_begin[f.source, f.target]
    for place in range(begin, begin + w.route_count[f.source, f.target]):
        link = w.links[w.route_links[place]]
        link.bits += bits
        link.money += costs * link.tariff
        w.jobs[f.owner].money += costs * link.tariff


@njit(cache=True)
def settle(w: State, flow, now):
    """Account for a flow until now."""
    charge(w, flow, now)
    f = w.flows[flow]
    f.bits -= f.rate * (now - f.since)
    f.since, f.paid = now, factored(w, now)


@njit(cache=True)
def mark(w: State, link):
    """The shares of a link are to be looked at."""
    if not w.links[link].changed:
        w.links[link].changed = 1
        w.changed[w.clock[0].changed] = link
        w.clock[0].changed += 1


@njit(cache=True)
def bundle_of(w: State, source, target, wish):
    """The bundle of a route and wish, made if there is none."""
    bundle = w.route_first[source, target]
    while bundle != NONE:
        if w.bundles[bundle].wish == wish:
            return bundle
        bundle = w.bundles[bundle].after
    c = w.clock[0]
    bundle, c.free_bundle, c.used_bundles = free_node(w.bundles, c.free_bundle, c.used_bundles)
    b = w.bundles[bundle]
    b.source, b.target, b.wish, b.count, b.rate, b.grown = source, target, wish, 0, 0.0, 1
    b.first = b.last = NONE
    b.joined = 0
    b.after = w.route_first[source, target]
    w.route_first[source, target] = bundle
    longest = w.incidence.size // w.bundles.size
    begin = w.route_begin[source, target]
    for step in range(w.route_count[source, target]):
        node, link = bundle * longest + step, w.links[w.route_links[begin + step]]
        w.incidence[node].before, w.incidence[node].after = NONE, link.first
        if link.first != NONE:
            w.incidence[link.first].before = node
        link.first = node
    return bundle


@njit(cache=True)
def drop_bundle(w: State, bundle):
    """A bundle without flows is no more."""
    b = w.bundles[bundle]
    longest = w.incidence.size // w.bundles.size
    begin = w.route_begin[b.source, b.target]
    for step in range(w.route_count[b.source, b.target]):
        node = bundle * longest + step
        before, after = w.incidence[node].before, w.incidence[node].after
        if before == NONE:
            w.links[w.route_links[begin + step]].first = after
        else:
            w.incidence[before].after = after
        if after != NONE:
            w.incidence[after].before = before
    if w.route_first[b.source, b.target] == bundle:
        w.route_first[b.source, b.target] = b.after
    else:
        other = w.route_first[b.source, b.target]
        while w.bundles[other].after != bundle:
            other = w.bundles[other].after
        w.bundles[other].after = b.after
    b.after = w.clock[0].free_bundle
    w.clock[0].free_bundle = bundle


@njit(cache=True)
def open_flow(w: State, source, target, wish, bits, owner):
    """Place of a new flow, which has rate zero until links are shared anew."""
    c = w.clock[0]
    flow, c.free_flow, c.used_flows = free_node(w.flows, c.free_flow, c.used_flows)
    f = w.flows[flow]
    c.numbers += 1
    c.flows += 1
    f.number, f.source, f.target, f.wish, f.bits, f.owner = c.numbers, source, target, wish, bits, owner
    f.rate = f.occupied = 0.0
    f.since, f.paid = c.now, factored(w, c.now)
    f.data, f.site, f.looked_at, f.first, f.last = NONE, NONE, INF, NONE, NONE
    bundle = bundle_of(w, source, target, wish)
    b = w.bundles[bundle]
    f.bundle = bundle
    append(w.flows, b, flow)
    b.count += 1
    b.grown = 1
    begin = w.route_begin[source, target]
    for place in range(begin, begin + w.route_count[source, target]):
        w.links[w.route_links[place]].count += 1
        mark(w, w.route_links[place])
    return flow


@njit(cache=True)
def close_flow(w: State, flow):
    """End a flow."""
    c = w.clock[0]
    settle(w, flow, c.now)
    f = w.flows[flow]
    b = w.bundles[f.bundle]
    unlink(w.flows, b, flow)
    b.count -= 1
    if b.count == 0:
        drop_bundle(w, f.bundle)
    begin = w.route_begin[f.source, f.target]
    for place in range(begin, begin + w.route_count[f.source, f.target]):
        w.links[w.route_links[place]].count -= 1
        mark(w, w.route_links[place])
    f.number = 0
    f.after = c.free_flow
    c.free_flow = flow
    c.flows -= 1


@njit(cache=True)
def hold(w: State, flow, occupied):
    """From now on a flow occupies so much of what it is granted."""
    settle(w, flow, w.clock[0].now)
    w.flows[flow].occupied = min(occupied, w.flows[flow].rate)


@njit(cache=True)
def through(w: State, flow):
    """Whether a transfer has moved everything."""
    settle(w, flow, w.clock[0].now)
    return w.flows[flow].bits <= max(_BIT, w.flows[flow].rate * 1e-6)


@njit(cache=True)
def update_next_flow_rates(w: State):
    """See to it that ``hope`` of links is what one more flow could have when this was first asked at this instant."""
    c = w.clock[0]
    if c.shares_at != c.now:
        for link in range(w.links.size):
            w.links[link].hope = capacity_now(w, link, c.now) / (1.0 + w.links[link].count)
        c.shares_at = c.now


@njit(cache=True)
def share(w: State, source, target):
    """Bits a second that one more flow may hope for: the least along its route; infinite at home."""
    if source == target:
        return INF
    begin, count = w.route_begin[source, target], w.route_count[source, target]
    if count == 0:
        return 0.0
    least = INF
    for place in range(begin, begin + count):
        least = min(least, w.links[w.route_links[place]].hope)
    return least


@njit(cache=True)
def joined(w: State):
    """Bundles that share links with what changed, directly or by others, in the order of their first flows.

    Their places are the first ``n`` of ``scratch[0]``; links with flows among them, in order, the first ``m`` of
    ``scratch[1]``. Returns both numbers.
    """
    links, bundles = w.scratch[1], w.scratch[0]
    longest = w.incidence.size // w.bundles.size
    c = w.clock[0]
    c.shared += 2
    n, m = 0, c.changed
    for place in range(m):
        links[place] = w.changed[place]
        w.links[links[place]].changed = 0
        w.links[links[place]].joined = c.shared
    c.changed = 0
    ahead = 0
    while ahead < m:
        node = w.links[links[ahead]].first
        ahead += 1
        while node != NONE:
            bundle = node // longest
            b = w.bundles[bundle]
            if not b.joined:
                b.joined = 1
                bundles[n] = bundle
                n += 1
                begin = w.route_begin[b.source, b.target]
                for place in range(begin, begin + w.route_count[b.source, b.target]):
                    other = w.route_links[place]
                    if w.links[other].joined != c.shared:
                        w.links[other].joined = c.shared
                        links[m] = other
                        m += 1
            node = w.incidence[node].after
    busy = 0
    for place in range(m):  # in order, those with flows; ``kept`` never gets ahead of ``place``
        link = links[place]
        if w.links[link].first != NONE:
            spot = busy
            while spot > 0 and links[spot - 1] > link:
                links[spot] = links[spot - 1]
                spot -= 1
            links[spot] = link
            busy += 1
    numbers = w.scratch[2]
    for place in range(n):
        numbers[place] = w.flows[w.bundles[bundles[place]].first].number
    sort_by(numbers, bundles, n)
    for place in range(n):
        w.bundles[bundles[place]].joined = 0
        w.bundles[bundles[place]].order = place
    return n, busy


@njit(cache=True)
def level_push(levels, links, size, level, link):
    """Add a level of a link to the heap of levels."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if levels[above] < level or (levels[above] == level and links[above] < link):
            break
        levels[place], links[place] = levels[above], links[above]
        place = above
    levels[place], links[place] = level, link


@njit(cache=True)
def level_sift(levels, links, size, level, link):
    """Put a level of a link in the place of the first one of the heap."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (
            levels[other] < levels[below] or (levels[other] == levels[below] and links[other] < links[below])
        ):
            below = other
        if level < levels[below] or (level == levels[below] and link < links[below]):
            break
        levels[place], links[place] = levels[below], links[below]
        place = below
    levels[place], links[place] = level, link


@njit(cache=True)
def fair_rates(w: State, n):
    """Rates of the first ``n`` bundles of ``scratch[0]`` by progressive filling, into ``levels[1]``.

    All rise together, each until its wish is met or a link of its route is full. The level at which a link is full only
    rises while others settle, so that what the heap shows is looked at again before it counts.
    """
    bundles, modest, heap = w.scratch[0], w.scratch[2], w.scratch[3]
    levels = w.levels[0]
    longest = w.incidence.size // w.bundles.size
    size = 0
    for place in range(n):
        b = w.bundles[bundles[place]]
        b.settled = 0
        begin = w.route_begin[b.source, b.target]
        for spot in range(begin, begin + w.route_count[b.source, b.target]):
            link = w.links[w.route_links[spot]]
            if link.joined == w.clock[0].shared:
                link.joined, link.rising = link.joined + 1, 0
                link.left = link.offered if not link.cut else 0.0
                heap[size] = w.route_links[spot]
                size += 1
            link.rising += b.count
    for place in range(size):
        link = heap[place]
        level_push(levels, heap, place, w.links[link].left / w.links[link].rising, link)
    for place in range(n):  # the least wish last; of the same, the first bundle first
        wish = w.bundles[bundles[place]].wish
        spot = place
        while spot > 0 and w.bundles[bundles[modest[spot - 1]]].wish < wish:
            modest[spot] = modest[spot - 1]
            spot -= 1
        modest[spot] = place
    left = n
    while size > 0:
        level, number = levels[0], heap[0]
        link = w.links[number]
        if link.rising == 0:
            size -= 1
            if size:
                level_sift(levels, heap, size, levels[size], heap[size])
            continue
        present = max(link.left, 0.0) / link.rising
        if present > level:
            level_sift(levels, heap, size, present, number)
            continue
        while w.bundles[bundles[modest[left - 1]]].settled:
            left -= 1
        wish = w.bundles[bundles[modest[left - 1]]].wish
        rate = min(wish, present)
        if wish <= present:
            grant(w, bundles[modest[left - 1]], rate)
        else:
            # in the order of bundles, as sums of what is left depend on it
            count = 0
            node = link.first
            while node != NONE:
                bundle = node // longest
                if not w.bundles[bundle].settled:
                    order = w.bundles[bundle].order
                    spot = count
                    while spot > 0 and w.scratch[4, spot - 1] > order:
                        w.scratch[4, spot] = w.scratch[4, spot - 1]
                        spot -= 1
                    w.scratch[4, spot] = order
                    count += 1
                node = w.incidence[node].after
            for spot in range(count):
                grant(w, bundles[w.scratch[4, spot]], rate)


@njit(cache=True)
def grant(w: State, bundle, rate):
    """A bundle settles at a rate."""
    b = w.bundles[bundle]
    w.levels[1, b.order] = rate
    b.settled = 1
    begin = w.route_begin[b.source, b.target]
    for spot in range(begin, begin + w.route_count[b.source, b.target]):
        link = w.links[w.route_links[spot]]
        link.rising -= b.count
        link.left -= rate * b.count


@njit(cache=True)
def rebalance(w: State):
    """Share links anew after what has changed; how many flows have another rate now, which are in ``scratch[4]``."""
    c = w.clock[0]
    if c.changed == 0:
        return 0
    n, m = joined(w)
    if n == 0:
        return 0
    for place in range(m):
        link = w.links[w.scratch[1, place]]
        if link.until <= c.now:
            look(w, w.scratch[1, place], c.now)
            link.until = changes_next(w, w.scratch[1, place])
            link.offered = link.capacity * w.variation_factor[link.seen]
            at(w.events, w.clock, link.until, TOUCH, w.scratch[1, place], 0, 0.0)
    fair_rates(w, n)
    other = 0
    for place in range(n):
        b = w.bundles[w.scratch[0, place]]
        rate = w.levels[1, place]
        if b.grown or rate != b.rate:
            flow = b.first
            while flow != NONE:
                if rate != w.flows[flow].rate:
                    w.scratch[4, other] = flow
                    other += 1
                flow = w.flows[flow].after
        b.rate, b.grown = rate, 0
    for place in range(1, other):  # by number: bundles are sorted by their first, so that this is nearly done
        flow = w.scratch[4, place]
        spot = place
        while spot > 0 and w.flows[w.scratch[4, spot - 1]].number > w.flows[flow].number:
            w.scratch[4, spot] = w.scratch[4, spot - 1]
            spot -= 1
        w.scratch[4, spot] = flow
    for place in range(other):
        flow = w.scratch[4, place]
        f = w.flows[flow]
        rate = w.bundles[f.bundle].rate
        settle(w, flow, c.now)
        f.rate = rate
        f.occupied = rate if f.bits < INF else min(f.occupied, rate)
    return other
