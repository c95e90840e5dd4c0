"""A checkpoint comes together again from memory, from a peer and from a file."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.nodes import Gateways, Node

from kuayu.live.checkpoint import KEPT, Key, Moments, State, Store, hand_out, rank_slice, restore_checkpoint
from kuayu.live.plan import FILE, Plan, Restore
from kuayu.live.transport import Header, SupersededError


def state(size: int) -> State:
    """A state of which no two numbers are alike."""
    values, first, second = np.arange(3 * size, dtype=np.float32).reshape(3, -1)
    return State(values, Moments(first, second))


def piece(whole: State, rank: int, world: int) -> bytes:
    """What one rank owns of it."""
    own = rank_slice(rank, world, whole.values.size)
    return State(whole.values[own], Moments(whole.moments.first[own], whole.moments.second[own])).to_bytes()


@given(size=st.integers(1, 60), world=st.integers(1, 9))
def test_pieces_joined_are_the_whole(size: int, world: int) -> None:
    whole = state(size)
    again = State.joined([piece(whole, rank, world) for rank in range(world)])
    assert again.to_bytes() == whole.to_bytes()


def test_the_newest_steps_are_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for step in range(10, 70, 10):
        key = Key(step, 1, 0)
        store.put(key, b"%d" % step)
        assert store.write(key, b"%d" % step)
    steps = range(10, 70, 10)
    assert [step for step in steps if store.get(Key(step, 1, 0))] == list(steps)[-KEPT:]
    assert [step for step in steps if store.read(Key(step, 1, 0))] == list(steps)[-KEPT:]


def test_a_checkpoint_comes_from_memory_a_peer_and_a_file(nodes: list[Node], tmp_path: Path) -> None:
    own, peer, _ = nodes
    whole = state(100)
    keys = [Key(20, 1, rank) for rank in range(3)]
    mine, theirs = Store(tmp_path), Store()
    mine.put(keys[0], piece(whole, 0, 3))
    theirs.put(keys[1], piece(whole, 1, 3))
    assert Store(tmp_path).write(keys[2], piece(whole, 2, 3))
    peer.serve = lambda header: hand_out(header, theirs, peer.peers)
    for each in (own, peer):
        each.under(2, [own, peer])
    restore = Restore(20, 1, ((own.member.id,), (peer.member.id,), (FILE,)))
    plan = Plan(2, (own.member, peer.member), restore, 100)
    found = restore_checkpoint(own.member.id, plan, restore, mine, own.peers, own.inbox)
    assert found.to_bytes() == whole.to_bytes()


def test_a_holder_behind_a_cut_link_is_waited_for_until_there_is_another_plan(
    nodes: list[Node], gateways: Gateways
) -> None:
    own, peer, _ = nodes
    asked: list[Header] = []
    peer.serve = asked.append
    gateways.order(cut=peer.member.domain, peers_only=True)
    for each in (own, peer):
        each.under(2, [own, peer])
    restore = Restore(20, 1, ((peer.member.id,),))
    plan = Plan(2, (own.member, peer.member), restore, 100)
    own.inbox.announce(3)
    with pytest.raises(SupersededError):
        restore_checkpoint(own.member.id, plan, restore, Store(), own.peers, own.inbox)
    assert not asked
