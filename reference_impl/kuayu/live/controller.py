"""The run controller: reports of workers go in, plans and a record of what was found come out.

1. Which checkpoints there are, and who holds their pieces.
2. What the control plane knows for certain: who is there, which plan holds, what is stored, and how far the job is.
   Every entry of the record changes it by the same function, when it is written and when it is read again, so that
   whoever goes on from the record knows what its predecessor knew. What was only measured (beats, speeds) is measured
   anew.
3. Workers that were there before the control plane was started anew, and have to come back.
4. The control plane's mind: what workers told goes in, plans and a record of what was found come out. It has no
   clock, no sockets and no processes; :mod:`~kuayu.live.control` gives it all of them. What it has taken from
   workers, and each plan, is on record before anyone hears of it, so that a control plane that is started anew goes
   on from the record as if it had only been silent.
"""

import json
import statistics
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Self

from kuayu.live.detection import FailureDetector, Fault, MembershipState, Stage, Stragglers, faults
from kuayu.live.plan import CONTROL_ABSENCE_SECONDS, FILE, SNAPSHOT, Entry, Member, Plan, Restore, Settings


class Register:
    """Holders of every piece, by step and generation of the checkpoint."""

    KEPT = 4
    """Checkpoints that are remembered."""

    def __init__(self) -> None:
        self._checkpoints: dict[tuple[int, int], list[set[str]]] = {}

    def stored(self, worker: str, step: int, generation: int, piece: int, world: int) -> bool:
        """A worker holds a piece; whether the checkpoint is now whole, with a replica of each piece, by that."""
        pieces = self._checkpoints.setdefault((step, generation), [set() for _ in range(world)])
        before = _replicated(pieces)
        pieces[piece].add(worker)
        for old in sorted(self._checkpoints)[: -self.KEPT]:
            del self._checkpoints[old]
        return not before and _replicated(pieces)

    def dropped(self, after: int) -> None:
        """The job goes on from a step: later checkpoints are void."""
        self._checkpoints = {key: pieces for key, pieces in self._checkpoints.items() if key[0] <= after}

    def latest(self, alive: AbstractSet[str]) -> Restore | None:
        """The latest checkpoint of which somebody who is there holds each piece; None for the very beginning."""
        for (step, generation), pieces in sorted(self._checkpoints.items(), reverse=True):
            left = [[entry for entry in sorted(piece) if entry in alive] for piece in pieces]
            holders = [
                tuple(holder) or ((FILE,) if FILE in piece else ()) for holder, piece in zip(left, pieces, strict=True)
            ]
            if all(holders):
                return Restore(step, generation, tuple(holders))
        return None

    def to_json(self) -> list[Any]:
        """All of it."""
        return [[*key, [sorted(piece) for piece in pieces]] for key, pieces in self._checkpoints.items()]

    @classmethod
    def of_json(cls, entries: list[Any]) -> Self:
        """From all of it."""
        register = cls()
        register._checkpoints = {
            (step, generation): [set(piece) for piece in pieces] for step, generation, pieces in entries
        }
        return register


def _replicated(pieces: list[set[str]]) -> bool:
    return all(len(piece - {FILE}) > 1 for piece in pieces)


class Memory:
    """What follows from the entries so far.

    Attributes:
        plan: The newest.
        workers: Who is there, by identifier.
        replaced: Who was a member once and must not come back.
        taken: Number of the last report of each worker that is on record.
        register: Checkpoints.
        at: The last step that all members have made.
        frontier: The furthest step that anyone has made.

    Args:
        until: Last step.
    """

    def __init__(self, until: int) -> None:
        self.plan = Plan(0, (), None, until)
        self.workers: dict[str, Member] = {}
        self.replaced: set[str] = set()
        self.taken: dict[str, int] = {}
        self.register = Register()
        self.at, self.frontier = 0, 0
        self._made: dict[int, tuple[float, set[str]]] = {}  # loss, and who told of the step
        self._ready: set[str] = set()

    @property
    def members(self) -> list[str]:
        """Identifiers of the workers of the job, by rank."""
        return [member.id for member in self.plan.members]

    def apply(self, entry: Entry) -> list[Entry]:
        """Let an entry count; entries that follow from it, without instants."""
        match entry["kind"]:
            case "joined":
                self.workers[entry["worker"]] = Member(entry["worker"], entry["domain"], entry["port"])
                self.taken[entry["worker"]] = 0
            case "gone":
                self._leave(entry["worker"])
            case "taken" if entry["worker"] in self.workers:
                return self._take(entry["worker"], entry["report"])
            case "plan":
                return self._adopt(Plan.of_wire(entry["plan"]))
            case "until":
                self.plan = Plan(self.plan.generation, self.plan.members, self.plan.restore, entry["step"])
            case kind if kind == SNAPSHOT:
                self._restore(entry)
        return []

    def snapshot(self) -> dict[str, Any]:
        """All of it, as one entry tells it."""
        return {
            "workers": [
                [worker.id, worker.domain, worker.port, self.taken[worker.id]] for worker in self.workers.values()
            ],
            "plan": self.plan.to_wire(),
            "replaced": sorted(self.replaced),
            "checkpoints": self.register.to_json(),
            "made": [[step, loss, sorted(makers)] for step, (loss, makers) in self._made.items()],
            "ready": sorted(self._ready),
            "reached": [self.at, self.frontier],
        }

    def _restore(self, entry: Entry) -> None:
        self.workers = {name: Member(name, domain, port) for name, domain, port, _ in entry["workers"]}
        self.taken = {name: taken for name, *_, taken in entry["workers"]}
        self.plan = Plan.of_wire(entry["plan"])
        self.replaced = set(entry["replaced"])
        self.register = Register.of_json(entry["checkpoints"])
        self._made = {step: (loss, set(makers)) for step, loss, makers in entry["made"]}
        self._ready = set(entry["ready"])
        self.at, self.frontier = entry["reached"]

    def _leave(self, worker: str) -> None:
        self.workers.pop(worker, None)
        self.taken.pop(worker, None)

    def _adopt(self, plan: Plan) -> list[Entry]:
        """A plan holds. What is before its checkpoint was made by all, though one may have died before it told."""
        first = plan.restore.step if plan.restore else 0
        outcome = [self._whole(step, loss) for step, (loss, _) in sorted(self._made.items()) if step <= first]
        removed = set(self.members) - {member.id for member in plan.members}
        self.plan = plan
        self.replaced |= removed
        for entry in removed:
            self._leave(entry)
        self.register.dropped(first)
        self._made, self._ready = {}, set()
        return outcome

    def _take(self, worker: str, report: dict[str, Any]) -> list[Entry]:
        self.taken[worker] = report["number"]
        if report["generation"] != self.plan.generation:
            return []
        match report["kind"]:
            case "ready":
                self._ready.add(worker)
                if self._ready.issuperset(self.members):
                    return [{"kind": "placed", "generation": self.plan.generation}]
            case "step":
                return self._step(worker, report)
            case "stored":
                which = (report["step"], report["generation"], report["piece"], report["of"])
                if self.register.stored(report["holder"], *which):
                    return [{"kind": "checkpoint", "step": report["step"]}]
        return []

    def _step(self, worker: str, report: dict[str, Any]) -> list[Entry]:
        step = report["step"]
        self.frontier = max(self.frontier, step)
        makers = self._made.setdefault(step, (report["loss"], set()))[1]
        makers.add(worker)
        if len(makers) < len(self.members):
            return []
        self.at = step
        del self._made[step]
        return [self._whole(step, report["loss"])]

    def _whole(self, step: int, loss: float) -> Entry:
        """All members have made a step, and all with the same loss."""
        return {
            "kind": "step",
            "step": step,
            "loss": loss,
            "generation": self.plan.generation,
            "world": len(self.plan.members),
        }


RETURN_SECONDS = 2.5
"""Seconds in which they have to be back: more than leases last that were given before."""


class PendingWorkers:
    """Who is not back yet. Where half of a job or more is not, it is rather the control plane that is cut off."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._since = 0.0

    def begin(self, workers: Iterable[str], now: float) -> None:
        """Wait for these from now on."""
        self._names, self._since = set(workers), now

    def drop(self, workers: Iterable[str]) -> bool:
        """They are back, or nobody waits for them any more; whether that leaves none of those who were waited for."""
        before = len(self._names)
        self._names.difference_update(workers)
        return before > 0 and not self._names

    def late(self, members: Sequence[str], now: float) -> AbstractSet[str]:
        """Who is given up now. Without a control plane workers end by themselves in the end."""
        waited = now - self._since
        most = 2 * len(self._names.intersection(members)) >= len(members)
        return (
            frozenset(self._names)
            if waited > (CONTROL_ABSENCE_SECONDS + RETURN_SECONDS if most else RETURN_SECONDS)
            else frozenset()
        )


STALL_S, STALL_STEPS, HOPELESS_S, PATIENCE_S = 2.0, 10.0, 10.0, 5.0
"""Least seconds of a stall; a stall in median steps; seconds after which a stall that nobody explains is planned anew;
seconds that an orderly change waits for the next checkpoint."""
ENDLESS_STEPS = 1 << 40


@dataclass(slots=True)
class Heartbeat:
    """What the last beat of a worker told."""

    unheard: dict[str, Stage] = field(default_factory=dict)
    phase: str = "idle"


class RunController:
    """Decides who belongs to the job.

    Args:
        settings: Of the run.
        detector: Of workers that are silent.
        tell: Sends a header to a worker.
        cut: Ends the connection with a worker.
        note: Takes the record: what happened, its particulars, and whether it has to outlive the machine's power.
        until: Last step; endless by default.
    """

    def __init__(
        self,
        settings: Settings,
        detector: FailureDetector,
        tell: Callable[[str, dict[str, Any]], None],
        cut: Callable[[str], None],
        note: Callable[..., None],
        until: int = ENDLESS_STEPS,
    ) -> None:
        self._settings, self._detector, self._tell, self._cut, self._note = settings, detector, tell, cut, note
        self._memory, self._awaited, self._stragglers = Memory(until), PendingWorkers(), Stragglers()
        self._heard: dict[str, Heartbeat] = {}
        self._condemned: dict[str, Fault] = {}
        self._stages: dict[str, Stage] = {}
        self._orderly: float | None = None  # since when a change waits for a checkpoint
        self._moved, self._fresh = 0.0, True
        self._gaps = deque[float](maxlen=50)

    @property
    def _spares(self) -> list[str]:
        return [
            worker
            for worker in self._memory.workers
            if worker not in self._memory.members and worker not in self._stages
        ]

    def snapshot(self) -> dict[str, Any]:
        """All that the record tells, in one entry."""
        return self._memory.snapshot()

    def recover(self, entries: Iterable[Entry], now: float) -> None:
        """Go on from a record; who was there is waited for."""
        follows: list[Entry] = []
        noted = set()
        for entry in entries:
            follows += self._memory.apply(entry)
            noted.add(_key(entry))
        for follow in follows:  # it may have ended between what it took and what follows
            if _key(follow) not in noted:
                self._note(**follow)
        for worker in self._memory.workers:
            self._detector.beat(worker, now)
        self._awaited.begin(self._memory.workers, now)
        self._moved = now
        self._enter("recovered", generation=self._memory.plan.generation, awaited=sorted(self._memory.workers))

    def joined(self, member: Member, generation: int, now: float) -> None:
        """A worker said hello, and up to which plan it has heard of them."""
        if member.id in self._memory.replaced:
            self._tell(member.id, {"kind": "end"})
            self._cut(member.id)
            return
        self._detector.beat(member.id, now)
        if member.id in self._memory.workers:
            self._returned(member.id, generation)
            return
        self._enter("joined", worker=member.id, domain=member.domain, port=member.port)
        workers = self._memory.workers.values()
        if not self._memory.plan.generation and len(workers) == self._settings.domains + self._settings.spares:
            order = sorted(workers, key=lambda worker: self._settings.names.index(worker.domain))
            self._carry_out(order[: self._settings.domains], now, {})

    def _returned(self, worker: str, generation: int) -> None:
        """A worker is back that was there before the control plane was started anew."""
        plan = self._memory.plan
        if worker in self._memory.members:
            if generation != plan.generation:
                self._tell(worker, plan.to_wire())
            self._tell(worker, {"kind": "until", "step": plan.until})
        self._not_awaited({worker})

    def _not_awaited(self, workers: Iterable[str]) -> None:
        if self._awaited.drop(workers):
            self._enter("whole", generation=self._memory.plan.generation)

    def gone(self, worker: str, now: float) -> None:
        """The connection of a worker ended."""
        if worker in self._memory.workers:
            self._lost(worker)
            self.look(now)

    def _lost(self, worker: str) -> None:
        self._enter("gone", worker=worker)
        self._detector.forget(worker)
        self._stages.pop(worker, None)
        self._heard.pop(worker, None)
        self._not_awaited({worker})

    def take_report(self, worker: str, header: dict[str, Any], now: float) -> None:
        """A worker told something; who has been replaced is not listened to."""
        if worker not in self._memory.workers:
            return
        current = header["generation"] == self._memory.plan.generation
        if header["kind"] == "beat":
            self._detector.beat(worker, now)
            self._tell(worker, {"kind": "lease", "sent": header["sent"], "taken": self._memory.taken[worker]})
            unheard = {entry: Stage(stage) for entry, stage in header["unheard"].items()}
            self._heard[worker] = Heartbeat(unheard, header["phase"]) if current else Heartbeat()
        elif header["number"] > self._memory.taken[worker]:
            if header["kind"] == "step" and current:
                self._stragglers.step(worker, header["seconds"], now)
            for follows in self._enter("taken", worker=worker, report=header):
                self._heed(follows["kind"], now)

    def _heed(self, kind: str, now: float) -> None:
        if kind == "step":
            if not self._fresh:
                self._gaps.append(now - self._moved)
            self._moved, self._fresh = now, False
        elif kind == "checkpoint" and self._orderly is not None:
            self._change(now)

    def finish(self, ahead: int) -> None:
        """End the job so many steps after the furthest."""
        until = self._memory.frontier + ahead
        self._enter("until", step=until)
        for member in self._memory.members:
            self._tell(member, {"kind": "until", "step": until})

    def look(self, now: float) -> None:
        """Judge, and act on what is found."""
        members = self._memory.members
        for entry in sorted(self._awaited.late(members, now)):
            self._lost(entry)
        if not self._memory.plan.generation or self._memory.at >= self._memory.plan.until:
            return
        self._suspect(now)
        still = now - self._moved
        result = faults(self._membership(still))
        if self._orderly is not None:  # a change that is under way is carried through
            result = {entry: fault for entry, fault in self._condemned.items() if fault == Fault.slow} | result
        for entry in result.keys() - self._condemned.keys():
            self._enter("verdict", worker=entry, fault=result[entry])
        self._condemned = result
        slow = [entry for entry, fault in result.items() if fault == Fault.slow]
        if len(result) > len(slow):
            self._change(now)
        elif self._spares and (slow or len(members) < self._settings.domains):
            self._orderly = now if self._orderly is None else self._orderly
            if now - self._orderly > PATIENCE_S:
                self._change(now)
        else:
            self._orderly = None
            if still > max(HOPELESS_S, 4 * self._stall):
                self._change(now)

    def _suspect(self, now: float) -> None:
        stages = dict(self._detector.verdicts(now))
        for stage in stages.keys() | self._stages.keys():
            if stages.get(stage) != self._stages.get(stage):
                self._enter("suspicion", worker=stage, stage=stages.get(stage, "none"))
        self._stages = stages

    def _membership(self, still: float) -> MembershipState:
        members = self._memory.members
        heartbeats = {
            member: self._heard.get(member, Heartbeat()) for member in members if member in self._memory.workers
        }
        return MembershipState(
            members=members,
            ended=frozenset(members) - heartbeats.keys(),
            silent=self._stages,
            unheard={entry: last.unheard for entry, last in heartbeats.items()},
            computing=frozenset(entry for entry, last in heartbeats.items() if last.phase == "compute"),
            stalled=still > self._stall,
            slow=self._stragglers.slow_members(members),
        )

    @property
    def _stall(self) -> float:
        return max(STALL_S, STALL_STEPS * statistics.median(self._gaps) if self._gaps else 0.0)

    def _change(self, now: float) -> None:
        """Plan without those who are condemned, with spares in their places."""
        spares, workers = self._spares, self._memory.workers
        members = []
        for member in self._memory.plan.members:
            if member.id not in self._condemned:
                members.append(member)
            elif spares:
                members.append(workers[spares.pop(0)])
            elif self._condemned[member.id] == Fault.slow:
                members.append(member)
        while spares and len(members) < self._settings.domains:
            members.append(workers[spares.pop(0)])
        if members:
            self._carry_out(members, now, self._condemned)

    def _carry_out(self, members: list[Member], now: float, why: dict[str, Fault]) -> None:
        memory = self._memory
        removed = [entry for entry in memory.members if entry not in {member.id for member in members}]
        restore = memory.register.latest(memory.workers.keys() - set(removed))
        step = restore.step if restore else 0
        plan = Plan(memory.plan.generation + 1, tuple(members), restore, memory.plan.until)
        self._enter(
            "plan",
            lasting=True,
            generation=plan.generation,
            members=[entry.id for entry in members],
            removed=removed,
            why={item: why[item] for item in removed if item in why},
            restore=step,
            again=memory.frontier - step,
            plan=plan.to_wire(),
        )
        for entry in memory.members:
            self._tell(entry, plan.to_wire())
        for item in removed:
            self._detector.forget(item)
            self._tell(item, {"kind": "end"})
            self._cut(item)
        self._not_awaited(removed)
        self._stragglers.clear(memory.members)
        self._heard, self._condemned, self._orderly = {}, {}, None
        self._moved, self._fresh = now, True

    def _enter(self, kind: str, *, lasting: bool = False, **particulars: Any) -> list[Entry]:
        """Put something on record and let it count, with all that follows from it; what that is."""
        self._note(kind, lasting=lasting, **particulars)
        follows = self._memory.apply({"kind": kind, **particulars})
        for follow in follows:
            self._note(**follow)
        return follows


def _key(entry: Entry) -> str:
    """What an entry tells, without when."""
    return json.dumps({name: value for name, value in entry.items() if name != "at"}, sort_keys=True)
