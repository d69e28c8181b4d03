"""Sampler: starts and stops the process that samples a node."""

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any, Final

from rule_core.processes import end, start_module
from rule_core.profiler.recording import layout

MODULE: Final = "rule_core.profiler.recording.sampler"
STOP_TIMEOUT_S: Final = 1.5
# Makes Python attach hooks, which a sampler has no use for.
TRAIN_FOLDER: Final = "RULE_RUNNER_TRAIN"
STOP: Final = b"stop"  # ends the process in good order
LOCAL_RANKS: Final = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
NODE_RANKS: Final = ("GROUP_RANK", "OMPI_COMM_WORLD_NODE_RANK", "SLURM_NODEID")


class Sampler:
    """The sampler of this node, a child process.

    Parameters
    ----------
    folder
        Folder or S3 address of the recording.
    interval_ms
        Milliseconds between two samples.
    node
        Number of the node, from 1.
    """

    def __init__(self, folder: str, interval_ms: int, node: int) -> None:
        self._arguments = [folder, f"--interval-ms={interval_ms}", f"--node={node}"]
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def start(self) -> None:
        """Start sampling; raise `OSError` if no process can be started."""
        environment = {key: value for key, value in os.environ.items() if key != TRAIN_FOLDER}
        arguments = [*self._arguments, f"--parent={self._owner}"]
        self._process = start_module(MODULE, *arguments, environ=environment, stdin=subprocess.PIPE)

    def stop(self, timeout_s: float | None = None) -> None:
        """End sampling, and wait until the last file is written; kill it after a time."""
        process, self._process = self._process, None
        if process is None or os.getpid() != self._owner:
            return
        end(process, timeout_s or STOP_TIMEOUT_S, STOP)


def is_first_of_node(rank: int) -> bool:
    """Return whether this process is the one of its node that starts the sampler."""
    return _number_in(LOCAL_RANKS, rank) == 0


def node_number() -> int:
    """Return the number of this node in the training job, from 1."""
    resources: dict[str, Any] = layout.resources()
    hosts = resources.get("hosts")
    if isinstance(hosts, list) and resources.get("current_host") in hosts:
        return 1 + sorted(hosts, key=json.dumps).index(resources["current_host"])
    return 1 + _number_in(NODE_RANKS, 0)


def _number_in(variables: Sequence[str], default: int) -> int:
    """Return the number in the first of some environment variables that has one."""
    values = (os.environ.get(variable, "") for variable in variables)
    return next((int(value) for value in values if value.isdigit()), default)
