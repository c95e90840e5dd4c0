"""Demands of trainings, layouts and sizes of tasks, from the bytes of a request to those of its answer.

Workers run this. What the schema has judged stays what JSON made of it, and no objects are made.
"""

from collections import Counter
from typing import Any

import orjson

from kuayu.service import bodies
from kuayu.service.computing import Decided, check, or_problem
from kuayu_schemas import schema

Json = dict[str, Any]

MOST_TRAININGS = 12_000
"""Most cases, phases of cases and measured runs together; each goes through the law."""

MOST_KINDS = 500
"""Most kinds of tasks that have run; of each a model is made."""

REQUESTS = ("TrainingDemandRequest", "LayoutRequest", "SizingRequest")


def warm() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    from kuayu.demand import answering, ranking, sizing  # noqa: F401

    for name in REQUESTS:
        schema.is_valid(name, {})


def demand_trainings(body: bytes) -> Decided:
    """Answer a request for demands, class TrainingDemandRequest."""

    def decide() -> Decided:
        from kuayu.demand import answering

        asked = bodies.parse(body, "TrainingDemandRequest")
        phases = sum(len(case.get("phases", ())) for case in asked["cases"])
        _check_trainings(asked, len(asked["cases"]) + phases)
        report = answering.demand(asked)
        counted: Counter[tuple[str, ...]] = Counter(
            ("fits" if each["fits"] else "obstacles",) for each in report["demands"]
        )
        return Decided(200, orjson.dumps(report), counted)

    return or_problem(decide)


def rank_layouts(body: bytes) -> Decided:
    """Answer a request for layouts, class LayoutRequest."""

    def decide() -> Decided:
        from kuayu.demand import ranking

        asked = bodies.parse(body, "LayoutRequest")
        _check_trainings(asked, 1)
        return Decided(200, orjson.dumps(ranking.rank(asked)))

    return or_problem(decide)


def size_tasks(body: bytes) -> Decided:
    """Answer a request for sizes of tasks, class SizingRequest."""

    def decide() -> Decided:
        from kuayu.demand import sizing

        asked = bodies.parse(body, "SizingRequest")
        check(len({each["kind"] for each in asked["history"]}), MOST_KINDS, "kinds of tasks in the history", "kinds")
        report = sizing.size(asked)
        counted: Counter[tuple[str, ...]] = Counter(
            ("as-asked" if told["recommended"] == task["requested"] else "less",)
            for told, task in zip(report["tasks"], asked["tasks"], strict=True)
        )
        return Decided(200, orjson.dumps(report), counted)

    return or_problem(decide)


def _check_trainings(asked: Json, others: int) -> None:
    """Hold the work that a request makes against the limit.

    Raises:
        ProblemException: invalid-body.
    """
    check(len(asked.get("runs", ())) + others, MOST_TRAININGS, "runs, cases and phases", "runs, cases or phases")
