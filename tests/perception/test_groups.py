"""Sums over families and domains agree with sums made one by one, also where families overlap."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.perception.recognition.groups import Groups

pairs = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 5)), max_size=40, unique=True)


@settings(max_examples=60, deadline=None)
@given(pairs, st.integers(0, 2**16))
def test_sums_over_groups_are_those_of_their_members(made: list[tuple[int, int]], seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.normal(size=(3, 12)).astype(np.float32)
    gaps = np.where(random.random((3, 12)) < 0.3, np.float32(np.nan), values)
    member, group = np.array(made, np.intp).reshape(-1, 2).T
    groups = Groups.of(12, member, group)
    names = np.unique(group)
    mean, most, middle = groups.mean(values), groups.maximum(values), groups.median(gaps)
    for place, name in enumerate(names):
        rows = member[group == name]
        np.testing.assert_allclose(mean[:, place], values[:, rows].mean(1), atol=1e-6)
        np.testing.assert_array_equal(most[:, place], values[:, rows].max(1))
        for channel in range(3):
            known = gaps[channel, rows][~np.isnan(gaps[channel, rows])]
            expected = np.median(known) if len(known) else np.nan
            np.testing.assert_allclose(middle[channel, place], expected, atol=1e-6)
    back = groups.back(mean)
    for node in range(12):
        of = [mean[:, place] for place, name in enumerate(names) if node in member[group == name]]
        np.testing.assert_allclose(back[:, node], np.mean(of, 0) if of else np.zeros(3), atol=1e-6)
