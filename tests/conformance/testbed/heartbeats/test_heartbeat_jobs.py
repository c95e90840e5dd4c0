"""Jobs of the judge's heartbeats: what hangs, what straggles, and what stands still for another reason."""

from itertools import pairwise
from math import inf

import pytest
from conformance.testbed.heartbeats.listening import deliveries, quick

from kuayu_conformance.testbed.heartbeats import (
    BLOCKING,
    HANG,
    HUNG_AFTER,
    LATE_STEPS,
    LEAST_HUNG,
    NODE_DEAD,
    RANK_STRAGGLING,
    Delivery,
    World,
)


@pytest.fixture(scope="module")
def played() -> tuple[World, list[Delivery]]:
    """A quick world and all that it sends, in order."""
    its = quick()
    return its, list(deliveries(its))


def steps_of(sent: list[Delivery], job: str) -> list[tuple[float, int, int]]:
    """Instant of sending, rank, step."""
    return [
        (beat.sent, step["rank"], step["step"])
        for delivery in sent
        for beat in delivery.beats
        for step in beat.body.get("steps", ())
        if step["job"] == job
    ]


def test_a_job_that_hangs_makes_no_step_and_goes_on_where_it_was(played: tuple[World, list[Delivery]]) -> None:
    its, sent = played
    hung = [each for each in its.incidents if each.cause == HANG]
    assert hung
    for each in hung:
        assert each.job
        assert each.onset - each.since >= LEAST_HUNG - 1e-6
        rows = steps_of(sent, each.job)
        meanwhile = {
            rank: {s for at, r, s in rows if r == rank and each.since < at < each.until} for _, rank, _ in rows
        }
        assert {len(steps) for steps in meanwhile.values()} == {1}
        if each.until < its.scale.total - 6.0:
            assert any(at > each.until + 3.0 and step > max(meanwhile[rank]) for at, rank, step in rows)
        before = sorted({(step, at) for at, _, step in rows if at < each.since})
        paces = [b - a for a, b in pairwise(sorted(dict(reversed(before)).values()))]
        assert each.onset - each.since < HUNG_AFTER * (max(paces) + 1.0) + LEAST_HUNG


def test_a_rank_that_straggles_is_behind_its_peers(played: tuple[World, list[Delivery]]) -> None:
    its, sent = played
    slow = [each for each in its.incidents if each.kind == RANK_STRAGGLING]
    assert slow
    for each in slow:
        assert each.job
        rows = steps_of(sent, each.job)
        first = max((step for at, rank, step in rows if rank == each.rank and at < each.since), default=0)
        begun = max(step for at, rank, step in rows if rank == each.rank and at < each.onset)
        assert begun - first == LATE_STEPS - 1 or begun - first == LATE_STEPS - 2

        def done(rank: int | None, step: int, rows: list[tuple[float, int, int]] = rows) -> float:
            return min((at for at, r, s in rows if r == rank and s >= step), default=inf)

        ranks = {rank for _, rank, _ in rows} - {each.rank}
        later = [
            done(each.rank, step) - sum(done(rank, step) for rank in ranks) / len(ranks)
            for step in range(first + 1, begun + 8)
        ]
        assert sum(later) / len(later) > 0.1


def test_a_job_whose_node_died_stands_still_and_nothing_is_told_of_it(played: tuple[World, list[Delivery]]) -> None:
    its, sent = played
    blocked = {job.name: {str(its.nodes[row]["id"]) for row in job.nodes} for job in its.jobs if job.blocked}
    assert not {each.job for each in its.incidents} & blocked.keys()
    dead = {each.node: each.onset for each in its.incidents if each.cause == BLOCKING}
    for job, nodes in blocked.items():
        (node,) = nodes & dead.keys()
        rows = steps_of(sent, job)
        after = {rank: {s for at, r, s in rows if r == rank and at > dead[node] + 2.0} for _, rank, _ in rows}
        assert {len(steps) for steps in after.values()} <= {0, 1}
    in_jobs = {str(its.nodes[row]["id"]) for job in its.jobs for row in job.nodes}
    assert {each.node for each in its.incidents if each.kind == NODE_DEAD} & in_jobs == dead.keys()
