"""Devices of several domains are held together or not at all, and soon (SCH-006, SCH-017, SCH-018, SCH-019).

The suite plays five domains that fetch their actions and send results, and keeps a ledger of what each has promised
and given. The time that counts is that for which the target lets the domains wait: the seconds of its answers, from
putting an allocation until it is committed, one domain after the other. The patience that an allocation grants a
domain that is silent does not count, only what the target takes beyond it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu_conformance.check import Check
from kuayu_conformance.checks.sch_domains import Played, Player
from kuayu_conformance.checks.sch_ledger import Deed, rows_of
from kuayu_conformance.checks.sch_stories import AT_ONCE, Script, Scripts, Story, shares_of
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, answered, holds
from kuayu_conformance.statistics import quantile, quantile_upper_bound

QUICK, FULL = 270, 2700
"""Allocations that go well; with the others more than 300 are committed, which a bound of the 99th percentile needs."""

BATCH = min(10, AT_ONCE)
"""Allocations that are held together."""

PATIENCE = 1.0
"""Seconds that a domain has which stays silent."""

NEVER = 3600.0
"""Seconds that count where an allocation that all domains want is never committed."""


@dataclass(frozen=True)
class Observation:
    """What became of all allocations."""

    stories: tuple[Story, ...]


def observe(episode: Episode) -> Observation:
    """Play all stories."""
    scripts = Scripts(episode)
    player = Player(episode, scripts.sites, scripts.kinds)
    stories: list[Story] = []
    for group in _silent(scripts):
        played = [player.begin(script) for script in group]
        player.settle(played)
        player.catch_up(played)
        stories += player.release(played)
    told = ordinary(scripts, FULL if episode.settings.full else QUICK)
    for begin in range(0, len(told), BATCH):
        held: list[Played] = []
        for script in told[begin : begin + BATCH]:
            again = script.kind == "plain" and not any(one.again for one in held)
            held.append(player.begin(script, twice=again))
            player.settle(held[-1:])
            if again:
                player.repeat(held[-1])
        stories += player.release(held)
    return Observation(tuple(stories))


def _silent(scripts: Scripts) -> Iterator[list[Script]]:
    """Groups of allocations with a domain that does not answer, told together since they mostly wait."""
    for phase in ("prepare", "commit"):
        yield [scripts.silent(phase, PATIENCE) for _ in range(3)]


def ordinary(scripts: Scripts, plain: int) -> list[Script]:
    """Allocations in which nobody stays silent, in the order in which they are told.

    Args:
        scripts: Writes them.
        plain: Those that go well; each of the other kinds comes a number of times that follows from it.
    """
    others = (scripts.placed, scripts.refused, scripts.exhausted, scripts.expired, scripts.called_off)
    made = [make() for make in others for _ in range(plain // 18)]
    made += [scripts.plain() for _ in range(plain)]
    scripts.shuffle(made)
    return made


def judge(observation: Observation) -> Iterator[Finding]:
    """Claims for each kind of story, and the time that coordination takes."""
    for story in observation.stories:
        yield from _all_or_nothing(story)
        yield from _released(story)
        if story.script.kind == "refused":
            yield from _alternatives(story)
    yield _coordination([story for story in observation.stories if story.script.committed is not None])


def _all_or_nothing(story: Story) -> Iterator[Claim]:
    kind = story.script.kind
    yield answered("SCH-017", story.put, 201, "an allocation is taken")
    if story.again is not None:
        yield answered("SCH-017", story.again, 200, "an allocation that is put again is the same")
        same = story.again.at("id") == story.script.name and _unchanged(story)
        yield holds("SCH-017", same, "putting it again changes nothing", story.again.brief, story.again)
    refused = [deed for deed in story.deeds if deed.outcome and deed.status != 200]
    expected = f"{kind}: every result is taken, whether it comes late or twice"
    yield holds("SCH-017", not refused, expected, [_told(deed) for deed in refused[:3]] or "they are", story.put)
    early = _early(story)
    expected = f"{kind}: a domain is to commit when all have prepared, and the allocation is committed when all have"
    yield holds("SCH-017", not early, expected, early[:3] or "it is so", story.record)
    yield from _settled(story)


def _settled(story: Story) -> Iterator[Claim]:
    """What domains have given is a whole placement where the allocation is committed, and else nothing."""
    kind, stands = story.script.kind, story.record.at("phase")
    wanted = "refused" if story.script.committed is None else "committed"
    requirement = "SCH-018" if story.script.committed else "SCH-017"
    yield holds(requirement, stands == wanted, f"{kind}: the allocation is {wanted} in the end", stands, story.record)
    taken = _devices_taken(story)
    placements = [_devices(placement) for placement in story.script.placements] if stands == "committed" else [{}]
    expected = f"{kind}, {stands}: domains have given {' or '.join(map(str, placements))}"
    yield holds("SCH-017", taken in placements, expected, taken, story.record)
    promised = dict(story.promised)
    expected = f"{kind}, {stands}: no promise is left beside what is given"
    yield holds("SCH-017", promised == taken, expected, promised, story.record)
    if stands == "committed":
        yield from _held_as_told(story)
    else:
        yield holds(
            "SCH-017", story.record.at("held") is None, f"{kind}: nothing is told as held", stands, story.record
        )


def _devices(placement: object) -> dict[str, int]:
    """Devices of a placement by domain."""
    return {str(share.get("domain")): int(share.get("devices") or 0) for share in shares_of(placement)}


def _held_as_told(story: Story) -> Iterator[Claim]:
    """What the record tells is what the ledgers hold, on the nodes that domains have named."""
    kind, shares = story.script.kind, list(shares_of(story.record.at("held")))
    for share in shares:
        site, accelerator = str(share.get("domain")), str(share.get("accelerator"))
        told = tuple((accelerator, *row) for row in rows_of(share))
        held = story.taken.get(site, ())
        expected = f"{kind}: the record tells that {site} holds {held}"
        yield holds("SCH-017", told == held, expected, told, story.record)
    told_devices, held_devices = _devices({"shares": shares}), _devices_taken(story)
    expected = f"{kind}: the record tells that {held_devices} devices are held"
    yield holds("SCH-017", told_devices == held_devices, expected, told_devices, story.record)


def _devices_taken(story: Story) -> dict[str, int]:
    return {site: sum(devices for *_, devices in places) for site, places in story.taken.items()}


def _unchanged(story: Story) -> bool:
    names = ("phase", "placement", "alternatives", "created_at")
    return story.again is not None and all(story.again.at(name) == story.put.at(name) for name in names)


def _attempt(story: Story, deed: Deed) -> int | None:
    """Which of the placements a domain is to prepare; no two of their shares are alike."""
    asked = (deed.site, deed.accelerator, deed.devices, deed.nodes)
    for number, placement in enumerate(story.script.placements):
        for share in shares_of(placement):
            if (share["domain"], share["accelerator"], share["devices"], rows_of(share)) == asked:
                return number
    return None


def _attempts(story: Story) -> dict[str, int | None]:
    """Which of the placements each action is about that was to be prepared."""
    asked = [deed for deed in story.deeds if (deed.kind, deed.phase) == ("reserve", "prepare")]
    return {deed.action: _attempt(story, deed) for deed in asked}


def _early(story: Story) -> list[str]:
    """Steps that came before others had been taken that they rest on, and steps that nothing was asked for."""
    wrong = []
    granted: dict[tuple[int | None, str], set[str]] = {}
    attempts = _attempts(story)
    for deed in story.deeds:
        attempt = attempts.get(deed.reservation if deed.kind == "release" else deed.action)
        if deed.kind == "reserve" and deed.phase == "abort" and deed.action not in attempts:
            continue  # let go before it was fetched
        if deed.kind not in {"reserve", "release"} or attempt is None:
            what = f"{deed.phase} of {deed.kind}, {deed.devices} devices of {deed.accelerator} on {deed.nodes}"
            wrong.append(f"{deed.site} was asked for {what}: no share is that")
            continue
        domains = {str(share["domain"]) for share in shares_of(story.script.placements[attempt])}
        if (deed.kind, deed.phase) == ("reserve", "commit") and not granted.get(
            (attempt, "prepared"), set()
        ) >= domains:
            wrong.append(f"{deed.site} was to commit before all had prepared")
        if deed.kind == "reserve":
            granted.setdefault((attempt, deed.outcome), set()).add(deed.site)
        whole = any(
            done >= {str(share["domain"]) for share in shares_of(story.script.placements[number])}
            for (number, outcome), done in granted.items()
            if outcome == "committed" and number is not None
        )
        if deed.stands == "committed" and not whole:
            wrong.append(f"it was committed when {deed.site} had answered {deed.phase} with {deed.outcome}")
    return wrong


def _told(deed: Deed) -> str:
    return f"{deed.status} for {deed.outcome} of {deed.phase} from {deed.site}"


def _alternatives(story: Story) -> Iterator[Claim]:
    """Placements are tried in their order, the next when the one before has been let go."""
    prepared = [_attempt(story, deed) for deed in story.deeds if deed.phase == "prepare"]
    order = list(dict.fromkeys(prepared))
    expected = "alternatives are prepared in their order"
    yield holds("SCH-018", order == [0, 1, 2], expected, order, story.record)
    sorted_ones = [number for number in prepared if number is not None]
    in_order = sorted_ones == sorted(sorted_ones)
    yield holds(
        "SCH-018", in_order, "the next alternative is prepared when the one before is over", prepared, story.put
    )
    shares = {str(share["domain"]) for share in shares_of(story.script.placements[2])}
    told = {str(share.get("domain")) for share in shares_of(story.record.at("held"))}
    yield holds("SCH-018", told == shares, "the second alternative is held", sorted(told), story.record)


def _released(story: Story) -> Iterator[Claim]:
    """What was committed and deleted is given back by all who held it, and the record says so."""
    if story.deleted is None or story.script.called_off:
        return
    kind = story.script.kind
    yield answered("SCH-019", story.deleted, 200, f"{kind}: a committed allocation is deleted")
    asked = {deed.site for deed in story.deeds if deed.kind == "release" and deed.phase == "commit"}
    missing = sorted(set(story.taken) - asked)
    expected = f"{kind}: every domain that holds devices is to release them"
    yield holds(
        "SCH-019", not missing, expected, f"not asked: {missing}" if missing else "all are asked", story.deleted
    )
    yield holds("SCH-019", not story.left, f"{kind}: the ledgers are empty", story.left or "they are", story.last)
    absent = story.last.status == 404 and story.last.problem == "not-found"
    stands = "released" if absent else story.last.at("phase")
    yield holds("SCH-019", stands == "released", f"{kind}: the allocation is released", stands, story.last)


def _coordination(stories: Sequence[Story]) -> Figure:
    """Time until allocations were committed; those that were not count as if they took an hour."""
    values = [_seconds(story) for story in stories]
    parts = []
    for kind in dict.fromkeys(story.script.kind for story in stories):
        own = [value for story, value in zip(stories, values, strict=True) if story.script.kind == kind]
        parts.append(PartFigure(kind, quantile(own, 0.99), None, len(own)))
    slowest = sorted(zip(values, range(len(stories)), strict=True), reverse=True)[:5]
    misses = [
        holds("SCH-006", False, f"{stories[place].script.kind}: soon", f"{value:.3f} s", stories[place].record)
        for value, place in slowest
    ]
    return Figure(
        "SCH-006",
        quantile(values, 0.99),
        min(NEVER, quantile_upper_bound(values, 0.99)),
        len(values),
        "99th percentile of the seconds for which domains had to wait, bound by order statistics",
        parts,
        misses,
    )


def _seconds(story: Story) -> float:
    return story.seconds if story.record.at("phase") == "committed" else NEVER


CHECK = Check(
    "sch_coordination", ("SCH-006", "SCH-017", "SCH-018", "SCH-019"), observe, judge, recorded_times=True, heavy=True
)
"""The check."""
