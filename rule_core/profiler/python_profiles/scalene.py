"""ScaleneProfile: processors, GPU and memory by function or line, in a file of scalene."""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from rule_core.profiler.files.whole_text import decoded
from rule_core.profiler.python_profiles.measured_code import CodePlace

WHAT: Final = "a profile of scalene"
MARK: Final = b'"alloc_samples"'
_PERCENT: Final = 100.0


class ScaleneUse(NamedTuple):
    """What a function or a line used.

    Attributes
    ----------
    python_s, native_s, system_s
        Seconds in Python code, in native code, and in the system or waiting.
    gpu_s
        Seconds in which the GPU was busy.
    peak_mb, allocated_mb, copied_mb_s
        Largest amount of memory, memory allocated in all, and rate of copies, in MB.
    """

    place: CodePlace
    python_s: float
    native_s: float
    system_s: float
    gpu_s: float
    peak_mb: float
    allocated_mb: float
    copied_mb_s: float

    @property
    def time_s(self) -> float:
        """Seconds of processor time and waits."""
        return self.python_s + self.native_s + self.system_s


class ScaleneProfile(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    elapsed_s
        How long the program ran.
    peak_mb
        The largest amount of memory of the program, in MB; 0 if memory was not measured.
    uses
        What each function or line used.
    """

    elapsed_s: float
    peak_mb: float
    uses: list[ScaleneUse]


class _Entry(msgspec.Struct, gc=False):
    lineno: int
    line: str = ""
    n_cpu_percent_python: float = 0.0
    n_cpu_percent_c: float = 0.0
    n_sys_percent: float = 0.0
    n_gpu_percent: float = 0.0
    n_peak_mb: float = 0.0
    n_malloc_mb: float = 0.0
    n_copy_mb_s: float = 0.0


class _MeasuredFile(msgspec.Struct, gc=False):
    functions: list[_Entry] = msgspec.field(default_factory=list)
    lines: list[_Entry] = msgspec.field(default_factory=list)


class _ScaleneDocument(msgspec.Struct, gc=False):
    elapsed_time_sec: float
    files: dict[str, _MeasuredFile]
    max_footprint_mb: float = 0.0


def parse_scalene(name: str, text: bytes, *, lines: bool = False) -> ScaleneProfile:
    """Return what functions or lines used, without those that used nothing.

    Parameters
    ----------
    name
        The file's name in messages.
    lines
        Whether to return lines in place of functions.

    Raises
    ------
    CorruptFileError
        If it is no such file.
    """
    document = decoded(name, text, _ScaleneDocument, WHAT)
    uses = [
        use
        for path, file in document.files.items()
        for use in _uses(path, file.lines if lines else file.functions, document, lines=lines)
    ]
    return ScaleneProfile(
        max(document.elapsed_time_sec, 0.0), max(document.max_footprint_mb, 0.0), uses
    )


def _uses(
    path: str, entries: list[_Entry], document: _ScaleneDocument, *, lines: bool
) -> Iterator[ScaleneUse]:
    second = document.elapsed_time_sec / _PERCENT
    for entry in entries:
        processor = entry.n_cpu_percent_python, entry.n_cpu_percent_c, entry.n_sys_percent
        times_s = [percent * second for percent in (*processor, entry.n_gpu_percent)]
        amounts = *times_s, entry.n_peak_mb, entry.n_malloc_mb, entry.n_copy_mb_s
        if any(amount > 0 for amount in amounts) and all(map(math.isfinite, amounts)):
            function = "" if lines else entry.line
            yield ScaleneUse(CodePlace(path, entry.lineno, function), *amounts)
