"""Placements: small requests whose right answer is plain."""

from typing import Any

import pytest
from scheduling.states import (
    GIGABIT,
    accelerator,
    data,
    domain,
    links,
    pool,
    request,
    running,
    spec,
    talks,
)

from kuayu.refusals import Impossible, RepeatedName, UnknownName
from kuayu.scheduling.place import place
from kuayu.scheduling.policy_network import shipped
from kuayu_schemas import schema

Json = dict[str, Any]
DAY_BEFORE = "2026-01-04T00:00:00.000Z"


def placed(asked: Json) -> dict[str, Json]:
    """Decisions by job; request and report are valid."""
    assert schema.is_valid("PlacementRequest", asked, reader=False)
    report = place(asked)
    assert schema.is_valid("PlacementReport", report, reader=False)
    assert report["revision"] == asked["state"]["revision"]
    return {decision["job"]: decision for decision in report["decisions"]}


def where(decision: Json) -> dict[str, int]:
    """Devices by domain."""
    return {share["domain"]: share["devices"] for share in decision["placement"]["shares"]}


def test_a_job_starts_where_its_data_are() -> None:
    asked = request([domain("a", pool(8)), domain("b", pool(8))], [spec("j", data=data("d", 1e12, "b"))])
    assert where(placed(asked)["j"]) == {"b": 8}


def test_a_faster_device_is_worth_moving_little_data_and_not_worth_moving_much() -> None:
    kinds = [accelerator(), accelerator("quick", 2.0)]
    places = [domain("a", pool(8)), domain("b", pool(8, kind="quick"))]
    for size, chosen in ((1e6, "b"), (1e14, "a")):
        asked = request(places, [spec("j", data=data("d", size, "a"))], accelerators=kinds)
        assert where(placed(asked)["j"]) == {chosen: 8}


def test_copies_that_have_moved_prevail_over_what_the_job_said() -> None:
    asked = request(
        [domain("a", pool(8)), domain("b", pool(8))],
        [spec("j", data=data("d", 1e12, "a"))],
        copies=[{"artefact": "d", "domains": ["b"]}],
    )
    assert where(placed(asked)["j"]) == {"b": 8}


def test_pinned_data_keep_a_job_at_home_even_if_it_waits() -> None:
    """So does who has the devices, whose data are pinned as well: nobody goes where only others may."""
    home = domain("a", pool(8, free=0))
    asked = request(
        [home, domain("b", pool(8))],
        [spec("j", data=data("d", 1.0, "a", pinned=True))],
        running=[running(spec("r", data=data("e", 1.0, "a", pinned=True)), [("a", 8)], rate=8.0)],
    )
    assert placed(asked) == {}


def test_nobody_starts_in_a_domain_that_cannot_be_reached_or_on_devices_with_too_little_memory() -> None:
    kinds = [accelerator(), accelerator("small", memory=16e9)]
    asked = request(
        [domain("a", pool(8), reachable=False), domain("b", pool(8, kind="small"))],
        [spec("j", memory_per_device=40e9)],
        accelerators=kinds,
    )
    assert placed(asked) == {}


def test_short_jobs_go_first_where_not_all_find_room() -> None:
    asked = request([domain("a", pool(8))], [spec("long", seconds=36_000.0), spec("short", seconds=600.0)])
    assert list(placed(asked)) == ["short"]


def test_a_job_of_higher_priority_goes_before_a_shorter_one() -> None:
    waiting = [spec("long", seconds=36_000.0, priority=1), spec("short", seconds=600.0)]
    assert list(placed(request([domain("a", pool(8))], waiting))) == ["long"]


def test_a_newcomer_does_not_overtake_at_no_gain() -> None:
    """All is free: whoever goes first, the other waits for ten hours, beside idle devices if the small one does."""
    long_ago = {"submitted_at": "2026-01-03T23:00:00Z"}
    queue = [spec("y", 16, 36_000.0, **long_ago), spec("x", 8, 36_000.0)]
    assert list(placed(request([domain("a", pool(16))], queue))) == ["y"]
    assert list(placed(request([domain("a", pool(16))], [spec("y", 16, 36_000.0), queue[1]]))) == ["x"]


def test_who_has_waited_long_has_a_reservation_that_short_ones_do_not_delay() -> None:
    """The old job needs all 16; eight come free in an hour. A job of half an hour fits before, one of two does not."""
    old = spec("old", 16, seconds=3600.0, submitted_at=DAY_BEFORE)
    short, long = spec("short", 8, seconds=1800.0), spec("long", 8, seconds=7200.0)
    its = running(spec("r", 8, seconds=3600.0), [("a", 8)], rate=8.0)
    places = [domain("a", pool(16, free=8))]
    assert list(placed(request(places, [old, short, long], running=[its]))) == ["short"]
    assert placed(request(places, [old, long], running=[its])) == {}


def test_a_job_larger_than_any_pool_is_spread_at_a_stated_period() -> None:
    wide = spec("j", 16, seconds=36_000.0, split_modes=["none", "periodic"], communication=talks(checkpoint=1e9))
    decision = placed(request([domain("a", pool(8)), domain("b", pool(8))], [wide]))["j"]
    assert where(decision) == {"a": 8, "b": 8}
    assert decision["placement"]["split_mode"] == "periodic"


def test_a_job_is_not_spread_over_links_that_are_too_slow_for_it() -> None:
    wide = spec("j", 16, split_modes=["none", "periodic"], communication=talks(), links={"bandwidth": 2 * GIGABIT})
    slow = links("a", "b", bandwidth=GIGABIT)
    assert placed(request([domain("a", pool(8)), domain("b", pool(8))], [wide], links=slow)) == {}


def test_reserved_capacity_comes_first_then_spot_then_on_demand() -> None:
    offers = [
        {"purchase": "on_demand", "devices": 8, "price": 10.0},
        {"purchase": "spot", "devices": 8, "price": 3.0, "interruption_rate": 0.01},
        {"purchase": "reserved", "devices": 8, "price": 6.0},
    ]
    waiting = [spec(f"j{number}", 8, communication=talks()) for number in range(3)]
    decisions = placed(request([domain("a", pool(24, offers=offers))], waiting))
    bought = [decisions[name]["placement"]["shares"][0]["purchase"] for name in ("j0", "j1", "j2")]
    assert bought == ["reserved", "spot", "on_demand"]


def test_spot_capacity_that_is_taken_away_all_the_time_is_left_to_others() -> None:
    offers = [
        {"purchase": "on_demand", "devices": 8, "price": 10.0},
        {"purchase": "spot", "devices": 8, "price": 9.0, "interruption_rate": 2.0},
    ]
    asked = request([domain("a", pool(8, offers=offers))], [spec("j", communication=talks())])
    assert placed(asked)["j"]["placement"]["shares"][0]["purchase"] == "on_demand"


def test_nodes_are_named_where_they_are_told() -> None:
    nodes = [{"id": name, "devices": 8, "free": free} for name, free in (("n0", 4), ("n1", 8))]
    decision = placed(request([domain("a", pool(16, free=12, nodes=nodes))], [spec("j", communication=talks())]))["j"]
    assert decision["placement"]["shares"][0]["nodes"] == [{"node": "n1", "devices": 8}]


def test_more_is_not_started_than_nodes_have_free() -> None:
    nodes = [{"id": "n0", "devices": 8, "free": 4}]
    assert placed(request([domain("a", pool(8, 4, nodes=nodes))], [spec("j")])) == {}


@pytest.mark.parametrize("priority", [0, 5])
def test_devices_that_a_running_job_does_not_use_are_reclaimed_for_one_that_waits(priority: int) -> None:
    """It keeps 4 of 16 busy, has days to go and can do with 8, so that its priority is no reason to keep the others."""
    elastic = {"minimum": 8, "maximum": 32, "requested": 16}
    idle = spec("idle", 16, seconds=1e6, devices=elastic, communication=talks(checkpoint=0.0), priority=priority)
    its = running(idle, [("a", 16)], rate=4.0, used=0.25, done=4.0)
    decision = placed(request([domain("a", pool(16, free=0))], [spec("j")], running=[its]))["idle"]
    assert decision["verb"] == "resize"
    assert where(decision) == {"a": 8}


def test_nothing_is_reclaimed_where_nobody_waits_for_it() -> None:
    elastic = {"minimum": 8, "maximum": 32, "requested": 16}
    its = running(spec("idle", 16, seconds=1e6, devices=elastic), [("a", 16)], rate=4.0, used=0.25)
    assert placed(request([domain("a", pool(16, free=0))], [], running=[its])) == {}


def test_every_job_that_waits_is_explained_where_that_is_asked_for() -> None:
    places = [domain("a", pool(8)), domain("b", pool(8))]
    waiting = [spec("j", data=data("d", 1e10, "a")), spec("huge", 64), spec("late", seconds=7200.0), spec("last", 16)]
    decisions = placed(request(places, waiting, explain=True, alternatives=2))
    assert {name: each["verb"] for name, each in decisions.items()} == {
        "j": "start",
        "late": "start",
        "huge": "wait",
        "last": "wait",
    }
    assert all(each["explanation"]["reason"] for each in decisions.values())
    assert "outcome" not in decisions["huge"]["explanation"]
    assert all(len(each["explanation"]["alternatives"]) <= 2 for each in decisions.values())


NO_MEMORY = spec("j", memory_per_device=1e12)
PINNED = spec("j", data=data("d", 1e12, "b", pinned=True))


@pytest.mark.parametrize(
    ("job", "changed", "why"),
    [
        (spec("j", 32), {}, "has the 32 devices that it needs at least: the largest that will do has 16."),
        (spec("j", task_profile="vision"), {}, "has devices with a compute index for its task profile."),
        (spec("j", device_kinds=["tpu"]), {}, "has devices of a kind on which it may run."),
        (NO_MEMORY, {}, "has devices with 1000 GB of memory each."),
        (spec("j"), {"reachable": False}, "has devices that work."),
        (spec("j", 16, nodes={"within": "node"}), {}, "has nodes that can hold devices as it needs them."),
        (spec("j", nodes={"devices_per_node": 3}), {}, "has nodes that can hold devices as it needs them."),
    ],
)
def test_who_has_no_way_is_told_what_no_pool_has(job: Json, changed: Json, why: str) -> None:
    told = placed(request([domain("a", pool(16), **changed)], [job], explain=True))["j"]
    assert told["explanation"]["reason"] == f"No pool that can be reached {why}"


def test_who_cannot_take_his_data_along_is_told_so() -> None:
    asked = request([domain("a", pool(16)), domain("b", pool(0))], [PINNED], explain=True)
    reason = placed(asked)["j"]["explanation"]["reason"]
    assert reason == "No pool that can be reached has a way for its data and its checkpoint to get there."


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (pool(16, 2), "nothing says when these will be free"),
        (
            pool(16, offers=[{"purchase": "on_demand", "devices": 0, "price": 1.0}]),
            "none of the ways of buying has as many",
        ),
        (
            pool(16, offers=[{"purchase": which, "devices": 7, "price": 1.0} for which in ("on_demand", "spot")]),
            "none of the ways of buying has as many",
        ),
    ],
)
def test_who_waits_for_what_is_held_by_nobody_who_is_known_or_not_sold_is_told_so(there: Json, why: str) -> None:
    told = placed(request([domain("a", there)], [spec("j")], explain=True))["j"]
    assert told["verb"] == "wait"
    assert why in told["explanation"]["reason"]


def test_to_be_explained_changes_nothing() -> None:
    places = [domain("a", pool(32)), domain("b", pool(24)), domain("c", pool(16))]
    jobs = [
        spec(f"j{n}", 1 + n % 9, seconds=60.0 * (1 + 7 * n % 101), data=data(f"d{n}", 1e11, "abc"[n % 3]))
        for n in range(150)
    ]
    plain, explained = (placed(request(places, jobs, explain=explain)) for explain in (False, True))
    assert plain == {
        name: {key: value for key, value in each.items() if key != "explanation"}
        for name, each in explained.items()
        if each["verb"] != "wait"
    }
    assert len(explained) == len(jobs)


def test_what_is_chosen_has_the_least_score_and_ends_when_the_speed_says() -> None:
    """An hour for eight reference devices, and 8 s for 10 GB over 10 Gbit/s if it goes to the other domain."""
    asked = request([domain("a", pool(8)), domain("b", pool(8))], [spec("j", data=data("d", 1e10, "a"))], explain=True)
    told = placed(asked)["j"]["explanation"]
    assert told["outcome"]["finish_at"] == "2026-01-05T01:00:00.000Z"
    assert told["outcome"]["efficiency"] == pytest.approx(1.0)
    (other,) = told["alternatives"]
    assert other["outcome"]["run_at"] == "2026-01-05T00:00:08.000Z"
    assert other["outcome"]["communication_cost"] == pytest.approx(1e10 * 8 * 1e-11)
    assert told["outcome"]["score"] < other["outcome"]["score"]


def test_money_decides_where_it_alone_counts() -> None:
    kinds = [accelerator(), accelerator("quick", 4.0)]
    places = [domain("a", pool(8)), domain("b", pool(8, kind="quick"))]
    job = spec("j", data=data("d", 1e9, "a"))
    for weights, chosen in (({"period": 1.0}, "b"), ({"communication": 1.0}, "a")):
        assert where(placed(request(places, [job], accelerators=kinds, weights=weights))["j"]) == {chosen: 8}


def test_planned_shares_are_kept_to_a_percent_where_jobs_are_many() -> None:
    places = [domain("a", pool(512)), domain("b", pool(512)), domain("c", pool(512))]
    waiting = [spec(f"j{number}", 1 + number % 5, seconds=600.0 + number) for number in range(300)]
    shares = [{"domain": "a", "share": 0.5}, {"domain": "b", "share": 0.3}, {"domain": "c", "share": 0.2}]
    decisions = placed(request(places, waiting, shares=shares))
    given = dict.fromkeys("abc", 0)
    for decision in decisions.values():
        for name, devices in where(decision).items():
            given[name] += devices
    total = sum(given.values())
    assert total > 700
    for each in shares:
        assert given[str(each["domain"])] / total == pytest.approx(float(str(each["share"])), rel=0.01)


def test_the_answer_does_not_depend_on_names() -> None:
    kinds = [accelerator(), accelerator("quick", 2.0)]

    def answer(first: str, second: str) -> set[tuple[str, str]]:
        places = [domain(first, pool(16)), domain(second, pool(8, kind="quick"))]
        jobs = [spec(f"j{n}", 4, seconds=600.0 * (n + 1), data=data("d", 1e10, first)) for n in range(7)]
        decisions = placed(request(sorted(places, key=lambda each: str(each["id"])), jobs, accelerators=kinds))
        return {(name, "first" if first in where(each) else "second") for name, each in decisions.items()}

    assert answer("a", "b") == answer("z", "b")


def test_unknown_names_are_pointed_at() -> None:
    asked = request([domain("a", pool(8))], [spec("j", home_domain="b", data=data("d", 1.0, "a", "c"))])
    with pytest.raises(UnknownName) as trouble:
        place(asked)
    assert [pointer for pointer, _ in trouble.value.pointers] == [
        "/state/waiting/0/spec/home_domain",
        "/state/waiting/0/spec/data/0/domains/1",
    ]
    with pytest.raises(UnknownName, match="/shares/0/domain"):
        place(request([domain("a", pool(8))], shares=[{"domain": "b", "share": 1.0}]))


def test_repeated_names_are_pointed_at() -> None:
    with pytest.raises(RepeatedName, match="/state/domains/1/id"):
        place(request([domain("a", pool(8)), domain("a", pool(8))]))
    with pytest.raises(RepeatedName, match="/state/waiting/1/spec/id"):
        place(request([domain("a", pool(8))], [spec("j"), spec("j")]))


def test_contradictions_are_pointed_at() -> None:
    """Whatever is decided on such a state is wrong, and the reason that is given for it too."""

    def pointed(asked: dict[str, Any]) -> list[str]:
        with pytest.raises(Impossible) as trouble:
            place(asked)
        return [pointer for pointer, _ in trouble.value.pointers]

    assert pointed(request([domain("a", {**pool(8), "free": 16})])) == ["/state/domains/0/pools/0/free"]
    nodes = [{"id": "n1", "devices": 4, "free": 4}, {"id": "n2", "devices": 4, "free": 5}]
    assert pointed(request([domain("a", {**pool(8), "nodes": nodes})])) == ["/state/domains/0/pools/0/nodes/1/free"]
    impossible = [{"minimum": 8, "maximum": 4}, {"minimum": 2, "maximum": 4, "requested": 1}]
    impossible += [{"minimum": 0, "maximum": 0}, {"minimum": 0, "maximum": 8, "requested": 0}]
    possible = {"minimum": 4, "maximum": 4, "requested": 4}
    jobs = [{**spec(f"j{n}"), "devices": each} for n, each in enumerate([possible, *impossible])]
    assert pointed(request([domain("a", pool(8))], jobs)) == [f"/state/waiting/{n}/spec/devices" for n in range(1, 5)]
    never = [
        spec("j", duration={"expected": 60, "low": low, "high": high, "coverage": 0.9})
        for low, high in ((61, 70), (5, 59))
    ]
    for place_of, jobs_of in (
        ("waiting", {"waiting": never[:1]}),
        ("running", {"running": [running(never[1], [("a", 8)], rate=8.0)]}),
    ):
        asked = request([domain("a", pool(16, 8))], **jobs_of)
        assert pointed(asked) == [f"/state/{place_of}/0/spec/duration"]
    full = request([domain("a", {**pool(8), "free": 0})], running=[running(spec("r", 9), [("a", 9)], rate=9.0)])
    assert pointed(full) == ["/state/domains/0/pools/0/devices"]
    both = [running(spec(name, 4), [("a", 4)], rate=4.0) for name in ("r", "q")]
    assert pointed(request([domain("a", pool(16, 9))], running=both)) == ["/state/domains/0/pools/0/free"]


@pytest.mark.parametrize(
    ("devices", "free", "nodes", "member"),
    [
        (16, 16, [], "free"),
        (24, 24, [8], "free"),
        (16, 9, [8], "free"),
        (8, 8, [8, 8], "devices"),
        (15, 8, [8, 8], "devices"),
        (16, 2, [8, 8], None),
        (24, 8, [8], None),
    ],
)
def test_a_pool_has_no_less_than_its_nodes_and_no_more_of_it_free(
    devices: int, free: int, nodes: list[int], member: str | None
) -> None:
    """It may have more where nodes are broken that jobs still hold, and keep back what is free on them."""
    named = [{"id": f"n{number}", "devices": size, "free": size} for number, size in enumerate(nodes)]
    asked = request([domain("a", pool(devices, free, nodes=named))], [spec("j")])
    if member is None:
        place(asked)
        return
    with pytest.raises(Impossible) as trouble:
        place(asked)
    assert [pointer for pointer, _ in trouble.value.pointers] == [f"/state/domains/0/pools/0/{member}"]


@pytest.mark.parametrize(
    ("shares", "nodes", "member"),
    [
        ([("a", 4), ("b", 4)], [], "split_mode"),
        ([("a", 8)], [("n0", 8), ("n1", 8)], "shares/0/nodes"),
        ([("a", 8)], [("n0", 4), ("n0", 4)], "shares/0/nodes"),
        ([("a", 8)], [("n0", 4), ("n1", 4)], None),
        ([("a", 8)], [("n1", 4)], None),
    ],
)
def test_placements_that_nobody_can_hold_are_pointed_at(
    shares: list[tuple[str, int]], nodes: list[tuple[str, int]], member: str | None
) -> None:
    """Nodes that are not registered any more may be left out of a share."""
    held = running(spec("r"), shares, rate=8.0)
    if nodes:
        held["placement"]["shares"][0]["nodes"] = [{"node": name, "devices": count} for name, count in nodes]
    asked = request([domain("a", on_nodes(4, 4)), domain("b", pool(8, 0))], running=[held])
    if member is None:
        assert place(asked)["decisions"] == []
        return
    with pytest.raises(Impossible) as trouble:
        place(asked)
    assert [pointer for pointer, _ in trouble.value.pointers] == [f"/state/running/0/placement/{member}"]


def on_nodes(*free: int, switches: str = "") -> dict[str, Any]:
    """A pool with so many free devices on nodes of eight, each on the switch of its letter."""
    nodes = [
        {"id": f"n{n}", "devices": 8, "free": each, **({"switch": switches[n]} if switches else {})}
        for n, each in enumerate(free)
    ]
    return pool(8 * len(free), sum(free), nodes=nodes)


def seats(decision: dict[str, Any]) -> dict[str, int]:
    """Devices by node."""
    return {node["node"]: node["devices"] for share in decision["placement"]["shares"] for node in share["nodes"]}


def test_a_job_that_fits_on_a_node_is_not_cut() -> None:
    assert seats(placed(request([domain("a", on_nodes(2, 8, 6))], [spec("tp8", 8)]))["tp8"]) == {"n1": 8}


def test_devices_lie_on_nodes_as_a_job_needs_them() -> None:
    domains = [domain("a", on_nodes(2, 6, 5, 4, switches="xxyy"))]
    needs = {"per node": {"devices_per_node": 4}, "one node": {"within": "node"}, "one switch": {"within": "switch"}}
    elastic = {"minimum": 4, "maximum": 16, "requested": 16}
    found = {
        name: seats(placed(request(domains, [{**spec("j", 8), "devices": devices, "nodes": needs[name]}]))["j"])
        for name, devices in (
            ("per node", elastic),
            ("one node", {"minimum": 2, "maximum": 6, "requested": 6}),
            ("one switch", {"minimum": 9, "maximum": 9}),
        )
    }
    assert found == {
        "per node": {"n1": 4, "n2": 4, "n3": 4},
        "one node": {"n1": 6},
        "one switch": {"n2": 5, "n3": 4},
    }


def test_a_job_waits_where_no_nodes_are_as_it_needs_them_and_keeps_nobody_from_what_is_free() -> None:
    jobs = [{**spec("whole", 8), "nodes": {"within": "node"}}, spec("small", 4, seconds=1e6)]
    asked = request([domain("a", on_nodes(6, 6))], jobs, explain=True)
    told = {each["job"]: each for each in place(asked)["decisions"]}
    assert told["whole"]["verb"] == "wait"
    assert "not enough free on nodes as it needs them" in told["whole"]["explanation"]["reason"]
    assert told["small"]["verb"] == "start"
    huge = place(request([domain("a", on_nodes(8, 8))], [{**spec("j", 16), "nodes": {"within": "node"}}], explain=True))
    assert "no nodes" not in huge["decisions"][0]["explanation"]["reason"]
    assert "nodes that can hold devices as it needs them" in huge["decisions"][0]["explanation"]["reason"]


def test_a_network_sets_constants_unless_a_request_brings_weights_of_its_own() -> None:
    network = shipped()
    assert network is not None
    asked = request([domain("a", pool(8)), domain("b", pool(8))], [spec("j", data=data("d", 1e12, "b"))])
    report = place(asked, network=network)
    assert schema.is_valid("PlacementReport", report, reader=False)
    assert report["method"]["name"].endswith("constants set by PPO")
    assert report["decisions"] == place(asked)["decisions"]
    weighed = asked | {"weights": {"period": 1.0, "communication": 3.0, "utilisation": 1.0, "price": 0.0}}
    assert place(weighed, network=network) == place(weighed)
