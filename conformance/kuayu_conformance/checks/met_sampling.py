"""The longest gap between samples (MET-002)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.fixtures import domain, held, node, pages
from kuayu_conformance.episode import Episode, NotTestable, instant, seconds_of
from kuayu_conformance.exporters.playing import PlayedExporter
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds

WINDOW_QUICK, WINDOW_FULL = 75.0, 600.0
"""Seconds watched: longer than the longest gap allowed, so that one gap too long always shows."""

SETTLE = 2.0
"""Seconds that a fetched page may take to be seen in a query before its absence counts (clause met-05-scraping)."""

LONGEST = 60.0
"""Seconds between samples that MET-002 allows; used for evidence only, the verdict takes the register's threshold."""

WATCHED_AT_MOST = 20
"""Nodes of the implementation's own that are watched beside the suite's."""

STEADY = "dcgm-exporter"
"""The exporter that is played: one whose page yields values by itself, without an earlier page."""


@dataclass(frozen=True)
class Series:
    """What was seen of one subject: when each sample was observed and received, in seconds, and the last answer."""

    subject: str
    played: bool
    samples: tuple[tuple[float, float], ...]
    answer: Answer


@dataclass(frozen=True)
class Observed:
    """Series of all watched subjects over the window from ``since`` to ``until``."""

    since: float
    until: float
    series: tuple[Series, ...]


def observe(episode: Episode) -> Observed:
    """Play an exporter for the whole window, watch live nodes beside it, and collect what was sampled.

    Raises:
        NotTestable: The target neither scrapes nor has a live node of its own.
    """
    window = WINDOW_FULL if episode.settings.full else WINDOW_QUICK
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
    return Observed(since, until, tuple(series))


def _live_nodes(episode: Episode, now: float) -> list[str]:
    """Nodes that are not of this run and have a sample of the last minute."""
    live = []
    for record in episode.ask("GET", "/v1/nodes?limit=100").items("items"):
        name = record.get("id") if isinstance(record, dict) else None
        if isinstance(name, str) and not _of_a_run(name):
            recent = held(episode, name, query=f"&from={instant(now - 60)}&limit=1")
            if recent.items("items"):
                live.append(name)
    return live[:WATCHED_AT_MOST]


def _of_a_run(name: str) -> bool:
    head, _, _ = name.partition("-")
    return len(head) == 11 and head[0] == "k"


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
    first = held(episode, subject, kind=kinds[0], query=window)
    kind = kinds[0] if first.items("items") else kinds[1]
    path = f"/v1/samples?subject={subject}&subject_kind={kind}{window}"
    pairs: list[tuple[float, float]] = []
    for answer in pages(episode, path):
        for item in answer.items("items"):
            row = item if isinstance(item, dict) else {}
            observed, received = seconds_of(row.get("observed_at")), seconds_of(row.get("received_at"))
            if observed is not None and received is not None:
                pairs.append((observed, received))
    return Series(subject, played, tuple(pairs), answer)


def gaps(instants: Sequence[float], since: float, until: float) -> list[float]:
    """Gaps between neighbours, the beginning and the end of the window included, in seconds.

    The end counts, for a collector that has stopped must not look better than a slow one; so does the beginning.
    """
    inside = sorted({t for t in instants if since <= t <= until})
    edges = [since, *inside, until]
    return [b - a for a, b in pairwise(edges)]


def judge(o: Observed) -> Iterator[Finding]:
    """The longest gap of any series is the figure; nothing is averaged."""
    parts, misses = [], []
    for series in o.series:
        longest = max(gaps([observed for observed, _ in series.samples], o.since, o.until))
        label = "exporter played by the suite" if series.played else series.subject
        parts.append(PartFigure(label, longest, None, len(series.samples)))
        if longest > LONGEST:
            found = f"{label}: {longest:.1f} s"
            misses.append(holds("MET-002", False, f"at most {LONGEST:.0f} s between samples", found, series.answer))
        lag = max((received - observed for observed, received in series.samples), default=0.0)
        expected = f"{label}: each sample is received within {LONGEST:.0f} s of being observed"
        yield holds("MET-002", lag <= LONGEST, expected, f"{lag:.1f} s", series.answer)
    worst = max(part.estimate for part in parts)
    yield Figure(
        "MET-002",
        worst,
        worst,
        sum(part.n for part in parts),
        f"longest gap between samples of any watched subject over {o.until - o.since:.0f} s, both ends of the window "
        "included; a maximum of what happened, not an estimate from a sample, so the bound is the figure",
        parts,
        misses,
    )


CHECK = Check("met_sampling", ("MET-002",), observe, judge, recorded_times=True, background=True)
