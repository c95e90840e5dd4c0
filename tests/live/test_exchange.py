"""Sums and values over real sockets and gateways, between threads that stand for workers."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.nodes import SIZE, Gateways, Node

from kuayu.live.exchange import Exchange
from kuayu.live.mailbox import Mailbox, Slip, Superseded
from kuayu.live.optimiser import stretch
from kuayu.live.wire import Broken, frame, receive


def test_sums_and_values_are_those_of_all(nodes: list[Node]) -> None:
    gradients = [np.random.default_rng(number).integers(-(1 << 50), 1 << 50, SIZE) for number in range(3)]
    exchanges = [each.under(1, nodes) for each in nodes]

    def step(rank: int) -> tuple[int, np.ndarray]:
        total, loss = exchanges[rank].scatter(1, gradients[rank], rank)
        return loss, exchanges[rank].gather(1, (total % 1000).astype(np.float32))

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(step, range(3)))
    wanted = (np.sum(gradients, axis=0) % 1000).astype(np.float32)
    for loss, whole in found:
        assert loss == 0 + 1 + 2
        assert np.array_equal(whole, wanted)


def test_a_cut_link_holds_the_step_until_there_is_another_plan(nodes: list[Node], gateways: Gateways) -> None:
    first, second, lost = nodes
    exchanges = [each.under(1, nodes) for each in nodes]
    ones = np.ones(SIZE, dtype=np.int64)
    gateways.order(cut=lost.member.domain, peers_only=True)

    def step(exchange: Exchange) -> None:
        total, _ = exchange.scatter(1, ones, 0)
        exchange.gather(1, total.astype(np.float32))

    with ThreadPoolExecutor(3) as pool:
        steps = [pool.submit(step, each) for each in exchanges]
        two = [first, second]
        for each in two:
            each.mailbox.announce(2)
        for under_way in steps[:2]:
            with pytest.raises(Superseded):
                under_way.result(timeout=30)
        again = [each.under(2, two) for each in two]
        for together in [pool.submit(each.scatter, 1, ones, 0) for each in again]:
            total, _ = together.result(timeout=30)
            assert set(total) == {2}
        gateways.order(mend=lost.member.domain)
        # What waited in the link may come before the plan does: sums of the old one, but never anyone's values.
        lost.mailbox.announce(2)
        with pytest.raises(Superseded):
            steps[2].result(timeout=30)


def test_what_an_older_generation_sends_counts_nothing() -> None:
    mailbox = Mailbox()
    mailbox.announce(4)
    mailbox.advance(4)
    mailbox.put(Slip(3, "sums", 7, "gone"), {}, b"old")
    mailbox.put(Slip(5, "sums", 7, "early"), {}, b"new")
    assert mailbox.refused == 1
    mailbox.announce(5)
    mailbox.advance(5)
    assert mailbox.take(Slip(5, "sums", 7, "early")) == ({}, b"new")
    assert mailbox.take(Slip(5, "sums", 7, "gone"), timeout=0.0) is None


def test_a_wait_ends_with_a_newer_plan() -> None:
    mailbox = Mailbox()
    threading.Timer(0.05, mailbox.announce, (1,)).start()
    with pytest.raises(Superseded):
        mailbox.take(Slip(0, "sums", 1, "silent"))


@given(world=st.integers(1, 40), size=st.integers(0, 500))
def test_stretches_share_all_without_overlap(world: int, size: int) -> None:
    shares = [range(size)[stretch(rank, world, size)] for rank in range(world)]
    assert [each for share in shares for each in share] == list(range(size))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(text=st.binary(min_size=1, max_size=40))
def test_what_is_no_frame_is_refused(text: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\x00\x00\x00\x02\x00\x00\x00\x00" + b"[]" if len(text) % 2 else text)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(Broken):
            receive(ours)


def test_a_frame_arrives_as_it_was_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(frame({"kind": "sums"}, b"abc") + frame({}))
        theirs.close()
        assert receive(ours) == ({"kind": "sums"}, b"abc")
        assert receive(ours) == ({}, b"")
        assert receive(ours) is None
