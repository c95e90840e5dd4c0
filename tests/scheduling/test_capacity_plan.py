"""Plans of capacity on small federations, worked out by hand."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.refusals import RepeatedName, UnknownName
from kuayu.scheduling import capacity_plan
from kuayu.scheduling.capacity_plan import plan
from kuayu_schemas import schema

HOUR = 3600.0
REVISION = {"epoch": "e", "number": 7}


def pool(accelerator: str, free: int, **offers: tuple[int, float]) -> dict[str, Any]:
    """Offers as devices and price; spot capacity is taken away every ten hours."""
    made: dict[str, Any] = {"accelerator": accelerator, "devices": free, "free": free, "devices_per_node": 8}
    if offers:
        made["offers"] = [
            {"purchase": purchase, "devices": devices, "price": price}
            | ({"interruption_rate": 0.1} if purchase == "spot" else {})
            for purchase, (devices, price) in offers.items()
        ]
    return made


def state(
    *domains: list[dict[str, Any]], links: bool = True, waiting: tuple[dict[str, Any], ...] = ()
) -> dict[str, Any]:
    """Domains a, b and so on; a plain device, and a fast one that is worth two for u and three for v."""
    names = "abcdefgh"[: len(domains)]
    pairs = [(one, other) for one in names for other in names if one != other] if links else []
    return {
        "revision": REVISION,
        "now": "2026-11-21T10:00:00Z",
        "accelerators": [
            {
                "id": "plain",
                "memory": 80e9,
                "indices": [{"profile": "u", "value": 1.0}, {"profile": "v", "value": 1.0}],
            },
            {"id": "fast", "memory": 80e9, "indices": [{"profile": "u", "value": 2.0}, {"profile": "v", "value": 3.0}]},
        ],
        "domains": [{"id": name, "pools": pools} for name, pools in zip(names, domains, strict=True)],
        "links": [
            {
                "source": one,
                "target": other,
                "bandwidth": 1e10,
                "available": 1e10,
                "round_trip_time": 0.01,
                "tariff": 1e-10,
            }
            for one, other in pairs
        ],
        "waiting": list(waiting),
        "running": [],
    }


def work(
    expected: float, high: float | None = None, *, profile: str = "u", movable: float = 1.0, interruptible: float = 0.0,
    domain: str = "a",
) -> dict[str, Any]:  # fmt: skip
    return {
        "domain": domain, "profile": profile, "expected": expected, "high": expected if high is None else high,
        "movable": movable, "interruptible": interruptible,
    }  # fmt: skip


def job(devices: int, hours: float, **members: Any) -> dict[str, Any]:
    seconds = hours * HOUR
    spec = {
        "id": "j", "submitted_at": "2026-11-21T09:00:00Z", "devices": {"minimum": devices, "maximum": devices},
        "task_profile": "u", "duration": {"expected": seconds, "low": seconds, "high": seconds, "coverage": 0.8},
        "split_modes": ["none"],
    }  # fmt: skip
    return {"spec": spec | members}


def planned(
    what: dict[str, Any], *forecast: dict[str, Any], hours: float = 1.0, weights: dict[str, float] | None = None
) -> dict[str, Any]:
    request: dict[str, Any] = {"state": what, "horizon": hours * HOUR, "forecast": list(forecast)}
    if weights is not None:
        request["weights"] = weights
    assert schema.errors("AllocationPlanRequest", request) == []
    answer = plan(request)
    assert schema.errors("AllocationPlan", answer) == []
    assert plan(request) == answer
    return answer


def uses(answer: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    return {(use["domain"], use["accelerator"], use["purchase"]): use["devices"] for use in answer["uses"]}


def test_the_cheapest_devices_serve_until_there_are_no_more() -> None:
    """Ten reference devices: eight at 5 in b, and the two that are left at 9 in a; two hours."""
    what = state([pool("plain", 8, on_demand=(8, 9.0))], [pool("plain", 8, on_demand=(8, 5.0))])
    answer = planned(what, work(10.0), hours=2.0, weights={"price": 1.0})
    assert uses(answer) == {("a", "plain", "on_demand"): 2, ("b", "plain", "on_demand"): 8}
    assert answer["price"] == pytest.approx(2.0 * (8 * 5.0 + 2 * 9.0))
    assert answer["shares"] == [
        {"domain": "a", "share": pytest.approx(0.2)},
        {"domain": "b", "share": pytest.approx(0.8)},
    ]
    assert answer["unmet"] == 0.0


def test_price_counts_by_what_a_device_is_worth() -> None:
    """Three fast devices are worth six plain ones and cost 3 × 9 instead of 6 × 5."""
    what = state([pool("plain", 8, on_demand=(8, 5.0)), pool("fast", 8, on_demand=(8, 9.0))])
    assert uses(planned(what, work(6.0), weights={"price": 1.0})) == {("a", "fast", "on_demand"): 3}
    dear = state([pool("plain", 8, on_demand=(8, 5.0)), pool("fast", 8, on_demand=(8, 11.0))])
    assert uses(planned(dear, work(6.0), weights={"price": 1.0})) == {("a", "plain", "on_demand"): 6}


def test_what_is_reserved_is_used_first_however_dear_it_was() -> None:
    what = state([pool("plain", 16, on_demand=(16, 5.0), reserved=(4, 50.0))])
    answer = planned(what, work(6.0))
    assert uses(answer) == {("a", "plain", "on_demand"): 2, ("a", "plain", "reserved"): 4}
    assert answer["price"] == pytest.approx(2 * 5.0 + 4 * 50.0)


def test_spot_capacity_serves_what_may_be_interrupted_and_nothing_else() -> None:
    what = state([pool("plain", 16, on_demand=(16, 10.0), spot=(16, 4.0))])
    assert uses(planned(what, work(10.0, interruptible=0.6))) == {
        ("a", "plain", "on_demand"): 4, ("a", "plain", "spot"): 6
    }  # fmt: skip


def test_spot_capacity_that_saves_too_little_is_not_worth_what_is_done_again() -> None:
    """Each interruption costs 930 s, and a tenth of one happens in an hour: a price of 9.8 is really 10.05."""
    what = state([pool("plain", 16, on_demand=(16, 10.0), spot=(16, 9.8))])
    assert uses(planned(what, work(10.0, interruptible=1.0))) == {("a", "plain", "on_demand"): 10}
    less = state([pool("plain", 16, on_demand=(16, 10.0), spot=(16, 9.7))])
    assert uses(planned(less, work(10.0, interruptible=1.0))) == {("a", "plain", "spot"): 10}


def test_what_comes_beyond_the_expected_is_kept_on_demand() -> None:
    what = state([pool("plain", 32, on_demand=(32, 10.0), spot=(32, 1.0))])
    assert uses(planned(what, work(10.0, 13.0, interruptible=1.0))) == {
        ("a", "plain", "on_demand"): 3, ("a", "plain", "spot"): 10
    }  # fmt: skip


def test_work_that_may_not_move_stays_and_what_does_not_fit_is_unmet() -> None:
    what = state([pool("plain", 4, on_demand=(4, 9.0))], [pool("plain", 8, on_demand=(8, 5.0))])
    answer = planned(what, work(10.0, movable=0.5), weights={"price": 1.0})
    assert uses(answer) == {("a", "plain", "on_demand"): 4, ("b", "plain", "on_demand"): 5}
    assert answer["unmet"] == pytest.approx(1.0)


def test_moving_costs_money_too_unless_it_does_not_count() -> None:
    """A reference device's data are 1e7 bit/s at 1e-10 a bit: 3.6 an hour; b is cheaper by 1, c by 5."""
    what = state(*([pool("plain", 8, on_demand=(8, price))] for price in (9.0, 8.0)))
    assert uses(planned(what, work(4.0))) == {("a", "plain", "on_demand"): 4}
    assert uses(planned(what, work(4.0), weights={"price": 1.0})) == {("b", "plain", "on_demand"): 4}
    cheap = state(*([pool("plain", 8, on_demand=(8, price))] for price in (9.0, 4.0)))
    assert uses(planned(cheap, work(4.0))) == {("b", "plain", "on_demand"): 4}


def test_devices_do_what_they_are_best_at() -> None:
    """Fast devices are worth more for v than for u, plain ones the same for both: so no fast one serves u.

    Where time counts, everything goes to fast ones, of which fewer are needed.
    """
    what = state([pool("plain", 8), pool("fast", 8)])
    both = work(8.0), work(3.0, profile="v")
    assert uses(planned(what, *both, weights={"utilisation": 1.0})) == {
        ("a", "plain", "on_demand"): 8, ("a", "fast", "on_demand"): 1
    }  # fmt: skip
    assert uses(planned(what, *both, weights={"period": 1.0})) == {("a", "fast", "on_demand"): 5}


def test_among_equals_all_pools_are_used_to_the_same_degree() -> None:
    answer = planned(
        state([pool("plain", 40)], [pool("plain", 20)], [pool("plain", 20)]), work(40.0), weights={"price": 1.0}
    )
    assert uses(answer) == {
        (name, "plain", "on_demand"): devices for name, devices in zip("abc", (20, 10, 10), strict=True)
    }
    assert answer["price"] == 0.0


def test_a_job_counts_with_its_devices_as_long_as_it_holds_them() -> None:
    """Eight devices for half an hour are four for an hour; on fast ones it takes a quarter of an hour."""
    long, short = job(8, 3.0), job(8, 0.5)
    assert uses(planned(state([pool("plain", 16)], waiting=(long,)))) == {("a", "plain", "on_demand"): 8}
    assert uses(planned(state([pool("plain", 16)], waiting=(short,)))) == {("a", "plain", "on_demand"): 4}
    assert uses(planned(state([pool("fast", 16)], waiting=(short,)))) == {("a", "fast", "on_demand"): 2}


def test_a_job_goes_only_where_it_can_run() -> None:
    """Its data are pinned to b; and no pool but that of c is large enough for the other one."""
    pinned = job(4, 9.0, data=[{"id": "d", "size": 1e9, "domains": ["b"], "pinned": True}])
    pools = [pool("plain", 8)], [pool("plain", 8)], [pool("plain", 16)]
    assert uses(planned(state(*pools, waiting=(pinned,)))) == {("b", "plain", "on_demand"): 4}
    assert uses(planned(state(*pools, waiting=(job(12, 9.0),)))) == {("c", "plain", "on_demand"): 12}
    assert planned(state(*pools, waiting=(job(20, 9.0),)))["unmet"] == pytest.approx(20.0)


def test_a_job_that_saves_its_work_may_be_bought_spot_unless_it_is_in_haste() -> None:
    talk = {"step_time": 1.0, "exchange": 1e9, "boundary": 1e9, "checkpoint_size": 1e9}
    offers = [pool("plain", 16, on_demand=(16, 10.0), spot=(16, 4.0))]
    saves = job(8, 9.0, communication=talk)
    assert uses(planned(state(offers, waiting=(saves,)))) == {("a", "plain", "spot"): 8}
    for calm in ({"deadline": "2026-11-22T10:00:00Z"}, {"kind": "serving"}):
        kept = job(8, 9.0, communication=talk, **calm)
        assert uses(planned(state(offers, waiting=(kept,)))) == {("a", "plain", "on_demand"): 8}


def test_nothing_is_planned_in_a_domain_that_cannot_be_reached() -> None:
    what = state([pool("plain", 8)], [pool("plain", 8)])
    what["domains"][0]["reachable"] = False
    assert uses(planned(what, work(4.0, domain="b"))) == {("b", "plain", "on_demand"): 4}
    cut = state([pool("plain", 8)], [pool("plain", 8)], links=False)
    assert planned(cut, work(12.0))["unmet"] == pytest.approx(4.0)


def test_a_plan_for_nothing_uses_nothing() -> None:
    answer = planned(state([pool("plain", 8)]))
    assert (answer["uses"], answer["shares"], answer["unmet"], answer["price"]) == ([], [], 0.0, 0.0)
    strange = planned(state([pool("plain", 8)]), work(3.0, profile="w"))
    assert (strange["uses"], strange["unmet"]) == ([], 3.0)


def test_where_there_is_much_it_is_not_looked_at_where_data_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing ties work to its home but what may not move; moving costs each of it the mean."""
    what = state(*([pool("plain", 8, on_demand=(8, price))] for price in (8.0, 7.0)))
    both = work(6.0), work(6.0, domain="b")
    apart = planned(what, *both)
    monkeypatch.setattr(capacity_plan, "MAX_GROUPED", 0)
    together = planned(what, *both)
    assert sum(uses(together).values()) == sum(uses(apart).values()) == 12
    assert uses(planned(what, work(6.0, movable=0.0))) == {("a", "plain", "on_demand"): 6}


def test_absurd_figures_get_an_answer() -> None:
    dear = planned(state([pool("plain", 8, on_demand=(8, 1e9))]), work(1e300), hours=1e5)
    assert uses(dear) == {("a", "plain", "on_demand"): 8}
    assert dear["unmet"] > 1e11
    beyond = planned(state([pool("plain", 8, on_demand=(8, 1e200))]), work(1e300), hours=1e200)
    assert uses(beyond) == {}
    assert beyond["unmet"] > 1e11
    tiny = planned(state([pool("plain", 1)]), work(0.0, 1.1125369292536007e-308))
    assert tiny["unmet"] < 1e-9


def test_names_that_are_not_there_or_twice_are_pointed_at() -> None:
    with pytest.raises(UnknownName) as caught:
        planned(state([pool("plain", 8)]), work(1.0), work(1.0, domain="z"))
    assert [pointer for pointer, _ in caught.value.pointers] == ["/forecast/1/domain"]
    with pytest.raises(RepeatedName):
        planned(state([pool("plain", 8), pool("plain", 8)]))


@st.composite
def markets(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Pools with any offers, and work of any kind."""
    domains = []
    for _ in range(draw(st.integers(1, 3))):
        pools = []
        for accelerator in draw(st.sampled_from([["plain"], ["fast"], ["plain", "fast"]])):
            free = draw(st.integers(0, 20))
            purchases = draw(st.lists(st.sampled_from(["on_demand", "reserved", "spot"]), unique=True))
            price = st.floats(0.0, 20.0)
            pools.append(
                pool(
                    accelerator,
                    free,
                    **{purchase: (draw(st.integers(0, free)), draw(price)) for purchase in purchases},
                )
            )
        domains.append(pools)
    figure, ratio = st.floats(0.0, 30.0), st.sampled_from([0.0, 0.3, 1.0])
    forecast = [
        work(
            draw(figure), draw(figure), profile=draw(st.sampled_from("uv")), movable=draw(ratio),
            interruptible=draw(ratio), domain=draw(st.sampled_from("abc"[: len(domains)])),
        )
        for _ in range(draw(st.integers(0, 4)))
    ]  # fmt: skip
    return state(*domains), forecast


@given(markets())
@settings(max_examples=60, deadline=None)
def test_no_plan_counts_upon_more_than_there_is(case: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    what, forecast = case
    answer = planned(what, *forecast)
    offered = {
        (domain["id"], each["accelerator"], offer["purchase"]): offer["devices"]
        for domain in what["domains"]
        for each in domain["pools"]
        for offer in each.get("offers", [{"purchase": "on_demand", "devices": each["free"]}])
    }
    bought = uses(answer)
    assert len(bought) == len(answer["uses"])
    assert all(0 < devices <= offered[use] for use, devices in bought.items())
    for domain in what["domains"]:
        for each in domain["pools"]:
            held = sum(count for use, count in bought.items() if use[:2] == (domain["id"], each["accelerator"]))
            assert held <= each["free"]
    assert sum(share["share"] for share in answer["shares"]) == pytest.approx(1.0 if bought else 0.0)
    served = sum(devices * (3.0 if accelerator == "fast" else 1.0) for (_, accelerator, _), devices in bought.items())
    asked = sum(max(each["expected"], each["high"]) for each in forecast)
    assert served + answer["unmet"] >= asked * (1 - 1e-4) - 1e-4
