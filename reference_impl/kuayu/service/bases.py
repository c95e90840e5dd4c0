"""Scheduling states that patches can start from: those that were sent last, tenant by tenant, in bounded memory.

A worker holds them, and forgets them when it ends; who sends a patch then gets unknown-base and sends the whole state.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kuayu.scheduling.parse import ParsedJobs
    from kuayu.scheduling.state_digest import CanonicalState


@dataclass(frozen=True, slots=True)
class Base:
    """A state that was answered.

    Attributes:
        canonical: The state, and its canonical JSON in parts.
        parsed: What was read of its jobs.
    """

    canonical: "CanonicalState"
    parsed: "ParsedJobs"


class Bases:
    """Bases by tenant and digest.

    Where there is no more room, the tenant with most bytes loses the base that it has not used for longest.
    """

    def __init__(self) -> None:
        self._held: dict[str, OrderedDict[str, Base]] = {}
        self._sizes: dict[str, int] = {}

    def get(self, tenant: str, digest: str) -> Base | None:
        """A base of a tenant; None where it is not held."""
        held = self._held.get(tenant)
        if held is None or digest not in held:
            return None
        held.move_to_end(digest)
        return held[digest]

    def hold(self, tenant: str, base: Base, room: int) -> None:
        """Hold a base of a tenant.

        Args:
            tenant: Whose it is.
            base: The base; one that is larger than all the room is not held.
            room: Bytes of canonical JSON that all bases of all tenants may have together.
        """
        digest, size = base.canonical.digest, base.canonical.size
        if size > room:
            return
        held = self._held.setdefault(tenant, OrderedDict())
        if digest in held:
            held.move_to_end(digest)
            return
        held[digest] = base
        self._sizes[tenant] = self._sizes.get(tenant, 0) + size
        while sum(self._sizes.values()) > room:
            self._forget_one()

    def _forget_one(self) -> None:
        tenant = max(self._sizes, key=self._sizes.__getitem__)
        _, base = self._held[tenant].popitem(last=False)
        self._sizes[tenant] -= base.canonical.size
        if not self._held[tenant]:
            del self._held[tenant], self._sizes[tenant]
