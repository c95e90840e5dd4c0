"""What deploy/ hands out fits the commands, the lock file and the APIs that it names.

No image is built and no cluster is asked: neither Docker nor Kubernetes is where tests run. The chart was rendered by
Helm (deploy/helm/render.sh), and it is noticed when it has changed since.
"""

import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import commands
import httpx
import pytest
import yaml
from docs.test_examples import free_port
from engine.runs.kubernetes_fields import complaints
from engine.runs.played_cluster import PlayedCluster

from kuayu.engine.runs.kubernetes import KubernetesEngine

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose/compose.yaml"
DOCKERFILE = (DEPLOY / "container/Dockerfile").read_text("utf-8")
ENTRYPOINT = DEPLOY / "container/entrypoint.sh"
UNITS = ("kuayu.service", "kuayu-domain@.service")
RENDERED = ("sqlite.yaml", "postgresql.yaml")
SHELL = "/bin/sh"
OPTION = re.compile(r"^--[a-z][a-z-]+")
KNOWN_ELSEWHERE = {"PATH", "HOME", "PYTHONDONTWRITEBYTECODE", "NUMBA_CACHE_DIR", "PGPASSWORD"}
"""Variables that systems, Python, numba and the client library of PostgreSQL read."""


def compose() -> dict[str, Any]:
    """The compose file, its anchors resolved."""
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
    return found


def objects(name: str) -> list[dict[str, Any]]:
    """Objects that the chart renders."""
    return [body for body in yaml.safe_load_all((DEPLOY / "helm/rendered" / name).read_text("utf-8")) if body]


def of_kind(kind: str, name: str) -> list[dict[str, Any]]:
    return [body for body in objects(name) if body["kind"] == kind]


def pods(name: str) -> Iterator[dict[str, Any]]:
    """Specifications of pods that the chart renders."""
    return (body["spec"]["template"]["spec"] for body in of_kind("Deployment", name))


def unit(name: str) -> dict[str, list[str]]:
    """Settings of a unit, each with all its values."""
    lines = [line for line in (DEPLOY / "systemd" / name).read_text("utf-8").splitlines() if re.match(r"\w+=", line)]
    return {
        key: [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]
        for key in (line.partition("=")[0] for line in lines)
    }


def settings(name: str) -> dict[str, str]:
    """Variables in a file of settings, and those that it shows as remarks."""
    return dict(re.findall(r"^#?([A-Z][A-Z_]+)=(.*)$", (DEPLOY / "systemd" / name).read_text("utf-8"), re.MULTILINE))


def typed() -> dict[str, list[str]]:
    """Words behind `kuayu` of all that is started, by where they stand."""
    found = {
        f"compose {name}": service["command"] for name, service in compose()["services"].items() if "command" in service
    }
    (command,) = re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)
    found["Dockerfile"] = json.loads(command)
    for name in RENDERED:
        for pod in pods(name):
            found |= {f"{name} {each['name']}": each["args"] for each in pod["containers"]}
    for name in UNITS:
        program, *words = shlex.split(unit(name)["ExecStart"][0])
        assert Path(program).name == "kuayu"
        found[name] = words
    return found


@cache
def options(*command: str) -> Mapping[str, str]:
    """Options of a command, each with what its help says of it."""
    shown = commands.run(*command, "--help", COLUMNS="200")
    assert shown.returncode == 0, command
    listed = shown.stdout.partition("\nOptions:\n")[2]
    return {text.split()[0]: text for text in re.split(r"\n  (?=--)", f"\n{listed}") if text.startswith("--")}


@pytest.mark.parametrize("where", typed())
def test_all_that_is_started_names_commands_and_options_that_there_are(where: str) -> None:
    words = typed()[where]
    command = ("domain", "run") if words[0] == "domain" else ("serve",)
    assert tuple(words[: len(command)]) == command
    given = {found[0] for word in words if (found := OPTION.match(word))}
    assert given
    assert given <= options(*command).keys()
    required = {name for name, text in options(*command).items() if "[required]" in text}
    assert required <= given


def test_variables_are_read_by_somebody() -> None:
    source = "\n".join(file.read_text("utf-8") for file in (ROOT / "reference_impl").rglob("*.py"))
    entrypoint = ENTRYPOINT.read_text("utf-8")
    given = {name for service in compose()["services"].values() for name in service.get("environment", ())}
    given |= {
        name for line in re.findall(r"^ENV (.*)$", DOCKERFILE, re.MULTILINE) for name in re.findall(r"(\w+)=", line)
    }
    given |= {
        each["name"]
        for name in RENDERED
        for pod in pods(name)
        for part in pod["containers"]
        for each in part.get("env", ())
    }
    for name, file in zip(UNITS, ("service.env", "domain.env"), strict=True):
        started = unit(name)["ExecStart"][0]
        given |= {key for key in settings(file) if f"${{{key}}}" not in started and f"${key}" not in started}
        assert set(re.findall(r"\$\{?([A-Z]+)", started)) <= settings(file).keys(), file
    assert {"KUAYU_TOKEN", "KUAYU_TOKEN_FILE", "PGPASSWORD_FILE", "NUMBA_CACHE_DIR"} <= given
    for name in given - KNOWN_ELSEWHERE:
        if name.startswith("POSTGRES_"):
            continue  # of PostgreSQL's own image
        if name.endswith("_FILE"):
            assert name.removesuffix("_FILE") in entrypoint
            name = name.removesuffix("_FILE")  # noqa: PLW2901 - what the entrypoint makes of it
        assert name in KNOWN_ELSEWHERE or f'"{name}"' in source, name


def test_ports_are_the_services_default() -> None:
    (port,) = re.findall(r"\[default:\s+(\d+)", options("serve")["--port"])
    assert re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE) == [port]
    assert f"HTTPConnection('127.0.0.1', {port}" in DOCKERFILE
    services = compose()["services"]
    assert services["service"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert {word for each in services.values() for word in each.get("command", ()) if word.startswith("--url=")} == {
        f"--url=http://service:{port}"
    }
    assert settings("service.env")["PORT"] == port
    for name in RENDERED:
        (service,) = of_kind("Service", name)
        assert [each["port"] for each in service["spec"]["ports"]] == [int(port)]
        assert [
            each["containerPort"] for pod in pods(name) for part in pod["containers"] for each in part.get("ports", ())
        ] == [int(port)]
    assert f"http://kuayu:{port}" in str(objects("postgresql.yaml"))


def test_the_image_is_built_from_the_lock_file_alone() -> None:
    runs = re.findall(r"^RUN ((?:.*\\\n)*.*)$", DOCKERFILE, re.MULTILINE)
    installs = [
        part.strip() for run in runs for part in run.split("&&") if re.search(r"pip|install_locked|apt|curl|wget", part)
    ]
    assert installs == [
        "/opt/build/bin/python install_locked.py requirements.lock hatchling",
        "/opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel .",
        '/opt/kuayu/bin/python install_locked.py requirements.lock "$(echo /wheel/*.whl)[reference]"',
    ]
    assert not re.search(r"^ADD ", DOCKERFILE, re.MULTILINE)
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(images) == 2
    assert re.fullmatch(r"docker\.io/library/python:\d+\.\d+\.\d+-\S+", *set(images)), "a tag that does not move on"
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]


def test_what_the_image_copies_is_there_and_sent_to_docker() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").split() if line.startswith("!")}
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]
    ]
    copied = [name for name in copied if not name.startswith("--")]
    assert {"deploy/container/entrypoint.sh", "deploy/container/install_locked.py", "requirements.lock"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists()
        assert any(Path(name).is_relative_to(folder) for folder in sent), name
    dockerfile = compose()["services"]["service"]["build"]
    assert (COMPOSE.parent / dockerfile["context"] / dockerfile["dockerfile"]).resolve() == (
        DEPLOY / "container/Dockerfile"
    )


@pytest.fixture(scope="module")
def installing() -> Any:
    """The program that installs from the lock file."""
    source = importlib.util.spec_from_file_location("install_locked", DEPLOY / "container/install_locked.py")
    assert source
    assert source.loader
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    return module


def test_entries_of_the_lock_file_are_taken_with_all_their_hashes(installing: Any) -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    entries = installing.entries(lock)
    assert sum(entry.count("--hash=") for entry in entries.values()) == lock.count("--hash=")
    assert all("--hash=sha256:" in entry for entry in entries.values())
    pinned = re.findall(r"^\S+==.*", lock, re.MULTILINE)
    assert installing.constraints(lock).splitlines() == [line.removesuffix("\\").strip() for line in pinned]
    assert len(entries) < len(pinned), "one that is pinned for several platforms is there"
    assert not re.search(r"--hash|\\", installing.constraints(lock))


def test_what_the_service_needs_is_in_the_lock_file(installing: Any) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["reference"], *extras["simulation"], *extras["telemetry"], "hatchling"]
    names = {installing.normal(re.match(r"[\w.-]+", text)[0]) for text in wanted} - {"kuayu"}  # type: ignore[index]
    assert len(names) > 25
    assert names <= installing.entries((ROOT / "requirements.lock").read_text("utf-8")).keys()


def test_what_is_not_pinned_is_not_installed(installing: Any) -> None:
    def report(*names: str) -> str:
        return json.dumps({"install": [{"metadata": {"name": name}, "is_direct": name == "kuayu"} for name in names]})

    lock = "typing_extensions==4.0 \\\n    --hash=sha256:aa\nother==1 \\\n    --hash=sha256:bb\n"
    assert installing.chosen(report("Typing-Extensions", "kuayu"), lock) == [
        "typing_extensions==4.0 \\\n    --hash=sha256:aa"
    ]
    with pytest.raises(SystemExit, match="left-pad"):
        installing.chosen(report("other", "left-pad"), lock)


def test_a_service_and_a_domain_start_as_compose_starts_them(tmp_path: Path) -> None:
    """With the secrets that are made for it, through the entrypoint; on SQLite, and on the loopback address."""
    folder = tmp_path / "compose"
    shutil.copytree(COMPOSE.parent, folder, ignore=shutil.ignore_patterns("secrets"))
    subprocess.run([SHELL, folder / "make_secrets.sh"], check=True, capture_output=True)
    secrets = {name: folder / secret["file"] for name, secret in compose()["secrets"].items()}
    assert all(file.stat().st_mode & 0o077 == 0 and file.read_text() for file in secrets.values())
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    program = bin_folder / "kuayu"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from kuayu.cli import main; main()' \"$@\"\n")
    program.chmod(0o755)
    port = free_port()
    services = compose()["services"]
    here = {
        "--host=0.0.0.0": "--host=127.0.0.1",
        "--database=postgresql+psycopg://kuayu@postgres/kuayu": f"--database=sqlite:///{tmp_path / 'kuayu.db'}",
        "--token-file=/run/kuayu/tokens": f"--token-file={folder / 'secrets/service/tokens'}",
        "--url=http://service:8080": f"--url=http://127.0.0.1:{port}",
        "--directory=/var/lib/kuayu/domain": f"--directory={tmp_path / 'domain'}",
    }

    def start(name: str, *more: str) -> "subprocess.Popen[bytes]":
        given = [here.get(word, word) for word in services[name]["command"]]
        variables = {key: str(secrets[Path(value).name]) for key, value in services[name]["environment"].items()}
        environment = {**os.environ, **variables, "PATH": f"{bin_folder}:{os.environ['PATH']}", "no_proxy": "127.0.0.1"}
        with (tmp_path / name).open("wb") as log:
            return subprocess.Popen([ENTRYPOINT, *given, *more], env=environment, cwd=tmp_path, stdout=log, stderr=log)

    token = (folder / "secrets/token").read_text()
    started = [start("service", f"--port={port}")]
    transport = httpx.HTTPTransport(retries=10)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=transport, trust_env=False) as client:
        try:
            assert client.get("/v1/health").is_success
            started.append(start("domain-a"))
            assert client.get("/v1/nodes").status_code == 401
            headers = {"authorization": f"Bearer {token}"}
            nodes: list[Any] = []
            for _ in range(300):
                nodes = client.get("/v1/nodes", headers=headers).json()["items"]
                if nodes or started[-1].poll() is not None:
                    break
                time.sleep(0.1)
            assert [(node["domain"], len(node["devices"])) for node in nodes] == [("a", 2)], (
                tmp_path / "domain-a"
            ).read_text()
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(60)


def test_secrets_are_made_once_and_one_that_was_removed_anew(tmp_path: Path) -> None:
    shutil.copy(COMPOSE.parent / "make_secrets.sh", tmp_path)

    def make() -> dict[str, str]:
        subprocess.run([SHELL, tmp_path / "make_secrets.sh"], check=True, capture_output=True)
        return {file.name: file.read_text() for file in (tmp_path / "secrets").rglob("*") if file.is_file()}

    first = make()
    assert make() == first
    people, *_ = first["tokens"].splitlines()
    assert people == f"default=sha256:{hashlib.sha256(first['token'].encode()).hexdigest()}"
    (tmp_path / "secrets/token_domain_a").unlink()
    second = make()
    assert {name for name in first if first[name] != second[name]} == {"token_domain_a", "tokens"}
    assert len(set(first["tokens"].split()) & set(second["tokens"].split())) == 2


def test_the_chart_is_as_it_was_when_it_was_rendered() -> None:
    """Otherwise `sh deploy/helm/render.sh` has to be run again; where there is Helm, it is."""
    folder = DEPLOY / "helm"
    files = [
        *sorted(file for file in (folder / "kuayu").rglob("*") if file.is_file()),
        folder / "values-postgresql.yaml",
    ]
    digests = {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    noted = [line.split() for line in (folder / "rendered/sources.sha256").read_text("utf-8").splitlines()]
    assert {name: digest for digest, name in noted} == digests


def test_helm_renders_what_is_kept(tmp_path: Path) -> None:
    helm = shutil.which(os.environ.get("HELM", "helm"))
    if helm is None:
        pytest.skip("no Helm on this machine")
    shutil.copytree(DEPLOY / "helm", tmp_path / "helm")
    subprocess.run(
        [SHELL, tmp_path / "helm/render.sh"], check=True, env={**os.environ, "HELM": helm}, capture_output=True
    )
    for name in RENDERED:
        assert (tmp_path / "helm/rendered" / name).read_text() == (DEPLOY / "helm/rendered" / name).read_text()
    bare = [helm, "template", "kuayu", str(tmp_path / "helm/kuayu")]
    refused = subprocess.run(bare, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "tokens.existingSecret or tokens.lines" in refused.stderr


@pytest.mark.parametrize("name", RENDERED)
def test_an_api_server_takes_what_the_chart_renders(name: str) -> None:
    assert [complaint for body in objects(name) for complaint in complaints(body)] == []
    assert {body["metadata"].get("namespace", "kuayu") for body in objects(name)} == {"kuayu"}


@pytest.mark.parametrize("name", RENDERED)
def test_objects_of_the_chart_find_each_other(name: str) -> None:
    deployments = {body["metadata"]["name"]: body["spec"] for body in of_kind("Deployment", name)}
    (service,) = of_kind("Service", name)
    selected = [
        of
        for of, spec in deployments.items()
        if service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    ]
    assert selected == ["kuayu"]
    claims = {body["metadata"]["name"] for body in of_kind("PersistentVolumeClaim", name)}
    for spec in deployments.values():
        assert spec["replicas"] == 1
        assert spec["strategy"] == {"type": "Recreate"}, "two would want the same database or journal"
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
        pod = spec["template"]["spec"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        parts = [*pod.get("initContainers", ()), *pod["containers"]]
        assert {mount["name"] for part in parts for mount in part["volumeMounts"]} == volumes.keys()
        assert {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in volumes.values()
            if "persistentVolumeClaim" in volume
        } <= claims
        assert pod["securityContext"]["runAsUser"] == 10001
        assert all(part["securityContext"]["readOnlyRootFilesystem"] for part in parts)
    assert len(deployments) == (2 if name == "postgresql.yaml" else 1)


def test_the_domain_in_the_cluster_may_do_what_its_engine_does_and_no_more(tmp_path: Path) -> None:
    (role,) = of_kind("Role", "postgresql.yaml")
    allowed = {resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}
    cluster = PlayedCluster(tmp_path, {"n1": 8})
    try:
        engine = KubernetesEngine(tmp_path / "engine", kubeconfig=cluster.kubeconfig(), kind="job", image="python:3")
        needed = {
            finding.subject.removeprefix("permission for "): set(finding.detail.split(", "))
            for finding in engine.check()
            if finding.subject.startswith("permission for ")
        }
    finally:
        cluster.close()
    assert allowed == needed


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_units(name: str, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    text = (DEPLOY / "systemd" / name).read_text("utf-8").replace("/opt/kuayu/bin/kuayu", sys.executable)
    (tmp_path / name).write_text(text, encoding="utf-8")
    instance = tmp_path / name.replace("@.", "@east.")
    verified = subprocess.run([analyze, "verify", instance], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_runs_outlive_the_agent_of_a_domain() -> None:
    agent = unit("kuayu-domain@.service")
    assert agent["KillMode"] == ["process"]
    assert "--leave-running" in agent["ExecStart"][0].split()
    assert "PrivateTmp" not in agent
    assert "KillMode" not in unit("kuayu.service")
    assert any("--leave-running" in part["args"] for pod in pods("postgresql.yaml") for part in pod["containers"])
