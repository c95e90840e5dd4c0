"""What the compiled rule consists of beside the world that it decides in: constants, tables, and arrays to work with.

1. ``PARAMETERS`` are the constants of the rule, by the names of the modules of ``kuayu.scheduling`` that hold them; an
   array of them is part of the tables, so that each episode may have others.
2. ``Tables`` is a tuple of arrays, as ``core.layout.State`` of the suite is; compiled functions are given a handle of
   it. They lengthen nothing: what may be too short is made anew in a longer array before an epoch is decided.
3. ``compiled`` is how everything here is compiled.

SI units: seconds, bits a second, bytes; work in device seconds of the reference device. Numbers of jobs, pools, domains
and data sets are those of the world.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kuayu.scheduling import candidates, preemption, scheduler
from kuayu.scheduling.scheduler import QueuePolicy
from kuayu.scheduling.scoring import OWN, Rule
from kuayu.scheduling.throughput import penalty as _penalty
from kuayu_conformance.testbed.scheduling.law import penalty as law_penalty

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Records = NDArray[Any]

compiled = njit(cache=True, error_model="numpy")
"""As NumPy does, a division by zero yields an infinite number or none."""

_QUEUE, _RULE = QueuePolicy(), Rule()

PARAMETERS: dict[str, float] = {
    "money": _RULE.money,
    "lost": _RULE.lost,
    "doubt": _RULE.doubt,
    "weight_period": OWN.period,
    "weight_communication": OWN.communication,
    "weight_utilisation": OWN.utilisation,
    "area": _QUEUE.area,
    "ageing": _QUEUE.ageing,
    "patience": _QUEUE.patience,
    "least": _QUEUE.least,
    "reservations": _QUEUE.reservations,
    "eager": _QUEUE.eager,
    "gang": _QUEUE.gang,
    "looked_at": scheduler.LOOKED_AT,
    "booked": scheduler.BOOKED,
    "shrunk": candidates.SHRUNK,
    "mode_money": candidates.MONEY,
    "max_pause_share": preemption.MAX_PAUSE_SHARE,
    "max_saving_seconds": preemption.MAX_SAVING_SECONDS,
    "min_remaining_ratio": preemption.MIN_REMAINING_RATIO,
    "pause_weight": preemption.PAUSE_WEIGHT,
    "lower_priority_weight": preemption.LOWER_PRIORITY_WEIGHT,
    "interruption_seconds": preemption.INTERRUPTION_SECONDS,
    "min_score_gain": preemption.MIN_SCORE_GAIN,
    "max_tries": preemption.MAX_TRIES,
    "min_undisturbed_seconds": preemption.MIN_UNDISTURBED_SECONDS,
    "max_pause_per_undisturbed": preemption.MAX_PAUSE_PER_UNDISTURBED,
    "max_migration_pause_share": preemption.MAX_MIGRATION_PAUSE_SHARE,
    "min_gain_share": preemption.MIN_GAIN_SHARE,
    "min_gain_per_pause": preemption.MIN_GAIN_PER_PAUSE,
    "gain_horizon_seconds": preemption.GAIN_HORIZON_SECONDS,
    "expected_arrivals_share": preemption.EXPECTED_ARRIVALS_SHARE,
    "max_scale_down_pause_share": preemption.MAX_SCALE_DOWN_PAUSE_SHARE,
    "max_slowdown": preemption.MAX_SLOWDOWN,
    "min_freed_per_pause": preemption.MIN_FREED_PER_PAUSE,
}
"""Constants of the rule by name, as they ship; where they are explained: ``scoring.Rule``, ``scheduler.QueuePolicy``,
``scheduler``, ``candidates`` and ``preemption`` of ``kuayu.scheduling``, by the same words."""

(
    MONEY,
    LOST_WEIGHT,
    DOUBT,
    WEIGHT_PERIOD,
    WEIGHT_COMMUNICATION,
    WEIGHT_UTILISATION,
    AREA,
    AGEING,
    PATIENCE,
    MIN_LENGTH,
    RESERVATIONS,
    EAGER,
    GANG,
    LOOKED_AT,
    BOOKED,
    SHRUNK,
    MODE_MONEY,
    MAX_PAUSE_SHARE,
    MAX_SAVING_SECONDS,
    MIN_REMAINING_RATIO,
    PAUSE_WEIGHT,
    LOWER_PRIORITY_WEIGHT,
    INTERRUPTION_SECONDS,
    MIN_SCORE_GAIN,
    MAX_TRIES,
    MIN_UNDISTURBED_SECONDS,
    MAX_PAUSE_PER_UNDISTURBED,
    MAX_MIGRATION_PAUSE_SHARE,
    MIN_GAIN_SHARE,
    MIN_GAIN_PER_PAUSE,
    GAIN_HORIZON_SECONDS,
    EXPECTED_ARRIVALS_SHARE,
    MAX_SCALE_DOWN_PAUSE_SHARE,
    MAX_SLOWDOWN,
    MIN_FREED_PER_PAUSE,
) = range(len(PARAMETERS))
"""Places of the constants in their array."""

MAX_RESERVATIONS, MAX_LOOKED_AT = 64, 400
"""Reservations, and jobs looked at in an epoch, for which there is room; constants beyond them count as these."""

WAITS, BEGINS, RUNS, MOVING, EXCHANGING, DEVICES, CROWD, LOST, INDEX = range(9)
"""Columns of what is found of each candidate, as ``scoring.FEATURES``; and the mean compute index of its devices."""

PERIODS = np.array(candidates.PERIODS, dtype=np.int64)
LEVELS = 8
"""Shares of devices kept busy that are told apart."""

START, MOVE, STOP = range(3)
"""Kinds of orders: a waiting job starts; a running job goes on elsewhere, or on other devices where it is, or stops."""

NO_QUESTION, QUESTION = range(2)

EPOCH = np.dtype(
    [
        ("stamp", "i8"),  # number of the epoch
        ("open", "i8"),  # whether it is being decided; whether a question is open in it
        ("midway", "i8"),
        ("asking", "i8"),  # whether questions are asked
        ("answer", "i8"),
        ("waiting", "i8"),  # jobs that wait, and jobs with devices
        ("running", "i8"),
        ("shares", "i8"),
        ("ending", "i8"),  # jobs in ``by_end``
        ("ordered", "i8"),  # jobs in ``order``; how many of them are looked at, and which is next
        ("looked", "i8"),
        ("place", "i8"),
        ("starts", "i8"),
        ("waits", "i8"),  # jobs that were found to wait
        ("reserved", "i8"),
        ("tries", "i8"),
        ("width", "i8"),  # of rows of ``when`` in use
        ("reachable", "i8"),  # devices that work where somebody can be reached; and everywhere
        ("devices", "i8"),
        ("rows", "i8"),  # candidates of the job at hand; the one that is chosen
        ("chosen", "i8"),
        ("elsewhere", "i8"),  # running jobs that can be changed; -1 before they are looked for
        ("options", "i8"),  # options of victims; -1 before they are looked for
        ("victims", "i8"),
        ("choices", "i8"),  # times that victims were chosen
        ("highest", "i8"),  # priority of those who wait
        ("priorities", "i8"),  # how many different ones those have who can be changed
        ("moves", "i8"),  # running jobs that go on elsewhere; of these, for others
        ("orders", "i8"),
        ("valued", "i8"),  # whether values of devices are found
        ("seen", "i8"),  # candidates of a question
        ("idle_revision", "i8"),
        ("idle_until", "f8"),
        ("factor", "f8"),  # of tariffs
        ("counted", "f8"),  # until when seconds that jobs are there are summed up: of all jobs, and of large ones
        ("present", "f8"),
        ("present_large", "f8"),
        ("spent", "f8"),
        ("spent_large", "f8"),
        ("start", "f8"),  # when victims give back their devices; what they lose
        ("lost", "f8"),
        ("decisions", "i8"),  # sums: epochs decided, jobs looked at, questions asked, orders that were refused
        ("attempts", "i8"),
        ("questions", "i8"),
        ("refusals", "i8"),
        ("candidates", "i8"),
        ("steps", "i8"),  # epochs, those included in which nothing had changed
    ],
    align=True,
)
OPTION = np.dtype(
    [
        ("row", "i8"),
        ("pool", "i8"),
        ("devices", "i8"),
        ("freed", "i8"),
        ("priority", "i8"),
        ("left", "f8"),
        ("pause", "f8"),
        ("slower", "f8"),
        ("cost", "f8"),
        ("lost", "f8"),  # for the job at hand; infinite where it cannot be preempted for that
    ],
    align=True,
)
"""How a running job could be preempted, as ``preemption.VictimOptions``."""


class Tables(NamedTuple):
    """What the compiled rule knows and works with.

    Sizes: jobs J, accelerators T, pools P, domains S, data sets D, profiles F, classes of jobs C, running jobs R,
    candidates K, orders O.

    Attributes:
        epoch: (1,) of ``EPOCH``.
        parameters: (35,) constants in the order of ``PARAMETERS``.
        shipped: (35,) the same as they ship; a network's doublings are of these.
        network: Weights of the network that sets constants (``core.network``); empty where none does.
        seen: (10,) what that sees.
        penalty: (2, S + 1, periods) times as many steps as a split takes: as the rule and as the world reckon.
        job_index: (J, T) index of each accelerator for each job; zero where it cannot run.
        best: (J,) the largest of them.
        kind: (J,) class: jobs of one class have the same index everywhere.
        kind_index: (C, T).
        modes: (J, 4) whether it may be spread like that.
        group: (J,) number that jobs of one size that were submitted in one second share; ``large``: (J,).
        used: (J,) share of the requested devices that is kept busy, one before it was seen; ``measured``: (J,) whether.
        done, left: (J,) work done and before it, of jobs that wait or run.
        order: (J,) waiting jobs in the order in which they are tried; ``key``, ``overdue``: (J,) what they go by;
            ``listed``: (J,) whether one is in ``order``, and still waits.
        by_end, row_of_running: (J,) jobs with devices, by when they give them back; and the place of each among those
            with devices, -1 but while they are put in order.
        running: (R,) jobs with devices; ``rate``, ``ready``, ``ends``, ``mode``, ``saving``: (R,) as
            ``state.Holdings``; ``share_first``, ``share_count``: (R,) shares of each.
        share_of, share_pool, share_devices: (R × S,) by share: place of its holder, and what it holds.
        row_of, row_pool, row_devices, row_left: (R,) running jobs that can be changed,
            as ``preemption.ChangeableJobs``;
            ``row_longer``: (R,) how many times as long each takes as on what it asked for; ``row_undisturbed``: (R,).
        gone: (R,) whether one of these was told to go.
        priorities: (R,) those of these, each once, ascending.
        reach: (S,) whether a domain can be reached; ``pace``: (S,).
        available, tariff: (S, S) bits a second that one more flow may hope for, money for a bit.
        staged: (D,) epoch for which ``stage_seconds``, ``stage_money`` (D, S) hold; ``coming_of``, ``coming`` likewise.
        chances: (F, 8) how many jobs of a profile keep how many of their devices busy.
        pool_site, pool_type: (P,).
        devices, reported: (P,) devices that work, and free ones, as reported.
        free, base_free: (P,) free devices that may be counted upon: those that are left, and those that were at first.
        when: (P, …) when each device is free, in order.
        value: (P,); ``mean``: (C,) mean index; ``weight``, ``head``: (C,) sums over jobs of a class.
        reserved_count: (P,); ``reserved_start``, ``reserved_extra``: (P, 64) reservations.
        wanted: (P,) devices that those who wait would take.
        rows: (K, 9) of candidates; ``row_pools``, ``row_shares``: (K, S) what they hold; ``row_count``, ``row_mode``,
            ``row_period``: (K,); ``now``: (K,) whether each could be taken now; ``score``: (K,).
        options: Of ``OPTION``; ``option_begin``, ``option_count``: (P,), -1 before they are found; ``option_free``:
            (P,) what was free when they were looked for.
        victims, victim_devices: (R,) options of those who are preempted, and on how many devices each goes on.
        moves: (5, R) job, pool, devices, whether it stays, whether somebody else needs it.
        order_kind, order_job, order_count, order_mode, order_period: (O,); ``order_pools``, ``order_devices``: (O, S).
        waiting_until, refused: (J,) by group: until when a job that chose to wait is not asked again, and the regret
            that it refused.
        question: (32, 17) what is seen of the candidates of a question: presence, regret, ``observation.SEEN``.
        question_rows: (32,) which candidates these are.
        curve: (G, 3) of whom it is measured by, every ten minutes: seconds that jobs had been there, all of them and
            large ones, and jobs that are there; without rows where nobody is.
        scratch: (8, …) whole numbers, ``levels``: (4, …) numbers to work with.
    """

    epoch: Records
    parameters: Floats
    shipped: Floats
    network: Floats
    seen: Floats
    penalty: Floats
    job_index: Floats
    best: Floats
    kind: Numbers
    kind_index: Floats
    modes: Numbers
    group: Numbers
    large: Numbers
    used: Floats
    measured: Numbers
    done: Floats
    left: Floats
    order: Numbers
    key: Floats
    overdue: Numbers
    listed: Numbers
    by_end: Numbers
    row_of_running: Numbers
    running: Numbers
    rate: Floats
    ready: Floats
    ends: Floats
    mode: Numbers
    saving: Numbers
    share_first: Numbers
    share_count: Numbers
    share_of: Numbers
    share_pool: Numbers
    share_devices: Numbers
    row_of: Numbers
    row_pool: Numbers
    row_devices: Numbers
    row_left: Floats
    row_longer: Floats
    row_undisturbed: Floats
    gone: Numbers
    priorities: Numbers
    reach: Numbers
    pace: Floats
    available: Floats
    tariff: Floats
    staged: Numbers
    stage_seconds: Floats
    stage_money: Floats
    coming_of: Numbers
    coming: Floats
    chances: Floats
    pool_site: Numbers
    pool_type: Numbers
    devices: Numbers
    reported: Numbers
    free: Numbers
    base_free: Numbers
    when: Floats
    value: Floats
    mean: Floats
    weight: Floats
    head: Floats
    reserved_count: Numbers
    reserved_start: Floats
    reserved_extra: Numbers
    wanted: Numbers
    rows: Floats
    row_pools: Numbers
    row_shares: Numbers
    row_count: Numbers
    row_mode: Numbers
    row_period: Numbers
    now: Numbers
    score: Floats
    options: Records
    option_begin: Numbers
    option_count: Numbers
    option_free: Numbers
    victims: Numbers
    victim_devices: Numbers
    moves: Numbers
    order_kind: Numbers
    order_job: Numbers
    order_count: Numbers
    order_mode: Numbers
    order_period: Numbers
    order_pools: Numbers
    order_devices: Numbers
    waiting_until: Floats
    refused: Floats
    question: NDArray[np.float32]
    question_rows: Numbers
    curve: Floats
    scratch: Numbers
    levels: Floats


def penalties(sites: int) -> Floats:
    """Times as many steps as a split over so many domains takes at each of ``PERIODS``: by the rule, by the world."""
    domains = np.arange(sites + 1, dtype=np.float64)
    factors = np.ones((2, sites + 1, len(PERIODS)))
    for place, period in enumerate(candidates.PERIODS):
        factors[0, :, place] = _penalty(domains, np.full(sites + 1, float(period)))
        factors[1, 1:, place] = [law_penalty(count, period) for count in range(1, sites + 1)]
    return factors
