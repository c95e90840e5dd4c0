"""Why a job is adjusted or not, in words with figures."""

from collections.abc import Iterator

from kuayu.resilience.adjustment import dividing
from kuayu.resilience.adjustment.deciding import Decision
from kuayu.resilience.adjustment.law import Way
from kuayu.resilience.adjustment.planning import Option
from kuayu.resilience.adjustment.scene import Running
from kuayu.resilience.transfers.collectives import HIERARCHICAL, LOW, RING

NAMES = {RING: "a ring", HIERARCHICAL: "a hierarchical collective", LOW: "low communication"}


def reasons(job: Running, decision: Decision) -> Iterator[str]:
    """Of one job: how near it is to the best policy, what becomes of it, and what that costs."""
    if len(job.domains) == 1:
        yield "It runs in one domain: there is nothing to divide, and nothing to exchange over domains."
    elif decision.best_rate is None:
        yield "No load or latency differs enough from what its policy was chosen for."
    elif decision.made is None:
        yield f"It stays as it is: {_near(decision.outlook, decision.best_rate)} of the steps of the best policy."
    else:
        before, after = (_near(rate, decision.best_rate) for rate in (decision.outlook, decision.expected_rate))
        yield f"As it is, it would make {before} of the steps of the best policy; after all changes {after}."
        if decision.made.timetable.stages[-1].policy == job.policy:
            yield "What was planned is taken back."
        else:
            yield from _changes(job, decision.made)
            yield _cost(decision.made)


def _near(rate: float, best_rate: float) -> str:
    return f"{rate / best_rate:.1%}" if best_rate > 0.0 else "all"


def _changes(job: Running, made: Option) -> Iterator[str]:
    stages = made.timetable.stages
    target = stages[-1].policy
    moved = dividing.moves(job.policy.parts, target.parts)
    if moved:
        goes = f"in {len(stages)} stages" if len(stages) > 1 else "all at once"
        yield f"Parts that move: {moved} of {sum(job.policy.parts)}, {goes}."
    before, after = job.policy.way, target.way
    if (before.kind, before.period) != (after.kind, after.period):
        yield f"Replicas agree by {_named(after)} instead of {_named(before)}."
    elif before != after:
        yield "Replicas agree in another order, which suits the links better now."


def _named(way: Way) -> str:
    words = NAMES.get(way.kind, "one of another kind")
    return f"{words} every {way.period} steps" if way.period > 1 else words


def _cost(made: Option) -> str:
    loss, end = made.timetable.loss, made.timetable.end_s
    if made.allowed:
        return f"No window loses more than {loss:.1%} of its steps; all is in force in {end:.3g} s."
    return f"No way was found by which a window loses no more than it may; by this one it loses up to {loss:.0%}."
