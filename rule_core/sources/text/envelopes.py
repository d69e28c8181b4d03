"""Envelopes: what collectors of logs and launchers write before, or around, each line."""

import io
import re
from collections.abc import Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Final

import msgspec

HEAD_LINES: Final = 32  # that decide whether numbers before lines are ranks
HEAD_CHARACTERS: Final = 1 << 20  # in which these lines are looked for
MAX_FORMS: Final = 10_000  # of the lines of ranks, remembered
MAX_UNFINISHED: Final = 8 << 20  # characters of a line in several pieces
_DOCKER: Final = re.compile(r'\{"log":("(?:[^"\\]++|\\.)*+").*"time":"[^"]*"\}')
_NO_COLLECTOR: Final = re.compile("")
# What each collector writes around a line, or before it (group 1: the line goes on in the next).
_COLLECTORS: Final = (
    _DOCKER,
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

    The first line decides which collector wrote the file. Ranks are recognised by tags such as
    ``[rank0]:``, or by the numbers of ``srun --label`` if the first lines all have them and they do
    not ascend. Of lines that differ in numbers only, those of the lowest rank that wrote one are
    given; the others become empty, so that lines keep their numbers.
    """

    def __init__(self) -> None:
        self._collector: re.Pattern[str] | None = None
        self._unfinished = ""  # a line of which only pieces were written
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
        if self._collector is None and (
            first := next(filter(_has_content, io.StringIO(content)), "")
        ):
            self._collector = next(each for each in _COLLECTORS if each.match(first))
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


def _without_envelope(collector: re.Pattern[str], line: str) -> str:
    match = collector.match(line)
    if match is None:
        return line
    if collector is not _DOCKER:
        return line[match.end() : -1 if match.lastindex else None]
    try:
        return msgspec.json.decode(match[1], type=str)
    except ValueError:
        return line


def _label_of(lines: Sequence[str], *, is_last: bool) -> re.Pattern[str] | None:
    """Return what begins the lines of ranks, `_TAG` unless it is a label; None: not known yet."""
    labels = [int(match[1]) for line in lines if (match := _LABEL.match(line))]
    if len(labels) < len(lines):
        return _TAG if is_last or not _TAG.match(lines[0]) else None
    if not is_last:
        return None
    have_ranks = any(later < label for label, later in pairwise(labels)) or not any(labels)
    return _LABEL if have_ranks else _TAG
