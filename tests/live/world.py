"""A conductor in a world of words: what workers tell it, what it tells them, and its record."""

import json
from collections import Counter
from typing import Any

from kuayu.live.controller import RunController
from kuayu.live.detection import AdaptiveFailureDetector
from kuayu.live.plan import SNAPSHOT, Member, Plan, Settings


class World:
    """A conductor, and all that it does.

    Attributes:
        told: Whom it told what.
        cut: Whose connection it ended.
        notes: Its record.
        now: The time.
    """

    def __init__(self, settings: Settings) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.cut: list[str] = []
        self.notes: list[dict[str, Any]] = []
        self.now = 0.0
        self._settings = settings
        self._numbers: Counter[str] = Counter()
        self._members: dict[str, Member] = {}
        self.controller = self._made()
        for number, domain in enumerate(settings.names):
            self.join(f"{domain}-1", domain, number)

    def _made(self) -> RunController:
        detector = AdaptiveFailureDetector(self._settings.period)
        tell = lambda worker, header: self.told.append((worker, header))  # noqa: E731 - one of three callbacks
        return RunController(self._settings, detector, tell, self.cut.append, self._note)

    def _note(self, kind: str, *, lasting: bool = False, **more: Any) -> None:
        assert lasting == (kind == "plan"), "plans outlive the machine's power"
        self.notes.append(json.loads(json.dumps({"at": self.now, "kind": kind, **more})))

    def join(self, worker: str, domain: str, port: int = 1) -> None:
        """A worker says hello."""
        self._members[worker] = Member(worker, domain, port)
        self.controller.joined(self._members[worker], 0, self.now)

    def report(self, worker: str, kind: str, generation: int, **particulars: Any) -> dict[str, Any]:
        """A worker reports something; what it sent."""
        self._numbers[worker] += 1
        header = {"kind": kind, "generation": generation, "number": self._numbers[worker], **particulars}
        self.controller.take_report(worker, header, self.now)
        return header

    def beat(self, *workers: str) -> None:
        """Some workers send heartbeats."""
        beat = {"kind": "beat", "generation": self.plan.generation, "phase": "exchange", "unheard": {}}
        for worker in workers:
            self.controller.take_report(worker, {**beat, "sent": self.now}, self.now)

    def step(self, number: int, *workers: str) -> None:
        """Some workers, or all members, have made a step."""
        for worker in workers or [each.id for each in self.plan.members]:
            self.report(worker, "step", self.plan.generation, step=number, loss=1.0, seconds=0.01)

    def checkpoint(self, step: int) -> None:
        """Each member holds its piece, and the next one a replica."""
        members = [each.id for each in self.plan.members]
        for piece, worker in enumerate(members):
            names = {"step": step, "piece": piece, "of": len(members)}
            for holder in (worker, members[(piece + 1) % len(members)]):
                self.report(holder, "stored", self.plan.generation, holder=holder, **names)

    def snapshot(self) -> None:
        """All that counts goes on the record."""
        self._note(SNAPSHOT, **self.controller.snapshot())

    def restart(self, *lost: str, entries: int | None = None) -> None:
        """The control plane ends and goes on from so many entries of its record; all come back but the lost."""
        self.notes = self.notes[:entries]
        self.controller = self._made()
        last = max((place for place, each in enumerate(self.notes) if each["kind"] == SNAPSHOT), default=0)
        self.controller.recover(self.notes[last:], self.now)
        for worker in self._members:
            if worker not in lost:
                self.join_again(worker, self.plan.generation)

    def join_again(self, worker: str, generation: int) -> None:
        """A worker that was there before says hello; it has heard of this plan."""
        self.controller.joined(self._members[worker], generation, self.now)

    @property
    def plan(self) -> Plan:
        """The newest plan."""
        return Plan.of_wire(self.noted("plan")[-1]["plan"])

    def noted(self, kind: str) -> list[dict[str, Any]]:
        """What was noted of this kind."""
        return [each for each in self.notes if each["kind"] == kind]
