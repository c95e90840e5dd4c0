"""A run may use measurements that do not come with the suite: its report names them, to be judged again with them."""

import csv
import dataclasses
import json
from pathlib import Path

import pytest

from kuayu_conformance.corpora.sources import LAMBDA_FILE, LAMBDA_SERIES, LAMBDA_SHEETS
from kuayu_conformance.folder import verify, write
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import TranscriptError

TASKS = ("transformerxlbase", "ncf", "resnet50")


def originals(folder: Path, faster: float = 1.0) -> Path:
    """A data folder whose table is as small as it can be."""
    path = folder / LAMBDA_FILE
    path.parent.mkdir(parents=True)
    columns = ("series", "gpu_model", "name_gpu", "num_gpu", "precision", "workload", "batch_size", "throughput")
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, [*columns, "watt", "price"], restval="")
        table.writeheader()
        for number, gpu in enumerate(LAMBDA_SHEETS):
            for task in TASKS:
                values = (LAMBDA_SERIES, gpu, gpu, 1.0, "fp16", task, 32.0, faster * (number + 1))
                table.writerow(dict(zip(columns, values, strict=True)))
    return folder


@pytest.fixture
def folder(options: Options, tmp_path: Path) -> Path:
    """Folder of a report of a run that was given the data folder beside it."""
    originals(tmp_path / "data")
    return reported(options, tmp_path, "IDX-004")


def reported(options: Options, folder: Path, requirement: str) -> Path:
    made = folder / "report"
    given = dataclasses.replace(options, data=folder / "data", selection=(requirement,))
    write(made, Run(given, made, Progress()).execute())
    return made


def test_the_report_names_the_table_with_its_digest(folder: Path) -> None:
    report = json.loads((folder / "report.json").read_text("utf-8"))
    [used] = report["data"]
    assert used["name"] == "lambda"
    assert used["digest"].startswith("sha256:")


def test_it_is_judged_again_with_the_same_table(folder: Path) -> None:
    assert all(verdict.agrees for verdict in verify(folder, folder.parent / "data"))


def test_without_the_table_it_cannot_be_judged_and_the_message_says_what_is_missing(folder: Path) -> None:
    with pytest.raises(TranscriptError, match=r"lambda.*--data or KUAYU_DATA"):
        list(verify(folder))


def test_a_run_that_measured_no_index_needs_no_table(options: Options, tmp_path: Path) -> None:
    originals(tmp_path / "data")
    made = reported(options, tmp_path, "COM-001")
    assert "data" not in json.loads((made / "report.json").read_text("utf-8"))
    assert all(verdict.agrees for verdict in verify(made))


def test_with_another_table_of_the_same_name_it_is_not_judged(folder: Path, tmp_path: Path) -> None:
    other = originals(tmp_path / "other", faster=1.5)
    with pytest.raises(TranscriptError, match="not those that the run used"):
        list(verify(folder, other))
