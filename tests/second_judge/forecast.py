"""FCT-001 and FCT-002, accuracy of forecasts over ten minutes and an hour, of a run with full requests.

Clause fct-01-forecast and the method of the requirements. Accuracy of a domain is one less the sum of absolute errors
over the sum of what came; the worst domain is the figure. Blocks are days of worlds. Of 4 000 resamples each draws as
many blocks as there are, the one of number ⌊u · blocks⌋, with ``u`` from NumPy's Philox generator, row by row, whose
key is the first 16 bytes, most significant first, of the SHA-256 of ``REQUIREMENT DOMAIN/blocks``. The bound of a
domain is one less the value of rank ⌈0.95 · resamples⌉ of the resampled ratios; the bound is the least of the domains.
The other bound is the least of theirs on the other side, each at 1 − 0.05 / domains.
"""

from collections import defaultdict
from hashlib import sha256
from math import ceil
from pathlib import Path

import numpy as np

from second_judge.bounds import CONFIDENCE, RESAMPLES, printed
from second_judge.reading import Judged, asked, episode, exchanges, told, truth

HORIZONS = {"FCT-001": 600.0, "FCT-002": 3600.0}

Blocks = dict[tuple[int, int], list[float]]
"""Absolute errors and devices that came, by world and day, in the order in which blocks first come."""


def judge(folder: Path) -> dict[str, Judged]:
    """Both figures."""
    events = list(episode(folder, "fct_accuracy"))
    answers = {_revision(asked(event)): event for event in exchanges(events, "/v1/forecasts")}
    found = {requirement: defaultdict[str, Blocks](dict) for requirement in HORIZONS}
    counted = dict.fromkeys(HORIZONS, 0)
    for question in truth(events):
        answer = answers[_revision(question)]
        horizons = asked(answer)["horizons"]
        forecasts = {each["series"]: each["points"] for each in told(answer)["forecasts"]}
        for domain in question["domains"]:
            for requirement, horizon in HORIZONS.items():
                place = horizons.index(horizon)
                came, expected = domain["came"][place], forecasts[domain["series"]][place]["expected"]
                blocks = found[requirement][domain["label"]]
                block = blocks.setdefault((question["world"], question["day"]), [0.0, 0.0])
                block[0] += abs(expected - came)
                block[1] += came
                counted[requirement] += 1
    return {requirement: _judged(requirement, domains, counted[requirement]) for requirement, domains in found.items()}


def _revision(of: dict[str, dict[str, object]]) -> tuple[object, object]:
    return of["revision"]["epoch"], of["revision"]["number"]


def _judged(requirement: str, domains: dict[str, Blocks], n: int) -> Judged:
    figures, bounds, others = [], [], []
    least = 1.0 - (1.0 - CONFIDENCE) / len(domains)
    for label, blocks in domains.items():
        missed, came = np.array(list(blocks.values())).T
        drawn = _drawn(f"{requirement} {label}", len(blocks))
        ratios = np.sort(missed[drawn].sum(axis=1) / came[drawn].sum(axis=1))
        figures.append(1.0 - float(missed.sum() / came.sum()))
        bounds.append(1.0 - float(ratios[ceil(CONFIDENCE * RESAMPLES) - 1]))
        others.append(1.0 - float(ratios[RESAMPLES - ceil(least * RESAMPLES)]))
    return Judged(printed(min(figures)), printed(min(bounds)), n, printed(min(others)))


def _drawn(seed: str, blocks: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    key = int.from_bytes(sha256(f"{seed}/blocks".encode()).digest()[:16], "big")
    fractions = np.random.Generator(np.random.Philox(key=key)).random((RESAMPLES, blocks))
    return (fractions * blocks).astype(np.intp)
