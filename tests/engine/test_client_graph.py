"""The client follows a graph: events however they are cut, connections that break, changes that are held no longer."""

import json
from typing import Any

import pytest
from engine.recording_service import INSTANT, problem
from engine.scripted_service import EVENTS, Answer, Script
from hypothesis import given
from hypothesis import strategies as st

from kuayu.client import Client, NotFoundError, RefusedError, UnexpectedAnswerError, UnreachableError
from kuayu.client.connection import Event, read_events
from kuayu.picture import GraphPicture
from kuayu_schemas.models import GraphChange, ResourceGraph

COUNTS = dict.fromkeys(("idle", "busy", "degraded", "straggling", "faulty", "offline", "unknown"), 0)
DIGEST = "sha256:" + 64 * "0"


def events(text: str) -> list[Event]:
    return list(read_events([text.encode()]))


def test_events_are_read_as_the_format_has_it() -> None:
    text = (
        "\ufeff: a comment\nid: 1\nevent: change\ndata: {\ndata:}\nretry: 5\n\n"
        "data\n\n"
        "data:  two\r\rid\r\nevent: nothing\r\n\r\n"
        "id: 9\0\ndata: x\nunknown: y\n\n"
        "data: never finished\n"
    )
    assert events(text) == [
        Event("1", "change", "{\n}"),
        Event("1", "message", ""),
        Event("1", "message", " two"),
        Event("", "message", "x"),
    ]


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8), max_size=6),
    st.lists(st.integers(1, 9), min_size=1),
    st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_events_do_not_depend_on_how_the_stream_is_cut(texts: list[str], cuts: list[int], end: str) -> None:
    stream = "".join(f"id: {n}{end}data: {text}{end}{end}" for n, text in enumerate(texts)).encode()
    pieces: list[bytes] = []
    at = 0
    while at < len(stream):
        cut = cuts[len(pieces) % len(cuts)]
        pieces.append(stream[at : at + cut])
        at += cut
    assert list(read_events(pieces)) == [Event(str(n), "message", text) for n, text in enumerate(texts)]


def graph(number: int, *nodes: str, epoch: str = "e") -> Answer:
    domain = {"id": "d", "nodes": COUNTS | {"unknown": len(nodes)}, "devices": 0, "reachable": True}
    body = {
        "digest": DIGEST,
        "revision": {"epoch": epoch, "number": number},
        "taken_at": INSTANT,
        "domains": [domain],
        "nodes": [vertex(name) for name in nodes],
        "links": [],
    }
    return 200, "application/json", json.dumps(body).encode()


def vertex(name: str, state: str = "unknown") -> dict[str, Any]:
    return {"id": name, "domain": "d", "state": state, "since": INSTANT, "devices": 0}


def change(number: int, *nodes: dict[str, Any], gone: tuple[str, ...] = (), epoch: str = "e") -> bytes:
    body = {
        "revision": {"epoch": epoch, "number": number},
        "changed_at": INSTANT,
        "domains": [],
        "nodes": list(nodes),
        "links": [],
        "gone": [{"kind": "node", "id": name} for name in gone],
    }
    return f"id: {epoch}:{number}\nevent: change\ndata: {json.dumps(body)}\n\n".encode()


def test_a_graph_is_followed_over_breaks_and_begun_anew_when_it_must_be(script: Script) -> None:
    service = script(
        graph(4, "n1"),
        (200, EVENTS, b": hello\n\n" + change(5, vertex("n2")) + change(7, vertex("n1", "busy"))[:-1]),
        (503, "application/problem+json", problem("overloaded")),
        (200, EVENTS, change(7, vertex("n1", "busy")) + b"event: else\ndata: {}\n\n"),
        (410, "application/problem+json", problem("revision-expired")),
        graph(1, "n9", epoch="f"),
        (200, EVENTS, change(2, vertex("n8", "levitating"), gone=("n9",), epoch="f")),
        (404, "application/problem+json", problem("not-found")),
    )
    picture = GraphPicture()
    kinds: list[type[ResourceGraph | GraphChange]] = []

    def follow(client: Client) -> None:
        for news in client.follow_graph(nodes=True, domain="d"):
            kinds.append(type(news))
            picture.take(news)
            if kinds[-1] is ResourceGraph:
                assert set(picture.nodes) == ({"n1"} if len(kinds) == 1 else {"n9"})

    with Client(service.url, attempts=1) as client, pytest.raises(NotFoundError):
        follow(client)
    assert kinds == [ResourceGraph, GraphChange, GraphChange, ResourceGraph, GraphChange]
    assert {name: node.state for name, node in picture.nodes.items()} == {"n8": "unknown"}
    assert picture.revision is not None
    assert (picture.revision.epoch, picture.revision.number) == ("f", 2)
    stream, whole = "/v1/graph/events?domain=d", "/v1/graph?domain=d"
    assert service.asked == [
        (whole, None),
        (stream, "e:4"),
        (stream, "e:5"),
        (stream, "e:5"),
        (stream, "e:7"),
        (whole, None),
        (stream, "f:1"),
        (stream, "f:2"),
    ]


def test_patience_with_a_service_that_stays_away_ends(script: Script) -> None:
    service = script(graph(1), (200, EVENTS, change(2, vertex("n"))))
    with Client(service.url, attempts=1) as client:
        news = client.follow_graph(patience_s=1.0)
        assert isinstance(next(news), ResourceGraph)
        assert isinstance(next(news), GraphChange)
        with pytest.raises(UnreachableError, match="no answer from"):
            next(news)
    assert len(service.asked) > 3


def test_what_is_no_stream_of_changes_is_told_apart(script: Script) -> None:
    wrong: tuple[tuple[Answer, str], ...] = (
        ((200, "text/html", b"<html>welcome</html>"), "no stream of events"),
        ((200, EVENTS, b"id: 1\nevent: change\ndata: welcome\n\n"), "no GraphChange"),
        ((502, "text/html", b"<html>bad gateway</html>"), "no Problem"),
    )
    for answer, said in wrong:
        with Client(script(graph(1), answer).url, attempts=1) as client:
            news = client.follow_graph()
            next(news)
            with pytest.raises(UnexpectedAnswerError, match=said):
                next(news)


def test_graphs_and_patches_are_asked_for_by_their_parameters(script: Script) -> None:
    patch = {"base": DIGEST, "result": DIGEST, "operations": []}
    service = script(
        graph(1),
        (200, "application/json", json.dumps(patch).encode()),
        (409, "application/problem+json", problem("unknown-base")),
    )
    with Client(service.url, attempts=1) as client:
        assert client.graph(nodes=False, domain="d").revision.number == 1
        assert client.graph_patch(DIGEST, nodes=False).operations == []
        with pytest.raises(RefusedError) as refused:
            client.graph_patch(DIGEST)
    assert refused.value.name == "unknown-base"
    assert [path for path, _ in service.asked] == [
        "/v1/graph?detail=domains&domain=d",
        f"/v1/graph/patch?base={DIGEST.replace(':', '%3A')}&detail=domains",
        f"/v1/graph/patch?base={DIGEST.replace(':', '%3A')}",
    ]
