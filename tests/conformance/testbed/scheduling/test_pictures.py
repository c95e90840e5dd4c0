"""Pictures of a run that is worked out by hand."""

import pytest
from conformance.testbed.scheduling.small_world import RoundLaw, job, load, mesh, site

from kuayu_conformance.rendering.plot import plots
from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, HomeBackfill
from kuayu_conformance.testbed.scheduling.engine.world import CALM, play
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing, scenario
from kuayu_conformance.testbed.scheduling.values import Dataset
from kuayu_conformance.testbed.scheduling.windows import (
    Trajectory,
    bars,
    pictures,
    queue,
    recorded,
    traffic,
    utilisation,
)

HOUR = 3600.0


@pytest.fixture(name="trajectory")
def _trajectory() -> Trajectory:
    """Two jobs side by side in a from the first minute on, one after them, and one in b that fetches its data."""
    jobs = load(
        job("left", "a", 4, 1200.0),
        job("right", "a", 4, 3540.0),
        job("after", "a", 4, 1800.0),
        job("far", "b", 8, 600.0, data="d"),
        d=Dataset("d", 1200e9, ("a",)),
    )
    topology = mesh(site("a", 8), site("b", 8))
    its = Scenario(Cell("by hand", 1.0), Timing(0.0, HOUR, 0.0), "s", topology, jobs, RoundLaw(), CALM)
    return recorded(its, HomeBackfill(), "B1", 600.0)


def test_jobs_that_overlap_are_drawn_side_by_side(trajectory: Trajectory) -> None:
    """*far* has 1200 GB to fetch at 8 Gbit/s: 1200 s, in which it holds its devices already."""
    minute = 1 / 60
    rows = {
        name: [(round(begin / minute), round(end / minute), lane) for begin, end, lane in its]
        for name, its in bars(trajectory).items()
    }
    assert rows == {"a": [(1, 21, 1), (1, 60, 2), (21, 51, 1)], "b": [(1, 31, 1)]}


def test_utilisation_queue_and_traffic_are_means_and_figures_over_time(trajectory: Trajectory) -> None:
    shares = {series.label: series.y for series in utilisation(trajectory).series}
    assert shares["a"] == pytest.approx([0.9, 1.0, (1 + 0.5) / 2 + 0.5 / 2, 1.0, 1.0, 0.55])
    assert shares["b"] == pytest.approx([0.9, 1.0, 1.0, 0.1, 0.0, 0.0])
    waiting = {series.label: series.y for series in queue(trajectory).series}
    assert waiting == {"jobs": [0, 1, 1, 0, 0, 0, 0], "devices": [0, 4, 4, 0, 0, 0, 0]}
    rates = {series.label: series.y for series in traffic(trajectory).series}
    assert rates["b"] == pytest.approx([7.2, 8.0, 0.8, 0.0, 0.0, 0.0])


def test_watching_changes_nothing_and_everything_can_be_drawn() -> None:
    its = scenario(Cell("reference", 2.0, nodes=4), Timing(HOUR, 3 * HOUR, 0.0), "watched")
    trajectory = recorded(its, EarliestCompletion(), "B3")
    world = its.world()
    play(world, EarliestCompletion(), its.timing.end)
    assert repr(world.outcome()) == repr(trajectory.outcome)
    for plot in plots(pictures(trajectory)):
        assert plot.field is not None
        assert len(plot.series) >= 2
        assert not plot.notes
