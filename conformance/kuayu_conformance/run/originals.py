"""Job traces that a run may use: public originals of the data folder, named in the transcript by their digests."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kuayu_conformance.testbed.scheduling.workload.traces import FILES
from kuayu_conformance.transcript import TranscriptError


def at_hand(names: Iterable[str], data: Path | None) -> dict[str, Path]:
    """Traces of these names that are in a data folder, and that folder."""
    return {name: data for name in names if data is not None and (data / FILES[name]).is_file()}


def entries(traces: Mapping[str, Path]) -> Iterator[dict[str, str]]:
    """What a transcript's header says of them."""
    for name, data in traces.items():
        yield {"name": name, "digest": "sha256:" + hashlib.sha256((data / FILES[name]).read_bytes()).hexdigest()}


def named(used: Iterable[Mapping[str, Any]], data: Path | None) -> dict[str, Path]:
    """Traces that a header names.

    Raises:
        TranscriptError: One of them is not at hand, or is another one by now.
    """
    digests = {each["name"]: each["digest"] for each in used if each["name"] in FILES}
    found = at_hand(digests, data)
    for name in digests.keys() - found.keys():
        raise TranscriptError(
            f"the run used the job trace {name} ({FILES[name]}), which is not at hand; "
            "name its folder with --data or KUAYU_DATA"
        )
    for entry in entries(found):
        if entry["digest"] != digests[entry["name"]]:
            raise TranscriptError(f"the job trace {entry['name']} at hand is not the one that the run used")
    return found
