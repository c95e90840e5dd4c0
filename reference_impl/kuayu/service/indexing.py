"""Compute indices and probe plans, from the bytes of a request to those of its answer. Workers run this."""

from collections import Counter
from typing import TypeVar

from pydantic import ValidationError

from kuayu.service import bodies
from kuayu.service.computing import Decided, check, or_problem
from kuayu.service.problems import Place, invalid_body
from kuayu_schemas import schema
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import Corpus, IndexRequest, ProbePlanRequest

Asked = TypeVar("Asked", bound=KuayuModel)

MOST_TASKS = 200
"""Most tasks of a corpus that may have measurements; calibration inverts a matrix of several rows for each."""

MOST_PAIRS = 20_000
"""Most pairs of device and task that may have measurements; repetitions of a pair cost next to nothing."""

MOST_MEMBERS = 1_000_000
"""Most members of groups, over all groups and each task asked for; each is put together by itself."""

MOST_STEPS = 10_000_000
"""Most candidates × targets × probes of a plan, each of which is looked at."""

MOST_CELLS = 4_000
"""Most candidates and targets together, whose covariances are kept for all of them at once."""


def warm() -> None:
    """Load what the first request will need: the algorithm and the validators."""
    from kuayu import index  # noqa: F401

    for model in (IndexRequest, ProbePlanRequest):
        schema.is_valid(model.__name__, {})


def compute_indices(body: bytes, most: int) -> Decided:
    """Answer a request for compute indices.

    Args:
        body: The request, class IndexRequest.
        most: How many indices an answer may hold.
    """
    from kuayu.index import compute_indices

    def decide() -> Decided:
        asked = _read(body, IndexRequest)
        _check_size(asked, most)
        _check_corpus(asked.corpus)
        report = compute_indices(asked)
        outcomes = ((each.basis.value, "abstained" if each.abstained else "given") for each in report.indices)
        counted: Counter[tuple[str, ...]] = Counter(outcomes)
        return Decided(200, report.to_json(), counted)

    return or_problem(decide)


def plan_probes(body: bytes) -> Decided:
    """Answer a request for a probe plan.

    Args:
        body: The request, class ProbePlanRequest.
    """
    from kuayu.index import plan_probes

    def decide() -> Decided:
        asked = _read(body, ProbePlanRequest)
        steps = len(asked.candidates) * len(asked.targets) * asked.probes
        check(steps, MOST_STEPS, "steps of candidates × targets × probes", "candidates, targets or probes")
        check(len(asked.candidates) + len(asked.targets), MOST_CELLS, "cells", "candidates or targets")
        _check_corpus(asked.corpus)
        return Decided(200, plan_probes(asked).to_json())

    return or_problem(decide)


def _read(body: bytes, model: type[Asked]) -> Asked:
    """Read a body as an object of the model.

    The object is made from the bytes, which is quicker than from the value that the schema has judged.

    Raises:
        ProblemException: malformed-json or invalid-body.
    """
    bodies.parse(body, model.__name__)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:  # the form of an instant is right but there is no such day
        places = [Place(each["msg"], "".join(f"/{step}" for step in each["loc"])) for each in error.errors()]
        raise invalid_body(*places) from error


def _check_size(asked: IndexRequest, most: int) -> None:
    """Hold the length and the work of the answer, products that the length of the body does not show, against limits.

    Raises:
        ProblemException: invalid-body.
    """
    corpus = asked.corpus
    groups = asked.groups or ()
    devices = len(corpus.devices if asked.devices is None else asked.devices)
    tasks = len(corpus.tasks if asked.tasks is None else asked.tasks)
    check((devices + len(groups)) * tasks, most, "indices", "devices, groups or tasks")
    members = sum(len(group.members) for group in groups)
    check(members * tasks, MOST_MEMBERS, "members of groups over all tasks", "members or tasks")


def _check_corpus(corpus: Corpus) -> None:
    """Hold the work that calibration takes against limits.

    Raises:
        ProblemException: invalid-body.
    """
    pairs = {(each.device, each.task) for each in corpus.measurements}
    check(len({task for _, task in pairs}), MOST_TASKS, "measured tasks", "tasks in the measurements")
    check(len(pairs), MOST_PAIRS, "measured pairs of device and task", "devices or tasks in the measurements")
