"""Wrong in compute identifiers."""

from minimal_server.core import Json
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-007")
class ResolvedDownwardsOnly(MinimalServer):
    """A node's identifier leads neither to its families nor to its services."""

    @override
    def holders(self, held: dict[str, Json], urn: str) -> list[str]:
        return []
