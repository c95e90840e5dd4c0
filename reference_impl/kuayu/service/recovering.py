"""Backup plans and failover plans, from the bytes of a request to those of its answer.

Workers run this. What the schema has judged stays what JSON made of it, and no objects are made. How much is answered
at once is limited by :mod:`kuayu.resilience.recovery.checking`.
"""

from collections import Counter
from importlib import import_module
from typing import Any

from kuayu.service.computing import Decided, answered
from kuayu_schemas import schema

Json = dict[str, Any]

REQUESTS = ("BackupRequest", "FailoverRequest")


def warm() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    for part in ("backing", "failing"):
        import_module(f"kuayu.resilience.recovery.{part}")
    for name in REQUESTS:
        schema.is_valid(name, {})


def plan_backups(body: bytes) -> Decided:
    """Answer a request for a backup plan, class BackupRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.resilience.recovery.backing import backup_plan

        return backup_plan(asked)

    return answered(body, "BackupRequest", answer)


def plan_failover(body: bytes) -> Decided:
    """Answer a request for a failover plan, class FailoverRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.resilience.recovery.failing import failover_plan

        return failover_plan(asked)

    def count(plan: Json) -> Counter[tuple[str, ...]]:
        return Counter((each["strategy"],) for each in plan["recoveries"])

    return answered(body, "FailoverRequest", answer, count)
