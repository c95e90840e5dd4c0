"""What pure answers share: from the bytes of a request to those of its answer, or to a problem. Workers run this."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from kuayu.refusals import Refusal, UnknownName
from kuayu.service import bodies, instants
from kuayu.service.problems import Place, ProblemException, invalid_body, unknown_references


@dataclass(frozen=True, slots=True)
class Decided:
    """An answer, and what the metrics are to know of it.

    Attributes:
        status: Of HTTP; a problem from 400 on.
        body: JSON.
        counted: How much of the answer has each combination of labels of the operation's own counter.
        fallback: Whether a simpler method had to answer.
    """

    status: int
    body: bytes
    counted: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    fallback: bool = False


def or_problem(decide: Callable[[], Decided]) -> Decided:
    """What is decided, or the problem that stands in the way."""
    try:
        return decide()
    except ProblemException as error:
        problem = error
    except Refusal as error:
        refused = unknown_references if isinstance(error, UnknownName) else invalid_body
        problem = refused(*(Place(detail, pointer) for pointer, detail in error.pointers))
    return Decided(problem.status, orjson.dumps(problem.to_wire()))


def answered(
    body: bytes,
    class_name: str,
    answer: Callable[[dict[str, Any]], dict[str, Any]],
    count: Callable[[dict[str, Any]], Counter[tuple[str, ...]]] = lambda _: Counter(),
) -> Decided:
    """What is made of a request that has the form of a class, and what of it is counted."""

    def decide() -> Decided:
        report = answer(bodies.parse(body, class_name))
        return Decided(200, orjson.dumps(report), count(report))

    return or_problem(decide)


def check(number: int, most: int, of: str, fewer: str) -> None:
    """Refuse what is more than the service takes on, and say what to name fewer of.

    Raises:
        ProblemException: invalid-body.
    """
    if number > most:
        raise invalid_body(Place(f"{number} {of}, where {most} are the most; name fewer {fewer}"))


def check_instants(found: Iterable[tuple[str, str]]) -> None:
    """Refuse instants whose form is right although there is no such day.

    Args:
        found: JSON Pointer and text of each.

    Raises:
        ProblemException: invalid-body.
    """
    faults = []
    for pointer, text in found:
        try:
            instants.to_milliseconds(text)
        except ValueError as error:
            faults.append(Place(f"there is no such instant: {error}", pointer))
    if faults:
        raise invalid_body(*faults)
