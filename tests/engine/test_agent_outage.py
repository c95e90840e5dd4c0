"""The aggregator between nodes and a service that really die: what it acknowledged is held once, whatever happens."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine.agent_process import AgentProcess
from engine.ledger import Sender, compare
from service.conftest import Service

NODES = 3


@contextmanager
def domain(folder: Path, *options: str) -> Iterator[tuple[Service, AgentProcess, list[Sender]]]:
    """A service, an aggregator before it, and nodes that send to that."""
    service = Service(f"sqlite:///{folder / 'kuayu.db'}")
    agent = AgentProcess(service.url, folder / "spool.db", *options)
    senders = [Sender(agent.url, f"node-{number}", period=0.01, batch=5) for number in range(NODES)]
    try:
        service.start()
        agent.start()
        for sender in senders:
            service.register(sender.node)
            sender.start()
        yield service, agent, senders
    finally:
        agent.close()
        service.client.close()
        if service.process is not None and service.process.poll() is None:
            service.stop()


def end(agent: AgentProcess, senders: list[Sender]) -> None:
    """Let the nodes come to an end, and wait until nothing is left in the spool."""
    for sender in senders:
        sender.stop()
    agent.until("spooled_samples", 0)


@pytest.mark.slow
def test_an_outage_with_kills_of_either_side_loses_and_doubles_nothing(tmp_path: Path) -> None:
    chance = random.Random(15)
    with domain(tmp_path) as (service, agent, senders):
        time.sleep(1.0)
        service.stop(signal.SIGKILL)
        for _ in range(2):
            time.sleep(chance.uniform(0.3, 1.0))
            agent.stop(signal.SIGKILL)
            agent.start()
        waiting = agent.figures()["spooled_samples"]
        service.start()
        for _ in range(2):
            time.sleep(chance.uniform(0.05, 0.6))
            agent.stop(signal.SIGKILL)
            agent.start()
            time.sleep(chance.uniform(0.05, 0.6))
            service.stop(signal.SIGKILL)
            service.start()
        end(agent, senders)
        found = compare(senders, service.client)
    assert waiting > 0, "there was an outage"
    assert found.acknowledged > 200
    assert found.exact, found


@pytest.mark.slow
def test_many_small_batches_become_few_large_ones(tmp_path: Path) -> None:
    with domain(tmp_path) as (service, agent, senders):
        time.sleep(3.0)
        end(agent, senders)
        figures = agent.figures()
        batches = figures["received_samples_total/accepted"] / senders[0].batch
        assert compare(senders, service.client).exact
    assert figures["parcels_total"] < batches / 4
    assert figures["forwarded_samples_total"] == figures["received_samples_total/accepted"]
    assert figures["up"] == 1


@pytest.mark.slow
def test_a_full_spool_turns_senders_away_and_loses_nothing(tmp_path: Path) -> None:
    with domain(tmp_path, "--spool-limit", "100samples") as (service, agent, senders):
        service.stop(signal.SIGKILL)
        deadline = time.monotonic() + 30
        while not all(sender.failures["503"] for sender in senders):
            assert time.monotonic() < deadline, "nobody was turned away"
            time.sleep(0.1)
        figures = agent.figures()
        assert 0 < figures["spooled_samples"] <= 100
        agent.until("up", 0)
        service.start()
        end(agent, senders)
        assert compare(senders, service.client).exact
    assert figures["turned_away_requests_total/overloaded"] > 0


@pytest.mark.slow
def test_an_orderly_end_hands_over_what_waits(tmp_path: Path) -> None:
    with domain(tmp_path, "--linger", "10") as (service, agent, senders):
        time.sleep(1.0)
        for sender in senders:
            sender.stop()
        assert agent.stop() == 0
        assert compare(senders, service.client).exact
        assert "all samples were forwarded" in agent.log.read_text("utf-8")


@pytest.mark.slow
def test_what_cannot_be_handed_over_stays_for_the_next_start(tmp_path: Path) -> None:
    with domain(tmp_path, "--drain", "1") as (service, agent, senders):
        time.sleep(0.5)
        service.stop(signal.SIGKILL)
        time.sleep(0.5)
        for sender in senders:
            sender.stop()
        assert agent.stop() == 0
        assert "stay in" in agent.log.read_text("utf-8")
        service.start()
        agent.start()
        end(agent, senders)
        assert compare(senders, service.client).exact
