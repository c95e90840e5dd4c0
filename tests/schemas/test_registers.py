"""The registers hold together: within themselves, with one another and with the model."""

from collections import Counter

from kuayu_schemas import registers, schema
from kuayu_schemas.models import Aggregation, Transform


def repeated(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def test_what_is_loaded_is_of_the_version_of_the_schemas() -> None:
    assert registers.requirements().spec_version == registers.SPEC_VERSION
    assert f":{registers.SPEC_VERSION}:" in schema.document()["$id"]


def test_a_register_is_read_once() -> None:
    assert registers.problems() is registers.problems()


def test_no_identifier_is_given_twice() -> None:
    register = registers.indicators()
    assert repeated([indicator.id for indicator in register.indicators]) == []
    assert repeated([measure.name for indicator in register.indicators for measure in indicator.measures]) == []
    assert repeated([exporter.id for exporter in register.exporters]) == []
    assert repeated([requirement.id for requirement in registers.requirements().requirements]) == []
    assert repeated([problem.name for problem in registers.problems().problems]) == []


def test_the_type_of_a_problem_ends_with_its_name() -> None:
    for problem in registers.problems().problems:
        assert problem.type == f"urn:kuayu:problem:{problem.name}"


def test_there_are_twelve_indicators_three_in_each_dimension() -> None:
    dimensions = Counter(indicator.dimension for indicator in registers.indicators().indicators)
    assert sorted(dimensions.values()) == [3, 3, 3, 3]


def test_every_row_of_the_collection_map_names_a_known_exporter_and_what_its_transform_needs() -> None:
    register = registers.indicators()
    exporters = {exporter.id: exporter for exporter in register.exporters}
    for indicator in register.indicators:
        for measure in indicator.measures:
            for entry in measure.collection or []:
                assert entry.exporter in exporters, f"{measure.name}: {entry.exporter}"
                assert (entry.transform is Transform.state) == bool(entry.states), f"{measure.name}: {entry.exporter}"


def test_a_quotient_of_sums_names_measures_that_are_there() -> None:
    measures = {
        measure.name: measure for indicator in registers.indicators().indicators for measure in indicator.measures
    }
    for measure in measures.values():
        named = {measure.numerator, measure.denominator}
        if measure.aggregation is Aggregation.ratio_of_sums:
            assert named <= set(measures), measure.name
        else:
            assert named == {None}, measure.name


def test_a_measure_without_collection_says_where_else_it_comes_from() -> None:
    for indicator in registers.indicators().indicators:
        for measure in indicator.measures:
            assert measure.collection or measure.collection_note, measure.name


def test_every_requirement_is_of_a_profile_that_is_defined_and_of_one_of_its_features() -> None:
    register = registers.requirements()
    features = {definition.profile: set(definition.features) for definition in register.profiles}
    for requirement in register.requirements:
        assert requirement.profile in features, requirement.id
        assert requirement.feature is None or requirement.feature in features[requirement.profile], requirement.id
        assert requirement.id.startswith(f"{requirement.profile}-"), requirement.id
