"""What a request about transfers must hold to before it can be answered.

1. Names: streams, rooms, links and domains are each named once; a transfer comes over a link that leads to its stream,
   and every pair of domains of a collective has a link.
2. Ranges that a stream misses or that are under way begin before they end, lie in the stream and do not overlap.
3. Spans and sizes are such as can be measured, foreseen and told apart by a double.
4. Size: what would take longer, or more memory, than anybody has is refused, with what to ask fewer of.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.resilience.transfers.collectives import LOW_COMMUNICATION, UNKNOWN_KIND
from kuayu.resilience.transfers.shard_scheduler import MAX_DEPTH

if TYPE_CHECKING:
    from kuayu_schemas import documents


SLACK_SHARE = 1e-6
"""Share of a step that ranges may be off, being sums of shares of steps."""

ROUNDING_SHARE = 1e-15
"""Share of all bytes of a stream that their number may be off, being a product."""


def check_ranges(stream: "documents.DataStream", place: str) -> Iterator[Complaint]:
    """Ranges that end before they begin, overlap, or lie beyond the last step."""
    size, missing, transfers = stream["step_size"], stream["missing"], stream.get("transfers") or ()
    slack, total = SLACK_SHARE * size, stream["remote_steps"] * size
    named: list[tuple[str, documents.ByteRange]] = [
        *((f"{place}/missing/{number}", entry) for number, entry in enumerate(missing)),
        *((f"{place}/transfers/{number}", entry) for number, entry in enumerate(transfers)),
    ]
    for where, entry in named:
        if entry["end"] <= entry["begin"]:
            yield f"{where}/end", "it is not after the begin"
        elif entry["end"] > total * (1 + ROUNDING_SHARE) + slack:
            yield f"{where}/end", f"{stream['remote_steps']} steps from afar end before"
    for number, entry in enumerate(transfers):
        if entry["left"] > (entry["end"] - entry["begin"]) * (1 + SLACK_SHARE):
            yield f"{place}/transfers/{number}/left", "more than all of it"
    for number, (one, other) in enumerate(pairwise(missing), start=1):
        if other["begin"] < one["end"] - slack:
            yield f"{place}/missing/{number}/begin", "ranges rise and lie apart"
    yield from _overlaps(named, slack)


def _overlaps(named: "Sequence[tuple[str, documents.ByteRange]]", slack: float) -> Iterator[Complaint]:
    """What is under way although it is missing, or under way a second time."""
    end, under_way = float("-inf"), False
    for where, entry in sorted(named, key=lambda pair: float(pair[1]["begin"])):
        moves = "/transfers/" in where
        if (moves or under_way) and entry["begin"] < end - slack:
            yield f"{where}/begin", "what is under way overlaps what is missing or under way"
        if entry["end"] > end:
            end, under_way = entry["end"], moves


MIN_SPAN_S, MAX_SPAN_S = 1e-6, 1e12
"""Seconds of a step, an interval or a horizon; beyond them nobody measures or foresees anything."""

MIN_BYTES, MAX_BYTES = 1.0, 2.0**53
"""Bytes of a step or an exchange; a room may be smaller. Beyond, doubles do not tell bytes apart."""

MIN_BANDWIDTH, MAX_BANDWIDTH = 1.0, 1e18
"""Bits a second; links between domains may be slower."""

MAX_STEPS = 120_000
"""Most steps and ranges that a plan looks at, over all streams."""

MAX_IN_DOMAIN = 12_000
"""Most of them in one domain; shards of a domain are put in order one after the other."""

MAX_CELLS = 600_000
"""Most steps of a domain × domains × sources; domains are planned side by side, each as wide as the widest."""

MAX_RANGES = 12_000
"""Most missing ranges and transfers under way, over all streams."""

_TOO_LONG = "longer than anybody can foresee"
_TOO_SHORT = "shorter than anybody can tell"
_TOO_MUCH = "more than a double tells apart"


def check_shard_plan(request: "documents.ShardPlanRequest") -> None:
    """Check a request for a shard plan.

    Raises:
        RepeatedName: Streams, rooms or links share a name.
        UnknownName: A transfer comes from where no link leads to its stream.
        Impossible: A range contradicts itself or another, or there is more than can be planned at once.
    """
    streams, links = request["streams"], request["links"]
    complaints = repeated("/streams", [stream["id"] for stream in streams])
    complaints += repeated("/rooms", [row["domain"] for row in request["rooms"]], "/domain")
    refuse(RepeatedName, [*_repeated_links(links), *complaints])
    joined = {(link["source"], link["target"]) for link in links}
    refuse(UnknownName, _unlinked(streams, joined))
    complaints = [*_links(links), *_spans(request, "", ("interval", "horizon"))]
    complaints += [
        (f"/rooms/{index}/size", _TOO_MUCH) for index, row in enumerate(request["rooms"]) if row["size"] > MAX_BYTES
    ]
    for index, stream in enumerate(streams):
        place = f"/streams/{index}"
        complaints += [*_spans(stream, place, ("step_time",)), *_sizes(stream, place, "step_size")]
        complaints += [(f"{place}/due", _TOO_LONG)] if stream["due"] > MAX_SPAN_S else []
        complaints += check_ranges(stream, place)
    refuse(Impossible, complaints)
    refuse(Impossible, _work(request))


def check_collective(request: "documents.CollectiveRequest") -> None:
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
        (f"/links/{index}/{end}", f"{name} is not among the domains")
        for index, link in enumerate(links)
        for end, name in (("source", link["source"]), ("target", link["target"]))
        if name not in known
    ]
    order = used["order"] if used else []
    unknown += [
        (f"/in_use/order/{index}", f"{name} is not among the domains")
        for index, name in enumerate(order)
        if name not in known
    ]
    refuse(UnknownName, unknown)
    complaints = [*_links(links), *_spans(request, "", ("interval", "step_time")), *_sizes(request, "", "exchange")]
    complaints += [("/switch_time", _TOO_LONG)] if request["switch_time"] > MAX_SPAN_S else []
    complaints += [("/node_latency", _TOO_LONG)] if request["node_latency"] > MAX_SPAN_S else []
    complaints += [("/node_bandwidth", _TOO_MUCH)] if request["node_bandwidth"] > MAX_BANDWIDTH else []
    complaints += [("/node_bandwidth", "less than a bit a second")] if request["node_bandwidth"] < MIN_BANDWIDTH else []
    joined = {(link["source"], link["target"]) for link in links}
    bare = [f"{one} to {other}" for one in domains for other in domains if one != other and (one, other) not in joined]
    more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
    complaints += [("/links", f"there is no link from {bare[0]}{more}")] if bare else []
    complaints += _in_use(used, domains) if used else []
    refuse(Impossible, complaints)


def _in_use(used: "documents.CollectiveInUse", domains: Sequence[str]) -> Iterator[Complaint]:
    if sorted(used["order"]) != sorted(domains):
        yield "/in_use/order", "it does not hold every domain once"
    if used["period"] != 1 and used["collective"] not in {LOW_COMMUNICATION, UNKNOWN_KIND}:
        yield "/in_use/period", "only where communication is low, steps lie between exchanges over domains"
    if used["since"] > MAX_SPAN_S:
        yield "/in_use/since", _TOO_LONG


def _repeated_links(links: "Sequence[documents.MeasuredLink]") -> list[Complaint]:
    return repeated("/links", [f"{link['source']} to {link['target']}" for link in links], "/target")


def _links(links: "Sequence[documents.MeasuredLink]") -> Iterator[Complaint]:
    for index, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{index}/target", "a link leads from one domain to another"
        if link["latency"] > MAX_SPAN_S:
            yield f"/links/{index}/latency", _TOO_LONG
        if max(link["bandwidths"], default=0.0) > MAX_BANDWIDTH:
            places = [place for place, one in enumerate(link["bandwidths"]) if one > MAX_BANDWIDTH]
            yield from ((f"/links/{index}/bandwidths/{place}", _TOO_MUCH) for place in places)


def _spans(whole: Mapping[str, Any], place: str, names: Sequence[str]) -> Iterator[Complaint]:
    for name in names:
        if not MIN_SPAN_S <= whole[name] <= MAX_SPAN_S:
            yield f"{place}/{name}", _TOO_SHORT if whole[name] < MIN_SPAN_S else _TOO_LONG


def _sizes(whole: Mapping[str, Any], place: str, name: str) -> Iterator[Complaint]:
    if not MIN_BYTES <= whole[name] <= MAX_BYTES:
        yield f"{place}/{name}", "less than a byte" if whole[name] < MIN_BYTES else _TOO_MUCH


def _unlinked(streams: "Sequence[documents.DataStream]", joined: set[tuple[str, str]]) -> Iterator[Complaint]:
    for index, stream in enumerate(streams):
        for number, transfer in enumerate(stream.get("transfers") or ()):
            if (transfer["source"], stream["target"]) not in joined:
                detail = f"there is no link from {transfer['source']} to {stream['target']}"
                yield f"/streams/{index}/transfers/{number}/source", detail


def _work(request: "documents.ShardPlanRequest") -> Iterator[Complaint]:
    """What would take too long, or more memory than there is."""
    steps: Counter[str] = Counter()
    ranges = 0
    for stream in request["streams"]:
        listed = len(stream["missing"]) + len(stream.get("transfers") or ())
        steps[stream["target"]] += steps_looked_at(stream, request["horizon"]) + listed + 1
        ranges += listed
    if ranges > MAX_RANGES:
        yield "/streams", f"{ranges} ranges, where {MAX_RANGES} are the most; ask for fewer streams at once"
    into = Counter(link["target"] for link in request["links"] if link["target"] in steps)
    most = max(steps.values(), default=0)
    together, cells = steps.total(), most * len(steps) * max(into.values(), default=1)
    for number, limit, what in (
        (together, MAX_STEPS, "steps"),
        (most, MAX_IN_DOMAIN, "steps in one domain"),
        (cells, MAX_CELLS, "steps × domains × links into one"),
    ):
        if number > limit:
            hint = "ask for a shorter horizon, or for fewer streams at once"
            yield "/horizon", f"{number} {what} to be planned, where {limit} are the most; {hint}"


def steps_looked_at(stream: "documents.DataStream", horizon: float) -> int:
    """Most slots of a stream that a plan so far ahead can look at."""
    slots = MAX_DEPTH + max(horizon - stream["due"], 0.0) / stream["step_time"] + 1
    return int(min(float(stream["remote_steps"] + (stream.get("local_steps") or 0)), slots))
