"""Random samples on their way into the table, and a plain model of what the table then holds."""

from itertools import repeat
from typing import Any

import orjson
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from kuayu.service.storage.blocks import Arrival, Block
from kuayu.service.storage.queries import ObservedValue, ObservedValues
from kuayu.service.storage.tables import LASTING_MEASURES, MEASURES, PRECISION_MEASURES, sample

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "power": st.one_of(st.integers(0, 5), st.floats(0, 5), st.just(2**64 - 1)),
    "jitter": st.floats(0, 1),
    "health_state": st.sampled_from(["healthy", "faulty"]),
    "peak_matrix_throughput": st.sampled_from(['{"bf16":1.0}', '{"fp8":2}']),
}
SUBJECTS, INSTANTS = 3, 3
"""So few that samples meet one another again and again."""

Commits = list[list[Arrival]]
Held = dict[tuple[int, int], dict[str, Any]]


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Rows of a few subjects and instants with the same measures."""
    measures = tuple(sorted(draw(st.sets(st.sampled_from(sorted(VALUES))))))
    row = st.tuples(st.integers(1, SUBJECTS), st.integers(1, INSTANTS), *(VALUES[name] for name in measures))
    return Block.of_rows(measures, draw(st.lists(row, max_size=6)))


def commits() -> st.SearchStrategy[Commits]:
    """What one commit after another writes."""
    arrival = st.builds(Arrival, st.lists(blocks(), max_size=3), st.integers(1, 99))
    return st.lists(st.lists(arrival, max_size=4), min_size=1, max_size=4)


def model(written: Commits) -> Held:
    """What is held after all commits: row after row, and what a row states first stays."""
    held: Held = {}
    for sequence, arrivals in enumerate(written, 1):
        for arrival in arrivals:
            for block in arrival.blocks:
                for number, observed, received, *values in block.rows(repeat(arrival.received)):
                    row = held.setdefault(
                        (number, observed),
                        {"received": received, "sequence": sequence, "late": ""} | dict.fromkeys(MEASURES),
                    )
                    for name, value in zip(block.measures, values, strict=True):
                        if row[name] is None:
                            row[name] = value if isinstance(value, str) else float(value)
                            row["late"] += f"{name}={sequence} " if sequence > row["sequence"] else ""
    return held


def read(connection: Connection) -> Held:
    """What the table holds."""
    rows = connection.execute(select(sample)).mappings()
    return {
        (row["subject_no"], row["observed"]): {
            "received": row["received"],
            "sequence": row["sequence"],
            "late": row["late"] or "",
            **{name: row[name] for name in MEASURES},
        }
        for row in rows
    }


def newest(held: Held, at: int, life: int) -> ObservedValues:
    """Newest values at an instant, from what is held."""
    found: ObservedValues = {}
    for (number, observed), row in sorted(held.items()):
        for name in MEASURES:
            alive = name in LASTING_MEASURES or observed >= at - life
            if row[name] is not None and observed <= at and alive:
                value = orjson.loads(row[name]) if name in PRECISION_MEASURES else row[name]
                found.setdefault(number, {})[name] = ObservedValue(value, observed)
    return found
