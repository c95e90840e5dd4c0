import base64
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from engine.runs.laws import FOREVER, EngineLaws, EngineReference, alive, end_of, until
from engine.runs.played_cluster import TOKEN, PlayedCluster

from kuayu.engine.runs.kubernetes import KubernetesEngine
from kuayu.engine.runs.kubernetes_connection import Connection, find_access
from kuayu.engine.runs.protocol import (
    Engine,
    EngineError,
    NodeUnavailableError,
    Placement,
    Rendezvous,
    RunState,
    RunStatus,
)

WITH_PID = (
    "import os, sys, time\n"
    "from pathlib import Path\n"
    "folder = Path(sys.argv[1])\n"
    "name = f\"pid-{os.environ['RANK']}\"\n"
    "(folder / f'new-{name}').write_text(str(os.getpid()))\n"
    "(folder / f'new-{name}').rename(folder / name)\n"
    "time.sleep(600)\n"
)


class OnCluster(EngineLaws):
    """Engines on a played cluster."""

    NAMES_DEVICES: ClassVar[bool] = False
    KIND: ClassVar[str]

    @pytest.fixture
    def cluster(self, tmp_path: Path) -> Iterator[PlayedCluster]:
        cluster = PlayedCluster(tmp_path, {"n1": 2, "n2": 2, "n3": 2})
        yield cluster
        cluster.close()

    @pytest.fixture
    def reference(self, cluster: PlayedCluster, tmp_path: Path) -> EngineReference:
        options = {"kubeconfig": str(cluster.kubeconfig()), "kind": self.KIND, "image": "python:3"}
        return EngineReference("kubernetes", tmp_path / "engine", options)


class TestVolcano(OnCluster):
    """A task for each node, all or none."""

    KIND = "volcano"


class TestJob(OnCluster):
    """A Job with an index for each node, and what a cluster does to runs."""

    KIND = "job"

    def pids(self, folder: Path, ranks: int) -> list[int]:
        """Processes of all ranks, once they are there."""
        files = [folder / f"pid-{rank}" for rank in range(ranks)]
        until(lambda: all(file.exists() for file in files), "not all ranks begin")
        return [int(file.read_text()) for file in files]

    def on_two_nodes(self) -> Sequence[Placement]:
        return [Placement("n1", 1), Placement("n2", 1)]

    def test_an_answer_that_is_lost_starts_nothing_twice(
        self, engine: Engine, cluster: PlayedCluster, tmp_path: Path
    ) -> None:
        """The API server makes the Job and says so to nobody."""
        run = self.run_of("import sys; open(sys.argv[1], 'a').write('x')", tmp_path / "count")
        engine.prepare(run)
        cluster.dropped = 1
        engine.start(run)
        engine.start(run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert (tmp_path / "count").read_text() == "x"

    def test_a_node_that_is_lost_fails_the_run_and_the_other_ranks_are_ended(
        self, engine: Engine, cluster: PlayedCluster, tmp_path: Path
    ) -> None:
        """It is started again on other nodes, under its next name."""
        run = self.run_of(WITH_PID, tmp_path, placements=self.on_two_nodes(), grace_seconds=1.0)
        self.begin(engine, run)
        pids = self.pids(tmp_path, 2)
        until(lambda: engine.status(run.name).state is RunState.RUNNING, "it does not run")
        cluster.lose("n2")
        status = end_of(engine, run.name)
        assert status.state is RunState.FAILED
        assert "node n2 was lost" in status.reason
        assert sum(map(alive, pids)) == 1  # nobody can reach the one on the lost node
        again = replace(run, name="job-1.2", attempt=2, command=[sys.executable, "-c", "print('elsewhere')"])
        again = replace(again, placements=[Placement("n1", 1), Placement("n3", 1)])
        self.begin(engine, again)
        assert end_of(engine, again.name).state is RunState.SUCCEEDED

    def test_nodes_that_are_lost_or_cordoned_take_no_runs(self, engine: Engine, cluster: PlayedCluster) -> None:
        cluster.lose("n2")
        cluster.cordon("n3")
        unavailable = engine.unavailable_nodes(["n1", "n2", "n3"])
        assert unavailable == {
            "n2": "it is not ready: Kubelet stopped posting node status.",
            "n3": "it is cordoned",
        }
        with pytest.raises(NodeUnavailableError, match="n3 takes no pods: it is cordoned"):
            engine.prepare(self.run_of("pass", placements=[Placement("n3", 1)]))
        cluster.denied.add("list nodes")
        assert engine.unavailable_nodes(["n9"]) == {}  # who may not see nodes cannot tell

    def test_whether_a_run_on_a_lost_node_has_been_stopped_cannot_be_told(
        self, engine: KubernetesEngine, cluster: PlayedCluster, tmp_path: Path
    ) -> None:
        run = self.run_of(WITH_PID, tmp_path, grace_seconds=0.0)
        self.begin(engine, run)
        self.pids(tmp_path, 1)
        cluster.lose("n1")
        with pytest.raises(EngineError, match="cannot be told") as refused:
            engine.stop(run.name)
        assert "--force" in refused.value.hint

    def test_lines_that_come_while_it_is_being_stopped_are_kept(self, engine: Engine) -> None:
        """Another reader asks all the while; neither misses a line nor gets one twice."""
        program = (
            "import signal, sys, time\n"
            "def save(*_):\n"
            "    for number in range(200): print('saving', number, flush=True)\n"
            "    sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, save)\n"
            "print('up', flush=True)\n"
            "time.sleep(600)\n"
        )
        run = self.run_of(program, grace_seconds=60.0)
        self.begin(engine, run)
        until(lambda: self.texts(engine.logs(run.name)) == ["up"], "it does not come up")
        engine.stop(run.name)
        assert self.texts(engine.logs(run.name)) == ["up", *(f"saving {number}" for number in range(200))]

    def test_what_a_run_waits_for_is_told(self, engine: Engine, cluster: PlayedCluster, tmp_path: Path) -> None:
        """An image that is not there, and devices that another run has."""
        pulling = self.run_of(FOREVER, name="pulling.1", image="missing/image:1")
        self.begin(engine, pulling)
        until(lambda: "ImagePullBackOff" in engine.status(pulling.name).reason, "it does not say what it waits for")
        first = self.run_of(WITH_PID, tmp_path, name="first.1", placements=[Placement("n2", 2)])
        second = self.run_of("pass", name="second.1", placements=[Placement("n2", 1)])
        self.begin(engine, first)
        self.pids(tmp_path, 2)
        self.begin(engine, second)
        until(lambda: "Unschedulable" in engine.status(second.name).reason, "it does not say what it waits for")
        assert engine.status(second.name).state is RunState.STARTING
        engine.stop(first.name, 0.0)
        assert end_of(engine, second.name).state is RunState.SUCCEEDED
        engine.stop(pulling.name)
        assert cluster.workloads() == [body for body in cluster.workloads() if "second" in body["metadata"]["name"]]

    def test_a_queue_admits_a_run_when_it_is_its_turn(self, cluster: PlayedCluster, reference: EngineReference) -> None:
        cluster.admitted = False
        engine = replace(reference, options={**reference.options, "queue": "team-a"}).find()
        run = self.run_of("pass")
        self.begin(engine, run)
        until(lambda: "admitted in queue team-a" in engine.status(run.name).reason, "it does not say what it waits for")
        cluster.admitted = True
        assert end_of(engine, run.name).state is RunState.SUCCEEDED

    def test_a_workload_that_somebody_deletes_has_failed(
        self, engine: Engine, cluster: PlayedCluster, tmp_path: Path
    ) -> None:
        run = self.run_of(WITH_PID, tmp_path, grace_seconds=0.0)
        self.begin(engine, run)
        [pid] = self.pids(tmp_path, 1)
        cluster.take_out("/jobs/")
        status = end_of(engine, run.name)
        assert status == RunStatus(RunState.FAILED, "somebody has deleted its workload", None)
        assert not alive(pid)
        engine.start(run)
        assert cluster.workloads() == []

    def test_a_program_that_is_not_in_the_image_has_failed_with_what_the_shell_says(self, engine: Engine) -> None:
        run = self.run_of("", command=["no-such-program"])
        self.begin(engine, run)
        status = end_of(engine, run.name)
        assert (status.state, status.exit_code) == (RunState.FAILED, 127)
        assert "no-such-program" in engine.logs(run.name)[0].text

    def test_an_api_server_that_does_not_answer_says_nothing_about_a_run(
        self, reference: EngineReference, cluster: PlayedCluster
    ) -> None:
        engine, run = reference.find(), self.run_of("pass")
        engine.prepare(run)
        cluster.close()
        assert engine.status(run.name).state is RunState.UNKNOWN
        with pytest.raises(EngineError, match="does not answer") as refused:
            engine.start(run)
        assert refused.value.transient

    @pytest.mark.parametrize(
        ("change", "cause"),
        [
            ({"placements": [Placement("n9", 1)]}, "node n9 takes no pods"),
            ({"placements": [Placement("n1", 1), Placement("n2", 2)]}, "as many devices"),
            ({"code": "file:/home"}, "cannot read the code"),
            ({"rendezvous": Rendezvous(port=0, world_size=8)}, "known port"),
        ],
    )
    def test_what_cannot_run_is_refused_before_anything_is_made(
        self, engine: Engine, change: dict[str, Any], cause: str
    ) -> None:
        with pytest.raises(EngineError, match=cause):
            engine.prepare(self.run_of("pass", **change))
        assert engine.runs() == []

    @pytest.mark.parametrize("tries_out", [True, False])
    def test_before_a_run_is_prepared_the_cluster_is_asked_whether_it_would_take_it(
        self, engine: Engine, cluster: PlayedCluster, tries_out: bool
    ) -> None:
        """Where its admission cannot be asked, that is no reason to refuse."""
        cluster.tries_out = tries_out
        run = self.run_of("pass")
        engine.prepare(run)
        assert cluster.workloads() == []
        cluster.denied.add("create jobs")
        with pytest.raises(EngineError, match="forbidden"):
            engine.prepare(self.run_of("pass", name="other.1"))
        assert engine.runs() == [run.name]

    def test_what_is_missing_is_found_and_how_to_get_it(self, tmp_path: Path) -> None:
        cluster = PlayedCluster(tmp_path, {"n1": 0}, lacks=["jobset.x-k8s.io"])
        cluster.denied = {"delete pods", "create jobsets"}
        engine = KubernetesEngine(tmp_path / "engine", kubeconfig=cluster.kubeconfig(), kind="jobset", image="python:3")
        missing = {finding.subject: finding for finding in engine.check() if not finding.present}
        assert sorted(missing) == [
            *("JobSet (jobset.x-k8s.io/v1alpha2)", "devices nvidia.com/gpu"),
            *("permission for jobsets", "permission for pods"),
        ]
        assert all(finding.hint for finding in missing.values())
        with pytest.raises(EngineError, match="no JobSet"):
            engine.prepare(self.run_of("pass", placements=[Placement("n1", 1)]))
        cluster.close()

    def test_a_jobset_has_ranks_in_the_order_of_nodes_and_fails_as_a_whole(
        self, reference: EngineReference, tmp_path: Path
    ) -> None:
        """Nodes with unlike devices; the last rank fails when all others wait."""
        engine = replace(reference, options={**reference.options, "kind": "jobset"}).find()
        program = WITH_PID.replace("time.sleep(600)", "os.environ['RANK'] == '2' and sys.exit(4)\ntime.sleep(600)")
        placements = [Placement("n3", 2), Placement("n1", 1)]
        run = self.run_of(program, tmp_path, placements=placements, grace_seconds=1.0)
        self.begin(engine, run)
        status = end_of(engine, run.name)
        assert status == RunStatus(RunState.FAILED, "rank 2 ended with exit code 4 on n1", 4)
        assert not any(map(alive, [int(file.read_text()) for file in tmp_path.glob("pid-*")]))

    def test_runs_of_several_clusters_are_followed_through_karmada(self, tmp_path: Path) -> None:
        cluster = PlayedCluster(tmp_path, {"n1": 2, "n2": 2}, clusters=["east", "west"])
        engine = KubernetesEngine(
            tmp_path / "engine", kubeconfig=cluster.kubeconfig(), kind="hyperjob", image="python:3"
        )
        run = self.run_of("import os; print(os.environ['RANK'])", rendezvous=Rendezvous("10.0.0.7", 29400))
        run = replace(run, placements=[Placement("east/n1", 1), Placement("west/n1", 2)])
        self.begin(engine, run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert sorted((line.rank, line.text) for line in engine.logs(run.name)) == [(0, "0"), (1, "1"), (2, "2")]
        engine.forget(run.name)
        assert (engine.runs(), cluster.workloads()) == ([], [])
        cluster.close()


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig with one user."""
    file = folder / "config"
    content = {
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(yaml.safe_dump(content))
    return file


def test_a_program_of_the_kubeconfig_comes_by_a_token_and_again_when_that_is_over(tmp_path: Path) -> None:
    """The first token is one that the API server no longer accepts."""
    cluster = PlayedCluster(tmp_path, {"n1": 1})
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, os, sys\nassert json.loads(os.environ['KUBERNETES_EXEC_INFO'])['kind']\n"
        f"count = {str(tmp_path / 'count')!r}\nopen(count, 'a').write('x')\n"
        f"token = {TOKEN!r} if len(open(count).read()) > 1 else 'old'\n"
        "print(json.dumps({'kind': 'ExecCredential', 'status': {'token': token}}))\n"
    )
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    connection = Connection(find_access(kubeconfig(tmp_path, user, server=cluster.url), "here"))
    assert len(connection.items("/api/v1/nodes")) == 1
    assert len(connection.items("/api/v1/nodes")) == 1
    assert (tmp_path / "count").read_text() == "xx"
    cluster.close()


def test_a_token_that_is_refused_is_in_no_message(tmp_path: Path) -> None:
    cluster = PlayedCluster(tmp_path, {"n1": 1})
    (tmp_path / "token").write_text("secret-token\n")
    access = find_access(kubeconfig(tmp_path, {"tokenFile": "token"}, server=cluster.url), "here")
    with pytest.raises(EngineError, match="Unauthorized") as refused:
        Connection(access).get("/api/v1/nodes")
    assert "secret-token" not in repr(refused.value) + refused.value.hint
    (tmp_path / "token").write_text(TOKEN)  # tokens of service accounts are replaced in their file
    Connection(access).get("/api/v1/nodes")
    cluster.close()


@pytest.mark.parametrize(
    ("user", "cluster", "context", "cause"),
    [
        ({}, {}, "elsewhere", "no context elsewhere"),
        ({}, {"certificate-authority-data": base64.b64encode(b"nothing").decode()}, "here", "certificate"),
        ({"client-certificate": "gone.pem", "client-key": "gone.pem"}, {}, "here", "certificate"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_told_with_what_to_look_at(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], context: str, cause: str
) -> None:
    with pytest.raises(EngineError, match=cause) as refused:
        find_access(kubeconfig(tmp_path, user, **cluster), context)
    assert refused.value.hint


def test_the_first_of_several_kubeconfigs_prevails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files.append(kubeconfig(tmp_path / name, {}, server=f"http://{name}.example"))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert find_access(context="here").server == "http://one.example"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(EngineError, match="no kubeconfig"):
        find_access()
