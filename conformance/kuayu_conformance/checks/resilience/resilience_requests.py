"""Asking for shard plans, collectives, backup plans, failover plans and adjustments, as the checks of resilience do."""

from random import Random

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.forecast.forecast_requests import ForecastExchange, Json, holds_a
from kuayu_conformance.episode import Episode, SetUpFailed

__all__ = [
    "ADJUSTMENTS",
    "ANSWERS",
    "BACKUPS",
    "COLLECTIVES",
    "FAILOVERS",
    "SHARDS",
    "ForecastExchange",
    "Json",
    "ask",
    "is_answer",
    "name",
    "revision",
]

SHARDS, COLLECTIVES = "/v1/shard-plans", "/v1/collectives"
BACKUPS, FAILOVERS = "/v1/backup-plans", "/v1/failover-plans"
ADJUSTMENTS = "/v1/adjustments"
ANSWERS = {
    SHARDS: "ShardPlan",
    COLLECTIVES: "CollectiveChoice",
    BACKUPS: "BackupPlan",
    FAILOVERS: "FailoverPlan",
    ADJUSTMENTS: "Adjustment",
}
"""What each operation answers with."""


def ask(episode: Episode, path: str, body: Json) -> ForecastExchange:
    """Ask for a plan or a choice.

    Raises:
        SetUpFailed: There is no such answer.
    """
    asked = ForecastExchange(body, episode.set_up("POST", path, body))
    if not is_answer(path, asked.answer):
        raise SetUpFailed(f"the answer is no valid {ANSWERS[path]}", asked.answer)
    return asked


def is_answer(path: str, answer: Answer) -> bool:
    """Whether an answer is what the operation answers with, without numbers that no double holds."""
    return holds_a(ANSWERS[path], answer)


def name(chance: Random) -> str:
    """A name that nothing else has."""
    return f"{chance.getrandbits(56):014x}"


def revision(chance: Random) -> Json:
    """A state that a request was made from."""
    return {"epoch": name(chance), "number": chance.randrange(1_000_000)}
