"""Names and orders tell nothing: neither who belongs together, nor of which kind a node is, nor which device fails."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from conformance.testbed.looking import arrivals, families

from kuayu_conformance.testbed.telemetry import Scale, World
from kuayu_conformance.testbed.telemetry.population import FAMILY, SERVING, SOLO, Population, populate

SCALE = Scale(domains=5, nodes=300, warm_up=20, seconds=60)
PEOPLE = tuple(populate(SCALE, f"names {seed}") for seed in range(40))
KINDS = (FAMILY, SOLO, SERVING)


def places(people: Population) -> np.ndarray:
    """Where each row stands among the labels of its domain, 0 … 1."""
    sizes = np.bincount(people.domain)
    return (people.number - (np.cumsum(sizes) - sizes)[people.domain]) / (sizes[people.domain] - 1)


def test_labels_are_those_of_the_domain_and_follow_from_the_seed() -> None:
    for number, people in enumerate(PEOPLE[:5]):
        assert sorted(people.labels) == [f"node-{row:05d}" for row in range(people.nodes)]
        by_label = people.domain[np.argsort(people.number)]
        assert by_label.tolist() == sorted(people.domain.tolist())
        assert populate(SCALE, f"names {number}").labels == people.labels
    assert len({people.labels for people in PEOPLE}) == len(PEOPLE)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_do_not_tell_the_kind(kind: str) -> None:
    """The mean of n places of a uniform order is a half, within four standard errors of 0.29 / √n."""
    its = [places(p)[np.array([p.groups[g].kind == kind for g in p.group])] for p in PEOPLE]
    found = np.concatenate(its)
    assert abs(found.mean() - 0.5) < 4 * 0.29 / len(found) ** 0.5


def test_numbers_do_not_tell_who_comes_late() -> None:
    found = np.concatenate([places(people)[people.joins > 0] for people in PEOPLE])
    assert abs(found.mean() - 0.5) < 4 * 0.29 / len(found) ** 0.5


def test_numbers_do_not_tell_the_order_of_rows() -> None:
    """Over all seeds together nothing of the order in which groups were made is left in that of the labels."""
    found = []
    for people in PEOPLE:
        for domain in range(SCALE.domains):
            rows = np.flatnonzero(people.domain == domain)
            found.append(np.corrcoef(people.number[rows], rows)[0, 1])
    size = SCALE.nodes / SCALE.domains
    assert abs(np.mean(found)) < 4 / (size * len(found)) ** 0.5


def test_neighbours_by_number_are_no_likelier_of_one_family() -> None:
    neighbours = expected = 0.0
    for people in PEOPLE:
        for domain in range(SCALE.domains):
            rows = np.flatnonzero(people.domain == domain)
            group = people.group[rows[np.argsort(people.number[rows])]].tolist()
            neighbours += sum(one == other for one, other in pairwise(group))
            expected += sum(size * (size - 1) for size in Counter(group).values()) / len(group)
    assert neighbours == pytest.approx(expected, abs=4 * expected**0.5)


@pytest.fixture(scope="module")
def world() -> World:
    """A world in which devices of two domains are reported."""
    return World(Scale(domains=10, nodes=1500, warm_up=20, seconds=60), "devices", str)


def test_bodies_and_members_are_listed_by_label(world: World) -> None:
    nodes = [str(body["id"]) for body in world.nodes]
    assert nodes == sorted(nodes)
    for its in families(world).values():
        assert its == sorted(its)


def test_what_is_observed_at_once_is_delivered_by_label(world: World) -> None:
    told = [sample for second in (30, 40) for delivery in world.deliveries(second) for sample in [delivery.samples]]
    keys = [[(at, row["subject"], row.get("device", "")) for at, row in samples] for samples in told]
    assert all(its == sorted(its) for its in keys)


def test_any_device_is_lost_and_any_shows_faults(world: World) -> None:
    """Of two devices each in about half of the cases; the one that shows faults is not lost then."""
    lost = {incident.node for incident in world.incidents if incident.cause == "device lost"}
    away: Counter[str] = Counter()
    faulty: Counter[str] = Counter()
    seen: dict[tuple[str, str], set[float]] = {}
    failed: set[tuple[str, str]] = set()
    for arrival in arrivals(world):
        if arrival.domain in world.by_device:
            device = str(arrival.sample["device"])
            seen.setdefault((arrival.node, device), set()).add(arrival.observed)
            if arrival.sample["faults"]:
                failed.add((arrival.node, device))
    for node in lost & {node for node, _ in seen}:
        sent = {device: len(seen.get((node, device), ())) for device in "01"}
        away[min(sent, key=sent.__getitem__)] += 1
    faulty.update(device for _, device in failed)
    for found in (away, faulty):
        assert set(found) == {"0", "1"}
        assert min(found.values()) > 0.25 * sum(found.values())
