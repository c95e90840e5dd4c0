"""Leases: a domain that is cut off for good holds nobody up for longer than its lease."""

import signal
import time

from service.conftest import Service, StartService
from service.test_allocation_turns import hold
from service.test_allocations import actions, answer, put, say, standing, wanted

from kuayu.service.allocation_store import LEASE_MARGIN_FACTOR, SERVICE_ABSENCE_SECONDS, AllocationLease, Leases

LEASE = 100.0


class Clock:
    """Stands until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def looked(leases: Leases, clock: Clock, seconds: float, *domains: str) -> list[str]:
    """Domains that have let go after so many seconds, with a look every now and then."""
    until, found = clock.now + seconds, []
    while clock.now < until:
        clock.now = min(until, clock.now + SERVICE_ABSENCE_SECONDS / 2)
        over = leases.over([AllocationLease("own", "a", LEASE, domains)])
        found = [domain for each in over for domain in each.domains]
    return found


def test_a_domain_that_is_not_answered_for_a_lease_and_a_tenth_has_let_go() -> None:
    clock = Clock()
    leases = Leases(clock)
    for domain in ("x", "y"):
        leases.answered("own", domain)
    assert looked(leases, clock, LEASE, "x", "y") == []
    leases.answered("own", "y")
    leases.answered("other", "x")  # of the same name in another tenant
    assert looked(leases, clock, (LEASE_MARGIN_FACTOR - 1) * LEASE - 1, "x", "y") == []
    assert looked(leases, clock, 2, "x", "y") == ["x"]


def test_whoever_was_never_answered_counts_from_the_start_of_the_service() -> None:
    clock = Clock()
    leases = Leases(clock)
    assert looked(leases, clock, LEASE_MARGIN_FACTOR * LEASE - 1, "x") == []
    assert looked(leases, clock, 2, "x") == ["x"]


def test_the_service_does_not_take_its_own_absence_for_that_of_domains() -> None:
    clock = Clock()
    leases = Leases(clock)
    leases.answered("own", "x")
    assert looked(leases, clock, 1, "x") == []
    clock.now += 5 * LEASE  # it was stopped
    assert looked(leases, clock, LEASE_MARGIN_FACTOR * LEASE - 1, "x") == []
    assert looked(leases, clock, 2, "x") == ["x"]
    leases.idle()
    leases.answered("own", "x")
    clock.now += LEASE  # nothing was leased
    assert looked(leases, clock, 1, "x") == []
    assert looked(leases, clock, 0.1 * LEASE, "x") == ["x"]


def until_asked(service: Service, domain: str, heard: str) -> None:
    """Wait until a domain is asked for something, while another is heard."""
    deadline = time.monotonic() + 20
    while not actions(service, domain):
        assert time.monotonic() < deadline
        actions(service, heard)
        time.sleep(0.1)


def test_a_job_goes_on_elsewhere_when_the_lease_of_a_silent_domain_is_over(start_service: StartService) -> None:
    service = start_service()
    put(service, wanted("old", "x", "y", job="j", lease=1))
    assert [each["lease"] for each in actions(service, "x")] == [1]
    hold(service, "old", "x", "y")
    put(service, wanted("new", "z", job="j", patience=60))
    answer(service, "z")
    began = time.monotonic()
    until_asked(service, "x", "z")  # y is cut off; what is left of the job has to end
    assert time.monotonic() - began > 0.9
    assert standing(service, "old")["reason"] == "y let go without being asked"
    assert answer(service, "x")["phase"] == "released"
    assert answer(service, "z")["phase"] == "committed"
    assert actions(service, "y") == []


def test_whoever_keeps_asking_keeps_what_it_holds(start_service: StartService) -> None:
    service = start_service()
    put(service, wanted("kept", "x", lease=1))
    hold(service, "kept", "x")
    for _ in range(15):
        assert actions(service, "x", wait=0.2) == []
    assert standing(service, "kept")["phase"] == "committed"
    service.stop(signal.SIGKILL)
    time.sleep(1.5)
    service.start()
    assert standing(service, "kept")["phase"] == "committed"  # the service was away, not the domain
    time.sleep(0.5)
    assert standing(service, "kept")["phase"] == "committed"


def test_a_domain_that_has_lost_what_it_held_says_so(start_service: StartService) -> None:
    service = start_service()
    put(service, wanted("lost", "x", "y", job="j"))
    [commit] = actions(service, "x")
    hold(service, "lost", "x", "y")
    expired = {"action": commit["id"], "phase": "commit", "outcome": "expired", "at": "2026-01-01T00:00:00Z"}
    assert say(service, expired)["phase"] == "releasing"
    assert say(service, expired)["phase"] == "releasing"
    assert actions(service, "x") == []
    assert answer(service, "y")["phase"] == "released"
