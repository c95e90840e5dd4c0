"""The control plane's mind, told what workers would tell it."""

from typing import Any

from kuayu.live.conductor import Conductor
from kuayu.live.judging import Adaptive
from kuayu.live.plan import FILE, Member, Plan
from kuayu.live.register import Register
from kuayu.live.settings import Settings


class World:
    """A conductor, and all that it does."""

    def __init__(self, settings: Settings) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.cut: list[str] = []
        self.notes: list[dict[str, Any]] = []
        self.now = 0.0
        self.conductor = Conductor(
            settings,
            Adaptive(settings.period),
            lambda worker, header: self.told.append((worker, header)),
            self.cut.append,
            lambda kind, **more: self.notes.append({"kind": kind, **more}),
        )
        for number, domain in enumerate(settings.names):
            self.join(f"{domain}-1", domain, number)

    def join(self, worker: str, domain: str, port: int = 1) -> None:
        """A worker says hello."""
        self.conductor.joined(Member(worker, domain, port), self.now)

    def step(self, number: int, *workers: str) -> None:
        """Some workers, or all members, have made a step."""
        header = {"kind": "step", "generation": self.plan.generation, "step": number, "loss": 1.0, "seconds": 0.01}
        for worker in workers or [each.id for each in self.plan.members]:
            self.conductor.told(worker, header, self.now)

    def checkpoint(self, step: int) -> None:
        """Each member holds its piece, and the next one a replica."""
        members = [each.id for each in self.plan.members]
        for piece, worker in enumerate(members):
            names = {"step": step, "generation": self.plan.generation, "piece": piece, "of": len(members)}
            for holder in (worker, members[(piece + 1) % len(members)]):
                self.conductor.told(holder, {"kind": "stored", "holder": holder, **names}, self.now)

    @property
    def plan(self) -> Plan:
        """The newest plan."""
        return Plan.of_wire(next(header for _, header in reversed(self.told) if header["kind"] == "plan"))

    def noted(self, kind: str) -> list[dict[str, Any]]:
        """What was noted of this kind."""
        return [each for each in self.notes if each["kind"] == kind]


FIRST, SECOND, THIRD, SPARE = "beijing-1", "yangtze-1", "bay-1", "chengyu-1"


def test_the_job_begins_when_all_are_there() -> None:
    world = World(Settings(domains=3))
    assert [each.id for each in world.plan.members] == [FIRST, SECOND, THIRD]
    assert world.plan.restore is None


def test_a_lost_worker_gives_way_to_the_spare_at_the_last_checkpoint() -> None:
    world = World(Settings(domains=3))
    for number in range(1, 14):
        world.step(number)
        if number == 10:
            world.checkpoint(10)
    world.conductor.gone(SECOND, world.now)
    assert [each.id for each in world.plan.members] == [FIRST, SPARE, THIRD]
    assert world.plan.restore is not None
    assert world.plan.restore.step == 10
    assert world.plan.restore.holders == ((FIRST,), (THIRD,), (THIRD, FIRST))
    assert world.noted("plan")[-1]["again"] == 3


def test_without_a_spare_the_job_goes_on_smaller_and_grows_again_at_a_checkpoint() -> None:
    world = World(Settings(domains=3, spares=0))
    world.step(1)
    world.conductor.gone(SECOND, world.now)
    assert [each.id for each in world.plan.members] == [FIRST, THIRD]
    world.join("yangtze-2", "yangtze")
    world.conductor.look(world.now)
    assert len(world.plan.members) == 2
    for number in range(1, 11):
        world.step(number)
    world.checkpoint(10)
    assert [each.id for each in world.plan.members] == [FIRST, THIRD, "yangtze-2"]
    assert world.noted("plan")[-1]["again"] == 0


def test_whoever_was_replaced_is_cut_loose_and_not_listened_to() -> None:
    world = World(Settings(domains=3))
    for number in range(1, 30):
        header = {"kind": "step", "generation": 1, "step": number, "loss": 1.0}
        for worker in (FIRST, SECOND, THIRD):
            world.conductor.told(worker, {**header, "seconds": 0.05 if worker == SECOND else 0.01}, world.now)
    world.conductor.look(world.now)
    assert world.noted("verdict") == [{"kind": "verdict", "worker": SECOND, "fault": "slow"}]
    world.checkpoint(30)
    assert (SECOND, {"kind": "end"}) in world.told
    assert world.cut == [SECOND]
    before = len(world.notes)
    beat = {"kind": "beat", "generation": 1, "step": 40, "phase": "compute", "unheard": {}, "sent": 0.0}
    world.conductor.told(SECOND, beat, world.now)
    world.step(40, SECOND)
    assert len(world.notes) == before
    assert [header["kind"] for worker, header in world.told if worker == SECOND] == ["plan", "end"]


def test_a_step_of_an_older_plan_counts_nothing() -> None:
    world = World(Settings(domains=3))
    world.step(1)
    world.conductor.gone(SECOND, world.now)
    for worker in (FIRST, THIRD, SPARE):
        old = {"kind": "step", "generation": 1, "step": 2, "loss": 1.0, "seconds": 0.01}
        world.conductor.told(worker, old, world.now)
    assert [each["step"] for each in world.noted("step")] == [1]


def test_a_stall_that_nobody_explains_is_planned_anew() -> None:
    world = World(Settings(domains=3))
    world.step(1)
    for tenth in range(1, 150):
        world.now = tenth / 10
        for worker in (FIRST, SECOND, THIRD, SPARE):
            beat = {"kind": "beat", "generation": 1, "step": 1, "phase": "exchange", "unheard": {}, "sent": 0.0}
            world.conductor.told(worker, beat, world.now)
        world.conductor.look(world.now)
    assert world.plan.generation == 2
    assert [each.id for each in world.plan.members] == [FIRST, SECOND, THIRD]


def test_pieces_come_from_files_when_owner_and_replica_are_lost() -> None:
    register = Register()
    for piece in range(3):
        for holder in ("abc"[piece], "bca"[piece], FILE):
            register.stored(holder, 10, 1, piece, 3)
    for piece in range(3):
        for holder in ("abc"[piece], "bca"[piece]):
            register.stored(holder, 20, 1, piece, 3)
    both = register.latest({"a", "c"})
    assert both is not None
    assert both.step == 20
    alone = register.latest({"c"})
    assert alone is not None
    assert (alone.step, alone.holders) == (10, ((FILE,), ("c",), ("c",)))
