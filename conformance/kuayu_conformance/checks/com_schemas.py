"""Every answer of the run is what the published schemas allow (COM-003)."""

from collections.abc import Iterator

from kuayu_conformance.answers import PROBLEM_MEDIA_TYPE, Answer
from kuayu_conformance.check import Exchanges, RunCheck
from kuayu_conformance.contract import operation_of
from kuayu_conformance.episode import Request
from kuayu_conformance.findings import Finding, holds
from kuayu_schemas import schema


def judge(exchanges: Exchanges) -> Iterator[Finding]:
    """Hold each answer against the class that the published operation names for its status."""
    for name, request, answer in exchanges:
        if answer.failure:
            continue  # COM-006 speaks about dropped connections
        wrong = violation(request, answer)
        expected = "the answer is one that the published operation allows"
        yield holds("COM-003", not wrong, expected, f"{name}: {wrong}" if wrong else "valid", answer)


def violation(request: Request, answer: Answer) -> str:
    """What is wrong with an answer, in words; empty where nothing is."""
    operation = operation_of(request.method, request.path)
    if answer.status >= 400:
        if answer.media_type != PROBLEM_MEDIA_TYPE:
            return f"status {answer.status} with media type {answer.media_type or 'none'}, not {PROBLEM_MEDIA_TYPE}"
        return _invalid("Problem", answer)
    if operation is None:
        return ""
    if answer.status not in operation.answers:
        return f"{operation.method} {operation.template} does not answer {answer.status}"
    wanted = operation.answers[answer.status]
    return _invalid(wanted, answer) if wanted else ""


def _invalid(name: str, answer: Answer) -> str:
    if answer.json is None:
        return f"the body is not JSON, {name} is expected"
    wrong = schema.errors(name, answer.json, reader=True)
    return f"not a valid {name}: {wrong[0].pointer or '/'} {wrong[0].detail}" if wrong else ""


CHECK = RunCheck("com_schemas", ("COM-003",), judge)
