"""The contract of actions for whoever carries them out: what they are asked for allocations and because of faults."""

import asyncio
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, select, union_all

from kuayu.service import instants
from kuayu.service.allocating import storage as allocations
from kuayu.service.allocating.commands import Follower, TakeResult
from kuayu.service.allocating.leases import Leases
from kuayu.service.allocating.rules import Result
from kuayu.service.bells import Bell
from kuayu.service.lanes import Threads
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.tables import response, step
from kuayu.service.storage.writer import Outcome, Transaction, Writer
from kuayu.service.watching import storage as faults
from kuayu.service.watching.commands import Answered

MOST_SHOWN = 1000
"""Actions that a domain is shown at once."""

Answer = allocations.Record | faults.Record
"""What an answer belongs to, as it stands afterwards."""


@dataclass(frozen=True, slots=True)
class TakeAnswer:
    """A domain has answered. Whose action it is, its name tells: no two have the same.

    Raises when applied: unknown-reference, invalid-body.

    Attributes:
        tenant: Whose it is.
        epoch: Epoch of the faults' revisions.
        result: The answer.
        now: When it came, in milliseconds by the clock of deadlines.
        follower: Is told of changes of allocations.
        weight: How much of the writer's queue it takes.
        offset: Milliseconds by which the clock on the wall is ahead of that of deadlines.
    """

    tenant: str
    epoch: str
    result: Result
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Take the answer; one that was given before changes nothing."""
        asked = faults.find_response(transaction.connection, self.tenant, self.result.action)
        if asked is not None:
            return Answered(self.tenant, self.epoch, asked, self.result).apply(transaction)
        return TakeResult(self.tenant, self.result, self.now, self.follower, offset=self.offset).apply(transaction)


class Asking:
    """Open actions of all domains, and their answers. Use it in the event loop.

    Args:
        settings: What the operator set.
        metrics: Are told of those who wait, and of results.
        database: Where actions are read.
        writer: Takes results.
        bell: Rings when a domain is asked for something.
        leases: Are told when a domain is answered.
        follower: Is told of changes of allocations.
        threads: Where open actions are looked for.
        clock: Which deadlines are kept by.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        database: Database,
        writer: Writer,
        bell: Bell,
        leases: Leases,
        follower: Follower,
        threads: Threads,
        clock: instants.Clock,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._database = database
        self._writer = writer
        self._bell = bell
        self._leases = leases
        self._follower = follower
        self._threads = threads
        self._clock = clock
        metrics.action_readers.set_function(lambda: len(bell))

    async def take(self, tenant: str, result: Result) -> Answer:
        """A domain has answered; the allocation or the fault that the answer belongs to.

        Raises:
            ProblemException: unknown-reference or invalid-body.
        """
        now, offset = self._clock.milliseconds(), self._clock.offset()
        command = TakeAnswer(tenant, self._database.epoch, result, now, self._follower, offset=offset)
        found = await self._writer.write(command, tenant, urgent=True)
        self._metrics.action_results.labels(result.phase.value, result.outcome.value).inc()
        return found

    async def open_actions(self, tenant: str, domain: str, seconds: float) -> list[bytes]:
        """What a domain is asked and has not answered, class Action as JSON; where there is nothing, waits for it.

        Raises:
            ProblemException: overloaded, where too many wait already.
        """
        most = self._settings.max_action_readers
        if seconds and (len(self._bell) >= most or self._bell.waiting_of(tenant) >= self._settings.share(most)):
            raise ProblemException("overloaded", "more domains wait for actions than the service takes", retry_after=1)
        found = await self._found(tenant, domain, asyncio.get_running_loop().time() + seconds)
        self._leases.answered(tenant, domain)
        return found

    async def _found(self, tenant: str, domain: str, until: float) -> list[bytes]:
        """Open actions, as soon as there are some or it is time."""
        loop = asyncio.get_running_loop()
        while True:
            with self._bell.heard((tenant, domain)) as event:
                # Whatever comes after this look rings, so nothing is missed.
                found = await self._threads.run(tenant, self._open_actions, tenant, domain)
                left = until - loop.time()
                if found or left <= 0 or self._bell.closed:
                    return found
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    return []

    def _open_actions(self, owner: str, domain: str) -> list[bytes]:
        """Open actions, the oldest first: by the commits by which they were asked, which all of them share."""

        def shown(table: Table) -> Any:
            columns = table.c
            return select(columns.open_since, columns.action, columns.body).where(
                columns.tenant == owner, columns.domain == domain, columns.open_since.is_not(None)
            )

        both = union_all(shown(step), shown(response)).subquery()
        query = select(both.c.body).order_by(both.c.open_since, both.c.action).limit(MOST_SHOWN)
        with self._database.reading() as connection:
            return [body.encode() for body in connection.execute(query).scalars()]
