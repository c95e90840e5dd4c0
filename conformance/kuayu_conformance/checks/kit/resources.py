"""What checks set up at the target before they begin; none of it scores."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode, instant

if TYPE_CHECKING:
    from kuayu_schemas import documents

GRAVE = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
"""Line of a log that tells that a device has to be reset, in the words of its driver (NVIDIA, Xid 79)."""

TOLD = 10.0
"""Seconds in which a fault is told that lasts (RES-001)."""

GLANCE = 0.1
"""Seconds between two looks at faults."""

MOST_PAGES = 2000
"""Pages of one listing that are asked for; a target that never comes to an end must not keep the suite."""


def domain(episode: Episode, label: str = "d", *, tenant: str = "own") -> str:
    """Register a domain, which no other has the label of, and return its identifier."""
    identifier = episode.name_of(label)
    _register(episode, f"/v1/domains/{identifier}", {"id": identifier}, tenant)
    return identifier


def device(identifier: str, **members: Any) -> "documents.Device":
    """An accelerator."""
    body = {"id": identifier, "kind": "gpu", "vendor": "conformance", "model": "probe", **members}
    return cast("documents.Device", body)


def node(episode: Episode, in_domain: str, called: str = "n", *, names: Sequence[str] = (), **members: Any) -> str:
    """Register a node, which no other has the label of, with devices of these names and return its identifier."""
    identifier = episode.name_of(called)
    body = {"id": identifier, "domain": in_domain, "devices": [device(name) for name in names], **members}
    _register(episode, f"/v1/nodes/{identifier}", body, "own")
    return identifier


def _register(episode: Episode, path: str, body: Mapping[str, object], tenant: str) -> None:
    """Make what is not there yet: a check whose labels are no more than one would find less than it believes."""
    if (path, tenant) in episode.created:
        raise ValueError(f"{path} has been made before in {episode.name}")
    episode.set_up("PUT", path, body, tenant=tenant)


def sample(subject: str, observed_at: str, *, kind: str = "node", **measures: Any) -> "documents.Sample":
    """A sample."""
    body = {"subject": subject, "subject_kind": kind, "observed_at": observed_at, **measures}
    return cast("documents.Sample", body)


def post(
    episode: Episode, samples: Sequence[Mapping[str, object]], *, mode: str = "per_item", **members: Any
) -> Answer:
    """Send a batch of samples."""
    return episode.ask("POST", "/v1/samples", {"mode": mode, "samples": samples, **members})


def beat(subject: str, number: int, sent_at: str) -> "documents.Heartbeat":
    """A heartbeat."""
    return {"node": subject, "number": number, "sent_at": sent_at}


def line(subject: str, logged_at: str, text: str) -> "documents.LogLine":
    """A line of a log."""
    return {"node": subject, "logged_at": logged_at, "text": text}


def failing(episode: Episode, subjects: Sequence[str]) -> None:
    """Let nodes beat once, and their logs tell that their devices have to be reset.

    Raises:
        SetUpFailure: Heartbeats or log lines were refused.
    """
    now = instant(episode.now())
    episode.set_up("POST", "/v1/heartbeats", {"beats": [beat(subject, 1, now) for subject in subjects]})
    episode.set_up("POST", "/v1/log-lines", {"lines": [line(subject, now, GRAVE) for subject in subjects]})


def faults_of(episode: Episode, in_domain: str, state: str, least: int) -> Answer:
    """Faults of a domain that are open, or cleared: the first listing that has so many, or the last one in time."""
    until = episode.now() + TOLD
    while True:
        answer = episode.ask("GET", f"/v1/faults?domain={in_domain}&state={state}")
        if answer.status != 200 or len(answer.items("items")) >= least or episode.now() > until:
            return answer
        episode.sleep(GLANCE)


def read_samples(episode: Episode, subject: str, *, kind: str = "node", query: str = "") -> Answer:
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
