from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from engine.runs.played_cluster import PlayedCluster

from kuayu.engine.runs.kubernetes_connection import Connection, find_access
from kuayu.engine.runs.kueue import (
    DISPATCHER,
    ROUND_SECONDS,
    Dispatcher,
    PredictedOutcome,
    manager_configuration,
    multikueue_objects,
    rank,
)

API = "/apis/kueue.x-k8s.io/v1beta2"
CLUSTERS = ("east", "north", "west")
PRICE_PER_HOUR = 60.0


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[PlayedCluster]:
    """A manager cluster with three workers."""
    cluster = PlayedCluster(tmp_path, {"n1": 1})
    for body in multikueue_objects("federation", dict.fromkeys(CLUSTERS, "secret")):
        plural = {"MultiKueueCluster": "multikueueclusters", "MultiKueueConfig": "multikueueconfigs"}
        cluster.put(f"{API}/{plural.get(body['kind'], 'admissionchecks')}/{body['metadata']['name']}", body)
    yield cluster
    cluster.close()


def add_workload(manager: PlayedCluster, name: str, **status: Any) -> dict[str, Any]:
    """A workload that has quota and waits for a cluster, unless its status says otherwise."""
    body = {
        "metadata": {"name": name, "namespace": "team-a"},
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
            "admissionChecks": [{"name": "federation", "state": "Pending"}],
            **status,
        },
    }
    manager.put(f"{API}/namespaces/team-a/workloads/{name}", body)
    return body


def nominated(workload: dict[str, Any]) -> list[str]:
    return list(workload["status"].get("nominatedClusterNames", []))


def predict(_: dict[str, Any], clusters: Sequence[str]) -> list[PredictedOutcome]:
    """West has the data and a queue of an hour, east would have to fetch them, and north is dear."""
    known = {
        "west": PredictedOutcome("west", wait_seconds=3600.0, transfer_seconds=0.0, cost=10.0),
        "east": PredictedOutcome("east", wait_seconds=0.0, transfer_seconds=1200.0, cost=15.0),
        "north": PredictedOutcome("north", wait_seconds=0.0, transfer_seconds=0.0, cost=200.0),
    }
    return [known[cluster] for cluster in clusters]


def dispatcher(manager: PlayedCluster, clock: Clock, predicted: Any = predict) -> Dispatcher:
    connection = Connection(find_access(manager.kubeconfig()))
    return Dispatcher(connection, predicted, price_per_hour=PRICE_PER_HOUR, clock=clock)


def test_clusters_are_ranked_by_all_that_they_cost() -> None:
    """East: 15 and a third of an hour, 35. West: 10 and an hour, 70. Where waiting costs nothing, west is first."""
    outcomes = predict({}, CLUSTERS)
    assert [outcome.cluster for outcome in rank(outcomes, PRICE_PER_HOUR)] == ["east", "west", "north"]
    assert [outcome.cluster for outcome in rank(outcomes, 0.0)] == ["west", "east", "north"]
    assert [outcome.cluster for outcome in rank(outcomes, 1000.0)] == ["north", "east", "west"]


def test_where_two_cost_the_same_the_one_with_the_data_goes_first() -> None:
    outcomes = [PredictedOutcome("a", 600.0, 600.0, 1.0), PredictedOutcome("b", 600.0, 0.0, 1.0)]
    assert [outcome.cluster for outcome in rank(outcomes, PRICE_PER_HOUR)] == ["b", "a"]


def test_the_best_cluster_is_nominated_and_the_next_when_it_has_had_its_time(manager: PlayedCluster) -> None:
    """East has five minutes; west, which was predicted to take an hour, has that; then north is asked as well."""
    workload, clock = add_workload(manager, "train"), Clock()
    ours = dispatcher(manager, clock)
    for at, expected in [
        (0.0, ["east"]),
        (ROUND_SECONDS - 1, ["east"]),
        (ROUND_SECONDS, ["east", "west"]),
        (ROUND_SECONDS + 3599, ["east", "west"]),
        (ROUND_SECONDS + 3600, ["east", "west", "north"]),
        (ROUND_SECONDS + 9000, ["east", "west", "north"]),
    ]:
        clock.now = at
        ours.dispatch()
        assert nominated(workload) == expected


def test_a_pass_in_which_nothing_is_due_writes_nothing(manager: PlayedCluster) -> None:
    add_workload(manager, "train")
    ours = dispatcher(manager, Clock())
    assert [(made.namespace, made.workload, list(made.clusters)) for made in ours.dispatch()] == [
        ("team-a", "train", ["east"])
    ]
    manager.requests.clear()
    assert ours.dispatch() == []
    assert not any(request.startswith("PATCH") for request in manager.requests)


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": []},
        {"conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "Finished", "status": "True"}]},
        {"clusterName": "west"},
        {"admissionChecks": [{"name": "federation", "state": "Ready"}]},
        {"admissionChecks": [{"name": "another", "state": "Pending"}]},
        {"admissionChecks": []},
    ],
    ids=["no quota", "finished", "assigned", "checked", "not ours", "no check"],
)
def test_workloads_that_are_not_to_be_dispatched_are_left_alone(manager: PlayedCluster, status: dict[str, Any]) -> None:
    workload = add_workload(manager, "train", **status)
    assert dispatcher(manager, Clock()).dispatch() == []
    assert nominated(workload) == []


def test_a_cluster_that_can_take_it_no_more_is_replaced_and_one_that_got_worse_is_kept(manager: PlayedCluster) -> None:
    workload = add_workload(manager, "train", nominatedClusterNames=["north"])
    possible = list(CLUSTERS)
    ours = dispatcher(
        manager, Clock(), lambda _, clusters: predict({}, [name for name in clusters if name in possible])
    )
    ours.dispatch()
    assert nominated(workload) == ["north"]
    possible.remove("north")
    ours.dispatch()
    assert nominated(workload) == ["east"]


def test_a_workload_that_has_been_assigned_meanwhile_is_not_written_to(manager: PlayedCluster) -> None:
    """Kueue assigns it while the prediction is made."""
    workload = add_workload(manager, "train")

    def slow(_: dict[str, Any], clusters: Sequence[str]) -> list[PredictedOutcome]:
        add_workload(manager, "train", clusterName="west")
        return predict({}, clusters)

    assert dispatcher(manager, Clock(), slow).dispatch() == []
    assert nominated(workload) == []


def test_kueue_is_told_who_dispatches() -> None:
    """A name with a domain before it, of 63 characters at most, as Kueue's configuration wants it."""
    assert manager_configuration()["multiKueue"] == {"dispatcherName": DISPATCHER}
    assert "/" in DISPATCHER
    assert len(DISPATCHER) <= 63
