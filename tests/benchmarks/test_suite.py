"""How much processor time the parts of the suite take, each in this process and on inputs that are always the same.

`make benchmark` compares the medians with those in baseline.json.
"""

import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks.conftest import Measurement

pytestmark = pytest.mark.benchmark(timer=time.process_time)
"""Processor time, so that what else the machine does counts as little as can be."""

HOUR = 3600.0
SELECTION = ("COM-001", "COM-004", "COM-008", "COM-012", "COM-017", "MET-001")
"""Requirements that are judged again: they take a second or two to ask for."""


def test_a_federation_of_5_domains_with_320_nodes_is_played_under_b1(measure: Measurement) -> None:
    """Jobs of four hours; drawing them is not measured. A job counts when it has finished."""
    import numpy as np
    from benchmarks.scheduling import POLICIES

    from kuayu_conformance.testbed.scheduling.engine.world import World, play
    from kuayu_conformance.testbed.scheduling.law import PublishedLaw
    from kuayu_conformance.testbed.scheduling.topology import build
    from kuayu_conformance.testbed.scheduling.workload import draw

    family, sites, nodes, hours, load, seed = "balanced", 5, 64, 4, 0.7, "speed"
    topology = build(family, sites, seed, nodes=nodes)
    workload = draw(family, topology.sites, load, hours * HOUR, seed, devices=topology.devices)
    law = PublishedLaw.of(topology)

    def finished(world: World) -> int:
        return sum(record.finished < np.inf for record in world.outcome().jobs)

    def play_all(world: World, policy: Any) -> World:
        play(world, policy, 2 * hours * HOUR)
        return world

    def prepare() -> tuple[World, Any]:
        return World(topology, workload, law, seed), POLICIES["B1"]()

    jobs = finished(play_all(*prepare()))
    world = measure(play_all, prepare=prepare, jobs=jobs)
    assert finished(world) == jobs > 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on the second server with its transcript."""
    from mutants.serve import MINIMAL_SERVER, served

    from kuayu_conformance.folder import write
    from kuayu_conformance.run.runner import Options, Progress, Run

    path = tmp_path_factory.mktemp("report")
    with served(MINIMAL_SERVER) as target:
        options = Options(
            target=target,
            nonce="benchmarks",
            headers={"authorization": "Bearer own"},
            other_headers={"authorization": "Bearer other"},
            selection=SELECTION,
            timeout=30,
            watch=False,  # what else runs on the machine changes nothing here
        )
        write(path, Run(options, path, Progress()).execute())
    return path


def test_a_transcript_is_judged_again(measure: Measurement, folder: Path) -> None:
    from kuayu_conformance.run.judgement import judge
    from kuayu_conformance.transcript import Transcript

    exchanges = sum(map(len, Transcript.read(folder).episodes.values()))
    report = measure(lambda: judge(Transcript.read(folder)), exchanges=exchanges)
    assert report.exit_code == 0


def test_the_page_of_a_report_is_rendered(measure: Measurement) -> None:
    """Of a run of two profiles."""
    from conformance.rendering.samples import sample

    from kuayu_conformance.rendering import page

    report = sample()
    html = measure(lambda: page(report), pages=1)
    assert html.startswith("<!DOCTYPE html>")
