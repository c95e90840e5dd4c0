"""Train what the reference ships as weights: ``python -m kuayu_training recogniser|rule|scheduler --help``."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

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
    windows: Annotated[int, typer.Option(metavar="N", min=1, help="Windows that each choice plays.")] = 8,
    processes: Annotated[int, typer.Option(metavar="N", min=1, help="Windows to play at a time.")] = 2,
) -> None:
    """Tune the constants of the rule that chooses where jobs run, in worlds of the suite, and write what was found."""
    from kuayu_training.scheduling.tuning import tune

    _shown(lambda progress: tune(seed, output, windows, processes, progress))


@app.command()
def scheduler(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Everything follows from it.")],
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder to write weights and curves to.", file_okay=False)
    ],
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Networks to train, each from a seed of its own.")] = 5,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps that each learns from.")] = 20_000,
    looks: Annotated[int, typer.Option(metavar="N", min=1, help="Points of each learning curve.")] = 3,
    looking: Annotated[int, typer.Option(metavar="N", min=1, help="Scenarios that each point is measured in.")] = 6,
    held: Annotated[
        int, typer.Option(metavar="N", min=2, help="Scenarios of each kind in which the best is compared.")
    ] = 8,
    processes: Annotated[int, typer.Option(metavar="N", min=1, help="Networks to train at a time.")] = 2,
) -> None:
    """Train the network that chooses where jobs run, in worlds of the suite, and write its weights.

    It begins with what the rule does, and is improved by proximal policy optimisation with masked actions. If the best
    network is not better than the rule in scenarios that neither was chosen by, no weights are written.
    """
    from kuayu_training.scheduling.scheduler import Budget, train

    _shown(lambda progress: train(seed, output, Budget(seeds, steps, looks, looking, held, processes), progress))


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

        written = training(progress)
    for path in written:
        errors.print(f"wrote {escape(str(path))}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    app(prog_name="python -m kuayu_training")
