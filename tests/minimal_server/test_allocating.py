"""Stories of allocations: everything is held, or nothing is."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minimal_server.client import Client, ago, start, stop

REVISION = {"epoch": "world", "number": 7}
IN_TIME = "2099-01-01T00:00:00.000Z"


@pytest.fixture
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


def placement(*domains: str, devices: int = 8) -> dict[str, Any]:
    shares = [{"domain": name, "accelerator": "fast", "devices": devices} for name in domains]
    return {"shares": shares, "split_mode": "none" if len(domains) == 1 else "synchronous"}


def allocation(name: str = "a", *domains: str, **members: Any) -> dict[str, Any]:
    of = placement(*(domains or ("north", "south")))
    return {"id": name, "job": "job", "revision": REVISION, "placement": of, **members}


def put(client: Client, body: Any) -> Any:
    status, record, _ = client.ask("PUT", f"/v1/allocations/{body['id']}", body)
    assert status in {200, 201}, record
    return record


def phase(client: Client, name: str = "a") -> str:
    return str(client.ask("GET", f"/v1/allocations/{name}")[1]["phase"])


def actions(client: Client, domain: str, wait: float = 0) -> list[Any]:
    status, found, _ = client.ask("GET", f"/v1/actions?domain={domain}&wait={wait:g}")
    assert status == 200, found
    items: list[Any] = found["items"]
    return items


def answer(client: Client, action: Any, outcome: str, **members: Any) -> Any:
    more: dict[str, Any] = {}
    if outcome == "prepared":
        more = {"expires_at": IN_TIME}
    if outcome == "refused":
        full = {"type": "urn:kuayu:problem:no-capacity", "title": "full", "status": 409, "retryable": True}
        more = {"problem": full}
    body = {"action": action["id"], "phase": action["phase"], "outcome": outcome, "at": ago(0), **more, **members}
    return client.ask("POST", "/v1/action-results", body)[:2]


def obey(client: Client, *domains: str) -> list[str]:
    """Let domains do all that they are asked for; what that was."""
    grants = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}
    done = []
    for domain in domains:
        for action in actions(client, domain):
            assert answer(client, action, grants[action["phase"]])[0] == 200
            done.append(f"{domain} {action['kind']} {action['phase']}")
    return done


def test_all_domains_promise_then_all_commit(client: Client) -> None:
    assert put(client, allocation())["phase"] == "preparing"
    (north,), (south,) = actions(client, "north"), actions(client, "south")
    assert (north["kind"], north["phase"], north["devices"]) == ("reserve", "prepare", 8)
    assert (north["job"], north["revision"], north["expires_after"]) == ("job", REVISION, 10)
    assert north["accelerator"] == "fast"
    nodes = [{"node": "n1", "devices": 6}, {"node": "n2", "devices": 2}]
    assert answer(client, north, "prepared", nodes=nodes[:1])[0] == 422
    assert answer(client, north, "prepared", nodes=[{"node": "n1", "devices": 4}] * 2)[0] == 422
    assert answer(client, north, "prepared", nodes=nodes)[1]["phase"] == "preparing"
    assert actions(client, "north") == []
    assert answer(client, south, "prepared")[1]["phase"] == "committing"
    assert obey(client, "north", "south") == ["north reserve commit", "south reserve commit"]
    _, record, _ = client.ask("GET", "/v1/allocations/a")
    assert record["phase"] == "committed"
    assert record["held"]["shares"][0]["nodes"] == nodes
    assert "nodes" not in record["held"]["shares"][1]


def test_a_put_that_is_repeated_changes_nothing_and_another_body_is_refused(client: Client) -> None:
    first = put(client, allocation())
    assert client.ask("PUT", "/v1/allocations/a", allocation())[:2] == (200, first)
    assert client.ask("PUT", "/v1/allocations/a", allocation("a", "north"))[0] == 422
    assert len(actions(client, "north")) == 1
    twice = {**allocation("b"), "placement": placement("north", "north")}
    status, problem, _ = client.ask("PUT", "/v1/allocations/b", twice)
    assert (status, problem["errors"][0]["pointer"]) == (422, "/placement/shares/1/domain")
    few = allocation("b")
    few["placement"]["shares"][1]["nodes"] = [{"node": "n1", "devices": 7}]
    status, problem, _ = client.ask("PUT", "/v1/allocations/b", few)
    assert (status, problem["errors"][0]["pointer"]) == (422, "/placement/shares/1/nodes")
    assert client.ask("GET", "/v1/allocations/b")[0] == client.ask("DELETE", "/v1/allocations/b")[0] == 404


def test_one_refusal_makes_all_let_go_and_then_the_next_alternative_is_tried(client: Client) -> None:
    put(client, allocation(alternatives=[placement("east")]))
    (north,), (south,) = actions(client, "north"), actions(client, "south")
    answer(client, north, "prepared")
    assert answer(client, south, "refused")[1]["phase"] == "aborting"
    assert actions(client, "east") == []
    assert obey(client, "north", "south") == ["north reserve abort", "south reserve abort"]
    assert obey(client, "east") == ["east reserve prepare"]
    assert obey(client, "east") == ["east reserve commit"]
    _, record, _ = client.ask("GET", "/v1/allocations/a")
    assert (record["phase"], record["held"]) == ("committed", placement("east"))


def test_nothing_is_held_when_all_refuse(client: Client) -> None:
    put(client, allocation("a", "north"))
    answer(client, actions(client, "north")[0], "refused")
    obey(client, "north")
    _, record, _ = client.ask("GET", "/v1/allocations/a")
    assert record["phase"] == "refused"
    assert "north" in record["reason"]
    assert "held" not in record


def test_a_domain_that_is_silent_is_told_to_let_go_and_what_it_says_late_counts_for_nothing(client: Client) -> None:
    put(client, allocation(patience=0.3))
    (north,), (south,) = actions(client, "north"), actions(client, "south")
    answer(client, north, "prepared")
    (abort,) = actions(client, "north", wait=5)
    assert abort["phase"] == "abort"
    answer(client, abort, "aborted")
    assert answer(client, south, "prepared")[1]["phase"] in {"aborting", "refused"}
    assert obey(client, "south") == ["south reserve abort"]
    assert phase(client) == "refused"
    assert answer(client, south, "prepared")[1]["phase"] == "refused"
    assert obey(client, "south") == ["south reserve abort"]
    assert actions(client, "north") == []


def test_a_promise_that_expires_before_it_is_committed_is_let_go_everywhere(client: Client) -> None:
    put(client, allocation())
    obey(client, "north", "south")
    (north,), (south,) = actions(client, "north"), actions(client, "south")
    answer(client, north, "committed")
    assert answer(client, south, "expired")[1]["phase"] == "aborting"
    assert obey(client, "north", "south") == ["north reserve abort", "south reserve abort"]
    assert phase(client) == "refused"


def test_what_is_held_is_given_back_when_it_is_deleted(client: Client) -> None:
    put(client, allocation())
    (reserved,) = actions(client, "north")
    obey(client, "north", "south")
    obey(client, "north", "south")
    status, record, _ = client.ask("DELETE", "/v1/allocations/a")
    assert (status, record["phase"]) == (200, "releasing")
    assert client.ask("DELETE", "/v1/allocations/a")[1]["phase"] == "releasing"
    assert [action["reservation"] for action in actions(client, "north")] == [reserved["id"]]
    assert obey(client, "north", "south") == ["north release commit", "south release commit"]
    _, record, _ = client.ask("GET", "/v1/allocations/a")
    assert record["phase"] == "released"
    assert "held" not in record


def test_what_is_deleted_before_it_is_held_tries_no_alternative(client: Client) -> None:
    put(client, allocation(alternatives=[placement("east")]))
    assert client.ask("DELETE", "/v1/allocations/a")[1]["phase"] == "aborting"
    obey(client, "north", "south")
    assert phase(client) == "refused"
    assert actions(client, "east") == []


def test_results_are_repeatable_and_refer_to_what_was_asked(client: Client) -> None:
    put(client, allocation())
    (north,) = actions(client, "north")
    assert answer(client, north, "unknown")[1]["phase"] == "preparing"
    assert len(actions(client, "north")) == 1
    first = answer(client, north, "prepared")
    assert answer(client, north, "prepared") == first
    assert answer(client, north, "committed")[0] == 422
    status, problem = answer(client, {"id": "nobody", "phase": "prepare"}, "prepared")
    assert (status, problem["type"]) == (422, "urn:kuayu:problem:unknown-reference")


def test_whoever_waits_is_told_as_soon_as_there_is_something_to_do(client: Client) -> None:
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(actions(client, "north", wait=8)))
    waiting.start()
    time.sleep(0.2)
    begun = time.monotonic()
    put(client, allocation("a", "north"))
    waiting.join()
    assert found[0]["phase"] == "prepare"
    assert time.monotonic() - begun < 4
    assert client.ask("GET", "/v1/actions?wait=1")[0] == 400
    assert client.ask("GET", "/v1/actions?domain=north&wait=31")[0] == 400


def test_allocations_are_listed_at_one_revision(client: Client) -> None:
    for name in ("c", "a", "b"):
        put(client, allocation(name))
    _, page, _ = client.ask("GET", "/v1/allocations?limit=2")
    client.ask("DELETE", "/v1/allocations/c")
    _, rest, _ = client.ask("GET", f"/v1/allocations?limit=2&cursor={page['next_cursor']}")
    assert [item["id"] for item in page["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["items"][0]["phase"] == "preparing"
    assert rest["revision"] == page["revision"]


def test_a_service_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    client = start("--journal", journal)
    put(client, allocation())
    (south,) = actions(client, "south")
    obey(client, "north")
    stop(client, signal.SIGKILL)
    client = start("--journal", journal)
    assert actions(client, "north") == []
    assert actions(client, "south") == [south]
    obey(client, "south")
    commits = actions(client, "north")
    stop(client, signal.SIGKILL)
    client = start("--journal", journal)
    assert actions(client, "north") == commits
    obey(client, "north", "south")
    assert phase(client) == "committed"
    stop(client)


def test_tenants_do_not_see_each_others_allocations() -> None:
    client = start("--token", "one=1", "--token", "two=2")
    one, two = Client(client.process, client.url, "1"), Client(client.process, client.url, "2")
    put(one, allocation())
    (action,) = actions(one, "north")
    assert actions(two, "north") == []
    assert two.ask("GET", "/v1/allocations/a")[0] == 404
    assert answer(two, action, "prepared")[0] == 422
    stop(client)


def test_what_an_earlier_attempt_has_to_let_go_of_holds_up_the_end_and_then_no_longer(client: Client) -> None:
    put(client, allocation("a", "north", "south", alternatives=[placement("east")], patience=60))
    for step in (*actions(client, "north"), *actions(client, "south")):
        answer(client, step, "prepared")
    [late] = actions(client, "south")
    answer(client, actions(client, "north")[0], "expired")
    for domain in ("north", "south"):
        answer(client, actions(client, domain)[0], "aborted")
    [east] = actions(client, "east")
    answer(client, late, "committed")  # told after the abort was
    answer(client, east, "refused")
    answer(client, actions(client, "east")[0], "aborted")
    assert phase(client) == "aborting"
    answer(client, actions(client, "south")[0], "aborted")
    assert phase(client) == "refused"
