"""Shard plans that can be carried out as they stand (RES-012).

The windows at ±30 % of RES-005 and RES-006 are played again: they follow from the nonce alone, and the same request has
the same answer (COM-029), so that these are the plans on which those figures rest.

1. Requests for shard plans that are hard to answer: gaps, transfers under way, links that are out, hardly any room.

   Numbers are drawn. Sizes are whole bytes, and steps of unlike sizes, so that no round number hides a slip.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import CaseVerdicts, UnsoundAnswers, drawn, name, revision, verdicts
from kuayu_conformance.checks.resilience.resilience_requests import SHARDS, measured_link
from kuayu_conformance.checks.resilience.shard_windows import FULL, QUICK, SMOKE, Player, faults
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds
from kuayu_conformance.testbed.transfers.shard_simulation import MILD

if TYPE_CHECKING:
    from kuayu_schemas import documents

INTERVAL, MEASURED = 5.0, 60


class ShardPlanRequestBuilder:
    """Draws the parts of a request.

    Attributes:
        chance: What is drawn from.
        here: Domain that computes.
        sources: Domains that hold data.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.here = name(chance)
        self.sources = [name(chance) for _ in range(3)]

    def link(self, source: str, target: str | None = None, **members: Any) -> "documents.MeasuredLink":
        """A link that carries a few Gbit/s, more or less."""
        ends = source, target or self.here
        return measured_link(self.chance, ends, (2.0, 8.0), (0.02, 0.3), MEASURED, **members)

    def stream(self, steps: int, **members: Any) -> "documents.DataStream":
        """A stream of which nothing is there, from all sources."""
        size = float(self.chance.randrange(400_000_000, 3_000_000_000))
        stream = {
            "id": name(self.chance),
            "target": self.here,
            "sources": list(self.sources),
            "step_size": size,
            "step_time": round(self.chance.uniform(2.0, 8.0), 3),
            "due": round(self.chance.uniform(0.0, 5.0), 3),
            "remote_steps": steps,
            "missing": [{"begin": 0.0, "end": steps * size}],
            **members,
        }
        return cast("documents.DataStream", stream)

    def request(
        self,
        streams: "list[documents.DataStream]",
        links: "list[documents.MeasuredLink]",
        size: float | None,
        **members: Any,
    ) -> "documents.ShardPlanRequest":
        """A request with so much room, or with none that is stated."""
        request = {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "horizon": round(self.chance.uniform(30.0, 90.0), 3),
            "links": links,
            "rooms": [] if size is None else [{"domain": self.here, "size": size}],
            "streams": streams,
            **members,
        }
        return cast("documents.ShardPlanRequest", request)

    def links(self, **members: Any) -> "list[documents.MeasuredLink]":
        """From all sources."""
        return [self.link(source, **members) for source in self.sources]

    def room(self, streams: "list[documents.DataStream]", steps: float) -> float:
        """Room for so many steps of each."""
        return float(round(steps * sum(stream["step_size"] for stream in streams)))


def gaps(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Data are missing here and there, from the middle of one step to the middle of another."""
    stream = builder.stream(20)
    size, position = stream["step_size"], 0.0
    missing: list[documents.ByteRange] = []
    for _ in range(6):
        begin = position + float(round(builder.chance.uniform(0.1, 1.4) * size))
        position = begin + float(round(builder.chance.uniform(0.05, 1.6) * size))
        missing.append({"begin": begin, "end": min(position, 20 * size)})
    streams: list[documents.DataStream] = [{**stream, "missing": missing}, builder.stream(8)]
    return builder.request(streams, builder.links(), builder.room(streams, 20.0))


def under_way(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """One transfer has nearly come, another hangs on a link that is out, a third crawls."""
    stream = builder.stream(12, local_steps=2)
    size = stream["step_size"]
    ends = [0.0, size, float(round(1.7 * size)), float(round(3.2 * size))]
    lefts = [0.02, builder.chance.uniform(0.3, 1.0), 0.99]
    transfers: list[documents.DataTransfer] = [
        {"source": source, "begin": begin, "end": end, "left": float(round(left * (end - begin)))}
        for source, begin, end, left in zip(builder.sources, ends, ends[1:], lefts, strict=False)
    ]
    missing: list[documents.ByteRange] = [{"begin": ends[-1], "end": 12 * size}]
    streams: list[documents.DataStream] = [{**stream, "missing": missing, "transfers": transfers}]
    links = builder.links()
    links[1] |= {"up": False, "bandwidths": [*links[1]["bandwidths"][:-3], 0.0, 0.0, 0.0]}
    links[2]["bandwidths"] = [float(round(0.01 * bandwidth)) for bandwidth in links[2]["bandwidths"]]
    return builder.request(streams, links, builder.room(streams, 8.0))


def some_out(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """The best link is out."""
    streams = [builder.stream(15, local_steps=3), builder.stream(15)]
    links = builder.links()
    links[0] |= {"up": False, "bandwidths": [10 * bandwidth for bandwidth in links[0]["bandwidths"]]}
    return builder.request(streams, links, builder.room(streams, 6.0))


def all_out(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """No link carries."""
    streams = [builder.stream(15, local_steps=4)]
    return builder.request(streams, builder.links(up=False), builder.room(streams, 6.0))


def little_room(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """There is room for less than a step."""
    streams = [builder.stream(10), builder.stream(10)]
    return builder.request(streams, builder.links(), builder.room(streams, 0.2))


def one_step(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """There is room for hardly more than one step, and two streams want it."""
    streams = [builder.stream(10), builder.stream(10, local_steps=1)]
    return builder.request(streams, builder.links(), float(round(1.1 * max(entry["step_size"] for entry in streams))))


def no_room(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """No room is stated but in another domain."""
    streams = [builder.stream(10, local_steps=1)]
    return builder.request(streams, builder.links(), None, rooms=[{"domain": builder.sources[0], "size": 1e12}])


def no_links(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """The only links lead elsewhere."""
    streams = [builder.stream(10, local_steps=2)]
    links = [builder.link(builder.here, source) for source in builder.sources]
    return builder.request(streams, links, builder.room(streams, 4.0))


def no_copies(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """One stream's copies lie where no link comes from; another's at one of three."""
    streams = [builder.stream(10, sources=[name(builder.chance)]), builder.stream(10, sources=builder.sources[1:2])]
    return builder.request(streams, builder.links(), builder.room(streams, 5.0))


def local(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Links are far too slow, and there are local steps."""
    streams = [builder.stream(30, local_steps=builder.chance.randrange(3, 12)), builder.stream(30, local_steps=1)]
    links = builder.links()
    for link in links:
        link["bandwidths"] = [float(round(0.15 * bandwidth)) for bandwidth in link["bandwidths"]]
    return builder.request(streams, links, builder.room(streams, 10.0))


def several_targets(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Three domains compute, with rooms of their own; two of them are sources as well."""
    others = [name(builder.chance) for _ in range(2)]
    targets = [builder.here, *others]
    streams = [builder.stream(12, target=target, local_steps=2 * number) for number, target in enumerate(targets)]
    streams.append(builder.stream(12, target=others[1], sources=[others[0], *builder.sources[:1]]))
    links = [builder.link(source, target) for target in targets for source in builder.sources]
    links.append(builder.link(others[0], others[1]))
    links[4]["up"] = False
    sizes = [
        {"domain": target, "size": builder.room(streams[:1], part)}
        for target, part in zip(targets, (6.0, 1.5, 0.4), strict=True)
    ]
    return builder.request(streams, links, None, rooms=sizes)


def nearly_done(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """One stream has all its data, one takes no more, one lacks the end of its last step."""
    complete, over, last = (
        builder.stream(3, missing=[]),
        builder.stream(0, missing=[], local_steps=5),
        builder.stream(2),
    )
    size = last["step_size"]
    last["missing"] = [{"begin": float(round(1.3 * size)), "end": 2 * size}]
    streams = [complete, over, last]
    return builder.request(streams, builder.links(), builder.room(streams, 4.0))


def unmeasured(builder: ShardPlanRequestBuilder) -> "documents.ShardPlanRequest":
    """Links of which nothing is known yet, and one that has carried nothing."""
    streams = [builder.stream(10)]
    links = builder.links(bandwidths=[])
    links[0]["bandwidths"] = [0.0] * MEASURED
    return builder.request(streams, links, builder.room(streams, 4.0))


QUESTIONS: "dict[str, Callable[[ShardPlanRequestBuilder], documents.ShardPlanRequest]]" = {
    "gaps": gaps,
    "transfers under way": under_way,
    "a link that is out": some_out,
    "all links out": all_out,
    "room for less than a step": little_room,
    "room for hardly more than a step": one_step,
    "no room": no_room,
    "no links": no_links,
    "copies out of reach": no_copies,
    "slow links and local data": local,
    "several targets": several_targets,
    "hardly anything missing": nearly_done,
    "links of which nothing is known": unmeasured,
}
"""By what is hard about them."""


def questions(chance: Random, times: int) -> "Iterator[tuple[str, documents.ShardPlanRequest]]":
    """Each so many times, with other numbers."""
    return drawn(QUESTIONS, ShardPlanRequestBuilder, chance, times)


REQUIREMENT = "RES-012"


@dataclass(frozen=True)
class PlanAnswers:
    """Plans that were looked at.

    Attributes:
        questions: Hard ones.
        plans: Answers in windows that were shard plans.
        unsound: Those that were not sound.
        bad_answers: Answers in windows that were no shard plans.
        bad: One of these.
    """

    questions: CaseVerdicts
    plans: int
    unsound: UnsoundAnswers
    bad_answers: int
    bad: Answer | None


def observe(episode: Episode) -> PlanAnswers:
    """Ask hard questions, then play windows."""
    cases = verdicts(episode, SHARDS, "shard plan", questions, faults)
    extent = episode.settings.sized(smoke=SMOKE, quick=QUICK, full=FULL)
    player = Player(episode, look=True)
    for number in range(extent.windows[MILD]):
        player.service_alone(MILD, number, extent)
        episode.passed(number + 1, extent.windows[MILD])
    return PlanAnswers(cases, player.answers, player.unsound, player.bad_answers, player.bad)


def judge(o: PlanAnswers) -> Iterable[Finding]:
    """Claims about every hard question, and about all plans of the windows together."""
    yield from o.questions.findings(REQUIREMENT)
    expected = "in windows at ±30 %, every answer is a shard plan"
    observed = f"{o.bad_answers} of {o.plans + o.bad_answers} are none"
    yield holds(REQUIREMENT, not o.bad_answers, expected, observed, o.bad)
    expected, count = "in windows at ±30 %, every shard plan is sound", f"{o.unsound.count} of {o.plans} are not"
    yield from o.unsound.findings(REQUIREMENT, expected, count)


CHECK = Check("res_plans", (REQUIREMENT,), observe, judge, heavy=True)
