"""What ships is what the traces lead to, and what is drawn from it looks like them; needs the public originals."""

import csv
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kuayu_conformance.testbed.scheduling.values import JobKind, Pool, Site
from kuayu_conformance.testbed.scheduling.workload import (
    EFFICIENCY,
    NETWORKS,
    OPENB_P95,
    REFERENCE_PEAK,
    NotEnoughJobs,
    demand,
    draw,
    traces,
)
from kuayu_conformance.testbed.scheduling.workload.__main__ import (
    FITTED,
    comparison_text,
    fitted_text,
    shipped_comparison,
)
from kuayu_conformance.testbed.scheduling.workload.traces import mean_and_p95, parameters

BESIDE = Path(__file__).parents[4].parent / "shared" / "data"
PACKAGE = Path(traces.__file__).parent
NAMES = tuple(f"d{number}" for number in range(8))
DAY = traces.DAY


@pytest.fixture(scope="module")
def data() -> Path:
    """Folder of the public originals."""
    folder = Path(os.environ.get("KUAYU_DATA") or BESIDE)
    if not (folder / "job_traces").is_dir():
        pytest.skip(f"no traces in {folder} (KUAYU_DATA names another folder), so that no fit is compared")
    return folder


def table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def sites(source: str) -> tuple[Site, ...]:
    sizes = demand(NAMES, "traces", source)
    pools = {name: (Pool("A800", max(2, round(sizes[name] / 8)), 8, {}),) for name in NAMES}
    return tuple(Site(name, 30.0, 110.0, pools[name]) for name in NAMES)


def test_what_ships_is_what_the_traces_lead_to(data: Path) -> None:
    assert fitted_text(data) == (PACKAGE / "fitted.json").read_text("utf-8")


def test_the_table_that_ships_is_what_traces_and_model_lead_to(data: Path) -> None:
    text = comparison_text({name: traces.read(name, data) for name in FITTED})
    assert text == (PACKAGE / "comparison.json").read_text("utf-8")


def test_the_skew_of_the_trace_is_the_one_of_the_design() -> None:
    ratios = sorted(cluster.ratio for cluster in parameters()[0]["itp"].clusters)
    assert ratios[0] == pytest.approx(0.14, abs=0.005)
    assert ratios[-1] == pytest.approx(0.67, abs=0.005)


@pytest.mark.parametrize("name", FITTED)
def test_sizes_of_jobs_are_those_of_the_trace(name: str) -> None:
    for figure, (real, model) in shipped_comparison()[name].items():
        if figure.startswith("share of jobs of"):
            assert model == pytest.approx(real, rel=0.15, abs=0.002), figure
        if figure.startswith("share of work in jobs"):
            assert model == pytest.approx(real, abs=0.06), figure


@pytest.mark.parametrize("name", FITTED)
def test_durations_are_those_of_the_trace(name: str) -> None:
    for figure, (real, model) in shipped_comparison()[name].items():
        if figure.startswith("duration"):
            assert model == pytest.approx(real, rel=0.2), figure


@pytest.mark.parametrize("name", FITTED)
def test_submissions_come_in_bursts_of_the_same_order(name: str) -> None:
    for figure, (real, model) in shipped_comparison()[name].items():
        if "variance over mean" in figure or "variation" in figure:
            assert 0.5 * real < model < 2 * real, figure


def test_clusters_are_as_uneven_over_time_as_those_of_the_trace() -> None:
    rows = shipped_comparison()["itp"]
    pairs = [pair for figure, pair in rows.items() if figure.endswith("mean over p95")]
    assert len(pairs) == 9
    assert np.mean([abs(model - real) for real, model in pairs]) < 0.06
    assert np.corrcoef(np.array(pairs).T)[0, 1] > 0.9


@pytest.mark.parametrize("source", ["itp", "philly", "openb"])
def test_a_trace_is_played_at_the_load_that_is_asked_for(source: str, data: Path) -> None:
    its = sites(source)
    drawn = draw("reference", its, 0.6, 2 * DAY, "traces", source, data=data)
    capacity = sum(pool.devices for site in its for pool in site.pools)
    held = sum(job.requested * min(job.work / job.requested / job.used, 2 * DAY - job.submitted) for job in drawn.jobs)
    assert held / (2 * DAY * capacity) == pytest.approx(0.6, rel=0.03)
    assert {job.home for job in drawn.jobs} == set(NAMES)
    assert drawn == draw("reference", its, 0.6, 2 * DAY, "traces", source, data=data)


def test_a_cluster_of_its_own_size_submits_the_jobs_of_the_trace(data: Path) -> None:
    trace = traces.read("itp", data)
    its = sites("itp")
    drawn = draw("reference", its, 0.6, 4 * DAY, "traces", "itp", data=data)
    real = set(zip(trace.duration.tolist(), trace.devices.tolist(), strict=True))
    fresh = [job for job in drawn.jobs if job.submitted > 0 and job.kind is not JobKind.SERVING]
    found = sum((round(job.work / job.requested / job.used), float(job.requested)) in real for job in fresh)
    assert found > 0.98 * len(fresh)


def test_a_scenario_longer_than_its_trace_is_refused(data: Path) -> None:
    with pytest.raises(NotEnoughJobs, match="itp has jobs for 40 days"):
        draw("reference", sites("itp"), 0.6, 50 * DAY, "traces", "itp", data=data)


def test_a_folder_without_the_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(traces.MissingTraces, match=r"itp is not in .*; KUAYU_DATA"):
        traces.read("itp", tmp_path)


def test_openb_is_as_large_as_is_said(data: Path) -> None:
    pods = traces.read("openb", data)
    assert mean_and_p95(pods.submitted, pods.duration, pods.devices, *pods.span)[1] == pytest.approx(OPENB_P95, abs=0.1)


def test_conventional_models_take_the_time_that_was_measured(data: Path) -> None:
    """Steps of ElasticFlow on A100 at a fixed batch, ``a + b / n``: the part ``a`` over that of one device."""
    measured = defaultdict(list)
    for row in table(data / "scaling_profiles" / "elasticflow_throughputs.csv"):
        if row["gpu_type"] == "A100" and float(row["iterations_per_s"]) > 0:
            key = (row["model"], int(row["global_batch_size"]))
            measured[key].append((float(row["num_gpus"]), 1 / float(row["iterations_per_s"])))
    batches = (("resnet50", 256), ("vgg16", 256), ("inception3", 128), ("bert", 128), ("gpt2", 256))
    for key, network in zip(batches, NETWORKS, strict=True):
        devices, seconds = np.array(measured[key]).T
        fixed, shared = np.linalg.lstsq(np.array([1 / seconds, 1 / (devices * seconds)]).T, np.ones(len(seconds)))[0]
        assert fixed / (fixed + shared) == pytest.approx(network.fixed, abs=0.001)
        assert seconds[devices == 1][0] == pytest.approx(network.step, abs=0.001)
    for batch, share in ((64, 0.31), (128, 0.16), (256, 0.08)):
        devices, seconds = np.array(measured["resnet50", batch]).T
        fixed, shared = np.linalg.lstsq(np.array([1 / seconds, 1 / (devices * seconds)]).T, np.ones(len(seconds)))[0]
        assert fixed / (fixed + shared) == pytest.approx(share, abs=0.01)


def test_training_of_language_models_reaches_the_share_of_the_peak_that_is_said(data: Path) -> None:
    rows = table(data / "llm_training_runs" / "runs.csv")
    reached = [
        float(row["measured_tflops_per_accel"]) * 1e12 / REFERENCE_PEAK
        for row in rows
        if row["source"] == "llm-foundry-bench" and "A100" in row["accelerator"] and row["measured_tflops_per_accel"]
    ]
    assert len(reached) == 139
    assert np.percentile(reached, (5, 50, 95)) == pytest.approx((0.41, EFFICIENCY, 0.60), abs=0.005)
