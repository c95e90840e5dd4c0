"""Running jobs that make room for one that waits: where it gains much more by that than they lose."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.states import accelerator, data, domain, pool, request, running, spec, talks

from kuayu.scheduling.place import place
from kuayu_schemas import schema

Json = dict[str, Any]
DAY, HOUR = 86_400.0, 3_600.0
KINDS = [accelerator(), accelerator("slow", 0.25), accelerator("near", 0.9)]
BOTH = domain("a", pool(8, 0), pool(8, kind="slow"))


def placed(asked: Json) -> dict[str, Json]:
    """Decisions by job; request and report are valid."""
    assert schema.is_valid("PlacementRequest", asked, reader=False)
    report = place(asked)
    assert schema.is_valid("PlacementReport", report, reader=False)
    return {decision["job"]: decision for decision in report["decisions"]}


def verbs(asked: Json) -> dict[str, str]:
    """What becomes of whom."""
    return {job: decision["verb"] for job, decision in placed(asked).items()}


def long_one(name: str = "r", count: int = 8, seconds: float = DAY, **others: Any) -> Json:
    """A job on plain devices of the domain ``a``, at its begin."""
    return running(
        spec(name, count, seconds, **{"communication": talks(), **others}), [("a", count)], rate=float(count)
    )


def test_a_long_job_leaves_fast_devices_to_a_short_one() -> None:
    # there it takes an hour and not four; the long one loses three quarters of that hour, and a minute
    made = placed(request([BOTH], [spec("w", 8, HOUR)], running=[long_one()], accelerators=KINDS, explain=True))
    assert {job: each["verb"] for job, each in made.items()} == {"r": "migrate", "w": "wait"}
    assert made["r"]["placement"]["shares"] == [{"domain": "a", "accelerator": "slow", "devices": 8}]
    assert "sooner" in made["r"]["explanation"]["reason"]
    assert made["w"]["explanation"]["outcome"]["run_at"] == "2026-01-05T00:01:00.000Z"


def test_one_that_is_nearly_done_keeps_its_devices() -> None:
    asked = request([BOTH], [spec("w", 8, HOUR)], running=[long_one(seconds=0.9 * HOUR)], accelerators=KINDS)
    assert "migrate" not in verbs(asked).values()


def test_nobody_is_preempted_for_a_job_of_lower_priority() -> None:
    # To write and read a checkpoint of 1 GB takes two seconds beside the restart, of 100 GB more than three minutes.
    for own, checkpoint, moves in ((0, 1e9, True), (1, 1e9, True), (1, 1e11, True), (2, 1e9, False), (2, 1e11, False)):
        runs = long_one(seconds=5 * DAY, priority=own, communication=talks(checkpoint=checkpoint))
        asked = request([BOTH], [spec("w", 8, HOUR, priority=1)], running=[runs], accelerators=KINDS)
        assert (verbs(asked).get("r") == "migrate") is moves
    # Nor does it give up a part of its devices, however short the other is.
    for own, shrinks in ((0, True), (1, True), (2, False)):
        runs = long_one(seconds=5 * DAY, priority=own, devices={"minimum": 1, "maximum": 8})
        asked = request([domain("a", pool(8, 0))], [spec("w", 1, HOUR, priority=1)], running=[runs])
        assert (verbs(asked).get("r") == "resize") is shrinks


def test_nobody_is_interrupted_for_little() -> None:
    places = [domain("a", pool(8, 0), pool(8, kind="near"))]
    assert verbs(request(places, [spec("w")], running=[long_one()], accelerators=KINDS)) == {"w": "start"}


def test_nobody_is_moved_after_whom_much_data_would_have_to_go() -> None:
    places = [domain("a", pool(8, 0)), domain("b", pool(8, kind="slow"))]
    for size, moves in ((1e6, True), (1e15, False)):
        asked = request(places, [spec("w")], running=[long_one(data=data("d", size, "a"))], accelerators=KINDS)
        assert (verbs(asked).get("r") == "migrate") is moves


def test_a_job_that_has_grown_gives_back_what_it_did_not_ask_for() -> None:
    grown = long_one(count=16, devices={"minimum": 4, "maximum": 16, "requested": 8})
    made = placed(request([domain("a", pool(16, 0))], [spec("w")], running=[grown]))
    assert made["r"]["verb"] == "resize"
    assert made["r"]["placement"]["shares"] == [{"domain": "a", "accelerator": "plain", "devices": 8}]


def resized(made: dict[str, Json], job: str) -> list[int]:
    """Devices on which a job goes on."""
    assert made[job]["verb"] == "resize"
    return [share["devices"] for share in made[job]["placement"]["shares"]]


def test_no_more_is_given_up_than_is_needed() -> None:
    for step, left in ((1, 12), (6, 10)):
        elastic = {"minimum": 4, "maximum": 16, "requested": 16, "step": step}
        runs = long_one("archive", 16, 4 * DAY, devices=elastic)
        made = placed(request([domain("a", pool(16, 0))], [spec("s", 4, 600.0)], running=[runs]))
        assert resized(made, "archive") == [left]


def test_nobody_is_interrupted_who_is_not_needed() -> None:
    """Each of three could give up what is missing; one does."""
    elastic = {"minimum": 2, "maximum": 8, "requested": 8}
    runs = [long_one(name, 8, 4 * DAY, devices=elastic) for name in "rst"]
    made = placed(request([domain("a", pool(24, 0))], [spec("w", 4, 600.0)], running=runs))
    changed = [job for job in "rst" if job in made]
    assert [resized(made, job) for job in changed] == [[4]]


def test_who_was_interrupted_is_left_alone_for_half_an_hour() -> None:
    elastic = {"minimum": 4, "maximum": 16, "requested": 16}
    scenes = {
        "migrate": ([BOTH], [spec("w", 8, HOUR)], long_one()),
        "resize": ([domain("a", pool(16, 0))], [spec("w", 4, 600.0)], long_one(count=16, devices=elastic)),
        "stop": ([domain("a", pool(8, 0))], [spec("w", 8, 600.0, priority=1)], long_one()),
    }
    for verb, (places, queue, runs) in scenes.items():
        for last, left_alone in (("2026-01-04T23:30:00.001Z", True), ("2026-01-04T22:00:00Z", False)):
            there = {**runs, "interrupted_at": last}
            made = verbs(request(places, queue, running=[there], accelerators=KINDS))
            assert made.get("r") == (None if left_alone else verb)


def test_interruptions_take_a_twentieth_of_the_time_since_the_last() -> None:
    # a checkpoint of 60 GB on eight devices takes some two minutes, which is a twentieth of some forty
    for last, interrupted in (("2026-01-04T23:29:00Z", False), ("2026-01-04T22:00:00Z", True)):
        talk = talks(checkpoint=6e10)
        there = {**long_one(seconds=10 * DAY, communication=talk), "interrupted_at": last}
        made = verbs(request([BOTH], [spec("w", 8, HOUR)], running=[there], accelerators=KINDS))
        assert ("r" in made) is interrupted


def test_who_cannot_do_with_fewer_is_stopped_for_higher_priority_alone() -> None:
    places = [domain("a", pool(16, 8))]
    for priority, stopped in ((0, False), (1, True), (1_000, True)):
        high = spec("high", 16, 10 * HOUR, priority=priority)
        made = placed(request(places, [high], running=[long_one("low", seconds=4 * DAY)], explain=True))
        assert ("low" in made) is stopped
        assert made["high"]["verb"] == "wait"
        if stopped:
            assert made["low"] == {"job": "low", "verb": "stop", "explanation": made["low"]["explanation"]}
            assert "higher priority" in made["low"]["explanation"]["reason"]


def test_ten_minutes_of_high_priority_do_not_wait_for_a_hundred_days() -> None:
    """Nobody knows how long the others take, or they take for ever; their checkpoint takes a while."""
    for seconds in (100 * DAY, 1e12):
        low = [long_one(name, seconds=seconds, communication=talks(checkpoint=1e11)) for name in "rs"]
        high = spec("high", 8, 600.0, priority=1_000)
        made = verbs(request([domain("a", pool(16, 0))], [high], running=low))
        assert sorted(made.values()) == ["stop"]


def test_who_ends_soon_is_not_stopped() -> None:
    high = spec("high", 8, 4 * HOUR, priority=5)
    made = verbs(request([domain("a", pool(8, 0))], [high], running=[long_one(seconds=60.0)]))
    assert made == {}


def test_several_make_room_for_a_gang() -> None:
    small = [long_one(name, 4) for name in ("r", "s")]
    assert verbs(request([BOTH], [spec("w", 8, 6 * HOUR)], running=small, accelerators=KINDS)) == {
        "r": "migrate",
        "s": "migrate",
    }


def test_nobody_else_makes_room_while_somebody_does() -> None:
    """One was told a minute ago, and still writes its checkpoint: its devices are neither free nor anybody's."""
    places = [domain("a", pool(16, 0), pool(16, 8, kind="slow"))]
    leaving = long_one("r") | {"phase": "staging", "done": 8.0, "ready_at": "2026-01-05T00:02:00.000Z"}
    del leaving["rate"]
    leaving["placement"] = {
        "shares": [{"domain": "a", "accelerator": "slow", "devices": 8}],
        "split_mode": "none",
    }
    stays = long_one("s")
    assert verbs(request(places, [spec("w")], running=[leaving, stays], accelerators=KINDS)) == {}
    gone = request(places, [spec("w")], running=[stays], accelerators=KINDS)
    assert verbs(gone) == {"s": "migrate"}


def test_shares_of_domains_are_met_without_moving_anybody() -> None:
    shares = [{"domain": "a", "share": 1.0}]
    asked = request([BOTH], [spec("w")], running=[long_one()], accelerators=KINDS, shares=shares)
    assert "migrate" not in verbs(asked).values()


jobs = st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([0.5, 2.0, 30.0])), max_size=6)


@settings(max_examples=60, deadline=None)
@given(waiting=jobs, held=jobs, slow=st.integers(0, 8))
def test_there_is_room_for_all_that_is_decided(
    waiting: list[tuple[int, float]], held: list[tuple[int, float]], slow: int
) -> None:
    """Whoever starts or moves finds devices that are free now."""
    taken = sum(count for count, _ in held)
    places = [domain("a", pool(24, 24 - taken), pool(8, slow, kind="slow"))]
    queue = [spec(f"w{place}", count, hours * HOUR) for place, (count, hours) in enumerate(waiting)]
    there = [long_one(f"r{place}", count, hours * HOUR) for place, (count, hours) in enumerate(held)]
    made = placed(request(places, queue, running=there, accelerators=KINDS))
    used: Counter[str] = Counter()
    for decision in made.values():
        if decision["verb"] in {"start", "migrate"}:
            (share,) = decision["placement"]["shares"]
            used[share["accelerator"]] += share["devices"]
    assert used["plain"] <= 24 - taken
    assert used["slow"] <= slow


@settings(max_examples=60, deadline=None)
@given(waiting=jobs, held=jobs, minutes=st.lists(st.integers(0, 59), min_size=6, max_size=6), slow=st.integers(0, 8))
def test_nobody_is_interrupted_twice_in_half_an_hour(
    waiting: list[tuple[int, float]], held: list[tuple[int, float]], minutes: list[int], slow: int
) -> None:
    """Whatever others would gain by it, of whatever priority."""
    taken = sum(count for count, _ in held)
    places = [domain("a", pool(24, 24 - taken), pool(8, slow, kind="slow"))]
    queue = [spec(f"w{n}", count, hours * HOUR, priority=n % 3) for n, (count, hours) in enumerate(waiting)]
    there = [
        long_one(f"r{n}", count, hours * HOUR, devices={"minimum": 1, "maximum": 8, "requested": count})
        | {"interrupted_at": f"2026-01-04T23:{minute:02d}:00Z"}
        for n, ((count, hours), minute) in enumerate(zip(held, minutes, strict=False))
    ]
    made = verbs(request(places, queue, running=there, accelerators=KINDS))
    assert not [f"r{n}" for n, minute in enumerate(minutes[: len(there)]) if minute > 30 and f"r{n}" in made]
