"""Reports to render: runs that end in every way, over the real register."""

from typing import Any

from kuayu_schemas.models import ConformanceReport, Requirement
from kuayu_schemas.registers import requirements

HOSTILE = (
    "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{ 7*7 }}]]>\x00\x1b[31m\u202egnp.exe\x08"
)
CHINESE = "节点“华东-一号”的显存带宽为 1.2 TB/s，期望 1.6 TB/s。"
LONG = "a-name-that-never-ends-" * 60

Json = dict[str, Any]

_FIGURES: dict[str, Json] = {
    "MET-001": {"estimate": 12.0, "bound": 12.0, "n": 144, "estimator": "indicators with a right value on every page"},
    "MET-002": {"estimate": 10.4, "bound": 12.1, "n": 54, "estimator": "worst gap; bound by order statistics"},
    "MET-003": {"estimate": 0.99941, "bound": 0.99913, "n": 38400, "estimator": "Clopper–Pearson, strata pooled"},
}
_STRATA = (
    "gauges",
    "rates",
    "counter resets",
    "MiB and MB",
    "ratio and percent",
    "duplicates",
    "disorder",
    "clock skew",
)


TESTED = sum(bool(row.check) and row.profile in {"COM", "MET"} for row in requirements().requirements)
"""Requirements of COM and MET that have a check."""


def sample(
    verdicts: dict[str, str] | None = None, *, exit_code: int | None = None, words: str = "", **over: Any
) -> ConformanceReport:
    """A quick run of COM and MET.

    Args:
        verdicts: Verdict of a requirement where it is not pass.
        exit_code: Where it does not follow from the verdicts.
        words: Text for every place where the target's own words may stand.
        over: Members of the report that are to be otherwise.
    """
    verdicts = verdicts or {}
    results = [
        _result(requirement, verdicts.get(requirement.id, "pass"), words)
        for requirement in requirements().requirements
        if requirement.profile in {"COM", "MET"} and (requirement.check or requirement.id in verdicts)
    ]
    counts = {verdict: sum(row["verdict"] == verdict for row in results) for verdict in verdicts.values()}
    counts["pass"] = len(results) - sum(counts.values())
    body: Json = {
        "spec_version": "0.1.0",
        "suite_version": "0.1.0",
        "target": words or "http://127.0.0.1:8080",
        "declaration": _declaration(words),
        "run_level": "quick",
        "profiles": ["COM", "MET"],
        "selection": [],
        "nonce": words or "7f3b9c1e",
        "started_at": "2026-03-14T09:26:53.589Z",
        "finished_at": "2026-03-14T09:29:07.932Z",
        "environment": {
            "python": "3.11.9",
            "platform": "Linux 6.1 x86_64",
            "processors": 2,
            "packages": [words or "numpy 2.4.6", "scipy 1.17.1"],
        },
        "results": results,
        "summary": [{"verdict": verdict, "count": count} for verdict, count in sorted(counts.items())],
        "exit_code": _exit_code(verdicts) if exit_code is None else exit_code,
        "transcript": "sha256:" + "0123456789abcdef" * 4,
    }
    return ConformanceReport.model_validate(body | over)


def every_verdict() -> ConformanceReport:
    """A run in which each verdict occurs."""
    return sample(
        {
            "COM-006": "harness-error",
            "COM-008": "fail",
            "COM-019": "not-testable",
            "MET-002": "inconclusive",
            "MET-003": "fail",
            "MET-007": "not-applicable",
            "MET-010": "not-supported",
        },
    )


def with_reason(report: ConformanceReport, requirement: str, reason: str) -> ConformanceReport:
    """A report that gives another reason for a requirement."""
    results = [
        result.model_copy(update={"reason": reason}) if result.requirement == requirement else result
        for result in report.results
    ]
    return report.model_copy(update={"results": results})


def hostile() -> ConformanceReport:
    """A run against a target whose every word is an attack."""
    return sample({"COM-008": "fail", "MET-003": "fail"}, words=HOSTILE.replace("\x00", ""))


def _exit_code(verdicts: dict[str, str]) -> int:
    found = set(verdicts.values())
    return (
        1
        if "fail" in found
        else 3
        if "harness-error" in found
        else 2
        if found & {"inconclusive", "not-testable"}
        else 0
    )


def _declaration(words: str) -> Json:
    return {
        "spec_version": "0.1.0",
        "implementation": {"name": words or "kuayu", "version": "0.1.0", "vendor": words or "Kuayu project"},
        "profiles": ["COM", "MET"],
        "features": ["scrape"],
        "limits": {
            "max_body": 16777216,
            "max_batch": 10000,
            "max_page": 1000,
            "retention": 604800.0,
            "idempotency": 86400.0,
        },
        "durability": "process",
        "revision": {"epoch": "e1", "number": 12},
        "now": "2026-03-14T09:26:53.600Z",
    }


def _result(requirement: Requirement, verdict: str, words: str) -> Json:
    body: Json = {
        "requirement": requirement.id,
        "verdict": verdict,
        "required": requirement.modal == "shall" and verdict not in {"not-applicable", "not-supported"},
        "replay": "deterministic",
        "n": 14,
        "parts": [],
        "evidence": _evidence(requirement, verdict, words),
        "duration": 1.25,
    }
    if verdict != "pass":
        body |= {"reason": words or _REASONS[verdict], "hint": words or _HINTS.get(verdict)}
    if requirement.threshold and requirement.id in _FIGURES and verdict != "not-applicable":
        body |= _figure(requirement, verdict)
    return body


def _figure(requirement: Requirement, verdict: str) -> Json:
    body = dict(_FIGURES[requirement.id])
    if requirement.id == "MET-003":
        estimate = {"fail": 0.9764, "inconclusive": 0.9805}.get(verdict, body["estimate"])
        body |= {"estimate": estimate, "bound": estimate - 0.0009, "parts": _strata(estimate)}
    if requirement.id == "MET-002" and verdict == "inconclusive":
        body |= {"estimate": 58.2, "bound": 61.4}
    return body | {
        "threshold": requirement.threshold and requirement.threshold.model_dump(mode="json"),
        "aim": requirement.aim and requirement.aim.model_dump(mode="json"),
        "aim_met": None if requirement.aim is None else requirement.id == "MET-003" and verdict == "pass",
        "unit": requirement.threshold and requirement.threshold.unit,
        "replay": "recorded-times",
    }


def _strata(estimate: float) -> list[Json]:
    """Strata about the whole: where it is low, counter resets are what pulls it down."""
    loss = 1 - estimate
    shares = (0.1, 0.4, 5.2, 0.3, 0.0, 0.2, 1.1, 0.7)
    return [
        {"label": label, "estimate": 1 - loss * share, "bound": 1 - loss * share - 0.001, "n": 4800}
        for label, share in zip(_STRATA, shares, strict=True)
    ]


def _evidence(requirement: Requirement, verdict: str, words: str) -> list[Json]:
    if verdict != "fail":
        return []
    if words or not requirement.threshold:
        return [
            {
                "episode": requirement.check or requirement.id,
                "exchange": 17,
                "expected": 'the same PUT again changes neither revision nor updated_at: 200 with ETag "e1:12"',
                "found": words or '200 with ETag "e1:13", updated_at moved by 0.412 s',
                "request": words
                or 'PUT /v1/nodes/k41f-node-3 {"id": "k41f-node-3", "domain": "k41f-east", "devices": '
                '[{"id": "0", "kind": "gpu", "memory_capacity": 85899345920, "vendor": "NVIDIA", "model": "H100"}]}',
                "answer": words
                or '200 {"id": "k41f-node-3", "revision": {"epoch": "e1", "number": 13}, "updated_at": '
                '"2026-03-14T09:27:11.412Z", "created_at": "2026-03-14T09:27:11.000Z"}',
            },
            {
                "episode": requirement.check or requirement.id,
                "expected": CHINESE,
                "found": words or "revision.number 13 after 2 identical writes",
            },
        ]
    return [
        {
            "episode": requirement.check or requirement.id,
            "exchange": 212,
            "expected": "DCGM_FI_DEV_FB_USED 40537 MiB as memory_used 42506125312 By, within 0.5 %",
            "found": "42506.1",
            "request": "GET /v1/samples?subject=k41f-node-3&subject_kind=device",
            "answer": '200 {"items": [{"subject": "k41f-node-3", "device": "0", "measures": {"memory_used": 42506}}]}',
        }
    ]


_REASONS = {
    "fail": "2 of 9 claims do not hold",
    "inconclusive": "the bound lies on the wrong side of the threshold, the estimate on the right one",
    "harness-error": "ZeroDivisionError in judge: division by zero (this is a fault of the suite)",
    "not-testable": "no credentials of a second tenant were given",
    "not-supported": "feature tenancy is not declared",
    "not-applicable": "profile was not asked for",
}
_HINTS = {
    "fail": "compare the stored document with the one received before a revision is given out",
    "inconclusive": "a full run observes more: --level full",
    "not-testable": "give --other-header with the credentials of a second tenant",
}
