"""How benchmarks that run in one process are measured, shown and written down."""

import gc
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.session import PerformanceRegression

Json = dict[str, Any]
Result = TypeVar("Result")

DIGITS = 4
"""Significant digits of what is written: more would only change with every run."""

COMPARED = ("min", "max", "mean", "stddev", "median", "iqr", "outliers", "ops", "rounds", "iterations")
"""Figures that a stored run needs to be compared."""

TOO_SLOW = "slower than the baseline allows; where that is meant, or the machine is another: make benchmark-baseline"


@dataclass(frozen=True)
class Row:
    """What was measured of one test: its identifier, the median of its runs in ms, and its rates by unit."""

    test: str
    median_ms: float
    rates: dict[str, float]


ROWS = pytest.StashKey[list[Row]]()


class Measurement:
    """Measures one call, repeated, and adds its rates in the units that people use."""

    def __init__(self, benchmark: BenchmarkFixture, rows: list[Row]) -> None:
        """Measure by the fixture of pytest-benchmark, and add a row."""
        self._benchmark = benchmark
        self._rows = rows

    def __call__(
        self,
        call: Callable[..., Result],
        *,
        prepare: Callable[[], tuple[Any, ...]] | None = None,
        rounds: int = 5,
        **amounts: float,
    ) -> Result:
        """Run the call until its median is known; the result of the last run.

        Args:
            call: What is measured.
            prepare: Makes the arguments of each run, which is not measured; without it, there are none.
            rounds: How many runs there are where they are prepared; others go on for about a second.
            amounts: How much one run gets done, by unit: ``jobs=3000`` adds ``jobs/s``.
        """
        # Modules that tests import would be walked through by every collection of garbage; a service has none of them.
        gc.collect()
        gc.freeze()
        try:
            if prepare is None:
                call()  # how often it is to be run, its first run would tell wrongly: caches are cold
                result: Result = self._benchmark(call)
            else:
                setup = lambda: (prepare(), {})  # noqa: E731 - it has no name but its keyword
                result = self._benchmark.pedantic(call, setup=setup, rounds=rounds, warmup_rounds=1)
        finally:
            gc.unfreeze()
        median = self._benchmark.stats.stats.median
        rates = {f"{unit}/s": _rounded(amount / median) for unit, amount in amounts.items()}
        self._benchmark.extra_info |= {"ms": _rounded(1000 * median), **rates}
        self._rows.append(Row(self._benchmark.fullname, 1000 * median, rates))
        return result


@pytest.fixture
def measure(benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Measurement:
    """Measures a call."""
    return Measurement(benchmark, request.config.stash.setdefault(ROWS, []))


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[None]:
    """Show medians beside those of the baseline; a run that is too slow ends with one line, not with a traceback."""
    if rows := config.stash.get(ROWS, []):
        _show(terminalreporter, rows, config.getoption("benchmark_compare"))
    try:
        return (yield)
    except PerformanceRegression:
        pytest.exit(TOO_SLOW, returncode=1)


def _show(terminal: pytest.TerminalReporter, rows: list[Row], baseline: Any) -> None:
    known: dict[str, float] = {}
    if isinstance(baseline, str) and Path(baseline).is_file():
        stored = json.loads(Path(baseline).read_text("utf-8"))
        known = {row["fullname"]: 1000 * row["stats"]["median"] for row in stored["benchmarks"]}
        other = "" if stored["machine_info"] == pytest_benchmark_generate_machine_info() else ", not as here"
        machine = f"Python {stored['machine_info']['python_version']}, {stored['machine_info']['cpu']['brand_raw']}"
        terminal.write_line(f"baseline of {stored['datetime'][:10]}: {machine}{other}")
    terminal.write_line(f"{'median':>13} {'baseline':>13} {'ratio':>6}")
    for row in rows:
        name = row.test.rpartition("::test_")[2].replace("_", " ")
        rates = ", ".join(f"{value:,.0f} {unit}" for unit, value in row.rates.items())
        before = known.get(row.test)
        compared = f"{before:>10.2f} ms {row.median_ms / before:>6.2f}" if before else f"{'–':>13} {'–':>6}"
        terminal.write_line(f"{row.median_ms:>10.2f} ms {compared}  {name}{rates and f': {rates}'}")


def pytest_benchmark_generate_machine_info() -> Json:
    """What of a machine explains its speed, and nothing that tells whose it is; the baseline is published."""
    return {
        "cpu": {"brand_raw": _processor()},
        "machine": platform.machine(),
        "python_implementation": platform.python_implementation(),
        "python_version": platform.python_version(),
        "system": platform.system(),
    }


def pytest_benchmark_generate_commit_info() -> Json:
    """Nothing: the baseline is part of a commit, which says all there is to say."""
    return {}


def pytest_benchmark_update_json(output_json: Json) -> None:
    """Leave out what no comparison needs: each single time, options, figures that no table shows."""
    for row in output_json["benchmarks"]:
        del row["options"]
        row["stats"] = {name: _rounded(row["stats"][name]) for name in COMPARED}


def _processor() -> str:
    """The processor's name as its maker gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
