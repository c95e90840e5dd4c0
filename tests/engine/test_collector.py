"""The collector against a service that dies, loses answers, forgets, and comes back: nothing lost, none doubled."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from commands import run, running
from engine.recording_service import RecordingService, problem

from kuayu.client import Client, ClientError
from kuayu.engine.collector import Collector, Outbox, Tally, merged
from kuayu.engine.host import Host
from kuayu_schemas.models import (
    AcceleratorKind,
    Device,
    Node,
    NodeRecord,
    PrecisionThroughput,
    Revision,
    Sample,
    SubjectKind,
)

PERIOD_S = 0.02
PATIENCE_S = 20.0


class RememberingHost(Host):
    """This host, remembering what it said."""

    def __init__(self) -> None:
        super().__init__(nvidia=None)
        self.said: list[Sample] = []

    def samples(self, node: str) -> list[Sample]:
        """What it says now."""
        samples = super().samples(node)
        self.said += samples
        return samples


class Running:
    """A collector at work in a thread of its own."""

    def __init__(self, service: RecordingService, capacity: int) -> None:
        self.host = RememberingHost()
        self.client = Client(service.url, timeout_s=1.0, attempts=1)
        self.collector = Collector(self.client, self.host, domain="d-1", node="n-1", capacity=capacity)
        self.stop = threading.Event()
        self.result: Tally | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.result = self.collector.run(self.stop, period_s=PERIOD_S)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds, which it must before long."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, self.collector.tally
            time.sleep(PERIOD_S / 4)

    def end(self) -> Tally:
        """Have it stop and hand over what waits."""
        self.stop.set()
        self._thread.join(PATIENCE_S)
        assert self.result is not None
        return self.result


@contextmanager
def collecting(service: RecordingService, capacity: int = 100_000) -> Iterator[Running]:
    running = Running(service, capacity)
    try:
        yield running
    finally:
        running.stop.set()
        running.end()
        running.client.close()


def wire(samples: list[Sample]) -> list[dict[str, object]]:
    return [sample.to_wire() for sample in samples]


def test_all_that_was_observed_arrives_once_and_in_order(service: RecordingService) -> None:
    with collecting(service) as running:
        running.until(lambda: len(service.taken) >= 20)
        tally = running.end()
    assert service.taken == wire(running.host.said)
    assert (tally.taken, tally.waiting, tally.dropped, tally.rejected) == (len(service.taken), 0, 0, 0)
    assert service.resources["/v1/nodes/n-1"]["domain"] == "d-1"


def test_a_service_that_dies_and_comes_back_misses_nothing(service: RecordingService) -> None:
    with collecting(service) as running:
        for _ in range(2):
            before = len(service.taken)
            running.until(lambda before=before: len(service.taken) > before)  # type: ignore[misc]
            service.die()
            running.until(lambda: running.collector.tally.waiting > 10)
            running.until(lambda: "no answer" in running.collector.tally.problem)
            service.start()
        running.until(lambda: running.collector.tally.waiting < 5)
        running.end()
    assert service.taken == wire(running.host.said)


def test_a_service_that_dies_before_it_could_answer_takes_nothing_twice(service: RecordingService) -> None:
    service.lose_answers = 3
    with collecting(service) as running:
        running.until(lambda: service.lose_answers == 0 and len(service.keys) > 1)
        running.end()
    assert service.taken == wire(running.host.said)


def test_a_service_that_is_away_at_first_gets_everything_later(service: RecordingService) -> None:
    service.die()
    with collecting(service) as running:
        running.until(lambda: len(running.host.said) > 20)
        service.start()
        running.until(lambda: len(service.taken) > 20)
        running.end()
    assert service.taken == wire(running.host.said)


def test_a_service_that_forgot_the_node_is_told_again(service: RecordingService) -> None:
    with collecting(service) as running:
        running.until(lambda: len(service.taken) > 4)
        service.resources.clear()
        running.until(lambda: "/v1/nodes/n-1" in service.resources)
        tally = running.end()
    assert service.taken == wire(running.host.said)
    assert tally.rejected == 0


def test_a_batch_too_large_for_the_service_travels_in_parts(service: RecordingService) -> None:
    service.max_batch = 3
    with collecting(service) as running:
        running.until(lambda: len(service.taken) > 4)
        service.canned.append((413, {}, problem("payload-too-large")))
        running.until(lambda: len(service.taken) > 12)
        running.end()
    assert service.taken == wire(running.host.said)


def test_what_does_not_fit_is_dropped_from_the_old_end_and_counted(service: RecordingService) -> None:
    service.die()
    with collecting(service, capacity=10) as running:
        running.until(lambda: running.collector.tally.dropped > 20)
        service.start()
        running.until(lambda: len(service.taken) > 10)
        tally = running.end()
    said = iter(wire(running.host.said))
    assert all(sample in said for sample in service.taken), "what arrived is in order"
    assert service.taken[-1] == running.host.said[-1].to_wire(), "the newest is there"
    assert tally.dropped + len(service.taken) == len(running.host.said)


def test_a_clock_that_is_off_is_noticed(service: RecordingService) -> None:
    service.received_at = "2020-01-01T00:00:00.000Z"
    with collecting(service) as running:
        running.until(lambda: len(service.taken) > 0)
        assert running.end().clock_ahead_s > 86400


def test_a_refused_registration_ends_the_collector(service: RecordingService) -> None:
    service.canned.append((401, {}, problem("unauthorised")))
    with Client(service.url, attempts=1) as client:
        collector = Collector(client, Host(nvidia=None), domain="d-1", node="n-1", capacity=10)
        with pytest.raises(ClientError, match="token"):
            collector.run(threading.Event(), period_s=PERIOD_S, duration_s=PATIENCE_S)


def test_what_others_registered_about_the_node_is_kept() -> None:
    peak = PrecisionThroughput(fp64=1e12)
    known = NodeRecord(
        id="n-1",
        label="rack 4",
        domain="d-1",
        devices=[
            Device(id="cpu", kind=AcceleratorKind.cpu, vendor="v", model="old", peak_matrix_throughput=peak),
            Device(id="gone", kind=AcceleratorKind.gpu, vendor="v", model="m"),
        ],
        revision=Revision(epoch="e", number=1),
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    seen = Node(id="n-1", domain="d-1", devices=[Device(id="cpu", kind=AcceleratorKind.cpu, vendor="v", model="new")])
    devices = merged(seen, known).devices
    assert devices is not None
    (device,) = devices
    assert (device.model, device.peak_matrix_throughput) == ("new", peak)
    assert merged(seen, known).label == "rack 4"
    assert merged(seen, None) == seen


def test_the_outbox_never_gives_up_the_batch_under_way() -> None:
    observed = datetime(2026, 1, 1, tzinfo=UTC)
    samples = [
        Sample(subject="n-1", subject_kind=SubjectKind.node, observed_at=observed, power=power) for power in range(1, 7)
    ]
    outbox = Outbox(4)
    outbox.put(samples[:2])
    batch = outbox.batch(10, 0.0)
    assert batch is not None
    outbox.put(samples[2:])
    assert outbox.batch(10, 0.0) is batch, "the same batch until its fate is known"
    assert (len(outbox), outbox.dropped) == (4, 2)
    outbox.settle(again=batch.samples[1:])
    following = outbox.batch(10, 0.0)
    assert following is not None
    assert following.key != batch.key
    assert following.samples == (samples[1], samples[4])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_hands_over_what_waits_and_leaves_cleanly(
    service: RecordingService, number: signal.Signals
) -> None:
    arguments = ("--url", service.url, "--domain", "d-1", "--node", "n-1", "--period", "0.1", "--no-probe")
    with running("collect", *arguments, COLUMNS="200") as process:
        deadline = time.monotonic() + PATIENCE_S
        while len(service.taken) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        said, complained = process.communicate(timeout=PATIENCE_S)
        assert process.wait() == 0, complained
    assert f"taken {len(service.taken)}" in said.splitlines()[-1]


def test_the_command_ends_after_its_duration_with_its_probes_uploaded(service: RecordingService) -> None:
    arguments = ("--url", service.url, "--domain", "d-1", "--node", "n-1", "--duration", "0.3", "--probe-budget", "0.5")
    ended = run("collect", *arguments, timeout=60)
    assert ended.returncode == 0, ended.stderr
    probed = [sample for sample in service.taken if "scale_out_bandwidth" in sample]
    assert len(probed) == 1


def test_commands_say_what_is_wrong_without_a_traceback(service: RecordingService) -> None:
    service.canned.append((401, {}, problem("unauthorised")))
    for name, arguments, words in (
        ("collect", ("--url", service.url, "--domain", "d-1", "--node", "n-1", "--no-probe"), "token"),
        ("collect", ("--url", service.url, "--domain", "d 1", "--node", "n-1", "--no-probe"), "not a valid identifier"),
        ("collect", ("--url", "localhost", "--domain", "d-1", "--node", "n-1", "--no-probe"), "http://HOST:PORT"),
        ("probe", ("--only", "matmull"), "probes are matmul"),
        ("probe", ("--upload", service.url), "--domain"),
    ):
        ended = run(name, *arguments, timeout=PATIENCE_S, COLUMNS="200")
        output = ended.stdout + ended.stderr
        assert ended.returncode != 0
        assert "Traceback" not in output
        assert words in output
        assert "hint" in output


def test_the_probe_command_prints_json_and_uploads(service: RecordingService) -> None:
    where = ("--upload", service.url, "--domain", "d-1", "--node", "n-1")
    ended = run("probe", "--budget", "0.3", "--only", "matmul", "--json", *where, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert '"measure": "sustained_matrix_throughput"' in ended.stdout
    (sample,) = service.taken
    assert set(sample["sustained_matrix_throughput"]) >= {"fp64", "fp32"}
