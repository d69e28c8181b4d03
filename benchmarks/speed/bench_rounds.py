"""Contenders of a benchmark, each in a process of its own, run alternately; and what they took."""

import json
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
# The older library logs each step, and waits at the end of a trial, unless it is told not to.
ENVIRONMENT = {
    "SMDEBUG_LOG_LEVEL": "off",
    "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
CLEAR = "\r\033[K"  # of a terminal: the line
POLL_S = 0.01
MB = 1024  # kB of /proc
NO_CACHE = "PYTHONDONTWRITEBYTECODE"  # with it, every start compiles what is not installed


@dataclass(frozen=True)
class Contender:
    """Something that is timed.

    Attributes
    ----------
    command
        What is run; its last line of stdout is what `bench_child.Watch` reports.
    cores
        On how many processors it may run; 0 is all.
    outside
        Time the whole process, which reports nothing.
    watched
        Look at its memory while it runs.
    checkout
        The folder of another version of rule-runner to import.
    """

    name: str
    command: Sequence[str]
    cores: int = 1
    outside: bool = False
    watched: bool = False
    checkout: Path | None = None


@dataclass
class Took:
    """What one run of a contender took: seconds by both clocks, memory in MB, steps judged."""

    seconds: float
    cpu_seconds: float = 0.0
    judged: int = 0
    peak_mb: float = 0.0
    anonymous_mb: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)


def pinned(cores: int) -> list[str]:
    """Return the command that runs another one on so many processors: the last ones there are."""
    usable = sorted(os.sched_getaffinity(0))
    if not cores or cores >= len(usable):
        return []
    return ["taskset", "--cpu-list", ",".join(map(str, usable[-cores:]))]


def run(contender: Contender) -> Took:
    """Run a contender once.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    imported = {"PYTHONPATH": str(contender.checkout)} if contender.checkout else {}
    environment = os.environ | ENVIRONMENT | imported
    environment.pop(NO_CACHE, None)
    began, cpu_began = time.perf_counter(), _cpu_of_children()
    process = subprocess.Popen(
        [*pinned(contender.cores), *contender.command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    anonymous = largest_anonymous(process) if contender.watched else 0.0
    out, err = process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode:
        msg = f"Contender {contender.name!r} failed with {process.returncode}: {err.strip()[-500:]}"
        raise RuntimeError(msg)
    if contender.outside:
        return Took(seconds, _cpu_of_children() - cpu_began)
    said = json.loads(out.splitlines()[-1])
    known = {key: said.pop(key) for key in ("seconds", "cpu_seconds", "judged", "peak_mb")}
    return Took(**known, anonymous_mb=anonymous, more=said)


def _cpu_of_children() -> float:
    """Return the processor time of all processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def largest_anonymous(process: subprocess.Popen[str]) -> float:
    """Return the most memory in MB that a process had at once beyond pages of files."""
    largest = 0.0
    status = Path(f"/proc/{process.pid}/status")
    while True:
        try:
            process.wait(POLL_S)
        except subprocess.TimeoutExpired:
            lines = status.read_text("utf-8").splitlines()
            found = next((one for one in lines if one.startswith("RssAnon")), "RssAnon: 0")
            largest = max(largest, int(found.split()[1]) / MB)
        else:
            return largest


def rounds(contenders: Sequence[Contender], times: int) -> dict[str, list[Took]]:
    """Run contenders one after the other, so many times; return what each took each time.

    Raises
    ------
    RuntimeError
        If one fails, or has judged fewer steps than another.
    """
    took: dict[str, list[Took]] = {one.name: [] for one in contenders}
    for number in range(times):
        for one in contenders:
            click.echo(f"{CLEAR}{number + 1}/{times} {one.name}", err=True, nl=False)
            took[one.name].append(run(one))
    click.echo(CLEAR, err=True, nl=False)
    judged = {name: one.judged for name, every in took.items() for one in every if one.judged}
    if len(set(judged.values())) > 1:
        msg = f"Contenders must judge the same number of steps, got {judged}."
        raise RuntimeError(msg)
    return took
