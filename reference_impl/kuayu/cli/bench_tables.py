"""Results of policies as a table for people."""

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kuayu.bench.judgement import Result, ratios

HOUR = 3600.0
HEADINGS = ("", "h", "× yours", "money", "× yours", "slow", "used", "left", "moved", "no", "ms")
LEGEND = (
    "h: mean hours of training jobs from submission to end. money: for bandwidth, for a million seconds of work."
    " × yours: over yours, geometric mean over windows and its standard error; above one, yours is better. slow: 95th"
    " percentile of the bounded slowdown. used: work over capacity. left: jobs that were not finished. moved: jobs that"
    " were stopped or moved. no: orders that were not carried out. ms: median and 99th percentile of a decision."
)

console = Console(highlight=False)


def show_results(results: Sequence[Result], ours: str, name: str) -> None:
    """Print a table for each family: means over windows, and what they are over those of the policy in question."""
    for family in dict.fromkeys(result.family for result in results):
        console.print(_table([result for result in results if result.family == family], ours, family))
        console.print()
    console.print(f"[bold]{escape(ours)}[/] is {escape(name)}.")
    console.print(LEGEND, style="dim")


def _table(results: Sequence[Result], ours: str, family: str) -> Table:
    windows = len({result.seed for result in results})
    title = f"{family}, {windows} window{'s' if windows > 1 else ''}"
    table = Table(
        box=None, pad_edge=False, collapse_padding=True, header_style="bold", title=title, title_justify="left"
    )
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for policy in dict.fromkeys(result.policy for result in results):
        own = [result for result in results if result.policy == policy]
        table.add_row(
            escape(policy),
            f"{_mean(own, 'period') / HOUR:.2f}",
            _beside(results, policy, ours, "period"),
            f"{_mean(own, 'money'):.3g}",
            _beside(results, policy, ours, "money"),
            f"{_mean(own, 'slowdown'):.1f}",
            f"{_mean(own, 'utilisation'):.0%}",
            f"{_mean(own, 'unfinished'):.1f}",
            f"{_mean(own, 'migrations') + _mean(own, 'stops'):.1f}",
            f"{_mean(own, 'refusals'):.1f}",
            f"{_mean(own, 'median_ms'):.1f}/{_mean(own, 'p99_ms'):.0f}",
            style="bold" if policy == ours else None,
        )
    return table


def _mean(results: Sequence[Result], figure: str) -> float:
    return float(np.mean([getattr(result, figure) for result in results]))


def _beside(results: Sequence[Result], policy: str, ours: str, figure: str) -> str:
    """How many times ours it is; nothing for ours, a dash where there is nothing to compare."""
    if policy == ours:
        return ""
    result = ratios(results, policy, ours, figure)
    if not result:
        return "–"
    logarithms = np.log(result)
    error = f" ±{np.std(logarithms, ddof=1) / len(result) ** 0.5:.0%}" if len(result) > 1 else ""
    return f"{np.exp(logarithms.mean()):.2f}{error}"
