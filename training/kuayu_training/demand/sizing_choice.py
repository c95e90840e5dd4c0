"""How the sizer was chosen, and what bounds it: ``python -m kuayu_training.demand.sizing_choice [--json FILE]``.

1. Worlds are those of the suite's test bed (``kuayu_conformance.testbed.tasks``), in mixes and with seeds that the
   check does not draw. Its law and its figures are known to the developers; so are these tables.
2. Inner loop: of all mixes but one, that candidate wins which holds least, as the mean over accelerators, cores and
   memory of the logarithm of what tasks hold for as long as they run, over that on what they ask for; candidates that
   slow tasks by more than is allowed, or let more than 1 % run out of memory, are out. Outer loop: what it holds in the
   mix that was left out. The report prints both.
3. Candidates: needs as they were seen, with the cost of time and without; quantiles of needs by gradient-boosted trees
   (XGBoost, pinball loss) and by a random forest (N. Meinshausen, Journal of Machine Learning Research 7 (2006)
   983-999, with the mean of the quantiles of its leaves). All choose parts by ``kuayu.demand.sizing_cuts``.
4. Beside them, and no candidates: what each task needs; one rate for the cores of all tasks that slows them by what is
   allowed, known afterwards; and what can be said at all by whoever knows a kind of task but no single one: needs as
   seen in LAW_RECORDS records.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kuayu.demand.sizing_cuts import cut, worth
from kuayu.demand.sizing_needs import THIN, Need, headroom, needs, upper
from kuayu.demand.sizing_records import RESOURCES, Records, by_kind
from kuayu.demand.sizing_waits import Waits, learn
from kuayu.demand.strategy import Floats
from kuayu_conformance.testbed.tasks import drawing, sizes, wire
from kuayu_conformance.testbed.tasks.drawing import Tasks, World
from kuayu_conformance.testbed.tasks.kinds import KINDS, RATE
from kuayu_conformance.testbed.tasks.law import Numbers

MIXES = {"10:20:30:40": (10, 20, 30, 40), "50:10:25:15": (50, 10, 25, 15), "15:45:15:25": (15, 45, 15, 25)}
"""Weights of ResNet, NMT, GraphLearn and CTR; none of them is drawn by the check."""

ALLOWED, MOST_DYING = 0.05, 0.01
RECORDS, LAW_RECORDS = 4000, 16000
LEVELS = np.arange(0.02, 1.0, 0.04)
SEED = "sizing-choice"

_UNITS = np.array([1.0, 1.0, 1e9])
_NAMES = tuple(f"kind-{number}" for number in range(len(KINDS)))

TREES = {
    "objective": "reg:quantileerror",
    "quantile_alpha": LEVELS,
    "max_depth": 3,
    "eta": 0.1,
    "min_child_weight": 10,
    "max_bin": 64,
    "nthread": 1,
    "seed": 0,
}
ROUNDS = 60
FOREST = {
    "objective": "reg:squarederror",
    "num_parallel_tree": 100,
    "subsample": 0.6,
    "colsample_bynode": 0.7,
    "max_depth": 6,
    "min_child_weight": 20,
    "eta": 1.0,
    "lambda": 0.0,
    "nthread": 1,
    "seed": 0,
}
"""Ordinary ones; none was searched for."""


@dataclass(frozen=True)
class Situation:
    """A history with the windows that are sized by it.

    Attributes:
        kinds: Records by kind.
        waits: How tasks of each kind wait.
        seen: Needs of each kind as they were seen.
        worth: Of each resource.
        windows: Tasks with the truth about them.
    """

    kinds: Mapping[str, Records]
    waits: Mapping[str, Waits]
    seen: Mapping[str, tuple[Need, ...]]
    worth: Floats
    windows: Sequence[Tasks]


@dataclass(frozen=True)
class Predicted(Need):
    """A need whose quantiles are predicted from all that is asked for.

    Attributes:
        quantiles: ln(need ÷ asked for) at LEVELS from logarithms of what is asked for, N × 3 → N × levels.
        beyond: By what factor held-back needs exceed their predicted median, all records.
    """

    quantiles: Callable[[Floats], Floats]
    beyond: Floats

    def likely(self, requested: Floats) -> Floats:
        """As ``Need.likely``."""
        return requested[:, [self.resource]] * np.exp(self.quantiles(_logs(requested)))

    def most(self, requested: Floats, level: float) -> Floats:
        """As ``Need.most``: the predicted median times what held-back needs exceed theirs by (conformal prediction)."""
        median = self.quantiles(_logs(requested))[:, len(LEVELS) // 2]
        return np.asarray(requested[:, self.resource] * np.exp(median) * upper(self.beyond, level))


def _logs(requested: Floats) -> Floats:
    return np.log(np.maximum(requested, 1e-12))


def boosted(features: Floats, target: Floats) -> Callable[[Floats], Floats]:
    """Quantiles by gradient-boosted trees."""
    model = xgboost.train(TREES, xgboost.QuantileDMatrix(features, target, max_bin=64, nthread=1), ROUNDS)
    return lambda asked: np.sort(np.asarray(model.inplace_predict(asked), np.float64), axis=1)


def forest(features: Floats, target: Floats) -> Callable[[Floats], Floats]:
    """Quantiles by a random forest: the mean over trees of those of the leaf that a task falls into."""
    data = xgboost.DMatrix(features, target, nthread=1)
    model = xgboost.train(FOREST, data, 1)
    leaves = model.predict(data, pred_leaf=True).reshape(len(target), -1).astype(int)
    held = np.full((leaves.shape[1], int(leaves.max()) + 1, len(LEVELS)), np.nan)
    for tree, column in enumerate(leaves.T):
        for leaf in np.unique(column):
            held[tree, leaf] = np.quantile(target[column == leaf], LEVELS)

    def quantiles(asked: Floats) -> Floats:
        found = model.predict(xgboost.DMatrix(asked, nthread=1), pred_leaf=True).reshape(len(asked), -1).astype(int)
        return np.asarray(np.nanmean(held[np.arange(found.shape[1]), found], axis=1))

    return quantiles


def predicted(fitted: Callable[[Floats, Floats], Callable[[Floats], Floats]], at: Situation, kind: str) -> list[Need]:
    """Needs of a kind by a model; memory by its median and what held-back needs exceed that by."""
    given, found = at.kinds[kind].given, at.seen[kind]
    logs, half = _logs(given), np.arange(len(given)) % 2 == 0
    made: list[Need] = []
    for need in found:
        own = logs[:, need.resource]
        target = np.log(np.maximum(at.waits[kind].needed[:, need.resource], 0.05 * given[:, need.resource])) - own
        beyond = np.concatenate(
            [
                target[held] - fitted(logs[~held], target[~held])(logs[held])[:, len(LEVELS) // 2]
                for held in (half, ~half)
            ]
        )
        about = {name: getattr(need, name) for name in ("resource", "powers", "shares", "bounds", "groups")}
        made.append(Predicted(**about, quantiles=fitted(logs, target), beyond=np.exp(beyond)))
    return made


CANDIDATES: Mapping[str, tuple[Callable[[Situation, str], Sequence[Need]], float]] = {
    "needs as seen, time not counted": (lambda at, kind: at.seen[kind], 0.0),
    "needs as seen, time counted": (lambda at, kind: at.seen[kind], 1.0),
    "boosted quantiles, time counted": (partial(predicted, boosted), 1.0),
    "forest of quantiles, time counted": (partial(predicted, forest), 1.0),
}
"""How needs are found, and what time counts beside what is freed."""

SHIPPED = "needs as seen, time counted"


def situation(mix: str, number: int, windows: int, records: int = RECORDS) -> Situation:
    """A history of a mix, and windows of the same."""
    world, where = World(), f"{SEED}/{mix}/{number}"
    ran = drawing.history(where, MIXES[mix], world, records)
    kinds = {kind: told for kind, told in by_kind(wire.records(ran, _NAMES, where)).items() if len(told) >= THIN}
    room = headroom(list(kinds.values()))
    waits = {kind: learn(told, room) for kind, told in kinds.items()}
    seen = {kind: needs(told.given, waits[kind].needed) for kind, told in kinds.items()}
    drawn = [drawing.window(f"{where}/{each}", MIXES[mix], world, RATE) for each in range(windows)]
    return Situation(kinds, waits, seen, worth(kinds.values()), drawn)


def sized(at: Situation, tasks: Tasks, found: Mapping[str, Sequence[Need]], time: float) -> Numbers:
    """What tasks are given, as the service would."""
    given = tasks.requested.copy()
    for number, kind in enumerate(_NAMES):
        rows = tasks.kind == number
        if kind in at.kinds and rows.any():
            asked = tasks.requested[rows] * _UNITS
            cuts = cut(asked, found[kind], at.waits[kind], at.worth, ALLOWED, whole=False, time=time)
            given[rows] = cuts.given / _UNITS
    return np.minimum(given, tasks.requested)


def figures(windows: Sequence[Tasks], given: Sequence[Numbers]) -> dict[str, float]:
    """What sizes come to: held for as long as tasks run over the same on what they ask for, by resource; and costs."""
    held, asked = np.zeros(len(RESOURCES)), np.zeros(len(RESOURCES))
    for tasks, sizes_of in zip(windows, given, strict=True):
        held += (tasks.duration * tasks.slowed(sizes_of)) @ sizes_of
        asked += (tasks.duration * tasks.slowed(tasks.requested)) @ tasks.requested
    late = np.concatenate(
        [tasks.slowed(g) / tasks.slowed(tasks.requested) - 1.0 for tasks, g in zip(windows, given, strict=True)]
    )
    dying = np.concatenate([tasks.dies(g) for tasks, g in zip(windows, given, strict=True)])
    parts = dict(zip(RESOURCES, map(float, held / asked), strict=True))
    costs = {"slower": float(late.mean()), "much_slower": float((late > 0.2).mean()), "dying": float(dying.mean())}
    return {**parts, "loss": float(np.log(held / asked).mean()), **costs}


def of_mix(mix: str, histories: int, windows: int) -> dict[str, dict[str, float]]:
    """Figures of all candidates, and of what stands beside them, in a mix."""
    drawn: list[Tasks] = []
    given: dict[str, list[Numbers]] = {}
    for number in range(histories):
        at = situation(mix, number, windows)
        drawn += at.windows
        for name, (model, time) in CANDIDATES.items():
            found = {kind: model(at, kind) for kind in at.kinds}
            given.setdefault(name, []).extend(sized(at, tasks, found, time) for tasks in at.windows)
        law = replace(situation(mix, histories + number, 0, LAW_RECORDS), windows=at.windows)
        beside = {
            "what can be said of a kind": [sized(law, tasks, law.seen, 1.0) for tasks in at.windows],
            "one rate for cores": [sizes.at_one_rate(tasks, ALLOWED) for tasks in at.windows],
            "what is needed": [sizes.ideal(tasks) for tasks in at.windows],
        }
        for name, each in beside.items():
            given.setdefault(name, []).extend(each)
    return {name: figures(drawn, each) for name, each in given.items()}


def chosen(found: Mapping[str, Mapping[str, Mapping[str, float]]], without: str) -> str:
    """The candidate that holds least in all mixes but one."""

    def loss(name: str) -> float:
        its = [rows[name] for mix, rows in found.items() if mix != without]
        if any(row["slower"] > ALLOWED or row["dying"] > MOST_DYING for row in its):
            return float("inf")
        return float(np.mean([row["loss"] for row in its]))

    return min(CANDIDATES, key=loss)


def report(histories: int, windows: int) -> dict[str, Any]:
    """All figures, with what the inner loop chose for each mix that was left out."""
    found = {mix: of_mix(mix, histories, windows) for mix in track(MIXES, "mixes", console=Console(stderr=True))}
    return {
        "seed": SEED,
        "histories": histories,
        "windows": windows,
        "records": RECORDS,
        "law_records": LAW_RECORDS,
        "shipped": SHIPPED,
        "mixes": {mix: {"chosen_without_it": chosen(found, mix), "figures": rows} for mix, rows in found.items()},
    }


def table(made: Mapping[str, Any]) -> Table:
    """The report as a table."""
    drawn = Table(
        title="Held for as long as tasks run ÷ the same on what they ask for, and what it costs, per cent; * chosen by "
        "the other mixes"
    )
    for name in ("mix", "sizes", *RESOURCES, "slower", "> 20 % slower", "out of memory"):
        drawn.add_column(name)
    for mix, entry in made["mixes"].items():
        for name, row in entry["figures"].items():
            star = " *" if name == entry["chosen_without_it"] else ""
            cells = [f"{100 * row[each]:.1f}" for each in (*RESOURCES, "slower", "much_slower")]
            drawn.add_row(mix, name + star, *cells, f"{100 * row['dying']:.2f}")
    return drawn


def main() -> int:
    """Print the table, and write the figures as JSON where asked to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.demand.sizing_choice", description=__doc__)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--histories", type=int, default=2, help="histories of each mix")
    parser.add_argument("--windows", type=int, default=4, help="windows that are sized by each")
    given = parser.parse_args()
    made = report(given.histories, given.windows)
    Console(width=150).print(table(made))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
