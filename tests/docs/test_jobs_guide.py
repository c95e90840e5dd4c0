"""The ten minutes of the guide to jobs come out as it says, typed as printed, with what a wheel installs."""

import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from docs.typed import perform
from service.conftest import free_port

ROOT = Path(__file__).parents[2]
PATIENCE_S = 900.0
"""A busy machine needs minutes for what others do in one."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Text of a program that is ``kuayu`` as a wheel installs it: nothing of it is read from this folder.

    What it needs is that of this environment, which the new one sees without what links to our sources.
    """
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*build, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=600)
    [wheel] = folder.glob("kuayu-*.whl")
    venv.create(folder / "venv")
    python = folder / "venv/bin/python"
    [packages] = (folder / "venv/lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(packages)
    (packages / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    program = f"#!/bin/sh\nunset PYTHONPATH\nexec {python} -c 'from kuayu.cli import main; main()' \"$@\"\n"
    where = ["-c", "import kuayu, kuayu_schemas; print(kuayu.__file__, kuayu_schemas.__file__)"]
    found = subprocess.run([python, "-E", *where], check=True, capture_output=True, text=True, timeout=60).stdout
    assert all(place.startswith(str(packages)) for place in found.split())
    return program


@pytest.mark.slow
def test_a_job_is_submitted_killed_and_goes_on_as_the_guide_says(
    installed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUAYU_URL", "KUAYU_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    begun, submitted, watched, killed, ended = perform("jobs.md", tmp_path, free_port(), PATIENCE_S, installed)
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
