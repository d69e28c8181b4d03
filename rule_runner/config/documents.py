"""Reads JSON and YAML in bounded time and memory; duplicate keys are rejected."""

import json
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from rule_runner.errors import JobError

LIMIT: Final = 1 << 20  # bytes: a request of the service is far smaller
DEPTH: Final = 64
NODES: Final = 100_000  # an alias counts as all that it stands for

_STRING: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "<<"
# The tokens of valid JSON that tell which strings are keys, and of which object.
_TOKEN: Final = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}]')


class TextError(ValueError):
    """A text does not parse: the line, if known, and the problem."""


def shown(path: Path) -> str:
    """Return a path for messages."""
    return str(path) if str(path).isprintable() else repr(str(path))


def read_text(path: Path) -> str:
    """Return the text of a job file.

    Raises
    ------
    JobError
        If it does not exist, is not a regular file, cannot be read, is too large or not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            msg = f"Job file {shown(path)} is not a regular file."
            raise JobError(msg)
        with path.open("rb") as stream:
            data = stream.read(LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError) as err:
        msg = f"Job file {shown(path)} does not exist."
        raise JobError(msg) from err
    except (OSError, ValueError) as err:  # a NUL byte in the path
        msg = f"Job file {shown(path)} cannot be read: {getattr(err, 'strerror', err)}."
        raise JobError(msg) from err
    if len(data) > LIMIT:
        msg = f"Job file {shown(path)} is too large: the limit is {LIMIT:,} bytes."
        raise JobError(msg)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        byte = data[err.start]
        msg = f"Job file {shown(path)} is not UTF-8 text: byte {byte:#04x} in line {line}."
        raise JobError(msg) from err


def parse(text: str, suffix: str = "") -> Any:
    """Return what a text holds: JSON or YAML by the suffix of its file, else by its beginning.

    Raises
    ------
    TextError
        If it does not parse.
    """
    is_json_by_suffix = {".json": True, ".yaml": False, ".yml": False}
    is_json = is_json_by_suffix.get(suffix.lower(), text.lstrip().startswith(("{", "[")))
    return parse_json(text) if is_json else parse_yaml(text)


def parse_json(text: str) -> Any:
    r"""Return what a JSON text holds.

    >>> parse_json('{"a": [1.5, {"b": "c"}]}')
    {'a': [1.5, {'b': 'c'}]}

    Raises
    ------
    TextError
        If it does not parse, or a key stands twice in an object.
    """
    try:
        value = json.loads(text)
    except RecursionError as err:
        msg = "it is nested too deeply"
        raise TextError(msg) from err
    except json.JSONDecodeError as err:
        msg = f"line {err.lineno}: {err.msg}"
        raise TextError(msg) from err
    except ValueError as err:  # an integer with thousands of digits
        msg = f"{err}".partition(";")[0]
        raise TextError(msg) from err
    _check_keys(text)
    return value


def _check_keys(text: str) -> None:
    """Check that no object of a valid JSON text has a key twice."""
    objects: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token[2] is not None:
            key = json.loads(token[1])
            if key in objects[-1]:
                raise _twice(key, text.count("\n", 0, token.start()))
            objects[-1].add(key)


def _twice(key: str, line: int) -> TextError:
    return TextError(f"line {line + 1}: key {key[:100]!r} occurs twice")


def parse_yaml(text: str) -> Any:
    r"""Return what a YAML text holds; every scalar is its text as it is written.

    >>> parse_yaml("threshold: 1e-7\nverbose: yes\nlist: [1, ~]")
    {'threshold': '1e-7', 'verbose': 'yes', 'list': ['1', '~']}

    Raises
    ------
    TextError
        If it does not parse, has a key twice, tags, merged mappings or several documents, or
        stands for more than `NODES` values or `DEPTH` levels.
    """
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # C: if the library was there
    try:
        return _YamlBuilder().build(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        msg = f"{where}{err.problem or err.context}"
        raise TextError(msg) from err
    except yaml.YAMLError as err:  # characters that YAML does not take
        msg = f"{getattr(err, 'reason', None) or err}"
        raise TextError(msg) from err


@dataclass(slots=True)
class _Unfinished:
    """A mapping or list whose end has not come."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    key: str | None = None
    size: int = 1

    def add(self, value: Any, size: int, line: int) -> None:
        """Add a value, or the key of the next one."""
        self.size += size
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is None:
            self.key = self._checked(value, line)
        else:
            self.value[self.key] = value
            self.key = None

    def _checked(self, key: Any, line: int) -> str:
        if not isinstance(key, str):
            msg = f"line {line + 1}: a key must be text"
            raise TextError(msg)
        if key in self.value:
            raise _twice(key, line)
        if key == _MERGE:
            msg = f"line {line + 1}: merging mappings with '<<' is not supported"
            raise TextError(msg)
        return key


class _YamlBuilder:
    """Builds the value of one YAML document from the parser's events, without recursion."""

    def __init__(self) -> None:
        self._open: list[_Unfinished] = []
        self._anchored: dict[str, tuple[Any, int]] = {}
        self._nodes = 0
        self._documents = 0
        self._root: Any = None

    def build(self, events: Iterable[yaml.Event]) -> Any:
        """Return the value that the events stand for."""
        for event in events:
            self._take(event)
        return self._root

    def _take(self, event: yaml.Event) -> None:
        line = event.start_mark.line if event.start_mark is not None else 0
        match event:
            case yaml.ScalarEvent():
                self._check_tag(event, line)
                self._add(event.value, 1, line, event.anchor)
            case yaml.AliasEvent():
                if event.anchor not in self._anchored:
                    msg = f"line {line + 1}: alias '*{event.anchor}' is not defined before it"
                    raise TextError(msg)
                self._add(*self._anchored[event.anchor], line)
            case yaml.CollectionStartEvent():
                self._check_tag(event, line)
                self._begin(event, line)
            case yaml.CollectionEndEvent():
                ended = self._open.pop()
                self._nodes -= ended.size  # which `_add` counts once more
                self._add(ended.value, ended.size, line, ended.anchor)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    msg = f"line {line + 1}: a second document begins"
                    raise TextError(msg)
            case _:
                pass

    def _begin(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if len(self._open) >= DEPTH:
            msg = f"line {line + 1}: it is nested too deeply"
            raise TextError(msg)
        self._nodes += 1
        value: dict[str, Any] | list[Any] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
        self._open.append(_Unfinished(value, event.anchor))

    def _add(self, value: Any, size: int, line: int, anchor: str | None = None) -> None:
        """Add a finished value to what it stands in."""
        self._nodes += size
        if self._nodes > NODES:
            msg = f"line {line + 1}: it expands to more than {NODES:,} values"
            raise TextError(msg)
        if anchor is not None:
            self._anchored[anchor] = (value, size)
        if self._open:
            self._open[-1].add(value, size, line)
        else:
            self._root = value

    @staticmethod
    def _check_tag(event: yaml.ScalarEvent | yaml.CollectionStartEvent, line: int) -> None:
        if event.tag not in (None, _STRING):
            msg = f"line {line + 1}: tag {str(event.tag)[:100]!r} cannot be used"
            raise TextError(msg)
