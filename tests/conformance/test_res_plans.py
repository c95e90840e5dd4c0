"""RES-012: sound plans pass; each way of being unsound is found and said in words."""

import copy
import random
from collections.abc import Callable

import pytest
from conformance.conforming_shards import Change, episode, plan, unchanged

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience import shards
from kuayu_conformance.checks.resilience.shards import (
    QUESTIONS,
    Extent,
    ShardPlanRequestBuilder,
    faults,
    judge_plans,
    observe_plans,
    questions,
)
from kuayu_conformance.findings import Claim
from kuayu_conformance.testbed.shards import MILD
from kuayu_schemas import schema

GIGA = 1e9
STEP = 1e9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "QUICK", Extent(200, {MILD: 2}, beside=False))


def unmet(change: Change = unchanged) -> list[Claim]:
    """What the check finds amiss in a planner."""
    found = list(judge_plans(observe_plans(episode("res_plans", change))))
    assert all(isinstance(each, Claim) for each in found)
    return [each for each in found if isinstance(each, Claim) and not each.met]


def test_sound_plans_pass() -> None:
    assert not unmet()


@pytest.mark.parametrize("seed", range(4))
def test_hard_questions_are_valid_and_conforming_plans_for_them_sound(seed: int) -> None:
    for what, body in questions(random.Random(seed), 2):
        assert schema.errors("ShardPlanRequest", body) == [], what
        told = plan(body)
        assert schema.errors("ShardPlan", told) == [], what
        assert list(faults(body, told)) == [], what


def test_hard_questions_are_what_they_are_called() -> None:
    drawn = {what: make(ShardPlanRequestBuilder(random.Random(7))) for what, make in QUESTIONS.items()}
    assert len(drawn["gaps"]["streams"][0]["missing"]) == 6
    assert not any(link["up"] for link in drawn["all links out"]["links"])
    assert drawn["no room"]["rooms"][0]["domain"] != drawn["no room"]["streams"][0]["target"]
    little = drawn["room for less than a step"]
    assert little["rooms"][0]["size"] < min(each["step_size"] for each in little["streams"])
    targets = {link["target"] for link in drawn["no links"]["links"]}
    assert drawn["no links"]["streams"][0]["target"] not in targets
    assert len({each["target"] for each in drawn["several targets"]["streams"]}) == 3
    assert len(drawn["transfers under way"]["streams"][0]["transfers"]) == 3


def request() -> Json:
    """A stream of four steps: half of the first is there, the third is under way. One of three links is out."""
    link = {"target": "here", "latency": 0.1, "bandwidths": [GIGA]}
    return {
        "revision": {"epoch": "e", "number": 7},
        "interval": 5.0,
        "horizon": 60.0,
        "links": [{**link, "source": "a"}, {**link, "source": "b", "up": False}, {**link, "source": "c"}],
        "rooms": [{"domain": "here", "size": 1.5 * STEP}],
        "streams": [
            {
                "id": "job",
                "target": "here",
                "sources": ["a", "b", "d"],
                "step_size": STEP,
                "step_time": 5.0,
                "due": 2.0,
                "remote_steps": 4,
                "local_steps": 2,
                "missing": [{"begin": 0.5 * STEP, "end": 2 * STEP}, {"begin": 3 * STEP, "end": 4 * STEP}],
                "transfers": [{"source": "a", "begin": 2 * STEP, "end": 3 * STEP, "left": 5e8}],
            }
        ],
    }


def answer(*shards: Json, **members: object) -> Json:
    """A plan of some shards, with members of its only stream."""
    stream = {"stream": "job", "steps_ahead": 1, "shard_size": STEP, "local_slots": [], "local_when_late": True}
    return {
        "revision": {"epoch": "e", "number": 7},
        "method": {"name": "by hand", "version": "0"},
        "streams": [{**stream, **members}],
        "shards": list(shards),
    }


def shard(begin: float, end: float, slot: int, source: str = "a") -> Json:
    """A piece, in steps."""
    ends = {"begin": begin * STEP, "end": end * STEP}
    return {"stream": "job", "source": source, **ends, "after": 0.0, "slot": slot}


GIVEN_UP = {"abandoned": [{"source": "a", "begin": 2 * STEP}]}

SOUND = {
    "nothing": answer(),
    "all that is missing": answer(shard(0.5, 2, 0), shard(3, 4, 3)),
    "in another order": answer(shard(3, 4, 3), shard(1, 2, 1), shard(0.5, 1, 0)),
    "local slots": answer(shard(0.5, 1, 1), shard(1, 2, 2), shard(3, 4, 5), local_slots=[0, 3]),
    "what is abandoned": answer(shard(2, 3, 2), **GIVEN_UP),
    "across what is abandoned and missing": answer(shard(1.5, 2.5, 1), shard(2.5, 4, 2), **GIVEN_UP),
    "ends that are hardly off": answer(shard(0.5 - 5e-7, 1 - 5e-7, 0), shard(1 - 9e-7, 2 + 5e-7, 1)),
    "a first byte hardly before a step": answer(shard(1 - 5e-7, 2, 0)),
}

UNSOUND = {
    "another revision": ({**answer(), "revision": {"epoch": "e", "number": 8}}, "revision"),
    "no stream": ({**answer(), "streams": []}, "streams []"),
    "a stream twice": ({**answer(), "streams": answer()["streams"] * 2}, "streams ['job', 'job']"),
    "a shard of another stream": (answer({**shard(0.5, 1, 0), "stream": "x"}), "stream x, which is not in the request"),
    "an empty shard": (answer(shard(1, 1, 1)), "is empty"),
    "a backward one": (answer(shard(1.5, 1, 1)), "is empty"),
    "bytes that are there": (answer(shard(0.4, 1, 0)), "holds bytes that are not missing"),
    "bytes under way": (answer(shard(2, 3, 2)), "holds bytes that are not missing"),
    "bytes between": (answer(shard(1.5, 3, 1)), "holds bytes that are not missing"),
    "bytes beyond the last": (answer(shard(3, 4.2, 3)), "ends after byte 4000000000"),
    "an overlap": (answer(shard(0.5, 1.2, 0), shard(1.1, 2, 1)), "overlap"),
    "the same twice": (answer(shard(3, 4, 3), shard(3, 4, 3)), "overlap"),
    "no copy": (answer(shard(1, 2, 1, "c")), "comes from c, which holds no copy"),
    "a link that is out": (answer(shard(1, 2, 1, "b")), "comes from b, whose link is out"),
    "no link": (answer(shard(1, 2, 1, "d")), "comes from d, which has no link"),
    "more than the room": (
        answer(shard(1.5, 3.1, 1), **GIVEN_UP),
        "has 1600000000 bytes where there is room for 15",
    ),
    "a slot too late": (answer(shard(1, 2, 2)), "is for slot 2 where its first byte is for slot 1"),
    "a slot too early": (answer(shard(3, 4, 2)), "is for slot 2 where its first byte is for slot 3"),
    "local slots forgotten": (
        answer(shard(1, 2, 1), local_slots=[0]),
        "where its first byte is for slot 2",
    ),
    "local slots that do not rise": (answer(local_slots=[3, 3]), "local_slots [3, 3] do not rise"),
    "too many local slots": (answer(local_slots=[1, 2, 3]), "3 local_slots where there are 2 local steps"),
    "a stranger abandoned": (answer(abandoned=[{"source": "c", "begin": 2 * STEP}]), "which is not under way"),
    "another byte abandoned": (answer(abandoned=[{"source": "a", "begin": 1.0}]), "which is not under way"),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_plan_that_keeps_to_the_text_is_sound(name: str) -> None:
    assert schema.errors("ShardPlan", SOUND[name]) == []
    assert list(faults(request(), SOUND[name])) == []


@pytest.mark.parametrize("name", UNSOUND)
def test_a_plan_that_does_not_is_not_and_the_words_say_why(name: str) -> None:
    told, words = UNSOUND[name]
    assert schema.errors("ShardPlan", told) == []
    found = list(faults(request(), told))
    assert any(words in fault for fault in found), found


def test_no_local_slot_is_sound_where_there_are_no_local_steps() -> None:
    body = request()
    del body["streams"][0]["local_steps"]
    assert list(faults(body, answer(local_slots=[0]))) == ["stream job: 1 local_slots where there are 0 local steps"]


def test_nothing_is_sound_where_there_is_no_room() -> None:
    found = list(faults({**request(), "rooms": []}, answer(shard(1, 2, 1))))
    assert len(found) == 1
    assert "where there is room for 0" in found[0]


def shifted(body: Json, told: Json) -> Json:
    """Every slot is one too late."""
    del body
    return {**told, "shards": [{**each, "slot": each["slot"] + 1} for each in told["shards"]]}


def once_more(body: Json, told: Json) -> Json:
    """The last shard is fetched twice, but only while a transfer is under way."""
    busy = any(each.get("transfers") for each in body["streams"])
    return {**told, "shards": told["shards"] + (told["shards"][-1:] if busy else [])}


def dead(body: Json, told: Json) -> Json:
    """Links that are out are taken for good ones."""
    del told
    up = copy.deepcopy(body)
    for link in up["links"]:
        link["up"] = True
    return plan(up)


def whole_steps(body: Json, told: Json) -> Json:
    """The room is not looked at."""
    del told
    large = {**body, "rooms": [{"domain": each["target"], "size": 1e15} for each in body["streams"][:1]]}
    return plan(large)


WRONG: dict[str, tuple[Callable[[Json, Json], Json], str, str]] = {
    "every slot one too late": (shifted, "gaps", "is for slot"),
    "a shard twice while something is under way": (once_more, "transfers under way", "overlap"),
    "links that are out": (dead, "all links out", "whose link is out"),
    "no look at the room": (whole_steps, "room for less than a step", "where there is room for"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_planner_that_slips_is_caught_where_it_shows(name: str) -> None:
    change, where, words = WRONG[name]
    claims = unmet(change)
    mine = next(each for each in claims if each.expected.startswith(where))
    assert words in mine.found
    assert mine.answer is not None


def test_slips_that_show_only_in_windows_are_counted_there() -> None:
    claims = unmet(lambda body, told: once_more(body, told) if len(body["links"][0]["bandwidths"]) > 100 else told)
    assert {each.expected for each in claims} == {"in windows at ±30 %, every shard plan is sound"}
    assert len(claims) == 3
    assert all("overlap" in each.found and " of 52 are not" in each.found for each in claims)


def test_an_answer_that_is_no_plan_is_told_in_windows_and_for_each_hard_question() -> None:
    (claim,) = unmet(lambda body, told: None if len(body["links"][0]["bandwidths"]) > 100 else told)
    assert claim.expected == "in windows at ±30 %, every answer is a shard plan"
    assert claim.found == "20 of 20 are none"
    claims = unmet(lambda _body, _told: None)
    assert all(each.found.startswith("no shard plan") for each in claims[:-1])
    assert len(claims) > 5
