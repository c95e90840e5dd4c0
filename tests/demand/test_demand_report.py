"""Demands over the wire: figures worked by hand, parts that make the whole, and what is refused."""

from collections import defaultdict
from copy import deepcopy
from itertools import product
from typing import Any

import pytest
from demand.requests import EXPERTS, HARDWARE, MODEL, STRATEGY, case, request
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.demand.demand_report import demand
from kuayu.refusals import Impossible, Refusal, RepeatedName, UnknownName
from kuayu_schemas import schema

LAYER = 12 * 1024**2
"""Parameters of a layer: four of attention and eight of the feed-forward part, times the width squared."""


def only(asked: dict[str, Any]) -> dict[str, Any]:
    """The demand of a request's one case, which keeps to the schema."""
    assert schema.errors("TrainingDemandRequest", asked) == []
    report = demand(asked)
    assert schema.errors("TrainingDemandReport", report) == []
    (told,) = report["demands"]
    return dict(told)


def test_parameters_and_work_are_those_of_the_structure() -> None:
    told = only(request())
    assert told["parameters"] == 8 * LAYER + 4096 * 1024
    assert told["active_parameters"] == told["parameters"]
    scores = 8 * 2 * 512 * (1024 + 1024)  # queries with keys, weights with values, over all tokens
    forward = 2 * (8 * LAYER + 4096 * 1024) + scores
    assert told["work"] == pytest.approx(3 * forward * 512 * 64)
    assert told["executed_work"] == told["work"]
    again = only(request(case(strategy={**STRATEGY, "recomputation": "full"})))
    assert again["executed_work"] - again["work"] == pytest.approx((2 * 8 * LAYER + scores) * 512 * 64)


def test_a_token_meets_only_its_experts() -> None:
    told = only(request(case(model=EXPERTS)))
    attention, expert, router = 4 * 1024**2, 3 * 1024 * 512, 1024 * 16
    assert told["parameters"] == 8 * (attention + 16 * expert + router) + 2 * 4096 * 1024
    assert told["active_parameters"] == 8 * (attention + 2 * expert + router) + 4096 * 1024


def test_utilisation_is_work_over_what_devices_could_have_done() -> None:
    told = only(request())
    assert told["devices"] == 16
    could = told["step_time"]["expected"] * 16 * 312e12
    assert told["utilisation"] == pytest.approx(told["work"] / could)


@settings(max_examples=40, deadline=None)
@given(
    tensor=st.sampled_from([1, 2, 4, 8]),
    pipeline=st.sampled_from([1, 2, 4]),
    data=st.sampled_from([1, 2, 4, 16]),
    sharding=st.integers(0, 3),
    recomputation=st.sampled_from(["none", "selective", "full"]),
    federated=st.booleans(),
    model=st.sampled_from([MODEL, EXPERTS]),
)
def test_parts_make_the_whole(
    tensor: int, pipeline: int, data: int, sharding: int, recomputation: str, model: dict[str, Any], *, federated: bool
) -> None:
    strategy = {
        "tensor": tensor,
        "pipeline": pipeline,
        "data": data,
        "sharding": sharding,
        "recomputation": recomputation,
        "micro_batch": 2,
        "global_batch": 64,
    }
    hardware = HARDWARE | ({"devices_per_domain": 32, "federation_bandwidth": 1e9} if federated else {})
    told = only(request(case(model=model, strategy=strategy), hardware=[hardware], profiles=True))
    assert sum(part["size"] for part in told["memory_parts"]) == pytest.approx(told["memory"])
    at, flows = 0.0, defaultdict[str, float](float)
    for segment in told["segments"]:
        assert segment["begin"] == pytest.approx(at)
        at += segment["duration"]
        for flow in segment["traffic"]:
            flows[flow["link"]] += flow["flow"] * segment["duration"]
    assert at == pytest.approx(told["step_time"]["expected"])
    sent = defaultdict[str, float](float)
    for part in told["traffic"]:
        sent[part["link"]] += part["size"]
    assert flows == pytest.approx(sent)


def test_a_phase_uses_as_many_replicas_as_its_batch_has_micro_batches_for() -> None:
    phases = [
        {"phase": "warm_up", "steps": 10, "global_batch": 6},
        {"phase": "fast_convergence", "steps": 100, "global_batch": 1, "sequence": 256},
        {"phase": "stable_convergence", "steps": 1000},
    ]
    told = only(request(case(phases=phases)))
    assert [phase["devices"] for phase in told["phases"]] == [2 * 2 * 3, 2 * 2 * 1, 16]
    for phase, planned in zip(told["phases"], phases, strict=True):
        assert phase["duration"] == pytest.approx(planned["steps"] * phase["step_time"])
    whole = told["phases"][2]
    assert whole["step_time"] == told["step_time"]["expected"]
    assert whole["work"] == pytest.approx(1000 * told["work"])
    alone = only(request(case(strategy={**STRATEGY, "data": 3, "global_batch": 6})))
    assert told["phases"][0]["step_time"] == alone["step_time"]["expected"]
    assert told["phases"][0]["memory"] == alone["memory"]
    assert told["phases"][0]["work"] == pytest.approx(10 * alone["work"])
    assert told["phases"][0]["traffic"] == pytest.approx(sum(part["size"] for part in alone["traffic"]))


def test_a_case_has_the_same_demand_alone_and_among_others() -> None:
    cases = [case(f"c-{number}", strategy={**STRATEGY, "data": 2**number}) for number in range(5)]
    cases += [case("experts", model=EXPERTS), case("other", model=MODEL | {"layers": 16})]
    together = demand(request(*cases))["demands"]
    assert [each["case"] for each in together] == [each["id"] for each in cases]
    alone = [demand(request(each))["demands"][0] for each in cases]
    for one, other in zip(together, alone, strict=True):
        assert one["step_time"] == pytest.approx(other["step_time"], rel=1e-9)  # sums may differ in their last digit
        assert {**one, "step_time": None} == {**other, "step_time": None}


def test_unlike_models_go_through_the_law_together_and_keep_their_own_demand() -> None:
    models = [MODEL, EXPERTS, MODEL | {"window": 128}, MODEL | {"window": 64, "heads": 8}, MODEL | {"sequence": 1024}]
    latent = {"query_rank": 256, "value_rank": 128, "rotary_width": 32}
    models += [EXPERTS | {"latent": latent}, EXPERTS | {"experts": 8, "latent": latent | {"query_rank": 128}}]
    strategies = [STRATEGY, {**STRATEGY, "data": 8, "context": 2}, {**STRATEGY, "tensor": 8, "pipeline": 4}]
    torn = HARDWARE | {"id": "b", "devices_per_domain": 32}
    cases = [
        case(f"c-{number}", model=model, strategy=strategy, hardware=kind)
        for number, (model, strategy, kind) in enumerate(product(models, strategies, ("a", "b")))
    ]
    together = demand(request(*cases, hardware=[HARDWARE, torn]))["demands"]
    assert 0 < sum(each["fits"] for each in together) < len(cases)
    for one, other in zip(together, cases, strict=True):
        (alone,) = demand(request(other, hardware=[HARDWARE, torn]))["demands"]
        assert flat(one) == {
            place: each if isinstance(each, str) else pytest.approx(each, rel=1e-12)
            for place, each in flat(alone).items()
        }


def flat(told: Any, place: str = "") -> dict[str, Any]:
    """What stands at each place of an answer."""
    if not isinstance(told, dict | list):
        return {place: told}
    parts = told.items() if isinstance(told, dict) else enumerate(told)
    return {key: each for name, part in parts for key, each in flat(part, f"{place}/{name}").items()}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strategy": {**STRATEGY, "global_batch": 60, "micro_batch": 4}}, "does not divide the global batch"),
        ({"strategy": {**STRATEGY, "tensor": 3}}, "tensor does not divide"),
        ({"model": MODEL | {"hidden": 65536, "heads": 512, "layers": 100}}, "more memory than a device has: "),
        ({"strategy": {**STRATEGY, "precision": "fp8"}}, "number format"),
    ],
)
def test_a_training_that_cannot_run_is_an_answer_that_says_why(changes: dict[str, Any], words: str) -> None:
    told = only(request(case(**changes)))
    assert not told["fits"]
    assert any(words in obstacle for obstacle in told["obstacles"])
    assert only(request())["obstacles"] == []


def test_without_a_link_between_domains_a_step_lasts_for_ever_and_is_told_as_impossible() -> None:
    torn = only(request(hardware=[HARDWARE | {"devices_per_domain": 8}]))
    assert not torn["fits"]
    assert any("without a link" in obstacle for obstacle in torn["obstacles"])


def test_devices_without_a_16_bit_format_work_in_a_wider_one() -> None:
    wide = HARDWARE | {"peak_matrix_throughput": {"fp32": 20e12}}
    told = only(request(case(strategy={**STRATEGY, "precision": "fp32"}), hardware=[wide]))
    assert told["fits"]
    narrow = HARDWARE | {"peak_matrix_throughput": {"int8": 20e12}}
    assert only(request(hardware=[narrow]))["obstacles"][0] == "devices state no number format of 16 bits or more"


@pytest.mark.parametrize(
    ("changes", "kind", "pointer"),
    [
        ({"hardware": [HARDWARE, HARDWARE]}, RepeatedName, "/hardware/1/id"),
        ({"cases": [case(), case()]}, RepeatedName, "/cases/1/id"),
        ({"cases": [case(hardware="b")]}, UnknownName, "/cases/0/hardware"),
        (
            {"runs": [{"source": "s", "model": MODEL, "strategy": STRATEGY, "hardware": "b", "step_time": 1.0}]},
            UnknownName,
            "/runs/0/hardware",
        ),
        ({"cases": [case(model=MODEL | {"experts_per_token": 2})]}, Impossible, "/cases/0/model/experts_per_token"),
        ({"cases": [case(model=MODEL | {"dense_layers": 9})]}, Impossible, "/cases/0/model/dense_layers"),
        ({"cases": [case(model=MODEL | {"heads": 2000})]}, Impossible, "/cases/0/model/heads"),
        ({"cases": [case(strategy={**STRATEGY, "outermost": "tensor"})]}, Impossible, "/cases/0/strategy/outermost"),
        ({"cases": [case(strategy={**STRATEGY, "precision": "unknown"})]}, Impossible, "/cases/0/strategy/precision"),
        (
            {"cases": [case(strategy={**STRATEGY, "recomputation": "unknown"})]},
            Impossible,
            "/cases/0/strategy/recomputation",
        ),
        (
            {"cases": [case(strategy={**STRATEGY, "data": 10**7, "tensor": 10**5, "pipeline": 10**5})]},
            Impossible,
            "/cases/0/strategy",
        ),
        (
            {"hardware": [HARDWARE | {"peak_matrix_throughput": {"bf16": 0.0}}]},
            Impossible,
            "/hardware/0/peak_matrix_throughput",
        ),
        ({"hardware": [HARDWARE | {"accelerator_memory_bandwidth": 1e-30}]}, Impossible, "/cases/0"),
        ({"hardware": [HARDWARE | {"sustained_matrix_throughput": {"bf16": 1e-320}}]}, Impossible, "/cases/0"),
        ({"hardware": [HARDWARE | {"peak_matrix_throughput": {"bf16": 1e-320}}]}, Impossible, "/cases/0"),
        (
            {"runs": [{"source": "s", "model": MODEL, "strategy": STRATEGY, "hardware": "a", "step_time": 1e9}]},
            Impossible,
            "/runs/0/step_time",
        ),
    ],
)
def test_what_does_not_hold_together_is_refused_with_its_place(
    changes: dict[str, Any], kind: type[Refusal], pointer: str
) -> None:
    asked = request(**changes)
    assert schema.errors("TrainingDemandRequest", asked) == []
    with pytest.raises(kind) as refused:
        demand(asked)
    assert [place for place, _ in refused.value.pointers] == [pointer]


def test_a_count_may_be_written_with_a_point() -> None:
    pointed = deepcopy(request(profiles=True))
    for part in (pointed["cases"][0]["model"], pointed["cases"][0]["strategy"]):
        part.update({name: float(value) for name, value in part.items()})
    assert only(pointed) == only(request(profiles=True))
