"""Made-up and real training curves: they are what they are said to be."""

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.curves import (
    MAX_POINTS,
    MEASURED,
    MIN_POINTS,
    PHASES,
    REAL_FILES,
    RESTARTED,
    RESUMED,
    SCRATCH,
    Curve,
    Noise,
    Schedule,
    curve,
    deviations,
    measure,
    real_curves,
    settled,
    switches,
)
from kuayu_conformance.testbed.curves import __main__ as command

BESIDE = Path(__file__).parents[5] / "shared" / "data"


@pytest.fixture(scope="module")
def many() -> list[Curve]:
    return [curve("many", number) for number in range(200)]


@pytest.fixture(scope="module")
def originals() -> tuple[Curve, ...]:
    folder = Path(os.environ.get("KUAYU_DATA") or BESIDE)
    if not all((folder / name).is_file() for name in REAL_FILES.values()):
        pytest.skip(f"no training curves in {folder} (KUAYU_DATA names another folder), so that no real one is read")
    return real_curves(folder)


def test_a_rate_rises_in_a_line_and_falls_as_it_should() -> None:
    steps = np.array([1, 50, 100, 300, 500, 900])
    assert Schedule(100, "constant", 500).shares(steps).tolist() == [0.01, 0.5, 1, 1, 1, 1]
    assert Schedule(100, "linear", 500).shares(steps) == pytest.approx([0.01, 0.5, 1, 0.55, 0.1, 0.1])
    assert Schedule(100, "cosine", 500, 0.0).shares(steps) == pytest.approx([0.01, 0.5, 1, 0.5, 0, 0])
    assert Schedule(100, "stable", 500, 0.0, 0.5).shares(steps) == pytest.approx([0.01, 0.5, 1, 0.8, 0, 0])
    assert Schedule(0, "linear", 500, 0.0).shares(steps)[0] == pytest.approx(0.998)


def test_noise_is_as_large_and_lasts_as_long_as_it_should() -> None:
    drawn = stream("noise", "a long curve").standard_normal(20_000)
    found = measure(3.0 * np.exp(deviations(drawn, Noise("lasting", 0.02, 0.4))))
    assert found.size == pytest.approx(0.02, rel=0.05)
    assert found.correlation == pytest.approx(0.4, abs=0.05)


def test_the_same_seed_and_number_give_the_same_curve_whatever_others_there_are(many: list[Curve]) -> None:
    again = curve("many", 7)
    assert again.losses.tolist() == many[7].losses.tolist()
    assert again.rates.tolist() == many[7].rates.tolist()
    assert curve("few", 7).losses.tolist() != again.losses.tolist()


def test_curves_are_of_every_kind_and_go_through_every_phase(many: list[Curve]) -> None:
    assert Counter(each.source for each in many).keys() == {SCRATCH, RESUMED, RESTARTED}
    found = [(each, switches(each)) for each in many]
    phases = Counter(truth.phase(place) for each, truth in found for place in range(settled(each.steps)))
    assert all(phases[phase] > 0.1 * phases.total() for phase in PHASES)
    assert any(truth.fast is None for _, truth in found)
    assert any(truth.fast == 0 for _, truth in found)


def test_a_curve_begins_with_the_run_and_is_told_at_equal_intervals(many: list[Curve]) -> None:
    for each in many:
        assert each.steps[0] == 1
        assert 80 <= len(each.steps) <= 1002  # where a training broke off, some points are missing
        gaps = {later - earlier for earlier, later in pairwise(each.steps[1:].tolist())}
        assert each.source == RESTARTED or len(gaps) == 1


def test_losses_begin_where_vocabularies_let_them_unless_training_goes_on(many: list[Curve]) -> None:
    high = {kind: [each.losses[0] for each in many if each.source == kind] for kind in (SCRATCH, RESUMED, RESTARTED)}
    assert min(high[SCRATCH] + high[RESTARTED]) > 4.0
    assert max(high[RESUMED]) < 7.0


def test_real_curves_have_a_course_that_is_known(originals: tuple[Curve, ...]) -> None:
    by_source = Counter(each.source for each in originals)
    assert by_source["mlperf llama31_8b"] == 25
    assert by_source["megatron t5"] == 5
    assert not any("GPT3P" in each.name for each in originals)
    assert all(MIN_POINTS <= len(each.steps) <= MAX_POINTS for each in originals)
    assert len({tuple(each.losses.tolist()) for each in originals}) == len(originals)


@pytest.mark.parametrize(
    ("name", "warm_up"),
    [
        ("bert/bert_release/dev/H100", 200),  # a hundredth of 20 000 steps
        ("t5/t5_release/dev/H100", 1000),
        ("gpt/gpt3_15b_8t_release/dev/H100", 3_906_252 / 384),
        ("mixtral/mixtral_8x7b_alltoall_tp2pp4ep4_release/dev/H100", 3_906_252 / 1024),
        ("nemotron/nemotron3_super_release_gb200/dev/GB200", None),  # longer than the run
        ("L405BN001", 12_000 / 768),
    ],
)
def test_warm_up_of_real_curves_follows_from_their_configuration(
    originals: tuple[Curve, ...], name: str, warm_up: float | None
) -> None:
    found = next(each for each in originals if each.name == name)
    place = switches(found).fast
    if warm_up is None:
        assert place is None
    else:
        assert place is not None
        assert found.steps[place - 1] < warm_up <= found.steps[place + 1]


def test_noise_of_made_up_curves_is_that_of_real_ones(originals: tuple[Curve, ...]) -> None:
    for stated in MEASURED:
        found = [measure(each.losses) for each in originals if each.source == stated.kind]
        assert float(np.median([one.size for one in found])) == pytest.approx(stated.size, rel=0.02)
        assert float(np.median([one.correlation for one in found])) == pytest.approx(stated.correlation, abs=0.02)


def test_curves_are_drawn_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUAYU_DATA", raising=False)
    out = tmp_path / "curves.svg"
    assert command.main([str(out), "--seed", "drawn"]) == 0
    drawing = ET.fromstring(out.read_text("utf-8"))  # noqa: S314 - our own file
    labels = [each.text or "" for each in drawing.iter() if each.tag.endswith("text")]
    assert sum(label.startswith("generated") for label in labels) == command.GENERATED
