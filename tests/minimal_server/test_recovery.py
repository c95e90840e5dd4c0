"""Small cases of backup plans and failover plans, worked by hand, told over HTTP."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from minimal_server.client import SCHEMAS, Client, start, stop
from minimal_server.validator import Validator

REVISION = {"epoch": "world", "number": 7}
GIGA = 1e9
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


def refused(client: Client, path: str, body: Json, problem: str, pointer: str) -> None:
    status, answer, _ = client.ask("POST", path, body)
    assert (status, answer["type"]) == (422, f"urn:kuayu:problem:{problem}")
    assert pointer in {error["pointer"] for error in answer["errors"]}


def link(source: str, target: str, *speeds: float, **members: Any) -> Json:
    """A link; speeds in Gbit/s."""
    bandwidths = [GIGA * speed for speed in speeds]
    return {"source": source, "target": target, "latency": 1.0, "bandwidths": bandwidths, **members}


def store(domain: str, **members: Any) -> Json:
    """A store of 80 Gbit/s."""
    return {"domain": domain, "bandwidth": 80 * GIGA, **members}


def nodes(names: str, condition: str = "fit", domain: str = "home", **members: Any) -> list[Json]:
    """A node for each letter."""
    return [{"id": name, "domain": domain, "condition": condition, **members} for name in names]


def of(replica: int, names: str, condition: str = "fit", job: str = "j", **members: Any) -> list[Json]:
    """Nodes of a replica."""
    return nodes(names, condition, job=job, replica=replica, **members)


def job(**members: Any) -> Json:
    """Three replicas of two nodes with 100 GB of state, which takes 8 s to be given and 10 s to be read at home."""
    copies = [{"domain": "home", "age": 30.0}, {"domain": "away", "age": 90.0}]
    return {
        "id": "j",
        "priority": 0,
        "domain": "home",
        "replicas": 3,
        "least_replicas": 1,
        "nodes_each": 2,
        "state_size": 100 * GIGA,
        "node_bandwidth": 100 * GIGA,
        "start_time": 20.0,
        "regroup_time": 5.0,
        "copies": copies,
        **members,
    }


def failover_request(*rows: list[Json], **members: Any) -> Json:
    return {
        "revision": REVISION,
        "interval": 10.0,
        "links": [link("home", "away", 10), link("away", "home", 10)],
        "stores": [store("home"), store("away")],
        "nodes": [node for row in rows for node in row],
        "jobs": [job()],
        **members,
    }


def recovered(client: Client, *rows: list[Json], **members: Any) -> Any:
    """Recoveries of a plan."""
    body = failover_request(*rows, **members)
    return asked(client, "/v1/failover-plans", "FailoverPlan", body)["recoveries"]


TWO_WHOLE = [*of(0, "ab"), *of(1, "cd")]


def test_a_broken_replica_is_replaced_by_what_is_left_of_it_and_a_spare(client: Client) -> None:
    (told,) = recovered(client, TWO_WHOLE, of(2, "e"), of(2, "f", "failed"), nodes("xy"))
    assert told == {
        "job": "j",
        "strategy": "replace",
        "replicas": [{"replica": 2, "nodes": ["e", "x"]}],
        "after": 0.0,
        "resumes": 5.0,
    }


def test_a_job_that_is_whole_is_left_alone(client: Client) -> None:
    assert recovered(client, TWO_WHOLE, of(2, "ef"), nodes("x", "failed")) == []


def test_without_spares_the_whole_replicas_go_on(client: Client) -> None:
    (told,) = recovered(client, TWO_WHOLE, of(2, "e"), of(2, "f", "failed"), nodes("x", "unknown"))
    assert (told["strategy"], told["replicas"]) == ("go_on", [])


def test_as_many_replicas_are_replaced_as_there_are_nodes_for(client: Client) -> None:
    (told,) = recovered(client, of(1, "cd"), nodes("xyz"))
    assert (told["strategy"], told["replicas"]) == ("replace", [{"replica": 0, "nodes": ["x", "y"]}])


def test_a_job_without_a_whole_replica_is_restored_from_the_copy_that_costs_least(client: Client) -> None:
    """At home 10 s of reading, 20 s of starting and 30 s of lost work."""
    failed = [*of(0, "ab", "failed"), *of(1, "cd", "failed"), *of(2, "ef", "failed")]
    (told,) = recovered(client, failed, nodes("stuvwx"))
    assert (told["strategy"], told["source"], told["after"], told["resumes"]) == ("restore", "home", 0, 60)
    assert told["replicas"] == [{"replica": n, "nodes": ["stuvwx"[2 * n], "stuvwx"[2 * n + 1]]} for n in range(3)]


def test_a_job_is_restored_elsewhere_once_nothing_of_it_runs_on(client: Client) -> None:
    """60 s until all are fenced, 1 + 80 s over the link from home and 20 s: but home is out, and 90 s are lost."""
    unseen = [*of(0, "ab", "unreachable", fenced_in=40.0), *of(1, "cd", "unreachable", fenced_in=60.0)]
    links = [link("home", "away", 10, up=False)]
    (told,) = recovered(client, unseen, nodes("uvwxyz", domain="away"), links=links)
    assert (told["strategy"], told["source"], told["after"]) == ("restore", "away", 60)
    assert told["resumes"] == 60 + 10 + 20 + 90
    assert [row["nodes"] for row in told["replicas"]] == [["u", "v"], ["w", "x"], ["y", "z"]]


def test_while_nobody_knows_when_nodes_are_fenced_the_job_waits(client: Client) -> None:
    unseen = [*of(0, "ab", "unreachable", fenced_in=40.0), *of(1, "cd", "unreachable")]
    (told,) = recovered(client, unseen, nodes("uvwxyz", domain="away"))
    assert told == {"job": "j", "strategy": "wait", "replicas": [], "after": 0.0}


def test_copies_behind_links_that_are_out_or_missing_are_not_read(client: Client) -> None:
    copies = [{"domain": "away", "age": 0.0}]
    for links in ([link("away", "home", 10, up=False)], [link("home", "away", 10)]):
        (told,) = recovered(client, nodes("uvwxyz"), jobs=[job(copies=copies)], links=links)
        assert told["strategy"] == "wait"
    (told,) = recovered(client, nodes("uvwxyz"), jobs=[job(copies=copies)])
    assert (told["source"], told["resumes"]) == ("away", 1 + 80 + 20)


def test_no_fewer_replicas_than_the_least_are_restored(client: Client) -> None:
    for least, strategy in ((2, "restore"), (3, "wait")):
        (told,) = recovered(client, nodes("uvwxy"), jobs=[job(least_replicas=least)])
        assert (told["strategy"], len(told["replicas"])) == (strategy, 2 if strategy == "restore" else 0)


def test_lost_work_is_done_anew_by_those_that_are_left(client: Client) -> None:
    """Two replicas of three take 45 s for what three did in 30 s."""
    (told,) = recovered(client, nodes("uvwx"))
    assert told["resumes"] == 10 + 20 + 45


def test_what_is_urgent_gets_the_spares_and_the_order_is_that_of_the_request(client: Client) -> None:
    jobs = [job(replicas=1), job(id="k", replicas=1, priority=5)]
    first, second = recovered(client, nodes("xy"), jobs=jobs)
    assert (first["job"], first["strategy"]) == ("j", "wait")
    assert (second["job"], second["strategy"]) == ("k", "restore")


def test_two_that_read_the_same_store_share_it(client: Client) -> None:
    jobs = [job(replicas=1), job(id="k", replicas=1)]
    assert [row["resumes"] for row in recovered(client, nodes("uvxy"), jobs=jobs)] == [60, 70]


def test_nodes_of_a_job_that_is_on_its_way_back_are_nobodys(client: Client) -> None:
    (told,) = recovered(client, of(0, "xy", job="other"), jobs=[job(replicas=1)])
    assert told["strategy"] == "wait"


def test_where_replacing_takes_too_long_all_is_restored(client: Client) -> None:
    """The state takes 800 s from replica to replica, and 10 s from the store."""
    (told,) = recovered(client, TWO_WHOLE, nodes("xy"), jobs=[job(node_bandwidth=GIGA)])
    assert (told["strategy"], told["replicas"][0]["nodes"]) == ("restore", ["a", "b"])


@pytest.mark.parametrize(
    ("pointer", "rows", "members"),
    [
        ("/nodes/1/id", nodes("xx"), {}),
        ("/jobs/1/id", [], {"jobs": [job(), job()]}),
        ("/stores/2/domain", [], {"stores": [store("home"), store("away"), store("home")]}),
        ("/links/1", [], {"links": [link("home", "away", 1)] * 2}),
        ("/links/0/target", [], {"links": [link("home", "home", 1)]}),
        ("/jobs/0/copies/1/domain", [], {"jobs": [job(copies=[{"domain": "home", "age": 0.0}] * 2)]}),
        ("/nodes/0/job", nodes("x", job="j"), {}),
        ("/nodes/0/replica", nodes("x", replica=0), {}),
        ("/nodes/0/fenced_in", nodes("x", "failed", fenced_in=1.0), {}),
        ("/nodes/0/fenced_in", nodes("x", "unknown", fenced_in=1.0), {}),
        ("/jobs/0/least_replicas", [], {"jobs": [job(least_replicas=4)]}),
        ("/nodes/0/replica", of(3, "x"), {}),
        ("/nodes/2/replica", of(0, "xyz"), {}),
        ("/nodes/0/domain", of(0, "x", domain="away"), {}),
    ],
)
def test_requests_for_failover_plans_that_contradict_themselves_are_refused(
    client: Client, pointer: str, rows: list[Json], members: Json
) -> None:
    refused(client, "/v1/failover-plans", failover_request(rows, **members), "invalid-body", pointer)


def test_copies_lie_in_stores(client: Client) -> None:
    body = failover_request(stores=[store("home")])
    refused(client, "/v1/failover-plans", body, "unknown-reference", "/jobs/0/copies/1/domain")


def domain(name: str = "home", **members: Any) -> Json:
    """A hundred nodes of which one fails within the repair time, on average."""
    rates = {"time_between_failures": 3.6e5, "repair_time": 3600.0}
    return {"id": name, "nodes": 100, "free": 20, "price": 2.5, **rates, **members}


def backed_job(**members: Any) -> Json:
    """A job whose checkpoint of 150 GB is 20 Gbit/s in a minute."""
    counts = {"replicas": 3, "least_replicas": 1, "nodes_each": 2}
    return {
        "id": "j", "priority": 0, "domain": "home", **counts, "state_size": 150 * GIGA, "pause": 3.0, **members
    }  # fmt: skip


def backup_request(**members: Any) -> Json:
    return {
        "revision": REVISION,
        "interval": 10.0,
        "share": 0.25,
        "risk": 0.01,
        "domains": [domain(), domain("away")],
        "links": [link("home", "away", 10, 30)],
        "stores": [store("home", free=1e12), store("away", free=1e12)],
        "jobs": [backed_job()],
        **members,
    }


def backed(client: Client, **members: Any) -> Any:
    return asked(client, "/v1/backup-plans", "BackupPlan", backup_request(**members))


def copies(plan: Any) -> dict[tuple[str, str], float]:
    """Periods by job and domain."""
    return {(row["job"], row["domain"]): row["period"] for row in plan["copies"]}


def test_a_pool_has_the_fewest_spares_whose_risk_may_be_run(client: Client) -> None:
    """Of one failure expected, more than 3 come with a chance of 1.9 hundredths, more than 4 with 0.37 hundredths."""
    pool = backed(client)["pools"][0]
    risk = 1 - sum(math.exp(-1) / math.factorial(number) for number in range(5))
    assert pool == {"domain": "home", "spares": 4, "risk": pytest.approx(risk), "price": 10.0}


@pytest.mark.parametrize(
    ("members", "risk", "spares"),
    [
        ({"free": 3}, 0.01, 3),
        ({}, 1.0, 0),
        ({"nodes": 0}, 0.0, 0),
        ({}, 0.0, 20),
        ({"repair_time": 0.0}, 0.0, 0),
        ({"nodes": 10**6, "free": 10**6}, 0.01, 10_233),
        ({"nodes": 10**12, "free": 10**12}, 0.01, 10**10 + 232_636),
        ({"nodes": 10**15, "repair_time": 1e300, "free": 7}, 0.5, 7),
    ],
)
def test_pools_of_domains_with_few_and_many_failures(client: Client, members: Json, risk: float, spares: int) -> None:
    assert backed(client, domains=[domain(**members)], risk=risk, jobs=[])["pools"][0]["spares"] == spares


def test_a_job_has_a_copy_at_home_and_one_elsewhere_as_often_as_they_fit(client: Client) -> None:
    """Of the store's 80 Gbit/s copies may take 20; of the link's 20 five, so that one takes four minutes there."""
    assert copies(backed(client)) == {("j", "home"): 60.0, ("j", "away"): 240.0}


def test_a_long_pause_is_not_made_often(client: Client) -> None:
    assert copies(backed(client, jobs=[backed_job(pause=10.0)])) == {("j", "home"): 200.0, ("j", "away"): 240.0}


def test_copies_are_held_only_where_there_is_room_for_two(client: Client) -> None:
    stores = [store("home", free=300 * GIGA), store("away", free=299 * GIGA)]
    jobs = [backed_job(), backed_job(id="k", priority=1)]
    assert list(copies(backed(client, stores=stores, jobs=jobs))) == [("k", "home")]
    assert copies(backed(client, stores=[store("home")])) == {}


def test_copies_share_what_they_may_take(client: Client) -> None:
    jobs = [backed_job(), backed_job(id="k")]
    held = copies(backed(client, jobs=jobs))
    assert held == {("j", "home"): 120.0, ("k", "home"): 120.0, ("j", "away"): 480.0, ("k", "away"): 480.0}


@pytest.mark.parametrize(
    "links", [[], [link("home", "away", 10, up=False)], [link("home", "away")], [link("away", "home", 10)]]
)
def test_no_copy_travels_where_no_link_is_known_to_carry_it(client: Client, links: list[Json]) -> None:
    assert list(copies(backed(client, links=links))) == [("j", "home")]


def test_where_nothing_may_be_taken_nothing_is_held(client: Client) -> None:
    assert backed(client, share=0)["copies"] == []


@pytest.mark.parametrize(
    ("problem", "pointer", "members"),
    [
        ("invalid-body", "/domains/1/id", {"domains": [domain(), domain()]}),
        ("invalid-body", "/links/1", {"links": [link("home", "away", 1)] * 2}),
        ("invalid-body", "/links/0/target", {"links": [link("home", "home", 1)]}),
        ("invalid-body", "/stores/1/domain", {"stores": [store("home")] * 2}),
        ("invalid-body", "/jobs/1/id", {"jobs": [backed_job(), backed_job()]}),
        ("invalid-body", "/jobs/0/least_replicas", {"jobs": [backed_job(least_replicas=4)]}),
        ("unknown-reference", "/jobs/0/domain", {"jobs": [backed_job(domain="nowhere")]}),
    ],
)
def test_requests_for_backup_plans_that_cannot_be_are_refused(
    client: Client, problem: str, pointer: str, members: Json
) -> None:
    refused(client, "/v1/backup-plans", backup_request(**members), problem, pointer)
