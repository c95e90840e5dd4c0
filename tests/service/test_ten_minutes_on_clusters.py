"""The first ten minutes on clusters: five nodes of Ray, three of Slurm, one of them killed under a job."""

import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence

import pytest
from engine.runs.ray_cluster import RayCluster
from engine.runs.slurm_cluster import NODES, SlurmCluster, skip_without_slurm
from service.typed_folder import Folder, JobObject, folder

__all__ = ["folder"]

NO_RAY = importlib.util.find_spec("ray") is None
RAY_NODES = ("n1", "n2", "n3", "n4", "n5")


@pytest.fixture
def ray() -> Iterator[RayCluster]:
    """A head and five nodes with two devices each."""
    cluster = RayCluster(dict.fromkeys(RAY_NODES, 2))
    yield cluster
    cluster.close()


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Three nodes with two devices each."""
    skip_without_slurm()
    cluster = SlurmCluster(tmp_path_factory.mktemp("slurm"))
    cluster.start()
    for name in ("PATH", "SLURM_CONF"):
        monkeypatch.setenv(name, cluster.environment.get(name, str(cluster.conf)))
    yield cluster
    cluster.stop()


@pytest.mark.slow
@pytest.mark.skipif(NO_RAY, reason="Ray is not installed: pip install 'ray>=2.49'")
def test_a_job_goes_on_elsewhere_when_a_node_of_ray_is_killed(ray: RayCluster, folder: Folder) -> None:
    folder.up()
    add_cluster(folder, RAY_NODES, "--ray", ray.address, "--option", f"root={folder.path / 'roots'}")
    _, lost = goes_on_elsewhere(folder, ray.kill)
    ray.start(lost)  # what comes back is given jobs again
    folder.kuayu("cancel", "job-1", "--wait")
    folder.kuayu("submit", "train.yaml", "--set", "name=all", "--set", "domains=[cluster]", "--set", "devices=10")
    folder.await_job(lambda job: job["state"] == "running", "the node that came back is given nothing", "all")


@pytest.mark.slow
def test_a_job_goes_on_elsewhere_when_a_node_of_slurm_is_killed(slurm: SlurmCluster, folder: Folder) -> None:
    folder.up()
    add_cluster(folder, NODES, "--slurm", "--option", f"conf={slurm.conf}")
    goes_on_elsewhere(folder, slurm.kill)


def add_cluster(folder: Folder, nodes: Sequence[str], *options: str) -> None:
    """Add a domain with two devices on each node of a cluster."""
    lines = ["[pools.v100]", *(f"{node} = 2" for node in nodes)]
    (folder.path / "nodes.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shared = folder.path / "shared"
    shared.mkdir()
    folder.kuayu("domain", "add", "cluster", "--inventory", "nodes.toml", "--shared", str(shared), *options)


def goes_on_elsewhere(folder: Folder, kill: Callable[[str], None]) -> tuple[JobObject, str]:
    """A job on two nodes loses one, and trains again without it; the job, and the node."""
    folder.kuayu("submit", "train.yaml", "--set", "domains=[cluster]", "--set", "devices=4")
    job = folder.await_job(
        lambda job: job["state"] == "running" and job.get("checkpoint_step", 0) >= 10, "no checkpoint"
    )
    first = nodes_of(job)
    assert (len(first), job["attempt"], job["failures"]) == (2, 1, 0)

    kill(first[-1])
    job = folder.await_job(
        lambda job: job["state"] == "running" and job["attempt"] > 1 and first[-1] not in nodes_of(job),
        "it does not run elsewhere",
    )
    known = job["checkpoint_step"]
    assert job["failures"] <= 1  # that a rank has ended may be seen before its node is known to be lost
    job = folder.await_job(lambda job: job.get("checkpoint_step", 0) >= known + 10, "it does not go on")

    losses: dict[int, str] = {}
    for step, loss in re.findall(r"step ([0-9]+) loss ([0-9.]+)", folder.kuayu("logs", "job-1")):
        assert losses.setdefault(int(step), loss) == loss  # what was done twice came to the same
    assert sorted(losses) == list(range(1, max(losses) + 1))
    assert f"node {first[-1]} takes no runs" in (folder.path / "kuayu-data/log/domain-cluster.log").read_text("utf-8")
    assert "restarting" in folder.kuayu("why", "job-1")
    return job, first[-1]


def nodes_of(job: JobObject) -> list[str]:
    """Nodes that a job holds devices of, in order."""
    return [node["node"] for share in job["placement"]["shares"] for node in share["nodes"]]
