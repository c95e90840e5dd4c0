"""What candidates are worth by the rule, and what keeps others from harm: ``kuayu.scheduling.scoring`` row by row."""

from math import isfinite

from kuayu.scheduling.scoring import MARGIN, TIE_BREAK_PER_SECOND
from kuayu_conformance.testbed.scheduling.core.layout import INF, NONE
from kuayu_training.scheduling.core.layout import (
    BEGINS,
    CROWD,
    DOUBT,
    EXCHANGING,
    LOST,
    LOST_WEIGHT,
    MONEY,
    MOVING,
    RUNS,
    WAITS,
    WEIGHT_COMMUNICATION,
    WEIGHT_PERIOD,
    WEIGHT_UTILISATION,
    compiled,
)


@compiled
def score_of(r, row, waits, crowd):
    """What a candidate is worth by the rule, the less the better: ``Rule.scores`` with other waits and crowd."""
    rows, p = r.rows, r.parameters
    begins, runs = rows[row, BEGINS], rows[row, RUNS]
    if not isfinite(runs + begins):
        return INF
    total = p[WEIGHT_PERIOD] + p[WEIGHT_COMMUNICATION] + p[WEIGHT_UTILISATION]
    seconds = p[DOUBT] * waits + begins + runs
    period = seconds + crowd
    communication = p[MONEY] * (rows[row, MOVING] + rows[row, EXCHANGING])
    weighed = (
        p[WEIGHT_PERIOD] * period
        + p[WEIGHT_COMMUNICATION] * communication
        + p[WEIGHT_UTILISATION] * p[LOST_WEIGHT] * rows[row, LOST]
    )
    return weighed / (total if total != 0.0 else 1.0) + TIE_BREAK_PER_SECOND * seconds


@compiled
def waiting_second(r):
    """What a second of waiting adds to a score: ``Rule.waiting``."""
    p = r.parameters
    total = p[WEIGHT_PERIOD] + p[WEIGHT_COMMUNICATION] + p[WEIGHT_UTILISATION]
    return p[DOUBT] * (p[WEIGHT_PERIOD] / (total if total != 0.0 else 1.0) + TIE_BREAK_PER_SECOND)


@compiled
def guarded(r, chosen):
    """The candidate that is chosen, or the rule's best of those that are plainly better: ``dominance_filter``."""
    if chosen == NONE:
        return NONE
    best, least = NONE, INF
    own = r.rows[chosen]
    ends, money = own[WAITS] + own[BEGINS] + own[RUNS], own[MOVING] + own[EXCHANGING]
    for row in range(r.epoch[0].rows):
        other = r.rows[row]
        other_ends, other_money = other[WAITS] + other[BEGINS] + other[RUNS], other[MOVING] + other[EXCHANGING]
        if not isfinite(other_ends):
            continue
        no_worse = (
            other_ends <= ends
            and other_money <= money
            and other[WAITS] <= own[WAITS]
            and other[CROWD] <= own[CROWD]
            and other[LOST] <= own[LOST]
        )
        better = (
            other_ends < (1.0 - MARGIN) * ends
            or other_money < (1.0 - MARGIN) * money
            or other[WAITS] < (1.0 - MARGIN) * own[WAITS]
            or other[CROWD] < (1.0 - MARGIN) * own[CROWD]
            or other[LOST] < (1.0 - MARGIN) * own[LOST]
        )
        if no_worse and better:
            score = score_of(r, row, other[WAITS], other[CROWD])
            if best == NONE or score < least:
                best, least = row, score
    return chosen if best == NONE else best
