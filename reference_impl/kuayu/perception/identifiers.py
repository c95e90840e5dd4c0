"""Compute identifiers, resolved downwards to nodes and upwards to services.

Three tiers: a service stands for families, a family for nodes; a node's identifier stands in its registration.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

TIERS = ("service", "family", "node")


class UnknownIdentifierError(LookupError):
    """Nothing is known of the identifier: it is not registered, and nothing that is registered names it."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What an identifier leads to; every list is sorted and without repetition.

    Attributes:
        tier: service, family or node.
        services: Services that it is part of or is.
        families: Families that it holds, is or is part of.
        nodes: Registered nodes (their resource identifiers) that it leads to.
        unresolved: Identifiers below it, or it itself, that lead to nothing registered.
    """

    tier: str
    services: list[str]
    families: list[str]
    nodes: list[str]
    unresolved: list[str]


def tier_of(urn: str) -> str:
    """Tier that a compute identifier states: the third part of ``urn:kuayu:TIER:AUTHORITY:NAME``."""
    return urn.split(":", 3)[2]


def misplaced_members(urn: str, members: Sequence[str]) -> list[int]:
    """Positions of the members that are not of the tier just below the identifier's own."""
    tier = tier_of(urn)
    below = TIERS[TIERS.index(tier) + 1] if tier != TIERS[-1] else None
    return [position for position, member in enumerate(members) if tier_of(member) != below]


def resolve(urn: str, members: Mapping[str, Sequence[str]], nodes: Mapping[str, Iterable[str]]) -> Resolution:
    """Resolve an identifier.

    Args:
        urn: What is asked for.
        members: Registered services and families with their members.
        nodes: Identifiers of the node tier with the registered nodes that bear them.

    Raises:
        UnknownIdentifierError: Nothing is known of it.
    """
    holders = {holder for holder, urns in members.items() if urn in urns}
    if urn not in members and urn not in nodes and not holders:
        raise UnknownIdentifierError(urn)
    tier = tier_of(urn)
    match tier:
        case "service":
            services, families = {urn}, set(members.get(urn, ()))
        case "family":
            services, families = holders, {urn}
        case _:
            services = {holder for holder, urns in members.items() if not holders.isdisjoint(urns)}
            families = holders
    below = {urn} if tier == "node" else {member for family in families for member in members.get(family, ())}
    unregistered = {family for family in families if family not in members}
    return Resolution(
        tier=tier,
        services=sorted(services),
        families=sorted(families),
        nodes=sorted({node for name in below for node in nodes.get(name, ())}),
        unresolved=sorted(unregistered | {name for name in below if name not in nodes}),
    )
