"""Energy counters of devices in joules, without the wrapping of the counters beneath."""

import time
from collections.abc import Callable
from functools import partial

from kuayu.engine.counters import Counters
from kuayu.engine.host import Host
from kuayu.engine.processor import DEVICE_ID

Joules = Callable[[], float | None]
"""Energy that the device has used since some moment, in joules; None where it cannot be known."""


def energy(host: Host, device: str) -> Joules:
    """Energy counter of the device of that name: an accelerator of ``host``, or its processors."""
    if host.nvidia is not None and device != DEVICE_ID:
        return partial(host.nvidia.joules, device)
    meter, counters, total = host.processor.energy, Counters(host.processor.energy.spans), 0.0

    def joules() -> float | None:
        nonlocal total
        readings = meter.read()
        growth = counters.step(time.monotonic(), readings)
        total += growth.amount if growth else 0.0
        return total if readings else None

    return joules
