"""Listings show one revision from the first page to the last (COM-012)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, failing, faults_of, node, pages, post, read_samples, sample
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds

NODES, PAGE = 7, 3
FAILING = 4


@dataclass(frozen=True)
class Faults:
    """Pages of faults of which some were cleared after the first page, by the deletion of their nodes.

    Attributes:
        open: Faults that were open before the first page.
        pages: The listing, a fault on each page.
        foreign: Answer to the cursor of the listing, given to another one.
    """

    open: Answer
    pages: tuple[Answer, ...]
    foreign: Answer


@dataclass(frozen=True)
class ListingPages:
    """Pages of a listing that was changed after its first page, and of a series that grew after its first page.

    ``faults`` is None where the target does not declare to tell any.
    """

    names: tuple[str, ...]
    pages: tuple[Answer, ...]
    fresh: Answer
    foreign: Answer
    series: tuple[Answer, ...]
    instants: tuple[str, ...]
    faults: Faults | None


def observe(episode: Episode) -> ListingPages:
    """List nodes page by page while one is deleted, one is made and one is changed; likewise samples."""
    site = domain(episode)
    names = tuple(node(episode, site, f"n{i}", label="before") for i in range(NODES))
    listing = f"/v1/nodes?domain={site}&limit={PAGE}"
    listed = [episode.ask("GET", listing)]
    episode.set_up("DELETE", f"/v1/nodes/{names[-1]}")
    node(episode, site, "n5a", label="between")
    episode.set_up("PUT", f"/v1/nodes/{names[4]}", {"id": names[4], "domain": site, "label": "after"})
    listed += list(pages(episode, listing, listed[0]))[1:]
    fresh = episode.ask("GET", f"/v1/nodes?domain={site}")
    foreign = episode.ask("GET", f"/v1/links?cursor={quote(str(listed[0].at('next_cursor')), safe='')}")

    now = episode.now()
    instants = tuple(instant(now - 60 + i) for i in range(NODES))
    post(episode, [sample(names[0], when, power=1.0) for when in instants])
    query = f"&limit={PAGE}"
    series = [read_samples(episode, names[0], query=query)]
    late = [sample(names[0], instant(now - 60 + i + 0.5), power=2.0) for i in range(NODES)]
    post(episode, late)
    series += list(pages(episode, f"/v1/samples?subject={names[0]}&subject_kind=node{query}", series[0]))[1:]
    faults = _faults(episode) if episode.settings.asks("POST /v1/heartbeats", "RES") else None
    return ListingPages(names, tuple(listed), fresh, foreign, tuple(series), instants, faults)


def _faults(episode: Episode) -> Faults:
    """List faults page by page while some of them are cleared."""
    site = domain(episode, "faults")
    names = [node(episode, site, f"f{i}", names=["0"]) for i in range(FAILING)]
    failing(episode, names)
    begun = faults_of(episode, site, "open", FAILING)
    listing = f"/v1/faults?domain={site}&limit=1"
    first = episode.ask("GET", listing)
    for name in names:
        if name != first.at("items", 0, "node"):
            episode.set_up("DELETE", f"/v1/nodes/{name}")
    faults_of(episode, site, "cleared", FAILING - 1)
    cursor = quote(str(first.at("next_cursor")), safe="")
    foreign = episode.ask("GET", f"/v1/faults?domain={site}&state=open&cursor={cursor}")
    return Faults(begun, tuple(pages(episode, listing, first)), foreign)


def judge(o: ListingPages) -> Iterator[Finding]:
    """The pages together are the listing as it stood at the first; a new listing shows the changes."""
    for answer in o.pages:
        yield answered("COM-012", answer, 200, "each page is answered")
    items = [item for answer in o.pages for item in answer.items("items")]
    names = [_member(item, "id") for item in items]
    last = o.pages[-1]
    yield holds("COM-012", names == sorted(o.names), "the pages hold each node of the first revision once", names, last)
    labels = {_member(item, "label") for item in items}
    yield holds("COM-012", labels == {"before"}, "they show each node as it was at the first page", labels, last)
    revisions = {str(answer.at("revision")) for answer in o.pages}
    yield holds("COM-012", len(revisions) == 1, "each page names the same revision", revisions, last)
    sizes = [len(answer.items("items")) for answer in o.pages]
    yield holds("COM-012", all(size <= PAGE for size in sizes), f"no page holds more than {PAGE}", sizes, last)
    now = {_member(item, "label") for item in o.fresh.items("items")}
    yield holds("COM-012", now == {"before", "between", "after"}, "a new listing shows the changes", now, o.fresh)
    yield answered("COM-012", o.foreign, 400, "the cursor of another listing", problem="invalid-cursor")
    seen = [_member(item, "observed_at") for answer in o.series for item in answer.items("items")]
    expected = "the pages of a series hold what had been received at the first"
    yield holds("COM-012", seen == list(o.instants), expected, f"{len(seen)} samples", o.series[-1])
    if o.faults:
        yield from _judge_faults(o.faults)


def _judge_faults(o: Faults) -> Iterator[Finding]:
    """That faults are told and cleared is a matter of other requirements; here it is how they are listed."""
    for answer in o.pages:
        yield answered("COM-012", answer, 200, "each page of faults is answered")
    items = [item for answer in o.pages for item in answer.items("items")]
    names, last = [str(_member(item, "id")) for item in items], o.pages[-1]
    begun = {str(_member(item, "id")) for item in o.open.items("items")}
    missing = begun - set(names)
    yield holds("COM-012", not missing, "the pages hold each fault that was open before the first", missing, last)
    in_order = names == sorted(set(names))
    yield holds("COM-012", in_order, "they hold each fault once, in order of identifier", names, last)
    states = {str(_member(item, "state")) for item in items}
    expected = "they show each fault as it was at the first page"
    yield holds("COM-012", states <= {"open"}, expected, states, last)
    revisions = {str(answer.at("revision")) for answer in o.pages}
    yield holds("COM-012", len(revisions) == 1, "each page of faults names the same revision", revisions, last)
    sizes = [len(answer.items("items")) for answer in o.pages]
    yield holds("COM-012", all(size <= 1 for size in sizes), "no page of faults holds more than 1", sizes, last)
    if len(begun) > 1:
        because = "the cursor of a listing of faults, given to one of other states"
        yield answered("COM-012", o.foreign, 400, because, problem="invalid-cursor")


def _member(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else None


CHECK = Check("com_paging", ("COM-012",), observe, judge)
