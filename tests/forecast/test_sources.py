"""Sources of demand: which are read, from tables as small as their form allows."""

import gzip
from pathlib import Path

import pytest

from kuayu_training.forecast.sources import DAY, FILES, MINUTE, sources


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    """A folder with a table for each source: two domains, and two minutes after those that are skipped."""
    (tmp_path / "demand_series").mkdir()
    for file, only, days in FILES.values():
        rows = [f"{60 * minute},{minute},{2 * minute}" for minute in range(int(days * DAY / MINUTE) + 2)]
        text = "\n".join([f"time_s,{only or 'first'},second", *rows, ""])
        with gzip.open(tmp_path / "demand_series" / file, "wt") as table:
            table.write(text)
    return tmp_path


def test_all_sources_are_read_where_none_is_named_and_else_those_that_are(data: Path) -> None:
    assert [source.name for source in sources(data)] == list(FILES)
    for named in (("itp", "philly"), ("openb",), ()):
        assert [source.name for source in sources(data, named)] == list(named)


def test_a_source_has_the_domains_of_its_table_or_the_one_that_is_meant(data: Path) -> None:
    for source in sources(data):
        _, only, days = FILES[source.name]
        assert source.domains == ((only,) if only else ("first", "second"))
        first = days * DAY / MINUTE
        assert source.values[0].tolist() == [first, first + 1]
