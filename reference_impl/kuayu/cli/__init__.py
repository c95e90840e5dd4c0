"""The command ``kuayu``. Each part is loaded only when it is asked for, so that help stays quick."""

import importlib
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import kuayu

PARTS = {
    "check": ("kuayu.cli.check", "check", "Serve the reference, test it over HTTP with the suite, write the report."),
    "conformance": ("kuayu_conformance.cli", "app", "Test an implementation over HTTP, and judge reports again."),
    "serve": ("kuayu.cli.serve", "serve", "Serve the reference implementation."),
    "collect": ("kuayu.cli.collect", "collect", "Send this host's telemetry to a service."),
    "agent": ("kuayu.cli.agent", "agent", "Take a domain's telemetry and forward it, also over an outage."),
    "graph": ("kuayu.cli.graph", "graph", "Show the resource graph of a service, or follow it."),
    "beat": ("kuayu.cli.beat", "beat", "Send signs of life of nodes, lines of their logs, and steps of jobs."),
    "faults": ("kuayu.cli.faults", "faults", "Show what is wrong with nodes, domains and jobs, or follow it."),
    "probe": ("kuayu.cli.probe", "probe", "Measure what this host sustains."),
    "index": ("kuayu.cli.index", "index", "Compare devices for training tasks on measurements in a file."),
    "place": ("kuayu.cli.place", "place", "Decide where the jobs of a state run, and say why."),
    "demand": ("kuayu.cli.demand", "demand", "Tell what trainings or tasks need."),
    "forecast": ("kuayu.cli.forecast", "forecast", "Tell what will be needed, and what to do about it."),
    "transfers": ("kuayu.cli.transfers", "transfers", "Tell what data to fetch, or by which collective to agree."),
    "recovery": ("kuayu.cli.recovery", "recovery", "Tell what to hold against faults, or how jobs go on after one."),
    "adjust": ("kuayu.cli.adjust", "adjust", "Tell whether and how to adjust jobs as load and latency change."),
    "logs": ("kuayu.cli.logs", "logs", "Tell what faults a log shows, and what follows from them."),
    "bench": ("kuayu.cli.bench", "app", "Compare a policy of yours with the baselines on the same seeds."),
    "hold": ("kuayu.cli.hold", "hold", "Hold devices of a domain and fence its nodes as a service asks."),
    "live": ("kuayu.cli.live", "live", "Train a small model over processes that stand for domains, while they fail."),
    "train": ("kuayu.cli.train", "app", "Train what the reference ships as weights."),
}
"""Name of each part, where it is, and what it is for."""


class Parts(TyperGroup):
    """A group whose parts are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """Names of all parts."""
        return list(PARTS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """The part of that name, or None."""
        if cmd_name not in PARTS:
            return None
        module, name, purpose = PARTS[cmd_name]
        part = getattr(importlib.import_module(module), name)
        if not isinstance(part, typer.Typer):
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.command(help=None if part.__doc__ else purpose)(part)
            part = alone
        command = typer.main.get_command(part)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """List the parts without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, _, purpose) in PARTS.items()])


app = typer.Typer(cls=Parts, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def _version(wanted: bool) -> None:  # noqa: FBT001 - Typer's signature
    if wanted:
        typer.echo(f"kuayu {kuayu.__version__}")
        raise typer.Exit


@app.callback()
def commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Kuayu 跨域: cross-domain AI compute, measured by the same indicators, and tested."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a light installation lacks is said with how to get it."""
    try:
        app(args=arguments, prog_name="kuayu")
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("kuayu"):
            raise
        typer.echo(f"error this command needs {missing.name}\nhint  pip install 'kuayu[reference]'", err=True)
        raise SystemExit(3) from missing
