"""Stories of nodes and families, and what their telemetry is taken for."""

from typing import Any

import numpy as np
import pytest
from perception.small_worlds import AT_WORK, HUNG, IDLE, WAITING, Play, names, population, slow_clock, slowed

from kuayu.perception.recognition import REASONS, STATES, PlainRecogniser, Recogniser, RuleRecogniser

FAMILY = population([10], [range(6)])
ALL_WORK = [AT_WORK] * 10
EVERY_KIND = pytest.mark.parametrize("kind", [Recogniser, PlainRecogniser, RuleRecogniser])
HEALTH = {"healthy": 0.0, "degraded": 1.0, "unknown": 2.0, "faulty": 3.0, "offline": 4.0}


def warmed(kind: Any = Recogniser, people: Any = FAMILY) -> Play:
    """A population that has worked for a minute, the last four nodes alone."""
    play = Play(people, kind=kind)
    play.after(60, [AT_WORK] * len(people.domain))
    return play


@EVERY_KIND
def test_before_its_first_sample_nothing_can_be_told_of_a_node(kind: Any) -> None:
    play = Play(FAMILY, kind=kind)
    found = play.after(3, [AT_WORK, *[None] * 9])
    assert names(found)[1:] == ["unknown"] * 9
    assert {REASONS[reason] for reason in found.reason[1:]} == {"no sample yet"}


@EVERY_KIND
def test_a_node_that_says_nothing_of_its_accelerators_is_unknown(kind: Any) -> None:
    play = Play(population([2]), kind=kind)
    assert names(play.after(5, [AT_WORK, {"storage_read_flow": 1e6}]))[1] == "unknown"


@EVERY_KIND
def test_work_and_idleness_are_told_apart_within_three_seconds(kind: Any) -> None:
    play = warmed(kind)
    assert set(names(play.after(1, ALL_WORK))) == {"busy"}
    rest = [*[AT_WORK] * 8, IDLE, IDLE]
    assert names(play.after(3, rest))[6:] == ["busy", "busy", "idle", "idle"]
    assert names(play.after(3, ALL_WORK))[6:] == ["busy"] * 4


def test_who_holds_the_family_up_is_straggling_and_who_waits_is_busy() -> None:
    play = warmed()
    does = [slow_clock(0.6), *[slowed(0.6)] * 5, *[AT_WORK] * 4]
    found = play.after(3, does)
    assert names(found) == ["straggling", *["busy"] * 9]
    assert REASONS[found.reason[1]] == "waits for another node of its family"
    assert names(play.after(9, ALL_WORK)) == ["busy"] * 10


def test_a_port_that_sends_again_what_was_lost_holds_the_family_up() -> None:
    play = warmed()
    again = slowed(0.6) | {"scale_out_transmit_flow": 1.4 * slowed(0.6)["scale_out_transmit_flow"]}
    found = play.after(5, [again, *[slowed(0.6)] * 5, *[AT_WORK] * 4])
    assert names(found) == ["straggling", *["busy"] * 9]


def test_members_that_take_no_part_say_nothing_about_the_others() -> None:
    play = Play(FAMILY)
    at_rest = [IDLE, IDLE, *[AT_WORK] * 4]
    assert names(play.after(60, [*[AT_WORK] * 4, *at_rest])) == [*["busy"] * 4, "idle", "idle", *["busy"] * 4]
    found = play.after(4, [slow_clock(0.6), *[slowed(0.6)] * 3, *at_rest])
    assert names(found) == ["straggling", *["busy"] * 3, "idle", "idle", *["busy"] * 4]


def test_a_node_that_never_worked_can_still_be_degraded() -> None:
    play = Play(FAMILY)
    assert set(names(play.after(40, [IDLE] * 10))) == {"idle"}
    found = play.after(6, [IDLE | {"faults": 1.0}, *[IDLE] * 9])
    assert names(found) == ["degraded", *["idle"] * 9]


def test_a_family_that_changes_its_pace_together_is_busy() -> None:
    play = warmed()
    for found in play.seconds(30, [*[slowed(0.6)] * 6, *[AT_WORK] * 4]):
        assert "straggling" not in names(found)[:6]


def test_a_node_alone_that_is_slower_than_usual_is_degraded() -> None:
    play = warmed()
    slow = AT_WORK | {"matrix_pipe_activity": 0.25, "power": 2600.0, "memory_bandwidth_utilisation": 0.28}
    assert names(play.after(3, [*[AT_WORK] * 9, slow]))[9] == "degraded"
    assert names(play.after(3, ALL_WORK))[9] == "busy"


def test_a_member_that_stops_is_faulty_and_the_others_that_hang_are_busy() -> None:
    play = warmed()
    assert names(play.after(3, [HUNG, *[WAITING] * 5, *[AT_WORK] * 4])) == ["faulty", *["busy"] * 9]


def test_a_member_that_is_gone_is_offline_and_the_others_that_hang_are_busy() -> None:
    play = warmed()
    found = play.after(5, [None, *[WAITING] * 5, *[AT_WORK] * 4])
    assert names(found) == ["offline", *["busy"] * 9]


def test_a_part_of_the_accelerators_that_is_missing_degrades() -> None:
    play = warmed()
    less = AT_WORK | {"device_share": 0.75, "power": 3150.0, "accelerator_memory_used": 3.75e11}
    assert names(play.after(3, [*[AT_WORK] * 9, less]))[9] == "degraded"


@EVERY_KIND
def test_reports_count_before_what_is_recognised_but_a_straggler_stays_one(kind: Any) -> None:
    play = warmed(kind)
    for state in ("faulty", "offline", "degraded"):
        found = play.after(1, [*[AT_WORK] * 9, AT_WORK | {"health_state": HEALTH[state]}])
        assert names(found)[9] == state
        assert REASONS[found.reason[9]] == f"reported as {state}"
    for state in ("healthy", "unknown"):
        found = play.after(1, [*[AT_WORK] * 9, AT_WORK | {"health_state": HEALTH[state]}])
        assert names(found)[9] == "busy"


def test_a_report_of_degraded_does_not_hide_a_straggler() -> None:
    play = warmed()
    slow = slow_clock(0.6) | {"health_state": HEALTH["degraded"]}
    assert names(play.after(3, [slow, *[slowed(0.6)] * 5, *[AT_WORK] * 4]))[0] == "straggling"


@EVERY_KIND
def test_a_domain_that_falls_silent_makes_its_nodes_unknown_and_none_of_them_offline(kind: Any) -> None:
    play = warmed(kind, population([6, 6]))
    for second, found in enumerate(play.seconds(25, [*[None] * 6, *[AT_WORK] * 6])):
        assert "offline" not in names(found)
        if second > 13:
            assert names(found) == ["unknown"] * 6 + ["busy"] * 6
            assert found.reachable.tolist() == [False, True]
    found = play.after(1, [AT_WORK] * 12)
    assert names(found) == ["busy"] * 12
    assert found.reachable.all()


def test_one_odd_sample_changes_nothing() -> None:
    play = warmed()
    for _ in range(5):
        glitch = AT_WORK | {"power": 3600.0, "matrix_pipe_activity": 0.37}
        assert names(play.second([*[AT_WORK] * 9, glitch]))[9] == "busy"
        assert names(play.after(8, ALL_WORK))[9] == "busy"


def test_nodes_come_and_go_and_what_was_learnt_stays() -> None:
    play = warmed()
    origin = np.array([9, -1, *range(6)])
    people = population([8], [range(2, 8)])
    play.recogniser.rearrange(people, origin)
    play.people = people
    play.values = np.where((origin >= 0)[:, None], play.values[origin], np.nan)
    play.observed = np.where(origin >= 0, play.observed[origin], np.nan)
    slow = AT_WORK | {"matrix_pipe_activity": 0.25, "power": 2600.0, "memory_bandwidth_utilisation": 0.28}
    found = play.after(3, [slow, AT_WORK, slow_clock(0.6), *[slowed(0.6)] * 5])
    assert names(found) == ["degraded", "busy", "straggling", *["busy"] * 5]


@EVERY_KIND
def test_a_recognition_is_within_its_bounds_whatever_comes(kind: Any) -> None:
    random = np.random.default_rng(9)
    play = Play(population([5, 5], [range(4), range(2, 8)]), kind=kind)
    for _ in range(60):
        does = [
            None if random.random() < 0.3 else {n: v * random.choice([0, 1, 1e3]) for n, v in AT_WORK.items()}
            for _ in range(10)
        ]
        found = play.second(does)
        assert set(names(found)) <= set(STATES)
        assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
        assert not np.isnan(found.confidence).any()
