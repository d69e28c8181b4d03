"""Reading rows as trials: CSV and JSON lines beside Python's parsers, text logs beside grep.

Each reading is a process of its own, in turns. Seconds of processor time, without start-up except
that of grep; and the memory. The parsers only parse: `csv.DictReader` leaves texts, and neither
keeps anything. `grep -c` only counts the lines with digits. In the text logs one line in twenty is
a row; the others are prose, in the second log with a time before each.
"""

import csv
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
from bench_child import Watch, comparison

from rule_core.sources.format import Recognized
from rule_core.sources.formats import format_named
from rule_core.sources.open import open_sources
from rule_core.storage.local import LocalStore

ROWS: Final = 1_000_000
ROUNDS: Final = 3
NUMBERS: Final = 3  # in a row, and 16 bytes each in memory
LOG_LINES: Final = 20  # for each row of a log
ROWS_TO_LOG_ROWS: Final = 10
GREP: Final = ("grep", "-c", "[0-9]")
PAIRS: Final = (
    ("csv", "DictReader"),
    ("csv", "DictReader and float"),
    ("jsonl", "json.loads"),
    ("prose.log", "grep -c"),
    ("timed.log", "grep -c"),
)


def run(rows: int = ROWS) -> None:
    """Print rows a second and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        for kind, other in PAIRS:
            written = rows // ROWS_TO_LOG_ROWS if kind.endswith(".log") else rows
            pairs = [
                (_child(kind, kind, folder, written), _child(other, kind, folder, written))
                for _ in range(ROUNDS)
            ]
            seconds = statistics.median(ours["cpu_seconds"] for ours, _ in pairs)
            compared = comparison(pairs, other, written * NUMBERS)
            click.echo(f"{kind}: {written / seconds:,.0f} rows/s, {compared}")


def write(folder: Path, rows: int) -> None:
    """Write the same run as a table and as JSON lines, and its start as text logs."""
    with (folder / "run.csv").open("w") as table, (folder / "run.jsonl").open("w") as lines:
        table.write("step,loss,lr,grad_norm\n")
        for step in range(rows):
            values = {"loss": 1 / (step + 1), "lr": 1e-4 * step / rows, "grad_norm": step % 7 * 0.1}
            table.write(f"{step},{','.join(map(str, values.values()))}\n")
            lines.write(f"{json.dumps({'step': step, **values})}\n")
    chance = random.Random(1)  # noqa: S311 - a benchmark
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(5000)]
    for name, time in (("prose", ""), ("timed", "2026-05-01 12:00:00,123 INFO ")):
        with (folder / f"run.{name}.log").open("w") as log:
            for step in range(rows // ROWS_TO_LOG_ROWS):
                for _ in range(LOG_LINES - 1):
                    log.write(f"{time}{' '.join(chance.choices(words, k=chance.randint(6, 18)))}\n")
                log.write(f"{time}step {step} loss {1 / (step + 1):.6f} lr 0.0003 norm 0.5\n")


def _child(what: str, kind: str, folder: str, rows: int) -> dict[str, float]:
    if what == "grep -c":
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*GREP, f"{folder}/run.{kind}"], check=True, stdout=-1)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return {"cpu_seconds": seconds}
    command = [sys.executable, __file__, what, kind, folder, str(rows)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    return result


def _index(path: Path, kind: str) -> int:
    kind = "text-log" if kind.endswith(".log") else kind
    items = [(format_named(kind), Recognized(kind, path.name, "a benchmark says so"))]
    index = open_sources(LocalStore(path.parent), items)
    index.refresh()
    index.finish()
    return len(index.steps)


def _parsed(path: Path, parse: Callable[[Iterator[str]], Iterator[object]]) -> None:
    with path.open() as file:
        deque(parse(file), 0)


def _main(what: str, kind: str, folder: str, rows: str) -> None:
    path = Path(folder) / f"run.{kind}"
    parsers: dict[str, Callable[[Iterator[str]], Iterator[object]]] = {
        "DictReader": csv.DictReader,
        "DictReader and float": lambda file: (
            {name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)
        ),
        "json.loads": lambda file: map(json.loads, file),
    }
    idle_mb = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096 / (1 << 20)
    watch = Watch()
    if what in parsers:
        _parsed(path, parsers[what])
    else:
        assert _index(path, kind) == int(rows)
    watch.report(int(rows), idle_mb=idle_mb)


if __name__ == "__main__":
    _main(*sys.argv[1:])
