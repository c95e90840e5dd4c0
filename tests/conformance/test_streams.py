"""Server-sent events as a reader takes them: the suite reads them as the standard for event streams says."""

import contextlib
import http.server
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.run.live import StreamFollower
from kuayu_conformance.streams import Comment, Reader, StreamEvent, lines


def read(text: str) -> list[StreamEvent | Comment]:
    reader = Reader()
    return [found for line in lines([text]) if (found := reader.take(line, 1.0)) is not None]


def test_an_event_is_complete_with_the_empty_line() -> None:
    assert read("id: e:1\nevent: change\ndata: {}\n") == []
    assert read("id: e:1\nevent: change\ndata: {}\n\n") == [StreamEvent(1.0, "e:1", "change", "{}")]


def test_lines_of_data_are_one_text_and_only_the_first_space_is_dropped() -> None:
    assert read("data: a\ndata:  b\ndata\n\n") == [StreamEvent(1.0, "", "message", "a\n b\n")]


def test_a_comment_is_no_event_and_what_has_no_data_is_none_either() -> None:
    assert read(": alive\n\nid: e:2\n\n") == [Comment(1.0)]


def test_data_that_is_no_json_is_none() -> None:
    (event,) = read("data: {\n\n")
    assert isinstance(event, StreamEvent)
    assert event.json is None


@given(st.lists(st.text(alphabet="ab:\n\r ", max_size=6), max_size=8))
def test_lines_do_not_depend_on_how_the_text_comes_in_pieces(pieces: list[str]) -> None:
    whole = "".join(pieces) + "\n"
    assert list(lines([*pieces, "\n"])) == whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]


class Speaker(http.server.BaseHTTPRequestHandler):
    """Says two events and a comment, then keeps the line open until it is hung up."""

    silenced = threading.Event()

    def do_GET(self) -> None:
        """Answer by the path."""
        if self.path == "/refused":
            self.send_response(410)
            self.send_header("content-type", "application/problem+json")
            self.end_headers()
            self.wfile.write(b"{}")
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.end_headers()
        for piece in (b": here\n\n", b"id: e:1\nda", b"ta: 1\n\nid: e:2\ndata: 2\n\n"):
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(0.05)
        if self.path == "/short":
            return
        with contextlib.suppress(OSError):
            while not self.silenced.wait(0.02):
                self.wfile.write(b": still here\n\n")
                self.wfile.flush()
        self.silenced.set()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives
        """Say nothing of requests."""


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    Speaker.silenced.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Speaker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with httpx.Client(base_url=f"http://127.0.0.1:{server.server_address[1]}", timeout=5, trust_env=False) as client:
        yield client
    server.shutdown()
    server.server_close()


def test_a_live_stream_is_followed_while_others_work_and_hung_up_from_here(client: httpx.Client) -> None:
    followed = StreamFollower(client, "/open", {})
    assert followed.opening().status == 200
    while not followed.has(2):
        followed.wait(1)
    taken = followed.taken()
    assert [(event.id, event.data) for event in taken.events] == [("e:1", "1"), ("e:2", "2")]
    assert taken.comments
    assert not taken.ended
    followed.hang_up()
    assert followed.taken().ended
    assert Speaker.silenced.wait(5), "the other side notices"


def test_a_stream_that_ends_by_itself_says_so(client: httpx.Client) -> None:
    followed = StreamFollower(client, "/short", {})
    assert followed.opening().status == 200
    while not followed.has(3):
        followed.wait(1)
    assert followed.taken().ended
    followed.hang_up()


def test_a_refusal_is_an_answer_with_its_body(client: httpx.Client) -> None:
    followed = StreamFollower(client, "/refused", {})
    opening = followed.opening()
    assert (opening.status, opening.body) == (410, b"{}")
    followed.hang_up()


def test_where_nobody_listens_the_failure_is_named() -> None:
    with httpx.Client(base_url="http://127.0.0.1:9", timeout=2, trust_env=False) as client:
        opening = StreamFollower(client, "/", {}).opening()
    assert opening.status == 0
    assert "ConnectError" in opening.failure
