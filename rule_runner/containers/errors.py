"""EngineError: what there is to say about an engine that is not there, and one that refuses."""

import os
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from rule_runner.errors import ClientError

HOST: Final = "DOCKER_HOST"
# What to do about a refusal, by what the engine says.
_REMEDIES: Final = {
    "bind source path": (
        "The engine runs on another machine, or in one of its own: share the folder with it."
    ),
    "container-init binary": "Install Podman's init: on Debian 'apt-get install catatonit'.",
    "mounts denied": "Share the folder in the settings of the engine.",
    "network": "Give a network that the engine has: --network.",
    "executable file": "Give an image of rule-runner: --image.",
    "range of cpus": "Give fewer: --cpus.",
    "memory": "Give another: --memory.",
    "access denied": "Check the image's name, and log in to its registry with 'docker login'.",
    "manifest": "Check the image's name and tag.",
}


class EngineError(ClientError):
    """The engine is not there, or does not do what it is asked for."""


class EngineLostError(EngineError):
    """The engine went away while a container ran."""


def unreachable(err: BaseException) -> str:
    """Return why there is no engine, and the remedy."""
    given = os.environ.get(HOST, "")
    where = _shown(given)
    if urlsplit(given).scheme == "ssh":
        return (
            f"Engines at ssh:// addresses are not reached directly, got {where}. Forward the "
            "socket with 'ssh -nNTL /tmp/docker.sock:/var/run/docker.sock HOST', and set "
            f"{HOST}=unix:///tmp/docker.sock."
        )
    causes = {type(one) for one in _causes(err)}
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
        return f"The engine at {where} is too old: {said(err)} Install a newer one."
    return (
        f"No Docker engine can be reached at {where}: {cause(err).replace(given or ' ', where)} "
        f"{HOST} must be like unix:///var/run/docker.sock or tcp://host:2376."
    )


def cause(err: BaseException) -> str:
    """Return what the system said at the root of an error, or else what the error says."""
    texts = [one.strerror for one in _causes(err) if isinstance(one, OSError) and one.strerror]
    return f"{texts[-1]}." if texts else said(err)


def _causes(err: BaseException) -> Iterator[BaseException]:
    """Yield an error, what it came from, and the errors in its arguments."""
    todo, seen = [err], set[int]()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        around = (one.__cause__, one.__context__, *one.args)
        todo += [cause for cause in around if isinstance(cause, BaseException)]


def _shown(host: str) -> str:
    """Return an address of an engine without a user's name and password."""
    if not host:
        return "the default socket"
    before, at, rest = host.rpartition("@")
    return repr(f"{before.partition('://')[0]}://{rest}" if at else host)


def said(err: BaseException) -> str:
    """Return what an engine said as a sentence of one line."""
    text = getattr(err, "explanation", None) or str(err)
    return " ".join(str(text).split()).rstrip(".") + "."


def refused(what: str, err: BaseException) -> str:
    """Return what the engine refuses and why, and the remedy."""
    text = said(err)
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in text.lower()), "")
    return f"{what}: {text}{remedy and ' '}{remedy}"
