#!/usr/bin/env python3
"""Benchmarks: ratios within one run on one machine, printed as a table; nothing is asserted.

    .venv/bin/python benchmarks/speed                        the whole table
    .venv/bin/python benchmarks/speed small large --pairs 9  some of its benchmarks
    .venv/bin/python benchmarks/speed hook                   one that prints a table of its own
    .venv/bin/python benchmarks/speed --beside ../before     another checkout: 1.1 is a tenth slower

RULE_RUNNER_OLD_SMDEBUG_PYTHON names a Python that has smdebug 1.0.34, and
RULE_RUNNER_MODERN_SMDEBUG_PYTHON one that has it with a protobuf of today; without them their lines
are left out. docs/performance.md says what is measured, and how.
"""

import importlib
import sys
import tempfile
from pathlib import Path

import bench_tables
import click
from bench_cases import CASES, beside
from bench_rounds import rounds
from bench_tables import Line
from bench_trials import warm, written

OWN_TABLES = {  # what has a module with a `run`, which prints
    "giant": "bench_giant",  # one trial of 64 workers, measured by two processes
    "growth": "bench_growth",  # 100,000 steps, 50,000 tensors in a step, 1,000 workers
    "hook": "bench_hook",  # training with and without a hook; needs PyTorch
    "latency-spread": "bench_latency",  # of verdicts on a running trial
    "listing": "bench_listing",  # finding 1,000 runs in other formats below a folder
    "opening-parts": "bench_opening",  # beside reading the files alone; following; memory
    "preset": "bench_preset",  # CPU time of a hook's preset; needs PyTorch
    "profiler": "bench_profiler",  # judging system metrics, merging timelines: time and memory
    "reading": "bench_reading",
    "recording": "bench_recording",  # CPU time of recording a profile; needs PyTorch
    "rows": "bench_rows",  # CSV, JSON lines, text logs, beside Python's parsers and grep; memory
    "s3": "bench_s3",  # requests and bytes; starts a server
    "safetensors": "bench_safetensors",  # checkpoints, beside loading them: time and memory
    "tensorboard": "bench_tensorboard",  # event files; beside other readers, if installed
    "wandb": "bench_wandb",  # the log of a run, beside parsing its values; memory
}
CLOCKS = {"wall": lambda took: took.seconds, "CPU": lambda took: took.cpu_seconds or took.seconds}


def measured(
    name: str, pairs: int | None, scale: float, folder: Path, clock: str, checkout: Path | None
) -> list[Line] | None:
    """Run a benchmark, say what came of it, and return its lines; None if it fails."""
    case, root, values = CASES[name], "", 0
    if checkout:
        case = beside(name, case, checkout.resolve())
    try:
        if case.trial:
            path, size = written(case.trial, folder, scale)
            warm(path)
            root, values = str(path), size.values
        times = rounds(case.contenders(root), pairs or case.pairs)
    except RuntimeError as err:
        click.echo(f"{name}: {err}", err=True)
        return None
    lines = [row.line(times, CLOCKS[clock], values) for row in case.rows]
    there = [line for line in lines if line]
    click.echo(f"{name}\n{bench_tables.text(there)}\n", err=True)
    return there


@click.command(help=__doc__.replace("\n\n    ", "\n\n\b\n    "))
@click.argument("names", nargs=-1, type=click.Choice([*CASES, *OWN_TABLES]))
@click.option("--pairs", type=click.IntRange(1), help="Rounds; each benchmark has its own default.")
@click.option("--scale", default=1.0, help="So many times the steps; smaller tensors below 0.1.")
@click.option("--folder", type=Path, help="Where the trials are kept between runs.")
@click.option("--cpu", is_flag=True, help="Compare processor time: for a machine with other work.")
@click.option(
    "--beside",
    "checkout",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare with the rule-runner of another checkout instead: its time is 1.",
)
@click.option("--markdown", is_flag=True, help="Print the table in Markdown.")
@click.option("--output", type=Path, help="A file for the table.")
@click.option("--write", type=Path, help="A document whose marks the table is put between.")
def main(
    names: tuple[str, ...],
    pairs: int | None,
    scale: float,
    folder: Path | None,
    cpu: bool,
    checkout: Path | None,
    markdown: bool,
    output: Path | None,
    write: Path | None,
) -> None:
    """Run benchmarks, and print their table."""
    folder = folder or Path(tempfile.gettempdir()) / "rule-runner-bench"
    folder.mkdir(parents=True, exist_ok=True)
    clock = "CPU" if cpu else "wall"
    for name in names:
        if name in OWN_TABLES:
            importlib.import_module(OWN_TABLES[name]).run()
    found = {
        name: measured(name, pairs, scale, folder, clock, checkout)
        for name in names or CASES
        if name in CASES
    }
    failed = [name for name, lines in found.items() if lines is None]
    lines = [line for some in found.values() for line in some or ()]
    said = bench_tables.circumstances(scale, clock, pairs)
    table = (bench_tables.markdown if markdown else bench_tables.text)(lines)
    if lines:
        click.echo(f"{table}\n\n{said}")
    if output:
        output.write_text(f"{table}\n\n{said}\n", "utf-8")
    if failed:
        sys.exit(f"Benchmarks failed: {', '.join(failed)}. No document is written.")
    if write and lines:
        bench_tables.write_between(write, f"{said}\n\n{bench_tables.markdown(lines)}")


if __name__ == "__main__":
    main()
