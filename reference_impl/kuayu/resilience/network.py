"""Links and streams as they were measured, what links will carry, and how streams share them.

1. What a shard plan follows from: links as they were measured, streams of training data, room for what comes early.

   Bytes, seconds and bytes a second; instants are seconds after the plan is asked for. A *step* of a stream takes
   data that came over a link or data of the local cache; a *slot* is when a step is due, whatever data it takes.
2. What links will carry: a level, quantiles around it that past errors give, and how likely they go out.

   The level is an exponentially weighted mean of logarithms; of several half-lives that one is taken which erred
   least so far. Quantiles are those of the errors that it made in the past at the same horizon, raised by the share
   that a finite sample asks for (V. Vovk, A. Gammerman, G. Shafer, "Algorithmic learning in a random world", 2005:
   split conformal prediction; errors that overlap in time are not exchangeable, so coverage is approximate). Time in
   which a link was out counts in none of them. Outages come by a rate for each link, drawn towards that of all links
   as one outage would.
3. Links and streams side by side, destination by destination, so that all destinations are planned in one go.
4. How streams of a destination share its links, so that each stream's own part of the bandwidth is known.
5. What a request about links must hold to: each link is named once and leads from one domain to another; spans, sizes
   and bandwidths are such as can be measured, foreseen and told apart by a double.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kuayu.refusals import Complaint, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents

BITS_PER_BYTE = 8.0
"""In a byte."""

HALF_LIVES = (0.5, 2.0, 8.0, 32.0)
"""Intervals after which a measurement counts half; the first is all but the last value."""
HORIZONS = (2, 8, 32)
"""Intervals over which a mean is forecast."""
QUANTILES = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
CAUTIOUS, MEDIAN = 1, 3
"""Places of two of them."""
MIN_ERRORS = 24
"""Errors of a link's own without which those of all links are used."""
BETWEEN_S = 6 * 3600.0
OUTAGE_S = 60.0
"""Seconds between outages and of an outage, as if half an outage and a whole one had been seen: a guess that gives way
to what is measured."""
LOG_FALL = np.log(0.5)
"""What counts as a change of the link rather than as noise: half of what was expected, or less."""
_FADED = 1e-9
"""Weight of what was measured long ago, below which it is forgotten."""
UNKNOWN_RATE = 1.0
"""Bytes a second of a link of which nothing was measured, so that all others are preferred."""

_SHARING_ROUNDS = 24

MIN_SPAN_S, MAX_SPAN_S = 1e-6, 1e12
"""Seconds of a step, an interval or a horizon; beyond them nobody measures or foresees anything."""

MIN_BYTES, MAX_BYTES = 1.0, 2.0**53
"""Bytes of a step or an exchange; a room may be smaller. Beyond, doubles do not tell bytes apart."""

MIN_BANDWIDTH, MAX_BANDWIDTH = 1.0, 1e18
"""Bits a second; links between domains may be slower."""

TOO_LONG = "longer than anybody can foresee"

TOO_SHORT = "shorter than anybody can tell"

TOO_MUCH = "more than a double tells apart"


Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """The way from one domain to another.

    Attributes:
        source: Domain that sends.
        destination: Domain that receives.
        measured: Bytes a second, oldest first, one for each interval, (T,); zero where it was out, NaN where nothing
            was measured.
        latency_s: Seconds that a request takes beside its bytes.
        up: Whether it is known to carry now.
    """

    source: str
    destination: str
    measured: Floats
    latency_s: float
    up: bool = True


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A transfer that has begun.

    Attributes:
        link: Number of its link.
        begin: First byte, counted from the first byte of the next step that takes data from outside.
        end: The byte after its last.
        left: Bytes that have not come.
    """

    link: int
    begin: float
    end: float
    left: float


@dataclass(frozen=True, slots=True)
class Stream:
    """The data that one job's steps take in one domain.

    Attributes:
        name: Of the job.
        destination: Domain that computes.
        sources: Domains that hold copies.
        step_bytes: Bytes of a step.
        step_s: Seconds of a step.
        begins_s: When the next step is due.
        remote_steps: Steps that are still to take data from outside.
        local_steps: Steps whose data lie in the local cache. They may be taken in any slot: an epoch is read in any
            order. Zero where the order is fixed.
        gaps: Bytes that neither are here nor under way, as (begin, end) in rising order; counted like those of
            ``UnderWay``. Every other byte below the last end is here or under way.
        under_way: What is.
    """

    name: str
    destination: str
    sources: frozenset[str]
    step_bytes: float
    step_s: float
    begins_s: float
    remote_steps: int
    local_steps: int = 0
    gaps: tuple[tuple[float, float], ...] = ()
    under_way: tuple[UnderWay, ...] = ()


@dataclass(frozen=True, slots=True)
class TransferSnapshot:
    """All that a plan follows from.

    Attributes:
        links: At most one from a source to a destination.
        streams: Of any number of destinations.
        free_bytes: Bytes that a destination can hold of what comes early; none where it is not named.
        interval_s: Seconds between measurements.
        horizon_s: How far ahead is planned.
        saving: Share of time that one more step of depth has to save, else the buffer stays free.
    """

    links: tuple[Link, ...]
    streams: tuple[Stream, ...]
    free_bytes: Mapping[str, float]
    interval_s: float
    horizon_s: float = 60.0
    saving: float = 1e-5

    def __post_init__(self) -> None:
        """Look whether figures can be what they stand for.

        Raises:
            ValueError: One cannot.
        """
        if not (self.interval_s > 0.0 and self.horizon_s > 0.0):
            raise ValueError("interval_s and horizon_s must be positive")
        if any(capacity < 0.0 for capacity in self.free_bytes.values()):
            raise ValueError("a room cannot be negative")
        pairs = [(link.source, link.destination) for link in self.links]
        if len(set(pairs)) < len(pairs):
            raise ValueError("two links join the same domains the same way")
        for stream in self.streams:
            if not (stream.step_bytes > 0.0 and stream.step_s > 0.0 and isfinite(stream.begins_s)):
                raise ValueError(f"stream {stream.name}: step_bytes and step_s must be positive, begins_s finite")
            if any(not 0 <= transfer.link < len(self.links) for transfer in stream.under_way):
                raise ValueError(f"stream {stream.name}: a transfer is under way over no known link")


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What links will carry, in the order in which they were given.

    Attributes:
        rates: Quantiles of the mean over a horizon, bytes a second, (L, horizons, quantiles); given that it is up.
        hazards: Outages a second, (L,).
        changes: Outages and falls by half, a second, (L,).
        outage_s: Mean seconds of an outage.
        up: Whether a link carries now, (L,).
        half_lives: Which half-life was taken for each horizon, in intervals.
    """

    rates: Floats
    hazards: Floats
    changes: Floats
    outage_s: float
    up: Flags
    half_lives: tuple[float, ...]


def forecast(links: tuple[Link, ...], interval_s: float) -> Forecast:
    """Forecast all links at once; histories of unlike length end at the same instant."""
    table = _table(links)
    out = table == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(table > 0.0, np.log(table), np.nan)
    levels = _levels(logs)
    rates = np.empty((len(links), len(HORIZONS), len(QUANTILES)))
    taken = []
    falls = np.zeros(len(links))
    for place, horizon in enumerate(HORIZONS):
        means = _means_after(table, horizon)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.log(means)[None] - levels[:, :, :-1]
        best = _best(errors)
        taken.append(HALF_LIVES[best])
        if place == 0:
            falls = (errors[best] < LOG_FALL).sum(axis=1) / horizon
        now = levels[best, :, -1]
        rates[:, place] = np.exp(now[:, None] + _quantiles(errors[best]))
    rates = np.maximum.accumulate(np.nan_to_num(rates, nan=UNKNOWN_RATE), axis=2)
    hazards, mean_s = _outages(out, np.isfinite(table), interval_s)
    seen = np.maximum(np.isfinite(table).sum(axis=1), 1) * interval_s
    up = np.array([link.up for link in links], dtype=bool)
    return Forecast(rates, hazards, hazards + falls / seen, mean_s, up, tuple(taken))


def _table(links: tuple[Link, ...]) -> Floats:
    """Histories side by side, (L, T), at least one column; NaN before the first measurement."""
    longest = max((len(link.measured) for link in links), default=0)
    table = np.full((len(links), max(longest, 1)), np.nan)
    for row, link in enumerate(links):
        if len(link.measured):
            table[row, -len(link.measured) :] = link.measured
    return table


def _levels(logs: Floats) -> Floats:
    """What each half-life expects after each measurement, (half-lives, L, T); NaN before the first."""
    from scipy.signal import lfilter  # it loads scipy.stats, which a service that begins should not wait for

    known = np.isfinite(logs)
    values = np.nan_to_num(logs)
    levels = np.empty((len(HALF_LIVES), *logs.shape))
    for place, half_life in enumerate(HALF_LIVES):
        filtered = ([1.0], [1.0, -(0.5 ** (1.0 / half_life))])
        weights = lfilter(*filtered, known.astype(np.float64), axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            levels[place] = lfilter(*filtered, values, axis=1) / np.where(weights > _FADED, weights, np.nan)
    return levels


def _means_after(table: Floats, horizon: int) -> Floats:
    """Mean of what was carried in the ``horizon`` intervals after each one but the last, (L, T - 1)."""
    carrying = table > 0.0
    sums = np.cumsum(np.where(carrying, table, 0.0), axis=1)
    counts = np.cumsum(carrying, axis=1)
    last = table.shape[1] - 1
    ends = np.minimum(np.arange(last) + horizon, last)
    many: Integers = counts[:, ends] - counts[:, :-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(many > 0, (sums[:, ends] - sums[:, :-1]) / many, np.nan)
    means[:, max(0, last - horizon + 1) :] = np.nan  # what lies behind is not yet all seen
    return means


def _best(errors: Floats) -> int:
    """The half-life whose absolute errors are least over all links."""
    sizes = np.abs(errors)
    counts = np.isfinite(sizes).sum(axis=(1, 2))
    if not counts.all():
        return 1
    return int(np.argmin(np.nansum(sizes, axis=(1, 2)) / counts))


def _quantiles(errors: Floats) -> Floats:
    """Quantiles of errors, link by link, (L, quantiles); those of all links where a link has few of its own."""
    ordered = np.sort(errors, axis=1)  # NaN last
    counts: Integers = np.isfinite(errors).sum(axis=1)
    own = _at(ordered, counts)
    together = np.sort(errors[np.isfinite(errors)])
    if len(together):
        pooled = _at(together[None], np.array([len(together)]))
    else:
        pooled = np.where(QUANTILES < 0.5, LOG_FALL, 0.0)[None]  # noqa: PLR2004 - nothing is known: half as much
    return np.where((counts >= MIN_ERRORS)[:, None], own, pooled)


def _at(ordered: Floats, counts: Integers) -> Floats:
    """Values of rising rows at quantiles, each moved outwards as a sample of that many asks for."""
    away = np.where(
        QUANTILES > 0.5,  # noqa: PLR2004 - above or below the median
        np.ceil((counts[:, None] + 1) * QUANTILES) - 1,
        np.floor((counts[:, None] + 1) * QUANTILES) - 1,
    )
    places = np.clip(away, 0, np.maximum(counts[:, None] - 1, 0)).astype(np.int64)
    if not ordered.shape[1]:
        return np.zeros((len(counts), len(QUANTILES)))
    return np.take_along_axis(ordered, places, axis=1)


def _outages(out: Flags, known: Flags, interval_s: float) -> tuple[Floats, float]:
    """Outages a second of each link, and mean seconds of one."""
    began = out[:, 1:] & ~out[:, :-1] & known[:, :-1]
    counts = began.sum(axis=1).astype(np.float64)
    up_s = (known & ~out).sum(axis=1) * interval_s
    pooled = (counts.sum() + 0.5) / (up_s.sum() + 0.5 * BETWEEN_S)
    hazards = (counts + 1.0) / (up_s + 1.0 / pooled)
    mean_s = (out.sum() * interval_s + OUTAGE_S) / (counts.sum() + 1.0)
    return hazards, float(mean_s)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Numbers instead of names; D destinations, at most S sources to each, J streams.

    Attributes:
        destinations: Names.
        links: Numbers of links, (D, S); -1 where there is none.
        usable: Whether there is a link and it is up, (D, S).
        rates: Quantiles of what they carry, bytes a second, (D, S, horizons, quantiles); zero where not usable.
        latency_s: Seconds of a request, (D, S).
        hazards: Outages a second, (D, S); zero where not usable.
        changes: Outages and falls by half a second, (D, S); zero where not usable.
        of: Destination of each stream, (J,).
        copies: Whether a stream's data lie at the source of a link that is usable, (J, S).
        free_bytes: Bytes, (D,).
        need: Bytes a second that all streams of a destination take, (D,).
    """

    destinations: tuple[str, ...]
    links: Integers
    usable: Flags
    rates: Floats
    latency_s: Floats
    hazards: Floats
    changes: Floats
    of: Integers
    copies: Flags
    free_bytes: Floats
    need: Floats

    @property
    def expected(self) -> Floats:
        """Median of what links carry over the middle horizon, bytes a second, (D, S)."""
        middle: Floats = self.rates[:, :, self.rates.shape[2] // 2, MEDIAN]
        return middle


def lay_out(snapshot: TransferSnapshot, ahead: Forecast) -> Layout:
    """Lay a snapshot out."""
    names = tuple(dict.fromkeys(stream.destination for stream in snapshot.streams))
    number = {name: place for place, name in enumerate(names)}
    into: list[list[int]] = [[] for _ in names]
    for place, link in enumerate(snapshot.links):
        if link.destination in number:
            into[number[link.destination]].append(place)
    width = max((len(numbers) for numbers in into), default=0) or 1
    links = np.full((len(names), width), -1, dtype=np.int64)
    for row, numbers in enumerate(into):
        links[row, : len(numbers)] = numbers
    of = np.array([number[stream.destination] for stream in snapshot.streams], dtype=np.int64)
    need = np.zeros(len(names))
    np.add.at(need, of, [stream.step_bytes / stream.step_s for stream in snapshot.streams])
    if not snapshot.links:
        empty = np.zeros((len(names), width))
        usable = empty > 0.0
        rates = np.zeros((len(names), width, *ahead.rates.shape[1:]))
        latency, hazards, changes = empty, empty, empty
    else:
        usable = (links >= 0) & ahead.up[links]
        rates = np.where(usable[:, :, None, None], ahead.rates[links], 0.0)
        latency = np.where(links >= 0, np.array([link.latency_s for link in snapshot.links])[links], 0.0)
        hazards = np.where(usable, ahead.hazards[links], 0.0)
        changes = np.where(usable, ahead.changes[links], 0.0)
    copies = np.zeros((len(snapshot.streams), width), dtype=bool)
    for row, stream in enumerate(snapshot.streams):
        for column, place in enumerate(into[of[row]]):
            copies[row, column] = snapshot.links[place].source in stream.sources
    copies &= usable[of] if len(of) else copies
    capacities = np.array([float(snapshot.free_bytes.get(name, 0.0)) for name in names])
    return Layout(names, links, usable, rates, latency, hazards, changes, of, copies, capacities, need)


def link_shares(snapshot: TransferSnapshot, layout: Layout) -> Floats:
    """Part of each link that is a stream's, (J, S); those of a link that anybody can use sum to one.

    Each stream moves its need to where links have more to spare, again and again, so that loads even out as far as
    copies allow.
    """
    need = np.array([stream.step_bytes / stream.step_s for stream in snapshot.streams])
    rates = np.maximum(layout.expected, 1.0)
    count, width = layout.links.shape
    flows = np.where(layout.copies, rates[layout.of], 0.0)
    columns = np.arange(width)
    cells = layout.of[:, None] * width + columns
    loads = np.zeros((count, width))
    for round_number in range(_SHARING_ROUNDS if len(need) else 0):
        sums = flows.sum(axis=1, keepdims=True)
        flows = np.divide(flows * need[:, None], sums, out=np.zeros_like(flows), where=sums > 0.0)
        loads = np.bincount(cells.ravel(), flows.ravel(), count * width).astype(np.float64).reshape(count, width)
        if round_number < _SHARING_ROUNDS - 1:
            spare = np.divide(rates, loads, out=np.zeros_like(loads), where=loads > 0.0)
            flows *= np.sqrt(spare)[layout.of]
    total = loads[layout.of]
    return np.divide(flows, total, out=np.zeros_like(flows), where=total > 0.0)


def repeated_links(links: "Sequence[documents.MeasuredLink]") -> list[Complaint]:
    """Links that are named more than once."""
    return repeated("/links", [f"{link['source']} to {link['target']}" for link in links], "/target")


def link_complaints(links: "Sequence[documents.MeasuredLink]") -> Iterator[Complaint]:
    """Links that lead nowhere else, or whose figures cannot be."""
    for index, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{index}/target", "a link leads from one domain to another"
        if link["latency"] > MAX_SPAN_S:
            yield f"/links/{index}/latency", TOO_LONG
        if max(link["bandwidths"], default=0.0) > MAX_BANDWIDTH:
            places = [place for place, one in enumerate(link["bandwidths"]) if one > MAX_BANDWIDTH]
            yield from ((f"/links/{index}/bandwidths/{place}", TOO_MUCH) for place in places)


def span_complaints(whole: Mapping[str, Any], place: str, names: Sequence[str]) -> Iterator[Complaint]:
    """Members of an object, in seconds, that are shorter or longer than anybody can tell."""
    for name in names:
        if not MIN_SPAN_S <= whole[name] <= MAX_SPAN_S:
            yield f"{place}/{name}", TOO_SHORT if whole[name] < MIN_SPAN_S else TOO_LONG


def size_complaints(whole: Mapping[str, Any], place: str, name: str) -> Iterator[Complaint]:
    """A member of an object, in bytes, that is less than a byte or more than a double tells apart."""
    if not MIN_BYTES <= whole[name] <= MAX_BYTES:
        yield f"{place}/{name}", "less than a byte" if whole[name] < MIN_BYTES else TOO_MUCH
