"""Lists within arrays, linked by number in both directions: an owner has ``first`` and ``last``, a node the others."""

from numba import njit

from kuayu_conformance.testbed.scheduling.core.layout import NONE


@njit(cache=True)
def append(nodes, owner, node):
    """A node becomes the last of an owner's list."""
    nodes[node].before, nodes[node].after = owner.last, NONE
    if owner.last == NONE:
        owner.first = node
    else:
        nodes[owner.last].after = node
    owner.last = node


@njit(cache=True)
def unlink(nodes, owner, node):
    """A node is taken out of an owner's list."""
    before, after = nodes[node].before, nodes[node].after
    if before == NONE:
        owner.first = after
    else:
        nodes[before].after = after
    if after == NONE:
        owner.last = before
    else:
        nodes[after].before = before
