"""Parts of a workload, on cases that are worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.elementary import exact_sum, growth, read_off
from kuayu_conformance.testbed.scheduling.law.terms import speed
from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.workload import FAMILIES, demand, draw, jobs
from kuayu_conformance.testbed.scheduling.workload.fitted import LEVELS, parameters, used
from kuayu_conformance.testbed.scheduling.workload.traces import mean_and_p95, over_time, within

DAY = 86_400.0


@given(st.floats(-16, 16))
def test_growth_is_that_of_the_library(exponent: float) -> None:
    assert growth(np.array([exponent]))[0] == pytest.approx(math.exp(exponent), rel=1e-11)


def test_a_curve_of_straight_pieces_is_level_beyond_its_ends() -> None:
    found = read_off(np.array([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0]), (0.0, 0.5, 1.0), (10.0, 20.0, 60.0))
    assert found.tolist() == [10.0, 10.0, 15.0, 20.0, 40.0, 60.0, 60.0]


def test_sums_are_rounded_once() -> None:
    assert exact_sum(np.array([1e16, 1.0, -1e16])) == 1.0


def test_demand_of_two_jobs() -> None:
    """Four devices from before the begin until 1200 s, two from 600 to 1800 s: 4, 6, 2 and none in steps of 600 s."""
    submitted, duration, devices = np.array([-300.0, 600.0]), np.array([1500.0, 1200.0]), np.array([4.0, 2.0])
    assert over_time(submitted, duration, devices, 0.0, 2400.0).tolist() == [4.0, 6.0, 2.0, 0.0]
    assert within(submitted, duration, devices, 2400.0).tolist() == [4800.0, 2400.0]
    mean, p95 = mean_and_p95(submitted, duration, devices, 0.0, 2400.0)
    assert mean == 3.0
    assert p95 == pytest.approx(5.7)


def test_models_are_as_large_as_their_papers_say() -> None:
    published = (125e6, 350e6, 760e6, 1.3e9, 2.7e9, 6.7e9, 13e9, 30e9, 65.2e9, 175e9)
    for shape, parameters_of in zip(jobs.SHAPES, published, strict=True):
        assert shape.parameters == pytest.approx(parameters_of, rel=0.03)


def test_a_step_of_a_language_model_by_hand() -> None:
    """GPT-3 1.3B, a million tokens, 64 of 64 busy: 9.1·10¹⁵ FLOPs, so 0.87 s at 0.52 of 64 × 312 TFLOP/s."""
    shape = jobs.SHAPES[3]
    made = jobs.language_model(shape, 1e6, 64.0)
    flops = 72 * 1e6 * 24 * 2048**2 * (1 + 2048 / (6 * 2048) + 50257 / (12 * 24 * 2048))
    assert flops == pytest.approx(9.07e15, rel=0.01)
    assert made.step == pytest.approx(0.87, abs=0.005)
    assert made.gradient == 2 * shape.parameters
    assert made.checkpoint == 14 * shape.parameters
    assert made.boundary == 4 * 1e6 * 2048


@pytest.mark.parametrize("devices", [1, 2, 4, 8, 16, 32, 64, 512, 4096])
def test_what_is_trained_fits_into_half_of_the_devices(devices: int) -> None:
    for shape in jobs.fitting(devices):
        state = jobs.WORKING + jobs.STATE * shape.parameters / max(1, devices // 2)
        assert state < 0.95 * 80e9


def test_quantiles_that_ship_ascend() -> None:
    fits, serving = parameters()
    curves = [serving.durations, serving.shares, used().conventional, used().language]
    for fit in fits.values():
        assert fit.source
        curves.append(fit.gaps)
        for group in (*fit.groups, *(group for cluster in fit.clusters for group in cluster.groups)):
            curves += [group.durations, group.lengths]
    for curve in curves:
        assert len(curve) == len(LEVELS)
        assert list(curve) == sorted(curve)


def test_domains_that_have_the_size_of_their_demand_have_the_measured_skew() -> None:
    """Eight domains have eight of ITP's nine clusters, each once."""
    sizes = demand([f"d{number}" for number in range(8)], "a")
    assert len(set(sizes.values())) == 8
    assert set(sizes.values()) <= {cluster.p95 for cluster in parameters()[0]["itp"].clusters}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_drawn_for_its_topology(family: str) -> None:
    names = [site.name for site in build("reference", 8, "whole").sites]
    topology = build(family, 8, "whole", demand(names, "whole"))
    drawn = draw(family, topology.sites, 0.5, DAY, "whole", devices=topology.devices)
    memory = {site.name: max(topology.devices[pool.device].memory for pool in site.pools) for site in topology.sites}
    assert len(drawn.jobs) > 300
    assert all(job.memory < memory[job.home] for job in drawn.jobs)


def test_a_job_takes_as_long_as_it_did_on_what_it_asked_for() -> None:
    """The law's speed on the requested reference devices is what work was counted with."""
    topology = build("identical", 8, "whole")
    drawn = draw("balanced", topology.sites, 0.5, DAY, "whole", devices=topology.devices)
    for job in drawn.jobs[:500]:
        rate = speed(job.requested, 1.0, requested=job.requested, maximum=job.maximum, serial=job.serial, used=job.used)
        assert job.work / rate == pytest.approx(round(job.work / rate), abs=1e-6)
