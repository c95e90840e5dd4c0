"""Delays and states are read off a stream: what counts as recognised, what does not, and when."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.states import (
    NEVER,
    Change,
    delays_of_changes,
    delays_of_states,
    domains_joined,
    moments_of,
    partitions,
    right_states,
)
from kuayu_conformance.checks.metrics.timeline import Clock, Timeline
from kuayu_conformance.findings import Claim
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.telemetry import Incident, Partition, Scale, World

BEGIN = 1_000_000.0


@pytest.mark.parametrize(("domains", "together", "last"), [(5, 5, 0.0), (8, 8, 0.0), (64, 8, 0.875)])
def test_aggregators_of_many_domains_send_spread_over_the_second(domains: int, together: int, last: float) -> None:
    world = World(Scale(domains=domains, nodes=2 * domains, warm_up=0, seconds=60, churn=0.01), "seed", str)
    moments = moments_of(world)
    assert moments.keys() == {body["id"] for body in world.domains}
    assert set(Counter(moments.values()).values()) == {together}
    assert max(moments.values()) == last


@dataclass
class Stage:
    """A world of which everything is said by hand."""

    incidents: Sequence[Incident] = ()
    names: Sequence[str] = ("a", "b")
    scale: Scale = field(default_factory=lambda: Scale(domains=2, nodes=4, warm_up=0, seconds=60, churn=0.01))
    partitions: Sequence[Partition] = ()
    late_nodes: Sequence[tuple[int, dict[str, Any]]] = ()

    @property
    def domains(self) -> list[dict[str, Any]]:
        """One domain."""
        return [{"id": "d"}]

    @property
    def links(self) -> list[dict[str, Any]]:
        """No links."""
        return []

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """Nodes of the domain."""
        return [{"id": name, "domain": "d"} for name in self.names]

    def truth(self, second: int) -> dict[str, str]:
        """States by the incidents; busy before the first."""
        states = dict.fromkeys(self.names, "busy")
        for incident in sorted(self.incidents, key=lambda row: row.onset):
            if incident.onset <= second:
                states[incident.node] = incident.after
        return states


def incident(node: str, at: float, after: str, before: str = "busy") -> Incident:
    """A change of truth."""
    return Incident(node=node, onset=at, before=before, after=after, cause="by hand", stratum="by hand")


def shown(at: float, *nodes: tuple[str, str], reachable: bool | None = None, gone: str = "") -> StreamEvent:
    """An event ``at`` seconds after the beginning."""
    body = {
        "domains": [] if reachable is None else [{"id": "d", "reachable": reachable}],
        "nodes": [{"id": name, "domain": "d", "state": state} for name, state in nodes],
        "links": [],
        "gone": [{"kind": "node", "id": gone}] if gone else [],
    }
    import json

    return StreamEvent(BEGIN + at, "e:1", "change", json.dumps(body))


def timeline(*events: StreamEvent) -> Timeline:
    """What a stream showed that began with both nodes busy."""
    rows = [{"id": name, "domain": "d", "state": "busy"} for name in ("a", "b")]
    return Timeline({"domains": [{"id": "d", "reachable": True}], "nodes": rows, "links": []}, events)


def delays(stage: Any, line: Timeline) -> list[float]:
    """Worst delay of each state, as the figure's parts give it."""
    return [part.estimate for part in delays_of_states(stage, line, Clock(BEGIN)).parts]


def test_the_delay_runs_from_the_change_to_the_event() -> None:
    line = timeline(shown(12.5, ("a", "faulty")))
    assert delays(Stage([incident("a", 10.0, "faulty")]), line) == [pytest.approx(2.5)]


def test_a_state_that_is_shown_and_taken_back_at_once_does_not_count() -> None:
    line = timeline(shown(11, ("a", "faulty")), shown(13, ("a", "busy")), shown(18, ("a", "faulty")))
    assert delays(Stage([incident("a", 10.0, "faulty")]), line) == [pytest.approx(8.0)]


def test_a_state_that_was_shown_before_it_was_true_has_no_delay_but_must_stay() -> None:
    early = timeline(shown(9, ("a", "idle")))
    assert delays(Stage([incident("a", 10.0, "idle")]), early) == [0.0]
    left = timeline(shown(9, ("a", "idle")), shown(11, ("a", "busy")))
    assert delays(Stage([incident("a", 10.0, "idle")]), left) == [NEVER]


def test_what_is_shown_after_the_truth_has_changed_again_is_too_late() -> None:
    stage = Stage([incident("a", 10.0, "idle"), incident("a", 22.0, "busy", "idle")])
    figure = delays_of_states(stage, timeline(shown(23, ("a", "idle")), shown(24, ("a", "busy"))), Clock(BEGIN))  # type: ignore[arg-type]
    by_state = {part.label: part.estimate for part in figure.parts}
    assert by_state == {"idle": NEVER, "busy": 0.0} or by_state == {"idle": NEVER, "busy": pytest.approx(2.0)}
    assert figure.estimate == NEVER


def test_changes_too_near_to_the_end_are_left_out() -> None:
    assert delays(Stage([incident("a", 55.0, "faulty")]), timeline()) == []


def test_the_world_waits_where_the_suite_could_not_keep_up() -> None:
    clock = Clock(BEGIN)
    clock.wait(20.0, 3.0)
    assert clock.at(19.0) == BEGIN + 19.0
    assert clock.at(20.0) == BEGIN + 23.0
    assert clock.waited == 3.0


def test_states_are_held_against_the_truth_but_for_the_ten_seconds_after_a_change() -> None:
    stage = Stage([incident("a", 20.0, "faulty")])
    right = right_states(stage, timeline(shown(29, ("a", "faulty"))), Clock(BEGIN))  # type: ignore[arg-type]
    by_state = {part.label: (part.estimate, part.n) for part in right.parts}
    assert by_state["faulty"] == (1.0, 30)
    assert by_state["busy"] == (1.0, 80)
    late = right_states(stage, timeline(shown(45, ("a", "faulty"))), Clock(BEGIN))  # type: ignore[arg-type]
    by_state = {part.label: (part.estimate, part.n) for part in late.parts}
    assert by_state["faulty"][0] == pytest.approx(2 * 15 / (15 + 30))
    assert late.bound <= late.estimate < right.estimate


def test_a_domain_has_joined_when_every_node_was_known_once_telemetry_ran() -> None:
    stage = Stage(late_nodes=[(5, {"id": "c", "domain": "d"})])
    told = shown(2, ("a", "idle"), ("b", "idle"))
    assert domains_joined(stage, timeline(told), Clock(BEGIN)).estimate == 0  # type: ignore[arg-type]
    assert domains_joined(stage, timeline(shown(6, ("c", "idle"))), Clock(BEGIN)).estimate == 0  # type: ignore[arg-type]
    joined = timeline(told, shown(6, ("c", "idle")))
    assert domains_joined(stage, joined, Clock(BEGIN)).estimate == 1  # type: ignore[arg-type]


def test_a_change_beside_the_world_is_timed_from_its_sending() -> None:
    answer = Answer(1, "DELETE", 204, started=BEGIN + 3.0)
    changes = [Change("deleted", "a", answer), Change("faulty", "b", answer)]
    figure = delays_of_changes(changes, timeline(shown(4, gone="a"), shown(5, ("b", "faulty"))), BEGIN + 60)
    assert {part.label: part.estimate for part in figure.parts} == {"deleted": 1.0, "faulty": 2.0}
    assert delays_of_changes(changes, timeline(shown(4, gone="a")), BEGIN + 60).estimate == NEVER
    assert delays_of_changes(changes, timeline(shown(4, gone="a")), BEGIN + 30).n == 0


def verdicts(*events: StreamEvent) -> list[bool]:
    """What is found of a partition of 30 s, claim by claim."""
    stage = Stage(partitions=[Partition(domain="d", since=20.0, until=52.0)])
    claims = partitions(stage, timeline(*events), Clock(BEGIN), Answer(1, "GET", 200))  # type: ignore[arg-type]
    return [claim.met for claim in claims if isinstance(claim, Claim)]


def test_a_partition_is_shown_as_one_and_ends() -> None:
    cut = shown(26, ("a", "unknown"), ("b", "unknown"), reachable=False)
    assert verdicts(cut, shown(55, ("a", "busy"), reachable=True)) == [True] * 4
    assert verdicts(cut) == [True, True, True, False]


def test_nodes_behind_a_partition_are_not_taken_for_dead() -> None:
    cut = shown(26, ("a", "offline"), ("b", "offline"))
    told = shown(28, ("a", "unknown"), ("b", "unknown"), reachable=False)
    assert verdicts(cut, told, shown(55, reachable=True)) == [True, True, False, True]
