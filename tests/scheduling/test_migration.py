"""Running jobs that go on elsewhere or with more devices: where some would be idle, and where it pays clearly."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.states import accelerator, data, domain, links, pool, request, running, spec, talks

from kuayu.scheduling import preemption
from kuayu.scheduling.place import place
from kuayu_schemas import schema

Json = dict[str, Any]
DAY = 86_400.0
KINDS = [accelerator(), accelerator("quick", 2.0)]
BOTH = domain("a", pool(8, 0), pool(8, kind="quick"))


def placed(asked: Json) -> dict[str, Json]:
    """Decisions by job; request and report are valid."""
    assert schema.is_valid("PlacementRequest", asked, reader=False)
    report = place(asked)
    assert schema.is_valid("PlacementReport", report, reader=False)
    return {decision["job"]: decision for decision in report["decisions"]}


def long_one(seconds: float = DAY, **others: Any) -> Json:
    """A job on eight plain devices of the domain ``a``, at its begin."""
    return running(spec("r", 8, seconds, **{"communication": talks(), **others}), [("a", 8)], rate=8.0)


def test_a_long_job_moves_to_faster_devices_that_nobody_takes() -> None:
    decision = placed(request([BOTH], running=[long_one()], accelerators=KINDS, explain=True))["r"]
    assert decision["verb"] == "migrate"
    assert decision["placement"]["shares"] == [{"domain": "a", "accelerator": "quick", "devices": 8}]
    assert "interruption" in decision["explanation"]["reason"]


def test_one_that_is_nearly_done_stays() -> None:
    assert placed(request([BOTH], running=[long_one(1800.0)], accelerators=KINDS)) == {}


def test_who_waits_goes_first() -> None:
    made = placed(request([BOTH], [spec("w")], running=[long_one()], accelerators=KINDS))
    assert {job: decision["verb"] for job, decision in made.items()} == {"w": "start"}


def test_much_data_are_not_moved_after_it() -> None:
    places = [domain("a", pool(8, 0)), domain("b", pool(8, kind="quick"))]
    for size, moves in ((1e6, True), (1e15, False)):
        asked = request(places, running=[long_one(data=data("d", size, "a"))], accelerators=KINDS)
        assert ("r" in placed(asked)) is moves


def test_pinned_data_hold_a_job_where_it_is() -> None:
    places = [domain("a", pool(8, 0)), domain("b", pool(8, kind="quick"))]
    asked = request(places, running=[long_one(data=data("d", 1e6, "a", pinned=True))], accelerators=KINDS)
    assert placed(asked) == {}


def test_a_job_that_can_use_more_grows_where_devices_idle() -> None:
    grows = long_one(devices={"minimum": 4, "maximum": 16, "requested": 8})
    decision = placed(request([domain("a", pool(16, 8))], running=[grows]))["r"]
    assert decision["verb"] == "resize"
    assert decision["placement"]["shares"] == [{"domain": "a", "accelerator": "plain", "devices": 16}]


def test_what_it_keeps_busy_must_be_known_first() -> None:
    unknown = {key: value for key, value in long_one().items() if key != "used"}
    assert placed(request([BOTH], running=[unknown], accelerators=KINDS)) == {}


def test_a_job_grows_only_by_devices_that_are_bought_as_its_own_are() -> None:
    grows = long_one(devices={"minimum": 4, "maximum": 16, "requested": 8})
    grows["placement"]["shares"][0]["purchase"] = "reserved"
    for candidate, more in (("reserved", True), ("on_demand", False)):
        offers = [{"purchase": candidate, "devices": 8, "price": 1.0}]
        asked = request([domain("a", pool(16, 8, offers=offers))], running=[grows])
        assert ("r" in placed(asked)) is more


def test_nodes_are_named_where_they_are_told() -> None:
    nodes = [{"id": "n", "devices": 8, "free": 0}]
    quick = [{"id": "m", "devices": 8, "free": 8}]
    there = domain("a", pool(8, 0, nodes=nodes), pool(8, kind="quick", nodes=quick))
    decision = placed(request([there], running=[long_one()], accelerators=KINDS))["r"]
    assert decision["placement"]["shares"][0]["nodes"] == [{"node": "m", "devices": 8}]


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_no_domain_is_ruled_out_in_which_it_would_have_paid_to_go_on(seed: int) -> None:
    draw = Random(seed)
    names = "abcd"
    places = [domain(name, pool(24, draw.choice([0, 8])), pool(16, 16, kind="quick")) for name in names]
    runs = []
    for number in range(8):
        home, size = draw.choice(names), 10.0 ** draw.uniform(0, 15)
        talking = talks(checkpoint=draw.choice([0.0, 10.0 ** draw.uniform(6, 13)]))
        job = spec(f"r{number}", 2, 10.0 ** draw.uniform(3, 7), communication=talking)
        job["data"] = data(f"d{number}", draw.choice([0.0, size]), draw.choice(names))
        runs.append(running(job, [(home, 2)], rate=draw.choice([0.5, 2.0])))
    joined = links(*names, bandwidth=10.0 ** draw.uniform(8, 11), tariff=10.0 ** draw.uniform(-14, -8))
    waiting = [spec(f"w{number}", 16) for number in range(draw.choice([0, 0, 4]))]
    asked = request(places, waiting, running=runs, links=joined, accelerators=KINDS, explain=True)
    found = place(asked)
    with pytest.MonkeyPatch.context() as patch:
        everywhere = lambda snapshot, _result, _running, rows: np.ones((len(rows), snapshot.domains), dtype=np.bool_)  # noqa: E731
        patch.setattr(preemption, "_near_enough", everywhere)
        assert place(asked) == found
