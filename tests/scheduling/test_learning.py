"""What is trained is what serves: the same snapshots, the same decisions, the same network."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from kuayu.scheduling.parse import snapshot_of
from kuayu.scheduling.policy_network import MOST, PolicyNetwork, observation
from kuayu.scheduling.scheduler import decide
from kuayu.scheduling.scoring import FEATURES, OWN, Rule, Weights

pytest.importorskip("sb3_contrib", reason="training needs the extra 'training'")

import torch

from kuayu.bench.reference import ReferencePolicy
from kuayu.bench.snapshots import Snapshots
from kuayu_conformance.testbed.scheduling.baselines import WeighedCompletion
from kuayu_conformance.testbed.scheduling.engine.episode import play
from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_conformance.testbed.scheduling.topology import FAMILIES
from kuayu_conformance.testbed.scheduling.wire import Wire
from kuayu_training.scheduling import held_out
from kuayu_training.scheduling.desk import ASKED_AGAIN, Desk
from kuayu_training.scheduling.env import SchedulingEnv
from kuayu_training.scheduling.ledger import LARGE, MONEY, UNIT, Ledger, beside, yardstick
from kuayu_training.scheduling.scenarios import LARGER, LEARNED, STRANGE, drawn
from kuayu_training.scheduling.scorer import Scorer
from kuayu_training.scheduling.tuning import CHOICES, Tried, chosen, played, tune

HOUR = 3600.0
BRIEF = Timing(HOUR, 2 * HOUR, 3 * HOUR)
ROOT = Path(__file__).parents[2]


def short(number: int) -> Scenario:
    return drawn("testing", number, Timing(0.0, 2 * HOUR, 0.0))


def features(rows: int, seed: int = 3) -> np.ndarray:
    """Candidates of a job, half of them free now, that differ little enough for a choice."""
    random = np.random.default_rng(seed)
    found = np.zeros((rows, len(FEATURES)))
    found[:, 0] = np.where(random.random(rows) < 0.5, 0.0, random.uniform(60.0, 90.0, rows))
    found[0, 0] = 0.0
    found[:, 1] = random.uniform(0.0, 30.0, rows)
    found[:, 2] = random.uniform(3600.0, 3700.0, rows)
    found[:, 3:6] = random.uniform(0.0, 0.01, (rows, 3))
    found[:, 6:] = random.uniform(1.0, 10.0, (rows, len(FEATURES) - 6))
    return found


def network(seed: int = 5) -> tuple[Scorer, PolicyNetwork]:
    """A network with weights that nobody has trained, in PyTorch and in NumPy."""
    torch.manual_seed(seed)
    its = observation(features(9), Rule().scores(features(9), OWN))
    scorer = Scorer(its.seen.shape[1])
    torch.nn.init.normal_(scorer.leave.weight)
    return scorer, PolicyNetwork.of(scorer.to_weights())


def test_the_network_prefers_the_same_in_numpy_and_in_pytorch() -> None:
    scorer, served = network()
    its = observation(features(9), Rule().scores(features(9), OWN))
    candidates = np.zeros((1, MOST, 2 + its.seen.shape[1]), dtype=np.float32)
    count = len(its.rows)
    candidates[0, :count, 0], candidates[0, :count, 1], candidates[0, :count, 2:] = 1.0, its.regrets, its.seen
    with torch.no_grad():
        trained = scorer(torch.from_numpy(candidates))[0, :count].numpy()
    np.testing.assert_allclose(served.preferences(its), trained, atol=1e-4)


def test_neither_the_order_of_ways_nor_one_that_is_out_of_the_question_matters() -> None:
    _, served = network()
    rows = features(9)
    turned = np.random.default_rng(1).permutation(9)
    scores = served.scores(rows, OWN)
    np.testing.assert_allclose(served.scores(rows[turned], OWN), scores[turned])
    hopeless = rows[:1].copy()
    hopeless[0, 2] = 1e9
    np.testing.assert_allclose(served.scores(np.vstack([rows, hopeless]), OWN)[:9], scores)


def test_what_was_learned_counts_for_the_weights_for_which_it_was_learned() -> None:
    _, served = network()
    rows = features(9)
    other = Weights(period=0.0, communication=1.0, utilisation=0.0, price=0.0)
    np.testing.assert_array_equal(served.scores(rows, other), Rule().scores(rows, other))
    assert (served.scores(rows, OWN) != Rule().scores(rows, OWN)).any()
    np.testing.assert_array_equal(np.sort(served.scores(rows, OWN)), np.sort(Rule().scores(rows, OWN)))


def test_a_scene_of_a_view_says_what_the_suite_says_over_http() -> None:
    world = short(0).world()
    scenes, wire = Snapshots(), Wire("names")
    for _ in range(25):
        view = world.advance(2 * HOUR)
        if view is None:
            break
        snapshot, _ = scenes.of(view)
        told = snapshot_of(wire.state_of(view))
        waiting = slice(snapshot.waiting)
        assert snapshot.waiting == told.waiting
        assert len(snapshot.jobs) == len(told.jobs)
        for name in ("requested", "used", "measured", "duration", "exchange", "step_time", "checkpoint", "serial"):
            ours, theirs = getattr(snapshot.jobs, name), getattr(told.jobs, name)
            np.testing.assert_allclose(ours[waiting], theirs[waiting], rtol=1e-9, err_msg=name)
            np.testing.assert_allclose(np.sort(ours), np.sort(theirs), rtol=1e-9, err_msg=name)
        for name in ("rate", "ready", "devices"):
            ours, theirs = getattr(snapshot.held, name), getattr(told.held, name)
            np.testing.assert_allclose(np.sort(ours), np.sort(theirs), rtol=1e-6, atol=2e-3, err_msg=name)
        ours, theirs = snapshot.staging[0][waiting], told.staging[0][waiting]
        np.testing.assert_allclose(np.sort(ours, axis=1), np.sort(theirs, axis=1), rtol=1e-6, atol=1e-3)
        world.obey(ReferencePolicy().decide(view))


def test_a_desk_that_is_always_answered_as_the_rule_would_decides_as_the_rule_does() -> None:
    """But for half an hour after a job has chosen to wait: it is not asked again so soon."""
    world, desk, scenes, asked, patient = short(1).world(), Desk(), Snapshots(), 0, 0.0
    while (view := world.advance(2 * HOUR)) is not None:
        snapshot, _ = scenes.of(view)
        question = desk.open(view)
        while question is not None:
            asked += 1
            if not question.seen[0, 0] > 0.0:
                patient = view.now + ASKED_AGAIN
            question = desk.answer(0)
        starts = sum(attempt.starts for attempt in decide(snapshot).attempts)
        assert desk.orders or not starts or view.now < patient
        world.obey(desk.orders)
    assert asked


def test_gymnasium_finds_nothing_wrong_with_the_environment() -> None:
    import gymnasium
    from gymnasium.utils.env_checker import check_env

    name = "kuayu_training.scheduling.registration:kuayu/Scheduling-v0"
    check_env(gymnasium.make(name, scenarios=short).unwrapped, skip_render_check=True)


def test_rewards_sum_up_to_the_gain_over_the_yardstick() -> None:
    its = short(2)
    env = SchedulingEnv(scenarios=lambda _: its)
    env.reset()
    total, done = 0.0, False
    while not done:
        assert env.action_masks()[0]
        _, reward, done, _, _ = env.step(np.int64(0))
        total += reward
    measure = yardstick(its)
    (every, large), money = Ledger(its).totals(env._world)  # noqa: SLF001 - of what it has just played
    time = 0.5 * (every / measure.periods[0] + large / measure.periods[1])
    assert total == pytest.approx(UNIT * (1.0 - time + MONEY * (1.0 - money / measure.money)), abs=1e-6)


def test_b3c_gains_nothing_over_itself() -> None:
    its = short(3)
    measure = yardstick(its)
    assert beside(its, measure, WeighedCompletion())[:2] == (1.0, 1.0)
    assert measure.by(its.timing.horizon) == pytest.approx(measure.periods, rel=0.05)


def test_a_yardstick_counts_the_time_of_large_jobs_apart() -> None:
    """The ledger sums up who is there while time passes; the record says from when to when each job was."""
    its = short(3)
    world, until = its.world(), its.timing.horizon
    play(world, WeighedCompletion(), until)
    there = {record.name: min(record.finished, until) - record.submitted for record in world.outcome().jobs}
    large = {job.name for job in its.workload.jobs if job.requested >= LARGE}
    expected = sum(there.values()), sum(seconds for name, seconds in there.items() if name in large)
    assert 0.0 < expected[1] < expected[0]
    assert yardstick(its).periods == pytest.approx(expected)


@pytest.mark.slow
def test_a_seed_gives_the_same_weights_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from kuayu_training.scheduling import env, learning

    for module in (env, learning):
        monkeypatch.setattr(module, "drawn", lambda _, number: short(number))
    monkeypatch.setattr(learning, "STEPS", 16)
    monkeypatch.setattr(learning, "SHOWN", 1)
    first, second = (learning.learn(11, 256, 1, 1, lambda _: None) for _ in range(2))
    assert first.points == second.points
    for name, array in first.weights.items():
        np.testing.assert_array_equal(array, second.weights[name])


def test_the_rule_ships_with_the_best_of_what_was_tried() -> None:
    found = json.loads((ROOT / "docs/results/scheduling/tuning.json").read_text("utf-8"))
    best = chosen([Tried(**each) for each in found["tried"]])
    assert found["chosen"] == asdict(best)
    assert (best.money, best.doubt) == (Rule().money, Rule().doubt)
    assert {(each["money"], each["doubt"]) for each in found["tried"]} == set(CHOICES)


@pytest.mark.slow
def test_tuning_writes_down_what_each_choice_leads_to(tmp_path: Path) -> None:
    choices = [(220.0, 3.0), (1760.0, 2.0)]
    (path,) = tune(5, tmp_path, 1, 1, lambda _, __: None, choices, BRIEF)
    found = json.loads(path.read_text("utf-8"))
    expected = played("tuning 5", 0, choices, BRIEF)
    assert [[each["period"], each["large"], each["cost"]] for each in found["tried"]] == np.round(expected, 4).tolist()
    assert expected[0] != expected[1], "what money and waiting count makes a difference"
    assert found["chosen"] in found["tried"]


def test_the_shortest_periods_are_taken_of_those_that_are_cheap_enough() -> None:
    quick, fair, slow = (Tried(1.0, 1.0, *each) for each in ((0.8, 0.7, 0.81), (0.9, 0.8, 0.8), (0.95, 0.8, 0.1)))
    assert chosen([slow, quick, fair]) == fair
    assert chosen([quick]) == quick


def test_a_lead_over_the_rule_is_told_with_its_lower_bound() -> None:
    """Leads of 0.01, 0.02 and 0.03 in both times, none in money: Student's bound by hand is 0.02 − 2.92 · 0.01 / √3."""
    names = ("B3", "B4", "rule", "network")
    alike = dict.fromkeys(names, (1.0, 1.0, 1.0))
    found = [alike | {"network": (1.0 - lead, 1.0 - lead, 1.0)} for lead in (0.01, 0.02, 0.03)]
    compared = held_out.compared("learned", found)
    assert compared.lead == pytest.approx(0.02)
    assert compared.allocator == pytest.approx(0.02 - 2.92 * 0.01 / 3**0.5, abs=2e-4)
    assert compared.objectives["rule"] == pytest.approx(0.0)


def test_kinds_whose_trace_is_not_at_hand_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUAYU_DATA", str(tmp_path))
    assert held_out.played({}, 1, "trace", 0) is None


def test_families_that_nobody_learns_in_are_kept_for_comparisons() -> None:
    learned = set(LEARNED.families)
    assert not learned & set(STRANGE.families)
    assert learned | set(STRANGE.families) == set(FAMILIES)
    assert drawn("testing", 1, kind=LARGER).cell.sites >= 10
