"""Who lives: a silent node is suspected, then dead; a silent domain is unreachable, and kills nobody."""

import numpy as np
import pytest
from resilience.hearts import Hearts, domains, nodes

from kuayu.resilience.detection import Settings

LEARNT = 60


def test_a_node_that_falls_silent_is_suspected_and_then_dead_within_three_seconds() -> None:
    hearts = Hearts(40)
    assert set(nodes(hearts.go(LEARNT))) == {"alive"}
    seen = []
    for _ in range(30):
        report = hearts.go(0.1, mute=[7])
        seen.append(nodes(report)[7])
        assert nodes(report).count("alive") == 39 + (seen[-1] == "alive")
    assert seen == sorted(seen, key=["alive", "suspected", "dead"].index), "it never gets better by being silent"
    assert set(seen) == {"alive", "suspected", "dead"}


def test_a_node_that_was_never_heard_is_unknown_and_says_so() -> None:
    hearts = Hearts(3)
    report = hearts.go(10, mute=[2])
    assert nodes(report) == ["alive", "alive", "unknown"]
    assert hearts.detector.explain_node(2, report).evidence == ("never heard",)


def test_nobody_dies_of_a_partition_and_who_died_amid_it_is_found_after_it() -> None:
    hearts = Hearts(30, 30)
    hearts.go(LEARNT)
    for _ in range(100):
        report = hearts.go(0.1, mute=range(30))
        assert "dead" not in nodes(report)
    assert domains(report) == ["unreachable", "reachable"]
    assert set(nodes(report)[:30]) == {"unknown"}
    assert set(nodes(report)[30:]) == {"alive"}
    why = hearts.detector.explain_node(4, report)
    assert "its domain is silent" in why.evidence[0]
    assert hearts.detector.explain_domain(0, report).since == pytest.approx(LEARNT, abs=2)
    back = hearts.go(1, mute=[4])
    assert domains(back) == ["reachable", "reachable"]
    assert nodes(back)[4] == "unknown"
    late = hearts.go(3, mute=[4])
    assert [node for node, state in enumerate(nodes(late)) if state != "alive"] == [4]
    assert nodes(late)[4] == "dead"


def test_a_partition_that_flickers_kills_nobody() -> None:
    hearts = Hearts(60)
    hearts.go(LEARNT)
    for length in (0.7, 1.3, 2.2, 3.1, 0.9):
        for _ in range(round(length * 10)):
            assert "dead" not in nodes(hearts.go(0.1, mute=range(60)))
        for _ in range(7):
            assert "dead" not in nodes(hearts.go(0.1))


def test_a_rack_that_fails_is_dead_a_little_later_than_a_node() -> None:
    hearts = Hearts(100)
    hearts.go(LEARNT)
    report = hearts.go(8, mute=range(8))
    assert [node for node, state in enumerate(nodes(report)) if state == "dead"] == list(range(8))
    assert domains(report) == ["reachable"]


def test_beats_lost_in_a_storm_over_a_whole_domain_kill_nobody() -> None:
    hearts = Hearts(150)
    hearts.go(LEARNT)
    for _ in range(150):
        assert "dead" not in nodes(hearts.go(0.1, lossy=0.25))


def test_losses_that_are_common_make_a_domain_patient_and_its_neighbour_stays_quick() -> None:
    def waited(lossy: float) -> float:
        hearts = Hearts(60, settings=Settings(alarms=20.0))
        hearts.go(LEARNT, lossy=lossy)
        for tick in range(60):
            if nodes(hearts.go(0.1, mute=[0], lossy=lossy))[0] == "dead":
                return tick / 10
        return np.inf

    quiet, leaky = waited(0.0), waited(0.02)
    assert quiet < leaky <= Settings().limit + 0.2


def test_a_node_that_comes_and_goes_is_not_announced_dead_at_every_turn() -> None:
    hearts = Hearts(30)
    hearts.go(LEARNT)
    before, deaths = "alive", 0
    for turn in range(7):
        for _ in range(100):
            report = hearts.go(0.1, mute=[5] if _ < 40 else [])
            deaths += nodes(report)[5] == "dead" and before != "dead"
            before = nodes(report)[5]
        assert nodes(report)[5] == ("alive" if turn < 2 else "suspected")
    assert deaths == 3
    assert report.flapping.nonzero()[0].tolist() == [5]
    assert any("comes and goes" in each for each in hearts.detector.explain_node(5, report).evidence)
    gone = hearts.go(10, mute=[5])
    assert nodes(gone)[5] == "dead", "for good, it is still found"


def test_flapping_is_forgiven_in_time() -> None:
    hearts = Hearts(10, settings=Settings(half_life=10.0))
    hearts.go(20)
    for _ in range(4):
        hearts.go(4, mute=[5])
        report = hearts.go(4)
    assert report.flapping[5]
    report = hearts.go(40)
    assert not report.flapping[5]
    assert nodes(report)[5] == "alive"


@pytest.mark.parametrize("step", [-3600.0, -2.0, 2.0, 3600.0])
def test_a_sender_whose_clock_is_stepped_stays_alive_and_can_die(step: float) -> None:
    hearts = Hearts(20)
    hearts.go(60)
    hearts.clock[3] = step
    for _ in range(50):
        assert set(nodes(hearts.go(0.1))) == {"alive"}
    assert nodes(hearts.go(4, mute=[3]))[3] == "dead"
    assert nodes(hearts.go(1))[3] != "dead", "and comes back"


def test_beats_that_were_sent_before_a_death_do_not_raise_the_dead() -> None:
    hearts = Hearts(20)
    hearts.go(60)
    number = int(hearts.sequence[3])
    sent = hearts.now
    assert nodes(hearts.go(4, mute=[3]))[3] == "dead"
    hearts.hear(3, number - 2, sent - 1.0, hearts.now)
    hearts.hear(3, number, sent, hearts.now)
    hearts.hear(3, number + 1, sent + 0.5, hearts.now + 0.01)
    hearts.hear(3, number + 2, sent + 1.0, hearts.now + 0.02)
    assert nodes(hearts.go(0.1, mute=[3]))[3] == "dead"
    assert nodes(hearts.go(0.6))[3] != "dead", "a beat of now does"


@pytest.mark.parametrize("clock", [0.0, -86_400.0], ids=["clock goes on", "clock is set back"])
def test_a_node_that_restarts_lives_though_it_counts_from_the_beginning(clock: float) -> None:
    hearts = Hearts(20)
    hearts.go(60)
    assert nodes(hearts.go(4, mute=[3]))[3] == "dead"
    hearts.restart(3)
    hearts.clock[3] = clock
    assert nodes(hearts.go(2.5))[3] == "alive"


def test_a_stalled_sender_whose_beats_come_at_once_is_alive() -> None:
    hearts = Hearts(20)
    hearts.go(60)
    number, sent = int(hearts.sequence[3]), hearts.now
    hearts.go(4, mute=[3])
    for each in range(1, 9):
        hearts.hear(3, number + each, sent + each / 2, hearts.now)
    assert nodes(hearts.go(0.1))[3] != "dead"


def test_a_verdict_tells_since_when_and_why() -> None:
    hearts = Hearts(40, settings=Settings(alarms=20.0))
    hearts.go(LEARNT)
    report = hearts.go(2.5, mute=[7])
    why = hearts.detector.explain_node(7, report)
    assert why.state == "dead"
    assert LEARNT < why.since <= LEARNT + 2.5
    assert why.suspicion >= why.threshold
    assert why.evidence[0].startswith("last sign of life 2.")
    assert any("beats that are due from its domain come" in each for each in why.evidence)


def test_before_much_is_learnt_the_limit_decides_and_says_so() -> None:
    hearts = Hearts(20)
    hearts.go(5)
    report = hearts.go(3.5, mute=[7])
    why = hearts.detector.explain_node(7, report)
    assert why.state == "dead"
    assert why.suspicion < why.threshold
    assert "no node is granted more than 2.25 s of silence of its own" in why.evidence


def test_time_does_not_run_backwards() -> None:
    hearts = Hearts(2)
    hearts.go(1)
    with pytest.raises(ValueError, match="after"):
        hearts.detector.look(0.5)
