"""Replicas of serving jobs, from the load that was told to how many there are."""

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from jobs.federations import NOW, before, job

from kuayu.jobs import replicas
from kuayu.jobs.replicas import ServingView, carried_by, plan

NEED = {"minimum": 1, "maximum": 4, "rate": 10.0, "startup": 15.0, "cool_down": 100.0}
PRESENT = datetime.fromisoformat(NOW).timestamp()


def replica(name: str, age: float, state: str = "running", *, leaving: bool = False) -> Any:
    return {"id": name, "state": state, "added_at": before(age), "leaving": leaving}


def serving(*loads: tuple[float, float], here: int = 1, **members: Any) -> ServingView:
    """A serving job: seconds before now and requests a second of what was told, and replicas that are long there."""
    told = [(PRESENT - age, load) for age, load in loads]
    need = {**NEED, **members.pop("need", {})}
    view: Any = {
        "job": {**job("chat", 1), "serving": need},
        "loads": told,
        "last": told[-1] if told else None,
        "announced": [],
        "replicas": [replica(f"chat.{number}", 1000.0 - number) for number in range(1, here + 1)],
        "ended_at": None,
        "serial": here,
    }
    return view | members


STEADY = [(age, 5.0) for age in range(300, 0, -10)]


@pytest.mark.parametrize(
    ("load", "number"), [(0.0, 1), (10.0, 1), (10.1, 2), (20.0, 2), (30.000000000001, 3), (39.0, 4), (500.0, 4)]
)
def test_as_many_replicas_as_carry_a_load_within_the_limits(load: float, number: int) -> None:
    assert carried_by(load, NEED) == number


def test_before_any_load_is_told_a_job_has_its_least() -> None:
    planned = plan(serving(here=0), NOW)
    assert (planned.wanted, planned.add, planned.remove, planned.load) == (1, 1, (), None)
    assert "no load was told yet" in planned.reason


def test_replicas_are_added_at_once_when_the_load_rises_and_the_reason_says_by_what() -> None:
    planned = plan(serving(*STEADY, (0.0, 25.0)), NOW)
    assert planned.wanted >= 3
    assert planned.add == planned.wanted - 1
    assert planned.load == 25.0
    assert planned.predicted is not None
    assert 25.0 <= planned.predicted <= replicas.MAX_RISE * 25.0
    assert planned.reason.startswith("25 requests/s come in and up to ")


def test_a_load_that_rises_steadily_is_met_before_it_is_there() -> None:
    rising = [(age, 28.0 - age / 20) for age in range(400, 0, -10)]
    planned = plan(serving(*rising, (0.0, 28.5), here=3), NOW)
    assert planned.load == 28.5
    assert planned.predicted is not None
    assert planned.predicted > 28.5


def test_a_report_such_as_never_before_does_not_ask_for_more_than_twice_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "_forecast", lambda *_: 1e6)
    assert plan(serving(*STEADY, (0.0, 5.0)), NOW).predicted == 10.0


def test_replicas_go_when_the_load_of_the_cool_down_needs_them_no_longer_the_youngest_first() -> None:
    high = [(age, 35.0) for age in range(300, 150, -10)]
    low = [(age, 5.0) for age in range(145, -1, -10)]
    planned = plan(serving(*high, *low, here=4), NOW)
    assert planned.add == 0
    assert planned.remove == tuple(f"chat.{number}" for number in range(4, planned.wanted, -1))
    assert planned.wanted <= 2


def test_replicas_stay_for_a_cool_down() -> None:
    high = [(age, 35.0) for age in range(300, 50, -10)]
    low = [(age, 5.0) for age in range(45, -1, -10)]
    planned = plan(serving(*high, *low, here=4), NOW)
    assert (planned.wanted, planned.remove) == (4, ())
    assert "it keeps the 4 that its load of the last 100 s needed" in planned.reason


def test_none_goes_within_a_cool_down_of_when_the_last_one_came() -> None:
    four = [replica(f"chat.{number}", 1000.0) for number in range(1, 4)]
    planned = plan(serving(*STEADY, replicas=[*four, replica("chat.4", 99.0)]), NOW)
    assert (planned.wanted, planned.remove) == (4, ())
    later = plan(serving(*STEADY, replicas=[*four, replica("chat.4", 101.0)]), NOW)
    assert later.remove[0] == "chat.4"


def test_the_number_changes_its_direction_once_in_a_cool_down_at_most() -> None:
    """A load that goes to and fro every half minute, looked at every five seconds for an hour."""
    loads: list[tuple[float, float]] = []
    here: list[tuple[str, float]] = [("chat.0", 0.0)]
    turns, last = [], 0
    for second in range(0, 3600, 5):
        loads.append((float(second), 35.0 if second // 30 % 2 else 5.0))
        view = serving(here=0)
        shift = PRESENT - second
        view["loads"] = [(at + shift, load) for at, load in loads]
        view["last"] = view["loads"][-1]
        view["replicas"] = [replica(name, second - at) for name, at in here]
        planned = plan(view, NOW)
        here = [(name, at) for name, at in here if name not in planned.remove]
        here += [(f"chat.{second}.{number}", float(second)) for number in range(planned.add)]
        direction = (planned.add > 0) - (len(planned.remove) > 0)
        if direction and direction != last:
            turns.append(second)
            last = direction
    assert len(here) == 4
    assert all(later - earlier >= 100 for earlier, later in pairwise(turns[1:]))


def test_what_is_announced_counts_from_when_replicas_for_it_have_to_be_started() -> None:
    def announced(begins: float) -> Any:
        return [{"begins_at": before(-begins), "ends_at": before(-begins - 60), "rate": 40.0}]

    soon = plan(serving(*STEADY, (0.0, 5.0), announced=announced(19.0)), NOW)
    late = plan(serving(*STEADY, (0.0, 5.0), announced=announced(21.0)), NOW)
    assert (soon.wanted, late.wanted) == (4, 1)
    assert plan(serving(*STEADY, (0.0, 5.0), announced=announced(-61.0)), NOW).wanted == 1


def test_a_job_of_which_nothing_is_told_any_more_keeps_what_it_has() -> None:
    planned = plan(serving((101.0, 5.0), here=3), NOW)
    assert (planned.wanted, planned.add, planned.remove, planned.load) == (3, 0, (), None)
    assert "nothing was told of its load lately" in planned.reason


def test_one_that_has_ended_by_itself_is_replaced_after_a_rest() -> None:
    assert plan(serving(here=0, ended_at=PRESENT - 59.0), NOW).add == 0
    assert plan(serving(here=0, ended_at=PRESENT - 61.0), NOW).add == 1


def test_who_waits_goes_before_who_runs_and_who_leaves_does_not_count() -> None:
    there = [replica("a", 500.0), replica("b", 900.0, "queued"), replica("c", 400.0, leaving=True)]
    planned = plan(serving(*STEADY, replicas=there), NOW)
    assert (planned.wanted, planned.running, planned.remove) == (1, 1, ("b",))
