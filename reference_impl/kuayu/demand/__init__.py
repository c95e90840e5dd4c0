"""Demand law: from a model's structure, a layout and hardware to FLOPs, memory, traffic and time.

Pure: no input or output, no clock, no chance. Layouts are columns, so that thousands are predicted at once.
"""

from kuayu.demand.efficiency import PRIOR, Efficiency
from kuayu.demand.hardware import Hardware
from kuayu.demand.prediction import Demand, predict
from kuayu.demand.profile import Segment, profile
from kuayu.demand.search import Ranking, search
from kuayu.demand.strategy import Layouts, Outermost, Recompute, Sharding, Strategy
from kuayu.demand.structure import LatentAttention, ModelStructure, of_parameters

__all__ = [
    "PRIOR",
    "Demand",
    "Efficiency",
    "Hardware",
    "LatentAttention",
    "Layouts",
    "ModelStructure",
    "Outermost",
    "Ranking",
    "Recompute",
    "Segment",
    "Sharding",
    "Strategy",
    "of_parameters",
    "predict",
    "profile",
    "search",
]
