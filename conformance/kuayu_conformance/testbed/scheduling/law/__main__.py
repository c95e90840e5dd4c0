"""``python -m kuayu_conformance.testbed.scheduling.law``: the penalty fitted again, and how much each constant matters.

No seed: nothing is drawn.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

from kuayu_conformance.testbed.scheduling.law.fitting import FITTED, HELD_OUT, Fit, fit
from kuayu_conformance.testbed.scheduling.law.published import interval, migration
from kuayu_conformance.testbed.scheduling.law.terms import PUBLISHED, Constants, terms
from kuayu_conformance.testbed.scheduling.values import (
    DeviceType,
    Job,
    JobKind,
    Model,
    Placement,
    Share,
    Split,
)

HOFFMANN = (410.7, 0.28)
"""Term and exponent of tokens as first published: arXiv:2203.15556, approach 3."""

GIGABIT = 1e9
EXAMPLE = Job(
    "7 billion parameters on 64 devices", JobKind.PRETRAINING, 0.0, "a", "t", 0, float("inf"), 64, 16, 128, 0.0, "any",
    Model(parameters=7e9, gradient=14e9, boundary=31e9, checkpoint=91e9, step=10.0),
    "d", 0.001, 1e5, 6.4e6, 1.0, tuple(Split),
)  # fmt: skip
"""About 1.9 million tokens a step at 40 % of 312 TFLOP/s, with activations of a width of 4096 in bf16 both ways."""


def main() -> int:
    """Print fit, evidence beside it, and sensitivities."""
    sys.stdout.write("\n".join((*_fits(), "", *_held_out(fit()), "", *_sensitivities())) + "\n")
    return 0


def _fits() -> Iterator[str]:
    yield f"Penalty, fitted to {len(FITTED)} cells and one rise (nats left, root mean square)"
    named = {"shipped": fit(), "share by tokens": fit(by_tokens=True), "Hoffmann's tokens": fit(*HOFFMANN)}
    for name, found in named.items():
        some = " ".join(f"{found.penalty(m, h):.3f}" for m, h in ((2, 50), (2, 500), (4, 100), (8, 500)))
        free = f"; exponent of tokens {found.tokens:.3f} ± {found.error:.3f}" if found.error else ""
        yield (
            f"  {name:18} gap {found.gap:.4f}, replicas^{found.replicas:.3f}, scale {found.scale:.1f} "
            f"({found.misfit:.4f}); "
            f"penalty at 2·50, 2·500, 4·100, 8·500: {some}{free}"
        )


def _held_out(found: Fit) -> Iterator[str]:
    yield "Not fitted to: tokens, replicas, period, rise of the loss as published and as the fit says"
    for cell in HELD_OUT:
        yield f"  {cell.tokens:.3g} {cell.replicas} {cell.period:4} {cell.gap:+.3f} {found.rise(cell):+.3f}"


def _sensitivities() -> Iterator[str]:
    yield f"{EXAMPLE.name}, half in each of two domains, 20 ms apart: work a second, in reference devices"
    varied = {
        "published": PUBLISHED,
        "overlap 0": replace(PUBLISHED, overlap=0.0),
        "overlap 1": replace(PUBLISHED, overlap=1.0),
        "overlap 5 steps": replace(PUBLISHED, overlap=5.0),
        "32 micro-batches": replace(PUBLISHED, micro_batches=32.0),
        "512 micro-batches": replace(PUBLISHED, micro_batches=512.0),
    }
    yield "                     synchronous 100 Gbit/s   periodic 50, 1 / 10 Gbit/s   pipeline 1 / 10 Gbit/s"
    for name, constants in varied.items():
        rates = [
            _rate(Split.SYNCHRONOUS, 1, 100, constants),
            _rate(Split.PERIODIC, 50, 1, constants),
            _rate(Split.PERIODIC, 50, 10, constants),
            _rate(Split.PIPELINE, 1, 1, constants),
            _rate(Split.PIPELINE, 1, 10, constants),
        ]
        yield f"  {name:18} " + "   ".join(f"{rate:8.2f}" for rate in rates)
    moves = {
        "published": PUBLISHED,
        "storage ÷ 3": replace(PUBLISHED, storage=PUBLISHED.storage / 3),
        "storage × 3": replace(PUBLISHED, storage=PUBLISHED.storage * 3),
        "starting 120 s": replace(PUBLISHED, starting=120.0),
        "faults × 3": replace(PUBLISHED, between_faults=PUBLISHED.between_faults / 3),
    }
    yield "The same job moves over 10 Gbit/s: seconds without progress, and seconds between checkpoints"
    one, other = (Placement((Share(site, "any", 64),)) for site in ("a", "b"))
    for name, constants in moves.items():
        lost = migration(EXAMPLE.model.checkpoint, 0.0, one, other, 10 * GIGABIT, 0.02, constants)
        yield f"  {name:18} {lost:8.0f} {interval(EXAMPLE.model.checkpoint, one, constants):8.0f}"


def _rate(split: Split, period: int, gigabits: float, constants: Constants) -> float:
    halves = tuple(Share(site, "any", 32) for site in ("a", "b"))
    devices = {"any": DeviceType("any", 80e9, 312e12, {"any": 1.0}, 400.0)}
    placed = terms(EXAMPLE, Placement(halves, split, period), devices, lambda _, __: 0.02, constants)
    return placed.work / placed.lasts(gigabits * GIGABIT)


if __name__ == "__main__":
    sys.exit(main())
