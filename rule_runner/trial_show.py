"""trial show: prints what is in a trial: tables on a terminal, plain lines elsewhere, or JSON."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from rule_runner.results import dump_json
from rule_runner.show import printable
from rule_runner.trial_report import (
    CollectionReport,
    StepsReport,
    TensorReport,
    TrialReport,
    report_trial,
)

SHOWN: Final = 20  # rows of a table, unless all are asked for


class Table(NamedTuple):
    """One kind of thing in a trial: a heading for each column, and a row for each thing."""

    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


def show_trial(path: str, form: str, *, everything: bool) -> int:
    """Print the trial at `path`; return the exit code.

    Parameters
    ----------
    form
        ``table`` or ``json``.
    everything
        Whether long tables are printed whole.

    Raises
    ------
    TrialError
        If there is no trial.
    """
    report = report_trial(path)
    limit = None if everything else SHOWN
    if form == "json":
        _say(dump_json(report, indent=2))
    elif sys.stdout.isatty():
        _print_tables(report, limit)
    else:
        _say("\n".join(lines(report, limit)))
    return 0


def _say(text: str) -> None:
    print(text)  # noqa: T201 - stdout carries results


def lines(report: TrialReport, limit: int | None = None) -> Iterator[str]:
    """Yield a report as plain text, of each table `limit` rows."""
    yield from _head(report)
    for table in tables(report):
        if table.rows:
            yield f"{table.headings[0]}:"
            for name, *rest in _cut(table, limit):
                yield "  " + ": ".join(filter(None, [name, ", ".join(filter(None, rest))]))


def _head(report: TrialReport) -> Iterator[str]:
    """Yield what is said of the whole trial."""
    yield f"trial: {printable(report.name)}"
    yield f"path: {printable(report.path)}"
    yield f"ended: {'yes' if report.ended else 'no, there is no end mark'}"
    names = ", ".join(map(printable, report.workers))
    expected = report.num_workers or "an unknown number"
    yield f"workers: {len(report.workers)} of {expected}{names and f' ({names})'}"
    yield f"tensors: {len(report.tensors)}, {_size(report.nbytes)} of records in event files"


def tables(report: TrialReport) -> Iterator[Table]:
    """Yield the tables of a report."""
    yield Table(("steps", "count", "range"), [_steps_row(one) for one in report.steps])
    yield Table(
        ("incomplete steps", "missing"),
        [
            (str(one.step), f"without {', '.join(map(printable, one.missing)) or 'a worker'}")
            for one in report.incomplete
        ],
    )
    yield Table(
        ("collections", "tensors", "patterns"), [_collection_row(one) for one in report.collections]
    )
    yield Table(
        ("tensors", "steps", "modes", "shape and type", "saved", "size"),
        [_tensor_row(one) for one in report.tensors],
    )
    yield Table(
        ("problems", "what is wrong"),
        [(printable(key), printable(problem)) for key, problem in report.problems.items()],
    )


def _steps_row(steps: StepsReport) -> tuple[str, ...]:
    return (
        "all, by global number" if steps.mode == "GLOBAL" else steps.mode,
        _counted(steps.count, "step"),
        _range(steps.first, steps.last),
    )


def _collection_row(collection: CollectionReport) -> tuple[str, ...]:
    count = collection.tensors
    return (
        printable(collection.name),
        "a pattern that cannot be used" if count is None else _counted(count, "tensor"),
        printable(" ".join(map(repr, collection.patterns))),
    )


def _tensor_row(tensor: TensorReport) -> tuple[str, ...]:
    shape = "" if tensor.shape is None else f"({', '.join(map(str, tensor.shape))})"
    saved = [*tensor.saved[:-1], f"reductions {' '.join(map(printable, tensor.reductions))}"]
    return (
        printable(tensor.name),
        f"{_counted(tensor.steps, 'step')} ({_range(tensor.first, tensor.last)})",
        " ".join(tensor.modes),
        " ".join(filter(None, [shape, tensor.dtype])),
        " and ".join(saved if tensor.reductions else tensor.saved),
        _size(tensor.nbytes),
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _range(first: int | None, last: int | None) -> str:
    return "" if first is None else f"{first} to {last}"


def _size(nbytes: int) -> str:
    from rich.filesize import decimal  # noqa: PLC0415 - not for the help

    return decimal(nbytes)


def _cut(table: Table, limit: int | None) -> Iterable[tuple[str, ...]]:
    """Return the first rows, and how many there are more."""
    more = len(table.rows) - len(table.rows[:limit])
    return [*table.rows[:limit], *([(f"and {more} more (--all)",)] if more else [])]


def _print_tables(report: TrialReport, limit: int | None) -> None:
    from rich.console import Console  # noqa: PLC0415 - a terminal only
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    for line in _head(report):
        console.print(line, markup=False, highlight=False)
    for table in tables(report):
        if not table.rows:
            continue
        shown = RichTable()
        for heading in table.headings:
            shown.add_column(heading, overflow="fold")
        for row in _cut(table, limit):
            shown.add_row(*map(Text, row))
        console.print(shown)
