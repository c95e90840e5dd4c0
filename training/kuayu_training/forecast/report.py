"""Figures of the judgement, as JSON and as a table."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from kuayu_training.forecast.judging import AHEAD, Judged, covered, skills, waped


def figures(found: Sequence[Judged]) -> list[dict[str, Any]]:
    """A row for each source, method and horizon, ready for JSON."""
    return [_row(each, place) for each in found for place in range(len(AHEAD))]


def _row(judged: Judged, place: int) -> dict[str, Any]:
    missed = waped(judged)[:, place]
    last = waped(Judged(judged.source, "", judged.origins, judged.last, judged.real, judged.last))[:, place]
    by_domain, skill, low, high = skills(judged, place)
    made: dict[str, Any] = {
        "source": judged.source,
        "method": judged.method,
        "minutes": AHEAD[place],
        "origins": len(judged.origins),
        "wape": {"median": float(np.nanmedian(missed)), "worst": float(np.nanmax(missed))},
        "last": {"median": float(np.nanmedian(last)), "worst": float(np.nanmax(last))},
        "skill": {"median": skill, "low": low, "high": high, "worst": float(by_domain.min())},
        "twenty": float((by_domain >= 0.2).mean()),
    }
    return made | (covered(judged, place) if judged.quantiles is not None else {})


def tables(rows: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """A table for each horizon."""
    for minutes in AHEAD:
        table = Table(title=f"{minutes} minutes ahead, last quarter; skill against the last value, with 90 % interval")
        for name in ("source", "method", "WAPE % median, worst", "last value", "skill % median", "worst", "≥ 20 %"):
            table.add_column(name)
        for name in ("coverage of 90 %", "pinball"):
            table.add_column(name)
        for row in rows:
            if row["minutes"] == minutes:
                table.add_row(*_cells(row))
        yield table


def _cells(row: dict[str, Any]) -> Iterator[str]:
    yield row["source"]
    yield f"{row['method']} ({row['origins']})"
    for name in ("wape", "last"):
        yield f"{100 * row[name]['median']:.1f}, {100 * row[name]['worst']:.1f}"
    skill = row["skill"]
    yield f"{100 * skill['median']:+.1f} ({100 * skill['low']:+.1f} … {100 * skill['high']:+.1f})"
    yield f"{100 * skill['worst']:+.1f}"
    yield f"{100 * row['twenty']:.0f} %"
    yield f"{100 * row['coverage']:.1f} %" if "coverage" in row else ""
    yield f"{row['pinball']:.3f}" if "pinball" in row else ""
