"""SCH-007, shares of compute as planned and as given, of a run with full requests.

The method of the requirement: a placement request states the planned shares, its answer what starts. What a domain is
given is the sum of devices times their compute index for the task profile of the job, over all domains the allocated
share; each plan counts by the domain that is furthest from its share. Mean over plans, bootstrap over plans.
"""

from collections import defaultdict
from pathlib import Path

from second_judge.bounds import mean, mean_upper, printed
from second_judge.reading import Json, Judged, asked, episode, exchanges, told

REQUIREMENT = "SCH-007"


def judge(folder: Path) -> Judged:
    """Of a run with full requests."""
    answered = exchanges(list(episode(folder, "sch_shares")), "/v1/placements")
    clusters = [[worst(asked(exchange), told(exchange))] for exchange in answered]
    return Judged(printed(mean(clusters)), printed(mean_upper(clusters, REQUIREMENT)), len(clusters))


def worst(request: Json, report: Json) -> float:
    """Distance over the planned share in the domain where it is largest."""
    state = request["state"]
    indices: dict[tuple[str, str], float] = {
        (accelerator["id"], index["profile"]): index["value"]
        for accelerator in state["accelerators"]
        for index in accelerator["indices"]
    }
    profiles = {job["spec"]["id"]: job["spec"]["task_profile"] for job in state["waiting"]}
    given: defaultdict[str, float] = defaultdict(float)
    for decision in report["decisions"]:
        if decision["verb"] == "start":
            for share in decision["placement"]["shares"]:
                index = indices[share["accelerator"], profiles[decision["job"]]]
                given[share["domain"]] += share["devices"] * index
    whole = sum(given.values())
    planned: dict[str, float] = {each["domain"]: each["share"] for each in request["shares"]}
    off = {domain: abs(given[domain] / whole - share) / share for domain, share in planned.items() if share > 0.0}
    return max(off.values())
