"""A small chooser of collectives that keeps to the text, for stories about the checks; it may be told to err.

It goes through what was measured since the collective came into use, adds up what each other one would have saved, and
switches when one has saved what a switch costs.
"""

from collections.abc import Callable

import numpy as np
from conforming import FunctionSource
from conforming import episode as episode_of
from numpy.typing import NDArray

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.collectives import METHODS, Method, Setting, best, rate, turned

METHOD = {"name": "conforming", "version": "1"}
LAST = 4
"""Measurements whose mean is expected to go on."""

Change = Callable[[Json, Json], Json]
"""What becomes of an answer: request, answer."""
Floats = NDArray[np.float64]


def unchanged(body: Json, answer: Json) -> Json:
    """The conforming answer."""
    del body
    return answer


def choose(body: Json) -> Json:
    """The conforming answer to a request."""
    names = body["domains"]
    setting, measured = _read(body)
    recent = measured[-LAST:].mean(axis=0, keepdims=True)
    others = [(method, best(setting, recent, method)[1][0].tolist()) for method in METHODS]
    expected = [float(rate(setting, recent, method, tuple(order))[0]) for method, order in others]
    method, order = others[int(np.argmax(expected))]
    used = body.get("in_use")
    if used:
        now = Method(used["collective"], used["period"]), [names.index(name) for name in used["order"]]
        method, order = _kept(body, setting, measured, now, others, expected)
    rows = [
        {"collective": each.collective, "period": each.period, "rate": value}
        for (each, _), value in zip(others, expected, strict=True)
        if each != method
    ]
    stays = float(rate(setting, recent, method, tuple(order))[0])
    return {
        "revision": body["revision"],
        "method": METHOD,
        "collective": method.collective,
        "period": method.period,
        "order": [names[place] for place in order],
        "switched": bool(used) and (method != now[0] or turned(order) != turned(now[1])),
        "candidates": [{"collective": method.collective, "period": method.period, "rate": stays}, *rows],
    }


def _kept(
    body: Json,
    setting: Setting,
    measured: Floats,
    now: tuple[Method, list[int]],
    others: list[tuple[Method, list[int]]],
    expected: list[float],
) -> tuple[Method, list[int]]:
    """What is in use, or what has saved a switch against it and is expected to be quicker."""
    since = measured[-max(1, min(len(measured), round(body["in_use"]["since"] / body["interval"]))) :]
    mine = rate(setting, since, now[0], tuple(now[1]))
    theirs = np.stack([rate(setting, since, method, tuple(order)) for method, order in others])
    saved = np.zeros(len(others))
    for gain in ((theirs - mine) / np.maximum(theirs, mine)).T:
        saved = np.maximum(0.0, saved + body["interval"] * gain)
    goes = float(rate(setting, measured[-LAST:].mean(axis=0, keepdims=True), now[0], tuple(now[1]))[0])
    worth = [place for place in range(len(others)) if saved[place] >= body["switch_time"] and expected[place] > goes]
    return others[max(worth, key=expected.__getitem__)] if worth else now


def _read(body: Json) -> tuple[Setting, Floats]:
    """The setting of a request, and what was measured, ``(T, D, D)``."""
    names = body["domains"]
    length = max((len(link["bandwidths"]) for link in body["links"]), default=1)
    latency, measured = np.zeros((len(names),) * 2), np.zeros((length, len(names), len(names)))
    for link in body["links"]:
        one, other = names.index(link["source"]), names.index(link["target"])
        latency[one, other] = link["latency"]
        measured[:, one, other] = link["bandwidths"]
    scalars = [body[name] for name in ("nodes", "node_bandwidth", "node_latency", "exchange", "step_time")]
    return Setting(latency, *scalars), measured


def source(change: Change = unchanged, first: Callable[[Json], Json] = choose) -> FunctionSource:
    """The chooser, of whose answers something becomes."""
    return FunctionSource(lambda _path, body: change(body, first(body)))


def episode(change: Change = unchanged, first: Callable[[Json], Json] = choose, nonce: str = "stories") -> Episode:
    """An episode with the chooser."""
    return episode_of("res_collectives", source(change, first), nonce=nonce)
