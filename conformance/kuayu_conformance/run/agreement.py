"""Whether a run that was broken off and what it is to be gone on with are the same: options, suite, target."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import kuayu_conformance
from kuayu_conformance.answers import Answer
from kuayu_conformance.extras import lacking
from kuayu_conformance.run.runner import Options, environment, shown_target
from kuayu_conformance.transcript import Event

MOVES = ("now", "revision")
"""Members of a declaration that change while a target runs."""


class CannotResume(Exception):
    """The run cannot be gone on with.

    Attributes:
        hint: What to do.
    """

    def __init__(self, cause: str, hint: str) -> None:
        """Say why, and what to do."""
        super().__init__(cause)
        self.hint = hint


class Contradiction(CannotResume):
    """An option was given that is not that of the run."""


def agreed(given: Options, header: Event) -> Options:
    """Options of the run; what is given and empty is taken from its header.

    Raises:
        Contradiction: An option is given that is another one there.
    """
    hint = "leave the option out, or begin another run in another folder"
    profiles = (*header["profiles"], *header.get("sub_profiles", ()))
    for option, now, then in (
        ("--nonce", given.nonce, header["nonce"]),
        ("--level", given.level, header["run_level"]),
        ("--profile", set(given.profiles), set(profiles)),
        ("--requirement", set(given.selection), set(header["selection"])),
        ("--exclude", _exclusions(given.excluded), _exclusions(header.get("excluded", {}))),
    ):
        if now and now != then:
            raise Contradiction(f"the run was begun with {option} {_said(then)}, not {_said(now)}", hint)
    if given.full_requests and not header.get("full_requests", False):
        raise Contradiction("the run was begun without --full-requests", hint)
    origin = header.get("origin", {})
    if given.origin and given.origin != origin:
        raise Contradiction("the run was not begun with that --challenge, or with another --witness", hint)
    if shown_target(given.target).rstrip("/") != header["target"].rstrip("/"):
        then = header["target"]
        raise Contradiction(f"the run was begun with --target {then}, not {shown_target(given.target)}", hint)
    if bool(given.other_headers) != header["other_tenant"]:
        then, now = ("with", "without") if header["other_tenant"] else ("without", "with")
        raise Contradiction(
            f"the run was begun {then} credentials of a second tenant, and is to go on {now} them",
            "give --other-tenant-header as then",
        )
    return replace(
        given,
        nonce=header["nonce"],
        level=header["run_level"],
        profiles=profiles,
        selection=tuple(header["selection"]),
        excluded=dict(header.get("excluded", {})),
        origin=origin,
        full_requests=header.get("full_requests", False),
    )


def _exclusions(excluded: Mapping[str, str]) -> set[str]:
    """Exclusions as they are typed."""
    return {f"{name}={reason}" for name, reason in excluded.items()}


def _said(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(sorted(value)) or "of none in particular"


def _names(data: Sequence[Mapping[str, str]]) -> str:
    return ", ".join(f"{used['name']} ({used['digest'][:15]}…)" for used in data) or "nothing"


def same_data(then: Sequence[Mapping[str, str]], now: Sequence[Mapping[str, str]]) -> None:
    """Hold the measurements and originals at hand against those that the run was begun with, by their digests.

    Raises:
        Contradiction: They differ.
    """
    if then != now:
        raise Contradiction(
            f"the run was begun with {_names(then)} beyond what comes with the suite, now there is {_names(now)}",
            "name the folder of then with --data or KUAYU_DATA",
        )


def same_suite(header: Event) -> None:
    """Hold this suite and where it runs against those that began the run.

    Raises:
        CannotResume: They differ.
    """
    without = "what extras are lacking"
    now = {"suite_version": kuayu_conformance.__version__, **environment(), without: sorted(lacking())}
    begun_without = {without: header.get("without", [])}
    then = {"suite_version": header.get("suite_version"), **header.get("environment", {}), **begun_without}
    for name, value in now.items():
        if then.get(name) != value:
            raise CannotResume(
                f"the run was begun by another suite or elsewhere: {name} was {then.get(name)}, is {value}",
                "a report says once by what it was made; go on as then, or begin a new run in another folder",
            )


def same_target(then: Answer, now: Answer) -> None:
    """Hold the declaration of now against that of then.

    Raises:
        CannotResume: They differ in more than clock and state.
    """
    for name, was, now_is in _differences(_declared(then), _declared(now)):
        raise CannotResume(
            f"the target is another one than that which the run was begun with: {name} was {was}, is {now_is}",
            "two versions cannot share a report; serve the one of then, or begin a new run in another folder",
        )


def same_epoch(then: Answer, now: Answer, looked: Collection[str]) -> bool:
    """Hold the epoch of now against that of then: a target that changed it has lost state.

    Checks that had begun and not ended (``looked``) and had made something there, or looked at its state, would go on
    with what is there no more. Decisions follow from their requests alone, so that they are the same in any epoch.

    Returns:
        Whether it is the same.

    Raises:
        CannotResume: It is another one, and there are such checks.
    """
    was, now_is = _epoch(then), _epoch(now)
    if was != now_is and looked:
        raise CannotResume(
            f"the target has lost state since: its epoch was {was}, is {now_is}, and {', '.join(sorted(looked))} had "
            "begun on that of then",
            "serve the target with its state of then (the reference: the same --database), or begin a new run in "
            "another folder",
        )
    return bool(was == now_is)


def _epoch(answer: Answer) -> Any:
    revision = answer.json.get("revision") if isinstance(answer.json, dict) else None
    return revision.get("epoch") if isinstance(revision, dict) else None


def _declared(answer: Answer) -> Mapping[str, Any]:
    body = answer.json
    members = {name: body[name] for name in body if name not in MOVES} if isinstance(body, dict) else {"body": body}
    return {"status": answer.status, **members}


def _differences(then: Mapping[str, Any], now: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any, Any]]:
    for name in [*then, *(name for name in now if name not in then)]:
        was, now_is = then.get(name), now.get(name)
        if isinstance(was, dict) and isinstance(now_is, dict):
            yield from _differences(was, now_is, f"{within}{name}.")
        elif was != now_is:
            yield f"{within}{name}", was, now_is
