"""Wrong in listings."""

from collections.abc import Callable, Iterator

from minimal_server.core import Json, Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-012", "JOB-001")
class PagesAreNotPinned(MinimalServer):
    """Later pages show the state at the time they are asked for."""

    @override
    def pinned(self, pin: str, request: Request, listing: Callable[[], Iterator[Json]]) -> tuple[list[Json], Json]:
        return list(listing()), self.revision(request.tenant)


@breaks("COM-003", "COM-012")
class CursorsFitAnyListing(MinimalServer):
    """The cursor of one listing opens another."""

    @override
    def cursor(self, scope: str, pin: str, start: int) -> str:
        return super().cursor("", pin, start)
