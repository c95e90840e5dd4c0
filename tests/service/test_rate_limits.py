"""How fast requests of one sender may come, and how fast tokens may be guessed."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from service.conftest import JsonObject, Service, StartService, instant, problem

from kuayu.client import Client
from kuayu.service.rate_limits import RateLimit, TokenBuckets
from kuayu_schemas.models import Domain

UNBOUND = "fresh-token"
"""A token that is bound to no account."""
RATE = 20
"""Requests a second, and at once, in most of these stories."""

LINES = (
    "default=red-token account=red name=red",
    "default=another-red-token account=red name=another-red",
    "default=blue-token account=blue name=blue",
    "default=agent-token role=domain domain=here name=agent",
    "default=fresh-token name=fresh",
)


@pytest.fixture
def start_limited(start_service: StartService, tmp_path: Path) -> Callable[..., Service]:
    """Starts services with these tokens."""
    file = tmp_path / "tokens"
    file.write_text("".join(f"{line}\n" for line in LINES))
    file.chmod(0o600)

    def start(*options: str) -> Service:
        return start_service("--token-file", str(file), *options)

    return start


@contextmanager
def flood(service: Service, *tokens: str, path: str = "/v1/domains") -> Iterator[list[httpx.Response]]:
    """Ask with each token as fast as it goes, until the block is over; all answers."""
    over, answers = Event(), list[httpx.Response]()

    def ask(token: str) -> None:
        with service.as_tenant(token) as client:
            while not over.is_set():
                answers.append(client.get(path))

    with ThreadPoolExecutor(len(tokens)) as pool:
        floods = [pool.submit(ask, token) for token in tokens]
        try:
            yield answers
        finally:
            over.set()
        for task in floods:
            task.result()


def limited(service: Service, limit: str) -> float:
    """How many requests the service's metrics say that a limit has turned away."""
    with service.as_tenant("blue-token") as client:
        page = client.get("/metrics").text
    (line,) = [line for line in page.splitlines() if line.startswith(f'kuayu_rate_limited_total{{limit="{limit}"}}')]
    return float(line.split()[-1])


def statuses(answers: list[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def test_a_flood_by_one_account_leaves_anothers_requests_undisturbed(start_limited: Callable[..., Service]) -> None:
    service = start_limited("--max-request-rate", str(RATE), "--max-request-burst", str(RATE))
    seconds = []
    with service.as_tenant("blue-token") as blue:
        began = time.monotonic()
        with flood(service, "red-token", "another-red-token") as answers:
            for _ in range(20):
                asked = time.monotonic()
                blue.get("/v1/domains").raise_for_status()
                seconds.append(time.monotonic() - asked)
                time.sleep(0.1)
        elapsed = time.monotonic() - began
    found = statuses(answers)
    assert found.keys() == {200, 429}
    assert found[200] <= RATE + RATE * elapsed + 1  # both tokens of the account share what it may have
    assert found[429] > found[200]
    assert max(seconds) < 1.0
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert problem(refused) == "rate-limited"
    assert int(refused.headers["Retry-After"]) >= 1
    assert refused.json()["retryable"] is True
    assert limited(service, "sender") == found[429]


def test_what_keeps_a_domain_alive_is_taken_beside_a_flood_and_has_a_limit_of_its_own(
    start_limited: Callable[..., Service],
) -> None:
    service = start_limited("--max-request-rate", "5", "--max-request-burst", "5")
    beats: JsonObject = {"beats": [{"node": "gone", "number": 1, "sent_at": instant()}]}
    with service.as_tenant("agent-token") as agent:
        agent.put("/v1/domains/here", json={"id": "here"}).raise_for_status()
        while agent.get("/v1/domains/here").status_code == 200:
            pass
        assert agent.get("/v1/domains/here").status_code == 429
        assert agent.post("/v1/heartbeats", json=beats).status_code == 200
        assert agent.get("/v1/actions", params={"domain": "here"}).status_code == 200
        answers = [agent.post("/v1/heartbeats", json=beats) for _ in range(20)]
    assert statuses(answers)[429] > 0
    assert limited(service, "urgent") == statuses(answers)[429]


def test_our_client_backs_off_and_goes_on(start_limited: Callable[..., Service]) -> None:
    service = start_limited("--max-request-rate", "5", "--max-request-burst", "5")
    began = time.monotonic()
    with Client(service.url, token=UNBOUND) as client:
        for number in range(15):
            client.put_domain(Domain(id=f"d{number}"))
    assert time.monotonic() - began > 1.5
    assert limited(service, "sender") >= 1
    with service.as_tenant("red-token") as another:
        assert len(another.get("/v1/domains").raise_for_status().json()["items"]) == 15


def test_a_guesser_of_tokens_is_slowed_and_those_beside_him_go_on(
    start_limited: Callable[..., Service], tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"
    service = start_limited("--max-token-guesses", "12", "--audit-log", str(log))

    def ask(token: str, path: str = "/v1/domains") -> httpx.Response:
        return service.client.get(path, headers={"Authorization": f"Bearer {token}"})

    ask("blue-token").raise_for_status()
    assert statuses([ask("taken-out") for _ in range(20)]) == {
        401: 20
    }  # an agent that does not give up guesses nothing
    assert ask("first-guess", "/v1/jobs/another-secret").status_code == 401
    assert statuses([ask(f"guess-{number}") for number in range(10)]) == {401: 10}
    refused = [ask(f"guess-{number}") for number in range(11, 21)]
    assert statuses(refused) == {429: 10}
    assert {problem(answer) for answer in refused} == {"rate-limited"}
    assert all(1 <= int(answer.headers["Retry-After"]) <= 5 for answer in refused)
    assert ask("another-guess", "/metrics").status_code == 429
    assert ask("fresh-token").status_code == 429  # a guess that is right tells as little
    assert ask("blue-token").status_code == 200
    assert service.client.get("/v1/health").status_code == 200
    assert limited(service, "guess") == 12
    time.sleep(float(refused[-1].json()["retry_after"]) + 1)
    assert ask("fresh-token").status_code == 200
    service.stop()
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert Counter(line["status"] for line in lines) == {401: 12, 429: 1}
    assert {line["address"] for line in lines} == {"127.0.0.1"}
    assert {line["subject"] for line in lines} == {None}
    assert {line["resource"] for line in lines} == {"/v1/domains", "/v1/jobs/?"}  # names of strangers are left out
    assert not any(token in text for token in ("guess", "taken-out", "blue-token", "fresh-token", "another-secret"))


def test_who_sends_too_fast_is_in_the_audit_log_once(start_limited: Callable[..., Service], tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    service = start_limited("--max-request-rate", "1", "--max-request-burst", "1", "--audit-log", str(log))
    with service.as_tenant("red-token") as red:
        answers = [red.delete("/v1/jobs/none") for _ in range(20)]
    assert statuses(answers)[429] > 10
    service.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["subject"], line["operation"]) for line in lines if line["status"] == 429] == [("red", "deleteJob")]


def test_behind_a_proxy_the_address_is_the_last_that_it_names(start_limited: Callable[..., Service]) -> None:
    def ask(service: Service, token: str, *named: str) -> int:
        headers = [("Authorization", f"Bearer {token}"), *(("X-Forwarded-For", line) for line in named)]
        return service.client.get("/v1/domains", headers=headers).status_code

    behind = start_limited("--behind-proxy", "--max-token-guesses", "3")
    guesses = [ask(behind, f"guess-{number}", f"198.51.100.{number}, 203.0.113.7") for number in range(6)]
    assert guesses == [401, 401, 401, 429, 429, 429]  # what a client writes before that is not believed
    assert ask(behind, "fresh-token", "203.0.113.8", "203.0.113.7") == 429
    assert ask(behind, "fresh-token", "203.0.113.8") == 200
    behind.stop()
    reached = start_limited("--max-token-guesses", "3")
    guesses = [ask(reached, f"guess-{number}", f"198.51.100.{number}") for number in range(6)]
    assert guesses == [401, 401, 401, 429, 429, 429]


def test_addresses_without_a_token_have_a_limit_too(start_limited: Callable[..., Service]) -> None:
    service = start_limited("--max-request-rate", "5", "--max-request-burst", "5")
    answers = [service.client.get("/v1/domains") for _ in range(30)]
    assert statuses(answers).keys() == {401, 429}
    assert service.client.get("/v1/health").status_code == 200  # whoever looks after the service is not turned away
    with service.as_tenant("blue-token") as blue:
        assert blue.get("/v1/domains").status_code == 200


def test_an_account_has_a_rate_of_its_own_as_the_file_says(
    start_limited: Callable[..., Service], tmp_path: Path
) -> None:
    file = tmp_path / "accounts"
    file.write_text("red rate=0.001 burst=2\n")
    service = start_limited("--accounts", str(file))
    with service.as_tenant("red-token") as red, service.as_tenant("blue-token") as blue:
        assert [red.get("/v1/domains").status_code for _ in range(4)] == [200, 200, 429, 429]
        assert statuses([blue.get("/v1/domains") for _ in range(30)]) == {200: 30}
        file.write_text("red rate=1000 burst=2000\n")
        deadline = time.monotonic() + 10
        while red.get("/v1/domains").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(0.1)
        assert statuses([red.get("/v1/domains") for _ in range(30)]) == {200: 30}


def test_limits_can_be_lifted(start_limited: Callable[..., Service]) -> None:
    service = start_limited("--max-request-rate", "0", "--max-token-guesses", "0")
    with flood(service, "red-token") as answers:
        time.sleep(1)
    assert statuses(answers).keys() == {200}
    guesses = [
        service.client.get("/v1/domains", headers={"Authorization": f"Bearer guess-{number}"}) for number in range(100)
    ]
    assert statuses(guesses) == {401: 100}


def test_nobody_is_limited_where_no_tokens_are_asked_for(start_service: StartService) -> None:
    service = start_service("--max-request-rate", "1", "--max-request-burst", "1")
    assert statuses([service.client.get("/v1/domains") for _ in range(30)]) == {200: 30}


@given(
    pauses=st.lists(st.floats(0, 3), min_size=1, max_size=60),
    rate=st.floats(0.1, 50),
    burst=st.floats(1, 20),
)
def test_a_bucket_gives_no_more_than_its_rate_and_burst_and_what_it_promises(
    pauses: list[float], rate: float, burst: float
) -> None:
    now = 0.0
    buckets, limit = TokenBuckets[str](lambda: now), RateLimit(rate, burst)
    taken: list[float] = []
    for pause in pauses:
        now += pause
        wait = buckets.take("a", limit)
        if wait <= 0:
            taken.append(now)
        else:
            assert wait <= 1 / rate + 1e-9
            now += wait + 1e-9
            assert buckets.take("a", limit) <= 0  # whoever waits as long as he is told is taken
            taken.append(now)
    for index, first in enumerate(taken):
        for count, last in enumerate(taken[index:], start=1):
            assert count <= burst + rate * (last - first) + 1e-6


def test_a_bucket_that_was_emptied_under_a_lower_limit_fills_at_the_rate_of_the_new_one() -> None:
    now = 0.0
    buckets, low, high = TokenBuckets[str](lambda: now), RateLimit(1 / 1024, 2), RateLimit(8, 16)
    assert [buckets.take("a", low) <= 0 for _ in range(3)] == [True, True, False]
    assert buckets.take("a", high) == 1 / 8
    now = 1.0
    assert sum(buckets.take("a", high) <= 0 for _ in range(20)) == 8
