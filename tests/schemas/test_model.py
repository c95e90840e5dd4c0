"""What every part of the information model carries, so that what is published can be read without the authors."""

from pathlib import Path

import pytest

from generator.model import Model, annotation
from kuayu_schemas import registers, schema

SPEC = Path(__file__).parents[2] / "spec"

UNIT_STANDS_ELSEWHERE = {
    "AdjustmentTrigger.before": "its member kind says",
    "AdjustmentTrigger.now": "its member kind says",
    "CollectionEntry.factor": "turns field_unit into the measure's unit",
    "CollectionEntry.resolution": "is in field_unit",
    "DemandForecastPoint.expected": "the quantity of its series says",
    "DemandSeries.values": "its member quantity says",
    "Estimate.expected": "the slot that holds the estimate has the unit",
    "Estimate.high": "the slot that holds the estimate has the unit",
    "Estimate.low": "the slot that holds the estimate has the unit",
    "Exporter.blanks": "are in the unit of the field that shows them",
    "IndicatorValue.number": "its member unit says",
    "JobStatus.devices_used": "counts devices",
    "Measure.ceiling": "its member unit says",
    "Measure.display_factor": "turns unit into display_unit",
    "Measure.maximum": "its member unit says",
    "Measure.minimum": "its member unit says",
    "Measurement.throughput": "is the task's own, and only ratios within a task count",
    "SeriesPoint.maximum": "the series that it is part of says",
    "SeriesPoint.mean": "the series that it is part of says",
    "SeriesPoint.minimum": "the series that it is part of says",
    "Part.bound": "the result that it is part of says",
    "Part.estimate": "the result that it is part of says",
    "PlotSeries.x": "the plot's x_label says",
    "PlotSeries.y": "the plot's y_label says",
    "Quantile.value": "the quantity of the series says",
    "RequirementResult.bound": "its member unit says",
    "RequirementResult.estimate": "its member unit says",
    "StateMatch.value": "is the value of an exporter's field, whatever that counts",
    "Threshold.value": "its member unit says",
}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(SPEC / "model" / "kuayu.yaml")


def test_every_slot_says_what_it_is(model: Model) -> None:
    silent = [
        f"{class_.name}.{member.name}"
        for class_ in model.classes.values()
        for member in model.own_members(class_)
        if not member.description
    ]
    assert silent == []


def test_every_class_enumeration_and_type_has_a_description_and_a_chinese_label(model: Model) -> None:
    elements = [*model.classes.values(), *model.view.all_enums().values(), *model.types.values()]
    assert [element.name for element in elements if not element.description] == []
    assert [element.name for element in elements if not annotation(element, "label_zh")] == []


def test_every_permissible_value_says_what_it_means(model: Model) -> None:
    silent = [
        f"{enum.name}.{value}"
        for enum in model.view.all_enums().values()
        for value, meaning in enum.permissible_values.items()
        if not meaning.description
    ]
    assert silent == []


def test_every_extensible_enumeration_has_a_value_for_what_is_not_known(model: Model) -> None:
    extensible = [enum for enum in model.view.all_enums().values() if annotation(enum, "extensible") == "true"]
    assert extensible
    assert [enum.name for enum in extensible if "unknown" not in enum.permissible_values] == []


def test_every_quantity_has_a_unit_or_a_reason_to_have_none(model: Model) -> None:
    bare = {
        f"{class_.name}.{member.name}"
        for class_ in model.classes.values()
        for member in model.own_members(class_)
        if member.range in model.scalars and model.scalars[member.range].base == "float" and member.unit is None
    }
    assert bare == set(UNIT_STANDS_ELSEWHERE)


def test_every_class_that_is_not_abstract_is_published(model: Model) -> None:
    concrete = {name for name, class_ in model.classes.items() if not class_.abstract}
    for reader in (False, True):
        assert concrete <= set(schema.document(reader=reader)["$defs"])


def test_the_measures_of_a_sample_are_those_of_the_indicator_register(model: Model) -> None:
    slots = {member.name: member for member in model.all_members("Measures")}
    measures = [measure for indicator in registers.indicators().indicators for measure in indicator.measures]
    assert sorted(measure.name for measure in measures) == sorted(slots)

    def unit(name: str) -> str | None:
        slot = slots[name]
        if slot.range == "PrecisionThroughput":
            return "{FLOP}/s"
        return "1" if slot.range == "HealthState" else slot.unit

    assert {measure.name: measure.unit for measure in measures} == {name: unit(name) for name in slots}


def test_the_kind_of_a_measure_is_the_type_of_its_slot(model: Model) -> None:
    slots = {member.name: member for member in model.all_members("Measures")}
    kinds = {"PrecisionThroughput": "by_precision", "HealthState": "state"}
    for indicator in registers.indicators().indicators:
        for measure in indicator.measures:
            slot = slots[measure.name]
            assert measure.kind == kinds.get(slot.range, "number"), measure.name
            assert slot.description.startswith(f"{indicator.id}: "), measure.name
