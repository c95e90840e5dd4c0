"""``kuayu up``: the service and its domains on this host, until told to end.

Each of them is a process of its own, which ends with this one: the service (``kuayu serve``), and for each domain that
was added a ``kuayu domain run``. One that breaks is started again. What the domains' engines have started needs none of
them, and is found again.
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated

import typer

from kuayu.cli.data_directory import DEFAULT, TOKEN_VARIABLE, DataDirectory, DomainEntry
from kuayu.cli.domain import LOCAL, Address, Devices, check_domain
from kuayu.cli.terminal import USAGE, fail
from kuayu.engine.locking import lock

PROGRAM = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit()
from kuayu.cli import main
main()
"""
"""The command ``kuayu``, which is killed when we are gone, even while stopped (PR_SET_PDEATHSIG, prctl(2))."""

PRIVATE = 0o077

START_S = 120.0
"""How long the service may take to answer first."""

SERVICE_END_S = 30.0
"""How long the service may take to end."""

LOOK_SECONDS = 0.3
"""Seconds between two looks at processes and at what was added."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Seconds after which what has broken is started again: the first time, and when it goes on breaking."""

STEADY_S = 60.0
"""A process that has run for so long has not been breaking all the time."""

SERVICE = "service"


def up(
    *,
    data: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept; created if missing.")] = (
        DEFAULT
    ),
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback only with TLS.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 8080,
    domain: Annotated[str, typer.Option(metavar="NAME", help="Name of this host's domain.")] = "here",
    no_domain: Annotated[bool, typer.Option("--no-domain", help="Do not make this host a domain.")] = False,
    address: Address = None,
    devices: Devices = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate chain in PEM; with --tls-key, HTTPS is served.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key in PEM.")] = None,
    accounts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with one ACCOUNT [weight=W] [quota=HOURS] [rate=N] a line."),
    ] = None,
    max_request_rate: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="Requests a second of one account or token; 0 for any.")
    ] = None,
    leave_running: Annotated[
        bool, typer.Option("--leave-running", help="Let runs continue when this command ends.")
    ] = False,
) -> None:
    """Start the service, and this host as a domain that runs jobs.

    Other commands find the service by the data directory, which kuayu submit looks for in the folder where it is typed.
    Ctrl-C ends everything: what runs is stopped, and goes on from its last checkpoint at the next start; with
    --leave-running it goes on meanwhile. Whatever breaks is started again, and a kill -9 of this command harms nothing
    that runs.
    """
    os.umask(PRIVATE)
    check_domain(domain)
    if bool(tls_certificate) != bool(tls_key):
        raise fail("TLS needs a certificate and its key", "give both --tls-certificate and --tls-key", USAGE)
    directory = DataDirectory(data)
    with _own(directory):
        port = _port(host, port)
        url = f"http{'s' if tls_key else ''}://{host}:{port}"
        try:
            token, fresh = directory.token()
            directory.connect(url, token)
            if not no_domain:
                _add_host(directory, domain, devices, address)
        except OSError as error:
            raise fail(f"cannot write {data}: {error.strerror}", "name a folder with --data") from error
        serving = ["serve", "--host", host, "--port", str(port), "--database", f"sqlite:///{directory.database}"]
        serving += ["--token-file", str(directory.tokens), "--log-level", "warning"]
        serving += ["--accounts", str(accounts)] if accounts else []
        serving += ["--max-request-rate", str(max_request_rate)] if max_request_rate is not None else []
        serving += ["--tls-certificate", str(tls_certificate), "--tls-key", str(tls_key)] if tls_key else []
        household = _Household(directory, url, token, serving, leave_running=leave_running)
        household.begin()
        _greet(data, url, token if fresh else None, directory.entries())
        household.go_on()
    typer.echo("all of it has ended; kuayu up starts it again")


def _add_host(directory: DataDirectory, domain: str, devices: int | None, address: str | None) -> None:
    """Have this host be a domain, as it was before where nothing else is said now.

    Raises:
        OSError: It cannot be written.
    """
    known = directory.entries().get(domain, DomainEntry(LOCAL))
    entry = replace(known, devices=devices or known.devices, address=address or known.address)
    if entry != known or domain not in directory.entries():
        directory.add(domain, entry)


@dataclass
class _Member:
    """A process that is looked after.

    Attributes:
        arguments: What is typed behind ``kuayu``.
        environment: Beside ours.
        process: It, while it is there.
        since: When it was started, by the steady clock.
        pause: Seconds after which it is started again where it breaks.
        due: When it is to be started.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    since: float = 0.0
    pause: float = FIRST_PAUSE_S
    due: float = 0.0


class _Household:
    """The processes of a data directory.

    Args:
        directory: The data directory.
        url: Of the service.
        token: For the service.
        serving: What is typed to serve.
        leave_running: Whether runs go on when all of it ends.
    """

    def __init__(
        self, directory: DataDirectory, url: str, token: str, serving: Sequence[str], *, leave_running: bool
    ) -> None:
        self._directory = directory
        self._url = url
        self._token = token
        self._leave_running = leave_running
        self._members = {SERVICE: _Member(serving, {})}
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._told = 0
        self._woken = threading.Event()

    def begin(self) -> None:
        """Start the service, and wait until it answers.

        Raises:
            typer.Exit: It does not.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._tell)
        service = self._members[SERVICE]
        self._start(SERVICE, service)
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert service.process is not None
            if self._told or time.monotonic() > deadline or service.process.poll() is not None:
                self._end_service()
                if self._told:
                    raise typer.Exit(130)
                log = self._log(SERVICE)
                raise fail(f"the service did not start: {_last_line(log)}", f"see {log}")
            self._woken.wait(LOOK_SECONDS)

    def go_on(self) -> None:
        """Look after all of it until told to end, and end it then: domains first, so that they can still tell."""
        try:
            while not self._told:
                self._follow_entries()
                for name, member in list(self._members.items()):
                    self._look(name, member)
                self._directory.keep_running(
                    {
                        name.removeprefix("domain "): member.process.pid
                        for name, member in self._domains()
                        if member.process is not None
                    }
                )
                self._woken.wait(LOOK_SECONDS)
                self._woken.clear()
        finally:
            self._end_all()

    def _tell(self, *_: object) -> None:
        self._told += 1
        self._woken.set()

    def _domains(self) -> list[tuple[str, _Member]]:
        return [(name, member) for name, member in self._members.items() if name != SERVICE]

    def _follow_entries(self) -> None:
        """Take up domains that were added, and end those that were removed."""
        entries = self._directory.entries()
        for name, member in self._domains():
            if name.removeprefix("domain ") not in entries:
                typer.echo(f"{name} was removed: what runs there is ended")
                if member.process is not None:
                    _signal(member.process)
                    self._leaving.append(member.process)
                del self._members[name]
        self._leaving = [process for process in self._leaving if process.poll() is None]
        for name, entry in entries.items():
            if f"domain {name}" not in self._members:
                arguments = self._arguments(name, entry)
                self._members[f"domain {name}"] = _Member(arguments, {TOKEN_VARIABLE: self._token})

    def _arguments(self, name: str, entry: DomainEntry) -> list[str]:
        place = self._directory.domains / name
        arguments = ["domain", "run", "--domain", name, "--url", self._url, "--engine", entry.engine]
        arguments += ["--directory", str(place), "--confirm-leases"]
        for option, value in {
            "--inventory": entry.inventory,
            "--devices": entry.devices,
            "--address": entry.address,
            "--shared": entry.shared,
        }.items():
            arguments += [] if value is None else [option, str(value)]
        for key, value in entry.options.items():
            arguments += ["--option", f"{key}={value}"]
        return arguments + (["--leave-running"] if self._leave_running else [])

    def _look(self, name: str, member: _Member) -> None:
        """Start a process where it is not there."""
        now = time.monotonic()
        if member.process is not None and (status := member.process.poll()) is not None:
            member.process = None
            member.pause = FIRST_PAUSE_S if now - member.since > STEADY_S else min(2 * member.pause, LONGEST_PAUSE_S)
            member.due = now + member.pause
            log = self._log(name)
            how = f"was ended by signal {-status}" if status < 0 else f"ended with {status}: {_last_line(log)}"
            typer.echo(f"{name} {how}; started again in {member.pause:g} s (see {log})", err=True)
        if member.process is None and now >= member.due:
            self._start(name, member)

    def _start(self, name: str, member: _Member) -> None:
        command = [sys.executable, "-c", PROGRAM, str(os.getpid()), *member.arguments]
        with self._log(name).open("ab") as log:
            # A session of its own: Ctrl-C is for us, who end it all in order.
            member.process = subprocess.Popen(  # noqa: S603 - ourselves
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **member.environment},
                start_new_session=True,
            )
        member.since = time.monotonic()

    def _end_all(self) -> None:
        report = self._told
        domains = [member.process for _, member in self._domains() if member.process is not None]
        domains += self._leaving
        for process in domains:
            _signal(process)
        if domains and not self._leave_running:
            typer.echo("what runs is ended; Ctrl-C once more leaves it running")
        while any(process.poll() is None for process in domains):
            self._woken.wait(LOOK_SECONDS)
            self._woken.clear()
            if self._told > report:
                report = self._told
                for process in domains:
                    _signal(process)
        self._end_service()
        self._directory.forget_running()

    def _end_service(self) -> None:
        process = self._members[SERVICE].process
        if process is None:
            return
        _signal(process)
        try:
            process.wait(SERVICE_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        """Whether the service does."""
        import httpx

        try:
            health = f"{self._url}/v1/health"
            # Whether it answers is all that is asked: no token is sent, and nothing that it says is used.
            return httpx.get(health, timeout=2.0, trust_env=False, verify=False).is_success  # noqa: S501 - see above
        except httpx.HTTPError:
            return False

    def _log(self, name: str) -> Path:
        return self._directory.log / f"{name.replace(' ', '-')}.log"


def _own(directory: DataDirectory) -> IO[str]:
    """Keep other commands of this kind off a data directory, for as long as the answer is open.

    Raises:
        typer.Exit: Another one has it, or it cannot be made.
    """
    try:
        directory.make()
        return lock(directory.lock)
    except BlockingIOError as error:
        raise fail(f"another kuayu up uses {directory.path}", "stop it, or name another folder with --data") from error
    except OSError as error:
        hint = "name a folder that can be written with --data"
        raise fail(f"cannot make {directory.path}: {error.strerror}", hint) from error


def _port(host: str, port: int) -> int:
    """A port that can be listened on.

    Raises:
        typer.Exit: There is none.
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(where)
            result: int = tried.getsockname()[1]
            return result
    except OSError as error:
        hint = "choose another with --port, or stop what has it; with --port 0, any that is free is taken"
        raise fail(f"cannot listen on {host}:{port}: {error.strerror}", hint) from error


def _greet(data: Path, url: str, token: str | None, entries: Mapping[str, DomainEntry]) -> None:
    """Say where everything is, and what to type next."""
    from kuayu.engine.host import NvidiaAccelerators, usual_parts

    where = "" if data == DEFAULT else f" --data {shlex.quote(str(data))}"
    typer.echo(f"kuayu serves {url}; all that it keeps is in {data}")
    for name, entry in entries.items():
        if entry.engine == LOCAL:
            count = entry.devices or usual_parts()
            several = "one device" if count == 1 else f"{count} devices"
            what = "its accelerators" if NvidiaAccelerators.find() else f"its processors as {several}"
            typer.echo(f"domain {name}: this host, {what}")
        else:
            typer.echo(f"domain {name}: {entry.engine}, nodes of {entry.inventory}")
    if token is not None and sys.stdout.isatty():
        typer.echo(f"token {token}")
    typer.echo(f"The token is in {data / 'connection.json'}, where commands in this folder find it.")
    typer.echo(f"""
next, in another terminal:
  kuayu submit train.yaml{where}
  kuayu jobs{where}
  kuayu domain add NAME --slurm --shared DIR --inventory nodes.toml{where}

Ctrl-C ends it.""")


def _signal(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)


def _last_line(file: Path) -> str:
    """The last line of a log that says something."""
    try:
        lines = [line.strip() for line in file.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    said = [line for line in lines if not line.startswith("hint")]
    return said[-1].removeprefix("error ") if said else "it said nothing"
