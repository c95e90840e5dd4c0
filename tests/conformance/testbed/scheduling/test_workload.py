"""Workloads: what is submitted has the load, the skew and the shapes asked for, and is the same every time."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.law import speed
from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.values import DeviceType, Job, JobKind, Pool, Site, Split
from kuayu_conformance.testbed.scheduling.workload import (
    FAMILIES,
    REFERENCE,
    SHAPES,
    STATE,
    WORKING,
    Family,
    NotEnoughJobs,
    UnknownFamily,
    UnknownSource,
    Workload,
    demand,
    draw,
    fitting,
    language_model,
)
from kuayu_conformance.testbed.scheduling.workload.traces import (
    LEVELS,
    device_use,
    mean_and_p95,
    over_time,
    parameters,
    within,
)

DAY = 86_400.0


NAMES = ("jiashan", "guiyang", "shaoguan", "zhongwei", "qingyang", "hohhot", "chengdu", "zhangjiakou")


EAST = {"jiashan": 120.9, "shaoguan": 113.6, "zhangjiakou": 114.9}


WINDOW = 2 * DAY


def sites(seed: str = "stories", source: str = "fitted", device: str = "A800") -> tuple[Site, ...]:
    """Eight domains, each as large as the 95th percentile of its own demand."""
    sizes = demand(NAMES, seed, source)
    return tuple(
        Site(name, 30.0, EAST.get(name, 105.0), (Pool(device, max(2, round(sizes[name] / 8)), 8, {}),))
        for name in NAMES
    )


def room(site: Site) -> int:
    return sum(pool.devices for pool in site.pools)


def length(job: Job) -> float:
    """Seconds that a job takes on what it asked for, of the reference device."""
    return job.work / (job.requested * job.used)


def held(workload: Workload, seconds: float, home: str = "") -> float:
    """Mean devices that jobs hold if each starts at once."""
    jobs = [job for job in workload.jobs if home in {"", job.home}]
    return math.fsum(job.requested * min(length(job), seconds - job.submitted) for job in jobs) / seconds


def only_trained(family: Family) -> Family:
    """A family in which every job is as the fit has it."""
    return dataclasses.replace(family, serving=0.0, oversize=0.0)


@pytest.fixture(scope="module")
def reference() -> Workload:
    return draw("reference", sites(), 0.6, WINDOW, "stories")


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_a_window_has_the_load_that_it_is_said_to_have(load: float) -> None:
    drawn = draw("reference", sites(), load, WINDOW, "stories")
    assert held(drawn, WINDOW) / sum(map(room, sites())) == pytest.approx(load, rel=0.02)


def test_jobs_come_in_order_and_each_reads_a_data_set_that_is_there(reference: Workload) -> None:
    assert len(reference.jobs) > 1_000
    times = [job.submitted for job in reference.jobs]
    assert times == sorted(times)
    assert times[0] == 0.0
    assert times[-1] < WINDOW
    assert len({job.name for job in reference.jobs}) == len(reference.jobs)
    assert {job.data for job in reference.jobs} <= set(reference.datasets)


def test_jobs_of_earlier_stand_at_the_begin_with_what_is_left_of_them(reference: Workload) -> None:
    standing = [job for job in reference.jobs if job.submitted == 0.0]
    first = math.fsum(job.requested for job in standing)
    assert 0.2 < first / (0.6 * sum(map(room, sites()))) < 2.0


@pytest.mark.parametrize("family", FAMILIES)
def test_every_job_of_every_family_makes_sense(family: str) -> None:
    for job in draw(family, sites(), 0.5, DAY, "sense").jobs:
        assert 1 <= job.minimum <= job.requested <= job.maximum
        assert 0 < job.used <= 1
        assert job.work > 0
        assert job.stated > 0
        assert job.stated % 60 == 0
        assert job.deadline > job.submitted
        assert 0 <= job.serial < 1
        assert 0 < job.memory < 70e9
        assert job.model.step > 0
        assert Split.NONE in job.splits
        assert job.profile == job.kind.value
        assert job.model.checkpoint >= 2 * job.model.parameters


def test_the_same_seed_gives_the_same_workload_and_another_one_another(reference: Workload) -> None:
    assert draw("reference", sites(), 0.6, WINDOW, "stories") == reference
    assert draw("reference", sites(), 0.6, WINDOW, "others").jobs != reference.jobs


def test_a_family_that_does_nothing_to_the_workload_has_that_of_the_reference() -> None:
    assert draw("wan-poor", sites(), 0.5, DAY, "a") == draw("reference", sites(), 0.5, DAY, "a")


def test_all_kinds_of_jobs_are_there(reference: Workload) -> None:
    assert {job.kind for job in reference.jobs} == set(JobKind)
    servers = [job for job in reference.jobs if job.kind is JobKind.SERVING]
    assert all(job.splits == (Split.NONE,) and job.model.gradient == 0 for job in servers)
    assert held(Workload(tuple(servers), {}), WINDOW) / held(reference, WINDOW) == pytest.approx(0.1, rel=0.2)


def test_some_jobs_are_larger_than_their_home_and_can_do_with_less(reference: Workload) -> None:
    rooms = {site.name: room(site) for site in sites()}
    large = [job for job in reference.jobs if job.requested > rooms[job.home]]
    assert large
    assert all(job.minimum < job.requested and len(job.splits) > 1 for job in large)


def test_with_measured_skew_domains_differ_in_load_more_than_by_chance() -> None:
    def spread(skew: float) -> float:
        family = only_trained(dataclasses.replace(REFERENCE, skew=skew))
        found = 0.0
        for seed in ("a", "b", "c", "d"):
            drawn = draw(family, sites(seed), 0.5, 4 * DAY, seed)
            found += sum(abs(held(drawn, 4 * DAY, site.name) / room(site) / 0.5 - 1) for site in sites(seed))
        return found / 4 / len(NAMES)

    assert spread(1.0) > 1.3 * spread(0.0)


@pytest.mark.parametrize("skew", [1.25, 2.0])
def test_a_skew_that_leaves_a_domain_nothing_to_submit_leaves_the_load_to_the_others(skew: float) -> None:
    """At 1.25 the least active of the fitted clusters would be active in just no part of the time."""
    drawn = draw(only_trained(dataclasses.replace(REFERENCE, skew=skew)), sites(), 0.5, 4 * DAY, "stories")
    assert {job.home for job in drawn.jobs} < {site.name for site in sites()}
    assert drawn.jobs


def test_in_the_family_of_east_and_west_the_east_is_busy() -> None:
    drawn = draw("east-west", sites(), 0.4, 4 * DAY, "stories")
    loads = {site.name: held(drawn, 4 * DAY, site.name) / room(site) for site in sites()}
    east = sum(loads[name] for name in EAST) / len(EAST)
    west = sum(load for name, load in loads.items() if name not in EAST) / (len(NAMES) - len(EAST))
    assert east > 2 * west


def test_without_over_request_every_device_asked_for_is_busy() -> None:
    family = dataclasses.replace(REFERENCE, over_request=0.0)
    assert all(job.used == 1.0 for job in draw(family, sites(), 0.5, DAY, "a").jobs)
    measured = [job.used for job in draw("reference", sites(), 0.5, DAY, "a").jobs if job.kind is JobKind.TRAINING]
    assert 0.4 < sum(measured) / len(measured) < 0.8


def test_durations_are_stated_about_right_or_tenfold_wrong() -> None:
    def factors(family: str) -> list[float]:
        return sorted(
            job.stated / length(job) for job in draw(family, sites(), 0.5, DAY, "a").jobs if length(job) > 3600
        )

    usual, wrong = factors("reference"), factors("misjudged")
    assert 0.9 < usual[len(usual) // 2] < 1.1
    assert sum(0.2 < factor < 5 for factor in usual) > 0.99 * len(usual)
    assert sum(0.2 < factor < 5 for factor in wrong) < 0.2 * len(wrong)


def test_data_lies_at_home_as_often_as_the_family_says_and_is_read_again() -> None:
    for locality in (0.3, 0.7, 1.0):
        drawn = draw(dataclasses.replace(REFERENCE, locality=locality), sites(), 0.6, WINDOW, "a")
        first = {job.data: job for job in reversed(drawn.jobs)}
        near = sum(drawn.datasets[name].sites == (job.home,) for name, job in first.items())
        assert near / len(first) == pytest.approx(locality, abs=0.05)
        assert 1 - len(first) / len(drawn.jobs) == pytest.approx(0.6, abs=0.05)


def test_pinned_data_lies_where_its_jobs_fit() -> None:
    drawn = draw("gravity", sites(), 0.6, WINDOW, "a")
    rooms = {site.name: room(site) for site in sites()}
    pinned = [job for job in drawn.jobs if drawn.datasets[job.data].pinned]
    assert len(pinned) > 0.4 * len(drawn.jobs)
    assert all(job.requested <= rooms[drawn.datasets[job.data].sites[0]] for job in pinned)


def test_the_giant_needs_more_than_any_domain_has() -> None:
    drawn = draw("giant", sites(), 0.5, DAY, "a")
    total = sum(map(room, sites()))
    [giant] = [job for job in drawn.jobs if job.requested > total / 2]
    assert max(map(room, sites())) < giant.minimum == int(0.75 * total)
    assert giant.requested == int(0.9 * total)
    assert Split.PIPELINE in giant.splits


def test_bursts_make_submissions_come_closer_together() -> None:
    def dispersion(family: str) -> float:
        found = []
        for seed in ("a", "b", "c"):
            chosen = only_trained(FAMILIES[family])
            counts = [0] * 96
            for job in draw(chosen, sites(), 0.5, 4 * DAY, seed).jobs:
                counts[int(job.submitted // 3600)] += job.submitted > 0
            mean = sum(counts) / len(counts)
            found.append(sum((count - mean) ** 2 for count in counts) / len(counts) / mean)
        return sum(found) / len(found)

    assert dispersion("bursty") > 1.5 * dispersion("reference")


def test_a_device_counts_in_the_load_as_what_it_is_worth_and_no_job_needs_more_memory_than_its_home_has() -> None:
    half = DeviceType("half", 24e9, 1e14, {kind.value: 0.5 for kind in JobKind}, 200.0)
    its = sites(device="half")
    drawn = draw("gravity", its, 0.6, WINDOW, "a", devices={"half": half})
    assert held(drawn, WINDOW) / sum(map(room, its)) == pytest.approx(0.3, rel=0.02)
    assert max(job.memory for job in drawn.jobs) <= 0.95 * 24e9


@settings(max_examples=15, deadline=None)
@given(
    count=st.integers(2, 12),
    nodes=st.lists(st.integers(1, 200), min_size=12, max_size=12),
    load=st.floats(0.05, 1.5),
    seed=st.text("abc", min_size=1, max_size=4),
    source=st.sampled_from(("fitted", "fitted-philly")),
)
def test_any_domains_get_their_load(count: int, nodes: list[int], load: float, seed: str, source: str) -> None:
    some = tuple(Site(f"d{i}", 30.0, 100.0 + i, (Pool("A800", nodes[i], 8, {}),)) for i in range(count))
    drawn = draw("reference", some, load, DAY / 2, seed, source)
    largest = max([32, *(job.requested for job in drawn.jobs)])  # or half of one of 64, left out as it was too large
    short = abs(held(drawn, DAY / 2) - load * sum(map(room, some)))
    assert short <= 1.01 * max(largest, 0.02 * load * sum(map(room, some)))
    assert {job.home for job in drawn.jobs} <= {site.name for site in some}


def test_what_is_asked_for_has_to_exist() -> None:
    with pytest.raises(UnknownFamily, match=r"no family calm; there are reference, balanced"):
        draw("calm", sites(), 0.5, DAY, "a")
    with pytest.raises(UnknownSource, match=r"no jobs come from helios; they come from fitted"):
        draw("reference", sites(), 0.5, DAY, "a", "helios")
    with pytest.raises(ValueError, match="two domains or more"):
        draw("reference", sites()[:1], 0.5, DAY, "a")


def test_a_trace_without_its_folder_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUAYU_DATA", raising=False)
    with pytest.raises(LookupError, match="KUAYU_DATA"):
        draw("reference", sites(source="itp"), 0.5, DAY, "a", "itp")
    assert issubclass(NotEnoughJobs, Exception)


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
    for shape, parameters_of in zip(SHAPES, published, strict=True):
        assert shape.parameters == pytest.approx(parameters_of, rel=0.03)


def test_a_step_of_a_language_model_by_hand() -> None:
    """GPT-3 1.3B, a million tokens, 64 of 64 busy: 9.1·10¹⁵ FLOPs, so 0.87 s at 0.52 of 64 × 312 TFLOP/s."""
    shape = SHAPES[3]
    made = language_model(shape, 1e6, 64.0)
    flops = 72 * 1e6 * 24 * 2048**2 * (1 + 2048 / (6 * 2048) + 50257 / (12 * 24 * 2048))
    assert flops == pytest.approx(9.07e15, rel=0.01)
    assert made.step == pytest.approx(0.87, abs=0.005)
    assert made.gradient == 2 * shape.parameters
    assert made.checkpoint == 14 * shape.parameters
    assert made.boundary == 4 * 1e6 * 2048


@pytest.mark.parametrize("devices", [1, 2, 4, 8, 16, 32, 64, 512, 4096])
def test_what_is_trained_fits_into_half_of_the_devices(devices: int) -> None:
    for shape in fitting(devices):
        state = WORKING + STATE * shape.parameters / max(1, devices // 2)
        assert state < 0.95 * 80e9


def test_quantiles_that_ship_ascend() -> None:
    fits, serving = parameters()
    curves = [serving.durations, serving.shares, device_use().conventional, device_use().language]
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
