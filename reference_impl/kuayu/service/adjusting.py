"""Adjustments of running jobs, from the bytes of a request to those of its answer.

Workers run this. What the schema has judged stays what JSON made of it, and no objects are made. How much is answered
at once is limited by :mod:`kuayu.resilience.adjustment.checking`.
"""

from collections import Counter
from importlib import import_module
from typing import Any

from kuayu.service.computing import Decided, answered
from kuayu_schemas import schema

Json = dict[str, Any]

REQUEST = "AdjustmentRequest"


def warm() -> None:
    """Load what the first request will need: the algorithm and the validator."""
    import_module("kuayu.resilience.adjustment.adjusting")
    schema.is_valid(REQUEST, {})


def plan_adjustments(body: bytes) -> Decided:
    """Answer a request to adjust jobs, class AdjustmentRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.resilience.adjustment.adjusting import adjustment

        return adjustment(asked)

    def count(made: Json) -> Counter[tuple[str, ...]]:
        return Counter((each["kind"],) for each in made["triggers"])

    return answered(body, REQUEST, answer, count)
