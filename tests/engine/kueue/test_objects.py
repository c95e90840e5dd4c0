"""What ``kuayu kueue objects`` and ``manifests`` print is what Kueue and Kubernetes take."""

from typing import Any

import pytest
import yaml
from commands import run
from engine.runs.kubernetes_fields import complaints

from kuayu.engine.kueue.objects import DISPATCHER, local_queue, manager_configuration, multikueue_objects
from kuayu.engine.runs.protocol import EngineError


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_kueue_takes_the_clusters_of_a_federation(version: Any) -> None:
    clusters = {"east": "east-secret", "west": "west-secret"}
    objects = [*multikueue_objects("federation", clusters, version, {"west": "gz-1"})]
    objects.append(local_queue("team-a", "team-a", "gpus", version))
    assert [complaints(body) for body in objects] == [[]] * 5
    assert [body["kind"] for body in objects] == [
        *("MultiKueueCluster", "MultiKueueCluster", "MultiKueueConfig", "AdmissionCheck", "LocalQueue")
    ]
    annotations = [body["metadata"].get("annotations") for body in objects[:2]]
    assert annotations == [None, {"kuayu.dev/domain": "gz-1"}]
    with pytest.raises(EngineError, match="1 to 20"):
        multikueue_objects("federation", {f"c{number}": "s" for number in range(21)}, version)


def test_kueue_is_told_who_dispatches() -> None:
    """A name with a domain before it, of 63 characters at most, as Kueue's configuration wants it."""
    assert manager_configuration()["multiKueue"] == {"dispatcherName": DISPATCHER}
    assert "/" in DISPATCHER
    assert len(DISPATCHER) <= 63


def test_what_is_printed_can_be_applied_and_says_what_kueue_needs_in_comments() -> None:
    clusters = ["--cluster", "east=east-kubeconfig", "--cluster", "west=west-kubeconfig"]
    printed = run("kueue", "objects", *clusters, "--domain", "west=gz-1", "--queue", "team-a/train=gpus")
    assert printed.returncode == 0, printed.stderr
    objects = list(yaml.safe_load_all(printed.stdout))
    assert [body["kind"] for body in objects] == [
        *("MultiKueueCluster", "MultiKueueCluster", "MultiKueueConfig", "AdmissionCheck", "LocalQueue")
    ]
    assert [complaints(body) for body in objects] == [[]] * 5
    assert objects[-1]["metadata"] == {"name": "train", "namespace": "team-a"}
    comments = "\n".join(line[2:] for line in printed.stdout.splitlines() if line.startswith("#   "))
    assert yaml.safe_load(comments) == manager_configuration()


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--cluster", "east"], "NAME=VALUE"),
        (["--cluster", "east=s", "--domain", "west=gz"], "there is no --cluster of that name"),
        (["--cluster", "east=s", "--queue", "train=gpus"], "names no namespace"),
        (["--cluster", "east=s", "--api", "v1"], "no version of Kueue's API"),
    ],
)
def test_what_is_typed_wrongly_is_answered_by_cause_and_hint(options: list[str], cause: str) -> None:
    wrong = run("kueue", "objects", *options, COLUMNS="200")
    assert wrong.returncode == 2
    assert cause in wrong.stderr
    assert "hint" in wrong.stderr


def test_the_manifests_are_taken_and_no_two_are_the_same_object() -> None:
    """Also where the dispatcher runs in Kueue's own namespace, which has the role that reads Kueue's configuration."""
    for namespace in ("kueue-system", "kuayu"):
        options = ["--image", "kuayu:1", "--url", "http://kuayu:8080", "--token-secret", "kuayu-token"]
        printed = run("kueue", "manifests", "--namespace", namespace, *options)
        objects = list(yaml.safe_load_all(printed.stdout))
        assert [complaints(body) for body in objects] == [[]] * 8
        names = [(body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]) for body in objects]
        assert len(set(names)) == 8
        bindings = [body for body in objects if body["kind"].endswith("Binding")]
        roles = {(body["kind"], body["metadata"]["name"]) for body in objects}
        assert all((body["roleRef"]["kind"], body["roleRef"]["name"]) in roles for body in bindings)
        [container] = objects[-1]["spec"]["template"]["spec"]["containers"]
        assert container["args"][:4] == ["kueue", "dispatch", "--url", "http://kuayu:8080"]
        assert "kuayu-token" not in container["args"]
        assert container["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "kuayu-token", "key": "token"}


def test_a_deployment_needs_the_url_of_a_service() -> None:
    wrong = run("kueue", "manifests", "--image", "kuayu:1")
    assert wrong.returncode == 2
    assert "--url" in wrong.stderr
