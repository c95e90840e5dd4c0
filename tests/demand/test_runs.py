"""Rows of the public table become runs, and the law is judged on sources that it has not seen."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kuayu.demand.experience import Experience, learn
from kuayu.demand.strategy import Recompute, Sharding
from kuayu_training.demand import judgement
from kuayu_training.demand.judgement import report, tables
from kuayu_training.demand.runs import TABLE, Run, Unusable, folder, read, run

ROW = {
    "source": "megatron-sc21-table1",
    "model": "GPT-145B",
    "params_b": "145.6",
    "layers": "80",
    "hidden": "12288",
    "heads": "96",
    "seq_len": "2048",
    "global_batch": "2304",
    "accelerator": "A100-SXM-80GB",
    "n_accel": "1536",
    "tp": "8",
    "pp": "8",
    "dp": "24",
    "other_parallel": "mbs=2;recompute=full",
    "measured_tflops_per_accel": "148",
    "step_time_s": "",
    "tokens_per_s": "",
    "notes": "flops=hardware",
}


@pytest.fixture(scope="module", name="runs")
def _runs() -> list[Run]:
    """Runs of the public table."""
    data = Path(folder())
    if not (data / TABLE).is_file():
        data = Path(__file__).parents[2].parent / "shared" / "data"
    if not (data / TABLE).is_file():
        pytest.skip(f"no {TABLE} (KUAYU_DATA names the folder of public data), so that no run is predicted")
    return read(data)[0]


def test_stated_flops_become_a_time_by_the_source_s_own_definition() -> None:
    made = run(ROW, 1)
    batch, s, layers, h, v = 2304, 2048, 80, 12288, 51200
    flops = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
    assert made.seconds == pytest.approx(flops / (1536 * 148e12))
    assert made.strategy.recompute is Recompute.FULL
    assert (made.strategy.micro_batch, made.strategy.virtual) == (2, 2)


def test_a_stated_time_is_taken_before_anything_derived() -> None:
    assert run(ROW | {"step_time_s": "24.5"}, 1).seconds == 24.5


def test_what_did_not_fit_has_no_time() -> None:
    made = run(ROW | {"notes": "OUT OF MEMORY (memory-model check point)"}, 1)
    assert made.out_of_memory
    assert made.seconds is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"source": "somewhere"}, "no layout or no batch"),
        ({"dp": "12"}, "contradicts"),
        ({"tp": ""}, "layout is not stated"),
        ({"global_batch": ""}, "batch is not stated"),
        ({"accelerator": "abacus"}, "not in the catalogue"),
        ({"measured_tflops_per_accel": ""}, "speed is not stated"),
        ({"notes": "HF + Deepspeed Zero 3 + Full Offload"}, "outside the device"),
    ],
)
def test_a_row_that_cannot_be_a_run_says_why(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(Unusable, match=reason):
        run(ROW | changes, 1)


def test_fsdp_is_sharding() -> None:
    row = ROW | {"source": "llm-foundry-bench", "model": "MPT-7b", "tp": "1", "pp": "1", "dp": "1536"}
    full = run(row | {"other_parallel": "fsdp=FULL_SHARD;mbs=1;recompute=none;precision=amp_bf16"}, 1)
    partly = run(row | {"other_parallel": "fsdp=SHARD_GRAD_OP;mbs=1"}, 1)
    assert (full.strategy.sharding, partly.strategy.sharding) == (Sharding.PARAMETERS, Sharding.GRADIENTS)
    assert full.strategy.precision == "bf16"


def test_no_source_is_predicted_by_a_law_that_has_seen_it(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []

    def watch(trainings: Any, needed: Any, measured: Any, sources: list[str]) -> Experience:
        seen.append(set(sources))
        return learn(trainings, needed, measured, sources)

    monkeypatch.setattr(judgement, "learn", watch)
    judged = judgement.leave_out(runs[::7], lambda each: each.source)
    sources = {each.source for each in judged.runs}
    left = [sources - each for each in seen]
    assert left == [{name} for name in dict.fromkeys(each.source for each in judged.runs)]


def test_the_law_beats_a_constant_utilisation_on_unseen_sources(runs: list[Run]) -> None:
    judged = judgement.leave_out(runs, lambda each: each.source)
    known = np.array([each.known and each.kind == "dense" for each in judged.runs])
    mine, theirs = (
        judgement.errors(guess, judged.measured)[known].mean() for guess in (judged.predicted, judged.baseline)
    )
    assert mine < theirs / 2


def test_the_report_tells_every_kind_and_can_be_shown(runs: list[Run]) -> None:
    made = report(runs[::5], {1: "because"})
    assert set(made["time"]["source"]) == {"dense, structure stated", "dense, structure guessed", "moe"}
    assert len(list(tables(made))) == 3


def test_layouts_in_the_measured_order_have_a_tau_of_one() -> None:
    one = run(ROW | {"step_time_s": "20"}, 1)
    two = run(ROW | {"step_time_s": "30", "other_parallel": "mbs=1;recompute=full"}, 2)
    (found,) = judgement.ranked([one, two], np.array([2.0, 3.0]))
    assert (round(found.tau, 9), found.right, found.pairs, found.regret) == (1, 1, 1, 0)
    (turned,) = judgement.ranked([one, two], np.array([3.0, 2.0]))
    assert (round(turned.tau, 9), turned.right, round(turned.regret, 9)) == (-1, 0, 0.5)
