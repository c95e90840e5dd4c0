"""Clocks that are set while the service runs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from service.databases import opened
from service.test_allocation_rules import allocation

from kuayu.service import allocation_rules, instants
from kuayu.service.allocation_commands import AllocationCoordinator, TakeResult
from kuayu.service.allocation_rules import Result
from kuayu.service.concurrency import Notifier
from kuayu.service.metrics import Metrics
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.writer import Writer
from kuayu_schemas.models import ActionOutcome, ActionPhase, AllocationPhase

HOUR_MS = 3_600_000
SPEC = {**allocation(("x",)), "patience": 2.0}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with opened(f"sqlite:///{tmp_path / 'clock.db'}") as database:
        yield database


def play(database: Database, story: Callable[[AllocationCoordinator, Writer], Awaitable[None]]) -> None:
    """A coordinator with a writer of its own, as long as the story lasts."""

    async def run() -> None:
        writer = Writer(database.write, 100, Metrics())
        writer.start()
        coordinator = AllocationCoordinator(Settings(), Metrics(), database, writer, Notifier())
        coordinator.start()
        try:
            await story(coordinator, writer)
        finally:
            await coordinator.close()
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize("leap", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_set_neither_aborts_an_allocation_nor_keeps_it_waiting(
    database: Database, monkeypatch: pytest.MonkeyPatch, leap: int
) -> None:
    true = instants.now

    async def story(coordinator: AllocationCoordinator, _: Writer) -> None:
        before = (await coordinator.put("", SPEC)).record
        monkeypatch.setattr(instants, "now", lambda: true() + leap)
        await asyncio.sleep(0.5)
        assert phase(coordinator) is AllocationPhase.preparing
        result = Result(before.standing.steps[0].key[0], ActionPhase.prepare, ActionOutcome.prepared)
        after = await coordinator._writer.write(  # noqa: SLF001 - as the contract of actions does
            TakeResult("", result, coordinator.clock.milliseconds(), lambda _: None, offset=coordinator.clock.offset())
        )
        assert after.standing.phase is AllocationPhase.committing
        assert after.standing.created == before.standing.created
        assert abs(after.updated - before.updated - leap) < 5_000
        await asyncio.sleep(3)
        assert phase(coordinator) is AllocationPhase.aborting

    def phase(coordinator: AllocationCoordinator) -> AllocationPhase:
        record = coordinator.store.record("", SPEC["id"])
        assert record is not None
        return record.standing.phase

    play(database, story)


def test_a_clock_that_was_set_back_while_the_service_was_away_draws_no_deadline_out() -> None:
    standing = allocation_rules.begin(SPEC, HOUR_MS)
    assert allocation_rules.resume(standing, 0).deadline == allocation_rules.begin(SPEC, 0).deadline
