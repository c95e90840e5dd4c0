"""What became of actions, as the standard has it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from kuayu_schemas import registers
from kuayu_schemas.models import Action, ActionOutcome, ActionResult, NodeShare, Problem


class RefusalError(Exception):
    """A domain does not do what it is asked for.

    Args:
        name: Name of the registered problem.
        detail: Why, in words.
        outcome: How the step ends: refused, or failed where that is the fault of what was to be done.
    """

    def __init__(self, name: str, detail: str, outcome: ActionOutcome = ActionOutcome.refused) -> None:
        super().__init__(detail)
        self.name = name
        self.outcome = outcome


def result_of(
    action: Action,
    outcome: ActionOutcome,
    now: float,
    nodes: Mapping[str, int] | None = None,
    until: float | None = None,
    problem: Problem | None = None,
) -> ActionResult:
    """The result of one step of an action.

    Args:
        action: The action, with its phase.
        outcome: How it ended.
        now: Seconds since 1970.
        nodes: Devices of each node that are held or were used.
        until: Until when a promise holds, in seconds since 1970.
        problem: Why it was refused.
    """
    return ActionResult(
        action=action.id,
        phase=action.phase,
        outcome=outcome,
        at=_instant(now),
        expires_at=None if until is None else _instant(until),
        nodes=[NodeShare(node=node, devices=count) for node, count in nodes.items()] if nodes else None,
        problem=problem,
    )


def problem_of(refusal: RefusalError) -> Problem:
    """The problem of a refusal as the register has it."""
    [known] = [entry for entry in registers.problems().problems if entry.name == refusal.name]
    return Problem(
        type=known.type, title=known.title_en, status=known.status, retryable=known.retryable, detail=str(refusal)
    )


def _instant(seconds: float) -> datetime:
    """An instant to the millisecond, as the standard writes it."""
    return datetime.fromtimestamp(round(seconds, 3), UTC)
