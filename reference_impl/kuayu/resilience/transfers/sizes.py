"""How large the shards of a stream are: small ones spend time on requests, large ones are caught by what links do.

Of a shard of ``s`` bytes over a link of ``B`` bytes a second that takes ``l`` seconds for a request and changes ``c``
times a second, the share ``l · B / s`` of the link's time goes to requests, and the share ``c · s / (2 B)`` of its
bytes is half-way when the link changes. The sum is least at ``B · √(2 l / c)``; it is the trade of J. W. Young, "A
first order approximation to the optimum checkpoint interval", CACM 17 (1974), with requests for checkpoints. No shard
takes longer than a step, since nothing more urgent passes it on its link, nor is it larger than what lets every source
have two within the depth, so that none idles while another fetches the last one.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.layout import Layout
from kuayu.resilience.transfers.scene import Floats, Scene, Whole

PARTS = 2.0 ** np.arange(-4, 6)
"""Sizes that are looked at, in steps."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Sizes, and what they and their neighbours cost.

    Attributes:
        bytes: Of a shard of each stream, (J,).
        cost: Share of the links' time that goes to requests and to what is caught half-way, at each of ``PARTS``,
            (J, PARTS).
        part: Place of the size among ``PARTS``, (J,).
    """

    bytes: Floats
    cost: Floats
    part: Whole


def sizes(scene: Scene, its: Layout, depth: Whole) -> Sizes:
    """Choose sizes for all streams."""
    step_bytes = np.array([stream.step_bytes for stream in scene.streams])
    held = its.copies
    many = np.maximum(held.sum(axis=1), 1)
    rate, latency, changes = (
        np.where(held, each[its.of], 0.0).sum(axis=1) / many for each in (its.expected, its.latency_s, its.changes)
    )
    asked = step_bytes[:, None] * PARTS
    rate = np.maximum(rate, 1.0)[:, None]
    cost = (latency[:, None] * rate) / asked + changes[:, None] * asked / (2.0 * rate)
    step_s = np.array([stream.step_s for stream in scene.streams])
    limit = np.minimum(np.maximum(depth, 1) * step_bytes / (2.0 * many), rate[:, 0] * step_s)
    allowed = asked <= limit[:, None]
    allowed[:, 0] = True
    part = np.argmin(np.where(allowed, cost, np.inf), axis=1)
    return Sizes(step_bytes * PARTS[part], cost, part)
