"""Backup plans on the wire: spare nodes by domain, and which copies of checkpoints are taken how often."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from kuayu.resilience.recovery.checking import check_backup
from kuayu.resilience.recovery.needs import LOST_S, PAUSED, needs
from kuayu.resilience.recovery.periods import periods
from kuayu.resilience.recovery.places import Copy, Places, placed
from kuayu.resilience.recovery.pools import expected, pool

METHOD = {"name": "kuayu-poisson-and-young", "version": "1.0.0"}

NAMED = 10
"""Most domains or jobs that a reason names."""

_WHERE = {"own": "their own domain", "other": "another domain"}


def backup_plan(request: dict[str, Any]) -> dict[str, Any]:
    """Plan what to hold against faults.

    Args:
        request: A ``BackupRequest``.

    Returns:
        A ``BackupPlan``. It follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Domains, jobs, stores or links share a name.
        kuayu.refusals.UnknownName: A job runs in no domain of the request.
        kuayu.refusals.Impossible: Members contradict each other, or there is more than can be planned at once.
    """
    check_backup(request)
    pools = [pool(domain, request["risk"]) for domain in request["domains"]]
    wanted = needs(request)
    copies, places = placed(request, wanted, {each["domain"]: each["spares"] for each in pools})
    made = sorted(zip(copies, periods(copies, places), strict=True), key=_order)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "pools": pools,
        "copies": [
            {"job": copy.need.job["id"], "domain": copy.domain, "period": period_s}
            for copy, period_s in made
            if isfinite(period_s)
        ],
        "reasons": list(_reasons(request, pools, made, places)),
    }


def _order(copy: tuple[Copy, float]) -> tuple[int, bool]:
    """By job, that in its own domain first."""
    return copy[0].need.place, copy[0].link is not None


def _reasons(
    request: Mapping[str, Any],
    pools: Sequence[Mapping[str, Any]],
    made: Sequence[tuple[Copy, float]],
    places: Places,
) -> Iterator[str]:
    for domain, each in list(zip(request["domains"], pools, strict=True))[:NAMED]:
        short = "; that is all there are" if each["risk"] > request["risk"] else ""
        words = f"{expected(domain):.3g} nodes fail within a repair on average"
        yield f"{domain['id']}: {words}, more than {each['spares']} with a chance of {each['risk']:.2g}{short}."
    if made:
        yield (
            "Checkpoints are as far apart as pauses and lost work together take least, "
            f"yet no further than {LOST_S:.0f} s or {1.0 / PAUSED:.0f} pauses, whichever is more."
        )
    slowed = [copy for copy, period_s in made if copy.link is None and period_s > copy.need.period_s + 1.0]
    if slowed:
        yield f"Stores carry copies of {_named(_jobs(slowed))} less often than would be best."
    far = [copy for copy, period_s in made if copy.link is not None and period_s > 2.0 * copy.need.period_s]
    if far:
        jobs = _named(_jobs(far))
        yield f"Links carry copies of {jobs} to another domain no more than half as often as would be best."
    if places.cramped:
        words = "spares are too few to restore there at once"
        yield f"Where copies of {_named(places.cramped)} are in another domain, {words}."
    for where, names in places.without.items():
        if names:
            reason = "no store there has room and bandwidth, or no link that carries leads there"
            yield f"No copy in {_WHERE[where]} for {_named(names)}: {reason}."


def _jobs(copies: Sequence[Copy]) -> list[str]:
    return [copy.need.job["id"] for copy in copies]


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
