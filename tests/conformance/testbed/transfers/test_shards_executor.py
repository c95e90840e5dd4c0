"""Plans carried out as the clause says, worked out by hand.

Links carry 1 MB/s; a step takes 5 MB and 5 s, and the first is due at 60 s.
"""

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conformance.testbed.transfers.shard_windows import MEGA, STEP_BYTES, plain

from kuayu_conformance.testbed.shards import STEP_S, Executor, Outcome, Run, State, Transfer, Window
from kuayu_schemas import schema

Json = dict[str, Any]
ONE, OTHER = "one", "other"


def shard(stream: str, begin: float, end: float, after: float = 0.0, source: int = 0, slot: int = 0) -> Json:
    """A piece of a stream, in steps."""
    ends = {"begin": begin * STEP_BYTES, "end": end * STEP_BYTES}
    return {"stream": stream, "source": f"source-{source}", **ends, "after": after, "slot": slot}


def plan(*shards: Json, local: tuple[int, ...] = (), late: bool = False, abandoned: tuple[Json, ...] = ()) -> Json:
    """A plan; what is said of local data and of what is abandoned is about the first stream."""
    about = {"steps_ahead": 4, "shard_size": STEP_BYTES}
    first = {"stream": ONE, **about, "local_slots": list(local), "local_when_late": late, "abandoned": list(abandoned)}
    second = {"stream": OTHER, **about, "local_slots": [], "local_when_late": late}
    return {
        "revision": {"epoch": "e", "number": 0},
        "method": {"name": "by hand", "version": "0"},
        "streams": [first, second],
        "shards": list(shards),
    }


class Watched(Executor):
    """Notes when transfers begin, and what was asked; plans are by the second in which they are asked for."""

    def __init__(self, window: Window, plans: dict[int, Json]) -> None:
        self._at = 0.0
        self.asked: list[Json] = []
        self.begun: list[tuple[float, str, float, float]] = []
        super().__init__(window, lambda request: self.asked.append(request) or plans.get(int(self._at)))  # type: ignore[func-returns-value]  # a note

    def ask(self, state: State) -> list[Transfer]:
        """The plan of this second."""
        self._at = state.now
        return super().ask(state)

    def fetch(self, link: int, state: State) -> Transfer | float:
        """As ever, noted."""
        found = super().fetch(link, state)
        if isinstance(found, Transfer):
            self.begun.append((state.now, (ONE, OTHER)[found.stream], found.begin / STEP_BYTES, found.end / STEP_BYTES))
        return found


def carried_out(window: Window, plans: dict[int, Json]) -> tuple[Watched, Outcome, Run]:
    """A window under plans."""
    policy = Watched(window, plans)
    run = Run(window, policy)
    return policy, run.play(), run


SLOW = np.full(200, 1.0)


def test_a_link_takes_its_shards_in_the_order_of_the_plan_each_no_sooner_than_it_says() -> None:
    window = plain(SLOW, steps=1, latency=0.5)
    policy, outcome, _ = carried_out(window, {0: plan(shard(ONE, 0, 1), shard(OTHER, 0, 1, after=20.25))})
    assert policy.begun == [(0.0, ONE, 0, 1), (20.25, OTHER, 0, 1)]
    assert outcome == Outcome(0.0, 0.0, 0.0, 2, pytest.approx((60 + 39.75) / 60 / 8))


def test_what_stands_behind_a_shard_waits_with_it() -> None:
    window = plain(SLOW, steps=1, latency=0.5)
    policy, _, _ = carried_out(window, {0: plan(shard(ONE, 0, 1, after=30), shard(OTHER, 0, 1))})
    assert policy.begun == [(30.0, ONE, 0, 1), (35.5, OTHER, 0, 1)]


def test_each_link_has_an_order_of_its_own() -> None:
    window = plain(np.stack([SLOW, SLOW]), steps=1)
    told = plan(shard(ONE, 0, 1, after=30), shard(OTHER, 0, 1, source=1))
    policy, _, _ = carried_out(window, {0: told})
    assert policy.begun == [(0.0, OTHER, 0, 1), (30.0, ONE, 0, 1)]


def test_a_shard_waits_until_a_step_leaves_room_for_it() -> None:
    """Room for a step of each job; the first of both begin at 60 s."""
    window = plain(SLOW, steps=2, room=1)
    told = plan(shard(ONE, 0, 1), shard(OTHER, 0, 1), shard(ONE, 1, 2), shard(OTHER, 1, 2))
    policy, outcome, _ = carried_out(window, {0: told})
    assert policy.begun == [(0.0, ONE, 0, 1), (5.0, OTHER, 0, 1), (60.0, ONE, 1, 2), (65.0, OTHER, 1, 2)]
    assert outcome.waiting == pytest.approx((0.0 + 5.0 / 15.0) / 2)  # the other's second step was due at 65 s
    assert outcome.blocked == 1 / 4


def test_a_new_plan_lets_what_is_under_way_come_and_takes_the_place_of_what_is_not() -> None:
    window = plain(SLOW, steps=3)
    first = plan(shard(ONE, 0, 3), shard(ONE, 1, 2))
    second = plan(shard(OTHER, 0, 3))
    policy, outcome, _ = carried_out(window, {0: first, 10: second})
    assert policy.begun == [(0.0, ONE, 0, 3), (15.0, OTHER, 0, 3)]
    assert (outcome.waiting, outcome.blocked) == (0.0, 0.0)


def test_what_is_abandoned_counts_as_blocked_and_is_missing_again() -> None:
    rates = np.stack([SLOW, SLOW])
    rates[0, 5:] = 0.0
    window = plain(rates, steps=2, room=2)
    stop = {"source": "source-0", "begin": 0.0}
    again = plan(shard(ONE, 0, 1, source=1), shard(ONE, 1, 2, source=1), abandoned=(stop,))
    policy, outcome, _ = carried_out(window, {0: plan(shard(ONE, 0, 2), shard(OTHER, 0, 2, source=1)), 10: again})
    told = policy.asked[1]["streams"][0]
    assert told["transfers"] == [{"source": "source-0", "begin": 0.0, "end": 2 * STEP_BYTES, "left": STEP_BYTES}]
    assert told["missing"] == []
    assert [link["up"] for link in policy.asked[1]["links"]] == [False, True]
    assert policy.begun[2:] == [(10.0, ONE, 0, 1), (15.0, ONE, 1, 2)]
    assert (outcome.waiting, outcome.transfers, outcome.blocked, outcome.blocked_bytes) == (0.0, 4, 1 / 4, 1 / 3)


def test_a_slot_that_the_plan_names_takes_local_data_though_those_from_afar_are_there() -> None:
    """Slots 1 and 2 are local, so the second step from afar is for slot 3: at 75 s, when it has just come."""
    window = plain(SLOW, steps=4, local=2)
    told = plan(shard(OTHER, 0, 2), shard(ONE, 0, 1), shard(ONE, 1, 2, after=70), local=(1, 2))
    _, outcome, run = carried_out(window, {0: told})
    assert run.state.jobs[0].waited_s == 0.0
    assert outcome.blocked == 0.0
    later = plan(shard(OTHER, 0, 2), shard(ONE, 0, 1), shard(ONE, 1, 2, after=70.5), local=(1, 2))
    _, outcome, run = carried_out(window, {0: later})
    assert run.state.jobs[0].waited_s == pytest.approx(0.5)
    assert outcome.blocked == 1 / 3


def test_local_data_are_taken_where_data_are_late_only_if_the_plan_says_so() -> None:
    window = plain(SLOW, steps=3, local=1)
    shards = (shard(OTHER, 0, 2), shard(ONE, 0, 2, after=53))
    _, _, run = carried_out(window, {0: plan(*shards)})
    assert run.state.jobs[0].waited_s == pytest.approx(3.0)  # all of the shard has come at 63 s
    _, outcome, run = carried_out(window, {0: plan(*shards, late=True)})
    assert run.state.jobs[0].waited_s == 0.0
    assert outcome.blocked == 1 / 2  # it was meant for the first slot all the same


def test_a_slot_that_waits_takes_local_data_once_a_new_plan_says_so() -> None:
    window = plain(SLOW, steps=3, local=1)
    shards = (shard(OTHER, 0, 2), shard(ONE, 0, 2, after=80))
    _, _, run = carried_out(window, {0: plan(*shards), 70: plan(shard(ONE, 0, 2, after=10), local=(0,))})
    assert run.state.jobs[0].dues == pytest.approx([60.0, 75.0, 95.0])


def test_the_slot_of_a_shard_follows_from_the_order_of_steps_whatever_the_plan_says() -> None:
    """Whoever claims that a shard is for a slot far away does not gain by it."""
    window = plain(SLOW, steps=1)
    told = plan(shard(ONE, 0, 1, after=57, slot=1000), shard(OTHER, 0, 1, slot=1000))
    assert carried_out(window, {0: told})[1].blocked == 1.0


def test_an_answer_about_other_streams_leaves_the_plan_before_it() -> None:
    window = plain(SLOW, steps=1)
    good = plan(shard(ONE, 0, 1), shard(OTHER, 0, 1, after=30))
    other = {**plan(shard(OTHER, 0, 1)), "streams": [{**good["streams"][0], "stream": "nobody"}]}
    policy, _, _ = carried_out(window, {0: good, 10: other, 20: plan(shard("nobody", 0, 1))})
    assert policy.begun == [(0.0, ONE, 0, 1), (30.0, OTHER, 0, 1)]
    assert policy.plans == 1


def test_shards_that_cannot_be_fetched_are_passed_over() -> None:
    window = plain(SLOW, steps=1, room=1)
    wrong = (
        shard(ONE, 0.5, 0.5),
        shard(ONE, 0, 3),  # more than there is room for, and than there are bytes
        shard(ONE, 0, 1, source=7),
        shard(ONE, 40, 41),
        shard(ONE, 0, 1),
        shard(ONE, 0, 1),  # twice
        shard(OTHER, 0, 1),
    )
    policy, outcome, _ = carried_out(window, {0: plan(*wrong)})
    assert policy.begun == [(0.0, ONE, 0, 1), (5.0, OTHER, 0, 1)]
    assert outcome.waiting == 0.0


def test_without_any_plan_everything_is_waited_for() -> None:
    policy, outcome, _ = carried_out(plain(SLOW, steps=2), {})
    assert policy.plans == 0
    assert (outcome.waiting, outcome.blocked, outcome.finished) == (1.0, 1.0, False)


def test_ends_of_shards_that_are_hardly_off_leave_no_crumbs() -> None:
    window = plain(SLOW, steps=2)
    off = 0.4 / STEP_BYTES
    told = plan(shard(ONE, 0, 1 - off), shard(ONE, 1 + off, 2), shard(OTHER, 0, 1 + off), shard(OTHER, 1 - off, 2))
    policy, outcome, _ = carried_out(window, {0: told})
    assert len(policy.begun) == 4
    assert outcome.finished
    assert policy.asked[-1]["streams"][0]["missing"] == []


class Nonsense:
    """Plans of a valid form, about bytes that are missing or not."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, request: Json) -> Json | None:
        """Half of it could be meant."""
        chance = self._chance
        streams = []
        for each in request["streams"]:
            ways = each["transfers"] if chance.random() < 0.3 else []
            named = [{"source": way["source"], "begin": way["begin"]} for way in ways]
            slots = sorted(chance.randrange(9) for _ in range(chance.randrange(3)))
            streams.append({"stream": each["id"], "local_slots": slots, "local_when_late": True, "abandoned": named})
        shards = [self._shard(request) for _ in range(chance.randrange(12))]
        return None if chance.random() < 0.1 else {"streams": streams, "shards": shards}

    def _shard(self, request: Json) -> Json:
        chance = self._chance
        stream = chance.choice(request["streams"])
        gap = chance.choice(stream["missing"] or [{"begin": 0.0, "end": 1e9}])
        begin = gap["begin"] + chance.choice((0.0, 0.3, 7.0, chance.uniform(0, 3) * STEP_BYTES))
        end = begin + chance.choice((0.0, 1e-3, chance.uniform(0, 2) * STEP_BYTES, STEP_BYTES, 1e300))
        source = chance.choice([link["source"] for link in request["links"]])
        after = chance.choice((0.0, 0.0, chance.uniform(0, 12), 1e300))
        return {"stream": stream["id"], "source": source, "begin": begin, "end": end, "after": after, "slot": 10**30}


def wrong(request: Json) -> list[str]:
    """What a service would refuse a request for."""
    found = [str(each) for each in schema.errors("ShardPlanRequest", request)]
    for stream in request["streams"]:
        last = stream["remote_steps"] * stream["step_size"]
        missing = [(each["begin"], each["end"]) for each in stream["missing"]]
        ways = [(each["begin"], each["end"]) for each in stream["transfers"]]
        found += [f"{one} and {other}" for one, other in pairwise(missing) if other[0] <= one[1]]
        found += [f"{one} and {other}" for one, other in pairwise(sorted(missing + ways)) if other[0] < one[1]]
        found += [f"{begin} to {end} of {last}" for begin, end in missing + ways if not 0 <= begin < end <= last]
        found += [f"{way}" for way in stream["transfers"] if not 0 <= way["left"] <= way["end"] - way["begin"]]
    return found


def noting(answer: Callable[[Json], Json | None], found: list[str]) -> Callable[[Json], Json | None]:
    """The same answers; what is wrong with the requests is noted."""

    def told(request: Json) -> Json | None:
        found.extend(wrong(request))
        return answer(request)

    return told


@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_plans_are_requests_say_nothing_that_contradicts_itself_and_the_window_ends(seed: int) -> None:
    rates = np.stack([np.full(900, 3.0), np.full(900, 2.0)])
    rates[0, 100:140] = 0.0
    window = plain(rates, steps=40, local=8, room=3, latency=0.1)
    found: list[str] = []
    run = Run(window, Executor(window, noting(Nonsense(seed), found)))
    outcome = run.play()
    assert not found
    assert 0.0 <= outcome.waiting <= 1.0
    assert 0.0 <= outcome.blocked <= 1.0
    assert run.state.used >= -1.0 * MEGA
    held = [job.waited_s + STEP_S * job.slot for job in run.state.jobs]
    assert all(each <= window.limit_s for each in held)


def test_a_local_slot_that_is_taken_back_hides_no_late_transfer() -> None:
    """The shard is asked for at 49 s for the slot of 65 s; from 50 s on the slot of 60 s is to take it, at 64 s."""
    window = plain(SLOW, steps=2, local=1, latency=10)
    first = plan(shard(OTHER, 0, 1), shard(ONE, 0, 1, after=49), local=(0,))
    kept, as_planned, _ = carried_out(window, {0: first})
    taken_back, outcome, _ = carried_out(window, {0: first, 50: plan()})
    assert kept.begun == taken_back.begun == [(0.0, OTHER, 0, 1), (49.0, ONE, 0, 1)]
    assert (as_planned.waiting, as_planned.blocked) == (0.0, 0.0)
    assert outcome.waiting == pytest.approx((4 / 14) / 2)
    assert outcome.blocked == 1 / 2
