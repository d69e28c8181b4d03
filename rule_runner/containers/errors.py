"""Errors of Docker engines, with remedies."""

import os
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from rule_runner.errors import ClientError

HOST: Final = "DOCKER_HOST"
# Remedies by texts in the messages of the engine.
_REMEDIES: Final = {
    "bind source path": (
        "The engine runs on another machine, or in a virtual one: share the folder with it."
    ),
    "container-init binary": "Install Podman's init: on Debian 'apt-get install catatonit'.",
    "mounts denied": "Share the folder in the settings of the engine.",
    "network": "Choose a network that the engine has: --network.",
    "executable file": "Use an image of rule-runner: --image.",
    "range of cpus": "Use fewer: --cpus.",
    "memory": "Choose another size: --memory.",
    "access denied": "Check the image's name, and log in to its registry with 'docker login'.",
    "manifest": "Check the image's name and tag.",
}


class EngineError(ClientError):
    """The engine cannot be reached, or rejects a request."""


class EngineLostError(EngineError):
    """The connection to the engine was lost while a container ran."""


def unreachable(err: BaseException) -> str:
    """Return why the engine cannot be reached, and the remedy."""
    host = os.environ.get(HOST, "")
    where = _without_user(host)
    if urlsplit(host).scheme == "ssh":
        return (
            f"Engines at ssh:// addresses cannot be used directly, got {where}. Forward the "
            "socket with 'ssh -nNTL /tmp/docker.sock:/var/run/docker.sock HOST', and set "
            f"{HOST}=unix:///tmp/docker.sock."
        )
    causes = {type(error) for error in _causes(err)}
    if PermissionError in causes:
        return (
            f"This user may not use the Docker engine at {where}. Join its group with "
            "'sudo usermod -aG docker $USER' and log in again, or use a rootless engine."
        )
    if FileNotFoundError in causes or ConnectionRefusedError in causes:
        return (
            f"No Docker engine listens at {where}. Start it, with 'sudo systemctl start docker' "
            f"or 'systemctl --user start podman.socket', or set {HOST} to its socket."
        )
    if "API version" in str(err) and "no longer supported" in str(err):
        return f"The engine at {where} is too old: {engine_message(err)} Install a newer one."
    return (
        f"No Docker engine can be reached at {where}: {cause(err).replace(host or ' ', where)} "
        f"{HOST} must be like unix:///var/run/docker.sock or tcp://host:2376."
    )


def cause(err: BaseException) -> str:
    """Return the message of the system error that caused `err`, or the message of `err`."""
    errors = [error for error in _causes(err) if isinstance(error, OSError)]
    texts = [error.strerror for error in errors if error.strerror]
    return f"{texts[-1]}." if texts else engine_message(err)


def _causes(err: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes, and the errors in its arguments."""
    todo, visited = [err], set[int]()
    while todo:
        error = todo.pop()
        if id(error) in visited:
            continue
        visited.add(id(error))
        yield error
        related = (error.__cause__, error.__context__, *error.args)
        todo += [cause for cause in related if isinstance(cause, BaseException)]


def _without_user(host: str) -> str:
    """Return the address of an engine without user name and password."""
    if not host:
        return "the default socket"
    before, separator, rest = host.rpartition("@")
    return repr(f"{before.partition('://')[0]}://{rest}" if separator else host)


def engine_message(err: BaseException) -> str:
    """Return the message of an engine as one line."""
    text = getattr(err, "explanation", None) or str(err)
    return " ".join(str(text).split()).rstrip(".") + "."


def refused(problem: str, err: BaseException) -> str:
    """Return the problem, the message of the engine, and the remedy."""
    text = engine_message(err)
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in text.lower()), "")
    return f"{problem}: {text}{remedy and ' '}{remedy}"
