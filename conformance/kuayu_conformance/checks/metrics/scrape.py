"""The service fetches exporters' pages by itself (MET-010)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, read_samples
from kuayu_conformance.episode import Episode, NotTestable
from kuayu_conformance.exporters.player import Cell, PlayedExporter
from kuayu_conformance.findings import Finding, answered, holds

EXPORTER = "dcgm-exporter"
PERIOD, WAIT = 1.0, 4.5
"""Seconds between scrapes that are asked for; seconds that are waited."""

FORBIDDEN = ("http://192.0.2.7:9400/metrics", "http://169.254.169.254/latest/meta-data/", "file:///etc/hostname")
"""Targets that no allow-list should hold: documentation addresses (RFC 5737), link-local, and files."""


@dataclass(frozen=True)
class ScrapeOutcomes:
    """What became of a target that answers, of one that does not, and of targets that are not allowed."""

    created: Answer
    listed: Answer
    target: str
    fetched: tuple[float, ...]
    state: Answer
    stored: Answer
    cells: tuple[Cell, ...]
    failing: Answer
    forbidden: tuple[tuple[str, Answer], ...]
    orphan: Answer
    removed: Answer
    after_removal: int


def observe(episode: Episode) -> ScrapeOutcomes:
    """Play an exporter for a few seconds, point another target at nothing, and try targets that must be refused.

    Raises:
        NotTestable: The target may not fetch from the suite's address.
    """
    site = domain(episode)
    played = PlayedExporter(EXPORTER, episode.random)
    machine = node(episode, site, names=played.devices)
    page = played.advance(episode.now())
    url = episode.publish("page", page.untimed)
    name = episode.name_of("t")
    target = {"id": name, "node": machine, "exporter": EXPORTER, "url": url, "period": PERIOD}
    created = episode.ask("PUT", f"/v1/scrape-targets/{name}", target)
    if created.problem == "target-not-allowed":
        raise NotTestable(
            "the target's allow-list does not hold the suite's address",
            f"let the target fetch from {url.rpartition('/')[0]} while the suite runs",
        )
    broken = episode.name_of("broken")
    failing_target = {**target, "id": broken, "url": url.rpartition("/")[0] + "/nothing-here"}
    episode.set_up("PUT", f"/v1/scrape-targets/{broken}", failing_target)
    episode.sleep(WAIT)
    fetched = episode.scrapes("page")
    state = episode.ask("GET", f"/v1/scrape-targets/{name}")
    forbidden = []
    for i, address in enumerate(FORBIDDEN):
        other = episode.name_of(f"forbidden-{i}")
        body = {**target, "id": other, "url": address}
        forbidden.append((address, episode.ask("PUT", f"/v1/scrape-targets/{other}", body)))
    orphan = {**target, "id": episode.name_of("orphan"), "node": episode.name_of("absent")}
    observed = ScrapeOutcomes(
        created,
        episode.ask("GET", "/v1/scrape-targets"),
        name,
        fetched,
        state,
        read_samples(episode, machine, kind="device"),
        page.gauges,
        episode.ask("GET", f"/v1/scrape-targets/{broken}"),
        tuple(forbidden),
        episode.ask("PUT", f"/v1/scrape-targets/{orphan['id']}", orphan),
        episode.ask("DELETE", f"/v1/scrape-targets/{name}"),
        after_removal=0,
    )
    before = len(episode.scrapes("page"))
    episode.sleep(2 * PERIOD)
    return replace(observed, after_removal=len(episode.scrapes("page")) - before)


def judge(o: ScrapeOutcomes) -> Iterator[Finding]:
    """Targets are fetched as asked for, fail in the open, and stay within the allow-list."""
    yield answered("MET-010", o.created, 201, "a target within the allow-list is taken")
    listed = [item.get("id") for item in o.listed.items("items") if isinstance(item, dict)]
    yield holds("MET-010", o.target in listed, "it is listed", listed, o.listed)
    count = len(o.fetched)
    least = int(WAIT / PERIOD) - 1
    yield holds(
        "MET-010", count >= least, f"it is fetched at once and every {PERIOD:.0f} s: {least} times or more", count
    )
    yield holds("MET-010", o.state.at("state") == "succeeded", "its state shows success", o.state.brief, o.state)
    names = {name for item in o.stored.items("items") if isinstance(item, dict) for name in item}
    missing = sorted({cell.measure for cell in o.cells} - names)
    yield holds(
        "MET-010", not missing, "each measure that the page shows by itself is held", f"missing {missing}", o.stored
    )
    yield holds("MET-010", o.failing.at("state") == "failed", "a failing target says so", o.failing.brief, o.failing)
    problem = o.failing.at("last_problem", "type")
    why = problem == "urn:kuayu:problem:scrape-failed"
    yield holds("MET-010", why, "and says why: scrape-failed", problem, o.failing)
    for address, answer in o.forbidden:
        yield answered("MET-010", answer, 422, f"{address} is refused", problem="target-not-allowed")
    yield answered("MET-010", o.orphan, 422, "a target for a node that is not there", problem="unknown-reference")
    yield answered("MET-010", o.removed, 204, "a target is deleted")
    yield holds("MET-010", o.after_removal <= 1, "it is not fetched any more", f"{o.after_removal} fetches")


CHECK = Check("met_scrape", ("MET-010",), observe, judge, recorded_times=True)
