"""The options of evaluate as a container needs them: absolute paths, mounts, and what to reach."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from rule_runner.actions.options import split_id
from rule_runner.config import ACTIONS
from rule_runner.errors import UsageError
from rule_runner.rule_requests import RuleRequest, parse_modes, parse_parameters, parse_requests
from rule_runner.sinks.parsing import ON_STDOUT
from smdebug.storage.uri import is_s3

# A long option and its value as the user wrote it; None is a flag.
Option = tuple[str, str | None]

OUTPUT: Final = "--output"
_TRIALS: Final = ("--trial", "--other-trial", "--profiler-trial")
_OTHER_TRIALS: Final = re.compile(r"(?:.*\.)?other_trial(s|_\d+)?")
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*=")
_LOCAL_SINKS: Final = ON_STDOUT | {"file"}
# Passed on by name, in the environment.
_BY_NAME: Final = {"--endpoint-url"}
# Options of a rule job: each container gets its own if each rule has one.
_OF_RULES: Final = {"--rule", "--source", "--param", "--mode", "--action", OUTPUT}
# Where a mount would hide what the image itself runs from.
_OF_THE_IMAGE: Final = (
    *map(Path, ("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys")),
    *map(Path, ("/usr/bin", "/usr/lib", "/usr/sbin", "/usr/local/bin", "/usr/local/lib")),
    Path("/opt/rule-runner"),
)


@dataclass(frozen=True, slots=True, order=True)
class Mount:
    """A folder, or a file, of this machine that the container has at the same path."""

    folder: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Translated:
    """What a container is to be told and given.

    Attributes
    ----------
    arguments
        Of ``rule-runner evaluate``; paths are absolute and the same inside and outside.
    mounts
        The folders behind them.
    network
        Whether anything is to be reached.
    cloud
        Whether that takes credentials of AWS.
    """

    arguments: tuple[str, ...]
    mounts: tuple[Mount, ...]
    network: bool
    cloud: bool


def trial_of(options: Iterable[Option]) -> str:
    """Return the trial that is judged: of tensors, else of profiler data.

    Raises
    ------
    UsageError
        If none is given.
    """
    given = dict(options)
    for name in ("--trial", "--profiler-trial"):
        if (found := given.get(name)) is not None:
            return found
    msg = "No trial was given: give --trial PATH, or --profiler-trial PATH for profiler rules."
    raise UsageError(msg)


def translate(options: Iterable[Option], home: Path) -> Translated:
    """Return `options` of evaluate for a container.

    Only options that hold paths are changed; others, of whatever name, are passed on. An endpoint
    is not: it goes by the environment.

    Parameters
    ----------
    options
        In any order.
    home
        A folder that is never mounted as a whole.

    Raises
    ------
    UsageError
        If an action would run a command, or a folder cannot be mounted.
    """
    pairs = [_translated(*option) for option in options if option[0] not in _BY_NAME]
    folders: dict[Path, bool] = {}
    for mount in (mount for _, mounts in pairs for mount in mounts):
        _check_mountable(mount.folder, home)
        folders[mount.folder] = mount.writable or folders.get(mount.folder, False)
    found = [option for option, _ in pairs]
    cloud = any(_needs_cloud(*option) for option in found)
    return Translated(
        arguments=tuple(name if value is None else f"{name}={value}" for name, value in found),
        mounts=tuple(sorted(Mount(*one) for one in folders.items())),
        network=cloud or any(_needs_network(*option) for option in found),
        cloud=cloud,
    )


def _translated(name: str, value: str | None) -> tuple[Option, list[Mount]]:
    """Return an option as the container needs it, and what it names of this machine."""
    if value is None or name not in _TRANSLATIONS:
        return (name, value), []
    text, mounts = _TRANSLATIONS[name](value)
    return (name, text), mounts


def _writable(text: str) -> tuple[str, list[Mount]]:
    path, mounts = located(text)
    return path, [Mount(one.folder, True) for one in mounts]


def _sink(text: str) -> tuple[str, list[Mount]]:
    if not text.startswith("file:"):
        return text, []
    path, mounts = _writable(text.removeprefix("file:"))
    return f"file:{path}", mounts


def _allowed_action(text: str) -> tuple[str, list[Mount]]:
    if kind_of("--action", text) == "command":
        msg = (
            "An action 'command:' would run inside the container, where nothing of this machine "
            "is. Use 'rule-runner evaluate' for actions that run commands."
        )
        raise UsageError(msg)
    return text, []


def located(text: str) -> tuple[str, list[Mount]]:
    """Return the path of a folder from anywhere, and the folder; other addresses have none.

    Links stay, because a trial is called what its path says, unless ``..`` follows one.
    """
    path = _local(text)
    if path is None:
        return text, []
    path = Path(os.path.realpath(path)) if ".." in path.parts else path.absolute()
    return str(path), [Mount(path)]


def _source(value: str) -> tuple[str, list[Mount]]:
    """Return a rule file, and its folder: rules import what is beside them."""
    found = _ID.match(value)
    prefix, text = (found[0], value[found.end() :]) if found else ("", value)
    path = _local(text)
    if path is None:
        return value, []
    path = Path(os.path.realpath(path))
    return f"{prefix}{path}", [Mount(path.parent)]


def _local(text: str) -> Path | None:
    """Return the path behind a plain path or a ``file://`` address; None for any other."""
    scheme, slashes, _ = text.strip().partition("://")
    if slashes and "/" not in scheme:
        if scheme.lower() != "file":
            return None
        text = unquote(urlsplit(text.strip()).path)
    return Path(text.strip()).expanduser() if text.strip() else None


def _parameter(value: str) -> tuple[str, list[Mount]]:
    """Return a parameter; one that names other trials holds paths."""
    key, equals, text = value.partition("=")
    if not equals or not _OTHER_TRIALS.fullmatch(key):
        return value, []
    named = (one.strip() for one in re.split("[,;]", text))
    pairs = [located(one) if one not in {"", "None"} else (one, []) for one in named]
    mounts = [mount for _, found in pairs for mount in found]
    return f"{key}={','.join(path for path, _ in pairs)}", mounts


_TRANSLATIONS: Final[Mapping[str, Callable[[str], tuple[str, list[Mount]]]]] = {
    **dict.fromkeys(_TRIALS, located),
    OUTPUT: _writable,
    "--source": _source,
    "--param": _parameter,
    "--sink": _sink,
    "--action": _allowed_action,
}


def kind_of(name: str, value: str) -> str:
    """Return what kind of sink or action a text asks for.

    >>> kind_of("--sink", "sns:arn:aws:sns"), kind_of("--sink", "eventbridge,region=eu-west-1")
    ('sns', 'eventbridge')
    >>> kind_of("--action", "first=email:x@example.com")
    'email'
    """
    if name == "--action":
        _, value = split_id(value)
    return re.split("[:,]", value, maxsplit=1)[0].strip().lower()


def _needs_cloud(name: str, value: str | None) -> bool:
    """Say whether an option is about something at AWS."""
    text = value or ""
    if name in {*_TRIALS, OUTPUT}:
        return is_s3(text)
    if name in {"--source", "--param"}:
        key, _, rest = text.partition("=")
        return is_s3(text) or "s3://" in rest or bool(rest and key.rpartition(".")[2] == ACTIONS)
    kind = kind_of(name, text)
    if name == "--sink":
        return kind not in _LOCAL_SINKS | {"webhook"}
    return name == "--action" and kind != "webhook"


def _needs_network(name: str, value: str | None) -> bool:
    """Say whether an option is about something elsewhere."""
    if name == "--sink":
        return kind_of(name, value or "") not in _LOCAL_SINKS
    return name == "--action" or _needs_cloud(name, value)


def _check_mountable(folder: Path, home: Path) -> None:
    """Refuse folders that hide the image's own, and those that show more than was meant."""
    if any(one.is_relative_to(folder) or folder.is_relative_to(one) for one in _OF_THE_IMAGE):
        msg = (
            f"Folder {str(folder)!r} cannot be mounted into a container: the image has its own "
            "there. Move what is needed to a folder of its own."
        )
        raise UsageError(msg)
    if home.is_relative_to(folder):
        msg = (
            f"Folder {str(folder)!r} would show a whole home folder to the rules. "
            "Move what is needed to a folder of its own."
        )
        raise UsageError(msg)


def split(
    options: Sequence[Option], rules: Sequence[tuple[RuleRequest, str]]
) -> dict[str, list[Option]]:
    """Return the options of each rule's own container, by the ID of its rule job.

    Parameters
    ----------
    options
        Of one evaluation of all rules, with ``--output``.
    rules
        Each rule that the options ask for, and what its rule job is called.
    """
    ids = [one for _, one in rules]
    for one in ids:
        if ids.count(one) > 1:
            msg = f"Two rule jobs are called {one!r}. Give IDs: --rule first={one}."
            raise UsageError(msg)
    parameters = parse_parameters(values(options, "--param"), ids)
    modes = parse_modes(values(options, "--mode"), ids)
    actions = values(options, "--action")
    (output,) = values(options, OUTPUT)
    shared = [option for option in options if option[0] not in _OF_RULES]
    return {
        one: [
            *shared,
            *([("--rule", f"{one}={request.name}")] if request.name else []),
            *([("--source", f"{one}={request.source}")] if request.source else []),
            *(("--param", f"{one}.{name}={text}") for name, text in parameters[one].items()),
            ("--mode", f"{one}={modes[one]}"),
            *(("--action", text) for text in actions if split_id(text)[0] in {None, one}),
            (OUTPUT, output if len(ids) == 1 else f"{output.rstrip('/')}/{one}"),
        ]
        for request, one in rules
    }


def requests_of(options: Sequence[Option]) -> list[RuleRequest]:
    """Return the rules that the options ask for."""
    return parse_requests(values(options, "--rule"), values(options, "--source"))


def values(options: Iterable[Option], name: str) -> list[str]:
    """Return the values that an option was given."""
    return [value for one, value in options if one == name and value is not None]
