"""Laws that the algorithms keep, whatever the telemetry."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.perception import exposition, plausibility
from kuayu.perception.aggregation import Value, aggregate, whole
from kuayu.perception.collection import CollectionMap, Counters, Reading, UnknownExporterError
from kuayu.perception.counters import RESET_SHARE
from kuayu.perception.exposition import MalformedExpositionError, Series
from kuayu.perception.identifiers import UnknownIdentifierError, resolve
from kuayu_schemas import registers
from kuayu_schemas.models import Aggregation, Measure, Provenance

NODE_EXPORTER = CollectionMap.of(registers.indicators(), "node-exporter")
OTEL = CollectionMap.of(registers.indicators(), "otel-hw")
MEASURES = {measure.name: measure for indicator in registers.indicators().indicators for measure in indicator.measures}

increments = st.lists(st.tuples(st.integers(50, 150), st.booleans()), min_size=2, max_size=20)
"""Even enough that no rise is a leap, after which a counter may go back to where it had been."""
amounts = st.floats(0, 1e12)


def disk(value: float, instant: int, device: str = "a") -> Series:
    return Series("node_disk_read_bytes_total", {"device": device}, value, instant)


def convert(pages: list[list[Series]], collection: CollectionMap = NODE_EXPORTER) -> list[Reading]:
    counters: Counters = {}
    readings: list[Reading] = []
    for page in pages:
        conversion = collection.convert(page, lambda series: series.instant or 0, counters)
        counters = conversion.counters
        readings += conversion.readings
    return readings


@given(increments)
def test_rates_times_time_add_up_to_what_was_counted_whatever_the_resets(steps: list[tuple[int, bool]]) -> None:
    """A reset at a page's boundary: the counter begins again at nought and counts this step's increment."""
    value, pages, counted = 0, [], 0
    for number, (increment, reset) in enumerate(steps):
        # A reset that leaves the counter hardly lower than before cannot be told from one that slips back.
        resets = reset and increment < RESET_SHARE * value
        value = increment if resets else value + increment
        counted += increment if number else 0
        pages.append([disk(value, number * 1000)])
    rates = [float(reading.measures["storage_read_flow"]) for reading in convert(pages)]
    assert len(rates) == len(steps) - 1
    assert math.fsum(rates) == pytest.approx(counted)


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=3, max_size=3), min_size=2, max_size=8), st.randoms())
def test_the_order_of_lines_on_a_page_does_not_matter(pages: list[list[int]], chance: Random) -> None:
    plain = [[disk(value, number * 1000, str(n)) for n, value in enumerate(page)] for number, page in enumerate(pages)]
    shuffled = [chance.sample(page, len(page)) for page in plain]
    assert convert(plain) == convert(shuffled)


def test_an_older_page_gives_no_rate_and_does_not_disturb_the_next() -> None:
    readings = convert([[disk(0, 0)], [disk(30, 3000)], [disk(10, 1000)], [disk(30, 3000)], [disk(50, 5000)]])
    assert [(reading.observed, reading.measures["storage_read_flow"]) for reading in readings] == [
        (3000, 10),
        (5000, 10),
    ]


def test_states_take_the_worst_and_unforeseen_values_are_unknown() -> None:
    def status(value: float) -> Series:
        return Series("hw_status", {"hw_type": "gpu", "hw_state": "ok", "hw_id": "0"}, value, 0)

    found = [
        convert([[status(value) for value in values]], OTEL)[0].measures for values in ((1.0,), (1.0, 0.0), (7.0,))
    ]
    assert [measures["health_state"] for measures in found] == ["healthy", "faulty", "unknown"]


def test_a_row_that_asks_for_an_empty_label_leaves_out_the_parts_of_a_divided_accelerator() -> None:
    def power(watts: float, **labels: str) -> Series:
        return Series("DCGM_FI_DEV_POWER_USAGE", {"gpu": "0", **labels}, watts, 0)

    dcgm = CollectionMap.of(registers.indicators(), "dcgm-exporter")
    instances = [power(80, GPU_I_ID="1"), power(90, GPU_I_ID="2", GPU_I_PROFILE="3g.40gb")]
    for entire in (power(300), power(300, GPU_I_ID="")):
        assert convert([[*instances, entire]], dcgm)[0].measures == {"power": 300}
    (parts,) = convert([instances], dcgm)
    assert not parts.measures
    assert [each.measure for each in parts.refused] == ["power"]


def test_a_sum_with_a_missing_or_absent_term_is_no_sum() -> None:
    dcgm = CollectionMap.of(registers.indicators(), "dcgm-exporter")
    fields = ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED")
    page = [Series(name, {"gpu": "0"}, 1024.0, 0) for name in fields]
    assert convert([page], dcgm)[0].measures["accelerator_memory_capacity"] == 3 * 1024 * 2**20
    for less in (page[:2], [*page[:2], Series(fields[2], {"gpu": "0"}, math.nan, 0)]):
        assert "accelerator_memory_capacity" not in convert([less], dcgm)[0].measures


def test_an_exporter_that_the_register_does_not_know_is_named() -> None:
    with pytest.raises(UnknownExporterError, match="guesswork"):
        CollectionMap.of(registers.indicators(), "guesswork")


format_signs = st.text(st.sampled_from('a{}="\\, 1.eE+-#\n\tNaIf_TYPE'), max_size=60)


@given(st.text() | format_signs)
def test_any_text_is_a_page_or_is_refused_in_words(text: str) -> None:
    try:
        exposition.parse(text)
    except MalformedExpositionError as error:
        reason = str(error)
        assert reason


def test_names_of_counters_stay_as_they_stand_on_the_page() -> None:
    page = '# HELP x help\n# TYPE x counter\nx 1 1700000000123\n# TYPE y_total counter\ny_total{a="}"} +Inf\n'
    first, second = exposition.parse(page)
    assert (first.name, first.value, first.instant) == ("x", 1.0, 1_700_000_000_123)
    assert (second.name, second.labels, second.value) == ("y_total", {"a": "}"}, math.inf)


def part(name: str, quantity: float) -> dict[str, Value]:
    return {name: Value(quantity, 0, Provenance.measured)}


@given(st.lists(amounts, min_size=1, max_size=30), st.sampled_from(["mean", "minimum", "maximum", "sum"]), st.randoms())
def test_aggregates_lie_among_their_parts_in_any_order(numbers: list[float], rule: str, chance: Random) -> None:
    measure = MEASURES["power"].model_copy(update={"aggregation": Aggregation(rule)})
    made = aggregate(measure, [part("power", number) for number in numbers])
    shuffled = aggregate(measure, [part("power", number) for number in chance.sample(numbers, len(numbers))])
    assert made == shuffled
    assert made is not None
    assert isinstance(made.quantity, float)
    assert made.parts == len(numbers)
    if rule == "sum":
        assert made.quantity == pytest.approx(math.fsum(numbers))
    else:
        assert min(numbers) * (1 - 1e-12) <= made.quantity <= max(numbers) * (1 + 1e-12)


@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=10))
def test_a_ratio_of_sums_is_not_the_mean_of_ratios(pairs: list[tuple[float, float]]) -> None:
    update = {"aggregation": Aggregation.ratio_of_sums, "numerator": "power", "denominator": "jitter"}
    measure: Measure = MEASURES["energy_efficiency"].model_copy(update=update)
    parts = [part("power", above) | part("jitter", below) for above, below in pairs]
    made = aggregate(measure, [*parts, part("power", 1.0)])
    below = math.fsum(pair[1] for pair in pairs)
    if below == 0 or math.isinf(math.fsum(pair[0] for pair in pairs) / below):
        assert made is None
    else:
        assert made is not None
        assert made.quantity == pytest.approx(math.fsum(pair[0] for pair in pairs) / below)
        assert made.parts == len(pairs)


def test_each_precision_is_summed_over_the_parts_that_state_it() -> None:
    tables = [{"bf16": 2.0, "fp64": 1.0}, {"bf16": 3.0}]
    parts = [{"peak_matrix_throughput": Value(table, 0, Provenance.registered)} for table in tables]
    made = whole(MEASURES.values(), {}, parts)["peak_matrix_throughput"]
    assert made.quantity == {"bf16": 5.0, "fp64": 1.0}


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_only_clocks_that_are_far_off_are_corrected(sent: int, received: int) -> None:
    offset = plausibility.clock_offset(sent, received)
    assert offset in {0, received - sent}
    assert (offset == 0) == (abs(received - sent) <= 2000)
    assert plausibility.clock_offset(None, received) == 0


def test_the_bounds_of_time_belong_to_what_is_taken() -> None:
    retention, received = 1000, 10**9
    faults = [
        plausibility.time_fault(received + shift, received, retention) for shift in (60_000, 60_001, -1000, -1001)
    ]
    assert faults == [None, plausibility.TimeFault.clock_skew, None, plausibility.TimeFault.too_old]


names = st.text("abc", min_size=1, max_size=1)


@given(
    st.dictionaries(names, st.lists(names, unique=True), min_size=1),
    st.dictionaries(names, st.lists(names, unique=True)),
)
def test_resolution_upwards_is_the_mirror_of_resolution_downwards(
    services: dict[str, list[str]], families: dict[str, list[str]]
) -> None:
    def urn(tier: str, name: str) -> str:
        return f"urn:kuayu:{tier}:example:{name}"

    members = {urn("service", name): [urn("family", member) for member in held] for name, held in services.items()}
    members |= {urn("family", name): [urn("node", member) for member in held] for name, held in families.items()}
    nodes = {urn("node", name): [f"host-{name}"] for name in "ab"}
    for asked in members:
        found = resolve(asked, members, nodes)
        assert set(found.nodes).isdisjoint(found.unresolved)
        for node in found.nodes:
            upwards = resolve(urn("node", node.removeprefix("host-")), members, nodes)
            assert asked in upwards.services + upwards.families


def test_nothing_is_known_of_what_nothing_names() -> None:
    with pytest.raises(UnknownIdentifierError):
        resolve("urn:kuayu:family:example:x", {}, {})
