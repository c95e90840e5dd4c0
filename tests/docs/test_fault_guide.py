"""The guide to faults shows what its commands print, whatever the time is and however actions are named.

Nodes of it beat all the while; on a machine that is full, one that has been fenced falls silent too.
"""

import re
from pathlib import Path

import pytest
from docs.test_scheduling_guides import FIGURE, carried_out, printed_by
from docs.typed import pages_shown

NAME = re.compile(r"[0-9a-f]{16,}")


def form(text: str) -> str:
    """What is compared: neither figures, nor names of actions, nor where lines are broken."""
    return FIGURE.sub("#", NAME.sub("…", "".join(text.split())))


@pytest.mark.slow
@pytest.mark.alone
def test_the_guide_to_faults_shows_what_its_commands_print(tmp_path: Path) -> None:
    performed = carried_out("faults.md", tmp_path)
    shown = list(pages_shown(performed))
    assert len(shown) == 6
    for each in shown:
        assert form(each.shown or "") == form(each.printed), "python -m docs.retype faults.md"
    assert "fenced: gy-2" in printed_by(performed, "q node_dead")
    assert "lifted: gy-2" in printed_by(performed, "q lifted")
    assert "xid.79" in printed_by(performed, "q node_failing")
    alone = printed_by(performed, "q domain_unreachable")
    assert "1 fault is open" in alone
    assert "hg-" not in alone
