"""Why a plan is as it is, in words with figures: what less depth, other sizes and other sources would have cost."""

from collections.abc import Iterator

import numpy as np

from kuayu.resilience.transfers.planning import Plan
from kuayu.resilience.transfers.scene import Scene
from kuayu.resilience.transfers.sizes import PARTS

NAMED = 20
"""Most slots that are named one by one."""

_HOUR = 3600.0


def reasons(scene: Scene, made: Plan, stream: int) -> Iterator[str]:
    """Of one stream: depth, size of shards, local data, sources, and what is given up."""
    yield from _depth(scene, made, stream)
    if made.depths.steps[stream]:
        yield from _size(made, stream)
    yield from _local(scene, made, stream)
    yield from _sources(scene, made, stream)
    for each in made.given_up[stream]:
        source = scene.links[each.link].source
        yield f"The transfer from {source} is given up: it would be late, and another link has it sooner."


def _depth(scene: Scene, made: Plan, stream: int) -> Iterator[str]:
    depth, waiting = int(made.depths.steps[stream]), made.depths.waiting[stream]
    if depth < 1:
        yield "Nothing is fetched: the room does not hold a step."
        return
    less = _HOUR * float(waiting[depth - 1] - waiting[depth])
    words = f"{depth} steps ahead; one less would cost {less:.3g} s of waiting an hour"
    if depth + 1 < len(waiting):
        words += f", one more would save {_HOUR * float(waiting[depth] - waiting[depth + 1]):.3g} s"
    if made.depths.saving[made.layout.of[stream]] > scene.saving:
        words += "; the room does not hold all that would be worth it"
    yield words + "."


def _size(made: Plan, stream: int) -> Iterator[str]:
    part, cost = int(made.sizes.part[stream]), made.sizes.cost[stream]
    words = f"Shards of {PARTS[part]:g} steps cost {100 * cost[part]:.2g} % of the links' time"
    if part:
        words += f"; of half the size, {100 * cost[part - 1]:.2g} %"
    if part + 1 < len(PARTS):
        words += f"; of twice the size, {100 * cost[part + 1]:.2g} %"
    yield words + "."


def _local(scene: Scene, made: Plan, stream: int) -> Iterator[str]:
    local = made.tables[stream].local
    if local:
        slots = ", ".join(str(each) for each in local[:NAMED])
        more = f" and {len(local) - NAMED} more" if len(local) > NAMED else ""
        yield f"Slots {slots}{more} take local data: by a cautious forecast, data from afar would be late for them."
    elif scene.streams[stream].local_steps:
        yield "No slot takes local data: data from afar are in time by a cautious forecast."


def _sources(scene: Scene, made: Plan, stream: int) -> Iterator[str]:
    mine = (made.shards.stream == stream) & (made.order.link >= 0)
    for link in np.unique(made.order.link[mine]).tolist():
        over = mine & (made.order.link == link)
        sooner = made.order.other_s[over] - made.order.finish_s[over]
        words = f"{int(over.sum())} shards come from {scene.links[link].source}"
        known = sooner[np.isfinite(sooner)]
        yield words + (f"; the next best link would have them {known.mean():.2g} s later." if len(known) else ".")
    lost = int(((made.shards.stream == stream) & (made.order.link < 0)).sum())
    if lost:
        yield f"{lost} shards wait: no source of theirs is up."
