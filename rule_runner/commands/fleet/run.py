"""fleet run: judges the trials of a plan, or of one shard of it."""

import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import redirect_stdout
from queue import SimpleQueue

from msgspec.structs import replace

from rule_runner.batch.plan import PlanLine, read_plan
from rule_runner.batch.shards import Shard
from rule_runner.commands.fleet.judging import (
    Tally,
    TrialOutcome,
    TrialState,
    failed,
    judge,
    judge_in_worker,
)
from rule_runner.engine.stop_requests import Signals, signals_to
from rule_runner.errors import EXIT_INTERNAL, EXIT_TEMPORARY, raised
from rule_runner.executors import WorkerLostError, open_executor
from rule_runner.results.json_text import dump_json

Show = Callable[[TrialOutcome], None]


def run(place: str, shard: Shard, executor: str | None, form: str) -> int:
    """Judge the trials of a shard, print how each ended, and return the exit code.

    Parameters
    ----------
    place
        The plan; see `read_plan`.
    executor
        Where to judge; None: in this process, one trial after the other.
    form
        ``text`` or ``jsonl``.

    Raises
    ------
    UsageError
        If the plan cannot be read, or there is no such executor.
    """
    tally = Tally()
    stdout = sys.stdout

    def show(outcome: TrialOutcome) -> None:
        tally.add(outcome)
        line = dump_json(outcome) if form == "jsonl" else outcome.text()
        print(line, file=stdout, flush=True)

    with redirect_stdout(sys.stderr):  # what rules print
        if executor is None:
            number = _judge_here(read_plan(place, shard), show)
        else:
            number = _judge_on(executor, [*read_plan(place, shard)], show)
    print(tally.text(shard), file=sys.stderr)
    if number:
        name = signal.Signals(number).name
        print(f"{name} ended the run: start it again to judge the rest.", file=sys.stderr)
    return tally.exit_code(number)


def _judge_here(lines: Iterator[PlanLine], show: Show) -> int:
    """Judge lines one after the other; return the signal that ended this, or 0."""
    with Signals() as signals:
        for line in lines:
            show(judge(line, signals))
            if signals.number:
                break
        return signals.number


def _judge_on(spec: str, lines: list[PlanLine], show: Show) -> int:
    """Judge lines on an executor; return the signal that ended this, or 0."""
    received = 0
    # It takes items from signal handlers too.
    news: SimpleQueue[Future[TrialOutcome] | int] = SimpleQueue()
    with open_executor(spec) as executor, signals_to(news.put):
        pending: dict[Future[TrialOutcome], PlanLine] = {}
        for line in lines:
            future = executor.submit(judge_in_worker, line)
            pending[future] = line
            future.add_done_callback(news.put)
        while pending:
            item = news.get()
            if isinstance(item, int):
                received = received or item
                executor.stop()
            else:
                line = pending.pop(item)
                if not item.cancelled():
                    show(_outcome(item, line, stopped=bool(received)))
    return received


def _outcome(future: Future[TrialOutcome], line: PlanLine, *, stopped: bool) -> TrialOutcome:
    """Return the outcome of a call that ended, also if its worker is lost."""
    err = future.exception()
    if err is None:
        return future.result()
    if not isinstance(err, WorkerLostError | CancelledError):
        problem = raised("The executor", err, "here")
        return failed(line.number, problem, EXIT_INTERNAL, line.request())
    outcome = failed(line.number, str(err), EXIT_TEMPORARY, line.request())
    return replace(outcome, state=TrialState.STOPPED) if stopped else outcome
