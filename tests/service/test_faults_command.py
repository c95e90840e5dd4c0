"""`kuayu faults` as people and programs see it: before prepared answers, where every form of a fault can be shown."""

import json
import signal
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from commands import run, running
from engine.recording_service import problem
from engine.scripted_service import EVENTS, Answer, Scripted

DAY = "2026-01-01"
PATIENCE_S = 60.0
JsonObject = dict[str, Any]


def fault(name: str, kind: str, number: int = 1, *, since: str = f"{DAY}T10:00:00Z", **members: Any) -> JsonObject:
    return {
        "id": name,
        "kind": kind,
        "state": "cleared" if "cleared_at" in members else "open",
        "since": since,
        "told_at": since.replace("00Z", "02.31Z"),
        "because": f"why [{name}]",
        "actions": [],
        "revision": {"epoch": "e", "number": number},
        **members,
    }


DEAD = fault("f1", "node_dead", 1, node="gy-1", domain="guiyang", actions=["f1.fence"])
FAILING = fault(
    "f2",
    "node_failing",
    2,
    since=f"{DAY}T09:59:00Z",
    node="gy-2",
    domain="guiyang",
    code="xid.79",
    cleared_at=f"{DAY}T10:01:30Z",
)
AWAY = fault("f3", "domain_unreachable", 3, domain="horinger")
HUNG = fault("f4", "job_hung", 4, job="base-13b", actions=["f4.a", "f4.b"])
SLOW = fault("f5", "rank_straggling", 5, job="base-13b", rank=3, node="gy-3", domain="guiyang")


def page(*faults: JsonObject, number: int = 9) -> Answer:
    body = {"items": list(faults), "revision": {"epoch": "e", "number": number}}
    return 200, "application/json", json.dumps(body).encode()


def event(told: JsonObject) -> bytes:
    return f"id: e:{told['revision']['number']}\nevent: fault\ndata: {json.dumps(told)}\n\n".encode()


def shown(*options: str, answers: list[Answer], status: int = 0) -> tuple[str, list[str]]:
    """What the command prints, and the paths that it asked for."""
    service = Scripted(*answers)
    try:
        done = run("faults", "--url", service.url, *options, COLUMNS="160", no_proxy="127.0.0.1")
    finally:
        service.close()
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr, [path for path, _ in service.asked]


def test_open_faults_are_a_table_the_oldest_first() -> None:
    later = {**AWAY, "since": f"{DAY}T10:00:01Z", "told_at": f"{DAY}T10:00:12Z"}
    text, asked = shown(answers=[page(later, HUNG, SLOW, DEAD)])
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "kind about since told because, and the actions asked for",
        f"node_dead gy-1 in guiyang {DAY} 10:00:00Z 2.3 s why [f1]",
        "f1.fence",
        f"job_hung base-13b {DAY} 10:00:00Z 2.3 s why [f4]",
        "f4.a",
        "f4.b",
        f"rank_straggling rank 3 of base-13b on gy-3 {DAY} 10:00:00Z 2.3 s why [f5]",
        f"domain_unreachable horinger {DAY} 10:00:01Z 11.0 s why [f3]",
        "4 faults are open",
    ]
    assert asked == ["/v1/faults?state=open"]


def test_cleared_faults_are_shown_with_how_long_they_lasted() -> None:
    text, asked = shown("--all", "--domain", "guiyang", answers=[page(DEAD, FAILING)])
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert rows[0] == "kind about since told lasted because, and the actions asked for"
    assert rows[1].endswith("2.3 s 150.0 s xid.79: why [f2]")
    assert rows[2].endswith("2.3 s – why [f1]")
    assert rows[3:] == ["f1.fence", "1 fault is open, 1 cleared"]
    assert asked == ["/v1/faults?domain=guiyang"]


def test_of_today_only_the_time_is_shown() -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}T00:00:00Z"
    text, _ = shown(answers=[page({**DEAD, "since": today, "told_at": today})])
    assert " 00:00:00Z" in text or datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z") != today


def test_where_nothing_is_wrong_that_is_said() -> None:
    assert shown(answers=[page()])[0] == "no fault is open\n"
    assert shown("--all", answers=[page()])[0] == "no fault is open, 0 cleared\n"


def test_programs_get_faults_as_they_are_on_the_wire() -> None:
    text, _ = shown("--json", "--all", answers=[page(DEAD, FAILING)])
    assert [(each["id"], each["state"], each.get("code")) for each in json.loads(text)] == [
        ("f1", "open", None),
        ("f2", "cleared", "xid.79"),
    ]


def test_a_service_that_knows_of_no_faults_is_told() -> None:
    answer = (404, "application/problem+json", problem("not-found"))
    assert "hint" in shown(answers=[answer], status=1)[0]


@pytest.mark.parametrize("as_json", [False, True])
def test_changes_are_followed_until_ctrl_c(as_json: bool) -> None:
    cleared = {**DEAD, "state": "cleared", "cleared_at": f"{DAY}T10:00:09Z", "revision": {"epoch": "e", "number": 6}}
    expired = (410, "application/problem+json", problem("revision-expired"))
    again = page(cleared, AWAY)
    service = Scripted(page(DEAD), (200, EVENTS, event(AWAY) + event(cleared)), expired, again)
    options = ["--json"] if as_json else []
    try:
        with running("faults", "--url", service.url, "--follow", *options) as process:
            lines = [process.stdout.readline() for _ in range(3)]
            deadline = time.monotonic() + PATIENCE_S
            while len(service.asked) < 6:  # what was listed again was no news
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=PATIENCE_S)
            status = process.wait()
    finally:
        service.close()
    assert (status, rest, errors) == (0, "", "")
    if as_json:
        assert [json.loads(line)["id"] for line in lines] == ["f1", "f3", "f1"]
    else:
        since = f"{DAY} 10:00:00Z"
        assert lines == [
            f"{DAY} 10:00:02Z open node_dead gy-1 in guiyang since {since}: why [f1]; f1.fence\n",
            f"{DAY} 10:00:02Z open domain_unreachable horinger since {since}: why [f3]\n",
            f"{DAY} 10:00:09Z cleared node_dead gy-1 in guiyang after 9.0 s\n",
        ]


def test_only_a_domain_is_followed_where_one_is_named() -> None:
    gone = (404, "application/problem+json", problem("not-found"))
    service = Scripted(page(DEAD, HUNG), (200, EVENTS, event(AWAY) + event({**SLOW, "domain": "horinger"})), gone)
    try:
        done = run("faults", "--url", service.url, "--follow", "--json", "--domain", "horinger", no_proxy="127.0.0.1")
    finally:
        service.close()
    assert (done.returncode, [json.loads(line)["id"] for line in done.stdout.splitlines()]) == (1, ["f3", "f5"])
