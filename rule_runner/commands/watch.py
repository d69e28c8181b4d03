"""watch: judges the trials below some roots as they appear, each in a process of its own."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace as with_sources
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from rule_core.clock import SystemClock
from rule_core.severity import Severity
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.uri import is_s3
from rule_runner.config.job_file.definition import JobDefinition
from rule_runner.config.job_file.reader import read_job_file
from rule_runner.config.model import check_is_local
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import rule_jobs
from rule_runner.config.rule_options import parse_requests
from rule_runner.engine.stop_requests import signals_to
from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_ISSUES,
    EXIT_SIGNAL,
    JobError,
    UsageError,
    counted,
    translated,
)
from rule_runner.escape import print_lines
from rule_runner.index.commands import Commands
from rule_runner.index.database import WatchDatabase
from rule_runner.index.outputs import base_of
from rule_runner.index.reader import IndexReader
from rule_runner.notify.sinks.spec import parse_sinks, writes_to_stdout
from rule_runner.results.retention import Retention, parse_retention
from rule_runner.results.status import Outcome
from rule_runner.steps.watcher import TrialWatcher
from rule_runner.watch.alerts.alerting import alerting, services_of
from rule_runner.watch.bucket_queue import following
from rule_runner.watch.config import Assignment, WatchConfig, read_config
from rule_runner.watch.controller import Controller
from rule_runner.watch.discovery import parse_root
from rule_runner.watch.evaluations import open_evaluations
from rule_runner.watch.options import Intervals, WatchOptions

DATABASE: Final = "watch.sqlite"
INTERVALS: Final = Intervals()
_LOCAL_BASE: Final = "rule-output/watch"  # of the database, if outputs are in S3


class WatchRequest(NamedTuple):
    """What to watch: the options that `watch` and `serve` share.

    Attributes
    ----------
    roots
        In addition to those of the configuration.
    config, database
        Files; None: the defaults.
    sources
        How to read outputs of other writers; it precedes that of the configuration.
    rebuild
        Whether to make the database again from the results.
    baseline, trend
        See `EvaluationRequest`; they add the rule to all rules of the configuration.
    """

    roots: Sequence[str] = ()
    config: str | None = None
    database: str | None = None
    sources: SourceOptions = DEFAULT
    rebuild: bool = False
    baseline: str | None = None
    trend: str | None = None


def watch(
    request: WatchRequest,
    *,
    once: bool = False,
    fails_on: Severity | None = None,
    intervals: Intervals = INTERVALS,
) -> int:
    """Judge the trials below roots until a signal arrives, and return the exit code.

    Parameters
    ----------
    once
        Whether to judge what is there now, and end.
    fails_on
        With `once`: the severity from which an issue sets the exit code.

    Raises
    ------
    ClientError
        If the configuration is not valid.
    OutputError
        If the database cannot be used, or another process uses it.
    TemporaryError
        With `once`: if the executor cannot be used.
    UsageError
        If options contradict each other, or the library of the executor is not installed.
    """
    with watching(request, Commands(), intervals, once=once) as controller:
        with stopping(controller.stop) as numbers:
            controller.run()
        if numbers:
            return EXIT_SIGNAL + numbers[0]
        return _end(controller, fails_on) if once else 0


@contextmanager
def watching(
    request: WatchRequest, commands: Commands, intervals: Intervals, *, once: bool = False
) -> Iterator[Controller]:
    """Return a controller that is ready to run, with its alerts; see `watch`."""
    config = _config(request)
    options = WatchOptions(_jobs(config), once, _retention(config), intervals, commands)
    services = services_of(config.alerts) if config.alerts else {}
    path = _database_path(config, request.database)
    places = [with_sources(parse_root(text), sources=config.sources) for text in config.roots]
    with ExitStack() as stack:
        folder = path.with_name(f"{path.name}-evaluations")
        evaluations = stack.enter_context(open_evaluations(config, folder, options.intervals))
        waiter = TrialWatcher([Path(root.base) for root in places if root.is_local])
        stack.callback(waiter.close)
        controller = Controller(
            config,
            places,
            stack.enter_context(
                WatchDatabase.empty(path) if request.rebuild else WatchDatabase(path)
            ),
            evaluations,
            SystemClock(),
            waiter,
            options,
        )
        if request.rebuild:
            controller.rebuild()
        stack.enter_context(alerting(config.alerts, path, services, config.public_url, once=once))
        stack.enter_context(following(config.queue, controller.expect))
        yield controller


def _config(request: WatchRequest) -> WatchConfig:
    """Return the configuration with all roots, checked as far as that is possible without trials.

    Raises
    ------
    ClientError
        If it is not valid.
    UsageError
        If there are no roots.
    """
    config = WatchConfig() if request.config is None else read_config(Path(request.config))
    output = config.output
    config = replace(
        config,
        roots=tuple(dict.fromkeys((*config.roots, *request.roots))),
        output=output if is_s3(output) else str(Path(output).absolute()),
        sources=request.sources.over(config.sources),
        judge=tuple(with_baseline(assignment, request) for assignment in config.judge),
    )
    if not config.roots:
        raise UsageError(
            "No root was given: give a folder or s3:// address with trials, or --config FILE."
        )
    parse_sinks(config.sinks, sys.stdout)
    kind = writes_to_stdout(config.sinks)
    if kind:
        raise UsageError(
            f"Sink {kind!r} cannot be used by watch: its evaluations run in the background."
        )
    for assignment in config.judge:
        rule_jobs(
            EvaluationRequest(
                rules=tuple(parse_requests(list(assignment.rules), [])),
                parameters=assignment.parameters,
                modes=assignment.modes,
            )
        )
    return config


def with_baseline(assignment: Assignment, request: WatchRequest) -> Assignment:
    """Return rules with the rule `Baseline`, if the request has a baseline.

    Raises
    ------
    UsageError
        If they are those of a job file, or the request has a trend alone.
    """
    paths = [path and str(Path(path).absolute()) for path in (request.baseline, request.trend)]
    added = EvaluationRequest(baseline=paths[0], trend=paths[1]).with_baseline()
    if assignment.ignore or not added.rules:
        return assignment
    if assignment.job is not None:
        raise UsageError("Option --baseline cannot be used with a job file, which names the rules.")
    return replace(
        assignment,
        rules=(*assignment.rules, *(rule.name or "" for rule in added.rules)),
        parameters=(*assignment.parameters, *added.parameters),
    )


def _jobs(config: WatchConfig) -> dict[str, JobDefinition]:
    """Return the job files of a configuration by their paths."""
    paths = dict.fromkeys(item.job for item in config.judge if item.job is not None)
    return {path: read_job_file(path) for path in paths}


def _retention(config: WatchConfig) -> Retention | None:
    """Return which outputs to keep; None: all.

    Raises
    ------
    JobError
        If the configuration is malformed, or the outputs are in S3.
    """
    if config.retention is None:
        return None
    if is_s3(config.output):
        raise JobError("Field 'retention' needs a local output folder. In S3, use lifecycle rules.")
    names = "Option --retention", "Field 'retention'"
    with translated(JobError, UsageError, words=lambda err: str(err).replace(*names)):
        return parse_retention(str(config.retention))


def _database_path(config: WatchConfig, database: str | None) -> Path:
    if database is not None:
        check_is_local(database, "--database")
        return Path(database).absolute()
    base = _LOCAL_BASE if is_s3(config.output) else base_of(config.output)
    return Path(base).absolute() / DATABASE


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Call `stop` at a signal, whose number is then in the list; a second one ends the process."""
    numbers: list[int] = []

    def receive(number: int) -> None:
        if numbers:
            os._exit(EXIT_SIGNAL + number)
        numbers.append(number)
        stop()

    with signals_to(receive):
        yield numbers


def _end(controller: Controller, fails_on: Severity | None) -> int:
    """Print what was judged, and return the exit code."""
    index = controller.database
    print(summary_of(index))
    print_lines(controller.problems, sys.stderr)
    errors = sum(
        count for (_, outcome), count in index.counts().items() if outcome == Outcome.ERROR
    )
    if errors or controller.problems:
        return EXIT_CLIENT
    return EXIT_ISSUES if fails_on is not None and index.has_issues(fails_on) else 0


def summary_of(index: IndexReader) -> str:
    """Return the number of trials by outcome: ``3 trials: 1 IssuesFound, 2 NoIssuesFound``."""
    counts: Counter[str] = Counter()
    for (state, outcome), count in index.counts().items():
        counts[outcome or state] += count
    parts = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{counted(counts.total(), 'trial')}{parts and f': {parts}'}"
