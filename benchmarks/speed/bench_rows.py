"""Reading CSV and JSON lines as trials, beside the parsers of Python's library; and the memory.

Each reading is a process of its own, in turns. Seconds of processor time, without start-up. The
parsers only parse: `csv.DictReader` leaves texts, and neither keeps anything.
"""

import csv
import json
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
PAIRS: Final = (("csv", "DictReader"), ("csv", "DictReader and float"), ("jsonl", "json.loads"))


def run(rows: int = ROWS) -> None:
    """Print rows a second and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        for kind, other in PAIRS:
            pairs = [
                (_child(kind, kind, folder, rows), _child(other, kind, folder, rows))
                for _ in range(ROUNDS)
            ]
            seconds = statistics.median(ours["cpu_seconds"] for ours, _ in pairs)
            compared = comparison(pairs, other, rows * NUMBERS)
            click.echo(f"{kind}: {rows / seconds:,.0f} rows/s, {compared}")


def write(folder: Path, rows: int) -> None:
    """Write the same run as a table and as JSON lines."""
    with (folder / "run.csv").open("w") as table, (folder / "run.jsonl").open("w") as lines:
        table.write("step,loss,lr,grad_norm\n")
        for step in range(rows):
            values = {"loss": 1 / (step + 1), "lr": 1e-4 * step / rows, "grad_norm": step % 7 * 0.1}
            table.write(f"{step},{','.join(map(str, values.values()))}\n")
            lines.write(f"{json.dumps({'step': step, **values})}\n")


def _child(what: str, kind: str, folder: str, rows: int) -> dict[str, float]:
    command = [sys.executable, __file__, what, kind, folder, str(rows)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    return result


def _index(path: Path, kind: str) -> int:
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
