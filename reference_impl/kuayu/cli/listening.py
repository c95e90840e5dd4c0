"""Serving an application on a socket until SIGTERM or SIGINT."""

import errno
import ipaddress
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

GRACE_S = 5
"""Seconds that requests under way, open streams among them, have to end once the program is told to stop."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; nobody is let in before :func:`run`.

    Raises:
        OSError: There is no such address, or another program has the port.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except UnicodeError as error:
        raise OSError(errno.EINVAL, "no name of a host") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def is_own(listener: socket.socket, host: str, port: int | None) -> bool:
    """Whether an address of another program is that of this listener itself."""
    bound = ipaddress.ip_address(listener.getsockname()[0])
    if port != listener.getsockname()[1]:
        return False
    try:
        found = {ipaddress.ip_address(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return False
    return bound in found or (bound.is_unspecified and any(each.is_loopback or each == bound for each in found))


def shown(host: str) -> str:
    """A host as it stands in a URL (RFC 3986, 3.2.2)."""
    return f"[{host}]" if ":" in host else host


def run(app: "ASGIApp", listener: socket.socket, log_level: str, ending: Callable[[], None] = lambda: None) -> None:
    """Serve until told to stop; returns when the application has ended in order.

    Args:
        app: What answers.
        listener: Where.
        log_level: Of the server.
        ending: Called when the server is told to stop, before it waits for answers under way.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level=log_level,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal that stopped it once more when it is done; by then it has been obeyed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    _server(config, ending).run(sockets=[listener])


def _server(config: "uvicorn.Config", ending: Callable[[], None]) -> "uvicorn.Server":
    import uvicorn

    class Server(uvicorn.Server):
        """Ends streams when it is told to stop; otherwise it would wait for readers to go by themselves."""

        @override
        async def shutdown(self, sockets: "list[socket.socket] | None" = None) -> None:
            ending()
            await super().shutdown(sockets)

    return Server(config)
