"""trial show: prints the content of a trial as tables, plain lines or JSON."""

from collections.abc import Iterator
from typing import Final

from rule_core.sources.options import DEFAULT, SourceOptions
from rule_runner.commands.trial import summary
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.report.tables import Row, TextTable, print_tables
from rule_runner.results.json_text import dump_json

ROW_LIMIT: Final = 20  # rows of a table without --all


def show_trial(path: str, form: str, *, everything: bool, sources: SourceOptions = DEFAULT) -> None:
    """Print the trial at `path`.

    Parameters
    ----------
    form
        ``table`` or ``json``.
    everything
        Whether to print all rows of long tables.
    sources
        How to read outputs of other writers.

    Raises
    ------
    TrialError
        If `path` holds no trial.
    """
    report = summary.report_trial(path, sources)
    if form == "json":
        print(dump_json(report, indent=2))
    else:
        print_tables(_head(report), _tables(report, None if everything else ROW_LIMIT), _lines)


def _lines(table: TextTable) -> Iterator[str]:
    yield f"{table.headings[0]}:"
    for name, *rest in table.rows:
        yield "  " + ": ".join(filter(None, [name, ", ".join(filter(None, rest))]))


def _head(report: summary.TrialReport) -> Iterator[str]:
    """Yield the lines about the whole trial."""
    yield f"trial: {printable(report.name)}"
    yield f"path: {printable(report.path)}"
    if report.sources:
        yield from _source_lines(report)
        return
    yield f"ended: {'yes' if report.ended else 'no, the end mark is missing'}"
    names = ", ".join(map(printable, report.workers))
    expected = report.num_workers or "an unknown number"
    yield f"workers: {len(report.workers)} of {expected}{names and f' ({names})'}"
    yield f"tensors: {len(report.tensors)}, {_size(report.nbytes)} of records in event files"


def _source_lines(report: summary.TrialReport) -> Iterator[str]:
    """Yield the lines about a run in other formats."""
    for source in report.sources:
        yield f"recognised: {source.kind}: {printable(source.description)}"
        yield from (f"  {printable(decision)}" for decision in source.decisions)
    yield from (f"set aside: {printable(text)}" for text in report.set_aside)
    yield from (f"note: {printable(text)}" for text in report.caveats)
    yield f"ended: {f'yes, {report.why_ended}' if report.ended else 'no, it may still grow'}"
    yield f"tensors: {len(report.tensors)}"


def _tables(report: summary.TrialReport, limit: int | None) -> Iterator[TextTable]:
    incomplete = [
        (str(step.step), f"without {', '.join(map(printable, step.missing)) or 'a worker'}")
        for step in report.incomplete
    ]
    collections = [_collection_row(collection) for collection in report.collections]
    tensors = [_tensor_row(tensor) for tensor in report.tensors]
    problems = [(printable(key), printable(text)) for key, text in report.problems.items()]
    tables: list[tuple[Row, list[Row]]] = [
        (("steps", "count", "range"), [_steps_row(steps) for steps in report.steps]),
        (("segments", "count", "range"), [*_segment_rows(report)]),
        (("incomplete steps", "missing"), [*incomplete]),
        (("collections", "tensors", "patterns"), collections),
        (("tensors", "steps", "modes", "shape and type", "saved", "size"), tensors),
        (("problems", "description"), [*problems]),
    ]
    for headings, rows in tables:
        yield TextTable(headings, _first(rows, limit))


def _steps_row(steps: summary.StepsReport) -> Row:
    return (
        "all, by global number" if steps.mode == "GLOBAL" else steps.mode,
        counted(steps.count, "step"),
        _range(steps.first, steps.last),
    )


def _segment_rows(report: summary.TrialReport) -> Iterator[Row]:
    for number, segment in enumerate(report.segments, 1):
        yield str(number), counted(segment.count, "step"), _range(segment.first, segment.last)


def _collection_row(collection: summary.CollectionReport) -> Row:
    count = collection.tensors
    return (
        printable(collection.name),
        "unusable pattern" if count is None else counted(count, "tensor"),
        printable(" ".join(map(repr, collection.patterns))),
    )


def _tensor_row(tensor: summary.TensorReport) -> Row:
    shape = "" if tensor.shape is None else f"({', '.join(map(str, tensor.shape))})"
    saved = [*tensor.saved[:-1], f"reductions {' '.join(map(printable, tensor.reductions))}"]
    return (
        printable(tensor.name),
        f"{counted(tensor.steps, 'step')} ({_range(tensor.first, tensor.last)})",
        " ".join(tensor.modes),
        " ".join(filter(None, [shape, tensor.dtype])),
        " and ".join(saved if tensor.reductions else tensor.saved),
        _size(tensor.nbytes),
    )


def _range(first: int | None, last: int | None) -> str:
    return "" if first is None else f"{first} to {last}"


def _size(nbytes: int) -> str:
    from rich.filesize import decimal

    return decimal(nbytes)


def _first(rows: list[Row], limit: int | None) -> list[Row]:
    """Return the first rows, and a last one that counts the rest."""
    more = len(rows) - len(rows[:limit])
    return [*rows[:limit], *([(f"and {more} more (--all)",)] if more else [])]
