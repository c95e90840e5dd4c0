"""The handbook of demand, computed from the reference's law."""

from collections.abc import Iterator
from functools import cache

from kuayu_conformance.rendering.words import Language
from kuayu_training.demand.handbook import PAGE, page
from kuayu_training.demand.handbook_cases import drawings

from .made import Made

FOLDER = "demand"


def pages(language: Language) -> Iterator[Made]:
    """The page and its drawings."""
    yield from _made(language)


@cache
def _made(language: Language) -> tuple[Made, ...]:
    """All of it; thousands of layouts are looked at for that, and the site is asked several times."""
    files = {PAGE: page(language), **drawings(language)}
    return tuple(Made(f"{FOLDER}/{name}", text) for name, text in files.items())
