"""What of a backup plan is held: no more spares than a pool shall have, and no more copies than fit."""

import dataclasses

from conformance.testbed.recovery.plain_windows import HERE, THERE, Json, job, plain

from kuayu_conformance.testbed.recovery.world import Copy, World, fewest, hold

WORLD = plain(job(), job("other"), free=5)
NUMBERS = {"job": 0, "other": 1}


def kept(
    *copies: tuple[str, str, float], world: World = WORLD, **spares: int
) -> tuple[tuple[int, ...], list[Copy], int]:
    """Spares and copies that are held, and how much is not."""
    pools = [{"domain": name, "spares": count, "risk": 0.0, "price": 0.0} for name, count in spares.items()]
    told: list[Json] = [{"job": name, "domain": domain, "period": period} for name, domain, period in copies]
    found = hold(world, {"pools": pools, "copies": told})
    return found.spares, list(found.copies), len(found.left_out)


def test_a_pool_has_the_fewest_spares_for_the_risk_however_many_are_told() -> None:
    """Two nodes fail 2/300 times within the repair time, of which more than three do once in 1.2e10."""
    assert fewest(WORLD, 0) == 3
    assert kept(here=2, there=5) == ((2, 3, 0), [], 1)
    assert kept(here=2**53, nowhere=1) == ((3, 0, 0), [], 2)


def test_where_too_few_are_free_all_of_them_are_a_pool() -> None:
    assert fewest(plain(job(), free=1), 0) == 1


def test_copies_beyond_the_share_of_a_store_are_left_out_in_the_order_of_the_plan() -> None:
    """Each takes half of what copies may take of the store, then some."""
    assert kept(("job", HERE, 40.0), ("other", HERE, 40.0))[2] == 0
    assert kept(("job", HERE, 39.0), ("other", HERE, 40.0))[1] == [Copy(0, 0, 39.0)]


def test_copies_beyond_the_share_of_a_link_likewise() -> None:
    assert kept(("job", THERE, 400.0), ("other", THERE, 400.0))[2] == 0
    assert kept(("job", THERE, 400.0), ("other", THERE, 390.0))[1] == [Copy(0, 1, 400.0)]
    assert kept(("job", THERE, 1e-320))[1] == []


def test_copies_beyond_the_room_of_a_store_likewise() -> None:
    small = dataclasses.replace(WORLD.domains[0], capacity=399e9)
    world = dataclasses.replace(WORLD, domains=(small, *WORLD.domains[1:]))
    assert kept(("job", HERE, 400.0), ("other", HERE, 400.0), world=world)[1] == [Copy(0, 0, 400.0)]


def test_what_nobody_knows_or_what_stands_twice_is_left_out() -> None:
    found = kept(("job", HERE, 400.0), ("job", HERE, 500.0), ("nobody", HERE, 400.0), ("job", "nowhere", 400.0))
    assert found == ((0, 0, 0), [Copy(0, 0, 400.0)], 3)


def test_without_a_plan_nothing_is_held_and_spares_have_their_price() -> None:
    assert hold(WORLD, None).spares == (0, 0, 0)
    pools = [{"domain": HERE, "spares": 2, "risk": 0.0, "price": 0.0}]
    assert hold(WORLD, {"pools": pools, "copies": []}).price(WORLD) == 12.0
