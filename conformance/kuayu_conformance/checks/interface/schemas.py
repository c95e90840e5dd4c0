"""Every answer of the run is what the published schemas allow (COM-003)."""

from collections.abc import Iterator

from kuayu_conformance.check import Exchanges, RunCheck
from kuayu_conformance.contract import violation
from kuayu_conformance.findings import Finding, holds


def judge(exchanges: Exchanges) -> Iterator[Finding]:
    """Hold each answer against the class that the published operation names for its status."""
    for name, _, answer in exchanges:
        if answer.failure:
            continue  # COM-006 speaks about dropped connections
        wrong = violation(answer)
        answer.release()
        expected = "the answer is one that the published operation allows"
        yield holds("COM-003", not wrong, expected, f"{name}: {wrong}" if wrong else "valid", answer)


CHECK = RunCheck("com_schemas", ("COM-003",), judge)
