"""The timeline of an incident, from the record of the control plane and the diaries of workers."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kuayu.live.findings import Entry, Timeline, account, spread
from kuayu.live.supervisor import Kind


def note(at: float, kind: str, **particulars: Any) -> dict[str, Any]:
    return {"at": at, "kind": kind, **particulars}


def step(at: float, number: int, generation: int, loss: float | None = None) -> dict[str, Any]:
    loss = 1.0 / number if loss is None else loss
    return note(at, "step", step=number, loss=loss, generation=generation, world=2)


def plan(at: float, generation: int, members: list[str], removed: list[str], again: int) -> dict[str, Any]:
    return note(at, "plan", generation=generation, members=members, removed=removed, restore=0, again=again)


def after_a_kill() -> Timeline:
    """Steps each second to 12; ``b`` dies at 12.25, and the job goes on from step 10 with ``c``."""
    line = Timeline()
    for each in "abc":
        line.take(note(0.0, "joined", worker=each, domain=each))
    line.take(plan(0.0, 1, ["a", "b"], [], 0))
    for number in range(1, 13):
        line.take(step(float(number), number, 1))
    line.struck(Kind.kill, "b", 12.25)
    line.take(note(13.0, "verdict", worker="b", fault="ended"))
    line.take(plan(13.5, 2, ["a", "c"], ["b"], 2))
    line.take(note(14.0, "placed", generation=2))
    for number in (11, 12, 13):
        line.take(step(4.0 + number, number, 2))
    return line


def test_delays_run_from_the_fault() -> None:
    (incident,) = after_a_kill().incidents
    assert incident.since(incident.detected) == 0.75
    assert incident.since(incident.decided) == 1.25
    assert incident.since(incident.placed) == 1.75
    assert incident.since(incident.first) == 2.75
    assert incident.fault == "ended"
    assert incident.world == 2


def test_steps_made_again_are_no_progress() -> None:
    line = after_a_kill()
    (incident,) = line.incidents
    assert incident.again == 2
    assert incident.progress == 17.0
    assert incident.interruption == 17.0 - 12.0
    assert [number for _, number in line.progress] == list(range(1, 14))
    assert line.open is None


def test_a_second_plan_adds_to_what_is_made_again() -> None:
    line = Timeline()
    line.take(plan(0.0, 1, ["a", "b"], [], 0))
    line.take(step(1.0, 1, 1))
    line.struck(Kind.hang, "b", 1.5)
    line.take(note(2.0, "verdict", worker="b", fault="unreachable"))
    line.take(plan(2.0, 2, ["a"], ["b"], 1))
    line.take(plan(3.0, 3, ["a"], [], 1))
    line.take(note(3.5, "placed", generation=3))
    line.take(step(4.0, 1, 3))
    line.take(step(5.0, 2, 3))
    (incident,) = line.incidents
    assert (incident.again, incident.decided, incident.placed, incident.first) == (2, 2.0, 3.5, 4.0)
    assert incident.interruption == 4.0


def test_steps_that_go_on_slowly_are_no_interruption() -> None:
    line = Timeline()
    line.take(plan(0.0, 1, ["a", "b"], [], 0))
    line.take(step(1.0, 1, 1))
    line.struck(Kind.slow, "b", 1.0)
    for number in range(2, 6):
        line.take(step(float(number), number, 1))
    line.take(note(5.0, "verdict", worker="b", fault="slow"))
    line.take(plan(5.5, 2, ["a"], ["b"], 0))
    line.take(step(7.5, 6, 2))
    (incident,) = line.incidents
    assert incident.interruption == 2.5
    assert incident.since(incident.first) == 6.5


def test_a_verdict_on_somebody_else_is_a_false_alarm() -> None:
    line = after_a_kill()
    line.take(note(20.0, "verdict", worker="a", fault="slow"))
    assert [each["worker"] for each in line.false_alarms] == ["a"]


def test_a_suspicion_that_passes_is_counted_and_one_that_led_to_a_verdict_is_not() -> None:
    line = after_a_kill()
    line.take(note(20.0, "suspicion", worker="a", stage="suspected"))
    line.take(note(20.1, "suspicion", worker="a", stage="none"))
    line.take(note(20.1, "suspicion", worker="b", stage="none"))
    assert line.suspicions == 1


def test_a_step_with_another_loss_is_told() -> None:
    line = after_a_kill()
    line.take(step(18.0, 13, 2, loss=math.pi))
    assert line.differing == [13]


MEMBERS = {1: ("a", "b"), 2: ("a", "c")}


def test_diaries_in_order_are_clean() -> None:
    entries = [Entry("a", 1.0, 1, 1, 0.5), Entry("b", 1.1, 1, 1, 0.5), Entry("c", 2.0, 2, 1, 0.5)]
    assert account(entries, MEMBERS).clean


def test_a_worker_that_comes_back_is_found() -> None:
    late = Entry("b", 2.5, 1, 2, 0.4)
    found = account([Entry("a", 1.0, 1, 1, 0.5), Entry("c", 2.0, 2, 1, 0.5), late], MEMBERS)
    assert found.twice == (late,)
    assert not found.clean


def test_a_stranger_is_found() -> None:
    stranger = Entry("b", 3.0, 2, 1, 0.5)
    assert account([Entry("a", 2.0, 2, 1, 0.5), stranger], MEMBERS).strangers == (stranger,)


def test_two_results_of_a_step_are_found() -> None:
    assert account([Entry("a", 1.0, 1, 1, 0.5), Entry("b", 1.0, 1, 1, 0.25)], MEMBERS).differing == (1,)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_half_lie_below_the_median_and_none_above_the_most(figures: list[float]) -> None:
    found = spread(figures)
    assert found is not None
    assert 2 * sum(each <= found[0] for each in figures) >= len(figures)
    assert 2 * sum(each >= found[0] for each in figures) >= len(figures)
    assert found[1] == max(figures)
