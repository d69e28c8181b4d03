"""Trees of Python profiles, as profilers of training jobs leave them; cProfile's are made by it."""

import cProfile
import json
import marshal
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

# 2020-09-13T12:26:40 UTC, in microseconds.
BEGAN_US: Final = 1_600_000_000_000_000
STEP_US: Final = 1_000_000
NODE: Final = "11-algo-1"
OTHER_NODE: Final = "12-algo-2"
Numbers = tuple[int, int, float, float]
Table = dict[tuple[str, int, str], tuple[int, int, float, float, dict[Any, Numbers]]]
FUNCTION: Final = ("train.py", 7, "forward")
CALLER: Final = ("train.py", 1, "<module>")


def point(mode: str, step: int | str, phase: str, seconds: float) -> str:
    """Return one half of a span's name, some seconds after the job began."""
    return f"{mode}-{step}-{phase}-{BEGAN_US + seconds * STEP_US:.1f}"


def span(
    step: int,
    start: str = "stepstart",
    end: str = "stepend",
    *,
    mode: str = "train",
    end_step: int | None = None,
    seconds: float | None = None,
    lasts: float = 0.5,
) -> str:
    """Return the name of a span within one mode; by default step n begins n seconds after all."""
    at = step if seconds is None else seconds
    last = step if end_step is None else end_step
    return f"{point(mode, step, start, at)}_{point(mode, last, end, at + lasts)}"


BEFORE_STEPS: Final = f"{point('prestepzero', '*', 'start', 0)}_{point('train', 1, 'stepstart', 1)}"
# Its start mode is a slip of the profiler.
AFTER_STEPS: Final = (
    f"{point('prestepzero', '*', 'end', 20)}_{point('posthookclose', '*', 'end', 21)}"
)


def folder(
    base: Path, span_name: str, *, profiler: str = "cprofile", node: str = NODE, fw: str = "pytorch"
) -> Path:
    """Make the folder of a span below the profiler's folder; return it."""
    path = base / "framework" / fw / profiler / node / span_name
    path.mkdir(parents=True, exist_ok=True)
    return path


def table(calls: int = 1, seconds: float = 0.5, name: str = "forward") -> Table:
    """Return what cProfile would hold of one function and who calls it."""
    numbers = calls, calls, seconds, 2 * seconds
    return {
        ("train.py", 7, name): (*numbers, {CALLER: numbers}),
        CALLER: (1, 1, 0.25, 4 * seconds, {}),
        ("~", 0, "<built-in method builtins.sum>"): (3, 5, 0.125, 0.125, {FUNCTION: numbers}),
    }


def write_table(base: Path, span_name: str, content: Table, **where: str) -> Path:
    """Write a profile of cProfile that holds a table; return the file."""
    path = folder(base, span_name, **where) / "python_stats"
    path.write_bytes(marshal.dumps(content))
    return path


def write_cprofile(
    base: Path, span_name: str, work: Callable[[], object], **where: str
) -> tuple[Path, dict[Any, Any]]:
    """Record some work by cProfile; return the file and what it must hold."""
    profile = cProfile.Profile()
    profile.runcall(work)
    path = folder(base, span_name, **where) / "python_stats"
    profile.dump_stats(path)
    return path, vars(profile)["stats"]


def write_pyinstrument(
    base: Path, span_name: str, session: Mapping[str, Any] | None = None, **where: str
) -> Path:
    """Write a profile of pyinstrument and a hostile page; return the folder."""
    frame = {"function": "forward", "file_path": "train.py", "line_no": 7, "time": 0.5}
    content = session or {
        "start_time": BEGAN_US / 1e6,
        "duration": 0.5,
        "sample_count": 3,
        "program": "train.py",
        "cpu_time": 0.25,
        "root_frame": {**frame, "is_application_code": True, "children": [frame]},
    }
    path = folder(base, span_name, profiler="pyinstrument", **where)
    (path / "python_stats.json").write_text(json.dumps(content), encoding="utf-8")
    (path / "python_stats.html").write_text("<script>alert(1)</script>", encoding="utf-8")
    return path


def write_job(base: Path) -> Path:
    """Write the profiles of a small job of two nodes; return the folder of its profiler cProfile.

    The function ``forward`` is called as often as the number of the step says, 100 times before
    the first step, and 200 times after the last.
    """
    for node in (NODE, OTHER_NODE):
        write_table(base, BEFORE_STEPS, table(100), node=node)
        for step in (9, 10, 11):
            half = span(step, "stepstart", "forwardpassend", lasts=0.25)
            rest = span(step, "forwardpassend", "stepstart", end_step=step + 1, seconds=step + 0.25)
            write_table(base, half, table(step), node=node)
            write_table(base, rest, table(step), node=node)
        write_table(base, span(2, mode="eval", seconds=15), table(2), node=node)
        write_table(base, AFTER_STEPS, table(200), node=node)
    return base / "framework" / "pytorch" / "cprofile"


def calls_of(printed: str, name: str = "forward") -> list[str]:
    """Return the first column of the lines that `pstats` printed of a function."""
    return re.findall(rf"^ +([\d/]+) .*\({name}\)$", printed, re.MULTILINE)
