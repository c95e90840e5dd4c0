"""The training generator: worlds follow from their seed, and their telemetry from who waits for whom."""

import numpy as np
import pytest

from kuayu.perception.recognition.values import BUSY, IDLE, OFFLINE, SIGNALS, STATES, STRAGGLING
from kuayu_training.fleet import CALM, HELD_OUT, TRAINING, Region
from kuayu_training.telemetry import World

UTILISATION, POWER = SIGNALS.index("accelerator_utilisation"), SIGNALS.index("power")


@pytest.mark.parametrize("region", [TRAINING, HELD_OUT])
def test_a_world_follows_from_its_seed_and_shows_every_state(region: Region) -> None:
    worlds = [World(4, region, [60, 60]), World(4, region, [60, 60]), World(5, region, [60, 60])]
    seen = set()
    differs = False
    for _ in range(250):
        one, same, other = (world.step() for world in worlds)
        np.testing.assert_array_equal(one.telemetry.values, same.telemetry.values)
        np.testing.assert_array_equal(one.truth, same.truth)
        differs |= not np.array_equal(one.truth, other.truth)
        seen |= {STATES[state] for state in one.truth}
    assert differs
    assert seen >= set(STATES[: OFFLINE + 1])


def test_idle_nodes_draw_less_than_working_ones_and_show_no_utilisation() -> None:
    world = World(9, TRAINING, [200], period=1)
    low: list[float] = []
    high: list[float] = []
    for second in range(200):
        moment = world.step()
        values, calm = moment.telemetry.values, (moment.cause == 0) & (moment.shown == moment.truth)
        if second > 60:
            devices = world.population.devices[0]
            low += (values[calm & (moment.truth == IDLE), POWER] / devices).tolist()
            high += (values[calm & (moment.truth == BUSY), POWER] / devices).tolist()
    if np.isnan(low).all():
        pytest.skip("the exporters of this world do not give power")
    assert np.nanmean(low) < 0.7 * np.nanmean(high)


def test_the_whole_family_moves_less_while_one_of_it_straggles() -> None:
    flow = SIGNALS.index("scale_out_transmit_flow")
    ratios = []
    for seed in range(6):
        world = World(seed, TRAINING, [120], period=1)
        usual = np.full(120, np.nan)
        for second in range(150):
            moment = world.step()
            population, values = world.population, moment.telemetry.values[:, flow]
            if second < CALM:
                usual = np.where(np.isnan(usual), values, 0.9 * usual + 0.1 * values)
            for family in np.unique(
                population.family[np.isin(population.member, np.flatnonzero(moment.truth == STRAGGLING))]
            ):
                others = population.member[population.family == family]
                others = others[(moment.truth[others] == BUSY) & (usual[others] > 1e7)]
                ratios += (values[others] / usual[others]).tolist()
    assert len(ratios) > 200
    assert np.nanmedian(ratios) < 0.9


def test_training_makes_the_network_say_the_truth_more_often() -> None:
    torch = pytest.importorskip("torch")
    from kuayu_training.recogniser import Graph, fit, play, said

    torch.manual_seed(1)
    played = play(1, TRAINING)
    graph = Graph()

    def right() -> float:
        with torch.no_grad():
            guess = said(graph, played, np.arange(len(played.truth))).argmax(1).numpy()
        truth = played.truth.reshape(-1)
        return float((guess == truth)[truth >= 0].mean())

    before = right()
    fit(graph, [played], 1, 4)
    assert right() > max(before, 0.7)
