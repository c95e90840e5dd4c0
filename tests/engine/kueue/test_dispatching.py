"""``kuayu kueue dispatch`` as operators run it: a process between a manager cluster and a service, both over HTTP.

The service knows three domains of one node each. The data lie in west, which is the cheapest; to north every bit costs.
So a job that reads them is best in west, then in east, then in north.
"""

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Program, run, running
from engine.kueue.played_manager import LEASES, NAMESPACE, PlayedManager
from service.conftest import JsonObject, Service

PRICES = {"east": 3.0, "north": 9.0, "west": 2.0}
CLUSTERS = {name: f"{name}-kubeconfig" for name in PRICES}
DEVICES = 8
DATA = "data: {name: corpus, place: west, size: 1TB}\nduration: 2h"
QUICK = ("--round", "1s")
PATIENCE_S = 30.0


def register(service: Service) -> None:
    """Domains, nodes and links of the federation."""
    for name, price in PRICES.items():
        service.put(f"/v1/domains/{name}", {"id": name, "extensions": {"org.kuayu/price": price}}).raise_for_status()
        devices = [
            {"id": str(number), "kind": "gpu", "vendor": "NVIDIA", "model": "H100 SXM 80GB", "memory_capacity": 80e9}
            for number in range(DEVICES)
        ]
        body = {"id": f"{name}-1", "domain": name, "devices": devices}
        service.put(f"/v1/nodes/{name}-1", body).raise_for_status()
    for source, target, tariff in (("west", "east", 1e-15), ("west", "north", 1e-12)):
        link: JsonObject = {
            "id": f"{source}-{target}",
            "source": source,
            "destination": target,
            "capacity": 1e10,
            "extensions": {"org.kuayu/tariff": tariff},
        }
        service.put(f"/v1/links/{link['id']}", link).raise_for_status()


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    database = f"sqlite:///{tmp_path_factory.mktemp('service') / 'kuayu.db'}"
    with contextlib.closing(Service(database)) as service:
        service.start()
        register(service)
        yield service


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[PlayedManager]:
    cluster = PlayedManager(tmp_path)
    cluster.set_up(CLUSTERS)
    yield cluster
    cluster.close()


class Dispatcher:
    """A dispatcher that runs.

    Attributes:
        nominations: What it has printed, in order: workload, clusters and reason.
        messages: Lines of its log.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.nominations: list[dict[str, Any]] = []
        self.messages: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_nominations, daemon=True),
            threading.Thread(target=self._read_messages, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_nominations(self) -> None:
        for line in self.program.stdout:
            self.nominations.append(json.loads(line))

    def _read_messages(self) -> None:
        for line in self.program.stderr:
            self.messages.append(line)

    def log(self) -> str:
        """All that it has logged."""
        return "".join(self.messages)

    def end(self) -> int:
        """Ask it to end; its exit status."""
        self.program.send_signal(signal.SIGTERM)
        return self.over()

    def close(self) -> None:
        """End it where it still runs."""
        if self.program.poll() is None:
            self.end()

    def over(self) -> int:
        """Wait until it has ended and all that it said is read; its exit status."""
        status: int = self.program.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join()
        return status


Start = Callable[..., Dispatcher]


@pytest.fixture
def start(manager: PlayedManager) -> Iterator[Start]:
    """Starts dispatchers; what still runs in the end is killed."""
    with contextlib.ExitStack() as started:

        def begin(service: Service, *options: str) -> Dispatcher:
            where = ("--url", service.url, "--kubeconfig", manager.kubeconfig(), "--json")
            command = running("kueue", "dispatch", *where, *options, no_proxy="127.0.0.1", COLUMNS="200")
            dispatcher = Dispatcher(started.enter_context(command))
            started.callback(dispatcher.close)
            return dispatcher

        yield begin


def once(manager: PlayedManager, service: Service, *options: str) -> Any:
    where = ("--url", service.url, "--kubeconfig", manager.kubeconfig(), "--once")
    return run("kueue", "dispatch", *where, *options, no_proxy="127.0.0.1", COLUMNS="300")


def test_clusters_are_nominated_in_the_order_of_the_decision(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    """The one with the data first, and each further one when those before it have had their time."""
    dispatcher = start(federation, *QUICK)
    path = manager.submit("train", annotation=DATA)
    for clusters in (["west"], ["west", "east"], ["west", "east", "north"]):
        manager.until(lambda clusters=clusters: manager.nominated(path) == clusters)
    assert dispatcher.end() == 0
    first = dispatcher.nominations[0]
    assert (first["namespace"], first["workload"], first["clusters"]) == (NAMESPACE, "train", ["west"])
    assert "in west" in first["reason"]
    assert [entry["clusters"] for entry in dispatcher.nominations] == [
        ["west"],
        ["west", "east"],
        ["west", "east", "north"],
    ]


def test_it_does_with_the_permissions_that_it_asks_for_and_writes_nominations_alone(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    """The played API server holds it to the roles of ``kuayu kueue manifests``."""
    dispatcher = start(federation)
    path = manager.submit("train", annotation=DATA)
    manager.until(lambda: manager.nominated(path) == ["west"])
    assert dispatcher.end() == 0
    writing = {request for request in manager.requests if request.split()[0] not in {"get", "list", "watch"}}
    assert writing == {"patch workloads/status", "create leases", "patch leases"}
    assert "forbidden" not in dispatcher.log()


def test_one_that_was_admitted_is_left_alone_and_its_devices_count_as_taken(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    """The next one with the same data goes to the next best, since the best has no devices left."""
    dispatcher = start(federation)
    first = manager.submit("first", annotation=DATA)
    manager.until(lambda: manager.nominated(first) == ["west"])
    manager.admit(first, "west")
    second = manager.submit("second", annotation=DATA)
    manager.until(lambda: manager.nominated(second) == ["east"])
    assert manager.nominated(first) == []
    assert manager.get(first)["status"]["clusterName"] == "west"
    assert dispatcher.end() == 0


def test_workloads_that_come_together_are_decided_on_together(manager: PlayedManager, federation: Service) -> None:
    """No two are sent to the same devices. The fourth has to wait: in west, where it costs least in the end."""
    paths = [
        manager.submit(name, annotation=DATA, metadata={"creationTimestamp": f"2026-11-29T12:00:0{number}Z"})
        for number, name in enumerate(("a", "b", "c", "d"))
    ]
    finished = once(manager, federation)
    assert finished.returncode == 0, finished.stderr
    assert sorted(manager.nominated(path)[0] for path in paths[:3]) == ["east", "north", "west"]
    assert manager.nominated(paths[3]) == ["west"]
    line = next(line for line in finished.stdout.splitlines() if line.startswith("team-a/d "))
    assert "it has to wait; time until its first step, and cost: west" in line
    assert "4 workloads wait for a cluster" in finished.stderr


def test_what_an_hour_of_waiting_counts_decides_between_a_dear_cluster_and_a_full_one(
    manager: PlayedManager, federation: Service
) -> None:
    """All are full: west for a day, north for two hours."""
    for cluster, hours in (("west", 24), ("east", 48), ("north", 2)):
        path = manager.submit(
            f"in-{cluster}", annotation=f"duration: {hours}h", nominatedClusterNames=[cluster], metadata={}
        )
        manager.admit(path, cluster)
    path = manager.submit("train", annotation="duration: 1h")
    once(manager, federation, "--hour-price", "0")
    assert manager.nominated(path) == ["west"]
    manager.change(path, nominatedClusterNames=None)
    once(manager, federation, "--hour-price", "1000")
    assert manager.nominated(path) == ["north"]


def test_a_cluster_that_is_away_is_not_nominated_and_one_that_goes_away_is_replaced(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    manager.connect("west", active=False, message="client connection failed: EOF")
    dispatcher = start(federation)
    path = manager.submit("train", annotation="duration: 2h")
    manager.until(lambda: manager.nominated(path) != [])
    [chosen] = manager.nominated(path)
    assert chosen != "west"
    manager.connect("west")
    manager.connect(chosen, active=False)
    manager.until(lambda: manager.nominated(path) not in ([], [chosen]))
    assert chosen not in manager.nominated(path)
    assert dispatcher.end() == 0
    assert "cluster west: nothing is sent there: client connection failed: EOF" in dispatcher.log()
    assert "cluster west can be sent to again" in dispatcher.log()


def test_where_all_clusters_are_away_a_workload_waits_until_one_is_back(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    for name in CLUSTERS:
        manager.connect(name, active=False)
    dispatcher = start(federation)
    path = manager.submit("train", annotation=DATA)
    manager.until(lambda: "the clusters of its check are not there" in dispatcher.log())
    assert manager.nominated(path) == []
    manager.connect("east")
    manager.until(lambda: manager.nominated(path) == ["east"])
    assert dispatcher.end() == 0


def test_a_workload_that_somebody_changes_meanwhile_is_looked_at_again(
    manager: PlayedManager, federation: Service
) -> None:
    """The first patch meets another version (409); what comes of it is written on the newer one."""
    path = manager.submit("train", annotation=DATA)

    def interfere() -> None:
        manager.before_patch = lambda: None
        manager.change(path, requeueState={"count": 1})

    manager.before_patch = interfere
    finished = once(manager, federation)
    assert finished.returncode == 0, finished.stderr
    assert manager.nominated(path) == ["west"]
    assert manager.get(path)["status"]["requeueState"] == {"count": 1}
    assert manager.requests.count("patch workloads/status") == 2


def test_a_workload_that_kueue_assigns_meanwhile_is_not_written_to(manager: PlayedManager, federation: Service) -> None:
    path = manager.submit("train", annotation=DATA)

    def assign() -> None:
        manager.before_patch = lambda: None
        manager.change(path, clusterName="north", admissionChecks=[{"name": "kuayu", "state": "Ready"}])

    manager.before_patch = assign
    assert once(manager, federation).returncode == 0
    assert manager.nominated(path) == []


def test_watches_that_break_and_changes_that_are_gone_lose_nothing(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    """After 410 Gone all is listed anew."""
    dispatcher = start(federation)
    manager.until(lambda: manager.watching == 4)
    manager.break_watches()
    first = manager.submit("first", annotation=DATA)
    manager.until(lambda: manager.nominated(first) == ["west"])
    manager.until(lambda: manager.watching == 4)
    manager.remove(first)
    manager.forget()
    second = manager.submit("second", annotation=DATA)
    manager.until(lambda: manager.nominated(second) == ["west"])
    assert dispatcher.end() == 0
    assert "are gone; all are listed anew" in dispatcher.log()


def test_an_api_server_that_is_away_or_overloaded_is_asked_again(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    manager.refuses["patch workloads/status"] = (503, 1)
    path = manager.submit("train", annotation=DATA)
    manager.away = True
    dispatcher = start(federation)
    manager.until(lambda: "does not answer" in dispatcher.log())
    manager.away = False
    manager.until(lambda: manager.nominated(path) == ["west"])
    assert dispatcher.end() == 0
    assert "not able to do that now" in dispatcher.log()


def test_what_was_written_before_a_pass_failed_is_told_all_the_same(
    manager: PlayedManager, federation: Service
) -> None:
    paths = [manager.submit(name, annotation=DATA) for name in ("a", "b")]

    def overload() -> None:
        if any(manager.nominated(path) for path in paths):
            manager.refuses["patch workloads/status"] = (503, 1)

    manager.before_patch = overload
    failed = once(manager, federation)
    assert failed.returncode == 1
    assert len([path for path in paths if manager.nominated(path)]) == 1
    assert failed.stdout.count(" -> ") == 1


def test_while_the_service_is_away_nothing_is_nominated_and_then_all_is(
    manager: PlayedManager, tmp_path: Path, start: Start
) -> None:
    with contextlib.closing(Service(f"sqlite:///{tmp_path / 'kuayu.db'}")) as service:
        service.start()
        register(service)
        dispatcher = start(service)
        manager.until(lambda: manager.watching == 4)
        service.stop()
        path = manager.submit("train", annotation=DATA)
        manager.until(lambda: "no answer from" in dispatcher.log())
        assert manager.nominated(path) == []
        service.start()
        manager.until(lambda: manager.nominated(path) == ["west"])
        assert dispatcher.end() == 0
        assert dispatcher.log().count("no answer from") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_second_dispatcher_stands_by_and_takes_over_when_the_first_ends(
    manager: PlayedManager, federation: Service, start: Start, number: signal.Signals
) -> None:
    """At once where the first gives its lease back; where it is killed, when nobody has renewed that for 15 s."""
    first = start(federation)
    manager.until(lambda: manager.lease() is not None)
    second = start(federation)
    manager.until(lambda: "standing by" in second.log())
    one = manager.submit("one", annotation=DATA)
    manager.until(lambda: manager.nominated(one) == ["west"] and len(first.nominations) == 1)
    first.program.send_signal(number)
    assert first.over() == (0 if number is signal.SIGTERM else -number)
    two = manager.submit("two", devices=1)
    manager.until(lambda: manager.nominated(two) != [])
    assert second.end() == 0
    assert [entry["workload"] for entry in first.nominations] == ["one"]
    assert (lease := manager.lease()) is not None
    assert lease["leaseTransitions"] == 1
    assert [entry["workload"] for entry in second.nominations] == ["two"]


def test_a_nomination_that_another_one_made_is_gone_on_with(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    """A dispatcher that comes after gives it the time of a whole round, and adds to it."""
    path = manager.submit("train", annotation=DATA, nominatedClusterNames=["north"])
    dispatcher = start(federation, *QUICK)
    manager.until(lambda: manager.nominated(path) == ["north", "west", "east"])
    assert dispatcher.end() == 0


def test_several_clusters_are_nominated_at_once_where_that_is_wanted(
    manager: PlayedManager, federation: Service
) -> None:
    path = manager.submit("train", annotation=DATA)
    once(manager, federation, "--step", "2")
    assert manager.nominated(path) == ["west", "east"]


def test_a_workload_without_accelerators_is_offered_to_all_clusters(
    manager: PlayedManager, federation: Service
) -> None:
    path = manager.submit("prepare", devices=0)
    once(manager, federation)
    assert manager.nominated(path) == sorted(CLUSTERS)


def test_data_that_may_not_leave_keep_a_workload_where_they_are(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    """West is full for a day, and the others are free."""
    taken = manager.submit("taken", annotation="duration: 24h", nominatedClusterNames=["west"])
    manager.admit(taken, "west")
    path = manager.submit("train", annotation="data: {place: west, size: 1TB, pinned: true}\nduration: 1h")
    dispatcher = start(federation, *QUICK)
    manager.until(lambda: manager.nominated(path) != [])
    assert manager.nominated(path) == ["west"]
    assert dispatcher.end() == 0


def test_one_that_waits_in_a_full_cluster_is_offered_to_another_as_soon_as_that_is_free(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    holders = {}
    for cluster in CLUSTERS:
        holders[cluster] = manager.submit(f"in-{cluster}", annotation="duration: 24h", nominatedClusterNames=[cluster])
        manager.admit(holders[cluster], cluster)
    dispatcher = start(federation)
    path = manager.submit("train", annotation="duration: 1h")
    manager.until(lambda: manager.nominated(path) != [])
    [full] = manager.nominated(path)
    free = next(cluster for cluster in CLUSTERS if cluster != full)
    finished = [*manager.get(holders[free])["status"]["conditions"], {"type": "Finished", "status": "True"}]
    manager.change(holders[free], conditions=finished)
    manager.until(lambda: manager.nominated(path) == [full, free])
    assert dispatcher.end() == 0


def test_an_annotation_that_cannot_be_read_keeps_its_workload_back_and_no_other(
    manager: PlayedManager, federation: Service
) -> None:
    wrong = manager.submit("wrong", annotation="data: {plac: west, size: 1TB}")
    right = manager.submit("right", annotation=DATA)
    finished = once(manager, federation)
    assert manager.nominated(wrong) == []
    assert manager.nominated(right) == ["west"]
    assert "team-a/wrong is not dispatched: kuayu.dev/job:1" in finished.stderr


def test_without_kueue_or_with_one_that_is_too_old_it_says_what_to_install(
    manager: PlayedManager, federation: Service
) -> None:
    manager.submit("train", annotation=DATA)
    manager.prunes = {"nominatedClusterNames"}
    old = once(manager, federation)
    assert old.returncode == 1
    assert "drops status.nominatedClusterNames" in old.stderr
    manager.version = None
    none = once(manager, federation)
    assert none.returncode == 1
    assert "there is no Kueue" in none.stderr
    assert "Kueue 0.14" in none.stderr


def test_without_permissions_it_ends_and_says_how_they_are_had(
    manager: PlayedManager, federation: Service, start: Start
) -> None:
    manager.allowed = []
    dispatcher = start(federation)
    assert dispatcher.over() == 1
    assert "workloads is forbidden" in dispatcher.log()
    assert "kuayu kueue manifests" in dispatcher.log()


def test_kueue_with_the_older_api_is_dispatched_for_too(tmp_path: Path, federation: Service) -> None:
    with contextlib.closing(PlayedManager(tmp_path, "v1beta1")) as older:
        older.set_up(CLUSTERS)
        path = older.submit("train", annotation=DATA)
        once(older, federation)
        assert older.nominated(path) == ["west"]


def test_the_check_says_what_is_there_and_what_is_missing(manager: PlayedManager, federation: Service) -> None:
    where = ("--url", federation.url, "--kubeconfig", manager.kubeconfig(), "--json")
    gates = {"WorkloadRequestUseMergePatch": True}
    manager.configure(multiKueue={"dispatcherName": "kuayu.dev/dispatcher"}, featureGates=gates)
    whole = run("kueue", "check", *where, no_proxy="127.0.0.1")
    findings = json.loads(whole.stdout)["findings"]
    # The account of an operator may read all that a dispatcher may.
    assert whole.returncode == 0, findings
    assert all(entry["present"] for entry in findings)
    assert {entry["subject"] for entry in findings} >= {"service", *(f"cluster {name}" for name in CLUSTERS)}
    manager.configure(multiKueue={})
    manager.connect("north", active=False, message="client connection failed: EOF")
    manager.allowed = [(place, rule) for place, rule in manager.allowed if "leases" not in rule["resources"]]
    lacking = run("kueue", "check", *where, no_proxy="127.0.0.1")
    assert lacking.returncode == 1
    missing = {entry["subject"]: entry for entry in json.loads(lacking.stdout)["findings"] if not entry["present"]}
    assert missing.keys() == {"Kueue's configuration", "cluster north", "permission for leases"}
    assert "kuayu.dev/dispatcher" in missing["Kueue's configuration"]["hint"]
    assert missing["cluster north"]["detail"] == "client connection failed: EOF"
    assert LEASES in missing["permission for leases"]["hint"]
