"""When the stages of a change may begin, so that over no window a job loses more than is allowed.

While a stage is carried out no step is made; once it is in force, more steps are made than before. What a window loses
is the pauses that lie in it, less what stages that are in force within it have gained. As long as each stage is
quicker than the one before, no window is worse than those that end with a pause: a later end has gained more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu.resilience.adjustment.law import Policy

TRUST = 0.9
"""Share of a stage's gain that is counted on."""

_SAME = 1e-12
"""Share of a window by which sums of pauses may be off."""

Lived = tuple[float, float, float]
"""Begin, end, and what is gained each second in between, as a share of the steps before; -1 in a pause."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One change of several.

    Attributes:
        policy: In force after it.
        pause_s: Seconds in which no step is made.
        rate: Steps a second after it, at the levels now.
        soon: The same at the levels that are ahead.
    """

    policy: Policy
    pause_s: float
    rate: float
    soon: float


@dataclass(frozen=True, slots=True)
class Rules:
    """What a job may lose.

    Attributes:
        window_s: Over which its speed is taken.
        allowance: Share of its steps over any window.
        changed_s: Seconds since its last change came into force, None where none ever did.
        past: Shares of the steps of now that it made a while ago, each with its begin and end in seconds from now, in
            the order of time.
    """

    window_s: float
    allowance: float
    changed_s: float | None = None
    past: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Timetable:
    """Stages with their begin.

    Attributes:
        stages: In their order.
        after_s: When each begins.
        loss: Share of a window's steps that is lost at worst.
        end_s: When the last one is in force.
    """

    stages: tuple[Stage, ...]
    after_s: tuple[float, ...]
    loss: float
    end_s: float

    def steps(self, rate: float, horizon_s: float) -> float:
        """Steps that are made until then at the levels that are ahead; ``rate`` is that of the policy before."""
        made, at = 0.0, 0.0
        for stage, begin in zip(self.stages, self.after_s, strict=True):
            made += rate * (min(begin, horizon_s) - at)
            at, rate = min(begin + stage.pause_s, horizon_s), stage.soon
        return made + rate * (horizon_s - at)


def timetable(stages: Sequence[Stage], rate: float, soon: float, rules: Rules) -> Timetable:
    """Begin each stage as soon as no window loses too much by it.

    Args:
        stages: In their order, each quicker than the one before.
        rate: Steps a second of the policy before, at the levels now.
        soon: The same at the levels that are ahead.
        rules: What may be lost.
    """
    window, may = rules.window_s, rules.allowance * rules.window_s
    lived = _before(rules)
    ready = max([0.0, *(end for _, end, _ in lived)])
    gain, worst, begins = 0.0, 0.0, []
    for stage in stages:
        begin = _begin(lived, ready, gain, stage.pause_s, window, may)
        end = begin + stage.pause_s
        lived += [(ready, begin, gain), (begin, end, -1.0)]
        worst = max(worst, _lost(lived, end - window, end) / window)
        begins.append(begin)
        ready, gain = end, TRUST * min(_gain(stage.rate, rate), _gain(stage.soon, soon))
    return Timetable(tuple(stages), tuple(begins), worst, ready)


def _before(rules: Rules) -> list[Lived]:
    """What counts of the time before: fewer steps, of which less may be lost, and what a late change has cost.

    Nobody tells what a change that came into force lately has cost; it is taken to be all that is allowed, at the end.
    """
    slow = [(begin, end, -rules.allowance * (1.0 - share)) for begin, end, share in rules.past]
    if rules.changed_s is None or rules.changed_s >= rules.window_s:
        return slow
    may = rules.allowance * rules.window_s
    high = -rules.changed_s if rules.changed_s > 0.0 else may  # on its way, it may go on for as long
    low = high - may
    earlier = [(begin, min(end, low), gain) for begin, end, gain in slow if begin < low]
    later = [(max(begin, high), end, gain) for begin, end, gain in slow if end > high]
    return [*earlier, (low, high, -1.0), *later]


def _gain(rate: float, before: float) -> float:
    """Steps gained each second, as a share of those before; as many as count where there were none."""
    return rate / before - 1.0 if before > 0.0 else 1.0


def _begin(lived: Sequence[Lived], ready: float, gain: float, pause: float, window: float, may: float) -> float:
    """The first instant at which a pause may begin; as soon as it can where waiting does not help.

    While it is waited for, the window that ends with the pause moves on: what the last stage gains comes in, and what
    was before goes out.
    """
    low = ready + pause - window
    over = min(pause, window) + _lost(lived, low, ready) - may - _SAME * window
    begin = ready
    if pause <= 0.0 or over <= 0.0 or low >= ready:
        return ready
    for ends, gone in _pieces(lived, low, ready):
        falls, lasts = gain - gone, ends - low
        if falls > 0.0 and over <= falls * lasts:
            return begin + over / falls
        over, begin, low = over - falls * lasts, begin + lasts, ends
    return ready


def _pieces(lived: Sequence[Lived], low: float, high: float) -> Iterator[tuple[float, float]]:
    """Where each piece of some time ends, and what is gained in it; nothing where nothing is known."""
    for begin, end, gain in lived:
        if end <= low:
            continue
        if begin > low:
            yield begin, 0.0
        yield end, gain
        low = end
    if low < high:
        yield high, 0.0


def _lost(lived: Sequence[Lived], low: float, high: float) -> float:
    """Seconds of the speed before that are lost over a window."""
    lost = 0.0
    for begin, end, gain in lived:
        if end > low and begin < high:
            lost -= gain * ((min(high, end)) - (max(low, begin)))
    return lost
