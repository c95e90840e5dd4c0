"""The judge's heartbeats as a target gets them: who beats when, and what is true meanwhile."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import pytest
from conformance.testbed.heartbeats.listening import alive, by_node, deliveries, quick
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.heartbeats import (
    AMID,
    CAUSES,
    DOMAIN_UNREACHABLE,
    FLAPPING,
    FULL,
    JOB_HUNG,
    LOGGED,
    NODE_DEAD,
    PERIOD,
    QUICK,
    RACK,
    RECOVERY,
    RESET,
    SLOT,
    TOLD,
    Delivery,
    Incident,
    World,
)
from kuayu_schemas.schema import errors

SMALL = replace(QUICK, nodes=80, seconds=60.0, incidents=90, jobs=6, racks=1, flapping=3, logged=8)
WHEN = "2026-01-01T00:00:00.000Z"


@pytest.fixture(scope="module")
def played() -> tuple[World, list[Delivery]]:
    """A quick world and all that it sends, in order."""
    its = quick()
    return its, list(deliveries(its))


def digest(its: World) -> str:
    told = [[each.instant, each.domain, [[b.sent, b.ahead, b.body] for b in each.beats]] for each in deliveries(its)]
    lines = [[line.body for line in each.lines] for each in deliveries(its)]
    return sha256(json.dumps([told, lines, its.domains, its.nodes, repr(its.incidents)]).encode()).hexdigest()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first = digest(World(SMALL, "one", str))
    assert digest(World(SMALL, "one", str)) == first
    assert digest(World(SMALL, "two", str)) != first


def test_a_batch_may_be_asked_for_in_any_order(played: tuple[World, list[Delivery]]) -> None:
    its, _ = played
    late = its.delivery(1500)
    its.delivery(7)
    assert its.delivery(1500) == late


def test_everything_that_is_sent_follows_the_model(played: tuple[World, list[Delivery]]) -> None:
    its, sent = played
    for name, bodies in {"Domain": its.domains, "Node": its.nodes}.items():
        assert not [fault for body in bodies for fault in errors(name, body)]
    assert len(its.nodes) == 1000
    assert {len(body["devices"]) for body in its.nodes} == {4}
    for delivery in sent[::60]:
        assert not [fault for each in delivery.beats for fault in errors("Heartbeat", {**each.body, "sent_at": WHEN})]
        assert not [fault for each in delivery.lines for fault in errors("LogLine", {**each.body, "logged_at": WHEN})]
    assert [each.instant for each in sent] == sorted(each.instant for each in sent)


def test_batches_come_at_the_pace_of_aggregators_with_half_of_the_nodes_each(
    played: tuple[World, list[Delivery]],
) -> None:
    its, sent = played
    of = [each for each in sent if each.domain == sent[0].domain and 5.0 < each.instant < 15.0]
    assert {round(b.instant - a.instant, 6) for a, b in pairwise(of)} == {0.25}
    assert 80 < sum(len(each.beats) for each in of) / len(of) < 110
    assert all(each.sent <= delivery.instant for delivery in sent for each in delivery.beats)
    assert its.scale.total == 122.0


def test_a_quick_world_has_as_many_incidents_as_its_figures_need(played: tuple[World, list[Delivery]]) -> None:
    """One error of 473 supports 99 %, five of 499 miss it; of as many responses one may be late."""
    its, _ = played
    demanded = [each for each in its.incidents if each.demanded]
    assert len(demanded) == 498
    assert sum(bool(each.queried_domains) for each in demanded) >= 473
    assert {each.cause for each in demanded} == set(CAUSES)
    assert all(its.scale.warm_up <= each.onset <= its.scale.end + SLOT for each in demanded)
    causes = Counter(each.cause for each in demanded)
    assert causes[RACK] == 8 * its.scale.racks
    assert causes["node dies"] > len(demanded) / 2


@pytest.mark.slow
def test_a_full_world_has_room_for_three_thousand() -> None:
    its = World(FULL, "full", str)
    assert sum(each.demanded for each in its.incidents) >= 3000
    assert Counter(each.kind for each in its.incidents)[JOB_HUNG] >= 15
    check_recovery(its)
    check_silence(its, list(deliveries(its)))


def check_recovery(its: World) -> None:
    """Each node and each job has one fault at a time, and time to recover."""
    of: dict[str | None, list[Incident]] = defaultdict(list)
    for each in its.incidents:
        if each.kind != DOMAIN_UNREACHABLE and each.cause != RESET:
            of[each.job or each.node].append(each)
    for rows in of.values():
        for one, other in pairwise(sorted(rows, key=lambda each: each.since)):
            assert other.since >= one.until + min(RECOVERY, 30.0)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
def test_each_world_keeps_its_laws(seed: int) -> None:
    its = World(SMALL, str(seed), str)
    check_recovery(its)
    check_silence(its, list(deliveries(its)))
    for each in its.incidents:
        assert each.since <= each.onset < each.until
        assert each.cause in {RESET, FLAPPING, *CAUSES}
        assert each.until - each.onset >= TOLD or each.cause == RESET
        if each.cause == RESET:
            assert not each.demanded


def test_no_live_node_is_silent_for_longer_than_the_bound(played: tuple[World, list[Delivery]]) -> None:
    longest = check_silence(*played)
    assert longest >= 1.5, "there has to be weather"


def check_silence(its: World, sent: list[Delivery]) -> float:
    """Silence by what is news alone, where nodes live and are heard; returns the longest."""
    news: dict[str, list[float]] = defaultdict(list)
    top: dict[str, int] = {}
    last: dict[str, float] = {}
    for delivery in sent:
        for beat in sorted(delivery.beats, key=lambda each: each.sent):
            node, number = beat.body["node"], beat.body["number"]
            anew = beat.sent > last.get(node, -1.0) and number <= top.get(node, -1)
            if number > top.get(node, -1) or anew:
                top[node], last[node] = number, beat.sent
                news[node].append(delivery.instant)
    longest = 0.0
    for node, spans in alive(its).items():
        for since, until in spans:
            heard = [at for at in news[node] if since <= at <= until]
            longest = max(longest, *(b - a for a, b in pairwise(heard)), 0.0)
            first, final = (heard[0], heard[-1]) if heard else (until, since)
            assert first - since <= 2.0, "who begins, or is heard again, is heard soon"
            assert until - final <= 2.0, "nobody is silent for long before it dies"
    assert longest <= 1.75 + 1e-6
    return longest


def test_beats_are_late_lost_bundled_and_overtaken(played: tuple[World, list[Delivery]]) -> None:
    its, sent = played
    troubled = {each.node for each in its.incidents} | {
        str(body["id"]) for body in its.nodes for cut in its.cuts if body["domain"] == its.domains[cut.domain]["id"]
    }
    calm = {node: rows for node, rows in by_node(sent).items() if node not in troubled}
    assert calm
    beats = [(at, beat) for rows in calm.values() for at, beat in rows]
    due = len(calm) * its.scale.total / PERIOD
    assert 0.005 < 1 - len(beats) / due < 0.03
    late = sum(at - beat.sent > 0.5 for at, beat in beats) / len(beats)
    assert 0.01 < late < 0.06
    bundles = sum(max(Counter(at for at, _ in rows).values()) >= 3 for rows in calm.values())
    assert bundles > len(calm) / 4
    numbers = [[beat.body["number"] for _, beat in rows] for rows in calm.values()]
    assert any(b < a for row in numbers for a, b in pairwise(row)), "some beats are overtaken"
    assert all(sorted(row) == sorted(set(row)) for row in numbers)


def test_numbers_begin_anew_where_a_node_was_started_anew_and_only_then(
    played: tuple[World, list[Delivery]],
) -> None:
    its, sent = played
    back: dict[str | None, list[float]] = defaultdict(list)
    for each in its.incidents:
        if each.kind == NODE_DEAD and each.cause != FLAPPING and each.until < its.scale.total:
            back[each.node].append(each.until)
    for node, rows in by_node(sent).items():
        in_order = sorted((beat.sent, beat.body["number"]) for _, beat in rows)
        restarts = [sent_at for (_, a), (sent_at, b) in pairwise(in_order) if b <= a]
        due = [at for at in back[node] if at < its.scale.total - 2.5]
        assert len(due) <= len(restarts) <= len(back[node])
        assert all(0.0 <= sent_at - at < 2.0 for sent_at, at in zip(restarts, back[node], strict=False))


def test_the_dead_send_nothing_and_a_partition_is_silent(played: tuple[World, list[Delivery]]) -> None:
    its, sent = played
    of = by_node(sent)
    for each in its.incidents:
        if each.kind == NODE_DEAD and each.cause not in {FLAPPING, AMID}:
            assert each.node
            until = min(each.until, its.scale.total)
            assert not [at for at, _ in of[each.node] if each.onset + 0.51 < at < until]
        if each.kind == DOMAIN_UNREACHABLE:
            assert each.until - each.onset >= 12.0
            assert not [d for d in sent if d.domain == each.domain and each.onset <= d.instant < each.until]
    healed = {each.until for each in its.incidents if each.kind == DOMAIN_UNREACHABLE}
    assert {each.onset for each in its.incidents if each.cause == AMID} <= healed


def test_lines_tell_of_failing_nodes_when_the_incident_says_so(played: tuple[World, list[Delivery]]) -> None:
    its, sent = played
    grave = {(each.onset, each.node) for each in its.incidents if each.cause == LOGGED}
    words = ("): 79,", "): 48,", "): 95,", "): 119,", ", Fatal,", "0x80E01809")
    said = [(each.instant, line.body["node"], line.body["text"]) for each in sent for line in each.lines]
    assert {(at, node) for at, node, text in said if any(word in text for word in words)} == grave
    assert len(said) > 10 * len(grave)
