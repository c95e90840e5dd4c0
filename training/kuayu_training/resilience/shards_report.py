"""Figures of the comparison as tables, and in words where the plan does not win."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from kuayu_training.resilience.shards_compare import (
    AHEAD,
    BASELINES,
    DEMAND,
    ORDERED,
    PLAN,
    PULLED,
    SEER,
    STATIC,
)

TITLES = {
    "waiting": "share of time in which compute waits for data, %",
    "blocked": "share of blocked transfers: not ended when a slot is due that is to take them, or abandoned, %",
    "blocked_bytes": "the same by bytes, %",
}
REQUIRED = {"waiting": (0.4, 0.6), "blocked": (0.35, 0.5)}
"""Least reduction at ±30 % against fixed shards, and the aim."""
MILD = "±30 %"
COLUMNS = (DEMAND, AHEAD, STATIC, PULLED, ORDERED, PLAN, SEER)


def tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Means and reductions, measure by measure."""
    for measure, title in TITLES.items():
        mine = [row for row in rows if row["measure"] == measure]
        shown = Table(title=title)
        shown.add_column("links")
        for name in COLUMNS:
            shown.add_column(name, justify="right")
        for row in mine:
            shown.add_row(row["family"], *(f"{100 * row['mean'][name]:.3f}" for name in COLUMNS))
        yield shown
        for key, who in (("reductions", "the plan"), ("fixed_order_reductions", "the plan with the order fixed")):
            less = Table(title=f"by how much less of it under {who}, %, with 90 % interval over windows")
            less.add_column("links")
            for name in BASELINES:
                less.add_column(name, justify="right")
            for row in mine:
                less.add_row(row["family"], *(_shown(row[key][name]) for name in BASELINES))
            yield less
    occupancy = Table(title="mean share of the room that is taken, %; schedules are those that wait least")
    occupancy.add_column("links")
    for name in COLUMNS[:-1]:
        occupancy.add_column(name, justify="right")
    for row in rows:
        if row["measure"] == "waiting":
            occupancy.add_row(row["family"], *(f"{100 * row['held'][name]:.0f}" for name in COLUMNS[:-1]))
    yield occupancy


def _shown(interval: Mapping[str, float | None] | None) -> str:
    if interval is None:
        return "nothing to reduce"
    value, low, high = (interval[name] for name in ("value", "low", "high"))
    return f"{_percent(value)} ({_percent(low)} … {_percent(high)})"


def _percent(value: float | None) -> str:
    return "-∞" if value is None else f"{100 * value:.1f}"


def words(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was asked for and found, and where the plan does not win."""
    for row in rows:
        measure, family = row["measure"], row["family"]
        if family == MILD and measure in REQUIRED:
            required, aim = REQUIRED[measure]
            for name in (DEMAND, AHEAD):
                interval = row["reductions"][name]
                low = interval["low"] if interval and interval["low"] is not None else float("-inf")
                verdict = "met" if low >= required else "missed"
                verdict += ", aim met" if low >= aim else ", aim missed"
                yield (
                    f"{measure} at {MILD} against {name}: {_shown(interval)} %; required {100 * required:.0f} %,"
                    f" aim {100 * aim:.0f} %, by the lower bound: {verdict}"
                )
        for key, who in (("reductions", PLAN), ("fixed_order_reductions", ORDERED)):
            for name in (STATIC, PULLED):
                interval = row[key][name]
                if interval is None or interval["low"] is None or interval["low"] <= 0.0:
                    schedule = row["schedules"][name]
                    yield f"{family}, {measure}: {who} does not surely beat {name} ({schedule}): {_shown(interval)}"
