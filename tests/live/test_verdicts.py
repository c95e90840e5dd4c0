"""Suspicion is not a verdict: what workers tell, and what the control plane makes of it."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.live.detection import AdaptiveFailureDetector, Fault, MembershipState, Stage, Stragglers, faults

MEMBERS = ("a", "b", "c", "d", "e")
SUSPECTED, SILENT = Stage.suspected, Stage.silent


def told(
    *,
    ended: Sequence[str] = (),
    silent: Mapping[str, Stage] | None = None,
    unheard: Mapping[str, Mapping[str, Stage]] | None = None,
    computing: Sequence[str] = (),
    stalled: bool = False,
    slow: Sequence[str] = (),
) -> MembershipState:
    return MembershipState(MEMBERS, frozenset(ended), silent or {}, unheard or {}, frozenset(computing), stalled, slow)


def by_others(worker: str, stage: Stage) -> dict[str, dict[str, Stage]]:
    """All others do not hear a worker."""
    return {each: {worker: stage} for each in MEMBERS if each != worker}


def test_all_is_well() -> None:
    assert faults(told()) == {}


def test_a_connection_that_ended_is_a_verdict() -> None:
    assert faults(told(ended=["b"])) == {"b": Fault.ended}


def test_silence_alone_is_none() -> None:
    assert faults(told(silent={"b": SILENT})) == {}


def test_silence_that_peers_confirm_is_one() -> None:
    assert faults(told(silent={"b": SILENT}, unheard=by_others("b", SUSPECTED))) == {"b": Fault.unreachable}


def test_peers_alone_see_a_partial_partition() -> None:
    everybody = {each: SILENT for each in MEMBERS if each != "b"}
    assert faults(told(unheard={**by_others("b", SILENT), "b": everybody})) == {"b": Fault.severed}


def test_one_peer_that_hears_nobody_is_not_believed() -> None:
    everybody = {each: SILENT for each in MEMBERS if each != "b"}
    assert faults(told(unheard={"b": everybody})) == {}


def test_a_partition_is_no_mass_kill() -> None:
    silent = dict.fromkeys("abc", SILENT)
    unheard = {each: dict.fromkeys("abc", SILENT) for each in "de"}
    assert faults(told(silent=silent, unheard=unheard)) == {}


@given(st.dictionaries(st.sampled_from(MEMBERS), st.sampled_from(list(Stage))), st.data())
def test_silence_never_takes_half_of_the_members(silent: dict[str, Stage], data: st.DataObject) -> None:
    stages = st.dictionaries(st.sampled_from(MEMBERS), st.sampled_from(list(Stage)))
    unheard = data.draw(st.dictionaries(st.sampled_from(MEMBERS), stages))
    assert 2 * len(faults(told(silent=silent, unheard=unheard))) < len(MEMBERS)


def test_who_computes_while_all_wait_hangs() -> None:
    assert faults(told(computing=["c"], stalled=True)) == {"c": Fault.hung}
    assert faults(told(computing=["c"])) == {}
    assert faults(told(computing=MEMBERS, stalled=True)) == {}


def test_slowness_waits_for_what_is_worse() -> None:
    assert faults(told(slow=["c"])) == {"c": Fault.slow}
    assert faults(told(slow=["c"], ended=["b"])) == {"b": Fault.ended}


def test_regular_beats_are_not_suspected() -> None:
    detector = AdaptiveFailureDetector(0.25)
    for number in range(100):
        detector.beat("a", 0.25 * number)
        assert detector.verdicts(0.25 * number + 0.25) == {}


def test_silence_is_first_suspected_then_certain() -> None:
    detector = AdaptiveFailureDetector(0.25)
    for number in range(100):
        detector.beat("a", 0.25 * number)
    last = 0.25 * 99
    assert detector.verdicts(last + 1.0) == {"a": SUSPECTED}
    assert detector.verdicts(last + 1.3) == {"a": SILENT}


def test_whoever_is_often_late_gets_more_time() -> None:
    detector = AdaptiveFailureDetector(0.25)
    detector.beat("a", 0.0)
    detector.beat("a", 1.2)
    assert detector.limit("a") == pytest.approx(1.8)


def test_one_late_step_makes_no_straggler() -> None:
    stragglers = Stragglers()
    for number in range(40):
        for each in MEMBERS:
            stragglers.step(each, 0.1 if each == "c" and number == 20 else 0.01, number)
        assert stragglers.slow_members(MEMBERS) == ()


def test_among_equals_three_times_as_slow_is_found() -> None:
    stragglers = Stragglers()
    for number in range(60):
        for each in MEMBERS:
            stragglers.step(each, 0.03 if each == "c" and number >= 30 else 0.01, number)
    assert stragglers.slow_members(MEMBERS) == ("c",)


def test_a_burst_of_other_work_on_the_host_is_no_straggler_however_many_steps_it_slows() -> None:
    seconds_per_step, first, burst = 0.03, 200, 50
    found = []
    for lasting in (burst, 2 * burst):
        stragglers = Stragglers()
        for number in range(first + lasting):
            for each in MEMBERS:
                slow = each == "c" and number >= first
                stragglers.step(each, 0.02 if slow else 0.002, number * seconds_per_step)
        found.append(stragglers.slow_members(MEMBERS))
    assert found == [(), ("c",)]


def test_on_a_crowded_host_it_is_not() -> None:
    stragglers = Stragglers()
    random = np.random.default_rng(1)
    for number in range(60):
        for each in MEMBERS:
            slow = 3 if each == "c" and number >= 30 else 1
            stragglers.step(each, 0.01 * slow * random.lognormal(0.0, 1.2), number)
    assert stragglers.slow_members(MEMBERS) == ()


def test_slowness_of_all_is_nobodys() -> None:
    stragglers = Stragglers()
    for number in range(40):
        for each in MEMBERS:
            stragglers.step(each, 0.01 * (1 + number), number)
    assert stragglers.slow_members(MEMBERS) == ()
