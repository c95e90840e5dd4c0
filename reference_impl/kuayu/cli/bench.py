"""``kuayu bench``: what somebody else has written beside what the suite compares with, on the same seeds."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from kuayu.cli.terminal import USAGE, fail

if TYPE_CHECKING:
    from kuayu.bench.judgement import Result
    from kuayu_conformance.testbed.scheduling.engine.view import View
    from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)
errors = Console(stderr=True, highlight=False)

HOUR = 3600.0
YOURS = "yours"


@app.callback()
def parts() -> None:
    """Compare what you have written with what the suite compares with."""


@app.command()
def policy(
    *,
    name: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="Class with a method decide(view).")],
    family: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Family of worlds; may be repeated, reference by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Worlds of each family.")] = 5,
    first: Annotated[int, typer.Option(metavar="N", min=0, help="Number of the first world.")] = 0,
    sites: Annotated[int, typer.Option(metavar="N", min=5, max=64, help="Domains of a world.")] = 5,
    nodes: Annotated[int, typer.Option(metavar="N", min=1, help="Nodes of a domain on average.")] = 16,
    load: Annotated[float, typer.Option(metavar="SHARE", min=0.01, help="Devices asked for over devices.")] = 0.7,
    warm: Annotated[float, typer.Option(metavar="H", min=0, help="Hours of warm-up before the jobs that count.")] = 4.0,
    window: Annotated[
        float, typer.Option(metavar="H", min=0.1, help="Hours in which the jobs that count arrive.")
    ] = 6.0,
    drain: Annotated[
        float, typer.Option(metavar="H", min=0, help="Hours that these jobs have to finish after that.")
    ] = 14.0,
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Where jobs come from: fitted, fitted-philly, itp, philly or openb.")
    ] = "fitted",
    against: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Baseline; may be repeated, all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every result as JSON.")] = False,
) -> None:
    """Play your policy and all baselines in the same worlds, and compare them.

    The class is made without arguments for each world; what its method decide(view) returns is carried out. The module
    is looked for in the working directory too. Worlds, windows and baselines are those of the suite.
    """
    from kuayu_conformance.testbed.scheduling.scenarios import Cell, Timing
    from kuayu_conformance.testbed.scheduling.windows import BASELINES, LITERATURE
    from kuayu_conformance.testbed.scheduling.workload import FAMILIES, SOURCES

    make = _named(name)
    families = list(dict.fromkeys(family or ["reference"]))
    _check(families, FAMILIES, "--family", "family")
    _check([source], SOURCES, "--source", "source")
    known = {**BASELINES, **LITERATURE}
    _check(against or (), known, "--against", "baseline")
    try:
        timing = Timing(*(round(hours * 60) * 60.0 for hours in (warm, window, drain)))
        cells = [Cell(item, load, source, sites, nodes) for item in families]
    except ValueError as error:
        raise fail(str(error), "give hours of warm start, window and drain", USAGE) from error
    policies: dict[str, Callable[[], Any]] = {YOURS: lambda: _PolicyGuard(name, make)}
    policies |= {entry: outcome for entry, outcome in known.items() if not against or entry in against}
    results = _results(policies, cells, timing, range(first, first + seeds))
    if as_json:
        _print_json(name, results)
    else:
        from kuayu.cli.bench_tables import show_results

        show_results(results, YOURS, name)


class _PolicyGuard:
    """A policy of somebody else: what goes wrong in it is told with its name."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self._name = name
        try:
            self._policy = make()
        except Exception as error:
            raise fail(
                f"{name}() raised {_brief(error)}{_where(error)}", "it must be constructible without arguments"
            ) from error

    def decide(self, view: "View") -> Sequence[Any]:
        """Its orders."""
        from kuayu_conformance.testbed.scheduling.engine.orders import Order

        try:
            orders = list(self._policy.decide(view))
        except Exception as error:
            cause = f"{self._name}.decide raised {_brief(error)}{_where(error)}"
            raise fail(cause, "decide(view) returns a sequence of orders; none means that everybody waits") from error
        for order in orders:
            if not isinstance(order, Order):
                kinds = "Start, Stop, Move and Resize of kuayu_conformance.testbed.scheduling.engine.orders"
                raise fail(f"{self._name}.decide gave {order!r:.80}, which is not an order", f"orders are {kinds}")
        return orders


def _named(name: str) -> Callable[[], Any]:
    """The class of a name MODULE:CLASS."""
    module, _, kind = name.partition(":")
    if not module or not kind:
        raise fail(
            f"{name!r} is not the name of a class", "write it as MODULE:CLASS, for example mine.policies:Greedy", USAGE
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        matches = getattr(importlib.import_module(module), kind)
    except ModuleNotFoundError as error:
        hint = "it is looked for in the working directory and where Python looks for modules"
        raise fail(f"there is no module {error.name}", hint, USAGE) from error
    except AttributeError as error:
        raise fail(f"module {module} has no {kind}", f"write it as MODULE:CLASS; {error}", USAGE) from error
    except Exception as error:
        raise fail(f"importing {module} raised {_brief(error)}{_where(error)}", "fix the module", USAGE) from error
    if not callable(matches) or not callable(getattr(matches, "decide", None)):
        raise fail(f"{name} is not a class with a method decide", "a policy has one method, decide(view)", USAGE)
    outcome: Callable[[], Any] = matches
    return outcome


def _results(
    policies: Mapping[str, Callable[[], Any]], cells: "Sequence[Cell]", timing: "Timing", numbers: range
) -> "list[Result]":
    """Every policy in every window."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from kuayu.bench.judgement import result
    from kuayu_conformance.testbed.scheduling.windows import cohort

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    results = []
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("", total=len(policies) * len(cells) * len(numbers))
        for cell in cells:
            for number in numbers:
                window = _drawn(cell, timing, number)
                members = cohort(window)
                for entry, make in policies.items():
                    bar.update(task, description=f"{cell.family} {number}, {entry}")
                    results.append(result(entry, make(), window, members))
                    bar.advance(task)
    return results


def _drawn(cell: "Cell", timing: "Timing", number: int) -> "Scenario":
    """The scenario of a number; accelerators are dealt in turn, since that moves the figures most."""
    from kuayu_conformance.testbed.scheduling.scenarios import scenario
    from kuayu_conformance.testbed.scheduling.topology import ASSIGNMENTS
    from kuayu_conformance.testbed.scheduling.windows import cohort
    from kuayu_conformance.testbed.scheduling.workload import NotEnoughJobs
    from kuayu_conformance.testbed.scheduling.workload.traces import MissingTraces

    try:
        window = scenario(cell, timing, f"bench/{number}", assignment=number % ASSIGNMENTS)
        cohort(window)
    except MissingTraces as error:
        raise fail(str(error), "set KUAYU_DATA to the folder of the traces, or take --source fitted", USAGE) from error
    except (NotEnoughJobs, ValueError) as error:
        raise fail(str(error), "take other sizes, hours or families", USAGE) from error
    return window


def _check(names: Sequence[str], known: Any, option: str, kind: str) -> None:
    for name in names:
        if name not in known:
            raise fail(f"{option}: there is no {kind} {name!r}", f"there are {', '.join(known)}", USAGE)


def _print_json(name: str, results: "Sequence[Result]") -> None:
    import json
    from math import isfinite

    rows = [
        {
            key: None if isinstance(value, float) and not isfinite(value) else value
            for key, value in asdict(entry).items()
        }
        for entry in results
    ]
    typer.echo(json.dumps({"policy": name, "ours": YOURS, "results": rows}, indent=1))


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _where(error: Exception) -> str:
    """File and line of the innermost frame."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f", {Path(trace.tb_frame.f_code.co_filename).name} line {trace.tb_lineno}" if trace else ""
