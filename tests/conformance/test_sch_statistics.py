"""Several figures, quotients of totals: against published tables, by hand, and against their promise."""

from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from kuayu_conformance.statistics import ratio_lower_bound, stepped_down
from kuayu_conformance.statistics.quotients import Quotient, Stratum, averaged, quotient


def holm(*chances: float) -> list[float]:
    """Level of each of some tests with these p-values."""
    rejects = {str(place): lambda level, p=p: p <= level for place, p in enumerate(chances)}
    return list(dict(sorted(stepped_down(rejects).items())).values())


def test_what_is_rejected_leaves_its_share_to_the_others() -> None:
    third, half = 0.05 / 3, 0.05 / 2
    assert holm(0.01, 0.02, 0.04) == pytest.approx([third, half, 0.05]), "all of them are rejected, one by one"
    assert holm(0.04, 0.01, 0.03) == pytest.approx([half, third, half]), "the other two miss a half"
    assert holm(0.02, 0.03, 0.04) == pytest.approx([third] * 3), "none is rejected, though each would be alone"


def test_a_quotient_of_two_windows_by_hand() -> None:
    """Totals 6 and 8: windows lie 2·2/6 − 2·3/8 and 2·4/6 − 2·5/8 from it, which is ∓1/12."""
    found = quotient([Stratum([[2.0, 4.0]], [[3.0, 5.0]])])
    assert found.estimate == pytest.approx(0.75)
    assert found.error == pytest.approx(1 / 12)
    assert found.upper(0.05) == pytest.approx(0.75 * exp(-float(stdtrit(1, 0.05)) / 12))
    assert found.lower(0.05) == pytest.approx(0.75**2 / found.upper(0.05))


def test_products_of_totals_are_divided() -> None:
    found = quotient([Stratum([[1.0, 1.0], [10.0, 14.0]], [[4.0, 4.0], [6.0, 6.0]])])
    assert found.estimate == pytest.approx(2 * 24 / (8 * 12))


def test_strata_count_the_same_however_large_their_figures() -> None:
    small, large = Stratum([[1.0, 1.1]], [[2.0, 2.2]]), Stratum([[800.0, 880.0]], [[1000.0, 1100.0]])
    found = quotient([small, large])
    assert found.estimate == pytest.approx(sqrt(0.5 * 0.8))
    assert found.n == 4


def test_whoever_does_the_same_has_a_quotient_of_one_without_error() -> None:
    row = [3.0, 5.0, 4.0]
    found = quotient([Stratum([row], [row])])
    assert (found.estimate, found.lower(0.01), found.upper(0.01)) == (pytest.approx(1.0), 1.0, 1.0)


def test_one_window_bounds_nothing_and_nought_divides_nothing() -> None:
    alone = quotient([Stratum([[1.0]], [[2.0]])])
    assert (alone.estimate, alone.lower(0.05), alone.upper(0.05)) == (0.5, 0.0, inf)
    assert quotient([Stratum([[1.0, 2.0]], [[0.0, 0.0]])]).estimate == inf
    free = quotient([Stratum([[0.0, 0.0]], [[1.0, 2.0]])])
    assert (free.estimate, free.upper(0.05)) == (0.0, 0.0)


def test_figures_of_other_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        quotient([Stratum([[1.0]], [[1.0, 2.0]])])
    with pytest.raises(ValueError, match="stratum"):
        quotient([])


@given(
    st.lists(st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0)), min_size=2, max_size=12),
    st.floats(0.001, 0.2),
)
def test_a_stricter_bound_is_farther_away(rows: list[tuple[float, float]], level: float) -> None:
    over, under = ([float(row[side]) for row in rows] for side in (0, 1))
    found = quotient([Stratum([over], [under])])
    assert found.lower(level / 2) <= found.lower(level) <= found.estimate * (1 + 1e-12)
    assert found.estimate <= found.upper(level) * (1 + 1e-12) <= found.upper(level / 2) * (1 + 2e-12)


def test_the_bound_of_a_quotient_holds_where_windows_differ_as_much_as_they_do() -> None:
    """Windows of B1 spread more than those of whoever helps out between domains; at eight windows it errs rarely."""
    chance = np.random.default_rng(1)
    wrong = 0
    for _ in range(2000):
        drawn = chance.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], 8)
        under, over = np.exp(0.6 * drawn[:, 0] - 0.18), 0.7 * np.exp(0.4 * drawn[:, 1] - 0.08)
        wrong += quotient([Stratum([over.tolist()], [under.tolist()])]).upper(0.05) < 0.7
    assert wrong / 2000 <= 0.06


def test_a_ratio_is_bounded_over_windows() -> None:
    assert ratio_lower_bound([(9.0, 10.0)] * 8, "seed") == pytest.approx(0.9)
    spread = [(10.0, 10.0)] * 7 + [(5.0, 10.0)]
    assert 0.75 < ratio_lower_bound(spread, "seed") < 75 / 80
    with pytest.raises(ValueError, match="clusters"):
        ratio_lower_bound([(0.0, 0.0)], "seed")


def test_the_error_is_that_of_the_logarithm() -> None:
    rows = [[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0]]
    found = quotient([Stratum([rows[0]], [rows[1]])])
    relative = np.array(rows[0]) / 2.5 - 1.0
    assert found.error == pytest.approx(float(relative.std(ddof=1)) / 2)
    assert log(found.estimate) == pytest.approx(log(1.25))


def test_the_mean_of_quotients_by_hand() -> None:
    found = averaged([Quotient(0.5, 0.2, 10.0, 11), Quotient(1.0, 0.1, 20.0, 21)])
    assert (found.estimate, found.n) == (0.75, 32)
    assert found.error == pytest.approx(sqrt(0.1**2 + 0.1**2) / 2)
    assert found.freedom == pytest.approx(0.02**2 / (0.01**2 / 10 + 0.01**2 / 20)), "Satterthwaite"
    away = -stdtrit(found.freedom, 0.05) * found.error
    assert (found.lower(0.05), found.upper(0.05)) == pytest.approx((0.75 - away, 0.75 + away))
    alone = Quotient(0.5, 0.2, 10.0, 11)
    assert averaged([alone]) is alone
    with pytest.raises(ValueError, match="needs a quotient"):
        averaged([])


def test_the_mean_of_quotients_keeps_its_promise() -> None:
    """Three sources whose true quotients are 0.6, 0.8 and 0.7, with windows of very different length."""
    random, missed = np.random.default_rng(2), 0
    for _ in range(1000):
        quotients = []
        for true in (0.6, 0.8, 0.7):
            under = random.lognormal(0.0, 0.6, 48)
            quotients.append(quotient([Stratum([under * true * random.lognormal(-0.02, 0.2, 48)], [under])]))
        missed += averaged(quotients).upper(0.05) < 0.7
    assert missed / 1000 < 0.07


def test_a_mean_with_a_source_of_one_window_is_bounded_by_nothing() -> None:
    found = averaged([Quotient(0.5, inf, 0.0, 1), Quotient(0.5, 0.1, 9.0, 10)])
    assert (found.lower(0.05), found.upper(0.05)) == (0.0, inf)
    assert averaged([Quotient(inf, inf, 0.0, 1), Quotient(0.5, 0.1, 9.0, 10)]).estimate == inf
