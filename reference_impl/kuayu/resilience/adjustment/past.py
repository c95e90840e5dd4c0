"""How fast a job was a short while ago by the policy that is in force, when loads were others."""

from kuayu.resilience.adjustment.scene import Running

PIECES = 8
"""Of a window that are looked at."""


def past(job: Running, window_s: float) -> tuple[tuple[float, float, float], ...]:
    """Shares of the steps of now that a job made over the last window, or would have made; one where it made more.

    Returns:
        Begin and end in seconds from now, and the share; in the order of time, as far back as loads were measured.
    """
    rate, pace = job.now.rate(job.policy), job.now.pace(job.policy.way)
    lasts, found = window_s / PIECES, []
    for piece in range(PIECES):
        back = int((piece + 0.5) * lasts / job.interval_s) + 1
        if rate <= 0.0 or any(back > len(loads) for loads in job.measured):
            break
        step_s = job.now.at([loads[-back] for loads in job.measured]).step_s(job.policy.parts)
        found.append((-(piece + 1) * lasts, -piece * lasts, min(1.0, pace.rate(step_s) / rate)))
    return tuple(reversed(found))
