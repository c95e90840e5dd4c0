"""Names that benchmarks give their figures, and words among them, in Chinese.

1. A name is known whole, as the page shows it: with spaces in place of underscores. What holds numbers is a pattern.
2. ``STATE: REASON`` is said part by part; states are those of clause *Resource graph*.
3. Names of programs, exporters, packages and exceptions, and measures such as F1, stay as they are.
"""

from kuayu_conformance.rendering.words import Language

from .text import vocabulary


def figure_name(language: Language, text: str) -> str:
    """A name or a word among the figures in a language; one that is not known, or is nobody's word, stays."""
    if language == "en":
        return text
    names, states = vocabulary("figures"), vocabulary("judged_measured").lists["states"]
    if known := states.get(text) or names.phrases.get(text):
        return known
    for pattern, said in names.patterns:
        if found := pattern.fullmatch(text):
            return said.format(*found.groups())
    state, _, reason = text.partition(": ")
    reasons = names.lists["reasons"]
    return f"{states[state]}：{reasons[reason]}" if state in states and reason in reasons else text
