"""Compares what rules about traces measure with what Holistic Trace Analysis says of them."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import hta_program
import pytest
from jobs import generated_traces
from profile_jobs import all_jobs

PYTHON: Final = "RULE_RUNNER_HTA_PYTHON"
TABLE: Final = Path(__file__).with_name("hta_numbers.json")


def traced_jobs() -> list[str]:
    """Return the names of the jobs whose traces are generated."""
    make = generated_traces.make
    return [name for name, job in all_jobs().items() if getattr(job.train, "func", None) is make]


def write_traces(folder: Path, names: Iterable[str]) -> list[Path]:
    """Write the traces of jobs below a folder, and return their folders."""
    folders = []
    for name in names:
        folders.append(folder / name)
        all_jobs()[name].train(folder / name)
    return folders


def hta_numbers(python: str, folders: Iterable[Path]) -> dict[str, Any]:
    """Return what Holistic Trace Analysis, run by its own Python, says of folders."""
    command = [python, hta_program.__file__, *map(str, folders)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    numbers: dict[str, Any] = json.loads(done.stdout)
    return numbers


def asked_hta(folders: Iterable[Path]) -> dict[str, Any]:
    """Return what it says; skip the test where the environment does not name its Python."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"{PYTHON} names no Python.")
    return hta_numbers(python, folders)


def write_table(numbers: Mapping[str, Any]) -> None:
    """Write the numbers, a job on each line."""
    lines = [f"{json.dumps(name)}: {json.dumps(of_job)}" for name, of_job in numbers.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
