"""Registering domains, nodes, links and compute identifiers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from service.conftest import Service, StartService, instant, problem

FAMILY = "urn:kuayu:family:example:training"
SERVICE = "urn:kuayu:service:example:pretraining"


def test_a_domain_comes_stays_changes_and_goes(shared: Service) -> None:
    path, body = "/v1/domains/coming", {"id": "coming", "label": "来"}
    made = shared.put(path, body)
    assert made.status_code == 201
    record = made.json()
    assert {"id": "coming", "label": "来"}.items() <= record.items()
    assert made.headers["ETag"] == '"{epoch}:{number}"'.format(**record["revision"])

    same = shared.put(path, body)
    assert (same.status_code, same.json()) == (200, record)

    changed = shared.put(path, body | {"operator": "us"})
    assert changed.status_code == 200
    assert changed.json()["revision"]["number"] == record["revision"]["number"] + 1
    assert shared.client.get(path).json() == changed.json()

    assert shared.client.delete(path).status_code == 204
    assert problem(shared.client.get(path)) == "not-found"
    assert problem(shared.client.delete(path)) == "not-found"


def test_codes_that_others_assigned_come_back_as_they_were_registered(shared: Service) -> None:
    codes = [
        {"scheme": "https://registry.example/compute-codes", "code": " CN.110000.0042-7 "},
        {"scheme": "urn:example:industry", "code": "行业-03/7"},
    ]
    registered = {
        "/v1/domains/coded": {"id": "coded", "assigned_codes": codes},
        "/v1/nodes/coded": {"id": "coded", "domain": "coded", "assigned_codes": codes[::-1]},
        "/v1/links/coded": {"id": "coded", "source": "coded", "destination": "coded", "assigned_codes": codes[:1]},
        f"/v1/compute-identifiers/{FAMILY}": {"urn": FAMILY, "members": [], "assigned_codes": codes[1:]},
    }
    for path, body in registered.items():
        assert shared.put(path, body).json()["assigned_codes"] == body["assigned_codes"]
        assert shared.client.get(path).json()["assigned_codes"] == body["assigned_codes"]
    for path in reversed(registered):
        assert shared.client.delete(path).status_code == 204


def test_true_and_one_are_not_the_same(shared: Service) -> None:
    body = {"id": "typed", "extensions": {"org.example/flag": True}}
    first = shared.put("/v1/domains/typed", body).json()
    body["extensions"]["org.example/flag"] = 1  # type: ignore[index]
    assert shared.put("/v1/domains/typed", body).json()["revision"] != first["revision"]


def test_a_write_to_another_revision_is_stale(shared: Service) -> None:
    path = "/v1/domains/guarded"
    tag = shared.put(path, {"id": "guarded"}).headers["ETag"]
    newer = shared.put(path, {"id": "guarded", "label": "2"}, **{"If-Match": tag}).headers["ETag"]
    assert problem(shared.put(path, {"id": "guarded", "label": "3"}, **{"If-Match": tag})) == "stale-revision"
    assert problem(shared.client.delete(path, headers={"If-Match": tag})) == "stale-revision"
    assert problem(shared.client.delete(path, headers={"If-Match": "*"})) == "invalid-parameter"
    assert problem(shared.put("/v1/domains/absent", {"id": "absent"}, **{"If-Match": tag})) == "stale-revision"
    assert shared.client.delete(path, headers={"If-Match": newer}).status_code == 204


def test_what_a_resource_names_must_exist_and_cannot_go(shared: Service) -> None:
    refused = shared.put("/v1/nodes/early", {"id": "early", "domain": "missing"})
    assert problem(refused) == "unknown-reference"
    assert refused.json()["errors"][0]["pointer"] == "/domain"

    shared.register(node="held", domain="holding")
    assert problem(shared.client.delete("/v1/domains/holding")) == "in-use"
    shared.put("/v1/links/there", {"id": "there", "source": "holding", "destination": "holding"}).raise_for_status()
    shared.client.delete("/v1/nodes/held").raise_for_status()
    assert problem(shared.client.delete("/v1/domains/holding")) == "in-use"
    shared.client.delete("/v1/links/there").raise_for_status()
    assert shared.client.delete("/v1/domains/holding").status_code == 204


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/v1/domains/a", {"id": "b"}, "/id"),
        ("/v1/domains/a", {"id": "a", "colour": "red"}, "/colour"),
        ("/v1/domains/a%20b", {"id": "a b"}, "/id"),
        ("/v1/nodes/a", {"id": "a", "domain": "d", "compute_identifier": FAMILY}, "/compute_identifier"),
        (f"/v1/compute-identifiers/{FAMILY}", {"urn": FAMILY, "members": [SERVICE]}, "/members/0"),
        (
            "/v1/nodes/a",
            {"id": "a", "domain": "d", "devices": [{"id": "0", "kind": "gpu", "vendor": "v", "model": "m"}] * 2},
            "/devices/1/id",
        ),
    ],
)
def test_a_body_that_breaks_a_rule_says_where(shared: Service, path: str, body: dict, pointer: str) -> None:  # type: ignore[type-arg]
    refused = shared.put(path, body)
    assert problem(refused) == "invalid-body"
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_compute_identifiers_resolve_both_ways(shared: Service) -> None:
    nodes = {name: f"urn:kuayu:node:example:{name}" for name in ("first", "second", "never")}
    shared.put("/v1/domains/resolving", {"id": "resolving"}).raise_for_status()
    for name in ("first", "second"):
        body = {"id": name, "domain": "resolving", "compute_identifier": nodes[name]}
        shared.put(f"/v1/nodes/{name}", body).raise_for_status()
    shared.put(f"/v1/compute-identifiers/{SERVICE}", {"urn": SERVICE, "members": [FAMILY]}).raise_for_status()

    dangling = shared.client.get(f"/v1/compute-identifiers/{FAMILY}/resolution").json()
    assert dangling["unresolved"] == [FAMILY]

    family = {"urn": FAMILY, "members": list(nodes.values())}
    shared.put(f"/v1/compute-identifiers/{FAMILY}", family).raise_for_status()
    for urn, tier in ((SERVICE, "service"), (FAMILY, "family"), (nodes["first"], "node")):
        found = shared.client.get(f"/v1/compute-identifiers/{urn}/resolution").json()
        assert (found["tier"], found["services"], found["families"]) == (tier, [SERVICE], [FAMILY])
        assert found["nodes"] == (["first"] if tier == "node" else ["first", "second"])
        assert found["unresolved"] == ([] if tier == "node" else [nodes["never"]])
    unknown = shared.client.get("/v1/compute-identifiers/urn:kuayu:node:example:unheard/resolution")
    assert problem(unknown) == "not-found"


def test_a_listing_shows_what_was_there_when_it_began(start_service: StartService) -> None:
    service = start_service()
    for name in ("a", "b", "c", "d"):
        service.put(f"/v1/domains/{name}", {"id": name})
    page = service.client.get("/v1/domains", params={"limit": 2}).json()
    service.client.delete("/v1/domains/c")
    service.put("/v1/domains/d", {"id": "d", "label": "later"})
    service.put("/v1/domains/e", {"id": "e"})
    rest = service.client.get("/v1/domains", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert [item["id"] for item in page["items"] + rest["items"]] == ["a", "b", "c", "d"]
    assert "label" not in rest["items"][1]
    assert rest["revision"] == page["revision"]
    assert "next_cursor" not in rest
    present = service.client.get("/v1/domains").json()
    assert [item["id"] for item in present["items"]] == ["a", "b", "d", "e"]


def test_a_cursor_is_good_for_its_own_listing_only(shared: Service) -> None:
    for name in ("x1", "x2"):
        shared.register(node=name, domain="cursors")
    page = shared.client.get("/v1/nodes", params={"limit": 1, "domain": "cursors"}).json()
    cursor = page["next_cursor"]
    for path, params in (
        ("/v1/nodes", {"cursor": cursor}),
        ("/v1/domains", {"cursor": cursor}),
        ("/v1/nodes", {"domain": "cursors", "cursor": cursor[:-1] + ("A" if cursor[-1] != "A" else "B")}),
        ("/v1/nodes", {"domain": "cursors", "cursor": "中文"}),
        ("/v1/nodes", {"domain": "cursors", "cursor": ""}),
    ):
        assert problem(shared.client.get(path, params=params)) == "invalid-cursor"
    for limit in ("0", "1001", "many"):
        assert problem(shared.client.get("/v1/nodes", params={"limit": limit})) == "invalid-parameter"


def test_parallel_writers_get_one_revision_each(start_service: StartService) -> None:
    service = start_service()

    def write(number: int) -> int:
        answer = service.put(f"/v1/domains/d{number}", {"id": f"d{number}"})
        revision: int = answer.raise_for_status().json()["revision"]["number"]
        return revision

    with ThreadPoolExecutor(8) as writers:
        revisions = list(writers.map(write, range(64)))
    assert sorted(revisions) == list(range(1, 65))
    assert service.client.get("/v1/conformance").json()["revision"]["number"] == 64


def test_one_of_many_conditional_writers_wins(shared: Service) -> None:
    tag = shared.put("/v1/domains/contested", {"id": "contested"}).headers["ETag"]

    def write(number: int) -> int:
        body = {"id": "contested", "label": str(number)}
        return shared.put("/v1/domains/contested", body, **{"If-Match": tag}).status_code

    with ThreadPoolExecutor(8) as writers:
        outcomes = sorted(writers.map(write, range(8)))
    assert outcomes == [200] + [409] * 7


def test_a_node_that_is_gone_takes_no_samples(shared: Service) -> None:
    shared.register(node="leaving", domain="left")
    sample = {"subject": "leaving", "subject_kind": "node", "observed_at": instant()}
    assert shared.send(sample).json()["accepted"] == 1
    shared.client.delete("/v1/nodes/leaving").raise_for_status()
    rejected = shared.send(sample).json()["rejected"]
    assert rejected[0]["problem"]["type"] == "urn:kuayu:problem:unknown-reference"
    listing = shared.client.get("/v1/samples", params={"subject": "leaving", "subject_kind": "node"})
    assert problem(listing) == "not-found"
