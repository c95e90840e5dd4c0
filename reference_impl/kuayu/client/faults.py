"""Signs of life of nodes, lines of their logs, and the faults that a service recognises in them."""

from collections.abc import Generator, Iterator, Sequence

from kuayu.client.connection import Connection, event_of
from kuayu.client.errors import RefusedError
from kuayu_schemas.models import (
    Fault,
    FaultPage,
    FaultState,
    Heartbeat,
    HeartbeatBatch,
    IntakeResult,
    LogBatch,
    LogLine,
    Revision,
)

JSON = {"content-type": "application/json"}


class Faults(Connection):
    """What is wrong with nodes, domains and jobs, as far as a service can tell."""

    def send_heartbeats(self, beats: Sequence[Heartbeat]) -> IntakeResult:
        """Tell that nodes live, and how far the ranks on them are.

        They are sent once only, however the client is set: an old beat is worth nothing, and the next is a better one.

        Args:
            beats: At least one, at most ``limits.max_batch`` of them.
        """
        batch = HeartbeatBatch(beats=list(beats))
        return self._read(IntakeResult, "POST", "/v1/heartbeats", content=batch.to_json(), headers=JSON, attempts=1)

    def send_log_lines(self, lines: Sequence[LogLine]) -> IntakeResult:
        """Hand over lines of logs; a line that comes twice tells the same fault, so that this may be repeated.

        Args:
            lines: In the order of each log; at least one, at most ``limits.max_batch`` of them.
        """
        return self._ask(IntakeResult, "/v1/log-lines", LogBatch(lines=list(lines)))

    def faults(
        self, *, domain: str | None = None, state: FaultState | None = None, page_size: int | None = None
    ) -> Iterator[Fault]:
        """Faults in order of identifier, page after page, as they stood when the first page was asked for.

        Args:
            domain: Only those about this domain or a node of it.
            state: Only those that are open, or cleared; both where it is None. Cleared ones are kept for an hour at
                least.
            page_size: Faults of a page; the service's choice where it is None.
        """
        for page in self._fault_pages(domain, state, page_size):
            yield from page.items

    def follow_faults(self, *, after: Revision | None = None, patience_s: float = 60.0) -> Iterator[Fault]:
        """Faults, each as it has come to be: it takes the place of the one of its identifier.

        A connection that breaks is made anew, and no change is lost by that. Where the service no longer holds the
        changes that were missed, every fault that it lists comes instead.

        Args:
            after: Revision of the faults after which changes are wanted. Where it is None, all that are open come
                first, then each change.
            patience_s: How long a service that was there may be away, in seconds; then :class:`UnreachableError`.
        """
        last = (yield from self._listed(FaultState.open)) if after is None else _named(after)
        while True:
            try:
                for event in self._follow("/v1/faults/events", {}, last, "fault", patience_s):
                    yield event_of(Fault, event)
            except RefusedError as error:
                if error.name != "revision-expired":
                    raise
                last = yield from self._listed(None)

    def _listed(self, state: FaultState | None) -> Generator[Fault, None, str]:
        """Faults of a state; returns the revision of the listing, as events are identified by it."""
        last = ""
        for page in self._fault_pages(None, state, None):
            yield from page.items
            last = _named(page.revision)
        return last

    def _fault_pages(self, domain: str | None, state: FaultState | None, page_size: int | None) -> Iterator[FaultPage]:
        """Pages of a listing, all as of one revision."""
        asked = {
            "domain": domain,
            "state": None if state is None else state.value,
            "limit": None if page_size is None else str(page_size),
        }
        query = {name: value for name, value in asked.items() if value is not None}
        while True:
            page = self._read(FaultPage, "GET", "/v1/faults", query)
            yield page
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor


def _named(revision: Revision) -> str:
    """A revision as events are identified by it."""
    return f"{revision.epoch}:{revision.number}"
