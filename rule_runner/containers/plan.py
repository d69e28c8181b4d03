"""ContainerPlan: the hardened configuration of one container, built without an engine."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from rule_core.storage.uri import is_s3
from rule_runner.config.defaults import STOP_FILE, WINDOW
from rule_runner.containers.entry_point import HOME
from rule_runner.containers.options import ContainerRequest, Mount
from rule_runner.errors import UsageError
from rule_runner.notify.sinks.spec import sink_variable
from rule_runner.notify.webhook import SECRET

LABEL: Final = "rule-runner.output"
TMPFS: Final = {HOME: "rw,nosuid,nodev,noexec,mode=1777,size=512m"}
# Containers that use AWS get these variables, and no other variables of AWS.
CLOUD_VARIABLES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_MAX_ATTEMPTS",
    "AWS_RETRY_MODE",
    "AWS_REQUEST_PAYER",
    "RULE_RUNNER_S3_DEADLINE",
)
ENDPOINT: Final = "AWS_ENDPOINT_URL"  # also a prefix: the endpoints of single services
PROFILE: Final = "AWS_PROFILE"
AWS_FOLDER: Final = "/aws"
ROOT: Final = "0:0"

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmg]?)b?", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SMALLEST: Final = 64 * 2**20  # Python and numpy do not start in less


@dataclass(frozen=True, slots=True)
class Account:
    """The user of a container, ``uid:gid``, and the user namespace of these numbers."""

    user: str
    userns: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """One container.

    Attributes
    ----------
    arguments
        Arguments of the image's command.
    mounts
        Folders, at the same paths as on this machine.
    environment
        Variables and their values; some are secret.
    network
        Name of a network of the engine, or ``none``.
    memory
        Bytes, including files in /tmp; there is no swap.
    cpus
        Number of processors, possibly fractional.
    pids
        Number of processes and threads.
    output
        Output folder; a label of the container.
    """

    image: str
    arguments: tuple[str, ...]
    mounts: tuple[Mount, ...]
    environment: Mapping[str, str]
    network: str
    memory: int
    cpus: float
    pids: int
    account: Account
    output: str
    aws_folder: str | None = None

    def __repr__(self) -> str:
        """Return a text without secrets."""
        return f"ContainerPlan(image={self.image!r}, output={self.output!r})"


def parse_size(text: str) -> int:
    """Return a size in bytes.

    >>> parse_size("4g"), parse_size("1.5G"), parse_size("100mb")
    (4294967296, 1610612736, 104857600)

    Raises
    ------
    UsageError
        If it is not a size, or less than an evaluation needs.
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if size < _SMALLEST:
        raise UsageError(
            f"Memory must be a size of at least 64m, such as 4g or 512m, got {text!r}."
        )
    return size


def environment(
    translated: ContainerRequest, environ: Mapping[str, str], *, profile: bool
) -> dict[str, str]:
    """Return the environment variables of this process that a container needs.

    Parameters
    ----------
    environ
        The environment of this process.
    profile
        Whether the container gets the folder with the AWS configuration.
    """
    names = [WINDOW, STOP_FILE]
    if translated.cloud:
        names += [*CLOUD_VARIABLES, *(name for name in environ if name.startswith(ENDPOINT))]
        names += [PROFILE] if profile else []
    if translated.network:
        names.append(SECRET)
    names += filter(None, map(sink_variable, translated.request.sinks))
    return {name: environ[name] for name in names if environ.get(name)}


def check_endpoints(urls: Iterable[str], network: str) -> None:
    """Reject endpoints on this machine if the container has a separate network.

    Raises
    ------
    UsageError
        If the container could not reach it.
    """
    hosts = {urlsplit(url).hostname for url in urls}
    if network != "host" and any(is_loopback(host or "") for host in hosts):
        raise UsageError(
            "The endpoint of AWS is an address of this machine alone, which a container on network "
            f"{network!r} does not reach. Use --network host."
        )


def is_loopback(host: str) -> bool:
    """Return whether a host is the loopback address of this machine."""
    return host in {"localhost", "::1"} or host.startswith("127.")


def sdk_arguments(plan: ContainerPlan) -> dict[str, Any]:
    """Return the arguments of the Docker SDK that create a container.

    The engine's default filter of system calls stays. The engine stores no output: it is read
    while it is written.
    """
    own = {"HOME": HOME, "OMP_NUM_THREADS": str(max(1, math.floor(plan.cpus)))}
    mounts = [_bind(str(mount.folder), mount.writable) for mount in plan.mounts]
    if plan.aws_folder is not None:
        mounts.append(_bind(plan.aws_folder, False, AWS_FOLDER))
        own["AWS_CONFIG_FILE"] = f"{AWS_FOLDER}/config"
        own["AWS_SHARED_CREDENTIALS_FILE"] = f"{AWS_FOLDER}/credentials"
    # In a rootless engine, root is the caller; the image's entry point would drop root.
    command = {"entrypoint": ["rule-runner"]} if plan.account.user == ROOT else {}
    return command | {
        "image": plan.image,
        "command": ["evaluate", *plan.arguments],
        "environment": own | dict(plan.environment),
        "labels": {LABEL: plan.output},
        "mounts": mounts,
        "working_dir": HOME if is_s3(plan.output) else plan.output,
        "user": plan.account.user,
        "userns_mode": plan.account.userns,
        "network_mode": plan.network,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "read_only": True,
        "tmpfs": TMPFS,
        "mem_limit": plan.memory,
        "memswap_limit": plan.memory,
        "nano_cpus": round(plan.cpus * 1e9),
        "pids_limit": plan.pids,
        "init": True,
        "log_config": {"Type": "none"},
    }


def _bind(source: str, writable: bool, target: str | None = None) -> dict[str, Any]:
    """Return a mount for the engine, which does not create missing sources."""
    return {"Type": "bind", "Source": source, "Target": target or source, "ReadOnly": not writable}
