"""How much processor time the parts of the reference take, each in this process and on inputs that are always the same.

`make benchmark` compares the medians with those in baseline.json.
"""

import json
import random
import resource
import subprocess
import sys
import time
from itertools import count, cycle, islice
from typing import Any

import pytest
from benchmarks.conftest import Measurement

pytestmark = pytest.mark.benchmark(timer=time.process_time)
"""Processor time, so that what else the machine does counts as little as can be."""

SEED = "20261125"


def seconds_of_all_processes() -> float:
    """Processor time of this process and of those that it has started and waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


JOBS = 2950
"""Jobs of a state, some few more or less: half of them wait, the others run, as many as there is room for."""


@pytest.fixture(scope="module")
def placement_bodies() -> list[bytes]:
    """Requests for placements from one minute to the next: 5 domains, 660 nodes, 3 000 jobs, as SCH-002 sends them.

    The first state of all is left out: no job has ended before it, so that there is next to no room.
    """
    from kuayu_conformance.checks.scheduling.latency import JUDGED
    from kuayu_conformance.checks.scheduling.placement_requests import StateBuilder, Stream

    states = iter(Stream(StateBuilder(random.Random(SEED)), JUDGED))
    return list(islice(states, 1, 6))


def test_a_request_with_3000_jobs_is_parsed_and_validated(measure: Measurement, placement_bodies: list[bytes]) -> None:
    from kuayu.service import requests

    body = placement_bodies[0]
    request = measure(lambda: requests.parse(body, "PlacementRequest"), jobs=JOBS, MB=len(body) / 1e6)
    jobs = sum(len(request["state"][queue]) for queue in ("running", "waiting"))
    assert jobs == pytest.approx(JOBS, abs=50)


def test_jobs_of_a_state_with_3000_jobs_are_placed(measure: Measurement, placement_bodies: list[bytes]) -> None:
    from kuayu.scheduling import place as placement

    states = cycle(placement_bodies)
    report = measure(placement.place, prepare=lambda: (json.loads(next(states)),), rounds=20, jobs=JOBS)
    assert len(report["decisions"]) > 50


def test_indices_of_1000_devices_on_20_tasks_are_computed(measure: Measurement) -> None:
    """Nothing is kept from the call before."""
    from benchmarks.index import corpus

    from kuayu.index import compute_indices
    from kuayu.index.report import forget
    from kuayu_schemas.models import IndexRequest

    body = {"revision": {"epoch": "benchmark", "number": 1}, "corpus": corpus(1000, 20, 20), "reference": "d0"}
    request = IndexRequest.model_validate(body)

    def prepare() -> tuple[IndexRequest]:
        forget()
        return (request,)

    report = measure(compute_indices, prepare=prepare, rounds=3, indices=20_000)
    assert len(report.indices) > 10_000


def test_demands_of_500_trainings_are_estimated(measure: Measurement) -> None:
    from benchmarks.forecast_requests import demands

    from kuayu.service import computations
    from kuayu_conformance.checks.forecast.forecast_requests import ForecastRequestBuilder

    body = json.dumps(demands(ForecastRequestBuilder(random.Random(SEED)), 500)).encode()
    answer = measure(lambda: computations.demand_trainings(body), trainings=500)
    assert answer.status == 200


def test_the_demand_of_5_domains_is_forecast(measure: Measurement) -> None:
    """25 series of a week and 90 jobs."""
    from benchmarks.forecast_requests import forecasts

    from kuayu.service import computations
    from kuayu_conformance.checks.forecast.forecast_requests import ForecastRequestBuilder

    body = json.dumps(forecasts(ForecastRequestBuilder(random.Random(SEED)), domains=5, tenants=4, jobs=18)).encode()
    answer = measure(lambda: computations.forecast(body), series=25)
    assert answer.status == 200


@pytest.mark.parametrize(("domains", "jobs"), [(5, 4), (64, 100)], ids=["usual", "many"])
def test_jobs_over_domains_of_which_some_have_become_busier_are_adjusted(
    measure: Measurement, domains: int, jobs: int
) -> None:
    """All domains are linked, and 60 measurements are told of each load and latency."""
    from resilience.adjustment_requests import many_loaded

    from kuayu.resilience.adjustment_planner import adjustment

    request = many_loaded(domains, jobs)
    report = measure(lambda: adjustment(request), jobs=jobs)
    assert sum(bool(job["changes"]) for job in report["jobs"]) > jobs / 2


@pytest.mark.parametrize("transfers", [16, 1000])
def test_shards_for_256_streams_of_64_domains_are_planned(measure: Measurement, transfers: int) -> None:
    """The plan of each domain holds about so many shards beside those that are fetched ahead."""
    from benchmarks.transfers import scene

    from kuayu.resilience.shard_planner import plan

    network = scene(domains=64, transfers=transfers, seed=1)
    shards = len(plan(network).shards.stream)
    assert len(measure(lambda: plan(network), shards=shards).shards.stream) == shards


def test_recovery_of_100_broken_jobs_in_64_domains_is_planned(measure: Measurement) -> None:
    """Another 900 jobs are whole; all domains are linked, and have 8 768 nodes."""
    from resilience.recovery_requests import many_broken

    from kuayu.resilience.failover_planner import failover_plan

    request = many_broken(domains=64, jobs=1000, lost=100)
    plan = measure(lambda: failover_plan(request), jobs=100)
    assert len(plan["recoveries"]) == 100


def test_backups_of_1000_jobs_in_64_domains_are_planned(measure: Measurement) -> None:
    from resilience.recovery_requests import many_backed_up

    from kuayu.resilience.backup_planner import backup_plan

    request = many_backed_up(domains=64, jobs=1000)
    plan = measure(lambda: backup_plan(request), jobs=1000)
    assert len(plan["copies"]) == 2000


def test_heartbeats_of_1000_nodes_are_taken_in_and_judged_ten_times_a_second(measure: Measurement) -> None:
    """One run is a tenth of a second: some 200 heartbeats, and a look at all nodes."""
    import numpy as np
    from benchmarks.heartbeat_worlds import WEATHERS, World

    from kuayu.resilience.detection import Beats, Detector, Population, Report

    tick, warm_up = 0.1, 300
    domain = np.repeat(np.arange(5), 200)
    detector = Detector(Population(domain, 5))
    beats = next(World(1, domain, list(WEATHERS.values())).play(300.0))
    ends = np.searchsorted(beats.received, tick * np.arange(3000), side="right")
    numbers = count(1)

    def prepare() -> tuple[Beats, float]:
        number = next(numbers)
        return beats[np.arange(ends[number - 1], ends[number])], number * tick

    def update(arrived: Beats, now: float) -> Report:
        detector.hear(arrived)
        return detector.look(now)

    for _ in range(warm_up):
        update(*prepare())
    report = measure(update, prepare=prepare, rounds=1000, looks=1)
    assert len(report.node) == 1000


def test_lines_of_a_log_are_classified(measure: Measurement) -> None:
    """One line in a hundred tells of a fault; unusual lines are not looked for."""
    from benchmarks.logs import joined, known

    from kuayu.resilience.logs.reader import LogReader

    lines = 50_000
    log = joined(known(random.Random(SEED), 0.01), lines)
    verdicts = measure(lambda: LogReader(unusual=False).take(log), lines=lines, MB=len(log) / 1e6)
    assert len(verdicts) > 100


def test_templates_of_a_log_are_mined(measure: Measurement) -> None:
    """The same lines, and unusual ones are looked for."""
    from benchmarks.logs import joined, known

    from kuayu.resilience.logs.reader import LogReader

    lines = 20_000
    log = joined(known(random.Random(SEED), 0.01), lines)
    reader = measure(_read_unusual, prepare=lambda: (LogReader(unusual=True), log), lines=lines)
    assert len(reader.miner.templates()) > 5


def _read_unusual(reader: Any, log: bytes) -> Any:
    reader.take(log)
    return reader


def test_a_prometheus_page_is_parsed_and_converted(measure: Measurement) -> None:
    """The page that was captured from DCGM's exporter."""
    from kuayu.perception import exposition
    from kuayu.perception.collection import CollectionMap, Conversion
    from kuayu_conformance.exporters.captures import capture_of
    from kuayu_schemas.registers import indicators

    capture = capture_of("dcgm-exporter")
    page = capture.render({})
    collection = CollectionMap.of(indicators(), "dcgm-exporter")

    def convert() -> Conversion:
        return collection.convert(exposition.parse(page), lambda _: 0, {})

    conversion = measure(convert, pages=1, series=len(capture.series))
    assert conversion.readings


def test_a_batch_of_10000_samples_is_decoded_and_validated(measure: Measurement) -> None:
    from benchmarks.ingest_samples import make_samples

    from kuayu.service import ingest, instants
    from kuayu.service.ingest import Reception

    devices, rows, day = 100, 10_000, 86_400_000
    body = json.dumps({"mode": "per_item", "samples": make_samples(rows, devices, seed=0)}, separators=(",", ":"))
    numbers = {("device", "node", str(device)): device for device in range(devices)} | {("node", "node", None): devices}
    reception = Reception(received=instants.now(), offset=0, retention=day)
    content = body.encode()
    batch = measure(lambda: ingest.take(content, rows, numbers, lambda _: reception), samples=rows)
    assert batch.result.accepted == rows


def test_states_of_1000_nodes_are_recognised_each_second(measure: Measurement) -> None:
    from benchmarks.recognition_worlds import OwnWorld

    from kuayu.perception.recognition import Recogniser

    warm_up, rounds = 20, 100
    world = OwnWorld(1, 5, 1000, warm_up, rounds + 1)
    recogniser = Recogniser(world.population)
    telemetry = [second.telemetry for second in world.play()]
    for second in telemetry[:warm_up]:
        recogniser.update(second)
    rest = iter(telemetry[warm_up:])
    found = measure(recogniser.update, prepare=lambda: (next(rest),), rounds=rounds, nodes=1000)
    assert len(found.state) == 1000


def test_the_resource_graph_of_1000_nodes_is_brought_up_to_date(measure: Measurement) -> None:
    """A sample of every node arrives, of which ten have become faulty and ten are healthy again; changes are published.

    Recognition of the states is part of it.
    """
    from kuayu.perception.graph import ChangeLog
    from kuayu.service import instants
    from kuayu.service.graph_rows import LiveTable
    from kuayu.service.storage.blocks import Block
    from kuayu.service.tenant_graphs import PublishedGraph, TenantGraph

    nodes, domains, devices, step = 1000, 5, 8, 1000
    chance = random.Random(SEED)
    measures = ("accelerator_utilisation", "health_state", "matrix_pipe_activity", "power", "scale_out_transmit_flow")
    log = ChangeLog(100_000, 1 << 26)
    table = LiveTable()
    graph = TenantGraph(table, PublishedGraph("benchmark", log, lambda _: None), lambda _: None)
    resources: list[tuple[str, Any]] = [("domain", {"id": f"d{number}"}) for number in range(domains)]
    parts = [{"id": str(number)} for number in range(devices)]
    resources += [
        ("node", {"id": f"n{number}", "domain": f"d{number % domains}", "devices": parts}) for number in range(nodes)
    ]
    keys: list[tuple[str, str, str | None]] = [("node", f"n{number}", None) for number in range(nodes)]
    keys += [("device", f"n{number}", part["id"]) for number in range(nodes) for part in parts]
    graph.begin(resources, {key: number for number, key in enumerate(keys)})
    table.rows(graph.numbers())
    moments = count(instants.now(), step)

    def prepare() -> tuple[list[Block], int]:
        moment = next(moments)
        first = moment // step * 10 % nodes
        rows = (
            (
                number,
                moment,
                chance.uniform(0.9, 1.0),
                "faulty" if first <= number < first + 10 else "healthy",
                chance.uniform(0.4, 0.5),
                chance.gauss(4200.0, 50.0),
                chance.gauss(8e9, 1e8),
            )
            for number in range(nodes)
        )
        return [Block.of_rows(measures, rows)], moment

    def update(blocks: list[Block], now: int) -> None:
        table.take([(blocks, now)])
        graph.look(now)

    for _ in range(20):
        update(*prepare())
    changes = log.number
    measure(update, prepare=prepare, rounds=50, nodes=nodes)
    assert log.number - changes > 25


def test_steps_of_the_scheduling_environment_are_taken(measure: Measurement) -> None:
    """The rule's choice, which is one decision for one job. Each run begins the same scenario.

    Steps come to cost more as its domains fill up.
    """
    pytest.importorskip("gymnasium", reason="training is not installed")
    import numpy as np

    from kuayu_training.scheduling.env import SchedulingEnv

    steps = 150
    environment = SchedulingEnv(purpose="benchmark speed")

    def prepare() -> tuple[()]:
        environment.reset(options={"scenario": 0})
        return ()

    def take_steps() -> int:
        ends = [environment.step(np.int64(0))[2] for _ in range(steps)]
        return sum(ends)

    ends = measure(take_steps, prepare=prepare, rounds=3, steps=steps)
    environment.close()
    assert not ends


@pytest.mark.benchmark(timer=seconds_of_all_processes)
def test_the_command_line_is_imported(measure: Measurement) -> None:
    """In a new process, whose own start is part of it."""
    command = (sys.executable, "-c", "import kuayu.cli")
    finished = measure(lambda: subprocess.run(command, check=False))
    assert finished.returncode == 0
