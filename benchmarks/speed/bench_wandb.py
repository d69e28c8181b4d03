"""Reading the log of a run of Weights & Biases, beside parsing its values only; and the memory.

The file has two records of the summary for each row, as wandb 0.31 writes them. Each reading is a
process of its own, in turns. Seconds of processor time, without start-up.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click
from bench_child import Watch, comparison

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

ROWS: Final = 100_000
ROUNDS: Final = 3
NUMBERS: Final = 3  # in a row, and 16 bytes each in memory


def run(rows: int = ROWS) -> None:
    """Print megabytes a second, the ratio and the memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run-x.wandb"
        _child("write", path, rows)  # elsewhere: a child reports its parent's peak of memory too
        pairs = [
            (_child("ours", path, rows), _child("json.loads", path, rows)) for _ in range(ROUNDS)
        ]
        size_mb = path.stat().st_size / 1e6
    seconds = statistics.median(ours["cpu_seconds"] for ours, _ in pairs)
    compared = comparison(pairs, "json.loads of its values", rows * NUMBERS)
    click.echo(f"wandb: {size_mb / seconds:.1f} MB/s, {compared}")


def write(path: Path, rows: int) -> None:
    """Write a log with three numbers in each row."""
    import wandb_files

    records = []
    for step in range(rows):
        values = {"loss": 1 / (step + 1), "lr": 1e-4 * step / rows, "grad_norm": step % 7 * 0.1}
        row = wandb_files.row(step, values)
        items = b"".join(wandb_files.item([name], value) for name, value in values.items())
        records += [row, *[wandb_files.field(wandb_files.SUMMARY, items)] * 2]
    path.write_bytes(wandb_files.log(*records))


def _child(what: str, path: Path, rows: int) -> dict[str, float]:
    command = [sys.executable, __file__, what, str(path), str(rows)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    return result


def _main(what: str, name: str, rows: str) -> None:
    from rule_core.sources.format import Recognized
    from rule_core.sources.open import open_sources
    from rule_core.sources.wandb.format import FORMAT
    from rule_core.storage.local import LocalStore

    path = Path(name)
    idle_mb = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096 / (1 << 20)
    watch = Watch()
    judged = int(rows)
    if what == "write":
        write(path, judged)
    elif what == "ours":
        item = Recognized(FORMAT.kind, path.name, "a benchmark says so")
        index = open_sources(LocalStore(path.parent), [(FORMAT, item)])
        index.refresh()
        index.finish()
        assert len(index.steps) == judged
    else:
        for _ in range(judged * NUMBERS):
            json.loads("0.3333333333333333")
    watch.report(judged, idle_mb=idle_mb)


if __name__ == "__main__":
    _main(*sys.argv[1:])
