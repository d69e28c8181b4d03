"""kubectl, the API's schemas and a server in its place: of RULE_RUNNER_KUBERNETES_PYTHON."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uncounted
import yaml

PYTHON: Final = os.environ.get("RULE_RUNNER_KUBERNETES_PYTHON", "")
REASON: Final = (
    "RULE_RUNNER_KUBERNETES_PYTHON does not name a Python that has requirements-kubernetes.txt."
)
SERVER: Final = Path(__file__).with_name("kubernetes_server.py")


class Kubectl:
    """The command, with or without a server."""

    def __init__(self, folder: Path, server: str = "http://127.0.0.1:1") -> None:
        self._command = [
            Path(PYTHON).with_name("kubectl"),
            *("--kubeconfig", os.devnull, "--server", server, "--cache-dir", folder / "cache"),
        ]

    def __call__(self, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end."""
        return subprocess.run(
            [*self._command, *arguments],
            env=uncounted.environment(),
            capture_output=True,
            text=True,
            check=False,
        )


def rendered(overlay: Path) -> dict[str, dict[str, Any]]:
    """Return the objects of an overlay by kind, as kubectl renders them."""
    done = Kubectl(overlay)("kustomize", overlay)
    assert (done.returncode, done.stderr) == (0, "")
    return {item["kind"]: item for item in yaml.safe_load_all(done.stdout)}


def violations(manifest: Path, version: str) -> "subprocess.CompletedProcess[str]":
    """Validate a file strictly against the published schemas of a version of Kubernetes."""
    command = Path(PYTHON).with_name("kubernetes-validate")
    return subprocess.run(
        [command, "--strict", "--kubernetes-version", version, manifest],
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def serving() -> Iterator[str]:
    """Run a server in the place of the API on a free port; yield its address."""
    with subprocess.Popen(
        [PYTHON, SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        yield server.stdout.readline().strip()
        server.stdin.close()
