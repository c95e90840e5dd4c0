"""Judge the forecaster by public traces, or fit it.

``python -m kuayu_training.forecast [judge|fit|arrivals|flows] [--json FILE]``. The traces are ``demand_series`` and
``job_traces`` in the folder that KUAYU_DATA names (default ../shared/data). The network was fitted to the first half of
every source; the last quarter is what is judged by. *arrivals* shows how jobs come together in the first half, which
the forecaster knows as one number. *flows* judges submissions and requests. FILE gets the figures of *judge* and
*flows*. How structure and history are put together is chosen by ``python -m kuayu_training.forecast.validation``.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import kuayu.forecast
from kuayu_training.forecast.judgement import (
    Backtest,
    Boosting,
    figures,
    judge,
    judge_flow,
    judge_jobs,
    judge_slow,
    tables,
)
from kuayu_training.forecast.sources import (
    AHEAD,
    Source,
    arrival_shapes,
    arrival_tables,
    as_before,
    folder,
    missing_by,
    read_jobs,
    sources,
)
from kuayu_training.forecast.sources import flows as flows_of

SHIPPED = Path(kuayu.forecast.__file__).parent / "history.npz"

ERRORS = (0.1, 0.01, 0.3, 1.0)
"""Log-normal errors of what is told of durations."""

SEED = 11


def main() -> int:
    """Fit and write the weights, or print the judgement; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.forecast", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=("judge", "fit", "arrivals", "flows"), default="judge", help="what to do"
    )
    parser.add_argument("--data", type=Path, default=folder(), help="folder with demand_series and job_traces in it")
    parser.add_argument("--origins", type=int, default=240, help="instants from which each source is forecast")
    parser.add_argument("--slow", type=int, default=16, help="instants for AutoARIMA and AutoETS; 0 leaves them out")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    try:
        datasets = list(sources(arguments.data))
        if arguments.what == "fit":
            return _fit(datasets)
        if arguments.what == "arrivals":
            return _print(arrival_tables(list(arrival_shapes(arguments.data, datasets))))
        if absent := [name for name in ("statsforecast", "lightgbm") if find_spec(name) is None]:
            sys.stderr.write(f"not installed, and left out: {', '.join(absent)}\n")
        if arguments.what == "flows":
            judged = (judge_flow(flow, arguments.origins, arguments.slow) for flow in flows_of(arguments.data))
            rows = figures([row for every in judged for row in every])
        else:
            rows = figures(_judge(arguments.data, datasets, arguments.origins, arguments.slow))
    except FileNotFoundError as error:
        sys.stderr.write(f"no {error.filename}; set KUAYU_DATA to the folder of the public data\n")
        return 2
    if arguments.json:
        _write(arguments.json, rows)
    return _print(tables(rows))


def _print(shown: Iterable[Table]) -> int:
    console = Console(width=150)
    for table in shown:
        console.print(table)
    return 0


def _fit(datasets: Sequence[Source]) -> int:
    from kuayu_training.forecast.fitting import fit, write

    write(fit(datasets, Console().print), SHIPPED)
    return 0


def _judge(data: Path, datasets: Sequence[Source], count: int, slow: int) -> list[Backtest]:
    boosting = Boosting(datasets, AHEAD)
    backtests: list[Backtest] = []
    for source in datasets:
        backtests += judge(source, count, boosting)
        backtests += judge_slow(source, slow) if slow else []
        if source.name == "itp":
            jobs = read_jobs(data, "itp", source.domains)
            tellers = {f"jobs, σ {width}": missing_by(jobs, width, SEED) for width in ERRORS}
            half = source.offset + 30 * source.values.shape[1]
            backtests += judge_jobs(source, jobs, tellers | {"jobs, as before": as_before(jobs, half)}, count)
    return backtests


def _write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
