"""A check of many minutes tells how far it is, on a terminal and where there is none."""

import io
from typing import Any

import pytest
from rich.console import Console

from kuayu_conformance import terminal
from kuayu_conformance.check import Check
from kuayu_conformance.episode import Episode, Settings
from kuayu_conformance.terminal import TerminalProgress, left

CHECK: Check[None] = Check("long", (), lambda _: None, lambda _: ())


def test_time_left_follows_from_the_time_that_it_took_so_far() -> None:
    assert left(0, 10, 60.0) == ""
    assert left(2, 10, 60.0) == "about 4 min left"
    assert left(9, 10, 60.0) == "less than a minute left"
    assert left(10, 10, 60.0) == ""


def test_an_episode_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    settings = Settings("n", "r", full=False, features=frozenset(), limits={}, other_tenant=False)
    nobody: Any = None
    Episode("long", settings, nobody, lambda done, of: told.append((done, of))).passed(1, 3)
    Episode("long", settings, nobody).passed(1, 3)
    assert told == [(1, 3)]


@pytest.mark.parametrize("drawn", [True, False])
def test_a_bar_or_a_line_now_and_then(drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "SAID_EVERY", 0.0)
    out = io.StringIO()
    with TerminalProgress(Console(file=out, force_terminal=drawn, width=100)) as progress:
        progress.planned([CHECK])
        progress.started(CHECK)
        progress.passed("long", 3, 4)
        if drawn:
            progress._bar.refresh()  # noqa: SLF001 - it draws itself ten times a second only
        progress.finished(CHECK, {})
        progress.judging()
    assert ("3/4" in out.getvalue()) == drawn
    assert ("long: 3 of 4" in out.getvalue()) != drawn
