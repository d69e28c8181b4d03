"""Runner: evaluates the rule jobs of one configuration, step by step, up to their verdicts."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from rule_core.clock import Clock, SystemClock
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.wait_budget import WaitBudget, WaitEndedError
from rule_runner.config.model import EvaluationConfig
from rule_runner.engine.evaluation_context import WRITE_EVERY_S, EvaluationContext
from rule_runner.engine.invocation import UNREADABLE
from rule_runner.engine.observer import Observer, WaitNotices, all_judged
from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.engine.rule_job import RuleJob
from rule_runner.engine.stop_requests import (
    PAUSED,
    Signals,
    StopReason,
    StopRequests,
    end_process,
)
from rule_runner.engine.verdicts import Verdicts
from rule_runner.errors import EXIT_OUTPUT, ClientError, OutputError
from rule_runner.file_descriptors import exhausted
from rule_runner.logs import get_logger
from rule_runner.notify.delivery import Undelivered
from rule_runner.notify.sinks import EventSink
from rule_runner.results.status import CLIENT_ERROR, INTERNAL_ERROR
from rule_runner.steps.protocol import StepSource
from rule_runner.steps.watcher import POLL_S, TrialWatcher, Waiter

_log: Final = get_logger(__name__)
QUIET: Final = "The run counts as ended: nothing new came within the idle timeout."
STOPPED_DRAIN_S: Final = 2.0  # for the sinks after a signal, within the time that it leaves


class Runner:
    """Evaluates the rule jobs of one configuration, once.

    Parameters
    ----------
    config
        What to evaluate, and how.
    sinks
        Receivers of events, in addition to the output folder.
    observer
        Receives the progress.
    clock, waiter
        By default the system clock, and file notifications.
    recorded, executor
        See `EvaluationContext`.
    signals
        Handles SIGTERM and SIGINT, which stop the evaluation and keep its results; None leaves
        them to the process.

    Raises
    ------
    ClientError
        If the trial does not exist, or a parameter is wrong.
    OutputError
        If the output folder cannot be used.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        *,
        sinks: Sequence[EventSink] = (),
        observer: Observer | None = None,
        clock: Clock | None = None,
        waiter: Waiter | None = None,
        recorded: Callable[[], None] = lambda: None,
        signals: Signals | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.observer = observer or Observer()
        waits = config.waits
        self.stops = StopRequests(
            self.clock,
            waits.timeout,
            waits.idle_timeout or None,
            config.stop_files,
            waits.stop_grace,
            None if waits.pause_file is None else Path(waits.pause_file),
        )
        patience = WaitBudget(self.clock, self.stops.seconds_left)
        self.context = EvaluationContext(config, sinks, self.clock, patience, recorded, executor)
        self.jobs = self.context.jobs
        self.step_sources = self.context.step_sources
        self.waiter = waiter or self._watch()
        self._signals = signals
        self._began = self.clock.monotonic()
        self._notices = WaitNotices(self.observer, self.clock)
        self._verdicts = Verdicts(self.context, self.observer)

    def _watch(self) -> Waiter:
        watcher = TrialWatcher(self.context.step_sources.roots())
        self.context.closing.callback(watcher.close)
        return watcher

    def run(self) -> EvaluationOutcome:
        """Evaluate, and return the results."""
        stop: StopReason | None = None
        handling = self._signals and self._signals.evaluating(self.stops, self._end_at_once)
        with self.context.closing, handling or nullcontext():
            if self.context.earlier:
                self._resume()
            else:
                stop = self._evaluate()
            undelivered = self._drain()
            self._note_refusals(undelivered)
        # A signal after the last step does not change a verdict; the caller still learns of it.
        stop = stop or self.stops.signalled
        result = self.context.result()
        ends = [rule.ended_at or "" for rule in result.rules]
        return EvaluationOutcome(
            result,
            stop,
            self._verdicts.output_error,
            undelivered_events=undelivered,
            earlier=max(ends) if self.context.earlier else "",
        )

    def _resume(self) -> None:
        """Finish the remaining actions of an evaluation that has ended; judge nothing again."""
        self.observer.decided([job.state for job in self.jobs])
        with self._verdicts.noting_failures():
            self.context.resume()

    def _evaluate(self) -> StopReason | None:
        """Judge all steps and record the verdicts; return why it stopped early, if it did."""
        stop: StopReason | None = None
        try:
            self.context.begin()
            stop = self._judge_until_done()
        except (StorageUnavailableError, WaitEndedError) as err:
            stop = self._stopped_waiting(err)
        except ClientError as err:
            self._verdicts.fail(CLIENT_ERROR + str(err))
        except OutputError as err:
            self._verdicts.output_error = str(err)
            stop = StopReason(str(err), EXIT_OUTPUT)
        except Exception as err:  # noqa: BLE001 - our own defect: the rule jobs end with Error
            _log.exception("evaluation_failed")
            limit_reached = exhausted(err)
            self._verdicts.fail(CLIENT_ERROR + limit_reached if limit_reached else INTERNAL_ERROR)
        if stop is PAUSED:
            self._verdicts.postpone()
        else:
            self._verdicts.give(stop)
        return stop

    def _stopped_waiting(self, err: StorageUnavailableError | WaitEndedError) -> StopReason | None:
        """Return the stop request that ended the wait for storage; fail if storage did."""
        stop = self.stops.reason()
        if stop is None or not getattr(err, "transient", True):
            self._verdicts.fail(CLIENT_ERROR + str(err))
        else:
            for job in self.jobs:
                job.state.note(str(err))
        return stop

    def _drain(self) -> tuple[Undelivered, ...]:
        """Send the remaining events once results are written, until a signal arrives."""
        signalled = self.stops.signalled is not None
        deadline = self.config.messages.sink_deadline
        seconds = min(deadline, STOPPED_DRAIN_S) if signalled else deadline

        def stopped() -> bool:
            return not signalled and self.stops.signalled is not None

        return tuple(self.context.publisher.drain(seconds, stopped))

    def _note_refusals(self, undelivered: Sequence[Undelivered]) -> None:
        """Note refused events in the first result."""
        notes = [events.refusal for events in undelivered if events.refused]
        if notes and not self.context.earlier:
            for note in notes:
                self.jobs[0].state.note(note)
            self._verdicts.write()

    def _judge_until_done(self) -> StopReason | None:
        """Judge steps as they become ready, until nothing is left to judge or a stop request."""
        while True:
            self._look()
            self.context.record_action_results()
            self._check_that_trials_exist()
            self.context.make_rules()
            self.context.begin_measuring()
            stop = self._judge_ready()
            live = [job for job in self.jobs if job.live]
            if not stop and all(all_judged(job) for job in live):
                return None
            if not (stop or self.config.waits.wait or self.step_sources.ending):
                return None
            if self._is_to_pause and not stop:
                return PAUSED
            stop = stop or self._wait()
            if stop:
                self._look_for_the_end()
                return stop

    def _check_that_trials_exist(self) -> None:
        """Stop waiting for missing trial folders once `wait_for_trial` seconds have passed."""
        if self.clock.monotonic() - self._began >= self.config.waits.wait_for_trial:
            self.step_sources.check_that_trials_exist()

    def _look(self, *, at_once: bool = False, last: bool = False) -> bool:
        """Look for new files and return whether anything changed; see `StepSource.look`."""
        ended, ending = self.step_sources.ended, self.step_sources.ending
        changed = self.step_sources.look(at_once=at_once, last=last)
        if changed or self.step_sources.ending > ending:
            self._record_progress(ended)
            return True
        return False

    def _record_progress(self, ended: bool) -> None:
        """Restart the idle timers; publish the end of the trials unless they had `ended` before."""
        self.stops.record_progress()
        self.context.last_change = self.clock.monotonic()
        self._notices.reset()
        for job in self.jobs:
            job.waits = False
        if self.step_sources.ended and not ended:
            self.context.publisher.publish_status(trial_ended=True)

    def _look_for_the_end(self) -> None:
        """Look once more if every known step is judged: the trial may have ended meanwhile."""
        if all(
            job.position >= max(job.step_source.all_steps, default=-1)
            for job in self.jobs
            if job.live
        ):
            with suppress(StorageUnavailableError):
                self._look(last=True)

    def _judge_ready(self) -> StopReason | None:
        """Judge every ready step with all rules before the next one."""
        stop = self.stops.reason()
        if stop:
            return stop
        for source in self.step_sources.all:
            stop = self._judge_over(source, [job for job in self.jobs if job.step_source is source])
            if stop:
                return stop
        return None

    def _judge_over(self, source: StepSource, jobs: list[RuleJob]) -> StopReason | None:
        """Judge every ready step of one source with its rule jobs."""
        position = min((job.position for job in jobs if job.live), default=-1)
        for step in source.ready(position):
            missing_workers, is_wanted, is_live = None, False, False
            for job in jobs:
                if job.wants(step):
                    if not is_wanted:  # it may read what no rule wants
                        missing_workers, is_wanted = source.missing_workers(step), True
                    self._judge(job, step, missing_workers)
                is_live = is_live or job.live
            self.stops.record_progress()
            context, seconds = self.context, self.stops.last_progress - self.context.written
            if context.changed or seconds >= WRITE_EVERY_S:
                context.record()
            steps = source.steps
            self.observer.progress(bisect_right(steps, step), len(steps))
            stop = self.stops.reason()
            if stop or not is_live:
                return stop
        return None

    def _judge(self, job: RuleJob, step: int, missing_workers: list[str] | None) -> None:
        """Judge a step, or skip it if it cannot be read."""
        if missing_workers is None:
            job.skip(step, UNREADABLE)
        elif job.judge(step, missing_workers):
            self.context.changed.append(job)

    @property
    def _is_to_pause(self) -> bool:
        """Whether a pause is requested, and not the end of a trial is near."""
        return self.stops.pauses and not self.step_sources.ending

    def _wait(self) -> StopReason | None:
        """Wait for new files, and report a long wait to the observer."""
        self._notices.wait_on(self.jobs)
        if not self.step_sources.ending and any(source.steps for source in self.step_sources.all):
            self.observer.following()
        self._judge_silence()
        stop = self.stops.reason() or self._idle()
        if stop is None and any(job.live for job in self.jobs):
            self.waiter.wait(0.1 if self.step_sources.ending else POLL_S)
        return stop

    def _idle(self) -> StopReason | None:
        """Return the idle time limit if it is exceeded and nothing is left to judge.

        One more look may find something new, and a log that is quiet for so long is judged up to
        its last complete row.
        """
        stop = self.stops.idle(self.config.waits.end_grace if self.step_sources.ending else 0.0)
        return None if stop is None or self._look(at_once=True) or self._settle() else stop

    def _settle(self) -> bool:
        """Let the last rows of quiet logs be judged; return whether that changes anything."""
        if not self.step_sources.settle():
            return False
        self._record_progress(self.step_sources.ended)
        for job in self.jobs:
            job.state.note(QUIET)
        return True

    def _judge_silence(self) -> None:
        """Let rules judge that no data has arrived after the last step."""
        self.context.record([job for job in self.jobs if self._is_met_by_silence(job)])

    @staticmethod
    def _is_met_by_silence(job: RuleJob) -> bool:
        source = job.step_source
        if not source.steps or source.ending or source.ended:
            return False
        return job.live and job.wait(source.steps[-1])

    def _end_at_once(self, number: int) -> None:
        """Write the results so far and end the process, because a rule does not return."""
        with suppress(Exception):
            self.stops.by_signal(number)
            if not self.context.earlier:
                self._verdicts.give(self.stops.reason(), finish=False)
        end_process(number)
