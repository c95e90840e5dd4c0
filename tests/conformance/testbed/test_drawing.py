"""The drawing of an excerpt, as the command makes it."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kuayu_conformance.testbed.telemetry.__main__ import main

SVG = "{http://www.w3.org/2000/svg}"


def test_the_command_tells_what_happens_and_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = tmp_path / "excerpt.svg"
    assert main(["--seconds", "60", "--plot", str(drawing)]) == 0
    told = capsys.readouterr().out
    assert all(f"into {state}" in told for state in ("idle", "busy", "degraded", "straggling", "faulty", "offline"))
    root = ET.fromstring(drawing.read_text("utf-8"))  # noqa: S314 - we wrote it ourselves
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert any("around a straggler" in words for words in said)
    assert {"utilisation", "matrix pipes", "power, kW", "sent, GB/s", "offline"} <= set(said)
    assert len(list(root.iter(f"{SVG}rect"))) > 120


def test_too_short_a_time_is_refused_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--seconds", "10"])
    assert stopped.value.code == 2
    assert "60 at least" in capsys.readouterr().err
