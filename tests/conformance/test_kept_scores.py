"""Scores beside a transcript spare whoever judges a run the playing, and nobody has to trust them."""

import json
import lzma
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from kuayu_conformance.kept_scores import FILE_NAME, PACKED_NAME, KeptScores
from kuayu_conformance.testbed.shards import Outcome
from kuayu_conformance.transcript import TranscriptError


def written(folder: Path, **scores: object) -> Path:
    """A folder of a run that has kept these."""
    kept = KeptScores.begin(folder)
    for key, value in scores.items():
        kept.put(key, value)
    kept.close()
    return folder


def test_what_a_run_keeps_is_found_by_who_judges_it(tmp_path: Path) -> None:
    kept = KeptScores.of(written(tmp_path, B1={"jobs": 3, "period": 0.1}, B3=[1, 2]), spot_checks=0)
    assert kept.get("B1") == {"jobs": 3, "period": 0.1}
    assert kept.get("B3") == [1, 2]
    assert kept.get("B4") is None


def test_a_run_that_has_nothing_to_keep_writes_no_file(tmp_path: Path) -> None:
    written(tmp_path)
    assert not list(tmp_path.iterdir())
    assert KeptScores.of(tmp_path).get("B1") is None


def test_a_run_that_was_killed_goes_on_behind_the_last_whole_line(tmp_path: Path) -> None:
    path = written(tmp_path, B1=1) / FILE_NAME
    path.write_bytes(path.read_bytes() + b'["B3",')
    kept = KeptScores.begin(tmp_path)
    assert kept.get("B1") == 1
    kept.put("B3", 2)
    kept.close()
    assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == [["B1", 1], ["B3", 2]]


def test_it_may_be_compressed(tmp_path: Path) -> None:
    path = written(tmp_path, B1=1) / FILE_NAME
    (tmp_path / PACKED_NAME).write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()
    assert KeptScores.of(tmp_path, spot_checks=0).get("B1") == 1


def test_those_that_are_drawn_are_computed_again_and_others_are_not(tmp_path: Path) -> None:
    folder = written(tmp_path, **{f"score {number}": number for number in range(100)})
    kept = KeptScores.of(folder, spot_checks=40)
    drawn = [number for number in range(100) if kept.get(f"score {number}") is None]
    assert len(drawn) == 40
    for number in drawn:
        kept.put(f"score {number}", number)
    other = KeptScores.of(folder, spot_checks=40)
    assert drawn != [number for number in range(100) if other.get(f"score {number}") is None], "nobody knows which"
    every = KeptScores.of(folder, spot_checks=None)
    assert all(every.get(f"score {number}") is None for number in range(100))


def test_a_score_that_somebody_altered_is_found_out_where_it_is_drawn(tmp_path: Path) -> None:
    kept = KeptScores.of(written(tmp_path, B1={"period": 2.0}), spot_checks=None)
    with pytest.raises(TranscriptError, match="B1"):
        kept.put("B1", {"period": 1.0})


@pytest.mark.parametrize("content", [b"{}\n", b"[1]\n", b"no JSON\n"])
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(TranscriptError, match="no score"):
        KeptScores.of(tmp_path)


def test_a_compressed_file_that_is_broken_is_refused(tmp_path: Path) -> None:
    (tmp_path / PACKED_NAME).write_bytes(b"nothing compressed")
    with pytest.raises(TranscriptError, match="cannot be read"):
        KeptScores.of(tmp_path)


def test_what_takes_long_and_follows_from_the_nonce_is_made_once(tmp_path: Path) -> None:
    """Infinite numbers come back as they were, and those that are drawn are made again."""
    kind, made = TypeAdapter(tuple[Outcome, ...]), []

    def make() -> tuple[Outcome, ...]:
        made.append(1)
        return (Outcome(0.25, float("inf"), 0.0, 3, 0.5),)

    kept = KeptScores.begin(tmp_path)
    assert kept.get_or_make("window", kind, make) == kept.get_or_make("window", kind, make) == make()
    kept.close()
    assert len(made) == 2
    later = KeptScores.of(tmp_path, spot_checks=0)
    assert later.get_or_make("window", kind, make) == make()
    assert len(made) == 3
    drawn = KeptScores.of(tmp_path)
    assert drawn.get_or_make("window", kind, make) == make()
    assert len(made) == 5
