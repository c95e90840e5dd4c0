"""Reference workloads: training steps that a device runs once, so that its compute index can be calibrated.

The compute index infers how fast a device is for a task from how fast it was for others. These are the others: small,
standard training steps of fixed shape, each bound by another part of the device. They stand for the tasks that told
most of the rest in published measurements (Lambda, deeplearning-benchmark, commit aa5addb6): recommendation,
recurrence, one-dimensional convolution and transformers in single and in half precision. A residual network is there
because it is what is published most often.

========================  =========================================  ==================================================
workload                  counterpart                                bound by
========================  =========================================  ==================================================
transformer-single        Transformer-XL, fp32                       matrix units and those for binary32
transformer-half          BERT large, Transformer-XL large, fp16     matrix units
recommendation            NCF, fp16                                  latency and bandwidth of memory
recurrent                 Tacotron 2, fp16                           start of kernels, thus the host
waveform                  WaveGlow, fp16                             matrix units at low intensity, memory
residual                  ResNet-50, fp16                            matrix units, memory
========================  =========================================  ==================================================

Weights and samples are made from a seed, so that nothing is downloaded or read meanwhile. Throughput is in samples in
a second, with the same batch on every device (:mod:`~kuayu.engine.workloads.measurement`). PyTorch comes with the extra
``training`` and is loaded when a workload is asked for, never before.

On processors all of it is tested. On an accelerator it was run once (NVIDIA H100, 2026-11-26): number formats, waiting
for the device and its energy counter work; how parts are chosen was mended after that, and has not been run again.
"""

from kuayu.engine.workloads.workload import (
    GROUP,
    WORKLOADS,
    CorpusFileError,
    WorkloadReport,
    WorkloadResult,
    fragment,
    merged,
    read,
    run_workloads,
    write,
)

__all__ = [
    "GROUP",
    "WORKLOADS",
    "CorpusFileError",
    "WorkloadReport",
    "WorkloadResult",
    "fragment",
    "merged",
    "read",
    "run_workloads",
    "write",
]
