"""The handbook of demand, computed from the reference's law."""

from collections.abc import Iterator
from functools import cache

from kuayu_conformance.rendering.words import Language
from kuayu_training.demand.handbook.drawings import drawings
from kuayu_training.demand.handbook.pages import PAGE, page

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
