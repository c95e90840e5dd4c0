"""Known faults in lines: what is told, of what, and what follows; and what must not be told."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.resilience.logs.reader import MAX_PENDING_BYTES, LogReader
from kuayu.resilience.logs.recogniser import (
    REACH,
    RESOLUTIONS,
    TEXT,
    About,
    Confidence,
    Follows,
    Severity,
    Verdict,
    catalogue,
)
from kuayu_training.resilience.logs_lines import calm


def told(text: str | bytes, *, piece: int = 0, unusual: bool = False) -> list[Verdict]:
    """What a log tells, read whole or in pieces."""
    data = text.encode() if isinstance(text, str) else text
    reader = LogReader(unusual=unusual)
    found: list[Verdict] = []
    for start in range(0, len(data), piece or max(1, len(data))):
        found += reader.take(data[start : start + (piece or len(data))])
    return found + reader.end()


def one(text: str) -> Verdict:
    (found,) = told(text)
    return found


CALM = [text for text, _ in calm()]


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ("NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "0000:05:00"),
        ("NVRM: Xid (0000:03:00): 79, Channel 00000001", "0000:03:00"),
        ("NVRM: Xid (PCI:0000:9A:00 GPU-I:02): 79", "0000:9A:00"),
        ("nvrm: xid (pci:00000008:01:00): 79\r", "00000008:01:00"),
    ],
)
def test_an_xid_is_read_in_every_documented_form(line: str, subject: str) -> None:
    found = one(line)
    assert (found.code, found.subject, found.about, found.follows) == ("xid.79", subject, About.DEVICE, Follows.DRAIN)
    assert found.confidence is Confidence.CERTAIN
    assert found.source is not None
    assert "xid" in found.source.url


@pytest.mark.parametrize(
    ("number", "about", "follows"),
    [
        (13, About.JOB, Follows.RESTART),  # a program's own fault: the node stays
        (31, About.JOB, Follows.RESTART),
        (43, About.DEVICE, Follows.WATCH),
        (48, About.DEVICE, Follows.DRAIN),
        (63, About.DEVICE, Follows.WATCH),
        (64, About.DEVICE, Follows.DRAIN),
        (74, About.LINK, Follows.DRAIN),
        (92, About.DEVICE, Follows.WATCH),
        (94, About.DEVICE, Follows.RESTART),  # contained: the program is lost, the device goes on
        (95, About.DEVICE, Follows.DRAIN),
        (119, About.DEVICE, Follows.DRAIN),
    ],
)
def test_what_follows_from_an_xid_follows_from_nvidia_s_catalogue(number: int, about: About, follows: Follows) -> None:
    found = one(f"kernel: NVRM: Xid (PCI:0000:05:00): {number}, pid=77, name=python")
    assert (found.about, found.follows) == (about, follows)


def test_an_xid_that_the_catalogue_lacks_is_watched_and_less_sure() -> None:
    found = one("NVRM: Xid (PCI:0000:05:00): 9999, something new")
    assert (found.code, found.follows, found.confidence) == ("xid.9999", Follows.WATCH, Confidence.LIKELY)


@pytest.mark.parametrize(
    ("action", "follows"),
    [
        ("GPU Reset Required", Follows.DRAIN),
        ("Node Reboot Required", Follows.DRAIN),
        ("Drain P2P", Follows.DRAIN),
        ("None", Follows.NONE),
    ],
)
def test_xid_154_says_itself_what_follows(action: str, follows: Follows) -> None:
    line = f"NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 ({action})"
    assert one(line).follows is follows
    assert one("NVRM: Xid (PCI:0008:01:00): 154, cut off").follows is Follows.WATCH


def test_nvlink_errors_say_themselves_whether_they_are_fatal() -> None:
    assert one("NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00").follows is Follows.DRAIN
    assert one("NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 00").follows is Follows.WATCH
    switch = "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, {}, Link 30 LTSSM Fault Up"
    assert one(switch.format("Fatal")).follows is Follows.DRAIN
    assert one(switch.format("Non-fatal")).follows is Follows.WATCH


def test_a_job_s_own_fault_never_drains_a_node() -> None:
    own = [each for each in catalogue().faults if each.about is About.JOB or each.kind == "memory"]
    assert {each.code for each in own} >= {
        "job.memory",
        "npu.memory",
        "host.memory",
        "host.memory.cgroup",
        "nccl.timeout",
    }
    assert all(each.follows is not Follows.DRAIN for each in own)


def test_what_drains_is_critical_and_documented() -> None:
    for each in catalogue().faults:
        assert each.follows is not Follows.DRAIN or each.severity is Severity.CRITICAL, each.code
        assert each.source.url.startswith("https://")
        assert each.what
    assert {each.resolution for each in catalogue().xids.values()} <= RESOLUTIONS.keys()


def test_the_host_is_read_from_the_header() -> None:
    line = "kernel: [12.5] NVRM: Xid (PCI:0000:05:00): 79, pid=77"
    assert one(f"Nov 22 09:58:33 gpu-0017 {line}").node == "gpu-0017"
    assert one(f"2026-11-22T09:58:33.123456+08:00 gpu-0017 {line}").node == "gpu-0017"
    assert one(line).node is None


def test_one_line_that_tells_one_fault_twice_is_one_verdict() -> None:
    line = "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus. NVRM: GPU 0000:05:00.0: GPU is lost"
    assert [each.code for each in told(line)] == ["xid.79"]


@pytest.mark.parametrize("where", [0, MAX_PENDING_BYTES - 1024, MAX_PENDING_BYTES - 40, MAX_PENDING_BYTES + 77])
@pytest.mark.parametrize("unusual", [False, True])
def test_a_fault_in_an_endless_line_is_told_once(where: int, unusual: bool) -> None:
    line = b"x" * where + b"\rNVRM: Xid (PCI:0000:05:00): 79, GPU " + b"y" * (2 * MAX_PENDING_BYTES - where)
    log = b"first\n" + line + b"\nnfs: server 10.1.2.3 not responding, still trying\n"
    for piece in (0, 65_536):
        found = told(log, piece=piece, unusual=unusual)
        assert [(each.code, each.evidence.line) for each in found] == [("xid.79", 2), ("storage.nfs", 3)]
        assert "Xid (PCI:0000:05:00): 79" in found[0].evidence.text


def test_faults_far_apart_in_one_line_are_all_told() -> None:
    pad = "." * 4000
    line = f"nfs: server a not responding {pad}\rNVRM: Xid (PCI:0000:05:00): 79, {pad}\rEI0002: timeout"
    assert [each.code for each in told(line)] == ["storage.nfs", "xid.79", "hccl.EI0002"]


def test_bytes_that_are_no_text_hide_nothing() -> None:
    log = b"\xff\xfe\x00\x80\rNVRM: Xid (PCI:0000:05:00): 79, \x00\x00\xc3\x28\n\x00\n\n\xf0\x9f"
    reader = LogReader()
    (found, *rest) = [*reader.take(log), *reader.end()]
    assert not rest
    assert reader.lines == 4
    assert found.evidence.text.isprintable()
    assert "\\xff" in found.evidence.text


PARTS = st.one_of(
    st.sampled_from([line for fault in catalogue().faults for line in fault.examples]).map(str.encode),
    st.sampled_from(CALM).map(str.encode),
    st.binary(max_size=40),
    st.just(b"\n"),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PARTS, max_size=30), st.integers(1, 300))
def test_how_a_log_is_cut_into_pieces_changes_nothing(parts: list[bytes], piece: int) -> None:
    log = b"".join(parts)
    assert told(log, piece=piece) == told(log)


@settings(max_examples=100, deadline=None)
@given(st.lists(PARTS, max_size=30))
def test_any_bytes_are_read_to_the_last_line(parts: list[bytes]) -> None:
    log = b"".join(parts)
    reader = LogReader()
    found = [*reader.take(log), *reader.end()]
    assert reader.lines == log.count(b"\n") + (bool(log) and not log.endswith(b"\n"))
    assert reader.miner.lines + reader.miner.unmined == reader.lines
    for each in found:
        assert 1 <= each.evidence.line <= reader.lines
        assert len(each.evidence.text) <= TEXT
        assert each.evidence.text.isprintable()


def test_no_pattern_can_take_long() -> None:
    # A repetition within a repetition is what makes a search take exponential time; without a bound, quadratic.
    for fault in catalogue().faults:
        assert _is_quick(fault.pattern.pattern), fault.code
    for slow in (rb"(a+b)+", rb"(?:a{0,9}b){2}", rb".*x", rb"a(?:b|c*)"):
        assert not _is_quick(slow)


def _is_quick(pattern: bytes) -> bool:
    parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]  # noqa: SLF001 - the only parser there is
    return all(most < REACH and (depth == 0 or most <= 1) for depth, most in _repeats(parsed, 0))


def _repeats(tokens: Any, depth: int) -> Iterator[tuple[int, int]]:
    """How deep each repetition lies in others, and how often it may repeat."""
    for name, value in tokens:
        text = str(name)
        if text in {"MAX_REPEAT", "MIN_REPEAT"}:
            yield depth, int(value[1])
            yield from _repeats(value[2], depth + (int(value[1]) > 1))
        elif text == "SUBPATTERN":
            yield from _repeats(value[-1], depth)
        elif text == "BRANCH":
            for each in value[1]:
                yield from _repeats(each, depth)
        elif text in {"ASSERT", "ASSERT_NOT"}:
            yield from _repeats(value[1], depth)
