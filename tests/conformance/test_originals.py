"""Job traces of the data folder: used in full runs alone, named by their digests, and held against them."""

from pathlib import Path

import pytest

from kuayu_conformance.checks.scheduling.cells import FULL, TRACE, plan
from kuayu_conformance.run.plan import original_entries, originals_at_hand, originals_named, traces_of
from kuayu_conformance.transcript import TranscriptError
from kuayu_schemas.models import RunLevel


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of public originals with a trace in it."""
    (tmp_path / "job_traces").mkdir()
    (tmp_path / "job_traces" / "itp.csv.gz").write_bytes(b"jobs")
    return tmp_path


def test_a_full_run_plays_the_trace_where_it_is_at_hand(data: Path) -> None:
    assert traces_of(RunLevel.quick) == ()
    names = traces_of(RunLevel.full)
    assert originals_at_hand(names, None) == {}
    assert originals_at_hand(names, data / "elsewhere") == {}
    assert plan(full=True, traces=originals_at_hand(names, data)).sources == (*FULL.sources, TRACE)
    assert TRACE not in plan(full=True).sources
    assert TRACE not in plan(full=False, traces=names).sources


def test_a_run_is_judged_again_with_the_trace_that_it_used_and_with_no_other(data: Path) -> None:
    used = [*original_entries({"itp": data}), {"name": "lambda", "digest": "sha256:of a table"}]
    assert originals_named(used, data) == {"itp": data}
    with pytest.raises(TranscriptError, match="KUAYU_DATA"):
        originals_named(used, None)
    (data / "job_traces" / "itp.csv.gz").write_bytes(b"others")
    with pytest.raises(TranscriptError, match="not the one"):
        originals_named(used, data)
