"""The all-reduce sums rightly, over real sockets, whatever the arrays and however many ranks."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.engine.probes.all_reduce import Ring, bus_bandwidth, ring_sockets


@settings(max_examples=30, deadline=None)
@given(ranks=st.integers(1, 6), elements=st.integers(0, 200), seed=st.integers(0, 2**32 - 1))
def test_every_rank_ends_with_the_sum_of_all(ranks: int, elements: int, seed: int) -> None:
    # Whole numbers, so that the order of the additions does not matter.
    arrays = np.random.default_rng(seed).integers(-(10**6), 10**6, (ranks, elements)).astype(np.float64)
    expected = arrays.sum(axis=0)

    def work(rank: int) -> None:
        with Ring(rank, ranks, ends[rank]) as ring:
            ring.all_reduce(arrays[rank])

    ends = ring_sockets(ranks)
    with ThreadPoolExecutor(ranks) as pool:
        list(pool.map(work, range(ranks)))
    assert (arrays == expected).all()


def test_arrays_larger_than_the_socket_buffers_do_not_block_the_ring() -> None:
    arrays = np.ones((3, 3 << 20), dtype=np.float32)
    ends = ring_sockets(3)

    def work(rank: int) -> None:
        with Ring(rank, 3, ends[rank]) as ring:
            ring.all_reduce(arrays[rank])
            ring.all_reduce(arrays[rank])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert (arrays == 9).all()


def test_a_rank_whose_neighbour_went_away_says_so() -> None:
    (left, right), (others_left, others_right) = ring_sockets(2)
    others_left.close()
    others_right.close()
    with Ring(0, 2, (left, right)) as ring, pytest.raises(ConnectionError):
        ring.all_reduce(np.ones(10))


def test_bus_bandwidth_is_what_each_link_carries() -> None:
    # Two ranks exchange half a buffer twice; many ranks approach twice the buffer.
    assert bus_bandwidth(2, 1e9, 1.0) == 1e9
    assert bus_bandwidth(8, 1e9, 0.5) == 3.5e9
    assert bus_bandwidth(1, 1e9, 1.0) == 0
