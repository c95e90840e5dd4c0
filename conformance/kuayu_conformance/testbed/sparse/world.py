"""The world of sparse telemetry: what is registered, what is sent second by second, and the truth. See ``World``."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.sparse.exporters import DEVICES, Exporter, any_measures
from kuayu_conformance.testbed.sparse.patterns import IN_TURNS, PATTERNS, noisy, steady
from kuayu_conformance.testbed.sparse.troubles import FAMILY, TROUBLES, waiting
from kuayu_conformance.testbed.sparse.values import DOMAINS, GRACE, LASTING, SAMPLES, Activity, Scale, Unit
from kuayu_conformance.testbed.telemetry.population import NameOf
from kuayu_conformance.testbed.telemetry.values import Delivery
from kuayu_conformance.testbed.telemetry.world import urn_with

if TYPE_CHECKING:
    from kuayu_schemas import documents

GUIDE = ("accelerator_utilisation", "power")
"""What the sample of the guide for integrators holds, as values that never change: 0.93 and 68.5 W."""

_GUIDE_SHARE = 0.03
_FAMILIES = 0.06
"""Share of the healthy units that are a family which works together."""
_STATED = 0.5
"""Share of the nodes whose devices are registered with their memory and their limit of power."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """One node as it is sent: its name, exporter, values by measure and second, and reported states of health."""

    node: str
    exporter: Exporter
    values: Mapping[str, list[float]]
    health: tuple[str, ...]


class World:
    """Nodes in a few domains; everything follows from scale and seed.

    Attributes:
        domains: To be registered first (class Domain).
        nodes: To be registered next (class Node).
        families: Likewise (class ComputeIdentifier).
        units: What is judged.
    """

    def __init__(self, scale: Scale, seed: str, name_of: NameOf) -> None:
        self.scale = scale
        self._seed = seed
        self._name_of, self._urn_of = name_of, urn_with(name_of)
        self._sites = [name_of(f"sparse-{number}") for number in range(DOMAINS)]
        self.domains: tuple[documents.Domain, ...] = tuple({"id": site} for site in self._sites)
        self._nodes: list[documents.Node] = []
        self._families: list[documents.ComputeIdentifier] = []
        self._sent: dict[str, list[_Sent]] = defaultdict(list)
        healthy = [self._healthy(number) for number in range(scale.healthy)]
        faulty = [self._faulty(scale.healthy + number) for number in range(scale.faulty)]
        self.units = (*healthy, *faulty)
        self.nodes = tuple(self._nodes)
        self.families = tuple(self._families)

    def deliveries(self, second: int) -> tuple[Delivery, ...]:
        """What the aggregators send in a second: what was observed in the one before it."""
        seen = second - 1
        if not 0 <= seen < self.scale.total:
            return ()
        return tuple(Delivery(site, tuple(self._samples(site, seen))) for site in self._sites)

    def _samples(self, site: str, second: int) -> Iterator[tuple[float, Mapping[str, Any]]]:
        for sent in self._sent[site]:
            exporter = sent.exporter
            if second % exporter.period:
                continue
            instant = second + exporter.phase
            body: dict[str, object] = {
                name: sent.values[name][second] for name in exporter.measures if name in sent.values
            }
            if sent.health:
                body["health_state"] = sent.health[second]
            for device in range(DEVICES) if exporter.by_device and not sent.health else (-1,):
                head = {"subject": sent.node, "subject_kind": "node"}
                if device >= 0:
                    head = {"subject": sent.node, "subject_kind": "device", "device": str(device)}
                yield instant, {**head, **body}

    def _healthy(self, number: int) -> Unit:
        chance, noise = Chance(self._seed, f"unit {number}"), stream(self._seed, f"noise {number}")
        if chance.fraction() < _GUIDE_SHARE:
            return self._guide(number, chance)
        together = chance.fraction() < _FAMILIES
        pattern = chance.weighted([(name, weight) for name, (_, weight) in PATTERNS.items()])
        in_turns = pattern in IN_TURNS
        if together and in_turns:
            pattern, in_turns = "steady", False
        measures = any_measures(chance)
        exporter = Exporter.drawn(chance, measures, quick=False, in_turns=in_turns)
        members = chance.pick(FAMILY.tolist()) if together else 1
        nodes = self._registered(number, exporter, members, chance)
        done = PATTERNS[pattern][0](chance, noise, self.scale.total)
        for node in nodes:
            self._send(number, node, exporter, done, ())
        patience = GRACE + SAMPLES * max(exporter.period, exporter.page)
        return Unit(f"{pattern}{', a family' if together else ''}", measures, nodes, done.works, None, patience)

    def _guide(self, number: int, chance: Chance) -> Unit:
        exporter = Exporter.drawn(chance, GUIDE, quick=False, in_turns=True)
        (node,) = self._registered(number, exporter, 1, chance)
        seconds = self.scale.total
        values = {name: [value] * seconds for name, value in zip(GUIDE, (0.93, 68.5), strict=True)}
        self._sent[self._site(number)].append(_Sent(node, exporter, values, ()))
        return Unit("sample of the guide", GUIDE, (node,), np.ones(seconds, bool), None, GRACE)

    def _faulty(self, number: int) -> Unit:
        chance, noise = Chance(self._seed, f"unit {number}"), stream(self._seed, f"noise {number}")
        pattern = chance.weighted([(name, trouble.weight) for name, trouble in TROUBLES.items()])
        trouble = TROUBLES[pattern]
        measures = any_measures(chance, trouble.least)
        exporter = Exporter.drawn(chance, measures, quick=True, in_turns=False)
        members = chance.pick(FAMILY.tolist()) if trouble.together else 1
        nodes = self._registered(number, exporter, members, chance)
        patience = GRACE + SAMPLES * exporter.period
        last = int(self.scale.seconds - patience - LASTING - 1)
        onset = self.scale.warm_up + chance.below(last)
        work = steady if chance.fraction() < 0.4 else noisy  # noqa: PLR2004 - some of either
        does = [work(Chance(self._seed, f"work {number}"), noise, self.scale.total) for _ in nodes]
        trouble.stop(does[0], onset, chance)
        for activity in does[1:]:
            waiting(activity, onset)
        reports_health = "health_state" in measures
        health = (
            tuple("faulty" if second >= onset else "healthy" for second in range(self.scale.total))
            if reports_health
            else ()
        )
        for node, activity in zip(nodes, does, strict=True):
            self._send(number, node, exporter, activity, health)
        return Unit(pattern, measures, nodes, does[0].works, onset, patience)

    def _send(self, number: int, node: str, exporter: Exporter, done: Activity, health: tuple[str, ...]) -> None:
        values = {name: row.tolist() for name, row in exporter.shows(done).items()}
        self._sent[self._site(number)].append(_Sent(node, exporter, values, health))

    def _site(self, number: int) -> str:
        return self._sites[number % DOMAINS]

    def _registered(self, number: int, exporter: Exporter, members: int, chance: Chance) -> tuple[str, ...]:
        """Register the nodes of a unit, as a family where there are several."""
        labels = [f"unit-{number:05d}-{member}" for member in range(members)]
        stated = chance.fraction() < _STATED
        devices: list[documents.Device] = [
            {"id": str(place), "kind": "gpu", "vendor": "conformance", "model": "sparse"}
            for place in range(DEVICES if exporter.by_device else 1)
        ]
        for device in devices if stated else ():
            device["memory_capacity"] = int(exporter.memory)
            device["power_limit"] = round(exporter.limit, 1)
        for label in labels:
            body: documents.Node = {"id": self._name_of(label), "domain": self._site(number), "devices": devices}
            if members > 1:
                body["compute_identifier"] = self._urn_of("node", label)
            self._nodes.append(body)
        if members > 1:
            urn = self._urn_of("family", f"family-{number:05d}")
            self._families.append({"urn": urn, "members": sorted(self._urn_of("node", label) for label in labels)})
        return tuple(self._name_of(label) for label in labels)
