"""What varies from line to line is masked before templates are mined: numbers, instants, addresses, identifiers.

Two steps, so that most lines cost next to nothing: ``coarse`` works on whole blocks, and lines that are alike after it
are alike for good; ``plain`` ends the work on one line.
"""

import re

MOST_TOKENS = 128
"""Words of a line that make its template; what follows them is left out."""

LONGEST = 8192
"""Bytes of a line that make its template."""

_DIGITS = bytes.maketrans(b"123456789\0\t\r\v\f", b"000000000     ")

_NUMBER = re.compile(rb"[-+]?0(?:[.,:+-]0)*")
_HEX = re.compile(rb"(?<![0-9A-Za-z])(?:0x[0-9a-fA-F]+|(?=[0a-fA-F]{0,32}0)[0a-fA-F]{6,})(?![0-9A-Za-z])")
_UUID = re.compile(rb"(?<![0-9A-Za-z])(?:[0a-fA-F]{1,8}-){4}[0a-fA-F]{1,12}(?![0-9A-Za-z])")
"""An identifier of RFC 9562 whose digits have been made noughts."""
NUMBER, HEX, UUID = b"<num>", b"<hex>", b"<uuid>"


def coarse(block: bytes) -> bytes:
    """A block of lines with each run of digits made one nought, and with plain blanks; ends of lines are kept."""
    block = block.translate(_DIGITS)
    while b"00" in block:
        block = block.replace(b"00", b"0")
    return block


def plain(line: bytes) -> bytes:
    """A coarse line with numbers and what joins them made one nought, so that headers can be told."""
    return _NUMBER.sub(b"0", _UUID.sub(UUID, line[:LONGEST]))


def masked(line: bytes) -> str:
    """A plain line with its masks, as text; bytes that are no UTF-8 stand with a backslash and their value."""
    made = _HEX.sub(HEX, line).replace(b"0", NUMBER)
    return " ".join(made.decode("utf-8", "backslashreplace").split()[:MOST_TOKENS])
