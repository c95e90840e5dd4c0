"""Services size tasks and are held to what comes of it: a conforming one, an idle one, one that halves everything."""

import json
from collections.abc import Iterable

import pytest
from conformance.sizing_targets import Json, Sizer, Target, conforming, episode, halving, idle

from kuayu_conformance.checks.demand import sizing as dem_sizing
from kuayu_conformance.checks.demand.sizing import CURVE, Questioner, Setting, SizedHistories, gains, mean_gain
from kuayu_conformance.findings import Claim, Figure, Finding
from kuayu_conformance.testbed.right_sizing import FIFO, KINDS, MIXES
from kuayu_schemas import schema

COSTED = len(MIXES) * len(CURVE) + 1
"""Points of the curve, and the one where nothing is asked for in excess: costs are looked at in each."""


@pytest.fixture(scope="module", autouse=True)
def _few() -> Iterable[None]:
    """Two windows of each mix, and histories of some hundred tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dem_sizing, "QUICK", (1, 2))
        patch.setattr(dem_sizing, "CURVE_QUICK", (1, 1))
        patch.setattr(dem_sizing, "NOTHING_QUICK", (1, 4))
        patch.setattr("kuayu_conformance.checks.demand.sizing.RECORDS", 1500)
        yield


def played(sizer: Sizer) -> tuple[Target, SizedHistories, list[Finding]]:
    target = Target(sizer)
    observation = dem_sizing.observe(episode(target))
    return target, observation, list(dem_sizing.judge(observation))


def unmet(findings: Iterable[Finding], requirement: str) -> list[str]:
    return [
        f"{each.expected}: {each.found}"
        for each in findings
        if isinstance(each, Claim) and each.requirement == requirement and not each.met
    ]


def figure(findings: Iterable[Finding]) -> Figure:
    return next(each for each in findings if isinstance(each, Figure))


def gained(observation: SizedHistories) -> list[float]:
    """Gains over what was asked for under FIFO at all points of the curve."""
    return [mean_gain(gains(cell.service, FIFO)) for cell in observation.cells if cell.judged]


def test_a_conforming_service_gains_without_harm() -> None:
    target, observation, findings = played(conforming)
    assert not unmet(findings, "DEM-007")
    assert not unmet(findings, "DEM-003")
    assert sum(gained(observation)) > 0.0
    assert all(schema.is_valid("SizingRequest", body) for body in target.bodies)
    assert {cell.setting.mix for cell in observation.cells if cell.usual} == set(MIXES)


def test_an_idle_service_gains_nothing_and_harms_nobody() -> None:
    """It has no costs, and is behind whoever gains anything."""
    _, observation, findings = played(idle)
    assert not unmet(findings, "DEM-003")
    assert gained(observation) == [0.0] * len(MIXES) * len(CURVE)
    assert figure(findings).estimate < 0.0
    assert figure(findings).bound is not None
    assert figure(findings).bound <= figure(findings).estimate


def test_half_of_everything_kills_and_slows() -> None:
    _, _, findings = played(halving)
    wrong = unmet(findings, "DEM-003")
    assert len([each for each in wrong if "out of memory" in each]) == COSTED
    assert len([each for each in wrong if "slower" in each]) == COSTED
    assert any("in excess" in each for each in wrong)
    assert figure(findings).estimate < 0.0


def test_half_of_the_cores_lets_more_tasks_in_and_is_caught_by_their_time() -> None:
    """Twice as many tasks run at once, and none dies; but they take half as long again."""

    def half_the_cores(body: Json) -> Json:
        report = halving(body)
        for task, size in zip(body["tasks"], report["tasks"], strict=True):
            size["recommended"] = {**task["requested"], "cores": task["requested"]["cores"] / 2.0}
        return report

    _, _, findings = played(half_the_cores)
    wrong = unmet(findings, "DEM-003")
    assert not any("out of memory" in each for each in wrong)
    assert len([each for each in wrong if "slower" in each]) == COSTED


def test_names_tell_nothing_and_nonces_decide() -> None:
    first, again, other = Target(idle), Target(idle), Target(idle)
    for target, nonce in ((first, "one"), (again, "one"), (other, "other")):
        questioner = Questioner(episode(target, nonce))
        questioner.ask(Setting("40:30:20:10"), 0, (0, 1))
        questioner.unusual()
    assert first.bodies == again.bodies
    assert first.bodies != other.bodies
    text = json.dumps(first.bodies).lower()
    assert not any(kind.name.lower() in text for kind in KINDS)


def test_what_exceeds_the_request_is_not_given_and_is_told() -> None:
    def doubling(body: Json) -> Json:
        report = halving(body)
        for size in report["tasks"]:
            size["recommended"] = {name: 4.0 * amount for name, amount in size["recommended"].items()}
        return report

    _, observation, findings = played(doubling)
    assert gained(observation) == [0.0] * len(MIXES) * len(CURVE)
    assert unmet(findings, "DEM-007")


def test_a_service_that_gives_no_sizes_fails_both() -> None:
    _, observation, findings = played(lambda body: {"revision": body["revision"]})
    assert unmet(findings, "DEM-003")
    assert unmet(findings, "DEM-007")
    assert gained(observation) == [0.0] * len(MIXES) * len(CURVE)
