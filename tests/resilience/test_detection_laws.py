"""Laws of the detector, whatever the beats."""

from copy import deepcopy
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from resilience.hearts import Hearts, nodes

from kuayu.resilience.detection import Beats, Detector, Origins, Population
from kuayu.resilience.detection.heartbeats import GapSurvival


def history(seed: int, count: int, seconds: float, lossy: float) -> Beats:
    """Beats of some nodes with delays and losses, in order of arrival."""
    random = np.random.default_rng(seed)
    tick = np.arange(int(seconds * 2))
    due = random.uniform(0, 0.5, count)[:, None] + tick / 2
    arrives = due + 0.01 * np.exp(random.standard_normal(due.shape))
    kept = random.random(due.shape) >= lossy
    node, number = np.nonzero(kept)
    order = np.argsort(arrives[kept], kind="stable")
    return Beats(node, number, due[kept], arrives[kept])[order]


def played(beats: Beats, domain: np.ndarray, until: float, shuffle: np.random.Generator | None = None) -> Detector:
    """A detector that has heard beats, looking every half second."""
    detector = Detector(Population(domain, int(domain.max()) + 1))
    first = 0
    for now in np.arange(0.5, until + 1e-9, 0.5):
        last = int(np.searchsorted(beats.received, now))
        which = np.arange(first, last)
        detector.hear(beats[which if shuffle is None else shuffle.permutation(which)])
        detector.look(float(now))
        first = last
    return detector


worlds = st.tuples(st.integers(0, 10**6), st.integers(2, 12), st.floats(0, 0.3))


@settings(max_examples=10, deadline=None)
@given(worlds, st.randoms(use_true_random=False))
def test_permuting_nodes_changes_nothing(world: tuple[int, int, float], random: object) -> None:
    seed, count, lossy = world
    beats, domain = history(seed, count, 12, lossy), np.arange(count) % 2
    order = list(range(count))
    random.shuffle(order)  # type: ignore[attr-defined]
    place = np.argsort(order)
    one = played(beats, domain, 12).look(15.0)
    permuted = Beats(place[beats.node], beats.sequence, beats.sent, beats.received)
    other = played(permuted, domain[order], 12).look(15.0)
    assert other.node.tolist() == one.node[order].tolist()
    assert np.allclose(other.suspicion, one.suspicion[order])
    assert other.domain.tolist() == one.domain.tolist()


@settings(max_examples=10, deadline=None)
@given(worlds)
def test_beats_in_disorder_are_beats_in_order(world: tuple[int, int, float]) -> None:
    seed, count, lossy = world
    beats, domain = history(seed, count, 12, lossy), np.arange(count) % 2
    one = played(beats, domain, 12).look(13.0)
    other = played(beats, domain, 12, np.random.default_rng(seed)).look(13.0)
    assert other.node.tolist() == one.node.tolist()
    assert other.suspicion.tolist() == one.suspicion.tolist()
    assert other.node_since.tolist() == one.node_since.tolist()


@settings(max_examples=10, deadline=None)
@given(worlds)
def test_beats_that_come_twice_change_nothing(world: tuple[int, int, float]) -> None:
    seed, count, lossy = world
    beats, domain = history(seed, count, 12, lossy), np.arange(count) % 2
    twice = Beats(*(np.repeat(getattr(beats, each), 2) for each in ("node", "sequence", "sent", "received")))
    one, other = played(beats, domain, 12).look(13.0), played(twice, domain, 12).look(13.0)
    assert other.node.tolist() == one.node.tolist()
    assert other.suspicion.tolist() == one.suspicion.tolist()


@settings(max_examples=10, deadline=None)
@given(worlds, st.lists(st.floats(0, 30), min_size=2, max_size=6))
def test_more_silence_never_lowers_suspicion_nor_raises_the_dead(
    world: tuple[int, int, float], later: list[float]
) -> None:
    seed, count, lossy = world
    hearts = Hearts(count + 10, seed=seed)
    hearts.go(12, lossy=lossy)
    hearts.go(3)
    before, dead = 0.0, False
    for _ in range(40):
        report = hearts.go(0.1, mute=[0])
        found = float(report.suspicion[0])
        calm = report.silent_share[0] < 0.2  # many late at once are a reason to suspect each of them less
        assert not dead or nodes(report)[0] == "dead"
        assert found >= before - 0.5 or not calm
        before, dead = found, nodes(report)[0] == "dead"
    lateness = GapSurvival(np.zeros(count, int), 1)
    for gap in np.random.default_rng(seed).lognormal(0, lossy + 0.01, (50, count)):
        lateness.learn(np.arange(count), gap, np.ones(count, bool))
    lateness.refresh(1.0)
    beliefs = [lateness.suspicion(np.full(count, each)) for each in sorted(later)]
    assert all((after >= each).all() for each, after in pairwise(beliefs))


@settings(max_examples=10, deadline=None)
@given(worlds, st.floats(10, 16), st.floats(0.1, 30))
def test_a_domain_that_goes_silent_as_a_whole_kills_nobody(
    world: tuple[int, int, float], begins: float, lasts: float
) -> None:
    seed, count, lossy = world
    beats, domain = history(seed, count + 8, 50, min(lossy, 0.02)), np.arange(count + 8) % 2
    cut = (domain[beats.node] == 0) & (beats.received > begins) & (beats.received < begins + lasts)
    beats = beats[~cut]
    detector = Detector(Population(domain, 2))
    first = 0
    for now in np.arange(0.2, begins + lasts + 0.5, 0.2):
        last = int(np.searchsorted(beats.received, now))
        detector.hear(beats[np.arange(first, last)])
        first = last
        report = detector.look(float(now))
        if now > begins:
            assert not (report.node[domain == 0] == 2).any()


@settings(max_examples=10, deadline=None)
@given(worlds)
def test_rows_that_move_keep_what_was_learnt(world: tuple[int, int, float]) -> None:
    seed, count, lossy = world
    beats, domain = history(seed, count, 12, lossy), np.arange(count) % 2
    detector = played(beats, domain, 12)
    order = np.random.default_rng(seed).permutation(count)
    stays = deepcopy(detector)
    detector.rearrange(Population(domain[order], 2), Origins(nodes=order))
    one, other = stays.look(14.0), detector.look(14.0)
    assert other.node.tolist() == one.node[order].tolist()
    assert np.allclose(other.suspicion, one.suspicion[order])
