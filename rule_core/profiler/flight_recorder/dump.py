"""FlightDump: the content of one dump of the flight recorder of torch.distributed.

PyTorch writes pickles of the same content, which are never loaded here. Format: version 2.x of
``torch/csrc/distributed/c10d/FlightRecorder.hpp``, PyTorch 2.4 to 2.13.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from rule_core.profiler.files.whole_text import decoded, whole_number

_WHAT: Final = "a dump of torch.distributed's flight recorder as JSON"
_MAJOR: Final = "2."
_DIGITS: Final = re.compile(r"\d{1,9}")
_MOST_RANKS: Final = 1 << 17
_TORCH: Final = "/torch/"
_LONGEST_TEXT: Final = 200  # characters
_MOST_AXES: Final = 64
_LEAST_OF_RANGE: Final = 3


class Frame(msgspec.Struct, gc=False):
    """A frame of a Python stack."""

    name: str = ""
    filename: str = ""
    line: int = 0


class Collective(msgspec.Struct, gc=False):
    """An entry: a collective, or a send or a receive, that a process has started."""

    profiling_name: str
    process_group: tuple[str, str]
    time_created_ns: int | float
    collective_seq_id: int | None = None
    p2p_seq_id: int = 0
    record_id: int = 0
    pg_id: int | None = None
    is_p2p: bool = False
    state: str = ""
    retired: bool = False
    time_discovered_completed_ns: int | float | None = None
    input_sizes: list[list[int]] = msgspec.field(default_factory=list)
    output_sizes: list[list[int]] = msgspec.field(default_factory=list)
    input_dtypes: list[str] = msgspec.field(default_factory=list)
    output_dtypes: list[str] = msgspec.field(default_factory=list)
    frames: list[Frame] | None = None

    @property
    def is_pending(self) -> bool:
        """Whether the process still waited for it, as it had not seen the end of it."""
        has_seen_end = self.state == "completed" or bool(self.time_discovered_completed_ns)
        return not (has_seen_end or self.retired)

    @property
    def location(self) -> str:
        """The innermost line outside of PyTorch that called it; "" if the dump has no stacks."""
        frames = self.frames or ()
        frame = next((frame for frame in frames if _TORCH not in frame.filename), None)
        return "" if frame is None else f"{frame.filename}:{frame.line}({frame.name})"


class _DumpDocument(msgspec.Struct, gc=False):
    version: str
    entries: list[msgspec.Raw] = msgspec.field(default_factory=list)
    pg_config: dict[str, Any] = msgspec.field(default_factory=dict)
    pg_status: dict[str, Any] = msgspec.field(default_factory=dict)


class FlightDump:
    """The collectives and the process groups of one process.

    Parameters
    ----------
    name
        The file's name in messages.
    text
        The content of the file.

    Attributes
    ----------
    collectives
        The entries, in the order of the file.
    skipped
        Why entries cannot be read, one reason for each.
    ranks
        The ranks of process groups by name, in the notation of `as_ranges`.

    Raises
    ------
    CorruptFileError
        If the text is no dump.
    """

    def __init__(self, name: str, text: bytes) -> None:
        document = decoded(name, text, _DumpDocument, _WHAT)
        self.skipped: list[str] = []
        self.version = document.version
        self.collectives = [*self._entries(document.entries)]
        self.ranks = _ranks_of(document.pg_config)
        names = {entry.process_group[0] for entry in self.collectives}
        if "" in self.ranks:  # of Gloo, which names no groups here
            nameless = self.ranks.pop("")
            if len(names) == 1 and not self.ranks:
                self.ranks[names.pop()] = nameless
        self._status = document.pg_status

    @property
    def is_read(self) -> bool:
        """Whether this version of the format is read."""
        return self.version.startswith(_MAJOR)

    @property
    def is_whole(self) -> bool:
        """Whether the recorder had room for all entries, so that the first is among them."""
        return min((entry.record_id for entry in self.collectives), default=0) == 0

    def last_joined(self) -> dict[str, int]:
        """Return the number of the last collective that the process began, by process group.

        Groups without any are left out, unless none was ever started.
        """
        last = dict.fromkeys(self.ranks, 0) if self.is_whole else {}
        for entry in self.collectives:
            if not entry.is_p2p and entry.collective_seq_id is not None:
                status = self._status.get(str(entry.pg_id))
                enqueued = status.get("last_enqueued_collective") if isinstance(status, dict) else 0
                numbers = (last.get(entry.process_group[0], 0), entry.collective_seq_id)
                last[entry.process_group[0]] = max(*numbers, whole_number(enqueued) or 0)
        return last

    def _entries(self, entries: Sequence[msgspec.Raw]) -> Iterator[Collective]:
        for raw in entries:
            try:
                entry = msgspec.json.decode(raw, type=Collective)
            except (ValueError, RecursionError) as err:
                self.skipped.append(str(err).rstrip("."))
                continue
            if entry.collective_seq_id is None:
                self.skipped.append("it has no collective_seq_id")
            elif not math.isfinite(entry.time_created_ns):
                self.skipped.append("its time is not finite")
            else:
                yield entry


def _ranks_of(config: dict[str, Any]) -> dict[str, str]:
    ranks: dict[str, str] = {}
    for name, group in config.items():
        text = group.get("ranks") if isinstance(group, dict) else None
        if isinstance(text, str | list):
            numbers = _DIGITS.findall(str(text))[:_MOST_RANKS]
            ranks[name] = as_ranges(sorted({*map(int, numbers)}))
    return ranks


def as_ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as ranges, with the step if it is not 1.

    >>> as_ranges([0, 1, 2, 3]), as_ranges([0, 8, 16, 24]), as_ranges([0, 1, 5])
    ('0-3', '0-24:8', '0,1,5')
    """
    steps = {after - before for before, after in pairwise(numbers)}
    if len(numbers) >= _LEAST_OF_RANGE and len(steps) == 1:
        step = numbers[1] - numbers[0]
        return f"{numbers[0]}-{numbers[-1]}{f':{step}' if step > 1 else ''}"
    return ",".join(map(str, numbers))


def shortened(text: str) -> str:
    """Return a text of limited length."""
    return text[:_LONGEST_TEXT]


def elements(sizes: Sequence[Sequence[int]]) -> int:
    """Return the number of elements of all tensors together, at most 2**62.

    >>> elements([[4, 3], [2]])
    14
    """
    return min(sum(abs(math.prod(size[:_MOST_AXES])) for size in sizes), 1 << 62)
