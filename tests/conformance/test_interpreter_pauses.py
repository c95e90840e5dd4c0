"""A run looks through what it has kept once, and leaves the interpreter as it found it."""

import gc
import sys
import weakref

import pytest

from kuayu_conformance.run.machine import SWITCH_INTERVAL, short_pauses


class Kept:
    """Something that refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _nothing_set_aside() -> None:
    """Begin as a program does: what outlives earlier files of tests has been set aside."""
    gc.unfreeze()


def looked_through(thing: object) -> bool:
    """Whether the collector will look at it the next time that it looks through everything."""
    return any(each is thing for each in gc.get_objects())


def test_what_a_look_through_everything_has_left_is_not_looked_at_again() -> None:
    kept = Kept()
    gc.collect()
    assert looked_through(kept)
    with short_pauses():
        gc.collect()
        later = Kept()
        assert not looked_through(kept)
        assert looked_through(later)
    assert looked_through(kept)


def test_what_is_given_up_amid_a_run_is_freed() -> None:
    with short_pauses():
        young = weakref.ref(Kept())
        gc.collect()
        assert young() is None
        kept = Kept()
        gc.collect()
        old = weakref.ref(kept)
        del kept
    gc.collect()
    assert old() is None


def test_what_others_have_set_aside_stays_so() -> None:
    theirs = Kept()
    gc.freeze()
    with short_pauses():
        gc.collect()
    assert not looked_through(theirs)


def test_the_interpreter_is_as_it_was_afterwards() -> None:
    before = sys.getswitchinterval(), list(gc.callbacks)
    with short_pauses():
        assert sys.getswitchinterval() == SWITCH_INTERVAL
    assert (sys.getswitchinterval(), gc.callbacks) == before
