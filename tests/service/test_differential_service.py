"""The running service takes what the JSON Schema takes: every example, and of each class some of its mutants.

All mutants are judged without a service, in ``tests/schemas/test_differential.py``; here it is shown of each operation
that it asks these judges.
"""

import json
import select
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from schemas.mutations import Mutant, examples, mutated_examples
from schemas.verdicts import is_well_formed, schema_accepts
from service.conftest import PATIENCE, Service, problem

PATHS = {
    "Domain": ("/v1/domains", "id"),
    "Node": ("/v1/nodes", "id"),
    "Link": ("/v1/links", "id"),
    "ComputeIdentifier": ("/v1/compute-identifiers", "urn"),
    "ScrapeTarget": ("/v1/scrape-targets", "id"),
    "Allocation": ("/v1/allocations", "id"),
}
POSTED = {
    "SampleBatch": "/v1/samples",
    "HeartbeatBatch": "/v1/heartbeats",
    "LogBatch": "/v1/log-lines",
    "IndexRequest": "/v1/compute-indices",
    "ProbePlanRequest": "/v1/probe-plans",
    "PlacementRequest": "/v1/placements",
    "ParetoRequest": "/v1/pareto-fronts",
    "AllocationPlanRequest": "/v1/allocation-plans",
    "RouteRequest": "/v1/routes",
    "ActionResult": "/v1/action-results",
    "TrainingDemandRequest": "/v1/training-demands",
    "LayoutRequest": "/v1/layouts",
    "SizingRequest": "/v1/task-sizes",
    "ForecastRequest": "/v1/forecasts",
    "PhaseRequest": "/v1/training-phases",
    "WaveformRequest": "/v1/waveforms",
    "PeakRequest": "/v1/peak-plans",
    "ReservationRequest": "/v1/reservations",
    "ShardPlanRequest": "/v1/shard-plans",
    "CollectiveRequest": "/v1/collectives",
    "BackupRequest": "/v1/backup-plans",
    "FailoverRequest": "/v1/failover-plans",
    "AdjustmentRequest": "/v1/adjustments",
}
BATCHES = {"SampleBatch", "HeartbeatBatch", "LogBatch"}
"""Classes of which each item is judged by itself."""

MUTANTS_SENT = 120
"""Mutants of a class that are sent, about; they lie evenly among all of them."""

BEYOND_THE_SCHEMA = {"unknown-reference", "target-not-allowed", "unknown-base"}
"""Problems of a body that the schema has nothing against."""

RULES_OF_THE_OPERATION = (
    "two devices",
    "of the tier node",
    "stand in the registration",
    "no member of this tier",
    "for the second time",
    'stands twice"',
    "immutable",
    "are the most; name fewer",
    "there is no such instant",
    "a token cannot go to",
    "do not share a width of",
    "compresses nothing",
    "there are only",
    "the outermost dimension is",
    "is no recomputation of this version",
    "is no number format of training",
    "states no throughput",
    "can be told",
    "so long or so short a time for a step",
    "a level lies between",
    "rise",
    "ends before",
    "lies between both ends",
    "reach beyond now",
    "its window",
    "shorter than the load",
    "steps, counted from nought",
    "prices follow each other",
    "holds from midnight",
    "anybody can foresee",
    "a double tells apart",
    "anybody can tell",
    "less than a byte",
    "less than a bit a second",
    "there is no link from",
    "leads from one domain to another",
    "not after the begin",
    "from afar end before",
    "more than all of it",
    "ranges rise and lie apart",
    "overlaps what is missing or under way",
    "every domain once",
    "steps lie between exchanges",
    "unreachable nodes are fenced",
    "no job holds is of no replica",
    "a job holds is of one of its",
    "replicas, counted from nought",
    "so do its nodes",
    "more than its",
    "has no more than",
    "where the job has",
    "computes a part at least",
    "where a step has",
    "sooner than the change before",
    "the state has the digest",
    "the patch leads to",
    "needs a value",
    "no canonical JSON",
    "devices are free, of",
    "on its nodes",
    "it is not split, and holds",
    "a node stands twice",
    "running jobs hold",
    "it asks for",
    "a horizon is more than nought",
    "it has not ended yet",
    "it ends before it begins",
    "values are known",
)
"""What the service refuses as invalid-body although the schema cannot state it."""


def bodies() -> Iterator[tuple[str, str, bytes]]:
    """Class, origin and body of what is sent."""
    sent = PATHS.keys() | POSTED.keys()
    for sort in ("valid", "invalid", "edge"):
        for class_name, path in examples(sort):
            if class_name in sent:
                yield class_name, path.name, Path(path).read_bytes()
    mutants: dict[str, list[Mutant]] = {}
    for mutant in mutated_examples(sent):
        mutants.setdefault(mutant.class_name, []).append(mutant)
    for of_a_class in mutants.values():
        # odd, or it would meet the same few of values that come in groups of an even number
        for mutant in of_a_class[:: len(of_a_class) // MUTANTS_SENT | 1]:
            yield mutant.class_name, mutant.origin, mutant.body


def send(line: HTTPConnection, class_name: str, body: bytes) -> httpx.Response:
    """Send a body to where its class belongs, over a plain connection: a client costs as much as the service."""
    if class_name in POSTED:
        method, path = "POST", POSTED[class_name]
    else:
        method, (path, key) = "PUT", PATHS[class_name]
        name = "nameless"
        if is_well_formed(body):
            value = json.loads(body)
            name = str(value.get(key) or name) if isinstance(value, dict) else name
        path = f"{path}/{quote(name, safe='')}"
    if line.sock and select.select([line.sock], [], [], 0)[0]:
        line.close()  # the service has let go of it while there was nothing to send
    line.request(method, path, body, {"Content-Type": "application/json"})
    answer = line.getresponse()
    return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())


def accepts(answer: httpx.Response, class_name: str) -> bool:
    if answer.status_code < 300:
        rejected = answer.json()["rejected"] if class_name in BATCHES else []
        return all("invalid-body" not in item["problem"]["type"] for item in rejected)
    assert answer.status_code < 500, answer.text
    if problem(answer) == "batch-refused":
        return all("invalid-body" not in place["detail"] for place in answer.json()["errors"])
    return problem(answer) in BEYOND_THE_SCHEMA or any(rule in answer.text for rule in RULES_OF_THE_OPERATION)


@pytest.mark.slow
def test_the_service_and_the_schema_agree_on_every_body(shared: Service) -> None:
    apart: list[str] = []
    judged: Counter[tuple[str, bool]] = Counter()
    line = HTTPConnection("127.0.0.1", shared.port, timeout=PATIENCE)
    for class_name, origin, body in bodies():
        answer = send(line, class_name, body)
        accepted = accepts(answer, class_name)
        judged[class_name, accepted] += 1
        if accepted != schema_accepts(class_name, body):
            apart.append(f"{class_name} {origin}: {body[:300]!r} → {answer.status_code} {answer.text[:300]}")
    line.close()
    assert apart == []
    for class_name in PATHS.keys() | POSTED.keys():
        assert judged[class_name, True] >= 5
        assert judged[class_name, False] >= MUTANTS_SENT / 2
