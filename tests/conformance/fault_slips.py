"""Services that are wrong about faults in what all operations share, and ones that declare fewer profiles.

``python -m conformance.fault_slips NAME`` and what ``python -m minimal_server`` takes serves one of them.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import commands
from minimal_server.__main__ import serve
from minimal_server.client import SCHEMAS
from minimal_server.core import Answer, Json, Request, Tenant
from minimal_server.faults import Docket
from minimal_server.service import MinimalServer
from minimal_server.validator import Error
from typing_extensions import override


class OfFaultsAndPerception(MinimalServer):
    """Nodes can be registered and fail, nothing can be allocated."""

    declared: tuple[str, ...] = ("COM", "MET", "RES")

    @override
    def declaration(self, request: Request) -> Answer:
        answer = super().declaration(request)
        return Answer(200, {**answer.body, "profiles": [*self.declared]})


class OfFaultsAndScheduling(OfFaultsAndPerception):
    """Devices can be allocated, no node can be registered."""

    declared = ("COM", "SCH", "RES")


class OfFaultsAlone(OfFaultsAndPerception):
    """Resilience by itself."""

    declared = ("COM", "RES")


class OfPerceptionAlone(OfFaultsAndPerception):
    """Nodes can be registered, and nobody tells that they fail."""

    declared = ("COM", "MET")


class FaultsAreListedAsTheyAre(MinimalServer):
    """Each page of faults shows them as they are when it is asked for."""

    @override
    def pinned(self, pin: str, request: Request, listing: Callable[[], Iterator[Json]]) -> tuple[list[Json], Json]:
        items, revision = super().pinned(pin, request, listing)
        return (list(listing()) if request.path == "/v1/faults" else items), revision


class CursorsOfFaultsFitAnyState(MinimalServer):
    """The cursor of a listing of faults opens that of other states."""

    @override
    def cursor(self, scope: str, pin: str, start: int) -> str:
        return super().cursor("" if "/v1/faults" in scope else scope, pin, start)


class FaultsAreTwiceOnAPage(MinimalServer):
    """A page of faults holds each of its faults twice."""

    @override
    def get_faults(self, request: Request) -> Answer:
        answer = super().get_faults(request)
        items = answer.body["items"]
        return Answer(answer.status, {**answer.body, "items": items * 2}, answer.headers)


class TenantsShareFaults(MinimalServer):
    """Every tenant sees every other's faults, and is told of them."""

    @override
    def docket(self, tenant: Tenant) -> Docket:
        return self.dockets.setdefault("", Docket())


class AnyoneBeats(MinimalServer):
    """A heartbeat of a node that is not registered is taken."""

    @override
    def taken_in(self, accepted: int, rejected: list[Json]) -> Answer:
        bad = [item for item in rejected if "unknown-reference" not in item["problem"]["type"]]
        return super().taken_in(accepted + len(rejected) - len(bad), bad)


class AnyEventOfFaultsIsHeld(MinimalServer):
    """A stream of faults begins anew behind an event that never was."""

    @override
    def holds_faults_from(self, docket: Docket, number: int) -> bool:
        return True


class BatchesOfReportsAreOpen(MinimalServer):
    """Batches of heartbeats and log lines may hold members that no one knows."""

    @override
    def schema_errors(self, model: str, value: Any, *, without: str = "") -> list[Error]:
        errors = super().schema_errors(model, value, without=without)
        return [error for error in errors if error[0] != "/mode"] if model in {"HeartbeatBatch", "LogBatch"} else errors


class LinesBreakTheService(MinimalServer):
    """A line that holds an escape is the end of the request."""

    @override
    def check_item(self, tenant: Tenant, member: str, item: Json, at: str) -> None:
        super().check_item(tenant, member, item, at)
        if "\x1b" in item.get("text", ""):
            raise ZeroDivisionError


KINDS = {
    kind.__name__: kind
    for kind in MinimalServer.__subclasses__() + OfFaultsAndPerception.__subclasses__()
    if kind.__module__ == __name__
}
"""Each of them by name."""


@contextlib.contextmanager
def served(name: str) -> Iterator[str]:
    """Serve one of them as a process; yields its base URL."""
    tokens = ["--token", "own=own", "--token", "other=other"]
    with commands.target("conformance.fault_slips", name, "--schemas", str(SCHEMAS), *tokens) as url:
        yield url


def main(arguments: Sequence[str]) -> None:
    """Serve until the process ends."""
    name, *options = arguments
    serve(KINDS[name], options)


if __name__ == "__main__":
    main(sys.argv[1:])
