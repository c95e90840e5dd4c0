"""What people read of a run: JUnit, badge, page and table, each a pure function of the report.

Nothing here reads a clock, a file of the run, or a random number: ``kuayu conformance verify`` renders again and
compares byte for byte. Every string of a report is taken to be hostile (:func:`.words.visible`).
"""

from kuayu_conformance.rendering.headline import badge
from kuayu_conformance.rendering.junit import junit
from kuayu_conformance.rendering.page import page
from kuayu_conformance.rendering.terminal import summary

__all__ = ["badge", "junit", "page", "summary"]
