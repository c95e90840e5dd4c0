"""The fitted parameters are those that public measurements lead to; needs the originals, and says where it looked."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from kuayu_conformance.testbed.scheduling.topology import SHEETS
from kuayu_conformance.testbed.scheduling.topology.parameters import fit, five_days, main, parameters, read

BESIDE = Path(__file__).parents[5].parent / "shared" / "data"


@pytest.fixture(scope="module")
def data() -> Path:
    """Folder of the public originals."""
    folder = Path(os.environ.get("KUAYU_DATA") or BESIDE)
    if not (folder / "wan").is_dir():
        pytest.skip(f"no public originals in {folder} (KUAYU_DATA names another folder), so that no fit is compared")
    return folder


def test_the_fit_is_that_which_ships(data: Path) -> None:
    assert read(fit(data)) == parameters()


def test_the_measured_ratios(data: Path) -> None:
    ratios = five_days(data)
    assert len(ratios) == 3906
    assert np.percentile(ratios, [5, 50, 95]) == pytest.approx([0.94, 1.317, 2.805], abs=0.005)
    assert np.mean(np.array(ratios) >= 1) > 0.87


def test_what_was_received_varies_less_than_what_was_sent(data: Path) -> None:
    received = five_days(data, "received_gbps")
    assert np.percentile(received, [5, 50, 95]) == pytest.approx([0.87, 1.0, 1.89], abs=0.01)


def test_the_table_rises() -> None:
    table = parameters()
    assert list(table.levels) == sorted(table.levels)
    assert list(table.ratios) == sorted(table.ratios)
    assert max(table.errors.values()) < 0.16


def test_the_command_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "DATA_DIR" in capsys.readouterr().err


CHIPS = {"H800": "H800", "A800": "A800 SXM4 80GB", "H20": "H20 96GB", "DCU K100 AI": "DCU K100 AI"}


@pytest.mark.parametrize("name", CHIPS)
def test_data_sheets_are_those_of_the_facts(data: Path, name: str) -> None:
    with (data / "accelerator_facts" / "accelerator_facts.csv").open(encoding="utf-8") as lines:
        facts = {row["metric"]: float(row["value"]) for row in csv.DictReader(lines) if row["chip"] == CHIPS[name]}
    sheet = SHEETS[name]
    assert (sheet.peak, sheet.memory) == (facts["peak_fp16"] * 1e12, facts["memory"] * 1e9)
    assert sheet.bandwidth == facts["memory_bandwidth"] * 1e9
