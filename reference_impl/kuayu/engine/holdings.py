"""Devices of a domain that are promised or held, by the two phases of the action contract; without I/O.

A promise holds its devices until it is committed, aborted, or over. Every step has one answer, however often it is
asked for: whoever asks again after a broken connection gets the first one. Nothing is given out of a node that is
fenced, until that is released; what is held there stays held, for its owner to give back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from kuayu.engine.action_results import RefusalError, problem_of, result_of
from kuayu_schemas.models import Action, ActionKind, ActionOutcome, ActionPhase, ActionResult

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
        lease: Seconds for which they may be held without an answer of the service; None for any time.
        over: Whether the lease is over, so that they are let go of as soon as nothing runs on them any more.
    """

    action: str
    job: str | None
    accelerator: str
    nodes: Mapping[str, int]
    until: float | None
    lease: float | None = None
    over: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Fence:
    """Nodes of which nothing is given out, and on which nothing is to run.

    Attributes:
        action: Name of the action that asked for it.
        nodes: The nodes, with the devices of each as the action states them.
        cause: Why; None where the action did not say.
    """

    action: str
    nodes: Mapping[str, int]
    cause: str | None


class Holdings:
    """What is promised and held in a domain.

    Args:
        pools: Devices of each node, by kind of accelerator.
    """

    def __init__(self, pools: Pools) -> None:
        self._pools = {kind: dict(nodes) for kind, nodes in pools.items()}
        self._held: dict[str, Holding] = {}
        self._fences: dict[str, Fence] = {}
        self._answers: dict[str, dict[ActionPhase, ActionResult]] = {}
        self._unacknowledged: list[str] = []

    @property
    def held(self) -> list[Holding]:
        """What is promised and held, in the order in which it came."""
        return list(self._held.values())

    @property
    def fences(self) -> list[Fence]:
        """What is fenced, in the order in which it came."""
        return list(self._fences.values())

    @property
    def unacknowledged(self) -> list[ActionResult]:
        """Commits that are undone since it let go by itself, and of which the service has not heard."""
        return [self._answers[name][ActionPhase.commit] for name in self._unacknowledged]

    def acknowledge(self, result: ActionResult) -> None:
        """The service has heard of it."""
        self._unacknowledged = [name for name in self._unacknowledged if name != result.action]

    def find(self, name: str) -> Holding | None:
        """What an action reserved; None where it reserved nothing, or that was let go of."""
        return self._held.get(name)

    def answer_of(self, action: Action) -> ActionResult | None:
        """What was answered to a step; None where it was not answered yet."""
        return self._answers.get(action.id, {}).get(action.phase)

    def keep(self, result: ActionResult) -> ActionResult:
        """Keep the answer to a step that was carried out elsewhere; from now on that is the answer to it."""
        self._answers.setdefault(result.action, {})[result.phase] = result
        self._forget_answers()
        return result

    def end_lease(self, name: str) -> None:
        """The lease of something is over; it stays held until it is lost, whatever the service answers meanwhile."""
        self._held[name] = replace(self._held[name], over=True)

    def expire_lease(self, name: str, now: float) -> None:
        """Let go of something unasked; whoever asks for its commit again is told that it has expired.

        Args:
            name: Action by which it was reserved.
            now: Seconds since 1970.
        """
        self._release(name)
        instant = datetime.fromtimestamp(now, UTC)
        result = ActionResult(action=name, phase=ActionPhase.commit, outcome=ActionOutcome.expired, at=instant)
        self._answers.setdefault(name, {})[ActionPhase.commit] = result
        self._unacknowledged.append(name)

    def free(self, accelerator: str) -> dict[str, int]:
        """Devices of a kind on each node that may be given out: neither promised, nor held, nor fenced."""
        nodes = self._pools.get(accelerator, {})
        held = [holding.nodes for holding in self._held.values() if holding.accelerator == accelerator]
        fenced = {node for fence in self._fences.values() for node in fence.nodes}
        # A node may have fewer devices by now than are held of it.
        left = {node: max(0, count - sum(devices.get(node, 0) for devices in held)) for node, count in nodes.items()}
        return {node: 0 if node in fenced else count for node, count in left.items()}

    def carry_out(self, action: Action, now: float) -> ActionResult:
        """Do what is asked and say what became of it.

        Args:
            action: What is asked.
            now: Seconds since 1970.
        """
        self._expire(now)
        results = self._answers.setdefault(action.id, {})
        if action.phase not in results:
            results[action.phase] = self._execute(action, now)
        self._forget_answers()
        return results[action.phase]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        answers = [result.to_wire() for results in self._answers.values() for result in results.values()]
        holdings = [
            {
                "action": holding.action,
                "job": holding.job,
                "accelerator": holding.accelerator,
                "nodes": dict(holding.nodes),
                "until": holding.until,
                "lease": holding.lease,
                "over": holding.over,
            }
            for holding in self.held
        ]
        fences = [{"action": fence.action, "nodes": dict(fence.nodes), "cause": fence.cause} for fence in self.fences]
        return {"holdings": holdings, "fences": fences, "answers": answers, "unsaid": list(self._unacknowledged)}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` gave, also from what it gave before there were fences or leases.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        self._held = {entry["action"]: Holding(**entry) for entry in kept["holdings"]}
        self._fences = {entry["action"]: Fence(**entry) for entry in kept.get("fences", ())}
        self._unacknowledged = list(kept.get("unsaid", ()))
        self._answers = {}
        for answer in kept["answers"]:
            result = ActionResult.model_validate(answer)
            self._answers.setdefault(result.action, {})[result.phase] = result

    def _forget_answers(self) -> None:
        for old in list(self._answers)[:-REMEMBERED]:
            if old not in self._held and old not in self._fences and old not in self._unacknowledged:
                del self._answers[old]

    def _execute(self, action: Action, now: float) -> ActionResult:
        try:
            return self._attempt(action, now)
        except RefusalError as refusal:
            return result_of(action, ActionOutcome.refused, now, problem=problem_of(refusal))

    def _attempt(self, action: Action, now: float) -> ActionResult:
        """Do what is asked.

        Raises:
            RefusalError: It cannot be done, and nothing has changed.
        """
        match action.kind, action.phase:
            case ActionKind.reserve, ActionPhase.prepare:
                return self._prepare(action, now)
            case ActionKind.reserve, ActionPhase.commit:
                return self._commit(action, now)
            case _, ActionPhase.abort:
                self._release(action.id)
                return result_of(action, ActionOutcome.aborted, now)
            case ActionKind.release, ActionPhase.commit:
                if action.reservation is None:
                    raise RefusalError("invalid-body", "the action does not say what was reserved or fenced by which")
                return result_of(action, ActionOutcome.committed, now, self._release(action.reservation))
            case ActionKind.fence, ActionPhase.commit:
                return self._fence(action, now)
            case ActionKind.stop, ActionPhase.commit:
                return self._stop(action, now)
            case _:
                raise RefusalError("invalid-body", f"this domain does not {action.phase.value} to {action.kind.value}")

    def _prepare(self, action: Action, now: float) -> ActionResult:
        if ActionPhase.abort in self._answers[action.id]:
            raise RefusalError("stale-revision", "it was aborted before")
        accelerator = self._kind(action)
        nodes = self._chosen(accelerator, action)
        until = now + float(action.expires_after or 0.0)
        lease = None if action.lease is None else float(action.lease)
        self._held[action.id] = Holding(action.id, action.job, accelerator, nodes, until, lease)
        return result_of(action, ActionOutcome.prepared, now, nodes, until)

    def _commit(self, action: Action, now: float) -> ActionResult:
        promise = self._held.get(action.id)
        if promise is None:
            prepared = self._answers[action.id].get(ActionPhase.prepare)
            promised = prepared is not None and prepared.outcome is ActionOutcome.prepared
            return result_of(action, ActionOutcome.expired if promised else ActionOutcome.failed, now)
        self._held[action.id] = replace(promise, until=None)
        return result_of(action, ActionOutcome.committed, now, promise.nodes)

    def _release(self, name: str) -> Mapping[str, int]:
        """Give back what an action reserved or fenced; whoever asks for what is gone already has what it wants."""
        gone = [self._held.pop(name, None), self._fences.pop(name, None)]
        return next((entry.nodes for entry in gone if entry is not None), {})

    def _fence(self, action: Action, now: float) -> ActionResult:
        """Give nothing out of nodes any more, promises included; these are answered ``expired`` when they are due.

        Raises:
            RefusalError: It names no node, or one that is not of this domain.
        """
        nodes = {share.node: share.devices for share in action.nodes or ()}
        if not nodes:
            raise RefusalError("invalid-body", "the action does not say which nodes to fence")
        ours = {node for pool in self._pools.values() for node in pool}
        if strange := sorted(nodes.keys() - ours):
            raise RefusalError("unknown-reference", f"{', '.join(strange)}: not in the inventory of this domain")
        self._fences[action.id] = Fence(action.id, nodes, action.cause)
        for holding in self.held:
            if holding.until is not None and not holding.nodes.keys().isdisjoint(nodes):
                del self._held[holding.action]
        return result_of(action, ActionOutcome.committed, now, nodes)

    def _stop(self, action: Action, now: float) -> ActionResult:
        """Agree that a job is stopped, where it holds devices here; they stay held until they are given back.

        Raises:
            RefusalError: It holds none.
        """
        if action.job is None:
            raise RefusalError("invalid-body", "the action does not say which job to stop")
        if all(holding.job != action.job or holding.until is not None for holding in self.held):
            raise RefusalError("unknown-reference", f"no devices are held for {action.job} in this domain")
        return result_of(action, ActionOutcome.committed, now)

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
            return _best_fit(free, wanted)
        named = {share.node: share.devices for share in action.nodes}
        if len(named) < len(action.nodes) or action.devices not in {None, sum(named.values())}:
            raise RefusalError("invalid-body", f"the nodes that are named do not make up {wanted} devices")
        for node, devices in named.items():
            if devices > free.get(node, 0):
                detail = f"{free.get(node, 0)} devices of {accelerator} are free on {node}, of {devices}"
                raise RefusalError("no-capacity", detail)
        return named

    def _expire(self, now: float) -> None:
        over = [holding.action for holding in self.held if holding.until is not None and holding.until < now]
        for name in over:
            del self._held[name]


def _best_fit(room: Mapping[str, int], devices: int) -> dict[str, int]:
    """The emptiest nodes whole, and what is left of the fullest that has so much."""
    chosen: dict[str, int] = {}
    left = dict(room)
    while devices:
        enough = [node for node in left if left[node] >= devices]
        node = min(enough, key=left.__getitem__) if enough else max(left, key=left.__getitem__)
        chosen[node] = min(devices, left.pop(node))
        devices -= chosen[node]
    return chosen
