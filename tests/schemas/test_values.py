"""How values get from JSON into Python and back."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kuayu_schemas import schema
from kuayu_schemas.base import Absent, write_instant
from kuayu_schemas.models import HealthState, PatchOperation, PatchVerb, Problem, Revision, Sample, SubjectKind, Verdict

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def sample(**members: Any) -> Sample:
    return Sample(**{"subject": "node-1", "subject_kind": SubjectKind.node, "observed_at": NOON, **members})


def test_an_absent_member_is_none_in_python_and_not_there_in_json() -> None:
    read = Sample.model_validate_json(sample(power=None).to_json())
    assert read.power is None
    assert read.to_wire() == {"subject": "node-1", "subject_kind": "node", "observed_at": "2026-11-21T12:00:00.000Z"}


def test_null_is_not_absence() -> None:
    with pytest.raises(ValidationError, match="power"):
        Sample.model_validate_json(
            b'{"subject":"n","subject_kind":"node","observed_at":"2026-11-21T12:00:00Z","power":null}'
        )


def test_an_instant_of_another_zone_is_written_in_utc_and_cut_to_the_millisecond() -> None:
    beijing = timezone(timedelta(hours=8))
    moment = datetime(2026, 11, 21, 20, 0, 0, 123_999, tzinfo=beijing)
    assert sample(observed_at=moment).to_wire()["observed_at"] == "2026-11-21T12:00:00.123Z"


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="observed_at"):
        sample(observed_at=NOON.replace(tzinfo=None))


@given(st.datetimes(min_value=datetime(1000, 1, 2), timezones=st.timezones()))  # noqa: DTZ001 - hypothesis adds the zone
def test_a_written_instant_is_read_as_the_same_value(moment: datetime) -> None:
    written = sample(observed_at=moment)
    assert Sample.model_validate_json(written.to_json()) == written
    assert schema.is_valid("Instant", write_instant(moment))


@pytest.mark.parametrize("text", ["3", "3.0", "30e-1"])
def test_a_whole_number_is_whole_however_it_is_written(text: str) -> None:
    read = Revision.model_validate_json(f'{{"epoch": "e", "number": {text}}}')
    assert read.to_json() == b'{"epoch":"e","number":3}'


def test_a_patch_may_put_null_in_place() -> None:
    put = PatchOperation.model_validate_json(b'{"op":"add","path":"/label","value":null}')
    remove = PatchOperation(op=PatchVerb.remove, path="/label")
    assert put.to_wire() == {"op": "add", "path": "/label", "value": None}
    assert remove.value == Absent()
    assert remove.to_wire() == {"op": "remove", "path": "/label"}


@pytest.mark.parametrize("value", [{}, [], 0, "", {"a": [None, 1.5]}])
def test_a_patch_may_put_any_json_value_in_place(value: Any) -> None:
    assert PatchOperation(op=PatchVerb.add, path="", value=value).to_wire()["value"] == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, {1: 2}, {"a": object()}, (1,)])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        PatchOperation(op=PatchVerb.add, path="", value=value)


def test_names_that_python_does_not_allow_are_bent_and_their_values_kept() -> None:
    assert [Verdict.pass_, Verdict.not_applicable] == ["pass", "not-applicable"]


def test_a_value_of_an_enumeration_is_its_text() -> None:
    assert sample(health_state="healthy").health_state is HealthState.healthy


def test_what_is_not_in_the_model_is_refused() -> None:
    with pytest.raises(ValidationError, match="colour"):
        Problem.model_validate({"type": "urn:a:b", "title": "t", "status": 400, "retryable": False, "colour": "red"})


def test_a_rule_between_members_holds_in_python_too() -> None:
    with pytest.raises(ValidationError, match="A sample of a device names the device"):
        sample(subject_kind=SubjectKind.device)
    with pytest.raises(ValidationError, match="Only a sample of a device names a device"):
        sample(device="0")
