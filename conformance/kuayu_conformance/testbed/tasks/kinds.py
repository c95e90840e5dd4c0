"""Kinds of task, their mixes, and the cluster: what is published, and what had to be assumed.

Published by Yang, Hong and Tang, on Alibaba's PAI cluster:

* mean cores, share of a GPU and memory of four kinds (table 1); the cluster of 32 GPUs, 384 cores and 2 TB, the
  window of 12 h, Poisson arrivals, 70 tasks an hour (section 4). Four machines of 96 cores, 512 GB and 8 GPUs, as the
  PAI trace lists them, make that cluster. As in formula 13 a task may be spread over machines, so that it is one
  pool;
* two mixes of ResNet : NMT : GraphLearn : CTR, 5:15:15:65 and 40:30:20:10 (experiment 2). Of a third only the picture
  tells; here it is the even one;
* how long tasks run, in a unit that is not named: mean absolute error ÷ weighted percentage error (table 3) is 1.23
  for CTR, 9.67 for ResNet and 6.82 for NMT. Hours are taken: it is the only usual unit in which 70 tasks an hour fill
  the cluster at all and leave some of them done within the window. GraphLearn is missing in that table: the geometric
  mean of the three is assumed. Experiment 1 says that cores are all taken after some two hours; here it takes less
  than one, and in units of 1000 s too, as 70 tasks ask for 600 cores and more if they use what table 1 says;
* how well time follows from resources (table 3): errors of 11 to 15 %, so a noise of 16 % standard deviation;
* which resource holds a kind back (section 2.1): recommendation waits for its input for 56 % of the time (cores),
  image classification for 10 to 70 % (memory; 40 % are taken), translation needs GPUs (90 % assumed). GraphLearn uses
  cores and hardly any GPU: 40 % on cores is assumed. All else is 10 %;
* sizing took 28.5 % off the cores that were asked for (experiment 1). The mean over-request is such that somebody who
  knows what each task needs takes just as much: 1.43. So does one rate for all tasks that slows them by 5 % on the
  mean. Traces of users suggest more, at least of memory: in the one sample that the description of the PAI trace
  shows, six cores and 29.3 GB are asked for, 1.4 cores and at most 2.4 GB used (different tasks, so that no figure
  follows).

Assumed, and varied in tables of a full run: the spread of use within a kind, the spread of the over-request and its
being the same for all kinds, tasks that ask for too little (without them no history could tell what too little does).
A task needs a tenth more cores and GPU than it uses on the mean; thus the first mix asks for 9.0 cores on the mean,
and GPU pods of Alibaba's 2023 trace (openb) for 8.9. Its memory peaks at half as much again as the mean (in the one
sample that the trace's description shows, at 1.6 times as much), and image classification uses a fifth more than that
as a cache.
"""

from dataclasses import dataclass

DEVICES, CORES, MEMORY = 0, 1, 2
"""Columns of all arrays over resources: GPUs, cores, gigabytes (1e9 bytes) of host memory."""

RESOURCES = ("devices", "cores", "memory")

CAPACITY = (32.0, 384.0, 2000.0)
"""Of the cluster."""

WINDOW = 12 * 3600.0
"""Seconds."""

RATE = 70.0
"""Tasks an hour at which the source states its gains."""

UNIT = 3600.0
"""Seconds of the unit of table 3."""

OVER_REQUEST = 1.43
"""Mean of what is asked for ÷ what is needed, over those who do not ask for too little."""

NOISE = 0.16
"""Standard deviation of the logarithm of what time does not follow from."""


@dataclass(frozen=True)
class Kind:
    """A kind of task.

    Attributes:
        name: As the source calls it.
        use: Mean use of each resource at full speed.
        duration: Mean seconds at full speed.
        waits: Share of the time that grows as the reciprocal of each resource where there is too little of it.
        cache: Memory that it puts to use, in parts of its peak.
        rules: Resource whose amount follows the size of a task, and that holds it back most.
        strong: Whether the source says so.
    """

    name: str
    use: tuple[float, float, float]
    duration: float
    waits: tuple[float, float, float]
    cache: float
    rules: int
    strong: bool = True


KINDS = (
    Kind("ResNet", (0.302, 2.1, 19.9), 9.67 * UNIT, (0.1, 0.1, 0.4), 1.2, MEMORY),
    Kind("NMT", (0.341, 10.6, 10.0), 6.82 * UNIT, (0.9, 0.1, 0.0), 1.0, DEVICES),
    Kind("GraphLearn", (0.008, 11.9, 9.5), 4.33 * UNIT, (0.1, 0.4, 0.0), 1.0, CORES, strong=False),
    Kind("CTR", (0.068, 3.9, 2.8), 1.23 * UNIT, (0.1, 0.56, 0.0), 1.0, CORES),
)

MIXES = {"5:15:15:65": (5, 15, 15, 65), "40:30:20:10": (40, 30, 20, 10), "25:25:25:25": (25, 25, 25, 25)}
"""Weights of the kinds in that order."""
