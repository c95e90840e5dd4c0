"""The resource graph: what is registered with its states, as it stands at a revision, and what leads on from there.

A vertex is held as its canonical JSON, written once when it changes. Snapshots, changes and patches are put together
from these pieces, so that they agree byte for byte, and a digest costs no more than hashing.
"""

from kuayu.perception.graph.changes import WHOLE, Change, ChangeLog, Graph, Narrowing, Step, Vertex
from kuayu.perception.graph.documents import Document, patch
from kuayu.perception.graph.hierarchy import Hierarchy, NodeVerdict
from kuayu.perception.graph.links import LinkTracker
from kuayu.perception.graph.vertices import DOMAIN, LINK, NODE, written

__all__ = [
    "DOMAIN",
    "LINK",
    "NODE",
    "WHOLE",
    "Change",
    "ChangeLog",
    "Document",
    "Graph",
    "Hierarchy",
    "LinkTracker",
    "Narrowing",
    "NodeVerdict",
    "Step",
    "Vertex",
    "patch",
    "written",
]
