"""Two judges, one by the suite's code and one by the text, come to the same figures to the last printed digit.

Committed runs come first: what they keep is enough for their figures. Forecasts, phases and collectives need requests
and what was played, which a run with ``--full-requests`` keeps; such runs are made here, over HTTP.
"""

import json
import lzma
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest
from mutants.serve import MINIMAL_SERVER, served

from kuayu_conformance.checks.forecast import accuracy
from kuayu_conformance.checks.forecast.accuracy import Size
from kuayu_conformance.checks.resilience import collectives as chosen
from kuayu_conformance.folder import write
from kuayu_conformance.run.runner import Options, Progress, Run
from second_judge import collectives, forecast, graph, index, latency, phases, sampling, shares
from second_judge.reading import RUNS, Judged, report, verdict

KEPT_BADLY = "devices-within-a-factor-of-two-are-swapped"
"""An implementation whose index errs, unlike that of the minimal server, which knows the tables."""


@cache
def _watched() -> graph.Watched:
    return graph.watched(RUNS / "node-states")


@cache
def _index() -> Mapping[str, Judged]:
    return index.judge(index.from_requests(RUNS / "index"))


COMMITTED: Mapping[str, tuple[str, Callable[[], Judged]]] = {
    "MET-002": ("sampling", lambda: sampling.judge(RUNS / "sampling")),
    "MET-004": ("node-states", lambda: graph.judge_domains(_watched())),
    "MET-005": ("node-states", lambda: graph.judge_changes(_watched())),
    "IDX-001": ("index", lambda: _index()["IDX-001"]),
    "IDX-002": ("index", lambda: _index()["IDX-002"]),
    "IDX-003": ("index", lambda: _index()["IDX-003"]),
    "IDX-004": ("index", lambda: _index()["IDX-004"]),
    "SCH-002": ("confirmatory", lambda: latency.judge(RUNS / "confirmatory")),
}
"""Requirements with the committed run that they are judged by, and how."""


@pytest.mark.parametrize("requirement", COMMITTED)
def test_both_judges_agree_on_a_committed_report(requirement: str) -> None:
    run, judged = COMMITTED[requirement]
    printed = report(RUNS / run)[requirement]
    assert judged() == printed.judged
    assert verdict(requirement, printed.judged) == printed.verdict


def _made(target: str, folder: Path, *requirements: str) -> Path:
    options = Options(
        target=target,
        nonce="judged twice",
        headers={"authorization": "Bearer own"},
        other_headers={"authorization": "Bearer other"},
        selection=requirements,
        timeout=120,
        watch=False,  # other tests run beside this one
        full_requests=True,
    )
    write(folder, Run(options, folder, Progress()).execute())
    return folder


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps requests and what was played: of forecasts a fifth of a quick run's, of collectives a quarter.

    How many there are says how sure a figure is, and nothing of whether both judges come to it.
    """
    with served(MINIMAL_SERVER) as target, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chosen, "QUICK", chosen.Extent(chosen.QUICK.windows // 4, chosen.QUICK.intervals))
        patch.setattr(accuracy, "QUICK", Size(worlds=2, days=3, origins=6))
        return _made(target, tmp_path_factory.mktemp("played"), "FCT-001", "FCT-002", "FCT-003", "RES-010", "SCH-007")


def _agree(folder: Path, found: Mapping[str, Judged]) -> None:
    printed = report(folder)
    assert {name: printed[name].judged for name in found} == dict(found)
    assert {name: verdict(name, judged) for name, judged in found.items()} == {n: printed[n].verdict for n in found}


def test_what_misses_its_threshold_by_luck_alone_is_open() -> None:
    """FCT-002 asks for 0.88; the other bound says how good the forecast may be all the same."""
    assert verdict("FCT-002", Judged(0.87, 0.85, 100, other=0.885)) == "inconclusive"
    assert verdict("FCT-002", Judged(0.87, 0.85, 100, other=0.875)) == "fail"
    assert verdict("FCT-002", Judged(0.89, 0.87, 100, other=0.90)) == "inconclusive"


@pytest.mark.slow
def test_both_judges_agree_on_forecasts(played: Path) -> None:
    _agree(played, forecast.judge(played))


@pytest.mark.slow
def test_both_judges_agree_on_phases(played: Path) -> None:
    _agree(played, {"FCT-003": phases.judge(played)})


@pytest.mark.slow
def test_both_judges_agree_on_collectives(played: Path) -> None:
    _agree(played, {"RES-010": collectives.judge(played)})


@pytest.mark.slow
def test_both_judges_agree_on_shares(played: Path) -> None:
    _agree(played, {"SCH-007": shares.judge(played)})


def test_both_judges_agree_on_an_index_with_its_requests(tmp_path: Path) -> None:
    with served(KEPT_BADLY) as target:
        folder = _made(target, tmp_path / "index", "IDX-001", "IDX-002", "IDX-003", "IDX-004")
    found = index.judge(index.from_requests(folder))
    assert found["IDX-001"].estimate > 0.0
    assert found["IDX-002"].estimate < 1.0
    _agree(folder, found)


def test_the_second_judge_follows_what_was_answered(tmp_path: Path) -> None:
    """With the samples of one page alone the gap is as long as the window: no figure is taken from the report."""
    folder = tmp_path / "copy"
    shutil.copytree(RUNS / "sampling", folder)
    packed = folder / "transcript.jsonl.xz"
    lines = lzma.decompress(packed.read_bytes()).decode().splitlines()
    first = next(line for line in lines if "&to=" in line)
    kept = [line for line in lines if "&to=" not in line or line == first]
    packed.write_bytes(lzma.compress("\n".join(kept).encode()))
    items = json.loads(json.loads(first)["body"])["items"]
    judged = sampling.judge(folder)
    assert judged.n == len(items) < report(folder)["MET-002"].judged.n
    assert judged.estimate > 60.0
    assert verdict("MET-002", judged) == "fail"
