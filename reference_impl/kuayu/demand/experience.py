"""What measured runs teach, and how far a prediction may be off.

1. The efficiency is the published one. It is not fitted to the runs of others: a source's software and machine make it
   slower or faster by more than an efficiency can say, and what was learnt from some sources made those worse that were
   left out (``python -m kuayu_training.demand.protocol``, docs/decisions/0054-demand-on-strangers.md).
2. A training shares traits with runs on the same hardware of the request by the same software, as far as a strategy
   tells it (`traits`). By how much these took longer than predicted is the effect of their source.
3. An effect pulls as far as its runs agree (partial pooling; Gelman and Hill, Data Analysis Using Regression, chapter
   12): with the effect's prior width τ and n runs that scatter by s, by τ² ÷ (τ² + s² ÷ n); what they scatter
   beyond the usual counts undivided. Runs far off count linearly.
4. One source with such traits is taken for the asker's own. Of several it is not known whose the training is: their
   mean pulls as far as sources agree.

The logarithm of a step's time is uncertain since the efficiency is (its spread, as far as no effect is known), since
the effect is, and since the law is no truth (MODEL_ERROR). How large this is together is told by sources that are left
out in turn: squares of their errors, in parts of what was expected, adjust the width. As many as PRIOR_SOURCES sources
stand for the prior; the interval is that of Student's t with their sum as degrees of freedom. Where there are fewer
than MIN_SOURCES, widths are not adjusted.

Example: three runs of one source, each 1.30 times as long as predicted, make a like training 1.29 times as long.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from kuayu.demand.flop_counts import BYTES, WIDTH
from kuayu.demand.parse import Training
from kuayu.demand.step_time import EFFICIENCY_NAMES, PRIOR, SPREADS, Efficiency, Terms, times
from kuayu.demand.strategy import Floats

MODEL_ERROR = 0.1
"""Standard deviation of the logarithm of a step's time that nothing explains; errors beyond it count linearly."""

EFFECT_WIDTH = 0.2
"""Standard deviation of the effects of sources, as a logarithm. Between 0.15 and 0.3 the inner loop tells no difference
from one own run (15.0 to 15.3 %); a narrow one is safer for strangers."""

SCATTER, SCATTER_EXPERTS, SCATTER_RUNS = 0.1, 0.25, 2.0
"""Expected scatter of runs about their source's effect, of dense models and with experts, and how many runs that counts
for: a fifth of the steps of one layout of experts differ by more between releases of one software."""

SOURCES_APART, SOURCES_APART_COUNT = 0.1, 2.0
"""Expected difference of sources with the same traits, and how many sources that counts for."""

LIKENESS = 0.5
"""Correlation of errors within a source, by which its runs count for less."""

PRIOR_SOURCES = 4.0
"""How many sources the prior's spread counts for."""

MIN_SOURCES = 3
"""Sources from which errors on one that was left out say something."""

_ROUNDS = 8
_STEP = 1e-3
_WIDTHS = np.array([getattr(SPREADS, name) for name in EFFICIENCY_NAMES])


@dataclass(frozen=True)
class Effect:
    """By how much trainings of some traits take longer than predicted, as a logarithm.

    Attributes:
        shift: The expected effect.
        pull: How far it is known: 0 not at all, 1 wholly.
        variance: Of the effect about it.
    """

    shift: float = 0.0
    pull: float = 0.0
    variance: float = 0.0


UNKNOWN = Effect()
"""No run has such traits."""


@dataclass(frozen=True)
class Experience:
    """What is known beside the law.

    Attributes:
        effects: By traits.
        scale: By how much predictions are wider off than the law says.
        freedom: Degrees of freedom of that scale.
        runs: Runs that it rests on.
    """

    effects: Mapping[Hashable, Effect] = field(default_factory=dict)
    scale: float = 1.0
    freedom: float = PRIOR_SOURCES
    runs: int = 0

    def slower(self, trainings: Sequence[Training]) -> Floats:
        """How many times as long as predicted steps are expected to take, N."""
        return np.exp([self._effect(training).shift for training in trainings])

    def spread(self, needed: Terms, trainings: Sequence[Training]) -> Floats:
        """Standard deviation of the logarithm of the step's time, N."""
        known = [self._effect(training) for training in trainings]
        return self.scale * np.sqrt(_variance(law_variance(needed), known))

    def factor(self, needed: Terms, trainings: Sequence[Training], coverage: float) -> Floats:
        """By how much a step may be longer or shorter than predicted in this share of cases, N; at least 1."""
        return np.asarray(np.exp(stdtrit(self.freedom, 0.5 + coverage / 2) * self.spread(needed, trainings)))

    def _effect(self, training: Training) -> Effect:
        return self.effects.get(traits(training), UNKNOWN)


BY_LAW = Experience()
"""Without any run."""


def traits(training: Training) -> Hashable:
    """What a training shares with others of the same source: hardware, and what a strategy tells of the software.

    What one chooses by the layout (degrees, recomputation, sharding) is no part of it, so that the order of layouts of
    a search stays what the law says. Of experts it is part how many and how wide they are: software differs by more in
    how it deals with few large and with many small ones than sources do.
    """
    strategy, structure = training.strategy, training.structure
    experts = (structure.experts, structure.experts_per_token, structure.expert_feed_forward)
    return (
        training.hardware.name,
        structure.experts > 1,
        experts if structure.experts > 1 else (),
        structure.adapter is not None,
        BYTES[strategy.precision] < WIDTH,
        strategy.precision == "fp4",
        strategy.fused_attention,
        strategy.attention_speed,
        strategy.overlap_data,
        strategy.overlap_tensor,
        strategy.scattered,
    )


def learn(trainings: Sequence[Training], needed: Terms, measured: Floats, sources: Sequence[str]) -> Experience:
    """Experience from N runs.

    Args:
        trainings: What ran, N.
        needed: Terms of the runs.
        measured: Seconds of a step, N.
        sources: Where each run is from, N.

    Raises:
        ValueError: If columns differ in length, or a time is not positive.
    """
    if not len(measured) == len(sources) == len(trainings):
        raise ValueError("trainings, times and sources have a row for each run")
    if not len(measured):
        return BY_LAW
    if not np.all(np.asarray(measured) > 0):
        raise ValueError("the time of a step is positive")
    longer = np.log(measured / times(needed, PRIOR).step)
    keys = [traits(training) for training in trainings]
    rows: dict[Hashable, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (key, source) in enumerate(zip(keys, sources, strict=True)):
        rows[key][source].append(row)
    single = {
        key: {source: _of_source(longer[some], experts=bool(key[1])) for source, some in by_source.items()}  # type: ignore[index]
        for key, by_source in rows.items()
    }
    effects = {key: _together(list(of.values())) for key, of in single.items()}
    if len(set(sources)) < MIN_SOURCES:
        return Experience(effects, runs=len(measured))
    # each run as it is predicted without its source
    without = {
        (key, source): _together([effect for other, effect in of.items() if other != source])
        for key, of in single.items()
        for source in of
    }
    left = [without[key, source] for key, source in zip(keys, sources, strict=True)]
    weight = weights(sources)
    off = longer - np.array([effect.shift for effect in left])
    summed = PRIOR_SOURCES + float(np.sum(weight * off**2 / _variance(law_variance(needed), left)))
    freedom = PRIOR_SOURCES + float(weight.sum())
    return Experience(effects, float(np.sqrt(summed / freedom)), freedom, len(measured))


def weights(sources: Sequence[str]) -> Floats:
    """What each run counts for, N: those of one source together no more than a few."""
    _, inverse, counts = np.unique(np.asarray(sources), return_inverse=True, return_counts=True)
    return np.asarray(1 / (1 + LIKENESS * (counts[inverse] - 1)))


def law_variance(needed: Terms) -> Floats:
    """Variance of the logarithm of the step's time that the spread of the efficiency means, N."""
    return np.asarray(np.sum(_slopes(needed) ** 2, axis=1))


@dataclass(frozen=True)
class _OfSource:
    """A source's mean effect, and how far it may be off for another run of the source.

    Scatter beyond the usual depends on something that traits do not say: a mean over more runs is no surer of it.
    """

    mean: float
    variance: float


def _of_source(longer: Floats, *, experts: bool) -> _OfSource:
    """What runs of one source tell; those far from the others count linearly."""
    usual = SCATTER_EXPERTS if experts else SCATTER
    mean, pulls = float(np.median(longer)), np.ones(len(longer))
    for _ in range(_ROUNDS):
        pulls = 1 / np.sqrt(1 + ((longer - mean) / usual) ** 2)
        mean = float(np.sum(pulls * longer) / np.sum(pulls))
    about = float(np.sum((longer - mean) ** 2))
    scatter = (SCATTER_RUNS * usual**2 + about) / (SCATTER_RUNS + len(longer) - 1)
    beyond = max(0.0, scatter - usual**2)
    return _OfSource(mean, (scatter - beyond) / len(longer) + beyond)


def _together(effects: Sequence[_OfSource]) -> Effect:
    """The effect that sources with the same traits lead to expect of a training."""
    if not effects:
        return UNKNOWN
    means, variances = (np.array([getattr(term, name) for term in effects]) for name in ("mean", "variance"))
    apart = 0.0
    if len(effects) > 1:
        about = float(np.sum((means - means.mean()) ** 2))
        apart = (SOURCES_APART_COUNT * SOURCES_APART**2 + about) / (SOURCES_APART_COUNT + len(effects) - 1)
    precision = 1 / (variances + apart)
    pull = float(EFFECT_WIDTH**2 / (EFFECT_WIDTH**2 + 1 / precision.sum()))
    shift = pull * float(np.sum(precision * means) / precision.sum())
    return Effect(shift, pull, apart + EFFECT_WIDTH**2 * (1 - pull))


def _variance(law: Floats, known: Sequence[Effect]) -> Floats:
    """Of the logarithm of a step's time, N: where an effect is known it says what the efficiency did."""
    open_part = np.array([(1 - effect.pull) ** 2 for effect in known])
    return np.asarray(open_part * law + np.array([effect.variance for effect in known]) + MODEL_ERROR**2)


def _slopes(needed: Terms) -> Floats:
    """By how much the logarithm of a step moves with each number of the efficiency, in its prior's widths, N × K."""
    centre = PRIOR.logs()
    base = times(needed, PRIOR).step
    columns = []
    for place, width in enumerate(_WIDTHS):
        moved = centre.copy()
        moved[place] -= _STEP * width
        columns.append(np.log(base / times(needed, Efficiency.of_logs(moved)).step) / _STEP)
    return np.stack(columns, axis=1)
