"""A Ray cluster of this machine alone: a head that runs nothing, and two nodes of one CPU."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import processes
import pytest
import uncounted

SETTINGS: Final = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "300",  # on a busy machine
}
NODES: Final = 2
STARTS: Final = 3
MEMORY: Final = 80_000_000  # bytes of shared objects, for each node


class RayCluster:
    """Nodes, each a process of Ray with its workers, which can be killed."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._nodes = [self._new_node() for _ in range(NODES)]

    def _new_node(self) -> Any:
        return _patiently(self._cluster.add_node, num_cpus=1, object_store_memory=MEMORY)

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which ``--executor ray`` is this cluster."""
        return uncounted.environment() | {"RAY_ADDRESS": self._cluster.address}

    def workers(self) -> list[int]:
        """Return the worker processes that run a call."""
        return [worker for node in self._nodes for worker in _workers(node)]

    def nodes(self) -> "list[partial[bool]]":
        """Return a function for each node that replaces it."""
        return [partial(self._replace, place) for place in range(NODES)]

    def _replace(self, place: int) -> bool:
        """Kill a node with its workers, and start another one."""
        self._cluster.remove_node(self._nodes[place], allow_graceful=False)
        self._nodes[place] = self._new_node()
        return True


def _patiently(start: Callable[..., Any], **settings: Any) -> Any:
    """Start a node, again if the machine is so busy that Ray gives up after 30 s."""
    for _ in range(STARTS - 1):
        with suppress(Exception):
            return start(**settings)
    return start(**settings)


def _workers(node: Any) -> Iterator[int]:
    for raylet in node.all_processes["raylet"]:
        for process in processes.children(raylet.process.pid):
            if processes.command(process).startswith(b"ray::_run"):
                yield process


@contextmanager
def running() -> Iterator[RayCluster]:
    """Run a cluster in a folder of its own, whose path is short because sockets need that."""
    with (
        tempfile.TemporaryDirectory(prefix="ray-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, text in (SETTINGS | {"RAY_TMPDIR": folder}).items():
            patch.setenv(name, text)
        for name in uncounted.NAMES:
            patch.delenv(name, raising=False)
        from ray.cluster_utils import Cluster

        cluster = Cluster()
        try:
            head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": MEMORY}
            _patiently(cluster.add_node, **head)
            yield RayCluster(cluster)
        finally:
            cluster.shutdown()
