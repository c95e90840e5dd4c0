"""A report is verified elsewhere: the same seed has to give the same bytes on processors that can do less at once."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conformance.testbed.looking import named, played
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.elementary import exponential, wave
from kuayu_conformance.testbed.telemetry import Scale, World

TESTS = Path(__file__).parents[2]
SMALL = Scale(domains=5, nodes=150, warm_up=20, seconds=60)
SEEDS = ("here", "and", "elsewhere")
PLAY = """
from conformance.testbed.looking import named, played
from conformance.testbed.test_elsewhere import SEEDS, SMALL
from kuayu_conformance.testbed.telemetry import World
for seed in SEEDS:
    print(played(World(SMALL, seed, named)))
"""


def found() -> list[str]:
    """What this processor can do beyond what every one can that NumPy runs on, by NumPy's names."""
    told = np.show_config(mode="dicts")
    return list(told["SIMD Extensions"].get("found", ())) if told else []


@pytest.mark.skipif(not found(), reason="this processor can do nothing that NumPy could be told to do without")
def test_a_plainer_processor_plays_the_same_bytes() -> None:
    there = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(found()), "PYTHONPATH": str(TESTS)}
    plain = subprocess.run([sys.executable, "-c", PLAY], env=there, capture_output=True, text=True, check=True)
    assert plain.stdout.split() == [played(World(SMALL, seed, named)) for seed in SEEDS]


@given(st.floats(-8, 8))
def test_exponentials_are_those_of_the_textbook(power: float) -> None:
    assert exponential(power) == pytest.approx(np.exp(power), rel=1e-11)
    assert exponential(np.array([power]))[0] == exponential(power)


@given(st.floats(-50, 50))
def test_waves_are_nearly_sines(turns: float) -> None:
    assert wave(np.array([turns]))[0] == pytest.approx(np.sin(2 * np.pi * turns), abs=0.002)
