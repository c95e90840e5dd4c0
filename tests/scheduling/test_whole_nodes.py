"""Jobs that need whole nodes, or some of each: how long they wait, what is kept for them, and who makes room."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.states import accelerator, domain, pool, request, running, spec
from scheduling.test_preemption import DAY, HOUR, placed, resized

Json = dict[str, Any]
WHOLE = {"nodes": {"within": "node"}}


def nodes_of(held: list[Json], free: list[int], switches: str = "") -> Json:
    """A domain whose nodes of eight have so many free, beside what jobs hold."""
    nodes = [
        {"id": f"n{number}", "devices": 8, "free": left, **({"switch": switches[number]} if switches else {})}
        for number, left in enumerate(free)
    ]
    used = sum(share["devices"] for job in held for share in job["placement"]["shares"])
    assert used + sum(free) <= 8 * len(free)
    return domain("a", pool(8 * len(free), sum(free), nodes=nodes))


def on(name: str, where: dict[str, int], seconds: float = DAY, **others: Any) -> Json:
    """A job at its begin, with so many devices on each node."""
    count = sum(where.values())
    runs = running(spec(name, count, seconds, **others), [("a", count)], rate=float(count))
    runs["placement"]["shares"][0]["nodes"] = [{"node": node, "devices": devices} for node, devices in where.items()]
    return runs


def decided(held: list[Json], free: list[int], *queue: Json, switches: str = "") -> dict[str, Json]:
    """Decisions by job, explained."""
    return placed(request([nodes_of(held, free, switches)], queue, running=held, explain=True))


def high(count: int, nodes: Json, seconds: float = HOUR) -> Json:
    """A job of high priority that needs something of nodes."""
    return spec("high", count, seconds, priority=10, nodes=nodes)


def test_one_node_is_cleared_for_a_job_that_needs_a_whole_one_and_the_others_are_left_alone() -> None:
    """Eight devices are free all the same, one on each node."""
    held = [on(f"r{number}", {f"n{number}": 7}, seconds=(number + 2) * DAY) for number in range(8)]
    made = decided(held, [1] * 8, high(8, {"within": "node"}))
    assert [job for job in made if made[job]["verb"] == "stop"] == [job for job in made if job != "high"]
    (stopped,) = [job for job in made if job != "high"]
    assert made[stopped]["explanation"]["beneficiary"] == "high"
    assert made["high"]["verb"] == "wait"
    assert made["high"]["explanation"]["outcome"]["run_at"] == "2026-01-05T00:01:00.000Z"


def test_who_can_do_with_fewer_on_that_node_goes_on_with_fewer() -> None:
    elastic = {"minimum": 2, "maximum": 8, "requested": 8}
    held = [on(name, {node: 8}, devices=elastic) for name, node in (("r", "n0"), ("s", "n1"))]
    made = decided(held, [0, 0], high(4, {"within": "node"}))
    (changed,) = [job for job in made if job != "high"]
    assert resized(made, changed) == [4]


def test_as_many_nodes_are_cleared_as_are_needed_with_so_many_devices_on_each() -> None:
    held = [on(f"r{number}", {f"n{number}": 5}) for number in (0, 1, 3)]
    made = decided(held, [3, 3, 8, 3], high(16, {"devices_per_node": 8}))
    assert [made[job]["verb"] for job in made if job != "high"] == ["stop"]


def test_who_sits_on_several_of_the_nodes_is_stopped_once_and_nobody_beside_it() -> None:
    held = [on("wide", {"n0": 4, "n1": 4}), *(on(f"r{number}", {f"n{number}": 4}) for number in (0, 1))]
    made = decided(held, [0, 0], high(8, {"devices_per_node": 4}))
    assert {job: made[job]["verb"] for job in made} == {"high": "wait", "wide": "stop"}


def test_nodes_of_one_switch_are_cleared_for_a_job_that_needs_one_switch() -> None:
    held = [on("r", {"n0": 6}), on("s", {"n2": 6})]
    made = decided(held, [2, 8, 2, 2], high(16, {"within": "switch"}), switches="xxyy")
    assert {job: made[job]["verb"] for job in made} == {"high": "wait", "r": "stop"}
    per_node = decided(held, [2, 8, 2, 2], high(16, {"within": "switch", "devices_per_node": 8}), switches="xxyy")
    assert {job: per_node[job]["verb"] for job in per_node} == {"high": "wait", "r": "stop"}


def test_nobody_of_the_same_priority_is_stopped_for_a_node_and_the_wait_is_that_for_a_node() -> None:
    held = [on("soon", {"n0": 7}, HOUR), on("late", {"n1": 7}, DAY)]
    whole = spec("whole", 8, HOUR, **WHOLE)
    made = decided(held, [1, 1], whole)
    assert {job: made[job]["verb"] for job in made} == {"whole": "wait"}
    assert made["whole"]["explanation"]["outcome"]["run_at"] == "2026-01-05T01:00:00.000Z"
    assert "It waits about 3600 s" in made["whole"]["explanation"]["reason"]


def test_the_node_that_a_job_waits_for_is_kept_from_those_who_would_still_be_there() -> None:
    held = [on("soon", {"n0": 7}, HOUR, priority=1), on("late", {"n1": 7}, DAY, priority=1)]
    whole = spec("whole", 8, HOUR, priority=1, **WHOLE)
    for seconds, node in ((10 * HOUR, "n1"), (0.5 * HOUR, "n0")):
        # of nodes alike the first is taken, unless it is kept
        small = spec("small", 1, seconds)
        made = decided(held, [1, 1], whole, small)
        assert made["small"]["placement"]["shares"][0]["nodes"] == [{"node": node, "devices": 1}]
    none_left = decided(held, [1, 0], whole, spec("small", 1, 10 * HOUR))
    assert none_left["small"]["verb"] == "wait"


def test_what_is_cleared_for_one_is_not_given_to_the_next() -> None:
    held = [on("r", {"n0": 7}), on("s", {"n1": 7}, 30 * DAY, priority=10)]
    made = decided(held, [1, 1], high(8, {"within": "node"}), spec("small", 1, 10 * HOUR))
    assert made["r"]["verb"] == "stop"
    assert made["small"]["placement"]["shares"][0]["nodes"] == [{"node": "n1", "devices": 1}]


def test_nothing_is_cleared_twice_for_who_waits_while_a_checkpoint_is_written() -> None:
    held = [on("r", {"n0": 7}), on("s", {"n1": 7})]
    made = decided(held, [1, 1], high(8, {"within": "node"}))
    (stopped,) = [job for job in made if job != "high"]
    for job in held:
        if job["spec"]["id"] == stopped:
            job |= {
                "phase": "interrupted",
                "ready_at": "2026-01-05T00:02:00Z",
                "interrupted_at": "2026-01-05T00:00:00Z",
            }
    assert [job for job in decided(held, [1, 1], high(8, {"within": "node"})) if job != "high"] == []


def test_two_jobs_that_need_a_node_are_not_both_told_that_they_start_on_it() -> None:
    held = [on("r", {"n1": 4}, HOUR)]
    made = decided(held, [8, 4], *(spec(name, 8, HOUR, **WHOLE) for name in ("one", "two")))
    assert sorted(made[job]["verb"] for job in ("one", "two")) == ["start", "wait"]
    (waits,) = [job for job in ("one", "two") if made[job]["verb"] == "wait"]
    assert made[waits]["explanation"]["outcome"]["run_at"] == "2026-01-05T01:00:00.000Z"


NEEDS = (
    {"within": "node"},
    {"devices_per_node": 4},
    {"within": "switch"},
    {"within": "switch", "devices_per_node": 8},
)


@st.composite
def crowded(draw: st.DrawFn) -> tuple[list[dict[str, int]], str]:
    """Four nodes with jobs on one, two or three of them, and their switches."""
    left = [8] * 4
    jobs: list[dict[str, int]] = []
    for _ in range(draw(st.integers(1, 8))):
        nodes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True))
        held = {node: draw(st.integers(1, left[node])) for node in nodes if left[node]}
        for node, devices in held.items():
            left[node] -= devices
        jobs.append({f"n{node}": devices for node, devices in held.items()})
    return [job for job in jobs if job], draw(st.sampled_from(["xxyy", "xyxy", "xxxx"]))


@given(crowded(), st.sampled_from(NEEDS), st.booleans())
@settings(deadline=None, max_examples=150)
def test_who_makes_room_for_a_job_is_enough_for_it_to_start_and_nobody_of_them_could_have_stayed(
    case: tuple[list[dict[str, int]], str], needs: Json, elastic: bool
) -> None:
    where, switches = case
    count = 16 if needs.get("devices_per_node") == 8 else 8

    def held(devices: list[dict[str, int]]) -> list[Json]:
        return [
            on(f"r{number}", nodes, devices={"minimum": 1 if elastic else held, "maximum": held})
            for number, nodes in enumerate(devices)
            if (held := sum(nodes.values()))
        ]

    def made(devices: list[dict[str, int]]) -> dict[str, Json]:
        free = [8 - sum(nodes.get(f"n{node}", 0) for nodes in devices) for node in range(4)]
        return decided(held(devices), free, high(count, needs), switches=switches)

    first = made(where)
    changes = {int(job[1:]): first[job] for job in first if job != "high"}
    left = [
        {share["node"]: share["devices"] for share in changes[number]["placement"]["shares"][0]["nodes"]}
        if number in changes and changes[number]["verb"] == "resize"
        else {}
        if number in changes
        else devices
        for number, devices in enumerate(where)
    ]
    assert first["high"]["verb"] == "start" or changes, "whoever is of the lowest priority can always make room"
    assert made(left)["high"]["verb"] == "start"
    for number in changes:
        stays = [where[place] if place == number else devices for place, devices in enumerate(left)]
        assert made(stays)["high"]["verb"] == "wait"


def test_the_next_in_line_waits_for_the_node_until_the_one_before_has_done() -> None:
    """Slow devices, on which it would take twenty times as long, are no better."""
    fast = domain("a", pool(8, 8, nodes=[{"id": "n0", "devices": 8, "free": 8}]))
    slow = domain("b", pool(8, 8, kind="slow"))
    queue = [spec(name, 8, 900.0, **WHOLE) for name in ("one", "two")]
    kinds = [accelerator(), accelerator("slow", 0.05)]
    made = placed(request([fast, slow], queue, accelerators=kinds, explain=True))
    assert sorted(made[job]["verb"] for job in ("one", "two")) == ["start", "wait"]
    (waits,) = [made[job] for job in ("one", "two") if made[job]["verb"] == "wait"]
    assert waits["explanation"]["outcome"]["run_at"] == "2026-01-05T00:15:00.000Z"


def test_who_is_behind_a_reservation_waits_until_that_is_over() -> None:
    held = [on("r", {"n0": 7}, HOUR, priority=1)]
    made = decided(held, [1], *(spec(name, 8, HOUR, **WHOLE) for name in ("one", "two")))
    starts = sorted(made[job]["explanation"]["outcome"]["run_at"] for job in ("one", "two"))
    assert starts == ["2026-01-05T01:00:00.000Z", "2026-01-05T02:00:00.000Z"]


def test_nobody_else_makes_room_while_devices_are_being_given_back() -> None:
    """A job that was told to shrink writes its checkpoint: what it gives up is neither free nor its own."""
    elastic = {"minimum": 2, "maximum": 8, "requested": 8}
    shrinks = on("r", {"n0": 4}, devices=elastic)
    shrinks |= {"phase": "staging", "done": 8.0, "ready_at": "2026-01-05T00:02:00Z"}
    shrinks["interrupted_at"] = "2026-01-05T00:00:00Z"
    del shrinks["rate"]
    made = decided([shrinks, on("s", {"n1": 8}, 2 * DAY, devices=elastic)], [0, 0], high(4, {"within": "node"}))
    assert {job: made[job]["verb"] for job in made} == {"high": "wait"}


def test_jobs_that_do_not_say_on_which_nodes_they_are_may_be_on_any() -> None:
    runs = running(spec("r", 8, HOUR, priority=1), [("a", 8)], rate=8.0)
    made = decided([runs], [0], spec("whole", 8, HOUR, **WHOLE))
    assert made["whole"]["explanation"]["outcome"]["run_at"] == "2026-01-05T01:00:00.000Z"


def test_whoever_comes_before_takes_the_nodes_that_are_not_cleared() -> None:
    held = [on("r", {"n0": 7}), on("s", {"n1": 7}, 30 * DAY, priority=11)]
    first = spec("first", 1, 300 * HOUR, priority=11)
    made = decided(held, [1, 1], first, high(8, {"within": "node"}))
    assert made["r"]["verb"] == "stop"
    assert made["first"]["placement"]["shares"][0]["nodes"] == [{"node": "n1", "devices": 1}]


def test_what_is_cleared_is_kept_however_many_wait() -> None:
    held = [on(f"r{number}", {f"n{number}": 7}) for number in range(12)]
    queue = [spec(f"h{number}", 8, 10 * HOUR, priority=10, **WHOLE) for number in range(10)]
    made = decided(held, [1] * 12, *queue, *(spec(f"t{number}", 1, 200 * HOUR, priority=5) for number in range(4)))
    cleared = {f"n{job[1:]}" for job in made if made[job]["verb"] == "stop"}
    assert len(cleared) == 10
    small = [made[job] for job in made if job[0] == "t" and made[job]["verb"] == "start"]
    assert len(small) == 2
    assert all(cleared.isdisjoint(nodes_in(decision)) for decision in small)


def nodes_in(decision: Json) -> set[str]:
    return {node["node"] for share in decision["placement"]["shares"] for node in share["nodes"]}


def test_who_needs_so_many_on_each_node_gives_up_whole_nodes_or_stops() -> None:
    wide = on("wide", {"n0": 8, "n1": 8}, devices={"minimum": 8, "maximum": 16}, nodes={"devices_per_node": 8})
    for needs in ({"within": "switch"}, {"within": "node"}, {"devices_per_node": 4}):
        made = decided([wide], [0, 0], high(4, needs), switches="xx")
        assert made["high"]["verb"] == "wait"
        assert made["wide"]["verb"] in ("stop", "resize")
        if made["wide"]["verb"] == "resize":
            assert resized(made, "wide") == [8]


def test_a_short_job_takes_what_a_long_one_may_not_have() -> None:
    """Both find one device free, on a node that is kept from the next hour on."""
    held = [on("soon", {"n0": 7}, HOUR, priority=2)]
    whole, small = spec("whole", 8, HOUR, priority=2, **WHOLE), spec("small", 1, 10 * HOUR, priority=1)
    made = decided(held, [1], whole, small, spec("tiny", 1, 1500.0))
    assert {job: made[job]["verb"] for job in made} == {"small": "wait", "tiny": "start", "whole": "wait"}
    assert made["small"]["explanation"]["outcome"]["run_at"] == "2026-01-05T02:00:00.000Z"


def test_who_could_shrink_is_stopped_where_that_is_not_enough() -> None:
    """To shrink costs it less for each device, and does not give up enough; nobody else is there."""
    elastic = {"minimum": 2, "maximum": 8, "requested": 8}
    for needs in (None, {"within": "node"}):
        waits = spec("high", 8, 10 * HOUR, priority=10, **({"nodes": needs} if needs else {}))
        made = decided([on("r", {"n0": 8}, devices=elastic, serial_share=0.02)], [0], waits)
        assert made["r"]["verb"] == "stop"


def test_nobody_is_told_to_go_where_nodes_have_no_place_for_it() -> None:
    pieces = [{"id": f"m{number}", "devices": 8, "free": 1} for number in range(8)]
    slow = domain("b", pool(64, 8, kind="slow", nodes=pieces))
    runs = on("r", {"n0": 8}, nodes={"within": "node"})
    kinds = [accelerator(), accelerator("slow", 0.9)]
    asked = request([nodes_of([runs], [0]), slow], [high(8, {"within": "node"})], running=[runs], accelerators=kinds)
    assert {job: decision["verb"] for job, decision in placed(asked).items()} == {"r": "stop"}


def test_those_who_need_something_of_nodes_have_it_in_the_order_of_priority() -> None:
    low = spec("low", 8, HOUR, priority=0, nodes={"devices_per_node": 4})
    made = decided([], [8, 4, 8, 4], high(16, {"devices_per_node": 8}), low, switches="xxyy")
    assert {job: made[job]["verb"] for job in made} == {"high": "start", "low": "start"}
    assert nodes_in(made["high"]) == {"n0", "n2"}


def test_nodes_of_one_switch_are_looked_for_on_all_switches() -> None:
    """Each of sixteen has two nodes free, so that the nodes that lack nothing are more than are looked at."""
    held = [on(f"r{number}", {f"n{number}": 8}) for number in range(64) if number % 4 > 1]
    switches = "".join(chr(65 + number // 4) for number in range(64))
    free = [0 if number % 4 > 1 else 8 for number in range(64)]
    made = decided(held, free, high(32, {"within": "switch", "devices_per_node": 8}), switches=switches)
    assert [made[job]["verb"] for job in made if job != "high"] == ["stop", "stop"]


def test_who_was_told_to_go_for_one_makes_room_for_the_next_as_well() -> None:
    held = [on("wide", {"n0": 8, "n1": 8}), on("s", {"n2": 8}, priority=9)]
    made = decided(held, [0, 0, 0], *(spec(name, 8, HOUR, priority=10, **WHOLE) for name in ("one", "two")))
    assert [job for job in made if made[job]["verb"] == "stop"] == ["wide"]


def test_no_more_of_a_node_is_kept_than_is_needed_of_it() -> None:
    held = [on("busy", {"n7": 8}, HOUR, priority=2)]
    queue = [spec(f"long{number}", 4, 10 * HOUR, priority=1) for number in range(7)]
    for needs, most in (({"devices_per_node": 1}, 7), ({"within": "switch"}, 0)):
        thin = spec("thin", 8 if "devices_per_node" in needs else 64, HOUR, priority=2, nodes=needs)
        made = decided(held, [8] * 7 + [0], thin, *queue, switches="x" * 8)
        assert made["thin"]["explanation"]["outcome"]["run_at"] == "2026-01-05T01:00:00.000Z"
        assert sum(made[job]["verb"] == "start" for job in made) == most
    thin = spec("thin", 40, HOUR, priority=2, nodes={"within": "switch"})
    made = decided(
        [on("busy", {"n0": 8, "n1": 8}, HOUR, priority=2)],
        [0, 0, 8, 8, 8, 0, 0, 0],
        thin,
        *queue,
        switches="x" * 5 + "yyy",
    )
    assert sum(made[job]["verb"] == "start" for job in made) == 0


def test_a_reserved_node_closes_nothing_else_of_its_switch() -> None:
    held = [on("c", {"n2": 8})]
    whole = spec("whole", 8, HOUR, priority=10, **WHOLE)
    wide = spec("wide", 8, HOUR, priority=9, nodes={"within": "switch"})
    made = decided(
        [*held, on("r", {"n0": 8}, priority=9), on("s", {"n1": 7}, priority=9)], [0, 1, 0], whole, wide, switches="xxx"
    )
    assert made["c"]["verb"] == "stop"


@given(
    crowded(),
    st.lists(
        st.tuples(
            st.sampled_from([1, 4, 8, 16]),
            st.sampled_from([*NEEDS, {}, {}]),
            st.sampled_from([600.0, HOUR, 10 * HOUR]),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_no_node_is_given_more_than_it_has_and_whoever_needs_something_of_nodes_has_it(
    case: tuple[list[dict[str, int]], str], queue: list[tuple[int, Json, float, int]], elastic: bool
) -> None:
    where, switches = case
    held = [
        on(f"r{number}", nodes, priority=number % 3, devices={"minimum": 1 if elastic else count, "maximum": count + 8})
        for number, nodes in enumerate(where)
        if (count := sum(nodes.values()))
    ]
    free = {f"n{node}": 8 - sum(nodes.get(f"n{node}", 0) for nodes in where) for node in range(4)}
    jobs = {
        f"w{number}": spec(f"w{number}", count, seconds, priority=priority, **({"nodes": needs} if needs else {}))
        for number, (count, needs, seconds, priority) in enumerate(queue)
    }
    for name, decision in decided(held, [*free.values()], *jobs.values(), switches=switches).items():
        if "placement" not in decision:
            continue
        given = {node["node"]: node["devices"] for node in decision["placement"]["shares"][0]["nodes"]}
        before = where[int(name[1:])] if name[0] == "r" else {}
        for node, devices in given.items():
            free[node] -= max(devices - before.get(node, 0), 0)
        needs = jobs[name].get("nodes", {}) if name in jobs else {}
        assert all(devices == needs.get("devices_per_node", devices) for devices in given.values())
        assert needs.get("within") != "node" or len(given) == 1
        assert needs.get("within") != "switch" or len({switches[int(node[1:])] for node in given}) == 1
    assert min(free.values()) >= 0


@pytest.mark.parametrize("dear", [1e9, 4e9])
def test_of_two_lower_priorities_the_lowest_makes_room_though_it_loses_a_little_more(dear: float) -> None:
    """Their checkpoints take it up to seven seconds longer."""
    talk = {"step_time": 3.0, "exchange": 2e9, "boundary": 2e9}
    held = [
        on("low", {"n1": 8}, priority=1, communication={**talk, "checkpoint_size": 1e9}),
        on("lowest", {"n0": 8}, priority=0, communication={**talk, "checkpoint_size": dear}),
    ]
    made = decided(held, [0, 0], spec("high", 8, HOUR, priority=5))
    assert {job: made[job]["verb"] for job in made} == {"high": "wait", "lowest": "stop"}
