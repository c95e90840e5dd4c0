"""Shard plans and choices of collectives, from the bytes of a request to those of its answer.

Workers run this. What the schema has judged stays what JSON made of it, and no objects are made. How much is answered
at once is limited by :mod:`kuayu.resilience.transfers.checking`.
"""

from collections import Counter
from importlib import import_module
from typing import Any

from kuayu.service.computing import Decided, answered
from kuayu_schemas import schema

Json = dict[str, Any]

REQUESTS = ("ShardPlanRequest", "CollectiveRequest")


def warm() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    for part in ("answering", "choosing"):
        import_module(f"kuayu.resilience.transfers.{part}")
    for name in REQUESTS:
        schema.is_valid(name, {})


def plan_shards(body: bytes) -> Decided:
    """Answer a request for a shard plan, class ShardPlanRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.resilience.transfers.answering import shard_plan

        return shard_plan(asked)

    return answered(body, "ShardPlanRequest", answer)


def choose_collective(body: bytes) -> Decided:
    """Answer a request for a collective, class CollectiveRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.resilience.transfers.choosing import collective

        return collective(asked)

    def count(choice: Json) -> Counter[tuple[str, ...]]:
        return Counter({(choice["collective"], str(choice["switched"]).lower()): 1})

    return answered(body, "CollectiveRequest", answer, count)
