"""``kuayu conformance``: run, doctor, list, explain, verify."""

import secrets
import shlex
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape

from kuayu_conformance.folder import FolderTaken, make_ready, verify_some, write
from kuayu_conformance.folder import verify as verify_folder
from kuayu_conformance.kept_scores import SPOT_CHECKS
from kuayu_conformance.rendering import summary
from kuayu_conformance.run.agreement import CannotResume, Contradiction
from kuayu_conformance.run.judging import EXIT_FAIL, EXIT_HARNESS, EXIT_PASS
from kuayu_conformance.run.live import TargetGone
from kuayu_conformance.run.resumption import ResumedRun, unfinished
from kuayu_conformance.run.runner import Options, Run, TargetUnreachable, shown_target
from kuayu_conformance.terminal import TerminalProgress
from kuayu_conformance.transcript import FILE_NAME, TranscriptError
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, Profile, Requirement, RunLevel

app = typer.Typer(
    help="Test an implementation of Kuayu over HTTP, and judge reports again.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

GOING_ON = ("kuayu", "conformance", "run", "--resume")

Target = Annotated[str, typer.Option(metavar="URL", help="Base URL of the implementation; /v1 lies under it.")]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="H", help="Header to send, as 'Authorization: Bearer TOKEN'. May be repeated."),
]
OtherHeader = Annotated[
    list[str] | None,
    typer.Option(
        "--other-tenant-header", metavar="H", help="Header of a second tenant, to test that tenants are apart."
    ),
]
Profiles = Annotated[
    list[str] | None,
    typer.Option("--profile", metavar="P", help="Profile to test; all that are declared by default. May be repeated."),
]
Requirements = Annotated[
    list[str] | None, typer.Option("--requirement", metavar="ID", help="Requirement to test. May be repeated.")
]
Timeout = Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds to wait for one answer.")]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="KUAYU_DATA",
        exists=True,
        file_okay=False,
        help="Folder of further measurements to judge with, beside those that come with the suite.",
    ),
]
Callback = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="Address of this machine as the target reaches it, for the suite's exporter."),
]


def fail(cause: str, hint: str, code: int = EXIT_HARNESS) -> typer.Exit:
    """Print a cause and a hint; the exit to raise."""
    errors.print(f"[bold red]error[/] {escape(cause)}\n[dim]hint[/]  {escape(hint)}")
    return typer.Exit(code)


def headers_of(lines: Sequence[str]) -> dict[str, str]:
    """Headers given as ``Name: value``.

    Raises:
        typer.Exit: One of them is not.
    """
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not value.strip():
            raise fail(f"{line.split()[0] if line.split() else line!r} is not a header", "write it as 'Name: value'", 2)
        headers[name.strip()] = value.strip()
    return headers


def profiles_of(names: Sequence[str]) -> tuple[str, ...]:
    """Profiles by name, whatever their case.

    Raises:
        typer.Exit: One of them does not exist.
    """
    known = [profile.value for profile in Profile if profile is not Profile.unknown]
    wanted = [name.upper() for name in names]
    for name in wanted:
        if name not in known:
            raise fail(f"there is no profile {name}", f"profiles are {', '.join(known)}", 2)
    return tuple(wanted)


def requirement_of(identifier: str) -> Requirement:
    """The requirement of that identifier, whatever its case.

    Raises:
        typer.Exit: There is none.
    """
    for requirement in registers.requirements().requirements:
        if requirement.id == identifier.upper():
            return requirement
    raise fail(f"there is no requirement {identifier}", "kuayu conformance list shows all", 2)


def _options(target: str, **members: Any) -> Options:
    if not target.startswith(("http://", "https://")):
        raise fail(f"{target} is not a URL", "write it as http://HOST:PORT", 2)
    return Options(target=target, **members)


@app.command()
def run(
    target: Target,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the report.")],
    header: Header = None,
    other_tenant_header: OtherHeader = None,
    profile: Profiles = None,
    level: Annotated[
        RunLevel | None, typer.Option(help="How much is measured.", show_default=RunLevel.quick.value)
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed, to make the same run again.")] = None,
    nonce: Annotated[str | None, typer.Option(metavar="X", help="Nonce that somebody else has chosen.")] = None,
    requirement: Requirements = None,
    timeout: Timeout = 10.0,
    callback_host: Callback = "",
    data: Data = None,
    language: Annotated[Literal["en", "zh"], typer.Option(help="Language of the summary.")] = "en",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in DIR that was broken off; it says what is asked.")
    ] = False,
) -> None:
    """Test a target and write the report. Exit code: 0 pass, 1 fail, 2 something is open, 3 the suite failed."""
    options = _options(
        target,
        nonce="" if resume and seed is None and nonce is None else nonce_of(seed, nonce),
        headers=headers_of(header or []),
        other_headers=headers_of(other_tenant_header or []),
        profiles=profiles_of(profile or []),
        selection=tuple(requirement_of(identifier).id for identifier in requirement or []),
        level=level.value if level else "",
        timeout=timeout,
        callback_host=callback_host,
        data=data,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what had ended is judged then too, as at Ctrl-C
    going_on = f"{shlex.join([*GOING_ON, '-o', str(output), '--target', shown_target(target)])}, with headers as then,"
    if resume:
        report = _reported(lambda progress: _resumed(options, output, progress), output, language, going_on)
    elif (begun := unfinished(output)) is not None:
        answers = sum("status" in event for events in begun.episodes.values() for event in events)
        raise fail(
            f"{output} holds a run, begun at {begun.header['started_at']}, that was broken off after {answers} answers",
            f"{going_on} goes on with it; to begin anew, remove {output} or name another folder",
            2,
        )
    else:
        report = execute(replace(options, level=options.level or RunLevel.quick.value), output, language, going_on)
    raise typer.Exit(int(report.exit_code))


def nonce_of(seed: int | None, nonce: str | None) -> str:
    """The nonce that a run draws from: one that was given, or a fresh one that nobody could foresee.

    Raises:
        typer.Exit: Both are given.
    """
    if seed is not None and nonce is not None:
        raise fail("both --seed and --nonce are given", "give one of them", 2)
    return nonce or (f"seed-{seed}" if seed is not None else secrets.token_hex(8))


def execute(
    options: Options, output: Path, language: Literal["en", "zh"] = "en", going_on: str = ""
) -> ConformanceReport:
    """Carry a run out, write its report, print the summary, and return the report.

    ``going_on`` is the command that goes on with the run where it is broken off; empty where nothing can.

    Raises:
        typer.Exit: The run could not begin or was broken off.
    """
    try:
        make_ready(output)
    except FolderTaken as taken:
        raise fail(str(taken), "give an empty folder or one of an earlier report", 2) from taken
    return _reported(lambda progress: Run(options, output, progress), output, language, going_on)


def go_on(
    options: Options, output: Path, language: Literal["en", "zh"] = "en", going_on: str = ""
) -> ConformanceReport:
    """Go on with a run that was broken off, as :func:`execute` carries one out.

    Raises:
        typer.Exit: It cannot be gone on with, or was broken off again.
    """
    return _reported(lambda progress: _resumed(options, output, progress), output, language, going_on)


def _resumed(options: Options, output: Path, progress: TerminalProgress) -> Run:
    run = ResumedRun(options, output, progress)
    if run.complete:
        errors.print(f"[dim]note[/]  nothing is left to be asked: the run in {output} has ended; it is judged again")
    return run


def _reported(
    of: Callable[[TerminalProgress], Run], output: Path, language: Literal["en", "zh"], going_on: str
) -> ConformanceReport:
    again = f"{going_on} goes on with it" if going_on else ""
    with TerminalProgress(errors) as progress:
        try:
            run = of(progress)
            try:
                report = run.execute()
            except TargetGone as gone:
                cause, hint = f"the target takes no connections any more ({gone})", again or "its own log may say why"
                raise _ended_early(run.so_far(), output, language, cause, hint) from gone
            except KeyboardInterrupt:
                hint = "; ".join(filter(None, ("what it had made at the target is removed", again)))
                raise _ended_early(run.so_far(), output, language, "the run was called off", hint) from None
        except CannotResume as refused:
            raise fail(
                str(refused), refused.hint, 2 if isinstance(refused, Contradiction) else EXIT_HARNESS
            ) from refused
        except TargetUnreachable as unreachable:
            raise fail(
                str(unreachable), "kuayu conformance doctor --target URL looks at it more closely"
            ) from unreachable
        except TranscriptError as error:
            raise fail(f"the suite itself failed: {error}", "this is a fault of the suite; keep the folder") from error
    _hand_over(report, output, language)
    return report


def _hand_over(report: ConformanceReport, output: Path, language: Literal["en", "zh"]) -> None:
    """Write the report and say what is in it."""
    write(output, report)
    console.print(summary(report, language))
    console.print(f"report   {output / 'report.html'}\nverify   kuayu conformance verify {output}")


def _ended_early(
    report: ConformanceReport | None, output: Path, language: Literal["en", "zh"], cause: str, hint: str
) -> typer.Exit:
    """Write the report of what had been judged, where anything had; the exit to raise."""
    if report is None:
        return fail(f"{cause}; no check had ended, so that there is no report", hint)
    _hand_over(report, output, language)
    return fail(f"{cause}; the report is of what had ended before", hint, int(report.exit_code))


@app.command()
def doctor(
    target: Target,
    header: Header = None,
    other_tenant_header: OtherHeader = None,
    profile: Profiles = None,
    timeout: Timeout = 10.0,
    callback_host: Callback = "",
) -> None:
    """Say why a run could not work, or what of it could not be tested."""
    from kuayu_conformance.doctor import diagnose

    options = _options(
        target,
        nonce="doctor",
        headers=headers_of(header or []),
        other_headers=headers_of(other_tenant_header or []),
        profiles=profiles_of(profile or []),
        timeout=timeout,
        callback_host=callback_host,
    )
    ill = False
    for diagnosis in diagnose(options):
        mark = {True: "[green]ok  [/]", None: "[yellow]note[/]", False: "[red]bad [/]"}[diagnosis.well]
        console.print(f"{mark} {diagnosis.subject:12} {escape(diagnosis.found)}")
        if diagnosis.hint:
            console.print(f"     {'':12} [dim]{escape(diagnosis.hint)}[/]")
        ill = ill or diagnosis.well is False
    raise typer.Exit(EXIT_FAIL if ill else EXIT_PASS)


@app.command("list")
def list_requirements(
    profile: Profiles = None,
    checked: Annotated[bool, typer.Option("--checked", help="Only those that have a check.")] = False,
) -> None:
    """List every requirement with its check."""
    from rich.table import Table

    wanted = profiles_of(profile or [])
    table = Table("requirement", "level", "modal", "title", "标题", "check", box=None, header_style="dim")
    for row in registers.requirements().requirements:
        if (not wanted or row.profile.value in wanted) and (row.check or not checked):
            check = (row.check or "").rpartition(".")[2] or "[dim]–[/]"
            table.add_row(row.id, row.level.value, row.modal.value, row.title_en, row.title_zh, check)
    console.print(table)


@app.command()
def explain(identifier: Annotated[str, typer.Argument(metavar="ID", help="Identifier of a requirement.")]) -> None:
    """Say what a requirement asks for, how it is measured, and where it comes from."""
    row = requirement_of(identifier)
    console.print(f"[bold]{row.id}[/]  {row.title_en}  {row.title_zh}\n")
    console.print(f"{row.text_en}\n{row.text_zh}\n", markup=False)
    for name, threshold in (("required", row.threshold), ("aim", row.aim)):
        if threshold:
            comparison = threshold.comparison.value.replace("_", " ")
            console.print(f"{name:10} {comparison} {threshold.value:g} {threshold.unit}", markup=False)
    console.print(f"{'measured':10} {row.method_en}\n{'':10} {row.method_zh}", markup=False)
    console.print(f"{'level':10} {row.profile.value}, {row.level.value}, {row.modal.value}", markup=False)
    if row.feature:
        console.print(f"{'feature':10} {row.feature.value}", markup=False)
    console.print(f"{'source':10} {row.source}; clause {row.clause}", markup=False)
    if row.check:
        console.print(f"{'check':10} {row.check}", markup=False)
    else:
        console.print(f"{'unchecked':10} {row.unchecked_because_en}\n{'':10} {row.unchecked_because_zh}", markup=False)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a report.")],
    data: Data = None,
    requirement: Annotated[
        list[str] | None,
        typer.Option("--requirement", metavar="ID", help="Judge only this again, not all. May be repeated."),
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Play every simulated window again, not a sample of those kept.")
    ] = False,
) -> None:
    """Judge a report again from its transcript; every file must come out the same, byte for byte."""
    some = {requirement_of(identifier).id for identifier in requirement or []}
    spots = None if recompute else SPOT_CHECKS
    try:
        with TerminalProgress(errors) as progress:
            if some:
                found = verify_some(
                    folder, lambda check: not some.isdisjoint(check.requirements), data, progress.passed, spots
                )
                verdicts = [verdict for verdict in found if verdict.name in some | {FILE_NAME}]
            else:
                verdicts = list(verify_folder(folder, data, progress.passed, spots))
    except TranscriptError as error:
        raise fail(str(error), "a report that cannot be judged again proves nothing", EXIT_FAIL) from error
    for verdict in verdicts:
        mark = "[green]same   [/]" if verdict.agrees else "[red]differs[/]"
        console.print(f"{mark} {verdict.name:18} {'' if verdict.agrees else escape(verdict.why)}")
    if all(verdict.agrees for verdict in verdicts):
        what = "what was judged again follows" if some else "the report follows"
        console.print(f"{what} from its transcript; who made the transcript, this cannot say")
        raise typer.Exit(EXIT_PASS)
    raise typer.Exit(EXIT_FAIL)
