"""The command ``kuayu``. Each command is imported only when it is called, so that help starts quickly."""

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import kuayu

GROUPS = {
    "Test an implementation (vendors, standards bodies)": {
        "conformance": ("kuayu_conformance.cli", "app", "Test any implementation over HTTP, and verify its report."),
        "check": ("kuayu.cli.check", "check", "Serve the reference and run the conformance suite against it."),
    },
    "Run jobs (researchers, integrators)": {
        "up": ("kuayu.cli.up", "up", "Start the service, and this host as a domain that runs jobs."),
        "submit": ("kuayu.cli.jobs", "submit", "Submit a job."),
        "jobs": ("kuayu.cli.jobs", "jobs", "List jobs and where they stand."),
        "logs": ("kuayu.cli.jobs", "logs", "Print what a job prints."),
        "why": ("kuayu.cli.jobs", "why", "Show what was decided about a job, and why."),
        "load": ("kuayu.cli.jobs", "load", "Tell how many requests come in for a serving job."),
        "cancel": ("kuayu.cli.jobs", "cancel", "Cancel a job."),
        "domain": ("kuayu.cli.domain", "app", "Add domains that run jobs, or run one from inside."),
    },
    "Run the service and its agents (integrators)": {
        "serve": ("kuayu.cli.serve", "serve", "Run the reference service."),
        "collect": ("kuayu.cli.collect", "collect", "Send this host's telemetry to a service."),
        "agent": ("kuayu.cli.agent", "agent", "Forward a domain's telemetry, and keep it through an outage."),
        "beat": ("kuayu.cli.collect", "beat", "Send heartbeats of nodes, their log lines, and job steps."),
        "hold": ("kuayu.cli.hold", "hold", "Control a domain: allocate devices and fence nodes on request."),
        "engine": ("kuayu.cli.hold", "app", "Check what starts and ends the processes of jobs."),
        "kueue": ("kuayu.cli.kueue", "app", "Decide to which cluster Kueue's MultiKueue sends a workload."),
        "probe": ("kuayu.cli.probe", "probe", "Benchmark this host: compute, memory, storage, network."),
    },
    "Watch nodes, jobs and faults (integrators)": {
        "graph": ("kuayu.cli.graph", "graph", "Show or follow the resource graph of a service."),
        "faults": ("kuayu.cli.faults", "faults", "Show or follow faults of nodes, domains and jobs."),
        "diagnose": ("kuayu.cli.diagnose", "diagnose", "Find faults in log files, and what to do about each."),
    },
    "Ask for decisions (integrators)": {
        "index": ("kuayu.cli.index", "index", "Compare accelerators for training tasks."),
        "demand": ("kuayu.cli.demand", "demand", "Estimate what training jobs need."),
        "forecast": ("kuayu.cli.forecast", "forecast", "Forecast demand, and plan for its peaks."),
        "place": ("kuayu.cli.place", "place", "Decide where jobs run, and explain each decision."),
        "transfers": ("kuayu.cli.resilience", "transfers", "Plan data transfers, and choose collectives."),
        "recovery": ("kuayu.cli.resilience", "recovery", "Plan backups before a fault, and the recovery after it."),
        "adjust": ("kuayu.cli.resilience", "adjust", "Adjust running jobs to changes of load and latency."),
    },
    "Compare and train (researchers)": {
        "bench": ("kuayu.cli.bench", "app", "Compare a scheduling policy with the baselines."),
        "live": ("kuayu.cli.live", "live", "Train a small model while faults are injected."),
    },
}
"""Commands by who uses them: name of each, its module, its function or app there, and what it is for."""

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, name, purpose = COMMANDS[cmd_name]
        function = getattr(importlib.import_module(module), name)
        if isinstance(function, typer.Typer):
            group = function
        else:
            group = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            group.command(help=None if function.__doc__ else purpose)(function)
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """List the commands by who uses them, without importing them.

        Typer's ``rich_help_panel`` would import every command for this, and box this help while all others are plain.
        """
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", purpose) for name, (_, _, purpose) in group.items()])


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def _version(wanted: bool) -> None:  # noqa: FBT001 - Typer's signature
    if wanted:
        typer.echo(f"kuayu {kuayu.__version__}")
        raise typer.Exit


@app.callback()
def commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Kuayu 跨域: conformance suite and reference implementation of an open standard for cross-domain AI compute."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a light installation lacks is said with how to get it."""
    try:
        app(args=arguments, prog_name="kuayu")
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("kuayu"):
            raise
        called = sys.argv[1:] if arguments is None else arguments
        extra = "simulation" if "bench" in called[:1] else "reference"
        typer.echo(f"error this command needs {missing.name}\nhint  pip install 'kuayu[{extra}]'", err=True)
        raise SystemExit(3) from missing
