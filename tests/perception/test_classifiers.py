"""What is served in NumPy is what was trained in PyTorch."""

import numpy as np
import pytest

from kuayu.perception.recognition import classifiers
from kuayu.perception.recognition.classifiers import Ties
from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.groups import RELATED, Groups

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("shipped", [True, False])
def test_both_networks_say_the_same_in_numpy_and_in_pytorch(shipped: bool) -> None:
    from kuayu_training.recogniser import Graph, Plain, stacked, weights_of

    torch.manual_seed(7)
    random = np.random.default_rng(7)
    nodes, snapshots = 300, 2
    member, family = np.unique(random.integers(0, [nodes, 25], (320, 2)), axis=0).T
    ties = Ties(Groups.of(nodes, member, family), Groups.of(nodes, np.arange(nodes), random.integers(0, 7, nodes)))
    graph, plain = Graph(), Plain()
    weights = classifiers.shipped() if shipped else weights_of("graph", graph) | weights_of("plain", plain)
    for name, module in (("graph", graph), ("plain", plain)):
        held = {key.removeprefix(f"{name}."): torch.from_numpy(value) for key, value in weights.items()}
        module.load_state_dict({key: value for key, value in held.items() if key in module.state_dict()})
    features = random.normal(0, 0.7, (snapshots, nodes, len(OWN) + len(RELATED))).astype(np.float32)
    answers = (random.random((snapshots, nodes)) < 0.9).astype(np.float32)
    with torch.no_grad():
        rows = torch.from_numpy(features.reshape(-1, features.shape[2]))
        trained = graph(rows, torch.from_numpy(answers.reshape(-1, 1)), *stacked(ties, snapshots)).numpy()
        alone = plain(rows[:, : len(OWN)]).numpy()
    for snapshot in range(snapshots):
        part = slice(snapshot * nodes, (snapshot + 1) * nodes)
        served = classifiers.of_graph(weights, np.ascontiguousarray(features[snapshot].T), answers[snapshot], ties)
        scale = np.abs(trained[part]).max()
        np.testing.assert_allclose(served.T / scale, trained[part] / scale, atol=1e-5)
        served = classifiers.plain(weights, np.ascontiguousarray(features[snapshot].T[: len(OWN)]))
        scale = np.abs(alone[part]).max()
        np.testing.assert_allclose(served.T / scale, alone[part] / scale, atol=1e-5)


def test_the_weights_are_small_and_come_with_the_package() -> None:
    from importlib.resources import files

    held = files("kuayu.perception.recognition") / classifiers.WEIGHTS
    assert len(held.read_bytes()) < 200_000
    assert {name.split(".")[0] for name in classifiers.shipped()} == {"graph", "plain", "rules"}
