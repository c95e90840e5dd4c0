"""What public data says of the recognition; skipped loudly where the data is not."""

from pathlib import Path

import pytest

from kuayu_training.forecast.sources import folder
from kuayu_training.resilience.logs import grouped, recognised, sessions_100k, sessions_normal

BESIDE = Path(__file__).parents[2].parent / "shared" / "data"
TABLES = ("failures/nvidia_xid_message_examples.csv", "logs/loghub_2k.csv.gz", "logs/hdfs_100k_sessions.csv.gz")


@pytest.fixture(scope="module", name="data")
def _data() -> Path:
    """The folder of public data."""
    for each in (folder(), BESIDE):
        if all((each / table).is_file() for table in TABLES):
            return each
    pytest.skip(f"no {', '.join(TABLES)} (KUAYU_DATA names the folder of public data), so that no log is judged")


def test_every_public_xid_line_is_recognised_and_no_system_without_gpus_has_a_gpu_fault(data: Path) -> None:
    found = recognised(data)
    assert (found["right"], found["wrong"], found["missed"]) == (found["examples"], 0, 0)
    assert found["examples"] == 87
    assert found["catalogue_missing"] == []
    assert [row["system"] for row in found["others"] if row["gpu"] or row["drains"]] == []


def test_templates_are_grouped_as_well_as_published_on_most_systems(data: Path) -> None:
    rows = grouped(data)
    assert len(rows) == 9
    close = [row["system"] for row in rows if row["accuracy"] >= row["published"] - 0.01]
    assert len(close) >= 8


def test_surprise_tells_more_faulty_sessions_than_its_yardsticks(data: Path) -> None:
    for rows in (sessions_100k(data), sessions_normal(data)):
        by_method = {row["method"]: row for row in rows}
        own = by_method.pop("surprise")
        assert own["f1"] > max(row["f1"] for row in by_method.values())
        assert own["false_alarms_per_1000"] <= 10
