"""Devices of a domain that are promised or held, by the two phases of the action contract; without I/O.

A promise holds its devices until it is committed, aborted, or over. Every step has one answer, however often it is
asked for: whoever asks again after a broken connection gets the first one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kuayu_schemas import registers
from kuayu_schemas.models import Action, ActionKind, ActionOutcome, ActionPhase, ActionResult, NodeShare, Problem

Pools = Mapping[str, Mapping[str, int]]
"""Devices of each node, by kind of accelerator."""

REMEMBERED = 2_000
"""Actions whose answers are kept; services ask again within minutes, if at all."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Devices that are promised or held.

    Attributes:
        action: Name of the action that asked for them.
        job: For which job; None where the action did not say.
        accelerator: Of which kind they are.
        nodes: Devices of each node.
        until: Until when they are promised, in seconds since 1970; None once they are held for good.
    """

    action: str
    job: str | None
    accelerator: str
    nodes: Mapping[str, int]
    until: float | None


class RefusalError(Exception):
    """A domain does not do what it is asked for.

    Args:
        name: Name of the registered problem.
        detail: Why, in words.
    """

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.name = name


class Holdings:
    """What is promised and held in a domain.

    Args:
        pools: Devices of each node, by kind of accelerator.
    """

    def __init__(self, pools: Pools) -> None:
        self._pools = {kind: dict(nodes) for kind, nodes in pools.items()}
        self._held: dict[str, Holding] = {}
        self._answers: dict[str, dict[ActionPhase, ActionResult]] = {}

    @property
    def held(self) -> list[Holding]:
        """What is promised and held, in the order in which it came."""
        return list(self._held.values())

    def free(self, accelerator: str) -> dict[str, int]:
        """Devices of a kind on each node that are neither promised nor held; none of nodes that lack some by now."""
        nodes = self._pools.get(accelerator, {})
        held = [each.nodes for each in self._held.values() if each.accelerator == accelerator]
        return {node: max(0, count - sum(each.get(node, 0) for each in held)) for node, count in nodes.items()}

    def carry_out(self, action: Action, now: float) -> ActionResult:
        """Do what is asked and say what became of it.

        Args:
            action: What is asked.
            now: Seconds since 1970.
        """
        self._expire(now)
        said = self._answers.setdefault(action.id, {})
        if action.phase not in said:
            said[action.phase] = self._done(action, now)
        for old in list(self._answers)[:-REMEMBERED]:
            if old not in self._held:
                del self._answers[old]
        return said[action.phase]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        answers = [result.to_wire() for said in self._answers.values() for result in said.values()]
        holdings = [
            {
                "action": each.action,
                "job": each.job,
                "accelerator": each.accelerator,
                "nodes": dict(each.nodes),
                "until": each.until,
            }
            for each in self.held
        ]
        return {"holdings": holdings, "answers": answers}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` gave.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        self._held = {each["action"]: Holding(**each) for each in kept["holdings"]}
        self._answers = {}
        for each in kept["answers"]:
            result = ActionResult.model_validate(each)
            self._answers.setdefault(result.action, {})[result.phase] = result

    def _done(self, action: Action, now: float) -> ActionResult:
        try:
            return self._tried(action, now)
        except RefusalError as refusal:
            return _result(action, ActionOutcome.refused, now, problem=_problem(refusal))

    def _tried(self, action: Action, now: float) -> ActionResult:
        """Do what is asked.

        Raises:
            RefusalError: It cannot be done, and nothing has changed.
        """
        match action.kind, action.phase:
            case ActionKind.reserve, ActionPhase.prepare:
                return self._promise(action, now)
            case ActionKind.reserve, ActionPhase.commit:
                return self._take(action, now)
            case _, ActionPhase.abort:
                self._held.pop(action.id, None)
                return _result(action, ActionOutcome.aborted, now)
            case ActionKind.release, ActionPhase.commit:
                if action.reservation is None:
                    raise RefusalError("invalid-body", "the action does not say what was reserved by which")
                # Whoever asks for what is gone already has what it wants.
                found = self._held.pop(action.reservation, None)
                return _result(action, ActionOutcome.committed, now, found.nodes if found else {})
            case _:
                raise RefusalError("invalid-body", f"this domain does not {action.phase.value} to {action.kind.value}")

    def _promise(self, action: Action, now: float) -> ActionResult:
        if ActionPhase.abort in self._answers[action.id]:
            raise RefusalError("stale-revision", "it was aborted before")
        accelerator = self._kind(action)
        nodes = self._chosen(accelerator, action)
        until = now + float(action.expires_after or 0.0)
        self._held[action.id] = Holding(action.id, action.job, accelerator, nodes, until)
        return _result(action, ActionOutcome.prepared, now, nodes, until)

    def _take(self, action: Action, now: float) -> ActionResult:
        promise = self._held.get(action.id)
        if promise is None:
            said = self._answers[action.id].get(ActionPhase.prepare)
            promised = said is not None and said.outcome is ActionOutcome.prepared
            return _result(action, ActionOutcome.expired if promised else ActionOutcome.failed, now)
        self._held[action.id] = replace(promise, until=None)
        return _result(action, ActionOutcome.committed, now, promise.nodes)

    def _kind(self, action: Action) -> str:
        """Of which kind the devices are that are wanted: the only one of the domain where the action does not say.

        Raises:
            RefusalError: There are several.
        """
        if action.accelerator is not None:
            return action.accelerator
        if len(self._pools) != 1:
            raise RefusalError("invalid-body", "the action does not say of which kind, and there are several here")
        return next(iter(self._pools))

    def _chosen(self, accelerator: str, action: Action) -> dict[str, int]:
        """Devices of nodes: those that are named, else of as few nodes as will do.

        Raises:
            RefusalError: There are not so many, or the action contradicts itself.
        """
        free, wanted = self.free(accelerator), action.devices or 0
        if action.nodes is None:
            if not wanted:
                raise RefusalError("invalid-body", "the action does not say how many devices are wanted")
            if wanted > sum(free.values()):
                detail = f"{sum(free.values())} devices of {accelerator} are free, of {wanted}"
                raise RefusalError("no-capacity", detail)
            return _closely(free, wanted)
        named = {each.node: each.devices for each in action.nodes}
        if len(named) < len(action.nodes) or action.devices not in {None, sum(named.values())}:
            raise RefusalError("invalid-body", f"the nodes that are named do not make up {wanted} devices")
        for node, devices in named.items():
            if devices > free.get(node, 0):
                detail = f"{free.get(node, 0)} devices of {accelerator} are free on {node}, of {devices}"
                raise RefusalError("no-capacity", detail)
        return named

    def _expire(self, now: float) -> None:
        over = [each.action for each in self.held if each.until is not None and each.until < now]
        for name in over:
            del self._held[name]


def _closely(room: Mapping[str, int], devices: int) -> dict[str, int]:
    """The emptiest nodes whole, and what is left of the fullest that has so much."""
    chosen: dict[str, int] = {}
    left = dict(room)
    while devices:
        enough = [node for node in left if left[node] >= devices]
        node = min(enough, key=left.__getitem__) if enough else max(left, key=left.__getitem__)
        chosen[node] = min(devices, left.pop(node))
        devices -= chosen[node]
    return chosen


def _result(
    action: Action,
    outcome: ActionOutcome,
    now: float,
    nodes: Mapping[str, int] | None = None,
    until: float | None = None,
    problem: Problem | None = None,
) -> ActionResult:
    return ActionResult(
        action=action.id,
        phase=action.phase,
        outcome=outcome,
        at=_instant(now),
        expires_at=None if until is None else _instant(until),
        nodes=[NodeShare(node=node, devices=count) for node, count in nodes.items()] if nodes else None,
        problem=problem,
    )


def _problem(refusal: RefusalError) -> Problem:
    """The problem as the register has it."""
    [known] = [each for each in registers.problems().problems if each.name == refusal.name]
    return Problem(
        type=known.type, title=known.title_en, status=known.status, retryable=known.retryable, detail=str(refusal)
    )


def _instant(seconds: float) -> datetime:
    """An instant to the millisecond, as the standard writes it."""
    return datetime.fromtimestamp(round(seconds, 3), UTC)
