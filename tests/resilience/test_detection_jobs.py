"""Whether jobs go on, which ranks are slow, and which links are degraded."""

import numpy as np
import pytest
from resilience.hearts import Hearts, job_states, nodes, ranks, steps

from kuayu.resilience.detection import LINK_STATES, Detector, Measurements, Population, Report

RANKS = 8


class Training(Hearts):
    """One job of eight ranks on as many nodes, a step every second."""

    def __init__(self, **options: object) -> None:
        jobs = {"rank_job": np.zeros(RANKS, int), "rank_node": np.arange(RANKS), "jobs": 1}
        super().__init__(20, **jobs, **options)  # type: ignore[arg-type]
        self.step = 0

    def train(self, count: int, late: dict[int, float] | None = None, mute: tuple[int, ...] = ()) -> Report:
        """Do so many steps; ranks are late by shares of a second, and finish their part a little apart."""
        for _ in range(count):
            self.step += 1
            behind = np.array([(late or {}).get(rank, 0.0) for rank in range(RANKS)])
            at = self.now + 0.5 + behind + self.random.normal(0, 0.01, RANKS)
            self.go(0.9, mute)
            self.detector.follow(steps(range(RANKS), self.step, at))
            report = self.go(0.1, mute)
        return report


def test_a_job_is_hung_when_its_steps_stop_and_its_nodes_live() -> None:
    job = Training()
    assert job_states(job.train(7)) == ["unknown"]
    assert job_states(job.train(60)) == ["running"]
    seen = [job_states(job.go(1))[0] for _ in range(40)]
    assert seen == sorted(seen, reverse=True), "running, then hung"
    assert seen[1] == "running"
    assert seen[-1] == "hung"
    assert set(nodes(job.go(0.1))) == {"alive"}
    why = job.detector.explain_job(0, job.go(0.1))
    assert why.evidence[0].startswith("step 67 was done 40")
    assert "all of its nodes send heartbeats" in why.evidence
    assert job_states(job.train(1)) == ["running"]


def test_the_rank_that_did_not_do_the_last_step_is_named() -> None:
    job = Training()
    job.train(60)
    others = [rank for rank in range(RANKS) if rank != 5]
    job.detector.follow(steps(others, job.step + 1, [job.now] * len(others)))
    why = job.detector.explain_job(0, job.go(60))
    assert why.state == "hung"
    assert why.evidence[-1] == "ranks that have not done this step: 5"


def test_a_job_that_waits_for_a_dead_node_is_blocked_and_not_hung() -> None:
    job = Training()
    job.train(60)
    for _ in range(60):
        report = job.go(1, mute=[2])
        assert job_states(report) != ["hung"]
    assert job_states(report) == ["blocked"]
    assert job.detector.explain_job(0, report).evidence[-1] == "nodes that are not alive: 2"


def test_pauses_that_a_job_is_used_to_are_not_hangs() -> None:
    job = Training()
    for _ in range(5):
        report = job.train(40)
        job.go(10)
    for _ in range(100):
        report = job.go(0.1)
        assert job_states(report) == ["running"], "as long as it always pauses"
        if _ == 20:
            break
    assert job_states(job.go(30)) == ["hung"]


def test_a_job_that_goes_back_to_a_checkpoint_goes_on() -> None:
    job = Training()
    job.train(60)
    job.go(40)
    job.step = 30
    assert job_states(job.train(6)) == ["running"]
    assert job_states(job.go(60)) == ["hung"], "and can hang again"


def test_steps_are_signs_of_life_of_their_nodes() -> None:
    job = Training()
    job.train(60)
    for _ in range(10):
        report = job.train(1, mute=(3, 15))
    assert nodes(report)[3] != "dead", "its steps go on"
    assert nodes(report)[15] == "dead", "nothing speaks for this one"


def test_a_rank_that_is_persistently_slow_is_a_straggler_and_one_pause_makes_none() -> None:
    job = Training()
    assert set(ranks(job.train(40))) == {"steady"}
    job.train(1, late={4: 0.4})
    assert set(ranks(job.train(5))) == {"steady"}
    report = job.train(20, late={4: 0.3})
    assert [rank for rank, state in enumerate(ranks(report)) if state == "straggler"] == [4]
    assert report.behind[4] == pytest.approx(0.3, abs=0.1)
    assert "later than the median" in job.detector.explain_rank(4, report).evidence[0]
    assert set(ranks(job.train(40))) == {"steady"}, "and it is over when it is"


def test_a_rank_that_falls_ever_further_behind_is_a_straggler() -> None:
    job = Training()
    job.train(40)
    at, step = np.full(RANKS, job.now), np.full(RANKS, 40)
    pace = np.where(np.arange(RANKS) == 6, 1.5, 1.0)
    end = job.now + 60
    while job.now < end:
        due = np.flatnonzero(at + pace <= job.now)
        at[due] += pace[due]
        step[due] += 1
        if len(due):
            job.detector.follow(steps(due, step[due].tolist(), at[due]))
        report = job.go(0.2)
    assert [rank for rank, state in enumerate(ranks(report)) if state == "straggler"] == [6]


def test_ranks_that_do_not_wait_for_each_other_and_drift_apart_are_no_stragglers() -> None:
    job, random = Training(seed=3), np.random.default_rng(3)
    at, step = np.zeros(RANKS) + 0.5, np.zeros(RANKS, int)
    while job.now < 200:
        due = np.flatnonzero(at <= job.now)
        if len(due):
            step[due] += 1
            job.detector.follow(steps(due, step[due].tolist(), at[due]))
            at[due] += 1 + random.normal(0, 0.05, len(due))
        report = job.go(0.2)
        assert "straggler" not in ranks(report)
    assert set(ranks(report)) == {"steady"}


class Line:
    """One link that is measured every second."""

    def __init__(self) -> None:
        self.detector = Detector(Population(np.zeros(1, int), 1, links=2))
        self.random, self.now = np.random.default_rng(5), 0.0

    def measure(self, count: int, round_trip: float = 0.02, bandwidth: float = 1e10, loss: float = 0.0) -> Report:
        """Measure so often, each time a little different."""
        for _ in range(count):
            self.now += 1
            around = np.exp(self.random.normal(0, 0.05, 2))
            values = (round_trip * around[:1], bandwidth * around[1:], np.array([loss]))
            self.detector.measure(Measurements(np.zeros(1, int), *values, np.array([self.now])))
            report = self.detector.look(self.now)
        return report


def link(report: Report) -> str:
    return LINK_STATES[report.link[0]]


@pytest.mark.parametrize(
    ("worse", "said"),
    [({"round_trip": 0.04}, "round-trip time"), ({"bandwidth": 5e9}, "bandwidth"), ({"loss": 0.05}, "loss")],
)
def test_a_link_is_degraded_when_it_stays_worse_and_good_when_it_is_again(worse: dict[str, float], said: str) -> None:
    line = Line()
    assert link(line.measure(40)) == "good"
    assert link(line.measure(1, **worse)) == "good", "one measurement is none"
    line.measure(5)
    bad = line.measure(8, **worse)
    assert link(bad) == "degraded"
    assert line.detector.explain_link(0, bad).evidence[0].startswith(said)
    assert link(line.measure(10)) == "good"


def test_a_link_that_is_not_measured_is_unknown() -> None:
    line = Line()
    report = line.measure(40)
    assert LINK_STATES[report.link[1]] == "unknown"
    assert line.detector.explain_link(1, report).evidence == ("never measured",)
    assert LINK_STATES[line.detector.look(line.now + 100).link[0]] == "unknown"
