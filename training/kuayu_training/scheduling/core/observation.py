"""What is asked of whoever learns: ``scheduling.observation``, and the memory of ``scheduling.driver``."""

from math import isfinite, log, log1p, log2

import numpy as np

from kuayu_conformance.testbed.scheduling.core.layout import INF, NONE
from kuayu_training.scheduling.core.layout import (
    BEGINS,
    CROWD,
    DEVICES,
    EXCHANGING,
    LOST,
    MOVING,
    NO_QUESTION,
    QUESTION,
    RUNS,
    WAITS,
    compiled,
)
from kuayu_training.scheduling.observation import BOUND, FLOOR, LIMIT, MAX_CANDIDATES, SEEN

_MONEY = 100.0
ASKED_AGAIN, MIN_REGRET_GAIN = 1800.0, 0.02
"""As ``driver.ASKED_AGAIN`` and ``driver.MIN_REGRET_GAIN``."""
LEADING = 2
"""Columns before those that are seen: presence and regret."""
COLUMNS = LEADING + len(SEEN)


@compiled
def pose(w, r, job):
    """See the candidates of the job at hand; ``QUESTION`` where there is a choice, one of which could be taken now.

    A job that has chosen to wait goes on waiting until there is something better, or half an hour has passed.
    """
    e, now = r.epoch[0], w.clock[0].now
    free = see(w, r, job)
    if e.seen < 2 or not free:
        return NO_QUESTION
    least, first_later = regret_of_free(r), NONE
    for place in range(e.seen - 1, -1, -1):
        if not r.now[r.question_rows[place]]:
            first_later = place
    group = r.group[job]
    if now < r.waiting_until[group] and least >= r.refused[group] - MIN_REGRET_GAIN:
        prefer(r, max(first_later, 0))
        return NO_QUESTION
    e.questions += 1
    return QUESTION


@compiled
def take_answer(w, r, job):
    """The candidate that was answered; one that is not there stands for the first."""
    e = r.epoch[0]
    taken = e.answer if 0 <= e.answer < e.seen else 0
    if not r.now[r.question_rows[taken]]:
        group = r.group[job]
        r.waiting_until[group], r.refused[group] = w.clock[0].now + ASKED_AGAIN, regret_of_free(r)
    prefer(r, taken)
    return e.chosen


@compiled
def prefer(r, taken):
    """A row of the question is chosen: its score becomes the least."""
    e = r.epoch[0]
    e.chosen = r.question_rows[taken]
    r.score[e.chosen] = r.score[r.question_rows[0]] - 1.0


@compiled
def regret_of_free(r):
    """The least regret of candidates that could be taken now."""
    least = INF
    for place in range(r.epoch[0].seen):
        if r.now[r.question_rows[place]]:
            least = min(least, float(r.question[place, 1]))
    return least


@compiled
def see(w, r, job):
    """Rows of the question: the best candidates by the rule, first; whether one could be taken now."""
    e, rows, question = r.epoch[0], r.question_rows, r.question
    n = 0
    for row in range(e.rows):
        score = r.score[row]
        if n == MAX_CANDIDATES and not score < r.score[rows[n - 1]]:
            continue
        place = min(n, MAX_CANDIDATES - 1)
        while place > 0 and r.score[rows[place - 1]] > score:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row
        n = min(n + 1, MAX_CANDIDATES)
    finite, length = 0, INF
    for place in range(n):
        features = r.rows[rows[place]]
        if isfinite(r.score[rows[place]]) and isfinite(features[WAITS]):
            length = min(length, features[WAITS] + features[BEGINS] + features[RUNS])
            rows[finite] = rows[place]
            finite += 1
    length = max(length, FLOOR) if finite else FLOOR
    n = 0
    for place in range(finite):
        if (r.score[rows[place]] - r.score[rows[0]]) / length <= LIMIT:
            rows[n] = rows[place]
            n += 1
    free = 0
    for place in range(n):
        free += r.now[rows[place]]
    e.seen = n
    if n < 2 or free == 0:
        return False
    j = w.jobs[job]
    size, age = max(float(j.requested), 1.0), w.clock[0].now - j.submitted
    question[:] = 0.0
    for place in range(n):
        row = rows[place]
        features, to = r.rows[row], question[place]
        regret = (r.score[row] - r.score[rows[0]]) / length
        to[0], to[1] = 1.0, regret
        seen = to[LEADING:]
        seen[0] = 1.0 if features[WAITS] <= 0.0 else 0.0
        seen[1] = clip(features[WAITS] / length)
        seen[2] = clip(log1p(features[WAITS] / FLOOR))
        seen[3] = clip(features[BEGINS] / length)
        seen[4] = clip(features[RUNS] / length)
        seen[5] = clip(_MONEY * features[MOVING] / length)
        seen[6] = clip(_MONEY * features[EXCHANGING] / length)
        seen[7] = clip(features[CROWD] / length)
        seen[8] = clip(features[LOST] / (size * length))
        seen[9] = clip(log2(max(features[DEVICES], 1.0) / size))
        seen[10] = clip(log(length / 3600.0))
        seen[11] = clip(log2(size) / 4.0)
        seen[12] = clip(log1p(age / length))
        seen[13] = clip(np.float64(np.float32(regret)) / LIMIT)
        seen[14] = free / n
    return True


@compiled
def clip(value):
    """Nothing that is seen is farther from zero than ``BOUND``."""
    return min(max(value, -BOUND), BOUND)
