"""The control plane's mind: what workers told goes in, plans and a record of what was found come out.

It has no clock, no sockets and no processes; :mod:`~kuayu.live.control` gives it all of them.
"""

import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kuayu.live.judging import Judge, Stage
from kuayu.live.plan import Member, Plan
from kuayu.live.register import Register
from kuayu.live.settings import Settings
from kuayu.live.stragglers import Stragglers
from kuayu.live.verdicts import Fault, Told, faults

STALL_S, STALL_STEPS, HOPELESS_S, PATIENCE_S = 2.0, 10.0, 10.0, 5.0
"""Least seconds of a stall; a stall in median steps; seconds after which a stall that nobody explains is planned anew;
seconds that an orderly change waits for the next checkpoint."""
ENDLESS = 1 << 40


@dataclass(slots=True)
class Worker:
    """What is known of a connected worker."""

    member: Member
    unheard: dict[str, Stage] = field(default_factory=dict)
    phase: str = "idle"


class Conductor:
    """Decides who belongs to the job.

    Args:
        settings: Of the run.
        judge: Of heartbeats.
        tell: Sends a header to a worker.
        cut: Ends the connection with a worker.
        note: Takes the record: what happened, and its particulars.
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

    @property
    def _members(self) -> list[str]:
        return [each.id for each in self._plan.members]

    @property
    def _spares(self) -> list[str]:
        return [each for each in self._workers if each not in self._members and each not in self._stages]

    def joined(self, member: Member, now: float) -> None:
        """A worker said hello."""
        self._workers[member.id] = Worker(member)
        self._judge.beat(member.id, now)
        self._note("joined", worker=member.id, domain=member.domain)
        wanted = self._settings.domains + self._settings.spares
        if not self._plan.generation and len(self._workers) == wanted:
            order = sorted(self._workers.values(), key=lambda each: self._settings.names.index(each.member.domain))
            self._carry_out([each.member for each in order[: self._settings.domains]], now, {})

    def gone(self, worker: str, now: float) -> None:
        """The connection of a worker ended."""
        if self._workers.pop(worker, None) is None:
            return
        self._judge.forget(worker)
        self._stages.pop(worker, None)
        self._note("gone", worker=worker)
        self.look(now)

    def told(self, worker: str, header: dict[str, Any], now: float) -> None:
        """A worker told something; who has been replaced is not listened to."""
        known, current = self._workers.get(worker), header.get("generation") == self._plan.generation
        if known is None:
            return
        match header["kind"]:
            case "beat":
                self._judge.beat(worker, now)
                self._tell(worker, {"kind": "lease", "sent": header["sent"]})
                known.phase = header["phase"] if current else "idle"
                known.unheard = {each: Stage(stage) for each, stage in header["unheard"].items()} if current else {}
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
        self._plan = Plan(self._plan.generation, self._plan.members, self._plan.restore, until)
        for each in self._members:
            self._tell(each, {"kind": "until", "step": until})
        self._note("until", step=until)

    def look(self, now: float) -> None:
        """Judge, and act on what is found."""
        if not self._plan.generation or self._at >= self._plan.until:
            return
        stages = dict(self._judge.verdicts(now))
        for each in stages.keys() | self._stages.keys():
            if stages.get(each) != self._stages.get(each):
                self._note("suspicion", worker=each, stage=stages.get(each, "none"))
        self._stages = stages
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
        self._stragglers.step(worker, header["seconds"])
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
        self._plan = Plan(self._plan.generation + 1, tuple(members), restore, self._plan.until)
        self._note(
            "plan",
            generation=self._plan.generation,
            members=self._members,
            removed=removed,
            why={each: why[each] for each in removed if each in why},
            restore=step,
            again=self._frontier - step,
        )
        for each in self._members:
            self._tell(each, self._plan.to_wire())
        for each in removed:
            if self._workers.pop(each, None) is not None:
                self._judge.forget(each)
                self._tell(each, {"kind": "end"})
                self._cut(each)
        self._register.dropped(step)
        self._stragglers.clear(self._members)
        self._made, self._ready, self._condemned, self._orderly = {}, set(), {}, None
        self._moved, self._fresh = now, True
        for worker in self._workers.values():
            worker.unheard, worker.phase = {}, "idle"
