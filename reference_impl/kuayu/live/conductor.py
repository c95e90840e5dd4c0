"""The control plane's mind: what workers told goes in, plans and a record of what was found come out.

It has no clock, no sockets and no processes; :mod:`~kuayu.live.control` gives it all of them. What it has taken from
workers, and each plan, is on record before anyone hears of it, so that a control plane that is started anew goes on
from the record as if it had only been silent.
"""

import statistics
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kuayu.live.awaited import Awaited
from kuayu.live.judging import Judge, Stage
from kuayu.live.plan import Member, Plan
from kuayu.live.register import Register
from kuayu.live.settings import Settings
from kuayu.live.stragglers import Stragglers
from kuayu.live.verdicts import Fault, Told, faults

STALL_S, STALL_STEPS, HOPELESS_S, PATIENCE_S = 2.0, 10.0, 10.0, 5.0
"""Least seconds of a stall; a stall in median steps; seconds after which a stall that nobody explains is planned anew;
seconds that an orderly change waits for the next checkpoint."""
FOLLOWS = frozenset({"step", "checkpoint", "placed"})
"""Entries that follow from what workers told."""
ENDLESS = 1 << 40


@dataclass(slots=True)
class Worker:
    """What is known of a connected worker."""

    member: Member
    unheard: dict[str, Stage] = field(default_factory=dict)
    phase: str = "idle"
    taken: int = 0
    """Number of its last report that is on record."""


class Conductor:
    """Decides who belongs to the job.

    Args:
        settings: Of the run.
        judge: Of heartbeats.
        tell: Sends a header to a worker.
        cut: Ends the connection with a worker.
        note: Takes the record: what happened, its particulars, and whether it has to outlive the machine's power.
        until: Last step; endless by default.
    """

    def __init__(
        self,
        settings: Settings,
        judge: Judge,
        tell: Callable[[str, dict[str, Any]], None],
        cut: Callable[[str], None],
        note: Callable[..., None],
        until: int = ENDLESS,
    ) -> None:
        self._settings, self._judge, self._tell, self._cut, self._note = settings, judge, tell, cut, note
        self._workers: dict[str, Worker] = {}
        self._plan = Plan(0, (), None, until)
        self._register, self._stragglers = Register(), Stragglers()
        self._frontier = 0
        self._made: dict[int, set[str]] = {}
        self._ready: set[str] = set()
        self._condemned: dict[str, Fault] = {}
        self._stages: dict[str, Stage] = {}
        self._orderly: float | None = None  # since when a change waits for a checkpoint
        self._at, self._fresh = 0, True
        self._moved, self._gaps = 0.0, deque[float](maxlen=50)
        self._replaced: set[str] = set()
        self._awaited = Awaited()

    @property
    def _members(self) -> list[str]:
        return [each.id for each in self._plan.members]

    @property
    def _spares(self) -> list[str]:
        return [each for each in self._workers if each not in self._members and each not in self._stages]

    def recover(self, entries: Iterable[dict[str, Any]], now: float) -> None:
        """Go on from a record; who was there is waited for."""
        follows: list[dict[str, Any]] = []
        noted: set[tuple[Any, ...]] = set()
        note, self._note = self._note, lambda kind, **more: follows.append({"kind": kind, **more})
        for entry in entries:
            self._replay(entry)
            if entry["kind"] in FOLLOWS:
                noted.add(_key(entry))
        self._note = note
        for entry in follows:  # it may have ended between what it took and what followed
            if _key(entry) not in noted:
                note(**entry)
        for each in self._workers:
            self._judge.beat(each, now)
        self._awaited.begin(self._workers, now)
        self._moved, self._fresh = now, True
        self._note("recovered", generation=self._plan.generation, awaited=sorted(self._workers))

    def snapshot(self) -> dict[str, Any]:
        """All that the record tells, in one entry; what was measured of beats and steps is measured anew."""
        return {
            "workers": [
                [each.member.id, each.member.domain, each.member.port, each.taken] for each in self._workers.values()
            ],
            "plan": self._plan.to_wire(),
            "replaced": sorted(self._replaced),
            "checkpoints": self._register.to_json(),
            "made": [[step, sorted(makers)] for step, makers in self._made.items()],
            "ready": sorted(self._ready),
            "reached": [self._at, self._frontier],
        }

    def _restore(self, entry: dict[str, Any]) -> None:
        self._workers = {each: Worker(Member(each, *of), taken=taken) for each, *of, taken in entry["workers"]}
        self._plan = Plan.of_wire(entry["plan"])
        self._replaced = set(entry["replaced"])
        self._register = Register.of_json(entry["checkpoints"])
        self._made = {step: set(makers) for step, makers in entry["made"]}
        self._ready = set(entry["ready"])
        self._at, self._frontier = entry["reached"]

    def _replay(self, entry: dict[str, Any]) -> None:
        match entry["kind"]:
            case "snapshot":
                self._restore(entry)
            case "joined":
                member = Member(entry["worker"], entry["domain"], entry["port"])
                self._workers[member.id] = Worker(member)
            case "gone":
                self._workers.pop(entry["worker"], None)
            case "taken" if entry["worker"] in self._workers:
                self._take(entry["worker"], entry["report"], entry["at"])
            case "plan":
                self._adopt(Plan.of_wire(entry["plan"]), entry["at"])
            case "until":
                self._end_at(entry["step"])

    def joined(self, member: Member, generation: int, now: float) -> None:
        """A worker said hello, and up to which plan it has heard of them."""
        if member.id in self._replaced:
            self._tell(member.id, {"kind": "end"})
            self._cut(member.id)
            return
        if member.id in self._workers:
            self._returned(member.id, generation, now)
            return
        self._workers[member.id] = Worker(member)
        self._judge.beat(member.id, now)
        self._note("joined", worker=member.id, domain=member.domain, port=member.port)
        wanted = self._settings.domains + self._settings.spares
        if not self._plan.generation and len(self._workers) == wanted:
            order = sorted(self._workers.values(), key=lambda each: self._settings.names.index(each.member.domain))
            self._carry_out([each.member for each in order[: self._settings.domains]], now, {})

    def _returned(self, worker: str, generation: int, now: float) -> None:
        """A worker is back that was there before the control plane was started anew."""
        self._judge.beat(worker, now)
        if worker in self._members:
            if generation != self._plan.generation:
                self._tell(worker, self._plan.to_wire())
            self._tell(worker, {"kind": "until", "step": self._plan.until})
        self._not_awaited({worker})

    def _not_awaited(self, workers: Iterable[str]) -> None:
        if self._awaited.drop(workers):
            self._note("whole", generation=self._plan.generation)

    def gone(self, worker: str, now: float) -> None:
        """The connection of a worker ended."""
        if worker in self._workers:
            self._lost(worker)
            self.look(now)

    def _lost(self, worker: str) -> None:
        del self._workers[worker]
        self._judge.forget(worker)
        self._stages.pop(worker, None)
        self._note("gone", worker=worker)
        self._not_awaited({worker})

    def told(self, worker: str, header: dict[str, Any], now: float) -> None:
        """A worker told something; who has been replaced is not listened to."""
        known = self._workers.get(worker)
        if known is None:
            return
        if header["kind"] == "beat":
            current = header["generation"] == self._plan.generation
            self._judge.beat(worker, now)
            self._tell(worker, {"kind": "lease", "sent": header["sent"], "taken": known.taken})
            known.phase = header["phase"] if current else "idle"
            known.unheard = {each: Stage(stage) for each, stage in header["unheard"].items()} if current else {}
        elif header["number"] > known.taken:
            self._note("taken", worker=worker, report=header)
            if header["kind"] == "step" and header["generation"] == self._plan.generation:
                self._stragglers.step(worker, header["seconds"])
            self._take(worker, header, now)

    def _take(self, worker: str, header: dict[str, Any], now: float) -> None:
        """A report is on record; what follows from it."""
        self._workers[worker].taken = header["number"]
        current = header["generation"] == self._plan.generation
        match header["kind"]:
            case "ready" if current:
                self._ready.add(worker)
                if self._ready.issuperset(self._members):
                    self._note("placed", generation=self._plan.generation)
            case "step" if current:
                self._step(worker, header, now)
            case "stored" if current:
                which = (header["step"], header["generation"], header["piece"], header["of"])
                if self._register.stored(header["holder"], *which):
                    self._note("checkpoint", step=header["step"])
                    if self._orderly is not None:
                        self._change(now)

    def finish(self, ahead: int) -> None:
        """End the job so many steps after the furthest."""
        until = self._frontier + ahead
        self._note("until", step=until)
        self._end_at(until)
        for each in self._members:
            self._tell(each, {"kind": "until", "step": until})

    def _end_at(self, step: int) -> None:
        self._plan = Plan(self._plan.generation, self._plan.members, self._plan.restore, step)

    def look(self, now: float) -> None:
        """Judge, and act on what is found."""
        for each in sorted(self._awaited.late(self._members, now)):
            self._lost(each)
        if not self._plan.generation or self._at >= self._plan.until:
            return
        self._suspect(now)
        still = now - self._moved
        found = faults(self._all_told(still))
        if self._orderly is not None:  # a change that is under way is carried through
            found = {each: fault for each, fault in self._condemned.items() if fault == Fault.slow} | found
        for each in found.keys() - self._condemned.keys():
            self._note("verdict", worker=each, fault=found[each])
        self._condemned = found
        slow = [each for each, fault in found.items() if fault == Fault.slow]
        if len(found) > len(slow):
            self._change(now)
        elif self._spares and (slow or len(self._members) < self._settings.domains):
            self._orderly = now if self._orderly is None else self._orderly
            if now - self._orderly > PATIENCE_S:
                self._change(now)
        else:
            self._orderly = None
            if still > max(HOPELESS_S, 4 * self._stall):
                self._change(now)

    def _suspect(self, now: float) -> None:
        stages = dict(self._judge.verdicts(now))
        for each in stages.keys() | self._stages.keys():
            if stages.get(each) != self._stages.get(each):
                self._note("suspicion", worker=each, stage=stages.get(each, "none"))
        self._stages = stages

    def _all_told(self, still: float) -> Told:
        members = self._members
        present = [each for each in members if each in self._workers]
        return Told(
            members=members,
            ended=frozenset(members) - self._workers.keys(),
            silent=self._stages,
            unheard={each: self._workers[each].unheard for each in present},
            computing=frozenset(each for each in present if self._workers[each].phase == "compute"),
            stalled=still > self._stall,
            slow=self._stragglers.found(members),
        )

    @property
    def _stall(self) -> float:
        return max(STALL_S, STALL_STEPS * statistics.median(self._gaps) if self._gaps else 0.0)

    def _step(self, worker: str, header: dict[str, Any], now: float) -> None:
        step = header["step"]
        makers = self._made.setdefault(step, set())
        makers.add(worker)
        if len(makers) == len(self._members):
            if not self._fresh:
                self._gaps.append(now - self._moved)
            self._at, self._moved, self._fresh = step, now, False
            del self._made[step]
            self._note("step", step=step, loss=header["loss"], generation=self._plan.generation, world=len(makers))
        self._frontier = max(self._frontier, step)

    def _change(self, now: float) -> None:
        """Plan without those who are condemned, with spares in their places."""
        spares = self._spares
        members = []
        for each in self._plan.members:
            if each.id not in self._condemned:
                members.append(each)
            elif spares:
                members.append(self._workers[spares.pop(0)].member)
            elif self._condemned[each.id] == Fault.slow:
                members.append(each)
        while spares and len(members) < self._settings.domains:
            members.append(self._workers[spares.pop(0)].member)
        if members:
            self._carry_out(members, now, self._condemned)

    def _carry_out(self, members: list[Member], now: float, why: dict[str, Fault]) -> None:
        removed = [each for each in self._members if each not in {member.id for member in members}]
        restore = self._register.latest(self._workers.keys() - set(removed))
        step = restore.step if restore else 0
        plan = Plan(self._plan.generation + 1, tuple(members), restore, self._plan.until)
        self._note(
            "plan",
            lasting=True,
            generation=plan.generation,
            members=[each.id for each in members],
            removed=removed,
            why={each: why[each] for each in removed if each in why},
            restore=step,
            again=self._frontier - step,
            plan=plan.to_wire(),
        )
        self._adopt(plan, now)
        for each in self._members:
            self._tell(each, plan.to_wire())
        for each in removed:
            self._tell(each, {"kind": "end"})
            self._cut(each)

    def _adopt(self, plan: Plan, now: float) -> None:
        """A plan is on record and holds from now on."""
        removed = {each.id for each in self._plan.members} - {each.id for each in plan.members}
        self._plan = plan
        self._replaced |= removed
        for each in removed:
            if self._workers.pop(each, None) is not None:
                self._judge.forget(each)
        self._not_awaited(removed)
        self._register.dropped(plan.restore.step if plan.restore else 0)
        self._stragglers.clear(self._members)
        self._made, self._ready, self._condemned, self._orderly = {}, set(), {}, None
        self._moved, self._fresh = now, True
        for worker in self._workers.values():
            worker.unheard, worker.phase = {}, "idle"


def _key(entry: dict[str, Any]) -> tuple[Any, ...]:
    """What an entry tells, without when."""
    return tuple(sorted((name, value) for name, value in entry.items() if name != "at"))
