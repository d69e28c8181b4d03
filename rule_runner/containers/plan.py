"""ContainerPlan: one container as it is asked of an engine, hardened; decided without an engine."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from rule_core.storage.uri import is_s3
from rule_runner.config.model import STOP_FILE, WINDOW
from rule_runner.containers.options import ContainerRequest, Mount
from rule_runner.errors import UsageError
from rule_runner.notify.webhook import SECRET

LABEL: Final = "rule-runner.output"
HOME: Final = "/tmp"  # noqa: S108 - a file system of the container's own
TMPFS: Final = {HOME: "rw,nosuid,nodev,noexec,mode=1777,size=512m"}
# Passed by name to what talks to AWS; no other variable of AWS is.
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
ENDPOINT: Final = "AWS_ENDPOINT_URL"  # and what begins so: the endpoints of single services
PROFILE: Final = "AWS_PROFILE"
AWS_FOLDER: Final = "/aws"
ROOT: Final = "0:0"

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmg]?)b?", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SMALLEST: Final = 64 * 2**20  # Python and numpy do not start in less


@dataclass(frozen=True, slots=True)
class ContainerLimits:
    """What a container may use.

    Attributes
    ----------
    memory
        Bytes; there is no swap beside it, and what lies in /tmp counts.
    cpus
        Processors' worth of time.
    pids
        Processes and threads.
    """

    memory: int
    cpus: float
    pids: int


@dataclass(frozen=True, slots=True)
class Account:
    """Who a container runs as: ``uid:gid``, and how the engine is to read that."""

    user: str
    userns: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """One container.

    Attributes
    ----------
    arguments
        Of the image's command.
    mounts
        Folders that it has at their own paths.
    environment
        Variables with their values, some secret.
    network
        Name of the engine's network, or ``none``.
    output
        Output folder, by which the container can be found.
    """

    image: str
    arguments: tuple[str, ...]
    mounts: tuple[Mount, ...]
    environment: Mapping[str, str]
    network: str
    limits: ContainerLimits
    account: Account
    output: str
    aws_folder: str | None = None

    def __repr__(self) -> str:
        """Leave out what may be secret."""
        return f"ContainerPlan(image={self.image!r}, output={self.output!r})"


def parse_size(text: str) -> int:
    """Return bytes.

    >>> parse_size("4g"), parse_size("1.5G"), parse_size("100mb")
    (4294967296, 1610612736, 104857600)

    Raises
    ------
    UsageError
        If it is no size, or less than an evaluation needs.
    """
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if size < _SMALLEST:
        msg = f"Memory must be a size of at least 64m, such as 4g or 512m, got {text!r}."
        raise UsageError(msg)
    return size


def environment(
    translated: ContainerRequest, environ: Mapping[str, str], *, profile: bool
) -> dict[str, str]:
    """Return the variables that a container gets of this process's: only those it needs.

    Parameters
    ----------
    environ
        The process's environment.
    profile
        Whether the container gets the folder of AWS's configuration.
    """
    names = [WINDOW, STOP_FILE]
    if translated.cloud:
        names += [*CLOUD_VARIABLES, *(name for name in environ if name.startswith(ENDPOINT))]
        names += [PROFILE] if profile else []
    if translated.network:
        names.append(SECRET)
    return {name: environ[name] for name in names if environ.get(name)}


def check_endpoints(urls: Iterable[str], network: str) -> None:
    """Refuse an endpoint on this machine if the container has a network of its own.

    Raises
    ------
    UsageError
        If the container could not reach it.
    """
    hosts = {urlsplit(url).hostname for url in urls}
    if network != "host" and any(is_loopback(host or "") for host in hosts):
        msg = (
            "The endpoint of AWS is an address of this machine alone, which a container on network "
            f"{network!r} does not reach. Use --network host."
        )
        raise UsageError(msg)


def is_loopback(host: str) -> bool:
    """Say whether the name of a host is that of this machine for itself."""
    return host in {"localhost", "::1"} or host.startswith("127.")


def sdk_arguments(plan: ContainerPlan) -> dict[str, Any]:
    """Return what the Docker SDK is to make a container of.

    The engine's own filter of system calls stays. Output is read while it is written; the engine
    keeps none of it.
    """
    own = {"HOME": HOME, "OMP_NUM_THREADS": str(max(1, math.floor(plan.limits.cpus)))}
    mounts = [_bind(str(one.folder), one.writable) for one in plan.mounts]
    if plan.aws_folder is not None:
        mounts.append(_bind(plan.aws_folder, False, AWS_FOLDER))
        own["AWS_CONFIG_FILE"] = f"{AWS_FOLDER}/config"
        own["AWS_SHARED_CREDENTIALS_FILE"] = f"{AWS_FOLDER}/credentials"
    # In a rootless engine root is the caller, which the image's entry point would drop.
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
        "mem_limit": plan.limits.memory,
        "memswap_limit": plan.limits.memory,
        "nano_cpus": round(plan.limits.cpus * 1e9),
        "pids_limit": plan.limits.pids,
        "init": True,
        "log_config": {"Type": "none"},
    }


def _bind(source: str, writable: bool, target: str | None = None) -> dict[str, Any]:
    """Return a mount of the engine's; a source that is not there is an error and is not made."""
    return {
        "Type": "bind",
        "Source": source,
        "Target": target or source,
        "ReadOnly": not writable,
    }
