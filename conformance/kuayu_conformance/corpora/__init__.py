"""Tables of measured throughput, which compute indices are judged by.

Five origins with an open licence come with the suite. What states none is read from a folder of public originals where
there is one. Every table is a corpus of the model: it travels in requests, and nothing is fitted to it beforehand.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path

from kuayu_conformance.corpora.gaps import Gap, flagperf_gaps
from kuayu_conformance.corpora.sources import lambdalabs
from kuayu_conformance.corpora.table import Table

__all__ = ["Gap", "Table", "UnknownTable", "available", "flagperf_gaps", "load", "shipped"]

NAMES = ("gavel", "neusight", "mlperf", "mlperf-time", "zeus", "flagperf")
BY_FOLDER = {"lambda": (lambdalabs.FILE, lambdalabs.tables)}
"""Tables that need a data folder: the file there that they are made of, and what makes them."""


class UnknownTable(LookupError):
    """There is no table of the name that was asked for; the message says which there are."""


@cache
def shipped() -> tuple[Table, ...]:
    """Tables that come with the suite."""
    folder = files(__package__).joinpath("tables")
    return tuple(Table.from_json(folder.joinpath(f"{name}.json").read_text("utf-8")) for name in NAMES)


@cache
def available(data: Path | None) -> tuple[Table, ...]:
    """Tables that come with the suite, and those whose originals lie in a data folder."""
    if data is None:
        return shipped()
    tables_by_file = [make(data) for file, make in BY_FOLDER.values() if (data / file).is_file()]
    return shipped() + tuple(table for tables in tables_by_file for table in tables)


def load(name: str, data: Path | None) -> Table:
    """The table of a name.

    Raises:
        UnknownTable: There is none, or its originals are not in the data folder.
    """
    tables = available(data)
    for table in tables:
        if table.name == name:
            return table
    if name in BY_FOLDER:
        raise UnknownTable(
            f"the table {name} does not come with the suite, since its origin states no licence; "
            f"set KUAYU_DATA to a folder that holds {BY_FOLDER[name][0]}"
        )
    raise UnknownTable(f"there is no table {name}; there are {', '.join(table.name for table in tables)}")
