"""Published training runs in the terms of the standard, which the demand law is judged by.

What has an open licence comes with the suite; figures that are known from papers alone are read from a folder of
public originals where there is one. Nothing is fitted to them beforehand.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path

from kuayu_conformance.corpora.training.conversion import TABLE, converted
from kuayu_conformance.corpora.training.runs import ADDED, RECALLED, Corpus, Run, Source

__all__ = ["FILES", "Corpus", "Run", "Source", "added", "further", "shipped"]

FILES = {"training-runs": TABLE}
"""Originals that further runs are read from: name in a transcript and place in a data folder."""


@cache
def shipped() -> Corpus:
    """Runs that come with the suite."""
    return Corpus.from_json(files(__package__).joinpath("runs.json").read_text("utf-8"))


def further(data: Path) -> Corpus:
    """Runs that are known from papers alone, of a folder of public originals.

    Raises:
        FileNotFoundError: There is no table of runs in it.
    """
    return converted(data, RECALLED)[0]


@cache
def added() -> Corpus:
    """Runs that were entered after the law of version 1.0 was made: no part of DEM-001 until the next release."""
    return converted(Path(str(files(__package__))), ADDED, "added.csv")[0]
