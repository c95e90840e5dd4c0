"""Requests for backup plans that are hard to answer: risks at a step, pools that are too small, rooms for one copy."""

from collections.abc import Callable, Iterator
from random import Random

from kuayu_conformance.checks.res_backup_draft import Draft
from kuayu_conformance.checks.res_backup_soundness import mean_of, tail
from kuayu_conformance.checks.res_fixtures import Json
from kuayu_conformance.checks.res_recovery_draft import GIGA

_BESIDE = 1e-6
"""Relative: so far beside a step, there is no doubt which number is the fewest."""


def many_failures(draft: Draft) -> Json:
    """Dozens, hundreds and a hundred thousand nodes fail within the repair time."""
    cases = (2_000, 900, 40.0), (30_000, 5_000, 700.0), (9_000_000, 400_000, 1e5)
    domains = [draft.domain(each, *case) for each, case in zip(draft.domains, cases, strict=True)]
    return draft.asked(domains, draft.jobs(2))


def few_failures(draft: Draft) -> Json:
    """Hardly any fail: less than the risk, about as much, and somewhat more."""
    risk = round(draft.chance.uniform(0.01, 0.05), 6)
    domains = [draft.domain(each, 30, 9, part * risk) for each, part in zip(draft.domains, (0.1, 1.0, 4), strict=True)]
    return draft.asked(domains, draft.jobs(2), risk=risk)


def few_free(draft: Draft) -> Json:
    """Free nodes are far too few, nearly enough, and none."""
    domains = [draft.domain(each, 400, free, 12.0) for each, free in zip(draft.domains, (2, 16, 0), strict=True)]
    return draft.asked(domains, draft.jobs(2), risk=0.001)


def nothing_fails(draft: Draft) -> Json:
    """Nobody holds a node, repair takes no time, and both."""
    here, near, far = draft.domains
    at_once = {"repair_time": 0.0}
    domains = [draft.domain(here, 0, 9, 1.0), draft.domain(near, 300, 9, 1.0, **at_once)]
    return draft.asked([*domains, draft.domain(far, 0, 9, 1.0, **at_once)], draft.jobs(2))


def no_risk(draft: Draft) -> Json:
    """No risk may be run: all free nodes, but where nothing can fail."""
    here, near, far = draft.domains
    domains = [draft.domain(here, 64, 5, 0.4), draft.domain(near, 64, 3, 20.0), draft.domain(far, 0, 6, 1.0)]
    return draft.asked(domains, draft.jobs(2), risk=0.0)


def any_risk(draft: Draft) -> Json:
    """Any risk may be run: no spares."""
    domains = [draft.domain(each, 400, 40, mean) for each, mean in zip(draft.domains, (0.1, 3.0, 30.0), strict=True)]
    return draft.asked(domains, draft.jobs(2), risk=1.0)


def _beside(draft: Draft, factor: float) -> Json:
    spares = draft.chance.randrange(2, 7)
    domains = [draft.domain(draft.here, 200, 20, 2.5), draft.domain(draft.near, 200, 20, 0.5)]
    return draft.asked(domains, draft.jobs(2), risk=factor * tail(spares, mean_of(domains[0])))


def at_a_step(draft: Draft) -> Json:
    """The risk is exactly that of so many spares."""
    return _beside(draft, 1.0)


def above_a_step(draft: Draft) -> Json:
    """The risk is hardly above that of so many spares: they are enough."""
    return _beside(draft, 1.0 + _BESIDE)


def below_a_step(draft: Draft) -> Json:
    """The risk is hardly below that of so many spares: one more is needed."""
    return _beside(draft, 1.0 - _BESIDE)


def for_nothing(draft: Draft) -> Json:
    """Spares cost nothing in one domain; there are no jobs, links and stores."""
    domains = [draft.domain(draft.here, 900, 90, 9.0, price=0.0), draft.domain(draft.near, 900, 90, 5.0)]
    return draft.asked(domains, [], links=[], stores=[])


def room_for_all(draft: Draft) -> Json:
    """All copies that anybody may want find room and bandwidth."""
    return draft.asked(draft.quiet(), draft.jobs(6))


def room_for_one(draft: Draft) -> Json:
    """Two jobs of one size; each store has room for just one copy, which takes twice the size of the state."""
    size = float(draft.chance.randrange(20_000_000_000, 600_000_000_000))
    jobs = [draft.backed_up(draft.here, size), draft.backed_up(draft.here, size)]
    return draft.asked(draft.quiet(), jobs, stores=draft.stores(2.0 * size))


def hardly_too_little_room(draft: Draft) -> Json:
    """Stores have room for a state and nine tenths."""
    size = float(draft.chance.randrange(20_000_000_000, 600_000_000_000))
    return draft.asked(
        draft.quiet(), [draft.backed_up(draft.here, size)], stores=draft.stores(float(round(1.9 * size)))
    )


def no_room(draft: Draft) -> Json:
    """A store is full, one states no room, and one domain has none."""
    stores = [draft.store(draft.here, 0.0), draft.store(draft.near, None)]
    return draft.asked(draft.quiet(), draft.jobs(4), stores=stores)


def no_stores(draft: Draft) -> Json:
    """There is a store in one domain only, where no job runs."""
    return draft.asked(draft.quiet(), draft.jobs(3), stores=[draft.store(draft.far)])


def no_links(draft: Draft) -> Json:
    """No link leads anywhere but back from where no job runs."""
    links = [draft.link(draft.far, draft.here), draft.link(draft.far, draft.near)]
    return draft.asked(
        draft.quiet(), draft.jobs(3), links=links, stores=[draft.store(draft.near), draft.store(draft.far)]
    )


def links_out(draft: Draft) -> Json:
    """Links are out, were never measured, or have carried nothing; one of three jobs has a store where it runs."""
    jobs = [draft.backed_up(draft.here), draft.backed_up(draft.near), draft.backed_up(draft.here)]
    links = [
        draft.link(draft.here, draft.far, up=False),
        draft.link(draft.near, draft.far, bandwidths=[]),
        draft.link(draft.here, draft.near, bandwidths=[0.0] * 10),
    ]
    return draft.asked(draft.quiet(), jobs, links=links, stores=[draft.store(draft.near), draft.store(draft.far)])


def thin_links(draft: Draft) -> Json:
    """Five jobs share links that carry next to nothing; stores where they run have no room."""
    links = draft.links()
    for link in links:
        link["bandwidths"] = [float(round(0.01 * each)) for each in link["bandwidths"]]
    stores = [draft.store(draft.here, 0.0), draft.store(draft.near), draft.store(draft.far)]
    jobs = [draft.backed_up(draft.here) for _ in range(5)]
    return draft.asked(draft.quiet(), jobs, links=links, stores=stores)


def links_that_falter(draft: Draft) -> Json:
    """Links carry much now and carried nothing before: on average little. There is no store where jobs run."""
    links = [draft.link(draft.here, each) for each in (draft.near, draft.far)]
    for link in links:
        link["bandwidths"] = [0.0] * (9 * len(link["bandwidths"])) + link["bandwidths"]
    jobs = [draft.backed_up(draft.here) for _ in range(4)]
    stores = [draft.store(draft.near), draft.store(draft.far)]
    return draft.asked(draft.quiet(), jobs, links=links, stores=stores)


def slow_store(draft: Draft) -> Json:
    """Jobs of all domains share one slow store; links are far faster."""
    jobs = [draft.backed_up(each) for each in draft.domains for _ in range(2)]
    store = draft.store(draft.far, bandwidth=float(round(draft.chance.uniform(0.05, 0.2) * GIGA)))
    return draft.asked(draft.quiet(), jobs, stores=[store])


def no_share(draft: Draft) -> Json:
    """Copies may take nothing of any link or store."""
    return draft.asked(draft.quiet(), draft.jobs(3), share=0.0)


QUESTIONS: dict[str, Callable[[Draft], Json]] = {
    "many failures": many_failures,
    "few failures": few_failures,
    "few free nodes": few_free,
    "nothing that can fail": nothing_fails,
    "no risk that may be run": no_risk,
    "any risk": any_risk,
    "a risk at a step": at_a_step,
    "a risk above a step": above_a_step,
    "a risk below a step": below_a_step,
    "spares for nothing": for_nothing,
    "room for all copies": room_for_all,
    "room for one copy": room_for_one,
    "hardly too little room": hardly_too_little_room,
    "no room": no_room,
    "no stores": no_stores,
    "no links": no_links,
    "links that are out": links_out,
    "thin links": thin_links,
    "links that falter": links_that_falter,
    "a slow store": slow_store,
    "no share": no_share,
}
"""By what is hard about them."""


def questions(chance: Random, times: int) -> Iterator[tuple[str, Json]]:
    """Each so many times, with other numbers."""
    for _ in range(times):
        for what, drawn in QUESTIONS.items():
            yield what, drawn(Draft(chance))
