"""Features of the nodes: own ones from a node's samples, and those that compare it with its family and domain.

All are near the range −2 … 2, nought where they cannot be told, with shape (features, nodes), float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import baselines as usual
from kuayu.perception.recognition.baselines import Baselines
from kuayu.perception.recognition.groups import Groups
from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.perception.recognition.values import SIGNALS, Flags, Floats, Instants, Places, Telemetry

LEVELS = ("utilisation", "pipe", "memory pipe", "dynamic power", "memory", "flow", "storage")
CHANNEL_NAMES = ("utilisation", "pipe", "memory pipe", "power", "flow", "storage")
EFFICIENCIES = ("pipe per utilisation", "memory pipe per utilisation", "power per utilisation")

OWN = (
    *(f"level of {name}" for name in LEVELS),
    *(f"usual of {name}" for name in (*CHANNEL_NAMES, *EFFICIENCIES)),
    *(f"sudden in {name}" for name in CHANNEL_NAMES),
    *(f"recent in {name}" for name in CHANNEL_NAMES),
    "usual of memory",
    "faults now",
    "faults of seconds",
    "faults of a minute",
    "samples with faults in a minute",
    "utilisation stands still",
    "power stands still",
    "allocatable share",
    "allocatable share lost",
    "device share",
    "noise of utilisation",
    "noise of power",
    "samples at work",
    *(f"has {name}" for name in (*LEVELS, "allocatable share", "device share")),
    "in a family",
)
"""Names of a node's own features."""

COMPARED = (
    *(OWN.index(f"level of {name}") for name in ("utilisation", "pipe", "dynamic power", "memory")),
    *(OWN.index(f"usual of {name}") for name in ("utilisation", "pipe", "memory pipe", "power", "flow")),
    OWN.index("usual of power per utilisation"),
    OWN.index("sudden in power"),
    OWN.index("sudden in utilisation"),
)
"""Own features that are compared with the median of the family."""

RELATED = (
    *(f"family's {OWN[place]}" for place in COMPARED),
    *(f"{OWN[place]} beside family" for place in COMPARED),
    "family at work",
    "family missing",
    "most missing in family",
    "faults in family",
    "size of family",
    "power beside domain",
    "utilisation beside domain",
    "missing",
)
"""Names of the features that need other nodes."""

FLOORS = np.array([0.02, 0.01, 0.01, 1.0, 1e6, 1e5], np.float32)[:, None]
"""Values of the six signals that count as nothing."""

IDLE_UTILISATION = 0.04
"""Utilisation below which no accelerator works: what monitoring and drivers make."""

WORKS_AT, WORKS_AT_PIPE, WORKS_AT_POWER = 0.1, 0.05, 0.15
"""Utilisation, activity of the matrix pipe and dynamic power above which the baselines count a sample as work."""

NEARLY_SILENT = 0.6
"""Part of the way to silence at which a node counts as missing in its family."""

WIDEST = 2.5
"""Largest difference of logarithms that is told apart."""

LARGEST = 8.0
"""Largest feature; what is beyond is no telemetry but a mistake."""

_PLACE = {name: place for place, name in enumerate(SIGNALS)}


@dataclass(slots=True)
class _History:
    observed: Annotated[Instants, Column(np.nan, np.float64)]
    utilisation: Annotated[Floats, Column(np.nan)]
    power: Annotated[Floats, Column(np.nan)]
    still: Annotated[Floats, Column(0.0, np.float32, 2)]
    faults: Annotated[Floats, Column(0.0, np.float32, 3)]


class Tracker:
    """Keeps what is usual for each node, and makes its own features from each fresh sample."""

    def __init__(self, nodes: int) -> None:
        self._baselines = blank(Baselines, nodes)
        self._history = blank(_History, nodes)
        self._features = np.zeros((len(OWN), nodes), np.float32)
        self._made = np.empty_like(self._features)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._baselines = rearranged(self._baselines, origin)
        self._history = rearranged(self._history, origin)
        self._features = np.where(origin >= 0, self._features[:, origin], np.float32(0.0))
        self._made = np.empty_like(self._features)

    def update(self, telemetry: Telemetry, related: Flags) -> Floats:
        """Own features of all nodes, in place; those without a fresh sample stay as they were.

        Args:
            telemetry: The newest samples.
            related: Whether each node is in a family.
        """
        held, fresh = self._baselines, telemetry.fresh
        values = np.ascontiguousarray(telemetry.values.T, np.float32)
        step = self._steps(telemetry)
        signals, power, memory = _signals(values), values[_PLACE["power"]], values[_PLACE["accelerator_memory_used"]]
        usual.learn_power(held, power, step, fresh)
        dynamic = usual.dynamic_share(held, power)
        logs = _logs(signals, dynamic)
        working = _works(signals, dynamic)
        self._count(values[_PLACE["faults"]], signals, step, fresh)
        share = values[_PLACE["allocatable_share"]]
        lost = np.where(working, held.share, held.share_idle) - share
        most_memory = np.fmax(held.most_memory, memory)
        levels = [
            *signals[:3],
            dynamic,
            memory / np.maximum(most_memory, 1.0),
            0.1 * (logs[usual.FLOW] - np.log(FLOORS[usual.FLOW])),
            0.1 * (logs[usual.STORAGE] - np.log(FLOORS[usual.STORAGE])),
        ]
        devices = values[_PLACE["device_share"]]
        made = _put(
            self._made,
            [
                *levels,
                np.clip(logs - held.usual, -WIDEST, WIDEST),
                np.clip(logs[: usual.SIGNAL_CHANNELS] - held.short, -WIDEST, WIDEST),
                np.clip(logs[: usual.SIGNAL_CHANNELS] - held.medium, -WIDEST, WIDEST),
                np.clip(np.log(np.maximum(memory, 1.0) / np.maximum(held.memory, 1.0)), -WIDEST, WIDEST),
                np.log1p(np.nan_to_num(values[_PLACE["faults"]])),
                np.log1p(self._history.faults),
                np.log1p(np.minimum(self._history.still, 20)) / 2,
                share,
                lost,
                devices - 1,
                10 * held.noise,
                np.log1p(held.counted) / 3,
                *(~np.isnan(each) for each in levels),
                ~np.isnan(share),
                ~np.isnan(devices),
                related,
            ],
        )
        np.copyto(made, 0, where=np.isnan(made))
        np.clip(made, -LARGEST, LARGEST, out=made)
        np.copyto(self._features, made, where=fresh)
        usual.learn(held, logs, memory, step, fresh, working)
        usual.learn_share(held, share, step, fresh, working)
        return self._features

    def _steps(self, telemetry: Telemetry) -> Floats:
        """Seconds since the sample before, for fresh rows."""
        held = self._history
        step = np.nan_to_num(telemetry.observed - held.observed, nan=1.0)
        np.copyto(held.observed, telemetry.observed, where=telemetry.fresh)
        return np.clip(step, 0.05, 120.0).astype(np.float32)

    def _count(self, faults: Floats, signals: Floats, step: Floats, fresh: Flags) -> None:
        """Count faults, and samples in which utilisation or power stand exactly where they stood."""
        held = self._history
        seen = np.where(fresh, np.nan_to_num(faults), np.float32(0.0))
        elapsed = np.where(fresh, step, np.float32(0.0))
        held.faults *= np.exp(-elapsed / np.array([[8.0], [60.0], [60.0]], np.float32))
        held.faults += np.stack([seen, seen, np.minimum(seen, 1)])
        for row, (before, now) in enumerate(
            ((held.utilisation, signals[usual.UTILISATION]), (held.power, signals[usual.POWER]))
        ):
            held.still[row] = np.where(fresh, np.where(before == now, held.still[row] + 1, 0), held.still[row])
            np.copyto(before, now, where=fresh)


def relate(own: Floats, missing: Floats, answers: Flags, families: Groups, domains: Groups, out: Floats) -> None:
    """Features that compare each node with its family and domain, (features, nodes).

    Args:
        own: Own features, (features, nodes).
        missing: How far each node is on the way to be silent.
        answers: Whether it has been heard and is not silent.
        families: Groups of nodes that work together.
        domains: Groups of nodes of a domain.
        out: Where they are put, (features, nodes).
    """
    missing = np.minimum(missing, 2.0)
    compared = own[list(COMPARED)]
    middle = families.median(np.where(answers, compared, np.float32(np.nan)))
    np.nan_to_num(middle, copy=False)
    usual_of_family = families.back(middle)
    faults = own[OWN.index("faults of seconds")]
    works = (own[OWN.index("level of utilisation")] > IDLE_UTILISATION) & answers
    together = families.mean(np.stack([works, missing > NEARLY_SILENT, faults]).astype(np.float32))
    size = 0.3 * np.log(families.sizes).astype(np.float32)
    most = families.maximum(missing[None])[0]
    of_family = families.back(np.vstack([together[:2], most, np.log1p(together[2] * families.sizes), size]))
    in_family = families.share > 0
    places = [OWN.index("level of dynamic power"), OWN.index("level of utilisation")]
    working = np.where(works, own[places], np.float32(np.nan))
    beside = own[places] - domains.back(domains.median(working))
    _put(
        out,
        [
            usual_of_family,
            np.where(in_family, compared - usual_of_family, np.float32(0.0)),
            of_family,
            np.nan_to_num(beside),
            missing,
        ],
    )


def _put(out: Floats, rows: Sequence[NDArray[Any]]) -> Floats:
    """Put rows and blocks of rows one below the other; memory that is used again costs far less than new one."""
    return np.concatenate([np.atleast_2d(each) for each in rows], out=out)


def _signals(values: Floats) -> Floats:
    """The six signals, (6, nodes); a flow is the mean of what is known of its two ways."""
    sent, received = values[_PLACE["scale_out_transmit_flow"]], values[_PLACE["scale_out_receive_flow"]]
    both = np.where(np.isnan(sent), received, np.where(np.isnan(received), sent, 0.5 * (sent + received)))
    names = ("accelerator_utilisation", "matrix_pipe_activity", "memory_bandwidth_utilisation", "power")
    return np.stack([*(values[_PLACE[name]] for name in names), both, values[_PLACE["storage_read_flow"]]])


def _logs(signals: Floats, dynamic: Floats) -> Floats:
    """Logarithms of all channels, (9, nodes); what is for each unit of utilisation only where there is some."""
    logs = np.log(np.maximum(signals, FLOORS))
    busy = np.where(signals[0] > WORKS_AT, logs[0], np.float32(np.nan))
    dynamic = np.log(np.maximum(dynamic, np.float32(0.02)))
    return np.vstack([logs, logs[1] - busy, logs[2] - busy, dynamic - busy])


def _works(signals: Floats, dynamic: Floats) -> Flags:
    """Whether accelerators work, by the first of utilisation, pipe and power that is known."""
    by_pipe = np.where(np.isnan(signals[1]), dynamic > WORKS_AT_POWER, signals[1] > WORKS_AT_PIPE)
    return np.where(np.isnan(signals[0]), by_pipe, signals[0] > WORKS_AT)
