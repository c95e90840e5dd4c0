"""Who answers: silence is told from lateness, and death from a broken path."""

import numpy as np
import pytest

from kuayu.perception.recognition.silence import Listener, Silence


class Ears:
    """Listens to nodes whose arrivals a test decides."""

    def __init__(self, *domains: int) -> None:
        self.domain = np.repeat(np.arange(len(domains)), domains)
        self.listener = Listener(self.domain, len(domains))
        self.arrived = np.full(len(self.domain), np.nan)
        self.now = 0.0

    def hear(self, nodes: object, seconds: float = 1.0) -> Silence:
        """Let time pass, then hear these nodes."""
        self.now += seconds
        self.arrived[nodes] = self.now  # type: ignore[index]
        return self.listener.update(self.now, self.arrived)


def everyone_but(ears: Ears, *nodes: int) -> np.ndarray:
    return np.setdiff1d(np.arange(len(ears.domain)), nodes)


@pytest.mark.parametrize("period", [1, 5, 15, 60])
def test_a_node_that_falls_silent_is_offline_after_a_few_of_its_periods(period: int) -> None:
    ears = Ears(10)
    for _ in range(30):
        assert not ears.hear(slice(None), period).silent.any()
    heard = [ears.hear(everyone_but(ears, 3), period).silent for _ in range(5)]
    assert not heard[1].any(), "two samples missed are not yet silence"
    assert heard[3].tolist() == [node == 3 for node in range(10)]
    assert not ears.hear(slice(None), period).silent.any(), "it is back with its first sample"


def test_nobody_dies_of_a_partition_and_the_domain_is_not_reachable() -> None:
    ears = Ears(20, 20)
    for _ in range(30):
        ears.hear(slice(None))
    for second in range(40):
        found = ears.hear(slice(20, 40))
        assert not found.silent.any()
        if second > 13:
            assert found.reachable.tolist() == [False, True]
            assert found.cut.tolist() == [True] * 20 + [False] * 20
    back = ears.hear(everyone_but(ears, 4))
    assert back.reachable.all()
    assert back.cut.tolist() == [node == 4 for node in range(40)], "who has not been heard yet is still unknown"
    for _ in range(6):
        back = ears.hear(everyone_but(ears, 4))
    assert back.silent.tolist() == [node == 4 for node in range(40)], "and dead when the others go on without it"


def test_a_partition_that_cuts_nodes_off_one_after_the_other_is_no_mass_failure() -> None:
    ears = Ears(100)
    for _ in range(30):
        ears.hear(slice(None))
    died = 0
    for second in range(30):
        late = np.arange(10 * second, 100) if second < 4 else np.zeros(0, int)
        died = max(died, int(ears.hear(late[late % 5 == 0]).silent.sum()))
    assert died <= 1


def test_a_mass_failure_is_seen_if_a_tenth_goes_on() -> None:
    ears = Ears(100)
    for _ in range(30):
        ears.hear(slice(None))
    for _ in range(40):
        found = ears.hear(slice(0, 10))
    assert found.silent.sum() == 90
    assert found.reachable.all()


def test_late_samples_do_not_flap() -> None:
    ears, random = Ears(50), np.random.default_rng(3)
    due: list[tuple[float, int]] = []
    flaps = 0
    for second in range(600):
        due += [(second + (random.uniform(0, 4) if node < 5 else 0), node) for node in range(50)]
        here = [node for at, node in due if at <= second]
        due = [each for each in due if each[0] > second]
        found = ears.hear(np.unique(here))
        flaps += int(found.silent[:5].sum()) if second > 60 else 0
        assert not found.silent[5:].any()
    assert flaps == 0


def test_bursts_of_one_domain_are_no_silence() -> None:
    ears = Ears(10, 10)
    for second in range(300):
        bursts = second % 5 == 0
        found = ears.hear(slice(None) if bursts else slice(10, 20))
        assert not found.silent.any()
        assert found.reachable.all() or second < 60


def test_lost_samples_that_are_common_teach_the_domain() -> None:
    ears, random = Ears(200), np.random.default_rng(4)
    lost_until = np.zeros(200)
    early = late = 0
    for second in range(600):
        begins = random.random(200) < 0.005
        lost_until = np.where(begins & (lost_until <= second), second + random.integers(1, 4, 200), lost_until)
        silent = int(ears.hear(np.flatnonzero(lost_until <= second)).silent.sum())
        early, late = (early + silent, late) if second < 100 else (early, late + silent)
    assert late / 500 < 200 * 2e-3


def test_a_stall_of_the_aggregator_stops_the_clock_for_all() -> None:
    ears = Ears(30)
    for _ in range(30):
        ears.hear(slice(None))
    for _ in range(4):
        assert not ears.hear([]).silent.any()
    assert not ears.hear(slice(0, 15)).silent.any()
    assert not ears.hear(slice(None)).silent.any()


def test_rows_keep_what_was_learnt_when_nodes_come_and_go() -> None:
    ears = Ears(4, 4)
    for _ in range(30):
        ears.hear(slice(None))
    origin = np.array([7, -1, 0, 1, 2])
    ears.domain = np.array([1, 1, 0, 0, 0])
    ears.listener.rearrange(ears.domain, 2, origin)
    ears.arrived = np.where(origin >= 0, ears.now, np.nan)
    found = ears.hear([0, 2, 3])
    assert found.known.tolist() == [True, False, True, True, True]
    for _ in range(3):
        found = ears.hear([0, 2, 3])
    assert found.silent.tolist() == [False, False, False, False, True]
