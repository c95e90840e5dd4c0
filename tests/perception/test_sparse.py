"""What few measures tell and what they do not: rests, restarts, faults that are mended, and power by itself."""

import numpy as np
from perception.small_worlds import AT_WORK, HUNG, IDLE, WAITING, Play, names, population, slowed
from perception.sparse_worlds import recognised

from kuayu.perception.recognition import REASONS, STATES, Recogniser
from kuayu_conformance.testbed.sparse import Scale
from kuayu_schemas import registers

RESTS = IDLE | {"accelerator_memory_used": 5e11}
STOPPED = HUNG | {"faults": 0.0}


def test_the_suites_world_of_sparse_telemetry_is_shown_rightly() -> None:
    found = recognised(Recogniser, Scale(healthy=200, faulty=120, warm_up=48, seconds=62), "a test of the reference")
    (row,) = [each for each in registers.requirements().requirements if each.id == "MET-024"]
    assert row.threshold
    assert found.estimate >= row.threshold.value, [miss.found for miss in found.misses]


def test_a_node_that_stops_alone_hangs_where_a_fault_says_so_and_rests_where_none_does() -> None:
    play = Play(population([3]))
    play.after(40, [AT_WORK] * 3)
    found = play.after(9, [AT_WORK, STOPPED, HUNG])
    assert names(found) == ["busy", "idle", "faulty"]


def test_a_hang_that_was_told_lasts_until_the_memory_is_given_back() -> None:
    play = Play(population([3], [[0, 1]]))
    play.after(60, [AT_WORK] * 3)
    assert names(play.after(9, [STOPPED, WAITING, AT_WORK]))[0] == "faulty"
    assert names(play.after(60, [STOPPED, IDLE, AT_WORK])) == ["faulty", "idle", "busy"], "its family has given up"
    assert names(play.after(9, [IDLE, IDLE, AT_WORK])) == ["idle", "idle", "busy"]


def test_two_of_a_family_of_three_hang_and_the_third_waits() -> None:
    play = Play(population([4], [[0, 1, 2]]))
    play.after(60, [AT_WORK] * 4)
    play.after(20, [STOPPED, WAITING, WAITING, AT_WORK])
    found = play.after(9, [STOPPED, STOPPED, WAITING, AT_WORK])
    assert names(found) == ["faulty", "faulty", "busy", "busy"]


def test_faults_while_as_much_is_done_as_usual_are_mended() -> None:
    play = Play(population([2]))
    play.after(60, [AT_WORK, AT_WORK])
    for found in play.seconds(30, [AT_WORK, AT_WORK | {"faults": 1.0}]):
        assert STATES[found.state[1]] in {"busy", "degraded"}
    assert names(found)[1] == "degraded"


def test_faults_of_a_node_that_holds_nothing_are_no_hang() -> None:
    play = Play(population([2]))
    play.after(60, [AT_WORK, IDLE])
    for found in play.seconds(30, [AT_WORK, IDLE | {"faults": 1.0}]):
        assert STATES[found.state[1]] != "faulty"


def test_a_member_with_faults_whose_family_has_become_slower_holds_it_up() -> None:
    play = Play(population([4], [[0, 1, 2, 3]]))
    play.after(60, [AT_WORK] * 4)
    waits = slowed(0.6)
    found = play.after(15, [slowed(0.6) | {"faults": 1.0, "matrix_pipe_activity": 0.27}, waits, waits, waits])
    assert names(found) == ["straggling", "busy", "busy", "busy"]


def test_power_alone_above_that_at_rest_does_not_tell_little_work_from_none() -> None:
    play = Play(population([1]))
    shown = []
    for watts in (900.0, 3500.0, 1500.0, 900.0):
        found = play.after(40, [{"power": watts}])
        shown.append((STATES[found.state[0]], REASONS[found.reason[0]]))
    assert [state for state, _ in shown][1::2] == ["busy", "idle"]
    assert shown[2][0] in {"busy", "unknown"}
    assert not np.isnan(found.confidence[0])
