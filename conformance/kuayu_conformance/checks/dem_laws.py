"""Laws that hold whatever a law of demand is fitted to: one thing of a layout changes, and what follows (DEM-004)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from kuayu_conformance.checks.dem_counting import counted
from kuayu_conformance.checks.dem_fixtures import Asked, Document, Json, case, model, names, near, part
from kuayu_conformance.findings import Finding, holds

ID = "DEM-004"
TENSORS, SHARDINGS, REPLICAS = (1, 2, 4, 8), (0, 1, 2, 3), 8
SLIGHTLY = 1e-3
"""Share below which figures are the same."""


@dataclass(frozen=True)
class Rung:
    """Cases that differ in one thing: its name, its values, the cases in their order."""

    what: str
    values: tuple[int | str, ...]
    cases: tuple[Json, ...]


def ladders(chance: Random, machine: str) -> tuple[Rung, ...]:
    """Ladders for dense models of two kinds, without fused attention."""
    found = []
    for kind in ("plain", "grouped"):
        of = model(chance, kind)
        base = {
            "data": REPLICAS,
            "tensor": 2,
            "pipeline": 1,
            "micro_batch": 1,
            "global_batch": 4 * REPLICAS,
            "fused_attention": False,
        }
        for what, values in (
            ("tensor", TENSORS),
            ("sharding", SHARDINGS),
            ("recomputation", ("none", "selective", "full")),
        ):
            labels = names(chance, "c", len(values))
            steps = zip(labels, values, strict=True)
            cases = tuple(case(name, of, {**base, what: value}, machine) for name, value in steps)
            found.append(Rung(what, values, cases))
    return tuple(found)


def lawful(rungs: Sequence[Rung], asked: Asked) -> Iterator[Finding]:
    """Claims about every ladder."""
    for rung in rungs:
        yield from _LAWS[rung.what](rung, [asked.demands[each["id"]] for each in rung.cases], asked)


def _tensor(rung: Rung, rows: Sequence[Document], asked: Asked) -> Iterator[Finding]:
    sizes = [part(row, "parameters") for row in rows]
    found = _listed(rung, sizes)
    fallen = all(after <= before * (1 + SLIGHTLY) for before, after in pairwise(sizes))
    yield holds(ID, fallen, "more tensor parallelism never raises memory of parameters", found, asked.answer)
    divided = 0 < sizes[-1] < sizes[0] / 2
    yield holds(ID, divided, "eight share their layers: less than half the memory of one", found, asked.answer)


def _sharding(rung: Rung, rows: Sequence[Document], asked: Asked) -> Iterator[Finding]:
    states = [part(row, "optimizer") for row in rows]
    for value, state in list(zip(rung.values, states, strict=True))[1:]:
        expected = (
            f"sharding {value} divides memory of the optimiser by {REPLICAS} replicas: {states[0] / REPLICAS:.5g}"
        )
        fine = state > 0 and near(state, states[0] / REPLICAS)
        yield holds(ID, fine, expected, f"{state:.5g}", asked.answer)
    for name, first in (("gradients", 2), ("parameters", 3)):
        sizes = [part(row, name) for row in rows]
        kept = all(near(size, sizes[0], SLIGHTLY) for size in sizes[1:first])
        less = all(size < sizes[0] for size in sizes[first:])
        expected = f"memory of {name} falls from sharding {first} on, and not before"
        yield holds(ID, kept and less, expected, _listed(rung, sizes), asked.answer)


def _recomputation(rung: Rung, rows: Sequence[Document], asked: Asked) -> Iterator[Finding]:
    sizes = [part(row, "activations") for row in rows]
    falling = sizes[0] > sizes[1] > sizes[2] > 0
    expected = "memory of activations falls from none over selective to full recomputation"
    yield holds(ID, falling, expected, _listed(rung, sizes), asked.answer)
    own = counted(rung.cases[0]["model"])
    layers = own.layer_work + own.score_work
    more = {"none": 0.0, "selective": own.score_work, "full": layers}
    for value, row in zip(rung.values, rows, strict=True):
        share = 1 + more[str(value)] / (3 * own.forward)
        found = row["executed_work"] / row["work"]
        expected = f"executed work with recomputation {value}: {share:.4f} of the model's"
        yield holds(ID, near(found, share), expected, f"{found:.4f}", asked.answer)


def _listed(rung: Rung, sizes: Sequence[float]) -> str:
    return ", ".join(f"{rung.what} {value}: {size:.5g} B" for value, size in zip(rung.values, sizes, strict=True))


_LAWS: Mapping[str, Callable[[Rung, Sequence[Document], Asked], Iterator[Finding]]] = {
    "tensor": _tensor,
    "sharding": _sharding,
    "recomputation": _recomputation,
}
