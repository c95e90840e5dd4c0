"""Where the training generator draws its parameters from, and a region beside it that no training sees."""

from dataclasses import dataclass

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Region:
    """Ranges from which the parameters of hardware, jobs and troubles are drawn, uniformly.

    Attributes:
        noise: Relative noise of a sample.
        idle_power: Power of an idle accelerator over its highest.
        waiting_power: Power drawn above idle while an accelerator waits busily, over that at work.
        slowness: Speed of a slow node over its usual.
        exponent: By which power above idle follows the clock.
        coupling: Share of a step in which the others wait for a slow member.
        busy_waiting: Share of its waiting time in which an accelerator shows as utilised.
        pipe: Activity of the matrix pipe at work.
        utilisation: Utilisation at work.
        drift: Amplitude of slow changes of load.
        variation: Standard deviation between members of one family, lasting and passing.
        family: Members of a family.
        dwell: Seconds for which a trouble lasts.
    """

    noise: Range = (0.008, 0.06)
    idle_power: Range = (0.08, 0.32)
    waiting_power: Range = (0.1, 0.65)
    slowness: Range = (0.33, 0.87)
    exponent: Range = (0.8, 2.4)
    coupling: Range = (0.75, 1.0)
    busy_waiting: Range = (0.85, 1.0)
    pipe: Range = (0.12, 0.85)
    utilisation: Range = (0.6, 1.0)
    drift: Range = (0.0, 0.1)
    variation: Range = (0.0, 0.08)
    family: tuple[int, int] = (2, 33)
    dwell: Range = (9.0, 90.0)


TRAINING = Region()

HELD_OUT = Region(
    noise=(0.02, 0.05),
    idle_power=(0.32, 0.38),
    waiting_power=(0.65, 0.72),
    slowness=(0.4, 0.8),
    exponent=(0.6, 0.8),
    coupling=(0.95, 1.0),
    busy_waiting=(0.97, 1.0),
    pipe=(0.08, 0.12),
    utilisation=(0.9, 1.0),
    drift=(0.05, 0.13),
    variation=(0.04, 0.09),
    family=(4, 48),
    dwell=(12.0, 60.0),
)
"""Beyond the training region in power at idle and while waiting, in its exponent, in the pipe, in drift and variation
and in the size of families; within it elsewhere."""
