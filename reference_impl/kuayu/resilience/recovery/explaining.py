"""Why a job goes on as it does, in words with figures."""

from collections.abc import Iterator

from kuayu.resilience.recovery.options import GO_ON, REPLACE, RESTORE, WAIT
from kuayu.resilience.recovery.planning import Chosen
from kuayu.resilience.recovery.scene import Broken

_WOULD = {
    GO_ON: "go on with what is whole",
    REPLACE: "replace what its own nodes are enough for",
    RESTORE: "be restored on its own nodes",
    WAIT: "wait",
}


def reasons(job: Broken, chosen: Chosen) -> Iterator[str]:
    """Of one job: what it has, what it does, and what it would do without free nodes."""
    way, spares = chosen.way, chosen.way.spares(job, chosen.count)
    yield f"Whole replicas: {len(job.whole)} of {job.replicas}; it goes on with no fewer than {job.least}."
    if way.strategy == GO_ON:
        yield f"There are not enough nodes for another replica ({job.nodes_each}) in {job.domain}."
    elif way.strategy == REPLACE:
        yield f"Replicas that get nodes in {job.domain}, and their state from a whole one: {chosen.count}."
    elif way.strategy == RESTORE:
        yield from _restored(job, chosen)
    else:
        yield _waits(job)
    if spares:
        nodes = "one free node" if spares == 1 else f"{spares} free nodes"
        yield f"That takes {nodes}; without them it would {_WOULD[chosen.alone.strategy]}."


def _restored(job: Broken, chosen: Chosen) -> Iterator[str]:
    way = chosen.way
    source, target = way.road or ("", "")
    over = f"over the link from {source}" if source != target else "of the same domain"
    count = f"{chosen.count} of {job.replicas}"
    yield f"Replicas that begin anew in {target} from the copy {over}, {way.age_s:.3g} s old: {count}."
    if job.fenced_s:
        yield f"Not before {job.fenced_s:.3g} s: until then what is unreachable may still make steps."


def _waits(job: Broken) -> str:
    if job.fenced_s is None:
        return "Nobody knows when its unreachable nodes have stopped, so it is not restored, and too few are whole."
    if not job.copies:
        return f"There is no copy of it, and there are not enough nodes in {job.domain}."
    return "Nowhere that a copy can get to are there enough nodes."
