"""Why a run cannot work, found out before an hour is spent on it."""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import httpx

from kuayu_conformance.episode import seconds_of
from kuayu_conformance.run.machine import MachineWatch
from kuayu_conformance.run.plan import LIBRARIES, install_command, lacking, untestable
from kuayu_conformance.run.runner import Options, shown_target
from kuayu_schemas import registers, schema

LOOKED_AT_SECONDS = 2.5
"""How long it is looked at what else keeps this machine busy."""


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was looked at.

    Attributes:
        subject: What was looked at.
        well: Whether a run can go on with it; None where it only limits what can be tested.
        observed: What was found.
        hint: What to do about it, empty where nothing is to be done.
    """

    subject: str
    well: bool | None
    observed: str
    hint: str = ""


def diagnose(options: Options, *, machine: bool = True) -> Iterator[Diagnosis]:
    """Look at the target and at this set-up, from what everything needs to what a few checks need.

    ``machine`` is whether it is looked at what keeps this machine busy, which takes some seconds.
    """
    with httpx.Client(base_url=options.target.rstrip("/"), timeout=options.timeout, trust_env=False) as client:
        started = time.time()
        try:
            answer = client.get("/v1/conformance", headers=dict(options.headers))
        except httpx.HTTPError as error:
            where = shown_target(options.target)
            yield Diagnosis(
                "target", False, f"{where} does not answer ({error})", "is it running, and is the URL right?"
            )
            return
        elapsed = time.time() - started
        yield Diagnosis("target", True, f"answers in {elapsed * 1000:.0f} ms")
        if answer.status_code in {401, 403}:
            yield Diagnosis(
                "credentials",
                False,
                f"the target answers {answer.status_code}",
                "--header 'Authorization: Bearer TOKEN'",
            )
            return
        try:
            body = answer.json()
        except ValueError:
            body = None
        if answer.status_code != httpx.codes.OK or not isinstance(body, dict):
            observed = f"GET /v1/conformance answers {answer.status_code} and no declaration"
            yield Diagnosis("declaration", False, observed, "the URL given must be the one that /v1 is under")
            return
        wrong = schema.errors("Declaration", body, reader=True)
        if wrong:
            observed = f"is not valid: {wrong[0].pointer or '/'} {wrong[0].detail}"
            yield Diagnosis("declaration", False, observed, "compare with class Declaration of the published schema")
            return
        yield Diagnosis(
            "declaration", True, f"profiles {', '.join(_declared(body))}; features {_words(body['features'])}"
        )
        yield from _limits_of_testing(options, body, (started + time.time()) / 2)
        if machine:
            yield _machine(options.target)


def _limits_of_testing(options: Options, body: dict[str, object], middle: float) -> Iterator[Diagnosis]:
    version = str(body["spec_version"])
    same = version == registers.SPEC_VERSION
    hint = "" if same else f"this suite tests version {registers.SPEC_VERSION}"
    yield Diagnosis("version", same or None, f"the target declares {version}", hint)
    strange = [name for name in _declared(body) if "/" in name and name not in registers.sub_profiles()]
    if strange:
        hint = f"sub-profiles are {', '.join(registers.sub_profiles())}"
        yield Diagnosis("profiles", None, f"{', '.join(strange)}: not known to this suite, and not tested", hint)
    missing = sorted(set(options.profiles) - _with_parts(_declared(body)))
    if missing:
        yield Diagnosis(
            "profiles", None, f"{', '.join(missing)} asked for, not declared", "they will be judged all the same"
        )
    yield from _extras(options, set(options.profiles) or set(_declared(body)))
    skew = (seconds_of(body["now"]) or middle) - middle
    near = abs(skew) < 2  # noqa: PLR2004 - the tolerance of the standard
    hint = "" if near else "set both clocks by NTP; instants that the suite sends may be refused"
    yield Diagnosis("clock", near or None, f"the target's clock is {skew:+.2f} s off this one", hint)
    features = set(map(str, body["features"]))  # type: ignore[call-overload]
    if "scrape" in features:
        host = options.exporter_host()
        observed = (
            f"the suite's exporter will be served on {host}" if host else "the target cannot reach the suite's exporter"
        )
        hint = "the target's allow-list must hold it" if host else "--callback-host ADDRESS of this machine"
        yield Diagnosis("scrape", bool(host) or None, observed, hint)
    if "tenancy" in features and not options.other_headers:
        hint = "--other-tenant-header 'Authorization: Bearer TOKEN'"
        yield Diagnosis("tenancy", None, "declared, but there are no credentials of a second tenant", hint)


def _declared(body: dict[str, object]) -> list[str]:
    """Names of the profiles and sub-profiles of a valid declaration."""
    members = [body.get(member) for member in ("profiles", "sub_profiles")]
    return [str(name) for names in members if isinstance(names, list) for name in names]


def _with_parts(names: list[str]) -> set[str]:
    """These profiles and sub-profiles, with all parts of what is declared whole."""
    return {*names, *(name for name, row in registers.sub_profiles().items() if row.profile in names)}


def _extras(options: Options, profiles: Collection[str]) -> Iterator[Diagnosis]:
    """What cannot be tested of some profiles since it needs an extra that is not installed."""
    for extra, identifiers in untestable(profiles, lacking()).items():
        numbers: dict[str, list[str]] = {}
        for identifier in identifiers:
            profile, _, number = identifier.partition("-")
            if identifier in (options.selection or identifiers):
                numbers.setdefault(profile, []).append(number)
        if not numbers:
            continue
        named = "; ".join(f"{profile}-{', '.join(entry)}" for profile, entry in numbers.items())
        libraries = ", ".join(LIBRARIES[extra])
        observed = f"{extra} ({libraries}) is not installed, so that these are not testable: {named}"
        yield Diagnosis("extras", None, observed, install_command(extra))


def _machine(target: str) -> Diagnosis:
    """Whether delays of this machine can be told from those of the target, and whether it is busy now."""
    with MachineWatch(target) as watch:
        begin = time.monotonic()
        time.sleep(LOOKED_AT_SECONDS)
        load = watch.since(begin)
    if load is None:
        observed = "what else keeps it busy cannot be told from the target, so that no delay will be excused"
        return Diagnosis("machine", None, observed, "start the suite as the user that the target runs as, on Linux")
    if load.busy:
        return Diagnosis("machine", None, load.words, "figures that rest on the clock may not be testable; wait")
    return Diagnosis("machine", True, f"nothing else keeps it busy (load {load.load:.1f})")


def _words(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) and names else "none"
