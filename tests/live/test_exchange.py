"""Sums and values over real sockets and gateways, between threads that stand for workers."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.nodes import SIZE, Gateways, Node

from kuayu.live.checkpoint import Exchange, rank_slice
from kuayu.live.transport import BrokenFrameError, Inbox, MessageKey, SupersededError, frame, receive


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
            each.inbox.announce(2)
        for under_way in steps[:2]:
            with pytest.raises(SupersededError):
                under_way.result(timeout=30)
        again = [each.under(2, two) for each in two]
        for together in [pool.submit(each.scatter, 1, ones, 0) for each in again]:
            total, _ = together.result(timeout=30)
            assert set(total) == {2}
        gateways.order(mend=lost.member.domain)
        # What waited in the link may come before the plan does: sums of the old one, but never anyone's values.
        lost.inbox.announce(2)
        with pytest.raises(SupersededError):
            steps[2].result(timeout=30)


def test_what_an_older_generation_sends_counts_nothing() -> None:
    inbox = Inbox()
    inbox.announce(4)
    inbox.advance(4)
    inbox.put(MessageKey(3, "sums", 7, "gone"), {}, b"old")
    inbox.put(MessageKey(5, "sums", 7, "early"), {}, b"new")
    assert inbox.refused == 1
    inbox.announce(5)
    inbox.advance(5)
    assert inbox.take(MessageKey(5, "sums", 7, "early")) == ({}, b"new")
    assert inbox.take(MessageKey(5, "sums", 7, "gone"), timeout=0.0) is None


def test_a_wait_ends_with_a_newer_plan() -> None:
    inbox = Inbox()
    threading.Timer(0.05, inbox.announce, (1,)).start()
    with pytest.raises(SupersededError):
        inbox.take(MessageKey(0, "sums", 1, "silent"))


@given(world=st.integers(1, 40), size=st.integers(0, 500))
def test_stretches_share_all_without_overlap(world: int, size: int) -> None:
    shares = [range(size)[rank_slice(rank, world, size)] for rank in range(world)]
    assert [each for share in shares for each in share] == list(range(size))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(text=st.binary(min_size=1, max_size=40))
def test_what_is_no_frame_is_refused(text: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\x00\x00\x00\x02\x00\x00\x00\x00" + b"[]" if len(text) % 2 else text)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(BrokenFrameError):
            receive(ours)


def test_a_frame_arrives_as_it_was_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(frame({"kind": "sums"}, b"abc") + frame({}))
        theirs.close()
        assert receive(ours) == ({"kind": "sums"}, b"abc")
        assert receive(ours) == ({}, b"")
        assert receive(ours) is None
