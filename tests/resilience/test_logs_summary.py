"""Verdicts put together: once for each fault of each thing, the worst first, flapping links called so."""

import pytest

from kuayu.resilience.logs import reader
from kuayu.resilience.logs.reader import LogReader, Summary
from kuayu.resilience.logs.recogniser import Severity

XID = "Nov 22 09:58:33 {node} kernel: NVRM: Xid (PCI:0000:{bus}:00): {number}, pid=77\n"
LINK = "Nov 22 09:58:33 gpu1 kernel: mlx5_core 0000:3b:00.0 {name}: Link {state}\n"


def summed(log: str) -> Summary:
    made = Summary()
    made.add(LogReader(unusual=False).take(log.encode()))
    return made


def test_the_same_fault_of_the_same_device_is_one_and_the_worst_comes_first() -> None:
    log = XID.format(node="a", bus="05", number=31) * 3 + XID.format(node="a", bus="05", number=79)
    log += XID.format(node="b", bus="05", number=79) + XID.format(node="a", bus="06", number=79) * 2
    groups = summed(log).groups()
    rows = [(each.verdict.code, each.verdict.node, each.verdict.subject, each.count, each.last) for each in groups]
    assert rows == [
        ("xid.79", "a", "0000:05:00", 1, 4),
        ("xid.79", "b", "0000:05:00", 1, 5),
        ("xid.79", "a", "0000:06:00", 2, 7),
        ("xid.31", "a", "0000:05:00", 3, 3),
    ]


def test_a_link_that_goes_down_and_comes_up_again_and_again_flaps() -> None:
    cycle = LINK.format(name="ens1", state="down") + LINK.format(name="ens1", state="up")
    (once,) = summed(cycle).groups()
    assert (once.verdict.code, once.verdict.severity) == ("link.down", Severity.WARNING)
    (often,) = summed(cycle * 3).groups()
    assert (often.verdict.code, often.verdict.severity, often.count) == ("link.flap", Severity.CRITICAL, 3)
    # Three different links that go down once each do not flap, nor does one that never came up.
    apart = "".join(LINK.format(name=f"ens{n}", state="down") for n in range(3))
    assert {each.verdict.code for each in summed(apart).groups()} == {"link.down"}
    assert {each.verdict.code for each in summed(LINK.format(name="e1", state="down") * 4).groups()} == {"link.down"}


def test_more_things_than_can_be_kept_apart_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_GROUPS", 5)
    groups = summed("".join(XID.format(node=f"n{n}", bus="05", number=79) for n in range(50))).groups()
    assert len(groups) == 6
    assert sum(each.count for each in groups) == 50
    assert [each.count for each in groups if each.verdict.node is None] == [45]
