"""Faults of jobs and ranks, from the steps that beats tell of."""

from collections.abc import Collection

import pytest
from resilience.watched_nodes import BEGIN, Nodes

RANKS = 6


class Job:
    """A job on nodes of one domain, a rank on each, that makes steps while time goes on.

    Attributes:
        nodes: All nodes.
        seconds: Of a step.
        late: By how many seconds a rank does each step later than the others, who wait for it.
    """

    def __init__(self, seconds: float = 0.8, name: str = "job") -> None:
        self.nodes = Nodes(north=RANKS + 3)
        self.seconds, self.name = seconds, name
        self.late: dict[int, float] = {}
        self.first = 100
        self._step, self._done = 0, 0.0

    def train(self, seconds: float, mute: Collection[str] = ()) -> None:
        """Make steps for a while."""
        end = self.nodes.now + seconds
        self._done = max(self._done, self.nodes.now)
        while self.nodes.now < end - 0.05:
            if self.nodes.now >= self._done + self.seconds + max(self.late.values(), default=0.0):
                self._step, self._done = self._step + 1, self.nodes.now
            self._tell()
            self.nodes.go(0.1, mute)

    def stand(self, seconds: float, mute: Collection[str] = ()) -> None:
        """Make no step for a while."""
        self.nodes.go(seconds, mute)

    def end(self) -> None:
        """All ranks say that they have ended, in their next beats."""
        for rank in range(RANKS):
            self.nodes.steps[f"north-{rank}"] = [self._report(rank) | {"ended": True}]
        self.nodes.go(1)
        self.nodes.steps.clear()

    def _tell(self) -> None:
        for rank in range(RANKS):
            self.nodes.steps[f"north-{rank}"] = [self._report(rank)]

    def _report(self, rank: int) -> dict[str, object]:
        done = self.nodes.now >= self._done + self.seconds + self.late.get(rank, 0.0)
        return {"job": self.name, "rank": rank, "step": self.first + self._step + done}


def test_a_job_hangs_when_it_has_stood_for_half_a_minute_and_is_cleared_by_the_next_step() -> None:
    job = Job()
    job.train(60)
    assert job.nodes.told() == []
    stood = job.nodes.now
    job.stand(29)
    assert job.nodes.told() == [], "it has not stood for long enough"
    job.stand(11)
    assert job.nodes.told() == [("job_hung", "job", True)]
    at, told = job.nodes.changes[0]
    assert at - stood <= 30 + 3, "three seconds after it is so"
    assert told.domains == ("north",)
    assert BEGIN + stood - 1 <= told.since <= job.nodes.at
    job.train(3)
    assert job.nodes.told() == [("job_hung", "job", True), ("job_hung", "job", False)]


@pytest.mark.parametrize(("pause", "is_told"), [(55, False), (70, True)])
def test_a_job_is_known_for_its_longest_pause_of_late(pause: float, is_told: bool) -> None:
    job = Job()
    for _ in range(2):
        job.train(60)
        job.stand(20)
    job.train(60)
    assert job.nodes.told() == []
    job.stand(pause)
    assert bool(job.nodes.told()) is is_told


def test_a_job_whose_ranks_have_ended_is_not_waited_for() -> None:
    job = Job()
    job.train(40)
    job.end()
    job.stand(60)
    assert job.nodes.told() == []


def test_a_job_whose_node_is_dead_does_not_hang() -> None:
    job = Job()
    job.train(40)
    job.stand(60, mute=["north-2"])
    assert job.nodes.told() == [("node_dead", "north-2", True)]


def test_a_job_whose_nodes_are_deleted_is_no_longer_watched() -> None:
    job = Job()
    job.train(40)
    job.stand(40)
    assert job.nodes.open() == {("job_hung", "job")}
    for rank in range(RANKS):
        job.nodes.delete(f"north-{rank}")
    job.nodes.steps.clear()
    job.nodes.go(2)
    assert job.nodes.open() == set()


@pytest.mark.parametrize("seconds", [0.5, 0.8, 1.7])
def test_a_rank_that_is_late_by_more_than_half_a_second_straggles_until_it_keeps_up(seconds: float) -> None:
    job = Job(seconds)
    job.train(40)
    assert job.nodes.told() == [], "steps as often as beats, more often or less often"
    job.late = {2: max(0.6, 0.5 * seconds)}
    job.train(15 * (seconds + job.late[2]) + 10)
    assert job.nodes.told() == [("rank_straggling", "job:2", True)]
    job.late = {}
    job.train(30)
    assert job.nodes.told()[1:] == [("rank_straggling", "job:2", False)]


def test_clocks_that_are_off_make_nobody_straggle_and_hide_nobody() -> None:
    job = Job()
    job.nodes.ahead = {
        node: 0.45 * (number % 4) - 700.0 * (number == 1) for number, node in enumerate(job.nodes.domains)
    }
    job.train(90)
    assert job.nodes.told() == []
    job.late = {2: 1.0}
    job.train(45)
    assert job.nodes.told() == [("rank_straggling", "job:2", True)]


def test_a_rank_that_was_late_once_does_not_straggle() -> None:
    job = Job()
    job.train(40)
    job.late = {2: 1.5}
    job.train(2.5)
    job.late = {}
    job.train(30)
    assert job.nodes.told() == []
