"""Small cases of shard plans and collectives, worked by hand, told over HTTP."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from minimal_server.client import SCHEMAS, Client, start, stop
from minimal_server.validator import Validator

REVISION = {"epoch": "world", "number": 7}
MEGA, GIGA = 1e6, 1e9
Json = dict[str, Any]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


def asked(client: Client, path: str, report: str, body: Json) -> Any:
    """An answer, which the published schema takes for what it should be; the same when asked again."""
    status, answer, _ = client.ask("POST", path, body)
    assert status == 200, answer
    validator = Validator(json.loads((SCHEMAS / "kuayu.schema.json").read_text("utf-8")))
    assert validator.errors(report, answer) == []
    assert client.ask("POST", path, body)[1] == answer
    assert answer["revision"] == REVISION
    return answer


def link(source: str, target: str, *speeds: float, latency: float = 0.0, **members: Any) -> Json:
    """A link; speeds in MB/s."""
    bandwidths = [8 * MEGA * speed for speed in speeds]
    return {"source": source, "target": target, "latency": latency, "bandwidths": bandwidths, **members}


def stream(*gaps: tuple[float, float], **members: Any) -> Json:
    """Steps of 100 MB that are due every ten seconds, the next one in five; ten come from afar. Gaps in MB."""
    missing = [{"begin": MEGA * begin, "end": MEGA * end} for begin, end in gaps or ((0, 1000),)]
    return {
        "id": "s",
        "target": "here",
        "sources": ["near", "far"],
        "step_size": 100 * MEGA,
        "step_time": 10.0,
        "due": 5.0,
        "remote_steps": 10,
        "missing": missing,
        **members,
    }


def shard_request(**members: Any) -> Json:
    return {
        "revision": REVISION,
        "interval": 10.0,
        "horizon": 10.0,
        "links": [link("near", "here", 20), link("far", "here", 10)],
        "rooms": [{"domain": "here", "size": 300 * MEGA}],
        "streams": [stream()],
        **members,
    }


def planned(client: Client, **members: Any) -> Any:
    return asked(client, "/v1/shard-plans", "ShardPlan", shard_request(**members))


def fetched(plan: Any) -> list[tuple[str, float, float]]:
    """Source, begin and end of shards, in MB."""
    return [(row["source"], row["begin"] / MEGA, row["end"] / MEGA) for row in plan["shards"]]


def test_steps_are_fetched_in_order_each_from_where_it_comes_first(client: Client) -> None:
    """A step takes 5 s from near and 10 s from far: two of the first three come from near."""
    plan = planned(client)
    assert fetched(plan)[:3] == [("near", 0, 100), ("near", 100, 200), ("far", 200, 300)]
    assert [row["slot"] for row in plan["shards"]] == list(range(len(plan["shards"])))


def test_a_step_is_fetched_when_the_one_before_whose_room_it_takes_begins(client: Client) -> None:
    """There is room for three steps: the fourth may come when the first begins, in 5 s; the fifth in 15 s."""
    plan = planned(client)
    assert plan["streams"] == [
        {
            "stream": "s",
            "steps_ahead": 3,
            "shard_size": 100 * MEGA,
            "local_slots": [],
            "local_when_late": False,
            "abandoned": [],
        }
    ]
    assert [row["after"] for row in plan["shards"]] == [0, 0, 0, 5]


def test_two_streams_share_the_room_of_their_domain(client: Client) -> None:
    elsewhere = stream(id="o", target="there")
    plan = planned(client, streams=[stream(), stream(id="t", step_size=50 * MEGA, missing=[]), elsewhere])
    assert [row["steps_ahead"] for row in plan["streams"]] == [2, 2, 1]
    assert {row["stream"] for row in plan["shards"]} == {"s"}


def test_only_what_is_missing_is_fetched_cut_where_steps_begin(client: Client) -> None:
    plan = planned(client, streams=[stream((50, 120), (180, 220))])
    assert [row[1:] for row in fetched(plan)] == [(50, 100), (100, 120), (180, 200), (200, 220)]
    assert [row["slot"] for row in plan["shards"]] == [0, 1, 1, 2]


def test_shards_are_no_larger_than_the_room(client: Client) -> None:
    plan = planned(client, rooms=[{"domain": "here", "size": 60 * MEGA}])
    assert [row[1:] for row in fetched(plan)][:4] == [(0, 60), (60, 100), (100, 160), (160, 200)]
    assert planned(client, rooms=[])["shards"] == []


def test_what_is_under_way_is_waited_for(client: Client) -> None:
    """Near is busy for 20 s yet, so that far is sooner."""
    transfer = {"source": "near", "begin": 0.0, "end": 400 * MEGA, "left": 400 * MEGA}
    plan = planned(client, streams=[stream((400, 1000), transfers=[transfer], due=0.0)], horizon=20.0)
    assert fetched(plan)[0] == ("far", 400, 500)


def test_links_that_are_out_and_domains_without_a_copy_send_nothing(client: Client) -> None:
    links = [link("near", "here", 20, up=False), link("other", "here", 50), link("far", "here", 10)]
    assert {row[0] for row in fetched(planned(client, links=links))} == {"far"}
    assert planned(client, links=links[:2])["shards"] == []


def test_links_are_taken_to_carry_what_they_carried_last(client: Client) -> None:
    links = [link("near", "here", 90, 90, 1, 1, 1), link("far", "here", 1, 1, 10, 10, 10)]
    assert {row[0] for row in fetched(planned(client, links=links))[:3]} == {"far"}
    assert fetched(planned(client, links=[link("far", "here")]))[0] == ("far", 0, 100)


def test_local_data_are_kept_for_when_others_are_late(client: Client) -> None:
    (told,) = planned(client, streams=[stream(local_steps=4)])["streams"]
    assert (told["local_slots"], told["local_when_late"]) == ([], True)


TRANSFER = {"source": "near", "begin": 0.0, "end": 100 * MEGA, "left": 50 * MEGA}


@pytest.mark.parametrize(
    ("pointer", "members"),
    [
        ("/streams/1/id", {"streams": [stream(), stream()]}),
        ("/rooms/1/domain", {"rooms": [{"domain": "here", "size": 1.0}] * 2}),
        ("/links/1", {"links": [link("near", "here", 1)] * 2}),
        ("/links/0/target", {"links": [link("near", "near", 1)]}),
        ("/streams/0/missing/0/end", {"streams": [stream((7, 7))]}),
        ("/streams/0/missing/1/begin", {"streams": [stream((100, 200), (0, 50))]}),
        ("/streams/0/missing/1/begin", {"streams": [stream((0, 200), (150, 250))]}),
        ("/streams/0/missing/0/end", {"streams": [stream((0, 1001))]}),
        ("/streams/0/transfers/0/begin", {"streams": [stream((50, 150), transfers=[TRANSFER])]}),
        ("/streams/0/transfers/1/begin", {"streams": [stream((500, 600), transfers=[TRANSFER, TRANSFER])]}),
        (
            "/streams/0/transfers/0/left",
            {"streams": [stream((500, 600), transfers=[{**TRANSFER, "left": 101 * MEGA}])]},
        ),
    ],
)
def test_requests_for_plans_that_contradict_themselves_are_refused(client: Client, pointer: str, members: Json) -> None:
    refused(client, "/v1/shard-plans", shard_request(**members), "invalid-body", pointer)


def test_transfers_come_over_links(client: Client) -> None:
    lost = stream((500, 600), transfers=[{**TRANSFER, "source": "nowhere"}])
    refused(
        client, "/v1/shard-plans", shard_request(streams=[lost]), "unknown-reference", "/streams/0/transfers/0/source"
    )


def refused(client: Client, path: str, body: Json, problem: str, pointer: str) -> None:
    status, answer, _ = client.ask("POST", path, body)
    assert (status, answer["type"]) == (422, f"urn:kuayu:problem:{problem}")
    assert pointer in {error["pointer"] for error in answer["errors"]}


def collective_request(*domains: str, **members: Any) -> Json:
    """Single nodes that sum up 1 GB, over links of 125 MB/s and half a second, in steps of 9 s."""
    pairs = [(one, other) for one in domains for other in domains if one != other]
    return {
        "revision": REVISION,
        "interval": 30.0,
        "domains": list(domains),
        "links": [link(*pair, 125.0, latency=0.5) for pair in pairs],
        "nodes": 1,
        "node_bandwidth": 1e11,
        "node_latency": 1e-5,
        "exchange": GIGA,
        "step_time": 9.0,
        "switch_time": 10.0,
        **members,
    }


def chosen(client: Client, body: Json) -> Any:
    answer = asked(client, "/v1/collectives", "CollectiveChoice", body)
    told = {(row["collective"], row["period"]): row["rate"] for row in answer["candidates"]}
    assert told[answer["collective"], answer["period"]] >= 0
    assert sorted(answer["order"]) == sorted(body["domains"])
    return answer


def rates(answer: Any) -> dict[tuple[str, int], float]:
    return {(row["collective"], row["period"]): row["rate"] for row in answer["candidates"]}


def test_rates_follow_the_law(client: Client) -> None:
    """Two rounds of 4 Gbit at 1 Gbit/s with half a second each are 9 s, 3 s more than ⅔ of a step hide."""
    told = rates(chosen(client, collective_request("a", "b")))
    assert told["ring", 1] == pytest.approx(1 / 12)
    assert told["hierarchical", 1] == pytest.approx(1 / 12)
    more = (1 + 0.0240 * math.log(1 + 10 / 18.4)) ** (1 / 0.3658)
    assert told["low_communication", 10] == pytest.approx(10 / (93 * more))


def test_the_quickest_is_chosen_where_nothing_is_in_use(client: Client) -> None:
    answer = chosen(client, collective_request("a", "b"))
    assert (answer["collective"], answer["period"], answer["switched"]) == ("low_communication", 10, False)


def test_a_ring_of_many_nodes_sends_smaller_parts_more_often(client: Client) -> None:
    """Of 8 Gbit each of four nodes sends 2 Gbit in six rounds: 6 · 2.5 s over domains, more than inside."""
    told = rates(chosen(client, collective_request("a", "b", nodes=2)))
    assert told["ring", 1] == pytest.approx(1 / (9 + 15 - 6))
    inside = 2 * (1e-5 + 4e9 / 1e11)
    assert told["hierarchical", 1] == pytest.approx(1 / (9 + inside + 9 - 6))


def test_the_ring_goes_over_quick_links(client: Client) -> None:
    body = collective_request("a", "b", "c")
    slow = {("a", "b"), ("b", "c"), ("c", "a")}
    for row in body["links"]:
        if (row["source"], row["target"]) in slow:
            row["bandwidths"] = [8 * MEGA]
    assert chosen(client, body)["order"] == ["a", "c", "b"]


def test_of_many_domains_the_nearest_comes_next(client: Client) -> None:
    names = [f"d{number}" for number in (0, 3, 1, 6, 2, 5, 4, 7)]
    body = collective_request(*names)
    for row in body["links"]:
        here, there = int(row["source"][1]), int(row["target"][1])
        row["bandwidths"] = [80 * MEGA if there == (here + 1) % 8 else 8 * MEGA]
    assert chosen(client, body)["order"] == [f"d{number}" for number in range(8)]


def test_a_domain_by_itself_exchanges_nothing_over_domains(client: Client) -> None:
    told = rates(chosen(client, collective_request("a")))
    assert list(told.values()) == [pytest.approx(1 / 9)] * len(told)


def in_use(collective: str, *order: str, since: float = 3600.0, period: int = 1) -> Json:
    return {"collective": collective, "period": period, "order": list(order), "since": since}


def test_a_switch_waits_until_it_would_have_paid(client: Client) -> None:
    """In each half a minute 30 · (0.1045 - 0.0833) = 0.64 steps are lost; the switch takes 10 s · 0.1045 a second."""
    body = collective_request("a", "b")
    for row in body["links"]:
        row["bandwidths"] = row["bandwidths"] * 9
    for since, switched in ((30.0, False), (60.0, True)):
        answer = chosen(client, {**body, "in_use": in_use("ring", "a", "b", since=since)})
        assert (answer["collective"] == "low_communication", answer["switched"]) == (switched, switched)


def test_what_a_link_carried_before_the_last_switch_counts_for_nothing(client: Client) -> None:
    body = collective_request("a", "b", in_use=in_use("ring", "a", "b", since=0.0))
    for row in body["links"]:
        row["bandwidths"] = row["bandwidths"] * 9
    assert not chosen(client, body)["switched"]


def test_where_a_needed_link_is_out_the_switch_is_made_at_once(client: Client) -> None:
    body = collective_request("a", "b", "c", in_use=in_use("ring", "a", "b", "c", since=0.0))
    body["links"][0]["up"] = False
    answer = chosen(client, body)
    assert (answer["switched"], answer["order"]) == (True, ["a", "c", "b"])


def test_a_ring_that_begins_elsewhere_is_the_same(client: Client) -> None:
    body = collective_request("a", "b", "c", switch_time=0.0)
    for row in body["links"]:
        row["bandwidths"] = [
            80 * MEGA if (row["source"], row["target"]) in {("a", "c"), ("c", "b"), ("b", "a")} else 8e5
        ]
    first = chosen(client, body)
    turned = {"collective": first["collective"], "period": first["period"], "order": ["c", "b", "a"], "since": 600.0}
    answer = chosen(client, {**body, "in_use": turned})
    assert (answer["switched"], answer["order"]) == (False, ["c", "b", "a"])


def test_periods_that_nobody_else_looks_at_may_be_in_use(client: Client) -> None:
    used = in_use("low_communication", "a", "b", since=0.0, period=37)
    answer = chosen(client, collective_request("a", "b", in_use=used))
    assert (answer["period"], answer["switched"]) == (37, False)


def test_a_collective_that_nobody_knows_is_left(client: Client) -> None:
    answer = chosen(client, collective_request("a", "b", in_use=in_use("unknown", "a", "b")))
    assert (answer["collective"], answer["switched"]) == ("low_communication", True)


@pytest.mark.parametrize(
    ("problem", "pointer", "members"),
    [
        ("invalid-body", "/domains/2", {"domains": ["a", "b", "a"]}),
        ("invalid-body", "/links/2", {"links": [link("a", "b", 1), link("b", "a", 1), link("a", "b", 1)]}),
        ("invalid-body", "/links/2/target", {"links": [link("a", "b", 1), link("b", "a", 1), link("a", "a", 1)]}),
        ("invalid-body", "/links", {"links": [link("a", "b", 1)]}),
        ("invalid-body", "/in_use/order", {"in_use": in_use("ring", "a")}),
        ("invalid-body", "/in_use/order", {"in_use": in_use("ring", "a", "b", "a")}),
        ("invalid-body", "/in_use/period", {"in_use": in_use("hierarchical", "a", "b", period=2)}),
        ("unknown-reference", "/in_use/order/1", {"in_use": in_use("ring", "a", "c")}),
        ("unknown-reference", "/links/2/source", {"links": [link("a", "b", 1), link("b", "a", 1), link("c", "a", 1)]}),
        ("unknown-reference", "/links/2/target", {"links": [link("a", "b", 1), link("b", "a", 1), link("a", "c", 1)]}),
    ],
)
def test_requests_for_collectives_that_cannot_be_are_refused(
    client: Client, problem: str, pointer: str, members: Json
) -> None:
    refused(client, "/v1/collectives", collective_request("a", "b") | members, problem, pointer)
