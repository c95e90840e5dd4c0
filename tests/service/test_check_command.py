"""`kuayu check`: which of the processes beside the suite ended is said, with its last words."""

import subprocess
import sys
from pathlib import Path

import pytest

from kuayu.cli.check import StartError, _Part, _until

DIES = "print('no space left', flush=True); raise SystemExit(7)"
STAYS = "import time; time.sleep(60)"


def part(name: str, program: str, folder: Path) -> _Part:
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        return _Part(name, subprocess.Popen([sys.executable, "-c", program], stdout=output), log)


@pytest.mark.parametrize("dying", ["service", "collector"])
def test_the_part_that_ended_is_named(dying: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A collector whose service is gone goes on trying: it is not the collector that failed."""
    parts = [part(name, DIES if name == dying else STAYS, tmp_path) for name in ("service", "collector")]
    try:
        with pytest.raises(StartError, match=f"{dying} did not answer but ended with exit code 7"):
            _until(lambda: False, *parts)
    finally:
        for each in parts:
            each.process.kill()
            each.process.wait()
    assert "no space left" in capsys.readouterr().out
