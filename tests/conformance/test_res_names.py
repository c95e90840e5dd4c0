"""The check of names in requests of resilience with a target that looks at them, and with ones that do not."""

import pytest
from conformance.complaints import LOOKS, REQUESTS, bodies, unmet

from kuayu_conformance.checks.resilience import references as res_names
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, BACKUPS, FAILOVERS
from kuayu_schemas import schema


def test_who_looks_at_names_and_numbers_passes() -> None:
    assert unmet() == []


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("/streams/1/transfers/1/source", "a transfer from an unknown domain"),
        ("/streams/1/id", "a stream, twice"),
        ("/rooms/1/domain", "a room, twice"),
        ("/links/2", "a link to its source (/v1/shard-plans)"),
        ("/streams/1/missing/1", "missing bytes that overlap"),
        ("/streams/1/transfers/1", "a transfer with more left than it has"),
        ("/links/6/target", "an unknown target of a link"),
        ("/in_use/order/1", "an unknown domain in use"),
        ("/domains/3", "a domain, twice"),
        ("/links/6", "a link, twice (/v1/collectives)"),
        ("/links", "domains without a link"),
        ("/in_use/order", "an order that leaves one out"),
        ("/in_use/period", "a period of 5 with ring"),
        ("/jobs/1/domain", "a job in an unknown domain"),
        ("/domains/2/id", "a domain, twice (/v1/backup-plans)"),
        ("/jobs/1/id", "a job, twice (/v1/backup-plans)"),
        ("/jobs/1/id", "a job, twice (/v1/failover-plans)"),
        ("/stores/2/domain", "a store, twice (/v1/backup-plans)"),
        ("/stores/2/domain", "a store, twice (/v1/failover-plans)"),
        ("/links/7", "a link, twice (/v1/backup-plans)"),
        ("/links/7", "a link to its source (/v1/failover-plans)"),
        ("/jobs/1/least_replicas", "a least number above the number of replicas (/v1/backup-plans)"),
        ("/jobs/1/least_replicas", "a least number above the number of replicas (/v1/failover-plans)"),
        ("/jobs/1/copies/1/domain", "a copy in a domain without a store"),
        ("/jobs/1/copies/1/domain", "a copy, twice"),
        ("/nodes/11/id", "a node, twice"),
        ("/nodes/11", "a replica without a job"),
        ("/nodes/6", "a job without a replica"),
        ("/nodes/6/fenced_in", "a fit node that is fenced"),
        ("/nodes/3/fenced_in", "a failed node that is fenced"),
        ("/nodes/6/replica", "a replica beyond the last"),
        ("/nodes/6/domain", "a node in another domain than its job"),
        ("/nodes/11/job", "a replica with more nodes than it needs"),
    ],
)
def test_who_overlooks_something_is_found(place: str, complaint: str) -> None:
    assert any(complaint in each for each in unmet(lambda found: found[1] == place))


def test_who_refuses_nothing_is_found_in_all() -> None:
    faults = sum(len(list(res_names.FAULTS[path](body))) for path, body in bodies().items())
    assert len(unmet(lambda _: True)) == 2 * faults


def test_every_fault_is_one_that_the_schema_lets_pass() -> None:
    for path, body in bodies().items():
        name = REQUESTS[path]
        assert schema.is_valid(name, body)
        for fault in res_names.FAULTS[path](body):
            wrong = fault.in_(body)
            assert wrong != body
            assert schema.is_valid(name, wrong), fault.what


def test_what_is_wrong_is_one_thing_each_time() -> None:
    """Whoever refuses for another reason than the one that is meant is not taken for one who looked."""
    for path in (BACKUPS, FAILOVERS, ADJUSTMENTS):
        body = bodies()[path]
        assert list(LOOKS[path](body)) == []
        for fault in res_names.FAULTS[path](body):
            wrong = fault.in_(body)
            found = list(LOOKS[path](wrong))
            assert len(found) == 1, (fault.what, found)
            assert found[0][0] == fault.problem
            assert found[0][1].startswith(fault.pointer)
