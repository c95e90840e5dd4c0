"""Domains have whole nodes of real accelerators, as many as was asked for."""

import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.topology import (
    ASSIGNMENTS,
    ASSUMPTIONS,
    FAMILIES,
    HUB_PETAFLOPS,
    PLACES,
    PROFILES,
    REFERENCE,
    SHEETS,
    Topology,
    build,
    capacity,
    drawn,
    settled,
    speed_on_paper,
    time_shares,
    varied,
)

SHOW = """
import numpy as np
from kuayu_conformance.testbed.scheduling.topology import build
topology = build("collapse", 64, "elsewhere")
print(topology.sites, topology.links, topology.devices)
links = np.arange(len(topology.links))
for at in range(0, 3_000_000, 100_000):
    print(topology.variation.factor(links, at).tolist(), topology.variation.until(links, at).tolist())
"""


def shown(**environment: str) -> str:
    run = [sys.executable, "-c", SHOW]
    return subprocess.run(run, env=os.environ | environment, capture_output=True, text=True, check=True).stdout


def found() -> list[str]:
    told = np.show_config(mode="dicts")
    return list(told["SIMD Extensions"].get("found", ())) if told else []


def reference_devices(topology: Topology) -> list[float]:
    """Size of each domain by the mean of the law, without what is hidden."""
    return [
        sum(
            pool.devices * sum(speed_on_paper(pool.device, one) for one in PROFILES) / len(PROFILES)
            for pool in site.pools
        )
        for site in topology.sites
    ]


def test_the_same_seed_gives_the_same_bytes_on_a_plainer_processor() -> None:
    assert shown(PYTHONHASHSEED="1", NPY_DISABLE_CPU_FEATURES=" ".join(found())) == shown(PYTHONHASHSEED="2")


def test_another_seed_deals_the_accelerators_otherwise() -> None:
    dealt = {tuple(site.pools[0].device for site in build("reference", 8, str(seed)).sites) for seed in range(60)}
    assert len(dealt) == ASSIGNMENTS


def test_over_all_assignments_every_domain_has_had_every_kind() -> None:
    topologies = [build("reference", 8, "here", assignment=way) for way in range(ASSIGNMENTS)]
    for number in range(8):
        assert {one.sites[number].pools[0].device for one in topologies} == set(FAMILIES["reference"].mix)


def test_the_reference_device_is_one_in_everything() -> None:
    device = build("heterogeneous", 5, "here").devices[REFERENCE]
    assert set(device.index) == set(PROFILES)
    assert all(index == 1 for index in device.index.values())


def test_indices_by_hand() -> None:
    """Pre-training: 0.8 of the time in products of matrices, 0.2 waiting for memory; A800 286 TFLOP/s and 2039 GB/s."""
    assert time_shares("pretraining").compute == 0.8
    assert speed_on_paper("H800", "pretraining") == pytest.approx(1 / (0.8 * 286 / 794.5 + 0.2 * 2039 / 3350))
    assert speed_on_paper("H20", "serving") == pytest.approx(1 / (0.3 * 286 / (0.85 * 148) + 0.7 * 2039 / 4022))


def test_unlike_devices_are_good_at_unlike_things() -> None:
    assert speed_on_paper("Ascend 910B", "pretraining") > speed_on_paper("H20", "pretraining")
    assert speed_on_paper("Ascend 910B", "serving") < speed_on_paper("H20", "serving")
    speeds = [speed_on_paper(name, profile) for name in SHEETS for profile in PROFILES]
    assert min(speeds) == pytest.approx(0.29, abs=0.01)
    assert max(speeds) == pytest.approx(2.44, abs=0.01)


def test_shares_of_time_sum_to_one() -> None:
    for profile in PROFILES:
        shares = time_shares(profile)
        assert shares.compute + shares.memory + shares.rest == pytest.approx(1)


def test_what_is_hidden_is_as_wide_as_assumed() -> None:
    hidden = [
        math.log(build("reference", 5, str(seed)).devices[name].index["training"] / speed_on_paper(name, "training"))
        for seed in range(60)
        for name in set(build("reference", 5, str(seed)).devices) - {REFERENCE}
    ]
    assert np.std(hidden) == pytest.approx(ASSUMPTIONS["noise"].value, rel=0.15)
    assert build("reference", 5, "here", assumed={"noise": 0.0}).devices["H20"].index["training"] == speed_on_paper(
        "H20", "training"
    )


def test_domains_of_one_size_differ_by_less_than_a_node_and_their_rounding() -> None:
    for size in reference_devices(build("reference", 8, "here", nodes=64)):
        assert size == pytest.approx(512, rel=0.02)


def test_published_sizes_show_in_the_skewed_family() -> None:
    topology = build("east-west", 8, "here", nodes=640)
    sizes = reference_devices(topology)
    assert sum(sizes) == pytest.approx(8 * 5120, rel=0.01)
    published = [HUB_PETAFLOPS[place.hub] for place in PLACES[:8]]
    assert np.array(sizes) / sum(sizes) == pytest.approx(np.array(published) / sum(published), rel=0.03)


def test_cities_near_a_hub_are_a_quarter_of_it() -> None:
    sizes = reference_devices(build("east-west", 16, "here", nodes=640))
    assert sizes[8] / sizes[0] == pytest.approx(0.25, rel=0.02)


@given(st.lists(st.floats(30, 5000), min_size=8, max_size=8), st.integers(0, 7))
def test_domains_are_as_large_as_their_demand(wanted: list[float], way: int) -> None:
    demand = {place.name: size for place, size in zip(PLACES, wanted, strict=False)}
    topology = build("reference", 8, "here", demand, assignment=way)
    node = max(speed_on_paper(name, one) for name in SHEETS for one in PROFILES) * 8
    for size, asked in zip(reference_devices(topology), wanted, strict=True):
        assert size == pytest.approx(asked, abs=node)


@pytest.mark.parametrize("demand", [{"beijing": 1.0}, {place.name: 0.0 for place in PLACES[:5]}])
def test_demand_of_others_or_of_nothing_is_refused(demand: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="demand"):
        build("reference", 5, "here", demand)


def test_what_does_not_exist_is_refused_with_what_does() -> None:
    with pytest.raises(ValueError, match="no family is named calm; there are reference, balanced"):
        build("calm", 8, "here")
    with pytest.raises(ValueError, match="5 to 64 domains, not of 4"):
        build("reference", 4, "here")
    with pytest.raises(ValueError, match="8 ways"):
        build("reference", 8, "here", assignment=8)
    with pytest.raises(ValueError, match="no assumption is named luck"):
        build("reference", 8, "here", assumed={"luck": 1.0})


@pytest.mark.parametrize("name", FAMILIES)
def test_a_pool_is_named_by_its_domain_and_its_device(name: str) -> None:
    topology = build(name, 64, "here")
    pools = [(site.name, pool.device) for site in topology.sites for pool in site.pools]
    assert len(pools) == len(set(pools)) == 64 * FAMILIES[name].pools
    assert {device for _, device in pools} <= set(topology.devices)


def test_reserving_is_cheaper_and_the_spot_cheapest() -> None:
    for site in build("heterogeneous", 8, "here").sites:
        for pool in site.pools:
            assert 0 < pool.prices["spot"] < pool.prices["reserved"] < pool.prices["on-demand"]


def test_an_a800_costs_ten_yuan_in_the_east_and_nine_in_the_west() -> None:
    prices = {site.name: site.pools[0].prices["on-demand"] for site in build("identical", 8, "here").sites}
    assert prices["shaoguan"] == 10.0
    assert prices["zhongwei"] == 9.0


def test_capacity_counts_the_true_speed() -> None:
    topology = build("identical", 5, "here")
    assert capacity(topology.sites[0], topology.devices, "serving") == topology.sites[0].pools[0].devices == 512


def test_assumptions_can_be_drawn_and_varied() -> None:
    values = drawn("a seed")
    assert values == drawn("a seed") != drawn("another")
    assert all(one.low <= values[name] <= one.high for name, one in ASSUMPTIONS.items())
    build("reference", 8, "here", assumed=values)
    assert [one["spot"] for one in varied("spot")] == [0.1, 0.4, 0.7]
    assert settled(None) == {name: one.value for name, one in ASSUMPTIONS.items()}
    with pytest.raises(ValueError, match="no assumption"):
        varied("luck")


@pytest.mark.parametrize("name", ASSUMPTIONS)
def test_every_assumption_changes_something(name: str) -> None:
    low, _, high = varied(name)

    def seen(family: str, values: dict[str, float]) -> list[object]:
        topology = build(family, 16, "here", assumed=values)
        links = np.arange(len(topology.links))
        variation = [topology.variation.factor(links, at).tolist() for at in range(0, 2_000_000, 40_000)]
        return [topology.sites, topology.links, topology.devices, variation, topology.variation.price(0.0)]

    assert any(seen(family, low) != seen(family, high) for family in ("east-west", "collapse"))


def test_a_topology_travels_between_processes() -> None:
    topology = build("reference", 5, "here")
    there = pickle.loads(pickle.dumps(topology))  # noqa: S301 - our own bytes
    assert (there.sites, there.links, there.devices) == (topology.sites, topology.links, topology.devices)
    assert there.variation.factor(np.arange(20), 1e6).tolist() == topology.variation.factor(np.arange(20), 1e6).tolist()
