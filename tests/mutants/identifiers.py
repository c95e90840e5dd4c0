"""Wrong in compute identifiers."""

from miniature.core import Json
from miniature.service import Miniature
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-007")
class ResolvedDownwardsOnly(Miniature):
    """A node's identifier leads neither to its families nor to its services."""

    @override
    def holders(self, held: dict[str, Json], urn: str) -> list[str]:
        return []
