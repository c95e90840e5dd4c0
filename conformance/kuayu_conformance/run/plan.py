"""What a run consists of: which checks, under which settings, what they need here, and what applies to this target.

1. **Extras.** A light installation tests COM, and MET but for what telemetry is played for. That is drawn by NumPy
   (Philox, ziggurat) and computed in its arrays for thousands of nodes; transcripts are judged again by the very same
   numbers, so that other generators cannot stand in for it. What lacks an extra is told with the command that installs
   it.
2. **Originals.** Public traces, curves, series and runs of the data folder may be used, and are named by their digests.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check, CheckEntry, RunCheck
from kuayu_conformance.checks import CHECKS, NAMES, RUN_CHECKS
from kuayu_conformance.claims import EXCLUDED_BECAUSE, LEFT_TO_LONGER_RUNS, NOT_ASKED_FOR
from kuayu_conformance.corpora import DEMAND_SERIES, JOB_TRACES, TRAINING_CURVES, Table, training
from kuayu_conformance.episode import Settings
from kuayu_conformance.kept_scores import KeptScores
from kuayu_conformance.transcript import TranscriptError
from kuayu_schemas import registers, schema
from kuayu_schemas.models import (
    Declaration,
    Feature,
    Implementation,
    Level,
    Limits,
    Profile,
    Requirement,
    Revision,
    RunLevel,
    Verdict,
)

LIBRARIES = {"telemetry": ("numpy",), "simulation": ("numba", "numpy", "scipy")}
"""Libraries of each extra that checks need, as ``pyproject.toml`` lists them."""

ORIGINALS: Mapping[str, str | Path] = {**JOB_TRACES, **training.FILES, **TRAINING_CURVES, **DEMAND_SERIES}
"""Where each is in the folder, by name."""

PREAMBLE = "preamble"
"""Name of the episode in which the declaration is read."""
DEFAULT_LIMITS = {"max_body": 1_000_000.0, "max_batch": 1000.0, "max_page": 100.0, "retention": 86_400.0}
"""What is assumed of a target whose declaration cannot be read, so that its other failings can still be shown."""


def lacking() -> frozenset[str]:
    """Extras of which a library is not installed."""
    return frozenset(extra for extra, names in LIBRARIES.items() if not all(map(find_spec, names)))


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'kuayu[{extra}]'"


def originals_at_hand(names: Iterable[str], data: Path | None) -> dict[str, Path]:
    """Originals of these names that are in a data folder, and that folder."""
    return {name: data for name in names if data is not None and (data / ORIGINALS[name]).is_file()}


def original_entries(traces: Mapping[str, Path]) -> Iterator[dict[str, str]]:
    """What a transcript's header says of them."""
    for name, data in traces.items():
        yield {"name": name, "digest": "sha256:" + hashlib.sha256((data / ORIGINALS[name]).read_bytes()).hexdigest()}


def originals_named(used: Iterable[Mapping[str, Any]], data: Path | None) -> dict[str, Path]:
    """Originals that a header names.

    Raises:
        TranscriptError: One of them is not at hand, or is another one by now.
    """
    digests = {item["name"]: item["digest"] for item in used if item["name"] in ORIGINALS}
    paths = originals_at_hand(digests, data)
    for name in digests.keys() - paths.keys():
        raise TranscriptError(
            f"the run used the original {name} ({ORIGINALS[name]}), which is not at hand; "
            "name its folder with --data or KUAYU_DATA"
        )
    for entry in original_entries(paths):
        if entry["digest"] != digests[entry["name"]]:
            raise TranscriptError(f"the original {entry['name']} at hand is not the one that the run used")
    return paths


@dataclass(frozen=True)
class Plan:
    """A run as it was asked for.

    Attributes:
        profiles: Profiles and sub-profiles asked for; empty for all that the target declares.
        selection: Requirements asked for; empty for all.
        level: How much is measured.
        nonce: Seed of everything that the suite chooses.
        run: Name of this run alone.
        other_tenant: Whether credentials of a second tenant are at hand.
        declaration: What the target declares; None where it could not be read.
        tables: Measurements that the run may use.
        traces: Job traces that it may use, by name, and the folder that they are in.
        begun_anew: How often each episode was begun anew, after the run had been broken off.
        excluded: Requirements that are left out whatever else is asked for, each with the reason that was given.
        score_store: Scores of simulated windows that are kept beside the transcript.
        salted: Whether names follow from the run too, and not from the nonce alone.
        keeps_truth: Whether the transcript keeps what was played.
        without: Extras that were not installed when the run began, so that checks that need them were not made.
    """

    profiles: tuple[str, ...]
    selection: tuple[str, ...]
    level: RunLevel
    nonce: str
    run: str
    other_tenant: bool
    declaration: Declaration | None
    tables: tuple[Table, ...] = ()
    traces: Mapping[str, Path] = field(default_factory=dict)
    begun_anew: Mapping[str, int] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    score_store: KeptScores = field(default_factory=KeptScores, compare=False)
    salted: bool = False
    keeps_truth: bool = False
    without: frozenset[str] = frozenset()

    @classmethod
    def from_header(cls, header: Mapping[str, Any], declaration: Answer, tables: tuple[Table, ...]) -> "Plan":
        """The plan that a transcript's header and the answer to GET /v1/conformance give."""
        body = declaration.json
        readable = declaration.status == 200 and schema.is_valid("Declaration", body, reader=True)  # noqa: PLR2004
        return cls(
            (*header["profiles"], *header.get("sub_profiles", ())),
            tuple(header["selection"]),
            RunLevel(header["run_level"]),
            str(header["nonce"]),
            str(header["run"]),
            bool(header["other_tenant"]),
            declaration_of(body) if readable else None,
            tables,
            salted=bool(header.get("salted")),
            keeps_truth=bool(header.get("full_requests")),
            excluded=dict(header.get("excluded", {})),  # which old transcripts do not say
            without=frozenset(header.get("without", ())),  # likewise
        )

    @cached_property
    def declared(self) -> frozenset[str]:
        """Names of the profiles and sub-profiles that the target declares, as far as this version knows them."""
        if self.declaration is None:
            return frozenset()
        return frozenset(self.declaration.profiles) | registers.sub_profiles().keys() & set(
            self.declaration.sub_profiles or ()
        )

    @cached_property
    def scope(self) -> frozenset[str]:
        """Names of the profiles and sub-profiles that the run is about.

        Where sub-profiles were asked for these are all: what the target declares besides shall not count for them.
        """
        if self.asks_for_parts:
            return frozenset({Profile.COM.value, *self.profiles})
        return self.declared | set(self.profiles)

    @property
    def asks_for_parts(self) -> bool:
        """Whether sub-profiles were asked for."""
        return not registers.sub_profiles().keys().isdisjoint(self.profiles)

    @cached_property
    def operations(self) -> frozenset[str] | None:
        """Operations that checks keep to; None where the run is about whole profiles."""
        parts = registers.sub_profiles().keys() & self.scope
        return frozenset(registers.mandatory(self.scope)) if parts else None

    @property
    def data_names(self) -> set[str]:
        """Names of the tables of measurements and of the traces."""
        return {table.name for table in self.tables} | set(self.traces)

    @property
    def settings(self) -> Settings:
        """What episodes may know."""
        declared = self.declaration
        limits = declared.limits.model_dump(exclude_none=True) if declared else DEFAULT_LIMITS
        return Settings(
            self.nonce,
            self.run,
            self.level is RunLevel.full,
            frozenset(feature.value for feature in declared.features) if declared else frozenset(),
            {name: float(value) for name, value in limits.items()},
            self.other_tenant,
            self.tables,
            self.traces,
            frozenset(profile.value for profile in declared.profiles) if declared else frozenset(),
            self.score_store,
            self.run if self.salted else "",
            operations=self.operations,
            keeps_truth=self.keeps_truth,
            smoke=self.level is RunLevel.smoke,
        )

    def settings_of(self, check: Check[Any]) -> Settings:
        """What the episode of a check may know; begun anew, it gives other names than before and never meets itself."""
        times = self.begun_anew.get(check.name, 0)
        run = f"{self.run}/{times}" if times else self.run
        plain = all(row.level is Level.interface for row in testable() if check_of(row) == check.name)
        return replace(self.settings, run=run, salt=run if self.salted else "", salts_all=self.salted and plain)

    def applies(self, requirement: Requirement) -> tuple[Verdict, str] | None:
        """None where the requirement is to be tested, otherwise the verdict and the reason."""
        check = next((check for check in CHECKS if check.name == check_of(requirement)), None)
        left_out = self._left_out(requirement, check)
        if left_out is None and check and check.extra in self.without:
            libraries = ", ".join(LIBRARIES.get(check.extra, ()))
            reason = f"its check needs the extra {check.extra} ({libraries}), which the suite was installed without"
            return Verdict.not_testable, reason
        return left_out

    def _left_out(self, requirement: Requirement, check: CheckEntry | None) -> tuple[Verdict, str] | None:
        """The same, whatever is installed."""
        if requirement.id in self.excluded:
            return Verdict.not_applicable, EXCLUDED_BECAUSE + self.excluded[requirement.id]
        if self.selection and requirement.id not in self.selection:
            return Verdict.not_applicable, NOT_ASKED_FOR
        profile, of = requirement.profile, claimable(requirement)
        if profile is not Profile.COM and self.profiles and of.isdisjoint(self.profiles):
            return Verdict.not_applicable, f"{_whose(profile, self.profiles)} was not asked for"
        longer = check is not None and (check.long or requirement.id in check.longer)
        if self.level is RunLevel.smoke and longer and not self.selection:
            return Verdict.not_applicable, LEFT_TO_LONGER_RUNS
        if self.declaration is None:
            return None
        if profile is not Profile.COM and of.isdisjoint(self.declared):
            if not of.isdisjoint(self.profiles):
                return None
            return Verdict.not_applicable, f"{_whose(profile, self.declared)} is not declared"
        needs = check.needs if check else ()
        if needs and (self.scope if self.asks_for_parts else self.declared).isdisjoint(needs):
            through, lacks = " or ".join(whole(needs)), "asked for" if self.asks_for_parts else "declared"
            return Verdict.not_applicable, f"shows only through profile {through}, which is not {lacks}"
        if requirement.feature and requirement.feature not in self.declaration.features:
            return Verdict.not_supported, f"feature {requirement.feature.value} is not declared"
        return None

    def listed(self) -> list[CheckEntry]:
        """Checks that this run needs, as they are listed."""
        wanted = {check_of(r) for r in testable() if self.applies(r) is None}
        return [check for check in CHECKS if check.name in wanted]

    def checks(self) -> list[Check[Any]]:
        """The same, imported, as they are made: those that mostly wait, light ones, heavy ones, heavy ones with times.

        Raises:
            ModuleNotFoundError: An extra that one of them needs is not installed.
        """
        checks = [check.load() for check in self.listed()]
        return sorted(
            checks, key=lambda check: (not check.background, check.heavy, check.heavy and check.recorded_times)
        )

    def run_checks(self) -> list[RunCheck]:
        """Checks over the whole run that this run needs."""
        wanted = {check_of(r) for r in testable() if self.applies(r) is None}
        return [check for check in RUN_CHECKS if check.name in wanted]


def claimable(requirement: Requirement) -> frozenset[str]:
    """Names of the profile and of all sub-profiles that a requirement belongs to."""
    parts = (name for name, row in registers.sub_profiles().items() if requirement.id in row.requirements)
    return frozenset({requirement.profile.value, *parts})


def _whose(profile: Profile, names: Collection[str]) -> str:
    """What a requirement belongs to that is of none of these names: its profile, or what is left of that."""
    parts = sorted(name for name in names if name.startswith(f"{profile.value}/"))
    return f"profile {profile.value} beyond {' and '.join(parts)}" if parts else f"profile {profile.value}"


def whole(names: Iterable[str]) -> list[str]:
    """Those of some names that are of profiles and not of parts of them."""
    return [name for name in names if name not in registers.sub_profiles()]


def traces_of(level: RunLevel) -> tuple[str, ...]:
    """Names of the public originals that checks use in a run of a level."""
    if level is not RunLevel.full:
        return ()
    without = lacking()
    names = (name for check in CHECKS if check.extra not in without for name in check.load().traces)
    return tuple(dict.fromkeys(names))


def untestable(profiles: Collection[str], without: Collection[str]) -> dict[str, list[str]]:
    """Identifiers of requirements of COM and of some profiles or sub-profiles whose checks need an extra, by extra."""
    by_extra: dict[str, list[str]] = {}
    for row in testable():
        concerned = row.profile is Profile.COM or not claimable(row).isdisjoint(profiles)
        if concerned and (extra := extra_of(row)) in without:
            by_extra.setdefault(extra, []).append(row.id)
    return by_extra


def declaration_of(body: dict[str, Any]) -> Declaration:
    """A declaration as a reader takes it: unknown members are left out, unknown names become ``unknown``."""

    def known(value: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
        return {name: value[name] for name in model.model_fields if name in value}

    def named(values: list[str], names: type[Profile | Feature]) -> list[str]:
        return [value if value in list(names) else names.unknown.value for value in values]

    return Declaration.model_validate(
        {
            **known(body, Declaration),
            "implementation": known(body["implementation"], Implementation),
            "limits": known(body["limits"], Limits),
            "revision": known(body["revision"], Revision),
            "profiles": named(body["profiles"], Profile),
            "features": named(body["features"], Feature),
        }
    )


def testable() -> list[Requirement]:
    """Requirements that have a check."""
    return [requirement for requirement in registers.requirements().requirements if requirement.check]


def check_of(requirement: Requirement) -> str:
    """Name of the check that tests a requirement, whose module the register gives; empty where it has none."""
    return NAMES.get(requirement.check or "", "")


def extra_of(requirement: Requirement) -> str:
    """The extra that the check of a requirement needs; empty where it needs none."""
    return next((check.extra for check in CHECKS if check.name == check_of(requirement)), "")


def blank_settings(header: Mapping[str, Any]) -> Settings:
    """Settings before the declaration has been read."""
    return Settings(
        str(header["nonce"]), str(header["run"]), full=False, features=frozenset(), limits={}, other_tenant=False
    )
