"""Nothing that a target says can act on the terminal, the XML parser or the direction of reading."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.rendering.words import visible


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred", "⟨U+001B⟩[31mred"),
        ("a\x00b", "a⟨U+0000⟩b"),
        ("\x7f", "⟨U+007F⟩"),
        ("photo\u202egnp.exe", "photo⟨U+202E⟩gnp.exe"),
        ("\ud800", "⟨U+D800⟩"),
        ("\ufffe", "⟨U+FFFE⟩"),
        ("a\r\nb", "a⟨U+000D⟩\nb"),
    ],
)
def test_what_would_act_is_spelled_out(hostile: str, shown: str) -> None:
    assert visible(hostile) == shown


@pytest.mark.parametrize("text", ["plain", "跨域，一号", "tab\tand\nline", "café", "x ≥ 3 µs", "\U0001f600"])
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters()))
def test_nothing_left_is_a_control_character_and_doing_it_twice_changes_nothing(text: str) -> None:
    shown = visible(text)
    left = {unicodedata.category(character) for character in shown if character not in "\t\n"}
    assert not left & {"Cc", "Cs"}
    assert visible(shown) == shown
