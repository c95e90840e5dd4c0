"""SCH-002, how long a decision takes, from the seconds of the answers.

The method of the requirement: at level full the first 1 000 answers to ``POST /v1/placements`` are of five domains and
3 000 jobs and are judged, at the other levels the first 475; 99th percentile, bound by order statistics.
"""

from itertools import islice
from pathlib import Path

from second_judge.bounds import printed, quantile, quantile_upper
from second_judge.reading import Judged, episode

LEVEL = 0.99
DECISIONS_OF_FULL_RUNS = 1000


def judge(folder: Path) -> Judged:
    """Of a full run."""
    answered = (event["seconds"] for event in episode(folder, "sch_latency") if event.get("path") == "/v1/placements")
    found = list(islice(answered, DECISIONS_OF_FULL_RUNS))
    return Judged(printed(quantile(found, LEVEL)), printed(quantile_upper(found, LEVEL)), len(found))
