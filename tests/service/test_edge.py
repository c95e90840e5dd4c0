"""What a connection may do before there is a request, and where the service may be reached without tokens or TLS."""

import os
import re
import signal
import socket
import stat
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest
from commands import service_server
from service.conftest import QUIET, Service, StartService, free_port, problem

from kuayu.service.auth import TokenFile, hash_of
from kuayu.service.settings import OperatorFileError

EVERYWHERE = "0.0.0.0"  # noqa: S104 - that it is refused is what is tested


def connect(service: Service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=20)


def answer_of(connection: socket.socket) -> bytes:
    """All that comes until the service hangs up."""
    found = b""
    while piece := connection.recv(65_536):
        found += piece
    return found


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/health HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * 40_000,
        b"GET /v1/health HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * 40_000 + b"\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_a_head_that_is_too_large_is_refused(shared: Service, head: bytes) -> None:
    with connect(shared) as connection:
        connection.sendall(head)
        answer = answer_of(connection)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"application/problem+json" in answer


def test_a_head_of_usual_size_is_taken(shared: Service) -> None:
    headers = {f"X-{number}": "x" * 200 for number in range(80)}
    assert shared.client.get("/v1/health", headers=headers).status_code == 200


HEADS = (b"", b"GET /v1/health HTTP/1.1\r\nHost: x\r\n", b"\r\n")
"""Beginnings of heads."""
BODY = b"POST /v1/samples HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
"""A head, and the beginning of its body."""
WAITING = b"GET /v1/actions?domain=waiting&wait=1 HTTP/1.1\r\nHost: x\r\n\r\n"
LATE = b"GET / HTTP/1.1\r\n"
"""The beginning of a head that comes after requests which are waited for."""


@pytest.fixture(scope="module")
def unfinished(shared: Service) -> Mapping[bytes, tuple[bytes, float]]:
    """What is answered to who does not go on after a beginning, and after how many seconds; asked beside each other."""
    shared.put("/v1/domains/waiting", {"id": "waiting"}).raise_for_status()

    def ask(begin: bytes) -> tuple[bytes, float]:
        began = time.monotonic()
        with connect(shared) as connection:
            connection.sendall(begin)
            return answer_of(connection), time.monotonic() - began

    begins = (*HEADS, BODY, WAITING * 2 + LATE)
    with ThreadPoolExecutor(len(begins)) as pool:
        return dict(zip(begins, pool.map(ask, begins), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("begin", HEADS)
def test_who_does_not_finish_a_head_is_told_so(unfinished: Mapping[bytes, tuple[bytes, float]], begin: bytes) -> None:
    answer, seconds = unfinished[begin]
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert seconds < 15


@pytest.mark.slow
def test_a_body_that_does_not_come_is_not_waited_for(unfinished: Mapping[bytes, tuple[bytes, float]]) -> None:
    answer, _ = unfinished[BODY]
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in answer.lower()


def test_connections_from_one_address_are_counted(start_service: StartService) -> None:
    service = start_service("--max-connections-per-address", "4")
    service.client.close()
    time.sleep(0.2)
    held = [connect(service) for _ in range(4)]
    with connect(service) as another:
        assert answer_of(another).startswith(b"HTTP/1.1 503 ")
    for connection in held:
        connection.close()
    time.sleep(0.2)
    with connect(service) as again:
        again.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer_of(again).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
def test_a_connection_is_kept_for_longer_than_clients_keep_theirs(shared: Service) -> None:
    line = HTTPConnection("127.0.0.1", shared.port, timeout=20)
    line.connect()
    line.auto_open = 0
    try:
        for pause in (6, 0):
            line.request("GET", "/v1/health")
            answer = line.getresponse()
            assert answer.status == 200
            answer.read()
            time.sleep(pause)
    finally:
        line.close()


@pytest.mark.slow
def test_a_connection_outlives_an_answer_that_came_before_the_body(start_service: StartService) -> None:
    service = start_service("--max-connections", "1")  # so that it is crowded by one
    service.client.close()
    time.sleep(0.2)
    line = HTTPConnection("127.0.0.1", service.port, timeout=20)
    line.auto_open = 0
    line.connect()
    try:
        line.putrequest("PUT", "/v1/nothing")
        line.putheader("Content-Type", "application/json")
        line.putheader("Content-Length", "2")
        line.endheaders()
        answer = line.getresponse()
        assert answer.status == 404
        assert answer.getheader("Connection") is None
        answer.read()
        line.send(b"{}")
        for _ in range(14):  # a second longer than what is left of a body may take
            time.sleep(0.5)
            line.request("GET", "/v1/health")
            following = line.getresponse()
            assert following.status == 200
            following.read()
        began = time.monotonic()
        assert line.sock.recv(1) == b""
        assert time.monotonic() - began < 10  # in a crowd, idle connections are closed soon after it too
    finally:
        line.close()


@pytest.mark.slow
def test_a_body_that_does_not_go_on_after_its_answer_ends_the_connection(shared: Service) -> None:
    head = b"PUT /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with connect(shared) as connection:
        connection.sendall(head + b"Content-Length: 1000\r\n\r\n{")
        began = time.monotonic()
        assert answer_of(connection).startswith(b"HTTP/1.1 404 ")
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("size", [1_000_000, 40_000_000])
def test_who_is_refused_before_the_body_was_read_gets_the_answer(shared: Service, size: int) -> None:
    head = f"POST /v1/samples HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
    with connect(shared) as connection:
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        for _ in range(size // 100_000):
            connection.sendall(b" " * 100_000)
        answer = answer_of(connection)
    assert answer.startswith(b"HTTP/1.1 400 " if size == 1_000_000 else b"HTTP/1.1 413 ")
    assert b"connection: close\r\n" in answer.lower()
    assert b"application/problem+json" in answer


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b"GET / HTTP/1.1\r\nLong: " + b"x" * 1_000_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200, 431),
        (b"no request\r\n\r\n", 400),
    ],
)
def test_who_is_refused_is_answered_in_turn(shared: Service, rest: bytes, status: int) -> None:
    shared.put("/v1/domains/waiting", {"id": "waiting"}).raise_for_status()
    with connect(shared) as connection:
        connection.sendall(WAITING * 2 + rest)
        refused_in_turn(answer_of(connection), status)


@pytest.mark.slow
def test_who_does_not_finish_is_answered_in_turn(unfinished: Mapping[bytes, tuple[bytes, float]]) -> None:
    refused_in_turn(unfinished[WAITING * 2 + LATE][0], 408)


def refused_in_turn(found: bytes, status: int) -> None:
    """Two requests that were waited for have been answered, and then one was refused."""
    assert [int(code) for code in re.findall(rb"HTTP/1.1 (\d+) ", found)] == [200, 200, status]
    assert found.lower().count(b"connection: close") == 1
    assert b"application/problem+json" in found


CHUNKED = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /v1/health HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.0\r\n\r\n", 200),
        (b"POST /v1/samples HTTP/1.0\r\nHost: a\r\n" + CHUNKED, 400),
        (b"POST /v1/samples HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + CHUNKED, 422),
        (b"POST /v1/samples HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n" + CHUNKED, 400),
        (b"POST /v1/samples HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n" + CHUNKED, 400),
    ],
)
def test_what_a_proxy_may_read_as_another_request_is_refused(shared: Service, request_: bytes, status: int) -> None:
    with connect(shared) as connection:
        connection.sendall(request_)
        assert answer_of(connection).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"1\r\n{\r\n0\r\n" + b"more: " + b"x" * 1_000_000, 431),
        (b"1\r\n{\r\n0\r\n" + b"more: x\r\n" * 200, 431),
        (b"1;" + b"x" * 1_000_000, 431),
        (b"1\r\n{\r\nno chunk", 400),
    ],
)
def test_what_surrounds_the_chunks_of_a_body_is_bounded(shared: Service, body: bytes, status: int) -> None:
    head = (
        b"POST /v1/samples HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with connect(shared) as connection:
        connection.sendall(head + body)
        answer = answer_of(connection)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"application/problem+json" in answer


def test_many_small_chunks_are_a_body(shared: Service) -> None:
    head = b"POST /v1/samples HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    with connect(shared) as connection:
        body = b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"mode":"per_item","samples":[]}' + b" " * 50_000)
        connection.sendall(head + b"Connection: close\r\n\r\n" + body + b"0\r\nmore: x\r\n\r\n")
        answer = answer_of(connection)
    assert answer.startswith(b"HTTP/1.1 422 ")  # it was read to its end: a batch without a sample


def refused(*options: str) -> str:
    """What ``kuayu serve`` complains of."""
    read, write = os.pipe()
    with Path(os.devnull).open("r+b") as nothing:
        process = service_server().start([*QUIET, "--port", str(free_port()), *options], [nothing, nothing, write])
    os.close(write)
    try:
        assert process.wait(60) == 1
        with os.fdopen(read, "rb") as complaint:
            return complaint.read().decode()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)


def test_other_hosts_need_tokens_and_tls(tmp_path: Path) -> None:
    database = ("--database", f"sqlite:///{tmp_path / 'x.db'}")
    assert "without tokens the service listens on loopback alone" in refused("--host", EVERYWHERE, *database)
    assert "in the clear" in refused("--host", EVERYWHERE, "--token", "a=secret", *database)
    assert "both --tls-certificate and --tls-key" in refused("--tls-certificate", "x.pem", *database)
    assert not (tmp_path / "x.db").exists()


def test_files_of_tokens_are_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    behind = ("--host", EVERYWHERE, "--behind-proxy", "--token-file", str(file), "--database", "sqlite://")
    assert "cannot read the tokens" in refused(*behind)
    file.write_text("# nobody yet\n", encoding="utf-8")
    file.chmod(0o600)
    assert "there is no token in" in refused(*behind)
    file.write_text("red=secret\n", encoding="utf-8")
    file.chmod(0o644)
    assert "chmod 600" in refused(*behind)
    for mode, exposed in ((0o600, False), (0o640, False), (0o440, False), (0o604, True), (0o644, True)):
        file.chmod(mode)
        assert TokenFile(file).exposed is exposed
    foreign = max({os.getegid(), *os.getgroups()}) + 1
    if os.geteuid() == 0:
        os.chown(file, -1, foreign)
        file.chmod(0o640)
        assert TokenFile(file).exposed
        assert "chmod 600" in refused(*behind)
        file.chmod(0o600)
        assert not TokenFile(file).exposed
    for line, why in (
        ("red", "TENANT=TOKEN"),
        ("red=sha256:12", "64 hexadecimal digits"),
        ("red=secret role=king", "role=viewer"),
        ("red=secret role=domain", "stand together"),
        ("red=secret domain=d", "stand together"),
        ("red=secret role=viewer account=a", "role=tenant, and this one is viewer"),
        ("red=secret account=a,b", "account=ACCOUNT, name=NAME"),
        ("red=secret account=a\nred=secret account=b", "line 2: the same token"),
        ("red=secret expires=2027-01-01", "time zone"),
        ("red=secret expires=soon", "isoformat"),
        ("red=secret\nblue=secret", "line 2"),
    ):
        file.write_text(line + "\n", encoding="utf-8")
        with pytest.raises(OperatorFileError, match=why):
            TokenFile(file)


def test_tokens_are_hashed_expire_only_read_and_are_read_again(start_service: StartService, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(
        f"red={hash_of('of-red')}\nred={hash_of('reader')} role=reader\n"
        f"red={hash_of('old')} expires=2020-01-01T00:00:00Z\n",
        encoding="utf-8",
    )
    file.chmod(0o600)
    service = start_service("--token-file", str(file), "--metrics", "token")
    domain = {"id": "d"}
    with service.as_tenant("of-red") as writer, service.as_tenant("reader") as reader, service.as_tenant("old") as old:
        assert writer.put("/v1/domains/d", json=domain).status_code == 201
        assert reader.get("/v1/domains/d").status_code == 200
        assert problem(reader.put("/v1/domains/d", json=domain)) == "forbidden"
        assert problem(old.get("/v1/domains/d")) == "unauthorised"
        assert "expired" in old.get("/v1/domains/d").json()["detail"]
        assert problem(service.client.get("/metrics")) == "unauthorised"
        assert reader.get("/metrics").status_code == 200
        with service.as_tenant(hash_of("of-red")) as thief:
            assert problem(thief.get("/v1/domains/d")) == "unauthorised"

        file.write_text("nonsense\n", encoding="utf-8")
        time.sleep(2.5)
        assert reader.get("/v1/domains/d").status_code == 200  # what cannot be read takes nothing away
        file.write_text(f"red={hash_of('new')}\n", encoding="utf-8")
        deadline = time.monotonic() + 20
        while reader.get("/v1/domains/d").status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with service.as_tenant("new") as new:
            assert new.get("/v1/domains/d").status_code == 200


def test_what_the_service_writes_is_its_owners_alone(start_service: StartService, tmp_path: Path) -> None:
    service = start_service()
    service.register()
    modes = [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("kuayu.db*")]
    assert modes
    assert all(mode == 0o600 for mode in modes)


def test_metrics_can_be_switched_off(start_service: StartService) -> None:
    assert problem(start_service("--metrics", "off").client.get("/metrics")) == "not-found"
