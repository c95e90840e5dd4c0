"""Answers that commands get here or, where a URL is named, from a service."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kuayu.cli.documents import listed
from kuayu.cli.probe import USAGE, fail

if TYPE_CHECKING:
    from kuayu.client import Client

PATIENCE_S = 60.0
"""Time that a service may take for one answer; a large request takes a second or two."""

Told = TypeVar("Told")


def check_url(url: str | None) -> None:
    """Hold the URL of a service, where one is named, to its form.

    Raises:
        typer.Exit: It is none.
    """
    if url and not url.startswith(("http://", "https://")):
        raise fail(f"--url: {url!r} is no http or https URL", "write it as http://HOST:PORT", USAGE)


def answered(
    here: Callable[[], Told],
    there: Callable[["Client"], Told],
    url: str | None,
    token: str | None,
    *,
    called: str,
    hint: str,
    within: str = "",
) -> Told:
    """The answer, computed here or by a service.

    Args:
        here: Computes it.
        there: Asks a client for it.
        url: Where the service is; computed here where it is None.
        token: For the service.
        called: What people call what the file holds.
        hint: What to do where that does not hold together.
        within: Where in the request the content of the file stands; left out of what is told.

    Raises:
        typer.Exit: There is none.
    """
    from kuayu.client import Client, ClientError
    from kuayu.refusals import Refusal

    try:
        if url is None:
            return here()
        with Client(url, token=token, timeout_s=PATIENCE_S) as client:
            return there(client)
    except Refusal as error:
        faults = [f"{pointer.removeprefix(within)}: {detail}" for pointer, detail in error.pointers]
        raise fail(listed(f"the {called} does not hold together", faults), hint, USAGE) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error
