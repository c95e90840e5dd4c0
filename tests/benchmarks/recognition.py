"""How soon and how surely node states are recognised: message passing beside rules and the same features alone.

    python tests/benchmarks/recognition.py [--world own|judge] [--scale 5x200 ...] [--warm-up S] [--seeds N ...]
        [--json FILE]

One sample a second for each node; no HTTP. ``own`` is the held-out region of the training generator, ``judge`` the
suite's world. Recognisers are asked at the end of each second, so that no delay is shorter than the rest of a second.
The delay of a change ends when the new state is shown and goes on being shown for 5 s. F1 leaves out the 10 s after
each change, as MET-016 has it; the intervals are the 5th to 95th percentile of 1 000 bootstrap samples of nodes.
"""

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figures are stated for

import numpy as np
import psutil
from recognition_worlds import JudgesWorld, OwnWorld, Second

from kuayu.perception.recognition import STATES, PlainRecogniser, Recogniser, RuleRecogniser

SCALES = {"5x200": (5, 1000), "5x400": (5, 2000), "64x10000": (64, 10_000)}
WARM_UP, SETTLED, LEFT_OUT, ENOUGH = 60, 5, 10, 10
LONG = ("shown by cause", "delay by cause", "calibration")
"""What is printed and not written."""

OFFLINE, UNKNOWN = STATES.index("offline"), STATES.index("unknown")
JUDGED = STATES[: OFFLINE + 1]


def play(
    world: OwnWorld | JudgesWorld, kinds: tuple[Any, ...] = (Recogniser, PlainRecogniser, RuleRecogniser)
) -> dict[str, Any]:
    """Play a world to its end through some recognisers."""
    recognisers = {each.name: each(world.population) for each in kinds}
    shown: dict[str, list[Any]] = {name: [] for name in recognisers}
    times: dict[str, list[float]] = {name: [] for name in recognisers}
    sure: dict[str, list[Any]] = {name: [] for name in recognisers}
    kept = []
    for second in world.play():
        if second.origin is not None:
            for each in recognisers.values():
                each.rearrange(world.population, second.origin)
        for name, each in recognisers.items():
            began = time.perf_counter()
            found = each.update(second.telemetry)
            times[name].append(time.perf_counter() - began)
            shown[name].append(found.state)
            sure[name].append(found.confidence)
        kept.append(Second(None, second.truth, second.cause, second.judged, None))
    return {"seconds": kept, "shown": shown, "times": times, "sure": sure}


def table(rows: list[Any], nodes: int, fill: int) -> Any:
    """Rows that grew with the nodes as one array, (seconds, nodes)."""
    made = np.full((len(rows), nodes), fill, np.int16)
    for second, row in enumerate(rows):
        made[second, : len(row)] = row
    return made


def measured(played: dict[str, Any], name: str, warm_up: int, causes: tuple[str, ...]) -> dict[str, Any]:
    """Delays, confusion by node, and confusion by cause of one recogniser in one world."""
    seconds = played["seconds"]
    nodes = len(seconds[-1].truth)
    truth = table([each.truth for each in seconds], nodes, UNKNOWN)
    judged = table([each.judged for each in seconds], nodes, 0).astype(bool)
    cause = table([each.cause for each in seconds], nodes, 0)
    shown = table(played["shown"][name], nodes, UNKNOWN)
    sure = np.zeros(truth.shape, np.float32)
    for second, row in enumerate(played["sure"][name]):
        sure[second, : len(row)] = row
    changed = np.zeros(truth.shape, bool)
    changed[1:] = truth[1:] != truth[:-1]
    since = np.zeros(truth.shape, int)
    for second in range(1, len(truth)):
        since[second] = np.where(changed[second], 0, since[second - 1] + 1)
    delays = []
    for second, node in np.argwhere(changed[warm_up : -ENOUGH - SETTLED - 1]):
        at = second + warm_up
        until = at + int(np.argmax(np.append(changed[at + 1 :, node], True))) + 1
        ends = max(at - 1, 0)
        if until - at < LEFT_OUT + 2 or truth[at, node] > OFFLINE or truth[ends, node] > OFFLINE:
            continue
        if not judged[at : at + LEFT_OUT, node].all():
            continue
        right = shown[at:until, node] == truth[at, node]
        holds = [right[k : k + SETTLED + 1].all() for k in range(len(right))]
        delay = holds.index(True) + 1 if any(holds) else np.inf
        delays.append((int(truth[at, node]), causes[cause[at, node]], float(delay)))
    count = (since >= LEFT_OUT) & judged & (truth <= OFFLINE)
    count[:warm_up] = False
    place = truth * len(STATES) + np.minimum(shown, UNKNOWN)
    by_node = np.zeros((nodes, len(STATES) ** 2))
    at_second, at_node = np.nonzero(count)
    np.add.at(by_node, (at_node, place[at_second, at_node]), 1)
    by_cause = {
        causes[each]: np.bincount(place[count & (cause == each)], minlength=len(STATES) ** 2)
        for each in np.unique(cause[count])
    }
    bins = np.minimum((sure[count] * 10).astype(int), 9)
    right = (shown == truth)[count]
    calibration = np.array(
        [np.bincount(bins, minlength=10), np.bincount(bins, right, 10), np.bincount(bins, sure[count], 10)]
    )
    return {"delays": delays, "by_node": by_node, "by_cause": by_cause, "calibration": calibration}


def f1(confusion: Any) -> Any:
    """F1 of each judged state from confusions (..., states²); NaN where the state never occurs."""
    square = confusion.reshape(*confusion.shape[:-1], len(STATES), len(STATES))
    right = np.diagonal(square, axis1=-2, axis2=-1)
    total = square.sum(-1) + square.sum(-2)
    return (2 * right / np.where(total > 0, total, np.nan))[..., : len(JUDGED)]


def summary(parts: list[dict[str, Any]], times: list[float]) -> dict[str, Any]:
    """Figures of one recogniser over all seeds."""
    random = np.random.default_rng(1)
    by_node = np.concatenate([each["by_node"] for each in parts])
    draws = random.multinomial(len(by_node), np.full(len(by_node), 1 / len(by_node)), 1000)
    spread = np.nanmean(f1(draws @ by_node), axis=1)
    delays = [each for part in parts for each in part["delays"]]
    found: dict[str, Any] = {"macro F1": float(np.nanmean(f1(by_node.sum(0)))), "changes": len(delays)}
    found["interval"] = [float(np.quantile(spread, q)) for q in (0.05, 0.95)]
    found["F1"] = dict(zip(JUDGED, f1(by_node.sum(0)).tolist(), strict=True))
    found["delay"] = {
        name: brief([each[2] for each in chosen])
        for name, chosen in [("all", delays), *((s, [d for d in delays if STATES[d[0]] == s]) for s in JUDGED)]
        if chosen
    }
    kinds = sorted({(each[0], each[1]) for each in delays})
    found["delay by cause"] = {
        f"{JUDGED[state]}, {cause}": brief([each[2] for each in delays if (each[0], each[1]) == (state, cause)])
        for state, cause in kinds
    }
    named = sorted({name for part in parts for name in part["by_cause"]})
    by_cause = {name: sum(part["by_cause"][name] for part in parts if name in part["by_cause"]) for name in named}
    found["shown by cause"] = {
        f"{STATES[place]}, {name}": dict(zip(STATES, row.tolist(), strict=True))
        for name, counts in by_cause.items()
        for place, row in enumerate(counts.reshape(len(STATES), len(STATES)))
        if row.sum() > 0
    }
    cells = sum(each["calibration"] for each in parts)
    found["calibration"] = [[int(n), r / max(n, 1), s / max(n, 1)] for n, r, s in cells.T.tolist()]
    found["update"] = {"p50": float(np.median(times)), "p99": float(np.quantile(times, 0.99))}
    return found


def brief(delays: list[float]) -> dict[str, Any]:
    """Quantiles of delays in s, and the share of changes that were recognised in time; without end is ``never``."""
    p50, p99 = np.quantile(delays, [0.5, 0.99], method="higher")
    quantiles = {name: float(q) if np.isfinite(q) else "never" for name, q in (("p50", p50), ("p99", p99))}
    return {**quantiles, "recall": float(np.mean(np.array(delays) <= ENOUGH)), "n": len(delays)}


def show(name: str, found: dict[str, Any]) -> None:
    """Print the figures of one recogniser."""
    low, high = found["interval"]
    update = found["update"]
    print(f"\n{name}: macro-F1 {found['macro F1']:.4f} [{low:.4f}, {high:.4f}], update {1e3 * update['p50']:.1f} ms"
          f" (p99 {1e3 * update['p99']:.1f})")  # fmt: skip
    print("  to           p50 s  p99 s  in 10 s       n      F1")
    for state, delay in found["delay"].items():
        share = f"{found['F1'].get(state, found['macro F1']):.4f}"
        print(f"  {state:11} {delay['p50']!s:>6} {delay['p99']!s:>6}  {delay['recall']:7.2%} {delay['n']:7d}  {share}")
    print("  to, by cause                            p50 s  p99 s  in 10 s       n")
    for cause, delay in found["delay by cause"].items():
        print(f"  {cause:38} {delay['p50']!s:>6} {delay['p99']!s:>6}  {delay['recall']:7.2%} {delay['n']:7d}")
    print("  truth, cause                           " + "".join(f"{each[:7]:>9}" for each in STATES))
    for row, counts in found["shown by cause"].items():
        print(f"  {row:39}" + "".join(f"{each:9d}" for each in counts.values()))
    print("  said sure  right       n")
    for n, right, sure in found["calibration"]:
        if n:
            print(f"  {sure:9.3f}  {right:5.3f}  {n:7d}")


def brought_together(scale: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Play the worlds of a scale and return the figures of each recogniser."""
    domains, nodes = SCALES[scale]
    parts: dict[str, list[dict[str, Any]]] = {}
    times: dict[str, list[float]] = {}
    kind = OwnWorld if asked.world == "own" else JudgesWorld
    for seed in asked.seeds:
        world = kind(seed, domains, nodes, asked.warm_up, asked.seconds)
        played = play(world)
        for name in played["shown"]:
            parts.setdefault(name, []).append(measured(played, name, asked.warm_up, world.causes))
            times.setdefault(name, []).extend(played["times"][name])
    found = {name: summary(each, times[name]) for name, each in parts.items()}
    resident = psutil.Process().memory_info().rss
    print(f"{asked.world} world, {domains} domains, {nodes} nodes, {asked.seconds} s, seeds {asked.seeds};"
          f" resident with the world and all three {resident / 1e6:.0f} MB")  # fmt: skip
    for name, figures in found.items():
        show(name, figures)
    return found


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=("own", "judge"), default="own")
    parser.add_argument("--scale", choices=SCALES, nargs="+", default=["5x200"])
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="seconds before, not judged (suite: 20)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--json", type=Path, help="write the figures there, but for what is shown by cause")
    asked = parser.parse_args()
    found = {scale: brought_together(scale, asked) for scale in asked.scale}
    if asked.json:
        place = {"python": platform.python_version(), "numpy": version("numpy"), "machine": platform.machine()}
        brief = {
            scale: {
                name: {key: value for key, value in figures.items() if key not in LONG}
                for name, figures in of_scale.items()
            }
            for scale, of_scale in found.items()
        }
        written = {"figures": brief, "world": place, "request": vars(asked)}
        asked.json.write_text(json.dumps(written, default=str, allow_nan=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
