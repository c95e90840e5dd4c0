"""What checks of the resource graph share: reading it, waiting for it, and applying changes to it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode, Stream
from kuayu_conformance.streams import StreamEvent
from kuayu_schemas import schema

PAUSE = 0.25
"""Seconds between two looks."""

PARTS = ("domains", "nodes", "links")
KINDS = {"domain": "domains", "node": "nodes", "link": "links"}

Vertex = dict[str, Any]
"""A vertex as a target shows it, which need not be valid."""

Vertices = dict[str, Vertex]
"""Vertices of one kind by identifier."""

Graph = dict[str, Vertices]
"""Vertices of each kind."""


def read(episode: Episode, query: str = "", *, tenant: str = "own") -> Answer:
    """Ask for the graph; ``query`` begins with a question mark where it is not empty."""
    return episode.ask("GET", f"/v1/graph{query}", tenant=tenant)


def wait_until(episode: Episode, query: str, shown: Callable[[Graph], bool]) -> Answer:
    """Read the graph until it shows something; the last answer, whether it does or not.

    A target that does not answer is not asked again, and one that has been waited for in vain is not waited for again
    in the same episode: its verdict is clear.
    """
    until = episode.now() + episode.patience
    while True:
        answer = read(episode, query)
        if answer.status != 200 or shown(graph_of(answer.json)):
            return answer
        if episode.now() > until:
            episode.patience = 0.0
            return answer
        episode.sleep(PAUSE)


def graph_of(document: Any) -> Graph:
    """Vertices of a snapshot; whatever is no vertex is left out."""
    body = document if isinstance(document, dict) else {}
    return {part: _by_identifier(body.get(part)) for part in PARTS}


def _by_identifier(vertices: Any) -> Vertices:
    rows = vertices if isinstance(vertices, list) else []
    return {str(row["id"]): row for row in rows if isinstance(row, dict) and "id" in row}


def applied(graph: Graph, change: Any) -> Graph:
    """The graph after a change: what stands in the change takes the place of what had the same identifier."""
    after = {part: {**graph[part], **rows} for part, rows in graph_of(change).items()}
    for kind, name in gone_of(change):
        after.get(KINDS.get(kind, ""), {}).pop(name, None)
    return after


def gone_of(change: Any) -> list[tuple[str, str]]:
    """Kinds and names of what a change takes away; whatever says neither is left out."""
    gone = change.get("gone") if isinstance(change, dict) else None
    rows = gone if isinstance(gone, list) else []
    return [(str(row.get("kind")), str(row.get("id"))) for row in rows if isinstance(row, dict)]


def only(graph: Graph, names: Iterable[str]) -> Graph:
    """The vertices of these names."""
    wanted = set(names)
    return {part: {name: row for name, row in graph[part].items() if name in wanted} for part in PARTS}


def document(answer: Answer) -> dict[str, Any]:
    """The members of a snapshot that its digest is of."""
    return {part: answer.items(part) for part in PARTS}


def digest_of(value: Any) -> str:
    """Digest of a document, or in words why it has none."""
    try:
        return schema.digest(value)
    except schema.NotCanonicalError as error:
        return str(error)


def revision_of(value: Any) -> tuple[str, int]:
    """Epoch and number of a revision; ("", -1) where it is none."""
    match value:
        case {"epoch": str(epoch), "number": int(number)}:
            return epoch, number
    return "", -1


def identifier_of(value: Any) -> str:
    """A revision as the identifier of an event."""
    epoch, number = revision_of(value)
    return f"{epoch}:{number}"


def events_until(episode: Episode, stream: Stream, matches: Callable[[StreamEvent], bool]) -> None:
    """Take events until one is found, the stream ends, or patience does."""
    for _ in range(round(episode.patience / PAUSE)):
        if any(matches(event) for event in stream.take(PAUSE)) or stream.taken[-1].ended:
            return
    episode.patience = 0.0


def removes(event: StreamEvent, kind: str, name: str) -> bool:
    """Whether a change takes a vertex away."""
    return (kind, name) in gone_of(event.json)


def difference(actual: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first places in which two graphs differ, in words; empty where they do not."""
    differences = []
    for part in PARTS:
        ours, theirs = actual.get(part, {}), wanted.get(part, {})
        differences += [f"{part}/{name} missing" for name in sorted(theirs.keys() - ours.keys())]
        differences += [f"{part}/{name} too many" for name in sorted(ours.keys() - theirs.keys())]
        differences += [
            f"{part}/{name}: {ours[name]} and not {theirs[name]}"
            for name in sorted(ours.keys() & theirs.keys())
            if ours[name] != theirs[name]
        ]
    return "; ".join(differences[:3])
