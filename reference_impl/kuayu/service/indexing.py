"""Compute indices and probe plans, from the bytes of a request to those of its answer. Workers run this."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import orjson
from pydantic import ValidationError

from kuayu.service import bodies
from kuayu.service.problems import Place, ProblemException, invalid_body, unknown_references
from kuayu_schemas import schema
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import IndexRequest, ProbePlanRequest

Asked = TypeVar("Asked", bound=KuayuModel)


@dataclass(frozen=True, slots=True)
class Decided:
    """An answer, and what the metrics are to know of it.

    Attributes:
        status: Of HTTP; a problem from 400 on.
        body: JSON.
        indices: How many indices have each basis and were abstained from or not.
    """

    status: int
    body: bytes
    indices: Mapping[tuple[str, bool], int] = field(default_factory=dict)


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
        report = compute_indices(asked)
        counted = Counter((each.basis.value, each.abstained) for each in report.indices)
        return Decided(200, report.to_json(), counted)

    return _or_problem(decide)


def plan_probes(body: bytes) -> Decided:
    """Answer a request for a probe plan.

    Args:
        body: The request, class ProbePlanRequest.
    """
    from kuayu.index import plan_probes

    return _or_problem(lambda: Decided(200, plan_probes(_read(body, ProbePlanRequest)).to_json()))


def _or_problem(decide: Callable[[], Decided]) -> Decided:
    """What is decided, or the problem that stands in the way."""
    from kuayu.index import RepeatedName, UnknownName

    try:
        return decide()
    except ProblemException as error:
        problem = error
    except UnknownName as error:
        problem = unknown_references(*(Place(detail, pointer) for pointer, detail in error.pointers))
    except RepeatedName as error:
        problem = invalid_body(*(Place(detail, pointer) for pointer, detail in error.pointers))
    return Decided(problem.status, orjson.dumps(problem.to_wire()))


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
    """Hold the length of the answer, which is a product and not seen in that of the body, against the service's limit.

    Raises:
        ProblemException: invalid-body.
    """
    corpus = asked.corpus
    devices = len(corpus.devices if asked.devices is None else asked.devices)
    tasks = len(corpus.tasks if asked.tasks is None else asked.tasks)
    wanted = (devices + len(asked.groups or ())) * tasks
    if wanted > most:
        raise invalid_body(Place(f"{wanted} indices, where {most} are the most; name fewer devices, groups or tasks"))
