"""What a domain has promised and holds: its devices by the action contract, when leases end, answers, and the journal.

1. A promise holds its devices until it is committed, aborted, or over. Every step has one answer, however often it is
   asked for: whoever asks again after a broken connection gets the first one. Nothing is given out of a node that is
   fenced, until that is released; what is held there stays held, for its owner to give back. None of this does I/O.
2. A lease counts from when the last request for open actions was sent that was answered (clause Allocations, where a
   job may run). The count goes on over restarts of the controller, for as long as the machine is up; after that nothing
   is known, and all leases are over.
3. What became of an action is a result or a problem, as the standard has it.
4. What was promised and is held is written to a journal, a file that outlives the process; one process at a time has
   it.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from kuayu.engine.locking import lock, lock_of
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
    def current(self) -> list[Holding]:
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
        allocated = [holding.nodes for holding in self._held.values() if holding.accelerator == accelerator]
        fenced = {node for fence in self._fences.values() for node in fence.nodes}
        # A node may have fewer devices by now than are held of it.
        left = {
            node: max(0, count - sum(devices.get(node, 0) for devices in allocated)) for node, count in nodes.items()
        }
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
            for holding in self.current
        ]
        fences = [{"action": fence.action, "nodes": dict(fence.nodes), "cause": fence.cause} for fence in self.fences]
        return {"holdings": holdings, "fences": fences, "answers": answers, "unsaid": list(self._unacknowledged)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` gave, also from what it gave before there were fences or leases.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        self._held = {entry["action"]: Holding(**entry) for entry in state["holdings"]}
        self._fences = {entry["action"]: Fence(**entry) for entry in state.get("fences", ())}
        self._unacknowledged = list(state.get("unsaid", ()))
        self._answers = {}
        for answer in state["answers"]:
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
        for holding in self.current:
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
        if all(holding.job != action.job or holding.until is not None for holding in self.current):
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
        over = [holding.action for holding in self.current if holding.until is not None and holding.until < now]
        for name in over:
            del self._held[name]


BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Tells one start of a machine from another, under Linux."""


def since_boot() -> float:
    """Seconds since the machine was started, also while it slept where that can be told."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def this_boot() -> str | None:
    """Which start of the machine this is; None where nothing tells."""
    return BOOT.read_text(encoding="ascii").strip() if BOOT.is_file() else None


class LeaseClock:
    """The count of one domain.

    Args:
        steady: Seconds of a clock that goes on over restarts of the process.
        boot: Which start of the machine this is; None where nothing tells.
    """

    def __init__(self, steady: Callable[[], float] = since_boot, boot: str | None = None) -> None:
        self._steady = steady
        self._boot = boot
        self._answered: float | None = None

    def now(self) -> float:
        """What the count is at."""
        return self._steady()

    def answered(self, sent: float) -> None:
        """A request that was sent at this count has been answered."""
        self._answered = sent

    def ends(self, holding: Holding) -> float | None:
        """The count at which a domain has to let go of something unless it is answered; None where it has not to."""
        if holding.lease is None or holding.until is not None:
            return None
        return float("-inf") if self._answered is None else self._answered + holding.lease

    def first_end(self, holdings: Iterable[Holding]) -> float | None:
        """The count at which it has to let go of something first; None where there are no leases."""
        return min((end for holding in holdings if (end := self.ends(holding)) is not None), default=None)

    def over(self, holdings: Iterable[Holding]) -> list[Holding]:
        """What it has to let go of now."""
        now = self.now()
        return [
            holding for holding in holdings if holding.over or ((end := self.ends(holding)) is not None and end <= now)
        ]

    def to_json(self) -> dict[str, Any]:
        """The count as JSON values."""
        return {"boot": self._boot, "answered": self._answered}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with the count that :meth:`to_json` gave, where the machine was not started anew since."""
        if self._boot is not None and state.get("boot") == self._boot and state["answered"] is not None:
            self._answered = min(float(state["answered"]), self.now())


def shortest(holdings: Iterable[Holding]) -> float | None:
    """Seconds of the shortest lease that something is held under; None where there is none."""
    return min((holding.lease for holding in holdings if holding.lease is not None), default=None)


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


MEMBERS = {"domain", "holdings", "fences", "answers", "unsaid", "lease", "runs"}
"""What a journal holds."""

LATER = {"fences", "unsaid", "lease", "runs"}
"""What it did not hold before there were fences and leases, and does not hold where nothing is run."""


class JournalError(Exception):
    """The journal cannot be read or written.

    Attributes:
        cause: What went wrong.
        hint: What can be done about it.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.hint = hint


class Journal:
    """A file with what one domain has promised; whoever has it keeps others off it until it is closed.

    Args:
        path: The file; made with the first promise where there is none.
        domain: Whose promises they are.
    """

    def __init__(self, path: Path, domain: str) -> None:
        """Keep others off the file.

        Raises:
            JournalError: Another controller has it, or its folder cannot be written.
        """
        self._path = path
        self._domain = domain
        self._lock = _locked(path)

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()

    def read(self) -> dict[str, Any] | None:
        """What it holds, as it was written; None where there is no file yet.

        Raises:
            JournalError: It is no journal of this domain, or cannot be read.
        """
        if not self._path.exists():
            return None
        hint = "name the journal of this domain, or another file to begin without one"
        try:
            state = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise JournalError(f"cannot read {self._path}: {error}", hint) from error
        if not isinstance(state, dict) or state.keys() | LATER != MEMBERS:
            raise JournalError(f"{self._path} is no journal of a domain", hint)
        if state.pop("domain") != self._domain:
            raise JournalError(f"{self._path} is the journal of another domain than {self._domain}", hint)
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Have the file hold this, whole, or what it held before.

        Raises:
            JournalError: It cannot be written.
        """
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                json.dump({"domain": self._domain, **state}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            hint = "see to its folder; until then nothing is promised"
            raise JournalError(f"cannot write {self._path}: {error.strerror}", hint) from error


def _best_fit(free: Mapping[str, int], devices: int) -> dict[str, int]:
    """The emptiest nodes whole, and what is left of the fullest that has so much."""
    chosen: dict[str, int] = {}
    left = dict(free)
    while devices:
        enough = [node for node in left if left[node] >= devices]
        node = min(enough, key=left.__getitem__) if enough else max(left, key=left.__getitem__)
        chosen[node] = min(devices, left.pop(node))
        devices -= chosen[node]
    return chosen


def _instant(seconds: float) -> datetime:
    """An instant to the millisecond, as the standard writes it."""
    return datetime.fromtimestamp(round(seconds, 3), UTC)


def _locked(path: Path) -> IO[str]:
    try:
        return lock(path)
    except BlockingIOError as error:
        raise JournalError(f"another controller has the journal {path}", "stop it, or name another file") from error
    except OSError as error:
        hint = "name a folder that may be written"
        raise JournalError(f"cannot write {lock_of(path)}: {error.strerror}", hint) from error
