"""Laws of the spool and of thinning: whatever happens in whatever order, nothing gets lost, doubled or out of order."""

import sqlite3
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.engine.agent.intake import Downsampler, Outline
from kuayu.engine.agent.settings import SpoolLimit
from kuayu.engine.agent.spool import Batch, DeferredSample, Spool, SpoolError
from kuayu_schemas.models import Durability

NO_LIMIT = SpoolLimit()

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 5)),
        st.tuples(st.just("pack"), st.integers(1, 8)),
        st.tuples(st.just("settle"), st.integers(0, 3)),
        st.tuples(st.sampled_from(["unpack", "undo", "restart", "bring_back"]), st.just(0)),
    ),
    max_size=25,
)


class World:
    """A spool, and beside it what should be true of it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.spool = Spool(file, "domain", NO_LIMIT, Durability.process)
        self.put: list[bytes] = []
        self.taken: list[bytes] = []

    def write(self, *bodies: bytes) -> None:
        """Put samples in."""
        self.spool.begin()
        self.spool.put(bodies, arrived=7)
        self.spool.commit()
        self.put += bodies

    def bodies(self, batch: Batch) -> list[tuple[int, bytes]]:
        """Numbers and samples of a batch."""
        run = "SELECT id, body FROM sample WHERE id BETWEEN ? AND ? ORDER BY id"
        return self.spool.db.execute(run, (batch.first, batch.last)).fetchall()

    def kept(self) -> list[bytes]:
        """All that the file holds."""
        return [body for (body,) in self.spool.db.execute("SELECT body FROM sample UNION ALL SELECT body FROM held")]

    def restart(self) -> None:
        """Close the file and open it anew."""
        self.spool.close()
        self.spool = Spool(self.file, "domain", NO_LIMIT, Durability.process)


def step(world: World, name: str, number: int) -> None:
    """Do one thing to the spool, as the aggregator would."""
    spool = world.spool
    if name == "put":
        world.write(*(b"%d" % (len(world.put) + each) * (1 + each) for each in range(number)))
        return
    if name == "restart":
        world.restart()
        return
    spool.begin()
    batch = spool.under_way()
    if name == "undo":
        spool.put([b"never"], 7)
        spool.rollback()
        return
    if name == "pack" and batch is None:
        spool.pack(number, 10_000)
    elif name == "bring_back" and batch is None:
        spool.bring_back(10)
    elif name == "unpack" and batch is not None:
        spool.unpack(batch)
    elif name == "settle" and batch is not None:
        rows = world.bodies(batch)
        held = rows[:number]
        world.taken += [body for _, body in rows[number:]]
        spool.settle(batch, [DeferredSample(each, due=5, waited=1.0) for each, _ in held])
    spool.commit()


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_each_sample_is_kept_until_it_is_taken_and_counted_rightly(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "spool.db")
        for name, number in steps:
            step(world, name, number)
            assert sorted(world.taken + world.kept()) == sorted(world.put)
        before = world.spool.level
        world.restart()
        assert world.spool.level == before, "what is counted on the way is what a count of the file gives"
        world.spool.close()


@given(st.lists(st.integers(1, 6), max_size=8), st.integers(1, 10), st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_parcels_hold_what_arrived_in_order_within_both_limits(arrivals: list[int], most: int, octets: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "spool.db")
        for number in arrivals:
            step(world, "put", number)
        spool, sent = world.spool, list[bytes]()
        spool.begin()
        while (batch := spool.pack(most, octets)) is not None:
            found = [body for _, body in world.bodies(batch)]
            assert 1 <= len(found) <= most
            assert len(found) == 1 or sum(map(len, found)) + len(found) <= octets
            assert spool.under_way() == batch
            spool.settle(batch)
            sent += found
        spool.commit()
        assert sent == world.put
        assert (spool.level.samples, spool.level.octets) == (0, 0)
        spool.close()


def test_a_parcel_outlives_the_process_with_the_clocks_that_it_showed(tmp_path: Path) -> None:
    world = World(tmp_path / "spool.db")
    world.write(b"1", b"2")
    world.spool.begin()
    batch = world.spool.pack(10, 1000)
    assert batch is not None
    stamped = world.spool.stamp(world.spool.stamp(batch, "a"), "b")
    world.spool.commit()
    world.write(b"3")
    world.restart()
    assert world.spool.under_way() == stamped
    assert stamped.stamps == ("a", "b")
    world.spool.close()


@pytest.mark.parametrize("limit", [SpoolLimit(samples=3), SpoolLimit(octets=3 * 50)])
def test_a_spool_takes_no_more_than_its_limit_but_an_empty_one_any_batch(tmp_path: Path, limit: SpoolLimit) -> None:
    spool = Spool(tmp_path / "spool.db", "domain", limit, Durability.process)
    assert spool.has_room([b"0123456789"] * 4)
    spool.begin()
    spool.put([b"0123456789"] * 2, 0)
    spool.commit()
    assert spool.has_room([b"0123456789"])
    assert not spool.has_room([b"0123456789"] * 2)
    spool.close()


def test_answers_under_keys_count_until_they_are_forgotten(tmp_path: Path) -> None:
    limit = SpoolLimit(octets=1000)
    spool = Spool(tmp_path / "spool.db", "domain", limit, Durability.process)
    spool.begin()
    spool.store_answer("k", b"", b"x" * 700, created=1)
    spool.commit()
    assert not spool.has_room([b"1"], b"y" * 700)
    assert spool.has_room([b"1"]), "without a sample in it any batch is taken"
    spool.close()
    spool = Spool(tmp_path / "spool.db", "domain", limit, Durability.process)
    assert spool.level.answers > 700
    spool.begin()
    spool.prune(2)
    spool.commit()
    assert spool.level.answers == 0
    assert spool.has_room([b"1"], b"y" * 700)
    spool.close()


def test_another_programs_database_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "letters.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE letter (text TEXT)")
    before = file.read_bytes()
    with pytest.raises(SpoolError, match="something else"):
        Spool(file, "domain", NO_LIMIT, Durability.process)
    assert [each.name for each in tmp_path.iterdir()] == ["letters.db"]
    assert file.read_bytes() == before


def test_two_names_of_a_file_are_one_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db", "domain", NO_LIMIT, Durability.process)
    (tmp_path / "alias.db").symlink_to(tmp_path / "spool.db")
    with pytest.raises(SpoolError, match="another agent"):
        Spool(tmp_path / "alias.db", "domain", NO_LIMIT, Durability.process)
    spool.close()


def test_a_number_is_never_given_twice(tmp_path: Path) -> None:
    world = World(tmp_path / "spool.db")
    numbers = []
    for _ in range(2):
        world.write(b"x")
        world.spool.begin()
        batch = world.spool.pack(1, 100)
        assert batch is not None
        numbers.append(batch.first)
        world.spool.settle(batch)
        world.spool.commit()
        world.restart()
    assert numbers == [1, 2]
    world.spool.close()


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("500MB", SpoolLimit(octets=5e8)),
        ("2 GiB", SpoolLimit(octets=2 * 2**30)),
        ("10B", SpoolLimit(octets=10)),
        ("1000000samples", SpoolLimit(samples=1e6)),
    ],
)
def test_limits_are_read_with_their_units(text: str, limit: SpoolLimit) -> None:
    assert SpoolLimit.parse(text) == limit


@pytest.mark.parametrize("text", ["", "12", "GiB", "-1GB", "0samples", "1.2.3MB", "4 parsecs"])
def test_limits_without_a_unit_or_a_number_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no limit"):
        SpoolLimit.parse(text)


SAMPLES = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from([None, "healthy", "faulty"]), st.sampled_from([None, 0.0, 1.0])),
    max_size=30,
)


@given(SAMPLES, st.integers(1, 20))
def test_thinning_keeps_all_trouble_and_one_calm_sample_in_a_period(
    samples: list[tuple[int, str | None, float | None]], period: int
) -> None:
    downsampler = Downsampler(period)
    calm: list[int] = []
    last: dict[str, object] = {"health": None, "faults": None}
    for observed, health, faults in sorted(samples, key=lambda each: each[0]):
        outline = Outline(("node", "n", None), frozenset({"power"}), observed, health, faults)
        trouble = (
            bool(faults)
            or (health is not None and health != last["health"])
            or (faults is not None and faults != last["faults"])
        )
        passed = downsampler.passes(outline)
        assert passed or not trouble
        if passed:
            last["health"] = health if health is not None else last["health"]
            last["faults"] = faults if faults is not None else last["faults"]
            calm = [] if trouble else [*calm, observed]
    assert all(later - earlier >= period for earlier, later in pairwise(calm))


def test_a_sample_with_other_measures_is_no_repetition() -> None:
    downsampler = Downsampler(1000)
    power, probe = (
        Outline(("node", "n", None), frozenset({measure}), 5, None, None)
        for measure in ("power", "sustained_matrix_throughput")
    )
    assert downsampler.passes(power)
    assert downsampler.passes(probe)
    assert not downsampler.passes(power)
