"""A Slurm cluster of this machine alone: a controller and one node, in a folder."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import processes
import uncounted

from rule_core.clock import SystemClock

TEMPLATE: Final = Path(__file__).parents[2] / "examples" / "slurm" / "fleet.sbatch"
COMMANDS: Final = ("slurmctld", "slurmd", "sbatch", "sinfo", "scancel")
CONTROLLER, NODE = DAEMONS = ("slurmctld", "slurmd")
READY_S: Final = 60.0
WAITING: Final = frozenset({"None", "Resources", "Priority"})  # for nothing but their turn
SBIN: Final = "/usr/sbin"  # where Debian has the daemons; not on every user's path
CONFIGURATION: Final = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={megabytes} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP
"""


def missing() -> str:
    """Return why there can be no cluster here; "" if there can."""
    if any(_program(command) is None for command in COMMANDS):
        return "Slurm is not installed."
    return "" if os.geteuid() == 0 else "Only root can start Slurm's daemons."


class SlurmCluster:
    """A controller and a node, which can be killed; `environment` is that of commands."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.environment = environment
        self._folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start a daemon, with its log in the folder."""
        program = _program(name)
        assert program is not None
        with (self._folder / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [program, "-D"],
                env=self.environment,
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> None:
        """Stop the daemons."""
        for process in self._daemons.values():
            process.terminate()
        for process in self._daemons.values():
            process.wait(READY_S)

    def sbatch(self, folder: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        """Submit a job from a folder."""
        return self._call("sbatch", "--parsable", *arguments, folder=folder)

    def query(self, *command: str) -> list[str]:
        """Return the lines that a command prints; none if it fails."""
        return self._call(*command).stdout.splitlines()

    def _call(
        self, *command: str | Path, folder: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def tasks(self) -> list[int]:
        """Return the processes of tasks that have begun."""
        return [
            process
            for step in self._steps()
            for process in processes.children(step)
            if b"fleet" in processes.command(process)
        ]

    def _steps(self) -> list[int]:
        """Return the processes of Slurm that are the parents of tasks."""
        return [
            process
            for process in processes.named("slurmstepd")
            if processes.folder(process) == str(self._folder)
        ]

    def restart_controller(self) -> bool:
        """Kill the controller, and start it again."""
        self._kill(CONTROLLER)
        self.start(CONTROLLER)
        self.wait_until_in_service()
        return True

    def replace_node(self) -> bool:
        """Kill the node with all tasks, and start it again; the tasks are in the queue again."""
        steps = self._steps()
        self._kill(NODE)
        for process in [*steps, *(task for step in steps for task in processes.children(step))]:
            processes.kill(process)
        self._set_node("state=down", "reason=killed")
        self.start(NODE)
        self.wait_until_in_service()
        return True

    def _kill(self, name: str) -> None:
        process = self._daemons[name]
        process.send_signal(signal.SIGKILL)
        process.wait()

    def wait_until_in_service(self) -> None:
        """Wait until the node takes jobs."""
        clock = SystemClock()
        deadline = clock.monotonic() + READY_S
        while not self.is_in_service():
            logs = "\n".join((self._folder / f"{name}.log").read_text()[-2000:] for name in DAEMONS)
            assert clock.monotonic() < deadline, f"The node does not come into service:\n{logs}"
            clock.sleep(0.1)

    def is_in_service(self) -> bool:
        """Return whether the node takes jobs; do as an administrator if node or jobs are held.

        A controller that was killed may have lost what it did last. It takes the node for down,
        drains it when tasks run there of which it does not know, and holds jobs that run already.
        """
        (state,) = self.query("sinfo", "--noheader", "--format=%T") or [""]
        if state.startswith(("down", "drain")):
            self._set_node("state=resume")
        jobs = self.query("squeue", "--noheader", "--array", "--states=PD", "--format=%A %r")
        for job, _, reason in (line.partition(" ") for line in jobs):
            if reason not in WAITING:
                self.query("scontrol", "update", f"job={job}", "starttime=now")
                self.query("scontrol", "release", job)
        return state in {"idle", "mixed", "allocated"}

    def _set_node(self, *settings: str) -> None:
        self.query("scontrol", "update", f"nodename={_host()}", *settings)


@contextmanager
def running(folder: Path) -> Iterator[SlurmCluster]:
    """Run a cluster in a new folder; rule-runner is found there, as with a user's venv."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    path = folder / "slurm.conf"
    path.write_text(_configuration(folder))
    environment = uncounted.environment() | {"SLURM_CONF": str(path)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    cluster = SlurmCluster(folder, environment)
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        for daemon in DAEMONS:
            cluster.start(daemon)
        cluster.wait_until_in_service()
        yield cluster


def _program(command: str) -> str | None:
    return shutil.which(command, path=os.environ.get("PATH", "") + os.pathsep + SBIN)


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _configuration(folder: Path) -> str:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        ports = [server.getsockname()[1] for server in (one, other)]
    return CONFIGURATION.format(
        folder=folder,
        host=_host(),
        controller_port=ports[0],
        node_port=ports[1],
        cpus=os.cpu_count(),
        megabytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 64,
    )
