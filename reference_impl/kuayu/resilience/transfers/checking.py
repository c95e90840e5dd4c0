"""What a request about transfers must hold to before it can be answered: names, order, and what can be computed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.resilience.transfers.collectives import LOW, NAMELESS
from kuayu.resilience.transfers.depth import DEEPEST
from kuayu.resilience.transfers.ranges import check_ranges

Plain = Mapping[str, Any]

SHORTEST, LONGEST = 1e-6, 1e12
"""Seconds of a step, an interval or a horizon; beyond them nobody measures or foresees anything."""

LEAST, MOST = 1.0, 2.0**53
"""Bytes of a step or an exchange; a room may be smaller. Beyond, doubles do not tell bytes apart."""

SLOWEST, FASTEST = 1.0, 1e18
"""Bits a second; links between domains may be slower."""

MOST_STEPS = 120_000
"""Most steps and ranges that a plan looks at, over all streams."""

MOST_IN_ONE = 12_000
"""Most of them in one domain; shards of a domain are put in order one after the other."""

MOST_CELLS = 600_000
"""Most steps of a domain × domains × sources; domains are planned side by side, each as wide as the widest."""

MOST_RANGES = 12_000
"""Most missing ranges and transfers under way, over all streams."""

_LATE = "longer than anybody can foresee"
_SHORT = "shorter than anybody can tell"
_MUCH = "more than a double tells apart"


def check_shard_plan(request: Plain) -> None:
    """Check a request for a shard plan.

    Raises:
        RepeatedName: Streams, rooms or links share a name.
        UnknownName: A transfer comes from where no link leads to its stream.
        Impossible: A range contradicts itself or another, or there is more than can be planned at once.
    """
    streams, links = request["streams"], request["links"]
    found = repeated("/streams", [each["id"] for each in streams])
    found += repeated("/rooms", [each["domain"] for each in request["rooms"]], "/domain")
    refuse(RepeatedName, [*_repeated_links(links), *found])
    joined = {(link["source"], link["target"]) for link in links}
    refuse(UnknownName, _unlinked(streams, joined))
    found = [*_links(links), *_spans(request, "", ("interval", "horizon"))]
    found += [(f"/rooms/{at}/size", _MUCH) for at, room in enumerate(request["rooms"]) if room["size"] > MOST]
    for at, stream in enumerate(streams):
        place = f"/streams/{at}"
        found += [*_spans(stream, place, ("step_time",)), *_sizes(stream, place, "step_size")]
        found += [(f"{place}/due", _LATE)] if stream["due"] > LONGEST else []
        found += check_ranges(stream, place)
    refuse(Impossible, found)
    refuse(Impossible, _work(request))


def check_collective(request: Plain) -> None:
    """Check a request for a collective.

    Raises:
        RepeatedName: Domains or links share a name.
        UnknownName: A link or the order in use names a domain that is not there.
        Impossible: A pair of domains has no link, or what is in use contradicts itself.
    """
    domains, links, used = request["domains"], request["links"], request.get("in_use")
    refuse(RepeatedName, [*repeated("/domains", domains, ""), *_repeated_links(links)])
    known = set(domains)
    unknown = [
        (f"/links/{at}/{end}", f"{link[end]} is not among the domains")
        for at, link in enumerate(links)
        for end in ("source", "target")
        if link[end] not in known
    ]
    order = used["order"] if used else []
    unknown += [
        (f"/in_use/order/{at}", f"{name} is not among the domains")
        for at, name in enumerate(order)
        if name not in known
    ]
    refuse(UnknownName, unknown)
    found = [*_links(links), *_spans(request, "", ("interval", "step_time")), *_sizes(request, "", "exchange")]
    found += [(f"/{name}", _LATE) for name in ("switch_time", "node_latency") if request[name] > LONGEST]
    found += [("/node_bandwidth", _MUCH)] if request["node_bandwidth"] > FASTEST else []
    found += [("/node_bandwidth", "less than a bit a second")] if request["node_bandwidth"] < SLOWEST else []
    joined = {(link["source"], link["target"]) for link in links}
    bare = [f"{one} to {other}" for one in domains for other in domains if one != other and (one, other) not in joined]
    more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
    found += [("/links", f"there is no link from {bare[0]}{more}")] if bare else []
    found += _in_use(used, domains) if used else []
    refuse(Impossible, found)


def _in_use(used: Plain, domains: Sequence[str]) -> Iterator[Complaint]:
    if sorted(used["order"]) != sorted(domains):
        yield "/in_use/order", "it does not hold every domain once"
    if used["period"] != 1 and used["collective"] not in {LOW, NAMELESS}:
        yield "/in_use/period", "only where communication is low, steps lie between exchanges over domains"
    if used["since"] > LONGEST:
        yield "/in_use/since", _LATE


def _repeated_links(links: Sequence[Plain]) -> list[Complaint]:
    return repeated("/links", [f"{link['source']} to {link['target']}" for link in links], "/target")


def _links(links: Sequence[Plain]) -> Iterator[Complaint]:
    for at, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{at}/target", "a link leads from one domain to another"
        if link["latency"] > LONGEST:
            yield f"/links/{at}/latency", _LATE
        if max(link["bandwidths"], default=0.0) > FASTEST:
            places = [place for place, one in enumerate(link["bandwidths"]) if one > FASTEST]
            yield from ((f"/links/{at}/bandwidths/{place}", _MUCH) for place in places)


def _spans(whole: Plain, place: str, names: Sequence[str]) -> Iterator[Complaint]:
    for name in names:
        if not SHORTEST <= whole[name] <= LONGEST:
            yield f"{place}/{name}", _SHORT if whole[name] < SHORTEST else _LATE


def _sizes(whole: Plain, place: str, name: str) -> Iterator[Complaint]:
    if not LEAST <= whole[name] <= MOST:
        yield f"{place}/{name}", "less than a byte" if whole[name] < LEAST else _MUCH


def _unlinked(streams: Sequence[Plain], joined: set[tuple[str, str]]) -> Iterator[Complaint]:
    for at, stream in enumerate(streams):
        for number, each in enumerate(stream.get("transfers") or ()):
            if (each["source"], stream["target"]) not in joined:
                detail = f"there is no link from {each['source']} to {stream['target']}"
                yield f"/streams/{at}/transfers/{number}/source", detail


def _work(request: Plain) -> Iterator[Complaint]:
    """What would take too long, or more memory than there is."""
    steps: Counter[str] = Counter()
    ranges = 0
    for stream in request["streams"]:
        here = len(stream["missing"]) + len(stream.get("transfers") or ())
        steps[stream["target"]] += looked_at(stream, request["horizon"]) + here + 1
        ranges += here
    if ranges > MOST_RANGES:
        yield "/streams", f"{ranges} ranges, where {MOST_RANGES} are the most; ask for fewer streams at once"
    into = Counter(link["target"] for link in request["links"] if link["target"] in steps)
    most = max(steps.values(), default=0)
    together, cells = steps.total(), most * len(steps) * max(into.values(), default=1)
    for number, limit, what in (
        (together, MOST_STEPS, "steps"),
        (most, MOST_IN_ONE, "steps in one domain"),
        (cells, MOST_CELLS, "steps × domains × links into one"),
    ):
        if number > limit:
            hint = "ask for a shorter horizon, or for fewer streams at once"
            yield "/horizon", f"{number} {what} to be planned, where {limit} are the most; {hint}"


def looked_at(stream: Plain, horizon: float) -> int:
    """Most slots of a stream that a plan so far ahead can look at."""
    slots = DEEPEST + max(horizon - stream["due"], 0.0) / stream["step_time"] + 1
    return int(min(float(stream["remote_steps"] + (stream.get("local_steps") or 0)), slots))
