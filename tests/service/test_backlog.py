"""Pages that wait for a database that is away: in order, as many as agreed, and none that is wrong twice."""

import asyncio

import pytest

from kuayu.service import scraper
from kuayu.service.problems import ProblemException
from kuayu.service.scraper import Backlog

KEY = ("", "target")


class Database:
    """Takes pages, unless it is away."""

    def __init__(self) -> None:
        self.away = False
        self.held: list[int] = []

    async def write(self, page: str, received: int) -> tuple[()]:
        """Take a page, or not."""
        if self.away:
            raise ProblemException("overloaded", "away", retry_after=1)
        if page == "wrong":
            raise ProblemException("malformed-exposition", "wrong")
        self.held.append(received)
        return ()


def give(waiting: Backlog, database: Database, page: str, received: int) -> str:
    """Hand a page over; the name of the problem, or nothing."""
    try:
        asyncio.run(waiting.hand_over(KEY, page, received, database.write))
    except ProblemException as problem:
        return problem.name
    return ""


def test_what_was_kept_comes_first_and_no_more_is_kept_than_agreed() -> None:
    waiting, database = Backlog(), Database()
    database.away = True
    for number in range(scraper.MAX_BACKLOG_PAGES + 10):
        assert give(waiting, database, "page", number) == "overloaded"
    database.away = False
    assert give(waiting, database, "page", 1_000) == ""
    assert database.held == [*range(11, scraper.MAX_BACKLOG_PAGES + 10), 1_000]


def test_a_wrong_page_holds_up_no_other() -> None:
    waiting, database = Backlog(), Database()
    assert give(waiting, database, "wrong", 1) == "malformed-exposition"
    database.away = True
    give(waiting, database, "page", 2)
    give(waiting, database, "wrong", 3)
    database.away = False
    assert give(waiting, database, "page", 4) == ""
    assert database.held == [2, 4]


def test_all_pages_together_take_so_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraper, "MAX_BACKLOG_CHARACTERS", 100)
    waiting, database = Backlog(), Database()
    database.away = True
    for number in range(10):
        give(waiting, database, "x" * 30, number)
    database.away = False
    give(waiting, database, "x" * 30, 10)
    assert database.held == [8, 9, 10]
