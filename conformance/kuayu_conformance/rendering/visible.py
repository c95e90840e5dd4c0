"""Text that cannot pretend: what has no shape of its own is spelled out.

A report quotes the target, and the target may be hostile: terminal escapes, characters that XML forbids, and marks
that turn the direction of reading (Unicode UAX #9) would let it forge what a reader sees.
"""

import re

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and line feed
    "\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"  # no width, or directing
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # no characters at all
    "\U000e0000-\U000e007f]"  # tags
)


def visible(text: str) -> str:
    """Text with every character shown that would act instead of being seen; tabs and line feeds stay."""
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
