"""What ``kuayu up`` keeps in its data directory, and how other commands find its service by it.

connection.json   URL and token of the service, for this user alone
tokens            what the service knows of the token: its digest
kuayu.db          what the service keeps
domains/NAME.json a domain that ``up`` runs; its journal and its runs are in domains/NAME
running.json      which domains run now, while ``up`` does
log/              what service and domains complain of
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kuayu.cli.decisions import check_url
from kuayu.cli.terminal import USAGE, errors, fail
from kuayu.engine.locking import lock, lock_of

if TYPE_CHECKING:
    from kuayu.client import Client

DEFAULT = Path("kuayu-data")
DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE, TOKEN_VARIABLE = "KUAYU_URL", "KUAYU_TOKEN"
TENANT = "default"
OTHERS_MAY_WRITE = 0o022

Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="Data directory of kuayu up, where its service is found.")
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help=f"Base URL of the service; {URL_VARIABLE} by default, else that of the data directory.",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="T",
        help=f"Bearer token; {TOKEN_VARIABLE} by default, else that of the data directory for its own service.",
    ),
]


@dataclass(frozen=True)
class DomainEntry:
    """A domain that ``kuayu up`` runs.

    Attributes:
        engine: Name of the engine.
        options: Its options, as texts.
        devices: Devices that the processors of this host count as, for the engine local; None for the usual number.
        address: By which nodes of other domains reach this host.
        inventory: File with its nodes; None for this host.
        shared: Folder that all nodes reach by the same path, for runs and their steps; None where there is none.
    """

    engine: str
    options: Mapping[str, str] = field(default_factory=dict)
    devices: int | None = None
    address: str | None = None
    inventory: str | None = None
    shared: str | None = None


class DataDirectory:
    """A data directory.

    Args:
        path: Where it is; made by :meth:`make`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.domains = self.path / "domains"
        self.log = self.path / "log"
        self.lock = self.path / "up"
        self.tokens = self.path / "tokens"
        self.database = self.path / "kuayu.db"
        self._connection = self.path / "connection.json"
        self._running = self.path / "running.json"

    def make(self) -> None:
        """Make it where it is not there, for this user alone.

        Raises:
            OSError: It cannot be.
        """
        for folder in (self.path, self.domains, self.log):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def token(self) -> tuple[str, bool]:
        """The token of its service, and whether it was made just now.

        Raises:
            OSError: It cannot be kept.
        """
        known = self.connection()
        token = None if known is None else known[1]
        fresh = token is None
        if token is None:
            token = secrets.token_urlsafe(32)
        digest = hashlib.sha256(token.encode()).hexdigest()
        write_private(self.tokens, f"{TENANT}=sha256:{digest}\n")
        return token, fresh

    def connect(self, url: str, token: str) -> None:
        """Let other commands find the service.

        Raises:
            OSError: It cannot be written.
        """
        write_private(self._connection, json.dumps({"url": url, "token": token}, indent=1) + "\n")

    def connection(self) -> tuple[str, str] | None:
        """URL and token of its service; None where there is none, or others than this user may have written it."""
        try:
            status = self._connection.stat()
            known = json.loads(self._connection.read_text(encoding="utf-8"))
            url, token = str(known["url"]), str(known["token"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if status.st_uid != os.getuid() or status.st_mode & OTHERS_MAY_WRITE:
            errors.print(f"[yellow]passed over[/] {self._connection}: others may have written it")
            return None
        return url, token

    def entries(self) -> dict[str, DomainEntry]:
        """Domains that ``up`` is to run, by name; what cannot be read is none."""
        result = {}
        for file in sorted(self.domains.glob("*.json")):
            try:
                result[file.stem] = DomainEntry(**json.loads(file.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                continue
        return result

    def add(self, name: str, entry: DomainEntry) -> None:
        """Have ``up`` run a domain.

        Raises:
            OSError: It cannot be written.
        """
        write_private(self.domains / f"{name}.json", json.dumps(asdict(entry), indent=1) + "\n")

    def remove(self, name: str) -> None:
        """Have ``up`` run a domain no more; what its runs have left stays in its folder."""
        (self.domains / f"{name}.json").unlink(missing_ok=True)

    def running(self) -> dict[str, int]:
        """Domains that run now, with their processes; none while ``up`` does not run."""
        if not self.is_up:
            return {}
        try:
            known = json.loads(self._running.read_text(encoding="utf-8"))
            return {str(name): int(pid) for name, pid in known.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    @property
    def is_up(self) -> bool:
        """Whether ``up`` runs with it."""
        if not lock_of(self.lock).exists():
            return False
        try:
            lock(self.lock).close()
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def keep_running(self, domains: Mapping[str, int]) -> None:
        """Tell which domains run now.

        Raises:
            OSError: It cannot be written.
        """
        write_private(self._running, json.dumps(dict(domains)) + "\n")

    def forget_running(self) -> None:
        """Nothing runs any more."""
        self._running.unlink(missing_ok=True)


def write_private(file: Path, text: str) -> None:
    """Have a file hold a text, whole, or what it held before; its owner alone may read it.

    Raises:
        OSError: It cannot be written.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    beside.replace(file)


def service_of(url: str | None, token: str | None, data: Path) -> tuple[str, str | None]:
    """URL and token of the service that a command is to ask.

    A token goes with the URL that it was given with: that of the environment, to no service that a file names; that of
    a data directory, to no other service than its own.

    Raises:
        typer.Exit: What is given is no URL.
    """
    known = DataDirectory(data).connection()
    request = url or os.environ.get(URL_VARIABLE)
    if request is None and known is not None:
        return known[0], token or known[1]
    request = request or DEFAULT_URL
    check_url(request)
    own = known[1] if known is not None and request.rstrip("/") == known[0].rstrip("/") else None
    return request, token or os.environ.get(TOKEN_VARIABLE) or own


def no_service(cause: str, hint: str, data: Path) -> typer.Exit:
    """The exit of a command that found no service; says how there comes to be one."""
    directory = DataDirectory(data)
    if URL_VARIABLE not in os.environ and not directory.is_up:
        hint = f"start one with kuayu up, in this folder; or name one with --url, or in {URL_VARIABLE}"
    return fail(cause, hint)


@contextmanager
def connected(
    url: str | None, token: str | None, data: Path, *, missing: str = "kuayu jobs lists all"
) -> Iterator["Client"]:
    """A client of the service that is meant; failures are told with cause and hint, and Ctrl-C is no failure.

    Args:
        url: As given; see :func:`service_of`.
        token: As given.
        data: Data directory of ``kuayu up``.
        missing: Hint where the service does not know what it is asked about.
    """
    from kuayu.client import Client, ClientError, NotFoundError, UnauthorisedError, UnreachableError

    request, credential = service_of(url, token, data)
    try:
        with Client(request, token=credential) as client:
            yield client
    except UnreachableError as error:
        raise no_service(error.cause, error.hint, data) from error
    except UnauthorisedError as error:
        hint = "name a token with --token or in KUAYU_TOKEN, or be where the data directory of kuayu up is"
        raise fail(error.cause, hint) from error
    except NotFoundError as error:
        raise fail(error.cause, missing) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def engine_options(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Options of an engine, of the types that it takes.

    Raises:
        typer.Exit: There is no such engine or option, or it lacks an installation.
    """
    import inspect

    from kuayu.engine.runs import registry
    from kuayu.engine.runs.protocol import EngineError

    try:
        known = registry.options(name)
    except EngineError as error:
        raise fail(error.cause, error.hint, USAGE) from error
    outcome: dict[str, Any] = {}
    for option, text in given.items():
        if option not in known and not any(entry.kind is inspect.Parameter.VAR_KEYWORD for entry in known.values()):
            takes = ", ".join(known) or "none"
            raise fail(f"the engine {name} has no option {option}", f"its options are {takes}", USAGE)
        outcome[option] = option_value(text, str(known[option].annotation) if option in known else "")
    return outcome


def option_value(text: str, annotation: str) -> Any:
    """The value of an option: a path or a text where that is wanted, else what it is as JSON, or as it stands."""
    if "Path" in annotation:
        return Path(text)
    if "str" in annotation and "Sequence" not in annotation and "Mapping" not in annotation:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
