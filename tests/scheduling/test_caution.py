"""What keeps a scorer from harm, and what is made of reports that are not true."""

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scheduling.states import accelerator, data, domain, pool, request, running, spec

from kuayu.scheduling.availability import paces, trusted
from kuayu.scheduling.parse import snapshot_of
from kuayu.scheduling.place import place
from kuayu.scheduling.scoring import BEGINS, CROWD, FEATURES, LOST, MOVING, RUNS, WAITS, Rule, Weights, dominance_filter
from kuayu.scheduling.state import Floats

Json = dict[str, Any]


class Fixed:
    """Gives the same scores whatever it sees."""

    def __init__(self, *scores: float) -> None:
        self._scores = scores

    def scores(self, features: Floats, weights: Weights) -> Floats:
        """They."""
        del weights
        return np.resize(np.array(self._scores), len(features))


def candidates(*rows: tuple[float, float, float]) -> Floats:
    """Candidates that begin, run and cost so much."""
    features = np.zeros((len(rows), len(FEATURES)))
    features[:, BEGINS], features[:, RUNS], features[:, MOVING] = np.array(rows).T
    features[:, CROWD] = features[:, RUNS]
    return features


def test_the_least_score_wins_and_no_way_is_none() -> None:
    assert dominance_filter(candidates((0, 10, 5), (0, 20, 0)), np.array([2.0, 1.0]), Weights()) == (1, False)
    assert dominance_filter(candidates((np.inf, 10, 0)), np.array([1.0]), Weights()) == (None, False)


def test_what_is_plainly_worse_is_not_taken() -> None:
    assert dominance_filter(candidates((0, 10, 5), (0, 20, 5)), np.array([2.0, 1.0]), Weights()) == (0, True)


def test_to_start_now_is_not_plainly_worse_than_to_wait_for_what_ends_sooner() -> None:
    its = candidates((0, 10, 5), (0, 20, 5))
    its[0, WAITS] = 2.0
    assert dominance_filter(its, np.array([2.0, 1.0]), Weights()) == (1, False)


@given(arrays(np.float64, (6, len(FEATURES)), elements=st.integers(0, 3).map(float)), st.integers(0, 15))
@example(np.eye(6, len(FEATURES), LOST), 0)
def test_what_the_rule_takes_is_never_plainly_worse(features: Floats, counting: int) -> None:
    """Another scorer that says the same as the rule is left alone, but for candidates that it holds equal."""
    weights = Weights(*(float(counting >> place & 1) for place in range(4)))
    scores = Rule().scores(features, weights)
    taken, replaced = dominance_filter(features, scores, weights)
    assert taken is not None
    assert scores[taken] == scores.min()
    assert not replaced or np.count_nonzero(scores == scores.min()) > 1


def test_scores_that_are_no_numbers_make_the_rule_answer() -> None:
    assert dominance_filter(candidates((0, 10, 0), (0, 20, 0)), np.array([np.nan, 1.0]), Weights()) == (0, True)
    asked = request([domain("a", pool(8)), domain("b", pool(8))], [spec("j", data=data("d", 1e12, "b"))])
    report = place(asked, Fixed(np.nan))
    assert report["method"]["fallback"]
    assert report["decisions"] == place(asked)["decisions"]


def test_of_free_devices_those_count_that_are_not_known_to_be_held() -> None:
    its = running(spec("r"), [("a", 8)], rate=8.0)
    snapshot = snapshot_of(
        request([domain("a", pool(16, free=16)), domain("b", pool(8), reachable=False)], running=[its])["state"]
    )
    assert sorted(trusted(snapshot).tolist()) == [0, 8]


def test_a_domain_that_has_refused_for_want_of_room_is_left_alone() -> None:
    kinds = [accelerator(), accelerator("quick", 4.0)]
    places = [domain("a", pool(8)), domain("b", pool(8, kind="quick"))]
    asked = request(places, [spec("j")], accelerators=kinds)
    assert place(asked)["decisions"][0]["placement"]["shares"][0]["domain"] == "b"
    asked["state"]["refused"] = [{"job": "j", "verb": "start", "reason": "no_room"}]
    shares = [each["placement"]["shares"][0]["domain"] for each in place(asked)["decisions"]]
    assert shares != ["b"]


def test_a_domain_is_as_fast_as_jobs_are_there() -> None:
    """Three jobs are at half of what eight reference devices do."""
    runs = [running(spec(f"r{n}"), [("a", 8)], rate=4.0) for n in range(3)]
    snapshot = snapshot_of(request([domain("a", pool(32, free=8)), domain("b", pool(16))], running=runs)["state"])
    found = paces(snapshot)[[snapshot.names.domains.index(name) for name in "ab"]]
    assert found[0] < 0.6
    assert found[1] == 1.0


def test_a_slow_domain_is_avoided_once_it_is_known_to_be_slow() -> None:
    kinds = [accelerator(), accelerator("quick", 2.0)]
    places = [domain("a", pool(32, free=8)), domain("b", pool(8))]
    its = [running(spec(f"r{n}"), [("a", 8)], rate=1.0) for n in range(3)]
    decisions = place(request(places, [spec("j", data=data("d", 1e9, "a"))], running=its, accelerators=kinds))[
        "decisions"
    ]
    assert [each["placement"]["shares"][0]["domain"] for each in decisions if each["job"] == "j"] == ["b"]
