"""RES-013 for adjustments: each thing that somebody overlooks in a request is found, and told as what it is."""

import pytest
from conformance.complaints import bodies, unmet

from kuayu_conformance.checks.resilience import references as res_names
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS

OVERLOOKED = {
    "/jobs/0/shares/0/domain": "a share in an unknown domain",
    "/jobs/1/order/1": "an unknown domain in an order",
    "/jobs/1/planned/1/order/1": "an unknown domain in a planned order",
    "/links/7/source": "an unknown source of a link (/v1/adjustments)",
    "/links/7/target": "an unknown target of a link (/v1/adjustments)",
    "/domains/4/id": "a domain, twice (/v1/adjustments)",
    "/links/7": "a link, twice (/v1/adjustments)",
    "/links": "domains without a link (/v1/adjustments)",
    "/jobs/1/id": "a job, twice (/v1/adjustments)",
    "/jobs/2/shares/3/domain": "a share, twice",
    "/jobs/1/order": "an order in force that leaves one out",
    "/jobs/1/planned/1/order": "an order planned with one beyond",
    "/jobs/1/period": "a period of 5 with ring in force",
    "/jobs/1/planned/1/period": "a period of 5 with hierarchical planned",
    "/jobs/1/planned/1/parts": "planned parts of nought",
    "/jobs/1/planned/1/after": "a change that is planned for sooner than the one before",
}
"""A place that somebody does not look at, and one of the things that are found."""


@pytest.mark.parametrize("place", OVERLOOKED)
def test_who_overlooks_something_is_found(place: str) -> None:
    assert any(OVERLOOKED[place] in each for each in unmet(lambda found: found[1] == place))


def test_who_looks_only_at_what_is_in_force_is_found_wherever_a_plan_is_wrong() -> None:
    found = unmet(lambda complaint: "/planned/" in complaint[1])
    planned = [each for each in _whats() if "planned" in each]
    assert len(planned) == 11
    assert len(found) == 2 * len(planned)
    assert all(any(what in each for each in found) for what in planned)


def test_who_takes_unknown_names_for_contradictions_is_told_the_problem() -> None:
    """Every unknown name is also one that an order must not hold, or a link must not lead to."""
    unknown = [each for each in _whats() if "unknown" in each]
    assert len(unknown) == 5
    found = unmet(lambda complaint: complaint[0] == "unknown-reference")
    assert all(any(what in each for each in found) for what in unknown)


def test_a_missing_link_may_be_told_of_where_it_is_missing_or_where_it_is_needed() -> None:
    (fault,) = (each for each in res_names.FAULTS[ADJUSTMENTS](bodies()[ADJUSTMENTS]) if each.instead)
    assert fault.where == "/links or a place within it, or /jobs/2 or a place within it"
    for pointer in ("/links", "/links/5", "/jobs/2", "/jobs/2/shares/2/domain"):
        assert fault.names(pointer)
    for pointer in ("", "/jobs", "/jobs/1", "/jobs/20", "/linksy"):
        assert not fault.names(pointer)


def test_every_place_that_may_be_overlooked_is_told_of_once() -> None:
    assert len(set(_whats())) == len(_whats())


def _whats() -> list[str]:
    return [fault.what for fault in res_names.FAULTS[ADJUSTMENTS](bodies()[ADJUSTMENTS])]
