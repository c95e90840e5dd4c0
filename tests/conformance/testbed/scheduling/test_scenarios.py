"""Scenarios: what a cell says is what they are."""

from math import inf

import numpy as np
import pytest

from kuayu_conformance.testbed.scheduling.engine.world import CALM
from kuayu_conformance.testbed.scheduling.scenarios import (
    BOAST,
    CUT_LASTS,
    CUTS,
    SWING,
    SWINGS,
    Cell,
    Scenario,
    Timing,
    digest_of,
    ideal,
    scenario,
    submitted,
)
from kuayu_conformance.testbed.scheduling.topology import FAMILIES, PROFILES, capacity
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_conformance.testbed.scheduling.workload import UnknownFamily

HOUR = 3600.0
DAY = Timing(6 * HOUR, 24 * HOUR, 6 * HOUR)


def drawn(family: str = "reference", load: float = 0.8, seed: str = "one", **other: object) -> Scenario:
    return scenario(Cell(family, load, nodes=8, **other), DAY, seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_scenarios_and_its_own_troubles(family: str) -> None:
    its = drawn(family)
    names = {site.name for site in its.topology.sites}
    wrong = its.disturbances
    assert (wrong != CALM) == (family in {"faulty", "slow-on-site", "false-capacity", "partition"})
    assert {each.site for each in (*wrong.cuts, *wrong.claims)} | set(wrong.slow) <= names
    begins = [cut.since for cut in wrong.cuts]
    assert begins == sorted(begins)
    assert all(DAY.begin <= cut.since and cut.until <= DAY.end for cut in wrong.cuts)
    assert len(wrong.cuts) == (CUTS if family == "partition" else 0)
    assert all(cut.until - cut.since == pytest.approx(CUT_LASTS) for cut in wrong.cuts)
    assert [claim.factor for claim in wrong.claims] == ([BOAST] if family == "false-capacity" else [])


def test_the_domain_that_is_fastest_on_paper_is_slowest_in_practice() -> None:
    its = drawn("slow-on-site")

    def speed(name: str) -> float:
        site = next(site for site in its.topology.sites if site.name == name)
        devices = sum(pool.devices for pool in site.pools)
        return sum(capacity(site, its.topology.devices, profile) for profile in PROFILES) / devices

    paper = {site.name: speed(site.name) for site in its.topology.sites}
    practice = {name: each * its.disturbances.slow.get(name, 1.0) for name, each in paper.items()}
    assert max(paper, key=paper.__getitem__) == min(practice, key=practice.__getitem__)


@pytest.mark.parametrize("family", ["reference", "giant", "faulty"])
def test_when_jobs_come_and_how_long_they_take_is_known_before_they_are_drawn(family: str) -> None:
    its, found = drawn(family), submitted(Cell(family, 0.8, nodes=8), DAY, "one")
    jobs = its.workload.jobs
    assert found.submitted.tolist() == [job.submitted for job in jobs]
    assert found.serving.tolist() == [job.kind is JobKind.SERVING for job in jobs]
    assert (found.duration * found.devices).tolist() == pytest.approx([job.work / job.used for job in jobs])


def test_load_is_offered_to_what_is_of_use() -> None:
    """Device seconds that jobs ask for in the scenario over those of the devices, each as its mean index."""
    for family in ("reference", "slow-on-site"):
        its = drawn(family, load=0.8)
        asked = sum(
            job.requested * min(job.work / (job.requested * job.used), DAY.horizon - job.submitted)
            for job in its.workload.jobs
        )
        there = sum(
            its.disturbances.slow.get(site.name, 1.0)
            * sum(capacity(site, its.topology.devices, profile) for profile in PROFILES)
            / len(PROFILES)
            for site in its.topology.sites
        )
        assert asked / DAY.horizon == pytest.approx(0.8 * there, rel=0.02)


def test_domains_are_as_large_as_their_demand_unless_the_family_says_how_large() -> None:
    def sizes(family: str) -> list[float]:
        its = drawn(family)
        return [
            sum(capacity(site, its.topology.devices, profile) for profile in PROFILES) for site in its.topology.sites
        ]

    assert max(sizes("balanced")) < 2 * min(sizes("balanced"))
    assert max(sizes("reference")) > 3 * min(sizes("reference"))


def test_parameters_and_assumptions_can_be_moved() -> None:
    as_it_is, rightly, free = drawn(), drawn(changed=(("over_request", 0.0),)), drawn(assumed=(("tariff", 0.0),))
    assert {job.used for job in rightly.workload.jobs} == {1.0}
    assert min(job.used for job in as_it_is.workload.jobs) < 0.5
    assert {link.tariff for link in free.topology.links} == {0.0}


def test_what_there_is_not_is_said_by_name() -> None:
    with pytest.raises(UnknownFamily, match="nowhere"):
        drawn("nowhere")
    with pytest.raises(ValueError, match="no swing is named sudden"):
        drawn(swing="sudden")
    with pytest.raises(ValueError, match="no parameter is named giant"):
        drawn(changed=(("giant", 1.0),))
    with pytest.raises(ValueError, match="no assumption is named luck"):
        drawn(assumed=(("luck", 1.0),))
    with pytest.raises(ValueError, match="5 to 64"):
        drawn(sites=4)
    with pytest.raises(ValueError, match="whole minutes"):
        Timing(0.0, 90.0, 0.0)


@pytest.mark.parametrize("swing", SWINGS)
def test_a_swing_moves_jobs_within_the_window_alone(swing: str) -> None:
    steady, swung = drawn().workload.jobs, drawn(swing=swing).workload.jobs
    assert [job.name for job in steady] == [job.name for job in swung]
    submitted = np.array([job.submitted for job in swung])
    assert (np.diff(submitted) >= 0.0).all()
    for before, after in zip(steady, swung, strict=True):
        inside = DAY.begin < before.submitted < DAY.end
        assert DAY.begin <= after.submitted <= DAY.end if inside else after == before
        assert after.work == before.work
        if before.deadline < inf:
            assert after.deadline - after.submitted == pytest.approx(before.deadline - before.submitted)


def test_a_step_is_by_a_fifth_down_and_up() -> None:
    """Jobs of the whole window in the halves of it, where the rate is 0.8 and 1.2 of what it was."""
    at = (np.arange(2000) + 0.5) / 2000
    for swing, rate in SWINGS.items():
        assert abs(rate(at).mean()) < 1e-9, swing
        assert abs(rate(at)).max() <= 1.0
    steady, step = (
        np.array([job.submitted for job in drawn(swing=swing).workload.jobs]) for swing in ("steady", "step")
    )
    middle = DAY.begin + DAY.window / 2
    until = DAY.begin + DAY.window / 2 * (1 - SWING)
    assert (step < middle).sum() == (steady < until).sum()


def test_a_scenario_follows_from_its_arguments_and_its_digest_from_all_of_it() -> None:
    one = drawn()
    assert digest_of(one) == digest_of(drawn())
    others = [drawn(seed="two"), drawn(load=0.7), drawn("faulty"), drawn(swing="ramp"), ideal(one)]
    assert len({digest_of(each) for each in (one, *others)}) == 6


def test_the_ideal_pool_is_one_place_with_all_devices() -> None:
    apart = drawn("partition")
    together = ideal(apart)
    assert len(together.topology.sites) == 1
    assert together.disturbances.cuts == ()
    count = [sum(pool.devices for site in its.topology.sites for pool in site.pools) for its in (apart, together)]
    assert count[0] == count[1]
