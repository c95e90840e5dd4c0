"""Topology, workload, law and engine together, on five of the real places."""

from math import inf

import pytest

from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, FirstToAdmit, HomeBackfill, HomeFifo
from kuayu_conformance.testbed.scheduling.engine.state import Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import LLAMA_3_FAILURES, Cut, Disturbances, World, play
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.workload import draw

HOURS = 3600.0


def played(policy: Policy, *, troubled: bool = False) -> Outcome:
    """Two hours of submissions, and four to see most of them through."""
    topology = build("balanced", 5, "together", nodes=16)
    workload = draw("balanced", topology.sites, 0.5, 2 * HOURS, "together", devices=topology.devices)
    disturbances = Disturbances()
    if troubled:
        cut = Cut(topology.sites[1].name, HOURS, 2 * HOURS)
        disturbances = Disturbances(failures=100 * LLAMA_3_FAILURES, cuts=(cut,))
    world = World(topology, workload, PublishedLaw.of(topology), "together", disturbances)
    play(world, policy, 6 * HOURS)
    return world.outcome()


@pytest.mark.parametrize("policy", [HomeFifo, HomeBackfill, FirstToAdmit, EarliestCompletion])
@pytest.mark.parametrize("troubled", [False, True])
def test_a_baseline_does_the_same_again_and_the_books_agree(policy: type[HomeFifo], troubled: bool) -> None:
    first, again = (played(policy(), troubled=troubled) for _ in range(2))
    assert repr(first) == repr(again)
    finished = [record for record in first.jobs if record.finished < inf]
    assert len(finished) > 0.3 * len(first.jobs)
    assert all(record.submitted <= record.periods[0].begin <= record.finished for record in finished)
    assert (first.occupied <= first.available * (1 + 1e-9)).all()
    assert (first.computing <= first.occupied * (1 + 1e-9) + 1e-6).all()
    assert first.work.sum() == pytest.approx(sum(record.done for record in first.jobs))
    assert first.money.sum() == pytest.approx(sum(record.money for record in first.jobs))
    assert any(record.failures for record in first.jobs) == troubled
    if not troubled:
        assert first.refusals == 0


def test_one_queue_for_all_domains_gets_more_done_than_each_for_itself() -> None:
    fifo, home, together = (played(policy()) for policy in (HomeFifo, HomeBackfill, EarliestCompletion))
    assert fifo.work.sum() <= home.work.sum() < together.work.sum()
