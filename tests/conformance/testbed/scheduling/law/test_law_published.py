"""The law of a topology knows its round trips, and is what the engine asks for."""

from dataclasses import dataclass

import pytest
from conformance.testbed.scheduling.law.law_examples import DEVICES, GIGABIT, JOB, placed

from kuayu_conformance.testbed.scheduling.engine.interfaces import Law, Weather
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.values import DeviceType, Site, Split, Wire


@dataclass(frozen=True)
class Line:
    """Domains ``a`` and ``b`` that are joined by an exchange."""

    sites: tuple[Site, ...]
    wires: tuple[Wire, ...]
    devices: dict[str, DeviceType]

    @property
    def weather(self) -> Weather:
        """There is none."""
        raise NotImplementedError


@pytest.fixture
def line() -> Line:
    ends = [("a", "x"), ("x", "a"), ("x", "b"), ("b", "x")]
    wires = tuple(Wire(source, target, GIGABIT, 0.01, 1.0) for source, target in ends)
    return Line((Site("a", 0, 0, ()), Site("b", 0, 0, ()), Site("c", 0, 0, ())), wires, dict(DEVICES))


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
