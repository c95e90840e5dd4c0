"""Samples: the longest gap between them, and how accurate they are (MET-002, MET-003).

1. The suite plays an exporter that the service fetches: what is true of that node it knows, and MET-003 judges it.
2. Nodes of the implementation's own are watched too. Nobody but the implementation knows what is true of them, so that
   all that can be held against their samples is what no node shows: nothing at all, a value outside of its measure's
   range, hardware that changes from sample to sample, more in use than there is. Times alone are not samples.
3. Data are held against a known truth, through the traps of real life (MET-003).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.requests import domain, node, pages, read_samples
from kuayu_conformance.episode import Episode, NotTestable, instant, seconds_of
from kuayu_conformance.exporters.player import NODE, Cell, Page, PlayedExporter, played_exporters
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import proportion_lower_bound
from kuayu_schemas import registers
from kuayu_schemas.models import Constancy

WINDOW_SMOKE, WINDOW_QUICK, WINDOW_FULL = 64.0, 75.0, 600.0
"""Seconds watched: longer than the longest gap allowed, so that one gap too long always shows."""

SETTLE = 2.0
"""Seconds that a fetched page may take to be seen in a query before its absence counts (clause met-05-scraping)."""

MAX_INTERVAL_SECONDS = 60.0
"""Seconds between samples that MET-002 allows; used for evidence only, the verdict takes the register's threshold."""

WATCHED_AT_MOST = 20
"""Nodes of the implementation's own that are watched beside the suite's."""

MOST_OF_CAPACITY = 1.1
"""Share of a capacity that may be in use, as in clause met-02-expositions: makers and exporters count it otherwise."""

WHOLES = {"accelerator_memory_used": "accelerator_memory_capacity"}
"""Measures that are part of another."""

STEADY = "dcgm-exporter"
"""The exporter that is played: one whose page yields values by itself, without an earlier page."""


@dataclass(frozen=True)
class Series:
    """What was seen of one subject: when each sample was observed and received, in seconds, and the last answer.

    ``implausible`` is what no node shows, of one that the suite does not play.
    """

    subject: str
    played: bool
    samples: tuple[tuple[float, float], ...]
    answer: Answer
    implausible: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchedSeries:
    """Series of all watched subjects over the window from ``since`` to ``until``."""

    since: float
    until: float
    series: tuple[Series, ...]


def observe(episode: Episode) -> WatchedSeries:
    """Play an exporter for the whole window, watch live nodes beside it, and collect what was sampled.

    Raises:
        NotTestable: The target neither scrapes nor has a live node of its own.
    """
    window = episode.settings.sized(smoke=WINDOW_SMOKE, quick=WINDOW_QUICK, full=WINDOW_FULL)
    since = episode.now()
    live = _live_nodes(episode, since)
    own: list[str] = []
    if "scrape" in episode.settings.features:
        own.append(_watch(episode))
    elif not live:
        raise NotTestable(
            "the target does not declare scrape and no node of its own has sent samples in the last minute",
            "start a collector of the implementation's before the run",
        )
    episode.sleep(window)
    until = episode.now()
    episode.sleep(SETTLE)
    series = [_series(episode, subject, since, until, played=subject in own) for subject in (*own, *live)]
    return WatchedSeries(since, until, tuple(series))


def _live_nodes(episode: Episode, now: float) -> list[str]:
    """Nodes that are not of this run and have a sample of the last minute."""
    live = []
    for record in episode.ask("GET", "/v1/nodes?limit=100").items("items"):
        name = record.get("id") if isinstance(record, dict) else None
        if isinstance(name, str) and not episode.is_of_this_run(name):
            recent = read_samples(episode, name, query=f"&from={instant(now - 60)}&limit=1")
            if recent.items("items"):
                live.append(name)
    return live[:WATCHED_AT_MOST]


def _watch(episode: Episode) -> str:
    site = domain(episode)
    played = PlayedExporter(STEADY, episode.random)
    machine = node(episode, site, names=played.devices)
    url = episode.publish("page", played.advance(episode.now()).untimed)
    target = {"id": episode.name_of("t"), "node": machine, "exporter": STEADY, "url": url}
    episode.set_up("PUT", f"/v1/scrape-targets/{target['id']}", target)
    return machine


def _series(episode: Episode, subject: str, since: float, until: float, *, played: bool) -> Series:
    window = f"&from={instant(since)}&to={instant(until)}&limit=100"
    kinds = ("device", "node") if played else ("node", "device")
    first = read_samples(episode, subject, kind=kinds[0], query=window)
    kind = kinds[0] if first.items("items") else kinds[1]
    path = f"/v1/samples?subject={subject}&subject_kind={kind}{window}"
    pairs: list[tuple[float, float]] = []
    rows: list[Mapping[str, Any]] = []
    for answer in pages(episode, path):
        for item in answer.items("items"):
            row = item if isinstance(item, dict) else {}
            rows.append(row)
            observed, received = seconds_of(row.get("observed_at")), seconds_of(row.get("received_at"))
            if observed is not None and received is not None:
                pairs.append((observed, received))
    return Series(subject, played, tuple(pairs), answer, () if played else tuple(implausible(rows)))


def implausible(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What no node shows, in samples of one."""
    measures = {measure.name: measure for row in registers.indicators().indicators for measure in row.measures}
    fixed: dict[tuple[str, str], float] = {}
    for row in rows:
        measured = {name: value for name, value in row.items() if name in measures}
        where = f"at {row.get('observed_at')}"
        if not measured:
            yield f"{where} there is no measure"
        for name, value in measured.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            spec, key = measures[name], (str(row.get("device", "")), name)
            least, most = -inf if spec.minimum is None else spec.minimum, inf if spec.maximum is None else spec.maximum
            if not least <= value <= most:
                yield f"{where} {name} is {value:g}"
            first = fixed.setdefault(key, value) if spec.constancy is Constancy.static else value
            if abs(value - first) > spec.accuracy * abs(first):
                yield f"{name} was {first:g} and is {value:g} {where}"
            whole = measured.get(WHOLES.get(name, ""))
            if isinstance(whole, int | float) and value > MOST_OF_CAPACITY * whole:
                yield f"{where} {name} is {value:g} of {whole:g}"


def gaps(instants: Sequence[float], since: float, until: float) -> list[float]:
    """Gaps between neighbours, the beginning and the end of the window included, in seconds.

    The end counts, for a collector that has stopped must not look better than a slow one; so does the beginning.
    """
    inside = sorted({t for t in instants if since <= t <= until})
    edges = [since, *inside, until]
    return [b - a for a, b in pairwise(edges)]


def judge(o: WatchedSeries) -> Iterator[Finding]:
    """The longest gap of any series is the figure; nothing is averaged."""
    parts, misses = [], []
    for series in o.series:
        longest = max(gaps([observed for observed, _ in series.samples], o.since, o.until))
        label = "exporter played by the suite" if series.played else f"{series.subject}, of the implementation's own"
        parts.append(PartFigure(label, longest, None, len(series.samples)))
        if longest > MAX_INTERVAL_SECONDS:
            actual = f"{label}: {longest:.1f} s"
            misses.append(
                holds("MET-002", False, f"at most {MAX_INTERVAL_SECONDS:.0f} s between samples", actual, series.answer)
            )
        if not series.played:
            expected = f"{label}: samples say what a node can show; whether it is so nobody else knows"
            actual = series.implausible[0] if series.implausible else f"{len(series.samples)} samples do"
            yield holds("MET-002", not series.implausible, expected, actual, series.answer)
        lag = max((received - observed for observed, received in series.samples), default=0.0)
        expected = f"{label}: each sample is received within {MAX_INTERVAL_SECONDS:.0f} s of being observed"
        yield holds("MET-002", lag <= MAX_INTERVAL_SECONDS, expected, f"{lag:.1f} s", series.answer)
    worst = max(part.estimate for part in parts)
    yield Figure(
        "MET-002",
        worst,
        worst,
        sum(part.n for part in parts),
        f"longest gap between samples of any watched subject over {o.until - o.since:.0f} s, both ends of the window "
        f"included, of {sum(row.played for row in o.series)} that the suite plays and "
        f"{sum(not row.played for row in o.series)} of the implementation's own; a maximum of what happened, not an "
        "estimate from a sample, so the bound is the figure",
        parts,
        misses,
    )


CHECK = Check(
    "met_sampling",
    ("MET-002",),
    observe,
    judge,
    recorded_times=True,
    background=True,
    summary="The longest gap between samples (MET-002).",
)


TRAPS = ("plain", "reset", "repeat", "disorder", "gap", "skew")
"""What is done to the pages of an episode; each trap with each exporter is one stratum."""

CELLS_SMOKE, CELLS_QUICK, CELLS_FULL = 236, 450, 3000
"""Values of a stratum at least: 236 support 98 % with one wrong, 450 with three; 3000 support 99.9 % with none
(Clopper-Pearson)."""

STEP, SKEW = 15.0, 3600.0
"""Seconds between pages at most; seconds by which the clock of the trap ``skew`` is fast."""

MOST_BLUR = 0.1
"""Share of a rate that delays may blur under the trap ``skew`` at most: a slow target earns no more tolerance."""


@dataclass(frozen=True)
class Stratum:
    """One exporter and one trap: what should be held, and what is.

    Attributes:
        exporter: Which exporter was played.
        trap: What was done to its pages.
        cells: What should be held.
        samples: What is held, by subject and instant in milliseconds.
        answer: The last answer that told.
    """

    exporter: str
    trap: str
    cells: tuple[Cell, ...]
    samples: Mapping[tuple[str, int], Mapping[str, Any]]
    answer: Answer


@dataclass(frozen=True)
class Strata:
    """All strata."""

    strata: tuple[Stratum, ...]


def observe_accuracy(episode: Episode) -> Strata:
    """Play each exporter into each trap and read back everything that is held."""
    site = domain(episode)
    return Strata(tuple(_stratum(episode, site, name, trap) for name in played_exporters() for trap in TRAPS))


def _stratum(episode: Episode, site: str, name: str, trap: str) -> Stratum:
    played = PlayedExporter(name, episode.random)
    machine = node(episode, site, f"{name}-{trap}", names=played.devices)
    a_page = sum(len(row.series) for row in played.mapped)
    least = episode.settings.sized(smoke=CELLS_SMOKE, quick=CELLS_QUICK, full=CELLS_FULL)
    count = -(-least // a_page) + 2
    now = episode.now()
    step = min(STEP, round(episode.settings.limits["retention"] / 2 / count, 3))
    cells: dict[tuple[str, str, float], Cell] = {}
    delay = 0.0
    for page, known in _trapped(played, trap, [now - step * (count - i) for i in range(count)]):
        previous, delay = delay, _send(episode, machine, page, name, SKEW if trap == "skew" else 0.0)
        blur = min(MOST_BLUR, (previous + delay) / step)
        cells |= {(cell.subject, cell.measure, cell.instant): _blurred(cell, blur) for cell in known}
    samples: dict[tuple[str, int], Mapping[str, Any]] = {}
    kinds = {"node" if subject == NODE else "device" for row in played.mapped for subject in row.series}
    for kind in sorted(kinds):
        answer = _read(episode, machine, kind, now - step * (count + 1), samples)
    return Stratum(name, trap, tuple(cells.values()), samples, answer)


def _send(episode: Episode, machine: str, page: Page, name: str, shift: float) -> float:
    """Push a page; a clock that is fast by ``shift`` stamps it and says when it was sent.

    Returns seconds by which a correction of that clock may be off: it cannot know how long the page was on its way.
    """
    query = f"/v1/expositions?node={machine}&exporter={name}"
    if shift:
        sent = episode.now()
        query += f"&observed_at={instant(page.instant + shift)}&sent_at={instant(sent + shift)}"
        answer = episode.ask("POST", query, content=page.untimed.encode(), media_type="text/plain")
        return answer.started + answer.seconds - sent + 0.002
    episode.ask("POST", query, content=page.text.encode(), media_type="text/plain")
    return 0.0


def _blurred(cell: Cell, share: float) -> Cell:
    """A cell whose time of counting is known to a share only."""
    if cell.counted and isinstance(cell.truth, float):
        return replace(cell, tolerance=cell.tolerance + share * cell.truth)
    return cell


def _trapped(played: PlayedExporter, trap: str, instants: list[float]) -> Iterator[tuple[Page, tuple[Cell, ...]]]:
    """Pages in the order in which they are sent, each with what should be held because of it."""
    match trap:
        case "reset":
            for i, item in enumerate(instants):
                page = played.advance(item, reset=i % 5 == 4)
                yield page, page.cells
        case "repeat":
            for moment in instants:
                page = played.advance(moment)
                yield page, page.cells
                yield page, ()
        case "disorder":
            pages = [played.advance(place, overtaken=i % 2 == 0) for i, place in enumerate(instants)]
            for early, late in zip(pages[::2], pages[1::2], strict=False):
                yield late, late.cells
                yield early, early.cells
        case "gap":
            for i, row in enumerate(instants):
                page = played.advance(row, blank=i % 4 == 2)
                yield page, page.cells
        case _:
            for instant in instants:
                page = played.advance(instant)
                yield page, page.cells


def _read(
    episode: Episode, machine: str, kind: str, since: float, samples: dict[tuple[str, int], Mapping[str, Any]]
) -> Answer:
    path = f"/v1/samples?subject={machine}&subject_kind={kind}&from={instant(since)}"
    path += f"&limit={int(min(1000, episode.settings.limits['max_page']))}"
    for answer in pages(episode, path):
        for item in answer.items("items"):
            when = seconds_of(item.get("observed_at")) if isinstance(item, dict) else None
            if when is not None:
                samples[(str(item.get("device", NODE)), round(when * 1000))] = item
    return answer


def judge_accuracy(o: Strata) -> Iterator[Finding]:
    """The worst stratum is the figure, so that one trap cannot hide among the others."""
    parts, misses = [], []
    for stratum in o.strata:
        wrong = list(_wrong(stratum))
        right, n = len(stratum.cells) - len(wrong), len(stratum.cells)
        bound = proportion_lower_bound(right, n)
        parts.append(PartFigure(f"{stratum.exporter} · {stratum.trap}", right / n, bound, n))
        misses += wrong[:2]
    yield Figure(
        "MET-003",
        min(part.estimate for part in parts),
        min(part.bound or 0.0 for part in parts),
        sum(part.n for part in parts),
        "worst stratum (exporter and trap) of the share of values within tolerance of the truth, a missing or "
        "superfluous value counting as wrong; exact one-sided 95 % lower bound (Clopper-Pearson) of each stratum, the "
        "lowest counts",
        parts,
        misses,
    )


def _wrong(stratum: Stratum) -> Iterator[Claim]:
    tolerant = 2.5 if stratum.trap == "skew" else 0.0  # the correction is known no better than the network's delay
    for cell in stratum.cells:
        value = _stored_value(stratum, cell, tolerant)
        if not correct(cell, value):
            subject = f"device {cell.subject}" if cell.subject else "the node"
            where = f"{stratum.exporter}, {stratum.trap}: {cell.measure} of {subject} at {instant(cell.instant)}"
            expected = f"{where} is {_shown(cell)}"
            yield holds("MET-003", False, expected, "absent" if value is None else value, stratum.answer)


def _stored_value(stratum: Stratum, cell: Cell, tolerant: float) -> object:
    position = round(cell.instant * 1000)
    sample = stratum.samples.get((cell.subject, position))
    if sample is None and tolerant:
        near = [(abs(t - position), t) for subject, t in stratum.samples if subject == cell.subject]
        distance, when = min(near, default=(float("inf"), 0))
        sample = stratum.samples.get((cell.subject, when)) if distance <= tolerant * 1000 else None
    return (sample or {}).get(cell.measure)


def correct(cell: Cell, value: object) -> bool:
    """Whether a value is the truth of its cell, within tolerance."""
    if cell.truth is None or isinstance(cell.truth, str):
        return value == cell.truth
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value - cell.truth) <= cell.tolerance + 1e-9 * abs(cell.truth)


def _shown(cell: Cell) -> str:
    if isinstance(cell.truth, float):
        return f"{cell.truth:.6g} ± {cell.tolerance:.3g}"
    return cell.truth or "absent"


ACCURACY_CHECK = Check(
    "met_accuracy",
    ("MET-003",),
    observe_accuracy,
    judge_accuracy,
    heavy=True,
    summary="Accuracy of data against a known truth, through the traps of real life (MET-003).",
)
