"""evaluate: rule jobs over one trial, step by step, from its opening to their verdicts."""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Final

import structlog

from rule_runner.config import EvaluationConfig
from rule_runner.delivery import DEADLINE_S, Undelivered
from rule_runner.errors import (
    EXIT_OUTPUT,
    EXIT_SIGNAL,
    ClientError,
    OutputError,
    TrialError,
)
from rule_runner.evaluated import Evaluated
from rule_runner.evaluation import Evaluation
from rule_runner.fetch import remove_private_folders
from rule_runner.invocation import LATE, UNREADABLE
from rule_runner.job import RuleJob
from rule_runner.session import Session
from rule_runner.sinks import EventSink
from rule_runner.status import CLIENT_ERROR, INTERNAL_ERROR
from rule_runner.stopping import StopReason, StopRequests, signals
from rule_runner.walk import Walk
from rule_runner.watch import POLL_S, TrialWatcher, Waiter
from smdebug.core.clock import Clock, SystemClock
from smdebug.storage import StorageUnavailableError

_log: Final = structlog.get_logger()
SAY_AFTER_S: Final = 10.0
SAY_EVERY_S: Final = 60.0
STOPPED_DRAIN_S: Final = 2.0  # for the sinks after a signal, within the time that it leaves


class Observer:
    """What is told while an evaluation runs; does nothing by default."""

    def progress(self, judged: int, known: int) -> None:
        """Hear that `judged` of `known` steps are done."""

    def waiting(self, text: str, seconds: float) -> None:
        """Hear what has been waited for, and for how long."""

    def decided(self, evaluations: Sequence[Evaluation]) -> None:
        """Hear that every rule has its verdict; actions and sinks may still be at work."""


class Runner:
    """Evaluates the rule jobs of one configuration, once.

    Parameters
    ----------
    config
        What is evaluated, and how.
    sinks
        Where events go besides the output folder.
    sink_deadline
        Seconds that they may take after the end.
    observer
        Who is told how far it is.
    clock, waiter
        Tell the time and wait; by default the machine's clock, and file notifications.
    handle_signals
        Whether SIGTERM and SIGINT end the evaluation, with its results: in the main thread only.

    Raises
    ------
    ClientError
        If the trial is not there, or a parameter is wrong.
    OutputError
        If the output folder cannot be used.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        *,
        sinks: Sequence[EventSink] = (),
        sink_deadline: float = DEADLINE_S,
        observer: Observer | None = None,
        clock: Clock | None = None,
        waiter: Waiter | None = None,
        handle_signals: bool = True,
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.observer = observer or Observer()
        self._sink_deadline = sink_deadline
        self.session = Session(config, sinks, self.clock)
        self.jobs = self.session.jobs
        self.walks = self.session.walks
        self.waiter = waiter or self._watch()
        self.stops = StopRequests(
            self.clock, config.timeout, config.idle_timeout, config.stop_files, config.stop_grace
        )
        self._handle_signals = handle_signals
        self._began = self.clock.monotonic()
        self._waited_since: float | None = None
        self._said_at = 0.0
        self._unwritten = ""

    def _watch(self) -> Waiter:
        watcher = TrialWatcher(self.session.walks.roots())
        self.session.closing.callback(watcher.close)
        return watcher

    def run(self) -> Evaluated:
        """Evaluate, and return what it came to."""
        stop: StopReason | None = None
        with self.session.closing, self._signals():
            try:
                self.session.begin()
                stop = self._walk()
            except (StorageUnavailableError, ClientError) as err:
                self._fail(CLIENT_ERROR + str(err))
            except OutputError as err:
                self._unwritten = str(err)
                stop = StopReason(self._unwritten, EXIT_OUTPUT)
            except Exception:  # noqa: BLE001 - a defect of ours: the rule jobs end with Error
                _log.exception("evaluation_broke")
                self._fail(INTERNAL_ERROR)
            self._finish(stop)
            undelivered = self._drain()
        # A signal that came after the last step costs no verdict; the caller may want to know.
        stop = stop or self.stops.signalled
        return Evaluated(self.session.result(), stop, self._unwritten, undelivered=undelivered)

    def _signals(self) -> AbstractContextManager[None]:
        return signals(self.stops, self._end_at_once) if self._handle_signals else nullcontext()

    def _drain(self) -> tuple[Undelivered, ...]:
        """Let the sinks take what is left; verdicts and results are there. A signal ends it."""
        signalled = self.stops.signalled is not None
        seconds = min(self._sink_deadline, STOPPED_DRAIN_S) if signalled else self._sink_deadline

        def stopped() -> bool:
            return not signalled and self.stops.signalled is not None

        return tuple(self.session.announcer.drain(seconds, stopped))

    def _walk(self) -> StopReason | None:
        """Judge steps as they become ready, until there is nothing more to do."""
        while True:
            self._look()
            self.session.take_outcomes()
            self._check_that_trials_came()
            self.session.make_rules()
            stop = self._judge_ready()
            live = [job for job in self.jobs if job.live]
            if stop or all(self._all_judged(job) for job in live):
                return stop
            if not self.config.wait and not self.walks.ending:
                return None
            stop = self._wait()
            if stop:
                return stop

    @staticmethod
    def _all_judged(job: RuleJob) -> bool:
        """Say whether the trial of a rule job has ended and no step of it is left."""
        steps = job.walk.all_steps
        return job.walk.ended and job.position >= (steps[-1] if steps else -1)

    def _check_that_trials_came(self) -> None:
        """Give up on trials whose folders did not come in time."""
        if self.clock.monotonic() - self._began < self.config.wait_for_trial:
            return
        for sentence in self.walks.absent():
            raise TrialError(sentence)

    def _look(self) -> None:
        """Look for new files."""
        ended = self.walks.ended
        if not self.walks.look():
            return
        self.stops.news()
        self.session.news_at = self.clock.monotonic()
        self._waited_since = None
        for job in self.jobs:
            job.waits = False
        if self.walks.ended and not ended:
            self.session.announcer.announce(trial_ended=True)

    def _judge_ready(self) -> StopReason | None:
        """Judge every step that is ready, each with all rules before the next."""
        stop = self.stops.reason()
        if stop:
            return stop
        for walk in self.walks.all:
            stop = self._judge_over(walk, [job for job in self.jobs if job.walk is walk])
            if stop:
                return stop
        return None

    def _judge_over(self, walk: Walk, jobs: list[RuleJob]) -> StopReason | None:
        """Judge every step of one walk that is ready, for the rule jobs that follow it."""
        position = min((job.position for job in jobs if job.live), default=-1)
        for step in walk.ready(position):
            self._judge(walk, step, [job for job in jobs if job.wants(step)])
            steps = walk.steps
            self.observer.progress(bisect_right(steps, step), len(steps))
            stop = self.stops.reason()
            if stop or not any(job.live for job in jobs):
                return stop
        return None

    def _judge(self, walk: Walk, step: int, wanting: list[RuleJob]) -> None:
        """Judge a step with the rules that want it; one that cannot be read is passed over."""
        readable = bool(wanting) and walk.readable(step)
        missing = walk.missing_workers(step) if readable else []
        for job in wanting:
            if not readable:
                job.pass_over(step, UNREADABLE)
            elif job.judge(step, missing):
                self.session.announce(job)

    def _wait(self) -> StopReason | None:
        """Wait for files; say for which after a while."""
        now = self.clock.monotonic()
        if self._waited_since is None:
            self._waited_since = now
            self._said_at = now + SAY_AFTER_S - SAY_EVERY_S
        if now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            self.observer.waiting(self._awaited(), now - self._waited_since)
        self._judge_silence()
        stop = self.stops.reason(waiting=True)
        if stop is None and any(job.live for job in self.jobs):
            self.waiter.wait(0.1 if self.walks.ending else POLL_S)
        return stop

    def _awaited(self) -> str:
        """Say what the rule job that is furthest behind waits for."""
        live = [job for job in self.jobs if job.live and not self._all_judged(job)]
        job = min(live, key=lambda one: one.position)
        return job.walk.awaited(job.position)

    def _judge_silence(self) -> None:
        """Let rules judge that nothing has come after the last step."""
        for job in self.jobs:
            steps = job.walk.steps
            if not steps or job.walk.ending or job.walk.ended:
                continue
            if job.live and job.position >= steps[-1] and job.wait(steps[-1]):
                self.session.announce(job)

    def _fail(self, details: str) -> None:
        """End all rule jobs with an error."""
        for job in self.jobs:
            if not job.evaluation.done and job.evaluation.rule_failed(details, self.session.now()):
                with self._as_far_as_it_goes():
                    self.session.tell(job)

    def _finish(self, stop: StopReason | None, *, finish: bool = True) -> None:
        """Give every rule job its verdict; let its rule `finish` first."""
        lost = {walk: walk.lost_files() if walk.ended else 0 for walk in self.walks.all}
        for job in self.jobs:
            if lost[job.walk]:
                job.evaluation.note(
                    f"{lost[job.walk]} index files came after the end and were not judged."
                )
            for moved in self._conclude(job, stop, finish=finish):
                if moved:
                    with self._as_far_as_it_goes():
                        self.session.tell(job)
        self.observer.decided([job.evaluation for job in self.jobs])
        self.session.end_actions(wait=finish)
        for job in reversed(self.jobs):  # the first one last: it says whether all have ended
            with self._as_far_as_it_goes():
                job.write(final=not self._unwritten)
            self._log_end(job)

    def _conclude(self, job: RuleJob, stop: StopReason | None, *, finish: bool) -> Iterator[bool]:
        """Bring a rule job to its verdict; yield after each part of it whether its status moved."""
        evaluation, known = job.evaluation, self._cover(job)
        if stop and not evaluation.done:
            yield evaluation.stop_requested(stop.text, self.session.now()) is not None
        if finish:
            complete = job.walk.ended and job.position >= max(known, default=-1)
            yield bool(job.finish(complete=complete))
        if not evaluation.done or evaluation.ended_at is None:
            held, no_data = self.session.held(job), not job.walk.all_steps
            moves = evaluation.ended(self.session.now(), job.walk.ended, held, no_data=no_data)
            yield bool(moves)

    def _cover(self, job: RuleJob) -> list[int]:
        """Say in the result what could not be read or came too late; return the known steps."""
        for note in job.walk.notes():
            job.evaluation.note(note)
        known = [step for step in job.walk.all_steps if self._in_range(job, step)]
        job.evaluation.steps_known(len(known))
        for step in job.walk.late():
            if step <= job.position and self._in_range(job, step):
                job.evaluation.step_skipped(step, LATE)
        return known

    @contextmanager
    def _as_far_as_it_goes(self) -> Iterator[None]:
        """Let an output folder that cannot be written cost no verdict."""
        try:
            yield
        except OutputError as err:
            self._unwritten = self._unwritten or str(err)

    @staticmethod
    def _in_range(job: RuleJob, step: int) -> bool:
        end = job.config.end_step
        return step >= (job.config.start_step or 0) and (end is None or step < end)

    def _log_end(self, job: RuleJob) -> None:
        """Write the one line that says all."""
        coverage = job.evaluation.coverage
        _log.info(
            "rule_job_finished",
            rule_job=job.config.configuration_name,
            rule=job.evaluation.rule,
            status=str(job.evaluation.status),
            outcome=str(job.evaluation.outcome),
            first=coverage.first,
            last=coverage.last,
            evaluated=coverage.judged,
            skipped=sum(coverage.skipped.values()),
            findings=job.evaluation.findings_count,
            rule_time_s=round(job.rule_time_s, 3),
        )

    def _end_at_once(self, number: int) -> None:
        """Write what there is and end the process: a rule does not come back."""
        with suppress(Exception):
            self.stops.by_signal(number)
            self._finish(self.stops.reason(), finish=False)
        remove_private_folders()
        os._exit(EXIT_SIGNAL + number)
