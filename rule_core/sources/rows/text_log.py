"""Reader of text logs: lines that match a pattern become numbers of a step."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.model.patterns import TIME_LIMIT_S, Pattern, compiled
from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.options import DEFAULT, LogPattern, SourceOptions
from rule_core.sources.rows.json_lines import json_head
from rule_core.sources.rows.line_source import LineFormat, LineSource
from rule_core.sources.rows.row_fields import brief, field_role, to_number
from rule_core.sources.rows.text_log_patterns import PATTERNS, LinePattern
from rule_core.storage.base import TrialStore

MAX_SEARCHED: Final = 1 << 16  # characters of a line
_NAMES: Final = re.compile(
    r"(?i).*\.(log|out|err)|(.*[-_.])?(log|train|stdout|stderr|output)[^/]*\.txt|log|std(out|err)"
)
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours and movements of terminals


class LineNumbers(NamedTuple):
    """The numbers of a line."""

    step: str
    values: tuple[tuple[str, str], ...]


class _Matcher(NamedTuple):
    """A pattern that is ready for use."""

    line: LinePattern
    search: Pattern
    pairs: "Pattern | None"

    def read(self, text: str) -> LineNumbers | None:
        """Return the numbers of a line, whose end is cut off; None if it does not match.

        Raises
        ------
        TimeoutError
            If the search takes too long.
        """
        text = text[:MAX_SEARCHED]
        if "\x1b" in text:
            text = _ESCAPES.sub("", text)
        if not all(mark in text for mark in self.line.marks):
            return None
        match = self.search.search(text, timeout=TIME_LIMIT_S)
        if match is None:
            return None
        values = [
            (name, value)
            for name, value in match.groupdict().items()
            if name != "step" and value is not None
        ]
        if self.pairs is not None:
            pairs = self.pairs.finditer(text, match.end(), timeout=TIME_LIMIT_S)
            values += [
                (pair["name"], pair["value"]) for pair in pairs if not is_step_name(pair["name"])
            ]
        prefix = self.line.prefix
        return LineNumbers(
            match["step"] or "", tuple((prefix + name, text) for name, text in values)
        )


class TextLogSource(LineSource):
    """Reads one text log. See ``docs/sources/text-log.md`` for the patterns."""

    def __init__(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> None:
        super().__init__(store, recognized, options)
        self._matchers = [*matchers(options.log_patterns)]

    def restart(self) -> None:
        """Forget the line before; see `LineSource`."""
        super().restart()
        self._before: LineNumbers | None = None

    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass the numbers of matching lines on; see `LineSource`."""
        for number, line in enumerate(lines, first):
            for text in line.split("\r"):  # progress bars
                item = self._read(text, number, record)
                if item is not None and self.delivered.is_new(item):
                    self._add(item, number, record)

    def _read(self, text: str, number: int, record: SourceRecord) -> LineNumbers | None:
        for matcher in self._matchers:
            try:
                item = matcher.read(text)
            except TimeoutError:
                self._matchers = [other for other in self._matchers if other is not matcher]
                self.report_once(
                    record,
                    f"time {matcher.line.name}",
                    f"line {number}",
                    f"Pattern {matcher.line.name!r} takes more than {TIME_LIMIT_S} s, and is not "
                    "used for the rest of the file. Write it without nested repetitions.",
                )
            else:
                if item is not None:
                    return item
        return None

    def _add(self, item: LineNumbers, number: int, record: SourceRecord) -> None:
        if item == self._before:  # printed by several processes
            return
        self._before = item
        step = self.step_of({0: item.step}, number, record)
        if step is None:
            return
        values: dict[str, float] = {}
        for name, text in item.values:
            value = to_number(text)
            if value is None:
                problem = f"{name!r} is not a number: {brief(text)}. Such values are skipped."
                self.report_once(record, f"value {name}", f"line {number}", problem)
            else:
                values.setdefault(name, value)
        record.row(step, values)


def _reason(folder: SourceFolder, name: str) -> str:
    if not _NAMES.fullmatch(name):
        return ""
    text = folder.head_text(name)
    pattern = "" if json_head(text) else _pattern_in(text)
    return f"its lines match the pattern {pattern!r}" if pattern else ""


@lru_cache(maxsize=64)
def matchers(patterns: tuple[LogPattern, ...] = DEFAULT.log_patterns) -> tuple[_Matcher, ...]:
    """Return the patterns of a user and, after them, the built-in ones.

    Raises
    ------
    SMDebugValueError
        If one of them is not a regular expression, or has no group ``step``.
    """
    users = [LinePattern(pattern.name, pattern.pattern) for pattern in patterns]
    return tuple(_matcher(line) for line in (*users, *PATTERNS))


def _matcher(line: LinePattern) -> _Matcher:
    try:
        search = compiled(line.pattern)
    except re.error as err:
        msg = f"Log pattern {line.name!r} is not a regular expression: {err}."
        raise SMDebugValueError(msg) from err
    groups = search.groupindex.keys()
    if "step" not in groups:
        msg = f"Log pattern {line.name!r} needs a group of the step, such as (?P<step>[0-9]+)."
        raise SMDebugValueError(msg)
    if len(groups) == 1 and not line.pairs:
        msg = f"Log pattern {line.name!r} needs a group of a number, such as (?P<loss>[0-9.]+)."
        raise SMDebugValueError(msg)
    return _Matcher(line, search, compiled(line.pairs) if line.pairs else None)


def is_step_name(name: str) -> bool:
    """Return whether a name stands for a step, such as ``epoch`` or ``train_num_updates``."""
    return isinstance(field_role(name), int) or name.endswith("num_updates")


def _pattern_in(text: str) -> str:
    """Return the name of the first built-in pattern that a line of a text matches."""
    for line in re.split(r"[\r\n]+", text):
        for matcher in matchers():
            with suppress(TimeoutError):
                if matcher.read(line):
                    return matcher.line.name
    return ""


FORMAT: Final = LineFormat("text-log", _reason, TextLogSource)
