"""The ten minutes of the guide to jobs come out as it says, typed as printed."""

import re
from pathlib import Path

import pytest
from docs.typed import perform
from service.conftest import free_port

PATIENCE_S = 900.0
"""A busy machine needs minutes for what others do in one."""


@pytest.mark.slow
def test_a_job_is_submitted_killed_and_goes_on_as_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUAYU_URL", "KUAYU_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    begun, submitted, watched, killed, ended = perform("jobs.md", tmp_path, free_port(), PATIENCE_S)
    assert "kuayu submit train.yaml" in begun.printed
    assert submitted.printed.startswith("job-1 queued")
    assert re.search(r"^job-1 +running +1 in here", watched.printed, re.MULTILINE)
    assert len(re.findall(r"^step [0-9]+, loss ", watched.printed, re.MULTILINE)) >= 2
    [step] = set(re.findall(r"^process [0-9]+ goes on from step ([0-9]+)$", killed.printed, re.MULTILINE))
    assert int(step) >= 10
    assert int(step) % 10 == 0
    assert "restarting" in killed.printed
    assert "SIGKILL" in killed.printed
    assert re.search(r"^job-1 start 1 × \S+ in here", killed.printed, re.MULTILINE)
    assert killed.printed.rstrip().splitlines()[-1].startswith("job-1 cancelled")
    assert ended.printed.strip() == ""
    assert "all of it has ended" in (tmp_path / "up.log").read_text("utf-8")
