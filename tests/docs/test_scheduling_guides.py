"""Guides show what they do: demands, placements, allocations, transfers, recoveries, adjustments, policies."""

import contextlib
import re
import socket
from pathlib import Path

import commands
import pytest
from docs.typed import Performed, pages_shown, perform, words

PAGES = [
    ("scheduling.md", 10),
    ("allocations.md", 5),
    ("demand.md", 7),
    ("forecast.md", 7),
    ("transfers.md", 4),
    ("recovery.md", 3),
    ("adjustment.md", 4),
    ("logs.md", 3),
]
"""Guides that show what they print, each with how many outputs it shows at least."""
ALONE = {"allocations.md", "forecast.md"}
"""Guides whose commands each begin with nothing imported, as the reader's do; others would import the same again."""
FIGURE = re.compile(r"[\d.,]*\d")


def carried_out(page: str, folder: Path, kuayu: str | None = None) -> list[Performed]:
    """Every block of a guide, carried out with a service on a port that nobody else has; see :func:`perform`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return perform(page, folder, port, kuayu=kuayu)


def printed_by(performed: list[Performed], command: str) -> str:
    """What the block prints that holds a command."""
    return next(each.printed for each in performed if command in each.typed)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "outputs"), PAGES)
def test_a_guide_shows_what_its_commands_print(page: str, outputs: int, tmp_path: Path) -> None:
    with contextlib.nullcontext() if page in ALONE else commands.relaying(tmp_path) as kuayu:
        shown = list(pages_shown(carried_out(page, tmp_path, kuayu)))
    assert len(shown) >= outputs
    for each in shown:
        assert words(each.shown or "") == words(each.printed), f"python -m docs.retype {page}"


def test_a_policy_of_ones_own_stands_beside_the_baselines(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    performed = carried_out("policies.md", tmp_path)
    table = printed_by(performed, "kuayu bench policy")
    assert re.findall(r"^(\w+) +\d", table, re.MULTILINE) == ["yours", "B1", "B3", "B3c"]
    walked = printed_by(performed, "walk.py")
    assert "answers, the first way each time" in walked
    for each in pages_shown(performed):  # figures follow from the world, and change with it
        assert FIGURE.sub("#", each.shown or "").split()[:9] == FIGURE.sub("#", each.printed).split()[:9]
