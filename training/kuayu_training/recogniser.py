"""Training of the recognisers: play worlds, fit the networks, tune the rules and the damping, write the weights.

1. All of it follows from the seed, up to what sums in another order change. Both networks see the same snapshots for
   the same number of epochs. Rules and damping are tuned on worlds that the networks have not seen.
2. The networks are those of ``kuayu.perception.recognition.classifiers`` in PyTorch; same names, same results. Arrays
   have one row for each node; several snapshots of one world are stacked along the rows.
3. Snapshots are what a recogniser sees of the worlds, with the truth: the same code that recognises makes the features.
4. Damping is tuned, and confidences are calibrated, on worlds that the networks were not fitted to.
"""

import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor, nn

from kuayu.perception.recognition import PlainRecogniser, Recogniser, RuleRecogniser, classifiers
from kuayu.perception.recognition.classifiers import ROUNDS, WEIGHTS, Ties, Weights
from kuayu.perception.recognition.evidence import Evidence, NodeView, Observer
from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.groups import RELATED, Groups
from kuayu.perception.recognition.recogniser import Belief, Damping
from kuayu.perception.recognition.values import OFFLINE, WORKING, Flags, Floats, Telemetry
from kuayu_training.fleet import TRAINING, Region
from kuayu_training.telemetry import World

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done."""

BALANCE = 0.6
"""Power of the inverse frequency of a state by which its snapshots count more."""

HIGHEST_RATE, GOING_ON_RATE = 4e-3, 1.5e-3
"""Highest rate of learning of a training that begins anew, and of one that goes on."""

TOGETHER = 8
"""Snapshots of one world in a step."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Groups of several snapshots of one world, one after the other.

    Attributes:
        member: Rows of the pairs, sorted by snapshot and group.
        group: Group of each pair.
        sizes: Members of each group.
        share: One over the number of groups of each row, (rows, 1).
    """

    member: Tensor
    group: Tensor
    sizes: Tensor
    share: Tensor

    @classmethod
    def of(cls, groups: Groups, snapshots: int) -> "Stack":
        """The same groups in each of so many snapshots."""
        shift = np.arange(snapshots)[:, None]
        member = torch.from_numpy((groups.member + shift * groups.nodes).reshape(-1))
        group = torch.from_numpy((groups.group + shift * len(groups.sizes)).reshape(-1))
        sizes = torch.from_numpy(np.tile(groups.sizes, snapshots))
        return cls(member, group, sizes, torch.from_numpy(np.tile(groups.share, snapshots))[:, None])

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the members of each group."""
        summed = values.new_zeros((len(self.sizes), values.shape[1])).index_add(0, self.group, values[self.member])
        return summed / self.sizes[:, None]

    def maximum(self, values: Tensor) -> Tensor:
        """Largest entries among the members of each group."""
        if not len(self.sizes):
            return values[:0]
        return torch.segment_reduce(values[self.member], "max", lengths=self.sizes)

    def back(self, values: Tensor) -> Tensor:
        """Mean over the groups of each row."""
        summed = values.new_zeros((len(self.share), values.shape[1])).index_add(0, self.member, values[self.group])
        return summed * self.share


class Graph(nn.Module):
    """Message passing over families and domains."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(len(OWN) + len(RELATED), HIDDEN)
        for number in range(ROUNDS):
            family, domain = nn.Linear(2 * HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN_DOMAIN)
            node = nn.Linear(2 * HIDDEN + HIDDEN_DOMAIN, HIDDEN)
            self.add_module(str(number), nn.ModuleDict({"family": family, "domain": domain, "node": node}))
        self.leave = nn.Linear(HIDDEN, WORKING)

    def forward(self, features: Tensor, answers: Tensor, families: Stack, domains: Stack) -> Tensor:
        """Logits, (rows, states), from features (rows, features) and who answers (rows, 1)."""
        hidden = torch.relu(self.enter(features))
        for number in range(ROUNDS):
            layers = self.get_submodule(str(number))
            assert isinstance(layers, nn.ModuleDict)
            sent = hidden * answers
            seen = torch.cat([families.mean(sent), families.maximum(sent)], 1)
            of_family = families.back(torch.relu(layers["family"](seen)))
            of_domain = domains.back(torch.relu(layers["domain"](domains.mean(sent))))
            hidden = hidden + torch.relu(layers["node"](torch.cat([hidden, of_family, of_domain], 1)))
        logits: Tensor = self.leave(hidden)
        return logits


class Plain(nn.Module):
    """Own features alone, with about as many weights."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(len(OWN), HIDDEN_PLAIN)
        self.middle = nn.Linear(HIDDEN_PLAIN, HIDDEN_PLAIN)
        self.leave = nn.Linear(HIDDEN_PLAIN, WORKING)

    def forward(self, features: Tensor) -> Tensor:
        """Logits, (rows, states)."""
        hidden = torch.relu(self.enter(features))
        logits: Tensor = self.leave(hidden + torch.relu(self.middle(hidden)))
        return logits


NETWORKS: dict[str, type[nn.Module]] = {"graph": Graph, "plain": Plain}
"""What is fitted, by the name under which its weights are found."""

TRIED = 150
"""Sets of thresholds that are tried for the rules."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is trained.

    Attributes:
        worlds: Worlds that are played.
        epochs: Times each snapshot is shown.
        settling: Further worlds on which rules and damping are tuned.
        processes: Worlds played at a time, and threads of PyTorch.
        start: Weights that training goes on from, at a lower rate; None begins anew.
    """

    worlds: int = 100
    epochs: int = 16
    settling: int = 4
    processes: int = 2
    start: Path | None = None


def train(seed: int, output: Path, budget: Budget, progress: Progress) -> list[Path]:
    """Train, and write the weights; returns the paths written.

    Args:
        seed: Everything follows from it.
        output: Folder that is written to.
        budget: How much is trained.
        progress: Told how far it is.
    """
    data = _played(seed, budget, progress)
    weights = _fitted(data, seed, budget, progress)
    weights["rules.thresholds"] = tuned_rules(data, seed, progress).to_weights()
    weights |= settled(weights, 1_000 * seed + 500, budget.settling, progress)
    output.mkdir(parents=True, exist_ok=True)
    path = output / WEIGHTS
    np.savez_compressed(path, allow_pickle=False, **weights)
    return [path]


@dataclass(frozen=True, slots=True)
class Episode:
    """Snapshots of one world.

    Attributes:
        ties: Families and domains.
        features: All features, (snapshots, nodes, features), binary16.
        answers: One where a node answers, (snapshots, nodes).
        truth: State when the newest sample was taken, (snapshots, nodes); −1 where none is told from signals.
        weight: How much each node counts, (snapshots, nodes): more where something has just changed.
    """

    ties: Ties
    features: NDArray[np.float16]
    answers: Floats
    truth: NDArray[np.int8]
    weight: Floats


def fit(module: nn.Module, data: list[Episode], seed: int, epochs: int, highest: float = HIGHEST_RATE) -> None:
    """Fit a network to the snapshots by the cross-entropy of the true states."""
    random = np.random.default_rng(seed)
    counts = sum((np.bincount(world.truth[world.truth >= 0], minlength=WORKING) for world in data), np.zeros(WORKING))
    balance = torch.from_numpy((counts.sum() / counts) ** BALANCE).float()
    batches = [
        (world, part)
        for world in data
        for part in np.array_split(np.arange(len(world.truth)), -(-len(world.truth) // TOGETHER))
    ]
    optimiser = torch.optim.AdamW(module.parameters(), lr=highest, weight_decay=1e-4)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, highest, total_steps=epochs * len(batches))
    for _ in range(epochs):
        for number in random.permutation(len(batches)):
            played, _ = batches[number]
            chosen = random.choice(len(played.truth), min(TOGETHER, len(played.truth)), replace=False)
            truth = torch.from_numpy(played.truth[chosen].reshape(-1).astype(np.int64))
            losses = nn.functional.cross_entropy(
                said(module, played, chosen), truth, balance, ignore_index=-1, reduction="none"
            )
            weight = torch.from_numpy(played.weight[chosen].reshape(-1)) * (truth >= 0)
            loss = (losses * weight).sum() / (weight * balance[truth.clamp(min=0)]).sum()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimiser.step()
            rate.step()


def said(module: nn.Module, played: Episode, chosen: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> Tensor:
    """Logits of a network for some snapshots of a world, (rows, states)."""
    features = played.features[chosen].astype(np.float32)
    rows = torch.from_numpy(features.reshape(-1, features.shape[2]))
    if isinstance(module, Plain):
        logits: Tensor = module(rows[:, : len(OWN)])
    else:
        logits = module(
            rows, torch.from_numpy(played.answers[chosen].reshape(-1, 1)), *stacked(played.ties, len(chosen))
        )
    return logits


def tuned_rules(data: list[Episode], seed: int, progress: Progress) -> classifiers.Thresholds:
    """Thresholds of the highest macro-F1 on some snapshots, by changing one or a few at a time, at random."""
    random = np.random.default_rng(seed)
    some = data[:: max(1, len(data) // 12)]
    rows = (
        np.concatenate([world.features[::6].reshape(-1, world.features.shape[2]) for world in some])
        .astype(np.float32)
        .T
    )
    truth = np.concatenate([world.truth[::6].reshape(-1) for world in some])
    rows, truth = np.ascontiguousarray(rows[:, truth >= 0]), truth[truth >= 0]
    best, score = classifiers.Thresholds(), -1.0
    for number in range(TRIED):
        moved = random.random(len(classifiers.THRESHOLD_NAMES)) < (0.25 if number else 0.0)
        factors = np.where(moved, np.exp(random.normal(0, 0.4, len(moved))), 1.0)
        tried = classifiers.Thresholds(*(float(value) for value in best.to_weights() * factors))
        f1 = macro_f1(truth, classifiers.by_rules(tried, rows), WORKING)
        if f1 > score:
            best, score = tried, f1
        progress("rules", (number + 1) / TRIED)
    return best


def read(path: Path) -> Weights:
    """Weights from a file that ``train`` wrote."""
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


HIDDEN, HIDDEN_DOMAIN, HIDDEN_PLAIN = 48, 16, 112


def stacked(ties: Ties, snapshots: int) -> tuple[Stack, Stack]:
    """Families and domains of so many snapshots."""
    return Stack.of(ties.families, snapshots), Stack.of(ties.domains, snapshots)


def weights_of(name: str, module: nn.Module) -> dict[str, Floats]:
    """Weights of a network, by the names under which NumPy finds them."""
    return {f"{name}.{key}": value.detach().numpy().astype(np.float32) for key, value in module.state_dict().items()}


DOMAINS, MAX_DOMAIN_NODES = 16, 160
WARM_UP, SECONDS, EVERY = 40, 300, 6

LATELY, CHANGED = 10, 3
"""Seconds after a change of a node or of its family, and by how much it counts more then: how soon a change is told is
decided in them."""


def play(seed: int, region: Region) -> Episode:
    """Play one world and keep a snapshot every few seconds."""
    random = np.random.default_rng(seed + 1_000_000)
    world = World(seed, region, [int(size) for size in random.integers(8, MAX_DOMAIN_NODES, DOMAINS)])
    observer = Observer(world.population)
    before, quiet = np.zeros((2, len(world.population.domain))), np.full(len(world.population.domain), 1e3, np.float32)
    features, answers, truth, weight = [], [], [], []
    for second in range(WARM_UP + SECONDS):
        moment = world.step()
        observation = observer.update(moment.telemetry)
        state = np.stack([moment.truth, moment.cause])
        quiet = np.where((state != before).any(axis=0), 0, quiet + 1)
        before = state
        if second < WARM_UP or random.random() > 1 / EVERY:
            continue
        families = observer.ties.families
        calm = families.back(-families.maximum(-quiet[None]))[0]
        lately = (quiet < LATELY) | ((calm < LATELY) & (families.share > 0))
        labelled = (moment.shown < WORKING) & (observation.silence.missing < 1)
        features.append(observation.features.T.astype(np.float16))
        answers.append(observation.answers)
        truth.append(np.where(labelled, moment.shown, -1).astype(np.int8))
        weight.append(1 + CHANGED * lately.astype(np.float32))
    return Episode(observer.ties, np.stack(features), np.stack(answers), np.stack(truth), np.stack(weight))


NODES = [120] * 8
TUNING_SECONDS, TUNING_WARM_UP = 260, 40
GRACE, SOON = 2, 12
"""Seconds after a change that do not count, and until which what is shown counts once more, by itself: a filter that
is late is a worse one, and so is one that never settles."""

GRID = {"leaving": (0.002, 0.006, 0.02), "strength": (0.5, 0.7, 1.0), "stale": (0.1,), "margin": (0.5, 0.6)}
"""Values of the filter's parameters that are tried."""

START = Damping(0.02, 0.6, 0.1, 0.5)


def macro_f1(truth: NDArray[np.integer], predicted: NDArray[np.integer], states: int) -> float:
    """Mean over the states that occur of 2 TP/(2 TP + FP + FN)."""
    both = np.bincount(truth * states + predicted, minlength=states * states).reshape(states, states)
    total = both.sum(axis=0) + both.sum(axis=1)
    return float(np.mean(2 * np.diag(both)[total > 0] / total[total > 0]))


def settled(weights: Weights, seed: int, worlds: int, progress: Callable[[str, float], None]) -> dict[str, Floats]:
    """Damping of each recogniser, by the names under which it is found."""
    dampings = {}
    for kind in (Recogniser, PlainRecogniser, RuleRecogniser):
        played = [list(_recorded(kind, weights, seed + number)) for number in range(worlds)]
        best, score = START, -1.0
        tries = list(itertools.product(*GRID.values()))
        for number, tried in enumerate(tries):
            damping = Damping(tried[0], tried[1], tried[2], tried[3])
            truth, state, _, _, soon = _replayed(played, damping)
            value = macro_f1(truth, state, OFFLINE + 1) + macro_f1(truth[soon], state[soon], OFFLINE + 1)
            if value > score:
                best, score = damping, value
            progress(f"damping {kind.name}", (number + 1) / len(tries))
        truth, state, odds, missing, _ = _replayed(played, best)
        silent, working = state == OFFLINE, state < WORKING
        best = replace(
            best,
            confidence=line(odds[working], (truth == state)[working]),
            silence=line(np.log(np.maximum(missing[silent], 1e-3)), truth[silent] == OFFLINE),
        )
        dampings[f"{kind.name}.damping"] = best.to_weights()
    return dampings


def line(odds: Floats, right: Flags) -> tuple[float, float]:
    """Offset and slope of a logistic regression, drawn a little to zero and one."""

    def loss(guessed: Floats) -> float:
        guess = guessed[0] + guessed[1] * odds
        return float(np.mean(np.logaddexp(0, np.where(right, -guess, guess)))) + 1e-4 * float(
            guessed[0] ** 2 + (guessed[1] - 1) ** 2
        )

    fitted = minimize(loss, np.array([0.0, 1.0]), method="Nelder-Mead").x
    return float(fitted[0]), float(fitted[1])


def _played(seed: int, budget: Budget, progress: Progress) -> list[Episode]:
    """Snapshots of all worlds, in order of their seeds."""
    seeds = [1_000 * seed + number for number in range(budget.worlds)]
    worlds = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(budget.processes, mp_context=context) as pool:
        for world in pool.map(partial(play, region=TRAINING), seeds):
            worlds.append(world)
            progress("telemetry", len(worlds) / len(seeds))
    return worlds


def _fitted(data: list[Episode], seed: int, budget: Budget, progress: Progress) -> dict[str, Floats]:
    """Weights of both networks, each fitted by a process and a thread of its own.

    The networks are small: more threads would wait for each other longer than they compute.
    """
    if budget.processes == 1:
        return _of_network("graph", data, seed, budget) | _of_network("plain", data, seed, budget)
    weights: dict[str, Floats] = {}
    with ProcessPoolExecutor(len(NETWORKS), mp_context=multiprocessing.get_context("fork")) as pool:
        futures = [pool.submit(_of_network, name, data, seed, budget) for name in NETWORKS]
        for done, future in enumerate(as_completed(futures)):
            weights |= future.result()
            progress("networks", (done + 1) / len(futures))
    return weights


def _of_network(name: str, data: list[Episode], seed: int, budget: Budget) -> dict[str, Floats]:
    """Fit one network, from weights that there are or anew."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    module = NETWORKS[name]()
    if budget.start:
        stored = {key: torch.from_numpy(value) for key, value in read(budget.start).items()}
        module.load_state_dict({key: stored[f"{name}.{key}"] for key in module.state_dict()})
    fit(module, data, seed, budget.epochs, GOING_ON_RATE if budget.start else HIGHEST_RATE)
    return weights_of(name, module)


@dataclass(frozen=True, slots=True)
class _Second:
    said: Floats
    fresh: Flags
    back: Flags
    silent: Flags
    missing: Floats
    truth: NDArray[np.int8]
    counts: Flags
    soon: Flags


def _recorded(
    kind: type[Recogniser | PlainRecogniser | RuleRecogniser], weights: Weights, seed: int
) -> Iterator[_Second]:
    """What a classifier says of a world of one sample a second, and the truth."""
    world = World(seed, TRAINING, NODES, period=1)
    taken: list[tuple[NodeView, Floats]] = []

    class Listening(kind):  # type: ignore[valid-type,misc]
        """Hands over what is said of each moment."""

        def _said(self, observation: NodeView, evidence: Evidence) -> Floats:
            logits: Floats = super()._said(observation, evidence)
            taken.append((observation, logits))
            return logits

    listening = Listening(world.population, weights, START)
    nodes = len(world.population.domain)
    gone, before, since = np.ones(nodes, bool), np.full(nodes, -1), np.zeros(nodes)
    for second in range(TUNING_WARM_UP + TUNING_SECONDS):
        moment = world.step()
        listening.update(moment.telemetry)
        observation, said = taken.pop()
        since = np.where(moment.truth == before, since + 1, 0)
        before = moment.truth.astype(np.intp)
        fresh, silence = _fresh(moment.telemetry), observation.silence
        counts = (since >= GRACE) & (second >= TUNING_WARM_UP)
        yield _Second(said, fresh, gone & fresh, silence.silent, silence.missing, moment.truth, counts, since < SOON)
        gone = ~silence.known | silence.silent | silence.cut


def _fresh(telemetry: Telemetry) -> Flags:
    return telemetry.fresh.copy()


def _replayed(
    played: list[list[_Second]], damping: Damping
) -> tuple[NDArray[np.int8], NDArray[np.int8], Floats, Floats, Flags]:
    """Truth, states, log odds, how long each node is missed, and whether a change was lately, where they count."""
    rows = []
    for world in played:
        belief = Belief(len(world[0].truth), damping)
        for moment in world:
            state, odds = belief.update(moment.said, moment.fresh, moment.back, 1.0)
            state = np.where(moment.silent, np.int8(OFFLINE), state)
            counted = moment.counts & (moment.truth <= OFFLINE)
            rows.append(
                (moment.truth[counted], state[counted], odds[counted], moment.missing[counted], moment.soon[counted])
            )
    truth, states, odds, missing, soon = (np.concatenate(column) for column in zip(*rows, strict=True))
    return truth, states, odds, missing, soon
