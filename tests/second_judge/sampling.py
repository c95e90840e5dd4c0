"""MET-002, the longest time between samples, from the answers of a run alone.

Clause met-01-indicators and the method of the requirement: the longest gap by ``observed_at`` between samples of any
watched subject, both ends of the window included. The window stands in the queries, and a page that is asked for twice
holds the same samples.
"""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from second_judge.bounds import printed
from second_judge.reading import Judged, episode, seconds, told


def judge(folder: Path) -> Judged:
    """The longest gap of any subject; a maximum, so the bound is the figure."""
    samples: dict[str, set[tuple[str, str]]] = defaultdict(set)
    window = (0.0, 0.0)
    for event in episode(folder, "met_sampling"):
        query = parse_qs(urlsplit(event.get("path", "")).query)
        if "to" not in query or event["status"] != 200:
            continue
        window = seconds(query["from"][0]), seconds(query["to"][0])
        for row in told(event)["items"]:
            samples[row["subject"]].add((row.get("device", ""), row["observed_at"]))
    longest = max(_longest([seconds(at) for _, at in rows], *window) for rows in samples.values())
    return Judged(printed(longest), printed(longest), sum(map(len, samples.values())))


def _longest(instants: list[float], since: float, until: float) -> float:
    inside = sorted({at for at in instants if since <= at <= until})
    return max(later - earlier for earlier, later in pairwise([since, *inside, until]))
