"""What scripts/build_image makes beside the verdicts: variants, labels, the SBOM, a pinned base."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import local_registry
import profiled_job
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[3]
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


def name_in(variable: str, what: str) -> str:
    """Return the name of an image, or of its base; a test without it is skipped."""
    name = os.environ.get(variable)
    if not name:
        pytest.skip(f"{variable} names no {what}: build one with scripts/build_image.")
    return name


@pytest.fixture(scope="module")
def slim() -> str:
    return name_in("RULE_RUNNER_IMAGE", "image")


@pytest.fixture(scope="module")
def full() -> str:
    return name_in("RULE_RUNNER_FULL_IMAGE", "image of the variant full")


@pytest.fixture(scope="module", params=["slim", "full"])
def image(request: pytest.FixtureRequest) -> str:
    result: str = request.getfixturevalue(request.param)
    return result


def python(image: str, script: str, *options: str) -> str:
    """Return what a script printed that the image's Python runs, as any user."""
    plain = ("--rm", "--network=none", "--user=12345", "--tmpfs=/tmp", "--env=HOME=/tmp")
    return docker("run", *plain, *options, "--entrypoint=python", image, "-I", "-c", script)


def purls(document: dict[str, Any], kind: str) -> set[str]:
    """Return the package URLs of a kind, such as ``pkg:deb``."""
    found = {one["purl"] for one in document["components"]}
    return {one for one in found if one.startswith(f"{kind}/")}


# -- the variants ------------------------------------------------------------------------------


def locked(*names: str) -> set[str]:
    """Return the locked packages of extras, with their versions."""
    command = [ROOT / "scripts" / "requirements", *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {line.split()[0] for line in done.stdout.splitlines()}


def clients() -> set[str]:
    """Return the services of AWS that this project makes clients of, by its source."""
    makes = r"""(?:\bclient|AwsCalls|super\(\).__init__)\(\s*"([\w-]+)",?"""
    folders = (ROOT / name for name in ("rule_core", "builtin_rules", "rule_runner"))
    texts = (path.read_text() for folder in folders for path in folder.rglob("*.py"))
    return {name for text in texts for name in re.findall(makes, text)}


def services() -> list[str]:
    """Return the services of AWS that the Dockerfile leaves in `slim`."""
    text = (ROOT / "Dockerfile").read_text()
    (names,) = re.findall('^ENV SERVICES="(.*)"$', text, re.MULTILINE)
    return str(names).split()


def test_a_variant_is_slim_or_full() -> None:
    done = subprocess.run(
        [SCRIPT, "rule-runner:unwanted", "fat"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "The variant must be slim or full, got 'fat'.\n")


def test_every_service_that_is_called_is_in_slim() -> None:
    assert {"s3", "sns", "sagemaker", "ecr", "events", "logs", "cloudwatch"} <= clients()
    assert clients() <= set(services())


@pytest.mark.docker
def test_the_compiled_kernel_measures_tensors(image: str) -> None:
    script = "from rule_core.kernels.sweep import processors; print(*processors())"
    assert python(image, script).split()[:1] == ["baseline"]


@pytest.mark.docker
def test_slim_lacks_the_extra_profiler_and_nothing_else(slim: str, full: str) -> None:
    inside = [
        {
            component["name"]: component["version"]
            for component in json.loads(python(image, PRINT_SBOM))["components"]
        }
        for image in (slim, full)
    ]
    extra = locked("rule-runner", "profiler") - locked("rule-runner")
    more = {f"{name}=={inside[1][name]}" for name in inside[1].keys() - inside[0].keys()}
    assert {package.lower() for package in more} == extra
    assert inside[0].items() <= inside[1].items()
    assert {package.partition("=")[0] for package in extra} > {"bokeh", "matplotlib", "pandas"}


PRINT_SBOM = f"print(open({INSIDE!r}).read())"
FRAMES = """
import os
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.profiler.analysis.notebook_utils.step_histogram import StepHistogram
from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame

frames = PandasFrame("/job")
try:
    print(len(frames.get_all_framework_metrics()) > 10)
    steps = StepHistogram(frames.framework_metrics_reader)
    steps.plot()
    steps.save("/tmp/steps.html")
    print(os.path.getsize("/tmp/steps.html") > 10000)
except SMDebugRuntimeError as err:
    print(err)
"""


@pytest.mark.docker
def test_frames_and_charts_need_full_and_say_so(slim: str, full: str, tmp_path: Path) -> None:
    job = f"--volume={profiled_job.write_job(tmp_path / 'job')}:/job:ro"
    assert python(slim, FRAMES, job) == (
        "Frames need pandas, which the variant 'full' of the image has. "
        "Install it with pip install 'rule-runner[profiler]'.\n"
    )
    assert python(full, FRAMES, job) == "True\nTrue\n"
    assert python(full, "import bokeh, matplotlib.pyplot, pandas") == ""


@pytest.mark.docker
def test_services_of_aws(slim: str, full: str) -> None:
    script = "import botocore.session as s; print(*s.get_session().get_available_services())"
    few, all_of_them = python(slim, script).split(), python(full, script).split()
    assert few == services()
    assert "dynamodb" in all_of_them
    assert len(all_of_them) > 300
    made = python(
        slim,
        "from rule_core.storage import aws\n"
        f"print(*(aws.client(name).meta.service_model.service_name for name in {few}))",
    )
    assert made.split() == few


@pytest.mark.docker
def test_slim_takes_at_most_55_mb_on_top_of_its_base(slim: str, tmp_path: Path) -> None:
    base = name_in("BASE_IMAGE", "base")
    form = "--format={{len .RootFS.Layers}}"
    below = int(docker("image", "inspect", form, base))
    docker("save", "--output", str(tmp_path / "image.tar"), slim)
    with tarfile.open(tmp_path / "image.tar") as image:
        (manifest,) = json.load(image.extractfile("manifest.json"))  # type: ignore[arg-type] # a file
        layers = manifest["Layers"][below:]
        # Level 6, which docs/image.md measures with, takes longer and less.
        sizes = [len(gzip.compress(image.extractfile(layer).read(), 1)) for layer in layers]  # type: ignore[union-attr] # likewise
    assert len(sizes) == int(docker("image", "inspect", form, slim)) - below > 2
    assert 20e6 < sum(sizes) <= 55e6


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
    expected = set(python(image, script).split())
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
