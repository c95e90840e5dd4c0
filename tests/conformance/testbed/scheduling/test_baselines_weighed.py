"""B3c on small cases that are worked out by hand: what it pays for, what it waits for, and how it is tuned."""

import json
from dataclasses import asdict
from importlib.resources import files
from math import inf

import numpy as np
import pytest
from conformance.testbed.scheduling.small_world import FAST, PLAIN, Map, Steady, job, load, mesh, of, site, world
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, WeighedCompletion, Weights
from kuayu_conformance.testbed.scheduling.baselines import __main__ as tuning
from kuayu_conformance.testbed.scheduling.baselines.greedy import advantages, tuned
from kuayu_conformance.testbed.scheduling.engine.state import Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job

A, B, QUICK = site("a", 8), site("b", 8), site("q", 8, FAST)
NOTHING = Weights(0.0, 0.0)


def under(policy: Policy, topology: Map, *jobs: Job, **datasets: Dataset) -> Outcome:
    its = world(topology, load(*jobs, **datasets))
    play(its, policy, 50_000.0)
    return its.outcome()


def where(outcome: Outcome, name: str) -> list[str]:
    return [share.site for share in of(outcome, name).periods[0].placement.shares]


@pytest.mark.parametrize(("weight", "expected"), [(0.9, "q"), (1.1, "a")])
def test_money_is_weighed_against_seconds(weight: float, expected: str) -> None:
    """Half of 600 s is saved where devices are fast, less 100 s for 100 GB; those cost 800 Gbit at 1 a Tbit·200."""
    topology = mesh(A, QUICK, tariff=200.0 / 800e9)
    data = Dataset("d", 100e9, ("a",))
    its = under(WeighedCompletion(Weights(weight, 0.0)), topology, job("x", "a", 8, 600.0, data="d"), d=data)
    assert where(its, "x") == [expected]


def test_money_is_that_of_the_hour() -> None:
    """Twice the tariff, and it does not pay any more."""
    data = Dataset("d", 100e9, ("a",))
    for dear_after, expected in ((inf, "q"), (0.0, "a")):
        topology = mesh(A, QUICK, tariff=200.0 / 800e9, variation=Steady(dear_after=dear_after))
        its = under(WeighedCompletion(Weights(0.9, 0.0)), topology, job("x", "a", 8, 600.0, data="d"), d=data)
        assert where(its, "x") == [expected]


def test_what_domains_exchange_is_paid_for_too() -> None:
    """Twelve devices over two domains take 111 s and hold two gigabits; six of one take 200 s and hold none."""
    large = job("x", "a", 12, 100.0, minimum=6, data="d")
    everywhere = Dataset("d", 0.0, ("a", "b"))
    for tariff, expected in ((80.0 / 222.3e9, ["a", "b"]), (90.0 / 222.0e9, ["a"])):
        its = under(WeighedCompletion(Weights(1.0, 0.0)), mesh(A, B, tariff=tariff), large, d=everywhere)
        assert sorted(where(its, "x")) == expected


def test_one_behind_the_first_waits_as_well_if_that_is_worth_it() -> None:
    """Each needs a whole domain; to send its data is dearer, or cheaper, than a wait of ten minutes."""
    data = {name: Dataset(name, 10e9, ("a",)) for name in "xyz"}
    jobs = [job(name, "a", 8, 600.0, data=name) for name in "xyz"]
    topology = mesh(A, B, tariff=1.0 / 80e9)
    dear, cheap = (under(WeighedCompletion(Weights(money, 0.0)), topology, *jobs, **data) for money in (5000.0, 1.0))
    assert [where(dear, name) for name in "xyz"] == [["a"], ["a"], ["a"]]
    assert [where(cheap, name) for name in "xyz"] == [["a"], ["b"], ["a"]]
    assert dear.money.sum() == 0.0
    assert all(record.finished < inf for record in dear.jobs)


def test_comparative_advantage() -> None:
    """``u`` is four times as fast on the fast device and ``v`` twice: compared, ``v`` belongs on the plain one."""
    devices = {
        PLAIN: DeviceType(PLAIN, 80e9, 1e15, {"u": 1.0, "v": 1.0}, 500.0),
        FAST: DeviceType(FAST, 80e9, 1e15, {"u": 4.0, "v": 2.0}, 500.0),
    }
    found = advantages([devices[FAST], devices[PLAIN]])
    assert found["u"] == pytest.approx([4.0 / 3.0, 0.25 / 0.375])
    assert found["v"] == pytest.approx([2.0 / 3.0, 0.5 / 0.375])
    alike = DeviceType(PLAIN, 80e9, 1e15, {"any": 1.0}, 500.0)
    assert advantages([alike])["any"].tolist() == [1.0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 40), st.sampled_from("abq")), max_size=10))
def test_without_weights_it_is_b3_and_with_them_everybody_is_served_too(
    drawn: list[tuple[int, int, str]],
) -> None:
    jobs = [
        job(f"j{place:02}", home, size, 30.0 * long, minimum=1, data="d")
        for place, (size, long, home) in enumerate(drawn)
    ]
    data = Dataset("d", 5e9, ("b",))
    plain, weighed = (
        under(policy, mesh(A, B, QUICK), *jobs, d=data) for policy in (EarliestCompletion(), WeighedCompletion(NOTHING))
    )
    assert [record.periods for record in weighed.jobs] == [record.periods for record in plain.jobs]
    dear = under(WeighedCompletion(Weights(1e-9, 0.3)), mesh(A, B, QUICK), *jobs, d=data)
    for outcome in (weighed, dear):
        assert all(record.finished < inf for record in outcome.jobs)
        assert outcome.refusals == 0


def test_the_weights_that_ship_are_those_of_their_table() -> None:
    found = json.loads((files(tuning.__package__) / "tuned.json").read_text("utf-8"))
    best = tuning.chosen(found["B3c over B3"])
    assert tuned().weights == Weights(best["money weight"], best["index weight"])
    assert tuned().favour == min(found["B4 over B3"], key=lambda row: row["period"])["favour"]
    assert found["cells"] == [asdict(cell) for cell in tuning.CELLS]
    assert all(cell["seed"].startswith("tuning") for cell in found["cells"])
    assert len(found["B3c over B3"]) == len(tuning.MONEY) * len(tuning.INDEX)


def test_the_cheapest_is_chosen_of_those_that_are_hardly_slower() -> None:
    rows = [{"period": 1.1, "money": 0.1}, {"period": 0.9, "money": 0.5}, {"period": 1.02, "money": 0.4}]
    assert tuning.chosen(rows) == rows[2]
    assert tuning.chosen([rows[0], {"period": 1.2, "money": 0.0}]) == rows[0]


def test_tuning_is_the_same_again() -> None:
    cells = (tuning.Cell("reference", "tuning test", sites=5, nodes=4, hours=1.0),)
    first, again = (tuning.written_text(tuning.tune(cells, (0.0, 30.0), (0.0,), (1.0,))) for _ in range(2))
    assert first == again
    assert np.isfinite([row["period"] for row in json.loads(first)["B3c over B3"]]).all()
