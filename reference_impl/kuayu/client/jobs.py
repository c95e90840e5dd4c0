"""Jobs: submitted, watched and called off; and what domains tell of their runs."""

import time
from collections.abc import Generator, Iterator

from kuayu.client.connection import Connection, RefusedError, UnreachableError, event_of, path_of
from kuayu_schemas.models import (
    AccountList,
    Declaration,
    JobDecision,
    JobLoad,
    JobLogLine,
    JobLogPage,
    JobPage,
    JobRecord,
    JobRequest,
    Revision,
    RunLogBatch,
    RunLogResult,
    RunReport,
)

MAX_WAIT_S = 30.0
"""Seconds that a service may be asked to wait for lines; the standard has no more."""

MAX_LINES = 1000
"""Lines of a page that are asked for, where a service gives so many."""

PAUSE_S = 1.0
"""Seconds after which a service that was there is asked again for lines."""


class Jobs(Connection):
    """Jobs of a service, which places, starts and watches them."""

    def submit_job(self, request: JobRequest) -> JobRecord:
        """Submit a job; the same one may be submitted again, and is there once.

        A job does not change: another one of its name is a :class:`RefusedError` of the name ``invalid-body``.
        """
        headers = {"content-type": "application/json"}
        return self._read(JobRecord, "PUT", path_of("jobs", request.id), content=request.to_json(), headers=headers)

    def job(self, identifier: str) -> JobRecord:
        """A job as it stands; :class:`NotFoundError` where there is none."""
        return self._read(JobRecord, "GET", path_of("jobs", identifier))

    def jobs(self, *, page_size: int | None = None) -> Iterator[JobRecord]:
        """All jobs in order of name, page after page, as they stood when the first page was asked for."""
        for page in self._job_pages(page_size):
            yield from page.items

    def cancel_job(self, identifier: str) -> JobRecord:
        """Call a job off. Its record stays, and tells when nothing of it runs any more; one that has ended stays."""
        return self._read(JobRecord, "DELETE", path_of("jobs", identifier))

    def job_decision(self, identifier: str) -> JobDecision:
        """What was last decided about a job, why, and what the next-best would have been.

        :class:`NotFoundError` where there is no such job, and where nothing was decided about it yet.
        """
        return self._read(JobDecision, "GET", path_of("jobs", identifier) + "/decision")

    def accounts(self) -> AccountList:
        """What accounts have used, by which their jobs take turns, with their weights and quotas."""
        return self._read(AccountList, "GET", "/v1/accounts")

    def follow_jobs(self, *, after: Revision | None = None, patience_s: float = 60.0) -> Iterator[JobRecord]:
        """Jobs, each as it has come to be: it takes the place of the one of its name.

        A connection that breaks is made anew, and no change is lost by that. Where the service no longer holds the
        changes that were missed, every job that it lists comes instead.

        Args:
            after: Revision of the jobs after which changes are wanted. Where it is None, all jobs come first, then each
                change.
            patience_s: How long a service that was there may be away, in seconds; then :class:`UnreachableError`.
        """
        last = (yield from self._listed_jobs()) if after is None else _named(after)
        while True:
            try:
                for event in self._follow("/v1/jobs/events", {}, last, "job", patience_s):
                    yield event_of(JobRecord, event)
            except RefusedError as error:
                if error.name != "revision-expired":
                    raise
                last = yield from self._listed_jobs()

    def job_log_page(
        self, identifier: str, *, after: str | None = None, limit: int | None = None, wait_s: float = 0.0
    ) -> JobLogPage:
        """Part of a job's log.

        Args:
            identifier: The job.
            after: Cursor of the page before; from the beginning where it is None.
            limit: Lines at most; the service's choice where it is None.
            wait_s: Seconds to wait for a line where there is none, at most ``MAX_WAIT_S``.
        """
        query = {"wait": f"{wait_s:g}"} if wait_s else {}
        query |= {} if after is None else {"after": after}
        query |= {} if limit is None else {"limit": str(limit)}
        return self._read(JobLogPage, "GET", path_of("jobs", identifier) + "/logs", query, patience_s=wait_s)

    def job_log_pages(self, identifier: str, *, after: str | None = None) -> Iterator[JobLogPage]:
        """Pages of what is there of a job's log; the last one says where to go on, and may be empty.

        A job that goes on printing does not make it longer than that: it ends with the first page that is not full.

        Args:
            identifier: The job.
            after: Cursor of a page, to go on after it; from the beginning where it is None.
        """
        declared = self._read(Declaration, "GET", "/v1/conformance")
        limit = min(MAX_LINES, int(declared.limits.max_page))
        while True:
            page = self.job_log_page(identifier, after=after, limit=limit)
            yield page
            if len(page.items) < limit:
                return
            after = page.next_cursor

    def job_logs(
        self,
        identifier: str,
        *,
        follow: bool = False,
        after: str | None = None,
        wait_s: float = 20.0,
        patience_s: float = 60.0,
    ) -> Iterator[JobLogLine]:
        """Lines of a job's log in the order in which they came.

        Args:
            identifier: The job.
            after: Cursor of a page, to go on after it; from the beginning where it is None.
            follow: Whether to wait for further lines until none is to come; those that are there where it is false.
            wait_s: Seconds that a request waits for lines.
            patience_s: How long a service that was there may be away, in seconds; then :class:`UnreachableError`.
        """
        if not follow:
            for page in self.job_log_pages(identifier, after=after):
                yield from page.items
            return
        cursor, heard_at = after, time.monotonic()
        while True:
            try:
                page = self.job_log_page(identifier, after=cursor, wait_s=wait_s if cursor else 0.0)
            except (UnreachableError, RefusedError) as error:
                if not (cursor and error.transient) or time.monotonic() - heard_at > patience_s:
                    raise
                time.sleep(PAUSE_S)
                continue
            heard_at = time.monotonic()
            yield from page.items
            # A cursor is given with the last page as well, to go on later.
            if page.ended and not page.items:
                return
            cursor = page.next_cursor

    def post_run_report(self, report: RunReport) -> JobRecord:
        """Tell how a run stands; may be repeated. ``unknown-reference`` where no such run was ever asked for."""
        return self._ask(JobRecord, "/v1/run-reports", report)

    def post_job_load(self, load: JobLoad) -> JobRecord:
        """Tell how many requests come in for a serving job; its replicas follow that."""
        return self._ask(JobRecord, "/v1/job-loads", load)

    def post_run_logs(self, batch: RunLogBatch) -> RunLogResult:
        """Hand over lines of a run; those that are kept already are passed over.

        The result says after which line to go on. Nothing is kept of a batch that leaves a gap.
        """
        return self._ask(RunLogResult, "/v1/run-logs", batch)

    def _listed_jobs(self) -> Generator[JobRecord, None, str]:
        """All jobs; returns the revision of the listing, as events are identified by it."""
        last = ""
        for page in self._job_pages(None):
            yield from page.items
            last = _named(page.revision)
        return last

    def _job_pages(self, page_size: int | None) -> Iterator[JobPage]:
        """Pages of the listing, all as of one revision."""
        query = {} if page_size is None else {"limit": str(page_size)}
        while True:
            page = self._read(JobPage, "GET", "/v1/jobs", query)
            yield page
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor


def _named(revision: Revision) -> str:
    """A revision as events are identified by it."""
    return f"{revision.epoch}:{revision.number}"
