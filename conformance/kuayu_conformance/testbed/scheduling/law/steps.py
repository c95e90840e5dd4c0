"""Operations and seconds of a step of training, and what more devices gain."""


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
