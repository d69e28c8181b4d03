"""What scripts/build_image makes beside the verdicts: labels, the SBOM, a base that is pinned."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import local_registry
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "build_image"
SBOM = ROOT / "scripts" / "sbom"
INSIDE = "/usr/share/doc/rule-runner/sbom.cdx.json"
LABEL = "org.opencontainers.image"


def docker(*arguments: str) -> str:
    """Return what a docker command that succeeds printed."""
    command = ["docker", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(**environment: str) -> subprocess.CompletedProcess[str]:
    """Build an image that is not wanted."""
    return subprocess.run(
        [SCRIPT, "rule-runner:unwanted"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def purls(document: dict[str, Any], kind: str) -> set[str]:
    """Return the package URLs of a kind, such as ``pkg:deb``."""
    found = {one["purl"] for one in document["components"]}
    return {one for one in found if one.startswith(f"{kind}/")}


# -- the base ----------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["", "python:3.11-slim", "127.0.0.1:5000/python"])
def test_a_base_without_a_digest_is_refused_where_one_is_required(base: str) -> None:
    done = build(BASE_IMAGE=base, REQUIRE_DIGEST="1", PATH="/usr/bin:/bin")
    expected = (
        f"BASE_IMAGE must carry a digest, as in NAME@sha256:..., got '{base}'. "
        "docs/image.md says how to find it.\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


@pytest.mark.parametrize("digest", ["sha256:abc", "", "md5:" + "0" * 32, "sha256:" + "A" * 64])
def test_a_digest_that_is_none_is_refused(digest: str) -> None:
    done = build(BASE_IMAGE=f"python@{digest}")
    expected = (
        f"The digest of BASE_IMAGE must be sha256: and 64 hexadecimal digits, got '{digest}'.\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    if not os.environ.get("RULE_RUNNER_IMAGE"):
        pytest.skip("RULE_RUNNER_IMAGE names no image, so there is no engine.")
    with local_registry.serving(tmp_path / "registry") as host:
        yield host


@pytest.mark.docker
def test_the_engine_takes_no_base_with_another_digest(registry: str) -> None:
    digest = hashlib.sha256(b"another").hexdigest()
    done = build(BASE_IMAGE=f"{registry}/base@sha256:{digest}", DOCKER_BUILDKIT="0")
    assert done.returncode == 1
    assert f"manifest for {registry}/base@sha256:{digest} not found" in done.stderr


# -- the SBOM ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image() -> str:
    name = os.environ.get("RULE_RUNNER_IMAGE")
    if not name:
        pytest.skip("RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.")
    return name


@pytest.fixture(scope="module")
def text(image: str) -> str:
    return docker("run", "--rm", "--network=none", "--entrypoint=cat", image, INSIDE)


@pytest.mark.docker
def test_the_sbom_holds_to_the_schema(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


@pytest.mark.docker
def test_the_sbom_names_every_python_package_inside_and_no_other(image: str, text: str) -> None:
    script = (
        "import importlib.metadata as m\n"
        "for one in m.distributions():\n"
        "    print(f\"pkg:pypi/{one.name.lower().replace('_', '-')}@{one.version}\")"
    )
    # Without the system's own packages: those are Debian's.
    arguments = ("run", "--rm", "--network=none", "--entrypoint=python", image, "-I", "-c", script)
    expected = set(docker(*arguments).split())
    assert "pkg:pypi/rule-runner@0.1.0" in expected
    assert purls(json.loads(text), "pkg:pypi") == expected


@pytest.mark.docker
def test_the_sbom_names_every_debian_package_inside(image: str, text: str) -> None:
    form = "--showformat=${Package} ${Version} ${Architecture}\\n"
    entry = ("--rm", "--network=none", "--entrypoint=dpkg-query")
    lines = docker("run", *entry, image, "--show", form).splitlines()
    named = {
        (one["name"], one["version"], re.search("arch=([^&]*)", one["purl"])[1])  # type: ignore[index] # else it fails, as it should
        for one in json.loads(text)["components"]
        if one["purl"].startswith("pkg:deb/")
    }
    assert named == {tuple(line.split()) for line in lines}


@pytest.mark.docker
def test_the_sbom_is_the_same_when_it_is_made_again(image: str, text: str) -> None:
    mount = f"--volume={SBOM}:/sbom:ro"
    entry = ("--rm", "--network=none", "--entrypoint=python", mount)
    assert docker("run", *entry, image, "/sbom", "/opt/rule-runner") == text


@pytest.mark.docker
def test_the_labels_say_version_and_revision(image: str) -> None:
    labels = json.loads(docker("image", "inspect", "--format={{json .Config.Labels}}", image))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert labels[f"{LABEL}.version"] == version
    assert re.fullmatch("[0-9a-f]{40}(-dirty)?|unknown", labels[f"{LABEL}.revision"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels[f"{LABEL}.created"])
    assert labels[f"{LABEL}.licenses"] == "Apache-2.0"


@pytest.mark.docker
def test_no_tests_and_no_caches_of_pip_are_inside(image: str) -> None:
    command = "find /opt/rule-runner -name tests; find / -xdev -path '*/.cache/pip' 2>/dev/null"
    entry = ("--rm", "--network=none", "--entrypoint=sh")
    assert docker("run", *entry, image, "-c", f"{command}; true") == ""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return a virtual environment whose three packages are odd, each in its way."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name, version, more in (
        ("Odd.Name__here", "1!2.0+local.1", "License-Expression: MIT OR Apache-2.0"),
        ("plain", "1.0", "Classifier: License :: OSI Approved :: BSD License"),
        ("nothing", "0.0.1rc1", "Summary: It says nothing of its licence."),
    ):
        metadata = packages / f"{name}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{more}\n")
    return folder


def test_the_sbom_names_packages_as_the_projects_tool_for_it_does(environment: Path) -> None:
    tool = [sys.executable, "-m", "cyclonedx_py", "environment", environment / "bin" / "python"]
    theirs = subprocess.run(tool, check=True, capture_output=True, text=True).stdout
    script = (
        "import json, runpy, sys; sbom = runpy.run_path(sys.argv[1]); "
        "print(json.dumps([*sbom['python_components'](sbom['Path'](sys.argv[2]))]))"
    )
    command = [sys.executable, "-c", script, SBOM, environment]
    ours = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {one["name"]: one for one in json.loads(ours)}
    expected = {one["name"]: one for one in json.loads(theirs)["components"]}
    assert sorted(found) == ["Odd.Name__here", "nothing", "plain", "python"]
    for name in expected:
        keys = ("purl", "version", "type")
        assert [found[name][key] for key in keys] == [expected[name][key] for key in keys]
    assert found["Odd.Name__here"]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert found["plain"]["licenses"] == [{"license": {"name": "BSD License"}}]
    assert "licenses" not in found["nothing"]
