"""Every answer of the run is what the published schemas allow (COM-003)."""

from collections.abc import Iterator, Sequence

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
        answer.release()
        expected = "the answer is one that the published operation allows"
        yield holds("COM-003", not wrong, expected, f"{name}: {wrong}" if wrong else "valid", answer)


def violation(request: Request, answer: Answer) -> str:
    """What is wrong with an answer, in words; empty where nothing is."""
    operation = operation_of(request.method, request.path)
    if answer.status >= 400:
        if answer.media_type != PROBLEM_MEDIA_TYPE:
            return f"status {answer.status} with media type {answer.media_type or 'none'}, not {PROBLEM_MEDIA_TYPE}"
        return _invalid(("Problem",), answer)
    if operation is None:
        return ""
    if answer.status not in operation.answers:
        return f"{operation.method} {operation.template} does not answer {answer.status}"
    wanted = operation.answers[answer.status]
    return _invalid(wanted, answer) if wanted else ""


def _invalid(names: Sequence[str], answer: Answer) -> str:
    """Why a body is of none of these classes: what keeps it from the first; empty where it is of one."""
    if answer.json is None:
        return f"the body is not JSON, {' or '.join(names)} is expected"
    if any(schema.is_valid(name, answer.json, reader=True) for name in names[1:]):
        return ""
    wrong = schema.errors(names[0], answer.json, reader=True)
    return f"not a valid {' or '.join(names)}: {wrong[0].pointer or '/'} {wrong[0].detail}" if wrong else ""


CHECK = RunCheck("com_schemas", ("COM-003",), judge)
