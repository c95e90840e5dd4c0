"""The resource graph over HTTP: what is registered, what is told of it, and how it changes."""

import copy
import random
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count

import jsonpatch
import pytest
from service.conftest import JsonObject, Service, instant, problem
from service.graph_reader import Reader, applied, event_id, parts, snapshot, states, until

from kuayu_schemas import schema

Query = dict[str, str]
NARROWINGS: tuple[Query, ...] = ({}, {"detail": "domains"}, {"domain": "a"}, {"detail": "domains", "domain": "a"})
TENANTS = 100
NUMBERS = count()
UNKNOWN_BASE = "sha256:" + 64 * "0"


def put_domains(service: Service, *names: str) -> None:
    for name in names:
        service.put(f"/v1/domains/{name}", {"id": name}).raise_for_status()


def put_node(service: Service, name: str, domain: str, devices: int = 1) -> None:
    listed = [{"id": str(n), "kind": "gpu", "vendor": "Example", "model": "Example"} for n in range(devices)]
    service.put(f"/v1/nodes/{name}", {"id": name, "domain": domain, "devices": listed}).raise_for_status()


def put_link(service: Service, name: str, source: str, destination: str, **members: float) -> None:
    body = {"id": name, "source": source, "destination": destination, **members}
    service.put(f"/v1/links/{name}", body).raise_for_status()


def report(service: Service, name: str, state: str) -> None:
    """Report the health of a node."""
    sample = {"subject": name, "subject_kind": "node", "observed_at": instant(), "health_state": state}
    assert service.send(sample).json()["accepted"] == 1


def measure(service: Service, link: str, **measures: float) -> None:
    sample = {"subject": link, "subject_kind": "link", "observed_at": instant(), **measures}
    assert service.send(sample).json()["accepted"] == 1


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("graph")
    tokens = "".join(f"tenant-{number}=token-{number}\n" for number in range(TENANTS))
    (folder / "tokens").write_text(tokens, encoding="utf-8")
    with closing(Service(f"sqlite:///{folder / 'kuayu.db'}", "--token-file", str(folder / "tokens"))) as service:
        service.start()
        yield service


@pytest.fixture
def service(serving: Service) -> Iterator[Service]:
    """The service of this module as a tenant who has two domains and nothing else."""
    own = copy.copy(serving)
    own.client = serving.as_tenant(f"token-{next(NUMBERS)}")
    put_domains(own, "a", "b")
    yield own
    own.client.close()


def test_what_is_registered_is_in_the_graph_when_the_registration_is_answered(service: Service) -> None:
    put_node(service, "n2", "a", devices=3)
    put_node(service, "n1", "b", devices=2)
    put_link(service, "l", "a", "b")
    graph = snapshot(service.client)
    assert [vertex["id"] for vertex in graph["domains"]] == ["a", "b"]
    assert [(vertex["id"], vertex["domain"], vertex["devices"]) for vertex in graph["nodes"]] == [
        ("n1", "b", 2),
        ("n2", "a", 3),
    ]
    assert set(states(graph).values()) == {"unknown"}
    assert [(link["source"], link["destination"], link["state"]) for link in graph["links"]] == [("a", "b", "unknown")]
    assert graph["domains"][0]["devices"] == 3
    assert graph["domains"][0]["nodes"]["unknown"] == 1
    assert graph["domains"][0]["reachable"] is True

    put_node(service, "n2", "b", devices=1)
    graph = snapshot(service.client)
    assert [domain["devices"] for domain in graph["domains"]] == [0, 3]
    assert [node["domain"] for node in graph["nodes"]] == ["b", "b"]

    for path in ("links/l", "nodes/n1", "nodes/n2", "domains/a"):
        service.client.delete(f"/v1/{path}").raise_for_status()
    graph = snapshot(service.client)
    assert [vertex["id"] for vertex in graph["domains"]] == ["b"]
    assert graph["nodes"] == graph["links"] == []
    assert graph["domains"][0]["nodes"]["unknown"] == 0


def test_a_registration_that_changes_nothing_of_the_graph_is_no_change(service: Service) -> None:
    before = snapshot(service.client)["revision"]
    service.put("/v1/domains/a", {"id": "a", "label": "renamed"}).raise_for_status()
    service.put("/v1/domains/a", {"id": "a", "label": "renamed"}).raise_for_status()
    assert snapshot(service.client)["revision"] == before


def test_a_reported_state_is_taken_over_and_summed_up(service: Service) -> None:
    put_node(service, "n1", "a")
    put_node(service, "n2", "a")
    report(service, "n1", "faulty")
    graph = until(service.client, lambda found: states(found)["n1"] == "faulty")
    counts = graph["domains"][0]["nodes"]
    assert (counts["faulty"], sum(counts.values())) == (1, 2)
    node = graph["nodes"][0]
    assert 0 < node["confidence"] <= 1
    assert node["because"]
    report(service, "n1", "offline")
    later = until(service.client, lambda found: states(found)["n1"] == "offline")
    assert later["nodes"][0]["since"] > node["since"]


def test_devices_stand_for_their_node(service: Service) -> None:
    put_node(service, "n1", "a", devices=2)
    for _ in range(3):
        samples = [
            {"subject": "n1", "subject_kind": "device", "device": device, "observed_at": instant(), **measures}
            for device, measures in (
                ("0", {"accelerator_utilisation": 0.25, "power": 300}),
                ("1", {"accelerator_utilisation": 0.75, "power": 400}),
            )
        ]
        assert service.send(*samples).json()["accepted"] == 2
        time.sleep(0.3)
    graph = until(service.client, lambda found: states(found)["n1"] != "unknown")
    assert graph["domains"][0]["accelerator_utilisation"] == 0.5


def test_samples_of_an_exporters_page_reach_the_graph(service: Service) -> None:
    put_node(service, "n1", "a", devices=1)
    page = '# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 50\n'
    for _ in range(3):
        assert service.send_page(page, node="n1", exporter="dcgm-exporter").json()["accepted"] == 1
        time.sleep(0.3)
    graph = until(service.client, lambda found: states(found)["n1"] != "unknown")
    assert graph["domains"][0]["accelerator_utilisation"] == 0.5


def test_what_was_refused_does_not_reach_the_graph(service: Service) -> None:
    put_node(service, "n1", "a")
    good = {"subject": "n1", "subject_kind": "node", "observed_at": instant(), "health_state": "faulty"}
    assert service.send(good, good | {"subject": "nobody"}, mode="atomic").status_code == 422
    put_node(service, "n2", "a")
    report(service, "n2", "faulty")
    graph = until(service.client, lambda found: states(found)["n2"] == "faulty")
    assert states(graph)["n1"] == "unknown"


def test_of_two_samples_of_one_instant_the_first_counts_here_too(service: Service) -> None:
    put_node(service, "n1", "a")
    at = instant()
    for state in ("faulty", "offline"):
        sample = {"subject": "n1", "subject_kind": "node", "observed_at": at, "health_state": state}
        service.send(sample).raise_for_status()
        time.sleep(0.6)
    assert states(snapshot(service.client))["n1"] == "faulty"


def test_links_are_shown_as_they_were_measured(service: Service) -> None:
    put_link(service, "l", "a", "b", capacity=10e9)
    put_link(service, "back", "b", "a")
    story: list[tuple[dict[str, float], str]] = [
        ({"inter_domain_bandwidth": 8123456789.25, "round_trip_time": 0.00002, "packet_loss": 0}, "up"),
        ({"packet_loss": 0.3}, "degraded"),
        ({"packet_loss": 1}, "down"),
        ({"packet_loss": 0.0}, "up"),
        ({"inter_domain_bandwidth": 3e9}, "degraded"),
    ]
    shown: JsonObject = {}
    for measures, state in story:
        measure(service, "l", **measures)
        shown |= measures
        link = until(service.client, lambda found, state=state: found["links"][1]["state"] == state)["links"][1]
        assert link["provenance"] == "measured"
        assert {name: link[name] for name in shown} == shown
    other = snapshot(service.client)["links"][0]
    stated = {"inter_domain_bandwidth", "round_trip_time"} & other.keys()
    assert other["state"] == "unknown"
    assert other["provenance"] == ("estimated" if stated else "unknown")
    assert "packet_loss" not in other


def test_a_link_that_nobody_measured_is_estimated_and_says_so(service: Service) -> None:
    put_link(service, "l", "a", "b", capacity=10e9)
    put_link(service, "back", "b", "a")
    measure(service, "l", inter_domain_bandwidth=8e9, round_trip_time=0.02)
    graph = until(service.client, lambda found: found["links"][0]["provenance"] == "estimated")
    assert graph["links"][0]["round_trip_time"] == 0.02
    assert graph["links"][0]["state"] == "unknown"


def test_narrower_graphs_are_parts_of_the_whole(service: Service) -> None:
    put_domains(service, "c")
    put_node(service, "n1", "a")
    put_node(service, "n2", "b")
    for name, source, destination in (("ab", "a", "b"), ("bc", "b", "c"), ("ca", "c", "a")):
        put_link(service, name, source, destination)
    whole = snapshot(service.client)
    assert parts(snapshot(service.client, detail="domains")) == parts(whole) | {"nodes": []}
    part = snapshot(service.client, domain="a")
    assert [vertex["id"] for vertex in part["domains"]] == ["a"]
    assert [vertex["id"] for vertex in part["nodes"]] == ["n1"]
    assert [vertex["id"] for vertex in part["links"]] == ["ab", "ca"]
    assert parts(snapshot(service.client, domain="a", detail="domains")) == parts(part) | {"nodes": []}


def test_questions_that_cannot_be_answered_are_refused(service: Service) -> None:
    for path in ("/v1/graph", "/v1/graph/events", "/v1/graph/patch"):
        query = {"base": UNKNOWN_BASE} if path.endswith("patch") else {}
        for wrong in ({"detail": "nodes"}, {"domain": "-"}, {"depth": "1"}):
            assert problem(service.client.get(path, params=query | wrong)) == "invalid-parameter"
        assert problem(service.client.get(path, params=query | {"domain": "nowhere"})) == "not-found"
    assert problem(service.client.get("/v1/graph/patch")) == "invalid-parameter"
    assert problem(service.client.get("/v1/graph/patch", params={"base": "sha256:0"})) == "invalid-parameter"
    assert problem(service.client.get("/v1/graph/patch", params={"base": UNKNOWN_BASE})) == "unknown-base"
    for last in ("", "7", "x:", ":7", "x:-1", "x:07", "x:1.5", "a b:1"):
        refused = service.client.get("/v1/graph/events", headers={"Last-Event-ID": last})
        assert problem(refused) == "invalid-parameter", last


def churn(service: Service, chance: random.Random, number: int) -> None:
    """Change something, a change of the graph more often than not."""
    name = f"n{number % 7}"
    match chance.randrange(6):
        case 0:
            service.client.delete(f"/v1/nodes/{name}")
        case 1:
            put_node(service, name, chance.choice("ab"), chance.randrange(3))
        case 2:
            put_link(service, f"l{number % 3}", *chance.choice(("ab", "ba", "cb")))
        case 3:
            service.client.delete(f"/v1/links/l{number % 3}")
        case 4:
            put_node(service, name, "c")
            report(service, name, chance.choice(("faulty", "offline", "degraded")))
        case _:
            put_link(service, "l0", "a", "c")
            measure(service, "l0", packet_loss=chance.choice((0, 0.5, 1)))


@pytest.mark.parametrize("query", NARROWINGS)
def test_snapshots_changes_and_patches_agree_while_everything_changes(service: Service, query: Query) -> None:
    chance = random.Random(str(query))
    put_domains(service, "c")
    first = snapshot(service.client, **query)
    snapshots = [first]
    with Reader(service.client, event_id(first), **query) as reader:
        for number in range(60):
            churn(service, chance, number)
            if number % 6 == 5:
                snapshots.append(snapshot(service.client, **query))
        put_node(service, "last", "a")
        snapshots.append(last := until(service.client, lambda _: True, **query))
        while not (changes := reader.changes()) or parts(_replay(first, changes)) != parts(last):
            time.sleep(0.05)
            last = snapshot(service.client, **query)
        numbers = [change["revision"]["number"] for change in changes]
        assert numbers == sorted(set(numbers))
        for later in snapshots:
            upto = [each for each in changes if each["revision"]["number"] <= later["revision"]["number"]]
            assert _replay(first, upto) == parts(later)
    for base in snapshots:
        before, now = {"digest": ""}, snapshot(service.client, **query)
        while before["digest"] != now["digest"]:  # states may move meanwhile, as telemetry is awaited
            params, before = query | {"base": base["digest"]}, now
            patch = service.client.get("/v1/graph/patch", params=params).raise_for_status().json()
            now = snapshot(service.client, **query)
        assert schema.errors("Patch", patch, reader=True) == []
        assert patch["base"] == base["digest"]
        assert schema.digest(jsonpatch.apply_patch(parts(base), patch["operations"])) == patch["result"]
        assert patch["result"] == now["digest"]


def _replay(first: JsonObject, changes: list[JsonObject]) -> JsonObject:
    graph = parts(first)
    for change in changes:
        graph = applied(graph, change)
    return graph


def test_what_a_patch_led_to_is_a_base_for_the_next(service: Service) -> None:
    base = snapshot(service.client)
    for name in ("n1", "n2"):
        put_node(service, name, "a")
        patch = service.client.get("/v1/graph/patch", params={"base": base["digest"]}).json()
        document = jsonpatch.apply_patch(parts(base), patch["operations"])
        assert document == parts(snapshot(service.client))
        base = document | {"digest": patch["result"]}


def test_tenants_have_graphs_of_their_own(serving: Service) -> None:
    assert problem(serving.client.get("/v1/graph")) == "unauthorised"
    assert problem(serving.client.get("/v1/graph/events")) == "unauthorised"
    with serving.as_tenant(f"token-{TENANTS - 1}") as red, serving.as_tenant(f"token-{TENANTS - 2}") as blue:
        for client in (red, blue):
            client.put("/v1/domains/d", json={"id": "d"}).raise_for_status()
        empty = snapshot(blue)
        with (
            Reader(red) as reds,
            Reader(blue) as blues,
        ):
            red.put("/v1/nodes/n", json={"id": "n", "domain": "d"}).raise_for_status()
            sample = {"subject": "n", "subject_kind": "node", "observed_at": instant(), "health_state": "faulty"}
            red.post("/v1/samples", json={"mode": "per_item", "samples": [sample]}).raise_for_status()
            found = until(red, lambda graph: states(graph) == {"n": "faulty"})
            reds.wait_for(event_id(found))
            assert blues.events == []
        assert parts(snapshot(blue)) == parts(empty)
        assert problem(blue.get("/v1/graph/patch", params={"base": found["digest"]})) == "unknown-base"
        assert blue.get("/v1/graph/patch", params={"base": empty["digest"]}).json()["operations"] == []


def test_the_service_says_how_its_graph_is_doing(service: Service) -> None:
    put_node(service, "n1", "a")
    with Reader(service.client) as reader:
        report(service, "n1", "faulty")
        reader.wait_for(event_id(until(service.client, lambda found: states(found)["n1"] == "faulty")))
        page = service.client.get("/metrics").text
    figures = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert float(figures["kuayu_graph_subscribers"]) == 1
    for name in (
        "kuayu_graph_changes_total",
        "kuayu_graph_tick_seconds_count",
        "kuayu_graph_recognition_seconds_count",
    ):
        assert float(figures[name]) > 0


def test_the_answer_to_a_stream_is_one_that_no_proxy_keeps(service: Service) -> None:
    with Reader(service.client) as reader:
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.headers["cache-control"] == "no-cache"
        assert reader.headers["x-accel-buffering"] == "no"
