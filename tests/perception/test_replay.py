"""This host and the captured pages of exporters in short; half an hour is ``tests/benchmarks/replay_host.py``."""

import sys
from pathlib import Path

import pytest

SECONDS = 24


@pytest.mark.slow
def test_this_host_and_captured_pages_are_never_shown_in_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    try:
        from benchmarks import replay_host

        with replay_host.sqlite_files() as new, replay_host.serving(new()) as url:
            found, _ = replay_host.watch(url, SECONDS, load=False)
    finally:
        sys.modules.pop("serving", None)
    assert {replay_host.HOST, replay_host.SELDOM, *replay_host.captured()} == set(found)
    assert all(sum(shown.values()) > 0 for shown in found.values())
    assert replay_host.false_states(found) == {}
