"""The control plane's mind, told what workers would tell it."""

from live.world import World

from kuayu.live.controller import Register
from kuayu.live.plan import FILE, Settings

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
    world.controller.gone(SECOND, world.now)
    assert [each.id for each in world.plan.members] == [FIRST, SPARE, THIRD]
    assert world.plan.restore is not None
    assert world.plan.restore.step == 10
    assert world.plan.restore.holders == ((FIRST,), (THIRD,), (THIRD, FIRST))
    assert world.noted("plan")[-1]["again"] == 3


def test_without_a_spare_the_job_goes_on_smaller_and_grows_again_at_a_checkpoint() -> None:
    world = World(Settings(domains=3, spares=0))
    world.step(1)
    world.controller.gone(SECOND, world.now)
    assert [each.id for each in world.plan.members] == [FIRST, THIRD]
    world.join("yangtze-2", "yangtze")
    world.controller.look(world.now)
    assert len(world.plan.members) == 2
    for number in range(1, 11):
        world.step(number)
    world.checkpoint(10)
    assert [each.id for each in world.plan.members] == [FIRST, THIRD, "yangtze-2"]
    assert world.noted("plan")[-1]["again"] == 0


def test_whoever_was_replaced_is_cut_loose_and_not_listened_to() -> None:
    world = World(Settings(domains=3))
    for number in range(1, 30):
        world.now += 0.1
        world.beat(FIRST, SECOND, THIRD, SPARE)
        for worker in (FIRST, SECOND, THIRD):
            world.report(worker, "step", 1, step=number, loss=1.0, seconds=0.05 if worker == SECOND else 0.01)
    world.controller.look(world.now)
    assert [(each["worker"], each["fault"]) for each in world.noted("verdict")] == [(SECOND, "slow")]
    world.checkpoint(30)
    assert (SECOND, {"kind": "end"}) in world.told
    assert world.cut == [SECOND]
    before = len(world.notes)
    beat = {"kind": "beat", "generation": 1, "step": 40, "phase": "compute", "unheard": {}, "sent": 0.0}
    world.controller.take_report(SECOND, beat, world.now)
    world.step(40, SECOND)
    assert len(world.notes) == before
    told = [header["kind"] for worker, header in world.told if worker == SECOND]
    assert [kind for kind in told if kind != "lease"] == ["plan", "end"]


def test_a_step_of_an_older_plan_counts_nothing() -> None:
    world = World(Settings(domains=3))
    world.step(1)
    world.controller.gone(SECOND, world.now)
    for worker in (FIRST, THIRD, SPARE):
        world.report(worker, "step", 1, step=2, loss=1.0, seconds=0.01)
    assert [each["step"] for each in world.noted("step")] == [1]


def test_a_stall_that_nobody_explains_is_planned_anew() -> None:
    world = World(Settings(domains=3))
    world.step(1)
    for tenth in range(1, 150):
        world.now = tenth / 10
        for worker in (FIRST, SECOND, THIRD, SPARE):
            beat = {"kind": "beat", "generation": 1, "step": 1, "phase": "exchange", "unheard": {}, "sent": 0.0}
            world.controller.take_report(worker, beat, world.now)
        world.controller.look(world.now)
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
