"""The chosen collective beside the best fixed one, over links that change: two hours, asked every half a minute.

What a candidate really does in a second follows from the same α–β model as its prediction, but from what links carry
then, not from what was measured before; a switch costs the same ten seconds that the choice is told. So this judges
whether to follow the network, not the model. Families:

- *metro*: 100 to 400 Gbit/s and 1 to 3 ms between domains, ±30 %;
- *national*: 2 to 10 Gbit/s, 10 to 40 ms, ±30 %;
- *busy*: leased lines of 10 to 100 Gbit/s that are left to others for hours of the day: all links together move between
  all, 0.3 and 0.05 of it, for 20 minutes on average each;
- *×0.3*: national, with episodes of each link, one in 15 minutes of 2 minutes on average.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from scipy.special import ndtr

from kuayu.resilience.transfers.collectives import CANDIDATES, Candidate, Fabric, Work, predict
from kuayu.resilience.transfers.scene import Floats
from kuayu.resilience.transfers.switching import COST_S, Standing, choose
from kuayu.training.resilience.shards_compare import SAMPLES

FAMILIES = ("metro", "national", "busy", "×0.3")
SECONDS, AGAIN_S, NOISE = 7200, 30, 0.05
_GIGABIT = 1e9 / 8
_RATES = {"metro": (100.0, 400.0), "national": (2.0, 10.0), "busy": (10.0, 100.0), "×0.3": (2.0, 10.0)}
_LATENCY = {"metro": (1e-3, 3e-3), "national": (10e-3, 40e-3), "busy": (5e-3, 20e-3), "×0.3": (10e-3, 40e-3)}
_BUSY = (1.0, 0.3, 0.05)


def drawn(family: str, seed: int) -> tuple[list[Fabric], Work]:
    """What links carry in each half a minute, and what is trained."""
    chance = np.random.default_rng([seed, FAMILIES.index(family), 21])
    domains, nodes = int(chance.integers(2, 7)), int(chance.choice([1, 2, 4, 8, 16, 32]))
    level = _loguniform(chance, _RATES[family], (domains, domains)) * _GIGABIT
    latency = chance.uniform(_LATENCY[family][0], _LATENCY[family][1], (domains, domains))
    work = Work(float(_loguniform(chance, (0.2e9, 20e9), (1,))[0]), float(chance.uniform(1.0, 20.0)))
    inside = float(chance.choice([25.0, 100.0, 400.0])) * _GIGABIT
    count = SECONDS // AGAIN_S
    shape = _varied(chance, count, domains * domains).reshape(count, domains, domains)
    if family == "busy":
        shape *= np.array(_BUSY)[_regimes(chance, count, 1200.0, len(_BUSY))][:, None, None]
    if family == "×0.3":
        for one in range(domains):
            for other in range(domains):
                slow = _regimes(chance, count, 900.0, 2, 120.0) == 1
                shape[slow, one, other] *= 0.3
    return [Fabric(level * each, latency, nodes, inside, 1e-5) for each in shape], work


def _loguniform(chance: np.random.Generator, ends: tuple[float, float], shape: tuple[int, ...]) -> Floats:
    made: Floats = np.exp(chance.uniform(np.log(ends[0]), np.log(ends[1]), shape))
    return made


def _varied(chance: np.random.Generator, count: int, links: int) -> Floats:
    decay = float(np.exp(-AGAIN_S / np.exp(chance.uniform(np.log(20.0), np.log(600.0)))))
    gauss = np.empty((count, links))
    gauss[0] = chance.standard_normal(links)
    for row in range(1, count):
        gauss[row] = decay * gauss[row - 1] + np.sqrt(1.0 - decay**2) * chance.standard_normal(links)
    made: Floats = 0.7 + 0.6 * ndtr(gauss)
    return made


def _regimes(
    chance: np.random.Generator, count: int, stay_s: float, kinds: int, away_s: float | None = None
) -> np.typing.NDArray[np.int64]:
    """A chain that stays in each regime for an exponential time; regime 0 for ``stay_s``, others for ``away_s``."""
    made, now = np.empty(count, dtype=np.int64), 0 if away_s else int(chance.integers(kinds))
    for row in range(count):
        made[row] = now
        lasts = stay_s if now == 0 or away_s is None else away_s
        if chance.uniform() < 1.0 - np.exp(-AGAIN_S / lasts):
            now = (now + int(chance.integers(1, kinds))) % kinds
    return made


def played(family: str, seed: int) -> dict[str, float]:
    """Steps in a window under the choice, each fixed candidate, and one who always has the quickest for nothing."""
    fabrics, work = drawn(family, seed)
    noise = np.random.default_rng([seed, 22])
    table = np.array([[each.throughput for each in predict(fabric, work)] for fabric in fabrics]) * AGAIN_S
    standing: Standing | None = None
    steps, switches = 0.0, 0
    number = {candidate: place for place, candidate in enumerate(CANDIDATES)}
    for row in range(len(fabrics)):
        past = fabrics[max(row - 1, 0)]  # what was measured lies before what comes
        seen = past.rates * np.exp(NOISE * noise.standard_normal(past.rates.shape))
        measured = Fabric(seen, past.latency_s, past.nodes, past.inside, past.inside_latency_s)
        choice = choose(measured, work, standing, float(AGAIN_S))
        lost = COST_S / AGAIN_S if choice.switched else 0.0
        switches += choice.switched
        standing = choice.standing
        steps += table[row, number[standing.candidate]] * (1.0 - lost)
    fixed = {_name(each): float(total) for each, total in zip(CANDIDATES, table.sum(axis=0), strict=True)}
    return fixed | {"chosen": steps, "quickest": float(table.max(axis=1).sum()), "switches": float(switches)}


def _name(candidate: Candidate) -> str:
    return candidate.kind if candidate.period == 1 else f"{candidate.kind}, {candidate.period}"


NAMES = tuple(_name(each) for each in CANDIDATES)


def figures(seeds: Sequence[int], seed: int, step: Callable[[], None]) -> list[dict[str, Any]]:
    """A row for each family and one for all together, ready for JSON."""
    found: dict[str, list[dict[str, float]]] = {family: [] for family in FAMILIES}
    for each in seeds:
        for family in FAMILIES:
            found[family].append(played(family, each))
        step()
    found["all"] = [each for windows in found.values() for each in windows]
    return [_row(family, windows, seed) for family, windows in found.items()]


def _row(family: str, windows: Sequence[Mapping[str, float]], seed: int) -> dict[str, Any]:
    quickest = np.array([each["quickest"] for each in windows])
    chosen = np.array([each["chosen"] for each in windows]) / quickest
    fixed = np.array([[each[name] for name in NAMES] for each in windows]) / quickest[:, None]
    best = int(np.argmax(fixed.mean(axis=0)))
    return {
        "family": family,
        "windows": len(windows),
        "best_fixed": NAMES[best],
        "throughput": {"chosen": float(chosen.mean())} | dict(zip(NAMES, fixed.mean(axis=0).tolist(), strict=True)),
        "over_best_fixed": _interval(chosen - fixed[:, best], seed),
        "over_best_of_each_window": _interval(chosen - fixed.max(axis=1), seed),
        "switches": float(np.mean([each["switches"] for each in windows])),
    }


def _interval(values: Floats, seed: int) -> dict[str, float]:
    """Mean with its two-sided 90 % percentile interval over windows."""
    rows = np.random.default_rng([seed, 14]).integers(0, len(values), (SAMPLES, len(values)))
    low, high = np.quantile(values[rows].mean(axis=1), [0.05, 0.95])
    return {"value": float(values.mean()), "low": float(low), "high": float(high)}


def tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Throughput, in shares of what one has who always has the quickest and switches for nothing."""
    table = Table(title="throughput of collectives, % of one who always has the quickest for nothing")
    for name in ("links", "chosen", *NAMES, "less best fixed", "less best of each window", "switches"):
        table.add_column(name, justify="right")
    for row in rows:
        shares = [f"{100 * row['throughput'][name]:.1f}" for name in ("chosen", *NAMES)]
        gains = [_shown(row[name]) for name in ("over_best_fixed", "over_best_of_each_window")]
        table.add_row(row["family"], *shares, *gains, f"{row['switches']:.1f}")
    yield table


def _shown(found: Mapping[str, float]) -> str:
    return f"{100 * found['value']:+.2f} ({100 * found['low']:+.2f} … {100 * found['high']:+.2f})"


def words(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Where following the network does not pay."""
    for row in rows:
        verdict = "not below nought" if row["over_best_fixed"]["low"] >= 0.0 else "may be below nought"
        gain = _shown(row["over_best_fixed"])
        yield f"{row['family']}: chosen less the best fixed ({row['best_fixed']}): {verdict}, {gain} points"
        if row["over_best_of_each_window"]["low"] < 0.0:
            found = _shown(row["over_best_of_each_window"])
            yield f"{row['family']}: does not surely beat the best fixed one of each window in hindsight: {found}"
