"""Links that nobody has measured are estimated from those that somebody has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.perception.links import DETOUR, FIBRE_KM_PER_S, Estimate, Path, estimate, great_circle

BEIJING, GUIYANG, LANZHOU = (39.9, 116.4), (26.65, 106.63), (36.06, 103.83)


def test_a_round_trip_is_the_same_from_the_other_end() -> None:
    found = estimate({}, [Path("ab", "a", "b", round_trip=0.03, bandwidth=1e9), Path("ba", "b", "a", bandwidth=1e9)])
    assert found == {"ba": Estimate(None, 0.03)}


def test_two_ends_measured_to_a_third_bound_the_time_between_them() -> None:
    paths = [Path("ac", "a", "c", round_trip=0.03), Path("bc", "b", "c", round_trip=0.01), Path("ab", "a", "b")]
    assert estimate({}, paths)["ab"].round_trip == pytest.approx((0.02 + 0.04) / 2)


def test_without_any_measurement_distance_tells() -> None:
    found = estimate({"a": BEIJING, "b": GUIYANG}, [Path("ab", "a", "b")])["ab"]
    assert found.bandwidth is None
    assert found.round_trip == pytest.approx(2 * great_circle(BEIJING, GUIYANG) / FIBRE_KM_PER_S * DETOUR)
    assert 0.015 < (found.round_trip or 0) < 0.05


def test_how_much_longer_paths_are_is_learnt_from_those_that_were_measured() -> None:
    straight = 2 * great_circle(BEIJING, LANZHOU) / FIBRE_KM_PER_S
    paths = [Path("ac", "a", "c", round_trip=2 * straight), Path("xb", "x", "b")]
    found = estimate({"a": BEIJING, "c": LANZHOU, "x": LANZHOU, "b": GUIYANG}, paths)["xb"]
    assert found.round_trip == pytest.approx(2 * 2 * great_circle(LANZHOU, GUIYANG) / FIBRE_KM_PER_S)


def test_nothing_is_made_of_nothing() -> None:
    assert estimate({}, [Path("ab", "a", "b")]) == {"ab": Estimate(None, None)}
    assert estimate({}, []) == {}


def test_an_end_that_takes_little_takes_little_from_everyone() -> None:
    names = "abcd"
    paths = [
        Path(f"{s}{d}", s, d, bandwidth=1e9 if d == "d" else 10e9)
        for s in names
        for d in names
        if s != d and (s, d) not in {("a", "d"), ("a", "b")}
    ]
    found = estimate({}, [*paths, Path("ad", "a", "d"), Path("ab", "a", "b")])
    assert (found["ad"].bandwidth or 0) < 0.5 * (found["ab"].bandwidth or 0)


def test_a_round_trip_of_nought_says_nothing() -> None:
    places = {"a": BEIJING, "b": GUIYANG, "c": LANZHOU}
    others = [Path("ba", "b", "a"), Path("ac", "a", "c")]
    found = estimate(places, [Path("ab", "a", "b", round_trip=0.0), *others])
    assert {name: found[name] for name in ("ba", "ac")} == estimate(places, others)


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), st.floats(1e6, 1e12)), max_size=12),
    st.floats(1e6, 1e12),
)
def test_no_estimate_is_more_than_the_link_was_built_for(rows: list[tuple[str, str, float]], capacity: float) -> None:
    paths = [Path(f"{i}", s, d, bandwidth=width, round_trip=0.01) for i, (s, d, width) in enumerate(rows)]
    found = estimate({}, [*paths, Path("new", "a", "z", capacity=capacity)])["new"]
    assert found.bandwidth is None or 0 < found.bandwidth <= capacity
