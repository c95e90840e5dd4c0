"""``kuayu beat``: signs of life of nodes and lines of their logs, until told to stop."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kuayu.cli.answers import check_url
from kuayu.cli.collect import stopping
from kuayu.cli.probe import USAGE, Token, errors, fail

if TYPE_CHECKING:
    from kuayu.engine.log_sending import LogSender
    from kuayu.engine.tailing import Source

SHORTEST_S = 0.05
"""Seconds between beats at least."""

PATIENCE_S = 2.0
"""Time that a beat may take; one that takes longer is as good as lost."""

LOG_PATIENCE_S = 10.0
ENDING_S = 1.0
"""Time for lines that are on their way when we are told to stop."""


def beat(
    *,
    node: Annotated[list[str], typer.Option(metavar="ID", help="Node that beats; may be repeated.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")] = (
        "http://127.0.0.1:8080"
    ),
    every: Annotated[float, typer.Option(metavar="S", min=SHORTEST_S, max=60, help="Seconds between beats.")] = 0.5,
    anew: Annotated[
        bool, typer.Option("--anew", help="The nodes were started anew, though this host was not: count from 1.")
    ] = False,
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]FILE",
            help="Log whose new lines are sent, - for the standard input; may be repeated. With several nodes, ID="
            " says of which it is.",
        ),
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]FILE",
            help="File to which training jobs add lines JOB RANK STEP, and in the end JOB RANK ended; the last of each"
            " rank goes with the beats. May be repeated.",
        ),
    ] = None,
    token: Token = None,
) -> None:
    """Send a service signs of life of nodes, new lines of their logs, and how far training jobs are.

    Beats are counted from when this host was started: numbers that begin anew tell the service that the node was
    repaired. They go on while the service is away; those that get lost then are not sent again. Lines of logs wait in
    their files and never hold beats up. Of files that are there already only what is added from now on counts; they
    may be rotated.
    """
    from kuayu.client import Client, ClientError
    from kuayu.engine.beating import Beater
    from kuayu.engine.host import seconds_up
    from kuayu.engine.log_sending import LogSender
    from kuayu.engine.step_file import StepFile

    nodes = _checked(node)
    check_url(url)
    with ExitStack() as stack:
        logs = [(of, stack.enter_context(_opened(file))) for of, file in _named(log, nodes, "--log")]
        progress: dict[str, StepFile] = {}
        for of, file in _named(steps, nodes, "--steps"):
            if of in progress:
                raise fail(f"--steps: {of} has two files", "have all its ranks write into one", USAGE)
            progress[of] = StepFile(stack.enter_context(_opened(file)), complain=partial(_odd, file))
        stop = stack.enter_context(stopping())
        client = stack.enter_context(Client(url, token=token, timeout_s=PATIENCE_S, attempts=1))
        # In so many parts of a second that whoever goes on with another period never falls behind what was sent.
        first = 1 if anew else int(seconds_up() / SHORTEST_S)
        beater = Beater(client, nodes, steps=progress, say=_say, first=first)
        typer.echo(f"kuayu beat for {', '.join(nodes)} at {url}, every {every:g} s", err=True)
        if logs:
            slow = stack.enter_context(Client(url, token=token, timeout_s=LOG_PATIENCE_S, attempts=1))
            stack.enter_context(_beside(LogSender(slow, logs, say=_say), stop))
        try:
            beater.run(stop, every)
        except ClientError as error:
            raise fail(error.cause, error.hint) from error
    typer.echo(
        f"{beater.taken} beats were taken; a node that beats no more counts as dead until it is deleted", err=True
    )


def _checked(nodes: Sequence[str]) -> list[str]:
    from kuayu_schemas import schema

    for each in nodes:
        if schema.errors("NodeShare", {"node": each, "devices": 1}):
            raise fail(f"--node {each!r} is no identifier", "letters, digits and ._- only, at most 128", USAGE)
    return list(dict.fromkeys(nodes))


def _named(files: Sequence[str] | None, nodes: Sequence[str], option: str) -> list[tuple[str, str]]:
    """Files, each with the node that it is of."""
    found = []
    for each in files or ():
        node, equals, file = each.partition("=")
        if equals and node in nodes:
            found.append((node, file))
        elif len(nodes) == 1:
            found.append((nodes[0], each))
        else:
            hint = f"write {option} {nodes[0]}={each}, with the node that it is of"
            raise fail(f"{option} {each} does not say of which node it is", hint, USAGE)
    return found


def _opened(file: str) -> "closing[Source]":
    """New lines of a file, or of the standard input."""
    from kuayu.engine.tailing import Pipe, Tail

    try:
        return closing(Pipe(sys.stdin.fileno()) if file == "-" else Tail(Path(file)))
    except OSError as error:
        hint = "name a file that can be read, or one that comes later"
        raise fail(f"cannot read {file}: {error.strerror}", hint, USAGE) from error


def _odd(file: str, line: str) -> None:
    """Say that a line of a file is none of steps."""
    _say(f"{file} has lines that tell of no step, such as {line[:60]!r}", "write JOB RANK STEP, or JOB RANK ended")


@contextmanager
def _beside(sender: "LogSender", stop: threading.Event) -> Iterator[None]:
    """Have lines sent beside the beats."""
    thread = threading.Thread(target=sender.run, args=(stop,), name="log lines", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(ENDING_S)


def _say(what: str, hint: str) -> None:
    """Say what has happened, with the time, and what can be done about it."""
    errors.print(f"{datetime.now(UTC):%H:%M:%S}Z {escape(what)}", soft_wrap=True)
    if hint:
        errors.print(f"[dim]hint[/]  {escape(hint)}", soft_wrap=True)
