"""What the commands of `rule-runner profile` do, once the command line is parsed."""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from builtin_rules.profiler_report.wording import duration, moment
from rule_runner import config as configuration
from rule_runner.errors import OutputError, TrialError, UsageError
from rule_runner.openings import trial_name
from rule_runner.profiling.opening import present, reading
from rule_runner.profiling.printing import Table, say, show
from rule_runner.results import dump_json
from rule_runner.show import printable

if TYPE_CHECKING:
    from rule_runner.profiling.overview import FilesReport, ProfileReport
    from smdebug.profiler.analysis.top_functions import TopFunctions

RULE: Final = "ProfilerReport"
PROBLEMS: Final = 20
SECOND_US: Final = 1_000_000


def show_profile(path: str, form: str, *, check: bool) -> int:
    """Print what profiler data there are; return the exit code."""
    from rule_runner.profiling.overview import overview  # noqa: PLC0415 - one command only

    report = overview(path, check=check)
    if form == "json":
        say(dump_json(report, indent=2))
    else:
        show(_head(report), _tables(report))
    return 0


def _head(report: "ProfileReport") -> Iterator[str]:
    yield f"profiler data: {printable(report.name)}"
    yield f"path: {printable(report.path)}"
    yield f"ended: {'yes' if report.ended else 'no, there is no end mark'}"
    nodes = ", ".join(map(printable, report.nodes))
    yield f"nodes: {len(report.nodes)}{nodes and f' ({nodes})'}"
    if report.begin_us:
        seconds = (report.end_us - report.begin_us) / SECOND_US
        yield f"time: {moment(report.begin_us)} to {moment(report.end_us)}, {duration(seconds)}"
    if not report.framework:
        yield "framework: no timelines; nothing is known of steps"


def _tables(report: "ProfileReport") -> Iterator[Table]:
    where = ("node", "files", "size", "first file", "last file")
    yield Table("system metrics", where, [_files(one) for one in report.system])
    yield Table(
        "framework timelines",
        ("kind", *where),
        [(printable(one.kind), *_files(one)) for one in report.framework],
    )
    yield Table(
        "Python profiles",
        ("node", "profiler", "files", "modes"),
        [
            (printable(one.node), one.profiler, f"{one.files:,}", " ".join(one.modes))
            for one in report.python
        ],
    )
    problems = [(printable(one),) for one in report.problems[:PROBLEMS]]
    more = len(report.problems) - len(problems)
    yield Table(
        "problems", ("what is wrong",), [*problems, *([(f"and {more} more",)] * (more > 0))]
    )


def _files(one: "FilesReport") -> tuple[str, ...]:
    from rich.filesize import decimal  # noqa: PLC0415 - not for the help

    size = "" if one.nbytes is None else decimal(one.nbytes)
    return printable(one.node), f"{one.files:,}", size, moment(one.begin_us), moment(one.end_us)


def report(path: str, output: str | None, parameters: Sequence[str], *, overwrite: bool) -> int:
    """Run ProfilerReport over the data that are there, and print where its page is.

    Raises
    ------
    RuleRunnerError
        As the evaluation of a rule.
    """
    from rule_runner.evaluated import exit_code  # noqa: PLC0415 - one command only
    from rule_runner.options import rule_jobs  # noqa: PLC0415
    from rule_runner.rule_requests import RuleRequest  # noqa: PLC0415
    from rule_runner.runner import Runner  # noqa: PLC0415
    from rule_runner.windows import placed  # noqa: PLC0415

    now = datetime.now().astimezone()
    folder = Path(output) if output else configuration.default_output(trial_name(path), now)
    configuration.check_is_local(output or str(folder), "--output of profile report")
    jobs = rule_jobs([RuleRequest(name=RULE)], parameters)
    config = configuration.EvaluationConfig(
        trial=path,
        profiler_trial=path,
        rules=placed(jobs, None, path),
        output=folder,
        wait=False,
        overwrite=overwrite,
    )
    evaluated = Runner(config).run()
    code = exit_code(evaluated, fail_on_issues=False)
    problem = evaluated.unwritten or (code and evaluated.result.rules[0].status_details)
    if problem:
        print(printable(str(problem).strip()), file=sys.stderr)  # noqa: T201 - no result
    page = folder / "profiler-output" / "profiler-report.html"
    if page.exists() and not evaluated.unwritten:
        say(f"Report: {printable(page)}")
    return code


def timeline(
    path: str, start: str | None, end: str | None, unit: str, mode: str | None, output: str
) -> int:
    """Merge timelines into one trace, and print what is in it.

    Raises
    ------
    UsageError
        If `start` or `end` is no time, or no step.
    TrialError
        If there is nothing of that range, or it cannot be read.
    OutputError
        If the trace cannot be written.
    """
    from smdebug.core.modes import ModeKeys  # noqa: PLC0415 - one command only
    from smdebug.profiler.analysis.utils.merge_timelines import (  # noqa: PLC0415
        merge_timelines,
    )

    bound = parse_time if unit == "time" else _parse_step
    first, last = _bound("--start", start, bound), _bound("--end", end, bound)
    chosen = None if mode is None else ModeKeys[mode.upper()]
    present(path)
    try:
        with reading():
            merged = merge_timelines(path, output, first, last, unit, mode=chosen)
    except OSError as err:
        msg = f"Trace {output!r} cannot be written: {err.strerror or err}."
        raise OutputError(msg) from err
    for problem in merged.problems[:PROBLEMS]:
        print(printable(problem), file=sys.stderr)  # noqa: T201 - no result
    say(f"Trace: {printable(merged.path)} ({merged.events:,} events). Open it in Perfetto.")
    return 0


def _bound(option: str, text: str | None, parse: Callable[[str], float]) -> float | None:
    if text is None:
        return None
    try:
        return parse(text)
    except (ValueError, OverflowError) as err:
        what = "a step" if parse is _parse_step else "epoch seconds or a time in ISO format"
        msg = f"Option {option} must be {what}, got {text!r}."
        raise UsageError(msg) from err


def parse_time(text: str) -> float:
    """Return epoch microseconds of a time in epoch seconds or in ISO format; UTC by default.

    >>> parse_time("1600000000.5"), parse_time("2020-09-13T12:26:40")
    (1600000000500000.0, 1600000000000000.0)
    """
    try:
        seconds = float(text)
    except ValueError:
        given = datetime.fromisoformat(text)
        seconds = (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
    if not abs(seconds) < 1e12:  # noqa: PLR2004 - some 30,000 years
        raise ValueError
    return seconds * SECOND_US


def _parse_step(text: str) -> float:
    step = int(text)
    if step < 0:
        raise ValueError
    return step


def python(
    path: str, step: str | None, mode: str | None, node: str | None, count: int, sort: str
) -> int:
    """Print the functions that took most of the training job's time.

    Raises
    ------
    UsageError
        If `step` is no range of steps.
    TrialError
        If there are no profiles that could be read.
    """
    from smdebug.profiler.analysis.top_functions import top_functions  # noqa: PLC0415

    steps = None if step is None else _steps(step)
    present(path)
    with reading():
        found = top_functions(path, steps=steps, mode=mode, node=node, sort=sort, n=count)
    if not found.chosen:
        raise TrialError(_without_profiles(path, found))
    show(_head_of_functions(found), [_functions(found)])
    return 0


def _steps(text: str) -> tuple[int, int]:
    """Return the first step and the one behind the last of ``9:12``, or of ``9``."""
    first, colon, last = text.partition(":")
    try:
        start = int(_parse_step(first))
        end = int(_parse_step(last)) if colon else start + 1
    except ValueError as err:
        msg = f"Option --step must be a step, or FIRST:LAST without the last, got {text!r}."
        raise UsageError(msg) from err
    return start, end


def _without_profiles(path: str, found: "TopFunctions") -> str:
    """Return the sentence about a folder without profiles, or without those that are wanted."""
    if not found.available:
        return (
            f"Folder {path!r} holds no Python profiles. Give the folder that a profiler wrote to: "
            "the one above 'framework'."
        )
    modes = ", ".join(sorted({one.start_mode.name.lower() for one in found.available}))
    nodes = ", ".join(sorted({repr(one.node_id) for one in found.available}))
    return (
        f"No profile of cProfile in {path!r} is of these steps, mode and node. There are some of "
        f"the modes {modes}, and of the nodes {nodes}."
    )


def _head_of_functions(found: "TopFunctions") -> Iterator[str]:
    spans, files = len(found.chosen), len(found.available)
    yield f"profiles: {spans:,} of {files:,} files of Python profilers"
    nodes = sorted({printable(one.node_id) for one in found.chosen})
    if nodes:
        yield f"nodes: {', '.join(nodes)}"
    yield f"time: {found.time_in_all:.4g} s in {found.functions_in_all:,} functions"
    for problem in [*found.problems.values()][:PROBLEMS]:
        yield f"left out: {printable(problem)}"


def _functions(found: "TopFunctions") -> Table:
    headings = ("tottime", "cumtime", "ncalls", "primitive", "function")
    rows: list[tuple[str, ...]] = [
        (
            f"{one.total_time:.6f}",
            f"{one.cumulative_time:.6f}",
            f"{one.total_calls:,}",
            f"{one.primitive_calls:,}",
            printable(one.name),
        )
        for one in found.functions
    ]
    return Table("functions", headings, rows)
