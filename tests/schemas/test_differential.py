"""JSON Schema and Pydantic are two readings of one model: they give the same verdict on every body."""

from pathlib import Path

import pytest
import yaml
from schemas.mutations import EXAMPLES, examples, mutated_examples
from schemas.verdicts import is_well_formed, pydantic_accepts, schema_accepts

FEWEST_MUTANTS = 400

EXPECTED = yaml.safe_load((EXAMPLES / "expected.yaml").read_text("utf-8"))


def verdicts(class_name: str, body: bytes) -> dict[str, bool]:
    return {"JSON Schema": schema_accepts(class_name, body), "Pydantic": pydantic_accepts(class_name, body)}


def label(value: object) -> str:
    return f"{value.parent.name}-{value.stem}" if isinstance(value, Path) else str(value)


@pytest.mark.parametrize(("class_name", "path"), examples("valid"), ids=label)
def test_both_accept_a_valid_example(class_name: str, path: Path) -> None:
    assert verdicts(class_name, path.read_bytes()) == {"JSON Schema": True, "Pydantic": True}


@pytest.mark.parametrize(("class_name", "path"), examples("invalid"), ids=label)
def test_both_refuse_an_invalid_example(class_name: str, path: Path) -> None:
    assert verdicts(class_name, path.read_bytes()) == {"JSON Schema": False, "Pydantic": False}


@pytest.mark.parametrize(("class_name", "path"), examples("edge"), ids=label)
def test_of_an_edge_example_they_find_what_is_expected(class_name: str, path: Path) -> None:
    body, expected = path.read_bytes(), EXPECTED[path.relative_to(EXAMPLES).as_posix()]
    accepted = expected["verdict"] == "valid"
    if not is_well_formed(body):
        assert not accepted  # a malformed body gets to neither of them
        return
    assert verdicts(class_name, body) == {"JSON Schema": accepted, "Pydantic": accepted}
    assert schema_accepts(class_name, body, reader=True) == (expected.get("reader", expected["verdict"]) == "valid")


def test_every_edge_example_and_no_other_has_an_expected_verdict() -> None:
    assert set(EXPECTED) == {path.relative_to(EXAMPLES).as_posix() for _, path in examples("edge")}


def test_every_published_class_that_a_client_sends_has_examples() -> None:
    sent = {"Domain", "Node", "Link", "ComputeIdentifier", "SampleBatch", "Sample", "ScrapeTarget"}
    sent |= {"IndexRequest", "ProbePlanRequest", "HeartbeatBatch", "LogBatch", "ActionResult"}
    assert sent <= {class_name for class_name, _ in examples("valid")}
    assert sent <= {class_name for class_name, _ in examples("invalid")}


@pytest.mark.slow
def test_both_agree_on_every_mutant() -> None:
    judged = [(mutant, verdicts(mutant.class_name, mutant.body)) for mutant in mutated_examples()]
    assert len(judged) >= FEWEST_MUTANTS
    apart = [(mutant.origin, found) for mutant, found in judged if len(set(found.values())) > 1]
    assert apart == []


def test_mutants_are_of_both_kinds() -> None:
    accepted = [schema_accepts(mutant.class_name, mutant.body) for mutant in mutated_examples({"Sample"})]
    assert accepted.count(True) > 100
    assert accepted.count(False) > 100
