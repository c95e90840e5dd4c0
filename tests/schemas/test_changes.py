"""What differs between two versions of the standard is found and weighed: for each rule an example that it finds.

The examples change one thing of a small standard. Versions of real folders and commits are compared at the end.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from changes.change import RULES, Change, Severity, next_version
from changes.report import as_json, as_markdown, compare
from changes.versions import Version, VersionError, read

ROOT = Path(__file__).parents[2]

Body = dict[str, Any]
Edit = Callable[[Body], None]


def requirement(identifier: str = "COM-001", **members: Any) -> Body:
    """Row of the register of requirements."""
    return {
        "id": identifier,
        "profile": "COM",
        "level": "performance",
        "modal": "shall",
        "title_en": "Answer",
        "title_zh": "响应",
        "text_en": "A service shall answer within 10 s.",
        "text_zh": "服务应在 10 s 之内响应。",
        "threshold": {"value": 10, "comparison": "at_most", "unit": "s"},
        "method_en": "It is asked.",
        "method_zh": "对其请求。",
        "revised": "2026-11-20T00:00:00.000Z",
        "source": "this standard",
        "clause": "com-06-data",
        "check": "checks.answer",
    } | members


STANDARD: Body = {
    "requirements": {
        "spec_version": "1.2.3",
        "profiles": [
            {
                "profile": "COM",
                "name_en": "Common",
                "name_zh": "通用",
                "features": ["tenancy"],
                "mandatory": ["GET /v1/things"],
            }
        ],
        "sub_profiles": [
            {
                "name": "COM/answers",
                "profile": "COM",
                "name_en": "Answers",
                "name_zh": "响应",
                "features": [],
                "mandatory": ["GET /v1/things"],
                "requirements": ["COM-001"],
            }
        ],
        "requirements": [requirement(), requirement("COM-002")],
    },
    "indicators": {
        "indicators": [
            {
                "id": "CMP-1",
                "dimension": "compute",
                "name_en": "Power",
                "measures": [
                    {
                        "name": "power",
                        "name_en": "Power",
                        "unit": "W",
                        "aggregation": "sum",
                        "collection": [
                            {"exporter": "dcgm", "subject": "device", "fields": ["P"], "factor": 1, "source": "a page"}
                        ],
                    }
                ],
            }
        ],
        "exporters": [{"id": "dcgm", "version": "4.5", "device_label": "gpu"}],
    },
    "stability": {
        "requirements": {"COM-001": "stable", "COM-002": "provisional"},
        "features": {"tenancy": "provisional"},
        "operations": {
            "GET /v1/things": "stable",
            "PUT /v1/things/{id}": "provisional",
            "POST /v1/things/{id}": {"mark": "deprecated", "since": "1.2.0", "until": "1.3.0"},
        },
        "indicators": {"CMP-1": "stable"},
    },
    "problems": {"problems": [{"name": "not-found", "status": 404, "retryable": False, "title_en": "Not found"}]},
    "classes": {
        "Thing": {
            "description": "What is sent.",
            "type": "object",
            "properties": {
                "id": {"$ref": "#/$defs/Name"},
                "size": {"type": "number", "minimum": 0, "maximum": 10, "x-unit": "By", "description": "How large."},
                "state": {"$ref": "#/$defs/State"},
                "parts": {"type": "array", "items": {"type": "integer", "maximum": 5}, "maxItems": 3},
            },
            "required": ["id", "state"],
            "additionalProperties": False,
        },
        "Record": {
            "description": "What is answered.",
            "type": "object",
            "properties": {"id": {"$ref": "#/$defs/Name"}, "age": {"type": "integer", "minimum": 0}},
            "required": ["id"],
            "additionalProperties": False,
        },
        "Name": {"type": "string", "pattern": "^[a-z]+$", "description": "Name."},
        "State": {"type": "string", "enum": ["new", "old", "unknown"], "description": "State."},
        "Verb": {"type": "string", "enum": ["add", "remove"], "description": "In no operation."},
    },
    "open": ["State"],
    "interface": {
        "security": [{"bearer": []}],
        "paths": {
            "/v1/things": {
                "get": {
                    "operationId": "listThings",
                    "summary": "Things",
                    "parameters": [
                        {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}},
                        {"name": "after", "in": "query", "required": True, "schema": {"type": "string"}},
                    ],
                    "responses": {
                        "200": {
                            "description": "They are there.",
                            "headers": {"ETag": {}},
                            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Record"}}},
                        },
                        "404": {"description": "not-found"},
                    },
                }
            },
            "/v1/things/{id}": {
                "put": {
                    "operationId": "putThing",
                    "summary": "Register",
                    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                    },
                    "responses": {"200": {"description": "It is there."}},
                },
                "post": {
                    "operationId": "touchThing",
                    "summary": "Touch",
                    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                    "responses": {"200": {"description": "Done."}},
                },
            },
        },
    },
}
"""A standard of two operations: class Thing is sent, class Record answered, and Verb is in no operation."""


def version(body: Body) -> Version:
    """The standard as it would be read: closed classes for what is sent, open ones for readers."""
    classes = body["classes"]
    readers = deepcopy(classes)
    for definition in readers.values():
        definition.pop("additionalProperties", None)
    for name in body["open"]:
        if "enum" in readers.get(name, {}):
            readers[name]["examples"] = readers[name].pop("enum")
    interface = body["interface"] | {"components": {"schemas": classes}}
    return Version(
        "small",
        body["requirements"],
        body["indicators"],
        body["problems"],
        {"$defs": classes},
        {"$defs": readers},
        json.loads(json.dumps(interface).replace("#/$defs/", "#/components/schemas/")),
        body["stability"],
    )


def changes(edit: Edit) -> list[Change]:
    """What differs after an edit of the standard."""
    edited = deepcopy(STANDARD)
    edit(edited)
    return list(compare(version(STANDARD), version(edited)).changes)


def setting(path: str, value: Any) -> Edit:
    """Sets what stands at a path: ``classes/Thing/properties/size/maximum``; ``~`` is a slash within a part."""

    def edit(body: Body) -> None:
        holder, name = place(body, path)
        holder[name] = value

    return edit


def without(path: str) -> Edit:
    """Takes out what stands at a path."""

    def edit(body: Body) -> None:
        holder, name = place(body, path)
        del holder[name]

    return edit


def place(body: Body, path: str) -> tuple[Any, Any]:
    """What holds the last part of a path, and that part as it is named there."""
    *parents, last = path.split("/")
    holder: Any = body
    for parent in parents:
        holder = holder[named(holder, parent)]
    return holder, named(holder, last)


def named(holder: Any, part: str) -> Any:
    return int(part) if isinstance(holder, list) else part.replace("~", "/")


ROW = "requirements/requirements/0"
THING, RECORD = "classes/Thing", "classes/Record"
LIST = "interface/paths/~v1~things/get"
PUT, POST = "interface/paths/~v1~things~{id}/put", "interface/paths/~v1~things~{id}/post"

EXAMPLES: list[tuple[Severity, str, Edit]] = [
    # requirements
    ("breaking", "requirement-withdrawn", without("requirements/requirements/1")),
    (
        "additive",
        "requirement-added",
        setting("requirements/requirements", [requirement(f"COM-00{n}") for n in (1, 2, 3)]),
    ),
    ("breaking", "keyword-changed", setting(f"{ROW}/modal", "should")),
    ("breaking", "threshold-changed", setting(f"{ROW}/threshold/value", 5)),
    ("breaking", "threshold-changed", without(f"{ROW}/threshold")),
    ("breaking", "level-changed", setting(f"{ROW}/level", "interface")),
    ("breaking", "profile-changed", setting(f"{ROW}/profile", "MET")),
    ("breaking", "feature-changed", setting(f"{ROW}/feature", "tenancy")),
    ("breaking", "method-revised", setting(f"{ROW}/revised", "2026-11-27T00:00:00.000Z")),
    ("breaking", "method-reworded", setting(f"{ROW}/method_zh", "对其请求两次。")),
    ("editorial", "method-translated", setting(f"{ROW}/method_zh", "向其发送请求。")),
    ("breaking", "figure-in-text-changed", setting(f"{ROW}/text_en", "A service shall answer within eleven seconds.")),
    ("editorial", "text-changed", setting(f"{ROW}/text_en", "A service shall give its answer within ten seconds.")),
    ("editorial", "note-changed", setting(f"{ROW}/check", "checks.other")),
    ("breaking", "part-withdrawn", setting("requirements/profiles", [])),
    ("breaking", "part-withdrawn", setting("requirements/profiles/0/features", [])),
    ("additive", "part-added", setting("requirements/profiles/0/features", ["tenancy", "audit"])),
    ("breaking", "part-changed", setting("requirements/profiles/0/mandatory", ["GET /v1/things", "GET /v1/more"])),
    ("breaking", "part-changed", setting("requirements/sub_profiles/0/requirements", ["COM-001", "COM-002"])),
    ("editorial", "part-renamed", setting("requirements/profiles/0/name_zh", "共同")),
    # indicators and problem types
    ("breaking", "row-withdrawn", setting("indicators/indicators/0/measures", [])),
    ("breaking", "row-withdrawn", setting("indicators/indicators/0/measures/0/collection", [])),
    ("additive", "row-added", setting("problems/problems", [*STANDARD["problems"]["problems"], {"name": "gone"}])),
    ("breaking", "row-changed", setting("indicators/indicators/0/measures/0/unit", "kW")),
    ("breaking", "row-changed", setting("indicators/indicators/0/measures/0/collection/0/factor", 1000)),
    ("breaking", "row-changed", setting("indicators/exporters/0/device_label", "card")),
    ("breaking", "row-changed", setting("problems/problems/0/status", 410)),
    ("editorial", "row-reworded", setting("indicators/indicators/0/measures/0/name_en", "Electric power")),
    # marks of stability
    ("breaking", "mark-lowered", setting("stability/requirements/COM-001", "provisional")),
    ("additive", "mark-raised", setting("stability/requirements/COM-002", "stable")),
    ("additive", "item-deprecated", setting("stability/operations/GET ~v1~things", {"mark": "deprecated"})),
    # classes that are sent
    ("breaking", "class-withdrawn", without("classes/Verb")),
    ("additive", "class-added", setting("classes/More", {"type": "object", "description": "More."})),
    ("breaking", "member-withdrawn", without(f"{THING}/properties/size")),
    ("additive", "member-added", setting(f"{THING}/properties/label", {"type": "string"})),
    ("breaking", "member-made-required", setting(f"{THING}/required", ["id", "state", "size"])),
    ("additive", "member-made-optional", setting(f"{THING}/required", ["id"])),
    ("breaking", "value-withdrawn", setting("classes/State/enum", ["new", "unknown"])),
    ("additive", "value-added", setting("classes/State/enum", ["new", "old", "lost", "unknown"])),
    ("breaking", "bound-tightened", setting(f"{THING}/properties/size/maximum", 9)),
    ("breaking", "bound-tightened", setting(f"{THING}/properties/size/minimum", 1)),
    ("breaking", "bound-tightened", setting(f"{THING}/properties/parts/items/minimum", 0)),
    ("additive", "bound-loosened", setting(f"{THING}/properties/parts/maxItems", 4)),
    ("additive", "bound-loosened", without(f"{THING}/properties/size/minimum")),
    ("breaking", "type-narrowed", setting(f"{THING}/properties/size/type", "integer")),
    ("additive", "type-widened", setting(f"{THING}/properties/size/type", ["number", "string"])),
    ("breaking", "type-changed", setting(f"{THING}/properties/size/type", "string")),
    ("breaking", "rule-added", setting(f"{THING}/allOf", [{"required": ["size"]}])),
    ("breaking", "rule-changed", setting("classes/Name/pattern", "^[a-z0-9]+$")),
    ("additive", "rule-withdrawn", without(f"{THING}/additionalProperties")),
    ("breaking", "unit-changed", setting(f"{THING}/properties/size/x-unit", "bit")),
    ("editorial", "description-changed", setting(f"{THING}/properties/size/description", "Its size.")),
    # classes that are answered, and such as no operation carries
    ("additive", "member-added", setting(f"{RECORD}/properties/label", {"type": "string"})),
    ("breaking", "member-made-optional", setting(f"{RECORD}/required", [])),
    ("additive", "member-made-required", setting(f"{RECORD}/required", ["id", "age"])),
    ("breaking", "bound-loosened", without(f"{RECORD}/properties/age/minimum")),
    ("breaking", "type-widened", setting(f"{RECORD}/properties/age/type", "number")),
    ("breaking", "value-added", setting("classes/Verb/enum", ["add", "remove", "test"])),
    # operations
    ("breaking", "operation-withdrawn", without(LIST)),
    ("additive", "operation-added", setting("interface/paths/~v1~things/delete", {"responses": {}})),
    ("breaking", "operation-renamed", setting(f"{LIST}/operationId", "allThings")),
    ("breaking", "parameter-withdrawn", without(f"{LIST}/parameters/0")),
    ("breaking", "parameter-made-required", setting(f"{LIST}/parameters/0/required", True)),
    ("additive", "parameter-made-optional", setting(f"{LIST}/parameters/1/required", False)),
    ("breaking", "bound-tightened", setting(f"{LIST}/parameters/0/schema/maximum", 50)),
    ("breaking", "body-made-required", setting(f"{POST}/requestBody/required", True)),
    ("additive", "body-made-optional", setting(f"{PUT}/requestBody/required", False)),
    ("breaking", "media-withdrawn", without(f"{LIST}/responses/200/headers/ETag")),
    ("breaking", "media-withdrawn", setting(f"{PUT}/requestBody/content", {})),
    ("additive", "media-added", setting(f"{LIST}/responses/200/content/text~csv", {})),
    ("breaking", "status-withdrawn", without(f"{LIST}/responses/404")),
    ("breaking", "success-added", setting(f"{LIST}/responses/204", {"description": "Nothing."})),
    ("additive", "refusal-added", setting(f"{LIST}/responses/429", {"description": "Too many."})),
    ("breaking", "security-changed", setting("interface/security", [])),
    ("editorial", "description-changed", setting(f"{LIST}/summary", "All things")),
]


def with_parameter(*, required: bool) -> Edit:
    """Adds a parameter to the list of things."""
    added = {"name": "kind", "in": "query", "required": required, "schema": {"type": "string"}}
    parameters = STANDARD["interface"]["paths"]["/v1/things"]["get"]["parameters"]
    return setting(f"{LIST}/parameters", [*parameters, added])


def with_required_member(name: str) -> Edit:
    """Adds a member to a class that cannot be left out."""

    def edit(body: Body) -> None:
        body["classes"][name]["properties"]["owner"] = {"type": "string"}
        body["classes"][name]["required"].append("owner")

    return edit


EXAMPLES += [
    ("breaking", "required-parameter-added", with_parameter(required=True)),
    ("additive", "parameter-added", with_parameter(required=False)),
    ("breaking", "required-member-added", with_required_member("Thing")),
    ("additive", "required-member-added", with_required_member("Record")),
]


@pytest.mark.parametrize(("severity", "rule", "edit"), EXAMPLES)
def test_a_difference_is_found_and_weighed(severity: Severity, rule: str, edit: Edit) -> None:
    found = changes(edit)
    assert (severity, rule) in {(one.severity, one.rule) for one in found}, found
    assert all(one.severity == severity for one in found if one.rule == rule)


def test_every_rule_has_an_example() -> None:
    assert {rule for _, rule, _ in EXAMPLES} == RULES.keys()


def test_a_method_that_differs_in_both_languages_is_another_method() -> None:
    def edit(body: Body) -> None:
        setting(f"{ROW}/method_en", "It is asked at night.")(body)
        setting(f"{ROW}/method_zh", "在夜间对其请求。")(body)

    assert [(one.severity, one.rule) for one in changes(edit)] == [("breaking", "method-reworded")] * 2


def test_the_same_standard_has_no_changes_however_it_is_laid_out() -> None:
    assert changes(lambda _: None) == []
    assert changes(setting(f"{ROW}/method_en", "It  is\nasked.\n")) == []
    assert changes(setting("requirements/requirements", STANDARD["requirements"]["requirements"][::-1])) == []
    renamed = deepcopy(STANDARD["interface"]["paths"])
    renamed["/v1/things/{name}"] = renamed.pop("/v1/things/{id}")
    renamed["/v1/things/{name}"]["put"]["parameters"][0]["name"] = "name"
    assert changes(setting("interface/paths", renamed)) == []


def test_a_value_of_an_open_enumeration_is_no_trouble_for_readers() -> None:
    """State is sent within Thing and answered nowhere; within Record it is taken as unknown by who does not know it."""

    def answered(body: Body) -> None:
        body["classes"]["Record"]["properties"]["state"] = {"$ref": "#/$defs/State"}

    old, new = deepcopy(STANDARD), deepcopy(STANDARD)
    answered(old)
    answered(new)
    new["classes"]["State"]["enum"] = ["new", "old", "lost", "unknown"]
    (found,) = compare(version(old), version(new)).changes
    assert (found.severity, found.rule, found.place) == ("additive", "value-added", "class State")


def test_a_class_that_goes_both_ways_weighs_by_the_heavier() -> None:
    body = deepcopy(STANDARD)
    listing = body["interface"]["paths"]["/v1/things"]["get"]["responses"]["200"]["content"]["application/json"]
    listing["schema"] = {"$ref": "#/components/schemas/Thing"}
    looser = deepcopy(body)
    looser["classes"]["Thing"]["required"] = ["id"]
    (found,) = compare(version(body), version(looser)).changes
    assert (found.severity, found.rule) == ("breaking", "member-made-optional")


def test_a_class_by_another_name_is_followed_to_what_differs() -> None:
    """What stood in a member moves to a class of its own: nothing differs but the bound that was tightened with it."""

    def edit(body: Body) -> None:
        size = body["classes"]["Thing"]["properties"]["size"]
        body["classes"]["Size"] = {**size, "maximum": 9}
        body["classes"]["Thing"]["properties"]["size"] = {"$ref": "#/$defs/Size"}

    found = {(one.rule, one.place) for one in changes(edit)}
    assert found == {("class-added", "class Size"), ("bound-tightened", "class Thing, member size")}


def test_the_heaviest_come_first_in_markdown_and_json() -> None:
    def edit(body: Body) -> None:
        setting(f"{ROW}/title_en", "Reply | fast")(body)
        setting(f"{ROW}/modal", "may")(body)
        setting("classes/More", {"type": "object", "description": "More."})(body)

    edited = deepcopy(STANDARD)
    edit(edited)
    report = compare(version(STANDARD), version(edited))
    text = as_markdown(report)
    assert text.index("## Breaking") < text.index("## Additive") < text.index("## Editorial")
    assert "1 breaking, 1 additive, 1 editorial" in text
    assert "| requirement COM-001 | title_en: Answer → Reply \\| fast | `note-changed` |" in text
    document = json.loads(as_json(report))
    assert document["counts"] == {"breaking": 1, "additive": 1, "editorial": 1}
    assert [one["rule"] for one in document["changes"]] == ["keyword-changed", "class-added", "note-changed"]
    assert document["next_version"] == "2.0.0"


@pytest.mark.parametrize(
    ("version_", "severities", "expected"),
    [
        ("1.2.3", ["breaking", "editorial"], "2.0.0"),
        ("1.2.3", ["additive", "editorial"], "1.3.0"),
        ("1.2.3", ["editorial"], "1.2.4"),
        ("0.1.0", ["breaking"], "0.2.0"),
        ("0.1.0", ["additive"], "0.2.0"),
        ("0.1.0", ["editorial"], "0.1.1"),
        ("0.1.0", [], "0.1.0"),
    ],
)
def test_the_next_number_follows_from_what_changed(version_: str, severities: list[Severity], expected: str) -> None:
    found = [Change(severity, "note-changed", "requirement COM-001", "title") for severity in severities]
    assert next_version(version_, found) == expected


WITHDRAWN_TOUCH = without("interface/paths/~v1~things~{id}/post")


@pytest.mark.parametrize(
    ("edit", "place", "mark", "permitted"),
    [
        (setting(f"{ROW}/modal", "should"), "requirement COM-001", "stable", False),
        (setting("requirements/requirements/1/modal", "should"), "requirement COM-002", "provisional", True),
        (without("requirements/requirements/1"), "requirement COM-002", "provisional", True),
        (setting("requirements/profiles/0/features", []), "profile COM", "provisional", True),
        (without(f"{LIST}/responses/404"), "GET /v1/things, answer 404", "stable", False),
        (setting(f"{PUT}/requestBody/content", {}), "PUT /v1/things/{}, body", "provisional", True),
        (setting("indicators/indicators/0/measures/0/unit", "kW"), "measure CMP-1 power", "stable", False),
        (setting("indicators/exporters/0/device_label", "card"), "exporter dcgm", "", False),
        (setting(f"{THING}/properties/size/maximum", 9), "class Thing, member size", "provisional", True),
        (without(f"{RECORD}/properties/age/minimum"), "class Record, member age", "stable", False),
        (WITHDRAWN_TOUCH, "POST /v1/things/{}", "deprecated", False),
        (setting(f"{POST}/operationId", "nudge"), "POST /v1/things/{}", "deprecated", False),
    ],
)
def test_a_breaking_change_is_told_with_the_mark_that_its_item_had(
    edit: Edit, place: str, mark: str, permitted: bool
) -> None:
    found = [one for one in changes(edit) if one.severity == "breaking" and one.place == place]
    assert found
    assert {(one.mark, one.permitted) for one in found} == {(mark, permitted)}


def test_a_deprecated_item_is_withdrawn_in_the_version_that_it_names_and_not_before() -> None:
    def edit(body: Body) -> None:
        WITHDRAWN_TOUCH(body)
        body["requirements"]["spec_version"] = "1.3.0"

    (found,) = (one for one in changes(edit) if one.rule == "operation-withdrawn")
    assert (found.mark, found.permitted) == ("deprecated", True)


def test_what_a_mark_permits_is_told_apart_and_takes_no_major_version() -> None:
    edited = deepcopy(STANDARD)
    setting("requirements/requirements/1/modal", "should")(edited)
    report = compare(version(STANDARD), version(edited))
    assert report.next_version == "1.3.0"
    assert "0 of stable items, 1 permitted by the mark of their item, 0 of others" in as_markdown(report)
    setting(f"{ROW}/modal", "should")(edited)
    report = compare(version(STANDARD), version(edited))
    assert report.next_version == "2.0.0"
    text = as_markdown(report)
    assert text.index("| stable: not permitted by it |") < text.index("| provisional: permitted |")


# Real folders and commits.


def command(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``python -m changes``."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "spec")}
    return subprocess.run(
        [sys.executable, "-m", "changes", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with what versions are compared by."""
    folder = tmp_path / "checkout"
    published = "schemas/kuayu_schemas/published"
    shutil.copytree(ROOT / published, folder / published)
    (folder / "spec").mkdir()
    for register in ("requirements", "indicators", "problems"):
        shutil.copy(ROOT / f"spec/{register}.yaml", folder / "spec")
    return folder


def test_this_standard_is_compared_with_itself_and_with_a_copy_whose_threshold_differs(copy: Path) -> None:
    assert compare(read(None), read(str(copy))).changes == []
    file = copy / "spec/requirements.yaml"
    register = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
    (row,) = (row for row in register["requirements"] if row["id"] == "MET-003")
    row["threshold"]["value"] = 0.97
    file.write_text(yaml.safe_dump(register, allow_unicode=True), "utf-8")
    written = copy / "changes.json"
    told = command(str(ROOT), str(copy), "--fail-on", "breaking", "--json", str(written))
    assert told.returncode == 1, told.stderr
    (found,) = json.loads(written.read_text("utf-8"))["changes"]
    assert (found["rule"], found["place"]) == ("threshold-changed", "requirement MET-003")
    assert "0.98" in found["detail"]
    assert "0.97" in found["detail"]


def test_commits_are_read_without_a_checkout(copy: Path) -> None:
    def git(*arguments: str) -> None:
        program = shutil.which("git")
        assert program is not None
        identity = ["-c", "user.name=Kuayu", "-c", "user.email=kuayu@example.org"]
        subprocess.run([program, *identity, *arguments], cwd=copy, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "One")
    problems = copy / "spec/problems.yaml"
    problems.write_text(problems.read_text("utf-8").replace("status: 404", "status: 410", 1), "utf-8")
    git("commit", "--quiet", "-am", "Two")
    found = compare(read("HEAD~1", copy), read("HEAD", copy)).changes
    assert [(one.severity, one.rule, one.place) for one in found] == [
        ("breaking", "row-changed", "problem type not-found")
    ]
    with pytest.raises(VersionError, match="HEAD~7 is no folder"):
        read("HEAD~7", copy)


def test_what_cannot_be_read_is_said_with_a_hint(tmp_path: Path) -> None:
    told = command(str(tmp_path), str(ROOT))
    assert told.returncode == 2
    assert "has no spec/requirements.yaml" in told.stderr
    assert "hint: name a checkout of the project" in told.stderr
