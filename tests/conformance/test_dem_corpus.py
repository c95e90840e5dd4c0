"""Published training runs: that they can be sent, that they are what the originals say, and what they are for."""

import os
from collections import Counter
from pathlib import Path

import pytest

from kuayu_conformance.corpora import training
from kuayu_conformance.corpora.training.conversion import TABLE, converted, guessed
from kuayu_conformance.corpora.training.runs import RECALLED, SHIPPED, Corpus, Run
from kuayu_schemas.schema import errors

BESIDE = Path(__file__).parents[2].parent / "shared" / "data"
"""Where the public originals are looked for unless KUAYU_DATA names their folder."""


@pytest.fixture(scope="module")
def data() -> Path:
    """Folder of the public originals."""
    folder = Path(os.environ.get("KUAYU_DATA") or BESIDE)
    if not (folder / TABLE).is_file():
        pytest.skip(f"no {TABLE} in {folder} (KUAYU_DATA names another folder), so that no run is compared")
    return folder


def row(number: int) -> Run:
    """The run of a line of the public table."""
    (found,) = (run for run in training.shipped().runs if run.row == number)
    return found


def is_whole(corpus: Corpus) -> None:
    """Every demand on runs, whether they are shipped or read."""
    cases = [
        {"id": f"run-{run.row}", "model": run.model, "strategy": run.strategy, "hardware": run.hardware}
        for run in corpus.runs
    ]
    measured = [
        {
            "source": run.source,
            "model": run.model,
            "strategy": run.strategy,
            "hardware": run.hardware,
            **({"step_time": run.step_time} if run.step_time else {}),
            **({"memory": run.memory} if run.memory else {}),
        }
        for run in corpus.runs
    ]
    revision = {"epoch": "test", "number": 1}
    body = {"revision": revision, "hardware": list(corpus.hardware.values()), "cases": cases, "runs": measured}
    assert errors("TrainingDemandRequest", body) == []
    assert {run.hardware for run in corpus.runs} == set(corpus.hardware)
    assert {run.source for run in corpus.runs} == set(corpus.sources)
    assert all(run.failed == (run.step_time is None) for run in corpus.runs)


def test_shipped_runs_can_be_sent_and_name_nothing_that_is_not_there() -> None:
    is_whole(training.shipped())


def test_shipped_runs_are_of_sources_with_a_licence_that_lets_figures_be_shipped() -> None:
    sources = training.shipped().sources
    assert {source.licence for source in sources.values()} == {"Apache-2.0", "BSD-3-Clause"}
    assert all(source.origin and source.conventions for source in sources.values())
    assert not RECALLED & set(sources)
    notice = (Path(training.__file__).parent / "NOTICE.md").read_text("utf-8")
    assert all(name in notice for name in sources)


def test_shipped_runs_are_what_the_originals_lead_to(data: Path) -> None:
    made, left = converted(data, SHIPPED)
    kept = (Path(training.__file__).parent / "runs.json").read_text("utf-8")
    assert made.to_json() == kept
    assert made.digest == training.shipped().digest
    assert set(left).isdisjoint(run.row for run in made.runs)


def test_runs_are_the_same_after_they_were_written() -> None:
    assert Corpus.from_json(training.shipped().to_json()) == training.shipped()


def test_papers_alone_are_read_where_the_originals_lie(data: Path) -> None:
    papers = training.further(data)
    is_whole(papers)
    assert set(papers.sources) == RECALLED


def test_how_many_runs_there_are_to_judge_by() -> None:
    judged = [run for run in training.shipped().runs if run.kind == "dense" and run.stated and run.step_time]
    assert len(judged) == 426
    assert len({run.source for run in judged}) == 7
    assert Counter(run.kind for run in training.shipped().runs)["moe"] == 130
    assert sum(run.failed for run in training.shipped().runs) == 6


def test_a_row_of_table_1_of_narayanan_by_hand() -> None:
    """1.7 B on 32 A100 at 137 TFLOP/s: 96 · 512 · 2048 · 24 · 2304² · (1 + s/6h + V/16Lh) FLOP of a step."""
    run = row(1)
    flop = 96 * 512 * 2048 * 24 * 2304**2 * (1 + 2048 / (6 * 2304) + 51200 / (16 * 24 * 2304))
    assert run.step_time == pytest.approx(flop / (32 * 137e12), rel=1e-5)
    assert run.strategy["micro_batch"] == 16
    assert run.strategy["recomputation"] == "full"
    assert run.devices == 32


def test_rows_that_people_read_in_the_originals() -> None:
    seconds = {23: 1.42, 24: 1.1, 25: 18.13, 26: 13.75, 27: 49.05, 28: 37.83, 29: 94.42, 30: 71.49}
    for number, measured in seconds.items():
        assert row(number).source == "korthikanti-2205.05198-table5"
        assert row(number).step_time == measured
    assert row(26).strategy["sequence_parallel"] is True
    assert row(26).strategy["recomputation"] == "selective"
    assert row(26).strategy["virtual_stages"] == 3
    assert row(246).step_time == 104.7
    assert row(246).model["vocabulary"] == 250880
    assert row(31).memory == 47 * 2**30
    assert row(31).hardware == "A100-SXM-80GB.bigscience-tr11-prequel"
    assert training.shipped().hardware[row(31).hardware]["domain_bandwidth"] == 4 * 12.5e9 / 8


def test_a_guessed_structure_has_about_the_parameters_that_are_stated() -> None:
    for size in (7.5e9, 13e9, 52e9, 175e9, 200e9):
        shape = guessed(size, 51200)
        found = 12 * shape["layers"] * shape["hidden"] ** 2 + 51200 * shape["hidden"]
        assert found == pytest.approx(size, rel=0.12)
        assert shape["heads"] % 8 == 0
        assert shape["hidden"] % shape["heads"] == 0
    assert guessed(175e9, 51200)["layers"] == 96
