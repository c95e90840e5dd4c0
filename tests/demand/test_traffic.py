"""What goes over which links, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from demand.worlds import EXPERTS, GPT3, SMALL, a100

from kuayu.demand.exchanges import DIMENSIONS
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import predict
from kuayu.demand.strategy import Layouts, Outermost, Recompute, Sharding, Strategy

TOKENS, H = 512, 1024


def sent(strategy: Strategy, structure: object = SMALL, **changes: object) -> dict[str, dict[str, float]]:
    """Bytes of a device by dimension and class."""
    found = predict(structure, Layouts.of([strategy]), a100(strategy.devices, **changes))  # type: ignore[arg-type]
    table = found.traffic[:, :, 0]
    return {name: dict(zip(CLASSES, row, strict=True)) for name, row in zip(DIMENSIONS, table, strict=True)}


def test_one_device_sends_nothing() -> None:
    assert not predict(SMALL, Layouts.of([Strategy(global_batch=4)]), a100(1)).traffic.any()


def test_tensor_devices_reduce_four_times_a_layer_and_twice_outside() -> None:
    found = sent(Strategy(tensor=4, global_batch=2))
    reduce = 2 * 3 / 4 * 2 * TOKENS * H
    assert found["tensor"]["node"] == pytest.approx(2 * (8 * 4 + 2) * reduce)
    assert found["tensor"]["domain"] == 0


def test_full_recomputation_reduces_once_more_each_way() -> None:
    plain, again = (
        sent(Strategy(tensor=4, global_batch=2, recompute=recompute))["tensor"]["node"]
        for recompute in (Recompute.NONE, Recompute.FULL)
    )
    assert again / plain == pytest.approx((8 * 6 + 2) / (8 * 4 + 2))


def test_members_in_a_node_share_what_leaves_it() -> None:
    found = sent(Strategy(data=16, global_batch=16))["data"]
    ring = 2 * 15 / 16 * 4 * SMALL.parameters
    assert found == {"node": pytest.approx(ring), "domain": pytest.approx(ring / 8), "across": 0}


def test_a_divided_optimizer_gathers_in_sixteen_bits() -> None:
    plain, divided = (
        sent(Strategy(data=8, global_batch=8, sharding=stage))["data"]["node"]
        for stage in (Sharding.NOTHING, Sharding.OPTIMIZER)
    )
    assert divided / plain == pytest.approx(6 / 8)


def test_divided_parameters_go_round_for_every_micro_batch() -> None:
    once, thrice = (
        sent(Strategy(data=8, global_batch=8 * count, sharding=Sharding.PARAMETERS))["data"]["node"] for count in (1, 3)
    )
    layers = 7 / 8 * 8 * (SMALL.parameters - SMALL.embedding_parameters)
    assert thrice - once == pytest.approx(2 * layers)


def test_a_stage_passes_on_what_tensor_devices_share() -> None:
    found = sent(Strategy(tensor=8, pipeline=2, global_batch=4))["pipeline"]
    assert found["domain"] == pytest.approx(2 * 4 * 2 * TOKENS * H / 8)
    assert found["node"] == 0


def test_tokens_go_to_experts_and_back_twice() -> None:
    """Both experts of a token lie on one of eight devices in 1 of 15 cases; the token goes there once."""
    found = sent(Strategy(data=8, expert=8, global_batch=8), EXPERTS)["expert"]["node"]
    assert found == pytest.approx(8 * 4 * 2 * TOKENS * H * (2 - 1 / 15) * 7 / 8)


def test_a_token_goes_to_each_node_once() -> None:
    """Eight of 16 experts on two nodes: on both of them but in 2 of 12 870 cases."""
    many = replace(EXPERTS, experts_per_token=8)
    found = sent(Strategy(data=16, expert=16, global_batch=16), many)["expert"]["domain"]
    both = 2 - 2 / 12870
    assert found == pytest.approx(8 * 4 * 2 * TOKENS * H * both / 2)


@pytest.mark.parametrize("outermost", list(Outermost))
def test_only_the_outermost_dimension_crosses_domains(outermost: Outermost) -> None:
    strategy = Strategy(data=2, tensor=8, pipeline=2, global_batch=4, outermost=outermost)
    found = sent(strategy, per_domain=16, across=1e9)
    crossing = {name for name, row in found.items() if row["across"] > 0}
    assert crossing == {outermost.value}


def test_a_pipeline_sends_one_stage_s_messages_over_the_link() -> None:
    strategy = Strategy(data=2, tensor=4, pipeline=4, global_batch=8)
    found = predict(SMALL, Layouts.of([strategy]), a100(32, per_domain=16, across=1e9))
    message = 2 * TOKENS * H / 4
    assert found.terms.hop.ideal[CLASSES.index("across"), 0] == pytest.approx(8 * message / 1e9)
    sent_by_domain = 16 * found.traffic[DIMENSIONS.index("pipeline"), CLASSES.index("across"), 0]
    assert sent_by_domain == pytest.approx(8 * 2 * 4 * message)


def test_domains_exchange_what_each_has_reduced() -> None:
    strategy = Strategy(data=32, global_batch=32)
    found = predict(SMALL, Layouts.of([strategy]), a100(32, per_domain=16, across=1e9))
    sent_by_domain = 16 * found.traffic[DIMENSIONS.index("data"), CLASSES.index("across"), 0]
    assert sent_by_domain == pytest.approx(2 / 2 * 4 * SMALL.parameters)


def test_slower_links_between_domains_never_shorten_a_step() -> None:
    strategy = Layouts.of([Strategy(data=2, tensor=8, pipeline=8, global_batch=64, outermost=Outermost.DATA)])
    steps = [
        predict(GPT3, strategy, a100(128, per_domain=64, across=bandwidth)).times.step[0]
        for bandwidth in (1e11, 1e10, 1e9)
    ]
    assert np.all(np.diff(steps) > 0)


def test_traffic_does_not_depend_on_efficiency_of_layouts_beside_it() -> None:
    one, two = Strategy(data=8, global_batch=8), Strategy(data=4, tensor=2, global_batch=8)
    both = predict(SMALL, Layouts.of([one, two]), a100(8)).traffic
    assert both[:, :, 1] == pytest.approx(predict(SMALL, Layouts.of([two]), a100(8)).traffic[:, :, 0])
    assert Layouts.of([one, two]).row(1) == replace(two)
