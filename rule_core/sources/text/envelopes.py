"""Envelopes: what collectors of logs and launchers write before, or around, each line."""

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, pairwise
from typing import Any, Final

import msgspec

from rule_core.sources.names import NAMES
from rule_core.sources.rows.row_fields import is_counter

HEAD_LINES: Final = 32  # that decide which envelopes there are
HEAD_CHARACTERS: Final = 1 << 20  # in which these lines are looked for
MAX_FORMS: Final = 10_000  # of the lines of ranks, remembered
MAX_UNFINISHED: Final = 8 << 20  # characters of a line in several pieces
# Fields of JSON objects that are lines of logs, and what tells such objects from rows.
_TEXTS: Final = ("MESSAGE", "message", "msg", "text", "event", "log", "line")
_TIME: Final = re.compile(r'(?i)"[^"\\]{0,40}(?:time|date|\bts)[^"\\]{0,40}":')
_NUMBERS: Final = re.compile(r'"([^"\\]{1,100})":\s*"?[-\dNI]')
_METRIC: Final = re.compile(r"[A-Za-z][\"']?\s?[:=]\s*-?\d+\.\d")
_OBJECT: Final = re.compile(r"\{")
_TABLE: Final = re.compile(r'"?@?(?:timestamp|time)"?,"?@?message"?\s*\Z')
_FIRST_CELL: Final = re.compile(r'(?:[^,"]*|"[^"]*"),("?)')
_NO_COLLECTOR: Final = re.compile("")
# What each collector writes around a line, or before it (group 1: the line goes on in the next).
_COLLECTORS: Final = (
    _OBJECT,
    _TABLE,
    re.compile(r"\d{4}-\d\d-\d\dT\S+ std(?:out|err) (?:F|(P)) "),  # Kubernetes
    re.compile(  # journald or syslog
        r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) "
        r"\S+ [^\s:\[\]]+\[\d+\]: "
    ),
    _NO_COLLECTOR,
)
_TAG: Final = re.compile(
    r"\[(?:rank|default)(\d+)\]:? ?|\[\d+,(\d+)\]<std(?:out|err)>: ?|\(\w+ pid=\d+[^()]*\) ?"
)
_TAG_IN_LINES: Final = re.compile(r"\n(?:\[(?:rank|default|\d)|\(\w+ pid=)")  # searched fast
_LABEL: Final = re.compile(r" *(\d+): ?")
# Removes numbers, also nan, inf and exponents, and blanks; what remains is the form of a line.
_TO_FORM: Final = str.maketrans("", "", "0123456789.,+-enaif \t\n")


class Envelopes:
    """Takes the lines of one file out of their envelopes.

    The first lines decide which collector wrote the file. Ranks are recognised by tags such as
    ``[rank0]:``, or by the numbers of ``srun --label`` if the first lines all have them and they do
    not ascend. Of lines that differ in numbers only, those of the lowest rank that wrote one are
    given; the others become empty, so that lines keep their numbers.
    """

    def __init__(self) -> None:
        self._collector: re.Pattern[str] | None = None
        self._unfinished = ""  # a line of which only pieces were written, or lines of any collector
        self._label: re.Pattern[str] | None = None
        self._undecided = ""  # lines that may have labels
        self._lowest: dict[str, int] = {}  # the rank whose lines of a form are given

    def unwrap(self, content: str, *, is_last: bool = False) -> str:
        """Return the lines that follow those before, without envelopes.

        Parameters
        ----------
        content
            Lines with their ends.
        is_last
            Whether there are no other lines that could help to recognise envelopes.
        """
        content = self._undecided + self._collected(content, is_last=is_last)
        if self._label is None:
            lines = [*islice(filter(_has_content, io.StringIO(content)), HEAD_LINES)]
            is_last |= len(lines) == HEAD_LINES or len(content) > HEAD_CHARACTERS
            self._label = _label_of(lines, is_last=is_last) if lines else None
            self._undecided = content if lines and not self._label else ""
            if not self._label:
                return content[len(self._undecided) :]
            if self._label is _LABEL or _TAG.match(lines[0]):
                for line in lines:
                    self._of_lowest_rank(line, self._label)
        if self._label is _TAG and not (_TAG.match(content) or _TAG_IN_LINES.search(content)):
            return content
        return "".join(self._of_lowest_rank(line, self._label) for line in io.StringIO(content))

    def _collected(self, content: str, *, is_last: bool) -> str:
        """Return lines as the collector received them."""
        if self._collector is None:
            content, self._unfinished = self._unfinished + content, ""
            first = [*islice(filter(_has_content, io.StringIO(content)), HEAD_LINES)]
            is_all = is_last or len(first) == HEAD_LINES or len(content) > HEAD_CHARACTERS
            self._collector = _collector_of(first, is_all=is_all) if first else None
            if first and self._collector is None:
                self._unfinished = content
                return ""
        if self._collector is None or self._collector is _NO_COLLECTOR:
            return content
        lines = map(partial(_without_envelope, self._collector), io.StringIO(content))
        content = self._unfinished + "".join(lines)
        end = content.rfind("\n") + 1
        if is_last or len(content) - end > MAX_UNFINISHED:
            end = len(content)
        self._unfinished = content[end:]
        return content[:end]

    def _of_lowest_rank(self, line: str, label: re.Pattern[str]) -> str:
        match = label.match(line)
        if match is None:
            return line
        content = line[match.end() :]
        if match.lastindex is None:
            return content
        rank, form = int(match[match.lastindex]), content[:1000].lower().translate(_TO_FORM)
        if len(self._lowest) >= MAX_FORMS:
            self._lowest.clear()
        lowest = self._lowest[form] = min(rank, self._lowest.get(form, rank))
        return content if rank == lowest else "\n"


def _has_content(line: str) -> bool:
    """Return whether a line is neither blank nor a remark of ``journalctl``."""
    return not line.isspace() and not line.startswith("-- ")


def _collector_of(lines: Sequence[str], *, is_all: bool) -> re.Pattern[str] | None:
    """Return what wrote the first lines; None: not known yet."""
    first = next(each for each in _COLLECTORS if each.match(lines[0]))
    for line in lines if first is _OBJECT else ():
        text = _text_of(line)
        if text is None and (line is lines[0] or _is_row(line)):
            return _NO_COLLECTOR
        if text and _METRIC.search(text):
            return first
    return first if is_all or first is not _OBJECT else None


def _is_row(line: str) -> bool:
    """Return whether an object has a counter, or a number with a meaning."""
    return any(is_counter(name) or NAMES(name).collection for name in _NUMBERS.findall(line))


def _text_of(line: str) -> str | None:
    """Return the line of a log that an object holds; None if it is a row, or something else."""
    if not _TIME.search(line) or _is_row(line):
        return None
    with suppress(ValueError, RecursionError):
        item = msgspec.json.decode(line, type=dict[str, Any])
        key = next((key for key in _TEXTS if isinstance(item.get(key), str)), None)
        if key == "log":  # Docker ends lines itself, and writes long ones in pieces
            return str(item[key])
        return f"{item[key].rstrip()}\n" if key else None
    return None


def _without_envelope(collector: re.Pattern[str], line: str) -> str:
    if collector is _OBJECT:
        text = _text_of(line)
        return line if text is None else text
    match = (_FIRST_CELL if collector is _TABLE else collector).match(line)
    if match is None:
        return line
    if collector is _TABLE:
        text = line[match.end() :].rstrip()
        return (text.removesuffix('"').replace('""', '"') if match[1] else text) + "\n"
    return line[match.end() : -1 if match.lastindex else None]


def _label_of(lines: Sequence[str], *, is_last: bool) -> re.Pattern[str] | None:
    """Return what begins the lines of ranks, `_TAG` unless it is a label; None: not known yet."""
    labels = [int(match[1]) for line in lines if (match := _LABEL.match(line))]
    if len(labels) < len(lines):
        return _TAG if is_last or not _TAG.match(lines[0]) else None
    if not is_last:
        return None
    have_ranks = any(later < label for label, later in pairwise(labels)) or not any(labels)
    return _LABEL if have_ranks else _TAG
