"""What a tenant may have registered is bounded, and the answer says by what."""

from pathlib import Path

from service.conftest import Service, StartService, problem

from kuayu.service.storage import queries


def described(name: str, characters: int) -> dict[str, object]:
    """A domain of about so many characters."""
    return {"id": name, "label": name, "extensions": {"cn.example/rack": "x" * characters}}


def turned_down(service: Service, name: str, characters: int = 10) -> str:
    """The detail of the problem that a domain is answered with."""
    answer = service.put(f"/v1/domains/{name}", described(name, characters))
    assert answer.status_code == 403
    assert problem(answer) == "quota-exceeded"
    assert answer.json()["retryable"] is False
    return str(answer.json()["detail"])


def test_an_object_has_a_size_that_the_declaration_names(start_service: StartService) -> None:
    service = start_service()
    most = service.client.get("/v1/conformance").json()["limits"]["max_resource"]
    assert most == 1024 * 1024
    assert str(most) in turned_down(service, "large", 15_000_000)
    assert service.put("/v1/domains/fits", described("fits", most - 1_000)).status_code == 201


def test_a_tenant_has_so_many_objects_and_room_again_once_it_deletes_one(start_service: StartService) -> None:
    service = start_service("--max-resources", "3", "--token", "blue=b", "--token", "green=g")
    blue, green = (service.as_tenant(token) for token in "bg")
    for name in "abc":
        assert blue.put(f"/v1/domains/{name}", json={"id": name}).status_code == 201
    refused = blue.put("/v1/domains/d", json={"id": "d"})
    assert problem(refused) == "quota-exceeded"
    assert "3 registered resources" in refused.json()["detail"]
    assert blue.put("/v1/domains/a", json={"id": "a", "label": "another"}).status_code == 200
    assert green.put("/v1/domains/d", json={"id": "d"}).status_code == 201
    assert blue.delete("/v1/domains/a").status_code == 204
    assert blue.put("/v1/domains/d", json={"id": "d"}).status_code == 201
    blue.close()
    green.close()


def asked(name: str, characters: int = 10) -> dict[str, object]:
    """An allocation of about so many characters in a domain that nobody controls, so that it waits."""
    share = {"domain": "a", "accelerator": "a800", "devices": 8}
    shares = [share | {"domain": f"{number:0100}"} for number in range(min(999, characters // 150))]
    return {
        "id": name,
        "job": f"job-of-{name}",
        "revision": {"epoch": "yesterday", "number": 3},
        "placement": {"shares": [share, *shares], "split_mode": "synchronous" if shares else "none"},
    }


def test_allocations_count_as_objects_until_they_are_forgotten(start_service: StartService) -> None:
    service = start_service("--max-resources", "3", "--token", "blue=b", "--token", "green=g")
    blue, green = (service.as_tenant(token) for token in "bg")
    assert blue.put("/v1/domains/a", json={"id": "a"}).status_code == 201
    for name in ("first", "second"):
        assert blue.put(f"/v1/allocations/{name}", json=asked(name)).status_code == 201
    for path, body in (("/v1/allocations/third", asked("third")), ("/v1/domains/b", {"id": "b"})):
        refused = blue.put(path, json=body)
        assert refused.status_code == 403
        assert problem(refused) == "quota-exceeded"
        assert "3 registered resources, allocations and jobs" in refused.json()["detail"]
    assert blue.put("/v1/allocations/first", json=asked("first")).status_code == 200  # what is there is not new
    assert green.put("/v1/allocations/third", json=asked("third")).status_code == 201
    # What is let go of is still held as a record; its change is not refused, and makes no room.
    assert blue.delete("/v1/allocations/first").status_code == 200
    assert problem(blue.put("/v1/allocations/third", json=asked("third"))) == "quota-exceeded"
    assert blue.delete("/v1/domains/a").status_code == 204
    assert blue.put("/v1/allocations/third", json=asked("third")).status_code == 201
    blue.close()
    green.close()


def test_the_first_thing_that_a_tenant_has_counts_too(start_service: StartService) -> None:
    service = start_service("--max-resources", "2", "--token", "blue=b", "--token", "green=g")
    blue, green = (service.as_tenant(token) for token in "bg")
    job = {"workload": {"command": ["true"]}, "devices": {"minimum": 1, "maximum": 1}}
    for name, status in (("first", 201), ("second", 201), ("third", 403)):
        assert blue.put(f"/v1/allocations/{name}", json=asked(name)).status_code == status
        assert green.put(f"/v1/jobs/{name}", json={"id": name, **job}).status_code == status
    blue.close()
    green.close()


def test_allocations_and_resources_share_their_room_and_old_versions_of_both_give_way(
    start_service: StartService,
) -> None:
    service = start_service("--max-resources-together", "700000")
    for name in ("first", "second", "third"):
        assert service.put(f"/v1/allocations/{name}", asked(name, 150_000)).status_code == 201
        assert service.client.delete(f"/v1/allocations/{name}").status_code == 200  # another version of it
    assert service.put("/v1/domains/a", described("a", 150_000)).status_code == 201
    refused = service.put("/v1/allocations/fourth", asked("fourth", 150_000))
    assert problem(refused) == "quota-exceeded"
    assert "together" in refused.json()["detail"]
    service.stop()
    service.start()
    assert "together" in turned_down(service, "b", 150_000)
    assert service.put("/v1/domains/b", described("b", 1_000)).status_code == 201


def test_old_versions_give_way_before_anything_is_refused(start_service: StartService, tmp_path: Path) -> None:
    service = start_service("--max-resources-together", "1000000")
    for number in range(30):
        assert service.put("/v1/domains/a", described("a", 90_000 + number)).status_code in {200, 201}
    assert (tmp_path / "kuayu.db").stat().st_size < 4_000_000
    for name in "bcdefghij":
        assert service.put(f"/v1/domains/{name}", described(name, 90_000)).status_code == 201
    assert "together" in turned_down(service, "k", 900_000)
    service.stop()
    service.start()
    assert "together" in turned_down(service, "k", 900_000)


def test_a_page_ends_where_it_would_be_too_large(start_service: StartService) -> None:
    service = start_service()
    names = [f"d{number:02d}" for number in range(12)]
    for name in names:
        service.put(f"/v1/domains/{name}", described(name, 1_000_000)).raise_for_status()
    found, query = [], {"limit": "1000"}
    while True:
        answer = service.client.get("/v1/domains", params=query).raise_for_status()
        assert len(answer.content) < queries.PAGE_CHARACTERS + 100_000
        found += [item["id"] for item in answer.json()["items"]]
        if "next_cursor" not in answer.json():
            break
        query["cursor"] = answer.json()["next_cursor"]
    assert found == names
