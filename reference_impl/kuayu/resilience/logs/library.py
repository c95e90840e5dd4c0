"""The library of templates as JSON, kept so that a restart does not learn anew.

One object: ``version``, and ``templates`` with ``number``, ``words``, ``seen`` and ``last`` each. No code is stored and
none is run when it is read.
"""

import json
from dataclasses import asdict
from typing import Any

from kuayu.resilience.logs.masking import MOST_TOKENS
from kuayu.resilience.logs.mining import MOST, Miner, Template

VERSION = 1

MOST_WORD = 8192
"""Characters of the longest word of a template."""


class NoLibrary(ValueError):
    """The text is no library of templates."""


def written(miner: Miner) -> str:
    """The templates of a miner as JSON."""
    rows = [json.dumps(asdict(each), ensure_ascii=False) for each in miner.templates()]
    return f'{{"version": {VERSION}, "templates": [\n' + ",\n".join(rows) + "\n]}\n"


def read(text: str, most: int = MOST) -> Miner:
    """A miner that knows the templates of a library.

    Raises:
        NoLibrary: The text is none, or one of another version.
    """
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoLibrary("it is no JSON") from error
    if not isinstance(told, dict) or told.get("version") != VERSION or not isinstance(told.get("templates"), list):
        raise NoLibrary(f"it is no library of templates of version {VERSION}")
    if len(told["templates"]) > 2 * most:
        raise NoLibrary(f"it has more than {2 * most} templates")
    miner = Miner(most)
    try:
        miner.restore([_template(each) for each in told["templates"]])
    except ValueError as error:
        raise NoLibrary(str(error)) from error
    return miner


def _template(told: Any) -> Template:
    if not isinstance(told, dict):
        raise NoLibrary("a template is no object")
    numbers = [told.get(name) for name in ("number", "seen", "last")]
    words = told.get("words")
    if not all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**53 for each in numbers):
        raise NoLibrary("number, seen and last of a template must be whole and not negative")
    if not isinstance(words, list) or len(words) > MOST_TOKENS:
        raise NoLibrary(f"a template must have words, at most {MOST_TOKENS}")
    if not all(isinstance(word, str) and 0 < len(word) <= MOST_WORD for word in words):
        raise NoLibrary(f"words of a template must have 1 to {MOST_WORD} characters")
    return Template(told["number"], tuple(words), told["seen"], told["last"])
