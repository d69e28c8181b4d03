"""A Slurm cluster of this machine alone: a controller and one node, in a folder."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import uncounted

from rule_core.clock import SystemClock

COMMANDS: Final = ("slurmctld", "slurmd", "sbatch", "sinfo", "scancel")
DAEMONS: Final = ("slurmctld", "slurmd")
READY_S: Final = 60.0
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


@contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """Run a cluster in a new folder; yield the environment in which its commands reach it."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    path = folder / "slurm.conf"
    path.write_text(_configuration(folder))
    environment = uncounted.environment() | {"SLURM_CONF": str(path)}
    with ExitStack() as stack:
        for daemon in DAEMONS:
            stack.enter_context(_daemon(daemon, folder, environment))
        _wait_until_idle(folder, environment)
        yield environment


def _program(command: str) -> str | None:
    return shutil.which(command, path=os.environ.get("PATH", "") + os.pathsep + SBIN)


def _configuration(folder: Path) -> str:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        ports = [server.getsockname()[1] for server in (one, other)]
    return CONFIGURATION.format(
        folder=folder,
        host=socket.gethostname().partition(".")[0],
        controller_port=ports[0],
        node_port=ports[1],
        cpus=os.cpu_count(),
        megabytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 64,
    )


@contextmanager
def _daemon(name: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a daemon, with its log in the folder, until the block ends."""
    program = _program(name)
    assert program is not None
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-D"], env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(READY_S)


def _wait_until_idle(folder: Path, environment: dict[str, str]) -> None:
    """Wait until the node takes jobs."""
    clock = SystemClock()
    deadline = clock.monotonic() + READY_S
    while clock.monotonic() < deadline:
        states = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if states.stdout.strip() == "idle":
            return
        clock.sleep(0.1)
    logs = "\n".join((folder / f"{name}.log").read_text() for name in DAEMONS)
    msg = f"The node of the cluster does not become idle:\n{logs}"
    raise AssertionError(msg)
