"""MET-024: what is read off a stream of nodes that send few measures, and what counts against a service."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from kuayu_conformance.checks.metrics.states import shown_rightly
from kuayu_conformance.checks.metrics.timeline import Clock, Timeline
from kuayu_conformance.findings import Figure
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.sparse import Scale, Unit

BEGIN = 1_000_000.0
SCALE = Scale(healthy=1, faulty=1, warm_up=10, seconds=50)
WORKS = np.ones(SCALE.total, bool)
RESTS_FROM_30 = np.arange(SCALE.total) < 30


@dataclass
class Stage:
    """A world of which everything is said by hand."""

    units: Sequence[Unit]
    scale: Scale = field(default_factory=lambda: SCALE)


def well(works: "np.ndarray" = WORKS, name: str = "a") -> Unit:
    """A node with which nothing is wrong."""
    return Unit("steady", ("power",), (name,), works, None, 12.0)


def stops(onset: int = 20, name: str = "b") -> Unit:
    """A node that stops."""
    return Unit("stuck kernel", ("power",), (name,), WORKS, onset, 12.0)


def judged(units: Sequence[Unit], *shown: tuple[float, str, str]) -> Figure:
    """The figure of a stream that told of a node, in a second, a state; all are busy at first."""
    rows = [{"id": name, "domain": "d", "state": "busy"} for unit in units for name in unit.nodes]
    bodies = [(at, {"domains": [], "nodes": [{"id": n, "domain": "d", "state": s}], "links": []}) for at, n, s in shown]
    events = [StreamEvent(BEGIN + at, "e:1", "change", json.dumps(body)) for at, body in bodies]
    return shown_rightly(Stage(units), Timeline({"domains": [], "nodes": rows, "links": []}, events), Clock(BEGIN))  # type: ignore[arg-type]


def shares(figure: Figure) -> list[float]:
    return [part.estimate for part in figure.parts]


TOLD = (21.0, "b", "faulty")


@pytest.mark.parametrize("state", ["degraded", "straggling", "faulty", "offline"])
def test_one_second_in_trouble_counts_against_a_node_that_is_well(state: str) -> None:
    found = judged([well(), stops()], (40.0, "a", state), (41.0, "a", "busy"), TOLD)
    assert shares(found) == [0.0, 1.0]
    assert found.estimate == 0.0
    assert f"{state}, 40 s after the beginning" in found.misses[0].found


def test_trouble_in_the_warm_up_alone_does_not_count() -> None:
    assert judged([well(), stops()], (4.0, "a", "faulty"), (9.0, "a", "busy"), TOLD).estimate == 1.0


def test_unknown_is_never_wrong_of_a_node_that_is_well_but_no_way_to_pass() -> None:
    found = judged([well(), stops()], (2.0, "a", "unknown"), (2.0, "b", "unknown"))
    assert shares(found) == [1.0, 0.0]
    assert found.estimate == 0.0


def test_work_and_rest_may_be_told_late_but_not_for_ever() -> None:
    assert judged([well(RESTS_FROM_30), stops()], (42.0, "a", "idle"), TOLD).estimate == 1.0
    assert judged([well(RESTS_FROM_30), stops()], (43.5, "a", "idle"), TOLD).estimate == 0.0


@pytest.mark.parametrize(
    ("told", "until", "right"),
    [(32.0, 60.0, True), (32.5, 60.0, False), (25.0, 30.0, True), (25.0, 29.0, False), (19.0, 60.0, False)],
)
def test_what_stops_is_told_in_time_for_five_seconds_and_not_beforehand(told: float, until: float, right: bool) -> None:
    found = judged([well(), stops()], (told, "b", "faulty"), (until, "b", "busy"))
    assert shares(found) == [1.0, float(right)]


def test_one_of_480_may_be_wrong_and_five_are_too_many() -> None:
    names = [f"n{number}" for number in range(480)]
    units = [*(well(name=name) for name in names), *(stops(name=f"s{name}") for name in names)]
    told = [(21.0, f"s{name}", "faulty") for name in names]

    def with_wrong(count: int) -> Figure:
        wrong = [(20.0, name, "degraded") for name in names[:count]]
        return judged(units, *sorted([*told, *wrong], key=lambda row: row[0]))

    assert with_wrong(1).bound > 0.99
    assert with_wrong(2).bound < 0.99 < with_wrong(2).estimate
    assert with_wrong(5).estimate < 0.99
