"""The control plane's mind: what workers told goes in, plans and a record of what was found come out.

It has no clock, no sockets and no processes; :mod:`~kuayu.live.control` gives it all of them. What it has taken from
workers, and each plan, is on record before anyone hears of it, so that a control plane that is started anew goes on
from the record as if it had only been silent.
"""

import json
import statistics
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kuayu.live.awaited import Awaited
from kuayu.live.judging import Judge, Stage
from kuayu.live.memory import Memory
from kuayu.live.plan import Member, Plan
from kuayu.live.record import Entry
from kuayu.live.settings import Settings
from kuayu.live.stragglers import Stragglers
from kuayu.live.verdicts import Fault, Told, faults

STALL_S, STALL_STEPS, HOPELESS_S, PATIENCE_S = 2.0, 10.0, 10.0, 5.0
"""Least seconds of a stall; a stall in median steps; seconds after which a stall that nobody explains is planned anew;
seconds that an orderly change waits for the next checkpoint."""
ENDLESS = 1 << 40


@dataclass(slots=True)
class Heard:
    """What the last beat of a worker told."""

    unheard: dict[str, Stage] = field(default_factory=dict)
    phase: str = "idle"


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
        self._memory, self._awaited, self._stragglers = Memory(until), Awaited(), Stragglers()
        self._heard: dict[str, Heard] = {}
        self._condemned: dict[str, Fault] = {}
        self._stages: dict[str, Stage] = {}
        self._orderly: float | None = None  # since when a change waits for a checkpoint
        self._moved, self._fresh = 0.0, True
        self._gaps = deque[float](maxlen=50)

    @property
    def _spares(self) -> list[str]:
        return [each for each in self._memory.workers if each not in self._memory.members and each not in self._stages]

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
        for each in follows:  # it may have ended between what it took and what follows
            if _key(each) not in noted:
                self._note(**each)
        for worker in self._memory.workers:
            self._judge.beat(worker, now)
        self._awaited.begin(self._memory.workers, now)
        self._moved = now
        self._enter("recovered", generation=self._memory.plan.generation, awaited=sorted(self._memory.workers))

    def joined(self, member: Member, generation: int, now: float) -> None:
        """A worker said hello, and up to which plan it has heard of them."""
        if member.id in self._memory.replaced:
            self._tell(member.id, {"kind": "end"})
            self._cut(member.id)
            return
        self._judge.beat(member.id, now)
        if member.id in self._memory.workers:
            self._returned(member.id, generation)
            return
        self._enter("joined", worker=member.id, domain=member.domain, port=member.port)
        workers = self._memory.workers.values()
        if not self._memory.plan.generation and len(workers) == self._settings.domains + self._settings.spares:
            order = sorted(workers, key=lambda each: self._settings.names.index(each.domain))
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
        self._judge.forget(worker)
        self._stages.pop(worker, None)
        self._heard.pop(worker, None)
        self._not_awaited({worker})

    def told(self, worker: str, header: dict[str, Any], now: float) -> None:
        """A worker told something; who has been replaced is not listened to."""
        if worker not in self._memory.workers:
            return
        current = header["generation"] == self._memory.plan.generation
        if header["kind"] == "beat":
            self._judge.beat(worker, now)
            self._tell(worker, {"kind": "lease", "sent": header["sent"], "taken": self._memory.taken[worker]})
            unheard = {each: Stage(stage) for each, stage in header["unheard"].items()}
            self._heard[worker] = Heard(unheard, header["phase"]) if current else Heard()
        elif header["number"] > self._memory.taken[worker]:
            if header["kind"] == "step" and current:
                self._stragglers.step(worker, header["seconds"])
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
        for each in self._memory.members:
            self._tell(each, {"kind": "until", "step": until})

    def look(self, now: float) -> None:
        """Judge, and act on what is found."""
        members = self._memory.members
        for each in sorted(self._awaited.late(members, now)):
            self._lost(each)
        if not self._memory.plan.generation or self._memory.at >= self._memory.plan.until:
            return
        self._suspect(now)
        still = now - self._moved
        found = faults(self._all_told(still))
        if self._orderly is not None:  # a change that is under way is carried through
            found = {each: fault for each, fault in self._condemned.items() if fault == Fault.slow} | found
        for each in found.keys() - self._condemned.keys():
            self._enter("verdict", worker=each, fault=found[each])
        self._condemned = found
        slow = [each for each, fault in found.items() if fault == Fault.slow]
        if len(found) > len(slow):
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
        stages = dict(self._judge.verdicts(now))
        for each in stages.keys() | self._stages.keys():
            if stages.get(each) != self._stages.get(each):
                self._enter("suspicion", worker=each, stage=stages.get(each, "none"))
        self._stages = stages

    def _all_told(self, still: float) -> Told:
        members = self._memory.members
        heard = {each: self._heard.get(each, Heard()) for each in members if each in self._memory.workers}
        return Told(
            members=members,
            ended=frozenset(members) - heard.keys(),
            silent=self._stages,
            unheard={each: last.unheard for each, last in heard.items()},
            computing=frozenset(each for each, last in heard.items() if last.phase == "compute"),
            stalled=still > self._stall,
            slow=self._stragglers.found(members),
        )

    @property
    def _stall(self) -> float:
        return max(STALL_S, STALL_STEPS * statistics.median(self._gaps) if self._gaps else 0.0)

    def _change(self, now: float) -> None:
        """Plan without those who are condemned, with spares in their places."""
        spares, workers = self._spares, self._memory.workers
        members = []
        for each in self._memory.plan.members:
            if each.id not in self._condemned:
                members.append(each)
            elif spares:
                members.append(workers[spares.pop(0)])
            elif self._condemned[each.id] == Fault.slow:
                members.append(each)
        while spares and len(members) < self._settings.domains:
            members.append(workers[spares.pop(0)])
        if members:
            self._carry_out(members, now, self._condemned)

    def _carry_out(self, members: list[Member], now: float, why: dict[str, Fault]) -> None:
        memory = self._memory
        removed = [each for each in memory.members if each not in {member.id for member in members}]
        restore = memory.register.latest(memory.workers.keys() - set(removed))
        step = restore.step if restore else 0
        plan = Plan(memory.plan.generation + 1, tuple(members), restore, memory.plan.until)
        self._enter(
            "plan",
            lasting=True,
            generation=plan.generation,
            members=[each.id for each in members],
            removed=removed,
            why={each: why[each] for each in removed if each in why},
            restore=step,
            again=memory.frontier - step,
            plan=plan.to_wire(),
        )
        for each in memory.members:
            self._tell(each, plan.to_wire())
        for each in removed:
            self._judge.forget(each)
            self._tell(each, {"kind": "end"})
            self._cut(each)
        self._not_awaited(removed)
        self._stragglers.clear(memory.members)
        self._heard, self._condemned, self._orderly = {}, {}, None
        self._moved, self._fresh = now, True

    def _enter(self, kind: str, *, lasting: bool = False, **particulars: Any) -> list[Entry]:
        """Put something on record and let it count, with all that follows from it; what that is."""
        self._note(kind, lasting=lasting, **particulars)
        follows = self._memory.apply({"kind": kind, **particulars})
        for each in follows:
            self._note(**each)
        return follows


def _key(entry: Entry) -> str:
    """What an entry tells, without when."""
    return json.dumps({name: value for name, value in entry.items() if name != "at"}, sort_keys=True)
