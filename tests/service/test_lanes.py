"""Lanes: places are shared out between tenants, who hangs up leaves, and threads count until they are done."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator

import pytest
from fastapi import Request

from kuayu.service.concurrency import Lane, Threads, WorkerPool, while_wanted
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException


async def settle() -> None:
    """Let all who can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_tenant_with_many_requests_does_not_keep_another_waiting() -> None:
    async def scenario() -> None:
        lane = Lane(size=2, share=1, max_waiting=100)
        await lane.enter("many")
        waiting = [asyncio.create_task(lane.enter("many")) for _ in range(50)]
        await settle()
        await lane.enter("one")  # at once: the place is not for the 50
        assert lane.waiting == 50
        lane.leave("many")
        await settle()
        assert sum(task.done() for task in waiting) == 1
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert lane.waiting == 0

    asyncio.run(scenario())


def test_queues_take_turns() -> None:
    async def scenario() -> list[str]:
        lane = Lane(size=1, share=1, max_waiting=100)
        order: list[str] = []

        async def work(tenant: str) -> None:
            async with lane.place(tenant):
                order.append(tenant)
                await asyncio.sleep(0)

        await lane.enter("first")
        tasks = [asyncio.create_task(work(tenant)) for tenant in ["a"] * 4 + ["b"] * 2]
        await settle()
        lane.leave("first")
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(scenario()) == ["a", "b", "a", "b", "a", "a"]


def test_who_waits_too_many_is_turned_away_and_told_when_to_come_back() -> None:
    async def scenario() -> None:
        lane = Lane(size=1, share=1, max_waiting=3, waiting_share=2)
        await lane.enter("a")
        waiting = [asyncio.create_task(lane.enter("a")) for _ in range(2)]
        await settle()
        with pytest.raises(ProblemException, match="overloaded") as refused:
            await lane.enter("a")
        assert refused.value.response().headers["Retry-After"] == "1"
        waiting.append(asyncio.create_task(lane.enter("b")))
        await settle()
        with pytest.raises(ProblemException, match="overloaded"):
            await lane.enter("c")
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(scenario())


def test_a_place_that_comes_with_the_cancellation_is_given_on() -> None:
    async def scenario() -> None:
        lane = Lane(size=1, share=1, max_waiting=10)
        await lane.enter("a")
        gone, next_one = asyncio.create_task(lane.enter("a")), asyncio.create_task(lane.enter("b"))
        await settle()
        lane.leave("a")
        gone.cancel()
        await asyncio.wait_for(next_one, 1)

    asyncio.run(scenario())


def test_a_thread_counts_until_it_is_done_although_nobody_waits_for_it() -> None:
    async def scenario() -> None:
        threads, gate = Threads("test", size=2, share=1), threading.Event()
        try:
            left = asyncio.create_task(threads.run("a", gate.wait))
            await asyncio.sleep(0.05)
            left.cancel()
            behind = asyncio.create_task(threads.run("a", abs, -1))
            assert await threads.run("b", abs, -2) == 2
            await asyncio.sleep(0.05)
            assert not behind.done()
            gate.set()
            assert await asyncio.wait_for(behind, 5) == 1
        finally:
            gate.set()
            threads.close()

    asyncio.run(scenario())


def test_a_decision_that_takes_too_long_is_given_up_and_the_next_is_made() -> None:
    async def scenario() -> None:
        decisions = WorkerPool(workers=1, max_waiting=4, metrics=Metrics(), deadline=6.0)
        try:
            assert await decisions.compute("x", abs, -1) == 1  # the worker has begun
            decisions._deadline = 0.3  # noqa: SLF001 - to begin a worker may take longer than that
            with pytest.raises(ProblemException, match="overloaded"):
                await decisions.compute("x", time.sleep, 60)
            decisions._deadline = 60.0  # noqa: SLF001
            assert await decisions.compute("x", abs, -2) == 2
        finally:
            decisions.close()

    asyncio.run(scenario())


def test_who_is_cancelled_while_a_place_comes_free_does_not_take_the_turn_of_those_behind() -> None:
    async def played() -> bool:
        lane = Lane(1, 1, 8)
        await lane.enter("a")
        first = asyncio.ensure_future(lane.enter("b"))
        second = asyncio.ensure_future(lane.enter("b"))
        await asyncio.sleep(0)
        first.cancel()
        lane.leave("a")  # before the first has been told
        await asyncio.wait_for(second, 5)
        return first.cancelled() and lane.waiting == 0

    assert asyncio.run(played())


class Body(str):
    """A request's, of which it can be told when it is gone."""

    __slots__ = ("__weakref__",)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No collection of garbage: what is in a circle stays, as it does for long in a service that uses little."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def refused(body: Body) -> None:
    """Refuse a body, as what parses it does."""
    await asyncio.sleep(0)
    raise ValueError(len(body))


@pytest.mark.usefixtures("uncollected")
def test_a_body_that_is_refused_in_a_thread_is_let_go() -> None:
    def parse(body: Body) -> None:
        raise ValueError(len(body))

    async def answer(threads: Threads, body: Body) -> None:
        with pytest.raises(ValueError, match="5"):
            await threads.run("a", parse, body)

    async def scenario() -> "weakref.ref[Body]":
        threads, body = Threads("test", size=1, share=1), Body("large")
        await answer(threads, body)
        threads.close()
        return weakref.ref(body)

    assert asyncio.run(scenario())() is None


@pytest.mark.usefixtures("uncollected")
def test_a_body_that_is_refused_while_the_client_waits_is_let_go() -> None:
    async def receive() -> dict[str, str]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def answer(body: Body) -> None:
        with pytest.raises(ValueError, match="5"):
            await while_wanted(Request({"type": "http"}, receive), refused(body))

    async def scenario() -> "weakref.ref[Body]":
        body = Body("large")
        await answer(body)
        return weakref.ref(body)

    assert asyncio.run(scenario())() is None
