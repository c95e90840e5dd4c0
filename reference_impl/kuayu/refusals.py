"""Why an algorithm refuses a request that the schema lets pass, each fault with its place."""

from collections.abc import Hashable, Iterable, Sequence

Complaint = tuple[str, str]
"""JSON Pointer into the request, and what is wrong there."""


class Refusal(ValueError):
    """A request that cannot be answered.

    Attributes:
        pointers: JSON Pointer and detail of every fault, in the order of the request.
    """

    def __init__(self, pointers: Iterable[Complaint]) -> None:
        self.pointers: tuple[Complaint, ...] = tuple(pointers)
        super().__init__("; ".join(f"{pointer}: {detail}" for pointer, detail in self.pointers))


class UnknownName(Refusal):
    """Names that the request uses and does not hold."""


class RepeatedName(Refusal):
    """Names that stand twice in one list."""


class Impossible(Refusal):
    """Values that contradict themselves or each other."""


def repeated(place: str, names: Sequence[Hashable], last: str = "/id") -> list[Complaint]:
    """Names of a list that stand twice.

    Args:
        place: JSON Pointer to the list.
        names: The names in it, in its order.
        last: What follows the position of an entry in its pointer.
    """
    if len(set(names)) == len(names):
        return []
    complaints: list[Complaint] = []
    seen: set[Hashable] = set()
    for position, name in enumerate(names):
        if name in seen:
            complaints.append((f"{place}/{position}{last}", f"{name} stands twice"))
        seen.add(name)
    return complaints


def refuse(kind: type[Refusal], complaints: Iterable[Complaint]) -> None:
    """Raise a refusal of this kind where there are complaints.

    Raises:
        Refusal: Of that kind.
    """
    complaints = tuple(complaints)
    if complaints:
        raise kind(complaints)
