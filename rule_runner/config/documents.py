"""Reads JSON and YAML in bounded time and memory, strictly and with positions."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from rule_runner.errors import JobError
from rule_runner.text_files import decoded, read_regular_file, shown

LIMIT: Final = 1 << 20  # bytes: a request of the service is far smaller
DEPTH: Final = 64
NODES: Final = 100_000  # an alias counts as all that it stands for

_STRING: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "<<"
# The tokens of valid JSON that tell which strings are keys, and of which object.
_TOKEN: Final = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}]')


KeyPath = tuple[str | int, ...]  # the keys and indices that lead to a value


class TextError(ValueError):
    """A text does not parse: the problem, and its line or 0; the first line is 1."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line


class TextSpan(NamedTuple):
    """Where a value or key stands in a text.

    Attributes
    ----------
    line
        The first line is 1.
    column
        The first column is 0.
    start, end
        Indices of its first character, and of the one after its last; comments do not count.
    is_flow
        Whether it is a collection in brackets.
    is_alias
        Whether it is the name of a value that stands elsewhere.
    """

    line: int
    column: int
    start: int
    end: int
    is_flow: bool = False
    is_alias: bool = False


@dataclass(slots=True)
class Document:
    """What a YAML text holds; every scalar is its text as it is written.

    Attributes
    ----------
    values, keys
        Where each value and each key stands. Inside an alias, nothing has a position.
    """

    value: Any = None
    values: dict[KeyPath, TextSpan] = field(default_factory=dict)
    keys: dict[KeyPath, TextSpan] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int:
        """Return the line of a key or list item, or of the nearest one around it; 0 if none."""
        for length in range(len(path), 0, -1):
            span = self.keys.get(path[:length]) or self.values.get(path[:length])
            if span is not None:
                return span.line
        return 0


def read_text(path: Path, noun: str = "Job file") -> str:
    """Return the text of a file, which messages call a `noun`.

    Raises
    ------
    JobError
        If it does not exist, is not a regular file, cannot be read, is too large or not UTF-8.
    """
    subject = f"{noun} {shown(path)}"
    return decoded(read_regular_file(path, subject, JobError, LIMIT), subject, JobError)


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
        raise TextError("it is nested too deeply") from err
    except json.JSONDecodeError as err:
        raise TextError(err.msg, err.lineno) from err
    except ValueError as err:  # an integer with thousands of digits
        raise TextError(f"{err}".partition(";")[0]) from err
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
                raise _twice(key, text.count("\n", 0, token.start()) + 1)
            objects[-1].add(key)


def _twice(key: str, line: int) -> TextError:
    return TextError(f"key {key[:100]!r} occurs twice", line)


def parse_yaml(text: str) -> Any:
    r"""Return what a YAML text holds; every scalar is its text as it is written.

    >>> parse_yaml("threshold: 1e-7\nverbose: yes\nlist: [1, ~]")
    {'threshold': '1e-7', 'verbose': 'yes', 'list': ['1', '~']}

    Raises
    ------
    TextError
        As `yaml_document`.
    """
    return yaml_document(text).value


def yaml_document(text: str) -> Document:
    """Return what a YAML text holds, with positions.

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
        # The end of the text is on a further line for the library.
        lines = len(text.rstrip().splitlines())
        line = 0 if mark is None else max(1, min(mark.line + 1, lines))
        raise TextError(str(err.problem or err.context), line) from err
    except yaml.YAMLError as err:  # characters that YAML does not take
        raise TextError(str(getattr(err, "reason", None) or err)) from err


@dataclass(slots=True)
class _Unfinished:
    """A mapping or list whose end has not come."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    path: KeyPath
    span: TextSpan  # ends with the last value so far
    key: str | None = None
    size: int = 1

    @property
    def next_path(self) -> KeyPath:
        """The path of the next value."""
        return (*self.path, len(self.value) if isinstance(self.value, list) else self.key or "")

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
            raise TextError("a key must be text", line)
        if key in self.value:
            raise _twice(key, line)
        if key == _MERGE:
            raise TextError("merging mappings with '<<' is not supported", line)
        return key


class _YamlBuilder:
    """Builds one YAML document from the parser's events, without recursion."""

    def __init__(self) -> None:
        self._open: list[_Unfinished] = []
        self._anchored: dict[str, tuple[Any, int]] = {}
        self._nodes = 0
        self._documents = 0
        self._document = Document()

    def build(self, events: Iterable[yaml.Event]) -> Document:
        """Return the document that the events stand for."""
        for event in events:
            self._take(event)
        return self._document

    def _take(self, event: yaml.Event) -> None:
        span = _span(event)
        match event:
            case yaml.ScalarEvent():
                _check_tag(event, span.line)
                self._add(event.value, 1, span, event.anchor)
            case yaml.AliasEvent():
                if event.anchor not in self._anchored:
                    raise TextError(f"alias '*{event.anchor}' is not defined before it", span.line)
                self._add(*self._anchored[event.anchor], span)
            case yaml.CollectionStartEvent():
                _check_tag(event, span.line)
                self._begin(event, span)
            case yaml.CollectionEndEvent():
                ended = self._open.pop()
                self._nodes -= ended.size  # which `_add` counts once more
                end = span.end if ended.span.is_flow or not ended.value else ended.span.end
                self._add(ended.value, ended.size, ended.span._replace(end=end), ended.anchor)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise TextError("a second document begins", span.line)
            case _:
                pass

    def _begin(self, event: yaml.CollectionStartEvent, span: TextSpan) -> None:
        if len(self._open) >= DEPTH:
            raise TextError("it is nested too deeply", span.line)
        self._nodes += 1
        value: dict[str, Any] | list[Any] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
        path = self._open[-1].next_path if self._open else ()
        self._open.append(_Unfinished(value, event.anchor, path, span))

    def _add(self, value: Any, size: int, span: TextSpan, anchor: str | None = None) -> None:
        """Add a finished value to what it stands in."""
        self._nodes += size
        if self._nodes > NODES:
            raise TextError(f"it expands to more than {NODES:,} values", span.line)
        if anchor is not None:
            self._anchored[anchor] = (value, size)
        if not self._open:
            self._document.value = value
            return
        parent = self._open[-1]
        if isinstance(parent.value, dict) and parent.key is None:
            parent.add(value, size, span.line)
            self._document.keys[parent.next_path] = span
        else:
            self._document.values[parent.next_path] = span
            parent.add(value, size, span.line)
            parent.span = parent.span._replace(end=span.end)


def _span(event: yaml.Event) -> TextSpan:
    """Return where an event stands; the beginning of the text if the parser does not say."""
    start, end = event.start_mark, event.end_mark
    if start is None or end is None:
        return TextSpan(1, 0, 0, 0)
    is_flow = isinstance(event, yaml.CollectionStartEvent) and bool(event.flow_style)
    is_alias = isinstance(event, yaml.AliasEvent)
    return TextSpan(start.line + 1, start.column, start.index, end.index, is_flow, is_alias)


def _check_tag(event: yaml.ScalarEvent | yaml.CollectionStartEvent, line: int) -> None:
    if event.tag not in (None, _STRING):
        raise TextError(f"tag {str(event.tag)[:100]!r} cannot be used", line)
