"""What single rules of evidence tell, each with what must not be told by it."""

from typing import Any

import pytest
from perception.small_worlds import AT_WORK, HUNG, IDLE, WAITING, Play, names, population, slowed

UNTAKEN = IDLE | {"accelerator_memory_used": 3e7}
READS_LATE = {
    "accelerator_utilisation": 0.65,
    "matrix_pipe_activity": 0.65,
    "memory_bandwidth_utilisation": 0.65,
    "storage_read_flow": 0.65,
    "power": 0.75,
}
"""What is left of each signal while the processors or the store are slow."""


def waits_for_input(without: frozenset[str] = frozenset()) -> tuple[dict[str, float], dict[str, float]]:
    """A node at work, and the same node while its input comes late, without some signals."""
    works = {name: value for name, value in AT_WORK.items() if name not in without}
    return works, {name: value * READS_LATE.get(name, 1.0) for name, value in works.items()}


@pytest.mark.parametrize("without", [frozenset(), frozenset({"matrix_pipe_activity", "memory_bandwidth_utilisation"})])
def test_a_lone_node_of_which_all_signals_of_work_fall_together_is_degraded_for_as_long_as_they_do(
    without: frozenset[str],
) -> None:
    works, late = waits_for_input(without)
    play = Play(population([2]))
    play.after(120, [works, works])
    assert names(play.after(10, [late, works])) == ["degraded", "busy"]
    for found in play.seconds(40, [late, works]):
        assert names(found) == ["degraded", "busy"]
    assert names(play.after(10, [works, works])) == ["busy", "busy"]


def test_slowness_by_itself_is_told_of_a_job_that_began_half_a_minute_ago() -> None:
    works, late = waits_for_input(frozenset({"matrix_pipe_activity", "memory_bandwidth_utilisation"}))
    play = Play(population([1]))
    play.after(30, [works])
    assert names(play.after(10, [late])) == ["degraded"]


WITHOUT_PIPES = frozenset({"matrix_pipe_activity", "memory_bandwidth_utilisation"})
SAVES = {"accelerator_utilisation": 0.05, "storage_read_flow": 1e4, "power": 1500.0}
"""While a checkpoint is written."""


def test_a_job_that_wrote_checkpoints_as_soon_as_it_had_begun_is_no_server() -> None:
    works = {name: AT_WORK[name] for name in READS_LATE if name != "storage_read_flow"}
    saves = works | {"accelerator_utilisation": 0.05, "matrix_pipe_activity": 0.0, "power": 1500.0}
    play = Play(population([1]))
    for second in range(28):
        play.second([saves if second in {4, 5, 12} else works])
    for second in range(10):
        late = (0.58, 0.72, 0.65)[second % 3]
        found = play.second([{name: value * (0.85 if name == "power" else late) for name, value in works.items()}])
    assert names(found) == ["degraded"]


def test_a_node_that_waits_for_input_every_other_second_is_slow_and_one_that_writes_a_checkpoint_is_not() -> None:
    works, _ = waits_for_input(WITHOUT_PIPES)
    waits = works | {"accelerator_utilisation": 0.0, "storage_read_flow": 1e8, "power": 2400.0}
    reads = works | {"accelerator_utilisation": 0.6, "storage_read_flow": 1e8, "power": 2600.0}
    play = Play(population([2]))
    play.after(60, [works, works])
    for second in range(40):
        found = play.second(
            [(waits, reads, works | {"power": 2900.0})[second % 3], works | SAVES if second < 3 else works]
        )
        assert second < 12 or names(found) == ["degraded", "busy"]


def test_a_node_stays_slow_for_minutes_though_its_work_has_become_uneven_by_that() -> None:
    works, late = waits_for_input(WITHOUT_PIPES)
    play = Play(population([1]))
    for second in range(60):
        play.second([works | {"accelerator_utilisation": (0.75, 0.88, 0.8)[second % 3]}])
    for second in range(120):
        found = play.second([late | {"accelerator_utilisation": (0.35, 0.6, 0.45)[second % 3]}])
        assert second < 12 or names(found) == ["degraded"]


def test_a_server_that_is_asked_more_draws_less_for_each_unit_of_utilisation_and_is_not_slow() -> None:
    def asked(load: float) -> dict[str, float]:
        return server(load, 2e7 * load) | {"power": 1500 + 900 * load**0.4}

    play = Play(population([1]), noise=0.0)
    for second in range(60):
        play.second([asked((0.2, 0.3, 0.25)[second % 3])])
    play.after(12, [asked(0.25) | {"faults": 1.0}])
    for second in range(20):
        found = play.second([asked((0.5, 0.6, 0.55)[second % 3])])
        assert second < 8 or names(found) == ["busy"]


def test_a_server_whose_load_falls_is_not_slow() -> None:
    play = Play(population([1]))
    loads = [1.0, 0.5, 0.8, 0.4, 0.9, 0.6]
    for second in range(150):
        load = loads[second % len(loads)] if second < 120 else 0.45
        found = play.second([AT_WORK | {
            "accelerator_utilisation": 0.9 * load, "matrix_pipe_activity": 0.3 * load, "power": 900 + 2500 * load,
            "memory_bandwidth_utilisation": 0.4 * load, "storage_read_flow": 1e5,
        }])  # fmt: skip
        assert second < 60 or names(found) == ["busy"]


def server(load: float, flow: float) -> dict[str, Any]:
    """A server without counters of its pipes at this load, with so many bytes a second of requests and answers."""
    return {
        "accelerator_utilisation": load,
        "power": 1500 + 1200 * load,
        "accelerator_memory_used": 5e11,
        "scale_out_transmit_flow": flow,
        "scale_out_receive_flow": flow / 4,
        "faults": 0.0,
    }


def served() -> Play:
    """A server whose load has wandered for two minutes."""
    play = Play(population([1]), noise=0.0)
    for second in range(120):
        load = (0.2, 0.45, 0.3, 0.55, 0.25, 0.5)[second % 6]
        play.second([server(load, 2e7 * load)])
    return play


def test_a_server_that_is_fully_utilised_and_answers_nobody_any_more_hangs() -> None:
    play = served()
    assert names(play.after(8, [server(1.0, 3e4)])) == ["faulty"]
    assert names(play.after(60, [server(1.0, 3e4)])) == ["faulty"]


@pytest.mark.parametrize("does", [server(1.0, 2e7), server(0.2, 3e4), server(0.5, 6e6)])
def test_a_server_at_its_limit_and_one_that_is_asked_little_do_not_hang(does: dict[str, Any]) -> None:
    for found in served().seconds(40, [does]):
        assert names(found) == ["busy"]


def test_faults_of_a_member_that_had_nothing_to_do_when_they_began_are_no_hang_of_its_family() -> None:
    play = Play(population([4], [[0, 1, 2, 3]]))
    play.after(60, [AT_WORK] * 4)
    play.after(30, [AT_WORK, AT_WORK, AT_WORK, UNTAKEN])
    for found in play.seconds(30, [AT_WORK, AT_WORK, AT_WORK, UNTAKEN | {"faults": 1.0}]):
        assert names(found)[3] != "faulty"
    assert names(found)[3] == "degraded"
    play.after(60, [AT_WORK] * 4)
    assert names(play.after(9, [WAITING, WAITING, WAITING, HUNG]))[3] == "faulty", "it has worked since"


def test_faults_that_came_every_second_are_over_a_few_seconds_after_the_last() -> None:
    play = Play(population([2]))
    play.after(60, [AT_WORK, AT_WORK])
    assert names(play.after(20, [AT_WORK | {"faults": 1.0}, AT_WORK]))[0] == "degraded"
    assert names(play.after(8, [AT_WORK, AT_WORK])) == ["busy", "busy"]


def test_faults_that_come_every_few_seconds_are_not_over_between_two_of_them() -> None:
    play = Play(population([2]))
    play.after(60, [AT_WORK, AT_WORK])
    for second in range(60):
        found = play.second([AT_WORK | {"faults": float(second % 3 == 0)}, AT_WORK])
        assert second < 15 or names(found)[0] == "degraded"


def test_a_port_that_begins_to_send_again_holds_its_family_up_and_one_that_always_sends_more_does_not() -> None:
    play = Play(population([4], [[0, 1, 2, 3]]))
    sends_more = {"scale_out_transmit_flow": 1.3 * 8e9}
    play.after(90, [AT_WORK | sends_more, AT_WORK, AT_WORK, AT_WORK])
    assert names(play.after(9, [AT_WORK | sends_more, AT_WORK, AT_WORK, AT_WORK])) == ["busy"] * 4
    waits = slowed(0.75)
    found = play.after(9, [waits, waits, waits, waits | {"scale_out_transmit_flow": 1.25 * 6e9}])
    assert names(found) == ["busy", "busy", "busy", "straggling"]


def test_mended_memory_errors_that_slow_a_family_by_a_tenth_hold_it_up_and_those_that_do_not_only_degrade() -> None:
    play = Play(population([8], [[0, 1, 2, 3], [4, 5, 6, 7]]))
    play.after(60, [AT_WORK] * 8)
    slower, errors = {"power": 0.91 * 4200, "storage_read_flow": 0.93 * 2e8}, {"faults": 2.0}
    by_errors = [AT_WORK | slower | errors, *[AT_WORK | slower] * 3]
    found = play.after(10, [*by_errors, AT_WORK | errors, *[AT_WORK] * 3])
    assert names(found) == ["straggling", *["busy"] * 3, "degraded", *["busy"] * 3]


def test_a_device_that_is_lost_while_work_goes_on_was_not_given_out() -> None:
    play = Play(population([1]))
    works = AT_WORK | {"allocatable_share": 1.0}
    del works["device_share"]
    lost = works | {"allocatable_share": 0.75, "accelerator_memory_used": 3.75e11, "power": 3200.0}
    play.after(60, [works])
    play.second([lost | {"accelerator_utilisation": 0.05, "matrix_pipe_activity": 0.0, "power": 900.0}])
    assert names(play.after(8, [lost])) == ["degraded"]
    assert names(play.after(8, [lost])) == ["degraded"]


def test_a_device_that_is_lost_while_a_server_rests_was_not_given_out() -> None:
    rests = server(0.05, 1e5) | {"allocatable_share": 1.0}
    play = Play(population([1]), noise=0.0)
    play.after(30, [server(0.3, 1e7) | {"allocatable_share": 1.0}])
    play.after(10, [rests])
    lost = {"allocatable_share": 0.75, "accelerator_memory_used": 3.75e11}
    assert names(play.after(10, [server(0.3, 1e7) | lost])) == ["degraded"]


def test_faults_of_a_member_that_had_nothing_to_do_are_no_hang_though_nobody_measures_its_memory() -> None:
    def without_memory(does: dict[str, float]) -> dict[str, float]:
        return {name: value for name, value in does.items() if name != "accelerator_memory_used"}

    works, rests = without_memory(AT_WORK), without_memory(UNTAKEN)
    play = Play(population([4], [[0, 1, 2, 3]]))
    play.after(30, [rests] * 4)
    play.after(5, [rests] * 3 + [rests | {"faults": 1.0}])
    for found in play.seconds(20, [works] * 3 + [rests | {"faults": 1.0}]):
        assert names(found)[3] != "faulty"


def test_a_share_that_is_what_a_load_leaves_free_tells_of_no_missing_accelerator() -> None:
    rests = {"accelerator_utilisation": 0.02, "accelerator_memory_used": 3e9, "allocatable_share": 0.62}
    works = rests | {"accelerator_utilisation": 0.97}
    play = Play(population([1]), noise=0.0)
    play.after(2, [rests])
    for second in range(120):
        found = play.second([works | {"allocatable_share": max(0.62 - 0.01 * second, 0.0)}])
        assert second < 3 or names(found) == ["busy"]
