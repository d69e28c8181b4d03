"""Clusters of Dask and Ray on this machine, whose processes a test kills and starts again."""

import os
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import fleets


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Cluster(ABC):
    """A cluster with two places for evaluations.

    Attributes
    ----------
    address
        As `executor` of a configuration names it.
    """

    address: str

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    @abstractmethod
    def start(self) -> None:
        """Start it, also after `kill`."""

    @abstractmethod
    def kill_worker(self) -> None:
        """Kill a process that runs calls; another one takes its place."""

    def kill(self) -> None:
        """Kill all of its processes at once."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def run(self, command: Sequence[str], **environment: str) -> "subprocess.Popen[bytes]":
        """Start a process in a session of its own."""
        variables: Mapping[str, str] = fleets.worker_environment() | environment
        with (self._folder / "cluster.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process


class DaskCluster(Cluster):
    """A scheduler that gives up a call with its first worker, and a worker with two threads."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._port = str(free_port())
        self.address = f"tcp://127.0.0.1:{self._port}"
        self._worker: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.run(
            [
                *(sys.executable, "-m", "distributed.cli.dask_scheduler"),
                *("--host", "127.0.0.1", "--port", self._port, "--no-dashboard"),
            ],
            DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0",
        )
        self._start_worker()

    def _start_worker(self) -> None:
        self._worker = self.run(
            [
                *(sys.executable, "-m", "distributed.cli.dask_worker", self.address),
                *("--no-nanny", "--nthreads", "2", "--no-dashboard"),
                *("--local-directory", str(self._folder)),
            ]
        )

    def kill_worker(self) -> None:
        assert self._worker is not None
        self._worker.kill()
        self._worker.wait()
        self._processes.remove(self._worker)
        self._start_worker()


class RayCluster(Cluster):
    """A head node with two CPUs, and a server for clients."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import ray

        self._ports = [str(free_port()) for _ in range(6)]
        self.address = f"ray://{ray.util.get_node_ip_address()}:{self._ports[0]}"

    def start(self) -> None:
        self.run(
            [
                *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"),
                *("--ray-client-server-port", self._ports[0], "--port", self._ports[1]),
                # A raylet aborts if its agents have not chosen their ports within 15 s.
                *("--dashboard-agent-grpc-port", self._ports[2]),
                *("--dashboard-agent-listen-port", self._ports[3]),
                *("--runtime-env-agent-port", self._ports[4]),
                *("--metrics-export-port", self._ports[5]),
                *("--num-cpus", "2", "--include-dashboard", "false", "--disable-usage-stats"),
            ]
        )

    def kill_worker(self) -> None:
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_busy = b"ray::_run" in (path / "cmdline").read_bytes()
                if is_busy and self._is_own(int(path.name)):
                    os.kill(int(path.name), signal.SIGKILL)

    def _is_own(self, process: int) -> bool:
        return os.getsid(process) in {started.pid for started in self._processes}
