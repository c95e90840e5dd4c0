"""What checks set up at the target before they begin; none of it scores."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode

Body = dict[str, Any]

MOST_PAGES = 2000
"""Pages of one listing that are asked for; a target that never comes to an end must not keep the suite."""


def domain(episode: Episode, label: str = "d", *, tenant: str = "own") -> str:
    """Register a domain and return its identifier."""
    identifier = episode.name_of(label)
    episode.set_up("PUT", f"/v1/domains/{identifier}", {"id": identifier}, tenant=tenant)
    return identifier


def device(identifier: str, **members: Any) -> Body:
    """Body of an accelerator."""
    return {"id": identifier, "kind": "gpu", "vendor": "conformance", "model": "probe", **members}


def node(episode: Episode, in_domain: str, called: str = "n", *, names: Sequence[str] = (), **members: Any) -> str:
    """Register a node with devices of these names and return its identifier."""
    identifier = episode.name_of(called)
    body = {"id": identifier, "domain": in_domain, "devices": [device(name) for name in names], **members}
    episode.set_up("PUT", f"/v1/nodes/{identifier}", body)
    return identifier


def sample(subject: str, observed_at: str, *, kind: str = "node", **measures: Any) -> Body:
    """Body of a sample."""
    return {"subject": subject, "subject_kind": kind, "observed_at": observed_at, **measures}


def post(episode: Episode, samples: list[Body], *, mode: str = "per_item", **members: Any) -> Answer:
    """Send a batch of samples."""
    return episode.ask("POST", "/v1/samples", {"mode": mode, "samples": samples, **members})


def held(episode: Episode, subject: str, *, kind: str = "node", query: str = "") -> Answer:
    """Ask for the samples of a subject."""
    return episode.ask("GET", f"/v1/samples?subject={subject}&subject_kind={kind}{query}")


def pages(episode: Episode, path: str, first: Answer | None = None) -> Iterator[Answer]:
    """Pages of a listing, following the cursors; ``first`` where the first page is there already."""
    answer = first or episode.ask("GET", path)
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        yield answer
        cursor = answer.at("next_cursor")
        if not isinstance(cursor, str) or cursor in seen:
            return
        seen.add(cursor)
        answer = episode.ask("GET", f"{path}&cursor={quote(cursor, safe='')}")
