"""What was measured goes before what is inferred, and every answer says what it rests on."""

import math
import statistics

import pytest
from index.worlds import ask, values, without, world

from kuayu.index import METHOD_NAME, METHOD_VERSION, compute_indices
from kuayu_schemas.models import IndexReport


def test_a_measured_index_is_the_ratio_of_the_throughputs() -> None:
    corpus = world()
    found = {(m["device"], m["task"]): m["throughput"] for m in corpus["measurements"]}
    for index in ask(corpus).indices:
        truth = found[index.device, index.task] / found["device-0", index.task]
        assert index.value == pytest.approx(truth, rel=1e-12)
        assert index.basis == "measured"
        assert index.low <= index.value <= index.high


def test_the_median_of_repeated_measurements_counts_and_narrows_the_interval() -> None:
    corpus = world()
    once = {(i.device, i.task): i for i in ask(corpus).indices}["device-3", "task-2"]
    own = next(m for m in corpus["measurements"] if (m["device"], m["task"]) == ("device-3", "task-2"))
    others = [own["throughput"] * factor for factor in (0.99, 1.01, 1.02, 5.0)]
    corpus["measurements"] += [{**own, "throughput": value} for value in others]
    often = {(i.device, i.task): i for i in ask(corpus).indices}["device-3", "task-2"]
    reference = next(
        m["throughput"] for m in corpus["measurements"] if (m["device"], m["task"]) == ("device-0", "task-2")
    )
    assert often.value == pytest.approx(statistics.median([own["throughput"], *others]) / reference, rel=1e-12)
    assert once.high > once.low
    assert often.high > often.low


def test_the_reference_is_one_for_every_task_even_where_it_was_not_measured() -> None:
    for corpus in (world(), without(world(), "device-0")):
        own = [index for index in ask(corpus).indices if index.device == "device-0"]
        assert [(index.value, index.low, index.high) for index in own] == [(1.0, 1.0, 1.0)] * 6
        assert not any(index.abstained for index in own)


def test_the_basis_says_how_much_is_known_of_a_device() -> None:
    corpus = without(world(), "device-1", "device-2")
    probe = next(m for m in world()["measurements"] if (m["device"], m["task"]) == ("device-1", "task-0"))
    corpus["measurements"].append(probe)
    basis = {(index.device, index.task): index.basis for index in ask(corpus).indices}
    assert basis["device-1", "task-0"] == "measured"
    assert basis["device-1", "task-1"] == "probed"
    assert basis["device-2", "task-1"] == "specified"


def test_a_reference_that_was_not_measured_measures_nothing() -> None:
    report = ask(without(world(), "device-0"))
    assert {i.basis for i in report.indices if i.device != "device-0"} == {"probed"}
    truth = values(ask(world()))
    for cell, (value, low, high) in values(report).items():
        assert low <= value <= high
        assert abs(math.log(value / truth[cell][0])) < 1


def test_probes_bring_an_index_nearer_to_the_truth() -> None:
    truth = values(ask(world(spread=0.4)))
    blind, probed = without(world(spread=0.4), "device-2"), without(world(spread=0.4), "device-2")
    probed["measurements"] += [
        m for m in world(spread=0.4)["measurements"] if m["device"] == "device-2" and m["task"] in {"task-0", "task-3"}
    ]

    def error(report: IndexReport) -> float:
        left = {"task-1", "task-2", "task-4", "task-5"}
        found = {
            cell: value for cell, (value, *_) in values(report).items() if cell[0] == "device-2" and cell[1] in left
        }
        return statistics.fmean(abs(math.log(value / truth[cell][0])) for cell, value in found.items())

    assert error(ask(probed)) < error(ask(blind))


def test_an_index_repeats_stack_and_date_and_the_report_its_request() -> None:
    corpus = world()
    corpus["devices"][1]["measured_at"] = "2026-01-02T03:04:05Z"
    report = ask(corpus, devices=["device-2", "device-1"], tasks=["task-4", "task-0"], coverage=0.8)
    assert [(index.device, index.task) for index in report.indices] == [
        ("device-2", "task-4"),
        ("device-2", "task-0"),
        ("device-1", "task-4"),
        ("device-1", "task-0"),
    ]
    assert [index.stack for index in report.indices] == ["stack of device-2"] * 2 + ["stack of device-1"] * 2
    assert [index.measured_at is None for index in report.indices] == [True, True, False, False]
    assert (report.revision.number, report.reference, report.coverage) == (1, "device-0", 0.8)
    assert (report.method.name, report.method.version) == (METHOD_NAME, METHOD_VERSION)


def test_a_report_is_what_the_schema_says() -> None:
    corpus = without(world(), "device-4")
    corpus["devices"][2]["power"] = corpus["devices"][0]["power"] = 400.0
    group = {"id": "node", "members": [{"device": "device-4", "count": 8}], "scale_out_bandwidth": 1e11}
    report = ask(corpus, groups=[group], explain=True)
    assert IndexReport.model_validate_json(report.model_dump_json()) == report


def test_the_same_request_has_the_same_answer_bit_for_bit() -> None:
    from index.worlds import request

    from kuayu.index.report import forget

    asked = request(without(world(), "device-3"), explain=True)
    first = compute_indices(asked).model_dump_json()
    assert compute_indices(asked).model_dump_json() == first
    forget()
    assert compute_indices(asked).model_dump_json() == first
