"""What tasks are given: the cut that frees most at the slow-down that is allowed.

Algorithm 1 of Yang, Hong and Tang scales what is unimportant down as long as the predicted time changes by less than is
allowed. Here each resource has a scale of its own. Each scale has an expected slow-down, over all needs that a task of
that kind and size may have; of all pairs of scales for accelerators and cores that together stay within what is
allowed, that is taken which frees most, as resources are worth. Memory cannot be waited for: a task that lacks it dies
and starts anew, so that memory is given which few exceed, and what they lose counts.

What a resource is worth: a request does not tell the cluster that it is for. What machines with accelerators hold is
known though, and what tasks ask for at the same time is in the history; a resource is the scarcer, the more kinds of
machines it fills first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kuayu.demand.sizing_needs import MIN_SHARE, Need
from kuayu.demand.sizing_records import RESOURCES, Records
from kuayu.demand.sizing_waits import WAITING, Waits
from kuayu.demand.strategy import Floats

STEPS = 100
"""Scales between nothing and all."""

DYING = 0.005
"""Share of tasks that may run out of memory, at most."""

DYING_PART = 0.1
"""Share of the allowed slow-down that may go to tasks that run out of memory, at most."""

LOST = 0.5
"""Share of its run that a task loses that runs out of memory: its peak may come at any time. An assumption."""

MEMORY = 2

ROUNDING = 1e-12

BATCH = 200
"""Tasks that are looked at together."""


GB = 1e9

MACHINES = (
    (8, 40, 512 * GB),
    (16, 48, 1536 * GB),
    (8, 128, 1024 * GB),
    (8, 112, 2048 * GB),
    (8, 192, 1024 * GB),
)
"""Accelerators, cores, memory: NVIDIA DGX-1, DGX-2, DGX A100 and DGX H100, Huawei Atlas 800 (9000), by data sheets."""


@dataclass(frozen=True)
class Cuts:
    """What N tasks of a kind are given, N × 3, and by how much longer than on what they ask for they should run, N."""

    given: Floats
    slower: Floats


def cut(
    requested: Floats, needed: Sequence[Need], waits: Waits, weights: Floats, allowed: float, *, whole: bool
) -> Cuts:
    """Sizes of tasks of a kind.

    Args:
        requested: What they ask for, N × 3.
        needed: Needs of the kind by resource.
        waits: How tasks of the kind wait.
        weights: Of what is asked for of each resource, 3.
        allowed: By how much longer they may run.
        whole: Whether accelerators cannot be shared.
    """
    batches = [requested[place : place + BATCH] for place in range(0, len(requested), BATCH)]
    parts = [_cut(batch, needed, waits, weights, allowed, whole=whole) for batch in batches]
    return Cuts(np.concatenate([part.given for part in parts]), np.concatenate([part.slower for part in parts]))


def _cut(
    requested: Floats, needed: Sequence[Need], waits: Waits, weights: Floats, allowed: float, *, whole: bool
) -> Cuts:
    own, dying = requested[:, MEMORY], min(DYING, DYING_PART * allowed)
    memory = np.minimum(own, np.maximum(needed[MEMORY].most(requested, 1 - dying), MIN_SHARE * own))
    dead = np.where(memory < own, LOST * dying, 0.0)
    parts, late = zip(
        *(_tried(requested, resource, needed[resource], waits, whole=whole) for resource in WAITING), strict=True
    )
    # Beside each part of the accelerators, the least part of the cores that is still allowed; N × parts.
    slack = allowed + 1e-12 - dead[:, None] - late[0]
    least = (
        np.array([np.searchsorted(resource, left, side="right") for resource, left in zip(late[1], slack, strict=True)])
        - 1
    )
    cores = np.take_along_axis(parts[1], np.maximum(least, 0), axis=1)
    freed = -(weights[0] * np.log(parts[0]) + weights[1] * np.log(cores))
    freed[least < 0] = -np.inf
    # All that is asked for is always allowed.
    freed[:, 0] = np.maximum(freed[:, 0], 0.0)
    rows, first = np.arange(len(requested)), freed.argmax(axis=1)
    chosen = first, np.maximum(least[rows, first], 0)
    parts_kept = [part[rows, resource] for part, resource in zip(parts, chosen, strict=True)]
    given = np.column_stack(
        [requested[:, resource] * part for resource, part in zip(WAITING, parts_kept, strict=True)] + [memory]
    )
    return Cuts(np.minimum(given, requested), late[0][rows, chosen[0]] + late[1][rows, chosen[1]] + dead)


def _tried(requested: Floats, resource: int, need: Need, waits: Waits, *, whole: bool) -> tuple[Floats, Floats]:
    """Parts of a resource that are tried, falling from one, and the slow-down that each is expected to lead to."""
    parts = np.arange(STEPS, round(MIN_SHARE * STEPS) - 1, -1) / STEPS
    parts = np.tile(parts, (len(requested), 1))
    own = requested[:, resource]
    if whole and resource == 0:
        parts = np.minimum(np.ceil(parts * own[:, None] - 1e-9) / np.maximum(own, 1e-300)[:, None], 1.0)
    if not len(need.shares):
        return np.ones_like(parts), np.zeros_like(parts)
    likely = need.likely(requested)
    over = likely / np.where(own > 0, own, np.inf)[:, None]
    before = waits.slower(resource, over)
    after = waits.slower(resource, over[:, None, :] / parts[:, :, None])
    # A mean over needs of (1 + after)/(1 + before) − 1.
    late = np.einsum("npk,nk->np", 1 + after, 1 / (1 + before)) / before.shape[1] - 1
    late = np.maximum.accumulate(np.where(late < ROUNDING, 0.0, late), axis=1)
    # Who asks for less than is likely needed is not given less, and who asks for nothing has nothing to give.
    untouched = (np.median(over, axis=1) >= 1 - 1e-9) | (own <= 0)
    parts[untouched], late[untouched] = 1.0, 0.0
    return parts, late


def worth(history: Iterable[Records]) -> Floats:
    """Parts of the worth of all that tasks of a history asked for that fall to each resource, 3; their sum is one.

    Share of the machines that are full of it first; each resource counts as one kind of machine more, equally divided,
    so that none is worth nothing.
    """
    with np.errstate(over="ignore"):  # what is beyond doubles is scarce
        asked_for = sum((entry.duration @ entry.given for entry in history), np.zeros(len(RESOURCES)))
    first = np.full(len(RESOURCES), 1 / len(RESOURCES))
    for machine in np.array(MACHINES):
        full = asked_for / machine
        if full.max() > 0:
            first[int(full.argmax())] += 1
    return np.asarray(first / first.sum())
