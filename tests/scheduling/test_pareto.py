"""Fronts of small instances: by hand, against all schedules that there are, and against the exact ones of the suite."""

from collections import Counter
from itertools import pairwise, permutations, product
from math import ceil
from time import monotonic
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.refusals import RepeatedName
from kuayu.scheduling.pareto import Candidate, Options, Trial, front, search
from kuayu.scheduling.parse import snapshot_of
from kuayu_conformance.testbed.scheduling.bounds import Instance, Task
from kuayu_conformance.testbed.scheduling.bounds import Option as ExactOption
from kuayu_conformance.testbed.scheduling.bounds import front as exact_front
from kuayu_conformance.testbed.scheduling.values import Placement
from kuayu_schemas import schema

SLOT = 600.0
GIGABIT = 1e9


def domain(name: str, devices: int, accelerator: str = "plain", **pool: Any) -> dict[str, Any]:
    made = {"accelerator": accelerator, "devices": devices, "free": devices, "devices_per_node": 8}
    return {"id": name, "pools": [made | pool]}


def link(source: str, target: str, gigabits: float = 8.0, tariff: float = 1.0) -> dict[str, Any]:
    """Money for a gigabit."""
    return {
        "source": source, "target": target, "bandwidth": gigabits * GIGABIT, "available": gigabits * GIGABIT,
        "round_trip_time": 0.01, "tariff": tariff / GIGABIT,
    }  # fmt: skip


def job(
    name: str, devices: int, seconds: float, at: str = "a", gigabytes: float = 0.0, **members: Any
) -> dict[str, Any]:
    """So many seconds on what it asks for, of the plain device; data are at one place."""
    spec = {
        "id": name,
        "submitted_at": "2026-11-21T09:00:00Z",
        "devices": {"minimum": devices, "maximum": devices},
        "task_profile": "u",
        "duration": {"expected": seconds, "low": seconds, "high": seconds, "coverage": 0.8},
        "split_modes": ["none"],
        "data": [{"id": f"data-{name}", "size": gigabytes * 1e9, "domains": [at]}],
    }
    return {"spec": spec | members}


def state(domains: list[dict[str, Any]], links: list[dict[str, Any]], *waiting: dict[str, Any]) -> dict[str, Any]:
    return {
        "revision": {"epoch": "e", "number": 7},
        "now": "2026-11-21T10:00:00Z",
        "accelerators": [
            {"id": "plain", "memory": 80e9, "indices": [{"profile": "u", "value": 1.0}]},
            {"id": "fast", "memory": 80e9, "indices": [{"profile": "u", "value": 2.0}]},
        ],
        "domains": domains,
        "links": links,
        "waiting": list(waiting),
        "running": [],
    }


def asked(what: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    request = {"state": what, "slot": SLOT} | more
    assert schema.errors("ParetoRequest", request) == []
    answer = front(request)
    assert schema.errors("ParetoFront", answer) == []
    solutions: list[dict[str, Any]] = answer["solutions"]
    return solutions


def ends(solutions: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return [(each["mean_period"], each["communication_cost"]) for each in solutions]


def where(solution: dict[str, Any]) -> dict[str, list[str]]:
    return {row["job"]: [share["domain"] for share in row["placement"]["shares"]] for row in solution["jobs"]}


def test_a_job_stays_with_its_data_or_pays_for_being_quicker() -> None:
    """At home 1200 s; 100 GB move in 100 s for 800, and then it takes 600 s."""
    what = state([domain("a", 8), domain("b", 8, "fast")], [link("a", "b")], job("x", 8, 1200.0, "a", 100.0))
    quick, cheap = asked(what)
    assert (where(quick), where(cheap)) == ({"x": ["b"]}, {"x": ["a"]})
    assert ends([quick, cheap]) == [(600.0 + 100.0 + 600.0, pytest.approx(800.0)), (600.0 + 1200.0, 0.0)]
    assert quick["jobs"][0]["start"] == 600.0


def test_the_shorter_goes_first_where_there_is_room_for_one() -> None:
    """The short one ends in its second slot, so that the long one starts in the third slot."""
    what = state([domain("a", 8)], [], job("long", 8, 6000.0), job("short", 8, 700.0))
    (only,) = asked(what)
    assert {row["job"]: row["start"] for row in only["jobs"]} == {"short": 600.0, "long": 1800.0}
    assert only["mean_period"] == pytest.approx((600.0 + 700.0 + 1800.0 + 6000.0) / 2)


def test_a_small_job_starts_beside_a_large_one_only_where_it_fits() -> None:
    what = state([domain("a", 8)], [], job("x", 6, 600.0), job("y", 2, 600.0), job("z", 3, 600.0))
    (only,) = asked(what)
    starts = Counter(row["start"] for row in only["jobs"])
    assert starts == {600.0: 2, 1200.0: 1}


def test_a_job_that_fits_nowhere_else_is_spread_and_pays_for_what_is_exchanged() -> None:
    talk = {"step_time": 10.0, "exchange": 1e9, "boundary": 1e9, "checkpoint_size": 1e9}
    spread = job("x", 12, 6000.0, split_modes=["none", "periodic"], communication=talk, sync_period=50)
    what = state([domain("a", 8), domain("b", 8)], [link("a", "b"), link("b", "a")], spread)
    for each in asked(what):
        (row,) = each["jobs"]
        assert row["placement"]["split_mode"] == "periodic"
        assert row["placement"]["sync_period"] == 50
        assert sum(share["devices"] for share in row["placement"]["shares"]) == 12
        assert each["communication_cost"] > 0.0


def test_a_job_that_needs_every_domain_gets_them_all() -> None:
    talk = {"step_time": 100.0, "exchange": 1e9, "boundary": 1e9, "checkpoint_size": 1e9}
    names = "abcde"
    spread = job("x", 40, 6000.0, split_modes=["synchronous"], communication=talk)
    links = [link(one, other) for one, other in permutations(names, 2)]
    (only,) = asked(state([domain(name, 8) for name in names], links, spread))
    (row,) = only["jobs"]
    assert sorted(share["domain"] for share in row["placement"]["shares"]) == list(names)
    assert {share["devices"] for share in row["placement"]["shares"]} == {8}


def test_a_periodic_way_takes_the_seconds_and_money_of_the_speed_that_is_laid_down() -> None:
    """Worked out from the clause: H = 50 steps of 10 s; 8 Gbit both ways take 1 s and hide behind two thirds of a step.

    The penalty is (1 + 0.0240 · ln(1 + 50/18.4))^(1/0.3658) = 1.0883, so that 6000 s become 6530 s: 653 steps, or 13.06
    rounds of which each moves 8 Gbit both candidates at 1 a gigabit.
    """
    talk = {"step_time": 10.0, "exchange": 1e9, "boundary": 1e9, "checkpoint_size": 1e9}
    spread = job("x", 12, 6000.0, split_modes=["periodic"], communication=talk, sync_period=50)
    what = state([domain("a", 6), domain("b", 6)], [link("a", "b"), link("b", "a")], spread)
    seconds = 6000.0 * (1 + 0.0240 * np.log1p(50 / 18.4)) ** (1 / 0.3658)
    (only,) = asked(what)
    assert only["mean_period"] == pytest.approx(600.0 + seconds)
    assert only["communication_cost"] == pytest.approx(seconds / 500.0 * 16.0)


def test_a_checkpoint_is_moved_and_read_before_a_job_goes_on() -> None:
    """30 s, and 122 070 312.5 B/s for each of eight devices; a third of the work is done."""
    talk = {"step_time": 1.0, "exchange": 1e9, "boundary": 1e9, "checkpoint_size": 8 * 122_070_312.5 * 10}
    entry = job("x", 8, 1200.0, communication=talk) | {"done": 3200.0, "checkpoint_domain": "a"}
    (only,) = asked(state([domain("a", 8)], [], entry))
    assert only["mean_period"] == pytest.approx(600.0 + 30.0 + 10.0 + 800.0)


def test_pinned_data_memory_kinds_and_reach_bind_a_job() -> None:
    pinned = job("x", 8, 600.0, data=[{"id": "d", "size": 1e9, "domains": ["a"], "pinned": True}])
    domains = [domain("a", 8), domain("b", 8, "fast")]
    assert [where(each) for each in asked(state(domains, [link("a", "b")], pinned))] == [{"x": ["a"]}]
    cut = state(domains, [], job("x", 8, 600.0, gigabytes=1.0))
    assert [where(each) for each in asked(cut)] == [{"x": ["a"]}]
    large = state(domains, [link("a", "b")], job("x", 8, 600.0, memory_per_device=100e9))
    assert asked(large) == []
    away = state([domains[0] | {"reachable": False}, domains[1]], [link("a", "b")], job("x", 8, 600.0, gigabytes=1.0))
    assert [where(each) for each in asked(away)] == [{"x": ["b"]}]


def test_nothing_waits_and_nothing_is_answered() -> None:
    assert asked(state([domain("a", 8)], [])) == []


def test_names_are_checked() -> None:
    with pytest.raises(RepeatedName):
        front({"state": state([domain("a", 8), domain("a", 8)], []), "slot": SLOT})


def test_nodes_are_given_back_and_offers_are_never_overbought() -> None:
    """Four jobs of twelve devices on sixteen run one after the other; what is reserved is used as far as it goes."""
    nodes = [{"id": f"n{number}", "devices": 8, "free": 8, "switch": "s"} for number in range(2)]
    offers = [
        {"purchase": "on_demand", "devices": 16, "price": 5.0},
        {"purchase": "reserved", "devices": 12, "price": 3.0},
    ]
    jobs = [job(f"j{number}", 12, 600.0) for number in range(3)]
    what = state([domain("a", 16, nodes=nodes, offers=offers)], [], *jobs, job("late", 4, 600.0))
    (only,) = asked(what)
    held: Counter[tuple[float, str]] = Counter()
    bought: Counter[tuple[float, str]] = Counter()
    for row in only["jobs"]:
        (share,) = row["placement"]["shares"]
        bought[row["start"], share["purchase"]] += share["devices"]
        for node in share["nodes"]:
            held[row["start"], node["node"]] += node["devices"]
    assert max(held.values()) == 8
    assert all(devices <= {"on_demand": 16, "reserved": 12}[purchase] for (_, purchase), devices in bought.items())


def test_no_more_solutions_than_asked_for_and_both_ends_among_them() -> None:
    domains = [domain("a", 8), domain("b", 8, "fast")]
    jobs = [job(f"j{number}", 2, 3000.0 + 500 * number, gigabytes=10.0 * (number + 1)) for number in range(4)]
    what = state(domains, [link("a", "b")], *jobs)
    whole = asked(what)
    assert len(whole) > 5
    some = asked(what, solutions=5)
    assert len(some) == 5
    assert ends(some)[0] == ends(whole)[0]
    assert ends(some)[-1] == ends(whole)[-1]
    assert len(asked(what, solutions=1)) == 1


def candidates(*rows: tuple[int, int, float, float]) -> tuple[Candidate, ...]:
    """Pool, devices, seconds, money."""
    return tuple(Candidate(((pool, devices),), 0, 1, seconds, money) for pool, devices, seconds, money in rows)


a_way = st.tuples(st.integers(0, 1), st.integers(1, 4), st.floats(1.0, 30.0), st.integers(0, 5).map(float))
few_jobs = st.lists(st.lists(a_way, min_size=1, max_size=3).map(lambda rows: candidates(*rows)), min_size=1, max_size=4)
ROOM = np.array([4, 5])


@given(few_jobs)
@settings(max_examples=40, deadline=None)
def test_few_jobs_get_the_exact_front(options: list[tuple[Candidate, ...]]) -> None:
    """Against all candidates and all orders."""
    trial = Trial(options, ROOM, 10.0)
    every = list(product(*(range(len(each)) for each in options)))
    orders = list(permutations(range(len(options))))
    pairs = list(product(every, orders))
    batch = trial.run(np.array([candidate for candidate, _ in pairs]), np.array([order for _, order in pairs]))
    points = list(zip(batch.period.tolist(), batch.money.tolist(), strict=True))
    found, _ = search(options, ROOM, 10.0, 1000)
    for period, money in points:
        assert any(each.period <= period + 1e-6 and each.money <= money + 1e-6 for each in found)
    assert all(one.period < other.period and one.money > other.money for one, other in pairwise(found))


@given(few_jobs)
@settings(max_examples=25, deadline=None)
def test_few_jobs_get_the_front_of_the_integer_programme(options: list[tuple[Candidate, ...]]) -> None:
    tasks = tuple(
        Task(
            f"j{number}",
            0.0,
            1.0,
            tuple(
                ExactOption(Placement(()), candidate.holding, candidate.seconds, candidate.money) for candidate in each
            ),
        )
        for number, each in enumerate(options)
    )
    found, _ = search(options, ROOM, 10.0, 1000)
    for point in exact_front(Instance(tasks, tuple(ROOM.tolist()), 10.0)):
        assert any(each.period <= point.period * 1.001 and each.money <= point.money * 1.001 for each in found)


@given(few_jobs, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_many_schedules_at_once_are_those_made_one_by_one(options: list[tuple[Candidate, ...]], chance: Any) -> None:
    trial = Trial(options, ROOM, 10.0)
    chosen = np.array([[chance.randrange(len(each)) for each in options] for _ in range(6)])
    orders = np.array([chance.sample(range(len(options)), len(options)) for _ in range(6)])
    batch = trial.run(chosen, orders)
    alone = np.array([trial.single(candidate, order) for candidate, order in zip(chosen, orders, strict=True)])
    assert batch.starts.tolist() == alone.tolist()
    for candidate, starts in zip(chosen, batch.starts, strict=True):
        held: Counter[tuple[int, int]] = Counter()
        for number, start in enumerate(starts.tolist()):
            its = options[number][candidate[number]]
            ((pool, devices),) = its.holding
            for slot in range(start, start + max(1, ceil(its.seconds / 10.0 - 1e-6))):
                held[pool, slot] += devices
        assert all(devices <= ROOM[pool] for (pool, _), devices in held.items())


def test_many_jobs_get_a_front_as_well() -> None:
    domains = [domain("a", 16), domain("b", 8, "fast")]
    jobs = [
        job(f"j{number}", 1 + number % 5, 600.0 * (1 + number % 7), gigabytes=float(number)) for number in range(90)
    ]
    found = ends(asked(state(domains, [link("a", "b")], *jobs), solutions=20))
    assert len(found) > 5
    assert all(one[0] < other[0] and one[1] > other[1] for one, other in pairwise(found))


def many(jobs: int) -> dict[str, Any]:
    """Two domains for whose devices so many jobs wait that a search goes on for seconds."""
    queue = [job(f"j{n}", 1 + n % 5, 600.0 * (1 + n % 7), gigabytes=float(n)) for n in range(jobs)]
    return state([domain("a", 16), domain("b", 8, "fast")], [link("a", "b")], *queue)


@pytest.mark.parametrize("jobs", [20, 200])
def test_when_its_time_is_over_a_search_answers_what_it_has_and_says_so(jobs: int) -> None:
    """Time that was over when the search began is the shortest there can be: there is a schedule all the same."""
    answer = front({"state": many(jobs), "slot": SLOT, "time_limit": 1.0}, begun=monotonic() - 1.0)  # type: ignore[arg-type]
    assert answer["partial"]
    assert [len(each["jobs"]) for each in answer["solutions"]] == [jobs]


def test_more_time_brings_more_and_enough_of_it_brings_all() -> None:
    few = many(4)
    whole = asked(few)
    assert "partial" not in whole
    assert ends(asked(few, time_limit=600.0)) == ends(whole)
    assert "partial" not in asked(few, time_limit=600.0)
    some, later = (ends(asked(many(40), time_limit=limit)) for limit in (0.1, 600.0))
    assert len(some) < len(later)
    assert all(any(p <= q and m <= n for p, m in later) for q, n in some)


def test_the_same_request_gets_the_same_answer() -> None:
    domains = [domain("a", 8), domain("b", 8, "fast")]
    jobs = [job(f"j{number}", 3 + number % 3, 900.0 * (1 + number), gigabytes=9.0 + number) for number in range(6)]
    what = state(domains, [link("a", "b")], *jobs)
    assert asked(what) == asked(what)


def test_a_way_elsewhere_takes_devices_of_another_pool_so_that_no_other_beats_it() -> None:
    """Domain b is no faster, but it may be free."""
    what = state([domain("a", 8), domain("b", 8)], [link("a", "b")], job("x", 4, 600.0, gigabytes=1.0))
    snapshot = snapshot_of(what)
    (at_home, away) = Options(snapshot, snapshot.pools.free).of(0)
    assert at_home.holding == ((0, 4),)
    assert away.holding == ((1, 4),)
    assert (at_home.seconds, at_home.money) == (600.0, 0.0)
    assert away.seconds == pytest.approx(601.0)


def test_a_job_takes_no_number_of_devices_that_it_cannot_work_with() -> None:
    """Two, four or six; five are free, and three quarters of them are three."""
    entry = job("x", 6, 600.0)
    entry["spec"]["devices"] = {"minimum": 2, "maximum": 6, "step": 2}
    snapshot = snapshot_of(state([domain("a", 5)], [], entry))
    assert [candidate.holding for candidate in Options(snapshot, snapshot.pools.free).of(0)] == [((0, 4),), ((0, 2),)]


def test_only_names_are_left_to_names() -> None:
    domains = [domain("a", 8), domain("b", 8, "fast")]
    jobs = [job(name, 6, 3000.0, "a", 30.0) for name in ("x", "y", "z")]
    one = asked(state(domains, [link("a", "b")], *jobs))
    other = [domain("q", 8), domain("p", 8, "fast")]
    renamed = [job(name, 6, 3000.0, "q", 30.0) for name in ("m", "l", "k")]
    two = asked(state(other, [link("q", "p")], *renamed))
    assert ends(one) == ends(two)
