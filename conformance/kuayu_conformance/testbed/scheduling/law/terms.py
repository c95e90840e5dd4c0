"""All that the speed of a placed job follows from, for one job or in arrays for many.

1. **Constants.** Each has its source; ``python -m kuayu_conformance.testbed.scheduling.law`` varies them.

   - *Backward*: the backward pass takes twice the operations of the forward pass, J. Kaplan et al., "Scaling laws for
     neural language models", arXiv:2001.08361, section 2.1. An exchange that hides behind it alone reproduces 73 of 74
     cells of table 6 of arXiv:2503.09799 within 1.46.
   - *Llama*: Llama Team, "The Llama 3 herd of models", arXiv:2407.21783, sections 3.3.1 and 3.3.4: storage that
     sustains 2 TB/s for 16 384 GPUs, 419 unexpected interruptions of them in 54 days.
   - *Runs*: median of global batch ÷ (data-parallel degree × micro-batch) over the 329 measured runs with pipeline
     stages in ``data/llm_training_runs``.
   - *Pollux*: 30 s for the restart of a job in the simulator of A. Qiao et al., "Pollux", OSDI 2021 (petuum/adaptdl,
     ``simulator``); process groups of more than 10 000 GPUs begin in less than 30 s, Z. Jiang et al., "MegaScale", NSDI
     2024.
   - *Refit*: T. Besiroglu et al., "Chinchilla scaling: a replication attempt", arXiv:2404.10102: loss = 1.8172 + 482.01
     ÷ parameters^0.3478 + 2085.43 ÷ tokens^0.3658.
   - *Optimal*: 20 tokens for each parameter, J. Hoffmann et al., "Training compute-optimal large language models",
     arXiv:2203.15556, and the budget of all runs that :mod:`kuayu_conformance.testbed.scheduling.law.fitting` holds.
2. **Steps.** A step has operations and takes seconds; more devices gain less each.
3. **Exchanges.** Domains exchange bits, which takes time; a share of the time is left for computing.
4. **Quality.** What it costs in tokens that domains reconcile only now and then.

   Replicas that train apart for ``period`` steps end at a higher loss than one model that is trained in step, with as
   many tokens. Over all that was published at 20 tokens a parameter, for 35 million to 10 billion parameters, the
   distance is a share of that part of the loss which tokens reduce. The share grows with replicas and with the period,
   and hardly depends on the size: with tokens by an exponent of -0.03 ± 0.02, which is left out. So it takes ``(1 +
   share)^(1/β)`` times as many tokens to the same loss, where that part falls with tokens to the power of -β; so many
   more steps are charged.

   Where it errs: nothing is granted where two replicas did better than one model (at 2.4 to 10 billion parameters, by
   0.1 to 0.2 % of the loss). With 94 times the tokens and a period of 500, eight replicas lost 0.020 nats where it says
   0.053. Four of a billion parameters lost 0.06 on 25 billion tokens where it says 0.04, and 0.02 on 100 billion, as it
   says. It is charged to other training than that of language models as well, for which no tokens to a target were
   published; accuracy falls there too (J. J. Gonzalez Ortiz et al., "Trade-offs of local SGD at scale",
   arXiv:2110.08133). The command of this package prints all of these, and the penalty under another law of tokens.
5. **Rounds.** All that the speed of a placed job follows from, for one job or in arrays for many.

   A job goes on in rounds: from one exchange between domains to the next. A round takes ``seconds``, and beyond that
   what an exchange takes longer than is hidden: ``max(0, bits / bandwidth + latency - hidden)``. That holds for every
   split:

   - none: no exchange, so that the rest of a round is nothing;
   - synchronous: a round is a step, hidden is what a backward pass takes, and bits are those of a ring of all domains;
   - periodic: a round is ``period`` steps; the rest is the same, and the work of a round counts less by its penalty;
   - pipeline: a round is a step with the filling of the pipeline; each cut sends while stages compute, so that the
     slower of the two sets the pace, and the round trips of all cuts come on top.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import inf
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.elementary import logarithm, power
from kuayu_conformance.testbed.scheduling.engine.interfaces import Flow, Speed
from kuayu_conformance.testbed.scheduling.values import DeviceType, Job, Placement, Split

DATA_TERM, DATA_EXPONENT = 2085.43, 0.3658
"""Refit: the part of the loss that tokens reduce is the first over tokens to the power of the second."""
TOKENS_PER_PARAMETER = 20.0
"""Optimal."""
GAP, REPLICA_EXPONENT, PERIOD_SCALE = 0.0240, 0.818, 18.4
"""Fitted by ``fitting`` to published losses: periodic reconciliation enlarges the part of the loss that tokens reduce
by ``GAP · (replicas - 1)^REPLICA_EXPONENT · ln(1 + period / PERIOD_SCALE)``."""
Floats = NDArray[np.float64]
RoundTrip = Callable[[str, str], float]
_Real = TypeVar("_Real", float, NDArray[np.float64])
_BITS = 8.0


@dataclass(frozen=True, slots=True)
class Constants:
    """What is the same for all jobs.

    Attributes:
        overlap: Share of a step behind which an exchange hides. Backward.
        micro_batches: Micro-batches of a step, over which the filling of a pipeline spreads. Runs.
        storage: Bytes a second at which each device writes and reads checkpoints. Llama.
        starting: Seconds until processes run and find each other. Pollux.
        between_faults: Seconds of a device between faults that end its job. Llama.
    """

    overlap: float = 2 / 3
    micro_batches: float = 128.0
    storage: float = 2e12 / 16_384
    starting: float = 30.0
    between_faults: float = 16_384 * 54 * 86_400.0 / 419


def operations(
    *, batch: float, sequence: float, layers: float, hidden: float, vocabulary: float, recomputed: bool
) -> float:
    """Floating-point operations of a step of a transformer.

    It is ``c · B · s · L · h² · (1 + s/6h + V/(x · L · h))`` with c = 72 and x = 12, or 96 and 16 where all activations
    are recomputed in the backward pass: D. Narayanan et al., "Efficient large-scale language model training on GPU
    clusters using Megatron-LM", SC 2021, section 5.1 and appendix.

    Args:
        batch: Sequences of a step.
        sequence: Tokens of a sequence.
        layers: Transformer layers.
        hidden: Width.
        vocabulary: Tokens of the vocabulary.
        recomputed: Whether the forward pass is done twice.
    """
    factor, logits = (96.0, 16.0) if recomputed else (72.0, 12.0)
    attention = sequence / (6.0 * hidden)
    return (
        factor * batch * sequence * layers * hidden * hidden
        * (1.0 + attention + vocabulary / (logits * layers * hidden))
    )  # fmt: skip


def seconds(
    work: float, devices: float, peak: float, efficiency: float, stages: float = 1, micro_batches: float = 1
) -> float:
    """Seconds of a step: ``F / (n · peak · η) · (1 + (p - 1) / m)``.

    Args:
        work: Operations of the step.
        devices: How many do it.
        peak: FLOP/s of each.
        efficiency: Share of the peak that is reached while no stage waits.
        stages: Pipeline stages.
        micro_batches: Micro-batches of a step, times the chunks of layers of a stage where these are interleaved.
    """
    return work / (devices * peak * efficiency) * (1.0 + (stages - 1.0) / micro_batches)


def gain(devices: float, serial: float) -> float:
    """Speed of so many devices over that of one: ``n / (1 + f (n - 1))``.

    G. M. Amdahl, "Validity of the single processor approach", AFIPS 1967. ``serial`` is the share of the work that more
    devices do not shorten. Up to the count at which each is fastest, 21 measured jobs on as many as 64 devices differ
    from it by 6 % on average, with shares of 0.01 to 0.44 (pkusys/ElasticFlow, throughputs on A100 and T4 [04a0109]).
    """
    return devices / (1.0 + serial * (devices - 1.0))


def useful(devices: float, requested: float, maximum: float, used: float) -> float:
    """Devices that a job keeps busy of those that it holds.

    It keeps ``used`` of the requested ones busy; so it loses nothing until it holds fewer than that. Beyond what it
    asked for it keeps the same share of all busy, up to its maximum.
    """
    held = min(devices, maximum)
    return min(held, used * max(held, requested))


def speed(devices: float, index: float, *, requested: float, maximum: float, serial: float, used: float) -> float:
    """Work a second of devices that are not held up by the network, in reference devices.

    On ``requested`` devices of the reference it is ``used · requested``, so that work is what busy devices have done.

    Args:
        devices: How many the job holds.
        index: Mean of their compute indices; shares of the batch follow them, so that none waits for another.
        requested: How many it asked for.
        maximum: How many are of use to it.
        serial: Share of its work that more devices do not shorten.
        used: Share of the requested devices that it keeps busy.
    """
    busy = used * requested
    return index * busy * gain(useful(devices, requested, maximum, used), serial) / gain(busy, serial)


def ring_bits(domains: int, gradient: float) -> float:
    """Bits that each domain sends to the next one when all of them sum up ``gradient`` bytes.

    The least possible is ``2 (D - 1) / D`` of them: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for
    clusters of workstations", JPDC 69 (2009).
    """
    return 2.0 * (domains - 1) / domains * gradient * _BITS


def ring_latency(domains: int, round_trip: float) -> float:
    """Seconds that a ring takes for nothing: ``2 (D - 1)`` messages one after the other, each half a round trip."""
    return (domains - 1) * round_trip


def cut_bits(boundary: float) -> float:
    """Bits each way over a pipeline cut, which activations cross forwards and their gradients backwards."""
    return boundary / 2.0 * _BITS


def utilisation(inside: _Real, outside: _Real) -> _Real:
    """Share of computing if devices wait for every exchange: ``T_in / (T_in + T_out)``.

    S. Jaghouar et al., "INTELLECT-1 technical report", arXiv:2412.01152. Both in seconds, between two exchanges.
    """
    return inside / (inside + outside)


def overlapped_utilisation(step: float, period: float, exchange: float, overlap: float) -> float:
    """The same if an exchange hides behind part of a step: ``H t / (H t + max(0, T - β t))``.

    Args:
        step: Seconds of a step.
        period: Steps between exchanges.
        exchange: Seconds of an exchange.
        overlap: Share of a step behind which it hides.
    """
    return utilisation(period * step, max(0.0, exchange - overlap * step))


def bandwidth_for(share: float, step: float, period: float, bits: float, overlap: float) -> float:
    """Bits a second that exchanges of so many bits need for some share of computing, below one."""
    return bits / (period * step * (1.0 / share - 1.0) + overlap * step)


def shares(replicas: NDArray[np.float64], periods: NDArray[np.float64]) -> NDArray[np.float64]:
    """By what share the part of the loss that tokens reduce is larger; arrays of one shape, zero for one replica."""
    others = power(np.maximum(replicas - 1.0, 1.0), REPLICA_EXPONENT)
    return np.where(replicas > 1.0, GAP * others * logarithm(1.0 + periods / PERIOD_SCALE), 0.0)


def penalties(replicas: NDArray[np.float64], periods: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many times as many steps it takes to the same loss; arrays of one shape.

    Args:
        replicas: Domains that train apart, at least one.
        periods: Steps between reconciliations, at least one.
    """
    return power(1.0 + shares(replicas, periods), 1.0 / DATA_EXPONENT)


@cache
def penalty(replicas: int, period: int) -> float:
    """The same for one job."""
    return float(penalties(np.array([float(replicas)]), np.array([float(period)]))[0])


@dataclass(frozen=True, slots=True)
class Terms:
    """A round of a placed job.

    Attributes:
        work: What it brings to the end, in device seconds of the reference device; the penalty is charged.
        computing: Seconds of it in which devices compute.
        seconds: Seconds of it if the network is of no account.
        bits: Bits that the slowest flow has to move while the rest waits, all told.
        latency: Seconds that an exchange takes beside that.
        hidden: Seconds of an exchange behind which computing goes on.
        pairs: Domains between which there are flows, source and target.
        sent: Bits that each flow moves.
    """

    work: float
    computing: float
    seconds: float
    bits: float = 0.0
    latency: float = 0.0
    hidden: float = 0.0
    pairs: tuple[tuple[str, str], ...] = ()
    sent: float = 0.0

    def flows(self) -> tuple[Flow, ...]:
        """Its flows, with the bandwidth at which an exchange is hidden; infinite where it cannot be."""
        spare = self.hidden - self.latency
        wish = self.bits / spare if spare > 0.0 else inf
        return tuple(Flow(source, target, wish) for source, target in self.pairs)

    def lasts(self, bandwidth: float) -> float:
        """Seconds of a round if the slowest flow has so many bits a second; infinite without any."""
        if self.bits == 0.0:
            return self.seconds
        if bandwidth <= 0.0:
            return inf
        return self.seconds + max(0.0, self.bits / bandwidth + self.latency - self.hidden)

    def speed(self, granted: Sequence[float]) -> Speed:
        """Speed with so many bits a second for each flow."""
        lasts = self.lasts(min(granted, default=inf))
        return Speed(self.work / lasts, self.computing / lasts, (self.sent / lasts,) * len(self.pairs))


@dataclass(frozen=True, slots=True)
class Rows:
    """The same for many jobs, in arrays by job.

    Attributes:
        work: As in ``Terms``.
        computing: The same.
        seconds: The same.
        bits: The same.
        latency: The same.
        hidden: The same.
        sent: The same.
    """

    work: Floats
    computing: Floats
    seconds: Floats
    bits: Floats
    latency: Floats
    hidden: Floats
    sent: Floats

    @classmethod
    def of(cls, jobs: Sequence[Terms]) -> "Rows":
        """Those of some jobs, in their order."""
        fields = [(t.work, t.computing, t.seconds, t.bits, t.latency, t.hidden, t.sent) for t in jobs]
        return cls(*np.array(fields, dtype=np.float64).reshape(-1, 7).T)

    def lasts(self, bandwidth: Floats) -> Floats:
        """Seconds of a round of each job if its slowest flow has so many bits a second."""
        silent = self.bits == 0.0
        moved = np.full_like(self.bits, inf)
        with np.errstate(over="ignore"):  # what takes longer than any number says is as good as cut off
            np.divide(self.bits, bandwidth, out=moved, where=bandwidth > 0.0)
        waited = np.where(silent, 0.0, np.maximum(0.0, moved + self.latency - self.hidden))
        return self.seconds + waited

    def rates(self, bandwidth: Floats) -> Floats:
        """Work a second of each, in reference devices."""
        return self.work / self.lasts(bandwidth)

    def occupied(self, bandwidth: Floats) -> Floats:
        """Bits a second that each flow of each job holds on average."""
        return self.sent / self.lasts(bandwidth)


PUBLISHED = Constants()


def terms(
    job: Job,
    placement: Placement,
    devices: Mapping[str, DeviceType],
    round_trip: RoundTrip,
    constants: Constants = PUBLISHED,
) -> Terms:
    """A round of a job in its placement; whether it fits there is for the engine to say.

    Args:
        job: What is placed; ``work`` and ``stated`` do not matter.
        placement: Where. Rings and pipelines go through the domains in its order.
        devices: Accelerators by name.
        round_trip: Seconds from one domain to another and back.
        constants: What is the same for all jobs.

    Raises:
        ValueError: The placement is none: no devices, a domain twice, several without a split, a period below one.
        KeyError: A device is unknown, or has no index for the profile of the job.
    """
    sites = _sites(placement)
    held = sum(share.devices for share in placement.shares)
    index = sum(share.devices * devices[share.device].index[job.profile] for share in placement.shares) / held
    fast = speed(
        held, index, requested=job.requested, maximum=job.maximum, serial=job.serial, used=job.used
    )  # fmt: skip
    done = job.used * job.requested * job.model.step
    step = done / fast
    if len(sites) == 1:
        return Terms(done, step, step)
    if placement.split is Split.PIPELINE:
        return _pipeline(job, sites, done, step, round_trip, constants)
    period = placement.period if placement.split is Split.PERIODIC else 1
    ring = tuple(zip(sites, (*sites[1:], sites[0]), strict=True))
    charged = penalty(len(sites), period) if placement.split is Split.PERIODIC else 1.0
    bits = ring_bits(len(sites), job.model.gradient)
    return Terms(
        work=period * done / charged,
        computing=period * step,
        seconds=period * step,
        bits=bits,
        latency=ring_latency(len(sites), max(round_trip(*pair) for pair in ring)),
        hidden=constants.overlap * step,
        pairs=ring,
        sent=bits,
    )


def _pipeline(
    job: Job, sites: tuple[str, ...], done: float, step: float, round_trip: RoundTrip, constants: Constants
) -> Terms:
    cuts = tuple(pairwise(sites))
    filling = 1.0 + len(cuts) / constants.micro_batches
    bits = cut_bits(job.model.boundary)
    return Terms(
        work=done,
        computing=step,
        seconds=filling * step + sum(round_trip(*cut) for cut in cuts),
        bits=filling * bits,
        hidden=filling * step,
        pairs=(*cuts, *((target, source) for source, target in cuts)),
        sent=bits,
    )


def _sites(placement: Placement) -> tuple[str, ...]:
    sites = tuple(share.site for share in placement.shares)
    if not sites or any(share.devices < 1 for share in placement.shares):
        raise ValueError("a placement without devices")
    if len(set(sites)) < len(sites):
        raise ValueError(f"a domain is named twice: {', '.join(sites)}")
    if len(sites) > 1 and placement.split is Split.NONE:
        raise ValueError(f"several domains without a split: {', '.join(sites)}")
    if placement.period < 1:
        raise ValueError(f"a period of {placement.period} steps")
    return sites
