"""``kuayu conformance``: run, doctor, list, explain, verify, keygen, challenge, sign, publish, check-submission."""

import contextlib
import difflib
import json
import re
import secrets
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape

from kuayu_conformance import origin, proof
from kuayu_conformance.check import Check
from kuayu_conformance.expected_failures import MalformedListError, entries_of, outcome_of
from kuayu_conformance.folder import FolderTaken, hold_free, make_ready, transcript_of, verify_some, write
from kuayu_conformance.folder import verify as verify_folder
from kuayu_conformance.kept_scores import SPOT_CHECKS
from kuayu_conformance.origin import Challenge
from kuayu_conformance.proof import Standing, proofs
from kuayu_conformance.rendering import summary
from kuayu_conformance.rendering.view import limit_of, reason_of
from kuayu_conformance.rendering.words import visible
from kuayu_conformance.run.har import HarError, HarWriter
from kuayu_conformance.run.judgement import EXIT_FAIL, EXIT_HARNESS, EXIT_PASS
from kuayu_conformance.run.live import Listener, TargetGone
from kuayu_conformance.run.plan import check_of, claimable
from kuayu_conformance.run.resumption import CannotResume, Contradiction, ResumedRun, unfinished
from kuayu_conformance.run.runner import Options, Run, TargetUnreachable, shown_target
from kuayu_conformance.signing import PrivateKey, PublicKey, SigningError, make_keys, public_part, shown
from kuayu_conformance.terminal import TerminalProgress, exchange_line
from kuayu_conformance.transcript import FILE_NAME, TranscriptError
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, Requirement, RunLevel

app = typer.Typer(
    help="Test an implementation of Kuayu over HTTP, and judge reports again.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

NEAR = {"profile": 0.65, "sub-profile": 0.75, "requirement": 0.8}
"""How like a name must be to what was typed to be suggested, as :func:`difflib.get_close_matches` measures it.

Two of the three letters of a profile, three quarters of a sub-profile, or six of the seven characters of a requirement,
each in their order."""

GOING_ON = ("kuayu", "conformance", "run", "--resume")

ExitCode = Callable[[ConformanceReport], int]
"""Gives the exit code of a command whose run has this report, after saying what there is to say of it."""

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
    typer.Option(
        "--profile",
        metavar="P",
        help="Profile to test, or a part of one (RES/collectives); what is declared by default. May be repeated.",
    ),
]
Requirements = Annotated[
    list[str] | None, typer.Option("--requirement", metavar="ID", help="Requirement to test. May be repeated.")
]
Exclusions = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="ID=REASON",
        help="Requirement that is not tested, and why; the report says so. May be repeated.",
    ),
]
ExpectedFailures = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Failures that are expected, one 'ID  reason' a line: they do not make the exit code 1. The report says "
        "what was found all the same. An entry that passes, is unknown or was not tested makes it 1.",
    ),
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
ChallengeFile = Annotated[
    Path | None,
    typer.Option("--challenge", metavar="FILE", help="Run with the nonce that somebody else chose and signed."),
]
RunKey = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="Public key of who signed the challenge; with --witness, the witness's private key.",
    ),
]
Witness = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Whoever issues challenges runs the suite himself, and signs the report."),
]
FullRequests = Annotated[
    bool,
    typer.Option(
        "--full-requests",
        help="Keep requests and what was played in the transcript, so that another program can judge it.",
    ),
]
KeyFile = Annotated[Path, typer.Option("--key", metavar="KEYFILE", help="File of a private key; keygen makes one.")]


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
    """Profiles and sub-profiles by name, whatever their case.

    Raises:
        typer.Exit: One of them does not exist.
    """
    known = {name.upper(): name for name in (*registers.profiles(), *registers.sub_profiles())}
    for name in names:
        if name.upper() not in known:
            raise _no_profile(name)
    return tuple(known[name.upper()] for name in names)


def _no_profile(name: str) -> typer.Exit:
    """Say that there is no such profile or sub-profile, and which there are; the exit to raise."""
    profile, part, _ = name.partition("/")
    profiles, parts = list(registers.profiles()), list(registers.sub_profiles())
    if not part:
        cause = f"there is no profile {name.upper()}{_near(name.upper(), profiles, NEAR['profile'])}"
        return fail(cause, f"profiles are {', '.join(profiles)}", 2)
    near = {entry.upper(): entry for entry in parts}
    named = difflib.get_close_matches(name.upper(), near, cutoff=NEAR["sub-profile"])
    meant = f"; did you mean {' or '.join(near[known_name] for known_name in named)}?" if named else ""
    own = [item for item in parts if item.startswith(f"{profile.upper()}/")] or parts
    return fail(f"there is no sub-profile {name}{meant}", f"sub-profiles are {', '.join(own)}", 2)


def requirement_of(identifier: str) -> Requirement:
    """The requirement of that identifier, whatever its case.

    Raises:
        typer.Exit: There is none.
    """
    wanted, known = identifier.strip().upper(), {row.id: row for row in registers.requirements().requirements}
    if wanted in known:
        return known[wanted]
    raise fail(*_no_requirement(identifier, known), 2)


def _no_requirement(identifier: str, known: Iterable[str]) -> tuple[str, str]:
    """That there is no such requirement, and a hint; of one that was withdrawn what replaced it."""
    name = identifier.strip().upper()
    if gone := registers.withdrawn().get(name):
        instead = ", ".join(gone.replaced_by)
        hint = f"name {instead} instead" if instead else "nothing replaced it; leave it out"
        return f"{name} was withdrawn in version {gone.withdrawn_in}: {gone.because_en.rstrip('.')}", hint
    return f"there is no requirement {identifier}{_near(name, known)}", "kuayu conformance list shows all"


def _near(name: str, known: Iterable[str], cutoff: float = NEAR["requirement"]) -> str:
    """A question whether one of those that are nearest was meant; empty where none is near."""
    names = list(known)
    counted = re.fullmatch(r"([A-Z]+)[^A-Z0-9]*(\d+)", name)
    padded = f"{counted[1]}-{int(counted[2]):03d}" if counted else ""
    near = [padded] if padded in names else difflib.get_close_matches(name, names, cutoff=cutoff)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def exclusions_of(exclusions: Sequence[str], selection: Sequence[str] = ()) -> dict[str, str]:
    """Requirements given as ``ID=REASON`` to be left out, with the reasons; ``selection`` is what was asked for.

    Raises:
        typer.Exit: One has no reason, no check or no such requirement, is given twice, or was asked for.
    """
    excluded: dict[str, str] = {}
    for exclusion in exclusions:
        identifier, _, reason = exclusion.partition("=")
        row, reason = requirement_of(identifier), " ".join(reason.split())
        if not reason:
            hint = f"write it as --exclude '{row.id}=REASON'; the report gives the reason to whoever reads it"
            raise fail(f"{row.id} is excluded without a reason", hint, 2)
        if not row.check:
            raise fail(f"{row.id} has no check, so that there is nothing to exclude", "leave it out", 2)
        if row.id in excluded:
            raise fail(f"{row.id} is excluded twice", "exclude it once, with one reason", 2)
        if row.id in selection:
            raise fail(f"{row.id} is both asked for and excluded", "leave out --requirement or --exclude of it", 2)
        excluded[row.id] = reason
    return excluded


def expected_failures_of(path: Path | None) -> dict[str, str]:
    """Requirements that are expected to fail, with the reasons.

    Raises:
        typer.Exit: The file cannot be read, or names something twice or that does not exist.
    """
    expected: dict[str, str] = {}
    try:
        entries = entries_of(path) if path else []
    except MalformedListError as malformed:
        raise fail(str(malformed), "write one 'ID  reason' a line, and comments behind #", 2) from malformed
    known = {row.id for row in registers.requirements().requirements}
    for entry in entries:
        name, where = entry.name.upper(), f"{path} line {entry.line}"
        if name not in known:
            cause, hint = _no_requirement(entry.name, known)
            raise fail(f"{where}: {cause}", hint, EXIT_FAIL)
        if name in expected:
            raise fail(f"{where}: {name} is named twice", "name it once, with one reason", 2)
        expected[name] = entry.reason
    return expected


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
    exclude: Exclusions = None,
    expected_failures: ExpectedFailures = None,
    timeout: Timeout = 10.0,
    callback_host: Callback = "",
    data: Data = None,
    language: Annotated[Literal["en", "zh"], typer.Option(help="Language of the summary.")] = "en",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in DIR that was broken off; it says what is asked.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print each exchange on a line while it runs, to standard error.")
    ] = False,
    har: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write exchanges, with bodies, as HAR 1.2 while it runs; credentials are masked."
        ),
    ] = None,
    challenge: ChallengeFile = None,
    key: RunKey = None,
    witness: Witness = None,
    full_requests: FullRequests = False,
) -> None:
    """Test a target and write the report. Exit code: 0 pass, 1 fail, 2 something is open, 3 the suite failed."""
    selection = tuple(requirement_of(identifier).id for identifier in requirement or [])
    expected = expected_failures_of(expected_failures)
    try:
        origin_options = origin.read_options(challenge, key, witness, resume=resume)
    except SigningError as refused:
        raise fail(str(refused), refused.hint, 2) from refused
    if origin_options.nonce and (seed is not None or nonce is not None):
        raise fail(
            "--challenge is given, and --seed or --nonce besides", "leave these out: a challenge holds a nonce", 2
        )
    unsaid = resume and seed is None and nonce is None
    options = _options(
        target,
        nonce=origin_options.nonce or ("" if unsaid else nonce_of(seed, nonce)),
        origin=origin_options.origin,
        headers=headers_of(header or []),
        other_headers=headers_of(other_tenant_header or []),
        profiles=profiles_of(profile or []),
        selection=selection,
        excluded=exclusions_of(exclude or [], selection),
        level=level.value if level else "",
        timeout=timeout,
        callback_host=callback_host,
        data=data,
        full_requests=full_requests,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what had ended is judged then too, as at Ctrl-C
    going_on = f"{shlex.join([*GOING_ON, '-o', str(output), '--target', shown_target(target)])}, with headers as then,"
    if not resume and (begun := unfinished(output)) is not None:
        answers = sum("status" in event for events in begun.episodes.values() for event in events)
        raise fail(
            f"{output} holds a run, begun at {begun.header['started_at']}, that was broken off after {answers} answers",
            f"{going_on} goes on with it; to begin anew, remove {output} or name another folder",
            2,
        )
    with _listening(verbose, har, output, go_on=resume) as listeners:
        options = replace(options, listeners=listeners)
        if resume:
            report = go_on(options, output, language, going_on, partial(_exit_code, expected))
        else:
            _in(output, hold_free)  # before the target is looked at; an earlier report stays until it has been
            _begin_with_diagnosis(options)
            options = replace(options, level=options.level or RunLevel.quick.value)
            report = execute(options, output, language, going_on, partial(_exit_code, expected))
    if origin_options.signer is not None:
        _sign(output, origin_options.signer)
    raise typer.Exit(_exit_code(expected, report))


def _exit_code(expected: Mapping[str, str], report: ConformanceReport) -> int:
    """Exit code of the command, after saying which failures were expected and which entries are not true any more."""
    if not expected:
        return int(report.exit_code)
    outcome = outcome_of(report, expected)
    for result, why in outcome.expected:
        observed = reason_of(result) or result.verdict.value
        errors.print(f"[yellow]expected[/] {escape(visible(f'{result.requirement} fails: {why}; found: {observed}'))}")
    for sentence in outcome.stale:
        errors.print(f"[bold red]stale[/]    {escape(visible(sentence))}")
    if outcome.stale:
        errors.print("[dim]hint[/]     take what is stale out of the file of expected failures; until then this fails")
    return outcome.exit_code


@contextlib.contextmanager
def _listening(verbose: bool, har: Path | None, output: Path, *, go_on: bool) -> Iterator[tuple[Listener, ...]]:  # noqa: FBT001
    """Whoever is told of exchanges: this terminal, an archive.

    Raises:
        typer.Exit: The archive cannot be written there.
    """
    listeners: list[Listener] = []
    if verbose:
        listeners.append(lambda exchange: errors.print(exchange_line(exchange), soft_wrap=True))
    if har is None:
        yield tuple(listeners)
        return
    if output.resolve() in har.resolve().parents:
        raise fail(f"{har} lies in the folder of the report, which holds nothing else", "name a file beside it", 2)
    try:
        archive = HarWriter(har, go_on=go_on)
    except HarError as error:
        raise fail(str(error), error.hint, 2) from error
    with contextlib.closing(archive):
        try:
            yield (*listeners, archive.write)
        finally:
            if archive.failure:
                cause = f"writing {har} stopped: {archive.failure}; the run and its report do without"
                errors.print(f"[yellow]note[/] {escape(cause)}")


def _begin_with_diagnosis(options: Options) -> None:
    """Say what would go wrong before anything is sent that takes long.

    Raises:
        typer.Exit: There is nothing to be tested: no answer, no access, no valid declaration. A selection is tested all
            the same against a target that answers, as it may be the declaration that is looked for.
    """
    from kuayu_conformance.doctor import diagnose

    for diagnosis in diagnose(options, machine=False):
        if diagnosis.well:
            continue
        stands = diagnosis.well is None or (options.selection and diagnosis.subject == "declaration")
        if not stands:
            code = EXIT_HARNESS if diagnosis.subject == "target" else EXIT_FAIL
            raise fail(f"{diagnosis.subject}: {diagnosis.observed}; nothing was tested", diagnosis.hint, code)
        errors.print(f"[yellow]note[/]  {diagnosis.subject}: {escape(diagnosis.observed)}")
        if diagnosis.hint:
            errors.print(f"[dim]hint[/]  {escape(diagnosis.hint)}")


def nonce_of(seed: int | None, nonce: str | None) -> str:
    """The nonce that a run draws from: one that was given, or a fresh one that nobody could foresee.

    Raises:
        typer.Exit: Both are given.
    """
    if seed is not None and nonce is not None:
        raise fail("both --seed and --nonce are given", "give one of them", 2)
    return nonce or (f"seed-{seed}" if seed is not None else secrets.token_hex(8))


def execute(
    options: Options,
    output: Path,
    language: Literal["en", "zh"] = "en",
    going_on: str = "",
    code: ExitCode = lambda report: int(report.exit_code),
) -> ConformanceReport:
    """Carry a run out, write its report, print the summary, and return the report.

    ``going_on`` is the command that goes on with the run where it is broken off; empty where nothing can.
    ``code`` gives the exit code of a command whose run was broken off after something had been judged.

    Raises:
        typer.Exit: The run could not begin or was broken off.
    """
    _in(output, make_ready)
    return _reported(lambda progress: Run(options, output, progress), output, language, going_on, code)


def _in(output: Path, done: Callable[[Path], None]) -> None:
    """Do something with the output folder.

    Raises:
        typer.Exit: It holds what is not of a report.
    """
    try:
        done(output)
    except FolderTaken as taken:
        raise fail(str(taken), "give an empty folder or one of an earlier report", 2) from taken


def go_on(
    options: Options,
    output: Path,
    language: Literal["en", "zh"] = "en",
    going_on: str = "",
    code: ExitCode = lambda report: int(report.exit_code),
) -> ConformanceReport:
    """Go on with a run that was broken off, as :func:`execute` carries one out.

    Raises:
        typer.Exit: It cannot be gone on with, or was broken off again.
    """
    return _reported(lambda progress: _resumed(options, output, progress), output, language, going_on, code)


def _resumed(options: Options, output: Path, progress: TerminalProgress) -> Run:
    run = ResumedRun(options, output, progress)
    if run.complete:
        errors.print(f"[dim]note[/]  nothing is left to be asked: the run in {output} has ended; it is judged again")
    return run


def _reported(
    of: Callable[[TerminalProgress], Run],
    output: Path,
    language: Literal["en", "zh"],
    going_on: str,
    code: ExitCode,
) -> ConformanceReport:
    again = f"{going_on} goes on with it" if going_on else ""
    with TerminalProgress(errors) as progress:
        try:
            run = of(progress)
            try:
                report = run.execute()
            except TargetGone as gone:
                cause, hint = f"the target takes no connections any more ({gone})", again or "its own log may say why"
                raise _ended_early(run.so_far(), output, language, cause, hint, code) from gone
            except KeyboardInterrupt:
                removed = "is removed" if run.cleaned else "stands there still"
                hint = "; ".join(filter(None, (f"what it had made at the target {removed}", again)))
                raise _ended_early(run.so_far(), output, language, "the run was called off", hint, code) from None
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
    report: ConformanceReport | None,
    output: Path,
    language: Literal["en", "zh"],
    cause: str,
    hint: str,
    code: ExitCode,
) -> typer.Exit:
    """Write the report of what had been judged, where anything had; the exit to raise."""
    if report is None:
        return fail(f"{cause}; no check had ended, so that there is no report", hint)
    _hand_over(report, output, language)
    return fail(f"{cause}; the report is of what had ended before", hint, code(report))


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
        console.print(f"{mark} {diagnosis.subject:12} {escape(diagnosis.observed)}")
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
        if (not wanted or not claimable(row).isdisjoint(wanted)) and (row.check or not checked):
            check = check_of(row) or "[dim]–[/]"
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
            console.print(f"{name:10} {limit_of(threshold, row.threshold, row.aim)}", markup=False)
    console.print(f"{'measured':10} {row.method_en}\n{'':10} {row.method_zh}", markup=False)
    console.print(f"{'level':10} {row.profile.value}, {row.level.value}, {row.modal.value}", markup=False)
    if parts := [name for name, part in registers.sub_profiles().items() if row.id in part.requirements]:
        console.print(f"{'parts':10} {', '.join(parts)}", markup=False)
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
    key: Annotated[
        list[Path] | None,
        typer.Option("--key", metavar="FILE", help="Public key that you trust, to check signatures. May be repeated."),
    ] = None,
) -> None:
    """Judge a report again from its transcript, byte for byte, and say what it proves of where it comes from."""
    some = {requirement_of(identifier).id for identifier in requirement or []}
    spots = None if recompute else SPOT_CHECKS
    try:
        keys = [PublicKey.read(file) for file in key or []]
        transcript = transcript_of(folder)
        with TerminalProgress(errors) as progress:
            if some:

                def wanted(check: Check[Any]) -> bool:
                    return not some.isdisjoint(check.requirements)

                outcomes = verify_some(folder, wanted, data, progress.passed, spots, transcript=transcript)
                verdicts = [verdict for verdict in outcomes if verdict.name in some | {FILE_NAME}]
            else:
                verdicts = list(verify_folder(folder, data, progress.passed, spots, transcript))
        statements = list(proofs(folder, transcript, keys))
    except SigningError as refused:
        raise fail(str(refused), refused.hint, 2) from refused
    except TranscriptError as error:
        raise fail(str(error), "a report that cannot be judged again proves nothing", EXIT_FAIL) from error
    for verdict in verdicts:
        mark = "[green]same   [/]" if verdict.agrees else "[red]differs[/]"
        console.print(f"{mark} {verdict.name:18} {'' if verdict.agrees else escape(verdict.why)}")
    agree = all(verdict.agrees for verdict in verdicts)
    if agree:
        what = "what was judged again follows" if some else "the report follows"
        console.print(f"{what} from its transcript; of the transcript there is to say:")
    for statement in statements:
        mark = f"[{_COLOURS[statement.standing]}]{statement.standing.value:10}[/]"
        console.print(f"{mark} {escape(statement.text)}")
    wrong = any(statement.standing is Standing.WRONG for statement in statements)
    raise typer.Exit(EXIT_PASS if agree and not wrong else EXIT_FAIL)


_COLOURS = {Standing.PROVEN: "green", Standing.UNCHECKED: "yellow", Standing.OPEN: "yellow", Standing.WRONG: "red"}


@app.command()
def keygen(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="KEYFILE", help="File for the private key.")],
) -> None:
    """Make a pair of Ed25519 keys: the private one in KEYFILE, for your eyes, the public one in KEYFILE.pub."""
    try:
        key_name = make_keys(output)
    except SigningError as refused:
        raise fail(str(refused), refused.hint, 2) from refused
    console.print(f"private  {output}\npublic   {public_part(output)}\nkey      {key_name}")


@app.command()
def challenge(
    key: KeyFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File for the challenge.")],
    valid: Annotated[
        str, typer.Option(metavar="TIME", help="How long runs with it may begin: 90m, 12h, 7d, 2w.")
    ] = "7d",
) -> None:
    """Issue a challenge: a nonce that you chose and signed, for somebody else to run the suite with."""
    try:
        length = origin.validity(valid)
        issued = origin.issue(PrivateKey.read(key), length, origin.now())
    except SigningError as refused:
        raise fail(str(refused), refused.hint, 2) from refused
    try:
        output.write_text(json.dumps(issued.members, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise fail(f"{output} cannot be written ({error.strerror})", "give a file in a folder of yours", 2) from error
    said = Challenge.of(issued.members)
    console.print(f"challenge  {output}\nnonce      {said.nonce}\nexpires    {said.expires_at:%Y-%m-%d %H:%M:%S} UTC")


@app.command()
def sign(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a report.")], key: KeyFile) -> None:
    """Sign a report: whoever has your public key sees that nothing was changed since. It is not judged again."""
    try:
        signer = PrivateKey.read(key)
    except SigningError as refused:
        raise fail(str(refused), refused.hint, 2) from refused
    _sign(folder, signer)


def _sign(folder: Path, signer: PrivateKey) -> None:
    try:
        seal = proof.sign(folder, signer, origin.now())
    except SigningError as refused:
        raise fail(str(refused), refused.hint, 2) from refused
    console.print(f"signed   {folder / proof.SIGNATURE} by key {shown(seal.key)}")


@app.command()
def publish(
    folder: Annotated[Path, typer.Argument(metavar="REPORT_DIR", help="Folder of a report.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the submission.")],
    contact: Annotated[str, typer.Option(metavar="TEXT", help="Who answers questions about it; it is published.")],
    name: Annotated[
        str, typer.Option(metavar="SLUG", help="Name of the submission; made of the implementation's by default.")
    ] = "",
    notes: Annotated[Path | None, typer.Option(metavar="FILE", help="Text of your own that goes with it.")] = None,
    data: Data = None,
) -> None:
    """Make a submission of a report, to be handed in and judged again by anybody. Exit code 2 where it is refused."""
    from kuayu_conformance import submissions

    try:
        with TerminalProgress(errors) as progress:
            prepared = submissions.prepare(folder, contact, name, notes, data, progress.passed)
        submissions.write(output, prepared, folder)
    except submissions.NotSubmittable as refused:
        raise fail(str(refused), refused.hint, 2) from refused
    for warning in prepared.warnings:
        errors.print(f"[yellow]note[/]  {escape(warning)}")
    size = sum(map(len, prepared.files.values())) / 1e6
    console.print(f"submission {escape(prepared.submission.name)}, {size:.1f} MB, is in {escape(str(output))}")
    console.print("it holds every answer of the service in full; look through it before you hand it in")
    console.print(f"check    kuayu conformance check-submission {escape(str(output))}", soft_wrap=True)


@app.command("check-submission")
def check_submission(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of submissions.")],
    data: Data = None,
) -> None:
    """Check submissions: schema, digests, names, and whether all follows from the transcripts. Exit code 1: not so."""
    from kuayu_conformance.submissions import check

    wrong = False
    for result in check(folders, data):
        wrong = wrong or bool(result.faults)
        mark = "[red]wrong[/]" if result.faults else "[green]ok   [/]"
        said = "; ".join(result.faults) or result.note
        console.print(f"{mark} {escape(str(result.folder))}: {escape(said)}", soft_wrap=True)
    raise typer.Exit(EXIT_FAIL if wrong else EXIT_PASS)
