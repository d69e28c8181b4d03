"""evaluate: judges a trial by rules; commands, Python programs and rule tests all call it."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from msgspec.structs import replace as with_fields

from rule_runner.config.model import EvaluationConfig
from rule_runner.engine.observer import Observer
from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.engine.runner import Runner
from rule_runner.engine.stop_requests import Signals
from rule_runner.garbage import collect_as_usual
from rule_runner.notify.sinks import EventSink
from rule_runner.results.issues.acknowledged import acknowledged_if_readable
from rule_runner.steps.watcher import Waiter


def evaluate(
    config: EvaluationConfig,
    *,
    sinks: Sequence[EventSink] = (),
    observer: Observer | None = None,
    waiter: Waiter | None = None,
    recorded: Callable[[], None] = lambda: None,
    signals: Signals | None = None,
) -> EvaluationOutcome:
    """Judge a trial up to the verdicts, and return the results as people acknowledged them.

    Parameters are those of `Runner`.

    Raises
    ------
    ClientError
        If the trial does not exist, or a parameter is wrong.
    OutputError
        If the output folder cannot be used.
    UsageError
        If there is no such executor to measure on.
    """
    collect_as_usual()
    with _executor(config.processes.measure_on) as executor:
        outcome = Runner(
            config,
            sinks=sinks,
            observer=observer,
            waiter=waiter,
            recorded=recorded,
            signals=signals,
            executor=executor,
        ).run()
    rules = acknowledged_if_readable(config.output, outcome.result.rules)
    return replace(outcome, result=with_fields(outcome.result, rules=rules))


def _executor(name: str | None) -> AbstractContextManager[Executor | None]:
    """Open the executor that measures the trial; None if this process does."""
    if name is None:
        return nullcontext()
    from rule_runner.executors import open_executor

    return open_executor(name)
