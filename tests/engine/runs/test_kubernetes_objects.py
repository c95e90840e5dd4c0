import json
from dataclasses import replace
from typing import Any

import pytest
from engine.runs.kubernetes_fields import DNS_LABEL, complaints

from kuayu.engine.runs.kubernetes_objects import (
    ENDED_ANNOTATION,
    Kind,
    PodOptions,
    object_name,
    render,
    service,
    workload,
)
from kuayu.engine.runs.protocol import EngineError, Placement, Rendezvous, Run

RUN = Run(
    name="Träining_A.3",
    job="Träining_A",
    attempt=3,
    command=["python", "train.py", "--price", "$5", "$(HOSTNAME)"],
    placements=[Placement("node-b", 2), Placement("node-a", 2)],
    image="registry.example/train:1",
    environment={"SEED": "7"},
    code="git+https://code.example/train@v1",
    grace_seconds=12.5,
)
UNEVEN = replace(RUN, placements=[Placement("node-b", 4), Placement("node-a", 2)])
ABROAD = replace(
    RUN,
    placements=[Placement("east/n1", 2), Placement("east/n2", 2), Placement("west/n1", 4)],
    rendezvous=Rendezvous("10.0.0.7", 29400),
)


def containers(body: Any) -> list[dict[str, Any]]:
    """All containers that run ranks, wherever in an object they stand."""
    if isinstance(body, dict):
        own = body.get("containers", [])
        return own + [found for value in body.values() for found in containers(value)]
    return [found for item in body for found in containers(item)] if isinstance(body, list) else []


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container["env"]}


@pytest.mark.parametrize(
    ("kind", "run"),
    [(Kind.JOB, RUN), (Kind.JOBSET, UNEVEN), (Kind.VOLCANO, UNEVEN), (Kind.HYPERJOB, ABROAD)],
    ids=lambda value: str(value) if isinstance(value, Kind) else "",
)
def test_an_api_server_takes_what_is_rendered(kind: Kind, run: Run) -> None:
    """With every option that there is."""
    options = PodOptions(
        kind=kind,
        namespace="team-a",
        resource="huawei.com/Ascend910",
        queue="team-a",
        requests={"cpu": "8", "memory": "64Gi"},
        service_account="trainer",
        priority_class="high",
        pull_secrets=["registry"],
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        fetch_image="alpine/git",
    )
    for body in render(run, options):
        assert complaints(body) == []
        assert json.loads(json.dumps(body)) == body
    limits = [container["resources"]["limits"] for container in containers(workload(run, options))]
    each = [{"huawei.com/Ascend910": str(placement.devices)} for placement in run.placements]
    assert limits == (each[:1] if kind is Kind.JOB else each)


def test_a_misspelt_field_is_noticed() -> None:
    """The tables that the tests above rest on say so of an object that is wrong."""
    body = workload(RUN, PodOptions())
    body["spec"]["completionmode"] = body["spec"].pop("completionMode")
    body["spec"]["parallelism"] = "2"
    body["metadata"]["labels"]["kuayu.dev/run"] = "not a label"
    assert sorted(complaint.partition(":")[0] for complaint in complaints(body)) == [
        "batch/v1 Job.metadata.labels.kuayu.dev/run is no value of a label",
        "batch/v1 Job.spec has no field completionmode",
        "batch/v1 Job.spec.parallelism is no int",
    ]


def test_ranks_are_counted_over_nodes_that_differ_and_domains_before() -> None:
    """Four ranks on the first node, two on the second, behind six in another domain."""
    run = replace(UNEVEN, rendezvous=Rendezvous("10.0.0.7", 29400, rank_offset=6, world_size=12))
    body = workload(run, PodOptions(kind=Kind.VOLCANO))
    found = [variables(container) for container in containers(body)]
    assert [values["KUAYU_FIRST_RANK"] for values in found] == ["6", "10"]
    assert [values["LOCAL_WORLD_SIZE"] for values in found] == ["4", "2"]
    assert {(values["WORLD_SIZE"], values["MASTER_ADDR"], values["MASTER_PORT"]) for values in found} == {
        ("12", "10.0.0.7", "29400")
    }
    assert body["spec"]["minAvailable"] == 2


@pytest.mark.parametrize("kind", [Kind.JOB, Kind.JOBSET, Kind.VOLCANO])
def test_ranks_meet_at_the_pod_of_rank_zero_by_its_name_in_dns(kind: Kind) -> None:
    """The first label is the pod's host name, the second the headless Service that selects it."""
    body = workload(RUN, PodOptions(kind=kind))
    name = object_name(RUN.name)
    host, _, domain = variables(containers(body)[0])["MASTER_ADDR"].partition(".")
    assert domain == name == service(RUN, PodOptions())["metadata"]["name"]
    spec = body["spec"]
    if kind is Kind.VOLCANO:
        assert spec["tasks"][0]["template"]["spec"]["hostname"] == host
        assert spec["tasks"][0]["template"]["spec"]["subdomain"] == domain
    elif kind is Kind.JOBSET:
        assert host == f"{name}-{spec['replicatedJobs'][0]['name']}-0-0"
        assert spec["network"]["subdomain"] == domain
    else:
        assert host == f"{name}-0"
        assert spec["template"]["spec"]["subdomain"] == domain


def test_what_kubernetes_would_expand_reaches_the_command_as_it_is() -> None:
    [container] = containers(workload(RUN, PodOptions()))
    assert container["args"] == ["python", "train.py", "--price", "$$5", "$$(HOSTNAME)"]


def test_a_hyperjob_holds_each_cluster_once_and_runs_only_as_a_whole() -> None:
    spec = workload(ABROAD, PodOptions(kind=Kind.HYPERJOB))["spec"]
    assert [job["clusterNames"] for job in spec["replicatedJobs"]] == [["east"], ["west"]]
    assert [len(job["templateSpec"]["tasks"]) for job in spec["replicatedJobs"]] == [2, 1]
    assert (spec["minAvailable"], spec["maxDomains"]) == (2, 2)
    assert variables(containers(spec)[2])["KUAYU_FIRST_RANK"] == "4"


@pytest.mark.parametrize(
    ("kind", "change", "cause"),
    [
        (Kind.JOB, {"placements": UNEVEN.placements}, "as many devices"),
        (Kind.JOB, {"image": None}, "no container image"),
        (Kind.JOB, {"code": "file:/home/me/train"}, "cannot read the code"),
        (Kind.JOB, {"code": "http://code.example/train.tar"}, "may be altered"),
        (Kind.HYPERJOB, {}, "names no cluster"),
        (Kind.HYPERJOB, {"placements": ABROAD.placements}, "cannot find each other"),
        (
            Kind.HYPERJOB,
            {"placements": [ABROAD.placements[0], ABROAD.placements[2], ABROAD.placements[1]]},
            "are apart",
        ),
    ],
)
def test_what_cannot_be_rendered_as_it_says_is_refused(kind: Kind, change: dict[str, Any], cause: str) -> None:
    with pytest.raises(EngineError, match=cause) as refused:
        render(replace(RUN, **change), PodOptions(kind=kind))
    assert refused.value.hint


def test_names_are_valid_and_those_of_different_runs_differ() -> None:
    """Also where only letters differ that names of objects cannot hold."""
    runs = ["a.1", "A.1", "a-1", "a_1", "0.1", "训练.1", "x" * 100 + ".1", "x" * 100 + ".2", "-", "job.10", "job.1"]
    names = [object_name(run) for run in runs]
    assert len(set(names)) == len(runs)
    assert all(DNS_LABEL.fullmatch(name) and len(name) <= 41 for name in names)
    assert object_name("Job_A.3").startswith("job-a-3-")


def test_a_record_holds_nothing_of_the_environment() -> None:
    """Whoever may list services sees no secret there."""
    record = json.dumps(service(replace(RUN, environment={"PASSWORD": "hunter2"}), PodOptions()))
    assert "hunter2" not in record
    assert ENDED_ANNOTATION not in record
