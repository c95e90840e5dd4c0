"""Train what the reference ships as weights: ``python -m kuayu_training recogniser|rule|scheduler --help``."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from kuayu.cli.terminal import fail
from kuayu_training.workers import USAGE, WorkersError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)
errors = Console(stderr=True, highlight=False)


@app.callback()
def parts() -> None:
    """Train what the reference ships as weights."""


@app.command()
def recogniser(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Everything follows from it.")],
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write the weights to.", file_okay=False)],
    worlds: Annotated[int, typer.Option(metavar="N", min=2, help="Worlds of the training generator to play.")] = 100,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Times to show each snapshot.")] = 16,
    settling: Annotated[int, typer.Option(metavar="N", min=1, help="Further worlds to tune the damping on.")] = 4,
    start: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights to go on from; without, it begins anew.", exists=True)
    ] = None,
    processes: Annotated[int, typer.Option(metavar="N", min=1, help="Processes and threads to use.")] = 2,
) -> None:
    """Train the recognisers of node states on telemetry of the training generator, and write their weights."""
    from kuayu_training.recogniser import Budget, train

    _shown(lambda progress: train(seed, output, Budget(worlds, epochs, settling, processes, start), progress))


@app.command()
def rule(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Everything follows from it.")],
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write what was found to.", file_okay=False)],
    generations: Annotated[int, typer.Option(metavar="N", min=1, help="Generations of the search.")] = 24,
    windows: Annotated[int, typer.Option(metavar="N", min=1, help="Windows of each source in a generation.")] = 8,
    held_out: Annotated[
        int, typer.Option("--held", metavar="N", min=2, help="Windows of each source to compare in.")
    ] = 64,
    workers: Annotated[str, typer.Option(metavar="N|ADDRESS", help=f"Who plays windows: {USAGE}.")] = "2",
    apart: Annotated[  # noqa: FBT002 - a flag of the command
        bool, typer.Option("--apart", help="Compare groups of what was found before, and what ships.")
    ] = False,
) -> None:
    """Tune the constants of the rule that chooses where jobs run, by CMA-ES in worlds of the suite, compiled.

    What was found is compared with what ships in windows that it was not found in; nothing is changed by itself.
    """
    from kuayu_training.scheduling import tuning

    if apart:
        if not (output / tuning.FILE).is_file():
            raise typer.BadParameter(f"there is no {tuning.FILE} in {output}: tune first, without --apart")
        _shown(lambda progress: tuning.apart(seed, output, held_out, workers, progress))
        return
    _shown(lambda progress: tuning.tune(seed, output, generations, windows, held_out, workers, progress))


@app.command()
def scheduler(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Everything follows from it.")],
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder to write weights and curves to.", file_okay=False)
    ],
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Networks to train, each from a seed of its own.")] = 5,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Half hours that each learns from.")] = 160_000,
    looks: Annotated[int, typer.Option(metavar="N", min=1, help="Points of each learning curve.")] = 6,
    looking: Annotated[int, typer.Option(metavar="N", min=1, help="Windows of each source for each point.")] = 12,
    held_out: Annotated[
        int, typer.Option("--held", metavar="N", min=2, help="Windows of each kind to compare the best in.")
    ] = 24,
    workers: Annotated[str, typer.Option(metavar="N|ADDRESS", help=f"Who trains and plays: {USAGE}.")] = "2",
) -> None:
    """Train the network that sets the rule's constants, by PPO in worlds of the suite, and write its weights.

    It begins with the rule as it ships. What is written says whether the best network should ship in its place.
    """
    from kuayu_training.scheduling.scheduler import Budget, train

    _shown(lambda progress: train(seed, output, Budget(seeds, steps, looks, looking, held_out, workers), progress))


def _shown(training: Callable[[Callable[[str, float], None]], list[Path]]) -> None:
    """Train with a bar, or a line for each part, and say what was written."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("[bold]train[/]"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("", total=1.0)

        def progress(name: str, share: float) -> None:
            bar.update(task, description=name, completed=share)
            if share >= 1 and not errors.is_terminal:
                errors.print(f"{name} done")

        try:
            written = training(progress)
        except WorkersError as error:
            raise fail(error.cause, error.hint) from error
    for path in written:
        errors.print(f"wrote {escape(str(path))}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    app(prog_name="python -m kuayu_training")
