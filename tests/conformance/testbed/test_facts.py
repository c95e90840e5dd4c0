"""The fitted numbers are those that the public measurements lead to; needs the originals, and says where it looked."""

import csv
import gzip
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kuayu_conformance.testbed.duty import DUTY_MEDIAN, DUTY_SIGMA
from kuayu_conformance.testbed.telemetry import population
from kuayu_conformance.testbed.telemetry.population import A100, ASCEND, C550, H100, KINDS, MI300X, MLU370

BESIDE = Path(__file__).parents[3].parent / "shared" / "data"


@pytest.fixture(scope="module")
def data() -> Path:
    """Folder of the public originals."""
    folder = Path(os.environ.get("KUAYU_DATA") or BESIDE)
    if not (folder / "utilization").is_dir():
        pytest.skip(f"no public originals in {folder} (KUAYU_DATA names another folder), so that no fit is compared")
    return folder


def table(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        yield from csv.DictReader(lines)


def curve(data: Path, metric: str) -> np.ndarray:
    rows = table(data / "utilization" / "acme_cdf.csv.gz")
    return np.array([(float(r["value"]), float(r["cumulative_pct"])) for r in rows if r["metric"].startswith(metric)])


def test_power_under_a_limit(data: Path) -> None:
    runs = defaultdict(list)
    for row in table(data / "accelerator_benchmarks" / "zeus_power_limit_profiles.csv"):
        job = (row["gpu_type"], row["dataset"], row["network"], row["batch_size"])
        runs[job].append((float(row["time_per_epoch_s"]), float(row["average_power_w"])))
    found = defaultdict(list)
    for (gpu, *_), its in runs.items():
        fastest = min(its)
        for time, power in its:
            found[gpu, int(fastest[0] / time * 10)].append(power / fastest[1])
    for middle, expected in zip(population.SPEED_UNDER_LIMIT[:-1], population.POWER_UNDER_LIMIT[:-1], strict=True):
        medians = [np.median(found[gpu, int(middle * 10)]) for gpu in ("A40", "V100", "Quadro RTX 6000")]
        assert np.mean(medians) == pytest.approx(expected, abs=0.07)


def test_memory_that_jobs_hold(data: Path) -> None:
    levels, expected = population.MEMORY_QUANTILES
    both = []
    for cluster in ("Kalos", "Seren"):
        values = curve(data, f"{cluster} GPU memory (%)")
        unused = values[values[:, 0] <= 1, 1].max()
        both.append([np.interp(unused + (100 - unused) * level, values[:, 1], values[:, 0]) for level in levels])
    assert np.mean(both, axis=0)[1:-1] / 100 == pytest.approx(expected[1:-1], abs=0.02)


def test_idle_waiting_and_full_power(data: Path) -> None:
    for cluster in ("Kalos", "Seren"):
        power = curve(data, f"{cluster} GPU power (W)")
        low, half, high = np.interp((5, 50, 95), power[:, 1], power[:, 0])
        assert low == pytest.approx(A100.idle, abs=1)
        waiting = A100.idle + population.WAITING_POWER * (A100.limit - A100.idle)
        assert half == pytest.approx(waiting, rel=0.2)
        assert high == pytest.approx(A100.limit, rel=0.05)
        works = curve(data, f"{cluster} GPU utilisation (%)")
        assert np.interp(1, works[:, 0], works[:, 1]) < 35


def test_steps_of_real_jobs(data: Path) -> None:
    spans, last = defaultdict(lambda: defaultdict(list)), defaultdict(list)
    for row in table(data / "failures" / "bytedance_rank_step_times.csv.gz"):
        spans[row["job"]][row["step"]].append(float(row["span_s"]))
        last[row["job"], int(row["stage"])].append(float(row["communication_s"]) / float(row["span_s"]))
    variation = sorted(
        float(np.std(steps) / np.mean(steps))
        for steps in ([np.median(its) for its in job.values()] for job in spans.values())
    )
    assert variation == pytest.approx(population.STEP_VARIATION, rel=0.05)
    exposed = sorted(float(np.median(last[job, stage])) for job, stage in (("AR", 3), ("SE", 1)))
    assert exposed == pytest.approx(population.EXPOSED_COMMUNICATION, abs=0.01)


def test_healthy_workers_keep_step(data: Path) -> None:
    times = defaultdict(list)
    for row in table(data / "failures" / "pai_straggler_workers.csv.gz"):
        times[row["job"], row["worker"]].append(float(row["batch_time_norm"]))
    for job in ("1", "3"):
        medians = np.array([np.median(its) for (of, _), its in times.items() if of == job])
        near = medians[np.abs(medians / np.median(medians) - 1) < 0.05] / np.median(medians)
        assert len(near) >= 7
        assert np.abs(near - 1).max() < 2.5 * population.WORKER_SPREAD


def test_duty_of_servers(data: Path) -> None:
    duty = [float(r["duty_pct"]) for r in table(data / "demand_series" / "genai_container_gpu_duty_57s.csv.gz")]
    lower, middle, upper = np.percentile([value for value in duty if value >= 1], (25, 50, 75)) / 100
    assert middle == pytest.approx(DUTY_MEDIAN, rel=0.02)
    assert np.log(upper / lower) / 1.349 == pytest.approx(DUTY_SIGMA, rel=0.02)


def test_noise_of_power_under_even_load(data: Path) -> None:
    series = defaultdict(list)
    for row in table(data / "accelerator_benchmarks" / "mlperf_node_power_series.csv.gz"):
        series[row["system"], row["benchmark"], row["node"]].append(float(row["watts"]))
    noises = []
    for its in series.values():
        late = np.array(its[60:])
        noises.append(1.4826 * np.median(np.abs(np.diff(late))) / np.sqrt(2) / np.median(late))
    assert np.median(noises) == pytest.approx(population.NOISE_OF_POWER, rel=0.1)


def test_failures_of_the_large_run(data: Path) -> None:
    causes = list(table(data / "failures" / "llama3_405b_interruptions.csv"))
    assert sum(int(row["interruptions"]) for row in causes) == 419
    assert sum(int(row["interruptions"]) for row in causes if row["category"] == "GPU") == 268


def test_capacities_and_limits_are_published_ones(data: Path) -> None:
    published = {
        (row["chip"], row["metric"]): float(row["value"])
        for row in table(data / "accelerator_facts" / "accelerator_facts.csv")
    }
    named = {
        "H100 SXM": H100, "A100 SXM": A100, "MI300X": MI300X, "MLU370-X8": MLU370, "C550": C550,
        "Ascend (Atlas 800T A2)": ASCEND,
    }  # fmt: skip
    for name, kind in named.items():
        assert published[name, "power"] == kind.limit
        assert published[name, "memory"] == kind.memory >> 30
    assert all(kind.idle < kind.context < kind.limit for kind in KINDS)
    assert all(26 <= kind.context - kind.idle <= 50 for kind in (A100, H100))
