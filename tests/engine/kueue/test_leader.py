"""One of several dispatchers writes: the one that holds the lease."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from engine.kueue.played_manager import LEASES, PlayedManager

from kuayu.engine.kueue.leader import LEASE_SECONDS, RENEW_SECONDS, Leadership
from kuayu.engine.runs.kubernetes_connection import ApiError, Connection, find_access


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[PlayedManager]:
    cluster = PlayedManager(tmp_path)
    yield cluster
    cluster.close()


def leadership(manager: PlayedManager, identity: str, clock: Clock) -> Leadership:
    connection = Connection(find_access(manager.kubeconfig()))
    return Leadership(connection, LEASES, "kuayu-dispatcher", identity, clock=clock)


def test_the_first_leads_and_the_second_stands_by(manager: PlayedManager) -> None:
    clock = Clock()
    first, second = (leadership(manager, name, clock) for name in ("first", "second"))
    assert [first.attempt(), second.attempt()] == [True, False]
    assert [first.leads, second.leads] == [True, False]
    assert second.holder == "first"


def test_the_second_takes_over_when_nobody_has_renewed_the_lease_for_as_long_as_it_lasts(
    manager: PlayedManager,
) -> None:
    """The first writes no more before that: there is no instant in which both do."""
    clock = Clock()
    first, second = (leadership(manager, name, clock) for name in ("first", "second"))
    first.attempt()
    second.attempt()
    clock.now = RENEW_SECONDS
    assert not first.leads
    clock.now = LEASE_SECONDS - 0.1
    assert not second.attempt()
    clock.now = LEASE_SECONDS + 0.1
    assert second.attempt()
    assert not first.attempt()
    assert (lease := manager.lease()) is not None
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("second", 1)


def test_one_that_renews_its_lease_is_not_replaced(manager: PlayedManager) -> None:
    clock = Clock()
    first, second = (leadership(manager, name, clock) for name in ("first", "second"))
    for clock.now in range(0, 60, 2):
        assert first.attempt()
        assert not second.attempt()


def test_a_lease_that_is_given_back_is_taken_at_once(manager: PlayedManager) -> None:
    clock = Clock()
    first, second = (leadership(manager, name, clock) for name in ("first", "second"))
    first.attempt()
    second.attempt()
    first.give_back()
    assert not first.leads
    assert second.attempt()
    assert not first.attempt()


def test_of_two_that_take_a_lease_at_the_same_moment_one_gets_it(manager: PlayedManager) -> None:
    clock = Clock()
    first, second, third = (leadership(manager, name, clock) for name in ("first", "second", "third"))
    first.attempt()
    second.attempt()
    third.attempt()
    clock.now = LEASE_SECONDS + 1.0
    manager.before_patch = lambda: _once(manager, third)
    assert not second.attempt()
    assert third.leads


def _once(manager: PlayedManager, other: Leadership) -> None:
    manager.before_patch = lambda: None
    assert other.attempt()


def test_one_that_may_not_hold_leases_says_so(manager: PlayedManager) -> None:
    manager.allowed = []
    with pytest.raises(ApiError, match="leases is forbidden"):
        leadership(manager, "first", Clock()).attempt()
