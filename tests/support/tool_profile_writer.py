"""Writes profiles of Python in the forms of speedscope and scalene.

Speedscope's is documented at https://www.speedscope.app/file-format-schema.json. Scalene's has the
fields of version 2.4. Tests with the tools themselves compare.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
Frame = tuple[str, str, int]  # name, file, line


def sampled(
    stacks: Sequence[Sequence[int]],
    weights: Sequence[float],
    *,
    name: str = 'Thread 7 "MainThread"',
    unit: str = "seconds",
) -> dict[str, Any]:
    """Return a profile of samples, as py-spy writes one for each thread."""
    head = {"type": "sampled", "name": name, "unit": unit, "startValue": 0.0}
    samples = [[*stack] for stack in stacks]
    return {**head, "endValue": sum(weights), "samples": samples, "weights": [*weights]}


def evented(
    events: Sequence[tuple[str, int, float]], *, unit: str = "seconds", end: float | None = None
) -> dict[str, Any]:
    """Return a profile of events ``("O" or "C", frame, time)``, as pyinstrument writes it."""
    head = {"type": "evented", "name": "main", "unit": unit, "startValue": 0.0}
    last = events[-1][2] if end is None else end
    listed = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    return {**head, "endValue": last, "events": listed}


def write_speedscope(
    folder: Path,
    frames: Sequence[Frame],
    *profiles: Mapping[str, Any],
    name: str = "profile.json",
) -> Path:
    """Write a file of speedscope, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    shared = [{"name": frame, "file": file, "line": line} for frame, file, line in frames]
    document = {
        "$schema": SCHEMA,
        "profiles": [*profiles],
        "shared": {"frames": shared},
        "exporter": "py-spy@0.4.3",
    }
    path.write_text(json.dumps(document))
    return path


def scalene_entry(line: str, lineno: int, **fields: float) -> dict[str, Any]:
    """Return an entry of a function or a line; the other fields of scalene are 0."""
    names = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent", "n_gpu_percent")
    sizes = ("n_peak_mb", "n_malloc_mb", "n_copy_mb_s", "n_avg_mb", "n_growth_mb")
    zeros = dict.fromkeys((*names, *sizes), 0.0)
    return {**zeros, "line": line, "lineno": lineno, "memory_samples": [], **fields}


def write_scalene(
    folder: Path,
    functions: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]] = (),
    *,
    elapsed_s: float = 10.0,
    name: str = "scalene-profile.json",
) -> Path:
    """Write a profile of scalene, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    file = {"functions": [*functions], "lines": [*lines], "imports": [], "leaks": {}}
    document = {
        "alloc_samples": 12,
        "args": ["train.py"],
        "elapsed_time_sec": elapsed_s,
        "files": {"train.py": {**file, "percent_cpu_time": 100.0}},
        "max_footprint_mb": 44.25,
        "memory": True,
    }
    path.write_text(json.dumps(document, indent=4))
    return path
