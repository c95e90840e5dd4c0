"""Job files: what to run, on what, and how, as people write it in YAML or JSON; ``train.yaml`` by convention.

1. Keys are those of ``KEYS``, which the guide *Running jobs* explains. A key that is none of them is an error, with the
   line and the key that was probably meant: a misspelt ``retries`` must not be a job without retries.
2. Sizes and lengths of time have units; numbers alone are bytes and seconds.
3. Paths are those of this host, relative to the folder of the job file.
4. Values of variables and what is run may be secret. They are sent to the service, which shows them to whoever may read
   the job, and they stand in no message of this module.
5. A JSON object of class JobRequest, told by its member ``workload``, is taken as it is.
"""

import difflib
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from kuayu.cli.terminal import read_size, read_span
from kuayu_schemas import schema
from kuayu_schemas.base import KuayuModel, write_instant
from kuayu_schemas.models import (
    AcceleratorKind,
    CommunicationProfile,
    JobKind,
    JobRequest,
    LinkNeed,
    ModelStructure,
    NodeScope,
    ParallelStrategy,
    SplitMode,
)

KEYS = {
    "name": "what the job is called; the name of the file and a number where it is absent",
    "label": "a name for people",
    "kind": "pretraining, fine_tuning, training or serving",
    "image": "container image; without it, processes run on the node itself",
    "command": "program and arguments, in one text or as a list",
    "environment": "variables",
    "working_directory": "where processes begin; a folder of the run's own where it is absent",
    "code": "what is put there before the start: a folder, an archive, or a URI of either or of a repository",
    "processes_per_node": "processes on each node; one for each device where it is absent",
    "devices": "how many, of which kind",
    "data": "what it reads, where that is, and how large it is",
    "checkpoint": "where it writes checkpoints and finds the last one",
    "model": "what is trained, from which its demand follows",
    "strategy": "how that is spread over devices",
    "steps": "steps that the training takes",
    "serving": "how many replicas it has, and how many requests one of them answers",
    "duration": "how long it takes on the devices asked for, of the reference device",
    "split_modes": "how it may be spread over domains",
    "sync_period": "steps between reconciliations of domains",
    "communication": "what it sends between domains",
    "links": "what it needs of the links between domains",
    "account": "account that what it uses counts for; default where it is absent",
    "priority": "-1000 to 1000; higher goes first",
    "deadline": "when it should have ended: an instant, or a length of time from now",
    "budget": "money that it may cost at most",
    "retries": "how often it is started again after a failure of its own",
    "grace": "how long its processes have to end once they are asked to",
    "domains": "domains that it may run in",
}
"""Keys of a job file, and what each is."""

DEVICE_KEYS = ("least", "most", "want", "step", "kind", "memory", "per_node", "within")
DATA_KEYS = ("name", "place", "size", "pinned")
SERVING_KEYS = ("least", "most", "rate", "latency", "startup", "cool_down")
DURATION_KEYS = ("expected", "low", "high", "coverage")

DURATION_FACTOR = 2.0
DURATION_COVERAGE = 0.8
"""A length of time alone is taken to be right within this factor in so many cases."""

MAX_NODES = 100_000
"""Values of a file at most; a file that refers to itself again and again has more."""

MAX_SHOWN = 40
"""Characters of a value that a message shows."""

SHELL = {"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "(", ")"}
"""Words that only a shell understands."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_URI = re.compile(r"[a-z][a-z0-9+.-]*:[^ ]+")

Value = TypeVar("Value")


class JobFileError(Exception):
    """A file is no job file.

    Attributes:
        faults: What is wrong with it, a line each, with where that is.
    """

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a job file.

    Attributes:
        value: A text, number, truth value or None; a dict of names and entries; or a list of entries.
        line: Where it begins, from one; None where that is not known.
        raw: A text, number or truth value as it was written.
    """

    value: Any
    line: int | None = None
    raw: str = ""

    def plain(self) -> Any:
        """The value without lines, as JSON has it."""
        if isinstance(self.value, dict):
            return {name: entry.plain() for name, entry in self.value.items()}
        if isinstance(self.value, list):
            return [entry.plain() for entry in self.value]
        return self.value


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a job file is read in.

    Attributes:
        name: Of the file, for messages.
        folder: Where it lies; paths are relative to it.
        variables: Environment of whoever submits, from which variables without a value are taken.
        now: The present instant.
    """

    name: str
    folder: Path
    variables: Mapping[str, str]
    now: datetime


def read_job_file(content: bytes, settings: Sequence[str], surroundings: Surroundings) -> dict[str, Any]:
    """The job that a file describes.

    Args:
        content: What is in the file.
        settings: What prevails over it, each ``key=value``; a key within another is written ``devices.least``.
        surroundings: What it is read in.

    Returns:
        An object of class JobRequest as JSON, without ``id`` where the file has no name.

    Raises:
        JobFileError: It is none.
    """
    root = parse(content, surroundings.name)
    for setting in settings:
        root = _with_setting(root, setting)
    if not isinstance(root.value, dict):
        raise JobFileError(f"{surroundings.name}: it has to hold keys and values, such as command: python train.py")
    if "workload" in root.value:
        request: dict[str, Any] = root.plain()
        faults = list(_schema_faults(request, root, surroundings))
    else:
        reader = _Reader(surroundings)
        request = reader.request(root)
        # What the reader has complained of is not complained of again.
        faults = reader.faults or list(_schema_faults({"id": "job", **request}, root, surroundings))
    if faults:
        raise JobFileError(*faults)
    return request


def parse(content: bytes, name: str) -> Entry:
    """The values of a YAML or JSON file, with their lines.

    Raises:
        JobFileError: It is neither.
    """
    import yaml

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JobFileError(f"{name}: it is no text in UTF-8") from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        try:
            return _from_json(json.loads(text))  # JSON may be indented by tabs, which YAML may not
        except ValueError:
            pass
        mark = getattr(error, "problem_mark", None)
        place = name if mark is None else f"{name}:{mark.line + 1}"
        raise JobFileError(f"{place}: {getattr(error, 'problem', None) or 'it is no YAML'}") from error
    if node is None:
        raise JobFileError(f"{name}: it is empty")
    return _Composer(name).entry(node)


class _Composer:
    """Turns what PyYAML has composed into entries.

    Args:
        name: Of the file.
    """

    def __init__(self, name: str) -> None:
        import yaml

        self._name = name
        self._yaml = yaml
        self._constructor = yaml.constructor.SafeConstructor()
        self._nodes = 0

    def entry(self, node: Any) -> Entry:
        """An entry.

        Raises:
            JobFileError: A key stands twice, or something is no value of JSON.
        """
        self._nodes += 1
        line = node.start_mark.line + 1
        if self._nodes > MAX_NODES:
            raise JobFileError(f"{self._name}:{line}: it has more than {MAX_NODES} values")
        if isinstance(node, self._yaml.SequenceNode):
            return Entry([self.entry(entry) for entry in node.value], line)
        if isinstance(node, self._yaml.MappingNode):
            return Entry(dict(self._members(node)), line)
        return Entry(self._scalar(node), line, node.value)

    def _members(self, node: Any) -> Iterator[tuple[str, Entry]]:
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, self._yaml.ScalarNode):
                raise JobFileError(f"{self._name}:{line}: a key has to be a word")
            if key.value in seen:
                raise JobFileError(f"{self._name}:{line}: {key.value} stands there twice")
            seen.add(key.value)
            outcome = self.entry(value)
            yield key.value, Entry(outcome.value, line, outcome.raw)

    def _scalar(self, node: Any) -> Any:
        """A text, number, truth value or None; an instant stays a text, which tells its time zone."""
        kind = node.tag.rpartition(":")[2]
        if kind in {"int", "float", "bool", "null"}:
            try:
                return self._constructor.construct_object(node)
            except (ValueError, self._yaml.YAMLError):
                return node.value
        return node.value


def _from_json(value: Any) -> Entry:
    if isinstance(value, dict):
        return Entry({name: _from_json(entry) for name, entry in value.items()})
    if isinstance(value, list):
        return Entry([_from_json(entry) for entry in value])
    return Entry(value, raw=value if isinstance(value, str) else json.dumps(value))


def _with_setting(root: Entry, setting: str) -> Entry:
    """The file with one value in the place of what it says there."""
    path, equals, text = setting.partition("=")
    steps = path.strip().split(".")
    if not equals or not all(steps):
        raise JobFileError(f"--set {path.strip()}: write it as --set key=value, such as --set devices.least=2")
    result = parse(text.encode(), f"--set {path}") if text.strip() else Entry("")
    value = Entry(result.value, None, result.raw or text)

    def put(entry: Entry, rest: Sequence[str]) -> Entry:
        if not rest:
            return value
        members = dict(entry.value) if isinstance(entry.value, dict) else {}
        # A variable's name may have dots in no case, a number of devices is meant where there are keys within.
        members[rest[0]] = put(members.get(rest[0], Entry(None)), rest[1:])
        return Entry(members, entry.line)

    return put(root, steps)


class _Reader:
    """Makes a request of a file, and notes all that is wrong with the file.

    Args:
        surroundings: What it is read in.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self.faults: list[str] = []

    def request(self, root: Entry) -> dict[str, Any]:
        """An object of class JobRequest, as far as the file says it; only valid where there are no faults."""
        given = self._members(root, "", KEYS)
        request: dict[str, Any] = {}
        if "name" in given:
            request["id"] = self._name(given["name"])
        readers: dict[str, Callable[[str, Entry], Any]] = {
            "label": self._text,
            "kind": lambda name, entry: self._choice(name, entry, JobKind),
            "data": self._data,
            "checkpoint": self._place,
            "split_modes": lambda name, entry: self._choices(name, entry, SplitMode),
            "sync_period": self._whole,
            "communication": lambda name, entry: self._standard(name, entry, CommunicationProfile, SIZES_AND_TIMES),
            "links": lambda name, entry: self._standard(name, entry, LinkNeed, {"round_trip_time": read_span}),
            "account": self._text,
            "priority": self._whole,
            "deadline": self._deadline,
            "budget": self._number,
            "retries": self._whole,
            "grace": self._span,
            "domains": self._texts,
            "duration": self._duration,
            "serving": self._serving,
        }
        for name, read in readers.items():
            if name in given:
                self._put(request, name, read(name, given[name]))
        request["workload"] = self._workload(given, root)
        self._devices(request, given, root)
        self._training(request, given)
        return request

    # Parts of the request.

    def _name(self, entry: Entry) -> Any:
        name = self._text("name", entry)
        if isinstance(name, str) and schema.errors("NodeShare", {"node": name, "devices": 1}):
            guess = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:128]
            self._complain(entry, f"name: {_shown(name)} is no name: letters, digits and ._- only", guess)
        return name

    def _workload(self, given: Mapping[str, Entry], root: Entry) -> dict[str, Any]:
        workload: dict[str, Any] = {}
        if "command" in given:
            self._put(workload, "command", self._command(given["command"]))
        else:
            self._complain(root, "it does not say what to run: command: python train.py")
        for name, read in (
            ("image", self._text),
            ("environment", self._environment),
            ("working_directory", self._directory),
            ("code", self._place),
            ("processes_per_node", self._whole),
        ):
            if name in given:
                self._put(workload, name, read(name, given[name]))
        return workload

    def _command(self, entry: Entry) -> list[str] | None:
        """Program and arguments; a text is split as a shell would, but nothing else of a shell is in it."""
        if isinstance(entry.value, list):
            if any(isinstance(item.value, dict | list) or item.value is None for item in entry.value):
                self._complain(entry, "command: each of the list has to be a text")
                return None
            return [item.raw for item in entry.value]
        if not isinstance(entry.value, str):
            self._complain(entry, "command: write it as a text, or as a list of texts")
            return None
        hint = 'what a shell is to do is written as command: [sh, -c, "…"]'
        text = entry.value.replace("\\\n", " ")
        if len([line for line in text.splitlines() if line.strip()]) > 1:
            self._complain(entry, f"command: it has several lines; {hint}")
            return None
        try:
            words = shlex.split(text)
            lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            for_shell = sorted(SHELL.intersection(lexer))
        except ValueError as error:
            self._complain(entry, f"command: {str(error).lower()}")
            return None
        if for_shell:
            self._complain(entry, f"command: no shell reads it, and {for_shell[0]} means nothing without one; {hint}")
            return None
        return words

    def _environment(self, name: str, entry: Entry) -> list[dict[str, str]] | None:
        """Variables; one without a value has that of whoever submits."""
        pairs: list[tuple[str, Entry | None]] = []
        if isinstance(entry.value, dict):
            pairs = list(entry.value.items())
        elif isinstance(entry.value, list) and all(isinstance(item.value, str) for item in entry.value):
            for item in entry.value:
                variable, equals, text = item.value.partition("=")
                pairs.append((variable, Entry(text, item.line, text) if equals else None))
        else:
            self._complain(entry, f"{name}: write variables as NAME: value, a line each")
            return None
        result = {}
        for variable, value in pairs:
            place = value or entry
            if not _VARIABLE.fullmatch(variable):
                self._complain(place, f"{name}: a variable is called by letters, digits and _ only, no digit first")
            elif value is None or value.value is None:
                if variable not in self._surroundings.variables:
                    self._complain(place, f"{name}: {variable} has no value, here or in this environment")
                result[variable] = self._surroundings.variables.get(variable, "")
            elif isinstance(value.value, dict | list):
                self._complain(place, f"{name}: the value of {variable} has to be a text")
            else:
                result[variable] = value.raw
        return [{"name": variable, "value": text} for variable, text in result.items()]

    def _devices(self, request: dict[str, Any], given: Mapping[str, Entry], root: Entry) -> None:
        if "devices" not in given:
            self._complain(root, "it does not say how many devices it asks for: devices: 1")
            return
        entry = given["devices"]
        if not isinstance(entry.value, dict):
            count = self._whole("devices", entry)
            request["devices"] = {"minimum": count, "maximum": count}
            return
        within = self._members(entry, "devices.", DEVICE_KEYS)
        self._put(request, "devices", self._elasticity(entry, within))
        if "kind" in within and within["kind"].value != "any":
            request["device_kinds"] = self._choices("devices.kind", within["kind"], AcceleratorKind)
        if "memory" in within:
            self._put(request, "memory_per_device", self._size("devices.memory", within["memory"]))
        needs: dict[str, Any] = {}
        if "per_node" in within:
            self._put(needs, "devices_per_node", self._whole("devices.per_node", within["per_node"]))
        if "within" in within:
            self._put(needs, "within", self._choice("devices.within", within["within"], NodeScope))
        if needs:
            request["nodes"] = needs

    def _elasticity(self, entry: Entry, within: Mapping[str, Entry]) -> dict[str, Any] | None:
        """Class Elasticity; one limit stands for both where there is one."""
        counts = {
            key: self._whole(f"devices.{key}", within[key])
            for key in ("least", "most", "want", "step")
            if key in within
        }
        least, most = counts.get("least", counts.get("most")), counts.get("most", counts.get("least"))
        if "least" not in counts and "most" not in counts:
            self._complain(entry, "devices: say how many: least, most, or both")
        elif least is not None and most is not None and least > most:
            self._complain(entry, f"devices: least is {least}, and most is {most}")
        outcome = {"minimum": least, "maximum": most, "requested": counts.get("want"), "step": counts.get("step")}
        return {member: count for member, count in outcome.items() if count is not None}

    def _data(self, name: str, entry: Entry) -> list[dict[str, Any]] | None:
        parts = entry.value if isinstance(entry.value, list) else [entry]
        result = []
        for number, part in enumerate(parts, 1):
            if not isinstance(part.value, dict):
                self._complain(part, f"{name}: write it as place: DOMAIN and size: 20GB")
                return None
            within = self._members(part, f"{name}.", DATA_KEYS)
            if missing := [key for key in ("place", "size") if key not in within]:
                self._complain(part, f"{name}: it does not say {missing[0]}")
                return None
            outcome: dict[str, Any] = {
                "id": self._text(f"{name}.name", within["name"]) if "name" in within else f"data-{number}",
                "size": self._size(f"{name}.size", within["size"]),
                "domains": self._texts(f"{name}.place", within["place"]),
            }
            if "pinned" in within:
                self._put(outcome, "pinned", self._truth(f"{name}.pinned", within["pinned"]))
            result.append(outcome)
        return result

    def _training(self, request: dict[str, Any], given: Mapping[str, Entry]) -> None:
        parts = [name for name in ("model", "strategy", "steps") if name in given]
        if not parts:
            return
        if missing := [name for name in ("model", "steps") if name not in given]:
            self._complain(given[parts[0]], f"{parts[0]}: what is trained needs {missing[0]} too")
            return
        devices = request.get("devices", {})
        spread = {"data": devices.get("requested", devices.get("maximum")), "tensor": 1, "pipeline": 1}
        strategy = given.get("strategy", Entry({}, given["model"].line))
        request["training"] = {
            "model": self._standard("model", given["model"], ModelStructure),
            "strategy": self._standard("strategy", strategy, ParallelStrategy, defaults=spread),
            "steps": self._whole("steps", given["steps"]),
        }

    def _duration(self, name: str, entry: Entry) -> dict[str, Any] | None:
        if not isinstance(entry.value, dict):
            seconds = self._span(name, entry)
            if seconds is None:
                return None
            low, high = seconds / DURATION_FACTOR, seconds * DURATION_FACTOR
            return {"expected": seconds, "low": low, "high": high, "coverage": DURATION_COVERAGE}
        within = self._members(entry, f"{name}.", DURATION_KEYS)
        if missing := [key for key in DURATION_KEYS[:3] if key not in within]:
            self._complain(entry, f"{name}: it does not say {missing[0]}")
            return None
        outcome = {key: self._span(f"{name}.{key}", within[key]) for key in DURATION_KEYS[:3]}
        coverage = self._number(f"{name}.coverage", within["coverage"]) if "coverage" in within else DURATION_COVERAGE
        return {**outcome, "coverage": coverage}

    def _serving(self, name: str, entry: Entry) -> dict[str, Any] | None:
        """Class ServingNeed; one limit stands for both where there is one."""
        if not isinstance(entry.value, dict):
            self._complain(entry, f"{name}: write it as least: 1, most: 4 and rate: 20")
            return None
        within = self._members(entry, f"{name}.", SERVING_KEYS)
        limits = {key: self._whole(f"{name}.{key}", within[key]) for key in ("least", "most") if key in within}
        if "rate" not in within or not limits:
            self._complain(entry, f"{name}: it does not say {'rate' if limits else 'least or most'}")
            return None
        outcome: dict[str, Any] = {
            "minimum": limits.get("least", limits.get("most")),
            "maximum": limits.get("most", limits.get("least")),
            "rate": self._number(f"{name}.rate", within["rate"]),
        }
        for key in ("latency", "startup", "cool_down"):
            if key in within:
                self._put(outcome, key, self._span(f"{name}.{key}", within[key]))
        return outcome

    def _deadline(self, name: str, entry: Entry) -> str | None:
        text = entry.raw.strip()
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None:
            seconds = self._read(name, entry, read_span, "or as an instant, such as 2027-01-31T12:00:00Z")
            return None if seconds is None else write_instant(self._surroundings.now + timedelta(seconds=seconds))
        if moment.tzinfo is None:
            self._complain(entry, f"{name}: {_shown(text)} does not say in which time zone", f"{text}Z")
            return None
        return write_instant(moment.astimezone(UTC))

    def _place(self, name: str, entry: Entry) -> str | None:
        """A URI; a path of this host as such."""
        text = self._text(name, entry)
        return text if text is None or _URI.fullmatch(text) else self._path(text).as_uri()

    def _directory(self, name: str, entry: Entry) -> str | None:
        text = self._text(name, entry)
        return None if text is None else str(self._path(text))

    def _path(self, text: str) -> Path:
        return (self._surroundings.folder / Path(text).expanduser()).resolve()

    # Kinds of values.

    def _members(self, entry: Entry, within: str, known: Mapping[str, str] | Sequence[str]) -> dict[str, Entry]:
        """Entries of an object that are known; others are complained of."""
        result = {}
        for key, value in entry.value.items():
            if key in known:
                result[key] = value
            else:
                self._complain(value, f"{within}{key} is no key", _nearest(key, known))
        return result

    def _standard(
        self,
        name: str,
        entry: Entry,
        model: type[KuayuModel],
        units: Mapping[str, Callable[[str], float]] | None = None,
        *,
        defaults: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        """An object of the standard; some of its members may have units."""
        if not isinstance(entry.value, dict):
            self._complain(entry, f"{name}: it has to hold keys and values")
            return None
        within = self._members(entry, f"{name}.", list(model.model_fields))
        outcome = dict(defaults or {}) | {key: item.plain() for key, item in within.items()}
        for key, read in (units or {}).items():
            if key in within:
                outcome[key] = self._read(f"{name}.{key}", within[key], read)
        for fault in schema.errors(model.__name__, outcome):
            key = fault.pointer.strip("/").replace("/", ".")
            where = within.get(key.split(".")[0], entry)
            self._complain(where, f"{name}{'.' if key else ''}{key}: {fault.detail}")
        return outcome

    def _text(self, name: str, entry: Entry) -> str | None:
        if isinstance(entry.value, dict | list) or entry.value is None:
            self._complain(entry, f"{name}: it has to be a text")
            return None
        return entry.raw

    def _texts(self, name: str, entry: Entry) -> list[str | None]:
        parts = entry.value if isinstance(entry.value, list) else [entry]
        return [self._text(name, part) for part in parts]

    def _whole(self, name: str, entry: Entry) -> int | None:
        if type(entry.value) is not int:
            self._complain(entry, f"{name}: {_shown(entry.raw)} is no whole number")
            return None
        return entry.value

    def _number(self, name: str, entry: Entry) -> float | None:
        if isinstance(entry.value, bool) or not isinstance(entry.value, int | float):
            self._complain(entry, f"{name}: {_shown(entry.raw)} is no number")
            return None
        return float(entry.value)

    def _truth(self, name: str, entry: Entry) -> bool | None:
        if not isinstance(entry.value, bool):
            self._complain(entry, f"{name}: it has to be true or false")
            return None
        return entry.value

    def _size(self, name: str, entry: Entry) -> float | None:
        return self._read(name, entry, read_size)

    def _span(self, name: str, entry: Entry) -> float | None:
        return self._read(name, entry, read_span)

    def _read(self, name: str, entry: Entry, read: Callable[[str], float], more: str = "") -> float | None:
        try:
            return read(entry.raw)
        except ValueError as error:
            self._complain(entry, f"{name}: {_shown(entry.raw)}: {error}{f', {more}' if more else ''}")
            return None

    def _choice(self, name: str, entry: Entry, choices: Any) -> str | None:
        known = [choice.value for choice in choices if choice.value != "unknown"]
        if entry.raw not in known or isinstance(entry.value, dict | list):
            nearest = _nearest(entry.raw, known)
            self._complain(entry, f"{name}: {_shown(entry.raw)} is none of {', '.join(known)}", nearest)
            return None
        return entry.raw

    def _choices(self, name: str, entry: Entry, choices: Any) -> list[str | None]:
        parts = entry.value if isinstance(entry.value, list) else [entry]
        return [self._choice(name, part, choices) for part in parts]

    @staticmethod
    def _put(target: dict[str, Any], name: str, value: Any) -> None:
        if value is not None:
            target[name] = value

    def _complain(self, entry: Entry, what: str, meant: str | None = None) -> None:
        guess = f"; did you mean {meant}?" if meant else ""
        self.faults.append(f"{_where(self._surroundings, entry)}: {what}{guess}")


SIZES_AND_TIMES = {
    "step_time": read_span,
    "exchange": read_size,
    "boundary": read_size,
    "checkpoint_size": read_size,
}
"""How members of class CommunicationProfile are read."""


def _schema_faults(request: Any, root: Entry, surroundings: Surroundings) -> Iterator[str]:
    """Where a request breaks the standard, by the lines of the file as far as these are known."""
    for fault in schema.errors("JobRequest", request):
        entry = root
        steps = [step for step in fault.pointer.split("/") if step]
        for step in steps:
            if isinstance(entry.value, dict) and step in entry.value:
                entry = entry.value[step]
            elif isinstance(entry.value, list) and step.isdecimal() and int(step) < len(entry.value):
                entry = entry.value[int(step)]
        secret = {"environment", "command"}.intersection(steps)
        detail = "it is not as the standard has it" if secret else fault.detail
        yield f"{_where(surroundings, entry)}: {'.'.join(steps) or 'the job'}: {detail}"


def _where(surroundings: Surroundings, entry: Entry) -> str:
    return surroundings.name if entry.line is None else f"{surroundings.name}:{entry.line}"


def _nearest(word: str, known: Mapping[str, str] | Sequence[str]) -> str | None:
    result = difflib.get_close_matches(word.lower().replace("-", "_"), list(known), 1, 0.6)
    return result[0] if result else None


def _shown(text: str) -> str:
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…")


def request_of(outcome: Mapping[str, Any]) -> JobRequest:
    """The request that :func:`read_job_file` gave, as an object."""
    return JobRequest.model_validate_json(json.dumps(outcome))
