"""Makes the shipped files of the public originals in a data folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from kuayu_conformance.corpora.sources import flagperf, gavel, mlperf, neusight, zeus
from kuayu_conformance.corpora.table import Table

SHIPPED = (gavel, neusight, mlperf, zeus, flagperf)
"""Origins whose licence lets the tables come with the suite."""


def shipped_files(data: Path) -> Mapping[str, str]:
    """What is shipped, as file names in the package and their text.

    Raises:
        FileNotFoundError: The data folder lacks one of the originals.
    """
    all_tables: list[Table] = [table for source in SHIPPED for table in source.tables(data)]
    counted = ",\n".join(json.dumps(asdict(gap), ensure_ascii=False) for gap in flagperf.gaps(data))
    return {f"tables/{table.name}.json": table.to_json() for table in all_tables} | {
        "flagperf_gaps.json": f"[\n{counted}\n]\n"
    }
