"""The longest gap between samples (MET-002).

1. The suite plays an exporter that the service fetches: what is true of that node it knows, and MET-003 judges it.
2. Nodes of the implementation's own are watched too. Nobody but the implementation knows what is true of them, so that
   all that can be held against their samples is what no node shows: nothing at all, a value outside of its measure's
   range, hardware that changes from sample to sample, more in use than there is. Times alone are not samples.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, pages, read_samples
from kuayu_conformance.episode import Episode, NotTestable, instant, seconds_of
from kuayu_conformance.exporters.player import PlayedExporter
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
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


CHECK = Check("met_sampling", ("MET-002",), observe, judge, recorded_times=True, background=True)
