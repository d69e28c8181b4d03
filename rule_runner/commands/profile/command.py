"""The commands of `rule-runner profile`."""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from builtin_rules.reports.profiler.wording import duration, moment
from rule_core.sources.address import address_of
from rule_runner.commands.profile.trials import present, reading
from rule_runner.config.model import check_is_local, default_output
from rule_runner.errors import TrialError, UsageError, restated, unwritable
from rule_runner.escape import print_lines, printable
from rule_runner.loading.trials import is_one_file
from rule_runner.report.tables import Row, TextTable, print_tables
from rule_runner.results.json_text import dump_json
from rule_runner.results.status import for_people

if TYPE_CHECKING:
    from rule_core.profiler.python_profiles.top_functions import TopFunctions
    from rule_runner.commands.profile.overview import FilesReport, ProfileReport

RULE: Final = "ProfilerReport"
PAGE: Final = Path("profiler-output", "profiler-report.html")  # in its output folder
PROBLEMS: Final = 20
SECOND_US: Final = 1_000_000
_NO_FUNCTIONS: Final = (
    "{subject} holds no Python profiles. Give the folder that a profiler wrote to, the parent of "
    "'framework', or a file of py-spy, speedscope or scalene."
)


def show_profile(path: str, form: str, *, check: bool) -> None:
    """Print a summary of the profiler data."""
    from rule_runner.commands.profile.overview import overview

    report = overview(path, check=check)
    if form == "json":
        print(dump_json(report, indent=2))
    else:
        print_tables(_head(report), _tables(report))


def _head(report: "ProfileReport") -> Iterator[str]:
    yield f"profiler data: {printable(report.name)}"
    yield f"path: {printable(report.path)}"
    if not (report.nodes or report.ended):
        yield "Python profiles only: 'rule-runner profile python' lists their functions"
        return
    if report.formats:
        yield f"read from: {', '.join(report.formats)}"
    yield f"ended: {'yes' if report.ended else 'no, the end mark is missing'}"
    nodes = ", ".join(map(printable, report.nodes))
    yield f"nodes: {len(report.nodes)}{nodes and f' ({nodes})'}"
    if report.begin_us:
        seconds = (report.end_us - report.begin_us) / SECOND_US
        yield f"time: {moment(report.begin_us)} to {moment(report.end_us)}, {duration(seconds)}"
    if not report.framework:
        yield "framework: no timelines, so steps are unknown"


def _tables(report: "ProfileReport") -> Iterator[TextTable]:
    columns = ("node", "files", "size", "first file", "last file")
    yield TextTable(columns, [_files(files) for files in report.system], "system metrics")
    yield TextTable(
        ("kind", *columns),
        [(printable(files.kind), *_files(files)) for files in report.framework],
        "framework timelines",
    )
    yield TextTable(
        ("node", "profiler", "files", "modes"),
        [
            (printable(files.node), files.profiler, f"{files.files:,}", " ".join(files.modes))
            for files in report.python
        ],
        "Python profiles",
    )
    problems = [(printable(problem),) for problem in report.problems[:PROBLEMS]]
    more = len(report.problems) - len(problems)
    rows = [*problems, *([(f"and {more} more",)] * (more > 0))]
    yield TextTable(("description",), rows, "problems")


def _files(files: "FilesReport") -> Row:
    from rich.filesize import decimal

    size = "" if files.nbytes is None else decimal(files.nbytes)
    begin, end = moment(files.begin_us), moment(files.end_us)
    return printable(files.node), f"{files.files:,}", size, begin, end


def report(path: str, output: str | None, parameters: Sequence[str], *, overwrite: bool) -> int:
    """Run ProfilerReport over the existing data, and print the path of its page.

    Raises
    ------
    RuleRunnerError
        If the evaluation fails.
    """
    from rule_runner.config.request import EvaluationRequest, RuleRequest
    from rule_runner.config.resolve import resolve
    from rule_runner.engine.evaluate import evaluate
    from rule_runner.engine.outcome import exit_code
    from rule_runner.engine.stop_requests import Signals

    folder = Path(output) if output else default_output(address_of(path).name)
    check_is_local(output or str(folder), "--output of profile report")
    request = EvaluationRequest(
        profiler_trial=path,
        rules=(RuleRequest(name=RULE),),
        parameters=tuple(parameters),
        output=str(folder),
        wait=False,
        overwrite=overwrite,
    )
    config = resolve(request)
    with Signals() as signals:
        evaluated = evaluate(config, signals=signals)
    code = exit_code(evaluated, fail_on=None)
    problem = evaluated.output_error
    if code and not problem:
        problem = f"Error: {for_people(evaluated.result.rules[0].status_details or '')}"
    if problem:
        print(printable(problem.strip()), file=sys.stderr)
    elif evaluated.earlier:
        print(printable(evaluated.again(str(folder))), file=sys.stderr)
    page = folder / PAGE
    if page.exists() and not evaluated.output_error:
        print(f"Report: {printable(page)}")
    return code


def timeline(
    path: str, start: str | None, end: str | None, unit: str, mode: str | None, output: str
) -> None:
    """Merge timelines into one trace, and print its path and number of events.

    Raises
    ------
    UsageError
        If `start` or `end` is not a time, or not a step.
    TrialError
        If no data is in that range, or it cannot be read.
    OutputError
        If the trace cannot be written.
    """
    from rule_core.analysis.frames.merge_timelines import merge_timelines
    from rule_core.modes import ModeKeys
    from rule_runner.commands.profile.recording_options import parse_step

    bound: Callable[[str], float] = parse_time if unit == "time" else parse_step
    first, last = _bound("--start", start, bound), _bound("--end", end, bound)
    chosen = None if mode is None else ModeKeys[mode.upper()]
    present(path)
    with unwritable(f"Trace {output!r}"), reading():
        merged = merge_timelines(path, output, first, last, unit, mode=chosen)
    print_lines(merged.problems[:PROBLEMS], sys.stderr)
    print(f"Trace: {printable(merged.path)} ({merged.events:,} events). Open it in Perfetto.")


def _bound(option: str, bound: str | None, parse: Callable[[str], float]) -> float | None:
    if bound is None:
        return None
    kind = "epoch seconds or a time in ISO format" if parse is parse_time else "a step"
    problem = f"Option {option} must be {kind}, got {bound!r}."
    with restated(UsageError, ValueError, OverflowError, sentence=problem):
        return parse(bound)


def parse_time(text: str) -> float:
    """Return epoch microseconds of a time in epoch seconds or in ISO format; UTC by default.

    >>> parse_time("1600000000.5"), parse_time("2020-09-13T12:26:40")
    (1600000000500000.0, 1600000000000000.0)
    """
    try:
        seconds = float(text)
    except ValueError:
        time = datetime.fromisoformat(text)
        seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if not abs(seconds) < 1e12:  # noqa: PLR2004 - some 30,000 years
        raise ValueError
    return seconds * SECOND_US


def python(
    path: str,
    step: str | None,
    mode: str | None,
    node: str | None,
    count: int,
    sort: str,
    *,
    lines: bool = False,
) -> None:
    """Print the functions in which the training job spent the most time.

    Profiles of other tools count if there are none of cProfile.

    Raises
    ------
    UsageError
        If `step` is not a range of steps, or the profiles have no steps, lines or numbers as asked.
    TrialError
        If no profile can be read.
    """
    from rule_core.profiler.python_profiles.other_tools import tool_profiles
    from rule_core.profiler.python_profiles.top_functions import has_python_profiles, top_functions
    from rule_runner.commands.profile.recording_options import step_range
    from rule_runner.commands.profile.tool_functions import MEMORY, print_tool_functions

    steps = None if step is None else step_range(step, "--step")
    trial = present(path)
    with reading():
        store, others = tool_profiles(trial.source.store)
        if others and not has_python_profiles(path):
            if step is not None or mode is not None or node is not None:
                raise UsageError(
                    f"A profile of {others[0].tool} has no steps, modes and nodes: leave out "
                    "--step, --mode and --node."
                )
            print_tool_functions(store, others, sort=sort, count=count, lines=lines)
            return
        if lines or sort == MEMORY:
            raise UsageError(f"Profiles of cProfile have no {'lines' if lines else 'memory'}.")
        if is_one_file(trial):
            raise TrialError(_NO_FUNCTIONS.format(subject=f"File {path!r}"))
        top = top_functions(path, steps=steps, mode=mode, node=node, sort=sort, n=count)
    if not top.chosen:
        raise TrialError(_without_profiles(path, top))
    print_tables(_head_of_functions(top), [_functions(top)])


def _without_profiles(path: str, top: "TopFunctions") -> str:
    """Return the error message for a folder without profiles, or without matching ones."""
    if not top.available:
        return _NO_FUNCTIONS.format(subject=f"Folder {path!r}")
    modes = ", ".join(sorted({profile.start_mode.name.lower() for profile in top.available}))
    nodes = ", ".join(sorted({repr(profile.node_id) for profile in top.available}))
    return (
        f"No cProfile profile in {path!r} matches these steps, mode and node. Profiles exist for "
        f"modes {modes} and nodes {nodes}."
    )


def _head_of_functions(top: "TopFunctions") -> Iterator[str]:
    spans, files = len(top.chosen), len(top.available)
    yield f"profiles: {spans:,} of {files:,} files of Python profilers"
    nodes = sorted({printable(profile.node_id) for profile in top.chosen})
    if nodes:
        yield f"nodes: {', '.join(nodes)}"
    yield f"time: {top.time_in_all:.4g} s in {top.functions_in_all:,} functions"
    for problem in [*top.problems.values()][:PROBLEMS]:
        yield f"skipped: {printable(problem)}"


def _functions(top: "TopFunctions") -> TextTable:
    headings = ("tottime", "cumtime", "ncalls", "primitive", "function")
    rows: list[Row] = [
        (
            f"{function.total_time:.6f}",
            f"{function.cumulative_time:.6f}",
            f"{function.total_calls:,}",
            f"{function.prim_calls:,}",
            printable(function.function_name),
        )
        for function in top.functions
    ]
    return TextTable(headings, rows, "functions")
