"""What an operator can set: the settings of a service, and files that are read again when they change.

1. A file of the operator, such as that of tokens or of accounts, has an entry in each line. A line that is empty, or
   begins with ``#``, is a remark.
2. A file is taken as a whole or not at all: where a line is wrong, it is said which, and what was read before holds.
"""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kuayu.jobs.fair_share import HALF_LIFE_SECONDS
from kuayu.scheduling import Scheduler
from kuayu.service.rate_limits import BURST_SECONDS, RateLimit
from kuayu.service.storage.resources import Quota
from kuayu_schemas.models import Durability

if TYPE_CHECKING:
    from kuayu.service.access import AuditLog
    from kuayu.service.account_store import AccountFile
    from kuayu.service.auth import TokenFile
    from kuayu.service.token_issuer import TokenIssuer

SOLE_TENANT = "default"
"""Tenant of everyone where the feature tenancy is off."""


QUOTA = Quota(resources=1_000_000, largest=1024 * 1024, together=512 * 1024 * 1024)
"""What a tenant may have registered where the operator does not say."""


REQUEST_LIMIT = RateLimit(1_000.0, BURST_SECONDS * 1_000.0)
"""Requests of a sender where the operator does not say; so many that only floods meet it."""

GUESS_LIMIT = RateLimit(1.0, 60.0)
"""Unknown tokens from an address, likewise: far more than people mistype."""


def share_of(number: int, *, shared: bool) -> int:
    """How much of something a tenant may have at a time: half where there are others, at least one."""
    return max(1, number // 2) if shared else number


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the service.

    Attributes:
        database: SQLAlchemy URL; ``sqlite:///FILE`` or ``postgresql+psycopg://…``.
        tokens: Tenant of each bearer token. With any token the service has the feature tenancy; without, everyone is
            one tenant and no token is asked for.
        token_file: More tokens, in a file that is read again when it changes.
        issuer: Whose JSON Web Tokens are taken beside these.
        metrics: Who gets the service's own metrics: everyone (open), who has a token of a tenant or the operator
            (token), the operator alone (operator), or nobody (off).
        scrape_allow: Hosts and CIDRs that may be scraped. With any the service has the feature scrape.
        durability: Which crash an acknowledged write survives.
        retention: Seconds that samples are kept at least.
        rollup_retention: Seconds that steps of older samples are kept for series; none are where it is no longer than
            the retention.
        idempotency: Seconds that idempotency keys are remembered.
        history: Revisions that listings can still be pinned to.
        max_body: Bytes of the largest request body.
        quota: What a tenant may have registered.
        max_batch: Items of the largest bulk request.
        max_page: Items of the largest page.
        max_queue: Samples that may wait for the writer before requests are turned away.
        max_indices: Compute indices of the largest report.
        scheduler: What places jobs.
        workers: Decisions that are computed at once.
        prepare: Whether one of them begins at once, so that the first request need not wait for that.
        deadline: Seconds that a decision may take to be computed.
        threads: Threads in which bodies are parsed and the database is read.
        body_bytes: Bytes of bodies that may be in hand at a time.
        body_grace: Seconds that a body may take in any case, and
        body_rate: bytes a second that it has to come with, beyond that.
        base_bytes: Bytes of canonical JSON of the scheduling states that each worker holds for patches; in memory they
            take several times as much.
        max_waiting: Decisions that may wait to be computed before requests are turned away.
        scrape_period: Seconds between scrapes of a target that does not say; with its jitter no more than a second.
        scrape_timeout: Seconds that one scrape may take.
        maintenance_period: Seconds between rounds of pruning.
        max_streams: Readers of change streams that are served at once, of graphs, of faults and of jobs each.
        graph_period: Seconds between two looks at the states of nodes, at least.
        graph_changes: Changes of a tenant's graph from which streams can still be resumed.
        graph_bytes: Bytes that these may take in memory, about.
        max_action_readers: Domains that may wait for actions at once.
        allocation_retention: Seconds that allocations are remembered that hold nothing any more.
        fault_period: Seconds between two looks at what is at fault.
        fault_retention: Seconds that faults are remembered that are over; the clause asks for an hour.
        job_retention: Seconds that jobs are remembered that have ended, with what they have printed.
        job_lease: Seconds for which domains may run a job without an answer of the service.
        job_patience: Seconds that a domain has to answer when devices are reserved for a job.
        starting_patience: Seconds within which all runs of a job have to run once it was placed.
        run_log: Characters of what a run has printed that are kept; its oldest lines go first.
        max_log_readers: Readers of jobs' logs that may wait for further lines at once.
        accounts: Weights and quotas of accounts, in a file that is read again when it changes.
        half_life: Seconds after which what accounts have used counts half.
        pass_records: Folder in which the inputs of the last passes of the control loop are kept; None to keep none.
        audit_log: Where it is kept who changed what; None to keep it nowhere.
        request_limit: How fast requests of a sender may come where tokens are asked for; None for as fast as they can.
        guess_limit: How fast unknown tokens may come from an address; None for as fast as they can.
        behind_proxy: Whether addresses are those that a proxy names.
    """

    database: str = "sqlite:///kuayu.db"
    tokens: Mapping[str, str] = field(default_factory=dict)
    token_file: "TokenFile | None" = None
    issuer: "TokenIssuer | None" = None
    metrics: Literal["open", "token", "operator", "off"] = "open"
    scrape_allow: tuple[str, ...] = ()
    durability: Durability = Durability.process
    retention: float = 7 * 86_400.0
    rollup_retention: float = 400 * 86_400.0
    idempotency: float = 86_400.0
    history: int = 10_000
    max_body: int = 16 * 1024 * 1024
    quota: Quota = QUOTA
    max_batch: int = 10_000
    max_page: int = 1_000
    max_queue: int = 200_000
    max_indices: int = 100_000
    scheduler: Scheduler = Scheduler.RULE
    workers: int = 2
    prepare: bool = True
    deadline: float = 120.0
    threads: int = 8
    body_bytes: int = 256 * 1024 * 1024
    body_grace: float = 10.0
    body_rate: int = 64 * 1024
    base_bytes: int = 32 * 1024 * 1024
    max_waiting: int = 64
    scrape_period: float = 0.9
    scrape_timeout: float = 10.0
    maintenance_period: float = 60.0
    max_streams: int = 256
    graph_period: float = 0.25
    graph_changes: int = 100_000
    graph_bytes: int = 64 * 1024 * 1024
    max_action_readers: int = 1_024
    allocation_retention: float = 7 * 86_400.0
    fault_period: float = 0.1
    fault_retention: float = 86_400.0
    job_retention: float = 7 * 86_400.0
    job_lease: float = 30.0
    job_patience: float = 10.0
    starting_patience: float = 600.0
    run_log: int = 4 * 1024 * 1024
    max_log_readers: int = 1_024
    accounts: "AccountFile | None" = None
    half_life: float = HALF_LIFE_SECONDS
    pass_records: Path | None = None
    audit_log: "AuditLog | None" = None
    request_limit: RateLimit | None = REQUEST_LIMIT
    guess_limit: RateLimit | None = GUESS_LIMIT
    behind_proxy: bool = False

    @property
    def asks_for_tokens(self) -> bool:
        """Whether a request needs a token."""
        return bool(self.tokens) or self.token_file is not None or self.issuer is not None

    @property
    def tenants(self) -> set[str]:
        """All whom a token of the operator speaks for; an issuer may have others."""
        return {*self.tokens.values(), *(self.token_file.tenants if self.token_file is not None else ())}

    @property
    def shared(self) -> bool:
        """Whether several tenants share the service."""
        return self.token_file is not None or self.issuer is not None or len(set(self.tokens.values())) > 1

    def share(self, number: int) -> int:
        """How much of something a tenant may have at a time."""
        return share_of(number, shared=self.shared)


logger = logging.getLogger(__name__)


class OperatorFileError(ValueError):
    """The file cannot be used; the message says why and, where it is one line, in which."""


class OperatorFile(ABC):
    """A file with an entry in each line.

    Args:
        path: The file.

    Raises:
        OperatorFileError: It cannot be read, or a line of it.

    Attributes:
        what: What its entries are, in the plural.
    """

    what: str

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: object = None
        self.read()

    def read(self) -> bool:
        """Read the file if it has changed; what it held before stays where it cannot be used.

        Returns:
            Whether it was read.

        Raises:
            OperatorFileError: It cannot be read, or a line of it.
        """
        try:
            status = self._path.stat()
            state = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
            if state == self._state:
                return False
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OperatorFileError(f"cannot read the {self.what} in {self._path}: {error}") from error
        self._state = state
        numbered = enumerate(lines, start=1)
        self._take([(n, line) for n, line in numbered if line.strip() and not line.lstrip().startswith("#")], status)
        return True

    def read_again(self) -> None:
        """Read the file if it has changed, and log what came of it."""
        try:
            if self.read():
                logger.info("read %d %s from %s", self.count, self.what, self._path)
        except OperatorFileError as error:
            logger.error("%s; the %s from before still hold", error, self.what)  # noqa: TRY400 - the cause is all there is

    def _wrong(self, number: int, why: object) -> OperatorFileError:
        """What is wrong with a line."""
        return OperatorFileError(f"{self._path}, line {number}: {why}")

    @property
    @abstractmethod
    def count(self) -> int:
        """How many entries it has."""

    @abstractmethod
    def _take(self, lines: Sequence[tuple[int, str]], status: os.stat_result) -> None:
        """Take its lines, each with its number, in the place of those from before.

        Raises:
            OperatorFileError: One of them is wrong; nothing was taken.
        """
