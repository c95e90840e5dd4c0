"""Choices about the demand law are made on whole sources, and what runs teach is no worse than nothing on their mean.

Figures are held on the sources that ship with the suite and are known to the developers (``corpora.shipped()``): on
means over runs and over sources, not source by source. Of the outer loop (``corpora.added()``) only its form is held;
its figures stand in ``docs/results/demand/outer.json``, and there one own run does not bring six per cent where runs
agree (decision 54).
"""

from typing import Any

import numpy as np
import pytest

from kuayu.demand.step_time import PRIOR
from kuayu_conformance.corpora import training as corpora
from kuayu_training.demand import protocol
from kuayu_training.demand.protocol import Data, judged, known_corpus, summed

AGREE = 0.05
"""Scatter of a source's runs, as a logarithm, up to which they are said to agree."""


@pytest.fixture(scope="module", name="data")
def _data() -> Data:
    """Timed runs that come with the suite."""
    return Data.of(corpora.shipped())


@pytest.fixture(scope="module", name="rows")
def _rows(data: Data) -> list[dict[str, Any]]:
    """Each source and kind, predicted in each way."""
    return judged(data, list(dict.fromkeys(data.sources.tolist())), nested=False)


def test_with_the_runs_of_others_the_law_is_not_worse_than_without(rows: list[dict[str, Any]]) -> None:
    means = summed(rows)
    assert {"dense", "moe"} <= set(means)
    for found in means.values():
        for over in ("over runs", "over sources"):
            assert found["others"][over] <= found["none"][over] + 1e-3


def test_with_own_runs_the_law_is_better_over_sources(rows: list[dict[str, Any]]) -> None:
    for count in ("own 1", "own 3"):
        mine = [row for row in rows if count in row and row["kind"] == "dense"]
        assert len(mine) >= 5
        assert np.mean([row[count] for row in mine]) < np.mean([row["none"] for row in mine])


def test_one_own_run_brings_six_per_cent_where_the_runs_of_a_known_source_agree(rows: list[dict[str, Any]]) -> None:
    """Of the sources that are known: in the outer loop it is missed."""
    agreeing = [row for row in rows if row["scatter"] <= AGREE and "own 1" in row]
    assert len(agreeing) >= 3
    assert all(row["own 1"] <= 0.06 for row in agreeing)


def test_dense_and_experts_hold_their_bounds_on_sources_that_are_left_out(rows: list[dict[str, Any]]) -> None:
    """The aim of ten per cent is met over dense runs; over sources, and with experts, it is missed and not loosened."""
    means = summed(rows)
    assert means["dense"]["others"]["over runs"] < 0.1


def test_a_source_takes_no_part_in_the_choice_that_predicts_it(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    original = Data.predicted

    def watch(self: Data, rows: Any, known: Any, efficiency: Any = PRIOR) -> Any:
        seen.update(self.sources[rows].tolist(), self.sources[known].tolist())
        return original(self, rows, known, efficiency)

    monkeypatch.setattr(Data, "predicted", watch)
    monkeypatch.setattr(protocol, "CANDIDATES", dict(list(protocol.CANDIDATES.items())[:1]))
    protocol.inner(data, "llm-foundry-bench")
    assert seen == set(data.sources.tolist()) - {"llm-foundry-bench"}


def test_sources_of_the_outer_loop_are_whole_and_no_part_of_the_inner_one(tmp_path: Any) -> None:
    added = corpora.added()
    assert not set(added.sources) & set(known_corpus(tmp_path).sources)
    assert {run.source for run in added.runs} == set(added.sources)
    assert sum(run.kind == "moe" for run in added.runs) >= 10
    assert all(source.origin and source.conventions for source in added.sources.values())
