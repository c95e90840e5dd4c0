"""Licences of what is installed are judged as SPDX says, not by a word among others."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / ".ci/licences"
SPEC = importlib.util.spec_from_loader("licences", SourceFileLoader("licences", str(FILE)))
assert SPEC is not None
assert SPEC.loader is not None
licences = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(licences)


@pytest.mark.parametrize(
    "told",
    [
        "MIT",
        "LGPL-3.0-only",
        "GPL-3.0-only OR MIT",
        "MPL-2.0 AND (Apache-2.0 OR MIT)",
        "(GPL-2.0-only AND MIT) OR BSD-3-Clause",
        "Apache-2.0 WITH LLVM-exception AND BSL-1.0",
        "BSD License",
        "Apache 2.0",
        "Apache Software License; MIT License",
        "GNU Lesser General Public License v3 (LGPLv3)",
    ],
)
def test_what_can_be_used_is_permitted(told: str) -> None:
    assert licences.permitted(told)


@pytest.mark.parametrize(
    "told",
    [
        "",
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "MIT OR",
        "(MIT OR Apache-2.0",
        "MIT) OR GPL-3.0-only",
        "GPL-3.0-only AND (Apache-2.0 OR MIT)",
        "GPL-2.0-only WITH Classpath-exception-2.0",
        "MIT OR Apache-2.0 AND",
        "Apache Software License; GNU General Public License (GPL)",
        "GNU Affero General Public License v3",
        "MIT with Commons Clause",
        "Other/Proprietary License",
    ],
)
def test_what_cannot_is_not_although_one_word_of_it_is(told: str) -> None:
    assert not licences.permitted(told)


def test_an_expression_is_read_to_its_end_and_and_binds_before_or() -> None:
    assert licences.permitted("MIT OR GPL-3.0-only AND GPL-2.0-only")
    assert not licences.permitted("(MIT OR GPL-3.0-only) AND GPL-2.0-only")
