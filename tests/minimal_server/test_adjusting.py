"""Small cases of adjustments, worked by hand, told over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from minimal_server.client import SCHEMAS, Client, start, stop
from minimal_server.validator import Validator

REVISION = {"epoch": "world", "number": 7}
PATH = "/v1/adjustments"
GIGA = 1e9
Json = dict[str, Any]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


def domain(name: str, level: float, *loads: float) -> Json:
    """A domain; what was measured is the level where nothing else is said."""
    return {"id": name, "level": level, "loads": [*(loads or (level,))]}


def link(source: str, target: str, level: float = 0.01, *latencies: float) -> Json:
    """A link of 10 Gbit/s, likewise."""
    rows = {"level": level, "latencies": [*(latencies or (level,))]}
    return {"source": source, "target": target, "bandwidth": 10 * GIGA, **rows}


def job(**members: Any) -> Json:
    """Twenty parts in each of two domains, of 0.2 s at half load; what replicas exchange is hidden behind steps."""
    shares = [{"domain": name, "parts": 20, "part_time": 0.1} for name in ("a", "b")]
    return {
        "id": "j",
        "shares": shares,
        "nodes": 1,
        "node_bandwidth": 100 * GIGA,
        "node_latency": 0.0,
        "exchange": 1e6,
        "collective": "hierarchical",
        "period": 1,
        "order": ["a", "b"],
        "move_time": 0.05,
        "switch_time": 0.3,
        **members,
    }


def change(after: float, *parts: int, **members: Any) -> Json:
    rest = {"collective": "hierarchical", "period": 1, "order": ["a", "b"]}
    return {"after": after, "parts": [*parts], **rest, **members}


def request(**members: Any) -> Json:
    return {
        "revision": REVISION,
        "interval": 2.0,
        "patience": 10.0,
        "window": 10.0,
        "allowance": 0.1,
        "domains": [domain("a", 0.5), domain("b", 0.5)],
        "links": [link("a", "b"), link("b", "a")],
        "jobs": [job()],
        **members,
    }


def asked(client: Client, **members: Any) -> Any:
    """An answer, which the published schema takes for an adjustment; the same when asked again."""
    body = request(**members)
    status, answer, _ = client.ask("POST", PATH, body)
    assert status == 200, answer
    validator = Validator(json.loads((SCHEMAS / "kuayu.schema.json").read_text("utf-8")))
    assert validator.errors("Adjustment", answer) == []
    assert client.ask("POST", PATH, body)[1] == answer
    assert answer["revision"] == REVISION
    assert [row["job"] for row in answer["jobs"]] == [row["id"] for row in body["jobs"]]
    return answer


BUSIER = [domain("a", 0.5, 0.75), domain("b", 0.5)]
"""A part takes 0.4 s in one domain, and 0.2 s in the other one."""


def test_in_calm_nothing_is_changed(client: Client) -> None:
    """Though the best division of unlike domains is another one."""
    shares = [{"domain": "a", "parts": 30, "part_time": 0.1}, {"domain": "b", "parts": 10, "part_time": 0.1}]
    answer = asked(client, jobs=[job(shares=shares)])
    assert answer["triggers"] == []
    assert answer["jobs"] == [{"job": "j", "rate": 1 / 6, "expected_rate": 1 / 6, "changes": []}]


def test_parts_go_where_there_is_time_for_them(client: Client) -> None:
    """20 parts of 0.4 s are a step of 8 s; 13 of them and 27 of 0.2 s make it 5.4 s."""
    answer = asked(client, domains=BUSIER)
    assert answer["triggers"] == [{"kind": "load", "domain": "a", "before": 0.5, "now": 0.75}]
    (told,) = answer["jobs"]
    assert told == {
        "job": "j",
        "rate": pytest.approx(1 / 8),
        "expected_rate": pytest.approx(1 / 5.4),
        "changes": [change(0, 13, 27)],
    }


def test_no_more_parts_are_moved_than_a_window_bears(client: Client) -> None:
    """A tenth of ten seconds may be lost, of which 0.8 s are spent: four parts of 0.19 s, and three a window later."""
    (told,) = asked(client, domains=BUSIER, jobs=[job(move_time=0.19)])["jobs"]
    assert told["changes"] == [change(0, 16, 24), change(10, 13, 27)]


def test_a_change_waits_until_a_window_has_passed_since_the_last_one(client: Client) -> None:
    for changed, after in ((0, 10), (3, 7), (12, 0)):
        (told,) = asked(client, domains=BUSIER, jobs=[job(changed=changed)])["jobs"]
        assert told["changes"] == [change(after, 13, 27)]


def test_what_is_planned_already_is_not_planned_again(client: Client) -> None:
    (told,) = asked(client, domains=BUSIER, jobs=[job(changed=0, planned=[change(10, 13, 27)])])["jobs"]
    assert (told["changes"], told["expected_rate"]) == ([], pytest.approx(1 / 5.4))


def test_a_plan_that_would_do_harm_gives_way(client: Client) -> None:
    """It was for a load that has fallen again; what is in force is the best, so the change is the least there is."""
    domains = [domain("a", 0.75, 0.5), domain("b", 0.5)]
    (told,) = asked(client, domains=domains, jobs=[job(changed=0, planned=[change(10, 13, 27)])])["jobs"]
    (only,) = told["changes"]
    assert only != change(10, 20, 20)
    assert told["expected_rate"] > 0.9 * told["rate"] == pytest.approx(0.9 / 4)


def test_replicas_agree_in_another_way_when_messages_are_late(client: Client) -> None:
    """16 nodes in a ring of two domains are 30 rounds of 0.5 s; a hierarchy has two such rounds, which are hidden."""
    links = [link("a", "b", 0.01, 0.5), link("b", "a")]
    answer = asked(client, links=links, jobs=[job(nodes=8, collective="ring")])
    assert answer["triggers"] == [{"kind": "latency", "domain": "a", "target": "b", "before": 0.01, "now": 0.5}]
    (told,) = answer["jobs"]
    assert told["rate"] == pytest.approx(1 / (4 + 30 * (0.5 + 8e6 / 16 / 10e9) - 8 / 3))
    assert (told["changes"], told["expected_rate"]) == ([change(0, 20, 20)], pytest.approx(1 / 4))


def test_another_way_comes_first_and_parts_in_the_time_that_it_leaves(client: Client) -> None:
    """Of 0.8 s the switch takes 0.3 s, which leaves two parts of 0.19 s."""
    links = [link("a", "b", 0.01, 0.5), link("b", "a")]
    jobs = [job(nodes=8, collective="ring", move_time=0.19)]
    (told,) = asked(client, domains=BUSIER, links=links, jobs=jobs)["jobs"]
    assert told["changes"] == [change(0, 18, 22), change(10, 14, 26), change(20, 13, 27)]


@pytest.mark.parametrize(
    ("loads", "now"),
    [
        ([0.5, 0.5, 0.5, 0.9, 0.5], None),
        ([0.9, 0.9, 0.5, 0.5, 0.61, 0.61, 0.61], 0.61),
        ([0.5, 0.5, 0.5, 0.39, 0.39, 0.39], 0.39),
        ([0.5, 0.5, 0.5, 0.59, 0.59, 0.59], None),
    ],
)
def test_loads_count_when_the_middle_of_five_differs_by_a_fifth(
    client: Client, loads: list[float], now: float | None
) -> None:
    triggers = asked(client, domains=[domain("a", 0.5, *loads), domain("b", 0.5)])["triggers"]
    assert triggers == ([{"kind": "load", "domain": "a", "before": 0.5, "now": now}] if now else [])


@pytest.mark.parametrize(("latency", "counts"), [(0.0149, False), (0.0151, True), (0.001, False)])
def test_latencies_count_when_they_rise_by_half(client: Client, latency: float, counts: bool) -> None:
    triggers = asked(client, links=[link("a", "b"), link("b", "a", 0.01, latency)])["triggers"]
    assert bool(triggers) == counts


def test_between_calm_and_change_a_job_is_helped_where_it_helps(client: Client) -> None:
    """A load of 0.59 is 18 % more, and a part takes 0.244 s instead of 0.2 s."""
    answer = asked(client, domains=[domain("a", 0.5, 0.59), domain("b", 0.5)])
    assert answer["triggers"] == []
    assert answer["jobs"][0]["changes"] == [change(0, 18, 22)]


def test_where_others_take_everything_nothing_helps(client: Client) -> None:
    (told,) = asked(client, domains=[domain("a", 0.5, 1.0), domain("b", 0.5)])["jobs"]
    assert told == {"job": "j", "rate": 0, "expected_rate": 0, "changes": []}


def test_a_job_in_one_domain_has_no_parts_to_move(client: Client) -> None:
    alone = job(shares=[{"domain": "a", "parts": 20, "part_time": 0.1}], order=["a"], collective="ring")
    (told,) = asked(client, domains=BUSIER, jobs=[alone])["jobs"]
    assert told == {"job": "j", "rate": 1 / 8, "expected_rate": 1 / 8, "changes": []}


def test_whatever_may_be_lost_an_answer_ends(client: Client) -> None:
    """Where nothing may be lost parts are moved one by one, and the last change moves what is left."""
    shares = [{"domain": name, "parts": 2000, "part_time": 0.001} for name in ("a", "b")]
    (told,) = asked(client, domains=BUSIER, allowance=0.0, jobs=[job(shares=shares)])["jobs"]
    parts = [row["parts"] for row in told["changes"]]
    assert parts[:2] == [[1999, 2001], [1998, 2002]]
    assert (len(parts), parts[-1]) == (20, [1333, 2667])


PLANNED = [change(0, 13, 27), change(5, 12, 28)]


@pytest.mark.parametrize(
    ("problem", "pointer", "members"),
    [
        ("invalid-body", "/domains/1/id", {"domains": [domain("a", 0.5), domain("a", 0.5), domain("b", 0.5)]}),
        ("invalid-body", "/links/2", {"links": [link("a", "b"), link("b", "a"), link("a", "b")]}),
        ("invalid-body", "/links/2/target", {"links": [link("a", "b"), link("b", "a"), link("a", "a")]}),
        ("invalid-body", "/links", {"links": [link("a", "b")]}),
        ("unknown-reference", "/links/1/source", {"links": [link("a", "b"), link("c", "a")]}),
        ("unknown-reference", "/links/0/target", {"links": [link("a", "c"), link("b", "a")]}),
        ("invalid-body", "/jobs/1/id", {"jobs": [job(), job()]}),
        ("unknown-reference", "/jobs/0/shares/1/domain", {"domains": [domain("a", 0.5)], "links": []}),
    ],
)
def test_names_stand_once_and_are_held(client: Client, problem: str, pointer: str, members: Json) -> None:
    refused(client, problem, pointer, members)


@pytest.mark.parametrize(
    ("problem", "pointer", "members"),
    [
        ("invalid-body", "/shares/1/domain", {"shares": job()["shares"][:1] * 2}),
        ("unknown-reference", "/order/1", {"order": ["a", "c"]}),
        ("invalid-body", "/order", {"order": ["a"]}),
        ("invalid-body", "/order", {"order": ["a", "a"]}),
        ("invalid-body", "/period", {"period": 2}),
        ("unknown-reference", "/planned/0/order/0", {"planned": [change(0, 13, 27, order=["c", "a"])]}),
        ("invalid-body", "/planned/0/order", {"planned": [change(0, 13, 27, order=["b"])]}),
        ("invalid-body", "/planned/0/period", {"planned": [change(0, 13, 27, collective="ring", period=5)]}),
        ("invalid-body", "/planned/0/parts", {"planned": [change(0, 40)]}),
        ("invalid-body", "/planned/1/parts", {"planned": [PLANNED[0], change(0, 13, 28)]}),
        ("invalid-body", "/planned/0/parts", {"planned": [change(0, 40, 0)]}),
        ("invalid-body", "/planned/1/after", {"planned": PLANNED[::-1]}),
    ],
)
def test_policies_do_not_contradict_their_job(client: Client, problem: str, pointer: str, members: Json) -> None:
    refused(client, problem, f"/jobs/0{pointer}", {"jobs": [job(**members)]})


def refused(client: Client, problem: str, pointer: str, members: Json) -> None:
    status, answer, _ = client.ask("POST", PATH, request(**members))
    assert (status, answer["type"]) == (422, f"urn:kuayu:problem:{problem}")
    assert pointer in {error["pointer"] for error in answer["errors"]}
