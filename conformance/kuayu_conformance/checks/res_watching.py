"""Three domains beat for a minute, fall silent, fail and come back: RES-017 to RES-023.

What is played is one script (:mod:`kuayu_conformance.checks.res_watching_script`); faults and actions are looked at
every second, and followed as a stream from the first beat on.
"""

from collections.abc import Iterator

from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_watching_actions import judge_actions
from kuayu_conformance.checks.res_watching_batches import NAMED, judge_batches
from kuayu_conformance.checks.res_watching_changes import judge_changes
from kuayu_conformance.checks.res_watching_faults import FAILING, judge_faults
from kuayu_conformance.checks.res_watching_player import Player
from kuayu_conformance.checks.res_watching_seen import Observed
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered


def observe(episode: Episode) -> Observed:
    """Play the script.

    Raises:
        SetUpFailed: Domains or nodes were refused.
        NotTestable: Beats could not be sent in time.
    """
    return Player(episode).play()


def judge(o: Observed) -> Iterator[Finding]:
    """Each requirement by what was seen of it."""
    yield from judge_batches(o.batches, failing=bool(o.about(FAILING, "node", NAMED)))
    if o.refused is not None:
        for requirement in ("RES-017", "RES-018", "RES-019", "RES-020", "RES-022", "RES-023"):
            yield answered(requirement, o.refused, (200, 204), "what is played is taken")
        return
    yield from judge_faults(o)
    yield from judge_actions(o)
    yield from judge_changes(o)


CHECK = Check(
    "res_watching",
    ("RES-017", "RES-018", "RES-019", "RES-020", "RES-021", "RES-022", "RES-023"),
    observe,
    judge,
    recorded_times=True,
    background=True,
)
