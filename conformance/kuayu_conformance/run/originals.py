"""Public originals of the data folder that a run may use: traces, curves, series, runs; named by their digests."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kuayu_conformance.corpora import DEMAND_SERIES, JOB_TRACES, TRAINING_CURVES, training
from kuayu_conformance.transcript import TranscriptError

FILES: Mapping[str, str | Path] = {**JOB_TRACES, **training.FILES, **TRAINING_CURVES, **DEMAND_SERIES}
"""Where each is in the folder, by name."""


def at_hand(names: Iterable[str], data: Path | None) -> dict[str, Path]:
    """Originals of these names that are in a data folder, and that folder."""
    return {name: data for name in names if data is not None and (data / FILES[name]).is_file()}


def entries(traces: Mapping[str, Path]) -> Iterator[dict[str, str]]:
    """What a transcript's header says of them."""
    for name, data in traces.items():
        yield {"name": name, "digest": "sha256:" + hashlib.sha256((data / FILES[name]).read_bytes()).hexdigest()}


def named(used: Iterable[Mapping[str, Any]], data: Path | None) -> dict[str, Path]:
    """Originals that a header names.

    Raises:
        TranscriptError: One of them is not at hand, or is another one by now.
    """
    digests = {item["name"]: item["digest"] for item in used if item["name"] in FILES}
    paths = at_hand(digests, data)
    for name in digests.keys() - paths.keys():
        raise TranscriptError(
            f"the run used the original {name} ({FILES[name]}), which is not at hand; "
            "name its folder with --data or KUAYU_DATA"
        )
    for entry in entries(paths):
        if entry["digest"] != digests[entry["name"]]:
            raise TranscriptError(f"the original {entry['name']} at hand is not the one that the run used")
    return paths
