"""The law as the engine asks it, in a topology; and staging, checkpoints, restarts and migration, by hand."""

from dataclasses import dataclass, replace
from math import inf

import pytest
from conformance.testbed.scheduling.law.law_examples import DEVICES, GIGABIT, JOB, LAW, ROUND_TRIPS, placed

from kuayu_conformance.testbed.scheduling.engine.interfaces import Law, LinkVariation
from kuayu_conformance.testbed.scheduling.law import (
    PUBLISHED,
    PublishedLaw,
    interval,
    migration,
    restart,
    saving,
    transfer,
)
from kuayu_conformance.testbed.scheduling.values import DeviceType, Link, Site, Split

ROUND = replace(PUBLISHED, storage=1e8, starting=30.0, between_faults=1.6e8)


def test_constants_are_those_of_the_large_run() -> None:
    """2 TB/s for 16 384 devices are 122 MB/s each; 419 faults in 54 days are one in 2 112 days of a device."""
    assert pytest.approx(122e6, rel=0.01) == PUBLISHED.storage
    assert PUBLISHED.between_faults / 86_400 == pytest.approx(2112, rel=0.001)


def test_a_large_state_over_a_narrow_link_takes_more_than_an_hour() -> None:
    """175 billion parameters of 16 bytes over 5 Gbit/s: 75 minutes."""
    assert transfer(175e9 * 16, 5 * GIGABIT) / 60 == pytest.approx(75, abs=0.5)


def test_what_is_there_is_not_sent_and_a_cut_link_sends_nothing() -> None:
    assert transfer(0.0, 0.0) == 0.0
    assert transfer(1.0, 0.0) == inf
    assert transfer(1e9, GIGABIT, 0.02) == pytest.approx(8.02)


def test_replicas_read_all_data_and_only_the_first_stage_reads() -> None:
    assert placed(8, 8, split=Split.PERIODIC, period=10).readers == ("a", "b")
    assert placed(8, 8, split=Split.PIPELINE).readers == ("a",)


def test_replicas_are_alike_and_stages_are_not() -> None:
    """14 GB at 100 MB/s a device: the larger replica has 10 devices, the smaller one 4, all stages have 14."""
    replicas, stages = placed(10, 4, split=Split.PERIODIC, period=10), placed(10, 4, split=Split.PIPELINE)
    assert saving(14e9, replicas, ROUND) == pytest.approx(14)
    assert saving(14e9, stages, ROUND) == pytest.approx(10)
    assert restart(14e9, replicas, ROUND) == pytest.approx(30 + 35)
    assert restart(14e9, stages, ROUND) == pytest.approx(30 + 10)


def test_the_interval_of_young() -> None:
    """8 s to save, a fault of 16 devices in 1e7 s: √(2 · 8 · 1e7) = 12 649 s; never less than saving takes."""
    assert interval(12.8e9, placed(16), ROUND) == pytest.approx(12_649, abs=1)
    frail = replace(ROUND, between_faults=16.0)
    assert interval(12.8e9, placed(16), frail) == pytest.approx(8)


def test_a_migration_saves_sends_and_begins_again() -> None:
    """14 GB and 6 GB of data over 8 Gbit/s are 20 s; 14 s to save on ten devices, 30 + 35 s to begin on four."""
    assert migration(14e9, 6e9, placed(10), placed(4), 8 * GIGABIT, 0.02, ROUND) == pytest.approx(14 + 20.02 + 65)


def test_the_law_tells_the_same() -> None:
    law = PublishedLaw(DEVICES, ROUND_TRIPS, ROUND)
    assert law.saving(JOB, placed(10)) == saving(14e9, placed(10), ROUND)
    assert law.restart(JOB, placed(10)) == restart(14e9, placed(10), ROUND)
    assert law.interval(JOB, placed(10)) == interval(14e9, placed(10), ROUND)


def test_stated_work_is_the_rate_on_what_was_asked_for_times_what_was_stated() -> None:
    for used in (1.0, 0.5):
        its = replace(JOB, used=used, serial=0.1)
        assert LAW.stated_work(its) == pytest.approx(its.stated * LAW.speed(its, placed(16), ()).rate)


@dataclass(frozen=True)
class Line:
    """Domains ``a`` and ``b`` that are joined by an exchange."""

    sites: tuple[Site, ...]
    links: tuple[Link, ...]
    devices: dict[str, DeviceType]

    @property
    def variation(self) -> LinkVariation:
        """There is none."""
        raise NotImplementedError


@pytest.fixture
def line() -> Line:
    ends = [("a", "x"), ("x", "a"), ("x", "b"), ("b", "x")]
    links = tuple(Link(source, target, GIGABIT, 0.01, 1.0) for source, target in ends)
    return Line((Site("a", 0, 0, ()), Site("b", 0, 0, ()), Site("c", 0, 0, ())), links, dict(DEVICES))


def test_round_trips_are_those_of_routes(line: Line) -> None:
    law: Law = PublishedLaw.of(line)
    found = law.speed(JOB, placed(8, 8, split=Split.SYNCHRONOUS), (4 * GIGABIT,) * 2)
    assert found.rate == pytest.approx(48 / (3 + 4.02 - 2))


def test_without_a_way_it_does_not_go_on(line: Line) -> None:
    for split in (Split.SYNCHRONOUS, Split.PERIODIC, Split.PIPELINE):
        found = PublishedLaw.of(line).speed(JOB, placed(8, 0 + 4, 4, split=split), (GIGABIT,) * 4)
        assert (found.rate, found.computing) == (0.0, 0.0)
        assert set(found.occupied) == {0.0}


def test_unknown_devices_and_domains_are_errors(line: Line) -> None:
    law = PublishedLaw.of(line)
    with pytest.raises(KeyError):
        law.speed(JOB, placed(8, device="unheard of"), ())
    with pytest.raises(KeyError):
        law.flows(JOB, placed(4, 4, 4, 4, split=Split.SYNCHRONOUS))
