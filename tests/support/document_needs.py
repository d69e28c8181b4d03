"""What readers of the documentation have before a page begins, and what its blocks need."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import aws_server
import http_places
import mlflow_runs
import pytest
from documents import ROOT, Block, Reader

from rule_core.storage import aws

IMAGE_NAMES: Final = ("rule-runner", "rule-runner:0.1.0")
MISSING_IMAGE: Final = "RULE_RUNNER_IMAGE names no image: build one with scripts/build_image."
# What no machine of the CI has.
NEVER: Final = {
    "a day": "Hours of training: .ci/nightly judges a sample.",
    "a server": "A machine for the service, with folders in /data.",
    "an AWS account": "An account of AWS.",
    "Kubernetes": "A cluster of Kubernetes: tests/system/engines uses the template.",
    "Podman": "A session of systemd, with Podman.",
    "Slurm": "A cluster of Slurm with /shared: tests/system/engines uses the template.",
    "the internet": "Servers on the internet.",
}
Provide = Callable[[Reader, Block, pytest.FixtureRequest], None]


def provide(reader: Reader, block: Block, request: pytest.FixtureRequest) -> None:
    """Get what a block needs, or skip the test with the reason."""
    for need in block.needs:
        if need in NEVER:
            pytest.skip(f"Not on this machine: {NEVER[need]}")
        PROVIDERS[need](reader, block, request)


def _amazon(reader: Reader, block: Block, request: pytest.FixtureRequest) -> None:
    """Let commands talk to an AWS on this machine that holds the trials of the folder."""
    if "AWS_ENDPOINT_URL" in reader.environment:
        return
    endpoint = request.getfixturevalue("aws_endpoint")
    reader.environment |= {**aws_server.ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint}
    s3, files = aws.client("s3"), [*filter(Path.is_file, reader.folder.rglob("*"))]
    text = (ROOT / block.page).read_text("utf-8")
    for bucket in set(re.findall(r"s3://([\w-]+)/", text)):
        s3.create_bucket(Bucket=bucket)
        for file in files:
            s3.upload_file(str(file), bucket, file.relative_to(reader.folder).as_posix())
    for bus, region in set(re.findall(r"eventbridge:([\w-]+)(?:,region=([\w-]+))?", text)):
        aws.client("events", region=region or None).create_event_bus(Name=bus)


def _image(reader: Reader, block: Block, request: pytest.FixtureRequest) -> None:
    """Give the image the names of the documents; let `id` print an ordinary user for root."""
    del block, request
    image = os.environ.get("RULE_RUNNER_IMAGE")
    if not image or shutil.which("docker") is None:
        pytest.skip(MISSING_IMAGE)
    base = os.environ.get("BASE_IMAGE", "python:3.11-slim")  # as scripts/build_image has it
    reader.environment["BASE_IMAGE"] = base
    for name in IMAGE_NAMES:
        subprocess.run(["docker", "tag", image, name], check=True)
    if os.geteuid() == 0:
        (reader.folder / "out").mkdir(exist_ok=True)
        os.chown(reader.folder / "out", 1000, 1000)
        shim = reader.folder.parent / "id"
        shim.write_text("#!/bin/sh\necho 1000\n")
        shim.chmod(0o755)


def _module(name: str, reader: Reader, block: Block, request: pytest.FixtureRequest) -> None:
    del reader, block, request
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed.")


def _run_by_ci(reader: Reader, block: Block, request: pytest.FixtureRequest) -> None:
    """Skip what the CI runs in other ways: it, or another test, names each script of the block."""
    del reader, request
    users = [ROOT / ".ci" / "run", ROOT / ".ci" / "nightly", *ROOT.glob("tests/system/e2e/*.py")]
    texts = "".join(path.read_text("utf-8") for path in users)
    missing = [name for name in re.findall(r"scripts/(\w+)", block.code) if name not in texts]
    assert not missing, f"{block}: neither .ci nor another test runs {', '.join(missing)}."
    pytest.skip("The CI, or another test, runs its scripts.")


def _free_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            pytest.skip(f"Another process listens on port {port}.")


def _port(port: int, reader: Reader, block: Block, request: pytest.FixtureRequest) -> None:
    del reader, block, request
    _free_port(port)


def _serving(
    port: int,
    serving: Callable[[int], AbstractContextManager[object]],
    reader: Reader,
    block: Block,
    request: pytest.FixtureRequest,
) -> None:
    """Run a server for the time of the block."""
    del reader, block
    _free_port(port)
    server = serving(port)
    server.__enter__()
    request.addfinalizer(lambda: server.__exit__(None, None, None))


@contextmanager
def _mlflow(port: int) -> Iterator[None]:
    with mlflow_runs.serving(port) as server:
        server.rows, server.status = mlflow_runs.ROWS, "FINISHED"
        yield


@contextmanager
def _http(port: int) -> Iterator[None]:
    with http_places.serving(port=port):
        yield


def _sdk(reader: Reader, block: Block, request: pytest.FixtureRequest) -> None:
    del block, request
    python = os.environ.get("RULE_RUNNER_SAGEMAKER_PYTHON")
    if not python:
        pytest.skip("RULE_RUNNER_SAGEMAKER_PYTHON names no Python with SageMaker's SDK.")
    reader.python = python


PROVIDERS: Final[dict[str, Provide]] = {
    "AWS": _amazon,
    "CI": _run_by_ci,
    "Docker": _image,
    "SageMaker SDK": _sdk,
    "MLflow 5000": partial(_serving, 5000, _mlflow),
    "port 8420": partial(_port, 8420),
    "server 8000": partial(_serving, 8000, _http),
    "server 9090": partial(_serving, 9090, _http),
    "PyTorch": partial(_module, "torch"),
    "Lightning": partial(_module, "lightning"),
    "Transformers": partial(_module, "transformers"),
    "Keras": partial(_module, "keras"),
}
