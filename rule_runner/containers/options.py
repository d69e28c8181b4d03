"""Translates requests for containers: absolute paths, mounts, network and credentials."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from rule_core.sources.address import address_of
from rule_runner.config.defaults import ACTIONS
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.rule_options import parse_modes, parse_parameters
from rule_runner.errors import UsageError
from rule_runner.notify.actions.spec import split_id
from rule_runner.notify.sinks.spec import sink_kind

_OTHER_TRIALS: Final = re.compile(r"(?:.*\.)?other_trial(s|_\d+)?")
# Mounts at these paths would hide files of the image.
_OF_THE_IMAGE: Final = (
    *map(Path, ("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys")),
    *map(Path, ("/usr/bin", "/usr/lib", "/usr/sbin", "/usr/local/bin", "/usr/local/lib")),
    Path("/opt/rule-runner"),
)


@dataclass(frozen=True, slots=True, order=True)
class Mount:
    """A folder or file of this machine, mounted at the same path in the container."""

    folder: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """The request of a container, and what the container needs for it.

    Attributes
    ----------
    request
        The evaluation; its paths are absolute, and the same inside and outside.
    mounts
        The folders of these paths.
    network
        Whether it needs a network.
    cloud
        Whether it needs credentials of AWS.
    """

    request: EvaluationRequest
    mounts: tuple[Mount, ...]
    network: bool
    cloud: bool

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of ``rule-runner evaluate``."""
        return ("--request", self.request.to_json())


class _Paths:
    """Makes paths absolute and collects the folders behind them."""

    def __init__(self) -> None:
        self.writable: dict[Path, bool] = {}  # by folder

    def absolute(self, text: str, *, writable: bool = False) -> str:
        """Return the absolute path of a folder, and mount it; keep other addresses."""
        if _local(text) is None:
            return text
        self._mount(Path(located(text)), writable)
        return located(text)

    def trial(self, text: str) -> str:
        """Return ``PATH`` or ``KIND:PATH`` with an absolute path, and mount its folder.

        Of a file, its folder is mounted, since writers may replace the file by a new one.
        """
        address = address_of(text)
        if address.folder is None or _local(address.path) is None:
            return text
        self._mount(Path(located(str(address.folder))))
        return str(address._replace(path=located(address.path)))

    def rule(self, rule: RuleRequest) -> RuleRequest:
        """Return a rule with an absolute path, and mount its folder, from which rules import."""
        path = _local(rule.source or "")
        if path is None:
            return rule
        path = Path(os.path.realpath(path))
        self._mount(path.parent)
        return replace(rule, source=str(path))

    def parameter(self, text: str) -> str:
        """Return a parameter; the paths of other trials become absolute."""
        key, equals, value = text.partition("=")
        if not equals or not _OTHER_TRIALS.fullmatch(key):
            return text
        names = (name.strip() for name in re.split("[,;]", value))
        paths = (name if name in {"", "None"} else self.trial(name) for name in names)
        return f"{key}={','.join(paths)}"

    def sink(self, text: str) -> str:
        """Return a sink; if its target is a path, it becomes absolute, and writable."""
        if not sink_kind(text).is_path:
            return text
        name, _, path = text.partition(":")
        return f"{name}:{self.absolute(path, writable=True)}"

    def _mount(self, folder: Path, writable: bool = False) -> None:
        self.writable[folder] = writable or self.writable.get(folder, False)


def translate(request: EvaluationRequest, home: Path) -> ContainerRequest:
    """Return what a container needs for a request.

    Parameters
    ----------
    home
        A folder that is never mounted as a whole.

    Raises
    ------
    UsageError
        If an action would run a command, or a folder cannot be mounted.
    """
    if "command" in _action_kinds(request):
        raise UsageError(
            "An action 'command:' would run inside the container, without the programs of this "
            "machine. Use 'rule-runner evaluate' for actions that run commands."
        )
    paths = _Paths()
    request = replace(
        request,
        trial=request.trial and paths.trial(request.trial),
        profiler_trial=request.profiler_trial and paths.absolute(request.profiler_trial),
        other_trials=tuple(map(paths.trial, request.other_trials)),
        rules=tuple(map(paths.rule, request.rules)),
        parameters=tuple(map(paths.parameter, request.parameters)),
        sinks=tuple(map(paths.sink, request.sinks)),
        output=request.output and paths.absolute(request.output, writable=True),
    )
    for folder in paths.writable:
        _check_mountable(folder, home)
    cloud = _needs_cloud(request)
    return ContainerRequest(
        request=request,
        mounts=tuple(sorted(Mount(*mount) for mount in paths.writable.items())),
        network=cloud or bool(request.actions) or bool(_services(request)),
        cloud=cloud,
    )


def located(text: str) -> str:
    """Return the absolute path of a folder; keep other addresses.

    Links are resolved only if ``..`` may follow one: the last part of the path names the trial.
    """
    path = _local(text)
    if path is None:
        return text
    return str(Path(os.path.realpath(path)) if ".." in path.parts else path.absolute())


def _local(text: str) -> Path | None:
    """Return the path behind a plain path or a ``file://`` address; None for any other."""
    scheme, slashes, _ = text.strip().partition("://")
    if slashes and "/" not in scheme:
        if scheme.lower() != "file":
            return None
        text = unquote(urlsplit(text.strip()).path)
    return Path(text.strip()).expanduser() if text.strip() else None


def kind_of(text: str) -> str:
    """Return the kind of an action without the ID of a rule job.

    >>> kind_of("stop-training:"), kind_of("Command: ls")
    ('stop-training', 'command')
    """
    return re.split("[:,]", text, maxsplit=1)[0].strip().lower()


def _services(request: EvaluationRequest) -> set[str]:
    """Return the kinds of services that sinks send events to."""
    return {*filter(None, (sink_kind(sink).service for sink in request.sinks))}


def _action_kinds(request: EvaluationRequest) -> set[str]:
    return {kind_of(split_id(text)[1]) for text in request.actions}


def _needs_cloud(request: EvaluationRequest) -> bool:
    """Return whether a request names anything at AWS."""
    places = [request.trial, request.profiler_trial, request.output, *request.other_trials]
    places += [rule.source for rule in request.rules]
    return (
        any(address_of(place or "").is_in_s3 for place in places)
        or any(map(_names_cloud, request.parameters))
        or "aws" in _services(request)
        or not _action_kinds(request) <= {"webhook"}
    )


def _names_cloud(parameter: str) -> bool:
    key, _, value = parameter.partition("=")
    return "s3://" in value or bool(value and key.rpartition(".")[2] == ACTIONS)


def _check_mountable(folder: Path, home: Path) -> None:
    """Reject folders that hide folders of the image, and those that contain a home folder."""
    if any(path.is_relative_to(folder) or folder.is_relative_to(path) for path in _OF_THE_IMAGE):
        raise UsageError(
            f"Folder {str(folder)!r} cannot be mounted into a container: the image has its own "
            "there. Move the files to a folder of their own."
        )
    if home.is_relative_to(folder):
        raise UsageError(
            f"Folder {str(folder)!r} would expose a whole home folder to the rules. "
            "Move the files to a folder of their own."
        )


def split(
    request: EvaluationRequest, ids: Sequence[str], output: str
) -> dict[str, EvaluationRequest]:
    """Return the request of the container of each rule, by the ID of its rule job.

    Parameters
    ----------
    ids
        Names of the rule jobs, in the order of the rules.
    output
        Output folder of the whole evaluation.
    """
    parameters = parse_parameters(request.parameters, ids)
    modes = parse_modes(request.modes, ids)
    return {
        rule_id: replace(
            request,
            rules=(replace(rule, id=rule_id),),
            parameters=tuple(
                f"{rule_id}.{name}={text}" for name, text in parameters[rule_id].items()
            ),
            modes=(f"{rule_id}={modes[rule_id]}",),
            actions=tuple(text for text in request.actions if split_id(text)[0] in {None, rule_id}),
            output=output if len(ids) == 1 else f"{output.rstrip('/')}/{rule_id}",
        )
        for rule, rule_id in zip(request.rules, ids, strict=True)
    }
