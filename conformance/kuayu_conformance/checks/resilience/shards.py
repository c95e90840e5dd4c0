"""Shard plans: waiting for data and blocked transfers, and whether a plan can be carried out (RES-005, 006 and 012).

1. *Windows.* The service plans the shards of windows in which two jobs train on data from afar
   (:mod:`kuayu_conformance.testbed.shards`), asked every ten seconds; the suite carries its plans out. Static
   schedules, and one who knows the links, play the same windows. A window follows from the nonce, its family and its
   number alone, so that two checks that play it ask the same. An answer that is no plan leaves the suite with the plan
   before it.
2. *Falls* of waiting and of blocked transfers, against fixed shards on demand (RES-005, RES-006), and the tables and
   plots that stand beside them.
3. *Plans* can be carried out as they stand (RES-012). The windows at ±30 % of RES-005 and RES-006 are played again: the
   same request has the same answer (COM-029), so that these are the plans on which those figures rest. Bytes count as
   the same within a millionth of a step.
4. Requests that are hard to answer: gaps, transfers under way, links that are out, hardly any room. Numbers are drawn.
   Sizes are whole bytes, and steps of unlike sizes, so that no round number hides a slip.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import floor, fsum, inf
from random import Random
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import (
    NONE,
    CaseVerdicts,
    UnsoundAnswers,
    WindowClient,
    drawn,
    name,
    revision,
    revision_faults,
    table,
    verdicts,
)
from kuayu_conformance.checks.resilience.resilience_requests import SHARDS, measured_link
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import ratio_lower_bound
from kuayu_conformance.testbed.shards import (
    FAMILIES,
    MILD,
    ON_DEMAND,
    ONE_AHEAD,
    Executor,
    Outcome,
    Run,
    Schedule,
    Static,
    Window,
    best,
    clairvoyant,
    draw,
    grid,
)
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

_SAME = 1e-6
"""Share of a step."""

Range = tuple[float, float]


@dataclass(frozen=True)
class StreamNeed:
    """A stream of a request, and what the plan may fetch for it.

    Attributes:
        stream: Of the request.
        least: Bytes below which two places are the same.
        ranges: What is missing, with what is abandoned, rising and apart.
        links_up: Domains with a link to the target, and whether it is up.
        capacity: Bytes that the target has room for.
        local_slots: What the plan gives to local data, if that is rising and there are as many; else None.
    """

    stream: "documents.DataStream"
    least: float
    ranges: tuple[Range, ...]
    links_up: dict[str, bool]
    capacity: float
    local_slots: tuple[int, ...] | None


def faults(body: "documents.ShardPlanRequest", shard_plan: "documents.ShardPlan") -> Iterator[str]:
    """What is wrong with a valid plan for a request, in words with figures."""
    yield from revision_faults(body, shard_plan)
    names = [entry["id"] for entry in body["streams"]]
    planned = [item["stream"] for item in shard_plan["streams"]]
    if planned != names:
        yield f"streams {planned[:5]} where the request's are {names[:5]}"
        return
    shards: dict[str, list[documents.PlannedShard]] = defaultdict(list)
    for shard in shard_plan["shards"]:
        shards[shard["stream"]].append(shard)
    yield from (f"a shard of stream {row}, which is not in the request" for row in shards if row not in names)
    for stream, plan in zip(body["streams"], shard_plan["streams"], strict=True):
        where = f"stream {stream['id']}"
        needed = _needed(body, stream, plan)
        deviations = chain(_local(needed, plan), _abandoned(needed, plan), _shards(needed, shards[stream["id"]]))
        yield from (f"{where}: {fault}" for fault in deviations)


def _needed(
    body: "documents.ShardPlanRequest", stream: "documents.DataStream", plan: "documents.StreamPlan"
) -> StreamNeed:
    least = _SAME * stream["step_size"]
    named = [(entry["source"], entry["begin"]) for entry in plan.get("abandoned", [])]
    given_up = [
        transfer
        for transfer in stream.get("transfers", [])
        if any(transfer["source"] == source and abs(transfer["begin"] - begin) <= least for source, begin in named)
    ]
    ranges = joined([(row["begin"], row["end"]) for row in (*stream["missing"], *given_up)], least)
    links_up = {link["source"]: link.get("up", True) for link in body["links"] if link["target"] == stream["target"]}
    capacity = next((item["size"] for item in body["rooms"] if item["domain"] == stream["target"]), 0.0)
    slots = plan["local_slots"]
    usable = len(slots) <= stream.get("local_steps", 0) and all(one < other for one, other in pairwise(slots))
    return StreamNeed(stream, least, ranges, links_up, capacity, tuple(slots) if usable else None)


def joined(ranges: Iterable[Range], least: float) -> tuple[Range, ...]:
    """Ranges in rising order; those that touch are one."""
    merged: list[Range] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1] + least:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return tuple(merged)


def _local(stream_need: StreamNeed, plan: "documents.StreamPlan") -> Iterator[str]:
    slots, most = plan["local_slots"], stream_need.stream.get("local_steps", 0)
    if len(slots) > most:
        yield f"{len(slots)} local_slots where there are {most} local steps"
    elif stream_need.local_slots is None:
        yield f"local_slots {slots[:5]} do not rise"


def _abandoned(stream_need: StreamNeed, plan: "documents.StreamPlan") -> Iterator[str]:
    transfers = stream_need.stream.get("transfers", [])
    for entry in plan.get("abandoned", []):
        if not any(
            transfer["source"] == entry["source"] and abs(transfer["begin"] - entry["begin"]) <= stream_need.least
            for transfer in transfers
        ):
            yield f"abandons a transfer from {entry['source']} at byte {entry['begin']:.0f}, which is not under way"


def _shards(stream_need: StreamNeed, shards: "list[documents.PlannedShard]") -> Iterator[str]:
    for shard in shards:
        yield from (f"the shard {_named(shard)} {fault}" for fault in _of_shard(stream_need, shard))
    ordered = sorted(shards, key=lambda shard: (shard["begin"], shard["end"]))
    for one, other in pairwise(ordered):
        if other["begin"] < one["end"] - stream_need.least and other["end"] > other["begin"]:
            yield f"the shards {_named(one)} and {_named(other)} overlap"


def _of_shard(stream_need: StreamNeed, shard: "documents.PlannedShard") -> Iterator[str]:
    begin, end, source = shard["begin"], shard["end"], shard["source"]
    if not begin < end:
        yield "is empty"
    if source not in stream_need.stream["sources"]:
        yield f"comes from {source}, which holds no copy"
    if not stream_need.links_up.get(source, False):
        yield f"comes from {source}, " + (
            "whose link is out" if source in stream_need.links_up else "which has no link"
        )
    if end - begin > stream_need.capacity + stream_need.least:
        yield f"has {end - begin:.0f} bytes where there is room for {stream_need.capacity:.0f}"
    last = stream_need.stream["remote_steps"] * stream_need.stream["step_size"]
    if end > last + stream_need.least:
        yield f"ends after byte {last:.0f}, the last of all steps"
    if not _within(stream_need, begin, end):
        yield "holds bytes that are not missing"
    if stream_need.local_slots is not None and shard["slot"] not in _slots(stream_need, begin):
        yield f"is for slot {shard['slot']} where its first byte is for slot {max(_slots(stream_need, begin))}"


def _within(stream_need: StreamNeed, begin: float, end: float) -> bool:
    position = bisect_right(stream_need.ranges, (begin + stream_need.least, inf)) - 1
    return (
        position >= 0
        and begin >= stream_need.ranges[position][0] - stream_need.least
        and end <= stream_need.ranges[position][1] + stream_need.least
    )


def _slots(stream_need: StreamNeed, begin: float) -> set[int]:
    """Slots that may take a byte: one, or two where it is hardly before the first of a step."""
    assert stream_need.local_slots is not None
    size = stream_need.stream["step_size"]
    return {_free(stream_need.local_slots, floor(begin / size + near)) for near in (0.0, _SAME)}


def _free(local_slots: tuple[int, ...], number: int) -> int:
    """The slot of that number, from zero, among those that local data do not take."""
    slot = number
    for entry in local_slots:
        if entry > slot:
            break
        slot += 1
    return slot


def _named(shard: "documents.PlannedShard") -> str:
    return f"of bytes {shard['begin']:.0f} to {shard['end']:.0f} from {shard['source']}"


SERVICE, DEMAND, AHEAD, SEER = "the service", "fixed, on demand", "fixed, one ahead", "who knows the links"


@dataclass(frozen=True)
class Extent:
    """How much is played.

    Attributes:
        seconds: Of the steps of a window.
        windows: How many, by family; the first is the one that is judged.
        beside: Whether the grid of static schedules and one who knows the links play too.
    """

    seconds: int
    windows: Mapping[str, int]
    beside: bool


SMOKE = Extent(600, {MILD: 5}, beside=False)
QUICK = Extent(600, {MILD: 8}, beside=False)
FULL = Extent(1200, {MILD: 40, "×0.3": 15, "outages": 15, "measured": 15, "calm": 15}, beside=True)


@dataclass(frozen=True)
class ShardWindow:
    """A window, and what came of it.

    Attributes:
        family: How bandwidths lie over time.
        plans: Plans that the service made in it.
        outcomes: By policy.
        schedules: Of each schedule of the grid, where they were played.
    """

    family: str
    plans: int
    outcomes: Mapping[str, Outcome]
    schedules: Mapping[Schedule, Outcome]


_OUTCOMES = TypeAdapter(tuple[Outcome, ...])


@dataclass
class Player(WindowClient):
    """Plays windows in an episode.

    Attributes:
        look: Whether plans are held against what makes them sound.
    """

    look: bool = False

    def window(self, family: str, number: int, extent: Extent) -> ShardWindow:
        """Play a window."""
        return self._once((family, number), lambda: self._played(family, number, extent))

    def _played(self, family: str, number: int, extent: Extent) -> ShardWindow:
        window = self._drawn(family, number, extent)
        executor = Executor(window, self.plan)
        outcomes = {
            SERVICE: Run(window, executor).play(),
            DEMAND: Run(window, Static(window, ON_DEMAND)).play(),
            AHEAD: Run(window, Static(window, ONE_AHEAD)).play(),
        }
        schedules: dict[Schedule, Outcome] = {}
        if extent.beside:

            def beside() -> tuple[Outcome, ...]:
                return clairvoyant(window), *(Run(window, Static(window, schedule)).play() for schedule in grid())

            score_store = self.episode.settings.score_store
            outcomes[SEER], *others = score_store.get_or_make(f"shards/{family}/{number}", _OUTCOMES, beside)
            schedules = dict(zip(grid(), others, strict=True))
        return ShardWindow(family, executor.plans, outcomes, schedules)

    def service_alone(self, family: str, number: int, extent: Extent) -> None:
        """Play a window for the sake of its plans."""
        window = self._drawn(family, number, extent)
        Run(window, Executor(window, self.plan)).play()

    def _drawn(self, family: str, number: int, extent: Extent) -> Window:
        seed = f"{self.episode.settings.nonce}/shards/{number}"
        return draw(family, seed, extent.seconds, naming=self.episode.salted(seed))

    def plan(self, body: "documents.ShardPlanRequest") -> "documents.ShardPlan | None":
        """The service's plan; None where it makes none, or has made none too often."""
        answer = self._ask(SHARDS, body)
        if answer is None:
            return None
        shard_plan: documents.ShardPlan = answer.json
        if self.look:
            self.unsound = self.unsound.noted(faults(body, shard_plan), answer)
        return shard_plan


def every(extent: Extent) -> Sequence[tuple[str, int]]:
    """Family and number of each window."""
    return [(family, number) for family, count in extent.windows.items() for number in range(count)]


STATIC, PULLED = "best static schedule with overlap", "best one whose idle links pull"
"""Chosen in hindsight, for each family and measure anew."""

TITLES = {
    "waiting": "Share of time in which compute waits for data",
    "blocked": "Share of transfers that are blocked, by number",
    "blocked_bytes": "Share of transfers that are blocked, by bytes",
}
_LABELS = {"waiting": "", "blocked": ", by number", "blocked_bytes": ", by bytes"}
_SHOWN = (DEMAND, AHEAD, STATIC, PULLED, SEER, SERVICE)


@dataclass(frozen=True)
class Fall:
    """By which part something is less under the service, with both one-sided 95 % bounds."""

    estimate: float
    bound: float
    ceiling: float


def fall(windows: Sequence[ShardWindow], measure: str, seed: str) -> Fall:
    """Fall of a measure against fixed shards on demand, whose share is never zero: every request takes its latency.

    Raises:
        ValueError: There is no window.
    """
    pairs = []
    for window in windows:
        ours, theirs = (float(getattr(window.outcomes[name], measure)) for name in (SERVICE, DEMAND))
        pairs.append((theirs - ours, theirs))
    away = [(-part, whole) for part, whole in pairs]
    return Fall(
        fsum(part for part, _ in pairs) / fsum(whole for _, whole in pairs),
        ratio_lower_bound(pairs, f"{seed}/{measure}"),
        0.0 - ratio_lower_bound(away, f"{seed}/{measure}"),
    )


def parts(windows: Sequence[ShardWindow], measure: str) -> list[PartFigure]:
    """The fall against fixed shards on demand by family, and against the best static schedules where they played."""
    figures = []
    for family, entry in _families(windows):
        measured = fall(entry, measure, family)
        label = f"{family}{_LABELS[measure]}"
        figures.append(PartFigure(f"{label}, against {DEMAND}", measured.estimate, measured.bound, len(entry)))
        shares = _shares(entry, measure)
        figures += [
            PartFigure(
                f"{label}, against the {name}", 1.0 - fsum(shares[SERVICE]) / fsum(shares[name]), None, len(entry)
            )
            for name in (STATIC, PULLED)
            if fsum(shares.get(name, ())) > 0.0
        ]
    return figures


def exhibits(windows: Sequence[ShardWindow], measures: Sequence[str]) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed and not judged."""
    tables = [_table(windows, measure) for measure in measures]
    chosen = [row for measure in measures for row in _chosen(windows, measure)]
    if chosen:
        tables.append(
            table("Best static schedules, chosen in hindsight", "links|least|schedule|idle links pull", chosen)
        )
    return tables, [_drawn(family, entry, measures[0]) for family, entry in _families(windows)]


def _families(windows: Sequence[ShardWindow]) -> Iterator[tuple[str, list[ShardWindow]]]:
    for family in FAMILIES:
        selected = [window for window in windows if window.family == family]
        if selected:
            yield family, selected


def _schedules(windows: Sequence[ShardWindow]) -> Mapping[Schedule, Sequence[Outcome]]:
    return {schedule: [window.schedules[schedule] for window in windows] for schedule in windows[0].schedules}


def _shares(windows: Sequence[ShardWindow], measure: str) -> dict[str, list[float]]:
    """A measure of each policy, window by window."""
    outcomes: dict[str, Sequence[Outcome]] = {
        name: [window.outcomes[name] for window in windows] for name in windows[0].outcomes
    }
    schedules = _schedules(windows)
    if schedules:
        for name, pulling in ((STATIC, False), (PULLED, True)):
            outcomes[name] = schedules[best(schedules, measure, pulling=pulling)]
    return {name: [float(getattr(entry, measure)) for entry in item] for name, item in outcomes.items()}


def _table(windows: Sequence[ShardWindow], measure: str) -> ReportTable:
    rows_by_family = [(family, item, _shares(item, measure)) for family, item in _families(windows)]
    shown = [name for name in _SHOWN if any(name in shares for _, _, shares in rows_by_family)]
    rows = []
    for family, row, shares in rows_by_family:
        means = [f"{100 * fsum(shares[name]) / len(row):.2f} %" if name in shares else NONE for name in shown]
        rows.append([family, str(len(row)), *means, str(sum(not entry.outcomes[SERVICE].finished for entry in row))])
    columns = "|".join(("links", "windows", *shown, "not finished under the service"))
    return table(f"{TITLES[measure]}, mean over windows", columns, rows)


def _chosen(windows: Sequence[ShardWindow], measure: str) -> Iterator[list[str]]:
    for family, entry in _families(windows):
        schedules = _schedules(entry)
        if schedules:
            numbers = [str(best(schedules, measure, pulling=pulling)) for pulling in (False, True)]
            yield [family, TITLES[measure], *numbers]


def _drawn(family: str, windows: Sequence[ShardWindow], measure: str) -> ReportPlot:
    """Windows in the order in which fixed shards do, from the best to the worst."""
    shares = _shares(windows, measure)
    order = sorted(range(len(windows)), key=lambda number: (shares[DEMAND][number], number))
    return ReportPlot(
        title=f"{TITLES[measure]} at {family}, window by window",
        kind=PlotKind.lines,
        x_label=f"windows, by what it is under {DEMAND}",
        y_label="share",
        series=[
            PlotSeries(
                label=name,
                x=[float(place + 1) for place in range(len(order))],
                y=[shares[name][number] for number in order],
            )
            for name in _SHOWN
            if name in shares
        ],
    )


WAITING, BLOCKED = "RES-005", "RES-006"

_BOUND = "One-sided 95 % bootstrap bound over windows"


@dataclass(frozen=True)
class ShardWindows:
    """What was played.

    Attributes:
        windows: In order; fewer than were wanted where the service was given up.
        wanted: How many were to be played.
        bad: The first answer that was no shard plan.
        bad_answers: How many there were.
    """

    windows: tuple[ShardWindow, ...]
    wanted: int
    bad: Answer | None
    bad_answers: int


def observe(episode: Episode) -> ShardWindows:
    """Play windows of all families that the run has."""
    extent = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    player = Player(episode)
    windows = player.played(every(extent), lambda which: player.window(*which, extent))
    return ShardWindows(windows, len(every(extent)), player.bad, player.bad_answers)


def judge(o: ShardWindows) -> Iterator[Finding]:
    """By how much less is waited for and blocked at ±30 %."""
    planned = sum(window.plans > 0 for window in o.windows)
    observed = f"{planned} of {o.wanted} windows had one"
    if o.bad_answers:
        observed += f"; {o.bad_answers} answers were no shard plan"
    for requirement in (WAITING, BLOCKED):
        expected = "a shard plan at least for every window"
        yield holds(requirement, planned == o.wanted, expected, observed, o.bad if planned < o.wanted else None)
    judged = [window for window in o.windows if window.family == MILD]
    yield _waiting(o.windows, judged)
    yield _blocked(o.windows, judged)


def _waiting(windows: Sequence[ShardWindow], judged: Sequence[ShardWindow]) -> Figure:
    subject = fall(judged, "waiting", WAITING)
    tables, plots = exhibits(windows, ("waiting",))
    return Figure(
        WAITING,
        subject.estimate,
        subject.bound,
        len(judged),
        "1 − share of time in which compute waits for data under the service ÷ that under fixed shards on demand, both "
        f"summed over windows at ±30 %. {_BOUND}",
        parts(windows, "waiting"),
        tables=tables,
        plots=plots,
        ceiling=subject.ceiling,
    )


def _blocked(windows: Sequence[ShardWindow], judged: Sequence[ShardWindow]) -> Figure:
    falls = [fall(judged, measure, BLOCKED) for measure in ("blocked", "blocked_bytes")]
    tables, plots = exhibits(windows, ("blocked", "blocked_bytes"))
    return Figure(
        BLOCKED,
        min(row.estimate for row in falls),
        min(entry.bound for entry in falls),
        len(judged),
        "1 − share of transfers that are blocked under the service ÷ that under fixed shards on demand, both summed "
        f"over windows at ±30 %, by number and by bytes, the lesser. {_BOUND}. Parts: by number, then by bytes",
        [*parts(windows, "blocked"), *parts(windows, "blocked_bytes")],
        tables=tables,
        plots=plots,
        ceiling=min(item.ceiling for item in falls),
    )


CHECK = Check(
    "res_shards",
    (WAITING, BLOCKED),
    observe,
    judge,
    heavy=True,
    summary="Waiting for data, and blocked transfers, against fixed shards on demand: RES-005 and RES-006.",
)


INTERVAL, MEASURED = 5.0, 60


class ShardPlanRequestBuilder:
    """Draws the parts of a request.

    Attributes:
        chance: What is drawn from.
        here: Domain that computes.
        sources: Domains that hold data.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.here = name(chance)
        self.sources = [name(chance) for _ in range(3)]

    def link(self, source: str, target: str | None = None, **members: Any) -> "documents.MeasuredLink":
        """A link that carries a few Gbit/s, more or less."""
        ends = source, target or self.here
        return measured_link(self.chance, ends, (2.0, 8.0), (0.02, 0.3), MEASURED, **members)

    def stream(self, steps: int, **members: Any) -> "documents.DataStream":
        """A stream of which nothing is there, from all sources."""
        size = float(self.chance.randrange(400_000_000, 3_000_000_000))
        stream = {
            "id": name(self.chance),
            "target": self.here,
            "sources": list(self.sources),
            "step_size": size,
            "step_time": round(self.chance.uniform(2.0, 8.0), 3),
            "due": round(self.chance.uniform(0.0, 5.0), 3),
            "remote_steps": steps,
            "missing": [{"begin": 0.0, "end": steps * size}],
            **members,
        }
        return cast("documents.DataStream", stream)

    def request(
        self,
        streams: "list[documents.DataStream]",
        links: "list[documents.MeasuredLink]",
        size: float | None,
        **members: Any,
    ) -> "documents.ShardPlanRequest":
        """A request with so much room, or with none that is stated."""
        request = {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "horizon": round(self.chance.uniform(30.0, 90.0), 3),
            "links": links,
            "rooms": [] if size is None else [{"domain": self.here, "size": size}],
            "streams": streams,
            **members,
        }
        return cast("documents.ShardPlanRequest", request)

    def links(self, **members: Any) -> "list[documents.MeasuredLink]":
        """From all sources."""
        return [self.link(source, **members) for source in self.sources]

    def capacity_for(self, streams: "list[documents.DataStream]", steps: float) -> float:
        """Room for so many steps of each."""
        return float(round(steps * sum(stream["step_size"] for stream in streams)))


def gaps(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Data are missing here and there, from the middle of one step to the middle of another."""
    stream = builder.stream(20)
    size, position = stream["step_size"], 0.0
    missing: list[documents.ByteRange] = []
    for _ in range(6):
        begin = position + float(round(builder.chance.uniform(0.1, 1.4) * size))
        position = begin + float(round(builder.chance.uniform(0.05, 1.6) * size))
        missing.append({"begin": begin, "end": min(position, 20 * size)})
    streams: list[documents.DataStream] = [{**stream, "missing": missing}, builder.stream(8)]
    return builder.request(streams, builder.links(), builder.capacity_for(streams, 20.0))


def under_way(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """One transfer has nearly come, another hangs on a link that is out, a third crawls."""
    stream = builder.stream(12, local_steps=2)
    size = stream["step_size"]
    ends = [0.0, size, float(round(1.7 * size)), float(round(3.2 * size))]
    lefts = [0.02, builder.chance.uniform(0.3, 1.0), 0.99]
    transfers: list[documents.DataTransfer] = [
        {"source": source, "begin": begin, "end": end, "left": float(round(left * (end - begin)))}
        for source, begin, end, left in zip(builder.sources, ends, ends[1:], lefts, strict=False)
    ]
    missing: list[documents.ByteRange] = [{"begin": ends[-1], "end": 12 * size}]
    streams: list[documents.DataStream] = [{**stream, "missing": missing, "transfers": transfers}]
    links = builder.links()
    links[1] |= {"up": False, "bandwidths": [*links[1]["bandwidths"][:-3], 0.0, 0.0, 0.0]}
    links[2]["bandwidths"] = [float(round(0.01 * bandwidth)) for bandwidth in links[2]["bandwidths"]]
    return builder.request(streams, links, builder.capacity_for(streams, 8.0))


def some_out(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """The best link is out."""
    streams = [builder.stream(15, local_steps=3), builder.stream(15)]
    links = builder.links()
    links[0] |= {"up": False, "bandwidths": [10 * bandwidth for bandwidth in links[0]["bandwidths"]]}
    return builder.request(streams, links, builder.capacity_for(streams, 6.0))


def all_out(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """No link carries."""
    streams = [builder.stream(15, local_steps=4)]
    return builder.request(streams, builder.links(up=False), builder.capacity_for(streams, 6.0))


def little_room(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """There is room for less than a step."""
    streams = [builder.stream(10), builder.stream(10)]
    return builder.request(streams, builder.links(), builder.capacity_for(streams, 0.2))


def one_step(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """There is room for hardly more than one step, and two streams want it."""
    streams = [builder.stream(10), builder.stream(10, local_steps=1)]
    return builder.request(streams, builder.links(), float(round(1.1 * max(entry["step_size"] for entry in streams))))


def no_room(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """No room is stated but in another domain."""
    streams = [builder.stream(10, local_steps=1)]
    return builder.request(streams, builder.links(), None, rooms=[{"domain": builder.sources[0], "size": 1e12}])


def no_links(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """The only links lead elsewhere."""
    streams = [builder.stream(10, local_steps=2)]
    links = [builder.link(builder.here, source) for source in builder.sources]
    return builder.request(streams, links, builder.capacity_for(streams, 4.0))


def no_copies(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """One stream's copies lie where no link comes from; another's at one of three."""
    streams = [builder.stream(10, sources=[name(builder.chance)]), builder.stream(10, sources=builder.sources[1:2])]
    return builder.request(streams, builder.links(), builder.capacity_for(streams, 5.0))


def local(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Links are far too slow, and there are local steps."""
    streams = [builder.stream(30, local_steps=builder.chance.randrange(3, 12)), builder.stream(30, local_steps=1)]
    links = builder.links()
    for link in links:
        link["bandwidths"] = [float(round(0.15 * bandwidth)) for bandwidth in link["bandwidths"]]
    return builder.request(streams, links, builder.capacity_for(streams, 10.0))


def several_targets(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Three domains compute, with rooms of their own; two of them are sources as well."""
    others = [name(builder.chance) for _ in range(2)]
    targets = [builder.here, *others]
    streams = [builder.stream(12, target=target, local_steps=2 * number) for number, target in enumerate(targets)]
    streams.append(builder.stream(12, target=others[1], sources=[others[0], *builder.sources[:1]]))
    links = [builder.link(source, target) for target in targets for source in builder.sources]
    links.append(builder.link(others[0], others[1]))
    links[4]["up"] = False
    sizes = [
        {"domain": target, "size": builder.capacity_for(streams[:1], part)}
        for target, part in zip(targets, (6.0, 1.5, 0.4), strict=True)
    ]
    return builder.request(streams, links, None, rooms=sizes)


def nearly_done(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """One stream has all its data, one takes no more, one lacks the end of its last step."""
    complete, over, last = (
        builder.stream(3, missing=[]),
        builder.stream(0, missing=[], local_steps=5),
        builder.stream(2),
    )
    size = last["step_size"]
    last["missing"] = [{"begin": float(round(1.3 * size)), "end": 2 * size}]
    streams = [complete, over, last]
    return builder.request(streams, builder.links(), builder.capacity_for(streams, 4.0))


def unmeasured(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Links of which nothing is known yet, and one that has carried nothing."""
    streams = [builder.stream(10)]
    links = builder.links(bandwidths=[])
    links[0]["bandwidths"] = [0.0] * MEASURED
    return builder.request(streams, links, builder.capacity_for(streams, 4.0))


QUESTIONS: "dict[str, Callable[[ShardPlanRequestBuilder], documents.ShardPlanRequest]]" = {
    "gaps": gaps,
    "transfers under way": under_way,
    "a link that is out": some_out,
    "all links out": all_out,
    "room for less than a step": little_room,
    "room for hardly more than a step": one_step,
    "no room": no_room,
    "no links": no_links,
    "copies out of reach": no_copies,
    "slow links and local data": local,
    "several targets": several_targets,
    "hardly anything missing": nearly_done,
    "links of which nothing is known": unmeasured,
}
"""By what is hard about them."""


def questions(chance: Random, times: int) -> "Iterator[tuple[str, documents.ShardPlanRequest]]":
    """Each so many times, with other numbers."""
    return drawn(QUESTIONS, ShardPlanRequestBuilder, chance, times)


REQUIREMENT = "RES-012"


@dataclass(frozen=True)
class PlanAnswers:
    """Plans that were looked at.

    Attributes:
        questions: Hard ones.
        plans: Answers in windows that were shard plans.
        unsound: Those that were not sound.
        bad_answers: Answers in windows that were no shard plans.
        bad: One of these.
    """

    questions: CaseVerdicts
    plans: int
    unsound: UnsoundAnswers
    bad_answers: int
    bad: Answer | None


def observe_plans(episode: Episode) -> PlanAnswers:
    """Ask hard questions, then play windows."""
    cases = verdicts(episode, SHARDS, "shard plan", questions, faults)
    extent = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    player = Player(episode, look=True)
    for number in range(extent.windows[MILD]):
        player.service_alone(MILD, number, extent)
        episode.passed(number + 1, extent.windows[MILD])
    return PlanAnswers(cases, player.answers, player.unsound, player.bad_answers, player.bad)


def judge_plans(o: PlanAnswers) -> Iterable[Finding]:
    """Claims about every hard question, and about all plans of the windows together."""
    yield from o.questions.findings(REQUIREMENT)
    expected = "in windows at ±30 %, every answer is a shard plan"
    observed = f"{o.bad_answers} of {o.plans + o.bad_answers} are none"
    yield holds(REQUIREMENT, not o.bad_answers, expected, observed, o.bad)
    expected, count = "in windows at ±30 %, every shard plan is sound", f"{o.unsound.count} of {o.plans} are not"
    yield from o.unsound.findings(REQUIREMENT, expected, count)


PLANS_CHECK = Check(
    "res_plans",
    (REQUIREMENT,),
    observe_plans,
    judge_plans,
    heavy=True,
    summary="Shard plans that can be carried out as they stand (RES-012).",
)
